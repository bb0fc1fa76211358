/* mem.c - checked allocation, growable arrays, arenas.
 *
 * SK_HOSTILE (a build option, used by `make asan`) makes arrays move at almost every growth and gives every arena
 * allocation its own block, so that a stale pointer or an overrun meets the sanitizer instead of luck.
 */
#include "base/base.h"

#include <stdlib.h>

static void *std_allocate(void *user, size_t size)
{
    (void)user;
    return malloc(size);
}

static void *std_resize(void *user, void *p, size_t old_size, size_t size)
{
    (void)user;
    (void)old_size;
    return realloc(p, size);
}

static void std_release(void *user, void *p, size_t size)
{
    (void)user;
    (void)size;
    free(p);
}

void mem_init(struct mem *m, const sk_allocator *a)
{
    *m = (struct mem){0};
    m->alloc = a ? *a : (sk_allocator){std_allocate, std_resize, std_release, NULL};
}

SK_NORETURN void mem_out_of_memory(struct mem *m)
{
    while (m->parent)
        m = m->parent;
    /* Without a recovery point the entry forgot its MEM_GUARD: nothing sane can follow. */
    if (!m->recover)
        __builtin_trap();
    _longjmp(*m->recover, 1);
}

void *mem_alloc(struct mem *m, size_t size)
{
    if (size == 0)
        return NULL;
    void *const p = m->alloc.allocate(m->alloc.user, size);
    if (SK_UNLIKELY(!p))
        mem_out_of_memory(m);
    m->live += size;
    return p;
}

void *mem_zalloc(struct mem *m, size_t size)
{
    void *const p = mem_alloc(m, size);
    if (p)
        memset(p, 0, size);
    return p;
}

void *mem_realloc(struct mem *m, void *p, size_t old, size_t size)
{
    if (!p)
        return mem_alloc(m, size);
    if (size == 0) {
        mem_free(m, p, old);
        return NULL;
    }
    void *const q = m->alloc.resize(m->alloc.user, p, old, size);
    if (SK_UNLIKELY(!q))
        mem_out_of_memory(m); /* p is still valid and still the owner's */
    m->live += size - old;
    return q;
}

void mem_free(struct mem *m, void *p, size_t size)
{
    if (!p)
        return;
    m->alloc.release(m->alloc.user, p, size);
    m->live -= size;
}

/* ---- working memories ------------------------------------------------------------------------------------------ */

/* Every allocation of a working memory is linked behind one of these. */
union temp_head {
    struct {
        union temp_head *prev, *next;
        size_t size; /* of the whole allocation */
    };
    max_align_t align;
};

struct temp {
    struct mem mem;    /* first */
    struct mem *older; /* the parent's next */
    union temp_head *newest;
};

static void link_head(struct temp *t, union temp_head *h)
{
    h->prev = NULL;
    h->next = t->newest;
    if (t->newest)
        t->newest->prev = h;
    t->newest = h;
}

static void unlink_head(struct temp *t, const union temp_head *h)
{
    if (h->prev)
        h->prev->next = h->next;
    else
        t->newest = h->next;
    if (h->next)
        h->next->prev = h->prev;
}

static void *temp_allocate(void *user, size_t size)
{
    struct temp *const t = user;
    const sk_allocator *const a = &t->mem.parent->alloc;
    if (size > SIZE_MAX - sizeof(union temp_head))
        return NULL;
    union temp_head *const h = a->allocate(a->user, sizeof *h + size);
    if (!h)
        return NULL;
    h->size = sizeof *h + size;
    link_head(t, h);
    return h + 1;
}

static void temp_release(void *user, void *p, size_t size)
{
    struct temp *const t = user;
    const sk_allocator *const a = &t->mem.parent->alloc;
    union temp_head *const h = (union temp_head *)p - 1;
    unlink_head(t, h);
    a->release(a->user, h, sizeof *h + size);
}

static void *temp_resize(void *user, void *p, size_t old_size, size_t size)
{
    void *const q = temp_allocate(user, size);
    if (!q)
        return NULL;
    memcpy(q, p, old_size < size ? old_size : size);
    temp_release(user, p, old_size);
    return q;
}

