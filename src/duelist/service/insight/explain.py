"""Why a pair was chosen, in numbers that were true at the ask and numbers that are true now."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.service.arena.arena import Arena
from duelist.service.arena.decisions import Decision
from duelist.service.errors import ConflictError
from duelist.service.insight.leaderboard import Leaderboard, interval


class Side(NamedTuple):
    """One candidate of a pair.

    Attributes:
        item: number of the item.
        drawn: its utility under each of the two posterior draws that chose the pair; empty where the policy drew none.
        utility: posterior mean now, in log-odds relative to the other candidate.
        low: lower end of its central 95 % interval.
        high: upper end.
        probability_best: now, of being the best of the active items.
    """

    item: int
    drawn: tuple[float, ...]
    utility: float
    low: float
    high: float
    probability_best: float


class Explanation(NamedTuple):
    """A decision explained.

    Attributes:
        left: the candidate on the left.
        right: the candidate on the right.
        probability_left_wins: posterior mean now, with its interval.
        low: lower end of the interval.
        high: upper end.
        pair_probability: estimated when the pair was chosen; None where unknown.
        explored: share of the pair that was not among the two leading items when it was chosen; None where unknown.
        words: the same as a sentence.
    """

    left: Side
    right: Side
    probability_left_wins: float
    low: float
    high: float
    pair_probability: float | None
    explored: float | None
    words: str


def explain(arena: Arena, decision: Decision, leaderboard: Leaderboard) -> Explanation:
    """Explain a decision by what is believed now and what was written down when it was made."""
    numbers = (decision.left, decision.right)
    learner = arena.learner
    if decision.number in learner.slates:
        raise ConflictError(f"ask {decision.id} shows {learner.choices} items; what can be explained is a pair.")
    if learner.request_features is not None:
        pair = learner.request_features.pair_of(decision)
        features = pair[::-1] if decision.flipped else pair
    else:
        features = arena.table.features(numbers, learner.lane.dim)
    utilities = leaderboard.theta @ features.T
    wins = interval(1.0 / (1.0 + np.exp(utilities[:, 1] - utilities[:, 0])))
    relative = utilities - utilities.mean(axis=1, keepdims=True)
    best = {rank.item: rank.probability_best for rank in leaderboard.ranks}
    drawn_first = (decision.draw_1_first, decision.draw_2_first)
    drawn_second = (decision.draw_1_second, decision.draw_2_second)
    known = not np.isnan(drawn_first).any()
    drawn = (drawn_second, drawn_first) if decision.flipped else (drawn_first, drawn_second)
    sides = [
        Side(number, drawn[side] if known else (), *interval(relative[:, side]), best.get(number) or 0.0)
        for side, number in enumerate(numbers)
    ]
    probability = None if np.isnan(decision.probability) else decision.probability
    explored = None if np.isnan(decision.explored) else decision.explored
    return Explanation(sides[0], sides[1], *wins, probability, explored, _words(arena, decision, known=known))


def _words(arena: Arena, decision: Decision, *, known: bool) -> str:
    policy = arena.spec.policy["kind"]
    first, second = (repr(arena.table.items[n].name) for n in (decision.first, decision.second))
    if not known:
        return f"{policy} chose {first} and {second}."
    same = decision.draw_2_first > decision.draw_2_second
    second_reason = (
        f"the second draw preferred {first} too, so its next best, {second}, was shown: a pair has two different items"
        if same
        else f"the second draw preferred {second}"
    )
    return f"{policy} drew two plausible worlds from what it had learnt: the first preferred {first}, {second_reason}."
