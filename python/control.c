/* control.c - control flow of the kernel: sk.range, sk.if_, sk.while_, sk.where, break, continue, return.
 *
 * Python's own control flow runs while tracing, once. What it leaves behind in a wrong order is noticed when objects
 * die: a range iterator whose loop is open, a block that was never entered. Nothing can be raised there, so the session
 * keeps the error for its next operation (session.pending).
 */
#include "state.h"

/* Keeps an error for the next operation of the session, if it is still the one that the object belongs to. */
#define PEND(st, session_id, row, ...)                                                                                 \
    do {                                                                                                               \
        struct session *pend_ = session_find(st);                                                                      \
        PyObject *type_, *value_, *trace_;                                                                             \
        PyErr_Fetch(&type_, &value_, &trace_);                                                                         \
        if (pend_ && pend_->id == (session_id))                                                                        \
            (void)ERR_AT(&pend_->pending, caller_place(st), row __VA_OPT__(, ) __VA_ARGS__);                           \
        PyErr_Restore(type_, value_, trace_);                                                                          \
    } while (0)

/* ---- range ------------------------------------------------------------------------------------------------------- */

struct range {
    PyObject_HEAD
    uint64_t session;
    struct tv bound[3];
    uint32_t scope;     /* of an iterator */
    struct watch watch; /* of an iterator */
    enum { RANGE_NEW, RANGE_OPEN, RANGE_DONE } state;
};

static struct range *range_of(PyObject *o)
{
    return (struct range *)o;
}

static PyObject *range_(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    struct state *st = state_of_module(module);
    struct session *s = session_enter(st, "range");
    struct tv a[3];
    if (!s)
        return NULL;
    if (n < 1 || n > 3)
        return RAISE(st, RANGE_ARGUMENTS, (int)n);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (operand(st, s, args[i], &a[i]) < 0)
            return NULL;
        if (a[i].kind == TV_LOCAL && TRACE(s, trace_snapshot(s->t, a[i], &a[i], &s->err)) != SK_OK)
            return raise_error(st, &s->err);
    }
    struct range *r = PyObject_New(struct range, st->type.range);
    if (r) {
        r->session = s->id;
        r->bound[0] = n > 1 ? a[0] : tv_int(0);
        r->bound[1] = n > 1 ? a[1] : a[0];
        r->bound[2] = n > 2 ? a[2] : tv_int(1);
        r->watch = (struct watch){0};
        r->state = RANGE_NEW;
    }
    return (PyObject *)r;
}

static PyObject *range_iter(PyObject *self)
{
    struct state *st = STATE_OF(self);
    if (!caller_executes(st, st->opcode.GET_ITER))
        return RAISE(st, RANGE_NOT_FOR);
    struct range *it = PyObject_New(struct range, st->type.range_iterator);
    if (it) {
        it->session = range_of(self)->session;
        memcpy(it->bound, range_of(self)->bound, sizeof it->bound);
        it->watch = (struct watch){0};
        it->state = RANGE_NEW;
        range_of(self)->state = RANGE_DONE;
    }
    return (PyObject *)it;
}

static PyObject *range_next_outside(PyObject *self)
{
    return RAISE(STATE_OF(self), RANGE_NOT_FOR);
}

static PyObject *range_iterator_next(PyObject *self)
{
    struct state *st = STATE_OF(self);
    struct range *r = range_of(self);
    if (r->state == RANGE_DONE)
        return NULL;
    struct session *s = session_enter(st, "range");
    if (!s)
        return NULL;
    if (r->session != s->id)
        return RAISE(st, OTHER_KERNEL);
    struct tv var;
    if (r->state == RANGE_NEW) {
        uint32_t *const scope = &r->scope;
        const sk_status status =
            TRACE(s, trace_range(s->t, r->bound[0], r->bound[1], r->bound[2], &var, scope, &s->err));
        if (status == SK_OK)
            r->state = RANGE_OPEN;
        if (status == SK_OK && watch_begin(st, s, &r->watch, true) < 0)
            return NULL;
        return traced_result(st, s, status, &var);
    }
    r->state = RANGE_DONE;
    if (TRACE(s, trace_end_scope(s->t, r->scope, &s->err)) != SK_OK)
        return raise_error(st, &s->err);
    (void)watch_end(st, s, &r->watch, "sk.range");
    return NULL;
}

static void range_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static void range_iterator_dealloc(PyObject *self)
{
    struct state *st = STATE_OF(self);
    if (range_of(self)->state == RANGE_OPEN)
        PEND(st, range_of(self)->session, RANGE_LEFT);
    watch_free(&range_of(self)->watch);
    range_dealloc(self);
}

