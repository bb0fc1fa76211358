/* run.h - the contract between generated code and the runtime that runs it.
 *
 * Generated code gets a `struct cpu_worker`, reads what a launch gave from it and calls back through its table of helpers:
 * an object file needs no symbol of ours. Offsets of the fields are part of the text, hence of the cache's key.
 *
 * Entry points of an object:
 *   i32 spork_kernel(ptr worker, i32 x0, i32 x1, i32 y, i32 z)   runs the threadgroups x0 to x1 - 1 of row (y, z), in order
 *   i32 spork_bundle(ptr worker, i32 first, i32 x, i32 y, i32 z) kernels run by fibers: one bundle of a threadgroup,
 *                                                                `first` the linear index of its first thread
 * They return 0, or 1 when they left early because of the stop word. `group` of the worker is set by them.
 */
#ifndef SK_CPU_RUN_H
#define SK_CPU_RUN_H

#include "base/base.h"

/* Memory that pointers may point into, by region number: 0 is none (size 0), then the arguments that are buffers or
 * threadgroup memory in order, then allocations. Threads' own memory has base null: it lies in `private`. */
struct cpu_region {
    char *base;
    uint64_t size;
};

enum helper {
#define HELPER(ID, function, type, doc) HELPER_##ID,
#include "cpu/helpers.def"
#undef HELPER
    HELPER_COUNT
};

enum cpu_fault_kind {
    CPU_FAULT_NONE,
    CPU_FAULT_READ,
    CPU_FAULT_WRITE,
    CPU_FAULT_BARRIER,
    CPU_FAULT_NO_PROGRESS,
    CPU_FAULT_ASSERT
};
struct cpu_fault {
    enum cpu_fault_kind kind;
    uint64_t group;  /* linear index of the threadgroup in the grid */
    uint32_t thread; /* linear index in its threadgroup */
    uint32_t at[3], other_at[3];
    uint32_t site, other_site, region;
    uint64_t offset, size;
    const struct cpu_variant *variant; /* the code whose tables site and region are of */
};

struct cpu_job;
struct cpu_variant;
struct fiber_set;

struct cpu_worker {
    /* read by generated code */
    const struct cpu_region *region; /* [n_regions] */
    const void *const *value;        /* bytes of the arguments given by value, by argument number; else null */
    const volatile int *stop;        /* never null */
    const void *const *helper;       /* by enum helper */
    char *
        threadgroup_memory; /* 64-byte aligned; static arrays at their offsets. Generated code zeroes the static part */
    char *private_memory;   /* 64-byte aligned; private_bytes of the code times bundles of the largest group */
    uint32_t grid[3];       /* threads */
    uint32_t asked[3];      /* threadgroup as asked for */
    uint32_t groups[3];     /* threadgroups in the grid */
    uint32_t dims[3];       /* of the group being run, for code whose shape is not constant; set by the runtime */
    /* written by generated code */
    uint32_t group[3]; /* the threadgroup being run */
    /* the runtime's own */
    struct cpu_fault fault; /* the lowest of this worker's */
    uint64_t changes;       /* stores of waiting loops that changed memory */
    struct cpu_job *job;
    const struct cpu_variant *variant; /* the code being run */
    struct fiber_set *fibers;
    uint32_t id; /* of this worker in its job */
};
#define WORKER(field) ((unsigned)offsetof(struct cpu_worker, field))

extern const void *const cpu_helpers[HELPER_COUNT]; /* helpers.c */

#endif
