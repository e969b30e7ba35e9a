"""An agent's journal: what was asked and told is durable before a caller hears of it.

The rule of replay. A state is a deterministic fold over these events, and an uninterrupted run and a restart are the same fold:

    opened     policy, dim, seed, horizon, max_pending, version   comes first, and again when the version changes
    asked      id, set, what was shown, stream, policy            the policy's `choose` runs again and moves the chains; which
               voter, exclude, cost, names                        questions are open at that point is part of the fold, and
                                                                  so is who saw which pair, and how often what was shown
    told       id, the answer, voter, time                        the policy's `learn` runs again
    skipped    id
    imported   votes                                              votes from elsewhere, in the blob
    forgot     duel, voter, since, until                          takes votes back
    policy     policy                                             goes over to another policy
    guardrails guardrails                                         what later choices keep to
    cost_weight weight                                            what their costs are multiplied by
    compacted  what opened says, and the state in the blob        stands for every event up to it; those are gone

`forgot` and `policy` change the past: the state is folded again from the first event on, without the votes that any later event
takes back (their duels count as skipped) and with the latest policy. What was compacted away stays as it is: its votes can
no longer be taken back, nor be learnt by another policy.

The content of an action set is in the blob of the first `asked` event that offers it: its first `set_bytes` bytes. Version
0.1.0 wrote it as an event of its own, `set`, and an event `snapshot` after which every set was written again; both are read.

Random numbers are named by the seed and the number of the question (`stream`), so running `choose` again gives the same chains,
bit for bit, on the same version and machine. Elsewhere arithmetic may differ in the last digit; what the journal says was shown
is what a person saw, so it stands, and the chains remain valid draws of the same posterior.
"""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Callable, Collection, Iterator
from typing import Any, Generic, NamedTuple

import numpy as np

from duelist.actions.blocks import BlockActions
from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.arrays import NewestWithin
from duelist.core.errors import DuelistError, InvalidInputError, SavedStateError
from duelist.core.serialize import Pieces, from_bytes, pack_in_steps, pack_piece_in_steps, to_arrays, to_bytes
from duelist.journal.base import COMPACTED, Event, Record
from duelist.journal.chunks import DumpInSteps
from duelist.journal.replica import BaseInSteps, Fold
from duelist.live.agent_state import SKIPPED, AgentState, Asked, Shown
from duelist.live.guardrails import Conditions, Guardrails
from duelist.live.pending import PACKED_FORMS, from_blob, pack_actions, to_blob, unpack_actions
from duelist.live.vote_log import Selection
from duelist.live.votes import Votes
from duelist.policies.codec import policy_from_mapping, to_mapping
from duelist.version import __version__

_FORMAT = 1
OFFERED_SETS = 64
SET_MEMORY = 2**24  # bytes of features: of large sets fewer than 64 are remembered, and written again when they come back
_BROKEN = (KeyError, TypeError, ValueError, AttributeError, IndexError)


class LoggedState(Generic[Shown, Asked]):
    """An agent's state, and what its journal holds beside it.

    Attributes:
        agent: the state.
        offered: action sets whose content need not be written again, by digest: the latest 64, or `SET_MEMORY` bytes of them.
        version: version of duelist that wrote the latest `opened` event.
        opened_at: position of that event.
        fixed: duels below this number ended before the journal was compacted, and cannot be taken back, unless they are in
            `open_then`.
        open_then: numbers of the duels that waited for an answer when it was.
        rewritten_at: position of the latest event that changed the past: pieces of snapshots from before it are of no use.
    """

    def __init__(self, agent: AgentState[Shown, Asked]) -> None:
        self.agent = agent
        # Version 0.1.0 counted sets only; an `opened` event says from where on bytes count too.
        self.offered = NewestWithin[str, ActionSet](limit=OFFERED_SETS, most_bytes=None)
        self.version, self.opened_at = "", 0
        self.fixed, self.open_then = 0, frozenset[int]()
        self.rewritten_at = 0

    def is_fixed(self, number: int) -> bool:
        """Whether a duel ended before the journal was compacted."""
        return number < self.fixed and number not in self.open_then

    def offer(self, digest: str, actions: ActionSet) -> None:
        """Remember a set that is in the journal."""
        self.offered.add(digest, actions, actions.nbytes if isinstance(actions, FiniteActions) else 0)

    def remember(self, most_bytes: int | None) -> None:
        """From now on, remember no more than so many bytes of sets."""
        self.offered.most_bytes = most_bytes
        self.offered.trim()


