/* lower.h - a kernel's IR as SPMD LLVM text: one bundle of `width` lanes is one run of a function over vectors.
 *
 * A value is a list of leaves, one for each scalar in it, in order (vectors, structs and arrays are taken apart; a pointer has
 * two: offset i64, region i32). f16 and bf16 leaves are i16 bits, bool is i1. What inactive lanes hold is any value, never
 * poison: pure operations compute all lanes, so none of them may be undefined for any operand (a division guards its
 * divisor). Memory and collectives look at `mask`.
 *
 * Addresses are no values: INDEX and FIELD write nothing; an access walks from its pointer to the root (a parameter, an
 * alloc, a pointer held as a value) and takes the indices on the way with lower_in. Uniform and linear indices stay scalar.
 */
#ifndef SK_CPU_LOWER_H
#define SK_CPU_LOWER_H

#include "cpu/emit.h"
#include "cpu/run.h"
#include "pass/analysis.h"

enum { CPU_AVX512 = 1 }; /* F and VL */

struct cpu_options {
    uint32_t dims[3];  /* threadgroup; 0: taken from the worker at run time. {0, 1, 1} is a line */
    bool edge;         /* dims are those asked for, the group is cut to worker.dims: threads past them are inactive */
    bool unchecked;    /* bounds="off" */
    uint32_t width;    /* 0: chosen */
    unsigned features; /* CPU_* of the machine that the text may rely on */
    uint32_t most;     /* widest that pays on this machine, 0: 32 */
};

struct cpu_site { /* a place in the user's source; generated code holds its number */
    const char *file;
    uint32_t line, column;
};

enum cpu_region_kind { CPU_REGION_NULL, CPU_REGION_ARG, CPU_REGION_SIZED, CPU_REGION_THREADGROUP, CPU_REGION_THREAD };
struct cpu_region_info {
    const char *name; /* in faults */
    uint64_t elem;    /* bytes of an element, in which faults count */
    uint64_t size;    /* THREADGROUP, THREAD: bytes */
    uint64_t offset;  /* THREADGROUP: in threadgroup memory; THREAD: in the bundle's part of private memory */
    uint64_t stride;  /* THREAD: bytes from lane to lane */
    uint32_t arg;     /* ARG, SIZED (threadgroup memory sized at launch): argument number */
    uint32_t node;    /* THREADGROUP, THREAD: the alloc */
    uint8_t kind;
};

/* What the runtime must know of lowered code. Texts belong to the module. */
struct cpu_lowered {
    VEC(struct cpu_site) site;
    VEC(struct cpu_region_info) region;
    VEC(const char *) message; /* of asserts */
    uint32_t width;
    uint32_t threadgroup_bytes; /* static */
    uint64_t private_bytes;     /* a bundle */
    bool fibers;                /* spork_bundle instead of spork_kernel */
    const char *interpret;      /* null, or why the interpreter runs it */
    uint32_t weight;            /* estimate: nodes run by a bundle, loops of unknown length taken as 16 */
    bool bounded;               /* every loop is proven short */
};

struct lower {
    struct emit e;
    struct mem *mem; /* working memory: everything here goes with it */
    const struct ir_module *m;
    uint32_t func;
    const struct func *kernel;
    struct cpu_options opt;
    struct analysis a;
    struct cpu_lowered *out;
    VEC(struct val) leaves; /* [0] unused */
    uint32_t *first;        /* by node: its first leaf where it is being written, 0: none */
    struct val mask;        /* i1: active lanes; e_true(): all. Where memory is touched it is never empty at run time */
    struct val worker;      /* ptr */
    struct val first_thread;          /* uniform i32: linear index in the threadgroup of lane 0 */
    struct val threadgroup, private_; /* ptr: threadgroup memory; this bundle's private memory */
    struct val dims[3], asked[3], group[3], grid[3], groups[3]; /* uniform i32; dims: of this threadgroup */
    uint32_t *region_of;     /* by node: region number of a pointer parameter or alloc */
    uint32_t *site_of;       /* by place: its site + 1 */
    bool canonical_nans;     /* the kernel looks at bits of floats: NaNs that arithmetic makes are the quiet one */
    uint32_t waiting;        /* depth of loops that wait for memory: stores in them count changes */
    struct control *control; /* control.c */
    struct phases *phases;   /* phase.c; null: one phase */
    struct memory *memory;   /* memory.c */
    struct value_param *value_param; /* by parameter: leaves loaded at the function's start */
};

