/* session.c - which kernel this thread traces now. */
#include "state.h"

int session_open(struct state *st, struct session *s, struct mem *mem)
{
    memset(s, 0, sizeof *s);
    s->mem = mem;
    struct trace **const t = &s->t;
    if (TRACE(s, (*t = trace_new(mem), SK_OK)) != SK_OK) {
        raise_error(st, &s->err);
        return -1;
    }
    s->thread = PyThread_get_thread_ident();
    s->id = ++st->last_session;
    s->unit = UINT32_MAX;
    s->outer = st->sessions;
    st->sessions = s;
    return 0;
}

void session_close(struct state *st, struct session *s)
{
    for (struct session **at = &st->sessions; *at; at = &(*at)->outer)
        if (*at == s) {
            *at = s->outer;
            break;
        }
    trace_free(s->t);
    s->t = NULL;
    device_fn_variants_free(s);
    code_table_free(&s->codes);
}

struct session *session_find(struct state *st)
{
    const unsigned long thread = PyThread_get_thread_ident();
    struct session *s = st->sessions;
    while (s && s->thread != thread)
        s = s->outer;
    return s;
}

int session_raise_pending(struct state *st, struct session *s)
{
    if (!s->pending.status)
        return 0;
    raise_error(st, &s->pending);
    return -1;
}

PyObject *session_call(struct state *st, struct session *s, PyObject *callable, PyObject *args)
{
    const PyFrameObject *const outer = s->caller;
    s->caller = PyEval_GetFrame();
    PyObject *result = args ? PyObject_Call(callable, args, NULL) : PyObject_CallNoArgs(callable);
    s->caller = outer;
    if (result && session_raise_pending(st, s) < 0)
        Py_CLEAR(result);
    return result;
}

struct session *session_enter(struct state *st, const char *what)
{
    struct session *s = session_find(st);
    if (!s) {
        RAISE(st, OUTSIDE_KERNEL, what);
        return NULL;
    }
    s->refused_index = NULL;
    if (place_session(st, s) < 0 || session_raise_pending(st, s) < 0)
        return NULL;
    return s;
}

static int unknown_argument(struct state *st, const struct arg_spec *spec, PyObject *name)
{
    char known[200] = "";
    for (unsigned k = 0; spec->names[k]; k++) {
        const size_t n = strlen(known);
        PyOS_snprintf(known + n, sizeof known - n, "%s%s", k ? ", " : "", spec->names[k]);
    }
    return RAISE_INT(st, UNKNOWN_ARGUMENT, spec->function, PyUnicode_AsUTF8(name), "; it has ", known);
}

int take_args(struct state *st, const struct arg_spec *spec, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
              PyObject **out)
{
    unsigned count = 0;
    while (spec->names[count])
        out[count++] = NULL;
    if (n > (Py_ssize_t)spec->positional)
        return RAISE_INT(st, TOO_MANY_ARGUMENTS, spec->function, spec->positional, (int)n);
    for (Py_ssize_t i = 0; i < n; i++)
        out[i] = args[i];
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        unsigned k = 0;
        while (k < count && PyUnicode_CompareWithASCIIString(name, spec->names[k]) != 0)
            k++;
        if (k == count)
            return unknown_argument(st, spec, name);
        if (out[k])
            return RAISE_INT(st, ARGUMENT_TWICE, spec->function, spec->names[k]);
        out[k] = args[n + i];
    }
    for (unsigned k = 0; k < spec->required; k++)
        if (!out[k])
            return RAISE_INT(st, ARGUMENT_MISSING, spec->function, spec->names[k]);
    return 0;
}
