/* object.c - the loader of compiled code: what it loads runs (on x86-64) or has the right addresses in its instructions
 * (AArch64), and whatever is damaged is refused with an error, or loaded without harm: a loader cannot see that code or
 * constants are others than they were, so nothing damaged is run.
 *
 * `object N` tries N random mutations of each object instead of 50,000.
 */
#include "check.h"
#include "cpu/object.h"
#include "object_bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static sk_error error;

enum {
    F_LOAD8,
    F_LOAD16,
    F_LOAD32,
    F_LOAD64,
    F_LOAD128,
    F_ADDRESS,
    F_OUTSIDE,
    F_TAIL,
    F_CALL,
    F_INSIDE,
    F_PICK,
    F_MISSING,
    F_N
};
static const char *const names[F_N] = {"load8",   "load16", "load32", "load64", "load128", "address",
                                       "outside", "tail",   "call",   "inside", "pick",    "missing"};
static void *found[F_N];

/* ---- pages ------------------------------------------------------------------------------------------------------ */

/* Lines of /proc/self/maps that lie in a range, and how many of them may be read, written, run. */
struct maps {
    unsigned lines, read, written, run;
};

static struct maps maps_of(const void *from, size_t n)
{
    struct maps m = {0};
    FILE *const f = fopen("/proc/self/maps", "r");
    char line[512];
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long a, b;
        char flags[8];
        if (sscanf(line, "%llx-%llx %7s", &a, &b, flags) != 3 || b <= (uintptr_t)from || a >= (uintptr_t)from + n)
            continue;
        m.lines++;
        m.read += flags[0] == 'r';
        m.written += flags[1] == 'w';
        m.run += flags[2] == 'x';
    }
    if (f)
        (void)fclose(f);
    return m;
}

static bool is_mapped(const void *p)
{
    const uintptr_t page = (uintptr_t)p & ~(uintptr_t)4095;
    return msync((void *)page, 4096, MS_ASYNC) == 0 || errno != ENOMEM;
}

static bool in_code(const struct object_code *code, const void *p, size_t n)
{
    const char *const at = p, *const from = code->memory;
    return at >= from && at + n <= from + code->size;
}

/* ---- what loads ------------------------------------------------------------------------------------------------- */

static struct object_code load_whole(enum object_machine machine, const unsigned char *bytes, size_t n)
{
    struct object_code code;
    CHECK_EQ(object_load_for(machine, bytes, n, names, F_N, found, &code, &error), SK_OK);
    if (!code.memory) {
        CHECK_FAIL_("%s: %s", error.name, error.message);
        sk_error_clear(&error);
        return code;
    }
    for (unsigned k = 0; k < F_N; k++)
        CHECK(k == F_MISSING ? !found[k] : in_code(&code, found[k], 1));
    const struct maps m = maps_of(code.memory, code.size);
    CHECK(m.lines >= 2 && m.read == m.lines && m.written == 0 && m.run >= 1 && m.run < m.lines);
    const struct maps first = maps_of(found[F_LOAD8], 1);
    CHECK_EQ(first.run, 1);
    return code;
}

#define FUNCTION(type, name, which)                                                                                    \
    type;                                                                                                              \
    memcpy(&name, &found[which], sizeof name)

