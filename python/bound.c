/* bound.c - launch geometry, and BoundKernel: a kernel with its geometry, called with its arguments. */
#include "kernel.h"

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* One size: an int, anything with __index__, or an integral float. */
static int read_one(struct state *st, const char *what, PyObject *o, uint32_t *out)
{
    struct tv x;
    const int status = weak_number(st, o, &x);
    if (status < 0)
        return -1;
    if (status > 0)
        return RAISE_INT(st, SIZE_TYPE, what, type_name(o));
    if (x.kind == TV_FLOAT) {
        if (!(x.f == (double)(int64_t)x.f && x.f > -9e15 && x.f < 9e15))
            return RAISE_INT(st, SIZE_INTEGRAL, what, x.f);
        x = tv_int((int64_t)x.f);
    }
    if (x.negative)
        return RAISE_INT(st, SIZE_NEGATIVE, what, (unsigned long long)x.magnitude);
    if (x.magnitude > UINT32_MAX)
        return RAISE_INT(st, SIZE_LARGE, what, (unsigned long long)x.magnitude);
    *out = (uint32_t)x.magnitude;
    return 0;
}

/* One to three sizes. */
static int read_size(struct state *st, const char *what, PyObject *o, sk_size *out)
{
    uint32_t x[3] = {1, 1, 1};
    struct tv single;
    int status = PyTuple_Check(o) || PyList_Check(o) ? 1 : weak_number(st, o, &single);
    if (status < 0)
        return -1;
    if (status == 0 || is_traced(o) || PyUnicode_Check(o) || !PySequence_Check(o)) {
        if (read_one(st, what, o, &x[0]) < 0)
            return -1;
    } else {
        PyObject *items = PySequence_Fast(o, "a launch size");
        if (!items)
            return -1;
        const Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
        status = n >= 1 && n <= 3 ? 0 : RAISE_INT(st, SIZE_COUNT, what, (int)n);
        for (Py_ssize_t i = 0; i < n && status == 0; i++)
            status = read_one(st, what, PySequence_Fast_GET_ITEM(items, i), &x[i]);
        Py_DECREF(items);
        if (status < 0)
            return -1;
    }
    *out = (sk_size){x[0], x[1], x[2]};
    return 0;
}

static int read_bounds(struct state *st, PyObject *o, bool *unchecked)
{
    *unchecked = o && PyUnicode_Check(o) && PyUnicode_CompareWithASCIIString(o, "off") == 0;
    if (!o || *unchecked || (PyUnicode_Check(o) && PyUnicode_CompareWithASCIIString(o, "on") == 0))
        return 0;
    PyObject *shown = PyObject_Repr(o);
    const char *text = shown ? PyUnicode_AsUTF8(shown) : NULL;
    if (text)
        (void)RAISE(st, LAUNCH_BOUNDS, text);
    Py_XDECREF(shown);
    return -1;
}

int geometry_read(struct state *st, PyObject *grid, PyObject *threads, PyObject *threadgroup, PyObject *bounds,
                  struct geometry *out)
{
    if (read_bounds(st, bounds, &out->unchecked) < 0)
        return -1;
    if (grid == Py_None)
        grid = NULL;
    if (threads == Py_None)
        threads = NULL;
    if (threadgroup == Py_None)
        threadgroup = NULL;
    if ((!threadgroup && !threads) || !grid == !threads)
        return RAISE_INT(st, GEOMETRY_NAMES);
    out->threads = threads != NULL;
    if (read_size(st, threads ? "threads" : "grid", threads ? threads : grid, &out->grid) < 0)
        return -1;
    out->chosen = !threadgroup;
    if (threadgroup)
        return read_size(st, "threadgroup", threadgroup, &out->threadgroup);
    out->threadgroup = (sk_size){out->grid.x < DEFAULT_GROUP ? out->grid.x : DEFAULT_GROUP, 1, 1};
    out->threadgroup.x += !out->threadgroup.x;
    return 0;
}

sk_size geometry_group(const sk_pipeline *pipeline, const struct geometry *g)
{
    sk_size group = g->threadgroup;
    if (g->chosen && group.x > sk_pipeline_max_threads(pipeline))
        group.x = sk_pipeline_max_threads(pipeline);
    return group;
}

/* ---- the type ---------------------------------------------------------------------------------------------------- */

struct bound {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *kernel;
    struct geometry g;
};

static struct bound *bound_of(PyObject *o)
{
    return (struct bound *)o;
}

