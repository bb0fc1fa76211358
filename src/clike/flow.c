/* flow.c - control flow.
 *
 * The text of a region is printed for a `fall`: where control goes on, in C, after the text's last line. An exit of the
 * IR wants to go to some place; nothing is printed if that is where control falls, else break, continue or return if
 * one of them gets there. What is left:
 *   - an exit from a block or if around which nothing can be left by `break`: the construct is boxed, printed again as
 *     do { … } while (false);
 *   - an exit over several statements: a flag is set, each statement is left by break, and the flag asked behind it.
 * Places are compared as `cont`: the end of a construct that is the last thing in its region is the end of that region.
 */
#include "clike/internal.h"

static const struct node *at(const struct clike *p, uint32_t id)
{
    return ir_at(p->m, id);
}

/* ---- places ---------------------------------------------------------------------------------------------------- */

static cont after(const struct clike *p, uint32_t construct);

static cont region_end(const struct clike *p, uint32_t region)
{
    const uint32_t owner = ir_region_at(p->m, region)->owner;
    return owner ? after(p, owner) : CONT_RETURN;
}

static cont exit_wants(const struct clike *p, uint32_t exit)
{
    const struct node *const x = at(p, exit);
    switch ((unsigned)x->op) {
    case OP_BR: return at(p, (uint32_t)x->imm)->op == OP_LOOP ? CONT_HEAD | x->imm : after(p, (uint32_t)x->imm);
    case OP_YIELD: return region_end(p, x->region);
    case OP_RETURN: return x->n ? CONT_VALUE : CONT_RETURN;
    }
    return CONT_RETURN; /* unreachable */
}

static bool is_exit(const struct clike *p, uint32_t id)
{
    return op_info[at(p, id)->op].effect == EFFECT_EXIT;
}

static bool carries_nothing(const struct clike *p, uint32_t exit)
{
    const uint16_t op = at(p, exit)->op;
    return op == OP_BR || op == OP_YIELD ? clike_exit_copies(p, exit, NULL, NULL) == 0 : at(p, exit)->n == 0;
}

static cont after(const struct clike *p, uint32_t construct)
{
    uint32_t id = at(p, construct)->next;
    while (id && !is_exit(p, id) && !clike_prints(p, id))
        id = at(p, id)->next;
    if (!id)
        return region_end(p, at(p, construct)->region);
    return is_exit(p, id) && carries_nothing(p, id) ? exit_wants(p, id) : CONT_AT | construct;
}

/* Where control goes from the region's last line, disregarding what happens before. */
static cont region_wants(const struct clike *p, uint32_t region)
{
    const uint32_t last = ir_region_at(p->m, region)->last;
    return last && is_exit(p, last) ? exit_wants(p, last) : region_end(p, region);
}

/* No text at all, if control then falls to `fall`. */
static bool is_silent(const struct clike *p, uint32_t region, cont fall)
{
    IR_EACH(p->m, region, id)
    {
        if (is_exit(p, id))
            return carries_nothing(p, id) && exit_wants(p, id) == fall;
        if (clike_prints(p, id))
            return false;
    }
    return region_end(p, region) == fall;
}

/* ---- leaving --------------------------------------------------------------------------------------------------- */

static void push_entry(struct clike *p, enum clike_entry_kind kind, cont on_break, cont on_continue, size_t text_at,
                       uint32_t line_at)
{
    VEC_PUSH(p->mem, &p->entries,
             ((struct clike_entry){.on_break = on_break,
                                   .on_continue = on_continue,
                                   .text_at = text_at,
                                   .line_at = line_at,
                                   .kind = (uint8_t)kind}));
}

static void put_break(struct clike *p, uint32_t place)
{
    p->entries.at[p->entries.n - 1].left = true;
    clike_line(p, place, "break;");
}

/* Whether `continue` in entry k, nothing in between, goes to `want`. */
static bool continues(const struct clike *p, uint32_t k, cont want)
{
    return p->entries.at[k].kind == ENTRY_LOOP && p->entries.at[k].on_continue == want;
}

/* Whether the flag will be asked behind one of the entries from `first` up to `end`. */
static bool is_pending(const struct clike *p, uint32_t name, uint32_t first, uint32_t end)
{
    for (uint32_t k = 0; k < p->flags.n; k++)
        if (p->flags.at[k].name == name && p->flags.at[k].entry >= first && p->flags.at[k].entry < end)
            return true;
    return false;
}

