/* kernel.c - sk.jit and JittedKernel: tracing a Python function, once, at first use. */
#include "kernel.h"

#include "ir/module_object.h"

/* ---- one at a time ----------------------------------------------------------------------------------------------- */

/* A thread that waits for a kernel another thread traces or compiles. */
struct waiter {
    struct waiter *next;
    const struct kernel *kernel;
    unsigned long thread;
};

/* Whether the kernel's owner waits, perhaps through others, for one that this thread owns: each could wait for ever. */
static bool waits_for(const struct state *st, const struct kernel *k, unsigned long thread)
{
    const struct waiter *w = st->waiters;
    while (k->lock_thread != thread && w) {
        const unsigned long owner = k->lock_thread;
        for (w = st->waiters; w && w->thread != owner; w = w->next)
            ;
        k = w ? w->kernel : k;
    }
    return k->lock_thread == thread;
}

/* Takes the kernel's lock; another thread's tracing or compiling is waited for without the GIL. */
static int kernel_lock(struct state *st, struct kernel *k)
{
    const unsigned long thread = PyThread_get_thread_ident();
    if (!PyThread_acquire_lock(k->lock, NOWAIT_LOCK)) {
        if (waits_for(st, k, thread))
            return RAISE_INT(st, KERNEL_IN_ITSELF, PyUnicode_AsUTF8(k->name));
        struct waiter self = {st->waiters, k, thread};
        st->waiters = &self;
        Py_BEGIN_ALLOW_THREADS PyThread_acquire_lock(k->lock, WAIT_LOCK);
        Py_END_ALLOW_THREADS struct waiter **at = &st->waiters;
        while (*at != &self)
            at = &(*at)->next;
        *at = self.next;
    }
    k->lock_thread = thread;
    return 0;
}

static void kernel_unlock(struct kernel *k)
{
    k->lock_thread = 0;
    PyThread_release_lock(k->lock);
}

/* ---- tracing ----------------------------------------------------------------------------------------------------- */

/* Metal fills attributes with unsigned numbers; a signed parameter is converted where the kernel begins. */
static ir_type declared_type(const struct param_spec *p)
{
    return p->kind == PARAM_ATTRIBUTE && ir_type_scalar(p->type) == S_I32 ? ir_type_with(p->type, S_U32) : p->type;
}

static sk_status declare(struct session *s, const struct signature *sig, struct tv *v)
{
    for (unsigned i = 0; i < sig->n; i++) {
        const struct param_spec *p = &sig->param[i];
        const bool pointer = p->kind == PARAM_BUFFER || p->kind == PARAM_THREADGROUP;
        const struct trace_param_desc desc = {.name = p->text,
                                              .type = declared_type(p),
                                              .elem = pointer ? dtype_of(p->dtype)->type : TYPE_VOID,
                                              .kind = p->kind,
                                              .attribute = p->attribute,
                                              .atomic = pointer && dtype_of(p->dtype)->atomic};
        TRY(trace_param(s->t, &desc, &v[i], &s->err));
    }
    for (unsigned i = 0; i < sig->n; i++)
        if (declared_type(&sig->param[i]) != sig->param[i].type)
            TRY(trace_cast(s->t, v[i], sig->param[i].type, &v[i], &s->err));
    return SK_OK;
}

static PyObject *arguments(struct state *st, struct session *s, const struct signature *sig, const char *name)
{
    struct tv v[2 * MAX_ARGS] = {{0}};
    if (sig->n > 2 * MAX_ARGS)
        return RAISE(st, DEVICE_FN_TOO_LONG, name, 2 * MAX_ARGS);
    if (TRACE(s, declare(s, sig, v)) != SK_OK)
        return raise_error(st, &s->err);
    PyObject *args = PyTuple_New(sig->n);
    for (unsigned i = 0; args && i < sig->n; i++) {
        const struct param_spec *p = &sig->param[i];
        const bool pointer = p->kind == PARAM_BUFFER || p->kind == PARAM_THREADGROUP;
        PyObject *o = traced_new(pointer ? st->type.pointer : st->type.value, s, v[i], pointer ? p->dtype : NULL);
        if (!o) {
            Py_CLEAR(args);
            break;
        }
        PyTuple_SET_ITEM(args, i, o);
    }
    return args;
}

