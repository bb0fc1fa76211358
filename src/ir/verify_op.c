/* verify_op.c - the rule of each operation: numbers and types of operands, type of the result, immediate, flags.
 *
 * Operations with a rule in ops.def are checked by that rule. Those whose rule is GIVEN or NONE have a case by hand, and the
 * compiler reports one that is missing.
 */
#include "ir/verify.h"

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

static ir_type type_of(const struct verifier *v, uint32_t id, unsigned k)
{
    return ir_at(v->m, ir_in(v->m, id)[k])->type;
}

static sk_status broken(struct verifier *v, uint32_t id, const char *what)
{
    return ERR_AT(v->err, verify_place(v, id), IR_BROKEN, "node", id, what);
}

sk_status verify_operand(struct verifier *v, uint32_t id, unsigned k, ir_type t)
{
    const ir_type have = type_of(v, id, k);
    return have == t ? SK_OK : FAIL(v, id, IR_OPERAND_TYPE, k + 1, verify_type(v, 0, have), verify_type(v, 1, t));
}

static sk_status result(struct verifier *v, uint32_t id, ir_type t)
{
    const ir_type have = ir_at(v->m, id)->type;
    return have == t ? SK_OK : FAIL(v, id, IR_RESULT_TYPE, verify_type(v, 0, have), verify_type(v, 1, t));
}

static const char *class_names(unsigned classes)
{
    switch (classes) {
    case CLASS_B: return "bool";
    case CLASS_F: return "floats";
    case CLASS_P: return "pointers";
    case CLASS_SU: return "integers";
    case CLASS_BSU: return "integers or bool";
    case CLASS_SUF: return "integers or floats";
    case CLASS_BSUF: return "integers, floats or bool";
    case CLASS_BSUFP: return "integers, floats, bool or pointers";
    }
    return "such values";
}

/* Operand k has one of the classes. */
static sk_status class_of(struct verifier *v, uint32_t id, unsigned k, unsigned classes)
{
    const ir_type t = type_of(v, id, k);
    if (ir_type_class(v->m, t) & classes)
        return SK_OK;
    return FAIL(v, id, IR_OPERAND_CLASS, k + 1, verify_type(v, 0, t), class_names(classes));
}

static sk_status scalar_of(struct verifier *v, uint32_t id, unsigned k, unsigned classes)
{
    TRY(class_of(v, id, k, classes));
    const ir_type t = type_of(v, id, k);
    return ir_type_width(t) == 1 ? SK_OK : FAIL(v, id, IR_OPERAND_SCALAR, k + 1, verify_type(v, 0, t));
}

/* ---- the rules of ops.def -------------------------------------------------------------------------------------- */

static sk_status check_same(struct verifier *v, uint32_t id, unsigned classes)
{
    const struct node *const x = ir_at(v->m, id);
    for (unsigned k = 1; k < x->n; k++)
        TRY(verify_operand(v, id, k, type_of(v, id, 0)));
    TRY(class_of(v, id, 0, classes));
    return result(v, id, type_of(v, id, 0));
}

static sk_status check_compare(struct verifier *v, uint32_t id, unsigned classes)
{
    const ir_type t = type_of(v, id, 0);
    TRY(verify_operand(v, id, 1, t));
    TRY(class_of(v, id, 0, classes));
    return result(v, id, ir_type_is_pointer(t) ? TYPE_BOOL : ir_type_with(t, S_BOOL));
}

static sk_status check_shift(struct verifier *v, uint32_t id, unsigned classes)
{
    const ir_type t = type_of(v, id, 0), count = type_of(v, id, 1);
    TRY(class_of(v, id, 0, classes));
    TRY(class_of(v, id, 1, classes));
    if (ir_type_width(count) != ir_type_width(t))
        return FAIL(v, id, IR_OPERAND_WIDTH, 2u, verify_type(v, 0, count), verify_type(v, 1, t));
    return result(v, id, t);
}

