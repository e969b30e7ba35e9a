"""How likely a pair was under Thompson sampling, estimated from a normal approximation of the posterior.

The probability that two independent draws play a certain pair has no closed form. Draws of the normal approximation at the mode
tell how often each arm is best and how often each is second behind it, and the pair's probability follows. It is an
estimate: the approximation knows neither the Feel-Good tilt nor the skewness of the posterior, and 1,024 draws have an error of
one or two hundredths.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.policies.parts.same_arm import REDRAWS
from duelist.posteriors.linear import LinearPotential
from duelist.samplers.curvature import Curvature, flat_precision
from duelist.typing import FloatArray, IntArray

MOST_DRAWS, LEAST_DRAWS = 1024, 256
_UTILITIES = 2**16  # beyond so many numbers there are fewer draws: 1,024 for up to 64 arms


def draw_utilities(curvature: Curvature, lane: int, features: FloatArray, seed: int) -> FloatArray:
    """(n_arms, draws) utilities of features (n_arms, dim) under the normal approximation in one lane."""
    n_arms, dim = features.shape
    # Covariance is the inverse of L L^T, so L^-T times white noise has it.
    factor = features @ curvature.whitener[lane].T
    if n_arms < dim:  # the same law from fewer numbers: factor = R^T Q^T, and Q^T times white noise is white noise
        factor = np.asarray(np.linalg.qr(factor.T, mode="r")).T
    draws = max(LEAST_DRAWS, min(MOST_DRAWS, _UTILITIES // n_arms))
    noise = np.random.default_rng(seed).standard_normal((factor.shape[1], draws))
    return np.asarray((features @ curvature.mode[lane])[:, None] + factor @ noise)


def follow_duels(curvature: Curvature, potential: LinearPotential) -> Curvature:
    """The curvature with its mode moved along by a Newton step, O(rows dim), for duels that came since it was taken.

    A sampler renews its curvature when duels have grown by a twentieth, for an old one costs it only speed. Here the mode
    matters: a twentieth of the duels moves it by a quarter of a standard deviation, and the probability of a pair by up to a
    half.

    Args:
        curvature: of an earlier time.
        potential: of prior and likelihood, with one chain and without the Feel-Good tilt.
    """
    mode = curvature.mode
    slope = potential.gradient(mode[:, None])[:, 0] + flat_precision(potential) * mode
    whitened = np.einsum("lij,lj->li", curvature.whitener, slope)
    return curvature._replace(mode=mode - np.einsum("lij,li->lj", curvature.whitener, whitened))


class Favourites(NamedTuple):
    """Which arms a number of draws like.

    Attributes:
        n_arms: arms to choose from.
        best: (draws,) the row of each draw's best arm.
        second: (draws,) the row of the one behind it.
    """

    n_arms: int
    best: IntArray
    second: IntArray


def count_favourites(utilities: FloatArray) -> Favourites:
    """The best two rows of utilities (n_arms, draws) in every draw.

    Example:
        >>> count_favourites(np.array([[3.0, 1.0], [2.0, 5.0], [0.0, 4.0]])).second.tolist()
        [1, 2]
    """
    by_draw = utilities.T.copy()  # a draw's utilities next to each other: the maximum is found several times faster
    best = by_draw.argmax(axis=1)
    by_draw[np.arange(len(best)), best] = -np.inf
    return Favourites(len(utilities), best, by_draw.argmax(axis=1))


def pair_probability(favourites: Favourites, first: int, second: int, same_arm: str) -> float:
    """Estimated probability that two independent draws play this pair in this order.

    The first draw plays its best arm i, and the second its best arm j. Where they agree, `same_arm` says what is played
    instead, as in `FGTS`: nothing else ("allow"), the second draw's runner-up, or the best arm of up to 8 further draws
    ("redraw"). Half a count is added everywhere, so that a pair which did happen never gets probability zero.

    Args:
        favourites: the best two arms of every draw.
        first: row of the first arm.
        second: row of the second.
        same_arm: "allow", "runner-up" or "redraw".

    Example:
        >>> one, other = np.zeros(100, dtype=np.int64), np.ones(100, dtype=np.int64)
        >>> both = Favourites(2, np.concatenate([one, other]), np.concatenate([other, one]))
        >>> pair_probability(both, 0, 1, "runner-up")
        0.5
    """
    draws, n_arms = float(len(favourites.best)), favourites.n_arms
    likes_first = favourites.best == first
    best_first, best_second = float(likes_first.sum()), float((favourites.best == second).sum())
    share_first, share_second = (best_first + 0.5) / (draws + 0.5 * n_arms), (best_second + 0.5) / (draws + 0.5 * n_arms)
    behind = int((likes_first & (favourites.second == second)).sum())
    if same_arm == "allow":
        return share_first * share_second
    if first == second:
        return 0.0
    if same_arm == "runner-up":
        return share_first * ((best_second + behind + 0.5) / (draws + 0.5 * (n_arms - 1)))
    again = share_first ** (REDRAWS + 1)  # every draw agreed
    last = (behind + 0.5) / (best_first + 0.5 * (n_arms - 1))
    return share_first * (share_second * (1.0 - again) / (1.0 - share_first) + again * last)
