"""An arena without HTTP or a disk: events in, state out."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np

from duelist.service.arena_spec import ArenaSpec
from duelist.service.decisions import Decision
from duelist.service.events import Event
from duelist.service.hall import Hall
from duelist.service.items import Item


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
    """A hall with one arena, and the events that made it."""

    def __init__(self, *, items: int | list[Item] = 4, **changes: Any) -> None:
        self.hall = Hall()
        self.events: list[Event] = []
        self._tokens = itertools.count(1)
        some = [Item(f"i{n}", f"Item {n}", f"content {n}") for n in range(items)] if isinstance(items, int) else items
        self.happen(self.hall.create(spec(**changes), some, at=0))
        self.arena = self.hall.arena("arena")

    def happen(self, event: Event | None) -> None:
        """Let an event happen as the journal would give it back."""
        if event is not None:
            event = json.loads(json.dumps(event, allow_nan=False))
            self.events.append(event)
            self.hall.apply(event)

    def ask(self, at: int = 0, *, flipped: bool = False, request: str = "", features: Any = None) -> Decision:
        """Ask for a pair."""
        token = next(self._tokens)
        self.happen(self.arena.ask(at=at, token=token, flipped=flipped, request=request, features=features))
        return self.arena.log[len(self.arena.log) - 1]

    def tell(self, decision: Decision, verdict: str, at: int = 0, voter: str = "") -> None:
        """Answer."""
        self.happen(self.arena.tell(self.arena.log[decision.number], verdict, at=at, voter=voter))

    def undo(self, decision: Decision, at: int, voter: str) -> None:
        """Take back."""
        self.happen(self.arena.undo(self.arena.log[decision.number], at=at, voter=voter))

    def replayed(self) -> Hall:
        """The fold over the same events, from nothing."""
        hall = Hall()
        for event in self.events:
            hall.apply(event)
        return hall

    def crowd(self, votes: int, *, seed: int = 0, spread: float = 1.0, voters: int = 3) -> None:
        """A crowd that prefers items of lower number, answers late, out of order, or not at all, and changes its mind."""
        rng = np.random.default_rng(seed)
        waiting: list[Decision] = []
        at = self.hall.latest
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
