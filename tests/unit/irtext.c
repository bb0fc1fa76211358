/* irtext.c - print, parse, verify: every operation of the tables there and back; broken modules, broken text and
 * failing memory never do harm. */
#include "check.h"
#include "ir/ir.h"

#include <stdlib.h>

static uint64_t next_random(uint64_t *seed)
{
    *seed += 0x9e3779b97f4a7c15u;
    return hash_u64(1, *seed);
}

/* ---- a module with every operation ----------------------------------------------------------------------------- */

struct maker {
    struct ir_module *m;
    struct ir_builder b;
    uint32_t value[256]; /* a parameter of each fixed type */
    ir_type particle, array;
    uint32_t made[OP_COUNT];
    uint32_t callee;
};

static uint32_t node(struct maker *k, enum op op, ir_type type, unsigned n, const uint32_t *in, unsigned flags,
                     uint64_t imm)
{
    k->made[op]++;
    k->b.place = ir_place(k->m, ir_string(k->m, "made.py"), (uint32_t)op + 1, 5, 0);
    return ir_node(&k->b, op, type, n, in, flags, imm);
}

#define NODE(k, op, type, flags, imm, ...)                                                                             \
    node((k), (op), (type), sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__}, (flags),  \
         (imm))

static uint32_t of(const struct maker *k, ir_type t)
{
    return k->value[t];
}

static unsigned flags_of(enum op op, unsigned round)
{
    unsigned flags = 0;
    if (op_info[op].math && math_info[op].fast && round % 2)
        flags |= NODE_FAST;
    if ((op == OP_ADD || op == OP_SUB || op == OP_MUL) && round % 3 == 1)
        flags |= NODE_NO_CONTRACT;
    return flags;
}

/* The operations whose types follow from a rule, on every type of their classes. */
static void make_by_rule(struct maker *k, enum op op)
{
    const struct op_info *const x = &op_info[op];
    for (ir_type t = 1; t < TYPE_FIXED_COUNT; t++) {
        if (!(ir_type_class(k->m, t) & x->classes))
            continue;
        const unsigned width = ir_type_width(t);
        const uint32_t a = of(k, t);
        uint32_t in[3] = {a, a, a};
        ir_type type = t;
        if (x->rule == RULE_COMPARE) {
            type = width ? ir_type_with(t, S_BOOL) : TYPE_BOOL;
        } else if (x->rule == RULE_SHIFT) {
            in[1] = of(k, ir_type_vector(t % 2 ? S_U8 : S_I64, width));
        } else if (x->rule == RULE_SELECT) {
            in[0] = of(k, width > 1 && t % 2 ? ir_type_with(t, S_BOOL) : TYPE_BOOL);
        } else if (x->rule == RULE_LANES && x->n > 1) {
            in[x->n - 1] = of(k, t % 2 ? TYPE_U32 : S_I16);
        } else if (x->rule == RULE_VOTE && width > 1) {
            continue;
        }
        (void)node(k, op, type, (unsigned)x->n, in, flags_of(op, t), 0);
    }
}

static void make_atomics(struct maker *k, enum op op)
{
    const ir_type types[] = {TYPE_I32, TYPE_U32, TYPE_I64, TYPE_U64, TYPE_F32};
    const bool bits = op == OP_ATOMIC_AND || op == OP_ATOMIC_OR || op == OP_ATOMIC_XOR;
    for (unsigned t = 0; t < 5u - bits; t++) {
        for (unsigned order = 0; order < ORDER_COUNT; order++) {
            const bool reads = order == ORDER_ACQUIRE || order == ORDER_ACQ_REL;
            const bool writes = order == ORDER_RELEASE || order == ORDER_ACQ_REL;
            if ((op == OP_ATOMIC_LOAD && writes) || (op == OP_ATOMIC_STORE && reads))
                continue;
            const unsigned flags = order << NODE_ORDER_SHIFT | t % SCOPE_COUNT << NODE_SCOPE_SHIFT |
                                   (op == OP_ATOMIC_CAS && t % 2 ? NODE_WEAK : 0);
            const uint32_t in[3] = {of(k, TYPE_POINTER(order % 2 ? SPACE_DEVICE : SPACE_THREADGROUP)), of(k, types[t]),
                                    of(k, types[t])};
            (void)node(k, op, op == OP_ATOMIC_STORE ? TYPE_VOID : types[t], (unsigned)op_info[op].n, in, flags, 0);
        }
    }
}

static void make_conversions(struct maker *k)
{
    for (enum scalar from = S_BOOL; from < S_COUNT; from++) {
        for (enum scalar to = S_BOOL; to < S_COUNT; to++) {
            for (unsigned n = 1; n <= 4; n++) {
                const ir_type a = ir_type_vector(from, n), b = ir_type_vector(to, n);
                NODE(k, OP_CONVERT, b, 0, 0, of(k, a));
                if (scalar_info[from].bytes == scalar_info[to].bytes && from != S_BOOL && to != S_BOOL)
                    NODE(k, OP_BITCAST, b, 0, 0, of(k, a));
            }
        }
    }
    NODE(k, OP_BITCAST, TYPE_VECTOR(S_U8, 4), 0, 0, of(k, TYPE_F32));
    NODE(k, OP_BITCAST, TYPE_U64, 0, 0, of(k, TYPE_VECTOR(S_F32, 2)));
}