static sk_status begin(struct session *s, const struct kernel *k, const char *name)
{
    const struct trace_func_desc desc = {
        .name = name, .kernel = true, .fast = k->fast, .no_contract = k->no_contract, .result = TYPE_VOID};
    uint32_t func;
    trace_place(s->t, trace_file(s->t, k->sig.file), k->sig.line, 0);
    return trace_begin(s->t, &desc, &func, &s->err);
}

static sk_status end(struct session *s, struct ir_module **out)
{
    TRY(trace_end(s->t, &s->err));
    return trace_finish(s->t, out, &s->err);
}

static int trace_in_session(struct state *st, struct session *s, struct kernel *k, struct ir_module **out)
{
    const char *name = PyUnicode_AsUTF8(k->name);
    if (!name)
        return -1;
    if (TRACE(s, begin(s, k, name)) != SK_OK) {
        raise_error(st, &s->err);
        return -1;
    }
    PyObject *args = arguments(st, s, &k->sig, name), *result = args ? session_call(st, s, k->fn, args) : NULL;
    Py_XDECREF(args);
    if (!result)
        return -1;
    const bool none = result == Py_None;
    Py_DECREF(result);
    if (!none) {
        RAISE_AT(st, ((struct err_place){k->sig.file, k->sig.line, 0}), KERNEL_RESULT, name);
        return -1;
    }
    if (TRACE(s, end(s, out)) == SK_OK)
        return 0;
    raise_error(st, &s->err);
    return -1;
}

static bool module_has_loop(const struct ir_module *m)
{
    for (uint32_t i = 1; i < m->nodes.n; i++)
        if (m->nodes.at[i].op == OP_LOOP)
            return true;
    return false;
}

