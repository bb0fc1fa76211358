/* memory.c - loads, stores and allocs. See address.c for where their lanes lie. */
#include "cpu/memory.h"

/* ---- cells ------------------------------------------------------------------------------------------------------ */

void memory_cells(struct lower *l, ir_type t)
{
    struct memory *const m = l->memory;
    const uint32_t n = lower_leaves(l->m, t);
    m->cells.n = 0;
    m->extent = 0;
    for (uint32_t k = 0; k < n; k++) {
        struct cell c = {.leaf = k};
        enum scalar s = S_VOID;
        const enum elem e = lower_leaf_elem(l->m, t, k, &c.offset, &s);
        if (s == S_VOID && e != E_I64)
            continue; /* the second half of a pointer */
        c.scalar = (uint8_t)s;
        c.elem = (uint8_t)(s == S_BOOL ? E_I8 : e);
        c.bytes = (uint8_t)(elem_bits((enum elem)c.elem) / 8);
        VEC_PUSH(l->mem, &m->cells, c);
        m->extent = m->extent < c.offset + c.bytes ? c.offset + c.bytes : m->extent;
    }
}

/* What memory holds to leaves. */
static void set_leaves(struct lower *l, uint32_t node, const struct cell *c, struct val x)
{
    struct emit *const e = &l->e;
    if (c->scalar == S_BOOL) {
        lower_set(l, node, c->leaf, e_cmp(e, "icmp ne", x, e_const(E_I8, 0)));
    } else if (c->scalar == S_VOID) {
        const struct val up = e_i64(64 - MEMORY_HANDLE_BITS);
        const struct val region = e_cast(e, "trunc", e_bin(e, "lshr", x, e_i64(MEMORY_HANDLE_BITS)), E_I32);
        lower_set(l, node, c->leaf, e_bin(e, "ashr", e_bin(e, "shl", x, up), up));
        lower_set(l, node, c->leaf + 1,
                  e_select(e, e_cmp(e, "icmp ult", region, e_i32(l->memory->n)), region, e_i32(0)));
    } else {
        lower_set(l, node, c->leaf, x);
    }
}

