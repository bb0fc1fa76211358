/* What the analysis claims, against values: kernels run bundle by bundle, with memory that holds anything.
 *
 * A value is computed in all lanes, active or not, and once more as a scalar, lane BASE, the way an executor computes
 * what is uniform or linear: from the scalars of the operands. Lanes that are not active get garbage from whatever
 * looks at the mask, scalars get it from what varies. Then each claim is checked on each value:
 * active lanes equal base + lane * stride, what is uniform in the grid or a threadgroup is the same for all its threads in the
 * same iteration, bounds hold (active ones as seen from each use), loops repeat and diverge no more than said, control brings
 * those together whom it says it does.
 */
#include "check.h"
#include "fuzz/diff.h"
#include "pass/analysis.h"
#include "pass/pass.h"
#include "unit/analysis_leaves.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define LANES 32
#define BASE LANES /* the scalar beside the lanes */
#define ROW (LANES + 1)
#define STEPS 60000u
#define SEEN (1u << 16)
#define PATH 64

struct seen { /* a value of level T or G, in one iteration of the loops around it */
    uint64_t key, value;
};

struct spot { /* where control is: for each construct around, its number in program order and the iteration */
    uint32_t at[PATH];
    unsigned n;
};

struct gathered { /* threads that came together to a node */
    uint64_t key;
    struct spot place;
    uint32_t node, count;
};

struct frame {
    struct frame *up;
    uint32_t node, out, again;
};

struct oracle {
    struct mem *mem;
    const struct ir_module *m;
    struct analysis a;
    const char *what; /* the program, for messages */
    uint64_t seed, random;
    uint32_t *leaf, *order; /* by node: its first leaf; place in program order */
    uint64_t (*value)[ROW]; /* by leaf */
    uint64_t (*next)[ROW];  /* by leaf of loop parameters: of the next iteration */
    uint32_t n_order, steps;
    struct seen *seen;
    unsigned n_seen;
    VEC(struct gathered) gathered;
    struct spot place;
    struct spot ended_at[1024]; /* by thread; n 0: not */
    bool loads_uniform, stop;
    /* the threadgroup and bundle being run */
    uint32_t asked[3], dims[3], group[3], grid[3], n_group, first;
    uint32_t all, ended; /* lanes that exist; lanes that ended */
};

static uint64_t hash(uint64_t a, uint64_t b)
{
    return hash_u64(hash_u64(0x1234567, a), b);
}

static uint64_t garbage(struct oracle *o)
{
    const uint64_t x = gen_random(&o->random);
    return x & 1 ? gen_random(&o->random) : (x & 2 ? 0 - (x >> 58) : x >> 58);
}

