"""What the votes say about every item: draws from the posterior, and the leaderboard that follows from them.

The posterior is that of `duelist.live.beliefs`, from the prior of the arena's policy and every win and tie that stands, those
that can still be undone included. It does not depend on how the pairs were chosen, so the leaderboard means the same under
every policy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from duelist.history.statistics import Statistics
from duelist.live.beliefs import LEVEL as LEVEL
from duelist.live.beliefs import Beliefs, Draws, Standing, probability_best
from duelist.live.beliefs import posterior_draws as posterior_draws
from duelist.posteriors.linear import LinearPotential
from duelist.service.arena.arena import Arena
from duelist.service.arena.outcomes import SIGNS, Outcome
from duelist.service.arena.slates import own_standing
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


_TAIL = (1.0 - LEVEL) / 2.0
_WON = (Outcome.FIRST, Outcome.SECOND)


class ArenaReader(Protocol):
    """Asks something of an arena while nothing changes."""

    def __call__(self, question: Callable[[Arena], Any], /) -> Any:
        """The answer."""
        ...


class ArenaBeliefs:
    """The draws of one arena, renewed as its votes grow.

    Args:
        seed: names the random numbers.
    """

    def __init__(self, seed: int) -> None:
        self._beliefs = Beliefs(seed)
        self._drawn_from: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def draws(self, read: ArenaReader) -> Draws:
        """The draws, renewed first if they are too old. Votes wait only while the counts are copied."""
        own = read(standing_of)
        if own is not None:
            return self._drawn_by_policy(read, own)
        dim, memory = read(lambda arena: (arena.learner.lane.dim, _memory(arena)))
        return self._beliefs.draws(lambda _: read(self._news), lambda: read(self._potential), dim=dim, memory=memory)

    def _drawn_by_policy(self, read: ArenaReader, own: Standing) -> Draws:
        votes, news, outcomes = read(lambda arena: (arena.n_learnable, self._news(arena), _learnt_outcomes(arena)))
        drawn = self._beliefs.drawn_by_policy(votes, own, news)
        assert drawn is not None  # standing_of says which policies draw
        if not drawn.age:
            self._drawn_from = outcomes
        return drawn

    def _news(self, arena: Arena) -> int:
        """Answers that came, changed or were undone since the draws were made."""
        now, before = _learnt_outcomes(arena), self._drawn_from
        old = len(before)
        return int((now[:old] != before).sum() + (now[old:] != Outcome.OPEN).sum())

    def _potential(self, arena: Arena) -> LinearPotential:
        self._drawn_from = _learnt_outcomes(arena)
        return potential_of(arena, chains=1)


def _learnt_outcomes(arena: Arena) -> npt.NDArray[np.int64]:
    """The outcome of every decision, open where nothing is learnt from it."""
    outcome = arena.log.column("outcome").astype(np.int64)
    for number, places in arena.learner.rankings.items():
        outcome[number] += len(Outcome) * (1 + hash(places) % 2**32)  # another ranking is another answer
    return np.where(np.isin(outcome % len(Outcome), list(arena.spec.learnt_outcomes)), outcome, int(Outcome.OPEN))


def _memory(arena: Arena) -> float:
    """What the votes of an arena add up to."""
    n, discount = arena.n_learnable, arena.learner.lane.policy.forgetting()
    return float(n) if discount == 1.0 else (1.0 - discount**n) / (1.0 - discount)


class LeaderboardInputs(NamedTuple):
    """All that the leaderboard needs of an arena, copied so that votes may go on while it is computed.

    Attributes:
        draws: of the posterior.
        features: (n_items, dim) what each item is compared by.
        known: (n_items,) whether an item has features: those of a request arena come with the first ask that offers it.
        active: (n_items,) 1 where an item is active.
        counts: (n_items, 5) shown, won, lost, tied, both bad.
        revision: of the arena.
    """

    draws: Draws
    features: FloatArray
    known: npt.NDArray[np.bool_]
    active: IntArray
    counts: IntArray
    revision: int


class Rank(NamedTuple):
    """One item's place. Utilities are in log-odds, relative to the mean of the active items.

    Of an item without features nothing is known: its interval and its probability to be best are None.
    """

    item: int
    active: bool
    utility: float
    low: float | None
    high: float | None
    probability_best: float | None
    win_rate: float
    shown: int
    wins: int
    losses: int
    ties: int
    both_bad: int


class Leaderboard(NamedTuple):
    """The ranks of all items, and the draws from the posterior behind them.

    Attributes:
        draws: theta, how many votes it was drawn from, and how many came since.
        ranks: active items by utility, then retired ones.
        revision: of the arena.
    """

    draws: Draws
    ranks: tuple[Rank, ...]
    revision: int

    @property
    def theta(self) -> FloatArray:
        """(n_draws, dim)."""
        return self.draws.theta


def leaderboard_inputs(arena: Arena, draws: Draws | None = None) -> LeaderboardInputs:
    """Copy what `compute_leaderboard` needs; without draws they are made from scratch."""
    n_items = len(arena.table.items)
    everyone, learner = tuple(range(n_items)), arena.learner
    known = np.ones(n_items, dtype=bool)
    if learner.request_features is not None:
        features = learner.request_features.means(everyone)
        known = np.array([learner.request_features.counts.get(n, 0) > 0 for n in everyone], dtype=bool)
    else:
        features = arena.table.features(everyone, learner.lane.dim)
    active = np.zeros(n_items, dtype=np.int64)
    active[list(arena.table.active)] = 1
    own = standing_of(arena) if draws is None else None
    if own is not None:
        draws = Beliefs(arena.spec.seed).drawn_by_policy(arena.n_learnable, own)
    if draws is None:
        draws = Draws(posterior_draws(potential_of(arena, chains=1), arena.spec.seed), arena.n_learnable, 0)
    return LeaderboardInputs(draws, features, known, active, _counts(arena), arena.revision)


def compute_leaderboard(inputs: LeaderboardInputs) -> Leaderboard:
    """Rank the items by the draws."""
    utilities, n_items, known = inputs.draws.theta @ inputs.features.T, len(inputs.active), inputs.known
    playing = np.flatnonzero(inputs.active * known)
    best = np.zeros(n_items)
    if len(playing):
        utilities = utilities - utilities[:, playing].mean(axis=1, keepdims=True)
        best[playing] = probability_best(utilities[:, playing])
    low, high = np.quantile(utilities, [_TAIL, 1.0 - _TAIL], axis=0)
    mean = np.where(known, utilities.mean(axis=0), 0.0)
    rates = _win_rates(utilities, playing)
    order = sorted(range(n_items), key=lambda n: (not inputs.active[n], not known[n], -mean[n], n))
    ranks = tuple(
        Rank(
            n,
            bool(inputs.active[n]),
            float(mean[n]),
            float(low[n]) if known[n] else None,
            float(high[n]) if known[n] else None,
            float(best[n]) if known[n] else None,
            float(rates[n]) if known[n] else 0.5,
            *(int(c) for c in inputs.counts[n]),
        )
        for n in order
    )
    return Leaderboard(inputs.draws, ranks, inputs.revision)


def interval(values: FloatArray) -> tuple[float, float, float]:
    """Mean, lower and upper end of the central 95 % interval."""
    low, high = np.quantile(values, [_TAIL, 1.0 - _TAIL])
    return float(values.mean()), float(low), float(high)


_OPPONENTS, _RATED_DRAWS = 256, 128  # beyond these, win rates are means over a sample of opponents and of draws


def _win_rates(utilities: FloatArray, playing: IntArray) -> FloatArray:
    """(n_items,) posterior mean of the probability to be preferred to another active item drawn at random.

    Of many items, the opponents are a sample: every n-th in the order of their utilities, so the sample is spread as they are.
    """
    n_items = utilities.shape[1]
    if len(playing) > _OPPONENTS:
        ordered = playing[np.argsort(utilities[:, playing].mean(axis=0), kind="stable")]
        playing = ordered[np.linspace(0, len(ordered) - 1, _OPPONENTS).round().astype(np.int64)]
        utilities = utilities[:: -(-len(utilities) // _RATED_DRAWS)]
    rates = np.empty(n_items)
    for n in range(n_items):
        others = playing[playing != n]
        rates[n] = (1.0 / (1.0 + np.exp(utilities[:, others] - utilities[:, n : n + 1]))).mean() if len(others) else 0.5
    return rates


def standing_of(arena: Arena) -> Standing | None:
    """Where a policy that draws its own posterior stands with every answer so far, undoable ones included; None for others."""
    learnt = frozenset(arena.spec.learnt_outcomes)
    undoable = [arena.log[number] for number in arena.undoable]
    return own_standing(arena.learner, [decision for decision in undoable if decision.outcome in learnt])


def _slate_counts(arena: Arena) -> IntArray:
    """(n_items, 5) as `_counts`: a slate has one winner, and everybody else in it lost."""
    counts = np.zeros((len(arena.table.items), 5), dtype=np.int64)
    learner = arena.learner
    columns = {Outcome.TIE: 3, Outcome.BOTH_BAD: 4}
    for number in range(len(arena.log)):
        decision = arena.log[number]
        if decision.outcome in (Outcome.OPEN, Outcome.SKIP, Outcome.REMOVED):
            continue
        shown = learner.slates[number].items if number in learner.slates else (decision.first, decision.second)
        best = learner.rankings[number][0] if number in learner.rankings else int(decision.outcome is Outcome.SECOND)
        for place, item in enumerate(shown):
            counts[item, 0] += 1
            counts[item, columns.get(decision.outcome, 1 if place == best else 2)] += 1
    return counts


def _counts(arena: Arena) -> IntArray:
    if arena.learner.slates:
        return _slate_counts(arena)
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
