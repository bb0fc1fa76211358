/* run.c - spork run: a kernel of an .ir file on arrays given on the command line. */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct request {
    const char *path, *kernel, *device;
    sk_size grid, threadgroup;
    bool have_grid, have_threadgroup, threads, time;
    const char **args, **outs, **prints; /* name=what, name=file.npy, name[index] */
    int n_args, n_outs, n_prints;
};

struct bound { /* one argument of the kernel */
    sk_arg_info info;
    struct npy array; /* buffers and values; `data` is the memory */
    size_t threadgroup_bytes;
    bool given;
};

static void help(void)
{
    (void)printf(
        "usage: spork run FILE.ir KERNEL (--threads N | --grid G) [--threadgroup T] NAME=WHAT ...\n"
        "                 [--out NAME=FILE.npy] [--print NAME[I],...] [--device NAME] [--time]\n\n"
        "Runs a kernel on arrays. Sizes are N, NxM or NxMxK; --threads counts threads, --grid threadgroups; the\n"
        "threadgroup is 256 threads, or all if fewer, unless given. Every argument of the kernel needs a WHAT:\n\n"
        "  array.npy          a copy of a NumPy array; its dtype must be the parameter's\n"
        "  zeros:N:TYPE       N zeros; TYPE is bool, i8, u8, ... u64, f16, bf16, f32\n"
        "  full:X:N:TYPE      N times X\n"
        "  range:N:TYPE       0, 1, ... N-1\n"
        "  random:N:TYPE      numbers in [0, 1), or all integers; the same at each run\n"
        "  1.5  or  1,2,3     a scalar or vector; for threadgroup memory, its number of elements\n\n"
        "--out writes an array after the launch, --print prints elements: out[0], out[-1], out[0:4], out.\n"
        "A kernel that faults prints where, and exits with 1; what it wrote in bounds is still written and printed.\n");
}

static bool parse_size(const char *text, sk_size *out)
{
    uint32_t v[3] = {1, 1, 1};
    for (int d = 0; d < 3; d++) {
        char *end = NULL;
        errno = 0;
        if (!isdigit((unsigned char)*text))
            return false;
        const unsigned long long x = strtoull(text, &end, 10);
        if (errno || x > UINT32_MAX)
            return false;
        v[d] = (uint32_t)x;
        if (!*end) {
            *out = (sk_size){v[0], v[1], v[2]};
            return true;
        }
        if (*end != 'x' && *end != ',')
            return false;
        text = end + 1;
    }
    return false;
}

/* Splits "a:b:c" in at most `max` pieces; returns how many. */
static int split(const char *text, const char **piece, size_t *length, int max)
{
    int n = 0;
    while (n < max) {
        const char *colon = strchr(text, ':');
        piece[n] = text;
        length[n++] = colon ? (size_t)(colon - text) : strlen(text);
        if (!colon)
            break;
        text = colon + 1;
    }
    return n;
}

static bool read_count(size_t i, sk_type scalar, void *out)
{
    char text[32];
    const int n = snprintf(text, sizeof text, "%zu", i);
    return value_read(text, (size_t)n, scalar, out);
}

static void fill_range(struct npy *a) /* the last is known to fit */
{
    for (size_t i = 0; i < a->count; i++)
        (void)read_count(i, a->type, (char *)a->data + i * a->size);
}

static void fill_random(struct npy *a)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < a->count; i++) {
        state = hash_u64(state, i);
        void *at = (char *)a->data + i * a->size;
        /* As many bits as the type holds, so that nothing rounds up to 1. */
        const float f = (float)(state >> 40) / 0x1p24f;
        const uint16_t h = a->type == SK_F16 ? f16_from_f32((float)(state >> 53) / 0x1p11f)
                                             : bf16_from_f32((float)(state >> 56) / 0x1p8f);
        const uint64_t integer = a->type == SK_BOOL ? state >> 63 : state;
        if (a->type == SK_F32)
            memcpy(at, &f, sizeof f);
        else if (a->type == SK_F16 || a->type == SK_BF16)
            memcpy(at, &h, sizeof h);
        else
            memcpy(at, &integer, a->size);
    }
}

