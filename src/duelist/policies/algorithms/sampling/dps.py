"""DPS: dueling posterior sampling with Bayesian linear regression. Made for trajectories; it plays every action set.

    r | votes  ~  N(r_hat, M^-1),   M = lambda I + sum_i z_i z_i^T / sigma^2,   r_hat = M^-1 sum_i (y_i / 2) z_i / sigma^2,

for contrasts z_i and outcomes y_i of +1 and -1: the probability of a win is taken to be 1/2 + <r, z>. Each round draws r_1 and
r_2 and plays the best arm of each.

Reference: Novoseller, Wei, Sui, Yue & Burdick (2020), Dueling Posterior Sampling for Preference-Based Reinforcement Learning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.policies.base import Policy
from duelist.policies.parts.same_arm import DRAWS_AGAIN, check_same_arm, pair_draws, resolve_same_arm
from duelist.typing import FloatArray, IntArray


@stored("dps-settings")
class DPSSettings(NamedTuple):
    """The settings of a run: (lanes,) sigma, and whether a person sees the pair."""

    sigma: FloatArray
    live: bool


@stored("dps-state")
class DPSState(NamedTuple):
    """What DPS has learnt.

    Attributes:
        precision: (lanes, dim, dim) M.
        moment: (lanes, dim) M r_hat.
        asked: pairs asked for so far, which name the next random numbers.
        settings: as `start` resolved them.
    """

    precision: FloatArray
    moment: FloatArray
    asked: int
    settings: DPSSettings


@dataclass(frozen=True, kw_only=True)
class DPS(Policy[DPSState]):
    """Draw two rewards from a linear regression of votes on contrasts, and play the best arm of each.

    Args:
        sigma: standard deviation of a vote of +-1/2 about <r, z>; a sequence is one per lane.
        ridge: lambda, precision of the normal prior of r; a sequence is one per lane.
        same_arm: whether an arm may meet itself: "allow", "runner-up", "redraw", or "auto": allow in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.policies import DPS
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(DPS(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 150)
        True
    """

    sigma: PerLane = 0.5
    ridge: PerLane = 0.1
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_per_lane("sigma", self.sigma, above=0.0)
        check_per_lane("ridge", self.ridge, above=0.0)
        check_same_arm(self.same_arm, DRAWS_AGAIN)

    def start(self, problem: Problem, streams: Streams) -> DPSState:  # noqa: ARG002 - a policy's signature
        """The prior."""
        lanes, dim = problem.lanes, problem.dim
        precision = per_lane("ridge", self.ridge, lanes)[:, None, None] * np.eye(dim)
        settings = DPSSettings(per_lane("sigma", self.sigma, lanes), problem.live)
        return DPSState(precision, np.zeros((lanes, dim)), 0, settings)

    def choose(self, state: DPSState, actions: ActionSet, streams: Streams) -> tuple[Duels, DPSState]:
        """The best arm under each of two draws."""
        mean, factor = estimate_rewards(state), np.linalg.cholesky(state.precision).transpose(0, 2, 1)

        def draw(attempt: int) -> FloatArray:
            noise = streams.normals(f"dps {attempt}", state.asked, 2 * mean.shape[1]).reshape(len(mean), 2, -1)
            # With M = L L^T, L^-T times white noise has covariance M^-1.
            return np.ascontiguousarray(mean[:, None] + np.linalg.solve(factor, noise.transpose(0, 2, 1)).transpose(0, 2, 1))

        rule = resolve_same_arm(self.same_arm, DRAWS_AGAIN, live=state.settings.live)
        return pair_draws(actions, draw(0), draw, rule), state._replace(asked=state.asked + 1)

    def learn(
        self,
        state: DPSState,
        actions: ActionSet,  # noqa: ARG002 - a policy's signature
        duels: Duels,
        outcomes: IntArray,
    ) -> DPSState:
        """One more row of the regression. A tie is a vote of 0."""
        z, weight = duels.contrast, 1.0 / state.settings.sigma**2
        return state._replace(
            precision=state.precision + weight[:, None, None] * z[:, :, None] * z[:, None, :],
            moment=state.moment + (0.5 * weight * outcomes)[:, None] * z,
        )

    def estimated_utilities(self, state: DPSState, actions: FiniteActions) -> FloatArray:
        """Rewards under r_hat, in units of probability."""
        return actions.utilities(estimate_rewards(state))

    def keeps_sets(self) -> bool:
        """Only the contrast is learnt."""
        return False

    def follows_sets(self) -> bool:
        """The number of questions is all that choosing changes."""
        return False


def estimate_rewards(state: DPSState) -> FloatArray:
    """(lanes, dim) the mean r_hat."""
    return np.asarray(np.linalg.solve(state.precision, state.moment[:, :, None])[:, :, 0])
