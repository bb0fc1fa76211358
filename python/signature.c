/* signature.c - from a function and its annotations to the parameters of a kernel or device function. */
#include "kernel.h"

/* ---- the function ------------------------------------------------------------------------------------------------ */

static long code_number(PyObject *code, PyObject *name)
{
    PyObject *o = PyObject_GetAttr(code, name);
    const long x = o ? PyLong_AsLong(o) : -1;
    Py_XDECREF(o);
    return x;
}

/* The line of a parameter, or with `name` null of the def: the place to blame. Falls back on the code's first line. */
static uint32_t header_line(const char *file, uint32_t first, const char *name)
{
    PyObject *module = PyImport_ImportModule("linecache");
    bool def = false;
    uint32_t found = first;
    for (uint32_t line = first; module && line < first + 200; line++) { /* decorators may come first */
        PyObject *o = PyObject_CallMethod(module, "getline", "sI", file, (unsigned)line);
        const char *text = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : NULL;
        const char *at = text ? text + strspn(text, " \t") : "";
        bool stop = !*at;
        if (!def && (strncmp(at, "def ", 4) == 0 || strncmp(at, "async def ", 10) == 0)) {
            def = true;
            found = line;
            at = strchr(at, '(');
            stop = !name;
        }
        while (def && !stop && at && (at = strstr(at, name))) {
            const char *end = at + strlen(name), before = at[-1];
            if (before == '(' || before == ',' || before == ' ' || before == '\t' || before == '*') {
                end += strspn(end, " \t");
                if (*end && strchr(":,)=\n", *end)) {
                    found = line;
                    stop = true;
                }
            }
            at++;
        }
        Py_XDECREF(o);
        if (stop)
            break;
    }
    Py_XDECREF(module);
    if (PyErr_Occurred())
        PyErr_Clear();
    return found;
}

static struct err_place place_of(const struct signature *sig, PyObject *name)
{
    const char *text = name ? PyUnicode_AsUTF8(name) : NULL;
    return (struct err_place){sig->file, sig->lambda ? sig->line : header_line(sig->file, sig->line, text), 0};
}

/* ---- annotations that are text ----------------------------------------------------------------------------------- */

/* Names that a closure of the function holds; new dictionary. */
static int add_closure(struct state *st, PyObject *fn, PyObject *code, PyObject *names)
{
    PyObject *closure = PyObject_GetAttr(fn, st->str.__closure__), *free_names = NULL;
    int status = -1;
    if (closure && closure != Py_None && (free_names = PyObject_GetAttr(code, st->str.co_freevars)))
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(free_names) && i < PyTuple_GET_SIZE(closure); i++) {
            PyObject *x = PyObject_GetAttr(PyTuple_GET_ITEM(closure, i), st->str.cell_contents);
            if (!x)
                PyErr_Clear(); /* an empty cell: not bound yet */
            else if (PyDict_SetItem(names, PyTuple_GET_ITEM(free_names, i), x) < 0)
                PyErr_Clear();
            Py_XDECREF(x);
        }
    if (!PyErr_Occurred())
        status = 0;
    Py_XDECREF(closure);
    Py_XDECREF(free_names);
    return status;
}

/* The names that text annotations see besides globals: the decorating frame's locals, then the closure. */
static PyObject *annotation_locals(struct state *st, PyObject *fn, PyObject *code, bool late)
{
    PyObject *names = PyDict_New();
    PyFrameObject *frame = late ? NULL : PyEval_GetFrame();
    if (names && frame) {
        PyObject *locals = PyObject_GetAttr((PyObject *)frame, st->str.f_locals);
        if (!locals || PyDict_Update(names, locals) < 0)
            PyErr_Clear();
        Py_XDECREF(locals);
    }
    if (names && add_closure(st, fn, code, names) < 0)
        Py_CLEAR(names);
    return names;
}

