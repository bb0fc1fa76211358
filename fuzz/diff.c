/* diff.c - fuzz_diff: random programs through random passes, and on the CPU device.
 *
 *     fuzz_diff seed:N...          these programs
 *     fuzz_diff --seconds S        new ones for S seconds, from --base N on (a number of the clock's unless given)
 *     fuzz_diff --count N          the first N from the base
 *     fuzz_diff --print seed:N     prints the program's text
 *     fuzz_diff --ir FILE seed:N   the text in FILE in place of the program, with its arguments
 *     fuzz_diff --only-cpu N ...   each program N ways on the CPU device, and no passes
 *     fuzz_diff --fork ...         every check in a process of its own: what crashes is reduced, too
 *
 * Exits with 1 at the first failure, having written the smallest program it could find that fails.
 */
#include "fuzz/diff.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#define LAUNCH_SECONDS 20

static volatile uint64_t current;
static const char *program_name;

struct options {
    const char *ir, *out;
    bool print, reduce, good;
    char replay[40];          /* options that decide what is found */
    struct ir_module *module; /* of --ir */
};

/* ---- what ends in a signal ------------------------------------------------------------------------------------- */

static void say_crash(void)
{
    char text[200];
    if (diff_fork)
        return; /* the parent says it */
    const int n =
        snprintf(text, sizeof text, "\ncrashed at\n    %s seed:%llu\n", program_name, (unsigned long long)current);
    (void)!write(STDERR_FILENO, text, (size_t)n);
}

