/* objects.h - the host objects behind the public handles. Each retains what it is made from. */
#ifndef SK_DEVICE_OBJECTS_H
#define SK_DEVICE_OBJECTS_H

#include "base/context.h"
#include "device/device.h"

struct sk_device {
    const struct backend *backend;
    sk_context *ctx;
    uint32_t threads;  /* atomic: of a launch, 0: not asked for yet */
    struct buf *about; /* for sk_device_details */
};

struct sk_queue {
    struct object head;
    sk_device *device;
};

struct sk_library {
    struct object head;
    sk_device *device;
    struct ir_module *ir; /* in head.mem, read-only after creation */
};

struct sk_function {
    struct object head;
    sk_library *library;
    uint32_t func;
    size_t n_args;
    sk_arg_info *args; /* in head.mem; names belong to the library */
};

struct sk_pipeline {
    struct object head;
    sk_function *function;
    uint32_t max_threads, threadgroup_bytes;
    void *program; /* the back end's */
};

struct sk_buffer {
    struct object head;
    sk_device *device;
    void *memory;
    size_t size;
    bool owned; /* allocated by the back end */
};

#endif
