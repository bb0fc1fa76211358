/* bench.h - what the C programs of bench/ print: one line a sample, `row<TAB>value`, for bench/run.py. Times in microseconds. */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>

#include "base/base.h"

static inline void bench_sample(const char *row, double value)
{
    printf("%s\t%.6g\n", row, value);
}

static inline double bench_since(uint64_t begin)
{
    return (double)(os_nanoseconds() - begin) / 1e3;
}

#endif
