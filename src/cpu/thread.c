/* thread.c - how the arrays of threads lie in memory.
 *
 * A lane's bytes follow each other, unless all accesses are to scalars of one size at multiples of it and the array's address
 * goes nowhere else: then the lanes of one scalar follow each other, and an index that is the same in all lanes reads a
 * whole vector. Arrays that live within one phase are on the stack, where LLVM makes values of them.
 */
#include "cpu/memory.h"

#define MOST_ON_STACK ((uint64_t)32 << 10)
#define MOST_ON_FIBER ((uint64_t)4 << 10)

struct uses {         /* of an alloc */
    uint64_t divisor; /* of all offsets */
    uint8_t bytes;    /* of all cells; 0: none seen */
    bool escapes;     /* as a value */
    bool mixed;       /* cells of several sizes, atomics */
};

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static uint32_t root_of(const struct ir_module *m, uint32_t pointer)
{
    while (ir_at(m, pointer)->op == OP_INDEX || ir_at(m, pointer)->op == OP_FIELD)
        pointer = ir_in(m, pointer)[0];
    return pointer;
}

static void use_cells(struct lower *l, struct uses *u, ir_type t)
{
    memory_cells(l, t);
    for (uint32_t k = 0; k < l->memory->cells.n; k++) {
        const struct cell *const c = &l->memory->cells.at[k];
        u->mixed = u->mixed || (u->bytes && u->bytes != c->bytes);
        u->bytes = c->bytes;
        u->divisor = gcd(u->divisor, c->offset);
    }
}

static void look(struct lower *l, uint32_t region, struct uses *uses)
{
    const struct ir_module *const m = l->m;
    IR_EACH(m, region, id)
    {
        const struct node *const x = ir_at(m, id);
        for (unsigned k = 0; k < x->n; k++) {
            const uint32_t in = ir_in(m, id)[k];
            if (!ir_type_is_pointer(ir_at(m, in)->type))
                continue;
            struct uses *const u = &uses[l->region_of[root_of(m, in)]];
            const ir_type t = (ir_type)x->imm;
            if (k == 0 && x->op == OP_INDEX)
                u->divisor = gcd(u->divisor, ir_type_at(m, t)->size);
            else if (k == 0 && x->op == OP_FIELD)
                u->divisor =
                    gcd(u->divisor, m->fields.at[ir_type_at(m, t)->first_field + (uint32_t)(x->imm >> 32)].offset);
            else if (k == 0 && x->op == OP_LOAD)
                use_cells(l, u, x->type);
            else if (k == 0 && x->op == OP_STORE)
                use_cells(l, u, ir_at(m, ir_in(m, id)[1])->type);
            else if (k == 0 && op_info[x->op].effect == EFFECT_ATOMIC)
                u->mixed = true;
            else
                u->escapes = true;
        }
        if (ir_is_construct(x->op))
            for (unsigned k = 0; k < ir_n_regions(m, id); k++)
                look(l, ir_region(m, id, k), uses);
    }
}

void memory_layout(struct lower *l)
{
    struct memory *const m = l->memory;
    struct uses *const uses = mem_zalloc(l->mem, m->n * sizeof *uses);
    const uint64_t width = l->opt.width;
    uint64_t stack = l->out->fibers ? MOST_ON_FIBER : MOST_ON_STACK;
    look(l, l->kernel->region, uses);
    for (uint32_t r = 0; r < m->n; r++) {
        struct cpu_region_info *const i = &l->out->region.at[r];
        const struct uses *const u = &uses[r];
        if (i->kind != CPU_REGION_THREAD)
            continue;
        const bool across = width > 1 && !u->escapes && !u->mixed && u->bytes && u->divisor % u->bytes == 0;
        const uint64_t bytes = ((i->stride * width + 63) & ~(uint64_t)63) + 64; /* room for gathers of words */
        m->thread[r] =
            (struct thread_memory){.spread = across ? width : 1, .lane_stride = across ? u->bytes : i->stride};
        i->stride = m->thread[r].lane_stride;
        if (!u->escapes && !l->phases && bytes <= stack) {
            m->thread[r].bytes = bytes;
            stack -= bytes;
            continue;
        }
        i->offset = (l->out->private_bytes + 63) & ~(uint64_t)63;
        l->out->private_bytes = i->offset + bytes;
    }
    mem_free(l->mem, uses, m->n * sizeof *uses);
}
