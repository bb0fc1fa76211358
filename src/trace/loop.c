/* loop.c - sk.range and sk.while_. The shapes they make are at the head of scope.c. */
#include "trace/internal.h"

/* ---- range: types ---------------------------------------------------------------------------------------------------- */

static bool is_signed(enum scalar s)
{
    return scalar_info[s].class_ == CLASS_S;
}

static uint64_t largest(enum scalar s)
{
    return ~(uint64_t)0 >> (64 - scalar_info[s].bits + is_signed(s));
}

/* The value of a constant, sign-extended if its type is signed. */
static uint64_t constant_value(const struct trace *t, uint32_t id)
{
    const struct node *const x = ir_at(t->m, id);
    const unsigned bits = scalar_info[x->type].bits;
    if (is_signed((enum scalar)x->type) && bits < 64 && (x->imm >> (bits - 1)))
        return x->imm | ~(uint64_t)0 << bits;
    return x->imm;
}

/* The variable's type: the common type of the typed bounds; else u32 if start and stop are not negative and the step is
 * positive, else i32. An unsigned bound beside a negative number makes it signed: *narrowed, the bound is checked then. */
static sk_status range_type(struct trace *t, const struct tv v[3], enum scalar *out, bool *narrowed, sk_error *err)
{
    struct tv typed[3];
    unsigned n = 0;
    bool negative = false;
    *narrowed = false;
    for (unsigned k = 0; k < 3; k++) {
        if (v[k].kind == TV_FLOAT)
            return FAIL(t, err, NOT_AN_INTEGER, "a bound of sk.range", "a float");
        if (v[k].kind != TV_VALUE) {
            negative |= v[k].negative;
            continue;
        }
        const ir_type type = trace_node_type(t, v[k].id);
        if (ir_type_width(type) != 1 || !(ir_type_class(t->m, type) & CLASS_BSU))
            return FAIL(t, err, NOT_AN_INTEGER, "a bound of sk.range", trace_type_text(t, type).at);
        typed[n++] = v[k];
    }
    if (n == 0) {
        *out = negative ? S_I32 : S_U32;
        return SK_OK;
    }
    ir_type type;
    TRY(trace_common(t, MIX_NUMBER | MIX_PROMOTE | MIX_SIGN, "sk.range", n, typed, &type, err));
    *out = (enum scalar)type;
    if (negative && !is_signed(*out)) {
        *narrowed = scalar_info[*out].bits >= 32;
        *out = scalar_info[*out].bits == 64 ? S_I64 : S_I32;
    }
    return SK_OK;
}

/* A bound as a node of the variable's type. Where that has the bound's width but a sign, a larger bound faults. */
static sk_status range_bound(struct trace *t, struct tv v, enum scalar s, bool narrowed, uint32_t *out, sk_error *err)
{
    if (v.kind != TV_VALUE)
        return trace_weak(t, v, s, out, err);
    const enum scalar from = (enum scalar)trace_node_type(t, v.id);
    if (narrowed && scalar_info[from].class_ == CLASS_U && scalar_info[from].bits == scalar_info[s].bits) {
        const uint32_t fits = ir_op2(&t->b, OP_LE, v.id, ir_const(t->m, (ir_type)from, largest(s)));
        if (!ir_is_const(t->m, fits)) {
            const uint32_t text =
                ir_string(t->m, "a bound of sk.range is past the largest signed integer of its width");
            (void)ir_node(&t->b, OP_ASSERT, TYPE_VOID, 1, &fits, 0, text);
        } else if (!ir_at(t->m, fits)->imm) {
            return FAIL(t, err, RANGE_BOUND, scalar_info[s].name);
        }
    }
    *out = ir_convert(&t->b, (ir_type)s, v.id);
    return SK_OK;
}

/* ---- range: can the variable wrap ------------------------------------------------------------------------------------ */

#define MAX_THREADGROUP 1024u /* threads; every count and position inside a threadgroup is at most that */

