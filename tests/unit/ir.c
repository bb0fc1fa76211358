/* ir.c - tables, types, the builder, constants, places, changing, cloning; out of memory at every allocation. */
#include "ir/ir.h"

#include <stdlib.h>

#include "check.h"
#include "faulty.h"

/* ---- tables ---------------------------------------------------------------------------------------------------- */

static void test_tables(void)
{
    for (enum op op = 1; op < OP_COUNT; op++) {
        const struct op_info *const row = &op_info[op];
        CHECK(row->name && row->name[0] && row->msl && row->doc[0]);
        CHECK_EQ(op_by_name(row->name, strlen(row->name)), op);
        char longer[64];
        const int n = snprintf(longer, sizeof longer, "%s~", row->name);
        CHECK_EQ(op_by_name(longer, (size_t)n - 1), op); /* no zero is needed after the name */
        CHECK_EQ(op_by_name(longer, (size_t)n), OP_NONE);
        CHECK_EQ(row->math, math_info[op].python != NULL);
    }
    CHECK_EQ(op_by_name("", 0), OP_NONE);
    CHECK_EQ(op_by_name("ad", 2), OP_NONE);
    CHECK_EQ(op_info[OP_ADD].classes, CLASS_SUF);
    CHECK_EQ(op_info[OP_MAKE].n, OPERANDS_ANY);
    CHECK(op_info[OP_EXP].math && !op_info[OP_ASSERT].math && op_info[OP_FMA].math);
    CHECK_EQ(math_info[OP_POW].fast_ulp, 24);
    CHECK_EQ_STR(math_info[OP_SIN].python, "sin");
    CHECK_EQ_STR(scalar_info[S_BF16].msl, "bfloat");
    CHECK_EQ_STR(space_name[SPACE_THREADGROUP], "threadgroup");
    for (int a = 1; a < ATTR_COUNT; a++)
        CHECK(attr_info[a].metal[0] && attr_info[a].python[0] && attr_info[a].doc[0]);
    CHECK_EQ(attr_info[ATTR_THREAD_INDEX_IN_SIMDGROUP].uniform, UNIFORM_V);
    CHECK_EQ(attr_info[ATTR_THREADS_PER_GRID].family, FAMILY_GRID);
}

/* ---- types ----------------------------------------------------------------------------------------------------- */

static void printed(struct ir_module *m, ir_type t, const char *text)
{
    struct buf b;
    buf_init(&b, m->mem);
    ir_type_print(m, &b, t);
    CHECK_EQ_STR(buf_text(&b), text);
    buf_free(&b);
}

static void layout(const struct ir_module *m, ir_type t, uint64_t size, unsigned align)
{
    CHECK_EQ(ir_type_at(m, t)->size, size);
    CHECK_EQ(ir_type_at(m, t)->align, align);
}

static void test_fixed_types(struct ir_module *m)
{
    CHECK_EQ(m->types.n, TYPE_FIXED_COUNT);
    for (enum scalar s = S_BOOL; s < S_COUNT; s++)
        for (unsigned n = 1; n <= 4; n++) {
            const ir_type t = ir_type_vector(s, n);
            CHECK_EQ(ir_type_scalar(t), s);
            CHECK_EQ(ir_type_width(t), n);
            CHECK_EQ(ir_type_at(m, t)->scalar, s);
            CHECK_EQ(ir_type_at(m, t)->n, n);
            CHECK_EQ(ir_type_at(m, t)->kind, n == 1 ? TYPE_KIND_SCALAR : TYPE_KIND_VECTOR);
            CHECK_EQ(ir_type_class(m, t), scalar_info[s].class_);
            CHECK_EQ(ir_type_parts(m, t), n == 1 ? 0 : n);
            CHECK_EQ(ir_type_part(m, t, 0), n == 1 ? TYPE_VOID : (ir_type)s);
            CHECK_EQ(ir_type_part(m, t, n), TYPE_VOID);
            CHECK_EQ(ir_type_with(t, S_I8), ir_type_vector(S_I8, n));
            CHECK(!ir_type_is_pointer(t));
            layout(m, t, scalar_info[s].bytes * (n == 3 ? 4u : n), scalar_info[s].bytes * (n == 3 ? 4u : n));
        }
    layout(m, ir_type_vector(S_F32, 3), 16, 16); /* Metal's float3 */
    layout(m, ir_type_vector(S_F16, 3), 8, 8);
    layout(m, ir_type_vector(S_BOOL, 2), 2, 2);
    layout(m, ir_type_vector(S_U64, 4), 32, 32);
    CHECK_EQ(ir_type_vector(S_VOID, 2), TYPE_VOID);
    CHECK_EQ(ir_type_vector(S_F32, 5), TYPE_VOID);
    CHECK_EQ(ir_type_vector(S_F32, 0), TYPE_VOID);
    for (enum space space = 0; space < SPACE_COUNT; space++) {
        const ir_type t = TYPE_POINTER(space);
        CHECK(ir_type_is_pointer(t));
        CHECK_EQ(ir_type_space(t), space);
        CHECK_EQ(ir_type_class(m, t), CLASS_P);
        CHECK_EQ(ir_type_width(t), 0);
        CHECK_EQ(ir_type_scalar(t), S_VOID);
        layout(m, t, 8, 8);
    }
    CHECK_EQ(ir_type_class(m, TYPE_VOID), CLASS_N);
    CHECK_EQ(ir_type_width(TYPE_VOID), 0);
    printed(m, TYPE_VOID, "void");
    printed(m, TYPE_F32, "f32");
    printed(m, ir_type_vector(S_BF16, 4), "bf16x4");
    printed(m, TYPE_POINTER(SPACE_CONSTANT), "ptr.constant");
}

