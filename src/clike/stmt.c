/* stmt.c - statements that are no control flow: declarations, assignments, stores. */
#include "clike/internal.h"

static const struct node *at(const struct clike *p, uint32_t id)
{
    return ir_at(p->m, id);
}

void clike_declare_value(struct clike *p, uint32_t id)
{
    const ir_type t = at(p, id)->type;
    if (ir_type_is_pointer(t))
        clike_pointer_declare(p, ir_type_space(t), p->v[id].pointee, p->v[id].points_const, clike_name(p, id));
    else
        clike_declare(p, t, clike_name(p, id));
    p->declared = true;
}

/* ---- assignment ------------------------------------------------------------------------------------------------ */

/* The value to assign to, or initialise, variable `to` with: its type is fixed by the variable. */
static void put_value(struct clike *p, uint32_t to, uint32_t from)
{
    if (ir_type_is_pointer(at(p, from)->type))
        clike_pointer(p, from, p->v[to].pointee, p->v[to].points_const, PREC_ASSIGN);
    else
        clike_operand(p, from, PREC_ASSIGN, LITERAL_PLAIN);
}

/* Variable `to` = from, as a whole line; `to op= x` where from is `to op x`. */
static void assign(struct clike *p, uint32_t place, uint32_t to, uint32_t from)
{
    const char *op;
    uint32_t left, right;
    clike_begin(p);
    buf_str(p->b, clike_name(p, to));
    if (!ir_type_is_pointer(at(p, from)->type) && clike_compound(p, from, &op, &left, &right) &&
        (at(p, left)->op == OP_GET ? p->v[left].mode == MODE_INLINE && ir_in(p->m, left)[0] == to
                                   : clike_variable(p, left) == clike_variable(p, to))) {
        clike_compound_right(p, from, op);
    } else {
        buf_str(p->b, " = ");
        put_value(p, to, from);
    }
    buf_char(p->b, ';');
    clike_end(p, place);
}

unsigned clike_exit_copies(const struct clike *p, uint32_t exit, uint32_t *to, uint32_t *from)
{
    const struct node *const x = at(p, exit);
    const uint32_t target = x->op == OP_BR ? (uint32_t)x->imm : ir_region_at(p->m, x->region)->owner;
    const bool repeats = x->op == OP_BR && at(p, target)->op == OP_LOOP;
    uint32_t variable = repeats ? ir_region_at(p->m, ir_region(p->m, target, 0))->first : at(p, target)->next;
    unsigned n = 0;
    for (unsigned k = 0; k < x->n; k++, variable = at(p, variable)->next) {
        const uint32_t value = ir_in(p->m, exit)[k];
        if (p->v[variable].mode != MODE_NAMED || clike_variable(p, value) == clike_variable(p, variable) ||
            (repeats && p->v[variable].form == FORM_FOR))
            continue;
        if (to) {
            to[n] = variable;
            from[n] = value;
        }
        n++;
    }
    return n;
}

/* All at once, as the exit means it: a variable is overwritten after its last use, a cycle goes through a temporary. */
void clike_copies(struct clike *p, uint32_t place, unsigned n, const uint32_t *to, const uint32_t *from)
{
    uint32_t *const temporary = mem_zalloc(p->mem, n * sizeof *temporary);
    bool *const done = mem_zalloc(p->mem, n * sizeof *done);
    for (unsigned left = n; left > 0;) {
        unsigned pick = n;
        for (unsigned i = 0; i < n && pick == n; i++) {
            bool needed = done[i];
            for (unsigned j = 0; j < n && !needed; j++)
                needed = j != i && !done[j] && !temporary[j] && clike_mentions(p, from[j], clike_variable(p, to[i]));
            if (!needed)
                pick = i;
        }
        if (pick < n) {
            if (temporary[pick]) {
                clike_begin(p);
                buf_fmt(p->b, "%s = %s;", clike_name(p, to[pick]), names_text(p, temporary[pick]));
                clike_end(p, place);
            } else {
                assign(p, place, to[pick], from[pick]);
            }
            done[pick] = true;
            left--;
            continue;
        }
        for (pick = 0; done[pick] || temporary[pick]; pick++)
            ;
        temporary[pick] = names_unique(p, "next", NAME_LOCAL);
        const ir_type t = at(p, to[pick])->type;
        clike_begin(p);
        if (ir_type_is_pointer(t))
            clike_pointer_declare(p, ir_type_space(t), p->v[to[pick]].pointee, p->v[to[pick]].points_const,
                                  names_text(p, temporary[pick]));
        else
            clike_declare(p, t, names_text(p, temporary[pick]));
        p->declared = true;
        buf_str(p->b, " = ");
        put_value(p, to[pick], from[pick]);
        buf_char(p->b, ';');
        clike_end(p, place);
    }
    mem_free(p->mem, temporary, n * sizeof *temporary);
    mem_free(p->mem, done, n * sizeof *done);
}

/* ---- parts ----------------------------------------------------------------------------------------------------- */

