/* gen.c - functions, kernels, their parameters and their launch. */
#include "fuzz/gen_internal.h"

#include <stdio.h>

/* ---- arguments ------------------------------------------------------------------------------------------------- */

/* Fills a value in memory by its leaves; padding stays zero. */
static void fill(struct gen *g, ir_type t, char *at)
{
    const struct type *const x = ir_type_at(g->m, t);
    if (ir_type_width(t) == 1) {
        const uint64_t bits = gen_bits(g, ir_type_scalar(t));
        memcpy(at, &bits, scalar_info[ir_type_scalar(t)].bytes);
        return;
    }
    for (uint64_t k = 0; k < ir_type_parts(g->m, t); k++) {
        const ir_type part = ir_type_part(g->m, t, k);
        fill(g, part,
             at + (x->kind == TYPE_KIND_STRUCT ? g->m->fields.at[x->first_field + k].offset
                                               : k * (x->kind == TYPE_KIND_VECTOR ? scalar_info[x->scalar].bytes
                                                                                  : ir_type_at(g->m, part)->size)));
    }
}

static struct gen_arg *argument(struct gen *g, ir_type elem, uint64_t count, bool memory)
{
    const size_t size = (size_t)ir_type_at(g->m, elem)->size;
    struct gen_arg *const a = &g->p->arg[g->p->n_args++];
    *a = (struct gen_arg){.elem = elem, .size = size * (size_t)count};
    if (memory) {
        a->data = arena_alloc(&g->p->arena, a->size);
        for (uint64_t k = 0; k < count; k++)
            fill(g, elem, (char *)a->data + k * size);
    }
    return a;
}

static uint32_t parameter(struct gen *g, uint32_t func, const char *name, unsigned number, struct param p)
{
    char text[24];
    if (number)
        (void)snprintf(text, sizeof text, "%s%u", name, number);
    p.name = ir_string(g->m, number ? text : name);
    return ir_param(g->m, func, &p);
}

/* ---- launch ---------------------------------------------------------------------------------------------------- */

static unsigned choose_launch(struct gen *g)
{
    static const uint8_t shape[][3] = {{32, 1, 1}, {64, 1, 1}, {1, 1, 1}, {7, 1, 1},  {33, 1, 1}, {96, 1, 1},
                                       {16, 3, 1}, {8, 8, 1},  {5, 7, 1}, {32, 2, 1}, {4, 3, 3},  {2, 2, 8}};
    struct gen_program *const p = g->p;
    const uint8_t *const s = shape[roll(g, sizeof shape / sizeof *shape)];
    unsigned dims = 1;
    for (unsigned d = 0; d < 3; d++) {
        p->threadgroup[d] = s[d];
        p->threads[d] = s[d];
        if (s[d] > 1)
            dims = d + 1;
    }
    if (chance(g, 50))
        p->threads[0] *= 1 + roll(g, 3);
    if (chance(g, 40)) /* a group that is not full */
        p->threads[roll(g, dims)] += 1 + roll(g, 5);
    return dims;
}

/* The thread's number in the grid, and the attributes that give it. */
static uint32_t linear_index(struct gen *g, unsigned dims, uint32_t position, uint32_t size)
{
    if (dims == 1)
        return position;
    uint32_t at = 0;
    for (unsigned d = dims; d-- > 0;) {
        const uint32_t x = gen_node(g, OP_EXTRACT, TYPE_U32, 1, &position, 0, d);
        if (!at) {
            at = x;
            continue;
        }
        const uint32_t n = gen_node(g, OP_EXTRACT, TYPE_U32, 1, &size, 0, d);
        at = gen_node(g, OP_MUL, TYPE_U32, 2, (const uint32_t[]){at, n}, 0, 0);
        at = gen_node(g, OP_ADD, TYPE_U32, 2, (const uint32_t[]){at, x}, 0, 0);
    }
    return at;
}

static ir_type integer_for_atomics(struct gen *g)
{
    return (ir_type[]){TYPE_I32, TYPE_U32, TYPE_I64, TYPE_U64}[roll(g, 4)];
}

