/* base.c - memory, texts, number formats, errors. */
#include "base/base.h"

#include <locale.h>
#include <stdlib.h>

#include "check.h"
#include "faulty.h"

/* A fixed sequence of random bits (xorshift). */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1du;
}

static double f64_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static uint64_t bits_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static void faulty_mem(struct mem *m, struct faulty *f)
{
    const sk_allocator a = faulty_allocator(f);
    mem_init(m, &a);
}

struct everything {
    struct mem *m;
    struct arena arena;
    struct buf buf;
    struct strtab names;
    VEC(uint32_t) numbers;
};

static sk_status use_everything(struct everything *e)
{
    for (uint32_t i = 0; i < 300; i++) {
        VEC_PUSH(e->m, &e->numbers, i);
        char *const p = arena_alloc(&e->arena, i * 7);
        memset(p, 1, i * 7);
        buf_fmt(&e->buf, "%u,", i);
        char name[16];
        const int n = snprintf(name, sizeof name, "name%u", i % 100);
        CHECK_EQ(strtab_id(&e->names, name, (size_t)n), i % 100 + 1);
    }
    return SK_OK;
}

static void free_everything(struct everything *e)
{
    VEC_FREE(e->m, &e->numbers);
    arena_free(&e->arena);
    buf_free(&e->buf);
    strtab_free(&e->names);
}

static sk_status guarded(struct mem *m, sk_error *err, struct everything *e)
{
    sk_status status;
    MEM_GUARD(m, err, status, use_everything(e));
    return status;
}

/* The status of a run whose k-th allocation fails. */
static sk_status run_failing_at(long k)
{
    struct faulty f = {.left = k, .odd = true};
    struct mem m;
    faulty_mem(&m, &f);
    struct everything e = {.m = &m};
    arena_init(&e.arena, &m);
    buf_init(&e.buf, &m);
    strtab_init(&e.names, &m);
    sk_error err = {0};
    const sk_status status = guarded(&m, &err, &e);
    CHECK(m.recover == NULL);
    CHECK_EQ(m.live, f.live);
    CHECK_EQ(err.status, status);
    if (status == SK_OK) {
        CHECK_EQ(e.numbers.n, 300);
    } else {
        CHECK_EQ(status, SK_ERR_MEMORY);
        CHECK_EQ_STR(err.name, "OUT_OF_MEMORY");
        CHECK_EQ_STR(err.message, "out of memory");
    }
    free_everything(&e);
    CHECK_EQ(m.live, 0);
    CHECK(faulty_clean(&f));
    return status;
}

static void test_every_allocation_fails_once(void)
{
    long k = 0;
    while (run_failing_at(k) != SK_OK)
        k++;
    CHECK(k > 10);
}

static sk_status grow_too_far(struct mem *m)
{
    uint32_t cap = 0x7fffffff;
    (void)vec_grow(m, NULL, &cap, 2, 1);
    return SK_OK;
}

static sk_status nested_guard(struct mem *m)
{
    volatile sk_status inner = SK_OK;
    MEM_GUARD(m, NULL, inner, grow_too_far(m));
    CHECK_EQ(inner, SK_ERR_MEMORY);
    return grow_too_far(m); /* reaches the outer point again */
}

static sk_status use_mem(struct mem *m)
{
    CHECK(mem_alloc(m, 0) == NULL);
    char *p = mem_zalloc(m, 100);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(p[i], 0);
    p[0] = 'x';
    p = mem_realloc(m, p, 100, 200);
    CHECK_EQ(p[0], 'x');
    CHECK_EQ(m->live, 200);
    CHECK(mem_realloc(m, p, 200, 0) == NULL);
    CHECK_EQ(m->live, 0);
    mem_free(m, NULL, 0);

    VEC(uint64_t) v = {0};
    VEC_RESERVE(m, &v, 1000);
    CHECK(v.cap >= 1000);
    uint64_t *const at = v.at;
    for (uint64_t i = 0; i < 1000; i++)
        VEC_PUSH(m, &v, i);
    CHECK(v.at == at);
    for (uint64_t i = 0; i < 100000; i++)
        VEC_PUSH(m, &v, i);
    CHECK_EQ(v.n, 101000);
    CHECK_EQ(v.at[100999], 99999);
    VEC_FREE(m, &v);
    CHECK_EQ(m->live, 0);
    return SK_OK;
}