/* Prints what goes to `want`; `flag` 0, or the flag that says so already. Returns whether control falls there. */
static bool go(struct clike *p, cont want, cont fall, uint32_t place, uint32_t flag)
{
    const uint32_t n = p->entries.n;
    if (want == fall)
        return true;
    if (want == CONT_RETURN) {
        clike_line(p, place, "return;");
        return false;
    }
    if (n > 0 && p->entries.at[n - 1].on_break == want) {
        put_break(p, place);
        return false;
    }
    uint32_t k = n; /* switches let continue through */
    while (k > 0 && p->entries.at[k - 1].kind == ENTRY_SWITCH)
        k--;
    if (k > 0 && continues(p, k - 1, want)) {
        clike_line(p, place, "continue;");
        return false;
    }
    for (k = n; k > 0; k--)
        if (p->entries.at[k - 1].on_break == want || continues(p, k - 1, want))
            break;
    if (k == 0) {
        const uint32_t around = (uint32_t)want; /* the place is the end of this construct */
        if ((p->v[around].boxed && !p->again) || !ir_is_construct(at(p, around)->op))
            CLIKE_FAIL(p, around, PRINT_UNSUPPORTED, p->d->name, op_info[OP_BR].name);
        p->v[around].boxed = p->again = true;
        return false;
    }
    if (!flag) {
        for (uint32_t i = 0; i < p->flags.n && !flag; i++)
            flag = p->flags.at[i].to == want ? p->flags.at[i].name : 0;
        if (!flag)
            flag = names_unique(p, "leave", NAME_LOCAL);
        clike_begin(p);
        buf_fmt(p->b, "%s = true;", names_text(p, flag));
        clike_end(p, place);
    }
    if (!is_pending(p, flag, n - 1, n))
        VEC_PUSH(p->mem, &p->flags, ((struct clike_flag){.name = flag, .entry = n - 1, .to = want}));
    put_break(p, place);
    return false;
}

static void insert_line(struct clike *p, size_t text_at, uint32_t line_at, const char *name)
{
    struct buf *const b = &p->text;
    const size_t before = b->n;
    for (unsigned k = 0; k < p->indent; k++)
        buf_str(b, "    ");
    buf_fmt(b, "bool %s = false;\n", name);
    const size_t n = b->n - before;
    char *const line = mem_alloc(p->mem, n);
    memcpy(line, b->at + before, n);
    memmove(b->at + text_at + n, b->at + text_at, before - text_at);
    memcpy(b->at + text_at, line, n);
    mem_free(p->mem, line, n);
    VEC_PUSH(p->mem, &p->places, 0);
    memmove(p->places.at + line_at + 1, p->places.at + line_at, (p->places.n - 1 - line_at) * sizeof *p->places.at);
    p->places.at[line_at] = 0;
}

/* After the statement's text: asks the flags that were set inside. Returns whether it was left by a break. */
static bool pop_entry(struct clike *p)
{
    const struct clike_entry e = p->entries.at[--p->entries.n];
    const uint32_t index = p->entries.n;
    for (uint32_t k = 0; k < p->flags.n; k++) {
        const struct clike_flag f = p->flags.at[k];
        if (f.entry != index)
            continue;
        clike_begin(p);
        buf_fmt(p->b, "if (%s) {", names_text(p, f.name));
        clike_end(p, 0);
        p->indent++;
        (void)go(p, f.to, CONT_NONE, 0, f.name);
        p->indent--;
        clike_line(p, 0, "}");
        if (!is_pending(p, f.name, 0, index)) { /* nothing further out needs it */
            insert_line(p, e.text_at, e.line_at, names_text(p, f.name));
            p->declared = true;
        }
    }
    uint32_t kept = 0;
    for (uint32_t k = 0; k < p->flags.n; k++)
        if (p->flags.at[k].entry != index)
            p->flags.at[kept++] = p->flags.at[k];
    p->flags.n = kept;
    return e.left;
}

/* ---- regions --------------------------------------------------------------------------------------------------- */

enum outcome { GONE, FALLS, DONE_GONE, DONE_FALLS }; /* DONE: the region's own end is printed too */

static bool put_region(struct clike *p, uint32_t region, cont fall);

