/* show.c - spork ir, spork emit, spork devices. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pass/analysis.h"
#include "pass/pass.h"

#define FACTS_NODES (1u << 20) /* calls are inlined up to here */

/* The facts of each kernel, after the passes. */
static sk_status facts_of(struct mem *mem, const char *path, const char *text, size_t n, const char *letters,
                          const struct shape *shape, struct buf *out, sk_error *err)
{
    struct ir_module *m = NULL;
    TRY(ir_parse(mem, text, n, path, &m, err));
    for (uint32_t f = 1; f < m->funcs.n; f++) {
        if (!m->funcs.at[f].kernel)
            continue;
        struct ir_module *const one = ir_module_clone(mem, m);
        TRY(pass_inline(one, f, FACTS_NODES, err));
        TRY(pass_run(one, letters, err));
        struct analysis a;
        analysis_run(mem, one, ir_func_by_name(one, strtab_str(&m->strings, m->funcs.at[f].name)), shape, true, &a);
        if (out->n)
            buf_char(out, '\n');
        analysis_print(&a, out);
    }
    return SK_OK;
}

static int print_facts(const char *path, const char *letters, const struct shape *shape)
{
    sk_error err = {0};
    char *text = NULL;
    size_t n = 0;
    sk_status st = cli_read_file(path, &text, &n, &err);
    struct mem mem;
    mem_init(&mem, NULL);
    struct mem *t = NULL;
    struct buf out;
    buf_init(&out, &mem);
    if (st == SK_OK)
        MEM_GUARD(&mem, &err, st, (t = mem_temp(&mem), SK_OK));
    if (st == SK_OK) {
        MEM_GUARD(&mem, &err, st, facts_of(t, path, text, n, letters, shape, &out, &err));
        if (st == SK_OK)
            (void)fputs(buf_text(&out), stdout);
    }
    mem_temps_unwind(&mem, NULL);
    buf_free(&out);
    free(text);
    return st == SK_OK ? EXIT_FINE : cli_error(&err);
}

/* X,Y,Z: numbers up to 1024, 0 for one that is not known. */
static bool read_dims(const char *s, uint32_t dims[3])
{
    char *end = NULL;
    for (unsigned k = 0; k < 3; k++, s = end + 1) {
        const unsigned long x = strtoul(s, &end, 10);
        if (end == s || *end != (k < 2 ? ',' : 0) || x > 1024)
            return false;
        dims[k] = (uint32_t)x;
    }
    return (uint64_t)dims[0] * dims[1] * dims[2] <= 1024;
}

