/* pass.h - IR to IR. One file per pass; pass.def lists them in the order of the pipeline. */
#ifndef SK_PASS_H
#define SK_PASS_H

#include "ir/ir.h"

struct pass_info {
    char letter;
    bool pipeline; /* else only where it is asked for */
    const char *name, *doc;
    void (*run)(struct ir_module *m, uint32_t func);
};
extern const struct pass_info pass_info[];
extern const unsigned pass_count;

/* Inlines every call of `kernel` (recursion was refused by the tracer; verify refuses it for text), leaving only it and
 * what it needs. SK_ERR_UNSUPPORTED past `max_nodes`. Places keep the call: inlined-at. */
sk_status pass_inline(struct ir_module *m, uint32_t kernel, uint32_t max_nodes, sk_error *err);

/* Runs the passes named by `letters` in that order (null: the pipeline) on every function, verifying after each in
 * debug builds. SK_ERR_VALUE for an unknown letter. */
sk_status pass_run(struct ir_module *m, const char *letters, sk_error *err);

#endif
