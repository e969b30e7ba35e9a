"""FGTS.CDB for any differentiable reward, through JAX (extra `jax`).

Each round draws theta_1 and theta_2 from

    -log p_j(theta) = sum_i [ eta log(1 + exp(-y_i Delta r_theta,i))
                              - mu ( max_{a' in A_i} r_theta(x_i, a') - r_theta(x_i, a_i^{3-j}) ) ] - log p_0(theta)

and plays a^j = argmax over A_t of r_theta_j(x_t, a).

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, Section 6.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray, IntArray, one_of, whole_number
from duelist.core.duels import Duels, duels_between
from duelist.core.errors import ImproperPosteriorError, InvalidInputError
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.streams import Streams
from duelist.policies.finite import require_finite
from duelist.posteriors.priors import Gaussian, Prior
from duelist.posteriors.reward_potential import RewardTerms, is_proper, rewards_of_draws
from duelist.rewards.base import Reward, check_rewards
from duelist.rewards.duel_table import DuelTable
from duelist.samplers.reward_mala import RewardChains, RewardMALA
from duelist.theory.schedules import THEORY_ETA

SAME_ARM = ("auto", "allow", "runner-up")


def log_message(message: str) -> None:
    """The default `announce`: an INFO record of the logger `duelist`."""
    logging.getLogger("duelist").info(message)


class NonlinearFGTSState(NamedTuple):
    """What the policy has learnt.

    Attributes:
        table: every duel learnt so far.
        chains: the sampler's chains, two a lane.
        asked: pairs asked for so far; it names the next random numbers.
        eta: (lanes,) temper of the likelihood.
        strength: (lanes,) mu = strength / sqrt(horizon).
        horizon: what mu is scaled by; 0 for the number of rounds learnt so far, 1 where mu was given itself.
        live: whether a person sees the pair.
    """

    table: DuelTable
    chains: RewardChains
    asked: int
    eta: FloatArray
    strength: FloatArray
    horizon: int
    live: bool


@dataclass(frozen=True, kw_only=True)
class NonlinearFGTS:
    """Feel-Good Thompson sampling for a differentiable reward. Needs the extra `jax`.

    Args:
        reward: r_theta(phi): one of `duelist.rewards`, or `CustomReward(function, n_parameters)`.
        eta: temper of the likelihood; 1 as in the paper's experiments, or "theory" for the theorem's 1/4.
        alpha: Feel-Good strength; mu = alpha / sqrt(horizon). 0 is plain Thompson sampling.
        mu: Feel-Good weight itself, instead of alpha; see `duelist.theory.nonlinear.nonlinear_mu` for the theorem's.
        horizon: rounds to be played. None takes the simulation's number of rounds, and live the anytime schedule.
        prior: on theta.
        sampler: the chains' steps a round.
        same_arm: when both draws pick one arm: "allow", "runner-up", or "auto": allow in simulation, runner-up live.
        announce: told what is being compiled and how long it took; by default an INFO record of the logger `duelist`.
    """

    reward: Reward
    eta: PerLane | Literal["theory"] = 1.0
    alpha: PerLane = 0.1
    mu: PerLane | None = None
    horizon: int | None = None
    prior: Prior = field(default_factory=Gaussian)
    sampler: RewardMALA = field(default_factory=RewardMALA)
    same_arm: str = "auto"
    announce: Callable[[str], None] = log_message

    def __post_init__(self) -> None:
        if not callable(self.reward) or not hasattr(self.reward, "parameters"):
            raise InvalidInputError(
                f"reward must be a reward with parameters(dim) and bound; got {self.reward!r}. "
                f"Wrap a function of your own: CustomReward(function, n_parameters=...)."
            )
        if isinstance(self.eta, str):
            one_of("eta", self.eta, ("theory",))
        else:
            check_per_lane("eta", self.eta, above=0.0)
        check_per_lane("alpha", self.alpha, at_least=0.0)
        if self.mu is not None:
            check_per_lane("mu", self.mu, at_least=0.0)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)
        one_of("same_arm", self.same_arm, SAME_ARM)
        if not is_proper(self.prior):
            raise ImproperPosteriorError(f"the prior {self.prior!r} is flat without a ball; use Gaussian or UniformBall.")

    def start(self, problem: Problem, streams: Streams) -> NonlinearFGTSState:
        """No duels yet, and chains at draws from the prior."""
        lanes = problem.lanes
        horizon = self.horizon or problem.horizon or 0
        strength = per_lane("alpha", self.alpha, lanes)
        if self.mu is not None:
            strength, horizon = per_lane("mu", self.mu, lanes), 1
        return NonlinearFGTSState(
            table=DuelTable.start(lanes=lanes, dim=problem.dim, horizon=problem.horizon or 0),
            chains=self.sampler.start(self.reward, self.prior, streams, dim=problem.dim),
            asked=0,
            eta=per_lane("eta", THEORY_ETA if isinstance(self.eta, str) else self.eta, lanes),
            strength=strength,
            horizon=horizon,
            live=problem.live,
        )

    def terms(self, state: NonlinearFGTSState) -> RewardTerms:
        """What the potential of both draws reads."""
        mu = state.strength / math.sqrt(state.horizon or max(state.table.rounds, 1))
        return RewardTerms.of(state.table, self.prior, state.eta, mu)

    def choose(self, state: NonlinearFGTSState, actions: ActionSet, streams: Streams) -> tuple[Duels, NonlinearFGTSState]:
        """Draw theta_1 and theta_2 and play the best arm of each."""
        finite = require_finite(self, actions)
        chains = self.sampler.advance(
            self.reward,
            self.terms(state),
            state.chains,
            streams,
            state.asked,
            rounds=state.table.rounds,
            announce=self.announce,
        )
        values = rewards_of_draws(self.reward, chains.position, finite.features)
        check_rewards(values, self.reward.bound)
        first, second = values[:, 0].argmax(axis=1), values[:, 1].argmax(axis=1)
        if self.same_arm == "runner-up" or (self.same_arm == "auto" and state.live):
            others = values[:, 1].copy()
            others[np.arange(len(first)), first] = -np.inf
            second = np.where(second == first, others.argmax(axis=1), second)
        return duels_between(finite, first, second), state._replace(chains=chains, asked=state.asked + 1)

    def learn(self, state: NonlinearFGTSState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> NonlinearFGTSState:
        """Append the outcomes; the chains move when the next pair is asked for."""
        return state._replace(table=state.table.append(require_finite(self, actions), duels, outcomes))

    def report(self, state: NonlinearFGTSState) -> dict[str, FloatArray]:
        """How the sampler is doing."""
        return self.sampler.report(state.chains)
