/* simd.c - operations among the active lanes of a simdgroup, and of its quadgroups (4 lanes in a row).
 *
 * Reductions combine by the xor tree: for step 16, 8, 4, 2, 1 (a quadgroup: 2, 1), x[l] = x[l] op x[l ^ step] in all
 * lanes at once; every lane ends with the same bits. Scans are Hillis and Steele's: for step 1, 2, 4, 8, 16 (1, 2),
 * x[l] = x[l - step] op x[l] in lanes whose place in the group is step or more. In both, absent and inactive lanes
 * hold the operation's identity: -0.0 for sums of floats, 1 for products, NaN for min and max of floats (which ignore
 * it), the type's largest and smallest value for min and max of integers, all bits for and, none for or and xor. f16
 * and bf16 round after each step. An exclusive scan is the inclusive one moved up by one lane; the first active lane
 * gets 0 (products: 1).
 */
#include "interp/program.h"

/* ---- lanes of any size as u64 ----------------------------------------------------------------------------------- */

static unsigned width_of(const struct inst *i)
{
    return i->y;
}

static unsigned bytes_of(const struct inst *i)
{
    return scalar_info[i->x].bytes;
}

static uint32_t group_mask(const struct inst *i, unsigned lane)
{
    const unsigned w = width_of(i);
    return w == LANES ? ALL_LANES : ((1u << w) - 1) << (lane & ~(w - 1));
}

/* ---- reductions and scans --------------------------------------------------------------------------------------- */

