"""The Plackett-Luce model: a ranking is a sequence of winners, each chosen among those left with odds exp(utility).

    P(i_1 > i_2 > ... > i_k of q) = prod_{m=1..k} exp(u_{i_m}) / sum over those not yet placed of exp(u_j)

k = 1 is the winner alone, k = q - 1 or q the full ranking, anything between a partial one: the best k in order. With q = 2 it
is the Bradley-Terry-Luce model of a duel.

Reference: Luce (1959), Individual Choice Behavior; Plackett (1975), The analysis of permutations.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, logsumexp, softmax

from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.typing import FloatArray, IntArray


class RankingError(InvalidInputError):
    """A ranking that cannot be: empty, with repeats, or naming places that were not shown. Nothing was changed."""


def checked_ranking(ranking: npt.ArrayLike, choices: int) -> IntArray:
    """Return a ranking (k,) of places 0..choices-1, best first, or say what is wrong with it.

    Example:
        >>> checked_ranking([2, 0], choices=4)
        array([2, 0])
    """
    array = np.asarray(ranking)
    if array.ndim != 1 or array.size == 0:
        raise RankingError(
            f"a ranking must name the places in the slate, best first, and at least the winner; got {ranking!r}. "
            f"Do not report a slate without an answer."
        )
    if array.dtype.kind not in "iu":
        raise RankingError(f"a ranking must be whole numbers, places in the slate; got {ranking!r} of type {array.dtype}.")
    unknown = sorted(set(array.tolist()) - set(range(choices)))
    if unknown:
        raise RankingError(f"a ranking of {choices} choices names places 0 to {choices - 1}; got {unknown[0]} in {ranking!r}.")
    if len(set(array.tolist())) != array.size:
        raise RankingError(f"a ranking names every place at most once; got {ranking!r}. For ties use a model of ties.")
    return array.astype(np.int64)


def ranking_loss(utilities: FloatArray, ranking: npt.ArrayLike) -> float:
    """-log P(ranking) for utilities (q,) and a ranking (k,) of places, best first, 1 <= k <= q.

    Example:
        >>> round(ranking_loss(np.zeros(4), [2]), 6) == round(float(np.log(4.0)), 6)
        True
    """
    order, u = _ordered(utilities, ranking)
    placed = len(order) if len(order) < len(u) else len(u) - 1
    return float(sum(logsumexp(u[m:]) - u[m] for m in range(placed)))


def ranking_slope(utilities: FloatArray, ranking: npt.ArrayLike) -> FloatArray:
    """Gradient of `ranking_loss` in the utilities, (q,); it sums to 0.

    Example:
        >>> ranking_slope(np.zeros(4), [2])
        array([ 0.25,  0.25, -0.75,  0.25])
    """
    order, u = _ordered(utilities, ranking)
    slope = np.zeros(len(u))
    for m in range(min(len(order), len(u) - 1)):
        slope[m:] += np.exp(log_softmax(u[m:]))
        slope[m] -= 1.0
    result = np.empty(len(u))
    result[_completed(order, len(u))] = slope
    return result


def answer_derivatives(utilities: FloatArray, placed: IntArray) -> tuple[FloatArray, FloatArray]:
    """Gradient and Hessian of -log P(answer) in the utilities, for all lanes.

    Args:
        utilities: (lanes, q) in the order of the answer, best first.
        placed: (lanes,) how many of them the answer ranks; 0 for a tie, which counts as a win of each, of weight 1 / q.

    Returns:
        slopes (lanes, q) and curvatures (lanes, q, q).

    Example:
        >>> slopes, curvatures = answer_derivatives(np.zeros((1, 2)), np.array([1]))
        >>> slopes.tolist(), curvatures.tolist()
        ([[-0.5, 0.5]], [[[0.25, -0.25], [-0.25, 0.25]]])
    """
    lanes, size = utilities.shape
    slopes, curvatures = np.zeros((lanes, size)), np.zeros((lanes, size, size))
    stages = np.minimum(np.maximum(placed, 1), size - 1)
    for stage in range(int(stages.max(initial=0))):
        chances = np.where((stage < stages)[:, None], softmax(utilities[:, stage:], axis=1), 0.0)
        slopes[:, stage:] += chances
        slopes[:, stage] -= np.where((stage < stages) & (placed > 0), 1.0, 0.0)
        curvatures[:, stage:, stage:] -= chances[:, :, None] * chances[:, None]
        curvatures[:, np.arange(stage, size), np.arange(stage, size)] += chances
    slopes -= np.where(placed == 0, 1.0 / size, 0.0)[:, None]
    return slopes, curvatures


def sample_ranking(utilities: FloatArray, generator: np.random.Generator) -> IntArray:
    """A full ranking (q,), best first: utilities plus Gumbel noise, in descending order, have the law of Plackett-Luce.

    Example:
        >>> sample_ranking(np.array([0.0, 100.0, 50.0]), np.random.default_rng(0))
        array([1, 2, 0])
    """
    return np.argsort(-(utilities + generator.gumbel(size=len(utilities))), kind="stable")


def sample_rankings(utilities: FloatArray, streams: Streams, round_: int) -> IntArray:
    """(lanes, q) a full ranking per lane of utilities (lanes, q), from the stream "ranking"."""
    return np.array([sample_ranking(u, streams.generator("ranking", lane, round_)) for lane, u in enumerate(utilities)])


def _completed(order: IntArray, choices: int) -> IntArray:
    """The ranked places first, then the others, whose order says nothing."""
    return np.concatenate([order, np.setdiff1d(np.arange(choices), order)])


def _ordered(utilities: FloatArray, ranking: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
    order = checked_ranking(ranking, len(utilities))
    return order, np.asarray(utilities, dtype=np.float64)[_completed(order, len(utilities))]
