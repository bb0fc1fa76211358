/* emit.h - writes LLVM IR as text, in the syntax of LLVM 16.
 *
 * A `struct val` is one scalar of a value, as an operand: a constant, a uniform (an LLVM scalar), a linear (an integer that is
 * base + lane * stride, of which only the base exists as an LLVM scalar), or a varying (an LLVM vector of `width` lanes).
 * Operations take any mix: the result is varying if an operand is linear or varying, and others are broadcast (a linear
 * operand is written out). So one piece of code serves uniforms and varyings. f16 and bf16 values are held as i16 bits (see ops.h), bool as
 * i1, pointers as i64 offsets; E_F16 and E_F64 appear within sequences only.
 *
 * Mutable state (masks, results of constructs, loop parameters) lives in slots: allocas of the entry block, which LLVM turns
 * into values. A slot is zero until put.
 */
#ifndef SK_CPU_EMIT_H
#define SK_CPU_EMIT_H

#include "base/base.h"

enum elem { E_I1, E_I8, E_I16, E_I32, E_I64, E_F16, E_F32, E_F64, E_PTR, E_COUNT };
enum val_shape { V_NONE, V_CONST, V_UNIFORM, V_LINEAR, V_VARYING };

struct val {
    uint8_t shape, elem; /* enum val_shape, enum elem */
    uint32_t id;         /* UNIFORM, VARYING: %v<id>; LINEAR: the base, 0: it is the constant `bits` */
    uint64_t bits;       /* CONST, LINEAR with a constant base; masked to the element's width */
    int64_t stride;      /* LINEAR: from lane to lane; arithmetic wraps at the element's width */
};

struct slot {
    uint32_t id;
    uint8_t elem;
    bool varying;
};

struct splat {
    struct val from, to;
};

struct emit {
    struct mem *mem;
    unsigned width;
    struct buf head;  /* declarations and functions that are complete */
    struct buf entry; /* of the function being written: allocas and splats of constants */
    struct buf body;
    struct buf decl;          /* "declare" lines */
    VEC(struct splat) splats; /* constants broadcast in the entry block of this function */
    struct strtab declared;
    uint32_t next;            /* number of the next value, block or slot */
    bool open;                /* the block being written has no terminator yet */
    struct emit_outer *outer; /* functions begun and not ended, around this one */
};

void emit_init(struct emit *e, struct mem *mem, unsigned width);
void emit_free(struct emit *e);

/* A function: `head` is everything between "define" and "{"; it names attributes #0 (entry points) or #1 (inlined always). emit_end closes it; parameters are named by the caller. One may
 * be written while another is: it is complete before the outer one goes on. */
void emit_begin(struct emit *e, const char *head, ...) SK_PRINTF(2, 3);
void emit_end(struct emit *e);
/* The whole module's text: declarations, then functions. */
void emit_text(struct emit *e, struct buf *out);

/* ---- operands ---- */

unsigned elem_bits(enum elem t);
struct val e_const(enum elem t, uint64_t bits);
struct val e_f32(float x);
struct val e_f64(double x);
static inline struct val e_i32(uint32_t x)
{
    return (struct val){.shape = V_CONST, .elem = E_I32, .bits = x};
}
static inline struct val e_i64(uint64_t x)
{
    return (struct val){.shape = V_CONST, .elem = E_I64, .bits = x};
}
static inline struct val e_true(void)
{
    return (struct val){.shape = V_CONST, .elem = E_I1, .bits = 1};
}
static inline struct val e_false(void)
{
    return (struct val){.shape = V_CONST, .elem = E_I1};
}
static inline bool e_is_uniform(struct val a) /* the same in all lanes */
{
    return a.shape == V_CONST || a.shape == V_UNIFORM;
}
/* base + lane * stride; the base is uniform. stride 0 gives the base. And the base of a linear or uniform value. */
struct val e_linear(struct val base, int64_t stride);
struct val e_base(struct val a);
static inline bool e_is(struct val a, uint64_t bits)
{
    return a.shape == V_CONST && a.bits == bits;
}
/* A value that text outside of this interface defines, as %v<id>. */
uint32_t e_id(struct emit *e);
struct val e_named(enum elem t, bool varying, uint32_t id);
/* Address arithmetic: a uniform ptr, `offset` a uniform i64 of bytes. */
struct val e_gep(struct emit *e, struct val base, struct val offset);
/* As a vector, whatever it is. A broadcast is written where it is asked for; constants once in the entry block. */
struct val e_vary(struct emit *e, struct val a);
/* "<32 x float>" or "float"; "%v7", "5", "0x3FF0000000000000". */
const char *e_type_name(const struct emit *e, enum elem t, bool varying, char out[24]);
void e_operand(struct emit *e, struct buf *to, struct val a); /* not for varying constants: e_vary first */

