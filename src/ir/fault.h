/* fault.h - what a kernel did wrong, and the sentence that says so: the same on every executor. */
#ifndef SK_IR_FAULT_H
#define SK_IR_FAULT_H

#include "base/base.h"

/* Iterations without progress of a loop that waits for memory. */
#define LOOP_LIMIT ((uint64_t)1 << 20)

/* Offsets beyond +-2^61 are all one: out of bounds, whatever the memory. */
#define FAULT_FAR ((int64_t)1 << 61)

enum fault_kind { FAULT_NONE, FAULT_READ, FAULT_WRITE, FAULT_BARRIER, FAULT_NO_PROGRESS, FAULT_ASSERT };

struct fault_text {
    enum fault_kind kind;
    const char *kernel;
    struct err_place place;
    uint32_t at[3]; /* the thread in the grid */
    /* READ, WRITE */
    const char *region; /* null: a null pointer was followed */
    uint64_t elem;      /* bytes of an element, in which the message counts */
    uint64_t offset, size;
    /* BARRIER */
    struct err_place other_place;
    uint32_t other_at[3];
    /* ASSERT */
    const char *message;
};

/* Fills err; SK_OK for FAULT_NONE. */
sk_status fault_text(const struct fault_text *f, sk_error *err);

#endif
