/* fault.h - faults of a launch on the CPU: each worker keeps its lowest one, the launch reports the lowest of all. */
#ifndef SK_CPU_FAULT_H
#define SK_CPU_FAULT_H

#include "cpu/run.h"

/* The record to fill, or null if an earlier one of a lower thread stays. `edge`: threads are counted in the
 * threadgroup as asked for. */
struct cpu_fault *cpu_fault_record(struct cpu_worker *w, uint32_t thread, enum cpu_fault_kind kind, bool edge);
/* Bundles of the threadgroup being run wait at different barriers: these threads, the first one the lowest. */
void cpu_fault_barriers(struct cpu_worker *w, uint32_t thread, uint32_t site, uint32_t other, uint32_t other_site);
/* Keeps the lower of two in *into. */
void cpu_fault_merge(struct cpu_fault *into, const struct cpu_fault *from);
sk_status cpu_fault_report(const struct cpu_fault *f, const char *kernel, sk_error *err); /* SK_OK: there is none */

/* HELPER_ASSERT, HELPER_WAIT */
void helper_assert(struct cpu_worker *w, uint32_t site, uint32_t message, uint32_t first_thread, uint32_t lanes);
struct cpu_wait { /* of a loop, in the frame of generated code */
    uint64_t changes, iterations;
};
int32_t helper_wait(struct cpu_worker *w, struct cpu_wait *state, uint32_t site, uint32_t first_thread, uint32_t lanes);

#endif
