/* names.c - names of printed things.
 *
 * A name is kept if the language allows it and nothing else in sight has it; else a number is appended. No variable hides
 * another. What must not be taken, from the strongest:
 *   RESERVED  words of the language, types and macros: never;
 *   LIBRARY   functions of its library: not by functions and structs; by a kernel, which nothing calls, and by a variable
 *             where its function does not call that;
 *   GLOBAL    printed functions and structs; KERNEL: kernels; helper functions have unnumbered names in spork_;
 *   LOCAL     variables of the current function that are in scope; SPENT: that were.
 */
#include "clike/internal.h"

#include <stdio.h>

/* Of C++14, which all dialects are made from. */
static const char *const words[] = {
    "alignas",       "alignof",      "and",       "and_eq",       "asm",      "auto",
    "bitand",        "bitor",        "bool",      "break",        "case",     "catch",
    "char",          "char16_t",     "char32_t",  "char8_t",      "class",    "co_await",
    "co_return",     "co_yield",     "compl",     "concept",      "const",    "const_cast",
    "consteval",     "constexpr",    "constinit", "continue",     "decltype", "default",
    "delete",        "do",           "double",    "dynamic_cast", "else",     "enum",
    "explicit",      "export",       "extern",    "false",        "final",    "float",
    "for",           "friend",       "goto",      "if",           "inline",   "int",
    "long",          "main",         "mutable",   "namespace",    "new",      "noexcept",
    "not",           "not_eq",       "nullptr",   "operator",     "or",       "or_eq",
    "override",      "private",      "protected", "public",       "register", "reinterpret_cast",
    "requires",      "return",       "short",     "signed",       "sizeof",   "static",
    "static_assert", "static_cast",  "std",       "struct",       "switch",   "template",
    "this",          "thread_local", "throw",     "true",         "try",      "typedef",
    "typeid",        "typename",     "typeof",    "union",        "unsigned", "using",
    "virtual",       "void",         "volatile",  "wchar_t",      "while",    "xor",
    "xor_eq",        "NULL",         "INFINITY",  "NAN",          NULL,
};

static uint32_t intern(struct clike *p, const char *s)
{
    struct name_table *const t = &p->names;
    const uint32_t id = strtab_id(&t->text, s, strlen(s));
    while (t->taken.n <= id) {
        VEC_PUSH(p->mem, &t->taken, NAME_FREE);
        VEC_PUSH(p->mem, &t->suffix, 0);
    }
    return id;
}

static void reserve(struct clike *p, const char *s, uint8_t level)
{
    const uint32_t id = intern(p, s);
    if (p->names.taken.at[id] == NAME_FREE)
        p->names.taken.at[id] = level;
}

static void reserve_all(struct clike *p, const char *const *list, uint8_t level)
{
    for (; *list; list++)
        reserve(p, *list, level);
}

void names_init(struct clike *p)
{
    strtab_init(&p->names.text, p->mem);
    reserve_all(p, words, NAME_RESERVED);
    reserve_all(p, p->d->words, NAME_RESERVED);
    reserve_all(p, p->d->library, NAME_LIBRARY);
}

const char *names_text(const struct clike *p, uint32_t name)
{
    return strtab_str(&p->names.text, name);
}

#define NAME_MAX 200

/* ASCII letters, digits and single leading underscores; names of the implementation get a letter in front. */
static void sanitise(char out[NAME_MAX + 1], const char *s)
{
    size_t n = 0;
    if ((*s >= '0' && *s <= '9') || (*s == '_' && (s[1] == '_' || (s[1] >= 'A' && s[1] <= 'Z'))))
        out[n++] = 'v';
    for (; *s && n < NAME_MAX; s++) {
        const bool word = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || *s == '_';
        if (word)
            out[n++] = *s;
        else if (((unsigned char)*s & 0xc0) != 0x80) /* one for a character of several bytes */
            out[n++] = '_';
    }
    out[n] = 0;
}

static bool is_free(const struct clike *p, uint32_t id, unsigned level)
{
    const unsigned taken = p->names.taken.at[id];
    return taken == NAME_FREE || (taken == NAME_SPENT && !p->names.closed) ||
           (taken == NAME_LIBRARY && level >= NAME_KERNEL);
}

