/* analysis.h - facts about the values of a kernel, for a shape of its threadgroup. Nothing here changes the IR.
 *
 * Lanes. A bundle is `width` threads of a threadgroup whose linear indices follow each other, the first a multiple of
 * width. A thread's linear index is that of its position, x + y * X + z * X * Y; a lane past the end of the threadgroup goes
 * on counting, and is never active. The position is (index / product of the sizes before) % size, without the % in the last
 * dimension that is not known to be 1; where the size is known to be 1 it is 0 in every lane.
 *
 * Uniform. A value is uniform at the level of the largest set of threads in which it is the same for all that are active
 * together where it is computed: the grid (G), the threadgroup (T), the bundle (S); else it varies (V). In a loop, active
 * together are threads in one iteration. With a width of 1 nothing varies.
 *
 * Linear. A value is linear if in each active lane l of a bundle it is v + l * stride, modulo 2^bits of its type, v being
 * lane 0's value, were lane 0 active. Uniform integers are linear with stride 0, varying ones have another stride.
 *
 * Both follow from the operands: a pure operation that is uniform or linear here may be computed from the scalars v of its
 * operands, each uniform or linear (a widening conversion by converting v, x >> 5 by shifting v, and so on); what it needs
 * no vector for it never takes from one. A uniform loop parameter or result may be one scalar, written by whoever arrives with
 * a lane active; lanes still in the iteration need the parameters as they are, so those of the next one are kept apart.
 *
 * Control. The level of a node is that of the largest set of threads that reach it together: T if all threads of a
 * threadgroup that have not ended do, and so on. Lanes that left for something further out (br) are missing until its end, lanes
 * that ended (return, unreachable) are not missed. A barrier in control of level S or V lets those that do not reach it go on
 * alone, so that all after it is of that level. A loop diverges if lanes of a bundle may be in different iterations of it.
 *
 * Bounds. `bound` holds in every lane, active or not, past the end or not, whatever values loads, collectives, loop parameters
 * and results have in lanes that are not active, and where no lane is: it decides what a pure operation may meet (a divisor of
 * 0). `active` holds in lanes that are active where the value is computed; analysis_bounds_active knows more: what
 * the conditions around a place say there. It decides whether an access can be out of bounds.
 *
 * Assumptions that the executor must see to: constant memory does not change during a launch (an argument in constant space
 * that overlaps a written one is to be copied, or its launch refused this code).
 */
#ifndef SK_ANALYSIS_H
#define SK_ANALYSIS_H

#include "ir/ir.h"

struct shape {
    uint32_t dims[3]; /* threads of the threadgroup along x, y, z; 0: not known here. {0, 1, 1}: known to be a line */
    uint32_t width;   /* lanes of a bundle: a power of two up to 32 */
    bool edge; /* the lanes are those of `dims`, all known, but the group may be smaller: threads past it are inactive,
                         and indices count in the smaller group */
};

struct lane_info {   /* of one component of a value */
    uint8_t uniform; /* enum uniformity */
    bool linear;     /* integers: stride is valid */
    int64_t stride;  /* as a signed number of the type's bits */
};

/* Bounds of an integer or bool, both included, as mathematical numbers. `wide`: an u64 that may lie above INT64_MAX; then
 * only lo says something. Values of other types are wide with lo INT64_MIN. */
struct bounds {
    int64_t lo, hi;
    bool wide;
};

struct fact { /* what conditions say of a scalar */
    struct bounds bound;
    uint32_t node, before; /* before: the next fact outwards; 0: none */
};

struct analysis {
    const struct ir_module *m;
    uint32_t func;
    struct shape shape;
    /* By node; components of vectors follow each other (other types have one entry for all their parts). */
    uint32_t *first;
    struct lane_info *lane;
    struct bounds *bound, *active;
    uint8_t *control;  /* by node: enum uniformity of the control that reaches it */
    uint8_t *diverges; /* by node, loops: lanes of a bundle may be in different iterations, or leave apart */
    uint64_t *trips; /* by node, loops: the most times one execution repeats it (branches back); its region runs at most
                          once more. UINT64_MAX: not known */
    uint32_t *fact_at; /* by node: the innermost fact that holds there */
    struct fact *fact; /* [0] unused */
};

/* Analyses kernel `func` of `m`, whose calls are inlined and whose locals are values (passes V and after). The arrays live in
 * `mem` until the caller ends it (a working memory). `loads_uniform`: a load from an address uniform in the threadgroup, at
 * control of level T, counts as level T (the executor will do it once for all threads); else as level S. Loads of
 * constant memory have the level of their address, those of a thread's own memory vary. */
void analysis_run(struct mem *mem, const struct ir_module *m, uint32_t func, const struct shape *shape,
                  bool loads_uniform, struct analysis *out);

/* Of component k; parts of structs and arrays share entry 0. */
struct lane_info analysis_lane(const struct analysis *a, uint32_t node, unsigned k);
struct bounds analysis_bounds(const struct analysis *a, uint32_t node, unsigned k);
/* In lanes that are active at node `at`, which may use the value. */
struct bounds analysis_bounds_active(const struct analysis *a, uint32_t node, unsigned k, uint32_t at);

/* waits.c: does the exit of this loop depend on memory that the loop reads, and on nothing else that changes from one
 * iteration to the next? `thread`: thread memory is among what it reads. `marks`: room for a byte a node of the
 * module. */
bool loop_waits(const struct ir_module *m, uint32_t loop, uint8_t *marks, bool *thread);

/* A table of the kernel's values with what is known of each, for tests and readers: `spork ir FILE --facts`. */
void analysis_print(const struct analysis *a, struct buf *out);

#endif