static sk_status check_select(struct verifier *v, uint32_t id, unsigned classes)
{
    const ir_type t = type_of(v, id, 1), condition = type_of(v, id, 0);
    TRY(class_of(v, id, 0, CLASS_B));
    TRY(class_of(v, id, 1, classes));
    if (ir_type_width(condition) != 1 && ir_type_width(condition) != ir_type_width(t))
        return FAIL(v, id, IR_OPERAND_WIDTH, 1u, verify_type(v, 0, condition), verify_type(v, 1, t));
    TRY(verify_operand(v, id, 2, t));
    return result(v, id, t);
}

/* With three operands the second is the filling value. */
static sk_status check_lanes(struct verifier *v, uint32_t id, unsigned classes)
{
    const struct node *const x = ir_at(v->m, id);
    const ir_type t = type_of(v, id, 0);
    TRY(class_of(v, id, 0, classes));
    if (x->n == 3)
        TRY(verify_operand(v, id, 1, t));
    if (x->n > 1)
        TRY(scalar_of(v, id, x->n - 1u, CLASS_SU));
    return result(v, id, t);
}

static sk_status check_vote(struct verifier *v, uint32_t id, unsigned classes)
{
    TRY(scalar_of(v, id, 0, classes));
    return result(v, id, TYPE_BOOL);
}

/* ---- conversions and parts ------------------------------------------------------------------------------------- */

static sk_status check_convert(struct verifier *v, uint32_t id, unsigned classes)
{
    const ir_type from = type_of(v, id, 0), to = ir_at(v->m, id)->type;
    TRY(class_of(v, id, 0, classes));
    if (!(ir_type_class(v->m, to) & classes) || ir_type_width(from) != ir_type_width(to))
        return FAIL(v, id, IR_CONVERT, verify_type(v, 0, from), verify_type(v, 1, to));
    return SK_OK;
}

/* Sizes without the padding of 3-vectors. */
static unsigned value_bytes(ir_type t)
{
    return ir_type_width(t) * scalar_info[ir_type_scalar(t)].bytes;
}

static sk_status check_bitcast(struct verifier *v, uint32_t id, unsigned classes)
{
    const ir_type from = type_of(v, id, 0), to = ir_at(v->m, id)->type;
    TRY(class_of(v, id, 0, classes));
    if (!(ir_type_class(v->m, to) & classes) || value_bytes(from) != value_bytes(to))
        return FAIL(v, id, IR_BITCAST, verify_type(v, 0, from), verify_type(v, 1, to));
    return SK_OK;
}

static sk_status check_make(struct verifier *v, uint32_t id)
{
    const struct ir_module *const m = v->m;
    const struct node *const x = ir_at(m, id);
    const enum type_kind kind = (enum type_kind)ir_type_at(m, x->type)->kind;
    if (kind != TYPE_KIND_VECTOR && kind != TYPE_KIND_STRUCT && kind != TYPE_KIND_ARRAY)
        return FAIL(v, id, IR_NO_PARTS, verify_type(v, 0, x->type));
    if (x->n != ir_type_parts(m, x->type))
        return FAIL(v, id, IR_MAKE_COUNT, x->n, verify_type(v, 0, x->type),
                    (unsigned long long)ir_type_parts(m, x->type));
    for (unsigned k = 0; k < x->n; k++)
        TRY(verify_operand(v, id, k, ir_type_part(m, x->type, k)));
    return SK_OK;
}

static sk_status check_splat(struct verifier *v, uint32_t id, unsigned classes)
{
    const struct ir_module *const m = v->m;
    const ir_type t = ir_at(m, id)->type;
    TRY(scalar_of(v, id, 0, classes));
    if (ir_type_width(t) < 2)
        return FAIL(v, id, IR_NO_PARTS, verify_type(v, 0, t));
    return verify_operand(v, id, 0, ir_type_part(m, t, 0));
}