static int kernel_trace_locked(struct state *st, struct kernel *k)
{
    struct session s;
    sk_error err = {0};
    if (k->module)
        return 0;
    if (context_get(st) < 0 || (!k->sig.resolved && signature_read(st, k->fn, false, true, &k->sig) < 0))
        return -1;
    struct sk_module *m = module_object_new(st->context, &err);
    if (!m) {
        raise_error(st, &err);
        return -1;
    }
    int status = -1;
    const uint64_t begin = os_nanoseconds();
    if (session_open(st, &s, &m->head.mem) == 0) {
        status = trace_in_session(st, &s, k, &m->ir);
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        session_close(st, &s);
        PyErr_Restore(type, value, traceback);
    }
    if (status < 0) {
        sk_module_release(m);
        return -1;
    }
    k->has_loop = module_has_loop(m->ir);
    k->n_nodes = m->ir->nodes.n;
    k->traced = os_nanoseconds() - begin;
    k->module = m;
    return 0;
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

static sk_status compile(sk_device *device, const sk_module *module, sk_library **library, sk_function **function,
                         sk_pipeline **pipeline, sk_error *err)
{
    TRY(sk_library_from_module(device, module, library, err));
    TRY(sk_library_function(*library, sk_module_kernel_name(module, 0), function, err));
    return sk_pipeline_create(*function, pipeline, err);
}

static int kernel_compile_locked(struct state *st, struct kernel *k)
{
    sk_library *library = NULL;
    sk_function *function = NULL;
    sk_pipeline *pipeline = NULL;
    sk_error err = {0};
    sk_status status;
    if (k->pipeline)
        return 0;
    if (default_device_get(st) < 0)
        return -1;
    sk_arg_info *args = PyMem_Calloc(k->sig.n_args + 1, sizeof *args);
    if (!args) {
        PyErr_NoMemory();
        return -1;
    }
    AWAY(st, status = compile(st->default_device, k->module, &library, &function, &pipeline, &err));
    for (unsigned i = 0; i < k->sig.n_args && status == SK_OK; i++)
        status = sk_function_arg(function, i, &args[i], &err);
    if (status != SK_OK) {
        sk_pipeline_release(pipeline);
        sk_function_release(function);
        sk_library_release(library);
        PyMem_Free(args);
        raise_error(st, &err);
        return -1;
    }
    k->library = library;
    k->function = function;
    k->args = args;
    k->on_cpu = strcmp(sk_device_name(st->default_device), "cpu") == 0;
    k->may_uncheck = sk_device_unchecked(st->default_device);
    k->pipeline = pipeline;
    return 0;
}

int kernel_prepare(struct state *st, struct kernel *k)
{
    if (k->pipeline)
        return 0;
    if (kernel_lock(st, k) < 0)
        return -1;
    const int status = kernel_trace_locked(st, k) == 0 ? kernel_compile_locked(st, k) : -1;
    kernel_unlock(k);
    return status;
}

int kernel_trace(struct state *st, struct kernel *k)
{
    if (k->module)
        return 0;
    if (kernel_lock(st, k) < 0)
        return -1;
    const int status = kernel_trace_locked(st, k);
    kernel_unlock(k);
    return status;
}

/* ---- what a person reads ----------------------------------------------------------------------------------------- */

/* The map from a generated line, from 1, to (file, line). */
static PyObject *make_source_map(const sk_line *lines, size_t n)
{
    PyObject *map = PyDict_New();
    for (size_t i = 0; map && i < n; i++) {
        if (!lines[i].file || !lines[i].line)
            continue;
        PyObject *key = PyLong_FromSize_t(i + 1);
        PyObject *at = Py_BuildValue("(sI)", lines[i].file, (unsigned)lines[i].line);
        if (!key || !at || PyDict_SetItem(map, key, at) < 0)
            Py_CLEAR(map);
        Py_XDECREF(key);
        Py_XDECREF(at);
    }
    return map;
}

static int print_metal_locked(struct state *st, struct kernel *k)
{
    const char *text;
    const sk_line *lines;
    size_t n;
    sk_error err = {0};
    if (k->metal)
        return 0;
    if (sk_module_metal(k->module, NULL, &text, &lines, &n, &err) != SK_OK) {
        raise_error(st, &err);
        return -1;
    }
    Py_XDECREF(k->source_map);
    k->source_map = make_source_map(lines, n);
    k->metal = k->source_map ? PyUnicode_FromString(text) : NULL;
    return k->metal ? 0 : -1;
}

static int print_ir_locked(struct state *st, struct kernel *k)
{
    const char *text;
    sk_error err = {0};
    if (k->ir)
        return 0;
    if (sk_module_print(k->module, false, &text, &err) != SK_OK) {
        raise_error(st, &err);
        return -1;
    }
    k->ir = PyUnicode_FromString(text);
    return k->ir ? 0 : -1;
}

/* A cached text of the kernel, made by `print` under the lock. */
static PyObject *kernel_text(struct state *st, struct kernel *k, PyObject **slot,
                             int (*print)(struct state *, struct kernel *))
{
    if (!*slot) {
        if (kernel_lock(st, k) < 0)
            return NULL;
        const int status = kernel_trace_locked(st, k) == 0 ? print(st, k) : -1;
        kernel_unlock(k);
        if (status < 0)
            return NULL;
    }
    return Py_XNewRef(*slot);
}

PyObject *kernel_metal(struct state *st, struct kernel *k)
{
    return kernel_text(st, k, &k->metal, print_metal_locked);
}

PyObject *kernel_source_map(struct state *st, struct kernel *k)
{
    PyObject *map = kernel_text(st, k, &k->source_map, print_metal_locked);
    PyObject *copy = map ? PyDict_Copy(map) : NULL;
    Py_XDECREF(map);
    return copy;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static PyObject *kernel_new(struct state *st, PyObject *fn, bool fast, bool no_contract)
{
    struct kernel *k = PyObject_GC_New(struct kernel, st->type.kernel);
    if (!k)
        return NULL;
    memset((char *)k + sizeof(PyObject), 0, sizeof *k - sizeof(PyObject));
    k->fn = Py_NewRef(fn);
    k->fast = fast;
    k->no_contract = no_contract;
    k->lock = PyThread_allocate_lock();
    PyObject_GC_Track(k);
    if (!k->lock)
        PyErr_NoMemory();
    if (!k->lock || signature_read(st, fn, false, false, &k->sig) < 0 || own_module(fn, &k->dict) < 0 ||
        !(k->name = PyObject_GetAttr(fn, st->str.__name__)))
        Py_CLEAR(k);
    else
        expect_kernel(st, k);
    return (PyObject *)k;
}

/* sk.jit(fn), or sk.jit(math=…, contract=…) which waits for the function. */
PyObject *jit(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    static const struct arg_spec spec = {"jit", 0, 1, {"fn", "math", "contract"}};
    struct state *st = state_of_module(module);
    PyObject *arg[3];
    if (take_args(st, &spec, args, n, kwnames, arg) < 0)
        return NULL;
    bool fast = false;
    int contract = 1;
    if (arg[1]) {
        fast = PyUnicode_Check(arg[1]) && PyUnicode_CompareWithASCIIString(arg[1], "fast") == 0;
        if (!fast && !(PyUnicode_Check(arg[1]) && PyUnicode_CompareWithASCIIString(arg[1], "precise") == 0))
            return RAISE(st, JIT_MATH);
    }
    if (arg[2] && (contract = PyObject_IsTrue(arg[2])) < 0)
        return NULL;
    if (arg[0])
        return kernel_new(st, arg[0], fast, !contract);
    PyObject *partial = NULL, *functools = PyImport_ImportModule("functools");
    PyObject *self = PyObject_GetAttrString(module, "jit"), *make = NULL, *given = NULL, *options = NULL;
    make = functools ? PyObject_GetAttrString(functools, "partial") : NULL;
    given = self ? PyTuple_Pack(1, self) : NULL;
    options = Py_BuildValue("{s:s,s:O}", "math", fast ? "fast" : "precise", "contract", contract ? Py_True : Py_False);
    if (make && given && options)
        partial = PyObject_Call(make, given, options);
    Py_XDECREF(make);
    Py_XDECREF(given);
    Py_XDECREF(options);
    Py_XDECREF(self);
    Py_XDECREF(functools);
    return partial;
}

/* ---- the type ---------------------------------------------------------------------------------------------------- */

static PyObject *kernel_subscript(PyObject *self, PyObject *key)
{
    struct state *st = STATE_OF(self);
    struct kernel *k = kernel_of(self);
    struct geometry g;
    if (!PyTuple_Check(key) || PyTuple_GET_SIZE(key) != 2)
        return RAISE(st, GEOMETRY_ENTRIES, PyUnicode_AsUTF8(k->name),
                     PyTuple_Check(key) ? (unsigned)PyTuple_GET_SIZE(key) : 1u);
    if (geometry_read(st, PyTuple_GET_ITEM(key, 0), NULL, PyTuple_GET_ITEM(key, 1), NULL, &g) < 0)
        return NULL;
    return bound_new(st, k, &g);
}

static PyObject *kernel_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    if (session_find(STATE_OF(self)))
        return RAISE(STATE_OF(self), LAUNCH_WHILE_TRACING, PyUnicode_AsUTF8(kernel_of(self)->name));
    return RAISE(STATE_OF(self), NO_GEOMETRY, PyUnicode_AsUTF8(kernel_of(self)->name),
                 PyUnicode_AsUTF8(kernel_of(self)->name));
}

static PyObject *kernel_bind(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    static const struct arg_spec spec = {"bind", 0, 2, {"grid", "threadgroup", "threads", "bounds"}};
    struct state *st = STATE_OF(self);
    PyObject *arg[4];
    struct geometry g;
    if (take_args(st, &spec, args, n, kwnames, arg) < 0 || geometry_read(st, arg[0], arg[2], arg[1], arg[3], &g) < 0)
        return NULL;
    return bound_new(st, kernel_of(self), &g);
}

/* launch(*args, threads= | grid=, threadgroup=, bounds=, name=…): takes the geometry out and calls the bound kernel. */
static PyObject *kernel_launch_method(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    static const char *const names[4] = {"grid", "threads", "threadgroup", "bounds"};
    struct state *st = STATE_OF(self);
    const Py_ssize_t n_kw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    PyObject *size[4] = {NULL}, *bound = NULL, *others = NULL, *result = NULL;
    struct geometry g;
    PyObject **all = PyMem_Malloc((size_t)(n + n_kw + 1) * sizeof(void *));
    Py_ssize_t n_others = 0;
    if (!all)
        return PyErr_NoMemory();
    memcpy(all, args, (size_t)n * sizeof(void *));
    others = PyTuple_New(n_kw);
    for (Py_ssize_t i = 0; others && i < n_kw; i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        unsigned j = 0;
        while (j < 4 && PyUnicode_CompareWithASCIIString(name, names[j]) != 0)
            j++;
        if (j < 4) {
            size[j] = args[n + i];
            continue;
        }
        all[n + n_others] = args[n + i];
        PyTuple_SET_ITEM(others, n_others++, Py_NewRef(name));
    }
    if (others && _PyTuple_Resize(&others, n_others) == 0 &&
        geometry_read(st, size[0], size[1], size[2], size[3], &g) == 0 && (bound = bound_new(st, kernel_of(self), &g)))
        result = PyObject_Vectorcall(bound, all, (size_t)n, n_others ? others : NULL);
    Py_XDECREF(bound);
    Py_XDECREF(others);
    PyMem_Free(all);
    return result;
}

static int kernel_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(kernel_of(self)->fn);
    Py_VISIT(kernel_of(self)->dict);
    return 0;
}

