/* program.c - see program.h.
 *
 * Variants. Each is compiled for one size of threadgroup, up to STATIC_SHAPES of them; further sizes, and
 * threadgroups that the grid cuts, run code whose size is a run-time value. Where nothing in the kernel tells a cut
 * threadgroup from a full one but the threads that are missing, cut ones run code of the full size under a mask
 * instead. Variants are added at the head of a list and never change or go, so that a launch finds its own without a
 * lock.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* pthread_getattr_np */
#endif
#include "cpu/program.h"

#include "cpu/cache.h"
#include "cpu/pool.h"
#include "llvm/llvm.h"
#include "pass/pass.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

/* Code whose size is a run-time value may be thirty times slower in two dimensions, and who tunes a kernel tries many. */
#define STATIC_SHAPES 64u

/* Most text for each way to compile, so that a compilation takes seconds at most (docs/decisions.md). What matters is
 * how many values are live at once: with few LLVM takes 1.5 ms for a KiB, with hundreds ten times that, but for the last
 * way. Past it the interpreter runs the kernel. */
#define FULL_BYTES ((size_t)128 << 10)
#define QUICK_BYTES ((size_t)256 << 10)
#define LEAST_BYTES ((size_t)2 << 20)

/* A frame of generated code lies on a stack of the user's, which may be small, or on that of a fiber. */
#define FRAME_BYTES ((size_t)256 << 10)
#define FIBER_FRAME_BYTES ((size_t)4 << 20)
#define OTHER_STACK_BYTES ((size_t)64 << 10) /* for helpers, signal handlers and the rest */

#define ABI "spork-cpu-1" /* changes with the meaning of run.h or of helpers.def */

struct cpu_program {
    struct mem *owner; /* where the program itself lies */
    struct mem mem;    /* of all else; guarded by the lock */
    struct ir_module *m;
    uint32_t func;
    const char *name;
    size_t n_args;
    uint8_t *is_value; /* by argument: given by value */
    uint8_t *access;   /* by argument: ARG_* */
    uint32_t threadgroup_bytes;
    bool has_loops, has_constants, masks_edges, quick, full;
    uint32_t lock;            /* atomic: 0 free, else generation + 1 of the process that holds it */
    struct cpu_variant *head; /* atomic: the newest */
    struct cpu_variant *last; /* atomic: the one used last for full threadgroups */
    struct cpu_variant *building;
    const char *note; /* atomic */
};

enum { ARG_CONSTANT = 1, ARG_WRITTEN = 2 };

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELEASE)

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

/* May a thread of a cut threadgroup learn by this that it is cut, other than by who is missing? */
static bool reveals(enum attribute a)
{
    switch (a) {
    case ATTR_THREAD_POSITION_IN_GRID:
    case ATTR_THREADS_PER_GRID:
    case ATTR_THREAD_POSITION_IN_THREADGROUP:
    case ATTR_THREADGROUP_POSITION_IN_GRID:
    case ATTR_DISPATCH_THREADS_PER_THREADGROUP:
    case ATTR_THREADGROUPS_PER_GRID:
    case ATTR_DISPATCH_SIMDGROUPS_PER_THREADGROUP:
    case ATTR_DISPATCH_QUADGROUPS_PER_THREADGROUP:
    case ATTR_THREADS_PER_SIMDGROUP:
    case ATTR_THREAD_EXECUTION_WIDTH:
    case ATTR_NONE: return false;
    case ATTR_THREADS_PER_THREADGROUP:
    case ATTR_THREAD_INDEX_IN_THREADGROUP:
    case ATTR_THREAD_INDEX_IN_SIMDGROUP:
    case ATTR_SIMDGROUP_INDEX_IN_THREADGROUP:
    case ATTR_SIMDGROUPS_PER_THREADGROUP:
    case ATTR_THREAD_INDEX_IN_QUADGROUP:
    case ATTR_QUADGROUP_INDEX_IN_THREADGROUP:
    case ATTR_QUADGROUPS_PER_THREADGROUP:
    case ATTR_COUNT: break;
    }
    return true;
}

