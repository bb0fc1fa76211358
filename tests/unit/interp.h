/* interp.h - whole kernels on the interpreter: each runs as written, with the loops for the least machine, and again
 * after the passes, with those for this one; both must agree. */
#ifndef UNIT_INTERP_H
#define UNIT_INTERP_H

#include "check.h"
#include "interp/program.h"
#include "pass/pass.h"

#include <stdlib.h>

static struct mem mem;
static sk_error error;

#define ARGS_MAX 6
struct call {
    uint32_t threads[3], threadgroup[3];
    struct interp_arg args[ARGS_MAX];
    const volatile int *stop;
    uint64_t loop_limit;
};

static sk_status run_module(struct ir_module *m, const struct call *c, const struct lane_loops *loops)
{
    struct interp_program *p;
    TRY(interp_compile_for(&mem, m, m->funcs.n - 1, loops, &p, &error));
    const struct interp_launch l = {.threads = {c->threads[0], c->threads[1], c->threads[2]},
                                    .threadgroup = {c->threadgroup[0], c->threadgroup[1], c->threadgroup[2]},
                                    .args = c->args,
                                    .stop = c->stop,
                                    .loop_limit = c->loop_limit};
    const sk_status status = interp_run(p, &l, &mem, &error);
    interp_free(p);
    return status;
}

/* The last function of the text runs. Its status, with `error` filled; buffers hold the result. */
static sk_status run(const char *text, const struct call *c)
{
    struct ir_module *m = NULL;
    char *before[ARGS_MAX] = {0}, *plain[ARGS_MAX] = {0};
    sk_error_clear(&error);
    if (ir_parse(&mem, text, strlen(text), "test.ir", &m, &error) != SK_OK) {
        CHECK_FAIL_("%s: %s, line %u", error.name, error.message, error.line);
        return error.status;
    }
    for (unsigned k = 0; k < ARGS_MAX; k++) {
        if (!c->args[k].data)
            continue;
        before[k] = malloc(c->args[k].size + 1);
        plain[k] = malloc(c->args[k].size + 1);
        memcpy(before[k], c->args[k].data, c->args[k].size);
    }
    const sk_status first = run_module(m, c, &lanes_least);
    const sk_error first_error = error;
    for (unsigned k = 0; k < ARGS_MAX; k++) {
        if (!c->args[k].data)
            continue;
        memcpy(plain[k], c->args[k].data, c->args[k].size);
        memcpy(c->args[k].data, before[k], c->args[k].size);
    }
    sk_error_clear(&error);
    CHECK_EQ(pass_run(m, NULL, &error), SK_OK);
    const sk_status second = run_module(m, c, lanes_best());
    CHECK_EQ(first, second);
    if (first == second)
        CHECK_EQ_STR(first_error.message, error.message);
    for (unsigned k = 0; k < ARGS_MAX; k++) {
        if (c->args[k].data)
            CHECK(memcmp(plain[k], c->args[k].data, c->args[k].size) == 0);
        free(before[k]);
        free(plain[k]);
    }
    ir_module_free(m);
    return first;
}

static void ok(const char *text, const struct call *c)
{
    const sk_status status = run(text, c);
    if (status != SK_OK)
        CHECK_FAIL_("%s: %s (line %u)", error.name, error.message, error.line);
}

#define CALL(n, g, ...)                                                                                                \
    &(struct call)                                                                                                     \
    {                                                                                                                  \
        .threads = {n, 1, 1}, .threadgroup = {g, 1, 1}, .args = { __VA_ARGS__ }                                        \
    }
#define BUF(a)                                                                                                         \
    {                                                                                                                  \
        (a), sizeof(a)                                                                                                 \
    }

#endif
