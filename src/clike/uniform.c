/* uniform.c - which values are the same in all lanes that are active where they are used.
 *
 * Everything is uniform until shown to vary; one visit after the other finds what varies because something else does,
 * until nothing is added. A construct varies if lanes may take different ways through it, or leave it at different times:
 * what is assigned below it, or carried out of it, then varies too. Lanes that return are gone, and vary nothing.
 */
#include "clike/internal.h"

static bool varies(const struct clike *p, uint32_t id)
{
    const struct node *const x = ir_at(p->m, id);
    if (x->op == OP_CONST || x->op == OP_ZERO)
        return false;
    if (x->op != OP_PARAM)
        return p->v[id].varies;
    const struct func *const f = &p->m->funcs.at[p->func];
    const struct param *const q = &p->m->params.at[f->first_param + x->imm];
    return !f->kernel || (q->kind == PARAM_ATTRIBUTE && attr_info[q->attribute].uniform == UNIFORM_V);
}

static uint32_t owner_of(const struct clike *p, uint32_t id)
{
    return ir_region_at(p->m, ir_at(p->m, id)->region)->owner;
}

static bool mark(struct clike *p, uint32_t id)
{
    const bool was = p->v[id].varies;
    p->v[id].varies = true;
    return !was;
}

/* Does a construct around the node, inside region `end`, vary? */
static bool below_varying(const struct clike *p, uint32_t id, uint32_t end)
{
    for (; id && ir_at(p->m, id)->region != end; id = owner_of(p, id))
        if (owner_of(p, id) && p->v[owner_of(p, id)].varies)
            return true;
    return false;
}

/* An exit that not all lanes take: all it leaves is left at different times. */
static bool mark_left(struct clike *p, uint32_t br)
{
    const uint32_t target = (uint32_t)ir_at(p->m, br)->imm;
    bool changed = false, some = false;
    for (uint32_t c = owner_of(p, br); c && c != target; c = owner_of(p, c)) {
        some = some || p->v[c].varies;
        if (some)
            changed |= mark(p, c);
    }
    return some ? mark(p, target) | changed : false;
}

/* Values that an exit carries to variables. */
static bool mark_carried(struct clike *p, uint32_t id, uint32_t to)
{
    bool changed = false;
    for (unsigned k = 0; k < ir_at(p->m, id)->n; k++, to = ir_at(p->m, to)->next)
        if (varies(p, ir_in(p->m, id)[k]))
            changed |= mark(p, to);
    return changed;
}

static bool reduces(enum op op)
{
    const enum op simd = op >= OP_QUAD_SUM ? (enum op)((int)op - (int)OP_QUAD_SUM + (int)OP_SIMD_SUM) : op;
    const bool quad = op >= OP_QUAD_SUM; /* the same in four lanes only */
    return !quad && ((simd >= OP_SIMD_SUM && simd <= OP_SIMD_XOR) || simd == OP_SIMD_BROADCAST ||
                     simd == OP_SIMD_BROADCAST_FIRST || simd == OP_SIMD_ALL || simd == OP_SIMD_ANY ||
                     simd == OP_SIMD_BALLOT || simd == OP_SIMD_ACTIVE);
}

static bool visit(struct clike *p, uint32_t id)
{
    const struct node *const x = ir_at(p->m, id);
    const uint32_t *const in = ir_in(p->m, id);
    bool any = false;
    for (unsigned k = 0; k < x->n && x->op != OP_RESULT; k++)
        any = any || varies(p, in[k]);
    switch ((unsigned)x->op) {
    case OP_IF:
    case OP_SWITCH: return any && mark(p, id);
    case OP_BLOCK: return false;
    case OP_LOOP: return mark_carried(p, id, ir_region_at(p->m, ir_region(p->m, id, 0))->first);
    case OP_ARG:
    case OP_RESULT: return p->v[x->op == OP_ARG ? owner_of(p, id) : x->in[0]].varies && mark(p, id);
    case OP_BR: {
        const uint32_t target = (uint32_t)x->imm;
        const bool loop = ir_at(p->m, target)->op == OP_LOOP;
        const bool left = mark_left(p, id);
        return mark_carried(p, id,
                            loop ? ir_region_at(p->m, ir_region(p->m, target, 0))->first : ir_at(p->m, target)->next) |
               left;
    }
    case OP_YIELD: return mark_carried(p, id, ir_at(p->m, owner_of(p, id))->next);
    case OP_SET: return (varies(p, in[1]) || below_varying(p, id, ir_at(p->m, in[0])->region)) && mark(p, in[0]);
    case OP_LOAD: return (any || ir_at(p->m, in[0])->type != TYPE_POINTER(SPACE_CONSTANT)) && mark(p, id);
    case OP_CALL:
    case OP_ALLOC: return mark(p, id);
    }
    if (op_info[x->op].effect == EFFECT_ATOMIC ||
        (op_info[x->op].effect == EFFECT_CONVERGENT && !reduces((enum op)x->op)))
        return mark(p, id);
    if (op_info[x->op].effect == EFFECT_CONVERGENT || x->type == TYPE_VOID)
        return false;
    return any && mark(p, id);
}

bool clike_uniform(struct clike *p, uint32_t id)
{
    for (bool changed = !p->uniform_known; changed;) {
        changed = false;
        for (uint32_t k = 0; k < p->order.n; k++)
            changed |= visit(p, p->order.at[k]);
    }
    p->uniform_known = true;
    return !varies(p, id);
}