static void test_aggregates(struct ir_module *m)
{
    const ir_type f32x3 = ir_type_vector(S_F32, 3);
    const ir_type a = ir_type_array(m, f32x3, 5);
    layout(m, a, 80, 16);
    CHECK_EQ(ir_type_array(m, f32x3, 5), a);
    CHECK(ir_type_array(m, f32x3, 6) != a);
    CHECK_EQ(ir_type_parts(m, a), 5);
    CHECK_EQ(ir_type_part(m, a, 4), f32x3);
    CHECK_EQ(ir_type_part(m, a, 5), TYPE_VOID);
    CHECK_EQ(ir_type_class(m, a), CLASS_AGGREGATE);
    CHECK_EQ(ir_type_scalar(a), S_VOID);
    CHECK(!ir_type_is_pointer(a));
    printed(m, ir_type_array(m, a, 2), "[[f32x3 x 5] x 2]");

    const uint32_t x = ir_string(m, "x"), y = ir_string(m, "y"), z = ir_string(m, "z"), name = ir_string(m, "Mixed");
    const struct field f[] = {{x, S_I8, 99}, {y, f32x3, 0}, {z, S_F16, 0}};
    const ir_type s = ir_type_struct(m, name, 3, f);
    layout(m, s, 48, 16);
    const struct type *const t = ir_type_at(m, s);
    CHECK_EQ(m->fields.at[t->first_field].offset, 0);
    CHECK_EQ(m->fields.at[t->first_field + 1].offset, 16);
    CHECK_EQ(m->fields.at[t->first_field + 2].offset, 32);
    CHECK_EQ(ir_type_parts(m, s), 3);
    CHECK_EQ(ir_type_part(m, s, 2), S_F16);
    printed(m, s, "Mixed");
    const uint32_t n_fields = m->fields.n;
    CHECK_EQ(ir_type_struct(m, name, 3, f), s);
    CHECK_EQ(m->fields.n, n_fields);
    CHECK(ir_type_struct(m, name, 2, f) != s);
    CHECK(ir_type_struct(m, x, 3, f) != s);
    const struct field g[] = {{x, S_U8, 0}, {y, f32x3, 0}, {z, S_F16, 0}};
    CHECK(ir_type_struct(m, name, 3, g) != s);
    layout(m, ir_type_struct(m, z, 0, NULL), 1, 1);
    const struct field packed[] = {{x, S_U8, 0}, {y, S_U16, 0}, {z, S_U8, 0}};
    layout(m, ir_type_struct(m, y, 3, packed), 6, 2);

    /* What is too large or of nothing. */
    CHECK_EQ(ir_type_array(m, TYPE_VOID, 3), TYPE_VOID);
    CHECK_EQ(ir_type_array(m, TYPE_F32, 0), TYPE_VOID);
    CHECK_EQ(ir_type_array(m, TYPE_F32, (uint64_t)1 << 62), TYPE_VOID);
    CHECK_EQ(ir_type_array(m, TYPE_F32, ((uint64_t)1 << 38) + 1), TYPE_VOID);
    const ir_type huge = ir_type_array(m, TYPE_F32, (uint64_t)1 << 38);
    CHECK(huge != TYPE_VOID);
    const struct field twice[] = {{x, huge, 0}, {y, S_BOOL, 0}};
    CHECK_EQ(ir_type_struct(m, x, 2, twice), TYPE_VOID);
    const struct field of_void[] = {{x, TYPE_VOID, 0}};
    CHECK_EQ(ir_type_struct(m, x, 1, of_void), TYPE_VOID);
}

static void test_type_limit(struct ir_module *m)
{
    uint64_t count = 1000;
    ir_type t, last = TYPE_VOID;
    while ((t = ir_type_array(m, TYPE_BOOL, count)) != TYPE_VOID) {
        last = t;
        count++;
    }
    CHECK_EQ(last, 65535);
    CHECK_EQ(m->types.n, 65536);
    CHECK_EQ(ir_type_array(m, TYPE_BOOL, count - 1), last);
    CHECK_EQ(ir_type_array(m, TYPE_BOOL, 1000), last - (count - 1001));
    CHECK_EQ(ir_type_struct(m, 0, 0, NULL), TYPE_VOID);
}

/* ---- constants and places -------------------------------------------------------------------------------------- */

