/* text.c - growing texts, interned strings, hashing. */
#include "base/base.h"

#include <stdio.h>

/* ---- growing texts --------------------------------------------------------------------------------------------- */

void buf_init(struct buf *b, struct mem *m)
{
    *b = (struct buf){.mem = m};
}

void buf_free(struct buf *b)
{
    mem_free(b->mem, b->at, b->cap);
    buf_init(b, b->mem);
}

/* Room for `extra` more characters and the final zero. */
static void buf_reserve(struct buf *b, size_t extra)
{
    if (b->at && b->cap - b->n > extra)
        return;
    if (extra > SIZE_MAX / 4 || b->cap > SIZE_MAX / 4)
        mem_out_of_memory(b->mem);
    size_t cap = b->cap < 32 ? 64 : 2 * b->cap;
    if (cap < b->n + extra + 1)
        cap = b->n + extra + 1;
    b->at = mem_realloc(b->mem, b->at, b->cap, cap);
    b->cap = cap;
}

void buf_bytes(struct buf *b, const char *s, size_t n)
{
    buf_reserve(b, n);
    if (n)
        memcpy(b->at + b->n, s, n);
    b->n += n;
    b->at[b->n] = 0;
}

void buf_char(struct buf *b, char c)
{
    if (b->cap - b->n < 2)
        buf_reserve(b, 1);
    b->at[b->n++] = c;
    b->at[b->n] = 0;
}

void buf_str(struct buf *b, const char *s)
{
    buf_bytes(b, s, strlen(s));
}

void buf_fmt(struct buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const size_t room = b->cap - b->n;
    const int n = vsnprintf(b->at ? b->at + b->n : NULL, room, fmt, args);
    va_end(args);
    if (n < 0) /* only a conversion that this library does not use can fail */
        mem_out_of_memory(b->mem);
    if ((size_t)n >= room) {
        buf_reserve(b, (size_t)n);
        va_start(args, fmt);
        (void)vsnprintf(b->at + b->n, (size_t)n + 1, fmt, args);
        va_end(args);
    }
    b->n += (size_t)n;
}

const char *buf_text(struct buf *b)
{
    return b->at ? b->at : "";
}

char *buf_take(struct buf *b, size_t *size)
{
    if (!b->at)
        buf_bytes(b, "", 0);
    char *const text = b->at;
    *size = b->cap;
    buf_init(b, b->mem);
    return text;
}

/* ---- interned strings ------------------------------------------------------------------------------------------ */

/* Each text lies in the arena behind this header; strtab.str points at the characters. */
struct interned {
    uint64_t hash;
    size_t n;
    char text[];
};

static const struct interned *interned_of(const char *text)
{
    return (const void *)(text - offsetof(struct interned, text));
}

void strtab_init(struct strtab *t, struct mem *m)
{
    *t = (struct strtab){.mem = m};
    arena_init(&t->text, m);
}

void strtab_free(struct strtab *t)
{
    arena_free(&t->text);
    VEC_FREE(t->mem, &t->str);
    mem_free(t->mem, t->slots, t->n_slots * sizeof *t->slots);
    strtab_init(t, t->mem);
}

/* Slots hold ids, 0 is free (the empty string is never looked up); at most half are taken. */
static void rehash(struct strtab *t)
{
    if (t->n_slots >= (uint32_t)1 << 31)
        mem_out_of_memory(t->mem);
    const uint32_t n = t->n_slots ? 2 * t->n_slots : 64;
    uint32_t *const slots = mem_zalloc(t->mem, n * sizeof *slots);
    for (uint32_t id = 1; id < t->str.n; id++) {
        uint32_t i = (uint32_t)interned_of(t->str.at[id])->hash & (n - 1);
        while (slots[i])
            i = (i + 1) & (n - 1);
        slots[i] = id;
    }
    mem_free(t->mem, t->slots, t->n_slots * sizeof *t->slots);
    t->slots = slots;
    t->n_slots = n;
}

uint32_t strtab_id(struct strtab *t, const char *s, size_t n)
{
    if (n == 0)
        return 0;
    if (2 * (uint64_t)t->str.n + 2 > t->n_slots)
        rehash(t);
    VEC_RESERVE(t->mem, &t->str, 2);
    if (t->str.n == 0)
        VEC_PUSH(t->mem, &t->str, "");

    const uint64_t hash = hash_bytes(0, s, n);
    uint32_t i = (uint32_t)hash & (t->n_slots - 1);
    for (; t->slots[i]; i = (i + 1) & (t->n_slots - 1)) {
        const struct interned *const old = interned_of(t->str.at[t->slots[i]]);
        if (old->hash == hash && old->n == n && memcmp(old->text, s, n) == 0)
            return t->slots[i];
    }
    if (n > SIZE_MAX / 4)
        mem_out_of_memory(t->mem);
    struct interned *const fresh = arena_alloc(&t->text, sizeof *fresh + n + 1);
    fresh->hash = hash;
    fresh->n = n;
    memcpy(fresh->text, s, n);
    const uint32_t id = t->str.n;
    VEC_PUSH(t->mem, &t->str, fresh->text);
    t->slots[i] = id;
    return id;
}

const char *strtab_str(const struct strtab *t, uint32_t id)
{
    return id == 0 ? "" : t->str.at[id];
}

/* ---- hashing: for tables in memory only, the values depend on the byte order ----------------------------------- */

uint64_t hash_u64(uint64_t seed, uint64_t x)
{
    x ^= seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    return x;
}

uint64_t hash_bytes(uint64_t seed, const void *p, size_t n)
{
    const unsigned char *s = p;
    uint64_t h = hash_u64(seed, n);
    for (; n >= 8; n -= 8, s += 8) {
        uint64_t word;
        memcpy(&word, s, 8);
        h = hash_u64(h, word);
    }
    uint64_t tail = 0;
    if (n)
        memcpy(&tail, s, n);
    return hash_u64(h, tail);
}
