/* exec.c - control flow under masks. program.h states the rules.
 *
 * A construct owns slots. Block and if: [0] lanes that wait at its end, if with else: [1] lanes for the else region.
 * Loop: [0] lanes that repeat, [1] lanes that have left. Switch: [0] lanes at the end, then one slot for each region.
 * A region ends in the head of the next region or in the construct's end; both add the lanes that fall out of it.
 */
#include "interp/program.h"

/* ---- block, if ---- */

const struct inst *exec_block(struct simd *s, const struct inst *i)
{
    s->slot[i->x] = 0;
    return i + 1;
}

/* y: has an else region. jump: the else region, or the end. */
const struct inst *exec_if(struct simd *s, const struct inst *i)
{
    const uint32_t holds = lanes_bits(s, i->a), no = s->mask & ~holds;
    s->slot[i->x + i->y] = no;
    if (i->y)
        s->slot[i->x] = 0;
    s->mask &= holds;
    return s->mask ? i + 1 : i + i->jump;
}

/* Between the regions. jump: the end. */
const struct inst *exec_else(struct simd *s, const struct inst *i)
{
    s->slot[i->x] |= s->mask;
    s->mask = s->slot[i->x + 1];
    return s->mask ? i + 1 : i + i->jump;
}

/* The end of a block, if or switch. */
const struct inst *exec_end(struct simd *s, const struct inst *i)
{
    s->mask |= s->slot[i->x];
    return s->mask ? i + 1 : i + i->skip;
}

/* ---- leaving ---- */

/* x: the slot of the construct where these lanes go on: its end, or the repetition of a loop. */
const struct inst *exec_br(struct simd *s, const struct inst *i)
{
    s->slot[i->x] |= s->mask;
    s->mask = 0;
    return i + 1;
}

const struct inst *exec_return(struct simd *s, const struct inst *i)
{
    s->gone |= s->mask;
    s->mask = 0;
    return s->gone == ALL_LANES ? NULL : i + 1;
}

const struct inst *exec_finish(struct simd *s, const struct inst *i)
{
    (void)i;
    s->gone = ALL_LANES;
    s->mask = 0;
    return NULL;
}

/* ---- loop ---- */

/* y: number of the loop's count + 1 if it waits for memory. */
const struct inst *exec_loop(struct simd *s, const struct inst *i)
{
    s->slot[i->x] = s->slot[i->x + 1] = 0;
    if (i->y)
        s->count[i->y - 1] = (struct wait_count){0};
    return i + 1;
}

/* No thread runs while this one does, so what these lanes wait for comes, if at all, from outside of the launch. */
static bool gives_up(struct simd *s, const struct inst *i, uint32_t repeat)
{
    struct wait_count *const w = &s->count[i->y - 1];
    const uint64_t changes = s->changes + (i->imm >> 32 ? s->thread_changes : 0);
    if (w->changes != changes) {
        w->changes = changes;
        w->iterations = 0;
    }
    if (++w->iterations <= s->run->loop_limit)
        return false;
    fault_lane(s, (unsigned)__builtin_ctz(repeat), FAULT_NO_PROGRESS, (uint32_t)i->imm, 0);
    s->gone |= repeat;
    return true;
}

/* The end of a loop's region. jump: the region's head. imm: site of the loop, upper half: it reads thread memory. */
const struct inst *exec_repeat(struct simd *s, const struct inst *i)
{
    const uint32_t leave = s->slot[i->x + 1] | s->mask;
    uint32_t repeat = s->slot[i->x];
    s->slot[i->x + 1] = leave;
    if (repeat && __atomic_load_n(s->run->stop, __ATOMIC_RELAXED)) {
        s->run->stopped = true;
        s->gone = ALL_LANES;
        s->mask = 0;
        return NULL;
    }
    if (repeat && i->y && gives_up(s, i, repeat))
        repeat = 0;
    s->slot[i->x] = 0;
    s->mask = repeat ? repeat : leave;
    return repeat ? i + i->jump : leave ? i + 1 : i + i->skip;
}

/* ---- switch ---- */

/* a: the operand as i64; x: slots; y: number of (value, region) pairs; imm: the first, upper half: the default region,
 * or the number of regions, which is in `skip`. */
const struct inst *exec_switch(struct simd *s, const struct inst *i)
{
    const int64_t *const value = REG(s, const int64_t, i->a), *const cases = s->run->p->cases + (uint32_t)i->imm;
    const uint32_t n_regions = (uint32_t)i->skip;
    uint32_t *const slot = s->slot + i->x, rest = s->mask;
    for (uint32_t k = 0; k <= n_regions; k++)
        slot[k] = 0;
    while (rest) {
        const int64_t v = value[__builtin_ctz(rest)];
        uint32_t same = 0, region = (uint32_t)(i->imm >> 32);
        EACH_LANE(rest, l)
        same |= (uint32_t)(value[l] == v) << l;
        for (uint32_t k = 0; k < i->y; k++) {
            if (cases[2 * k] == v) {
                region = (uint32_t)cases[2 * k + 1];
                break;
            }
        }
        slot[region == n_regions ? 0 : 1 + region] |= same;
        rest &= ~same;
    }
    s->mask = 0;
    return i + 1;
}

/* The head of a region. y: its slot; jump: the next region's head, or the end. */
const struct inst *exec_case(struct simd *s, const struct inst *i)
{
    s->slot[i->x] |= s->mask;
    s->mask = s->slot[i->y];
    return s->mask ? i + 1 : i + i->jump;
}

/* ---- assert ---- */

/* The thread goes on: what follows is as safe as ever, and other threads may wait for it. */
const struct inst *exec_assert(struct simd *s, const struct inst *i)
{
    EACH_LANE(s->mask & ~lanes_bits(s, i->a), l)
    fault_lane(s, l, FAULT_ASSERT, i->x, i->y);
    return i + 1;
}