static void make_parts(struct maker *k, enum op op)
{
    const uint32_t f = of(k, TYPE_F32), f3 = of(k, TYPE_VECTOR(S_F32, 3)), i = of(k, TYPE_I32), u = of(k, TYPE_U64);
    const uint32_t s = ir_zero(k->m, k->particle), a = ir_zero(k->m, k->array);
    k->made[OP_ZERO]++;
    if (op == OP_MAKE) {
        NODE(k, op, TYPE_VECTOR(S_F32, 3), 0, 0, f, f, f);
        NODE(k, op, TYPE_VECTOR(S_F32, 4), 0, 0, f, f, f, f);
        NODE(k, op, k->particle, 0, 0, f3, f);
        NODE(k, op, k->array, 0, 0, s, s, s, s, s);
    } else if (op == OP_SPLAT) {
        for (enum scalar e = S_BOOL; e < S_COUNT; e++)
            NODE(k, op, TYPE_VECTOR(e, 2 + e % 3u), 0, 0, of(k, (ir_type)e));
    } else if (op == OP_EXTRACT) {
        NODE(k, op, TYPE_F32, 0, 2, f3);
        NODE(k, op, TYPE_VECTOR(S_F32, 3), 0, 0, s);
        NODE(k, op, k->particle, 0, 4, a);
    } else if (op == OP_INSERT) {
        NODE(k, op, TYPE_VECTOR(S_F32, 3), 0, 2, f3, f);
        NODE(k, op, k->particle, 0, 1, s, f);
        NODE(k, op, k->array, 0, 3, a, s);
    } else if (op == OP_SHUFFLE) {
        NODE(k, op, TYPE_VECTOR(S_F32, 2), 0, 0x42, f3, f3);
        NODE(k, op, TYPE_VECTOR(S_F32, 4), 0, 0x6540, f3, f3);
    } else if (op == OP_EXTRACT_AT) {
        NODE(k, op, TYPE_F32, 0, 0, f3, i);
        NODE(k, op, k->particle, 0, 0, a, u);
    } else {
        NODE(k, op, TYPE_VECTOR(S_F32, 3), 0, 0, f3, f, u);
        NODE(k, op, k->array, 0, 0, a, s, i);
    }
}

/* A construct with a result and an exit in each region. */
static void make_construct(struct maker *k, enum op op)
{
    struct ir_module *const m = k->m;
    const uint32_t f = of(k, TYPE_F32), i = of(k, TYPE_I32), u = of(k, TYPE_U64), c = of(k, TYPE_BOOL);
    const struct ir_builder outer = k->b;
    k->made[op]++;
    if (op == OP_BLOCK) {
        const uint32_t block = ir_construct(&k->b, op, 0, NULL, 1);
        k->b.region = ir_region(m, block, 0);
        k->made[OP_BR]++;
        (void)ir_br(&k->b, block, 2, (const uint32_t[]){f, i});
        k->b = outer;
        ir_at(m, ir_result(m, block, TYPE_F32))->name = ir_string(m, "first");
        (void)ir_result(m, block, TYPE_I32);
        k->made[OP_RESULT] += 2;
    } else if (op == OP_LOOP) {
        const uint32_t loop = ir_construct(&k->b, op, 2, (const uint32_t[]){f, i}, 1);
        k->made[OP_ARG] += 2;
        ir_at(m, ir_arg(m, loop, 0))->name = ir_string(m, "9lives");
        k->b.region = ir_region(m, loop, 0);
        const uint32_t test = ir_construct(&k->b, OP_IF, 1, &c, 2);
        k->b.region = ir_region(m, test, 0);
        (void)ir_br(&k->b, loop, 2, (const uint32_t[]){ir_arg(m, loop, 0), ir_arg(m, loop, 1)});
        k->b.region = ir_region(m, loop, 0);
        NODE(k, OP_YIELD, TYPE_VOID, 0, 0, ir_arg(m, loop, 1));
        k->b = outer;
        const uint32_t forever = ir_construct(&k->b, op, 0, NULL, 1);
        k->b.region = ir_region(m, forever, 0);
        k->b = outer;
        (void)ir_result(m, loop, TYPE_I32);
    } else if (op == OP_IF) {
        const uint32_t test = ir_construct(&k->b, op, 1, &c, 2);
        k->b.region = ir_region(m, test, 0);
        NODE(k, OP_YIELD, TYPE_VOID, 0, 0, f);
        k->b.region = ir_region(m, test, 1);
        (void)node(k, OP_UNREACHABLE, TYPE_VOID, 0, NULL, 0, 0);
        k->b = outer;
        (void)ir_result(m, test, TYPE_F32);
        const uint32_t silent = ir_construct(&k->b, op, 1, &c, 2);
        k->b.region = ir_region(m, silent, 1);
        (void)node(k, OP_YIELD, TYPE_VOID, 0, NULL, 0, 0);
    } else {
        const uint32_t sw = ir_construct(&k->b, op, 1, &u, 3);
        ir_case(m, ir_region(m, sw, 0), -1);
        ir_case(m, ir_region(m, sw, 0), 5);
        ir_region_at(m, ir_region(m, sw, 1))->is_default = true;
        ir_case(m, ir_region(m, sw, 2), 0);
        (void)ir_construct(&k->b, op, 1, &i, 0);
        const uint32_t more = ir_construct(&k->b, op, 1, &i, 0);
        for (int n = 0; n < 3; n++) {
            k->b.region = ir_add_region(m, more);
            ir_case(m, k->b.region, INT32_MIN + n);
            (void)ir_construct(&k->b, OP_BLOCK, 0, NULL, 1);
        }
    }
    k->b = outer;
}

