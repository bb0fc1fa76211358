/* The CPU device: compiled at the first launch of a shape and found again, from several threads, in a child of fork;
 * edges and shapes past those that are constants, settings, texts, stopping, what only the interpreter runs, and what
 * a launch costs. */
#include "check.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "spork/spork.h"

/* Each thread adds its index to its element: out[i] = a[i] + i. */
static const char add_text[] =
    "kernel add(out: device u32, a: device u32, i: u32 [thread_position_in_grid]) {\n"
    "  %0 = index ptr.device %a, %i of u32\n"
    "  %1 = load u32 %0\n"
    "  %2 = add u32 %1, %i\n"
    "  %3 = index ptr.device %out, %i of u32\n"
    "  store %3, %2\n"
    "}\n"
    "\n"
    /* The size of the threadgroup it is in, so that cut ones need code of their own. */
    "kernel sizes(out: device u32, i: u32 [thread_position_in_grid], n: u32 [threads_per_threadgroup]) {\n"
    "  %0 = index ptr.device %out, %i of u32\n"
    "  store %0, %n\n"
    "}\n"
    "\n"
    "kernel plane(out: device u32, p: u32x2 [thread_position_in_grid], n: u32x2 [threads_per_grid]) {\n"
    "  %x.0 = extract u32 %p [0]\n"
    "  %y.1 = extract u32 %p [1]\n"
    "  %w.2 = extract u32 %n [0]\n"
    "  %r.3 = mul u32 %y.1, %w.2\n"
    "  %i.4 = add u32 %r.3, %x.0\n"
    "  %o.5 = index ptr.device %out, %i.4 of u32\n"
    "  store %o.5, %i.4\n"
    "}\n"
    "\n"
    /* Goes round until out[0] is not 0, which nobody writes; the counter makes it no loop that only waits. */
    "kernel endless(out: device u32, i: u32 [thread_position_in_grid]) {\n"
    "  loop (%n.0: u32 = 0:u32) {\n"
    "    %m.1 = add u32 %n.0, 1:u32\n"
    "    %p.2 = index ptr.device %out, 0:u32 of u32\n"
    "    %v.3 = load u32 %p.2\n"
    "    %c.4 = ne bool %v.3, %m.1\n"
    "    if %c.4 {\n"
    "      br 1 0:u32\n"
    "    }\n"
    "  }\n"
    "}\n"
    "\n"
    /* What constant memory holds is read before, and out overlaps it. */
    "kernel shift(out: device u32, c: constant u32, i: u32 [thread_position_in_grid]) {\n"
    "  %0 = index ptr.constant %c, %i of u32\n"
    "  %1 = load u32 %0\n"
    "  %2 = index ptr.device %out, %i of u32\n"
    "  store %2, %1\n"
    "}\n";

struct machine {
    sk_context *ctx;
    sk_device *device;
    sk_library *library;
    sk_function *function;
    sk_pipeline *pipeline;
};

static sk_error err;

static void open_machine(struct machine *m, const char *device, const char *kernel)
{
    *m = (struct machine){0};
    sk_error_clear(&err);
    sk_status st = sk_context_create(NULL, &m->ctx, &err);
    if (st == SK_OK)
        st = sk_device_get(m->ctx, device, &m->device, &err);
    if (st == SK_OK)
        st = sk_library_from_ir(m->device, add_text, sizeof add_text - 1, "cpu.ir", &m->library, &err);
    if (st == SK_OK)
        st = sk_library_function(m->library, kernel, &m->function, &err);
    if (st == SK_OK)
        st = sk_pipeline_create(m->function, &m->pipeline, &err);
    CHECK_EQ_STR(err.message, "");
    if (st != SK_OK)
        exit(check_done());
}

static sk_launch threads(uint32_t n, uint32_t group, const sk_arg *args, size_t n_args)
{
    return (sk_launch){
        .grid = {n, 1, 1}, .threadgroup = {group, 1, 1}, .threads = true, .args = args, .n_args = n_args};
}

static sk_status launch(const struct machine *m, const sk_launch *l)
{
    sk_error_clear(&err);
    return sk_pipeline_launch(m->pipeline, l, &err);
}

enum { N = 5000 };

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static bool added(const uint32_t *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (out[k] != 3 * k)
            return false;
    return true;
}

