/* tables.c - the functions that the tables make: maths from math.def, collectives, barriers and atomics from ops.def. */
#include "state.h"

/* ---- what each kind of row does ---------------------------------------------------------------------------------- */

static PyObject *call_operands(PyObject *module, enum op op, bool fast, const char *name, unsigned count,
                               PyObject *const *args, Py_ssize_t n)
{
    struct state *st = state_of_module(module);
    struct session *s = session_enter(st, name);
    struct tv a[3], out;
    if (!s)
        return NULL;
    if (n != (Py_ssize_t)count)
        return RAISE(st, OPERAND_COUNT, name, (int)count, (unsigned)n);
    for (unsigned i = 0; i < count; i++)
        if (operand(st, s, args[i], &a[i]) < 0)
            return NULL;
    const sk_status status = TRACE(s, op_info[op].math ? trace_math(s->t, op, fast, count, a, &out, &s->err)
                                                       : trace_simd(s->t, op, count, a, &out, &s->err));
    return traced_result(st, s, status, &out);
}

static int take_order(struct state *st, const char *name, PyObject *o, enum memory_order *order)
{
    *order = ORDER_RELAXED;
    for (int k = 0; o && PyUnicode_Check(o) && k < ORDER_COUNT; k++)
        if (PyUnicode_CompareWithASCIIString(o, order_name[k]) == 0) {
            *order = (enum memory_order)k;
            return 0;
        }
    return o ? RAISE_INT(st, UNKNOWN_ORDER, name) : 0;
}

/* The tracer's error with Python's names of the operation and the dtypes. */
static PyObject *wrong_element(struct state *st, struct session *s, enum op op, const char *name, PyObject *pointer)
{
    char known[100] = "";
    for (int t = 0; t < S_COUNT; t++) {
        const size_t n = strlen(known);
        if (st->dtypes[0][t] && trace_atomic_takes(op, (enum scalar)t))
            PyOS_snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", dtype_of(st->dtypes[0][t])->name);
    }
    sk_error_clear(&s->err);
    return RAISE(st, ATOMIC_ELEMENT, name, known, dtype_of(traced_of(pointer)->dtype)->name);
}

/* count: the operands of the row, which are a pointer and values; Python has an index after the pointer. */
static PyObject *call_atomic(PyObject *module, enum op op, unsigned count, PyObject *const *args, Py_ssize_t n,
                             PyObject *kwnames)
{
    struct state *st = state_of_module(module);
    const char *name = st->op_name[op];
    const unsigned n_values = count - 1;
    struct arg_spec spec = {
        name, 2 + n_values, 3 + n_values, {"ptr", "i", n_values == 2 ? "expected" : "x", "desired"}};
    spec.names[2 + n_values] = "order";
    struct session *s = session_enter(st, name);
    PyObject *arg[8];
    struct tv p, index[MAX_INDICES], value[2], out = {.kind = TV_NONE};
    enum memory_order order;
    if (!s || take_args(st, &spec, args, n, kwnames, arg) < 0 || pointer_operand(st, arg[0], name, &p) < 0 ||
        take_order(st, name, arg[2 + n_values], &order) < 0)
        return NULL;
    const int n_index = operand_list(st, s, arg[1], MAX_INDICES, index);
    if (n_index < 0)
        return NULL;
    for (unsigned k = 0; k < n_values; k++)
        if (operand(st, s, arg[2 + k], &value[k]) < 0)
            return NULL;
    const sk_status status =
        TRACE(s, trace_atomic(s->t, op, p, (unsigned)n_index, index, n_values, value, order, &out, &s->err));
    if (status != SK_OK && strcmp(s->err.name, "ATOMIC_TYPE") == 0)
        return wrong_element(st, s, op, name, arg[0]);
    return op == OP_ATOMIC_STORE ? traced_none(st, s, status) : traced_result(st, s, status, &out);
}