static void look_at_nodes(struct cpu_program *p, uint32_t region, uint64_t *threadgroup)
{
    const struct ir_module *const m = p->m;
    IR_EACH(m, region, id)
    {
        const struct node *const x = ir_at(m, id);
        if (op_info[x->op].effect == EFFECT_CONVERGENT)
            p->masks_edges = false;
        if (x->op == OP_LOOP)
            p->has_loops = true;
        if (x->op == OP_ALLOC && ir_type_space(x->type) == SPACE_THREADGROUP)
            *threadgroup = ((*threadgroup + 15) & ~(uint64_t)15) + ir_type_at(m, (ir_type)x->imm)->size;
        if (ir_is_construct(x->op))
            for (unsigned r = 0; r < ir_n_regions(m, id); r++)
                look_at_nodes(p, ir_region(m, id, r), threadgroup);
    }
}

static void look(struct cpu_program *p)
{
    const struct func *const f = &p->m->funcs.at[p->func];
    struct mem *const temp = mem_temp(&p->mem);
    uint8_t *const access = mem_zalloc(temp, f->n_params + 1u);
    ir_param_access(p->m, p->func, access, temp);
    p->is_value = mem_zalloc(&p->mem, f->n_params + 1u);
    p->access = mem_zalloc(&p->mem, f->n_params + 1u);
    p->masks_edges = true;
    for (uint32_t k = 0; k < f->n_params; k++) {
        const struct param *const x = &p->m->params.at[f->first_param + k];
        if (x->kind == PARAM_ATTRIBUTE) {
            p->masks_edges = p->masks_edges && !reveals((enum attribute)x->attribute);
            continue;
        }
        p->is_value[p->n_args] = x->kind == PARAM_VALUE;
        if (x->kind == PARAM_BUFFER) {
            const bool constant = ir_type_space(x->type) == SPACE_CONSTANT;
            p->has_constants = p->has_constants || constant;
            p->access[p->n_args] =
                (uint8_t)((constant ? ARG_CONSTANT : 0) | (access[k] & ACCESS_WRITE ? ARG_WRITTEN : 0));
        }
        p->n_args++;
    }
    mem_temp_end(temp);
    uint64_t threadgroup = 0;
    look_at_nodes(p, f->region, &threadgroup);
    p->threadgroup_bytes = threadgroup < UINT32_MAX ? (uint32_t)threadgroup : UINT32_MAX;
}

static sk_status fill(struct cpu_program *p, const struct ir_module *m, uint32_t func)
{
    p->m = ir_module_clone(&p->mem, m);
    p->func = func;
    TRY(pass_run(p->m, "UD", NULL));
    p->name = strtab_str(&p->m->strings, m->funcs.at[func].name);
    look(p);
    const char *const effort = getenv("SPORK_EFFORT");
    p->quick = effort && strcmp(effort, "quick") == 0;
    p->full = effort && strcmp(effort, "full") == 0;
    return SK_OK;
}

sk_status cpu_program_new(struct mem *mem, const struct ir_module *m, uint32_t func, struct cpu_program **out)
{
    struct cpu_program *const p = mem_zalloc(mem, sizeof *p);
    p->owner = mem;
    mem_init(&p->mem, &mem->alloc);
    (void)pool_generation(); /* from now on forks are counted */
    sk_status st;
    MEM_GUARD(&p->mem, NULL, st, fill(p, m, func));
    if (st != SK_OK) {
        cpu_program_free(p);
        mem_out_of_memory(mem);
    }
    *out = p;
    return SK_OK;
}

static void free_variant(struct cpu_program *p, struct cpu_variant *v)
{
    if (!v)
        return;
    object_unload(&v->code);
    cpu_lowered_free(&p->mem, &v->lowered);
    mem_free(&p->mem, (void *)(uintptr_t)v->interpret, v->interpret ? strlen(v->interpret) + 1 : 0);
    mem_free(&p->mem, v, sizeof *v);
}

void cpu_program_free(struct cpu_program *p)
{
    if (!p)
        return;
    for (struct cpu_variant *v = p->head; v;) {
        struct cpu_variant *const older = v->older;
        free_variant(p, v);
        v = older;
    }
    const size_t n = p->m ? p->m->funcs.at[p->func].n_params + 1u : 0;
    mem_free(&p->mem, p->is_value, p->is_value ? n : 0);
    mem_free(&p->mem, p->access, p->access ? n : 0);
    ir_module_free(p->m);
    mem_free(p->owner, p, sizeof *p);
}

