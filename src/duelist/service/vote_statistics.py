"""All wins of an arena as sufficient statistics: distinct contrasts, how often each was shown and its first item lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from duelist.core.checks import FloatArray, IntArray
from duelist.core.statistics import Statistics
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.priors import Gaussian, Prior
from duelist.posteriors.terms import PreferenceTerm, PriorTerm
from duelist.service.outcomes import Outcome

if TYPE_CHECKING:
    from duelist.service.arena import Arena


def potential_of(arena: Arena, *, chains: int) -> LinearPotential:
    """-log of the posterior of theta given every win that stands, held answers included: prior and likelihood, no tilt."""
    contrasts, totals, losses = _counted(arena)
    dim = arena.player.dim
    statistics = Statistics(
        contrasts=np.ascontiguousarray(contrasts.T)[None],
        totals=totals[None],
        losses=losses[None],
        n_rows=np.array([len(totals)]),
        sets=np.zeros((1, 0, dim, 0)),
        repeats=np.zeros(0),
        adversary=np.zeros((1, 2, dim)),
    )
    terms = (PriorTerm(prior_of(arena)), PreferenceTerm(statistics, np.ones(1)))
    return LinearPotential(*terms, lanes=1, chains=chains, dim=dim, observations=arena.n_wins, memory=float(totals.sum()))


def prior_of(arena: Arena) -> Prior:
    """The prior of the arena's policy, or a standard normal one where it has none."""
    prior: Prior = getattr(arena.player.policy, "prior", None) or Gaussian()
    return prior


def discount_of(arena: Arena) -> float:
    """By how much every vote fades the votes before it; 1 where the arena's policy never forgets."""
    return float(getattr(arena.player.policy, "discount", 1.0))


def _weights(arena: Arena, wins: IntArray) -> FloatArray:
    """What each of these wins still counts: those told later fade those told before, as in the policy's own history."""
    discount = discount_of(arena)
    if discount == 1.0:
        return np.ones(len(wins))
    age = np.empty(len(wins))
    age[np.lexsort((wins, arena.log.column("told_at")[wins]))] = np.arange(len(wins))[::-1]
    return np.asarray(discount**age)


def _counted(arena: Arena) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Contrasts (rows, dim), totals (rows,) and losses (rows,)."""
    dim = arena.player.dim
    outcome = arena.log.column("outcome")
    wins = np.flatnonzero((outcome == Outcome.FIRST) | (outcome == Outcome.SECOND))
    weights = _weights(arena, wins)
    if arena.sent is not None:
        pairs_shown = [arena.sent.pair_of(arena.log[int(number)]) for number in wins]
        rows = [pair[0] - pair[1] for pair in pairs_shown]
        lost = (outcome[wins] == Outcome.SECOND).astype(np.float64)
        return np.array(rows).reshape(-1, dim), weights, weights * lost
    first, second = arena.log.column("first")[wins], arena.log.column("second")[wins]
    low, high = np.minimum(first, second), np.maximum(first, second)
    low_lost = (outcome[wins] == Outcome.SECOND) == (first == low)
    n_items = max(len(arena.table.items), 1)
    pairs, row_of = np.unique(low * n_items + high, return_inverse=True)
    features = arena.table.features(tuple(range(len(arena.table.items))), dim)
    contrasts = features[pairs // n_items] - features[pairs % n_items]
    totals = np.bincount(row_of, weights=weights, minlength=len(pairs)).astype(np.float64)
    losses = np.bincount(row_of, weights=weights * low_lost, minlength=len(pairs)).astype(np.float64)
    return contrasts, totals, losses
