/* module_object.c - making and freeing the public module. */
#include "ir/module_object.h"

static void destroy(void *object)
{
    struct sk_module *const module = object;
    struct mem *const m = &module->head.mem;
    ir_module_free(module->ir);
    mem_free(m, module->text, module->text_size);
    mem_free(m, module->lines, module->lines_size);
}

struct sk_module *module_object_new(sk_context *ctx, sk_error *err)
{
    return object_new(ctx, sizeof(struct sk_module), destroy, err);
}

void sk_module_release(sk_module *module)
{
    object_release(module);
}
