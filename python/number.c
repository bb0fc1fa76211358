/* number.c - operands from Python objects. */
#include "state.h"

static int weak_integer(struct state *st, PyObject *o, struct tv *out)
{
    int overflow;
    const long long x = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (x == -1 && PyErr_Occurred())
        return -1;
    if (!overflow) {
        *out = tv_int(x);
        return 0;
    }
    if (overflow > 0) {
        const unsigned long long u = PyLong_AsUnsignedLongLong(o);
        if (!PyErr_Occurred()) {
            *out = (struct tv){.kind = TV_INT, .magnitude = u};
            return 0;
        }
        PyErr_Clear();
    }
    PyObject *text = PyObject_Str(o); /* fails for integers of thousands of digits */
    if (!text)
        PyErr_Clear();
    const char *digits = text ? PyUnicode_AsUTF8(text) : NULL;
    if (!digits)
        PyErr_Clear();
    (void)RAISE(st, INTEGER_TOO_LARGE, digits && strlen(digits) <= 60 ? digits : "of so many digits");
    Py_XDECREF(text);
    return -1;
}

/* Arrays have NumPy's number slots too; their `ndim` tells them from scalars. */
static int is_scalar(struct state *st, PyObject *o)
{
    PyObject *ndim = PyObject_GetAttr(o, st->str.ndim);
    if (!ndim) {
        PyErr_Clear();
        return 1;
    }
    const long n = PyLong_AsLong(ndim);
    Py_DECREF(ndim);
    if (n == -1 && PyErr_Occurred())
        PyErr_Clear();
    return n == 0;
}

/* NumPy gives complex numbers, times and durations a float() too, which drops the imaginary part or the unit. */
static bool is_number(struct state *st, PyObject *o)
{
    PyObject *dtype = PyObject_GetAttr(o, st->str.dtype), *kind = dtype ? PyObject_GetAttr(dtype, st->str.kind) : NULL;
    const bool other = kind && PyUnicode_Check(kind) && PyUnicode_GET_LENGTH(kind) == 1 &&
                       strchr("cmM", (int)PyUnicode_READ_CHAR(kind, 0));
    Py_XDECREF(kind);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return !other;
}

int weak_number(struct state *st, PyObject *o, struct tv *out)
{
    if (PyBool_Check(o)) {
        *out = tv_bool(o == Py_True);
        return 0;
    }
    if (PyLong_Check(o))
        return weak_integer(st, o, out);
    if (PyFloat_Check(o)) {
        *out = tv_float(PyFloat_AS_DOUBLE(o));
        return 0;
    }
    const PyNumberMethods *number = Py_TYPE(o)->tp_as_number;
    if (is_traced(o) || PyType_Check(o) || !number || !is_scalar(st, o) || !is_number(st, o))
        return 1;
    if (strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) == 0) {
        const int truth = PyObject_IsTrue(o);
        *out = tv_bool(truth > 0);
        return truth < 0 ? -1 : 0;
    }
    PyObject *x = NULL;
    int status = 1;
    if (number->nb_index && (x = PyNumber_Index(o)))
        status = weak_integer(st, x, out);
    else if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        if (number->nb_float && (x = PyNumber_Float(o))) {
            *out = tv_float(PyFloat_AS_DOUBLE(x));
            status = 0;
        } else if (PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_TypeError))
                return -1;
            PyErr_Clear();
        }
    } else {
        return -1;
    }
    Py_XDECREF(x);
    return status;
}

static int traced_operand(struct state *st, const struct session *s, PyObject *o, struct tv *out)
{
    if (traced_of(o)->session != s->id)
        return RAISE_INT(st, OTHER_KERNEL);
    *out = traced_of(o)->v;
    return 0;
}

int operand(struct state *st, struct session *s, PyObject *o, struct tv *out)
{
    if (is_traced(o))
        return traced_operand(st, s, o, out);
    const int status = weak_number(st, o, out);
    if (status <= 0)
        return status;
    if (!is_scalar(st, o))
        return RAISE_INT(st, ARRAY_OPERAND, type_name(o));
    if (PyCallable_Check(o))
        return RAISE_INT(st, CALLABLE_OPERAND, type_name(o));
    return RAISE_INT(st, NOT_AN_OPERAND, type_name(o));
}

int pointer_operand(struct state *st, PyObject *o, const char *what, struct tv *out)
{
    const struct session *s = session_find(st);
    if (Py_TYPE(o) != st->type.pointer && Py_TYPE(o) != st->type.array)
        return RAISE_INT(st, POINTER_NEEDED, what, type_name(o));
    return traced_operand(st, s, o, out);
}

int operand_list(struct state *st, struct session *s, PyObject *o, unsigned max, struct tv *out)
{
    if (!PyTuple_Check(o) && !PyList_Check(o))
        return operand(st, s, o, out) < 0 ? -1 : 1;
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    if (n > (Py_ssize_t)max)
        return RAISE_INT(st, TOO_MANY_PARTS, (int)n, max);
    for (Py_ssize_t i = 0; i < n; i++)
        if (operand(st, s, PySequence_Fast_GET_ITEM(o, i), out + i) < 0)
            return -1;
    return (int)n;
}
