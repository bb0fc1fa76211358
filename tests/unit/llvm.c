/* llvm.c - LLVM's shared library: found, opened, compiling, refusing, failing, from many threads, around forks and exits.
 * Without LLVM only what it says then is tested.
 */
#include "check.h"
#include "faulty.h"
#include "llvm/llvm.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct mem memory;
static jmp_buf no_memory;
static struct buf text;

static void add(const char *s)
{
    buf_str(&text, s);
}

static const char *begin(const char *s)
{
    text.n = 0;
    add(s);
    return buf_text(&text);
}

/* A kernel like ours: state in an alloca, an inlined function, a check with a cold call through a table. */
static const char kernel[] = "define internal <32 x float> @twice(<32 x float> %x) alwaysinline {\n"
                             "  %a = fmul <32 x float> %x, %x\n"
                             "  %r = fadd <32 x float> %a, %x\n"
                             "  ret <32 x float> %r\n"
                             "}\n"
                             "define i32 @spork_kernel(ptr %worker, i32 %x0, i32 %x1, i32 %y, i32 %z) {\n"
                             "entry:\n"
                             "  %i = alloca i32\n"
                             "  store i32 %x0, ptr %i\n"
                             "  %base = load ptr, ptr %worker\n"
                             "  br label %head\n"
                             "head:\n"
                             "  %k = load i32, ptr %i\n"
                             "  %more = icmp ult i32 %k, %x1\n"
                             "  br i1 %more, label %body, label %done\n"
                             "body:\n"
                             "  %wide = zext i32 %k to i64\n"
                             "  %offset = mul i64 %wide, 128\n"
                             "  %inside = icmp ule i64 %offset, 4096\n"
                             "  br i1 %inside, label %fast, label %slow, !prof !0\n"
                             "fast:\n"
                             "  %p = getelementptr i8, ptr %base, i64 %offset\n"
                             "  %v = load <32 x float>, ptr %p, align 4\n"
                             "  %w = call <32 x float> @twice(<32 x float> %v)\n"
                             "  store <32 x float> %w, ptr %p, align 4\n"
                             "  br label %next\n"
                             "slow:\n"
                             "  %h = load ptr, ptr %base\n"
                             "  call void %h(ptr %worker, i64 %offset) cold\n"
                             "  br label %next\n"
                             "next:\n"
                             "  %k1 = add i32 %k, 1\n"
                             "  store i32 %k1, ptr %i\n"
                             "  br label %head\n"
                             "done:\n"
                             "  ret i32 0\n"
                             "}\n"
                             "!0 = !{!\"branch_weights\", i32 1048576, i32 1}\n";

/* An instruction of another machine: the selector of instructions ends in a fatal error. */
static const char fatal[] = "define void @f(ptr %p) {\n"
                            "  %x = call i32 @llvm.amdgcn.workitem.id.x()\n"
                            "  store i32 %x, ptr %p\n"
                            "  ret void\n"
                            "}\n"
                            "declare i32 @llvm.amdgcn.workitem.id.x()\n";

static sk_status compile(struct llvm *l, const char *s, enum llvm_effort effort, enum llvm_output output, char **out,
                         size_t *size, sk_error *err)
{
    *err = (sk_error){0};
    *out = NULL;
    return llvm_compile(l, s, strlen(s), effort, output, &memory, out, size, err);
}

static void drop(char *out, size_t size, enum llvm_output output)
{
    mem_free(&memory, out, size + (output != LLVM_OBJECT));
}

/* ---- before it is open ---- */

static void expect_unusable(const char *setting, const char *name, const char *word)
{
    CHECK(setenv("SPORK_LLVM", setting, 1) == 0);
    struct llvm *l;
    sk_error err = {0};
    CHECK_EQ(llvm_open(&memory, &l, &err), SK_ERR_UNSUPPORTED);
    CHECK_EQ_STR(err.name, name);
    if (!strstr(err.message, word))
        CHECK_FAIL_("no '%s' in: %s", word, err.message);
    llvm_prefetch(); /* says nothing, and leaves the next opening alone */
}

