/* gen_internal.h - between gen.c (kernels, functions, launches), gen_flow.c (constructs), gen_memory.c and
 * gen_value.c (everything else). */
#ifndef FUZZ_GEN_INTERNAL_H
#define FUZZ_GEN_INTERNAL_H

#include "fuzz/gen.h"

/* Memory that the code at hand may touch: `count` elements from `pointer`, or from element `base` on if that is a node. */
struct memory {
    uint32_t pointer, base;
    ir_type elem;
    uint64_t count;
    enum space space;
    bool writable; /* nobody else touches it */
    bool uniform;  /* the same for all threads, and read-only */
};

/* Integers that all threads change by one commutative operation. */
struct tally {
    uint32_t pointer;
    ir_type elem;
    uint64_t count;
    enum op op;
    bool readable; /* after a barrier: threadgroup memory */
};

struct below {
    uint32_t node;
    uint64_t limit;
};

struct label { /* an open construct */
    uint32_t node;
    bool loop;
    uint32_t next; /* loop: the next iteration's counter; 0: not to be repeated from here */
    bool together; /* loop: all live threads take its iterations together */
    bool guard;    /* leaving it leaves such a loop */
    bool escaped;  /* some lanes left for something around it */
    unsigned n;
    ir_type type[4]; /* what a br to it carries; a loop: behind the counter */
};

struct callee {
    uint32_t func;
    unsigned n;
    ir_type type[8];
    struct memory memory[8]; /* what a pointer must reach */
    ir_type result;
};

enum { MARK_SAME = 1, /* in all threads of the threadgroup that compute it */ MARK_WRITABLE = 2 /* an address */ };

struct gen {
    struct mem *mem;
    struct ir_module *m;
    struct ir_builder b;
    struct gen_program *p;
    uint64_t state;
    VEC(uint32_t) values; /* visible */
    VEC(uint8_t) marks;   /* by node: MARK_* */
    VEC(uint32_t) vars;
    VEC(struct memory) memories;
    VEC(struct tally) tallies;
    VEC(struct memory) exchanges; /* threadgroup memory with an element for each thread */
    struct label label[24];
    unsigned n_labels;
    struct callee callee[4];
    unsigned n_callees;
    ir_type aggregate[6];
    unsigned n_aggregates, n_structs;
    enum op elementwise[OP_COUNT], collective[OP_COUNT];
    unsigned n_elementwise, n_collective;
    unsigned budget;         /* statements left */
    bool exchanging;         /* many barriers */
    uint32_t acc;            /* a u32 local that takes up values */
    uint32_t lane;           /* thread_index_in_threadgroup as u32; 0 in functions, and where edges are to be masked */
    VEC(struct below) known; /* what is below a number where the code at hand is run */
    uint32_t index;          /* the thread's number in the grid; 0 in functions */
    bool uniform;            /* all live threads of the threadgroup come here together */
    bool kernel, small_loops;
    ir_type result; /* of the function */
    uint32_t file, line;
};

uint32_t roll(struct gen *g, uint32_t n); /* 0 to n - 1 */
bool chance(struct gen *g, unsigned percent);

struct gen_kind { /* of statements */
    uint8_t weight;
    void (*run)(struct gen *g);
};
void gen_choose(struct gen *g, const struct gen_kind *kind, unsigned n);

/* ---- gen_value.c ---- */
void gen_tables(struct gen *g);
ir_type gen_scalar_type(struct gen *g, unsigned classes);
ir_type gen_numeric_type(struct gen *g, unsigned classes); /* scalar or vector */
ir_type gen_type(struct gen *g);                           /* aggregates too */
void gen_new_aggregate(struct gen *g);
uint64_t gen_bits(struct gen *g, enum scalar s);
uint32_t gen_constant(struct gen *g, enum scalar s);
bool gen_same(const struct gen *g, uint32_t id);
void gen_mark(struct gen *g, uint32_t id, unsigned mark);
void gen_push(struct gen *g, uint32_t id, bool same); /* makes a value known */
uint32_t gen_node(struct gen *g, enum op op, ir_type type, unsigned n, const uint32_t *in, unsigned flags,
                  uint64_t imm);
uint32_t gen_op1(struct gen *g, enum op op, ir_type t, uint32_t a);
uint32_t gen_op2(struct gen *g, enum op op, ir_type t, uint32_t a, uint32_t b);
uint32_t gen_value(struct gen *g, ir_type t);
uint32_t gen_condition(struct gen *g, bool same);
uint32_t gen_linear(struct gen *g);                /* an integer, often as indices are made of positions */
uint32_t gen_below(struct gen *g, uint64_t count); /* an integer value from 0 to count - 1 */
void gen_sink(struct gen *g, uint32_t id);         /* mixes a value into the accumulator */
void gen_value_statement(struct gen *g);

/* ---- gen_memory.c ---- */
void gen_store(struct gen *g);
void gen_statement(struct gen *g); /* one that is no construct */
void gen_wanted(struct gen *g,
                struct memory *x); /* sometimes what a function's pointer parameter in that space wants */

/* ---- gen_flow.c ---- */
enum ending { END_CONSTRUCT, END_REPEAT, END_FUNCTION, END_KERNEL };
/* Fills a region; END_CONSTRUCT and END_REPEAT by the innermost label or loop. */
void gen_region(struct gen *g, uint32_t region, enum ending end);
void gen_statements(struct gen *g, unsigned n);

#endif
