"""Tens of thousands of arms: nothing is as large as the square of their number, and what takes long says so first."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.kernels.actions import TIE, smallest_into, sort_into
from duelist.kernels.rules.pairs import Bounds, Candidates, max_pair_lanes, maxinp_lanes
from duelist.policies.algorithms.sampling.foresight import share_seen
from duelist.policies.parts.confidence import warn_of_many_pairs
from duelist.typing import FloatArray
from tests.support.kernels import from_python

# A limit of 2 GB on the address space: the pairs of 50,000 arms would be 20 GB, and 2.5 GB as single bytes.
PLAY = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))
import numpy as np
import duelist
from duelist.journal import SQLiteJournal

name, sets, n_arms, path = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
rng = np.random.default_rng(0)
arms = rng.standard_normal((n_arms, 8))
with SQLiteJournal(path) as journal:
    for keep in ({}, {"journal": journal}):
        agent = duelist.Agent(getattr(duelist, name)(), dim=8, seed=0, **keep)
        for _ in range(3):
            if sets == "fresh":
                arms = rng.standard_normal((n_arms, 8))
            duel = agent.choose(arms)
            agent.learn(duel, winner=duel.first)
        print(agent.rounds)
"""


def play(name: str, sets: str, n_arms: int, folder: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", PLAY, name, sets, str(n_arms), str(folder / "journal.db")]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # every thread of a library has its own address space
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["3", "3"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a limit on the address space is Linux's")
@pytest.mark.parametrize("sets", ["fixed", "fresh"])
@pytest.mark.parametrize("name", ["FGTS", "CoLSTIM", "Foresight"])
def test_fifty_thousand_arms_fit_two_gigabytes_live_and_on_a_journal(name: str, sets: str, tmp_path: Path) -> None:
    play(name, sets, 50_000, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a limit on the address space is Linux's")
@pytest.mark.parametrize("name", ["MaxInP", "MaxPairUCB", "SupCoLSTIM"])
def test_rules_that_look_at_all_pairs_do_not_keep_them(name: str, tmp_path: Path) -> None:
    play(name, "fixed", 17_000, tmp_path)  # 2.3 GB of pairs


def plain_pair(scores: FloatArray, utilities: FloatArray, priority: FloatArray) -> tuple[int, int]:
    """The pair of the largest score from the whole matrix, as one would write it."""
    upper = np.where(np.triu(np.ones_like(scores, dtype=bool)), scores, -np.inf)
    ties = upper >= upper.max() - TIE * (1.0 + abs(upper.max()))
    sums = np.where(ties, priority[:, None] + priority[None, :], -np.inf)
    one, other = (int(n) for n in np.unravel_index(sums.argmax(), sums.shape))
    gap, slack = utilities[other] - utilities[one], TIE * (1.0 + abs(utilities[one]))
    return (other, one) if gap > slack or (gap >= -slack and priority[other] > priority[one]) else (one, other)


@pytest.mark.slow
@pytest.mark.parametrize("different", [False, True])
@pytest.mark.parametrize("rule", ["MaxInP", "MaxPairUCB"])
def test_pairs_found_row_by_row_are_those_of_the_whole_matrix(rule: str, different: bool) -> None:
    rng = np.random.default_rng(4)
    lanes, dim, n_arms = 40, 3, 60
    columns = rng.standard_normal((lanes, dim, n_arms))
    columns[:, :, 20:40] = columns[:, :, :20]  # twins: many ties
    candidates = Candidates(columns, rng.random((lanes, n_arms)))
    bounds = Bounds(rng.standard_normal((lanes, dim)), np.tile(np.eye(dim), (lanes, 1, 1)), rng.uniform(0.1, 3.0, lanes))
    first, second = np.empty((2, lanes), dtype=np.int64)
    (maxinp_lanes if rule == "MaxInP" else max_pair_lanes)(first, second, candidates, bounds, different)
    compared = 0
    for lane in range(lanes):
        utilities, x = bounds.theta[lane] @ columns[lane], columns[lane].T
        widths = np.linalg.norm(x[:, None] - x[None], axis=2)
        scores = utilities[:, None] + utilities[None] + bounds.radius[lane] * widths
        if rule == "MaxInP":
            margins = utilities[:, None] - utilities[None] + bounds.radius[lane] * widths
            kept = (margins >= -TIE * (1.0 + np.abs(utilities))).all(axis=1)
            scores = np.where(kept[:, None] & kept[None], widths, -np.inf)
            if kept.sum() == 1:
                continue
        if different:
            np.fill_diagonal(scores, -np.inf)
        assert (first[lane], second[lane]) == plain_pair(scores, utilities, candidates.priority[lane])
        compared += 1
    assert compared > lanes // 2


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 64, 65, 1000])
def test_orders_are_those_of_a_stable_sort(n: int) -> None:
    values = np.random.default_rng(n).integers(0, max(2, n // 3), n).astype(np.float64)  # equal values go by row
    expected = np.argsort(values, kind="stable")
    order, spare = np.empty((2, n), dtype=np.int64)
    from_python(sort_into)(order, values, n, spare)
    np.testing.assert_array_equal(order, expected)
    smallest = from_python(smallest_into)
    for most in (1, 2, 12, n, n + 5):
        found = smallest(order, values, most)
        np.testing.assert_array_equal(order[:found], expected[:most])


def test_the_share_of_arms_that_came_back_is_the_same_in_blocks_and_close_from_a_sample() -> None:
    rng = np.random.default_rng(1)
    for n_arms in (3000, 12_000):  # 9 million pairs are looked at in blocks; of 144 million, a sample
        before = rng.standard_normal((1, 8, n_arms))
        now = rng.standard_normal((1, 8, n_arms))
        back = rng.random(n_arms) < 0.4
        now[:, :, back] = before[:, :, back]
        share = float(share_seen(now, before, np.array([8.0]))[0])
        if n_arms == 3000:
            apart = ((now[0].T[:200, None] - before[0].T[None]) ** 2).sum(axis=2).min(axis=1) <= 0.01 * 16.0
            assert (back[:200] <= apart).all()
            assert share == pytest.approx(back.mean(), abs=0.02)
        assert share == pytest.approx(back.mean(), abs=4 * np.sqrt(0.24 / 256))  # four standard errors of the sample
        assert share_seen(before, before, np.array([8.0]))[0] == 1.0


def test_a_round_that_takes_long_is_said_before_it_is_played() -> None:
    large = FiniteActions(np.broadcast_to(np.arange(8.0), (100_000, 8)) + np.arange(100_000.0)[:, None])
    with pytest.warns(UserWarning, match="MaxInP looks at every pair of arms: with 100,000 arms .* CoLSTIM"):
        warn_of_many_pairs(duelist.MaxInP(), large)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = duelist.MaxPairUCB()
        small = FiniteActions(np.random.default_rng(0).standard_normal((500, 8)))
        policy.choose(policy.start(Problem(dim=8), Streams(0, [0])), small, Streams(0, [0]))


def test_a_dimension_that_makes_rounds_slow_is_said_at_the_start() -> None:
    for policy in (duelist.FGTS(), duelist.CoLSTIM()):
        with pytest.warns(UserWarning, match=r"dim 4,000 a round takes about 68 ms"):
            policy.start(Problem(dim=4000), Streams(0, [0]))


def test_an_ordinary_dimension_is_not_remarked_on() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        duelist.FGTS().start(Problem(dim=1536), Streams(0, [0]))
