"""Where arms lie: spheres, clusters and axes against slow draws, and cubes exactly as they always were."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import pytest

from duelist.core.errors import DuelistError
from duelist.core.streams import Streams
from duelist.environments.linear import CLUSTER_CENTRES, CLUSTER_SPREAD, LinearDuels
from duelist.history.duels import duels_between
from duelist.typing import FloatArray

KINDS = ("sphere", "clusters", "axes")


def arms_of(seed: int = 0, lanes: int = 6, round_: int = 0, **settings: Any) -> FloatArray:
    return LinearDuels(**settings).instance(Streams(seed, range(lanes))).actions(round_).features


def normals_by_hand(seed: int, trial: int, round_: int, substream: int, size: int) -> FloatArray:
    """Box-Muller on NumPy's own Philox words: the slow version of what the kernels draw."""
    key = Streams(seed, [trial]).keys("arms")[0]
    # NumPy raises its counter before it draws.
    generator = np.random.Philox(key=key, counter=np.array([0, round_, substream, 0], dtype=np.uint64))
    words = generator.random_raw(4 * -(-size // 4))
    units = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    radius, angle = np.sqrt(-2 * np.log(units[0::2])), 2 * math.pi * units[1::2]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()[:size]


def unit(vector: FloatArray) -> FloatArray:
    return np.asarray(vector / np.linalg.norm(vector))


@pytest.mark.parametrize(
    ("settings", "digest", "theta"),
    [
        ({"dim": 5, "arms": 8}, "ff18a1299ebd24f5", [-0.3007797006988387, -0.38740061424625205, 0.3775697653834844]),
        (
            {"dim": 70, "arms": 5, "unit_norm": True},
            "b89c3e72bcae5104",
            [-0.054249820268698457, -0.06987311193545483, 0.06809998102716963],
        ),
        (
            {"dim": 4, "arms": 6, "fresh_arms": True, "theta_norm": 2.5},
            "25c5ae01aa7b933b",
            [-0.7786133012396749, -1.0028445086544258, 0.9773958840655876],
        ),
    ],
)
def test_the_paper_s_problem_is_bit_for_bit_what_it_was_before_there_were_others(
    settings: dict[str, Any], digest: str, theta: list[float]
) -> None:
    instance = LinearDuels(**settings).instance(Streams(11, [0, 3, 1_000_000]))
    content = hashlib.blake2b(digest_size=8)
    for t in range(40):
        actions = instance.actions(t)
        duels = duels_between(actions, np.full(3, t % 5), np.full(3, (t + 1) % 5))
        content.update(actions.features.tobytes())
        content.update(instance.outcomes(t, duels).astype(np.int64).tobytes())
    assert content.hexdigest() == digest
    np.testing.assert_allclose(instance.theta[1, :3], theta, rtol=1e-14)


@pytest.mark.parametrize("dim", [2, 3, 6, 10])
def test_sphere_arms_are_normal_vectors_of_their_own_stream_scaled(dim: int) -> None:
    arms = arms_of(seed=5, lanes=3, round_=7, dim=dim, arms=4, geometry="sphere", fresh_arms=True)
    for lane in range(3):
        for k in range(4):
            expected = math.sqrt(dim) * unit(normals_by_hand(5, lane, 7, k, dim))
            np.testing.assert_allclose(arms[lane, k], expected, rtol=1e-12)


def test_cluster_arms_are_their_centre_and_a_small_step_scaled() -> None:
    dim, n_arms = 6, 9
    arms = arms_of(seed=2, lanes=2, dim=dim, arms=n_arms, geometry="clusters", unit_norm=True)
    for lane in range(2):
        centres = [unit(normals_by_hand(2, lane, 0, n_arms + c, dim)) for c in range(CLUSTER_CENTRES)]
        for k in range(n_arms):
            step = CLUSTER_SPREAD / math.sqrt(dim) * normals_by_hand(2, lane, 0, k, dim)
            np.testing.assert_allclose(arms[lane, k], unit(centres[k % CLUSTER_CENTRES] + step), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit_norm", [False, True])
def test_all_arms_have_one_norm_and_no_two_are_equal(kind: str, unit_norm: bool) -> None:
    arms = arms_of(dim=12, arms=10, geometry=kind, unit_norm=unit_norm)
    np.testing.assert_allclose(np.linalg.norm(arms, axis=2), 1.0 if unit_norm else math.sqrt(12))
    for lane in arms:
        assert len(np.unique(lane, axis=0)) == 10


def test_directions_on_the_sphere_are_uniform() -> None:
    directions = arms_of(lanes=200, dim=3, arms=16, geometry="sphere", unit_norm=True).reshape(-1, 3)
    n = len(directions)
    # Five standard errors; on the sphere in three dimensions a coordinate is uniform on [-1, 1] (Archimedes).
    assert np.abs(directions.mean(axis=0)).max() < 5 * math.sqrt(1 / 3 / n)
    for coordinate in directions.T:
        counts = np.histogram(coordinate, bins=8, range=(-1, 1))[0]
        assert np.abs(counts - n / 8).max() < 5 * math.sqrt(n / 8)


def test_arms_of_one_cluster_are_near_duplicates_and_clusters_are_far_apart() -> None:
    arms = arms_of(lanes=50, dim=10, arms=32, geometry="clusters", unit_norm=True)
    cosines = np.einsum("lid,ljd->lij", arms, arms)
    cluster = np.arange(32) % CLUSTER_CENTRES
    same = (cluster[:, None] == cluster[None, :]) & ~np.eye(32, dtype=bool)
    apart = cluster[:, None] != cluster[None, :]
    # Two steps of length 0.2 in random directions: a cosine of 1 / (1 + 0.04) on average.
    assert cosines[:, same].mean() == pytest.approx(1 / (1 + CLUSTER_SPREAD**2), abs=0.005)
    assert cosines[:, same].min() > 0.8
    # 50 lanes x 6 pairs of centres, each cosine with variance 1/10: five standard errors.
    assert abs(cosines[:, apart].mean()) < 5 * math.sqrt(0.1 / 300)


def test_axes_are_orthogonal_and_every_axis_is_as_likely() -> None:
    arms = arms_of(lanes=4000, dim=5, arms=3, geometry="axes")
    assert set(np.unique(arms)) == {0.0, math.sqrt(5)}
    np.testing.assert_allclose(arms @ arms.transpose(0, 2, 1), np.broadcast_to(5 * np.eye(3), (4000, 3, 3)))
    counts = (arms > 0).sum(axis=0)  # (place, axis)
    assert np.abs(counts - 800).max() < 5 * math.sqrt(4000 * 0.2 * 0.8)


@pytest.mark.parametrize("kind", KINDS)
def test_a_lane_s_arms_depend_on_seed_trial_and_round_only(kind: str) -> None:
    recipe = LinearDuels(dim=8, arms=6, geometry=kind, fresh_arms=True)  # type: ignore[arg-type]
    many, one = recipe.instance(Streams(3, range(10))), recipe.instance(Streams(3, [7]))
    for t in (0, 4):
        np.testing.assert_array_equal(many.actions(t).features[7], one.actions(t).features[0])
    assert not np.array_equal(many.actions(4).features, many.actions(5).features)
    assert not np.array_equal(many.actions(4).features[6], many.actions(4).features[7])
    assert not np.array_equal(one.actions(4).features, recipe.instance(Streams(4, [7])).actions(4).features)
    fixed = LinearDuels(dim=8, arms=6, geometry=kind).instance(Streams(3, [7]))  # type: ignore[arg-type]
    np.testing.assert_array_equal(fixed.actions(9).features, one.actions(0).features)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"geometry": "sphrere"}, "Did you mean 'sphere'"),
        ({"geometry": "axes", "dim": 4, "arms": 5}, "at most dim = 4 .* got 5"),
        ({"geometry": "sphere", "dim": 1, "arms": 2}, "dim of at least 2; got 1"),
        ({"geometry": "clusters", "dim": 1, "arms": 2}, "dim of at least 2; got 1"),
        ({"link": "logit"}, "Did you mean 'logistic'"),
        ({"flips": 0.5}, "below 0.5; got 0.5"),
        ({"flips": -0.1}, "flips must be a finite number at least 0"),
        ({"flips": math.nan}, "flips"),
    ],
)
def test_arms_and_votes_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DuelistError, match=message):
        LinearDuels(**settings)


def test_a_sphere_has_room_for_more_arms_than_a_cube_has_corners() -> None:
    assert arms_of(dim=2, arms=40, geometry="sphere").shape == (6, 40, 2)