/* Takes a name until the function is left. */
static void hold(struct clike *p, uint32_t id, uint8_t level)
{
    VEC_PUSH(p->mem, &p->names.local, ((struct held_name){id, p->names.taken.at[id]}));
    p->names.taken.at[id] = level;
}

uint32_t names_unique(struct clike *p, const char *want, unsigned level)
{
    char base[NAME_MAX + 1], text[NAME_MAX + 16];
    sanitise(base, want);
    const uint32_t first = intern(p, base);
    uint32_t id = first;
    bool helper = strncmp(base, "spork_", 6) == 0; /* the names of helper functions, which are not numbered */
    for (; helper || !is_free(p, id, level); helper = false) {
        (void)snprintf(text, sizeof text, "%s_%u", base, ++p->names.suffix.at[first]);
        id = intern(p, text);
    }
    if (level == NAME_LOCAL && first != id)
        hold(p, first, p->names.taken.at[first]);
    if (level == NAME_LOCAL)
        hold(p, id, NAME_LOCAL);
    p->names.taken.at[id] = (uint8_t)level;
    return id;
}

static bool is_kept(struct clike *p, const char *want)
{
    char base[NAME_MAX + 1];
    sanitise(base, want);
    return strcmp(base, want) == 0 && is_free(p, intern(p, base), NAME_LOCAL);
}

/* v0, v1 …: values that the author gave no name. */
static uint32_t generated(struct clike *p)
{
    char text[16];
    uint32_t id;
    do {
        (void)snprintf(text, sizeof text, "v%u", p->counter++);
        id = intern(p, text);
    } while (!is_free(p, id, NAME_LOCAL));
    return names_unique(p, text, NAME_LOCAL);
}

/* The end of a scope: its names may be used again, but by nothing that is named while printing. */
static void spend(struct clike *p, uint32_t held)
{
    struct name_table *const t = &p->names;
    for (uint32_t k = held; k < t->local.n; k++) {
        const struct held_name *const h = &t->local.at[k];
        if (t->taken.at[h->id] == NAME_LOCAL && h->before != NAME_LOCAL)
            t->taken.at[h->id] = NAME_SPENT;
        t->suffix.at[h->id] = 0;
    }
}

void names_release(struct clike *p, uint32_t held)
{
    struct name_table *const t = &p->names;
    if (held == 0)
        t->closed = false;
    while (t->local.n > held) {
        const struct held_name *const h = &t->local.at[--t->local.n];
        t->taken.at[h->id] = h->before;
        t->suffix.at[h->id] = 0;
    }
}

/* ---- the module ------------------------------------------------------------------------------------------------ */

/* Kernels come first: their names are the interface. All functions of a module are named, printed or not, so that a
 * kernel has one name however much of the module is printed. */
void clike_name_module(struct clike *p)
{
    const struct ir_module *const m = p->m;
    for (unsigned kernels = 2; kernels-- > 0;)
        for (uint32_t f = 1; f < m->funcs.n; f++)
            if (m->funcs.at[f].kernel == kernels)
                p->func_name[f] =
                    names_unique(p, strtab_str(&m->strings, m->funcs.at[f].name), kernels ? NAME_KERNEL : NAME_GLOBAL);
    for (uint32_t t = TYPE_FIXED_COUNT; t < m->types.n; t++)
        if (m->types.at[t].kind == TYPE_KIND_STRUCT)
            p->type_names[t] = names_unique(p, strtab_str(&m->strings, m->types.at[t].name), NAME_GLOBAL);
    for (uint32_t t = TYPE_FIXED_COUNT; t < m->types.n; t++) {
        const struct type *const x = &m->types.at[t];
        for (uint32_t k = 0; k < x->n_fields; k++)
            p->field_names[x->first_field + k] =
                names_unique(p, strtab_str(&m->strings, m->fields.at[x->first_field + k].name), NAME_LOCAL);
        names_release(p, 0); /* fields of different structs may agree */
    }
}

/* ---- a function ------------------------------------------------------------------------------------------------ */

static void reserve_called(struct clike *p, const char *function)
{
    const uint32_t id = intern(p, function);
    if (is_free(p, id, NAME_LOCAL))
        hold(p, id, NAME_LOCAL);
}