int cli_ir(int argc, char **argv)
{
    const char *path = NULL, *letters = "";
    bool places = false, facts = false;
    struct shape shape = {.dims = {0, 0, 0}, .width = 32};
    for (int i = 1; i < argc; i++) {
        if (cli_is_help(argv[i])) {
            (void)printf("usage: spork ir FILE.ir [-p LETTERS] [--places]\n"
                         "       spork ir FILE.ir [-p LETTERS] --facts [--threadgroup X,Y,Z] [--width W] [--edge]\n\n"
                         "Parses and verifies an .ir file and prints it in the text form of docs/ir.md.\n\n"
                         "  -p LETTERS  runs passes first, in this order; those without a star, in the order of this "
                         "list, are the pipeline:\n");
            for (unsigned k = 0; k < pass_count; k++)
                (void)printf("                %c%c %s\n", pass_info[k].letter, pass_info[k].pipeline ? ' ' : '*',
                             pass_info[k].doc);
            (void)printf(
                "  --places    prints the source places as well\n"
                "  --facts     prints what is known of the values of each kernel, after inlining and -p (the pipeline\n"
                "              if not given): the threads in which each is the same (G grid, T threadgroup, S the\n"
                "              W lanes that run together, V not even they; V+4: 4 more from lane to lane), bounds\n"
                "  --threadgroup, --width, --edge: for which threadgroup, 0 a size that is not known; how many lanes "
                "run\n"
                "              together, 32 if not given; that the threadgroup may be smaller\n");
            return EXIT_FINE;
        }
        if (strcmp(argv[i], "-p") == 0) {
            if (++i == argc)
                return cli_usage("ir", "-p wants letters of passes");
            letters = argv[i];
        } else if (strcmp(argv[i], "--places") == 0) {
            places = true;
        } else if (strcmp(argv[i], "--facts") == 0) {
            facts = true;
        } else if (strcmp(argv[i], "--edge") == 0) {
            shape.edge = true;
        } else if (strcmp(argv[i], "--threadgroup") == 0) {
            if (++i == argc || !read_dims(argv[i], shape.dims))
                return cli_usage("ir", "--threadgroup wants X,Y,Z, at most 1024 threads, 0 for what is not known");
        } else if (strcmp(argv[i], "--width") == 0) {
            const int w = ++i < argc ? atoi(argv[i]) : 0;
            if (w < 1 || w > 32 || (w & (w - 1)))
                return cli_usage("ir", "--width wants 1, 2, 4, 8, 16 or 32");
            shape.width = (uint32_t)w;
        } else if (argv[i][0] == '-') {
            return cli_usage("ir", "no option '%s'", argv[i]);
        } else if (path) {
            return cli_usage("ir", "one file at a time, not '%s' and '%s'", path, argv[i]);
        } else {
            path = argv[i];
        }
    }
    if (!path)
        return cli_usage("ir", "which file?");
    if (shape.edge && (!shape.dims[0] || !shape.dims[1] || !shape.dims[2]))
        return cli_usage("ir", "--edge wants a --threadgroup that is known");
    if (facts)
        return print_facts(path, *letters ? letters : NULL, &shape);

    sk_error err = {0};
    sk_context *ctx = NULL;
    sk_module *m = NULL;
    const char *text = NULL;
    if (sk_context_create(NULL, &ctx, &err) != SK_OK)
        return cli_error(&err);
    int code = cli_load(ctx, path, &m);
    if (code == EXIT_FINE && *letters && sk_module_passes(m, letters, &err) != SK_OK)
        code = cli_error(&err);
    if (code == EXIT_FINE && sk_module_print(m, places, &text, &err) != SK_OK)
        code = cli_error(&err);
    if (code == EXIT_FINE)
        (void)fputs(text, stdout);
    sk_context_destroy(ctx);
    return code;
}