/* zeros:N:TYPE, full:X:N:TYPE, range:N:TYPE, random:N:TYPE. False: the text is none of them. What is wrong goes to
 * `why`, else that is empty. */
static bool make_array(const char *what, struct npy *a, char *why, size_t cap)
{
    const char *piece[5];
    size_t length[5];
    const int n = split(what, piece, length, 5);
    const bool full = length[0] == 4 && memcmp(what, "full", 4) == 0;
    const bool zeros = length[0] == 5 && memcmp(what, "zeros", 5) == 0;
    const bool range = length[0] == 5 && memcmp(what, "range", 5) == 0;
    const bool random = length[0] == 6 && memcmp(what, "random", 6) == 0;
    if (!full && !zeros && !range && !random)
        return false;

    const int count_at = full ? 2 : 1;
    uint64_t count = 0, x = 0;
    why[0] = 0;
    if (n != count_at + 2)
        (void)snprintf(why, cap, "write %.*s:%sN:TYPE", (int)length[0], what, full ? "X:" : "");
    else if (!value_type(piece[n - 1], length[n - 1], &a->type))
        (void)snprintf(why, cap, "there is no type %.40s; write bool, i8, u8, ... u64, f16, bf16 or f32%s",
                       piece[n - 1], strcmp(piece[n - 1], "f64") == 0 ? " (Metal has no 64-bit floats)" : "");
    else if (!value_read(piece[count_at], length[count_at], SK_U64, &count) || count > ((size_t)1 << 40))
        (void)snprintf(why, cap, "%.*s is no number of elements", (int)(length[count_at] < 40 ? length[count_at] : 40),
                       piece[count_at]);
    else if (full && !value_read(piece[1], length[1], a->type, &x))
        (void)snprintf(why, cap, "%.*s is no %s", (int)(length[1] < 40 ? length[1] : 40), piece[1],
                       value_name(a->type));
    else if (range && count && !read_count((size_t)count - 1, a->type, &x))
        (void)snprintf(why, cap, "%" PRIu64 " does not fit %s", count - 1, value_name(a->type));
    if (why[0])
        return true;
    a->size = value_size(a->type);
    a->count = (size_t)count;
    a->n_dims = 1;
    a->shape[0] = a->count;
    a->data = calloc(a->count + 1, a->size);
    if (!a->data) {
        (void)snprintf(why, cap, "there is no memory for it");
        return true;
    }
    if (range)
        fill_range(a);
    if (random)
        fill_random(a);
    for (size_t i = 0; full && i < a->count; i++)
        memcpy((char *)a->data + i * a->size, &x, a->size);
    return true;
}

static unsigned width_of(sk_type t)
{
    return t < SK_SCALAR_COUNT ? 1 : (unsigned)((t - SK_SCALAR_COUNT) % 3 + 2);
}

static sk_type scalar_of(sk_type t)
{
    return (sk_type)(t < SK_SCALAR_COUNT ? t : (t - SK_SCALAR_COUNT) / 3 + 1);
}

static int bind_value(struct bound *b, const char *what)
{
    const sk_type s = scalar_of(b->info.type);
    const unsigned width = width_of(b->info.type);
    b->array.data = calloc(1, b->info.size + 8);
    if (!b->array.data)
        return EXIT_FAILED;
    const char *p = what;
    for (unsigned k = 0; k < width; k++) {
        const char *comma = strchr(p, ',');
        const size_t n = comma ? (size_t)(comma - p) : strlen(p);
        if ((comma != NULL) != (k + 1 < width) || !value_read(p, n, s, (char *)b->array.data + k * value_size(s)))
            return cli_usage("run", "'%s' is no %s%s for parameter '%s'", what, width > 1 ? "list of " : "",
                             value_name(s), b->info.name);
        p = comma ? comma + 1 : p + n;
    }
    b->array.size = b->info.size;
    b->array.count = 1;
    return EXIT_FINE;
}