static int unknown_name(struct state *st, const struct kernel *k, PyObject *name)
{
    char known[400];
    if (PyUnicode_CompareWithASCIIString(name, "device") == 0)
        return RAISE_INT(st, LAUNCH_DEVICE);
    signature_names(&k->sig, known, sizeof known);
    return RAISE_INT(st, UNKNOWN_ARGUMENT, PyUnicode_AsUTF8(k->name), PyUnicode_AsUTF8(name),
                     "; a launch takes grid, threads, threadgroup and bounds, and the kernel ", known);
}

/* Puts arguments with names in their places; what is missing is left to kernel_launch. */
static Py_ssize_t arrange(struct state *st, struct kernel *k, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                          PyObject **out)
{
    const Py_ssize_t n_kw = PyTuple_GET_SIZE(kwnames);
    const char *name = PyUnicode_AsUTF8(k->name);
    if (!k->sig.resolved && kernel_prepare(st, k) < 0)
        return -1;
    const bool fits = n <= (Py_ssize_t)k->sig.n_args && k->sig.n_args <= MAX_ARGS;
    for (Py_ssize_t i = 0; fits && i < n; i++)
        out[i] = args[i];
    for (Py_ssize_t j = 0; j < n_kw; j++) {
        unsigned at = 0, found = UINT_MAX;
        for (unsigned i = 0; i < k->sig.n; i++) {
            if (k->sig.param[i].kind == PARAM_ATTRIBUTE)
                continue;
            if (PyUnicode_Compare(k->sig.param[i].name, PyTuple_GET_ITEM(kwnames, j)) == 0)
                found = at;
            at++;
        }
        if (found == UINT_MAX)
            return unknown_name(st, k, PyTuple_GET_ITEM(kwnames, j));
        if (fits && out[found])
            return RAISE_INT(st, ARGUMENT_TWICE, name, PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, j)));
        if (fits)
            out[found] = args[n + j];
    }
    if (n + n_kw != (Py_ssize_t)k->sig.n_args || !fits)
        return RAISE_INT(st, ARG_COUNT, name, (size_t)k->sig.n_args, (size_t)(n + n_kw));
    return k->sig.n_args;
}

/* With names: apart from the plain call, which needs no array. */
static PyObject *call_with_names(struct state *st, const struct bound *b, PyObject *const *args, Py_ssize_t n,
                                 PyObject *kwnames)
{
    PyObject *all[MAX_ARGS] = {NULL};
    n = arrange(st, kernel_of(b->kernel), args, n, kwnames, all);
    return n < 0 ? NULL : kernel_launch(st, kernel_of(b->kernel), &b->g, all, n);
}

static PyObject *bound_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *kwnames)
{
    struct state *st = STATE_OF(self);
    const struct bound *b = bound_of(self);
    const Py_ssize_t n = PyVectorcall_NARGS(flags);
    if (kwnames && PyTuple_GET_SIZE(kwnames))
        return call_with_names(st, b, args, n, kwnames);
    return kernel_launch(st, kernel_of(b->kernel), &b->g, args, n);
}

PyObject *bound_new(struct state *st, struct kernel *k, const struct geometry *g)
{
    struct bound *b = PyObject_GC_New(struct bound, st->type.bound);
    if (b) {
        b->call = bound_call;
        b->kernel = Py_NewRef(k);
        b->g = *g;
        PyObject_GC_Track(b);
    }
    return (PyObject *)b;
}

static int bound_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(bound_of(self)->kernel);
    return 0;
}

static void bound_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_DECREF(bound_of(self)->kernel);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static uint32_t groups(uint32_t threads, uint32_t group)
{
    return group ? threads / group + (threads % group != 0) : 0;
}

static PyObject *get_grid(PyObject *self, void *closure)
{
    (void)closure;
    const struct geometry *g = &bound_of(self)->g;
    if (!g->threads)
        return Py_BuildValue("(III)", g->grid.x, g->grid.y, g->grid.z);
    return Py_BuildValue("(III)", groups(g->grid.x, g->threadgroup.x), groups(g->grid.y, g->threadgroup.y),
                         groups(g->grid.z, g->threadgroup.z));
}

static PyObject *get_threads(PyObject *self, void *closure)
{
    (void)closure;
    const struct geometry *g = &bound_of(self)->g;
    if (!g->threads)
        Py_RETURN_NONE;
    return Py_BuildValue("(III)", g->grid.x, g->grid.y, g->grid.z);
}

static PyObject *get_threadgroup(PyObject *self, void *closure)
{
    (void)closure;
    const struct geometry *g = &bound_of(self)->g;
    return Py_BuildValue("(III)", g->threadgroup.x, g->threadgroup.y, g->threadgroup.z);
}

