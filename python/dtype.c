/* dtype.c - sk.dt: one Dtype for each scalar and vector type, and the atomic ones, made from types.def. */
#include "state.h"

/* What Metal can declare as atomic_NAME and NumPy has. */
static bool has_atomic(ir_type t)
{
    return t == TYPE_U32 || t == TYPE_I32 || t == TYPE_F32;
}

static void scalar_name(char *out, size_t cap, enum scalar s)
{
    const char *name = scalar_info[s].name;
    const char *kind = name[0] == 'i' ? "int" : name[0] == 'u' ? "uint" : name[0] == 'f' ? "float" : "bfloat";
    if (s == S_BOOL)
        PyOS_snprintf(out, cap, "bool");
    else
        PyOS_snprintf(out, cap, "%s%u", kind, (unsigned)scalar_info[s].bits);
}

static PyObject *dtype_make(struct state *st, enum scalar s, unsigned n, bool atomic)
{
    struct dtype *d = PyObject_New(struct dtype, st->type.dtype);
    if (!d)
        return NULL;
    char scalar[16], count[4] = "";
    scalar_name(scalar, sizeof scalar, s);
    d->type = ir_type_vector(s, n);
    d->atomic = atomic;
    if (n > 1)
        PyOS_snprintf(count, sizeof count, "x%u", n);
    PyOS_snprintf(d->name, sizeof d->name, "%s%s%s%s", atomic ? "atomic_" : "", scalar, count,
                  s == S_BOOL && n == 1 ? "_" : "");
    PyOS_snprintf(d->metal, sizeof d->metal, "%s%s%s", atomic ? "atomic_" : "", scalar_info[s].msl, count + (n > 1));
    d->nbytes = (uint16_t)(scalar_info[s].bytes * (n == 3 ? 4 : n));
    return (PyObject *)d;
}

int dtypes_init(struct state *st, PyObject *module)
{
    PyObject *all = PyDict_New();
    if (!all)
        return -1;
    for (int s = S_VOID + 1; s < S_COUNT; s++)
        for (unsigned n = 1; n <= 4; n++)
            for (unsigned atomic = 0; atomic < 2; atomic++) {
                const ir_type t = ir_type_vector((enum scalar)s, n);
                if (atomic && !has_atomic(t))
                    continue;
                PyObject *d = st->dtypes[atomic][t] = dtype_make(st, (enum scalar)s, n, atomic);
                if (!d || PyDict_SetItemString(all, dtype_of(d)->name, d) < 0)
                    goto fail;
            }
    const int status = PyModule_AddObjectRef(module, "_dtypes", all);
    Py_DECREF(all);
    return status;
fail:
    Py_DECREF(all);
    return -1;
}

PyObject *dtype_new_ref(struct state *st, ir_type type, bool atomic)
{
    PyObject *d = type < DTYPE_COUNT ? st->dtypes[atomic][type] : NULL;
    return Py_NewRef(d ? d : Py_None);
}

/* ---- from NumPy -------------------------------------------------------------------------------------------------- */

/* NumPy's dtype of anything that NumPy takes for one, without importing NumPy. Null without an exception: it is none. */
static PyObject *numpy_dtype(struct state *st, PyObject *o)
{
    if (PyObject_HasAttr(o, st->str.kind) && PyObject_HasAttr(o, st->str.itemsize))
        return Py_NewRef(o);
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *numpy = PyDict_GetItemWithError(modules, st->str.numpy);
    if (!numpy || (!PyType_Check(o) && !PyUnicode_Check(o)) || o == (PyObject *)&PyLong_Type ||
        o == (PyObject *)&PyFloat_Type || o == (PyObject *)&PyBool_Type)
        return NULL;
    PyObject *d = PyObject_CallMethodObjArgs(numpy, st->str.dtype, o, NULL);
    if (!d)
        PyErr_Clear();
    return d;
}

static enum scalar numpy_scalar(struct state *st, PyObject *d)
{
    PyObject *kind = PyObject_GetAttr(d, st->str.kind), *size = PyObject_GetAttr(d, st->str.itemsize);
    PyObject *name = PyObject_GetAttr(d, st->str.name);
    const char *k = kind && PyUnicode_Check(kind) ? PyUnicode_AsUTF8(kind) : NULL;
    const long bytes = size ? PyLong_AsLong(size) : 0;
    const unsigned class_ = !k          ? 0
                            : *k == 'b' ? CLASS_B
                            : *k == 'i' ? CLASS_S
                            : *k == 'u' ? CLASS_U
                            : *k == 'f' ? CLASS_F
                                        : 0u;
    enum scalar found = S_VOID;
    for (int s = S_VOID + 1; s < S_COUNT; s++)
        if (s != S_BF16 && scalar_info[s].class_ == class_ && scalar_info[s].bytes == bytes)
            found = (enum scalar)s;
    if (name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0)
        found = S_BF16;
    Py_XDECREF(kind);
    Py_XDECREF(size);
    Py_XDECREF(name);
    if (PyErr_Occurred())
        PyErr_Clear();
    return found;
}

