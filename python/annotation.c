/* annotation.c - sk.DevicePointer[…], sk.Uint[…] and the attribute markers: what a parameter is annotated with. */
#include "kernel.h"

/* ---- pointers ---------------------------------------------------------------------------------------------------- */

static PyObject *pointer_make(PyTypeObject *type, PyObject *o)
{
    struct state *st = state_of_type(type);
    PyObject *dtype = as_dtype(st, o, strrchr(type->tp_name, '.') + 1);
    struct pointer_spec_object *p = dtype ? PyObject_New(struct pointer_spec_object, type) : NULL;
    if (p)
        p->dtype = Py_NewRef(dtype);
    return (PyObject *)p;
}

static PyObject *pointer_class_getitem(PyObject *type, PyObject *o)
{
    return pointer_make((PyTypeObject *)type, o);
}

static PyObject *pointer_tp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *o;
    static char *names[] = {"dtype", NULL};
    return PyArg_ParseTupleAndKeywords(args, kwargs, "O", names, &o) ? pointer_make(type, o) : NULL;
}

static void pointer_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(((struct pointer_spec_object *)self)->dtype);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *pointer_spec_repr(PyObject *self)
{
    return PyUnicode_FromFormat("%s[%R]", type_name(self), ((struct pointer_spec_object *)self)->dtype);
}

static PyObject *pointer_spec_compare(PyObject *a, PyObject *b, int how)
{
    if ((how != Py_EQ && how != Py_NE) || Py_TYPE(a) != Py_TYPE(b))
        Py_RETURN_NOTIMPLEMENTED;
    const bool same = ((struct pointer_spec_object *)a)->dtype == ((struct pointer_spec_object *)b)->dtype;
    return PyBool_FromLong(same == (how == Py_EQ));
}

static Py_hash_t pointer_spec_hash(PyObject *self)
{
    const uintptr_t mix = (uintptr_t)((struct pointer_spec_object *)self)->dtype ^ (uintptr_t)Py_TYPE(self);
    return (Py_hash_t)(mix >> 4);
}

static PyObject *pointer_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("O(O)", Py_TYPE(self), ((struct pointer_spec_object *)self)->dtype);
}

static PyMethodDef pointer_spec_methods[] = {
    {"__class_getitem__", pointer_class_getitem, METH_O | METH_CLASS, "The annotation for elements of a dtype."},
    {"__reduce__", pointer_reduce, METH_NOARGS, NULL},
    {0}};
static PyMemberDef pointer_spec_members[] = {
    {"dtype", T_OBJECT, offsetof(struct pointer_spec_object, dtype), READONLY, "The dtype of an element."}, {0}};

#define POINTER_SPEC(var, name, doc)                                                                                   \
    static PyType_Slot var##_slots[] = {{Py_tp_new, pointer_tp_new},                                                   \
                                        {Py_tp_dealloc, pointer_dealloc},                                              \
                                        {Py_tp_repr, pointer_spec_repr},                                               \
                                        {Py_tp_richcompare, pointer_spec_compare},                                     \
                                        {Py_tp_hash, pointer_spec_hash},                                               \
                                        {Py_tp_methods, pointer_spec_methods},                                         \
                                        {Py_tp_members, pointer_spec_members},                                         \
                                        {Py_tp_doc, doc},                                                              \
                                        {0, NULL}};                                                                    \
    PyType_Spec var##_spec = {"spork." name, sizeof(struct pointer_spec_object), 0, Py_TPFLAGS_DEFAULT, var##_slots};
POINTER_SPEC(device_pointer, "DevicePointer", "DevicePointer[dtype]: memory that the kernel reads and may write.")
POINTER_SPEC(constant_pointer, "ConstantPointer", "ConstantPointer[dtype]: memory in the constant space, only read.")
POINTER_SPEC(threadgroup_pointer, "ThreadgroupPointer",
             "ThreadgroupPointer[dtype]: threadgroup memory; its argument is the number of elements.")

