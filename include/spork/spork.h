/* spork.h - the public C interface of Spork.
 *
 * Conventions.
 *  - Every object is opaque and belongs to a `sk_context`, made by sk_context_create and, with all that is still alive
 *    in it, freed by sk_context_destroy.
 *  - A function that can fail returns a sk_status and fills the caller's sk_error (null allowed). Outputs are written
 *    only on success. The library never prints, exits or aborts.
 *  - Strings are UTF-8 and zero-terminated. Strings returned by pointer live as long as the object they came from,
 *    unless said otherwise.
 *  - Threads: distinct objects may be used from different threads at once. A tracer, a module and an encoder belong to
 *    one thread at a time; a context, device, queue, library, function, pipeline and buffer may be shared.
 */
#ifndef SPORK_H
#define SPORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SK_API __attribute__((visibility("default")))
#else
#define SK_API
#endif

#define SK_VERSION_MAJOR 0
#define SK_VERSION_MINOR 1
#define SK_VERSION_PATCH 0

/* ---- status, errors, memory ------------------------------------------------------------------------------------ */

typedef enum sk_status {
    SK_OK = 0,
    SK_ERR_MEMORY,      /* out of memory */
    SK_ERR_TYPE,        /* an operand, argument or annotation of the wrong type */
    SK_ERR_VALUE,       /* a value out of its range, a malformed size or shape */
    SK_ERR_TRACE,       /* a misuse of tracing: a value outside its block or kernel, an open block, ... */
    SK_ERR_SYNTAX,      /* malformed text */
    SK_ERR_INVALID,     /* IR that the verifier refuses */
    SK_ERR_UNSUPPORTED, /* a feature that a device or printer refuses, by name */
    SK_ERR_FAULT,       /* a kernel faulted at run time: out of bounds, deadlock, no progress */
    SK_ERR_DEVICE,      /* no such device, or the device failed */
    SK_ERR_INTERRUPTED, /* a launch stopped on request */
    SK_ERR_IO           /* a file could not be read or written */
} sk_status;

/* An error, owned by the caller; zero-initialise it before the first use. The first error put into it stays until
 * sk_error_clear. `file` is empty when the error points nowhere; line and column count from 1, 0 is unknown. */
typedef struct sk_error {
    sk_status status;
    char name[32];      /* the row of errors.def, e.g. "OUT_OF_BOUNDS" */
    char message[1024]; /* one line; a cure follows a semicolon */
    char file[512];
    uint32_t line, column;
} sk_error;

SK_API void sk_error_clear(sk_error *err);
SK_API const char *sk_status_name(sk_status status); /* "ok", "memory", ... */

/* Memory functions. `size` of free and `old_size` of resize are what was asked for. resize and allocate return null on
 * failure. All three may be called from several threads at once. */
typedef struct sk_allocator {
    void *(*allocate)(void *user, size_t size);
    void *(*resize)(void *user, void *p, size_t old_size, size_t size);
    void (*release)(void *user, void *p, size_t size);
    void *user;
} sk_allocator;

/* ---- context ---------------------------------------------------------------------------------------------------------- */

typedef struct sk_context sk_context;
SK_API sk_status sk_context_create(const sk_allocator *allocator /* null: malloc */, sk_context **out, sk_error *err);
SK_API void sk_context_destroy(sk_context *ctx); /* null allowed; frees everything made in it */
SK_API size_t sk_context_bytes(const sk_context *ctx); /* bytes it now holds */

/* ---- types -------------------------------------------------------------------------------------------------------------- */

/* Scalar types; SK_VEC makes vectors of 2, 3 or 4. Metal has no 64-bit float, so there is none here. */
typedef enum sk_scalar {
    SK_VOID, SK_BOOL, SK_I8, SK_U8, SK_I16, SK_U16, SK_I32, SK_U32, SK_I64, SK_U64, SK_F16, SK_BF16, SK_F32,
    SK_SCALAR_COUNT
} sk_scalar;
typedef uint16_t sk_type;
#define SK_VEC(scalar, n) ((sk_type)(SK_SCALAR_COUNT + ((scalar) - 1) * 3 + (n) - 2))

