"""How likely a pair was under Thompson sampling, estimated from a normal approximation of the posterior.

The probability that two independent draws play a certain pair has no closed form. Draws of the normal approximation at the mode
tell how often each arm is best and how often each is second behind it, and the pair's probability follows. It is an
estimate: the approximation knows neither the Feel-Good tilt nor the skewness of the posterior, and 1,024 draws have an error of
one or two hundredths.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from duelist.kernels.gaussian import count_liked, step_to_modes
from duelist.kernels.logistic import Likelihood
from duelist.policies.parts.same_arm import REDRAWS
from duelist.samplers.curvature import Curvature
from duelist.typing import FloatArray

MOST_DRAWS, LEAST_DRAWS = 1024, 256
_UTILITIES = 2**16  # beyond so many numbers there are fewer draws: 1,024 for up to 64 arms
_TURNS = 64


class Liked(NamedTuple):
    """How a number of draws like two arms.

    Attributes:
        draws: how many.
        n_arms: arms to choose from.
        best_first: draws in which the first is best.
        best_second: draws in which the second is.
        second_behind: draws in which the first is best and the second right behind it.
        first_behind: the reverse.
    """

    draws: int
    n_arms: int
    best_first: int
    best_second: int
    second_behind: int
    first_behind: int


class Pair(NamedTuple):
    """Two rows, and the number of the question, which turns the draws."""

    first: int
    second: int
    turn: int


def liked_by(mean: FloatArray, factor: FloatArray, noise: FloatArray, first: int, second: int) -> Liked:
    """How two arms are liked when utilities (n_arms, draws) are mean + factor @ noise.

    Example:
        >>> utilities = np.array([[3.0, 1.0], [2.0, 5.0], [0.0, 4.0]])
        >>> liked = liked_by(np.zeros(3), np.eye(3), utilities, first=1, second=2)
        >>> liked.best_first, liked.second_behind, liked.best_second
        (1, 1, 0)
    """
    counts = np.empty(4, dtype=np.int64)
    count_liked(counts, mean, factor, noise, first, second)
    return Liked(noise.shape[1], len(mean), *counts.tolist())


def liked_under(curvature: Curvature, lane: int, features: FloatArray, offsets: FloatArray | None, pair: Pair) -> Liked:
    """How a pair is liked under the normal approximation in one lane, with features (n_arms, dim) and offsets (n_arms,)."""
    n_arms, dim = features.shape
    # Covariance is the inverse of L L^T, so L^-T times white noise has it.
    factor = features @ curvature.whitener[lane].T
    if 2 * n_arms < dim:  # the same law from fewer numbers: factor = R^T Q^T, and Q^T times white noise is white noise
        factor = np.asarray(np.linalg.qr(factor.T, mode="r")).T
    noise, signs = _white_noise(factor.shape[1], max(LEAST_DRAWS, min(MOST_DRAWS, _UTILITIES // n_arms)))
    mean = features @ curvature.mode[lane]
    if offsets is not None:
        mean += offsets
    return liked_by(mean, np.ascontiguousarray(factor * signs[pair.turn % _TURNS]), noise, pair.first, pair.second)


@lru_cache(maxsize=16)
def _white_noise(rank: int, draws: int) -> tuple[FloatArray, FloatArray]:
    """Standard normals (rank, draws), and signs (_TURNS, rank) that turn them: then errors do not add up over questions."""
    generator = np.random.default_rng(0)
    return generator.standard_normal((rank, draws)), generator.choice([-1.0, 1.0], size=(_TURNS, rank))


def follow_duels(curvature: Curvature, likelihood: Likelihood, precision: FloatArray) -> Curvature:
    """The curvature with its mode moved along by a Newton step, O(rows dim), for duels that came since it was taken.

    A sampler renews its curvature when duels have grown by a twentieth, for an old one costs it only speed. Here the mode
    matters: a twentieth of the duels moves it by a quarter of a standard deviation, and the probability of a pair by up to a
    half.

    Args:
        curvature: of an earlier time.
        likelihood: of all duels.
        precision: (lanes,) of the prior, or what stands in for it.
    """
    mode = curvature.mode.copy()
    step_to_modes(mode, curvature.whitener, precision, likelihood)
    return curvature._replace(mode=mode)


def pair_probability(liked: Liked, same_arm: str, *, either_order: bool = False) -> float:
    """Estimated probability that two independent draws play the first arm and then the second, or these two in any order.

    The first draw plays its best arm i, and the second its best arm j. Where they agree, `same_arm` says what is played
    instead, as in `FGTS`: nothing else ("allow"), the second draw's runner-up, or the best arm of up to 8 further draws
    ("redraw"). Half a count is added everywhere, so that a pair which did happen never gets probability zero.

    Args:
        liked: how many draws like the two arms; for an arm beside itself, the same arm twice.
        same_arm: "allow", "runner-up" or "redraw".
        either_order: whether the second may come first.

    Example:
        >>> pair_probability(Liked(200, 2, 100, 100, 100, 100), "runner-up")
        0.5
    """
    draws, n_arms, one, other, other_behind, one_behind = liked
    orders = ((one, other, other_behind), (other, one, one_behind)) if either_order else ((one, other, other_behind),)
    total = 0.0
    for first, second, behind in orders:
        share = (first + 0.5) / (draws + 0.5 * n_arms)
        if same_arm == "runner-up":
            total += share * ((second + behind + 0.5) / (draws + 0.5 * (n_arms - 1)))
            continue
        next_share = (second + 0.5) / (draws + 0.5 * n_arms)
        if same_arm == "allow":
            total += share * next_share
            continue
        again = share ** (REDRAWS + 1)  # every draw agreed
        last = (behind + 0.5) / (first + 0.5 * (n_arms - 1))
        total += share * (next_share * (1.0 - again) / (1.0 - share) + again * last)
    return total
