/* scope.c - blocks: if with elif and else, sk.where, how blocks end, and the ways out of them.
 *
 * Shapes made here and in loop.c, which printers recognise:
 *   if:     if %c { … } else { … }; an elif is an if alone in the else region, after the nodes of its condition
 *   where:  %r: T = if %c { … yield %a } else { … yield %b }
 *   range:  loop (%i = start) { %c = lt %i, stop; if %c { BODY; %n = add %i, step; br %n (to the loop) } }
 *           or, where %i + step could wrap or the step's sign is not known,
 *           loop (%r = count, %i = start) { %c = ne %r, 0; if %c { BODY; %s = sub %r, 1; %n = add %i, step; br %s, %n } }
 *   while:  loop { CONDITION; if %c { BODY; br (to the loop) } }
 *   break:    the loop stands alone in a block, which the break leaves
 *   continue: BODY stands alone in a block, which the continue leaves
 * The blocks are made when the first break or continue comes, so that no other loop has them.
 */
#include "trace/internal.h"

/* ---- opening and ending ---------------------------------------------------------------------------------------------- */

sk_status trace_push(struct trace *t, enum scope_kind kind, unsigned levels, struct scope **out, sk_error *err)
{
    const bool outermost = t->scopes.n == trace_frame(t)->first_scope;
    const uint32_t all = levels + (outermost ? 1 : t->scopes.at[t->scopes.n - 1].levels);
    if (all > IR_MAX_DEPTH)
        return FAIL(t, err, TOO_DEEP);
    const struct scope s = {
        .id = ++t->scope_count, .kind = (uint8_t)kind, .levels = all, .outer = t->b.region, .place = t->b.place};
    VEC_PUSH(t->mem, &t->scopes, s);
    *out = &t->scopes.at[t->scopes.n - 1];
    return SK_OK;
}

static void pop(struct trace *t)
{
    const struct scope *const s = &t->scopes.at[t->scopes.n - 1];
    if (trace_is_dead_end(t))
        t->dead = 0;
    t->b.region = s->outer;
    if (s->first_frozen)
        t->frozen.n = s->first_frozen;
    t->scopes.n--;
}

sk_status trace_left_open(struct trace *t, sk_error *err)
{
    const struct scope *const s = &t->scopes.at[t->scopes.n - 1];
    const struct err_place place = ir_err_place(t->m, s->place);
    if (s->kind == SCOPE_KIND_RANGE)
        return ERR_AT(err, place, RANGE_LEFT);
    return ERR_AT(err, place, BLOCK_OPEN);
}

sk_status trace_innermost(struct trace *t, uint32_t id, struct scope **out, sk_error *err)
{
    TRY(trace_open(t, err));
    const uint32_t first = trace_frame(t)->first_scope;
    for (uint32_t k = t->scopes.n; k-- > first;) {
        if (t->scopes.at[k].id != id)
            continue;
        if (k + 1 < t->scopes.n)
            return trace_left_open(t, err);
        *out = &t->scopes.at[k];
        return SK_OK;
    }
    return FAIL(t, err, BLOCK_ENDED);
}

uint32_t trace_open_scope(const struct trace *t)
{
    if (t->frames.n == 0 || t->scopes.n == t->frames.at[t->frames.n - 1].first_scope)
        return 0;
    return t->scopes.at[t->scopes.n - 1].id;
}

uint32_t trace_ended_if(const struct trace *t)
{
    return t->ended.first;
}

sk_status trace_end_scope(struct trace *t, uint32_t scope, sk_error *err)
{
    struct scope *s;
    TRY(trace_innermost(t, scope, &s, err));
    switch ((enum scope_kind)s->kind) {
    case SCOPE_KIND_IF:
        t->ended = (struct ended_if){.first = s->first_if, .last = s->id, .head = s->head, .tail = s->construct};
        break;
    case SCOPE_KIND_ELSE: t->ended = (struct ended_if){0}; break;
    case SCOPE_KIND_RANGE: trace_end_range(t, s); break;
    case SCOPE_KIND_WHILE: TRY(trace_end_while(t, s, err)); break;
    case SCOPE_KIND_WHILE_HEAD:
    case SCOPE_KIND_WHERE_FIRST:
    case SCOPE_KIND_WHERE_SECOND: return FAIL(t, err, BLOCK_INCOMPLETE);
    }
    pop(t);
    return SK_OK;
}

