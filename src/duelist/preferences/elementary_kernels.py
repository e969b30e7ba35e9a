"""exp and log1p as straight-line arithmetic, so that a loop over contrasts runs several at a time.

A library call inside a loop keeps the compiler from using vector instructions; these two are written without calls and
without branches. On the ranges that the logistic likelihood needs they agree with NumPy to a few units in the last place.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from duelist.core.compiled import part

_LOG2_E = 1.0 / math.log(2.0)
# ln 2 in two parts (Cody & Waite): k * _LN2_HIGH is exact for |k| < 2^20, so the reduced argument keeps all its digits.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# Adding and taking away 1.5 * 2^52 rounds to a whole number, and leaves that number in the low bits of the sum.
_ROUNDER = 1.5 * 2.0**52
_EXPONENT_BIAS = 1023
_EXPONENT_SHIFT = 52
# e^-708 = 3e-308 is the last that is not subnormal. Beyond it the result stays there instead of falling to zero.
_LOWEST = -708.0
_SQRT2_MINUS_1 = math.sqrt(2.0) - 1.0
_LN2 = math.log(2.0)

# Taylor coefficients 1/k!: on |r| <= ln(2)/2 the rest after k = 13 is below 1e-17.
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13 = (1.0 / math.factorial(k) for k in range(2, 14))
# Coefficients of atanh(s) / s in s^2: on |s| <= 0.172 the rest after s^22 is below 1e-18.
_A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8, _A9, _A10, _A11 = (1.0 / (2 * k + 1) for k in range(1, 12))


def _bits_of_float(_context: Any, _value: Any) -> Any:
    """The 64 bits of a float as a whole number."""

    def generate(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


def _float_of_bits(_context: Any, _value: Any) -> Any:
    """The float with these 64 bits."""

    def generate(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


_bits: Any = intrinsic(_bits_of_float)
_float: Any = intrinsic(_float_of_bits)


@part
def exp_of_negative(x: float) -> float:
    """e^x for x <= 0, with e^-708 for anything below -708; NaN stays NaN."""
    x = _LOWEST if x < _LOWEST else x
    shifted = x * _LOG2_E + _ROUNDER
    k = shifted - _ROUNDER
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = _E13 * r + _E12
    p = p * r + _E11
    p = p * r + _E10
    p = p * r + _E9
    p = p * r + _E8
    p = p * r + _E7
    p = p * r + _E6
    p = p * r + _E5
    p = p * r + _E4
    p = p * r + _E3
    p = p * r + _E2
    power_of_two: float = _float((_bits(shifted) + _EXPONENT_BIAS) << _EXPONENT_SHIFT)
    return (1.0 + (r + r * r * p)) * power_of_two


@part
def log1p_of_fraction(e: float) -> float:
    """log(1 + e) for 0 <= e <= 1, as 2 atanh(s); from sqrt(2) - 1 on, ln 2 is split off to keep s small."""
    upper = e > _SQRT2_MINUS_1
    s = ((e - 1.0) if upper else e) / ((e + 3.0) if upper else (e + 2.0))
    w = s * s
    p = _A11 * w + _A10
    p = p * w + _A9
    p = p * w + _A8
    p = p * w + _A7
    p = p * w + _A6
    p = p * w + _A5
    p = p * w + _A4
    p = p * w + _A3
    p = p * w + _A2
    p = p * w + _A1
    return (_LN2 if upper else 0.0) + (2.0 * s + 2.0 * s * w * p)
