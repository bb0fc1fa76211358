/* cpu.c - kernels compiled by LLVM for this processor, as a device. What cannot be compiled is interpreted. */
#include "cpu/pool.h"
#include "cpu/program.h"
#include "device/device.h"
#include "interp/interp.h"
#include "llvm/llvm.h"

struct fallback {
    struct mem mem;
    struct interp_program *program;
};

struct cpu_pipeline {
    struct mem *mem;
    struct cpu_program *compiled;
    struct fallback *fallback; /* atomic; null until the interpreter is needed */
};

static bool probe(struct buf *reason)
{
    char path[1024];
    return llvm_find(path, sizeof path, reason);
}

static sk_status compile(struct mem *mem, struct ir_module *m, uint32_t kernel, void **program, sk_error *err)
{
    struct cpu_pipeline *const p = mem_zalloc(mem, sizeof *p);
    *program = p; /* is released from here on */
    p->mem = mem;
    TRY(pool_check(err));
    return cpu_program_new(mem, m, kernel, &p->compiled);
}

static void free_fallback(struct fallback *f)
{
    if (!f)
        return;
    interp_free(f->program);
    struct mem mem = f->mem;
    mem_free(&mem, f, sizeof *f);
}

static void release(void *program)
{
    struct cpu_pipeline *const p = program;
    cpu_program_free(p->compiled);
    free_fallback(p->fallback);
    mem_free(p->mem, p, sizeof *p);
}

static uint32_t threadgroup_bytes(const void *program)
{
    const struct cpu_pipeline *const p = program;
    return cpu_program_threadgroup_bytes(p->compiled);
}

/* ---- the interpreter --------------------------------------------------------------------------------------------- */

static sk_status new_fallback(const struct cpu_pipeline *p, struct mem *mem, struct fallback **out, sk_error *err)
{
    struct fallback *const f = mem_zalloc(mem, sizeof *f);
    mem_init(&f->mem, &mem->alloc);
    uint32_t func;
    const struct ir_module *const m = cpu_program_module(p->compiled, &func);
    sk_status st;
    MEM_GUARD(&f->mem, err, st, interp_compile(&f->mem, m, func, &f->program, err));
    if (st != SK_OK)
        free_fallback(f);
    else
        *out = f;
    return st;
}

static sk_status interpret(struct cpu_pipeline *p, const sk_launch *l, struct mem *mem, sk_error *err)
{
    struct fallback *f = __atomic_load_n(&p->fallback, __ATOMIC_ACQUIRE);
    if (!f) {
        struct fallback *mine = NULL;
        TRY(new_fallback(p, mem, &mine, err));
        if (__atomic_compare_exchange_n(&p->fallback, &f, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            f = mine;
        else
            free_fallback(mine); /* another thread was faster */
    }
    return backend_interp.launch(f->program, l, mem, err);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static sk_status launch(void *program, const sk_launch *l, struct mem *mem, sk_error *err)
{
    struct cpu_pipeline *const p = program;
    const char *because;
    TRY(cpu_program_launch(p->compiled, l, mem, &because, err));
    return SK_UNLIKELY(because) ? interpret(p, l, mem, err) : SK_OK;
}

static sk_status prepare(void *program, sk_size threadgroup, struct mem *mem, sk_error *err)
{
    struct cpu_pipeline *const p = program;
    const char *because;
    (void)mem;
    return cpu_program_prepare(p->compiled, threadgroup, &because, err);
}

static bool is_short(const void *program, const sk_launch *l)
{
    const struct cpu_pipeline *const p = program;
    return cpu_program_is_short(p->compiled, l);
}

static const char *note(const void *program)
{
    const struct cpu_pipeline *const p = program;
    return cpu_program_note(p->compiled);
}

static sk_status text(void *program, sk_size threadgroup, bool unchecked, sk_text kind, struct buf *out, sk_error *err)
{
    struct cpu_pipeline *const p = program;
    const enum cpu_text what = kind == SK_TEXT_TIMES            ? CPU_TEXT_TIMES
                               : kind == SK_TEXT_ASM            ? CPU_TEXT_ASM
                               : kind == SK_TEXT_LLVM_OPTIMISED ? CPU_TEXT_OPTIMISED
                                                                : CPU_TEXT_LLVM;
    return cpu_program_text(p->compiled, threadgroup, unchecked, what, out, err);
}

const struct backend backend_cpu = {
    .abi = BACKEND_ABI,
    .name = "cpu",
    .description = "this processor: kernels compiled by LLVM into vector code, on all its cores",
    .limits = {.max_threads = 1024, .max_threadgroup_memory = 32768, .max_buffers = 31, .width = 32},
    .probe = probe,
    .compile = compile,
    .release = release,
    .threadgroup_bytes = threadgroup_bytes,
    .launch = launch,
    .prepare = prepare,
    .is_short = is_short,
    .note = note,
    .text = text,
    .details = cpu_describe,
    .threads = pool_default,
    .expect = cpu_expect,
    .unchecked = true,
};
