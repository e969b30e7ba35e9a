"""What a caller may want of the whole service, as values: arenas and keys. Those of one arena are in `arena.commands`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from duelist.journal.base import Event
from duelist.journal.replica import Command, DecidedOn, Reply
from duelist.service.arena.admin_commands import NewPrompt, resolve_prompts
from duelist.service.arena.goals import ArenaGoal
from duelist.service.arena.items import Item
from duelist.service.arena.spec import ArenaSpec
from duelist.service.arena.summary import ArenaSummary
from duelist.service.errors import ConflictError, NotFoundError
from duelist.service.keys import Key, Role, digest_of, new_key
from duelist.service.state import ServiceState, created


@dataclass(frozen=True, slots=True)
class ByActor(Generic[DecidedOn, Reply]):
    """A command, with who gave it: its event says so.

    Attributes:
        command: what is wanted.
        actor: id of the key or session behind the request.
    """

    command: Command[DecidedOn, Reply]
    actor: str

    def decide(self, state: DecidedOn, at: int) -> Event | None:
        """The event of the command, with `by`."""
        event = self.command.decide(state, at)
        return None if event is None else event._replace(body={**event.body, "by": self.actor})

    def reply(self, state: DecidedOn, event: Event | None) -> Reply:
        """The reply of the command."""
        return self.command.reply(state, event)


@dataclass(frozen=True, slots=True)
class CreateArena:
    """Create an arena with its first items.

    Attributes:
        spec: settings.
        items: at least two, with ids.
        if_missing: whether an arena of that id is left as it is, instead of refused.
        prompts: its first prompts, by ids of the items.
        goal: what shall be found out; None for nothing.
    """

    spec: ArenaSpec
    items: Sequence[Item]
    if_missing: bool = False
    prompts: Sequence[NewPrompt] = ()
    goal: ArenaGoal | None = None

    def decide(self, state: ServiceState, at: int) -> Event | None:
        """The event `created`."""
        if self.spec.id in state.arenas:
            if self.if_missing:
                return None
            raise ConflictError(f"there is an arena {self.spec.id!r} already. Choose another id.")
        if self.spec.id in state.deleted:
            raise ConflictError(f"there was an arena {self.spec.id!r}, which was deleted. Choose another id.")
        rows, _ = resolve_prompts(self.prompts, self.items)
        return created(self.spec, self.items, at=at, rows=rows, goal=self.goal)

    def reply(self, state: ServiceState, event: Event | None) -> ArenaSummary:  # noqa: ARG002 - a command's signature
        """The arena."""
        return state.arenas[self.spec.id].summary()


@dataclass(frozen=True, slots=True)
class CreateKey:
    """Create a key.

    Attributes:
        secret: random; only its digest is stored.
        role: what the key may do.
        label: what it is for.
        scope: the one arena that it opens; empty for all.
        voter: whose answers come through it; empty where requests say so.
        quota: most answers through it; 0 for no limit.
    """

    secret: str = field(repr=False)
    role: Role
    label: str
    scope: str = ""
    voter: str = ""
    quota: int = 0

    def decide(self, state: ServiceState, at: int) -> Event:
        """The event `key`."""
        if self.scope:
            state.arena(self.scope)
        key = new_key(self.secret, role=self.role, label=self.label, scope=self.scope, at=at)
        return _key_created(replace(key, voter=self.voter, quota=self.quota))

    def reply(self, state: ServiceState, event: Event | None) -> Key:  # noqa: ARG002 - a command's signature
        """The key."""
        return state.by_digest[digest_of(self.secret)]


GIVEN_KEY = "given key"  # label of the key that the administrator sets from outside


@dataclass(frozen=True, slots=True)
class EnsureAdminKey:
    """Create an admin key for the whole service, unless there is one.

    Attributes:
        secret: of the key to create.
        given: whether the administrator chose the secret. Then other admin keys do not matter.
    """

    secret: str = field(repr=False)
    given: bool

    def decide(self, state: ServiceState, at: int) -> Event | None:
        """The event `key`; None where there is one already."""
        key = new_key(self.secret, role="admin", label=GIVEN_KEY if self.given else "first key", scope="", at=at)
        if key.digest in state.by_digest:
            return None
        if not self.given and any(known.is_master for known in state.keys.values()):
            return None
        return _key_created(key)

    def reply(self, state: ServiceState, event: Event | None) -> bool:  # noqa: ARG002 - a command's signature
        """Whether the key is new."""
        return event is not None


@dataclass(frozen=True, slots=True)
class RevokeKey:
    """Revoke a key at once. The last admin key stays.

    Attributes:
        key: its id.
    """

    key: str

    def decide(self, state: ServiceState, at: int) -> Event:
        """The event `revoked`."""
        known = state.keys.get(self.key)
        if known is None:
            raise NotFoundError(f"there is no key {self.key!r}.")
        if known.is_master and sum(other.is_master for other in state.keys.values()) == 1:
            raise ConflictError("this is the last admin key; make another before revoking it.")
        return Event("revoked", {"at": at, "id": self.key})

    def reply(self, state: ServiceState, event: Event | None) -> None:
        """Nothing."""


def _key_created(key: Key) -> Event:
    body: dict[str, Any] = {"id": key.id, "role": key.role, "digest": key.digest, "label": key.label, "scope": key.scope}
    if key.voter:
        body["voter"] = key.voter
    if key.quota:
        body["quota"] = key.quota
    return Event("key", {"at": key.created_at, **body})
