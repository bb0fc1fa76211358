/* address.c - where the lanes of an access lie.
 *
 * An access walks its INDEX and FIELD nodes back to the root and gets a displacement and terms, index times scale. Where lanes
 * lie follows from the shapes of the indices: at one place, in a row, or anywhere. One test decides whether all active lanes
 * are in bounds; most often it compares one index with a number computed at the function's start. What does not pass the
 * test is done lane by lane by helpers.c, with the interpreter's arithmetic. The shape tests may fail where an access is
 * in bounds (an index that wraps within a row, an offset past 2^31): that is slow, never wrong.
 */
#include "cpu/memory.h"

#include "cpu/control.h"

/* ---- regions ---------------------------------------------------------------------------------------------------- */

static uint64_t align_up(uint64_t x, uint64_t align)
{
    return (x + align - 1) / align * align;
}

static uint64_t element_bytes(const struct ir_module *m, ir_type t)
{
    while (ir_type_at(m, t)->kind == TYPE_KIND_ARRAY)
        t = ir_type_at(m, t)->elem;
    return ir_type_at(m, t)->size;
}

static void add_region(struct lower *l, struct cpu_region_info r, uint32_t name, const char *otherwise)
{
    r.name = name ? strtab_str(&l->m->strings, name) : otherwise;
    VEC_PUSH(l->mem, &l->out->region, r);
}

static void find_allocs(struct lower *l, uint32_t region)
{
    IR_EACH(l->m, region, id)
    {
        const struct node *const x = ir_at(l->m, id);
        for (unsigned k = 0; k < x->n; k++)
            l->memory->used[ir_in(l->m, id)[k]] = 1;
        if (x->op == OP_ALLOC) {
            const ir_type t = (ir_type)x->imm;
            struct cpu_region_info r = {.elem = element_bytes(l->m, t), .size = ir_type_at(l->m, t)->size, .node = id};
            l->region_of[id] = l->out->region.n;
            if (ir_type_space(x->type) == SPACE_THREADGROUP) {
                r.kind = CPU_REGION_THREADGROUP;
                r.offset = align_up(l->out->threadgroup_bytes, 16);
                const uint64_t end = r.offset + r.size;
                l->out->threadgroup_bytes = end < UINT32_MAX ? (uint32_t)end : UINT32_MAX;
                add_region(l, r, x->name, "threadgroup memory");
            } else {
                r.kind = CPU_REGION_THREAD;
                r.stride = align_up(r.size, 16);
                add_region(l, r, x->name, "thread memory");
            }
        }
        if (ir_is_construct(x->op))
            for (unsigned k = 0; k < ir_n_regions(l->m, id); k++)
                find_allocs(l, ir_region(l->m, id, k));
    }
}

static void find_regions(struct lower *l)
{
    uint32_t arg = 0;
    add_region(l, (struct cpu_region_info){.kind = CPU_REGION_NULL}, 0, "null");
    for (uint32_t k = 0; k < l->kernel->n_params; k++) {
        const struct param *const p = &l->m->params.at[l->kernel->first_param + k];
        if (p->kind == PARAM_ATTRIBUTE)
            continue;
        if (p->kind == PARAM_BUFFER || p->kind == PARAM_THREADGROUP) {
            l->region_of[p->node] = l->out->region.n;
            add_region(l,
                       (struct cpu_region_info){.kind = p->kind == PARAM_BUFFER ? CPU_REGION_ARG : CPU_REGION_SIZED,
                                                .elem = element_bytes(l->m, p->elem),
                                                .arg = arg},
                       p->name, "a parameter");
        }
        arg++;
    }
    find_allocs(l, l->kernel->region);
}

/* What is written goes to the entry block, or back to the body. Nothing that needs a vector of constants may be. */
static void turn(struct lower *l)
{
    const struct buf b = l->e.body;
    l->e.body = l->e.entry;
    l->e.entry = b;
}

void memory_params(struct lower *l)
{
    struct emit *const e = &l->e;
    if (!l->memory) {
        l->memory = mem_zalloc(l->mem, sizeof *l->memory);
        l->memory->used = mem_zalloc(l->mem, l->m->nodes.n);
        find_regions(l);
        l->memory->n = l->out->region.n;
        l->memory->base = mem_zalloc(l->mem, l->memory->n * sizeof *l->memory->base);
        l->memory->size = mem_zalloc(l->mem, l->memory->n * sizeof *l->memory->size);
        l->memory->thread = mem_zalloc(l->mem, l->memory->n * sizeof *l->memory->thread);
        strtab_init(&l->memory->accesses, l->mem);
        memory_layout(l);
    }
    struct memory *const m = l->memory;
    m->limits.n = 0;
    m->room = 0;
    m->room_bytes = 0;
    turn(l);
    const struct val table = lower_field(l, WORKER(region), E_PTR);
    for (uint32_t r = 0; r < m->n; r++) {
        const struct cpu_region_info *const i = &l->out->region.at[r];
        if (i->kind == CPU_REGION_ARG || i->kind == CPU_REGION_SIZED) {
            const uint64_t at = r * sizeof(struct cpu_region);
            m->base[r] = memory_scalar(l, e_gep(e, table, e_i64(at + offsetof(struct cpu_region, base))), E_PTR);
            m->size[r] = memory_scalar(l, e_gep(e, table, e_i64(at + offsetof(struct cpu_region, size))), E_I64);
        } else {
            m->size[r] = e_i64(i->size);
        }
    }
    turn(l);
    for (uint32_t r = 0; r < m->n; r++) {
        const struct cpu_region_info *const i = &l->out->region.at[r];
        if (i->kind == CPU_REGION_THREADGROUP)
            m->base[r] = e_gep(e, l->threadgroup, e_i64(i->offset));
        else if (i->kind == CPU_REGION_THREAD && m->thread[r].bytes)
            m->thread[r].room = e_room(e, m->thread[r].bytes);
    }
}

