"""The agent: choose a pair, show it to somebody, learn who won. Live use, with no environment and no truth."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.agent.duel import Duel, Winner
from duelist.agent.files import read_whole, write_whole
from duelist.agent.keepers import InMemory, Keeper
from duelist.agent.lane import Lane, identity
from duelist.agent.on_journal import OnJournal
from duelist.core.actions import ActionSet, FiniteActions
from duelist.core.checks import finite_array, whole_number
from duelist.core.errors import InvalidInputError, SavedStateError
from duelist.core.lanes import Problem
from duelist.core.saved import from_bytes, to_bytes
from duelist.journal.base import Journal
from duelist.policies.base import Policy
from duelist.policies.described import policy_from
from duelist.version import __version__

_FORMAT = 1
_REMEMBERED_SETS = 64


class Agent:
    """A policy in live use.

    Answers may come late, in any order, or never. An agent may be used from several threads. All that it keeps beyond the
    policy's own state are the duels that wait for an answer, at most `max_pending`, and nine bytes for every duel ever asked.

    On a journal, what was asked and told is durable before `choose`, `learn` and `skip` return. Making an agent on a journal
    that was used before goes on bit for bit, and several processes may share one journal. A duel that is told twice then
    counts once: the same answer again changes nothing, since whoever sent it could not know that it had arrived. In memory
    there is no such doubt, and telling twice is an error.

    Args:
        policy: hyper-parameters, for example `FGTS()`.
        dim: length of a feature vector.
        seed: names all random numbers: the same seed, features and answers give the same duels.
        horizon: how many duels will be learnt, if anybody knows.
        max_pending: how many duels may wait for an answer. One more drops the oldest: its answer is then refused.
        journal: where to keep everything, for example `SQLiteJournal("votes.db")`; None for memory only. The caller closes it.
        snapshot_every: events on the journal between two snapshots: fewer make restarts faster and the journal larger.

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

    def __init__(
        self,
        policy: Policy,
        *,
        dim: int,
        seed: int = 0,
        horizon: int | None = None,
        max_pending: int = 1024,
        journal: Journal | None = None,
        snapshot_every: int = 1000,
    ) -> None:
        for verb in ("start", "choose", "learn", "report"):
            if isinstance(policy, type) or not callable(getattr(policy, verb, None)):
                raise InvalidInputError(f"policy must be a policy such as FGTS(); got {policy!r}, which cannot {verb}.")
        whole_number("max_pending", max_pending, at_least=1)
        whole_number("snapshot_every", snapshot_every, at_least=1)
        problem = Problem(dim=dim, horizon=horizon, live=True)
        whole_number("seed", seed)

        def new_lane() -> Lane:
            return Lane(policy, problem, seed, max_pending)

        self._keeper: Keeper = InMemory(new_lane()) if journal is None else OnJournal(new_lane, journal, snapshot_every)
        self._sets: dict[tuple[tuple[int, ...], bytes], FiniteActions] = {}

    @property
    def policy(self) -> Policy:
        """The hyper-parameters."""
        return self._keeper.lane.policy

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self._keeper.lane.problem.dim

    @property
    def rounds(self) -> int:
        """Duels learnt so far."""
        return self._keeper.lane.rounds

    @property
    def pending(self) -> tuple[Duel, ...]:
        """Duels that wait for an answer, oldest first."""
        with self._keeper.lock:
            return self._keeper.lane.pending()

    def choose(self, features: npt.ArrayLike | ActionSet) -> Duel:
        """The next two candidates to compare.

        Args:
            features: (n_arms, dim) one row a candidate, or an action set of one lane.
        """
        return self._keeper.choose(self._actions(features))

    def learn(self, duel: Duel | int, winner: Winner) -> None:
        """Learn who won.

        Args:
            duel: what `choose` returned, or its id.
            winner: the row of the winner, `duel.first` or `duel.second`; or the word "first", "second" or "tie". A tie counts
                as half a win each way.
        """
        self._keeper.learn(duel, winner)

    def skip(self, duel: Duel | int) -> None:
        """Say that a duel will not be answered. Nothing is learnt from it."""
        self._keeper.skip(duel)

    def refresh(self) -> None:
        """Take in what other processes put on the journal. Asking and telling do so by themselves."""
        self._keeper.refresh()

    def report(self) -> dict[str, float]:
        """Numbers for a person: duels asked, learnt and waiting, and how the policy is doing."""
        with self._keeper.lock:
            lane = self._keeper.lane
            told = {name: float(column[0]) for name, column in lane.policy.report(lane.state).items()}
            return {"asked": len(lane.endings), "rounds": lane.rounds, "pending": len(lane.waiting), **told}

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, all of it or nothing. `Agent.load` goes on from it bit for bit, in memory."""
        with self._keeper.lock:
            lane = self._keeper.lane
            data = to_bytes({"agent": _FORMAT, "version": __version__, **identity(lane), "lane": lane.to_saved()})
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
            agent._keeper.lane.restore(saved["lane"])
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
        with self._keeper.lock:
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
    policy: Policy = policy_from(saved["policy"])
    return policy
