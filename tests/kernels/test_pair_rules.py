"""A rule for pairs can be written in NumPy between two kernels, and gives the pairs of the fused one."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.kernels import best_pairs, pair_geometry
from duelist.kernels.actions import TIE
from duelist.kernels.rules.pairs import Bounds, Candidates, max_pair_lanes, maxinp_lanes
from duelist.typing import FloatArray

LANES, DIM, ARMS = 60, 4, 7


def drawn(seed: int) -> tuple[Candidates, Bounds]:
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(LANES, DIM, ARMS))
    columns[:, :, 3] = columns[:, :, 1]  # two arms that look the same: ties
    priority = rng.random((LANES, ARMS))
    root = rng.normal(size=(LANES, DIM, 2 * DIM))
    whitener = np.linalg.inv(np.linalg.cholesky(root @ root.transpose(0, 2, 1)))
    return Candidates(columns, priority), Bounds(rng.normal(size=(LANES, DIM)), whitener, rng.uniform(0.1, 3.0, LANES))


def fused(rule: str, candidates: Candidates, bounds: Bounds) -> list[list[int]]:
    first, second = np.empty(LANES, dtype=np.int64), np.empty(LANES, dtype=np.int64)
    (maxinp_lanes if rule == "MaxInP" else max_pair_lanes)(first, second, candidates, bounds, False)
    return [first.tolist(), second.tolist()]


def scores_in_numpy(rule: str, utilities: FloatArray, widths: FloatArray, radius: FloatArray) -> FloatArray:
    if rule == "MaxPairUCB":
        return utilities[:, :, None] + utilities[:, None, :] + radius[:, None, None] * widths
    gap = utilities[:, :, None] - utilities[:, None, :]
    slack = TIE * (1.0 + np.abs(utilities))[:, None, :]
    kept = np.all(gap + radius[:, None, None] * widths >= -slack, axis=2)
    return np.where(kept[:, :, None] & kept[:, None, :], widths, -np.inf)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["MaxInP", "MaxPairUCB"])
@pytest.mark.parametrize("seed", range(4))
def test_the_rule_in_numpy_picks_the_pairs_of_the_fused_kernel(rule: str, seed: int) -> None:
    candidates, bounds = drawn(seed)
    utilities, widths = pair_geometry(candidates.columns, bounds.theta, bounds.whitener)
    scores = scores_in_numpy(rule, utilities, widths, bounds.radius)
    pairs = [rows.tolist() for rows in best_pairs(scores, utilities, candidates.priority)]
    assert pairs == fused(rule, candidates, bounds)


def test_utilities_and_widths_are_those_of_the_formulas() -> None:
    candidates, bounds = drawn(9)
    utilities, widths = pair_geometry(candidates.columns, bounds.theta, bounds.whitener)
    np.testing.assert_allclose(utilities, np.einsum("ld,ldk->lk", bounds.theta, candidates.columns), rtol=1e-12)
    inverse = bounds.whitener.transpose(0, 2, 1) @ bounds.whitener
    z = candidates.columns[:, :, :, None] - candidates.columns[:, :, None, :]
    np.testing.assert_allclose(widths, np.sqrt(np.einsum("ldij,lde,leij->lij", z, inverse, z)), rtol=1e-9, atol=1e-12)


def test_a_pair_of_score_minus_infinity_never_plays() -> None:
    scores = np.full((1, 3, 3), -np.inf)
    scores[0, 1, 2] = scores[0, 2, 1] = -5.0
    first, second = best_pairs(scores, np.array([[9.0, 1.0, 2.0]]), np.ones((1, 3)))
    assert (first[0], second[0]) == (2, 1)
