/* leave.c - was a with block left by Python's return, break or continue?
 *
 * These run while tracing, whatever the kernel's condition, so they would silently drop what follows for every thread.
 * __exit__ is called the same way for them as at the block's end, but the code goes on elsewhere. Where it goes at the
 * block's end can be read from the code that runs when __exit__ suppresses an exception: it continues after the block
 * too. So the two are compared.
 * Where both do the same, as for a `return` that nothing follows, the compiler may still have left a NOP with the place of
 * the statement; then the source is asked. What leaves no trace at all, `with sk.if_(c): return` as the last line, is
 * harmless except in a loop of the kernel, and there the source is asked too.
 */
#include "bytecode.h"

/* The unit that is executed from here on, through jumps. */
static uint32_t destination(const struct state *st, const struct code_info *c, uint32_t unit)
{
    for (int steps = 0; steps < 64; steps++) {
        const struct instruction i = instruction_at(st, c, unit);
        if (i.opcode == st->opcode.NOP)
            unit = i.next;
        else if (i.opcode >= 0 && (i.flags & OP_ALWAYS) && i.target != NO_UNIT)
            unit = i.target;
        else
            break;
    }
    return unit;
}

/* Whether both do the same: they meet, or are two copies of a short way out of the function. */
static bool same_way(const struct state *st, const struct code_info *c, uint32_t a, uint32_t b)
{
    for (int steps = 0; steps < 4096; steps++) {
        a = destination(st, c, a);
        b = destination(st, c, b);
        if (a == b)
            return true;
        const struct instruction x = instruction_at(st, c, a), y = instruction_at(st, c, b);
        if (x.opcode != y.opcode || (x.arg != y.arg && x.target == NO_UNIT) || x.opcode < 0)
            return false;
        if (x.flags & OP_ENDS)
            return true;
        a = x.next;
        b = y.next;
    }
    return true;
}

/* Whether a with statement calls __enter__ at the unit. */
static bool is_enter(const struct state *st, const struct code_info *c, uint32_t unit)
{
    const int opcode = c->unit[2 * unit];
    if (st->opcode.BEFORE_WITH >= 0)
        return opcode == st->opcode.BEFORE_WITH;
    if (st->opcode.LOAD_SPECIAL >= 0) /* since 3.14 it is loaded and called */
        return opcode == st->opcode.CALL && unit > 0 && c->unit[2 * (unit - 1)] == st->opcode.LOAD_SPECIAL;
    return opcode == st->opcode.SETUP_WITH;
}

uint32_t after_with(const struct state *st, const struct code_info *c, uint32_t enter)
{
    if (!c->flow || enter >= c->n_units || !is_enter(st, c, enter))
        return NO_UNIT;
    const uint32_t handler = handler_of(st, c, instruction_at(st, c, enter).next);
    bool cleanup = false;
    struct instruction i = instruction_at(st, c, handler);
    for (int steps = 0; steps < 8 && i.opcode >= 0 && i.target == NO_UNIT; steps++) {
        cleanup |= (i.flags & OP_CLEANUP) != 0;
        i = instruction_at(st, c, i.next);
    }
    if (!cleanup || i.opcode < 0 || i.target == NO_UNIT)
        return NO_UNIT;
    /* The truth (before 3.11: the exception too), the exception, then __exit__'s result and __exit__. */
    int pops = PY_VERSION_HEX < 0x030B0000 ? 1 : st->opcode.BEFORE_WITH >= 0 ? 2 : 3;
    for (i = instruction_at(st, c, i.target); i.opcode == st->opcode.POP_TOP; i = instruction_at(st, c, i.next))
        ;
    if (i.opcode != st->opcode.POP_EXCEPT)
        return NO_UNIT;
    for (; pops > 0 && i.opcode >= 0; pops--) {
        i = instruction_at(st, c, i.next);
        if (i.opcode != st->opcode.POP_TOP)
            return NO_UNIT;
    }
    return i.next;
}

/* ---- the statement ----------------------------------------------------------------------------------------------- */

static uint32_t line_of(const struct code_info *c, uint32_t unit)
{
    return c->line ? c->line[unit] : (uint32_t)PyCode_Addr2Line((PyCodeObject *)c->code, (int)unit * 2);
}

