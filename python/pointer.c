/* pointer.c - memory in a kernel: pointer parameters and threadgroup arrays, subscripted. */
#include "state.h"
#include "value_slots.h"

static int read_index(struct state *st, struct session *s, PyObject *key, struct tv *out)
{
    if (PySlice_Check(key))
        return RAISE_INT(st, SLICE_INDEX);
    return operand_list(st, s, key, MAX_INDICES, out);
}

static PyObject *pointer_subscript(PyObject *self, PyObject *key)
{
    struct state *st = STATE_OF(self);
    struct session *s = session_enter(st, "a pointer");
    struct tv p, index[MAX_INDICES], out;
    if (!s || pointer_operand(st, self, "[]", &p) < 0)
        return NULL;
    const int n = read_index(st, s, key, index);
    if (n < 0)
        return NULL;
    const sk_status status = TRACE(s, trace_load(s->t, p, (unsigned)n, index, &out, &s->err));
    return traced_result(st, s, status, &out);
}

static int pointer_assign_subscript(PyObject *self, PyObject *key, PyObject *x)
{
    struct state *st = STATE_OF(self);
    if (!x)
        return RAISE_INT(st, DELETE_ELEMENT);
    struct session *s = session_enter(st, "a pointer");
    struct tv p, v, index[MAX_INDICES];
    if (!s || pointer_operand(st, self, "[]", &p) < 0)
        return -1;
    const int n = read_index(st, s, key, index);
    if (n < 0 || operand(st, s, x, &v) < 0)
        return -1;
    if (TRACE(s, trace_store(s->t, p, (unsigned)n, index, v, &s->err)) == SK_OK)
        return 0;
    raise_error(st, &s->err);
    return -1;
}

static PyObject *pointer_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<traced %s of %R>", type_name(self), traced_of(self)->dtype);
}

static PyGetSetDef pointer_getset[] = {{"dtype", traced_get_dtype, NULL, "The dtype of an element.", NULL}, {0}};
static PyMethodDef pointer_methods[] = {TRACED_METHODS, {0}};

#define POINTER_SLOTS                                                                                                  \
    TRACED_SLOTS, {Py_mp_subscript, pointer_subscript}, {Py_mp_ass_subscript, pointer_assign_subscript},               \
        {Py_tp_repr, pointer_repr}, {Py_tp_getset, pointer_getset},                                                    \
    {                                                                                                                  \
        Py_tp_methods, pointer_methods                                                                                 \
    }

static PyType_Slot pointer_slots[] = {
    POINTER_SLOTS, {Py_tp_doc, "A pointer parameter of the kernel being traced: p[i], p[i] = x."}, {0, NULL}};
PyType_Spec pointer_spec = {"spork.Pointer", sizeof(struct traced), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, pointer_slots};

static PyType_Slot array_slots[] = {
    POINTER_SLOTS, {Py_tp_doc, "Threadgroup memory, made by sk.threadgroup: s[i], s[i, j] = x."}, {0, NULL}};
PyType_Spec array_spec = {"spork.ThreadgroupArray", sizeof(struct traced), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, array_slots};
