/* msl.c - fuzz_msl: one thread of random programs, as printed in Metal and compiled by another compiler, against the interpreter.
 *
 *     fuzz_msl --print seed:N...              the programs' sources, each below a line `// NAME KERNEL`
 *     fuzz_msl --compare LIBRARY seed:N...    LIBRARY exports each NAME: it takes an array of pointers to arguments
 *
 * fuzz/msl.py puts the two together. A program is taken twice, as generated and through the pipeline of passes. Refused are
 * those that Metal has no words for; left out those that read or write out of bounds, or fault, and those with fast maths.
 */
#include "fuzz/diff.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "msl/msl.h"
#include "pass/pass.h"

struct session {
    void *library; /* null: print */
    unsigned compared, refused, left_out, wrong;
};

/* ---- programs -------------------------------------------------------------------------------------------------- */

enum variant { AS_GENERATED, PIPELINE, VARIANT_COUNT };

static bool is_left_out(const struct gen_program *p)
{
    bool fast = p->read_faults || p->write_faults;
    for (uint32_t f = 1; f < p->m->funcs.n; f++)
        fast = fast || p->m->funcs.at[f].fast;
    for (uint32_t id = 1; id < p->m->nodes.n; id++)
        fast = fast || (op_info[p->m->nodes.at[id].op].math && (p->m->nodes.at[id].flags & NODE_FAST));
    return fast;
}

static void name_of(char out[64], uint64_t seed, unsigned variant)
{
    (void)snprintf(out, 64, "run_%llu_%u", (unsigned long long)seed, variant);
}

/* ---- print ----------------------------------------------------------------------------------------------------- */

/* Prints the program into `text`; false: refused. */
static bool print(struct mem *mem, const struct gen_program *p, uint64_t seed, struct buf *text, struct session *c)
{
    struct msl_lines lines = {0};
    sk_error err = {0};
    const sk_status status = msl_print(p->m, p->kernel, text, &lines, &err);
    if (status != SK_OK && status != SK_ERR_UNSUPPORTED) {
        printf("FAIL seed:%llu: does not print: %s\n", (unsigned long long)seed, err.message);
        c->wrong++;
    }
    VEC_FREE(mem, &lines.place);
    return status == SK_OK;
}

static void put_source(struct mem *mem, const struct gen_program *p, uint64_t seed, unsigned variant, struct session *c)
{
    char name[64];
    struct buf text, kernel;
    buf_init(&text, mem);
    buf_init(&kernel, mem);
    name_of(name, seed, variant);
    msl_kernel_name(p->m, p->kernel, &kernel);
    if (print(mem, p, seed, &text, c))
        printf("// %s %s\n%s", name, buf_text(&kernel), buf_text(&text));
    buf_free(&text);
    buf_free(&kernel);
}

/* ---- compare --------------------------------------------------------------------------------------------------- */

static sigjmp_buf trapped;

static void on_trap(int number)
{
    (void)number;
    siglongjmp(trapped, 1);
}

/* Position 0 in a grid of one thread, in a simdgroup of 32. */
static const uint32_t *filled(const struct param *q)
{
    static const uint32_t zero = 0, one = 1, width = 32;
    if (q->attribute == ATTR_THREADS_PER_SIMDGROUP || q->attribute == ATTR_THREAD_EXECUTION_WIDTH)
        return &width;
    return strstr(attr_info[q->attribute].metal, "_per_") ? &one : &zero;
}

typedef void native(const void *const *args);

/* Calls the compiled program; false if it trapped. */
static bool run_native(const struct gen_program *p, native *function, char *const *data)
{
    const struct func *const f = &p->m->funcs.at[p->kernel];
    const void *args[64];
    unsigned n = 0, given = 0;
    uint64_t seen = 0;
    for (uint32_t k = 0; k < f->n_params; k++) {
        const struct param *const q = &p->m->params.at[f->first_param + k];
        if (q->kind != PARAM_ATTRIBUTE)
            args[n++] = data[given++];
        else if (!(seen >> q->attribute & 1)) /* one parameter stands for all of an attribute */
            args[n++] = filled(q);
        if (q->kind == PARAM_ATTRIBUTE)
            seen |= (uint64_t)1 << q->attribute;
    }
    (void)signal(SIGILL, on_trap);
    if (sigsetjmp(trapped, 1))
        return false;
    function(args);
    return true;
}

