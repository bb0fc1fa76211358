/* pipeline.c - the order of the passes. */
#include "pass/pass.h"
#include "pass/util.h"

const struct pass_info pass_info[] = {
#define PASS(letter, name, pipeline, doc) {#letter[0], pipeline, #name, doc, pass_##name},
#include "pass/pass.def"
#undef PASS
};
const unsigned pass_count = sizeof pass_info / sizeof *pass_info;

static const struct pass_info *by_letter(char letter)
{
    for (unsigned i = 0; i < pass_count; i++)
        if (pass_info[i].letter == letter)
            return &pass_info[i];
    return NULL;
}

static sk_status run_one(struct ir_module *m, const struct pass_info *p, sk_error *err)
{
    for (uint32_t f = 1; f < m->funcs.n; f++)
        if (m->funcs.at[f].region)
            p->run(m, f);
#ifndef NDEBUG
    TRY(ir_verify(m, err));
#endif
    (void)err;
    return SK_OK;
}

sk_status pass_run(struct ir_module *m, const char *letters, sk_error *err)
{
    if (!letters) {
        /* Contraction makes multiplications dead and exposes nothing; one round in table order is a fixed point for
         * what the tracer emits, and the order is part of the language (see contract.c). */
        for (unsigned i = 0; i < pass_count; i++)
            if (pass_info[i].pipeline)
                TRY(run_one(m, &pass_info[i], err));
        return SK_OK;
    }
    for (const char *c = letters; *c; c++)
        if (!by_letter(*c))
            return ERR(err, UNKNOWN_PASS, *c);
    for (const char *c = letters; *c; c++)
        TRY(run_one(m, by_letter(*c), err));
    return SK_OK;
}
