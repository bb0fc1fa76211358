/* fault.c - faults of a launch. The launch goes on; at its end the fault of the lowest thread is reported. */
#include "interp/program.h"

_Static_assert(FAR == FAULT_FAR, "far offsets are told by their value");

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

sk_status fault_report(const struct run *r, sk_error *err)
{
    const struct fault *const f = &r->fault;
    const struct site *const at = &r->p->site[f->site], *const other = &r->p->site[f->other_site];
    const struct region_info *const region = &r->p->region[f->region];
    struct fault_text t = {
        .kind = f->kind,
        .kernel = r->p->name,
        .region = region->kind == REGION_NULL ? NULL : region->name,
        .elem = region->elem,
        .offset = f->offset,
        .size = f->size,
    };
    if (f->kind != FAULT_NONE)
        t.place = (struct err_place){at->file, at->line, at->column};
    if (f->kind == FAULT_BARRIER)
        t.other_place = (struct err_place){other->file, other->line, other->column};
    if (f->kind == FAULT_ASSERT)
        t.message = r->p->text[f->text];
    memcpy(t.at, f->at, sizeof t.at);
    memcpy(t.other_at, f->other_at, sizeof t.other_at);
    return fault_text(&t, err);
}
