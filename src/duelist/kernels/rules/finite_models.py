"""Compiled enumeration of a finite class of models: utilities of all of them, what a duel says, and draws."""

from __future__ import annotations

import math

import numpy as np

from duelist.kernels.actions import utilities_into
from duelist.kernels.compile import entry
from duelist.kernels.logistic import exp_of_negative, log1p_of_fraction
from duelist.kernels.philox import first_block, philox, to_unit
from duelist.typing import FloatArray, IntArray, Keys


@entry
def learn_lanes(
    log_likelihood: FloatArray,
    gain: FloatArray,
    columns: FloatArray,
    shown: FloatArray,
    maxima: FloatArray,
    outcomes: IntArray,
) -> None:
    """Add one duel per lane to log_likelihood (lanes, N) and to the Feel-Good sums gain (lanes, 2, N).

    `columns` (width, N) holds the models, one per column; `shown` (lanes, 2, width) what both candidates look like to them, and
    `maxima` (lanes, N) the utility of each model's best arm.
    """
    lanes, n_models = log_likelihood.shape
    first, second = np.empty(n_models), np.empty(n_models)
    for lane in range(lanes):
        utilities_into(first, columns, shown[lane, 0])
        utilities_into(second, columns, shown[lane, 1])
        y = outcomes[lane]
        for n in range(n_models):
            u = first[n] - second[n]
            # max(-y u, 0) for a win or a loss, and the mean of both for a tie, which is half a win each way.
            excess = 0.5 * abs(u) if y == 0 else max(-y * u, 0.0)
            log_likelihood[lane, n] -= log1p_of_fraction(exp_of_negative(-abs(u))) + excess
            # Draw 1 is tilted against the arm of draw 2, and the other way round.
            gain[lane, 0, n] += maxima[lane, n] - second[n]
            gain[lane, 1, n] += maxima[lane, n] - first[n]


@entry
def draw_lanes(
    drawn: IntArray,
    log_likelihood: FloatArray,
    gain: FloatArray,
    eta: FloatArray,
    mu: FloatArray,
    keys: Keys,
    round_: int,
    attempt: int,
) -> None:
    """Two independent models per lane, drawn (lanes, 2), each from its own posterior by inverting the distribution function."""
    lanes, n_models = log_likelihood.shape
    running = np.empty(n_models)
    for lane in range(lanes):
        for j in range(2):
            top = -math.inf
            for n in range(n_models):
                running[n] = eta[lane] * log_likelihood[lane, n] + mu[lane] * gain[lane, j, n]
                top = max(top, running[n])
            total = 0.0
            for n in range(n_models):
                running[n] = exp_of_negative(running[n] - top)
            for n in range(n_models):
                total += running[n]
                running[n] = total
            word, _w1, _w2, _w3 = philox(keys[lane], first_block(), round_, 2 * attempt + j)
            target = to_unit(word) * total
            low, high = 0, n_models - 1
            while low < high:
                middle = (low + high) // 2
                if running[middle] > target:
                    high = middle
                else:
                    low = middle + 1
            drawn[lane, j] = low
