/* base.h - memory, text, tables and errors. Knows nothing of kernels.
 *
 * Memory. Every allocation of the library goes through a `struct mem`: an allocator chosen by the user plus
 * a recovery point. Code below a recovery point never tests for a null pointer: when memory runs out, control
 * jumps to the point, and the public entry that set it returns SK_ERR_MEMORY.
 * Rules:
 *  1. Public entry points (and the Python extension through them) set recovery points: MEM_GUARD. Below them only those do
 *     that must undo something before the jump goes on: a half-made module, the text form's scratch, the float environment.
 *  2. Between a recovery point and an allocation no lock is held and nothing is owned that only a local names:
 *     what is allocated hangs on an arena or on an object that the caller destroys.
 *  3. An object that could be left half-built by a jump marks itself broken (see `trace`, sticky errors).
 */
#ifndef SK_BASE_H
#define SK_BASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "spork/spork.h"

#if defined(__GNUC__)
#define SK_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define SK_NORETURN __attribute__((noreturn))
#define SK_COLD __attribute__((cold))
#define SK_UNLIKELY(x) __builtin_expect(!!(x), 0)
#else
#define SK_PRINTF(f, a)
#define SK_NORETURN
#define SK_COLD
#define SK_UNLIKELY(x) (x)
#endif

/* ---- memory ------------------------------------------------------------------------------------------ */

struct mem {
    sk_allocator alloc;
    jmp_buf *recover;   /* where a failed allocation goes; never null while library code runs */
    size_t live;        /* bytes now allocated, for tests and reports */
    struct mem *parent; /* of a working memory, else null */
    struct mem *temps;  /* working memories in use, the newest first */
};

void mem_init(struct mem *m, const sk_allocator *a); /* a null: malloc, realloc, free */
/* Never return null: they jump to m->recover. A size of 0 gives null. */
void *mem_alloc(struct mem *m, size_t size);
void *mem_zalloc(struct mem *m, size_t size);
void *mem_realloc(struct mem *m, void *p, size_t old, size_t size);
void mem_free(struct mem *m, void *p, size_t size); /* p may be null */
SK_NORETURN void mem_out_of_memory(struct mem *m);

/* A working memory: what is allocated from it goes at mem_temp_end, or when memory runs out, so that what only locals name
 * is never lost. Use it like any other memory, in code that m's recovery point covers; they end newest first. */
struct mem *mem_temp(struct mem *m);
void mem_temp_end(struct mem *t);
void mem_temps_unwind(struct mem *m, const struct mem *keep); /* for MEM_GUARD: ends those newer than `keep` */

/* Runs `expr` (a sk_status) with a recovery point; `status` receives its value, or SK_ERR_MEMORY with the
 * error filled. Locals changed inside `expr` and read after it must be volatile: keep such functions thin. */
#define MEM_GUARD(m, err, status, expr)                                                                                \
    do {                                                                                                               \
        jmp_buf guard_env_;                                                                                            \
        jmp_buf *const guard_saved_ = (m)->recover;                                                                    \
        struct mem *const guard_temps_ = (m)->temps;                                                                   \
        if (_setjmp(guard_env_) == 0) {                                                                                \
            (m)->recover = &guard_env_;                                                                                \
            (status) = (expr);                                                                                         \
        } else {                                                                                                       \
            mem_temps_unwind((m), guard_temps_);                                                                       \
            (status) = ERR((err), OUT_OF_MEMORY);                                                                      \
        }                                                                                                              \
        (m)->recover = guard_saved_;                                                                                   \
    } while (0)

/* A growable array: `struct vec(T) { T *at; uint32_t n, cap; }`. Counts past 2^31 are out of memory. */
#define VEC(T)                                                                                                         \
    struct {                                                                                                           \
        T *at;                                                                                                         \
        uint32_t n, cap;                                                                                               \
    }
#define VEC_PUSH(m, v, x)                                                                                              \
    do {                                                                                                               \
        if ((v)->n == (v)->cap)                                                                                        \
            (v)->at = vec_grow((m), (v)->at, &(v)->cap, 1u, sizeof *(v)->at);                                          \
        (v)->at[(v)->n++] = (x);                                                                                       \
    } while (0)
#define VEC_RESERVE(m, v, extra)                                                                                       \
    do {                                                                                                               \
        if ((v)->cap - (v)->n < (uint32_t)(extra))                                                                     \
            (v)->at = vec_grow((m), (v)->at, &(v)->cap, (uint32_t)(extra), sizeof *(v)->at);                           \
    } while (0)
#define VEC_FREE(m, v)                                                                                                 \
    do {                                                                                                               \
        mem_free((m), (v)->at, (size_t)(v)->cap * sizeof *(v)->at);                                                    \
        (v)->at = NULL;                                                                                                \
        (v)->n = (v)->cap = 0;                                                                                         \
    } while (0)
void *vec_grow(struct mem *m, void *at, uint32_t *cap, uint32_t extra, size_t item);

