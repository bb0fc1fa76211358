/* irbroken.c - broken modules, broken text and failing memory: verify and parse refuse them and do no harm. */
#include "faulty.h"
#include "unit/there_and_back.h"

#include <stdlib.h>

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
    SPOILED("IR_ELEM_VOID", "of void", FIRST(ALLOC)->imm = TYPE_VOID);
    SPOILED("IR_CASE_EMPTY", "region 1", m->regions.at[ir_region(m, first_of(m, OP_SWITCH), 0)].n_cases = 0);
    SPOILED("IR_CASE_EMPTY", "region 1", m->regions.at[ir_region(m, first_of(m, OP_SWITCH), 0)].is_default = true);
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
    CHECK_EQ(parse_exactly(mem, "# \xc3\xa9 \xc3", 6, &err), SK_ERR_SYNTAX);
    CHECK_EQ_STR(err.name, "IR_NOT_UTF8");
    CHECK_EQ(err.column, 6);
    sk_error_clear(&err);
    struct ir_module *m = NULL;
    CHECK_EQ(ir_parse(mem, "too large", ((size_t)1 << 30) + 1, "large.ir", &m, &err), SK_ERR_SYNTAX);
    CHECK_EQ_STR(err.name, "IR_TOO_LARGE");
    sk_error_clear(&err);
    const char crlf[] = "func f() {\r\n  block {\r\n  }\r\n}\r\n";
    CHECK_EQ(parse_exactly(mem, crlf, sizeof crlf - 1, &err), SK_OK);
    CHECK_EQ(parse_exactly(mem, "", 0, &err), SK_OK);
    return SK_OK;
}

/* ---- failing memory ---------------------------------------------------------------------------------------------- */

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
    for (long k = 0;; k++) {
        struct faulty f = {.left = k};
        struct mem odd;
        const sk_allocator a = faulty_allocator(&f);
        mem_init(&odd, &a);
        struct ir_module *m = NULL;
        struct buf out;
        buf_init(&out, &odd);
        sk_error err = {0};
        volatile sk_status status = SK_OK;
        MEM_GUARD(&odd, &err, status, use_all(&odd, &text, &m, &out, &err));
        ir_module_free(m);
        buf_free(&out);
        CHECK_EQ(odd.live, 0);
        CHECK(faulty_clean(&f));
        if (!f.failed) {
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

int main(void)
{
    sk_status (*const tests[])(struct mem *) = {test_spoiled, test_structs, test_corrupted,
                                                test_mutated, test_limits,  test_memory};
    run_all(tests, sizeof tests / sizeof *tests);
    return check_done();
}
