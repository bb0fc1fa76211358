/* code.c - a kernel's code: what Python's says will be compiled, and what the device cpu made of it for a reader. */
#include "kernel.h"

/* ---- what will be compiled ------------------------------------------------------------------------------------------ */

enum { MOST_DEPTH = 8 };

struct fingerprint {
    uint64_t word[2];
};

static void add_bytes(struct fingerprint *f, const void *bytes, size_t n)
{
    for (unsigned k = 0; k < 2; k++)
        f->word[k] = hash_bytes(hash_u64(f->word[k] + k, n), bytes, n);
}

static int add_object(struct state *st, struct fingerprint *f, PyObject *o, unsigned depth);

static int add_attribute(struct state *st, struct fingerprint *f, PyObject *o, PyObject *name, unsigned depth)
{
    PyObject *x = PyObject_GetAttr(o, name);
    const int status = x ? add_object(st, f, x, depth) : -1;
    Py_XDECREF(x);
    return status;
}

/* Instructions, constants and names. Not the place in the file: a kernel that moved is the same. */
static int add_code(struct state *st, struct fingerprint *f, PyObject *code, unsigned depth)
{
    PyObject *const names[] = {st->str.co_code, st->str.co_consts, st->str.co_names};
    for (unsigned k = 0; k < sizeof names / sizeof *names; k++)
        if (add_attribute(st, f, code, names[k], depth) < 0)
            return -1;
    return 0;
}

/* Of a constant in code. */
static int add_object(struct state *st, struct fingerprint *f, PyObject *o, unsigned depth)
{
    const char *const kind = Py_TYPE(o)->tp_name;
    add_bytes(f, kind, strlen(kind));
    if (PyBytes_Check(o)) {
        add_bytes(f, PyBytes_AS_STRING(o), (size_t)PyBytes_GET_SIZE(o));
    } else if (PyUnicode_Check(o)) {
        add_bytes(f, PyUnicode_DATA(o), (size_t)PyUnicode_GET_LENGTH(o) * (size_t)PyUnicode_KIND(o));
    } else if (PyTuple_Check(o) && depth < MOST_DEPTH) {
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(o); k++)
            if (add_object(st, f, PyTuple_GET_ITEM(o, k), depth + 1) < 0)
                return -1;
    } else if (PyCode_Check(o) && depth < MOST_DEPTH) {
        return add_code(st, f, o, depth + 1);
    } else if (PyLong_Check(o) || PyFloat_Check(o)) {
        PyObject *text = PyObject_Repr(o);
        if (!text)
            return -1;
        add_bytes(f, PyUnicode_DATA(text), (size_t)PyUnicode_GET_LENGTH(text));
        Py_DECREF(text);
    }
    return 0;
}

void expect_kernel(struct state *st, const struct kernel *k)
{
    struct fingerprint f = {{k->fast, k->no_contract}};
    sk_device *device;
    /* The default device is not settled by this: SPORK_DEVICE may still be set before the first launch. */
    if (PyFunction_Check(k->fn) && context_get(st) == 0 && sk_device_get(st->context, NULL, &device, NULL) == SK_OK &&
        add_code(st, &f, PyFunction_GET_CODE(k->fn), 0) == 0)
        sk_device_expect(device, f.word, sizeof f.word);
    if (PyErr_Occurred())
        PyErr_Clear();
}

/* ---- what became of it ---------------------------------------------------------------------------------------------- */

/* The device cpu; null: an exception says why it is not there. */
static sk_device *cpu_device(struct state *st, const char *what)
{
    sk_device *device = NULL;
    if (context_get(st) < 0)
        return NULL;
    for (size_t k = 0; (device = sk_device_at(st->context, k)); k++)
        if (strcmp(sk_device_name(device), "cpu") == 0)
            return device;
    const char *const why = device_missing(st, "cpu");
    return (void)RAISE(st, CODE_WITHOUT_LLVM, what, why ? why : "it is not there"), NULL;
}

struct wanted {
    sk_pipeline *pipeline; /* null: made from the library for this */
    sk_library *library;
    const char *name;
    const struct geometry *g;
    sk_text kind;
};

static sk_status print(const struct wanted *w, char **out, sk_error *err)
{
    sk_function *function = NULL;
    sk_pipeline *pipeline = w->pipeline;
    sk_status status = SK_OK;
    if (!pipeline) {
        status = sk_library_function(w->library, w->name, &function, err);
        if (status == SK_OK)
            status = sk_pipeline_create(function, &pipeline, err);
    }
    if (status == SK_OK)
        status = sk_pipeline_text(pipeline, geometry_group(pipeline, w->g), w->g->unchecked, w->kind, out, err);
    if (!w->pipeline) {
        sk_pipeline_release(pipeline);
        sk_function_release(function);
    }
    return status;
}

PyObject *kernel_code(struct state *st, struct kernel *k, const struct geometry *g, sk_text kind)
{
    const struct geometry latest = {.threadgroup = k->latest.x ? k->latest : (sk_size){DEFAULT_GROUP, 1, 1},
                                    .chosen = !k->latest.x};
    sk_device *const device = cpu_device(st, kind == SK_TEXT_ASM ? "cpu_asm" : "cpu_ir");
    if (!device || kernel_trace(st, k) < 0)
        return NULL;
    struct wanted w = {k->on_cpu ? k->pipeline : NULL, NULL, sk_module_kernel_name(k->module, 0), g ? g : &latest,
                       kind};
    char *text = NULL;
    sk_error err = {0};
    sk_status status = w.pipeline ? SK_OK : sk_library_from_module(device, k->module, &w.library, &err);
    if (status == SK_OK)
        AWAY(st, status = print(&w, &text, &err));
    sk_library_release(w.library);
    if (status != SK_OK)
        return raise_error(st, &err);
    PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    sk_text_free(st->context, text);
    return result;
}

/* Adds "step seconds", a line each. */
static int add_times(PyObject *dict, const char *text)
{
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n");
        size_t name = n;
        while (name && line[name - 1] != ' ')
            name--;
        PyObject *key = PyUnicode_FromStringAndSize(line, name ? (Py_ssize_t)name - 1 : 0);
        PyObject *seconds = PyFloat_FromDouble(strtod(line + name, NULL));
        const int status = key && seconds ? PyDict_SetItem(dict, key, seconds) : -1;
        Py_XDECREF(key);
        Py_XDECREF(seconds);
        if (status < 0)
            return -1;
        line += n + (line[n] != 0);
    }
    return 0;
}

PyObject *kernel_timings(struct state *st, struct kernel *k)
{
    PyObject *dict = PyDict_New();
    PyObject *trace = k->module ? PyFloat_FromDouble((double)k->traced * 1e-9) : NULL;
    char *text = NULL;
    sk_error err = {0};
    int status = dict ? 0 : -1;
    if (dict && trace)
        status = PyDict_SetItemString(dict, "trace", trace);
    Py_XDECREF(trace);
    if (status == 0 && k->pipeline && k->on_cpu && k->latest.x &&
        sk_pipeline_text(k->pipeline, k->latest, false, SK_TEXT_TIMES, &text, &err) == SK_OK)
        status = add_times(dict, text);
    if (text)
        sk_text_free(st->context, text);
    if (status < 0)
        Py_CLEAR(dict);
    return PyErr_Occurred() ? NULL : dict;
}