/* What a kernel parameter is filled with by the launch; in the order of attributes.def. */
typedef enum sk_attribute {
    SK_NO_ATTRIBUTE,
    SK_THREAD_POSITION_IN_GRID, SK_THREADS_PER_GRID, SK_THREAD_POSITION_IN_THREADGROUP, SK_THREADGROUP_POSITION_IN_GRID,
    SK_THREADS_PER_THREADGROUP, SK_DISPATCH_THREADS_PER_THREADGROUP, SK_THREADGROUPS_PER_GRID,
    SK_THREAD_INDEX_IN_THREADGROUP, SK_THREAD_INDEX_IN_SIMDGROUP, SK_SIMDGROUP_INDEX_IN_THREADGROUP,
    SK_SIMDGROUPS_PER_THREADGROUP, SK_DISPATCH_SIMDGROUPS_PER_THREADGROUP, SK_THREADS_PER_SIMDGROUP,
    SK_THREAD_EXECUTION_WIDTH, SK_THREAD_INDEX_IN_QUADGROUP, SK_QUADGROUP_INDEX_IN_THREADGROUP,
    SK_QUADGROUPS_PER_THREADGROUP, SK_DISPATCH_QUADGROUPS_PER_THREADGROUP
} sk_attribute;

/* ---- modules: IR as text, Metal source ------------------------------------------------------------------------------------ */

typedef struct sk_module sk_module;
/* Parses and verifies IR text; `name` stands for the file in errors. */
SK_API sk_status sk_module_parse(sk_context *ctx, const char *text, size_t size, const char *name, sk_module **out,
                                 sk_error *err);
SK_API void sk_module_release(sk_module *module); /* null allowed */
/* The text form. Owned by the module until the next call or its end. */
SK_API sk_status sk_module_print(sk_module *module, bool places, const char **out, sk_error *err);
/* Runs passes by their letters, in the order given; null: the whole pipeline. docs/architecture.md lists them. */
SK_API sk_status sk_module_passes(sk_module *module, const char *letters, sk_error *err);
SK_API size_t sk_module_kernel_count(const sk_module *module);
SK_API const char *sk_module_kernel_name(const sk_module *module, size_t k); /* null past the end */
/* Metal source of one kernel (null: of all), owned by the module until the next call. `lines` (null allowed) receives
 * the place of each generated line: lines[i] is line i + 1; file null where it has none. */
typedef struct sk_line {
    const char *file;
    uint32_t line, column;
} sk_line;
SK_API sk_status sk_module_metal(sk_module *module, const char *kernel, const char **text, const sk_line **lines,
                                 size_t *n_lines, sk_error *err);

/*@TRACER@*/

/* ---- host objects, in the shape of Metal's ------------------------------------------------------------------------------------ */

typedef struct sk_device sk_device;
typedef struct sk_queue sk_queue;
typedef struct sk_library sk_library;
typedef struct sk_function sk_function;
typedef struct sk_pipeline sk_pipeline;
typedef struct sk_buffer sk_buffer;
typedef struct sk_commands sk_commands;

/* Devices of this machine, usable ones first. */
SK_API size_t sk_device_count(sk_context *ctx);
SK_API sk_device *sk_device_at(sk_context *ctx, size_t k); /* null past the end; belongs to the context */
/* By name ("interp", "cpu", "metal", "cuda:0"); null: the environment variable SPORK_DEVICE, else the best there is. */
SK_API sk_status sk_device_get(sk_context *ctx, const char *name, sk_device **out, sk_error *err);
SK_API const char *sk_device_name(const sk_device *device);
SK_API const char *sk_device_description(const sk_device *device); /* one line for a person */
/* Devices that this build knows but cannot use here, with the reason: "cpu: …". null past the end. */
SK_API const char *sk_device_missing(sk_context *ctx, size_t k);

SK_API sk_status sk_queue_create(sk_device *device, sk_queue **out, sk_error *err);
SK_API void sk_queue_release(sk_queue *queue);

/* A library takes a copy of the module's IR. */
SK_API sk_status sk_library_from_module(sk_device *device, const sk_module *module, sk_library **out, sk_error *err);
SK_API sk_status sk_library_from_ir(sk_device *device, const char *text, size_t size, const char *name, sk_library **out,
                                    sk_error *err);
SK_API void sk_library_release(sk_library *library);
SK_API sk_status sk_library_function(sk_library *library, const char *name, sk_function **out, sk_error *err);
SK_API void sk_function_release(sk_function *function);

