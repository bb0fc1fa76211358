/* state.h - what the files of the extension module `spork._core` share.
 *
 * The extension is a face: it turns Python objects into operands (struct tv), calls the tracer, and turns what comes
 * back into Python objects. What the language means is in src/trace, what a launch checks beyond its arguments in
 * src/device.
 *
 * Rules for changing it:
 *  1. no `static PyObject *`: everything that lives as long as the module is in `struct state`;
 *  2. no Python code runs inside TRACE(): its recovery point must not be jumped to over Python's frames;
 *  3. a function that returns a PyObject * or -1 on failure has set a Python exception then.
 */
#ifndef SK_PY_STATE_H
#define SK_PY_STATE_H

#include "compat.h"

#include "trace/trace.h"

/* ---- the module's state ------------------------------------------------------------------------------------------ */

/* The heap types: TYPE(field, spec). The specs are in the file that the comment names. */
#define TYPE_TABLE(TYPE)                                                                                               \
    TYPE(dtype, dtype_spec) /* dtype.c */                                                                              \
    TYPE(value, value_spec) /* value.c */                                                                              \
    TYPE(local, local_spec)                                                                                            \
    TYPE(pointer, pointer_spec) /* pointer.c */                                                                        \
    TYPE(array, array_spec)                                                                                            \
    TYPE(attribute, attribute_spec) /* annotation.c */                                                                 \
    TYPE(device_pointer, device_pointer_spec)                                                                          \
    TYPE(constant_pointer, constant_pointer_spec)                                                                      \
    TYPE(threadgroup_pointer, threadgroup_pointer_spec)                                                                \
    TYPE(scalar_param, scalar_param_spec)                                                                              \
    TYPE(range, range_spec) /* control.c */                                                                            \
    TYPE(range_iterator, range_iterator_spec)                                                                          \
    TYPE(block, block_spec)                                                                                            \
    TYPE(device_fn, device_fn_spec) /* devicefn.c */                                                                   \
    TYPE(kernel, kernel_spec)       /* kernel.c */                                                                     \
    TYPE(bound, bound_spec)         /* bound.c */                                                                      \
    TYPE(device, device_spec)       /* device.c */                                                                     \
    TYPE(buffer, buffer_spec)

#define TYPE(field, spec) extern PyType_Spec spec;
TYPE_TABLE(TYPE)
#undef TYPE

/* clang-format off */
/* Strings that are looked up often. */
#define NAME_TABLE(NAME)                                                                                               \
    NAME(__annotations__) NAME(__closure__) NAME(__defaults__) NAME(__dlpack__) NAME(__dlpack_device__)                \
    NAME(__globals__) NAME(__name__) NAME(__qualname__) NAME(cell_contents) NAME(co_argcount) NAME(co_cellvars)        \
    NAME(co_code) NAME(co_consts) NAME(co_exceptiontable) NAME(co_filename) NAME(co_firstlineno) NAME(co_flags) NAME(co_freevars) NAME(co_kwonlyargcount)      \
    NAME(co_lines) NAME(co_name) NAME(co_names) NAME(co_positions) NAME(co_varnames) NAME(dtype) NAME(f_locals) NAME(itemsize)       \
    NAME(kind) NAME(metal_attr) NAME(name) NAME(ndim) NAME(numpy) NAME(uint16) NAME(view) NAME(file) NAME(line)        \
    NAME(column)

/* Instructions whose numbers are needed, from the module `opcode`; -1 where this Python has none. */
#define OPCODE_TABLE(OPCODE)                                                                                           \
    OPCODE(EXTENDED_ARG) OPCODE(GET_ITER) OPCODE(STORE_DEREF) OPCODE(STORE_FAST) OPCODE(STORE_GLOBAL)                  \
    OPCODE(STORE_NAME) OPCODE(STORE_FAST_LOAD_FAST) OPCODE(STORE_FAST_STORE_FAST) OPCODE(RETURN_VALUE)                 \
    OPCODE(COPY) OPCODE(DUP_TOP) OPCODE(NOP) OPCODE(PRECALL) OPCODE(CALL) OPCODE(POP_TOP) OPCODE(POP_EXCEPT)           \
    OPCODE(POP_BLOCK) OPCODE(BEFORE_WITH) OPCODE(SETUP_WITH) OPCODE(LOAD_SPECIAL) OPCODE(LOAD_CONST) OPCODE(SWAP)      \
    OPCODE(ROT_TWO) OPCODE(PUSH_EXC_INFO) OPCODE(FOR_ITER)
/* clang-format on */

