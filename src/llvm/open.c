/* open.c - opens the library, once a process, and keeps forks out of its way.
 *
 * The state below belongs to the process: so do a shared library, its tables of code generators, its one handler of fatal errors and
 * fork.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* syscall */
#endif
#include "llvm/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(__x86_64__)
#define LLVM_TARGET "X86"
#define LLVM_TRIPLE "x86_64-unknown-linux-gnu" /* our own loader takes ELF objects, whatever the system */
#elif defined(__aarch64__)
#define LLVM_TARGET "AArch64"
#define LLVM_TRIPLE "aarch64-unknown-linux-gnu"
#else
#define LLVM_TARGET ""
#define LLVM_TRIPLE ""
#endif

enum state { CLOSED, OPENING, OPEN };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* any of the following */
    enum state state;
    unsigned inside;  /* compiles within LLVM */
    unsigned forking; /* threads that fork or wait to: nobody new gets inside */
    bool ending;      /* the process exits: LLVM's static objects are being destroyed */
    struct llvm library;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- forks ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&process.lock);
    process.forking++;
    while (process.state == OPENING || process.inside)
        pthread_cond_wait(&process.changed, &process.lock);
}

static void after_fork(void)
{
    process.forking--;
    pthread_cond_broadcast(&process.changed);
    pthread_mutex_unlock(&process.lock);
}

static void after_fork_child(void)
{
    /* Threads that waited are not in the child: nobody waits, and no other thread forks. */
    process.forking = 0;
    (void)pthread_cond_init(&process.changed, NULL);
    pthread_mutex_unlock(&process.lock);
}

static void register_once(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork_child);
}

bool llvm_enter(struct llvm *l)
{
    pthread_mutex_lock(&process.lock);
    while (process.forking)
        pthread_cond_wait(&process.changed, &process.lock);
    const bool open = !process.ending;
    if (open && process.inside++ == 0)
        l->api.InstallFatalErrorHandler(llvm_on_fatal_error);
    pthread_mutex_unlock(&process.lock);
    return open;
}

void llvm_leave(struct llvm *l)
{
    pthread_mutex_lock(&process.lock);
    if (--process.inside == 0)
        l->api.ResetFatalErrorHandler();
    pthread_cond_broadcast(&process.changed);
    pthread_mutex_unlock(&process.lock);
}

/* ---- exits ---- */

/* An exit function that was registered after those of the library, hence runs before them. */
static void before_exit(void)
{
    pthread_mutex_lock(&process.lock);
    process.ending = true;
    while (process.inside)
        pthread_cond_wait(&process.changed, &process.lock);
    pthread_mutex_unlock(&process.lock);
}

/* While the library opens in the background none can be: exit would destroy objects that another thread is still making. What
 * a thread registers for its own end comes before all exit functions when it is the thread that exits. */
#ifdef __GLIBC__
extern int __cxa_thread_atexit_impl(void (*function)(void *), void *object, void *dso) __attribute__((weak));
extern char __dso_handle[] __attribute__((visibility("hidden")));

static void before_thread_end(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&process.lock);
    while (process.state == OPENING)
        pthread_cond_wait(&process.changed, &process.lock);
    /* Nor while something is compiled: objects made meanwhile would be destroyed before before_exit is called. */
    if (syscall(SYS_gettid) == getpid()) {
        process.ending = true;
        while (process.inside)
            pthread_cond_wait(&process.changed, &process.lock);
    }
    pthread_mutex_unlock(&process.lock);
}

static void wait_at_end(void)
{
    if (__cxa_thread_atexit_impl)
        (void)__cxa_thread_atexit_impl(before_thread_end, NULL, __dso_handle);
}
#else
static void wait_at_end(void)
{
}
#endif

/* ---- opening ---- */

static const struct symbol {
    const char *name;
    size_t offset;
} symbols[] = {
#define SYMBOL(result, name, ...) {"LLVM" #name, offsetof(struct llvm_api, name)},
#define TARGET_SYMBOL(name) {"LLVMInitialize" LLVM_TARGET #name, offsetof(struct llvm_api, Initialize##name)},
#include "llvm/symbols.def"
#undef SYMBOL
#undef TARGET_SYMBOL
};

static sk_status load_symbols(struct llvm *l, void *handle, sk_error *err)
{
    for (size_t k = 0; k < sizeof symbols / sizeof symbols[0]; k++) {
        void *const address = dlsym(handle, symbols[k].name);
        if (!address)
            return ERR(err, LLVM_SYMBOL, l->path, symbols[k].name, LLVM_OLDEST);
        memcpy((char *)&l->api + symbols[k].offset, &address, sizeof address);
    }
    unsigned minor, patch;
    l->api.GetVersion(&l->major, &minor, &patch);
    (void)snprintf(l->version, sizeof l->version, "%u.%u.%u", l->major, minor, patch);
    if (l->major < LLVM_OLDEST)
        return ERR(err, LLVM_OLD, l->version, l->path, LLVM_OLDEST);
    return SK_OK;
}

