/* bytecode.c - decodes instructions, where control goes between them, and which variables are read later. */
#include "bytecode.h"

/* ---- from names to flags ----------------------------------------------------------------------------------------- */

/* BYTECODE(prefix of the name, flags): the first row that fits. The names are those of all versions since 3.9. */
#define BYTECODE_TABLE(BYTECODE)                                                                                       \
    BYTECODE("JUMP_IF", OP_JUMPS | OP_OLD_ABSOLUTE)                                                                    \
    BYTECODE("JUMP_FORWARD", OP_JUMPS | OP_ALWAYS)                                                                     \
    BYTECODE("JUMP_BACKWARD", OP_JUMPS | OP_ALWAYS | OP_BACKWARD)                                                      \
    BYTECODE("JUMP", OP_JUMPS | OP_ALWAYS | OP_OLD_ABSOLUTE)                                                           \
    BYTECODE("POP_JUMP_BACKWARD", OP_JUMPS | OP_BACKWARD)                                                              \
    BYTECODE("POP_JUMP", OP_JUMPS | OP_OLD_ABSOLUTE)                                                                   \
    BYTECODE("FOR_ITER", OP_JUMPS)                                                                                     \
    BYTECODE("SEND", OP_JUMPS)                                                                                         \
    BYTECODE("SETUP_", OP_JUMPS | OP_HANDLER)                                                                          \
    BYTECODE("RETURN_GENERATOR", 0)                                                                                    \
    BYTECODE("RETURN_", OP_ALWAYS | OP_ENDS | OP_RETURNS)                                                              \
    BYTECODE("RERAISE", OP_ALWAYS | OP_ENDS)                                                                           \
    BYTECODE("RAISE_VARARGS", OP_ALWAYS | OP_ENDS)                                                                     \
    BYTECODE("LOAD_FAST_AND_CLEAR", OP_SAVES)                                                                          \
    BYTECODE("LOAD_FAST_LOAD_FAST", OP_LOADS | OP_THEN_LOAD)                                                           \
    BYTECODE("LOAD_FAST_BORROW_LOAD_FAST", OP_LOADS | OP_THEN_LOAD)                                                    \
    BYTECODE("LOAD_FAST", OP_LOADS)                                                                                    \
    BYTECODE("STORE_FAST_LOAD_FAST", OP_STORES | OP_THEN_LOAD)                                                         \
    BYTECODE("STORE_FAST_STORE_FAST", OP_STORES | OP_THEN_STORE)                                                       \
    BYTECODE("STORE_FAST", OP_STORES)                                                                                  \
    BYTECODE("DELETE_FAST", OP_STORES)                                                                                 \
    BYTECODE("LOAD_DEREF", OP_LOADS | OP_CELL)                                                                         \
    BYTECODE("LOAD_CLOSURE", OP_LOADS | OP_CELL)                                                                       \
    BYTECODE("STORE_DEREF", OP_STORES | OP_CELL)                                                                       \
    BYTECODE("DELETE_DEREF", OP_STORES | OP_CELL)                                                                      \
    BYTECODE("CALL", OP_CALLS)                                                                                         \
    BYTECODE("WITH_EXCEPT_START", OP_CLEANUP)
#if PY_VERSION_HEX < 0x030B0000
#define OP_OLD_ABSOLUTE OP_ABSOLUTE
#else
#define OP_OLD_ABSOLUTE 0u
#endif

static unsigned flags_of(const char *name)
{
    static const struct {
        const char *prefix;
        unsigned flags;
    } rows[] = {
#define BYTECODE(prefix, flags) {prefix, flags},
        BYTECODE_TABLE(BYTECODE)
#undef BYTECODE
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strncmp(name, rows[i].prefix, strlen(rows[i].prefix)) == 0)
            return rows[i].flags;
    return 0;
}

int bytecode_init(struct state *st, PyObject *opmap)
{
    PyObject *items = PyMapping_Items(opmap);
    for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items); i++) {
        PyObject *item = PyList_GET_ITEM(items, i);
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(item, 0));
        const long number = PyLong_AsLong(PyTuple_GET_ITEM(item, 1));
        if (name && number >= 0 && number < 256)
            st->op_flags[number] = (uint16_t)flags_of(name);
    }
    Py_XDECREF(items);
    return PyErr_Occurred() ? -1 : 0;
}

/* ---- one instruction --------------------------------------------------------------------------------------------- */

