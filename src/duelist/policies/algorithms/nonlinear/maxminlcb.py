"""MaxMinLCB: a leader that is sure to do well against its worst follower.

With a kernelised logistic estimate h of utility differences, h(x, x') = <theta_hat, phi(x) - phi(x')>,

    LCB(x, x') = s(h(x, x')) - beta sigma(x, x'),      UCB(x, x') = s(h(x, x')) + beta sigma(x, x'),
    M          = { x : UCB(x, x') >= 1/2 for every x' },
    leader     = argmax over x in M of  min over x' in M of LCB(x, x'),
    follower   = argmin over x' in M of LCB(leader, x'),

    sigma^2(x, x') = k - k_t^T (K_t + lambda kappa I)^-1 k_t    of the dueling kernel on pairs,
                   = lambda kappa |phi(x) - phi(x')|^2 in the norm of (lambda kappa I + sum_i z_i z_i^T)^-1.

phi are random Fourier features, in which the estimate is a logistic fit with ridge lambda.

Reference: Pasztor, Kassraie & Krause (2024), Bandits with Preference Feedback: A Stackelberg Game Perspective.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import finite_number
from duelist.core.lanes import PerLane, Problem, per_lane
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.kernels.rules.pairs import pair_geometry
from duelist.policies.base import Policy
from duelist.policies.parts.confidence import UCBState, check_ucb, expect_answers, learn_ucb, report_ucb, start_ucb
from duelist.policies.parts.kernel_features import (
    check_kernel,
    draw_frequencies,
    map_actions,
    map_duels,
    pick_largest,
)
from duelist.policies.parts.same_arm import require_finite
from duelist.typing import FloatArray, IntArray

_SLACK = 1e-9  # an arm whose upper bound is a rounding error below a half stays


@stored("max-min-lcb-state")
class MaxMinLCBState(NamedTuple):
    """What was learnt, in Fourier features, and their frequencies (lanes, dim, n_frequencies)."""

    fit: UCBState
    frequencies: FloatArray


@dataclass(frozen=True, kw_only=True)
class MaxMinLCB(Policy[MaxMinLCBState]):
    """Play the arm with the best guaranteed result against the arm that tests it hardest. Utilities need not be linear.

    Args:
        radius: beta, weight of the width on the scale of win probabilities; a sequence is one per lane.
        ridge: lambda, of the kernelised logistic fit; a sequence is one per lane.
        kappa: bound of 1 / s' over the utility differences that occur, at least 4, its value at no difference.
        n_frequencies: random frequencies; there are twice as many Fourier features.
        bandwidth: distance over which utilities change; None for sqrt(dim), which suits features of unit variance.
        same_arm: when one promising arm is left: "allow" plays it against itself, "different" against the arm that tests it
            hardest; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.environments import QuadraticDuels
        >>> from duelist.policies import MaxMinLCB
        >>> env = QuadraticDuels(dim=2, arms=8)
        >>> run = duelist.simulate(MaxMinLCB(), env, rounds=200, trials=2, seed=0)
        >>> floor = duelist.simulate(duelist.Uniform(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 0.5 * floor.final_regret.mean())
        True
    """

    linear_utilities: ClassVar[bool] = False

    radius: PerLane = 0.4
    ridge: PerLane = 1.0
    kappa: float = 4.0
    n_frequencies: int = 32
    bandwidth: float | None = None
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_ucb(self.radius, self.ridge, self.same_arm)
        finite_number("kappa", self.kappa, at_least=4.0)
        check_kernel(self.n_frequencies, self.bandwidth)

    def start(self, problem: Problem, streams: Streams) -> MaxMinLCBState:
        """Nothing learnt; frequencies are drawn."""
        mapped = Problem(dim=2 * self.n_frequencies, lanes=problem.lanes, horizon=problem.horizon, live=problem.live)
        ridge = per_lane("ridge", self.ridge, problem.lanes)
        return MaxMinLCBState(
            start_ucb(mapped, self.radius, tuple(self.kappa * ridge), self.same_arm, tuple(ridge)),
            draw_frequencies(streams, problem.dim, self.n_frequencies, self.bandwidth),
        )

    def choose(self, state: MaxMinLCBState, actions: ActionSet, streams: Streams) -> tuple[Duels, MaxMinLCBState]:
        """The leader and the follower of the game between promising arms."""
        return self._choose(state, state.fit, actions, streams)

    def choose_with_pending(
        self, state: MaxMinLCBState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, MaxMinLCBState]:
        """`choose` with the widths that there will be when the pending duels are answered."""
        expected = expect_answers(state.fit, [map_duels(state.frequencies, duels) for duels in pending])
        return self._choose(state, expected, actions, streams)

    def _choose(
        self, state: MaxMinLCBState, fit: UCBState, actions: ActionSet, streams: Streams
    ) -> tuple[Duels, MaxMinLCBState]:
        finite, settings = require_finite(self, actions), fit.settings
        arms = map_actions(state.frequencies, finite)
        utilities, norms = pair_geometry(arms.columns, fit.theta, fit.whitener)
        width = (settings.radius * np.sqrt(settings.ridge))[:, None, None] * norms
        chance = expit(utilities[:, :, None] - utilities[:, None])
        priority = finite.random_priority(streams, "ties", fit.asked)
        first, second = play_game(chance, width, priority, different=settings.different)
        return duels_between(finite, first, second), state._replace(fit=state.fit._replace(asked=state.fit.asked + 1))

    def learn(self, state: MaxMinLCBState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> MaxMinLCBState:
        """Append the outcomes and fit again."""
        arms = map_actions(state.frequencies, require_finite(self, actions))
        return state._replace(fit=learn_ucb(state.fit, arms, map_duels(state.frequencies, duels), outcomes, local=False))

    def follows_sets(self) -> bool:
        """Asking only counts."""
        return False

    def estimated_utilities(self, state: MaxMinLCBState, actions: FiniteActions) -> FloatArray:
        """(lanes, n_arms) the estimate."""
        return map_actions(state.frequencies, actions).utilities(state.fit.theta)

    def report(self, state: MaxMinLCBState) -> dict[str, FloatArray]:
        """Fits that did not converge, and how many distinct contrasts a fit reads."""
        return report_ucb(state.fit)


def play_game(chance: FloatArray, width: FloatArray, priority: FloatArray, *, different: bool) -> tuple[IntArray, IntArray]:
    """Rows (lanes,) of the leader and the follower.

    Args:
        chance: (lanes, n_arms, n_arms) estimated probability that the arm of the row beats that of the column.
        width: the same shape: how far it may be off.
        priority: (lanes, n_arms) breaks ties.
        different: whether an arm that alone is promising meets another arm, and not itself.

    Example:
        >>> chance = np.array([[[0.5, 0.7, 0.9], [0.3, 0.5, 0.8], [0.1, 0.2, 0.5]]])
        >>> width = np.where(np.eye(3), 0.0, 0.25)[None]
        >>> play_game(chance, width, np.array([[0.1, 0.2, 0.3]]), different=False)
        (array([0]), array([1]))
    """
    lanes, n_arms = priority.shape
    promising = np.asarray((chance + width >= 0.5 - _SLACK).all(axis=2))
    # Two promising arms have lower bounds of at most a half against each other, that of an arm against itself: who leaves
    # out the pair of an arm with itself changes nothing unless the arm is alone.
    pairs = promising[:, :, None] & promising[:, None] & ~np.eye(n_arms, dtype=bool)
    lower = chance - width
    worst = np.where(pairs, lower, np.inf).min(axis=2)
    alone = promising.sum(axis=1) == 1
    first = pick_largest(np.where(np.isfinite(worst), worst, 0.0), promising, priority)
    rows = np.arange(lanes)
    others = np.arange(n_arms) != first[:, None]
    allowed = np.where(alone[:, None], others, promising & others)
    second = pick_largest(-lower[rows, first], allowed, priority)
    return first, second if different else np.where(alone, first, second)
