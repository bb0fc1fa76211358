/* irtext.c - every operation of the tables, every kind of constant and parameter: verified, printed, read back. */
#include "unit/there_and_back.h"

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

int main(void)
{
    sk_status (*const tests[])(struct mem *) = {test_everything, test_floats};
    run_all(tests, sizeof tests / sizeof *tests);
    return check_done();
}
