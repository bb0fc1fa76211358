/* program.h - a kernel flattened for execution, and the state of a launch. Private to src/interp.
 *
 * A program is an array of instructions. Each is a function and its operands; the function runs it for the lanes of
 * one simdgroup and returns the next instruction, null to stop running this simdgroup (ended, or waiting at a
 * barrier).
 *
 * Values. A value is a list of leaves, one for each scalar in it (a pointer has two: a u64 offset and a u32 region). A
 * leaf is a register: 32 lanes of the scalar's size, bool as bytes 0 and 1, f16 and bf16 as their bits. Parts of
 * vectors and structs are the same registers under another name, so that make, extract, splat and shuffle cost
 * nothing. The registers of one simdgroup are its register file; constants, parameters and attributes have registers
 * of their own.
 *
 * Masks. `mask` holds the active lanes, `gone` the lanes that are not here any more or never were (past the end of the
 * threadgroup, ended, or split off at a barrier). Lanes that wait for others stand in `slot`: since control is
 * structured, a construct knows its slots when it is compiled. Rules:
 *  1. Pure operations compute all 32 lanes, whatever the mask: they never fault, and a register that an inactive lane
 *     still needs is never the target of one (a value is made anew by each lane before that lane uses it).
 *  2. What outlives the code that writes it is written under the mask: loop parameters, results, locals. Memory and
 *     collectives look at the mask, too.
 *  3. With an empty mask only the heads and ends of constructs run (they find who waits there).
 *  4. The target of an instruction is none of its operands' registers.
 */
#ifndef SK_INTERP_PROGRAM_H
#define SK_INTERP_PROGRAM_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "interp/interp.h"
#include "ir/fault.h"

#define LANES 32u
#define ALL_LANES 0xffffffffu

/* ---- the program ------------------------------------------------------------------------------------------------ */

struct simd;
struct inst;
typedef const struct inst *inst_fn(struct simd *s, const struct inst *i);

struct inst {
    inst_fn *run;
    uint32_t d, a, b, c; /* registers (d: the target): byte offsets into the register file */
    uint32_t x, y;       /* by function: slots, places in the tables of the program */
    int32_t jump, skip;  /* control: instructions from this one; skip: taken when no lane is left */
    uint64_t imm;
};
_Static_assert(sizeof(struct inst) == 48, "an instruction is 48 bytes");

/* Kinds of a leaf in memory: enum scalar, and the two halves of a pointer, which in memory is one 64-bit handle: the
 * region in the upper 16 bits, the offset in the lower 48, sign-extended. */
enum { LEAF_OFFSET = S_COUNT, LEAF_REGION };
#define HANDLE_BITS 48

struct leaf {
    uint32_t reg;
    uint8_t kind;    /* enum scalar or LEAF_*; S_VOID: an operand that is absent */
    uint64_t offset; /* in the value's bytes */
};

/* An address: region, base + disp + up to TERMS products index * scale.
 *
 * Offsets never wrap: one that leaves (-2^61, 2^61) becomes FAR and stays it, whatever is added. No region is that large,
 * so it is out of bounds. Terms with 32-bit indices are added without a test: one of a scale up to FAR_SCALE, or all of
 * scales up to TERM_SCALE, stay below 2^60 together, and beside them disp is held within TERM_DISP = 2^60. */
#define FAR ((int64_t)1 << 61)
#define FAR_SCALE ((uint64_t)1 << 28)
#define TERMS 3u
#define TERM_SCALE ((uint64_t)1 << 26)
#define TERM_DISP (FAR / 2)
_Static_assert(FAR_SCALE << 32 <= (uint64_t)TERM_DISP && (TERM_SCALE << 32) * TERMS <= (uint64_t)TERM_DISP,
               "terms and disp stay below FAR");
