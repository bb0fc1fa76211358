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
    struct instruction i = {-1, 0, 0, unit, NO_UNIT};
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
            i.target = NO_UNIT;
    }
    return i;
}

uint32_t instruction_begin(const struct state *st, const struct code_info *c, uint32_t unit)
{
    while (unit > 0 && c->unit[2 * (unit - 1)] == st->opcode.EXTENDED_ARG)
        unit--;
    return unit;
}

/* Cells are counted with the other variables since 3.11, before after them. */
static uint32_t variable(const struct code_flow *f, unsigned flags, uint32_t arg)
{
#if PY_VERSION_HEX < 0x030B0000
    return flags & OP_CELL ? f->n_locals + arg : arg;
#else
    (void)f;
    (void)flags;
    return arg;
#endif
}

/* ---- a code object ----------------------------------------------------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030B0000
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
    f->first_handler = NO_UNIT;
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
        const struct instruction push = instruction_at(st, c, r->handler);
        if (push.opcode == st->opcode.PUSH_EXC_INFO)
            f->catches |= !(instruction_at(st, c, push.next).flags & OP_CLEANUP);
        if (++f->n_regions > (uint32_t)PyBytes_GET_SIZE(table) / 4)
            break;
    }
    Py_DECREF(table);
    return f->region ? 0 : -1;
}
#else
static int read_regions(struct state *st, struct code_info *c, struct code_flow *f)
{
    (void)st;
    (void)c;
    f->first_handler = NO_UNIT;
    return 0;
}
#endif

static long code_number(PyObject *code, PyObject *name)
{
    PyObject *o = PyObject_GetAttr(code, name);
    const long x = o ? (PyTuple_Check(o) ? (long)PyTuple_GET_SIZE(o) : PyLong_AsLong(o)) : 0;
    Py_XDECREF(o);
    return x > 0 ? x : 0;
}

static void add_link(struct code_flow *f, uint32_t *chain, uint32_t unit)
{
    f->link[f->n_links++] = (struct code_link){unit, *chain};
    *chain = f->n_links;
}

static void add_store(struct code_flow *f, uint32_t unit, uint32_t v)
{
    f->store[f->n_stores++] = (struct code_store){unit, v};
    if (f->first_store[v] == NO_UNIT)
        f->first_store[v] = unit;
}

static void read_instruction(struct code_flow *f, uint32_t unit, const struct instruction *i)
{
    const uint32_t first = i->flags & (OP_THEN_LOAD | OP_THEN_STORE) ? i->arg >> 4 : variable(f, i->flags, i->arg);
    const uint32_t second = i->arg & 15;
    if ((i->flags & OP_LOADS) && first < f->n_variables)
        add_link(f, &f->reads[first], unit);
    if ((i->flags & OP_STORES) && first < f->n_variables)
        add_store(f, unit, first);
    if ((i->flags & OP_THEN_LOAD) && second < f->n_variables && !((i->flags & OP_STORES) && first == second))
        add_link(f, &f->reads[second], unit);
    if ((i->flags & OP_THEN_STORE) && second < f->n_variables)
        add_store(f, unit, second);
    if ((i->flags & OP_SAVES) && first < f->n_variables)
        f->saved[first] = 1;
    if ((i->flags & OP_CELL) && first < f->n_variables)
        f->shared[first] = 1;
    if (i->flags & OP_CALLS)
        add_link(f, &f->reads[f->n_variables], unit);
    if (i->target != NO_UNIT) {
        add_link(f, &f->jumps_to[i->target], unit);
        if (i->target <= unit)
            f->last_back = unit;
    }
}

static void read_instructions(struct state *st, struct code_info *c, struct code_flow *f)
{
    struct instruction i;
    uint32_t before = NO_UNIT;
    for (uint32_t u = 0; (i = instruction_at(st, c, u)).opcode >= 0; u = i.next) {
        f->before[u] = before;
        before = i.flags & OP_ALWAYS ? NO_UNIT : u;
        read_instruction(f, u, &i);
    }
}

void code_flow_free(struct code_flow *f)
{
    if (!f)
        return;
    for (uint32_t v = 0; f->live && v < f->n_variables; v++)
        PyMem_Free(f->live[v]);
    PyMem_Free(f->region);
    PyMem_Free(f->store);
    PyMem_Free(f->link);
    PyMem_Free(f->reads);
    PyMem_Free(f->jumps_to);
    PyMem_Free(f->before);
    PyMem_Free(f->first_store);
    PyMem_Free(f->shared);
    PyMem_Free(f->saved);
    PyMem_Free(f->live);
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
    f->n_locals = (uint32_t)code_number(c->code, st->str.co_varnames);
    f->n_parameters =
        (uint32_t)(code_number(c->code, st->str.co_argcount) + code_number(c->code, st->str.co_kwonlyargcount));
    f->n_variables = f->n_locals + (uint32_t)code_number(c->code, st->str.co_cellvars) +
                     (uint32_t)code_number(c->code, st->str.co_freevars);
    const size_t units = c->n_units + 1u, variables = f->n_variables + 1u;
    f->store = PyMem_Calloc(2 * units, sizeof *f->store);
    f->link = PyMem_Calloc(2 * units, sizeof *f->link); /* an instruction reads two variables, or jumps */
    f->reads = PyMem_Calloc(variables, sizeof *f->reads);
    f->jumps_to = PyMem_Calloc(units, sizeof *f->jumps_to);
    f->before = PyMem_Calloc(units, sizeof *f->before);
    f->first_store = PyMem_Malloc(variables * sizeof *f->first_store);
    f->shared = PyMem_Calloc(variables, 1);
    f->saved = PyMem_Calloc(variables, 1);
    f->live = PyMem_Calloc(variables, sizeof *f->live);
    if (PyErr_Occurred() || !f->store || !f->link || !f->reads || !f->jumps_to || !f->before || !f->first_store ||
        !f->shared || !f->saved || !f->live || read_regions(st, c, f) < 0) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        code_flow_free(f);
        return NULL;
    }
    memset(f->first_store, 0xff, variables * sizeof *f->first_store);
    read_instructions(st, c, f);
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
    return low && unit < c->flow->region[low - 1].end ? c->flow->region[low - 1].handler : NO_UNIT;
