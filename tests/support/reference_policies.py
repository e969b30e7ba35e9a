"""The baselines' rules in plain Python, one round at a time over the whole record, from their formulas.

None of the package's arithmetic is used: widths come from `np.linalg.inv`, fits from a general-purpose optimiser, random
numbers from NumPy's Philox.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from duelist.actions.finite import FiniteActions
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from tests.support.oracles import Floats, philox_words, unit


@dataclass(frozen=True)
class Taught:
    """A duel that was learnt: its contrast, +1 if the first won, the layer (0 is the lowest) and by how much it counts."""

    contrast: Floats
    outcome: int
    layer: int = 0
    count: float = 1.0


@dataclass(frozen=True)
class Choice:
    """The pair, where and by how much its duel will count in a layered policy, and whether their order is a tie."""

    first: int
    second: int
    layer: int = 0
    count: float = 1.0
    order_is_tied: bool = False


def slow_fit(record: Sequence[Taught], dim: int, ridge: float) -> Floats:
    """Minimiser of ridge/2 |theta|^2 + sum_i count_i log(1 + exp(-y_i <theta, z_i>))."""
    contrasts = np.array([duel.contrast for duel in record]).reshape(-1, dim)
    outcomes = np.array([duel.outcome for duel in record], dtype=float)
    counts = np.array([duel.count for duel in record])

    def objective(theta: Floats) -> float:
        return 0.5 * ridge * float(theta @ theta) + float(counts @ np.logaddexp(0.0, -outcomes * (contrasts @ theta)))

    def slope(theta: Floats) -> Floats:
        return np.asarray(ridge * theta - contrasts.T @ (counts * outcomes / (1.0 + np.exp(outcomes * (contrasts @ theta)))))

    found = minimize(objective, np.zeros(dim), jac=slope, method="BFGS", options={"gtol": 1e-9})
    return np.asarray(found.x, dtype=np.float64)


def slow_matrix(record: Sequence[Taught], dim: int, ridge: float, local_at: Floats | None = None) -> Floats:
    """ridge I + sum_i count_i z_i z_i^T, each term times s'(<theta, z_i>) where the curvature is asked for at a theta."""
    matrix = ridge * np.eye(dim)
    for duel in record:
        chance = 1.0 if local_at is None else 1.0 / (1.0 + math.exp(-float(local_at @ duel.contrast)))
        curvature = 1.0 if local_at is None else chance * (1.0 - chance)
        matrix += curvature * duel.count * np.outer(duel.contrast, duel.contrast)
    return matrix


def norm(vector: Floats, matrix: Floats) -> float:
    """|vector| in the norm of the inverse of `matrix`."""
    return math.sqrt(max(0.0, float(vector @ np.linalg.inv(matrix) @ vector)))


def better_first(i: int, j: int, utilities: Floats) -> Choice:
    """The pair with the higher utility first; equal ones are left to their priorities."""
    tied = abs(utilities[i] - utilities[j]) < 1e-11
    return Choice(i, j, order_is_tied=tied) if utilities[i] >= utilities[j] else Choice(j, i, order_is_tied=tied)


def by_priority(choice: Choice, actions: FiniteActions, streams: Streams, asked: int) -> Choice:
    """Where the order is tied, the arm with the larger random number of its content comes first."""
    priority = {
        row: unit(philox_words(streams.keys("ties")[0], 1, asked, int(actions.fingerprints[0, row]))[0])
        for row in (choice.first, choice.second)
    }
    if choice.order_is_tied and priority[choice.second] > priority[choice.first]:
        return replace(choice, first=choice.second, second=choice.first)
    return choice


def slow_maxinp(arms: Floats, theta: Floats, matrix: Floats, radius: float) -> Choice:
    """Keep arms that no other beats beyond doubt; play the widest pair of them."""
    rows = range(len(arms))
    kept = [i for i in rows if all(theta @ (arms[i] - x) + radius * norm(arms[i] - x, matrix) >= -1e-9 for x in arms)]
    pair = max(combinations_with_replacement(kept, 2), key=lambda p: norm(arms[p[0]] - arms[p[1]], matrix))
    return better_first(*pair, arms @ theta)


def slow_max_pair(arms: Floats, theta: Floats, matrix: Floats, radius: float) -> Choice:
    """The largest <theta, x + y> + radius |x - y| over pairs, an arm with itself included."""
    return slow_best_pair(arms, combinations_with_replacement(range(len(arms)), 2), theta, matrix, radius)


def slow_best_pair(arms: Floats, pairs: Any, theta: Floats, matrix: Floats, radius: float) -> Choice:
    def score(pair: tuple[int, int]) -> float:
        x, y = arms[pair[0]], arms[pair[1]]
        return float(theta @ (x + y)) + radius * norm(x - y, matrix)

    i, j = max(pairs, key=score)
    return better_first(i, j, arms @ theta)


def slow_colstim(arms: Floats, rows: Sequence[int], theta: Floats, matrix: Floats, radius: float, noise: Floats) -> Choice:
    """A perturbed leader among `rows`, and its strongest optimistic challenger among them."""
    first = max(rows, key=lambda k: float(theta @ arms[k]) + noise[k] * norm(arms[k], matrix))

    def challenge(k: int) -> float:
        z = arms[k] - arms[first]
        return float(theta @ z) + radius * norm(z, matrix)

    return Choice(first, max(rows, key=challenge))


