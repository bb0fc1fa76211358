/* launch.c - runs a kernel: arguments, the GIL, and signals.
 *
 * A launch that is over in some microseconds keeps the GIL: giving it up and taking it back would cost more, and threads that
 * wait for it would be woken for nothing. All others release it.
 *
 * Python's signal handlers run only in the main thread, and only when it executes Python. So a launch of the main thread
 * that may take long runs in a helper thread, while the main thread looks for signals now and then. The helper is kept:
 * making a thread takes longer than most launches.
 */
#include "kernel.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { SIGNAL_POLL_MS = 20 };
/* Threads times nodes of a kernel without loops that take some milliseconds at most when compiled, a fraction of a second when
 * interpreted. */
#define MUCH_WORK ((uint64_t)1 << 24)

/* ---- in a helper thread ------------------------------------------------------------------------------------------ */

struct job {
    sk_pipeline *pipeline;
    const sk_launch *launch;
    sk_error *err;
    sk_status status;
};

struct launch_helper {
    pthread_t thread;
    pid_t process; /* a child of fork has the memory, not the thread */
    pthread_mutex_t mutex;
    pthread_cond_t begun, ended;
    struct job *job; /* null: none, or it is done */
    bool busy, quit; /* busy: the main thread's alone */
};

static void *serve(void *argument)
{
    struct launch_helper *const h = argument;
    pthread_mutex_lock(&h->mutex);
    while (!h->quit) {
        struct job *const j = h->job;
        if (!j) {
            pthread_cond_wait(&h->begun, &h->mutex);
            continue;
        }
        pthread_mutex_unlock(&h->mutex);
        j->status = sk_pipeline_launch(j->pipeline, j->launch, j->err);
        pthread_mutex_lock(&h->mutex);
        h->job = NULL;
        pthread_cond_signal(&h->ended);
    }
    pthread_mutex_unlock(&h->mutex);
    return NULL;
}

static bool start(struct launch_helper *h)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the other threads */
    const bool started = pthread_create(&h->thread, NULL, serve, h) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static struct launch_helper *helper_new(void)
{
    struct launch_helper *const h = PyMem_RawCalloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->process = getpid();
    pthread_mutex_init(&h->mutex, NULL);
    pthread_cond_init(&h->begun, NULL);
    pthread_cond_init(&h->ended, NULL);
    if (start(h))
        return h;
    PyMem_RawFree(h);
    return NULL;
}

/* What was another process's stays where it is: its lock may be held. */
void launch_helper_free(struct launch_helper *h)
{
    if (!h || h->process != getpid())
        return;
    pthread_mutex_lock(&h->mutex);
    h->quit = true;
    pthread_cond_signal(&h->begun);
    pthread_mutex_unlock(&h->mutex);
    pthread_join(h->thread, NULL);
    pthread_cond_destroy(&h->begun);
    pthread_cond_destroy(&h->ended);
    pthread_mutex_destroy(&h->mutex);
    PyMem_RawFree(h);
}

/* The one kept, or another if it is busy: a signal's handler launches while a launch is waited for. Null: no thread. */
static struct launch_helper *helper_take(struct state *st)
{
    struct launch_helper *h = st->helper;
    if (!h || h->process != getpid())
        h = st->helper = helper_new();
    else if (h->busy)
        h = helper_new();
    if (h)
        h->busy = true;
    return h;
}

static void helper_give(const struct state *st, struct launch_helper *h)
{
    h->busy = false;
    if (h != st->helper)
        launch_helper_free(h);
}

static void begin_job(struct launch_helper *h, struct job *j)
{
    pthread_mutex_lock(&h->mutex);
    h->job = j;
    pthread_cond_signal(&h->begun);
    pthread_mutex_unlock(&h->mutex);
}

/* False: not done after a while. */
static bool wait_job(struct launch_helper *h)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += SIGNAL_POLL_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&h->mutex);
    int status = 0;
    while (h->job && status != ETIMEDOUT)
        status = pthread_cond_timedwait(&h->ended, &h->mutex, &until);
    const bool done = !h->job;
    pthread_mutex_unlock(&h->mutex);
    return done;
}

