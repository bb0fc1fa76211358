/* module_object.h - the public module: an IR module as an object of a context. */
#ifndef SK_MODULE_OBJECT_H
#define SK_MODULE_OBJECT_H

#include "base/context.h"
#include "ir/ir.h"

/* `ir` and all that it holds is allocated from head.mem, whose address is the object's: an IR module made elsewhere is
 * cloned into it, never moved. sk_module_release is object_release. */
struct sk_module {
    struct object head;
    struct ir_module *ir; /* null only while it is being made */
    char *text;           /* what the last sk_module_print or sk_module_metal gave out, of text_size bytes, or null */
    size_t text_size;
    sk_line *lines;
    size_t lines_size; /* bytes */
};

/* An empty module object in `ctx`; null when memory runs out. Its destroy function frees all of the above. */
struct sk_module *module_object_new(sk_context *ctx, sk_error *err);

#endif
