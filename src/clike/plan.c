/* plan.c - where each value is printed.
 *
 * The nodes are visited from the last to the first, so that of each value it is known how often and where it is
 * printed. `next_event` and cvalue.next_set hold the nearest position ahead at which something happens: a value can be
 * evaluated at its root, later than it stands, if nothing that matters to it lies between.
 * What follows from the plan (long expressions cut, forms of loops) is settled in a second visit, forwards.
 */
#include "clike/internal.h"

#define WEIGHT_MAX 24u /* nodes in one expression */
#define ARM_MAX 12u    /* nodes in both regions of an if that becomes ?: */

static struct node *at(const struct clike *p, uint32_t id)
{
    return ir_at(p->m, id);
}

static bool is_leaf(const struct clike *p, uint32_t id)
{
    const uint16_t op = at(p, id)->op;
    return op == OP_CONST || op == OP_ZERO || op == OP_PARAM;
}

/* ---- numbering ------------------------------------------------------------------------------------------------- */

static void number_region(struct clike *p, uint32_t region)
{
    IR_EACH(p->m, region, id)
    {
        const struct node *const x = at(p, id);
        p->v[id].pos = p->order.n;
        p->v[id].next_set = UINT32_MAX;
        p->v[id].range = clike_type_range(x->type);
        VEC_PUSH(p->mem, &p->order, id);
        for (unsigned k = 0; k < x->n && x->op != OP_RESULT; k++)
            p->v[ir_in(p->m, id)[k]].raw++;
        if (x->op == OP_BR && at(p, (uint32_t)x->imm)->op == OP_LOOP)
            p->v[x->imm].raw++;
        if (ir_is_construct(x->op))
            for (unsigned k = 0; k < ir_n_regions(p->m, id); k++)
                number_region(p, ir_region(p->m, id, k));
    }
}

/* ---- what happens at a node ------------------------------------------------------------------------------------ */

#define SHARED_EVENTS (EVENT_BIT(EVENT_DEVICE) | EVENT_BIT(EVENT_THREADGROUP))
#define MEMORY_EVENTS (SHARED_EVENTS | EVENT_BIT(EVENT_THREAD))

static unsigned space_event(ir_type pointer)
{
    switch (ir_type_space(pointer)) {
    case SPACE_DEVICE:
    case SPACE_CONSTANT: return EVENT_BIT(EVENT_DEVICE); /* buffers may overlap */
    case SPACE_THREADGROUP: return EVENT_BIT(EVENT_THREADGROUP);
    case SPACE_THREAD:
    case SPACE_COUNT: break;
    }
    return EVENT_BIT(EVENT_THREAD);
}

unsigned clike_events(const struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    switch (op_info[x->op].effect) {
    case EFFECT_PURE: return 0;
    case EFFECT_READ: return EVENT_BIT(EVENT_READ);
    case EFFECT_WRITE:
        return EVENT_BIT(EVENT_ORDER) | (x->op == OP_STORE ? space_event(at(p, ir_in(p->m, id)[0])->type) : 0);
    case EFFECT_ATOMIC:
        return EVENT_BIT(EVENT_ORDER) | EVENT_BIT(EVENT_READ) |
               (x->op == OP_FENCE || node_order(x->flags) != ORDER_RELAXED
                    ? SHARED_EVENTS
                    : space_event(at(p, ir_in(p->m, id)[0])->type));
    case EFFECT_CONVERGENT:
        return EVENT_BIT(EVENT_CONVERGENT) |
               (x->op == OP_BARRIER || x->op == OP_SIMDGROUP_BARRIER ? EVENT_BIT(EVENT_ORDER) | SHARED_EVENTS : 0);
    case EFFECT_CONTROL:
        if (ir_is_construct(x->op))
            return EVENT_BIT(EVENT_CONSTRUCT);
        if (x->op == OP_CALL)
            return p->func_effects[x->imm];
        return x->op == OP_PRINT ? EVENT_BIT(EVENT_ORDER) : 0;
    case EFFECT_EXIT: return 0;
    }
    return 0;
}

