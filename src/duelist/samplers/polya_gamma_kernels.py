"""Polya-Gamma variates inside kernels.

PG(b, c) is the law of sum_k g_k / (d_k + c^2/2), g_k ~ Gamma(b, 1), d_k = 2 pi^2 (k - 1/2)^2. It makes the logistic
likelihood Gaussian: cosh(u/2)^-b = E[exp(-w u^2/2)] for w ~ PG(b, 0), and w given u is PG(b, u).

Two schemes:
* PG(1, c), exactly, by Devroye's alternating series as given by Polson, Scott & Windle (2013); PG(b, c) for small whole
  b is a sum of those.
* any real b > 0, in constant time: the first terms of the sum as they stand, the rest as one gamma variate with the rest's
  mean and variance. The law of that truncated sum is not PG(b, c), but it turns exp(-w u^2/2) into a function of u in
  closed form (`log_cosh_error` is the difference of the logarithms), so a Metropolis step removes the error.
"""

from __future__ import annotations

import math

from duelist.core.compiled import part
from duelist.samplers.random_kernels import Tape, exponential, gamma, normal, uniform

_SPLIT = 0.64  # where the two forms of the series meet, the value of Devroye that keeps rejections below 0.1 %
_ALWAYS_LEFT = 30.0  # beyond this tilt the right piece has probability below 1e-100
_TERMS = 6
_RATE = 2.0 * math.pi * math.pi
# Mean and variance of the rest: those of PG(1, 0), 1/4 and 1/24, less those of the terms that are kept.
_REST_MEAN = 0.25 - sum(1.0 / (_RATE * (k - 0.5) ** 2) for k in range(1, _TERMS + 1))
_REST_VARIANCE = 1.0 / 24.0 - sum(1.0 / (_RATE * (k - 0.5) ** 2) ** 2 for k in range(1, _TERMS + 1))
_REST_RATE = _REST_MEAN / _REST_VARIANCE
_REST_SHAPE = _REST_MEAN * _REST_RATE


@part
def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x * math.sqrt(0.5))


@part
def _series_term(n: int, x: float) -> float:
    """The n-th coefficient of the alternating series of the Jacobi density at x."""
    k = n + 0.5
    if x > _SPLIT:
        return math.pi * k * math.exp(-0.5 * k * k * math.pi * math.pi * x)
    return math.pi * k * math.exp(-1.5 * math.log(0.5 * math.pi * x) - 2.0 * k * k / x)


@part
def _truncated_inverse_gaussian(tape: Tape, z: float) -> float:
    """Inverse Gaussian of mean 1/z and shape 1, on (0, _SPLIT]."""
    if z * _SPLIT < 1.0:
        while True:
            first, second = exponential(tape), exponential(tape)
            while first * first > 2.0 * second / _SPLIT:
                first, second = exponential(tape), exponential(tape)
            x = _SPLIT / ((1.0 + _SPLIT * first) * (1.0 + _SPLIT * first))
            if uniform(tape) <= math.exp(-0.5 * z * z * x):
                return x
    mean = 1.0 / z
    while True:
        y = normal(tape)
        y = y * y
        # The smaller root of Michael, Schucany & Haas, in a form without cancellation.
        x = mean / (1.0 + 0.5 * mean * y + math.sqrt(mean * y + 0.25 * mean * mean * y * y))
        if uniform(tape) > mean / (mean + x):
            x = mean * mean / x
        if x <= _SPLIT:
            return x


@part
def polya_gamma_one(tape: Tape, c: float) -> float:
    """One exact draw of PG(1, c)."""
    z = 0.5 * abs(c)
    rate = math.pi * math.pi / 8.0 + 0.5 * z * z
    if z > _ALWAYS_LEFT:
        right = 0.0
    else:
        mass_right = 0.5 * math.pi / rate * math.exp(-rate * _SPLIT)
        root = math.sqrt(1.0 / _SPLIT)
        mass_left = 2.0 * (
            math.exp(-z) * _normal_cdf(root * (_SPLIT * z - 1.0)) + math.exp(z) * _normal_cdf(-root * (_SPLIT * z + 1.0))
        )
        right = mass_right / (mass_right + mass_left)
    while True:
        x = _SPLIT + exponential(tape) / rate if uniform(tape) < right else _truncated_inverse_gaussian(tape, z)
        total = _series_term(0, x)
        y = uniform(tape) * total
        n = 0
        while True:
            n += 1
            if n % 2 == 1:
                total -= _series_term(n, x)
                if y <= total:
                    return 0.25 * x
            else:
                total += _series_term(n, x)
                if y > total:
                    break


@part
def polya_gamma_truncated(tape: Tape, b: float, c: float) -> float:
    """One draw of the truncated sum that stands for PG(b, c), b any positive number."""
    tilt = 0.5 * c * c
    total = gamma(tape, b * _REST_SHAPE) / (_REST_RATE + tilt)
    for k in range(1, _TERMS + 1):
        total += gamma(tape, b) / (_RATE * (k - 0.5) ** 2 + tilt)
    return total


@part
def log_cosh_error(u: float) -> float:
    """Log cosh(u/2) less the logarithm of what the truncated sum (b = 1) puts in its place; 9e-7 at u = 5."""
    tilt = 0.5 * u * u
    replaced = _REST_SHAPE * math.log1p(tilt / _REST_RATE)
    for k in range(1, _TERMS + 1):
        replaced += math.log1p(tilt / (_RATE * (k - 0.5) ** 2))
    half = 0.5 * abs(u)
    return half + math.log1p(math.exp(-2.0 * half)) - math.log(2.0) - replaced