static PyObject *resolve(struct state *st, PyObject *fn, PyObject *text, PyObject *locals)
{
    PyObject *globals = PyObject_GetAttr(fn, st->str.__globals__), *builtins = PyEval_GetBuiltins(), *eval, *x = NULL;
    if (globals && builtins && (eval = PyDict_GetItemString(builtins, "eval")))
        x = PyObject_CallFunctionObjArgs(eval, text, globals, locals, NULL);
    Py_XDECREF(globals);
    return x;
}

/* ---- one parameter ----------------------------------------------------------------------------------------------- */

static int read_param(struct state *st, PyObject *o, bool device_fn, struct signature *sig, struct param_spec *p)
{
    const struct dtype *d;
    p->attribute = ATTR_NONE;
    if (Py_TYPE(o) == st->type.dtype) {
        p->dtype = o;
        p->kind = PARAM_VALUE;
        p->type = dtype_of(o)->type;
        if (!dtype_of(o)->atomic)
            return 0;
        RAISE_AT(st, place_of(sig, p->name), ATOMIC_VALUE, p->text, dtype_of(o)->name);
        return -1;
    }
    if (Py_TYPE(o) == st->type.scalar_param) {
        const struct scalar_param *q = (struct scalar_param *)o;
        p->type = ir_type_vector(ir_type_scalar(dtype_of(q->dtype)->type), q->n);
        p->dtype = st->dtypes[0][p->type];
        p->kind = q->attr ? PARAM_ATTRIBUTE : PARAM_VALUE;
        p->attribute = (uint8_t)q->attr;
        if (!device_fn || !q->attr)
            return 0;
        RAISE_AT(st, place_of(sig, p->name), DEVICE_FN_ATTRIBUTE, p->text);
        return -1;
    }
    const bool threadgroup = Py_TYPE(o) == st->type.threadgroup_pointer;
    if (threadgroup || Py_TYPE(o) == st->type.device_pointer || Py_TYPE(o) == st->type.constant_pointer) {
        p->dtype = ((struct pointer_spec_object *)o)->dtype;
        d = dtype_of(p->dtype);
        p->space = threadgroup                               ? SPACE_THREADGROUP
                   : Py_TYPE(o) == st->type.constant_pointer ? SPACE_CONSTANT
                                                             : SPACE_DEVICE;
        p->kind = device_fn ? PARAM_VALUE : threadgroup ? PARAM_THREADGROUP : PARAM_BUFFER;
        p->type = TYPE_POINTER(p->space);
        if (!d->atomic || p->space != SPACE_CONSTANT)
            return 0;
        RAISE_AT(st, place_of(sig, p->name), ATOMIC_CONSTANT, p->text);
        return -1;
    }
    const struct err_place at = place_of(sig, p->name);
    PyObject *shown = PyObject_Repr(o);
    const char *text = shown ? PyUnicode_AsUTF8(shown) : NULL;
    if (PyType_Check(o) && PyType_IsSubtype((PyTypeObject *)o, st->type.attribute))
        RAISE_AT(st, at, BARE_MARKER, p->text, type_name(o));
    else if (o == (PyObject *)st->type.device_pointer || o == (PyObject *)st->type.constant_pointer ||
             o == (PyObject *)st->type.threadgroup_pointer)
        RAISE_AT(st, at, BARE_POINTER, p->text, type_name(o));
    else if (text)
        RAISE_AT(st, at, WRONG_ANNOTATION, p->text, text);
    Py_XDECREF(shown);
    return -1;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* Refuses what no kernel can be: other callables, generators, *args, defaults. */
static int check_function(struct state *st, PyObject *fn, bool device_fn, struct signature *sig, PyObject **code_out)
{
    const char *what = device_fn ? "sk.device_fn" : "sk.jit";
    if (!PyFunction_Check(fn))
        return RAISE_INT(st, NOT_A_FUNCTION, what, type_name(fn));
    PyObject *code = *code_out = PyFunction_GET_CODE(fn); /* borrowed from fn, as is the file's text */
    PyObject *file = PyObject_GetAttr(code, st->str.co_filename);
    sig->file = file ? PyUnicode_AsUTF8(file) : NULL;
    Py_XDECREF(file);
    PyObject *called = PyObject_GetAttr(code, st->str.co_name);
    sig->lambda = called && PyUnicode_Check(called) && PyUnicode_CompareWithASCIIString(called, "<lambda>") == 0;
    Py_XDECREF(called);
    const long line = code_number(code, st->str.co_firstlineno), flags = code_number(code, st->str.co_flags);
    const long keyword_only = code_number(code, st->str.co_kwonlyargcount);
    if (!sig->file || PyErr_Occurred())
        return -1;
    sig->line = sig->lambda ? (uint32_t)line : header_line(sig->file, (uint32_t)line, NULL);
    const struct err_place at = {sig->file, sig->line, 0};
    if (flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) {
        RAISE_AT(st, at, GENERATOR_FUNCTION, what);
        return -1;
    }
    PyObject *defaults = PyObject_GetAttr(fn, st->str.__defaults__);
    const bool has_defaults = defaults && defaults != Py_None;
    Py_XDECREF(defaults);
    if ((flags & (CO_VARARGS | CO_VARKEYWORDS)) || keyword_only || has_defaults) {
        RAISE_AT(st, at, PLAIN_PARAMETERS, what);
        return -1;
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* The exception at hand becomes one that blames the annotation, `text`, of parameter `name`. */
static int unresolved(struct state *st, const struct signature *sig, PyObject *name, const char *text)
{
    PyObject *type, *value, *trace, *shown = NULL;
    PyErr_Fetch(&type, &value, &trace);
    if (value)
        shown = PyObject_Str(value);
    const char *reason = shown ? PyUnicode_AsUTF8(shown) : "?";
    if (reason && strncmp(reason, "<string>:", 9) == 0 && strstr(reason, ": ")) /* a place in the annotation's text */
        reason = strstr(reason, ": ") + 2;
    RAISE_AT(st, place_of(sig, name), UNRESOLVED_ANNOTATION, name ? PyUnicode_AsUTF8(name) : "a parameter", text,
             reason ? reason : "?");
    Py_XDECREF(shown);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

/* 1: a name is not bound yet. */
static int read_annotation(struct state *st, PyObject *fn, PyObject *annotations, PyObject *locals, bool late,
                           struct signature *sig, PyObject *name, PyObject **out)
{
    PyObject *o = PyDict_GetItemWithError(annotations, name);
    if (!o || !PyUnicode_Check(o)) {
        *out = Py_XNewRef(o);
        return o || !PyErr_Occurred() ? 0 : -1;
    }
    *out = resolve(st, fn, o, locals);
    if (*out)
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    if (PyErr_ExceptionMatches(PyExc_NameError) && !late) {
        PyErr_Clear();
        return 1;
    }
    return unresolved(st, sig, name, PyUnicode_AsUTF8(o));
}

static int check_counts(struct state *st, struct signature *sig)
{
    unsigned buffers = 0, threadgroup = 0;
    sig->n_args = 0;
    for (unsigned i = 0; i < sig->n; i++) {
        buffers += sig->param[i].kind == PARAM_BUFFER || sig->param[i].kind == PARAM_VALUE;
        threadgroup += sig->param[i].kind == PARAM_THREADGROUP;
        sig->n_args += sig->param[i].kind != PARAM_ATTRIBUTE;
        if (buffers > 31 || threadgroup > 31) {
            RAISE_AT(st, place_of(sig, sig->param[i].name), TOO_MANY_BUFFERS, sig->param[i].text, 31u);
            return -1;
        }
    }
    return 0;
}

static int read_result(struct state *st, struct signature *sig, PyObject *o)
{
    sig->result = NULL;
    if (!o || o == Py_None)
        return 0;
    if (Py_TYPE(o) == st->type.dtype && !dtype_of(o)->atomic) {
        sig->result = o;
        return 0;
    }
    if (Py_TYPE(o) == st->type.scalar_param && !((struct scalar_param *)o)->attribute) {
        const struct scalar_param *q = (struct scalar_param *)o;
        sig->result = st->dtypes[0][ir_type_vector(ir_type_scalar(dtype_of(q->dtype)->type), q->n)];
        return 0;
    }
    RAISE_AT(st, place_of(sig, NULL), WRONG_RESULT_ANNOTATION, type_name(o));
    return -1;
}

static int read_params(struct state *st, PyObject *fn, PyObject *code, bool device_fn, bool late, struct signature *sig)
{
    PyObject *annotations = PyObject_GetAttr(fn, st->str.__annotations__);
    PyObject *names = PyObject_GetAttr(code, st->str.co_varnames);
    PyObject *locals = annotation_locals(st, fn, code, late), *o = NULL, *key = NULL;
    const long n = code_number(code, st->str.co_argcount);
    int status = -1;
    if (!annotations && PyErr_ExceptionMatches(PyExc_NameError)) { /* since 3.14 they are evaluated when asked for */
        status = late ? unresolved(st, sig, NULL, "of this function") : (PyErr_Clear(), 1);
        goto done;
    }
    if (!annotations || !names || !locals || n < 0 || PyErr_Occurred())
        goto done;
    sig->param = PyMem_Calloc((size_t)n + 1, sizeof *sig->param);
    if (!sig->param) {
        PyErr_NoMemory();
        goto done;
    }
    for (sig->n = 0; sig->n < (unsigned)n;) {
        Py_CLEAR(o);
        struct param_spec *p = &sig->param[sig->n++];
        p->name = Py_NewRef(PyTuple_GET_ITEM(names, sig->n - 1));
        p->text = PyUnicode_AsUTF8(p->name);
        status = read_annotation(st, fn, annotations, locals, late, sig, p->name, &o);
        if (status != 0)
            goto done;
        status = -1;
        if (!o) {
            if (sig->lambda)
                RAISE_AT(st, place_of(sig, p->name), LAMBDA_FUNCTION, device_fn ? "sk.device_fn" : "sk.jit");
            else
                RAISE_AT(st, place_of(sig, p->name), MISSING_ANNOTATION, p->text, p->text);
            goto done;
        }
        if (read_param(st, o, device_fn, sig, p) < 0)
            goto done;
    }
    if (!device_fn && check_counts(st, sig) < 0)
        goto done;
    sig->n_args = device_fn ? sig->n : sig->n_args;
    Py_CLEAR(o);
    key = PyUnicode_FromString("return");
    if (key && device_fn && (status = read_annotation(st, fn, annotations, locals, late, sig, key, &o)) != 0)
        goto done;
    status = key ? read_result(st, sig, device_fn ? o : NULL) : -1;
done:
    Py_XDECREF(key);
    Py_XDECREF(o);
    Py_XDECREF(locals);
    Py_XDECREF(names);
    Py_XDECREF(annotations);
    return status;
}

int signature_read(struct state *st, PyObject *fn, bool device_fn, bool late, struct signature *out)
{
    PyObject *code;
    if (check_function(st, fn, device_fn, out, &code) < 0)
        return -1;
    const int status = read_params(st, fn, code, device_fn, late, out);
    if (status != 0)
        signature_free(out);
    else
        out->resolved = true;
    return status < 0 ? -1 : 0;
}

void signature_names(const struct signature *sig, char *out, size_t cap)
{
    out[0] = '\0';
    for (unsigned i = 0; i < sig->n; i++) {
        const size_t n = strlen(out);
        if (sig->param[i].kind != PARAM_ATTRIBUTE)
            PyOS_snprintf(out + n, cap - n, "%s%s", n ? ", " : "", sig->param[i].text);
    }
    if (!out[0])
        PyOS_snprintf(out, cap, "none");
}

void signature_free(struct signature *sig)
{
    for (unsigned i = 0; i < sig->n; i++)
        Py_XDECREF(sig->param[i].name);
    PyMem_Free(sig->param);
    sig->param = NULL;
    sig->n = sig->n_args = 0;
    sig->resolved = false;
}
