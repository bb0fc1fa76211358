/* gen_memory.c - statements with locals, memory, and other threads. */
#include "fuzz/gen_internal.h"

/* ---- statements: locals ---------------------------------------------------------------------------------------- */

static void local(struct gen *g)
{
    if (g->vars.n == 0 || (chance(g, 25) && g->vars.n < 30)) {
        const ir_type t = gen_type(g);
        const uint32_t init = gen_value(g, t);
        const uint32_t var = ir_node(&g->b, OP_VAR, t, 1, &init, 0, 0);
        if (chance(g, 60))
            ir_at(g->m, var)->name = ir_string(g->m, (const char *[]){"v", "acc", "w", "best_2"}[roll(g, 4)]);
        VEC_PUSH(g->mem, &g->vars, var);
        return;
    }
    const uint32_t var = g->vars.at[roll(g, g->vars.n)];
    const ir_type t = ir_at(g->m, var)->type;
    if (chance(g, 45))
        gen_op1(g, OP_GET, t, var);
    else
        ir_node(&g->b, OP_SET, TYPE_VOID, 2, (const uint32_t[]){var, gen_value(g, t)}, 0, 0);
}

/* ---- statements: memory ---------------------------------------------------------------------------------------- */

static uint32_t wild_index(struct gen *g)
{
    if (chance(g, 50))
        return ir_const(g->m, TYPE_I64, (uint64_t)-1 - roll(g, 3));
    return ir_const(g->m, TYPE_U32, 0x40000000 + roll(g, 1000));
}

/* The address of an element or of something in it; *t is its type. `wild`: may lie outside. */
static uint32_t address(struct gen *g, const struct memory *x, bool wild, ir_type *t)
{
    /* Where no other thread's elements lie near, any index will do. */
    const bool any = wild && (x->uniform || x->space == SPACE_THREAD) && chance(g, 60);
    uint32_t index = any ? gen_linear(g) : gen_below(g, x->count);
    wild = wild && !any;
    if (x->base) {
        index = ir_at(g->m, index)->type == TYPE_U32 ? index : gen_op1(g, OP_CONVERT, TYPE_U32, index);
        index = gen_op2(g, OP_ADD, TYPE_U32, x->base, index);
    }
    if (wild) {
        const uint32_t far = wild_index(g), near = gen_op1(g, OP_CONVERT, ir_at(g->m, far)->type, index);
        index = chance(g, 50) ? far
                              : gen_node(g, OP_SELECT, ir_at(g->m, far)->type, 3,
                                         (const uint32_t[]){gen_condition(g, false), far, near}, 0, 0);
    }
    uint32_t p =
        gen_node(g, OP_INDEX, ir_at(g->m, x->pointer)->type, 2, (const uint32_t[]){x->pointer, index}, 0, x->elem);
    *t = x->elem;
    while (ir_type_width(*t) != 1 && chance(g, 60)) {
        const ir_type whole = *t;
        const uint32_t n = (uint32_t)ir_type_parts(g->m, whole), k = roll(g, n);
        *t = ir_type_part(g->m, whole, k);
        if (ir_type_at(g->m, whole)->kind == TYPE_KIND_STRUCT)
            p = gen_node(g, OP_FIELD, ir_at(g->m, p)->type, 1, &p, 0, whole | (uint64_t)k << 32);
        else
            p = gen_node(g, OP_INDEX, ir_at(g->m, p)->type, 2, (const uint32_t[]){p, gen_below(g, n)}, 0, *t);
    }
    gen_mark(g, p, x->writable ? MARK_WRITABLE : 0);
    return p;
}

static bool may_be_wild(struct gen *g, bool write)
{
    return (write ? g->p->write_faults : g->p->read_faults) && chance(g, 15);
}

static void load(struct gen *g)
{
    if (g->memories.n == 0)
        return;
    const struct memory x = g->memories.at[roll(g, g->memories.n)];
    ir_type t;
    const uint32_t p = address(g, &x, may_be_wild(g, false), &t);
    const uint32_t id = ir_node(&g->b, OP_LOAD, t, 1, &p, 0, 0);
    gen_push(g, id, x.uniform && gen_same(g, p));
    if (chance(g, 40))
        gen_sink(g, id);
}

void gen_store(struct gen *g)
{
    for (unsigned tries = 0; tries < 6 && g->memories.n; tries++) {
        const struct memory x = g->memories.at[roll(g, g->memories.n)];
        if (!x.writable)
            continue;
        ir_type t;
        const uint32_t p = address(g, &x, may_be_wild(g, true), &t);
        ir_store(&g->b, p, gen_value(g, t));
        return;
    }
}

