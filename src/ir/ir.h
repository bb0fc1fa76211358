/* ir.h - the intermediate representation: typed, structured SSA, the program of one thread.
 *
 * A module owns everything: nodes, operand lists, types, strings, places, functions. All are named by small integers;
 * 0 is "none" throughout. A node is an operation; if it has a type other than void it is a value.
 *
 * Regions hold nodes in program order (doubly linked through node ids). A construct (block, loop, if, switch) owns
 * consecutive regions; a function owns one. A value may be used after its definition in the same region or in regions
 * nested below. CONST, ZERO and PARAM belong to no region (`region == 0`) and may be used anywhere in the module
 * (PARAM: in its function).
 *
 * Labels: BR names its construct by node id in `imm`; the text form prints the number of constructs between.
 * A construct has no type itself. Its results are RESULT nodes placed right after it, in order; every YIELD of its
 * regions and every BR to it (a loop: only YIELD) carries that many values. A region may end without an exit if its
 * construct has no results: it falls out. LOOP: falling out of the region leaves the loop; BR to it repeats, with as
 * many values as the loop has parameters (ARG nodes at the head of its region; operands of LOOP are their first
 * values). IF has two regions, the second may be empty. SWITCH has one region for each case list and, if
 * `region.is_default`, a default. No fall through from one to the next.
 *
 * Rules for changing this file:
 *  1. nodes are written only through the functions below; `verify` is the executable spec of what may stand where;
 *  2. no pointer into `node`, `side` or `region` is kept over a call that may add to them;
 *  3. passes change a module in place and leave dead nodes behind; ids are never reused, printing numbers afresh.
 */
#ifndef SK_IR_H
#define SK_IR_H

#include "base/base.h"

/* ---- types ------------------------------------------------------------------------------------------------------ */

typedef uint16_t ir_type; /* index into module.types */

enum scalar {
    S_VOID,
#define SCALAR(ID, name, msl, bytes, class, bits, ctype) S_##ID,
#include "ir/types.def"
#undef SCALAR
    S_COUNT
};

enum space {
#define SPACE(ID, name, msl) SPACE_##ID,
#include "ir/types.def"
#undef SPACE
    SPACE_COUNT
};

/* Fixed ids: void 0, scalars by enum scalar, vectors, pointers; then interned structs and arrays. */
#define TYPE_VOID ((ir_type)0)
#define TYPE_BOOL ((ir_type)S_BOOL)
#define TYPE_I32 ((ir_type)S_I32)
#define TYPE_U32 ((ir_type)S_U32)
#define TYPE_I64 ((ir_type)S_I64)
#define TYPE_U64 ((ir_type)S_U64)
#define TYPE_F32 ((ir_type)S_F32)
#define TYPE_VECTOR(s, n) ((ir_type)(S_COUNT + ((s)-1) * 3 + (n)-2))
#define TYPE_POINTER(space) ((ir_type)(S_COUNT + (S_COUNT - 1) * 3 + (space)))
#define TYPE_FIXED_COUNT (S_COUNT + (S_COUNT - 1) * 3 + SPACE_COUNT)

enum type_kind {
    TYPE_KIND_VOID,
    TYPE_KIND_SCALAR,
    TYPE_KIND_VECTOR,
    TYPE_KIND_POINTER,
    TYPE_KIND_STRUCT,
    TYPE_KIND_ARRAY
};

struct type {
    uint8_t kind;                   /* enum type_kind */
    uint8_t scalar;                 /* SCALAR, VECTOR: the element */
    uint8_t n;                      /* VECTOR: 2, 3, 4; SCALAR: 1 */
    uint8_t space;                  /* POINTER */
    ir_type elem;                   /* VECTOR, ARRAY */
    uint16_t align;                 /* bytes */
    uint32_t name;                  /* STRUCT: string id */
    uint32_t first_field, n_fields; /* STRUCT: into module.fields */
    uint64_t size;  /* bytes, padding at the end included; a 3-vector has the size of a 4-vector, as in Metal */
    uint64_t count; /* ARRAY: elements, at least 1 */
};

struct field {
    uint32_t name;
    ir_type type;
    uint64_t offset;
};

