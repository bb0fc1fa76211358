/* registers.c - registers for leaves: life ranges and places.
 *
 * Instructions stand in the order of the text, so a register is live from the instruction that first writes it to the
 * last that mentions it; one from before a loop that is mentioned in the loop lives to the loop's end, because the
 * next iteration comes back to it. That holds for every lane whatever the masks are: a lane that waits needs nothing
 * that is made before it goes on. Constants, parameters and attributes are pinned: they are written before the code
 * runs.
 */
#include "interp/compile.h"

static uint32_t add(struct compile *c, unsigned bytes, bool pinned)
{
    if (c->vreg.n == 0)
        VEC_PUSH(c->mem, &c->vreg, (struct vreg){0});
    const uint32_t id = c->vreg.n;
    VEC_PUSH(c->mem, &c->vreg,
             ((struct vreg){.start = c->code.n, .end = c->code.n, .bytes = (uint8_t)bytes, .pinned = pinned}));
    return id;
}

uint32_t vreg_new(struct compile *c, unsigned bytes)
{
    return add(c, bytes, false);
}

uint32_t vreg_pinned(struct compile *c, unsigned bytes)
{
    return add(c, bytes, true);
}

uint32_t vreg_constant(struct compile *c, unsigned bytes, uint64_t bits)
{
    const unsigned size = bytes == 8 ? 3 : bytes == 4 ? 2 : bytes == 2 ? 1 : 0;
    if (bits == 0 && c->zero[size])
        return c->zero[size];
    for (uint32_t k = 0; k < c->constant.n && k < 16; k++) { /* regions of pointers above all */
        const struct constant *const old = &c->constant.at[c->constant.n - 1 - k];
        if (old->bits == bits && old->bytes == bytes)
            return old->reg;
    }
    const uint32_t id = vreg_pinned(c, bytes);
    VEC_PUSH(c->mem, &c->constant, ((struct constant){.reg = id, .bytes = bytes, .bits = bits}));
    if (bits == 0)
        c->zero[size] = id;
    return id;
}

void vreg_touch(struct compile *c, uint32_t v)
{
    struct vreg *const r = &c->vreg.at[v];
    if (v == 0 || r->pinned)
        return;
    r->end = c->code.n;
    for (uint32_t k = 0; k < c->loop.n; k++) { /* outermost first */
        struct open_loop *const loop = &c->loop.at[k];
        if (loop->start <= r->start)
            continue;
        if (r->loop != loop->serial) {
            r->loop = loop->serial;
            VEC_PUSH(c->mem, &loop->vregs, v);
        }
        return;
    }
}

void vreg_open_loop(struct compile *c)
{
    VEC_PUSH(c->mem, &c->loop, ((struct open_loop){.serial = ++c->loop_serial, .start = c->code.n}));
}

void vreg_close_loop(struct compile *c)
{
    struct open_loop *const loop = &c->loop.at[c->loop.n - 1];
    for (uint32_t k = 0; k < loop->vregs.n; k++) {
        struct vreg *const r = &c->vreg.at[loop->vregs.at[k]];
        if (r->end < c->code.n - 1)
            r->end = c->code.n - 1;
    }
    VEC_FREE(c->mem, &loop->vregs);
    c->loop.n--;
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

static unsigned class_of(unsigned bytes)
{
    return bytes == 8 ? 0 : bytes == 4 ? 1 : bytes == 2 ? 2 : 3;
}

static void replace(const struct compile *c, uint32_t *v)
{
    *v = *v ? c->vreg.at[*v].offset : 0;
}

/* Registers were made in the order of their starts. `ends` lists those that end at an instruction, through `order`. */
static void scan(struct compile *c, uint32_t *n_places)
{
    uint32_t *const ends = ARENA_NEW(&c->scratch, uint32_t, c->code.n + 1);
    uint32_t freed = 0;
    for (uint32_t v = 1; v < c->vreg.n; v++) {
        struct vreg *const r = &c->vreg.at[v];
        if (r->pinned) {
            r->offset = n_places[class_of(r->bytes)]++;
            continue;
        }
        for (; freed < r->start; freed++)
            for (uint32_t e = ends[freed]; e; e = c->vreg.at[e].order)
                VEC_PUSH(c->mem, &c->free[class_of(c->vreg.at[e].bytes)], c->vreg.at[e].offset);
        const unsigned k = class_of(r->bytes);
        r->offset = c->free[k].n ? c->free[k].at[--c->free[k].n] : n_places[k]++;
        r->order = ends[r->end];
        ends[r->end] = v;
    }
}

void vreg_place(struct compile *c)
{
    uint32_t n_places[4] = {0};
    uint64_t begin[4], end = 0;
    scan(c, n_places);
    for (unsigned k = 0; k < 4; k++) {
        begin[k] = end;
        end += (uint64_t)n_places[k] * (8u >> k) * LANES;
        end = (end + 63) & ~(uint64_t)63;
        c->p.class_end[k] = (uint32_t)(end > UINT32_MAX ? UINT32_MAX : end);
    }
    for (uint32_t v = 1; v < c->vreg.n; v++) {
        struct vreg *const r = &c->vreg.at[v];
        r->offset = (uint32_t)(begin[class_of(r->bytes)] + (uint64_t)r->offset * r->bytes * LANES);
    }
    for (uint32_t k = 0; k < c->code.n; k++) {
        replace(c, &c->code.at[k].d);
        replace(c, &c->code.at[k].a);
        replace(c, &c->code.at[k].b);
        replace(c, &c->code.at[k].c);
    }
    for (uint32_t k = 0; k < c->leaf.n; k++)
        replace(c, &c->leaf.at[k].reg);
    for (uint32_t k = 0; k < c->list.n; k += 2)
        replace(c, &c->list.at[k]);
    for (uint32_t k = 0; k < c->constant.n; k++)
        replace(c, &c->constant.at[k].reg);
    for (uint32_t k = 0; k < c->value.n; k++)
        replace(c, &c->value.at[k].reg);
    for (uint32_t k = 0; k < c->attribute.n; k++)
        replace(c, &c->attribute.at[k].reg);
}