static bool attribute_at_most(const struct trace *t, uint32_t param, uint64_t limit)
{
    const struct func *const f = &t->m->funcs.at[t->b.func];
    const unsigned a = t->m->params.at[f->first_param + ir_at(t->m, param)->imm].attribute;
    const bool grid = a == ATTR_NONE || attr_info[a].family == FAMILY_GRID || a == ATTR_THREADGROUP_POSITION_IN_GRID ||
                      a == ATTR_THREADGROUPS_PER_GRID;
    return !grid && limit >= MAX_THREADGROUP;
}

/* Proves that an integer is at most `limit`, which its type can hold. Simple shapes only: a constant, what comes from a
 * narrower type, positions in a threadgroup, x & c, min(x, c), x % c, x // c, (x // c) * c, x >> c. */
static bool at_most(const struct trace *t, uint32_t id, uint64_t limit, unsigned depth)
{
    const struct node *const x = ir_at(t->m, id);
    const uint32_t *const in = ir_in(t->m, id);
    const enum scalar s = (enum scalar)x->type;
    if (x->op == OP_CONST)
        return (is_signed(s) && constant_value(t, id) >> 63) || constant_value(t, id) <= limit;
    if (largest(s) <= limit)
        return true;
    if (x->op == OP_PARAM)
        return attribute_at_most(t, id, limit);
    if (x->op == OP_EXTRACT)
        return ir_at(t->m, in[0])->op == OP_PARAM && attribute_at_most(t, in[0], limit);
    if (depth == 0)
        return false;
    depth--;
    if (x->op == OP_CONVERT) {
        const enum scalar from = (enum scalar)trace_node_type(t, in[0]);
        if (scalar_info[from].class_ == CLASS_B)
            return limit >= 1;
        if (scalar_info[from].class_ == CLASS_F ||
            (is_signed(from) && (!is_signed(s) || scalar_info[from].bits > scalar_info[s].bits)))
            return false;
        return largest(from) <= limit || at_most(t, in[0], limit, depth);
    }
    if (x->op == OP_MIN)
        return at_most(t, in[0], limit, depth) || at_most(t, in[1], limit, depth);
    if (x->op == OP_AND)
        return !is_signed(s) && (at_most(t, in[0], limit, depth) || at_most(t, in[1], limit, depth));
    if (x->n != 2 || !ir_is_const(t->m, in[1]))
        return false;
    const uint64_t c = constant_value(t, in[1]);
    if (c == 0 || (is_signed(s) && c >> 63))
        return false;
    if (x->op == OP_REM_FLOOR)
        return c - 1 <= limit;
    if (x->op == OP_DIV_FLOOR)
        return largest(s) / c <= limit;
    if (x->op == OP_SHR)
        return largest(s) >> (c & (scalar_info[s].bits - 1u)) <= limit;
    if (x->op == OP_MUL) /* a negative x gives a negative product unless that wraps */
        return !is_signed(s) && at_most(t, in[0], limit / c, depth);
    return false;
}

/* Whether counting from start to stop by the constant step cannot pass the type's ends. */
static bool cannot_wrap(const struct trace *t, uint32_t stop, uint64_t step, enum scalar s)
{
    const bool down = is_signed(s) && step >> 63;
    const uint64_t beyond = (down ? 0 - step : step) - 1; /* the variable ends at most this far past stop */
    if (beyond == 0)
        return true;
    if (!down)
        return at_most(t, stop, largest(s) - beyond, 8);
    if (!ir_is_const(t->m, stop))
        return false;
    const uint64_t above_smallest = constant_value(t, stop) + largest(s) + 1; /* stop - smallest */
    return above_smallest >= beyond;
}

/* ---- range: the loop ------------------------------------------------------------------------------------------------- */

static enum scalar unsigned_of(enum scalar s)
{
    return is_signed(s) ? (enum scalar)(s + 1) : s;
}

