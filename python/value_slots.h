/* value_slots.h - Python's operators on traced objects: one row each. */
#ifndef SK_PY_VALUE_SLOTS_H
#define SK_PY_VALUE_SLOTS_H

#include "state.h"

/* (slot, operation): nb_SLOT, and nb_inplace_SLOT of locals. */
#define BINARY_TABLE(BINARY)                                                                                           \
    BINARY(add, OP_ADD)                                                                                                \
    BINARY(subtract, OP_SUB)                                                                                           \
    BINARY(multiply, OP_MUL)                                                                                           \
    BINARY(true_divide, OP_DIV)                                                                                        \
    BINARY(floor_divide, OP_DIV_FLOOR)                                                                                 \
    BINARY(remainder, OP_REM_FLOOR)                                                                                    \
    BINARY(lshift, OP_SHL)                                                                                             \
    BINARY(rshift, OP_SHR)                                                                                             \
    BINARY(and, OP_AND)                                                                                                \
    BINARY(or, OP_OR)                                                                                                  \
    BINARY(xor, OP_XOR)
#define UNARY_TABLE(UNARY)                                                                                             \
    UNARY(negative, OP_NEG)                                                                                            \
    UNARY(invert, OP_NOT)

#define DECLARE_BINARY(slot, op) PyObject *traced_##slot(PyObject *x, PyObject *y);
#define DECLARE_UNARY(slot, op) PyObject *traced_##slot(PyObject *self);
BINARY_TABLE(DECLARE_BINARY)
UNARY_TABLE(DECLARE_UNARY)
#undef DECLARE_BINARY
#undef DECLARE_UNARY
PyObject *traced_power(PyObject *x, PyObject *y, PyObject *modulus);
PyObject *traced_divmod(PyObject *x, PyObject *y);
PyObject *traced_positive(PyObject *self);
PyObject *traced_absolute(PyObject *self);
PyObject *traced_compare(PyObject *self, PyObject *other, int how);
Py_hash_t traced_hash(PyObject *self);
int traced_bool(PyObject *self);
PyObject *traced_int(PyObject *self);
PyObject *traced_float(PyObject *self);
PyObject *traced_index(PyObject *self);
PyObject *traced_iter(PyObject *self);
Py_ssize_t traced_length(PyObject *self);
int traced_contains(PyObject *self, PyObject *other);
PyObject *traced_format(PyObject *self, PyObject *spec);
PyObject *traced_binary(PyObject *x, PyObject *y, enum op op); /* one of them traced */
PyObject *traced_getattro(PyObject *self, PyObject *name);     /* hints.c */
PyObject *traced_array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
PyObject *traced_get_dtype(PyObject *self, void *closure);

#define TRACED_METHODS                                                                                                 \
    {"__format__", traced_format, METH_O, NULL},                                                                       \
    {                                                                                                                  \
        "__array_ufunc__", PY_METHOD(traced_array_ufunc), METH_FASTCALL | METH_KEYWORDS, NULL                          \
    }

#define BINARY_SLOT(slot, op) {Py_nb_##slot, traced_##slot},
#define TRACED_SLOTS                                                                                                   \
    BINARY_TABLE(BINARY_SLOT)                                                                                          \
    UNARY_TABLE(BINARY_SLOT){Py_nb_power, traced_power}, {Py_nb_divmod, traced_divmod},                                \
        {Py_nb_positive, traced_positive}, {Py_nb_absolute, traced_absolute}, {Py_nb_bool, traced_bool},               \
        {Py_nb_int, traced_int}, {Py_nb_float, traced_float}, {Py_nb_index, traced_index}, {Py_tp_iter, traced_iter},  \
        {Py_mp_length, traced_length}, {Py_sq_contains, traced_contains}, {Py_tp_richcompare, traced_compare},         \
        {Py_tp_hash, traced_hash}, {Py_tp_getattro, traced_getattro},                                                  \
    {                                                                                                                  \
        Py_tp_dealloc, traced_dealloc                                                                                  \
    }

#endif
