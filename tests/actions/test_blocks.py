"""One context in a block of its own for every arm: the same digits as the rows with all their zeros, in fewer bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.blocks import BlockActions
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.serialize import from_bytes, to_arrays, to_bytes
from duelist.history.duels import duels_between
from duelist.history.history import History
from duelist.journal.sqlite import SQLiteJournal
from duelist.live.pending import context_of_blocks, pack_actions, unpack_actions

CONTEXT = np.array([[0.5, -1.5, 0.0], [2.0, 0.25, 1.0]])


def padded(context: Any, n_arms: int) -> FiniteActions:
    """The oracle: rows written one number at a time."""
    rows = np.zeros((len(context), n_arms, n_arms * len(context[0])))
    for lane, numbers in enumerate(context):
        for arm in range(n_arms):
            for i, number in enumerate(numbers):
                rows[lane, arm, arm * len(numbers) + i] = number
    return FiniteActions(rows)


def test_blocks_answer_what_the_rows_with_zeros_answer() -> None:
    blocks, rows = BlockActions(CONTEXT, 4), padded(CONTEXT, 4)
    theta = np.random.default_rng(0).standard_normal((2, 5, 12))
    found, expected = blocks.best(theta), rows.best(theta)
    np.testing.assert_array_equal(found.row, expected.row)
    np.testing.assert_array_equal(found.features, expected.features)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-14)
    np.testing.assert_allclose(blocks.utilities(theta[:, 0]), rows.utilities(theta[:, 0]), rtol=1e-14)
    np.testing.assert_array_equal(blocks.fingerprints, rows.fingerprints)
    assert not {"features", "columns"} & {*blocks.__dict__}, "nothing so far needed the zeros"
    np.testing.assert_array_equal(blocks.features, rows.features)
    np.testing.assert_array_equal(blocks.columns, rows.columns)
    other = BlockActions(CONTEXT, 4)
    assert blocks.digest == other.digest != BlockActions(CONTEXT + 1.0, 4).digest


def test_blocks_come_back_from_bytes() -> None:
    again = from_bytes(to_bytes(BlockActions(CONTEXT, 4)))
    assert type(again) is BlockActions
    assert again.n_arms == 4
    np.testing.assert_array_equal(again.context, CONTEXT)


def test_bad_contexts_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="n_arms"):
        BlockActions(CONTEXT, 1)
    with pytest.raises(InvalidInputError, match="context"):
        BlockActions([np.nan], 3)
    with pytest.raises(InvalidInputError, match="theta must be"):
        BlockActions(CONTEXT, 2).best(np.zeros((2, 1, 7)))


@pytest.mark.parametrize("policy", [duelist.FGTS(), duelist.CoLSTIM(), duelist.Foresight()], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("journal", [False, True])
def test_an_agent_learns_the_same_digits_from_blocks(policy: Any, journal: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    journals = [SQLiteJournal(tmp_path / name) if journal else None for name in ("blocks.db", "rows.db")]
    agents = [duelist.Agent(policy, dim=12, seed=0, journal=one) for one in journals]
    for t in range(60):
        context = rng.standard_normal(3)
        one = agents[0].choose(duelist.features.blocks(context, 4))
        other = agents[1].choose(duelist.features.one_block_per_arm(context, 4))
        assert one.rows == other.rows
        for agent, duel in zip(agents, (one, other), strict=True):
            agent.learn(duel, winner=("first", "second", "tie")[t % 3])
    shortlist = duelist.features.blocks(rng.standard_normal(3), 4)
    for ask in ("predict", "rank"):
        for a, b in zip(
            vars(getattr(agents[0], ask)(shortlist)).items(),
            vars(getattr(agents[1], ask)(shortlist.features[0])).items(),
            strict=True,
        ):
            np.testing.assert_array_equal(a[1], b[1], a[0])
    assert agents[0].best(shortlist) == agents[1].best(shortlist.features[0])
    states = [to_arrays(agent._state.lane.state) for agent in agents]
    for name in states[0].keys() - {"structure"}:
        if not name.endswith("digests"):
            np.testing.assert_array_equal(states[0][name], states[1][name], name)
    if journal:
        again = duelist.Agent(policy, dim=12, seed=0, journal=journals[0])
        assert again.rounds == 60
        for one_journal in journals:
            assert one_journal is not None
            one_journal.close()


def test_forgetting_plays_blocks_again_as_it_does_rows() -> None:
    rng = np.random.default_rng(4)
    agents = [duelist.Agent(duelist.FGTS(), dim=144, seed=0) for _ in range(2)]
    for context in rng.standard_normal((40, 12)):
        agents[0].learn(agents[0].choose(duelist.features.blocks(context, 12)), winner="first")
        agents[1].learn(agents[1].choose(duelist.features.one_block_per_arm(context, 12)), winner="first")
    before = to_arrays(agents[0]._state.lane.state)["value/chains/position"]
    assert [agent.forget(20) for agent in agents] == [1, 1]
    states = [to_arrays(agent._state.lane.state) for agent in agents]
    assert (states[0]["value/chains/position"] != before).any()
    for name in states[0].keys() - {"structure", "value/history/digests"}:
        np.testing.assert_array_equal(states[0][name], states[1][name], name)


def test_a_journal_holds_the_context_once(tmp_path: Path) -> None:
    sizes = []
    for name, make in (("blocks", duelist.features.blocks), ("rows", duelist.features.one_block_per_arm)):
        with SQLiteJournal(tmp_path / f"{name}.db") as journal:
            agent = duelist.Agent(duelist.CoLSTIM(), dim=108, seed=0, journal=journal)
            for context in np.random.default_rng(0).standard_normal((20, 9)):
                agent.learn(agent.choose(make(context, 12)), winner="first")
            sizes.append(sum(len(event.blob) for event in journal.read()) / 20)
    assert sizes[0] == 9 * 8 + 9, "a context of 9 numbers, and what form it has"
    assert sizes[1] > 4 * sizes[0]


@pytest.mark.parametrize(
    "features",
    [
        padded(CONTEXT[:1], 12).features[0],
        np.where(padded(CONTEXT[:1], 12).features[0] == 0.0, -0.0, padded(CONTEXT[:1], 12).features[0]),
        padded(CONTEXT[:1], 12).features[0] + np.eye(12, 36, 5),
        padded(CONTEXT[:1], 12).features[0][:, :35],
        padded(CONTEXT[:1], 12).features[0] * np.arange(1, 13)[:, None],
        np.random.default_rng(0).standard_normal((12, 36)),
    ],
    ids=["blocks", "negative zeros", "one more number", "not a multiple", "other contexts", "dense"],
)
def test_every_set_comes_back_from_few_bytes_bit_for_bit(features: Any) -> None:
    actions = FiniteActions(features)
    packed = pack_actions(actions)
    assert packed is not None
    again = unpack_actions(packed)
    assert type(again) is FiniteActions
    np.testing.assert_array_equal(again.features.view(np.uint64), actions.features.view(np.uint64))
    assert again.digest == actions.digest
    assert (context_of_blocks(features) is not None) == (len(packed) == 9 + 3 * 8)


def test_a_history_of_blocks_keeps_contrasts_of_two_blocks() -> None:
    history = History.start(lanes=2, dim=12, keep_sets=True, max_sets=8)
    rng = np.random.default_rng(1)
    for _ in range(30):
        blocks = BlockActions(rng.standard_normal((2, 3)), 4)
        first, second = rng.integers(4, size=(2, 2))
        history = history.append(blocks, duels_between(blocks, first, second), np.array([1, -1]))
    contrasts = history.statistics.contrasts
    assert ((contrasts != 0.0).sum(axis=1) <= 6).all()