static void test_constants(struct ir_module *m)
{
    const uint32_t one = ir_const(m, TYPE_I32, 1);
    CHECK_EQ(ir_const(m, TYPE_I32, 1), one);
    CHECK(ir_const(m, TYPE_U32, 1) != one);
    CHECK_EQ(ir_const(m, TYPE_I32, 0xabc00000001u), one);
    CHECK_EQ(ir_at(m, ir_const(m, S_I8, (uint64_t)-1))->imm, 0xff);
    CHECK_EQ(ir_at(m, ir_const(m, TYPE_BOOL, 3))->imm, 1);
    CHECK_EQ(ir_at(m, ir_const(m, TYPE_U64, UINT64_MAX))->imm, UINT64_MAX);
    CHECK_EQ(ir_zero(m, TYPE_I32), ir_const(m, TYPE_I32, 0));
    CHECK_EQ(ir_at(m, ir_zero(m, TYPE_I32))->op, OP_CONST);
    const ir_type v = ir_type_vector(S_F32, 4);
    CHECK_EQ(ir_at(m, ir_zero(m, v))->op, OP_ZERO);
    CHECK_EQ(ir_at(m, ir_zero(m, v))->type, v);
    CHECK_EQ(ir_zero(m, v), ir_zero(m, v));
    CHECK_EQ(ir_at(m, ir_zero(m, TYPE_POINTER(SPACE_DEVICE)))->op, OP_ZERO);
    CHECK_EQ(ir_at(m, ir_const_f(m, TYPE_F32, 0.1))->imm, 0x3dcccccd);
    CHECK_EQ(ir_at(m, ir_const_f(m, S_F16, 1 + 0x1p-11 + 0x1p-40))->imm, 0x3c01); /* one rounding */
    CHECK_EQ(ir_at(m, ir_const_f(m, S_BF16, -2))->imm, 0xc000);
    CHECK(ir_const_f(m, TYPE_F32, 0.0) != ir_const_f(m, TYPE_F32, -0.0));
    CHECK_EQ(ir_at(m, one)->region, 0);

    uint32_t ids[3000];
    for (uint32_t i = 0; i < 3000; i++)
        ids[i] = ir_const(m, TYPE_U64, i * 0x9e3779b97f4a7c15u);
    const uint32_t n = m->nodes.n;
    for (uint32_t i = 0; i < 3000; i++)
        CHECK_EQ(ir_const(m, TYPE_U64, i * 0x9e3779b97f4a7c15u), ids[i]);
    CHECK_EQ(m->nodes.n, n);
}

static void test_places(struct ir_module *m)
{
    const uint32_t file = ir_string(m, "life.py");
    CHECK_EQ(ir_place(m, 0, 0, 0, 0), 0);
    CHECK(ir_err_place(m, 0).file == NULL);
    const uint32_t call = ir_place(m, file, 30, 0, 0);
    const uint32_t p = ir_place(m, file, 12, 5, 0);
    const uint32_t inner = ir_place(m, file, 12, 5, call);
    CHECK_EQ(ir_place(m, file, 12, 5, 0), p);
    CHECK_EQ(ir_place(m, file, 12, 5, call), inner);
    CHECK(p != inner && p != call && ir_place(m, file, 12, 6, 0) != p);
    const struct err_place e = ir_err_place(m, inner);
    CHECK_EQ_STR(e.file, "life.py");
    CHECK_EQ(e.line, 12);
    CHECK_EQ(e.column, 5);
    uint32_t ids[1000];
    for (uint32_t i = 0; i < 1000; i++)
        ids[i] = ir_place(m, file, i + 100, 1, 0);
    for (uint32_t i = 0; i < 1000; i++)
        CHECK_EQ(ir_place(m, file, i + 100, 1, 0), ids[i]);
}

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

static struct ir_builder new_kernel(struct ir_module *m, const char *name)
{
    struct ir_builder b = {.m = m, .func = ir_func(m, ir_string(m, name), true, TYPE_VOID, 0)};
    b.region = m->funcs.at[b.func].region;
    return b;
}

/* The region holds these nodes, forwards and backwards. */
static void holds(const struct ir_module *m, uint32_t region, unsigned n, const uint32_t *ids)
{
    uint32_t prev = 0;
    unsigned k = 0;
    IR_EACH(m, region, id)
    {
        CHECK(k < n);
        if (k >= n)
            return;
        CHECK_EQ(id, ids[k]);
        CHECK_EQ(ir_at(m, id)->prev, prev);
        CHECK_EQ(ir_at(m, id)->region, region);
        prev = id;
        k++;
    }
    CHECK_EQ(k, n);
    CHECK_EQ(ir_region_at(m, region)->last, prev);
}
#define HOLDS(m, region, ...)                                                                                          \
    holds((m), (region), sizeof((uint32_t[]){__VA_ARGS__}) / 4, (const uint32_t[]){__VA_ARGS__})

static void test_functions(struct ir_module *m)
{
    struct ir_builder b = new_kernel(m, "outer");
    const struct param x = {.name = ir_string(m, "x"), .type = TYPE_F32, .place = 1};
    const struct param y = {.name = ir_string(m, "y"), .type = TYPE_U32, .kind = PARAM_ATTRIBUTE, .attribute = 1};
    const uint32_t px = ir_param(m, b.func, &x);
    const struct ir_builder other = new_kernel(m, "inner");
    const uint32_t qx = ir_param(m, other.func, &x);
    const uint32_t py = ir_param(m, b.func, &y); /* after another function's */
    const uint32_t qy = ir_param(m, other.func, &y);
    const uint32_t want[2][2] = {{px, py}, {qx, qy}};
    for (unsigned f = 0; f < 2; f++) {
        const struct func *const fn = &m->funcs.at[f ? other.func : b.func];
        CHECK_EQ(fn->n_params, 2);
        for (unsigned k = 0; k < 2; k++) {
            const struct param *const p = &m->params.at[fn->first_param + k];
            CHECK_EQ(p->node, want[f][k]);
            CHECK_EQ(ir_at(m, p->node)->op, OP_PARAM);
            CHECK_EQ(ir_at(m, p->node)->imm, k);
            CHECK_EQ(ir_at(m, p->node)->name, p->name);
            CHECK_EQ(ir_at(m, p->node)->region, 0);
        }
    }
    CHECK_EQ(ir_at(m, px)->place, 1);
    CHECK_EQ(ir_func_by_name(m, "inner"), other.func);
    CHECK_EQ(ir_func_by_name(m, "nobody"), 0);
    CHECK(m->funcs.at[b.func].kernel && b.region != other.region);
}

