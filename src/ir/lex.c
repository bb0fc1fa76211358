/* lex.c - the tokens of the text form. Every byte of the text is untrusted. */
#include "ir/text.h"

#include <stdio.h>

unsigned utf8_length(const char *s, size_t n)
{
    const unsigned char *const u = (const unsigned char *)s;
    if (n == 0)
        return 0;
    if (u[0] < 0x80)
        return 1;
    const unsigned length = u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : u[0] < 0xf5 ? 4 : 0;
    if (length == 0 || length > n)
        return 0;
    for (unsigned k = 1; k < length; k++)
        if ((u[k] & 0xc0) != 0x80)
            return 0;
    /* Longer forms than needed, surrogates, beyond U+10FFFF. */
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) || (u[0] == 0xf0 && u[1] < 0x90) ||
        (u[0] == 0xf4 && u[1] > 0x8f))
        return 0;
    return length;
}

static struct err_place here(const struct lexer *l)
{
    return (struct err_place){l->name, l->line, l->at - l->line_at + 1};
}

sk_status lex_init(struct lexer *l, const char *text, size_t n, const char *name, sk_error *err)
{
    *l = (struct lexer){.text = text, .name = name, .line = 1, .err = err};
    if (n > IR_MAX_TEXT)
        return ERR_AT(err, here(l), IR_TOO_LARGE, n, IR_MAX_TEXT);
    l->n = (uint32_t)n;
    while (l->at < l->n) {
        const unsigned length = utf8_length(text + l->at, l->n - l->at);
        if (length == 0)
            return ERR_AT(err, here(l), IR_NOT_UTF8, (unsigned)(unsigned char)text[l->at]);
        if (text[l->at] == 0)
            return ERR_AT(err, here(l), IR_ZERO_BYTE);
        l->at += length;
        if (text[l->at - 1] == '\n') {
            l->line++;
            l->line_at = l->at;
        }
    }
    l->at = l->line_at = 0;
    l->line = 1;
    return lex_next(l);
}

/* The byte `ahead` of the position; 0 past the end, which is none of the text's. */
static char peek(const struct lexer *l, uint32_t ahead)
{
    return ahead < l->n - l->at ? l->text[l->at + ahead] : 0;
}

