/* launch.c - runs a kernel: arguments, the GIL released, and signals.
 *
 * Python's signal handlers run only in the main thread, and only when it executes Python. So a launch of the main thread
 * that may take long runs in a helper thread, while the main thread looks for signals now and then.
 */
#include "kernel.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

enum { SIGNAL_POLL_MS = 50, MANY_THREADS = 100000 };

/* ---- in a helper thread ------------------------------------------------------------------------------------------ */

struct job {
    sk_pipeline *pipeline;
    const sk_launch *launch;
    sk_error *err;
    sk_status status;
    bool done;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
};

static void *run_job(void *argument)
{
    struct job *j = argument;
    const sk_status status = sk_pipeline_launch(j->pipeline, j->launch, j->err);
    pthread_mutex_lock(&j->mutex);
    j->status = status;
    j->done = true;
    pthread_cond_signal(&j->ended);
    pthread_mutex_unlock(&j->mutex);
    return NULL;
}

static bool wait_job(struct job *j)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += SIGNAL_POLL_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&j->mutex);
    int status = 0;
    while (!j->done && status != ETIMEDOUT)
        status = pthread_cond_timedwait(&j->ended, &j->mutex, &until);
    const bool done = j->done;
    pthread_mutex_unlock(&j->mutex);
    return done;
}

/* Launches and looks for signals meanwhile. True: a handler raised, and its exception is set. */
static bool launch_watched(sk_pipeline *pipeline, sk_launch *launch, sk_status *status, sk_error *err)
{
    volatile int stop = 0;
    bool raised = false;
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    struct job j = {.pipeline = pipeline, .launch = launch, .err = err};
    pthread_t thread;
    launch->stop = &stop;
    pthread_mutex_init(&j.mutex, NULL);
    pthread_cond_init(&j.ended, NULL);
    Py_BEGIN_ALLOW_THREADS if (pthread_create(&thread, NULL, run_job, &j) == 0)
    {
        while (!wait_job(&j)) {
            Py_BLOCK_THREADS if (!raised && PyErr_CheckSignals() < 0)
            {
                PyErr_Fetch(&type, &value, &traceback);
                raised = true;
                stop = 1;
            }
            Py_UNBLOCK_THREADS
        }
        pthread_join(thread, NULL);
    }
    else
    {
        run_job(&j);
    }
    Py_END_ALLOW_THREADS pthread_cond_destroy(&j.ended);
    pthread_mutex_destroy(&j.mutex);
    *status = j.status;
    if (raised)
        PyErr_Restore(type, value, traceback);
    return raised;
}

static bool may_take_long(const struct kernel *k, const struct geometry *g)
{
    uint64_t threads = (uint64_t)g->grid.x * g->grid.y;
    threads = threads < MANY_THREADS ? threads * g->grid.z : threads;
    if (!g->threads && threads < MANY_THREADS) {
        threads *= g->threadgroup.x;
        threads = threads < MANY_THREADS ? threads * g->threadgroup.y * g->threadgroup.z : threads;
    }
    return k->has_loop || threads >= MANY_THREADS;
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

PyObject *kernel_launch(struct state *st, struct kernel *k, const struct geometry *g, PyObject *const *args,
                        Py_ssize_t n)
{
    struct held_arg held[MAX_ARGS];
    sk_arg arg[MAX_ARGS];
    unsigned n_held = 0;
    PyObject *result = NULL;
    if (st->sessions && session_find(st))
        return RAISE(st, LAUNCH_WHILE_TRACING, PyUnicode_AsUTF8(k->name));
    if (!k->pipeline && kernel_prepare(st, k) < 0)
        return NULL;
    if (n != (Py_ssize_t)k->sig.n_args || k->sig.n_args > MAX_ARGS)
        return RAISE(st, ARG_COUNT, PyUnicode_AsUTF8(k->name), (size_t)k->sig.n_args, (size_t)n);
    if (take_all(st, k, args, held, arg, &n_held) == 0) {
        sk_launch launch = {
            .grid = g->grid, .threadgroup = g->threadgroup, .threads = g->threads, .n_args = (size_t)n, .args = arg};
        if (g->chosen && launch.threadgroup.x > sk_pipeline_max_threads(k->pipeline))
            launch.threadgroup.x = sk_pipeline_max_threads(k->pipeline);
        sk_error err;
        sk_status status = SK_OK;
        bool raised = false;
        memset(&err, 0, sizeof err);
        if (may_take_long(k, g) && PyThread_get_thread_ident() == st->main_thread) {
            raised = launch_watched(k->pipeline, &launch, &status, &err);
        } else {
            Py_BEGIN_ALLOW_THREADS status = sk_pipeline_launch(k->pipeline, &launch, &err);
            Py_END_ALLOW_THREADS
        }
        if (status == SK_OK && !raised)
            result = Py_NewRef(Py_None);
        else if (!raised)
            raise_error(st, &err);
    }
    for (unsigned i = 0; i < n_held; i++)
        if (held[i].kind != HELD_NOTHING)
            arg_release(&held[i]);
    return result;
}
