/* Random programs through random passes: the first ones of the seeds that fuzz/ goes on with. */
#include "check.h"
#include "fuzz/diff.h"

#define PROGRAMS 300

static sk_status all(struct mem *mem)
{
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        struct gen_program p;
        struct diff_failure f;
        gen_program(mem, seed, &p);
        check_count++;
        if (!diff_check(mem, &p, p.m, seed, &f))
            CHECK_FAIL_("seed:%d, passes %s: %s; replay: build/fuzz/fuzz_diff seed:%d", (int)seed, f.letters, f.what,
                        (int)seed);
        gen_free(&p);
    }
    CHECK_EQ(mem->live, 0);
    return SK_OK;
}

int main(void)
{
    struct mem mem;
    sk_status status = SK_OK;
    mem_init(&mem, NULL);
    MEM_GUARD(&mem, NULL, status, all(&mem));
    CHECK_EQ(status, SK_OK);
    return check_done();
}