/* Passes blanks, comments and line ends; returns whether there was a line end. */
static bool skip_blanks(struct lexer *l)
{
    bool line = false;
    for (;;) {
        const char c = peek(l, 0);
        if (c == '#') {
            while (l->at < l->n && l->text[l->at] != '\n')
                l->at++;
        } else if (c == '\n') {
            l->at++;
            l->line++;
            l->line_at = l->at;
            line = true;
        } else if (c == ' ' || c == '\t' || (c == '\r' && peek(l, 1) == '\n')) {
            l->at++;
        } else {
            return line;
        }
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static uint32_t name_length(const struct lexer *l, uint32_t from)
{
    uint32_t n = 0;
    while (ir_name_char(peek(l, from + n)))
        n++;
    return n;
}

/* Digits, letters and points; a sign only after the letter of an exponent. What it means is the reader's business. */
static uint32_t number_length(const struct lexer *l)
{
    uint32_t n = peek(l, 0) == '-';
    const bool hex = peek(l, n) == '0' && (peek(l, n + 1) | 32) == 'x';
    for (;; n++) {
        const char c = peek(l, n);
        const bool sign = (c == '-' || c == '+') && n > 0 && !hex && (peek(l, n - 1) | 32) == 'e';
        if (!(is_digit(c) || c == '.' || sign || (ir_name_char(c) && !(c & 0x80))))
            return n;
    }
}

static sk_status lex_value(struct lexer *l, struct token *t)
{
    const uint32_t n = name_length(l, 1);
    uint32_t digits_at = 1, end = 1 + n;
    bool all_digits = n > 0;
    for (uint32_t k = 0; k < n; k++)
        all_digits = all_digits && is_digit(peek(l, 1 + k));
    t->name_n = n;
    if (n > 0 && peek(l, 1 + n) == '.' && is_digit(peek(l, 2 + n))) {
        digits_at = end = 2 + n;
        while (is_digit(peek(l, end)))
            end++;
        t->numbered = true;
    } else if (all_digits) {
        t->name_n = 0;
        t->numbered = true;
    }
    uint64_t number = 0;
    for (uint32_t k = digits_at; t->numbered && k < end; k++) {
        number = number * 10 + (uint64_t)(peek(l, k) - '0');
        if (number > UINT32_MAX)
            return ERR_AT(l->err, here(l), IR_VALUE_NUMBER, UINT32_MAX);
    }
    if (n == 0)
        return ERR_AT(l->err, here(l), IR_EXPECTED, "a name or a number after '%'", "something else");
    t->number = (uint32_t)number;
    l->at++; /* the token's text is without the % */
    t->at = l->at;
    t->n = end - 1;
    return SK_OK;
}

static sk_status lex_text(struct lexer *l, struct token *t)
{
    uint32_t n = 1;
    for (;; n++) {
        const char c = peek(l, n);
        if (c == 0 || c == '\n')
            return ERR_AT(l->err, here(l), IR_TEXT_OPEN);
        if (c == '"')
            break;
        if (c == '\\' && (peek(l, n + 1) == '"' || peek(l, n + 1) == '\\'))
            n++;
    }
    t->n = n + 1;
    return SK_OK;
}

sk_status lex_next(struct lexer *l)
{
    struct token t = {.kind = TOK_PUNCT, .at = l->at, .line = l->line, .column = l->at - l->line_at + 1};
    /* Lines before the first token are blank, too. */
    if (skip_blanks(l) && l->parens == 0 && l->tok.n > 0 && l->tok.kind != TOK_LINE) {
        t.kind = TOK_LINE;
        t.n = 1;
        l->tok = t;
        return SK_OK;
    }
    t.at = l->at;
    t.line = l->line;
    t.column = l->at - l->line_at + 1;
    const char c = peek(l, 0);
    t.n = 1;
    if (l->at == l->n) {
        t.kind = TOK_END;
        t.n = 0;
    } else if (c == '%') {
        t.kind = TOK_VALUE;
        TRY(lex_value(l, &t));
    } else if (c == '"') {
        t.kind = TOK_TEXT;
        TRY(lex_text(l, &t));
    } else if (c == '-' && peek(l, 1) == '>') {
        t.kind = TOK_ARROW;
        t.n = 2;
    } else if (is_digit(c) || c == '-') {
        t.kind = TOK_NUMBER;
        t.n = number_length(l);
    } else if (ir_name_char(c)) {
        t.kind = TOK_WORD;
        t.n = name_length(l, 0);
    } else if (strchr("(){}[],:=@!.", c)) {
        t.punct = c;
        if (c == '(')
            l->parens++;
        if (c == ')' && l->parens > 0)
            l->parens--;
    } else {
        char shown[8];
        (void)snprintf(shown, sizeof shown, c > ' ' && c < 0x7f ? "'%c'" : "\\x%02x", c);
        return ERR_AT(l->err, here(l), IR_CHARACTER, shown);
    }
    l->at += t.n;
    l->tok = t;
    return SK_OK;
}

struct err_place lex_place(const struct lexer *l, const struct token *t)
{
    return (struct err_place){l->name, t->line, t->column};
}

const char *lex_found(const struct lexer *l, const struct token *t, char out[64])
{
    if (t->kind == TOK_END || t->kind == TOK_LINE)
        return t->kind == TOK_END ? "the end of the text" : "the end of the line";
    const char *const sign = t->kind == TOK_VALUE ? "%" : "";
    uint32_t n = 0;
    while (n < t->n && n < 40)
        n += utf8_length(l->text + t->at + n, t->n - n);
    (void)snprintf(out, 64, "'%s%.*s%s'", sign, (int)n, l->text + t->at, n < t->n ? "..." : "");
    return out;
}

static int hex_value(char c)
{
    return is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

sk_status lex_unquote(const struct lexer *l, const struct token *t, struct buf *out)
{
    const char *s = l->text + t->at + 1;
    const char *const end = l->text + t->at + t->n - 1;
    while (s < end) {
        if (*s != '\\') {
            const char *const from = s;
            while (s < end && *s != '\\')
                s++;
            buf_bytes(out, from, (size_t)(s - from));
            continue;
        }
        const struct err_place at = {l->name, t->line, t->column + (uint32_t)(s - l->text) - t->at};
        const char c = s[1]; /* at worst the closing quote */
        s += 2;
        if (c == 'x' && end - s >= 2 && hex_value(s[0]) >= 0 && hex_value(s[1]) >= 0) {
            const int byte = 16 * hex_value(s[0]) + hex_value(s[1]);
            if (byte == 0)
                return ERR_AT(l->err, at, IR_ZERO_BYTE);
            buf_char(out, (char)byte);
            s += 2;
        } else if (c == '"' || c == '\\') {
            buf_char(out, c);
        } else if (c == 'n' || c == 't') {
            buf_char(out, c == 'n' ? '\n' : '\t');
        } else {
            return ERR_AT(l->err, at, IR_ESCAPE);
        }
    }
    return SK_OK;
}
