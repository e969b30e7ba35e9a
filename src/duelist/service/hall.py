"""The hall: all arenas and keys of a service, as one fold over one journal."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from duelist.core.errors import DuelistError, SavedStateError
from duelist.core.saved import from_bytes, to_bytes
from duelist.service.arena import Arena
from duelist.service.arena_spec import ArenaSpec
from duelist.service.decisions import DecisionLog
from duelist.service.errors import ConflictError, NotFoundError, RefusedError, ServiceError
from duelist.service.events import Event
from duelist.service.items import Item
from duelist.service.keys import Key
from duelist.service.player import Player

_FORMAT = 1


class Hall:
    """Everything that a service knows."""

    def __init__(self) -> None:
        self.arenas: dict[str, Arena] = {}
        self.keys: dict[str, Key] = {}
        self.by_digest: dict[str, Key] = {}
        self.latest = 0  # time of the latest event: clocks may step back, the journal may not

    def arena(self, arena_id: str) -> Arena:
        """The arena of that id."""
        arena = self.arenas.get(arena_id)
        if arena is None:
            raise NotFoundError(f"there is no arena {arena_id!r}.")
        return arena

    def create(self, spec: ArenaSpec, items: list[Item], *, at: int) -> Event:
        """The event of creating an arena."""
        if spec.id in self.arenas:
            raise ConflictError(f"there is an arena {spec.id!r} already. Choose another id.")
        arena = Arena(spec)
        arena.check_new(items)
        return arena.creation(items, at=at)

    def apply(self, event: Event) -> None:
        """Let an event happen."""
        self.latest = max(self.latest, event["at"])
        if event["kind"] == "created":
            arena = Arena(ArenaSpec(**event["spec"]))
            arena.apply({"kind": "added", "at": event["at"], "items": event["items"]})
            self.arenas[arena.spec.id] = arena
        elif event["kind"] == "key":
            key = Key(event["id"], event["role"], event["digest"], event["label"], event["scope"], event["at"])
            self.keys[key.id] = key
            self.by_digest[key.digest] = key
        elif event["kind"] == "revoked":
            key = self.keys.pop(event["id"])
            del self.by_digest[key.digest]
        else:
            self.arenas[event["arena"]].apply(event)

    def to_bytes(self) -> bytes:
        """A snapshot: everything, so that `from_bytes` and the rest of the journal give the same fold, bit for bit."""
        return to_bytes(
            {
                "hall": _FORMAT,
                "latest": self.latest,
                "keys": [asdict(key) for key in self.keys.values()],
                "arenas": [_saved_arena(arena) for arena in self.arenas.values()],
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Hall:
        """The inverse of `to_bytes`."""
        saved = from_bytes(data)
        if not isinstance(saved, dict) or saved.get("hall") != _FORMAT:
            raise SavedStateError(f"expected a snapshot of a service, format {_FORMAT}; got another kind of state.")
        hall = cls()
        hall.latest = saved["latest"]
        hall.keys = {plain["id"]: Key(**plain) for plain in saved["keys"]}
        hall.by_digest = {key.digest: key for key in hall.keys.values()}
        hall.arenas = {arena.spec.id: arena for arena in map(_restored_arena, saved["arenas"])}
        return hall


def try_out(spec: ArenaSpec, items: list[Item]) -> None:
    """Build an arena on trial and ask it once, so that settings with which it cannot play are refused before it exists."""
    try:
        arena = Arena(spec)
        arena.check_new(items)
        arena.apply({"kind": "added", "at": 0, "items": [item.to_plain() for item in items]})
        numbers = range(1, spec.dim + 1)
        sent = (
            {item.id: [place / n for n in numbers] for place, item in enumerate(items[:2])}
            if spec.features == "request"
            else None
        )
        arena.apply(arena.ask(at=0, token=0, flipped=False, request="", features=sent))
        arena.apply({"kind": "told", "at": 0, "number": 0, "outcome": "first"})
        arena.ask(at=0, token=0, flipped=False, request="", features=sent)
    except ServiceError:
        raise
    except (DuelistError, ArithmeticError, ValueError, TypeError) as error:
        raise RefusedError(f"an arena with these settings cannot play: {error}") from error


def _saved_arena(arena: Arena) -> dict[str, Any]:
    table = arena.table
    return {
        "spec": asdict(arena.spec),
        "items": [item.to_plain() for item in table.items],
        "retired": sorted(table.retired),
        "line_ups": [list(members) for members in table.line_ups],
        "log": arena.log.to_arrays(),
        "voters": list(arena.voters),
        "batches": [[name, size] for name, size in arena.batches.items()],
        "revision": arena.revision,
        "learnt": np.array(arena.learnt, dtype=np.int64),
        "held": [[number, at] for number, at in arena.held.items()],
        "asked_for": [[request, number] for request, number in arena.asked_for.items()],
        "sent": None if arena.sent is None else arena.sent.to_saved(),
        "dim": arena.player.dim,
        "generation": arena.player.generation,
        "state": arena.player.state,
    }


def _restored_arena(saved: dict[str, Any]) -> Arena:
    arena = Arena(ArenaSpec(**saved["spec"]))
    table = arena.table
    table.items = [Item.from_plain(plain) for plain in saved["items"]]
    table.numbers = {item.id: number for number, item in enumerate(table.items)}
    table.retired = set(saved["retired"])
    table.line_ups = [tuple(members) for members in saved["line_ups"]]
    arena.log = DecisionLog.from_arrays(saved["log"])
    arena.voters = {voter: index for index, voter in enumerate(saved["voters"])}
    arena.batches = dict(saved["batches"])
    arena.revision = saved["revision"]
    arena.learnt = saved["learnt"].tolist()
    arena.held = dict(saved["held"])
    arena.held_by = {arena.log[number].voter: number for number in arena.held}
    arena.asked_for = dict(saved["asked_for"])
    if arena.sent is not None:
        arena.sent.restore(saved["sent"])
    policy, seed = arena.player.policy, arena.spec.seed
    arena.player = Player(policy, dim=saved["dim"], seed=seed, generation=saved["generation"])
    arena.player.state = saved["state"]
    return arena
