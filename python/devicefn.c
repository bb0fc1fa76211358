/* devicefn.c - sk.device_fn: functions that kernels call. Traced into the calling kernel's module once for each kind of
 * pointers they are called with. */
#include "kernel.h"

struct device_fn {
    PyObject_HEAD
    PyObject *fn, *dict, *weak;
    struct signature sig;
};

struct device_fn_variant {
    struct device_fn_variant *next;
    PyObject *fn; /* owned */
    uint32_t func;
    bool done; /* false while it is being traced: a call is recursion */
    uint8_t space[MAX_ARGS];
};

static struct device_fn *device_fn_of(PyObject *o)
{
    return (struct device_fn *)o;
}

static const char *fn_name(struct state *st, PyObject *fn, PyObject **held)
{
    *held = PyObject_GetAttr(fn, st->str.__name__);
    const char *text = *held && PyUnicode_Check(*held) ? PyUnicode_AsUTF8(*held) : NULL;
    if (!text)
        PyErr_Clear();
    return text ? text : "function";
}

/* As functools does: the object's own __module__ is its function's, that of its type stays the package's. */
int own_module(PyObject *fn, PyObject **dict)
{
    PyObject *name = PyObject_GetAttrString(fn, "__module__");
    if (!name)
        return -1;
    *dict = PyDict_New();
    const int status = *dict ? PyDict_SetItemString(*dict, "__module__", name) : -1;
    Py_DECREF(name);
    return status;
}

PyObject *device_fn_new(PyObject *module, PyObject *fn)
{
    struct state *st = state_of_module(module);
    struct device_fn *d = PyObject_GC_New(struct device_fn, st->type.device_fn);
    if (!d)
        return NULL;
    d->fn = Py_NewRef(fn);
    d->dict = d->weak = NULL;
    memset(&d->sig, 0, sizeof d->sig);
    PyObject_GC_Track(d);
    if (signature_read(st, fn, true, false, &d->sig) < 0 || own_module(fn, &d->dict) < 0)
        Py_CLEAR(d);
    return (PyObject *)d;
}

void device_fn_variants_free(struct session *s)
{
    while (s->variants) {
        struct device_fn_variant *v = s->variants;
        s->variants = v->next;
        Py_DECREF(v->fn);
        PyMem_Free(v);
    }
}

/* ---- tracing one ------------------------------------------------------------------------------------------------- */

static sk_status begin(struct session *s, const struct device_fn *d, const char *name, const uint8_t *space,
                       uint32_t *func, struct tv *v)
{
    const struct trace_func_desc desc = {.name = name,
                                         .result = d->sig.result ? dtype_of(d->sig.result)->type : TYPE_VOID};
    trace_place(s->t, trace_file(s->t, d->sig.file), d->sig.line, 0);
    TRY(trace_begin(s->t, &desc, func, &s->err));
    for (unsigned i = 0; i < d->sig.n; i++) {
        const struct param_spec *p = &d->sig.param[i];
        const bool pointer = ir_type_is_pointer(p->type);
        const struct trace_param_desc param = {.name = p->text,
                                               .type = pointer ? TYPE_POINTER(space[i]) : p->type,
                                               .elem = pointer ? dtype_of(p->dtype)->type : TYPE_VOID,
                                               .kind = PARAM_VALUE,
                                               .atomic = pointer && dtype_of(p->dtype)->atomic};
        const sk_status status = trace_param(s->t, &param, &v[i], &s->err);
        if (status != SK_OK) {
            trace_abandon(s->t);
            return status;
        }
    }
    return SK_OK;
}

/* The arguments for the Python function. */
static PyObject *arguments(struct state *st, const struct session *s, const struct device_fn *d, const struct tv *v)
{
    PyObject *args = PyTuple_New(d->sig.n);
    for (unsigned i = 0; args && i < d->sig.n; i++) {
        const struct param_spec *p = &d->sig.param[i];
        const bool pointer = ir_type_is_pointer(p->type);
        PyObject *o = traced_new(pointer ? st->type.pointer : st->type.value, s, v[i], pointer ? p->dtype : NULL);
        if (!o) {
            Py_DECREF(args);
            return NULL;
        }
        PyTuple_SET_ITEM(args, i, o);
    }
    return args;
}

static sk_status end(struct session *s, const struct tv *result)
{
    if (result)
        TRY(trace_return(s->t, result, &s->err));
    return trace_end(s->t, &s->err);
}