enum kind { KIND_PURE, KIND_READ, KIND_CONVERGENT, KIND_EFFECT };

static enum kind kind_of(const struct clike *p, uint32_t id)
{
    const unsigned events = p->v[id].events;
    if (events & EVENT_BIT(EVENT_ORDER))
        return KIND_EFFECT;
    if (events & EVENT_BIT(EVENT_CONVERGENT))
        return at(p, id)->op == OP_CALL ? KIND_EFFECT : KIND_CONVERGENT;
    return events & EVENT_BIT(EVENT_READ) ? KIND_READ : KIND_PURE;
}

static bool happens_before(const struct clike *p, unsigned events, uint32_t pos)
{
    for (unsigned e = 0; events >> e; e++)
        if ((events & EVENT_BIT(e)) && p->next_event[e] < pos)
            return true;
    return false;
}

/* Whether what the value reads may change before position `pos`. */
static bool changes_before(const struct clike *p, uint32_t id, uint32_t pos)
{
    const struct node *const x = at(p, id);
    switch ((unsigned)x->op) {
    case OP_GET: return p->v[ir_in(p->m, id)[0]].next_set < pos;
    case OP_LOAD: return happens_before(p, space_event(at(p, ir_in(p->m, id)[0])->type), pos);
    case OP_CALL: return happens_before(p, MEMORY_EVENTS, pos);
    }
    return false;
}

/* ---- uses ------------------------------------------------------------------------------------------------------ */

static void use(struct clike *p, uint32_t id, uint32_t user, uint32_t times, bool lazy)
{
    if (times == 0 || is_leaf(p, id))
        return;
    struct cvalue *const v = &p->v[id];
    const struct cvalue *const u = &p->v[user];
    const bool moves = u->mode == MODE_INLINE;
    v->uses = v->uses > UINT32_MAX - times ? UINT32_MAX : v->uses + times;
    /* What an effect needs is unchanged from its place to where it is printed. */
    v->root = moves && kind_of(p, user) <= KIND_READ ? u->root : user;
    v->lazy = v->lazy || lazy || (moves && u->lazy);
}

/* How often operand k stands in the text printed for the node. */
static uint32_t times_printed(const struct clike *p, uint32_t id, unsigned k)
{
    const struct node *const x = at(p, id);
    const uint32_t *const in = ir_in(p->m, id);
    if (x->op == OP_MAKE && ir_type_width(x->type) > 1) {
        for (unsigned i = 1; i < x->n; i++)
            if (in[i] != in[0])
                return 1;
        return k == 0;
    }
    if (x->op == OP_PRINT)
        return ir_type_width(at(p, in[k])->type);
    if (x->op == OP_SHUFFLE) {
        uint32_t groups = 0;
        unsigned before = 2;
        for (unsigned i = 0; i < ir_type_width(x->type); i++) {
            const unsigned from = (unsigned)(x->imm >> 4 * i) >> 2 & 1;
            groups += from == k && from != before;
            before = from;
        }
        return groups;
    }
    return 1;
}

static bool evaluated_lazily(const struct clike *p, uint32_t id, unsigned k)
{
    const struct node *const x = at(p, id);
    if (x->op == OP_SELECT)
        return k > 0;
    return (x->op == OP_AND || x->op == OP_OR) && x->type == TYPE_BOOL && k == 1;
}

static void use_operands(struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    const struct cvalue *const v = &p->v[id];
    const uint32_t factor = v->mode == MODE_INLINE ? v->uses : 1;
    const uint32_t *const in = ir_in(p->m, id);
    for (unsigned k = 0; k < x->n; k++) {
        const uint32_t times = times_printed(p, id, k);
        use(p, in[k], id, factor > UINT32_MAX / 8 ? factor : factor * times, evaluated_lazily(p, id, k));
    }
}

/* ---- an if as ?: ----------------------------------------------------------------------------------------------- */

