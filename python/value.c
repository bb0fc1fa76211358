/* value.c - traced values: what Python's operators do to them.
 *
 * Value, Local, Pointer and ThreadgroupArray share one layout and the slots of TRACED_SLOTS. Pointers take part in
 * none of the operators, but the tracer refuses them better than Python would.
 */
#include "state.h"
#include "value_slots.h"

/* ---- making and ending ------------------------------------------------------------------------------------------- */

PyObject *traced_new(PyTypeObject *type, const struct session *s, struct tv v, PyObject *dtype)
{
    struct traced *o = PyObject_New(struct traced, type);
    if (o) {
        o->v = v;
        o->session = s->id;
        o->dtype = Py_XNewRef(dtype);
    }
    return (PyObject *)o;
}

void traced_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(traced_of(self)->dtype);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int name_result(struct state *st, struct session *s, const struct tv *v)
{
    const char *name = place_target(st, s);
    if (name && TRACE(s, (trace_name(s->t, *v, name), SK_OK)) != SK_OK) {
        raise_error(st, &s->err);
        return -1;
    }
    return 0;
}

PyObject *traced_result(struct state *st, struct session *s, sk_status status, const struct tv *v)
{
    if (status != SK_OK)
        return raise_error(st, &s->err);
    if (name_result(st, s, v) < 0)
        return NULL;
    return traced_new(v->kind == TV_LOCAL ? st->type.local : st->type.value, s, *v, NULL);
}