/* ---- scalars and vectors ----------------------------------------------------------------------------------------- */

static PyObject *scalar_make(struct state *st, PyObject *dtype, unsigned n, PyObject *marker, enum attribute attr)
{
    struct scalar_param *p = PyObject_New(struct scalar_param, st->type.scalar_param);
    if (p) {
        p->dtype = Py_NewRef(dtype);
        p->attribute = Py_XNewRef(marker);
        p->n = n;
        p->attr = attr;
    }
    return (PyObject *)p;
}

static void scalar_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(((struct scalar_param *)self)->dtype);
    Py_XDECREF(((struct scalar_param *)self)->attribute);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Metal's name with a capital: Uint, Float4. */
static void scalar_python_name(const struct scalar_param *p, char *out, size_t cap)
{
    const char *metal = scalar_info[ir_type_scalar(dtype_of(p->dtype)->type)].msl;
    char count[4] = "";
    if (p->n > 1)
        PyOS_snprintf(count, sizeof count, "%u", p->n);
    PyOS_snprintf(out, cap, "%c%s%s", metal[0] - 'a' + 'A', metal + 1, count);
}

static PyObject *scalar_repr(PyObject *self)
{
    const struct scalar_param *p = (struct scalar_param *)self;
    char name[32];
    scalar_python_name(p, name, sizeof name);
    return p->attribute ? PyUnicode_FromFormat("%s[%s]", name, attr_info[p->attr].python) : PyUnicode_FromString(name);
}

static enum attribute marker_attribute(struct state *st, PyObject *marker)
{
    enum attribute found = ATTR_NONE;
    if (!PyType_Check(marker) || !PyType_IsSubtype((PyTypeObject *)marker, st->type.attribute))
        return ATTR_NONE;
    PyObject *metal = PyObject_GetAttr(marker, st->str.metal_attr);
    for (int a = ATTR_NONE + 1; metal && PyUnicode_Check(metal) && a < ATTR_COUNT; a++)
        if (PyUnicode_CompareWithASCIIString(metal, attr_info[a].metal) == 0)
            found = (enum attribute)a;
    Py_XDECREF(metal);
    if (PyErr_Occurred())
        PyErr_Clear();
    return found;
}

static PyObject *scalar_subscript(PyObject *self, PyObject *marker)
{
    struct state *st = STATE_OF(self);
    const struct scalar_param *p = (struct scalar_param *)self;
    const enum attribute attr = marker_attribute(st, marker);
    char name[32];
    scalar_python_name(p, name, sizeof name);
    if (attr == ATTR_NONE || p->attribute)
        return RAISE(st, NOT_A_MARKER, name, type_name(marker));
    const enum scalar s = ir_type_scalar(dtype_of(p->dtype)->type);
    if (s != S_U32 && s != S_U16 && s != S_I32)
        return RAISE(st, MARKER_TYPE, attr_info[attr].python, name);
    if (p->n > (attr_info[attr].vec ? 3u : 1u))
        return RAISE(st, MARKER_WIDTH, attr_info[attr].python, attr_info[attr].vec ? "3 components" : "1 component");
    return scalar_make(st, p->dtype, p->n, marker, attr);
}

/* sk.Float2(a, b) is sk.dt.float32x2(a, b), as in Metal. */
static PyObject *scalar_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct scalar_param *p = (struct scalar_param *)self;
    struct state *st = STATE_OF(self);
    char name[32];
    scalar_python_name(p, name, sizeof name);
    if (p->attribute) {
        PyObject *shown = scalar_repr(self);
        if (shown)
            (void)RAISE(st, SPEC_CALL, PyUnicode_AsUTF8(shown), name);
        Py_XDECREF(shown);
        return NULL;
    }
    return PyObject_Call(st->dtypes[0][ir_type_vector(ir_type_scalar(dtype_of(p->dtype)->type), p->n)], args, kwargs);
}

