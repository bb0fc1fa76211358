/* hints.c - what is not there: names that Metal, NumPy or a slip of the pen suggest, each with its cure. */
#include "state.h"
#include "value_slots.h"

/* ---- attributes -------------------------------------------------------------------------------------------------- */

/* HINT(names, cure) */
#define ATTRIBUTE_HINTS(HINT)                                                                                          \
    HINT("shape size ndim nbytes strides", "give the kernel its extents as parameters annotated sk.Uint")              \
    HINT("astype", "convert with sk.cast(x, sk.dt.float32)")                                                           \
    HINT("view", "reinterpret with sk.bitcast(x, sk.dt.float32)")                                                      \
    HINT("item tolist copy", "a value of the kernel is known when it runs; .value is a copy of a local")               \
    HINT("sum prod max min mean any all dot argmax argmin cumsum",                                                     \
         "a thread works on single elements; loop with sk.range, or combine threads with sk.simd_sum and its kin")     \
    HINT("T flat ravel reshape flatten transpose real imag", "compute the index: p[row * width + column]")             \
    HINT("assign", "only what sk.local made can be assigned to")                                                       \
    HINT("r g b a s t p q", "components are .x .y .z .w")
/* Of the package. */
#define NAME_HINTS(HINT)                                                                                               \
    HINT("else_ elif_", "they are of the block: with sk.if_(c) as b: ... and then with b.else_():")                    \
    HINT("for_", "write: for i in sk.range(n):")                                                                       \
    HINT("sync syncthreads __syncthreads barrier sync_threads", "use sk.threadgroup_barrier()")                        \
    HINT("shared shared_memory threadgroup_memory", "use sk.threadgroup(dtype, shape)")                                \
    HINT("maximum", "use sk.max")                                                                                      \
    HINT("minimum", "use sk.min")                                                                                      \
    HINT("kernel function", "decorate with sk.jit, or sk.device_fn for a function that kernels call")                  \
    HINT("thread_id program_id thread_position_in_grid", "annotate a parameter: i: sk.Uint[sk.ThreadPositionInGrid]")  \
    HINT("array ones full arange asarray", "launches take NumPy arrays; sk.zeros and sk.empty make device memory")

#define HINT(names, cure) {names, cure},
static const struct hint {
    const char *names, *cure;
} attribute_hints[] = {ATTRIBUTE_HINTS(HINT){NULL, NULL}}, name_hints[] = {NAME_HINTS(HINT){NULL, NULL}};
#undef HINT