static inline bool is_far(int64_t x)
{
    return x >= FAR || x <= -FAR;
}
static inline uint64_t far_sum(uint64_t a, uint64_t b)
{
    return is_far((int64_t)a) || is_far((int64_t)b) || is_far((int64_t)(a + b)) ? (uint64_t)FAR : a + b;
}
static inline uint64_t far_product(uint64_t index, bool is_signed, uint64_t scale)
{
    int64_t product;
    if ((!is_signed && index > INT64_MAX) || scale > INT64_MAX ||
        __builtin_mul_overflow((int64_t)index, (int64_t)scale, &product) || is_far(product))
        return (uint64_t)FAR;
    return (uint64_t)product;
}

enum index_kind { INDEX_NONE, INDEX_U32, INDEX_I32, INDEX_U64, INDEX_I64 };
#define REGION_DYNAMIC UINT32_MAX
struct access {
    uint64_t scale[TERMS], disp;
    uint64_t extent;               /* bytes from the address to the end of the last leaf */
    uint32_t region;               /* REGION_DYNAMIC: in register c; then it has a base */
    uint32_t first_leaf, n_leaves; /* the value's leaves */
    uint32_t site;
    uint8_t index_kind[TERMS]; /* of registers a, b, c, up to the first INDEX_NONE; 64-bit ones stand alone */
    uint8_t op;                /* atomics: the operation that combines old value and operand, OP_NONE: exchange */
    bool has_base;             /* register b; then there is one term at most */
    bool thread;               /* a region in thread memory */
    bool tracked; /* a store in a loop that waits for memory: writing what is there already is no progress */
    bool write;
};

struct site { /* a place in the user's source */
    const char *file;
    uint32_t line, column;
};

enum region_kind { REGION_NULL, REGION_ARG, REGION_THREADGROUP, REGION_THREAD };
struct region_info {
    const char *name;
    uint64_t elem;   /* bytes of an element, in which faults count */
    uint64_t size;   /* THREADGROUP, THREAD */
    uint64_t stride; /* THREAD: from lane to lane */
    uint64_t offset; /* THREADGROUP: in the static part; THREAD: in the register file, lane after lane */
    uint32_t arg;    /* ARG: argument number */
    uint8_t kind;
    bool sized; /* ARG: threadgroup memory sized at launch */
};

struct constant {
    uint32_t reg, bytes;
    uint64_t bits;
};

struct value_leaf { /* a scalar of an argument given by value */
    uint32_t arg, reg;
    uint8_t kind;
    uint64_t offset;
};

struct attribute_leaf {
    uint32_t reg;
    uint8_t attribute, component, scalar;
};

struct interp_program {
    struct mem *mem;
    size_t bytes; /* of the allocation that holds it and its tables */
    const char *name;
    struct inst *code;
    struct access *access;
    struct leaf *leaf;
    uint32_t *list; /* registers of instructions with many operands */
    int64_t *cases; /* pairs: value, region of the switch */
    struct site *site;
    const char **text; /* messages of assert */
    struct region_info *region;
    struct constant *constant;
    struct value_leaf *value;
    struct attribute_leaf *attribute; /* sorted by how often they change: enum uniformity */
    uint32_t n_code, n_access, n_leaf, n_list, n_cases, n_site, n_text, n_region, n_constant, n_value, n_attribute;
    uint32_t class_end[4];  /* registers of 8, 4, 2, 1 bytes a lane lie in this order */
    uint32_t first_varying; /* attributes from here on change within a threadgroup */
    uint32_t first_grouped; /* from here on from threadgroup to threadgroup */
    uint32_t n_slots, n_counts;
    uint32_t threadgroup_bytes;
    uint64_t thread_bytes; /* a lane's thread memory times 32 */
    bool has_barrier;
};

/* ---- a launch --------------------------------------------------------------------------------------------------- */

struct wait_count { /* of a loop that waits for memory */
    uint64_t changes, iterations;
};

