/* print.c - the text form of a module: docs/ir.md.
 *
 * The output depends on nothing but the module. Two walks over each function, neither recursive: one numbers the values in
 * the order of their definitions, one prints. Text goes through a small block of the printer's own, since most pieces
 * have a few bytes. Working arrays hang on an arena that is freed before an out-of-memory jump goes on.
 */
#include "ir/text.h"

#include <math.h>

struct printer {
    const struct ir_module *m;
    struct buf *out;
    struct arena scratch;
    const struct func *f;
    uint32_t *number;               /* of each node, from 1; 0: none */
    uint32_t *place_no;             /* printed number of each place; null: places are not printed */
    uint8_t *need_func, *need_type; /* null: all */
    ir_type last_type;              /* 0: none */
    uint32_t last_n, n;
    char last_text[32];
    char at[1024]; /* n bytes, written, but not yet in `out` */
};

/* ---- writing --------------------------------------------------------------------------------------------------- */

static void flush(struct printer *p)
{
    buf_bytes(p->out, p->at, p->n);
    p->n = 0;
}

static inline void put_bytes(struct printer *p, const char *s, size_t n)
{
    if (SK_UNLIKELY(n > sizeof p->at - p->n)) {
        flush(p);
        if (n > sizeof p->at) {
            buf_bytes(p->out, s, n);
            return;
        }
    }
    memcpy(p->at + p->n, s, n);
    p->n += (uint32_t)n;
}

static inline void put(struct printer *p, const char *s)
{
    put_bytes(p, s, strlen(s));
}

static inline void put_char(struct printer *p, char c)
{
    if (SK_UNLIKELY(p->n == sizeof p->at))
        flush(p);
    p->at[p->n++] = c;
}

static void put_number(struct printer *p, uint64_t x)
{
    char digits[20];
    unsigned n = sizeof digits;
    do
        digits[--n] = (char)('0' + x % 10);
    while ((x /= 10));
    put_bytes(p, digits + n, sizeof digits - n);
}

