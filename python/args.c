/* args.c - the arguments of a launch: memory from the buffer protocol or DLPack, values from numbers. */
#include "kernel.h"

#include <math.h>

#include "dlpack.h"

/* ---- what an array's elements are -------------------------------------------------------------------------------- */

static enum scalar scalar_of(unsigned class_, size_t bytes)
{
    for (int s = S_VOID + 1; s < S_COUNT; s++)
        if (s != S_BF16 && scalar_info[s].class_ == class_ && scalar_info[s].bytes == bytes)
            return (enum scalar)s;
    return S_VOID;
}

struct elements {
    enum scalar scalar; /* S_VOID: none of ours */
    bool big_endian, f64;
};

/* From the buffer protocol's format: one letter of the struct module, perhaps after one for the byte order. */
static struct elements elements_of_format(const char *format, size_t bytes)
{
    const char order = format && strchr("@=<>!", format[0]) && format[0] ? *format++ : '@';
    const char kind = format ? format[0] : 'B';
    struct elements e = {S_VOID, false, false};
    if (format && (format[0] == '\0' || format[1] != '\0'))
        return e;
    const unsigned class_ = kind == '?'              ? CLASS_B
                            : strchr("bhilqn", kind) ? CLASS_S
                            : strchr("BHILQN", kind) ? CLASS_U
                            : strchr("efd", kind)    ? CLASS_F
                                                     : 0u;
    e.scalar = scalar_of(class_, bytes);
    e.f64 = kind == 'd';
#if PY_BIG_ENDIAN
    e.big_endian = bytes > 1 && order == '<';
#else
    e.big_endian = bytes > 1 && (order == '>' || order == '!');
#endif
    return e;
}

static struct elements elements_of_dlpack(struct dl_type t)
{
    struct elements e = {S_VOID, false, false};
    if (t.lanes != 1 || t.bits % 8 != 0)
        return e;
    e.f64 = t.code == DL_FLOAT && t.bits == 64;
    switch (t.code) {
    case DL_INT: e.scalar = scalar_of(CLASS_S, t.bits / 8u); break;
    case DL_UINT: e.scalar = scalar_of(CLASS_U, t.bits / 8u); break;
    case DL_FLOAT: e.scalar = scalar_of(CLASS_F, t.bits / 8u); break;
    case DL_BFLOAT: e.scalar = t.bits == 16 ? S_BF16 : S_VOID; break;
    case DL_BOOL: e.scalar = t.bits == 8 ? S_BOOL : S_VOID; break;
    default: break; /* DLPack's list may grow */
    }
    return e;
}

/* Memory as it was found, before the checks. */
struct found {
    struct elements elements;
    const char *format; /* for messages when it is none of ours */
    void *data;
    uint64_t bytes;
    int ndim;
    int64_t last; /* extent of the last dimension, 1 if there is none */
    bool contiguous, readonly;
};

static int check_found(struct state *st, const struct param_spec *p, const sk_arg_info *info, const struct found *f)
{
    const struct dtype *want = dtype_of(p->dtype);
    const enum scalar s = ir_type_scalar(want->type);
    const unsigned width = ir_type_width(want->type);
    const bool bits = s == S_BF16 && f->elements.scalar == S_U16; /* bf16 as its bits */
    if (f->elements.f64 && s == S_BF16)
        return RAISE_INT(st, ARRAY_BFLOAT16, p->text, "float64");
    if (f->elements.f64)
        return RAISE_INT(st, ARRAY_F64, p->text, want->name);
    if (f->elements.scalar == S_VOID)
        return RAISE_INT(st, ARRAY_FORMAT, p->text, want->name, f->format);
    if (f->elements.scalar != s && !bits && s == S_BF16)
        return RAISE_INT(st, ARRAY_BFLOAT16, p->text, dtype_of(st->dtypes[0][f->elements.scalar])->name);
    if (f->elements.scalar != s && !bits)
        return RAISE_INT(st, ARRAY_DTYPE, p->text, want->name, dtype_of(st->dtypes[0][f->elements.scalar])->name);
    if (f->elements.big_endian)
        return RAISE_INT(st, ARRAY_BYTE_ORDER, p->text);
    if (!f->contiguous && info->written)
        return RAISE_INT(st, ARRAY_ORDER, p->text);
    if (!f->contiguous)
        return RAISE_INT(st, ARRAY_CONTIGUOUS, p->text);
    if (info->written && f->readonly)
        return RAISE_INT(st, ARRAY_READ_ONLY, p->text);
    const unsigned stored = width == 3 ? 4 : width;
    if (width > 1 && f->bytes && (f->ndim > 1 ? f->last != (int64_t)stored : f->bytes % want->nbytes != 0))
        return RAISE_INT(st, ARRAY_VECTOR, p->text, want->name, stored,
                         width == 3 ? ", its components padded to 4" : "");
    return 0;
}