void trace_move(struct trace *t, uint32_t first, uint32_t end, uint32_t to)
{
    while (first && first != end) {
        const uint32_t next = ir_at(t->m, first)->next;
        ir_unlink(t->m, first);
        ir_insert_before(t->m, first, to, 0);
        first = next;
    }
}

/* ---- dead code --------------------------------------------------------------------------------------------------------- */

/* Code after an exit goes into a block that hangs in the region, so that values are seen from it, but is not linked there:
 * no reader of the program finds it. */
void trace_dead(struct trace *t)
{
    if (t->dead)
        return;
    struct ir_builder aside = t->b;
    aside.region = 0;
    const uint32_t block = ir_construct(&aside, OP_BLOCK, 0, NULL, 1);
    ir_at(t->m, block)->region = t->b.region;
    t->dead = t->b.region = ir_region(t->m, block, 0);
    t->dead_at = t->scopes.n;
}

bool trace_is_dead_end(const struct trace *t)
{
    return t->dead && t->dead_at == t->scopes.n;
}

/* ---- if ---------------------------------------------------------------------------------------------------------------- */

sk_status trace_if(struct trace *t, struct tv cond, uint32_t *scope, sk_error *err)
{
    struct scope *s;
    uint32_t id;
    TRY(trace_use(t, cond, &cond, err));
    TRY(trace_condition(t, cond, false, &id, err));
    TRY(trace_push(t, SCOPE_KIND_IF, 1, &s, err));
    s->construct = s->head = ir_construct(&t->b, OP_IF, 1, &id, 2);
    s->first_if = s->id;
    t->b.region = ir_region(t->m, s->construct, 0);
    *scope = s->id;
    return SK_OK;
}

/* The if statement that ended last is the one meant, and it stands in the region where we are. */
static bool follows_if(const struct trace *t, uint32_t scope)
{
    return t->ended.first != 0 && (scope == t->ended.first || scope == t->ended.last) &&
           ir_at(t->m, t->ended.head)->region == t->b.region;
}

/* Nesting inside a region, counted from where the if statement stands: each elif is one region deeper. */
static unsigned levels_in(const struct trace *t, uint32_t inside)
{
    unsigned levels = 0;
    for (uint32_t r = inside; r && r != t->b.region; r = ir_parent_region(t->m, r))
        levels++;
    return levels;
}

sk_status trace_else(struct trace *t, uint32_t if_scope, uint32_t *scope, sk_error *err)
{
    struct scope *s;
    TRY(trace_open(t, err));
    if (!follows_if(t, if_scope) || ir_region_at(t->m, t->b.region)->last != t->ended.head)
        return FAIL(t, err, ELSE_LATE, "else_");
    TRY(trace_push(t, SCOPE_KIND_ELSE, levels_in(t, ir_region(t->m, t->ended.tail, 1)), &s, err));
    s->construct = t->ended.tail;
    s->head = t->ended.head;
    t->b.region = ir_region(t->m, s->construct, 1);
    t->ended = (struct ended_if){0};
    *scope = s->id;
    return SK_OK;
}

/* May the node belong to an expression? Its value is all that it is for. */
static bool is_expression(const struct trace *t, uint32_t id)
{
    const struct node *const x = ir_at(t->m, id);
    switch ((enum op_effect)op_info[x->op].effect) {
    case EFFECT_PURE:
    case EFFECT_READ: return true;
    case EFFECT_ATOMIC:
    case EFFECT_CONVERGENT: return x->type != TYPE_VOID;
    case EFFECT_CONTROL: return x->op == OP_CALL ? x->type != TYPE_VOID : x->op == OP_IF && ir_n_results(t->m, id) > 0;
    case EFFECT_WRITE:
    case EFFECT_EXIT: return false;
    }
    return false;
}

