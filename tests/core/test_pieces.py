"""Arrays that only grow are written once, in pieces, and grow without one long copy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.arrays import GradualGrowth
from duelist.core.errors import SavedStateError
from duelist.core.serialize import Pieces, from_bytes, pack_piece_in_steps, run_through, to_bytes
from duelist.history.duels import Duels
from duelist.history.history import History
from duelist.journal.memory import MemoryJournal
from duelist.journal.sqlite import SQLiteJournal
from duelist.live.agent import Agent
from duelist.policies.algorithms.confidence.colstim import CoLSTIM
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.typing import FloatArray
from tests.support.agents import bytes_of


@pytest.mark.parametrize("axis", [0, 1])
def test_an_array_that_grows_gradually_holds_what_was_appended(axis: int) -> None:
    """The oracle is the list of everything that was appended."""
    growth, rng = GradualGrowth(axis), np.random.default_rng(0)
    columns = rng.standard_normal((20_000, 3))
    array = np.zeros((0, 3) if axis == 0 else (3, 0))
    lengths = set()
    for used, column in enumerate(columns):
        array = growth.make_room(array, used, 16)
        lengths.add(array.shape[axis])
        if axis == 0:
            array[used] = column
        else:
            array[:, used] = column
    found = array[: len(columns)] if axis == 0 else array[:, : len(columns)].T
    np.testing.assert_array_equal(found, columns)
    assert len(lengths) == 12, "it doubles: 16, 32, ..., 32768"


def test_when_a_long_array_is_full_hardly_anything_is_left_to_move() -> None:
    growth = GradualGrowth(0)
    array = np.zeros((0, 2))
    for used in range(2**15):
        array = growth.make_room(array, used, 16)
        array[used] = used
    assert growth._moved[0] > 2**15 - 64


@pytest.mark.parametrize(("shape", "axis"), [((0, 3), 0), ((1, 50, 0), 2)])
def test_no_append_moves_more_than_a_few_elements_nor_takes_more_than_a_few_pages(
    shape: tuple[int, ...], axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    growth, array, moved = GradualGrowth(axis), np.zeros(shape), [0]
    move = GradualGrowth._move

    def count(self: GradualGrowth, array: FloatArray, turn: int, stop: int) -> None:
        rows = 3 if axis == 0 else len(range(turn, 50, 16))
        moved[0] += rows * (stop - self._moved[turn])
        move(self, array, turn, stop)

    monkeypatch.setattr(GradualGrowth, "_move", count)
    most = 0
    for used in range(2**13 + 1):
        moved[0] = 0
        array = growth.make_room(array, used, 16)
        array[used if axis == 0 else (..., used)] = used
        if used > 1024:
            most = max(most, moved[0])
    assert most <= 2 * 17 * array.size // array.shape[axis]
    # Of 50 rows each has its next page before the first element gets there.
    touched: list[int] = []
    monkeypatch.setattr(GradualGrowth, "_rows", lambda _, array: Touched(array.reshape(-1, array.shape[-1]), touched))
    for used in range(2**13 + 1, 2**13 + 600):
        before = len(touched)
        array = growth.make_room(array, used, 16)
        assert len(touched) - before <= 1
    assert axis == 0 or sorted(touched[:50]) == [*range(50)]


class Touched:
    """Rows that remember which of them were written to."""

    def __init__(self, rows: FloatArray, touched: list[int]) -> None:
        self.rows, self.shape, self.touched = rows, rows.shape, touched

    def __len__(self) -> int:
        return len(self.rows)

    def __setitem__(self, place: tuple[slice, int], value: float) -> None:
        self.touched.extend(range(len(self.rows))[place[0]])
        self.rows[place] = value


def test_an_element_that_changes_while_the_array_is_moved_is_moved_as_it_is() -> None:
    growth, array, expected = GradualGrowth(1), np.zeros((1, 0)), []
    rng = np.random.default_rng(1)
    for used in range(5000):
        array = growth.make_room(array, used, 16)
        array[0, used] = used
        expected.append(float(used))
        one = int(rng.integers(used + 1))
        array[0, one] = expected[one] = -float(one)
        growth.changed(array, one)
        if used == 1000:
            array, expected = 0.5 * array, [0.5 * number for number in expected]
            growth.changed_all()
    np.testing.assert_array_equal(array[0, :5000], expected)


def history_of(rounds: int, **settings: Any) -> History:
    rng = np.random.default_rng(5)
    history = History.start(lanes=1, dim=3, **settings)
    for t in range(rounds):
        actions = FiniteActions(rng.standard_normal((4, 3)))
        rows = rng.permutation(4)[:2]
        duels = Duels(rows[:1], rows[1:], actions.features[:, rows])
        history = history.append(actions, duels, np.array([1 - 2 * (t % 2)]))
        if t % 3 == 0:  # some pairs come back
            history = history.append(actions, duels, np.array([1]))
    return history


@pytest.mark.parametrize("settings", [{}, {"keep_sets": True, "max_sets": 64}, {"keep_sets": True}, {"discount": 0.99}])
def test_a_history_in_pieces_is_the_history_and_only_new_blocks_are_written(settings: dict[str, Any]) -> None:
    stored: dict[str, bytes] = {}
    written = []
    for rounds in (100, 600, 620, 900):
        history = history_of(rounds, **settings)
        pieces = Pieces("0/", stored.keys())
        data = to_bytes({"history": history}, pieces)
        assert not pieces.new.keys() & stored.keys()
        written.append(len(pieces.new))
        stored.update({name: run_through(pack_piece_in_steps(rows)) for name, rows in pieces.new.items()})
        again = from_bytes(data, stored.get)["history"]
        assert to_bytes(again) == to_bytes(history)
        assert to_bytes(again.append(*_one_more(3))) == to_bytes(history.append(*_one_more(3)))
    assert written[0] == written[2] == 0, "no block is full yet, and none has become so"
    assert written[1] > 0
    assert written[3] > 0
    name = next(iter(stored))
    with pytest.raises(SavedStateError, match="not there"):
        from_bytes(data, {**stored, name: b"\0" + stored[name][1:]}.get)
    with pytest.raises(SavedStateError, match="not there"):
        from_bytes(data)


def _one_more(dim: int) -> tuple[Any, Duels, Any]:
    actions = FiniteActions(np.arange(2.0 * dim).reshape(2, dim))
    return actions, Duels(np.array([0]), np.array([1]), actions.features), np.array([-1])


@pytest.mark.slow
@pytest.mark.parametrize("policy", [FGTS(exact_rounds=64), CoLSTIM()], ids=repr)
def test_restarts_from_snapshots_in_pieces_go_on_bit_for_bit(policy: Any, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"dim": 4, "seed": 0, "snapshot_every": 100}
    reference = Agent(policy, **settings)

    def play(agent: Agent, rounds: range) -> None:
        for t in rounds:
            agent.learn(agent.choose(np.random.default_rng(t).standard_normal((5, 4))), "first", voter=f"v{t % 3}")

    play(reference, range(700))
    reference.forget(voter="v1")
    play(reference, range(700, 1400))
    with SQLiteJournal(tmp_path / "votes.db") as journal:
        play(Agent(policy, **settings, journal=journal), range(350))
    with SQLiteJournal(tmp_path / "votes.db") as journal:
        agent = Agent(policy, **settings, journal=journal)
        play(agent, range(350, 700))
        agent.forget(voter="v1")  # from here on the blocks are others
        play(agent, range(700, 1000))
    with SQLiteJournal(tmp_path / "votes.db") as journal:
        play(Agent(policy, **settings, journal=journal), range(1000, 1400))
    with SQLiteJournal(tmp_path / "votes.db") as journal:
        agent = Agent(policy, **settings, journal=journal)
        assert agent._replica is not None
        assert agent._replica.counters.replayed < 200
        assert agent._replica._pieces, "the snapshot was in pieces, or this test shows nothing"
        assert bytes_of(agent, tmp_path) == bytes_of(reference, tmp_path)


def test_a_piece_that_is_gone_leads_to_a_replay_of_everything(tmp_path: Path) -> None:
    with MemoryJournal() as journal:
        agent = Agent(CoLSTIM(), dim=2, seed=0, journal=journal, snapshot_every=50)
        for t in range(300):
            agent.learn(agent.choose(np.random.default_rng(t).standard_normal((3, 2))), "first")
        journal._store._pieces.clear()  # type: ignore[attr-defined]
        again = Agent(CoLSTIM(), dim=2, seed=0, journal=journal)
        assert bytes_of(again, tmp_path) == bytes_of(agent, tmp_path)


def test_the_memory_of_the_array_before_is_given_back_in_parts_once_nobody_has_a_view_of_it() -> None:
    growth, array = GradualGrowth(1), np.zeros((128, 0))
    views = []
    for used in range(3 * 4096):
        longer = growth.make_room(array, used, 512)
        if longer is not array:
            views.append(array[:, :])
        array = longer
        array[:, used] = used
        if used == 2 * 4096 + 1000:
            # What grew from 4,096 to 8,192 and is read still is as it was.
            assert growth._left is not None
            np.testing.assert_array_equal(views[-1][5], np.arange(8192.0))
            views.clear()
            before = len(growth._left)
        if used == 2 * 4096 + 1001:
            assert growth._left is not None
            assert before - 2**21 < len(growth._left) < before
    assert growth._left is None
    np.testing.assert_array_equal(array[3, : 3 * 4096], np.arange(3 * 4096.0))