/* lower.c */
sk_status cpu_lower(struct mem *mem, const struct ir_module *m, uint32_t func, const struct cpu_options *opt,
                    struct buf *text, struct cpu_lowered *out, sk_error *err);
void cpu_lowered_free(struct mem *mem, struct cpu_lowered *x);
/* Leaves of an operand, valid until the next call that adds leaves: copy what you keep. */
struct val lower_in(struct lower *l, uint32_t node, uint32_t k);
/* Room for the leaves of the node's value; fill all of it through lower_set. */
void lower_out(struct lower *l, uint32_t node);
void lower_set(struct lower *l, uint32_t node, uint32_t k, struct val x);
uint32_t lower_leaves(const struct ir_module *m, ir_type t); /* number of leaves; UINT32_MAX past 2^16 */
enum elem lower_elem(enum scalar s);                         /* of a leaf of that scalar */
/* The element of leaf k of a type; adds to *offset where it lies in memory, and says what it is (pointers: S_VOID). */
enum elem lower_leaf_elem(const struct ir_module *m, ir_type t, uint32_t k, uint64_t *offset, enum scalar *scalar);
void lower_start(struct lower *l); /* at the start of an entry point: what the launch gives */
uint32_t lower_site(struct lower *l, uint32_t place);
/* Calls a helper: the worker comes first; operands are uniform, `args` n of them. Result: element `to`, E_COUNT: none. */
struct val lower_help(struct lower *l, enum helper h, enum elem to, unsigned n, const struct val *args);
/* A field of the worker, read where it is asked for. */
struct val lower_field(struct lower *l, unsigned offset, enum elem t);

/* attribute.c: component k of an attribute for the bundle being written; a mask of the threads that exist. */
struct val attribute_lower(struct lower *l, enum attribute a, unsigned k);
struct val attribute_mask(struct lower *l);
uint32_t attribute_width(const struct ir_module *m, uint32_t func, const struct cpu_options *o);
struct val attribute_threads(struct lower *l); /* uniform i32: threads of this threadgroup */

/* phase.c: the function around the bundles: threadgroups, phases between barriers. phase_plan: splits the kernel at its
 * barriers, false if that cannot be (l->phases is null where it is not asked to). `loads`: with the analysis of that name. */
bool phase_plan(struct lower *l, bool loads);
void phase_kernel(struct lower *l);
/* control.c: one bundle: regions, constructs, exits, asserts. Writes the nodes from `first` on to before `end` (0: to the
 * region's end) for the lanes of l->mask, then jumps to `after`; control_mask_after gives the mask there. */
void control_run(struct lower *l, uint32_t first, uint32_t end, uint32_t after);
struct val control_mask_after(struct lower *l);  /* at `after`, which the caller has placed */
void lower_node(struct lower *l, uint32_t node); /* lower.c: any operation but constructs and exits */
/* For each file: writes the node, or gives false if it is not one of its operations. */
bool lower_pure(struct lower *l, uint32_t node);   /* ops.c: what op_info calls PURE, but for INDEX and FIELD */
bool lower_simd(struct lower *l, uint32_t node);   /* simd.c: collectives */
bool lower_memory(struct lower *l, uint32_t node); /* memory.c: ALLOC, INDEX, FIELD, LOAD, STORE, atomics, fences */
void memory_params(struct lower *l);               /* memory.c: regions of the parameters, then of all allocs */
/* Offset and region of a pointer as a value: leaf k of an address that is not held as one. */
struct val memory_pointer(struct lower *l, uint32_t node, uint32_t k);
/* math.c: a row of math.def, or `//` and `%` of floats, on f32. */
struct val math_lower(struct lower *l, enum op op, bool fast, struct val a, struct val b, struct val c);
/* math_fma_odd of ir/math.h: what fma of f16 and bf16 rounds to its format. f32 in and out. */
struct val math_fma_odd_lower(struct lower *l, struct val a, struct val b, struct val c);
struct val math_fma_odd_f16_lower(struct lower *l, struct val a, struct val b,
                                  struct val c); /* operands that f16 can hold */
/* ops.c: from one scalar type to another; leaves in and out. f16 and bf16 as bits. */
struct val lower_convert(struct lower *l, struct val x, enum scalar from, enum scalar to);
/* ops.c: a binary operation of the tables (ADD, MUL, MIN…) on leaves of scalar type s; for atomics and collectives. */
struct val lower_scalar(struct lower *l, enum op op, enum scalar s, unsigned flags, struct val a, struct val b,
                        struct val c);

#endif