/* The immediate names a part of operand 0; its type. */
static sk_status check_part(struct verifier *v, uint32_t id, ir_type *part)
{
    const struct ir_module *const m = v->m;
    const ir_type whole = type_of(v, id, 0);
    const uint64_t k = ir_at(m, id)->imm;
    if (ir_type_parts(m, whole) == 0)
        return FAIL(v, id, IR_NO_PARTS, verify_type(v, 0, whole));
    *part = ir_type_part(m, whole, k);
    if (*part == TYPE_VOID)
        return FAIL(v, id, IR_PART_RANGE, (unsigned long long)k, verify_type(v, 0, whole),
                    (unsigned long long)ir_type_parts(m, whole));
    return SK_OK;
}

static sk_status check_extract(struct verifier *v, uint32_t id)
{
    ir_type part = TYPE_VOID;
    TRY(check_part(v, id, &part));
    return result(v, id, part);
}

static sk_status check_insert(struct verifier *v, uint32_t id)
{
    ir_type part = TYPE_VOID;
    TRY(check_part(v, id, &part));
    TRY(verify_operand(v, id, 1, part));
    return result(v, id, type_of(v, id, 0));
}

static sk_status check_shuffle(struct verifier *v, uint32_t id, unsigned classes)
{
    const struct node *const x = ir_at(v->m, id);
    const ir_type t = type_of(v, id, 0);
    const unsigned width = ir_type_width(t), n = ir_type_width(x->type);
    TRY(class_of(v, id, 0, classes));
    TRY(verify_operand(v, id, 1, t));
    if (width < 2)
        return FAIL(v, id, IR_NO_PARTS, verify_type(v, 0, t));
    if (n < 2 || ir_type_scalar(x->type) != ir_type_scalar(t))
        return FAIL(v, id, IR_SHUFFLE_TYPE, verify_type(v, 0, x->type), verify_type(v, 1, t));
    for (unsigned k = 0; k < n; k++) {
        const unsigned pick = (unsigned)(x->imm >> 4 * k) & 15u;
        if (pick > 7 || pick % 4 >= width)
            return FAIL(v, id, IR_SHUFFLE_PICK, pick, verify_type(v, 0, t));
    }
    return x->imm >> 4 * n == 0 ? SK_OK : broken(v, id, "picks more components than it has");
}

/* Vectors and arrays, whose parts have one type. */
static sk_status check_uniform_parts(struct verifier *v, uint32_t id, ir_type *part)
{
    const ir_type whole = type_of(v, id, 0);
    const struct type *const t = ir_type_at(v->m, whole);
    if (t->kind != TYPE_KIND_VECTOR && t->kind != TYPE_KIND_ARRAY)
        return FAIL(v, id, IR_NO_PARTS, verify_type(v, 0, whole));
    *part = t->elem;
    return SK_OK;
}

static sk_status check_extract_at(struct verifier *v, uint32_t id)
{
    ir_type part = TYPE_VOID;
    TRY(check_uniform_parts(v, id, &part));
    TRY(scalar_of(v, id, 1, CLASS_SU));
    return result(v, id, part);
}

static sk_status check_insert_at(struct verifier *v, uint32_t id)
{
    ir_type part = TYPE_VOID;
    TRY(check_uniform_parts(v, id, &part));
    TRY(verify_operand(v, id, 1, part));
    TRY(scalar_of(v, id, 2, CLASS_SU));
    return result(v, id, type_of(v, id, 0));
}

/* ---- locals and memory ----------------------------------------------------------------------------------------- */

static sk_status is_local(struct verifier *v, uint32_t id)
{
    return ir_at(v->m, ir_in(v->m, id)[0])->op == OP_VAR ? SK_OK : FAIL(v, id, IR_NOT_A_LOCAL);
}

static sk_status check_set(struct verifier *v, uint32_t id)
{
    TRY(is_local(v, id));
    return verify_operand(v, id, 1, type_of(v, id, 0));
}