uint32_t clike_yield(const struct clike *p, uint32_t region)
{
    const uint32_t last = ir_region_at(p->m, region)->last;
    return last && at(p, last)->op == OP_YIELD ? last : 0;
}

static bool is_choice(const struct clike *p, uint32_t id)
{
    const uint32_t result = at(p, id)->next, after = at(p, result)->next;
    const ir_type t = at(p, result)->type;
    if (at(p, id)->op != OP_IF || (after && at(p, after)->op == OP_RESULT && at(p, after)->in[0] == id) ||
        ir_type_is_pointer(t) || ir_type_at(p->m, t)->kind == TYPE_KIND_ARRAY)
        return false;
    unsigned n = 0;
    for (unsigned k = 0; k < 2; k++) {
        const uint32_t yield = clike_yield(p, ir_region(p->m, id, k));
        if (!yield)
            return false;
        IR_EACH(p->m, ir_region(p->m, id, k), arm)
        {
            const struct node *const x = at(p, arm);
            const uint8_t effect = op_info[x->op].effect;
            if (arm == yield)
                break;
            if ((effect != EFFECT_PURE && effect != EFFECT_READ) || x->op == OP_INSERT || x->op == OP_RESULT ||
                x->name || p->v[arm].raw != 1 || ++n > ARM_MAX)
                return false;
        }
    }
    return true;
}

static bool arms_read(const struct clike *p, uint32_t id)
{
    for (unsigned k = 0; k < 2; k++)
        IR_EACH(p->m, ir_region(p->m, id, k), arm)
    if (op_info[at(p, arm)->op].effect == EFFECT_READ)
        return true;
    return false;
}

/* ---- one node -------------------------------------------------------------------------------------------------- */

static bool enters_loop(const struct clike *p, uint32_t from, uint32_t to)
{
    for (uint32_t r = to; r != from; r = ir_parent_region(p->m, r)) {
        const uint32_t owner = ir_region_at(p->m, r)->owner;
        if (!owner || at(p, owner)->op == OP_LOOP)
            return true;
    }
    return false;
}

/* Cheap enough to be printed at every use; what it is made of is then a variable. */
static bool is_cheap(const struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    if (x->op == OP_EXTRACT || x->op == OP_INDEX || x->op == OP_FIELD)
        return true;
    if (x->op == OP_SPLAT)
        return is_leaf(p, ir_in(p->m, id)[0]);
    if (x->op != OP_CONVERT || ir_type_width(x->type) != 1)
        return false;
    const uint32_t o = ir_in(p->m, id)[0];
    return (ir_type_class(p->m, x->type) & CLASS_SU) && (ir_type_class(p->m, at(p, o)->type) & CLASS_BSU) &&
           (is_leaf(p, o) || at(p, o)->op == OP_ARG || (at(p, o)->op == OP_EXTRACT && is_leaf(p, ir_in(p->m, o)[0])));
}

static enum clike_mode decide(struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    const struct cvalue *const v = &p->v[id];
    const enum kind kind = kind_of(p, id);
    if (v->uses == 0)
        return kind == KIND_EFFECT ? MODE_STATEMENT : MODE_DEAD;
    if (v->arm)
        return MODE_INLINE;
    if (x->op == OP_INDEX || x->op == OP_FIELD)
        return MODE_INLINE;
    if (x->op == OP_INSERT || x->op == OP_ALLOC || x->op == OP_ARG || x->op == OP_RESULT || x->op == OP_VAR || x->name)
        return MODE_NAMED;
    if (v->uses > 1)
        return kind == KIND_PURE && is_cheap(p, id) ? MODE_INLINE : MODE_NAMED;

    const uint32_t pos = p->v[v->root].pos;
    const bool same_region = x->region == at(p, v->root)->region;
    const unsigned order = EVENT_BIT(EVENT_ORDER) | EVENT_BIT(EVENT_CONSTRUCT);
    switch (kind) {
    case KIND_PURE:
        return is_cheap(p, id) || !enters_loop(p, x->region, at(p, v->root)->region) ? MODE_INLINE : MODE_NAMED;
    case KIND_READ: return same_region && !changes_before(p, id, pos) ? MODE_INLINE : MODE_NAMED;
    case KIND_CONVERGENT: return same_region && !v->lazy && !happens_before(p, order, pos) ? MODE_INLINE : MODE_NAMED;
    case KIND_EFFECT:
        if (op_info[x->op].effect == EFFECT_ATOMIC && node_order(x->flags) != ORDER_RELAXED)
            return MODE_NAMED; /* between its fences */
        return same_region && !v->lazy &&
                       !happens_before(p, order | EVENT_BIT(EVENT_READ) | EVENT_BIT(EVENT_CONVERGENT), pos)
                   ? MODE_INLINE
                   : MODE_NAMED;
    }
    return MODE_NAMED;
}

