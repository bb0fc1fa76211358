/* errors.c - the exception classes, and from a sk_error to one of them. */
#include "state.h"

/* EXCEPTION(STATUS, Name, builtin base or null, doc): one class for each status, all derived from SporkError. */
#define EXCEPTION_TABLE(EXCEPTION)                                                                                     \
    EXCEPTION(MEMORY, SporkMemoryError, PyExc_MemoryError, "The library ran out of memory.")                           \
    EXCEPTION(TYPE, SporkTypeError, PyExc_TypeError, "An operand, argument or annotation has the wrong type.")         \
    EXCEPTION(VALUE, SporkValueError, PyExc_ValueError, "A value is out of its range, a size or shape malformed.")     \
    EXCEPTION(TRACE, TraceError, NULL, "A misuse of tracing: a value outside its block or kernel, an open block.")     \
    EXCEPTION(SYNTAX, IRSyntaxError, PyExc_ValueError, "Malformed IR text.")                                           \
    EXCEPTION(INVALID, InvalidIRError, NULL, "IR that the verifier refuses.")                                          \
    EXCEPTION(UNSUPPORTED, UnsupportedError, PyExc_NotImplementedError, "A device or printer refuses a feature.")      \
    EXCEPTION(FAULT, KernelFault, NULL, "A kernel faulted: an access out of bounds, a deadlock, no progress.")         \
    EXCEPTION(DEVICE, DeviceError, PyExc_RuntimeError, "There is no such device, or the device failed.")               \
    EXCEPTION(INTERRUPTED, LaunchInterrupted, NULL, "A launch was stopped on request.")                                \
    EXCEPTION(IO, SporkOSError, PyExc_OSError, "A file could not be read or written.")

static int add_exception(PyObject *module, PyObject **slot, const char *name, PyObject *bases, const char *doc)
{
    char qualified[64];
    PyOS_snprintf(qualified, sizeof qualified, "spork.%s", name);
    *slot = PyErr_NewExceptionWithDoc(qualified, doc, bases, NULL);
    return *slot ? PyModule_AddObjectRef(module, name, *slot) : -1;
}

int errors_init(struct state *st, PyObject *module)
{
    if (add_exception(module, &st->exceptions[SK_OK], "SporkError", NULL,
                      "The root of Spork's exceptions. `file`, `line`, `column` (None if unknown) say whose line is to "
                      "blame, `name` is the message's row in errors.def.") < 0)
        return -1;
    PyObject *root = st->exceptions[SK_OK], *bases;
    int status;
#define EXCEPTION(STATUS, Name, base, doc)                                                                             \
    bases = (base) ? PyTuple_Pack(2, root, (PyObject *)(base)) : PyTuple_Pack(1, root);                                \
    if (!bases)                                                                                                        \
        return -1;                                                                                                     \
    status = add_exception(module, &st->exceptions[SK_ERR_##STATUS], #Name, bases, doc);                               \
    Py_DECREF(bases);                                                                                                  \
    if (status < 0)                                                                                                    \
        return -1;
    EXCEPTION_TABLE(EXCEPTION)
#undef EXCEPTION
    bases = PyTuple_Pack(2, root, PyExc_AttributeError);
    st->attribute_error = bases ? PyErr_NewException("spork.SporkAttributeError", bases, NULL) : NULL;
    Py_XDECREF(bases);
    if (!st->attribute_error)
        return -1;
    static const char *const fields[] = {"file", "line", "column", "name"};
    for (unsigned i = 0; i < 4; i++)
        if (PyObject_SetAttrString(root, fields[i], Py_None) < 0)
            return -1;
    return 0;
}

static void set_number(PyObject *e, PyObject *name, uint32_t x)
{
    PyObject *o = PyLong_FromUnsignedLong(x);
    if (!o || PyObject_SetAttr(e, name, o) < 0)
        PyErr_Clear();
    Py_XDECREF(o);
}

static void set_text(PyObject *e, PyObject *name, const char *text)
{
    PyObject *o = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (!o || PyObject_SetAttr(e, name, o) < 0)
        PyErr_Clear();
    Py_XDECREF(o);
}

PyObject *raise_as(struct state *st, PyObject *type, sk_error *err)
{
    if (!err->file[0]) { /* of a launch, say: the line that asked for it */
        const struct err_place at = caller_place(st);
        PyOS_snprintf(err->file, sizeof err->file, "%s", at.file ? at.file : "");
        err->line = at.line;
    }
    if (err->file[0] && err->line && !err->column)
        err->column = caller_column(st, err->file, err->line);
    char where[32] = "";
    if (err->file[0])
        PyOS_snprintf(where, sizeof where, ":%u: ", (unsigned)err->line);
    PyObject *text = PyUnicode_FromFormat("%s%s%s", err->file, where, err->message);
    PyObject *e = text ? PyObject_CallFunctionObjArgs(type, text, NULL) : NULL;
    if (e) {
        if (err->file[0]) {
            set_text(e, st->str.file, err->file);
            set_number(e, st->str.line, err->line);
        }
        if (err->column)
            set_number(e, st->str.column, err->column);
        set_text(e, st->str.name, err->name);
        PyErr_SetObject((PyObject *)Py_TYPE(e), e);
        Py_DECREF(e);
    }
    Py_XDECREF(text);
    sk_error_clear(err);
    return NULL;
}

PyObject *raise_error(struct state *st, sk_error *err)
{
    return raise_as(st, st->exceptions[err->status], err);
}

const char *type_name(PyObject *o)
{
    const char *name = PyType_Check(o) ? ((PyTypeObject *)o)->tp_name : Py_TYPE(o)->tp_name;
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}
