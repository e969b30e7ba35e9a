"""CPPL: show the arms with the largest optimistic strengths exp(utility), by a running mean of stochastic gradient steps.

    theta_{t+1}  = theta_t - rate * t^-decay * gradient of l_t at theta_t,    l_t = -log P(answer | theta) by Plackett-Luce
    mean_t       = (theta_1 + ... + theta_t) / t
    c_i          = width * sqrt(2 log t + d + 2 sqrt(d log t)) * exp(<mean_t, x_i>) * |x_i|_Sigma
    slate        = the q arms with the largest  exp(<mean_t, x_i>) + c_i
    Sigma        = S^{-1} V S^{-1},    S = ridge I + sum of hessians of l,    V = ridge I + sum of g g^T,  g the gradients

c_i is the width of a confidence region of the mean, carried over to exp(<theta, x_i>) by its gradient.

Reference: El Mesaoudi-Paul, Bengs & Huellermeier (2020), Online Preselection with Context Information under the Plackett-Luce
Model, arXiv 2002.04275; docs/policies/cppl.md says what could be read of it and what was decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import finite_number, whole_number
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.history.slates import Answer, Slates
from duelist.policies.base import Policy
from duelist.policies.parts.same_arm import require_finite
from duelist.policies.parts.slate_answers import answer_terms, expected_information, read_answers, shown_slates, top_slates
from duelist.posteriors.priors import Gaussian, Prior
from duelist.typing import FloatArray, IntArray


@stored("cppl-settings")
class CPPLSettings(NamedTuple):
    """The settings of a run, each (lanes,)."""

    width: FloatArray
    rate: FloatArray


@stored("cppl-state")
class CPPLState(NamedTuple):
    """What the policy has learnt.

    Attributes:
        theta: (lanes, dim) where the gradient steps are.
        mean: (lanes, dim) the mean of all thetas so far, which is the estimate.
        hessians: (lanes, dim, dim) S.
        squares: (lanes, dim, dim) V.
        learnt: answers so far.
        asked: slates asked for so far; it names the next random numbers.
        settings: one number per lane.
    """

    theta: FloatArray
    mean: FloatArray
    hessians: FloatArray
    squares: FloatArray
    learnt: int
    asked: int
    settings: CPPLSettings


@dataclass(frozen=True, kw_only=True)
class CPPL(Policy[CPPLState]):
    """Show the q arms with the largest upper bounds of their strengths.

    Args:
        choices: q, candidates per slate.
        width: omega, weight of the bounds' widths; a sequence is one per lane.
        rate: gamma, size of the first gradient step; a sequence is one per lane.
        decay: alpha, by which steps shrink: t^-decay.
        ridge: what both matrices start with; a sequence is one per lane.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=3, arms=8)
        >>> run = duelist.simulate(CPPL(choices=3), env, rounds=60, trials=4, seed=0)
        >>> run.chosen.shape
        (4, 60, 3)
    """

    choices: int = 4
    width: PerLane = 0.3
    rate: PerLane = 0.03
    decay: float = 0.2
    ridge: PerLane = 1.0

    def __post_init__(self) -> None:
        whole_number("choices", self.choices, at_least=2)
        check_per_lane("width", self.width, at_least=0.0)
        check_per_lane("rate", self.rate, above=0.0)
        finite_number("decay", self.decay, at_least=0.0, at_most=1.0)
        check_per_lane("ridge", self.ridge, above=0.0)

    def start(self, problem: Problem, streams: Streams) -> CPPLState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt: theta is 0."""
        lanes, dim = problem.lanes, problem.dim
        theta, base = np.zeros((lanes, dim)), per_lane("ridge", self.ridge, lanes)[:, None, None] * np.eye(dim)
        settings = CPPLSettings(per_lane("width", self.width, lanes), per_lane("rate", self.rate, lanes))
        return CPPLState(theta, theta.copy(), base, base.copy(), 0, 0, settings)

    def choose(self, state: CPPLState, actions: ActionSet, streams: Streams) -> tuple[Any, CPPLState]:
        """The arms with the largest upper bounds: `Slates`, best first."""
        finite = require_finite(self, actions)
        priority = finite.random_priority(streams, "cppl", state.asked)
        dim, log_round = finite.dim, np.log(state.learnt + 1.0)
        quantile = np.sqrt(2.0 * log_round + dim + 2.0 * np.sqrt(dim * log_round))
        columns = np.linalg.solve(state.hessians, np.swapaxes(finite.features, 1, 2))
        widths = np.sqrt((columns * (state.squares @ columns)).sum(axis=1))
        # The logarithm of exp(u) + c, which stays finite where strengths do not.
        scores = finite.utilities(state.mean) + np.log1p(state.settings.width[:, None] * quantile * widths)
        return top_slates(finite, scores, priority, self.choices), state._replace(asked=state.asked + 1)

    def choose_with_pending(
        self, state: CPPLState, actions: ActionSet, streams: Streams, pending: Sequence[Duels | Slates]
    ) -> tuple[Any, CPPLState]:
        """`choose` with the widths that there will be when the pending slates are answered with a winner."""
        expected = expected_information(state.mean, pending)
        informed = state._replace(hessians=state.hessians + expected, squares=state.squares + expected)
        slates, after = self.choose(informed, actions, streams)
        return slates, after._replace(hessians=state.hessians, squares=state.squares)

    def learn(
        self, state: CPPLState, actions: ActionSet, shown: Slates | Duels, answers: Sequence[Answer] | IntArray
    ) -> CPPLState:
        """One gradient step per lane: answers are places in the slate, best first, or "tie"."""
        slates = shown_slates(require_finite(self, actions), shown)
        orders, placed = read_answers(answers, slates.rows.shape)
        learnt = state.learnt + 1
        gradient, _ = answer_terms(state.theta, slates, orders, placed)
        theta = state.theta - (state.settings.rate * learnt**-self.decay)[:, None] * gradient
        at_mean, hessian = answer_terms(state.mean, slates, orders, placed)
        return state._replace(
            theta=theta,
            mean=state.mean + (theta - state.mean) / (learnt + 1),
            hessians=state.hessians + hessian,
            squares=state.squares + at_mean[:, :, None] * at_mean[:, None],
            learnt=learnt,
        )

    def estimated_utilities(self, state: CPPLState, actions: FiniteActions) -> FloatArray:
        """Utilities at the mean of all thetas."""
        return actions.utilities(state.mean)

    def weighs_offsets(self) -> bool:
        """An offset adds to the utility whose exponential is bounded."""
        return True

    def believed_prior(self) -> Prior:
        """The Gaussian of the ridge; where lanes differ, that of the first."""
        return Gaussian(scale=float(np.atleast_1d(self.ridge)[0]) ** -0.5)

    def running_belief(self, state: CPPLState) -> tuple[FloatArray, FloatArray]:
        """The Gaussian at the mean of all thetas with covariance Sigma."""
        root = np.linalg.solve(state.hessians, np.linalg.cholesky(state.squares))
        factor = np.linalg.cholesky(np.linalg.inv(root @ np.swapaxes(root, 1, 2)))
        return state.mean, np.asarray(np.linalg.inv(factor), dtype=np.float64)
