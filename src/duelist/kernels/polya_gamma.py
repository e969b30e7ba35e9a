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
from typing import NamedTuple

import numpy as np

from duelist.kernels.actions import utilities_into
from duelist.kernels.compile import entry, inner
from duelist.kernels.linalg.factors import cholesky_into, solve_cholesky
from duelist.kernels.linalg.vectors import copy_into
from duelist.kernels.logistic import Likelihood, add_weighted_gram
from duelist.kernels.philox import RandomSource, RandomStream, exponential, gamma, normal, open_stream, uniform
from duelist.kernels.potential import LinearTerms, add_feel_good, most_arms, scratch_for, tilts
from duelist.typing import FloatArray

_SPLIT = 0.64  # where the two forms of the series meet, the value of Devroye that keeps rejections below 0.1 %
_ALWAYS_LEFT = 30.0  # beyond this tilt the right piece has probability below 1e-100
_TERMS = 6
_RATE = 2.0 * math.pi * math.pi
# Mean and variance of the rest: those of PG(1, 0), 1/4 and 1/24, less those of the terms that are kept.
_REST_MEAN = 0.25 - sum(1.0 / (_RATE * (k - 0.5) ** 2) for k in range(1, _TERMS + 1))
_REST_VARIANCE = 1.0 / 24.0 - sum(1.0 / (_RATE * (k - 0.5) ** 2) ** 2 for k in range(1, _TERMS + 1))
_REST_RATE = _REST_MEAN / _REST_VARIANCE
_REST_SHAPE = _REST_MEAN * _REST_RATE


@inner
def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x * math.sqrt(0.5))


@inner
def _series_term(n: int, x: float) -> float:
    """The n-th coefficient of the alternating series of the Jacobi density at x."""
    k = n + 0.5
    if x > _SPLIT:
        return math.pi * k * math.exp(-0.5 * k * k * math.pi * math.pi * x)
    return math.pi * k * math.exp(-1.5 * math.log(0.5 * math.pi * x) - 2.0 * k * k / x)


@inner
def _truncated_inverse_gaussian(stream: RandomStream, z: float) -> float:
    """Inverse Gaussian of mean 1/z and shape 1, on (0, _SPLIT]."""
    if z * _SPLIT < 1.0:
        while True:
            first, second = exponential(stream), exponential(stream)
            while first * first > 2.0 * second / _SPLIT:
                first, second = exponential(stream), exponential(stream)
            x = _SPLIT / ((1.0 + _SPLIT * first) * (1.0 + _SPLIT * first))
            if uniform(stream) <= math.exp(-0.5 * z * z * x):
                return x
    mean = 1.0 / z
    while True:
        y = normal(stream)
        y = y * y
        # The smaller root of Michael, Schucany & Haas, in a form without cancellation.
        x = mean / (1.0 + 0.5 * mean * y + math.sqrt(mean * y + 0.25 * mean * mean * y * y))
        if uniform(stream) > mean / (mean + x):
            x = mean * mean / x
        if x <= _SPLIT:
            return x


@inner
def polya_gamma_one(stream: RandomStream, c: float) -> float:
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
        x = _SPLIT + exponential(stream) / rate if uniform(stream) < right else _truncated_inverse_gaussian(stream, z)
        total = _series_term(0, x)
        y = uniform(stream) * total
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


@inner
def polya_gamma_truncated(stream: RandomStream, b: float, c: float) -> float:
    """One draw of the truncated sum that stands for PG(b, c), b any positive number."""
    tilt = 0.5 * c * c
    total = gamma(stream, b * _REST_SHAPE) / (_REST_RATE + tilt)
    for k in range(1, _TERMS + 1):
        total += gamma(stream, b) / (_RATE * (k - 0.5) ** 2 + tilt)
    return total