/* ---- where an array's memory is ---------------------------------------------------------------------------------- */

static int from_buffer(struct state *st, const struct param_spec *p, const sk_arg_info *info, bool bf16,
                       struct held_arg *held, sk_arg *out)
{
    const Py_buffer *v = &held->view;
    struct found f = {.elements = elements_of_format(v->format, (size_t)v->itemsize),
                      .format = v->format ? v->format : "B",
                      .data = v->buf,
                      .bytes = (uint64_t)v->len,
                      .ndim = v->ndim,
                      .last = v->ndim ? v->shape[v->ndim - 1] : 1,
                      .contiguous = PyBuffer_IsContiguous(v, 'C') != 0,
                      .readonly = v->readonly != 0};
    if (bf16)
        f.elements.scalar = S_BF16;
    if (check_found(st, p, info, &f) < 0)
        return -1;
    out->data = f.data;
    out->size = (size_t)f.bytes;
    return 0;
}

static bool is_bfloat16(struct state *st, PyObject *o)
{
    PyObject *dtype = PyObject_GetAttr(o, st->str.dtype), *name = dtype ? PyObject_GetAttr(dtype, st->str.name) : NULL;
    const bool yes = name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0;
    Py_XDECREF(name);
    Py_XDECREF(dtype);
    if (PyErr_Occurred())
        PyErr_Clear();
    return yes;
}

/* NumPy exports no buffer of ml_dtypes.bfloat16: a view of the bits does. */
static int take_bfloat16(struct state *st, const struct param_spec *p, const sk_arg_info *info, PyObject *o,
                         struct held_arg *held, sk_arg *out)
{
    held->object = PyObject_CallMethodObjArgs(o, st->str.view, st->str.uint16, NULL);
    if (!held->object || PyObject_GetBuffer(held->object, &held->view, PyBUF_RECORDS_RO) < 0) {
        PyErr_Clear();
        return RAISE_INT(st, ARRAY_CONTIGUOUS, p->text);
    }
    held->kind = HELD_BUFFER;
    return from_buffer(st, p, info, true, held, out);
}

static bool dlpack_contiguous(const struct dl_tensor *t)
{
    int64_t step = 1;
    for (int i = t->ndim - 1; t->strides && i >= 0; i--) {
        if (t->shape[i] != 1 && t->strides[i] != step)
            return false;
        step *= t->shape[i];
    }
    return true;
}

static PyObject *dlpack_capsule(struct state *st, PyObject *o)
{
    PyObject *method = PyObject_GetAttr(o, st->str.__dlpack__);
    PyObject *empty = PyTuple_New(0), *options = Py_BuildValue("{s:(ii)}", "max_version", 1, 0);
    PyObject *capsule = method && empty && options ? PyObject_Call(method, empty, options) : NULL;
    if (!capsule && method && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* from before versions */
        capsule = PyObject_CallNoArgs(method);
    }
    Py_XDECREF(options);
    Py_XDECREF(empty);
    Py_XDECREF(method);
    return capsule;
}

/* An exporter that refuses says why by an exception: it becomes the reason of ours. */
static int refused(struct state *st, const struct param_spec *p)
{
    PyObject *type, *value, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
        return -1;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *why = text ? PyUnicode_AsUTF8(text) : NULL;
    PyErr_Clear();
    (void)RAISE(st, ARRAY_REFUSED, p->text, dtype_of(p->dtype)->name, why ? why : "it refuses");
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return -1;
}

/* Memory that the processor can read: ordinary, or a GPU's host-side or managed memory. */
static int dlpack_device(struct state *st, const struct param_spec *p, PyObject *o)
{
    PyObject *device = PyObject_CallMethodObjArgs(o, st->str.__dlpack_device__, NULL);
    const long kind = device && PyTuple_Check(device) && PyTuple_GET_SIZE(device) == 2
                          ? PyLong_AsLong(PyTuple_GET_ITEM(device, 0))
                          : -1;
    Py_XDECREF(device);
    if (PyErr_Occurred())
        return refused(st, p);
    return kind == DL_CPU || kind == DL_CUDA_HOST || kind == DL_CUDA_MANAGED || kind == DL_ROCM_HOST
               ? 0
               : RAISE_INT(st, ARRAY_ELSEWHERE, p->text, (int)kind);
}

