"""A history is a value whose compact statistics say the same as all its rounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelist.actions.finite import FiniteActions
from duelist.core.arrays import GRADUAL
from duelist.core.errors import InvalidInputError, SavedStateError
from duelist.history.duels import Duels, duels_between
from duelist.history.history import History
from duelist.history.log import ContrastCounts
from duelist.kernels.history import RoundOfDuels
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Gaussian
from tests.support.builders import history_of, learn_round, random_rounds
from tests.support.oracles import Floats, Round, full_potential

ETA, MU = 0.7, 0.3


def potentials(history: History, theta: Floats) -> Floats:
    """-log p_1 and -log p_2 of every lane at theta (dim,), from the compact statistics: (lanes, 2)."""
    statistics = history.statistics
    potential = LinearPotential.of(Gaussian(), statistics, eta=np.full(history.lanes, ETA), mu=np.full(history.lanes, MU))
    return potential.value(np.tile(theta, (history.lanes, 2, 1)))


def expected(lanes: list[list[Round]], theta: Floats) -> Floats:
    return np.array([[full_potential(theta, rounds, draw=j, eta=ETA, mu=MU) for j in (1, 2)] for rounds in lanes])


def assert_same_potential(history: History, lanes: list[list[Round]]) -> None:
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 5.0):
        theta = scale * rng.normal(size=history.dim)
        np.testing.assert_allclose(potentials(history, theta), expected(lanes, theta), rtol=1e-9, atol=1e-9)


def ragged_lanes(seed: int, *, lanes: int, rounds: int, n_sets: int, dim: int) -> list[list[Round]]:
    """Runs that offer the same sequence of set numbers, each lane with its own arms, with ties; sets differ in their size."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, size=n_sets)
    order = rng.integers(n_sets, size=rounds)
    played = []
    for _ in range(lanes):
        sets = [rng.normal(size=(size, dim)) for size in sizes]
        played.append([replace(random_rounds(rng, 1, [sets[int(s)]])[0], outcome=int(rng.integers(-1, 2))) for s in order])
    return played


@pytest.mark.slow
@given(
    seed=st.integers(0, 999),
    lanes=st.integers(1, 3),
    rounds=st.integers(1, 60),
    n_sets=st.integers(1, 60),
    dim=st.integers(1, 5),
)
def test_compact_statistics_give_the_potential_of_the_full_history(
    seed: int, lanes: int, rounds: int, n_sets: int, dim: int
) -> None:
    runs = ragged_lanes(seed, lanes=lanes, rounds=rounds, n_sets=n_sets, dim=dim)
    assert_same_potential(history_of(runs), runs)


def test_repeated_arms_stay_compact_and_fresh_arms_get_a_row_each() -> None:
    rng = np.random.default_rng(0)
    few = [rng.normal(size=(4, 2))]
    repeated = history_of([random_rounds(rng, 500, few)])
    assert repeated.statistics.n_rows[0] <= 4 * 5 // 2
    assert repeated.statistics.repeats.tolist() == [500.0]
    fresh = history_of([[Round(rng.normal(size=(4, 2)), 0, 1, 1) for _ in range(50)]])
    assert fresh.statistics.n_rows[0] == 50
    assert fresh.statistics.repeats.tolist() == [1.0] * 50


def test_counts_of_a_pair_do_not_depend_on_the_order_it_was_shown_in() -> None:
    arms = np.array([[1.0, 0.0], [0.0, 1.0]])
    history = history_of([[Round(arms, 0, 1, 1), Round(arms, 1, 0, 1), Round(arms, 1, 0, -1)]])
    statistics = history.statistics
    assert statistics.n_rows.tolist() == [1]
    assert statistics.contrasts[0, :, 0].tolist() == [1.0, -1.0]
    assert (statistics.totals[0, 0], statistics.losses[0, 0]) == (3.0, 1.0)
    np.testing.assert_array_equal(statistics.adversary[0], [[2.0, 1.0], [1.0, 2.0]])


def test_a_tie_is_one_showing_and_half_a_loss_in_either_order() -> None:
    arms = np.array([[1.0, 0.0], [0.0, 1.0]])
    for first, second in ((0, 1), (1, 0)):
        statistics = history_of([[Round(arms, 0, 1, 1), Round(arms, first, second, 0)]]).statistics
        assert (statistics.n_rows[0], statistics.totals[0, 0], statistics.losses[0, 0]) == (1, 2.0, 0.5)
        assert statistics.newest is not None
        assert (statistics.newest.row.tolist(), statistics.newest.lost.tolist()) == ([0], [0.5])