/* The condition has been traced after the if: its nodes move into the else region, where they are run only if the
 * conditions before were false. */
sk_status trace_elif(struct trace *t, uint32_t if_scope, struct tv cond, uint32_t *scope, sk_error *err)
{
    struct scope *s;
    uint32_t id;
    TRY(trace_open(t, err));
    if (!follows_if(t, if_scope))
        return FAIL(t, err, ELSE_LATE, "elif_");
    const uint32_t first = ir_at(t->m, t->ended.head)->next;
    const uint32_t inside = ir_region(t->m, t->ended.tail, 1);
    for (uint32_t k = first; k; k = ir_at(t->m, k)->next)
        if (!is_expression(t, k))
            return FAIL(t, err, ELSE_LATE, "elif_");
    TRY(trace_push(t, SCOPE_KIND_IF, levels_in(t, inside) + 1, &s, err));
    trace_move(t, first, 0, inside);
    t->b.region = inside;
    sk_status status = trace_use(t, cond, &cond, err);
    if (status == SK_OK)
        status = trace_condition(t, cond, false, &id, err);
    if (status != SK_OK) {
        pop(t);
        return status;
    }
    s->construct = ir_construct(&t->b, OP_IF, 1, &id, 2);
    s->head = t->ended.head;
    s->first_if = t->ended.first;
    t->b.region = ir_region(t->m, s->construct, 0);
    *scope = s->id;
    return SK_OK;
}

/* ---- sk.where ------------------------------------------------------------------------------------------------------------ */

sk_status trace_where(struct trace *t, struct tv cond, uint32_t *scope, sk_error *err)
{
    TRY(trace_if(t, cond, scope, err));
    trace_scope_at(t, t->scopes.n - 1)->kind = SCOPE_KIND_WHERE_FIRST;
    return SK_OK;
}

sk_status trace_where_next(struct trace *t, uint32_t scope, struct tv first, sk_error *err)
{
    struct scope *s;
    TRY(trace_innermost(t, scope, &s, err));
    if (s->kind != SCOPE_KIND_WHERE_FIRST)
        return FAIL(t, err, BLOCK_INCOMPLETE);
    TRY(trace_use(t, first, &s->first, err));
    s->kind = SCOPE_KIND_WHERE_SECOND;
    t->b.region = ir_region(t->m, s->construct, 1);
    return SK_OK;
}

sk_status trace_where_end(struct trace *t, uint32_t scope, struct tv second, struct tv *out, sk_error *err)
{
    struct scope *s;
    struct tv v[2];
    ir_type type;
    TRY(trace_innermost(t, scope, &s, err));
    if (s->kind != SCOPE_KIND_WHERE_SECOND)
        return FAIL(t, err, BLOCK_INCOMPLETE);
    v[0] = s->first;
    TRY(trace_use(t, second, &v[1], err));
    if (v[0].kind == TV_VALUE && v[1].kind == TV_VALUE && trace_node_type(t, v[0].id) == trace_node_type(t, v[1].id))
        type = trace_node_type(t, v[0].id); /* structs too */
    else
        TRY(trace_common(t, MIX_SIGN, "where", 2, v, &type, err));
    for (unsigned k = 0; k < 2; k++) {
        t->b.region = ir_region(t->m, s->construct, k);
        const uint32_t id = trace_coerce(t, v[k], type);
        (void)ir_node(&t->b, OP_YIELD, TYPE_VOID, 1, &id, 0, 0);
    }
    const uint32_t construct = s->construct;
    pop(t);
    *out = trace_value(t, ir_result(t->m, construct, type));
    return SK_OK;
}

/* ---- break, continue, return ------------------------------------------------------------------------------------------------ */

