"""POP-BO: the largest improvement over the last point that the likelihood still allows.

    L(theta) = lambda/2 |theta|^2 - log-likelihood of all duels,     f(x) = <theta, phi(x)>,
    B        = { theta : L(theta) <= L(theta_hat) + beta }           likelihood-ratio confidence set,
    second   = the first arm of the round before, x'
    first    = argmax over x of  max over theta in B of  f(x) - f(x').

phi are random Fourier features. The inner maximum is taken along the direction that solves it for the second-order expansion
of L: theta = theta_hat + step H^-1 (phi(x) - phi(x')) with H the curvature at theta_hat, and the step at which L is exactly
beta above its minimum. So every function that is played by is in B, and the improvement is never overstated.

Reference: Xu, Wang, Jiang, Svetozarevic & Jones (2024), Principled Preferential Bayesian Optimization.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.lanes import PerLane, Problem
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.policies.base import Policy
from duelist.policies.parts.confidence import UCBState, check_ucb, expect_answers, learn_ucb, report_ucb, start_ucb
from duelist.policies.parts.kernel_features import (
    check_kernel,
    draw_frequencies,
    map_actions,
    map_duels,
    pick_largest,
)
from duelist.policies.parts.open_duels import open_contrasts
from duelist.policies.parts.same_arm import require_finite
from duelist.typing import FloatArray, IntArray

_MOST_STEPS = 50
_CLOSE = 1e-12  # how near L must come to the border of the set, relative to beta


@stored("popbo-state")
class POPBOState(NamedTuple):
    """What was learnt, in Fourier features.

    Attributes:
        fit: the estimate and the curvature there.
        frequencies: (lanes, dim, n_frequencies) of the features.
        last: (lanes, dim) the first arm of the last pair; NaN before there was one.
    """

    fit: UCBState
    frequencies: FloatArray
    last: FloatArray


class Likelihood(NamedTuple):
    """The duels of one lane, as L reads them.

    Attributes:
        contrasts: (n, dim).
        totals: (n,) how often each was shown.
        losses: (n,) how often its first arm lost.
        ridge: lambda.
    """

    contrasts: FloatArray
    totals: FloatArray
    losses: FloatArray
    ridge: float


@dataclass(frozen=True, kw_only=True)
class POPBO(Policy[POPBOState]):
    """Play the arm that may improve most on the last one, against the last one. Utilities need not be linear.

    Args:
        radius: beta, how far below its maximum the penalised log-likelihood may be; a sequence is one per lane.
        ridge: lambda, in place of the bound on the norm of the utility; a sequence is one per lane.
        n_frequencies: random frequencies; there are twice as many Fourier features.
        bandwidth: distance over which utilities change; None for sqrt(dim), which suits features of unit variance.
        same_arm: when nothing can improve on the last arm: "allow" plays it against itself, "different" against the arm that
            comes nearest; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.environments import QuadraticDuels
        >>> from duelist.policies import POPBO
        >>> env = QuadraticDuels(dim=2, arms=8)
        >>> run = duelist.simulate(POPBO(), env, rounds=200, trials=2, seed=0)
        >>> floor = duelist.simulate(duelist.Uniform(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 0.5 * floor.final_regret.mean())
        True
    """

    linear_utilities: ClassVar[bool] = False

    radius: PerLane = 1.0
    ridge: PerLane = 1.0
    n_frequencies: int = 32
    bandwidth: float | None = None
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_ucb(self.radius, self.ridge, self.same_arm)
        check_kernel(self.n_frequencies, self.bandwidth)

    def start(self, problem: Problem, streams: Streams) -> POPBOState:
        """Nothing learnt, and no last arm; frequencies are drawn."""
        mapped = Problem(dim=2 * self.n_frequencies, lanes=problem.lanes, horizon=problem.horizon, live=problem.live)
        return POPBOState(
            start_ucb(mapped, self.radius, self.ridge, self.same_arm),
            draw_frequencies(streams, problem.dim, self.n_frequencies, self.bandwidth),
            np.full((problem.lanes, problem.dim), np.nan),
        )

    def choose(self, state: POPBOState, actions: ActionSet, streams: Streams) -> tuple[Duels, POPBOState]:
        """The arm that may improve most on the last one, and the last one."""
        return self._choose(state, actions, streams, ())

    def choose_with_pending(
        self, state: POPBOState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, POPBOState]:
        """`choose` with the set that there will be if the pending duels are answered as the estimate expects."""
        return self._choose(state, actions, streams, [map_duels(state.frequencies, duels) for duels in pending])

    def _choose(
        self, state: POPBOState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, POPBOState]:
        finite = require_finite(self, actions)
        arms = map_actions(state.frequencies, finite)
        fit = expect_answers(state.fit, pending, local=True) if pending else state.fit
        expected = open_contrasts(pending) if pending else np.empty((finite.lanes, 0, arms.dim))
        priority = finite.random_priority(streams, "ties", fit.asked)
        second = _reference_rows(state, finite, arms, priority)
        scores = np.empty(priority.shape)
        for lane in range(finite.lanes):
            away = arms.features[lane] - arms.features[lane, second[lane]]
            duels = _likelihood(fit, lane, expected[lane])
            scores[lane] = largest_gains(duels, fit.theta[lane], fit.whitener[lane], away, float(fit.settings.radius[lane]))
        others = np.arange(finite.n_arms) != second[:, None]
        first = pick_largest(scores, others if fit.settings.different else np.ones_like(others), priority)
        after = state._replace(
            fit=state.fit._replace(asked=state.fit.asked + 1), last=finite.features[np.arange(finite.lanes), first]
        )
        return duels_between(finite, first, second), after

    def learn(self, state: POPBOState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> POPBOState:
        """Append the outcomes and fit again."""
        arms = map_actions(state.frequencies, require_finite(self, actions))
        return state._replace(fit=learn_ucb(state.fit, arms, map_duels(state.frequencies, duels), outcomes, local=True))

    def estimated_utilities(self, state: POPBOState, actions: FiniteActions) -> FloatArray:
        """(lanes, n_arms) the estimate."""
        return map_actions(state.frequencies, actions).utilities(state.fit.theta)

    def report(self, state: POPBOState) -> dict[str, FloatArray]:
        """Fits that did not converge, and how many distinct contrasts a fit reads."""
        return report_ucb(state.fit)


def _reference_rows(state: POPBOState, actions: FiniteActions, arms: FiniteActions, priority: FloatArray) -> IntArray:
    """(lanes,) the row of the last first arm, the lowest of equal ones; where it is not offered, of the best estimate."""
    same = (actions.features == state.last[:, None]).all(axis=2)
    best = pick_largest(arms.utilities(state.fit.theta), np.ones_like(same), priority)
    return np.asarray(np.where(same.any(axis=1), same.argmax(axis=1), best))


def _likelihood(fit: UCBState, lane: int, expected: FloatArray) -> Likelihood:
    """The duels of a lane, and open ones (n, dim), answered as the estimate expects: it stays the minimiser."""
    statistics = fit.history.live_statistics
    n = int(statistics.n_rows[lane])
    return Likelihood(
        np.concatenate([statistics.contrasts[lane, :, :n].T, expected]),
        np.concatenate([statistics.totals[lane, :n], np.ones(len(expected))]),
        np.concatenate([statistics.losses[lane, :n], expit(-expected @ fit.theta[lane])]),
        float(fit.settings.ridge[lane]),
    )


def largest_gains(duels: Likelihood, theta: FloatArray, whitener: FloatArray, away: FloatArray, radius: float) -> FloatArray:
    """(n,) how far <theta, away> can go along its own direction within the confidence set.

    Args:
        duels: of one lane.
        theta: (dim,) the minimiser of L.
        whitener: (dim, dim) inverse of the lower Cholesky factor of the curvature there.
        away: (n, dim) phi(x) - phi(x') for every x.
        radius: beta.

    Example:
        >>> none = Likelihood(np.empty((0, 1)), np.empty(0), np.empty(0), 1.0)
        >>> largest_gains(none, np.zeros(1), np.eye(1), np.array([[0.0], [1.0], [-3.0]]), 2.0).tolist()
        [0.0, 2.0, 6.0]
    """
    directions = (away @ whitener.T) @ whitener
    squares = np.einsum("nd,nd->n", away, directions)
    moves = squares > 0.0
    step = np.sqrt(2.0 * radius / np.where(moves, squares, 1.0)) * moves
    start, slopes = duels.contrasts @ theta, duels.contrasts @ directions.T  # (rows,) and (rows, n)
    tilt, bend = duels.ridge * (directions @ theta), duels.ridge * np.einsum("nd,nd->n", directions, directions)
    wins, totals = duels.totals - duels.losses, duels.totals
    at_start = totals @ np.logaddexp(0.0, start) - wins @ start
    for _ in range(_MOST_STEPS):
        logits = start[:, None] + step * slopes
        rise = step * tilt + 0.5 * step**2 * bend + totals @ np.logaddexp(0.0, logits) - wins @ logits - at_start
        if (np.abs(rise - radius) <= _CLOSE * (1.0 + radius))[moves].all():
            break
        slope = tilt + step * bend + totals @ (expit(logits) * slopes) - wins @ slopes
        # L is convex along a line and least at the estimate, so Newton's steps meet the border from beyond.
        usable = moves & (slope > 0.0)
        step = np.where(usable, np.maximum(step - (rise - radius) / np.where(usable, slope, 1.0), 0.1 * step), step)
    return np.asarray(away @ theta + step * squares)