static void test_nodes(struct ir_module *m)
{
    struct ir_builder b = new_kernel(m, "nodes");
    const struct param p = {.type = TYPE_F32};
    const uint32_t x = ir_param(m, b.func, &p);
    b.place = 3;
    const uint32_t sum = ir_op2(&b, OP_ADD, x, x);
    CHECK_EQ(ir_at(m, sum)->type, TYPE_F32);
    CHECK_EQ(ir_at(m, sum)->place, 3);
    CHECK_EQ(ir_at(m, ir_op2(&b, OP_LT, sum, x))->type, TYPE_BOOL);
    const uint32_t v = ir_node(&b, OP_SPLAT, ir_type_vector(S_F32, 4), 1, &x, 0, 0);
    CHECK_EQ(ir_at(m, ir_op2(&b, OP_EQ, v, v))->type, ir_type_vector(S_BOOL, 4));
    CHECK_EQ(ir_at(m, ir_op3(&b, OP_SELECT, ir_const(m, TYPE_BOOL, 1), v, v))->type, ir_type_vector(S_F32, 4));
    CHECK_EQ(ir_at(m, ir_op1(&b, OP_SIMD_SUM, v))->type, ir_type_vector(S_F32, 4));
    CHECK_EQ(ir_at(m, ir_op1(&b, OP_SIMD_ALL, ir_const(m, TYPE_BOOL, 1)))->op, OP_SIMD_ALL);
    CHECK_EQ(ir_at(m, ir_op1(&b, OP_SIMD_SUM, ir_const_f(m, TYPE_F32, 1)))->op, OP_SIMD_SUM);
    const uint32_t null = ir_zero(m, TYPE_POINTER(SPACE_DEVICE));
    CHECK_EQ(ir_at(m, ir_op2(&b, OP_EQ, null, null))->type, TYPE_BOOL);
    CHECK_EQ(ir_convert(&b, TYPE_F32, x), x);
    CHECK_EQ(ir_at(m, ir_convert(&b, S_I8, x))->op, OP_CONVERT);
    CHECK_EQ(ir_convert(&b, TYPE_I32, ir_const_f(m, TYPE_F32, 2.5)), ir_const(m, TYPE_I32, 2));
    const uint32_t at = ir_index(&b, TYPE_F32, null, ir_const(m, TYPE_U32, 7));
    CHECK_EQ(ir_at(m, at)->type, TYPE_POINTER(SPACE_DEVICE));
    CHECK_EQ(ir_at(m, at)->imm, TYPE_F32);
    CHECK_EQ(ir_at(m, ir_load(&b, TYPE_F32, at))->type, TYPE_F32);
    ir_store(&b, at, x);
    CHECK_EQ(ir_at(m, ir_region_at(m, b.region)->last)->op, OP_STORE);
    CHECK_EQ(ir_at(m, ir_region_at(m, b.region)->last)->type, TYPE_VOID);
    b.before = ir_region_at(m, b.region)->first;
    const uint32_t first = ir_op1(&b, OP_NEG, x);
    CHECK_EQ(ir_region_at(m, b.region)->first, first);

    /* Long operand lists, given from within the module. */
    uint32_t many[40];
    for (uint32_t k = 0; k < 40; k++)
        many[k] = ir_const(m, TYPE_F32, k);
    b.before = 0;
    const ir_type array = ir_type_array(m, TYPE_F32, 40);
    uint32_t id = ir_node(&b, OP_MAKE, array, 40, many, 0, 0);
    for (int round = 0; round < 200; round++)
        id = ir_node(&b, OP_MAKE, array, 40, ir_in(m, id), 0, 0);
    CHECK(memcmp(ir_in(m, id), many, sizeof many) == 0);
    const uint32_t three = ir_node(&b, OP_CALL, TYPE_VOID, 3, many, 0, 0);
    uint32_t copy = three;
    for (int round = 0; round < 200; round++)
        copy = ir_node(&b, OP_CALL, TYPE_VOID, 3, ir_in(m, copy), 0, 0);
    CHECK(memcmp(ir_in(m, copy), many, 12) == 0);

    ir_set_inputs(m, id, 2, many + 5);
    CHECK_EQ(ir_at(m, id)->n, 2);
    CHECK_EQ(ir_in(m, id)[1], many[6]);
    ir_set_inputs(m, id, 30, many + 1);
    CHECK_EQ(ir_in(m, id)[29], many[30]);
    const uint32_t side = m->side.n;
    ir_set_inputs(m, id, 29, ir_in(m, id) + 1);
    CHECK_EQ(m->side.n, side); /* in place */
    CHECK_EQ(ir_in(m, id)[0], many[2]);
    CHECK_EQ(ir_in(m, id)[28], many[30]);
    ir_set_inputs(m, id, 3, ir_in(m, id) + 1);
    CHECK_EQ(ir_in(m, id)[2], many[5]);
    ir_set_inputs(m, id, 0, NULL);
    CHECK_EQ(ir_at(m, id)->n, 0);
}