static void test_shapes(void)
{
    struct machine m;
    open_machine(&m, "cpu", "add");
    static uint32_t a[N], out[N];
    for (uint32_t k = 0; k < N; k++)
        a[k] = 2 * k;
    const sk_arg args[] = {{out, sizeof out}, {a, sizeof a}};
    for (int again = 0; again < 2; again++)
        for (uint32_t group = 1; group <= 1000; group = group * 2 + group % 3) {
            memset(out, 0, sizeof out);
            const sk_launch l = threads(N, group, args, 2);
            CHECK_EQ(launch(&m, &l), SK_OK);
            CHECK_EQ_STR(err.message, "");
            CHECK(added(out, N));
        }
    CHECK(sk_pipeline_note(m.pipeline) == NULL);
    sk_context_destroy(m.ctx);

    open_machine(&m, "cpu", "sizes");
    for (uint32_t group = 1; group <= 1000; group = group * 2 + group % 3) {
        memset(out, 0, sizeof out);
        const sk_launch l = threads(N, group, args, 1);
        CHECK_EQ(launch(&m, &l), SK_OK);
        uint32_t wrong = 0;
        for (uint32_t k = 0; k < N; k++)
            wrong += out[k] != (k < N / group * group ? group : N % group);
        CHECK_EQ(wrong, 0);
    }
    sk_context_destroy(m.ctx);

    open_machine(&m, "cpu", "plane");
    const sk_size groups[] = {{16, 16, 1}, {7, 5, 1}, {32, 1, 1}, {1, 32, 1}, {3, 3, 3}, {64, 2, 1},
                              {2, 64, 1},  {5, 5, 1}, {9, 2, 1},  {8, 8, 1},  {4, 8, 2}, {11, 3, 1}};
    for (size_t k = 0; k < sizeof groups / sizeof *groups; k++) {
        memset(out, 0, sizeof out);
        sk_launch l = threads(70, 1, args, 1);
        l.grid.y = 71;
        l.threadgroup = groups[k];
        CHECK_EQ(launch(&m, &l), SK_OK);
        uint32_t wrong = 0;
        for (uint32_t i = 0; i < 70 * 71; i++)
            wrong += out[i] != i;
        CHECK_EQ(wrong, 0);
    }
    sk_context_destroy(m.ctx);
}

/* ---- faults, the unchecked form, settings, texts ----------------------------------------------------------------- */

static void test_faults(void)
{
    struct machine cpu, interp;
    open_machine(&cpu, "cpu", "add");
    open_machine(&interp, "interp", "add");
    static uint32_t a[N], out[N];
    const uint32_t lengths[] = {0, 1, 31, 32, 33, 1000, 1003, N - 1};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        const sk_arg args[] = {{out, sizeof out}, {a, lengths[k] * 4}};
        for (uint32_t group = 5; group <= 1000; group *= 6) {
            const sk_launch l = threads(N, group, args, 2);
            CHECK_EQ(launch(&interp, &l), SK_ERR_FAULT);
            const sk_error expected = err;
            CHECK_EQ(launch(&cpu, &l), SK_ERR_FAULT);
            CHECK_EQ_STR(err.message, expected.message);
            CHECK_EQ_STR(err.file, expected.file);
            CHECK_EQ(err.line, expected.line);
        }
    }
    const sk_arg args[] = {{out, sizeof out}, {a, sizeof a}};
    sk_launch l = threads(N, 64, args, 2);
    l.unchecked = true;
    for (uint32_t k = 0; k < N; k++)
        a[k] = 2 * k;
    CHECK_EQ(launch(&cpu, &l), SK_OK);
    CHECK(added(out, N));
    CHECK_EQ(launch(&interp, &l), SK_ERR_UNSUPPORTED);
    CHECK_EQ_STR(err.name, "LAUNCH_CHECKED");
    sk_context_destroy(cpu.ctx);
    sk_context_destroy(interp.ctx);
}

