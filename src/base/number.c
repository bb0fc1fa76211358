/* number.c - floats as text and small float formats.
 *
 * The C library's printf and strtod round correctly but spell the decimal point as the process's locale says. Both
 * directions therefore exchange only digits and an exponent with it ("12345e-4"), and the point is placed here.
 */
#include "base/base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Digits past these cannot change a rounding other than by being non-zero: the longest exact midpoint of two doubles
 * has 768 significant decimal digits. */
#define DIGITS_MAX 800

static int digit_value(char c, int base)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (base == 16 && c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (base == 16 && c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool is_word_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The optional exponent at `s`: returns the character after it and adds its value, clamped, to *e. */
static const char *read_exponent(const char *s, char letter, long *e)
{
    if (*s != letter && *s != letter - 'a' + 'A')
        return s;
    const char *t = s + 1;
    const bool negative = *t == '-';
    t += *t == '-' || *t == '+';
    if (digit_value(*t, 10) < 0)
        return s;
    long x = 0;
    for (; digit_value(*t, 10) >= 0; t++)
        x = x < 100000000 ? x * 10 + digit_value(*t, 10) : x;
    *e += negative ? -x : x;
    return t;
}

static const char *read_digits(const char *s, int base, double *out)
{
    char text[DIGITS_MAX + 40] = "0x";
    size_t n = base == 16 ? 2 : 0;
    const size_t limit = n + DIGITS_MAX;
    const long per_digit = base == 16 ? 4 : 1;
    long e = 0;
    bool any = false, point = false, lost = false;
    const size_t first = n;

    for (;; s++) {
        if (*s == '.' && !point) {
            point = true;
            continue;
        }
        const int d = digit_value(*s, base);
        if (d < 0)
            break;
        any = true;
        if (point)
            e -= per_digit;
        if (n == first && d == 0)
            continue; /* a leading zero */
        if (n < limit) {
            text[n++] = *s;
        } else {
            lost = lost || d != 0;
            e += per_digit;
        }
    }
    if (!any)
        return NULL;
    if (lost) {
        text[n++] = '1';
        e -= per_digit;
    }
    s = read_exponent(s, base == 16 ? 'p' : 'e', &e);
    if (n == first)
        text[n++] = '0';
    (void)snprintf(text + n, sizeof text - n, "%c%ld", base == 16 ? 'p' : 'e', e);
    *out = strtod(text, NULL);
    return s;
}

const char *read_f64(const char *s, double *out)
{
    const bool negative = *s == '-';
    s += *s == '-' || *s == '+';
    double x = 0;
    if (strncmp(s, "inf", 3) == 0 && !is_word_char(s[3])) {
        x = (double)INFINITY;
        s += 3;
    } else if (strncmp(s, "nan", 3) == 0 && !is_word_char(s[3])) {
        x = (double)NAN;
        s += 3;
    } else {
        const bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
        s = read_digits(hex ? s + 2 : s, hex ? 16 : 10, &x);
        if (!s)
            return NULL;
    }
    *out = negative ? -x : x;
    return s;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* A decimal number 0.d1d2d3... * 10^(exponent + 1), so d1 counts 10^exponent. */
struct decimal {
    char digits[24];
    int n, exponent;
};

/* x, finite and positive, correctly rounded to n digits. */
static struct decimal decimal_of(double x, int n)
{
    char text[48];
    struct decimal d = {.n = n};
    (void)snprintf(text, sizeof text, "%.*e", n - 1, x);
    int k = 0;
    const char *s = text;
    for (; *s != 'e'; s++)
        if (*s >= '0' && *s <= '9') /* skips the locale's point, however long */
            d.digits[k++] = *s;
    d.exponent = (int)strtol(s + 1, NULL, 10);
    return d;
}

static void place_point(char *out, size_t cap, bool negative, const struct decimal *d, int sci_from)
{
    char text[48];
    size_t n = 0;
    const int e = d->exponent;
    if (negative)
        text[n++] = '-';
    if (e < -4 || e >= sci_from) {
        text[n++] = d->digits[0];
        if (d->n > 1)
            text[n++] = '.';
        for (int i = 1; i < d->n; i++)
            text[n++] = d->digits[i];
        (void)snprintf(text + n, sizeof text - n, "e%d", e);
    } else {
        for (int i = e < 0 ? e : 0; i < d->n || i <= e + 1; i++) {
            if (i == e + 1)
                text[n++] = '.';
            text[n++] = i < 0 || i >= d->n ? '0' : d->digits[i];
        }
        text[n] = 0;
    }
    (void)snprintf(out, cap, "%s", text);
}

/* The value of d as strtod and strtof see it. */
static void decimal_text(char *text, size_t cap, const struct decimal *d)
{
    (void)snprintf(text, cap, "%.*se%d", d->n, d->digits, d->exponent - d->n + 1);
}

static bool special(char *out, size_t cap, double x)
{
    const char *text = NULL;
    if (isnan(x))
        text = "nan";
    else if (isinf(x))
        text = signbit(x) ? "-inf" : "inf";
    else if (x == 0)
        text = signbit(x) ? "-0.0" : "0.0";
    if (text)
        (void)snprintf(out, cap, "%s", text);
    return text;
}

/* Floats of up to six digits, none of them below 10^-3: most of those that people write, without a trial of printf and
 * strtod for each number of digits. With six digits a decimal is so far from every other that its nearest f32 has no
 * shorter one, and so far from the middle of two f32 that one division rounds right. */
static bool short_f32(char *out, float x)
{
    const double a = fabs((double)x);
    if (!(a >= 0.001 && a < 1e6))
        return false;
    static const double scale[] = {1, 10, 100, 1000, 1e4, 1e5, 1e6};
    for (unsigned d = 0; d < 7; d++) {
        const double scaled = a * scale[d] + 0.5;
        if (scaled >= 1e6)
            return false;
        uint32_t digits = (uint32_t)scaled;
        if ((float)(digits / scale[d]) != fabsf(x))
            continue;
        char reversed[16];
        unsigned n = 0;
        if (d == 0)
            reversed[n++] = '0';
        for (unsigned k = 0; k < d; k++, digits /= 10)
            reversed[n++] = (char)('0' + digits % 10);
        reversed[n++] = '.';
        do {
            reversed[n++] = (char)('0' + digits % 10);
            digits /= 10;
        } while (digits);
        if (x < 0)
            *out++ = '-';
        while (n)
            *out++ = reversed[--n];
        *out = 0;
        return true;
    }
    return false;
}

void text_f32(char *out, size_t cap, float x)
{
    if (special(out, cap, (double)x) || (cap >= 40 && short_f32(out, x)))
        return;
    const float a = fabsf(x);
    struct decimal d = {0};
    for (int n = 1; n <= 9; n++) {
        char text[48];
        d = decimal_of((double)a, n);
        decimal_text(text, sizeof text, &d);
        /* Whoever reads it rounds once, or as read_f64 and a cast do twice: both must give x. */
        if (strtof(text, NULL) == a && (float)strtod(text, NULL) == a)
            break;
    }
    place_point(out, cap, signbit(x), &d, 9);
}

void text_f64(char *out, size_t cap, double x)
{
    if (special(out, cap, x))
        return;
    const double a = fabs(x);
    struct decimal d = {0};
    for (int n = 1; n <= 17; n++) {
        char text[48];
        d = decimal_of(a, n);
        decimal_text(text, sizeof text, &d);
        if (strtod(text, NULL) == a)
            break;
    }
    place_point(out, cap, signbit(x), &d, 16);
}

/* ---- small floats ---------------------------------------------------------------------------------------------- */

/* x in a 16-bit format with `mantissa` stored bits and the exponent in the 15 - mantissa bits above them. */
static uint16_t small_from_f64(double x, int mantissa)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    const int bias = (1 << (14 - mantissa)) - 1;
    const uint16_t inf = (uint16_t)((2 * bias + 1) << mantissa);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    const uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    int shift = 52 - mantissa;

    if (exponent == 1024 && fraction) {
        const uint64_t quiet = (uint64_t)1 << (mantissa - 1);
        return (uint16_t)(sign | inf | quiet | fraction >> shift);
    }
    if (exponent > bias)
        return sign | inf;

    /* Below, q is the result's magnitude before rounding; a carry out of its mantissa moves the exponent up, and out
     * of the largest exponent makes it infinite, as it should. */
    uint64_t m = fraction;
    uint64_t q = 0;
    if (exponent > -bias) {
        q = (uint64_t)(exponent + bias) << mantissa;
    } else {
        m |= (uint64_t)1 << 52;
        shift += 1 - bias - exponent;
        if (shift > 53)
            return sign; /* below half of the smallest denormal */
    }
    q += m >> shift;
    const uint64_t rest = m & (((uint64_t)1 << shift) - 1);
    const uint64_t half = (uint64_t)1 << (shift - 1);
    q += rest > half || (rest == half && (q & 1));
    return (uint16_t)(sign | q);
}

uint16_t f16_from_f64(double x)
{
    return small_from_f64(x, 10);
}

uint16_t bf16_from_f64(double x)
{
    return small_from_f64(x, 7);
}

uint16_t f16_from_f32(float x)
{
    return small_from_f64((double)x, 10);
}

uint16_t bf16_from_f32(float x)
{
    return small_from_f64((double)x, 7);
}

float f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t exponent = h >> 10 & 31;
    const uint32_t fraction = h & 0x3ff;
    if (exponent == 31)
        return f32_bits(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0));
    if (exponent == 0) {
        const float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return f32_bits(sign | (exponent + 112) << 23 | fraction << 13);
}
