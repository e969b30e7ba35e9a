"""Compiled walk through layers of accuracy, which VACDB, Sta'D and SupCoLSTIM share.

Layer l = 1, 2, ... has its own estimate and widths, learnt only from the duels played in it. From layer 1 up:

    every pair of the layer's arms narrower than `stop`    exploit: the best optimistic pair; nothing is learnt from it
    every pair narrower than 2^-l                           drop arms further than 2^-l radius below the best; go up
    otherwise                                               explore: a pair wider than 2^-l, learnt in layer l
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.kernels.compile import entry, inner
from duelist.kernels.linalg.factors import cholesky_into, invert_lower
from duelist.kernels.logistic import LaneCounts, fit_lane
from duelist.kernels.pairs import (
    MAX_ITERATIONS,
    TIE,
    TOLERANCE,
    Bounds,
    Candidates,
    DuelCounts,
    Fit,
    challenger,
    measure_arms,
    pick_arm,
    pick_pair,
    widths_from,
)
from duelist.typing import BoolArray, FloatArray, IntArray

OPTIMISTIC, WIDEST, PERTURBED = 0, 1, 2
# Below every width: as the narrowest width it admits all pairs, and a pair of this width is never admitted.
NO_PAIR = -1.0


class Walk(NamedTuple):
    """How a policy walks up its layers.

    Attributes:
        stop: (lanes,) a layer whose widest pair is narrower than this exploits.
        noise: (lanes, n_arms) the leader's perturbation, for the rule PERTURBED.
        rule: which pair explores: OPTIMISTIC, WIDEST or PERTURBED.
        weigh_by_width: whether a duel counts less the wider its pair is.
        different: whether the two arms must differ.
    """

    stop: FloatArray
    noise: FloatArray
    rule: int
    weigh_by_width: bool
    different: bool


class Layer(NamedTuple):
    """Working memory for one layer: what its estimate says of the arms."""

    utilities: FloatArray  # (n_arms,)
    whitened: FloatArray  # (dim, n_arms)
    widths: FloatArray  # (n_arms, n_arms)
    scores: FloatArray  # (n_arms, n_arms)
    active: BoolArray  # (n_arms,) arms that no lower layer dropped


@inner
def new_layer(dim: int, n_arms: int) -> Layer:
    """Working memory for so many arms."""
    return Layer(
        np.empty(n_arms),
        np.empty((dim, n_arms)),
        np.empty((n_arms, n_arms)),
        np.empty((n_arms, n_arms)),
        np.empty(n_arms, dtype=np.bool_),
    )


@inner
def widest_active(layer: Layer) -> float:
    """Fill the widths between active arms and return the largest."""
    active, widths = layer.active, layer.widths
    n_arms = active.shape[0]
    widest = 0.0
    for i in range(n_arms):
        if active[i]:
            widths_from(widths[i], layer.whitened, i)
            for j in range(n_arms):
                if active[j]:
                    widest = max(widest, widths[i, j])
    return widest


@inner
def score_pairs(layer: Layer, radius: float, narrowest: float, by_width: bool) -> None:
    """Scores of pairs of active arms wider than `narrowest`; -inf for all others."""
    scores, widths, utilities, active = layer.scores, layer.widths, layer.utilities, layer.active
    n_arms = active.shape[0]
    for i in range(n_arms):
        for j in range(n_arms):
            scores[i, j] = -math.inf
            if active[i] and active[j] and widths[i, j] > narrowest:
                scores[i, j] = widths[i, j] if by_width else utilities[i] + utilities[j] + radius * widths[i, j]


@inner
def perturbed_pair(layer: Layer, noise: FloatArray, radius: float, narrowest: float, priority: FloatArray) -> tuple[int, int]:
    """CoLSTIM's rule among active arms: a perturbed leader that has a wide enough partner, and its best such challenger."""
    scores, widths, utilities, active = layer.scores, layer.widths, layer.utilities, layer.active
    whitened = layer.whitened
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