/* ---- operations: each appends one line; constant operands that decide the result fold ---- */

struct val e_bin(struct emit *e, const char *op, struct val a, struct val b); /* "add", "fmul", "lshr"… same element */
struct val e_cmp(struct emit *e, const char *op, struct val a, struct val b); /* "icmp ult", "fcmp oeq": E_I1 */
struct val e_select(struct emit *e, struct val c, struct val a, struct val b);
struct val e_cast(struct emit *e, const char *op, struct val a, enum elem to); /* "zext", "bitcast", "fptrunc"… */
struct val e_neg(struct emit *e, struct val a);                                /* fneg */
/* An intrinsic overloaded on its result: name "llvm.fma" with E_F32 calls @llvm.fma.v32f32 or @llvm.fma.f32. */
struct val e_intrinsic(struct emit *e, const char *name, enum elem to, unsigned n, const struct val *in);
/* A call of a function of this module, which takes all operands in one shape: name.v (varying) or name.u is appended. */
struct val e_call(struct emit *e, const char *name, enum elem to, unsigned n, const struct val *in);
/* Lane l of a varying (l: uniform i32), and a varying with lane l replaced. */
struct val e_lane(struct emit *e, struct val a, struct val l);
struct val e_with_lane(struct emit *e, struct val a, struct val l, struct val x);
/* <0, 1, …, width - 1> * step + 0 as a varying. */
struct val e_ramp(struct emit *e, enum elem t, uint64_t step);
/* Lanes by constant numbers: -1 gives any value. `lane` has `width` entries. */
struct val e_permute(struct emit *e, struct val a, const int *lane);
/* A varying i1 as a uniform i32 of bits, lane 0 the lowest; and back. */
struct val e_bits(struct emit *e, struct val mask);
struct val e_from_bits(struct emit *e, struct val bits);
struct val e_any(struct emit *e, struct val mask); /* uniform i1 */
struct val e_all(struct emit *e, struct val mask);
struct val e_and(struct emit *e, struct val a, struct val b); /* of i1 and integers; folds true and false */
struct val e_or(struct emit *e, struct val a, struct val b);
struct val e_not(struct emit *e, struct val a);

/* ---- slots ---- */

struct slot e_slot(struct emit *e, enum elem t, bool varying);
struct val e_get(struct emit *e, struct slot s);
void e_put(struct emit *e, struct slot s, struct val a);
/* Room on the stack of the function, 64-byte aligned: the id of a ptr. */
uint32_t e_room(struct emit *e, uint64_t bytes);

/* ---- blocks ---- */

uint32_t e_block(struct emit *e);             /* a new label, not placed */
void e_place(struct emit *e, uint32_t block); /* falls into it if the current block is open */
void e_jump(struct emit *e, uint32_t block);
enum e_odds { ODDS_EVEN, ODDS_LIKELY, ODDS_UNLIKELY };                                            /* of the first way */
void e_branch(struct emit *e, struct val c, uint32_t then, uint32_t otherwise, enum e_odds odds); /* c: uniform i1 */
void e_return(struct emit *e, const char *text);                                                  /* "ret i32 0" */

/* A line of the body, indented, in printf's form. For what the above cannot say. */
void e_line(struct emit *e, const char *fmt, ...) SK_PRINTF(2, 3);
void e_declare(struct emit *e, const char *line); /* once a module */

#endif