static PyType_Slot range_slots[] = {{Py_tp_dealloc, range_dealloc},
                                    {Py_tp_iter, range_iter},
                                    {Py_tp_iternext, range_next_outside},
                                    {Py_tp_doc, "A loop of the kernel: for i in sk.range(start, stop, step)."},
                                    {0, NULL}};
PyType_Spec range_spec = {"spork.Range", sizeof(struct range), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, range_slots};
static PyType_Slot range_iterator_slots[] = {{Py_tp_dealloc, range_iterator_dealloc},
                                             {Py_tp_iter, PyObject_SelfIter},
                                             {Py_tp_iternext, range_iterator_next},
                                             {0, NULL}};
PyType_Spec range_iterator_spec = {"spork.RangeIterator", sizeof(struct range), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, range_iterator_slots};

/* ---- with blocks ------------------------------------------------------------------------------------------------- */

enum block_kind { BLOCK_IF, BLOCK_ELSE, BLOCK_ELIF, BLOCK_WHILE };
static const char *const block_name[] = {"sk.if_", "else_", "elif_", "sk.while_"};

struct block {
    PyObject_HEAD
    uint64_t session;
    enum block_kind kind;
    enum { BLOCK_UNCALLED, BLOCK_NEW, BLOCK_OPEN, BLOCK_DONE } state; /* uncalled: b.else_ without () */
    uint32_t scope, last; /* last: of an if, the newest scope of its chain */
    struct watch watch;
    PyObject *cond, *owner; /* owner: the if of an else or elif; null else */
};

static struct block *block_of(PyObject *o)
{
    return (struct block *)o;
}

static PyObject *block_new(struct state *st, const struct session *s, enum block_kind kind, PyObject *cond,
                           PyObject *owner)
{
    struct block *b = PyObject_New(struct block, st->type.block);
    if (b) {
        b->session = s->id;
        b->kind = kind;
        b->state = BLOCK_NEW;
        b->scope = b->last = 0;
        b->watch = (struct watch){.enter = UINT32_MAX};
        b->cond = Py_XNewRef(cond);
        b->owner = Py_XNewRef(owner);
    }
    return (PyObject *)b;
}

static void block_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct block *b = block_of(self);
    if (b->state == BLOCK_NEW)
        PEND(STATE_OF(self), b->session, BLOCK_NOT_ENTERED, block_name[b->kind], block_name[b->kind]);
    Py_XDECREF(b->cond);
    Py_XDECREF(b->owner);
    watch_free(&b->watch);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *if_(PyObject *module, PyObject *cond)
{
    struct state *st = state_of_module(module);
    const struct session *s = session_enter(st, "if_");
    struct tv c;
    return s && operand(st, session_find(st), cond, &c) == 0 ? block_new(st, s, BLOCK_IF, cond, NULL) : NULL;
}

static PyObject *while_(PyObject *module, PyObject *cond)
{
    struct state *st = state_of_module(module);
    const struct session *s = session_enter(st, "while_");
    struct tv c;
    if (!s || (!PyCallable_Check(cond) && operand(st, session_find(st), cond, &c) < 0))
        return NULL;
    return block_new(st, s, BLOCK_WHILE, cond, NULL);
}

static PyObject *branch(PyObject *self, PyObject *cond, enum block_kind kind)
{
    struct state *st = STATE_OF(self);
    const struct session *s = session_enter(st, block_name[kind]);
    struct tv c;
    if (!s || (cond && operand(st, session_find(st), cond, &c) < 0))
        return NULL;
    PyObject *owner = block_of(self)->owner ? block_of(self)->owner : self;
    if (block_of(owner)->kind != BLOCK_IF || block_of(owner)->state != BLOCK_DONE || block_of(owner)->session != s->id)
        return RAISE(st, NOT_AFTER_IF, block_name[kind]);
    return block_new(st, s, kind, cond, owner);
}

/* b.else_ and b.elif_ are no methods, so that `with b.else_:` can be refused in our words. */
static PyObject *get_branch(PyObject *self, void *kind)
{
    struct block *b = PyObject_New(struct block, STATE_OF(self)->type.block);
    if (b) {
        const size_t head = offsetof(struct block, session);
        memset((char *)b + head, 0, sizeof *b - head);
        b->kind = (enum block_kind)(uintptr_t)kind;
        b->state = BLOCK_UNCALLED;
        b->watch.enter = UINT32_MAX;
        b->owner = Py_NewRef(self);
    }
    return (PyObject *)b;
}