/* v.x = part: the local with one part replaced is assigned to itself. */
static bool sets_part(const struct clike *p, uint32_t set)
{
    const uint32_t var = ir_in(p->m, set)[0], insert = ir_in(p->m, set)[1];
    if (at(p, insert)->op != OP_INSERT || at(p, insert)->name || p->v[insert].raw != 1 ||
        at(p, insert)->region != at(p, set)->region)
        return false;
    const uint32_t get = ir_in(p->m, insert)[0];
    if (at(p, get)->op != OP_GET || at(p, get)->name || p->v[get].raw != 1 || ir_in(p->m, get)[0] != var ||
        at(p, get)->region != at(p, set)->region)
        return false;
    for (uint32_t k = at(p, get)->next; k != set; k = at(p, k)->next)
        if (!k || ir_is_construct(at(p, k)->op) || (at(p, k)->op == OP_SET && ir_in(p->m, k)[0] == var))
            return false;
    return true;
}

static void plan_result(struct clike *p, uint32_t id)
{
    struct cvalue *const v = &p->v[id];
    const uint32_t owner = at(p, id)->in[0];
    if (!is_choice(p, owner)) {
        v->mode = v->uses ? MODE_NAMED : MODE_DEAD;
        return;
    }
    p->v[owner].form = FORM_CHOICE;
    if (v->uses == 0) {
        v->mode = MODE_DEAD;
        return;
    }
    for (unsigned k = 0; k < 2; k++)
        IR_EACH(p->m, ir_region(p->m, owner, k), arm)
    p->v[arm].arm = true;
    const uint32_t root = v->root;
    v->mode = MODE_NAMED;
    if (v->uses > 1 || at(p, id)->name || enters_loop(p, at(p, id)->region, at(p, root)->region))
        return;
    if (!arms_read(p, owner) || (at(p, id)->region == at(p, root)->region &&
                                 !happens_before(p, MEMORY_EVENTS | EVENT_BIT(EVENT_ORDER), p->v[root].pos)))
        v->mode = MODE_INLINE;
}

/* The values that an exit or a loop's head gives to variables which are read. */
static void use_carried(struct clike *p, uint32_t id, uint32_t to)
{
    const uint32_t *const in = ir_in(p->m, id);
    for (unsigned k = 0; k < at(p, id)->n; k++, to = at(p, to)->next)
        if (at(p, to)->op == OP_RESULT ? p->v[to].mode != MODE_DEAD : p->v[to].raw > 0)
            use(p, in[k], id, 1, false);
}

static void plan_exit(struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    switch ((unsigned)x->op) {
    case OP_YIELD: {
        const uint32_t owner = ir_region_at(p->m, x->region)->owner;
        const uint32_t result = at(p, owner)->next;
        if (p->v[owner].form == FORM_CHOICE && p->v[result].mode != MODE_DEAD)
            use(p, ir_in(p->m, id)[0], result, 1, true);
        else
            use_carried(p, id, result);
        break;
    }
    case OP_BR: {
        const uint32_t target = (uint32_t)x->imm;
        use_carried(p, id,
                    at(p, target)->op == OP_LOOP ? ir_region_at(p->m, ir_region(p->m, target, 0))->first
                                                 : at(p, target)->next);
        break;
    }
    case OP_RETURN: use_operands(p, id); break;
    }
}