static PyObject *scalar_metal_name(PyObject *self, void *closure)
{
    (void)closure;
    const struct scalar_param *p = (struct scalar_param *)self;
    struct state *st = STATE_OF(self);
    PyObject *whole = st->dtypes[0][ir_type_vector(ir_type_scalar(dtype_of(p->dtype)->type), p->n)];
    return PyUnicode_FromString(dtype_of(whole)->metal);
}

static PyObject *scalar_vec_size(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(((struct scalar_param *)self)->n);
}

static PyObject *scalar_compare(PyObject *a, PyObject *b, int how)
{
    if ((how != Py_EQ && how != Py_NE) || Py_TYPE(a) != Py_TYPE(b))
        Py_RETURN_NOTIMPLEMENTED;
    const struct scalar_param *p = (struct scalar_param *)a, *q = (struct scalar_param *)b;
    const bool same = p->dtype == q->dtype && p->n == q->n && p->attr == q->attr;
    return PyBool_FromLong(same == (how == Py_EQ));
}

static Py_hash_t scalar_hash(PyObject *self)
{
    const struct scalar_param *p = (struct scalar_param *)self;
    return (Py_hash_t)(((uintptr_t)p->dtype >> 4) * 31 + p->n * 101 + (unsigned)p->attr);
}

static PyMemberDef scalar_members[] = {
    {"dtype", T_OBJECT, offsetof(struct scalar_param, dtype), READONLY, "The dtype of a component."},
    {"attribute", T_OBJECT, offsetof(struct scalar_param, attribute), READONLY,
     "The marker of what the launch fills it with, or None."},
    {0}};
static PyGetSetDef scalar_getset[] = {{"metal_name", scalar_metal_name, NULL, "Metal's name of the type.", NULL},
                                      {"vec_size", scalar_vec_size, NULL, "Number of components.", NULL},
                                      {0}};
static PyType_Slot scalar_param_slots[] = {
    {Py_tp_dealloc, scalar_dealloc},
    {Py_tp_repr, scalar_repr},
    {Py_tp_richcompare, scalar_compare},
    {Py_tp_hash, scalar_hash},
    {Py_mp_subscript, scalar_subscript},
    {Py_tp_call, scalar_call},
    {Py_tp_members, scalar_members},
    {Py_tp_getset, scalar_getset},
    {Py_tp_doc,
     "The annotation of a scalar or vector parameter: bare it is given at launch, subscripted with a marker, as "
     "Uint[ThreadPositionInGrid], the launch fills it. Called in a kernel it makes a value, as sk.dt does."},
    {0, NULL}};
PyType_Spec scalar_param_spec = {"spork.ScalarParamSpec", sizeof(struct scalar_param), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, scalar_param_slots};

/* ---- markers ----------------------------------------------------------------------------------------------------- */

static PyType_Slot attribute_slots[] = {
    {Py_tp_doc, "The base of the markers. `metal_attr` is Metal's spelling of the attribute."}, {0, NULL}};
PyType_Spec attribute_spec = {"spork.ThreadAttribute", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                              attribute_slots};

int annotations_init(struct state *st, PyObject *module)
{
    for (int a = ATTR_NONE + 1; a < ATTR_COUNT; a++) {
        st->markers[a] = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){s:s,s:s,s:s}", attr_info[a].python,
                                               st->type.attribute, "metal_attr", attr_info[a].metal, "__doc__",
                                               attr_info[a].doc, "__module__", "spork");
        if (!st->markers[a] || PyModule_AddObjectRef(module, attr_info[a].python, st->markers[a]) < 0)
            return -1;
    }
    for (int s = S_VOID + 1; s < S_COUNT; s++)
        for (unsigned n = 1; n <= 4; n++) {
            PyObject *p = scalar_make(st, st->dtypes[0][s], n, NULL, ATTR_NONE);
            char name[32];
            if (p)
                scalar_python_name((struct scalar_param *)p, name, sizeof name);
            const int status = p ? PyModule_AddObjectRef(module, name, p) : -1;
            Py_XDECREF(p);
            if (status < 0)
                return -1;
        }
    return 0;
}