static sk_status use_arena(struct mem *m)
{
    struct arena a;
    arena_init(&a, m);
    uint64_t seed = 7;
    unsigned char *pieces[500];
    size_t sizes[500];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 500; i++) {
            sizes[i] = next_random(&seed) % (i % 50 == 0 ? 100000 : 200);
            pieces[i] = arena_alloc(&a, sizes[i]);
            CHECK(pieces[i] != NULL);
            CHECK_EQ((uintptr_t)pieces[i] & 15, 0);
            bool zero = true;
            for (size_t k = 0; k < sizes[i]; k++)
                zero = zero && pieces[i][k] == 0;
            CHECK(zero);
            memset(pieces[i], i & 0xff, sizes[i]);
        }
        for (int i = 0; i < 500; i++) {
            bool kept = true;
            for (size_t k = 0; k < sizes[i]; k++)
                kept = kept && pieces[i][k] == (i & 0xff);
            CHECK(kept);
        }
        arena_free(&a);
        CHECK_EQ(m->live, 0);
    }
    CHECK(arena_alloc(&a, 0) != arena_alloc(&a, 0));
    const double *const d = ARENA_NEW(&a, double, 3);
    CHECK(d[2] == 0);
    arena_free(&a);
    return SK_OK;
}

static sk_status arena_too_large(struct mem *m)
{
    struct arena a;
    arena_init(&a, m);
    (void)arena_alloc(&a, SIZE_MAX - 5);
    return SK_OK;
}

/* ---- texts ----------------------------------------------------------------------------------------------------- */

static sk_status use_buf(struct mem *m)
{
    struct buf b;
    buf_init(&b, m);
    CHECK_EQ_STR(buf_text(&b), "");
    buf_bytes(&b, NULL, 0);
    CHECK_EQ_STR(buf_text(&b), "");
    buf_char(&b, 'a');
    buf_str(&b, "bc");
    buf_fmt(&b, "-%d-%s", 42, "x");
    CHECK_EQ_STR(buf_text(&b), "abc-42-x");
    CHECK_EQ(b.n, 8);
    for (int n = 0; n < 200; n++) {
        struct buf grown;
        buf_init(&grown, m);
        buf_fmt(&grown, "%*s", n, "");
        buf_fmt(&grown, "%0*d", n + 1, 0);
        CHECK_EQ(grown.n, 2 * n + 1);
        CHECK_EQ(strlen(buf_text(&grown)), 2 * n + 1);
        buf_free(&grown);
    }
    size_t size = 0;
    char *const text = buf_take(&b, &size);
    CHECK_EQ_STR(text, "abc-42-x");
    CHECK_EQ(b.n, 0);
    mem_free(m, text, size);
    char *const empty = buf_take(&b, &size);
    CHECK_EQ_STR(empty, "");
    mem_free(m, empty, size);
    buf_free(&b);
    CHECK_EQ(m->live, 0);
    return SK_OK;
}

static sk_status use_strtab(struct mem *m)
{
    struct strtab t;
    strtab_init(&t, m);
    CHECK_EQ(strtab_id(&t, "", 0), 0);
    CHECK_EQ(strtab_id(&t, NULL, 0), 0);
    CHECK_EQ_STR(strtab_str(&t, 0), "");
    CHECK_EQ(m->live, 0);
    const uint32_t abc = strtab_id(&t, "abcd", 3);
    CHECK_EQ_STR(strtab_str(&t, abc), "abc");
    CHECK_EQ(strtab_id(&t, "abc", 3), abc);
    CHECK(strtab_id(&t, "abcd", 4) != abc);
    CHECK(strtab_id(&t, "ab\0d", 4) != strtab_id(&t, "ab\0e", 4));
    const char *const stable = strtab_str(&t, abc);
    uint32_t first = 0;
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 20000; i++) {
            char name[24];
            const int n = snprintf(name, sizeof name, "v%u", i);
            const uint32_t id = strtab_id(&t, name, (size_t)n);
            if (i == 0 && round == 0)
                first = id;
            CHECK_EQ(id, first + i);
            CHECK_EQ_STR(strtab_str(&t, id), name);
        }
    }
    CHECK(strtab_str(&t, abc) == stable);
    strtab_free(&t);
    CHECK_EQ(m->live, 0);
    CHECK_EQ(strtab_id(&t, "again", 5), 1);
    strtab_free(&t);
    return SK_OK;
}