/* Launches and looks for signals meanwhile. True: a handler raised, and its exception is set. */
static bool launch_watched(struct state *st, struct job *j, sk_launch *launch)
{
    volatile int stop = 0;
    bool raised = false;
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    struct launch_helper *const h = helper_take(st);
    launch->stop = &stop;
    Py_BEGIN_ALLOW_THREADS if (h)
    {
        begin_job(h, j);
        while (!wait_job(h)) {
            Py_BLOCK_THREADS if (!raised && PyErr_CheckSignals() < 0)
            {
                PyErr_Fetch(&type, &value, &traceback);
                raised = true;
                stop = 1;
            }
            Py_UNBLOCK_THREADS
        }
    }
    else
    {
        j->status = sk_pipeline_launch(j->pipeline, launch, j->err);
    }
    Py_END_ALLOW_THREADS if (h) helper_give(st, h);
    launch->stop = NULL;
    if (raised)
        PyErr_Restore(type, value, traceback);
    return raised;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static bool may_take_long(const struct kernel *k, const sk_launch *l)
{
    const sk_size n = l->grid, g = l->threadgroup;
    uint64_t threads = times(times(n.x, n.y), n.z);
    if (!l->threads)
        threads = times(threads, times(times(g.x, g.y), g.z));
    return k->has_loop || times(threads, k->n_nodes) > MUCH_WORK;
}

/* ---- a launch ---------------------------------------------------------------------------------------------------- */

static int take_all(struct state *st, const struct kernel *k, PyObject *const *args, struct held_arg *held, sk_arg *out,
                    unsigned *n_held)
{
    unsigned n = 0;
    for (unsigned i = 0; i < k->sig.n; i++) {
        const struct param_spec *p = &k->sig.param[i];
        if (p->kind == PARAM_ATTRIBUTE)
            continue;
        held[n].kind = HELD_NOTHING;
        held[n].object = NULL;
        *n_held = n + 1;
        if (arg_take(st, p, &k->args[n], args[n], &held[n], &out[n]) < 0)
            return -1;
        n++;
    }
    return 0;
}

/* A kernel that its device cannot compile says so, once. */
static int warn_note(struct kernel *k)
{
    const char *const note = k->noted ? NULL : sk_pipeline_note(k->pipeline);
    if (!note)
        return 0;
    k->noted = true;
    return WARN(INTERPRETED, PyUnicode_AsUTF8(k->name), note);
}

/* Releases the GIL. 0 or -1. */
static int launch_long(struct state *st, struct kernel *k, sk_launch *launch, sk_error *err)
{
    struct job j = {k->pipeline, launch, err, SK_OK};
    bool raised = false;
    if (may_take_long(k, launch) && PyThread_get_thread_ident() == st->main_thread) {
        raised = launch_watched(st, &j, launch);
    } else {
        AWAY(st, j.status = sk_pipeline_launch(k->pipeline, launch, err));
    }
    if (raised)
        return -1;
    if (j.status == SK_OK)
        return warn_note(k);
    raise_error(st, err);
    return -1;
}

static int launch_with(struct state *st, struct kernel *k, const struct geometry *g, const sk_arg *arg)
{
    sk_launch launch = {.grid = g->grid,
                        .threadgroup = g->chosen ? geometry_group(k->pipeline, g) : g->threadgroup,
                        .threads = g->threads,
                        .n_args = k->sig.n_args,
                        .args = arg,
                        .unchecked = g->unchecked && k->may_uncheck};
    sk_error err;
    err.status = SK_OK; /* the rest is written with the first error */
    if (k->on_cpu)
        k->latest = launch.threadgroup;
    if (!sk_pipeline_is_short(k->pipeline, &launch))
        return launch_long(st, k, &launch, &err);
    if (sk_pipeline_launch(k->pipeline, &launch, &err) == SK_OK)
        return 0;
    raise_error(st, &err);
    return -1;
}

PyObject *kernel_launch(struct state *st, struct kernel *k, const struct geometry *g, PyObject *const *args,
                        Py_ssize_t n)
{
    struct held_arg held[MAX_ARGS];
    sk_arg arg[MAX_ARGS];
    unsigned n_held = 0;
    if (st->sessions && session_find(st))
        return RAISE(st, LAUNCH_WHILE_TRACING, PyUnicode_AsUTF8(k->name));
    if (SK_UNLIKELY(!k->pipeline) && (device_warn(st) < 0 || kernel_prepare(st, k) < 0))
        return NULL;
    if (n != (Py_ssize_t)k->sig.n_args || k->sig.n_args > MAX_ARGS)
        return RAISE(st, ARG_COUNT, PyUnicode_AsUTF8(k->name), (size_t)k->sig.n_args, (size_t)n);
    const bool done = take_all(st, k, args, held, arg, &n_held) == 0 && launch_with(st, k, g, arg) == 0;
    for (unsigned i = 0; i < n_held; i++)
        if (held[i].kind != HELD_NOTHING)
            arg_release(&held[i]);
    return done ? Py_NewRef(Py_None) : NULL;
}
