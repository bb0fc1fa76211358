/* place.c - whose line is it, and what does the result's variable get called.
 *
 * A place is the line that the first calling frame outside the package executes. PyFrame_GetLineNumber takes time in
 * proportion to the function's length, so a session decodes each code object's line table once.
 */
#include "state.h"

int place_init(struct state *st)
{
    PyObject *module = PyImport_ImportModule("opcode");
    PyObject *map = module ? PyObject_GetAttrString(module, "opmap") : NULL;
    Py_XDECREF(module);
    if (!map)
        return -1;
    PyObject *number;
#define OPCODE(n)                                                                                                      \
    number = PyMapping_GetItemString(map, #n);                                                                         \
    if (!number)                                                                                                       \
        PyErr_Clear();                                                                                                 \
    st->opcode.n = number ? (int)PyLong_AsLong(number) : -1;                                                           \
    Py_XDECREF(number);
    OPCODE_TABLE(OPCODE)
#undef OPCODE
    const int status = PyErr_Occurred() ? -1 : bytecode_init(st, map);
    Py_DECREF(map);
    return status;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static bool is_internal(const struct state *st, PyObject *code)
{
    if (!st->package)
        return false;
    PyObject *file = PyObject_GetAttr(code, st->str.co_filename);
    const int inside =
        file && PyUnicode_Check(file) ? (int)PyUnicode_Tailmatch(file, st->package, 0, PY_SSIZE_T_MAX, -1) : 0;
    Py_XDECREF(file);
    if (PyErr_Occurred())
        PyErr_Clear();
    return inside > 0;
}

/* The first calling frame outside the package, with its code; both owned. Null without an exception: there is none. */
static PyFrameObject *user_frame(const struct state *st, PyCodeObject **code)
{
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame) {
        *code = PyFrame_GetCode(frame);
        if (!is_internal(st, (PyObject *)*code))
            return frame;
        Py_DECREF(*code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    return NULL;
}

static const char *file_of_code(const struct state *st, PyObject *code)
{
    PyObject *file = PyObject_GetAttr(code, st->str.co_filename);
    const char *text = file ? PyUnicode_AsUTF8(file) : NULL;
    Py_XDECREF(file); /* the code object keeps it */
    if (!text)
        PyErr_Clear();
    return text ? text : "?";
}

struct err_place caller_place(struct state *st)
{
    struct err_place at = {0};
    PyCodeObject *code;
    PyFrameObject *frame = user_frame(st, &code);
    if (frame) {
        at.file = file_of_code(st, (PyObject *)code);
        at.line = (uint32_t)PyFrame_GetLineNumber(frame);
        Py_DECREF(code);
        Py_DECREF(frame);
    }
    return at;
}

/* Calls code.NAME(), an iterator of tuples; null without an exception if this Python has none. */
static PyObject *code_iterator(PyObject *code, PyObject *name)
{
    PyObject *method = PyObject_GetAttr(code, name);
    PyObject *it = method ? PyObject_CallNoArgs(method) : NULL;
    Py_XDECREF(method);
    if (!it)
        PyErr_Clear();
    return it;
}

uint32_t caller_column(struct state *st, const char *file, uint32_t line)
{
    uint32_t column = 0;
    PyCodeObject *code;
    PyFrameObject *frame = user_frame(st, &code);
    if (!frame)
        return 0;
    if ((uint32_t)PyFrame_GetLineNumber(frame) == line && strcmp(file_of_code(st, (PyObject *)code), file) == 0) {
        PyObject *it = code_iterator((PyObject *)code, st->str.co_positions), *row = NULL;
        for (int k = compat_lasti(frame) / 2; it && k >= 0 && (row = PyIter_Next(it)); k--) {
            PyObject *x =
                k == 0 && PyTuple_Check(row) && PyTuple_GET_SIZE(row) == 4 ? PyTuple_GET_ITEM(row, 2) : Py_None;
            if (x != Py_None)
                column = (uint32_t)PyLong_AsLong(x) + 1;
            Py_DECREF(row);
        }
        Py_XDECREF(it);
        if (PyErr_Occurred())
            PyErr_Clear();
    }
    Py_DECREF(code);
    Py_DECREF(frame);
    return column;
}

bool caller_executes(struct state *st, int opcode)
{
    PyFrameObject *frame = PyEval_GetFrame();
    if (!frame || opcode < 0)
        return true;
    bool same = true;
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *bytes = PyObject_GetAttr((PyObject *)code, st->str.co_code);
    const int at = compat_lasti(frame);
    if (bytes && PyBytes_Check(bytes) && at >= 0 && at < PyBytes_GET_SIZE(bytes))
        same = (unsigned char)PyBytes_AS_STRING(bytes)[at] == opcode;
    if (!bytes)
        PyErr_Clear();
    Py_XDECREF(bytes);
    Py_DECREF(code);
    return same;
}

/* ---- the table of a session -------------------------------------------------------------------------------------- */

static int decode_lines(struct state *st, struct code_info *c)
{
    PyObject *it = code_iterator(c->code, st->str.co_lines), *row;
    if (!it)
        return 0;
    c->line = PyMem_Calloc(c->n_units ? c->n_units : 1, sizeof *c->line);
    if (!c->line) {
        Py_DECREF(it);
        PyErr_NoMemory();
        return -1;
    }
    while ((row = PyIter_Next(it))) {
        if (PyTuple_Check(row) && PyTuple_GET_SIZE(row) == 3 && PyTuple_GET_ITEM(row, 2) != Py_None) {
            const long start = PyLong_AsLong(PyTuple_GET_ITEM(row, 0)), end = PyLong_AsLong(PyTuple_GET_ITEM(row, 1));
            const long line = PyLong_AsLong(PyTuple_GET_ITEM(row, 2));
            for (long k = start / 2; k >= 0 && k < end / 2 && k < (long)c->n_units; k++)
                c->line[k] = (uint32_t)line;
        }
        Py_DECREF(row);
    }
    Py_DECREF(it);
    return PyErr_Occurred() ? -1 : 0;
}

static int code_add(struct state *st, struct session *s, PyObject *code)
{
    struct code_table *t = &s->codes;
    if (t->n == t->cap) {
        const uint32_t cap = t->cap ? 2 * t->cap : 8;
        void *at = PyMem_Realloc(t->at, cap * sizeof *t->at);
        if (!at) {
            PyErr_NoMemory();
            return -1;
        }
        t->at = at;
        t->cap = cap;
    }
    struct code_info c = {.code = Py_NewRef(code), .internal = is_internal(st, code)};
    c.bytes = PyObject_GetAttr(code, st->str.co_code);
    if (!c.bytes || !PyBytes_Check(c.bytes))
        goto fail;
    c.unit = (const unsigned char *)PyBytes_AS_STRING(c.bytes);
    c.n_units = (uint32_t)(PyBytes_GET_SIZE(c.bytes) / 2);
    if (decode_lines(st, &c) < 0)
        goto fail;
    const char *file = file_of_code(st, code);
    uint32_t *const id = &c.file;
    if (TRACE(s, (*id = trace_file(s->t, file), SK_OK)) != SK_OK) {
        raise_error(st, &s->err);
        goto fail;
    }
    t->last = t->n;
    t->at[t->n++] = c;
    return 0;
fail:
    Py_DECREF(c.code);
    Py_XDECREF(c.bytes);
    PyMem_Free(c.line);
    return -1;
}

void code_table_free(struct code_table *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        Py_DECREF(t->at[i].code);
        Py_XDECREF(t->at[i].bytes);
        Py_XDECREF(t->at[i].varnames);
        PyMem_Free(t->at[i].line);
        code_flow_free(t->at[i].flow);
    }
    PyMem_Free(t->at);
    memset(t, 0, sizeof *t);
}

static int code_find(struct state *st, struct session *s, PyObject *code)
{
    struct code_table *t = &s->codes;
    if (t->n && t->at[t->last].code == code)
        return 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->at[i].code == code) {
            t->last = i;
            return 0;
        }
    return code_add(st, s, code);
}

int place_session(struct state *st, struct session *s)
{
    PyFrameObject *frame = PyEval_GetFrame();
    int status = -1;
    s->unit = UINT32_MAX;
    Py_XINCREF(frame);
    while (frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        const int found = code_find(st, s, (PyObject *)code);
        Py_DECREF(code);
        if (found < 0)
            goto done;
        if (!s->codes.at[s->codes.last].internal)
            break;
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    if (frame) {
        const struct code_info *c = &s->codes.at[s->codes.last];
        const int at = compat_lasti(frame);
        s->code = s->codes.last;
        if (at >= 0 && (uint32_t)at / 2 < c->n_units)
            s->unit = (uint32_t)at / 2;
        const uint32_t line =
            c->line && s->unit != UINT32_MAX ? c->line[s->unit] : (uint32_t)PyFrame_GetLineNumber(frame);
        trace_place(s->t, c->file, line, 0);
    }
    status = 0;
done:
    Py_XDECREF(frame);
    return status;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* Element k of a tuple of names; the code object keeps the text. */
static const char *name_in(PyObject *names, Py_ssize_t k)
{
    const char *text = names && PyTuple_Check(names) && k >= 0 && k < PyTuple_GET_SIZE(names)
                           ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, k))
                           : NULL;
    if (!text)
        PyErr_Clear();
    return text;
}

static const char *local_name(struct state *st, struct code_info *c, Py_ssize_t k)
{
    if (!c->varnames)
        c->varnames = PyObject_GetAttr(c->code, st->str.co_varnames);
    return name_in(c->varnames, k);
}

static const char *global_name(struct state *st, const struct code_info *c, Py_ssize_t k)
{
    PyObject *names = PyObject_GetAttr(c->code, st->str.co_names);
    const char *text = name_in(names, k);
    Py_XDECREF(names);
    return text;
}

/* Variables that inner functions see. Since 3.11 they are counted after the locals, less those that are parameters. */
static const char *cell_name(struct state *st, struct code_info *c, Py_ssize_t k)
{
    const char *text = NULL;
    PyObject *cells = PyObject_GetAttr(c->code, st->str.co_cellvars);
#if PY_VERSION_HEX >= 0x030B0000
    text = local_name(st, c, k);
    k -= c->varnames && PyTuple_Check(c->varnames) ? PyTuple_GET_SIZE(c->varnames) : 0;
    for (Py_ssize_t i = 0; !text && k >= 0 && cells && i < PyTuple_GET_SIZE(cells); i++)
        if (PySequence_Contains(c->varnames, PyTuple_GET_ITEM(cells, i)) == 0 && k-- == 0)
            text = name_in(cells, i);
#else
    text = name_in(cells, k);
#endif
    Py_XDECREF(cells);
    return text;
}

const char *place_variable(struct state *st, struct code_info *c, uint32_t variable)
{
    const char *name = local_name(st, c, variable);
    Py_ssize_t cell = variable;
#if PY_VERSION_HEX < 0x030B0000
    cell -= c->varnames && PyTuple_Check(c->varnames) ? PyTuple_GET_SIZE(c->varnames) : 0;
#endif
    return name ? name : cell_name(st, c, cell);
}

/* The variable that the instruction after unit `k` stores its result in. True: it is returned instead. */
static bool target_after(struct state *st, struct code_info *c, uint32_t k, const char **name)
{
    unsigned argument = 0;
    const bool precall = c->unit[2 * k] == st->opcode.PRECALL; /* 3.11: does its CALL's work once specialised */
    *name = NULL;
    k++;
#if PY_VERSION_HEX >= 0x030B0000
    while (k < c->n_units && (c->unit[2 * k] == 0 || (precall && c->unit[2 * k] == st->opcode.CALL)))
        k++; /* the instruction's caches: CACHE is 0 */
#endif
    if (k < c->n_units &&
        (c->unit[2 * k] == st->opcode.COPY || c->unit[2 * k] == st->opcode.DUP_TOP)) /* a = b = …, := */
        k++;
    for (; k < c->n_units && c->unit[2 * k] == st->opcode.EXTENDED_ARG; k++)
        argument = (argument | c->unit[2 * k + 1]) << 8;
    if (k >= c->n_units)
        return false;
    const int op = c->unit[2 * k];
    argument |= c->unit[2 * k + 1];
    if (op == st->opcode.STORE_FAST_LOAD_FAST || op == st->opcode.STORE_FAST_STORE_FAST)
        *name = local_name(st, c, argument >> 4);
    else if (op == st->opcode.STORE_FAST)
        *name = local_name(st, c, argument);
    else if (op == st->opcode.STORE_NAME || op == st->opcode.STORE_GLOBAL)
        *name = global_name(st, c, argument);
    else if (op == st->opcode.STORE_DEREF)
        *name = cell_name(st, c, argument);
    return op == st->opcode.RETURN_VALUE;
}

const char *place_target(struct state *st, struct session *s)
{
    const char *name = NULL;
    if (s->unit == UINT32_MAX || !target_after(st, &s->codes.at[s->code], s->unit, &name))
        return name;
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    for (bool returned = true; returned && frame;) {
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
        if (!frame || frame == s->caller)
            break;
        PyCodeObject *code = PyFrame_GetCode(frame);
        const int found = code_find(st, s, (PyObject *)code), at = compat_lasti(frame);
        Py_DECREF(code);
        if (found < 0)
            PyErr_Clear();
        if (found < 0 || at < 0)
            break;
        returned = target_after(st, &s->codes.at[s->codes.last], (uint32_t)at / 2, &name);
    }
    Py_XDECREF(frame);
    return name;
}
