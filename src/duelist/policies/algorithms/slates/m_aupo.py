"""M-AUPO: show the slate whose candidates are, on average, the least certain against one of them, and learn from its ranking.

    |x|_t     = sqrt(x^T H_t^{-1} x),    H_1 = ridge I
    slate     = argmax over S of q arms and a in S of  1/q sum_{b in S} |x_b - x_a|_t
    G_t       = H_t + step * hessian of l_t at theta_t,    l_t = -log P(ranking | theta) by Plackett-Luce
    theta     = theta - step * G_t^{-1} gradient of l_t at theta
    H_{t+1}   = H_t + hessian of l_t at the new theta

It plays to know: what is shown costs nothing, and only the arm recommended afterwards counts. Nothing is kept of a round but
theta and H.

Reference: Lee, Yi & Oh (2025), Preference-based Reinforcement Learning beyond Pairwise Comparisons: Benefits of Multiple
Options, arXiv 2510.18713; docs/policies/maupo.md says what could be read of it and what was decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import whole_number
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


@stored("m-aupo-settings")
class MAUPOSettings(NamedTuple):
    """The settings of a run: (lanes,) size of a step, and the ridge that H started with."""

    step: FloatArray
    ridge: FloatArray


@stored("m-aupo-state")
class MAUPOState(NamedTuple):
    """What the policy has learnt.

    Attributes:
        theta: (lanes, dim) the estimate.
        information: (lanes, dim, dim) H.
        asked: slates asked for so far; it names the next random numbers.
        settings: one number per lane.
    """

    theta: FloatArray
    information: FloatArray
    asked: int
    settings: MAUPOSettings


@dataclass(frozen=True, kw_only=True)
class MAUPO(Policy[MAUPOState]):
    """Show what is least certain together, and recommend the best arm of the estimate.

    Args:
        choices: q, candidates per slate.
        step: eta of the updates by online mirror descent; a sequence is one per lane. 1 is a Newton step.
        ridge: lambda, what H starts with; a sequence is one per lane.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=3, arms=8)
        >>> run = duelist.simulate(MAUPO(), env, rounds=60, trials=4, seed=0, simple_regret=60)
        >>> bool(run.simple_regret[:, -1].mean() < 0.3)
        True
    """

    choices: int = 4
    step: PerLane = 1.0
    ridge: PerLane = 1.0

    def __post_init__(self) -> None:
        whole_number("choices", self.choices, at_least=2)
        check_per_lane("step", self.step, above=0.0)
        check_per_lane("ridge", self.ridge, above=0.0)

    def start(self, problem: Problem, streams: Streams) -> MAUPOState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt: theta is 0."""
        settings = MAUPOSettings(per_lane("step", self.step, problem.lanes), per_lane("ridge", self.ridge, problem.lanes))
        information = settings.ridge[:, None, None] * np.eye(problem.dim)
        return MAUPOState(np.zeros((problem.lanes, problem.dim)), information, 0, settings)

    def choose(self, state: MAUPOState, actions: ActionSet, streams: Streams) -> tuple[Any, MAUPOState]:
        """The slate of the largest average uncertainty: `Slates`, its reference first."""
        finite = require_finite(self, actions)
        priority = finite.random_priority(streams, "m-aupo", state.asked)
        widths = _widths(finite, state.information)
        others = min(self.choices, finite.n_arms) - 1
        totals = np.sort(widths, axis=2)[:, :, finite.n_arms - others :].sum(axis=2)
        reference = np.lexsort((priority, totals), axis=1)[:, -1]
        lanes = np.arange(finite.lanes)
        scores = widths[lanes, reference]
        scores[lanes, reference] = np.inf
        return top_slates(finite, scores, priority, self.choices), state._replace(asked=state.asked + 1)

    def choose_with_pending(
        self, state: MAUPOState, actions: ActionSet, streams: Streams, pending: Sequence[Duels | Slates]
    ) -> tuple[Any, MAUPOState]:
        """`choose` with the information that there will be when the pending slates are answered with a winner."""
        expected = state.information + expected_information(state.theta, pending)
        slates, after = self.choose(state._replace(information=expected), actions, streams)
        return slates, after._replace(information=state.information)

    def learn(
        self, state: MAUPOState, actions: ActionSet, shown: Slates | Duels, answers: Sequence[Answer] | IntArray
    ) -> MAUPOState:
        """One step of online mirror descent per lane: answers are places in the slate, best first, or "tie"."""
        slates = shown_slates(require_finite(self, actions), shown)
        orders, placed = read_answers(answers, slates.rows.shape)
        step = state.settings.step[:, None]
        gradient, hessian = answer_terms(state.theta, slates, orders, placed)
        around = state.information + step[:, :, None] * hessian
        theta = state.theta - step * np.linalg.solve(around, gradient[:, :, None])[:, :, 0]
        information = state.information + answer_terms(theta, slates, orders, placed)[1]
        return state._replace(theta=theta, information=information)

    def estimated_utilities(self, state: MAUPOState, actions: FiniteActions) -> FloatArray:
        """Utilities at the estimate."""
        return actions.utilities(state.theta)

    def believed_prior(self) -> Prior:
        """The Gaussian of the ridge; where lanes differ, that of the first."""
        return Gaussian(scale=float(np.atleast_1d(self.ridge)[0]) ** -0.5)

    def running_belief(self, state: MAUPOState) -> tuple[FloatArray, FloatArray]:
        """The Gaussian at the estimate with precision H."""
        return state.theta, np.asarray(np.linalg.inv(np.linalg.cholesky(state.information)), dtype=np.float64)

    def report(self, state: MAUPOState) -> dict[str, FloatArray]:
        """How much the least certain direction is known: the smallest eigenvalue of H."""
        return {"least_information": np.asarray(np.linalg.eigvalsh(state.information)[:, 0], dtype=np.float64)}


def _widths(actions: FiniteActions, information: FloatArray) -> FloatArray:
    """(lanes, n_arms, n_arms) |x_b - x_a| in the norm of H^{-1}; 0 for an arm and itself."""
    whitener = np.linalg.inv(np.linalg.cholesky(information))
    whitened = actions.features @ np.swapaxes(whitener, 1, 2)
    squares = (whitened**2).sum(axis=2)
    inner = whitened @ np.swapaxes(whitened, 1, 2)
    widths = np.sqrt(np.maximum(squares[:, :, None] + squares[:, None] - 2.0 * inner, 0.0))
    widths[:, np.arange(actions.n_arms), np.arange(actions.n_arms)] = 0.0
    return np.asarray(widths)
