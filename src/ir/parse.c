/* parse.c - reads the text form: docs/ir.md. Every byte of the text is untrusted; verify judges what was built.
 *
 * Two passes over the text. The first reads places, structs and the heads of functions, so that calls may go forward, and
 * for each brace of a body counts the cases directly inside, since a switch is made with all its regions. The second reads
 * the bodies, by recursion as deep as constructs may nest.
 * One table holds whatever has a name: a key is a kind, a function and a number, which may be a string's.
 */
#include "ir/parse.h"

#include <stdio.h>

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

bool parse_spells(const struct parser *p, const struct token *t, const char *word)
{
    return t->n == strlen(word) && memcmp(parse_bytes(p, t), word, t->n) == 0;
}

bool parse_at_word(const struct parser *p, const char *word)
{
    return parse_cur(p)->kind == TOK_WORD && parse_spells(p, parse_cur(p), word);
}

bool parse_at_punct(const struct parser *p, char c)
{
    return parse_cur(p)->kind == TOK_PUNCT && parse_cur(p)->punct == c;
}

sk_status parse_expected(struct parser *p, const char *what)
{
    return FAIL_AT(p, parse_cur(p), IR_EXPECTED, what, FOUND(p, parse_cur(p)));
}

sk_status parse_take(struct parser *p, char c)
{
    if (parse_at_punct(p, c))
        return parse_next(p);
    return parse_expected(p, (char[]){'\'', c, '\'', 0});
}

sk_status parse_word(struct parser *p, const char *word)
{
    if (parse_at_word(p, word))
        return parse_next(p);
    char quoted[32];
    (void)snprintf(quoted, sizeof quoted, "'%s'", word);
    return parse_expected(p, quoted);
}

sk_status parse_skip_lines(struct parser *p)
{
    while (parse_cur(p)->kind == TOK_LINE)
        TRY(parse_next(p));
    return SK_OK;
}

sk_status parse_name(struct parser *p, const char *what, uint32_t *name)
{
    if (parse_cur(p)->kind != TOK_WORD)
        return parse_expected(p, what);
    *name = strtab_id(&p->m->strings, parse_bytes(p, parse_cur(p)), parse_cur(p)->n);
    return parse_next(p);
}

sk_status parse_text(struct parser *p, uint32_t *string)
{
    if (parse_cur(p)->kind != TOK_TEXT)
        return parse_expected(p, "a text in quotes");
    p->text.n = 0;
    TRY(lex_unquote(&p->lex, parse_cur(p), &p->text));
    *string = strtab_id(&p->m->strings, buf_text(&p->text), p->text.n);
    return parse_next(p);
}

sk_status parse_flag(struct parser *p, const char *word, unsigned flag, unsigned *flags)
{
    if (!parse_at_word(p, word))
        return SK_OK;
    *flags |= flag;
    return parse_next(p);
}

/* ---- numbers and names ------------------------------------------------------------------------------------------- */

bool parse_magnitude(const char *s, uint32_t n, uint64_t *out, bool *fits)
{
    const bool hex = n > 2 && s[0] == '0' && (s[1] | 32) == 'x';
    const unsigned base = hex ? 16 : 10;
    uint64_t x = 0;
    *fits = true;
    if (n == 0)
        return false;
    for (uint32_t k = hex ? 2 : 0; k < n; k++) {
        const char c = s[k], low = (char)(c | 32);
        unsigned digit = 16;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if (low >= 'a' && low <= 'f')
            digit = (unsigned)(low - 'a') + 10;
        if (digit >= base)
            return false;
        if (x > (UINT64_MAX - digit) / base)
            *fits = false;
        x = x * base + digit;
    }
    *out = x;
    return true;
}

sk_status parse_integer(struct parser *p, const char *what, uint64_t low, uint64_t high, uint64_t *out)
{
    const struct token t = *parse_cur(p);
    bool fits = false;
    if (t.kind != TOK_NUMBER || !parse_magnitude(parse_bytes(p, &t), t.n, out, &fits))
        return parse_expected(p, what);
    if (!fits || *out < low || *out > high)
        return FAIL_AT(p, &t, IR_INTEGER_RANGE, FOUND(p, &t), (unsigned long long)low, (unsigned long long)high);
    return parse_next(p);
}