static void test_constructs(struct ir_module *m)
{
    struct ir_builder b = new_kernel(m, "constructs");
    const uint32_t zero = ir_const(m, TYPE_U32, 0), one = ir_const(m, TYPE_U32, 1), half = ir_const_f(m, TYPE_F32, 0.5);
    const uint32_t first[] = {zero, half, one, one};
    const uint32_t loop = ir_construct(&b, OP_LOOP, 4, first, 1);
    const uint32_t body = ir_region(m, loop, 0);
    CHECK_EQ(ir_n_regions(m, loop), 1);
    CHECK_EQ(ir_region_at(m, body)->owner, loop);
    CHECK_EQ(ir_parent_region(m, body), b.region);
    CHECK_EQ(ir_parent_region(m, b.region), 0);
    HOLDS(m, body, ir_arg(m, loop, 0), ir_arg(m, loop, 1), ir_arg(m, loop, 2), ir_arg(m, loop, 3));
    CHECK_EQ(ir_at(m, ir_arg(m, loop, 1))->type, TYPE_F32);
    CHECK_EQ(ir_arg(m, loop, 4), 0);

    struct ir_builder in = b;
    in.region = body;
    const uint32_t next = ir_op2(&in, OP_ADD, ir_arg(m, loop, 0), one);
    const uint32_t late = ir_add_arg(m, loop, TYPE_BOOL, ir_const(m, TYPE_BOOL, 1));
    CHECK_EQ(ir_at(m, loop)->n, 5);
    CHECK(memcmp(ir_in(m, loop), first, sizeof first) == 0);
    CHECK_EQ(ir_in(m, loop)[4], ir_const(m, TYPE_BOOL, 1));
    CHECK_EQ(ir_arg(m, loop, 4), late);
    CHECK_EQ(ir_at(m, late)->next, next);
    uint32_t args[40] = {0};
    for (unsigned k = 5; k < 40; k++)
        args[k] = ir_add_arg(m, loop, TYPE_U32, one);
    for (unsigned k = 5; k < 40; k++)
        CHECK_EQ(ir_arg(m, loop, k), args[k]);
    CHECK_EQ(ir_at(m, loop)->n, 40);
    CHECK_EQ(ir_at(m, next)->prev, args[39]);
    const uint32_t br = ir_br(&in, loop, 4, first);
    CHECK_EQ(ir_at(m, br)->imm, loop);

    const uint32_t end = ir_node(&b, OP_RETURN, TYPE_VOID, 0, NULL, 0, 0);
    const uint32_t r0 = ir_result(m, loop, TYPE_U32), r1 = ir_result(m, loop, TYPE_F32);
    HOLDS(m, b.region, loop, r0, r1, end);
    CHECK_EQ(ir_n_results(m, loop), 2);
    CHECK_EQ(ir_at(m, r1)->imm, 1);
    CHECK_EQ(ir_in(m, r1)[0], loop);

    /* From no parameter at all. */
    const uint32_t bare = ir_construct(&b, OP_LOOP, 0, NULL, 1);
    in.region = ir_region(m, bare, 0);
    const uint32_t there = ir_op1(&in, OP_SIMD_SUM, one);
    const uint32_t a0 = ir_add_arg(m, bare, TYPE_U32, zero), a1 = ir_add_arg(m, bare, TYPE_U32, one);
    HOLDS(m, in.region, a0, a1, there);
    CHECK_EQ(ir_n_results(m, bare), 0);

    /* Two loops in a row: the results of one do not pass for the other's. */
    const uint32_t br_if = ir_construct(&b, OP_IF, 1, (const uint32_t[]){ir_const(m, TYPE_BOOL, 1)}, 2);
    CHECK_EQ(ir_region(m, br_if, 1), ir_region(m, br_if, 0) + 1);

    const uint32_t sw = ir_construct(&b, OP_SWITCH, 1, &one, 1);
    const uint32_t c0 = ir_region(m, sw, 0);
    ir_case(m, c0, -5);
    ir_case(m, c0, 5);
    const uint32_t c1 = ir_add_region(m, sw), c2 = ir_add_region(m, sw);
    CHECK_EQ(ir_n_regions(m, sw), 3);
    CHECK_EQ(ir_region(m, sw, 2), c2);
    ir_case(m, c1, 7);
    ir_case(m, c0, 6); /* late */
    ir_region_at(m, c2)->is_default = true;
    const struct region *const r = ir_region_at(m, c0);
    CHECK_EQ(r->n_cases, 3);
    CHECK_EQ(m->cases.at[r->first_case], -5);
    CHECK_EQ(m->cases.at[r->first_case + 1], 5);
    CHECK_EQ(m->cases.at[r->first_case + 2], 6);
    CHECK_EQ(m->cases.at[ir_region_at(m, c1)->first_case], 7);
    CHECK_EQ(ir_region_at(m, c2)->n_cases, 0);
}

static void test_changing(struct ir_module *m)
{
    struct ir_builder b = new_kernel(m, "changing");
    const struct param p = {.type = TYPE_F32};
    const uint32_t x = ir_param(m, b.func, &p);
    uint32_t n[5];
    for (int k = 0; k < 5; k++)
        n[k] = ir_op1(&b, OP_EXP, x);
    HOLDS(m, b.region, n[0], n[1], n[2], n[3], n[4]);
    ir_unlink(m, n[2]);
    HOLDS(m, b.region, n[0], n[1], n[3], n[4]);
    CHECK_EQ(ir_at(m, n[2])->region, 0);
    ir_unlink(m, n[2]); /* nothing more to do */
    ir_unlink(m, n[0]);
    ir_unlink(m, n[4]);
    HOLDS(m, b.region, n[1], n[3]);
    ir_insert_before(m, n[4], b.region, n[1]);
    ir_insert_before(m, n[0], b.region, 0);
    HOLDS(m, b.region, n[4], n[1], n[3], n[0]);

    struct ir_builder in = b;
    const uint32_t block = ir_construct(&b, OP_BLOCK, 0, NULL, 1);
    in.region = ir_region(m, block, 0);
    ir_splice(m, in.region, n[1]); /* nothing to move */
    const uint32_t s0 = ir_op1(&in, OP_COS, x);
    ir_splice(m, in.region, block);
    HOLDS(m, b.region, n[4], n[1], n[3], n[0], s0, block);
    CHECK_EQ(ir_region_at(m, in.region)->first, 0);
    const uint32_t s1 = ir_op1(&in, OP_COS, x), s2 = ir_op1(&in, OP_COS, x);
    ir_splice(m, in.region, n[4]); /* the first node */
    HOLDS(m, b.region, s1, s2, n[4], n[1], n[3], n[0], s0, block);
    unsigned left = 0;
    IR_EACH(m, b.region, id)
    {
        if (ir_at(m, id)->op == OP_COS)
            ir_unlink(m, id);
        else
            left++;
    }
    CHECK_EQ(left, 5);
    while (ir_region_at(m, b.region)->first)
        ir_unlink(m, ir_region_at(m, b.region)->first);
    CHECK_EQ(ir_region_at(m, b.region)->last, 0);
}

