"""Compiled parts that the confidence-bound policies share: fits, pair widths, and picking a pair without favouring rows."""

from __future__ import annotations

import math

import numpy as np

from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import kernel, part
from duelist.core.linear_kernels import cholesky_into, invert_lower
from duelist.preferences.logistic_kernels import fit_lane

TOLERANCE = 1e-10  # of the Newton decrement: far below what moves a choice
MAX_ITERATIONS = 50
# Scores closer than this, relative to their size, are ties: rounding must not decide between equal pairs.
TIE = 1e-11


@kernel
def refit_lanes(
    theta: FloatArray,
    whitener: FloatArray,
    gram: FloatArray,
    contrast: FloatArray,
    contrasts: FloatArray,
    totals: FloatArray,
    losses: FloatArray,
    n_rows: IntArray,
    ridge: FloatArray,
    local: bool,
    unconverged: FloatArray,
) -> None:
    """Take in one contrast a lane: M += z z^T, fit theta again from where it was, whiten M (or the local curvature).

    An arm against itself (z = 0) says nothing: everything stays as it is.
    """
    lanes, dim = theta.shape
    hessian, factor, weight = np.empty((dim, dim)), np.empty((dim, dim)), 1.0
    for lane in range(lanes):
        z = contrast[lane]
        size = 0.0
        for i in range(dim):
            size += abs(z[i])
        if size == 0.0:
            continue
        for i in range(dim):
            for j in range(dim):
                gram[lane, i, j] += z[i] * z[j]
        n = n_rows[lane]
        iterations = fit_lane(
            theta[lane],
            hessian,
            contrasts[lane],
            totals[lane, :n],
            losses[lane, :n],
            weight,
            ridge[lane],
            TOLERANCE,
            MAX_ITERATIONS,
        )
        if iterations < 0:
            unconverged[lane] += 1.0
        if cholesky_into(factor, hessian if local else gram[lane]):
            invert_lower(whitener[lane], factor)


@part
def whiten_arms(whitened: FloatArray, columns: FloatArray, whitener: FloatArray) -> None:
    """Fill whitened (dim, n_arms) with whitener @ columns, so that |w_i - w_j| is the width of the pair (i, j)."""
    dim, n_arms = columns.shape
    for i in range(dim):
        for k in range(n_arms):
            whitened[i, k] = whitener[i, 0] * columns[0, k]
        for j in range(1, i + 1):
            for k in range(n_arms):
                whitened[i, k] += whitener[i, j] * columns[j, k]


@part
def widths_from(out: FloatArray, whitened: FloatArray, arm: int) -> None:
    """Fill out (n_arms,) with the width of the pair (arm, k) for every k."""
    dim, n_arms = whitened.shape
    for k in range(n_arms):
        out[k] = 0.0
    for i in range(dim):
        centre = whitened[i, arm]
        for k in range(n_arms):
            difference = whitened[i, k] - centre
            out[k] += difference * difference
    for k in range(n_arms):
        out[k] = math.sqrt(out[k])


@part
def pick_arm(scores: FloatArray, priority: FloatArray) -> int:
    """The arm of the largest score; among ties the largest priority, then the lowest row. -inf is never picked."""
    n = scores.shape[0]
    best = -math.inf
    for k in range(n):
        best = max(best, scores[k])
    slack = TIE * (1.0 + abs(best))
    winner = -1
    for k in range(n):
        if scores[k] >= best - slack and (winner < 0 or priority[k] > priority[winner]):
            winner = k
    return winner


@part
def pick_pair(scores: FloatArray, utilities: FloatArray, priority: FloatArray) -> tuple[int, int]:
    """The pair (i <= j) of the largest scores[i, j]; among ties the largest sum of priorities.

    The arm with the higher utility comes first, among equals the one with the higher priority: rows do not matter.
    """
    n = scores.shape[0]
    best = -math.inf
    for i in range(n):
        for j in range(i, n):
            best = max(best, scores[i, j])
    slack = TIE * (1.0 + abs(best))
    one, other, highest = -1, -1, -math.inf
    for i in range(n):
        for j in range(i, n):
            if scores[i, j] >= best - slack and priority[i] + priority[j] > highest:
                one, other, highest = i, j, priority[i] + priority[j]
    gap = utilities[other] - utilities[one]
    if gap > TIE * (1.0 + abs(utilities[one])) or (
        gap >= -TIE * (1.0 + abs(utilities[one])) and priority[other] > priority[one]
    ):
        return other, one
    return one, other


@part
def challenger(
    scores: FloatArray,
    leader: int,
    utilities: FloatArray,
    whitened: FloatArray,
    radius: float,
    priority: FloatArray,
    different: bool,
) -> int:
    """The arm with the largest <theta, x_k - x_leader> + radius |x_k - x_leader|; the leader itself only if not `different`."""
    widths_from(scores, whitened, leader)
    for k in range(scores.shape[0]):
        scores[k] = utilities[k] - utilities[leader] + radius * scores[k]
    if different:
        scores[leader] = -math.inf
    return pick_arm(scores, priority)
