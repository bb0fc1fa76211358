/* verify.h - between the two halves of the verifier: verify.c walks, verify_op.c knows each operation's rule. */
#ifndef SK_IR_VERIFY_H
#define SK_IR_VERIFY_H

#include "ir/text.h"

struct verifier {
    const struct ir_module *m;
    sk_error *err;
    struct arena scratch;
    uint32_t func;
    const struct func *f;
    uint8_t *state; /* of each node */
    uint32_t *mark; /* of each string: the scope in which it was met last */
    uint32_t serial;
    struct buf node_text, type_text[2]; /* for messages */
};

const char *verify_type(struct verifier *v, unsigned slot, ir_type t); /* valid until the slot's next use */
const char *verify_node(struct verifier *v, uint32_t id);
struct err_place verify_place(const struct verifier *v, uint32_t id);

/* Messages about a node begin with its line. */
#define FAIL(v, id, ROW, ...)                                                                                          \
    ERR_AT((v)->err, verify_place((v), (id)), ROW, verify_node((v), (id)) __VA_OPT__(, ) __VA_ARGS__)

/* The node's own rule: numbers and types of operands, type of the result, immediate, flags. Operands exist, are visible
 * and are values. */
sk_status verify_op(struct verifier *v, uint32_t id);
sk_status verify_operand(struct verifier *v, uint32_t id, unsigned k, ir_type t); /* operand k has type t */
/* The operands of an exit are as the n nodes from `first` on. */
sk_status verify_carried(struct verifier *v, uint32_t id, uint32_t first, unsigned n, const char *what);
bool verify_is_atomic(ir_type t); /* a type that atomics work on */

#endif
