/* context.c - the context: its allocator, which counts, and the list of objects alive. */
#include "base/context.h"

#include <pthread.h>

struct sk_context {
    sk_allocator user;
    size_t bytes;         /* atomic */
    pthread_mutex_t lock; /* guards `newest` and the links of objects */
    struct object *newest;
    void *once;   /* see context_once; atomic */
    bool closing; /* written only by sk_context_destroy, when no other thread may be inside */
};

/* ---- the counting allocator ---------------------------------------------------------------------------------------- */

static void count(sk_context *ctx, size_t plus, size_t minus)
{
    (void)__atomic_add_fetch(&ctx->bytes, plus - minus, __ATOMIC_RELAXED);
}

static void *counted_allocate(void *user, size_t size)
{
    sk_context *const ctx = user;
    void *const p = ctx->user.allocate(ctx->user.user, size);
    if (p)
        count(ctx, size, 0);
    return p;
}

static void *counted_resize(void *user, void *p, size_t old_size, size_t size)
{
    sk_context *const ctx = user;
    void *const q = ctx->user.resize(ctx->user.user, p, old_size, size);
    if (q)
        count(ctx, size, old_size);
    return q;
}

static void counted_release(void *user, void *p, size_t size)
{
    sk_context *const ctx = user;
    ctx->user.release(ctx->user.user, p, size);
    count(ctx, 0, size);
}

void context_mem(sk_context *ctx, struct mem *out)
{
    mem_init(out, &(sk_allocator){counted_allocate, counted_resize, counted_release, ctx});
}

/* ---- objects ------------------------------------------------------------------------------------------------------- */

void *object_new(sk_context *ctx, size_t size, void (*destroy)(void *object), sk_error *err)
{
    struct object *const o = counted_allocate(ctx, size);
    if (!o) {
        (void)ERR(err, OUT_OF_MEMORY);
        return NULL;
    }
    memset(o, 0, size);
    context_mem(ctx, &o->mem);
    o->ctx = ctx;
    o->size = size;
    o->references = 1;
    o->destroy = destroy;
    pthread_mutex_lock(&ctx->lock);
    o->next = ctx->newest;
    if (o->next)
        o->next->prev = o;
    ctx->newest = o;
    pthread_mutex_unlock(&ctx->lock);
    return o;
}

void object_retain(void *object)
{
    struct object *const o = object;
    (void)__atomic_add_fetch(&o->references, 1, __ATOMIC_RELAXED);
}

void object_release(void *object)
{
    struct object *const o = object;
    if (!o || o->ctx->closing || __atomic_sub_fetch(&o->references, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    sk_context *const ctx = o->ctx;
    pthread_mutex_lock(&ctx->lock);
    if (o->prev)
        o->prev->next = o->next;
    else
        ctx->newest = o->next;
    if (o->next)
        o->next->prev = o->prev;
    pthread_mutex_unlock(&ctx->lock);
    if (o->destroy)
        o->destroy(o);
    counted_release(ctx, o, o->size);
}

void *context_once(sk_context *ctx, void *(*make)(sk_context *ctx, sk_error *err), sk_error *err)
{
    void *object = __atomic_load_n(&ctx->once, __ATOMIC_ACQUIRE);
    if (object)
        return object;
    void *const mine = make(ctx, err);
    if (mine && !__atomic_compare_exchange_n(&ctx->once, &object, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        object_release(mine); /* another thread was faster */
        return object;
    }
    return mine;
}

/* ---- public -------------------------------------------------------------------------------------------------------- */

sk_status sk_context_create(const sk_allocator *allocator, sk_context **out, sk_error *err)
{
    struct mem m;
    mem_init(&m, allocator);
    sk_context *const ctx = m.alloc.allocate(m.alloc.user, sizeof *ctx);
    if (!ctx)
        return ERR(err, OUT_OF_MEMORY);
    *ctx = (struct sk_context){.user = m.alloc, .bytes = sizeof *ctx};
    if (pthread_mutex_init(&ctx->lock, NULL) != 0) {
        m.alloc.release(m.alloc.user, ctx, sizeof *ctx);
        return ERR(err, OUT_OF_MEMORY);
    }
    *out = ctx;
    return SK_OK;
}

void sk_context_destroy(sk_context *ctx)
{
    if (!ctx)
        return;
    ctx->closing = true;
    for (struct object *o = ctx->newest; o; o = o->next)
        if (o->destroy)
            o->destroy(o);
    for (struct object *o = ctx->newest; o;) {
        struct object *const next = o->next;
        counted_release(ctx, o, o->size);
        o = next;
    }
    pthread_mutex_destroy(&ctx->lock);
    const sk_allocator user = ctx->user;
    user.release(user.user, ctx, sizeof *ctx);
}

size_t sk_context_bytes(const sk_context *ctx)
{
    return __atomic_load_n(&ctx->bytes, __ATOMIC_RELAXED);
}