static void make_by_hand(struct maker *k, enum op op)
{
    struct ir_module *const m = k->m;
    const uint32_t f = of(k, TYPE_F32), c = of(k, TYPE_BOOL), device = of(k, TYPE_POINTER(SPACE_DEVICE));
    const ir_type thread = TYPE_POINTER(SPACE_THREAD);
    if (op == OP_VAR || op == OP_GET || op == OP_SET) {
        for (ir_type t = 1; t < TYPE_FIXED_COUNT; t += 5) {
            const uint32_t var = NODE(k, OP_VAR, t, 0, 0, of(k, t));
            ir_at(m, var)->name = ir_string(m, t % 2 ? "accumulator" : "ok_9");
            NODE(k, OP_SET, TYPE_VOID, 0, 0, var, NODE(k, OP_GET, t, 0, 0, var));
        }
    } else if (op == OP_ALLOC) {
        (void)node(k, op, TYPE_POINTER(SPACE_THREADGROUP), 0, NULL, 0, k->array);
        (void)node(k, op, thread, 0, NULL, 0, TYPE_F32);
    } else if (op == OP_INDEX) {
        NODE(k, op, TYPE_POINTER(SPACE_DEVICE), 0, k->particle, device, of(k, TYPE_U64));
        NODE(k, op, TYPE_POINTER(SPACE_CONSTANT), 0, TYPE_F32, of(k, TYPE_POINTER(SPACE_CONSTANT)), of(k, S_I8));
    } else if (op == OP_FIELD) {
        NODE(k, op, TYPE_POINTER(SPACE_DEVICE), 0, k->particle | (uint64_t)1 << 32, device);
    } else if (op == OP_LOAD) {
        for (ir_type t = 1; t < m->types.n; t++)
            NODE(k, op, t, 0, 0, of(k, TYPE_POINTER(t % SPACE_COUNT)));
    } else if (op == OP_STORE) {
        for (ir_type t = 1; t < TYPE_FIXED_COUNT; t++)
            NODE(k, op, TYPE_VOID, 0, 0, of(k, TYPE_POINTER(t % 2 ? SPACE_DEVICE : SPACE_THREAD)), of(k, t));
    } else if (op == OP_BARRIER || op == OP_SIMDGROUP_BARRIER || op == OP_FENCE) {
        for (unsigned memory = 0; memory < 16; memory++)
            (void)node(k, op, TYPE_VOID, 0, NULL,
                       memory << NODE_MEMORY_SHIFT | (op == OP_FENCE ? memory % ORDER_COUNT << NODE_ORDER_SHIFT : 0),
                       0);
    } else if (op == OP_SIMD_IS_FIRST || op == OP_QUAD_IS_FIRST) {
        (void)node(k, op, TYPE_BOOL, 0, NULL, 0, 0);
    } else if (op == OP_SIMD_ACTIVE || op == OP_QUAD_ACTIVE) {
        (void)node(k, op, TYPE_U64, 0, NULL, 0, 0);
    } else if (op == OP_SIMD_BALLOT || op == OP_QUAD_BALLOT) {
        NODE(k, op, TYPE_U64, 0, 0, c);
    } else if (op == OP_CALL) {
        NODE(k, op, TYPE_F32, 0, k->callee, f, device);
    } else if (op == OP_PRINT) {
        (void)node(k, op, TYPE_VOID, 0, NULL, 0, 0);
        NODE(k, op, TYPE_VOID, 0, ir_string(m, "a {}\n\tb \"{}\" \\ \x01\x7f \xc3\xa9 \xff\xc3"), f, c);
    } else if (op == OP_ASSERT) {
        NODE(k, op, TYPE_VOID, 0, ir_string(m, "must hold"), c);
    }
    CHECK(k->made[op] > 0 || op == OP_RETURN);
}

/* No default: a new operation whose type is GIVEN, or that has no result, must be made here. */
static void make_op(struct maker *k, enum op op)
{
    switch ((enum op_rule)op_info[op].rule) {
    case RULE_SAME:
    case RULE_COMPARE:
    case RULE_SHIFT:
    case RULE_SELECT:
    case RULE_LANES:
    case RULE_VOTE: make_by_rule(k, op); return;
    case RULE_NONE:
    case RULE_GIVEN: break;
    }
    if (op == OP_CONST || op == OP_ZERO || op == OP_PARAM || op == OP_ARG || op == OP_RESULT || op == OP_BR ||
        op == OP_YIELD || op == OP_UNREACHABLE)
        return; /* come with others */
    if (op_info[op].effect == EFFECT_ATOMIC && op != OP_FENCE)
        make_atomics(k, op);
    else if (op == OP_CONVERT || op == OP_BITCAST)
        make_conversions(k);
    else if (op >= OP_MAKE && op <= OP_INSERT_AT)
        make_parts(k, op);
    else if (ir_is_construct((uint16_t)op))
        make_construct(k, op);
    else
        make_by_hand(k, op);
}

static void add_param(struct maker *k, uint32_t func, ir_type t, const char *name)
{
    struct param p = {.type = t, .name = ir_string(k->m, name)};
    k->value[t] = ir_param(k->m, func, &p);
    k->made[OP_PARAM]++;
}

static void make_callee(struct maker *k)
{
    struct ir_module *const m = k->m;
    k->callee = ir_func(m, ir_string(m, "callee"), false, TYPE_F32, 0);
    struct param p = {.type = TYPE_F32, .name = ir_string(m, "größe")};
    const uint32_t x = ir_param(m, k->callee, &p);
    p = (struct param){.type = TYPE_POINTER(SPACE_DEVICE), .elem = TYPE_F32, .name = ir_string(m, "A")};
    (void)ir_param(m, k->callee, &p);
    k->b = (struct ir_builder){.m = m, .func = k->callee, .region = m->funcs.at[k->callee].region};
    NODE(k, OP_RETURN, TYPE_VOID, 0, 0, x);
}

/* Constants of every scalar type: edges, random bits, NaNs. */
static void make_constants(struct maker *k)
{
    uint64_t seed = 1;
    for (ir_type s = S_BOOL; s < S_COUNT; s++) {
        const unsigned bits = scalar_info[s].bits;
        const uint64_t top = (uint64_t)1 << (bits - 1);
        const uint64_t edges[] = {0,          1,          top - 1,    top,        top + 1,   UINT64_MAX, 0x7fc00000,
                                  0x7f800000, 0x7f800001, 0xff800000, 0x7e00,     0x7c00,    0x7fc0,     0x7f80,
                                  0xfe00,     0x80000000, 0x3f800000, 0x3dcccccd, 0x4b800000};
        for (size_t n = 0; n < sizeof edges / sizeof *edges + 300; n++) {
            const uint64_t x = n < sizeof edges / sizeof *edges ? edges[n] : next_random(&seed) >> n % 60;
            NODE(k, OP_VAR, s, 0, 0, ir_const(k->m, s, x));
            k->made[OP_CONST]++;
        }
    }
}

static struct ir_module *make_everything(struct mem *mem, uint32_t made[OP_COUNT])
{
    struct maker k = {.m = ir_module_new(mem)};
    struct ir_module *const m = k.m;
    const struct field fields[] = {{ir_string(m, "pos"), TYPE_VECTOR(S_F32, 3), 0}, {ir_string(m, "w"), TYPE_F32, 0}};
    k.particle = ir_type_struct(m, ir_string(m, "Particle"), 2, fields);
    k.array = ir_type_array(m, k.particle, 5);
    (void)ir_type_struct(m, ir_string(m, "Empty"), 0, NULL);
    make_callee(&k);