static void assign_part(struct clike *p, uint32_t place, uint32_t variable, uint32_t insert)
{
    clike_begin(p);
    buf_str(p->b, clike_name(p, variable));
    clike_part(p, at(p, insert)->type, at(p, insert)->imm);
    buf_str(p->b, " = ");
    clike_operand(p, ir_in(p->m, insert)[1], PREC_ASSIGN, LITERAL_PLAIN);
    buf_char(p->b, ';');
    clike_end(p, place);
}

/* ---- statements ------------------------------------------------------------------------------------------------ */

static void store(struct clike *p, uint32_t id)
{
    const uint32_t pointer = ir_in(p->m, id)[0], value = ir_in(p->m, id)[1];
    const char *op;
    uint32_t left, right;
    clike_begin(p);
    clike_lvalue(p, pointer, at(p, value)->type, PREC_UNARY);
    if (clike_compound(p, value, &op, &left, &right) && at(p, left)->op == OP_LOAD && p->v[left].mode == MODE_INLINE &&
        clike_same(p, ir_in(p->m, left)[0], pointer, 8)) {
        clike_compound_right(p, value, op);
    } else {
        buf_str(p->b, " = ");
        clike_operand(p, value, PREC_ASSIGN, LITERAL_PLAIN);
    }
    buf_char(p->b, ';');
    clike_end(p, at(p, id)->place);
}

static void alloc(struct clike *p, uint32_t id)
{
    const enum space space = ir_type_space(at(p, id)->type);
    clike_begin(p);
    if (space != SPACE_THREAD)
        buf_fmt(p->b, "%s ", p->d->space[space]);
    clike_declare(p, (ir_type)at(p, id)->imm, clike_name(p, id));
    /* Memory of a thread is zero by definition, of a threadgroup by the executor. */
    if (space == SPACE_THREAD && ir_type_width((ir_type)at(p, id)->imm) > 0) {
        buf_str(p->b, " = ");
        clike_zero(p, (ir_type)at(p, id)->imm);
    } else if (space == SPACE_THREAD) {
        buf_str(p->b, " = {}");
    }
    buf_char(p->b, ';');
    p->declared = true;
    clike_end(p, at(p, id)->place);
}

/* A comment must stay on its line, which a backslash at its end, or the three characters that C++ takes for one, would
 * join to the next. */
static void put_assert(struct clike *p, uint32_t id)
{
    const char *s = strtab_str(&p->m->strings, (uint32_t)at(p, id)->imm);
    clike_begin(p);
    buf_str(p->b, "// checked by Spork: ");
    for (; *s; s++)
        buf_char(p->b, (unsigned char)*s < ' ' ? ' ' : *s == '\\' ? '/' : *s);
    if (p->b->at[p->b->n - 1] == '/')
        buf_char(p->b, '.');
    clike_end(p, at(p, id)->place);
}

static bool is_fenced(const struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    return op_info[x->op].effect == EFFECT_ATOMIC && x->op != OP_FENCE && node_order(x->flags) != ORDER_RELAXED;
}

static void declaration(struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    const uint32_t *const in = ir_in(p->m, id);
    if (x->op == OP_ALLOC) {
        alloc(p, id);
        return;
    }
    clike_begin(p);
    clike_declare_value(p, id);
    buf_str(p->b, " = ");
    if (x->op == OP_VAR || x->op == OP_INSERT) {
        put_value(p, id, in[0]);
    } else if (ir_type_is_pointer(x->type)) {
        p->v[id].mode = MODE_INLINE; /* its definition, not its name */
        clike_pointer(p, id, p->v[id].pointee, p->v[id].points_const, PREC_ASSIGN);
        p->v[id].mode = MODE_NAMED;
    } else {
        clike_definition(p, id, PREC_ASSIGN);
    }
    buf_char(p->b, ';');
    clike_end(p, x->place);
    if (x->op == OP_INSERT)
        assign_part(p, x->place, id, id);
}

void clike_statement(struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    if (!clike_prints(p, id))
        return;
    if (is_fenced(p, id))
        p->d->fence(p, id, true);
    if (p->v[id].mode == MODE_NAMED) {
        declaration(p, id);
    } else if (x->op == OP_STORE) {
        store(p, id);
    } else if (x->op == OP_SET && p->v[id].form == FORM_PART) {
        assign_part(p, x->place, ir_in(p->m, id)[0], ir_in(p->m, id)[1]);
    } else if (x->op == OP_SET) {
        assign(p, x->place, ir_in(p->m, id)[0], ir_in(p->m, id)[1]);
    } else if (x->op == OP_ASSERT) {
        put_assert(p, id);
    } else if (x->op == OP_BARRIER || x->op == OP_SIMDGROUP_BARRIER || x->op == OP_FENCE || x->op == OP_PRINT) {
        p->d->statement(p, id);
    } else {
        clike_begin(p);
        clike_definition(p, id, PREC_LOWEST);
        buf_char(p->b, ';');
        clike_end(p, x->place);
    }
    if (is_fenced(p, id))
        p->d->fence(p, id, false);
}