@pytest.mark.slow
def test_thousands_of_distinct_pairs_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    arms = rng.normal(size=(100, 3))
    pairs = [(i, j) for i in range(100) for j in range(i)]
    rng.shuffle(pairs)
    history = History.start(lanes=1, dim=3)
    actions = FiniteActions(arms)
    for i, j in pairs + pairs[::-1]:
        history = history.append(actions, duels_between(actions, np.array([i]), np.array([j])), np.array([1]))
    statistics = history.statistics
    n = len(pairs)
    assert statistics.n_rows.tolist() == [n]
    assert statistics.totals[0, :n].tolist() == [2.0] * n
    assert statistics.losses[0, :n].tolist() == [2.0] * n  # the row keeps (lower) - (higher), and the higher row always won
    np.testing.assert_array_equal(statistics.contrasts[0, :, :n].T, [arms[j] - arms[i] for i, j in pairs])


def test_rows_of_pairs_are_found_again_while_the_table_grows_a_little_at_a_time() -> None:
    rng, known = np.random.default_rng(0), dict[tuple[int, int, int], int]()
    counts, adversary, found = ContrastCounts(1, 1, 1), np.zeros((1, 2, 1)), np.zeros(1, dtype=np.int32)
    once, bottom, win = np.ones(1), np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    for slot in range(8 * GRADUAL + 200):
        # A new pair, and at every place of the growth one that is known.
        for one in (slot, int(rng.integers(slot + 1))):
            low, high = one % 7, one % 7 + one % 3
            rows = np.array([low]), np.array([high])
            counts.count(RoundOfDuels(one, *rows, win, once, bottom, np.full((1, 2, 1), float(one))), adversary, found)
            assert found[0] == known.setdefault((one, low, high), len(known))
    assert counts.counted.n_rows.tolist() == [len(known)]
    assert counts.counted.totals[0, : len(known)].sum() == 2 * len(known)


@pytest.mark.slow
def test_a_set_that_returns_is_recognised_unless_thousands_came_between_and_the_potential_is_exact_either_way() -> None:
    rng = np.random.default_rng(1)
    early = rng.normal(size=(3, 2))
    rounds = [Round(early, 0, 1, 1), Round(early, 0, 1, -1)]
    rounds += [Round(rng.normal(size=(2, 2)), 0, 1, 1) for _ in range(4200)]
    rounds += [Round(early, 0, 1, 1)]
    history = history_of([rounds])
    assert history.statistics.n_rows[0] == 4202
    assert_same_potential(history, [rounds])


def test_two_futures_of_one_history_do_not_see_each_other() -> None:
    runs = ragged_lanes(5, lanes=2, rounds=40, n_sets=6, dim=3)
    past = history_of([run[:20] for run in runs])
    left, right = past, past
    for t in range(20, 30):
        left = learn_round(left, [run[t] for run in runs])
    for t in range(30, 40):
        right = learn_round(right, [run[t] for run in runs])
    left = learn_round(left, [run[30] for run in runs])
    assert_same_potential(past, [run[:20] for run in runs])
    assert_same_potential(left, [run[:31] for run in runs])
    assert_same_potential(right, [run[:20] + run[30:] for run in runs])
    assert (past.rounds, left.rounds, right.rounds) == (20, 31, 30)


def test_an_old_history_that_keeps_no_sets_can_be_continued_too() -> None:
    runs = ragged_lanes(6, lanes=2, rounds=30, n_sets=3, dim=2)
    past = history_of([run[:15] for run in runs], keep_sets=False)
    newest = past
    for t in range(15, 30):
        newest = learn_round(newest, [run[t] for run in runs])
    branch = learn_round(past, [run[20] for run in runs])
    straight = history_of([[*run[:15], run[20]] for run in runs], keep_sets=False)
    for name in ("contrasts", "totals", "losses", "n_rows"):
        np.testing.assert_array_equal(getattr(branch.statistics, name), getattr(straight.statistics, name))


def test_first_second_and_outcomes_read_back_every_round() -> None:
    runs = ragged_lanes(7, lanes=2, rounds=100, n_sets=4, dim=2)
    history = history_of(runs)
    past = history_of([run[:10] for run in runs])
    assert history.first.tolist() == [[run[t].first for run in runs] for t in range(100)]
    assert history.second.tolist() == [[run[t].second for run in runs] for t in range(100)]
    assert history.outcomes.tolist() == [[run[t].outcome for run in runs] for t in range(100)]
    assert past.first.shape == (10, 2)


