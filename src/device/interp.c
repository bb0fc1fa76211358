/* interp.c - the interpreter as a device. */
#include "interp/interp.h"

#include "device/device.h"

static bool probe(struct buf *reason)
{
    (void)reason;
    return true;
}

static sk_status compile(struct mem *mem, struct ir_module *m, uint32_t kernel, void **program, sk_error *err)
{
    struct interp_program *p = NULL;
    TRY(interp_compile(mem, m, kernel, &p, err));
    *program = p;
    return SK_OK;
}

static void release(void *program)
{
    interp_free(program);
}

static uint32_t threadgroup_bytes(const void *program)
{
    return interp_threadgroup_bytes(program);
}

static sk_status launch(void *program, const sk_launch *l, struct mem *mem, sk_error *err)
{
    struct interp_arg few[32];
    struct mem *const temp = l->n_args > 32 ? mem_temp(mem) : NULL;
    struct interp_arg *const args = temp ? mem_alloc(temp, l->n_args * sizeof *args) : few;
    for (size_t k = 0; k < l->n_args; k++)
        args[k] = (struct interp_arg){l->args[k].data, l->args[k].size};
    const struct interp_launch launch = {
        .threads = {l->grid.x, l->grid.y, l->grid.z},
        .threadgroup = {l->threadgroup.x, l->threadgroup.y, l->threadgroup.z},
        .args = args,
        .stop = l->stop,
    };
    const sk_status st = interp_run(program, &launch, mem, err);
    if (temp)
        mem_temp_end(temp);
    return st;
}

const struct backend backend_interp = {
    .abi = BACKEND_ABI,
    .name = "interp",
    .description = "reference interpreter: defines what kernels mean, runs anywhere, single-threaded",
    .limits = {.max_threads = 1024, .max_threadgroup_memory = 32768, .max_buffers = 31, .width = 32},
    .probe = probe,
    .compile = compile,
    .release = release,
    .threadgroup_bytes = threadgroup_bytes,
    .launch = launch,
};