static void test_x86_64(void)
{
    struct object_code code = load_whole(OBJECT_X86_64, object_x86_64, sizeof object_x86_64);
    if (!code.memory)
        return;
    FUNCTION(void *(*address)(void), address, F_ADDRESS);
#if defined(__x86_64__)
    typedef int vector __attribute__((vector_size(16)));
    FUNCTION(uint8_t(*load8)(void), load8, F_LOAD8);
    FUNCTION(uint16_t(*load16)(void), load16, F_LOAD16);
    FUNCTION(uint32_t(*load32)(void), load32, F_LOAD32);
    FUNCTION(uint64_t(*load64)(void), load64, F_LOAD64);
    FUNCTION(vector(*load128)(void), load128, F_LOAD128);
    FUNCTION(void *(*outside)(void), outside, F_OUTSIDE);
    FUNCTION(float (*tail)(float, float, float), tail, F_TAIL);
    FUNCTION(float (*call)(float, float, float), call, F_CALL);
    FUNCTION(uint64_t(*inside)(void), inside, F_INSIDE);
    FUNCTION(uint32_t(*pick)(uint32_t), pick, F_PICK);
    CHECK_EQ(load8(), 90);
    CHECK_EQ(load16(), 4660);
    CHECK_EQ(load32(), 305419896);
    CHECK_EQ(load64(), 81985529216486895);
    CHECK_EQ(inside(), 81985529216486896);
    const vector v = load128();
    CHECK(v[0] == 11 && v[1] == 22 && v[2] == 33 && v[3] == 44);
    void **const table = address();
    CHECK(in_code(&code, table, 16));
    CHECK(maps_of(table, 16).run == 0);
    CHECK(table[0] == found[F_LOAD8]);
    CHECK(outside() == (void *)(uintptr_t)memcpy);
    char from[40] = "moved by what the second entry is", to[40];
    void *(*move)(void *, const void *, size_t);
    memcpy(&move, &table[1], sizeof move);
    CHECK(move(to, from, sizeof to) == to);
    CHECK_EQ_STR(to, from);
    CHECK(tail(0x1.000002p0f, 0x1.000002p0f, -1.0f) == fmaf(0x1.000002p0f, 0x1.000002p0f, -1.0f));
    CHECK(call(3.0f, 4.0f, 5.0f) == 18.0f);
    static const uint32_t want[] = {100, 77, 305419896, 4660, 4 ^ 99, 0};
    for (uint32_t k = 0; k < 6; k++)
        CHECK_EQ(pick(k), want[k]);
    CHECK_EQ(pick(UINT32_MAX), 0);
#endif
    (void)address;
    void *const was = code.memory;
    object_unload(&code);
    CHECK(!code.memory && !code.size);
    CHECK(!is_mapped(was));
    object_unload(&code);
    object_unload(&(struct object_code){0});
    /* No names, and the same code twice at two places. */
    struct object_code one, two;
    CHECK_EQ(object_load_for(OBJECT_X86_64, object_x86_64, sizeof object_x86_64, NULL, 0, NULL, &one, NULL), SK_OK);
    CHECK_EQ(object_load_for(OBJECT_X86_64, object_x86_64, sizeof object_x86_64, NULL, 0, NULL, &two, NULL), SK_OK);
    CHECK(one.memory != two.memory);
    object_unload(&one);
    CHECK(is_mapped(two.memory));
    object_unload(&two);
}

/* ---- instructions of AArch64 ------------------------------------------------------------------------------------- */

