/* text.h - what the printer, the parser and the verifier share; nobody else includes it. */
#ifndef SK_IR_TEXT_H
#define SK_IR_TEXT_H

#include "ir/ir.h"

/* ---- the parts of a line --------------------------------------------------------------------------------------- */

/* What may follow the operands of an operation, in the order of printing. */
enum {
    EXTRA_OF = 1,           /* of TYPE: the immediate's low half */
    EXTRA_PART = 2,         /* [2]: an index in the immediate; of FIELD in its high half */
    EXTRA_PICK = 4,         /* [0, 1, 4]: nibbles, as many as the result has components */
    EXTRA_FAST = 8,         /* fast */
    EXTRA_NO_CONTRACT = 16, /* no_contract */
    EXTRA_WEAK = 32,        /* weak */
    EXTRA_MEMORY = 64,      /* memory(device, threadgroup) */
    EXTRA_ORDER = 128,      /* order(relaxed) scope(device) */
    EXTRA_TEXT = 256        /* "text": a string id in the immediate */
};
unsigned ir_extras(enum op op);

/* Characters of names: letters of ASCII, digits, '_' and everything beyond ASCII. */
static inline bool ir_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80);
}

/* A word that stands for a type or begins one, hence names no struct. */
bool ir_type_word(const char *s);

/* The number of bytes of the UTF-8 character at s, at most n of them; 0 if there is none. */
unsigned utf8_length(const char *s, size_t n);

#define IR_MAX_PARAMS 31u    /* buffers and values of a kernel; likewise its threadgroup memories */
#define IR_MAX_THREADS 1024u /* of a threadgroup */

/* ---- printing one node ----------------------------------------------------------------------------------------- */

/* The line of node `id` of function `func` for a message, without what a construct holds, cut after about 160 bytes. Works
 * on modules that verify refuses: what has no number prints as %?. */
void ir_print_node(const struct ir_module *m, uint32_t func, uint32_t id, struct buf *out);

/* ---- tokens ---------------------------------------------------------------------------------------------------- */

enum tok {
    TOK_END,
    TOK_LINE,   /* the end of one or more lines; none within parentheses */
    TOK_WORD,   /* add, f32x4, Particle */
    TOK_NUMBER, /* 12, -1.5e-3, 0x7f, -inf */
    TOK_VALUE,  /* %3, %t.3, %A: text without the % */
    TOK_TEXT,   /* "...", with the quotes */
    TOK_ARROW,  /* -> */
    TOK_PUNCT   /* a single character */
};

struct token {
    enum tok kind;
    char punct;      /* PUNCT */
    bool numbered;   /* VALUE: has a number */
    uint32_t at, n;  /* its bytes in the text */
    uint32_t name_n; /* VALUE: length of the name, which is first */
    uint32_t number; /* VALUE */
    uint32_t line, column;
};

/* Copying a lexer remembers its position. */
struct lexer {
    const char *text, *name;
    uint32_t n, at, line, line_at;
    uint32_t parens;
    struct token tok; /* the current one */
    sk_error *err;
};

#define IR_MAX_TEXT (1u << 30)

/* Refuses texts that are too large, hold a zero byte or are no UTF-8; then reads the first token. */
sk_status lex_init(struct lexer *l, const char *text, size_t n, const char *name, sk_error *err);
sk_status lex_next(struct lexer *l);
struct err_place lex_place(const struct lexer *l, const struct token *t);
/* The token for a message, cut if long: 'abc', end of line, end of the text. */
const char *lex_found(const struct lexer *l, const struct token *t, char out[64]);
/* A TEXT token's bytes, without quotes and escapes. */
sk_status lex_unquote(const struct lexer *l, const struct token *t, struct buf *out);

#endif
