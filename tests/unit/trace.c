/* The types, conversions and memory of the language, through the tracer's internal interface. */
#include "trace_fixture.h"

/* "u32", or the name of the error. */
static const char *binary(enum op op, struct tv a, struct tv b)
{
    struct tv out = {0};
    return trace_binary(t, op, a, b, &out, &err) == SK_OK ? type_name(out) : error_name();
}

static const char *math(enum op op, unsigned n, struct tv a, struct tv b, struct tv c)
{
    struct tv out = {0};
    const struct tv v[] = {a, b, c};
    return trace_math(t, op, false, n, v, &out, &err) == SK_OK ? type_name(out) : error_name();
}

static uint64_t bits_of(struct tv v)
{
    const struct node *const x = ir_at(trace_module(t), v.id);
    CHECK_EQ(x->op, OP_CONST);
    return x->imm;
}

/* ---- types ------------------------------------------------------------------------------------------------------------- */

static void test_typed_mixing(void)
{
    begin();
    static const struct {
        enum scalar a, b;
        const char *add, *compare;
    } rows[] = {
        {S_I8, S_I8, "i8", "bool"},     {S_I8, S_I32, "i32", "bool"},         {S_U8, S_U64, "u64", "bool"},
        {S_I32, S_U16, "i32", "bool"},  {S_I32, S_U32, "u32", "MIXED_SIGNS"}, {S_I8, S_U32, "u32", "MIXED_SIGNS"},
        {S_I64, S_U32, "i64", "bool"},  {S_I64, S_U64, "u64", "MIXED_SIGNS"}, {S_I16, S_U16, "u16", "MIXED_SIGNS"},
        {S_I64, S_F16, "f16", "bool"},  {S_U32, S_F32, "f32", "bool"},        {S_U8, S_BF16, "bf16", "bool"},
        {S_F16, S_BF16, "f32", "bool"}, {S_F16, S_F32, "f32", "bool"},        {S_BOOL, S_BOOL, "i32", "bool"},
        {S_BOOL, S_I8, "i32", "bool"},  {S_BOOL, S_U32, "u32", "bool"},       {S_BOOL, S_I64, "i64", "bool"},
        {S_BOOL, S_F16, "f16", "bool"},
    };
    for (unsigned k = 0; k < sizeof rows / sizeof *rows; k++) {
        CHECK_EQ_STR(binary(OP_ADD, val[rows[k].a], val[rows[k].b]), rows[k].add);
        CHECK_EQ_STR(binary(OP_MUL, val[rows[k].b], val[rows[k].a]), rows[k].add);
        CHECK_EQ_STR(binary(OP_LT, val[rows[k].a], val[rows[k].b]), rows[k].compare);
        CHECK_EQ_STR(binary(OP_EQ, val[rows[k].b], val[rows[k].a]), rows[k].compare);
    }
    CHECK_EQ_STR(binary(OP_DIV_FLOOR, val[S_I32], val[S_U32]), "MIXED_SIGNS");
    CHECK_EQ_STR(binary(OP_REM_FLOOR, val[S_U32], val[S_I8]), "MIXED_SIGNS");
    CHECK_EQ_STR(binary(OP_DIV, val[S_U32], val[S_I32]), "MIXED_SIGNS");
    CHECK_EQ_STR(binary(OP_IPOW, val[S_U32], val[S_I32]), "MIXED_SIGNS");
    CHECK_EQ_STR(math(OP_MIN, 2, val[S_U32], val[S_I32], val[0]), "MIXED_SIGNS");
    CHECK_EQ_STR(math(OP_POW, 2, val[S_U32], val[S_I32], val[0]), "MIXED_SIGNS");
    CHECK_EQ_STR(binary(OP_XOR, val[S_U32], val[S_I32]), "u32");
    CHECK_EQ_STR(binary(OP_AND, val[S_BOOL], val[S_BOOL]), "bool");
    CHECK_EQ_STR(binary(OP_AND, val[S_BOOL], val[S_U64]), "u64");
    CHECK_EQ_STR(binary(OP_OR, val[S_F32], val[S_U64]), "WRONG_CLASS");
    CHECK_EQ_STR(binary(OP_DIV, val[S_I64], val[S_I64]), "f32");
    CHECK_EQ_STR(binary(OP_DIV, val[S_BOOL], val[S_I8]), "f32");
    CHECK_EQ_STR(binary(OP_DIV, val[S_F16], val[S_I32]), "f16");
    CHECK_EQ_STR(binary(OP_ADD, vec3, val[S_F32]), "f32x3");
    CHECK_EQ_STR(binary(OP_ADD, val[S_I32], vec3), "f32x3");
    CHECK_EQ_STR(binary(OP_LT, vec3, vec3), "boolx3");
    CHECK_EQ_STR(binary(OP_ADD, vec3, ivec2), "VECTOR_WIDTHS");
    CHECK_EQ_STR(binary(OP_ADD, buffer[S_F32], val[S_F32]), "POINTER_AS_VALUE");
    CHECK_EQ_STR(binary(OP_ADD, (struct tv){0}, val[S_F32]), "NO_VALUE");
    finish(NULL, 0);
}

