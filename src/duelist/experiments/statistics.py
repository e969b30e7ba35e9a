"""Numbers about the regret of one policy over trials, and about two policies on the same instances.

They work on a `Run` of `simulate` and on a `Series` of a result table alike. Intervals are 95 %. Bootstraps resample trials
with a fixed generator, so that the same runs give the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy import stats

from duelist.core.checks import one_of
from duelist.core.errors import InvalidInputError
from duelist.typing import FloatArray

RESAMPLES = 4000
_LEVEL = 0.95
_GROWTH_RESAMPLES = 1000  # a slope for each: enough for two digits of an interval


class Trials(Protocol):
    """Runs of one policy at one setting: what the numbers here are computed from."""

    @property
    def label(self) -> str:
        """What tables and figures call it."""

    @property
    def instances(self) -> tuple[Any, ...]:
        """What names the instances and their noise: two policies with equal ones can be compared trial by trial."""

    @property
    def rounds(self) -> Any:
        """(points,) round numbers of the curve, from 1."""

    @property
    def regret(self) -> FloatArray:
        """(trials, points) cumulative average regret."""

    @property
    def final_regret(self) -> FloatArray:
        """(trials,) cumulative average regret after the last round."""

    @property
    def final_weak_regret(self) -> FloatArray:
        """(trials,) regret of the better of the two arms after the last round."""


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


class Band(NamedTuple):
    """A curve over rounds and what is shaded around it, each (points,)."""

    middle: FloatArray
    low: FloatArray
    high: FloatArray


BandKind = Literal["sd", "se", "bootstrap", "quantiles"]
# What each kind of band shows, for titles and captions.
BANDS: dict[str, str] = {
    "sd": "mean ± 1 standard deviation",
    "se": "mean ± 1 standard error",
    "bootstrap": "mean with its 95 % bootstrap interval",
    "quantiles": "median with the 5 % and 95 % quantiles",
}


def spread(values: FloatArray) -> FloatArray:
    """Standard deviation over trials, the first axis, with n - 1 below the root; 0 of a single trial. The one definition here.

    Example:
        >>> float(spread(np.array([1.0, 3.0]))) == 2.0**0.5
        True
    """
    return np.asarray(values.std(axis=0, ddof=1 if len(values) > 1 else 0))


def standard_error(values: FloatArray) -> FloatArray:
    """Standard error of the mean over trials, the first axis."""
    return np.asarray(spread(values) / math.sqrt(len(values)))


def summary(runs: Trials) -> Summary:
    """Mean, standard deviation, median, 5 % and 95 % quantiles, and mean weak regret."""
    final = runs.final_regret
    low, median, high = np.quantile(final, [0.05, 0.5, 0.95])
    weak = float(runs.final_weak_regret.mean())
    return Summary(float(final.mean()), float(spread(final)), float(median), float(low), float(high), weak)


def paired_difference(a: Trials, b: Trials) -> Difference:
    """Final regret of `a` minus that of `b` on the same instances: below zero, `a` did better.

    Pairing removes what the instances have in common: an instance that is hard for one policy is hard for the other.
    """
    if not _equal(a.instances, b.instances):
        raise InvalidInputError(f"{a.label} and {b.label} did not play the same instances, so they cannot be paired.")
    difference = a.final_regret - b.final_regret
    n, mean = len(difference), float(difference.mean())
    if n < 2:
        nothing_known = Interval(mean, -math.inf, math.inf)
        return Difference(nothing_known, nothing_known)
    half = float(stats.t.ppf(0.5 + _LEVEL / 2, n - 1)) * float(standard_error(difference))
    means = difference[_resamples(n)].mean(axis=1)
    return Difference(Interval(mean, mean - half, mean + half), _interval(mean, means))


def growth_exponent(runs: Trials) -> Interval:
    """Slope b of log mean regret = a + b log t by least squares over the second half of the rounds.

    1/2 is the rate of the paper's bounds, 1 is linear, 0 is bounded. The first half is left out: there a policy that has
    long settled still shows what it paid to explore.
    """
    rounds = np.asarray(runs.rounds, dtype=np.float64)
    late = rounds >= rounds[-1] / 2
    log_t = np.log(rounds[late])
    centred = log_t - log_t.mean()
    curves = runs.regret[:, late]

    def slope(mean_regret: FloatArray) -> FloatArray:
        # Regret of zero has no logarithm; it is far below one duel's regret and does not occur past the first rounds.
        return np.asarray(np.log(np.maximum(mean_regret, 1e-12)) @ centred / (centred @ centred))

    if len(log_t) < 2:
        return Interval(math.nan, -math.inf, math.inf)
    means = _resampled_weights(len(curves), _GROWTH_RESAMPLES) @ curves
    return _interval(float(slope(curves.mean(axis=0))), slope(means))


def share_with_smallest_spread(one: Trials, others: Sequence[Trials]) -> float:
    """Share of bootstrap resamples of the trials in which `one` has a smaller standard deviation than all others."""
    n = len(one.final_regret)
    if n < 2 or not others:
        return math.nan
    rows = _resamples(n).T
    smallest = np.min([spread(other.final_regret[rows]) for other in others], axis=0)
    return float((spread(one.final_regret[rows]) < smallest).mean())


def curve_band(regret: FloatArray, kind: BandKind = "sd") -> Band:
    """The middle and the band of curves (trials, points), none of them below zero.

    Args:
        regret: one curve per trial.
        kind: "sd" and "se" are one standard deviation and one standard error about the mean, "bootstrap" is the 95 % bootstrap
            interval of the mean, "quantiles" are the 5 % and 95 % quantiles about the median.

    Example:
        >>> curve_band(np.array([[1.0, 2.0], [3.0, 6.0]]), "se").high.tolist()
        [3.0, 6.0]
    """
    one_of("band", kind, BANDS)
    if kind == "quantiles":
        low, middle, high = np.quantile(regret, [0.05, 0.5, 0.95], axis=0)
        return Band(middle, low, high)
    mean = regret.mean(axis=0)
    if kind == "bootstrap":
        means = _resampled_weights(len(regret), _GROWTH_RESAMPLES) @ regret
        low, high = np.quantile(means, [0.5 - _LEVEL / 2, 0.5 + _LEVEL / 2], axis=0)
        return Band(mean, low, high)
    half = spread(regret) if kind == "sd" else standard_error(regret)
    return Band(mean, np.maximum(mean - half, 0.0), mean + half)


def _equal(a: Any, b: Any) -> bool:
    """Whether two values are equal, arrays inside dataclasses included, which `==` cannot say."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    if hasattr(a, "__dataclass_fields__"):
        return all(_equal(getattr(a, name), getattr(b, name)) for name in a.__dataclass_fields__)
    return bool(a == b)


@lru_cache(maxsize=8)
def _resamples(n: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.random.default_rng(0).integers(0, n, size=(RESAMPLES, n))


@lru_cache(maxsize=8)
def _resampled_weights(n: int, resamples: int) -> FloatArray:
    """(resamples, n) the weight of every trial in the mean of a resample: means of curves are then one matrix product."""
    rows = _resamples(n)[:resamples]
    flat = np.bincount((rows + n * np.arange(resamples)[:, None]).ravel(), minlength=resamples * n)
    return np.asarray(flat.reshape(resamples, n) / n)


def _interval(estimate: float, resampled: FloatArray) -> Interval:
    low, high = np.quantile(resampled, [0.5 - _LEVEL / 2, 0.5 + _LEVEL / 2])
    return Interval(estimate, float(low), float(high))
