/* internal.h - what the files of the tracer share.
 *
 *   trace.c     life, places, names, functions, parameters, calls
 *   use.c       whether a value may be used here, weak numbers, conversions
 *   ops.c       arithmetic, maths, choice, vectors, collectives
 *   memory.c    locals, arrays, loads, stores, atomics
 *   scope.c     if, elif, else, where, ends of blocks, break, continue, return
 *   loop.c      range and while
 *   diverge.c   barriers, and what is known about the first two threads
 *
 * Rules. Operands pass `trace_use` once, in source order: it checks them and reads locals. Nothing is emitted with side
 * effects before the last check of a statement. The builder's region is always where the next node belongs; after an
 * exit that is a region outside the program (see trace_dead), so that what follows is checked and dropped.
 */
#ifndef SK_TRACE_INTERNAL_H
#define SK_TRACE_INTERNAL_H

#include "trace/trace.h"

struct pointer_info {
    uint32_t name; /* string of the module */
    ir_type elem;
    uint8_t space;
    bool atomic;
    uint32_t first_dim, n_dims; /* into trace.dims; none: a flat pointer of unknown length */
};

/* What calling a function does, besides computing. */
enum { FX_BARRIER = 1, FX_COLLECTIVE = 2, FX_ATOMIC = 4, FX_WRITE = 8 };

struct func_info {
    bool ended;
    uint8_t effects; /* FX_*, of what it calls too */
};

struct ended_if {         /* the if statement that ended last in a function; all 0: none */
    uint32_t first, last; /* ids of its first and last scopes */
    uint32_t head, tail;  /* its first and last IF nodes */
};

struct frame { /* a function being traced */
    uint32_t func, first_scope;
    uint32_t outer_region; /* of the builder, to return to */
    bool returns;          /* a return stands in it */
    uint32_t prologue;     /* the last of the nodes that parameters need, or 0 */
    uint32_t outer_dead, outer_dead_at;
    struct ended_if outer_ended;
};

enum scope_kind {
    SCOPE_KIND_IF,
    SCOPE_KIND_ELSE,
    SCOPE_KIND_RANGE,
    SCOPE_KIND_WHILE_HEAD,
    SCOPE_KIND_WHILE,
    SCOPE_KIND_WHERE_FIRST,
    SCOPE_KIND_WHERE_SECOND
};

enum range_form {
    RANGE_PLAIN,   /* the variable plus the step cannot pass the type's ends */
    RANGE_CLIPPED, /* the last step is cut to end at stop */
    RANGE_COUNTED  /* the first ARG counts down, the second is the variable */
};

struct scope {
    uint32_t id;
    uint8_t kind;       /* enum scope_kind */
    uint32_t levels;    /* regions the program may be nested in here */
    uint32_t construct; /* IF; loops: LOOP */
    uint32_t outer;     /* region that holds the statement */
    uint32_t head;      /* the statement's construct in it: of an elif chain the first IF */
    uint32_t first_if;  /* IF: the scope of the chain's first if */
    uint32_t place;
    /* loops */
    uint32_t test;                        /* the IF that holds the body; WHILE_HEAD: none yet */
    uint32_t break_block, continue_block; /* made when first needed: around the LOOP, around the body */
    uint32_t bounds[3];                   /* RANGE: start, stop, step */
    uint8_t form;                         /* RANGE: enum range_form */
    uint32_t first_frozen;                /* WHILE: into trace.frozen */
    struct tv first;                      /* WHERE_SECOND: the first value, used */
};

struct frozen {      /* a while condition uses a value computed earlier, which read this */
    uint32_t source; /* VAR, or the root of memory */
    uint32_t node;   /* the value */
};

struct trace {
    struct mem *mem;
    struct ir_module *m; /* null once finished */
    struct ir_builder b;
    uint32_t serial, scope_count;
    struct strtab files;        /* outlives the module, so that misuse after the end has a place too */
    VEC(uint32_t) file_strings; /* file id to string of the module */
    uint32_t file, line, column, last_line;
    uint32_t dead, dead_at; /* region that collects dead code, or 0; number of scopes open when it began */
    struct ended_if ended;
    uint64_t threadgroup_bytes; /* of the arrays of the kernel */
    VEC(struct frame) frames;
    VEC(struct scope) scopes;
    VEC(struct func_info) funcs; /* by function number */
    VEC(struct pointer_info) pointers;
    VEC(uint64_t) dims;
    VEC(struct frozen) frozen;
    VEC(uint32_t) mark, work; /* for walks; mark.at[node] == mark_now: seen */
    uint32_t mark_now;
};

#define FAIL(t, err, id, ...) ERR_AT((err), trace_at(t), id __VA_OPT__(, ) __VA_ARGS__)

static inline struct frame *trace_frame(struct trace *t)
{
    return &t->frames.at[t->frames.n - 1];
}
static inline struct scope *trace_scope_at(struct trace *t, uint32_t index)
{
    return &t->scopes.at[index];
}
static inline void trace_effect(struct trace *t, unsigned fx)
{
    t->funcs.at[t->b.func].effects = (uint8_t)(t->funcs.at[t->b.func].effects | fx);
}
static inline struct tv trace_value(const struct trace *t, uint32_t id)
{
    return (struct tv){.kind = TV_VALUE, .id = id, .func = t->b.func, .serial = t->serial};
}
static inline bool tv_is_weak(struct tv v)
{
    return v.kind == TV_INT || v.kind == TV_FLOAT || v.kind == TV_BOOL;
}
static inline ir_type trace_node_type(const struct trace *t, uint32_t id)
{
    return ir_at(t->m, id)->type;
}

