/* there_and_back.h - for tests of the text form: print, parse, print again. */
#ifndef THERE_AND_BACK_H
#define THERE_AND_BACK_H

#include "check.h"
#include "ir/ir.h"

static inline uint64_t next_random(uint64_t *seed)
{
    *seed += 0x9e3779b97f4a7c15u;
    return hash_u64(1, *seed);
}

static inline bool same_text(const struct buf *a, const struct buf *b)
{
    if (a->n == b->n && (a->n == 0 || memcmp(a->at, b->at, a->n) == 0))
        return true;
    size_t k = 0, line = 0;
    for (; k < a->n && k < b->n && a->at[k] == b->at[k]; k++)
        if (a->at[k] == '\n')
            line = k + 1;
    printf("texts differ:\n%.*s\n%.*s\n", (int)strcspn(a->at + line, "\n"), a->at + line,
           (int)strcspn(b->at + line, "\n"), b->at + line);
    return false;
}

/* Whatever verify accepts prints, and reads back as the same text. */
static inline void check_round_trip(struct mem *mem, const struct ir_module *m, unsigned flags)
{
    sk_error err = {0};
    struct buf first, second;
    buf_init(&first, mem);
    buf_init(&second, mem);
    ir_print(m, &first, flags);
    struct ir_module *back = NULL;
    CHECK_EQ(ir_parse(mem, buf_text(&first), first.n, "first.ir", &back, &err), SK_OK);
    CHECK_EQ_STR(err.message, "");
    if (back) {
        ir_print(back, &second, flags);
        CHECK(same_text(&first, &second));
    }
    ir_module_free(back);
    buf_free(&second);
    buf_free(&first);
}

static inline sk_status run(struct mem *m, sk_status (*test)(struct mem *))
{
    sk_error err = {0};
    volatile sk_status status = SK_OK;
    MEM_GUARD(m, &err, status, test(m));
    return status;
}

/* A test owns a fresh memory and leaves nothing in it. */
static inline void run_all(sk_status (*const *tests)(struct mem *), size_t n)
{
    for (size_t k = 0; k < n; k++) {
        struct mem m;
        mem_init(&m, NULL);
        CHECK_EQ(run(&m, tests[k]), SK_OK);
        CHECK_EQ(m.live, 0);
    }
}

#endif
