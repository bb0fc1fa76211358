/* fault.c - faults of a launch. The launch goes on; at its end the fault of the lowest thread is reported. */
#include "interp/program.h"

#include <stdio.h>

static void position(const struct run *r, uint32_t thread, uint32_t at[3])
{
    for (unsigned k = 0; k < 3; k++)
        at[k] = r->origin[k] + r->local[k][thread];
}

/* The record to fill, or null if an earlier or lower one stays. Threadgroups run in their order. */
static struct fault *record(struct simd *s, unsigned lane, enum fault_kind kind)
{
    struct run *const r = s->run;
    const uint32_t thread = s->index * LANES + lane;
    if (r->fault.kind != FAULT_NONE && (r->fault.group < r->group || r->fault.thread <= thread))
        return NULL;
    r->fault = (struct fault){.kind = kind, .group = r->group, .thread = thread};
    position(r, thread, r->fault.at);
    return &r->fault;
}

void fault_access(struct simd *s, unsigned lane, const struct access *q, uint32_t region, uint64_t offset,
                  uint64_t size)
{
    struct fault *const f = record(s, lane, q->write ? FAULT_WRITE : FAULT_READ);
    if (!f)
        return;
    f->site = q->site;
    f->region = region;
    f->offset = offset;
    f->size = size;
}

void fault_lane(struct simd *s, unsigned lane, enum fault_kind kind, uint32_t site, uint32_t text)
{
    struct fault *const f = record(s, lane, kind);
    if (!f)
        return;
    f->site = site;
    f->text = text;
}

void fault_barriers(struct simd *s, const struct simd *other)
{
    struct fault *const f = record(s, (unsigned)__builtin_ctz(s->mask), FAULT_BARRIER);
    if (!f)
        return;
    f->site = s->parked->x;
    f->other_site = other->parked->x;
    position(s->run, other->index * LANES + (uint32_t)__builtin_ctz(other->mask), f->other_at);
}

/* "index 12, its size is 10" where the offset falls on an element, else in bytes. An access that begins in bounds says
 * so, since its index alone would look right. */
static void describe(const struct region_info *r, const struct fault *f, char *to, size_t n)
{
    const int64_t elem = r->elem && r->elem <= INT64_MAX ? (int64_t)r->elem : 1, offset = (int64_t)f->offset;
    const bool whole = elem > 1 ? offset % elem == 0 : r->elem == 1;
    const int64_t at = whole ? offset / elem : offset;
    const uint64_t size = whole ? f->size / (uint64_t)elem : f->size;
    const bool inside = at >= 0 && (uint64_t)at < size;
    if (is_far(offset))
        (void)snprintf(to, n, "an index past 2^61 bytes, its size is %llu bytes", (unsigned long long)f->size);
    else
        (void)snprintf(to, n, "%s%s %lld%s, its size is %llu%s", inside ? "from " : "", whole ? "index" : "byte",
                       (long long)at, inside ? " past the end" : "", (unsigned long long)size, whole ? "" : " bytes");
}

sk_status fault_report(const struct run *r, sk_error *err)
{
    const struct fault *const f = &r->fault;
    const struct site *const at = &r->p->site[f->site];
    const struct err_place place = {at->file, at->line, at->column};
    const struct region_info *const region = &r->p->region[f->region];
    const char *const kernel = r->p->name;
    char what[96];
    switch (f->kind) {
    case FAULT_NONE: return SK_OK;
    case FAULT_READ:
    case FAULT_WRITE:
        if (region->kind == REGION_NULL)
            return ERR_AT(err, place, NULL_ACCESS, kernel, f->at[0], f->at[1], f->at[2]);
        describe(region, f, what, sizeof what);
        if (f->kind == FAULT_READ)
            return ERR_AT(err, place, READ_OUT_OF_BOUNDS, kernel, region->name, what, f->at[0], f->at[1], f->at[2]);
        return ERR_AT(err, place, WRITE_OUT_OF_BOUNDS, kernel, region->name, what, f->at[0], f->at[1], f->at[2]);
    case FAULT_BARRIER: {
        const struct site *const other = &r->p->site[f->other_site];
        return ERR_AT(err, place, BARRIER_DEADLOCK, kernel, f->at[0], f->at[1], f->at[2], at->line, f->other_at[0],
                      f->other_at[1], f->other_at[2], other->file ? other->file : "", other->line);
    }
    case FAULT_NO_PROGRESS: return ERR_AT(err, place, NO_PROGRESS, kernel, f->at[0], f->at[1], f->at[2]);
    case FAULT_ASSERT:
        return ERR_AT(err, place, ASSERTION_FAILED, kernel, r->p->text[f->text], f->at[0], f->at[1], f->at[2]);
    }
    return SK_OK;
}