static void test_weak_numbers(void)
{
    const struct tv big = {.kind = TV_INT, .magnitude = 0xffffffff};
    begin();
    for (unsigned s = S_I8; s < S_COUNT; s++) {
        CHECK_EQ_STR(binary(OP_ADD, val[s], tv_int(1)), scalar_info[s].name);
        CHECK_EQ_STR(binary(OP_SUB, tv_int(1), val[s]), scalar_info[s].name);
        CHECK_EQ_STR(binary(OP_ADD, val[s], tv_bool(true)), scalar_info[s].name);
        CHECK_EQ_STR(binary(OP_ADD, val[s], tv_float(0.5)),
                     scalar_info[s].class_ == CLASS_F ? scalar_info[s].name : "f32");
    }
    CHECK_EQ_STR(binary(OP_ADD, val[S_BOOL], tv_int(1)), "i32");
    CHECK_EQ_STR(binary(OP_MUL, val[S_BOOL], tv_float(2)), "f32");
    CHECK_EQ_STR(binary(OP_AND, val[S_BOOL], tv_bool(true)), "bool");
    CHECK_EQ_STR(binary(OP_EQ, val[S_BOOL], tv_int(2)), "bool");
    CHECK_EQ_STR(binary(OP_AND, val[S_U32], big), "u32");
    CHECK_EQ_STR(binary(OP_AND, val[S_I32], big), "DOES_NOT_FIT");
    CHECK_EQ_STR(binary(OP_ADD, val[S_U8], tv_int(256)), "DOES_NOT_FIT");
    CHECK_EQ_STR(binary(OP_ADD, val[S_I8], tv_int(-128)), "i8");
    CHECK_EQ_STR(binary(OP_ADD, val[S_I8], tv_int(128)), "DOES_NOT_FIT");
    CHECK_EQ_STR(binary(OP_LT, val[S_U32], tv_int(-1)), "DOES_NOT_FIT");
    CHECK_EQ_STR(binary(OP_ADD, val[S_F32], tv_float(1e40)), "DOES_NOT_FIT");
    CHECK_EQ_STR(binary(OP_ADD, val[S_F32], tv_float(INFINITY)), "f32");
    CHECK_EQ_STR(binary(OP_ADD, val[S_F16], tv_float(NAN)), "f16");
    CHECK_EQ_STR(binary(OP_ADD, val[S_F16], tv_float(65520)), "DOES_NOT_FIT");
    CHECK_EQ_STR(binary(OP_ADD, val[S_F16], tv_float(65519)), "f16");
    CHECK_EQ_STR(binary(OP_ADD, val[S_F16], tv_int(70000)), "DOES_NOT_FIT");
    CHECK_EQ_STR(binary(OP_ADD, val[S_F32], tv_float(0.1)), "f32");
    CHECK_EQ_STR(binary(OP_ADD, val[S_I64], (struct tv){.kind = TV_INT, .negative = true, .magnitude = 1ull << 63}),
                 "i64");
    CHECK_EQ_STR(binary(OP_ADD, val[S_I64], (struct tv){.kind = TV_INT, .magnitude = 1ull << 63}), "DOES_NOT_FIT");
    CHECK_EQ_STR(binary(OP_ADD, tv_int(1), tv_int(2)), "i32");
    CHECK_EQ_STR(binary(OP_ADD, big, tv_int(2)), "u32");
    CHECK_EQ_STR(binary(OP_ADD, big, tv_int(-2)), "i64");
    CHECK_EQ_STR(math(OP_CLAMP, 3, val[S_F16], tv_int(0), tv_int(1)), "f16");
    CHECK_EQ_STR(math(OP_CLAMP, 3, val[S_I16], tv_int(0), tv_int(1)), "i16");
    CHECK_EQ_STR(math(OP_CLAMP, 3, val[S_I16], tv_int(0), tv_float(1)), "f32");
    CHECK_EQ_STR(math(OP_MAX, 2, val[S_I8], val[S_U8], tv_int(0)), "MIXED_SIGNS");
    CHECK_EQ_STR(math(OP_ABS, 1, val[S_BOOL], tv_int(0), tv_int(0)), "i32");
    CHECK_EQ_STR(math(OP_FLOOR, 1, val[S_I32], tv_int(0), tv_int(0)), "f32");
    CHECK_EQ_STR(math(OP_SQRT, 1, val[S_U8], tv_int(0), tv_int(0)), "f32");
    CHECK_EQ_STR(math(OP_SQRT, 1, tv_int(2), tv_int(0), tv_int(0)), "f32");
    CHECK_EQ_STR(math(OP_FMAX, 2, val[S_F16], val[S_I32], tv_int(0)), "f16");
    CHECK_EQ_STR(math(OP_SQRT, 2, val[S_F16], val[S_I32], tv_int(0)), "OPERAND_COUNT");
    finish(NULL, 0);
}