static void test_settings(void)
{
    struct machine m;
    open_machine(&m, "cpu", "add");
    CHECK(sk_device_threads(m.device) >= 1);
    sk_device_set_threads(m.device, 3);
    CHECK_EQ(sk_device_threads(m.device), 3);
    sk_device_set_threads(m.device, 0);
    CHECK(sk_device_threads(m.device) >= 1);
    const char *details = NULL;
    CHECK_EQ(sk_device_details(m.device, &details, &err), SK_OK);
    CHECK(details && strstr(details, "LLVM ") && strstr(details, "threads"));
    sk_device_expect(m.device, "source", 6);
    CHECK_EQ(sk_pipeline_prepare(m.pipeline, (sk_size){96, 1, 1}, &err), SK_OK);
    CHECK_EQ(sk_pipeline_prepare(m.pipeline, (sk_size){0, 1, 1}, &err), SK_ERR_VALUE);

    const struct {
        sk_text kind;
        const char *holds;
    } texts[] = {
        {SK_TEXT_LLVM, "@spork_kernel"}, {SK_TEXT_LLVM_OPTIMISED, "@spork_kernel"}, {SK_TEXT_ASM, "spork_kernel:"}};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        char *text = NULL;
        sk_error_clear(&err);
        CHECK_EQ(sk_pipeline_text(m.pipeline, (sk_size){64, 1, 1}, false, texts[k].kind, &text, &err), SK_OK);
        CHECK(text && strstr(text, texts[k].holds));
        sk_text_free(m.ctx, text);
    }
    sk_context_destroy(m.ctx);

    char *text = NULL;
    open_machine(&m, "interp", "add");
    CHECK_EQ(sk_pipeline_text(m.pipeline, (sk_size){64, 1, 1}, false, SK_TEXT_ASM, &text, &err), SK_ERR_UNSUPPORTED);
    CHECK_EQ(sk_device_threads(m.device), 1);
    CHECK(sk_pipeline_note(m.pipeline) == NULL);
    sk_context_destroy(m.ctx);
}

static void test_short(void)
{
    struct machine m;
    open_machine(&m, "cpu", "add");
    uint32_t a[64] = {0}, out[64];
    const sk_arg args[] = {{out, sizeof out}, {a, sizeof a}};
    sk_launch l = threads(64, 32, args, 2);
    CHECK(!sk_pipeline_is_short(m.pipeline, &l)); /* it would compile */
    CHECK_EQ(launch(&m, &l), SK_OK);
    CHECK(sk_pipeline_is_short(m.pipeline, &l));
    l.grid.x = 1u << 30;
    CHECK(!sk_pipeline_is_short(m.pipeline, &l));
    sk_context_destroy(m.ctx);

    open_machine(&m, "cpu", "endless");
    CHECK_EQ(sk_pipeline_prepare(m.pipeline, (sk_size){32, 1, 1}, &err), SK_OK);
    l = threads(32, 32, args, 1);
    CHECK(!sk_pipeline_is_short(m.pipeline, &l));
    sk_context_destroy(m.ctx);
}

static void test_constants(void)
{
    struct machine m;
    open_machine(&m, "cpu", "shift");
    uint32_t memory[200];
    for (uint32_t k = 0; k < 200; k++)
        memory[k] = k;
    const sk_arg args[] = {{memory + 1, 199 * 4}, {memory, 199 * 4}};
    const sk_launch l = threads(199, 32, args, 2);
    CHECK_EQ(launch(&m, &l), SK_OK);
    for (uint32_t k = 1; k < 200; k++)
        CHECK_EQ(memory[k], k - 1);
    CHECK_EQ(memory[0], 0);
    sk_context_destroy(m.ctx);
}

/* ---- stopping ---------------------------------------------------------------------------------------------------- */

static int stop_word;

