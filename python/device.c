/* device.c - sk.devices(), sk.default_device(), and sk.Buffer: memory of a device, seen through the buffer protocol. */
#include "state.h"

#include <stdlib.h>

int context_get(struct state *st)
{
    sk_error err = {0};
    if (st->context || sk_context_create(NULL, &st->context, &err) == SK_OK)
        return 0;
    raise_error(st, &err);
    return -1;
}

int default_device_get(struct state *st)
{
    sk_error err = {0};
    if (st->default_device)
        return 0;
    if (context_get(st) < 0)
        return -1;
    if (sk_device_get(st->context, NULL, &st->default_device, &err) == SK_OK)
        return 0;
    raise_error(st, &err);
    return -1;
}

const char *device_missing(struct state *st, const char *name)
{
    const size_t n = strlen(name);
    const char *why;
    for (size_t k = 0; (why = sk_device_missing(st->context, k)); k++)
        if (strncmp(why, name, n) == 0 && strncmp(why + n, ": ", 2) == 0)
            return why + n + 2;
    return NULL;
}

int device_warn(struct state *st)
{
    const char *const asked = getenv("SPORK_DEVICE");
    if (st->warned || (asked && *asked))
        return 0;
    if (default_device_get(st) < 0)
        return -1;
    const char *const why = device_missing(st, "cpu");
    st->warned = true;
    return why && strcmp(sk_device_name(st->default_device), "interp") == 0 ? WARN(NO_LLVM, why) : 0;
}

/* ---- Device ------------------------------------------------------------------------------------------------------ */

struct device {
    PyObject_HEAD
    sk_device *device; /* of the context */
};

static sk_device *device_of(PyObject *o)
{
    return ((struct device *)o)->device;
}

static PyObject *device_new(struct state *st, sk_device *device)
{
    struct device *d = PyObject_New(struct device, st->type.device);
    if (d)
        d->device = device;
    return (PyObject *)d;
}

static void device_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *device_str(PyObject *self)
{
    return PyUnicode_FromString(sk_device_name(device_of(self)));
}

static PyObject *device_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<spork.Device %s>", sk_device_name(device_of(self)));
}

static PyObject *device_compare(PyObject *a, PyObject *b, int how)
{
    if ((how != Py_EQ && how != Py_NE) || Py_TYPE(a) != Py_TYPE(b))
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((device_of(a) == device_of(b)) == (how == Py_EQ));
}

static Py_hash_t device_hash(PyObject *self)
{
    return (Py_hash_t)((uintptr_t)device_of(self) >> 4);
}

static PyObject *get_name(PyObject *self, void *closure)
{
    (void)closure;
    return device_str(self);
}

static PyObject *get_description(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(sk_device_description(device_of(self)));
}

static PyGetSetDef device_getset[] = {{"name", get_name, NULL, "As in SPORK_DEVICE.", NULL},
                                      {"description", get_description, NULL, "One line for a person.", NULL},
                                      {0}};
static PyType_Slot device_slots[] = {{Py_tp_dealloc, device_dealloc},
                                     {Py_tp_str, device_str},
                                     {Py_tp_repr, device_repr},
                                     {Py_tp_richcompare, device_compare},
                                     {Py_tp_hash, device_hash},
                                     {Py_tp_getset, device_getset},
                                     {Py_tp_doc, "A device of this machine."},
                                     {0, NULL}};
PyType_Spec device_spec = {"spork.Device", sizeof(struct device), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, device_slots};

static PyObject *devices(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct state *st = state_of_module(module);
    PyObject *list = context_get(st) < 0 ? NULL : PyList_New(0);
    sk_device *d;
    for (size_t k = 0; list && (d = sk_device_at(st->context, k)); k++) {
        PyObject *o = device_new(st, d);
        if (!o || PyList_Append(list, o) < 0)
            Py_CLEAR(list);
        Py_XDECREF(o);
    }
    return list;
}

static PyObject *default_device(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct state *st = state_of_module(module);
    return default_device_get(st) < 0 ? NULL : device_new(st, st->default_device);
}

/* ---- threads of launches ----------------------------------------------------------------------------------------- */

enum { MOST_THREADS = 256 };

static PyObject *threads(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct state *st = state_of_module(module);
    return default_device_get(st) < 0 ? NULL : PyLong_FromUnsignedLong(sk_device_threads(st->default_device));
}