struct instruction instruction_at(const struct state *st, const struct code_info *c, uint32_t unit)
{
    struct instruction i = {-1, 0, 0, unit, UINT32_MAX};
    for (; unit < c->n_units; unit++) {
        i.arg = i.arg << 8 | c->unit[2 * unit + 1];
        if (c->unit[2 * unit] == st->opcode.EXTENDED_ARG)
            continue;
        i.opcode = c->unit[2 * unit++];
        break;
    }
    i.next = unit;
    if (i.opcode < 0)
        return i;
#if PY_VERSION_HEX >= 0x030B0000
    while (i.next < c->n_units && c->unit[2 * i.next] == 0) /* caches */
        i.next++;
#endif
    i.flags = st->op_flags[i.opcode];
    if (i.flags & OP_JUMPS) {
        const uint32_t by = PY_VERSION_HEX < 0x030A0000 ? i.arg / 2 : i.arg;
        i.target = i.flags & OP_ABSOLUTE ? by : i.flags & OP_BACKWARD ? i.next - by : i.next + by;
        if (i.target >= c->n_units)
            i.target = UINT32_MAX;
    }
    return i;
}

/* Cells are counted with the other variables since 3.11, before after them. */
static uint32_t variable(const struct code_flow *f, unsigned flags, uint32_t arg)
{
#if PY_VERSION_HEX < 0x030B0000
    return flags & OP_CELL ? f->n_variables + arg : arg;
#else
    (void)f;
    (void)flags;
    return arg;
#endif
}

/* ---- a code object ----------------------------------------------------------------------------------------------- */

static uint32_t read_number(const unsigned char **p, const unsigned char *end)
{
    uint32_t x = 0;
    while (*p < end) {
        const unsigned char byte = *(*p)++;
        x = x << 6 | (byte & 63u);
        if (!(byte & 64))
            break;
    }
    return x;
}

static int read_regions(struct state *st, struct code_info *c, struct code_flow *f)
{
    f->first_handler = UINT32_MAX;
#if PY_VERSION_HEX >= 0x030B0000
    PyObject *table = PyObject_GetAttr(c->code, st->str.co_exceptiontable);
    if (!table || !PyBytes_Check(table)) {
        Py_XDECREF(table);
        return -1;
    }
    const unsigned char *p = (const unsigned char *)PyBytes_AS_STRING(table), *end = p + PyBytes_GET_SIZE(table);
    f->region = PyMem_Calloc((size_t)PyBytes_GET_SIZE(table) / 4 + 1, sizeof *f->region);
    while (f->region && p < end) {
        struct code_region *r = &f->region[f->n_regions];
        r->start = read_number(&p, end);
        r->end = r->start + read_number(&p, end);
        r->handler = read_number(&p, end);
        (void)read_number(&p, end); /* the stack's depth */
        f->first_handler = r->handler < f->first_handler ? r->handler : f->first_handler;
        if (++f->n_regions > (uint32_t)PyBytes_GET_SIZE(table) / 4)
            break;
    }
    Py_DECREF(table);
    return f->region ? 0 : -1;
#else
    (void)st;
    (void)c;
    return 0;
#endif
}

static long code_number(PyObject *code, PyObject *name)
{
    PyObject *o = PyObject_GetAttr(code, name);
    const long x = o ? (PyTuple_Check(o) ? (long)PyTuple_GET_SIZE(o) : PyLong_AsLong(o)) : 0;
    Py_XDECREF(o);
    return x > 0 ? x : 0;
}

static void add_store(struct code_flow *f, uint32_t unit, uint32_t v)
{
    f->store[f->n_stores++] = (struct code_store){unit, v};
    if (f->first_store[v] == UINT32_MAX)
        f->first_store[v] = unit;
}

static void read_instructions(struct state *st, struct code_info *c, struct code_flow *f, uint32_t n_all)
{
    struct instruction i;
    for (uint32_t u = 0; (i = instruction_at(st, c, u)).opcode >= 0; u = i.next) {
        const bool pair = (i.flags & (OP_THEN_LOAD | OP_THEN_STORE)) != 0;
        const uint32_t v = pair ? i.arg >> 4 : variable(f, i.flags, i.arg), w = i.arg & 15;
        if ((i.flags & OP_LOADS) && v < n_all)
            f->last_load[v] = u;
        if ((i.flags & OP_STORES) && v < n_all)
            add_store(f, u, v);
        if ((i.flags & OP_THEN_LOAD) && w < n_all)
            f->last_load[w] = u;
        if ((i.flags & OP_THEN_STORE) && w < n_all)
            add_store(f, u, w);
        if ((i.flags & OP_SAVES) && v < n_all)
            f->kept[v] = 1;
        if (i.target != UINT32_MAX && i.target <= u)
            f->last_back = u;
        if ((i.flags & OP_CELL) && v < n_all) /* read by inner functions, whenever these are called */
            f->last_load[v] = c->n_units;
    }
}

void code_flow_free(struct code_flow *f)
{
    if (!f)
        return;
    PyMem_Free(f->region);
    PyMem_Free(f->store);
    PyMem_Free(f->first_store);
    PyMem_Free(f->last_load);
    PyMem_Free(f->kept);
    PyMem_Free(f->visited);
    PyMem_Free(f);
}