@inner
def log_cosh_error(u: float) -> float:
    """Log cosh(u/2) less the logarithm of what the truncated sum (b = 1) puts in its place; 9e-7 at u = 5."""
    tilt = 0.5 * u * u
    replaced = _REST_SHAPE * math.log1p(tilt / _REST_RATE)
    for k in range(1, _TERMS + 1):
        replaced += math.log1p(tilt / (_RATE * (k - 0.5) ** 2))
    half = 0.5 * abs(u)
    return half + math.log1p(math.exp(-2.0 * half)) - math.log(2.0) - replaced


_SUM_UP_TO = 3.0  # whole counts up to here are sums of exact PG(1, c); above, the truncated sum is cheaper


@inner
def _is_summed(b: float) -> bool:
    return b <= _SUM_UP_TO and b == math.floor(b)


class _Tangent(NamedTuple):
    """The Feel-Good tilt linearised at the mode, and working memory for its value elsewhere."""

    slope: FloatArray  # (dim,)
    utilities: FloatArray  # (n_arms,)
    unused: FloatArray  # (dim,) a gradient that is not looked at


@inner
def _not_gaussian(
    theta: FloatArray, logits: FloatArray, tangent: _Tangent, extra: float, lane: int, chain: int, terms: LinearTerms
) -> float:
    """Logarithm of target / proposal target at theta, with logits (n,) of all contrasts there."""
    squared = 0.0
    linear = 0.0
    for i in range(theta.shape[0]):
        squared += theta[i] * theta[i]
        linear += tangent.slope[i] * theta[i]
    if squared > terms.radius * terms.radius:
        return -math.inf
    likelihood = terms.likelihood
    value: float = 0.5 * extra * squared
    for p in range(logits.shape[0]):
        b = likelihood.eta[lane] * likelihood.totals[lane, p]
        if not _is_summed(b):
            value -= b * log_cosh_error(logits[p])
    if tilts(lane, terms.tilt):
        value += linear - add_feel_good(tangent.unused, theta, lane, chain, terms.tilt, tangent.utilities)
    return value


@inner
def _linear_part(linear: FloatArray, tangent: _Tangent, mode: FloatArray, lane: int, chain: int, terms: LinearTerms) -> None:
    """Fill the tangent's slope with the gradient of the tilt at the mode, and `linear` with precision x mean."""
    slope = tangent.slope
    slope[:] = 0.0
    add_feel_good(slope, mode, lane, chain, terms.tilt, tangent.utilities)
    likelihood = terms.likelihood
    for i in range(mode.shape[0]):
        total = 0.0
        for p in range(likelihood.n_rows[lane]):
            total += (0.5 * likelihood.totals[lane, p] - likelihood.losses[lane, p]) * likelihood.contrasts[lane, i, p]
        linear[i] = likelihood.eta[lane] * total - slope[i]


@inner
def _draw_weights(weights: FloatArray, logits: FloatArray, lane: int, likelihood: Likelihood, stream: RandomStream) -> bool:
    """Fill `weights` (n,) with Polya-Gamma variates; False at a logit that is not finite, which would never be accepted."""
    for p in range(logits.shape[0]):
        if not math.isfinite(logits[p]):
            return False
        b = likelihood.eta[lane] * likelihood.totals[lane, p]
        weights[p] = 0.0
        if _is_summed(b):
            for _ in range(int(b)):
                weights[p] += polya_gamma_one(stream, logits[p])
        else:
            weights[p] = polya_gamma_truncated(stream, b, logits[p])
    return True


@inner
def _draw_gaussian(
    mean: FloatArray, noise: FloatArray, linear: FloatArray, precision: FloatArray, factor: FloatArray, stream: RandomStream
) -> bool:
    """Fill `mean` with precision^-1 linear and `noise` with N(0, precision^-1); False if that is not positive definite."""
    dim = linear.shape[0]
    if not cholesky_into(factor, precision):
        return False
    copy_into(mean, linear)
    solve_cholesky(factor, mean)
    # L^-T xi by back substitution has covariance (L L^T)^-1.
    for i in range(dim):
        noise[i] = normal(stream)
    for i in range(dim - 1, -1, -1):
        entry = noise[i]
        for k in range(i + 1, dim):
            entry -= factor[k, i] * noise[k]
        noise[i] = entry / factor[i, i]
    return True


