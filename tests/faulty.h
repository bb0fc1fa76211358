/* faulty.h - an allocator that fails on request, counts what is alive and checks the sizes it is told. */
#ifndef FAULTY_H
#define FAULTY_H

#include <stdlib.h>
#include <string.h>

#include "spork/spork.h"

struct faulty {
    long left;       /* allocations until one fails; negative: none does */
    bool for_good;   /* every later one fails as well */
    bool failed;     /* one did */
    bool odd;        /* pieces lie 8 bytes past a multiple of 16, as a user's allocator may give them */
    bool wrong_size; /* found: a piece was given back or resized with another size than its own */
    size_t live;     /* bytes */
};

static void *faulty_allocate(void *user, size_t size)
{
    struct faulty *const f = user;
    if (f->left == 0) {
        f->left = f->for_good ? 0 : -1;
        f->failed = true;
        return NULL;
    }
    f->left -= f->left > 0;
    const size_t head = f->odd ? 24 : 32;
    char *const p = malloc(size + head);
    if (!p)
        return NULL;
    memcpy(p, &size, sizeof size);
    memset(p + head, 0xa5, size);
    f->live += size;
    return p + head;
}

static void faulty_release(void *user, void *p, size_t size)
{
    struct faulty *const f = user;
    char *const start = (char *)p - (f->odd ? 24 : 32);
    size_t own;
    memcpy(&own, start, sizeof own);
    f->wrong_size = f->wrong_size || own != size;
    f->live -= own;
    free(start);
}

static void *faulty_resize(void *user, void *p, size_t old_size, size_t size)
{
    void *const q = faulty_allocate(user, size);
    if (!q)
        return NULL;
    memcpy(q, p, old_size < size ? old_size : size);
    faulty_release(user, p, old_size);
    return q;
}

static inline sk_allocator faulty_allocator(struct faulty *f)
{
    return (sk_allocator){faulty_allocate, faulty_resize, faulty_release, f};
}

/* Whether all is given back, each piece with its own size. */
static inline bool faulty_clean(const struct faulty *f)
{
    return f->live == 0 && !f->wrong_size;
}

#endif