#else
    const struct instruction i = instruction_at(st, c, instruction_begin(st, c, unit ? unit - 1 : 0));
    return i.flags & OP_HANDLER ? i.target : NO_UNIT;
#endif
}

/* ---- is a variable read later ------------------------------------------------------------------------------------ */

static bool writes(const struct state *st, const struct code_info *c, uint32_t unit, uint32_t v)
{
    const struct code_flow *f = c->flow;
    const struct instruction i = instruction_at(st, c, unit);
    if (!(i.flags & OP_STORES))
        return false;
    /* After a comprehension with a variable of this name, a swap and a store put its value back. */
    if (f->saved[v] && unit > 0 && c->unit[2 * (unit - 1)] == st->opcode.SWAP)
        return false;
    const bool pair = (i.flags & (OP_THEN_LOAD | OP_THEN_STORE)) != 0;
    return v == (pair ? i.arg >> 4 : variable(f, i.flags, i.arg)) || ((i.flags & OP_THEN_STORE) && v == (i.arg & 15));
}

/* The handler of a with statement: blocks suppress no exception, so it leads nowhere. */
static bool is_cleanup(const struct state *st, const struct code_info *c, uint32_t unit)
{
    struct instruction i = instruction_at(st, c, unit);
    if (i.opcode == st->opcode.PUSH_EXC_INFO)
        i = instruction_at(st, c, i.next);
    return (i.flags & OP_CLEANUP) != 0;
}

/* A search backward from the reads of a variable. A unit is pending once at most, when its bit is set. */
struct search {
    uint8_t *live;
    uint32_t *pending, n;
};

static void add_live(struct search *s, uint32_t unit)
{
    if (s->live[unit / 8] >> (unit % 8) & 1)
        return;
    s->live[unit / 8] = (uint8_t)(s->live[unit / 8] | 1u << (unit % 8));
    s->pending[s->n++] = unit;
}

static void add_before(const struct state *st, const struct code_info *c, uint32_t v, uint32_t unit, struct search *s)
{
    if (unit != NO_UNIT && !writes(st, c, unit, v))
        add_live(s, unit);
}

static void search_reads(const struct state *st, const struct code_info *c, uint32_t v, struct search *s)
{
    const struct code_flow *f = c->flow;
    for (uint32_t k = f->reads[v]; k; k = f->link[k - 1].next)
        add_live(s, f->link[k - 1].unit);
    for (uint32_t k = f->shared[v] ? f->reads[f->n_variables] : 0; k; k = f->link[k - 1].next)
        add_live(s, f->link[k - 1].unit); /* inner functions may read it */
    while (s->n) {
        const uint32_t u = s->pending[--s->n];
        add_before(st, c, v, f->before[u], s);
        if (f->jumps_to[u] && is_cleanup(st, c, u))
            continue;
        for (uint32_t k = f->jumps_to[u]; k; k = f->link[k - 1].next)
            add_before(st, c, v, f->link[k - 1].unit, s);
        for (uint32_t k = 0; f->catches && k < f->n_regions; k++)
            for (uint32_t in = f->region[k].start; f->region[k].handler == u && in < f->region[k].end; in++)
                if (c->unit[2 * in] != 0)
                    add_live(s, in);
    }
}

bool is_live(const struct state *st, const struct code_info *c, uint32_t v, uint32_t unit)
{
    struct code_flow *f = c->flow;
    if (unit >= c->n_units)
        return false;
    if (!f->live[v]) {
        struct search s = {.live = PyMem_Calloc(c->n_units / 8 + 1, 1),
                           .pending = PyMem_Malloc((c->n_units + 1) * sizeof *s.pending)};
        if (s.live && s.pending)
            search_reads(st, c, v, &s);
        PyMem_Free(s.pending);
        if (!s.live || !s.pending) {
            PyMem_Free(s.live);
            return true;
        }
        f->live[v] = s.live;
    }
    return f->live[v][unit / 8] >> (unit % 8) & 1;
}
