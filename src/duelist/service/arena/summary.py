"""What an arena says about itself and its items."""

from __future__ import annotations

from typing import NamedTuple

from duelist.service.arena.goals import ArenaGoal
from duelist.service.arena.items import Item
from duelist.service.arena.spec import FeatureKind, TieKind


class ArenaSummary(NamedTuple):
    """What the service says about an arena, in the words of its API."""

    id: str
    name: str
    question: str
    features: FeatureKind
    dim: int
    embedder: str
    policy: str
    choices: int
    items: int
    active_items: int
    asks: int
    votes: int
    ties: TieKind
    exploration: float
    undo_seconds: float
    seed: int
    closed: bool
    blind: bool
    voter_quota: int
    prompts: int
    goal: ArenaGoal | None


class ListedItem(NamedTuple):
    """An item, and whether it is active."""

    item: Item
    active: bool