class AgentFold(Fold[LoggedState[Shown, Asked]]):
    """What the events of an agent mean.

    Args:
        new_state: makes the state before the first event.
        identity: what makes the agent the one it is, see `identity_of`.
    """

    def __init__(self, new_state: Callable[[Any], AgentState[Shown, Asked]], identity: dict[str, Any]) -> None:
        self._new_state = new_state
        self._identity: dict[str, Any] = json.loads(json.dumps(identity))
        self._policy_changed = False

    def new(self, policy: Any = None) -> LoggedState[Shown, Asked]:
        """Nothing asked yet."""
        return LoggedState(self._new_state(policy))

    def rewrites(self, record: Record) -> bool:
        """Whether an event changes what earlier ones mean."""
        return record.kind in ("forgot", "policy", COMPACTED)

    def base_in_steps(self, state: LoggedState[Shown, Asked], position: int) -> BaseInSteps:
        """Body and blob of an event that stands for all up to that position, where the state is now."""
        agent = state.agent
        state.rewritten_at = position
        state.fixed, state.open_then, state.opened_at = len(agent.endings), frozenset(agent.pending), position
        said = {"version": state.version, "agent": agent.token, "set_memory": state.offered.most_bytes}
        body, arrays = {**identity_of(agent), **said}, to_arrays(self._to_saved(state))

        def steps() -> BaseInSteps:
            return body, (yield from pack_in_steps(arrays))

        return steps()

    def rewrite(self, records: Callable[[], Iterator[Record]], last: Record) -> LoggedState[Shown, Asked]:
        """The state after `last`, which changes the past, from all events up to it."""
        later, policy, changed_at = [], None, 0
        state: LoggedState[Shown, Asked] | None = None
        for record in records():
            if record.kind == COMPACTED:
                state = self.load(record.blob)
            if record.position <= last.position and record.kind == "forgot":
                later.append((record.position, Selection(**record.body["votes"])))
            if record.position <= last.position and record.kind == "policy":
                policy, changed_at, self._policy_changed = self._policy_of(record), record.position, True
        state = state or self.new(policy)
        for record in records():
            if record.position > last.position:
                break
            if not self.rewrites(record):
                gone = [one for position, one in later if position > record.position]
                self._apply_without(state, record, gone, with_note=record.position > changed_at)
        state.rewritten_at = last.position
        return state

    def apply(self, state: LoggedState[Shown, Asked], record: Record) -> None:
        """Fold one event that does not change the past."""
        self._apply_without(state, record, [])

    def _apply_without(
        self, state: LoggedState[Shown, Asked], record: Record, gone: list[Selection], *, with_note: bool = True
    ) -> None:
        """Fold one event, without the votes that are taken back later, and without notes that another policy left."""
        kind, body = record.kind, record.body
        agent: Any = state.agent
        if kind == "asked":
            self._apply_asked(state, record, with_note=with_note)
        elif kind == "told":
            voter, time = body.get("voter"), body.get("time")
            if any(one.meets(body["id"], voter, time) for one in gone):
                agent.skip(body["id"])
            else:
                agent.tell(body["id"], agent.kind.answer_from(body), voter, time)
        elif kind == "imported":
            votes = Votes.from_bytes(record.blob)
            for one in gone:
                votes = one.left_of(votes)
            agent.import_votes(votes)
        elif kind == "skipped":
            state.agent.skip(body["id"])
        elif kind == "guardrails":
            agent.guard.set_guardrails(None if body["guardrails"] is None else Guardrails(**body["guardrails"]))
        elif kind == "cost_weight":
            agent.guard.cost_weight = body["weight"]
        elif kind == "set":
            state.offer(body["set"], from_bytes(record.blob))
        elif kind == "snapshot":
            state.offered.clear()
        else:
            self.check_opened(record, None)
            state.opened_at, state.version = record.position, body["version"]
            state.agent.token = body.get("agent", state.agent.token)
            state.remember(body.get("set_memory", state.offered.most_bytes))

    def dump(self, state: LoggedState[Shown, Asked]) -> bytes:
        """A snapshot."""
        return to_bytes(self._to_saved(state))

    def dump_in_steps(self, state: LoggedState[Shown, Asked], saved: Collection[str]) -> DumpInSteps:
        """A snapshot of the state as it is now, without what does not change, and the new pieces of that."""
        pieces = Pieces(f"{state.rewritten_at}/", saved)
        # All that is copied now; rows of the history are final, and what a policy has learnt is a value.
        arrays = to_arrays(self._to_saved(state), pieces)

        def steps() -> DumpInSteps:
            for name, rows in pieces.new.items():
                yield {name: (yield from pack_piece_in_steps(rows))}
            return (yield from pack_in_steps(arrays)), {*saved, *pieces.new}

        return steps()

    def load_from_pieces(self, data: bytes, piece: Callable[[str], bytes | None]) -> LoggedState[Shown, Asked]:
        """The state of such a snapshot, or of one in one piece."""
        return self._from_saved(from_bytes(data, piece))

    def _to_saved(self, state: LoggedState[Shown, Asked]) -> dict[str, Any]:
        return {
            "agent": _FORMAT,
            "version": state.version,
            "token": state.agent.token,
            "policy": describe_policy(state.agent.lane.policy) if self._policy_changed else None,
            "opened_at": state.opened_at,
            "offered": list(state.offered.values()),
            "set_memory": state.offered.most_bytes,
            "fixed": state.fixed,
            "rewritten_at": state.rewritten_at,
            "open_then": np.array(sorted(state.open_then), dtype=np.int64),
            "lane": state.agent.to_saved(),
        }

    def load(self, data: bytes) -> LoggedState[Shown, Asked]:
        """The state of a snapshot, of version 0.1.0 as well, which offered nothing."""
        return self._from_saved(from_bytes(data))

    def _from_saved(self, saved: Any) -> LoggedState[Shown, Asked]:
        if not isinstance(saved, dict) or saved.get("agent") != _FORMAT:
            raise SavedStateError(f"expected a snapshot of an agent of format {_FORMAT}; got another kind of state.")
        written = saved.get("policy")
        self._policy_changed = self._policy_changed or written is not None
        state = self.new(None if written is None else policy_from_mapping(written))
        try:
            state.agent.restore(saved["lane"])
            state.version, state.opened_at = saved["version"], saved["opened_at"]
            state.agent.token = saved.get("token", "")
            state.remember(saved.get("set_memory"))
            state.rewritten_at = saved.get("rewritten_at", 0)
            state.fixed, state.open_then = saved.get("fixed", 0), frozenset(np.asarray(saved.get("open_then", [])).tolist())
            for actions in saved.get("offered", []):
                state.offer(actions.digest.hex(), actions)
        except _BROKEN as error:
            raise SavedStateError(f"the snapshot does not fit this version of duelist ({error}).") from error
        return state

    def check_policy(self, policy: Any) -> None:
        """Refuse a journal whose agent has gone over to another policy."""
        mine = self._identity["policy"]
        theirs = with_defaults(describe_policy(policy))
        if type(policy).__name__ != self._identity["policy_name"] or (None not in (mine, theirs) and mine != theirs):
            raise InvalidInputError(
                f"the agent of this journal has changed its policy to {theirs or type(policy).__name__}; got {mine!r}. Make "
                f"the agent with the new policy, or change it again."
            )

    def _policy_of(self, record: Record) -> Any:
        written = record.body["policy"]
        if written is not None:
            return policy_from_mapping(written)
        if record.body["policy_name"] != self._identity["policy_name"]:
            raise InvalidInputError(
                f"the agent of this journal has changed its policy to {record.body['policy_name']}, which the journal cannot "
                f"describe. Make the agent with that policy."
            )
        return None

    def check_opened(self, record: Record, read: Callable[[], Iterator[Record]] | None) -> None:
        """Refuse a journal of another agent, or of something else. `read` gives all events: the policy may have changed."""
        if record.kind not in ("opened", COMPACTED):
            raise SavedStateError(
                f"event {record.position} of the journal is {record.kind!r}, which an agent did not write. Use another journal."
            )
        for name, mine in {"reliability": False, **self._identity}.items():
            theirs = record.body.get(name, False if name == "reliability" else None)
            if name == "policy" and (theirs is None or mine is None):
                continue  # a policy that could not be described: its name must do
            if name in ("policy", "policy_name") and self._policy_changed:
                continue
            if theirs != mine and not (name == "policy" and with_defaults(theirs) == mine):
                if name in ("policy", "policy_name") and read and any(one.kind == "policy" for one in read()):
                    self._policy_changed = True
                    continue
                raise InvalidInputError(
                    f"the journal belongs to an agent with {name} {theirs!r}; got {mine!r}. Make the agent as it was made "
                    f"first, or use another journal."
                )

    def _apply_asked(self, state: LoggedState[Shown, Asked], record: Record, *, with_note: bool) -> None:
        agent, digest, size = state.agent, record.body["set"], record.body.get("set_bytes", 0)
        proposal = agent.lane.proposal
        if size:
            mine = proposal is not None and proposal.actions.digest.hex() == digest
            state.offer(digest, proposal.actions if proposal and mine else unpack_set(record.blob[:size]))
        actions = state.offered.get(digest)
        if actions is None:
            raise SavedStateError(
                f"event {record.position} offers a set that the journal does not hold. Restore it from a copy."
            )
        shown = from_blob(agent.kind.rows_from(record.body), actions, record.blob[size:])
        again = agent.kind.from_parts(shown if with_note else shown._replace(note=None))
        agent.ask_again(actions, again, Conditions.from_body(record.body))