static void wrong(struct oracle *o, uint32_t id, const char *claim, uint64_t is, uint64_t other)
{
    if (check_failures < CHECK_SHOWN) {
        struct buf b;
        buf_init(&b, o->mem);
        ir_print_func(o->m, o->a.func, &b, 0);
        buf_char(&b, '\n');
        analysis_print(&o->a, &b);
        printf("%s\n", buf_text(&b));
        buf_free(&b);
        printf("op %s, type %u, ", op_info[ir_at(o->m, id)->op].name, ir_at(o->m, id)->type);
    }
    CHECK_FAIL_("%s: node %u: %s: %llx, %llx", o->what, id, claim, (unsigned long long)is, (unsigned long long)other);
    o->stop = true;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* Component of the analysis for leaf k. */
static unsigned comp(const struct oracle *o, uint32_t id, uint32_t k)
{
    return ir_type_width(ir_at(o->m, id)->type) > 1 ? k : 0;
}

static bool inside(struct bounds b, enum scalar s, uint64_t x)
{
    if (s == S_VOID || scalar_info[s].class_ == CLASS_F)
        return true;
    if (s == S_U64 && x > INT64_MAX)
        return b.wide;
    return as_signed(s, x) >= b.lo && (b.wide || as_signed(s, x) <= b.hi);
}

/* Iterations of the loops around, as a number. */
static uint64_t iterations(const struct oracle *o, uint32_t id)
{
    uint64_t key = id;
    for (unsigned k = 0; k < o->place.n; k++)
        key = hash(key, o->place.at[k]);
    return key;
}

static void check_same(struct oracle *o, uint32_t id, uint64_t key, uint64_t value, const char *claim)
{
    if (o->n_seen > SEEN / 2)
        return;
    key |= 1;
    for (uint32_t k = (uint32_t)(key >> 20) % SEEN;; k = (k + 1) % SEEN) {
        if (o->seen[k].key == 0) {
            o->seen[k] = (struct seen){key, value};
            o->n_seen++;
            return;
        }
        if (o->seen[k].key == key) {
            if (o->seen[k].value != value)
                wrong(o, id, claim, o->seen[k].value, value);
            return;
        }
    }
}

static void check_value(struct oracle *o, uint32_t id, uint32_t mask)
{
    const ir_type t = ir_at(o->m, id)->type;
    for (uint32_t k = 0; k < leaves(o->m, t) && !o->stop; k++) {
        const uint64_t *const v = o->value[o->leaf[id] + k];
        const enum scalar s = leaf_scalar(o->m, t, k);
        const struct lane_info l = analysis_lane(&o->a, id, comp(o, id, k));
        const struct bounds all = analysis_bounds(&o->a, id, comp(o, id, k)),
                            active = o->a.active[o->a.first[id] + comp(o, id, k)];
        const bool scalar = l.uniform < UNIFORM_V || l.linear;
        check_count++;
        if (l.uniform < UNIFORM_V && l.linear && l.stride)
            wrong(o, id, "uniform with a stride", (uint64_t)l.stride, 0);
        for (unsigned i = 0; i < o->a.shape.width; i++) {
            if (ir_type_width(t) && !inside(all, s, v[i]))
                wrong(o, id, "bounds of all lanes", v[i], i);
            if (!(mask >> i & 1u))
                continue;
            if (ir_type_width(t) && !inside(active, s, v[i]))
                wrong(o, id, "bounds of active lanes", v[i], i);
            const uint64_t want = masked(s, v[BASE] + (l.linear ? (uint64_t)l.stride * i : 0));
            if (scalar && v[i] != want)
                wrong(o, id, l.uniform < UNIFORM_V ? "uniform" : "linear", v[i], want);
        }
        if (scalar && ir_type_width(t) && !inside(all, s, v[BASE]))
            wrong(o, id, "bounds of all lanes, as a scalar", v[BASE], 0);
        if (mask && l.uniform <= UNIFORM_T && !o->stop) {
            const uint64_t key = hash(iterations(o, id), k);
            check_same(o, id, l.uniform == UNIFORM_T ? hash(key, o->n_group) : key, v[BASE],
                       l.uniform == UNIFORM_T ? "uniform in the threadgroup" : "uniform in the grid");
        }
    }
}

static void check_uses(struct oracle *o, uint32_t id, uint32_t mask)
{
    for (unsigned j = 0; j < ir_at(o->m, id)->n; j++) {
        const uint32_t in = ir_in(o->m, id)[j];
        const ir_type t = ir_at(o->m, in)->type;
        for (unsigned k = 0; k < ir_type_width(t); k++) {
            const struct bounds b = analysis_bounds_active(&o->a, in, k, id);
            for (unsigned i = 0; i < o->a.shape.width; i++)
                if (mask >> i & 1u && !inside(b, ir_type_scalar(t), o->value[o->leaf[in] + k][i]))
                    wrong(o, id, "bounds of an operand at its use", o->value[o->leaf[in] + k][i], in);
        }
    }
}

/* ---- control --------------------------------------------------------------------------------------------------- */

/* Whether a comes before b in program order. */
static bool before(const struct spot *a, const struct spot *b)
{
    for (unsigned k = 0; k < a->n && k < b->n; k++)
        if (a->at[k] != b->at[k])
            return a->at[k] < b->at[k];
    return a->n < b->n;
}

static void check_control(struct oracle *o, uint32_t id, uint32_t mask)
{
    const uint8_t level = o->a.control[id];
    if (level < UNIFORM_V && mask != (o->all & ~o->ended))
        wrong(o, id, "control: lanes are missing", mask, o->all & ~o->ended);
    if (level > UNIFORM_T || o->place.n + 1 >= PATH)
        return;
    const uint64_t key = hash(iterations(o, id), o->n_group);
    struct spot at = o->place;
    at.at[at.n++] = o->order[id];
    for (uint32_t k = o->gathered.n; k-- > 0;)
        if (o->gathered.at[k].key == key) {
            o->gathered.at[k].count += (uint32_t)__builtin_popcount(mask);
            return;
        }
    if (o->gathered.n < 400)
        VEC_PUSH(o->mem, &o->gathered, ((struct gathered){key, at, id, (uint32_t)__builtin_popcount(mask)}));
}

static void check_gathered(struct oracle *o, uint32_t n_threads)
{
    for (uint32_t k = 0; k < o->gathered.n && !o->stop; k++) {
        const struct gathered *const g = &o->gathered.at[k];
        uint32_t expected = 0;
        for (uint32_t t = 0; t < n_threads; t++)
            expected += o->ended_at[t].n == 0 || !before(&o->ended_at[t], &g->place);
        if (g->count != expected)
            wrong(o, g->node, "control: threads are missing", g->count, expected);
    }
    o->gathered.n = 0;
}

/* ---- operations ------------------------------------------------------------------------------------------------ */

static uint64_t *lanes(struct oracle *o, uint32_t id, uint32_t k)
{
    return o->value[o->leaf[id] + k];
}

static void parts(struct oracle *o, uint32_t id)
{
    const struct ir_module *const m = o->m;
    const struct node *const x = ir_at(m, id);
    const uint32_t *const in = ir_in(m, id);
    const uint32_t n = leaves(m, x->type);
    uint32_t done = 0;
    switch ((unsigned)x->op) {
    case OP_MAKE:
        for (unsigned j = 0; j < x->n; j++)
            for (uint32_t k = 0; k < leaves(m, ir_at(m, in[j])->type); k++)
                memcpy(lanes(o, id, done++), lanes(o, in[j], k), sizeof *o->value);
        return;
    case OP_SPLAT:
        for (; done < n; done++)
            memcpy(lanes(o, id, done), lanes(o, in[0], 0), sizeof *o->value);
        return;
    case OP_EXTRACT:
        for (; done < n; done++)
            memcpy(lanes(o, id, done), lanes(o, in[0], leaf_of_part(m, ir_at(m, in[0])->type, x->imm) + done),
                   sizeof *o->value);
        return;
    case OP_INSERT: {
        const uint32_t from = leaf_of_part(m, x->type, x->imm), w = leaves(m, ir_at(m, in[1])->type);
        for (; done < n; done++)
            memcpy(lanes(o, id, done),
                   done >= from && done < from + w ? lanes(o, in[1], done - from) : lanes(o, in[0], done),
                   sizeof *o->value);
        return;
    }
    case OP_SHUFFLE:
        for (; done < n; done++) {
            const unsigned place = (unsigned)(x->imm >> 4 * done) & 7u;
            memcpy(lanes(o, id, done), lanes(o, in[place >> 2], place & 3u), sizeof *o->value);
        }
        return;
    }
}

static void dynamic_parts(struct oracle *o, uint32_t id, unsigned i)
{
    const struct ir_module *const m = o->m;
    const struct node *const x = ir_at(m, id);
    const uint32_t *const in = ir_in(m, id), index = in[x->op == OP_EXTRACT_AT ? 1 : 2];
    const ir_type whole = ir_at(m, in[0])->type;
    const int64_t at = as_signed(ir_type_scalar(ir_at(m, index)->type), lanes(o, index, 0)[i]);
    const bool fits = at >= 0 && (uint64_t)at < ir_type_parts(m, whole);
    const uint32_t part = leaves(m, ir_type_part(m, whole, 0)), from = fits ? part * (uint32_t)at : 0;
    for (uint32_t k = 0; k < leaves(m, x->type); k++)
        lanes(o, id, k)[i] = x->op == OP_EXTRACT_AT                 ? (fits ? lanes(o, in[0], from + k)[i] : 0)
                             : fits && k >= from && k < from + part ? lanes(o, in[1], k - from)[i]
                                                                    : lanes(o, in[0], k)[i];
}

static void bitcast(struct oracle *o, uint32_t id, unsigned i)
{
    const uint32_t in = ir_in(o->m, id)[0];
    const ir_type from = ir_at(o->m, in)->type, to = ir_at(o->m, id)->type;
    uint8_t bytes[64] = {0};
    const unsigned a = scalar_info[ir_type_scalar(from)].bytes, b = scalar_info[ir_type_scalar(to)].bytes;
    for (uint32_t k = 0; k < ir_type_width(from); k++)
        memcpy(bytes + k * a, &lanes(o, in, k)[i], a);
    for (uint32_t k = 0; k < ir_type_width(to); k++) {
        lanes(o, id, k)[i] = 0;
        memcpy(&lanes(o, id, k)[i], bytes + k * b, b);
    }
}

static void pure(struct oracle *o, uint32_t id)
{
    const struct node *const x = ir_at(o->m, id);
    const uint32_t *const in = ir_in(o->m, id);
    switch ((unsigned)x->op) {
    case OP_MAKE:
    case OP_SPLAT:
    case OP_EXTRACT:
    case OP_INSERT:
    case OP_SHUFFLE: parts(o, id); return;
    }
    for (unsigned i = 0; i < ROW; i++) {
        if (x->op == OP_EXTRACT_AT || x->op == OP_INSERT_AT) {
            dynamic_parts(o, id, i);
        } else if (x->op == OP_BITCAST) {
            bitcast(o, id, i);
        } else if (x->op == OP_INDEX) {
            const int64_t at = as_signed(ir_type_scalar(ir_at(o->m, in[1])->type), lanes(o, in[1], 0)[i]);
            lanes(o, id, 0)[i] = lanes(o, in[0], 0)[i] + (uint64_t)at * ir_type_at(o->m, (ir_type)x->imm)->size;
        } else if (x->op == OP_FIELD) {
            const struct type *const t = ir_type_at(o->m, (ir_type)x->imm);
            lanes(o, id, 0)[i] = lanes(o, in[0], 0)[i] + o->m->fields.at[t->first_field + (x->imm >> 32)].offset;
        } else if (x->op == OP_SELECT) {
            for (uint32_t k = 0; k < leaves(o->m, x->type); k++)
                lanes(o, id, k)[i] = lanes(o, in[0], ir_type_width(ir_at(o->m, in[0])->type) > 1 ? k : 0)[i]
                                         ? lanes(o, in[1], k)[i]
                                         : lanes(o, in[2], k)[i];
        } else if (x->n && ir_type_is_pointer(ir_at(o->m, in[0])->type)) {
            lanes(o, id, 0)[i] = (lanes(o, in[0], 0)[i] == lanes(o, in[1], 0)[i]) == (x->op == OP_EQ);
        } else {
            for (uint32_t k = 0; k < ir_type_width(x->type); k++) {
                uint64_t v[3] = {0};
                for (unsigned j = 0; j < x->n; j++)
                    v[j] = lanes(o, in[j], k)[i];
                lanes(o, id, k)[i] = ir_scalar_eval((enum op)x->op, ir_type_scalar(ir_at(o->m, in[0])->type),
                                                    ir_type_scalar(x->type), x->flags, v[0], v[1], v[2]);
            }
        }
    }
}

/* Gives a leaf its value where lanes are active; the others get garbage, or the scalar where one is claimed. */
static void give(struct oracle *o, uint32_t id, uint32_t k, uint32_t mask, const uint64_t v[ROW])
{
    const enum scalar s = leaf_scalar(o->m, ir_at(o->m, id)->type, k);
    const bool uniform = analysis_lane(&o->a, id, comp(o, id, k)).uniform < UNIFORM_V;
    uint64_t *const to = lanes(o, id, k);
    to[BASE] = masked(s, uniform ? (mask ? v[__builtin_ctz(mask)] : garbage(o)) : garbage(o));
    for (unsigned i = 0; i < LANES; i++)
        to[i] = mask >> i & 1u ? masked(s, v[i]) : uniform ? to[BASE] : masked(s, garbage(o));
}

static bool same_in_simdgroup(const struct oracle *o, uint32_t id)
{
    const struct node *const x = ir_at(o->m, id);
    if (o->a.shape.width != 32)
        return false;
    switch ((unsigned)x->op) {
    case OP_SIMD_SUM:
    case OP_SIMD_PRODUCT:
    case OP_SIMD_MIN:
    case OP_SIMD_MAX:
    case OP_SIMD_AND:
    case OP_SIMD_OR:
    case OP_SIMD_XOR:
    case OP_SIMD_BROADCAST_FIRST:
    case OP_SIMD_ALL:
    case OP_SIMD_ANY:
    case OP_SIMD_BALLOT:
    case OP_SIMD_ACTIVE: return true;
    }
    return false;
}

/* What is no function of its operands: any value, but the same where it has to be. */
static void source(struct oracle *o, uint32_t id, uint32_t mask)
{
    const struct node *const x = ir_at(o->m, id);
    const uint32_t in = x->n ? ir_in(o->m, id)[0] : 0;
    const uint64_t now = hash(iterations(o, id), o->seed), bundle = hash(o->n_group, o->first);
    const uint8_t level = analysis_lane(&o->a, id, 0).uniform;
    for (uint32_t k = 0; k < leaves(o->m, x->type); k++) {
        uint64_t v[ROW];
        for (unsigned i = 0; i < ROW; i++) {
            uint64_t h = hash(k, i + 100 * bundle + now);
            if (x->op == OP_LOAD) {
                const enum space space = ir_type_space(ir_at(o->m, in)->type);
                const uint64_t at = hash(lanes(o, in, 0)[i], k);
                if (space == SPACE_CONSTANT)
                    h = hash(at, o->seed);
                else if (space == SPACE_THREAD)
                    h = hash(hash(at, i), now);
                else if (level == UNIFORM_T) /* done once for all */
                    h = hash(hash(at, now), o->n_group);
                else
                    h = hash(hash(at, now), bundle);
            } else if (same_in_simdgroup(o, id)) {
                h = hash(hash(now, k), bundle);
            } else if (x->op == OP_SIMD_BROADCAST || x->op == OP_SIMD_SHUFFLE) {
                const uint32_t lane = ir_in(o->m, id)[1];
                h = hash(hash(now, k),
                         hash(bundle, lanes(o, lane, ir_type_width(ir_at(o->m, lane)->type) > 1 ? k : 0)[i]));
            } else if (x->op == OP_ALLOC) {
                h = (uint64_t)id << 40;
            }
            v[i] = x->op == OP_ALLOC ? h : h & 1 ? hash(h, 1) : h & 2 ? 0 - (h >> 59) : h >> 59;
            if (x->op == OP_SIMD_BALLOT || x->op == OP_SIMD_ACTIVE)
                v[i] &= UINT32_MAX;
            if (x->op == OP_QUAD_BALLOT || x->op == OP_QUAD_ACTIVE)
                v[i] &= 15;
        }
        give(o, id, k, mask, v);
        if (x->op == OP_ALLOC) {
            for (unsigned i = 0; i < ROW; i++)
                lanes(o, id, k)[i] = v[0];
        } else if (x->op == OP_SIMD_BALLOT || x->op == OP_SIMD_ACTIVE) {
            for (unsigned i = 0; i < ROW; i++)
                lanes(o, id, k)[i] &= UINT32_MAX;
        }
    }
}

/* ---- regions --------------------------------------------------------------------------------------------------- */

/* Active lanes bring the operands to parameters or results from `to` on, all at once. Lanes still in the iteration need
 * the parameters as they are: the next ones wait. */
static void carry(struct oracle *o, uint32_t id, uint32_t to, uint32_t mask)
{
    uint64_t(*const v)[ROW] = malloc(sizeof *v * 256);
    uint32_t n = 0;
    for (unsigned j = 0; j < ir_at(o->m, id)->n; j++) {
        const uint32_t in = ir_in(o->m, id)[j];
        for (uint32_t k = 0; k < leaves(o->m, ir_at(o->m, in)->type) && n < 256; k++)
            memcpy(v[n++], lanes(o, in, k), sizeof *v);
    }
    n = 0;
    for (unsigned j = 0; j < ir_at(o->m, id)->n; j++, to = ir_at(o->m, to)->next)
        for (uint32_t k = 0; k < leaves(o->m, ir_at(o->m, to)->type) && n < 256; k++, n++) {
            const struct lane_info l = analysis_lane(&o->a, to, comp(o, to, k));
            uint64_t *const at = ir_at(o->m, to)->op == OP_ARG ? o->next[o->leaf[to] + k] : lanes(o, to, k);
            at[BASE] = v[n][BASE];
            for (unsigned i = 0; i < LANES; i++)
                at[i] = l.uniform < UNIFORM_V ? v[n][BASE] : mask >> i & 1u ? v[n][i] : at[i];
        }
    free(v);
}

static void spoil(struct oracle *o, uint32_t id)
{
    for (uint32_t k = 0; k < leaves(o->m, ir_at(o->m, id)->type); k++)
        for (unsigned i = 0; i < ROW; i++)
            lanes(o, id, k)[i] = o->next[o->leaf[id] + k][i] =
                masked(leaf_scalar(o->m, ir_at(o->m, id)->type, k), garbage(o));
}

static uint32_t run(struct oracle *o, struct frame *f, uint32_t region, uint32_t mask);

/* Pure code where no lane is active, up to what needs one. */
static void run_empty(struct oracle *o, uint32_t region)
{
    IR_EACH(o->m, region, id)
    {
        const struct node *const x = ir_at(o->m, id);
        if (x->op == OP_ARG || ir_is_construct(x->op) || op_info[x->op].effect == EFFECT_EXIT)
            return;
        if (op_info[x->op].effect == EFFECT_PURE)
            pure(o, id);
        else if (x->type)
            source(o, id, 0);
        if (x->type && !o->stop)
            check_value(o, id, 0);
    }
}

static uint32_t run_loop(struct oracle *o, struct frame *f, uint32_t mask)
{
    const uint32_t id = f->node, body = ir_region(o->m, id, 0), head = ir_region_at(o->m, body)->first;
    const unsigned at = o->place.n - 1;
    uint64_t repeated = 0;
    const uint32_t entered = mask;
    for (unsigned j = 0, arg = head; j < ir_at(o->m, id)->n; j++, arg = ir_at(o->m, arg)->next)
        spoil(o, arg);
    carry(o, id, head, mask);
    for (;;) {
        f->again = 0;
        for (unsigned j = 0, arg = head; j < ir_at(o->m, id)->n; j++, arg = ir_at(o->m, arg)->next)
            for (uint32_t k = 0; k < leaves(o->m, ir_at(o->m, arg)->type); k++)
                memcpy(lanes(o, arg, k), o->next[o->leaf[arg] + k], sizeof *o->next);
        f->out |= run(o, f, body, mask);
        mask = f->again & ~o->ended;
        if (!mask || o->stop)
            return f->out;
        if (!o->a.diverges[id] && mask != (entered & ~o->ended))
            wrong(o, id, "the loop diverges", mask, entered & ~o->ended);
        if (++repeated > o->a.trips[id])
            wrong(o, id, "the loop repeats too often", repeated, o->a.trips[id]);
        o->place.at[at]++;
    }
}

static void run_construct(struct oracle *o, struct frame *up, uint32_t id, uint32_t *mask)
{
    const struct ir_module *const m = o->m;
    const struct node *const x = ir_at(m, id);
    struct frame f = {.up = up, .node = id};
    for (uint32_t k = x->next; k && ir_at(m, k)->op == OP_RESULT && ir_at(m, k)->in[0] == id; k = ir_at(m, k)->next)
        spoil(o, k);
    if (o->place.n + 2 >= PATH) {
        o->stop = true;
        return;
    }
    o->place.at[o->place.n++] = o->order[id];
    o->place.at[o->place.n++] = 0;
    if (x->op == OP_LOOP) {
        run_loop(o, &f, *mask);
    } else if (x->op == OP_BLOCK) {
        f.out |= run(o, &f, ir_region(m, id, 0), *mask);
    } else {
        const uint32_t c = ir_in(m, id)[0], n = ir_n_regions(m, id);
        uint32_t rest = *mask, chosen[64] = {0};
        for (unsigned k = 0; k < n && k < 64; k++) {
            const struct region *const r = ir_region_at(m, ir_region(m, id, k));
            for (unsigned i = 0; i < LANES; i++) {
                bool here = x->op == OP_IF && (lanes(o, c, 0)[i] != 0) == (k == 0);
                for (uint32_t j = 0; x->op == OP_SWITCH && j < r->n_cases; j++)
                    here = here || (int64_t)masked(S_U64, (uint64_t)m->cases.at[r->first_case + j]) ==
                                       as_signed(ir_type_scalar(ir_at(m, c)->type), lanes(o, c, 0)[i]);
                if (here)
                    chosen[k] |= rest & 1u << i;
            }
        }
        for (unsigned k = 0; k < n && k < 64; k++)
            rest &= ~chosen[k];
        for (unsigned k = 0; k < n && k < 64 && !o->stop; k++) {
            const bool otherwise = x->op == OP_SWITCH && ir_region_at(m, ir_region(m, id, k))->is_default;
            const uint32_t in = (chosen[k] | (otherwise ? rest : 0)) & ~o->ended;
            if (otherwise)
                rest = 0;
            if (in)
                f.out |= run(o, &f, ir_region(m, id, k), in);
            else
                run_empty(o, ir_region(m, id, k));
        }
        f.out |= rest;
    }
    o->place.n -= 2;
    *mask = f.out & ~o->ended;
}

static struct frame *target(struct frame *f, uint32_t node)
{
    while (f->node != node)
        f = f->up;
    return f;
}

/* Returns the lanes that fall out of the region's end. */
static uint32_t run(struct oracle *o, struct frame *f, uint32_t region, uint32_t mask)
{
    const struct ir_module *const m = o->m;
    IR_EACH(m, region, id)
    {
        const struct node *const x = ir_at(m, id);
        if (!mask || o->stop)
            return 0;
        if (++o->steps > STEPS) {
            o->stop = true;
            return 0;
        }
        check_control(o, id, mask);
        check_uses(o, id, mask);
        if (ir_is_construct(x->op)) {
            run_construct(o, f, id, &mask);
            continue;
        }
        switch ((unsigned)x->op) {
        case OP_YIELD: carry(o, id, ir_at(m, f->node)->next, mask); return mask;
        case OP_BR: {
            const uint32_t to = (uint32_t)x->imm;
            const bool repeat = ir_at(m, to)->op == OP_LOOP;
            struct frame *const t = target(f, to);
            carry(o, id, repeat ? ir_region_at(m, ir_region(m, to, 0))->first : ir_at(m, to)->next, mask);
            *(repeat ? &t->again : &t->out) |= mask;
            return 0;
        }
        case OP_RETURN:
        case OP_UNREACHABLE:
            o->ended |= mask;
            for (unsigned i = 0; i < o->a.shape.width; i++)
                if (mask >> i & 1u && o->place.n + 1 < PATH) {
                    struct spot *const p = &o->ended_at[o->first + i];
                    *p = o->place;
                    p->at[p->n++] = o->order[id];
                }
            return 0;
        case OP_ARG:
        case OP_RESULT: break;
        default:
            if (!x->type)
                continue;
            if (op_info[x->op].effect == EFFECT_PURE)
                pure(o, id);
            else
                source(o, id, mask);
        }
        if (!o->stop)
            check_value(o, id, mask);
    }
    return mask;
}

/* ---- threadgroups ---------------------------------------------------------------------------------------------- */

static uint64_t attribute(const struct oracle *o, enum attribute a, unsigned k, unsigned lane)
{
    const uint32_t index = o->first + lane;
    const uint32_t *const d = o->a.shape.edge ? o->asked : o->dims;
    const uint32_t *const said = o->a.shape.dims;
    uint32_t at[3], rest = index;
    for (unsigned j = 0; j < 3; j++) {
        bool last = true;
        for (unsigned i = j + 1; i < 3; i++)
            last = last && said[i] == 1;
        at[j] = said[j] == 1 ? 0 : last ? rest : rest % d[j];
        rest = last ? 0 : rest / d[j];
    }
    const uint32_t counted = o->a.shape.edge ? at[0] + at[1] * o->dims[0] + at[2] * o->dims[0] * o->dims[1] : index;
    const uint32_t n = o->dims[0] * o->dims[1] * o->dims[2], asked = o->asked[0] * o->asked[1] * o->asked[2];
    switch (a) {
    case ATTR_THREAD_POSITION_IN_GRID: return (uint32_t)(o->group[k] * o->asked[k] + at[k]);
    case ATTR_THREADS_PER_GRID: return o->grid[k];
    case ATTR_THREAD_POSITION_IN_THREADGROUP: return at[k];
    case ATTR_THREADGROUP_POSITION_IN_GRID: return o->group[k];
    case ATTR_THREADS_PER_THREADGROUP: return o->dims[k];
    case ATTR_DISPATCH_THREADS_PER_THREADGROUP: return o->asked[k];
    case ATTR_THREADGROUPS_PER_GRID: return (o->grid[k] + o->asked[k] - 1) / o->asked[k];
    case ATTR_THREAD_INDEX_IN_THREADGROUP: return counted;
    case ATTR_THREAD_INDEX_IN_SIMDGROUP: return counted % 32;
    case ATTR_SIMDGROUP_INDEX_IN_THREADGROUP: return counted / 32;
    case ATTR_SIMDGROUPS_PER_THREADGROUP: return (n + 31) / 32;
    case ATTR_DISPATCH_SIMDGROUPS_PER_THREADGROUP: return (asked + 31) / 32;
    case ATTR_THREADS_PER_SIMDGROUP:
    case ATTR_THREAD_EXECUTION_WIDTH: return 32;
    case ATTR_THREAD_INDEX_IN_QUADGROUP: return counted % 4;
    case ATTR_QUADGROUP_INDEX_IN_THREADGROUP: return counted / 4;
    case ATTR_QUADGROUPS_PER_THREADGROUP: return (n + 3) / 4;
    case ATTR_DISPATCH_QUADGROUPS_PER_THREADGROUP: return (asked + 3) / 4;
    case ATTR_NONE:
    case ATTR_COUNT: break;
    }
    return 0;
}

static void fill_params(struct oracle *o)
{
    const struct func *const f = &o->m->funcs.at[o->a.func];
    for (uint32_t j = 0; j < f->n_params; j++) {
        const struct param *const p = &o->m->params.at[f->first_param + j];
        for (uint32_t k = 0; k < leaves(o->m, p->type); k++)
            for (unsigned i = 0; i < ROW; i++) {
                const enum scalar s = leaf_scalar(o->m, p->type, k);
                const uint64_t h = hash(hash(o->seed, p->node), k);
                uint64_t v = h & 1 ? hash(h, 1) : h & 2 ? 0 - (h >> 59) : h >> 59;
                if (p->kind == PARAM_ATTRIBUTE)
                    v = attribute(o, (enum attribute)p->attribute, k, i == BASE ? 0 : i);
                else if (ir_type_is_pointer(p->type))
                    v = (uint64_t)p->node << 40;
                lanes(o, p->node, k)[i] = masked(s, v);
            }
        check_value(o, p->node, o->all);
    }
}

static void run_group(struct oracle *o, const uint32_t group[3])
{
    const uint32_t *const d = o->a.shape.edge ? o->asked : o->dims;
    const uint32_t n = d[0] * d[1] * d[2], w = o->a.shape.width;
    memcpy(o->group, group, sizeof o->group);
    memset(o->ended_at, 0, sizeof o->ended_at);
    for (o->first = 0; o->first < n && !o->stop; o->first += w) {
        struct frame top = {0};
        o->all = 0;
        for (unsigned i = 0; i < w; i++) {
            bool here = o->first + i < n;
            for (unsigned k = 0; k < 3 && here; k++)
                here = attribute(o, ATTR_THREAD_POSITION_IN_THREADGROUP, k, i) < o->dims[k];
            o->all |= (uint32_t)here << i;
            if (!here) /* never expected */
                o->ended_at[o->first + i] = (struct spot){{0}, 1};
        }
        o->ended = ~o->all;
        o->place.n = 0;
        o->steps = 0;
        if (!o->all)
            continue;
        fill_params(o);
        (void)run(o, &top, o->m->funcs.at[o->a.func].region, o->all);
    }
    if (!o->stop)
        check_gathered(o, o->first);
    o->gathered.n = 0;
    o->n_group++;
}

static void number_nodes(struct oracle *o, uint32_t region)
{
    IR_EACH(o->m, region, id)
    {
        o->order[id] = ++o->n_order;
        for (unsigned k = 0; ir_is_construct(ir_at(o->m, id)->op) && k < ir_n_regions(o->m, id); k++)
            number_nodes(o, ir_region(o->m, id, k));
    }
}

static uint32_t pick(struct oracle *o, uint32_t n)
{
    return (uint32_t)((gen_random(&o->random) >> 32) * n >> 32);
}

static void choose_shape(struct oracle *o, struct shape *s)
{
    static const uint16_t dims[][3] = {{32, 1, 1},  {64, 1, 1}, {1, 1, 1},  {7, 1, 1},  {33, 1, 1}, {96, 1, 1},
                                       {16, 3, 1},  {8, 8, 1},  {5, 7, 1},  {32, 2, 1}, {4, 3, 3},  {2, 2, 8},
                                       {16, 16, 1}, {1, 40, 1}, {1, 4, 8},  {1, 1, 70}, {64, 2, 2}, {32, 1, 2},
                                       {16, 1, 4},  {3, 1, 1},  {256, 1, 1}};
    const uint16_t *const d = dims[pick(o, sizeof dims / sizeof *dims)];
    *s = (struct shape){.width = 1u << pick(o, 6)};
    if (pick(o, 2))
        s->width = 32;
    for (unsigned k = 0; k < 3; k++)
        o->asked[k] = o->dims[k] = s->dims[k] = d[k];
    switch (pick(o, 5)) {
    case 0: /* an edge group of a known size */
        s->edge = true;
        for (unsigned k = 0; k < 3; k++)
            o->dims[k] = 1 + pick(o, d[k]);
        break;
    case 1: /* some sizes unknown, and others asked for */
        for (unsigned k = 0; k < 3; k++) {
            if (pick(o, 2))
                s->dims[k] = 0;
            if (s->dims[k] == 0)
                o->asked[k] += pick(o, 3);
        }
        if ((s->dims[0] && s->dims[1] && s->dims[2]) || o->asked[0] * o->asked[1] * o->asked[2] > 1024)
            memcpy(o->asked, o->dims, sizeof o->asked);
        break;
    case 2:
        if (d[1] == 1 && d[2] == 1) {
            s->dims[0] = 0;
            o->asked[0] += pick(o, 3);
        }
        break;
    }
    for (unsigned k = 0; k < 3; k++)
        o->grid[k] = pick(o, 4) ? o->asked[k] * (1 + pick(o, 5)) + pick(o, 3) : (uint32_t)gen_random(&o->random) | 1;
}

/* One kernel, calls inlined and locals values. */
static void check_kernel(struct mem *mem, const struct ir_module *m, uint32_t func, uint64_t seed, const char *what)
{
    struct oracle *const o = mem_zalloc(mem, sizeof *o);
    o->mem = mem;
    o->m = m;
    o->what = what;
    o->seed = o->random = seed;
    o->loads_uniform = pick(o, 2);
    struct shape s;
    choose_shape(o, &s);
    analysis_run(mem, m, func, &s, o->loads_uniform, &o->a);
    o->leaf = mem_zalloc(mem, sizeof *o->leaf * m->nodes.n);
    o->order = mem_zalloc(mem, sizeof *o->order * m->nodes.n);
    uint32_t n = 0;
    for (uint32_t id = 1; id < m->nodes.n; id++) {
        o->leaf[id] = n;
        n += leaves(m, ir_at(m, id)->type);
        if (n > 1u << 20)
            return;
    }
    o->value = mem_zalloc(mem, sizeof *o->value * (n + 1));
    o->next = mem_zalloc(mem, sizeof *o->next * (n + 1));
    o->seen = mem_zalloc(mem, sizeof *o->seen * SEEN);
    for (uint32_t id = 1; id < m->nodes.n; id++)
        if (ir_at(m, id)->op == OP_CONST)
            for (unsigned i = 0; i < ROW; i++)
                lanes(o, id, 0)[i] = ir_at(m, id)->imm;
    number_nodes(o, m->funcs.at[func].region);
    for (unsigned g = 0; g < 3 && !o->stop; g++)
        run_group(o, (const uint32_t[3]){g * pick(o, 3), g * pick(o, 2), pick(o, 2)});
}

static sk_status check_random(struct mem *mem, uint64_t seed)
{
    struct gen_program p;
    char what[40];
    gen_program(mem, seed, &p);
    (void)snprintf(what, sizeof what, "seed %d", (int)seed);
    sk_error err = {0};
    CHECK_EQ(pass_inline(p.m, p.kernel, 1u << 16, &err), SK_OK);
    CHECK_EQ(pass_run(p.m, seed % 4 == 0 ? "V" : seed % 4 == 1 ? "VEH" : NULL, &err), SK_OK);
    struct mem *const t = mem_temp(mem);
    uint32_t f = 1;
    while (!p.m->funcs.at[f].kernel)
        f++;
    check_kernel(t, p.m, f, seed, what);
    mem_temp_end(t);
    gen_free(&p);
    return SK_OK;
}

/* ---- programs of the other tests ------------------------------------------------------------------------------- */

static unsigned files;

static sk_status check_file(struct mem *mem, const char *path)
{
    static char text[1 << 18];
    FILE *const in = fopen(path, "rb");
    const size_t n = in ? fread(text, 1, sizeof text, in) : 0;
    if (in)
        (void)fclose(in);
    struct ir_module *m = NULL;
    if (!n || ir_parse(mem, text, n, path, &m, NULL) != SK_OK)
        return SK_OK;
    for (uint32_t f = 1; f < m->funcs.n; f++) {
        if (!m->funcs.at[f].kernel)
            continue;
        files++;
        for (uint64_t seed = 0; seed < 10; seed++) {
            struct mem *const t = mem_temp(mem);
            struct ir_module *const one = ir_module_clone(t, m);
            sk_error err = {0};
            if (pass_inline(one, f, 1u << 16, &err) == SK_OK && pass_run(one, seed % 3 ? NULL : "V", &err) == SK_OK)
                check_kernel(t, one, ir_func_by_name(one, strtab_str(&m->strings, m->funcs.at[f].name)), seed, path);
            mem_temp_end(t);
        }
    }
    ir_module_free(m);
    return SK_OK;
}

static void check_folder(struct mem *mem, const char *folder)
{
    DIR *const d = opendir(folder);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        char path[600];
        const size_t n = strlen(e->d_name);
        (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (n > 3 && strcmp(e->d_name + n - 3, ".ir") == 0)
            (void)check_file(mem, path);
    }
    if (d)
        (void)closedir(d);
}

static sk_status all(struct mem *mem, uint64_t from, uint64_t to)
{
    static const char *const folders[] = {"tests/ir", "tests/run", "tests/msl", "tests/bug"};
    if (from == 1)
        for (unsigned k = 0; k < sizeof folders / sizeof *folders; k++)
            check_folder(mem, folders[k]);
    for (uint64_t seed = from; seed < to; seed++)
        TRY(check_random(mem, seed));
    CHECK(from != 1 || files > 50); /* run from the root of the repository */
    return SK_OK;
}

/* Arguments: the first seed, and how many. */
int main(int argc, char **argv)
{
    struct mem mem;
    sk_status status = SK_OK;
    const uint64_t from = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : argc > 1 ? 1 : 400;
    mem_init(&mem, NULL);
    MEM_GUARD(&mem, NULL, status, all(&mem, from, from + n));
    CHECK_EQ(status, SK_OK);
    return check_done();
}
