/* cse.c - pass E: common subexpressions.
 *
 * A scoped hash table: what a region computes is known in the regions below it and forgotten at its end. Pure operations
 * are equal when operation, type, flags, immediate and operands are. Loads too, while no node between can write such
 * memory: each kind of memory has an epoch, part of the key, that a possible write moves on. A loop moves it before its body
 * if it writes, since the body may have run before; that of shared memory always, since a loop may wait for another thread.
 */
#include "pass/util.h"

struct entry {
    uint32_t node, hash;
    uint32_t shared_epoch, thread_epoch; /* of loads, else 0 */
    uint32_t older;                      /* the slot's previous entry, to be restored; index + 1 */
};

struct table {
    struct ir_module *m;
    struct mem *mem; /* working memory */
    struct pass_map map;
    VEC(struct entry) entries;
    uint32_t *slots, n_slots; /* index + 1 of the newest entry, chained through `older` */
    uint32_t shared_epoch, thread_epoch;
    uint8_t *writes; /* by loop: node_writes */
};

/* What a region writes; takes note of it for the loops in it. */
static unsigned find_writes(struct table *t, uint32_t region)
{
    unsigned all = 0;
    IR_EACH(t->m, region, id)
    {
        if (!ir_is_construct(ir_at(t->m, id)->op)) {
            all |= node_writes(t->m, id);
            continue;
        }
        unsigned writes = 0;
        for (unsigned k = 0; k < ir_n_regions(t->m, id); k++)
            writes |= find_writes(t, ir_region(t->m, id, k));
        t->writes[id] = (uint8_t)writes;
        all |= writes;
    }
    return all;
}

static void wrote(struct table *t, unsigned writes)
{
    t->shared_epoch += (writes & WRITES_SHARED) != 0;
    t->thread_epoch += (writes & WRITES_THREAD) != 0;
}

static bool same(const struct ir_module *m, uint32_t a, uint32_t b)
{
    const struct node *x = ir_at(m, a), *y = ir_at(m, b);
    return x->op == y->op && x->type == y->type && x->n == y->n && x->flags == y->flags && x->imm == y->imm &&
           memcmp(ir_in(m, a), ir_in(m, b), sizeof(uint32_t) * x->n) == 0;
}

/* Returns an earlier equal node or 0, and then remembers this one. */
static uint32_t find_or_add(struct table *t, uint32_t id)
{
    const struct node *x = ir_at(t->m, id);
    struct entry e = {.node = id};
    if (x->op == OP_LOAD) {
        if (ir_type_space(ir_at(t->m, ir_in(t->m, id)[0])->type) == SPACE_THREAD)
            e.thread_epoch = t->thread_epoch;
        else
            e.shared_epoch = t->shared_epoch;
    }
    uint64_t h = hash_u64(x->op | (uint64_t)x->type << 16 | (uint64_t)x->flags << 32, x->imm);
    h = hash_bytes(h, ir_in(t->m, id), sizeof(uint32_t) * x->n);
    e.hash = (uint32_t)(h ^ h >> 32);

    uint32_t *slot = &t->slots[e.hash & (t->n_slots - 1)];
    for (uint32_t i = *slot; i; i = t->entries.at[i - 1].older) {
        const struct entry *o = &t->entries.at[i - 1];
        if (o->hash == e.hash && o->shared_epoch == e.shared_epoch && o->thread_epoch == e.thread_epoch &&
            same(t->m, o->node, id))
            return o->node;
    }
    e.older = *slot;
    VEC_PUSH(t->mem, &t->entries, e);
    *slot = t->entries.n;
    return 0;
}

static void forget_to(struct table *t, uint32_t n)
{
    while (t->entries.n > n) {
        const struct entry *e = &t->entries.at[--t->entries.n];
        t->slots[e->hash & (t->n_slots - 1)] = e->older;
    }
}

static void walk(struct table *t, uint32_t region)
{
    const uint32_t known = t->entries.n;
    IR_EACH(t->m, region, id)
    {
        map_inputs(&t->map, id);
        const struct node x = *ir_at(t->m, id);
        if (ir_is_construct(x.op)) {
            if (x.op == OP_LOOP)
                wrote(t, t->writes[id] | WRITES_SHARED);
            for (unsigned k = 0; k < ir_n_regions(t->m, id); k++)
                walk(t, ir_region(t->m, id, k)); /* its writes move the epochs on for what follows, too */
        } else if ((op_info[x.op].effect == EFFECT_PURE && x.op != OP_ARG && x.op != OP_RESULT) || x.op == OP_LOAD) {
            const uint32_t before = find_or_add(t, id);
            if (before) {
                if (!ir_at(t->m, before)->name)
                    ir_at(t->m, before)->name = x.name;
                map_set(&t->map, id, before);
                ir_unlink(t->m, id);
            }
        } else {
            wrote(t, node_writes(t->m, id));
        }
    }
    forget_to(t, known);
}

void pass_cse(struct ir_module *m, uint32_t func)
{
    struct table t = {.m = m, .mem = mem_temp(m->mem), .shared_epoch = 1, .thread_epoch = 1, .n_slots = 64};
    while (t.n_slots < m->nodes.n)
        t.n_slots *= 2;
    t.slots = mem_zalloc(t.mem, sizeof *t.slots * t.n_slots);
    t.writes = mem_zalloc(t.mem, m->nodes.n);
    map_init(&t.map, m);
    (void)find_writes(&t, m->funcs.at[func].region);
    walk(&t, m->funcs.at[func].region);
    map_free(&t.map);
    mem_temp_end(t.mem);
}
