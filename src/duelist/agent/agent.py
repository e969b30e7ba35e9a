"""The agent: choose a pair, show it to somebody, learn who won. Live use, with no environment and no truth."""

from __future__ import annotations

import json
import threading
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.agent.duel import Duel, Winner
from duelist.agent.files import read_whole, write_whole
from duelist.agent.lane import Lane
from duelist.core.actions import ActionSet, FiniteActions
from duelist.core.checks import finite_array, whole_number
from duelist.core.errors import InvalidInputError, SavedStateError
from duelist.core.lanes import Problem
from duelist.core.saved import from_bytes, to_bytes
from duelist.policies.base import Policy
from duelist.policies.described import described, policy_from
from duelist.policies.registry import POLICIES
from duelist.version import __version__

_FORMAT = 1
_REMEMBERED_SETS = 64


class Agent:
    """A policy in live use.

    Answers may come late, in any order, or never. An agent may be used from several threads. All that it keeps beyond the
    policy's own state are the duels that wait for an answer, at most `max_pending`, and a byte for every duel ever asked.

    Args:
        policy: hyper-parameters, for example `FGTS()`.
        dim: length of a feature vector.
        seed: names all random numbers: the same seed, features and answers give the same duels.
        horizon: how many duels will be learnt, if anybody knows.
        max_pending: how many duels may wait for an answer. One more drops the oldest: its answer is then refused.

    Example:
        >>> import duelist
        >>> features = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
        >>> agent = Agent(duelist.FGTS(), dim=2, seed=0)
        >>> for _ in range(30):
        ...     duel = agent.choose(features)
        ...     agent.learn(duel, winner=min(duel.first, duel.second))
        >>> agent.rounds
        30
    """

    def __init__(self, policy: Policy, *, dim: int, seed: int = 0, horizon: int | None = None, max_pending: int = 1024) -> None:
        for verb in ("start", "choose", "learn", "report"):
            if isinstance(policy, type) or not callable(getattr(policy, verb, None)):
                raise InvalidInputError(f"policy must be a policy such as FGTS(); got {policy!r}, which cannot {verb}.")
        whole_number("max_pending", max_pending, at_least=1)
        self._lane = Lane(policy, Problem(dim=dim, horizon=horizon, live=True), whole_number("seed", seed), max_pending)
        self._sets: dict[tuple[tuple[int, ...], bytes], FiniteActions] = {}
        self._lock = threading.RLock()

    @property
    def policy(self) -> Policy:
        """The hyper-parameters."""
        return self._lane.policy

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self._lane.problem.dim

    @property
    def rounds(self) -> int:
        """Duels learnt so far."""
        return self._lane.rounds

    @property
    def pending(self) -> tuple[Duel, ...]:
        """Duels that wait for an answer, oldest first."""
        with self._lock:
            return self._lane.pending()

    def choose(self, features: npt.ArrayLike | ActionSet) -> Duel:
        """The next two candidates to compare.

        Args:
            features: (n_arms, dim) one row a candidate, or an action set of one lane.
        """
        actions = self._actions(features)
        with self._lock:
            return self._lane.choose(actions)

    def learn(self, duel: Duel | int, winner: Winner) -> None:
        """Learn who won.

        Args:
            duel: what `choose` returned, or its id.
            winner: the row of the winner, `duel.first` or `duel.second`; or the word "first" or "second".
        """
        with self._lock:
            self._lane.learn(*self._lane.answer(duel, winner))

    def skip(self, duel: Duel | int) -> None:
        """Say that a duel will not be answered. Nothing is learnt from it."""
        with self._lock:
            self._lane.skip(duel)

    def report(self) -> dict[str, float]:
        """Numbers for a person: duels asked, learnt and waiting, and how the policy is doing."""
        with self._lock:
            lane = self._lane
            told = {name: float(column[0]) for name, column in lane.policy.report(lane.state).items()}
            return {"asked": len(lane.endings), "rounds": lane.rounds, "pending": len(lane.waiting), **told}

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, all of it or nothing. `Agent.load` goes on from it bit for bit."""
        with self._lock:
            lane = self._lane
            registered = POLICIES.get(type(lane.policy).__name__) is type(lane.policy)
            data = to_bytes(
                {
                    "agent": _FORMAT,
                    "version": __version__,
                    "policy": json.dumps(described(lane.policy)) if registered else None,
                    "policy_name": type(lane.policy).__name__,
                    "dim": lane.problem.dim,
                    "seed": lane.streams.seed,
                    "horizon": lane.problem.horizon,
                    "max_pending": lane.max_pending,
                    "lane": lane.to_saved(),
                }
            )
        write_whole(Path(path), data)

    @classmethod
    def load(cls, path: str | PathLike[str], *, policy: Policy | None = None) -> Agent:
        """The agent that `save` wrote.

        Args:
            path: the file.
            policy: the hyper-parameters, needed only where the policy is not one of duelist's own.
        """
        saved = from_bytes(read_whole(Path(path)))
        if not isinstance(saved, dict) or saved.get("agent") != _FORMAT:
            raise SavedStateError(f"{path} must hold a saved agent of format {_FORMAT}; got another kind of state.")
        try:
            if policy is None:
                policy = _saved_policy(saved)
            agent = cls(
                policy, dim=saved["dim"], seed=saved["seed"], horizon=saved["horizon"], max_pending=saved["max_pending"]
            )
            agent._lane.restore(saved["lane"])
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise SavedStateError(
                f"{path} was written by duelist {saved.get('version')} and does not fit this one ({error}). "
                f"Load it with the version that wrote it."
            ) from error
        return agent

    def _actions(self, features: Any) -> ActionSet:
        """The action set of these features; the same object while they are offered again, which saves checking them again."""
        if hasattr(features, "best") and hasattr(features, "digest"):
            return features  # type: ignore[no-any-return]
        plain = type(features) is np.ndarray and features.dtype == np.float64 and features.ndim == 2
        array = features if plain else finite_array("features", features, "(n_arms, dim)", 2)
        key = (array.shape, array.tobytes())
        with self._lock:
            known = self._sets.get(key)
            if known is None:
                known = FiniteActions(array.copy())
                if len(self._sets) >= _REMEMBERED_SETS:
                    del self._sets[next(iter(self._sets))]
                self._sets[key] = known
            return known


def _saved_policy(saved: dict[str, Any]) -> Policy:
    if saved["policy"] is None:
        raise SavedStateError(
            f"the saved agent plays {saved['policy_name']}, which is not one of duelist's policies. "
            f"Pass it: Agent.load(path, policy={saved['policy_name']}(...))."
        )
    policy: Policy = policy_from(json.loads(saved["policy"]))
    return policy
