/* pipeline.c - libraries, functions, pipelines, and the checks before a launch. */
#include "device/objects.h"

#include "ir/module_object.h"
#include "pass/pass.h"

/* A kernel may call functions that together make it this large; more is refused by name. */
#define MAX_INLINED_NODES (1u << 20)

/* ---- libraries ---------------------------------------------------------------------------------------------------- */

static void destroy_library(void *object)
{
    sk_library *const l = object;
    ir_module_free(l->ir);
}

static sk_status copy_ir(sk_library *l, const struct ir_module *ir)
{
    l->ir = ir_module_clone(&l->head.mem, ir);
    return SK_OK;
}

sk_status sk_library_from_module(sk_device *device, const sk_module *module, sk_library **out, sk_error *err)
{
    sk_library *const l = object_new(device->ctx, sizeof *l, destroy_library, err);
    if (!l)
        return SK_ERR_MEMORY;
    l->device = device;
    sk_status st;
    MEM_GUARD(&l->head.mem, err, st, copy_ir(l, module->ir));
    if (st != SK_OK) {
        object_release(l);
        return st;
    }
    *out = l;
    return SK_OK;
}

sk_status sk_library_from_ir(sk_device *device, const char *text, size_t size, const char *name, sk_library **out,
                             sk_error *err)
{
    sk_module *m = NULL;
    TRY(sk_module_parse(device->ctx, text, size, name, &m, err));
    const sk_status st = sk_library_from_module(device, m, out, err);
    sk_module_release(m);
    return st;
}

void sk_library_release(sk_library *library)
{
    object_release(library);
}

/* ---- functions ---------------------------------------------------------------------------------------------------- */

static void destroy_function(void *object)
{
    sk_function *const f = object;
    mem_free(&f->head.mem, f->args, f->n_args * sizeof *f->args);
    object_release(f->library);
}

static sk_arg_info describe(const struct ir_module *m, const struct param *p, unsigned access)
{
    const bool value = p->kind == PARAM_VALUE;
    const ir_type t = value ? p->type : p->elem;
    return (sk_arg_info){
        .name = strtab_str(&m->strings, p->name),
        .kind = value                     ? SK_ARG_VALUE
                : p->kind == PARAM_BUFFER ? SK_ARG_BUFFER
                                          : SK_ARG_THREADGROUP,
        .type = ir_type_width(t) ? t : TYPE_VOID,
        .size = t ? (size_t)ir_type_at(m, t)->size : 1,
        .read = (access & ACCESS_READ) != 0,
        .written = (access & ACCESS_WRITE) != 0,
        .constant_space = p->kind == PARAM_BUFFER && ir_type_space(p->type) == SPACE_CONSTANT,
        .atomic = p->atomic,
    };
}

static sk_status describe_all(sk_function *f)
{
    struct ir_module *const m = f->library->ir;
    const struct func *const k = &m->funcs.at[f->func];
    struct mem *const temp = mem_temp(&f->head.mem);
    uint8_t *const access = mem_zalloc(temp, k->n_params + 1u);
    ir_param_access(m, f->func, access, temp);

    size_t n = 0;
    for (uint32_t i = 0; i < k->n_params; i++)
        n += m->params.at[k->first_param + i].kind != PARAM_ATTRIBUTE;
    f->args = mem_zalloc(&f->head.mem, n * sizeof *f->args);
    for (uint32_t i = 0; i < k->n_params; i++) {
        const struct param *const p = &m->params.at[k->first_param + i];
        if (p->kind != PARAM_ATTRIBUTE)
            f->args[f->n_args++] = describe(m, p, access[i]);
    }
    mem_temp_end(temp);
    return SK_OK;
}

sk_status sk_library_function(sk_library *library, const char *name, sk_function **out, sk_error *err)
{
    const uint32_t func = ir_func_by_name(library->ir, name);
    if (!func || !library->ir->funcs.at[func].kernel)
        return ERR(err, NO_SUCH_KERNEL, name);
    sk_function *const f = object_new(library->head.ctx, sizeof *f, destroy_function, err);
    if (!f)
        return SK_ERR_MEMORY;
    object_retain(library);
    f->library = library;
    f->func = func;
    sk_status st;
    MEM_GUARD(&f->head.mem, err, st, describe_all(f));
    if (st != SK_OK) {
        object_release(f);
        return st;
    }
    *out = f;
    return SK_OK;
}

void sk_function_release(sk_function *function)
{
    object_release(function);
}

size_t sk_function_arg_count(const sk_function *function)
{
    return function->n_args;
}

static const char *kernel_name(const sk_function *f)
{
    return strtab_str(&f->library->ir->strings, f->library->ir->funcs.at[f->func].name);
}