/* What leaves a block in Python, and what does it in a kernel. */
static const struct way {
    const char *python, *spork;
} ways[] = {{"return", "sk.return_()"}, {"break", "sk.break_()"}, {"continue", "sk.continue_()"}};
static const struct way unknown_way = {"return, break or continue", "sk.return_(), sk.break_() or sk.continue_()"};

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The statement on a line of source. Null: the line has none; without the source, `otherwise`. */
static const struct way *way_of_line(const char *file, uint32_t line, const struct way *otherwise)
{
    PyObject *module = PyImport_ImportModule("linecache");
    PyObject *source = module ? PyObject_CallMethod(module, "getline", "sI", file, (unsigned)line) : NULL;
    const char *text = source && PyUnicode_Check(source) ? PyUnicode_AsUTF8(source) : NULL;
    const struct way *found = text && *text ? NULL : otherwise;
    for (const char *at = text ? text : ""; *at && *at != '#' && !found; at++)
        for (unsigned k = 0; k < 3 && (at == text || !is_word(at[-1])); k++) {
            const size_t n = strlen(ways[k].python);
            if (strncmp(at, ways[k].python, n) == 0 && !is_word(at[n]))
                found = &ways[k];
        }
    Py_XDECREF(source);
    Py_XDECREF(module);
    PyErr_Clear();
    return found;
}

/* Where the code that calls __exit__ begins: before its three arguments, and what sets a value to return aside. */
static uint32_t exit_begin(const struct state *st, const struct code_info *c, uint32_t call)
{
    uint32_t u = call;
    for (int left = 3; u > 0 && left > 0; u--) {
        const int opcode = c->unit[2 * (u - 1)];
        left -= opcode == st->opcode.LOAD_CONST || opcode == st->opcode.DUP_TOP;
    }
    while (u > 0 && c->unit[2 * (u - 1)] == st->opcode.EXTENDED_ARG)
        u--;
    while (u > 0 && (c->unit[2 * (u - 1)] == st->opcode.SWAP || c->unit[2 * (u - 1)] == st->opcode.ROT_TWO))
        u--;
    return u;
}

int check_left(struct state *st, struct session *s, uint32_t enter, const char *what)
{
    struct code_info *c = &s->codes.at[s->code];
    if (s->unit == NO_UNIT || enter == NO_UNIT || !code_flow_get(st, c))
        return PyErr_Occurred() ? -1 : 0;
    const uint32_t after = after_with(st, c, enter);
    struct instruction call = instruction_at(st, c, instruction_begin(st, c, s->unit));
    if (call.opcode == st->opcode.PRECALL) /* once specialised, it does the work of its call */
        call = instruction_at(st, c, call.next);
    if (after == NO_UNIT || !(call.flags & OP_CALLS))
        return 0;
    const struct instruction pop = instruction_at(st, c, call.next);
    /* A value to return lies on the stack above __exit__, and no end of a block is followed by that swap. */
    const bool left = pop.opcode != st->opcode.POP_TOP || !same_way(st, c, pop.next, after);
    uint32_t at = exit_begin(st, c, s->unit);
    const uint32_t with_line = line_of(c, enter);
    bool marked = at > 0 && c->unit[2 * (at - 1)] == st->opcode.NOP;
    if (at > 0 && c->unit[2 * (at - 1)] == st->opcode.POP_BLOCK && at > 1) { /* before 3.11 it may have the place */
        at--;
        if (line_of(c, at) == with_line)
            at--;
        marked = c->unit[2 * at] == st->opcode.NOP || line_of(c, at) != line_of(c, at - 1);
    } else if (at > 0) {
        at--;
    }
    const uint32_t line = line_of(c, at);
    if (!left && !marked && !(s->n_loops && line == with_line))
        return 0;
    PyObject *file = PyObject_GetAttr(c->code, st->str.co_filename);
    const char *path = file ? PyUnicode_AsUTF8(file) : NULL;
    const struct way *way = path ? way_of_line(path, line, left ? &unknown_way : NULL) : NULL;
    if (left && !way)
        way = &unknown_way;
    if (way)
        RAISE_AT(st, ((struct err_place){path, line, 0}), BLOCK_LEFT, what, way->python, way->spork);
    Py_XDECREF(file);
    return PyErr_Occurred() ? -1 : 0;
}