bool simd_combines(enum op op, enum op *combine)
{
#define COMBINES(W)                                                                                                    \
    if (op == OP_##W##_SUM || op == OP_##W##_INCLUSIVE_SUM || op == OP_##W##_EXCLUSIVE_SUM)                            \
        return *combine = OP_ADD, true;                                                                                \
    if (op == OP_##W##_PRODUCT || op == OP_##W##_INCLUSIVE_PRODUCT || op == OP_##W##_EXCLUSIVE_PRODUCT)                \
        return *combine = OP_MUL, true;                                                                                \
    if (op == OP_##W##_MIN)                                                                                            \
        return *combine = OP_MIN, true;                                                                                \
    if (op == OP_##W##_MAX)                                                                                            \
        return *combine = OP_MAX, true;                                                                                \
    if (op == OP_##W##_AND)                                                                                            \
        return *combine = OP_AND, true;                                                                                \
    if (op == OP_##W##_OR)                                                                                             \
        return *combine = OP_OR, true;                                                                                 \
    if (op == OP_##W##_XOR)                                                                                            \
        return *combine = OP_XOR, true;
    COMBINES(SIMD)
    COMBINES(QUAD)
    return false;
}

static uint64_t number(enum scalar s, double x)
{
    if (s == S_F16)
        return f16_from_f64(x);
    if (s == S_BF16)
        return bf16_from_f64(x);
    if (s == S_F32)
        return bits_f32((float)x);
    return (uint64_t)(int64_t)x;
}

static uint64_t identity(enum op combine, enum scalar s)
{
    const unsigned bits = scalar_info[s].bits;
    const uint64_t all = ~(uint64_t)0 >> (64 - bits), top = (uint64_t)1 << (bits - 1);
    const bool is_float = scalar_info[s].class_ == CLASS_F, is_signed = scalar_info[s].class_ == CLASS_S;
    if (combine == OP_MUL)
        return number(s, 1);
    if (combine == OP_MIN)
        return is_float ? number(s, __builtin_nan("")) : is_signed ? all ^ top : all;
    if (combine == OP_MAX)
        return is_float ? number(s, __builtin_nan("")) : is_signed ? top : 0;
    if (combine == OP_AND)
        return all;
    return is_float ? number(s, -0.0) : 0;
}

/* One step of a tree as an elementwise operation in a register file of its own: x = a op b. */
struct tree {
    _Alignas(64) char reg[3][LANES * 8];
    struct simd simd;
    struct inst inst;
    unsigned bytes;
};

static void tree_begin(struct tree *t, const struct simd *s, const struct inst *i, enum op combine)
{
    const enum scalar scalar = (enum scalar)i->x;
    inst_fn *const fn = lanes_best()->op(combine, scalar, 0);
    t->bytes = bytes_of(i);
    t->simd = (struct simd){.regs = t->reg[0], .mask = ALL_LANES, .run = s->run};
    t->inst = (struct inst){.run = fn ? fn : lanes_eval,
                            .d = 0,
                            .a = sizeof t->reg[0],
                            .b = 2 * sizeof t->reg[0],
                            .imm = LANES_EVAL(combine, scalar, scalar, 0)};
    memcpy(t->reg[0], s->regs + i->a, (size_t)LANES * t->bytes);
    if (s->mask != ALL_LANES) {
        const uint64_t id = identity(combine, scalar);
        EACH_LANE(~s->mask, l)
        memcpy(t->reg[0] + t->bytes * l, &id, t->bytes);
    }
}

static const struct inst *reduce(struct simd *s, const struct inst *i)
{
    struct tree t;
    tree_begin(&t, s, i, (enum op)i->imm);
    const size_t bytes = t.bytes;
    for (unsigned step = width_of(i) / 2; step; step /= 2) {
        memcpy(t.reg[1], t.reg[0], LANES * bytes);
        for (unsigned l = 0; l < LANES; l += step)
            memcpy(t.reg[2] + l * bytes, t.reg[0] + (l ^ step) * bytes, step * bytes);
        (void)t.inst.run(&t.simd, &t.inst);
    }
    memcpy(s->regs + i->d, t.reg[0], LANES * bytes);
    return i + 1;
}

static const struct inst *scan(struct simd *s, const struct inst *i, bool exclusive)
{
    struct tree t;
    const unsigned w = width_of(i);
    tree_begin(&t, s, i, (enum op)i->imm);
    const size_t bytes = t.bytes;
    for (unsigned step = 1; step < w; step *= 2) {
        char before[LANES * 8];
        memcpy(before, t.reg[0], LANES * bytes);
        memcpy(t.reg[2], t.reg[0], LANES * bytes);
        memcpy(t.reg[1] + step * bytes, t.reg[0], (LANES - step) * bytes);
        memcpy(t.reg[1], t.reg[0], step * bytes);
        (void)t.inst.run(&t.simd, &t.inst);
        for (unsigned first = 0; first < LANES; first += w)
            memcpy(t.reg[0] + first * bytes, before + first * bytes, step * bytes);
    }
    if (!exclusive) {
        memcpy(s->regs + i->d, t.reg[0], LANES * bytes);
        return i + 1;
    }
    const uint64_t none = number((enum scalar)i->x, i->imm == OP_MUL ? 1 : 0);
    EACH_LANE(s->mask, l)
    {
        const uint32_t below = s->mask & group_mask(i, l) & (((uint32_t)1 << l) - 1);
        memcpy(s->regs + i->d + l * bytes, below ? t.reg[0] + (l - 1) * bytes : (const char *)&none, bytes);
    }
    return i + 1;
}

static const struct inst *inclusive(struct simd *s, const struct inst *i)
{
    return scan(s, i, false);
}

static const struct inst *exclusive(struct simd *s, const struct inst *i)
{
    return scan(s, i, true);
}

/* ---- values of other lanes -------------------------------------------------------------------------------------- */

/* The lane numbers, deltas and masks are u64 in register b, signed ones sign-extended: a negative one is past any end,
 * but rotations count modulo the width. Each function gives the place in the group to read from; NOWHERE gives 0. */
#define NOWHERE UINT64_MAX

static inline const struct inst *shuffle(struct simd *s, const struct inst *i, bool fill,
                                         uint64_t (*from)(uint64_t place, uint64_t operand, uint64_t width))
{
    const unsigned bytes = bytes_of(i), w = width_of(i);
    const uint64_t *const operand = REG(s, const uint64_t, i->b);
    EACH_LANE(s->mask, l)
    {
        const uint64_t place = l & (w - 1), k = from(place, operand[l], w);
        const uint32_t source = fill && k >= w ? i->c : i->a; /* k - w of the filling */
        const uint64_t in = fill && k >= w && k != NOWHERE ? k - w : k;
        uint64_t x = 0;
        if (in < w) {
            const unsigned lane = (unsigned)(in + (l - place));
            x = s->mask >> lane & 1u ? lane_get(s, source, bytes, lane) : 0;
        }
        lane_set(s, i->d, bytes, l, x);
    }
    return i + 1;
}

static uint64_t from_lane(uint64_t place, uint64_t n, uint64_t w)
{
    (void)place;
    return n < w ? n : NOWHERE;
}

static uint64_t from_below(uint64_t place, uint64_t n, uint64_t w)
{
    (void)w;
    return n <= place ? place - n : place;
}

static uint64_t from_above(uint64_t place, uint64_t n, uint64_t w)
{
    return n < w - place ? place + n : place;
}

static uint64_t from_xor(uint64_t place, uint64_t n, uint64_t w)
{
    return (place ^ n) < w ? place ^ n : NOWHERE;
}

static uint64_t from_rotated_below(uint64_t place, uint64_t n, uint64_t w)
{
    return (place - n) & (w - 1);
}

static uint64_t from_rotated_above(uint64_t place, uint64_t n, uint64_t w)
{
    return (place + n) & (w - 1);
}

/* Places from the width on are the filling's. */
static uint64_t from_filled_below(uint64_t place, uint64_t n, uint64_t w)
{
    return n <= place ? place - n : n <= w + place ? 2 * w + place - n : NOWHERE;
}

static uint64_t from_filled_above(uint64_t place, uint64_t n, uint64_t w)
{
    return n < 2 * w - place ? place + n : NOWHERE;
}

#define SHUFFLE(name, fill, from)                                                                                      \
    static const struct inst *name(struct simd *s, const struct inst *i)                                               \
    {                                                                                                                  \
        return shuffle(s, i, fill, from);                                                                              \
    }
SHUFFLE(shuffle_lane, false, from_lane)
SHUFFLE(shuffle_up, false, from_below)
SHUFFLE(shuffle_down, false, from_above)
SHUFFLE(shuffle_xor, false, from_xor)
SHUFFLE(rotate_up, false, from_rotated_below)
SHUFFLE(rotate_down, false, from_rotated_above)
SHUFFLE(fill_up, true, from_filled_below)
SHUFFLE(fill_down, true, from_filled_above)

static const struct inst *broadcast_first(struct simd *s, const struct inst *i)
{
    const unsigned bytes = bytes_of(i);
    EACH_LANE(s->mask, l)
    {
        const unsigned first = (unsigned)__builtin_ctz(s->mask & group_mask(i, l));
        lane_set(s, i->d, bytes, l, lane_get(s, i->a, bytes, first));
    }
    return i + 1;
}

/* ---- votes ------------------------------------------------------------------------------------------------------ */

static const struct inst *all(struct simd *s, const struct inst *i)
{
    const uint32_t no = s->mask & ~lanes_bits(s, i->a);
    EACH_LANE(s->mask, l)
    REG(s, uint8_t, i->d)[l] = (no & group_mask(i, l)) == 0;
    return i + 1;
}

static const struct inst *any(struct simd *s, const struct inst *i)
{
    const uint32_t yes = s->mask & lanes_bits(s, i->a);
    EACH_LANE(s->mask, l)
    REG(s, uint8_t, i->d)[l] = (yes & group_mask(i, l)) != 0;
    return i + 1;
}

static const struct inst *is_first(struct simd *s, const struct inst *i)
{
    EACH_LANE(s->mask, l)
    REG(s, uint8_t, i->d)[l] = (unsigned)__builtin_ctz(s->mask & group_mask(i, l)) == l;
    return i + 1;
}

/* Bit k stands for place k of the group. */
static const struct inst *bits_of_group(struct simd *s, const struct inst *i, uint32_t bits)
{
    const unsigned w = width_of(i);
    EACH_LANE(s->mask, l)
    REG(s, uint64_t, i->d)[l] = (bits & group_mask(i, l)) >> (l & ~(w - 1));
    return i + 1;
}

static const struct inst *ballot(struct simd *s, const struct inst *i)
{
    return bits_of_group(s, i, s->mask & lanes_bits(s, i->a));
}

static const struct inst *active(struct simd *s, const struct inst *i)
{
    return bits_of_group(s, i, s->mask);
}

/* ----------------------------------------------------------------------------------------------------------------- */

static inst_fn *const ops[OP_COUNT] = {
#define OPS(W)                                                                                                         \
    [OP_##W##_SUM] = reduce, [OP_##W##_PRODUCT] = reduce, [OP_##W##_MIN] = reduce, [OP_##W##_MAX] = reduce,            \
    [OP_##W##_AND] = reduce, [OP_##W##_OR] = reduce, [OP_##W##_XOR] = reduce, [OP_##W##_INCLUSIVE_SUM] = inclusive,    \
    [OP_##W##_EXCLUSIVE_SUM] = exclusive, [OP_##W##_INCLUSIVE_PRODUCT] = inclusive,                                    \
    [OP_##W##_EXCLUSIVE_PRODUCT] = exclusive, [OP_##W##_BROADCAST] = shuffle_lane,                                     \
    [OP_##W##_BROADCAST_FIRST] = broadcast_first, [OP_##W##_SHUFFLE] = shuffle_lane,                                   \
    [OP_##W##_SHUFFLE_UP] = shuffle_up, [OP_##W##_SHUFFLE_DOWN] = shuffle_down, [OP_##W##_SHUFFLE_XOR] = shuffle_xor,  \
    [OP_##W##_ROTATE_UP] = rotate_up, [OP_##W##_ROTATE_DOWN] = rotate_down, [OP_##W##_FILL_UP] = fill_up,              \
    [OP_##W##_FILL_DOWN] = fill_down, [OP_##W##_ALL] = all, [OP_##W##_ANY] = any, [OP_##W##_IS_FIRST] = is_first,      \
    [OP_##W##_BALLOT] = ballot, [OP_##W##_ACTIVE] = active
    OPS(SIMD),
    OPS(QUAD),
};

inst_fn *simd_op(enum op op)
{
    return ops[op];
}