struct val address_thread_base(struct lower *l, uint32_t region)
{
    const struct thread_memory *const t = &l->memory->thread[region];
    if (t->room)
        return e_named(E_PTR, false, t->room);
    return e_gep(&l->e, l->private_, e_i64(l->out->region.at[region].offset));
}

/* ---- addresses -------------------------------------------------------------------------------------------------- */

/* The INDEX and FIELD nodes of a pointer, the last first; returns where they begin. */
static uint32_t chain(struct lower *l, uint32_t pointer)
{
    struct memory *const m = l->memory;
    m->chain.n = 0;
    while (ir_at(l->m, pointer)->op == OP_INDEX || ir_at(l->m, pointer)->op == OP_FIELD) {
        VEC_PUSH(l->mem, &m->chain, pointer);
        pointer = ir_in(l->m, pointer)[0];
    }
    return pointer;
}

static uint64_t field_offset(const struct ir_module *m, const struct node *x)
{
    return m->fields.at[ir_type_at(m, (ir_type)x->imm)->first_field + (uint32_t)(x->imm >> 32)].offset;
}

/* The integer that a wider one was converted from without losing anything. */
static uint32_t narrowest(const struct ir_module *m, uint32_t index)
{
    for (;;) {
        const struct node *const x = ir_at(m, index);
        if (x->op != OP_CONVERT)
            return index;
        const struct scalar_info *const to = &scalar_info[x->type];
        const struct scalar_info *const from = &scalar_info[ir_type_scalar(ir_at(m, x->in[0])->type)];
        const bool widens = from->bytes < to->bytes && (from->class_ == CLASS_U || from->class_ == to->class_);
        if (!widens || (from->class_ != CLASS_U && from->class_ != CLASS_S))
            return index;
        index = x->in[0];
    }
}

static struct val first_active(struct lower *l)
{
    if (l->mask.shape == V_CONST)
        return e_i32(0);
    const struct val in[] = {e_bits(&l->e, l->mask), e_false()};
    const struct val x = e_intrinsic(&l->e, "llvm.cttz", E_I32, 2, in);
    return e_bin(&l->e, "and", x, e_i32(l->e.width - 1));
}

static struct val last_active(struct lower *l)
{
    if (l->mask.shape == V_CONST)
        return e_i32(l->e.width - 1);
    const struct val in[] = {e_bits(&l->e, l->mask), e_false()};
    const struct val x = e_intrinsic(&l->e, "llvm.ctlz", E_I32, 2, in);
    return e_bin(&l->e, "and", e_bin(&l->e, "sub", e_i32(31), x), e_i32(l->e.width - 1));
}

struct val memory_high(struct lower *l, struct val x)
{
    return e_is_uniform(x) ? x : e_lane(&l->e, x, last_active(l));
}

static struct val widen(struct emit *e, struct val x, bool is_signed, enum elem to)
{
    if (elem_bits((enum elem)x.elem) > elem_bits(to))
        return e_cast(e, "trunc", x, to);
    return e_cast(e, is_signed ? "sext" : "zext", x, to);
}

static struct term term_of(struct lower *l, uint32_t index, uint64_t scale)
{
    struct emit *const e = &l->e;
    const uint32_t node = narrowest(l->m, index);
    const enum scalar s = (enum scalar)ir_at(l->m, node)->type;
    const struct bounds b = analysis_bounds_active(&l->a, node, 0, l->memory->at);
    struct term t = {.node = node,
                     .all = analysis_bounds(&l->a, node, 0),
                     .scale = scale,
                     .bits = (uint8_t)(scalar_info[s].bytes * 8),
                     .is_signed = scalar_info[s].class_ == CLASS_S,
                     .lo = b.lo,
                     .hi = b.hi,
                     .bounded = !b.wide};
    /* Between phases only the operand itself is sure to be at hand, not what it was converted from. */
    t.x = node == index || l->phases ? lower_in(l, index, 0) : lower_in(l, node, 0);
    t.x = widen(e, t.x, t.is_signed, lower_elem(s));
    if (t.x.shape == V_VARYING) {
        const struct lane_info i = analysis_lane(&l->a, node, 0);
        if (i.uniform <= UNIFORM_S) {
            t.x = control_uniform(l, t.x);
        } else if (i.linear) {
            const struct val lane = first_active(l);
            const struct val x = e_lane(e, t.x, lane);
            const struct val back = e_bin(e, "mul", widen(e, lane, false, (enum elem)t.x.elem),
                                          e_const((enum elem)t.x.elem, (uint64_t)i.stride));
            t.x = e_linear(e_bin(e, "sub", x, back), i.stride);
        }
    }
    if (t.x.shape == V_LINEAR && t.x.stride == 0)
        t.x = e_base(t.x);
    return t;
}