static enum op tally_op(struct gen *g)
{
    static const enum op op[] = {OP_ATOMIC_ADD, OP_ATOMIC_SUB, OP_ATOMIC_AND, OP_ATOMIC_OR,
                                 OP_ATOMIC_XOR, OP_ATOMIC_MIN, OP_ATOMIC_MAX};
    return op[roll(g, 7)];
}

/* ---- kernels --------------------------------------------------------------------------------------------------- */

static void inputs(struct gen *g, uint32_t func)
{
    for (unsigned k = 1 + roll(g, 3); k > 0; k--) {
        const enum space space = chance(g, 70) ? SPACE_DEVICE : SPACE_CONSTANT;
        struct memory x = {.elem = gen_type(g), .count = chance(g, 50) ? 1u << roll(g, 7) : 1 + roll(g, 40)};
        x.space = space;
        x.uniform = true;
        gen_wanted(g, &x);
        x.pointer = parameter(g, func, "in", k,
                              (struct param){.type = TYPE_POINTER(space), .elem = x.elem, .kind = PARAM_BUFFER});
        argument(g, x.elem, x.count, true);
        gen_push(g, x.pointer, true);
        VEC_PUSH(g->mem, &g->memories, x);
    }
    for (unsigned k = roll(g, 4); k > 0; k--) {
        const ir_type t = gen_type(g);
        if (ir_type_at(g->m, t)->kind == TYPE_KIND_ARRAY)
            continue;
        gen_push(g, parameter(g, func, "n", k, (struct param){.type = t, .kind = PARAM_VALUE}), true);
        argument(g, t, 1, true);
    }
}

/* Is it the same in a threadgroup that the grid cuts? */
static bool hides_edges(enum attribute a)
{
    return a == ATTR_THREAD_POSITION_IN_GRID || a == ATTR_THREAD_POSITION_IN_THREADGROUP ||
           a == ATTR_THREADGROUP_POSITION_IN_GRID || a == ATTR_DISPATCH_THREADS_PER_THREADGROUP ||
           a == ATTR_THREADGROUPS_PER_GRID || a == ATTR_THREADS_PER_GRID;
}

static void attributes(struct gen *g, uint32_t func)
{
    for (unsigned k = roll(g, 4); k > 0; k--) {
        const uint8_t a = (uint8_t)(1 + roll(g, ATTR_COUNT - 1));
        if (g->p->masks_edges && !hides_edges((enum attribute)a))
            continue;
        const enum scalar s = chance(g, 70) ? S_U32 : S_U16;
        const ir_type t = attr_info[a].vec && chance(g, 50) ? ir_type_vector(s, 2 + roll(g, 2)) : (ir_type)s;
        const uint32_t id =
            parameter(g, func, "a", k, (struct param){.type = t, .kind = PARAM_ATTRIBUTE, .attribute = a});
        gen_push(g, id, attr_info[a].uniform <= UNIFORM_T);
    }
}

/* Threadgroup memory is declared at the head of the kernel. */
static void threadgroup_memory(struct gen *g, uint32_t func, uint64_t n_threads, bool as_parameter)
{
    struct memory x = {.elem = gen_type(g), .count = n_threads, .space = SPACE_THREADGROUP};
    const ir_type type = TYPE_POINTER(SPACE_THREADGROUP);
    if (ir_type_at(g->m, x.elem)->size > 64)
        x.elem = TYPE_F32;
    if (as_parameter) {
        x.pointer =
            parameter(g, func, "shared", 0, (struct param){.type = type, .elem = x.elem, .kind = PARAM_THREADGROUP});
        argument(g, x.elem, x.count, false);
    } else {
        x.pointer = ir_node(&g->b, OP_ALLOC, type, 0, NULL, 0, ir_type_array(g->m, x.elem, x.count));
    }
    VEC_PUSH(g->mem, &g->exchanges, x);
}