static void on_crash(int number)
{
    say_crash();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void on_alarm(int number)
{
    (void)number;
    if (diff_stop)
        on_crash(SIGABRT); /* it did not listen */
    diff_stop = 1;
    (void)alarm(diff_fork ? 1 : LAUNCH_SECONDS);
}

/* Of the sanitizers' run time, where it is linked in. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void watch(void)
{
    (void)signal(SIGALRM, on_alarm);
    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(say_crash);
        return;
    }
    (void)signal(SIGSEGV, on_crash);
    (void)signal(SIGABRT, on_crash);
    (void)signal(SIGFPE, on_crash);
    (void)signal(SIGILL, on_crash);
}

/* ---- one program ----------------------------------------------------------------------------------------------- */

static void write_failure(struct mem *mem, const struct options *o, const struct ir_module *m, uint64_t seed,
                          const struct diff_failure *f)
{
    char path[64];
    (void)snprintf(path, sizeof path, "fuzz-%llu.ir", (unsigned long long)seed);
    const char *const name = o->out ? o->out : path;
    FILE *const file = fopen(name, "w");
    if (!file)
        return;
    struct buf text;
    buf_init(&text, mem);
    ir_print(m, &text, 0);
    fprintf(file, "# %s%s --ir THIS seed:%llu\n# passes %s: %s\n%s", program_name, o->replay, (unsigned long long)seed,
            *f->letters ? f->letters : "none", f->what, buf_text(&text));
    (void)fclose(file);
    buf_free(&text);
    printf("  reduced to %s\n", name);
}

static bool one(struct mem *mem, const struct options *o, uint64_t seed)
{
    struct gen_program p;
    struct diff_failure f = {0};
    struct buf text;
    current = seed;
    gen_program(mem, seed, &p);
    if (o->module) {
        ir_module_free(p.m);
        p.m = ir_module_clone(mem, o->module);
        p.kernel = p.m->funcs.n - 1;
    }
    if (o->print) {
        buf_init(&text, mem);
        ir_print(p.m, &text, 0);
        fputs(buf_text(&text), stdout);
        buf_free(&text);
    }
    const bool good = diff_check_apart(mem, &p, p.m, seed, LAUNCH_SECONDS, &f);
    if (!good) {
        printf("FAIL seed:%llu, passes %s: %s\n  replay: %s%s seed:%llu\n", (unsigned long long)seed,
               *f.letters ? f.letters : "none", f.what, program_name, o->replay, (unsigned long long)seed);
        (void)fflush(stdout);
        struct ir_module *const small = o->reduce ? diff_reduce(mem, &p, seed, &f) : ir_module_clone(mem, p.m);
        write_failure(mem, o, small, seed, &f);
        ir_module_free(small);
    }
    (void)alarm(0);
    gen_free(&p);
    return good;
}

static bool load(struct mem *mem, struct options *o)
{
    static char text[1 << 20];
    sk_error err = {0};
    FILE *const file = fopen(o->ir, "r");
    if (!file) {
        fprintf(stderr, "fuzz_diff: cannot read %s\n", o->ir);
        return false;
    }
    const size_t n = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    if (ir_parse(mem, text, n, o->ir, &o->module, &err) != SK_OK) {
        fprintf(stderr, "%s:%u:%u: %s\n", o->ir, err.line, err.column, err.message);
        return false;
    }
    return true;
}

static sk_status run(struct mem *mem, struct options *o, int argc, char **argv, bool *good)
{
    uint64_t base = os_nanoseconds() ^ (uint64_t)getpid() << 40, count = 0, done = 0;
    double seconds = 0;
    base %= 1000000000000u;
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strncmp(argv[i], "seed:", 5) == 0)
            done++;
        else if (strcmp(argv[i], "--seconds") == 0 && more)
            seconds = atof(argv[++i]);
        else if (strcmp(argv[i], "--count") == 0 && more)
            count = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--base") == 0 && more)
            base = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--ir") == 0 && more)
            o->ir = argv[++i];
        else if (strcmp(argv[i], "--out") == 0 && more)
            o->out = argv[++i];
        else if (strcmp(argv[i], "--print") == 0)
            o->print = true;
        else if (strcmp(argv[i], "--no-reduce") == 0)
            o->reduce = false;
        else if (strcmp(argv[i], "--fork") == 0)
            diff_fork = true;
        else if (strcmp(argv[i], "--only-cpu") == 0 && more) {
            diff_only_cpu = true;
            diff_ways = (unsigned)strtoul(argv[++i], NULL, 10);
            (void)snprintf(o->replay, sizeof o->replay, " --only-cpu %u", diff_ways);
        } else {
            fprintf(stderr, "usage: fuzz_diff seed:N... | [--seconds S] [--count N] [--base N] [--print] [--no-reduce] "
                            "[--only-cpu WAYS] [--fork] [--ir FILE] [--out FILE]\n");
            *good = false;
            return SK_OK;
        }
    }
    if (o->ir && !load(mem, o))
        *good = false;
    sk_error err = {0};
    if (llvm_open(mem, &diff_llvm, &err) != SK_OK)
        printf("fuzz_diff: the CPU device is left out: %s\n", err.message);
    if (done) {
        for (int i = 1; i < argc && *good; i++)
            if (strncmp(argv[i], "seed:", 5) == 0)
                *good = one(mem, o, strtoull(argv[i] + 5, NULL, 10));
    } else {
        const uint64_t end = os_nanoseconds() + (uint64_t)(seconds * 1e9);
        while (*good && (count ? done < count : os_nanoseconds() < end))
            *good = one(mem, o, base + done++);
        printf("fuzz_diff: %llu programs from seed %llu: %s\n", (unsigned long long)done, (unsigned long long)base,
               *good ? "no difference" : "FAILED");
    }
    ir_module_free(o->module);
    llvm_close(diff_llvm);
    return SK_OK;
}

int main(int argc, char **argv)
{
    struct mem mem;
    struct options o = {.reduce = true, .good = true};
    bool *const good = &o.good;
    sk_status status = SK_OK;
    program_name = argv[0];
    (void)setenv("SPORK_CACHE_DIR", "off", 1); /* every kernel is compiled */
    mem_init(&mem, NULL);
    watch();
    MEM_GUARD(&mem, NULL, status, run(&mem, &o, argc, argv, good));
    return *good && status == SK_OK ? 0 : 1;
}