/* A step of 0 that only the launch knows runs no iteration and faults, by an assert before the loop. */

/* How often the loop runs, exactly, in the unsigned type: (distance - 1) / |step| + 1 where there is a distance. */
static uint32_t count_up(struct trace *t, uint32_t from, uint32_t to, uint32_t step, enum scalar u)
{
    const uint32_t one = ir_const(t->m, (ir_type)u, 1);
    const uint32_t there = ir_op2(&t->b, OP_LT, from, to);
    const uint32_t a = ir_convert(&t->b, (ir_type)u, from), b = ir_convert(&t->b, (ir_type)u, to);
    const uint32_t distance = a == ir_zero(t->m, (ir_type)u) ? b : ir_op2(&t->b, OP_SUB, b, a);
    const uint32_t last = ir_op2(&t->b, OP_SUB, distance, one);
    const uint32_t n = ir_op2(&t->b, OP_ADD, ir_op2(&t->b, OP_DIV_TRUNC, last, step), one);
    return ir_op3(&t->b, OP_SELECT, there, n, ir_zero(t->m, (ir_type)u));
}

static uint32_t assert_step(struct trace *t, uint32_t step, enum scalar s)
{
    const uint32_t nonzero = ir_op2(&t->b, OP_NE, step, ir_zero(t->m, (ir_type)s));
    (void)ir_node(&t->b, OP_ASSERT, TYPE_VOID, 1, &nonzero, 0, ir_string(t->m, "the step of sk.range is not 0"));
    return nonzero;
}

static uint32_t trip_count(struct trace *t, const uint32_t bounds[3], enum scalar s)
{
    const enum scalar u = unsigned_of(s);
    const uint32_t zero = ir_zero(t->m, (ir_type)s);
    if (ir_is_const(t->m, bounds[2])) {
        const uint64_t step = constant_value(t, bounds[2]);
        const bool down = is_signed(s) && step >> 63;
        const uint32_t by = ir_const(t->m, (ir_type)u, down ? 0 - step : step);
        return down ? count_up(t, bounds[1], bounds[0], by, u) : count_up(t, bounds[0], bounds[1], by, u);
    }
    const uint32_t by = ir_convert(&t->b, (ir_type)u, bounds[2]);
    const uint32_t up = count_up(t, bounds[0], bounds[1], by, u);
    const uint32_t nonzero = assert_step(t, bounds[2], s);
    const uint32_t none = ir_zero(t->m, (ir_type)u);
    const uint32_t back = ir_op1(&t->b, OP_NEG, by);
    const uint32_t down = count_up(t, bounds[1], bounds[0], back, u);
    const uint32_t is_up = ir_op2(&t->b, OP_GT, bounds[2], zero);
    return ir_op3(&t->b, OP_SELECT, is_up, up, ir_op3(&t->b, OP_SELECT, nonzero, down, none));
}

/* Sizes that a launch fills in are at least 1. */
static bool is_size(const struct trace *t, uint32_t id)
{
    while (ir_at(t->m, id)->op == OP_EXTRACT || ir_at(t->m, id)->op == OP_CONVERT)
        id = ir_in(t->m, id)[0];
    const struct node *const x = ir_at(t->m, id);
    if (x->op != OP_PARAM)
        return false;
    const unsigned a = t->m->params.at[t->m->funcs.at[t->b.func].first_param + x->imm].attribute;
    return a == ATTR_THREAD_EXECUTION_WIDTH || (a && strstr(attr_info[a].metal, "s_per_"));
}

static bool steps_down(const struct trace *t, uint32_t step)
{
    return ir_is_const(t->m, step) && is_signed((enum scalar)trace_node_type(t, step)) && constant_value(t, step) >> 63;
}

