/* Blocks, loops, barriers, functions and names, through the tracer's internal interface. */
#include "trace_fixture.h"

/* ---- range ------------------------------------------------------------------------------------------------------------- */

/* Its type, then '~' if the last step is cut, '+' if the loop counts; or the error. */
static const char *range(struct tv start, struct tv stop, struct tv step)
{
    static char text[40];
    struct tv var = {0};
    uint32_t scope = 0;
    if (trace_range(t, start, stop, step, &var, &scope, &err) != SK_OK)
        return error_name();
    const struct ir_module *const m = trace_module(t);
    const uint32_t loop = ir_region_at(m, ir_at(m, var.id)->region)->owner;
    (void)snprintf(text, sizeof text, "%s", type_name(var));
    CHECK_EQ(trace_end_scope(t, scope, &err), SK_OK);
    const uint32_t br = ir_region_at(m, ir_region(m, ir_region_at(m, ir_region(m, loop, 0))->last, 0))->last;
    const bool clipped = ir_at(m, ir_in(m, ir_in(m, br)[0])[1])->op != OP_CONST;
    (void)strcat(text, ir_at(m, loop)->n == 2 ? "+" : clipped ? "~" : "");
    return text;
}

static void test_range(void)
{
    struct tv v;
    begin();
    CHECK_EQ_STR(range(tv_int(0), tv_int(10), tv_int(1)), "u32");
    CHECK_EQ_STR(range(tv_int(-3), tv_int(3), tv_int(1)), "i32");
    CHECK_EQ_STR(range(tv_int(9), tv_int(0), tv_int(-1)), "i32");
    CHECK_EQ_STR(range(tv_int(0), tv_int(10), tv_int(3)), "u32");
    CHECK_EQ_STR(range(tv_int(0), (struct tv){.kind = TV_INT, .magnitude = 0xffffffff}, tv_int(3)), "u32~");
    CHECK_EQ_STR(range(tv_int(0), tv_int(-2147483647), tv_int(-5)), "i32~");
    CHECK_EQ_STR(range(tv_int(0), tv_int(-2147483640), tv_int(-5)), "i32");
    CHECK_EQ_STR(range(tv_int(0), val[S_U32], tv_int(1)), "u32");
    CHECK_EQ_STR(range(val[S_U32], tv_int(0), tv_int(-1)), "i32");
    CHECK_EQ_STR(range(tv_int(-1), val[S_U8], tv_int(1)), "i32");
    CHECK_EQ_STR(range(tv_int(-1), val[S_U64], tv_int(1)), "i64");
    CHECK_EQ_STR(range(tv_int(0), val[S_U32], tv_int(4)), "u32~");
    CHECK_EQ_STR(range(tv_int(0), tid, tv_int(4)), "u32");
    CHECK_EQ_STR(range(tv_int(0), val[S_U8], tv_int(4)), "u8~");
    CHECK_EQ_STR(range(val[S_U32], val[S_U8], tv_int(4)), "u32"); /* stop is small */
    CHECK_EQ(trace_binary(t, OP_DIV_FLOOR, val[S_U32], tv_int(8), &v, &err), SK_OK);
    CHECK_EQ_STR(range(tv_int(0), v, tv_int(8)), "u32");
    CHECK_EQ(trace_binary(t, OP_MUL, v, tv_int(8), &v, &err), SK_OK);
    CHECK_EQ_STR(range(tv_int(0), v, tv_int(8)), "u32");
    CHECK_EQ_STR(range(tv_int(0), v, tv_int(9)), "u32~");
    CHECK_EQ_STR(range(tv_int(0), val[S_U32], val[S_U32]), "u32~");
    CHECK_EQ_STR(range(tv_int(0), val[S_I32], val[S_I8]), "i32+");
    CHECK_EQ_STR(range(val[S_I32], val[S_U32], tv_int(1)), "MIXED_SIGNS");
    CHECK_EQ_STR(range(val[S_I8], val[S_I64], tv_int(1)), "i64");
    CHECK_EQ_STR(range(tv_int(0), tv_int(1), tv_int(0)), "RANGE_STEP");
    CHECK_EQ_STR(range(tv_int(0), val[S_F32], tv_int(1)), "NOT_AN_INTEGER");
    CHECK_EQ_STR(range(tv_int(0), tv_float(4), tv_int(1)), "NOT_AN_INTEGER");
    CHECK_EQ_STR(range(tv_int(0), (struct tv){.kind = TV_INT, .magnitude = 1ull << 32}, tv_int(1)), "DOES_NOT_FIT");
    CHECK_EQ_STR(range(tv_int(0), val[S_U8], tv_int(256)), "DOES_NOT_FIT");
    CHECK_EQ(trace_cast(t, (struct tv){.kind = TV_INT, .magnitude = 0xffffffff}, TYPE_U32, &v, &err), SK_OK);
    CHECK_EQ_STR(range(v, tv_int(-1), tv_int(-1)), "RANGE_BOUND");
    CHECK_EQ(trace_cast(t, tv_int(0), TYPE_U32, &v, &err), SK_OK);
    CHECK_EQ_STR(range(tv_int(0), val[S_U32], v), "RANGE_STEP");
    finish(NULL, 0);
}

