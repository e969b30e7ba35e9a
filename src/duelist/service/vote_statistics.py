"""All that the answers of an arena teach, as sufficient statistics.

Distinct contrasts, how often each was shown, and how often its first item lost, half for a tie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from duelist.core.checks import FloatArray, IntArray
from duelist.core.statistics import Statistics
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.priors import Gaussian, Prior
from duelist.posteriors.terms import PreferenceTerm, PriorTerm
from duelist.service.outcomes import SIGNS, Outcome

if TYPE_CHECKING:
    from duelist.service.arena import Arena

# By how much the first item lost, at the number of the outcome.
_LOST = np.array([0.5 * (1 - SIGNS.get(outcome, 0)) for outcome in Outcome])


def potential_of(arena: Arena, *, chains: int) -> LinearPotential:
    """-log of the posterior of theta given every answer that teaches, held ones included: prior and likelihood, no tilt."""
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
    return LinearPotential(*terms, lanes=1, chains=chains, dim=dim, observations=arena.n_teaching, memory=float(totals.sum()))


def prior_of(arena: Arena) -> Prior:
    """The prior of the arena's policy, or a standard normal one where it has none."""
    prior: Prior = getattr(arena.player.policy, "prior", None) or Gaussian()
    return prior


def discount_of(arena: Arena) -> float:
    """By how much every vote fades the votes before it; 1 where the arena's policy never forgets."""
    return float(getattr(arena.player.policy, "discount", 1.0))


def _weights(arena: Arena, told: IntArray) -> FloatArray:
    """What each of these answers still counts: those told later fade those told before, as in the policy's own history."""
    discount = discount_of(arena)
    if discount == 1.0:
        return np.ones(len(told))
    age = np.empty(len(told))
    age[np.lexsort((told, arena.log.column("told_at")[told]))] = np.arange(len(told))[::-1]
    return np.asarray(discount**age)


def _counted(arena: Arena) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Contrasts (rows, dim), totals (rows,) and losses (rows,)."""
    dim = arena.player.dim
    outcome = arena.log.column("outcome")
    teaches = np.zeros(len(Outcome), dtype=bool)
    teaches[list(arena.spec.teaching)] = True
    told = np.flatnonzero(teaches[outcome])
    weights, lost = _weights(arena, told), _LOST[outcome[told]]
    if arena.sent is not None:
        settled = arena.sent.pairs
        shown = [settled[n] if n in settled else arena.sent.pair_of(arena.log[n]) for n in told.tolist()]
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
