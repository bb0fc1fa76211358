/* diff_check.c - the checks of one program.
 *
 * The reference is the program as generated, calls inlined, no pass run, with the interpreter's loops for the least machine. Contraction changes results on purpose: programs that
 * allow it are compared from the point on where pass C ran.
 */
#include "fuzz/diff.h"

#include <stdio.h>

#include "interp/program.h"
#include "pass/pass.h"

volatile int diff_stop;
unsigned diff_ways = 1;
bool diff_only_cpu;
int diff_one_way = -1;

struct result {
    sk_status status;
    sk_error err;
    char *data[GEN_MAX_ARGS];
};

struct check {
    struct mem *mem; /* working memory */
    const struct gen_program *p;
    struct diff_failure *f;
};

static bool failed(struct check *c, const char *letters, const char *fmt, ...) SK_PRINTF(3, 4);
static bool failed(struct check *c, const char *letters, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(c->f->what, sizeof c->f->what, fmt, args);
    va_end(args);
    (void)snprintf(c->f->letters, sizeof c->f->letters, "%s", letters);
    return false;
}

/* ---- running --------------------------------------------------------------------------------------------------- */

/* Runs the only kernel of `m` on a copy of the arguments. */
static void run(struct check *c, const struct ir_module *m, uint32_t kernel, const struct lane_loops *loops,
                struct result *out)
{
    const struct gen_program *const p = c->p;
    struct interp_arg arg[GEN_MAX_ARGS];
    struct interp_program *program = NULL;
    for (unsigned k = 0; k < p->n_args; k++) {
        const struct gen_arg *const a = &p->arg[k];
        if (a->output && !out->data[k])
            out->data[k] = mem_alloc(c->mem, a->size);
        if (a->output)
            memcpy(out->data[k], a->data, a->size);
        arg[k] = (struct interp_arg){a->output ? out->data[k] : a->data, a->size};
    }
    memset(&out->err, 0, sizeof out->err);
    out->status = interp_compile_for(c->mem, m, kernel, loops, &program, &out->err);
    if (out->status != SK_OK)
        return;
    const struct interp_launch launch = {
        .threads = {p->threads[0], p->threads[1], p->threads[2]},
        .threadgroup = {p->threadgroup[0], p->threadgroup[1], p->threadgroup[2]},
        .args = arg,
        .stop = &diff_stop,
    };
    out->status = interp_run(program, &launch, c->mem, &out->err);
    interp_free(program);
}

static bool is_nan(enum scalar s, const char *at)
{
    uint32_t bits = 0;
    memcpy(&bits, at, scalar_info[s].bytes);
    const uint32_t infinite = s == S_F32 ? 0x7f800000 : s == S_F16 ? 0x7c00 : 0x7f80;
    return (bits & ~((uint32_t)1 << (scalar_info[s].bits - 1))) > infinite;
}

int64_t diff_value(const struct ir_module *m, ir_type t, const char *a, const char *b)
{
    const struct type *const x = ir_type_at(m, t);
    if (ir_type_width(t) == 1) {
        const enum scalar s = ir_type_scalar(t);
        if (memcmp(a, b, scalar_info[s].bytes) == 0)
            return -1;
        return scalar_info[s].class_ == CLASS_F && is_nan(s, a) && is_nan(s, b) ? -1 : 0;
    }
    for (uint64_t k = 0; k < ir_type_parts(m, t); k++) {
        const ir_type part = ir_type_part(m, t, k);
        const uint64_t at = x->kind == TYPE_KIND_STRUCT   ? m->fields.at[x->first_field + k].offset
                            : x->kind == TYPE_KIND_VECTOR ? k * scalar_info[x->scalar].bytes
                                                          : k * ir_type_at(m, part)->size;
        const int64_t d = diff_value(m, part, a + at, b + at);
        if (d >= 0)
            return d + (int64_t)at;
    }
    return -1;
}

static bool compare(struct check *c, const char *letters, const struct result *want, const struct result *have)
{
    const struct gen_program *const p = c->p;
    if (have->status != SK_OK && have->status != SK_ERR_FAULT)
        return failed(c, letters, "does not run: %s", have->err.message);
    /* A read out of bounds may go with the use of its value; nothing else may change. */
    if (have->status != want->status && !(want->status == SK_ERR_FAULT && p->read_faults))
        return failed(c, letters, "%s, without the passes %s: %s", have->status ? "faults" : "does not fault",
                      want->status ? "it does" : "it does not", have->status ? have->err.message : want->err.message);
    for (unsigned k = 0; k < p->n_args; k++) {
        const struct gen_arg *const a = &p->arg[k];
        const size_t size = (size_t)ir_type_at(p->m, a->elem)->size;
        for (size_t at = 0; a->output && at < a->size; at += size) {
            const int64_t d = diff_value(p->m, a->elem, want->data[k] + at, have->data[k] + at);
            if (d >= 0) {
                uint64_t x = 0, y = 0;
                const size_t n = size - (size_t)d < 8 ? size - (size_t)d : 8;
                memcpy(&x, want->data[k] + at + d, n);
                memcpy(&y, have->data[k] + at + d, n);
                return failed(c, letters, "argument %u, element %zu, byte %lld: %#llx, without the passes %#llx", k,
                              at / size, (long long)d, (unsigned long long)y, (unsigned long long)x);
            }
        }
    }
    return true;
}

/* ---- text ------------------------------------------------------------------------------------------------------ */

