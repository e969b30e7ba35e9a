"""A lower bound on the Bayes regret with any arms of one norm: genies that tell all but on which side of a mirror theta lies.

Let `a` be the best arm and `k` another. The reflection that exchanges the two arms keeps the uniform law of theta, so a
policy that is told the unordered pair {theta, its mirror image} has two truths of equal chance left. Let the cost of every
duel be divided among the reflections, at every theta by the same rule, into shares of at least 0 that sum up to at most the
cost. Then

    Bayes regret of any policy  >=  E sum over k of  V_k(theta),

with V_k the least cost of the two-truth problem in which a duel costs the share of mirror (a, k) at theta, or at the mirror
image. Every way of dividing gives a bound. The rule here starts from the dual of the Graves-Lai programme, which finds out
what an amount of information costs: the largest sum of prices `y_k` with `sum_k y_k KL_k(pair) <= cost(pair)`, KL_k being
what the pair's vote tells about theta against its image. What that leaves of a cost goes to the genies of the pair's own
arms, which makes wrong guesses dear.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit, rel_entr

from duelist.theory.two_hypotheses import least_costs
from duelist.typing import BoolArray, FloatArray, IntArray

# Of every cost, what no price of information may use: it is what a wrong guess costs. Chosen on instances of their own.
_RESERVE = 0.1
_COMMON = 0.3  # of what is left, the part that all genies share alike
_LOG_ODDS: FloatArray = np.arange(-180, 181) / 20.0


def reflection_values(arms: FloatArray, theta: FloatArray, rounds: int) -> FloatArray:
    """(rounds,) the sum over mirrors of least costs, at one theta: its mean over theta is a floor.

    Args:
        arms: (n_arms, dim), all of one norm.
        theta: (dim,).
        rounds: T.
    """
    first, second = np.triu_indices(len(arms))
    contrasts = arms[first] - arms[second]
    best, here = split_costs(arms, theta)
    total = np.zeros(rounds)
    for k, share in here.items():
        image = reflect(theta, arms[best] - arms[k])
        _, there = split_costs(arms, image)
        if best not in there:
            continue  # the mirror is not in use on its other side, where it would cost nothing to play
        costs = np.stack([share, there[best]])
        wins = expit(np.stack([contrasts @ theta, contrasts @ image]))
        kept = undominated(costs, wins)
        chances = np.stack([wins, 1.0 - wins], axis=2)
        total += least_costs(costs[:, kept], chances[:, kept], _LOG_ODDS, rounds)
    return total


def reflect(theta: FloatArray, normal: FloatArray) -> FloatArray:
    """The mirror image of theta in the hyperplane through 0 with this normal."""
    return np.asarray(theta - 2.0 * (normal @ theta) / (normal @ normal) * normal)


def split_costs(arms: FloatArray, theta: FloatArray) -> tuple[int, dict[int, FloatArray]]:
    """The best arm, and for each mirror in use, named by its other arm, a share of the cost of every pair (i <= j).

    Args:
        arms: (n_arms, dim), all of one norm.
        theta: (dim,).
    """
    first, second = np.triu_indices(len(arms))
    utilities = arms @ theta
    best = int(utilities.argmax())
    gaps = utilities[best] - utilities
    cost = 0.5 * (gaps[first] + gaps[second])
    contrasts = arms[first] - arms[second]
    images = {k: reflect(theta, arms[best] - arms[k]) for k in range(len(arms)) if k != best}
    images = {k: image for k, image in images.items() if int((arms @ image).argmax()) == k}
    if not images:
        return best, {}
    wins = expit(contrasts @ theta)
    told = np.stack([_divergence(wins, expit(contrasts @ image)) for image in images.values()])
    informative = told.max(axis=0) > 1e-12
    prices = np.asarray(
        linprog(-np.ones(len(told)), A_ub=told[:, informative].T, b_ub=(1.0 - _RESERVE) * cost[informative], method="highs").x
    )
    used = prices > 1e-6 * prices.max()
    if not used.any():
        return best, {}
    others, prices, told = np.array(list(images))[used], prices[used], told[used]
    left = np.maximum(cost - prices @ told, 0.0)
    shares = prices[:, None] * told + _leftover_parts(others, first, second) * left
    # Rounding of the programme must not hand out more than there is.
    shares *= np.minimum(1.0, np.divide(cost, shares.sum(axis=0), out=np.zeros_like(cost), where=cost > 0.0))
    return best, dict(zip(others.tolist(), shares, strict=True))


def _leftover_parts(others: IntArray, first: IntArray, second: IntArray) -> FloatArray:
    """(n_mirrors, n_pairs) how what is left of a pair's cost is divided: each arm's half to its own mirror, if it has one."""
    parts = np.zeros((len(others), len(first)))
    for arm in (first, second):
        own = others[:, None] == arm
        owned = own.any(axis=0)
        parts += 0.5 * np.where(owned, (1.0 - _COMMON) * own + _COMMON / len(others), 1.0 / len(others))
    return parts


def undominated(costs: FloatArray, wins: FloatArray) -> BoolArray:
    """(n,) which duels to keep: another one costs no more under either truth and tells at least as much of the rest.

    Args:
        costs: (2, n) under each truth.
        wins: (2, n) chances that the first arm wins.
    """
    ratios = np.sort(np.stack([wins[0] / wins[1], (1.0 - wins[0]) / (1.0 - wins[1])]), axis=0)
    # Rounded, so that copies compare as equal; of copies the first is kept.
    low, high, c0, c1 = np.round(np.stack([ratios[0], -ratios[1], costs[0], costs[1]]), 12)
    at_most = np.ones((len(low), len(low)), dtype=np.bool_)
    for values in (low, high, c0, c1):
        at_most &= values[:, None] <= values
    order = np.arange(len(low))
    return np.asarray(~(at_most & (~at_most.T | (order[:, None] < order))).any(axis=0))


def _divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.asarray(rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q))