static PyObject *get_of_kernel(PyObject *self, void *name)
{
    return PyObject_GetAttrString(bound_of(self)->kernel, name);
}

static PyObject *get_bounds(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(bound_of(self)->g.unchecked ? "off" : "on");
}

static PyObject *get_cpu_ir(PyObject *self, void *closure)
{
    (void)closure;
    return kernel_code(STATE_OF(self), kernel_of(bound_of(self)->kernel), &bound_of(self)->g, SK_TEXT_LLVM);
}

static PyObject *get_cpu_asm(PyObject *self, void *closure)
{
    (void)closure;
    return kernel_code(STATE_OF(self), kernel_of(bound_of(self)->kernel), &bound_of(self)->g, SK_TEXT_ASM);
}

static PyObject *bound_repr(PyObject *self)
{
    PyObject *grid = get_grid(self, NULL), *group = get_threadgroup(self, NULL), *text = NULL;
    if (grid && group)
        text = PyUnicode_FromFormat("<spork.BoundKernel %U[%R, %R]>", kernel_of(bound_of(self)->kernel)->name, grid,
                                    group);
    Py_XDECREF(grid);
    Py_XDECREF(group);
    return text;
}

static PyObject *bound_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct bound *b = bound_of(self);
    PyObject *threads = get_threads(self, NULL), *grid = b->g.threads ? Py_NewRef(Py_None) : get_grid(self, NULL);
    PyObject *group = b->g.chosen ? Py_NewRef(Py_None) : get_threadgroup(self, NULL), *reduced = NULL;
    if (threads && grid && group)
        reduced =
            Py_BuildValue("O(OOOOs)", Py_TYPE(self), b->kernel, grid, group, threads, b->g.unchecked ? "off" : "on");
    Py_XDECREF(threads);
    Py_XDECREF(grid);
    Py_XDECREF(group);
    return reduced;
}

static PyObject *bound_tp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct state *st = state_of_type(type);
    static char *names[] = {"kernel", "grid", "threadgroup", "threads", "bounds", NULL};
    PyObject *kernel, *grid = NULL, *threadgroup = NULL, *threads = NULL, *bounds = NULL;
    struct geometry g;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|OOOO", names, st->type.kernel, &kernel, &grid, &threadgroup,
                                     &threads, &bounds) ||
        geometry_read(st, grid, threads, threadgroup, bounds, &g) < 0)
        return NULL;
    return bound_new(st, kernel_of(kernel), &g);
}

static PyMemberDef bound_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct bound, call), READONLY, NULL},
    {"kernel", T_OBJECT, offsetof(struct bound, kernel), READONLY, "The JittedKernel."},
    {0}};
static PyGetSetDef bound_getset[] = {
    {"grid", get_grid, NULL, "Threadgroups in the grid.", NULL},
    {"threadgroup", get_threadgroup, NULL, "Threads of a threadgroup.", NULL},
    {"threads", get_threads, NULL, "Threads in the grid if it was given so, else None.", NULL},
    {"bounds", get_bounds, NULL, "\"on\": accesses are checked; \"off\": not where the device can leave it.", NULL},
    {"cpu_ir", get_cpu_ir, NULL, "As the kernel's, for this threadgroup.", NULL},
    {"cpu_asm", get_cpu_asm, NULL, "As the kernel's, for this threadgroup.", NULL},
    {"name", get_of_kernel, NULL, "The kernel's name.", "name"},
    {"metal_source", get_of_kernel, NULL, "As the kernel's.", "metal_source"},
    {"ir", get_of_kernel, NULL, "As the kernel's.", "ir"},
    {"source_map", get_of_kernel, NULL, "As the kernel's.", "source_map"},
    {0}};
static PyMethodDef bound_methods[] = {{"__reduce__", bound_reduce, METH_NOARGS, NULL}, {0}};
static PyType_Slot bound_slots[] = {
    {Py_tp_new, bound_tp_new},
    {Py_tp_dealloc, bound_dealloc},
    {Py_tp_traverse, bound_traverse},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_repr, bound_repr},
    {Py_tp_members, bound_members},
    {Py_tp_getset, bound_getset},
    {Py_tp_methods, bound_methods},
    {Py_tp_doc, "A kernel with its launch geometry: called with the kernel's arguments."},
    {0, NULL}};
PyType_Spec bound_spec = {"spork.BoundKernel", sizeof(struct bound), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, bound_slots};
