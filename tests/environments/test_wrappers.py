"""Wrappers: ties by the formula, an adversary within its budget, late answers as in a slow loop, truths that move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import duelist
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.gymnasium import GymnasiumDuels
from duelist.environments.linear import LinearDuels
from duelist.environments.matrix import MatrixDuels
from duelist.environments.nonlinear import QuadraticDuels
from duelist.environments.votes import VoteDuels
from duelist.environments.wrappers import Corrupted, Delayed, Rotating, Switching, Tied
from duelist.experiments.run import NO_ANSWER
from duelist.history.duels import Duels, duels_between
from duelist.policies.base import FRESH_QUESTIONS
from duelist.preferences.ties import Davidson

BASE = LinearDuels(dim=3, arms=6)


def test_ties_have_the_probabilities_of_davidsons_model() -> None:
    instance, base = Tied(base=BASE, nu=0.7).instance(Streams(0, [4])), BASE.instance(Streams(0, [4]))
    for second in range(1, 6):
        duels = duels_between(base.actions(0), np.array([0]), np.array([second]))
        first, other = duels.features[0] @ base.theta[0]
        expected = Davidson(nu=0.7).probabilities(first, other)
        found = [instance.win_probability(0, duels)[0], instance.tie_probability(0, duels)[0]]
        np.testing.assert_allclose(found, expected[[0, 2]], rtol=1e-12)


def test_without_ties_the_outcomes_are_those_of_the_base() -> None:
    one = duelist.simulate(duelist.Uniform(), BASE, rounds=50, trials=4)
    other = duelist.simulate(duelist.Uniform(), Tied(base=BASE, nu=0.0), rounds=50, trials=4)
    np.testing.assert_array_equal(one.outcomes, other.outcomes)


VOTES = {"first": ["a", "b"], "second": ["b", "a"], "outcome": [0, 1]}


@pytest.mark.parametrize("base", [Tied(base=BASE), VoteDuels(votes=VOTES, answers="votes")], ids=["ties", "votes"])
def test_ties_upon_ties_are_refused(base: Any) -> None:
    with pytest.raises(InvalidInputError, match="without ties"):
        duelist.simulate(duelist.Uniform(), Tied(base=base), rounds=5, trials=1)


def test_random_flips_turn_the_stated_share_and_leave_ties() -> None:
    base = Tied(base=BASE)
    clean = duelist.simulate(duelist.Uniform(), base, rounds=1000, trials=5)
    flipped = duelist.simulate(duelist.Uniform(), Corrupted(base=base, flips=0.3), rounds=1000, trials=5)
    decided = clean.outcomes != 0
    np.testing.assert_array_equal(flipped.outcomes == 0, ~decided)
    turned = flipped.outcomes[decided] == -clean.outcomes[decided]
    # Five standard errors of about 3,300 coins.
    assert abs(turned.mean() - 0.3) < 5.0 * np.sqrt(0.21 / decided.sum())


@pytest.mark.parametrize("budget", [1, 7, 40])
def test_the_adversary_flips_the_first_wins_of_the_best_arm_and_never_more_than_its_budget(budget: int) -> None:
    clean = duelist.simulate(duelist.Uniform(), BASE, rounds=300, trials=5, seed=3)
    attacked = duelist.simulate(duelist.Uniform(), Corrupted(base=BASE, budget=budget), rounds=300, trials=5, seed=3)
    for lane in range(5):
        instance = BASE.instance(Streams(3, [lane]))
        utilities = (instance.actions(0).features[0] @ instance.theta[0]).tolist()
        best, spent, expected = utilities.index(max(utilities)), 0, []
        for first, second, outcome in zip(clean.first[lane], clean.second[lane], clean.outcomes[lane], strict=True):
            winner, loser = (first, second) if outcome == 1 else (second, first)
            hurts = spent < budget and winner == best and loser != best
            spent += hurts
            expected.append(-outcome if hurts else outcome)
        assert spent == min(budget, 40)
        assert attacked.outcomes[lane].tolist() == expected


def test_an_adversary_that_is_asked_again_has_no_more_to_spend() -> None:
    instance, base = Corrupted(base=BASE, budget=2).instance(Streams(3, [0])), BASE.instance(Streams(3, [0]))
    actions = base.actions(0)
    best = int(actions.best(base.theta[:, None]).row[0, 0])
    duels = duels_between(actions, np.array([best]), np.array([(best + 1) % 6]))

    def flips() -> list[bool]:
        return [bool(instance.outcomes(t, duels)[0] != base.outcomes(t, duels)[0]) for t in range(30)]

    before = flips()
    assert sum(before) == 2
    assert flips() == before


def slow_delayed(policy: Any, env: Any, rounds: int, seed: int, trial: int) -> tuple[list[Any], list[int]]:
    """One lane, written out: what was played, and what was known of it at the end."""
    streams = Streams(seed, [trial])
    instance = env.instance(streams)
    state = policy.start(Problem(dim=env.dim, horizon=rounds), streams)
    played: list[Any] = []
    answered = [NO_ANSWER] * rounds
    due: dict[int, list[int]] = {}
    kept: dict[int, Any] = {}
    for t in range(rounds):
        actions = instance.actions(t)
        waiting = [kept[asked][1] for asked in sorted(kept) if asked >= t - FRESH_QUESTIONS]
        if waiting:
            duels, state = policy.choose_with_pending(state, actions, streams, waiting)
        else:
            duels, state = policy.choose(state, actions, streams)
        played.append((int(duels.first[0]), int(duels.second[0])))
        kept[t] = (actions, duels, instance.outcomes(t, duels))
        wait = int(instance.delay(t, duels)[0])
        if wait >= 0:
            due.setdefault(t + wait, []).append(t)
        for asked in due.pop(t, []):
            state = policy.learn(state, *kept[asked])
            answered[asked] = int(kept.pop(asked)[2][0])
    return played, answered


FRESH = LinearDuels(dim=3, arms=6, fresh_arms=True)


@pytest.mark.parametrize(
    "env",
    [
        Delayed(base=FRESH, delay=7),
        Delayed(base=FRESH, batch=10),
        Delayed(base=FRESH, delay=4, batch=6),
        Delayed(base=FRESH, delay=9, law="geometric"),
        Delayed(base=FRESH, delay=9, law="uniform", missing=0.3, batch=3),
        Delayed(base=Delayed(base=FRESH, delay=3, missing=0.2), delay=2),
        Tied(base=Delayed(base=FRESH, delay=80)),
    ],
    ids=["fixed", "batched", "fixed and batched", "geometric", "uniform, missing, batched", "twice", "inside ties"],
)
@pytest.mark.parametrize("policy", [duelist.FGTS(), duelist.MaxInP()], ids=["FGTS", "MaxInP"])
def test_late_answers_are_learnt_as_in_a_slow_loop(env: Any, policy: Any) -> None:
    run = duelist.simulate(policy, env, rounds=110, trials=[2, 5, 6], seed=1, workers=2)
    for lane, trial in enumerate(run.trials):
        played, answered = slow_delayed(policy, env, 110, 1, trial)
        assert [*zip(run.first[lane].tolist(), run.second[lane].tolist(), strict=True)] == played
        assert run.outcomes[lane].tolist() == answered


def test_delays_have_their_law() -> None:
    streams = Streams(0, range(4000))
    duels = Duels(np.zeros(4000, dtype=np.int64), np.ones(4000, dtype=np.int64), np.zeros((4000, 2, 3)))

    def delays(**settings: Any) -> Any:
        return Delayed(base=BASE, **settings).instance(streams).delay(11, duels)

    geometric = delays(delay=5, law="geometric")
    # Mean 5 and standard deviation sqrt(5 * 6): within five standard errors; a geometric law has no memory.
    assert abs(geometric.mean() - 5.0) < 5.0 * np.sqrt(30.0 / 4000)
    assert abs((geometric >= 1).mean() - 5 / 6) < 5.0 * np.sqrt(5 / 36 / 4000)
    uniform = delays(delay=5, law="uniform")
    assert set(uniform.tolist()) == set(range(11))
    assert abs(uniform.mean() - 5.0) < 5.0 * np.sqrt(10.0 / 4000)
    assert abs((delays(missing=0.25) == -1).mean() - 0.25) < 5.0 * np.sqrt(0.1875 / 4000)
    batched = delays(delay=5, law="uniform", batch=4)
    np.testing.assert_array_equal((11 + batched + 1) % 4, 0)
    assert ((batched >= uniform) & (batched < uniform + 4)).all()


def test_a_truth_that_turns_has_the_angle_and_the_norm_that_are_stated() -> None:
    env = Rotating(base=LinearDuels(dim=5, arms=6, theta_norm=3.0), rate=0.02)
    instance = env.instance(Streams(0, range(4)))
    start = LinearDuels(dim=5, arms=6, theta_norm=3.0).instance(Streams(0, range(4))).theta
    for t in (0, 10, 100, 3):
        actions: Any = instance.actions(t)
        cosines = np.einsum("ld,ld->l", instance.theta, start) / 9.0
        np.testing.assert_allclose(cosines, np.cos(0.02 * t), atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(instance.theta, axis=1), 3.0)
        best = actions.utilities(instance.theta).argmax(axis=1)
        assert np.abs(instance.regret(actions, duels_between(actions, best, best)).average).max() < 1e-12


def test_a_truth_is_replaced_at_the_stated_rounds_and_arms_and_noise_stay() -> None:
    by_list = Switching(base=BASE, at=(3, 5)).instance(Streams(0, [0, 1]))
    by_count = Switching(base=BASE, every=3).instance(Streams(0, [0, 1]))
    plain = BASE.instance(Streams(0, [0, 1]))

    def truths(instance: Any) -> list[bytes]:
        found = []
        for t in range(7):
            assert instance.actions(t).digest == plain.actions(t).digest
            found.append(instance.base.theta.tobytes())
        return found

    listed, counted = truths(by_list), truths(by_count)
    assert [listed.index(truth) for truth in listed] == [0, 0, 0, 3, 3, 5, 5]
    assert [counted.index(truth) for truth in counted] == [0, 0, 0, 3, 3, 3, 6]
    assert listed[0] == plain.theta.tobytes()
    assert truths(by_list) == listed  # also when asked again from the beginning


def test_a_policy_that_remembers_everything_pays_for_a_switch() -> None:
    quiet, switched = (
        duelist.simulate(duelist.MaxInP(), env, rounds=600, trials=6, seed=0)
        for env in (MatrixDuels(arms=5), Switching(base=MatrixDuels(arms=5), at=(300,)))
    )
    np.testing.assert_array_equal(quiet.regret[:, :300], switched.regret[:, :300])
    late = [run.regret[:, -1] - run.regret[:, 299] for run in (quiet, switched)]
    assert late[1].mean() > 2.0 * late[0].mean()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tied(base=BASE, nu=-1.0), "nu"),
        (lambda: Corrupted(base=BASE, flips=0.5), "below 0.5"),
        (lambda: Delayed(base=BASE, missing=1.0), "below 1"),
        (lambda: Delayed(base=BASE, law="normal"), "geometric"),  # type: ignore[arg-type]
        (lambda: Switching(base=BASE, at=(5, 3)), "ascending"),
        (lambda: Rotating(base=QuadraticDuels()).instance(Streams(0, [0])), "linear utilities"),
        (lambda: Rotating(base=Tied(base=BASE)).instance(Streams(0, [0])), r"Tied\(base=Rotating"),
        (lambda: GymnasiumDuels(environment="x", samples=0), "samples"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()
