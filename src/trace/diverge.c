/* diverge.c - barriers, and the one kind of divergence that is refused while tracing.
 *
 * A barrier is refused where it is divergent for every legal threadgroup size. A group of one thread cannot diverge, so
 * the sizes meant are those with two threads or more. All of them have a thread 0 and a second thread, whose indices in
 * the threadgroup, in its simdgroup and in its quadgroup are 1 and whose position is (1, 0, 0) - or (0, 1, 0) or
 * (0, 0, 1) where the group is one thread wide, which a kernel that declares a position of one component is not launched
 * with. A barrier is refused when, by conditions that are functions of these numbers and of constants alone, one of the
 * two does not arrive, whatever the second one's position, and nothing excludes that the other does. So `index == 0` and
 * `index % 2 == 0` are refused; `index < 32`, `x > n` and a condition read from memory are not. A function that has
 * returned from inside a block is left alone: the thread that does not arrive may have ended before.
 */
#include "trace/internal.h"

struct thread {
    bool second;
    unsigned axis;   /* of the second thread's position */
    unsigned budget; /* nodes that may still be looked at */
};

/* ---- what is known of a thread ------------------------------------------------------------------------------------------ */

static bool attribute_value(const struct trace *t, uint32_t param, unsigned component, const struct thread *who,
                            uint64_t *out)
{
    const struct func *const f = &t->m->funcs.at[t->b.func];
    switch ((enum attribute)t->m->params.at[f->first_param + ir_at(t->m, param)->imm].attribute) {
    case ATTR_THREAD_POSITION_IN_THREADGROUP: *out = who->second && who->axis == component; return true;
    case ATTR_THREAD_INDEX_IN_THREADGROUP:
    case ATTR_THREAD_INDEX_IN_SIMDGROUP:
    case ATTR_THREAD_INDEX_IN_QUADGROUP: *out = who->second; return true;
    case ATTR_SIMDGROUP_INDEX_IN_THREADGROUP:
    case ATTR_QUADGROUP_INDEX_IN_THREADGROUP: *out = 0; return true;
    case ATTR_THREADS_PER_SIMDGROUP:
    case ATTR_THREAD_EXECUTION_WIDTH: *out = 32; return true;
    case ATTR_NONE:
    case ATTR_THREAD_POSITION_IN_GRID:
    case ATTR_THREADS_PER_GRID:
    case ATTR_THREADGROUP_POSITION_IN_GRID:
    case ATTR_THREADS_PER_THREADGROUP:
    case ATTR_DISPATCH_THREADS_PER_THREADGROUP:
    case ATTR_THREADGROUPS_PER_GRID:
    case ATTR_SIMDGROUPS_PER_THREADGROUP:
    case ATTR_DISPATCH_SIMDGROUPS_PER_THREADGROUP:
    case ATTR_QUADGROUPS_PER_THREADGROUP:
    case ATTR_DISPATCH_QUADGROUPS_PER_THREADGROUP:
    case ATTR_COUNT: return false;
    }
    return false;
}

/* The scalar's bits for that thread, if constants and attributes decide them. */
static bool value_for(const struct trace *t, uint32_t id, struct thread *who, uint64_t *out)
{
    const struct node *const x = ir_at(t->m, id);
    const uint32_t *const in = ir_in(t->m, id);
    if (who->budget == 0 || ir_type_width(x->type) != 1)
        return false;
    who->budget--;
    if (x->op == OP_CONST) {
        *out = x->imm;
        return true;
    }
    if (x->op == OP_PARAM)
        return attribute_value(t, id, 0, who, out);
    if (x->op == OP_EXTRACT)
        return ir_at(t->m, in[0])->op == OP_PARAM && attribute_value(t, in[0], (unsigned)x->imm, who, out);
    const uint8_t rule = op_info[x->op].rule;
    if (op_info[x->op].effect != EFFECT_PURE || x->n == 0 || x->n > 3 ||
        (x->op != OP_CONVERT && rule != RULE_SAME && rule != RULE_COMPARE && rule != RULE_SHIFT && rule != RULE_SELECT))
        return false;
    uint64_t v[3] = {0};
    bool known[3] = {false};
    unsigned n_known = 0;
    for (unsigned k = 0; k < x->n; k++)
        n_known += known[k] = value_for(t, in[k], who, &v[k]);
    if (n_known < x->n) { /* false & anything, true | anything */
        const uint64_t decides = x->op == OP_OR;
        if (x->type != TYPE_BOOL || (x->op != OP_AND && x->op != OP_OR))
            return false;
        for (unsigned k = 0; k < 2; k++)
            if (known[k] && v[k] == decides) {
                *out = decides;
                return true;
            }
        return false;
    }
    const enum scalar s = ir_type_scalar(trace_node_type(t, in[0]));
    *out = ir_scalar_eval((enum op)x->op, s, ir_type_scalar(x->type), x->flags, v[0], v[1], v[2]);
    return true;
}

