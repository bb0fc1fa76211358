/* module.c - the extension module `spork._core`: its state, types and functions. */
#include "state.h"

static struct state *state_new_into(PyObject *module)
{
    struct state *st = state_of_module(module);
    memset(st, 0, sizeof *st);
    mem_init(&st->mem, NULL);
    arena_init(&st->text, &st->mem);
    return st;
}

/* The folder of the package, from the path of the extension in it. */
static PyObject *package_folder(PyObject *module)
{
    PyObject *file = PyObject_GetAttrString(module, "__file__"), *folder = NULL;
    const char *path = file && PyUnicode_Check(file) ? PyUnicode_AsUTF8(file) : NULL;
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (slash)
        folder = PyUnicode_FromStringAndSize(path, slash - path + 1);
    Py_XDECREF(file);
    if (PyErr_Occurred())
        PyErr_Clear();
    return folder;
}

static unsigned long main_thread(void)
{
    PyObject *module = PyImport_ImportModule("threading"), *thread = NULL, *ident = NULL;
    if (module && (thread = PyObject_CallMethod(module, "main_thread", NULL)))
        ident = PyObject_GetAttrString(thread, "ident");
    const unsigned long id = ident ? PyLong_AsUnsignedLongMask(ident) : 0;
    Py_XDECREF(ident);
    Py_XDECREF(thread);
    Py_XDECREF(module);
    if (PyErr_Occurred())
        PyErr_Clear();
    return id;
}

static int add_types(struct state *st, PyObject *module)
{
#define TYPE(field, spec)                                                                                              \
    st->type.field = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);                                    \
    if (!st->type.field)                                                                                               \
        return -1;                                                                                                     \
    if (spec.flags & Py_TPFLAGS_DISALLOW_INSTANTIATION)                                                                \
        st->type.field->tp_new = NULL;
    TYPE_TABLE(TYPE)
#undef TYPE
#define TYPE(field, spec)                                                                                              \
    if (PyModule_AddObjectRef(module, strrchr(spec.name, '.') + 1, (PyObject *)st->type.field) < 0)                    \
        return -1;
    TYPE_TABLE(TYPE)
#undef TYPE
    return 0;
}

#define TEXT_OF(x) #x
#define VERSION_TEXT(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

static int module_exec(PyObject *module)
{
    struct state *st = state_new_into(module);
#define NAME(n)                                                                                                        \
    st->str.n = PyUnicode_InternFromString(#n);                                                                        \
    if (!st->str.n)                                                                                                    \
        return -1;
    NAME_TABLE(NAME)
#undef NAME
    if (PyModule_AddStringConstant(module, "__version__",
                                   VERSION_TEXT(SK_VERSION_MAJOR, SK_VERSION_MINOR, SK_VERSION_PATCH)) < 0)
        return -1;
    st->package = package_folder(module);
    st->main_thread = main_thread();
    if (place_init(st) < 0 || errors_init(st, module) < 0 || add_types(st, module) < 0 || dtypes_init(st, module) < 0 ||
        annotations_init(st, module) < 0 || tables_init(st, module) < 0 ||
        PyModule_AddFunctions(module, functions_methods) < 0 || PyModule_AddFunctions(module, control_methods) < 0 ||
        PyModule_AddFunctions(module, device_methods) < 0)
        return -1;
    return 0;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct state *st = state_of_module(module);
    if (!st)
        return 0;
#define TYPE(field, spec) Py_VISIT(st->type.field);
    TYPE_TABLE(TYPE)
#undef TYPE
    for (int i = 0; i <= SK_ERR_IO; i++)
        Py_VISIT(st->exceptions[i]);
    Py_VISIT(st->attribute_error);
    for (int i = 0; i < ATTR_COUNT; i++)
        Py_VISIT(st->markers[i]);
    for (int a = 0; a < 2; a++)
        for (int i = 0; i < DTYPE_COUNT; i++)
            Py_VISIT(st->dtypes[a][i]);
    return 0;
}

static int module_clear(PyObject *module)
{
    struct state *st = state_of_module(module);
    if (!st)
        return 0;
#define TYPE(field, spec) Py_CLEAR(st->type.field);
    TYPE_TABLE(TYPE)
#undef TYPE
#define NAME(n) Py_CLEAR(st->str.n);
    NAME_TABLE(NAME)
#undef NAME
    for (int i = 0; i <= SK_ERR_IO; i++)
        Py_CLEAR(st->exceptions[i]);
    Py_CLEAR(st->attribute_error);
    for (int i = 0; i < ATTR_COUNT; i++)
        Py_CLEAR(st->markers[i]);
    for (int a = 0; a < 2; a++)
        for (int i = 0; i < DTYPE_COUNT; i++)
            Py_CLEAR(st->dtypes[a][i]);
    Py_CLEAR(st->package);
    return 0;
}

static void module_free(void *module)
{
    struct state *st = state_of_module(module);
    if (!st)
        return;
    (void)module_clear(module);
    launch_helper_free(st->helper);
    if (!st->away)
        sk_context_destroy(st->context);
    st->context = NULL;
    arena_free(&st->text);
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, (void *)module_exec},
#if PY_VERSION_HEX >= 0x030C0000
                                          {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_SUPPORTED},
#endif
                                          {0, NULL}};

static struct PyModuleDef spork_module = {PyModuleDef_HEAD_INIT,           .m_name = "spork._core",
                                          .m_doc = "The engine of spork.", .m_size = sizeof(struct state),
                                          .m_slots = module_slots,         .m_traverse = module_traverse,
                                          .m_clear = module_clear,         .m_free = module_free};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&spork_module);
}
