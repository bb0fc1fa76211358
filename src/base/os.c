/* os.c - what the operating system is asked for. */
#include "base/base.h"

#include <time.h>

uint64_t os_nanoseconds(void)
{
    struct timespec t = {0};
    /* A monotonic clock cannot fail with a valid pointer; were it absent, times would read 0. */
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