static void put_signed(struct printer *p, int64_t x)
{
    if (x < 0)
        put_char(p, '-');
    put_number(p, x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
}

static void put_hex(struct printer *p, uint64_t x, unsigned digits)
{
    while (digits-- > 0)
        put_char(p, "0123456789abcdef"[x >> 4 * digits & 15]);
}

static void put_string(struct printer *p, uint32_t id)
{
    put(p, id < p->m->strings.str.n ? strtab_str(&p->m->strings, id) : "");
}

static void put_quoted(struct printer *p, uint32_t id)
{
    const char *s = id < p->m->strings.str.n ? strtab_str(&p->m->strings, id) : "";
    put_char(p, '"');
    for (size_t n = strlen(s); n > 0;) {
        const unsigned length = utf8_length(s, n);
        const char c = *s;
        if (c == '"' || c == '\\' || c == '\n' || c == '\t') {
            put_char(p, '\\');
            put_char(p, c == '\n' ? 'n' : c == '\t' ? 't' : c);
        } else if (length == 0 || (c >= 0 && c < ' ') || c == 0x7f) {
            put(p, "\\x");
            put_hex(p, (unsigned char)c, 2);
        } else {
            put_bytes(p, s, length);
        }
        s += length ? length : 1;
        n -= length ? length : 1;
    }
    put_char(p, '"');
}

/* The type printed last is kept as text: most lines name the same few. */
static void put_type(struct printer *p, ir_type t)
{
    if (t < S_COUNT) {
        put(p, scalar_info[t].name);
        return;
    }
    if (t == p->last_type) {
        put_bytes(p, p->last_text, p->last_n);
        return;
    }
    if (t >= p->m->types.n) { /* verify refuses it */
        put_char(p, '?');
        return;
    }
    flush(p);
    const size_t from = p->out->n;
    ir_type_print(p->m, p->out, t);
    if (p->out->n - from <= sizeof p->last_text) {
        p->last_type = t;
        p->last_n = (uint32_t)(p->out->n - from);
        memcpy(p->last_text, p->out->at + from, p->last_n);
    }
}

static void put_place(struct printer *p, uint32_t place)
{
    if (!p->place_no || !place || place >= p->m->places.n)
        return;
    put(p, " !");
    put_number(p, p->place_no[place]);
}

static void put_indent(struct printer *p, unsigned depth)
{
    while (depth-- > 0)
        put_bytes(p, "  ", 2);
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static void put_value(struct printer *p, uint32_t id)
{
    const struct node *const x = ir_at(p->m, id);
    put_char(p, '%');
    if (x->op == OP_PARAM) {
        const bool ours = p->f && x->imm < p->f->n_params && p->m->params.at[p->f->first_param + x->imm].node == id;
        if (ours)
            put_string(p, p->m->params.at[p->f->first_param + x->imm].name);
        else
            put_char(p, '?');
        return;
    }
    if (x->name) {
        put_string(p, x->name);
        put_char(p, '.');
    }
    if (p->number[id])
        put_number(p, p->number[id] - 1);
    else
        put_char(p, '?');
}

static void put_float(struct printer *p, enum scalar s, uint64_t bits)
{
    const unsigned digits = s == S_F32 ? 8 : 4;
    const uint64_t quiet = s == S_F32 ? 0x7fc00000 : s == S_F16 ? 0x7e00 : 0x7fc0;
    const uint64_t inf = s == S_F32 ? 0x7f800000 : s == S_F16 ? 0x7c00 : 0x7f80;
    const uint64_t sign = (uint64_t)1 << (4 * digits - 1);
    if ((bits & (sign - 1)) > inf && bits != quiet) {
        put(p, "0x");
        put_hex(p, bits, digits);
        return;
    }
    float x = 0;
    if (s == S_F32)
        x = f32_bits((uint32_t)bits);
    else
        x = s == S_F16 ? f16_to_f32((uint16_t)bits) : bf16_to_f32((uint16_t)bits);
    char text[48];
    text_f32(text, sizeof text, x);
    put(p, text);
}

static void put_const(struct printer *p, const struct node *x)
{
    if (x->type == TYPE_BOOL) {
        put(p, x->imm ? "true" : "false");
        return;
    }
    if (x->type == TYPE_VOID || x->type >= S_COUNT) { /* verify refuses it */
        put_char(p, '?');
        return;
    }
    const struct scalar_info *const s = &scalar_info[x->type];
    if (s->class_ == CLASS_F)
        put_float(p, (enum scalar)x->type, x->imm);
    else if (s->class_ == CLASS_S)
        put_signed(p, (int64_t)(x->imm << (64 - s->bits)) >> (64 - s->bits));
    else
        put_number(p, x->imm);
    put_char(p, ':');
    put(p, s->name);
}

static void put_operand(struct printer *p, uint32_t id)
{
    if (id == 0 || id >= p->m->nodes.n) {
        put(p, "%?");
        return;
    }
    const struct node *const x = ir_at(p->m, id);
    if (x->op == OP_CONST) {
        put_const(p, x);
    } else if (x->op == OP_ZERO) {
        put(p, "zero:");
        put_type(p, x->type);
    } else {
        put_value(p, id);
    }
}

static void put_operands(struct printer *p, const struct node *x, const uint32_t *in, const char *before)
{
    for (unsigned k = 0; k < x->n; k++) {
        put(p, k ? ", " : before);
        put_operand(p, in[k]);
    }
}

/* ---- lines ----------------------------------------------------------------------------------------------------- */

/* A row of math.def has at most `fast`; the rest of the table is short. */
unsigned ir_extras(enum op op)
{
    if (op_info[op].math)
        return math_info[op].fast ? EXTRA_FAST : 0;
    if (op == OP_FENCE)
        return EXTRA_MEMORY | EXTRA_ORDER;
    if (op == OP_ATOMIC_CAS)
        return EXTRA_WEAK | EXTRA_ORDER;
    if (op_info[op].effect == EFFECT_ATOMIC)
        return EXTRA_ORDER;
    if (op == OP_ADD || op == OP_SUB || op == OP_MUL)
        return EXTRA_NO_CONTRACT;
    if (op == OP_INDEX || op == OP_ALLOC)
        return EXTRA_OF;
    if (op == OP_FIELD)
        return EXTRA_OF | EXTRA_PART;
    if (op == OP_EXTRACT || op == OP_INSERT)
        return EXTRA_PART;
    if (op == OP_SHUFFLE)
        return EXTRA_PICK;
    if (op == OP_BARRIER || op == OP_SIMDGROUP_BARRIER)
        return EXTRA_MEMORY;
    if (op == OP_PRINT || op == OP_ASSERT)
        return EXTRA_TEXT;
    return 0;
}

static void put_memory(struct printer *p, unsigned memory)
{
    const char *before = " memory(";
    for (unsigned k = 0; k < 4; k++) {
        if (!(memory >> k & 1))
            continue;
        put(p, before);
        put(p, memory_name[k]);
        before = ", ";
    }
    put(p, memory ? ")" : " memory(none)");
}

static void put_extras(struct printer *p, const struct node *x)
{
    const unsigned extras = ir_extras((enum op)x->op);
    if (extras == 0)
        return;
    if (extras & EXTRA_OF) {
        put(p, " of ");
        put_type(p, (ir_type)x->imm);
    }
    if (extras & EXTRA_PART) {
        put(p, " [");
        put_number(p, extras & EXTRA_OF ? x->imm >> 32 : x->imm);
        put_char(p, ']');
    }
    if (extras & EXTRA_PICK) {
        for (unsigned k = 0; k < ir_type_width(x->type); k++) {
            put(p, k ? ", " : " [");
            put_number(p, x->imm >> 4 * k & 15);
        }
        put_char(p, ']');
    }
    if ((extras & EXTRA_FAST) && (x->flags & NODE_FAST))
        put(p, " fast");
    if ((extras & EXTRA_NO_CONTRACT) && (x->flags & NODE_NO_CONTRACT))
        put(p, " no_contract");
    if ((extras & EXTRA_WEAK) && (x->flags & NODE_WEAK))
        put(p, " weak");
    if (extras & EXTRA_MEMORY)
        put_memory(p, node_memory(x->flags));
    if (extras & EXTRA_ORDER) {
        put(p, " order(");
        put(p, node_order(x->flags) < ORDER_COUNT ? order_name[node_order(x->flags)] : "?");
        put(p, ") scope(");
        put(p, scope_name[node_scope(x->flags)]);
        put_char(p, ')');
    }
    if (extras & EXTRA_TEXT) {
        put_char(p, ' ');
        put_quoted(p, (uint32_t)x->imm);
    }
}

static bool is_result_of(const struct ir_module *m, uint32_t id, uint32_t construct)
{
    return id && id < m->nodes.n && ir_at(m, id)->op == OP_RESULT && ir_at(m, id)->in[0] == construct;
}

/* The constructs between a br and its label. */
static void put_label(struct printer *p, const struct node *x)
{
    unsigned n = 0;
    uint32_t region = x->region;
    while (region && region < p->m->regions.n && ir_region_at(p->m, region)->owner != x->imm && n <= p->m->regions.n) {
        region = ir_parent_region(p->m, region);
        n++;
    }
    if (region)
        put_number(p, n);
    else
        put_char(p, '?');
}

/* The line of a node, without the line end, and of a construct up to its first brace. */
static void put_node(struct printer *p, uint32_t id)
{
    const struct ir_module *const m = p->m;
    const struct node *const x = ir_at(m, id);
    const uint32_t *const in = ir_in(m, id);
    if (x->op == OP_RESULT || x->op == OP_ARG) { /* for messages only */
        put_value(p, id);
        put(p, ": ");
        put_type(p, x->type);
        return;
    }
    if (x->type) {
        put_value(p, id);
        put(p, " = ");
    } else if (ir_is_construct(x->op)) {
        uint32_t k = x->next;
        for (uint32_t steps = 0; is_result_of(m, k, id) && steps < m->nodes.n; steps++) {
            put_value(p, k);
            put(p, ": ");
            put_type(p, ir_at(m, k)->type);
            k = ir_at(m, k)->next;
            put(p, is_result_of(m, k, id) ? ", " : " = ");
        }
    }
    put(p, op_info[x->op].name);
    if (x->type) {
        put_char(p, ' ');
        put_type(p, x->type);
    }
    if (x->op == OP_CALL) {
        put(p, " @");
        put_string(p, x->imm < m->funcs.n ? m->funcs.at[x->imm].name : 0);
        put_char(p, '(');
        put_operands(p, x, in, "");
        put_char(p, ')');
    } else if (x->op == OP_LOOP) {
        uint32_t arg = x->n ? ir_region_at(m, (uint32_t)x->imm)->first : 0;
        for (unsigned k = 0; k < x->n; k++) {
            put(p, k ? ", " : " (");
            if (arg && arg < m->nodes.n && ir_at(m, arg)->op == OP_ARG) {
                put_value(p, arg);
                put(p, ": ");
                put_type(p, ir_at(m, arg)->type);
                arg = ir_at(m, arg)->next;
            } else {
                put(p, "%?: ?");
            }
            put(p, " = ");
            put_operand(p, in[k]);
        }
        if (x->n)
            put_char(p, ')');
    } else if (x->op == OP_BR) {
        put_char(p, ' ');
        put_label(p, x);
        put_operands(p, x, in, " ");
    } else {
        put_operands(p, x, in, " ");
    }
    put_extras(p, x);
    put_place(p, x->place);
}

/* ---- functions ------------------------------------------------------------------------------------------------- */

/* Where a walk is. The next node after all that `id` holds; leaves regions at their ends. Bounded by the caller. */
static uint32_t next_in_text(const struct ir_module *m, uint32_t id)
{
    const struct node *x = ir_at(m, id);
    if (ir_is_construct(x->op)) {
        const uint32_t first = (uint32_t)x->imm;
        for (uint32_t k = 0; k < ir_n_regions(m, id) && first + k < m->regions.n; k++)
            if (ir_region_at(m, first + k)->first)
                return ir_region_at(m, first + k)->first;
    }
    for (;;) {
        if (x->next)
            return x->next;
        if (!x->region || x->region >= m->regions.n)
            return 0;
        const uint32_t owner = ir_region_at(m, x->region)->owner;
        if (!owner || owner >= m->nodes.n)
            return 0;
        const struct node *const outer = ir_at(m, owner);
        if (!ir_is_construct(outer->op))
            return 0;
        const uint32_t end = (uint32_t)outer->imm + ir_n_regions(m, owner);
        for (uint32_t region = x->region + 1; region < end && region < m->regions.n; region++)
            if (ir_region_at(m, region)->first)
                return ir_region_at(m, region)->first;
        x = outer;
    }
}

static void number_values(struct printer *p)
{
    const struct ir_module *const m = p->m;
    uint32_t count = 0, steps = 0;
    uint32_t id = p->f->region < m->regions.n ? ir_region_at(m, p->f->region)->first : 0;
    for (; id && id < m->nodes.n && steps < m->nodes.n; id = next_in_text(m, id), steps++) {
        const struct node *const x = ir_at(m, id);
        if (ir_is_construct(x->op)) {
            for (uint32_t k = x->next; is_result_of(m, k, id) && !p->number[k]; k = ir_at(m, k)->next)
                p->number[k] = ++count;
        } else if (x->type && x->op != OP_RESULT) {
            p->number[id] = ++count;
        }
    }
}

static void put_param(struct printer *p, const struct param *x)
{
    put_string(p, x->name);
    put(p, ": ");
    if (ir_type_is_pointer(x->type) && x->elem) {
        put(p, space_name[ir_type_space(x->type)]);
        put(p, x->atomic ? " atomic " : " ");
        put_type(p, x->elem);
    } else {
        put_type(p, x->type);
    }
    if (x->kind == PARAM_ATTRIBUTE && x->attribute < ATTR_COUNT) {
        put(p, " [");
        put(p, attr_info[x->attribute].metal);
        put_char(p, ']');
    }
    put_place(p, x->place);
}

/* A yield without values says no more than the end of its region. */
static bool is_silent(const struct node *x)
{
    return x->op == OP_YIELD && x->n == 0;
}

static bool is_empty(const struct ir_module *m, uint32_t region)
{
    const uint32_t first = ir_region_at(m, region)->first;
    return !first || is_silent(ir_at(m, first));
}

static void put_case(struct printer *p, uint32_t region)
{
    const struct region *const r = ir_region_at(p->m, region);
    const ir_type t = ir_at(p->m, ir_in(p->m, r->owner)[0])->type;
    if (r->is_default)
        put(p, "default");
    for (uint32_t k = 0; k < r->n_cases; k++) {
        put(p, k ? ", " : "case ");
        if (ir_type_class(p->m, t) == CLASS_U)
            put_number(p, (uint64_t)p->m->cases.at[r->first_case + k]);
        else
            put_signed(p, p->m->cases.at[r->first_case + k]);
    }
    put(p, " {\n");
}

/* Opens the first region of a construct whose line has been printed up to there; the region, 0 if there is none. */
static uint32_t open_construct(struct printer *p, uint32_t id, unsigned *depth)
{
    put(p, " {\n");
    if (ir_n_regions(p->m, id) == 0) {
        put_indent(p, *depth);
        put(p, "}\n");
        return 0;
    }
    const uint32_t region = ir_region(p->m, id, 0);
    if (ir_at(p->m, id)->op == OP_SWITCH) {
        put_indent(p, ++*depth);
        put_case(p, region);
    }
    ++*depth;
    return region;
}

/* Closes a region and opens the next one of its construct; 0: that was the last. */
static uint32_t next_region(struct printer *p, uint32_t region, unsigned *depth)
{
    const uint32_t owner = ir_region_at(p->m, region)->owner;
    const bool is_switch = ir_at(p->m, owner)->op == OP_SWITCH;
    const bool more = region + 1 < ir_region(p->m, owner, ir_n_regions(p->m, owner));
    put_indent(p, --*depth);
    if (more && is_switch) {
        put(p, "}\n");
        put_indent(p, *depth);
        put_case(p, region + 1);
    } else if (more && !is_empty(p->m, region + 1)) {
        put(p, "} else {\n");
    } else {
        put(p, "}\n");
        if (is_switch) {
            put_indent(p, --*depth);
            put(p, "}\n");
        }
        return 0;
    }
    ++*depth;
    return region + 1;
}

static void put_body(struct printer *p)
{
    const struct ir_module *const m = p->m;
    unsigned depth = 1;
    uint32_t region = p->f->region;
    uint32_t id = ir_region_at(m, region)->first;
    for (;;) {
        while (id) {
            const struct node *const x = ir_at(m, id);
            if (x->op == OP_ARG || x->op == OP_RESULT || is_silent(x)) {
                id = x->next;
                continue;
            }
            put_indent(p, depth);
            put_node(p, id);
            if (ir_is_construct(x->op)) {
                const uint32_t inner = open_construct(p, id, &depth);
                if (inner) {
                    region = inner;
                    id = ir_region_at(m, region)->first;
                    continue;
                }
            } else {
                put_char(p, '\n');
            }
            id = x->next;
        }
        const uint32_t owner = ir_region_at(m, region)->owner;
        if (!owner)
            return;
        const uint32_t next = next_region(p, region, &depth);
        region = next ? next : ir_at(m, owner)->region;
        id = next ? ir_region_at(m, next)->first : ir_at(m, owner)->next;
    }
}

static void put_func(struct printer *p, uint32_t func)
{
    const struct ir_module *const m = p->m;
    p->f = &m->funcs.at[func];
    number_values(p);
    put(p, p->f->kernel ? "kernel " : "func ");
    put_string(p, p->f->name);
    put_char(p, '(');
    for (uint32_t k = 0; k < p->f->n_params; k++) {
        put(p, k ? ", " : "");
        put_param(p, &m->params.at[p->f->first_param + k]);
    }
    put_char(p, ')');
    if (p->f->result) {
        put(p, " -> ");
        put_type(p, p->f->result);
    }
    put(p, p->f->fast ? " fast" : "");
    put(p, p->f->no_contract ? " no_contract" : "");
    if (p->f->max_threads) {
        put(p, " max_threads ");
        put_number(p, p->f->max_threads);
    }
    put_place(p, p->f->place);
    put(p, " {\n");
    put_body(p);
    put(p, "}\n");
}

/* ---- what a function needs ------------------------------------------------------------------------------------- */

static void need_place(struct printer *p, uint32_t place)
{
    for (; p->place_no && place && !p->place_no[place]; place = p->m->places.at[place].at)
        p->place_no[place] = 1;
}

static void need_type(struct printer *p, ir_type t)
{
    if (t >= TYPE_FIXED_COUNT)
        p->need_type[t] = 1;
}

static void need_func(struct printer *p, uint32_t func, uint32_t *stack)
{
    const struct ir_module *const m = p->m;
    uint32_t n = 0;
    stack[n++] = func;
    p->need_func[func] = 1;
    while (n > 0) {
        const struct func *const f = &m->funcs.at[stack[--n]];
        need_type(p, f->result);
        need_place(p, f->place);
        for (uint32_t k = f->first_param; k < f->first_param + f->n_params; k++) {
            need_type(p, m->params.at[k].type);
            need_type(p, m->params.at[k].elem);
            need_place(p, m->params.at[k].place);
        }
        for (uint32_t id = ir_region_at(m, f->region)->first; id; id = next_in_text(m, id)) {
            const struct node *const x = ir_at(m, id);
            need_place(p, x->place);
            need_type(p, x->type);
            if (ir_extras((enum op)x->op) & EXTRA_OF)
                need_type(p, (ir_type)x->imm);
            for (unsigned k = 0; k < x->n; k++)
                need_type(p, ir_at(m, ir_in(m, id)[k])->type);
            if (x->op == OP_CALL && !p->need_func[x->imm]) {
                p->need_func[x->imm] = 1;
                stack[n++] = (uint32_t)x->imm;
            }
        }
    }
    for (uint32_t t = m->types.n; t-- > TYPE_FIXED_COUNT;) { /* parts have smaller numbers than the whole */
        const struct type *const x = &m->types.at[t];
        if (!p->need_type[t])
            continue;
        need_type(p, x->elem);
        for (uint32_t k = 0; k < x->n_fields; k++)
            need_type(p, m->fields.at[x->first_field + k].type);
    }
}

/* ---- modules --------------------------------------------------------------------------------------------------- */

static bool put_places(struct printer *p)
{
    const struct ir_module *const m = p->m;
    uint32_t count = 0;
    for (uint32_t k = 1; p->place_no && k < m->places.n; k++) {
        const struct place *const x = &m->places.at[k];
        if (!p->place_no[k])
            continue;
        p->place_no[k] = ++count;
        put(p, "place ");
        put_number(p, count);
        put_char(p, ' ');
        put_quoted(p, x->file);
        put_char(p, ' ');
        put_number(p, x->line);
        put_char(p, ' ');
        put_number(p, x->column);
        if (x->at) {
            put(p, " at ");
            put_number(p, p->place_no[x->at]);
        }
        put_char(p, '\n');
    }
    if (p->place_no && count == 0)
        put(p, "place none\n");
    return p->place_no != NULL;
}

static bool put_structs(struct printer *p, bool blank)
{
    const struct ir_module *const m = p->m;
    for (uint32_t t = TYPE_FIXED_COUNT; t < m->types.n; t++) {
        const struct type *const x = &m->types.at[t];
        if (x->kind != TYPE_KIND_STRUCT || (p->need_type && !p->need_type[t]))
            continue;
        put(p, blank ? "\nstruct " : "struct ");
        blank = true;
        put_string(p, x->name);
        put(p, " {");
        for (uint32_t k = 0; k < x->n_fields; k++) {
            put(p, k ? ", " : " ");
            put_string(p, m->fields.at[x->first_field + k].name);
            put(p, ": ");
            put_type(p, m->fields.at[x->first_field + k].type);
        }
        put(p, x->n_fields ? " }\n" : "}\n");
    }
    return blank;
}

/* func 0: the whole module. */
static void put_module(struct printer *p, uint32_t func, unsigned flags)
{
    const struct ir_module *const m = p->m;
    p->number = ARENA_NEW(&p->scratch, uint32_t, m->nodes.n);
    if (flags & IR_PRINT_PLACES)
        p->place_no = ARENA_NEW(&p->scratch, uint32_t, m->places.n);
    if (func) {
        p->need_func = ARENA_NEW(&p->scratch, uint8_t, m->funcs.n);
        p->need_type = ARENA_NEW(&p->scratch, uint8_t, m->types.n);
        need_func(p, func, ARENA_NEW(&p->scratch, uint32_t, m->funcs.n));
    } else if (p->place_no) {
        memset(p->place_no, 1, m->places.n * sizeof *p->place_no);
    }
    bool blank = put_structs(p, put_places(p));
    for (uint32_t k = 1; k < m->funcs.n; k++) {
        if (p->need_func && !p->need_func[k])
            continue;
        put(p, blank ? "\n" : "");
        blank = true;
        put_func(p, k);
    }
    flush(p);
}

/* Bytes of a node's line in a message. */
#define SHOWN_MAX 160u

static void put_shown(struct printer *p, uint32_t func, uint32_t id)
{
    const size_t from = p->out->n;
    p->number = ARENA_NEW(&p->scratch, uint32_t, p->m->nodes.n);
    if (func && func < p->m->funcs.n) {
        p->f = &p->m->funcs.at[func];
        number_values(p);
    }
    put_node(p, id);
    flush(p);
    size_t n = 0;
    while (from + n < p->out->n && n < SHOWN_MAX) {
        const unsigned length = utf8_length(p->out->at + from + n, p->out->n - from - n);
        n += length ? length : 1;
    }
    if (from + n < p->out->n) {
        p->out->n = from + n;
        buf_str(p->out, "...");
    }
}

/* What is to be printed: a node of func; a function with what it needs; with both 0 the module. */
struct task {
    uint32_t func, node;
    unsigned flags;
};

/* With a recovery point of its own, to free what is only known here. */
static sk_status guarded(struct printer *p, const struct task *t)
{
    volatile sk_status status = SK_OK;
    MEM_GUARD(p->m->mem, NULL, status,
              (t->node ? put_shown(p, t->func, t->node) : put_module(p, t->func, t->flags), SK_OK));
    return status;
}

static void print(const struct ir_module *m, struct buf *out, const struct task *t)
{
    struct printer p;
    p.m = m;
    p.out = out;
    p.f = NULL;
    p.number = p.place_no = NULL;
    p.need_func = p.need_type = NULL;
    p.last_type = 0;
    p.n = 0;
    arena_init(&p.scratch, m->mem);
    const sk_status status = guarded(&p, t);
    arena_free(&p.scratch);
    if (status != SK_OK)
        mem_out_of_memory(m->mem);
}

void ir_print(const struct ir_module *m, struct buf *out, unsigned flags)
{
    print(m, out, &(struct task){.flags = flags});
}

void ir_print_func(const struct ir_module *m, uint32_t func, struct buf *out, unsigned flags)
{
    print(m, out, &(struct task){.func = func, .flags = flags});
}

void ir_print_node(const struct ir_module *m, uint32_t func, uint32_t id, struct buf *out)
{
    print(m, out, &(struct task){.func = func, .node = id});
}