sk_status sk_function_arg(const sk_function *function, size_t k, sk_arg_info *out, sk_error *err)
{
    if (k >= function->n_args)
        return ERR(err, NO_SUCH_ARG, k, kernel_name(function), function->n_args);
    *out = function->args[k];
    return SK_OK;
}

/* ---- pipelines ---------------------------------------------------------------------------------------------------- */

static void destroy_pipeline(void *object)
{
    sk_pipeline *const p = object;
    if (p->program)
        p->function->library->device->backend->release(p->program);
    object_release(p->function);
}

/* Inlines, runs the pipeline of passes and hands the result to the back end. */
static sk_status compile(sk_pipeline *p, sk_error *err)
{
    const sk_function *const f = p->function;
    struct mem *const mem = &p->head.mem, *const temp = mem_temp(mem);
    struct ir_module *const m = ir_module_clone(temp, f->library->ir);
    sk_status st = pass_inline(m, f->func, MAX_INLINED_NODES, err);
    if (st == SK_OK)
        st = pass_run(m, NULL, err);
    if (st == SK_OK)
        st = f->library->device->backend->compile(mem, m, 1, &p->program, err);
    mem_temp_end(temp);
    return st;
}

sk_status sk_pipeline_create(sk_function *function, sk_pipeline **out, sk_error *err)
{
    const struct backend *const b = function->library->device->backend;
    sk_pipeline *const p = object_new(function->head.ctx, sizeof *p, destroy_pipeline, err);
    if (!p)
        return SK_ERR_MEMORY;
    object_retain(function);
    p->function = function;
    sk_status st;
    MEM_GUARD(&p->head.mem, err, st, compile(p, err));
    if (st == SK_OK) {
        p->threadgroup_bytes = b->threadgroup_bytes(p->program);
        if (p->threadgroup_bytes > b->limits.max_threadgroup_memory)
            st = ERR(err, THREADGROUP_MEMORY, kernel_name(function), (unsigned long long)p->threadgroup_bytes, b->name,
                     b->limits.max_threadgroup_memory);
    }
    if (st != SK_OK) {
        object_release(p);
        return st;
    }
    const uint32_t stated = function->library->ir->funcs.at[function->func].max_threads;
    p->max_threads = stated && stated < b->limits.max_threads ? stated : b->limits.max_threads;
    *out = p;
    return SK_OK;
}

void sk_pipeline_release(sk_pipeline *pipeline)
{
    object_release(pipeline);
}

uint32_t sk_pipeline_max_threads(const sk_pipeline *pipeline)
{
    return pipeline->max_threads;
}

uint32_t sk_pipeline_execution_width(const sk_pipeline *pipeline)
{
    return pipeline->function->library->device->backend->limits.width;
}

uint32_t sk_pipeline_threadgroup_memory(const sk_pipeline *pipeline)
{
    return pipeline->threadgroup_bytes;
}

static bool is_empty(sk_size s)
{
    return !s.x || !s.y || !s.z;
}

static sk_status check_sizes(const sk_pipeline *p, const sk_launch *l, sk_launch *out, sk_error *err)
{
    const sk_size g = l->threadgroup;
    if (is_empty(g))
        return ERR(err, GROUP_EMPTY, g.x, g.y, g.z);
    const uint64_t xy = (uint64_t)g.x * g.y, most = UINT64_MAX;
    const uint64_t n = g.z && xy > most / g.z ? most : xy * g.z;
    if (n > p->max_threads)
        return ERR(err, GROUP_TOO_LARGE, g.x, g.y, g.z, (unsigned long long)n, kernel_name(p->function), p->max_threads,
                   p->function->library->device->backend->name);
    *out = *l;
    if (!l->workers)
        out->workers = sk_device_threads(p->function->library->device);
    if (l->threads)
        return SK_OK;
    const uint32_t groups[3] = {l->grid.x, l->grid.y, l->grid.z}, size[3] = {g.x, g.y, g.z};
    uint32_t threads[3];
    for (int d = 0; d < 3; d++) {
        const uint64_t t = (uint64_t)groups[d] * size[d];
        if (t > UINT32_MAX)
            return ERR(err, GRID_TOO_LARGE, (unsigned long long)t);
        threads[d] = (uint32_t)t;
    }
    out->grid = (sk_size){threads[0], threads[1], threads[2]};
    out->threads = true;
    return SK_OK;
}

static sk_status prepare(const sk_pipeline *p, sk_size threadgroup, struct mem *mem, sk_error *err)
{
    return p->function->library->device->backend->prepare(p->program, threadgroup, mem, err);
}

sk_status sk_pipeline_prepare(sk_pipeline *pipeline, sk_size threadgroup, sk_error *err)
{
    sk_launch checked;
    const sk_launch l = {.threadgroup = threadgroup, .threads = true};
    TRY(check_sizes(pipeline, &l, &checked, err));
    if (!pipeline->function->library->device->backend->prepare)
        return SK_OK;
    struct mem mem;
    sk_status st;
    context_mem(pipeline->head.ctx, &mem);
    MEM_GUARD(&mem, err, st, prepare(pipeline, threadgroup, &mem, err));
    return st;
}