static void test_weak_bits(void)
{
    struct tv v;
    const struct tv numbers[] = {tv_float(-0.0),
                                 tv_float(INFINITY),
                                 tv_float(1e-45),
                                 {.kind = TV_INT, .magnitude = 0x8000008000000001u},
                                 {.kind = TV_INT, .magnitude = 0xff00000000000001u}};
    static const uint32_t f32[] = {0x80000000, 0x7f800000, 1, 0x5f000001, 0x5f7f0000};
    begin();
    for (unsigned k = 0; k < 5; k++) {
        CHECK_EQ(trace_implicit(t, numbers[k], TYPE_F32, "x", &v, &err), SK_OK);
        CHECK_EQ(bits_of(v), f32[k]);
    }
    /* 2^63 + 2^39 + 1 lies just above the middle of two floats: it must not be rounded twice. */
    CHECK_EQ(trace_implicit(t, (struct tv){.kind = TV_INT, .magnitude = 0x8080000000000001u}, S_BF16, "x", &v, &err),
             SK_OK);
    CHECK_EQ(bits_of(v), 0x5f01);
    CHECK_EQ(trace_implicit(t, tv_int(-1), S_I8, "x", &v, &err), SK_OK);
    CHECK_EQ(bits_of(v), 0xff);
    CHECK_EQ(trace_implicit(t, tv_int(1), S_BOOL, "x", &v, &err), SK_OK);
    CHECK_EQ(trace_implicit(t, tv_int(2), S_BOOL, "x", &v, &err), SK_ERR_VALUE);
    CHECK_EQ_STR(error_name(), "DOES_NOT_FIT");
    CHECK_EQ(trace_implicit(t, tv_float(2), TYPE_I32, "the target", &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(err.message, "the target is i32, which a float does not become by itself; convert it with sk.cast");
    CHECK_EQ_STR(err.file, "kernel.py");
    CHECK_EQ(err.line, 10);
    CHECK_EQ_STR(error_name(), "NEEDS_CAST");
    finish(NULL, 0);
}

static void test_shifts_and_powers(void)
{
    struct tv v;
    begin();
    CHECK_EQ_STR(binary(OP_SHL, val[S_U8], val[S_I64]), "u8");
    CHECK_EQ_STR(binary(OP_SHR, val[S_I32], val[S_U32]), "i32");
    CHECK_EQ_STR(binary(OP_SHL, val[S_BOOL], tv_int(3)), "i32");
    CHECK_EQ_STR(binary(OP_SHL, tv_int(1), val[S_U32]), "u32");
    CHECK_EQ_STR(binary(OP_SHL, tv_int(1), val[S_BOOL]), "i32");
    CHECK_EQ_STR(binary(OP_SHL, tv_int(300), val[S_U8]), "DOES_NOT_FIT");
    CHECK_EQ_STR(binary(OP_SHL, val[S_F32], tv_int(1)), "WRONG_CLASS");
    CHECK_EQ_STR(binary(OP_SHL, val[S_I32], tv_float(1)), "WRONG_CLASS");
    CHECK_EQ_STR(binary(OP_SHL, ivec2, tv_int(1)), "i32x2");
    CHECK_EQ(trace_binary(t, OP_SHL, tv_int(3), tv_int(33), &v, &err), SK_OK);
    CHECK_EQ(bits_of(v), 6); /* counts modulo the width */
    CHECK_EQ(trace_binary(t, OP_SHL, tv_int(1), tv_int(-1), &v, &err), SK_OK);
    CHECK_EQ(bits_of(v), 0x80000000);

    CHECK_EQ_STR(binary(OP_IPOW, val[S_I32], tv_int(5)), "i32");
    CHECK_EQ_STR(binary(OP_IPOW, val[S_I32], tv_int(-1)), "NEGATIVE_EXPONENT");
    CHECK_EQ_STR(binary(OP_IPOW, val[S_F32], tv_int(-1)), "f32");
    CHECK_EQ_STR(binary(OP_IPOW, tv_int(2), val[S_U8]), "u8");
    CHECK_EQ_STR(binary(OP_IPOW, val[S_I32], tv_float(0.5)), "f32");
    CHECK_EQ_STR(binary(OP_IPOW, val[S_I32], val[S_F16]), "f16");
    CHECK_EQ_STR(binary(OP_IPOW, val[S_BOOL], tv_int(2)), "i32");
    CHECK_EQ(trace_binary(t, OP_IPOW, val[S_F32], tv_int(2), &v, &err), SK_OK);
    CHECK_EQ(ir_at(trace_module(t), v.id)->op, OP_MUL);
    CHECK_EQ(trace_binary(t, OP_IPOW, val[S_F32], tv_int(3), &v, &err), SK_OK);
    CHECK_EQ(ir_at(trace_module(t), v.id)->op, OP_POW);
    CHECK_EQ(trace_cast(t, tv_int(-2), TYPE_I32, &v, &err), SK_OK);
    CHECK_EQ_STR(binary(OP_IPOW, val[S_I32], v), "NEGATIVE_EXPONENT");
    CHECK_EQ_STR(binary(OP_IPOW, val[S_I32], val[S_I32]), "i32");

    CHECK_EQ(trace_unary(t, OP_NEG, val[S_BOOL], &v, &err), SK_OK);
    CHECK_EQ_STR(type_name(v), "i32");
    CHECK_EQ(trace_unary(t, OP_NOT, val[S_BOOL], &v, &err), SK_OK);
    CHECK_EQ_STR(type_name(v), "bool");
    CHECK_EQ(trace_unary(t, OP_NOT, val[S_F32], &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "WRONG_CLASS");
    CHECK_EQ_STR(binary(OP_DIV_TRUNC, val[S_F32], val[S_F32]), "f32");
    CHECK_EQ_STR(binary(OP_REM_TRUNC, val[S_F16], tv_int(3)), "f16");
    CHECK_EQ_STR(binary(OP_DIV_TRUNC, val[S_I8], tv_int(3)), "i8");
    finish(NULL, 0);
}

static void test_conversions(void)
{
    struct tv v;
    begin();
    for (unsigned from = 1; from < S_COUNT; from++) {
        for (unsigned to = 1; to < S_COUNT; to++) {
            const unsigned cf = scalar_info[from].class_, ct = scalar_info[to].class_;
            const bool integers = (cf & CLASS_SU) && (ct & CLASS_SU);
            const bool right = from == to || cf == CLASS_B || ct == CLASS_F ||
                               (integers && scalar_info[to].bits >= scalar_info[from].bits);
            CHECK_EQ(trace_implicit(t, val[from], (ir_type)to, "x", &v, &err) == SK_OK, right);
            sk_error_clear(&err);
            CHECK_EQ(trace_cast(t, val[from], (ir_type)to, &v, &err), SK_OK);
            CHECK_EQ(trace_type(t, v), to);
        }
    }
    CHECK_EQ(trace_implicit(t, val[S_I32], TYPE_VECTOR(S_F32, 4), "x", &v, &err), SK_OK);
    CHECK_EQ_STR(type_name(v), "f32x4");
    CHECK_EQ(trace_implicit(t, vec3, TYPE_F32, "x", &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NEEDS_CAST");
    CHECK_EQ(trace_cast(t, vec3, TYPE_VECTOR(S_I32, 3), &v, &err), SK_OK);
    CHECK_EQ(trace_cast(t, vec3, TYPE_I32, &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "CANNOT_CAST");
    CHECK_EQ(trace_cast(t, tv_int(-1), TYPE_U32, &v, &err), SK_OK);
    CHECK_EQ(bits_of(v), 0xffffffff);
    CHECK_EQ(trace_cast(t, tv_int(300), S_U8, &v, &err), SK_ERR_VALUE);
    CHECK_EQ_STR(error_name(), "DOES_NOT_FIT");
    CHECK_EQ(trace_cast(t, tv_float(-3.7), TYPE_I32, &v, &err), SK_OK);
    CHECK_EQ(bits_of(v), 0xfffffffd);
    CHECK_EQ(trace_cast(t, tv_float(NAN), TYPE_I32, &v, &err), SK_ERR_VALUE);
    CHECK_EQ_STR(error_name(), "DOES_NOT_FIT");
    CHECK_EQ(trace_cast(t, tv_float(0.5), S_BOOL, &v, &err), SK_OK);
    CHECK_EQ(bits_of(v), 1);
    CHECK_EQ(trace_bitcast(t, val[S_F32], TYPE_U32, &v, &err), SK_OK);
    CHECK_EQ(trace_bitcast(t, val[S_F32], S_U16, &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "CANNOT_BITCAST");
    CHECK_EQ(trace_bitcast(t, ivec2, TYPE_U64, &v, &err), SK_OK);
    finish(NULL, 0);
}

static void test_vectors(void)
{
    struct tv v;
    begin();
    CHECK_EQ(trace_extract(t, vec3, 2, &v, &err), SK_OK);
    CHECK_EQ_STR(type_name(v), "f32");
    CHECK_EQ(trace_extract(t, vec3, 3, &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(err.message, "f32x3 has no component 'w'");
    CHECK_EQ_STR(error_name(), "NO_COMPONENT");
    CHECK_EQ(trace_extract(t, val[S_F32], 0, &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NO_COMPONENT");
    CHECK_EQ(trace_make(t, TYPE_VECTOR(S_F32, 4), 2, (struct tv[]){vec3, tv_int(1)}, &v, &err), SK_OK);
    CHECK_EQ_STR(type_name(v), "f32x4");
    CHECK_EQ(trace_make(t, TYPE_VECTOR(S_U32, 2), 1, (struct tv[]){val[S_U8]}, &v, &err), SK_OK);
    CHECK_EQ(trace_make(t, TYPE_VECTOR(S_U32, 2), 2, (struct tv[]){val[S_U32], val[S_F32]}, &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NEEDS_CAST");
    CHECK_EQ(trace_make(t, TYPE_VECTOR(S_U32, 2), 3, (struct tv[]){tv_int(1), tv_int(1), tv_int(1)}, &v, &err),
             SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "VECTOR_PARTS");
    struct tv c;
    CHECK_EQ(trace_binary(t, OP_LT, vec3, tv_int(0), &c, &err), SK_OK);
    CHECK_EQ(trace_select(t, c, val[S_F32], tv_int(0), &v, &err), SK_OK);
    CHECK_EQ_STR(type_name(v), "f32x3");
    CHECK_EQ(trace_select(t, c, ivec2, tv_int(0), &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "VECTOR_WIDTHS");
    CHECK_EQ(trace_select(t, val[S_F32], tv_int(1), tv_float(0.5), &v, &err), SK_OK);
    CHECK_EQ_STR(type_name(v), "f32");
    CHECK_EQ(trace_select(t, val[S_BOOL], val[S_U32], val[S_I32], &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "MIXED_SIGNS");
    uint32_t scope;
    CHECK_EQ(trace_if(t, c, &scope, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NOT_A_CONDITION");
    finish(NULL, 0);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------ */

static void test_memory(void)
{
    struct tv v, s, local;
    const struct tv zero = tv_int(0), minus = tv_int(-1), half = tv_float(0.5);
    begin();
    CHECK_EQ(trace_load(t, buffer[S_F32], 1, &minus, &v, &err), SK_ERR_VALUE);
    CHECK_EQ_STR(error_name(), "NEGATIVE_INDEX");
    CHECK_EQ(trace_load(t, buffer[S_F32], 1, &half, &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NOT_AN_INTEGER");
    CHECK_EQ(trace_load(t, buffer[S_F32], 1, &val[S_F32], &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NOT_AN_INTEGER");
    CHECK_EQ(trace_load(t, buffer[S_F32], 2, (struct tv[]){zero, zero}, &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "FLAT_POINTER");
    CHECK_EQ(trace_load(t, val[S_F32], 1, &zero, &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NOT_A_POINTER");
    CHECK_EQ(trace_store(t, buffer[S_I16], 1, &zero, val[S_I32], &err), SK_ERR_TYPE);
    CHECK_EQ_STR(err.message, "element of 'pi16' is i16, which i32 does not become by itself; convert it with sk.cast");
    CHECK_EQ_STR(error_name(), "NEEDS_CAST");
    CHECK_EQ(trace_store(t, buffer[S_F16], 1, &val[S_I8], val[S_F32], &err), SK_OK);

    const uint64_t shape[] = {4, 8}, huge[] = {8193}, none[] = {0};
    CHECK_EQ(trace_array(t, SPACE_THREADGROUP, TYPE_F32, 2, shape, &s, &err), SK_OK);
    CHECK_EQ(trace_dims(t, s), 2);
    CHECK_EQ(trace_dims(t, buffer[S_F32]), 1);
    CHECK_EQ(trace_elem(t, s), TYPE_F32);
    CHECK_EQ(trace_load(t, s, 1, &zero, &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "INDEX_COUNT");
    CHECK_EQ(trace_load(t, s, 2, (struct tv[]){val[S_I32], tv_int(8)}, &v, &err), SK_ERR_VALUE);
    CHECK_EQ_STR(error_name(), "INDEX_RANGE");
    CHECK_EQ(trace_load(t, s, 2, (struct tv[]){val[S_I32], tid}, &v, &err), SK_OK);
    CHECK_EQ(trace_array(t, SPACE_THREADGROUP, TYPE_F32, 1, huge, &v, &err), SK_ERR_VALUE);
    CHECK_EQ_STR(error_name(), "ARRAY_SIZE");
    CHECK_EQ(trace_array(t, SPACE_THREADGROUP, TYPE_F32, 1, none, &v, &err), SK_ERR_VALUE);
    CHECK_EQ_STR(error_name(), "ARRAY_SHAPE");

    CHECK_EQ(trace_local(t, TYPE_I32, zero, &local, &err), SK_OK);
    CHECK_EQ(trace_assign_op(t, local, OP_DIV, tv_int(2), &err), SK_ERR_TYPE);
    CHECK_EQ_STR(err.message, "'/=' gives a float, but the local is i32; use //=");
    CHECK_EQ_STR(error_name(), "DIVIDE_IN_PLACE");
    CHECK_EQ(trace_assign_op(t, local, OP_ADD, val[S_F32], &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NEEDS_CAST");
    CHECK_EQ(trace_assign_op(t, local, OP_ADD, val[S_U32], &err), SK_OK);
    CHECK_EQ(trace_assign_op(t, local, OP_ADD, val[S_BOOL], &err), SK_OK);
    CHECK_EQ(trace_assign(t, val[S_I32], zero, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NOT_A_LOCAL");
    CHECK_EQ(trace_assign(t, local, val[S_I64], &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NEEDS_CAST");
    CHECK_EQ(trace_local(t, S_U8, tv_int(0), &local, &err), SK_OK);
    CHECK_EQ(trace_assign_op(t, local, OP_ADD, val[S_BOOL], &err), SK_OK);
    finish(NULL, 0);
}

static void test_atomics(void)
{
    struct tv v;
    const struct tv zero = tv_int(0), one = tv_int(1), minus = tv_int(-1);
    begin();
    for (unsigned op = OP_ATOMIC_LOAD; op <= OP_ATOMIC_MAX; op++) {
        const unsigned n = (unsigned)op_info[op].n - 1;
        const struct tv values[] = {one, one};
        CHECK_EQ(trace_atomic(t, (enum op)op, buffer[S_U32], 1, &zero, n, values, ORDER_RELAXED, &v, &err), SK_OK);
        CHECK_EQ(v.kind, op == OP_ATOMIC_STORE ? TV_NONE : TV_VALUE);
        const bool bits = op == OP_ATOMIC_AND || op == OP_ATOMIC_OR || op == OP_ATOMIC_XOR;
        CHECK_EQ(trace_atomic(t, (enum op)op, buffer[S_F32], 1, &zero, n, values, ORDER_RELAXED, &v, &err) == SK_OK,
                 !bits);
        sk_error_clear(&err);
        CHECK_EQ(trace_atomic(t, (enum op)op, buffer[S_U16], 1, &zero, n, values, ORDER_RELAXED, &v, &err),
                 SK_ERR_TYPE);
        CHECK_EQ_STR(error_name(), "ATOMIC_TYPE");
    }
    CHECK_EQ(trace_atomic(t, OP_ATOMIC_SUB, buffer[S_U32], 1, &zero, 1, &minus, ORDER_RELAXED, &v, &err), SK_ERR_VALUE);
    CHECK_EQ_STR(error_name(), "DOES_NOT_FIT");
    CHECK_EQ(trace_atomic(t, OP_ATOMIC_LOAD, buffer[S_U32], 1, &zero, 0, NULL, ORDER_RELEASE, &v, &err), SK_ERR_VALUE);
    CHECK_EQ_STR(error_name(), "ATOMIC_ORDER");
    finish(NULL, 0);
}

static void test_collectives(void)
{
    struct tv v;
    begin();
    CHECK_EQ(trace_simd(t, OP_SIMD_SUM, 1, &val[S_BOOL], &v, &err), SK_OK);
    CHECK_EQ_STR(type_name(v), "i32");
    CHECK_EQ(trace_simd(t, OP_SIMD_AND, 1, &val[S_F32], &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "WRONG_CLASS");
    CHECK_EQ(trace_simd(t, OP_SIMD_SHUFFLE_DOWN, 2, (struct tv[]){val[S_F32], tv_int(16)}, &v, &err), SK_OK);
    CHECK_EQ(trace_simd(t, OP_SIMD_SHUFFLE, 2, (struct tv[]){val[S_F32], tv_int(-1)}, &v, &err), SK_ERR_VALUE);
    CHECK_EQ_STR(error_name(), "DOES_NOT_FIT");
    CHECK_EQ(trace_simd(t, OP_SIMD_SHUFFLE, 2, (struct tv[]){val[S_F32], val[S_F32]}, &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "NOT_AN_INTEGER");
    CHECK_EQ(trace_simd(t, OP_SIMD_FILL_UP, 3, (struct tv[]){val[S_F32], tv_int(0), val[S_U16]}, &v, &err), SK_OK);
    CHECK_EQ(trace_simd(t, OP_SIMD_ALL, 1, &val[S_F32], &v, &err), SK_OK);
    CHECK_EQ_STR(type_name(v), "bool");
    CHECK_EQ(trace_simd(t, OP_SIMD_BALLOT, 1, &val[S_BOOL], &v, &err), SK_OK);
    CHECK_EQ_STR(type_name(v), "u64");
    CHECK_EQ(trace_simd(t, OP_QUAD_IS_FIRST, 0, NULL, &v, &err), SK_OK);
    CHECK_EQ_STR(type_name(v), "bool");
    CHECK_EQ(trace_simd(t, OP_SIMD_BROADCAST, 1, &val[S_F32], &v, &err), SK_ERR_TYPE);
    CHECK_EQ_STR(error_name(), "OPERAND_COUNT");
    finish(NULL, 0);
}

int main(void)
{
    TRACE_TESTS_BEGIN
    test_typed_mixing();
    test_weak_numbers();
    test_weak_bits();
    test_shifts_and_powers();
    test_conversions();
    test_vectors();
    test_memory();
    test_atomics();
    test_collectives();
    return check_done();
}