static PyObject *block_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const struct block *b = block_of(self);
    const Py_ssize_t n = PyTuple_GET_SIZE(args), want = b->kind == BLOCK_ELIF;
    if (b->state != BLOCK_UNCALLED)
        return PyErr_Format(PyExc_TypeError, "a block of %s is not called, but entered by with", block_name[b->kind]);
    if (n != want || (kwargs && PyDict_GET_SIZE(kwargs)))
        return RAISE(STATE_OF(self), OPERAND_COUNT, block_name[b->kind], (int)want, (unsigned)n);
    return branch(b->owner, want ? PyTuple_GET_ITEM(args, 0) : NULL, b->kind);
}

static int enter_while(struct state *st, struct session *s, struct block *b)
{
    struct tv c;
    uint32_t *const scope = &b->scope;
    if (!PyCallable_Check(b->cond)) {
        if (operand(st, s, b->cond, &c) < 0)
            return -1;
        if (TRACE(s, trace_while(s->t, c, scope, &s->err)) == SK_OK)
            return 0;
        raise_error(st, &s->err);
        return -1;
    }
    if (TRACE(s, trace_while_begin(s->t, scope, &s->err)) != SK_OK) {
        raise_error(st, &s->err);
        return -1;
    }
    PyObject *x = session_call(st, s, b->cond, NULL);
    const int status = x && place_session(st, s) == 0 ? operand(st, s, x, &c) : -1;
    Py_XDECREF(x);
    if (status < 0)
        return -1;
    if (TRACE(s, trace_while_cond(s->t, b->scope, c, &s->err)) == SK_OK)
        return 0;
    raise_error(st, &s->err);
    return -1;
}

static int enter_branch(struct state *st, struct session *s, struct block *b)
{
    struct tv c = {0};
    uint32_t *const scope = &b->scope;
    sk_status status = SK_OK;
    if (b->kind != BLOCK_WHILE && b->cond && operand(st, s, b->cond, &c) < 0)
        return -1;
    const uint32_t last = b->owner ? block_of(b->owner)->last : 0;
    switch (b->kind) {
    case BLOCK_IF: status = TRACE(s, trace_if(s->t, c, scope, &s->err)); break;
    case BLOCK_ELSE: status = TRACE(s, trace_else(s->t, last, scope, &s->err)); break;
    case BLOCK_ELIF: status = TRACE(s, trace_elif(s->t, last, c, scope, &s->err)); break;
    case BLOCK_WHILE: return enter_while(st, s, b);
    }
    if (status != SK_OK) {
        raise_error(st, &s->err);
        return -1;
    }
    b->last = b->scope;
    if (b->owner)
        block_of(b->owner)->last = b->scope;
    return 0;
}

static PyObject *block_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct state *st = STATE_OF(self);
    struct block *b = block_of(self);
    struct session *s = session_enter(st, block_name[b->kind]);
    if (!s)
        return NULL;
    if (b->state == BLOCK_UNCALLED)
        return RAISE(st, BLOCK_NOT_CALLED, block_name[b->kind], b->kind == BLOCK_ELSE ? "else_()" : "elif_(condition)");
    if (b->session != s->id)
        return RAISE(st, OTHER_KERNEL);
    if (b->state != BLOCK_NEW)
        return RAISE(st, BLOCK_TWICE, block_name[b->kind]);
    b->state = BLOCK_DONE; /* so that a failure is reported once */
    if (enter_branch(st, s, b) < 0)
        return NULL;
    b->state = BLOCK_OPEN;
    s->n_loops += b->kind == BLOCK_WHILE;
    Py_CLEAR(b->cond);
    if (watch_begin(st, s, &b->watch, b->kind == BLOCK_WHILE) < 0)
        return NULL;
    return Py_NewRef(b->owner ? b->owner : self);
}

static PyObject *block_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct state *st = STATE_OF(self);
    struct block *b = block_of(self);
    if (b->state != BLOCK_OPEN)
        Py_RETURN_FALSE;
    b->state = BLOCK_DONE;
    if (n > 0 && args[0] != Py_None) {
        /* The user's exception goes on. The block ends, in case it is caught inside the kernel. */
        struct session *s = session_find(st);
        if (s && s->id == b->session) {
            (void)TRACE(s, trace_end_scope(s->t, b->scope, &s->err));
            sk_error_clear(&s->err);
            s->n_loops -= b->kind == BLOCK_WHILE;
        }
        Py_RETURN_FALSE;
    }
    struct session *s = session_enter(st, block_name[b->kind]);
    if (!s)
        return NULL;
    if (b->session != s->id)
        return RAISE(st, OTHER_KERNEL);
    if (TRACE(s, trace_end_scope(s->t, b->scope, &s->err)) != SK_OK)
        return raise_error(st, &s->err);
    const int left = check_left(st, s, b->watch.enter, block_name[b->kind]);
    s->n_loops -= b->kind == BLOCK_WHILE;
    if (left < 0 || watch_end(st, s, &b->watch, block_name[b->kind]) < 0)
        return NULL;
    Py_RETURN_FALSE;
}

