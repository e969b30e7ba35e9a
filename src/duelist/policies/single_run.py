"""Policies written for one run, with no lanes in sight: the author writes three methods about one learner.

    start_one(dim, rng)                            what is known before the first duel: a dict, say
    choose_one(memory, features, rng)              rows (i, j) of features (n_arms, dim)
    learn_one(memory, features, i, j, outcome)     +1 where i won, -1 where j did, 0 for a tie

`memory` is the author's: it may be changed in place, for every call gets a copy of its own. The class plays wherever a policy
plays, one lane after the other. Where speed counts, write a `Policy`, which computes all lanes at once.
"""

from __future__ import annotations

import copy
import numbers
from typing import Any, ClassVar, NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.policies.base import Policy
from duelist.policies.parts.same_arm import require_finite
from duelist.typing import FloatArray, IntArray


@stored("single-run-state")
class SingleRunState(NamedTuple):
    """What was learnt: one memory per lane, and the pairs asked for so far, which name the next random numbers."""

    memories: tuple[Any, ...]
    asked: int


class SingleRun(Policy[SingleRunState]):
    """A policy about one run at a time. Inherit from it in a frozen dataclass of hyper-parameters.

    A memory of numbers, text, arrays, and dicts, lists and tuples of them can be saved and journalled; any other plays, and is
    refused where it would have to be saved. It is copied in every call, so keep sums and not lists that grow with the rounds.

    Example:
        >>> from dataclasses import dataclass
        >>> import duelist
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Greedy(SingleRun):
        ...     rate: float = 0.5
        ...
        ...     def start_one(self, dim, rng):
        ...         return {"theta": np.zeros(dim)}
        ...
        ...     def choose_one(self, memory, features, rng):
        ...         i, j = np.argsort(-(features @ memory["theta"] + 1e-6 * rng.random(len(features))))[:2]
        ...         return i, j
        ...
        ...     def learn_one(self, memory, features, i, j, outcome):
        ...         z = features[i] - features[j]
        ...         memory["theta"] += self.rate * (0.5 + 0.5 * outcome - 1 / (1 + np.exp(-z @ memory["theta"]))) * z
        >>> run = duelist.simulate(Greedy(), duelist.LinearDuels(dim=3, arms=4), rounds=50, trials=20, seed=0)
        >>> bool(run.final_regret.mean() < 45)  # random play: 60
        True
    """

    knows_arms_by_content: ClassVar[bool] = False  # its random numbers know rows

    def start_one(self, dim: int, rng: np.random.Generator) -> Any:
        """What one run knows before its first duel."""
        raise NotImplementedError

    def choose_one(self, memory: Any, features: FloatArray, rng: np.random.Generator) -> tuple[int, int]:
        """Rows (i, j) of features (n_arms, dim) that meet."""
        raise NotImplementedError

    def learn_one(self, memory: Any, features: FloatArray, i: int, j: int, outcome: int) -> Any:
        """Change the memory, or return another: +1 where row i won, -1 where row j did, 0 for a tie."""
        raise NotImplementedError

    def start(self, problem: Problem, streams: Streams) -> SingleRunState:
        """One memory per lane."""
        self._require_written()
        memories = [self.start_one(problem.dim, streams.generator("single run: start", n)) for n in range(problem.lanes)]
        return SingleRunState(tuple(memories), 0)

    def choose(self, state: SingleRunState, actions: ActionSet, streams: Streams) -> tuple[Duels, SingleRunState]:
        """A pair per lane. What `choose_one` changes in the memory stays changed."""
        arms = require_finite(self, actions)
        memories = tuple(map(copy.deepcopy, state.memories))
        pairs = [
            self._rows(self.choose_one(memory, arms.features[n], streams.generator("single run", n, state.asked)), arms.n_arms)
            for n, memory in enumerate(memories)
        ]
        first, second = np.array(pairs, dtype=np.int64).T
        return duels_between(arms, first.copy(), second.copy()), SingleRunState(memories, state.asked + 1)

    def learn(self, state: SingleRunState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> SingleRunState:
        """Every lane learns its outcome."""
        features = require_finite(self, actions).features
        learnt = []
        for n, memory in enumerate(map(copy.deepcopy, state.memories)):
            other = self.learn_one(memory, features[n], int(duels.first[n]), int(duels.second[n]), int(outcomes[n]))
            learnt.append(memory if other is None else other)
        return state._replace(memories=tuple(learnt))

    def _rows(self, pair: Any, n_arms: int) -> tuple[int, int]:
        rows = tuple(pair) if isinstance(pair, tuple | list | np.ndarray) else ()
        if len(rows) != 2 or not all(isinstance(row, numbers.Integral) and 0 <= int(row) < n_arms for row in rows):
            raise InvalidInputError(
                f"{type(self).__name__}.choose_one must return two rows (i, j) from 0 to {n_arms - 1}; got {pair!r}."
            )
        return int(rows[0]), int(rows[1])

    def _require_written(self) -> None:
        for name in ("start_one", "choose_one", "learn_one"):
            if getattr(type(self), name) is getattr(SingleRun, name):
                raise InvalidInputError(f"{type(self).__name__} must have the method {name}; a SingleRun has all three.")
