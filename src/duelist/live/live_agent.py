"""What every agent does, whether it asks about duels or slates: in memory or on a journal, saved and loaded."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from os import PathLike
from pathlib import Path
from typing import Any, Generic, NoReturn, ParamSpec, Self, TypeVar

import numpy as np
import numpy.typing as npt

from duelist.actions.finite import ActionSet, FiniteActions, digest_of
from duelist.core.arrays import NewestWithin
from duelist.core.checks import finite_array, finite_number, whole_number
from duelist.core.errors import InvalidInputError, SavedStateError, UnknownDuelError
from duelist.core.files import read_whole, write_whole
from duelist.core.lanes import Problem
from duelist.core.serialize import from_bytes, to_bytes
from duelist.journal.base import Journal
from duelist.journal.replica import Replica
from duelist.live.agent_log import (
    OFFERED_SETS,
    SET_MEMORY,
    AgentFold,
    Ask,
    Forget,
    LoggedState,
    Open,
    Skip,
    Tell,
    describe_policy,
    identity_of,
    new_token,
    with_defaults,
)
from duelist.live.agent_state import AgentState, Asked, Shown
from duelist.live.beliefs import Beliefs
from duelist.live.lane import LivePolicy
from duelist.live.vote_log import Selection
from duelist.policies.codec import policy_from_mapping
from duelist.version import __version__

Result = TypeVar("Result")
P = ParamSpec("P")
_FORMAT = 1
# An answered question is two events, and what a snapshot writes anew grows with them, slowly: with snapshots a part of the
# journal apart, their cost per vote stays bounded, and so does the time of a restart.
_GROWTH = 200


def in_thread(method: Callable[P, None]) -> Callable[P, Coroutine[Any, Any, None]]:
    """The method, run in a thread, for code that must not block. It is done even where waiting is cancelled."""

    @wraps(method)
    async def run(*arguments: P.args, **named: P.kwargs) -> None:
        await asyncio.shield(asyncio.to_thread(method, *arguments, **named))

    run.__doc__ = f"`{method.__name__}` in a thread, for code that must not block. It is done even where waiting is cancelled."
    return run


class LiveAgent(ABC, Generic[Shown, Asked]):
    """The part that `Agent` and `SlateAgent` share; they document the arguments."""

    def __init__(
        self,
        policy: LivePolicy[Shown],
        *,
        dim: int,
        seed: int = 0,
        horizon: int | None = None,
        max_pending: int = 1024,
        journal: Journal | None = None,
        snapshot_every: int = 1000,
        keep_votes: bool = True,
        exploration: float = 0.0,
        reliability: bool = False,
    ) -> None:
        self._check_policy(policy)
        whole_number("max_pending", max_pending, at_least=1)
        whole_number("snapshot_every", snapshot_every, at_least=1)
        whole_number("seed", seed)
        problem = Problem(dim=dim, horizon=horizon, live=True)

        def new_state(another: Any = None) -> AgentState[Shown, Asked]:
            keep = keep_votes and journal is None
            return self._new_state(another or policy, problem, seed, max_pending, keep, exploration, reliability)

        if reliability and not keep_votes:
            raise InvalidInputError("reliability=True keeps every vote with its voter; got keep_votes=False. Leave one out.")
        self._keep_votes = keep_votes
        self._lock = threading.RLock()
        self._sets = NewestWithin[bytes, FiniteActions](limit=OFFERED_SETS, most_bytes=SET_MEMORY)
        self._beliefs = Beliefs(seed)
        _let_survive_forks(self)
        self._memory = new_state()
        self._memory.token = new_token()
        if journal is not None and not self._is_bounded():
            self._keep_votes = True  # compacting again and again would write the whole history each time
        self._replica = None if journal is None else self._open(journal, new_state, snapshot_every)

    def _open(
        self, journal: Journal, new_state: Callable[[Any], AgentState[Shown, Asked]], snapshot_every: int
    ) -> Replica[LoggedState[Shown, Asked]]:
        identity = identity_of(self._memory)
        fold = AgentFold(new_state, identity)
        fold.dump(
            LoggedState(self._memory)
        )  # a state that no snapshot can hold is refused now and not in the middle of the votes
        for first in journal.read():
            fold.check_opened(first, journal.read)
            break
        replica = Replica(journal, fold, snapshot_every=snapshot_every, growth=_GROWTH, keep_events=self._keep_votes)
        fold.check_policy(replica.state.agent.lane.policy)
        replica.commit(Open(identity))
        return replica

    @abstractmethod
    def _check_policy(self, policy: Any) -> None:
        """Refuse what cannot play here."""

    @abstractmethod
    def _new_state(
        self,
        policy: Any,
        problem: Problem,
        seed: int,
        max_pending: int,
        keep_votes: bool,
        exploration: float,
        reliability: bool,
    ) -> AgentState[Shown, Asked]:
        """The state before the first question."""

    def _is_bounded(self) -> bool:
        """Whether a Gaussian is all that the policy keeps of its votes."""
        lane = self._memory.lane
        belief = getattr(lane.policy, "running_belief", None)
        return belief is not None and belief(lane.state) is not None

    @property
    def _state(self) -> AgentState[Shown, Asked]:
        return self._memory if self._replica is None else self._replica.state.agent

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self._memory.lane.dim

    @property
    def rounds(self) -> int:
        """Answers learnt so far."""
        return self._state.rounds

    @property
    def pending(self) -> tuple[Asked, ...]:
        """What waits for an answer, oldest first."""
        return self._read(lambda state: state.questions())

    def choose(self, features: npt.ArrayLike | ActionSet) -> Asked:
        """The next candidates to compare.

        Args:
            features: (n_arms, dim) one row per candidate, or an action set of one lane.
        """
        actions = self._actions(features)
        if self._replica is not None:
            question: Asked = self._replica.commit(Ask(actions))
            return question
        with self._lock:
            return self._memory.ask(actions)

    async def choose_async(self, features: npt.ArrayLike | ActionSet, **conditions: Any) -> Asked:
        """`choose` for code that must not block: it runs in a thread. Cancelled, it skips its question when that comes.

        Args:
            features: as in `choose`.
            conditions: what else `choose` takes, such as `voter`.
        """
        loop = asyncio.get_running_loop()
        started = loop.run_in_executor(None, partial(self.choose, features, **conditions))

        def take_back(done: asyncio.Future[Asked]) -> None:
            if not done.cancelled() and done.exception() is None:
                loop.run_in_executor(None, self.skip, done.result())

        try:
            return await asyncio.shield(started)
        except asyncio.CancelledError:
            started.add_done_callback(take_back)
            raise

    def skip(self, question: Asked | int) -> None:
        """Say that there will be no answer. Nothing is learnt."""
        if self._replica is not None:
            self._replica.commit(Skip(question))
            return
        with self._lock:
            self._memory.skip(self._memory.find(question)[0])

    skip_async = in_thread(skip)

    def refresh(self) -> None:
        """Take in what other processes put on the journal. Asking and telling do so by themselves."""
        if self._replica is not None:
            self._replica.refresh()

    def compact(self) -> None:
        """Drop the past and keep what was learnt from it: on a journal, one event takes the place of all events so far.

        Nothing is left of them in the file: no features, no answers, no voter's name. What was told before can no longer be
        taken back, nor learnt by another policy; what waits for an answer still waits. It writes the file anew, so call it when
        nobody minds waiting. In memory, what is kept for `forget` is dropped, and no more is kept.
        """
        if self._replica is not None:
            self._replica.compact()
            return
        with self._lock:
            self._memory.log = None

    def report(self) -> dict[str, float]:
        """Human-readable numbers: how much was asked, learnt and is pending, and how the policy is doing."""
        return self._read(lambda state: state.report())

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one file, all of it or nothing. `load` goes on from it bit for bit, in memory."""

        def dump(state: AgentState[Shown, Asked]) -> bytes:
            header = {"agent": _FORMAT, "version": __version__, "token": state.token, **identity_of(state)}
            header["exploration"] = state.exploration
            votes = None if state.log is None else state.log.to_saved()
            return to_bytes({**header, "lane": state.to_saved(), "votes": votes, "beliefs": self._beliefs.to_saved()})

        write_whole(Path(path), self._read(dump))

    @classmethod
    def load(cls, path: str | PathLike[str], *, policy: Any = None) -> Self:
        """The agent that `save` wrote.

        Args:
            path: the file.
            policy: the hyper-parameters, needed only where the file cannot describe them: for a policy that is not one of
                duelist's own, or that has such a part. Another policy than the one that was saved is refused.
        """
        data = read_whole(Path(path))
        saved = from_bytes(data)
        if not isinstance(saved, dict) or saved.get("agent") != _FORMAT:
            raise SavedStateError(f"{path} must hold a saved agent of format {_FORMAT}; got another kind of state.")
        if policy is not None:
            _check_as_saved(saved, policy)
        try:
            settings = {name: saved[name] for name in ("dim", "seed", "horizon", "max_pending")}
            # Version 0.1.0 knew neither.
            settings |= {"exploration": saved.get("exploration", 0.0), "reliability": saved.get("reliability", False)}
            agent = cls(_saved_policy(saved, cls.__name__) if policy is None else policy, **settings)
            agent._memory.restore(saved["lane"])
            if saved.get("votes") is None or agent._memory.log is None:
                agent._memory.log = None
            else:
                agent._memory.log.fill_from(saved["votes"])
            # A file of version 0.1.0 says nothing of its agent: whoever loads the same file has the same agent.
            agent._memory.token = saved.get("token") or hashlib.blake2b(data, digest_size=8).hexdigest()
            agent._beliefs.restore(saved.get("beliefs"))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise SavedStateError(
                f"{path} was written by duelist {saved.get('version')} and does not fit this one ({error}). "
                f"Load it with the version that wrote it."
            ) from error
        return agent

    def __reduce__(self) -> NoReturn:
        raise InvalidInputError(
            f"a {type(self).__name__} cannot be sent to another process as it is. Let it save a file and load that there, or "
            f"make an agent there on the same journal."
        )

    def _tell(self, question: Asked | int, answer: Any, voter: str | None = None, time: float | None = None) -> None:
        """On a journal the same answer again is no news; in memory telling twice is an error."""
        if voter is not None and not isinstance(voter, str):
            raise InvalidInputError(f"voter must be text; got {voter!r}.")
        when = None if time is None else finite_number("time", time)
        if self._replica is not None:
            self._replica.commit(Tell(question, answer, voter, when))
            return
        with self._lock:
            self._memory.tell(*self._memory.read_answer(question, answer), voter, when)

    def _forget(self, question: Asked | int | None, voter: str | None, since: float | None, until: float | None) -> int:
        """Take votes back; see `Agent.forget`."""
        number = None if question is None else self._read(lambda state: state.find(question))[0]
        selection = Selection(number, voter, since, until)
        selection.check()
        if number is not None and self._read(lambda state: state.answer_to(number)) is None:
            noun = self._memory.kind.noun
            raise UnknownDuelError(
                f"{noun} {number} has no answer that could be forgotten. Use skip for one that will have none."
            )
        self._check_votes_kept("forget")
        self._beliefs.clear()
        if self._replica is not None:
            return self._replica.commit(Forget(selection))
        with self._lock:
            memory: Any = self._memory  # which keeps a log, and so can forget
            forgotten: int = memory.forget(selection)
            return forgotten

    def _check_votes_kept(self, verb: str) -> None:
        if not self._keep_votes or (self._replica is None and self._memory.log is None):
            raise InvalidInputError(
                f"this agent cannot {verb}: it did not keep what it was asked and told. Make it with keep_votes=True, in "
                f"memory or on a journal. (A file of version 0.1.0, or one saved by an agent on a journal, does not hold it.)"
            )

    def _read(self, question: Callable[[AgentState[Shown, Asked]], Result]) -> Result:
        if self._replica is not None:
            return self._replica.read(lambda logged: question(logged.agent))
        with self._lock:
            return question(self._memory)

    def _actions(self, features: Any) -> ActionSet:
        """The action set of these features; the same object while they are offered again, which saves checking them again."""
        if type(features) is np.ndarray and features.dtype == np.float64 and features.ndim == 2:
            array = features
        elif hasattr(features, "best") and hasattr(features, "digest"):
            return features  # type: ignore[no-any-return]
        else:
            array = finite_array("features", features, "(n_arms, dim)", 2)
        digest = digest_of(array[None])
        with self._lock:
            known = self._sets.get(digest)
            if known is None:
                known = FiniteActions(array)
                known.__dict__["digest"] = digest  # worked out once: of 50,000 arms it takes longer than choosing
                self._sets.add(digest, known, known.features.nbytes)
            return known