/* A simdgroup, or the lanes of one that wait at a barrier without the others: then it has a copy of everything. */
struct simd {
    char *regs;
    uint32_t mask, gone;
    struct run *run;
    uint32_t *slot;
    struct wait_count *count;
    uint64_t changes, thread_changes; /* writes to shared and to thread memory that changed it */
    const struct inst *pc;            /* where to go on */
    const struct inst *parked;        /* the barrier it waits at, or null */
    uint32_t index;                   /* of the simdgroup in its threadgroup */
    struct simd *next;                /* further fragments of the simdgroup */
};

struct region_memory { /* thread memory: base null */
    char *base;
    uint64_t size;
};

struct fault {
    enum fault_kind kind;
    uint64_t group;
    uint32_t thread; /* linear index in its threadgroup */
    uint32_t at[3], other_at[3];
    uint32_t site, other_site, region, text;
    uint64_t offset, size;
};

struct run {
    const struct interp_program *p;
    const struct interp_launch *l;
    const volatile int *stop;
    int never_stop;  /* 0: what `stop` points at if the launch gives none */
    struct mem *mem; /* working memory of the launch */
    struct region_memory *region;
    uint64_t loop_limit;
    char *threadgroup_memory;
    size_t threadgroup_bytes;
    size_t file_bytes;
    struct simd **simds; /* has_barrier: one for each simdgroup of a threadgroup; else one */
    uint32_t n_files;
    struct simd *spare; /* fragments not in use */
    uint32_t *local[3]; /* position in the threadgroup by linear index, for threadgroups of the size local_dims */
    uint32_t local_dims[3];
    uint32_t groups[3]; /* threadgroups in the grid */
    /* the threadgroup being run */
    uint64_t group;
    uint32_t group_at[3], dims[3], origin[3], n_threads, n_simds;
    bool stopped;
    struct fault fault;
};

#define REG(s, T, r) ((T *)(void *)((s)->regs + (r)))

