"""What policies for slates share: what was shown, what an answer ranks and says of theta, and the slate of the best scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.checks import one_of
from duelist.history.duels import Duels
from duelist.history.slates import Answer, Slates, slates_of
from duelist.preferences.plackett_luce import RankingError, answer_derivatives, checked_ranking
from duelist.typing import FloatArray, IntArray

_OUTCOMES: dict[int, Answer] = {1: (0,), -1: (1,), 0: "tie"}  # of a duel


def shown_slates(actions: FiniteActions, shown: Slates | Duels) -> Slates:
    """What was shown as slates; a pair, as of a vote from elsewhere, is a slate of two."""
    return slates_of(actions, np.stack([shown.first, shown.second], axis=1) if isinstance(shown, Duels) else shown.rows)


def read_answers(
    answers: Sequence[Answer] | IntArray, shape: tuple[int, ...], *, most: int | None = None
) -> tuple[IntArray, IntArray]:
    """Answers to slates of this shape (lanes, size), one per lane: the places in order, and how many of them are ranked.

    Args:
        answers: places in the slate, best first, or "tie"; of a pair also +1, -1 or 0, as of any duel.
        shape: of what was shown.
        most: at most so many places of an answer are read; None for all.

    Returns:
        orders (lanes, size), all places, the ranked ones first; placed (lanes,), 0 for a tie.

    Example:
        >>> orders, placed = read_answers([[2, 0], "tie"], (2, 3))
        >>> orders.tolist(), placed.tolist()
        ([[2, 0, 1], [0, 1, 2]], [2, 0])
    """
    lanes, size = shape
    if len(answers) != lanes:
        raise RankingError(f"answers must be one per lane ({lanes}); got {len(answers)}.")
    read = [_read(answer, size, most) for answer in answers]
    return np.array([order for order, _ in read]), np.array([n for _, n in read])


def _read(answer: Answer, size: int, most: int | None) -> tuple[IntArray, int]:
    """All places of the slate, the ranked ones first, and how many are ranked."""
    if size == 2 and isinstance(answer, int | np.integer):
        answer = _OUTCOMES[int(answer)]
    if isinstance(answer, str):
        one_of("answer", answer, ("tie",))
        return np.arange(size), 0
    ranking = checked_ranking(answer, size)[:most]
    return np.concatenate([ranking, np.setdiff1d(np.arange(size), ranking)]), len(ranking)


def top_slates(actions: FiniteActions, scores: FloatArray, priority: FloatArray, choices: int) -> Slates:
    """The arms with the largest scores (lanes, n_arms), best first, priority deciding between equals.

    All are different where there are enough arms; where not, the best come again.
    """
    order = np.lexsort((priority, scores), axis=1)[:, ::-1]
    return slates_of(actions, order[:, np.arange(choices) % order.shape[1]])


def answer_terms(theta: FloatArray, slates: Slates, orders: IntArray, placed: IntArray) -> tuple[FloatArray, FloatArray]:
    """Gradient (lanes, dim) and Hessian (lanes, dim, dim) in theta (lanes, dim) of -log P(answer), by Plackett-Luce."""
    features = np.take_along_axis(slates.features, orders[:, :, None], axis=1)
    slopes, curvatures = answer_derivatives((features @ theta[:, :, None])[:, :, 0], placed)
    turned = np.swapaxes(features, 1, 2)
    return (turned @ slopes[:, :, None])[:, :, 0], turned @ curvatures @ features


def expected_information(theta: FloatArray, pending: Sequence[Duels | Slates]) -> FloatArray:
    """(lanes, dim, dim) what the winners of pending slates will tell: the Hessian of a winner, which is the same for all."""
    total = np.zeros((*theta.shape, theta.shape[1]))
    for shown in pending:
        lanes, size, _ = shown.features.shape
        slates = Slates(np.zeros((lanes, size), dtype=np.int64), shown.features)
        orders = np.tile(np.arange(size), (lanes, 1))
        total += answer_terms(theta, slates, orders, np.ones(lanes, dtype=np.int64))[1]
    return total