    /* A function, for it takes any number of parameters of any type. */
    const uint32_t func = ir_func(m, ir_string(m, "everything"), false, TYPE_VOID, 0);
    m->funcs.at[func].fast = m->funcs.at[func].no_contract = true;
    for (ir_type t = 1; t < TYPE_FIXED_COUNT; t++) {
        char name[16];
        (void)snprintf(name, sizeof name, "p%u", t);
        add_param(&k, func, t, name);
    }
    k.b = (struct ir_builder){.m = m, .func = func, .region = m->funcs.at[func].region};
    for (enum op op = 1; op < OP_COUNT; op++)
        if (op != OP_ALLOC)
            make_op(&k, op);
    make_constants(&k);
    (void)node(&k, OP_RETURN, TYPE_VOID, 0, NULL, 0, 0);

    /* A kernel, with each kind of parameter. */
    const uint32_t kernel =
        ir_func(m, ir_string(m, "kernel"), true, TYPE_VOID, ir_place(m, ir_string(m, "é \".py"), 3, 0, 1));
    m->funcs.at[kernel].max_threads = 256;
    const struct param params[] = {
        {.type = TYPE_POINTER(SPACE_DEVICE), .elem = TYPE_U32, .kind = PARAM_BUFFER, .atomic = true},
        {.type = TYPE_POINTER(SPACE_CONSTANT), .elem = k.particle, .kind = PARAM_BUFFER, .place = 2},
        {.type = TYPE_POINTER(SPACE_THREADGROUP), .elem = k.array, .kind = PARAM_THREADGROUP},
        {.type = k.particle, .kind = PARAM_VALUE},
        {.type = TYPE_VECTOR(S_F16, 3), .kind = PARAM_VALUE}};
    for (unsigned n = 0; n < sizeof params / sizeof *params; n++) {
        struct param p = params[n];
        p.name = ir_string(m, (char[]){(char)('a' + n), 0});
        (void)ir_param(m, kernel, &p);
    }
    for (unsigned a = 1; a < ATTR_COUNT; a++) {
        struct param p = {.type = attr_info[a].vec ? TYPE_VECTOR(a % 2 ? S_U32 : S_U16, 3) : (a % 2 ? TYPE_U32 : S_U16),
                          .kind = PARAM_ATTRIBUTE,
                          .attribute = (uint8_t)a,
                          .name = ir_string(m, attr_info[a].metal)};
        (void)ir_param(m, kernel, &p);
    }
    k.b = (struct ir_builder){.m = m, .func = kernel, .region = m->funcs.at[kernel].region};
    make_op(&k, OP_ALLOC);
    memcpy(made, k.made, sizeof k.made);
    return m;
}

/* ---- there and back -------------------------------------------------------------------------------------------- */

static bool same_text(const struct buf *a, const struct buf *b)
{
    if (a->n == b->n && (a->n == 0 || memcmp(a->at, b->at, a->n) == 0))
        return true;
    size_t k = 0, line = 0;
    for (; k < a->n && k < b->n && a->at[k] == b->at[k]; k++)
        if (a->at[k] == '\n')
            line = k + 1;
    printf("texts differ:\n%.*s\n%.*s\n", (int)strcspn(a->at + line, "\n"), a->at + line,
           (int)strcspn(b->at + line, "\n"), b->at + line);
    return false;
}

/* Whatever verify accepts prints, and reads back as the same text. */
static void check_round_trip(struct mem *mem, const struct ir_module *m, unsigned flags)
{
    sk_error err = {0};
    struct buf first, second;
    buf_init(&first, mem);
    buf_init(&second, mem);
    ir_print(m, &first, flags);
    struct ir_module *back = NULL;
    CHECK_EQ(ir_parse(mem, buf_text(&first), first.n, "first.ir", &back, &err), SK_OK);
    CHECK_EQ_STR(err.message, "");
    if (back) {
        ir_print(back, &second, flags);
        CHECK(same_text(&first, &second));
    }
    ir_module_free(back);
    buf_free(&second);
    buf_free(&first);
}

static sk_status test_everything(struct mem *mem)
{
    uint32_t made[OP_COUNT] = {0};
    struct ir_module *const m = make_everything(mem, made);
    for (unsigned op = 1; op < OP_COUNT; op++) {
        if (!made[op])
            printf("%s: ", op_info[op].name);
        CHECK(made[op] > 0);
    }
    sk_error err = {0};
    CHECK_EQ(ir_verify(m, &err), SK_OK);
    CHECK_EQ_STR(err.message, "");
    check_round_trip(mem, m, 0);
    check_round_trip(mem, m, IR_PRINT_PLACES);

    struct buf first, second;
    buf_init(&first, mem);
    buf_init(&second, mem);
    ir_print(m, &first, IR_PRINT_PLACES);
    struct ir_module *const clone = ir_module_clone(mem, m);
    CHECK_EQ(ir_verify(clone, &err), SK_OK);
    ir_print(clone, &second, IR_PRINT_PLACES);
    CHECK(same_text(&first, &second));
    ir_module_free(clone);

    /* One function with what it needs is a module, and a part of the whole. */
    for (uint32_t f = 1; f < m->funcs.n; f++) {
        first.n = second.n = 0;
        ir_print_func(m, f, &first, IR_PRINT_PLACES);
        struct ir_module *part = NULL;
        CHECK_EQ(ir_parse(mem, buf_text(&first), first.n, "part.ir", &part, &err), SK_OK);
        CHECK_EQ_STR(err.message, "");
        if (part) {
            ir_print(part, &second, IR_PRINT_PLACES);
            CHECK(same_text(&first, &second));
            CHECK_EQ(part->funcs.n, f == 2 ? 3 : 2);
        }
        ir_module_free(part);
    }
    buf_free(&first);
    buf_free(&second);
    ir_module_free(m);
    return SK_OK;
}