void gen_wanted(struct gen *g, struct memory *x)
{
    for (unsigned tries = 0; tries < 4 && g->n_callees; tries++) {
        const struct callee *const c = &g->callee[roll(g, g->n_callees)];
        const struct memory *const want = c->n ? &c->memory[roll(g, c->n)] : NULL;
        if (want && want->elem && want->space == x->space) {
            x->elem = want->elem;
            x->count = want->count + roll(g, 3);
        }
    }
}

/* Reads again what was read before, with a write of it in between, perhaps in a construct. */
static void reread(struct gen *g)
{
    uint32_t id = 0;
    for (unsigned tries = 0; tries < 8 && g->values.n && !id; tries++) {
        const uint32_t x = g->values.at[roll(g, g->values.n)];
        if (ir_at(g->m, x)->op == OP_LOAD && g->marks.at[ir_in(g->m, x)[0]] & MARK_WRITABLE)
            id = x;
    }
    if (!id)
        return;
    const struct node x = *ir_at(g->m, id);
    uint32_t again[2];
    again[0] = gen_node(g, OP_LOAD, x.type, 1, x.in, 0, 0);
    if (chance(g, 40)) {
        gen_statements(g, 1);
    } else if (chance(g, 50)) {
        ir_store(&g->b, x.in[0], gen_value(g, x.type));
    } else {
        const uint32_t c = gen_condition(g, false), outer = g->b.region, seen = g->values.n;
        const uint32_t node = ir_construct(&g->b, OP_IF, 1, &c, 2);
        g->b.region = ir_region(g->m, node, 0);
        ir_store(&g->b, x.in[0], gen_value(g, x.type));
        g->b.region = outer;
        g->values.n = seen;
    }
    again[1] = gen_node(g, OP_LOAD, x.type, 1, x.in, 0, 0);
    for (unsigned k = 0; k < 2; k++)
        gen_sink(g, again[k]);
}

static void alloc(struct gen *g)
{
    if (g->memories.n > 12)
        return;
    struct memory x = {.elem = gen_type(g), .count = 1 + roll(g, 5), .space = SPACE_THREAD, .writable = true};
    gen_wanted(g, &x);
    const ir_type whole = x.count == 1 ? x.elem : ir_type_array(g->m, x.elem, x.count);
    x.pointer = ir_node(&g->b, OP_ALLOC, TYPE_POINTER(SPACE_THREAD), 0, NULL, 0, whole);
    gen_push(g, x.pointer, false);
    VEC_PUSH(g->mem, &g->memories, x);
    if (ir_type_class(g->m, x.elem) & CLASS_SU && ir_type_width(x.elem) == 1 && chance(g, 60)) {
        /* The same bytes as other integers. */
        static const uint8_t ints[] = {S_I8, S_U8, S_I16, S_U16, S_I32, S_U32, S_I64, S_U64};
        const ir_type other = ints[roll(g, sizeof ints)];
        const uint64_t bytes = x.count * ir_type_at(g->m, x.elem)->size, size = ir_type_at(g->m, other)->size;
        if (bytes >= size) {
            x.elem = other;
            x.count = bytes / size;
            VEC_PUSH(g->mem, &g->memories, x);
        }
    }
}

/* A value that is the same in all threads, though who only reads the program takes it to differ. */
static void disguise(struct gen *g)
{
    for (unsigned tries = 0; tries < 8 && g->values.n; tries++) {
        const uint32_t x = g->values.at[roll(g, g->values.n)];
        const ir_type t = ir_at(g->m, x)->type;
        if (ir_type_width(t) != 1 || !gen_same(g, x))
            continue;
        const uint32_t room = ir_node(&g->b, OP_ALLOC, TYPE_POINTER(SPACE_THREAD), 0, NULL, 0, t);
        ir_store(&g->b, room, x);
        gen_push(g, ir_node(&g->b, OP_LOAD, t, 1, &room, 0, 0), true);
        return;
    }
}

/* One of two pointers; both reach what the result is said to reach. */
static void choose_pointer(struct gen *g)
{
    if (g->memories.n < 2)
        return;
    const struct memory x = g->memories.at[roll(g, g->memories.n)], y = g->memories.at[roll(g, g->memories.n)];
    if (x.space != y.space || x.elem != y.elem || x.base || y.base)
        return;
    struct memory z = x;
    z.count = x.count < y.count ? x.count : y.count;
    z.writable = x.writable && y.writable;
    z.uniform = false;
    const uint32_t in[3] = {gen_condition(g, false), x.pointer, y.pointer};
    z.pointer = gen_node(g, OP_SELECT, ir_at(g->m, x.pointer)->type, 3, in, 0, 0);
    VEC_PUSH(g->mem, &g->memories, z);
    gen_op2(g, chance(g, 50) ? OP_EQ : OP_NE, TYPE_BOOL, z.pointer, y.pointer);
}