/* Not a proof of quality: every byte, the length and the seed must matter. */
static void test_hash(void)
{
    unsigned char bytes[40] = {0};
    uint64_t seen[400];
    int n = 0;
    for (size_t size = 0; size <= sizeof bytes; size++)
        seen[n++] = hash_bytes(1, bytes, size);
    for (size_t i = 0; i < sizeof bytes; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (unsigned char)(1 << bit);
            seen[n++] = hash_bytes(1, bytes, sizeof bytes);
            bytes[i] ^= (unsigned char)(1 << bit);
        }
    }
    seen[n++] = hash_bytes(2, bytes, sizeof bytes);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            CHECK(seen[i] != seen[k]);
    CHECK(hash_u64(1, 2) != hash_u64(2, 1));
    CHECK(hash_u64(0, 0) != hash_u64(0, 1));
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

static void reads(const char *text, double expected, const char *rest)
{
    double x = -77;
    const char *const end = read_f64(text, &x);
    CHECK(end != NULL);
    if (!end)
        return;
    if (bits_f64(x) != bits_f64(expected) && !(isnan(x) && isnan(expected)))
        printf("reading %s: ", text);
    CHECK(bits_f64(x) == bits_f64(expected) || (isnan(x) && isnan(expected)));
    CHECK_EQ_STR(end, rest);
}

