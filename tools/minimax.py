"""Derives src/ir/math_poly.h: the polynomials of src/ir/math.c.   usage: python minimax.py [NAME…]

Each row asks for p(x) = c0 + c1 x + … that minimises max |p(x) - f(x)| * w(x) on an interval. w turns the error of
p into the relative error of the function built on it. Coefficients are rounded to the format from the lowest up, the
rest being fitted anew after each, so that later ones absorb the rounding of earlier ones.
Printed with each row: log2 of the weighted error that remains. Needs mpmath and numpy.
"""
import struct
import sys

import numpy as np
from mpmath import mp, mpf, cos, cosh, sin, sinh, tan, asin, atan, exp, log, pi, sqrt

mp.dps = 40


def fit(points, f, w, first, count):
    """Coefficients of x^first … x^(first+count-1), minimax on the grid: least squares whose weights grow where the
    error is large (Lawson), which unlike an exchange needs no alternation and so bears a zero of w inside."""
    a = points[:, None] ** np.arange(first, first + count) * w[:, None]
    b = f * w
    weight = np.full(len(points), 1.0)
    best, least = None, np.inf
    for _ in range(400):
        root = np.sqrt(weight)
        scale = np.abs(a).max(axis=0)
        c = np.linalg.lstsq(a / scale * root[:, None], b * root, rcond=None)[0] / scale
        err = np.abs(a @ c - b)
        if err.max() < least:
            best, least = c, err.max()
        weight *= err / err.max() + 1e-3
        weight /= weight.max()
    return best


def derive(f, w, lo, hi, count, fmt="f", grid=500):
    """Coefficients in the format, and the largest weighted error that they leave."""
    lo, hi = mpf(lo), mpf(hi)
    points = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * (i + mpf(1) / 2) / grid) for i in range(grid)]
    rest = [f(x) for x in points]
    weight = np.array([float(abs(w(x))) for x in points])
    x = np.array([float(p) for p in points])
    done = []
    for k in range(count):
        c = fit(x, np.array([float(r) for r in rest]), weight, k, count - k)
        done.append(struct.unpack(fmt, struct.pack(fmt, c[0]))[0])
        rest = [r - mpf(done[-1]) * p**k for p, r in zip(points, rest)]
    return done, max(abs(float(r)) * v for r, v in zip(rest, weight))


LN2 = log(mpf(2))
THIRD = mpf(1) / 3
HALF_LN2 = LN2 / 2 * mpf("1.0001")  # the nearest n is found in f32, so r goes a little past the half
PIO2 = pi / 2 * mpf("1.0001")


def odd(fn):
    """fn(r) = r + r z p(z), z = r r: the polynomial and its weight."""
    return (lambda z: (fn(sqrt(z)) / sqrt(z) - 1) / z), (lambda z: z * sqrt(z) / fn(sqrt(z)))


def even(fn):
    """fn(r) = 1 + z p(z)."""
    return (lambda z: (fn(sqrt(z)) - 1) / z), (lambda z: z / fn(sqrt(z)))


EXP = (lambda r: (exp(r) - 1 - r) / r**2), (lambda r: r**2 / exp(r))
EXP2 = (lambda r: (2**r - 1) / r), (lambda r: r / 2**r)
LOG = (lambda f: (log(1 + f) - f) / f**2), (lambda f: f**2 / log(1 + f))
# log2 and log10 are f c + f p(f) with c a float near the derivative at 0, so that the rounding of p is felt less
LOG2 = (lambda f: (log(1 + f) / LN2 - f) / f), (lambda f: f * LN2 / log(1 + f))
LOG10_E = mpf("0.4342944920063018798828125")  # MATH_LOG10_E
LOG10 = (lambda f: log(1 + f) / log(10) / f - LOG10_E), (lambda f: f * log(10) / log(1 + f))

ROWS = {  # name: (function, weight), low, high, number of coefficients, format
    "EXP": (EXP, -HALF_LN2, HALF_LN2, 5, "f"),
    "fast_EXP": (EXP, -HALF_LN2, HALF_LN2, 4, "f"),
    "EXP2": (EXP2, -0.5, 0.5, 6, "f"),
    "fast_EXP2": (EXP2, -0.5, 0.5, 5, "f"),
    "LOG": (LOG, -THIRD, THIRD, 8, "f"),
    "LOG2": (LOG2, -THIRD, THIRD, 9, "f"),
    "LOG10": (LOG10, -THIRD, THIRD, 10, "f"),
    "SIN": (odd(sin), 0, (PIO2 / 2) ** 2, 3, "f"),
    "COS": (even(cos), 0, (PIO2 / 2) ** 2, 3, "f"),
    "fast_SIN": (odd(sin), 0, PIO2**2, 4, "f"),
    "TAN": (odd(tan), 0, (PIO2 / 2) ** 2, 6, "f"),
    "ASIN": (odd(asin), 0, 0.25, 5, "f"),
    "ATAN": (odd(atan), 0, 1, 8, "f"),
    "COSH": (even(cosh), 0, HALF_LN2**2, 3, "f"),
    "SINH": (odd(sinh), 0, HALF_LN2**2, 2, "f"),
    "POW_LOG2": (((lambda f: log(1 + f) / LN2 / f), (lambda f: f * LN2 / log(1 + f))), -THIRD, THIRD, 13, "d"),
    "POW_EXP2": (EXP2, -0.5, 0.5, 6, "d"),
}


def literal(c, fmt):
    """A C hexadecimal literal without trailing zeros."""
    mantissa, exponent = c.hex().split("p")
    mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}" + ("f" if fmt == "f" else "")


if __name__ == "__main__":
    for name in sys.argv[1:] or ROWS:
        (f, w), lo, hi, count, fmt = ROWS[name]
        c, err = derive(f, w, lo, hi, count, fmt)
        kind = "float" if fmt == "f" else "double"
        print(f"/* 2^{np.log2(err):.1f} */")
        print(f"static const {kind} math_poly_{name}[] = {{{', '.join(literal(k, fmt) for k in c)}}};")