static void plan_node(struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    struct cvalue *const v = &p->v[id];
    if (op_info[x->op].effect == EFFECT_EXIT) {
        plan_exit(p, id);
        return;
    }
    switch ((unsigned)x->op) {
    case OP_RESULT: plan_result(p, id); return;
    case OP_ARG: v->mode = v->raw ? MODE_NAMED : MODE_DEAD; return;
    case OP_VAR:
        v->mode = v->raw ? MODE_NAMED : MODE_DEAD;
        if (v->raw)
            use_operands(p, id);
        return;
    case OP_LOOP: use_carried(p, id, ir_region_at(p->m, ir_region(p->m, id, 0))->first); return;
    case OP_IF:
        if (v->form != FORM_CHOICE)
            use_operands(p, id);
        else if (p->v[x->next].mode != MODE_DEAD)
            use(p, ir_in(p->m, id)[0], x->next, 1, false);
        return;
    case OP_BLOCK: return;
    case OP_SWITCH: use_operands(p, id); return;
    case OP_ASSERT: v->mode = MODE_STATEMENT; return; /* only its text is printed */
    case OP_SET:
        v->mode = MODE_STATEMENT;
        if (sets_part(p, id)) {
            v->form = FORM_PART;
            use(p, ir_in(p->m, ir_in(p->m, id)[1])[1], id, 1, false);
        } else {
            use(p, ir_in(p->m, id)[1], id, 1, false);
        }
        return;
    }
    if (x->type == TYPE_VOID) {
        v->mode = MODE_STATEMENT;
    } else {
        v->mode = (uint8_t)decide(p, id);
        if (v->mode == MODE_DEAD)
            return;
    }
    if (x->op == OP_GET)
        return;
    use_operands(p, id);
}

static void note_events(struct clike *p, uint32_t id)
{
    const unsigned events = p->v[id].events;
    for (unsigned e = 0; events >> e; e++)
        if (events & EVENT_BIT(e))
            p->next_event[e] = p->v[id].pos;
    if (at(p, id)->op == OP_SET)
        p->v[ir_in(p->m, id)[0]].next_set = p->v[id].pos;
}

/* ---- the second visit ------------------------------------------------------------------------------------------ */

static uint32_t weight_of(const struct clike *p, uint32_t id)
{
    if (is_leaf(p, id) || p->v[id].mode != MODE_INLINE)
        return 1;
    return p->v[id].weight;
}

static void weigh(struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    struct cvalue *const v = &p->v[id];
    /* Calls of Metal's atomics and the like are long. */
    uint32_t w = op_info[x->op].effect == EFFECT_ATOMIC || op_info[x->op].effect == EFFECT_CONVERGENT ? 8 : 1;
    if (x->op == OP_RESULT) {
        const uint32_t owner = x->in[0];
        if (p->v[owner].form != FORM_CHOICE || v->mode == MODE_DEAD)
            return;
        w += weight_of(p, ir_in(p->m, owner)[0]);
        for (unsigned k = 0; k < 2; k++)
            w += weight_of(p, ir_in(p->m, clike_yield(p, ir_region(p->m, owner, k)))[0]);
    } else {
        for (unsigned k = 0; k < x->n; k++)
            w += weight_of(p, ir_in(p->m, id)[k]);
    }
    v->weight = w;
    if (w > WEIGHT_MAX && v->mode == MODE_INLINE && !v->arm)
        v->mode = MODE_NAMED;
}

bool clike_prints(const struct clike *p, uint32_t id)
{
    const struct node *const x = at(p, id);
    if (op_info[x->op].effect == EFFECT_EXIT || x->op == OP_ARG)
        return false;
    if (ir_is_construct(x->op))
        return p->v[id].form != FORM_CHOICE;
    if (x->op == OP_RESULT)
        return p->v[id].mode == MODE_NAMED && p->v[x->in[0]].form == FORM_CHOICE;
    return p->v[id].mode == MODE_NAMED || p->v[id].mode == MODE_STATEMENT;
}