/* The cure for a name, or `otherwise`. */
static const char *cure_of(const struct hint *hint, const char *name, const char *otherwise)
{
    const size_t n = strlen(name);
    for (; n && hint->names; hint++)
        for (const char *at = hint->names; (at = strstr(at, name)); at += n)
            if ((at == hint->names || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
                return hint->cure;
    return otherwise;
}

static bool is_swizzle(const char *name)
{
    const size_t n = strlen(name);
    return n >= 2 && n <= 4 && (strspn(name, "xyzw") == n || strspn(name, "rgba") == n);
}

PyObject *traced_getattro(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    struct state *st = STATE_OF(self);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    const char *text = PyUnicode_AsUTF8(name);
    const struct session *s = session_find(st);
    const bool index = text && strncmp(text, "__array", 7) == 0 && s && s->refused_index == self;
    if (index)
        (void)RAISE(st, NO_PYTHON_INDEX);
    if (!text || text[0] == '_') { /* asked for by protocols */
        if (index)
            goto done;
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    const bool memory = Py_TYPE(self) == st->type.pointer || Py_TYPE(self) == st->type.array;
    const char *cure = memory ? "there is .dtype, and elements are read with [index]"
                              : "there are the components .x .y .z .w, .dtype and .value";
    if (is_swizzle(text))
        cure = "components are taken one by one: sk.dt.float32x2(v.x, v.y)";
    (void)RAISE_ATTRIBUTE(st, NO_ATTRIBUTE,
                          Py_TYPE(self) == st->type.array   ? "threadgroup array"
                          : memory                          ? "pointer"
                          : Py_TYPE(self) == st->type.local ? "local"
                                                            : "traced value",
                          text, cure_of(attribute_hints, text, cure));
done:
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return NULL;
}

/* sk.NAME for a name that is none. */
PyObject *missing_name(PyObject *module, PyObject *name)
{
    struct state *st = state_of_module(module);
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (!text)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_AttributeError, "%R", name);
    if (text[0] == '_')
        return PyErr_Format(PyExc_AttributeError, "module 'spork' has no attribute '%U'", name);
    char own[64];
    for (unsigned a = 0; a < 2; a++)
        for (size_t t = 0; t < DTYPE_COUNT; t++)
            if (st->dtypes[a][t] && strcmp(dtype_of(st->dtypes[a][t])->name, text) == 0) {
                PyOS_snprintf(own, sizeof own, "dtypes are in sk.dt: sk.dt.%.40s", text);
                return RAISE_ATTRIBUTE(st, NO_NAME, text, own);
            }
    return RAISE_ATTRIBUTE(st, NO_NAME, text, cure_of(name_hints, text, "docs/language.md lists what there is"));
}

/* ---- NumPy's functions ------------------------------------------------------------------------------------------- */

/* NumPy's names of what its scalars do by operators, and of the operations. */
#define UFUNC_TABLE(UFUNC)                                                                                             \
    UFUNC("add", OP_ADD)                                                                                               \
    UFUNC("subtract", OP_SUB)                                                                                          \
    UFUNC("multiply", OP_MUL)                                                                                          \
    UFUNC("divide", OP_DIV)                                                                                            \
    UFUNC("true_divide", OP_DIV)                                                                                       \
    UFUNC("floor_divide", OP_DIV_FLOOR)                                                                                \
    UFUNC("remainder", OP_REM_FLOOR)                                                                                   \
    UFUNC("power", OP_IPOW)                                                                                            \
    UFUNC("left_shift", OP_SHL)                                                                                        \
    UFUNC("right_shift", OP_SHR)                                                                                       \
    UFUNC("bitwise_and", OP_AND)                                                                                       \
    UFUNC("bitwise_or", OP_OR)                                                                                         \
    UFUNC("bitwise_xor", OP_XOR)                                                                                       \
    UFUNC("less", OP_LT)                                                                                               \
    UFUNC("less_equal", OP_LE)                                                                                         \
    UFUNC("equal", OP_EQ)                                                                                              \
    UFUNC("not_equal", OP_NE)                                                                                          \
    UFUNC("greater", OP_GT)                                                                                            \
    UFUNC("greater_equal", OP_GE)

#define UFUNC_HINTS(HINT)                                                                                              \
    HINT("absolute fabs", "abs(x)")                                                                                    \
    HINT("negative", "-x")                                                                                             \
    HINT("positive", "+x")                                                                                             \
    HINT("square", "x * x")                                                                                            \
    HINT("reciprocal", "1 / x")                                                                                        \
    HINT("maximum", "sk.max")                                                                                          \
    HINT("minimum", "sk.min")                                                                                          \
    HINT("clip", "sk.clamp")                                                                                           \
    HINT("arctan2", "sk.atan2")                                                                                        \
    HINT("logical_and", "&")                                                                                           \
    HINT("logical_or", "|")                                                                                            \
    HINT("logical_not invert bitwise_not", "~")
#define HINT(names, cure) {names, cure},
static const struct hint ufunc_hints[] = {UFUNC_HINTS(HINT){NULL, NULL}};
#undef HINT

/* The package's own function for NumPy's, "sk.exp", else what the hints say. */
static const char *ufunc_cure(const char *name, char *out, size_t cap)
{
    const char *hint = cure_of(ufunc_hints, name, NULL);
    char own[40];
    if (hint)
        return hint;
    PyOS_snprintf(own, sizeof own, "%s%s", strncmp(name, "arc", 3) == 0 ? "a" : "",
                  name + (strncmp(name, "arc", 3) == 0 ? 3 : 0));
    for (int op = 0; op < OP_COUNT; op++)
        if (op_info[op].math && math_info[op].python && strcmp(math_info[op].python, own) == 0) {
            PyOS_snprintf(out, cap, "sk.%s", own);
            return out;
        }
    return "operators and the functions of sk";
}

/* __array_ufunc__(ufunc, method, *inputs, **kwargs). NumPy's scalars come here with their operators too; the operation is
 * ours then. With an array it is an error that names the cure. */
PyObject *traced_array_ufunc(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    static const struct {
        const char *name;
        enum op op;
    } rows[] = {
#define UFUNC(name, op) {name, op},
        UFUNC_TABLE(UFUNC)
#undef UFUNC
    };
    struct state *st = STATE_OF(self);
    PyObject *held = n > 0 ? PyObject_GetAttr(args[0], st->str.__name__) : NULL;
    const char *name = held && PyUnicode_Check(held) ? PyUnicode_AsUTF8(held) : NULL;
    PyObject *result = NULL;
    char cure[64];
    if (!name) {
        PyErr_Clear();
        name = "a function";
    }
    const bool plain = n == 4 && PyUnicode_Check(args[1]) &&
                       PyUnicode_CompareWithASCIIString(args[1], "__call__") == 0 &&
                       !(kwnames && PyTuple_GET_SIZE(kwnames));
    size_t k = 0;
    while (k < sizeof rows / sizeof *rows && strcmp(rows[k].name, name) != 0)
        k++;
    if (plain && k < sizeof rows / sizeof *rows) {
        result = traced_binary(args[2], args[3], rows[k].op);
    } else if (plain && strcmp(name, "divmod") == 0) {
        result = traced_divmod(args[2], args[3]);
    } else {
        bool array = false; /* arr += traced */
        for (Py_ssize_t i = 2; i < n && !array; i++)
            array = !is_traced(args[i]) && PyObject_HasAttr(args[i], st->str.ndim) && k < sizeof rows / sizeof *rows;
        if (array)
            (void)RAISE(st, ARRAY_OPERAND, "ndarray");
        else
            (void)RAISE(st, NUMPY_FUNCTION, name, ufunc_cure(name, cure, sizeof cure));
    }
    Py_XDECREF(held);
    return result;
}
