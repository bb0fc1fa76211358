/* gen.h - random programs, valid by construction, with the launch and the arguments to run them on.
 *
 * A program is decided by its seed. Its result is decided by the program: no thread reads what another may write at the same
 * time, atomics that threads share commute and their old values are not used, and a NaN's bits never become an integer. Loops
 * end. So any two correct executions leave the same bytes in the output buffers, NaNs counting as one value.
 *
 * Rules for changing the generator:
 *  1. a program may change with every commit: a seed is replayed with the binary that reported it;
 *  2. what is generated is checked by the verifier, and a refusal is a bug of one of the two;
 *  3. barriers stand only where all live threads of the threadgroup come (`uniform`).
 */
#ifndef FUZZ_GEN_H
#define FUZZ_GEN_H

#include "interp/interp.h"

#define GEN_MAX_ARGS 16

struct gen_arg {
    void *data; /* null: threadgroup memory */
    size_t size;
    ir_type elem; /* of a buffer or threadgroup memory; a value's type */
    bool output;
};

struct gen_program {
    struct arena arena; /* the arguments' memory */
    struct ir_module *m;
    uint32_t kernel;
    uint32_t threads[3], threadgroup[3];
    unsigned n_args;
    struct gen_arg arg[GEN_MAX_ARGS];
    bool contracts;    /* contraction may change results: compare only what was contracted at the same point */
    bool read_faults;  /* may read out of bounds: a fault may go with the value's use */
    bool write_faults; /* may write out of bounds */
    bool masks_edges;  /* threads of a threadgroup that the grid cuts see nothing of it */
};

/* Recovery of memory is the caller's. Ended by gen_free. */
void gen_program(struct mem *mem, uint64_t seed, struct gen_program *out);
void gen_free(struct gen_program *p);

/* A generator of random numbers, for who decides more by the same seed. */
uint64_t gen_random(uint64_t *state);

#endif
