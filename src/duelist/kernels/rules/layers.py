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

from duelist.kernels.actions import TIE, best_from, favoured_partner, order_pair, pick_arm, tie_floor
from duelist.kernels.compile import entry, inner, maker
from duelist.kernels.linalg.factors import cholesky_into, invert_lower
from duelist.kernels.logistic import LaneCounts, fit_lane
from duelist.kernels.rules.pairs import (
    MAX_ITERATIONS,
    TOLERANCE,
    Bounds,
    Candidates,
    DuelCounts,
    Fit,
    challenger,
    measure_arms,
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
    """Working memory for one layer: what its estimate says of the arms. Pairs are looked at row by row and not kept."""

    utilities: FloatArray  # (n_arms,)
    whitened: FloatArray  # (dim, n_arms)
    row: FloatArray  # (n_arms,) widths or scores of one arm's pairs
    widest: FloatArray  # (n_arms,) of each active arm the widest pair with another; NO_PAIR if there is none
    tops: FloatArray  # (n_arms,) scores of the arms, or of each arm's best pair
    active: BoolArray  # (n_arms,) arms that no lower layer dropped


@maker
def new_layer(dim: int, n_arms: int) -> Layer:
    """Working memory for so many arms."""
    return Layer(
        np.empty(n_arms),
        np.empty((dim, n_arms)),
        np.empty(n_arms),
        np.empty(n_arms),
        np.empty(n_arms),
        np.empty(n_arms, dtype=np.bool_),
    )


@inner
def widest_active(layer: Layer) -> float:
    """Fill the widest pair of every active arm and return the largest."""
    active, row, widest = layer.active, layer.row, layer.widest
    n_arms = active.shape[0]
    largest = 0.0
    for i in range(n_arms):
        widest[i] = NO_PAIR
        if active[i]:
            widths_from(row, layer.whitened, i)
            for j in range(n_arms):
                if active[j] and j != i:
                    widest[i] = max(widest[i], row[j])
            largest = max(largest, widest[i])
    return largest


class Pairs(NamedTuple):
    """Which pairs may play: those of active arms wider than `narrowest`, an arm with itself having the width `itself`."""

    narrowest: float
    itself: float
    radius: float
    by_width: bool


@inner
def score_row(layer: Layer, i: int, pairs: Pairs) -> None:
    """Fill the row with the scores of the pairs (i, j >= i) that may play; -inf for all others."""
    row, utilities, active = layer.row, layer.utilities, layer.active
    widths_from(row, layer.whitened, i)
    row[i] = pairs.itself
    for j in range(i, row.shape[0]):
        if active[j] and row[j] > pairs.narrowest:
            row[j] = row[j] if pairs.by_width else utilities[i] + utilities[j] + pairs.radius * row[j]
        else:
            row[j] = -math.inf


@inner
def best_active_pair(layer: Layer, pairs: Pairs, priority: FloatArray) -> tuple[int, int]:
    """The pair of the highest score; see `duelist.kernels.rules.pairs.pick_pair`."""
    row, tops, active = layer.row, layer.tops, layer.active
    n_arms = active.shape[0]
    best = -math.inf
    for i in range(n_arms):
        tops[i] = -math.inf
        if active[i] and max(layer.widest[i], pairs.itself) > pairs.narrowest:
            score_row(layer, i, pairs)
            tops[i] = best_from(row, i)
            best = max(best, tops[i])
    floor = tie_floor(best)
    one, other, highest = -1, -1, -math.inf
    for i in range(n_arms):
        if active[i] and tops[i] >= floor:
            score_row(layer, i, pairs)
            partner, highest = favoured_partner(row, i, floor, priority, highest)
            if partner >= 0:
                one, other = i, partner
    return order_pair(one, other, layer.utilities, priority)


@inner
def perturbed_pair(layer: Layer, noise: FloatArray, pairs: Pairs, priority: FloatArray) -> tuple[int, int]:
    """CoLSTIM's rule among active arms: a perturbed leader that has a wide enough partner, and its best such challenger."""
    row, scores, utilities, active = layer.row, layer.tops, layer.utilities, layer.active
    whitened = layer.whitened
    dim, n_arms = whitened.shape
    for k in range(n_arms):
        scores[k] = -math.inf
        if active[k] and max(layer.widest[k], pairs.itself) > pairs.narrowest:
            squared = 0.0
            for i in range(dim):
                squared += whitened[i, k] * whitened[i, k]
            scores[k] = utilities[k] + noise[k] * math.sqrt(squared)
    leader = pick_arm(scores, priority)
    widths_from(row, whitened, leader)
    row[leader] = pairs.itself
    for k in range(n_arms):
        partner = active[k] and row[k] > pairs.narrowest
        scores[k] = utilities[k] + pairs.radius * row[k] if partner else -math.inf
    return leader, pick_arm(scores, priority)


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
            itself = NO_PAIR if walk.different and np.sum(arms.active) > 1 else 0.0
            pairs = Pairs(NO_PAIR if exploit else threshold, itself, radius, walk.rule == WIDEST and not exploit)
            if walk.rule == PERTURBED:
                i, j = perturbed_pair(arms, walk.noise[lane], pairs, priority)
            else:
                i, j = best_active_pair(arms, pairs, priority)
            note[lane, 0], note[lane, 1] = layer, 0.0
            if not exploit:
                # The loss of a duel counts by the square of its weight, as its contrast does in the layer's matrix.
                widths_from(arms.row, arms.whitened, i)
                note[lane, 1] = (threshold / arms.row[j]) ** 2 if walk.weigh_by_width else 1.0
            elif walk.different and i == j:
                # One arm is left and it must meet another: the strongest of those that were dropped.
                j = challenger(arms.row, i, arms.utilities, arms.whitened, radius, priority, True)
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