class Open(NamedTuple):
    """Say who writes, where this version did not yet."""

    identity: dict[str, Any]

    def decide(self, state: LoggedState[Any, Any], at: int) -> Event | None:  # noqa: ARG002 - agents need no time
        """An `opened` event."""
        if state.version == __version__ and state.agent.token:
            return None
        said = {"version": __version__, "agent": state.agent.token or new_token(), "set_memory": SET_MEMORY}
        return Event("opened", {**self.identity, **said})

    def reply(self, state: LoggedState[Any, Any], event: Event | None) -> None:
        """Nothing."""


class Ask(NamedTuple):
    """Ask for a pair or a slate."""

    actions: ActionSet
    conditions: Conditions | None = None

    def decide(self, state: LoggedState[Any, Any], at: int) -> Event:  # noqa: ARG002
        """An `asked` event."""
        agent, digest = state.agent, self.actions.digest.hex()
        # Saved before asking: a set that cannot be stored is refused first.
        content = b"" if digest in state.offered else pack_set(self.actions)
        proposal = agent.propose_under(self.actions, self.conditions)
        number = len(agent.endings)
        body = {"id": number, "set": digest, **agent.kind.asked_facts(proposal), "stream": number, "policy": state.opened_at}
        if self.conditions is not None:
            body.update(self.conditions.to_body())
        if content:
            body["set_bytes"] = len(content)
        return Event("asked", body, content + to_blob(agent.kind.to_parts(proposal.shown)))

    def reply(self, state: LoggedState[Any, Any], event: Event | None) -> Any:
        """The question."""
        number = len(state.agent.endings) - 1
        question = state.agent.view(number, state.agent.pending[number].shown)
        return question if event is None else state.agent.kind.with_facts(question, event.body)