const char *sk_pipeline_note(const sk_pipeline *pipeline)
{
    const struct backend *const b = pipeline->function->library->device->backend;
    return b->note ? b->note(pipeline->program) : NULL;
}

static sk_status make_text(const sk_pipeline *p, sk_size threadgroup, bool unchecked, sk_text kind, struct buf *text,
                           char **out, sk_error *err)
{
    TRY(p->function->library->device->backend->text(p->program, threadgroup, unchecked, kind, text, err));
    size_t n = text->n + 1;
    char *const at = mem_alloc(text->mem, sizeof n + n); /* its size stands before it, for sk_text_free */
    memcpy(at, &n, sizeof n);
    memcpy(at + sizeof n, buf_text(text), n);
    *out = at + sizeof n;
    return SK_OK;
}

sk_status sk_pipeline_text(sk_pipeline *pipeline, sk_size threadgroup, bool unchecked, sk_text kind, char **out,
                           sk_error *err)
{
    const struct backend *const b = pipeline->function->library->device->backend;
    sk_launch checked;
    const sk_launch l = {.threadgroup = threadgroup, .threads = true};
    TRY(check_sizes(pipeline, &l, &checked, err));
    if (!b->text)
        return ERR(err, NO_TEXT, b->name);
    struct mem mem;
    struct buf text;
    sk_status st;
    context_mem(pipeline->head.ctx, &mem);
    buf_init(&text, &mem);
    MEM_GUARD(&mem, err, st, make_text(pipeline, threadgroup, unchecked, kind, &text, out, err));
    buf_free(&text);
    return st;
}

void sk_text_free(sk_context *ctx, char *text)
{
    if (!text)
        return;
    struct mem mem;
    size_t n;
    context_mem(ctx, &mem);
    memcpy(&n, text - sizeof n, sizeof n);
    mem_free(&mem, text - sizeof n, sizeof n + n);
}

/* ---- launches ----------------------------------------------------------------------------------------------------- */

static sk_status check_args(const sk_pipeline *p, const sk_launch *l, sk_error *err)
{
    const sk_function *const f = p->function;
    const struct backend_limits *const limits = &f->library->device->backend->limits;
    if (l->n_args != f->n_args)
        return ERR(err, ARG_COUNT, kernel_name(f), f->n_args, l->n_args);
    uint64_t threadgroup = p->threadgroup_bytes;
    for (size_t k = 0; k < f->n_args; k++) {
        const sk_arg_info *const info = &f->args[k];
        const sk_arg *const a = &l->args[k];
        switch (info->kind) {
        case SK_ARG_BUFFER:
            if (!a->data && a->size)
                return ERR(err, ARG_NULL, info->name, kernel_name(f));
            break;
        case SK_ARG_VALUE:
            if (!a->data)
                return ERR(err, ARG_NULL, info->name, kernel_name(f));
            if (a->size != info->size)
                return ERR(err, ARG_VALUE_SIZE, info->name, kernel_name(f), info->size, a->size);
            break;
        case SK_ARG_THREADGROUP: /* each starts at a multiple of 16 bytes, as in Metal */
            threadgroup = ((threadgroup + 15) & ~(uint64_t)15) + (a->size < UINT32_MAX ? a->size : UINT32_MAX);
            break;
        }
    }
    if (threadgroup > limits->max_threadgroup_memory)
        return ERR(err, THREADGROUP_MEMORY, kernel_name(f), (unsigned long long)threadgroup,
                   f->library->device->backend->name, limits->max_threadgroup_memory);
    return SK_OK;
}

sk_status sk_pipeline_launch(sk_pipeline *pipeline, const sk_launch *launch, sk_error *err)
{
    const struct backend *const b = pipeline->function->library->device->backend;
    sk_launch l;
    TRY(check_args(pipeline, launch, err));
    TRY(check_sizes(pipeline, launch, &l, err));
    if (l.unchecked && !b->unchecked)
        return ERR(err, LAUNCH_CHECKED, b->name);
    if (is_empty(l.grid))
        return SK_OK;
    struct mem mem;
    context_mem(pipeline->head.ctx, &mem);
    sk_status st;
    MEM_GUARD(&mem, err, st, b->launch(pipeline->program, &l, &mem, err));
    return st;
}

bool sk_pipeline_is_short(const sk_pipeline *pipeline, const sk_launch *launch)
{
    const struct backend *const b = pipeline->function->library->device->backend;
    sk_launch l;
    return b->is_short && check_sizes(pipeline, launch, &l, NULL) == SK_OK && b->is_short(pipeline->program, &l);
}
