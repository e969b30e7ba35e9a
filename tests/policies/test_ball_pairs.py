"""MaxInP on a ball: what it calls promising, and its most informative pair against a fine grid of the circle."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

import duelist
from duelist.actions.ball import BallActions, SphereActions
from duelist.actions.box import BoxActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.kernels.rules.pairs import project_on_cone
from duelist.policies.algorithms.confidence.maxinp import MaxInP, widest_pair
from duelist.policies.algorithms.sampling.finite_models import FiniteModels
from duelist.policies.registry import POLICIES, duel_policies
from duelist.typing import FloatArray
from tests.support.kernels import from_python

call_project_on_cone = from_python(project_on_cone)

ANGLES = np.linspace(0.0, 2.0 * np.pi, 1200, endpoint=False)
CIRCLE = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)


def _problem(seed: int) -> tuple[FloatArray, FloatArray, float]:
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((2, 2)) * np.exp(rng.standard_normal(2))
    return 2.0 * rng.standard_normal(2), root @ root.T + 0.1 * np.eye(2), float(rng.uniform(0.3, 2.5))


def _in_cone(points: FloatArray, theta: FloatArray, gram: FloatArray, confidence: float) -> npt.NDArray[np.bool_]:
    """Which points may be best under some theta of the confidence ellipsoid."""
    beyond = theta @ gram @ theta - confidence**2
    if beyond <= 0.0:
        return np.ones(len(points), dtype=bool)
    lengths = np.sqrt(np.einsum("ni,ij,nj->n", points, gram, points))
    return np.asarray(points @ gram @ theta >= math.sqrt(beyond) * lengths - 1e-7)


@pytest.mark.parametrize("seed", range(12))
def test_promising_points_of_the_circle_are_those_best_under_a_plausible_theta(seed: int) -> None:
    theta, gram, confidence = _problem(seed)
    disc = np.concatenate([radius * CIRCLE[::4] for radius in (1.0, 0.9, 0.7, 0.4, 0.0)])
    root = np.linalg.cholesky(np.linalg.inv(gram))
    widths = np.linalg.norm((CIRCLE @ root)[:, None] - (disc @ root)[None], axis=2)
    never_beaten = ((CIRCLE @ theta)[:, None] - (disc @ theta)[None] + confidence * widths >= -1e-9).all(axis=1)
    plausible = _in_cone(CIRCLE, theta, gram, confidence)
    # The definition, tried against a grid of rivals, may let in a few points next to the edge of the cap and no others.
    assert not (plausible & ~never_beaten).any()
    assert (never_beaten & ~plausible).sum() <= 12


@pytest.mark.parametrize("seed", range(40))
def test_the_pair_is_as_wide_as_the_widest_promising_pair_of_a_fine_grid(seed: int) -> None:
    theta, gram, confidence = _problem(seed)
    inverse = np.linalg.inv(gram)
    radius = 1.7
    pair = widest_pair(theta, gram, confidence, radius)
    np.testing.assert_allclose(np.linalg.norm(pair, axis=1), radius, rtol=1e-12)
    assert _in_cone(pair, theta, gram, confidence).all()
    assert pair[0] @ theta >= pair[1] @ theta
    # A grid of the cap itself, fine where the cap is narrow.
    inside = _in_cone(CIRCLE, theta, gram, confidence)
    angles = ANGLES if inside.all() else np.arctan2(theta[1], theta[0]) + np.linspace(-np.pi, np.pi, 40_001)
    points = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = points[_in_cone(points, theta, gram, confidence)]
    points = points[:: max(1, len(points) // 1000)]
    whitened = points @ np.linalg.cholesky(inverse)
    widest = np.sqrt(((whitened[:, None] - whitened[None]) ** 2).sum(axis=2)).max()
    z = pair[0] - pair[1]
    assert math.sqrt(z @ inverse @ z) >= widest * (1.0 - 1e-7)


def test_in_ten_dimensions_no_random_promising_pair_is_wider() -> None:
    rng = np.random.default_rng(2)
    root = rng.standard_normal((10, 30))
    gram, theta = root @ root.T, 3.0 * rng.standard_normal(10)
    confidence = 0.5 * math.sqrt(theta @ gram @ theta)
    pair = widest_pair(theta, gram, confidence, 1.0)
    assert _in_cone(pair, theta, gram, confidence).all()
    inverse = np.linalg.inv(gram)
    draws = rng.standard_normal((2000, 10))
    plausible = theta + confidence * (draws / np.linalg.norm(draws, axis=1, keepdims=True)) @ np.linalg.cholesky(inverse).T
    points = plausible / np.linalg.norm(plausible, axis=1, keepdims=True)
    assert _in_cone(points, theta, gram, confidence).all()
    whitened = points @ np.linalg.cholesky(inverse)
    widest = max(((whitened - point) ** 2).sum(axis=1).max() for point in whitened)
    z = pair[0] - pair[1]
    assert z @ inverse @ z >= widest


def test_the_projection_on_a_round_cone_is_the_known_one() -> None:
    # |(x_2, x_3)| <= x_1: a vector outside projects to the middle of its height and length.
    axes, bends = np.eye(3), np.array([-1.0, 1.0, 1.0])
    out = np.empty(3)
    call_project_on_cone(out, np.array([1.0, 3.0, 0.0]), axes, bends)
    np.testing.assert_allclose(out, [2.0, 2.0, 0.0], rtol=1e-12)
    call_project_on_cone(out, np.array([5.0, 3.0, 1.0]), axes, bends)
    np.testing.assert_array_equal(out, [5.0, 3.0, 1.0])


@pytest.mark.slow
def test_it_learns_on_a_ball() -> None:
    env = duelist.ContinuousDuels(dim=3, theta_norm=3.0)
    run = duelist.simulate(MaxInP(radius=2.0), env, rounds=300, trials=2, seed=0, workers=1)
    gained = np.diff(run.regret.mean(axis=0))
    assert gained[-50:].mean() < 0.2 * gained[:50].mean()


def test_a_confidence_radius_of_zero_has_no_pair() -> None:
    streams = Streams(0, [0])
    policy = MaxInP(radius=0.0)
    with pytest.raises(InvalidInputError, match="above 0"):
        policy.choose(policy.start(Problem(dim=2), streams), BallActions(1, 2), streams)


_PLAY_ANY_SET = ("DPS", "FGTS", "FiniteModels", "Uniform")


@pytest.mark.parametrize("name", _PLAY_ANY_SET)
def test_some_play_the_best_points_of_any_set(name: str) -> None:
    made = {"FiniteModels": FiniteModels(models=np.eye(2))}
    policy, streams = made.get(name) or POLICIES[name](), Streams(0, [0])
    state = policy.start(Problem(dim=2, horizon=10), streams)
    duels, _ = policy.choose(state, SphereActions(1, 2), streams)
    np.testing.assert_allclose(np.linalg.norm(duels.features, axis=2), 1.0)


@pytest.mark.parametrize("name", [name for name in duel_policies(with_extras=False) if name not in _PLAY_ANY_SET])
def test_the_others_refuse_continuous_sets_with_a_reason(name: str) -> None:
    policy, streams = POLICIES[name](), Streams(0, [0])
    state = policy.start(Problem(dim=2, horizon=10), streams)
    refused = [BoxActions([0.0, 0.0], [1.0, 1.0]), SphereActions(1, 2)]
    for actions in refused if name == "MaxInP" else [*refused, BallActions(1, 2)]:
        with pytest.raises(InvalidInputError, match="FGTS plays every continuous set"):
            policy.choose(state, actions, streams)