static bool put_exit(struct clike *p, uint32_t id, cont fall)
{
    const struct node *const x = at(p, id);
    const struct func *const f = &p->m->funcs.at[p->func];
    if (x->op == OP_RETURN && x->n) {
        clike_begin(p);
        buf_str(p->b, "return ");
        clike_operand(p, ir_in(p->m, id)[0], PREC_LOWEST, LITERAL_PLAIN);
        buf_char(p->b, ';');
        clike_end(p, x->place);
        return false;
    }
    if (x->op == OP_UNREACHABLE && !f->kernel) {
        CLIKE_FAIL(p, id, PRINT_UNREACHABLE, p->d->name);
        return false;
    }
    if (x->op == OP_BR || x->op == OP_YIELD) {
        const unsigned n = clike_exit_copies(p, id, NULL, NULL);
        if (n > 0) {
            uint32_t *const to = mem_alloc(p->mem, 2 * n * sizeof *to);
            (void)clike_exit_copies(p, id, to, to + n);
            clike_copies(p, x->place, n, to, to + n);
            mem_free(p->mem, to, 2 * n * sizeof *to);
        }
    }
    return go(p, exit_wants(p, id), fall, x->place, 0);
}

static void declare_results(struct clike *p, uint32_t construct)
{
    for (uint32_t id = at(p, construct)->next; id && at(p, id)->op == OP_RESULT; id = at(p, id)->next) {
        if (at(p, id)->in[0] != construct || p->v[id].mode != MODE_NAMED || p->v[id].alias)
            continue;
        clike_begin(p);
        clike_declare_value(p, id);
        buf_char(p->b, ';');
        clike_end(p, at(p, construct)->place);
    }
}

/* ---- if -------------------------------------------------------------------------------------------------------- */

static bool has_results(const struct clike *p, uint32_t construct)
{
    const uint32_t next = at(p, construct)->next;
    return next && at(p, next)->op == OP_RESULT && at(p, next)->in[0] == construct;
}

/* An else region that is nothing but another if: else if. */
static uint32_t chained_if(const struct clike *p, uint32_t region, cont fall)
{
    uint32_t found = 0;
    IR_EACH(p->m, region, id)
    {
        if (found)
            return is_exit(p, id) && carries_nothing(p, id) && exit_wants(p, id) == fall ? found : 0;
        if (at(p, id)->op == OP_IF && p->v[id].form != FORM_CHOICE && !p->v[id].boxed && !has_results(p, id))
            found = id;
        else if (is_exit(p, id) || clike_prints(p, id))
            return 0;
    }
    return found && region_end(p, region) == fall ? found : 0;
}

/* Text of an if from `if (` on; the line has begun. Returns whether control falls to `fall`. */
static bool put_branches(struct clike *p, uint32_t id, cont fall)
{
    const uint32_t yes = ir_region(p->m, id, 0), no = ir_region(p->m, id, 1);
    const uint32_t place = at(p, id)->place;
    const bool negate = is_silent(p, yes, fall) && !is_silent(p, no, fall);
    bool falls = false;
    buf_str(p->b, "if (");
    clike_condition(p, ir_in(p->m, id)[0], negate);
    buf_str(p->b, ") {");
    clike_end(p, place);
    p->indent++;
    falls |= put_region(p, negate ? no : yes, fall);
    p->indent--;
    if (negate || is_silent(p, no, fall)) {
        clike_line(p, 0, "}");
        return true;
    }
    clike_begin(p);
    buf_str(p->b, "} else ");
    const uint32_t chained = chained_if(p, no, fall);
    if (chained)
        return put_branches(p, chained, fall) || falls;
    buf_char(p->b, '{');
    clike_end(p, 0);
    p->indent++;
    falls |= put_region(p, no, fall);
    p->indent--;
    clike_line(p, 0, "}");
    return falls;
}

static enum outcome put_if(struct clike *p, uint32_t id, cont fall)
{
    const cont next = after(p, id);
    const bool last = next != (CONT_AT | id);
    const uint32_t yes = ir_region(p->m, id, 0), no = ir_region(p->m, id, 1);
    if (last && next != fall && !p->v[id].boxed) {
        if (region_wants(p, yes) == fall && is_silent(p, no, next)) {
            /* if (!c) leave; then the body without a deeper level */
            clike_begin(p);
            buf_str(p->b, "if (");
            clike_condition(p, ir_in(p->m, id)[0], true);
            buf_str(p->b, ") {");
            clike_end(p, at(p, id)->place);
            p->indent++;
            (void)go(p, next, CONT_NONE, at(p, id)->place, 0);
            p->indent--;
            clike_line(p, 0, "}");
            return put_region(p, yes, fall) ? DONE_FALLS : DONE_GONE;
        }
        if (region_wants(p, yes) == fall || region_wants(p, no) == fall) {
            clike_begin(p);
            return put_branches(p, id, fall) ? DONE_FALLS : DONE_GONE;
        }
    }
    clike_begin(p);
    return put_branches(p, id, next) ? FALLS : GONE;
}

