"""Play a listwise policy: the round loop of `simulate` for slates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from duelist.core.checks import whole_number
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.slates import LinearSlates
from duelist.policies.base import SlatePolicy
from duelist.typing import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class SlateRun:
    """One listwise policy on one environment, all trials.

    Attributes:
        policy: the hyper-parameters that played.
        environment: the recipe of the instances.
        seed: seed of every random stream.
        regret: (trials, rounds) cumulative: best utility minus the slate's mean utility.
        rows: (trials, rounds, choices) rows shown.
        rankings: (trials, rounds, choices) full rankings given; a policy that learns from winners reads the first.
        info: numbers about the policy at the end, each (trials,).
    """

    policy: Any
    environment: Any
    seed: int
    regret: FloatArray = field(repr=False)
    rows: IntArray = field(repr=False)
    rankings: IntArray = field(repr=False)
    info: dict[str, FloatArray] = field(repr=False)

    @property
    def final_regret(self) -> FloatArray:
        """(trials,) cumulative regret after the last round."""
        return self.regret[:, -1]


def simulate_slates(
    policy: SlatePolicy[Any], environment: LinearSlates, *, rounds: int, trials: int = 30, seed: int = 0
) -> SlateRun:
    """Play `policy` on independent instances, which are the same whatever the policy and its number of choices.

    Args:
        policy: hyper-parameters.
        environment: recipe of the instances.
        rounds: slates per trial.
        trials: how many.
        seed: names all random numbers.

    Example:
        >>> from duelist.policies import ListwiseFGTS
        >>> run = simulate_slates(ListwiseFGTS(choices=4), LinearSlates(dim=3, arms=8), rounds=10, trials=2)
        >>> run.rows.shape
        (2, 10, 4)
    """
    whole_number("rounds", rounds, at_least=1)
    streams = Streams(seed, range(whole_number("trials", trials, at_least=1)))
    instance = environment.instance(streams)
    state = policy.start(Problem(dim=environment.dim, lanes=trials, horizon=rounds), streams)
    regret = np.empty((trials, rounds))
    rows, rankings = (np.empty((trials, rounds, policy.choices), dtype=np.int64) for _ in range(2))
    for t in range(rounds):
        actions = instance.actions(t)
        slates, state = policy.choose(state, actions, streams)
        answers = instance.rankings(t, slates)
        state = policy.learn(state, actions, slates, list(answers))
        regret[:, t] = instance.regret(actions, slates)
        rows[:, t], rankings[:, t] = slates.rows, answers
    return SlateRun(
        policy=policy,
        environment=environment,
        seed=seed,
        regret=np.cumsum(regret, axis=1),
        rows=rows,
        rankings=rankings,
        info=policy.report(state),
    )
