"""A sample of action sets estimates the Feel-Good maximum of all of them, and a history with one is still a value."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.actions.ball import BallActions
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.history.duels import Duels, duels_between
from duelist.history.history import History
from duelist.history.set_sample import MOST_ARMS, SetSample, chosen_from
from duelist.history.statistics import Statistics
from tests.support.oracles import Floats

LANES, DIM, ARMS = 2, 3, 5


def test_every_block_has_one_chosen_round_inside_it_whatever_its_length() -> None:
    for stride in (1, 2, 8, 64):
        for block in range(200):
            assert block * stride <= chosen_from(block, stride) < (block + 1) * stride


def test_the_choice_of_a_long_block_is_that_of_one_of_its_halves() -> None:
    for block in range(100):
        assert chosen_from(block, 16) in {chosen_from(2 * block, 8), chosen_from(2 * block + 1, 8)}


def test_choices_are_not_in_step_with_contexts_that_alternate() -> None:
    """Of 4096 blocks of 8, half should choose an even round; four standard deviations are 128."""
    even = sum(chosen_from(block, 8) % 2 == 0 for block in range(4096))
    assert abs(even - 2048) < 128


def rounds_of(seed: int, n: int) -> tuple[Floats, Floats]:
    """Arms (n, lanes, dim, n_arms) and middles (n, lanes, dim)."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, LANES, DIM, ARMS)), rng.standard_normal((n, LANES, DIM))


@pytest.mark.parametrize("n", [1, 7, 8, 9, 100, 1000])
def test_a_sample_made_at_once_is_the_one_that_grew_round_by_round(n: int) -> None:
    arms, middles = rounds_of(0, n)
    grown = SetSample(LANES, DIM, 8)
    for columns, middle in zip(arms, middles, strict=True):
        grown.offer(columns, middle)
    at_once = SetSample.of(middles, lambda i: arms[i], 8)
    assert grown.rounds == at_once.rounds
    assert (grown.stride, grown.offered) == (at_once.stride, at_once.offered)
    np.testing.assert_array_equal(grown.sets[:, : grown.count], at_once.sets[:, : at_once.count])
    np.testing.assert_allclose(grown.total, at_once.total)
    assert grown.count >= min(n, 4) - 1


def test_the_estimate_is_exact_in_its_control_variate_and_near_in_the_rest() -> None:
    arms, middles = rounds_of(1, 4000)
    sample = SetSample.of(middles, lambda i: arms[i], 512)
    theta = np.array([0.3, -0.5, 0.8])
    truth = (np.einsum("d,nldk->nlk", theta, arms).max(axis=2)).sum(axis=0)
    utilities = np.einsum("d,lsdk->lsk", theta, sample.sets[:, : sample.count])
    estimate = utilities.max(axis=2) @ sample.weights() + sample.correction() @ theta
    # The rest has an sd of about 1.2 a round: four standard errors of its sum from 500 sets are 4 * 4000 * 1.2 / sqrt(500).
    assert np.abs(estimate - truth).max() < 860
    plain = middles.sum(axis=0) @ theta
    assert np.abs(plain - truth).min() > 2000


def test_of_a_very_large_set_the_estimate_lies_between_the_middle_and_the_maximum() -> None:
    rng = np.random.default_rng(5)
    arms = rng.standard_normal((3, LANES, DIM, 4 * MOST_ARMS + 1))
    middles = 0.5 * (arms[..., 7] + arms[..., 9])
    sample = SetSample.of(middles, lambda i: arms[i], 8)
    assert sample.sets.shape[3] <= MOST_ARMS
    for theta in rng.standard_normal((50, DIM)):
        estimate = np.einsum("d,lsdk->lsk", theta, sample.sets[:, : sample.count]).max(axis=2)
        truth = np.einsum("d,sldk->lsk", theta, arms).max(axis=2)
        middle = np.einsum("d,sld->ls", theta, middles)
        assert (estimate <= truth + 1e-12).all()
        assert (estimate >= middle - 1e-12).all()
        # Of a thousand normal arms a quarter is kept: the maximum is missed by half a standard deviation on average.
        assert (truth - estimate).mean() < 1.5 * np.linalg.norm(theta)


def test_one_large_set_is_kept_whole_and_two_are_sampled() -> None:
    rng = np.random.default_rng(6)
    sets = [FiniteActions(rng.standard_normal((LANES, 30_000, DIM))) for _ in range(2)]
    row, won = np.zeros(LANES, dtype=np.int64), np.ones(LANES, dtype=np.int64)
    one = History.start(lanes=LANES, dim=DIM, keep_sets=True, max_sets=64)
    for _ in range(5):
        one = one.append(sets[0], duels_between(sets[0], row, row + 1), won)
    assert one.statistics.sets.shape[3] == 30_000
    assert one.statistics.repeats.tolist() == [5.0]
    both = one.append(sets[1], duels_between(sets[1], row, row + 1), won).statistics
    assert both.sets.shape[3] <= MOST_ARMS
    assert both.repeats.sum() == pytest.approx(6.0)


