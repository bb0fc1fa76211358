/* wide.c - lanes.c and cells.c once more, for processors with vectors of 256 bits, and the choice between the two. */
#if defined(__x86_64__) && defined(__GNUC__)
#define WIDE 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define lanes_least lanes_wide
#define cells_load cells_load_wide
#define cells_store cells_store_wide
#include "interp/cells.c" /* NOLINT(bugprone-suspicious-include) */
#include "interp/lanes.c" /* NOLINT(bugprone-suspicious-include) */
#undef lanes_least
extern const struct lane_loops lanes_least;

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
#include "interp/program.h"
#endif

const struct lane_loops *lanes_best(void)
{
#if defined(WIDE)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &lanes_wide;
#endif
    return &lanes_least;
}
