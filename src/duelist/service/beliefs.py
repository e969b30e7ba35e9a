"""What the votes say about every item: draws from the posterior, and the leaderboard that follows from them.

The posterior is that of the Bradley-Terry model with linear utilities, from the prior of the arena's policy and every win and
tie that stands. It does not depend on how the pairs were chosen, so the leaderboard means the same under every policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from duelist.core.checks import FloatArray, IntArray
from duelist.core.streams import Streams
from duelist.posteriors.potential import LinearPotential
from duelist.samplers.curvature import renewed, unknown_curvature
from duelist.samplers.mala import MALA
from duelist.service.outcomes import Outcome
from duelist.service.vote_statistics import potential_of

if TYPE_CHECKING:
    from duelist.service.arena import Arena

_CHAINS, _WARM_UP, _KEPT = 4, 40, 250
LEVEL = 0.95
_TAIL = (1.0 - LEVEL) / 2.0
_WON = (Outcome.FIRST, Outcome.SECOND)


class Evidence(NamedTuple):
    """All that the leaderboard needs of an arena, copied so that votes may go on while it is computed.

    Attributes:
        potential: -log posterior.
        features: (n_items, dim) what each item is compared by.
        active: (n_items,) who takes part.
        counts: (n_items, 5) shown, won, lost, tied, both bad.
        seed: names the random numbers.
        revision: of the arena.
    """

    potential: LinearPotential
    features: FloatArray
    active: IntArray
    counts: IntArray
    seed: int
    revision: int


class Rank(NamedTuple):
    """One item's place. Utilities are in log-odds, relative to the mean of the active items."""

    item: int
    active: bool
    utility: float
    low: float
    high: float
    probability_best: float
    win_rate: float
    shown: int
    wins: int
    losses: int
    ties: int
    both_bad: int


class Beliefs(NamedTuple):
    """Draws from the posterior, and the leaderboard, best first.

    Attributes:
        theta: (draws, dim).
        ranks: active items by utility, then retired ones.
        revision: of the arena that this is about.
    """

    theta: FloatArray
    ranks: tuple[Rank, ...]
    revision: int


def evidence(arena: Arena) -> Evidence:
    """Copy what `believe` needs."""
    n_items = len(arena.table.items)
    everyone = tuple(range(n_items))
    features = arena.sent.means(everyone) if arena.sent is not None else arena.table.features(everyone, arena.player.dim)
    active = np.zeros(n_items, dtype=np.int64)
    active[list(arena.table.active)] = 1
    return Evidence(potential_of(arena, chains=_CHAINS), features, active, _counts(arena), arena.spec.seed, arena.revision)


def believe(evidence: Evidence) -> Beliefs:
    """Sample the posterior and rank the items."""
    theta = posterior_draws(evidence.potential, evidence.seed)
    utilities = theta @ evidence.features.T
    playing = np.flatnonzero(evidence.active)
    utilities = utilities - utilities[:, playing].mean(axis=1, keepdims=True)
    best = np.bincount(playing[utilities[:, playing].argmax(axis=1)], minlength=len(evidence.active)) / len(theta)
    low, high = np.quantile(utilities, [_TAIL, 1.0 - _TAIL], axis=0)
    mean = utilities.mean(axis=0)
    rates = _win_rates(utilities, playing)
    order = sorted(range(len(mean)), key=lambda n: (not evidence.active[n], -mean[n], n))
    ranks = tuple(
        Rank(
            n,
            bool(evidence.active[n]),
            float(mean[n]),
            float(low[n]),
            float(high[n]),
            float(best[n]),
            float(rates[n]),
            *(int(c) for c in evidence.counts[n]),
        )
        for n in order
    )
    return Beliefs(theta, ranks, evidence.revision)


def predict(theta: FloatArray, features: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean, low, high and probability of being best, each (n,), of features (n, dim) under draws theta (draws, dim)."""
    utilities = theta @ features.T
    utilities = utilities - utilities.mean(axis=1, keepdims=True)
    low, high = np.quantile(utilities, [_TAIL, 1.0 - _TAIL], axis=0)
    best = np.bincount(utilities.argmax(axis=1), minlength=len(features)) / len(theta)
    return utilities.mean(axis=0), low, high, best


def posterior_draws(potential: LinearPotential, seed: int) -> FloatArray:
    """(draws, dim) from the posterior by preconditioned MALA, chains started at draws of the normal approximation."""
    streams = Streams(seed, [0])
    dim = potential.dim
    sampler = MALA(steps=4)
    curvature = renewed(unknown_curvature(1, dim), potential)
    noise = streams.generator("leaderboard", 0).standard_normal((1, _CHAINS, dim))
    chains = sampler.start(potential.prior, streams, chains=_CHAINS, dim=dim)
    chains = chains._replace(position=curvature.mode[:, None] + noise @ curvature.whitener[0], curvature=curvature)
    kept = np.empty((_KEPT, _CHAINS, dim))
    for call in range(_WARM_UP + _KEPT):
        chains = sampler.advance(potential, chains, streams, call)
        if call >= _WARM_UP:
            kept[call - _WARM_UP] = chains.position[0]
    return kept.reshape(-1, dim)


def interval(values: FloatArray) -> tuple[float, float, float]:
    """Mean, lower and upper end of the central 95 % interval."""
    low, high = np.quantile(values, [_TAIL, 1.0 - _TAIL])
    return float(values.mean()), float(low), float(high)


def _win_rates(utilities: FloatArray, playing: IntArray) -> FloatArray:
    """(n_items,) posterior mean of the probability to be preferred to another active item drawn at random."""
    n_items = utilities.shape[1]
    rates = np.empty(n_items)
    for n in range(n_items):
        others = playing[playing != n]
        rates[n] = (1.0 / (1.0 + np.exp(utilities[:, others] - utilities[:, n : n + 1]))).mean() if len(others) else 0.5
    return rates


def _counts(arena: Arena) -> IntArray:
    n_items, n_outcomes = len(arena.table.items), len(Outcome)
    outcome = arena.log.column("outcome").astype(np.int64)
    sizes = n_items * n_outcomes
    first, second = (
        np.bincount(arena.log.column(name) * n_outcomes + outcome, minlength=sizes).reshape(n_items, n_outcomes)
        for name in ("first", "second")
    )
    wins, losses = (first[:, one] + second[:, other] for one, other in (_WON, _WON[::-1]))
    ties, both_bad = (first[:, one] + second[:, one] for one in (Outcome.TIE, Outcome.BOTH_BAD))
    return np.stack([wins + losses + ties + both_bad, wins, losses, ties, both_bad], axis=1)
