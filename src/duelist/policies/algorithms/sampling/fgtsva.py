"""FGTSVA: Feel-Good Thompson sampling with the bonus at the current arms alone, and votes weighed by their variance.

    eta_i      = sigma_i^2 / max(sigma_i, floor)^2,   sigma_i^2 = s(u) s(-u) at u = <theta_hat, z_i> when the pair was asked for
    p_t(theta) proportional to p_0(theta) exp(- sum_i eta_i log(1 + exp(-y_i <theta, z_i>))
                                              + lambda_t ( max over A_t of <theta, phi(a)> - <theta, phi(x*)> ))
    lambda_t   = c sqrt(Lambda_t) / (1/4),    Lambda_t = 1/4 + sum of max(sigma_i, floor)^2 over the votes so far

theta_1 and theta_2 are drawn from p_t and each plays its best arm. x* is the best arm of A_t under theta_hat. Past action sets
are not read, and no horizon: lambda_t grows with the noise that there was.

Reference: Li & Gu (2025), Variance-Aware Feel-Good Thompson Sampling for Contextual Bandits (FGTS-VA), adapted to duels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.checks import finite_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.policies.parts.confidence import start_ucb
from duelist.policies.parts.leader import leading_arm
from duelist.policies.parts.normal_belief import learn_normal
from duelist.policies.parts.open_duels import logistic_slope
from duelist.policies.parts.same_arm import require_finite
from duelist.policies.parts.tilted_belief import (
    TiltedBelief,
    TiltedPolicy,
    best_of_draws,
    draw_tilted,
    start_tilted,
    utilities_of_draws,
)
from duelist.typing import FloatArray, IntArray

MOST_VARIANCE = 0.25  # of an answer, whatever the pair


@stored("fgtsva-state")
class FGTSVAState(NamedTuple):
    """What FGTSVA has learnt.

    Attributes:
        tilted: the normal belief and the last draws.
        strength: (lanes,) c.
        noise: (lanes,) the sum of the variances of the votes so far, each at least floor^2.
    """

    tilted: TiltedBelief
    strength: FloatArray
    noise: FloatArray


@dataclass(frozen=True, kw_only=True)
class FGTSVA(TiltedPolicy[FGTSVAState]):
    """Feel-Good Thompson sampling that keeps no action sets and needs no horizon.

    Args:
        strength: c, of the bonus lambda_t = 4 c sqrt(Lambda_t); 0 is plain Thompson sampling. A sequence is one per lane.
        floor: smallest standard deviation of an answer, at most 1/2. Votes that were surer than this count less: a vote that
            contradicts near certainty then moves the belief less.
        ridge: lambda, precision of the normal prior; a sequence is one per lane.
        tries: fresh draws a round, per arm of the pair, of which one is picked by its bonus.
        same_arm: "allow" lets an arm meet itself, "different" does not; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.policies import FGTSVA
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(FGTSVA(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 150)
        True
    """

    strength: PerLane = 0.01
    floor: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_per_lane("strength", self.strength, at_least=0.0)
        finite_number("floor", self.floor, above=0.0, at_most=0.5)

    def start(self, problem: Problem, streams: Streams) -> FGTSVAState:
        """The prior, and draws from it."""
        belief = start_ucb(problem, 1.0, self.ridge, self.same_arm)
        strength = per_lane("strength", self.strength, problem.lanes)
        return FGTSVAState(start_tilted(belief, streams, "fgtsva"), strength, np.zeros(problem.lanes))

    def choose(self, state: FGTSVAState, actions: ActionSet, streams: Streams) -> tuple[Duels, FGTSVAState]:
        """The best arms of two draws; the variance of the answer travels in the duel's note."""
        arms, belief = require_finite(self, actions), state.tilted.belief
        lane = np.arange(arms.lanes)
        leader = leading_arm(arms.utilities(belief.theta), arms.random_priority(streams, "ties", belief.asked))
        weight = 4.0 * state.strength * np.sqrt(state.noise + MOST_VARIANCE)

        def bonus(theta: FloatArray) -> FloatArray:
            utilities = utilities_of_draws(arms, theta)
            gained = utilities.max(axis=3) - utilities[lane, :, :, leader]
            return np.asarray(weight[:, None, None] * gained)

        draws, tilted = draw_tilted(state.tilted, bonus, streams, "fgtsva", self.tries)
        duels = best_of_draws(arms, draws, different=belief.settings.different)
        return duels._replace(note=self._variance(duels, state)[:, None]), state._replace(tilted=tilted)

    def learn(self, state: FGTSVAState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> FGTSVAState:
        """Append the outcomes with their weights and fit again."""
        variance = self._variance(duels, state) if duels.note is None else _noted(duels.note, len(state.noise))
        floored = np.maximum(variance, self.floor**2)
        belief = learn_normal(state.tilted.belief, actions, duels, outcomes, variance / floored)
        return state._replace(tilted=state.tilted._replace(belief=belief), noise=state.noise + floored)

    def follows_sets(self) -> bool:
        """The draws move with the bonus, and the bonus is that of the arms on offer."""
        return True

    def _variance(self, duels: Duels, state: FGTSVAState) -> FloatArray:
        return logistic_slope(np.einsum("ld,ld->l", duels.contrast, state.tilted.belief.theta))


def _noted(note: FloatArray, lanes: int) -> FloatArray:
    """(lanes,) the variances that duels were asked with."""
    if note.shape == (lanes, 1) and ((note >= 0.0) & (note <= MOST_VARIANCE)).all():
        return np.ascontiguousarray(note[:, 0])
    raise InvalidInputError(
        f"the note of an FGTSVA duel must be ({lanes}, 1) variances from 0 to 1/4; got {note!r}. Return the duels that choose "
        f"gave, or duels without a note."
    )
