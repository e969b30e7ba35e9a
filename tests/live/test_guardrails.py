"""Voters, guardrails and costs: what a choice keeps to, and that it goes on bit for bit after a restart."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import duelist
from duelist.actions.ball import BallActions
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.serialize import to_bytes
from duelist.journal.memory import MemoryJournal
from duelist.live import Agent, Guardrails, SlateAgent
from duelist.policies import ListwiseFGTS
from duelist.typing import FloatArray
from tests.support.agents import ARMS, bytes_of, pair_policies

POOL = np.random.default_rng(3).standard_normal((7, 4))
every_policy = pytest.mark.parametrize("policy", pair_policies(), ids=lambda policy: type(policy).__name__)


def content(features: FloatArray, *rows: int) -> frozenset[bytes]:
    return frozenset(features[row].tobytes() for row in rows)


def answer(agent: Agent, duel: Any, dice: random.Random) -> None:
    agent.learn(duel, winner=dice.choice(["first", "second", "tie"]))


def check_voters(policy: Any, seed: int, asks: int) -> None:
    """Nobody is shown a pair that was shown to them more often than another pair of the same set."""
    dice, counts = random.Random(seed), Counter[tuple[str, frozenset[bytes]]]()
    agent = Agent(policy, dim=4, seed=seed)
    for _ in range(asks):
        offered = POOL[dice.sample(range(7), dice.randint(2, 5))]
        voter = dice.choice(["ann", "bob"])
        duel = agent.choose(offered, voter=voter)
        shown = content(offered, duel.first, duel.second)
        pairs = [content(offered, *pair) for pair in combinations(range(len(offered)), 2)]
        assert shown in pairs
        assert counts[voter, shown] == min(counts[voter, pair] for pair in pairs)
        counts[voter, shown] += 1
        if dice.random() < 0.7:
            answer(agent, duel, dice)


@every_policy
def test_a_named_voter_is_shown_the_least_shown_pairs_first(policy: Any) -> None:
    check_voters(policy, 0, 60)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([duelist.Uniform(), duelist.CoLSTIM(), duelist.FGTS(same_arm="redraw")]))
def test_no_sequence_of_sets_shows_a_pair_twice(seed: int, policy: Any) -> None:
    check_voters(policy, seed, 40)


@pytest.mark.parametrize("policy", [duelist.FGTS(), duelist.CoLSTIM(), duelist.Uniform()], ids=["FGTS", "CoLSTIM", "Uniform"])
def test_the_first_arm_stays_and_the_policy_chooses_whom_it_meets(policy: Any) -> None:
    agent, seen, stood_in = Agent(policy, dim=4, seed=5), set[frozenset[int]](), 0
    for t in range(18):  # of 21 pairs
        lane = agent._state.lane

        def choose_from(rows: list[int]) -> tuple[int, int]:
            chosen, _ = policy.choose(lane.state, FiniteActions(POOL[rows]), lane.streams)  # noqa: B023 - called here
            return rows[int(chosen.first[0])], rows[int(chosen.second[0])]

        first, second = choose_from([*range(7)])
        partners = [row for row in range(7) if row != first and frozenset((first, row)) not in seen]
        if frozenset((first, second)) not in seen:
            expected = {first, second}
        elif partners:
            one, other = choose_from(sorted([first, *partners]))
            expected = {one, other} if first in (one, other) else {first, one}
            stood_in += 1
        else:
            expected = set()
        duel = agent.choose(POOL, voter="ann")
        assert not expected or {*duel.rows} == expected
        assert frozenset(duel.rows) not in seen
        seen.add(frozenset(duel.rows))
        agent.learn(duel, winner="first" if t % 3 else "second")
    assert stood_in >= 2


def test_a_pair_that_stands_in_has_a_note_of_its_own() -> None:
    """VACDB has an answer count by the width of its pair, in the layer that it explores: the note must be about this pair."""
    agent, weighed = Agent(duelist.VACDB(), dim=4, seed=1), 0
    for _ in range(15):
        state: Any = agent._state.lane.state
        duel = agent.choose(POOL[:6], voter="ann")
        shown: Any = agent._state.pending[duel.id].shown
        layer, weight = int(shown.note[0, 0]), float(shown.note[0, 1])
        width = float(np.linalg.norm(state.whitener[0, layer] @ (duel.features[0] - duel.features[1])))
        if weight > 0.0:
            assert weight == pytest.approx((2.0 ** -(layer + 1) / width) ** 2)
            weighed += 1
        agent.learn(duel, winner="first")
    assert weighed >= 10


@every_policy
def test_what_is_excluded_is_not_there_and_the_policy_goes_on_as_if_it_were(policy: Any) -> None:
    agent, free, dice = Agent(policy, dim=4, seed=2), Agent(policy, dim=4, seed=2), random.Random(0)
    for t in range(30):
        exclude = dice.sample(range(7), dice.randint(1, 5))
        rest = [row for row in range(7) if row not in exclude]
        lane = agent._state.lane
        expected, _ = policy.choose(lane.state, FiniteActions(POOL[rest]), lane.streams)
        duel = agent.choose(POOL, exclude=exclude)
        assert duel.rows == (rest[int(expected.first[0])], rest[int(expected.second[0])])
        same = free.choose(POOL)
        assert to_bytes(free._state.lane.state) == to_bytes(lane.state), t
        agent.skip(duel)
        free.skip(same)
        for one in (agent, free):  # both learn the same, on the same pair
            one.import_votes(POOL[:1], POOL[1:2], ["first"])


def check_shares(policy: Any, n_arms: int, rails: Guardrails, asks: int, seed: int = 0) -> None:
    agent, dice = Agent(policy, dim=4, seed=seed), random.Random(seed)
    agent.set_guardrails(rails)
    shown = np.zeros(n_arms)
    low, high = min(rails.min_share, 1 / n_arms), max(rails.max_share, 2 / n_arms)
    for asked in range(1, asks + 1):
        order = dice.sample(range(n_arms), n_arms)
        duel = agent.choose(POOL[order])
        rows = [order[duel.first], order[duel.second]]
        shown[rows] += 1
        assert (shown >= low * asked - 2).all()
        assert (shown <= high * asked + 2).all()
        if dice.random() < 0.9:  # the lower number wins: policies would love to show it
            agent.learn(duel, winner=duel.rows[int(rows[1] < rows[0])])


@every_policy
def test_shares_stay_within_their_bounds(policy: Any) -> None:
    check_shares(policy, 5, Guardrails(min_share=0.15, max_share=0.6), 120)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([duelist.Uniform(), duelist.CoLSTIM(), duelist.Foresight()]),
    st.integers(2, 7),
    st.floats(0.0, 1.0),
    st.floats(0.05, 1.0),
    st.integers(0, 2**32),
)
def test_shares_stay_within_any_bounds(policy: Any, n_arms: int, low: float, high: float, seed: int) -> None:
    check_shares(policy, n_arms, Guardrails(min_share=min(low, high), max_share=high), 60, seed)


def test_without_a_floor_the_policy_would_not_show_it() -> None:
    """The floor does something: the same votes without it leave the worst arm below its share."""
    shares = []
    for rails in (None, Guardrails(min_share=0.2)):
        agent = Agent(duelist.CoLSTIM(), dim=4, seed=0)
        agent.set_guardrails(rails)
        shown = np.zeros(5)
        for _ in range(200):
            duel = agent.choose(POOL[:5])
            shown[[*duel.rows]] += 1
            agent.learn(duel, winner=min(duel.rows))
        shares.append(shown.min() / 200)
    assert shares[0] < 0.1 < 0.19 <= shares[1]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([duelist.CoLSTIM(), duelist.FGTS(), duelist.VACDB()]))
def test_all_limits_together_never_show_what_is_excluded_or_a_pair_of_before(seed: int, policy: Any) -> None:
    """No voter gets a pair twice while another pair of rows that were neither excluded nor at their cap was there."""
    dice, counts = random.Random(seed), Counter[frozenset[int]]()
    offered, shown = np.zeros(7), np.zeros(7)
    agent, most = Agent(policy, dim=4, seed=seed % 11), 0.5
    agent.set_guardrails(Guardrails(min_share=0.05, max_share=most))
    for _ in range(40):
        exclude = dice.sample(range(7), dice.randint(0, 3))
        duel = agent.choose(POOL, voter="ann", exclude=exclude, cost=[dice.random() for _ in range(7)])
        assert not {*exclude} & {*duel.rows}
        open_rows = [row for row in range(7) if row not in exclude]
        cap = max(most, 2 / len(open_rows))
        free = [row for row in open_rows if shown[row] <= cap * offered[row]]
        pairs = [frozenset(pair) for pair in combinations(free, 2)]
        assert duel.first != duel.second
        assert counts[frozenset(duel.rows)] == min((counts[pair] for pair in pairs), default=counts[frozenset(duel.rows)])
        counts[frozenset(duel.rows)] += 1
        offered[open_rows] += 1
        shown[[*duel.rows]] += 1
        answer(agent, duel, dice)


def test_candidates_are_known_by_their_names_where_features_change() -> None:
    agent, dice = Agent(duelist.FGTS(), dim=4, seed=0), np.random.default_rng(0)
    agent.set_guardrails(Guardrails(max_share=0.5))
    shown = Counter[str]()
    names = ["large", "middle", "small", "tiny"]
    for asked in range(1, 101):
        context = np.diag([1.0 + 0.1 * dice.random(), 0.5, 0.4, 0.3])
        order = dice.permutation(4)
        duel = agent.choose(context[order], names=[names[place] for place in order])
        pair = [names[order[row]] for row in duel.rows]
        shown.update(pair)
        agent.learn(duel, winner=duel.rows[0] if pair[0] < pair[1] else duel.rows[1])
        assert shown["large"] <= 0.5 * asked + 2


def test_the_fallback_is_shown_where_fewer_than_two_others_may_be() -> None:
    agent = Agent(duelist.Uniform(), dim=4, seed=0)
    with pytest.raises(InvalidInputError, match=r"1 of 7 candidates are left.*Guardrails\(fallback=\.\.\.\)"):
        agent.choose(POOL, exclude=[0, 1, 2, 3, 4, 5])
    agent.set_guardrails(Guardrails(fallback=POOL[2]))
    assert {*agent.choose(POOL, exclude=[0, 1, 2, 3, 4, 5]).rows} == {2, 6}
    assert 2 not in agent.choose(POOL, exclude=[0, 1, 2, 3, 4]).rows
    with pytest.raises(InvalidInputError, match="0 of 7 candidates"):
        agent.choose(POOL, exclude=range(7))
    agent.set_guardrails(Guardrails(fallback="safe"))
    names = ["a", "b", "safe", "c", "d", "e", "f"]
    assert {*agent.choose(POOL, exclude=[0, 1, 2, 3, 4, 5], names=names).rows} == {2, 6}
    with pytest.raises(InvalidInputError, match="1 of 7"):
        agent.choose(POOL, exclude=[0, 1, 2, 3, 4, 5])


def test_draws_play_utility_minus_cost_times_its_weight() -> None:
    agent, costs = Agent(duelist.FGTS(same_arm="allow"), dim=4, seed=4), np.linspace(-1.0, 2.0, 7)
    differs = 0
    for t in range(40):
        weight = (0.0, 0.5, 3.0)[t % 3]
        agent.set_cost_weight(weight)
        duel = agent.choose(POOL, cost=costs)
        utilities = agent._state.lane.state.chains.position[0] @ POOL.T
        assert duel.rows == tuple(np.argmax(utilities - weight * costs, axis=1))
        differs += duel.rows != tuple(np.argmax(utilities, axis=1))
        agent.learn(duel, winner="first" if t % 4 else "second")
    assert differs > 5


@every_policy
def test_a_cost_of_nothing_changes_no_choice(policy: Any, tmp_path: Path) -> None:
    agents = [Agent(policy, dim=4, seed=8) for _ in range(3)]
    agents[2].set_cost_weight(0.0)
    if not policy.weighs_offsets():
        with pytest.raises(InvalidInputError, match=r"\) does not choose by utilities"):
            agents[1].choose(POOL, cost=np.zeros(7))
        return
    for t in range(25):
        duels = [
            agents[0].choose(POOL),
            agents[1].choose(POOL, cost=np.full(7, 1.5)),
            agents[2].choose(POOL, cost=np.arange(7.0)),
        ]
        assert len({duel.rows for duel in duels}) == 1
        for agent, duel in zip(agents, duels, strict=True):
            if t % 3:
                agent.learn(duel, winner="second")
    assert bytes_of(agents[0], tmp_path) == bytes_of(agents[1], tmp_path)


def test_the_propensity_is_that_of_the_choice_that_was_made() -> None:
    agent = Agent(duelist.Uniform(), dim=4, seed=0)
    assert agent.choose(POOL, exclude=[0, 3]).propensity == pytest.approx(1 / 10)
    assert agent.choose(POOL[:4], voter="ann").propensity == pytest.approx(1 / 6)
    assert math.isnan(agent.choose(POOL[:4], voter="ann").propensity)
    assert agent.choose(POOL[4:], voter="ann").propensity == pytest.approx(1 / 3)
    thompson = Agent(duelist.FGTS(), dim=4, seed=0)
    for _ in range(60):
        duel = thompson.choose(POOL)
        thompson.learn(duel, winner=min(duel.rows))
    cheap = thompson.choose(POOL, cost=[9.0, 9.0, 9.0, 9.0, 9.0, 0.0, 0.0])
    assert {*cheap.rows} == {5, 6}
    assert cheap.propensity > 0.1
    thompson.set_guardrails(Guardrails(min_share=1 / 7))
    unknown = {math.isnan(thompson.choose(POOL).propensity) for _ in range(30)}
    assert unknown == {False, True}  # as the policy likes it, and for a candidate that was owed


@pytest.mark.parametrize("on_journal", [False, True])
def test_an_answer_without_a_voter_is_that_of_who_was_asked(on_journal: bool) -> None:
    with MemoryJournal() as journal:
        agent = Agent(duelist.CoLSTIM(), dim=4, journal=journal if on_journal else None)
        for voter, told_by in (("ann", None), ("ann", "bob"), (None, "ann"), (None, None), ("bob", None)):
            duel = agent.choose(POOL, voter=voter)
            agent.learn(duel, winner="first", voter=told_by)
        agent.choose(POOL, voter="ann")
        assert agent.forget(voter="ann") == 2
        assert agent.forget(voter="bob") == 2


ACTIONS = 70
RAILS = (None, Guardrails(min_share=0.1, max_share=0.5), Guardrails(max_share=0.4, fallback=ARMS[0]), Guardrails(fallback="a"))


def act(agent: Agent, t: int) -> None:
    """One of the things that happen to an agent with voters, limits and costs."""
    dice = random.Random(t)
    pending = agent.pending
    if dice.random() < 0.1:
        agent.set_guardrails(dice.choice(RAILS))
    if dice.random() < 0.1:
        agent.set_cost_weight(dice.choice([0.0, 0.5, 2.0]))
    if not pending or dice.random() < 0.55:
        wants: dict[str, Any] = {}
        if dice.random() < 0.7:
            wants["voter"] = dice.choice(["ann", "bob"])
        if dice.random() < 0.4:
            wants["exclude"] = dice.sample(range(6), 3)
        if dice.random() < 0.4 and agent.policy.weighs_offsets():
            wants["cost"] = [dice.random() for _ in range(6)]
        if dice.random() < 0.4:
            wants["names"] = dice.sample("abcdef", 6)
        agent.choose(ARMS, **wants)
    elif dice.random() < 0.9:
        agent.learn(dice.choice(pending), winner=dice.choice(["first", "second", "tie"]))
    else:
        agent.skip(dice.choice(pending))


def choices_after(agent: Agent) -> list[tuple[int, int]]:
    """What it would ask next, of everybody."""
    return [agent.choose(ARMS, voter=voter, exclude=[row]).rows for voter in ("ann", "bob") for row in range(6)]


@every_policy
@pytest.mark.parametrize("snapshot_every", [7, 10**6])
def test_a_journal_goes_on_bit_for_bit(policy: Any, snapshot_every: int, tmp_path: Path) -> None:
    mine: dict[str, Any] = {"dim": 4, "seed": 3, "max_pending": 5}
    memory = Agent(policy, **mine)
    with MemoryJournal() as journal:
        for t in range(ACTIONS):
            if t % 10 == 0:  # a restart
                logged = Agent(policy, journal=journal, snapshot_every=snapshot_every, **mine)
            act(logged, t)
            act(memory, t)
        assert bytes_of(logged, tmp_path) == bytes_of(memory, tmp_path)
        reopened = Agent(policy, journal=journal, **mine)
        assert bytes_of(reopened, tmp_path) == bytes_of(memory, tmp_path)
        assert choices_after(reopened) == choices_after(memory)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_any_history_replays_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, seed: int, n: int) -> None:
    folder = tmp_path_factory.mktemp("replay")
    with MemoryJournal() as journal:
        first = Agent(duelist.CoLSTIM(), dim=4, seed=seed % 7, journal=journal, max_pending=4)
        for t in range(n):
            act(first, seed + t)
        again = Agent(duelist.CoLSTIM(), dim=4, seed=seed % 7, journal=journal, max_pending=4)
        assert bytes_of(again, folder) == bytes_of(first, folder)
        assert choices_after(again)[:3]


@every_policy
def test_a_saved_agent_goes_on_bit_for_bit(policy: Any, tmp_path: Path) -> None:
    agent = Agent(policy, dim=4, seed=3, max_pending=5)
    for t in range(ACTIONS):
        if t == ACTIONS // 2:
            agent.save(tmp_path / "half")
        act(agent, t)
    again = Agent.load(tmp_path / "half")
    for t in range(ACTIONS // 2, ACTIONS):
        act(again, t)
    assert bytes_of(again, tmp_path) == bytes_of(agent, tmp_path)


def test_forgetting_on_a_journal_keeps_who_saw_what(tmp_path: Path) -> None:
    mine: dict[str, Any] = {"dim": 4, "seed": 3, "max_pending": 5}
    memory = Agent(duelist.FGTS(), **mine)
    with MemoryJournal() as journal:
        logged = Agent(duelist.FGTS(), journal=journal, **mine)
        for t in range(ACTIONS):
            act(memory, t)
            act(logged, t)
        assert memory.forget(voter="ann") == logged.forget(voter="ann") > 0
        assert bytes_of(memory, tmp_path) == bytes_of(logged, tmp_path)
        assert choices_after(memory) == choices_after(logged)


def test_setting_the_same_again_writes_nothing() -> None:
    with MemoryJournal() as journal:
        agent = Agent(duelist.FGTS(), dim=4, journal=journal)
        agent.set_guardrails(Guardrails(max_share=0.5, fallback=POOL[0]))
        agent.set_cost_weight(2.0)
        length = len(list(journal.read()))
        agent.set_guardrails(Guardrails(max_share=0.5, fallback=POOL[0].copy()))
        agent.set_cost_weight(2.0)
        assert len(list(journal.read())) == length
        kinds = [record.kind for record in journal.read()]
        assert kinds[-2:] == ["guardrails", "cost_weight"]


@pytest.mark.parametrize(
    ("wants", "message"),
    [
        ({"voter": ""}, "voter must be a name"),
        ({"voter": 3}, "voter must be a name"),
        ({"exclude": [7]}, "rows of features, 0 to 6; got 7"),
        ({"exclude": [True]}, "rows of features"),
        ({"cost": [1.0, 2.0]}, r"cost must be \(7,\)"),
        ({"cost": [math.nan] * 7}, "cost"),
        ({"names": ["a"]}, "names must be 7 texts"),
    ],
)
def test_conditions_that_mean_nothing_are_refused_and_nothing_is_asked(wants: dict[str, Any], message: str) -> None:
    agent = Agent(duelist.FGTS(), dim=4)
    with pytest.raises(InvalidInputError, match=message):
        agent.choose(POOL, **wants)
    assert agent.report()["asked"] == 0


def test_limits_are_for_sets_with_rows() -> None:
    agent = Agent(duelist.FGTS(), dim=4)
    with pytest.raises(InvalidInputError, match="BallActions, which has none"):
        agent.choose(BallActions(1, 4), voter="ann")
    agent.set_guardrails(Guardrails(max_share=0.5))
    with pytest.raises(InvalidInputError, match="BallActions, which has none"):
        agent.choose(BallActions(1, 4))
    agent.set_guardrails(None)
    assert agent.choose(BallActions(1, 4)).first == -1
    with pytest.raises(TypeError, match="voter"):
        SlateAgent(ListwiseFGTS(), dim=4).choose(POOL, voter="ann")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "wrong", [{"min_share": -0.1}, {"max_share": 0.0}, {"max_share": 1.5}, {"min_share": 0.6, "max_share": 0.5}]
)
def test_shares_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="share"):
        Guardrails(**wrong)
    with pytest.raises(InvalidInputError, match="Guardrails"):
        Agent(duelist.FGTS(), dim=4).set_guardrails(wrong)  # type: ignore[arg-type]