static void write_file(char *path, size_t cap, const char *folder, const char *name)
{
    CHECK(snprintf(path, cap, "%s/%s", folder, name) < (int)cap);
    FILE *const f = fopen(path, "w");
    CHECK(f && fputs("no library", f) >= 0 && fclose(f) == 0);
}

static void test_find(void)
{
    const char *const before = getenv("SPORK_LLVM");
    char *const kept = before ? strdup(before) : NULL;
    const char *const libraries = getenv("LD_LIBRARY_PATH");
    char *const kept_libraries = libraries ? strdup(libraries) : NULL;
    char folder[] = "/tmp/spork-llvm-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    char old[128], no[128], found[1024];

    expect_unusable("off", "LLVM_OFF", "SPORK_LLVM=off");
    expect_unusable("libLLVM.so", "LLVM_PATH", "'libLLVM.so', which is no path");
    expect_unusable("/nowhere/libLLVM.so", "LLVM_PATH", "cannot be read");
    write_file(old, sizeof old, folder, "libLLVM-15.so.1");
    expect_unusable(old, "LLVM_OLD", "LLVM 15 is too old");
    write_file(no, sizeof no, folder, "libLLVM.so.19.1");
    expect_unusable(no, "LLVM_OPEN", no);

    struct buf reason;
    buf_init(&reason, &memory);
    CHECK(llvm_find(found, sizeof found, &reason)); /* finding is not opening */
    CHECK_EQ_STR(found, no);
    buf_free(&reason);
    buf_init(&reason, &memory);
    CHECK(setenv("SPORK_LLVM", "off", 1) == 0);
    CHECK(!llvm_find(found, sizeof found, &reason));
    CHECK(strstr(buf_text(&reason), "off") != NULL);
    buf_free(&reason);

    /* By name, in the folders of LD_LIBRARY_PATH first. */
    CHECK(unsetenv("SPORK_LLVM") == 0);
    CHECK(snprintf(found, sizeof found, "/nowhere:%s", folder) > 0);
    CHECK(setenv("LD_LIBRARY_PATH", found, 1) == 0);
    CHECK(llvm_find(found, sizeof found, NULL));
    CHECK_EQ_STR(found, no);

    CHECK((kept_libraries ? setenv("LD_LIBRARY_PATH", kept_libraries, 1) : unsetenv("LD_LIBRARY_PATH")) == 0);
    CHECK((kept ? setenv("SPORK_LLVM", kept, 1) : unsetenv("SPORK_LLVM")) == 0);
    free(kept);
    free(kept_libraries);
    CHECK(unlink(old) == 0 && unlink(no) == 0 && rmdir(folder) == 0);
}

static int compile_here(void)
{
    struct llvm *l;
    sk_error err = {0};
    char *out;
    size_t size;
    return llvm_open(&memory, &l, &err) != SK_OK ||
           compile(l, kernel, LLVM_QUICK, LLVM_OBJECT, &out, &size, &err) != SK_OK;
}

static int child_result(pid_t child)
{
    int how = -1;
    CHECK(waitpid(child, &how, 0) == child);
    return how;
}

/* An exit function finds the library open, with nothing to wait for: the exit waited before it destroyed anything. */
static void after_opening(void)
{
    struct llvm *l;
    const uint64_t start = os_nanoseconds();
    if (llvm_open(&memory, &l, NULL) != SK_OK || os_nanoseconds() - start > 4000000)
        _exit(3);
}

/* In processes of their own, because a library is opened once. */
static void test_fork_and_exit(void)
{
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        llvm_prefetch();
        const pid_t inner = fork();
        if (inner == 0)
            _exit(compile_here());
        _exit(compile_here() + 2 * (child_result(inner) != 0));
    }
    CHECK_EQ(child_result(child), 0);
    unsigned waited = 0;
    for (unsigned k = 0; k < 24; k++) { /* an exit at any moment of an opening, most at its start */
        const pid_t leaver = fork();
        if (leaver == 0) {
            (void)atexit(after_opening);
            llvm_prefetch();
            (void)usleep(k < 12 ? 0 : k * 700);
            exit(0);
        }
        const int how = child_result(leaver);
        CHECK(WIFEXITED(how) && (WEXITSTATUS(how) == 0 || WEXITSTATUS(how) == 3));
        waited += how == 0;
    }
