"""How another router would have done: off-policy evaluation from a log of duels with their propensities.

A duel says who won, not how good a candidate is. So the value of a router is a share of votes won. In a round with candidates A
the router picks a with probability r(a | A), an opponent b stands beside it with probability o(b | a, A), and a person votes:

    V = E[ sum_{a, b} m(a, b) P(a beats b | A) ],   m(a, b) = r(a | A) o(b | a, A),   P(a beats a) = 1/2.

The opponent is any other candidate, all alike, or what a second router picks. V does not depend on who made the log. With the
pair {i, j} shown with probability q, y = 1 where i won, 0 where j won, 1/2 for a tie, and a model p of P, each round
contributes

    sum_{a, b} m(a, b) p(a, b) + (m(i, j) - m(j, i)) (y - p(i, j)) / q,

whose mean is V whatever p is, if q is right and every pair that m needs can be shown. Three estimates:

    ips     p = 1/2, a fair coin
    snips   the same, and the weights (m(i, j) + m(j, i)) / q divided by their sum instead of its expectation
    dr      p from a logistic fit to *earlier* rounds, so that rounds remain a martingale though the policy learnt from them

Standard errors are those of a mean of independent terms. With a policy that learns, the terms are a martingale; that the
interval holds all the same is measured by `benchmarks/off_policy.py`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import stats

from duelist.core.checks import finite_number, one_of
from duelist.core.errors import InvalidInputError
from duelist.kernels.logistic import Likelihood, fit_lanes
from duelist.live.duel_log import DuelLog
from duelist.typing import FloatArray

Router = Callable[[FloatArray], Any] | int | str
Estimator = Literal["ips", "snips", "dr"]
ESTIMATORS = ("ips", "snips", "dr")
BLOCKS = 10  # of the log, each judged by a model of all blocks before it
RIDGE = 1.0  # of that model: a standard normal prior
ODD_OVERLAP = 2.5  # standard errors of the mean weight: one false alarm in eighty
LEAST_EFFECTIVE = 50.0  # rounds below which the interval is not to be trusted; measured, see docs/off-policy.md


class PoorOverlapWarning(UserWarning):
    """The log hardly ever shows what the router would do; the message says how much counts."""


@dataclass(frozen=True, kw_only=True)
class PolicyValue:
    """An estimate of the share of votes that a router wins.

    Attributes:
        estimate: the value.
        standard_error: of the estimate.
        low: lower end of the interval.
        high: upper end.
        level: probability of the interval.
        estimator: "ips", "snips" or "dr".
        rounds: duels that were used.
        unknown: duels that were left out, for nobody knows their propensity.
        effective_rounds: (sum of weights)^2 / sum of squared weights: so many duels of the router's own say as much.
        overlap: mean weight over its expectation: 1 but for chance; less where pairs that the router needs were never shown,
            more where propensities are too small.
        largest_weight: share of the largest weight in their sum.
        warning: why not to trust it; empty where there is no reason.
    """

    estimate: float
    standard_error: float
    low: float
    high: float
    level: float
    estimator: str
    rounds: int
    unknown: int
    effective_rounds: float
    overlap: float
    largest_weight: float
    warning: str

    def __str__(self) -> str:
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}] from {self.effective_rounds:.0f} effective duels"


def evaluate_off_policy(
    log: DuelLog, router: Router, *, against: Router | None = None, estimator: Estimator = "dr", level: float = 0.95
) -> PolicyValue:
    """Estimate which share of votes a router would win, from a log that another policy made.

    Args:
        log: answered duels with propensities.
        router: what is judged: a function of features (n_arms, dim) that returns a row, or a probability for every row; or the
            row or the name of a candidate that is always picked. It must not have learnt from the log that judges it.
        against: its opponent: another router, or None for any other candidate, all alike.
        estimator: "ips", "snips" or "dr".
        level: probability of the interval.

    Example:
        >>> import duelist
        >>> arms, rng = np.eye(3), np.random.default_rng(0)
        >>> agent, log = duelist.Agent(duelist.Uniform(), dim=3), []
        >>> for _ in range(2000):
        ...     duel = agent.choose(arms)
        ...     won = rng.random() < (0.8 if duel.first < duel.second else 0.2)  # the lower row wins four votes of five
        ...     log.append((duel.first, duel.second, 1 if won else -1, duel.propensity))
        >>> value = evaluate_off_policy(DuelLog.of(arms, *zip(*log)), router=0)
        >>> value.low < 0.8 < value.high
        True
    """
    one_of("estimator", estimator, ESTIMATORS)
    finite_number("level", level, above=0.0, at_most=1.0 - 1e-9)
    known = log.select(np.isfinite(log.propensities))
    if not len(known):
        raise InvalidInputError(
            "no duel of the log has a propensity. Use a policy that knows how likely its pairs are, such as FGTS(), or "
            "Agent(..., exploration=0.05)."
        )
    targets = {int(one): _target(log.sets[one], log.names[one], router, against) for one in np.unique(known.set_of)}
    terms = _terms(known, targets, fitted=estimator == "dr")
    total = terms.weights.sum()
    if not total > 0.0 and terms.needed.any():
        raise InvalidInputError(
            "no duel of the log shows a pair that the router and its opponent would make. Collect duels with exploration, or "
            "judge it against another opponent."
        )
    value, variance = _self_normalised(terms) if estimator == "snips" else _mean(terms)
    n = len(known)
    error = math.sqrt(variance) / n
    effective = float(total**2 / (terms.weights**2).sum()) if total > 0.0 else float(n)
    overlap = float(total / terms.needed.sum()) if total > 0.0 else 1.0
    # So few duels decide that their variance is not known either: as many degrees of freedom as duels that count.
    half = float(stats.t.ppf(0.5 + level / 2.0, max(effective - 1.0, 1.0))) * error
    warning = _warning(effective, overlap, n, len(log) - n)
    if warning:
        warnings.warn(warning, PoorOverlapWarning, stacklevel=2)
    return PolicyValue(
        estimate=value,
        standard_error=error,
        low=value - half,
        high=value + half,
        level=level,
        estimator=estimator,
        rounds=n,
        unknown=len(log) - n,
        effective_rounds=effective,
        overlap=overlap,
        largest_weight=float(terms.weights.max() / total) if total > 0.0 else 0.0,
        warning=warning,
    )


class _Terms(NamedTuple):
    """What each round contributes: (n,) each."""

    direct: FloatArray  # sum_{a, b} m(a, b) p(a, b), what the model says
    residual: FloatArray  # y - p(i, j), what it missed
    difference: FloatArray  # (m(i, j) - m(j, i)) / q
    weights: FloatArray  # (m(i, j) + m(j, i)) / q
    needed: FloatArray  # 1 - sum_a m(a, a), the expectation of the weight


def _terms(log: DuelLog, targets: dict[int, FloatArray], *, fitted: bool) -> _Terms:
    place = zip(log.set_of, log.first, log.second, strict=True)
    forward, backward = np.array([(targets[one][i, j], targets[one][j, i]) for one, i, j in place]).T
    needed = 1.0 - np.array([np.trace(targets[one]) for one in log.set_of])
    expected, direct = np.full(len(log), 0.5), np.full(len(log), 0.5)
    for block, theta in _earlier_fits(log) if fitted else ():
        beats = {one: _wins(log.sets[one] @ theta) for one in np.unique(log.set_of[block])}
        means = {one: float((targets[one] * table).sum()) for one, table in beats.items()}
        for n in range(*block.indices(len(log))):
            one = log.set_of[n]
            expected[n], direct[n] = beats[one][log.first[n], log.second[n]], means[one]
    residual = 0.5 + 0.5 * log.outcomes - expected
    return _Terms(direct, residual, (forward - backward) / log.propensities, (forward + backward) / log.propensities, needed)


def _mean(terms: _Terms) -> tuple[float, float]:
    """The mean of the rounds, and the variance of their sum."""
    value = float((terms.direct + terms.difference * terms.residual).mean())
    spread = float(((terms.direct - terms.direct.mean()) ** 2).sum())
    return value, spread + _variance(terms.difference * terms.residual, terms.difference)


def _self_normalised(terms: _Terms) -> tuple[float, float]:
    """The ratio estimate, and the variance of n times it (the delta method)."""
    needed, weight = float(terms.needed.mean()), float(terms.weights.mean())
    if not weight > 0.0:
        return 0.5, 0.0
    signed = terms.difference * terms.residual
    ratio = float(signed.mean()) / weight
    votes = (needed / weight) ** 2 * _variance(signed - ratio * terms.weights, terms.difference)
    return 0.5 + needed * ratio, votes + ratio**2 * float(((terms.needed - needed) ** 2).sum())


def _variance(surprises: FloatArray, differences: FloatArray) -> float:
    """Variance of the sum of weighted surprises, at least that of votes by a fair coin with the same weights.

    Where a handful of votes decide, they often agree by chance, and would seem to be certain.
    """
    return max(float((surprises**2).sum()), 0.25 * float((differences**2).sum()))


def _earlier_fits(log: DuelLog) -> Iterator[tuple[slice, FloatArray]]:
    """Blocks of the log after the first, each with the fit of everything before it."""
    first, second = log.shown
    contrasts, losses = first - second, (0.5 - 0.5 * log.outcomes).astype(np.float64)
    theta, one = np.zeros((1, contrasts.shape[1])), np.ones(1)
    edges = np.linspace(0, len(log), BLOCKS + 1).astype(int)
    for start, stop in pairwise(edges):
        if 0 < start < stop:
            columns = np.ascontiguousarray(contrasts[:start].T)[None]
            rows = Likelihood(columns, np.ones((1, start)), losses[None, :start], np.array([start]), one)
            hessian, iterations = np.empty((1, len(columns[0]), len(columns[0]))), np.empty(1, dtype=np.int64)
            fit_lanes(theta, hessian, rows, RIDGE * one, 1e-10, 50, iterations)
            yield slice(start, stop), theta[0].copy()


def _wins(utilities: FloatArray) -> FloatArray:
    """(n_arms, n_arms) probability that the row beats the column."""
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(utilities[None] - utilities[:, None], -700.0, 700.0))))


def _target(features: FloatArray, names: tuple[str, ...], router: Router, against: Router | None) -> FloatArray:
    """(n_arms, n_arms) m(a, b): how likely the router is to pick a with the opponent b beside it."""
    picks, n_arms = _picks(features, names, router), len(features)
    if against is None:
        others = (np.ones((n_arms, n_arms)) - np.eye(n_arms)) / (n_arms - 1)
        return np.asarray(picks[:, None] * others)
    return np.outer(picks, _picks(features, names, against))


def _picks(features: FloatArray, names: tuple[str, ...], router: Router) -> FloatArray:
    """(n_arms,) how likely a router is to pick each row."""
    n_arms = len(features)
    if isinstance(router, str):
        if router not in names:
            raise InvalidInputError(
                f"{router!r} is not among the candidates of every duel: some have {', '.join(names) or 'no names'}. Select the "
                f"duels that offer it, or name another."
            )
        answer: Any = names.index(router)
    else:
        answer = router(features) if callable(router) else router
    picked = np.asarray(answer)
    if picked.shape == (n_arms,) and (picked >= 0.0).all() and abs(picked.sum() - 1.0) < 1e-6:
        return picked.astype(np.float64)
    if picked.ndim == 0 and picked.dtype.kind in "iu" and 0 <= picked < n_arms:
        return np.asarray(np.arange(n_arms) == int(picked), dtype=np.float64)
    raise InvalidInputError(
        f"a router must pick a row below {n_arms}, or give {n_arms} probabilities that add up to 1; got {answer!r}."
    )


def _warning(effective: float, overlap: float, known: int, unknown: int) -> str:
    if effective < LEAST_EFFECTIVE:
        return (
            f"only {effective:.0f} of {known} duels count: the log hardly ever shows the pairs that the router and its "
            f"opponent make, and the interval may be too narrow. Collect duels with more exploration, or judge it against an "
            f"opponent that was shown."
        )
    if abs(overlap - 1.0) > ODD_OVERLAP / np.sqrt(effective):
        return (
            f"the weights add up to {overlap:.2f} of what they should: some pairs that the router and its opponent make were "
            f"never shown, or propensities are wrong. Collect duels with exploration."
        )
    if unknown > known:
        return f"{unknown} of {known + unknown} duels have no propensity and were left out; the others may not be typical."
    return ""