/* Runs the Python function and returns what it returned from the traced one. */
static int trace_body(struct state *st, struct session *s, const struct device_fn *d, PyObject *args, const char *name)
{
    PyObject *result = session_call(st, s, d->fn, args);
    struct tv v;
    int status = -1;
    if (!result)
        goto done;
    if (result != Py_None) {
        if (!d->sig.result) {
            RAISE_AT(st, ((struct err_place){d->sig.file, d->sig.line, 0}), RESULT_NOT_DECLARED, name);
            goto done;
        }
        if (operand(st, s, result, &v) < 0)
            goto done;
    }
    if (TRACE(s, end(s, result != Py_None ? &v : NULL)) == SK_OK)
        status = 0;
    else
        raise_error(st, &s->err);
done:
    Py_XDECREF(result);
    return status;
}

/* Gives the function up; the exception stays. */
static int abandon(struct session *s)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    (void)TRACE(s, (trace_abandon(s->t), SK_OK));
    PyErr_Restore(type, value, traceback);
    return -1;
}

NOINLINE static int trace_variant(struct state *st, struct session *s, struct device_fn *d, struct device_fn_variant *v,
                                  const char *name)
{
    struct tv param[MAX_ARGS] = {{0}};
    if (TRACE(s, begin(s, d, name, v->space, &v->func, param)) != SK_OK) {
        raise_error(st, &s->err);
        return -1;
    }
    PyObject *args = arguments(st, s, d, param);
    const int status = args ? trace_body(st, s, d, args, name) : -1;
    Py_XDECREF(args);
    return status == 0 ? 0 : abandon(s);
}

static struct device_fn_variant *find_variant(struct session *s, PyObject *fn, const uint8_t *space, unsigned n)
{
    for (struct device_fn_variant *v = s->variants; v; v = v->next)
        if (v->fn == fn && memcmp(v->space, space, n) == 0)
            return v;
    return NULL;
}

static void forget_variant(struct session *s, struct device_fn_variant *gone)
{
    for (struct device_fn_variant **at = &s->variants; *at; at = &(*at)->next)
        if (*at == gone) {
            *at = gone->next;
            Py_DECREF(gone->fn);
            PyMem_Free(gone);
            return;
        }
}

/* The function for these address spaces, traced if it is new. Not inlined, nor is trace_variant: a recovery point makes
 * the locals of its function uncertain. */
NOINLINE static struct device_fn_variant *get_variant(struct state *st, struct session *s, struct device_fn *d,
                                                      const char *name, const uint8_t *space)
{
    struct device_fn_variant *v = find_variant(s, (PyObject *)d, space, d->sig.n);
    if (v && !v->done)
        (void)RAISE(st, RECURSION, name);
    if (v)
        return v->done ? v : NULL;
    v = PyMem_Calloc(1, sizeof *v);
    if (!v) {
        PyErr_NoMemory();
        return NULL;
    }
    v->fn = Py_NewRef(d);
    memcpy(v->space, space, sizeof v->space);
    v->next = s->variants;
    s->variants = v;
    if (trace_variant(st, s, d, v, name) < 0) {
        forget_variant(s, v);
        return NULL;
    }
    v->done = true;
    return place_session(st, s) < 0 ? NULL : v;
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

/* The argument of each parameter, borrowed. */
static int bind_args(struct state *st, const struct signature *sig, const char *name, PyObject *args, PyObject *kwargs,
                     PyObject **out)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(args), n_all = n + (kwargs ? PyDict_GET_SIZE(kwargs) : 0);
    PyObject *key, *value;
    Py_ssize_t at = 0;
    for (unsigned i = 0; i < sig->n; i++)
        out[i] = i < (unsigned)n ? PyTuple_GET_ITEM(args, i) : NULL;
    while (kwargs && PyDict_Next(kwargs, &at, &key, &value)) {
        unsigned i = 0;
        char known[400];
        while (i < sig->n && PyUnicode_Compare(sig->param[i].name, key) != 0)
            i++;
        if (i == sig->n) {
            signature_names(sig, known, sizeof known);
            return RAISE_INT(st, UNKNOWN_ARGUMENT, name, PyUnicode_AsUTF8(key), "; it has ", known);
        }
        if (out[i])
            return RAISE_INT(st, ARGUMENT_TWICE, name, sig->param[i].text);
        out[i] = value;
    }
    if (n_all != (Py_ssize_t)sig->n)
        return RAISE_INT(st, ARGUMENT_COUNT, name, sig->n, (unsigned)n_all);
    for (unsigned i = 0; i < sig->n; i++)
        if (!out[i])
            return RAISE_INT(st, ARGUMENT_MISSING, name, sig->param[i].text);
    return 0;
}

