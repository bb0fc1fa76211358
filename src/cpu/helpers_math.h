/* helpers_math.h - what generated code leaves to the scalar functions: operands that are rare (see math.c). */
#ifndef SK_CPU_HELPERS_MATH_H
#define SK_CPU_HELPERS_MATH_H

#include <stdint.h>

#define MATH_LANES 32u

struct cpu_worker;

/* out[l] = op(in[l], in[MATH_LANES + l]) for the lanes l of the mask; others stay. `op`: SIN, COS, TAN, FMOD, and DIV_FLOOR,
 * REM_FLOOR of floats. Reads and writes nothing else: generated code relies on it. */
void helper_math(struct cpu_worker *worker, uint32_t op, const float *in, float *out, uint32_t lanes);

#endif
