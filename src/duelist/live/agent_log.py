"""An agent's journal: what was asked and told is durable before a caller hears of it.

The rule of replay. A state is a deterministic fold over these events, and an uninterrupted run and a restart are the same fold:

    opened     policy, dim, seed, horizon, max_pending, version   comes first, and again when the version changes
    asked      id, set, what was shown, stream, policy            the policy's `choose` runs again and moves the chains
    told       id, the answer                                     the policy's `learn` runs again
    skipped    id

The content of an action set is in the blob of the first `asked` event that offers it: its first `set_bytes` bytes. Version
0.1.0 wrote it as an event of its own, `set`, and an event `snapshot` after which every set was written again; both are read.

Random numbers are named by the seed and the number of the question (`stream`), so running `choose` again gives the same chains,
bit for bit, on the same version and machine. Elsewhere arithmetic may differ in the last digit; what the journal says was shown
is what a person saw, so it stands, and the chains remain valid draws of the same posterior.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Any, Generic, NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.errors import DuelistError, InvalidInputError, SavedStateError
from duelist.core.serialize import from_bytes, to_bytes
from duelist.journal.base import Event, Record
from duelist.journal.replica import Fold
from duelist.live.agent_state import SKIPPED, AgentState, Asked, Shown
from duelist.live.pending import Parts
from duelist.policies.codec import policy_from_mapping, to_mapping
from duelist.version import __version__

_FORMAT = 1
_OFFERED_SETS = 64
_BROKEN = (KeyError, TypeError, ValueError, AttributeError, IndexError)


class LoggedState(Generic[Shown, Asked]):
    """An agent's state, and what its journal holds beside it.

    Attributes:
        agent: the state.
        offered: action sets whose content need not be written again, by digest: the latest few.
        version: version of duelist that wrote the latest `opened` event.
        opened_at: position of that event.
    """

    def __init__(self, agent: AgentState[Shown, Asked]) -> None:
        self.agent = agent
        self.offered: dict[str, ActionSet] = {}
        self.version, self.opened_at = "", 0

    def offer(self, digest: str, actions: ActionSet) -> None:
        """Remember a set that is in the journal."""
        if len(self.offered) >= _OFFERED_SETS:
            del self.offered[next(iter(self.offered))]
        self.offered[digest] = actions


class AgentFold(Fold[LoggedState[Shown, Asked]]):
    """What the events of an agent mean.

    Args:
        new_state: makes the state before the first event.
        identity: what makes the agent the one it is, see `identity_of`.
    """

    def __init__(self, new_state: Callable[[], AgentState[Shown, Asked]], identity: dict[str, Any]) -> None:
        self._new_state = new_state
        self._identity: dict[str, Any] = json.loads(json.dumps(identity))

    def new(self) -> LoggedState[Shown, Asked]:
        """Nothing asked yet."""
        return LoggedState(self._new_state())

    def apply(self, state: LoggedState[Shown, Asked], record: Record) -> None:
        """Fold one event."""
        kind, body = record.kind, record.body
        if kind == "asked":
            self._apply_asked(state, record)
        elif kind == "told":
            state.agent.tell(body["id"], state.agent.kind.answer_from(body))
        elif kind == "skipped":
            state.agent.skip(body["id"])
        elif kind == "set":
            state.offer(body["set"], from_bytes(record.blob))
        elif kind == "snapshot":
            state.offered.clear()
        else:
            self.check_opened(record)
            state.opened_at, state.version = record.position, body["version"]
            state.agent.token = body.get("agent", state.agent.token)

    def dump(self, state: LoggedState[Shown, Asked]) -> bytes:
        """A snapshot."""
        return to_bytes(
            {
                "agent": _FORMAT,
                "version": state.version,
                "token": state.agent.token,
                "opened_at": state.opened_at,
                "offered": list(state.offered.values()),
                "lane": state.agent.to_saved(),
            }
        )

    def load(self, data: bytes) -> LoggedState[Shown, Asked]:
        """The state of a snapshot, of version 0.1.0 as well, which offered nothing."""
        saved, state = from_bytes(data), self.new()
        if not isinstance(saved, dict) or saved.get("agent") != _FORMAT:
            raise SavedStateError(f"expected a snapshot of an agent of format {_FORMAT}; got another kind of state.")
        try:
            state.agent.restore(saved["lane"])
            state.version, state.opened_at = saved["version"], saved["opened_at"]
            state.agent.token = saved.get("token", "")
            state.offered = {actions.digest.hex(): actions for actions in saved.get("offered", [])}
        except _BROKEN as error:
            raise SavedStateError(f"the snapshot does not fit this version of duelist ({error}).") from error
        return state

    def check_opened(self, record: Record) -> None:
        """Refuse a journal of another agent, or of something else."""
        if record.kind != "opened":
            raise SavedStateError(
                f"event {record.position} of the journal is {record.kind!r}, which an agent did not write. Use another journal."
            )
        for name, mine in self._identity.items():
            theirs = record.body.get(name)
            if name == "policy" and (theirs is None or mine is None):
                continue  # a policy that could not be described: its name must do
            if theirs != mine and not (name == "policy" and with_defaults(theirs) == mine):
                raise InvalidInputError(
                    f"the journal belongs to an agent with {name} {theirs!r}; got {mine!r}. Make the agent as it was made "
                    f"first, or use another journal."
                )

    def _apply_asked(self, state: LoggedState[Shown, Asked], record: Record) -> None:
        agent, digest, size = state.agent, record.body["set"], record.body.get("set_bytes", 0)
        proposal = agent.lane.proposal
        if size:
            mine = proposal is not None and proposal.actions.digest.hex() == digest
            state.offer(digest, proposal.actions if proposal and mine else from_bytes(record.blob[:size]))
        actions = state.offered.get(digest)
        if actions is None:
            raise SavedStateError(
                f"event {record.position} offers a set that the journal does not hold. Restore it from a copy."
            )
        agent.ask_again(actions, agent.kind.from_parts(_parts(agent.kind.rows_from(record.body), actions, record, size)))


class Open(NamedTuple):
    """Say who writes, where this version did not yet."""

    identity: dict[str, Any]

    def decide(self, state: LoggedState[Any, Any], at: int) -> Event | None:  # noqa: ARG002 - agents need no time
        """An `opened` event."""
        if state.version == __version__ and state.agent.token:
            return None
        return Event("opened", {**self.identity, "version": __version__, "agent": state.agent.token or new_token()})

    def reply(self, state: LoggedState[Any, Any], event: Event | None) -> None:
        """Nothing."""


class Ask(NamedTuple):
    """Ask for a pair or a slate."""

    actions: ActionSet

    def decide(self, state: LoggedState[Any, Any], at: int) -> Event:  # noqa: ARG002
        """An `asked` event."""
        agent, digest = state.agent, self.actions.digest.hex()
        # Saved before asking: a set that cannot be stored is refused first.
        content = b"" if digest in state.offered else to_bytes(self.actions)
        proposal = agent.lane.propose(self.actions)
        number = len(agent.endings)
        body = {"id": number, "set": digest, **agent.kind.asked_facts(proposal), "stream": number, "policy": state.opened_at}
        if content:
            body["set_bytes"] = len(content)
        return Event("asked", body, content + _blob(agent.kind.to_parts(proposal.shown)))

    def reply(self, state: LoggedState[Any, Any], event: Event | None) -> Any:
        """The question."""
        number = len(state.agent.endings) - 1
        question = state.agent.view(number, state.agent.pending[number].shown)
        return question if event is None else state.agent.kind.with_facts(question, event.body)


class Tell(NamedTuple):
    """Give an answer."""

    question: Any
    answer: Any

    def decide(self, state: LoggedState[Any, Any], at: int) -> Event | None:  # noqa: ARG002
        """A `told` event; nothing where the same answer was given before."""
        agent = state.agent
        number, answer = agent.read_answer(self.question, self.answer)
        if agent.answer_to(number) == answer:
            return None
        agent.refuse_ended(number)
        return Event("told", {"id": number, **agent.kind.told_facts(answer)})

    def reply(self, state: LoggedState[Any, Any], event: Event | None) -> None:
        """Nothing."""


class Skip(NamedTuple):
    """Say that there will be no answer."""

    question: Any

    def decide(self, state: LoggedState[Any, Any], at: int) -> Event | None:  # noqa: ARG002
        """A `skipped` event; nothing where it was skipped before."""
        number, _ = state.agent.find(self.question)
        if state.agent.endings[number] == SKIPPED:
            return None
        state.agent.refuse_ended(number)
        return Event("skipped", {"id": number})

    def reply(self, state: LoggedState[Any, Any], event: Event | None) -> None:
        """Nothing."""


def new_token() -> str:
    """A mark that no other agent has."""
    return secrets.token_hex(8)


def describe_policy(policy: Any) -> dict[str, Any] | None:
    """A policy as JSON values; None for a policy of the user's own, or one with a part that is."""
    try:
        return to_mapping(policy)
    except InvalidInputError:
        return None