static sk_status check_get(struct verifier *v, uint32_t id)
{
    TRY(is_local(v, id));
    return result(v, id, type_of(v, id, 0));
}

/* The immediate's low half is a type of values. */
static sk_status is_elem(struct verifier *v, uint32_t id)
{
    const uint64_t t = ir_at(v->m, id)->imm & UINT32_MAX;
    if (t >= v->m->types.n)
        return broken(v, id, "names a type that does not exist");
    return t == TYPE_VOID ? FAIL(v, id, IR_ELEM_VOID) : SK_OK;
}

/* Threadgroup memory exists once, hence is declared where execution passes once: at the top of a kernel. */
static sk_status check_alloc(struct verifier *v, uint32_t id)
{
    const struct node *const x = ir_at(v->m, id);
    TRY(is_elem(v, id));
    if (x->type == TYPE_POINTER(SPACE_THREAD))
        return SK_OK;
    if (x->type != TYPE_POINTER(SPACE_THREADGROUP))
        return FAIL(v, id, IR_ALLOC_TYPE, verify_type(v, 0, x->type));
    return v->f->kernel && x->region == v->f->region ? SK_OK : FAIL(v, id, IR_ALLOC_PLACE);
}

static sk_status check_index(struct verifier *v, uint32_t id)
{
    TRY(is_elem(v, id));
    TRY(class_of(v, id, 0, CLASS_P));
    TRY(scalar_of(v, id, 1, CLASS_SU));
    return result(v, id, type_of(v, id, 0));
}

static sk_status check_field(struct verifier *v, uint32_t id)
{
    const struct ir_module *const m = v->m;
    const uint64_t imm = ir_at(m, id)->imm;
    TRY(is_elem(v, id));
    TRY(class_of(v, id, 0, CLASS_P));
    const ir_type t = (ir_type)imm;
    if (ir_type_at(m, t)->kind != TYPE_KIND_STRUCT)
        return FAIL(v, id, IR_NO_STRUCT, verify_type(v, 0, t));
    if (imm >> 32 >= ir_type_parts(m, t))
        return FAIL(v, id, IR_PART_RANGE, (unsigned long long)(imm >> 32), verify_type(v, 0, t),
                    (unsigned long long)ir_type_parts(m, t));
    return result(v, id, type_of(v, id, 0));
}

static sk_status check_load(struct verifier *v, uint32_t id)
{
    return class_of(v, id, 0, CLASS_P);
}

static sk_status check_store(struct verifier *v, uint32_t id)
{
    TRY(class_of(v, id, 0, CLASS_P));
    return type_of(v, id, 0) == TYPE_POINTER(SPACE_CONSTANT) ? FAIL(v, id, IR_STORE_CONSTANT) : SK_OK;
}

/* ---- atomics and order ----------------------------------------------------------------------------------------- */

bool verify_is_atomic(ir_type t)
{
    return t == TYPE_I32 || t == TYPE_U32 || t == TYPE_I64 || t == TYPE_U64 || t == TYPE_F32;
}

/* Operand 0 is the place; t the type of what is there. */
static sk_status check_atomic(struct verifier *v, uint32_t id, ir_type t, unsigned orders)
{
    const struct node *const x = ir_at(v->m, id);
    TRY(class_of(v, id, 0, CLASS_P));
    const enum space space = ir_type_space(type_of(v, id, 0));
    if (space != SPACE_DEVICE && space != SPACE_THREADGROUP)
        return FAIL(v, id, IR_ATOMIC_SPACE, space_name[space]);
    const bool bits = x->op == OP_ATOMIC_AND || x->op == OP_ATOMIC_OR || x->op == OP_ATOMIC_XOR;
    if (!verify_is_atomic(t) || (bits && t == TYPE_F32))
        return FAIL(v, id, IR_ATOMIC_TYPE, op_info[x->op].name, verify_type(v, 0, t),
                    bits ? "i32, u32, i64, u64" : "i32, u32, i64, u64, f32");
    const enum memory_order order = node_order(x->flags);
    if (order >= ORDER_COUNT)
        return broken(v, id, "has an order that does not exist");
    if (!(orders >> order & 1))
        return FAIL(v, id, IR_ATOMIC_ORDER, op_info[x->op].name, order_name[order]);
    return SK_OK;
}