static int kernel_clear(PyObject *self)
{
    Py_CLEAR(kernel_of(self)->fn);
    Py_CLEAR(kernel_of(self)->dict);
    return 0;
}

static void kernel_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct kernel *k = kernel_of(self);
    PyObject_GC_UnTrack(self);
    if (k->weak)
        PyObject_ClearWeakRefs(self);
    sk_pipeline_release(k->pipeline);
    sk_function_release(k->function);
    sk_library_release(k->library);
    sk_module_release(k->module);
    PyMem_Free(k->args);
    signature_free(&k->sig);
    if (k->lock)
        PyThread_free_lock(k->lock);
    Py_XDECREF(k->name);
    Py_XDECREF(k->metal);
    Py_XDECREF(k->ir);
    Py_XDECREF(k->source_map);
    (void)kernel_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *kernel_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<spork.JittedKernel %U>", kernel_of(self)->name);
}

static PyObject *get_metal(PyObject *self, void *closure)
{
    (void)closure;
    return kernel_metal(STATE_OF(self), kernel_of(self));
}

static PyObject *get_ir(PyObject *self, void *closure)
{
    (void)closure;
    return kernel_text(STATE_OF(self), kernel_of(self), &kernel_of(self)->ir, print_ir_locked);
}

static PyObject *get_cpu_ir(PyObject *self, void *closure)
{
    (void)closure;
    return kernel_code(STATE_OF(self), kernel_of(self), NULL, SK_TEXT_LLVM);
}