/* ---- scopes ------------------------------------------------------------------------------------------------------------ */

static void test_scopes(void)
{
    struct tv inner, v, local;
    uint32_t a, b, c;
    const struct tv zero = tv_int(0);
    begin();
    CHECK_EQ(trace_if(t, val[S_BOOL], &a, &err), SK_OK);
    CHECK_EQ(trace_local(t, TYPE_F32, zero, &local, &err), SK_OK);
    CHECK_EQ(trace_binary(t, OP_ADD, val[S_F32], tv_int(1), &inner, &err), SK_OK);
    trace_place(t, file, 11, 0);
    CHECK_EQ(trace_if(t, val[S_BOOL], &b, &err), SK_OK);
    CHECK_EQ(trace_binary(t, OP_ADD, inner, tv_int(1), &v, &err), SK_OK);
    trace_place(t, file, 12, 0);
    CHECK_EQ(trace_end_scope(t, a, &err), SK_ERR_TRACE); /* b is open: its line is named */
    CHECK_EQ(err.line, 11);
    CHECK_EQ_STR(error_name(), "BLOCK_OPEN");
    CHECK_EQ(trace_end_scope(t, b, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, b, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "BLOCK_ENDED");
    CHECK_EQ(trace_end_scope(t, a, &err), SK_OK);
    CHECK_EQ(trace_binary(t, OP_ADD, inner, tv_int(1), &v, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "AFTER_BLOCK");
    CHECK_EQ(trace_assign(t, local, zero, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "AFTER_BLOCK");

    /* else must follow at once */
    CHECK_EQ(trace_if(t, val[S_BOOL], &a, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, a, &err), SK_OK);
    CHECK_EQ(trace_store(t, buffer[S_F32], 1, &zero, zero, &err), SK_OK);
    CHECK_EQ(trace_else(t, a, &b, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "ELSE_LATE");
    CHECK_EQ(trace_elif(t, a, val[S_BOOL], &b, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "ELSE_LATE");
    /* an if inside the body is another one */
    CHECK_EQ(trace_if(t, val[S_BOOL], &a, &err), SK_OK);
    CHECK_EQ(trace_if(t, val[S_BOOL], &b, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, b, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, a, &err), SK_OK);
    CHECK_EQ(trace_else(t, b, &c, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "ELSE_LATE");
    CHECK_EQ(trace_else(t, a, &c, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, c, &err), SK_OK);
    CHECK_EQ(trace_else(t, a, &c, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "ELSE_LATE");

    CHECK_EQ(trace_break(t, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "NO_LOOP");
    CHECK_EQ(trace_continue(t, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "NO_LOOP");

    trace_place(t, file, 20, 0);
    CHECK_EQ(trace_range(t, zero, tv_int(3), tv_int(1), &v, &a, &err), SK_OK);
    trace_place(t, file, 21, 0);
    CHECK_EQ(trace_end(t, &err), SK_ERR_TRACE);
    CHECK_EQ(err.line, 20);
    CHECK_EQ_STR(error_name(), "RANGE_LEFT");
    CHECK_EQ(trace_where(t, val[S_BOOL], &b, &err), SK_OK);
    CHECK_EQ(trace_break(t, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "EXIT_IN_EXPRESSION");
    CHECK_EQ(trace_return(t, NULL, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "EXIT_IN_EXPRESSION");
    CHECK_EQ(trace_where_next(t, b, tv_int(1), &err), SK_OK);
    CHECK_EQ(trace_where_end(t, b, val[S_F16], &v, &err), SK_OK);
    CHECK_EQ_STR(type_name(v), "f16");
    CHECK_EQ(trace_end_scope(t, a, &err), SK_OK);
    finish(NULL, 0);
}

static void test_elif_text(void)
{
    static char text[4000];
    struct tv c, v = {0};
    uint32_t a, b, e;
    const struct tv zero = tv_int(0), one = tv_int(1);
    begin();
    CHECK_EQ(trace_if(t, val[S_BOOL], &a, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, a, &err), SK_OK);
    CHECK_EQ(trace_load(t, buffer[S_F32], 1, &zero, &v, &err), SK_OK);
    CHECK_EQ(trace_binary(t, OP_GT, v, zero, &c, &err), SK_OK);
    CHECK_EQ(trace_elif(t, a, c, &b, &err), SK_OK);
    CHECK_EQ(trace_store(t, buffer[S_F32], 1, &one, v, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, b, &err), SK_OK);
    CHECK_EQ(trace_elif(t, a, val[S_I8], &b, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, b, &err), SK_OK);
    CHECK_EQ(trace_else(t, b, &e, &err), SK_OK);
    CHECK_EQ(trace_store(t, buffer[S_F32], 1, &one, one, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, e, &err), SK_OK);
    CHECK_EQ(trace_binary(t, OP_ADD, v, one, &c, &err), SK_ERR_TRACE); /* computed only where the first was false */
    CHECK_EQ_STR(error_name(), "AFTER_BLOCK");
    finish(text, sizeof text);
    CHECK_EQ_STR(text, "  if %bool {\n"
                       "  } else {\n"
                       "    %0 = index ptr.device %pf32, 0:i32 of f32\n"
                       "    %1 = load f32 %0\n"
                       "    %2 = gt bool %1, 0.0:f32\n"
                       "    if %2 {\n"
                       "      %3 = index ptr.device %pf32, 1:i32 of f32\n"
                       "      store %3, %1\n"
                       "    } else {\n"
                       "      %4 = ne bool %i8, 0:i8\n"
                       "      if %4 {\n"
                       "      } else {\n"
                       "        %5 = index ptr.device %pf32, 1:i32 of f32\n"
                       "        store %5, 1.0:f32\n"
                       "      }\n"
                       "    }\n"
                       "  }\n"
                       "  %6 = index ptr.device %pf32, 7:i32 of f32\n"
                       "  store %6, 7.0:f32\n"
                       "}\n");
}

static void test_dead_code(void)
{
    static char text[4000];
    struct tv i, v;
    uint32_t loop, c;
    const struct tv zero = tv_int(0);
    begin();
    CHECK_EQ(trace_range(t, zero, tv_int(3), tv_int(1), &i, &loop, &err), SK_OK);
    CHECK_EQ(trace_load(t, buffer[S_F32], 1, &i, &v, &err), SK_OK);
    CHECK_EQ(trace_break(t, &err), SK_OK);
    CHECK_EQ(trace_store(t, buffer[S_F32], 1, &i, v, &err), SK_OK); /* seen, checked and dropped */
    CHECK_EQ(trace_if(t, v, &c, &err), SK_OK);
    CHECK_EQ(trace_continue(t, &err), SK_OK);
    CHECK_EQ(trace_store(t, buffer[S_F32], 1, &i, v, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, c, &err), SK_OK);
    CHECK_EQ(trace_break(t, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, loop, &err), SK_OK);
    CHECK_EQ(trace_binary(t, OP_ADD, v, zero, &v, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "AFTER_BLOCK");
    finish(text, sizeof text);
    CHECK_EQ_STR(text, "  block {\n"
                       "    loop (%0: u32 = 0:u32) {\n"
                       "      %1 = lt bool %0, 3:u32\n"
                       "      if %1 {\n"
                       "        %2 = index ptr.device %pf32, %0 of f32\n"
                       "        %3 = load f32 %2\n"
                       "        br 2\n"
                       "      }\n"
                       "    }\n"
                       "  }\n"
                       "  %4 = index ptr.device %pf32, 7:i32 of f32\n"
                       "  store %4, 7.0:f32\n"
                       "}\n");
}

/* ---- while: replay ----------------------------------------------------------------------------------------------------- */

/* while (v + 1 < a[0]) on line 30, with a value of line 29 in it; the body on line 31. */
static const char *replay(bool body_writes_early, bool early_is_multiline, bool atomic)
{
    struct tv n, i, c, v, w, x;
    uint32_t loop;
    const struct tv zero = tv_int(0), one = tv_int(1);
    CHECK_EQ(trace_local(t, TYPE_U32, zero, &i, &err), SK_OK);
    CHECK_EQ(trace_local(t, TYPE_U32, zero, &w, &err), SK_OK);
    trace_place(t, file, 29, 0);
    CHECK_EQ(trace_binary(t, OP_ADD, w, one, &n, &err), SK_OK);
    trace_place(t, file, early_is_multiline ? 31 : 30, 0);
    CHECK_EQ(trace_binary(t, OP_ADD, i, one, &v, &err), SK_OK);
    CHECK_EQ(trace_load(t, buffer[S_U32], 1, &i, &x, &err), SK_OK);
    if (atomic)
        CHECK_EQ(trace_atomic(t, OP_ATOMIC_ADD, buffer[S_U32], 1, &zero, 1, &one, ORDER_RELAXED, &x, &err), SK_OK);
    CHECK_EQ(trace_binary(t, OP_ADD, x, n, &x, &err), SK_OK);
    CHECK_EQ(trace_binary(t, OP_LT, v, x, &c, &err), SK_OK);
    trace_place(t, file, 30, 0);
    if (early_is_multiline)
        trace_extent(t, 32);
    if (trace_while(t, c, &loop, &err) != SK_OK)
        return error_name();
    trace_place(t, file, 33, 0);
    CHECK_EQ(trace_assign_op(t, i, OP_ADD, one, &err), SK_OK);
    CHECK_EQ(trace_store(t, buffer[S_U32], 1, &zero, one, &err), SK_OK);
    if (body_writes_early)
        CHECK_EQ(trace_assign(t, w, one, &err), SK_OK);
    if (trace_end_scope(t, loop, &err) != SK_OK) {
        CHECK_EQ(err.line, 30);
        return error_name();
    }
    return "";
}

static void test_while(void)
{
    static char text[4000], again[4000];
    begin();
    CHECK_EQ_STR(replay(false, false, false), "");
    finish(text, sizeof text);
    CHECK_EQ_STR(text, "  %0 = var u32 0:u32\n"
                       "  %1 = var u32 0:u32\n"
                       "  %2 = get u32 %1\n"
                       "  %3 = add u32 %2, 1:u32\n"
                       "  loop {\n"
                       "    %4 = get u32 %0\n"
                       "    %5 = add u32 %4, 1:u32\n"
                       "    %6 = get u32 %0\n"
                       "    %7 = index ptr.device %pu32, %6 of u32\n"
                       "    %8 = load u32 %7\n"
                       "    %9 = add u32 %8, %3\n"
                       "    %10 = lt bool %5, %9\n"
                       "    if %10 {\n"
                       "      %11 = get u32 %0\n"
                       "      %12 = add u32 %11, 1:u32\n"
                       "      set %0, %12\n"
                       "      %13 = index ptr.device %pu32, 0:i32 of u32\n"
                       "      store %13, 1:u32\n"
                       "      br 1\n"
                       "    }\n"
                       "  }\n"
                       "  %14 = index ptr.device %pf32, 7:i32 of f32\n"
                       "  store %14, 7.0:f32\n"
                       "}\n");
    begin(); /* the same over several lines */
    CHECK_EQ_STR(replay(false, true, false), "");
    finish(again, sizeof again);
    CHECK_EQ_STR(again, text);
    begin();
    CHECK_EQ_STR(replay(true, false, false), "WHILE_FROZEN");
    drop();
    begin();
    CHECK_EQ_STR(replay(false, false, true), "WHILE_ATOMIC");
    drop();

    struct tv i, c;
    uint32_t loop;
    begin(); /* a local as the condition; a condition of an earlier line that nothing changes */
    CHECK_EQ(trace_local(t, TYPE_U32, tv_int(3), &i, &err), SK_OK);
    CHECK_EQ(trace_while(t, i, &loop, &err), SK_OK);
    CHECK_EQ(trace_assign_op(t, i, OP_SUB, tv_int(1), &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, loop, &err), SK_OK);
    CHECK_EQ(trace_binary(t, OP_LT, i, tv_int(5), &c, &err), SK_OK);
    trace_place(t, file, 40, 0);
    CHECK_EQ(trace_while(t, c, &loop, &err), SK_OK);
    CHECK_EQ(trace_break(t, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, loop, &err), SK_OK);
    CHECK_EQ(trace_while(t, tv_bool(true), &loop, &err), SK_OK);
    CHECK_EQ(trace_break(t, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, loop, &err), SK_OK);
    /* sk.load(where=) in a condition moves with it */
    trace_place(t, file, 41, 0);
    const struct tv zero = tv_int(0);
    CHECK_EQ(trace_load_where(t, buffer[S_U32], 1, &zero, i, tv_int(0), &c, &err), SK_OK);
    CHECK_EQ(trace_while(t, c, &loop, &err), SK_OK);
    CHECK_EQ(trace_assign_op(t, i, OP_SUB, tv_int(1), &err), SK_OK);
    CHECK_EQ(trace_store(t, buffer[S_U32], 1, &zero, i, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, loop, &err), SK_OK);
    /* the same made on an earlier line depends on what the body stores */
    CHECK_EQ(trace_load_where(t, buffer[S_U32], 1, &zero, i, tv_int(0), &c, &err), SK_OK);
    trace_place(t, file, 42, 0);
    CHECK_EQ(trace_while(t, c, &loop, &err), SK_OK);
    CHECK_EQ(trace_store(t, buffer[S_U32], 1, &zero, i, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, loop, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "WHILE_FROZEN");
    drop();
}

/* ---- divergence ---------------------------------------------------------------------------------------------------------- */

/* Whether a barrier under `v op number` is refused. */
static bool refused(enum op op, struct tv v, struct tv number, bool in_else)
{
    struct tv c;
    uint32_t scope;
    CHECK_EQ(trace_binary(t, op, v, number, &c, &err), SK_OK);
    CHECK_EQ(trace_if(t, c, &scope, &err), SK_OK);
    if (in_else) {
        CHECK_EQ(trace_end_scope(t, scope, &err), SK_OK);
        CHECK_EQ(trace_else(t, scope, &scope, &err), SK_OK);
    }
    const bool out = trace_barrier(t, OP_BARRIER, MEMORY_THREADGROUP, &err) != SK_OK;
    if (out)
        CHECK_EQ_STR(error_name(), "BARRIER_DIVERGENT");
    CHECK_EQ(trace_end_scope(t, scope, &err), SK_OK);
    return out;
}

static void test_barriers(void)
{
    struct tv v, x, i;
    uint32_t scope;
    begin();
    CHECK_EQ(trace_barrier(t, OP_BARRIER, MEMORY_THREADGROUP, &err), SK_OK);
    CHECK(refused(OP_EQ, tid, tv_int(0), false));
    CHECK(refused(OP_NE, lane, tv_int(1), true));
    CHECK(refused(OP_LT, lane, tv_int(1), false));
    CHECK(!refused(OP_LT, tid, tv_int(32), false));
    CHECK(!refused(OP_GT, tid, tv_int(1), false));
    CHECK(!refused(OP_LT, val[S_U32], tv_int(1), false));
    CHECK(!refused(OP_LT, tid, val[S_U32], false));
    CHECK_EQ(trace_binary(t, OP_REM_FLOOR, tid, tv_int(2), &v, &err), SK_OK);
    CHECK(refused(OP_EQ, v, tv_int(0), false));
    CHECK_EQ(trace_binary(t, OP_AND, tid, tv_int(1), &v, &err), SK_OK);
    CHECK(refused(OP_NE, v, tv_int(0), false));
    CHECK_EQ(trace_extract(t, pos2, 0, &x, &err), SK_OK);
    CHECK(!refused(OP_EQ, x, tv_int(0), false)); /* the group may be one thread wide */
    CHECK_EQ(trace_extract(t, pos2, 1, &v, &err), SK_OK);
    CHECK_EQ(trace_binary(t, OP_ADD, v, x, &v, &err), SK_OK);
    CHECK(refused(OP_EQ, v, tv_int(0), false));
    /* threads 0 and 1 do not come here at all */
    CHECK_EQ(trace_binary(t, OP_GT, tid, tv_int(7), &v, &err), SK_OK);
    CHECK_EQ(trace_if(t, v, &scope, &err), SK_OK);
    CHECK(!refused(OP_EQ, tid, tv_int(0), false));
    CHECK_EQ(trace_end_scope(t, scope, &err), SK_OK);
    /* a range that thread 0 does not enter */
    CHECK_EQ(trace_range(t, tv_int(0), tid, tv_int(1), &i, &scope, &err), SK_OK);
    CHECK_EQ(trace_barrier(t, OP_BARRIER, MEMORY_THREADGROUP, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "BARRIER_DIVERGENT");
    CHECK_EQ(trace_barrier(t, OP_SIMDGROUP_BARRIER, MEMORY_THREADGROUP, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, scope, &err), SK_OK);
    /* a function with a barrier */
    uint32_t f;
    struct tv none;
    CHECK_EQ(trace_begin(t, &(struct trace_func_desc){.name = "sync"}, &f, &err), SK_OK);
    CHECK_EQ(trace_barrier(t, OP_BARRIER, MEMORY_THREADGROUP, &err), SK_OK);
    CHECK_EQ(trace_end(t, &err), SK_OK);
    CHECK_EQ(trace_binary(t, OP_EQ, tid, tv_int(0), &v, &err), SK_OK);
    CHECK_EQ(trace_if(t, v, &scope, &err), SK_OK);
    CHECK_EQ(trace_call(t, f, 0, NULL, &none, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "BARRIER_DIVERGENT");
    CHECK_EQ(trace_return(t, NULL, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, scope, &err), SK_OK);
    CHECK(!refused(OP_NE, tid, tv_int(0), false)); /* thread 0 has ended */
    finish(NULL, 0);
}

/* ---- functions ----------------------------------------------------------------------------------------------------------- */

static void test_functions(void)
{
    struct tv x, p, v, call;
    uint32_t f, g, scope;
    const struct tv zero = tv_int(0);
    begin();
    CHECK_EQ(trace_if(t, val[S_BOOL], &scope, &err), SK_OK); /* nested in an open block */
    CHECK_EQ(trace_begin(t, &(struct trace_func_desc){.name = "f", .result = TYPE_F32}, &f, &err), SK_OK);
    x = param("x", PARAM_VALUE, TYPE_F32, 0, 0);
    p = param("x", PARAM_BUFFER, TYPE_POINTER(SPACE_DEVICE), TYPE_F32, 0); /* renamed */
    CHECK_EQ(trace_binary(t, OP_ADD, val[S_F32], x, &v, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(err.message, "a value of 'k' is used in 'f'; pass it as an argument");
    CHECK_EQ_STR(error_name(), "OTHER_FUNCTION");
    CHECK_EQ(trace_call(t, f, 0, NULL, &call, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "RECURSION");
    CHECK_EQ(trace_load(t, p, 1, &zero, &v, &err), SK_OK);
    const struct trace_param_desc late = {.name = "late", .type = TYPE_F32};
    CHECK_EQ(trace_param(t, &late, &v, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "PARAM_LATE");
    CHECK_EQ(trace_array(t, SPACE_THREADGROUP, TYPE_F32, 1, (const uint64_t[]){4}, &v, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "ARRAY_IN_FUNCTION");
    CHECK_EQ(trace_end(t, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "NO_RETURN");
    CHECK_EQ(trace_return(t, NULL, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "RETURN_NOTHING");
    CHECK_EQ(trace_return(t, &val[0], &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NO_VALUE");
    CHECK_EQ(trace_return(t, &zero, &err), SK_OK);
    CHECK_EQ(trace_end(t, &err), SK_OK);
    CHECK_EQ(trace_call(t, f, 2, (struct tv[]){val[S_I8], buffer[S_F32]}, &call, &err), SK_OK);
    CHECK_EQ_STR(type_name(call), "f32");
    CHECK_EQ(trace_call(t, f, 1, (struct tv[]){val[S_I8]}, &call, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "ARGUMENT_COUNT");
    CHECK_EQ(trace_call(t, f, 2, (struct tv[]){val[S_I8], buffer[S_F16]}, &call, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "ARGUMENT_POINTER");
    CHECK_EQ(trace_call(t, f, 2, (struct tv[]){vec3, buffer[S_F32]}, &call, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(err.message,
                 "argument 'x' of 'f' is f32, which f32x3 does not become by itself; convert it with sk.cast");
    CHECK_EQ_STR(error_name(), "NEEDS_CAST");
    CHECK_EQ(trace_call(t, func, 0, NULL, &call, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NOT_CALLABLE");

    CHECK_EQ(trace_begin(t, &(struct trace_func_desc){.name = "f"}, &g, &err), SK_OK); /* another f: renamed */
    CHECK_EQ(trace_return(t, &zero, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "RETURN_VALUE");
    CHECK_EQ(trace_end(t, &err), SK_OK);
    CHECK_EQ(trace_call(t, g, 0, NULL, &call, &err), SK_OK);
    CHECK_EQ(call.kind, TV_NONE);
    CHECK_EQ(trace_binary(t, OP_ADD, call, zero, &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NO_VALUE");

    /* one given up in the middle of a block leaves nothing */
    CHECK_EQ(trace_begin(t, &(struct trace_func_desc){.name = "h"}, &g, &err), SK_OK);
    CHECK_EQ(trace_if(t, tv_bool(true), &f, &err), SK_OK);
    CHECK_EQ(trace_begin(t, &(struct trace_func_desc){.name = "inside"}, &f, &err), SK_OK);
    CHECK_EQ(trace_end(t, &err), SK_OK);
    trace_abandon(t);
    CHECK_EQ(trace_open_scope(t), scope);
    CHECK_EQ(trace_call(t, f, 0, NULL, &call, &err), SK_OK); /* what ended inside it stays */
    CHECK_EQ(trace_call(t, g, 0, NULL, &call, &err), SK_ERR_TRACE);
    sk_error_clear(&err);
    CHECK_EQ(trace_begin(t, &(struct trace_func_desc){.name = "q", .kernel = true}, &g, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "KERNEL_INSIDE");
    CHECK_EQ(trace_end_scope(t, scope, &err), SK_OK);
    finish(NULL, 0);
}

static void test_ends(void)
{
    struct ir_module *m = NULL;
    struct tv v;
    begin();
    trace_place(t, file, 50, 0);
    CHECK_EQ(trace_end(t, &err), SK_ERR_TRACE);
    CHECK_EQ(err.line, 1);
    CHECK_EQ_STR(error_name(), "EMPTY_KERNEL");
    CHECK_EQ(trace_finish(t, &m, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "FUNCTION_OPEN");
    trace_abandon(t);
    CHECK_EQ(trace_finish(t, &m, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "NO_KERNEL");
    CHECK_EQ(trace_binary(t, OP_ADD, val[S_F32], tv_int(1), &v, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "NO_KERNEL");
    drop();

    begin();
    const struct tv old = val[S_F32];
    CHECK_EQ(trace_store(t, buffer[S_F32], 1, &(struct tv){.kind = TV_INT}, tv_int(0), &err), SK_OK);
    CHECK_EQ(trace_end(t, &err), SK_OK);
    CHECK_EQ(trace_finish(t, &m, &err), SK_OK);
    ir_module_free(m);
    CHECK(trace_finished(t));
    trace_place(t, trace_file(t, "kernel.py"), 51, 0);
    CHECK_EQ(trace_binary(t, OP_ADD, old, tv_int(1), &v, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(err.file, "kernel.py");
    CHECK_EQ(err.line, 51);
    CHECK_EQ_STR(error_name(), "TRACE_OVER");
    drop();
    begin();
    CHECK_EQ(trace_binary(t, OP_ADD, old, tv_int(1), &v, &err), SK_ERR_TRACE);
    CHECK_EQ_STR(error_name(), "OTHER_KERNEL");
    finish(NULL, 0);
}

static void test_limits(void)
{
    struct tv v = {0};
    uint32_t scope, k;
    begin();
    for (k = 0; trace_if(t, val[S_BOOL], &scope, &err) == SK_OK; k++)
        continue;
    CHECK_EQ_STR(error_name(), "TOO_DEEP");
    CHECK(k > 100 && k < IR_MAX_DEPTH);
    while ((scope = trace_open_scope(t)))
        CHECK_EQ(trace_end_scope(t, scope, &err), SK_OK);
    /* elif chains nest too */
    CHECK_EQ(trace_if(t, val[S_BOOL], &scope, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, scope, &err), SK_OK);
    for (k = 0; trace_elif(t, scope, val[S_BOOL], &scope, &err) == SK_OK; k++)
        CHECK_EQ(trace_end_scope(t, scope, &err), SK_OK);
    CHECK_EQ_STR(error_name(), "TOO_DEEP");
    CHECK_EQ(trace_else(t, scope, &scope, &err), SK_OK);
    CHECK_EQ(trace_end_scope(t, scope, &err), SK_OK);
    finish(NULL, 0);

    mem_init(&mem, NULL);
    mem.recover = &no_memory;
    t = trace_new(&mem);
    CHECK_EQ(trace_begin(t, &(struct trace_func_desc){.name = "big", .kernel = true}, &func, &err), SK_OK);
    const struct trace_param_desc d = {
        .name = "p", .type = TYPE_POINTER(SPACE_DEVICE), .elem = TYPE_F32, .kind = PARAM_BUFFER};
    for (k = 0; trace_param(t, &d, &v, &err) == SK_OK; k++)
        continue;
    CHECK_EQ(k, 31);
    CHECK_EQ_STR(error_name(), "TOO_MANY_BUFFERS");
    const struct trace_param_desc bad = {.name = "i",
                                         .type = TYPE_VECTOR(S_U32, 3),
                                         .kind = PARAM_ATTRIBUTE,
                                         .attribute = ATTR_THREAD_INDEX_IN_SIMDGROUP};
    CHECK_EQ(trace_param(t, &bad, &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "ATTRIBUTE_TYPE");
    drop();
}

/* ---- names --------------------------------------------------------------------------------------------------------------- */

static void test_names(void)
{
    static char text[4000];
    struct tv v, s;
    const struct tv zero = tv_int(0);
    begin();
    CHECK_EQ(trace_load(t, buffer[S_F32], 1, &zero, &v, &err), SK_OK);
    trace_name(t, v, "2nd value");
    trace_name(t, v, "other"); /* has one */
    trace_name(t, zero, "n");
    trace_name(t, val[S_F32], "n");
    CHECK_EQ(trace_array(t, SPACE_THREADGROUP, TYPE_F32, 1, (const uint64_t[]){4}, &s, &err), SK_OK);
    trace_name(t, s, "tile");
    CHECK_EQ(trace_binary(t, OP_ADD, s, zero, &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(err.message, "'tile' is a pointer, not a number; read an element with [index]");
    CHECK_EQ_STR(error_name(), "POINTER_AS_VALUE");
    finish(text, sizeof text);
    CHECK(strstr(text, "%_2nd_value.1 = load") != NULL);
    CHECK(strstr(text, "%tile.2 = alloc ptr.threadgroup of [f32 x 4]") != NULL);
}

int main(void)
{
    TRACE_TESTS_BEGIN
    test_range();
    test_scopes();
    test_elif_text();
    test_dead_code();
    test_while();
    test_barriers();
    test_functions();
    test_ends();
    test_limits();
    test_names();
    return check_done();
}
