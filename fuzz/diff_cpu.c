/* diff_cpu.c - a program on the CPU device against the interpreter.
 *
 * Both run the same module, so nothing may differ but the bits of NaNs: memory, the fault and its place. What decides how the
 * code is made (size of the threadgroup known or not, lanes, effort of LLVM, workers) is rolled by the seed alone, so that a
 * smaller module is compiled alike. Functions that `fast` allows to differ are taken exactly, on both sides.
 */
#include "fuzz/diff.h"

#include <stdio.h>
#include <stdlib.h>

#include "cpu/program.h"
#include "pass/pass.h"

struct llvm *diff_llvm;

#define REDZONE 64u
#define MOST_TEXT ((size_t)512 << 10) /* no code is made of more */
#define QUICK_TEXT ((size_t)96 << 10) /* or at full effort, which takes a second from here on */
#define STACK_BYTES ((size_t)1 << 20) /* of a fiber */

/* What the seed rolled. */
struct way {
    bool program; /* through cpu/program.c, which chooses all but the workers */
    bool known;   /* the threadgroup's size is a constant */
    bool line;    /* else: that it is a line is known */
    bool cost;    /* threadgroups count as long: work is shared */
    uint8_t shift;
    uint32_t width, workers;
    unsigned features;
    enum llvm_effort effort;
};

struct side {
    sk_status status;
    sk_error err;
    char *block[GEN_MAX_ARGS]; /* allocated: redzone, shift, data, redzone */
    sk_arg arg[GEN_MAX_ARGS];
};

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static size_t block_bytes(const struct gen_arg *a)
{
    return a->size + 2 * REDZONE + 16;
}

static void make_memory(struct mem *mem, const struct gen_program *p, unsigned shift, struct side *out)
{
    for (unsigned k = 0; k < p->n_args; k++) {
        const struct gen_arg *const a = &p->arg[k];
        out->arg[k].size = a->size;
        if (!a->data)
            continue;
        out->block[k] = mem_alloc(mem, block_bytes(a));
        memset(out->block[k], 0xa5, block_bytes(a));
        out->arg[k].data = out->block[k] + REDZONE + shift;
        memcpy(out->arg[k].data, a->data, a->size);
    }
}