static bool runs(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Writes the path of the `python` beside `program`, if there is one that runs. A command that was found on PATH is
 * looked for there, by the name it was called by: a link in a virtual environment belongs to that environment. */
static bool python_beside(const char *program, char *out, size_t cap)
{
    const char *slash = strrchr(program, '/');
    if (slash) {
        const int n = snprintf(out, cap, "%.*s/python", (int)(slash - program), program);
        return n > 0 && (size_t)n < cap && runs(out);
    }
    for (const char *p = getenv("PATH"); p && *p;) {
        const size_t n = strcspn(p, ":");
        if (snprintf(out, cap, "%.*s/%s", (int)n, p, program) < (int)cap && runs(out)) {
            (void)snprintf(out, cap, "%.*s/python", (int)n, p);
            return runs(out);
        }
        p += n + (p[n] == ':');
    }
    return false;
}

/* Python kernels are traced by Python: the one beside this command if there is one, else the first on PATH. */
static int emit_python(const char *program, const char *what, const char *as, const char *threadgroup)
{
    char python[4096];
    if (!python_beside(program, python, sizeof python))
        (void)snprintf(python, sizeof python, "python3");
    const char *const program_text = "import sys\n"
                                     "try:\n"
                                     "    from spork import _emit\n"
                                     "except ImportError as error:\n"
                                     "    sys.exit(f'spork: error: {sys.executable} cannot import the package spork "
                                     "({error}); install it there, or '\n"
                                     "             'call the spork command of an environment that has it')\n"
                                     "sys.exit(_emit.main(*sys.argv[1:]))\n";
    char *const args[] = {python, (char *)"-c", (char *)program_text, (char *)what, (char *)as, (char *)threadgroup,
                          NULL};
    (void)fflush(stdout);
    (void)execvp(python, args);
    (void)fprintf(stderr, "spork: error: cannot run '%s' to trace '%s': %s\n", python, what, strerror(errno));
    return EXIT_FAILED;
}

enum form { FORM_MSL, FORM_IR, FORM_LLVM, FORM_ASM, FORM_COUNT };
static const char *const form_name[FORM_COUNT] = {"msl", "ir", "llvm", "asm"};

static enum form form_of(const char *name)
{
    unsigned f = 0;
    while (f < FORM_COUNT && strcmp(name, form_name[f]) != 0)
        f++;
    return (enum form)f;
}

/* Null: the only kernel there is. */
static const char *choose_kernel(const sk_module *m, const char *kernel)
{
    return kernel || sk_module_kernel_count(m) != 1 ? kernel : sk_module_kernel_name(m, 0);
}

/* The code of the device cpu. The caller prints and frees it. */
static sk_status cpu_text(sk_context *ctx, const sk_module *m, const char *kernel, sk_size group, sk_text kind,
                          char **out, sk_error *err)
{
    sk_device *device;
    sk_library *library;
    sk_function *function;
    sk_pipeline *pipeline;
    TRY(sk_device_get(ctx, "cpu", &device, err));
    TRY(sk_library_from_module(device, m, &library, err));
    TRY(sk_library_function(library, kernel, &function, err));
    TRY(sk_pipeline_create(function, &pipeline, err)); /* the context frees them all */
    const uint32_t most = sk_pipeline_max_threads(pipeline);
    if (!group.x)
        group = (sk_size){most < 256 ? most : 256, 1, 1};
    return sk_pipeline_text(pipeline, group, false, kind, out, err);
}

static int emit_module(sk_context *ctx, sk_module *m, const char *path, const char *kernel, enum form form,
                       sk_size group)
{
    sk_error err = {0};
    sk_status st = SK_OK;
    const char *text = NULL;
    char *made = NULL;
    switch (form) {
    case FORM_MSL: st = sk_module_metal(m, kernel, &text, NULL, NULL, &err); break;
    case FORM_IR: st = sk_module_print(m, false, &text, &err); break;
    case FORM_LLVM:
    case FORM_ASM:
        kernel = choose_kernel(m, kernel);
        if (!kernel)
            return cli_usage("emit", "%s has %zu kernels; write %s:KERNEL", path, sk_module_kernel_count(m), path);
        st = cpu_text(ctx, m, kernel, group, form == FORM_LLVM ? SK_TEXT_LLVM : SK_TEXT_ASM, &made, &err);
        text = made;
        break;
    case FORM_COUNT: break;
    }
    if (st == SK_OK)
        (void)fputs(text, stdout);
    sk_text_free(ctx, made);
    return st == SK_OK ? EXIT_FINE : cli_error(&err);
}

int cli_emit(int argc, char **argv)
{
    const char *what = NULL, *as = "msl", *threadgroup = "";
    uint32_t group[3] = {0, 0, 0};
    for (int i = 1; i < argc; i++) {
        if (cli_is_help(argv[i])) {
            (void)printf(
                "usage: spork emit FILE.py[:KERNEL] | FILE.ir[:KERNEL] [--as msl|ir|llvm|asm] [--threadgroup X,Y,Z]\n\n"
                "Prints a kernel as Metal source (msl, the default) or IR; as what the device cpu makes of it for\n"
                "threadgroups of X by Y by Z threads (256,1,1 if not given): LLVM IR, or this processor's "
                "instructions,\n"
                "for which LLVM must be there. From a Python file, which is run as a module (not as __main__), a\n"
                "kernel is the name of a function under @sk.jit. It need not be named if there is only one. What the\n"
                "file itself prints goes to stderr.\n");
            return EXIT_FINE;
        }
        if (strcmp(argv[i], "--as") == 0) {
            if (++i == argc)
                return cli_usage("emit", "--as wants msl, ir, llvm or asm");
            as = argv[i];
        } else if (strcmp(argv[i], "--threadgroup") == 0) {
            if (++i == argc || !read_dims(argv[i], group) || !group[0] || !group[1] || !group[2])
                return cli_usage("emit", "--threadgroup wants X,Y,Z, together 1 to 1024 threads");
            threadgroup = argv[i];
        } else if (argv[i][0] == '-') {
            return cli_usage("emit", "no option '%s'", argv[i]);
        } else if (what) {
            return cli_usage("emit", "one kernel at a time, not '%s' and '%s'", what, argv[i]);
        } else {
            what = argv[i];
        }
    }
    if (!what)
        return cli_usage("emit", "which kernel?");
    const enum form form = form_of(as);
    if (form == FORM_COUNT)
        return cli_usage("emit", "cannot print as '%s', only as msl, ir, llvm or asm", as);
    if (*threadgroup && form != FORM_LLVM && form != FORM_ASM)
        return cli_usage("emit", "--threadgroup is for --as llvm and --as asm");

    const char *colon = strrchr(what, ':');
    const size_t n = colon ? (size_t)(colon - what) : strlen(what);
    if (n > 3 && memcmp(what + n - 3, ".py", 3) == 0)
        return emit_python(argv[-1], what, as, threadgroup);
    char *path = strdup(what);
    if (!path)
        return EXIT_FAILED;
    const char *kernel = NULL;
    if (colon) {
        path[n] = 0;
        kernel = colon + 1;
    }
    sk_error err = {0};
    sk_context *ctx = NULL;
    sk_module *m = NULL;
    int code = EXIT_FINE;
    if (sk_context_create(NULL, &ctx, &err) != SK_OK)
        code = cli_error(&err);
    else
        code = cli_load(ctx, path, &m);
    if (code == EXIT_FINE)
        code = emit_module(ctx, m, path, kernel, form, (sk_size){group[0], group[1], group[2]});
    sk_context_destroy(ctx);
    free(path);
    return code;
}

int cli_devices(int argc, char **argv)
{
    if (argc > 1 && cli_is_help(argv[1])) {
        (void)printf("usage: spork devices\n\n"
                     "Lists the devices that kernels can run on here, the default marked *, with what they found: the\n"
                     "version of LLVM, this processor and what it can do, how many threads a launch uses; and why\n"
                     "others are missing.\n\n"
                     "SPORK_DEVICE=NAME chooses another default, SPORK_THREADS=N how many threads a launch uses,\n"
                     "SPORK_LLVM=FILE which LLVM, SPORK_LLVM=off none.\n");
        return EXIT_FINE;
    }
    if (argc > 1)
        return cli_usage("devices", "no argument '%s'", argv[1]);
    sk_error err = {0};
    sk_context *ctx = NULL;
    sk_device *best = NULL;
    if (sk_context_create(NULL, &ctx, &err) != SK_OK)
        return cli_error(&err);
    int code = EXIT_FINE;
    if (sk_device_get(ctx, NULL, &best, &err) != SK_OK)
        code = cli_error(&err);
    for (size_t k = 0; k < sk_device_count(ctx); k++) {
        sk_device *d = sk_device_at(ctx, k);
        const char *found = NULL;
        (void)printf("%c %-8s %s\n", d == best ? '*' : ' ', sk_device_name(d), sk_device_description(d));
        sk_error why = {0};
        if (sk_device_details(d, &found, &why) != SK_OK)
            (void)printf("           cannot be used: %s\n", why.message);
        else if (strcmp(found, sk_device_description(d)) != 0)
            (void)printf("           %s\n", found);
    }
    for (size_t k = 0; sk_device_missing(ctx, k); k++)
        (void)printf("- %s\n", sk_device_missing(ctx, k));
    sk_context_destroy(ctx);
    return code;
}
