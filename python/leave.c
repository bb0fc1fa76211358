/* leave.c - was a with block left by Python's return, break or continue?
 *
 * These run while tracing, whatever the kernel's condition, so they would silently drop what follows for every thread.
 * __exit__ is called the same way for them as at the block's end, but the code goes on elsewhere. Where it goes at the
 * block's end can be read from the code that runs when __exit__ suppresses an exception: it continues after the block too.
 * So the two are compared, as far as they differ in what they do: `return` as the last thing a function would do anyway
 * is no harm.
 */
#include "state.h"

/* Instructions are two bytes, opcode and argument; caches have the opcode 0. */
struct code {
    const struct state *st;
    const unsigned char *at;
    int n;
};

struct instruction {
    int opcode, arg, next; /* next: the offset after it and its caches; opcode -1: there is none */
};

static struct instruction instruction_at(const struct code *c, int offset)
{
    struct instruction i = {-1, 0, offset};
    for (; offset >= 0 && offset + 1 < c->n; offset += 2) {
        i.arg = (i.arg << 8 | c->at[offset + 1]) & 0xffffff;
        if (c->at[offset] == c->st->opcode.EXTENDED_ARG)
            continue;
        i.opcode = c->at[offset];
        offset += 2;
        break;
    }
    while (offset + 1 < c->n && c->at[offset] == 0)
        offset += 2;
    i.next = offset;
    return i;
}

/* The offset that is executed from here on, through jumps. */
static int destination(const struct code *c, int offset)
{
    for (int steps = 0; steps < 64; steps++) {
        const struct instruction i = instruction_at(c, offset);
        if (i.opcode < 0)
            break;
        if (i.opcode == c->st->opcode.NOP)
            offset = i.next;
        else if (i.opcode == c->st->opcode.JUMP_FORWARD)
            offset = i.next + 2 * i.arg;
        else if (i.opcode == c->st->opcode.JUMP_BACKWARD)
            offset = i.next - 2 * i.arg;
        else
            break;
    }
    return offset;
}

static bool ends(const struct state *st, int opcode)
{
    return opcode == st->opcode.RETURN_VALUE || opcode == st->opcode.RETURN_CONST;
}

/* Whether both do the same: they meet, or are two copies of a short way out of the function. */
static bool same_way(const struct code *c, int a, int b)
{
    for (int steps = 0; steps < 64; steps++) {
        a = destination(c, a);
        b = destination(c, b);
        if (a == b)
            return true;
        const struct instruction x = instruction_at(c, a), y = instruction_at(c, b);
        if (x.opcode != y.opcode || x.arg != y.arg || x.opcode < 0)
            return false;
        if (ends(c->st, x.opcode))
            return true;
        a = x.next;
        b = y.next;
    }
    return true;
}

static int read_number(const unsigned char **p, const unsigned char *end)
{
    int x = 0;
    while (*p < end) {
        const unsigned char byte = *(*p)++;
        x = (x << 6 | (byte & 63)) & 0xffffff;
        if (!(byte & 64))
            break;
    }
    return x;
}

/* Where an exception at the offset goes; -1: out of the function. */
static int handler_of(const unsigned char *p, const unsigned char *end, int offset)
{
    while (p < end) {
        const int start = 2 * read_number(&p, end), size = 2 * read_number(&p, end), target = 2 * read_number(&p, end);
        (void)read_number(&p, end); /* depth of the stack */
        if (offset >= start && offset < start + size)
            return target;
    }
    return -1;
}

/* Where the code goes on when the __exit__ of the handler suppresses the exception; -1: unknown. */
static int suppressed(const struct code *c, int handler)
{
    for (int steps = 0; steps < 8 && handler >= 0; steps++) {
        const struct instruction i = instruction_at(c, handler);
        handler = i.opcode < 0 ? -1 : i.next;
        if (i.opcode != c->st->opcode.POP_JUMP_FORWARD_IF_TRUE && i.opcode != c->st->opcode.POP_JUMP_IF_TRUE)
            continue;
        struct instruction pop = instruction_at(c, i.next + 2 * i.arg);
        for (int k = 0; k < 4; k++) { /* the truth, the exception, __exit__'s result and __exit__ */
            if (pop.opcode != (k == 1 ? c->st->opcode.POP_EXCEPT : c->st->opcode.POP_TOP))
                return -1;
            if (k < 3)
                pop = instruction_at(c, pop.next);
        }
        return pop.next;
    }
    return -1;
}

static bool leaves(const struct code *c, const unsigned char *table, Py_ssize_t size, int enter, int exit)
{
    if (enter < 0 || enter + 1 >= c->n || c->at[enter] != c->st->opcode.BEFORE_WITH)
        return false;
    const int normal = suppressed(c, handler_of(table, table + size, enter + 2));
    const struct instruction call = instruction_at(c, exit), pop = instruction_at(c, call.next);
    if (normal < 0 || call.opcode != c->st->opcode.CALL)
        return false;
    /* A value to return lies on the stack above __exit__, and no end of a block is followed by that swap. */
    return pop.opcode != c->st->opcode.POP_TOP || !same_way(c, pop.next, normal);
}

bool caller_leaves_block(struct state *st, int enter)
{
    PyFrameObject *frame = PyEval_GetFrame();
    if (!frame || enter < 0 || st->opcode.BEFORE_WITH < 0)
        return false;
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    PyObject *bytes = PyObject_GetAttr(code, st->str.co_code);
    PyObject *table = bytes ? PyObject_GetAttr(code, st->str.co_exceptiontable) : NULL;
    bool left = false;
    if (table && PyBytes_Check(bytes) && PyBytes_Check(table)) {
        const struct code c = {st, (const unsigned char *)PyBytes_AS_STRING(bytes), (int)PyBytes_GET_SIZE(bytes)};
        left = leaves(&c, (const unsigned char *)PyBytes_AS_STRING(table), PyBytes_GET_SIZE(table), enter,
                      compat_lasti(frame));
    }
    PyErr_Clear();
    Py_XDECREF(table);
    Py_XDECREF(bytes);
    Py_DECREF(code);
    return left;
}
