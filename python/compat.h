/* compat.h - Python.h, and what differs between the versions of CPython that the extension supports (3.9 and later). */
#ifndef SK_PY_COMPAT_H
#define SK_PY_COMPAT_H

#define PY_SSIZE_T_CLEAN
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wredundant-decls"
#pragma GCC diagnostic ignored "-Wold-style-definition"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#include <Python.h>
#include <frameobject.h>
#include <structmember.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
/* Slots and closures are void * in Python's tables, also where they hold text. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wincompatible-pointer-types-discards-qualifiers"
#elif defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers"
#endif

#if PY_VERSION_HEX < 0x030A0000
static inline PyObject *compat_new_ref(PyObject *o)
{
    Py_INCREF(o);
    return o;
}
#define Py_NewRef(o) compat_new_ref((PyObject *)(o))
#define Py_XNewRef(o) ((o) ? Py_NewRef(o) : NULL)
static inline int compat_add_object(PyObject *module, const char *name, PyObject *o)
{
    Py_XINCREF(o);
    if (o && PyModule_AddObject(module, name, o) == 0)
        return 0;
    Py_XDECREF(o);
    return -1;
}
#define PyModule_AddObjectRef compat_add_object
#define Py_TPFLAGS_DISALLOW_INSTANTIATION (1UL << 7) /* as in later versions; module.c clears tp_new */
#endif

/* Byte offset of the instruction that a frame executes; -1 if unknown. */
static inline int compat_lasti(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLasti(frame);
#else
    PyObject *o = PyObject_GetAttrString((PyObject *)frame, "f_lasti");
    const long at = o ? PyLong_AsLong(o) : -1;
    Py_XDECREF(o);
    if (PyErr_Occurred())
        PyErr_Clear();
    return (int)at;
#endif
}

#if defined(__GNUC__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE
#endif

/* A function with METH_FASTCALL, with or without METH_KEYWORDS, in a method table. */
#define PY_METHOD(f) ((PyCFunction)(void (*)(void))(f))

#endif