/* ---- folding of what is no scalar (scalars: scalar.c) ---------------------------------------------------------- */

static void test_fold(struct ir_module *m)
{
    struct ir_builder b = new_kernel(m, "fold");
    const ir_type v2 = ir_type_vector(S_U32, 2), v4 = ir_type_vector(S_U32, 4);
    const uint32_t c[] = {ir_const(m, TYPE_U32, 10), ir_const(m, TYPE_U32, 11), ir_const(m, TYPE_U32, 12),
                          ir_zero(m, TYPE_U32)};
    const uint32_t make = ir_node(&b, OP_MAKE, v4, 4, c, 0, 0);
    const uint32_t zero = ir_zero(m, v4);
    for (unsigned k = 0; k < 4; k++) {
        CHECK_EQ(ir_fold(m, OP_EXTRACT, TYPE_U32, 1, &make, 0, k), c[k]);
        CHECK_EQ(ir_fold(m, OP_EXTRACT, TYPE_U32, 1, &zero, 0, k), c[3]);
        CHECK_EQ(ir_fold(m, OP_EXTRACT_AT, TYPE_U32, 2, (const uint32_t[]){make, ir_const(m, S_I8, k)}, 0, 0), c[k]);
    }
    CHECK_EQ(ir_fold(m, OP_EXTRACT_AT, TYPE_U32, 2, (const uint32_t[]){make, ir_const(m, S_I8, 4)}, 0, 0), c[3]);
    CHECK_EQ(ir_fold(m, OP_EXTRACT_AT, TYPE_U32, 2, (const uint32_t[]){make, ir_const(m, S_I8, 0xff)}, 0, 0), c[3]);
    const uint32_t splat = ir_node(&b, OP_SPLAT, v4, 1, &c[1], 0, 0);
    CHECK_EQ(ir_fold(m, OP_EXTRACT, TYPE_U32, 1, &splat, 0, 3), c[1]);
    const uint32_t pair[] = {make, splat};
    const uint32_t shuffle = ir_node(&b, OP_SHUFFLE, v4, 2, pair, 0, 0x2053);
    CHECK_EQ(ir_fold(m, OP_EXTRACT, TYPE_U32, 1, &shuffle, 0, 0), c[3]);
    CHECK_EQ(ir_fold(m, OP_EXTRACT, TYPE_U32, 1, &shuffle, 0, 1), c[1]);
    CHECK_EQ(ir_fold(m, OP_EXTRACT, TYPE_U32, 1, &shuffle, 0, 2), c[0]);
    CHECK_EQ(ir_fold(m, OP_EXTRACT, TYPE_U32, 1, &shuffle, 0, 3), c[2]);
    const uint32_t into[] = {shuffle, c[0]};
    const uint32_t insert = ir_node(&b, OP_INSERT, v4, 2, into, 0, 3);
    CHECK_EQ(ir_fold(m, OP_EXTRACT, TYPE_U32, 1, &insert, 0, 3), c[0]);
    CHECK_EQ(ir_fold(m, OP_EXTRACT, TYPE_U32, 1, &insert, 0, 1), c[1]);

    /* A vector folds when it is zero. */
    CHECK_EQ(ir_fold(m, OP_SUB, v4, 2, (const uint32_t[]){make, make}, 0, 0), zero);
    CHECK_EQ(ir_fold(m, OP_MUL, v4, 2, (const uint32_t[]){make, zero}, 0, 0), zero);
    const ir_type bool4 = ir_type_vector(S_BOOL, 4);
    CHECK_EQ(ir_fold(m, OP_LT, bool4, 2, (const uint32_t[]){make, make}, 0, 0), ir_zero(m, bool4));
    CHECK_EQ(ir_op2(&b, OP_MUL, zero, zero), zero);
    CHECK_EQ(ir_at(m, ir_op2(&b, OP_ADD, make, zero))->op, OP_ADD);
    CHECK_EQ(ir_fold(m, OP_MAKE, v4, 4, (const uint32_t[]){c[3], c[3], c[3], c[3]}, 0, 0), zero);
    CHECK_EQ(ir_fold(m, OP_MAKE, v4, 4, c, 0, 0), 0);
    CHECK_EQ(ir_fold(m, OP_SPLAT, v4, 1, &c[3], 0, 0), zero);
    CHECK_EQ(ir_fold(m, OP_INSERT, v4, 2, (const uint32_t[]){zero, c[3]}, 0, 1), zero);
    CHECK_EQ(ir_fold(m, OP_INSERT, v4, 2, (const uint32_t[]){zero, c[2]}, 0, 1), 0);
    CHECK_EQ(ir_convert(&b, ir_type_vector(S_F16, 4), zero), ir_zero(m, ir_type_vector(S_F16, 4)));
    const uint32_t minus = ir_const_f(m, TYPE_F32, -0.0); /* not all bits zero */
    CHECK_EQ(ir_fold(m, OP_SPLAT, ir_type_vector(S_F32, 2), 1, &minus, 0, 0), 0);

    /* Bitcasts between scalars and vectors. */
    const uint32_t low_high[] = {ir_const(m, TYPE_U32, 0x89abcdef), ir_const(m, TYPE_U32, 0x01234567)};
    const uint32_t v = ir_node(&b, OP_MAKE, v2, 2, low_high, 0, 0);
    CHECK_EQ(ir_fold(m, OP_BITCAST, TYPE_U64, 1, &v, 0, 0), ir_const(m, TYPE_U64, 0x0123456789abcdef));
    CHECK_EQ(ir_fold(m, OP_BITCAST, TYPE_F32, 1, &low_high[1], 0, 0), ir_const(m, TYPE_F32, 0x01234567));
    CHECK_EQ(ir_fold(m, OP_BITCAST, ir_type_vector(S_U16, 4), 1, (const uint32_t[]){ir_zero(m, v2)}, 0, 0),
             ir_zero(m, ir_type_vector(S_U16, 4)));
    CHECK_EQ(ir_fold(m, OP_BITCAST, ir_type_vector(S_U16, 4), 1, &v, 0, 0), 0);

    /* Select: the chosen operand, known or not. */
    const struct param p = {.type = TYPE_U32};
    const uint32_t x = ir_param(m, b.func, &p);
    const uint32_t yes = ir_const(m, TYPE_BOOL, 1), no = ir_const(m, TYPE_BOOL, 0);
    CHECK_EQ(ir_fold(m, OP_SELECT, TYPE_U32, 3, (const uint32_t[]){yes, c[0], x}, 0, 0), c[0]);
    CHECK_EQ(ir_fold(m, OP_SELECT, TYPE_U32, 3, (const uint32_t[]){no, c[0], x}, 0, 0), 0);
    CHECK_EQ(ir_op3(&b, OP_SELECT, no, c[0], c[1]), c[1]);
    CHECK_EQ(ir_op3(&b, OP_SELECT, yes, zero, zero), zero);
    CHECK_EQ(ir_fold(m, OP_ADD, TYPE_U32, 2, (const uint32_t[]){c[0], x}, 0, 0), 0);

    /* Structs and arrays. */
    const ir_type array = ir_type_array(m, v4, 3);
    const uint32_t rows[] = {zero, zero, make};
    const uint32_t a = ir_node(&b, OP_MAKE, array, 3, rows, 0, 0);
    CHECK_EQ(ir_fold(m, OP_EXTRACT, v4, 1, &a, 0, 1), zero);
    CHECK_EQ(ir_fold(m, OP_EXTRACT, v4, 1, &a, 0, 2), 0); /* no constant node */
    const uint32_t za = ir_zero(m, array);
    CHECK_EQ(ir_fold(m, OP_EXTRACT, v4, 1, &za, 0, 2), zero);

    /* Never: memory, order, other lanes. */
    const uint32_t null = ir_zero(m, TYPE_POINTER(SPACE_DEVICE));
    CHECK_EQ(ir_fold(m, OP_LOAD, TYPE_U32, 1, &null, 0, 0), 0);
    CHECK_EQ(ir_fold(m, OP_SIMD_SUM, TYPE_U32, 1, c, 0, 0), 0);
    CHECK_EQ(ir_fold(m, OP_SIMD_ALL, TYPE_BOOL, 1, &yes, 0, 0), 0);
    CHECK_EQ(ir_fold(m, OP_INDEX, TYPE_POINTER(SPACE_DEVICE), 2, (const uint32_t[]){null, c[0]}, 0, TYPE_F32), 0);
    CHECK_EQ(ir_fold(m, OP_BR, TYPE_VOID, 1, c, 0, 0), 0);
}