static PyObject *get_cpu_asm(PyObject *self, void *closure)
{
    (void)closure;
    return kernel_code(STATE_OF(self), kernel_of(self), NULL, SK_TEXT_ASM);
}

static PyObject *get_timings(PyObject *self, void *closure)
{
    (void)closure;
    return kernel_timings(STATE_OF(self), kernel_of(self));
}

static PyObject *get_source_map(PyObject *self, void *closure)
{
    (void)closure;
    return kernel_source_map(STATE_OF(self), kernel_of(self));
}

static PyObject *get_from_fn(PyObject *self, void *name)
{
    return PyObject_GetAttrString(kernel_of(self)->fn, name);
}

static PyObject *kernel_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttr(kernel_of(self)->fn, STATE_OF(self)->str.__qualname__);
}

static PyMemberDef kernel_members[] = {
    {"name", T_OBJECT, offsetof(struct kernel, name), READONLY, "The function's name."},
    {"__wrapped__", T_OBJECT, offsetof(struct kernel, fn), READONLY, "The Python function."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct kernel, weak), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(struct kernel, dict), READONLY, NULL},
    {0}};
static PyGetSetDef kernel_getset[] = {
    {"metal_source", get_metal, NULL, "The kernel in the Metal Shading Language.", NULL},
    {"ir", get_ir, NULL, "The kernel as IR text, as traced.", NULL},
    {"cpu_ir", get_cpu_ir, NULL,
     "The kernel as LLVM IR for the device cpu, as Spork writes it, for threadgroups of the size of the latest launch "
     "there, else of 256 threads; a bound kernel's own has its threadgroup.",
     NULL},
    {"cpu_asm", get_cpu_asm, NULL, "The same as this processor's instructions, made by LLVM.", NULL},
    {"timings", get_timings, NULL,
     "Step to seconds: what tracing and the latest compilation for the device cpu took; a step that was not needed "
     "took 0.",
     NULL},
    {"source_map", get_source_map, NULL, "Line of metal_source, from 1, to (file, line) of the Python source.", NULL},
    {"__name__", get_from_fn, NULL, NULL, "__name__"},
    {"__qualname__", get_from_fn, NULL, NULL, "__qualname__"},
    {"__doc__", get_from_fn, NULL, NULL, "__doc__"},
    {0}};
