"""Gymnasium both ways: its own checker passes, episodes are trials, and rewards decide duels."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.continuous import ContinuousDuels
from duelist.environments.gymnasium import GymnasiumDuels, to_gymnasium
from duelist.environments.linear import LinearDuels
from duelist.environments.matrix import MatrixDuels
from duelist.environments.wrappers import Delayed, Tied
from duelist.history.duels import duels_between

ENV = LinearDuels(dim=3, arms=5, fresh_arms=True)


@pytest.mark.filterwarnings("ignore:.*:UserWarning:gymnasium")  # of infinite bounds, which features have
@pytest.mark.parametrize("reward", ["regret", "outcome"])
@pytest.mark.parametrize("environment", [ENV, Tied(base=MatrixDuels(arms=4))], ids=["fresh arms", "matrix with ties"])
def test_the_checker_of_gymnasium_passes(environment: Any, reward: Any) -> None:
    checker = pytest.importorskip("gymnasium.utils.env_checker")
    checker.check_env(to_gymnasium(environment, rounds=20, reward=reward), skip_render_check=True)


@pytest.mark.parametrize("reward", ["regret", "outcome"])
def test_episodes_are_the_trials_of_the_seed(reward: Any) -> None:
    pytest.importorskip("gymnasium")
    world = to_gymnasium(ENV, rounds=12, reward=reward)
    for trial in range(3):
        observation, _ = world.reset(seed=7) if trial == 0 else world.reset()
        instance = ENV.instance(Streams(7, [trial]))
        for t in range(12):
            actions = instance.actions(t)
            np.testing.assert_array_equal(observation, actions.features[0])
            first, second = t % 5, (t + 2) % 5
            duels = duels_between(actions, np.array([first]), np.array([second]))
            observation, gained, terminated, truncated, info = world.step(np.array([first, second]))
            regret, outcome = instance.regret(actions, duels).average[0], instance.outcomes(t, duels)[0]
            assert gained == (-regret if reward == "regret" else outcome)
            assert (info["regret"], info["outcome"]) == (regret, outcome)
            assert (terminated, truncated) == (False, t == 11)


def test_what_gymnasium_cannot_play_is_refused() -> None:
    pytest.importorskip("gymnasium")
    with pytest.raises(InvalidInputError, match="finite action set"):
        to_gymnasium(ContinuousDuels(dim=2), rounds=5)
    late = to_gymnasium(Delayed(base=ENV, delay=3), rounds=5)
    late.reset(seed=0)
    with pytest.raises(InvalidInputError, match="Take its base"):
        late.step([0, 1])


def test_without_gymnasium_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(InvalidInputError, match=r"duelist\[gymnasium\]"):
        to_gymnasium(ENV, rounds=5)
    with pytest.raises(InvalidInputError, match=r"duelist\[gymnasium\]"):
        _ = GymnasiumDuels(environment="any-v0").dim


def coins(chances: tuple[float, ...], start: int = 0) -> Any:
    """A bandit whose action k pays 1 with its own chance."""
    gymnasium = pytest.importorskip("gymnasium")

    class Coins(gymnasium.Env):  # type: ignore[misc,name-defined]
        action_space = gymnasium.spaces.Discrete(len(chances), start=start)
        observation_space = gymnasium.spaces.Discrete(1)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed, options=options)
            return 0, {}

        def step(self, action: int) -> Any:
            return 0, float(self.np_random.random() < chances[action - start]), True, False, {}

    return Coins


def test_the_larger_reward_wins_as_often_as_it_should() -> None:
    """Wins, ties and losses of one pair against the product of two coins, within five standard errors."""
    env = GymnasiumDuels(environment=coins((0.3, 0.6, 0.9), start=4), means=[0.3, 0.6, 0.9])
    instance = env.instance(Streams(0, range(20)))
    actions = instance.actions(0)
    duels = duels_between(actions, np.full(20, 2), np.full(20, 1))
    answers = np.concatenate([instance.outcomes(t, duels) for t in range(100)])
    for value, chance in ((1, 0.9 * 0.4), (0, 0.9 * 0.6 + 0.1 * 0.4), (-1, 0.1 * 0.6)):
        assert abs((answers == value).mean() - chance) < 5.0 * np.sqrt(chance * (1.0 - chance) / len(answers))
    regret = instance.regret(actions, duels)
    np.testing.assert_allclose(regret.average, 0.15)
    np.testing.assert_allclose(regret.weak, 0.0, atol=1e-12)


def test_a_trial_of_a_bandit_is_the_same_alone_and_in_a_block_and_policies_learn_it() -> None:
    env = GymnasiumDuels(environment=coins((0.1, 0.2, 0.9, 0.3)), samples=400)
    np.testing.assert_allclose(env.mean_rewards, [0.1, 0.2, 0.9, 0.3], atol=0.1)
    one = duelist.simulate(duelist.MaxInP(), env, rounds=150, trials=2, workers=1)
    again = duelist.simulate(duelist.MaxInP(), env, rounds=150, trials=[1], workers=1)
    np.testing.assert_array_equal(one.outcomes[1], again.outcomes[0])
    assert np.isnan(one.yue_regret).all()
    uniform = duelist.simulate(duelist.Uniform(), env, rounds=150, trials=2, workers=1)
    assert one.final_regret.mean() < 0.5 * uniform.final_regret.mean()