static uint64_t key_of(enum kind kind, uint32_t func, uint32_t x)
{
    return (uint64_t)kind << 61 | (uint64_t)func << 32 | x;
}

static struct entry *slot_of(struct entry *slots, uint32_t n_slots, uint64_t key)
{
    uint32_t i = (uint32_t)hash_u64(0, key) & (n_slots - 1);
    while (slots[i].key && slots[i].key != key)
        i = (i + 1) & (n_slots - 1);
    return &slots[i];
}

uint32_t parse_find(const struct parser *p, enum kind kind, uint32_t func, uint32_t x)
{
    return p->n_slots ? slot_of(p->slots, p->n_slots, key_of(kind, func, x))->id : 0;
}

sk_status parse_define(struct parser *p, enum kind kind, uint32_t func, uint32_t x, uint32_t id, const struct token *t)
{
    static const char *const what[] = {"", "function", "struct", "field", "place", "parameter", "value"};
    if (2 * (p->n_entries + 1) > p->n_slots) {
        if (p->n_slots >= (uint32_t)1 << 30)
            mem_out_of_memory(p->mem);
        const uint32_t n = p->n_slots ? 2 * p->n_slots : 64;
        struct entry *const slots = mem_zalloc(p->mem, n * sizeof *slots);
        for (uint32_t k = 0; k < p->n_slots; k++)
            if (p->slots[k].key)
                *slot_of(slots, n, p->slots[k].key) = p->slots[k];
        mem_free(p->mem, p->slots, p->n_slots * sizeof *slots);
        p->slots = slots;
        p->n_slots = n;
    }
    struct entry *const e = slot_of(p->slots, p->n_slots, key_of(kind, func, x));
    if (e->key)
        return FAIL_AT(p, t, IR_TWICE, what[kind], FOUND(p, t));
    *e = (struct entry){key_of(kind, func, x), id};
    p->n_entries++;
    return SK_OK;
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

static bool find_space(const struct parser *p, const struct token *t, enum space *space)
{
    for (unsigned k = 0; k < SPACE_COUNT; k++) {
        if (t->kind == TOK_WORD && parse_spells(p, t, space_name[k])) {
            *space = (enum space)k;
            return true;
        }
    }
    return false;
}

/* f32, f32x4; TYPE_VOID: neither. */
static ir_type number_type(const struct parser *p, const struct token *t)
{
    for (enum scalar s = S_BOOL; s < S_COUNT; s++) {
        const size_t n = strlen(scalar_info[s].name);
        if (t->n < n || memcmp(parse_bytes(p, t), scalar_info[s].name, n) != 0)
            continue;
        if (t->n == n)
            return (ir_type)s;
        const char *const rest = parse_bytes(p, t) + n;
        if (t->n == n + 2 && rest[0] == 'x' && rest[1] >= '2' && rest[1] <= '4')
            return ir_type_vector(s, (unsigned)(rest[1] - '0'));
    }
    return TYPE_VOID;
}

static sk_status take_type(struct parser *p, ir_type *out, unsigned depth)
{
    const struct token t = *parse_cur(p);
    if (parse_at_punct(p, '[')) {
        ir_type elem = TYPE_VOID;
        uint64_t count = 0;
        if (depth == IR_MAX_DEPTH)
            return FAIL_AT(p, &t, IR_TYPE_DEPTH, IR_MAX_DEPTH);
        TRY(parse_next(p));
        TRY(take_type(p, &elem, depth + 1));
        TRY(parse_word(p, "x"));
        TRY(parse_integer(p, "a number of elements", 1, (uint64_t)1 << 40, &count));
        *out = ir_type_array(p->m, elem, count);
        if (*out == TYPE_VOID)
            return FAIL_AT(p, &t, IR_TYPE_LIMIT);
        return parse_take(p, ']');
    }
    if (t.kind != TOK_WORD)
        return parse_expected(p, "a type");
    TRY(parse_next(p));
    *out = number_type(p, &t);
    if (*out != TYPE_VOID)
        return SK_OK;
    if (parse_spells(p, &t, "ptr")) {
        enum space space = SPACE_DEVICE;
        TRY(parse_take(p, '.'));
        if (!find_space(p, parse_cur(p), &space))
            return parse_expected(p, "device, constant, threadgroup or thread");
        *out = TYPE_POINTER(space);
        return parse_next(p);
    }
    *out = (ir_type)parse_find(p, KIND_STRUCT, 0, strtab_id(&p->m->strings, parse_bytes(p, &t), t.n));
    if (*out != TYPE_VOID)
        return SK_OK;
    return parse_spells(p, &t, "f64") ? FAIL_AT(p, &t, IR_NO_F64) : FAIL_AT(p, &t, IR_TYPE_UNKNOWN, FOUND(p, &t));
}

sk_status parse_type(struct parser *p, ir_type *out)
{
    return take_type(p, out, 0);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

sk_status parse_place(struct parser *p, const struct token *t, uint32_t *place)
{
    *place = p->own_places ? 0 : ir_place(p->m, p->file, t->line, t->column, 0);
    if (!parse_at_punct(p, '!'))
        return SK_OK;
    TRY(parse_next(p));
    const struct token number = *parse_cur(p);
    uint64_t n = 0;
    TRY(parse_integer(p, "the number of a place", 0, UINT32_MAX, &n));
    *place = parse_find(p, KIND_PLACE, 0, (uint32_t)n);
    return *place ? SK_OK : FAIL_AT(p, &number, IR_UNDEFINED, FOUND(p, &number));
}

static sk_status place_line(struct parser *p)
{
    uint64_t number = 0, line = 0, column = 0, at = 0;
    uint32_t file = 0, outer = 0;
    p->own_places = true;
    if (parse_at_word(p, "none"))
        return parse_next(p);
    const struct token t = *parse_cur(p);
    TRY(parse_integer(p, "the number of a place", 0, UINT32_MAX, &number));
    TRY(parse_text(p, &file));
    TRY(parse_integer(p, "a line", 0, UINT32_MAX, &line));
    TRY(parse_integer(p, "a column", 0, UINT32_MAX, &column));
    if (parse_at_word(p, "at")) {
        TRY(parse_next(p));
        const struct token call = *parse_cur(p);
        TRY(parse_integer(p, "the number of a place", 0, UINT32_MAX, &at));
        outer = parse_find(p, KIND_PLACE, 0, (uint32_t)at);
        if (!outer)
            return FAIL_AT(p, &call, IR_UNDEFINED, FOUND(p, &call));
    }
    const uint32_t id = ir_place(p->m, file, (uint32_t)line, (uint32_t)column, outer);
    return parse_define(p, KIND_PLACE, 0, (uint32_t)number, id, &t);
}

/* ---- structs and heads of functions ------------------------------------------------------------------------------ */

static sk_status struct_line(struct parser *p)
{
    const struct token t = *parse_cur(p);
    uint32_t name = 0;
    TRY(parse_name(p, "the name of a struct", &name));
    if (ir_type_word(strtab_str(&p->m->strings, name)))
        return FAIL_AT(p, &t, IR_NAME, strtab_str(&p->m->strings, name), "struct");
    TRY(parse_take(p, '{'));
    TRY(parse_skip_lines(p));
    p->fields.n = 0;
    while (!parse_at_punct(p, '}')) {
        const struct token field = *parse_cur(p);
        struct field f = {0};
        TRY(parse_name(p, "the name of a field or '}'", &f.name));
        TRY(parse_define(p, KIND_FIELD, p->m->types.n, f.name, 1, &field));
        TRY(parse_take(p, ':'));
        TRY(parse_type(p, &f.type));
        VEC_PUSH(p->mem, &p->fields, f);
        TRY(parse_skip_lines(p));
        if (parse_at_punct(p, ',')) {
            TRY(parse_next(p));
            TRY(parse_skip_lines(p));
        } else if (!parse_at_punct(p, '}')) {
            return parse_expected(p, "',' or '}'");
        }
    }
    TRY(parse_next(p));
    const ir_type type = ir_type_struct(p->m, name, p->fields.n, p->fields.at);
    if (type == TYPE_VOID)
        return FAIL_AT(p, &t, IR_TYPE_LIMIT);
    return parse_define(p, KIND_STRUCT, 0, name, type, &t);
}

static sk_status take_attribute(struct parser *p, struct param *x)
{
    if (!parse_at_punct(p, '['))
        return SK_OK;
    TRY(parse_next(p));
    for (unsigned k = 1; k < ATTR_COUNT; k++)
        if (parse_at_word(p, attr_info[k].metal))
            x->attribute = (uint8_t)k;
    if (x->attribute == ATTR_NONE)
        return FAIL_AT(p, parse_cur(p), IR_ATTRIBUTE_UNKNOWN, FOUND(p, parse_cur(p)));
    x->kind = PARAM_ATTRIBUTE;
    TRY(parse_next(p));
    return parse_take(p, ']');
}

static sk_status take_param(struct parser *p, uint32_t func)
{
    const struct token t = *parse_cur(p);
    struct param x = {0};
    enum space space = SPACE_DEVICE;
    TRY(parse_name(p, "the name of a parameter", &x.name));
    TRY(parse_take(p, ':'));
    if (find_space(p, parse_cur(p), &space)) {
        TRY(parse_next(p));
        x.type = TYPE_POINTER(space);
        if (parse_at_word(p, "atomic")) {
            x.atomic = true;
            TRY(parse_next(p));
        }
        TRY(parse_type(p, &x.elem));
    } else {
        TRY(parse_type(p, &x.type));
    }
    if (p->m->funcs.at[func].kernel && ir_type_is_pointer(x.type)) {
        space = ir_type_space(x.type);
        if (space == SPACE_DEVICE || space == SPACE_CONSTANT)
            x.kind = PARAM_BUFFER;
        else if (space == SPACE_THREADGROUP)
            x.kind = PARAM_THREADGROUP;
    }
    TRY(take_attribute(p, &x));
    TRY(parse_place(p, &t, &x.place));
    const uint32_t id = ir_param(p->m, func, &x);
    return parse_define(p, KIND_PARAM, func, x.name, id, &t);
}

/* Passes a body, counting the cases in each brace. */
static sk_status skip_body(struct parser *p, uint32_t func)
{
    uint32_t open[2 * IR_MAX_DEPTH + 2] = {0}; /* numbers of braces; a switch has two a level */
    unsigned n = 0;
    bool begins = false; /* a statement */
    VEC_PUSH(p->mem, &p->bodies, ((struct body){func, p->n_cases.n, p->lex}));
    do {
        if (parse_at_punct(p, '{')) {
            if (n == sizeof open / sizeof *open)
                return FAIL_AT(p, parse_cur(p), IR_DEPTH, FOUND(p, parse_cur(p)), IR_MAX_DEPTH);
            open[n++] = p->n_cases.n;
            VEC_PUSH(p->mem, &p->n_cases, 0);
            begins = true;
        } else if (parse_at_punct(p, '}')) {
            n--;
            begins = true;
        } else {
            if (begins && (parse_at_word(p, "case") || parse_at_word(p, "default")))
                p->n_cases.at[open[n - 1]]++;
            begins = parse_cur(p)->kind == TOK_LINE;
        }
        if (parse_cur(p)->kind == TOK_END)
            return parse_expected(p, "'}'");
        TRY(parse_next(p));
    } while (n > 0);
    return SK_OK;
}

static sk_status func_line(struct parser *p, bool kernel)
{
    const struct token t = *parse_cur(p);
    uint32_t name = 0, place = 0;
    TRY(parse_name(p, kernel ? "the name of a kernel" : "the name of a function", &name));
    const uint32_t func = ir_func(p->m, name, kernel, TYPE_VOID, 0);
    TRY(parse_define(p, KIND_FUNC, 0, name, func, &t));
    TRY(parse_take(p, '('));
    while (!parse_at_punct(p, ')')) {
        TRY(take_param(p, func));
        if (parse_at_punct(p, ','))
            TRY(parse_next(p));
        else if (!parse_at_punct(p, ')'))
            return parse_expected(p, "',' or ')'");
    }
    TRY(parse_next(p));
    ir_type result = TYPE_VOID;
    if (!kernel && parse_cur(p)->kind == TOK_ARROW) {
        TRY(parse_next(p));
        TRY(parse_type(p, &result));
    }
    unsigned flags = 0;
    uint64_t max_threads = 0;
    TRY(parse_flag(p, "fast", 1, &flags));
    TRY(parse_flag(p, "no_contract", 2, &flags));
    if (kernel && parse_at_word(p, "max_threads")) {
        TRY(parse_next(p));
        TRY(parse_integer(p, "a number of threads", 1, IR_MAX_THREADS, &max_threads));
    }
    TRY(parse_place(p, &t, &place));
    struct func *const f = &p->m->funcs.at[func];
    f->place = place;
    f->result = result;
    f->fast = flags & 1;
    f->no_contract = flags & 2;
    f->max_threads = (uint32_t)max_threads;
    return parse_at_punct(p, '{') ? skip_body(p, func) : parse_expected(p, "'{'");
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static sk_status take_heads(struct parser *p)
{
    for (;;) {
        TRY(parse_skip_lines(p));
        if (parse_cur(p)->kind == TOK_END)
            return SK_OK;
        const bool place = parse_at_word(p, "place"), is_struct = parse_at_word(p, "struct"),
                   kernel = parse_at_word(p, "kernel");
        if (!(place && p->bodies.n == 0) && !is_struct && !kernel && !parse_at_word(p, "func"))
            return parse_expected(p, p->bodies.n ? "struct, func or kernel" : "place, struct, func or kernel");
        TRY(parse_next(p));
        if (place)
            TRY(place_line(p));
        else if (is_struct)
            TRY(struct_line(p));
        else
            TRY(func_line(p, kernel));
        if (parse_cur(p)->kind != TOK_LINE && parse_cur(p)->kind != TOK_END)
            return parse_expected(p, "the end of the line");
    }
}

static sk_status parse(struct parser *p, const char *text, size_t n, const char *name)
{
    p->m = ir_module_new(p->mem);
    p->file = ir_string(p->m, name);
    TRY(lex_init(&p->lex, text, n, name, p->err));
    TRY(take_heads(p));
    for (uint32_t k = 0; k < p->bodies.n; k++) {
        const struct body *const body = &p->bodies.at[k];
        p->lex = body->at;
        p->brace = body->brace;
        p->b = (struct ir_builder){.m = p->m, .func = body->func, .region = p->m->funcs.at[body->func].region};
        TRY(parse_body(p));
    }
    return ir_verify(p->m, p->err);
}

static sk_status guarded(struct parser *p, const char *text, size_t n, const char *name)
{
    volatile sk_status status = SK_OK;
    MEM_GUARD(p->mem, p->err, status, parse(p, text, n, name));
    return status;
}

sk_status ir_parse(struct mem *m, const char *text, size_t n, const char *name, struct ir_module **out, sk_error *err)
{
    struct parser p = {.mem = m, .err = err};
    buf_init(&p.text, m);
    const sk_status status = guarded(&p, text, n, name ? name : "");
    mem_free(m, p.slots, p.n_slots * sizeof *p.slots);
    VEC_FREE(m, &p.bodies);
    VEC_FREE(m, &p.n_cases);
    VEC_FREE(m, &p.operands);
    VEC_FREE(m, &p.defs);
    VEC_FREE(m, &p.fields);
    buf_free(&p.text);
    if (status == SK_OK)
        *out = p.m;
    else
        ir_module_free(p.m);
    return status;
}
