"""What people would use instead, each behind the same two calls: choose, then learn.

Only duelpy learns from duels as we do; the others choose one arm and learn a reward, which is the easier problem. Each adapter
gives its library the cheapest honest use: texts and arrays that do not change from round to round are made once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from duelist.agent.agent import Agent
from duelist.core.checks import FloatArray
from duelist.policies.fgts import FGTS

Pair = tuple[int, int]


class Contestant(Protocol):
    """A learner in a loop of one round at a time."""

    def choose(self) -> Pair:
        """Rows of the arms to play; the same row twice for a learner of single arms."""

    def learn(self, first_won: bool) -> None:
        """Take the answer to the last choice."""


class OwnAgent:
    """One live lane of FGTS at its defaults."""

    def __init__(self, features: FloatArray, seed: int) -> None:
        self._features = features
        self._agent = Agent(FGTS(), dim=features.shape[1], seed=seed)

    def choose(self) -> Pair:
        """A pair of different arms."""
        self._duel = self._agent.choose(self._features)
        return self._duel.first, self._duel.second

    def learn(self, first_won: bool) -> None:
        """Who won."""
        self._agent.learn(self._duel, winner=self._duel.first if first_won else self._duel.second)


class VowpalWabbit:
    """Contextual bandit with action features and squarecb exploration; text of the arms made once."""

    def __init__(self, features: FloatArray, seed: int) -> None:
        library = _library("vowpalwabbit")
        self._vw = library.Workspace(f"--cb_explore_adf --squarecb --quiet --random_seed {seed + 1}")
        self._arms = ["| " + " ".join(f"f{i}:{value:g}" for i, value in enumerate(row)) for row in features]
        self._generator = np.random.default_rng(seed)

    def choose(self) -> Pair:
        """An arm drawn from the predicted distribution."""
        probabilities = np.asarray(self._vw.predict(self._arms))
        self._arm = int(np.searchsorted(np.cumsum(probabilities), self._generator.random() * probabilities.sum()))
        self._arm = min(self._arm, len(self._arms) - 1)
        self._probability = float(probabilities[self._arm])
        return self._arm, self._arm

    def learn(self, first_won: bool) -> None:
        """The cost of the arm, at the probability it had."""
        labelled = list(self._arms)
        labelled[self._arm] = f"{self._arm}:{0 if first_won else 1}:{self._probability} {self._arms[self._arm]}"
        self._vw.learn(labelled)


class BayesianBandits:
    """Thompson sampling with one shared logistic regression over the arms' features."""

    def __init__(self, features: FloatArray, seed: int) -> None:
        library = _library("bayesianbandits")
        design = np.ascontiguousarray(features.T)[None]
        self._agent = library.LipschitzContextualAgent(
            arms=[library.Arm(row) for row in range(len(features))],
            policy=library.ThompsonSampling(),
            arm_featurizer=library.FunctionArmFeaturizer(lambda _context, rows: design[:, :, list(rows)]),
            learner=library.BayesianGLM(alpha=1.0, random_state=seed),
            random_seed=seed,
        )
        self._context = np.zeros((1, 1))

    def choose(self) -> Pair:
        """The best arm under one draw."""
        (arm,) = self._agent.pull(self._context)
        return int(arm), int(arm)

    def learn(self, first_won: bool) -> None:
        """The reward of the arm."""
        self._agent.update(self._context, np.array([float(first_won)]))


class MABWiser:
    """LinTS: a linear regression for each arm on a common context."""

    def __init__(self, features: FloatArray, seed: int) -> None:
        library = _library("mabwiser.mab")
        self._mab = library.MAB(list(range(len(features))), library.LearningPolicy.LinTS(alpha=1.0), seed=seed)
        contexts = np.random.default_rng(seed).standard_normal((4096, features.shape[1]))
        self._contexts, self._round = contexts.tolist(), 0
        # It refuses to predict before a first fit.
        self._mab.fit([0], [0.0], [self._contexts[-1]])

    def choose(self) -> Pair:
        """The best arm under one draw for each."""
        self._context = [self._contexts[self._round % len(self._contexts)]]
        self._arm = self._mab.predict(self._context)
        return self._arm, self._arm

    def learn(self, first_won: bool) -> None:
        """The reward of the arm."""
        self._mab.partial_fit([self._arm], [float(first_won)], self._context)
        self._round += 1


class DuelPy:
    """Double Thompson sampling over pairs of arms, without features."""

    def __init__(self, features: FloatArray, seed: int) -> None:
        algorithms, feedback = _library("duelpy.algorithms"), _library("duelpy.feedback")
        self._answers = _Answers(feedback.FeedbackMechanism, list(range(len(features))))
        self._algorithm = algorithms.DoubleThompsonSampling(
            self._answers.mechanism, time_horizon=10**9, random_state=np.random.RandomState(seed)
        )

    def choose(self) -> Pair:
        """Both at once: the library asks its feedback mechanism while it steps, so all the time is spent here."""
        self._algorithm.step()
        return self._answers.last

    def learn(self, first_won: bool) -> None:
        """The answer that the next step will be given."""
        self._answers.first_won = first_won


class _Answers:
    """A feedback mechanism for duelpy that answers the next duel as it was told."""

    def __init__(self, base: Any, arms: list[int]) -> None:
        self.first_won, self.last = True, (0, 0)
        outer = self

        class Mechanism(base):  # type: ignore[misc]
            def duel(self, arm_i: int, arm_j: int) -> bool:
                outer.last = (arm_i, arm_j)
                return outer.first_won

        self.mechanism = Mechanism(arms)


CONTESTANTS: dict[str, Callable[[FloatArray, int], Contestant]] = {
    "duelist FGTS": OwnAgent,
    "Vowpal Wabbit squarecb": VowpalWabbit,
    "bayesianbandits logistic TS": BayesianBandits,
    "MABWiser LinTS": MABWiser,
    "duelpy Double TS": DuelPy,
}


def _library(name: str) -> Any:
    return importlib.import_module(name)
