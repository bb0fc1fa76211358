/* parse_body.c - the statements of a function's body, as they come: nodes are built while they are read. */
#include "ir/parse.h"

#include <math.h>
#include <stdio.h>

/* ---- constants and values ---------------------------------------------------------------------------------------- */

static sk_status integer_bits(struct parser *p, const struct token *t, enum scalar s, uint64_t *bits)
{
    const char *const text = parse_bytes(p, t);
    const bool negative = text[0] == '-';
    const unsigned width = scalar_info[s].bits;
    bool fits = false;
    if (!parse_magnitude(text + negative, t->n - negative, bits, &fits))
        return FAIL_AT(p, t, IR_NUMBER, FOUND(p, t), scalar_info[s].name);
    const bool is_signed = scalar_info[s].class_ == CLASS_S;
    const uint64_t high = is_signed ? ((uint64_t)1 << (width - 1)) - 1 : UINT64_MAX >> (64 - width);
    const uint64_t low = is_signed ? (uint64_t)1 << (width - 1) : 0; /* magnitude of the smallest */
    if (!fits || *bits > (negative ? low : high))
        return FAIL_AT(p, t, IR_NUMBER_RANGE, FOUND(p, t), scalar_info[s].name);
    if (negative)
        *bits = 0 - *bits;
    return SK_OK;
}

static sk_status take_float(struct parser *p, const struct token *t, enum scalar s, uint32_t *id)
{
    const char *const text = parse_bytes(p, t);
    const unsigned width = scalar_info[s].bits;
    char copy[256];
    double x = 0;
    if (t->n > 2 && text[0] == '0' && (text[1] | 32) == 'x') {
        uint64_t bits = 0;
        bool fits = false;
        if (!parse_magnitude(text, t->n, &bits, &fits))
            return FAIL_AT(p, t, IR_NUMBER, FOUND(p, t), scalar_info[s].name);
        if (!fits || bits >> width)
            return FAIL_AT(p, t, IR_NUMBER_RANGE, FOUND(p, t), scalar_info[s].name);
        *id = ir_const(p->m, (ir_type)s, bits);
        return SK_OK;
    }
    const bool copied = t->n < sizeof copy;
    (void)snprintf(copy, sizeof copy, "%.*s", (int)(copied ? t->n : 0), text);
    const char *const end = read_f64(copy, &x);
    if (!end || *end || (isnan(x) && text[0] == '-'))
        return FAIL_AT(p, t, IR_NUMBER, FOUND(p, t), scalar_info[s].name);
    *id = ir_const_f(p->m, (ir_type)s, isnan(x) ? 0 : x);
    const uint64_t quiet = s == S_F32 ? 0x7fc00000 : s == S_F16 ? 0x7e00 : 0x7fc0;
    if (isnan(x))
        *id = ir_const(p->m, (ir_type)s, quiet);
    const uint64_t inf = s == S_F32 ? 0x7f800000 : s == S_F16 ? 0x7c00 : 0x7f80;
    const uint64_t bits = ir_at(p->m, *id)->imm & (UINT64_MAX >> (65 - width));
    if (bits == inf && !strstr(copy, "inf"))
        return FAIL_AT(p, t, IR_NUMBER_RANGE, FOUND(p, t), scalar_info[s].name);
    return SK_OK;
}

/* Gives node `id` the name and the number of a VALUE token. */
static sk_status define_value(struct parser *p, const struct token *t, uint32_t id)
{
    ir_at(p->m, id)->name = strtab_id(&p->m->strings, parse_bytes(p, t), t->name_n);
    return parse_define(p, KIND_VALUE, p->b.func, t->number, id, t);
}

