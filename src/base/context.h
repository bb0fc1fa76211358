/* context.h - what owns public objects.
 *
 * Every public object starts with a `struct object` and is made by object_new. It has its own struct mem, so that
 * distinct objects may be used from different threads at once; an entry that may run on several threads at once for one
 * object takes a struct mem of its own from context_mem instead. All of them count into the context's bytes.
 *
 * References. An object is born with one reference, the user's. Objects that keep another one alive retain it. The last
 * object_release destroys. sk_context_destroy destroys whatever is left, the newest first, in two steps: all `destroy`
 * functions run, then all memory of objects goes; while it runs object_release does nothing. So a `destroy` may release
 * what it retained in any order, but must not look into it.
 */
#ifndef SK_CONTEXT_H
#define SK_CONTEXT_H

#include "base/base.h"

struct object {
    struct mem mem;
    sk_context *ctx;
    struct object *prev, *next;    /* the context's list, newest first */
    size_t size;                   /* of the whole object */
    uint32_t references;           /* atomic */
    void (*destroy)(void *object); /* frees what the object owns, not itself; null: nothing to do */
};

/* A zero-filled object of `size` bytes, its head filled in. Null when memory runs out (err is set): never jumps, so no
 * recovery point is needed. Any thread. */
void *object_new(sk_context *ctx, size_t size, void (*destroy)(void *object), sk_error *err);
void object_retain(void *object);
void object_release(void *object); /* null allowed */

/* The one object of a context that `make` makes at the first call, and that lives as long as the context. Null when `make`
 * gave null. Any thread. */
void *context_once(sk_context *ctx, void *(*make)(sk_context *ctx, sk_error *err), sk_error *err);

/* A memory that counts into the context, for working storage of one call. */
void context_mem(sk_context *ctx, struct mem *out);

#endif
