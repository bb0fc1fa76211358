/* check.h - checks for C test programs. A program is a main that ends with `return check_done();`. */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static long check_count, check_failures;

/* After this many failures only the count goes on. */
#define CHECK_SHOWN 20

#define CHECK_FAIL_(...)                                                                                               \
    do {                                                                                                               \
        if (++check_failures <= CHECK_SHOWN) {                                                                         \
            printf("%s:%d: ", __FILE__, __LINE__);                                                                     \
            printf(__VA_ARGS__);                                                                                       \
            printf("\n");                                                                                              \
        }                                                                                                              \
    } while (0)

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        check_count++;                                                                                                 \
        if (!(cond))                                                                                                   \
            CHECK_FAIL_("%s", #cond);                                                                                  \
    } while (0)

/* Integers. */
#define CHECK_EQ(a, b)                                                                                                 \
    do {                                                                                                               \
        const intmax_t check_a_ = (intmax_t)(a), check_b_ = (intmax_t)(b);                                             \
        check_count++;                                                                                                 \
        if (check_a_ != check_b_)                                                                                      \
            CHECK_FAIL_("%s is %jd (%#jx), not %jd (%#jx)", #a, check_a_, (uintmax_t)check_a_, check_b_,               \
                        (uintmax_t)check_b_);                                                                          \
    } while (0)

#define CHECK_EQ_STR(a, b)                                                                                             \
    do {                                                                                                               \
        const char *const check_a_ = (a), *const check_b_ = (b);                                                       \
        check_count++;                                                                                                 \
        if (strcmp(check_a_, check_b_) != 0)                                                                           \
            CHECK_FAIL_("%s is \"%s\", not \"%s\"", #a, check_a_, check_b_);                                           \
    } while (0)

/* Absolute difference at most `within`; two NaNs are near, equal infinities too. */
#define CHECK_NEAR(a, b, within)                                                                                       \
    do {                                                                                                               \
        const double check_a_ = (double)(a), check_b_ = (double)(b);                                                   \
        check_count++;                                                                                                 \
        if (!(check_a_ == check_b_ || (isnan(check_a_) && isnan(check_b_)) ||                                          \
              fabs(check_a_ - check_b_) <= (double)(within)))                                                          \
            CHECK_FAIL_("%s is %.17g, not within %g of %.17g", #a, check_a_, (double)(within), check_b_);              \
    } while (0)

static inline int check_done(void)
{
    if (check_failures > CHECK_SHOWN)
        printf("... and %ld more\n", check_failures - CHECK_SHOWN);
    if (check_failures)
        printf("%ld of ", check_failures);
    printf("%ld checks%s\n", check_count, check_failures ? " failed" : "");
    return check_failures != 0;
}

#endif
