"""Gymnasium both ways: a duelist environment as a `gymnasium.Env`, and a bandit of Gymnasium as a duelist environment.

Needs the extra: pip install 'duelist[gymnasium]'. Gymnasium is imported when one of the two is made, not before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.base import Environment, Instance, Regret
from duelist.history.duels import Duels, duels_between
from duelist.typing import FloatArray, IntArray

_SEEDS = 2**31


def _gymnasium() -> Any:
    try:
        import gymnasium
    except ImportError as error:
        raise InvalidInputError("this needs Gymnasium: pip install 'duelist[gymnasium]'.") from error
    return gymnasium


def to_gymnasium(environment: Environment, *, rounds: int, reward: Literal["regret", "outcome"] = "regret") -> Any:
    """A `gymnasium.Env` of one trial per episode.

    An action is a pair of rows, an observation the features (n_arms, dim) of the round's arms. `reset(seed=s)` starts trial 0
    of seed s, the same as `simulate(..., seed=s)` plays; every further `reset()` starts the next trial. `info` has the
    `outcome` of the last duel and its `regret`.

    Args:
        environment: a recipe with finite action sets, as many arms in every round, that answers at once.
        rounds: duels per episode, after which it is truncated.
        reward: "regret" for minus the average regret of the duel, "outcome" for who won: +1, -1 or 0.

    Example:
        >>> from duelist.environments import LinearDuels
        >>> env = to_gymnasium(LinearDuels(dim=3, arms=4), rounds=10)
        >>> observation, info = env.reset(seed=0)
        >>> observation.shape
        (4, 3)
        >>> observation, cost, terminated, truncated, info = env.step([0, 2])
        >>> bool(cost <= 0.0), terminated, truncated, info["outcome"] in (-1, 0, 1)
        (True, False, False, True)
    """
    gymnasium = _gymnasium()
    whole_number("rounds", rounds, at_least=1)
    one_of("reward", reward, ("regret", "outcome"))
    probe = _finite(environment.instance(Streams(0, [0])).actions(0))

    class DuelsEnv(gymnasium.Env):  # type: ignore[misc,name-defined]
        metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (probe.n_arms, probe.dim), np.float64)
        action_space = gymnasium.spaces.MultiDiscrete([probe.n_arms, probe.n_arms])
        _seed, _trial = -1, -1

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[FloatArray, dict[str, Any]]:
            """Start a trial."""
            super().reset(seed=seed, options=options)
            if seed is not None:
                self._seed, self._trial = seed, -1
            elif self._seed < 0:
                self._seed = int(self.np_random.integers(_SEEDS))
            self._trial += 1
            self._instance, self._round = environment.instance(Streams(self._seed, [self._trial])), 0
            return self._look(), {}

        def _look(self) -> FloatArray:
            self._actions = _finite(self._instance.actions(self._round))
            features = self._actions.features[0]
            if features.shape != self.observation_space.shape:
                raise InvalidInputError(
                    f"a Gymnasium environment needs as many arms in every round; got {len(features)} in round {self._round} "
                    f"and {probe.n_arms} in round 0."
                )
            return np.array(features)

        def step(self, action: Any) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
            """Play a pair of rows."""
            first, second = (np.array([int(row)]) for row in action)
            duels = duels_between(self._actions, first, second)
            outcome = int(self._instance.outcomes(self._round, duels)[0])
            regret = float(self._instance.regret(self._actions, duels).average[0])
            delay = getattr(self._instance, "delay", None)
            if delay is not None and delay(self._round, duels)[0] != 0:
                raise InvalidInputError("a Gymnasium environment answers at once; this one delays answers. Take its base.")
            self._round += 1
            gained = -regret if reward == "regret" else float(outcome)
            return self._look(), gained, False, self._round >= rounds, {"outcome": outcome, "regret": regret}

    return DuelsEnv()


def _finite(actions: ActionSet) -> FiniteActions:
    if not isinstance(actions, FiniteActions):
        raise InvalidInputError(
            f"a Gymnasium environment needs a finite action set, whose rows are its actions; got {type(actions).__name__}."
        )
    return actions


@dataclass(frozen=True, kw_only=True, eq=False)
class GymnasiumDuels:
    """Two actions of a Gymnasium bandit compared by their rewards: the larger wins, equal ones tie.

    Both actions are taken after a reset with a seed of the round, so that every answer is a function of (seed, trial, round).
    Arms are the actions, with unit vectors for features. Costs are differences of mean rewards, which are estimated once,
    unless they are given.

    Args:
        environment: the id of a registered environment, or a function that makes one. Its actions must be `Discrete`, and a
            reward must come with the first step.
        means: (n_actions,) true mean rewards; None to estimate them.
        samples: steps per action for the estimate.

    Example:
        >>> import gymnasium
        >>> class Coins(gymnasium.Env):
        ...     action_space, observation_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(1)
        ...     def reset(self, *, seed=None, options=None):
        ...         super().reset(seed=seed)
        ...         return 0, {}
        ...     def step(self, action):
        ...         return 0, float(self.np_random.random() < (0.2, 0.9)[action]), True, False, {}
        >>> env = GymnasiumDuels(environment=Coins, means=[0.2, 0.9])
        >>> instance = env.instance(Streams(0, [0, 1]))
        >>> instance.actions(0).n_arms
        2
    """

    environment: str | Callable[[], Any]
    means: Any = None
    samples: int = 1000

    def __post_init__(self) -> None:
        whole_number("samples", self.samples, at_least=1)
        if self.means is not None and len(self.means) != self.dim:
            raise InvalidInputError(f"means must have one number per action, {self.dim}; got {len(self.means)}.")

    def make(self) -> Any:
        """A fresh Gymnasium environment."""
        return _gymnasium().make(self.environment) if isinstance(self.environment, str) else self.environment()

    @cached_property
    def dim(self) -> int:
        """Number of actions: arms have unit vectors."""
        space = self.make().action_space
        if not isinstance(space, _gymnasium().spaces.Discrete) or space.n < 2:
            raise InvalidInputError(f"the environment must have a Discrete action space of at least 2 actions; got {space}.")
        return int(space.n)

    @cached_property
    def mean_rewards(self) -> FloatArray:
        """(n_actions,) given, or estimated from the seeds 0, 1, 2 and so on."""
        if self.means is not None:
            return np.asarray(self.means, dtype=np.float64)
        world = self.make()
        return np.array([np.mean([_reward(world, arm, seed) for seed in range(self.samples)]) for arm in range(self.dim)])

    def instance(self, streams: Streams) -> GymnasiumInstance:
        """One Gymnasium environment for all lanes: it is reset before every step."""
        return GymnasiumInstance(self, streams)


class GymnasiumInstance(Instance):
    """A block of lanes over one Gymnasium environment, which steps for one lane at a time."""

    def __init__(self, recipe: GymnasiumDuels, streams: Streams) -> None:
        self.recipe, self._streams, self._world = recipe, streams, recipe.make()
        self._actions = FiniteActions(np.broadcast_to(np.eye(recipe.dim), (len(streams), recipe.dim, recipe.dim)))

    def actions(self, round_: int) -> FiniteActions:  # noqa: ARG002 - an instance's signature
        """The actions, the same in every round."""
        return self._actions

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        """Whose reward is larger, (lanes,): +1, -1, or 0 where they are equal. The two sides have seeds of their own."""
        first, second = (self._rewards(f"reward {side}", round_, getattr(duels, side)) for side in ("first", "second"))
        return np.sign(first - second).astype(np.int64)

    def _rewards(self, name: str, round_: int, arms: IntArray) -> FloatArray:
        seeds = (self._streams.uniforms(name, round_) * _SEEDS).astype(np.int64).tolist()
        return np.array([_reward(self._world, arm, seed) for arm, seed in zip(arms.tolist(), seeds, strict=True)])

    def regret(self, actions: ActionSet, duels: Duels) -> Regret:  # noqa: ARG002 - an instance's signature
        """What these duels cost, in mean rewards."""
        means = self.recipe.mean_rewards
        gaps = means.max() - means[np.stack([duels.first, duels.second], axis=1)]
        return Regret(gaps.mean(axis=1), gaps.min(axis=1))


def _reward(world: Any, action: int, seed: int) -> float:
    """The reward of one step after a reset. Actions of a Discrete space may begin at another number than 0."""
    world.reset(seed=seed)
    return float(world.step(int(world.action_space.start) + action)[1])