static void test_read(void)
{
    reads("0", 0.0, "");
    reads("-0", -0.0, "");
    reads("+1.5f", 1.5, "f");
    reads(".5", 0.5, "");
    reads("5.", 5.0, "");
    reads("1e", 1.0, "e");
    reads("1e+", 1.0, "e+");
    reads("1E2", 100.0, "");
    reads("1e-2x", 0.01, "x");
    reads("1.5.5", 1.5, ".5");
    reads("000123.2500,", 123.25, ",");
    reads("1e999", (double)INFINITY, "");
    reads("-1e99999999999999999999", -(double)INFINITY, "");
    reads("0e99999999999999999999", 0.0, "");
    reads("1e-99999999999999999999", 0.0, "");
    reads("4.9e-324", 0x1p-1074, "");
    reads("2.4703282292062327e-324", 0.0, "");
    reads("2.4703282292062329e-324", 0x1p-1074, "");
    reads("9007199254740993", 9007199254740992.0, "");
    reads("9007199254740993.00000000000000000000000000000000000001", 9007199254740994.0, "");
    reads("inf", (double)INFINITY, "");
    reads("-inf)", -(double)INFINITY, ")");
    reads("nan", (double)NAN, "");
    reads("nan:", (double)NAN, ":");
    reads("0x1p3", 8.0, "");
    reads("0x1.8p0", 1.5, "");
    reads("0X.8P+1", 1.0, "");
    reads("0xff", 255.0, "");
    reads("-0x1p-1074", -0x1p-1074, "");
    reads("0x1.fffffffffffff8p0", 2.0, "");
    reads("0x1.fffffffffffff7p0", 0x1.fffffffffffffp0, "");
    reads("0x1.00000000000008p0", 1.0, "");
    reads("0x1.00000000000008000000000000000001p0", 0x1.0000000000001p0, "");
    reads("0x1pz", 1.0, "pz");

    double x = 0;
    const char *const bad[] = {"", "-", ".", "e5", "+.", "infinity", "inf1", "nano", "0x", "0xp1", "x", " 1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(read_f64(bad[i], &x) == NULL);

    /* Beyond the digits kept: a midpoint, with a last digit that decides. */
    char text[3000] = "1.00000000000000011102230246251565404236316680908203125";
    const size_t n = strlen(text);
    reads(text, 1.0, "");
    memset(text + n, '0', 2000);
    reads(text, 1.0, "");
    text[n + 1500] = '1';
    reads(text, 0x1.0000000000001p0, "");
    memset(text, '1', 2900);
    memcpy(text + 2900, "e-2899", 7);
    reads(text, 0x1.1c71c71c71c72p0, "");
}

static void writes_f32(float x, const char *expected)
{
    char text[40];
    text_f32(text, sizeof text, x);
    CHECK_EQ_STR(text, expected);
}

static void writes_f64(double x, const char *expected)
{
    char text[40];
    text_f64(text, sizeof text, x);
    CHECK_EQ_STR(text, expected);
}

static void test_write(void)
{
    writes_f32(0.1f, "0.1");
    writes_f32(1.0f, "1.0");
    writes_f32(-2.5f, "-2.5");
    writes_f32(0.0f, "0.0");
    writes_f32(-0.0f, "-0.0");
    writes_f32(100.0f, "100.0");
    writes_f32(123456792.0f, "123456790.0");
    writes_f32(1e9f, "1e9");
    writes_f32(1.5e20f, "1.5e20");
    writes_f32(0x1p-149f, "1e-45");
    writes_f32(-3.4028235e38f, "-3.4028235e38");
    writes_f32(16777216.0f, "16777216.0");
    writes_f32(3.14159274f, "3.1415927");
    writes_f32(0.0001f, "0.0001");
    writes_f32(0.00001f, "1e-5");
    writes_f32(INFINITY, "inf");
    writes_f32(-INFINITY, "-inf");
    writes_f32(NAN, "nan");
    writes_f32(-NAN, "nan");
    writes_f64(0.1, "0.1");
    writes_f64(0.1 + 0.2, "0.30000000000000004");
    writes_f64(1e15, "1000000000000000.0");
    writes_f64(1e16, "1e16");
    writes_f64(0x1p-1074, "5e-324");
    writes_f64(-1.7976931348623157e308, "-1.7976931348623157e308");
    writes_f64(123456.75, "123456.75");
}

static void round_trips_f32(float x)
{
    char text[40];
    text_f32(text, sizeof text, x);
    double back = 0;
    const char *const end = read_f64(text, &back);
    const bool same = end && !*end && (isnan(x) ? isnan(back) : bits_f32((float)back) == bits_f32(x));
    if (!same)
        printf("%#x prints %s: ", bits_f32(x), text);
    CHECK(same);
    CHECK(strpbrk(text, ".ein"));
    if (isfinite(x) && *localeconv()->decimal_point == '.')
        CHECK(bits_f32(strtof(text, NULL)) == bits_f32(x));
}

static void round_trips_f64(double x)
{
    char text[40];
    text_f64(text, sizeof text, x);
    double back = 0;
    const char *const end = read_f64(text, &back);
    const bool same = end && !*end && (isnan(x) ? isnan(back) : bits_f64(back) == bits_f64(x));
    if (!same)
        printf("%#" PRIx64 " prints %s: ", bits_f64(x), text);
    CHECK(same);

    (void)snprintf(text, sizeof text, "%a", x);
    if (isfinite(x) && !strchr(text, ',')) {
        CHECK(read_f64(text, &back) != NULL);
        CHECK(bits_f64(back) == bits_f64(x));
    }
}

static void test_round_trips(int count)
{
    uint64_t seed = 20240607;
    for (int i = 0; i < count; i++) {
        const uint64_t bits = next_random(&seed);
        round_trips_f32(f32_bits((uint32_t)bits));
        round_trips_f64(f64_bits(bits));
        round_trips_f32(f32_bits((uint32_t)(bits >> 32) & 0x807fffffu)); /* a denormal */
        round_trips_f64(f64_bits(bits & 0x800fffffffffffffu));
    }
    for (int e = 0; e < 256; e++) /* powers of two and their neighbours */
        for (uint32_t d = 0; d < 3; d++)
            round_trips_f32(f32_bits(((uint32_t)e << 23) + d - 1));
}

/* The two directions must not notice a locale with a decimal comma; skipped where the machine has none. */
static void test_locale(void)
{
    const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (setlocale(LC_NUMERIC, names[i])) {
            reads("1.5", 1.5, "");
            writes_f32(0.1f, "0.1");
            test_round_trips(200);
            break;
        }
    }
    (void)setlocale(LC_NUMERIC, "C");
}

