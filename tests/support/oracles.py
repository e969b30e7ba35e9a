"""Slow, obvious versions of what the package computes, written from the paper's formulas and using none of its code."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Round:
    """One round of one run: the arms (n_arms, dim) offered, the two rows that met, and +1 if the first won, 0 for a tie."""

    arms: Floats
    first: int
    second: int
    outcome: int

    @property
    def contrast(self) -> Floats:
        difference: Floats = self.arms[self.first] - self.arms[self.second]
        return difference


def full_potential(
    theta: Floats,
    rounds: Sequence[Round],
    *,
    draw: int,
    eta: float = 1.0,
    mu: float = 0.0,
    precision: float = 1.0,
    radius: float = math.inf,
) -> float:
    """-log p_j(theta) up to a constant, round by round as the paper writes it, for j = `draw`, which is 1 or 2."""
    if np.linalg.norm(theta) > radius:
        return math.inf
    total = 0.5 * precision * float(theta @ theta)
    for played in rounds:
        # A tie, outcome 0, is half a win and half a loss.
        answers = (1, -1) if played.outcome == 0 else (played.outcome,)
        total += eta * float(np.mean([np.logaddexp(0.0, -y * float(theta @ played.contrast)) for y in answers]))
        adversary = played.arms[played.second if draw == 1 else played.first]
        total -= mu * (max(float(theta @ arm) for arm in played.arms) - float(theta @ adversary))
    return total


def many_potentials(
    thetas: Floats, rounds: Sequence[Round], *, draw: int, eta: float, mu: float, precision: float, radius: float
) -> Floats:
    """`full_potential` at thetas (n, dim): the same sum over rounds, for all points at once."""
    total = 0.5 * precision * (thetas**2).sum(axis=1)
    for played in rounds:
        total += eta * np.logaddexp(0.0, -played.outcome * (thetas @ played.contrast))
        adversary = played.arms[played.second if draw == 1 else played.first]
        total -= mu * ((thetas @ played.arms.T).max(axis=1) - thetas @ adversary)
    return np.asarray(np.where((thetas**2).sum(axis=1) > radius**2, math.inf, total))


def moments_on_grid(potential: Callable[[Floats], Floats], reach: float, points: int = 500) -> tuple[Floats, Floats]:
    """Mean and standard deviation, each (2,), of exp(-potential) in the plane, by the midpoint rule.

    A first pass over the square |theta_i| <= reach finds where the mass is; a second covers nine deviations around it.
    """
    low, high = np.full(2, -reach), np.full(2, reach)
    for _ in range(2):
        axes = [low[i] + (np.arange(points) + 0.5) * (high[i] - low[i]) / points for i in range(2)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        values = potential(grid)
        weights = np.exp(values.min() - values)
        weights /= weights.sum()
        mean: Floats = weights @ grid
        deviation: Floats = np.sqrt(weights @ (grid - mean) ** 2)
        low, high = np.maximum(mean - 9 * deviation, -reach), np.minimum(mean + 9 * deviation, reach)
    return mean, deviation


def finite_difference(function: Callable[[Floats], float], at: Floats, step: float = 1e-6) -> Floats:
    """Central differences of a scalar function, one coordinate at a time."""
    slopes = np.empty(len(at))
    for i in range(len(at)):
        nudge = np.zeros(len(at))
        nudge[i] = step
        slopes[i] = (function(at + nudge) - function(at - nudge)) / (2 * step)
    return slopes


def naive_fit(contrasts: Floats, outcomes: npt.NDArray[np.int64], *, ridge: float, weight: float = 1.0) -> Floats:
    """Minimiser of ridge/2 |theta|^2 + weight * sum_i log(1 + exp(-y_i <theta, z_i>)), by a general-purpose optimiser."""

    def objective(theta: Floats) -> float:
        return 0.5 * ridge * float(theta @ theta) + weight * float(np.logaddexp(0.0, -outcomes * (contrasts @ theta)).sum())

    def slope(theta: Floats) -> Floats:
        lost = 1.0 / (1.0 + np.exp(np.minimum(outcomes * (contrasts @ theta), 500.0)))
        return np.asarray(ridge * theta - weight * contrasts.T @ (outcomes * lost))

    found = minimize(
        objective, np.zeros(contrasts.shape[1]), jac=slope, method="BFGS", options={"gtol": 1e-10, "maxiter": 2000}
    )
    return np.asarray(found.x, dtype=np.float64)


def philox_words(key: npt.NDArray[np.uint64], block: int, round_: int, substream: int, size: int = 4) -> list[int]:
    """Words of NumPy's Philox for the counter (block, round, substream, 0); NumPy counts up before it draws."""
    counter = np.array([block - 1, round_, substream, 0], dtype=np.uint64)  # a list would round large numbers to floats
    return [int(word) for word in np.random.Philox(key=key, counter=counter).random_raw(size)]


def unit(word: int) -> float:
    """The middle of the word's cell when (0, 1) is cut into 2^52 equal cells."""
    return ((word >> 12) + 0.5) / 2**52


def box_muller(words: Sequence[int], size: int) -> list[float]:
    """Standard normals from pairs of words."""
    normals: list[float] = []
    for i in range(0, len(words), 2):
        length, angle = math.sqrt(-2 * math.log(unit(words[i]))), 2 * math.pi * unit(words[i + 1])
        normals += [length * math.cos(angle), length * math.sin(angle)]
    return normals[:size]