/* ---- use.c ---- */
/* The tracer takes operations now: it has not finished, and a kernel or function is open. */
sk_status trace_open(struct trace *t, sk_error *err);
/* The operand as a value: a checked VALUE, a weak number, or, of a local, what it holds now. */
sk_status trace_use(struct trace *t, struct tv v, struct tv *out, sk_error *err);
/* A local or pointer that may be used here. */
sk_status trace_use_local(struct trace *t, struct tv v, sk_error *err);
sk_status trace_use_pointer(struct trace *t, struct tv v, sk_error *err);
enum {
    MIX_NUMBER = 1,  /* arithmetic: what is only bool becomes i32 */
    MIX_PROMOTE = 2, /* a bool beside an integer counts as i32 */
    MIX_COMPARE = 4, /* a bool beside a weak integer counts as i32 */
    MIX_SIGN = 8,    /* the result depends on the sign */
    MIX_FLOAT = 16   /* integers become f32 */
};
/* Used operands, at most 4, to nodes of one type by the rules of mixed operands. `what` names the operation. */
sk_status trace_mix(struct trace *t, unsigned mix, const char *what, unsigned n, const struct tv *v, uint32_t *out,
                    ir_type *type, sk_error *err);
/* The same in two steps: the type, with all checks; one operand as a node of it, where the builder stands. */
sk_status trace_common(struct trace *t, unsigned mix, const char *what, unsigned n, const struct tv *v, ir_type *type,
                       sk_error *err);
uint32_t trace_coerce(struct trace *t, struct tv v, ir_type type);
/* The scalar type of weak numbers among themselves. */
sk_status trace_weak_type(struct trace *t, unsigned n, const struct tv *v, enum scalar *out, sk_error *err);
/* A constant of a scalar type; an error if the number does not fit. */
sk_status trace_weak(struct trace *t, struct tv v, enum scalar s, uint32_t *out, sk_error *err);
bool trace_weak_fits(struct tv v, enum scalar s);
/* A used operand as a node: weak numbers get their default type. */
sk_status trace_node(struct trace *t, struct tv v, uint32_t *out, sk_error *err);
/* A used operand as a node of exactly this type, by the implicit conversions. */
sk_status trace_implicit_node(struct trace *t, struct tv v, ir_type to, const char *what, uint32_t *out, sk_error *err);
/* A used operand as a condition: a bool node; a bool vector if `vector`. */
sk_status trace_condition(struct trace *t, struct tv v, bool vector, uint32_t *out, sk_error *err);
/* A used operand as an integer node of any type, for indices and counts; weak ones are i32, or u32 if larger. */
sk_status trace_integer(struct trace *t, struct tv v, const char *what, uint32_t *out, sk_error *err);
/* An operation with a given type, folded if it can be. */
uint32_t trace_given(struct trace *t, enum op op, ir_type type, unsigned n, const uint32_t *in, uint64_t imm);
uint32_t trace_splat(struct trace *t, uint32_t id, unsigned width);
struct type_text {
    char at[64];
};
struct type_text trace_type_text(const struct trace *t, ir_type type);
struct type_text trace_weak_text(struct tv v);

/* ---- trace.c ---- */
const char *trace_pointer_name(const struct trace *t, uint64_t pointer); /* record of a TV_POINTER */
uint32_t trace_symbol(struct trace *t, const char *name); /* a string fit for a name; 0 if nothing is left of it */
/* Starts a walk over the graph: forgets all marks. */
void trace_walk(struct trace *t);
bool trace_seen(struct trace *t, uint32_t id); /* marks it; true if it was marked */

/* ---- scope.c ---- */
/* Opens a scope of the builder's region: kind, levels, outer and place are filled in. */
sk_status trace_push(struct trace *t, enum scope_kind kind, unsigned levels, struct scope **out, sk_error *err);
/* The innermost scope, if it is the one with this number. */
sk_status trace_innermost(struct trace *t, uint32_t id, struct scope **out, sk_error *err);
sk_status trace_left_open(struct trace *t, sk_error *err); /* the error: the innermost scope should have ended */
void trace_dead(struct trace *t);              /* an exit has just been emitted: what follows here is dropped */
bool trace_is_dead_end(const struct trace *t); /* the innermost scope has come to its end after an exit */
/* Takes the nodes from `first` up to, not including, `end` (0: all the rest) to the end of another region. */
void trace_move(struct trace *t, uint32_t first, uint32_t end, uint32_t to);

/* ---- loop.c ---- */
void trace_end_range(struct trace *t, const struct scope *s);
sk_status trace_end_while(struct trace *t, const struct scope *s, sk_error *err);

/* ---- diverge.c ---- */
/* A barrier, or a call of something with one, stands here. `what` names it. */
sk_status trace_converged(struct trace *t, const char *what, sk_error *err);

#endif