static enum range_form range_form(const struct trace *t, const uint32_t bounds[3], enum scalar s)
{
    if (!ir_is_const(t->m, bounds[2])) /* the sign of a step that only the launch knows decides the direction */
        return is_signed(s) ? RANGE_COUNTED : RANGE_CLIPPED;
    return cannot_wrap(t, bounds[1], constant_value(t, bounds[2]), s) ? RANGE_PLAIN : RANGE_CLIPPED;
}

/* Where the variable of a loop that is not counted starts: at stop, so that nothing runs, if its step turns out 0. */
static uint32_t range_start(struct trace *t, const uint32_t bounds[3], enum scalar s)
{
    if (ir_is_const(t->m, bounds[2]) || is_size(t, bounds[2]))
        return bounds[0];
    const uint32_t nonzero = assert_step(t, bounds[2], s);
    return ir_op3(&t->b, OP_SELECT, nonzero, bounds[0], bounds[1]);
}

sk_status trace_range(struct trace *t, struct tv start, struct tv stop, struct tv step, struct tv *var, uint32_t *scope,
                      sk_error *err)
{
    struct tv v[3];
    uint32_t bounds[3];
    enum scalar s = S_VOID;
    bool narrowed;
    struct scope *sc;
    TRY(trace_use(t, start, &v[0], err));
    TRY(trace_use(t, stop, &v[1], err));
    TRY(trace_use(t, step, &v[2], err));
    if (v[2].kind != TV_VALUE && v[2].kind != TV_FLOAT && v[2].magnitude == 0)
        return FAIL(t, err, RANGE_STEP);
    TRY(range_type(t, v, &s, &narrowed, err));
    for (unsigned k = 0; k < 3; k++)
        TRY(range_bound(t, v[k], s, narrowed, &bounds[k], err));
    if (ir_is_const(t->m, bounds[2]) && constant_value(t, bounds[2]) == 0)
        return FAIL(t, err, RANGE_STEP);
    TRY(trace_push(t, SCOPE_KIND_RANGE, 4, &sc, err));
    memcpy(sc->bounds, bounds, sizeof bounds);
    sc->form = (uint8_t)range_form(t, bounds, s);
    const bool counted = sc->form == RANGE_COUNTED;
    uint32_t first[2] = {counted ? trip_count(t, bounds, s) : range_start(t, bounds, s), bounds[0]};
    const uint32_t loop = ir_construct(&t->b, OP_LOOP, counted ? 2 : 1, first, 1);
    sc->construct = sc->head = loop;
    t->b.region = ir_region(t->m, loop, 0);
    const uint32_t head = ir_arg(t->m, loop, 0);
    const enum op compare = counted ? OP_NE : steps_down(t, bounds[2]) ? OP_GT : OP_LT;
    const uint32_t against = counted ? ir_zero(t->m, trace_node_type(t, head)) : bounds[1];
    const uint32_t cond = ir_op2(&t->b, compare, head, against);
    sc->test = ir_construct(&t->b, OP_IF, 1, &cond, 2);
    t->b.region = ir_region(t->m, sc->test, 0);
    *var = trace_value(t, ir_arg(t->m, loop, counted ? 1 : 0));
    *scope = sc->id;
    return SK_OK;
}

/* Whether the end of the body is reached: its last line, or a continue. */
static bool repeats(const struct trace *t, const struct scope *s)
{
    return s->continue_block || !trace_is_dead_end(t);
}

/* i plus the step, but not past stop: the distance to stop, taken in the unsigned type, never wraps. */
static uint32_t clipped_step(struct trace *t, struct ir_builder *b, uint32_t i, const uint32_t bounds[3])
{
    const ir_type s = trace_node_type(t, i), u = (ir_type)unsigned_of((enum scalar)s);
    const bool down = steps_down(t, bounds[2]);
    const uint32_t from = ir_convert(b, u, down ? bounds[1] : i), to = ir_convert(b, u, down ? i : bounds[1]);
    const uint32_t by = down ? ir_const(t->m, u, 0 - constant_value(t, bounds[2])) : ir_convert(b, u, bounds[2]);
    const uint32_t step = ir_op2(b, OP_MIN, by, ir_op2(b, OP_SUB, to, from));
    return ir_op2(b, down ? OP_SUB : OP_ADD, i, ir_convert(b, s, step));
}

