/* commands.c - a command buffer with its compute encoder, in the shape of Metal's.
 *
 * Encoding calls return nothing: the first mistake is kept and reported by commit. Each dispatch takes a snapshot of
 * the pipeline and arguments as they are then. Commit runs the dispatches in order; wait reports what a kernel did wrong.
 */
#include "device/objects.h"

struct binding {
    sk_buffer *buffer; /* retained */
    size_t offset;
    void *bytes; /* in the commands' memory */
    size_t size; /* of bytes, or of threadgroup memory */
};

struct dispatch {
    sk_pipeline *pipeline; /* retained */
    sk_size grid, threadgroup;
    bool threads;
    struct binding *args;
    size_t n_args;
};

struct sk_commands {
    struct object head;
    sk_queue *queue;
    sk_pipeline *pipeline;
    VEC(struct binding) bound;
    VEC(struct dispatch) dispatches;
    sk_error mistake; /* of encoding */
    sk_error fault;   /* of running */
    bool committed;
};

static void release_binding(sk_commands *c, struct binding *b)
{
    object_release(b->buffer);
    if (b->bytes)
        mem_free(&c->head.mem, b->bytes, b->size);
    *b = (struct binding){0};
}

static void release_dispatches(sk_commands *c)
{
    for (uint32_t i = 0; i < c->dispatches.n; i++) {
        struct dispatch *const d = &c->dispatches.at[i];
        for (size_t k = 0; k < d->n_args; k++)
            release_binding(c, &d->args[k]);
        mem_free(&c->head.mem, d->args, d->n_args * sizeof *d->args);
        object_release(d->pipeline);
    }
    VEC_FREE(&c->head.mem, &c->dispatches);
}

static void destroy_commands(void *object)
{
    sk_commands *const c = object;
    release_dispatches(c);
    for (uint32_t k = 0; k < c->bound.n; k++)
        release_binding(c, &c->bound.at[k]);
    VEC_FREE(&c->head.mem, &c->bound);
    object_release(c->pipeline);
    object_release(c->queue);
}

sk_status sk_commands_create(sk_queue *queue, sk_commands **out, sk_error *err)
{
    sk_commands *const c = object_new(queue->head.ctx, sizeof *c, destroy_commands, err);
    if (!c)
        return SK_ERR_MEMORY;
    object_retain(queue);
    c->queue = queue;
    *out = c;
    return SK_OK;
}

void sk_commands_release(sk_commands *commands)
{
    object_release(commands);
}

void sk_commands_set_pipeline(sk_commands *commands, sk_pipeline *pipeline)
{
    object_retain(pipeline);
    object_release(commands->pipeline);
    commands->pipeline = pipeline;
}

/* The binding of argument k, empty. */
static struct binding *binding(sk_commands *c, size_t k)
{
    if (k > UINT16_MAX) {
        (void)ERR(&c->mistake, NO_SUCH_ARG, k, "", (size_t)0);
        return NULL;
    }
    while (c->bound.n <= k)
        VEC_PUSH(&c->head.mem, &c->bound, (struct binding){0});
    release_binding(c, &c->bound.at[k]);
    return &c->bound.at[k];
}

static sk_status set_buffer(sk_commands *c, size_t k, sk_buffer *buffer, size_t offset)
{
    if (offset > buffer->size)
        return ERR(&c->mistake, OFFSET_PAST_END, offset, buffer->size);
    struct binding *const b = binding(c, k);
    if (!b)
        return SK_ERR_VALUE;
    object_retain(buffer);
    *b = (struct binding){.buffer = buffer, .offset = offset};
    return SK_OK;
}

static sk_status set_bytes(sk_commands *c, size_t k, const void *bytes, size_t size)
{
    struct binding *const b = binding(c, k);
    if (!b)
        return SK_ERR_VALUE;
    b->bytes = mem_alloc(&c->head.mem, size);
    b->size = size;
    if (size)
        memcpy(b->bytes, bytes, size);
    return SK_OK;
}

static sk_status set_threadgroup(sk_commands *c, size_t k, size_t bytes)
{
    struct binding *const b = binding(c, k);
    if (!b)
        return SK_ERR_VALUE;
    b->size = bytes;
    return SK_OK;
}