/* The innermost loop whose body we are in. sk.where's functions and while conditions are expressions: no way leads out. */
static sk_status innermost_loop(struct trace *t, const char *what, uint32_t *index, sk_error *err)
{
    TRY(trace_open(t, err));
    for (uint32_t k = t->scopes.n; k-- > trace_frame(t)->first_scope;) {
        switch ((enum scope_kind)t->scopes.at[k].kind) {
        case SCOPE_KIND_IF:
        case SCOPE_KIND_ELSE: break;
        case SCOPE_KIND_RANGE:
        case SCOPE_KIND_WHILE: *index = k; return SK_OK;
        case SCOPE_KIND_WHILE_HEAD:
        case SCOPE_KIND_WHERE_FIRST:
        case SCOPE_KIND_WHERE_SECOND: return FAIL(t, err, EXIT_IN_EXPRESSION, what);
        }
    }
    return FAIL(t, err, NO_LOOP, what);
}

static uint32_t block_before(struct trace *t, uint32_t region, uint32_t before, uint32_t place)
{
    struct ir_builder b = t->b;
    b.region = region;
    b.before = before;
    b.place = place;
    return ir_construct(&b, OP_BLOCK, 0, NULL, 1);
}

sk_status trace_break(struct trace *t, sk_error *err)
{
    uint32_t index;
    TRY(innermost_loop(t, "break_", &index, err));
    if (t->dead)
        return SK_OK;
    struct scope *const s = trace_scope_at(t, index);
    if (!s->break_block) {
        const uint32_t block = block_before(t, s->outer, s->construct, s->place);
        trace_move(t, s->construct, ir_at(t->m, s->construct)->next, ir_region(t->m, block, 0));
        s->break_block = block;
    }
    (void)ir_br(&t->b, s->break_block, 0, NULL);
    trace_dead(t);
    return SK_OK;
}

sk_status trace_continue(struct trace *t, sk_error *err)
{
    uint32_t index;
    TRY(innermost_loop(t, "continue_", &index, err));
    if (t->dead)
        return SK_OK;
    struct scope *const s = trace_scope_at(t, index);
    if (!s->continue_block) {
        const uint32_t body = ir_region(t->m, s->test, 0);
        const uint32_t block = block_before(t, body, 0, s->place), inside = ir_region(t->m, block, 0);
        trace_move(t, ir_region_at(t->m, body)->first, block, inside);
        s->continue_block = block;
        for (uint32_t k = index + 1; k < t->scopes.n; k++)
            if (t->scopes.at[k].outer == body)
                t->scopes.at[k].outer = inside;
        if (t->b.region == body)
            t->b.region = inside;
    }
    (void)ir_br(&t->b, s->continue_block, 0, NULL);
    trace_dead(t);
    return SK_OK;
}

sk_status trace_return(struct trace *t, const struct tv *value, sk_error *err)
{
    TRY(trace_open(t, err));
    for (uint32_t k = t->scopes.n; k-- > trace_frame(t)->first_scope;) {
        const enum scope_kind kind = (enum scope_kind)t->scopes.at[k].kind;
        if (kind == SCOPE_KIND_WHERE_FIRST || kind == SCOPE_KIND_WHERE_SECOND || kind == SCOPE_KIND_WHILE_HEAD)
            return FAIL(t, err, EXIT_IN_EXPRESSION, "return_");
    }
    const struct func *const f = &t->m->funcs.at[t->b.func];
    const char *const name = strtab_str(&t->m->strings, f->name);
    uint32_t id = 0;
    if (f->result == TYPE_VOID && value)
        return FAIL(t, err, RETURN_VALUE, name);
    if (f->result != TYPE_VOID && !value)
        return FAIL(t, err, RETURN_NOTHING, name, trace_type_text(t, f->result).at);
    if (value) {
        struct tv v;
        const ir_type result = f->result;
        TRY(trace_use(t, *value, &v, err));
        TRY(trace_implicit_node(t, v, result, "the result", &id, err));
    }
    trace_frame(t)->returns = true;
    if (t->dead)
        return SK_OK;
    (void)ir_node(&t->b, OP_RETURN, TYPE_VOID, value ? 1 : 0, &id, 0, 0);
    trace_dead(t);
    return SK_OK;
}