class Tell(NamedTuple):
    """Give an answer."""

    question: Any
    answer: Any
    voter: str | None = None
    time: float | None = None

    def decide(self, state: LoggedState[Any, Any], at: int) -> Event | None:  # noqa: ARG002
        """A `told` event; nothing where the same answer was given before."""
        agent = state.agent
        number, answer = agent.read_answer(self.question, self.answer)
        if agent.answer_to(number) == answer:
            return None
        agent.refuse_ended(number)
        voter = agent.asker(number) if self.voter is None else self.voter
        known = {name: value for name, value in (("voter", voter), ("time", self.time)) if value is not None}
        return Event("told", {"id": number, **agent.kind.told_facts(answer), **known})

    def reply(self, state: LoggedState[Any, Any], event: Event | None) -> None:
        """Nothing."""


class Import(NamedTuple):
    """Learn votes from elsewhere."""

    votes: Votes

    def decide(self, state: LoggedState[Any, Any], at: int) -> Event:  # noqa: ARG002
        """An `imported` event."""
        return Event("imported", {"votes": self.votes.total}, self.votes.to_bytes())

    def reply(self, state: LoggedState[Any, Any], event: Event | None) -> int:  # noqa: ARG002
        """How many there were."""
        return self.votes.total


class Forget(NamedTuple):
    """Take votes back."""

    selection: Selection

    def decide(self, state: LoggedState[Any, Any], at: int) -> Event:  # noqa: ARG002
        """A `forgot` event."""
        number = self.selection.duel
        if number is not None and state.is_fixed(number):
            raise InvalidInputError(
                f"the answer to duel {number} cannot be taken back: the journal was compacted since. Only what it taught is "
                f"left, together with all other answers up to there."
            )
        return Event("forgot", {"votes": self.selection._asdict(), "rounds": state.agent.rounds})

    def reply(self, state: LoggedState[Any, Any], event: Event | None) -> int:
        """How many there were."""
        return 0 if event is None else int(event.body["rounds"]) - state.agent.rounds


