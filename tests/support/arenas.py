"""An arena without HTTP or a disk: events in, state out."""

from __future__ import annotations

import itertools
import json
from typing import Any, TypeVar

import numpy as np

from duelist.journal.base import Event
from duelist.journal.replica import Command
from duelist.service.arena.commands import Ask, Tell, Told, Undo
from duelist.service.arena.decisions import Decision
from duelist.service.arena.items import Item
from duelist.service.arena.spec import ArenaSpec
from duelist.service.commands import CreateArena
from duelist.service.state import ServiceState

Result = TypeVar("Result")


def spec(**changes: Any) -> ArenaSpec:
    """The settings of a plain arena, changed as told."""
    plain: dict[str, Any] = {
        "id": "arena",
        "name": "Arena",
        "question": "Which?",
        "features": "identity",
        "dim": 0,
        "embedder": "",
        "policy": {"kind": "FGTS"},
        "seed": 0,
        "undo_ms": 10_000,
        "version": "test",
        "ties": "half",
    }
    return ArenaSpec(**{**plain, **changes})


class Stage:
    """A service state with one arena, and the events that made it."""

    def __init__(self, *, items: int | list[Item] = 4, **changes: Any) -> None:
        self.state = ServiceState()
        self.events: list[Event] = []
        self._tokens = itertools.count(1)
        some = [Item(f"i{n}", f"Item {n}", f"content {n}") for n in range(items)] if isinstance(items, int) else items
        self.commit(CreateArena(spec(**changes), some))
        self.arena = self.state.arena("arena")

    def commit(self, command: Command[ServiceState, Result], at: int = 0) -> Result:
        """Carry out a command, the event as the journal would give it back."""
        event = command.decide(self.state, at)
        if event is not None:
            event = Event(event.kind, json.loads(json.dumps(event.body, allow_nan=False)))
            self.events.append(event)
            self.state.apply(event)
        return command.reply(self.state, event)

    def next_ask(
        self, *, flipped: bool = False, request: str = "", features: Any = None, voter: str = "", context: Any = None
    ) -> Ask:
        """The command of the next ask."""
        return Ask("arena", next(self._tokens), flipped, request, features, voter, context)

    def ask(self, at: int = 0, **what: Any) -> Decision:
        """Ask for a pair, with what `next_ask` takes."""
        return self.commit(self.next_ask(**what), at).decision

    def tell(self, decision: Decision, verdict: str, at: int = 0, voter: str = "") -> Told:
        """Answer."""
        return self.commit(Tell("arena", decision.id, verdict, voter), at)

    def tell_ranking(self, decision: Decision, ranking: list[str]) -> Told:
        """Answer with items, best first."""
        return self.commit(Tell("arena", decision.id, "", ranking=tuple(ranking)))

    def undo(self, decision: Decision, at: int, voter: str) -> None:
        """Take back."""
        self.commit(Undo("arena", decision.id, voter), at)

    def replayed(self) -> ServiceState:
        """The fold over the same events, from nothing."""
        state = ServiceState()
        for event in self.events:
            state.apply(event)
        return state

    def crowd(self, votes: int, *, seed: int = 0, spread: float = 1.0, voters: int = 3) -> None:
        """A crowd that prefers items of lower number, answers late, out of order, or not at all, and changes its mind."""
        rng = np.random.default_rng(seed)
        waiting: list[Decision] = []
        at = self.state.latest
        for _ in range(votes):
            at += int(rng.integers(1, 3000))
            waiting.append(self.ask(at, flipped=bool(rng.integers(2))))
            while waiting and rng.random() < 0.7:
                decision = waiting.pop(int(rng.integers(len(waiting))))
                chance = 1.0 / (1.0 + np.exp(-spread * (decision.right - decision.left)))
                verdict = "left" if rng.random() < chance else "right"
                verdict = str(rng.choice([verdict, "tie", "both_bad", "skip"], p=[0.85, 0.05, 0.05, 0.05]))
                voter = f"v{rng.integers(voters)}" if rng.random() < 0.6 else ""
                self.tell(decision, verdict, at, voter)
                if voter and rng.random() < 0.2:
                    self.undo(decision, at, voter)
                    waiting.append(decision)