#define ORDERS_ALL 31u
#define ORDERS_LOAD (1u << ORDER_RELAXED | 1u << ORDER_ACQUIRE | 1u << ORDER_SEQ_CST)
#define ORDERS_STORE (1u << ORDER_RELAXED | 1u << ORDER_RELEASE | 1u << ORDER_SEQ_CST)

/* Reads, changes and writes: the result is the old value. */
static sk_status check_atomic_change(struct verifier *v, uint32_t id)
{
    const ir_type t = type_of(v, id, 1);
    TRY(check_atomic(v, id, t, ORDERS_ALL));
    if (ir_at(v->m, id)->n == 3)
        TRY(verify_operand(v, id, 2, t));
    return result(v, id, t);
}

/* ---- flags, immediates ----------------------------------------------------------------------------------------- */

/* Nothing may hide in a node that its text does not show. */
static sk_status check_extras(struct verifier *v, uint32_t id)
{
    const struct node *const x = ir_at(v->m, id);
    const unsigned extras = ir_extras((enum op)x->op);
    unsigned flags = 0;
    if (extras & EXTRA_FAST)
        flags |= NODE_FAST;
    if (extras & EXTRA_NO_CONTRACT)
        flags |= NODE_NO_CONTRACT;
    if (extras & EXTRA_WEAK)
        flags |= NODE_WEAK;
    if (extras & EXTRA_MEMORY)
        flags |= 15u << NODE_MEMORY_SHIFT;
    if (extras & EXTRA_ORDER)
        flags |= 7u << NODE_ORDER_SHIFT | 3u << NODE_SCOPE_SHIFT;
    if (x->flags & ~flags)
        return FAIL(v, id, IR_FLAGS, (unsigned)(x->flags & ~flags), op_info[x->op].name);
    if ((extras & EXTRA_TEXT) && x->imm >= v->m->strings.str.n && x->imm)
        return broken(v, id, "has a text that does not exist");
    const bool has_imm = extras & (EXTRA_OF | EXTRA_PART | EXTRA_PICK | EXTRA_TEXT) || ir_is_construct(x->op) ||
                         x->op == OP_ARG || x->op == OP_RESULT || x->op == OP_BR || x->op == OP_CALL;
    const uint64_t unused = !has_imm ? x->imm : (extras & (EXTRA_OF | EXTRA_PART)) == EXTRA_OF ? x->imm >> 16 : 0;
    return unused ? broken(v, id, "has an immediate that means nothing") : SK_OK;
}

/* ---- one node -------------------------------------------------------------------------------------------------- */

/* The cases of rows with a rule, from the table. */
#define CASE(ID, check)                                                                                                \
    case OP_##ID:                                                                                                      \
        return check(v, id, classes);
#define CASE_SAME(ID) CASE(ID, check_same)
#define CASE_COMPARE(ID) CASE(ID, check_compare)
#define CASE_SHIFT(ID) CASE(ID, check_shift)
#define CASE_SELECT(ID) CASE(ID, check_select)
#define CASE_LANES(ID) CASE(ID, check_lanes)
#define CASE_VOTE(ID) CASE(ID, check_vote)
#define CASE_GIVEN(ID)
#define CASE_NONE(ID)

