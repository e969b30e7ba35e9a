"""Do these votes have one ranking at all? A test by posterior predictive draws, and Borda scores where the answer is no."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.core.checks import whole_number
from duelist.datasets.comparisons import Comparisons
from duelist.datasets.people import Estimates, fit_votes
from duelist.preferences.logistic import win_probability
from duelist.typing import FloatArray, IntArray


class TransitivityTest(NamedTuple):
    """Whether one ranking explains the votes.

    Attributes:
        p_value: share of worlds with one ranking whose votes contradict their best ranking at least as strongly as these do.
        contradiction: how strongly these do: the sum of z^2 over pairs in which the item that is ranked lower won more votes.
        ranking: items, best first: no move of one item makes the votes contradict it less.
        against: pairs (lower, higher) that contradict it most, the strongest first, with their z.
        borda: mean share of votes that each item wins against the others it met, which needs no ranking.
    """

    p_value: float
    contradiction: float
    ranking: tuple[str, ...]
    against: tuple[tuple[str, str, float], ...]
    borda: Estimates

    def __str__(self) -> str:
        verdict = "no one ranking" if self.p_value < 0.05 else "one ranking will do"
        lines = [f"p = {self.p_value:.3f}: {verdict}", "ranking: " + " > ".join(self.ranking)]
        lines += [f"against it: {lower} beats {higher} (z = {z:.1f})" for lower, higher, z in self.against[:3]]
        return "\n".join([*lines, "Borda scores", str(self.borda)])


def check_transitivity(comparisons: Comparisons, n_draws: int = 500, seed: int = 0) -> TransitivityTest:
    """Test whether one ranking explains the votes.

    A world with one ranking is a draw of utilities from the posterior of the Bradley-Terry model. Its votes are drawn anew on
    the same pairs, as often as they were asked; ties stay ties. In each world, as in the real one, the ranking is the best that
    moves of one item at a time find, and pairs that contradict it are added up by z^2, z = (wins - losses) / sqrt(votes).

    The test asks about the order, not about the model: votes can have one ranking and not be Bradley-Terry's.

    Args:
        comparisons: votes on pairs.
        n_draws: worlds; the p-value is at least 1 / (n_draws + 1).
        seed: of the draws.

    Example:
        >>> shown = [[0, 1], [1, 2], [2, 0]] * 20
        >>> rounds = Comparisons(name="x", items=("rock", "paper", "scissors"), shown=shown, chosen=[1] * 60)
        >>> check_transitivity(rounds, n_draws=100).p_value < 0.02
        True
    """
    whole_number("n_draws", n_draws, at_least=20)
    rng = np.random.default_rng(whole_number("seed", seed))
    fit = fit_votes(comparisons, position=False)
    n_items = len(comparisons.items)
    wins, ties = _counts(comparisons, n_items)
    low, high = np.triu_indices(n_items, 1)
    decided = wins[low, high] + wins[high, low]
    totals = wins + wins.T + ties
    margins = _margins(wins, totals)
    ranking, contradiction = _least_contradicted(margins, np.argsort(-fit.utilities.mean))
    as_strong = 0
    for utilities in fit.draws(n_draws, seed):
        won = rng.binomial(np.rint(decided).astype(np.int64), win_probability(utilities[low] - utilities[high])).astype(
            np.float64
        )
        world = np.zeros_like(wins)
        world[low, high], world[high, low] = won, decided - won
        as_strong += _least_contradicted(_margins(world, totals), np.argsort(-utilities))[1] >= contradiction - 1e-9
    place = np.empty(n_items, dtype=np.int64)
    place[ranking] = np.arange(n_items)
    against = [(a, b) for a, b in np.argwhere(margins > 0.0) if place[a] > place[b]]
    against.sort(key=lambda pair: -margins[pair[0], pair[1]])
    names = comparisons.items
    return TransitivityTest(
        p_value=(1.0 + as_strong) / (1.0 + n_draws),
        contradiction=contradiction,
        ranking=tuple(names[row] for row in ranking),
        against=tuple((names[a], names[b], float(margins[a, b])) for a, b in against),
        borda=_borda(names, wins + 0.5 * ties, totals),
    )


def _counts(comparisons: Comparisons, n_items: int) -> tuple[FloatArray, FloatArray]:
    """(K, K) how often the row beat the column, and how often the two tied."""
    first, second, outcomes, votes = comparisons.pairs()
    weights = np.ones(len(votes)) if comparisons.weights is None else comparisons.weights[votes]
    wins, ties = np.zeros((n_items, n_items)), np.zeros((n_items, n_items))
    np.add.at(wins, (np.where(outcomes > 0, first, second), np.where(outcomes > 0, second, first)), weights * (outcomes != 0))
    np.add.at(ties, (first, second), weights * (outcomes == 0))
    return wins, ties + ties.T


def _margins(wins: FloatArray, totals: FloatArray) -> FloatArray:
    """(K, K) z of the row beating the column."""
    return np.asarray((wins - wins.T) / np.sqrt(np.maximum(totals, 1.0)))


def _least_contradicted(margins: FloatArray, order: IntArray) -> tuple[IntArray, float]:
    """The ranking that moves of one item at a time find from `order`, and what contradicts it."""
    cost = np.maximum(margins.T, 0.0) ** 2  # of ranking the row above the column
    order = order.copy()
    improved = True
    while improved:
        improved = False
        for item in order.tolist():
            others = order[order != item]
            # Ahead of place k the item is below the first k others and above the rest.
            below = np.concatenate([[0.0], np.cumsum(cost[others, item])])
            above = np.concatenate([np.cumsum(cost[item, others][::-1])[::-1], [0.0]])
            now = int(np.flatnonzero(order == item)[0])
            best = int(np.argmin(below + above))
            if below[best] + above[best] < below[now] + above[now] - 1e-9:
                order, improved = np.insert(others, best, item), True
    return order, float(np.triu(cost[np.ix_(order, order)], 1).sum())


def _borda(names: tuple[str, ...], scores: FloatArray, totals: FloatArray) -> Estimates:
    """Mean over opponents of the share of votes won, with normal intervals of 95 %."""
    met = totals > 0.0
    share = np.where(met, scores / np.maximum(totals, 1.0), 0.0)
    opponents = np.maximum(met.sum(axis=1), 1)
    mean = share.sum(axis=1) / opponents
    # With one vote more of each kind, so that a pair which always went one way is not certain.
    smoothed = (scores + 1.0) / (totals + 2.0)
    variance = np.where(met, smoothed * (1.0 - smoothed) / np.maximum(totals, 1.0), 0.0).sum(axis=1) / opponents**2
    deviation = np.sqrt(variance)
    return Estimates(names, mean, deviation, mean - 1.96 * deviation, mean + 1.96 * deviation)