#ifdef __GLIBC__
    CHECK(waited > 18); /* a busy machine may delay a few */
#endif
}

/* ---- compiling ---- */

static void test_object(struct llvm *l)
{
    for (int effort = 0; effort <= LLVM_LEAST; effort++) {
        char *out, *again;
        size_t size, size_again;
        sk_error err;
        CHECK_EQ(compile(l, kernel, (enum llvm_effort)effort, LLVM_OBJECT, &out, &size, &err), SK_OK);
        CHECK(size > 64 && memcmp(out, "\177ELF", 4) == 0);
        CHECK_EQ(compile(l, kernel, (enum llvm_effort)effort, LLVM_OBJECT, &again, &size_again, &err), SK_OK);
        CHECK(size == size_again && memcmp(out, again, size) == 0);
        drop(out, size, LLVM_OBJECT);
        drop(again, size_again, LLVM_OBJECT);

        CHECK_EQ(compile(l, kernel, (enum llvm_effort)effort, LLVM_IR, &out, &size, &err), SK_OK);
        CHECK(size == strlen(out));
        CHECK(strstr(out, "@spork_kernel") && !strstr(out, "@twice")); /* inlined and dropped */
        CHECK(strstr(out, "\"prefer-vector-width\"=\"512\"") && strstr(out, "nounwind") && strstr(out, llvm_triple(l)));
        CHECK(!strstr(out, "alloca")); /* promoted */
        drop(out, size, LLVM_IR);

        CHECK_EQ(compile(l, kernel, (enum llvm_effort)effort, LLVM_ASM, &out, &size, &err), SK_OK);
        CHECK(size == strlen(out) && strstr(out, "spork_kernel:") != NULL);
        CHECK(!strstr(out, "eh_frame") && !strstr(out, ".cfi_startproc"));
        CHECK(!strstr(out, "vfmadd") && !strstr(out, "fmla")); /* a product and a sum stay two operations */
        if (strstr(llvm_features(l), "+avx512f"))
            CHECK(strstr(out, "zmm") != NULL);
        drop(out, size, LLVM_ASM);
    }
}

static void test_attributes(struct llvm *l)
{
    /* A loop that fills memory is not taken for memset, and nothing ends an endless loop. */
    static const char *const loops[] = {
        "define void @f(ptr %p, i64 %n) {\nentry:\n  br label %h\nh:\n  %i = phi i64 [ 0, %entry ], [ %j, %h ]\n"
        "  %q = getelementptr i32, ptr %p, i64 %i\n  store i32 16843009, ptr %q\n  %j = add i64 %i, 1\n"
        "  %c = icmp ult i64 %j, %n\n  br i1 %c, label %h, label %x\nx:\n  ret void\n}\n",
        "define void @f(i32 %n) {\nentry:\n  br label %h\nh:\n  %c = icmp eq i32 %n, 0\n  br i1 %c, label %x, label "
        "%h\n"
        "x:\n  ret void\n}\n"};
    for (int effort = 0; effort <= LLVM_LEAST; effort++)
        for (size_t k = 0; k < 2; k++) {
            char *out;
            size_t size;
            sk_error err;
            CHECK_EQ(compile(l, loops[k], (enum llvm_effort)effort, LLVM_IR, &out, &size, &err), SK_OK);
            CHECK(!strstr(out, "call ") && strstr(out, "br ") != NULL);
            drop(out, size, LLVM_IR);
        }
}