static PyObject *set_threads(PyObject *module, PyObject *n)
{
    struct state *st = state_of_module(module);
    struct tv x = tv_int(0);
    if (n != Py_None) {
        const int status = weak_number(st, n, &x);
        if (status < 0)
            return NULL;
        if (status > 0 || x.kind != TV_INT)
            return RAISE(st, THREADS_TYPE, type_name(n));
        if (x.negative || x.magnitude < 1 || x.magnitude > MOST_THREADS)
            return RAISE(st, THREADS_COUNT, (unsigned)MOST_THREADS);
    }
    if (default_device_get(st) < 0)
        return NULL;
    sk_device_set_threads(st->default_device, (uint32_t)x.magnitude);
    Py_RETURN_NONE;
}

/* ---- Buffer ------------------------------------------------------------------------------------------------------ */

enum { BUFFER_DIMS = 8 };

struct buffer {
    PyObject_HEAD
    sk_buffer *buffer;
    PyObject *dtype;
    int ndim; /* of the buffer protocol: a vector's components are one more dimension */
    int own_dims;
    char format[2];
    Py_ssize_t itemsize, shape[BUFFER_DIMS + 1], strides[BUFFER_DIMS + 1];
};

static struct buffer *buffer_of(PyObject *o)
{
    return (struct buffer *)o;
}

/* The letter of the struct module; bf16, which has none, as the bits. */
static char format_of(enum scalar s)
{
    static const char letters[3][9] = {"_bh_i___q", "_BH_I___Q", "__e_f____"};
    const unsigned class_ = s == S_BF16 ? CLASS_U : scalar_info[s].class_;
    return class_ == CLASS_B ? '?' : letters[class_ == CLASS_S ? 0 : class_ == CLASS_U ? 1 : 2][scalar_info[s].bytes];
}

static int read_shape(struct state *st, PyObject *o, struct buffer *b)
{
    const bool many = PyTuple_Check(o) || PyList_Check(o);
    const Py_ssize_t n = many ? PySequence_Fast_GET_SIZE(o) : 1;
    if (n > BUFFER_DIMS)
        return RAISE_INT(st, ARRAY_DIMS, BUFFER_DIMS, (int)n);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *extent = many ? PySequence_Fast_GET_ITEM(o, i) : o;
        struct tv x;
        const int status = weak_number(st, extent, &x);
        if (status < 0)
            return -1;
        if (status > 0 || x.kind != TV_INT)
            return RAISE_INT(st, BUFFER_SHAPE_TYPE, type_name(extent));
        if (x.negative || x.magnitude > (1ull << 40))
            return RAISE_INT(st, BUFFER_SHAPE);
        b->shape[i] = (Py_ssize_t)x.magnitude;
    }
    b->ndim = b->own_dims = (int)n;
    return 0;
}

static int buffer_make(struct state *st, struct buffer *b, PyObject *shape)
{
    const struct dtype *d = dtype_of(b->dtype);
    const unsigned width = ir_type_width(d->type);
    uint64_t bytes = 1;
    sk_error err = {0};
    if (read_shape(st, shape, b) < 0 || default_device_get(st) < 0)
        return -1;
    if (width > 1)
        b->shape[b->ndim++] = width == 3 ? 4 : (Py_ssize_t)width;
    b->format[0] = format_of(ir_type_scalar(d->type));
    b->itemsize = scalar_info[ir_type_scalar(d->type)].bytes;
    for (int i = 0; i < b->ndim; i++)
        if (__builtin_mul_overflow(bytes, (uint64_t)b->shape[i], &bytes) || bytes > (1ull << 40))
            return RAISE_INT(st, BUFFER_SHAPE);
    Py_ssize_t step = b->itemsize;
    for (int i = b->ndim - 1; i >= 0; i--) {
        b->strides[i] = step;
        step *= b->shape[i];
    }
    if (sk_buffer_create(st->default_device, (size_t)bytes * (size_t)b->itemsize, &b->buffer, &err) == SK_OK)
        return 0;
    raise_error(st, &err);
    return -1;
}

static PyObject *buffer_new(struct state *st, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, const char *name)
{
    const struct arg_spec spec = {name, 2, 2, {"shape", "dtype"}};
    PyObject *arg[2], *dtype;
    if (take_args(st, &spec, args, n, kwnames, arg) < 0 || !(dtype = as_dtype(st, arg[1], name)))
        return NULL;
    struct buffer *b = PyObject_New(struct buffer, st->type.buffer);
    if (!b)
        return NULL;
    memset((char *)b + sizeof(PyObject), 0, sizeof *b - sizeof(PyObject));
    b->dtype = Py_NewRef(dtype);
    if (buffer_make(st, b, arg[0]) < 0)
        Py_CLEAR(b);
    return (PyObject *)b;
}