static int bind_buffer(struct bound *b, const char *what)
{
    const sk_type want = scalar_of(b->info.type);
    char why[160];
    if (make_array(what, &b->array, why, sizeof why)) {
        if (why[0])
            return cli_usage("run", "'%s' makes no array for parameter '%s': %s", what, b->info.name, why);
    } else {
        sk_error err = {0};
        if (npy_read(what, &b->array, &err) != SK_OK)
            return cli_error(&err);
    }
    if (b->array.type != want)
        return cli_usage("run", "parameter '%s' holds %s, but '%s' holds %s", b->info.name, value_name(want), what,
                         value_name(b->array.type));
    return EXIT_FINE;
}

static int bind_one(struct bound *bound, size_t n, const char *arg)
{
    const char *equals = strchr(arg, '=');
    if (!equals)
        return cli_usage("run", "'%s' is no NAME=WHAT", arg);
    size_t k = 0;
    while (k < n && !(strlen(bound[k].info.name) == (size_t)(equals - arg) &&
                      memcmp(bound[k].info.name, arg, (size_t)(equals - arg)) == 0))
        k++;
    if (k == n)
        return cli_usage("run", "the kernel has no parameter '%.*s'", (int)(equals - arg), arg);
    struct bound *b = &bound[k];
    if (b->given)
        return cli_usage("run", "parameter '%s' is given twice", b->info.name);
    b->given = true;
    if (b->info.type == SK_VOID && b->info.kind != SK_ARG_THREADGROUP)
        return cli_usage("run", "parameter '%s' is a struct, which the command line cannot give", b->info.name);
    switch (b->info.kind) {
    case SK_ARG_BUFFER: return bind_buffer(b, equals + 1);
    case SK_ARG_VALUE: return bind_value(b, equals + 1);
    case SK_ARG_THREADGROUP: {
        uint32_t count = 0;
        if (!value_read(equals + 1, strlen(equals + 1), SK_U32, &count))
            return cli_usage("run", "'%s' is no number of elements for threadgroup memory '%s'", equals + 1,
                             b->info.name);
        b->threadgroup_bytes = (size_t)count * b->info.size;
        return EXIT_FINE;
    }
    }
    return EXIT_FAILED;
}

static struct bound *find_array(struct bound *bound, size_t n, const char *name, size_t length)
{
    for (size_t k = 0; k < n; k++)
        if (bound[k].info.kind == SK_ARG_BUFFER && strlen(bound[k].info.name) == length &&
            memcmp(bound[k].info.name, name, length) == 0)
            return &bound[k];
    return NULL;
}

/* A decimal number, maybe negative, up to `stop`; counted from the end of the array if negative. */
static bool parse_index(const char *text, const char *stop, long long count, long long *out)
{
    char *end = NULL;
    errno = 0;
    if (!isdigit((unsigned char)text[*text == '-']))
        return false;
    const long long i = strtoll(text, &end, 10);
    if (errno || end != stop || i > count || i < -count)
        return false;
    *out = i < 0 ? i + count : i;
    return true;
}

/* [I] or [I:J] with either left out, as Python has it. */
static bool parse_slice(const char *text, size_t length, long long count, long long *from, long long *to)
{
    const char *const last = text + length - 1, *const colon = memchr(text, ':', length);
    if (length < 3 || *last != ']')
        return false;
    text++;
    if (!colon) {
        if (!parse_index(text, last, count, from) || *from >= count)
            return false;
        *to = *from + 1;
        return true;
    }
    *from = 0;
    *to = count;
    return (colon == text || parse_index(text, colon, count, from)) &&
           (colon + 1 == last || parse_index(colon + 1, last, count, to)) && *from <= *to;
}

