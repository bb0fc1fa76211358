/* fault.c - see fault.h. */
#include "ir/fault.h"

#include <stdio.h>

static bool is_far(int64_t x)
{
    return x >= FAULT_FAR || x <= -FAULT_FAR;
}

/* "index 12, its size is 10" where the offset falls on an element, else in bytes. An access that begins in bounds says
 * so, since its index alone would look right. */
static void describe(const struct fault_text *f, char *to, size_t n)
{
    const int64_t elem = f->elem && f->elem <= INT64_MAX ? (int64_t)f->elem : 1, offset = (int64_t)f->offset;
    const bool whole = elem > 1 ? offset % elem == 0 : f->elem == 1;
    const int64_t at = whole ? offset / elem : offset;
    const uint64_t size = whole ? f->size / (uint64_t)elem : f->size;
    const bool inside = at >= 0 && (uint64_t)at < size;
    if (is_far(offset))
        (void)snprintf(to, n, "an index past 2^61 bytes, its size is %llu bytes", (unsigned long long)f->size);
    else
        (void)snprintf(to, n, "%s%s %lld%s, its size is %llu%s", inside ? "from " : "", whole ? "index" : "byte",
                       (long long)at, inside ? " past the end" : "", (unsigned long long)size, whole ? "" : " bytes");
}

sk_status fault_text(const struct fault_text *f, sk_error *err)
{
    const struct err_place place = f->place;
    char what[96];
    switch (f->kind) {
    case FAULT_NONE: return SK_OK;
    case FAULT_READ:
    case FAULT_WRITE:
        if (!f->region)
            return ERR_AT(err, place, NULL_ACCESS, f->kernel, f->at[0], f->at[1], f->at[2]);
        describe(f, what, sizeof what);
        if (f->kind == FAULT_READ)
            return ERR_AT(err, place, READ_OUT_OF_BOUNDS, f->kernel, f->region, what, f->at[0], f->at[1], f->at[2]);
        return ERR_AT(err, place, WRITE_OUT_OF_BOUNDS, f->kernel, f->region, what, f->at[0], f->at[1], f->at[2]);
    case FAULT_BARRIER:
        return ERR_AT(err, place, BARRIER_DEADLOCK, f->kernel, f->at[0], f->at[1], f->at[2], place.line, f->other_at[0],
                      f->other_at[1], f->other_at[2], f->other_place.file ? f->other_place.file : "",
                      f->other_place.line);
    case FAULT_NO_PROGRESS: return ERR_AT(err, place, NO_PROGRESS, f->kernel, f->at[0], f->at[1], f->at[2]);
    case FAULT_ASSERT: return ERR_AT(err, place, ASSERTION_FAILED, f->kernel, f->message, f->at[0], f->at[1], f->at[2]);
    }
    return SK_OK;
}
