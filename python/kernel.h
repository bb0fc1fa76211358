/* kernel.h - what a kernel is to the extension: its signature, the traced and compiled object, its launches. */
#ifndef SK_PY_KERNEL_H
#define SK_PY_KERNEL_H

#include "state.h"

/* ---- annotation.c, signature.c: parameters of kernels and device functions --------------------------------------- */

struct pointer_spec_object {
    PyObject_HEAD
    PyObject *dtype;
};
struct scalar_param {
    PyObject_HEAD
    PyObject *dtype;     /* of a component */
    PyObject *attribute; /* a marker class, or null */
    unsigned n;          /* components */
    enum attribute attr;
};
struct param_spec {
    PyObject *name;          /* owned */
    const char *text;        /* its UTF-8 */
    uint8_t kind, attribute; /* enum param_kind, enum attribute */
    enum space space;        /* of pointers */
    PyObject *dtype;         /* of the element or value; borrowed from the state */
    ir_type type;            /* of the parameter */
};
struct signature {
    struct param_spec *param;
    unsigned n, n_args; /* n_args: without attributes */
    PyObject *result;   /* device functions: dtype, borrowed; null: none */
    bool resolved, lambda;
    const char *file; /* of the function; belongs to its code */
    uint32_t line;    /* of its def */
};
/* Checks the function and resolves its annotations. With `late` false, names that are not bound yet leave the signature
 * unresolved without an error; call again at first use. */
int signature_read(struct state *st, PyObject *fn, bool device_fn, bool late, struct signature *out);
void signature_free(struct signature *sig);
/* The names that a call may give, for messages. */
void signature_names(const struct signature *sig, char *out, size_t cap);

/* ---- kernel.c ---------------------------------------------------------------------------------------------------- */

struct kernel {
    PyObject_HEAD
    PyObject *fn, *name, *weak, *dict;
    struct signature sig;
    bool fast, no_contract;
    PyThread_type_lock lock;   /* held while the kernel is traced and compiled */
    unsigned long lock_thread; /* who holds it */
    sk_module *module;         /* null until traced */
    bool has_loop;
    uint32_t n_nodes;
    uint64_t traced;                   /* nanoseconds that tracing took */
    PyObject *metal, *ir, *source_map; /* null until asked for */
    sk_library *library;
    sk_function *function;
    sk_pipeline *pipeline; /* null until launched */
    sk_arg_info *args;     /* sig.n_args, once there is a pipeline */
    bool on_cpu;           /* the pipeline is of the device cpu */
    bool may_uncheck;      /* its device takes launches that are not checked */
    bool noted;            /* a warning said what the device had to say of the pipeline */
    sk_size latest;        /* threadgroup of the latest launch on the cpu; x is 0 before */
};
static inline struct kernel *kernel_of(PyObject *o)
{
    return (struct kernel *)o;
}
int kernel_prepare(struct state *st, struct kernel *k); /* traced and compiled afterwards */
int kernel_trace(struct state *st, struct kernel *k);   /* traced afterwards */
PyObject *kernel_metal(struct state *st, struct kernel *k);
PyObject *kernel_source_map(struct state *st, struct kernel *k);

/* ---- code.c ------------------------------------------------------------------------------------------------------ */

struct geometry;
/* Tells the default device what will be compiled: a few microseconds. Failures are no matter. */
void expect_kernel(struct state *st, const struct kernel *k);
/* The code on the device cpu, of the bound kernel's geometry, or (null) of the latest threadgroup. */
PyObject *kernel_code(struct state *st, struct kernel *k, const struct geometry *g, sk_text kind);
PyObject *kernel_timings(struct state *st, struct kernel *k); /* a dict: step to seconds */

/* ---- bound.c ----------------------------------------------------------------------------------------------------- */

struct geometry {
    sk_size grid, threadgroup; /* grid: threads if `threads` */
    bool threads, chosen;      /* chosen: no threadgroup was given; a launch cuts it to what the pipeline allows */
    bool unchecked;            /* bounds="off" */
};
#define DEFAULT_GROUP 256u
/* Geometry from the values of these names; null where not given. */
int geometry_read(struct state *st, PyObject *grid, PyObject *threads, PyObject *threadgroup, PyObject *bounds,
                  struct geometry *out);
/* A threadgroup as the pipeline takes it. */
sk_size geometry_group(const sk_pipeline *pipeline, const struct geometry *g);
PyObject *bound_new(struct state *st, struct kernel *k, const struct geometry *g);

/* ---- launch.c, args.c -------------------------------------------------------------------------------------------- */

#define MAX_ARGS 64u
/* `args` are in the kernel's order, n of them. */
PyObject *kernel_launch(struct state *st, struct kernel *k, const struct geometry *g, PyObject *const *args,
                        Py_ssize_t n);

/* One argument of a launch with what keeps its memory alive. */
struct held_arg {
    enum { HELD_NOTHING, HELD_BUFFER, HELD_CAPSULE } kind;
    Py_buffer view;
    PyObject *object; /* owned: the view's helper, or the DLPack capsule */
    uint64_t value[4];
};
int arg_take(struct state *st, const struct param_spec *p, const sk_arg_info *info, PyObject *o, struct held_arg *held,
             sk_arg *out);
void arg_release(struct held_arg *held);

#endif