void trace_end_range(struct trace *t, const struct scope *s)
{
    if (!repeats(t, s))
        return;
    struct ir_builder b = t->b;
    b.region = ir_region(t->m, s->test, 0);
    b.place = s->place;
    uint32_t next[2];
    unsigned n = 0;
    if (s->form == RANGE_COUNTED) {
        const uint32_t left = ir_arg(t->m, s->construct, 0);
        next[n++] = ir_op2(&b, OP_SUB, left, ir_const(t->m, trace_node_type(t, left), 1));
    }
    const uint32_t i = ir_arg(t->m, s->construct, n);
    next[n] = s->form == RANGE_CLIPPED ? clipped_step(t, &b, i, s->bounds) : ir_op2(&b, OP_ADD, i, s->bounds[2]);
    (void)ir_br(&b, s->construct, n + 1, next);
}

/* ---- while ----------------------------------------------------------------------------------------------------------- */

static void open_while(struct trace *t, struct scope *s)
{
    s->construct = s->head = ir_construct(&t->b, OP_LOOP, 0, NULL, 1);
    t->b.region = ir_region(t->m, s->construct, 0);
}

/* The condition has been traced in the loop's region: the body follows. */
static sk_status enter_body(struct trace *t, struct scope *s, struct tv cond, sk_error *err)
{
    uint32_t id;
    TRY(trace_use(t, cond, &cond, err));
    TRY(trace_condition(t, cond, false, &id, err));
    s->kind = SCOPE_KIND_WHILE;
    s->test = ir_construct(&t->b, OP_IF, 1, &id, 2);
    t->b.region = ir_region(t->m, s->test, 0);
    return SK_OK;
}

sk_status trace_while_begin(struct trace *t, uint32_t *scope, sk_error *err)
{
    struct scope *s;
    TRY(trace_open(t, err));
    TRY(trace_push(t, SCOPE_KIND_WHILE_HEAD, 4, &s, err));
    open_while(t, s);
    *scope = s->id;
    return SK_OK;
}

sk_status trace_while_cond(struct trace *t, uint32_t scope, struct tv cond, sk_error *err)
{
    struct scope *s;
    TRY(trace_innermost(t, scope, &s, err));
    if (s->kind != SCOPE_KIND_WHILE_HEAD)
        return FAIL(t, err, BLOCK_INCOMPLETE);
    return enter_body(t, s, cond, err);
}

/* ---- while: a condition already traced ---------------------------------------------------------------------------------
 *
 * The nodes of the statement itself (those of its lines at the end of the region) move into the loop and are computed at
 * each iteration. Anything earlier is a value: `frozen` notes what it read, and the end of the body compares that with
 * what the body writes. */

static bool of_statement(const struct trace *t, uint32_t id)
{
    const struct place *const p = &t->m->places.at[ir_at(t->m, id)->place];
    return t->file != 0 && p->file == t->file_strings.at[t->file] && p->line >= t->line && p->line <= t->last_line;
}

static bool is_replayable(const struct trace *t, uint32_t id)
{
    const struct node *const x = ir_at(t->m, id);
    const enum op_effect effect = (enum op_effect)op_info[x->op].effect;
    if (x->op == OP_CALL)
        return x->type != TYPE_VOID && !(t->funcs.at[x->imm].effects & (FX_ATOMIC | FX_COLLECTIVE | FX_BARRIER));
    if (x->op == OP_IF) {
        for (unsigned k = 0; k < 2; k++)
            IR_EACH(t->m, ir_region(t->m, id, k), inner)
        if (ir_at(t->m, inner)->op != OP_YIELD && !is_replayable(t, inner))
            return false;
        return ir_n_results(t->m, id) > 0;
    }
    return effect == EFFECT_PURE || effect == EFFECT_READ;
}