/* Element classes, as in the tables. */
enum {
    CLASS_B = 1,
    CLASS_S = 2,
    CLASS_U = 4,
    CLASS_F = 8,
    CLASS_P = 16,
    CLASS_AGGREGATE = 32,
    CLASS_N = 0,
    CLASS_SU = 6,
    CLASS_BSU = 7,
    CLASS_SUF = 14,
    CLASS_FSU = 14,
    CLASS_BSUF = 15,
    CLASS_BSUFP = 31,
    CLASS_ANY = 63
};

/* ---- operations -------------------------------------------------------------------------------------------------- */

enum op {
    OP_NONE,
#define OP(ID, name, n, rule, classes, effects, msl, doc) OP_##ID,
#include "ir/ops.def"
    OP_COUNT
};

enum op_rule { RULE_NONE, RULE_SAME, RULE_COMPARE, RULE_SHIFT, RULE_SELECT, RULE_LANES, RULE_VOTE, RULE_GIVEN };
enum op_effect {
    EFFECT_PURE,
    EFFECT_READ,
    EFFECT_WRITE,
    EFFECT_ATOMIC,
    EFFECT_CONVERGENT,
    EFFECT_CONTROL,
    EFFECT_EXIT
};
#define OPERANDS_ANY (-1)

struct op_info {
    const char *name;
    int8_t n; /* OPERANDS_ANY: any number */
    uint8_t rule, classes, effect;
    bool math; /* a row of math.def */
    const char *msl, *doc;
};
extern const struct op_info op_info[OP_COUNT]; /* tables.c */

struct math_info { /* valid for rows of math.def; fast 0 and ulp 0 elsewhere */
    const char *python;
    uint8_t fast, ulp, fast_ulp;
};
extern const struct math_info math_info[OP_COUNT];

enum op op_by_name(const char *name, size_t n); /* OP_NONE if there is none */

struct scalar_info {
    const char *name, *msl;
    uint8_t bytes, class_, bits;
};
extern const struct scalar_info scalar_info[S_COUNT];
extern const char *const space_name[SPACE_COUNT];

enum attribute {
    ATTR_NONE,
#define ATTR(ID, metal, python, vec, family, uniform, doc) ATTR_##ID,
#include "ir/attributes.def"
#undef ATTR
    ATTR_COUNT
};
enum attr_family { FAMILY_NONE, FAMILY_GRID, FAMILY_GROUP };
enum uniformity { UNIFORM_G, UNIFORM_T, UNIFORM_S, UNIFORM_V }; /* grid, threadgroup, simdgroup, varying */
struct attr_info {
    const char *metal, *python, *doc;
    uint8_t vec, family, uniform;
};
extern const struct attr_info attr_info[ATTR_COUNT];

/* ---- node flags ---------------------------------------------------------------------------------------------------- */

enum {
    NODE_FAST = 1,         /* maths: the fast form */
    NODE_NO_CONTRACT = 2,  /* mul, add, sub: keep it out of contraction */
    NODE_ORDER_SHIFT = 2,  /* atomics, fence: enum memory_order, 3 bits */
    NODE_SCOPE_SHIFT = 5,  /* atomics, fence: enum memory_scope, 2 bits */
    NODE_MEMORY_SHIFT = 7, /* barriers, fence: MEMORY_* bits, 4 bits */
    NODE_WEAK = 1 << 11    /* atomic_cas: may fail spuriously on devices where it can */
};
enum memory_order { ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL, ORDER_SEQ_CST, ORDER_COUNT };
enum memory_scope { SCOPE_THREAD, SCOPE_SIMDGROUP, SCOPE_THREADGROUP, SCOPE_DEVICE, SCOPE_COUNT };
enum { MEMORY_NONE = 0, MEMORY_DEVICE = 1, MEMORY_THREADGROUP = 2, MEMORY_TEXTURE = 4, MEMORY_IMAGEBLOCK = 8 };
extern const char *const order_name[ORDER_COUNT]; /* "relaxed" ... */
extern const char *const scope_name[SCOPE_COUNT]; /* "thread" ... */
extern const char *const memory_name[4];          /* bit i: "device" "threadgroup" "texture" "threadgroup_imageblock" */
static inline enum memory_order node_order(uint16_t flags)
{
    return (enum memory_order)((flags >> NODE_ORDER_SHIFT) & 7);
}
static inline enum memory_scope node_scope(uint16_t flags)
{
    return (enum memory_scope)((flags >> NODE_SCOPE_SHIFT) & 3);
}
static inline unsigned node_memory(uint16_t flags)
{
    return (flags >> NODE_MEMORY_SHIFT) & 15u;
}