/* ---- loops ----------------------------------------------------------------------------------------------------- */

/* for (uint i = 0, k = 1; i < n; i += 1, k += 4) { */
static void put_for_head(struct clike *p, uint32_t loop, uint32_t test)
{
    const uint32_t first = ir_region_at(p->m, ir_region(p->m, loop, 0))->first;
    const uint32_t br = ir_region_at(p->m, ir_region(p->m, test, 0))->last;
    const unsigned n = at(p, loop)->n;
    buf_str(p->b, "for (");
    const char *separator = "";
    uint32_t arg = first;
    for (unsigned k = 0; k < n; k++, arg = at(p, arg)->next) {
        if (!p->v[arg].in_head)
            continue;
        if (*separator)
            buf_fmt(p->b, "%s%s", separator, clike_name(p, arg));
        else
            clike_declare_value(p, arg);
        buf_str(p->b, " = ");
        clike_operand(p, ir_in(p->m, loop)[k], PREC_ASSIGN, LITERAL_PLAIN);
        separator = ", ";
    }
    buf_str(p->b, "; ");
    clike_condition(p, ir_in(p->m, test)[0], false);
    separator = "; ";
    arg = first;
    for (unsigned k = 0; k < n; k++, arg = at(p, arg)->next) {
        const uint32_t next = ir_in(p->m, br)[k];
        const char *op;
        uint32_t left, right;
        if (p->v[arg].form != FORM_FOR)
            continue;
        buf_fmt(p->b, "%s%s", separator, clike_name(p, arg));
        if (clike_compound(p, next, &op, &left, &right) && left == arg) {
            clike_compound_right(p, next, op);
        } else {
            buf_str(p->b, " = ");
            clike_operand(p, next, PREC_ASSIGN, LITERAL_PLAIN);
        }
        separator = ", ";
    }
    buf_str(p->b, ") {");
}

static bool put_loop(struct clike *p, uint32_t id)
{
    const enum clike_form form = (enum clike_form)p->v[id].form;
    const uint32_t body = ir_region(p->m, id, 0), place = at(p, id)->place;
    const uint32_t test = form == FORM_PLAIN ? 0 : clike_loop_test(p, id);
    const size_t text_at = p->text.n;
    const uint32_t line_at = p->places.n;
    uint32_t arg = ir_region_at(p->m, body)->first;
    for (unsigned k = 0; k < at(p, id)->n; k++, arg = at(p, arg)->next) {
        if (p->v[arg].mode != MODE_NAMED || p->v[arg].in_head)
            continue;
        const uint32_t first = ir_in(p->m, id)[k];
        clike_begin(p);
        clike_declare_value(p, arg);
        buf_str(p->b, " = ");
        if (ir_type_is_pointer(at(p, arg)->type))
            clike_pointer(p, first, p->v[arg].pointee, p->v[arg].points_const, PREC_ASSIGN);
        else
            clike_operand(p, first, PREC_ASSIGN, LITERAL_PLAIN);
        buf_char(p->b, ';');
        clike_end(p, place);
    }
    push_entry(p, ENTRY_LOOP, after(p, id), CONT_HEAD | id, text_at, line_at);
    clike_begin(p);
    if (form == FORM_FOR) {
        put_for_head(p, id, test);
    } else if (form == FORM_WHILE) {
        buf_str(p->b, "while (");
        clike_condition(p, ir_in(p->m, test)[0], false);
        buf_str(p->b, ") {");
    } else {
        buf_str(p->b, "while (true) {");
    }
    clike_end(p, place);
    p->indent++;
    (void)put_region(p, test ? ir_region(p->m, test, 0) : body, CONT_HEAD | id);
    p->indent--;
    clike_line(p, 0, "}");
    return pop_entry(p) || form != FORM_PLAIN;
}

/* ---- switch ---------------------------------------------------------------------------------------------------- */