/* ---- statements: threads --------------------------------------------------------------------------------------- */

static bool is_atomic_type(ir_type t)
{
    return t == TYPE_I32 || t == TYPE_U32 || t == TYPE_I64 || t == TYPE_U64 || t == TYPE_F32;
}

static unsigned order_flags(struct gen *g, enum op op)
{
    unsigned order = roll(g, ORDER_COUNT);
    if (op == OP_ATOMIC_LOAD && (order == ORDER_RELEASE || order == ORDER_ACQ_REL))
        order = ORDER_RELAXED;
    if (op == OP_ATOMIC_STORE && (order == ORDER_ACQUIRE || order == ORDER_ACQ_REL))
        order = ORDER_RELAXED;
    return order << NODE_ORDER_SHIFT | roll(g, SCOPE_COUNT) << NODE_SCOPE_SHIFT;
}

/* On an element that nobody else touches, any operation and its old value. */
static void own_atomic(struct gen *g)
{
    static const enum op all[] = {OP_ATOMIC_LOAD, OP_ATOMIC_STORE, OP_ATOMIC_EXCHANGE, OP_ATOMIC_CAS,
                                  OP_ATOMIC_ADD,  OP_ATOMIC_SUB,   OP_ATOMIC_MIN,      OP_ATOMIC_MAX,
                                  OP_ATOMIC_AND,  OP_ATOMIC_OR,    OP_ATOMIC_XOR};
    for (unsigned tries = 0; tries < 6 && g->memories.n; tries++) {
        const struct memory x = g->memories.at[roll(g, g->memories.n)];
        if (!x.writable || x.space != SPACE_DEVICE || !is_atomic_type(x.elem))
            continue;
        const enum op op = all[roll(g, 11)];
        /* Floats have no bits to combine, and a NaN's would be compared. */
        if (x.elem == TYPE_F32 &&
            (op == OP_ATOMIC_CAS || op == OP_ATOMIC_AND || op == OP_ATOMIC_OR || op == OP_ATOMIC_XOR))
            continue;
        ir_type t;
        const uint32_t in[3] = {address(g, &x, may_be_wild(g, true), &t), gen_value(g, x.elem), gen_value(g, x.elem)};
        const uint32_t id = ir_node(&g->b, op, op == OP_ATOMIC_STORE ? TYPE_VOID : x.elem, (unsigned)op_info[op].n, in,
                                    order_flags(g, op), 0);
        if (op != OP_ATOMIC_STORE)
            gen_push(g, id, false);
        return;
    }
}

static void shared_atomic(struct gen *g)
{
    if (g->tallies.n == 0 || !g->kernel)
        return;
    const struct tally x = g->tallies.at[roll(g, g->tallies.n)];
    const uint32_t p = gen_node(g, OP_INDEX, ir_at(g->m, x.pointer)->type, 2,
                                (const uint32_t[]){x.pointer, gen_below(g, x.count)}, 0, x.elem);
    const uint32_t in[2] = {p, gen_value(g, x.elem)};
    ir_node(&g->b, x.op, x.elem, 2, in, order_flags(g, x.op), 0);
}

static void collective(struct gen *g)
{
    if (g->p->masks_edges)
        return;
    const enum op op = g->collective[roll(g, g->n_collective)];
    const struct op_info *const x = &op_info[op];
    uint32_t in[3] = {0};
    ir_type t = TYPE_BOOL;
    if (x->rule == RULE_LANES) {
        t = gen_numeric_type(g, x->classes);
        in[0] = gen_value(g, t);
        in[1] = gen_value(g, t); /* the filling */
        if (x->n > 1) {
            const ir_type lane = gen_scalar_type(g, CLASS_SU);
            in[x->n - 1] = chance(g, 70) ? ir_const(g->m, lane, roll(g, 34)) : gen_value(g, lane);
        }
    } else if (x->n > 0) {
        in[0] = gen_value(g, TYPE_BOOL);
    }
    if (op == OP_SIMD_BALLOT || op == OP_QUAD_BALLOT || op == OP_SIMD_ACTIVE || op == OP_QUAD_ACTIVE)
        t = TYPE_U64;
    const uint32_t id = gen_node(g, op, t, (unsigned)x->n, in, 0, 0);
    if (chance(g, 50))
        gen_sink(g, id);
    if (chance(g, 25)) { /* the same among fewer lanes */
        const uint32_t c = gen_condition(g, false), outer = g->b.region, seen = g->values.n;
        const uint32_t node = ir_construct(&g->b, OP_IF, 1, &c, 2);
        g->b.region = ir_region(g->m, node, 0);
        gen_sink(g, gen_node(g, op, t, (unsigned)x->n, in, 0, 0));
        g->b.region = outer;
        g->values.n = seen;
    }
}