struct code_flow *code_flow_get(struct state *st, struct code_info *c)
{
    if (c->flow)
        return c->flow;
    struct code_flow *f = PyMem_Calloc(1, sizeof *f);
    if (!f) {
        PyErr_NoMemory();
        return NULL;
    }
    f->n_variables = (uint32_t)code_number(c->code, st->str.co_varnames);
    f->n_parameters = (uint32_t)(code_number(c->code, st->str.co_argcount) +
                                 code_number(c->code, st->str.co_kwonlyargcount));
    const uint32_t n_all = f->n_variables + (uint32_t)code_number(c->code, st->str.co_cellvars) +
                           (uint32_t)code_number(c->code, st->str.co_freevars);
    f->store = PyMem_Calloc(2 * (size_t)c->n_units + 1, sizeof *f->store);
    f->first_store = PyMem_Malloc((n_all + 1) * sizeof *f->first_store);
    f->last_load = PyMem_Calloc(n_all + 1, sizeof *f->last_load);
    f->kept = PyMem_Calloc(n_all + 1, 1);
    f->visited = PyMem_Calloc(c->n_units + 1, sizeof *f->visited);
    if (PyErr_Occurred() || !f->store || !f->first_store || !f->last_load || !f->kept || !f->visited ||
        read_regions(st, c, f) < 0) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        code_flow_free(f);
        return NULL;
    }
    memset(f->first_store, 0xff, (n_all + 1) * sizeof *f->first_store);
    read_instructions(st, c, f, n_all);
    return c->flow = f;
}

uint32_t handler_of(const struct state *st, const struct code_info *c, uint32_t unit)
{
#if PY_VERSION_HEX >= 0x030B0000
    (void)st;
    uint32_t low = 0, high = c->flow->n_regions;
    while (low < high) { /* the last region that begins at `unit` or before */
        const uint32_t middle = low + (high - low) / 2;
        if (c->flow->region[middle].start <= unit)
            low = middle + 1;
        else
            high = middle;
    }
    return low && unit < c->flow->region[low - 1].end ? c->flow->region[low - 1].handler : UINT32_MAX;
#else
    const struct instruction i = instruction_at(st, c, unit ? unit - 1 : 0);
    return i.flags & OP_HANDLER ? i.target : UINT32_MAX;
#endif
}

/* ---- is a variable read later ------------------------------------------------------------------------------------ */

enum effect { PASSES, READS, WRITES };

static enum effect effect_on(const struct state *st, const struct code_info *c, const struct instruction *i,
                             uint32_t unit, uint32_t v)
{
    const struct code_flow *f = c->flow;
    if ((i->flags & OP_CALLS) && f->last_load[v] == c->n_units)
        return READS; /* by an inner function, perhaps */
    if (!(i->flags & (OP_LOADS | OP_STORES)))
        return PASSES;
    const bool pair = (i->flags & (OP_THEN_LOAD | OP_THEN_STORE)) != 0;
    const uint32_t first = pair ? i->arg >> 4 : variable(f, i->flags, i->arg), second = i->arg & 15;
    /* After a comprehension with a variable of this name, a swap and a store put its value back. */
    const bool restores = f->kept[v] && unit > 0 && c->unit[2 * (unit - 1)] == st->opcode.SWAP;
    if (first == v && (i->flags & OP_LOADS))
        return READS;
    if (first == v && !restores)
        return WRITES;
    if (pair && second == v && (i->flags & OP_THEN_LOAD))
        return READS;
    return pair && second == v && !restores ? WRITES : PASSES;
}

bool is_live(const struct state *st, const struct code_info *c, uint32_t v, uint32_t unit)
{
    enum { MAX_PENDING = 256 };
    struct code_flow *f = c->flow;
    uint32_t pending[MAX_PENDING], n = 0;
    f->search++;
    pending[n++] = unit;
    while (n) {
        uint32_t u = pending[--n];
        while (u < c->n_units && f->visited[u] != f->search && !(u > f->last_load[v] && u > f->last_back)) {
            f->visited[u] = f->search;
            const struct instruction i = instruction_at(st, c, u);
            const enum effect effect = i.opcode < 0 ? WRITES : effect_on(st, c, &i, u, v);
            if (effect == READS)
                return true;
            if (effect == WRITES)
                break;
            /* The handlers of with statements are left out: blocks suppress no exception. */
            const bool to_handler = (i.flags & OP_HANDLER) != 0;
            if (i.target != UINT32_MAX && !(to_handler && (instruction_at(st, c, i.target).flags & OP_CLEANUP))) {
                if (n == MAX_PENDING)
                    return true;
                pending[n++] = i.target;
            }
            if (i.flags & OP_ALWAYS)
                break;
            u = i.next;
        }
    }
    return false;
}