static bool same_memory(const struct gen_program *p, const struct side *want, const struct side *have, char *what,
                        size_t cap)
{
    for (unsigned k = 0; k < p->n_args; k++) {
        const struct gen_arg *const a = &p->arg[k];
        if (!a->data)
            continue;
        const size_t size = (size_t)ir_type_at(p->m, a->elem)->size;
        const char *const x = want->arg[k].data, *const y = have->arg[k].data;
        for (size_t at = 0; at < a->size; at += size) {
            const int64_t d = diff_value(p->m, a->elem, x + at, y + at);
            if (d < 0)
                continue;
            uint64_t bits[2] = {0};
            const size_t n = size - (size_t)d < 8 ? size - (size_t)d : 8;
            memcpy(&bits[0], y + at + d, n);
            memcpy(&bits[1], x + at + d, n);
            (void)snprintf(what, cap, "argument %u, element %zu, byte %lld: %#llx, in the interpreter %#llx", k,
                           at / size, (long long)d, (unsigned long long)bits[0], (unsigned long long)bits[1]);
            return false;
        }
        const size_t before = (size_t)(y - have->block[k]), behind = block_bytes(a) - before - a->size;
        for (size_t i = 0; i < before + behind; i++) {
            const size_t at = i < before ? i : a->size + i;
            if ((unsigned char)have->block[k][at] != 0xa5) {
                (void)snprintf(what, cap, "argument %u: written outside, byte %lld of %zu", k,
                               (long long)at - (long long)before, a->size);
                return false;
            }
        }
    }
    return true;
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static void interpret(struct mem *mem, const struct gen_program *p, const struct ir_module *m, uint32_t kernel,
                      struct side *out)
{
    struct interp_arg arg[GEN_MAX_ARGS];
    struct interp_program *program = NULL;
    for (unsigned k = 0; k < p->n_args; k++)
        arg[k] = (struct interp_arg){out->arg[k].data, out->arg[k].size};
    out->status = interp_compile(mem, m, kernel, &program, &out->err);
    if (out->status != SK_OK)
        return;
    const struct interp_launch launch = {
        .threads = {p->threads[0], p->threads[1], p->threads[2]},
        .threadgroup = {p->threadgroup[0], p->threadgroup[1], p->threadgroup[2]},
        .args = arg,
        .stop = &diff_stop,
    };
    out->status = interp_run(program, &launch, mem, &out->err);
    interp_free(program);
}

/* SK_ERR_UNSUPPORTED: left to the interpreter, or too large. */
static sk_status variant(struct mem *mem, const struct ir_module *m, uint32_t kernel, const struct way *w,
                         struct cpu_variant *v, sk_error *err)
{
    struct buf text;
    void *at[2] = {NULL, NULL};
    char *object;
    size_t n;
    buf_init(&text, mem);
    TRY(cpu_lower(mem, m, kernel, &v->opt, &text, &v->lowered, err));
    if (v->lowered.interpret || text.n > MOST_TEXT)
        return SK_ERR_UNSUPPORTED;
    const enum llvm_effort effort = text.n > QUICK_TEXT ? LLVM_QUICK : w->effort;
    TRY(llvm_compile(diff_llvm, text.at, text.n, effort, LLVM_OBJECT, mem, &object, &n, err));
    TRY(object_load(object, n, (const char *const[]){"spork_kernel", "spork_bundle"}, 2, at, &v->code, err));
    v->kernel = (cpu_kernel *)at[0];
    v->bundle = (fiber_bundle *)at[1];
    v->stack = STACK_BYTES;
    v->cost = w->cost ? 100000 : 0;
    return SK_OK;
}

/* Full threadgroups by code for their size or for any; cut ones by code for any, or under a mask where they do not tell. */
static sk_status own_way(struct mem *mem, const struct gen_program *p, const struct ir_module *m, uint32_t kernel,
                         const struct way *w, struct side *out)
{
    const uint32_t *const n = p->threads, *const g = p->threadgroup;
    struct cpu_variant v[2] = {0};
    uint8_t is_value[GEN_MAX_ARGS] = {0};
    bool whole = true, cut = false;
    unsigned n_args = 0;
    for (unsigned k = 0; k < 3; k++) {
        whole = whole && n[k] >= g[k];
        cut = cut || n[k] % g[k];
    }
    const struct func *const f = &m->funcs.at[kernel];
    for (uint32_t k = 0; k < f->n_params; k++) {
        const uint8_t kind = m->params.at[f->first_param + k].kind;
        if (kind != PARAM_ATTRIBUTE)
            is_value[n_args++] = kind == PARAM_VALUE;
    }
    const bool line = g[1] == 1 && g[2] == 1 && w->line;
    for (unsigned k = 0; k < 2; k++) {
        struct cpu_options *const o = &v[k].opt;
        o->width = w->width;
        o->features = w->features;
        o->edge = k == 1 && p->masks_edges && w->known;
        if (w->known && (k == 0 || o->edge))
            memcpy(o->dims, g, sizeof o->dims);
        else
            o->dims[1] = o->dims[2] = line;
    }
    out->status = whole ? variant(mem, m, kernel, w, &v[0], &out->err) : SK_OK;
    if (out->status == SK_OK && cut)
        out->status = variant(mem, m, kernel, w, &v[1], &out->err);
    if (out->status == SK_OK) {
        const struct cpu_grid grid = {
            .kernel = strtab_str(&m->strings, f->name),
            .whole = whole ? &v[0] : NULL,
            .edge = cut ? &v[1] : NULL,
            .threads = {n[0], n[1], n[2]},
            .group = {g[0], g[1], g[2]},
            .args = out->arg,
            .is_value = is_value,
            .n_args = n_args,
            .stop = &diff_stop,
            .workers = w->workers,
        };
        out->status = cpu_run(&grid, mem, &out->err);
    }
    for (unsigned k = 0; k < 2; k++) {
        if (v[k].code.memory)
            object_unload(&v[k].code);
        cpu_lowered_free(mem, &v[k].lowered);
    }
    return out->status;
}

static sk_status program_way(struct mem *mem, const struct gen_program *p, const struct ir_module *m, uint32_t kernel,
                             const struct way *w, struct side *out)
{
    struct cpu_program *program = NULL;
    const char *because = NULL;
    const sk_launch launch = {
        .grid = {p->threads[0], p->threads[1], p->threads[2]},
        .threadgroup = {p->threadgroup[0], p->threadgroup[1], p->threadgroup[2]},
        .threads = true,
        .n_args = p->n_args,
        .args = out->arg,
        .stop = &diff_stop,
        .workers = w->workers,
    };
    out->status = cpu_program_new(mem, m, kernel, &program);
    if (out->status == SK_OK)
        out->status = cpu_program_launch(program, &launch, mem, &because, &out->err);
    cpu_program_free(program);
    return because ? SK_ERR_UNSUPPORTED : out->status;
}

/* ---- one program ------------------------------------------------------------------------------------------------ */

static struct way roll_way(uint64_t *state)
{
    static const uint8_t width[] = {0, 0, 1, 2, 4, 8, 16, 16, 32, 32};
    uint64_t r = gen_random(state);
    struct way w = {.width = width[r % sizeof width]};
    w.program = (r >> 8) % 6 == 0;
    w.known = (r >> 16) % 100 < 65;
    w.line = r >> 24 & 1;
    w.workers = 1 + (r >> 25 & 1);
    w.cost = r >> 26 & 1;
    w.effort = r >> 27 & 1 ? LLVM_FULL : LLVM_QUICK;
    w.shift = r >> 28 & 1 ? (uint8_t)(r >> 29 & 15) : 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        w.features = (r >> 33) % 4 ? CPU_AVX512 : 0;
#endif
    return w;
}

static void be_exact(struct ir_module *m)
{
    for (uint32_t id = 1; id < m->nodes.n; id++) {
        struct node *const x = ir_at(m, id);
        if (math_info[x->op].fast)
            x->flags &= (uint16_t)~NODE_FAST;
    }
}

static void say_way(const struct gen_program *p, const struct way *w, const char *letters, char *out, size_t cap)
{
    const uint32_t *const g = p->threadgroup, *const n = p->threads;
    char how[100];
    (void)snprintf(how, sizeof how, "%s, %u lanes, %s%s",
                   w->known  ? "size known"
                   : w->line ? "line"
                             : "any size",
                   w->width, w->effort == LLVM_FULL ? "full" : "quick", w->features ? ", avx512" : "");
    (void)snprintf(out, cap, "%s; cpu: %s, %u workers; grid %ux%ux%u, threadgroup %ux%ux%u", letters,
                   w->program ? "program" : how, w->workers, n[0], n[1], n[2], g[0], g[1], g[2]);
}

static bool compare(const struct gen_program *p, const struct side *want, const struct side *have, char *what,
                    size_t cap)
{
    if (want->status != have->status || strcmp(want->err.message, have->err.message) != 0 ||
        want->err.line != have->err.line || want->err.column != have->err.column) {
        (void)snprintf(what, cap, "%s %u:%u '%s', in the interpreter %s %u:%u '%s'", sk_status_name(have->status),
                       have->err.line, have->err.column, have->err.message, sk_status_name(want->status),
                       want->err.line, want->err.column, want->err.message);
        return false;
    }
    return same_memory(p, want, have, what, cap);
}

static bool run_way(struct mem *mem, const struct gen_program *p, const struct ir_module *m, uint32_t kernel,
                    const struct way *w, char *what, size_t cap)
{
    struct side want = {0}, have = {0};
    make_memory(mem, p, w->shift, &want);
    make_memory(mem, p, w->shift, &have);
    interpret(mem, p, m, kernel, &want);
    if (diff_stop)
        return true; /* a changed program that does not end */
    const sk_status st = w->program ? program_way(mem, p, m, kernel, w, &have) : own_way(mem, p, m, kernel, w, &have);
    if (st == SK_ERR_UNSUPPORTED)
        return true;
    if (st == SK_ERR_INVALID) {
        (void)snprintf(what, cap, "does not compile: %s", have.err.message);
        return false;
    }
    return compare(p, &want, &have, what, cap);
}

bool diff_cpu(struct mem *mem, const struct gen_program *p, const struct ir_module *inlined, uint64_t seed,
              unsigned ways, struct diff_failure *f)
{
    uint64_t state = seed ^ 0x2545f4914f6cdd1d;
    bool good = true;
    for (unsigned k = 0; k < ways && good; k++) {
        const uint64_t r = gen_random(&state);
        const struct way w = roll_way(&state);
        char letters[16];
        sk_error err = {0};
        if (diff_one_way >= 0 && k != (unsigned)diff_one_way)
            continue;
        f->way = (int)k;
        /* Locals must be values, and loads that nothing uses gone: they may fault or not. Other passes may be left out. */
        if (r % 2)
            (void)snprintf(letters, sizeof letters, "%sV%sD", p->contracts ? "C" : "",
                           (const char *[]){"", "H", "S", "HE", "ES", "SHE", "E", "HSV"}[r >> 8 & 7]);
        else
            (void)snprintf(letters, sizeof letters, "%sVSHED", p->contracts ? "C" : "");
        struct mem *const temp = mem_temp(mem);
        struct ir_module *const m = ir_module_clone(temp, inlined);
        if (pass_run(m, letters, &err) == SK_OK) {
            be_exact(m);
            f->what[0] = 0;
            good = run_way(temp, p, m, m->funcs.n - 1, &w, f->what, sizeof f->what);
            if (!good)
                say_way(p, &w, letters, f->letters, sizeof f->letters);
        }
        mem_temp_end(temp);
    }
    return good;
}
