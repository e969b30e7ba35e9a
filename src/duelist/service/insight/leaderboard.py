"""What the votes say about every item: draws from the posterior, and the leaderboard that follows from them.

The posterior is that of the Bradley-Terry model with linear utilities, from the prior of the arena's policy and every win and
tie that stands. It does not depend on how the pairs were chosen, so the leaderboard means the same under every policy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.core.streams import Streams
from duelist.history.statistics import Statistics
from duelist.posteriors.linear import LinearPotential
from duelist.samplers.curvature import refresh_curvature, unknown_curvature
from duelist.samplers.mala import MALA
from duelist.service.arena.arena import Arena
from duelist.service.arena.outcomes import SIGNS, Outcome
from duelist.typing import FloatArray, IntArray

# By how much the first item lost, at the number of the outcome.
_LOST = np.array([0.5 * (1 - SIGNS.get(outcome, 0)) for outcome in Outcome])


def potential_of(arena: Arena, *, chains: int) -> LinearPotential:
    """-log of the posterior of theta given every learnable answer, undoable ones included: prior and likelihood, no tilt."""
    contrasts, totals, losses = _counted(arena)
    dim = arena.learner.lane.dim
    statistics = Statistics(
        contrasts=np.ascontiguousarray(contrasts.T)[None],
        totals=totals[None],
        losses=losses[None],
        n_rows=np.array([len(totals)]),
        sets=np.zeros((1, 0, dim, 0)),
        repeats=np.zeros(0),
        adversary=np.zeros((1, 2, dim)),
    )
    return LinearPotential.of(
        arena.learner.lane.policy.believed_prior(),
        statistics,
        eta=np.ones(1),
        chains=chains,
        observations=arena.n_learnable,
        memory=float(totals.sum()),
    )


def _weights(arena: Arena, told: IntArray) -> FloatArray:
    """What each of these answers still counts: those told later fade those told before, as in the policy's own history."""
    discount = arena.learner.lane.policy.forgetting()
    if discount == 1.0:
        return np.ones(len(told))
    age = np.empty(len(told))
    age[np.lexsort((told, arena.log.column("told_at")[told]))] = np.arange(len(told))[::-1]
    return np.asarray(discount**age)


def _counted(arena: Arena) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Contrasts (rows, dim), totals (rows,) and losses (rows,)."""
    dim, request_features = arena.learner.lane.dim, arena.learner.request_features
    outcome = arena.log.column("outcome")
    learnable = np.zeros(len(Outcome), dtype=bool)
    learnable[list(arena.spec.learnt_outcomes)] = True
    told = np.flatnonzero(learnable[outcome])
    weights, lost = _weights(arena, told), _LOST[outcome[told]]
    if request_features is not None:
        settled = request_features.pairs
        shown = [settled[n] if n in settled else request_features.pair_of(arena.log[n]) for n in told.tolist()]
        both = np.array(shown).reshape(-1, 2, dim)
        return both[:, 0] - both[:, 1], weights, weights * lost
    first, second = arena.log.column("first")[told], arena.log.column("second")[told]
    low, high = np.minimum(first, second), np.maximum(first, second)
    low_lost = np.where(first == low, lost, 1.0 - lost)
    n_items = max(len(arena.table.items), 1)
    # Counting in a table of all pairs is many times faster than sorting them, and votes wait meanwhile.
    place = low * n_items + high
    pairs = np.flatnonzero(np.bincount(place))
    features = arena.table.features(tuple(range(len(arena.table.items))), dim)
    contrasts = features[pairs // n_items] - features[pairs % n_items]
    totals, losses = (np.bincount(place, weights=each)[pairs].astype(np.float64) for each in (weights, weights * low_lost))
    return contrasts, totals, losses


_CHAINS, _WARM_UP, _KEPT = 4, 40, 250
LEVEL = 0.95
_TAIL = (1.0 - LEVEL) / 2.0
_WON = (Outcome.FIRST, Outcome.SECOND)


class LeaderboardInputs(NamedTuple):
    """All that the leaderboard needs of an arena, copied so that votes may go on while it is computed.

    Attributes:
        potential: -log posterior.
        features: (n_items, dim) what each item is compared by.
        active: (n_items,) 1 where an item is active.
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


class Leaderboard(NamedTuple):
    """The ranks of all items, and the draws from the posterior behind them.

    Attributes:
        theta: (draws, dim).
        ranks: active items by utility, then retired ones.
        revision: of the arena.
    """

    theta: FloatArray
    ranks: tuple[Rank, ...]
    revision: int


def leaderboard_inputs(arena: Arena) -> LeaderboardInputs:
    """Copy what `compute_leaderboard` needs."""
    n_items = len(arena.table.items)
    everyone, learner = tuple(range(n_items)), arena.learner
    if learner.request_features is not None:
        features = learner.request_features.means(everyone)
    else:
        features = arena.table.features(everyone, learner.lane.dim)
    active = np.zeros(n_items, dtype=np.int64)
    active[list(arena.table.active)] = 1
    potential = potential_of(arena, chains=_CHAINS)
    return LeaderboardInputs(potential, features, active, _counts(arena), arena.spec.seed, arena.revision)


def compute_leaderboard(inputs: LeaderboardInputs) -> Leaderboard:
    """Sample the posterior and rank the items."""
    theta = posterior_draws(inputs.potential, inputs.seed)
    utilities = theta @ inputs.features.T
    playing = np.flatnonzero(inputs.active)
    utilities = utilities - utilities[:, playing].mean(axis=1, keepdims=True)
    best = np.bincount(playing[utilities[:, playing].argmax(axis=1)], minlength=len(inputs.active)) / len(theta)
    low, high = np.quantile(utilities, [_TAIL, 1.0 - _TAIL], axis=0)
    mean = utilities.mean(axis=0)
    rates = _win_rates(utilities, playing)
    order = sorted(range(len(mean)), key=lambda n: (not inputs.active[n], -mean[n], n))
    ranks = tuple(
        Rank(
            n,
            bool(inputs.active[n]),
            float(mean[n]),
            float(low[n]),
            float(high[n]),
            float(best[n]),
            float(rates[n]),
            *(int(c) for c in inputs.counts[n]),
        )
        for n in order
    )
    return Leaderboard(theta, ranks, inputs.revision)


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
    curvature = refresh_curvature(unknown_curvature(1, dim), potential)
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