static int take_dlpack(struct state *st, const struct param_spec *p, const sk_arg_info *info, PyObject *o,
                       struct held_arg *held, sk_arg *out)
{
    if (dlpack_device(st, p, o) < 0)
        return -1;
    if (!(held->object = dlpack_capsule(st, o)))
        return refused(st, p);
    /* The capsule keeps its name, so that its destructor gives the tensor back. */
    held->kind = HELD_CAPSULE;
    const struct dl_tensor *t;
    bool readonly = false;
    if (PyCapsule_IsValid(held->object, "dltensor_versioned")) {
        const struct dl_managed_versioned *m = PyCapsule_GetPointer(held->object, "dltensor_versioned");
        if (m->major != 1)
            return RAISE_INT(st, DLPACK_VERSION, p->text, (unsigned)m->major);
        t = &m->tensor;
        readonly = (m->flags & DL_READ_ONLY) != 0;
    } else if (PyCapsule_IsValid(held->object, "dltensor")) {
        t = &((const struct dl_managed *)PyCapsule_GetPointer(held->object, "dltensor"))->tensor;
    } else {
        return RAISE_INT(st, DLPACK_VERSION, p->text, 0u);
    }
    uint64_t count = 1;
    for (int i = 0; i < t->ndim; i++)
        count *= (uint64_t)t->shape[i];
    const struct found f = {.elements = elements_of_dlpack(t->type),
                            .format = "a type that DLPack describes",
                            .data = (char *)t->data + t->byte_offset,
                            .bytes = count * (t->type.bits / 8u),
                            .ndim = t->ndim,
                            .last = t->ndim ? t->shape[t->ndim - 1] : 1,
                            .contiguous = count == 0 || dlpack_contiguous(t),
                            .readonly = readonly};
    if (check_found(st, p, info, &f) < 0)
        return -1;
    out->data = f.data;
    out->size = (size_t)f.bytes;
    return 0;
}

static int take_buffer(struct state *st, const struct param_spec *p, const sk_arg_info *info, PyObject *o,
                       struct held_arg *held, sk_arg *out)
{
    int status = -1;
    if (is_traced(o))
        return RAISE_INT(st, TRACED_ARGUMENT, p->text);
    const bool exports = PyObject_CheckBuffer(o) != 0;
    if (exports && PyObject_GetBuffer(o, &held->view, PyBUF_RECORDS_RO) == 0) {
        held->kind = HELD_BUFFER;
        status = from_buffer(st, p, info, false, held, out);
    } else {
        PyErr_Clear();
        if (exports && is_bfloat16(st, o))
            status = take_bfloat16(st, p, info, o, held, out);
        else if (!PyType_Check(o) && PyObject_HasAttr(o, st->str.__dlpack__) &&
                 PyObject_HasAttr(o, st->str.__dlpack_device__))
            status = take_dlpack(st, p, info, o, held, out);
        else
            status = RAISE_INT(st, NOT_AN_ARRAY, p->text, dtype_of(p->dtype)->name, type_name(o));
    }
    if (status == 0 && !out->data)
        out->data = held->value; /* of an empty array */
    return status;
}