/* An arena: many small allocations freed together. 16-byte aligned, zero-filled. */
struct arena_chunk;
struct arena {
    struct mem *mem;
    struct arena_chunk *chunks;
    char *at, *end;
};
void arena_init(struct arena *a, struct mem *m);
void arena_free(struct arena *a); /* the arena is empty and usable afterwards */
void *arena_alloc(struct arena *a, size_t size);
#define ARENA_NEW(a, T, count) ((T *)arena_alloc((a), sizeof(T) * (size_t)(count)))

/* ---- text --------------------------------------------------------------------------------------------- */

/* A growing, always zero-terminated text. */
struct buf {
    struct mem *mem;
    char *at;
    size_t n, cap;
};
void buf_init(struct buf *b, struct mem *m);
void buf_free(struct buf *b);
void buf_char(struct buf *b, char c);
void buf_bytes(struct buf *b, const char *s, size_t n);
void buf_str(struct buf *b, const char *s);
void buf_fmt(struct buf *b, const char *fmt, ...) SK_PRINTF(2, 3);
const char *buf_text(struct buf *b); /* never null; valid until the next change */
/* The text itself, owned by the caller (mem_free(m, p, *size)); the buffer is empty afterwards. */
char *buf_take(struct buf *b, size_t *size);

/* Interned strings: equal text has one id; id 0 is the empty string. */
struct strtab {
    struct mem *mem;
    struct arena text;
    VEC(const char *) str;
    uint32_t *slots;
    uint32_t n_slots;
};
void strtab_init(struct strtab *t, struct mem *m);
void strtab_free(struct strtab *t);
uint32_t strtab_id(struct strtab *t, const char *s, size_t n);
const char *strtab_str(const struct strtab *t, uint32_t id);

uint64_t hash_bytes(uint64_t seed, const void *p, size_t n);
uint64_t hash_u64(uint64_t seed, uint64_t x);

/* ---- numbers as text ------------------------------------------------------------------------------------ */

/* Shortest decimal text that reads back as the same value in that format ("0.1", "1e-45", "inf", "-nan" never:
 * every NaN prints "nan"). `cap` >= 40. Always contains '.', 'e', "inf" or "nan". Independent of the locale. */
void text_f32(char *out, size_t cap, float x);
void text_f64(char *out, size_t cap, double x);
/* Reads a decimal or hexadecimal float, or inf, nan. Returns the character after it, or null. Locale-independent. */
const char *read_f64(const char *s, double *out);

/* ---- small floats: round to nearest even; NaN stays NaN (quiet) ------------------------------------------- */

uint16_t f16_from_f32(float x);
uint16_t f16_from_f64(double x); /* one rounding */
float f16_to_f32(uint16_t h);
uint16_t bf16_from_f32(float x);
uint16_t bf16_from_f64(double x); /* one rounding */
static inline float bf16_to_f32(uint16_t h)
{
    const uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static inline uint32_t bits_f32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
static inline float f32_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* ---- errors ------------------------------------------------------------------------------------------------ */

/* Every message of the library is a row of errors.def: E(NAME, STATUS, "format"). Messages are whole sentences
 * without a final full stop or newline; a cure follows after a semicolon: "…; cast one side with sk.cast". */
enum err_id {
#define E(id, status, fmt) ERR_ID_##id,
#include "base/errors.def"
#undef E
    ERR_ID_COUNT
};
#define E(id, status, fmt) static const char err_fmt_##id[] = fmt;
#include "base/errors.def"
#undef E

/* Where a message points. file null: nowhere. line from 1, column from 1 (0: unknown). */
struct err_place {
    const char *file;
    uint32_t line, column;
};

/* Fill `err` (null allowed; the first error of an object stays) and return the row's status.
 * ERR(err, NAME, args…) has no place, ERR_AT(err, place, NAME, args…) has one. */
sk_status err_set(sk_error *err, enum err_id id, struct err_place at, const char *fmt, ...) SK_PRINTF(4, 5) SK_COLD;
#define ERR(err, id, ...)                                                                                              \
    err_failed(err_set((err), ERR_ID_##id, (struct err_place){0}, err_fmt_##id __VA_OPT__(, ) __VA_ARGS__))
#define ERR_AT(err, at, id, ...) err_failed(err_set((err), ERR_ID_##id, (at), err_fmt_##id __VA_OPT__(, ) __VA_ARGS__))
/* No row has the status SK_OK; said where analysers see it. */
static inline sk_status err_failed(sk_status status)
{
    return status == SK_OK ? SK_ERR_INVALID : status;
}
sk_status err_status(enum err_id id);
const char *err_name(enum err_id id);

#define TRY(expr)                                                                                                      \
    do {                                                                                                               \
        const sk_status try_ = (expr);                                                                                 \
        if (SK_UNLIKELY(try_ != SK_OK))                                                                                \
            return try_;                                                                                               \
    } while (0)

/* ---- os ---------------------------------------------------------------------------------------------------- */

uint64_t os_nanoseconds(void); /* monotonic */

#endif