static PyMethodDef kernel_methods[] = {
    {"bind", PY_METHOD(kernel_bind), METH_FASTCALL | METH_KEYWORDS,
     "bind($self, grid=None, threadgroup=None, *, threads=None, bounds='on')\n--\n\nThe kernel with its geometry: grid "
     "counts threadgroups, threads counts threads. bounds='off' is for measuring: see launch."},
    {"launch", PY_METHOD(kernel_launch_method), METH_FASTCALL | METH_KEYWORDS,
     "launch($self, /, *args, threadgroup=None, grid=None, threads=None, bounds='on', **kwargs)\n--\n\nRuns the kernel "
     "on a grid of threadgroups, or on exactly so many threads; these need no threadgroup: it is 256 in x, or less "
     "where there are fewer threads or the device takes fewer. bounds='off' leaves out the checks of accesses, for "
     "measuring what they cost: one out of bounds may do anything then. The interpreter checks all the same."},
    {"__reduce__", kernel_reduce, METH_NOARGS, NULL},
    {0}};
static PyType_Slot kernel_slots[] = {
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_traverse, kernel_traverse},
    {Py_tp_clear, kernel_clear},
    {Py_tp_call, kernel_call},
    {Py_tp_repr, kernel_repr},
    {Py_mp_subscript, kernel_subscript},
    {Py_tp_members, kernel_members},
    {Py_tp_getset, kernel_getset},
    {Py_tp_methods, kernel_methods}, /* no Py_tp_doc: it would hide the function's __doc__ */
    {0, NULL}};
PyType_Spec kernel_spec = {"spork.JittedKernel", sizeof(struct kernel), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, kernel_slots};
