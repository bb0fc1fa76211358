/* module.c - the life of a module. */
#include "ir/ir.h"

/* Entry 0 of every table is taken, so that 0 names nothing. */
static void fill(struct ir_module *m)
{
    ir_types_init(m);
    VEC_PUSH(m->mem, &m->nodes, (struct node){0});
    VEC_PUSH(m->mem, &m->side, 0);
    VEC_PUSH(m->mem, &m->regions, (struct region){0});
    VEC_PUSH(m->mem, &m->cases, 0);
    VEC_PUSH(m->mem, &m->places, (struct place){0});
    VEC_PUSH(m->mem, &m->fields, (struct field){0});
    VEC_PUSH(m->mem, &m->params, (struct param){0});
    VEC_PUSH(m->mem, &m->funcs, (struct func){0});
}

#define VEC_COPY(m, to, from)                                                                                          \
    do {                                                                                                               \
        VEC_RESERVE((m), (to), (from)->n);                                                                             \
        memcpy((to)->at, (from)->at, (from)->n * sizeof *(to)->at);                                                    \
        (to)->n = (from)->n;                                                                                           \
    } while (0)

static uint32_t *copy_slots(struct mem *mem, const uint32_t *from, uint32_t n)
{
    uint32_t *const to = mem_alloc(mem, n * sizeof *to);
    if (to)
        memcpy(to, from, n * sizeof *to);
    return to;
}

static void copy(struct ir_module *to, const struct ir_module *from)
{
    struct mem *const mem = to->mem;
    for (uint32_t id = 1; id < from->strings.str.n; id++) {
        const char *const s = strtab_str(&from->strings, id);
        (void)strtab_id(&to->strings, s, strlen(s));
    }
    VEC_COPY(mem, &to->nodes, &from->nodes);
    VEC_COPY(mem, &to->side, &from->side);
    VEC_COPY(mem, &to->regions, &from->regions);
    VEC_COPY(mem, &to->cases, &from->cases);
    VEC_COPY(mem, &to->places, &from->places);
    VEC_COPY(mem, &to->types, &from->types);
    VEC_COPY(mem, &to->fields, &from->fields);
    VEC_COPY(mem, &to->params, &from->params);
    VEC_COPY(mem, &to->funcs, &from->funcs);
    to->const_slots = copy_slots(mem, from->const_slots, from->n_const_slots);
    to->n_const_slots = from->n_const_slots;
    to->n_consts = from->n_consts;
    to->place_slots = copy_slots(mem, from->place_slots, from->n_place_slots);
    to->n_place_slots = from->n_place_slots;
    to->type_slots = copy_slots(mem, from->type_slots, from->n_type_slots);
    to->n_type_slots = from->n_type_slots;
}

/* A new module, a copy of `from` unless that is null. When memory runs out halfway only this function knows the module:
 * the jump is caught, the module freed, and the jump goes on. */
static struct ir_module *make(struct mem *mem, const struct ir_module *from)
{
    struct ir_module *const m = mem_zalloc(mem, sizeof *m);
    m->mem = mem;
    strtab_init(&m->strings, mem);
    jmp_buf *const outer = mem->recover;
    jmp_buf here;
    if (_setjmp(here) != 0) {
        mem->recover = outer;
        ir_module_free(m);
        mem_out_of_memory(mem);
    }
    mem->recover = &here;
    if (from)
        copy(m, from);
    else
        fill(m);
    mem->recover = outer;
    return m;
}

struct ir_module *ir_module_new(struct mem *mem)
{
    return make(mem, NULL);
}

struct ir_module *ir_module_clone(struct mem *mem, const struct ir_module *m)
{
    return make(mem, m);
}

void ir_module_free(struct ir_module *m)
{
    if (!m)
        return;
    struct mem *const mem = m->mem;
    strtab_free(&m->strings);
    VEC_FREE(mem, &m->nodes);
    VEC_FREE(mem, &m->side);
    VEC_FREE(mem, &m->regions);
    VEC_FREE(mem, &m->cases);
    VEC_FREE(mem, &m->places);
    VEC_FREE(mem, &m->types);
    VEC_FREE(mem, &m->fields);
    VEC_FREE(mem, &m->params);
    VEC_FREE(mem, &m->funcs);
    mem_free(mem, m->const_slots, m->n_const_slots * sizeof *m->const_slots);
    mem_free(mem, m->place_slots, m->n_place_slots * sizeof *m->place_slots);
    mem_free(mem, m->type_slots, m->n_type_slots * sizeof *m->type_slots);
    mem_free(mem, m, sizeof *m);
}

size_t ir_module_bytes(const struct ir_module *m)
{
    return (m->nodes.n - 1) * sizeof *m->nodes.at + (m->side.n - 1) * sizeof *m->side.at +
           (m->regions.n - 1) * sizeof *m->regions.at + (m->cases.n - 1) * sizeof *m->cases.at +
           (m->places.n - 1) * sizeof *m->places.at;
}