/* One item of --print: out, out[3], out[-1], out[2:5]. */
static int print_item(struct bound *bound, size_t n, const char *item, size_t length)
{
    const char *bracket = memchr(item, '[', length);
    const size_t name_length = bracket ? (size_t)(bracket - item) : length;
    struct bound *b = find_array(bound, n, item, name_length);
    if (!b)
        return cli_usage("run", "no array '%.*s' to print", (int)name_length, item);
    const long long count = (long long)b->array.count;
    long long from = 0, to = count;
    if (bracket && !parse_slice(bracket, (size_t)(item + length - bracket), count, &from, &to))
        return cli_usage("run", "'%.*s' is no element of the array of %lld; write NAME[I] or NAME[I:J]", (int)length,
                         item, count);
    (void)printf("%.*s =", (int)length, item);
    for (long long i = from; i < to; i++) {
        (void)putchar(' ');
        value_print(stdout, b->array.type, (const char *)b->array.data + (size_t)i * b->array.size);
    }
    (void)putchar('\n');
    return EXIT_FINE;
}

static int show(const struct request *r, struct bound *bound, size_t n)
{
    for (int i = 0; i < r->n_outs; i++) {
        const char *equals = strchr(r->outs[i], '=');
        struct bound *b = equals ? find_array(bound, n, r->outs[i], (size_t)(equals - r->outs[i])) : NULL;
        sk_error err = {0};
        if (!b)
            return cli_usage("run", "--out wants NAME=FILE.npy with the name of an array, not '%s'", r->outs[i]);
        if (npy_write(equals + 1, &b->array, &err) != SK_OK)
            return cli_error(&err);
    }
    for (int i = 0; i < r->n_prints; i++)
        for (const char *p = r->prints[i]; *p;) {
            const size_t length = strcspn(p, ",");
            const int code = print_item(bound, n, p, length);
            if (code != EXIT_FINE)
                return code;
            p += length + (p[length] == ',');
        }
    return EXIT_FINE;
}

static int parse_args(int argc, char **argv, struct request *r)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (strcmp(a, "--time") == 0) {
            r->time = true;
            continue;
        }
        if (a[0] != '-') {
            if (!r->path)
                r->path = a;
            else if (!r->kernel)
                r->kernel = a;
            else
                r->args[r->n_args++] = a;
            continue;
        }
        if (i + 1 == argc)
            return cli_usage("run", "%s wants a value, or is no option", a);
        const char *v = argv[++i];
        if (strcmp(a, "--threads") == 0 || strcmp(a, "--grid") == 0) {
            if (r->have_grid)
                return cli_usage("run", "give --threads or --grid, once");
            if (!parse_size(v, &r->grid))
                return cli_usage("run", "'%s' is no size; write N, NxM or NxMxK", v);
            r->have_grid = true;
            r->threads = a[2] == 't';
        } else if (strcmp(a, "--threadgroup") == 0) {
            if (!parse_size(v, &r->threadgroup))
                return cli_usage("run", "'%s' is no size; write N, NxM or NxMxK", v);
            r->have_threadgroup = true;
        } else if (strcmp(a, "--out") == 0) {
            r->outs[r->n_outs++] = v;
        } else if (strcmp(a, "--print") == 0) {
            r->prints[r->n_prints++] = v;
        } else if (strcmp(a, "--device") == 0) {
            r->device = v;
        } else {
            return cli_usage("run", "no option '%s'", a);
        }
    }
    const char *suffix = r->path ? strrchr(r->path, '.') : NULL;
    if (suffix && strcmp(suffix, ".py") == 0)
        return cli_usage("run", "it runs .ir files; make one first: spork emit %s:%s --as ir > FILE.ir", r->path,
                         r->kernel ? r->kernel : "KERNEL");
    if (!r->path || !r->kernel)
        return cli_usage("run", "which file and kernel?");
    if (!r->have_grid)
        return cli_usage("run", "how many threads? give --threads N or --grid G");
    return EXIT_FINE;
}

