/* error.c - the error object, and the table of messages. */
#include "base/base.h"

#include <stdio.h>

static const struct {
    const char *name;
    sk_status status;
} rows[ERR_ID_COUNT] = {
#define E(id, status, fmt) {#id, SK_ERR_##status},
#include "base/errors.def"
#undef E
};

/* Names must fit sk_error.name. */
#define E(id, status, fmt) _Static_assert(sizeof #id <= sizeof((sk_error *)0)->name, "the name of " #id " is too long");
#include "base/errors.def"
#undef E

sk_status err_status(enum err_id id)
{
    return rows[id].status;
}

const char *err_name(enum err_id id)
{
    return rows[id].name;
}

/* Removes a UTF-8 character that the end of a full field cut in two. */
static void mend_tail(char *text, size_t cap)
{
    size_t n = strlen(text);
    if (n + 1 < cap)
        return;
    size_t tail = 0;
    while (tail < 3 && tail < n && ((unsigned char)text[n - 1 - tail] & 0xc0) == 0x80)
        tail++;
    if (tail == n)
        return;
    const unsigned char lead = (unsigned char)text[n - 1 - tail];
    const size_t follow = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    if (follow > tail)
        text[n - 1 - tail] = 0;
}

sk_status err_set(sk_error *err, enum err_id id, struct err_place at, const char *fmt, ...)
{
    const sk_status status = err_status(id);
    if (!err || err->status != SK_OK)
        return status;
    err->status = status;
    (void)snprintf(err->name, sizeof err->name, "%s", err_name(id));
    (void)snprintf(err->file, sizeof err->file, "%s", at.file ? at.file : "");
    mend_tail(err->file, sizeof err->file);
    err->line = at.line;
    err->column = at.column;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    mend_tail(err->message, sizeof err->message);
    return status;
}

void sk_error_clear(sk_error *err)
{
    if (err)
        *err = (sk_error){0};
}

const char *sk_status_name(sk_status status)
{
    switch (status) {
    case SK_OK: return "ok";
    case SK_ERR_MEMORY: return "memory";
    case SK_ERR_TYPE: return "type";
    case SK_ERR_VALUE: return "value";
    case SK_ERR_TRACE: return "trace";
    case SK_ERR_SYNTAX: return "syntax";
    case SK_ERR_INVALID: return "invalid";
    case SK_ERR_UNSUPPORTED: return "unsupported";
    case SK_ERR_FAULT: return "fault";
    case SK_ERR_DEVICE: return "device";
    case SK_ERR_INTERRUPTED: return "interrupted";
    case SK_ERR_IO: return "io";
    }
    return "unknown";
}