/* ---- whole modules --------------------------------------------------------------------------------------------- */

/* out[i] = f(a[i]) some hundred times, with a loop, a switch, structs and many constants. */
static void build_large(struct ir_module *m)
{
    struct ir_builder b = new_kernel(m, "large");
    const struct param p = {
        .name = ir_string(m, "a"), .type = TYPE_POINTER(SPACE_DEVICE), .elem = TYPE_F32, .kind = PARAM_BUFFER};
    const struct param q = {.name = ir_string(m, "i"), .type = TYPE_U32, .kind = PARAM_ATTRIBUTE, .attribute = 1};
    const uint32_t a = ir_param(m, b.func, &p), i = ir_param(m, b.func, &q);
    const uint32_t file = ir_string(m, "large.py");
    for (uint32_t k = 0; k < 300; k++) {
        b.place = ir_place(m, file, k + 1, 1, 0);
        const uint32_t x = ir_load(&b, TYPE_F32, ir_index(&b, TYPE_F32, a, i));
        const uint32_t y = ir_op2(&b, OP_MUL, x, ir_const_f(m, TYPE_F32, k));
        ir_store(&b, ir_index(&b, TYPE_F32, a, ir_op2(&b, OP_ADD, i, ir_const(m, TYPE_U32, k))), y);
        if (k % 50 == 0) {
            const uint32_t first[] = {y, y, x, x};
            const uint32_t loop = ir_construct(&b, OP_LOOP, 4, first, 1);
            (void)ir_add_arg(m, loop, TYPE_F32, x);
            (void)ir_result(m, loop, TYPE_F32);
            const uint32_t sw = ir_construct(&b, OP_SWITCH, 1, &i, 2);
            ir_case(m, ir_region(m, sw, 0), k);
            ir_case(m, ir_region(m, sw, 1), k + 1);
            const struct field f[] = {{file, ir_type_array(m, TYPE_F32, k + 1), 0}, {0, TYPE_BOOL, 0}};
            (void)ir_zero(m, ir_type_struct(m, file, 2, f));
        }
    }
}

