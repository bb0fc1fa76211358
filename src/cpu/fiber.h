/* fiber.h - bundles of a threadgroup that wait for each other at barriers, each on a stack of its own.
 *
 * Bundles run in order, each until it ends or waits. When all that have not ended wait at one barrier, they go on; at
 * different ones it is a fault of the lowest thread, and the threadgroup ends there. A switch goes from bundle to
 * bundle.
 */
#ifndef SK_CPU_FIBER_H
#define SK_CPU_FIBER_H

#include "cpu/run.h"

typedef int32_t fiber_bundle(struct cpu_worker *worker, uint32_t first, uint32_t x, uint32_t y, uint32_t z);

struct fiber_set;

/* Room in *set (made if it is null) for n bundles with stacks of that many bytes. False: no memory. */
bool fiber_need(struct fiber_set **set, uint32_t n, size_t stack);
void fiber_free(struct fiber_set *set); /* null allowed */

/* Runs a threadgroup of n bundles, worker->group being set; worker->fibers has room for them. True: stopped. */
bool fiber_run(struct cpu_worker *worker, fiber_bundle *bundle, uint32_t n, uint32_t width);

/* HELPER_BARRIER */
int32_t helper_barrier(struct cpu_worker *worker, uint32_t site, uint32_t barrier, uint32_t first_thread,
                       uint32_t lanes);

#endif
