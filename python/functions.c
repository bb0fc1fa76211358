/* functions.c - functions of the language that are no rows of a table. */
#include "state.h"

/* ---- conversion and choice --------------------------------------------------------------------------------------- */

static PyObject *convert(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, const char *name,
                         sk_status (*how)(struct trace *, struct tv, ir_type, struct tv *, sk_error *))
{
    const struct arg_spec spec = {name, 2, 2, {"value", "dtype"}};
    struct state *st = state_of_module(module);
    struct session *s = session_enter(st, name);
    PyObject *arg[2], *dtype;
    struct tv a, out;
    if (!s || take_args(st, &spec, args, n, kwnames, arg) < 0)
        return NULL;
    if (Py_TYPE(arg[0]) == st->type.dtype && is_traced(arg[1]))
        return RAISE(st, CAST_SWAPPED, name, name, dtype_of(arg[0])->name);
    if (operand(st, s, arg[0], &a) < 0 || !(dtype = as_dtype(st, arg[1], name)))
        return NULL;
    const ir_type type = dtype_of(dtype)->type;
    const sk_status status = TRACE(s, how(s->t, a, type, &out, &s->err));
    return traced_result(st, s, status, &out);
}

static PyObject *cast(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    return convert(module, args, n, kwnames, "cast", trace_cast);
}

static PyObject *bitcast(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    return convert(module, args, n, kwnames, "bitcast", trace_bitcast);
}

static PyObject *select_(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    struct state *st = state_of_module(module);
    struct session *s = session_enter(st, "select");
    struct tv c, a, b, out;
    if (!s)
        return NULL;
    if (n != 3)
        return RAISE(st, OPERAND_COUNT, "select", 3, (unsigned)n);
    if (operand(st, s, args[0], &c) < 0 || operand(st, s, args[1], &a) < 0 || operand(st, s, args[2], &b) < 0)
        return NULL;
    const sk_status status = TRACE(s, trace_select(s->t, c, a, b, &out, &s->err));
    return traced_result(st, s, status, &out);
}

static PyObject *two_operands(PyObject *module, PyObject *const *args, Py_ssize_t n, const char *name, enum op op)
{
    struct state *st = state_of_module(module);
    struct session *s = session_enter(st, name);
    struct tv a, b, out;
    if (!s)
        return NULL;
    if (n != 2)
        return RAISE(st, OPERAND_COUNT, name, 2, (unsigned)n);
    if (operand(st, s, args[0], &a) < 0 || operand(st, s, args[1], &b) < 0)
        return NULL;
    const sk_status status = TRACE(s, trace_binary(s->t, op, a, b, &out, &s->err));
    return traced_result(st, s, status, &out);
}

static PyObject *div_trunc(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    return two_operands(module, args, n, "div_trunc", OP_DIV_TRUNC);
}