static PyObject *call_barrier(PyObject *module, enum op op, PyObject *const *args, Py_ssize_t n)
{
    struct state *st = state_of_module(module);
    const char *name = st->op_name[op];
    struct session *s = session_enter(st, name);
    unsigned memory = n ? MEMORY_NONE : MEMORY_THREADGROUP;
    if (!s)
        return NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        const bool text = PyUnicode_Check(args[i]);
        unsigned bit = 0;
        while (text && bit < 4 && PyUnicode_CompareWithASCIIString(args[i], memory_name[bit]) != 0)
            bit++;
        if (text && bit < 4) {
            memory |= 1u << bit;
        } else if (!text || PyUnicode_CompareWithASCIIString(args[i], "none") != 0) {
            const char *shown = text ? PyUnicode_AsUTF8(args[i]) : type_name(args[i]);
            return shown ? RAISE(st, UNKNOWN_SCOPE, name, shown) : NULL;
        }
    }
    return traced_none(st, s, TRACE(s, trace_barrier(s->t, op, memory, &s->err)));
}

/* ---- one C function a row ---------------------------------------------------------------------------------------- */

/* A row of ops.def is picked by its effect and rule; X is what to make of it: a function or an entry of the list. */
#define ROW_CONVERGENT_LANES(X, ID, n) X##_SIMD(ID, n)
#define ROW_CONVERGENT_VOTE ROW_CONVERGENT_LANES
#define ROW_CONVERGENT_GIVEN ROW_CONVERGENT_LANES
#define ROW_CONVERGENT_NONE(X, ID, n) X##_BARRIER(ID, n)
#define ROW_ATOMIC_GIVEN(X, ID, n) X##_ATOMIC(ID, n)
#define ROW_ATOMIC_NONE(X, ID, n) ATOMIC_NONE_##ID(X, ID, n)
#define ATOMIC_NONE_ATOMIC_STORE ROW_ATOMIC_GIVEN
#define ATOMIC_NONE_FENCE ROW_NOTHING
#define ROW_NOTHING(X, ID, n)
#define ROW_PURE_GIVEN ROW_NOTHING
#define ROW_PURE_SAME ROW_NOTHING
#define ROW_PURE_COMPARE ROW_NOTHING
#define ROW_PURE_SHIFT ROW_NOTHING
#define ROW_PURE_SELECT ROW_NOTHING
#define ROW_READ_GIVEN ROW_NOTHING
#define ROW_WRITE_NONE ROW_NOTHING
#define ROW_CONTROL_GIVEN ROW_NOTHING
#define ROW_CONTROL_NONE ROW_NOTHING
#define ROW_EXIT_NONE ROW_NOTHING