@inner
def _all_gaussian(lane: int, terms: LinearTerms) -> bool:
    """Whether theta given the Polya-Gamma variables is exactly Gaussian: no tilt, no ball, no truncated sums."""
    if tilts(lane, terms.tilt) or terms.radius < math.inf:
        return False
    likelihood = terms.likelihood
    for p in range(likelihood.n_rows[lane]):  # noqa: SIM110 - kernels have no generators
        if not _is_summed(likelihood.eta[lane] * likelihood.totals[lane, p]):
            return False
    return True


@entry
def polya_gamma_lanes(
    position: FloatArray,
    mode: FloatArray,
    source: RandomSource,
    sweeps: int,
    extra: float,
    terms: LinearTerms,
    tried: FloatArray,
) -> int:
    """Sweep every chain in place. Returns -1, or the first lane where a number is not finite.

    `tried` (lanes, chains) is filled with the mean number of points that a sweep tried.
    """
    lanes, chains, dim = position.shape
    scratch, more = scratch_for(terms), scratch_for(terms)
    precision, factor = np.empty((dim, dim)), np.empty((dim, dim))
    linear, tangent = np.empty(dim), _Tangent(np.empty(dim), np.empty(most_arms(terms.tilt)), np.empty(dim))
    mean, noise, proposal = np.empty(dim), np.empty(dim), np.empty(dim)
    for lane in range(lanes):
        n = terms.likelihood.n_rows[lane]
        contrasts = terms.likelihood.contrasts[lane]
        logits, new_logits, weights, scaled = scratch[0, :n], scratch[1, :n], more[0, :n], more[1, :n]
        plain = _all_gaussian(lane, terms)
        for chain in range(chains):
            theta = position[lane, chain]
            stream = open_stream(source.keys[lane], source.round_, source.first_substream + chain)
            _linear_part(linear, tangent, mode[lane], lane, chain, terms)
            utilities_into(logits, contrasts, theta)
            current = _not_gaussian(theta, logits, tangent, extra, lane, chain, terms)
            tried[lane, chain] = 0.0
            for _ in range(sweeps):
                if not math.isfinite(current) or not _draw_weights(weights, logits, lane, terms.likelihood, stream):
                    return lane
                precision[:] = 0.0
                for i in range(dim):
                    precision[i, i] = terms.precision[lane] + extra
                add_weighted_gram(precision, contrasts, weights, scaled)
                if not _draw_gaussian(mean, noise, linear, precision, factor, stream):
                    return lane
                level = current + math.log(uniform(stream))
                # A quarter turn is an independent draw; the slice starts from any angle and shrinks towards no turn.
                angle = 0.5 * math.pi if plain else 2.0 * math.pi * uniform(stream)
                low, high = angle - 2.0 * math.pi, angle
                while True:
                    for i in range(dim):
                        proposal[i] = mean[i] + (theta[i] - mean[i]) * math.cos(angle) + noise[i] * math.sin(angle)
                    utilities_into(new_logits, contrasts, proposal)
                    current = _not_gaussian(proposal, new_logits, tangent, extra, lane, chain, terms)
                    tried[lane, chain] += 1.0 / sweeps
                    # An interval that shrank to nothing is back where it began, to the last digit.
                    if plain or current > level or high - low < 1e-12 or math.isnan(current):
                        break
                    if angle < 0.0:
                        low = angle
                    else:
                        high = angle
                    angle = low + (high - low) * uniform(stream)
                copy_into(theta, proposal)
                copy_into(logits, new_logits)
    return -1
