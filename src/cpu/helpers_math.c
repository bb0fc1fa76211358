/* helpers_math.c - see helpers_math.h. */
#include "cpu/helpers_math.h"

#include "ir/ir.h"
#include "ir/math.h"

static const struct {
    float (*one)(float);
    float (*two)(float, float);
} scalar_forms[OP_COUNT] = {
    [OP_SIN] = {.one = math_SIN},
    [OP_COS] = {.one = math_COS},
    [OP_TAN] = {.one = math_TAN},
    [OP_FMOD] = {.two = math_FMOD},
    [OP_DIV_FLOOR] = {.two = math_DIV_FLOOR},
    [OP_REM_FLOOR] = {.two = math_REM_FLOOR},
};

void helper_math(struct cpu_worker *worker, uint32_t op, const float *in, float *out, uint32_t lanes)
{
    (void)worker;
    for (; lanes; lanes &= lanes - 1) {
        const unsigned l = (unsigned)__builtin_ctz(lanes);
        out[l] = scalar_forms[op].one ? scalar_forms[op].one(in[l]) : scalar_forms[op].two(in[l], in[MATH_LANES + l]);
    }
}
