"""FGTS.CDB for any differentiable reward, through JAX (extra `jax`).

Each round draws theta_1 and theta_2 from

    -log p_j(theta) = sum_i [ eta log(1 + exp(-y_i Delta r_theta,i))
                              - mu ( max_{a' in A_i} r_theta(x_i, a') - r_theta(x_i, a_i^{3-j}) ) ] - log p_0(theta)

and plays a^j = argmax over A_t of r_theta_j(x_t, a).

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, Section 6.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.errors import ImproperPosteriorError, InvalidInputError
from duelist.core.lanes import PerLane, Problem
from duelist.core.stored_names import nest, stored
from duelist.core.streams import Streams
from duelist.history.duel_table import DuelTable
from duelist.history.duels import Duels, duels_between
from duelist.policies.base import Policy
from duelist.policies.parts.feel_good import FeelGoodSettings, check_feel_good, feel_good_settings
from duelist.policies.parts.same_arm import DRAWS, SameArm, best_other, check_same_arm, require_finite, resolve_same_arm
from duelist.posteriors.priors import Gaussian, Prior, check_prior
from duelist.posteriors.rewards import RewardTerms, is_proper, rewards_of_draws
from duelist.rewards.base import Reward, check_rewards
from duelist.rewards.models import Quadratic
from duelist.samplers.jax_mala import RewardMALA, RewardMALAState
from duelist.typing import FloatArray, IntArray


def log_message(message: str) -> None:
    """The default `announce`: an INFO record of the logger `duelist`."""
    logging.getLogger("duelist").info(message)


@stored("nonlinear-fgts-state", version=2, upgrade=nest(settings=FeelGoodSettings))
class NonlinearFGTSState(NamedTuple):
    """What the policy has learnt.

    Attributes:
        table: every duel learnt so far.
        chains: the sampler's chains, two per lane.
        asked: pairs asked for so far; it names the next random numbers.
        settings: temper and Feel-Good weight, one number per lane.
    """

    table: DuelTable
    chains: RewardMALAState
    asked: int
    settings: FeelGoodSettings


@dataclass(frozen=True, kw_only=True)
class NonlinearFGTS(Policy[NonlinearFGTSState]):
    """Feel-Good Thompson sampling for a differentiable reward. Needs the extra `jax`.

    Args:
        reward: r_theta(phi): one of `duelist.rewards`, or `CustomReward(function, n_parameters)`. The default, a quadratic, is
            the smallest that knows an ideal point.
        eta: temper of the likelihood; 1 as in the paper's experiments, or "theory" for the theorem's 1/4.
        alpha: Feel-Good strength; mu = alpha / sqrt(horizon). 0 is plain Thompson sampling.
        mu: Feel-Good weight itself, instead of alpha; see `duelist.theory.nonlinear_bounds.nonlinear_mu` for the theorem's.
        horizon: rounds to be played. None takes the simulation's number of rounds, and live the anytime schedule.
        prior: on theta.
        sampler: the chains' steps per round.
        same_arm: when both draws pick one arm: "allow", "runner-up", or "auto": allow in simulation, runner-up live.
        announce: told what is being compiled and how long it took; by default an INFO record of the logger `duelist`.
    """

    extra: ClassVar[str] = "jax"
    linear_utilities: ClassVar[bool] = False

    reward: Reward = field(default_factory=Quadratic)
    eta: PerLane | Literal["theory"] = 1.0
    alpha: PerLane = 0.1
    mu: PerLane | None = None
    horizon: int | None = None
    prior: Prior = field(default_factory=Gaussian)
    sampler: RewardMALA = field(default_factory=RewardMALA)
    same_arm: str = "auto"
    announce: Callable[[str], None] = field(default=log_message, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.reward) or not hasattr(self.reward, "parameters"):
            raise InvalidInputError(
                f"reward must be a reward with parameters(dim) and bound; got {self.reward!r}. "
                f"Wrap a function of your own: CustomReward(function, n_parameters=...)."
            )
        if not isinstance(self.sampler, RewardMALA):
            raise InvalidInputError(
                f"sampler must be a RewardMALA, the one that differentiates a reward; got {self.sampler!r}. "
                f"Set its steps: RewardMALA(steps=20)."
            )
        check_prior(self.prior)
        check_feel_good(self.eta, self.alpha, self.mu, self.horizon)
        check_same_arm(self.same_arm, DRAWS)
        if not is_proper(self.prior):
            raise ImproperPosteriorError(f"the prior {self.prior!r} is flat without a ball; use Gaussian or UniformBall.")

    def start(self, problem: Problem, streams: Streams) -> NonlinearFGTSState:
        """No duels yet, and chains at draws from the prior."""
        return NonlinearFGTSState(
            table=DuelTable.start(lanes=problem.lanes, dim=problem.dim, horizon=problem.horizon or 0),
            chains=self.sampler.start(self.reward, self.prior, streams, dim=problem.dim),
            asked=0,
            settings=feel_good_settings(problem, eta=self.eta, alpha=self.alpha, mu=self.mu, horizon=self.horizon),
        )

    def terms(self, state: NonlinearFGTSState) -> RewardTerms:
        """What the potential of both draws reads."""
        settings = state.settings
        return RewardTerms.of(state.table, self.prior, settings.eta, settings.mu(state.table.rounds))

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
        if finite.offsets is not None:
            values = values + finite.offsets[:, None]
        first, second = values[:, 0].argmax(axis=1), values[:, 1].argmax(axis=1)
        if resolve_same_arm(self.same_arm, DRAWS, live=state.settings.live) is not SameArm.ALLOW:
            second = np.where(second == first, best_other(values[:, 1], first), second)
        return duels_between(finite, first, second), state._replace(chains=chains, asked=state.asked + 1)

    def learn(self, state: NonlinearFGTSState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> NonlinearFGTSState:
        """Append the outcomes; the chains move when the next pair is asked for."""
        return state._replace(table=state.table.append(require_finite(self, actions), duels, outcomes))

    def follows_sets(self) -> bool:
        """Chains move with what was learnt, whatever is on offer."""
        return False

    def weighs_offsets(self) -> bool:
        """Draws play the best arm by reward and offset."""
        return True

    def report(self, state: NonlinearFGTSState) -> dict[str, FloatArray]:
        """How the sampler is doing."""
        return self.sampler.report(state.chains)
