/* control.c - constructs to instructions. exec.c says what the slots of each are. */
#include "interp/compile.h"
#include "pass/analysis.h"

/* ---- labels ----------------------------------------------------------------------------------------------------- */

uint32_t label_new(struct compile *c)
{
    VEC_PUSH(c->mem, &c->label, 0);
    return c->label.n - 1;
}

void label_here(struct compile *c, uint32_t label)
{
    c->label.at[label] = c->code.n;
}

static void jump_to(struct compile *c, uint32_t label, bool skip)
{
    VEC_PUSH(c->mem, &c->patch, ((struct patch){c->code.n - 1, label, skip}));
}

/* ---- slots ------------------------------------------------------------------------------------------------------ */

static uint32_t take_slots(struct compile *c, uint32_t n)
{
    const uint32_t slot = c->slot_top;
    c->slot_top += n;
    if (c->p.n_slots < c->slot_top)
        c->p.n_slots = c->slot_top;
    return slot;
}

/* ---- moves ------------------------------------------------------------------------------------------------------ */

static void move(struct compile *c, uint32_t d, uint32_t a)
{
    const unsigned bytes = c->vreg.at[d].bytes;
    emit(c, (struct inst){.run = c->loops->move(bytes), .d = d, .a = a});
}

/* The leaves of the operands to the `n` leaves from `to` on, all at once: a source that an earlier move overwrites is
 * saved first. */
static void move_all(struct compile *c, uint32_t node, uint32_t to, uint32_t n)
{
    if (n == 0)
        return;
    uint32_t *const from = ARENA_NEW(&c->scratch, uint32_t, n);
    uint32_t done = 0;
    for (unsigned k = 0; k < ir_at(c->m, node)->n; k++) {
        const uint32_t in = ir_in(c->m, node)[k];
        const uint32_t leaves = (uint32_t)leaf_count(c->m, ir_at(c->m, in)->type);
        for (uint32_t j = 0; j < leaves && done < n; j++)
            from[done++] = value(c, in, j);
    }
    for (uint32_t k = 0; k < done; k++)
        c->vreg.at[c->leaves.at[to + k]].order = k + 1;
    for (uint32_t k = 0; k < done; k++) {
        const uint32_t order = c->vreg.at[from[k]].order;
        if (order == 0 || order > k) /* not written before */
            continue;
        const unsigned bytes = c->vreg.at[from[k]].bytes;
        const uint32_t saved = vreg_new(c, bytes);
        emit(c, (struct inst){.run = c->loops->copy(bytes), .d = saved, .a = from[k]});
        from[k] = saved;
    }
    for (uint32_t k = 0; k < done; k++)
        c->vreg.at[c->leaves.at[to + k]].order = 0;
    for (uint32_t k = 0; k < done; k++)
        if (c->leaves.at[to + k] != from[k])
            move(c, c->leaves.at[to + k], from[k]);
}

/* ---- constructs ------------------------------------------------------------------------------------------------- */

static uint32_t total(const struct compile *c, uint32_t node)
{
    uint32_t n = 0;
    for (unsigned k = 0; k < ir_at(c->m, node)->n; k++)
        n += (uint32_t)leaf_count(c->m, ir_at(c->m, ir_in(c->m, node)[k])->type);
    return n;
}

/* Results get their registers before the construct, since lanes may write them anywhere in it. */
static void open_frame(struct compile *c, uint32_t node, uint32_t n_slots)
{
    struct frame f = {.node = node, .slot = take_slots(c, n_slots), .results = c->leaves.n};
    for (uint32_t id = ir_at(c->m, node)->next;
         id && ir_at(c->m, id)->op == OP_RESULT && ir_at(c->m, id)->in[0] == node; id = ir_at(c->m, id)->next)
        define(c, id);
    f.n_results = c->leaves.n - f.results;
    f.to = f.results;
    f.n_to = f.n_results;
    VEC_PUSH(c->mem, &c->frame, f);
}

static void close_frame(struct compile *c)
{
    c->slot_top = c->frame.at[--c->frame.n].slot;
}

static struct frame *innermost(struct compile *c)
{
    return &c->frame.at[c->frame.n - 1];
}

/* The region, whose lanes then wait at `landing`. */
static void compile_body(struct compile *c, uint32_t region, uint32_t landing)
{
    const uint32_t outer = c->landing;
    c->landing = landing;
    compile_region(c, region);
    c->landing = outer;
}

static void end(struct compile *c, uint32_t label)
{
    label_here(c, label);
    emit(c, (struct inst){.run = exec_end, .x = innermost(c)->slot});
    jump_to(c, c->landing, true);
    close_frame(c);
}

static void compile_block(struct compile *c, uint32_t node)
{
    const uint32_t out = label_new(c);
    open_frame(c, node, 1);
    emit(c, (struct inst){.run = exec_block, .x = innermost(c)->slot});
    compile_body(c, ir_region(c->m, node, 0), out);
    end(c, out);
}

static void compile_if(struct compile *c, uint32_t node)
{
    const bool has_else = ir_region_at(c->m, ir_region(c->m, node, 1))->first != 0;
    const uint32_t condition = value(c, ir_in(c->m, node)[0], 0);
    const uint32_t no = label_new(c), out = has_else ? label_new(c) : no;
    open_frame(c, node, has_else ? 2 : 1);
    emit(c, (struct inst){.run = exec_if, .a = condition, .x = innermost(c)->slot, .y = has_else});
    jump_to(c, no, false);
    compile_body(c, ir_region(c->m, node, 0), no);
    if (has_else) {
        label_here(c, no);
        emit(c, (struct inst){.run = exec_else, .x = innermost(c)->slot});
        jump_to(c, out, false);
        compile_body(c, ir_region(c->m, node, 1), out);
    }
    end(c, out);
}

