"""Which two items stand between the votes of an arena and its goal: asks show those, and leave the policy the order."""

from __future__ import annotations

import numpy as np

from duelist.live.seen_pairs import Codes, pair_codes
from duelist.posteriors.stopping.pairs import deciding_pairs
from duelist.service.arena.arena import Arena
from duelist.service.arena.outcomes import SIGNS, Outcome
from duelist.typing import FloatArray

_MOST_ITEMS = 64  # of more, the policy alone chooses: the evidence of all pairs takes milliseconds


def win_counts(arena: Arena) -> FloatArray:
    """(n_items, n_items) wins of the row's item over the column's, of all answers that are learnt."""
    log, n_items = arena.log, len(arena.table.items)
    score = np.full(len(Outcome), np.nan)
    for outcome, sign in SIGNS.items():
        if outcome in arena.spec.learnt_outcomes:
            score[outcome] = 0.5 * (1 + sign)
    scores = score[log.column("outcome")]
    counted = ~np.isnan(scores)
    place = log.column("first")[counted] * n_items + log.column("second")[counted]
    won, lost = (
        np.bincount(place, weights=each, minlength=n_items**2).reshape(n_items, n_items)
        for each in (scores[counted], 1.0 - scores[counted])
    )
    return np.asarray(won + lost.T)


def contest(arena: Arena, playing: tuple[int, ...], codes: Codes, voter: str, draw: int) -> tuple[int, int] | None:
    """The two items that an ask shows for the sake of the goal, ascending; None where the policy may choose from all.

    A voter who has seen that pair gets the next one that the goal needs. With evidence from a model only a promotion is
    narrowed down: the policy that fits the goal knows better.

    Args:
        arena: the arena.
        playing: the items that could be shown.
        codes: a number for what voters see of each.
        voter: name of the voter; empty for none.
        draw: random, for the order of pairs that are equally uncertain.
    """
    goal, items = arena.goal, arena.table.items
    rows = {items[number].id: row for row, number in enumerate(playing)}
    if goal is None or len(playing) < 3 or arena.learner.choices > 2:
        return None
    if goal.kind == "promote":
        pair = tuple(sorted(arena.table.numbers[item] for item in (goal.challenger, goal.champion) if item in rows))
        return (pair[0], pair[1]) if len(pair) == 2 else None
    if goal.evidence == "model" or len(playing) > _MOST_ITEMS or (goal.kind == "top" and goal.k >= len(playing)):
        return None
    wins = win_counts(arena)[np.ix_(playing, playing)]
    refused = arena.seen.refused(voter, codes) if voter else np.empty(0, dtype=np.uint64)
    for i, j in deciding_pairs(wins, goal.over(rows), np.random.default_rng(draw)):
        if not np.isin(pair_codes(codes[[i]], codes[[j]]), refused)[0]:
            low, high = sorted((playing[i], playing[j]))
            return low, high
    return None