/* ---- the module ------------------------------------------------------------------------------------------------------ */

#define NODE_INLINE 3u /* operands held in the node itself */

struct node {                 /* 48 bytes */
    uint16_t op, type;        /* enum op; ir_type of the value, 0 if none */
    uint16_t n, flags;        /* operands; NODE_* */
    uint32_t place, name;     /* place id; string id of a name to keep, or 0 */
    uint32_t prev, next;      /* neighbours in the region */
    uint32_t region;          /* the region it stands in; 0: none */
    uint32_t in[NODE_INLINE]; /* operands; if n > NODE_INLINE, in[0] is an offset into side */
    uint64_t imm;             /* see below */
};
_Static_assert(sizeof(struct node) == 48, "a node is 48 bytes");
/* imm: CONST the bits, zero-extended; PARAM, ARG, RESULT, EXTRACT, INSERT an index; SHUFFLE nibbles, component i in bits
 * 4i to 4i+3; ALLOC, INDEX an ir_type; FIELD ir_type | field number << 32; BR the construct's node; constructs the first
 * region | number of regions << 32; CALL the function; PRINT, ASSERT a string id. */

struct region {
    uint32_t first, last;         /* nodes */
    uint32_t owner;               /* construct node; 0: a function's body */
    uint32_t first_case, n_cases; /* of a switch: into module.cases */
    bool is_default;
};

struct place {     /* id 0: unknown */
    uint32_t file; /* string id */
    uint32_t line, column;
    uint32_t at; /* place of the call it was inlined at, or 0 */
};

enum param_kind {
    PARAM_VALUE,       /* functions: any argument; kernels: a constant scalar, vector or struct given at launch */
    PARAM_BUFFER,      /* kernels: a device or constant pointer bound to a buffer of `elem` */
    PARAM_THREADGROUP, /* kernels: threadgroup memory sized at launch, of `elem` */
    PARAM_ATTRIBUTE    /* kernels: filled by the launch */
};

struct param {
    uint32_t name, node, place;
    ir_type type, elem; /* elem: pointee of a pointer (functions too: TYPE_VOID if unknown) */
    uint8_t kind, attribute;
    bool atomic; /* declared with an atomic dtype: Metal prints atomic_uint and so on */
};

struct func {
    uint32_t name, place;
    uint32_t first_param, n_params; /* into module.params */
    uint32_t region;                /* body; 0: declared only while parsing */
    ir_type result;                 /* functions */
    bool kernel, fast, no_contract; /* fast: fast maths throughout; no_contract: pass C leaves it alone */
    uint32_t max_threads;           /* max_total_threads_per_threadgroup, 0: not stated */
};

struct ir_module {
    struct mem *mem;
    struct strtab strings;
    VEC(struct node) nodes; /* [0] unused; likewise below */
    VEC(uint32_t) side;
    VEC(struct region) regions;
    VEC(int64_t) cases;
    VEC(struct place) places;
    VEC(struct type) types;
    VEC(struct field) fields;
    VEC(struct param) params;
    VEC(struct func) funcs;
    uint32_t *const_slots; /* hash of CONST and ZERO nodes */
    uint32_t n_const_slots, n_consts;
    uint32_t *place_slots;
    uint32_t n_place_slots;
    uint32_t *type_slots; /* structs and arrays */
    uint32_t n_type_slots;
};

/* module.c */
struct ir_module *ir_module_new(struct mem *m);
void ir_module_free(struct ir_module *m);                                      /* null allowed */
struct ir_module *ir_module_clone(struct mem *mem, const struct ir_module *m); /* same ids throughout */
size_t ir_module_bytes(const struct ir_module *m); /* nodes, operands, regions and places in use */