/* The first node of the statement's expression, at the end of the region; 0 if the condition is not part of it. */
static uint32_t statement_start(const struct trace *t, uint32_t cond)
{
    uint32_t first = 0;
    bool found = false;
    for (uint32_t id = ir_region_at(t->m, t->b.region)->last; id; id = ir_at(t->m, id)->prev) {
        if (!of_statement(t, id) || !is_replayable(t, id))
            break;
        found |= id == cond;
        first = id;
    }
    return found ? first : 0;
}

static uint32_t memory_root(const struct trace *t, uint32_t pointer)
{
    while (ir_at(t->m, pointer)->op == OP_INDEX || ir_at(t->m, pointer)->op == OP_FIELD)
        pointer = ir_in(t->m, pointer)[0];
    return pointer;
}

static void note_frozen(struct trace *t, uint32_t source, uint32_t value)
{
    VEC_PUSH(t->mem, &t->frozen, ((struct frozen){source, value}));
}

/* Notes what a node reads itself. */
static void note_reads(struct trace *t, uint32_t id, uint32_t value)
{
    const struct node x = *ir_at(t->m, id);
    if (x.op == OP_GET)
        note_frozen(t, x.in[0], value);
    else if (x.op == OP_LOAD || op_info[x.op].effect == EFFECT_ATOMIC)
        note_frozen(t, memory_root(t, ir_in(t->m, id)[0]), value);
    else if (x.op == OP_CALL)
        for (unsigned k = 0; k < x.n; k++)
            if (ir_type_is_pointer(trace_node_type(t, ir_in(t->m, id)[k])))
                note_frozen(t, memory_root(t, ir_in(t->m, id)[k]), value);
}

/* Marks the nodes from `id` to the end of their region, with all that they hold. */
static void mark_statement(struct trace *t, uint32_t id)
{
    for (; id; id = ir_at(t->m, id)->next) {
        (void)trace_seen(t, id);
        if (ir_is_construct(ir_at(t->m, id)->op))
            for (unsigned r = 0; r < ir_n_regions(t->m, id); r++)
                mark_statement(t, ir_region_at(t->m, ir_region(t->m, id, r))->first);
    }
}

/* Puts a node on the work list with the earlier value through which it was reached: itself, if it is the first outside the
 * nodes marked with `replayed`; 0 for these. */
static void visit(struct trace *t, uint32_t id, uint32_t value, uint32_t replayed)
{
    if (ir_at(t->m, id)->region == 0 ||
        ir_at(t->m, id)->op == OP_VAR) /* what a local began with is no part of its value */
        return;
    if (!value && t->mark.at[id] != replayed)
        value = id;
    if (trace_seen(t, id))
        return;
    VEC_PUSH(t->mem, &t->work, id);
    VEC_PUSH(t->mem, &t->work, value);
}

/* Walks from the condition to all that it depends on, and notes what earlier values read. `first` begins the nodes that
 * will be replayed, 0: none. */
static sk_status note_dependencies(struct trace *t, uint32_t cond, uint32_t first, sk_error *err)
{
    const uint32_t base = t->work.n;
    bool atomic = false;
    trace_walk(t);
    mark_statement(t, first);
    const uint32_t replayed = t->mark_now;
    trace_walk(t);
    visit(t, cond, 0, replayed);
    while (t->work.n > base) {
        const uint32_t value = t->work.at[--t->work.n];
        const uint32_t id = t->work.at[--t->work.n];
        const uint16_t op = ir_at(t->m, id)->op;
        if (value) {
            if (value == id && of_statement(t, id))
                atomic |= op == OP_CALL
                              ? !is_replayable(t, id)
                              : op_info[op].effect == EFFECT_ATOMIC || op_info[op].effect == EFFECT_CONVERGENT;
            note_reads(t, id, value);
        }
        for (unsigned k = 0; k < ir_at(t->m, id)->n; k++)
            visit(t, ir_in(t->m, id)[k], value, replayed);
        if (ir_is_construct(op))
            for (unsigned r = 0; r < ir_n_regions(t->m, id); r++)
                IR_EACH(t->m, ir_region(t->m, id, r), inner)
        visit(t, inner, value, replayed);
    }
    return atomic ? FAIL(t, err, WHILE_ATOMIC) : SK_OK;
}

