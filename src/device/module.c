/* module.c - the public functions of sk_module: text in, text and Metal out, passes. */
#include "ir/module_object.h"
#include "msl/msl.h"
#include "pass/pass.h"

static sk_status parse(struct sk_module *m, const char *text, size_t size, const char *name, sk_error *err)
{
    return ir_parse(&m->head.mem, text, size, name, &m->ir, err);
}

sk_status sk_module_parse(sk_context *ctx, const char *text, size_t size, const char *name, sk_module **out,
                          sk_error *err)
{
    struct sk_module *const m = module_object_new(ctx, err);
    if (!m)
        return SK_ERR_MEMORY;
    sk_status st;
    MEM_GUARD(&m->head.mem, err, st, parse(m, text, size, name, err));
    if (st != SK_OK) {
        sk_module_release(m);
        return st;
    }
    *out = m;
    return SK_OK;
}

/* Makes the module own the text of `b` in place of its last one. */
static const char *keep_text(struct sk_module *m, struct buf *b)
{
    mem_free(&m->head.mem, m->text, m->text_size);
    m->text = NULL;
    m->text_size = 0;
    (void)buf_text(b);
    m->text = buf_take(b, &m->text_size);
    return m->text;
}

static sk_status print(struct sk_module *m, struct buf *b, bool places, const char **out)
{
    ir_print(m->ir, b, places ? IR_PRINT_PLACES : 0);
    *out = keep_text(m, b);
    return SK_OK;
}

sk_status sk_module_print(sk_module *module, bool places, const char **out, sk_error *err)
{
    struct buf b;
    sk_status st;
    buf_init(&b, &module->head.mem);
    MEM_GUARD(&module->head.mem, err, st, print(module, &b, places, out));
    buf_free(&b);
    return st;
}

sk_status sk_module_passes(sk_module *module, const char *letters, sk_error *err)
{
    /* On a copy: a pass that runs out of memory half-way leaves no sound module. */
    sk_status st;
    struct sk_module *const copy = module_object_new(module->head.ctx, err);
    if (!copy)
        return SK_ERR_MEMORY;
    MEM_GUARD(&copy->head.mem, err, st, (copy->ir = ir_module_clone(&copy->head.mem, module->ir), SK_OK));
    if (st == SK_OK)
        MEM_GUARD(&copy->head.mem, err, st, pass_run(copy->ir, letters, err));
    struct ir_module *fresh = NULL;
    if (st == SK_OK)
        MEM_GUARD(&module->head.mem, err, st,
                  (fresh = ir_module_clone(&module->head.mem, copy->ir), ir_module_free(module->ir), module->ir = fresh,
                   SK_OK));
    sk_module_release(copy);
    return st;
}

static uint32_t kernel_at(const struct ir_module *m, size_t k)
{
    for (uint32_t f = 1; f < m->funcs.n; f++)
        if (m->funcs.at[f].kernel && k-- == 0)
            return f;
    return 0;
}

size_t sk_module_kernel_count(const sk_module *module)
{
    size_t n = 0;
    while (kernel_at(module->ir, n))
        n++;
    return n;
}

const char *sk_module_kernel_name(const sk_module *module, size_t k)
{
    const uint32_t f = kernel_at(module->ir, k);
    return f ? strtab_str(&module->ir->strings, module->ir->funcs.at[f].name) : NULL;
}

static sk_status metal(struct sk_module *m, const char *kernel, struct buf *b, struct msl_lines *lines,
                       const char **text, sk_error *err)
{
    struct mem *const mem = &m->head.mem;
    uint32_t func = 0;
    if (kernel) {
        func = ir_func_by_name(m->ir, kernel);
        if (!func || !m->ir->funcs.at[func].kernel)
            return ERR(err, NO_SUCH_KERNEL, kernel);
    }
    TRY(msl_print(m->ir, func, b, lines, err));
    mem_free(mem, m->lines, m->lines_size);
    m->lines = NULL;
    m->lines_size = 0;
    const size_t size = lines->place.n * sizeof *m->lines;
    m->lines = mem_zalloc(mem, size);
    m->lines_size = size;
    for (uint32_t i = 0; i < lines->place.n; i++) {
        const struct err_place at = ir_err_place(m->ir, lines->place.at[i]);
        m->lines[i] = (sk_line){at.file, at.line, at.column};
    }
    *text = keep_text(m, b);
    return SK_OK;
}

sk_status sk_module_metal(sk_module *module, const char *kernel, const char **text, const sk_line **lines,
                          size_t *n_lines, sk_error *err)
{
    struct buf b;
    struct msl_lines found = {0};
    sk_status st;
    buf_init(&b, &module->head.mem);
    MEM_GUARD(&module->head.mem, err, st, metal(module, kernel, &b, &found, text, err));
    if (st == SK_OK && lines) {
        *lines = module->lines;
        *n_lines = found.place.n;
    }
    VEC_FREE(&module->head.mem, &found.place);
    buf_free(&b);
    return st;
}