static PyMethodDef block_methods[] = {
    {"__enter__", block_enter, METH_NOARGS, NULL}, {"__exit__", PY_METHOD(block_exit), METH_FASTCALL, NULL}, {0}};
static PyGetSetDef block_getset[] = {
    {"else_", get_branch, NULL, "with b.else_(): what runs where the conditions fail.", (void *)BLOCK_ELSE},
    {"elif_", get_branch, NULL, "with b.elif_(c): as Python's elif.", (void *)BLOCK_ELIF},
    {0}};
static PyType_Slot block_slots[] = {{Py_tp_dealloc, block_dealloc},
                                    {Py_tp_call, block_call},
                                    {Py_tp_getset, block_getset},
                                    {Py_tp_methods, block_methods},
                                    {Py_tp_doc, "A block of the kernel, for a with statement."},
                                    {0, NULL}};
PyType_Spec block_spec = {"spork.Block", sizeof(struct block), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, block_slots};

/* ---- statements -------------------------------------------------------------------------------------------------- */

static PyObject *break_(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct state *st = state_of_module(module);
    struct session *s = session_enter(st, "break_");
    return s ? traced_none(st, s, TRACE(s, trace_break(s->t, &s->err))) : NULL;
}

static PyObject *continue_(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct state *st = state_of_module(module);
    struct session *s = session_enter(st, "continue_");
    return s ? traced_none(st, s, TRACE(s, trace_continue(s->t, &s->err))) : NULL;
}

static PyObject *return_(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    struct state *st = state_of_module(module);
    struct session *s = session_enter(st, "return_");
    struct tv v;
    if (!s)
        return NULL;
    if (n > 1)
        return RAISE(st, OPERAND_COUNT, "return_", 1, (unsigned)n);
    const bool given = n == 1 && args[0] != Py_None;
    if (given && operand(st, s, args[0], &v) < 0)
        return NULL;
    return traced_none(st, s, TRACE(s, trace_return(s->t, given ? &v : NULL, &s->err)));
}

/* A side of sk.where: called if it can be, else the value itself. */
static int where_side(struct state *st, struct session *s, PyObject *o, struct tv *out)
{
    PyObject *x = PyCallable_Check(o) ? session_call(st, s, o, NULL) : Py_NewRef(o);
    const int status = x && place_session(st, s) == 0 ? operand(st, s, x, out) : -1;
    Py_XDECREF(x);
    return status;
}

static PyObject *where(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    struct state *st = state_of_module(module);
    struct session *s = session_enter(st, "where");
    struct tv c, a, b, out;
    uint32_t scope = 0, *const at = &scope;
    if (!s)
        return NULL;
    if (n != 3)
        return RAISE(st, OPERAND_COUNT, "where", 3, (unsigned)n);
    if (operand(st, s, args[0], &c) < 0)
        return NULL;
    if (TRACE(s, trace_where(s->t, c, at, &s->err)) != SK_OK)
        return raise_error(st, &s->err);
    if (where_side(st, s, args[1], &a) < 0)
        return NULL;
    if (TRACE(s, trace_where_next(s->t, *at, a, &s->err)) != SK_OK)
        return raise_error(st, &s->err);
    if (where_side(st, s, args[2], &b) < 0)
        return NULL;
    const sk_status status = TRACE(s, trace_where_end(s->t, *at, b, &out, &s->err));
    return traced_result(st, s, status, &out);
}

#define DOC(name, signature, text) name signature "\n--\n\n" text
PyMethodDef control_methods[] = {
    {"range", PY_METHOD(range_), METH_FASTCALL,
     DOC("range", "($module, *args)", "for i in sk.range([start,] stop[, step]): a loop of the kernel.")},
    {"if_", if_, METH_O,
     DOC("if_", "($module, condition, /)", "with sk.if_(c) as b: ... with b.elif_(d): ... with b.else_(): ...")},
    {"while_", while_, METH_O,
     DOC("while_", "($module, condition, /)",
         "with sk.while_(c): the condition, or a lambda that gives it, is evaluated before each iteration.")},
    {"where", PY_METHOD(where), METH_FASTCALL,
     DOC("where", "($module, condition, a, b, /)",
         "The value of the lambda a where the condition holds, else of b; only one is evaluated.")},
    {"break_", break_, METH_NOARGS, DOC("break_", "($module, /)", "Leaves the innermost loop of the kernel.")},
    {"continue_", continue_, METH_NOARGS, DOC("continue_", "($module, /)", "Goes on with the loop's next iteration.")},
    {"return_", PY_METHOD(return_), METH_FASTCALL,
     DOC("return_", "($module, value=None, /)", "Ends the thread, or a device function with its value.")},
    {0}};