static bool round_trip(struct check *c, const struct ir_module *m, const char *letters, struct ir_module **parsed)
{
    struct buf first, second;
    sk_error err = {0};
    buf_init(&first, c->mem);
    buf_init(&second, c->mem);
    ir_print(m, &first, IR_PRINT_PLACES);
    if (ir_parse(c->mem, buf_text(&first), first.n, "fuzzed.ir", parsed, &err) != SK_OK)
        return failed(c, letters, "printed text does not parse: %u:%u: %s", err.line, err.column, err.message);
    ir_print(*parsed, &second, IR_PRINT_PLACES);
    if (first.n != second.n || memcmp(first.at, second.at, first.n) != 0) {
        size_t k = 0;
        uint32_t line = 1;
        for (; k < first.n && k < second.n && first.at[k] == second.at[k]; k++)
            line += first.at[k] == '\n';
        return failed(c, letters, "printed, parsed and printed again, line %u differs", line);
    }
    return true;
}

/* ---- orders of passes ------------------------------------------------------------------------------------------ */

static void random_letters(uint64_t *state, char *out, bool contract)
{
    const unsigned n = 1 + (unsigned)(gen_random(state) % 8);
    unsigned k = 0;
    while (k < n) {
        const char letter = pass_info[gen_random(state) % pass_count].letter;
        if (letter != 'C' || contract)
            out[k++] = letter;
    }
    out[k] = 0;
}

/* Runs passes on a copy of `m` and compares. `prefix` is what was run on `m` before, for messages. */
static bool variant(struct check *c, const struct ir_module *m, const char *prefix, const char *letters, bool text,
                    const struct result *want)
{
    char all[96];
    (void)snprintf(all, sizeof all, "%s%s", prefix, letters);
    struct mem *const outer = c->mem;
    struct mem *const temp = c->mem = mem_temp(outer);
    struct ir_module *copy = ir_module_clone(temp, m);
    struct result have = {0};
    sk_error err = {0};
    bool good = true;
    if (pass_run(copy, letters, &err) != SK_OK || ir_verify(copy, &err) != SK_OK)
        good = failed(c, all, "the verifier refuses what the passes made: %s", err.message);
    struct ir_module *parsed = NULL;
    if (good && text) {
        good = round_trip(c, copy, all, &parsed);
        copy = parsed;
    }
    if (good) {
        run(c, copy, 1, lanes_best(), &have);
        good = compare(c, all, want, &have);
    }
    c->mem = outer;
    mem_temp_end(temp);
    return good;
}

static bool check_module(struct check *c, const struct ir_module *m, uint64_t seed)
{
    sk_error err = {0};
    struct ir_module *parsed = NULL;
    struct result raw = {0};
    char letters[16];
    uint64_t state = seed ^ 0x5851f42d4c957f2d;
    const bool contracts = c->p->contracts;
    const char *const prefix = contracts ? "C" : "";

    if (ir_verify(m, &err) != SK_OK)
        return failed(c, "", "the verifier refuses the program: %s", err.message);
    if (!round_trip(c, m, "", &parsed))
        return false;
    struct ir_module *const base = ir_module_clone(c->mem, m);
    if (pass_inline(base, c->p->kernel, 1u << 20, &err) != SK_OK || pass_run(base, prefix, &err) != SK_OK ||
        ir_verify(base, &err) != SK_OK)
        return failed(c, prefix, "the verifier refuses the program with its calls inlined: %s", err.message);
    if (diff_only_cpu || diff_one_way >= 0)
        return diff_cpu(c->mem, c->p, base, seed, diff_ways, c->f);
    run(c, base, 1, &lanes_least, &raw);
    if (raw.status != SK_OK && raw.status != SK_ERR_FAULT)
        return failed(c, prefix, "does not run: %s", raw.err.message);
    if (raw.status == SK_ERR_FAULT && !c->p->read_faults && !c->p->write_faults)
        return failed(c, prefix, "faults: %s", raw.err.message);
    /* Compiling takes ten times as long as all that follows: not for every program. */
    if (diff_llvm && seed % 3 == 0 && !diff_cpu(c->mem, c->p, base, seed, diff_ways, c->f))
        return false;

    for (unsigned k = 0; k < pass_count; k++) {
        letters[0] = pass_info[k].letter;
        letters[1] = 0;
        if ((letters[0] != 'C' || !contracts) && !variant(c, base, prefix, letters, false, &raw))
            return false;
    }
    if (!variant(c, base, prefix, contracts ? "VSHED" : "VSHECD", true, &raw))
        return false;
    for (unsigned k = 0; k < 4; k++) {
        random_letters(&state, letters, !contracts);
        if (!variant(c, base, prefix, letters, k == 0, &raw))
            return false;
    }
    if (contracts) { /* behind the pipeline as it is, too */
        struct result piped = {0};
        if (pass_run(base, "VSHECD", &err) != SK_OK)
            return failed(c, "CVSHECD", "the verifier refuses what the passes made: %s", err.message);
        run(c, base, 1, &lanes_least, &piped);
        random_letters(&state, letters, false);
        return variant(c, base, "CVSHECD", letters, false, &piped);
    }
    return true;
}

bool diff_check(struct mem *mem, const struct gen_program *p, const struct ir_module *m, uint64_t seed,
                struct diff_failure *f)
{
    struct mem *const temp = mem_temp(mem);
    struct check c = {temp, p, f};
    f->what[0] = f->letters[0] = 0;
    f->way = -1;
    const bool good = check_module(&c, m, seed);
    mem_temp_end(temp);
    return good;
}