/* What the function calls without a prefix, no variable of it may be called. */
static void reserve_all_called(struct clike *p)
{
    for (uint32_t k = 0; k < p->order.n; k++) {
        const enum op op = (enum op)ir_at(p->m, p->order.at[k])->op;
        const char *const s = op_info[op].msl;
        if (*s >= 'a' && *s <= 'z')
            reserve_called(p, s);
        if (op == OP_SELECT)
            reserve_called(p, "select");
        if (op == OP_CLAMP) {
            reserve_called(p, "min");
            reserve_called(p, "max");
            reserve_called(p, "fmin");
            reserve_called(p, "fmax");
        }
    }
}

static void name_value(struct clike *p, uint32_t id)
{
    const struct node *const x = ir_at(p->m, id);
    if (p->v[id].mode != MODE_NAMED || p->v[id].alias)
        return;
    p->v[id].name = x->name ? names_unique(p, strtab_str(&p->m->strings, x->name), NAME_LOCAL) : generated(p);
}

/* A variable of a for statement's head. If the author gave it no name: count where it counts down to zero, else i, j or k
 * by the depth of loops. */
static void name_counter(struct clike *p, uint32_t arg, uint32_t loop, unsigned depth)
{
    static const char *const counters[] = {"i", "j", "k"};
    const uint32_t cond = ir_in(p->m, clike_loop_test(p, loop))[0];
    if (ir_at(p->m, arg)->name || p->v[loop].induct != arg)
        name_value(p, arg);
    else if (ir_at(p->m, cond)->op == OP_NE)
        p->v[arg].name = names_unique(p, "count", NAME_LOCAL);
    else
        p->v[arg].name = names_unique(p, counters[depth < 2 ? depth : 2], NAME_LOCAL);
}

/* Names last as long as the scope in C. What is declared before a construct, its results and the parameters of a loop,
 * is named first, so that nothing inside hides it. A block is no scope: its text may stand without braces. */
static void name_region(struct clike *p, uint32_t region, unsigned depth)
{
    const struct ir_module *const m = p->m;
    IR_EACH(m, region, id)
    {
        const struct node *const x = ir_at(m, id);
        if (!ir_is_construct(x->op)) {
            if (x->op != OP_RESULT && x->op != OP_ARG)
                name_value(p, id);
            continue;
        }
        for (uint32_t r = x->next; r && ir_at(m, r)->op == OP_RESULT; r = ir_at(m, r)->next)
            name_value(p, r);
        const bool loop = x->op == OP_LOOP;
        const uint32_t first = loop ? ir_region_at(m, ir_region(m, id, 0))->first : 0;
        uint32_t arg = first;
        for (unsigned k = 0; loop && k < x->n; k++, arg = ir_at(m, arg)->next)
            if (!p->v[arg].in_head)
                name_value(p, arg);
        for (unsigned k = 0; k < ir_n_regions(m, id); k++) {
            const uint32_t held = p->names.local.n;
            arg = first;
            for (unsigned i = 0; loop && i < x->n; i++, arg = ir_at(m, arg)->next)
                if (p->v[arg].in_head)
                    name_counter(p, arg, id, depth);
            name_region(p, ir_region(m, id, k), depth + loop);
            if (x->op != OP_BLOCK)
                spend(p, held);
        }
    }
}

void clike_name_function(struct clike *p)
{
    const struct ir_module *const m = p->m;
    const struct func *const f = &m->funcs.at[p->func];
    p->counter = 0;
    reserve_all_called(p);
    /* First those that keep their names, so that none loses it to another's number. */
    for (unsigned renamed = 0; renamed < 2; renamed++)
        for (uint32_t k = 0; k < f->n_params; k++) {
            const struct param *const q = &m->params.at[f->first_param + k];
            const char *const name = strtab_str(&m->strings, q->name);
            if (renamed ? p->v[q->node].name == 0 : is_kept(p, name))
                p->v[q->node].name = names_unique(p, name, NAME_LOCAL);
        }
    name_region(p, f->region, 0);
    p->names.closed = true;
}

const char *clike_name(const struct clike *p, uint32_t id)
{
    return names_text(p, p->v[clike_variable(p, id)].name);
}