/* Floats print as text_f32 prints them, whatever shortcut is taken. */
static sk_status test_floats(struct mem *mem)
{
    struct ir_module *const m = ir_module_new(mem);
    const uint32_t f = ir_func(m, ir_string(m, "f"), false, TYPE_VOID, 0);
    struct ir_builder b = {.m = m, .func = f, .region = m->funcs.at[f].region};
    uint64_t seed = 7;
    struct buf expected, got;
    buf_init(&expected, mem);
    buf_init(&got, mem);
    buf_str(&expected, "func f() {\n");
    for (int n = 0; n < 20000; n++) {
        const uint64_t r = next_random(&seed);
        float x = f32_bits((uint32_t)r);
        if (n % 4 == 1)
            x = (float)(double)(r % 2000000) / 1000.0f;
        else if (n % 4 == 2)
            x = (float)((double)(r % 1000000) / pow(10.0, (double)(r >> 32 & 7)));
        else if (n % 4 == 3)
            x = -(float)(r % 20000000) / 8.0f;
        const uint32_t c = ir_const(m, TYPE_F32, bits_f32(x));
        (void)ir_node(&b, OP_VAR, TYPE_F32, 1, &c, 0, 0);
        char text[48];
        text_f32(text, sizeof text, x);
        if (isnan(x) && bits_f32(x) != 0x7fc00000)
            (void)snprintf(text, sizeof text, "0x%08x", bits_f32(x));
        buf_fmt(&expected, "  %%%d = var f32 %s:f32\n", n, text);
    }
    buf_str(&expected, "}\n");
    ir_print(m, &got, 0);
    CHECK(same_text(&expected, &got));
    check_round_trip(mem, m, 0);
    buf_free(&expected);
    buf_free(&got);
    ir_module_free(m);
    return SK_OK;
}

/* ---- what verify must refuse and text cannot say ----------------------------------------------------------------- */

static struct ir_module *small(struct mem *mem)
{
    static const char text[] = "struct P { a: f32, b: [u32 x 3] }\n"
                               "func g(x: f32) -> f32 {\n"
                               "  return %x\n"
                               "}\n"
                               "kernel k(out: device f32, n: u32, i: u32 [thread_position_in_grid]) max_threads 64 {\n"
                               "  %s.0 = alloc ptr.threadgroup of [f32 x 8]\n"
                               "  %1 = lt bool %i, %n\n"
                               "  %v.2 = var u32 0:u32\n"
                               "  if %1 {\n"
                               "    %3 = call f32 @g(1.5:f32)\n"
                               "    set %v.2, 7:u32\n"
                               "    %4 = make f32x4 %3, %3, %3, %3\n"
                               "    store %out, %4\n"
                               "  } else {\n"
                               "    unreachable\n"
                               "  }\n"
                               "  %7: u32, %8: f32 = loop (%9: u32 = 0:u32, %10: f32 = 0.0:f32) {\n"
                               "    %11 = add u32 %9, 1:u32\n"
                               "    if %1 {\n"
                               "      br 1 %11, %10\n"
                               "    }\n"
                               "    yield %11, %10\n"
                               "  }\n"
                               "  switch %7 {\n"
                               "    case 1, 2 {\n"
                               "      barrier memory(threadgroup)\n"
                               "    }\n"
                               "    default {\n"
                               "      assert %1 \"no\"\n"
                               "    }\n"
                               "  }\n"
                               "  %12 = atomic_add u32 %out, %7 order(relaxed) scope(device)\n"
                               "}\n";
    struct ir_module *m = NULL;
    sk_error err = {0};
    CHECK_EQ(ir_parse(mem, text, sizeof text - 1, "small.ir", &m, &err), SK_OK);
    CHECK_EQ_STR(err.message, "");
    return m;
}

static uint32_t first_of(const struct ir_module *m, enum op op)
{
    for (uint32_t id = 1; id < m->nodes.n; id++)
        if (ir_at(m, id)->op == op)
            return id;
    return 0;
}

/* `change` spoils a fresh module, which gives the error named; the message holds `part`. */
#define SPOILED(error, part, change)                                                                                   \
    do {                                                                                                               \
        struct ir_module *const m = small(mem);                                                                        \
        sk_error err = {0};                                                                                            \
        change;                                                                                                        \
        CHECK_EQ(ir_verify(m, &err), SK_ERR_INVALID);                                                                  \
        CHECK_EQ_STR(err.name, error);                                                                                 \
        if (!strstr(err.message, part))                                                                                \
            printf("%s: ", err.message);                                                                               \
        CHECK(strstr(err.message, part));                                                                              \
        ir_module_free(m);                                                                                             \
    } while (0)
#define FIRST(op) ir_at(m, first_of(m, OP_##op))