static bool is_f64(struct state *st, PyObject *o, PyObject *numpy)
{
    if (o == (PyObject *)&PyFloat_Type)
        return true;
    PyObject *name = numpy ? PyObject_GetAttr(numpy, st->str.name) : NULL;
    const bool yes = name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "float64") == 0;
    Py_XDECREF(name);
    if (PyErr_Occurred())
        PyErr_Clear();
    return yes;
}

PyObject *as_dtype(struct state *st, PyObject *o, const char *what)
{
    if (Py_TYPE(o) == st->type.dtype)
        return o;
    PyObject *numpy = numpy_dtype(st, o);
    const enum scalar s = numpy ? numpy_scalar(st, numpy) : S_VOID;
    const bool f64 = is_f64(st, o, numpy);
    Py_XDECREF(numpy);
    if (s != S_VOID)
        return st->dtypes[0][s];
    if (PyErr_Occurred())
        return NULL;
    if (f64)
        return RAISE(st, NO_F64, what);
    PyObject *text = PyObject_Repr(o);
    const char *shown = text ? PyUnicode_AsUTF8(text) : NULL;
    if (shown)
        (void)RAISE(st, NOT_A_DTYPE, what, shown);
    Py_XDECREF(text);
    return NULL;
}

PyObject *dtypes_from_numpy(PyObject *module, PyObject *o)
{
    return Py_XNewRef(as_dtype(state_of_module(module), o, "from_numpy"));
}

PyObject *dtypes_underlying(PyObject *module, PyObject *o)
{
    struct state *st = state_of_module(module);
    PyObject *d = as_dtype(st, o, "underlying");
    return d ? dtype_new_ref(st, dtype_of(d)->type, false) : NULL;
}

/* sk.dt.NAME for a name that is none: an AttributeError, so that hasattr works. */
PyObject *dtypes_missing(PyObject *module, PyObject *name)
{
    struct state *st = state_of_module(module);
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (!text)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_AttributeError, "%R", name);
    const bool f64 = strcmp(text, "float64") == 0 || strcmp(text, "double") == 0;
    return RAISE_ATTRIBUTE(st, NO_DTYPE, text, f64 ? "; Metal has no 64-bit float, use sk.dt.float32" : "");
}

/* ---- the type ---------------------------------------------------------------------------------------------------- */

static void dtype_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *dtype_repr(PyObject *self)
{
    return PyUnicode_FromFormat("dt.%s", dtype_of(self)->name);
}

static PyObject *dtype_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(dtype_of(self)->name);
}

/* dt.float32x4(a, b, c, d) makes a vector; dt.float32(x) is sk.cast(x, dt.float32). */
static PyObject *dtype_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    struct state *st = STATE_OF(self);
    const unsigned width = ir_type_width(dtype_of(self)->type);
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    if ((kwargs && PyDict_GET_SIZE(kwargs)) || (n != 1 && n != (Py_ssize_t)width) || dtype_of(self)->atomic)
        return RAISE(st, DTYPE_CALL, dtype_of(self)->name, width);
    struct session *s = session_enter(st, dtype_of(self)->name);
    struct tv part[4], out;
    if (!s || operand_list(st, s, args, 4, part) < 0)
        return NULL;
    const ir_type type = dtype_of(self)->type;
    const sk_status status = TRACE(s, width > 1 ? trace_make(s->t, type, (unsigned)n, part, &out, &s->err)
                                                : trace_cast(s->t, part[0], type, &out, &s->err));
    return traced_result(st, s, status, &out);
}

static PyObject *get_name(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(dtype_of(self)->name);
}

static PyObject *get_metal(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(dtype_of(self)->metal);
}

static PyObject *get_nbytes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(dtype_of(self)->nbytes);
}

static PyObject *get_has_class(PyObject *self, void *closure)
{
    const unsigned class_ = scalar_info[ir_type_scalar(dtype_of(self)->type)].class_;
    return PyBool_FromLong((class_ & (unsigned)(uintptr_t)closure) != 0);
}

static PyGetSetDef dtype_getset[] = {
    {"name", get_name, NULL, "Its name in sk.dt.", NULL},
    {"metal", get_metal, NULL, "Metal's spelling.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of one element in memory.", NULL},
    {"is_float", get_has_class, NULL, "Whether it is a float.", (void *)(uintptr_t)CLASS_F},
    {"is_signed", get_has_class, NULL, "Whether it is signed; floats are.", (void *)(uintptr_t)(CLASS_F | CLASS_S)},
    {0}};
static PyMethodDef dtype_methods[] = {{"__reduce__", dtype_reduce, METH_NOARGS, NULL}, {0}};
static PyType_Slot dtype_slots[] = {
    {Py_tp_dealloc, dtype_dealloc},
    {Py_tp_repr, dtype_repr},
    {Py_tp_call, dtype_call},
    {Py_tp_getset, dtype_getset},
    {Py_tp_methods, dtype_methods},
    {Py_tp_doc, "A type of elements and values. Called in a kernel it converts, or makes a vector of its components."},
    {0, NULL}};
PyType_Spec dtype_spec = {"spork.dtypes.Dtype", sizeof(struct dtype), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, dtype_slots};