static void kernel(struct gen *g)
{
    struct gen_program *const p = g->p;
    const unsigned dims = choose_launch(g);
    uint64_t n_threads = 1, n_group = 1;
    for (unsigned d = 0; d < 3; d++) {
        n_threads *= p->threads[d];
        n_group *= p->threadgroup[d];
    }
    const uint32_t func = ir_func(g->m, ir_string(g->m, "fuzzed"), true, TYPE_VOID, 0);
    p->kernel = func;
    g->kernel = true;
    g->exchanging = chance(g, 30);
    g->result = TYPE_VOID;
    g->b = (struct ir_builder){.m = g->m, .func = func, .region = g->m->funcs.at[func].region};
    g->m->funcs.at[func].no_contract = !p->contracts;
    g->m->funcs.at[func].fast = chance(g, 5);
    if (chance(g, 5))
        g->m->funcs.at[func].max_threads = 1024;

    inputs(g, func);
    struct memory out[3];
    uint64_t each[3];
    const unsigned n_out = 1 + roll(g, 3);
    for (unsigned k = 0; k < n_out; k++) {
        each[k] = 1 + roll(g, 4);
        out[k] = (struct memory){.elem = chance(g, 30) ? integer_for_atomics(g) : gen_type(g),
                                 .count = each[k],
                                 .space = SPACE_DEVICE,
                                 .writable = true};
        out[k].pointer =
            parameter(g, func, "out", k + 1,
                      (struct param){.type = TYPE_POINTER(SPACE_DEVICE), .elem = out[k].elem, .kind = PARAM_BUFFER});
        argument(g, out[k].elem, n_threads * each[k], true)->output = true;
        if (p->write_faults && chance(g, 30)) /* too short for the last threads */
            p->arg[p->n_args - 1].size -=
                (1 + roll(g, (uint32_t)(n_threads * each[k]))) * (size_t)ir_type_at(g->m, out[k].elem)->size;
    }
    const uint32_t sums = parameter(
        g, func, "sums", 0, (struct param){.type = TYPE_POINTER(SPACE_DEVICE), .elem = TYPE_U32, .kind = PARAM_BUFFER});
    argument(g, TYPE_U32, n_threads, true)->output = true;
    if (chance(g, 60)) {
        struct tally t = {.elem = integer_for_atomics(g), .count = 1 + roll(g, 5), .op = tally_op(g)};
        t.pointer = parameter(
            g, func, "tally", 0,
            (struct param){
                .type = TYPE_POINTER(SPACE_DEVICE), .elem = t.elem, .kind = PARAM_BUFFER, .atomic = chance(g, 50)});
        argument(g, t.elem, t.count, true)->output = true;
        VEC_PUSH(g->mem, &g->tallies, t);
    }
    if (chance(g, 40) && !p->masks_edges)
        threadgroup_memory(g, func, n_group, true);
    const ir_type wide = dims == 1 ? TYPE_U32 : ir_type_vector(S_U32, dims);
    const uint32_t position =
        parameter(g, func, "gid", 0,
                  (struct param){.type = wide, .kind = PARAM_ATTRIBUTE, .attribute = ATTR_THREAD_POSITION_IN_GRID});
    const uint32_t size = parameter(
        g, func, "size", 0, (struct param){.type = wide, .kind = PARAM_ATTRIBUTE, .attribute = ATTR_THREADS_PER_GRID});
    g->lane = 0;
    if (!p->masks_edges)
        g->lane = parameter(
            g, func, "tid", 0,
            (struct param){.type = TYPE_U32, .kind = PARAM_ATTRIBUTE, .attribute = ATTR_THREAD_INDEX_IN_THREADGROUP});
    gen_push(g, position, false);
    gen_push(g, size, true);
    if (g->lane)
        gen_push(g, g->lane, false);
    attributes(g, func);

    if (chance(g, 40) && !p->masks_edges)
        threadgroup_memory(g, func, n_group, false);
    if (chance(g, 40)) {
        struct tally t = {.elem = integer_for_atomics(g), .count = 1 + roll(g, 3), .op = tally_op(g), .readable = true};
        t.pointer =
            ir_node(&g->b, OP_ALLOC, TYPE_POINTER(SPACE_THREADGROUP), 0, NULL, 0, ir_type_array(g->m, t.elem, t.count));
        VEC_PUSH(g->mem, &g->tallies, t);
    }
    const uint32_t index = g->index = linear_index(g, dims, position, size);
    for (unsigned k = 0; k < n_out; k++) {
        out[k].base =
            gen_node(g, OP_MUL, TYPE_U32, 2, (const uint32_t[]){index, ir_const(g->m, TYPE_U32, each[k])}, 0, 0);
        VEC_PUSH(g->mem, &g->memories, out[k]);
    }
    const uint32_t zero = ir_const(g->m, TYPE_U32, 0x811c9dc5);
    g->acc = ir_node(&g->b, OP_VAR, TYPE_U32, 1, &zero, 0, 0);
    g->uniform = true;

    /* The sums are stored at the end, and somewhere in the middle for the threads that do not get there. */
    for (unsigned half = 0; half < 2; half++) {
        const unsigned budget = g->budget;
        g->budget /= 2 - half;
        if (half)
            gen_region(g, g->b.region, END_KERNEL);
        else
            gen_statements(g, g->budget);
        g->budget = budget / 2;
        const uint32_t x = ir_node(&g->b, OP_GET, TYPE_U32, 1, &g->acc, 0, 0);
        ir_store(&g->b, ir_index(&g->b, TYPE_U32, sums, index), x);
    }
}

