"""What the people behind an arena want to know, by the ids of its items; see `duelist.posteriors.stopping`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from duelist.core.errors import InvalidInputError
from duelist.posteriors.stopping.goals import Goal
from duelist.service.errors import RefusedError

GoalKind = Literal["best", "top", "ranking", "promote"]
Evidence = Literal["model", "pairs"]


@dataclass(frozen=True, kw_only=True)
class ArenaGoal:
    """The goal of an arena.

    Attributes:
        kind: "best" item, "top" k, "ranking" of all, or "promote" the challenger over the champion.
        delta: largest probability of a wrong verdict, over all times at which one may look and stop.
        k: size of the set for "top".
        challenger: id of an item, for "promote".
        champion: id of an item, for "promote".
        evidence: "model" for the Bradley-Terry model of the leaderboard, "pairs" for counts of wins and no model.
    """

    kind: GoalKind
    delta: float = 0.05
    k: int = 1
    challenger: str = ""
    champion: str = ""
    evidence: Evidence = "model"

    def to_plain(self) -> dict[str, Any]:
        """The goal as the journal keeps it."""
        return asdict(self)

    def over(self, members: Mapping[str, int]) -> Goal:
        """The goal in terms of rows; `members` are the rows of the items by id."""
        if self.kind != "promote":
            return Goal(kind=self.kind, delta=self.delta, k=self.k if self.kind == "top" else 1)
        rows = members[self.challenger], members[self.champion]
        return Goal(kind=self.kind, delta=self.delta, challenger=rows[0], champion=rows[1])


def check_goal(goal: ArenaGoal, items: Sequence[str]) -> None:
    """Refuse a goal that an arena of these active items cannot have."""
    if goal.kind == "promote":
        for item in (goal.challenger, goal.champion):
            if item not in items:
                raise RefusedError(f"challenger and champion must be ids of active items of the arena; got {item!r}.")
    try:
        goal.over({item: row for row, item in enumerate(items)}).check_arms(len(items))
    except InvalidInputError as error:
        raise RefusedError(f"the arena cannot have this goal: {error}") from error