static sk_status test_spoiled(struct mem *mem)
{
    SPOILED("IR_BROKEN", "neighbours", FIRST(LT)->prev = 0);
    SPOILED("IR_BROKEN", "neighbours", FIRST(LT)->region++);
    SPOILED("IR_BROKEN", "two places", FIRST(VAR)->next = first_of(m, OP_LT));
    SPOILED("IR_BROKEN", "does not exist", FIRST(VAR)->next = m->nodes.n);
    SPOILED("IR_BROKEN", "does not exist", FIRST(LT)->op = OP_COUNT);
    SPOILED("IR_BROKEN", "does not exist", FIRST(LT)->type = (ir_type)m->types.n);
    SPOILED("IR_BROKEN", "does not exist", FIRST(LT)->place = m->places.n);
    SPOILED("IR_BROKEN", "does not exist", FIRST(LT)->name = m->strings.str.n);
    SPOILED("IR_BROKEN", "operand that does not exist", FIRST(LT)->in[1] = m->nodes.n);
    SPOILED("IR_BROKEN", "operand that does not exist", FIRST(LT)->in[1] = 0);
    SPOILED("IR_BROKEN", "does not exist", FIRST(MAKE)->in[0] = m->side.n - 3);
    SPOILED("IR_BROKEN", "last node", m->regions.at[FIRST(LT)->region].last--);
    SPOILED("IR_BROKEN", "own its regions", FIRST(LOOP)->imm = (uint32_t)FIRST(IF)->imm | (uint64_t)1 << 32);
    SPOILED("IR_BROKEN", "number of regions", FIRST(IF)->imm = (uint32_t)FIRST(IF)->imm);
    SPOILED("IR_BROKEN", "regions that do not exist", FIRST(LOOP)->imm += (uint64_t)m->regions.n);
    SPOILED("IR_BROKEN", "proper constant", FIRST(CONST)->region = 1);
    SPOILED("IR_BROKEN", "proper constant", FIRST(CONST)->op = OP_ZERO);
    SPOILED("IR_BROKEN", "immediate", FIRST(LT)->imm = 1);
    SPOILED("IR_BROKEN", "immediate", FIRST(ALLOC)->imm |= (uint64_t)1 << 40);
    SPOILED("IR_BROKEN", "function that does not exist", FIRST(CALL)->imm = m->funcs.n);
    SPOILED("IR_BROKEN", "text that does not exist", FIRST(ASSERT)->imm = m->strings.str.n);
    SPOILED("IR_BROKEN", "cannot stand in a region", FIRST(LT)->n = 0; FIRST(LT)->op = OP_CONST);
    SPOILED("IR_BROKEN", "parameter of its loop", FIRST(ARG)->imm = 1);
    SPOILED("IR_BROKEN", "fewer parameters", ir_unlink(m, ir_arg(m, first_of(m, OP_LOOP), 1)));
    SPOILED("IR_BROKEN", "follow its construct", FIRST(RESULT)->imm = 1);
    SPOILED("IR_BROKEN", "type that does not exist", FIRST(ALLOC)->imm = m->types.n);
    SPOILED("IR_BROKEN", "cases", ir_case(m, ir_region(m, first_of(m, OP_LOOP), 0), 1));
    SPOILED("IR_BROKEN", "parameter 2", m->params.at[2].type = TYPE_F32);
    SPOILED("IR_BROKEN", "function 2", m->funcs.at[2].n_params = 1000);
    SPOILED("IR_BROKEN", "type", m->types.at[TYPE_FIXED_COUNT].elem = (ir_type)m->types.n);
    SPOILED("IR_BROKEN", "place 2", m->places.at[2].at = 2);
    SPOILED("IR_BROKEN", "shares its body", m->funcs.at[2].region = m->funcs.at[1].region);
    SPOILED("IR_CONST_BITS", "0x100000001", FIRST(CONST)->imm = 0x100000001; FIRST(CONST)->type = TYPE_F32);
    SPOILED("IR_FLAGS", "flags 0x1", FIRST(LT)->flags = NODE_FAST);
    SPOILED("IR_FLAGS", "flags 0x", FIRST(BARRIER)->flags |= 1 << NODE_ORDER_SHIFT);
    SPOILED("IR_BROKEN", "order", FIRST(ATOMIC_ADD)->flags |= 7 << NODE_ORDER_SHIFT);
    SPOILED("IR_RESULT_VOID", "lt", FIRST(LT)->type = TYPE_VOID);
    SPOILED("IR_RESULT_NONE", "store", FIRST(STORE)->type = TYPE_F32);
    SPOILED("IR_OPERAND_COUNT", "'lt' takes 2", FIRST(LT)->n = 1);
    SPOILED("IR_NOT_VISIBLE", "%1 = lt bool %1, %n", FIRST(LT)->in[0] = first_of(m, OP_LT));
    SPOILED("IR_NOT_VISIBLE", "%?", FIRST(LT)->in[0] = m->params.at[1].node);
    SPOILED("IR_NO_VALUE", "operand 2 is a 'loop'", FIRST(ATOMIC_ADD)->in[1] = first_of(m, OP_LOOP));
    SPOILED("IR_LABEL_OUTSIDE", "br ?", FIRST(BR)->imm = 1);
    SPOILED("IR_VALUE_NAME", "'a b'", FIRST(LT)->name = ir_string(m, "a b"));
    SPOILED("IR_NAME", "'a b'", m->funcs.at[2].name = ir_string(m, "a b"));
    SPOILED("IR_NAME", "'\xff'", m->params.at[2].name = ir_string(m, "\xff"));
    SPOILED("IR_NAME", "''", m->funcs.at[2].name = 0);
    SPOILED("IR_NAME", "'f32x4'", m->types.at[TYPE_FIXED_COUNT + 1].name = ir_string(m, "f32x4"));
    SPOILED("IR_NAME", "'9'", m->fields.at[1].name = ir_string(m, "9"));
    SPOILED("IR_NAME_TWICE", "functions", m->funcs.at[2].name = m->funcs.at[1].name);
    SPOILED("IR_NAME_TWICE", "parameters", m->params.at[3].name = m->params.at[2].name);
    SPOILED("IR_NAME_TWICE", "fields", m->fields.at[2].name = m->fields.at[1].name);
    SPOILED("IR_KERNEL_RESULT", "'k'", m->funcs.at[2].result = TYPE_F32);
    SPOILED("IR_MAX_THREADS_RANGE", "1025", m->funcs.at[2].max_threads = 1025);
    SPOILED("IR_PARAM_ATTRIBUTE", "'n'", m->params.at[3].kind = PARAM_ATTRIBUTE);
    SPOILED("IR_PARAM_ATTRIBUTE", "'n'", m->params.at[3].attribute = ATTR_THREADS_PER_GRID);
    SPOILED("IR_PARAM_TYPE", "'out'", m->params.at[2].kind = PARAM_VALUE);
    SPOILED("IR_PARAM_KIND", "'x'", m->params.at[1].kind = PARAM_BUFFER);

    /* The place is the node's own, or that of what holds it. */
    struct ir_module *const m = small(mem);
    sk_error err = {0};
    FIRST(STORE)->n = 1;
    FIRST(STORE)->place = 0;
    CHECK_EQ(ir_verify(m, &err), SK_ERR_INVALID);
    CHECK_EQ_STR(err.file, "small.ir");
    CHECK_EQ(err.line, 9);
    CHECK_EQ(err.column, 3);
    CHECK_EQ(ir_verify(m, NULL), SK_ERR_INVALID);
    ir_module_free(m);
    return SK_OK;
}

/* Two structs of one name cannot be told apart in text. */
static sk_status test_structs(struct mem *mem)
{
    struct ir_module *const m = ir_module_new(mem);
    struct field f = {ir_string(m, "a"), TYPE_F32, 0};
    (void)ir_type_struct(m, ir_string(m, "S"), 1, &f);
    f.type = TYPE_I32;
    (void)ir_type_struct(m, ir_string(m, "S"), 1, &f);
    sk_error err = {0};
    CHECK_EQ(ir_verify(m, &err), SK_ERR_INVALID);
    CHECK_EQ_STR(err.name, "IR_NAME_TWICE");
    ir_module_free(m);

    struct ir_module *const deep = ir_module_new(mem);
    ir_type t = TYPE_F32;
    for (int k = 0; k < IR_MAX_DEPTH + 1; k++)
        t = ir_type_array(deep, t, 1);
    sk_error_clear(&err);
    CHECK_EQ(ir_verify(deep, &err), SK_ERR_INVALID);
    CHECK_EQ_STR(err.name, "IR_TYPE_DEPTH");
    ir_module_free(deep);
    return SK_OK;
}

