/* device.h - what a back end is: one const struct. device.c knows only this, back ends know only their own things.
 *
 * Ownership and threads, for every entry: handles returned through void ** belong to the caller and are given back once.
 * Calls on distinct handles may come from several threads at once; no lock of ours is held during a call.
 */
#ifndef SK_DEVICE_H
#define SK_DEVICE_H

#include "ir/ir.h"

struct backend_limits {
    uint32_t max_threads;            /* of a threadgroup */
    uint32_t max_threadgroup_memory; /* bytes */
    uint32_t max_buffers;
    uint32_t width; /* lanes of a simdgroup */
};

struct backend {
    uint32_t abi; /* BACKEND_ABI */
    const char *name;
    const char *description;
    struct backend_limits limits;
    /* Is the back end usable on this machine? Must not block long, called once a context. Not usable: writes the reason. */
    bool (*probe)(struct buf *reason);
    /* May block (compiles). `m` is private to the call: inlining and passes may change it. */
    sk_status (*compile)(struct mem *mem, struct ir_module *m, uint32_t kernel, void **program, sk_error *err);
    void (*release)(void *program);
    uint32_t (*threadgroup_bytes)(const void *program);
    /* Blocks until done. Checked before: argument count and kinds, sizes, limits. `l` is as in spork.h with no zero size,
     * its grid in threads and its workers at least 1. Working storage comes from `mem`, which is the call's own, and is given back whatever happens. */
    sk_status (*launch)(void *program, const sk_launch *l, struct mem *mem, sk_error *err);
    /* (optional; null: malloc) memory for sk_buffer_create, zero-filled */
    void *(*allocate)(size_t size);
    void (*deallocate)(void *p, size_t size);
    /* (optional; null: `compile` did it all) compiles for threadgroups of that size; may block */
    sk_status (*prepare)(void *program, sk_size threadgroup, struct mem *mem, sk_error *err);
    /* (optional; null: false) see sk_pipeline_is_short; never blocks */
    bool (*is_short)(const void *program, const sk_launch *l);
    /* (optional; null: none) see sk_pipeline_note; never blocks */
    const char *(*note)(const void *program);
    /* (optional; null: refused) see sk_pipeline_text; may block */
    sk_status (*text)(void *program, sk_size threadgroup, bool unchecked, sk_text kind, struct buf *out, sk_error *err);
    /* (optional; null: the description) see sk_device_details; may block */
    sk_status (*details)(struct mem *mem, struct buf *out, sk_error *err);
    /* (optional; null: 1) threads that a launch uses unless told otherwise */
    uint32_t (*threads)(void);
    /* (optional; null: nothing) see sk_device_expect; never blocks long */
    void (*expect)(struct mem *mem, const void *source, size_t size);
    bool unchecked; /* launches may leave out the bounds checks */
};
#define BACKEND_ABI 2u

extern const struct backend backend_cpu;    /* device/cpu.c */
extern const struct backend backend_interp; /* device/interp.c */

#endif