static PyObject *rem_trunc(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    return two_operands(module, args, n, "rem_trunc", OP_REM_TRUNC);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static PyObject *local(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    static const struct arg_spec spec = {"local", 1, 2, {"dtype", "init"}};
    struct state *st = state_of_module(module);
    struct session *s = session_enter(st, "local");
    PyObject *arg[2], *dtype;
    struct tv part[4] = {tv_int(0)}, out;
    if (!s || take_args(st, &spec, args, n, kwnames, arg) < 0 || !(dtype = as_dtype(st, arg[0], "local")))
        return NULL;
    const ir_type type = dtype_of(dtype)->type;
    if (dtype_of(dtype)->atomic)
        return RAISE(st, ATOMIC_LOCAL, dtype_of(dtype)->name);
    const bool is_list = arg[1] && (PyTuple_Check(arg[1]) || PyList_Check(arg[1]));
    const int count = arg[1] ? operand_list(st, s, arg[1], 4, part) : 1;
    if (count < 0)
        return NULL;
    if (is_list && ir_type_width(type) == 1)
        return RAISE(st, LOCAL_OF_PARTS, dtype_of(dtype)->name);
    if (is_list && (unsigned)count != ir_type_width(type))
        return RAISE(st, VECTOR_PARTS, dtype_of(dtype)->name, ir_type_width(type), (unsigned)count);
    sk_status status = SK_OK;
    if (is_list && count > 1)
        status = TRACE(s, trace_make(s->t, type, (unsigned)count, part, &part[0], &s->err));
    if (status == SK_OK)
        status = TRACE(s, trace_local(s->t, type, part[0], &out, &s->err));
    return traced_result(st, s, status, &out);
}

static PyObject *threadgroup(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    static const struct arg_spec spec = {"threadgroup", 2, 2, {"dtype", "shape"}};
    struct state *st = state_of_module(module);
    struct session *s = session_enter(st, "threadgroup");
    PyObject *arg[2], *dtype;
    if (!s || take_args(st, &spec, args, n, kwnames, arg) < 0 || !(dtype = as_dtype(st, arg[0], "threadgroup")))
        return NULL;
    const bool many = PyTuple_Check(arg[1]) || PyList_Check(arg[1]);
    const Py_ssize_t n_dims = many ? PySequence_Fast_GET_SIZE(arg[1]) : 1;
    uint64_t shape[MAX_INDICES];
    if (n_dims < 1 || n_dims > MAX_INDICES)
        return RAISE(st, ARRAY_DIMS, MAX_INDICES, (int)n_dims);
    for (Py_ssize_t i = 0; i < n_dims; i++) {
        PyObject *o = many ? PySequence_Fast_GET_ITEM(arg[1], i) : arg[1];
        struct tv x;
        const int status = weak_number(st, o, &x);
        if (status < 0)
            return NULL;
        if (status > 0 || x.kind != TV_INT)
            return RAISE(st, ARRAY_SHAPE_TYPE, type_name(o));
        if (x.negative || x.magnitude == 0)
            return RAISE(st, ARRAY_SHAPE);
        shape[i] = x.magnitude;
    }
    const ir_type type = dtype_of(dtype)->type;
    struct tv out = {0};
    if (TRACE(s, trace_array(s->t, SPACE_THREADGROUP, type, (unsigned)n_dims, shape, &out, &s->err)) != SK_OK)
        return raise_error(st, &s->err);
    PyObject *named = traced_result(st, s, SK_OK, &out);
    Py_XDECREF(named);
    return named ? traced_new(st->type.array, s, out, dtype) : NULL;
}

static PyObject *load(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    static const struct arg_spec spec = {"load", 2, 2, {"ptr", "i", "where", "other"}};
    struct state *st = state_of_module(module);
    struct session *s = session_enter(st, "load");
    PyObject *arg[4];
    struct tv p, index[MAX_INDICES], where, other = tv_int(0), out;
    if (!s || take_args(st, &spec, args, n, kwnames, arg) < 0 || pointer_operand(st, arg[0], "load", &p) < 0)
        return NULL;
    const int n_index = operand_list(st, s, arg[1], MAX_INDICES, index);
    if (n_index < 0 || (arg[2] && operand(st, s, arg[2], &where) < 0) || (arg[3] && operand(st, s, arg[3], &other) < 0))
        return NULL;
    if (arg[3] && !arg[2])
        return RAISE(st, LOAD_OTHER);
    if (!arg[2])
        where = tv_bool(true);
    const sk_status status =
        TRACE(s, arg[2] ? trace_load_where(s->t, p, (unsigned)n_index, index, where, other, &out, &s->err)
                        : trace_load(s->t, p, (unsigned)n_index, index, &out, &s->err));
    return traced_result(st, s, status, &out);
}

#define DOC(name, signature, text) name signature "\n--\n\n" text
PyMethodDef functions_methods[] = {
    {"jit", PY_METHOD(jit), METH_FASTCALL | METH_KEYWORDS,
     DOC("jit", "($module, fn=None, /, *, math='precise', contract=True)",
         "Makes a kernel of a function whose every parameter is annotated.\n\nmath='fast' allows the fast forms of the "
         "maths functions throughout; contract=False keeps a*b+c from becoming fma.")},
    {"device_fn", device_fn_new, METH_O,
     DOC("device_fn", "($module, fn, /)", "Makes a function that kernels call; printed as a function of its own.")},
    {"cast", PY_METHOD(cast), METH_FASTCALL | METH_KEYWORDS,
     DOC("cast", "($module, value, dtype)", "The value converted: float to integer truncates and saturates.")},
    {"bitcast", PY_METHOD(bitcast), METH_FASTCALL | METH_KEYWORDS,
     DOC("bitcast", "($module, value, dtype)", "The same bits as another type of the same size.")},
    {"select", PY_METHOD(select_), METH_FASTCALL,
     DOC("select", "($module, condition, a, b, /)", "a where the condition holds, else b; both are evaluated.")},
    {"div_trunc", PY_METHOD(div_trunc), METH_FASTCALL,
     DOC("div_trunc", "($module, x, y, /)", "The integer quotient rounded to zero, as C's /; x / 0 is 0.")},
    {"rem_trunc", PY_METHOD(rem_trunc), METH_FASTCALL,
     DOC("rem_trunc", "($module, x, y, /)", "The remainder with the dividend's sign, as C's %; x % 0 is 0.")},
    {"local", PY_METHOD(local), METH_FASTCALL | METH_KEYWORDS,
     DOC("local", "($module, dtype, init=0)", "A mutable local: v += x, v.assign(x); read where it is used.")},
    {"threadgroup", PY_METHOD(threadgroup), METH_FASTCALL | METH_KEYWORDS,
     DOC("threadgroup", "($module, dtype, shape)", "An array that the threads of a threadgroup share.")},
    {"load", PY_METHOD(load), METH_FASTCALL | METH_KEYWORDS,
     DOC("load", "($module, ptr, i, *, where=True, other=0)",
         "ptr[i] where the condition holds, else other, without touching the memory.")},
    {"_from_numpy", dtypes_from_numpy, METH_O, NULL},
    {"_underlying", dtypes_underlying, METH_O, NULL},
    {"_no_dtype", dtypes_missing, METH_O, NULL},
    {"_no_name", missing_name, METH_O, NULL},
    {0}};