@pytest.mark.parametrize("keep_sets", [True, False])
@pytest.mark.parametrize("rounds", [0, 1, 50])
def test_arrays_rebuild_the_history_bit_for_bit_and_it_goes_on_the_same(keep_sets: bool, rounds: int) -> None:
    runs = ragged_lanes(8, lanes=2, rounds=80, n_sets=5, dim=3)
    history = History.start(lanes=2, dim=3, keep_sets=keep_sets)
    for t in range(rounds):
        history = learn_round(history, [run[t] for run in runs])
    rebuilt = History.from_arrays(history.to_arrays())
    for t in range(rounds, 80):
        assert rebuilt.rounds == history.rounds == t
        assert_equal_statistics(rebuilt, history, adversary=keep_sets)
        history = learn_round(history, [run[t] for run in runs])
        rebuilt = learn_round(rebuilt, [run[t] for run in runs])
    assert_equal_statistics(rebuilt, history, adversary=keep_sets)
    if keep_sets:
        assert_same_potential(rebuilt, runs)


def assert_equal_statistics(left: History, right: History, *, adversary: bool) -> None:
    """Equal in every used entry; adversaries matter only where the sets are kept."""
    one, other = left.statistics, right.statistics
    np.testing.assert_array_equal(one.n_rows, other.n_rows)
    most, n_sets = int(one.n_rows.max()), len(one.repeats)
    np.testing.assert_array_equal(one.contrasts[:, :, :most], other.contrasts[:, :, :most])
    np.testing.assert_array_equal(one.totals[:, :most], other.totals[:, :most])
    np.testing.assert_array_equal(one.losses[:, :most], other.losses[:, :most])
    np.testing.assert_array_equal(one.repeats, other.repeats)
    np.testing.assert_array_equal(one.sets[:, :n_sets], other.sets[:, :n_sets])
    if adversary:
        np.testing.assert_array_equal(one.adversary, other.adversary)


def test_arrays_of_an_old_history_hold_its_own_rounds_only() -> None:
    runs = ragged_lanes(9, lanes=1, rounds=30, n_sets=4, dim=2)
    past = history_of([runs[0][:12]])
    newest = past
    for played in runs[0][12:]:
        newest = learn_round(newest, [played])
    assert newest.rounds == 30
    assert_same_potential(History.from_arrays(past.to_arrays()), [runs[0][:12]])


def test_saved_arrays_do_not_change_when_the_history_grows() -> None:
    runs = ragged_lanes(10, lanes=1, rounds=60, n_sets=4, dim=2)
    history = history_of([runs[0][:20]])
    arrays = history.to_arrays()
    before = {name: array.copy() for name, array in arrays.items()}
    for played in runs[0][20:]:
        history = learn_round(history, [played])
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


def test_arrays_that_lack_a_column_are_refused() -> None:
    arrays: dict[str, npt.NDArray[Any]] = history_of(ragged_lanes(1, lanes=1, rounds=3, n_sets=1, dim=2)).to_arrays()
    del arrays["outcomes"]
    with pytest.raises(SavedStateError, match="outcomes"):
        History.from_arrays(arrays)


def one_duel(arms: Floats) -> tuple[FiniteActions, Duels]:
    actions = FiniteActions(arms)
    return actions, duels_between(actions, np.zeros(actions.lanes, dtype=np.int64), np.ones(actions.lanes, dtype=np.int64))


@pytest.mark.parametrize("outcomes", [[0.5], [2], [1, 1], [], [np.nan]])
def test_an_unknown_winner_is_refused_and_changes_nothing(outcomes: list[float]) -> None:
    history = History.start(lanes=1, dim=2, keep_sets=True)
    actions, duels = one_duel(np.eye(2))
    with pytest.raises(InvalidInputError, match="outcomes"):
        history.append(actions, duels, np.array(outcomes))
    assert history.rounds == 0
    assert history.statistics.repeats.size == 0


@pytest.mark.parametrize("arms", [np.ones((2, 3)), np.ones((2, 2, 2))])
def test_arms_of_another_shape_are_refused(arms: Floats) -> None:
    actions, duels = one_duel(arms)
    with pytest.raises(InvalidInputError, match=r"1 lane\(s\) of dimension 2"):
        History.start(lanes=1, dim=2).append(actions, duels, np.ones(actions.lanes, dtype=np.int64))


@pytest.mark.parametrize(
    "duels",
    [
        Duels(np.array([0, 0]), np.array([1, 1]), np.zeros((1, 2, 2))),
        Duels(np.array([0]), np.array([1, 1]), np.zeros((1, 2, 2))),
        Duels(np.array([0]), np.array([1]), np.zeros((1, 2, 3))),
        Duels(np.array([0]), np.array([1]), np.zeros((2, 2))),
    ],
)
def test_duels_of_another_shape_are_refused_and_change_nothing(duels: Duels) -> None:
    history = History.start(lanes=1, dim=2, keep_sets=True)
    with pytest.raises(InvalidInputError, match="duels"):
        history.append(FiniteActions(np.eye(2)), duels, np.array([1]))
    assert history.rounds == 0
    assert history.statistics.repeats.size == 0
    assert not history.statistics.adversary.any()