/* Bits turned anywhere: verify refuses, or what it accepts can be printed and read. */
static sk_status test_corrupted(struct mem *mem)
{
    uint64_t seed = 3;
    uint32_t accepted = 0;
    struct ir_module *const original = small(mem);
    for (int round = 0; round < 30000; round++) {
        struct ir_module *const m = ir_module_clone(mem, original);
        const uint64_t r = next_random(&seed);
        const uint32_t what = r % 16, at = (uint32_t)(r >> 8), small_number = (uint32_t)(r >> 40) % 40;
        struct node *const x = ir_at(m, 1 + at % (m->nodes.n - 1));
        if (what == 0)
            x->op = (uint16_t)(small_number * 5 % (OP_COUNT + 2));
        else if (what == 1)
            x->type = (uint16_t)(small_number * 2);
        else if (what == 2)
            x->n = (uint16_t)(small_number % 8);
        else if (what == 3)
            x->flags = (uint16_t)(1u << small_number % 16);
        else if (what == 4)
            x->next = small_number;
        else if (what == 5)
            x->prev = small_number;
        else if (what == 6)
            x->region = small_number % 12;
        else if (what <= 9)
            x->in[what - 7] = small_number;
        else if (what == 10)
            x->imm = small_number;
        else if (what == 11)
            x->imm ^= (uint64_t)1 << small_number;
        else if (what == 12)
            m->regions.at[1 + at % (m->regions.n - 1)].owner = small_number;
        else if (what == 13)
            m->regions.at[1 + at % (m->regions.n - 1)].first = small_number;
        else if (what == 14)
            m->side.at[1 + at % (m->side.n - 1)] = small_number;
        else
            m->params.at[1 + at % (m->params.n - 1)].type = (uint16_t)(small_number * 2);
        sk_error err = {0};
        if (ir_verify(m, &err) == SK_OK) {
            accepted++;
            check_round_trip(mem, m, 0);
        } else {
            CHECK_EQ(err.status, SK_ERR_INVALID);
        }
        ir_module_free(m);
    }
    CHECK(accepted > 100);
    ir_module_free(original);
    return SK_OK;
}

/* ---- hostile text ---------------------------------------------------------------------------------------------- */

/* Parses a text of exactly n bytes, so that a sanitizer sees a read past its end. */
static sk_status parse_exactly(struct mem *mem, const char *text, size_t n, sk_error *err)
{
    char *const copy = malloc(n ? n : 1);
    if (!copy)
        return SK_ERR_MEMORY;
    memcpy(copy, text, n);
    struct ir_module *m = NULL;
    const sk_status status = ir_parse(mem, copy, n, "hostile.ir", &m, err);
    CHECK((status == SK_OK) == (m != NULL));
    CHECK(status == SK_OK || status == SK_ERR_SYNTAX || status == SK_ERR_INVALID);
    if (m)
        check_round_trip(mem, m, 0);
    ir_module_free(m);
    free(copy);
    return status;
}

static sk_status test_mutated(struct mem *mem)
{
    struct buf text, mutant;
    buf_init(&text, mem);
    buf_init(&mutant, mem);
    struct ir_module *const m = small(mem);
    ir_print(m, &text, IR_PRINT_PLACES);
    ir_module_free(m);
    for (size_t n = 0; n < text.n; n++)
        (void)parse_exactly(mem, text.at, n, NULL);
    uint64_t seed = 11;
    for (int round = 0; round < 20000; round++) {
        mutant.n = 0;
        buf_bytes(&mutant, text.at, text.n);
        for (uint64_t k = next_random(&seed) % 3 + 1; k > 0; k--) {
            const uint64_t r = next_random(&seed);
            const size_t a = (r >> 8) % text.n, b = (r >> 36) % text.n,
                         size = (r >> 4 & 15) % (text.n - (a > b ? a : b)) + 1;
            if (r % 4 == 0)
                mutant.at[a] = (char)(r >> 56);
            else if (r % 4 == 1)
                mutant.at[a] = "0123456789%{}()[],:=@!.\"\n -x"[(r >> 56) % 29];
            else
                memmove(mutant.at + a, mutant.at + b, size);
        }
        (void)parse_exactly(mem, mutant.at, mutant.n, NULL);
    }
    buf_free(&mutant);
    buf_free(&text);
    return SK_OK;
}

static void repeat(struct buf *b, const char *s, unsigned n)
{
    while (n-- > 0)
        buf_str(b, s);
}

static void refused(struct mem *mem, struct buf *b, const char *name)
{
    sk_error err = {0};
    CHECK(parse_exactly(mem, buf_text(b), b->n, &err) != SK_OK);
    CHECK_EQ_STR(err.name, name);
    b->n = 0;
}