sk_status trace_while(struct trace *t, struct tv cond, uint32_t *scope, sk_error *err)
{
    struct scope *s;
    TRY(trace_open(t, err));
    if (cond.kind == TV_LOCAL)
        TRY(trace_use_local(t, cond, err));
    else
        TRY(trace_use(t, cond, &cond, err));
    if (!tv_is_weak(cond) && ir_type_width(trace_node_type(t, cond.id)) != 1)
        return FAIL(t, err, NOT_A_CONDITION, trace_type_text(t, trace_node_type(t, cond.id)).at);
    const uint32_t frozen = t->frozen.n;
    uint32_t first = 0;
    if (cond.kind == TV_VALUE) {
        first = statement_start(t, cond.id);
        const sk_status status = note_dependencies(t, cond.id, first, err);
        if (status != SK_OK) {
            t->frozen.n = frozen;
            return status;
        }
    }
    TRY(trace_push(t, SCOPE_KIND_WHILE, 4, &s, err));
    s->first_frozen = frozen;
    open_while(t, s);
    trace_move(t, first, s->construct, t->b.region);
    TRY(enter_body(t, s, cond, err));
    *scope = s->id;
    return SK_OK;
}

/* Does the node write what is noted from `frozen` on? The noted value, or 0. */
static uint32_t writes_frozen(const struct trace *t, uint32_t id, uint32_t frozen)
{
    const struct node *const x = ir_at(t->m, id);
    const enum op_effect effect = (enum op_effect)op_info[x->op].effect;
    const bool call = x->op == OP_CALL && (t->funcs.at[x->imm].effects & FX_WRITE);
    if (!call && effect != EFFECT_WRITE && (effect != EFFECT_ATOMIC || x->op == OP_ATOMIC_LOAD || x->n == 0))
        return 0;
    for (unsigned k = 0; k < (call ? x->n : 1u); k++) {
        const uint32_t to = memory_root(t, ir_in(t->m, id)[k]); /* of a local: itself */
        for (uint32_t f = frozen; f < t->frozen.n; f++)
            if (t->frozen.at[f].source == to)
                return t->frozen.at[f].node;
    }
    return 0;
}

sk_status trace_end_while(struct trace *t, const struct scope *s, sk_error *err)
{
    const uint32_t base = t->work.n;
    uint32_t wrong = 0;
    if (s->first_frozen && s->first_frozen < t->frozen.n) {
        VEC_PUSH(t->mem, &t->work, ir_region(t->m, s->construct, 0));
        while (t->work.n > base && !wrong) {
            const uint32_t region = t->work.at[--t->work.n];
            IR_EACH(t->m, region, id)
            {
                wrong = wrong ? wrong : writes_frozen(t, id, s->first_frozen);
                if (ir_is_construct(ir_at(t->m, id)->op))
                    for (unsigned r = 0; r < ir_n_regions(t->m, id); r++)
                        VEC_PUSH(t->mem, &t->work, ir_region(t->m, id, r));
            }
        }
        t->work.n = base;
    }
    if (wrong)
        return ERR_AT(err, ir_err_place(t->m, s->place), WHILE_FROZEN,
                      ir_err_place(t->m, ir_at(t->m, wrong)->place).line);
    if (repeats(t, s)) {
        struct ir_builder b = t->b;
        b.region = ir_region(t->m, s->test, 0);
        b.place = s->place;
        (void)ir_br(&b, s->construct, 0, NULL);
    }
    return SK_OK;
}