#define SAME(a, b, v)                                                                                                  \
    do {                                                                                                               \
        CHECK_EQ((a)->v.n, (b)->v.n);                                                                                  \
        CHECK((a)->v.n == (b)->v.n && memcmp((a)->v.at, (b)->v.at, (a)->v.n * sizeof *(a)->v.at) == 0);                \
    } while (0)

static void same_modules(const struct ir_module *a, const struct ir_module *b)
{
    SAME(a, b, nodes);
    SAME(a, b, side);
    SAME(a, b, regions);
    SAME(a, b, cases);
    SAME(a, b, places);
    SAME(a, b, types);
    SAME(a, b, fields);
    SAME(a, b, params);
    SAME(a, b, funcs);
    CHECK_EQ(a->strings.str.n, b->strings.str.n);
    for (uint32_t id = 0; id < a->strings.str.n; id++)
        CHECK_EQ_STR(strtab_str(&a->strings, id), strtab_str(&b->strings, id));
}

static void test_clone(struct ir_module *m)
{
    build_large(m);
    struct ir_module *const c = ir_module_clone(m->mem, m);
    same_modules(m, c);
    CHECK_EQ(ir_module_bytes(m), ir_module_bytes(c));
    /* Interned things are found again in the copy, and it is a copy. */
    CHECK_EQ(ir_const_f(c, TYPE_F32, 7), ir_const_f(m, TYPE_F32, 7));
    CHECK_EQ(ir_place(c, ir_string(c, "large.py"), 9, 1, 0), ir_place(m, ir_string(m, "large.py"), 9, 1, 0));
    CHECK_EQ(ir_type_array(c, TYPE_F32, 51), ir_type_array(m, TYPE_F32, 51));
    same_modules(m, c);
    const uint32_t n = m->nodes.n;
    build_large(c);
    CHECK_EQ(m->nodes.n, n);
    ir_module_free(c);
}

static void test_bytes(struct ir_module *m)
{
    CHECK_EQ(ir_module_bytes(m), 0);
    build_large(m);
    const double each = (double)ir_module_bytes(m) / (m->nodes.n - 1);
    CHECK(each >= 48 && each <= 64);
}

static sk_status run(struct mem *m, void (*test)(struct ir_module *))
{
    struct ir_module *const module = ir_module_new(m);
    test(module);
    ir_module_free(module);
    return SK_OK;
}

/* The module of a run that ran out of memory is freed as its owner would. */
struct failing {
    struct mem *mem;
    struct ir_module *module, *clone;
};

static sk_status build_and_clone(struct failing *f)
{
    f->module = ir_module_new(f->mem);
    build_large(f->module);
    f->clone = ir_module_clone(f->mem, f->module);
    uint32_t many[50] = {0};
    struct ir_builder b = new_kernel(f->clone, "more");
    const uint32_t id = ir_node(&b, OP_MAKE, TYPE_VOID, 50, many, 0, 0);
    ir_set_inputs(f->clone, id, 50, many);
    return SK_OK;
}

static sk_status guarded(struct failing *f, sk_error *err)
{
    sk_status status;
    MEM_GUARD(f->mem, err, status, build_and_clone(f));
    return status;
}

static void test_out_of_memory(void)
{
    for (long k = 0;; k++) {
        struct faulty counts = {.left = k};
        struct mem m;
        const sk_allocator a = faulty_allocator(&counts);
        mem_init(&m, &a);
        struct failing f = {.mem = &m};
        sk_error err = {0};
        const sk_status status = guarded(&f, &err);
        if (f.module) /* still whole enough to be read and copied */
            CHECK(ir_module_bytes(f.module) < 1000000);
        ir_module_free(f.clone);
        ir_module_free(f.module);
        CHECK(faulty_clean(&counts));
        CHECK_EQ(m.live, 0);
        if (status == SK_OK) {
            CHECK(k > 50);
            return;
        }
        CHECK_EQ(status, SK_ERR_MEMORY);
    }
}

static sk_status too_many_operands(struct mem *m)
{
    struct ir_module *const module = ir_module_new(m);
    struct ir_builder b = new_kernel(module, "f");
    static uint32_t many[70000];
    (void)ir_node(&b, OP_MAKE, TYPE_VOID, 65535, many, 0, 0);
    ir_module_free(module);
    return SK_OK;
}

int main(void)
{
    static void (*const tests[])(struct ir_module *) = {
        test_fixed_types, test_aggregates, test_type_limit, test_constants, test_places, test_functions,
        test_nodes,       test_constructs, test_changing,   test_fold,      test_clone,  test_bytes,
    };
    struct mem m;
    mem_init(&m, NULL);
    sk_error err = {0};
    volatile sk_status status = SK_OK;
    test_tables();
    for (volatile size_t k = 0; k < sizeof tests / sizeof *tests; k++) {
        MEM_GUARD(&m, &err, status, run(&m, tests[k]));
        CHECK_EQ(status, SK_OK);
        CHECK_EQ(m.live, 0);
    }
    MEM_GUARD(&m, &err, status, too_many_operands(&m));
    CHECK_EQ(status, SK_OK);
    ir_module_free(NULL);
    test_out_of_memory();
    return check_done();
}