/* types.c */
void ir_types_init(struct ir_module *m);           /* the fixed ones, for ir_module_new */
ir_type ir_type_vector(enum scalar s, unsigned n); /* n 1: the scalar */
ir_type ir_type_array(struct ir_module *m, ir_type elem, uint64_t count);
/* Metal's layout rules: each field at the next multiple of its alignment. Equal names and fields give one type. */
ir_type ir_type_struct(struct ir_module *m, uint32_t name, uint32_t n, const struct field *f);
/* Room is limited to 65,535 types: TYPE_VOID is returned past it, or for a size past 2^40. */
const struct type *ir_type_at(const struct ir_module *m, ir_type t);
void ir_type_print(const struct ir_module *m, struct buf *b, ir_type t);
unsigned ir_type_class(const struct ir_module *m, ir_type t); /* one CLASS_* bit */
enum scalar ir_type_scalar(ir_type t);                        /* element of a scalar or vector; S_VOID for others */
unsigned ir_type_width(ir_type t);                            /* 1 for scalars, 2 to 4 for vectors, 0 for others */
ir_type ir_type_with(ir_type shape, enum scalar s);           /* as wide as `shape`, of element s */
bool ir_type_is_pointer(ir_type t);
enum space ir_type_space(ir_type t);
/* The type of part k of a vector, struct or array; TYPE_VOID if there is none. Number of parts: ir_type_parts. */
ir_type ir_type_part(const struct ir_module *m, ir_type t, uint64_t k);
uint64_t ir_type_parts(const struct ir_module *m, ir_type t);

/* build.c: the only writer of nodes */
struct ir_builder {
    struct ir_module *m;
    uint32_t func, region;
    uint32_t before; /* insert before this node of the region; 0: at its end */
    uint32_t place;
};
uint32_t ir_string(struct ir_module *m, const char *s);
uint32_t ir_place(struct ir_module *m, uint32_t file, uint32_t line, uint32_t column, uint32_t at);
struct err_place ir_err_place(const struct ir_module *m, uint32_t place); /* the innermost; file null if unknown */
uint32_t ir_func(struct ir_module *m, uint32_t name, bool kernel, ir_type result,
                 uint32_t place); /* with an empty body */
/* Parameters are added before any node of the function; returns the PARAM node. */
uint32_t ir_param(struct ir_module *m, uint32_t func, const struct param *p);
uint32_t ir_const(struct ir_module *m, ir_type scalar, uint64_t bits); /* interned; bits are masked to the width */
uint32_t ir_zero(struct ir_module *m, ir_type t);                      /* CONST for scalars, ZERO else; interned */
uint32_t ir_const_f(struct ir_module *m, ir_type scalar, double x);    /* rounded once to the float type */
/* Appends at the insertion point; no checks, no folding. `type` TYPE_VOID: no value. */
uint32_t ir_node(struct ir_builder *b, enum op op, ir_type type, unsigned n, const uint32_t *in, unsigned flags,
                 uint64_t imm);
/* As ir_node with the type from the op's rule (any but GIVEN), folded if all operands are constant. */
uint32_t ir_op(struct ir_builder *b, enum op op, unsigned n, const uint32_t *in, unsigned flags);
#define ir_op1(b, op, x) ir_op((b), (op), 1, (const uint32_t[]){(x)}, 0)
#define ir_op2(b, op, x, y) ir_op((b), (op), 2, (const uint32_t[]){(x), (y)}, 0)
#define ir_op3(b, op, x, y, z) ir_op((b), (op), 3, (const uint32_t[]){(x), (y), (z)}, 0)
uint32_t ir_convert(struct ir_builder *b, ir_type to, uint32_t x); /* nothing if it has that type; folds */
uint32_t ir_load(struct ir_builder *b, ir_type t, uint32_t pointer);
void ir_store(struct ir_builder *b, uint32_t pointer, uint32_t x);
uint32_t ir_index(struct ir_builder *b, ir_type elem, uint32_t pointer, uint32_t i);
/* A construct with `n_regions` empty regions; region k is ir_region(m, node, k). LOOP: `in` are first values; its ARG
 * nodes are made too, argument k is ir_arg(m, loop, k). Results are added afterwards with ir_result, in order. */
uint32_t ir_construct(struct ir_builder *b, enum op op, unsigned n, const uint32_t *in, unsigned n_regions);
uint32_t ir_region(const struct ir_module *m, uint32_t construct, unsigned k);
unsigned ir_n_regions(const struct ir_module *m, uint32_t construct);
uint32_t ir_arg(const struct ir_module *m, uint32_t loop, unsigned k);
uint32_t ir_add_arg(struct ir_module *m, uint32_t loop, ir_type t,
                    uint32_t first); /* appends a parameter; the caller extends each br */
uint32_t ir_result(struct ir_module *m, uint32_t construct,
                   ir_type t); /* appends the next RESULT after the construct */
