"""FGTSVA: the bonus of the current arms alone, and votes weighed by their variance."""

from __future__ import annotations

import math

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import duels_between
from duelist.policies import FGTSVA
from tests.support.oracles import Floats
from tests.support.reference_policies import Taught, slow_fit, slow_matrix
from tests.support.slow_tilted import SlowDraws

STREAMS = Streams(0, [0])
ARMS = FiniteActions([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
FIRST = duels_between(ARMS, np.array([0]), np.array([1]))


@pytest.mark.parametrize(("strength", "floor"), [(0.0, 0.1), (0.05, 0.45), (1.0, 0.5)])
def test_every_round_agrees_with_the_rule_in_plain_python(strength: float, floor: float) -> None:
    generator, streams = np.random.default_rng(8), Streams(4, [6])
    policy = FGTSVA(strength=strength, floor=floor, ridge=0.5, tries=3)
    state = policy.start(Problem(dim=3), streams)
    slow = SlowDraws("fgtsva", streams, 3, 3)
    truth = 3.0 * generator.standard_normal(3)
    record: list[Taught] = []
    spread = 0.0
    for t in range(30):
        actions = FiniteActions(generator.standard_normal((int(generator.integers(3, 7)), 3)))
        arms = actions.features[0]
        theta = slow_fit(record, 3, 0.5)
        precision = slow_matrix(record, 3, 0.5, theta)
        if t == 0:  # at theta = 0 all arms are equally good, and random numbers of their content decide
            leader = arms[int(actions.random_priority(streams, "ties", 0)[0].argmax())]
        else:
            leader = arms[int(np.argmax(arms @ theta))]
        weight = strength * math.sqrt(spread + 0.25) / 0.25

        def bonus(_draw: int, drawn: Floats, arms: Floats = arms, leader: Floats = leader, weight: float = weight) -> float:
            return weight * (max(float(drawn @ x) for x in arms) - float(drawn @ leader))

        rows = [int(np.argmax(arms @ drawn)) for drawn in slow.move(t, theta, precision, bonus)]
        duels, state = policy.choose(state, actions, streams)
        assert [int(duels.first[0]), int(duels.second[0])] == rows, f"round {t}"
        z = arms[rows[0]] - arms[rows[1]]
        win = 1.0 / (1.0 + math.exp(-float(theta @ z)))
        assert duels.note is not None
        np.testing.assert_allclose(duels.note, [[win * (1.0 - win)]], rtol=1e-4)
        at_least = max(win * (1.0 - win), floor**2)
        outcome = 1 if generator.random() < 1.0 / (1.0 + math.exp(-float(truth @ z))) else -1
        state = policy.learn(state, actions, duels, np.array([outcome]))
        record.append(Taught(z, outcome, count=win * (1.0 - win) / at_least))
        spread += at_least
    assert state.noise[0] == pytest.approx(spread, rel=1e-4)
    assert slow.stayed == state.tilted.stayed[0]
    if floor > 0.1:
        assert any(duel.count < 0.99 for duel in record)


def test_two_votes_computed_by_hand() -> None:
    """Floor 1/2: a vote counts 4 s(u) s(-u), which is 1 at theta = 0 and less for the same pair again."""
    policy = FGTSVA(ridge=1.0, floor=0.5)
    state = policy.learn(policy.start(Problem(dim=2), STREAMS), ARMS, FIRST, np.array([1]))
    # theta = c z with c = s(-2 c)
    c = 0.3
    for _ in range(300):
        c = 0.5 * (c + 1.0 / (1.0 + math.exp(2.0 * c)))
    np.testing.assert_allclose(state.tilted.belief.theta, [[c, -c]], atol=1e-5)
    assert state.noise[0] == 0.25
    state = policy.learn(state, ARMS, FIRST, np.array([1]))
    win = 1.0 / (1.0 + math.exp(-2.0 * c))
    assert state.tilted.belief.history.statistics.totals[0, 0] == pytest.approx(1.0 + 4.0 * win * (1.0 - win), abs=1e-5)
    assert state.noise[0] == 0.5


def test_a_late_answer_counts_as_it_was_asked() -> None:
    policy = FGTSVA(floor=0.5)
    state = policy.start(Problem(dim=2, live=True), STREAMS)
    opened, state = policy.choose(state, ARMS, STREAMS)
    assert opened.note is not None
    assert opened.note[0, 0] == 0.25
    for _ in range(20):
        state = policy.learn(state, ARMS, FIRST, np.array([1]))
    before = state.tilted.belief.history.statistics.totals.sum()
    after = policy.learn(state, ARMS, opened, np.array([1])).tilted.belief.history.statistics.totals.sum()
    assert after - before == pytest.approx(1.0)


def test_a_bonus_prefers_draws_under_which_another_arm_is_better() -> None:
    """After many wins of arm 0, a strong bonus finds draws that like another arm where plain draws hardly do."""
    shown = []
    for strength in (0.0, 2.0):
        policy, other = FGTSVA(strength=strength, tries=16), 0
        state = policy.start(Problem(dim=2), STREAMS)
        for _ in range(12):
            state = policy.learn(state, ARMS, FIRST, np.array([1]))
            state = policy.learn(state, ARMS, duels_between(ARMS, np.array([0]), np.array([2])), np.array([1]))
        for _ in range(200):
            duels, state = policy.choose(state, ARMS, STREAMS)
            other += int(duels.first[0] != 0)
        shown.append(other)
    assert shown[1] > 3 * shown[0]


def test_no_action_set_is_kept() -> None:
    policy, generator = FGTSVA(), np.random.default_rng(0)
    state = policy.start(Problem(dim=2), STREAMS)
    for _ in range(5):
        arms = FiniteActions(generator.standard_normal((3, 2)))
        duels, state = policy.choose(state, arms, STREAMS)
        state = policy.learn(state, arms, duels, np.array([1]))
    assert not policy.keeps_sets()
    assert state.tilted.belief.history.statistics.repeats.size == 0


def test_live_an_arm_never_meets_itself() -> None:
    policy = FGTSVA()
    state = policy.start(Problem(dim=2, live=True), STREAMS)
    for _ in range(50):
        state = policy.learn(state, ARMS, FIRST, np.array([1]))
        duels, state = policy.choose(state, ARMS, STREAMS)
        assert duels.first[0] != duels.second[0]


def test_a_column_of_strengths_equals_separate_runs() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    together = duelist.simulate(FGTSVA(strength=(0.0, 0.2)), env, rounds=60, trials=[3, 3], seed=2)
    for lane, strength in enumerate((0.0, 0.2)):
        alone = duelist.simulate(FGTSVA(strength=strength), env, rounds=60, trials=[3], seed=2)
        np.testing.assert_array_equal(together.second[lane], alone.second[0])


@pytest.mark.parametrize("wrong", [{"strength": -1.0}, {"floor": 0.0}, {"floor": 0.6}, {"tries": 0}, {"ridge": 0.0}])
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        FGTSVA(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("note", [[[0.3]], [[-0.1]], [[0.1, 0.1]], [[math.nan]]])
def test_a_note_of_another_policy_is_refused(note: list[list[float]]) -> None:
    policy = FGTSVA()
    state = policy.start(Problem(dim=2), STREAMS)
    with pytest.raises(InvalidInputError, match="note"):
        policy.learn(state, ARMS, FIRST._replace(note=np.array(note)), np.array([1]))