#define DTYPE_COUNT (S_COUNT + (S_COUNT - 1) * 3)

struct session;
struct waiter;
struct launch_helper;
struct code_flow;
struct rebind;

struct state {
#define TYPE(field, spec) PyTypeObject *field;
    struct {
        TYPE_TABLE(TYPE)
    } type;
#undef TYPE
#define NAME(n) PyObject *n;
    struct {
        NAME_TABLE(NAME)
    } str;
#undef NAME
#define OPCODE(n) int n;
    struct {
        OPCODE_TABLE(OPCODE)
    } opcode;
#undef OPCODE
    PyObject *exceptions[SK_ERR_IO + 1]; /* [SK_OK]: SporkError, the root */
    PyObject *attribute_error;           /* a SporkError that is an AttributeError too */
    PyObject *dtypes[2][DTYPE_COUNT];    /* [atomic][ir_type]; null where there is none */
    PyObject *markers[ATTR_COUNT];       /* the marker classes; [ATTR_NONE] null */
    PyObject *package;                   /* folder of the package with a final '/', to tell its code from the user's */
    PyMethodDef *methods;                /* of table-made functions; it, their names and docs lie in `text` */
    uint16_t op_flags[256];              /* of Python's instructions: enum op_flags */
    const char *op_name[OP_COUNT];       /* Python's name of collectives, barriers and atomics */
    struct mem mem;
    struct arena text;
    struct session *sessions; /* kernels being traced, newest first */
    struct waiter *waiters;   /* threads that wait for a kernel (kernel.c) */
    uint64_t last_session;
    unsigned long main_thread;
    sk_context *context;          /* made at first use */
    sk_device *default_device;    /* owned by the context */
    bool warned;                  /* of the missing cpu device */
    struct launch_helper *helper; /* of the main thread; null until needed (launch.c) */
    uint32_t away;                /* calls of the library under way without the GIL: see AWAY */
};

static inline struct state *state_of_module(PyObject *module)
{
    return (struct state *)PyModule_GetState(module);
}
static inline struct state *state_of_type(PyTypeObject *type)
{
    return (struct state *)PyType_GetModuleState(type);
}
#define STATE_OF(o) state_of_type(Py_TYPE(o))

/* ---- errors.c ---------------------------------------------------------------------------------------------------- */

int errors_init(struct state *st, PyObject *module);
/* Sets the exception that `err` means and empties `err`. Returns null. */
PyObject *raise_error(struct state *st, sk_error *err) SK_COLD;
PyObject *raise_as(struct state *st, PyObject *type, sk_error *err) SK_COLD; /* as an exception of this class */
/* A row of errors.def, at the first calling frame outside the package. RAISE returns null, RAISE_INT -1. */
#define RAISE_AT(st, place, id, ...)                                                                                   \
    __extension__({                                                                                                    \
        sk_error raise_err_;                                                                                           \
        memset(&raise_err_, 0, sizeof raise_err_);                                                                     \
        (void)ERR_AT(&raise_err_, (place), id __VA_OPT__(, ) __VA_ARGS__);                                             \
        raise_error((st), &raise_err_);                                                                                \
    })
#define RAISE(st, id, ...) RAISE_AT((st), caller_place(st), id __VA_OPT__(, ) __VA_ARGS__)
#define RAISE_INT(st, id, ...) ((void)RAISE((st), id __VA_OPT__(, ) __VA_ARGS__), -1)
/* A row as the AttributeError that hasattr expects. */
#define RAISE_ATTRIBUTE(st, id, ...)                                                                                   \
    __extension__({                                                                                                    \
        sk_error raise_err_;                                                                                           \
        memset(&raise_err_, 0, sizeof raise_err_);                                                                     \
        (void)ERR_AT(&raise_err_, caller_place(st), id __VA_OPT__(, ) __VA_ARGS__);                                    \
        raise_as((st), (st)->attribute_error, &raise_err_);                                                            \
    })
/* The short name of an object's type for messages; belongs to the type. */
const char *type_name(PyObject *o);

/* ---- place.c: whose line is it ----------------------------------------------------------------------------------- */

/* What a trace knows of one code object: the source line of each instruction, decoded once. */
struct code_info {
    PyObject *code, *bytes;
    PyObject *varnames;        /* null until needed: CPython makes the tuple anew at each access */
    const unsigned char *unit; /* two bytes an instruction */
    uint32_t n_units, file;
    uint32_t *line;         /* of each unit; null: ask Python each time */
    struct code_flow *flow; /* null until a block begins */
    bool internal;          /* code of the package */
};
struct code_table {
    struct code_info *at;
    uint32_t n, cap;
    uint32_t last; /* index of the one found last */
};
int place_init(struct state *st);
void code_table_free(struct code_table *t);
/* Points the tracer at the first calling frame outside the package. -1: a Python exception is set. */
int place_session(struct state *st, struct session *s);
/* The variable that the calling instruction's result is stored in, by itself or by returning it to Python code that
 * stores it; null if it is none. Belongs to the code object. */
