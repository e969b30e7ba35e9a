"""Plackett-Luce over one slate as its formula says, stage by stage and candidate by candidate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from duelist.actions.finite import FiniteActions
from tests.support.oracles import Floats

Slow = tuple[float, Floats, Floats]


def slow_answer(theta: Floats, shown: Floats, answer: Any) -> Slow:
    """-log P(answer | theta), gradient and Hessian in theta, of candidates shown (q, dim); a tie is 1/q of a win of each."""
    if isinstance(answer, str):
        parts = [slow_answer(theta, shown, [place]) for place in range(len(shown))]
        return (
            sum(part[0] for part in parts) / len(parts),
            np.sum([part[1] for part in parts], axis=0) / len(parts),
            np.sum([part[2] for part in parts], axis=0) / len(parts),
        )
    loss, gradient, hessian, left = 0.0, np.zeros(len(theta)), np.zeros((len(theta), len(theta))), list(range(len(shown)))
    for place in answer:
        odds = {j: math.exp(float(theta @ shown[j])) for j in left}
        total = sum(odds.values())
        mean = np.zeros(len(theta))
        for j in left:
            mean += odds[j] / total * shown[j]
        for j in left:
            hessian += odds[j] / total * np.outer(shown[j] - mean, shown[j] - mean)
        loss -= math.log(odds[place] / total)
        gradient += mean - shown[place]
        left.remove(place)
    return loss, gradient, hessian


def rounds_with_answers(rounds: int, *, dim: int, choices: int) -> Iterator[tuple[FiniteActions, Any]]:
    """Arms of one lane, other ones every round, and an answer to a slate: a ranking of all or some, or a tie."""
    generator = np.random.default_rng(8)
    for t in range(rounds):
        arms = FiniteActions(generator.normal(0.0, 0.7, (1, 4 + t % 4, dim)))
        ranking = generator.permutation(choices)[: 1 + int(generator.integers(choices))]
        yield arms, "tie" if t % 7 == 3 else ranking
