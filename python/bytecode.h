/* bytecode.h - what Python's instructions do, as far as tracing must know: where they lead, which variables they use.
 *
 * Instructions are counted in units of two bytes. What differs between the versions of CPython is read from the names of
 * the instructions (bytecode.c), so that the files that ask need no numbers.
 */
#ifndef SK_PY_BYTECODE_H
#define SK_PY_BYTECODE_H

#include "state.h"

enum op_flags {
    OP_JUMPS = 1u << 0,     /* has a target */
    OP_BACKWARD = 1u << 1,  /* its argument counts backward */
    OP_ABSOLUTE = 1u << 2,  /* its argument counts from the start */
    OP_ALWAYS = 1u << 3,    /* never goes on with the next instruction */
    OP_ENDS = 1u << 4,      /* leaves the function */
    OP_RETURNS = 1u << 5,   /* leaves it with a value */
    OP_HANDLER = 1u << 6,   /* only names its target as the code for exceptions */
    OP_LOADS = 1u << 7,     /* reads a variable, … */
    OP_STORES = 1u << 8,    /* … writes or deletes one, … */
    OP_THEN_LOAD = 1u << 9, /* … and a second one: the argument's halves are the two */
    OP_THEN_STORE = 1u << 10,
    OP_CELL = 1u << 11,   /* the variable is one that inner functions see too */
    OP_SAVES = 1u << 12,  /* keeps a variable for the loop of a comprehension, which is put back after it */
    OP_CALLS = 1u << 13,  /* may run inner functions */
    OP_CLEANUP = 1u << 14 /* of a with statement's handler: calls __exit__ */
};

struct instruction {
    int opcode; /* -1: there is none */
    unsigned flags;
    uint32_t arg;
    uint32_t next;   /* the unit after it and its caches */
    uint32_t target; /* of a jump, else UINT32_MAX */
};

#define NO_UNIT UINT32_MAX

/* What is found in a code object at its first block. Chains: the first element of each key, and the next of each. */
struct code_flow {
    struct code_region {
        uint32_t start, end, handler;
    } * region; /* where exceptions go, by start; none before Python 3.11 */
    struct code_store {
        uint32_t unit, variable;
    } * store; /* each write of a variable */
    struct code_link {
        uint32_t unit, next;
    } * link;           /* elements of the chains: an instruction, and the number of the next one from 1, 0: none */
    uint32_t *reads;    /* chain of each variable; the last: of calls of functions */
    uint32_t *jumps_to; /* chain of each unit */
    uint32_t *before;   /* the instruction before each, if it goes on with this one, else NO_UNIT */
    uint32_t n_regions, n_stores, n_links, n_locals, n_variables, n_parameters;
    uint32_t *first_store; /* of each variable; NO_UNIT: none */
    uint8_t *shared;       /* of each variable: inner functions see it too */
    uint8_t *saved;        /* of each variable: a comprehension uses its name for itself */
    uint8_t **live;        /* of each variable: a bit for each unit, made when asked for */
    uint32_t first_handler;
    uint32_t last_back; /* the last jump backward, 0: none */
    bool catches;       /* has an except or finally, not only with statements */
};

struct instruction instruction_at(const struct state *st, const struct code_info *c, uint32_t unit);
/* Where the instruction begins that a frame executes: its argument's upper bytes stand before it. */
uint32_t instruction_begin(const struct state *st, const struct code_info *c, uint32_t unit);
/* Null: a Python exception is set. */
struct code_flow *code_flow_get(struct state *st, struct code_info *c);
/* The unit where an exception in `unit` is handled; UINT32_MAX: nowhere. */
uint32_t handler_of(const struct state *st, const struct code_info *c, uint32_t unit);
/* Whether the variable may be read from `unit` on before it is written; also if memory is short. */
bool is_live(const struct state *st, const struct code_info *c, uint32_t variable, uint32_t unit);

/* ---- leave.c ------------------------------------------------------------------------------------------------------ */

/* The unit where the code goes on after the with statement whose __enter__ is called at `enter`; UINT32_MAX: unknown. */
uint32_t after_with(const struct state *st, const struct code_info *c, uint32_t enter);

#endif