def played(history: History, n: int, *, fresh: int, seed: int = 3, ball_every: int = 0) -> History:
    """A history with n more rounds, offering one of `fresh` different sets at random."""
    rng = np.random.default_rng(seed)
    sets = [FiniteActions(rng.standard_normal((LANES, ARMS, DIM))) for _ in range(fresh)]
    for t in range(n):
        outcomes = rng.choice([-1, 1], size=LANES)
        first, second = rng.integers(ARMS, size=(2, LANES))
        if ball_every and t % ball_every == 0:
            features = rng.standard_normal((LANES, 2, DIM))
            nowhere = np.full(LANES, -1)
            history = history.append(BallActions(LANES, DIM, 2.0), Duels(nowhere, nowhere, features), outcomes)
        else:
            actions = sets[t % fresh]
            history = history.append(actions, duels_between(actions, first, second), outcomes)
    return history


def test_a_history_within_its_limit_is_the_same_as_one_without() -> None:
    limited = played(History.start(lanes=LANES, dim=DIM, keep_sets=True, max_sets=16), 100, fresh=16)
    free = played(History.start(lanes=LANES, dim=DIM, keep_sets=True), 100, fresh=16)
    for one, other in zip(limited.statistics, free.statistics, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("ball_every", [0, 7])
def test_beyond_its_limit_the_likelihood_stays_exact_and_the_tilt_is_an_estimate_of_bounded_size(ball_every: int) -> None:
    limited = played(History.start(lanes=LANES, dim=DIM, keep_sets=True, max_sets=64), 600, fresh=600, ball_every=ball_every)
    free = played(History.start(lanes=LANES, dim=DIM, keep_sets=True), 600, fresh=600, ball_every=ball_every)
    few, all_ = limited.statistics, free.statistics
    for name in ("contrasts", "totals", "losses", "n_rows", "ball_reach"):
        np.testing.assert_array_equal(getattr(few, name), getattr(all_, name))
    assert len(few.repeats) <= 16
    assert few.repeats.sum() == pytest.approx(all_.repeats.sum())
    rng = np.random.default_rng(0)
    for theta in rng.standard_normal((5, DIM)):
        # The rest has an sd of about 1.3 |theta| a round: four standard errors from at least 8 sets.
        np.testing.assert_allclose(tilt(few, theta), tilt(all_, theta), atol=4 * 600 * 1.3 * np.linalg.norm(theta) / np.sqrt(8))


@pytest.mark.parametrize("ball_every", [0, 7])
def test_an_older_history_beyond_the_limit_has_its_own_rounds_again(ball_every: int) -> None:
    start = History.start(lanes=LANES, dim=DIM, keep_sets=True, max_sets=16)
    older = played(start, 100, fresh=100, ball_every=ball_every)
    before = older.statistics
    likelihood = [part.copy() for part in in_use(before)[:4]]
    newer = older
    for _ in range(3):
        newer = played(newer, 20, fresh=20, seed=9)
    after = older.statistics
    for one, other in zip(likelihood, in_use(after)[:4], strict=True):
        np.testing.assert_array_equal(one, other)
    assert after.repeats.sum() == pytest.approx(before.repeats.sum())
    # The adversary sums themselves, without the sample's correction, are those of the rounds.
    free = played(History.start(lanes=LANES, dim=DIM, keep_sets=True), 100, fresh=100, ball_every=ball_every)
    np.testing.assert_allclose(older._current().adversary, free.statistics.adversary, atol=1e-9)


def tilt(statistics: Statistics, theta: Floats) -> Floats:
    """(lanes, 2) what both draws gain: the sum of the maxima less the adversaries."""
    best = np.einsum("d,lsdk->lsk", theta, statistics.sets[:, : len(statistics.repeats)]).max(axis=2)
    return np.asarray((best @ statistics.repeats)[:, None] - statistics.adversary @ theta)


def in_use(statistics: Statistics) -> list[Floats]:
    """The parts that mean something: arrays may have room for more, and what is there differs."""
    rows, sets = int(statistics.n_rows.max()), len(statistics.repeats)
    counts = statistics.totals[:, :rows], statistics.losses[:, :rows], statistics.n_rows.astype(np.float64)
    return [
        statistics.contrasts[:, :, :rows],
        *counts,
        statistics.sets[:, :sets],
        statistics.repeats,
        statistics.adversary,
        np.array([statistics.ball_reach]),
    ]


@pytest.mark.parametrize("rounds", [10, 100])
def test_a_history_with_a_sample_is_saved_and_goes_on_bit_for_bit(rounds: int) -> None:
    history = played(History.start(lanes=LANES, dim=DIM, keep_sets=True, max_sets=16), rounds, fresh=rounds, ball_every=9)
    read = History.from_arrays(history.to_arrays())
    for _ in range(2):
        for one, other in zip(in_use(history.statistics), in_use(read.statistics), strict=True):
            np.testing.assert_array_equal(one, other)
        history, read = played(history, 30, fresh=30, seed=5), played(read, 30, fresh=30, seed=5)


def test_a_limit_too_small_to_sample_from_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="max_sets"):
        History.start(lanes=1, dim=2, keep_sets=True, max_sets=7)