#define FUNCTION_SIMD(ID, count)                                                                                       \
    static PyObject *call_##ID(PyObject *m, PyObject *const *a, Py_ssize_t n)                                          \
    {                                                                                                                  \
        return call_operands(m, OP_##ID, false, op_info[OP_##ID].name, count, a, n);                                   \
    }
#define FUNCTION_BARRIER(ID, count)                                                                                    \
    static PyObject *call_##ID(PyObject *m, PyObject *const *a, Py_ssize_t n)                                          \
    {                                                                                                                  \
        return call_barrier(m, OP_##ID, a, n);                                                                         \
    }
#define FUNCTION_ATOMIC(ID, count)                                                                                     \
    static PyObject *call_##ID(PyObject *m, PyObject *const *a, Py_ssize_t n, PyObject *kwnames)                       \
    {                                                                                                                  \
        return call_atomic(m, OP_##ID, count, a, n, kwnames);                                                          \
    }
#define OP(ID, name, n, rule, classes, effects, msl, doc) ROW_##effects##_##rule(FUNCTION, ID, n)
#include "ir/ops.def"

#define FAST_0(ID, python, count)
#define FAST_1(ID, python, count)                                                                                      \
    static PyObject *fast_##ID(PyObject *m, PyObject *const *a, Py_ssize_t n)                                          \
    {                                                                                                                  \
        return call_operands(m, OP_##ID, true, "fast_" python, count, a, n);                                           \
    }
#define MATH(ID, name, count, classes, python, fast, ulp, fast_ulp, doc)                                               \
    static PyObject *call_##ID(PyObject *m, PyObject *const *a, Py_ssize_t n)                                          \
    {                                                                                                                  \
        return call_operands(m, OP_##ID, false, python, count, a, n);                                                  \
    }                                                                                                                  \
    FAST_##fast(ID, python, count)
#include "ir/math.def"
#undef MATH
#undef FAST_0
#undef FAST_1

/* ---- the list ---------------------------------------------------------------------------------------------------- */

enum row_kind { KIND_MATH, KIND_FAST, KIND_SIMD, KIND_BARRIER, KIND_ATOMIC };
static const struct row {
    PyCFunction call;
    uint8_t kind, n;
    uint16_t op;
} rows[] = {
#define ENTRY_SIMD(ID, count) {PY_METHOD(call_##ID), KIND_SIMD, count, OP_##ID},
#define ENTRY_BARRIER(ID, count) {PY_METHOD(call_##ID), KIND_BARRIER, count, OP_##ID},
#define ENTRY_ATOMIC(ID, count) {PY_METHOD(call_##ID), KIND_ATOMIC, count, OP_##ID},
#define OP(ID, name, n, rule, classes, effects, msl, doc) ROW_##effects##_##rule(ENTRY, ID, n)
#include "ir/ops.def"
#define FAST_0(ID, count)
#define FAST_1(ID, count) {PY_METHOD(fast_##ID), KIND_FAST, count, OP_##ID},
#define MATH(ID, name, count, classes, python, fast, ulp, fast_ulp, doc)                                               \
    {PY_METHOD(call_##ID), KIND_MATH, count, OP_##ID}, FAST_##fast(ID, count)
#include "ir/math.def"
#undef MATH
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static const char *const operand_names[][5] = {
    {"", "($module, x, /)", "($module, x, y, /)", "($module, x, y, z, /)", ""},
    {"($module, /)", "($module, x, /)", "($module, x, lane, /)", "($module, x, filling, delta, /)", ""},
    {"", "($module, ptr, i, /, *, order='relaxed')", "($module, ptr, i, x, order='relaxed')",
     "($module, ptr, i, expected, desired, order='relaxed')", ""}};

static const char *row_signature(const struct row *r)
{
    switch ((enum row_kind)r->kind) {
    case KIND_MATH:
    case KIND_FAST: return operand_names[0][r->n];
    case KIND_SIMD: return operand_names[1][r->n];
    case KIND_BARRIER: return "($module, *scopes)";
    case KIND_ATOMIC: return operand_names[2][r->n];
    }
    return "";
}

/* The name of a row in Python, in `buf` or in a table. */
static const char *row_name(const struct row *r, char *buf, size_t cap)
{
    const struct op_info *op = &op_info[r->op];
    switch ((enum row_kind)r->kind) {
    case KIND_MATH: return math_info[r->op].python;
    case KIND_FAST: PyOS_snprintf(buf, cap, "fast_%s", math_info[r->op].python); return buf;
    case KIND_SIMD: return op->name;
    case KIND_BARRIER: return op->msl;
    case KIND_ATOMIC: break;
    }
    /* Metal's name without _explicit; compare-exchange has no single function there. */
    PyOS_snprintf(buf, cap, "%s", op->msl[0] ? op->msl : "atomic_compare_exchange_explicit");
    char *tail = strstr(buf, "_explicit");
    if (tail)
        *tail = '\0';
    return buf;
}

static char *keep(struct state *st, const char *text)
{
    char *at = arena_alloc(&st->text, strlen(text) + 1);
    return memcpy(at, text, strlen(text) + 1);
}

static sk_status make_methods(struct state *st)
{
    PyMethodDef *def = st->methods = ARENA_NEW(&st->text, PyMethodDef, N_ROWS + 1);
    for (size_t i = 0; i < N_ROWS; i++) {
        const struct row *r = &rows[i];
        char name_buf[64], doc[600];
        const char *name = keep(st, row_name(r, name_buf, sizeof name_buf));
        if (!name[0])
            continue;
        if (r->kind != KIND_MATH && r->kind != KIND_FAST)
            st->op_name[r->op] = name;
        PyOS_snprintf(doc, sizeof doc, "%s%s\n--\n\n%s%s", name, row_signature(r),
                      r->kind == KIND_FAST ? "The fast form of: " : "", op_info[r->op].doc);
        def->ml_name = name;
        def->ml_meth = r->call;
        def->ml_flags = r->kind == KIND_ATOMIC ? METH_FASTCALL | METH_KEYWORDS : METH_FASTCALL;
        def->ml_doc = keep(st, doc);
        def++;
    }
    return SK_OK;
}

int tables_init(struct state *st, PyObject *module)
{
    sk_error err = {0};
    sk_status status;
    MEM_GUARD(&st->mem, &err, status, make_methods(st));
    if (status != SK_OK) {
        PyErr_NoMemory();
        return -1;
    }
    return PyModule_AddFunctions(module, st->methods);
}