PyObject *traced_none(struct state *st, struct session *s, sk_status status)
{
    if (status != SK_OK)
        return raise_error(st, &s->err);
    Py_RETURN_NONE;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static PyObject *unary(PyObject *self, enum op op)
{
    struct state *st = STATE_OF(self);
    struct session *s = session_enter(st, "a traced value");
    struct tv a, out = {0};
    if (!s || operand(st, s, self, &a) < 0)
        return NULL;
    const sk_status status = TRACE(s, trace_unary(s->t, op, a, &out, &s->err));
    return traced_result(st, s, status, &out);
}

PyObject *traced_binary(PyObject *x, PyObject *y, enum op op)
{
    struct state *st = STATE_OF(is_traced(x) ? x : y);
    struct session *s = session_enter(st, "a traced value");
    struct tv a, b, out = {0};
    if (!s || operand(st, s, x, &a) < 0 || operand(st, s, y, &b) < 0)
        return NULL;
    const sk_status status = TRACE(s, trace_binary(s->t, op, a, b, &out, &s->err));
    return traced_result(st, s, status, &out);
}

#define UNARY(slot, op)                                                                                                \
    PyObject *traced_##slot(PyObject *self)                                                                            \
    {                                                                                                                  \
        return unary(self, op);                                                                                        \
    }
#define BINARY(slot, op)                                                                                               \
    PyObject *traced_##slot(PyObject *x, PyObject *y)                                                                  \
    {                                                                                                                  \
        return traced_binary(x, y, op);                                                                                \
    }
UNARY_TABLE(UNARY)
BINARY_TABLE(BINARY)

PyObject *traced_power(PyObject *x, PyObject *y, PyObject *modulus)
{
    if (modulus != Py_None)
        return RAISE(STATE_OF(is_traced(x) ? x : is_traced(y) ? y : modulus), POWER_MODULUS);
    return traced_binary(x, y, OP_IPOW);
}

PyObject *traced_divmod(PyObject *x, PyObject *y)
{
    PyObject *quotient = traced_binary(x, y, OP_DIV_FLOOR);
    PyObject *remainder = quotient ? traced_binary(x, y, OP_REM_FLOOR) : NULL;
    PyObject *both = remainder ? PyTuple_Pack(2, quotient, remainder) : NULL;
    Py_XDECREF(quotient);
    Py_XDECREF(remainder);
    return both;
}

PyObject *traced_positive(PyObject *self)
{
    struct state *st = STATE_OF(self);
    struct session *s = session_enter(st, "a traced value");
    struct tv a, out = {0};
    if (!s || operand(st, s, self, &a) < 0)
        return NULL;
    const sk_status status = TRACE(s, trace_snapshot(s->t, a, &out, &s->err));
    return traced_result(st, s, status, &out);
}

static PyObject *math_of(PyObject *self, enum op op)
{
    struct state *st = STATE_OF(self);
    struct session *s = session_enter(st, "a traced value");
    struct tv a, out = {0};
    if (!s || operand(st, s, self, &a) < 0)
        return NULL;
    const sk_status status = TRACE(s, trace_math(s->t, op, false, 1, &a, &out, &s->err));
    return traced_result(st, s, status, &out);
}

PyObject *traced_absolute(PyObject *self)
{
    return math_of(self, OP_ABS);
}

/* round(x): halves to even; an integer is its own rounding. */
static PyObject *traced_round(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct state *st = STATE_OF(self);
    struct session *s = session_find(st);
    if (n > 1 || (n == 1 && args[0] != Py_None))
        return RAISE(st, ROUND_DIGITS);
    if (s && traced_of(self)->session == s->id && traced_of(self)->v.kind != TV_POINTER) {
        const ir_type type = trace_type(s->t, traced_of(self)->v);
        if (type != TYPE_VOID && !(scalar_info[ir_type_scalar(type)].class_ & CLASS_F))
            return traced_positive(self);
    }
    return math_of(self, OP_RINT);
}

PyObject *traced_compare(PyObject *self, PyObject *other, int how)
{
    static const enum op op[] = {
        [Py_LT] = OP_LT, [Py_LE] = OP_LE, [Py_EQ] = OP_EQ, [Py_NE] = OP_NE, [Py_GT] = OP_GT, [Py_GE] = OP_GE};
    return traced_binary(self, other, op[how]);
}

Py_hash_t traced_hash(PyObject *self)
{
    const Py_hash_t h = (Py_hash_t)((uintptr_t)self >> 4);
    return h == -1 ? -2 : h;
}

/* ---- what a traced value refuses --------------------------------------------------------------------------------- */

int traced_bool(PyObject *self)
{
    return RAISE_INT(STATE_OF(self), NO_TRUTH_VALUE);
}

PyObject *traced_int(PyObject *self)
{
    return RAISE(STATE_OF(self), NO_PYTHON_INT);
}

PyObject *traced_float(PyObject *self)
{
    return RAISE(STATE_OF(self), NO_PYTHON_FLOAT);
}

PyObject *traced_index(PyObject *self)
{
    struct session *s = session_find(STATE_OF(self));
    if (s)
        s->refused_index = self; /* NumPy drops the error, and asks for an array: see traced_getattro */
    return RAISE(STATE_OF(self), NO_PYTHON_INDEX);
}

PyObject *traced_iter(PyObject *self)
{
    return RAISE(STATE_OF(self), NOT_ITERABLE);
}

Py_ssize_t traced_length(PyObject *self)
{
    return RAISE_INT(STATE_OF(self), NO_LENGTH);
}

int traced_contains(PyObject *self, PyObject *other)
{
    (void)other;
    return RAISE_INT(STATE_OF(self), NOT_ITERABLE);
}

static PyObject *value_subscript(PyObject *self, PyObject *key)
{
    (void)key;
    return RAISE(STATE_OF(self), VALUE_SUBSCRIPT);
}

static int value_assign_subscript(PyObject *self, PyObject *key, PyObject *x)
{
    (void)key;
    (void)x;
    return RAISE_INT(STATE_OF(self), VALUE_SUBSCRIPT);
}

PyObject *traced_format(PyObject *self, PyObject *spec)
{
    if (PyUnicode_Check(spec) && PyUnicode_GetLength(spec) > 0)
        return RAISE(STATE_OF(self), NO_FORMAT);
    return PyObject_Repr(self);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static const char component_name[] = "xyzw";

static PyObject *get_component(PyObject *self, void *closure)
{
    struct state *st = STATE_OF(self);
    struct session *s = session_enter(st, "a traced value");
    const unsigned k = (unsigned)(uintptr_t)closure;
    struct tv a, out = {0};
    if (!s || operand(st, s, self, &a) < 0)
        return NULL;
    const sk_status status = TRACE(s, trace_extract(s->t, a, k, &out, &s->err));
    return traced_result(st, s, status, &out);
}

/* v.x = e of a local: the whole is put together again with one component new. */
static sk_status replace_component(struct session *s, struct tv local, unsigned k, struct tv e)
{
    const ir_type type = trace_type(s->t, local);
    const unsigned n = ir_type_width(type);
    struct tv part[4] = {{0}}, whole;
    TRY(trace_extract(s->t, local, k, &part[k], &s->err)); /* refuses a missing component */
    for (unsigned i = 0; i < n && i < 4; i++)
        TRY(trace_extract(s->t, local, i, &part[i], &s->err));
    part[k] = e;
    TRY(trace_make(s->t, type, n, part, &whole, &s->err));
    return trace_assign(s->t, local, whole, &s->err);
}

static int set_component(PyObject *self, PyObject *x, void *closure)
{
    struct state *st = STATE_OF(self);
    const unsigned k = (unsigned)(uintptr_t)closure;
    if (!x || traced_of(self)->v.kind != TV_LOCAL)
        return RAISE_INT(st, COMPONENT_ASSIGNMENT, component_name[k], type_name(self));
    struct session *s = session_enter(st, "a local");
    struct tv local, e;
    if (!s || operand(st, s, self, &local) < 0 || operand(st, s, x, &e) < 0)
        return -1;
    if (TRACE(s, replace_component(s, local, k, e)) == SK_OK)
        return 0;
    raise_error(st, &s->err);
    return -1;
}

static PyObject *get_value(PyObject *self, void *closure)
{
    (void)closure;
    return traced_positive(self);
}

PyObject *traced_get_dtype(PyObject *self, void *closure)
{
    (void)closure;
    struct state *st = STATE_OF(self);
    if (traced_of(self)->dtype)
        return Py_NewRef(traced_of(self)->dtype);
    const struct session *s = session_find(st);
    struct tv v;
    if (!s)
        return RAISE(st, OUTSIDE_KERNEL, "a traced value");
    if (operand(st, session_find(st), self, &v) < 0)
        return NULL;
    return dtype_new_ref(st, trace_type(s->t, v), false);
}

static PyObject *value_repr(PyObject *self)
{
    PyObject *dtype = traced_get_dtype(self, NULL);
    if (!dtype)
        PyErr_Clear();
    PyObject *text = dtype ? PyUnicode_FromFormat("<traced %s of %R>", type_name(self), dtype)
                           : PyUnicode_FromFormat("<traced %s of a finished kernel>", type_name(self));
    Py_XDECREF(dtype);
    return text;
}

#define COMPONENT(name, k)                                                                                             \
    {                                                                                                                  \
        name, get_component, set_component, "Component of a vector.", (void *)k                                        \
    }
#define VALUE_GETSET                                                                                                   \
    COMPONENT("x", 0), COMPONENT("y", 1), COMPONENT("z", 2), COMPONENT("w", 3),                                        \
        {"dtype", traced_get_dtype, NULL, "Its dtype.", NULL},                                                         \
    {                                                                                                                  \
        "value", get_value, NULL, "What it is now, as a value that does not change.", NULL                             \
    }
static PyGetSetDef value_getset[] = {VALUE_GETSET, {0}};
static PyMethodDef value_methods[] = {
    {"__round__", PY_METHOD(traced_round), METH_FASTCALL, "Nearest integer, halves to even, of the same type."},
    TRACED_METHODS,
    {0}};

static PyType_Slot value_slots[] = {TRACED_SLOTS,
                                    {Py_mp_subscript, value_subscript},
                                    {Py_mp_ass_subscript, value_assign_subscript},
                                    {Py_tp_repr, value_repr},
                                    {Py_tp_getset, value_getset},
                                    {Py_tp_methods, value_methods},
                                    {Py_tp_doc, "A value of the kernel being traced."},
                                    {0, NULL}};
PyType_Spec value_spec = {"spork.Value", sizeof(struct traced), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, value_slots};

/* ---- locals ------------------------------------------------------------------------------------------------------ */

static PyObject *local_assign(PyObject *self, PyObject *x)
{
    struct state *st = STATE_OF(self);
    struct session *s = session_enter(st, "a local");
    struct tv v, local;
    if (!s || operand(st, s, self, &local) < 0 || operand(st, s, x, &v) < 0)
        return NULL;
    return traced_none(st, s, TRACE(s, trace_assign(s->t, local, v, &s->err)));
}

static PyObject *assign_op(PyObject *self, PyObject *x, enum op op)
{
    struct state *st = STATE_OF(self);
    struct session *s = session_enter(st, "a local");
    struct tv v, local;
    if (!s || operand(st, s, self, &local) < 0 || operand(st, s, x, &v) < 0)
        return NULL;
    if (TRACE(s, trace_assign_op(s->t, local, op, v, &s->err)) != SK_OK)
        return raise_error(st, &s->err);
    return Py_NewRef(self);
}

#define INPLACE(slot, op)                                                                                              \
    static PyObject *local_inplace_##slot(PyObject *self, PyObject *x)                                                 \
    {                                                                                                                  \
        return assign_op(self, x, op);                                                                                 \
    }
BINARY_TABLE(INPLACE)

static PyObject *local_inplace_power(PyObject *self, PyObject *x, PyObject *modulus)
{
    (void)modulus;
    return assign_op(self, x, OP_IPOW);
}

static PyMethodDef local_methods[] = {
    {"__round__", PY_METHOD(traced_round), METH_FASTCALL, "Nearest integer, halves to even, of the same type."},
    TRACED_METHODS,
    {"assign", local_assign, METH_O, "assign($self, value, /)\n--\n\nGives the local a new value."},
    {0}};
static PyGetSetDef local_getset[] = {VALUE_GETSET, {0}};

#define INPLACE_SLOT(slot, op) {Py_nb_inplace_##slot, local_inplace_##slot},
static PyType_Slot local_slots[] = {
    TRACED_SLOTS,
    BINARY_TABLE(INPLACE_SLOT){Py_nb_inplace_power, local_inplace_power},
    {Py_mp_subscript, value_subscript},
    {Py_mp_ass_subscript, value_assign_subscript},
    {Py_tp_repr, value_repr},
    {Py_tp_getset, local_getset},
    {Py_tp_methods, local_methods},
    {Py_tp_doc, "A mutable local of the kernel being traced: a place, read where it is used. Made by sk.local."},
    {0, NULL}};
PyType_Spec local_spec = {"spork.Local", sizeof(struct traced), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, local_slots};