const struct ir_module *cpu_program_module(const struct cpu_program *p, uint32_t *func)
{
    *func = p->func;
    return p->m;
}

uint32_t cpu_program_threadgroup_bytes(const struct cpu_program *p)
{
    return p->threadgroup_bytes;
}

const char *cpu_program_note(const struct cpu_program *p)
{
    return LOAD(p->note);
}

/* ---- the lock ---------------------------------------------------------------------------------------------------- */

/* Held while compiling, and waited for only by who needs the same kernel. A child of fork may find it held by a
 * thread that does not exist there: it takes it over, and leaves what that thread had begun where it is. */
static void lock(struct cpu_program *p)
{
    const uint32_t mine = pool_generation() + 1;
    for (;;) {
        uint32_t holder = 0;
        if (__atomic_compare_exchange_n(&p->lock, &holder, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        if (holder != mine &&
            __atomic_compare_exchange_n(&p->lock, &holder, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            mem_init(&p->mem, &p->owner->alloc);
            p->building = NULL;
            return;
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

static void unlock(struct cpu_program *p)
{
    STORE(p->lock, 0);
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

static void machine_options(struct cpu_options *o)
{
    o->most = 16;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) {
        o->features = CPU_AVX512;
        o->most = 32;
    }
#endif
}

#define VERSION_BYTES 32u

/* What the library file is: while it is the same, so is its version. */
static void library_key(const char *path, struct cache_key *key)
{
    struct stat s = {0};
    (void)stat(path, &s);
    const int64_t what[3] = {(int64_t)s.st_size, (int64_t)s.st_mtime, (int64_t)s.st_ino};
    cache_key_init(key);
    cache_key_add(key, "llvm version", 12);
    cache_key_add(key, path, strlen(path));
    cache_key_add(key, what, sizeof what);
}

/* The version of LLVM, from the cache where it is known, else by opening it. */
static sk_status llvm_name(struct mem *mem, char version[VERSION_BYTES], sk_error *err)
{
    char path[1024];
    struct cache_key key;
    memset(version, 0, VERSION_BYTES);
    const bool found = llvm_find(path, sizeof path, NULL);
    if (found) {
        size_t n = 0;
        library_key(path, &key);
        char *const text = cache_get(mem, &key, &n);
        if (text && n < VERSION_BYTES)
            memcpy(version, text, n);
        mem_free(mem, text, n);
        if (*version)
            return SK_OK;
    }
    struct llvm *l = NULL;
    TRY(llvm_open(mem, &l, err));
    (void)snprintf(version, VERSION_BYTES, "%s", llvm_version(l));
    llvm_close(l);
    if (found)
        cache_put(mem, &key, version, strlen(version), path);
    return SK_OK;
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

static enum llvm_effort effort_for(const struct cpu_program *p, size_t text)
{
    if (p->quick || p->full)
        return p->full ? LLVM_FULL : LLVM_QUICK;
    if (text > QUICK_BYTES)
        return LLVM_LEAST;
    return p->has_loops && text <= FULL_BYTES ? LLVM_FULL : LLVM_QUICK;
}

static void interpret(struct cpu_program *p, struct cpu_variant *v, const char *why)
{
    const size_t n = strlen(why) + 1;
    char *const text = mem_alloc(&p->mem, n);
    memcpy(text, why, n);
    v->interpret = text;
    STORE(p->note, text);
}

/* Bytes of the frame of a function, which holds what does not fit into registers: read from its first instructions. */
static size_t frame_bytes(const void *code, size_t size)
{
    size_t n = 0;
#if defined(__x86_64__)
    const unsigned char *const c = code;
    for (size_t k = 0; k < 64 && k + 7 <= size && n == 0; k++)
        if (c[k] == 0x48 && c[k + 1] == 0x81 && c[k + 2] == 0xec) { /* sub rsp, imm32 */
            uint32_t bytes;
            memcpy(&bytes, c + k + 3, sizeof bytes);
            n = bytes;
        }
#elif defined(__aarch64__)
    for (size_t k = 0; k < 32 && 4 * k + 4 <= size; k++) {
        uint32_t i;
        memcpy(&i, (const char *)code + 4 * k, sizeof i);
        if ((i & 0xff8003ffu) == 0xd10003ffu) /* sub sp, sp, imm12, shifted by 0 or 12 */
            n += (size_t)(i >> 10 & 0xfffu) << (i >> 22 & 1u ? 12 : 0);
    }
#else
    (void)code;
    (void)size;
#endif
    return n;
}

static sk_status load(struct cpu_variant *v, const void *bytes, size_t n, sk_error *err)
{
    static const char *const names[2] = {"spork_kernel", "spork_bundle"};
    void *at[2] = {NULL, NULL};
    TRY(object_load(bytes, n, names, 2, at, &v->code, err));
    v->kernel = (cpu_kernel *)at[0];
    v->bundle = (fiber_bundle *)at[1];
    if (!at[v->lowered.fibers]) {
        object_unload(&v->code);
        return ERR(err, OBJECT_ENTRY, names[v->lowered.fibers]);
    }
    const char *const entry = at[v->lowered.fibers];
    v->stack = OTHER_STACK_BYTES + frame_bytes(entry, v->code.size - (size_t)(entry - (const char *)v->code.memory));
    return SK_OK;
}

static void step_done(struct cpu_variant *v, enum cpu_step step, uint64_t *begin)
{
    const uint64_t now = os_nanoseconds();
    v->took[step] = now - *begin;
    *begin = now;
}

static sk_status compile_text(struct cpu_program *p, struct mem *temp, struct cpu_variant *v, struct buf *text,
                              sk_error *err)
{
    char version[VERSION_BYTES], machine[512] = "", note[160];
    const enum llvm_effort effort = effort_for(p, text->n);
    TRY(llvm_name(temp, version, err));
    cache_machine(machine, sizeof machine);
    struct cache_key key;
    const uint8_t options[2] = {(uint8_t)effort, v->lowered.fibers};
    cache_key_init(&key);
    cache_key_add(&key, ABI, sizeof ABI);
    cache_key_add(&key, options, sizeof options);
    cache_key_add(&key, version, sizeof version);
    cache_key_add(&key, machine, strlen(machine) + 1);
    cache_key_add(&key, text->at, text->n);
    size_t n = 0;
    char *object = cache_get(temp, &key, &n);
    uint64_t begin = os_nanoseconds();
    const bool cached = object && load(v, object, n, NULL) == SK_OK;
    step_done(v, CPU_LINK, &begin);
    if (cached)
        return SK_OK;
    struct llvm *l = NULL;
    TRY(llvm_open(temp, &l, err));
    step_done(v, CPU_OPEN, &begin);
    const sk_status st = llvm_compile(l, text->at, text->n, effort, LLVM_OBJECT, temp, &object, &n, err);
    llvm_close(l);
    TRY(st);
    step_done(v, CPU_COMPILE, &begin);
    TRY(load(v, object, n, err));
    step_done(v, CPU_LINK, &begin);
    (void)snprintf(note, sizeof note, "%s %ux%ux%u%s", p->name, v->opt.dims[0], v->opt.dims[1], v->opt.dims[2],
                   v->opt.edge ? " edge" : "");
    cache_put(temp, &key, object, n, note);
    return SK_OK;
}

static void too_large(size_t text, char *why, size_t cap)
{
    (void)snprintf(why, cap, "its code is %zu KiB of LLVM text, the limit is %zu", text >> 10, LEAST_BYTES >> 10);
}

static sk_status build_in(struct cpu_program *p, struct mem *temp, struct cpu_variant *v, sk_error *err)
{
    struct buf text;
    buf_init(&text, temp);
    uint64_t begin = os_nanoseconds();
    TRY(cpu_lower(&p->mem, p->m, p->func, &v->opt, &text, &v->lowered, err));
    step_done(v, CPU_LOWER, &begin);
    if (v->lowered.interpret) {
        interpret(p, v, v->lowered.interpret);
        return SK_OK;
    }
    if (text.n > LEAST_BYTES) {
        char why[96];
        too_large(text.n, why, sizeof why);
        interpret(p, v, why);
        return SK_OK;
    }
    sk_error said = {0};
    const sk_status st = compile_text(p, temp, v, &text, &said);
    if (st == SK_OK && v->stack - OTHER_STACK_BYTES > (v->lowered.fibers ? FIBER_FRAME_BYTES : FRAME_BYTES)) {
        char why[96];
        (void)snprintf(why, sizeof why, "its values need %zu KiB beyond the registers, the limit is %zu",
                       v->stack >> 10, (v->lowered.fibers ? FIBER_FRAME_BYTES : FRAME_BYTES) >> 10);
        interpret(p, v, why);
        return SK_OK;
    }
    const bool no_thread = st == SK_ERR_MEMORY && strcmp(said.name, "LLVM_THREAD") == 0;
    if (st == SK_OK || (st == SK_ERR_MEMORY && !no_thread) ||
        st == SK_ERR_INVALID) { /* INVALID: what was generated is wrong */
        if (err && st != SK_OK)
            *err = said;
        return st;
    }
    interpret(p, v, said.message);
    return SK_OK;
}

static sk_status build(struct cpu_program *p, const struct cpu_options *o, sk_error *err)
{
    struct mem *const temp = mem_temp(&p->mem);
    struct cpu_variant *const v = p->building = mem_zalloc(&p->mem, sizeof *v);
    v->opt = *o;
    const sk_status st = build_in(p, temp, v, err);
    mem_temp_end(temp);
    return st;
}

static bool same(const struct cpu_options *a, const struct cpu_options *b)
{
    return a->dims[0] == b->dims[0] && a->dims[1] == b->dims[1] && a->dims[2] == b->dims[2] && a->edge == b->edge &&
           a->unchecked == b->unchecked;
}

static struct cpu_variant *find(const struct cpu_program *p, const struct cpu_options *o)
{
    struct cpu_variant *v = __atomic_load_n(&p->last, __ATOMIC_ACQUIRE);
    if (v && same(&v->opt, o))
        return v;
    for (v = LOAD(p->head); v; v = v->older)
        if (same(&v->opt, o))
            return v;
    return NULL;
}

static sk_status compile(struct cpu_program *p, const struct cpu_options *o, struct cpu_variant **out, sk_error *err)
{
    struct cpu_options with = *o;
    machine_options(&with);
    sk_status st = SK_OK;
    lock(p);
    struct cpu_variant *v = find(p, o); /* another thread may have been faster */
    if (!v) {
        MEM_GUARD(&p->mem, err, st, build(p, &with, err));
        v = p->building;
        p->building = NULL;
        if (st == SK_OK) {
            v->older = p->head;
            STORE(p->head, v);
        } else {
            free_variant(p, v);
        }
    }
    unlock(p);
    if (st == SK_OK)
        *out = v;
    return st;
}

/* ---- which variant ----------------------------------------------------------------------------------------------- */

/* Room for one more size that is a constant? */
static bool has_room(const struct cpu_program *p)
{
    unsigned n = 0;
    for (const struct cpu_variant *v = LOAD(p->head); v; v = v->older)
        n += v->opt.dims[0] != 0 && !v->opt.edge;
    return n < STATIC_SHAPES;
}

static bool is_line(sk_size g)
{
    return g.y == 1 && g.z == 1;
}

/* o: the options of the variant; false: not compiled. Sizes past the last constant one are run-time values. */
static struct cpu_variant *choose(const struct cpu_program *p, sk_size g, bool edge, bool unchecked,
                                  struct cpu_options *o)
{
    *o = (struct cpu_options){.dims = {g.x, g.y, g.z}, .edge = edge, .unchecked = unchecked};
    if (!edge || p->masks_edges) {
        struct cpu_variant *const v = find(p, o);
        if (v || has_room(p))
            return v;
    }
    o->edge = false;
    o->dims[0] = 0;
    o->dims[1] = o->dims[2] = is_line(g) ? 1 : 0;
    return find(p, o);
}

static sk_status get(struct cpu_program *p, sk_size g, bool edge, bool unchecked, struct cpu_variant **out,
                     sk_error *err)
{
    struct cpu_options o;
    struct cpu_variant *v = choose(p, g, edge, unchecked, &o);
    if (!v)
        TRY(compile(p, &o, &v, err));
    if (!edge && __atomic_load_n(&p->last, __ATOMIC_RELAXED) != v)
        STORE(p->last, v);
    *out = v;
    return SK_OK;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static bool overlaps(const sk_arg *a, const sk_arg *b)
{
    const uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
    return x < y + b->size && y < x + a->size;
}

/* Constant memory is taken not to change: what the kernel may write in it is written elsewhere than it is read. Gives
 * the arguments themselves, or copies with such memory copied. */
static const sk_arg *apart(const struct cpu_program *p, const sk_launch *l, struct mem *temp)
{
    sk_arg *copy = NULL;
    for (size_t k = 0; k < p->n_args; k++) {
        bool hit = false;
        for (size_t j = 0; j < p->n_args && (p->access[k] & ARG_CONSTANT); j++)
            hit = hit || ((p->access[j] & ARG_WRITTEN) && overlaps(&l->args[k], &l->args[j]));
        if (!hit)
            continue;
        if (!copy) {
            copy = mem_alloc(temp, p->n_args * sizeof *copy);
            memcpy(copy, l->args, p->n_args * sizeof *copy);
        }
        copy[k].data = mem_alloc(temp, l->args[k].size);
        memcpy(copy[k].data, l->args[k].data, l->args[k].size);
    }
    return copy ? copy : l->args;
}

/* Has the calling thread room for a frame of the code? Small ones are not asked for: 32 KiB are there wherever a launch is,
 * and finding the end of a stack takes some microseconds. */
#define SMALL_FRAME_BYTES ((size_t)32 << 10)
static bool has_stack(const struct cpu_variant *v)
{
    if (v->lowered.fibers || v->stack <= OTHER_STACK_BYTES + SMALL_FRAME_BYTES)
        return true;
#if defined(__GLIBC__)
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return true;
    const bool known = pthread_attr_getstack(&attributes, &low, &size) == 0;
    (void)pthread_attr_destroy(&attributes);
    return !known || (uintptr_t)__builtin_frame_address(0) - (uintptr_t)low > v->stack + OTHER_STACK_BYTES;
#else
    return v->stack <= OTHER_STACK_BYTES + SMALL_FRAME_BYTES * 2;
#endif
}

sk_status cpu_program_launch(struct cpu_program *p, const sk_launch *l, struct mem *mem, const char **interpret_because,
                             sk_error *err)
{
    const sk_size n = l->grid, g = l->threadgroup;
    struct cpu_variant *whole = NULL, *edge = NULL;
    const bool cut = (g.x != 1 && n.x % g.x) || (g.y != 1 && n.y % g.y) || (g.z != 1 && n.z % g.z);
    *interpret_because = NULL;
    if (n.x >= g.x && n.y >= g.y && n.z >= g.z)
        TRY(get(p, g, false, l->unchecked, &whole, err));
    if (cut)
        TRY(get(p, g, true, l->unchecked, &edge, err));
    if ((whole && whole->interpret) || (edge && edge->interpret)) {
        *interpret_because = whole && whole->interpret ? whole->interpret : edge->interpret;
        return SK_OK;
    }
    if ((whole && !has_stack(whole)) || (edge && !has_stack(edge))) {
        *interpret_because = "the stack of the calling thread is too small for its code";
        return SK_OK;
    }
    struct mem *const temp = p->has_constants ? mem_temp(mem) : NULL;
    const struct cpu_grid grid = {
        .kernel = p->name,
        .whole = whole,
        .edge = edge,
        .threads = {n.x, n.y, n.z},
        .group = {g.x, g.y, g.z},
        .args = temp ? apart(p, l, temp) : l->args,
        .is_value = p->is_value,
        .n_args = p->n_args,
        .stop = l->stop,
        .workers = l->workers,
    };
    const sk_status st = cpu_run(&grid, mem, err);
    if (temp)
        mem_temp_end(temp);
    return st;
}

sk_status cpu_program_prepare(struct cpu_program *p, sk_size group, const char **interpret_because, sk_error *err)
{
    struct cpu_variant *v = NULL;
    TRY(get(p, group, false, false, &v, err));
    *interpret_because = v->interpret;
    return SK_OK;
}

#define SHORT_WEIGHT 20000u

bool cpu_program_is_short(const struct cpu_program *p, const sk_launch *l)
{
    const sk_size n = l->grid, g = l->threadgroup;
    struct cpu_options o;
    const struct cpu_variant *const v = choose(p, g, n.x < g.x || n.y < g.y || n.z < g.z, l->unchecked, &o);
    if (!v || v->interpret || !v->lowered.bounded)
        return false;
    const uint64_t threads = (uint64_t)n.x * n.y;
    if (threads > SHORT_WEIGHT || n.z > SHORT_WEIGHT)
        return false;
    return (threads * n.z / v->lowered.width + 1) * (v->lowered.weight + 1u) <= SHORT_WEIGHT;
}

/* ---- for readers ------------------------------------------------------------------------------------------------- */

static sk_status text_of(const struct cpu_program *p, struct mem *mem, struct cpu_options *o, enum cpu_text kind,
                         struct buf *out, sk_error *err)
{
    struct cpu_lowered lowered;
    struct buf text;
    buf_init(&text, mem);
    machine_options(o);
    TRY(cpu_lower(mem, p->m, p->func, o, &text, &lowered, err));
    if (lowered.interpret)
        return ERR(err, CPU_INTERPRETED, p->name, lowered.interpret);
    if (kind == CPU_TEXT_LLVM) {
        buf_bytes(out, text.at, text.n);
        return SK_OK;
    }
    if (text.n > LEAST_BYTES) {
        char why[96];
        too_large(text.n, why, sizeof why);
        return ERR(err, CPU_INTERPRETED, p->name, why);
    }
    struct llvm *l = NULL;
    char *made;
    size_t n;
    TRY(llvm_open(mem, &l, err));
    const sk_status st = llvm_compile(l, text.at, text.n, effort_for(p, text.n),
                                      kind == CPU_TEXT_ASM ? LLVM_ASM : LLVM_IR, mem, &made, &n, err);
    llvm_close(l);
    TRY(st);
    buf_bytes(out, made, n);
    return SK_OK;
}

static void write_times(const struct cpu_program *p, sk_size group, bool unchecked, struct buf *out)
{
    static const char *const names[CPU_STEPS] = {"lower", "open LLVM", "compile", "link"};
    struct cpu_options o;
    const struct cpu_variant *const v = choose(p, group, false, unchecked, &o);
    for (unsigned k = 0; v && k < CPU_STEPS; k++)
        buf_fmt(out, "%s %.9f\n", names[k], (double)v->took[k] * 1e-9);
}

sk_status cpu_program_text(struct cpu_program *p, sk_size group, bool unchecked, enum cpu_text kind, struct buf *out,
                           sk_error *err)
{
    struct cpu_options o = {.dims = {group.x, group.y, group.z}, .unchecked = unchecked};
    if (kind == CPU_TEXT_TIMES) {
        write_times(p, group, unchecked, out);
        return SK_OK;
    }
    struct mem *const temp = mem_temp(out->mem);
    const sk_status st = text_of(p, temp, &o, kind, out, err);
    mem_temp_end(temp);
    return st;
}

/* The vector units among LLVM's list of all features of the processor: "+avx2,-sve,…". */
static void describe_features(struct buf *out, const char *features)
{
    static const char *const kinds[] = {"avx", "fma", "f16c",    "amx",      "neon",
                                        "sve", "sme", "dotprod", "fullfp16", "bf16"};
    unsigned n = 0;
    for (const char *f = features; *f; f += strcspn(f, ","), f += *f == ',')
        for (size_t k = 0; *f == '+' && k < sizeof kinds / sizeof *kinds; k++)
            if (strncmp(f + 1, kinds[k], strlen(kinds[k])) == 0)
                buf_fmt(out, "%s%.*s", n++ ? " " : "", (int)strcspn(f + 1, ","), f + 1);
    if (!n)
        buf_str(out, "no vector units");
}

sk_status cpu_describe(struct mem *mem, struct buf *out, sk_error *err)
{
    struct llvm *l = NULL;
    TRY(llvm_open(mem, &l, err));
    buf_fmt(out, "LLVM %s, %s (%s); %s: ", llvm_version(l), llvm_tested(l) ? "tested" : "untested", llvm_path(l),
            llvm_cpu(l));
    describe_features(out, llvm_features(l));
    buf_fmt(out, "; %u thread%s a launch", pool_default(), pool_default() == 1 ? "" : "s");
    llvm_close(l);
    return SK_OK;
}

void cpu_expect(struct mem *mem, const void *bytes, size_t n)
{
    struct cache_key key;
    size_t size = 0;
    cache_key_init(&key);
    cache_key_add(&key, "seen", 5);
    cache_key_add(&key, bytes, n);
    char *const seen = cache_get(mem, &key, &size);
    if (!seen) {
        llvm_prefetch();
        cache_put(mem, &key, "seen", 4, "a kernel's source");
    }
    mem_free(mem, seen, size);
}