struct mem *mem_temp(struct mem *m)
{
    while (m->parent)
        m = m->parent;
    struct temp *const t = mem_zalloc(m, sizeof *t);
    mem_init(&t->mem, &(sk_allocator){temp_allocate, temp_resize, temp_release, t});
    t->mem.parent = m;
    t->older = m->temps;
    m->temps = &t->mem;
    return &t->mem;
}

void mem_temp_end(struct mem *m)
{
    struct temp *const t = (struct temp *)m;
    struct mem *const parent = m->parent;
    const sk_allocator *const a = &parent->alloc;
    while (t->newest) {
        union temp_head *const h = t->newest;
        unlink_head(t, h);
        a->release(a->user, h, h->size);
    }
    parent->temps = t->older;
    mem_free(parent, t, sizeof *t);
}

void mem_temps_unwind(struct mem *m, const struct mem *keep)
{
    while (m->temps != keep)
        mem_temp_end(m->temps);
}

/* ---- growable arrays ------------------------------------------------------------------------------------------- */

#define VEC_MAX ((uint64_t)1 << 31)

void *vec_grow(struct mem *m, void *at, uint32_t *cap, uint32_t extra, size_t item)
{
    const uint64_t need = (uint64_t)*cap + extra;
#ifdef SK_HOSTILE
    uint64_t want = *cap < 64 ? need : 2 * (uint64_t)*cap;
#else
    uint64_t want = *cap < 8 ? 8 : 2 * (uint64_t)*cap;
#endif
    if (want < need)
        want = need;
    if (want > VEC_MAX)
        want = need;
    if (want > VEC_MAX || want > SIZE_MAX / item)
        mem_out_of_memory(m);
    void *const p = mem_realloc(m, at, *cap * item, (size_t)want * item);
    *cap = (uint32_t)want;
    return p;
}

/* ---- arenas ---------------------------------------------------------------------------------------------------- */

#define ARENA_ALIGN 16u
#define ARENA_FIRST ((size_t)4096)
#define ARENA_LARGEST ((size_t)1 << 20)

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* of the whole allocation, this header included */
};

void arena_init(struct arena *a, struct mem *m)
{
    *a = (struct arena){.mem = m};
}

void arena_free(struct arena *a)
{
    struct arena_chunk *c = a->chunks;
    while (c) {
        struct arena_chunk *const next = c->next;
        mem_free(a->mem, c, c->size);
        c = next;
    }
    arena_init(a, a->mem);
}

static char *align_up(char *p)
{
    return p + (-(uintptr_t)p & (ARENA_ALIGN - 1));
}

/* A chunk with room for `room` aligned bytes, whatever alignment the user's allocator gives. */
static struct arena_chunk *new_chunk(struct arena *a, size_t room)
{
    const size_t size = sizeof(struct arena_chunk) + ARENA_ALIGN + room;
    struct arena_chunk *const c = mem_alloc(a->mem, size);
    c->size = size;
    return c;
}

void *arena_alloc(struct arena *a, size_t size)
{
    if (SK_UNLIKELY(size > SIZE_MAX / 2))
        mem_out_of_memory(a->mem);
    size = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (size == 0)
        size = ARENA_ALIGN; /* distinct addresses, never null */

    if (SK_UNLIKELY((size_t)(a->end - a->at) < size)) {
        size_t room = a->chunks ? 2 * a->chunks->size : ARENA_FIRST;
        if (room > ARENA_LARGEST)
            room = ARENA_LARGEST;
#ifdef SK_HOSTILE
        room = 0;
#endif
        if (size > room / 4) {
            /* A large piece has its own chunk, put behind the one being filled. */
            struct arena_chunk *const c = new_chunk(a, size);
            struct arena_chunk **const link = a->chunks ? &a->chunks->next : &a->chunks;
            c->next = *link;
            *link = c;
            return memset(align_up((char *)(c + 1)), 0, size);
        }
        struct arena_chunk *const c = new_chunk(a, room);
        c->next = a->chunks;
        a->chunks = c;
        a->at = align_up((char *)(c + 1));
        a->end = a->at + room;
    }
    char *const p = a->at;
    a->at += size;
    return memset(p, 0, size);
}