unsigned ir_n_results(const struct ir_module *m, uint32_t construct);
uint32_t ir_br(struct ir_builder *b, uint32_t construct, unsigned n, const uint32_t *in);
void ir_case(struct ir_module *m, uint32_t region, int64_t value); /* appends; regions of one switch in order */
uint32_t ir_add_region(struct ir_module *m, uint32_t sw); /* appends a region; the construct's other regions may move */
/* Changing: */
void ir_set_inputs(struct ir_module *m, uint32_t node, unsigned n, const uint32_t *in);
void ir_unlink(struct ir_module *m, uint32_t node); /* takes it, with what it holds, out of its region */
void ir_insert_before(struct ir_module *m, uint32_t node, uint32_t region, uint32_t before); /* before 0: at the end */
void ir_splice(struct ir_module *m, uint32_t region,
               uint32_t where); /* moves all nodes of region before node `where` */

/* reading */
static inline struct node *ir_at(const struct ir_module *m, uint32_t id)
{
    return &m->nodes.at[id];
}
static inline const uint32_t *ir_in(const struct ir_module *m, uint32_t id)
{
    const struct node *x = ir_at(m, id);
    return x->n <= NODE_INLINE ? x->in : m->side.at + x->in[0];
}
static inline uint32_t *ir_in_mut(struct ir_module *m, uint32_t id)
{
    struct node *x = ir_at(m, id);
    return x->n <= NODE_INLINE ? x->in : m->side.at + x->in[0];
}
static inline struct region *ir_region_at(const struct ir_module *m, uint32_t id)
{
    return &m->regions.at[id];
}
static inline bool ir_is_construct(uint16_t op)
{
    return op == OP_BLOCK || op == OP_LOOP || op == OP_IF || op == OP_SWITCH;
}
static inline bool ir_is_const(const struct ir_module *m, uint32_t id)
{
    return ir_at(m, id)->op == OP_CONST;
}
/* Visits each node of a region; `id` may be unlinked in the body. */
#define IR_EACH(m, reg, id)                                                                                            \
    for (uint32_t id = ir_region_at((m), (reg))->first, id##_next_ = id ? ir_at((m), id)->next : 0; id;                \
         id = id##_next_, id##_next_ = id ? ir_at((m), id)->next : 0)
/* The parent region of a region (0: it is a function's body). */
static inline uint32_t ir_parent_region(const struct ir_module *m, uint32_t region)
{
    const uint32_t owner = ir_region_at(m, region)->owner;
    return owner ? ir_at(m, owner)->region : 0;
}
uint32_t ir_func_by_name(const struct ir_module *m, const char *name); /* 0: none */

/* fold.c: constant folding by the interpreter's own scalar functions. Returns a CONST or ZERO id, or 0: not constant. */
uint32_t ir_fold(struct ir_module *m, enum op op, ir_type type, unsigned n, const uint32_t *in, unsigned flags,
                 uint64_t imm);

/* scalar.c: the meaning of every elementwise operation on one scalar, given and returned as bits (zero-extended).
 * a, b, c: operands; `s` the operand's element; `to` the result's element (CONVERT, BITCAST), else ignored. */
uint64_t ir_scalar_eval(enum op op, enum scalar s, enum scalar to, unsigned flags, uint64_t a, uint64_t b, uint64_t c);

/* access.c: what a function may do through its pointer parameters, calls included: ACCESS_* bits by parameter number.
 * `access` has room for n_params bytes; `mem` is for working storage (m's own may be another thread's). */
enum { ACCESS_READ = 1, ACCESS_WRITE = 2 };
void ir_param_access(const struct ir_module *m, uint32_t func, uint8_t *access, struct mem *mem);

/* verify.c: SK_ERR_INVALID with the place of the offending node. */
sk_status ir_verify(const struct ir_module *m, sk_error *err);

/* print.c: the text form; deterministic. */
enum { IR_PRINT_PLACES = 1 };
void ir_print(const struct ir_module *m, struct buf *out, unsigned flags);
void ir_print_func(const struct ir_module *m, uint32_t func, struct buf *out, unsigned flags);

/* parse.c: `name` is the file in errors and places. On failure *out is untouched. Verifies. Untrusted input is safe:
 * nesting is limited to IR_MAX_DEPTH. */
#define IR_MAX_DEPTH 200
sk_status ir_parse(struct mem *m, const char *text, size_t n, const char *name, struct ir_module **out, sk_error *err);

#endif