/* False: it faults, there is nothing to compare. */
static bool run_interpreter(struct mem *mem, const struct gen_program *p, char *const *data)
{
    struct ir_module *const m = ir_module_clone(mem, p->m);
    struct interp_program *program = NULL;
    struct interp_arg arg[GEN_MAX_ARGS];
    sk_error err = {0};
    for (unsigned k = 0; k < p->n_args; k++)
        arg[k] = (struct interp_arg){p->arg[k].data ? data[k] : NULL, p->arg[k].size};
    const char *const name = strtab_str(&p->m->strings, p->m->funcs.at[p->kernel].name);
    sk_status status = pass_inline(m, p->kernel, 1u << 20, &err);
    if (status == SK_OK)
        status = interp_compile(mem, m, ir_func_by_name(m, name), &program, &err);
    const struct interp_launch launch = {
        .threads = {1, 1, 1}, .threadgroup = {1, 1, 1}, .args = arg, .stop = &diff_stop};
    if (status == SK_OK)
        status = interp_run(program, &launch, mem, &err);
    interp_free(program);
    ir_module_free(m);
    return status == SK_OK;
}

static bool same(const struct gen_program *p, char *const *want, char *const *have, uint64_t seed)
{
    for (unsigned k = 0; k < p->n_args; k++) {
        const struct gen_arg *const a = &p->arg[k];
        const size_t size = (size_t)ir_type_at(p->m, a->elem)->size;
        for (size_t at = 0; a->output && at < a->size; at += size) {
            const int64_t d = diff_value(p->m, a->elem, want[k] + at, have[k] + at);
            if (d < 0)
                continue;
            printf("FAIL seed:%llu: argument %u, element %zu, byte %lld: %#04x, in the interpreter %#04x\n",
                   (unsigned long long)seed, k, at / size, (long long)d, (unsigned char)have[k][at + (size_t)d],
                   (unsigned char)want[k][at + (size_t)d]);
            return false;
        }
    }
    return true;
}

static void compare(struct mem *mem, const struct gen_program *p, uint64_t seed, unsigned variant, struct session *c)
{
    char name[64];
    struct mem *const temp = mem_temp(mem);
    char *data[2][GEN_MAX_ARGS];
    name_of(name, seed, variant);
    native *const function = (native *)(intptr_t)dlsym(c->library, name);
    if (!function) {
        struct buf text;
        buf_init(&text, temp);
        if (print(temp, p, seed, &text, c)) {
            printf("FAIL seed:%llu: %s is not in the library\n", (unsigned long long)seed, name);
            c->wrong++;
        }
        c->refused++;
        mem_temp_end(temp);
        return;
    }
    for (unsigned side = 0; side < 2; side++)
        for (unsigned k = 0; k < p->n_args; k++) {
            char *const at = mem_zalloc(temp, p->arg[k].size + 128); /* vectors are aligned to their size */
            data[side][k] = at + (64 - (uintptr_t)at % 64) % 64;
            if (p->arg[k].data)
                memcpy(data[side][k], p->arg[k].data, p->arg[k].size);
        }
    if (run_interpreter(temp, p, data[0])) {
        c->compared++;
        if (!run_native(p, function, data[1])) {
            printf("FAIL seed:%llu: what C++ leaves undefined\n", (unsigned long long)seed);
            c->wrong++;
        } else if (!same(p, data[0], data[1], seed)) {
            c->wrong++;
        }
    } else {
        c->left_out++;
    }
    mem_temp_end(temp);
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

static void one(struct mem *mem, uint64_t seed, struct session *c)
{
    for (unsigned v = 0; v < VARIANT_COUNT; v++) {
        struct gen_program p;
        sk_error err = {0};
        gen_program(mem, seed, &p);
        if (is_left_out(&p)) {
            c->left_out++;
        } else if (v == PIPELINE && pass_run(p.m, NULL, &err) != SK_OK) {
            printf("FAIL seed:%llu: %s\n", (unsigned long long)seed, err.message);
            c->wrong++;
        } else if (c->library) {
            compare(mem, &p, seed, v, c);
        } else {
            put_source(mem, &p, seed, v, c);
        }
        gen_free(&p);
    }
}

static sk_status all(struct mem *mem, char *const *words, struct session *c)
{
    for (; *words; words++) {
        (void)alarm(60);
        if (strncmp(*words, "seed:", 5) == 0)
            one(mem, strtoull(*words + 5, NULL, 10), c);
    }
    return SK_OK;
}

int main(int argc, char **argv)
{
    const bool compares = argc > 2 && strcmp(argv[1], "--compare") == 0;
    struct session c = {0};
    struct mem mem;
    sk_status status = SK_OK;
    if (!compares && (argc < 2 || strcmp(argv[1], "--print") != 0)) {
        fprintf(stderr, "usage: fuzz_msl --print seed:N... | --compare LIBRARY seed:N...\n");
        return 2;
    }
    if (compares)
        c.library = dlopen(argv[2], RTLD_NOW);
    if (compares && !c.library) {
        fprintf(stderr, "fuzz_msl: %s\n", dlerror());
        return 2;
    }
    mem_init(&mem, NULL);
    MEM_GUARD(&mem, NULL, status, all(&mem, argv + (compares ? 3 : 2), &c));
    if (compares)
        printf("fuzz_msl: %u compared, %u refused, %u left out, %u wrong\n", c.compared, c.refused, c.left_out,
               c.wrong);
    return c.wrong || status != SK_OK;
}
