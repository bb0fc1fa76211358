/* value.c - numbers of the scalar types as text. */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "ir/ir.h"

size_t value_size(sk_type scalar)
{
    return scalar_info[scalar].bytes;
}

const char *value_name(sk_type scalar)
{
    return scalar_info[scalar].name;
}

bool value_type(const char *name, size_t n, sk_type *out)
{
    for (unsigned s = 1; s < S_COUNT; s++)
        if (strlen(scalar_info[s].name) == n && memcmp(scalar_info[s].name, name, n) == 0) {
            *out = (sk_type)s;
            return true;
        }
    return false;
}

static bool read_float(const char *text, sk_type scalar, void *out)
{
    double x = 0;
    const char *end = read_f64(text, &x);
    if (!end || *end)
        return false;
    float f = (float)x;
    const uint16_t h = scalar == SK_F16 ? f16_from_f64(x) : bf16_from_f64(x);
    if (scalar == SK_F32)
        memcpy(out, &f, sizeof f);
    else
        memcpy(out, &h, sizeof h);
    if (scalar != SK_F32)
        f = scalar == SK_F16 ? f16_to_f32(h) : bf16_to_f32(h);
    return isfinite(f) || !isfinite(x); /* a number too large for the type is none of it */
}

static bool read_integer(const char *text, sk_type scalar, void *out)
{
    const unsigned bits = scalar_info[scalar].bits;
    const bool is_signed = scalar_info[scalar].class_ == CLASS_S;
    const bool negative = *text == '-';
    char *end = NULL;
    errno = 0;
    text += negative || *text == '+';
    if (*text < '0' || *text > '9')
        return false;
    const uint64_t magnitude = strtoull(text, &end, text[0] == '0' && text[1] == 'x' ? 16 : 10);
    if (errno || *end)
        return false;
    const uint64_t top = (uint64_t)1 << (bits - 1);
    const uint64_t limit = is_signed ? (negative ? top : top - 1) : negative ? 0 : top + (top - 1);
    if (magnitude > limit)
        return false;
    const uint64_t value = negative ? 0 - magnitude : magnitude;
    memcpy(out, &value, scalar_info[scalar].bytes); /* little-endian, as all that Spork runs on */
    return true;
}

bool value_read(const char *text, size_t n, sk_type scalar, void *out)
{
    char copy[64];
    if (n == 0 || n >= sizeof copy)
        return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    if (scalar_info[scalar].class_ == CLASS_F)
        return read_float(copy, scalar, out);
    if (scalar == SK_BOOL) {
        const bool yes = strcmp(copy, "true") == 0 || strcmp(copy, "1") == 0;
        if (!yes && strcmp(copy, "false") != 0 && strcmp(copy, "0") != 0)
            return false;
        *(uint8_t *)out = yes;
        return true;
    }
    return read_integer(copy, scalar, out);
}

void value_print(FILE *f, sk_type scalar, const void *value)
{
    char text[48];
    uint64_t bits = 0;
    memcpy(&bits, value, scalar_info[scalar].bytes);
    switch (scalar_info[scalar].class_) {
    case CLASS_F:
        text_f32(text, sizeof text,
                 scalar == SK_F16    ? f16_to_f32((uint16_t)bits)
                 : scalar == SK_BF16 ? bf16_to_f32((uint16_t)bits)
                                     : f32_bits((uint32_t)bits));
        (void)fputs(text, f);
        break;
    case CLASS_B: (void)fputs(bits ? "true" : "false", f); break;
    case CLASS_S: {
        const unsigned unused = 64u - scalar_info[scalar].bits;
        (void)fprintf(f, "%" PRId64, (int64_t)(bits << unused) >> unused);
        break;
    }
    default: (void)fprintf(f, "%" PRIu64, bits); break;
    }
}