static int launch(const struct request *r, sk_pipeline *p, struct bound *bound, size_t n)
{
    sk_error err = {0};
    sk_arg *args = calloc(n + 1, sizeof *args);
    if (!args)
        return EXIT_FAILED;
    for (size_t k = 0; k < n; k++) {
        args[k].data = bound[k].array.data;
        args[k].size = bound[k].info.kind == SK_ARG_THREADGROUP ? bound[k].threadgroup_bytes
                                                                : bound[k].array.count * bound[k].array.size;
    }
    sk_size group = r->threadgroup;
    if (!r->have_threadgroup) {
        const uint32_t limit = sk_pipeline_max_threads(p) < 256 ? sk_pipeline_max_threads(p) : 256;
        group = (sk_size){r->threads && r->grid.x < limit ? (r->grid.x ? r->grid.x : 1) : limit, 1, 1};
    }
    const sk_launch l = {.grid = r->grid, .threadgroup = group, .threads = r->threads, .n_args = n, .args = args};
    const uint64_t start = os_nanoseconds();
    const sk_status st = sk_pipeline_launch(p, &l, &err);
    if (r->time)
        (void)fprintf(stderr, "%.3f ms\n", (double)(os_nanoseconds() - start) / 1e6);
    free(args);
    if (st != SK_OK && st != SK_ERR_FAULT)
        return cli_error(&err);
    int code = show(r, bound, n);
    if (st == SK_ERR_FAULT) {
        (void)fflush(stdout);
        code = cli_error(&err);
    }
    return code;
}

static int run(const struct request *r, sk_context *ctx)
{
    sk_error err = {0};
    sk_module *m = NULL;
    sk_device *d = NULL;
    sk_library *lib = NULL;
    sk_function *f = NULL;
    sk_pipeline *p = NULL;
    int code = cli_load(ctx, r->path, &m);
    if (code != EXIT_FINE)
        return code;
    if (sk_device_get(ctx, r->device, &d, &err) != SK_OK || sk_library_from_module(d, m, &lib, &err) != SK_OK ||
        sk_library_function(lib, r->kernel, &f, &err) != SK_OK || sk_pipeline_create(f, &p, &err) != SK_OK)
        return cli_error(&err);

    const size_t n = sk_function_arg_count(f);
    struct bound *bound = calloc(n + 1, sizeof *bound);
    if (!bound)
        return EXIT_FAILED;
    for (size_t k = 0; k < n && code == EXIT_FINE; k++)
        if (sk_function_arg(f, k, &bound[k].info, &err) != SK_OK)
            code = cli_error(&err);
    for (int i = 0; i < r->n_args && code == EXIT_FINE; i++)
        code = bind_one(bound, n, r->args[i]);
    for (size_t k = 0; k < n && code == EXIT_FINE; k++)
        if (!bound[k].given)
            code = cli_usage("run", "parameter '%s' is not given", bound[k].info.name);
    if (code == EXIT_FINE)
        code = launch(r, p, bound, n);
    for (size_t k = 0; k < n; k++)
        free(bound[k].array.data);
    free(bound);
    return code;
}

int cli_run(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (cli_is_help(argv[i])) {
            help();
            return EXIT_FINE;
        }
    struct request r = {0};
    const char **lists = calloc((size_t)argc * 3, sizeof *lists);
    if (!lists)
        return EXIT_FAILED;
    r.args = lists;
    r.outs = lists + argc;
    r.prints = lists + 2 * argc;
    int code = parse_args(argc, argv, &r);
    sk_context *ctx = NULL;
    sk_error err = {0};
    if (code == EXIT_FINE && sk_context_create(NULL, &ctx, &err) != SK_OK)
        code = cli_error(&err);
    if (code == EXIT_FINE)
        code = run(&r, ctx);
    sk_context_destroy(ctx);
    free(lists);
    return code;
}