class ChangePolicy(NamedTuple):
    """Go over to another policy."""

    policy: Any

    def decide(self, state: LoggedState[Any, Any], at: int) -> Event:  # noqa: ARG002
        """A `policy` event."""
        if state.fixed:
            raise InvalidInputError(
                f"this agent cannot change its policy: its journal was compacted, and the answers to the first {state.fixed} "
                f"duels, from which another policy would have to learn, are gone. Make a new agent on another journal."
            )
        written = describe_policy(self.policy)
        if written is None:
            raise InvalidInputError(
                f"a journal can only change to a policy that it can describe, one of duelist's own; got {self.policy!r}. "
                f"Import the votes into a new agent."
            )
        return Event("policy", {"policy": written, "policy_name": type(self.policy).__name__})

    def reply(self, state: LoggedState[Any, Any], event: Event | None) -> None:
        """Nothing."""


class SetGuardrails(NamedTuple):
    """Keep to other guardrails, or to none."""

    guardrails: Guardrails | None

    def decide(self, state: LoggedState[Any, Any], at: int) -> Event | None:  # noqa: ARG002
        """A `guardrails` event; nothing where they are the same."""
        guard = state.agent.guard
        if guard is not None and guard.rails == self.guardrails:
            return None
        return Event("guardrails", {"guardrails": None if self.guardrails is None else self.guardrails.to_plain()})

    def reply(self, state: LoggedState[Any, Any], event: Event | None) -> None:
        """Nothing."""


class SetCostWeight(NamedTuple):
    """Multiply costs by another number."""

    weight: float

    def decide(self, state: LoggedState[Any, Any], at: int) -> Event | None:  # noqa: ARG002
        """A `cost_weight` event; nothing where it is the same."""
        guard = state.agent.guard
        if guard is not None and guard.cost_weight == self.weight:
            return None
        return Event("cost_weight", {"weight": self.weight})

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


def pack_set(actions: ActionSet) -> bytes:
    """A set as bytes; compressed where most of its numbers are zero, as in one block per arm."""
    if isinstance(actions, BlockActions) and actions.lanes == 1:
        return pack_actions(actions) or b""
    content = to_bytes(actions)
    sparse = isinstance(actions, FiniteActions) and 2 * np.count_nonzero(actions.features) < actions.features.size
    return zlib.compress(content, 1) if sparse else content


def unpack_set(content: bytes) -> Any:
    """The set whose content an `asked` event holds."""
    # What is not compressed is a zip archive, which begins with "PK" and never with the first byte of zlib.
    if content[0] in PACKED_FORMS:
        return unpack_actions(content)
    return from_bytes(content if content.startswith(b"PK") else zlib.decompress(content))


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
        **({"reliability": True} if agent.lane.tells_voters_apart else {}),
    }


def with_defaults(description: Any) -> Any:
    """A description of another version with the hyper-parameters that came later."""
    try:
        return json.loads(json.dumps(to_mapping(policy_from_mapping(description))))
    except DuelistError:
        return description
