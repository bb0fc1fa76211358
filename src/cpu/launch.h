/* launch.h - runs compiled code over a grid, on the calling thread and on threads of the pool. */
#ifndef SK_CPU_LAUNCH_H
#define SK_CPU_LAUNCH_H

#include "cpu/fiber.h"
#include "cpu/lower.h"
#include "cpu/object.h"

typedef int32_t cpu_kernel(struct cpu_worker *worker, uint32_t x0, uint32_t x1, uint32_t y, uint32_t z);

enum cpu_step { CPU_LOWER, CPU_OPEN, CPU_COMPILE, CPU_LINK, CPU_STEPS };

/* A kernel compiled for a shape. Immutable once it is found in its program, but for `cost`. */
struct cpu_variant {
    struct cpu_options opt;
    struct cpu_lowered lowered;
    cpu_kernel *kernel; /* null: lowered.fibers, and `bundle` */
    fiber_bundle *bundle;
    const char *interpret; /* null, or why the interpreter must run it: then there is no code */
    size_t stack;          /* bytes that a bundle may need */
    uint32_t cost;         /* atomic: nanoseconds of a threadgroup the last time, 0: not known. A hint */
    struct object_code code;
    uint64_t took[CPU_STEPS];  /* nanoseconds; 0: not done, as what the cache saves */
    struct cpu_variant *older; /* of its program */
};

struct cpu_grid {
    const char *kernel;              /* its name */
    const struct cpu_variant *whole; /* for full threadgroups; null: there are none */
    const struct cpu_variant *edge;  /* for those that the grid cuts; null: there are none */
    uint32_t threads[3], group[3];   /* of the grid; of a threadgroup as asked for */
    const sk_arg *args;              /* by argument number */
    const uint8_t *is_value;         /* by argument number: given by value */
    size_t n_args;
    const volatile int *stop; /* null: none */
    uint32_t workers;         /* threads that may take part, the caller included; at least 1 */
};

/* Blocks until done. `mem`: working storage of the call. */
sk_status cpu_run(const struct cpu_grid *g, struct mem *mem, sk_error *err);
/* Is a threadgroup before the one that this worker runs not done yet, and run by another worker? */
bool cpu_others_before(const struct cpu_worker *w);

#endif