uint32_t clike_variable(const struct clike *p, uint32_t id)
{
    while (at(p, id)->op == OP_RESULT && p->v[id].alias)
        id = p->v[id].alias;
    return id;
}

bool clike_mentions(const struct clike *p, uint32_t id, uint32_t variable)
{
    const struct node *const x = at(p, id);
    if (is_leaf(p, id))
        return id == variable;
    if (x->op == OP_GET && p->v[id].mode == MODE_INLINE)
        return ir_in(p->m, id)[0] == variable;
    if (p->v[id].mode != MODE_INLINE)
        return clike_variable(p, id) == variable;
    if (x->op == OP_RESULT) {
        if (clike_mentions(p, ir_in(p->m, x->in[0])[0], variable))
            return true;
        for (unsigned k = 0; k < 2; k++)
            if (clike_mentions(p, ir_in(p->m, clike_yield(p, ir_region(p->m, x->in[0], k)))[0], variable))
                return true;
        return false;
    }
    for (unsigned k = 0; k < x->n; k++)
        if (clike_mentions(p, ir_in(p->m, id)[k], variable))
            return true;
    return false;
}

bool clike_same(const struct clike *p, uint32_t a, uint32_t b, unsigned depth)
{
    if (a == b)
        return true;
    const struct node *const x = at(p, a), *const y = at(p, b);
    if (depth == 0 || is_leaf(p, a) || is_leaf(p, b) || x->op != y->op || x->type != y->type || x->imm != y->imm ||
        x->n != y->n || x->flags != y->flags || p->v[a].mode != MODE_INLINE || p->v[b].mode != MODE_INLINE)
        return false;
    if (x->op != OP_GET && kind_of(p, a) > KIND_READ)
        return false;
    if (x->op == OP_RESULT)
        return false;
    for (unsigned k = 0; k < x->n; k++)
        if (!clike_same(p, ir_in(p->m, a)[k], ir_in(p->m, b)[k], depth - 1))
            return false;
    return true;
}

/* ---- loops ----------------------------------------------------------------------------------------------------- */

uint32_t clike_loop_test(const struct clike *p, uint32_t loop)
{
    const uint32_t body = ir_region(p->m, loop, 0);
    uint32_t test = ir_region_at(p->m, body)->last;
    if (test && at(p, test)->op == OP_YIELD)
        test = at(p, test)->prev;
    if (!test || at(p, test)->op != OP_IF || ir_region_at(p->m, ir_region(p->m, test, 1))->first)
        return 0;
    const uint32_t last = ir_region_at(p->m, ir_region(p->m, test, 0))->last;
    return last && at(p, last)->op == OP_BR && at(p, last)->imm == loop ? test : 0;
}

/* Made of the parameter and of what does not change in the loop, by operations that can as well stand in its head. */
static bool repeats_in_head(const struct clike *p, uint32_t loop, uint32_t arg, uint32_t id)
{
    const struct node *const x = at(p, id);
    if (is_leaf(p, id) || id == arg)
        return true;
    if (p->v[id].mode != MODE_INLINE)
        return p->v[id].pos < p->v[loop].pos;
    if (op_info[x->op].effect != EFFECT_PURE || x->op == OP_RESULT)
        return false;
    for (unsigned k = 0; k < x->n; k++)
        if (!repeats_in_head(p, loop, arg, ir_in(p->m, id)[k]))
            return false;
    return true;
}

/* The one br to the loop gives the parameter a value that a for statement's head can compute. */
static bool is_stepped(const struct clike *p, uint32_t loop, uint32_t br, uint32_t arg)
{
    const uint32_t next = ir_in(p->m, br)[at(p, arg)->imm];
    const ir_type t = at(p, arg)->type;
    return p->v[arg].mode == MODE_NAMED && ir_type_width(t) == 1 && p->v[next].mode == MODE_INLINE &&
           clike_mentions(p, next, arg) && repeats_in_head(p, loop, arg, next);
}

