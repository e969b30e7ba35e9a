"""Numbers about final regrets: summaries, paired differences, growth exponents, each with its uncertainty.

Intervals are 95 %. Bootstraps resample trials with a fixed generator, so that the same table gives the same report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from duelist.core.checks import FloatArray
from duelist.core.errors import InvalidInputError
from duelist.experiments.series import Series

RESAMPLES = 4000
_LEVEL = 0.95


class Summary(NamedTuple):
    """Final regret over trials. `sd` is that of the trials, not of the mean."""

    mean: float
    sd: float
    median: float
    q05: float
    q95: float
    weak: float


class Interval(NamedTuple):
    """An estimate and its 95 % interval."""

    estimate: float
    low: float
    high: float


class Difference(NamedTuple):
    """Mean of trial-by-trial differences, with the t interval and the bootstrap interval."""

    t: Interval
    bootstrap: Interval


def summary(series: Series) -> Summary:
    """Mean, standard deviation, median, 5 % and 95 % quantiles, and mean weak regret."""
    low, median, high = np.quantile(series.final, [0.05, 0.5, 0.95])
    sd = spread(series.final)
    return Summary(float(series.final.mean()), sd, float(median), float(low), float(high), float(series.weak.mean()))


def spread(values: FloatArray) -> float:
    """Standard deviation over trials; 0 of a single one."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def paired_difference(a: Series, b: Series) -> Difference:
    """Final regret of `a` minus that of `b` on the same instances: below zero, `a` did better.

    Pairing removes what the instances have in common: an instance that is hard for one policy is hard for the other.
    """
    if a.trials != b.trials or a.environment != b.environment:
        raise InvalidInputError(f"{a.label} and {b.label} did not play the same instances, so they cannot be paired.")
    difference = a.final - b.final
    n, mean = len(difference), float(difference.mean())
    if n < 2:
        nothing_known = Interval(mean, -math.inf, math.inf)
        return Difference(nothing_known, nothing_known)
    half = float(stats.t.ppf(0.5 + _LEVEL / 2, n - 1)) * spread(difference) / math.sqrt(n)
    means = difference[_resamples(n)].mean(axis=1)
    return Difference(Interval(mean, mean - half, mean + half), _interval(mean, means))


def growth_exponent(series: Series) -> Interval:
    """Slope b of log mean regret = a + b log t by least squares over the last nine tenths of the rounds.

    1/2 is the rate of the paper's bounds, 1 is linear, 0 is bounded. The first tenth is left out: there every policy
    explores and pays about the same each round.
    """
    late = series.rounds >= series.rounds[-1] / 10
    log_t = np.log(series.rounds[late])
    centred = log_t - log_t.mean()
    curves = series.regret[:, late]

    def slope(mean_regret: FloatArray) -> FloatArray:
        # Regret of zero has no logarithm; it is far below one duel's regret and does not occur past the first rounds.
        return np.asarray(np.log(np.maximum(mean_regret, 1e-12)) @ centred / (centred @ centred))

    if len(log_t) < 2:
        return Interval(math.nan, -math.inf, math.inf)
    slopes = slope(np.array([curves[rows].mean(axis=0) for rows in _resamples(len(curves))[:1000]]))
    return _interval(float(slope(curves.mean(axis=0))), slopes)


def share_with_smallest_spread(one: Series, others: Sequence[Series]) -> float:
    """Share of bootstrap resamples of the trials in which `one` has a smaller standard deviation than all others."""
    n = len(one.final)
    if n < 2 or not others:
        return math.nan
    rows = _resamples(n)
    smallest = np.min([other.final[rows].std(axis=1, ddof=1) for other in others], axis=0)
    return float((one.final[rows].std(axis=1, ddof=1) < smallest).mean())


def _resamples(n: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.random.default_rng(0).integers(0, n, size=(RESAMPLES, n))


def _interval(estimate: float, resampled: FloatArray) -> Interval:
    low, high = np.quantile(resampled, [0.5 - _LEVEL / 2, 0.5 + _LEVEL / 2])
    return Interval(estimate, float(low), float(high))
