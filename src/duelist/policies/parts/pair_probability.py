"""How likely a pair was under Thompson sampling, estimated from a normal approximation of the posterior.

The probability that two independent draws play a certain pair has no closed form. Draws of the normal approximation at the mode
tell how often each arm is best and how often each is second behind it, and the pair's probability follows. It is an
estimate: the approximation knows neither the Feel-Good tilt nor the skewness of the posterior, and 256 draws have an error of
a few hundredths.
"""

from __future__ import annotations

import numpy as np

from duelist.policies.parts.same_arm import REDRAWS
from duelist.samplers.curvature import Curvature
from duelist.typing import FloatArray

DRAWS = 256


def normal_draws(curvature: Curvature, lane: int, seed: int) -> FloatArray:
    """(dim, DRAWS) from the normal approximation in one lane."""
    noise = np.random.default_rng(seed).standard_normal((curvature.mode.shape[1], DRAWS))
    # Covariance is the inverse of L L^T, so L^-T times white noise has it.
    return np.asarray(curvature.mode[lane][:, None] + curvature.whitener[lane].T @ noise)


def count_favourites(utilities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How often each row of utilities (n_arms, draws) is best, (n_arms,), and second behind each, (n_arms, n_arms)."""
    n_arms, draws = utilities.shape
    best = utilities.argmax(axis=0)
    behind = utilities.copy()
    behind[best, np.arange(draws)] = -np.inf
    second = behind.argmax(axis=0)
    times_second = np.bincount(best * n_arms + second, minlength=n_arms * n_arms).astype(np.float64)
    return np.bincount(best, minlength=n_arms).astype(np.float64), times_second.reshape(n_arms, n_arms)


def pair_probability(best: FloatArray, second_behind: FloatArray, first: int, second: int, same_arm: str) -> float:
    """Estimated probability that two independent draws play this pair in this order.

    The first draw plays its best arm i, and the second its best arm j. Where they agree, `same_arm` says what is played
    instead, as in `FGTS`: nothing else ("allow"), the second draw's runner-up, or the best arm of up to 8 further draws
    ("redraw"). Half a count is added everywhere, so that a pair which did happen never gets probability zero.

    Args:
        best: (n_arms,) how often each arm is best among the draws.
        second_behind: (n_arms, n_arms) how often each arm is second behind each.
        first: row of the first arm.
        second: row of the second.
        same_arm: "allow", "runner-up" or "redraw".

    Example:
        >>> pair_probability(np.array([100.0, 100.0]), np.array([[0.0, 100.0], [100.0, 0.0]]), 0, 1, "runner-up")
        0.5
    """
    draws, n_arms = best.sum(), len(best)
    share = (best + 0.5) / (draws + 0.5 * n_arms)
    if same_arm == "allow":
        return float(share[first] * share[second])
    if first == second:
        return 0.0
    if same_arm == "runner-up":
        plays = (best[second] + second_behind[first, second] + 0.5) / (draws + 0.5 * (n_arms - 1))
        return float(share[first] * plays)
    again = share[first] ** (REDRAWS + 1)  # every draw agreed
    last = (second_behind[first, second] + 0.5) / (best[first] + 0.5 * (n_arms - 1))
    return float(share[first] * (share[second] * (1.0 - again) / (1.0 - share[first]) + again * last))