const char *place_target(struct state *st, struct session *s);
/* The name of a variable as instructions count them (bytecode.h); null if unknown. Belongs to the code object. */
const char *place_variable(struct state *st, struct code_info *c, uint32_t variable);
/* The same place without a session. `file` lives as long as the frame. */
struct err_place caller_place(struct state *st);
/* Whether the caller executes this instruction now; true where that cannot be known. */
bool caller_executes(struct state *st, int opcode);
/* From 1; 0 unknown. Of the calling frame, if it is at this line. */
uint32_t caller_column(struct state *st, const char *file, uint32_t line);

/* ---- bytecode.c, leave.c, rebind.c: what Python's code does around a block ---------------------------------------- */

int bytecode_init(struct state *st, PyObject *opmap);
void code_flow_free(struct code_flow *f); /* null allowed */
/* At a call of __exit__ without an exception: an error if it is due to Python's return, break or continue in the with
 * block of `what` whose __enter__ was called at the unit `enter`. */
int check_left(struct state *st, struct session *s, uint32_t enter, const char *what);
/* The names that a block could bind anew to be read later. Begins at the call of __enter__ or the loop's first
 * iteration, ends where the block has ended: an error if one was. */
struct watch {
    uint32_t code, enter, begin, end, n; /* enter: UINT32_MAX if the code is not understood */
    struct rebind *at;
};
int watch_begin(struct state *st, struct session *s, struct watch *w, bool loop);
int watch_end(struct state *st, struct session *s, struct watch *w, const char *what);
void watch_free(struct watch *w);

/* ---- session.c: a kernel being traced ---------------------------------------------------------------------------- */

struct device_fn_variant;

struct session {
    struct session *outer;
    unsigned long thread;
    uint64_t id; /* unique in the process; values carry it */
    struct trace *t;
    struct mem *mem;
    sk_error err;     /* of the operation at hand */
    sk_error pending; /* of something noticed where nothing could be raised; raised by the next operation */
    struct code_table codes;
    uint32_t code, unit;                /* the calling instruction: index into codes; unit UINT32_MAX: unknown */
    const PyFrameObject *caller;        /* the frame whose C call runs the Python code at hand; only compared */
    const PyObject *refused_index;      /* a value whose __index__ was refused last; only compared */
    uint32_t n_loops;                   /* open blocks of sk.while_ */
    struct device_fn_variant *variants; /* device functions traced so far */
};

/* Opens a session on this thread over `mem`. */
int session_open(struct state *st, struct session *s, struct mem *mem);
void session_close(struct state *st, struct session *s); /* frees the tracer too */
/* Calls Python code that traces. The session points at its last line afterwards. */
PyObject *session_call(struct state *st, struct session *s, PyObject *callable, PyObject *args /* a tuple, or null */);
struct session *session_find(struct state *st); /* this thread's, or null without an exception */
/* This thread's session, pointed at the caller's line, ready to trace `what`. Null: an exception is set. */
struct session *session_enter(struct state *st, const char *what);
int session_raise_pending(struct state *st, struct session *s);

/* Runs a tracer function with a recovery point; the value is its sk_status. */
#define TRACE(s, expr)                                                                                                 \
    __extension__({                                                                                                    \
        volatile sk_status trace_status_;                                                                              \
        MEM_GUARD((s)->mem, &(s)->err, trace_status_, (expr));                                                         \
        trace_status_;                                                                                                 \
    })

/* ---- value.c: traced values -------------------------------------------------------------------------------------- */