def slow_noise(actions: FiniteActions, streams: Streams, asked: int, *, own_chance: float, clip: float) -> Floats:
    """Clipped Gumbel noise (n_arms,): an own number for every arm if the coin falls below own_chance, else one for all."""

    def uniform(name: str, substream: int) -> float:
        return unit(philox_words(streams.keys(name)[0], 1, asked, substream)[0])

    if uniform("coupling", 0) < own_chance:
        numbers = [uniform("arm noise", int(content)) for content in actions.fingerprints[0]]
    else:
        numbers = [uniform("shared noise", 0)] * actions.n_arms
    return np.array([min(clip, max(-clip, -math.log(-math.log(u)))) for u in numbers])


class SlowLayers(NamedTuple):
    """What the walk needs: an estimate, a matrix and a radius a layer, and the width below which a layer exploits.

    A radius that is one number is that of every layer.
    """

    thetas: list[Floats]
    matrices: list[Floats]
    radius: Any
    stop: float
    weigh_by_width: bool = False
    widest_first: bool = False
    noise: Floats | None = None


def slow_walk(arms: Floats, layers: SlowLayers) -> Choice:
    """From the lowest layer up: stop and exploit, drop the weak and go up, or explore a pair wider than 2^-l."""
    left = list(range(len(arms)))
    n_layers = len(layers.thetas)
    radii = np.broadcast_to(layers.radius, n_layers)
    for layer, (theta, matrix) in enumerate(zip(layers.thetas, layers.matrices, strict=True)):
        layers = layers._replace(radius=float(radii[layer]))
        level = 2.0 ** -(layer + 1)
        widths = {(i, j): norm(arms[i] - arms[j], matrix) for i in left for j in left}
        widest = max(widths.values())
        if widest <= layers.stop or (widest <= level and layer == n_layers - 1):
            if layers.noise is not None:
                pair = slow_colstim(arms, left, theta, matrix, layers.radius, layers.noise)
            else:
                pair = slow_best_pair(arms, combinations_with_replacement(left, 2), theta, matrix, layers.radius)
            return replace(pair, layer=layer, count=0.0)
        if widest <= level:
            best = max(float(theta @ arms[i]) for i in left)
            left = [i for i in left if float(theta @ arms[i]) >= best - level * layers.radius]
            continue
        pair = slow_exploration(arms, [p for p in widths if widths[p] > level], theta, matrix, layers)
        count = (level / widths[pair.first, pair.second]) ** 2 if layers.weigh_by_width else 1.0
        return replace(pair, layer=layer, count=count)
    raise AssertionError("the last layer always plays")


def slow_exploration(
    arms: Floats, wide: Sequence[tuple[int, int]], theta: Floats, matrix: Floats, layers: SlowLayers
) -> Choice:
    """Which of the wide pairs a layer explores."""
    if layers.noise is not None:
        leaders = sorted({i for i, _ in wide})
        first = slow_colstim(arms, leaders, theta, matrix, layers.radius, layers.noise).first
        partners = [j for i, j in wide if i == first]

        def challenge(k: int) -> float:
            return float(theta @ arms[k]) + float(layers.radius) * norm(arms[k] - arms[first], matrix)

        return Choice(first, max(partners, key=challenge))
    if layers.widest_first:
        widest = max(wide, key=lambda pair: norm(arms[pair[0]] - arms[pair[1]], matrix))
        return better_first(*widest, arms @ theta)
    return slow_best_pair(arms, wide, theta, matrix, layers.radius)


Rule = Callable[[list[Taught], FiniteActions, Streams, int], Choice]


def play_beside(policy: Any, rule: Rule, *, dim: int, rounds: int, horizon: int, scales: Sequence[float]) -> list[Choice]:
    """Play random arms of changing number and scale, checking every choice against `rule`; returns the choices."""
    generator, streams = np.random.default_rng(8), Streams(4, [6])
    state = policy.start(Problem(dim=dim, horizon=horizon), streams)
    truth = 2.0 * generator.standard_normal(dim)
    record: list[Taught] = []
    choices: list[Choice] = []
    for t in range(rounds):
        scale = scales[t % len(scales)]
        actions = FiniteActions(scale * generator.standard_normal((int(generator.integers(3, 7)), dim)))
        duels, state = policy.choose(state, actions, streams)
        expected = by_priority(rule(record, actions, streams, t), actions, streams, t)
        assert (int(duels.first[0]), int(duels.second[0])) == (expected.first, expected.second), f"round {t}"
        if duels.note is not None:
            np.testing.assert_allclose(duels.note, [[expected.layer, expected.count]], rtol=1e-7, err_msg=f"round {t}")
        z = actions.features[0, expected.first] - actions.features[0, expected.second]
        outcome = 1 if generator.random() < 1.0 / (1.0 + math.exp(-float(truth @ z))) else -1
        state = policy.learn(state, actions, duels, np.array([outcome]))
        record.append(Taught(z, outcome, expected.layer, expected.count))
        choices.append(expected)
    return choices