/* Visits the set bits of a mask, lowest lane first. */
#define EACH_LANE(bits, l)                                                                                             \
    for (uint32_t l##_rest_ = (bits), l = l##_rest_ ? (uint32_t)__builtin_ctz(l##_rest_) : 0; l##_rest_;               \
         l##_rest_ &= l##_rest_ - 1, l = l##_rest_ ? (uint32_t)__builtin_ctz(l##_rest_) : 0)

/* The lanes of a bool register as bits: a multiplication gathers eight bytes. Inactive lanes may hold anything. */
static inline uint32_t lanes_bits(const struct simd *s, uint32_t reg)
{
#if defined(__SSE2__)
    const __m128i *const x = REG(s, const __m128i, reg); /* bit 7 of a byte is what movemask takes */
    return (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(x[0], 7)) | (uint32_t)_mm_movemask_epi8(_mm_slli_epi16(x[1], 7))
                                                                      << 16;
#else
    uint64_t w[4];
    uint32_t bits = 0;
    memcpy(w, s->regs + reg, sizeof w);
    for (unsigned k = 0; k < 4; k++)
        bits |= (uint32_t)((w[k] & 0x0101010101010101u) * 0x0102040810204080u >> 56) << 8 * k;
    return bits;
#endif
}

static inline void lanes_from_bits(struct simd *s, uint32_t reg, uint32_t bits)
{
    uint8_t *const d = REG(s, uint8_t, reg);
    for (unsigned l = 0; l < LANES; l++)
        d[l] = bits >> l & 1u;
}

/* Whether no lane but the active ones can ever look at this register file again. */
static inline bool nobody_waits(const struct simd *s)
{
    return (s->mask | s->gone) == ALL_LANES;
}

static inline uint64_t lane_get(const struct simd *s, uint32_t reg, unsigned bytes, unsigned lane)
{
    switch (bytes) {
    case 1: return REG(s, const uint8_t, reg)[lane];
    case 2: return REG(s, const uint16_t, reg)[lane];
    case 4: return REG(s, const uint32_t, reg)[lane];
    default: return REG(s, const uint64_t, reg)[lane];
    }
}

static inline void lane_set(struct simd *s, uint32_t reg, unsigned bytes, unsigned lane, uint64_t x)
{
    switch (bytes) {
    case 1: REG(s, uint8_t, reg)[lane] = (uint8_t)x; break;
    case 2: REG(s, uint16_t, reg)[lane] = (uint16_t)x; break;
    case 4: REG(s, uint32_t, reg)[lane] = (uint32_t)x; break;
    default: REG(s, uint64_t, reg)[lane] = x; break;
    }
}

/* Functions by size. */
#define EACH_SIZE(X) X(8) X(16) X(32) X(64)
#define BY_SIZE(name, bytes) ((bytes) == 1 ? name##_8 : (bytes) == 2 ? name##_16 : (bytes) == 4 ? name##_32 : name##_64)

/* Loops over all lanes: lanes.c, cells.c. They are compiled for the least machine and in wide.c for larger vectors; the
 * results have the same bits. */
struct lane_loops {
    inst_fn *(*op)(enum op op, enum scalar s, unsigned flags); /* null: none of its own, see lanes_eval */
    inst_fn *(*convert)(enum scalar from, enum scalar to);
    inst_fn *(*select)(unsigned bytes);
    inst_fn *(*move)(unsigned bytes); /* d = a where active */
    inst_fn *(*copy)(unsigned bytes); /* d = a in all lanes */
    inst_fn *(*load)(unsigned bytes); /* as memory_load, memory_store: one number in memory whose region is known */
    inst_fn *(*store)(unsigned bytes);
};
extern const struct lane_loops lanes_least;
const struct lane_loops *lanes_best(void); /* for the machine that this runs on */

/* compile.c: interp_compile with these loops, for tests */
sk_status interp_compile_for(struct mem *mem, const struct ir_module *m, uint32_t func, const struct lane_loops *loops,
                             struct interp_program **out, sk_error *err);

/* parts.c: lane by lane */
inst_fn lanes_eval; /* imm: LANES_EVAL; operands a, b, c; active lanes only */
#define LANES_EVAL(op, s, to, flags)                                                                                   \
    ((uint64_t)(op) | (uint64_t)(s) << 16 | (uint64_t)(to) << 24 | (uint64_t)(flags) << 32)
inst_fn lanes_bitcast, lanes_extract, lanes_insert; /* x: list; see compile.c */

/* memory.c: x an access; single leaves are in d (load) or d (the stored value), too. */
inst_fn memory_load, memory_store, memory_atomic, memory_address, memory_zero, memory_fence;
void memory_offsets(const struct simd *s, const struct inst *i, const struct access *q, uint64_t *restrict to);
inst_fn *cells_load(unsigned bytes);
inst_fn *cells_store(unsigned bytes);

/* simd.c: d, a (value), b (lane, delta, mask as u64), c (filling); x: enum scalar; y: width of the group, 32 or 4;
 * reductions and scans: imm from simd_combine. */
inst_fn *simd_op(enum op op);
bool simd_combines(enum op op, enum op *combine);

/* exec.c */
inst_fn exec_if, exec_else, exec_end, exec_block, exec_loop, exec_repeat, exec_br, exec_return, exec_switch, exec_case,
    exec_assert, exec_finish;

/* group.c */
inst_fn group_barrier;

/* fault.c: keeps the fault of the lowest thread, the first one of that thread. */
void fault_access(struct simd *s, unsigned lane, const struct access *q, uint32_t region, uint64_t offset,
                  uint64_t size);
void fault_lane(struct simd *s, unsigned lane, enum fault_kind kind, uint32_t site, uint32_t text);
void fault_barriers(struct simd *s, const struct simd *other);
sk_status fault_report(const struct run *r, sk_error *err);

#endif
