/* A method that takes one argument and does nothing: what any call from Python into C costs. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *empty(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    (void)args;
    (void)n;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"empty", (PyCFunction)(void (*)(void))empty, METH_FASTCALL, "Does nothing."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "spork_bench_empty", .m_size = -1,
                                    .m_methods = methods};

PyMODINIT_FUNC PyInit_spork_bench_empty(void)
{
    return PyModule_Create(&module);
}