static void barrier(struct gen *g, unsigned memory)
{
    ir_node(&g->b, OP_BARRIER, TYPE_VOID, 0, NULL, memory << NODE_MEMORY_SHIFT, 0);
}

/* Each thread writes its element; after a barrier all read all. */
static void exchange(struct gen *g)
{
    if (!g->uniform || !g->kernel || g->p->masks_edges)
        return;
    if (g->tallies.n && chance(g, 30)) {
        const struct tally x = g->tallies.at[roll(g, g->tallies.n)];
        if (!x.readable)
            return;
        barrier(g, MEMORY_THREADGROUP);
        const uint32_t p = gen_node(g, OP_INDEX, ir_at(g->m, x.pointer)->type, 2,
                                    (const uint32_t[]){x.pointer, gen_below(g, x.count)}, 0, x.elem);
        gen_push(g, ir_node(&g->b, OP_LOAD, x.elem, 1, &p, 0, 0), false);
        barrier(g, MEMORY_THREADGROUP);
        return;
    }
    if (g->exchanges.n == 0)
        return;
    const uint32_t which = roll(g, g->exchanges.n);
    const struct memory x = g->exchanges.at[which];
    g->exchanges.at[which] = g->exchanges.at[--g->exchanges.n]; /* nobody writes it meanwhile */
    barrier(g, MEMORY_THREADGROUP);
    const uint32_t own =
        gen_node(g, OP_INDEX, ir_at(g->m, x.pointer)->type, 2, (const uint32_t[]){x.pointer, g->lane}, 0, x.elem);
    ir_store(&g->b, own, gen_value(g, x.elem));
    barrier(g, MEMORY_THREADGROUP | (chance(g, 20) ? MEMORY_DEVICE : 0));

    const uint32_t n_memories = g->memories.n;
    VEC_PUSH(g->mem, &g->memories, x);
    load(g);
    gen_statements(g, 1 + roll(g, 3));
    g->memories.n = n_memories;
    if (g->uniform)
        barrier(g, MEMORY_THREADGROUP);
    VEC_PUSH(g->mem, &g->exchanges, x);
}

static void fence(struct gen *g)
{
    if (chance(g, 50) && !g->p->masks_edges)
        ir_node(&g->b, OP_SIMDGROUP_BARRIER, TYPE_VOID, 0, NULL, roll(g, 16) << NODE_MEMORY_SHIFT, 0);
    else
        ir_node(&g->b, OP_FENCE, TYPE_VOID, 0, NULL, order_flags(g, OP_FENCE) | roll(g, 16) << NODE_MEMORY_SHIFT, 0);
}

static void call(struct gen *g)
{
    if (g->n_callees == 0)
        return;
    const struct callee *const c = &g->callee[roll(g, g->n_callees)];
    uint32_t in[8];
    for (unsigned k = 0; k < c->n; k++) {
        if (!ir_type_is_pointer(c->type[k])) {
            in[k] = gen_value(g, c->type[k]);
            continue;
        }
        const struct memory *const want = &c->memory[k];
        uint32_t found = 0;
        for (uint32_t i = 0; i < g->memories.n; i++) {
            const struct memory *const x = &g->memories.at[i];
            if (x->elem == want->elem && x->space == want->space && x->count >= want->count && !x->base &&
                (x->writable || !want->writable) && (!found || chance(g, 50)))
                found = x->pointer;
        }
        if (!found)
            return;
        in[k] = found;
    }
    const uint32_t id = ir_node(&g->b, OP_CALL, c->result, c->n, in, 0, c->func);
    if (c->result) {
        gen_push(g, id, false);
        if (chance(g, 50))
            gen_sink(g, id);
    }
}

void gen_statement(struct gen *g)
{
    static const struct gen_kind kind[] = {
        {65, gen_value_statement},
        {16, local},
        {10, load},
        {6, gen_store},
        {5, reread},
        {4, alloc},
        {2, choose_pointer},
        {5, own_atomic},
        {3, shared_atomic},
        {7, collective},
        {5, exchange},
        {1, fence},
        {2, disguise},
        {4, call},
    };
    if (g->exchanging && g->kernel && chance(g, 12))
        chance(g, 80) ? exchange(g) : disguise(g);
    else
        gen_choose(g, kind, sizeof kind / sizeof *kind);
    if (g->values.n && chance(g, 12)) {
        const uint32_t id = g->values.at[g->values.n - 1];
        if (!ir_type_is_pointer(ir_at(g->m, id)->type))
            gen_sink(g, id);
    }
}
