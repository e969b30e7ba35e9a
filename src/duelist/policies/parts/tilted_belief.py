"""Draws from a normal belief that a bonus tilts, for rules of Feel-Good Thompson sampling that have no chain of many steps.

    p_j(theta)  proportional to  N(theta; theta_hat, H^-1) exp(bonus_j(theta)),    j = 1, 2

The belief is that of `duelist.policies.parts.normal_belief`. Each round takes one step of iterated sampling and resampling
(Andrieu, Doucet & Holenstein 2010): `tries` fresh draws of the belief stand beside the draw of the round before, in the
coordinates in which the belief is white, and one of them is picked with probability proportional to exp(bonus). The step leaves
p_j as it is whatever the number of tries. Where the bonus is weak most rounds have a fresh draw; where it is strong a draw may
stay for many rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.checks import whole_number
from duelist.core.lanes import PerLane, check_per_lane
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.policies.base import Round
from duelist.policies.parts.confidence import FittedPolicy, UCBState, report_ucb
from duelist.policies.parts.same_arm import BOUNDS, check_same_arm, runner_up
from duelist.posteriors.priors import Gaussian, Prior
from duelist.typing import FloatArray, IntArray

# The bonus of theta (lanes, 2, n, dim) for both draws: (lanes, 2, n).
Bonus = Callable[[FloatArray], FloatArray]


@stored("tilted-belief")
class TiltedBelief(NamedTuple):
    """A normal belief and the two draws of the last round.

    Attributes:
        belief: the fit and its curvature.
        white: (lanes, 2, dim) the draws, in the coordinates in which the belief is white.
        stayed: (lanes,) draws, of two a round, that are those of the round before.
    """

    belief: UCBState
    white: FloatArray
    stayed: FloatArray


def start_tilted(belief: UCBState, streams: Streams, name: str) -> TiltedBelief:
    """The prior, and draws from it."""
    lanes, dim = belief.theta.shape
    return TiltedBelief(belief, streams.normals(f"{name} start", 0, 2 * dim).reshape(lanes, 2, dim), np.zeros(lanes))


def draw_tilted(state: TiltedBelief, bonus: Bonus, streams: Streams, name: str, tries: int) -> tuple[FloatArray, TiltedBelief]:
    """Two draws (lanes, 2, dim) under the bonus, and the state that holds them; a pair was asked for."""
    belief = state.belief
    lanes, dim = belief.theta.shape
    fresh = streams.normals(name, belief.asked, 2 * tries * dim).reshape(lanes, 2, tries, dim)
    white = np.concatenate([state.white[:, :, None], fresh], axis=2)
    # As in `draw_normal`: rows of white noise times the whitener have covariance H^-1.
    flat = np.matmul(white.reshape(lanes, -1, dim), belief.whitener)
    theta = (flat + belief.theta[:, None]).reshape(white.shape)
    logs = bonus(theta)
    share = np.exp(logs - logs.max(axis=2, keepdims=True)).cumsum(axis=2)
    coins = np.stack([streams.uniforms(f"{name} pick {draw}", belief.asked) for draw in (1, 2)], axis=1)
    picked = (share <= (coins * share[:, :, -1])[:, :, None]).sum(axis=2)[:, :, None, None]
    drawn, held = (np.take_along_axis(array, picked, axis=2)[:, :, 0] for array in (theta, white))
    stayed = state.stayed + (picked[:, :, 0, 0] == 0).sum(axis=1)
    return drawn, TiltedBelief(belief._replace(asked=belief.asked + 1), held, stayed)


class Tilted(Protocol):
    """A state with a tilted belief in it."""

    @property
    def tilted(self) -> TiltedBelief:
        """The belief and its draws."""


State = TypeVar("State", bound=Tilted)


@dataclass(frozen=True, kw_only=True)
class TiltedPolicy(FittedPolicy[State], Generic[State]):
    """A policy that plays the best arms of two draws from a tilted normal belief.

    Args:
        ridge: lambda, precision of the normal prior; a sequence is one per lane.
        tries: fresh draws a round, per arm of the pair, of which one is picked.
        same_arm: whether an arm may meet itself: "allow", "different", or "auto": allow in simulation and not live.
    """

    ridge: PerLane = 1.0
    tries: int = 4
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_per_lane("ridge", self.ridge, above=0.0)
        whole_number("tries", self.tries, at_least=1)
        check_same_arm(self.same_arm, BOUNDS)

    def learn_many(self, state: State, rounds: Iterable[Round]) -> State:
        """One by one."""
        for actions, duels, outcomes in rounds:
            state = self.learn(state, actions, duels, outcomes)
        return state

    def estimated_utilities(self, state: State, actions: FiniteActions) -> FloatArray:
        """Utilities at the fit."""
        return actions.utilities(state.tilted.belief.theta)

    def recommend(self, state: State, actions: FiniteActions) -> IntArray:
        """(lanes,) the best arm by the fit."""
        return actions.best(state.tilted.belief.theta[:, None]).row[:, 0]

    def believed_prior(self) -> Prior:
        """The normal prior; of several ridges, that of the first lane."""
        return Gaussian(float(np.ravel(self.ridge)[0]) ** -0.5)

    def report(self, state: State) -> dict[str, FloatArray]:
        """How the fits went, and the share of draws that stayed where they were."""
        draws = 2.0 * max(state.tilted.belief.asked, 1)
        return {**report_ucb(state.tilted.belief), "draws_that_stayed": state.tilted.stayed / draws}


def best_of_draws(arms: FiniteActions, draws: FloatArray, *, different: bool) -> Duels:
    """The best arm of each draw (lanes, 2, dim); where they must differ, the second draw's runner-up."""
    rows = arms.best(draws).row
    first, second = rows[:, 0], rows[:, 1]
    if different:
        second = np.where(second == first, runner_up(arms, draws[:, 1], first), second)
    return duels_between(arms, first, second)


def utilities_of_draws(arms: FiniteActions, theta: FloatArray) -> FloatArray:
    """(lanes, 2, n, n_arms) utility of every arm under theta (lanes, 2, n, dim), its offset included."""
    lanes, draws, n, dim = theta.shape
    utilities = np.matmul(theta.reshape(lanes, draws * n, dim), arms.columns)
    if arms.offsets is not None:
        utilities += arms.offsets[:, None]
    return np.asarray(utilities.reshape(lanes, draws, n, arms.n_arms))
