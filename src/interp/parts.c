/* parts.c - operations that go lane by lane: those without a loop in lanes.c, and parts of values found at run time.
 * Entries of lists are (register, bytes) pairs.
 */
#include "interp/program.h"

const struct inst *lanes_eval(struct simd *s, const struct inst *i)
{
    const enum op op = (enum op)(i->imm & 0xffff);
    const enum scalar from = (enum scalar)(i->imm >> 16 & 0xff), to = (enum scalar)(i->imm >> 24 & 0xff);
    const unsigned flags = (unsigned)(i->imm >> 32), bytes = scalar_info[from].bytes;
    const unsigned n = (unsigned)op_info[op].n;
    EACH_LANE(s->mask, l)
    {
        const uint64_t a = lane_get(s, i->a, bytes, l);
        const uint64_t b = n > 1 ? lane_get(s, i->b, bytes, l) : 0;
        const uint64_t c = n > 2 ? lane_get(s, i->c, bytes, l) : 0;
        lane_set(s, i->d, scalar_info[to].bytes, l, ir_scalar_eval(op, from, to, flags, a, b, c));
    }
    return i + 1;
}

/* x: the list of y sources, then (imm of them) targets; the bytes of the sources in order are those of the targets. */
const struct inst *lanes_bitcast(struct simd *s, const struct inst *i)
{
    const uint32_t *const from = s->run->p->list + i->x, n = i->y, *const to = from + 2 * n, m = (uint32_t)i->imm;
    for (unsigned l = 0; l < LANES; l++) {
        char bytes[64];
        size_t at = 0;
        for (uint32_t k = 0; k < n; at += from[2 * k + 1], k++)
            memcpy(bytes + at, s->regs + from[2 * k] + (size_t)from[2 * k + 1] * l, from[2 * k + 1]);
        at = 0;
        for (uint32_t k = 0; k < m; at += to[2 * k + 1], k++)
            memcpy(s->regs + to[2 * k] + (size_t)to[2 * k + 1] * l, bytes + at, to[2 * k + 1]);
    }
    return i + 1;
}

/* x: the list of the part's targets (y of them), then the leaves of all parts (imm of them); b: the index as u64. */
const struct inst *lanes_extract(struct simd *s, const struct inst *i)
{
    const uint32_t *const to = s->run->p->list + i->x, n = i->y, *const from = to + 2 * n;
    const uint64_t parts = i->imm / n;
    const uint64_t *const index = REG(s, const uint64_t, i->b);
    EACH_LANE(s->mask, l)
    {
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t bytes = to[2 * k + 1];
            const uint64_t x = index[l] < parts ? lane_get(s, from[2 * (index[l] * n + k)], bytes, l) : 0;
            lane_set(s, to[2 * k], bytes, l, x);
        }
    }
    return i + 1;
}

/* x: the list of the whole's targets (imm of them), which hold the old value, then the part's y leaves; b: index. */
const struct inst *lanes_insert(struct simd *s, const struct inst *i)
{
    const uint32_t *const to = s->run->p->list + i->x, n = i->y, *const from = to + 2 * i->imm;
    const uint64_t parts = i->imm / n;
    const uint64_t *const index = REG(s, const uint64_t, i->b);
    EACH_LANE(s->mask, l)
    {
        if (index[l] >= parts)
            continue;
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t bytes = from[2 * k + 1];
            lane_set(s, to[2 * (index[l] * n + k)], bytes, l, lane_get(s, from[2 * k], bytes, l));
        }
    }
    return i + 1;
}