/* ---- functions ------------------------------------------------------------------------------------------------- */

static void function(struct gen *g)
{
    static const char *const names[] = {"helper", "mix", "pick_2", "f"};
    struct callee c = {.result = chance(g, 80) ? gen_type(g) : TYPE_VOID};
    const uint32_t func = ir_func(g->m, ir_string(g->m, names[g->n_callees]), false, c.result, 0);
    c.func = func;
    g->b = (struct ir_builder){.m = g->m, .func = func, .region = g->m->funcs.at[func].region};
    g->m->funcs.at[func].no_contract = !g->p->contracts || chance(g, 20);
    g->m->funcs.at[func].fast = chance(g, 10);
    g->kernel = false;
    g->uniform = false;
    g->result = c.result;
    g->lane = g->index = 0;
    for (unsigned k = roll(g, 5); k > 0; k--) {
        struct memory x = {0};
        c.type[c.n] = gen_type(g);
        if (chance(g, 40)) {
            x = (struct memory){.elem = gen_type(g), .count = 1 + roll(g, 3)};
            x.space = (enum space[]){SPACE_DEVICE, SPACE_CONSTANT, SPACE_THREAD}[roll(g, 3)];
            x.writable = x.space == SPACE_THREAD;
            c.type[c.n] = TYPE_POINTER(x.space);
            c.memory[c.n] = x;
        }
        const uint32_t id =
            parameter(g, func, "p", k, (struct param){.type = c.type[c.n], .elem = x.elem, .kind = PARAM_VALUE});
        gen_push(g, id, false);
        if (x.elem) {
            x.pointer = id;
            VEC_PUSH(g->mem, &g->memories, x);
        }
        c.n++;
    }
    const uint32_t zero = ir_const(g->m, TYPE_U32, 7);
    g->acc = c.result == TYPE_U32 ? ir_node(&g->b, OP_VAR, TYPE_U32, 1, &zero, 0, 0) : 0;
    g->budget = 2 + roll(g, 20);
    gen_region(g, g->b.region, END_FUNCTION);
    g->values.n = g->vars.n = g->memories.n = g->known.n = 0;
    g->callee[g->n_callees++] = c;
}

/* ---- programs -------------------------------------------------------------------------------------------------- */

void gen_program(struct mem *mem, uint64_t seed, struct gen_program *out)
{
    struct mem *const temp = mem_temp(mem);
    struct gen *const g = mem_zalloc(temp, sizeof *g);
    *out = (struct gen_program){.m = ir_module_new(mem)};
    arena_init(&out->arena, mem);
    g->mem = temp;
    g->m = out->m;
    g->p = out;
    g->state = seed;
    (void)gen_random(&g->state);
    gen_tables(g);
    g->file = ir_string(g->m, "fuzz.py");
    out->contracts = chance(g, 30);
    out->write_faults = chance(g, 12);
    out->read_faults = out->write_faults || chance(g, 15);
    out->masks_edges = chance(g, 20);
    for (unsigned k = roll(g, 5); k > 0; k--)
        gen_new_aggregate(g);
    for (unsigned k = chance(g, 50) ? roll(g, 4) : 0; k > 0; k--)
        function(g);
    g->budget = 4 + roll(g, chance(g, 10) ? 400 : 90);
    kernel(g);
    mem_temp_end(temp);
}

void gen_free(struct gen_program *p)
{
    ir_module_free(p->m);
    arena_free(&p->arena);
}