static sk_status find_value(struct parser *p, const struct token *t, uint32_t *id)
{
    if (!t->numbered) {
        *id = parse_find(p, KIND_PARAM, p->b.func, strtab_id(&p->m->strings, parse_bytes(p, t), t->n));
        return *id ? SK_OK : FAIL_AT(p, t, IR_UNDEFINED, FOUND(p, t));
    }
    *id = parse_find(p, KIND_VALUE, p->b.func, t->number);
    if (!*id)
        return FAIL_AT(p, t, IR_UNDEFINED, FOUND(p, t));
    const char *const name = strtab_str(&p->m->strings, ir_at(p->m, *id)->name);
    if (strlen(name) != t->name_n || memcmp(name, parse_bytes(p, t), t->name_n) != 0)
        return FAIL_AT(p, t, IR_OTHER_NAME, FOUND(p, t), name);
    return SK_OK;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static bool at_operand(const struct parser *p)
{
    static const char *const words[] = {"true", "false", "inf", "nan", "zero"};
    if (parse_cur(p)->kind == TOK_VALUE || parse_cur(p)->kind == TOK_NUMBER)
        return true;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (parse_at_word(p, words[k]))
            return true;
    return false;
}

static sk_status take_operand(struct parser *p, uint32_t *id)
{
    const struct token t = *parse_cur(p);
    ir_type type = TYPE_VOID;
    if (!at_operand(p))
        return parse_expected(p, "a value");
    TRY(parse_next(p));
    if (t.kind == TOK_VALUE)
        return find_value(p, &t, id);
    if (parse_spells(p, &t, "true") || parse_spells(p, &t, "false")) {
        *id = ir_const(p->m, TYPE_BOOL, parse_spells(p, &t, "true"));
        return SK_OK;
    }
    TRY(parse_take(p, ':'));
    TRY(parse_type(p, &type));
    if (parse_spells(p, &t, "zero")) {
        *id = ir_zero(p->m, type);
        return SK_OK;
    }
    if (ir_type_width(type) != 1) {
        p->text.n = 0;
        ir_type_print(p->m, &p->text, type);
        return FAIL_AT(p, &t, IR_CONST_TYPE, buf_text(&p->text), buf_text(&p->text));
    }
    const enum scalar s = (enum scalar)type;
    if (scalar_info[s].class_ == CLASS_F)
        return take_float(p, &t, s, id);
    uint64_t bits = 0;
    if (s == S_BOOL)
        return FAIL_AT(p, &t, IR_EXPECTED, "true or false", FOUND(p, &t));
    TRY(integer_bits(p, &t, s, &bits));
    *id = ir_const(p->m, type, bits);
    return SK_OK;
}

static sk_status push_operand(struct parser *p)
{
    uint32_t id = 0;
    const struct token t = *parse_cur(p);
    TRY(take_operand(p, &id));
    if (p->operands.n == UINT16_MAX)
        return FAIL_AT(p, &t, IR_TOO_MANY, (unsigned)UINT16_MAX, "operands");
    VEC_PUSH(p->mem, &p->operands, id);
    return SK_OK;
}

static sk_status take_operands(struct parser *p)
{
    p->operands.n = 0;
    if (!at_operand(p))
        return SK_OK;
    TRY(push_operand(p));
    while (parse_at_punct(p, ',')) {
        TRY(parse_next(p));
        TRY(push_operand(p));
    }
    return SK_OK;
}

/* ---- what follows operands --------------------------------------------------------------------------------------- */

static sk_status take_picks(struct parser *p, ir_type result, uint64_t *imm)
{
    const unsigned n = ir_type_width(result);
    TRY(parse_take(p, '['));
    for (unsigned k = 0; k < n; k++) {
        uint64_t pick = 0;
        if (k)
            TRY(parse_take(p, ','));
        TRY(parse_integer(p, "the number of a component", 0, 7, &pick));
        *imm |= pick << 4 * k;
    }
    return parse_at_punct(p, ']') ? parse_next(p) : parse_expected(p, "']' after as many components as the result has");
}

static sk_status take_memory(struct parser *p, unsigned *flags)
{
    TRY(parse_word(p, "memory"));
    TRY(parse_take(p, '('));
    if (parse_at_word(p, "none")) {
        TRY(parse_next(p));
        return parse_take(p, ')');
    }
    for (;;) {
        unsigned bit = 0;
        while (bit < 4 && !parse_at_word(p, memory_name[bit]))
            bit++;
        if (bit == 4)
            return parse_expected(p, "none, device, threadgroup, texture or threadgroup_imageblock");
        *flags |= 1u << (NODE_MEMORY_SHIFT + bit);
        TRY(parse_next(p));
        if (!parse_at_punct(p, ','))
            return parse_take(p, ')');
        TRY(parse_next(p));
    }
}

static sk_status take_order(struct parser *p, unsigned *flags)
{
    unsigned order = 0, scope = 0;
    TRY(parse_word(p, "order"));
    TRY(parse_take(p, '('));
    while (order < ORDER_COUNT && !parse_at_word(p, order_name[order]))
        order++;
    if (order == ORDER_COUNT)
        return parse_expected(p, "relaxed, acquire, release, acq_rel or seq_cst");
    TRY(parse_next(p));
    TRY(parse_take(p, ')'));
    TRY(parse_word(p, "scope"));
    TRY(parse_take(p, '('));
    while (scope < SCOPE_COUNT && !parse_at_word(p, scope_name[scope]))
        scope++;
    if (scope == SCOPE_COUNT)
        return parse_expected(p, "thread, simdgroup, threadgroup or device");
    TRY(parse_next(p));
    *flags |= order << NODE_ORDER_SHIFT | scope << NODE_SCOPE_SHIFT;
    return parse_take(p, ')');
}

static sk_status take_extras(struct parser *p, enum op op, ir_type result, unsigned *flags, uint64_t *imm)
{
    const unsigned extras = ir_extras(op);
    if (extras & EXTRA_OF) {
        ir_type t = TYPE_VOID;
        TRY(parse_word(p, "of"));
        TRY(parse_type(p, &t));
        *imm = t;
    }
    if (extras & EXTRA_PART) {
        uint64_t part = 0;
        TRY(parse_take(p, '['));
        TRY(parse_integer(p, "the number of a part", 0, extras & EXTRA_OF ? UINT32_MAX : UINT64_MAX, &part));
        TRY(parse_take(p, ']'));
        *imm |= extras & EXTRA_OF ? part << 32 : part;
    }
    if (extras & EXTRA_PICK)
        TRY(take_picks(p, result, imm));
    if (extras & EXTRA_FAST)
        TRY(parse_flag(p, "fast", NODE_FAST, flags));
    if (extras & EXTRA_NO_CONTRACT)
        TRY(parse_flag(p, "no_contract", NODE_NO_CONTRACT, flags));
    if (extras & EXTRA_WEAK)
        TRY(parse_flag(p, "weak", NODE_WEAK, flags));
    if (extras & EXTRA_MEMORY)
        TRY(take_memory(p, flags));
    if (extras & EXTRA_ORDER)
        TRY(take_order(p, flags));
    if (extras & EXTRA_TEXT) {
        uint32_t string = 0;
        TRY(parse_text(p, &string));
        *imm = string;
    }
    return SK_OK;
}

/* ---- constructs -------------------------------------------------------------------------------------------------- */

static sk_status take_region(struct parser *p, uint32_t region);

static sk_status take_brace(struct parser *p)
{
    TRY(parse_take(p, '{'));
    p->brace++;
    return SK_OK;
}

static sk_status take_case(struct parser *p, uint32_t region, enum scalar s)
{
    if (parse_at_word(p, "default")) {
        ir_region_at(p->m, region)->is_default = true;
        TRY(parse_next(p));
    } else {
        TRY(parse_word(p, "case"));
        for (;;) {
            const struct token t = *parse_cur(p);
            uint64_t bits = 0;
            if (t.kind != TOK_NUMBER)
                return parse_expected(p, "the number of a case");
            TRY(integer_bits(p, &t, s, &bits));
            ir_case(p->m, region, (int64_t)bits);
            TRY(parse_next(p));
            if (!parse_at_punct(p, ','))
                break;
            TRY(parse_next(p));
        }
    }
    TRY(take_brace(p));
    return take_region(p, region);
}

static sk_status take_cases(struct parser *p, uint32_t sw, const struct token *operand)
{
    const ir_type t = ir_at(p->m, ir_in(p->m, sw)[0])->type;
    const enum scalar s = ir_type_width(t) == 1 && (ir_type_class(p->m, t) & CLASS_SU) ? (enum scalar)t : S_VOID;
    if (s == S_VOID)
        return FAIL_AT(p, operand, IR_EXPECTED, "an integer", FOUND(p, operand));
    const unsigned n = ir_n_regions(p->m, sw);
    for (unsigned k = 0; k < n; k++) {
        TRY(parse_skip_lines(p));
        if (!parse_at_word(p, "case") && !parse_at_word(p, "default"))
            return parse_expected(p, "case or default");
        TRY(take_case(p, ir_region(p->m, sw, k), s));
    }
    TRY(parse_skip_lines(p));
    return parse_at_punct(p, '}') ? parse_next(p) : parse_expected(p, "case, default or '}'");
}

/* (%k.7: u32 = 0:u32, ...): the parameters go to the stack of definitions, their first values are the operands. */
static sk_status take_loop_params(struct parser *p)
{
    p->operands.n = 0;
    if (!parse_at_punct(p, '('))
        return SK_OK;
    do {
        struct def d = {0};
        TRY(parse_next(p));
        d.token = *parse_cur(p);
        if (d.token.kind != TOK_VALUE || !d.token.numbered)
            return parse_expected(p, "a new value such as %0 or %name.0");
        TRY(parse_next(p));
        TRY(parse_take(p, ':'));
        TRY(parse_type(p, &d.type));
        TRY(parse_take(p, '='));
        TRY(push_operand(p));
        const ir_type first = ir_at(p->m, p->operands.at[p->operands.n - 1])->type;
        if (first != d.type) {
            char text[128];
            p->text.n = 0;
            ir_type_print(p->m, &p->text, d.type);
            (void)snprintf(text, sizeof text, "%s", buf_text(&p->text));
            p->text.n = 0;
            ir_type_print(p->m, &p->text, first);
            return FAIL_AT(p, &d.token, IR_LOOP_TYPE, text, buf_text(&p->text));
        }
        VEC_PUSH(p->mem, &p->defs, d);
    } while (parse_at_punct(p, ','));
    return parse_take(p, ')');
}

/* The results are definitions from `base` on. */
static sk_status take_construct(struct parser *p, enum op op, const struct token *start, uint32_t base)
{
    struct ir_module *const m = p->m;
    const uint32_t n_results = p->defs.n - base;
    const uint32_t outer = p->b.region;
    const struct token operand = *parse_cur(p);
    uint32_t place = 0;
    if (op == OP_LOOP) {
        TRY(take_loop_params(p));
    } else {
        TRY(take_operands(p));
        if (p->operands.n != (op == OP_BLOCK ? 0u : 1u))
            return FAIL_AT(p, &operand, IR_EXPECTED, op == OP_BLOCK ? "'{'" : "one value", FOUND(p, &operand));
    }
    TRY(parse_place(p, start, &place));
    if (p->depth == IR_MAX_DEPTH)
        return FAIL_AT(p, start, IR_DEPTH, FOUND(p, start), IR_MAX_DEPTH);
    if (!parse_at_punct(p, '{'))
        return parse_expected(p, "'{'");
    p->b.place = place;
    const unsigned n_regions = op == OP_SWITCH ? p->n_cases.at[p->brace] : op == OP_IF ? 2 : 1;
    const uint32_t id = ir_construct(&p->b, op, p->operands.n, p->operands.at, n_regions);
    for (uint32_t k = base + n_results; k < p->defs.n; k++)
        TRY(define_value(p, &p->defs.at[k].token, ir_arg(m, id, k - base - n_results)));
    p->label[p->depth++] = id;
    TRY(take_brace(p));
    if (op == OP_SWITCH) {
        TRY(take_cases(p, id, &operand));
    } else {
        TRY(take_region(p, ir_region(m, id, 0)));
        if (op == OP_IF && parse_at_word(p, "else")) {
            TRY(parse_next(p));
            TRY(take_brace(p));
            TRY(take_region(p, ir_region(m, id, 1)));
        }
    }
    p->depth--;
    p->b.region = outer;
    p->b.place = place;
    for (uint32_t k = 0; k < n_results; k++) {
        const uint32_t result = ir_node(&p->b, OP_RESULT, p->defs.at[base + k].type, 1, &id, 0, k);
        TRY(define_value(p, &p->defs.at[base + k].token, result));
    }
    p->defs.n = base;
    return SK_OK;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

static sk_status end_of_statement(struct parser *p)
{
    if (parse_cur(p)->kind == TOK_LINE)
        return parse_next(p);
    return parse_cur(p)->kind == TOK_END || parse_at_punct(p, '}') ? SK_OK : parse_expected(p, "the end of the line");
}

static sk_status take_call(struct parser *p, uint64_t *func)
{
    TRY(parse_take(p, '@'));
    const struct token t = *parse_cur(p);
    uint32_t name = 0;
    TRY(parse_name(p, "the name of a function", &name));
    *func = parse_find(p, KIND_FUNC, 0, name);
    if (!*func)
        return FAIL_AT(p, &t, IR_FUNC_UNDEFINED, FOUND(p, &t));
    TRY(parse_take(p, '('));
    TRY(take_operands(p));
    return parse_take(p, ')');
}

static sk_status take_label(struct parser *p, uint64_t *label)
{
    const struct token t = *parse_cur(p);
    uint64_t n = 0;
    TRY(parse_integer(p, "the number of enclosing constructs to pass", 0, UINT32_MAX, &n));
    if (n >= p->depth)
        return FAIL_AT(p, &t, IR_LABEL, FOUND(p, &t), p->depth);
    *label = p->label[p->depth - 1 - n];
    return SK_OK;
}

/* An operation that is no construct; `def` null: without a value. */
static sk_status take_op(struct parser *p, enum op op, const struct token *start, const struct def *def)
{
    ir_type type = TYPE_VOID;
    uint64_t imm = 0;
    unsigned flags = 0;
    const char *const name = op_info[op].name;
    if (def && op_info[op].rule == RULE_NONE)
        return FAIL_AT(p, start, IR_OP_NO_VALUE, name);
    if (!def && op_info[op].rule != RULE_NONE && op != OP_CALL)
        return FAIL_AT(p, start, IR_OP_VALUE, name, name);
    if (def)
        TRY(parse_type(p, &type));
    if (op == OP_BR)
        TRY(take_label(p, &imm));
    if (op == OP_CALL)
        TRY(take_call(p, &imm));
    else
        TRY(take_operands(p));
    TRY(take_extras(p, op, type, &flags, &imm));
    TRY(parse_place(p, start, &p->b.place));
    const uint32_t id = ir_node(&p->b, op, type, p->operands.n, p->operands.at, flags, imm);
    return def ? define_value(p, &def->token, id) : SK_OK;
}

/* %5: f32, %6: u32 = ... or %5 = ...: to the stack of definitions. */
static sk_status take_defs(struct parser *p, bool *typed)
{
    while (parse_cur(p)->kind == TOK_VALUE) {
        struct def d = {.token = *parse_cur(p)};
        if (!d.token.numbered)
            return parse_expected(p, "a new value such as %0 or %name.0");
        TRY(parse_next(p));
        if (parse_at_punct(p, ':')) {
            TRY(parse_next(p));
            TRY(parse_type(p, &d.type));
            *typed = true;
        }
        VEC_PUSH(p->mem, &p->defs, d);
        if (!*typed || !parse_at_punct(p, ','))
            return parse_take(p, '=');
        TRY(parse_next(p));
        if (parse_cur(p)->kind != TOK_VALUE)
            return parse_expected(p, "a value");
    }
    return SK_OK;
}

static sk_status take_statement(struct parser *p)
{
    const struct token start = *parse_cur(p);
    const uint32_t base = p->defs.n;
    bool typed = false;
    TRY(take_defs(p, &typed));
    const bool plain = p->defs.n > base && !typed;
    const struct token t = *parse_cur(p);
    if (t.kind != TOK_WORD)
        return parse_expected(p, "an operation");
    const enum op op = op_by_name(parse_bytes(p, &t), t.n);
    const bool is_value = op == OP_CONST || op == OP_ZERO || op == OP_PARAM || op == OP_ARG || op == OP_RESULT;
    if (op == OP_NONE || is_value)
        return FAIL_AT(p, &t, IR_OP_UNKNOWN, FOUND(p, &t));
    TRY(parse_next(p));
    if (ir_is_construct((uint16_t)op)) {
        if (plain)
            return FAIL_AT(p, &t, IR_OP_CONSTRUCT, op_info[op].name, op_info[op].name);
        for (uint32_t k = base; k < p->defs.n; k++)
            if (p->defs.at[k].type == TYPE_VOID)
                return FAIL_AT(p, &p->defs.at[k].token, IR_OP_CONSTRUCT, op_info[op].name, op_info[op].name);
        TRY(take_construct(p, op, &start, base));
    } else {
        if (typed)
            return FAIL_AT(p, &t, IR_EXPECTED, "block, loop, if or switch", FOUND(p, &t));
        const struct def d = plain ? p->defs.at[base] : (struct def){0};
        p->defs.n = base;
        TRY(take_op(p, op, &start, plain ? &d : NULL));
    }
    return end_of_statement(p);
}

/* After the opening brace, to the closing one. */
static sk_status take_region(struct parser *p, uint32_t region)
{
    for (;;) {
        TRY(parse_skip_lines(p));
        if (parse_at_punct(p, '}'))
            return parse_next(p);
        p->b.region = region;
        TRY(take_statement(p));
    }
}

sk_status parse_body(struct parser *p)
{
    TRY(take_brace(p));
    return take_region(p, p->b.region);
}
