/* rebind.c - was a Python name bound anew inside a block?
 *
 * Python runs a block once while tracing, whatever its condition or count. So after
 *     s = 1.0
 *     with sk.if_(c):
 *         s = 2.0
 * the name means 2.0 on every path, and in a loop it means its first value in every iteration. It is an error if the name
 * may be read later, with what it was bound to when the block began and what it is bound to at the end.
 * Which names could matter is read from the code; nearly always there are none, and only for the others is the frame asked.
 */
#include "bytecode.h"

struct rebind {
    uint32_t variable;
    bool carried; /* may be read by the next iteration */
    PyObject *old;
};

/* ---- the variables of the frame ---------------------------------------------------------------------------------- */

/* New reference; null without an exception: not bound. */
static PyObject *value_of(PyObject *locals, const char *name)
{
    PyObject *x = name ? PyMapping_GetItemString(locals, name) : NULL;
    if (!x)
        PyErr_Clear();
    return x;
}

static PyObject *locals_of(struct state *st, const struct code_info *c)
{
    PyFrameObject *frame = PyEval_GetFrame();
    PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
    PyObject *locals = (PyObject *)code == c->code ? PyObject_GetAttr((PyObject *)frame, st->str.f_locals) : NULL;
    Py_XDECREF(code);
    return locals;
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

/* The first write at `unit` or after it. */
static uint32_t first_store(const struct code_flow *f, uint32_t unit)
{
    uint32_t low = 0, high = f->n_stores;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (f->store[middle].unit < unit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The end of a with statement's body, or later. */
static uint32_t body_end(const struct state *st, const struct code_info *c, uint32_t begin)
{
    const struct code_flow *f = c->flow;
    const uint32_t handler = handler_of(st, c, begin);
    uint32_t end = handler;
#if PY_VERSION_HEX >= 0x030C0000
    end = f->first_handler; /* handlers stand at the end of the function */
#endif
    (void)f;
    return end > c->n_units ? c->n_units : end;
}

static bool may_be_bound(const struct code_flow *f, uint32_t variable, uint32_t begin)
{
    return variable < f->n_parameters || f->first_store[variable] < begin || f->last_back > begin;
}

int watch_begin(struct state *st, struct session *s, struct watch *w, bool loop)
{
    struct code_info *c = &s->codes.at[s->code];
    w->code = s->code;
    w->enter = NO_UNIT;
    w->at = NULL;
    w->n = 0;
    if (s->unit == NO_UNIT || !code_flow_get(st, c))
        return PyErr_Occurred() ? -1 : 0;
    const struct code_flow *f = c->flow;
    const struct instruction i = instruction_at(st, c, instruction_begin(st, c, s->unit));
    const bool is_for = i.opcode == st->opcode.FOR_ITER;
    const uint32_t after = is_for ? i.target : after_with(st, c, s->unit);
    if (after == NO_UNIT)
        return 0;
    w->enter = s->unit;
    w->begin = i.next;
    w->end = is_for ? i.target : body_end(st, c, i.next);
    PyObject *locals = NULL;
    uint32_t room = 0;
    for (uint32_t k = first_store(f, w->begin); k < f->n_stores && f->store[k].unit < w->end; k++) {
        const uint32_t v = f->store[k].variable;
        if (!may_be_bound(f, v, w->begin))
            continue;
        const bool carried = loop && is_live(st, c, v, w->begin);
        if (!carried && !is_live(st, c, v, after))
            continue;
        bool known = false;
        for (uint32_t j = 0; j < w->n && !known; j++)
            known = w->at[j].variable == v;
        if (known)
            continue;
        if (!locals && !(locals = locals_of(st, c)))
            return PyErr_Occurred() ? -1 : 0;
        PyObject *old = value_of(locals, place_variable(st, c, v));
        if (!old)
            continue;
        if (w->n == room) {
            room = room ? 2 * room : 4;
            struct rebind *at = PyMem_Realloc(w->at, room * sizeof *at);
            if (!at) {
                Py_DECREF(old);
                Py_DECREF(locals);
                PyErr_NoMemory();
                return -1;
            }
            w->at = at;
        }
        w->at[w->n++] = (struct rebind){v, carried, old};
    }
    Py_XDECREF(locals);
    return 0;
}

void watch_free(struct watch *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        Py_DECREF(w->at[i].old);
    PyMem_Free(w->at);
    w->at = NULL;
    w->n = 0;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Whether two objects mean the same in a kernel. */
static bool is_same(struct state *st, PyObject *a, PyObject *b, int depth)
{
    struct tv x, y;
    if (a == b)
        return true;
    if (Py_TYPE(a) != Py_TYPE(b) || is_traced(a) || depth > 8)
        return false;
    if (PyUnicode_CheckExact(a))
        return PyUnicode_Compare(a, b) == 0;
    if (PyTuple_CheckExact(a)) {
        bool same = PyTuple_GET_SIZE(a) == PyTuple_GET_SIZE(b);
        for (Py_ssize_t i = 0; same && i < PyTuple_GET_SIZE(a); i++)
            same = is_same(st, PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i), depth + 1);
        return same;
    }
    const bool numbers = weak_number(st, a, &x) == 0 && weak_number(st, b, &y) == 0;
    PyErr_Clear();
    return numbers && x.kind == y.kind && x.negative == y.negative && x.magnitude == y.magnitude;
}

/* Whether the new object would be used wrongly, without an error of its own. */
static bool is_wrong(struct state *st, const struct session *s, const struct rebind *r, PyObject *now)
{
    if (is_same(st, r->old, now, 0) || Py_TYPE(now) == st->type.block)
        return false;
    const bool ends_with_block =
        is_traced(now) && traced_of(now)->session == s->id && !trace_usable(s->t, traced_of(now)->v);
    return r->carried || !ends_with_block || Py_TYPE(r->old) == st->type.local;
}

/* The line of the last write before `end`, where __exit__ is called or the loop is left. */
static uint32_t line_of_store(const struct code_info *c, const struct watch *w, uint32_t variable, uint32_t end)
{
    uint32_t unit = w->enter;
    for (uint32_t k = first_store(c->flow, w->begin); k < c->flow->n_stores && c->flow->store[k].unit < end; k++)
        if (c->flow->store[k].variable == variable)
            unit = c->flow->store[k].unit;
    return (uint32_t)PyCode_Addr2Line((PyCodeObject *)c->code, (int)unit * 2);
}

int watch_end(struct state *st, struct session *s, struct watch *w, const char *what)
{
    struct code_info *c = &s->codes.at[w->code];
    PyObject *locals = w->n && s->code == w->code ? locals_of(st, c) : NULL;
    for (uint32_t i = 0; locals && i < w->n; i++) {
        const struct rebind *r = &w->at[i];
        const char *name = place_variable(st, c, r->variable);
        PyObject *now = value_of(locals, name);
        if (now && is_wrong(st, s, r, now)) {
            PyObject *file = PyObject_GetAttr(c->code, st->str.co_filename);
            const struct err_place at = {
                file ? PyUnicode_AsUTF8(file) : NULL,
                line_of_store(c, w, r->variable, s->unit > w->enter && s->unit < w->end ? s->unit : w->end), 0};
            if (Py_TYPE(r->old) == st->type.local)
                RAISE_AT(st, at, REBOUND_LOCAL, name, what, name, name);
            else
                RAISE_AT(st, at, REBOUND, name, what, name, name);
            Py_XDECREF(file);
        }
        Py_XDECREF(now);
        if (PyErr_Occurred())
            break;
    }
    Py_XDECREF(locals);
    watch_free(w);
    return PyErr_Occurred() ? -1 : 0;
}