static void compile_switch(struct compile *c, uint32_t node)
{
    const unsigned n = ir_n_regions(c->m, node);
    const uint32_t operand = value_as(c, ir_in(c->m, node)[0], 0, S_I64), first = c->cases.n;
    uint64_t otherwise = n;
    for (unsigned k = 0; k < n; k++) {
        const struct region *const r = ir_region_at(c->m, ir_region(c->m, node, k));
        if (r->is_default)
            otherwise = k;
        for (uint32_t j = 0; j < r->n_cases; j++) {
            VEC_PUSH(c->mem, &c->cases, c->m->cases.at[r->first_case + j]);
            VEC_PUSH(c->mem, &c->cases, (int64_t)k);
        }
    }
    open_frame(c, node, 1 + n);
    const uint32_t slot = innermost(c)->slot;
    emit(c, (struct inst){.run = exec_switch,
                          .a = operand,
                          .x = slot,
                          .y = (c->cases.n - first) / 2,
                          .skip = (int32_t)n,
                          .imm = first | otherwise << 32});
    for (unsigned k = 0; k < n; k++) {
        const uint32_t next = label_new(c);
        emit(c, (struct inst){.run = exec_case, .x = slot, .y = slot + 1 + k});
        jump_to(c, next, false);
        compile_body(c, ir_region(c->m, node, k), next);
        label_here(c, next);
    }
    end(c, label_new(c));
}

static void compile_loop(struct compile *c, uint32_t node)
{
    const uint32_t region = ir_region(c->m, node, 0);
    const uint32_t head = label_new(c), repeat = label_new(c);
    bool reads_thread;
    const bool waits = loop_waits(c->m, node, c->marks, &reads_thread);
    const uint32_t count = waits ? ++c->p.n_counts : 0;
    open_frame(c, node, 2);
    innermost(c)->to = c->leaves.n;
    innermost(c)->n_to = total(c, node);
    for (unsigned k = 0; k < ir_at(c->m, node)->n; k++)
        define(c, ir_arg(c->m, node, k));
    move_all(c, node, innermost(c)->to, innermost(c)->n_to);
    emit(c, (struct inst){.run = exec_loop, .x = innermost(c)->slot, .y = count});

    vreg_open_loop(c);
    label_here(c, head);
    c->waiting += waits;
    compile_body(c, region, repeat);
    c->waiting -= waits;
    label_here(c, repeat);
    emit(c, (struct inst){.run = exec_repeat,
                          .x = innermost(c)->slot,
                          .y = count,
                          .imm = site(c, ir_at(c->m, node)->place) | (uint64_t)reads_thread << 32});
    jump_to(c, head, false);
    jump_to(c, c->landing, true);
    vreg_close_loop(c);
    close_frame(c);
}

static void compile_br(struct compile *c, uint32_t node)
{
    uint32_t k = c->frame.n - 1;
    while (c->frame.at[k].node != ir_at(c->m, node)->imm)
        k--;
    move_all(c, node, c->frame.at[k].to, c->frame.at[k].n_to);
    emit(c, (struct inst){.run = exec_br, .x = c->frame.at[k].slot});
}

static void compile_yield(struct compile *c, uint32_t node)
{
    move_all(c, node, innermost(c)->results, innermost(c)->n_results);
}

static void compile_return(struct compile *c, uint32_t node)
{
    (void)node;
    emit(c, (struct inst){.run = exec_return});
}

static void compile_barrier(struct compile *c, uint32_t node)
{
    c->p.has_barrier = true;
    emit(c, (struct inst){.run = group_barrier, .x = site(c, ir_at(c->m, node)->place)});
    jump_to(c, c->landing, true);
}

static void compile_assert(struct compile *c, uint32_t node)
{
    VEC_PUSH(c->mem, &c->text, strtab_str(&c->m->strings, (uint32_t)ir_at(c->m, node)->imm));
    emit(c, (struct inst){.run = exec_assert,
                          .a = value(c, ir_in(c->m, node)[0], 0),
                          .x = site(c, ir_at(c->m, node)->place),
                          .y = c->text.n - 1});
}

static void (*const control[OP_COUNT])(struct compile *c, uint32_t node) = {
    [OP_BLOCK] = compile_block,     [OP_IF] = compile_if,
    [OP_SWITCH] = compile_switch,   [OP_LOOP] = compile_loop,
    [OP_BR] = compile_br,           [OP_YIELD] = compile_yield,
    [OP_RETURN] = compile_return,   [OP_UNREACHABLE] = compile_return,
    [OP_BARRIER] = compile_barrier, [OP_ASSERT] = compile_assert,
};

bool compile_control(struct compile *c, uint32_t node)
{
    if (!control[ir_at(c->m, node)->op])
        return false;
    control[ir_at(c->m, node)->op](c, node);
    return true;
}

/* Loop parameters and results have their registers already. */
void compile_region(struct compile *c, uint32_t region)
{
    IR_EACH(c->m, region, id)
    if (ir_at(c->m, id)->op != OP_ARG && ir_at(c->m, id)->op != OP_RESULT)
        compile_node(c, id);
}