/* All four traced types have this layout. */
struct traced {
    PyObject_HEAD
    struct tv v;
    uint64_t session;
    PyObject *dtype; /* of an element for pointers and arrays, else null: see traced_dtype */
};
void traced_dealloc(PyObject *self);
static inline bool is_traced(PyObject *o)
{
    return Py_TYPE(o)->tp_dealloc == traced_dealloc;
}
static inline struct traced *traced_of(PyObject *o)
{
    return (struct traced *)o;
}
PyObject *traced_new(PyTypeObject *type, const struct session *s, struct tv v, PyObject *dtype);
/* The end of an operation: raises the session's error, or makes a value of `v`, named after the variable it is stored in. */
PyObject *traced_result(struct state *st, struct session *s, sk_status status, const struct tv *v);
/* The same for an operation without a result: None. */
PyObject *traced_none(struct state *st, struct session *s, sk_status status);
/* An operand from any Python object: traced, number, NumPy scalar. */
int operand(struct state *st, struct session *s, PyObject *o, struct tv *out);
/* A pointer or array; `what` names the function in the error. */
int pointer_operand(struct state *st, PyObject *o, const char *what, struct tv *out);
/* A Python or NumPy number as a weak operand. 1: it is none, without an exception; -1: an exception is set. */
int weak_number(struct state *st, PyObject *o, struct tv *out);
/* Operands from `o`: a tuple or list of at most `max`, or a single one. Returns their number, -1 on error. */
int operand_list(struct state *st, struct session *s, PyObject *o, unsigned max, struct tv *out);
#define MAX_INDICES 8

/* Python's arguments of a function with keywords. `names` end with a null; the first `required` must be there, the first
 * `positional` may come without a name. `out` receives borrowed references, null for what is absent. */
struct arg_spec {
    const char *function;
    unsigned required, positional;
    const char *names[8];
};
int take_args(struct state *st, const struct arg_spec *spec, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
              PyObject **out);

/* ---- dtype.c ----------------------------------------------------------------------------------------------------- */

struct dtype {
    PyObject_HEAD
    ir_type type;
    bool atomic;
    char name[24], metal[24];
    uint16_t nbytes;
};
static inline struct dtype *dtype_of(PyObject *o)
{
    return (struct dtype *)o;
}
int dtypes_init(struct state *st, PyObject *module);
PyObject *dtype_new_ref(struct state *st, ir_type type, bool atomic);
/* A dtype from a Dtype or NumPy's; null with an exception, "dtype of `what`", for anything else. Borrowed. */
PyObject *as_dtype(struct state *st, PyObject *o, const char *what);
PyObject *dtypes_from_numpy(PyObject *module, PyObject *o);
PyObject *dtypes_underlying(PyObject *module, PyObject *o);
PyObject *dtypes_missing(PyObject *module, PyObject *name);

/* ---- hints.c ----------------------------------------------------------------------------------------------------- */

PyObject *missing_name(PyObject *module, PyObject *name); /* sk.NAME that is none: an AttributeError */

/* ---- annotation.c, tables.c, functions.c, control.c, kernel.c: contents of the module ---------------------------- */

int annotations_init(struct state *st, PyObject *module);
int tables_init(struct state *st, PyObject *module);
extern PyMethodDef functions_methods[], control_methods[], device_methods[];
PyObject *jit(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);

/* ---- devicefn.c -------------------------------------------------------------------------------------------------- */

PyObject *device_fn_new(PyObject *module, PyObject *fn);
int own_module(PyObject *fn,
               PyObject **dict); /* a dict with __module__, for an object that stands for fn; -1: exception */
void device_fn_variants_free(struct session *s);

/* Runs a call of the library without the GIL. A thread that Python does not wait for may be in one when the interpreter ends,
 * and never comes back: then the context stays. */
#define AWAY(st, expr)                                                                                                 \
    do {                                                                                                               \
        (st)->away++;                                                                                                  \
        PyThreadState *const away_ = PyEval_SaveThread();                                                              \
        (void)(expr);                                                                                                  \
        PyEval_RestoreThread(away_);                                                                                   \
        (st)->away--;                                                                                                  \
    } while (0)

/* ---- launch.c ---------------------------------------------------------------------------------------------------- */

void launch_helper_free(struct launch_helper *h); /* null allowed */

/* ---- device.c ---------------------------------------------------------------------------------------------------- */

int context_get(struct state *st); /* makes st->context */
int default_device_get(struct state *st);
/* Why a device is not there, or null. Belongs to the context. */
const char *device_missing(struct state *st, const char *name);
/* Once a process: warns if kernels are interpreted because there is no LLVM. -1: the warning is an exception. */
int device_warn(struct state *st);
/* A row of errors.def as a RuntimeWarning at the caller's line. */
#define WARN(id, ...)                                                                                                  \
    __extension__({                                                                                                    \
        sk_error warn_err_;                                                                                            \
        warn_err_.status = SK_OK;                                                                                      \
        (void)ERR(&warn_err_, id __VA_OPT__(, ) __VA_ARGS__);                                                          \
        PyErr_WarnEx(PyExc_RuntimeWarning, warn_err_.message, 1);                                                      \
    })

#endif