static int take_pointer(struct state *st, struct session *s, const struct param_spec *p, const char *name, PyObject *o,
                        struct tv *out, uint8_t *space)
{
    if (Py_TYPE(o) != st->type.pointer && Py_TYPE(o) != st->type.array)
        return RAISE_INT(st, POINTER_WANTED, p->text, name, type_name(o));
    if (pointer_operand(st, o, name, out) < 0)
        return -1;
    *space = (uint8_t)ir_type_space(trace_type(s->t, *out));
    const struct dtype *want = dtype_of(p->dtype), *got = dtype_of(traced_of(o)->dtype);
    if (want != got)
        return RAISE_INT(st, POINTER_DTYPE, p->text, name, want->name, got->name);
    if (p->space != SPACE_DEVICE && p->space != (enum space) * space)
        return RAISE_INT(st, POINTER_SPACE, p->text, name, space_name[p->space], space_name[*space]);
    return 0;
}

static PyObject *call_in_session(struct state *st, struct session *s, struct device_fn *d, const char *name,
                                 PyObject *args, PyObject *kwargs)
{
    PyObject *given[MAX_ARGS];
    struct tv a[MAX_ARGS], out = {.kind = TV_NONE};
    uint8_t space[MAX_ARGS] = {0};
    if (d->sig.n > MAX_ARGS)
        return RAISE(st, DEVICE_FN_TOO_LONG, name, MAX_ARGS);
    if (bind_args(st, &d->sig, name, args, kwargs, given) < 0)
        return NULL;
    for (unsigned i = 0; i < d->sig.n; i++) {
        const struct param_spec *p = &d->sig.param[i];
        const int status = ir_type_is_pointer(p->type) ? take_pointer(st, s, p, name, given[i], &a[i], &space[i])
                                                       : operand(st, s, given[i], &a[i]);
        if (status < 0)
            return NULL;
    }
    const struct device_fn_variant *v = get_variant(st, s, d, name, space);
    if (!v)
        return NULL;
    const sk_status status = TRACE(s, trace_call(s->t, v->func, d->sig.n, a, &out, &s->err));
    return d->sig.result ? traced_result(st, s, status, &out) : traced_none(st, s, status);
}

static PyObject *device_fn_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct state *st = STATE_OF(self);
    struct device_fn *d = device_fn_of(self);
    PyObject *held, *result = NULL;
    const char *name = fn_name(st, d->fn, &held);
    struct session *s = session_enter(st, name);
    if (s && (d->sig.resolved || signature_read(st, d->fn, true, true, &d->sig) == 0))
        result = call_in_session(st, s, d, name, args, kwargs);
    Py_XDECREF(held);
    return result;
}

/* ---- the type ---------------------------------------------------------------------------------------------------- */

static int device_fn_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(device_fn_of(self)->fn);
    Py_VISIT(device_fn_of(self)->dict);
    return 0;
}

static int device_fn_clear(PyObject *self)
{
    Py_CLEAR(device_fn_of(self)->fn);
    Py_CLEAR(device_fn_of(self)->dict);
    return 0;
}

static void device_fn_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (device_fn_of(self)->weak)
        PyObject_ClearWeakRefs(self);
    (void)device_fn_clear(self);
    signature_free(&device_fn_of(self)->sig);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *device_fn_repr(PyObject *self)
{
    PyObject *held, *text;
    text = PyUnicode_FromFormat("<spork.DeviceFn %s>", fn_name(STATE_OF(self), device_fn_of(self)->fn, &held));
    Py_XDECREF(held);
    return text;
}

static PyObject *get_from_fn(PyObject *self, void *name)
{
    return PyObject_GetAttrString(device_fn_of(self)->fn, name);
}

static PyObject *device_fn_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttr(device_fn_of(self)->fn, STATE_OF(self)->str.__qualname__);
}

static PyMemberDef device_fn_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(struct device_fn, fn), READONLY, "The Python function."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct device_fn, weak), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(struct device_fn, dict), READONLY, NULL},
    {0}};
static PyGetSetDef device_fn_getset[] = {{"__name__", get_from_fn, NULL, NULL, "__name__"},
                                         {"__qualname__", get_from_fn, NULL, NULL, "__qualname__"},
                                         {"__doc__", get_from_fn, NULL, NULL, "__doc__"},
                                         {0}};
static PyMethodDef device_fn_methods[] = {{"__reduce__", device_fn_reduce, METH_NOARGS, NULL}, {0}};
static PyType_Slot device_fn_slots[] = {
    {Py_tp_dealloc, device_fn_dealloc}, {Py_tp_traverse, device_fn_traverse}, {Py_tp_clear, device_fn_clear},
    {Py_tp_call, device_fn_call},       {Py_tp_repr, device_fn_repr},         {Py_tp_members, device_fn_members},
    {Py_tp_getset, device_fn_getset},   {Py_tp_methods, device_fn_methods},   {0, NULL}};
PyType_Spec device_fn_spec = {"spork.DeviceFn", sizeof(struct device_fn), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                              device_fn_slots};