static sk_status snapshot(sk_commands *c, bool threads, sk_size grid, sk_size threadgroup)
{
    struct mem *const m = &c->head.mem;
    if (!c->pipeline)
        return ERR(&c->mistake, NO_PIPELINE);
    VEC_PUSH(m, &c->dispatches, ((struct dispatch){.threads = threads, .grid = grid, .threadgroup = threadgroup}));
    struct dispatch *const d = &c->dispatches.at[c->dispatches.n - 1];
    object_retain(c->pipeline);
    d->pipeline = c->pipeline;
    d->args = mem_zalloc(m, c->bound.n * sizeof *d->args);
    d->n_args = c->bound.n;
    for (size_t k = 0; k < d->n_args; k++) {
        const struct binding *const from = &c->bound.at[k];
        struct binding *const to = &d->args[k];
        if (from->bytes) {
            to->bytes = mem_alloc(m, from->size);
            memcpy(to->bytes, from->bytes, from->size);
        }
        to->size = from->size;
        to->offset = from->offset;
        to->buffer = from->buffer;
        if (to->buffer)
            object_retain(to->buffer);
    }
    return SK_OK;
}

/* Encodes unless the commands have been committed; running out of memory becomes the kept mistake. */
#define ENCODE(c, expr)                                                                                                \
    do {                                                                                                               \
        sk_status status_ = SK_OK;                                                                                     \
        if ((c)->committed)                                                                                            \
            (void)ERR(&(c)->mistake, COMMANDS_DONE);                                                                   \
        else                                                                                                           \
            MEM_GUARD(&(c)->head.mem, &(c)->mistake, status_, (expr));                                                 \
        (void)status_;                                                                                                 \
    } while (0)

void sk_commands_set_buffer(sk_commands *commands, size_t k, sk_buffer *buffer, size_t offset)
{
    ENCODE(commands, set_buffer(commands, k, buffer, offset));
}

void sk_commands_set_bytes(sk_commands *commands, size_t k, const void *bytes, size_t size)
{
    ENCODE(commands, set_bytes(commands, k, bytes, size));
}

void sk_commands_set_threadgroup_memory(sk_commands *commands, size_t k, size_t bytes)
{
    ENCODE(commands, set_threadgroup(commands, k, bytes));
}

void sk_commands_dispatch_threads(sk_commands *commands, sk_size threads, sk_size threadgroup)
{
    ENCODE(commands, snapshot(commands, true, threads, threadgroup));
}

void sk_commands_dispatch_threadgroups(sk_commands *commands, sk_size groups, sk_size threadgroup)
{
    ENCODE(commands, snapshot(commands, false, groups, threadgroup));
}

static sk_status run(const struct dispatch *d, struct mem *mem, sk_error *err)
{
    sk_arg *const args = mem_zalloc(mem, d->n_args * sizeof *args);
    for (size_t k = 0; k < d->n_args; k++) {
        const struct binding *const b = &d->args[k];
        if (b->buffer)
            args[k] = (sk_arg){(char *)b->buffer->memory + b->offset, b->buffer->size - b->offset};
        else
            args[k] = (sk_arg){b->bytes, b->size};
    }
    const sk_launch l = {
        .grid = d->grid, .threadgroup = d->threadgroup, .threads = d->threads, .n_args = d->n_args, .args = args};
    return sk_pipeline_launch(d->pipeline, &l, err);
}

static sk_status run_guarded(sk_commands *c, const struct dispatch *d)
{
    struct mem *const temp = mem_temp(&c->head.mem);
    const sk_status st = run(d, temp, &c->fault);
    mem_temp_end(temp);
    return st;
}

static sk_status report(const sk_error *from, sk_error *err)
{
    if (err && err->status == SK_OK)
        *err = *from;
    return from->status;
}

sk_status sk_commands_commit(sk_commands *commands, sk_error *err)
{
    if (commands->committed)
        (void)ERR(&commands->mistake, COMMANDS_DONE);
    if (commands->mistake.status != SK_OK)
        return report(&commands->mistake, err);
    commands->committed = true;
    for (uint32_t i = 0; i < commands->dispatches.n && commands->fault.status == SK_OK; i++) {
        sk_status st;
        MEM_GUARD(&commands->head.mem, &commands->fault, st, run_guarded(commands, &commands->dispatches.at[i]));
        (void)st;
    }
    release_dispatches(commands);
    /* Only a fault of a kernel waits for sk_commands_wait; what was wrong with the call itself is told now. */
    return commands->fault.status == SK_ERR_FAULT ? SK_OK : report(&commands->fault, err);
}

sk_status sk_commands_wait(sk_commands *commands, sk_error *err)
{
    if (!commands->committed)
        return ERR(err, COMMANDS_OPEN);
    return report(&commands->fault, err);
}