static bool put_switch(struct clike *p, uint32_t id)
{
    const ir_type t = at(p, ir_in(p->m, id)[0])->type;
    const bool outer_declared = p->declared;
    bool any_default = false;
    push_entry(p, ENTRY_SWITCH, after(p, id), CONT_NONE, p->text.n, p->places.n);
    clike_begin(p);
    buf_str(p->b, "switch (");
    clike_expr(p, ir_in(p->m, id)[0], PREC_LOWEST);
    buf_str(p->b, ") {");
    clike_end(p, at(p, id)->place);
    for (unsigned k = 0; k < ir_n_regions(p->m, id); k++) {
        const uint32_t region = ir_region(p->m, id, k);
        const struct region *const r = ir_region_at(p->m, region);
        any_default = any_default || r->is_default;
        for (uint32_t c = 0; c < r->n_cases; c++) {
            clike_begin(p);
            buf_str(p->b, "case ");
            clike_literal(p, ir_type_scalar(t), (uint64_t)p->m->cases.at[r->first_case + c], LITERAL_PLAIN,
                          PREC_LOWEST);
            buf_char(p->b, ':');
            clike_end(p, 0);
        }
        if (r->is_default)
            clike_line(p, 0, "default:");
        /* Braces where something is declared: a jump may not enter its scope. */
        const size_t label_end = p->text.n - 1;
        p->declared = false;
        p->indent++;
        (void)put_region(p, region, CONT_NONE);
        p->indent--;
        if (p->declared) {
            buf_str(&p->text, "  ");
            memmove(p->text.at + label_end + 2, p->text.at + label_end, p->text.n - label_end - 2);
            memcpy(p->text.at + label_end, " {", 2);
            clike_line(p, 0, "}");
        }
    }
    clike_line(p, 0, "}");
    p->declared = outer_declared;
    return pop_entry(p) || !any_default;
}

/* ---------------------------------------------------------------------------------------------------------------- */

static enum outcome put_boxed(struct clike *p, uint32_t id)
{
    const cont next = after(p, id);
    push_entry(p, ENTRY_DO, next, CONT_NONE, p->text.n, p->places.n);
    clike_line(p, at(p, id)->place, "do {");
    p->indent++;
    bool falls = false;
    if (at(p, id)->op == OP_BLOCK) {
        falls = put_region(p, ir_region(p->m, id, 0), next);
    } else {
        clike_begin(p);
        falls = put_branches(p, id, next);
    }
    p->indent--;
    clike_line(p, 0, "} while (false);");
    return pop_entry(p) || falls ? FALLS : GONE;
}

static enum outcome put_construct(struct clike *p, uint32_t id, cont fall)
{
    if (p->v[id].form == FORM_CHOICE)
        return FALLS;
    declare_results(p, id);
    switch ((unsigned)at(p, id)->op) {
    case OP_LOOP: return put_loop(p, id) ? FALLS : GONE;
    case OP_SWITCH: return put_switch(p, id) ? FALLS : GONE;
    case OP_IF: return p->v[id].boxed ? put_boxed(p, id) : put_if(p, id, fall);
    case OP_BLOCK:
        if (p->v[id].boxed)
            return put_boxed(p, id);
        return put_region(p, ir_region(p->m, id, 0), after(p, id)) ? FALLS : GONE;
    }
    return FALLS;
}

static bool put_region(struct clike *p, uint32_t region, cont fall)
{
    IR_EACH(p->m, region, id)
    {
        if (is_exit(p, id))
            return put_exit(p, id, fall);
        if (!ir_is_construct(at(p, id)->op)) {
            clike_statement(p, id);
            continue;
        }
        const enum outcome o = put_construct(p, id, fall);
        if (o == FALLS)
            continue;
        return o == DONE_FALLS;
    }
    return go(p, region_end(p, region), fall, 0, 0);
}

/* Boxing a construct changes what break means inside it, so that another may have to be boxed. Each turn boxes at
 * least one more construct. */
void clike_body(struct clike *p)
{
    const struct func *const f = &p->m->funcs.at[p->func];
    const size_t text_at = p->text.n;
    const uint32_t line_at = p->places.n, held = p->names.local.n;
    do {
        p->again = false;
        p->text.n = text_at;
        p->places.n = line_at;
        p->entries.n = 0;
        p->flags.n = 0;
        names_release(p, held);
        p->indent = 1;
        (void)put_region(p, f->region, CONT_RETURN);
        p->indent = 0;
    } while (p->again && p->status == SK_OK);
}