static void test_unroll(struct llvm *l)
{
    /* An array that only a short loop indexes is no memory any more. */
    static const char array[] =
        "define void @f(ptr %p) {\nentry:\n  %a = alloca [8 x <16 x float>]\n  br label %h\n"
        "h:\n  %i = phi i64 [ 0, %entry ], [ %j, %h ]\n  %q = getelementptr <16 x float>, ptr %p, i64 %i\n"
        "  %v = load <16 x float>, ptr %q\n  %e = getelementptr [8 x <16 x float>], ptr %a, i64 0, i64 %i\n"
        "  store <16 x float> %v, ptr %e\n  %j = add i64 %i, 1\n  %c = icmp ult i64 %j, 8\n"
        "  br i1 %c, label %h, label %g, !llvm.loop !0\ng:\n"
        "  %s = getelementptr [8 x <16 x float>], ptr %a, i64 0, i64 5\n  %t = load <16 x float>, ptr %s\n"
        "  store <16 x float> %t, ptr %p\n  ret void\n}\n!0 = distinct !{!0, !1}\n!1 = !{!\"llvm.loop.unroll.full\"}\n";
    char *out;
    size_t size;
    sk_error err;
    CHECK_EQ(compile(l, array, LLVM_FULL, LLVM_IR, &out, &size, &err), SK_OK);
    CHECK(!strstr(out, "alloca") && !strstr(out, "phi"));
    drop(out, size, LLVM_IR);
}

static void expect_failure(struct llvm *l, const char *s, sk_status status, const char *name, const char *word)
{
    char *out;
    size_t size;
    sk_error err;
    CHECK_EQ(compile(l, s, LLVM_QUICK, LLVM_OBJECT, &out, &size, &err), status);
    CHECK_EQ_STR(err.name, name);
    if (!strstr(err.message, word))
        CHECK_FAIL_("no '%s' in: %s", word, err.message);
}

static void test_refused(struct llvm *l)
{
    expect_failure(
        l, "define void @f(i32 %a) {\n  ret void\n}\ndefine void @g() {\n  %y = add i32 %q, 1\n  ret void\n}\n",
        SK_ERR_INVALID, "LLVM_REFUSED_LINE", "refuses line 5 of the text: use of undefined value '%q': %y = add");
    expect_failure(l, "nonsense", SK_ERR_INVALID, "LLVM_REFUSED", "expected top-level entity");
    expect_failure(l, "define void @f() {\n  %x = add i32 %y, 1\n  %y = add i32 1, 1\n  ret void\n}\n", SK_ERR_INVALID,
                   "LLVM_REFUSED", "does not dominate");
    expect_failure(l, "define void @f() {\n", SK_ERR_INVALID, "LLVM_REFUSED_LINE", "line 2");
    static const char byte[] = "define \0void";
    char *out;
    size_t size;
    CHECK_EQ(llvm_compile(l, byte, sizeof byte - 1, LLVM_QUICK, LLVM_OBJECT, &memory, &out, &size, NULL),
             SK_ERR_INVALID);
}

static void test_fatal(struct llvm *l)
{
    for (int k = 0; k < 3; k++) {
        expect_failure(l, fatal, SK_ERR_DEVICE, "LLVM_FATAL", "gave up: Cannot select: intrinsic %llvm.amdgcn");
        expect_failure(l, "define void @f() gc \"nosuch\" {\n  ret void\n}\n", SK_ERR_DEVICE, "LLVM_FATAL", "nosuch");
        expect_failure(l, "define void @f() {\n  call void asm sideeffect \"frobnicate\", \"\"()\n  ret void\n}\n",
                       SK_ERR_DEVICE, "LLVM_FATAL", "frobnicate");
        test_object(l);
    }
}