static bool is_kept(const struct clike *p, uint32_t yield, uint32_t arg)
{
    for (unsigned i = 0; yield && i < at(p, yield)->n; i++)
        if (clike_mentions(p, ir_in(p->m, yield)[i], arg))
            return true;
    return false;
}

/* A for statement, if its test mentions a parameter that its head can step. That one is declared in the head, and so are
 * others of its type, if they are not used after the loop. */
static void settle_for(struct clike *p, uint32_t loop, uint32_t test)
{
    const uint32_t br = ir_region_at(p->m, ir_region(p->m, test, 0))->last;
    const uint32_t yield = clike_yield(p, ir_region(p->m, loop, 0));
    const uint32_t first = ir_region_at(p->m, ir_region(p->m, loop, 0))->first;
    ir_type type = TYPE_VOID;
    uint32_t arg = first;
    if (p->v[loop].raw != 1)
        return;
    for (unsigned k = 0; k < at(p, br)->n && p->v[loop].form != FORM_FOR; k++, arg = at(p, arg)->next) {
        if (!is_stepped(p, loop, br, arg) || !clike_mentions(p, ir_in(p->m, test)[0], arg))
            continue;
        p->v[loop].form = FORM_FOR;
        p->v[loop].induct = arg;
        type = is_kept(p, yield, arg) ? TYPE_VOID : at(p, arg)->type;
    }
    arg = first;
    for (unsigned k = 0; k < at(p, br)->n && p->v[loop].form == FORM_FOR; k++, arg = at(p, arg)->next) {
        if (!is_stepped(p, loop, br, arg))
            continue;
        p->v[arg].form = FORM_FOR;
        if (is_kept(p, yield, arg))
            continue;
        type = type == TYPE_VOID ? at(p, arg)->type : type;
        p->v[arg].in_head = at(p, arg)->type == type;
    }
}

static void settle_loop(struct clike *p, uint32_t loop)
{
    const uint32_t body = ir_region(p->m, loop, 0), yield = clike_yield(p, body), test = clike_loop_test(p, loop);
    uint32_t result = at(p, loop)->next;
    bool aliased = true;
    for (unsigned k = 0; yield && k < at(p, yield)->n; k++, result = at(p, result)->next) {
        const uint32_t from = ir_in(p->m, yield)[k];
        if (p->v[result].mode != MODE_NAMED)
            continue;
        if (at(p, from)->op == OP_ARG && at(p, from)->region == body && p->v[from].mode == MODE_NAMED)
            p->v[result].alias = from;
        else
            aliased = false;
    }
    if (!test || !aliased || p->v[test].boxed || p->v[loop].boxed)
        return;
    for (uint32_t id = ir_region_at(p->m, body)->first; id != test; id = at(p, id)->next)
        if (clike_prints(p, id))
            return;
    p->v[loop].form = FORM_WHILE;
    settle_for(p, loop, test);
}

/* ---------------------------------------------------------------------------------------------------------------- */

void clike_plan(struct clike *p)
{
    const struct func *const f = &p->m->funcs.at[p->func];
    p->order.n = 0;
    p->uniform_known = false;
    number_region(p, f->region);
    clike_ranges(p);
    for (unsigned e = 0; e < EVENT_COUNT; e++)
        p->next_event[e] = UINT32_MAX;
    for (uint32_t k = p->order.n; k-- > 0;) {
        plan_node(p, p->order.at[k]);
        note_events(p, p->order.at[k]);
    }
    for (uint32_t k = 0; k < p->order.n; k++) {
        weigh(p, p->order.at[k]);
        if (ir_type_is_pointer(at(p, p->order.at[k])->type))
            clike_settle_pointer(p, p->order.at[k]);
    }
    for (uint32_t k = 0; k < p->order.n; k++)
        if (at(p, p->order.at[k])->op == OP_LOOP)
            settle_loop(p, p->order.at[k]);
}