static void *stop_soon(void *unused)
{
    (void)unused;
    (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    __atomic_store_n(&stop_word, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void test_stop(void)
{
    struct machine m;
    open_machine(&m, "cpu", "endless");
    uint32_t zero = 0;
    const sk_arg args[] = {{&zero, sizeof zero}};
    for (uint32_t workers = 1; workers < 4; workers++) {
        sk_launch l = threads(64 * 10, 64, args, 1);
        pthread_t t;
        stop_word = 0;
        l.stop = &stop_word;
        l.workers = workers;
        CHECK_EQ(pthread_create(&t, NULL, stop_soon, NULL), 0);
        CHECK_EQ(launch(&m, &l), SK_ERR_INTERRUPTED);
        (void)pthread_join(t, NULL);
        CHECK_EQ(launch(&m, &l), SK_ERR_INTERRUPTED);
    }
    sk_context_destroy(m.ctx);
}

/* ---- threads and fork -------------------------------------------------------------------------------------------- */

static struct machine shared;
static uint32_t wrong_in_threads;

static void *use_shared(void *argument)
{
    const uint32_t number = (uint32_t)(uintptr_t)argument;
    static uint32_t a[N]; /* the same in all */
    uint32_t *const out = malloc(N * sizeof *out);
    const sk_arg args[] = {{out, N * sizeof *out}, {a, sizeof a}};
    for (uint32_t k = 0; k < 60; k++) {
        const sk_launch l = threads(N, 32 * (1 + (number + k) % 11), args, 2);
        memset(out, 0, N * sizeof *out);
        uint32_t wrong = sk_pipeline_launch(shared.pipeline, &l, NULL) != SK_OK;
        for (uint32_t i = 0; i < N; i++)
            wrong += out[i] != i;
        __atomic_add_fetch(&wrong_in_threads, wrong, __ATOMIC_RELAXED);
    }
    free(out);
    return NULL;
}

static void test_threads(void)
{
    pthread_t t[6];
    open_machine(&shared, "cpu", "add");
    for (uintptr_t k = 0; k < 6; k++)
        CHECK_EQ(pthread_create(&t[k], NULL, use_shared, (void *)k), 0);
#if !defined(__SANITIZE_THREAD__) /* which has no threads after a fork */
    for (int k = 0; k < 8; k++) { /* while they compile and run */
        (void)fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            (void)alarm(100);
            wrong_in_threads = 0;
            (void)use_shared((void *)(uintptr_t)3);
            _exit(wrong_in_threads != 0);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_EQ(status, 0);
    }
#endif
    for (int k = 0; k < 6; k++)
        (void)pthread_join(t[k], NULL);
    CHECK_EQ(wrong_in_threads, 0);
    sk_context_destroy(shared.ctx);
}

/* ---- cost -------------------------------------------------------------------------------------------------------- */

static void test_cost(void)
{
    struct machine m;
    open_machine(&m, "cpu", "add");
    uint32_t a[32] = {0}, out[32];
    const sk_arg args[] = {{out, sizeof out}, {a, sizeof a}};
    const sk_launch l = threads(32, 32, args, 2);
    CHECK_EQ(launch(&m, &l), SK_OK);
    const size_t bytes = sk_context_bytes(m.ctx);
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < 20; round++) {
        const uint64_t start = os_nanoseconds();
        for (int k = 0; k < 1000; k++)
            (void)sk_pipeline_launch(m.pipeline, &l, NULL);
        const uint64_t spent = (os_nanoseconds() - start) / 1000;
        best = spent < best ? spent : best;
    }
    CHECK_EQ(sk_context_bytes(m.ctx), bytes);
    printf("a launch of one threadgroup: %u ns\n", (unsigned)best);
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(best < 1000);
#endif
    sk_context_destroy(m.ctx);
}

static bool has_cpu(void)
{
    sk_context *ctx = NULL;
    CHECK_EQ(sk_context_create(NULL, &ctx, NULL), SK_OK);
    bool found = false, missing = false;
    for (size_t k = 0; k < sk_device_count(ctx); k++)
        found = found || strcmp(sk_device_name(sk_device_at(ctx, k)), "cpu") == 0;
    for (size_t k = 0; sk_device_missing(ctx, k); k++)
        missing = missing || strncmp(sk_device_missing(ctx, k), "cpu: ", 5) == 0;
    CHECK(found != missing);
    sk_context_destroy(ctx);
    return found;
}

static void test_absent(void)
{
    const char *const before = getenv("SPORK_LLVM");
    char *const kept = before ? strdup(before) : NULL;
    sk_context *ctx = NULL;
    sk_device *d = NULL;
    sk_error_clear(&err);
    (void)setenv("SPORK_LLVM", "off", 1);
    CHECK(!has_cpu());
    CHECK_EQ(sk_context_create(NULL, &ctx, NULL), SK_OK);
    CHECK_EQ(sk_device_get(ctx, "cpu", &d, &err), SK_ERR_DEVICE);
    CHECK(strstr(err.message, "SPORK_LLVM"));
    (void)unsetenv("SPORK_DEVICE");
    CHECK_EQ(sk_device_get(ctx, NULL, &d, &err), SK_OK);
    CHECK_EQ_STR(sk_device_name(d), "interp");
    sk_context_destroy(ctx);
    if (kept)
        (void)setenv("SPORK_LLVM", kept, 1);
    else
        (void)unsetenv("SPORK_LLVM");
    free(kept);
}

int main(void)
{
    test_absent();
    if (!has_cpu())
        return check_done();
    char folder[] = "/tmp/spork-test-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    (void)setenv("SPORK_CACHE_DIR", folder, 1);
    test_threads(); /* first: nothing is compiled yet */
    test_shapes();
    test_faults();
    test_settings();
    test_short();
    test_constants();
    test_stop();
    test_cost();
    char command[64];
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_EQ(system(command), 0);
    return check_done();
}