static PyObject *buffer_tp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"shape", "dtype", NULL};
    PyObject *arg[2];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", names, &arg[0], &arg[1]))
        return NULL;
    return buffer_new(state_of_type(type), arg, 2, NULL, "Buffer");
}

static void buffer_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    sk_buffer_release(buffer_of(self)->buffer);
    Py_XDECREF(buffer_of(self)->dtype);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int buffer_get(PyObject *self, Py_buffer *view, int flags)
{
    struct buffer *b = buffer_of(self);
    const Py_ssize_t size = (Py_ssize_t)sk_buffer_size(b->buffer);
    if (PyBuffer_FillInfo(view, self, sk_buffer_contents(b->buffer), size, 0, flags) < 0)
        return -1;
    view->itemsize = b->itemsize;
    view->format = flags & PyBUF_FORMAT ? b->format : NULL;
    if (flags & PyBUF_ND) {
        view->ndim = b->ndim;
        view->shape = b->shape;
        view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? b->strides : NULL;
    }
    return 0;
}

static PyObject *get_shape(PyObject *self, void *closure)
{
    (void)closure;
    const struct buffer *b = buffer_of(self);
    PyObject *shape = PyTuple_New(b->own_dims);
    for (int i = 0; shape && i < b->own_dims; i++) {
        PyObject *x = PyLong_FromSsize_t(b->shape[i]);
        if (!x) {
            Py_DECREF(shape);
            return NULL;
        }
        PyTuple_SET_ITEM(shape, i, x);
    }
    return shape;
}

static PyObject *get_nbytes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(sk_buffer_size(buffer_of(self)->buffer));
}

static PyObject *buffer_repr(PyObject *self)
{
    PyObject *shape = get_shape(self, NULL), *text = NULL;
    if (shape)
        text = PyUnicode_FromFormat("<spork.Buffer %R of %R>", shape, buffer_of(self)->dtype);
    Py_XDECREF(shape);
    return text;
}

static PyMemberDef buffer_members[] = {
    {"dtype", T_OBJECT, offsetof(struct buffer, dtype), READONLY, "The dtype of an element."}, {0}};
static PyGetSetDef buffer_getset[] = {{"shape", get_shape, NULL, "Its extents, in elements.", NULL},
                                      {"nbytes", get_nbytes, NULL, "Its size in bytes.", NULL},
                                      {0}};
static PyType_Slot buffer_slots[] = {
    {Py_tp_new, buffer_tp_new},
    {Py_tp_dealloc, buffer_dealloc},
    {Py_tp_repr, buffer_repr},
    {Py_tp_members, buffer_members},
    {Py_tp_getset, buffer_getset},
    {Py_bf_getbuffer, buffer_get},
    {Py_tp_doc,
     "Buffer(shape, dtype): zero-filled memory of the default device; np.asarray(b) sees it without a copy."},
    {0, NULL}};
PyType_Spec buffer_spec = {"spork.Buffer", sizeof(struct buffer), 0, Py_TPFLAGS_DEFAULT, buffer_slots};

static PyObject *zeros(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    return buffer_new(state_of_module(module), args, n, kwnames, "zeros");
}

static PyObject *empty(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    return buffer_new(state_of_module(module), args, n, kwnames, "empty");
}

PyMethodDef device_methods[] = {
    {"devices", devices, METH_NOARGS, "devices($module, /)\n--\n\nThe devices that can be used here, the best first."},
    {"default_device", default_device, METH_NOARGS,
     "default_device($module, /)\n--\n\nThe device that launches use: SPORK_DEVICE, else the best."},
    {"threads", threads, METH_NOARGS,
     "threads($module, /)\n--\n\nThreads of this process that a launch may use: as set_threads says, else "
     "SPORK_THREADS, else one for each processor."},
    {"set_threads", set_threads, METH_O,
     "set_threads($module, n, /)\n--\n\nHow many threads of this process launches may use from now on; None: as "
     "many as at the start."},
    {"zeros", PY_METHOD(zeros), METH_FASTCALL | METH_KEYWORDS,
     "zeros($module, shape, dtype)\n--\n\nA zero-filled Buffer."},
    {"empty", PY_METHOD(empty), METH_FASTCALL | METH_KEYWORDS,
     "empty($module, shape, dtype)\n--\n\nA Buffer to be written; zero-filled too."},
    {0}};