static void test_deep(struct llvm *l)
{
    begin("define void @f(ptr %p) {\n  %x = load ");
    for (int k = 0; k < 65; k++)
        add("{ ");
    expect_failure(l, buf_text(&text), SK_ERR_UNSUPPORTED, "LLVM_DEEP", "more than 64 deep");

    /* Ifs within ifs, loops within loops, long chains. */
    begin("define i64 @f(ptr %p, i64 %a) {\nentry:\n");
    for (int k = 0; k < 2000; k++)
        buf_fmt(&text,
                "  %%l%d = load i64, ptr %%p\n  %%c%d = icmp ugt i64 %%l%d, %d\n  br i1 %%c%d, label %%t%d, label "
                "%%e%d\nt%d:\n",
                k, k, k, k, k, k, k, k);
    add("  br label %e1999\n");
    for (int k = 1999; k >= 0; k--) {
        buf_fmt(&text, "e%d:\n  store i64 %d, ptr %%p\n", k, k);
        if (k)
            buf_fmt(&text, "  br label %%e%d\n", k - 1);
    }
    for (int k = 0; k < 150; k++)
        buf_fmt(&text, "  br label %%h%d\nh%d:\n  %%i%d = phi i64 [ 0, %%%c%d ], [ %%n%d, %%x%d ]\n", k, k, k,
                k ? 'h' : 'e', k ? k - 1 : 0, k, k);
    add("  store i64 %a, ptr %p\n  br label %x149\n");
    for (int k = 149; k >= 0; k--)
        buf_fmt(&text,
                "x%d:\n  %%n%d = add i64 %%i%d, 1\n  %%z%d = icmp ult i64 %%n%d, 9\n  br i1 %%z%d, label %%h%d, label "
                "%%%c%d\n",
                k, k, k, k, k, k, k, k ? 'x' : 'y', k ? k - 1 : 0);
    add("y0:\n  %s0 = add i64 %a, 1\n");
    for (int k = 1; k < 1000; k++)
        buf_fmt(&text, "  %%s%d = %s i64 %%s%d, %%a\n", k, k % 2 ? "mul" : "add", k - 1);
    add("  ret i64 %s999\n}\n");
    for (int effort = 0; effort <= LLVM_LEAST; effort++) {
        char *out = NULL;
        size_t size;
        sk_error err = {0};
        CHECK_EQ(compile(l, buf_text(&text), (enum llvm_effort)effort, LLVM_OBJECT, &out, &size, &err), SK_OK);
        if (out)
            drop(out, size, LLVM_OBJECT);
        else
            printf("%s\n", err.message);
    }

    begin("; ");
    while (text.n <= (16u << 20))
        add("a long comment, a long comment, a long comment, a long comment, a long comment, a long comment, a long "
            "comment\n; ");
    expect_failure(l, buf_text(&text), SK_ERR_UNSUPPORTED, "LLVM_LARGE", "at most 16777216");
    begin("");
}

/* ---- threads ---- */

struct worker {
    struct llvm *l;
    const char *object;
    size_t size;
    int wrong;
};

static void *compile_often(void *argument)
{
    struct worker *const w = argument;
    struct mem mine;
    jmp_buf out_of_memory;
    mem_init(&mine, NULL);
    if (_setjmp(out_of_memory)) {
        w->wrong++;
        return NULL;
    }
    mine.recover = &out_of_memory;
    for (int k = 0; k < 6; k++) {
        char *out;
        size_t size;
        if (k == 3) { /* one that fails must not disturb the others */
            w->wrong += llvm_compile(w->l, fatal, strlen(fatal), LLVM_QUICK, LLVM_OBJECT, &mine, &out, &size, NULL) !=
                        SK_ERR_DEVICE;
            continue;
        }
        if (llvm_compile(w->l, kernel, strlen(kernel), LLVM_FULL, LLVM_OBJECT, &mine, &out, &size, NULL) != SK_OK) {
            w->wrong++;
            continue;
        }
        w->wrong += size != w->size || memcmp(out, w->object, size) != 0;
        mem_free(&mine, out, size);
    }
    w->wrong += mine.live != 0;
    return NULL;
}

static void test_threads(struct llvm *l)
{
    char *out;
    size_t size;
    sk_error err;
    CHECK_EQ(compile(l, kernel, LLVM_FULL, LLVM_OBJECT, &out, &size, &err), SK_OK);
    struct worker worker[4];
    pthread_t thread[4];
    for (int k = 0; k < 4; k++) {
        worker[k] = (struct worker){l, out, size, 0};
        CHECK(pthread_create(&thread[k], NULL, compile_often, &worker[k]) == 0);
    }
    for (int k = 0; k < 4; k++) { /* forks among compiles */
        (void)fflush(stdout);
        const pid_t child = fork();
        if (child == 0)
            _exit(compile_here());
        CHECK_EQ(child_result(child), 0);
    }
    for (int k = 0; k < 4; k++) {
        CHECK(pthread_join(thread[k], NULL) == 0);
        CHECK_EQ(worker[k].wrong, 0);
    }
    drop(out, size, LLVM_OBJECT);
}