def identity_of(agent: AgentState[Any, Any]) -> dict[str, Any]:
    """What makes an agent the one it is, as JSON values: two agents of one identity fold the same events to the same state."""
    problem, policy = agent.lane.problem, agent.lane.policy
    return {
        "policy": describe_policy(policy),
        "policy_name": type(policy).__name__,
        "dim": problem.dim,
        "seed": agent.lane.seed,
        "horizon": problem.horizon,
        "max_pending": agent.max_pending,
    }


def with_defaults(description: Any) -> Any:
    """A description of another version with the hyper-parameters that came later."""
    try:
        return json.loads(json.dumps(to_mapping(policy_from_mapping(description))))
    except DuelistError:
        return description


def _blob(parts: Parts) -> bytes:
    """What rows do not say: the features, where arms have no rows, and then the policy's note, if it left one."""
    features = b"" if parts.rows[0] >= 0 else parts.features.tobytes()
    return features + (b"" if parts.note is None else parts.note.tobytes())


def _parts(rows: list[int], actions: ActionSet, record: Record, start: int) -> Parts:
    """What was shown, from the rows of its event and the blob from `start` on."""
    numbers = np.frombuffer(record.blob, offset=start).copy() if len(record.blob) > start else np.empty(0)
    size = 0 if rows[0] >= 0 else len(rows) * actions.dim
    note = numbers[size:] if len(numbers) > size else None
    if size:
        return Parts(np.array(rows), numbers[:size].reshape(len(rows), actions.dim), note)
    if not isinstance(actions, FiniteActions):
        raise SavedStateError(f"event {record.position} names rows of a set that has none.")
    return Parts(np.array(rows), actions.features[0, rows], note)