/* The arguments a launch gives, in order: buffers, constants and threadgroup memory; attributes are left out. */
typedef enum sk_arg_kind { SK_ARG_BUFFER, SK_ARG_VALUE, SK_ARG_THREADGROUP } sk_arg_kind;
typedef struct sk_arg_info {
    const char *name;
    sk_arg_kind kind;
    sk_type type;         /* element of a buffer or threadgroup memory, type of a value; SK_VOID for structs */
    size_t size;          /* bytes of one element, or of the value */
    bool read, written;   /* buffers: what the kernel may do with it */
    bool constant_space;  /* buffers in Metal's constant address space */
    bool atomic;          /* declared with an atomic dtype */
} sk_arg_info;
SK_API size_t sk_function_arg_count(const sk_function *function);
SK_API sk_status sk_function_arg(const sk_function *function, size_t k, sk_arg_info *out, sk_error *err);

/* Compiles for the device. A pipeline may be used from several threads at once. */
SK_API sk_status sk_pipeline_create(sk_function *function, sk_pipeline **out, sk_error *err);
SK_API void sk_pipeline_release(sk_pipeline *pipeline);
SK_API uint32_t sk_pipeline_max_threads(const sk_pipeline *pipeline); /* largest threadgroup */
SK_API uint32_t sk_pipeline_execution_width(const sk_pipeline *pipeline); /* lanes of a simdgroup: 32 */
SK_API uint32_t sk_pipeline_threadgroup_memory(const sk_pipeline *pipeline); /* bytes declared in the kernel */

/* Zero-filled memory of the device's own, or the caller's memory without a copy (it must stay valid). */
SK_API sk_status sk_buffer_create(sk_device *device, size_t size, sk_buffer **out, sk_error *err);
SK_API sk_status sk_buffer_wrap(sk_device *device, void *memory, size_t size, sk_buffer **out, sk_error *err);
SK_API void sk_buffer_release(sk_buffer *buffer);
SK_API void *sk_buffer_contents(sk_buffer *buffer);
SK_API size_t sk_buffer_size(const sk_buffer *buffer);

typedef struct sk_size {
    uint32_t x, y, z;
} sk_size;

/* A command buffer with its compute encoder. Errors of the encoding calls are kept and reported by commit. Buffers stay
 * referenced until the commands have completed. */
SK_API sk_status sk_commands_create(sk_queue *queue, sk_commands **out, sk_error *err);
SK_API void sk_commands_release(sk_commands *commands);
SK_API void sk_commands_set_pipeline(sk_commands *commands, sk_pipeline *pipeline);
/* `k` counts the arguments of sk_function_arg. */
SK_API void sk_commands_set_buffer(sk_commands *commands, size_t k, sk_buffer *buffer, size_t offset);
SK_API void sk_commands_set_bytes(sk_commands *commands, size_t k, const void *bytes, size_t size);
SK_API void sk_commands_set_threadgroup_memory(sk_commands *commands, size_t k, size_t bytes);
SK_API void sk_commands_dispatch_threads(sk_commands *commands, sk_size threads, sk_size threadgroup);
SK_API void sk_commands_dispatch_threadgroups(sk_commands *commands, sk_size groups, sk_size threadgroup);
SK_API sk_status sk_commands_commit(sk_commands *commands, sk_error *err);
SK_API sk_status sk_commands_wait(sk_commands *commands, sk_error *err); /* a fault of a kernel is reported here */

/* One launch in one call: what commands are made of, for those who need no queue. */
typedef struct sk_arg {
    void *data;  /* buffer: its memory; value: its bytes; threadgroup memory: null */
    size_t size; /* bytes */
} sk_arg;
typedef struct sk_launch {
    sk_size grid;        /* threads if `threads`, else threadgroups; a 0 anywhere launches nothing */
    sk_size threadgroup;
    bool threads;
    size_t n_args;
    const sk_arg *args;
    const volatile int *stop; /* null, or a word that becomes non-zero to stop the launch: SK_ERR_INTERRUPTED */
} sk_launch;
SK_API sk_status sk_pipeline_launch(sk_pipeline *pipeline, const sk_launch *launch, sk_error *err);

#ifdef __cplusplus
}
#endif
#endif