static uint32_t word_at(const void *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static uint64_t long_at(const void *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* What ADRP and the instruction after it, an ADD or a load of 1 << shift bytes, address. Null: they are others. */
static const char *addressed(const char *at, int shift)
{
    const uint32_t page = word_at(at), low = word_at(at + 4);
    if ((page & 0x9f000000u) != 0x90000000u || (page & 31) != (low >> 5 & 31))
        return NULL;
    const int64_t pages = (int64_t)((uint64_t)(page >> 5 & 0x7ffff) << 45 | (uint64_t)(page >> 29 & 3) << 43) >> 43;
    const char *const base = (const char *)(((uintptr_t)at & ~(uintptr_t)4095) + (uintptr_t)(pages * 4096));
    static const uint32_t code[] = {0x39400000, 0x79400000, 0xb9400000, 0xf9400000, 0x3dc00000};
    if ((low & 0xffc00000u) != (shift < 0 ? 0x91000000u : code[shift]))
        return NULL;
    return base + ((size_t)(low >> 10 & 0xfff) << (shift < 0 ? 0 : shift));
}

/* Where B or BL goes. */
static const char *branched(const char *at, bool link)
{
    const uint32_t x = word_at(at);
    if ((x & 0xfc000000u) != (link ? 0x94000000u : 0x14000000u))
        return NULL;
    return at + ((int64_t)((uint64_t)x << 38) >> 38) * 4;
}

/* What a stub jumps to. */
static uint64_t stub_target(const struct object_code *code, const char *stub)
{
    if (!stub || !in_code(code, stub, 12))
        return 0;
    const char *const slot = addressed(stub, 3);
    CHECK_EQ(word_at(stub) & 31, 16);
    CHECK_EQ(word_at(stub + 4) & 0x3ff, 16 << 5 | 16);
    CHECK_EQ(word_at(stub + 8), 0xd61f0200u); /* br x16 */
    return slot && in_code(code, slot, 8) ? long_at(slot) : 0;
}

static void test_aarch64(void)
{
    struct object_code code = load_whole(OBJECT_AARCH64, object_aarch64, sizeof object_aarch64);
    if (!code.memory)
        return;
    static const uint64_t constants[] = {90, 4660, 305419896, 81985529216486895};
    for (int k = 0; k < 4; k++) {
        const char *const at = addressed(found[F_LOAD8 + k], k);
        CHECK(at && in_code(&code, at, (size_t)1 << k) && memcmp(at, &constants[k], (size_t)1 << k) == 0);
    }
    static const int four[] = {11, 22, 33, 44};
    const char *const vector = addressed(found[F_LOAD128], 4);
    CHECK(vector && in_code(&code, vector, 16) && memcmp(vector, four, 16) == 0);
    const char *const table = addressed(found[F_ADDRESS], -1);
    CHECK(table && in_code(&code, table, 16));
    if (table) {
        CHECK(long_at(table) == (uintptr_t)found[F_LOAD8]);
        CHECK(stub_target(&code, (const char *)(uintptr_t)long_at(table + 8)) == (uintptr_t)memmove);
    }
    const char *const slot = addressed(found[F_OUTSIDE], 3);
    CHECK(slot && in_code(&code, slot, 8) && long_at(slot) == (uintptr_t)memcpy);
    CHECK(stub_target(&code, branched(found[F_TAIL], false)) == (uintptr_t)fmaf);
    CHECK(stub_target(&code, branched((const char *)found[F_CALL] + 4, true)) == (uintptr_t)fmaf);
    CHECK(branched((const char *)found[F_INSIDE] + 4, true) == found[F_LOAD64]);
    CHECK(branched((const char *)found[F_PICK] + 0x50, true) == found[F_LOAD32]);
    CHECK(branched((const char *)found[F_PICK] + 0x5c, true) == found[F_LOAD16]);
    object_unload(&code);
}

/* ---- what does not ----------------------------------------------------------------------------------------------- */

static void refuse(enum object_machine machine, const void *bytes, size_t n, sk_status status, const char *text)
{
    struct object_code code = {&code, 1};
    found[0] = &code;
    CHECK_EQ(object_load_for(machine, bytes, n, names, F_N, found, &code, &error), status);
    CHECK(!code.memory && !code.size && !found[0]);
    if (!strstr(error.message, text))
        CHECK_FAIL_("\"%s\" does not contain \"%s\"", error.message, text);
    check_count++;
    sk_error_clear(&error);
    object_unload(&code);
}

/* The place of a relocation in the object of x86-64: the first of that type. */
static size_t relocation_at(const unsigned char *bytes, size_t n, uint32_t type)
{
    const uint64_t sections = long_at(bytes + 40);
    for (unsigned k = 0; k < (bytes[60] | (unsigned)bytes[61] << 8); k++) {
        const unsigned char *const s = bytes + sections + 64 * k;
        for (uint64_t at = long_at(s + 24); word_at(s + 4) == 4 && at < long_at(s + 24) + long_at(s + 32); at += 24)
            if (word_at(bytes + at + 8) == type && at < n)
                return at;
    }
    CHECK_FAIL_("no relocation of type %u", type);
    return 0;
}

static void test_refused(void)
{
    static unsigned char x[sizeof object_x86_64];
    struct object_code code;
    /* Another machine's, by the entry that knows which this is. */
#if defined(__x86_64__)
    CHECK_EQ(object_load(object_aarch64, sizeof object_aarch64, names, F_N, found, &code, &error), SK_ERR_INVALID);
    CHECK(strstr(error.message, "another processor (ELF machine 183, not 62)"));
    CHECK_EQ_STR(error.name, "OBJECT_MACHINE");
    sk_error_clear(&error);
#endif
    CHECK(object_load(object_unknown, sizeof object_unknown, names, F_N, found, &code, NULL) != SK_OK);
    refuse(OBJECT_AARCH64, object_x86_64, sizeof object_x86_64, SK_ERR_INVALID, "ELF machine 62, not 183");
    refuse(OBJECT_NONE, object_x86_64, sizeof object_x86_64, SK_ERR_INVALID, "another processor");
    refuse(OBJECT_X86_64, object_unknown, sizeof object_unknown, SK_ERR_INVALID, "'launch_missiles'");
    refuse(OBJECT_X86_64, "", 0, SK_ERR_INVALID, "not an ELF object");
    refuse(OBJECT_X86_64, "#!/bin/sh\n", 10, SK_ERR_INVALID, "not an ELF object");
    memcpy(x, object_x86_64, sizeof x);
    const size_t at = relocation_at(x, sizeof x, 2);
    x[at + 8] = 0x39;
    x[at + 9] = 0x30;
    refuse(OBJECT_X86_64, x, sizeof x, SK_ERR_INVALID, "12345");
    /* An addend out of reach, a place outside, a symbol that is not there. */
    memcpy(x, object_x86_64, sizeof x);
    x[at + 16 + 4] ^= 1;
    refuse(OBJECT_X86_64, x, sizeof x, SK_ERR_INVALID, "does not reach");
    memcpy(x, object_x86_64, sizeof x);
    x[at + 1] = 0x7f;
    refuse(OBJECT_X86_64, x, sizeof x, SK_ERR_INVALID, "outside");
    memcpy(x, object_x86_64, sizeof x);
    x[at + 12 + 1] = 0x7f;
    refuse(OBJECT_X86_64, x, sizeof x, SK_ERR_INVALID, "outside");
    /* A file that would be run, not linked. */
    memcpy(x, object_x86_64, sizeof x);
    x[16] = 3;
    refuse(OBJECT_X86_64, x, sizeof x, SK_ERR_INVALID, "not a relocatable");
    /* A name with an escape sequence is shown without. */
    unsigned char u[sizeof object_unknown];
    memcpy(u, object_unknown, sizeof u);
    for (size_t k = 0; k + 6 < sizeof u; k++)
        if (memcmp(u + k, "launch", 6) == 0)
            u[k] = 0x1b;
    refuse(OBJECT_X86_64, u, sizeof u, SK_ERR_INVALID, "'?aunch_missiles'");
}

/* ---- damage ----------------------------------------------------------------------------------------------------- */

static char *room_end; /* no memory lies after it */
static unsigned long n_loaded, n_refused;

/* Each object is copied to where a read past its end traps. */
static void try_object(enum object_machine machine, const unsigned char *bytes, size_t n)
{
    struct object_code code;
    unsigned char *const copy = memcpy(room_end - n, bytes, n);
    const sk_status st = object_load_for(machine, copy, n, names, F_N, found, &code, &error);
    check_count++;
    if (st == SK_OK) {
        n_loaded++;
        if (error.message[0] || !code.memory)
            CHECK_FAIL_("loaded, with an error: %s", error.message);
        for (unsigned k = 0; k < F_N; k++)
            if (found[k] && !in_code(&code, found[k], 1))
                CHECK_FAIL_("%s lies outside", names[k]);
    } else {
        n_refused++;
        if (!error.message[0] || error.status != st || code.memory || code.size)
            CHECK_FAIL_("refused without an error, or not left empty");
    }
    sk_error_clear(&error);
    object_unload(&code);
}

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Numbers that stand at the edges of what is compared. */
static void mutate(unsigned char *x, size_t n)
{
    static const uint64_t odd[] = {0,
                                   1,
                                   4,
                                   8,
                                   63,
                                   64,
                                   0x7fff,
                                   0xffff,
                                   0x7fffffff,
                                   0xffffffff,
                                   0x100000000,
                                   0x7fffffffffffffff,
                                   0xffffffffffffffff,
                                   0xfffffffffffffff8,
                                   0x8000000000000000};
    const size_t sections = (size_t)long_at(x + 40);
    for (unsigned k = 0, many = (unsigned)(1 + next_random() % 3); k < many; k++) {
        const bool table = next_random() % 2 && sections < n;
        const size_t at = table ? sections + next_random() % (n - sections) : (size_t)(next_random() % n);
        const size_t bytes = (size_t)1 << next_random() % 4;
        uint64_t value = next_random() % 3 ? odd[next_random() % (sizeof odd / sizeof *odd)] : next_random();
        if (next_random() % 4 == 0)
            value = n + next_random() % 9 - 4;
        memcpy(x + at, &value, at + bytes <= n ? bytes : n - at);
    }
}

static void test_damage(enum object_machine machine, const unsigned char *bytes, size_t n, unsigned long rounds)
{
    static unsigned char x[8192];
    memcpy(x, bytes, n);
    n_loaded = n_refused = 0;
    for (size_t k = 0; k < n; k++) {
        for (unsigned bit = 0; bit < 9; bit++) {
            const unsigned char flip = (unsigned char)(bit < 8 ? 1u << bit : 0xff);
            x[k] ^= flip;
            try_object(machine, x, n);
            x[k] ^= flip;
        }
    }
    CHECK(n_loaded > n && n_refused > n); /* of all kinds there are */
    for (size_t k = 0; k < n; k++) {
        n_loaded = 0;
        try_object(machine, x, k);
        CHECK_EQ(n_loaded, 0); /* the table of sections is last */
    }
    for (unsigned long k = 0; k < rounds; k++) {
        memcpy(x, bytes, n);
        mutate(x, n);
        try_object(machine, x, n);
    }
}

/* Where no pages are to be had: memory, not damage. */
static void test_no_pages(void)
{
    const pid_t child = fork();
    if (child == 0) {
        struct object_code code;
        const struct rlimit none = {1, 1};
        if (setrlimit(RLIMIT_AS, &none) != 0)
            _exit(2);
        const sk_status st =
            object_load_for(OBJECT_X86_64, object_x86_64, sizeof object_x86_64, names, F_N, found, &code, &error);
        _exit(st == SK_ERR_MEMORY && strcmp(error.name, "OBJECT_PAGES") == 0 && !code.memory ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
}

int main(int argc, char **argv)
{
    const unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 50000;
    const size_t size = 16384;
    char *const room = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED || mprotect(room, size, PROT_READ | PROT_WRITE) != 0) {
        CHECK_FAIL_("no memory");
        return check_done();
    }
    room_end = room + size;
    test_x86_64();
    test_aarch64();
    test_refused();
    test_no_pages();
    const unsigned before = maps_of(NULL, SIZE_MAX).lines;
    test_damage(OBJECT_X86_64, object_x86_64, sizeof object_x86_64, rounds);
    test_damage(OBJECT_AARCH64, object_aarch64, sizeof object_aarch64, rounds);
    CHECK(maps_of(NULL, SIZE_MAX).lines < before + 20);
    return check_done();
}
