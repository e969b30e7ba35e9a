"""Histories that FGTS itself played, and their potential in plain NumPy.

Histories at random do not show what a strong Feel-Good tilt does: a round in which an arm meets itself adds to the tilt and
nothing to the likelihood, and only a policy that draws from the posterior plays such rounds again and again. The reference laws
of these histories are in `tests.support.exact_laws`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from duelist.actions.finite import FiniteActions
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.base import Environment
from duelist.policies.algorithms.sampling.fgts import FGTS, FGTSState
from tests.support.oracles import Floats

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PlayedHistory:
    """One trial with a fixed set of arms.

    Attributes:
        arms: (n_arms, dim) offered in every round.
        contrasts: (n, dim) distinct contrasts that were played; an arm against itself is none.
        wins: (n,) how often the first arm of each won.
        losses: (n,) how often it lost.
        adversaries: (2, dim) sum over rounds of the arm that the other draw chose, for draw j = 1, 2.
        rounds: how many were played.
        mu: Feel-Good weight.
        eta: temper of the likelihood.
        radius: of the prior's ball; infinite for none.
        precision: of the prior's Gaussian.
    """

    arms: Floats
    contrasts: Floats
    wins: Floats
    losses: Floats
    adversaries: Floats
    rounds: int
    mu: float
    eta: float = 1.0
    radius: float = math.inf
    precision: float = 1.0

    @property
    def dim(self) -> int:
        return int(self.arms.shape[1])

    def potential(self, theta: Floats, j: int) -> Floats:
        """-log p_j up to a constant at theta (n, dim), for j = 0 or 1: (n,)."""
        return self.prior(theta) + self.evidence(theta, j)

    def prior(self, theta: Floats) -> Floats:
        """Minus the logarithm of the prior at theta (n, dim), up to a constant."""
        squared = (theta**2).sum(axis=1)
        return np.asarray(np.where(squared > self.radius**2, math.inf, 0.5 * self.precision * squared))

    def evidence(self, theta: Floats, j: int) -> Floats:
        """What duels and tilt add to the potential at theta (n, dim)."""
        margin = theta @ self.contrasts.T
        # log(1 + e^m) = log(1 + e^-m) + m: one logarithm serves wins and losses.
        loss = np.logaddexp(0.0, -margin) @ (self.wins + self.losses) + margin @ self.losses
        tilt = self.rounds * (theta @ self.arms.T).max(axis=1) - theta @ self.adversaries[j]
        return np.asarray(self.eta * loss - self.mu * tilt)

    def gradient(self, theta: Floats, j: int) -> Floats:
        """Gradient of the potential at one theta (dim,); a subgradient where two arms tie."""
        lost = 0.5 - 0.5 * np.tanh(0.5 * (self.contrasts @ theta))
        slope = self.contrasts.T @ (self.losses - (self.wins + self.losses) * lost)
        best = self.arms[np.argmax(self.arms @ theta)]
        return np.asarray(
            self.precision * theta + self.eta * slope - self.mu * (self.rounds * best - self.adversaries[j]), dtype=np.float64
        )

    def best_arms(self, theta: Floats) -> Ints:
        """Row of the best arm at theta (n, dim)."""
        return np.asarray((theta @ self.arms.T).argmax(axis=1))

    def arm_law(self, theta: Floats) -> Floats:
        """(n_arms,) how often each arm is the best one at theta (n, dim)."""
        return np.bincount(self.best_arms(theta), minlength=len(self.arms)) / len(theta)


@dataclass(frozen=True, kw_only=True)
class Play:
    """Trials of FGTS after their last round, with all that is needed to go on drawing."""

    policy: FGTS
    state: FGTSState
    streams: Streams
    histories: list[PlayedHistory]
    regret: Floats

    def draws(self, n: int) -> tuple[Floats, Any]:
        """(lanes, 2, n, dim) positions over n more advances at the last potential, and the chains at their end."""
        potential, chains, sampler = self.policy.potential(self.state), self.state.chains, self.policy._sampler
        kept = []
        for call in range(n):
            chains = sampler.advance(potential, chains, self.streams, self.state.asked + call)
            kept.append(chains.position)
        return np.stack(kept, axis=2), chains


def play(policy: FGTS, environment: Environment, *, rounds: int, trials: int, seed: int) -> Play:
    """Play FGTS for so many rounds, with one fixed set of arms per trial."""
    streams = Streams(seed, range(trials))
    instance = environment.instance(streams)
    state = policy.start(Problem(dim=environment.dim, lanes=trials, horizon=rounds), streams)
    log = np.empty((3, trials, rounds), dtype=np.int64)
    regret = np.zeros(trials)
    for t in range(rounds):
        actions = instance.actions(t)
        duels, state = policy.choose(state, actions, streams)
        outcomes = instance.outcomes(t, duels)
        state = policy.learn(state, actions, duels, outcomes)
        regret += instance.regret(actions, duels).average
        log[:, :, t] = duels.first, duels.second, outcomes
    mu = float(np.max(policy.alpha)) / math.sqrt(rounds)
    precision, radius = float(policy.prior.precision), float(policy.prior.radius)
    actions = instance.actions(0)
    assert isinstance(actions, FiniteActions)
    features = actions.features
    histories = [
        replace(history_of_log(features[lane], *log[:, lane], mu=mu), precision=precision, radius=radius)
        for lane in range(trials)
    ]
    return Play(policy=policy, state=state, streams=streams, histories=histories, regret=regret)


def history_of_log(arms: Floats, first: Ints, second: Ints, outcomes: Ints, *, mu: float) -> PlayedHistory:
    """Counts from rows that met (rounds,), and +1 where the first won."""
    met = first != second
    low, high = np.minimum(first, second)[met], np.maximum(first, second)[met]
    low_won = np.where(first < second, outcomes, -outcomes)[met] > 0
    pairs, which = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
    which = which.reshape(-1)
    wins = np.bincount(which[low_won], minlength=len(pairs)).astype(np.float64)
    losses = np.bincount(which[~low_won], minlength=len(pairs)).astype(np.float64)
    adversaries = np.stack([arms[second].sum(axis=0), arms[first].sum(axis=0)])
    contrasts = arms[pairs[:, 0]] - arms[pairs[:, 1]]
    return PlayedHistory(
        arms=arms, contrasts=contrasts, wins=wins, losses=losses, adversaries=adversaries, rounds=len(first), mu=mu
    )


def descend(history: PlayedHistory, j: int, starts: Floats) -> tuple[Floats, Floats]:
    """Where plain descent ends from starts (n, dim), and the potential there (n,), by a general-purpose optimiser."""

    def objective(theta: Floats) -> tuple[float, Floats]:
        return float(history.potential(theta[None], j)[0]), history.gradient(theta, j)

    ends = [minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 150}) for start in starts]
    return np.array([end.x for end in ends]), np.array([float(end.fun) for end in ends])


def best_of_descents(history: PlayedHistory, j: int, n: int = 50) -> float:
    """The lowest potential that n descents reach: one from ten times each arm, the others from random points."""
    rng = np.random.default_rng(0)
    arms = 10.0 * history.arms[:n]
    lengths = 10.0 ** rng.uniform(0.0, 2.5, size=n - len(arms))
    directions = rng.standard_normal((n - len(arms), history.dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return float(descend(history, j, np.concatenate([arms, lengths[:, None] * directions]))[1].min())


def total_variation(one: Floats, other: Floats) -> float:
    """Total variation distance of two laws on the same arms."""
    return 0.5 * float(np.abs(one - other).sum())
