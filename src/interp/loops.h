/* loops.h - the first include of files with loops over lanes, which are to become vectors whatever the rest of the project
 * is compiled for. What is inlined into a loop must be compiled alike, hence before all other includes.
 */
#ifndef SK_INTERP_LOOPS_H
#define SK_INTERP_LOOPS_H

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-tree-loop-distribute-patterns")
#endif

#include "interp/program.h"

#endif