static int64_t constant_index(const struct ir_module *m, uint32_t node, bool *is_signed)
{
    const struct node *const x = ir_at(m, node);
    *is_signed = scalar_info[x->type].class_ == CLASS_S;
    return (int64_t)ir_scalar_eval(OP_CONVERT, (enum scalar)x->type, *is_signed ? S_I64 : S_U64, 0, x->imm, 0, 0);
}

static bool is_far(int64_t x)
{
    return x >= MEMORY_FAR || x <= -MEMORY_FAR;
}

static int64_t far_sum(int64_t a, int64_t b)
{
    const int64_t sum = (int64_t)((uint64_t)a + (uint64_t)b);
    return is_far(a) || is_far(b) || is_far(sum) ? MEMORY_FAR : sum;
}

static int64_t far_product(int64_t index, bool is_signed, uint64_t scale)
{
    int64_t product;
    if ((!is_signed && index < 0) || scale > INT64_MAX || __builtin_mul_overflow(index, (int64_t)scale, &product) ||
        is_far(product))
        return MEMORY_FAR;
    return product;
}

static uint64_t magnitude(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

/* Adds |x| * scale to what all parts of an address may come to; false: it may reach FAR / 2. */
static bool stays_near(uint64_t *sum, uint64_t x, uint64_t scale)
{
    uint64_t product;
    if (__builtin_mul_overflow(x, scale, &product) || product >= MEMORY_TERM_DISP || *sum + product >= MEMORY_TERM_DISP)
        return false;
    *sum += product;
    return true;
}

struct address address_of(struct lower *l, uint32_t pointer)
{
    struct address a = {.pointer = pointer, .root = chain(l, pointer), .tame = true};
    const struct node *const root = ir_at(l->m, a.root);
    a.region = root->op == OP_ZERO ? 0 : l->region_of[a.root] ? l->region_of[a.root] : CPU_REGION_DYNAMIC;
    a.tame = a.region != CPU_REGION_DYNAMIC;
    uint64_t sum = 0;
    for (uint32_t k = l->memory->chain.n; k-- > 0;) {
        const struct node x = *ir_at(l->m, l->memory->chain.at[k]);
        int64_t disp;
        if (x.op == OP_FIELD) {
            disp = (int64_t)field_offset(l->m, &x);
        } else {
            const uint32_t index = narrowest(l->m, x.in[1]);
            const uint64_t scale = ir_type_at(l->m, (ir_type)x.imm)->size;
            if (ir_at(l->m, index)->op == OP_CONST) {
                bool is_signed;
                const int64_t i = constant_index(l->m, index, &is_signed);
                disp = far_product(i, is_signed, scale);
            } else {
                if (a.n == ADDRESS_TERMS) {
                    a.tame = false;
                    a.n++;
                }
                if (a.n > ADDRESS_TERMS)
                    continue;
                struct term *const t = &a.term[a.n++];
                *t = term_of(l, x.in[1], scale);
                a.tame = a.tame && t->bounded && stays_near(&sum, magnitude(t->lo), scale) &&
                         stays_near(&sum, magnitude(t->hi), scale);
                continue;
            }
        }
        a.tame = a.tame && stays_near(&sum, magnitude(disp), 1);
        a.disp = far_sum(a.disp, disp);
    }
    return a;
}

/* ---- offsets as the interpreter has them ------------------------------------------------------------------------ */

static struct val far(struct emit *e, struct val x)
{
    return e_cmp(e, "icmp ugt", e_bin(e, "add", x, e_i64((uint64_t)MEMORY_FAR - 1)),
                 e_i64(2 * ((uint64_t)MEMORY_FAR - 1)));
}

static struct val sum_far(struct emit *e, struct val a, struct val b)
{
    const struct val sum = e_bin(e, "add", a, b);
    return e_select(e, e_or(e, e_or(e, far(e, a), far(e, b)), far(e, sum)), e_i64((uint64_t)MEMORY_FAR), sum);
}

static struct val product_far(struct emit *e, struct val x, bool is_signed, uint64_t scale)
{
    if (scale > INT64_MAX)
        return e_i64((uint64_t)MEMORY_FAR);
    if (scale == 0)
        return is_signed ? e_i64(0)
                         : e_select(e, e_cmp(e, "icmp slt", x, e_i64(0)), e_i64((uint64_t)MEMORY_FAR), e_i64(0));
    const uint64_t most = ((uint64_t)MEMORY_FAR - 1) / scale;
    const struct val near = is_signed ? e_cmp(e, "icmp ule", e_bin(e, "add", x, e_i64(most)), e_i64(2 * most))
                                      : e_cmp(e, "icmp ule", x, e_i64(most));
    return e_select(e, near, e_bin(e, "mul", x, e_i64(scale)), e_i64((uint64_t)MEMORY_FAR));
}

/* The interpreter's pointer while it is put together (interp/address.c). */
struct pointer {
    struct val base; /* V_NONE: none */
    int64_t disp;
    unsigned n;
    bool is_64;
    struct term term[MEMORY_TERMS];
};

static void compute(struct lower *l, struct pointer *p)
{
    struct emit *const e = &l->e;
    struct val x = e_i64((uint64_t)p->disp);
    if (p->is_64)
        x = sum_far(e, x, product_far(e, p->term[0].x, p->term[0].is_signed, p->term[0].scale));
    else
        for (unsigned k = 0; k < p->n; k++)
            x = e_bin(e, "add", x,
                      e_bin(e, "mul", widen(e, p->term[k].x, p->term[k].is_signed, E_I64), e_i64(p->term[k].scale)));
    if (p->base.shape != V_NONE && (p->n || p->disp))
        x = sum_far(e, x, p->base);
    else if (p->base.shape != V_NONE)
        x = p->base;
    *p = (struct pointer){.base = x};
}

static bool is_near(int64_t disp)
{
    return disp >= -MEMORY_TERM_DISP && disp <= MEMORY_TERM_DISP;
}

static void add_disp(struct lower *l, struct pointer *p, int64_t disp)
{
    if (p->n && !p->is_64 && !is_near(far_sum(p->disp, disp)))
        compute(l, p);
    p->disp = far_sum(p->disp, disp);
}

static bool has_room(const struct pointer *p, uint64_t scale)
{
    if (p->n == 0)
        return is_near(p->disp);
    if (p->n == MEMORY_TERMS || p->base.shape != V_NONE || scale > MEMORY_TERM_SCALE || !is_near(p->disp) || p->is_64)
        return false;
    for (unsigned k = 0; k < p->n; k++)
        if (p->term[k].scale > MEMORY_TERM_SCALE)
            return false;
    return true;
}

static void add_index(struct lower *l, struct pointer *p, uint32_t index, uint64_t scale)
{
    const uint32_t node = narrowest(l->m, index);
    if (ir_at(l->m, node)->op == OP_CONST) {
        bool is_signed;
        const int64_t i = constant_index(l->m, node, &is_signed);
        add_disp(l, p, far_product(i, is_signed, scale));
        return;
    }
    struct term t = term_of(l, index, scale);
    const bool narrow = t.bits <= 32 && scale <= MEMORY_FAR_SCALE;
    if (narrow ? !has_room(p, scale) : p->n != 0)
        compute(l, p);
    p->is_64 = !narrow;
    if (p->is_64)
        t.x = widen(&l->e, t.x, t.is_signed, E_I64);
    p->term[p->n++] = t;
}

/* The chain must be that of the address. */
static struct val exact_offset(struct lower *l, const struct address *a)
{
    struct pointer p = {.base = {0}};
    const uint32_t root = chain(l, a->pointer);
    if (a->region == CPU_REGION_DYNAMIC)
        p.base = lower_in(l, root, 0);
    for (uint32_t k = l->memory->chain.n; k-- > 0;) {
        const struct node x = *ir_at(l->m, l->memory->chain.at[k]);
        if (x.op == OP_FIELD)
            add_disp(l, &p, (int64_t)field_offset(l->m, &x));
        else
            add_index(l, &p, x.in[1], ir_type_at(l->m, (ir_type)x.imm)->size);
    }
    compute(l, &p);
    return p.base;
}

/* Lane 0's of linear indices if `first`, then moved on by `lane` in the index's own arithmetic. */
static struct val tame_offset(struct lower *l, const struct address *a, bool first, struct val lane)
{
    struct emit *const e = &l->e;
    struct val sum = e_i64(0);
    for (unsigned k = 0; k < a->n; k++) {
        const struct term *const t = &a->term[k];
        struct val x = t->x;
        if (first && x.shape == V_LINEAR) {
            const enum elem s = (enum elem)x.elem;
            x = e_bin(e, "add", e_base(x), e_bin(e, "mul", widen(e, lane, false, s), e_const(s, (uint64_t)x.stride)));
        }
        sum = e_bin(e, "add", sum, e_bin(e, "mul", widen(e, x, t->is_signed, E_I64), e_i64(t->scale)));
    }
    return e_bin(e, "add", sum, e_i64((uint64_t)a->disp));
}

struct val address_offset(struct lower *l, const struct address *a)
{
    return a->tame ? tame_offset(l, a, false, e_i32(0)) : exact_offset(l, a);
}

struct val address_region(struct lower *l, const struct address *a)
{
    return a->region == CPU_REGION_DYNAMIC ? lower_in(l, a->root, 1) : e_i32(a->region);
}

struct val memory_pointer(struct lower *l, uint32_t node, uint32_t k)
{
    const uint32_t at = l->memory->at;
    l->memory->at = 0; /* a value, not an access: conditions around say nothing */
    const struct address a = address_of(l, node);
    l->memory->at = at;
    return k == 0 ? address_offset(l, &a) : address_region(l, &a);
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

static struct val compute_limit(struct lower *l, const struct limit *k)
{
    struct emit *const e = &l->e;
    const struct val size = l->memory->size[k->region];
    const uint64_t beyond = k->disp + k->extent;
    if (size.shape == V_CONST) {
        uint64_t n = size.bits < beyond || (k->small && size.bits < 4) ? 0 : (size.bits - beyond) / k->scale + 1;
        n = k->most && n > k->most ? k->most : n;
        return e_i64(n > k->span ? n - k->span : 0);
    }
    /* No choices: LLVM would make a second test of each. */
    const struct val in[] = {e_bin(e, "add", size, e_i64(k->scale)), e_i64(beyond)};
    const struct val left = e_intrinsic(e, "llvm.usub.sat", E_I64, 2, in);
    struct val n = k->scale & (k->scale - 1) ? e_bin(e, "udiv", left, e_i64(k->scale))
                   : k->scale > 1            ? e_bin(e, "lshr", left, e_i64((uint64_t)__builtin_ctzll(k->scale)))
                                             : left;
    if (k->most) {
        const struct val both[] = {n, e_i64(k->most)};
        n = e_intrinsic(e, "llvm.umin", E_I64, 2, both);
    }
    if (k->span) {
        const struct val both[] = {n, e_i64(k->span)};
        n = e_intrinsic(e, "llvm.usub.sat", E_I64, 2, both);
    }
    if (k->small)
        n = e_select(e, e_cmp(e, "icmp ult", size, e_i64(4)), e_i64(0), n);
    if (k->align) {
        const uint32_t id = e_id(e);
        e_line(e, "%%v%u = ptrtoint ptr %%v%u to i64", id, l->memory->base[k->region].id);
        const struct val odd = e_bin(e, "and", e_named(E_I64, false, id), e_i64(k->align - 1));
        n = e_select(e, e_cmp(e, "icmp eq", odd, e_i64(0)), n, e_i64(0));
    }
    return n;
}

/* How many values of an index, from 0 on, are in bounds: i64, or a vector of i32. Written at the function's start. */
static struct val limit(struct lower *l, struct limit k)
{
    struct memory *const m = l->memory;
    for (uint32_t i = 0; i < m->limits.n; i++) {
        const struct limit *const q = &m->limits.at[i];
        if (q->region == k.region && q->align == k.align && q->disp == k.disp && q->scale == k.scale &&
            q->extent == k.extent && q->span == k.span && q->most == k.most && q->small == k.small &&
            q->vector == k.vector)
            return q->v;
    }
    if (m->size[k.region].shape == V_CONST) {
        k.v = compute_limit(l, &k);
        if (k.vector)
            k.v = e_cast(&l->e, "trunc", k.v, E_I32);
    } else {
        turn(l);
        k.v = compute_limit(l, &k);
        if (k.vector)
            k.v = e_vary(&l->e, e_cast(&l->e, "trunc", k.v, E_I32));
        turn(l);
    }
    VEC_PUSH(l->mem, &m->limits, k);
    return k.v;
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

#define MOST_STRIDE ((int64_t)1 << 20)
#define MOST_INDEX ((uint64_t)1 << 31)

struct asked { /* an access, while its place is looked for */
    struct lower *l;
    const struct address *a;
    const struct cpu_region_info *r;
    uint64_t extent, size; /* size: 0 if not known here */
    uint32_t align;
    bool small;
};

static bool known_size(const struct cpu_region_info *r)
{
    return r->kind == CPU_REGION_THREADGROUP || r->kind == CPU_REGION_THREAD;
}

/* Are all lanes in bounds by what is known of the indices? */
static bool is_proved(const struct asked *q)
{
    const struct address *const a = q->a;
    if (!known_size(q->r) || !a->tame || q->extent > q->r->size)
        return false;
    int64_t lo = a->disp, hi = a->disp; /* tame: no overflow */
    for (unsigned k = 0; k < a->n; k++) {
        const struct term *const t = &a->term[k];
        lo += t->lo * (int64_t)t->scale;
        hi += t->hi * (int64_t)t->scale;
        const uint64_t across = (uint64_t)t->all.hi - (uint64_t)t->all.lo + q->l->e.width * magnitude(t->x.stride);
        if (t->x.shape == V_LINEAR && t->bits < 64 && (t->all.wide || across >= (uint64_t)1 << t->bits))
            return false; /* it may wrap within a row, from a lane that is not active */
    }
    return lo >= 0 && (uint64_t)hi <= q->r->size - q->extent;
}

static struct val in_lanes(struct lower *l, struct val ok)
{
    struct emit *const e = &l->e;
    if (e_is_uniform(ok))
        return ok;
    return e_all(e, l->mask.shape == V_CONST ? ok : e_or(e, ok, e_not(e, e_vary(e, l->mask))));
}

static struct limit byte_limit(const struct asked *q, uint64_t more, uint64_t most)
{
    return (struct limit){.region = q->a->region,
                          .align = q->align,
                          .scale = 1,
                          .extent = q->extent + more,
                          .most = most,
                          .small = q->small && q->r->kind != CPU_REGION_THREAD};
}

/* Without checks of lanes: are all indices below the limit that gathers set? */
static struct val size_below(const struct asked *q, uint64_t bytes)
{
    const struct val size = q->l->memory->size[q->a->region];
    if (size.shape == V_CONST)
        return size.bits <= bytes && (!q->small || q->r->kind == CPU_REGION_THREAD || size.bits >= 4) ? e_true()
                                                                                                      : e_false();
    struct val ok = e_cmp(&q->l->e, "icmp ule", size, e_i64(bytes));
    if (q->small)
        ok = e_and(&q->l->e, ok, e_cmp(&q->l->e, "icmp uge", size, e_i64(4)));
    return ok;
}

/* i64 offsets of one place, or of each lane, to a place. */
static void by_offset(const struct asked *q, struct spot *p, struct val offset, bool proved)
{
    struct lower *const l = q->l;
    struct emit *const e = &l->e;
    const bool thread = q->r->kind == CPU_REGION_THREAD;
    const struct thread_memory *const t = &l->memory->thread[q->a->region];
    const struct val base = thread ? address_thread_base(l, q->a->region) : l->memory->base[q->a->region];
    if (e_is_uniform(offset)) {
        p->way = thread ? WAY_ROW : WAY_ONE;
        p->stride = thread ? (int64_t)t->lane_stride : 0;
        p->ptr = e_gep(e, base, thread ? e_bin(e, "mul", offset, e_i64(t->spread)) : offset);
        if (!proved && (!l->opt.unchecked || q->align))
            p->fits = e_cmp(e, "icmp ult", offset, limit(l, byte_limit(q, 0, 0)));
        return;
    }
    p->way = WAY_EACH;
    p->ptr = base;
    p->unit = 1;
    if (!proved && l->opt.unchecked && !q->align)
        p->fits = size_below(q, MOST_INDEX);
    else if (!proved) /* past 2^31 bytes the index would be negative */
        p->fits = in_lanes(l, e_cmp(e, "icmp ult", offset, limit(l, byte_limit(q, 0, MOST_INDEX))));
    p->index = e_cast(e, "trunc", e_vary(e, offset), E_I32);
    if (thread)
        p->index =
            e_bin(e, "add", e_bin(e, "mul", p->index, e_const(E_I32, t->spread)), e_ramp(e, E_I32, t->lane_stride));
}

/* The greatest index in bytes from which four are the region's, for gathers of 1 and 2 bytes. */
static struct val last_word(struct lower *l, uint32_t region)
{
    struct emit *const e = &l->e;
    const struct val size = l->memory->size[region];
    if (l->out->region.at[region].kind == CPU_REGION_THREAD) /* followed by room */
        return (struct val){0};
    if (size.shape == V_CONST)
        return e_i32(size.bits < 4 ? 0 : size.bits > MOST_INDEX ? (uint32_t)MOST_INDEX - 4 : (uint32_t)size.bits - 4);
    const struct val in[] = {e_bin(e, "sub", size, e_i64(4)), e_i64(MOST_INDEX - 4)};
    return e_cast(e, "trunc", e_intrinsic(e, "llvm.umin", E_I64, 2, in), E_I32);
}

/* One index that varies: it is compared itself, and gathers take it with its scale. */
static void by_index(const struct asked *q, struct spot *p, bool proved)
{
    struct lower *const l = q->l;
    struct emit *const e = &l->e;
    const struct term *const t = &q->a->term[0];
    const bool thread = q->r->kind == CPU_REGION_THREAD;
    const struct thread_memory *const own = &l->memory->thread[q->a->region];
    const uint64_t scale = thread ? t->scale * own->spread : t->scale, disp = (uint64_t)q->a->disp;
    uint32_t unit = q->small ? 1 : 8;
    while (scale % unit || (thread && own->lane_stride % unit))
        unit /= 2;
    struct limit k = {.region = q->a->region,
                      .disp = disp,
                      .scale = t->scale,
                      .extent = q->extent,
                      .most = (MOST_INDEX - (q->small ? disp + q->extent : 0)) / (scale / unit),
                      .small = q->small && !thread,
                      .vector = true};
    if (disp >= MOST_INDEX / 2 || q->extent >= MOST_INDEX / 2 || !k.most) {
        by_offset(q, p, address_offset(l, q->a), proved);
        return;
    }
    const struct val x = e_vary(e, t->x);
    struct val index = widen(e, x, t->is_signed, E_I32);
    if (!proved) {
        if (l->opt.unchecked && !q->align) {
            p->fits = size_below(q, k.most * t->scale);
        } else if (t->bits == 64) {
            k.vector = false;
            p->fits = in_lanes(l, e_cmp(e, "icmp ult", x, limit(l, k)));
        } else {
            p->fits = in_lanes(l, e_cmp(e, "icmp ult", index, limit(l, k)));
        }
    }
    index = e_bin(e, "mul", index, e_const(E_I32, scale / unit));
    struct val base = thread ? address_thread_base(l, q->a->region) : l->memory->base[q->a->region];
    if (thread)
        index = e_bin(e, "add", index, e_ramp(e, E_I32, own->lane_stride / unit));
    if (q->small)
        index = e_bin(e, "add", index, e_const(E_I32, thread ? disp * own->spread : disp));
    else
        base = e_gep(e, base, e_i64(thread ? disp * own->spread : disp));
    p->way = WAY_EACH;
    p->ptr = base;
    p->unit = unit;
    p->index = e_vary(e, index);
}

static int64_t row_stride(const struct address *a)
{
    int64_t sum = 0;
    for (unsigned k = 0; k < a->n; k++) {
        const struct val x = a->term[k].x;
        if (x.shape != V_LINEAR)
            continue;
        if (x.stride > MOST_STRIDE || x.stride < -MOST_STRIDE || a->term[k].scale > (uint64_t)MOST_STRIDE)
            return INT64_MAX;
        sum += x.stride * (int64_t)a->term[k].scale;
    }
    return sum > MOST_STRIDE || sum < -MOST_STRIDE ? INT64_MAX : sum;
}

/* One index, uniform or linear. */
static void one_row(const struct asked *q, struct spot *p, bool proved)
{
    struct lower *const l = q->l;
    struct emit *const e = &l->e;
    const struct term *const t = &q->a->term[0];
    const bool full = l->mask.shape == V_CONST, linear = t->x.shape == V_LINEAR, down = linear && t->x.stride < 0;
    const bool test = !proved && (!l->opt.unchecked || q->align);
    const uint64_t lanes = l->e.width - 1, span = linear ? lanes * magnitude(t->x.stride) : 0;
    const unsigned bits = t->bits - (t->is_signed ? 1u : 0u);
    struct limit k = {.region = q->a->region,
                      .align = q->align,
                      .disp = (uint64_t)q->a->disp,
                      .scale = t->scale,
                      .extent = q->extent,
                      .most = linear && bits < 62 ? (uint64_t)1 << bits : 0};
    const struct val at = linear && !full ? first_active(l) : e_i32(0);
    struct val x = t->x;
    if (linear) {
        const enum elem s = (enum elem)x.elem;
        x = e_bin(e, "add", e_base(x), e_bin(e, "mul", widen(e, at, false, s), e_const(s, (uint64_t)x.stride)));
    }
    x = widen(e, x, t->is_signed, E_I64);
    if (test && (full || !linear)) {
        k.span = span;
        const struct val low = down ? e_bin(e, "sub", x, e_i64(span)) : x;
        p->fits = e_cmp(e, "icmp ult", low, limit(l, k));
    } else if (test) {
        const struct val n = widen(e, e_bin(e, "sub", last_active(l), at), false, E_I64);
        const struct val end = e_bin(e, "add", x, e_bin(e, "mul", n, e_i64((uint64_t)t->x.stride)));
        p->fits = e_cmp(e, "icmp ult", end, limit(l, k));
        if (down || t->is_signed || t->bits == 64)
            p->fits = e_and(e, p->fits, e_cmp(e, "icmp ult", x, limit(l, k)));
    }
    p->way = linear ? WAY_ROW : WAY_ONE;
    p->stride = linear ? t->x.stride * (int64_t)t->scale : 0;
    struct val off = e_bin(e, "mul", x, e_i64(t->scale));
    if (linear)
        off = e_bin(e, "sub", off, e_bin(e, "mul", widen(e, at, false, E_I64), e_i64((uint64_t)p->stride)));
    p->ptr = e_gep(e, e_gep(e, l->memory->base[q->a->region], off), e_i64((uint64_t)q->a->disp));
}

/* Several tame terms, uniform or linear. */
static void many_row(const struct asked *q, struct spot *p, bool proved)
{
    struct lower *const l = q->l;
    struct emit *const e = &l->e;
    const struct address *const a = q->a;
    const bool full = l->mask.shape == V_CONST;
    const struct val at = full ? e_i32(0) : first_active(l);
    const struct val n = widen(e, e_bin(e, "sub", last_active(l), at), false, E_I64);
    p->way = WAY_ROW;
    p->stride = row_stride(a);
    const struct val first = tame_offset(l, a, true, at);
    for (unsigned k = 0; k < a->n && !proved; k++) {
        const struct term *const t = &a->term[k];
        if (t->x.shape != V_LINEAR || t->bits == 64)
            continue;
        /* the last active lane's index without wrapping */
        const enum elem s = (enum elem)t->x.elem;
        const struct val x =
            e_bin(e, "add", e_base(t->x), e_bin(e, "mul", widen(e, at, false, s), e_const(s, (uint64_t)t->x.stride)));
        struct val end =
            e_bin(e, "add", widen(e, x, t->is_signed, E_I64), e_bin(e, "mul", n, e_i64((uint64_t)t->x.stride)));
        if (t->is_signed)
            end = e_bin(e, "add", end, e_i64((uint64_t)1 << (t->bits - 1)));
        p->fits = e_and(e, p->fits, e_cmp(e, "icmp ult", end, e_i64((uint64_t)1 << t->bits)));
    }
    if (!proved && (!l->opt.unchecked || q->align)) {
        const struct val way = e_bin(e, "mul", n, e_i64((uint64_t)p->stride));
        if (full) {
            const struct val low = p->stride < 0 ? e_bin(e, "add", first, way) : first;
            p->fits =
                e_and(e, p->fits,
                      e_cmp(e, "icmp ult", low, limit(l, byte_limit(q, (l->e.width - 1) * magnitude(p->stride), 0))));
        } else {
            const struct val most = limit(l, byte_limit(q, 0, 0));
            p->fits = e_and(e, p->fits, e_cmp(e, "icmp ult", first, most));
            p->fits = e_and(e, p->fits, e_cmp(e, "icmp ult", e_bin(e, "add", first, way), most));
        }
    }
    const struct val back = e_bin(e, "mul", widen(e, at, false, E_I64), e_i64((uint64_t)p->stride));
    p->ptr = e_gep(e, l->memory->base[a->region], e_bin(e, "sub", first, back));
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* The distance between lanes is a multiple of this; 0: there is none. */
static uint64_t distance(const struct address *a)
{
    uint64_t d = 0;
    for (unsigned k = 0; k < a->n && k < ADDRESS_TERMS; k++)
        if (!e_is_uniform(a->term[k].x))
            d = gcd(d, a->term[k].scale);
    return d;
}

uint64_t address_row(const struct lower *l, const struct address *a)
{
    if (l->mask.shape != V_CONST || a->n != 1 || a->disp < 0 || a->term[0].x.shape != V_LINEAR ||
        a->region == CPU_REGION_DYNAMIC || l->out->region.at[a->region].kind == CPU_REGION_THREAD)
        return 0;
    const int64_t stride = row_stride(a);
    return stride > 0 && stride != INT64_MAX ? (uint64_t)stride : 0;
}

struct spot address_place(struct lower *l, const struct address *a, uint64_t wide, uint32_t align)
{
    struct memory *const m = l->memory;
    struct spot p = {.unit = 1, .fits = e_true(), .spread = 1, .apart = true};
    if (a->region == CPU_REGION_DYNAMIC || a->region == 0) {
        p.fits = e_false();
        return p;
    }
    struct asked q = {l, a, &l->out->region.at[a->region], m->extent, 0, align, false};
    if (wide)
        q.extent = wide - (uint64_t)a->disp % wide;
    const bool thread = q.r->kind == CPU_REGION_THREAD;
    unsigned linear = 0, varying = 0;
    for (unsigned k = 0; k < a->n && k < ADDRESS_TERMS; k++) {
        linear += a->term[k].x.shape == V_LINEAR;
        varying += a->term[k].x.shape == V_VARYING;
    }
    const bool single = a->n == 1 && a->disp >= 0 && a->disp < MEMORY_TERM_DISP && a->term[0].scale > 0 &&
                        a->term[0].scale < (uint64_t)1 << 40;
    /* What fails the test of a uniform index must be out of bounds, as an index below 0 is not if it comes to no offset
     * below 0. */
    const bool exact = single && (a->disp == 0 || !a->term[0].is_signed || (a->term[0].bounded && a->term[0].lo >= 0));
    const int64_t stride = row_stride(a);
    bool row = !varying && linear && !thread && stride != INT64_MAX;
    for (uint32_t k = 0; k < m->cells.n; k++) {
        const int64_t bytes = m->cells.at[k].bytes;
        q.small = q.small || bytes < 4;
        if (bytes < 4 && !wide && stride != bytes && stride != -bytes)
            row = false; /* gathered as words, which takes an index */
    }
    q.small = q.small && (varying || linear) && !row;
    const bool proved = is_proved(&q) && !(q.small && !thread && q.r->size < 4);
    if (thread) {
        p.spread = m->thread[a->region].spread;
        if ((q.r->size + 16) * l->e.width >= MOST_INDEX) {
            p.fits = e_false();
            return p;
        }
    }
    if (single && !varying && !thread && (linear ? row : exact))
        one_row(&q, &p, proved);
    else if (single && (varying || linear))
        by_index(&q, &p, proved);
    else if (row && a->tame)
        many_row(&q, &p, proved);
    else
        by_offset(&q, &p, address_offset(l, a), proved);
    if (q.small)
        p.last = last_word(l, a->region);
    if (thread)
        return p;
    if (p.way == WAY_EACH)
        p.apart = a->n <= ADDRESS_TERMS && distance(a) >= m->extent;
    else if (p.way == WAY_ROW)
        p.apart = magnitude(p.stride) >= m->extent;
    return p;
}
