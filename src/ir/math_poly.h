/* math_poly.h - the constants of math.c, shared with the CPU back end, which prints the same algorithms.
 *
 * A polynomial lists its coefficients from the constant up; the comment is its largest error, relative to the function
 * built on it, before the rounding of its evaluation. tools/minimax.py derives them and prints these lines.
 */
#ifndef SK_IR_MATH_POLY_H
#define SK_IR_MATH_POLY_H

#include <stdint.h>

/* c = c_A + c_B (+ c_C): the nearest float, then the nearest to what is left. */
#define MATH_LN2_A 0x1.62e43p-1f
#define MATH_LN2_B -0x1.05c61p-29f
#define MATH_LOG10_2_A 0x1.344136p-2f
#define MATH_LOG10_2_B -0x1.ec10cp-27f
#define MATH_PI_A 0x1.921fb6p+1f
#define MATH_PI_B -0x1.777a5cp-24f
#define MATH_PI_C -0x1.ee59dap-49f
#define MATH_PI_2_A 0x1.921fb6p+0f
#define MATH_PI_2_B -0x1.777a5cp-25f

#define MATH_LOG10_E 0x1.bcb7b2p-2f
#define MATH_LOG2_E 0x1.715476p+0f
#define MATH_1_PI 0x1.45f306p-2f
#define MATH_2_PI 0x1.45f306p-1f
#define MATH_PI_2_64 0x1.921fb54442d18p-64 /* pi/2 * 2^-64, a double */

/* exp, exp2: infinite above MAX; exp: zero below MIN; fast_exp: zero below NORMAL. */
#define MATH_EXP2_MAX 0x1.fffffep+6f
#define MATH_EXP_MAX 0x1.62e42ep+6f
#define MATH_EXP_MIN -104.0f
#define MATH_EXP_NORMAL -0x1.5d589ep+6f

/* From here on sin, cos, tan reduce their argument by turns(). */
#define MATH_ANGLE_LARGE 0x1p17f

#define MATH_RSQRT_GUESS 0x5f3755b0u

/* Bits of 1 / (2 pi) after the point, with 8 zeros before them. */
static const uint32_t math_1_2PI[7] = {0x0028be60, 0xdb939105, 0x4a7f09d5, 0xf47d4d37,
                                       0x7036d8a5, 0x664f10e4, 0x107f9458};

/* 2^-28.3 */
static const float math_poly_EXP[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558aap-5f, 0x1.12396ep-7f, 0x1.6a5252p-10f};
/* 2^-23.2 */
static const float math_poly_fast_EXP[] = {0x1.fffdfcp-2f, 0x1.5557acp-3f, 0x1.572a18p-5f, 0x1.1063d8p-7f};
/* 2^-28.3 */
static const float math_poly_EXP2[] = {0x1.62e43p-1f, 0x1.ebfbdcp-3f,  0x1.c6af7cp-5f,
                                       0x1.3b2dep-7f, 0x1.5f082ep-10f, 0x1.416b52p-13f};
/* 2^-23.4 */
static const float math_poly_fast_EXP2[] = {0x1.62e42ap-1f, 0x1.ebf9c2p-3f, 0x1.c6b6d8p-5f, 0x1.3ce8aep-7f,
                                            0x1.5bda5cp-10f};
/* 2^-25.2 */
static const float math_poly_LOG[] = {-0x1.ffffd6p-2f, 0x1.5554fcp-2f, -0x1.00145p-2f,  0x1.99d3a8p-3f,
                                      -0x1.503884p-3f, 0x1.1ea94ep-3f, -0x1.3b0e5cp-3f, 0x1.1f2426p-3f};
/* 2^-25.2 */
static const float math_poly_LOG2[] = {0x1.c551dap-2f,  -0x1.715458p-1f, 0x1.ec6fe6p-2f,
                                       -0x1.7171c2p-2f, 0x1.27a5e8p-2f,  -0x1.e510f4p-3f,
                                       0x1.9d2954p-3f,  -0x1.c68454p-3f, 0x1.9fa43p-3f};
/* 2^-27.9 */
static const float math_poly_LOG10[] = {-0x1.2057e4p-27f, -0x1.bcb7b2p-3f, 0x1.287a12p-3f, -0x1.bcb65ap-4f,
                                        0x1.63fe0cp-4f,   -0x1.28c434p-4f, 0x1.f178c6p-5f, -0x1.b09c4cp-5f,
                                        0x1.f4df24p-5f,   -0x1.cdce52p-5f};
/* 2^-27.9 */
static const float math_poly_SIN[] = {-0x1.555546p-3f, 0x1.110778p-7f, -0x1.9954p-13f};
/* 2^-24.6 */
static const float math_poly_COS[] = {-0x1.ffffb2p-2f, 0x1.553e5ep-5f, -0x1.6447c6p-10f};
/* 2^-27.3 */
static const float math_poly_fast_SIN[] = {-0x1.55554cp-3f, 0x1.110edap-7f, -0x1.9f70fp-13f, 0x1.5dc904p-19f};
/* 2^-25.7 */
static const float math_poly_TAN[] = {0x1.5554dep-2f, 0x1.112de8p-3f, 0x1.b585ap-5f,
                                      0x1.906d48p-6f, 0x1.96de2cp-9f, 0x1.33d786p-7f};
/* 2^-27.6 */
static const float math_poly_ASIN[] = {0x1.5555c8p-3f, 0x1.330204p-4f, 0x1.747bb8p-5f, 0x1.8c3e5p-6f, 0x1.595c6p-5f};
/* 2^-25.8 */
static const float math_poly_ATAN[] = {-0x1.5554dcp-2f, 0x1.9978ecp-3f, -0x1.230a96p-3f, 0x1.b4dedep-4f,
                                       -0x1.35519p-4f,  0x1.61f14p-5f,  -0x1.0c1c26p-6f, 0x1.7eb1a4p-9f};
/* 2^-33.3 */
static const float math_poly_COSH[] = {0x1p-1f, 0x1.5554e6p-5f, 0x1.6d4f3cp-10f};
/* 2^-26.2 */
static const float math_poly_SINH[] = {0x1.5554bp-3f, 0x1.122794p-7f};
/* 2^-35.9 */
static const double math_poly_POW_LOG2[] = {
    0x1.71547652bbe15p+0,  -0x1.7154764b33a19p-1, 0x1.ec709d9019afdp-2,  -0x1.715484faa13aep-2, 0x1.2776e22212cedp-2,
    -0x1.ec687babb6acbp-3, 0x1.a60b2ad1067e6p-3,  -0x1.724a7237a2192p-3, 0x1.49813420665adp-3,  -0x1.19853d9a81ef8p-3,
    0x1.fa1f480896328p-4,  -0x1.542ee2be54e3fp-3, 0x1.42a1bd8fd990ap-3};
/* 2^-28.9 */
static const double math_poly_POW_EXP2[] = {0x1.62e430af27eap-1,  0x1.ebfbdc3c2b7f4p-3,  0x1.c6aee88d19df7p-5,
                                            0x1.3b2d4cfc1764ep-7, 0x1.5f3e538b0fc99p-10, 0x1.41fbb16b03dd6p-13};

#endif
