"""CoLSTIM: imitate the feedback. A randomly perturbed leader meets its strongest optimistic challenger.

    eps_k     Gumbel noise clipped to [-C, C]; one for each arm with probability p_t, else one shared by all
    first     i = argmax_k <theta_hat, x_k> + eps_k |x_k|_{M^-1}
    second    j = argmax_k <theta_hat, x_k - x_i> + radius * |x_k - x_i|_{M^-1}

with C = sqrt(d log T) and p_t = min(1, sqrt(d log(d T) / (t - tau))) after tau rounds of warm-up. Gumbel noise belongs to the
logistic link: the difference of two Gumbel variables is logistic, so a perturbed leader wins as often as the model says.

Reference: Bengs, Saha & Huellermeier (2022), Stochastic Contextual Dueling Bandits under Linear Stochastic Transitivity Models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import finite_number, one_of, whole_number
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.stored_names import nest, stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.kernels.rules.pairs import colstim_lanes
from duelist.policies.base import Round
from duelist.policies.parts.confidence import (
    FittedPolicy,
    UCBState,
    WarmUp,
    beside_offsets,
    check_ucb,
    expect_answers,
    learn_ucb,
    learn_ucb_many,
    new_pairs,
    offer_candidates,
    random_pairs,
    report_ucb,
    start_ucb,
    warm_up_rounds,
)
from duelist.policies.parts.gumbel import coupled_noise, theory_radius
from duelist.policies.parts.same_arm import require_finite
from duelist.typing import FloatArray, IntArray


@stored("colstim-settings")
class CoLSTIMSettings(NamedTuple):
    """The horizon that the schedules are scaled by; 0 for the rounds asked so far."""

    horizon: int


@stored("colstim-state", version=2, upgrade=nest(settings=CoLSTIMSettings))
class CoLSTIMState(NamedTuple):
    """What CoLSTIM has learnt, and its settings beside those of the fit."""

    fit: UCBState
    settings: CoLSTIMSettings


@dataclass(frozen=True, kw_only=True)
class CoLSTIM(FittedPolicy[CoLSTIMState]):
    """Play a randomly perturbed leader against its strongest optimistic challenger.

    Args:
        radius: c_1, weight of the challenger's width, or "theory" for sqrt(d log T); a sequence is one per lane.
        perturbation: factor of the leader's noise; a sequence is one per lane. The paper tries 0.01, 0.1, 1 and 10.
        clip: C, the largest noise; None for sqrt(d log T).
        warmup: tau, rounds of random pairs first; "theory" for d K. The ridge makes them unnecessary.
        ridge: lambda, of M; the paper uses 0.001.
        horizon: T; None takes the simulation's, and where it is unknown the rounds asked so far.
        same_arm: "allow" lets the leader be its own challenger, "different" does not; "auto" allows it in simulation only.
        fit_ridge: lambda_fit, of the fit; None for that of M. 1e-6 is next to none and keeps the fit of separable duels finite.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(duelist.CoLSTIM(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 150)
        True
    """

    radius: PerLane | Literal["theory"] = 2.0
    perturbation: PerLane = 1.0
    clip: float | None = None
    warmup: WarmUp = 0
    ridge: PerLane = 2.0
    horizon: int | None = None
    same_arm: str = "auto"
    fit_ridge: PerLane | None = None

    def __post_init__(self) -> None:
        if isinstance(self.radius, str):
            one_of("radius", self.radius, ("theory",))
        radius = 0.0 if isinstance(self.radius, str) else self.radius
        check_ucb(radius, self.ridge, self.same_arm, self.fit_ridge, self.warmup)
        check_per_lane("perturbation", self.perturbation, at_least=0.0)
        if self.clip is not None:
            finite_number("clip", self.clip, above=0.0)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)

    def start(self, problem: Problem, streams: Streams) -> CoLSTIMState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt."""
        horizon = self.horizon or problem.horizon or 0
        radius = theory_radius(problem.dim, horizon or 2) if isinstance(self.radius, str) else self.radius
        per_lane("perturbation", self.perturbation, problem.lanes)
        return CoLSTIMState(start_ucb(problem, radius, self.ridge, self.same_arm, self.fit_ridge), CoLSTIMSettings(horizon))

    def choose(self, state: CoLSTIMState, actions: ActionSet, streams: Streams) -> tuple[Duels, CoLSTIMState]:
        """The perturbed leader and its challenger; random pairs while warming up."""
        fit, finite = state.fit, require_finite(self, actions)
        candidates = offer_candidates(self, actions, fit.theta, streams, fit.asked)
        warmup = warm_up_rounds(self.warmup, finite)
        if fit.asked < warmup:
            first, second = random_pairs(candidates)
        else:
            first, second = new_pairs(finite.lanes)
            noise = np.reshape(self.perturbation, (-1, 1)) * coupled_noise(
                finite,
                streams,
                fit.asked,
                since=fit.asked - warmup,
                horizon=state.settings.horizon or fit.asked + 2,
                clip=self.clip,
            )
            bounds = fit.bounds
            if isinstance(self.radius, str) and state.settings.horizon == 0:
                bounds = bounds._replace(radius=np.full(finite.lanes, theory_radius(finite.dim, fit.asked + 2)))
            colstim_lanes(first, second, candidates, beside_offsets(finite, bounds), noise, fit.settings.different)
        return duels_between(finite, first, second), state._replace(fit=fit._replace(asked=fit.asked + 1))

    def choose_with_pending(
        self, state: CoLSTIMState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, CoLSTIMState]:
        """`choose` with the widths that there will be when the pending duels are answered."""
        fit = state.fit
        duels, after = self.choose(state._replace(fit=expect_answers(fit, pending)), actions, streams)
        return duels, after._replace(fit=after.fit._replace(gram=fit.gram, whitener=fit.whitener))

    def learn(self, state: CoLSTIMState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> CoLSTIMState:
        """Append the outcomes and fit again."""
        return state._replace(fit=learn_ucb(state.fit, actions, duels, outcomes, local=False))

    def learn_many(self, state: CoLSTIMState, rounds: Iterable[Round]) -> CoLSTIMState:
        """Append all outcomes and fit once."""
        return state._replace(fit=learn_ucb_many(state.fit, rounds, local=False))

    def recommend(self, state: CoLSTIMState, actions: FiniteActions) -> IntArray:
        """(lanes,) the best arm by the estimate."""
        return actions.best(state.fit.theta[:, None]).row[:, 0]

    def report(self, state: CoLSTIMState) -> dict[str, FloatArray]:
        """Fits that did not converge, and the size of the statistics."""
        return report_ucb(state.fit)
