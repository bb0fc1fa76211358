/* loops.h - the first include of files with loops over lanes, which are to become vectors whatever the rest of the project
 * is compiled for. What is inlined into a loop must be compiled alike, hence before all other includes.
 */
#ifndef SK_INTERP_LOOPS_H
#define SK_INTERP_LOOPS_H

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-tree-loop-distribute-patterns")
#endif

#include "interp/program.h"

static const uint32_t lane_bit[LANES] = {
#define BITS(n) 1u << (n), 2u << (n), 4u << (n), 8u << (n)
    BITS(0), BITS(4), BITS(8), BITS(12), BITS(16), BITS(20), BITS(24), BITS(28)};
#undef BITS

#endif
