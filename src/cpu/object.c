/* object.c - a loader of relocatable ELF objects.
 *
 * One mapping holds the code, then stubs for the external functions, then, on pages of their own, constants and a table of
 * addresses (the GOT). Each symbol of the object has one place in the table and, if it is external, one stub, at its number: nothing
 * is counted or looked up, and the loader allocates nothing but the mapping. A stub is needed because the mapping may lie
 * further from a function of the C library than a call reaches.
 *
 * Nothing in the file is trusted: every offset, size, index and name is compared with the bytes that are there before it
 * is used, and structures are copied out, because none need be aligned.
 */
#include "cpu/object.h"

#include <errno.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

#define MOST_SECTIONS 128u               /* LLVM makes about ten for a kernel */
#define MOST_BYTES ((uint64_t)128 << 20) /* of the mapping: every branch of AArch64 reaches every place in it */
#define MOST_ALIGN ((uint64_t)4096)      /* the smallest page */
#define STUB_BYTES 16u

/* ---- the file ------------------------------------------------------------------------------------------------------- */

struct elf_header {
    uint8_t ident[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, programs, sections;
    uint32_t flags;
    uint16_t header_bytes, program_bytes, n_programs, section_bytes, n_sections, names;
};
struct elf_section {
    uint32_t name, type;
    uint64_t flags, address, offset, size;
    uint32_t link, info;
    uint64_t align, item;
};
struct elf_symbol {
    uint32_t name;
    uint8_t info, other;
    uint16_t section;
    uint64_t value, size;
};
struct elf_rela {
    uint64_t offset, info;
    int64_t addend;
};
_Static_assert(sizeof(struct elf_header) == 64 && sizeof(struct elf_section) == 64 && sizeof(struct elf_symbol) == 24 &&
                   sizeof(struct elf_rela) == 24,
               "as in files");

static const uint8_t ident[7] = {0x7f, 'E', 'L', 'F', 2, 1, 1}; /* 64 bits, the lowest byte first, version 1 */
#define FILE_RELOCATABLE 1u
#define SECTION_BYTES 1u /* types of sections */
#define SECTION_SYMBOLS 2u
#define SECTION_STRINGS 3u
#define SECTION_RELA 4u
#define SECTION_NOTE 7u
#define SECTION_REL 9u
#define SECTION_X86_UNWIND 0x70000001u
#define FLAG_WRITE 1u /* flags of sections */
#define FLAG_LOADED 2u
#define FLAG_CODE 4u
#define FLAG_KNOWN 0x37u /* and merging, of strings too */
#define FLAG_LINK 0xc0u  /* "info is a section", order of linking: nothing to do */
#define SYMBOL_FUNCTION 2u
#define SYMBOL_SECTION 3u

/* ---- external functions --------------------------------------------------------------------------------------------- */

/* Halves travel in the low bits of a register of floats, as LLVM has it on x86-64; the library's own functions for them are
 * missing in older compilers. AArch64 converts by an instruction. */
static float half_to_float(float half)
{
    return f16_to_f32((uint16_t)bits_f32(half));
}

static float float_to_half(float x)
{
    return f32_bits(f16_from_f32(x));
}

static float double_to_half(double x)
{
    return f32_bits(f16_from_f64(x));
}

static float float_to_bfloat(float x)
{
    return f32_bits(bf16_from_f32(x));
}

static float double_to_bfloat(double x)
{
    return f32_bits(bf16_from_f64(x));
}

#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;
wide __divti3(wide, wide);
wide __modti3(wide, wide);
unsigned_wide __udivti3(unsigned_wide, unsigned_wide);
unsigned_wide __umodti3(unsigned_wide, unsigned_wide);
#endif

/* What LLVM calls on its own: copies; rounding and fma on processors that have no instruction for them (x86-64 before SSE4.1
 * and FMA), conversions of halves (before F16C), division of 128-bit integers, which it makes of loops. */
static const struct external {
    const char *name;
    void (*function)(void);
} externals[] = {
#define SAME(f)                                                                                                        \
    {                                                                                                                  \
#f, (void (*)(void))f                                                                                          \
    }
    SAME(memcpy),
    SAME(memmove),
    SAME(memset),
    SAME(fma),
    SAME(fmaf),
    SAME(floor),
    SAME(floorf),
    SAME(ceil),
    SAME(ceilf),
    SAME(trunc),
    SAME(truncf),
    SAME(rint),
    SAME(rintf),
    SAME(nearbyint),
    SAME(nearbyintf),
    SAME(round),
    SAME(roundf),
    /* Rounding to nearest is what these run under. */
    {"roundeven", (void (*)(void))rint},
    {"roundevenf", (void (*)(void))rintf},
    {"__extendhfsf2", (void (*)(void))half_to_float},
    {"__truncsfhf2", (void (*)(void))float_to_half},
    {"__truncdfhf2", (void (*)(void))double_to_half},
    {"__truncsfbf2", (void (*)(void))float_to_bfloat},
    {"__truncdfbf2", (void (*)(void))double_to_bfloat},
#ifdef __SIZEOF_INT128__
    SAME(__divti3),
    SAME(__modti3),
    SAME(__udivti3),
    SAME(__umodti3),
#endif
#undef SAME
};

/* 0: not there. */
static uint64_t external_address(const char *name)
{
    for (size_t k = 0; k < sizeof externals / sizeof externals[0]; k++)
        if (strcmp(externals[k].name, name) == 0)
            return (uint64_t)(uintptr_t)externals[k].function;
    return 0;
}

/* ---- relocations ---------------------------------------------------------------------------------------------------- */

/* S: the symbol, or its stub; G: its place in the table of addresses; A: the addend; P: the place that is changed. */
enum form {
    FORM_ABSOLUTE_64,     /* S + A */
    FORM_RELATIVE_64,     /* S + A - P */
    FORM_RELATIVE_32,     /* the same */
    FORM_RELATIVE_32_GOT, /* G + A - P */
    FORM_BRANCH_26,       /* (S + A - P) / 4 in an instruction */
    FORM_PAGE_21,         /* page of S + A less page of P */
    FORM_PAGE_21_GOT,     /* of G + A */
    FORM_LOW_12,          /* low bits of S + A, in units of 1 << shift */
    FORM_LOW_12_GOT       /* of G + A */
};

static const struct relocation {
    uint16_t machine, type;
    enum form form;
    unsigned shift;
} relocations[] = {
    {OBJECT_X86_64, 1, FORM_ABSOLUTE_64, 0},      /* 64 */
    {OBJECT_X86_64, 2, FORM_RELATIVE_32, 0},      /* PC32 */
    {OBJECT_X86_64, 4, FORM_RELATIVE_32, 0},      /* PLT32 */
    {OBJECT_X86_64, 9, FORM_RELATIVE_32_GOT, 0},  /* GOTPCREL */
    {OBJECT_X86_64, 24, FORM_RELATIVE_64, 0},     /* PC64 */
    {OBJECT_X86_64, 41, FORM_RELATIVE_32_GOT, 0}, /* GOTPCRELX */
    {OBJECT_X86_64, 42, FORM_RELATIVE_32_GOT, 0}, /* REX_GOTPCRELX */
    {OBJECT_X86_64, 43, FORM_RELATIVE_32_GOT, 0}, /* CODE_4_GOTPCRELX */
    {OBJECT_AARCH64, 257, FORM_ABSOLUTE_64, 0},   /* ABS64 */
    {OBJECT_AARCH64, 260, FORM_RELATIVE_64, 0},   /* PREL64 */
    {OBJECT_AARCH64, 261, FORM_RELATIVE_32, 0},   /* PREL32 */
    {OBJECT_AARCH64, 275, FORM_PAGE_21, 0},       /* ADR_PREL_PG_HI21 */
    {OBJECT_AARCH64, 277, FORM_LOW_12, 0},        /* ADD_ABS_LO12_NC */
    {OBJECT_AARCH64, 278, FORM_LOW_12, 0},        /* LDST8_ABS_LO12_NC */
    {OBJECT_AARCH64, 282, FORM_BRANCH_26, 0},     /* JUMP26 */
    {OBJECT_AARCH64, 283, FORM_BRANCH_26, 0},     /* CALL26 */
    {OBJECT_AARCH64, 284, FORM_LOW_12, 1},        /* LDST16_ABS_LO12_NC */
    {OBJECT_AARCH64, 285, FORM_LOW_12, 2},        /* LDST32_ABS_LO12_NC */
    {OBJECT_AARCH64, 286, FORM_LOW_12, 3},        /* LDST64_ABS_LO12_NC */
    {OBJECT_AARCH64, 299, FORM_LOW_12, 4},        /* LDST128_ABS_LO12_NC */
    {OBJECT_AARCH64, 311, FORM_PAGE_21_GOT, 0},   /* ADR_GOT_PAGE */
    {OBJECT_AARCH64, 312, FORM_LOW_12_GOT, 3},    /* LD64_GOT_LO12_NC */
};

static const struct relocation *find_relocation(uint16_t machine, uint32_t type)
{
    for (size_t k = 0; k < sizeof relocations / sizeof relocations[0]; k++)
        if (relocations[k].machine == machine && relocations[k].type == type)
            return &relocations[k];
    return NULL;
}

/* ---- an object being loaded ----------------------------------------------------------------------------------------- */

enum part { PART_NONE, PART_CODE, PART_CONSTANTS };

struct section {
    struct elf_section h; /* offset and size lie within the file, unless it has no bytes there */
    enum part part;
    uint64_t place; /* in the mapping */
};

struct loader {
    const uint8_t *bytes;
    size_t n;
    uint16_t machine;
    sk_error *err;
    uint32_t n_sections, symbols; /* symbols: number of their section, 0: none */
    uint64_t n_symbols;
    struct section section[MOST_SECTIONS];
    uint8_t *memory;
    uint64_t stubs, got, code_bytes, size; /* of the mapping */
};

static sk_status damaged(const struct loader *l, const char *what)
{
    return ERR(l->err, OBJECT_DAMAGED, what);
}

static bool within(uint64_t offset, uint64_t size, uint64_t all)
{
    return offset <= all && size <= all - offset;
}

static uint64_t aligned(uint64_t x, uint64_t to)
{
    return (x + to - 1) & ~(to - 1);
}

/* Strings end within their section: find_symbols saw that. Null if there is no such string. */
static const char *string_at(const struct loader *l, uint32_t section, uint64_t offset)
{
    const struct elf_section *const h = &l->section[section].h;
    return offset < h->size ? (const char *)l->bytes + h->offset + offset : NULL;
}

static sk_status check_strings(const struct loader *l, uint32_t section)
{
    if (section >= l->n_sections || l->section[section].h.type != SECTION_STRINGS)
        return damaged(l, "names are missing");
    const struct elf_section *const h = &l->section[section].h;
    if (h->size == 0 || l->bytes[h->offset + h->size - 1] != 0)
        return damaged(l, "a name has no end");
    return SK_OK;
}

/* Which part of the mapping a section belongs to. Tables for unwinding, notes and what is not for loading are left out. */
static sk_status classify(const struct loader *l, struct section *s, const char *name)
{
    const struct elf_section *const h = &s->h;
    s->part = PART_NONE;
    if (!(h->flags & FLAG_LOADED) || h->size == 0 || h->type == SECTION_NOTE || h->type == SECTION_X86_UNWIND ||
        strcmp(name, ".eh_frame") == 0)
        return SK_OK;
    const uint64_t flags = h->flags & ~(uint64_t)FLAG_LINK;
    if (h->type != SECTION_BYTES || (flags & ~(uint64_t)FLAG_KNOWN))
        return damaged(l, "a section is of an unknown kind");
    /* Constants that hold addresses: written by the loader alone. */
    if ((flags & FLAG_WRITE) && ((flags & FLAG_CODE) || strncmp(name, ".data.rel.ro", 12) != 0))
        return damaged(l, "a section is writable");
    if (h->align > MOST_ALIGN || (h->align & (h->align - 1)))
        return damaged(l, "an alignment is wrong");
    s->part = flags & FLAG_CODE ? PART_CODE : PART_CONSTANTS;
    return SK_OK;
}

static sk_status read_sections(struct loader *l)
{
    struct elf_header h;
    if (l->n < sizeof h || memcmp(l->bytes, ident, sizeof ident) != 0)
        return damaged(l, "it is not an ELF object");
    memcpy(&h, l->bytes, sizeof h);
    if (h.type != FILE_RELOCATABLE || h.section_bytes != sizeof(struct elf_section))
        return damaged(l, "it is not a relocatable ELF object");
    if (h.machine != l->machine)
        return ERR(l->err, OBJECT_MACHINE, (unsigned)h.machine, (unsigned)l->machine);
    if (h.n_sections == 0 || h.n_sections > MOST_SECTIONS ||
        !within(h.sections, (uint64_t)h.n_sections * sizeof(struct elf_section), l->n))
        return damaged(l, "the table of sections is wrong");
    l->n_sections = h.n_sections;
    for (uint32_t k = 0; k < l->n_sections; k++) {
        struct elf_section *const s = &l->section[k].h;
        memcpy(s, l->bytes + h.sections + k * sizeof *s, sizeof *s);
        if (s->type == SECTION_BYTES || s->type == SECTION_SYMBOLS || s->type == SECTION_STRINGS ||
            s->type == SECTION_RELA) {
            if (!within(s->offset, s->size, l->n))
                return damaged(l, "a section lies outside");
        } else if (s->type == SECTION_REL) {
            return damaged(l, "a section is of an unknown kind");
        }
    }
    TRY(check_strings(l, h.names));
    for (uint32_t k = 0; k < l->n_sections; k++) {
        const char *const name = string_at(l, h.names, l->section[k].h.name);
        if (!name)
            return damaged(l, "a section has no name");
        TRY(classify(l, &l->section[k], name));
    }
    return SK_OK;
}

/* ---- symbols -------------------------------------------------------------------------------------------------------- */

static sk_status find_symbols(struct loader *l)
{
    for (uint32_t k = 0; k < l->n_sections; k++) {
        const struct elf_section *const h = &l->section[k].h;
        if (h->type != SECTION_SYMBOLS)
            continue;
        if (l->symbols || h->item != sizeof(struct elf_symbol) || h->size % sizeof(struct elf_symbol) != 0)
            return damaged(l, "the table of symbols is wrong");
        TRY(check_strings(l, h->link));
        l->symbols = k;
        l->n_symbols = h->size / sizeof(struct elf_symbol);
    }
    return SK_OK;
}

static struct elf_symbol symbol_at(const struct loader *l, uint64_t k) /* k < n_symbols */
{
    struct elf_symbol s;
    memcpy(&s, l->bytes + l->section[l->symbols].h.offset + k * sizeof s, sizeof s);
    return s;
}

static const char *symbol_name(const struct loader *l, const struct elf_symbol *s) /* null: it has none */
{
    return string_at(l, l->section[l->symbols].h.link, s->name);
}

/* Does it lie in the mapping? */
static bool defined(const struct loader *l, const struct elf_symbol *s)
{
    return s->section < l->n_sections && l->section[s->section].part != PART_NONE && (s->info & 15) <= SYMBOL_SECTION &&
           s->value <= l->section[s->section].h.size;
}

/* Its address; of a function outside, that function's. 0: there is none. */
static uint64_t symbol_address(const struct loader *l, const struct elf_symbol *s)
{
    if (defined(l, s))
        return (uint64_t)(uintptr_t)l->memory + l->section[s->section].place + s->value;
    const char *const name = s->section == 0 ? symbol_name(l, s) : NULL;
    return name ? external_address(name) : 0;
}

static sk_status no_such(const struct loader *l, const struct elf_symbol *s)
{
    const char *name = s->section == 0 ? symbol_name(l, s) : NULL;
    char shown[64];
    size_t n = 0;
    for (; name && *name && n + 1 < sizeof shown; name++)
        shown[n++] = *name > ' ' && *name < 0x7f ? *name : '?';
    shown[n] = 0;
    return n ? ERR(l->err, OBJECT_EXTERNAL, shown) : damaged(l, "a symbol lies outside");
}

/* ---- the mapping ---------------------------------------------------------------------------------------------------- */

static sk_status place_part(struct loader *l, enum part part)
{
    for (uint32_t k = 0; k < l->n_sections; k++) {
        struct section *const s = &l->section[k];
        if (s->part != part)
            continue;
        const uint64_t align = s->h.align ? s->h.align : 1;
        s->place = aligned(l->size, align > 16 ? align : 16);
        l->size = s->place + s->h.size; /* no overflow: each is at most the file, and they are few */
        if (l->size > MOST_BYTES)
            return damaged(l, "it is too large");
    }
    return SK_OK;
}

static sk_status map(struct loader *l)
{
    const long page_bytes = sysconf(_SC_PAGESIZE);
    const uint64_t page = page_bytes > 0 ? (uint64_t)page_bytes : MOST_ALIGN;
    TRY(place_part(l, PART_CODE));
    l->stubs = aligned(l->size, STUB_BYTES);
    l->code_bytes = l->size = aligned(l->stubs + l->n_symbols * STUB_BYTES, page);
    TRY(place_part(l, PART_CONSTANTS));
    l->got = aligned(l->size, sizeof(uint64_t));
    l->size = aligned(l->got + l->n_symbols * sizeof(uint64_t), page);
    if (l->size > MOST_BYTES)
        return damaged(l, "it is too large");
    if (l->code_bytes == 0)
        return damaged(l, "it has no code");
    void *const p = mmap(NULL, l->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return ERR(l->err, OBJECT_PAGES, (size_t)l->size);
    l->memory = p;
    /* What is no code traps: int3; on AArch64 zeros are no instruction. */
    if (l->machine == OBJECT_X86_64)
        memset(l->memory, 0xcc, l->code_bytes);
    for (uint32_t k = 0; k < l->n_sections; k++) {
        const struct section *const s = &l->section[k];
        if (s->part != PART_NONE)
            memcpy(l->memory + s->place, l->bytes + s->h.offset, s->h.size);
    }
    return SK_OK;
}

static void put32(uint8_t *to, uint32_t x)
{
    memcpy(to, &x, sizeof x);
}

static uint32_t get32(const uint8_t *from)
{
    uint32_t x;
    memcpy(&x, from, sizeof x);
    return x;
}

static uint32_t in_adrp(uint64_t pages) /* the 21 bits where ADRP has them */
{
    return (uint32_t)(pages & 3) << 29 | (uint32_t)(pages >> 2 & 0x7ffff) << 5;
}

/* Jumps to the address in the table. */
static void put_stub(const struct loader *l, uint64_t k)
{
    uint8_t *const to = l->memory + l->stubs + k * STUB_BYTES;
    const uint64_t from = (uint64_t)(uintptr_t)to;
    const uint64_t slot = (uint64_t)(uintptr_t)l->memory + l->got + k * sizeof(uint64_t);
    if (l->machine == OBJECT_X86_64) { /* jmp *slot(%rip) */
        to[0] = 0xff;
        to[1] = 0x25;
        put32(to + 2, (uint32_t)(slot - (from + 6)));
    } else { /* adrp x16, slot; ldr x16, [x16, slot]; br x16 */
        put32(to, 0x90000010u | in_adrp((slot >> 12) - (from >> 12)));
        put32(to + 4, 0xf9400210u | (uint32_t)(slot >> 3 & 0x1ff) << 10);
        put32(to + 8, 0xd61f0200u);
    }
}

static void fill_tables(const struct loader *l)
{
    for (uint64_t k = 0; k < l->n_symbols; k++) {
        const struct elf_symbol s = symbol_at(l, k);
        const uint64_t address = symbol_address(l, &s);
        memcpy(l->memory + l->got + k * sizeof address, &address, sizeof address);
        if (address && s.section == 0)
            put_stub(l, k);
    }
}

/* ---- relocating ----------------------------------------------------------------------------------------------------- */

static bool fits(uint64_t x, unsigned bits) /* as a signed number */
{
    return x + ((uint64_t)1 << (bits - 1)) < (uint64_t)1 << bits;
}

static sk_status relocate(const struct loader *l, const struct section *in, const struct elf_rela *rela)
{
    const uint64_t number = rela->info >> 32;
    const struct relocation *const r = find_relocation(l->machine, (uint32_t)rela->info);
    if (!r)
        return ERR(l->err, OBJECT_RELOCATION, (uint32_t)rela->info);
    const uint64_t bytes = r->form == FORM_ABSOLUTE_64 || r->form == FORM_RELATIVE_64 ? 8 : 4;
    if (!within(rela->offset, bytes, in->h.size) || number >= l->n_symbols)
        return damaged(l, "a relocation lies outside");
    uint8_t *const at = l->memory + in->place + rela->offset;
    const uint64_t p = (uint64_t)(uintptr_t)at, base = (uint64_t)(uintptr_t)l->memory, a = (uint64_t)rela->addend;
    const struct elf_symbol symbol = symbol_at(l, number);
    uint64_t s = symbol_address(l, &symbol);
    if (!s)
        return no_such(l, &symbol);
    if (symbol.section == 0)
        s = base + l->stubs + number * STUB_BYTES;
    const uint64_t target = s + a, slot = base + l->got + number * sizeof(uint64_t) + a;
    uint64_t x = target - p, low = target;
    bool ok = true;
    switch (r->form) {
    case FORM_ABSOLUTE_64: memcpy(at, &target, sizeof target); break;
    case FORM_RELATIVE_64: memcpy(at, &x, sizeof x); break;
    case FORM_RELATIVE_32_GOT: x = slot - p; /* fall through */
    case FORM_RELATIVE_32:
        ok = fits(x, 32);
        put32(at, (uint32_t)x);
        break;
    case FORM_BRANCH_26:
        ok = fits(x, 28) && !(x & 3);
        put32(at, (get32(at) & 0xfc000000u) | (uint32_t)(x >> 2 & 0x3ffffff));
        break;
    case FORM_PAGE_21_GOT: low = slot; /* fall through */
    case FORM_PAGE_21:
        x = (low & ~(uint64_t)0xfff) - (p & ~(uint64_t)0xfff);
        ok = fits(x, 33);
        put32(at, (get32(at) & 0x9f00001fu) | in_adrp(x >> 12));
        break;
    case FORM_LOW_12_GOT: low = slot; /* fall through */
    case FORM_LOW_12:
        ok = !(low & (((uint64_t)1 << r->shift) - 1));
        put32(at, (get32(at) & 0xffc003ffu) | (uint32_t)((low & 0xfff) >> r->shift) << 10);
        break;
    }
    return ok ? SK_OK : damaged(l, "a relocation does not reach");
}

static sk_status relocate_all(const struct loader *l)
{
    for (uint32_t k = 0; k < l->n_sections; k++) {
        const struct elf_section *const h = &l->section[k].h;
        if (h->type != SECTION_RELA)
            continue;
        if (h->info >= l->n_sections)
            return damaged(l, "relocations are of no section");
        const struct section *const in = &l->section[h->info];
        if (in->part == PART_NONE)
            continue;
        if (!l->symbols || h->link != l->symbols || h->item != sizeof(struct elf_rela) ||
            h->size % sizeof(struct elf_rela) != 0)
            return damaged(l, "a table of relocations is wrong");
        for (uint64_t at = 0; at < h->size; at += sizeof(struct elf_rela)) {
            struct elf_rela r;
            memcpy(&r, l->bytes + h->offset + at, sizeof r);
            TRY(relocate(l, in, &r));
        }
    }
    return SK_OK;
}

/* ---- ready ---------------------------------------------------------------------------------------------------------- */

static sk_status protect(const struct loader *l)
{
    if (mprotect(l->memory, l->code_bytes, PROT_READ | PROT_EXEC) != 0 ||
        mprotect(l->memory + l->code_bytes, l->size - l->code_bytes, PROT_READ) != 0)
        return ERR(l->err, OBJECT_PROTECT, errno);
    __builtin___clear_cache((char *)l->memory, (char *)l->memory + l->code_bytes);
    return SK_OK;
}

static void find_names(const struct loader *l, const char *const *names, size_t n_names, void **address)
{
    for (uint64_t k = 0; k < l->n_symbols; k++) {
        const struct elf_symbol s = symbol_at(l, k);
        if ((s.info & 15) != SYMBOL_FUNCTION || !defined(l, &s) || l->section[s.section].part != PART_CODE ||
            s.value == l->section[s.section].h.size)
            continue;
        const char *const name = symbol_name(l, &s);
        for (size_t j = 0; name && j < n_names; j++)
            if (!address[j] && strcmp(name, names[j]) == 0)
                address[j] = l->memory + l->section[s.section].place + s.value;
    }
}

static sk_status load(struct loader *l)
{
    TRY(read_sections(l));
    TRY(find_symbols(l));
    TRY(map(l));
    fill_tables(l);
    TRY(relocate_all(l));
    return protect(l);
}

sk_status object_load_for(enum object_machine machine, const void *bytes, size_t n, const char *const *names,
                          size_t n_names, void **address, struct object_code *out, sk_error *err)
{
    struct loader l = {.bytes = bytes, .n = n, .machine = (uint16_t)machine, .err = err};
    *out = (struct object_code){0};
    for (size_t j = 0; j < n_names; j++)
        address[j] = NULL;
    const sk_status st = load(&l);
    if (st != SK_OK) {
        if (l.memory)
            (void)munmap(l.memory, l.size);
        return st;
    }
    find_names(&l, names, n_names, address);
    *out = (struct object_code){l.memory, l.size};
    return SK_OK;
}

sk_status object_load(const void *bytes, size_t n, const char *const *names, size_t n_names, void **address,
                      struct object_code *out, sk_error *err)
{
#if defined(__x86_64__)
    return object_load_for(OBJECT_X86_64, bytes, n, names, n_names, address, out, err);
#elif defined(__aarch64__)
    return object_load_for(OBJECT_AARCH64, bytes, n, names, n_names, address, out, err);
#else
    return object_load_for(OBJECT_NONE, bytes, n, names, n_names, address, out, err);
#endif
}

void object_unload(struct object_code *code)
{
    if (code->memory)
        (void)munmap(code->memory, code->size);
    *code = (struct object_code){0};
}