/* ---- memory, signals, output ---- */

/* With the k-th allocation failing. True: there is no k-th. */
static bool compile_with(struct llvm *l, long k)
{
    struct faulty faulty = {.left = k};
    const sk_allocator allocator = {faulty_allocate, faulty_resize, faulty_release, &faulty};
    struct mem m;
    mem_init(&m, &allocator);
    char *out = NULL;
    size_t size = 0;
    sk_error err = {0};
    sk_status status;
    MEM_GUARD(&m, &err, status, llvm_compile(l, kernel, strlen(kernel), LLVM_LEAST, LLVM_ASM, &m, &out, &size, &err));
    CHECK_EQ(status, faulty.failed ? SK_ERR_MEMORY : SK_OK);
    if (status == SK_OK)
        mem_free(&m, out, size + 1);
    CHECK_EQ(faulty.live, 0);
    CHECK(!faulty.wrong_size);
    return !faulty.failed;
}

static void test_memory(struct llvm *l)
{
    long k = 0;
    while (!compile_with(l, k) && k < 100)
        k++;
    CHECK(k >= 2 && k < 100); /* the text, the result */
}

static void handlers(struct sigaction *out)
{
    for (int k = 1; k < 32; k++)
        (void)sigaction(k, NULL, &out[k]);
}

static int run(void)
{
    struct llvm *l, *second;
    sk_error err = {0};
    char path[1024];
    struct buf reason;
    buf_init(&reason, &memory);
    test_find();
    if (!llvm_find(path, sizeof path, &reason)) {
        printf("skipped: %s\n", buf_text(&reason));
        buf_free(&reason);
        return check_done();
    }
    buf_free(&reason);
    test_fork_and_exit();

    struct sigaction before[32], after[32];
    memset(before, 0, sizeof before);
    memset(after, 0, sizeof after);
    handlers(before);
    llvm_prefetch();
    CHECK_EQ(llvm_open(&memory, &l, &err), SK_OK);
    if (err.status != SK_OK) {
        printf("%s\n", err.message);
        return check_done();
    }
    CHECK_EQ(llvm_open(&memory, &second, &err), SK_OK);
    CHECK(l == second);
    llvm_close(second);
    llvm_close(NULL);
    llvm_prefetch();
    printf("LLVM %s for %s\n", llvm_version(l), llvm_cpu(l));
    CHECK_EQ_STR(llvm_path(l), path);
    CHECK(llvm_major(l) >= 16 && strtoul(llvm_version(l), NULL, 10) == llvm_major(l));
    CHECK_EQ(llvm_tested(l), llvm_major(l) == 19 || llvm_major(l) == 22);
    CHECK(*llvm_cpu(l) && *llvm_features(l) && *llvm_triple(l));

    /* LLVM must print nothing. */
    char silent[] = "/tmp/spork-llvm-XXXXXX";
    const int file = mkstemp(silent), was = dup(2);
    CHECK(file >= 0 && was >= 0 && dup2(file, 2) == 2);
    buf_init(&text, &memory);
    test_object(l);
    test_attributes(l);
    test_unroll(l);
    test_refused(l);
    test_fatal(l);
    test_deep(l);
    test_threads(l);
    test_memory(l);
    buf_free(&text);
    CHECK(dup2(was, 2) == 2 && close(was) == 0);
    struct stat printed;
    CHECK(fstat(file, &printed) == 0 && printed.st_size == 0);
    CHECK(close(file) == 0 && unlink(silent) == 0);
    handlers(after);
    for (int k = 1; k < 32; k++)
        CHECK(before[k].sa_handler == after[k].sa_handler && before[k].sa_flags == after[k].sa_flags);
    CHECK_EQ(memory.live, 0);
    llvm_close(l);
    return check_done();
}

int main(void)
{
    mem_init(&memory, NULL);
    if (_setjmp(no_memory)) {
        printf("out of memory\n");
        return 1;
    }
    memory.recover = &no_memory;
    return run();
}