/* ---- small floats ---------------------------------------------------------------------------------------------- */

struct small_format {
    const char *name;
    int mantissa;
    uint16_t inf;
    uint16_t (*from_f64)(double);
    uint16_t (*from_f32)(float);
    float (*to_f32)(uint16_t);
};

static float bf16_widen(uint16_t h)
{
    return bf16_to_f32(h);
}

/* The value of the non-negative bits h, computed from the format's definition; one step past the largest stands for
 * what would follow if the exponent went on. */
static double small_value(const struct small_format *f, uint16_t h)
{
    const int bias = (1 << (14 - f->mantissa)) - 1;
    const int exponent = h >> f->mantissa;
    const int fraction = h & ((1 << f->mantissa) - 1);
    if (exponent == 0)
        return ldexp(fraction, 1 - bias - f->mantissa);
    return ldexp((1 << f->mantissa) + fraction, exponent - bias - f->mantissa);
}

static void test_small_format(const struct small_format *f)
{
    for (uint32_t i = 0; i < 65536; i++) {
        const uint16_t h = (uint16_t)i;
        const uint16_t magnitude = h & 0x7fff;
        const float x = f->to_f32(h);
        if (magnitude > f->inf) {
            CHECK(isnan(x));
            const uint16_t quiet = (uint16_t)(h | 1 << (f->mantissa - 1));
            CHECK_EQ(f->from_f32(x), quiet);
            CHECK_EQ(f->from_f64((double)x), quiet);
            continue;
        }
        const double exact = magnitude == f->inf ? (double)INFINITY : small_value(f, magnitude);
        CHECK_EQ(bits_f64((double)x), bits_f64(h >> 15 ? -exact : exact));
        CHECK_EQ(f->from_f32(x), h);
        CHECK_EQ(f->from_f64((double)x), h);
    }

    /* Between every two neighbours: the midpoint goes to the even one, the doubles beside it to the near one. */
    for (uint16_t h = 0; h < f->inf; h++) {
        const uint16_t up = (uint16_t)(h + 1);
        const double middle = (small_value(f, h) + small_value(f, up)) / 2;
        const uint16_t even = h & 1 ? up : h;
        CHECK_EQ(f->from_f64(middle), even);
        CHECK_EQ(f->from_f64(-middle), even | 0x8000);
        CHECK_EQ(f->from_f32((float)middle), even);
        CHECK_EQ(f->from_f64(nextafter(middle, 0.0)), h);
        CHECK_EQ(f->from_f64(nextafter(middle, (double)INFINITY)), up);
        CHECK_EQ(f->from_f64(-nextafter(middle, (double)INFINITY)), up | 0x8000);
        CHECK_EQ(f->from_f32(nextafterf((float)middle, 0.0f)), h);
        CHECK_EQ(f->from_f32(nextafterf((float)middle, INFINITY)), up);
    }
    CHECK_EQ(f->from_f64(1e300), f->inf);
    CHECK_EQ(f->from_f64(-(double)INFINITY), f->inf | 0x8000);
    CHECK_EQ(f->from_f64(0x1p-1074), 0);
    CHECK_EQ(f->from_f64(-0x1p-1074), 0x8000);
    CHECK_EQ(f->from_f64(-0.0), 0x8000);
    CHECK(isnan(f->to_f32(f->from_f64((double)NAN))));
    CHECK(isnan(f->to_f32(f->from_f64(f64_bits(0x7ff0000000000001))))); /* a payload that is lost */
}