/* ---- does it arrive ------------------------------------------------------------------------------------------------------ */

#define BUDGET 256u

/* A range whose bounds say that this thread does not enter it at all. */
static bool skips_range(const struct trace *t, const struct scope *s, struct thread who)
{
    uint64_t v[3];
    who.budget = BUDGET;
    for (unsigned k = 0; k < 3; k++)
        if (!value_for(t, s->bounds[k], &who, &v[k]))
            return false;
    const enum scalar type = ir_type_scalar(trace_node_type(t, s->bounds[0]));
    const bool down = ir_scalar_eval(OP_LT, type, S_BOOL, 0, v[2], 0, 0) != 0;
    return ir_scalar_eval(down ? OP_LE : OP_GE, type, S_BOOL, 0, v[0], v[1], 0) != 0;
}

/* Whether the thread is known not to come here: a condition on the way is known to send it elsewhere. */
static bool stays_away(const struct trace *t, struct thread who)
{
    for (uint32_t r = t->b.region; r; r = ir_parent_region(t->m, r)) {
        const uint32_t owner = ir_region_at(t->m, r)->owner;
        if (!owner || ir_at(t->m, owner)->op != OP_IF)
            continue;
        uint64_t cond;
        who.budget = BUDGET;
        if (value_for(t, ir_in(t->m, owner)[0], &who, &cond) && (cond == 0) == (r == ir_region(t->m, owner, 0)))
            return true;
    }
    for (uint32_t k = t->frames.at[t->frames.n - 1].first_scope; k < t->scopes.n; k++)
        if (t->scopes.at[k].kind == SCOPE_KIND_RANGE && skips_range(t, &t->scopes.at[k], who))
            return true;
    return false;
}

/* Components of the widest position or size that the kernel declares. */
static unsigned dimensions(const struct trace *t)
{
    const struct func *const f = &t->m->funcs.at[t->b.func];
    unsigned most = 1;
    for (uint32_t k = 0; k < f->n_params; k++) {
        const struct param *const p = &t->m->params.at[f->first_param + k];
        if (p->kind == PARAM_ATTRIBUTE && ir_type_width(p->type) > most)
            most = ir_type_width(p->type);
    }
    return most;
}

sk_status trace_converged(struct trace *t, const char *what, sk_error *err)
{
    const struct frame *const frame = trace_frame(t);
    if (t->dead || frame->returns || t->scopes.n == frame->first_scope)
        return SK_OK;
    const bool first_away = stays_away(t, (struct thread){.second = false});
    for (unsigned axis = 0; axis < dimensions(t); axis++)
        if (stays_away(t, (struct thread){.second = true, .axis = axis}) == first_away)
            return SK_OK;
    return FAIL(t, err, BARRIER_DIVERGENT, what);
}

/* ---- barriers ------------------------------------------------------------------------------------------------------------ */

sk_status trace_barrier(struct trace *t, enum op op, unsigned memory, sk_error *err)
{
    TRY(trace_open(t, err));
    if (memory > 15)
        return FAIL(t, err, BARRIER_MEMORY);
    if (op == OP_BARRIER) {
        TRY(trace_converged(t, op_info[op].msl, err));
        trace_effect(t, FX_BARRIER);
    } else {
        trace_effect(t, FX_COLLECTIVE);
    }
    (void)ir_node(&t->b, op, TYPE_VOID, 0, NULL, memory << NODE_MEMORY_SHIFT, 0);
    return SK_OK;
}
