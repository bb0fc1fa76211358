/* parse.h - between the halves of the parser: parse.c reads what stands at the top level, parse_body.c the bodies. */
#ifndef SK_IR_PARSE_H
#define SK_IR_PARSE_H

#include "ir/text.h"

enum kind { KIND_FUNC = 1, KIND_STRUCT, KIND_FIELD, KIND_PLACE, KIND_PARAM, KIND_VALUE };

struct entry {
    uint64_t key; /* 0: free */
    uint32_t id;
};

struct body {
    uint32_t func, brace; /* brace: the number of the first one */
    struct lexer at;      /* at the brace */
};

struct def { /* a value to be: a result or a loop's parameter */
    struct token token;
    ir_type type;
};

struct parser {
    struct mem *mem;
    sk_error *err;
    struct lexer lex;
    struct ir_module *m;
    struct ir_builder b;
    uint32_t file; /* of places, unless the text has its own */
    bool own_places;
    struct entry *slots;
    uint32_t n_slots, n_entries;
    VEC(struct body) bodies;
    VEC(uint32_t) n_cases;  /* of each brace of bodies, in the order of the text */
    uint32_t brace;         /* the number of the next brace */
    VEC(uint32_t) operands; /* of the node being read */
    VEC(struct def) defs;   /* a stack: constructs nest */
    VEC(struct field) fields;
    struct buf text;
    uint32_t label[IR_MAX_DEPTH];
    unsigned depth;
};

/* What follows takes the current token if it fits, or tells what was expected. */

#define FAIL_AT(p, token, ROW, ...) ERR_AT((p)->err, lex_place(&(p)->lex, (token)), ROW __VA_OPT__(, ) __VA_ARGS__)
/* The token as messages show it; valid to the end of the statement that it stands in. */
#define FOUND(p, token) lex_found(&(p)->lex, (token), (char[64]){0})

static inline const struct token *parse_cur(const struct parser *p)
{
    return &p->lex.tok;
}

static inline const char *parse_bytes(const struct parser *p, const struct token *t)
{
    return p->lex.text + t->at;
}

static inline sk_status parse_next(struct parser *p)
{
    return lex_next(&p->lex);
}

bool parse_spells(const struct parser *p, const struct token *t, const char *word);
bool parse_at_word(const struct parser *p, const char *word);
bool parse_at_punct(const struct parser *p, char c);
sk_status parse_expected(struct parser *p, const char *what);
sk_status parse_take(struct parser *p, char c);
sk_status parse_word(struct parser *p, const char *word);
sk_status parse_flag(struct parser *p, const char *word, unsigned flag, unsigned *flags); /* an optional word */
sk_status parse_skip_lines(struct parser *p);
sk_status parse_name(struct parser *p, const char *what, uint32_t *name); /* a word; its string */
sk_status parse_text(struct parser *p, uint32_t *string);
sk_status parse_integer(struct parser *p, const char *what, uint64_t low, uint64_t high, uint64_t *out);
sk_status parse_type(struct parser *p, ir_type *out);
/* The place of what begins at t: written behind it as !N, or t's own. */
sk_status parse_place(struct parser *p, const struct token *t, uint32_t *place);
/* The magnitude of an integer, decimal or 0x; false if the bytes are none. Whether it fits 64 bits. */
bool parse_magnitude(const char *s, uint32_t n, uint64_t *out, bool *fits);

/* The table of names. 0: not there. */
uint32_t parse_find(const struct parser *p, enum kind kind, uint32_t func, uint32_t x);
/* Enters a name, that of the token t, once. */
sk_status parse_define(struct parser *p, enum kind kind, uint32_t func, uint32_t x, uint32_t id, const struct token *t);

/* parse_body.c: the body of a function whose opening brace is the current token. */
sk_status parse_body(struct parser *p);

#endif
