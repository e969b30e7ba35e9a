"""CoLSTIM: imitate the feedback. A randomly perturbed leader meets its strongest optimistic challenger.

    eps_k     Gumbel noise clipped to [-C, C]; one for each arm with probability p_t, else one shared by all
    first     i = argmax_k <theta_hat, x_k> + eps_k |x_k|_{M^-1}
    second    j = argmax_k <theta_hat, x_k - x_i> + radius * |x_k - x_i|_{M^-1}

with C = sqrt(d log T) and p_t = min(1, sqrt(d log(d T) / (t - tau))) after tau rounds of warm-up. Gumbel noise belongs to the
logistic link: the difference of two Gumbel variables is logistic, so a perturbed leader wins as often as the model says.

Reference: Bengs, Saha & Huellermeier (2022), Stochastic Contextual Dueling Bandits under Linear Stochastic Transitivity Models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from duelist.core.action_kernels import utilities_into
from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray, IntArray, finite_number, one_of, whole_number
from duelist.core.compiled import kernel
from duelist.core.duels import Duels, duels_between
from duelist.core.lanes import PerLane, Problem
from duelist.core.streams import Streams
from duelist.policies.finite import require_finite
from duelist.policies.gumbel import coupled_noise, theory_radius
from duelist.policies.ucb import UCBState, candidates, check_ucb, learn_ucb, report_ucb, start_ucb
from duelist.policies.ucb_kernels import challenger, pick_arm, whiten_arms


class CoLSTIMState(NamedTuple):
    """What CoLSTIM has learnt, and the horizon its schedules are scaled by (0 for the rounds asked so far)."""

    fit: UCBState
    horizon: int


@kernel
def colstim_lanes(
    first: IntArray,
    second: IntArray,
    columns: FloatArray,
    priority: FloatArray,
    theta: FloatArray,
    whitener: FloatArray,
    radius: FloatArray,
    noise: FloatArray,
    different: bool,
) -> None:
    """Fill the perturbed leader and its challenger, given noise (lanes, n_arms)."""
    lanes, dim, n_arms = columns.shape
    whitened, utilities, scores = np.empty((dim, n_arms)), np.empty(n_arms), np.empty(n_arms)
    for lane in range(lanes):
        utilities_into(utilities, columns[lane], theta[lane])
        whiten_arms(whitened, columns[lane], whitener[lane])
        for k in range(n_arms):
            squared = 0.0
            for i in range(dim):
                squared += whitened[i, k] * whitened[i, k]
            scores[k] = utilities[k] + noise[lane, k] * math.sqrt(squared)
        first[lane] = pick_arm(scores, priority[lane])
        second[lane] = challenger(scores, first[lane], utilities, whitened, radius[lane], priority[lane], different)


@dataclass(frozen=True, kw_only=True)
class CoLSTIM:
    """Play a randomly perturbed leader against its strongest optimistic challenger.

    Args:
        radius: c_1, weight of the challenger's width, or "theory" for sqrt(d log T); a sequence is one a lane.
        perturbation: factor of the leader's noise.
        clip: C, the largest noise; None for sqrt(d log T).
        warmup: tau, rounds of random pairs first; "theory" for d K. The ridge makes them unnecessary.
        ridge: lambda of the fit and of M; the paper uses 0.001.
        horizon: T; None takes the simulation's, and where nobody knows it the rounds asked so far.
        same_arm: "allow" lets the leader be its own challenger, "different" does not; "auto" allows it in simulation only.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(duelist.CoLSTIM(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 150)
        True
    """

    radius: PerLane | Literal["theory"] = 2.0
    perturbation: float = 1.0
    clip: float | None = None
    warmup: int | Literal["theory"] = 0
    ridge: PerLane = 2.0
    horizon: int | None = None
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        if isinstance(self.radius, str):
            one_of("radius", self.radius, ("theory",))
        check_ucb(0.0 if isinstance(self.radius, str) else self.radius, self.ridge, self.same_arm)
        finite_number("perturbation", self.perturbation, at_least=0.0)
        if self.clip is not None:
            finite_number("clip", self.clip, above=0.0)
        if self.warmup != "theory":
            whole_number("warmup", self.warmup)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)

    def start(self, problem: Problem, streams: Streams) -> CoLSTIMState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt."""
        horizon = self.horizon or problem.horizon or 0
        radius = theory_radius(problem.dim, horizon or 2) if isinstance(self.radius, str) else self.radius
        return CoLSTIMState(start_ucb(problem, radius, self.ridge, self.same_arm), horizon)

    def choose(self, state: CoLSTIMState, actions: ActionSet, streams: Streams) -> tuple[Duels, CoLSTIMState]:
        """The perturbed leader and its challenger; random pairs while warming up."""
        fit, finite = state.fit, require_finite(self, actions)
        columns, priority = candidates(self, actions, fit.theta, streams, fit.asked)
        warmup = finite.dim * finite.n_arms if self.warmup == "theory" else self.warmup
        if fit.asked < warmup:
            # Priorities are independent uniforms, so the two largest are a uniform pair of different arms.
            order = np.argsort(-priority, axis=1, kind="stable")
            first, second = order[:, 0], order[:, 1]
        else:
            first, second = np.empty(finite.lanes, dtype=np.int64), np.empty(finite.lanes, dtype=np.int64)
            noise = self.perturbation * coupled_noise(
                finite,
                streams,
                fit.asked,
                since=fit.asked - warmup,
                horizon=state.horizon or fit.asked + 2,
                clip=self.clip,
            )
            radius = fit.radius
            if isinstance(self.radius, str) and state.horizon == 0:
                radius = np.full(finite.lanes, theory_radius(finite.dim, fit.asked + 2))
            colstim_lanes(first, second, columns, priority, fit.theta, fit.whitener, radius, noise, fit.different)
        return duels_between(finite, first, second), state._replace(fit=fit._replace(asked=fit.asked + 1))

    def learn(self, state: CoLSTIMState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> CoLSTIMState:
        """Append the outcomes and fit again."""
        return state._replace(fit=learn_ucb(state.fit, actions, duels, outcomes, local=False))

    def report(self, state: CoLSTIMState) -> dict[str, FloatArray]:
        """Fits that did not converge, and the size of the statistics."""
        return report_ucb(state.fit)