static sk_status check_rule(struct verifier *v, uint32_t id)
{
    const struct node *const x = ir_at(v->m, id);
    const unsigned classes = op_info[x->op].classes;
    switch ((enum op)x->op) {
#define OP(ID, name, n, rule, classes, effects, msl, doc) CASE_##rule(ID)
#include "ir/ops.def"
    case OP_NONE:
    case OP_COUNT:
    case OP_CONST:
    case OP_ZERO:
    case OP_PARAM: return broken(v, id, "cannot stand in a region");
    case OP_CONVERT: return check_convert(v, id, classes);
    case OP_BITCAST: return check_bitcast(v, id, classes);
    case OP_MAKE: return check_make(v, id);
    case OP_SPLAT: return check_splat(v, id, classes);
    case OP_EXTRACT: return check_extract(v, id);
    case OP_INSERT: return check_insert(v, id);
    case OP_SHUFFLE: return check_shuffle(v, id, classes);
    case OP_EXTRACT_AT: return check_extract_at(v, id);
    case OP_INSERT_AT: return check_insert_at(v, id);
    case OP_VAR: return result(v, id, type_of(v, id, 0));
    case OP_GET: return check_get(v, id);
    case OP_SET: return check_set(v, id);
    case OP_ALLOC: return check_alloc(v, id);
    case OP_INDEX: return check_index(v, id);
    case OP_FIELD: return check_field(v, id);
    case OP_LOAD: return check_load(v, id);
    case OP_STORE: return check_store(v, id);
    case OP_ATOMIC_LOAD: return check_atomic(v, id, x->type, ORDERS_LOAD);
    case OP_ATOMIC_STORE: return check_atomic(v, id, type_of(v, id, 1), ORDERS_STORE);
    case OP_ATOMIC_EXCHANGE:
    case OP_ATOMIC_CAS:
    case OP_ATOMIC_ADD:
    case OP_ATOMIC_SUB:
    case OP_ATOMIC_AND:
    case OP_ATOMIC_OR:
    case OP_ATOMIC_XOR:
    case OP_ATOMIC_MIN:
    case OP_ATOMIC_MAX: return check_atomic_change(v, id);
    case OP_FENCE:
        return node_order(x->flags) < ORDER_COUNT ? SK_OK : broken(v, id, "has an order that does not exist");
    case OP_BARRIER:
    case OP_SIMDGROUP_BARRIER: return SK_OK;
    case OP_SIMD_IS_FIRST:
    case OP_QUAD_IS_FIRST: return result(v, id, TYPE_BOOL);
    case OP_SIMD_BALLOT:
    case OP_QUAD_BALLOT: TRY(scalar_of(v, id, 0, classes)); return result(v, id, TYPE_U64);
    case OP_SIMD_ACTIVE:
    case OP_QUAD_ACTIVE: return result(v, id, TYPE_U64);
    case OP_IF:
    case OP_SWITCH:
    case OP_ASSERT: return scalar_of(v, id, 0, classes);
    /* What these hold and carry is checked by the walk, which knows where they stand. */
    case OP_ARG:
    case OP_RESULT:
    case OP_BLOCK:
    case OP_LOOP:
    case OP_BR:
    case OP_YIELD:
    case OP_RETURN:
    case OP_UNREACHABLE:
    case OP_CALL:
    case OP_PRINT: return SK_OK;
    }
    return SK_OK;
}

sk_status verify_op(struct verifier *v, uint32_t id)
{
    const struct node *const x = ir_at(v->m, id);
    const struct op_info *const info = &op_info[x->op];
    if (info->n != OPERANDS_ANY && x->n != (unsigned)info->n)
        return FAIL(v, id, IR_OPERAND_COUNT, info->name, (unsigned)info->n, x->n);
    const bool void_ok = info->rule == RULE_NONE || x->op == OP_CALL;
    if (x->type == TYPE_VOID && !void_ok)
        return FAIL(v, id, IR_RESULT_VOID);
    if (x->type != TYPE_VOID && info->rule == RULE_NONE)
        return FAIL(v, id, IR_RESULT_NONE, info->name);
    TRY(check_extras(v, id));
    return check_rule(v, id);
}
