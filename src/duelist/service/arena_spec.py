"""What an arena is before anybody votes: its name, its question, how items become features, and who chooses the pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from duelist.service.outcomes import Outcome

TieKind = Literal["half", "ignored"]
FeatureKind = Literal["identity", "given", "text", "request"]

# An arena of items without features starts with room for this many; the room doubles when it is full.
_LEAST_ROOM = 8


@dataclass(frozen=True, kw_only=True)
class ArenaSpec:
    """The settings of an arena, fixed when it is created.

    Attributes:
        id: its name in addresses.
        name: its name for people.
        question: what voters are asked.
        features: "identity" for items that share nothing, "given" for features sent with each item, "text" for features made
            from the content by an embedder, "request" for features sent with each ask.
        dim: length of a feature vector; 0 for "identity", whose dimension follows the number of items.
        embedder: name of the embedder of a "text" arena, else empty.
        policy: the policy as `duelist.policies.described` writes it.
        seed: names all random numbers of the arena.
        undo_ms: how long a voter may take back an answer. Answers are learnt when that time is over.
        version: the duelist that created the arena.
        ties: "half" where a tie is learnt as half a win each way, "ignored" where it is only counted. Arenas that were created
            before there was a choice say nothing, and go on as they were.
    """

    id: str
    name: str
    question: str
    features: FeatureKind
    dim: int
    embedder: str
    policy: dict[str, Any]
    seed: int
    undo_ms: int
    version: str
    ties: TieKind = "ignored"

    @property
    def teaching(self) -> tuple[Outcome, ...]:
        """The answers that something is learnt from."""
        return (Outcome.FIRST, Outcome.SECOND, Outcome.TIE) if self.ties == "half" else (Outcome.FIRST, Outcome.SECOND)

    def room_for(self, n_items: int) -> int:
        """The dimension that the player needs for that many items."""
        if self.features != "identity":
            return self.dim
        room = _LEAST_ROOM
        while room < n_items:
            room *= 2
        return room
