"""Compiled walk through layers of accuracy, which VACDB, Sta'D and SupCoLSTIM share.

Layer l = 1, 2, ... has its own estimate and widths, learnt only from the duels played in it. From layer 1 up:

    every pair of the layer's arms narrower than `stop`    exploit: the best optimistic pair; nothing is learnt from it
    every pair narrower than 2^-l                           drop arms further than 2^-l radius below the best; go up
    otherwise                                               explore: a pair wider than 2^-l, learnt in layer l
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from duelist.core.action_kernels import utilities_into
from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import kernel, part
from duelist.core.linear_kernels import cholesky_into, invert_lower
from duelist.policies.ucb_kernels import (
    MAX_ITERATIONS,
    TIE,
    TOLERANCE,
    challenger,
    pick_arm,
    pick_pair,
    whiten_arms,
    widths_from,
)
from duelist.preferences.logistic_kernels import fit_lane

BoolArray = npt.NDArray[np.bool_]

OPTIMISTIC, WIDEST, PERTURBED = 0, 1, 2
# Below every width: as the narrowest width it admits all pairs, and a pair of this width is never admitted.
NO_PAIR = -1.0


@part
def widest_active(widths: FloatArray, whitened: FloatArray, active: BoolArray) -> float:
    """Fill widths (n_arms, n_arms) between active arms and return the largest."""
    n_arms = active.shape[0]
    widest = 0.0
    for i in range(n_arms):
        if active[i]:
            widths_from(widths[i], whitened, i)
            for j in range(n_arms):
                if active[j]:
                    widest = max(widest, widths[i, j])
    return widest


@part
def score_pairs(
    scores: FloatArray,
    widths: FloatArray,
    utilities: FloatArray,
    active: BoolArray,
    radius: float,
    narrowest: float,
    by_width: bool,
) -> None:
    """Scores of pairs of active arms wider than `narrowest`; -inf for all others."""
    n_arms = active.shape[0]
    for i in range(n_arms):
        for j in range(n_arms):
            scores[i, j] = -math.inf
            if active[i] and active[j] and widths[i, j] > narrowest:
                scores[i, j] = widths[i, j] if by_width else utilities[i] + utilities[j] + radius * widths[i, j]


@part
def perturbed_pair(
    scores: FloatArray,
    widths: FloatArray,
    utilities: FloatArray,
    whitened: FloatArray,
    active: BoolArray,
    noise: FloatArray,
    radius: float,
    narrowest: float,
    priority: FloatArray,
) -> tuple[int, int]:
    """CoLSTIM's rule among active arms: a perturbed leader that has a wide enough partner, and its best such challenger."""
    dim, n_arms = whitened.shape
    for k in range(n_arms):
        has_partner = False
        for j in range(n_arms):
            has_partner |= active[j] and widths[k, j] > narrowest
        scores[0, k] = -math.inf
        if active[k] and has_partner:
            squared = 0.0
            for i in range(dim):
                squared += whitened[i, k] * whitened[i, k]
            scores[0, k] = utilities[k] + noise[k] * math.sqrt(squared)
    leader = pick_arm(scores[0], priority)
    for k in range(n_arms):
        partner = active[k] and widths[leader, k] > narrowest
        scores[0, k] = utilities[k] + radius * widths[leader, k] if partner else -math.inf
    return leader, pick_arm(scores[0], priority)


@part
def drop_weak(active: BoolArray, utilities: FloatArray, margin: float) -> None:
    """Keep the active arms within `margin` of the best of them."""
    best = -math.inf
    for k in range(active.shape[0]):
        if active[k]:
            best = max(best, utilities[k])
    for k in range(active.shape[0]):
        active[k] = active[k] and utilities[k] >= best - margin - TIE * (1.0 + abs(best))


@kernel
def layered_lanes(
    first: IntArray,
    second: IntArray,
    note: FloatArray,
    columns: FloatArray,
    priority: FloatArray,
    theta: FloatArray,
    whitener: FloatArray,
    radius: FloatArray,
    stop: FloatArray,
    noise: FloatArray,
    rule: int,
    weigh_by_width: bool,
    different: bool,
) -> None:
    """Walk every lane up its layers and fill its pair, and note (lanes, 2): the layer and by how much the duel will count.

    theta is (lanes, layers, dim), whitener (lanes, layers, dim, dim). A count of 0 marks an exploiting duel.
    """
    lanes, dim, n_arms = columns.shape
    n_layers = theta.shape[1]
    whitened, utilities = np.empty((dim, n_arms)), np.empty(n_arms)
    widths, scores = np.empty((n_arms, n_arms)), np.empty((n_arms, n_arms))
    active = np.empty(n_arms, dtype=np.bool_)
    for lane in range(lanes):
        active[:] = True
        for layer in range(n_layers):
            threshold = 2.0 ** -(layer + 1)
            utilities_into(utilities, columns[lane], theta[lane, layer])
            whiten_arms(whitened, columns[lane], whitener[lane, layer])
            widest = widest_active(widths, whitened, active)
            exploit = widest <= stop[lane] or (widest <= threshold and layer + 1 == n_layers)
            if not exploit and widest <= threshold:
                drop_weak(active, utilities, threshold * radius[lane])
                continue
            narrowest = NO_PAIR if exploit else threshold
            if different and np.sum(active) > 1:
                for k in range(n_arms):
                    widths[k, k] = NO_PAIR
            if rule == PERTURBED:
                i, j = perturbed_pair(
                    scores, widths, utilities, whitened, active, noise[lane], radius[lane], narrowest, priority[lane]
                )
            else:
                score_pairs(scores, widths, utilities, active, radius[lane], narrowest, rule == WIDEST and not exploit)
                i, j = pick_pair(scores, utilities, priority[lane])
            note[lane, 0], note[lane, 1] = layer, 0.0
            if not exploit:
                # The loss of a duel counts by the square of its weight, as its contrast does in the layer's matrix.
                note[lane, 1] = (threshold / widths[i, j]) ** 2 if weigh_by_width else 1.0
            elif different and i == j:
                # One arm is left and it must meet another: the strongest of those that were dropped.
                j = challenger(scores[0], i, utilities, whitened, radius[lane], priority[lane], True)
            first[lane], second[lane] = i, j
            break


@kernel
def refit_layers(
    theta: FloatArray,
    whitener: FloatArray,
    gram: FloatArray,
    contrast: FloatArray,
    layers: IntArray,
    counts: FloatArray,
    contrasts: FloatArray,
    totals: FloatArray,
    losses: FloatArray,
    n_rows: IntArray,
    ridge: FloatArray,
    unconverged: FloatArray,
) -> None:
    """Take one contrast into the layer it was played in, and fit that layer again; ridge is (lanes, layers)."""
    lanes, n_layers, dim = theta.shape
    hessian, factor = np.empty((dim, dim)), np.empty((dim, dim))
    for lane in range(lanes):
        if counts[lane] == 0.0:
            continue
        layer = layers[lane]
        group = lane * n_layers + layer
        for i in range(dim):
            for j in range(dim):
                gram[lane, layer, i, j] += counts[lane] * contrast[lane, i] * contrast[lane, j]
        n = n_rows[group]
        iterations = fit_lane(
            theta[lane, layer],
            hessian,
            contrasts[group],
            totals[group, :n],
            losses[group, :n],
            1.0,
            ridge[lane, layer],
            TOLERANCE,
            MAX_ITERATIONS,
        )
        if iterations < 0:
            unconverged[lane] += 1.0
        if cholesky_into(factor, gram[lane, layer]):
            invert_lower(whitener[lane, layer], factor)
