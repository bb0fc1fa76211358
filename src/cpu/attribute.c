/* attribute.c - positions and sizes for the lanes of a bundle; the width of bundles. */
#include "cpu/lower.h"

/* ---- width ------------------------------------------------------------------------------------------------------ */

struct traits {
    bool simd, quad;
    unsigned accumulators; /* the most parameters of one loop */
};

static void look(const struct ir_module *m, uint32_t region, struct traits *t)
{
    IR_EACH(m, region, id)
    {
        const struct node *const x = ir_at(m, id);
        t->simd = t->simd || (x->op >= OP_SIMD_SUM && x->op < OP_QUAD_SUM) || x->op == OP_SIMDGROUP_BARRIER;
        t->quad = t->quad || (x->op >= OP_QUAD_SUM && x->op <= OP_QUAD_ACTIVE);
        if (x->op == OP_LOOP && x->n > t->accumulators)
            t->accumulators = x->n;
        if (ir_is_construct(x->op))
            for (unsigned r = 0; r < ir_n_regions(m, id); r++)
                look(m, ir_region(m, id, r), t);
    }
}

/* Past this many values carried round a loop, two vector registers for each would not fit. */
#define MANY_ACCUMULATORS 12u

uint32_t attribute_width(const struct ir_module *m, uint32_t func, const struct cpu_options *o)
{
    struct traits t = {0};
    look(m, m->funcs.at[func].region, &t);
    if (t.simd)
        return 32;
    if (o->width)
        return t.quad && o->width < 4 ? 4 : o->width;
    uint32_t width = o->most ? o->most : 32;
    const uint32_t x = o->dims[0], n = x * o->dims[1] * o->dims[2];
    const bool line = o->dims[1] == 1 && o->dims[2] == 1;
    if (t.accumulators >= MANY_ACCUMULATORS && width > 16)
        width = 16;
    while (n && width / 2 >= n)
        width /= 2;
    if (x && !line)
        for (uint32_t w = width; w >= 8; w /= 2)
            if (x % w == 0) {
                width = w;
                break;
            }
    return t.quad && width < 4 ? 4 : width;
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static struct val op2(struct lower *l, enum op op, struct val a, struct val b)
{
    return lower_scalar(l, op, S_U32, 0, a, b, b);
}

static struct val div_up(struct lower *l, struct val a, uint32_t b)
{
    return op2(l, OP_DIV_TRUNC, e_bin(&l->e, "add", a, e_i32(b - 1)), e_i32(b));
}

static struct val product(struct lower *l, const struct val *d)
{
    return e_bin(&l->e, "mul", e_bin(&l->e, "mul", d[0], d[1]), d[2]);
}

struct val attribute_threads(struct lower *l)
{
    return product(l, l->dims);
}

/* Linear index in the threadgroup. */
static struct val thread_index(struct lower *l)
{
    return e_linear(l->first_thread, 1);
}

/* Position along k in a threadgroup of l->opt.dims, or of l->dims where those are not constant. */
static struct val position(struct lower *l, unsigned k)
{
    const uint32_t *const d = l->opt.dims;
    struct emit *const e = &l->e;
    if (d[k] == 1)
        return e_i32(0);
    const struct val i = thread_index(l);
    if (d[1] == 1 && d[2] == 1)
        return k == 0 ? i : e_i32(0);
    if (d[0] && d[0] % e->width == 0) { /* a bundle lies in one row */
        const struct val row = op2(l, OP_DIV_TRUNC, l->first_thread, e_i32(d[0]));
        if (k == 0)
            return e_linear(op2(l, OP_REM_TRUNC, l->first_thread, e_i32(d[0])), 1);
        if (k == 1)
            return d[2] == 1 ? row : op2(l, OP_REM_TRUNC, row, l->dims[1]);
        return op2(l, OP_DIV_TRUNC, row, l->dims[1]);
    }
    if (k == 0)
        return op2(l, OP_REM_TRUNC, i, l->dims[0]);
    const struct val row = op2(l, OP_DIV_TRUNC, i, l->dims[0]);
    if (k == 1)
        return d[2] == 1 ? row : op2(l, OP_REM_TRUNC, row, l->dims[1]);
    return op2(l, OP_DIV_TRUNC, row, l->dims[1]);
}

struct val attribute_lower(struct lower *l, enum attribute a, unsigned k)
{
    struct emit *const e = &l->e;
    switch (a) {
    case ATTR_THREAD_POSITION_IN_GRID:
        return e_bin(e, "add", e_bin(e, "mul", l->group[k], l->asked[k]), position(l, k));
    case ATTR_THREADS_PER_GRID: return l->grid[k];
    case ATTR_THREAD_POSITION_IN_THREADGROUP: return position(l, k);
    case ATTR_THREADGROUP_POSITION_IN_GRID: return l->group[k];
    case ATTR_THREADS_PER_THREADGROUP: return l->dims[k];
    case ATTR_DISPATCH_THREADS_PER_THREADGROUP: return l->asked[k];
    case ATTR_THREADGROUPS_PER_GRID: return l->groups[k];
    case ATTR_THREAD_INDEX_IN_THREADGROUP: return thread_index(l);
    case ATTR_THREAD_INDEX_IN_SIMDGROUP: return e_linear(e_bin(e, "and", l->first_thread, e_i32(31)), 1);
    case ATTR_SIMDGROUP_INDEX_IN_THREADGROUP: return e_bin(e, "lshr", l->first_thread, e_i32(5));
    case ATTR_SIMDGROUPS_PER_THREADGROUP: return div_up(l, product(l, l->dims), 32);
    case ATTR_DISPATCH_SIMDGROUPS_PER_THREADGROUP: return div_up(l, product(l, l->asked), 32);
    case ATTR_THREADS_PER_SIMDGROUP:
    case ATTR_THREAD_EXECUTION_WIDTH: return e_i32(32);
    case ATTR_THREAD_INDEX_IN_QUADGROUP: return e_bin(e, "and", thread_index(l), e_i32(3));
    case ATTR_QUADGROUP_INDEX_IN_THREADGROUP: return e_bin(e, "lshr", thread_index(l), e_i32(2));
    case ATTR_QUADGROUPS_PER_THREADGROUP: return div_up(l, product(l, l->dims), 4);
    case ATTR_DISPATCH_QUADGROUPS_PER_THREADGROUP: return div_up(l, product(l, l->asked), 4);
    case ATTR_NONE:
    case ATTR_COUNT: break;
    }
    return e_i32(0);
}

/* Lanes past the end of the threadgroup, or of the part of it that an edge leaves, do not exist. */
struct val attribute_mask(struct lower *l)
{
    struct emit *const e = &l->e;
    const uint32_t *const d = l->opt.dims;
    const uint32_t n = d[0] * d[1] * d[2];
    if (l->opt.edge) {
        struct val mask = n % e->width == 0 ? e_true() : e_cmp(e, "icmp ult", thread_index(l), e_i32(n));
        for (unsigned k = 0; k < 3; k++)
            if (d[k] != 1)
                mask =
                    e_and(e, mask, e_cmp(e, "icmp ult", position(l, k), lower_field(l, WORKER(dims) + 4 * k, E_I32)));
        return mask;
    }
    if (n && n % e->width == 0)
        return e_true();
    return e_vary(e, e_cmp(e, "icmp ult", thread_index(l), product(l, l->dims)));
}