void arg_release(struct held_arg *held)
{
    if (held->kind == HELD_BUFFER)
        PyBuffer_Release(&held->view);
    Py_CLEAR(held->object);
    held->kind = HELD_NOTHING;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* An integer as a double whose later rounding to fewer bits is right: what is lost stays in the last bit. */
static double integer_as_double(struct tv v)
{
    uint64_t m = v.magnitude;
    double scale = 1;
    if (m >> 53) {
        m = m >> 11 | ((m & 0x7ff) != 0);
        scale = 2048;
    }
    return (v.negative ? -(double)m : (double)m) * scale;
}

static bool integer_fits(struct tv v, unsigned class_, unsigned bits)
{
    const uint64_t top = 1ull << (bits - 1);
    if (class_ == CLASS_S)
        return v.negative ? v.magnitude <= top : v.magnitude < top;
    return (!v.negative || v.magnitude == 0) && (v.magnitude >> 1) < top;
}

/* Rounded to a float type: its bits. False: a finite number became infinite. */
static bool float_bits(double x, enum scalar s, uint64_t *bits)
{
    if (s == S_F16) {
        *bits = f16_from_f64(x);
        return !isfinite(x) || (*bits & 0x7fff) != 0x7c00;
    }
    if (s == S_BF16) {
        *bits = bf16_from_f64(x);
        return !isfinite(x) || (*bits & 0x7fff) != 0x7f80;
    }
    const float f = (float)x;
    *bits = bits_f32(f);
    return !isfinite(x) || isfinite(f);
}

static int pack_scalar(struct state *st, const struct param_spec *p, PyObject *o, enum scalar s, unsigned char *at)
{
    const struct scalar_info *info = &scalar_info[s];
    struct tv v;
    const int status = is_traced(o) ? RAISE_INT(st, TRACED_ARGUMENT, p->text) : weak_number(st, o, &v);
    uint64_t bits = 0;
    bool good = true;
    if (status < 0)
        return -1;
    if (status > 0 || (info->class_ == CLASS_B && v.kind != TV_BOOL) || (v.kind == TV_FLOAT && info->class_ != CLASS_F))
        return RAISE_INT(st, VALUE_TYPE, p->text, dtype_of(st->dtypes[0][s])->name, type_name(o));
    if (v.kind == TV_BOOL)
        v.kind = TV_INT;
    if (info->class_ == CLASS_F)
        good = float_bits(v.kind == TV_INT ? integer_as_double(v) : v.f, s, &bits);
    else if (info->class_ == CLASS_B)
        bits = v.magnitude;
    else if ((good = integer_fits(v, info->class_, info->bits)))
        bits = v.negative ? 0u - v.magnitude : v.magnitude;
    if (!good) {
        PyObject *shown = PyObject_Repr(o);
        const char *text = shown ? PyUnicode_AsUTF8(shown) : NULL;
        if (text)
            (void)RAISE(st, VALUE_RANGE, p->text, text, dtype_of(st->dtypes[0][s])->name);
        Py_XDECREF(shown);
        return -1;
    }
#if PY_BIG_ENDIAN
    bits <<= 64 - 8 * info->bytes;
#endif
    memcpy(at, &bits, info->bytes);
    return 0;
}

static int take_value(struct state *st, const struct param_spec *p, const sk_arg_info *info, PyObject *o,
                      struct held_arg *held, sk_arg *out)
{
    const enum scalar s = ir_type_scalar(p->type);
    const unsigned width = ir_type_width(p->type);
    int status = 0;
    memset(held->value, 0, sizeof held->value);
    out->data = held->value;
    out->size = info->size;
    if (width == 1)
        return pack_scalar(st, p, o, s, (unsigned char *)held->value);
    struct tv number;
    if (PyUnicode_Check(o) || !PySequence_Check(o) || weak_number(st, o, &number) == 0)
        return RAISE_INT(st, VECTOR_TYPE, p->text, dtype_of(p->dtype)->name, width, type_name(o));
    if (PyErr_Occurred())
        return -1;
    PyObject *items = PySequence_Fast(o, "a vector argument");
    if (!items)
        return -1;
    if (PySequence_Fast_GET_SIZE(items) != (Py_ssize_t)width)
        status = RAISE_INT(st, VECTOR_COUNT, p->text, dtype_of(p->dtype)->name, width,
                           (unsigned)PySequence_Fast_GET_SIZE(items));
    for (unsigned i = 0; i < width && status == 0; i++)
        status = pack_scalar(st, p, PySequence_Fast_GET_ITEM(items, i), s,
                             (unsigned char *)held->value + i * scalar_info[s].bytes);
    Py_DECREF(items);
    return status;
}

/* Threadgroup memory: the number of its elements. */
static int take_count(struct state *st, const struct param_spec *p, const sk_arg_info *info, PyObject *o, sk_arg *out)
{
    struct tv v;
    const int status = is_traced(o) ? RAISE_INT(st, TRACED_ARGUMENT, p->text) : weak_number(st, o, &v);
    if (status < 0)
        return -1;
    if (status > 0 || v.kind != TV_INT)
        return RAISE_INT(st, COUNT_TYPE, p->text, dtype_of(p->dtype)->name, type_name(o));
    if (v.negative || v.magnitude > UINT32_MAX)
        return RAISE_INT(st, COUNT_RANGE, p->text, v.negative ? "-" : "", (unsigned long long)v.magnitude);
    out->data = NULL;
    out->size = (size_t)v.magnitude * info->size;
    return 0;
}

int arg_take(struct state *st, const struct param_spec *p, const sk_arg_info *info, PyObject *o, struct held_arg *held,
             sk_arg *out)
{
    switch (info->kind) {
    case SK_ARG_BUFFER: return take_buffer(st, p, info, o, held, out);
    case SK_ARG_VALUE: return take_value(st, p, info, o, held, out);
    case SK_ARG_THREADGROUP: return take_count(st, p, info, o, out);
    }
    return -1;
}