static sk_status test_limits(struct mem *mem)
{
    struct buf b;
    buf_init(&b, mem);
    sk_error err = {0};
    buf_str(&b, "func f() {\n");
    repeat(&b, "block {\n", IR_MAX_DEPTH);
    repeat(&b, "}\n", IR_MAX_DEPTH + 1);
    CHECK_EQ(parse_exactly(mem, buf_text(&b), b.n, &err), SK_OK);
    b.n = 0;
    buf_str(&b, "func f() {\n");
    repeat(&b, "switch 1:u32 {\ncase 1 {\n", IR_MAX_DEPTH);
    repeat(&b, "}\n}\n", IR_MAX_DEPTH);
    buf_str(&b, "}\n");
    CHECK_EQ(parse_exactly(mem, buf_text(&b), b.n, &err), SK_OK);
    CHECK_EQ_STR(err.message, "");
    b.n = 0;
    buf_str(&b, "func f() {\n");
    repeat(&b, "block {\n", IR_MAX_DEPTH + 1);
    repeat(&b, "}\n", IR_MAX_DEPTH + 2);
    refused(mem, &b, "IR_DEPTH");
    buf_str(&b, "func f() {\n");
    repeat(&b, "{", 100000);
    refused(mem, &b, "IR_DEPTH");
    buf_str(&b, "func f(x: ");
    repeat(&b, "[", 100000);
    refused(mem, &b, "IR_TYPE_DEPTH");
    buf_str(&b, "func f() {\n%0 = add u32 ");
    repeat(&b, "1:u32, ", 70000);
    buf_str(&b, "1:u32\n}\n");
    refused(mem, &b, "IR_TOO_MANY");
    buf_str(&b, "func f() {\n%0 = load f32 ");
    repeat(&b, "9", 5000);
    refused(mem, &b, "IR_EXPECTED");
    buf_str(&b, "func f() {\n%0 = var f32 ");
    repeat(&b, "9", 5000);
    buf_str(&b, ":f32\n}\n");
    refused(mem, &b, "IR_NUMBER");
    for (int k = 0; k < 66000; k++)
        buf_fmt(&b, "func f%d(x: [f32 x %d]) {\n}\n", k, k + 1);
    refused(mem, &b, "IR_TYPE_LIMIT");
    for (int k = 0; k < 300; k++)
        buf_fmt(&b, "func f%d() {\ncall @f%d()\n}\n", k, k + 1);
    buf_str(&b, "func f300() {\n}\n");
    refused(mem, &b, "IR_CALL_DEPTH");
    for (int k = 0; k < 100000; k++) /* many, but not nested */
        buf_fmt(&b, "func f%d() {\n  call @last()\n}\n\n", k);
    buf_str(&b, "func last() {\n}\n");
    CHECK_EQ(parse_exactly(mem, buf_text(&b), b.n, &err), SK_OK);
    b.n = 0;
    buf_str(&b, "func f(x: f32) {\n  ");
    for (int k = 0; k < 60000; k++)
        buf_fmt(&b, "%%%d: f32%s", k, k < 59999 ? ", " : " = block {\n    br 0 ");
    for (int k = 0; k < 60000; k++)
        buf_str(&b, k ? ", %x" : "%x");
    buf_str(&b, "\n  }\n}\n");
    CHECK_EQ(parse_exactly(mem, buf_text(&b), b.n, &err), SK_OK);
    b.n = 0;
    buf_str(&b, "func f() {\n  switch 1:u32 {\n    case 0");
    for (int k = 1; k < 100000; k++)
        buf_fmt(&b, ", %d", k);
    buf_str(&b, " {\n    }\n  }\n}\n");
    CHECK_EQ(parse_exactly(mem, buf_text(&b), b.n, &err), SK_OK);
    CHECK_EQ_STR(err.message, "");
    buf_free(&b);

    const char zero[] = "func f() {\n}\n\0";
    CHECK_EQ(parse_exactly(mem, zero, sizeof zero - 1, &err), SK_ERR_SYNTAX);
    CHECK_EQ_STR(err.name, "IR_ZERO_BYTE");
    CHECK_EQ(err.line, 3);
    CHECK_EQ(err.column, 1);
    sk_error_clear(&err);
    const char crlf[] = "func f() {\r\n  block {\r\n  }\r\n}\r\n";
    CHECK_EQ(parse_exactly(mem, crlf, sizeof crlf - 1, &err), SK_OK);
    CHECK_EQ(parse_exactly(mem, "", 0, &err), SK_OK);
    return SK_OK;
}

/* ---- failing memory ---------------------------------------------------------------------------------------------- */

struct faulty {
    long count, fail_at;
};

static void *faulty_allocate(void *user, size_t size)
{
    struct faulty *const f = user;
    return ++f->count == f->fail_at ? NULL : malloc(size);
}

static void *faulty_resize(void *user, void *p, size_t old_size, size_t size)
{
    struct faulty *const f = user;
    (void)old_size;
    return ++f->count == f->fail_at ? NULL : realloc(p, size);
}

static void faulty_release(void *user, void *p, size_t size)
{
    (void)user;
    (void)size;
    free(p);
}

/* Parses, verifies, prints; `out` and *m belong to the caller whatever happens. */
static sk_status use_all(struct mem *mem, const struct buf *text, struct ir_module **m, struct buf *out, sk_error *err)
{
    TRY(ir_parse(mem, text->at, text->n, "text.ir", m, err));
    TRY(ir_verify(*m, err));
    ir_print(*m, out, IR_PRINT_PLACES);
    ir_print_func(*m, (*m)->funcs.n - 1, out, 0);
    ir_at(*m, first_of(*m, OP_STORE))->n = 1;
    return ir_verify(*m, err);
}

static sk_status test_memory(struct mem *mem)
{
    struct buf text;
    buf_init(&text, mem);
    struct ir_module *const original = small(mem);
    ir_print(original, &text, IR_PRINT_PLACES);
    ir_module_free(original);
    for (long k = 1;; k++) {
        struct faulty f = {.fail_at = k};
        struct mem odd;
        mem_init(&odd, &(sk_allocator){faulty_allocate, faulty_resize, faulty_release, &f});
        struct ir_module *m = NULL;
        struct buf out;
        buf_init(&out, &odd);
        sk_error err = {0};
        volatile sk_status status = SK_OK;
        MEM_GUARD(&odd, &err, status, use_all(&odd, &text, &m, &out, &err));
        ir_module_free(m);
        buf_free(&out);
        CHECK_EQ(odd.live, 0);
        if (f.count < k) {
            CHECK_EQ(status, SK_ERR_INVALID);
            CHECK(k > 30);
            break;
        }
        CHECK_EQ(status, SK_ERR_MEMORY);
        CHECK_EQ(err.status, SK_ERR_MEMORY);
    }
    buf_free(&text);
    return SK_OK;
}

static sk_status run(struct mem *m, sk_status (*test)(struct mem *))
{
    sk_error err = {0};
    volatile sk_status status = SK_OK;
    MEM_GUARD(m, &err, status, test(m));
    return status;
}

int main(void)
{
    sk_status (*const tests[])(struct mem *) = {test_everything, test_floats,  test_spoiled, test_structs,
                                                test_corrupted,  test_mutated, test_limits,  test_memory};
    for (size_t k = 0; k < sizeof tests / sizeof *tests; k++) {
        struct mem m;
        mem_init(&m, NULL);
        CHECK_EQ(run(&m, tests[k]), SK_OK);
        CHECK_EQ(m.live, 0);
    }
    return check_done();
}