/* ---- errors, clock --------------------------------------------------------------------------------------------- */

static void test_errors(void)
{
    CHECK_EQ(ERR(NULL, OUT_OF_MEMORY), SK_ERR_MEMORY);
    sk_error err = {0};
    CHECK_EQ(err_set(&err, ERR_ID_OUT_OF_MEMORY, (struct err_place){"a.py", 3, 4}, "%s %d", "first", 1), SK_ERR_MEMORY);
    CHECK_EQ(ERR(&err, OUT_OF_MEMORY), SK_ERR_MEMORY);
    CHECK_EQ_STR(err.message, "first 1");
    CHECK_EQ_STR(err.name, "OUT_OF_MEMORY");
    CHECK_EQ_STR(err.file, "a.py");
    CHECK_EQ(err.line, 3);
    CHECK_EQ(err.column, 4);
    sk_error_clear(&err);
    CHECK_EQ(err.status, SK_OK);
    CHECK_EQ_STR(err.message, "");
    sk_error_clear(NULL);

    /* Too long: cut, never inside a character. */
    for (int shift = 0; shift < 4; shift++) {
        char text[3000] = "";
        size_t n = (size_t)snprintf(text, sizeof text, "%.*s", shift, "xyz");
        while (n + 4 < sizeof text) {
            memcpy(text + n, shift & 1 ? "\xe2\x82\xac" : "\xf0\x9f\x98\x80", 5 - (shift & 1));
            n += 4u - (shift & 1);
        }
        (void)err_set(&err, ERR_ID_OUT_OF_MEMORY, (struct err_place){text, 0, 0}, "%s", text);
        const size_t width = 4u - (shift & 1);
        CHECK_EQ((strlen(err.message) - (size_t)shift) % width, 0);
        CHECK(strlen(err.message) + width >= sizeof err.message);
        CHECK_EQ((strlen(err.file) - (size_t)shift) % width, 0);
        CHECK(strncmp(err.message, text, strlen(err.message)) == 0);
        sk_error_clear(&err);
    }

    CHECK_EQ_STR(sk_status_name(SK_OK), "ok");
    CHECK_EQ_STR(sk_status_name(SK_ERR_IO), "io");
    CHECK_EQ_STR(sk_status_name((sk_status)1000), "unknown");
}

int main(void)
{
    struct mem m;
    mem_init(&m, NULL);
    sk_error err = {0};
    volatile sk_status status = SK_OK;
    MEM_GUARD(&m, &err, status, use_mem(&m));
    CHECK_EQ(status, SK_OK);
    MEM_GUARD(&m, &err, status, use_arena(&m));
    CHECK_EQ(status, SK_OK);
    MEM_GUARD(&m, &err, status, use_buf(&m));
    CHECK_EQ(status, SK_OK);
    MEM_GUARD(&m, &err, status, use_strtab(&m));
    CHECK_EQ(status, SK_OK);
    struct faulty f = {.left = -1, .odd = true};
    struct mem odd;
    faulty_mem(&odd, &f);
    MEM_GUARD(&odd, &err, status, use_arena(&odd));
    CHECK_EQ(status, SK_OK);
    CHECK_EQ(f.live, 0);
    MEM_GUARD(&m, &err, status, nested_guard(&m));
    CHECK_EQ(status, SK_ERR_MEMORY);
    MEM_GUARD(&m, &err, status, arena_too_large(&m));
    CHECK_EQ(status, SK_ERR_MEMORY);
    test_every_allocation_fails_once();

    test_hash();
    test_read();
    test_write();
    test_round_trips(50000);
    test_locale();
    const struct small_format f16 = {"f16", 10, 0x7c00, f16_from_f64, f16_from_f32, f16_to_f32};
    const struct small_format bf16 = {"bf16", 7, 0x7f80, bf16_from_f64, bf16_from_f32, bf16_widen};
    test_small_format(&f16);
    test_small_format(&bf16);
    test_errors();
    const uint64_t t = os_nanoseconds();
    CHECK(t > 0);
    CHECK(os_nanoseconds() >= t);
    return check_done();
}
