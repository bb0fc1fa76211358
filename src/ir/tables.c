/* tables.c - the rows of the .def files as arrays. */
#include "ir/ir.h"

/* ---- operations ------------------------------------------------------------------------------------------------ */

enum { OPERANDS_0, OPERANDS_1, OPERANDS_2, OPERANDS_3, OPERANDS_V = OPERANDS_ANY };

/* Rows of math.def stand after all others. */
#define LAST_PLAIN_OP OP_ASSERT

const struct op_info op_info[OP_COUNT] = {
    [OP_NONE] = {"", 0, RULE_GIVEN, CLASS_N, EFFECT_PURE, false, "", ""},
#define OP(ID, name, n, rule, classes, effects, msl, doc)                                                              \
    [OP_##ID] = {name, OPERANDS_##n, RULE_##rule, CLASS_##classes, EFFECT_##effects, OP_##ID > LAST_PLAIN_OP, msl, doc},
#include "ir/ops.def"
};

const struct math_info math_info[OP_COUNT] = {
#define MATH(ID, name, arity, classes, python, fast, ulp, fast_ulp, doc) [OP_##ID] = {python, fast, ulp, fast_ulp},
#include "ir/math.def"
#undef MATH
};

/* math.def begins where ops.def ends, and nothing follows it. */
enum {
    MATH_ROWS = 0
#define MATH(ID, name, arity, classes, python, fast, ulp, fast_ulp, doc) +1
#include "ir/math.def"
#undef MATH
};
_Static_assert(LAST_PLAIN_OP + MATH_ROWS + 1 == OP_COUNT, "LAST_PLAIN_OP is not the last row before math.def");

/* One byte of each name's hash: a name is looked for by memchr, and compared where the byte agrees. */
#define NAME_KEY(n, first, middle, last)                                                                               \
    ((uint8_t)((n)*151u + (uint8_t)(first)*7u + (uint8_t)(middle)*59u + (uint8_t)(last)*29u))

static const uint8_t name_key[OP_COUNT] = {
#define OP(ID, name, n, rule, classes, effects, msl, doc)                                                              \
    [OP_##ID] = NAME_KEY(sizeof(name) - 1, (name)[0], (name)[(sizeof(name) - 1) / 2], (name)[sizeof(name) - 2]),
#include "ir/ops.def"
};

enum op op_by_name(const char *name, size_t n)
{
    if (n == 0)
        return OP_NONE;
    const uint8_t key = NAME_KEY(n, name[0], name[n / 2], name[n - 1]);
    const uint8_t *const end = name_key + OP_COUNT;
    const uint8_t *at = name_key + 1;
    while ((at = memchr(at, key, (size_t)(end - at)))) {
        const enum op op = (enum op)(at - name_key);
        if (strncmp(op_info[op].name, name, n) == 0 && op_info[op].name[n] == 0)
            return op;
        at++;
    }
    return OP_NONE;
}

/* ---- types ----------------------------------------------------------------------------------------------------- */

const struct scalar_info scalar_info[S_COUNT] = {
    [S_VOID] = {"void", "void", 0, CLASS_N, 0},
#define SCALAR(ID, name, msl, bytes, class, bits, ctype) [S_##ID] = {name, msl, bytes, CLASS_##class, bits},
#include "ir/types.def"
#undef SCALAR
};

const char *const space_name[SPACE_COUNT] = {
#define SPACE(ID, name, msl) [SPACE_##ID] = name,
#include "ir/types.def"
#undef SPACE
};

/* ---- attributes ------------------------------------------------------------------------------------------------ */

const struct attr_info attr_info[ATTR_COUNT] = {
    [ATTR_NONE] = {"", "", "", 0, FAMILY_NONE, UNIFORM_V},
#define ATTR(ID, metal, python, vec, family, uniform, doc)                                                             \
    [ATTR_##ID] = {metal, python, doc, vec, FAMILY_##family, UNIFORM_##uniform},
#include "ir/attributes.def"
#undef ATTR
};

/* ---- flags ----------------------------------------------------------------------------------------------------- */

const char *const order_name[ORDER_COUNT] = {
    [ORDER_RELAXED] = "relaxed", [ORDER_ACQUIRE] = "acquire", [ORDER_RELEASE] = "release",
    [ORDER_ACQ_REL] = "acq_rel", [ORDER_SEQ_CST] = "seq_cst",
};

const char *const scope_name[SCOPE_COUNT] = {
    [SCOPE_THREAD] = "thread",
    [SCOPE_SIMDGROUP] = "simdgroup",
    [SCOPE_THREADGROUP] = "threadgroup",
    [SCOPE_DEVICE] = "device",
};

const char *const memory_name[4] = {"device", "threadgroup", "texture", "threadgroup_imageblock"};

/* ---- the public enums are the tables' -------------------------------------------------------------------------- */

#define SCALAR(ID, name, msl, bytes, class, bits, ctype)                                                               \
    _Static_assert((int)SK_##ID == (int)S_##ID, "enum sk_scalar is not in the order of types.def");
#include "ir/types.def"
#undef SCALAR
_Static_assert((int)SK_VOID == (int)S_VOID && (int)SK_SCALAR_COUNT == (int)S_COUNT, "sk_scalar has other members");
_Static_assert(SK_VEC(SK_BOOL, 2) == TYPE_VECTOR(S_BOOL, 2) && SK_VEC(SK_F32, 4) == TYPE_VECTOR(S_F32, 4) &&
                   sizeof(sk_type) == sizeof(ir_type),
               "SK_VEC is not TYPE_VECTOR");

#define ATTR(ID, metal, python, vec, family, uniform, doc)                                                             \
    _Static_assert((int)SK_##ID == (int)ATTR_##ID, "enum sk_attribute is not in the order of attributes.def");
#include "ir/attributes.def"
#undef ATTR
_Static_assert((int)SK_NO_ATTRIBUTE == (int)ATTR_NONE, "sk_attribute has no 0");