_agents: weakref.WeakSet[LiveAgent[Any, Any]] | None = None


def _let_survive_forks(agent: LiveAgent[Any, Any]) -> None:
    """Have every fork wait until nobody is half way through a change of this agent: the child finds it whole and free."""
    global _agents  # a fork concerns the whole process, as do the hooks that Python calls then
    if _agents is None and hasattr(os, "register_at_fork"):
        _agents = weakref.WeakSet()
        held: list[Any] = []

        def hold() -> None:
            # As in `Agent.predict`: beliefs first, then the agent.
            held.extend(lock for one in _agents or () for lock in (one._beliefs.lock, one._lock))
            for lock in held:
                lock.acquire()

        def let_go() -> None:
            while held:
                held.pop().release()

        os.register_at_fork(before=hold, after_in_parent=let_go, after_in_child=let_go)
    if _agents is not None:
        _agents.add(agent)


def check_methods(policy: object, example: str, methods: tuple[str, ...]) -> None:
    """Refuse what is not a policy."""
    for method in methods:
        if isinstance(policy, type) or not callable(getattr(policy, method, None)):
            raise InvalidInputError(
                f"policy must be a policy such as {example}; got {policy!r}, which has no method {method} of its own. "
                f"A policy inherits from duelist.policies.Policy."
            )


def _check_as_saved(saved: dict[str, Any], policy: Any) -> None:
    """Refuse a policy that is not the one that was saved: the state of one means nothing to another."""
    mine, theirs = describe_policy(policy), saved.get("policy")
    known = mine is not None and theirs is not None
    if type(policy).__name__ != saved.get("policy_name") or (known and with_defaults(mine) != with_defaults(theirs)):
        raise InvalidInputError(
            f"the saved agent plays {theirs or saved.get('policy_name')}; got the policy {policy!r}, to which its state means "
            f"nothing. Load it without policy=."
        )


def _saved_policy(saved: dict[str, Any], agent: str) -> Any:
    if saved["policy"] is None:
        raise SavedStateError(
            f"the saved agent plays {saved['policy_name']}, which is not one of duelist's policies, or has a part that is not, "
            f"and is not in the file. Pass it: {agent}.load(path, policy={saved['policy_name']}(...))."
        )
    return policy_from_mapping(saved["policy"])