static struct val from_leaves(struct lower *l, uint32_t node, const struct cell *c)
{
    struct emit *const e = &l->e;
    struct val x = lower_in(l, node, c->leaf);
    if (c->scalar == S_BOOL)
        return e_cast(e, "zext", x, E_I8);
    if (c->scalar != S_VOID)
        return x;
    const uint64_t edge = (uint64_t)1 << (MEMORY_HANDLE_BITS - 1);
    const struct val region = e_cast(e, "zext", lower_in(l, node, c->leaf + 1), E_I64);
    const struct val fits = e_cmp(e, "icmp ult", e_bin(e, "add", x, e_i64(edge)), e_i64(2 * edge));
    x = e_bin(e, "and", e_select(e, fits, x, e_i64(0 - edge)), e_i64(2 * edge - 1));
    return e_bin(e, "or", x, e_bin(e, "shl", region, e_i64(MEMORY_HANDLE_BITS)));
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static struct val named(struct lower *l, enum elem t, bool varying)
{
    return e_named(t, varying, e_id(&l->e));
}

static const char *suffix(enum elem t)
{
    static const char *const name[E_COUNT] = {
        [E_I1] = "i1", [E_I8] = "i8", [E_I16] = "i16", [E_I32] = "i32", [E_I64] = "i64", [E_F32] = "f32"};
    return name[t];
}

static struct val load_text(struct lower *l, struct val ptr, enum elem t, bool varying)
{
    char type[24];
    const struct val x = named(l, t, varying);
    e_line(&l->e, "%%v%u = load %s, ptr %%v%u, align 1", x.id, e_type_name(&l->e, t, varying, type), ptr.id);
    return x;
}

static void store_text(struct lower *l, struct val ptr, struct val x)
{
    char type[24];
    struct buf b;
    buf_init(&b, l->mem);
    e_operand(&l->e, &b, x);
    e_line(&l->e, "store %s %s, ptr %%v%u, align 1", e_type_name(&l->e, (enum elem)x.elem, x.shape == V_VARYING, type),
           buf_text(&b), ptr.id);
    buf_free(&b);
}

struct val memory_scalar(struct lower *l, struct val ptr, enum elem t)
{
    return load_text(l, ptr, t, false);
}

void memory_scalar_put(struct lower *l, struct val ptr, struct val x)
{
    store_text(l, ptr, x);
}

static struct val in_room(struct lower *l, uint32_t room, uint64_t at)
{
    return e_gep(&l->e, e_named(E_PTR, false, room), e_i64(at));
}

void memory_raw_put(struct lower *l, uint32_t room, uint64_t at, struct val x)
{
    store_text(l, in_room(l, room, at), e_vary(&l->e, x));
}

struct val memory_raw_get(struct lower *l, uint32_t room, uint64_t at, enum elem t, bool varying)
{
    return load_text(l, in_room(l, room, at), t, varying);
}

uint32_t memory_room(struct lower *l, uint64_t bytes)
{
    struct memory *const m = l->memory;
    if (m->room_bytes < bytes) {
        m->room_bytes = (bytes + 511) & ~(uint64_t)511;
        m->room = e_room(&l->e, m->room_bytes);
    }
    return m->room;
}

/* Lanes in their order, as a loop over the set bits of the mask, or one after the other. */
void memory_lanes(struct lower *l, void (*body)(struct lower *l, struct val lane, void *data), void *data)
{
    struct emit *const e = &l->e;
    if (l->mask.shape == V_CONST) {
        for (uint32_t k = 0; k < e->width; k++)
            body(l, e_i32(k), data);
        return;
    }
    const struct slot left = e_slot(e, E_I32, false);
    const uint32_t head = e_block(e), end = e_block(e);
    e_put(e, left, e_bits(e, l->mask));
    e_place(e, head);
    const struct val bits = e_get(e, left);
    const struct val in[] = {bits, e_false()};
    const struct val lane = e_bin(e, "and", e_intrinsic(e, "llvm.cttz", E_I32, 2, in), e_i32(e->width - 1));
    body(l, lane, data);
    const struct val rest = e_and(e, bits, e_bin(e, "sub", bits, e_i32(1)));
    e_put(e, left, rest);
    e_branch(e, e_cmp(e, "icmp ne", rest, e_i32(0)), head, end, ODDS_LIKELY);
    e_place(e, end);
}

/* ---- one cell by the fast way ----------------------------------------------------------------------------------- */

static struct val masked_load(struct lower *l, struct val ptr, enum elem t, struct val mask)
{
    struct emit *const e = &l->e;
    if (mask.shape == V_CONST)
        return load_text(l, ptr, t, true);
    char type[24], line[160];
    (void)e_type_name(e, t, true, type);
    const struct val x = named(l, t, true);
    (void)snprintf(line, sizeof line, "%s @llvm.masked.load.v%u%s.p0(ptr, i32, <%u x i1>, %s)", type, e->width,
                   suffix(t), e->width, type);
    e_declare(e, line);
    e_line(e, "%%v%u = call %s @llvm.masked.load.v%u%s.p0(ptr %%v%u, i32 1, <%u x i1> %%v%u, %s zeroinitializer)", x.id,
           type, e->width, suffix(t), ptr.id, e->width, e_vary(e, mask).id, type);
    return x;
}

static void masked_store(struct lower *l, struct val ptr, struct val x, struct val mask)
{
    struct emit *const e = &l->e;
    x = e_vary(e, x);
    if (mask.shape == V_CONST) {
        store_text(l, ptr, x);
        return;
    }
    char type[24], line[160];
    const enum elem t = (enum elem)x.elem;
    (void)e_type_name(e, t, true, type);
    (void)snprintf(line, sizeof line, "void @llvm.masked.store.v%u%s.p0(%s, ptr, i32, <%u x i1>)", e->width, suffix(t),
                   type, e->width);
    e_declare(e, line);
    e_line(e, "call void @llvm.masked.store.v%u%s.p0(%s %%v%u, ptr %%v%u, i32 1, <%u x i1> %%v%u)", e->width, suffix(t),
           type, x.id, ptr.id, e->width, e_vary(e, mask).id);
}

/* Pointers of all lanes. */
static struct val pointers(struct lower *l, struct val ptr, struct val index, unsigned unit)
{
    struct emit *const e = &l->e;
    const struct val x = named(l, E_PTR, true);
    index = e_vary(e, index);
    e_line(e, "%%v%u = getelementptr i%u, ptr %%v%u, <%u x i32> %%v%u", x.id, unit * 8, ptr.id, e->width, index.id);
    return x;
}

static struct val gather(struct lower *l, struct val at, enum elem t, struct val mask)
{
    struct emit *const e = &l->e;
    char type[24], line[200];
    (void)e_type_name(e, t, true, type);
    mask = e_vary(e, mask);
    const struct val x = named(l, t, true);
    (void)snprintf(line, sizeof line, "%s @llvm.masked.gather.v%u%s.v%up0(<%u x ptr>, i32, <%u x i1>, %s)", type,
                   e->width, suffix(t), e->width, e->width, e->width, type);
    e_declare(e, line);
    e_line(
        e,
        "%%v%u = call %s @llvm.masked.gather.v%u%s.v%up0(<%u x ptr> %%v%u, i32 1, <%u x i1> %%v%u, %s zeroinitializer)",
        x.id, type, e->width, suffix(t), e->width, e->width, at.id, e->width, mask.id, type);
    return x;
}

static void scatter(struct lower *l, struct val at, struct val x, struct val mask)
{
    struct emit *const e = &l->e;
    char type[24], line[200];
    const enum elem t = (enum elem)x.elem;
    (void)e_type_name(e, t, true, type);
    mask = e_vary(e, mask);
    x = e_vary(e, x);
    (void)snprintf(line, sizeof line, "void @llvm.masked.scatter.v%u%s.v%up0(%s, <%u x ptr>, i32, <%u x i1>)", e->width,
                   suffix(t), e->width, type, e->width, e->width);
    e_declare(e, line);
    e_line(e, "call void @llvm.masked.scatter.v%u%s.v%up0(%s %%v%u, <%u x ptr> %%v%u, i32 1, <%u x i1> %%v%u)",
           e->width, suffix(t), e->width, type, x.id, e->width, at.id, e->width, mask.id);
}

/* Machines gather words only: of the four bytes that hold the cell, those that it is. */
static struct val gather_small(struct lower *l, const struct spot *p, const struct cell *c, struct val mask)
{
    struct emit *const e = &l->e;
    struct val at = e_bin(e, "add", e_vary(e, p->index), e_const(E_I32, c->offset * p->spread)), shift = {0};
    if (p->last.shape != V_NONE) {
        const struct val in[] = {at, p->last};
        const struct val low = e_intrinsic(e, "llvm.umin", E_I32, 2, in);
        shift = e_bin(e, "and", e_bin(e, "shl", e_bin(e, "sub", at, low), e_i32(3)), e_i32(31));
        at = low;
    }
    struct val x = gather(l, pointers(l, p->ptr, at, 1), E_I32, mask);
    if (shift.shape != V_NONE)
        x = e_bin(e, "lshr", x, shift);
    return e_cast(e, "trunc", x, (enum elem)c->elem);
}

struct one_by_one {
    struct val ptr, index, x; /* index: V_NONE: lane * stride */
    uint64_t stride;
    uint32_t room;
    unsigned unit;
};

static void put_lane(struct lower *l, struct val lane, void *data)
{
    const struct one_by_one *const o = data;
    struct emit *const e = &l->e;
    const struct val wide = e_cast(e, "zext", lane, E_I64), base = e_named(E_PTR, false, o->room);
    struct val at, x = o->x;
    if (o->index.shape == V_NONE) {
        at = e_bin(e, "mul", wide, e_i64(o->stride));
    } else {
        const struct val from = e_gep(e, base, e_bin(e, "mul", wide, e_i64(4)));
        at = e_bin(e, "mul", e_cast(e, "zext", load_text(l, from, E_I32, false), E_I64), e_i64(o->unit));
    }
    if (!e_is_uniform(x)) {
        const struct val from = e_gep(e, base,
                                      e_bin(e, "add", e_bin(e, "mul", wide, e_i64(elem_bits((enum elem)x.elem) / 8)),
                                            e_i64(4 * (uint64_t)e->width)));
        x = load_text(l, from, (enum elem)x.elem, false);
    }
    store_text(l, e_gep(e, o->ptr, at), x);
}

static void put_one_by_one(struct lower *l, struct one_by_one o)
{
    o.room = memory_room(l, 12 * (uint64_t)l->e.width);
    if (o.index.shape != V_NONE)
        memory_raw_put(l, o.room, 0, o.index);
    if (!e_is_uniform(o.x))
        memory_raw_put(l, o.room, 4 * (uint64_t)l->e.width, o.x);
    memory_lanes(l, put_lane, &o);
}

static void reversal(const struct lower *l, int *lane)
{
    for (unsigned k = 0; k < l->e.width; k++)
        lane[k] = (int)(l->e.width - 1 - k);
}

static struct val row_cell(struct lower *l, const struct spot *p, const struct cell *c, struct val ptr, struct val x,
                           struct val mask)
{
    struct emit *const e = &l->e;
    const enum elem t = (enum elem)c->elem;
    const bool load = x.shape == V_NONE;
    int lane[32];
    if (p->stride == c->bytes) {
        if (load)
            return masked_load(l, ptr, t, mask);
        masked_store(l, ptr, x, mask);
        return x;
    }
    if (p->stride == -(int64_t)c->bytes) {
        reversal(l, lane);
        ptr = e_gep(e, ptr, e_i64((uint64_t)p->stride * (e->width - 1)));
        mask = e_permute(e, mask, lane);
        if (load)
            return e_permute(e, masked_load(l, ptr, t, mask), lane);
        masked_store(l, ptr, e_permute(e, x, lane), mask);
        return x;
    }
    if (c->bytes < 4) {
        if (!load) {
            put_one_by_one(l, (struct one_by_one){.ptr = ptr, .x = x, .stride = (uint64_t)p->stride});
            return x;
        }
        struct spot own = *p; /* in thread memory, which has room behind it */
        own.way = WAY_EACH;
        own.index = e_ramp(e, E_I32, (uint64_t)p->stride);
        own.last = (struct val){0};
        return gather_small(l, &own, c, mask);
    }
    unsigned unit = 8;
    while (p->stride % (int64_t)unit)
        unit /= 2;
    const struct val at = pointers(l, ptr, e_ramp(e, E_I32, (uint64_t)(p->stride / (int64_t)unit)), unit);
    if (load)
        return gather(l, at, t, mask);
    scatter(l, at, x, mask);
    return x;
}

struct val memory_cell(struct lower *l, const struct spot *p, const struct cell *c, struct val x, struct val mask)
{
    struct emit *const e = &l->e;
    const bool load = x.shape == V_NONE;
    const enum elem t = (enum elem)c->elem;
    if (p->way == WAY_EACH && c->bytes < 4 && load)
        return gather_small(l, p, c, mask);
    const struct val ptr = e_gep(e, p->ptr, e_i64(c->offset * p->spread));
    switch (p->way) {
    case WAY_ONE:
        if (load)
            return load_text(l, ptr, t, false);
        store_text(l, ptr, memory_high(l, x));
        return x;
    case WAY_ROW: return row_cell(l, p, c, ptr, x, mask);
    case WAY_EACH: break;
    }
    if (c->bytes < 4) {
        put_one_by_one(l, (struct one_by_one){.ptr = ptr, .index = p->index, .unit = p->unit, .x = x});
        return x;
    }
    const struct val at = pointers(l, ptr, p->index, p->unit);
    if (load)
        return gather(l, at, t, mask);
    scatter(l, at, x, mask);
    return x;
}

/* ---- rows of elements that are read and written whole ----------------------------------------------------------- */

#define MOST_WIDE 16u /* cells of an element */

/* Bytes of the element of a row in which the value lies, if it is read that way; else 0. */
static uint64_t wide_element(const struct lower *l, const struct address *a, bool write)
{
    const struct memory *const m = l->memory;
    const uint64_t element = address_row(l, a);
    if (!element)
        return 0;
    const uint64_t bytes = m->cells.at[0].bytes, from = (uint64_t)a->disp % element;
    if (element <= bytes || element % bytes || element / bytes > MOST_WIDE || from % bytes ||
        from + m->extent > element)
        return 0;
    if (m->cells.n == 1 && element / bytes > 8)
        return 0;
    if (write && (from || m->cells.n * bytes != element))
        return 0;
    for (uint32_t k = 0; k < m->cells.n; k++)
        if (m->cells.at[k].bytes != bytes || m->cells.at[k].offset % bytes)
            return 0;
    return element;
}

static void load_wide(struct lower *l, const struct address *a, const struct spot *p, uint64_t element, struct val *to)
{
    struct emit *const e = &l->e;
    const struct memory *const m = l->memory;
    const uint64_t bytes = m->cells.at[0].bytes, n = element / bytes, from = (uint64_t)a->disp % element;
    const struct val ptr = e_gep(e, p->ptr, e_i64(0 - from));
    const uint32_t all = e_id(e);
    e_line(e, "%%v%u = load <%u x i%u>, ptr %%v%u, align 1", all, (unsigned)n * e->width, (unsigned)bytes * 8, ptr.id);
    for (uint32_t k = 0; k < m->cells.n; k++) {
        const struct cell *const c = &m->cells.at[k];
        const enum elem bits = c->elem == E_F32 ? E_I32 : (enum elem)c->elem;
        const struct val x = named(l, bits, true);
        struct buf b;
        buf_init(&b, l->mem);
        for (unsigned i = 0; i < e->width; i++)
            buf_fmt(&b, "%si32 %u", i ? ", " : "", (unsigned)((from + c->offset) / bytes + i * n));
        e_line(e, "%%v%u = shufflevector <%u x i%u> %%v%u, <%u x i%u> poison, <%u x i32> <%s>", x.id,
               (unsigned)n * e->width, (unsigned)bytes * 8, all, (unsigned)n * e->width, (unsigned)bytes * 8, e->width,
               buf_text(&b));
        buf_free(&b);
        to[k] = e_cast(e, "bitcast", x, (enum elem)c->elem);
    }
}

/* Joins pairs of vectors until there is one, then brings its scalars into the order of memory. */
static void store_wide(struct lower *l, const struct spot *p, uint64_t element, const struct val *from)
{
    struct emit *const e = &l->e;
    const struct memory *const m = l->memory;
    const unsigned bits = m->cells.at[0].bytes * 8u, n = (unsigned)(element * 8 / bits), w = e->width;
    uint32_t id[MOST_WIDE] = {0};
    unsigned count = 1;
    for (uint32_t k = 0; k < n; k++) {
        const struct cell *const c = &m->cells.at[k];
        id[c->offset * 8 / bits] =
            e_cast(e, "bitcast", e_vary(e, from[k]), c->elem == E_F32 ? E_I32 : (enum elem)c->elem).id;
    }
    while (count < n)
        count *= 2;
    for (unsigned k = n; k < count; k++)
        id[k] = id[n - 1];
    struct buf b;
    unsigned length = w;
    for (; count > 1; count /= 2, length *= 2)
        for (unsigned k = 0; k < count; k += 2) {
            const uint32_t joined = e_id(e);
            buf_init(&b, l->mem);
            for (unsigned i = 0; i < 2 * length; i++)
                buf_fmt(&b, "%si32 %u", i ? ", " : "", i);
            e_line(e, "%%v%u = shufflevector <%u x i%u> %%v%u, <%u x i%u> %%v%u, <%u x i32> <%s>", joined, length, bits,
                   id[k], length, bits, id[k + 1], 2 * length, buf_text(&b));
            buf_free(&b);
            id[k / 2] = joined;
        }
    const uint32_t all = e_id(e);
    buf_init(&b, l->mem);
    for (unsigned i = 0; i < w * n; i++)
        buf_fmt(&b, "%si32 %u", i ? ", " : "", i % n * w + i / n);
    e_line(e, "%%v%u = shufflevector <%u x i%u> %%v%u, <%u x i%u> poison, <%u x i32> <%s>", all, length, bits, id[0],
           length, bits, w * n, buf_text(&b));
    buf_free(&b);
    e_line(e, "store <%u x i%u> %%v%u, ptr %%v%u, align 1", w * n, bits, all, p->ptr.id);
}

/* ---- the slow way ----------------------------------------------------------------------------------------------- */

uint64_t memory_cell_at(const struct lower *l, uint32_t k)
{
    uint64_t at = CPU_ROOM_CELLS(l->e.width);
    for (uint32_t i = 0; i < k; i++)
        at = (at + l->memory->cells.at[i].bytes * (uint64_t)l->e.width + 63) & ~(uint64_t)63;
    return at;
}

static struct val constant(struct lower *l, const struct address *a, uint32_t node, unsigned flags, enum op op,
                           enum scalar scalar)
{
    struct memory *const m = l->memory;
    struct emit *const e = &l->e;
    const bool thread = a->region != CPU_REGION_DYNAMIC && l->out->region.at[a->region].kind == CPU_REGION_THREAD;
    const uint32_t n_own = a->region == CPU_REGION_DYNAMIC ? m->n : 0;
    struct buf b;
    buf_init(&b, l->mem);
    if (l->opt.edge)
        flags |= CPU_ACCESS_EDGE;
    buf_fmt(&b,
            "constant { i64, i64, i64, i32, i32, i32, i32, i32, i32, i32, i32, [%u x { i64, i32, i32 }], [%u x { i64, "
            "i64 }] } "
            "{ i64 %llu, i64 %llu, i64 %llu, i32 %u, i32 %u, i32 %u, i32 %u, i32 %u, i32 %u, i32 %u, i32 0, "
            "[%u x { i64, i32, i32 }] [",
            m->cells.n, n_own, (unsigned long long)m->extent,
            (unsigned long long)(thread ? m->thread[a->region].spread : 1),
            (unsigned long long)(thread ? m->thread[a->region].lane_stride : 0), a->region,
            lower_site(l, ir_at(l->m, node)->place), flags, e->width, (unsigned)op, (unsigned)scalar, m->cells.n,
            m->cells.n);
    uint64_t at = CPU_ROOM_CELLS(e->width);
    for (uint32_t k = 0; k < m->cells.n; k++) {
        const struct cell *const c = &m->cells.at[k];
        buf_fmt(&b, "%s{ i64, i32, i32 } { i64 %llu, i32 %llu, i32 %u }", k ? ", " : "", (unsigned long long)c->offset,
                (unsigned long long)at, c->bytes);
        at = (at + c->bytes * (uint64_t)e->width + 63) & ~(uint64_t)63;
    }
    buf_fmt(&b, "], [%u x { i64, i64 }] [", n_own);
    for (uint32_t r = 0; r < n_own; r++) {
        const struct cpu_region_info *const i = &l->out->region.at[r];
        const bool own = i->kind == CPU_REGION_THREAD;
        buf_fmt(&b, "%s{ i64, i64 } { i64 %llu, i64 %llu }", r ? ", " : "", (unsigned long long)(own ? i->offset : 0),
                (unsigned long long)(own ? i->stride : 0));
    }
    buf_str(&b, "] }, align 8\n");
    const uint32_t n = m->accesses.str.n;
    const uint32_t id = strtab_id(&m->accesses, buf_text(&b), b.n);
    if (m->accesses.str.n != n)
        buf_fmt(&e->decl, "@access%u = private unnamed_addr %s", id, buf_text(&b));
    buf_free(&b);
    const struct val x = named(l, E_PTR, false);
    e_line(e, "%%v%u = getelementptr i8, ptr @access%u, i64 0", x.id, id);
    return x;
}

void memory_help(struct lower *l, const struct address *a, uint32_t node, enum helper h, unsigned flags, enum op op,
                 enum scalar scalar, unsigned n, const struct val *in)
{
    struct emit *const e = &l->e;
    const uint32_t room = memory_room(l, memory_cell_at(l, l->memory->cells.n));
    memory_raw_put(l, room, 0, address_offset(l, a));
    struct val base = l->private_;
    if (a->region == CPU_REGION_DYNAMIC)
        memory_raw_put(l, room, CPU_ROOM_REGIONS(e->width), address_region(l, a));
    else if (l->out->region.at[a->region].kind == CPU_REGION_THREAD)
        base = address_thread_base(l, a->region);
    uint64_t at = CPU_ROOM_CELLS(e->width);
    for (unsigned k = 0; k < n; k++) {
        memory_raw_put(l, room, at, in[k]);
        at = (at + l->memory->cells.at[k].bytes * (uint64_t)e->width + 63) & ~(uint64_t)63;
    }
    const struct val args[] = {constant(l, a, node, flags, op, scalar), e_named(E_PTR, false, room), base,
                               e_bits(e, l->mask), l->first_thread};
    (void)lower_help(l, h, E_COUNT, 5, args);
}

/* ---- loads ------------------------------------------------------------------------------------------------------ */

static bool is_false(struct val x)
{
    return x.shape == V_CONST && !x.bits;
}

static bool is_true(struct val x)
{
    return x.shape == V_CONST && x.bits;
}

static void phi(struct lower *l, struct val *x, uint32_t from, struct val y, uint32_t cold)
{
    struct emit *const e = &l->e;
    char type[24];
    struct buf b;
    buf_init(&b, l->mem);
    const struct val r = named(l, (enum elem)x->elem, x->shape == V_VARYING);
    buf_fmt(&b, "%%v%u = phi %s [ ", r.id, e_type_name(e, (enum elem)r.elem, r.shape == V_VARYING, type));
    e_operand(e, &b, *x);
    buf_fmt(&b, ", %%b%u ], [ ", from);
    e_operand(e, &b, y);
    buf_fmt(&b, ", %%b%u ]", cold);
    e_line(e, "%s", buf_text(&b));
    buf_free(&b);
    *x = r;
}

static void load_fast(struct lower *l, const struct address *a, const struct spot *p, uint64_t wide, struct val *to)
{
    struct memory *const m = l->memory;
    const bool own = a->region != CPU_REGION_DYNAMIC && l->out->region.at[a->region].kind == CPU_REGION_THREAD;
    if (wide) {
        load_wide(l, a, p, wide, to);
        return;
    }
    for (uint32_t k = 0; k < m->cells.n; k++)
        to[k] = memory_cell(l, p, &m->cells.at[k], (struct val){0}, own && p->way == WAY_ROW ? e_true() : l->mask);
}

static void lower_load(struct lower *l, uint32_t node)
{
    struct emit *const e = &l->e;
    struct memory *const m = l->memory;
    const uint32_t pointer = ir_in(l->m, node)[0];
    memory_cells(l, ir_at(l->m, node)->type);
    const uint32_t n = m->cells.n;
    if (n == 0) {
        lower_out(l, node);
        return;
    }
    const struct address a = address_of(l, pointer);
    const uint64_t wide = wide_element(l, &a, false);
    struct spot p = address_place(l, &a, wide, 0);
    struct val few[16] = {{0}}, *const x = n > 16 ? mem_alloc(l->mem, n * sizeof *x) : few;
    const uint32_t fast = e_block(e), cold = e_block(e), join = e_block(e);
    if (!is_false(p.fits)) {
        if (!is_true(p.fits)) {
            e_branch(e, p.fits, fast, cold, ODDS_LIKELY);
            e_place(e, fast);
        }
        load_fast(l, &a, &p, wide, x);
    }
    if (!is_true(p.fits)) {
        const bool only = is_false(p.fits);
        if (!only) {
            e_jump(e, join);
            e_place(e, cold);
        }
        memory_help(l, &a, node, HELPER_LOAD, 0, OP_NONE, S_VOID, 0, NULL);
        struct val few_cold[16] = {{0}}, *const y = n > 16 ? mem_alloc(l->mem, n * sizeof *y) : few_cold;
        for (uint32_t k = 0; k < n; k++) {
            const enum elem t = (enum elem)m->cells.at[k].elem;
            if (!only && p.way == WAY_ONE) /* out of bounds for all lanes */
                y[k] = e_const(t, 0);
            else
                y[k] = memory_raw_get(l, m->room, memory_cell_at(l, k), t, true);
        }
        if (only) {
            memcpy(x, y, n * sizeof *x);
        } else {
            e_jump(e, join);
            e_place(e, join);
            for (uint32_t k = 0; k < n; k++)
                phi(l, &x[k], fast, y[k], cold);
        }
        if (y != few_cold)
            mem_free(l->mem, y, n * sizeof *y);
    }
    lower_out(l, node);
    for (uint32_t k = 0; k < n; k++)
        set_leaves(l, node, &m->cells.at[k], x[k]);
    if (x != few)
        mem_free(l->mem, x, n * sizeof *x);
}

/* ---- stores ----------------------------------------------------------------------------------------------------- */

static void store_fast(struct lower *l, const struct spot *p, uint64_t wide, const struct val *x)
{
    struct memory *const m = l->memory;
    if (wide) {
        store_wide(l, p, wide, x);
        return;
    }
    for (uint32_t k = 0; k < m->cells.n; k++)
        (void)memory_cell(l, p, &m->cells.at[k], x[k], l->mask);
}

/* In a loop that waits for memory, what changes memory is progress; changes of thread memory only if such a loop reads it. */
static unsigned tracked(struct lower *l, uint32_t node)
{
    unsigned flags = CPU_ACCESS_TRACKED;
    uint8_t *const marks = mem_alloc(l->mem, l->m->nodes.n);
    for (uint32_t r = ir_at(l->m, node)->region; r; r = ir_parent_region(l->m, r)) {
        const uint32_t owner = ir_region_at(l->m, r)->owner;
        bool own = false;
        if (owner && ir_at(l->m, owner)->op == OP_LOOP && loop_waits(l->m, owner, marks, &own) && own)
            flags |= CPU_ACCESS_OWN;
    }
    mem_free(l->mem, marks, l->m->nodes.n);
    return flags;
}

static void lower_store(struct lower *l, uint32_t node)
{
    struct emit *const e = &l->e;
    struct memory *const m = l->memory;
    const uint32_t pointer = ir_in(l->m, node)[0], value = ir_in(l->m, node)[1];
    memory_cells(l, ir_at(l->m, value)->type);
    const uint32_t n = m->cells.n;
    if (n == 0)
        return;
    const struct address a = address_of(l, pointer);
    const uint64_t wide = wide_element(l, &a, true);
    struct spot p = address_place(l, &a, wide, 0);
    struct val few[16] = {{0}}, *const x = n > 16 ? mem_alloc(l->mem, n * sizeof *x) : few;
    for (uint32_t k = 0; k < n; k++)
        x[k] = from_leaves(l, value, &m->cells.at[k]);
    if (!p.apart || l->waiting)
        p.fits = e_false();
    const uint32_t fast = e_block(e), cold = e_block(e), join = e_block(e);
    if (!is_false(p.fits)) {
        if (!is_true(p.fits)) {
            e_branch(e, p.fits, fast, cold, ODDS_LIKELY);
            e_place(e, fast);
        }
        store_fast(l, &p, wide, x);
    }
    if (!is_true(p.fits)) {
        if (!is_false(p.fits)) {
            e_jump(e, join);
            e_place(e, cold);
        }
        memory_help(l, &a, node, HELPER_STORE, CPU_ACCESS_WRITE | (l->waiting ? tracked(l, node) : 0u), OP_NONE, S_VOID,
                    n, x);
        e_jump(e, join);
        e_place(e, join);
    }
    if (x != few)
        mem_free(l->mem, x, n * sizeof *x);
}

/* ---- allocs, fences --------------------------------------------------------------------------------------------- */

/* A thread's array begins its life as zeros. Lanes that are off keep no part of it but through a pointer. */
static void lower_alloc(struct lower *l, uint32_t node)
{
    struct emit *const e = &l->e;
    const uint32_t region = l->region_of[node];
    const struct cpu_region_info *const r = &l->out->region.at[region];
    const struct thread_memory *const t = &l->memory->thread[region];
    if (r->kind != CPU_REGION_THREAD || r->size == 0)
        return;
    const struct val base = address_thread_base(l, region);
    if (l->mask.shape == V_CONST || t->room || t->spread != 1) {
        e_declare(e, "void @llvm.memset.p0.i64(ptr, i8, i64, i1)");
        const uint64_t bytes = t->spread != 1 ? (r->size + 15) / 16 * 16 * t->spread : t->lane_stride * e->width;
        e_line(e, "call void @llvm.memset.p0.i64(ptr align 64 %%v%u, i8 0, i64 %llu, i1 false)", base.id,
               (unsigned long long)bytes);
        return;
    }
    const struct val args[] = {base, e_i64(r->size), e_i64(t->lane_stride), e_bits(e, l->mask)};
    (void)lower_help(l, HELPER_ZERO, E_COUNT, 4, args);
}

static void lower_fence(struct lower *l, uint32_t node)
{
    const struct node *const x = ir_at(l->m, node);
    const bool device =
        node_memory(x->flags) & MEMORY_DEVICE || (x->op == OP_FENCE && node_scope(x->flags) == SCOPE_DEVICE);
    e_line(&l->e, device ? "fence seq_cst" : "fence syncscope(\"singlethread\") seq_cst");
}

bool lower_memory(struct lower *l, uint32_t node)
{
    const enum op op = (enum op)ir_at(l->m, node)->op;
    l->memory->at = node;
    if (op == OP_FENCE || op == OP_SIMDGROUP_BARRIER)
        lower_fence(l, node);
    else if (op_info[op].effect == EFFECT_ATOMIC)
        return atomic_lower(l, node);
    else if (op == OP_ALLOC)
        lower_alloc(l, node);
    else if (op == OP_LOAD)
        lower_load(l, node);
    else if (op == OP_STORE)
        lower_store(l, node);
    else
        return op == OP_INDEX || op == OP_FIELD;
    return true;
}