@inner
def drop_weak(active: BoolArray, utilities: FloatArray, margin: float) -> None:
    """Keep the active arms within `margin` of the best of them."""
    best = -math.inf
    for k in range(active.shape[0]):
        if active[k]:
            best = max(best, utilities[k])
    for k in range(active.shape[0]):
        active[k] = active[k] and utilities[k] >= best - margin - TIE * (1.0 + abs(best))


@entry
def layered_lanes(
    first: IntArray, second: IntArray, note: FloatArray, candidates: Candidates, bounds: Bounds, walk: Walk
) -> None:
    """Walk every lane up its layers and fill its pair, and note (lanes, 2): the layer and by how much the duel will count.

    The bounds have an axis of layers: theta is (lanes, layers, dim), whitener (lanes, layers, dim, dim), radius (lanes,
    layers). A count of 0 marks an exploiting duel.
    """
    lanes, dim, n_arms = candidates.columns.shape
    n_layers = bounds.theta.shape[1]
    arms = new_layer(dim, n_arms)
    for lane in range(lanes):
        priority = candidates.priority[lane]
        arms.active[:] = True
        for layer in range(n_layers):
            threshold, radius = 2.0 ** -(layer + 1), bounds.radius[lane, layer]
            measure_arms(
                arms.utilities, arms.whitened, candidates.columns[lane], bounds.theta[lane, layer], bounds.whitener[lane, layer]
            )
            widest = widest_active(arms)
            exploit = widest <= walk.stop[lane] or (widest <= threshold and layer + 1 == n_layers)
            if not exploit and widest <= threshold:
                drop_weak(arms.active, arms.utilities, threshold * radius)
                continue
            narrowest = NO_PAIR if exploit else threshold
            if walk.different and np.sum(arms.active) > 1:
                for k in range(n_arms):
                    arms.widths[k, k] = NO_PAIR
            if walk.rule == PERTURBED:
                i, j = perturbed_pair(arms, walk.noise[lane], radius, narrowest, priority)
            else:
                score_pairs(arms, radius, narrowest, walk.rule == WIDEST and not exploit)
                i, j = pick_pair(arms.scores, arms.utilities, priority)
            note[lane, 0], note[lane, 1] = layer, 0.0
            if not exploit:
                # The loss of a duel counts by the square of its weight, as its contrast does in the layer's matrix.
                note[lane, 1] = (threshold / arms.widths[i, j]) ** 2 if walk.weigh_by_width else 1.0
            elif walk.different and i == j:
                # One arm is left and it must meet another: the strongest of those that were dropped.
                j = challenger(arms.scores[0], i, arms.utilities, arms.whitened, radius, priority, True)
            first[lane], second[lane] = i, j
            break


@entry
def refit_layers(
    fit: Fit, contrast: FloatArray, layers: IntArray, weights: FloatArray, counts: DuelCounts, ridge: FloatArray
) -> None:
    """Take one contrast into the layer it was played in, by its weight, and fit that layer again; ridge (lanes, layers)."""
    lanes, n_layers, dim = fit.theta.shape
    hessian, factor = np.empty((dim, dim)), np.empty((dim, dim))
    for lane in range(lanes):
        if weights[lane] == 0.0:
            continue
        layer = layers[lane]
        group = lane * n_layers + layer
        for i in range(dim):
            for j in range(dim):
                fit.gram[lane, layer, i, j] += weights[lane] * contrast[lane, i] * contrast[lane, j]
        n = counts.n_rows[group]
        rows = LaneCounts(counts.contrasts[group], counts.totals[group, :n], counts.losses[group, :n], 1.0)
        iterations = fit_lane(fit.theta[lane, layer], hessian, rows, ridge[lane, layer], TOLERANCE, MAX_ITERATIONS)
        if iterations < 0:
            fit.unconverged[lane] += 1.0
        if cholesky_into(factor, fit.gram[lane, layer]):
            invert_lower(fit.whitener[lane, layer], factor)
