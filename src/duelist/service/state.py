"""The state of a service: all arenas and keys, as one fold over one journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from duelist.core.errors import DuelistError, SavedStateError
from duelist.core.serialize import from_bytes, to_bytes
from duelist.journal.base import Event, Record
from duelist.live.lane import FRESH_QUESTIONS
from duelist.service.arena.arena import Arena
from duelist.service.arena.commands import Ask, Tell
from duelist.service.arena.contexts import AskContext
from duelist.service.arena.counts import AnswerCounts
from duelist.service.arena.decisions import ASKED, SETTLED, DecisionLog
from duelist.service.arena.goals import ArenaGoal, check_goal
from duelist.service.arena.item_commands import check_items
from duelist.service.arena.items import Item
from duelist.service.arena.learner import Learner, OpenAsk
from duelist.service.arena.slates import restore_slates, slates_to_saved
from duelist.service.arena.spec import ArenaSpec
from duelist.service.errors import NotFoundError, RefusedError, ServiceError
from duelist.service.keys import Key

_FORMAT = 1


class ServiceState:
    """Everything that a service knows.

    Attributes:
        arenas: by id.
        keys: by id.
        by_digest: the same keys, by the digest of their secret.
        deleted: ids of arenas that were deleted.
        latest: time of the latest event. A clock may step back; the journal may not.
    """

    def __init__(self) -> None:
        self.arenas: dict[str, Arena] = {}
        self.keys: dict[str, Key] = {}
        self.by_digest: dict[str, Key] = {}
        self.deleted: set[str] = set()
        self.latest = 0

    def arena(self, arena_id: str) -> Arena:
        """The arena of that id."""
        arena = self.arenas.get(arena_id)
        if arena is None:
            raise NotFoundError(f"there is no arena {arena_id!r}.")
        return arena

    def apply(self, event: Event | Record) -> None:
        """Change the state by an event."""
        kind, body = event.kind, event.body
        self.latest = max(self.latest, body["at"])
        if kind == "created":
            arena = Arena(ArenaSpec(**body["spec"]))
            arena.apply("added", body)
            if "goal" in body:
                arena.goal = ArenaGoal(**body["goal"])
            self.arenas[arena.spec.id] = arena
        elif kind == "key":
            since = body.get("voter", ""), body.get("quota", 0)
            key = Key(body["id"], body["role"], body["digest"], body["label"], body["scope"], body["at"], *since)
            self.keys[key.id] = key
            self.by_digest[key.digest] = key
        elif kind == "revoked":
            self._drop_key(body["id"])
        elif kind == "deleted":
            del self.arenas[body["arena"]]
            self.deleted.add(body["arena"])
            for key in [key for key in self.keys.values() if key.scope == body["arena"]]:
                self._drop_key(key.id)
        else:
            self.arenas[body["arena"]].apply(kind, body)

    def _drop_key(self, key: str) -> None:
        del self.by_digest[self.keys.pop(key).digest]

    def to_bytes(self) -> bytes:
        """A snapshot: everything, so that `from_bytes` and the rest of the journal give the same fold, bit for bit."""
        return to_bytes(
            {
                "hall": _FORMAT,  # the name on disk since 0.1.0
                "latest": self.latest,
                "deleted": sorted(self.deleted),
                "keys": [asdict(key) for key in self.keys.values()],
                "arenas": [to_saved(arena) for arena in self.arenas.values()],
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> ServiceState:
        """The inverse of `to_bytes`."""
        saved = from_bytes(data)
        if not isinstance(saved, dict) or saved.get("hall") != _FORMAT:
            raise SavedStateError(f"expected a snapshot of a service, format {_FORMAT}; got another kind of state.")
        state = cls()
        state.latest = saved["latest"]
        state.deleted = set(saved.get("deleted", ()))  # since 0.2.0
        state.keys = {plain["id"]: Key(**plain) for plain in saved["keys"]}
        state.by_digest = {key.digest: key for key in state.keys.values()}
        state.arenas = {arena.spec.id: arena for arena in map(from_saved, saved["arenas"])}
        return state


def created(
    spec: ArenaSpec,
    items: Sequence[Item],
    *,
    at: int,
    rows: Sequence[dict[str, Any]] = (),
    goal: ArenaGoal | None = None,
) -> Event:
    """The event of creating an arena, if it can take the items; `rows` are its first prompts, as the journal keeps them."""
    check_items(Arena(spec), items)
    body = {"arena": spec.id, "at": at, "spec": asdict(spec), "items": [item.to_plain() for item in items]}
    if rows:
        body["rows"] = list(rows)
    if goal is not None:
        check_goal(goal, [item.id for item in items])
        body["goal"] = goal.to_plain()
    return Event("created", body)


def check_playable(spec: ArenaSpec, items: Sequence[Item]) -> None:
    """Build an arena on trial and vote in it once, so that settings with which it cannot play are refused early."""
    features, most = None, int(spec.policy.get("choices", 2))
    if spec.features == "request":
        numbers = range(1, spec.dim + 1)
        features = {item.id: [place / n for n in numbers] for place, item in enumerate(items[: max(2, most)])}
    ask = Ask(spec.id, token=0, flipped=False, features=features)
    try:
        state = ServiceState()
        state.apply(created(spec, items, at=0))
        for _ in range(2):
            event = ask.decide(state, 0)
            if event is not None:
                state.apply(event)
                asked = ask.reply(state, event)
                tell = Tell(spec.id, asked.decision.id, "", ranking=(asked.left.id,)).decide(state, 0)
                if tell is not None:
                    state.apply(tell)
    except ServiceError:
        raise
    except (DuelistError, ArithmeticError, ValueError, TypeError) as error:
        raise RefusedError(f"an arena with these settings cannot play: {error}") from error


def to_saved(arena: Arena) -> dict[str, Any]:
    """Everything, as a value that `duelist.core.serialize` takes."""
    table, learner = arena.table, arena.learner
    log = arena.log.to_arrays()
    log["line_up"] = log.pop("roster")
    return {
        "spec": asdict(arena.spec),
        "items": [item.to_plain() for item in table.items],
        "retired": sorted(table.retired),
        "line_ups": [list(members) for members in table.rosters],
        "log": log,
        "voters": list(arena.voters),
        "seen": arena.seen.to_saved(),
        "batches": [[name, size] for name, size in arena.batches.items()],
        "revision": arena.revision,
        "learnt": np.array(learner.learnt, dtype=np.int64),
        "held": [[number, at] for number, at in arena.undoable.items()],
        "asked_for": [[request, number] for request, number in arena.asked_for.items()],
        "sent": None if learner.request_features is None else learner.request_features.to_saved(),
        "dim": learner.lane.dim,
        "generation": learner.lane.generation,
        "state": learner.lane.state,
        "slates": slates_to_saved(learner) if learner.choices > 2 else None,
        "lane_asks": learner.asks,
        "subsets": _subsets_to_saved(learner),
        "contexts": [[number, context.to_plain()] for number, context in arena.contexts.items()],
        "prompts": arena.prompts.to_saved([item.id for item in table.items]),
        "remarks": [[number, text] for number, text in arena.remarks.items()],
        "strengths": [[number, text] for number, text in arena.strengths.items()],
        "actors": list(arena.counts.actors),
        "goal": None if arena.goal is None else arena.goal.to_plain(),
        "closed": int(arena.closed),
    }


def _subsets_to_saved(learner: Learner) -> dict[str, Any]:
    places = {members: place for place, members in enumerate(dict.fromkeys(learner.subsets.values()))}
    return {
        "members": [list(members) for members in places],
        "asks": np.array(list(learner.subsets), dtype=np.int64),
        "members_of": np.array([places[members] for members in learner.subsets.values()], dtype=np.int64),
    }


def from_saved(saved: dict[str, Any]) -> Arena:
    """The inverse of `to_saved`."""
    arena = Arena(ArenaSpec(**saved["spec"]))
    table, learner = arena.table, arena.learner
    table.items = [Item.from_plain(plain) for plain in saved["items"]]
    table.numbers = {item.id: number for number, item in enumerate(table.items)}
    table.retired = set(saved["retired"])
    table.rosters = [tuple(members) for members in saved["line_ups"]]
    arena.log = DecisionLog.from_arrays({**saved["log"], "roster": saved["log"]["line_up"]})
    arena.voters = {voter: index for index, voter in enumerate(saved["voters"])}
    if "seen" in saved:  # since 0.2.0
        arena.seen.restore(saved["seen"])
    arena.batches = dict(saved["batches"])
    arena.revision = saved["revision"]
    arena.undoable = dict(saved["held"])
    arena.undoable_by = {arena.log[number].voter: number for number in arena.undoable}
    arena.asked_for = dict(saved["asked_for"])
    learner.learnt = saved["learnt"].tolist()
    if learner.request_features is not None:
        learner.request_features.restore(saved["sent"])
    if saved.get("slates") is not None:  # since 0.2.0
        restore_slates(learner, saved["slates"])
    learner.lane = learner.new_lane(dim=saved["dim"], generation=saved["generation"])
    learner.lane.state = saved["state"]
    learner.asks = saved["lane_asks"] if "lane_asks" in saved else _asks_of_generation(arena)
    if "subsets" in saved:
        _restore_questions(arena, saved)
    if "subsets" not in saved:
        arena.counts = AnswerCounts.of_log(arena.log, [])
    if learner.lane.counts_pending:
        learner.open = _open_asks(arena.log)
    return arena


def _restore_questions(arena: Arena, saved: dict[str, Any]) -> None:
    """What snapshots hold since 0.2.0: what asks brought along, the data set, the goal."""
    subsets = saved["subsets"]
    known = [tuple(members) for members in subsets["members"]]
    of_ask = zip(subsets["asks"].tolist(), subsets["members_of"].tolist(), strict=True)
    arena.learner.subsets = {number: known[place] for number, place in of_ask}
    arena.contexts = {number: AskContext.from_plain(plain) for number, plain in saved["contexts"]}
    arena.prompts.restore(saved["prompts"], arena.table.numbers)
    arena.remarks, arena.strengths = dict(saved["remarks"]), dict(saved["strengths"])
    arena.counts = AnswerCounts.of_log(arena.log, saved["actors"])
    arena.goal = None if saved["goal"] is None else ArenaGoal(**saved["goal"])
    arena.closed = bool(saved["closed"])


def _open_asks(log: DecisionLog) -> dict[int, OpenAsk]:
    """The latest asks whose answers were not learnt yet."""
    asked = np.flatnonzero(log.column("source") == ASKED)
    fresh = asked[asked > asked[-1] - FRESH_QUESTIONS] if len(asked) else asked
    latest = [log[int(number)] for number in fresh]
    return {one.number: OpenAsk(one.first, one.second, one.roster) for one in latest if one.stage != SETTLED}


def _asks_of_generation(arena: Arena) -> int:
    """Asks since the lane was started again, which was when the first item came that needed the present dimension."""
    begin, lane = 0, arena.learner.lane
    if lane.generation > 0:
        begin = next(version for version, members in enumerate(arena.table.rosters) if members and members[-1] >= lane.dim // 2)
    asked = arena.log.column("source") == ASKED
    return int((asked & (arena.log.column("roster") >= begin)).sum())