static sk_status begin_target(struct llvm *l, sk_error *err)
{
    const struct llvm_api *const api = &l->api;
    /* Tables in which a target is entered once, however often this is done. */
#define SYMBOL(result, name, ...)
#define TARGET_SYMBOL(name) api->Initialize##name();
#include "llvm/symbols.def"
#undef SYMBOL
#undef TARGET_SYMBOL
    l->triple = LLVM_TRIPLE;
    char *message = NULL;
    if (api->GetTargetFromTriple(l->triple, &l->target, &message)) {
        const sk_status status = ERR(err, LLVM_TARGET, l->version, l->triple, message ? message : "");
        api->DisposeMessage(message);
        return status;
    }
    l->cpu = api->GetHostCPUName();
    l->features = api->GetHostCPUFeatures();
    llvm_machine *const machine =
        api->CreateTargetMachine(l->target, l->triple, l->cpu, l->features, 0, LLVM_RELOC_PIC, LLVM_MODEL_SMALL);
    if (!machine)
        return ERR(err, LLVM_TARGET, l->version, l->triple, l->cpu);
    llvm_layout *const layout = api->CreateTargetDataLayout(machine);
    l->layout = api->CopyStringRepOfTargetData(layout);
    api->DisposeTargetData(layout);
    api->DisposeTargetMachine(machine);
    return SK_OK;
}

/* The file at l->path; all else in *l is zero. */
static sk_status load(struct llvm *l, sk_error *err)
{
    void *const handle = dlopen(l->path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *const why = dlerror();
        return ERR(err, LLVM_OPEN, l->path, why ? why : "unknown error");
    }
    /* It stays open even if it is of no use: closing such a library is more than it is tested for. */
    (void)atexit(before_exit);
    TRY(load_symbols(l, handle, err));
    return begin_target(l, err);
}

/* By the thread that claimed the opening: environment and file names are looked at here, not in the background. */
static sk_status find(struct llvm *l, sk_error *err)
{
    *l = (struct llvm){0};
    if (!*LLVM_TARGET)
        return ERR(err, LLVM_MACHINE);
    return llvm_search(l->path, sizeof l->path, err);
}

/* Ends what claim_opening began. */
static void end_opening(sk_status status)
{
    pthread_mutex_lock(&process.lock);
    process.state = status == SK_OK ? OPEN : CLOSED;
    pthread_cond_broadcast(&process.changed);
    pthread_mutex_unlock(&process.lock);
}

/* True: the caller opens. */
static bool claim_opening(bool wait)
{
    (void)pthread_once(&once, register_once);
    pthread_mutex_lock(&process.lock);
    while (wait && (process.state == OPENING || (process.state == CLOSED && process.forking)))
        pthread_cond_wait(&process.changed, &process.lock);
    const bool mine = process.state == CLOSED && !process.forking;
    if (mine)
        process.state = OPENING;
    pthread_mutex_unlock(&process.lock);
    return mine;
}

sk_status llvm_open(struct mem *mem, struct llvm **out, sk_error *err)
{
    (void)mem;
    struct llvm *const l = &process.library;
    if (claim_opening(true)) {
        wait_at_end();
        sk_status status = find(l, err);
        if (status == SK_OK)
            status = load(l, err);
        end_opening(status);
        TRY(status);
    }
    *out = l;
    return SK_OK;
}

void llvm_close(struct llvm *l)
{
    (void)l;
}

static void *prefetch(void *unused)
{
    end_opening(load(&process.library, NULL));
    return unused;
}

void llvm_prefetch(void)
{
    if (!claim_opening(false))
        return;
    const sk_status found = find(&process.library, NULL);
    if (found != SK_OK) {
        end_opening(found);
        return;
    }
    wait_at_end();
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the user's threads */
    pthread_t thread;
    const bool began = pthread_create(&thread, NULL, prefetch, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (began)
        (void)pthread_detach(thread);
    else
        end_opening(SK_ERR_MEMORY);
}

/* ---- what it is ---- */

const char *llvm_version(const struct llvm *l)
{
    return l->version;
}
unsigned llvm_major(const struct llvm *l)
{
    return l->major;
}
bool llvm_tested(const struct llvm *l)
{
    return l->major == 19 || l->major == 22;
}
const char *llvm_path(const struct llvm *l)
{
    return l->path;
}
const char *llvm_triple(const struct llvm *l)
{
    return l->triple;
}
const char *llvm_cpu(const struct llvm *l)
{
    return l->cpu;
}
const char *llvm_features(const struct llvm *l)
{
    return l->features;
}
