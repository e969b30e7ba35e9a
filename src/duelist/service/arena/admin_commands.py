"""What an administrator may want of an arena beside its items, as values: prompts, a goal, an end, voters who are taken out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from duelist.journal.base import Event
from duelist.service.arena.arena import Arena
from duelist.service.arena.commands import Arenas
from duelist.service.arena.contexts import Content, Prompt
from duelist.service.arena.goals import ArenaGoal, check_goal
from duelist.service.arena.item_commands import check_items
from duelist.service.arena.items import Item, with_ids
from duelist.service.arena.prompts import MAX_PROMPTS
from duelist.service.arena.removal import standing_answers
from duelist.service.arena.summary import ArenaSummary
from duelist.service.errors import ConflictError, NotFoundError, RefusedError


class NewPrompt(NamedTuple):
    """A prompt to add, with what was answered by the name or the id of the item."""

    prompt: Prompt
    answers: Mapping[str, Content]


def resolve_prompts(prompts: Sequence[NewPrompt], known: Sequence[Item]) -> tuple[list[dict[str, Any]], list[Item]]:
    """The prompts as the journal keeps them, and the items that are new: those named in answers and not known.

    A name stands for the item of that id, else for the item of that name.
    """
    ids = {item.name: item.id for item in reversed(known)} | {item.id: item.id for item in known}
    names = dict.fromkeys(name for one in prompts for name in one.answers if name not in ids)
    new = with_ids([Item("", name, name) for name in names], taken={item.id for item in known})
    ids.update((item.name, item.id) for item in new)
    rows = []
    for place, (prompt, answers) in enumerate(prompts):
        if len({ids[name] for name in answers}) < len(answers):
            raise RefusedError(f"prompt {place} has two answers of the same item. Name every item once.")
        rows.append({"prompt": prompt.to_plain(), "answers": {ids[name]: list(one) for name, one in answers.items()}})
    return rows, new


@dataclass(frozen=True, slots=True)
class AddPrompts:
    """Add prompts with their answers. Items that are named for the first time join in.

    Attributes:
        arena: id of the arena.
        batch: any name. A batch of the same name and size is added once.
        prompts: what to add.
    """

    arena: str
    batch: str
    prompts: Sequence[NewPrompt]

    def decide(self, state: Arenas, at: int) -> Event | None:
        """The event `prompts`; None where the batch was added before."""
        arena = state.arena(self.arena)
        arena.check_open()
        known = arena.prompts.batches.get(self.batch)
        if known is not None:
            if known != len(self.prompts):
                raise ConflictError(
                    f"batch {self.batch!r} was added before with {known} prompts; got {len(self.prompts)}. Name the new one "
                    f"differently."
                )
            return None
        total = len(arena.prompts.rows) + len(self.prompts)
        if total > MAX_PROMPTS:
            raise ConflictError(f"an arena holds at most {MAX_PROMPTS} prompts; this would make {total}.")
        rows, items = resolve_prompts(self.prompts, arena.table.items)
        if items and arena.spec.features != "identity":
            raise RefusedError(
                f"{items[0].name!r} is no item of this arena, and items with features cannot be made from a name. Add it first."
            )
        check_items(arena, items)
        plain = [item.to_plain() for item in items]
        return Event("prompts", {"arena": self.arena, "at": at, "batch": self.batch, "rows": rows, "items": plain})

    def reply(self, state: Arenas, event: Event | None) -> tuple[int, bool]:
        """How many prompts the arena has, and whether the batch had been added before."""
        return len(state.arena(self.arena).prompts.rows), event is None


@dataclass(frozen=True, slots=True)
class SetGoal:
    """Say what shall be found out.

    Attributes:
        arena: id of the arena.
        goal: None for nothing.
    """

    arena: str
    goal: ArenaGoal | None

    def decide(self, state: Arenas, at: int) -> Event | None:
        """The event `goal`; None where nothing changes."""
        arena = state.arena(self.arena)
        if self.goal == arena.goal:
            return None
        if self.goal is not None:
            if arena.learner.choices > 2:
                raise ConflictError("a goal is for arenas of pairs; this one shows slates.")
            if self.goal.evidence == "model" and arena.spec.features == "request":
                raise ConflictError(
                    'where features come with each ask, which item is best depends on them. Choose evidence "pairs", which '
                    "asks who wins more often."
                )
            check_goal(self.goal, [arena.table.items[number].id for number in arena.table.active])
        return Event("goal", {"arena": self.arena, "at": at, "goal": None if self.goal is None else self.goal.to_plain()})

    def reply(self, state: Arenas, event: Event | None) -> ArenaSummary:  # noqa: ARG002 - a command's signature
        """The arena."""
        return state.arena(self.arena).summary()


@dataclass(frozen=True, slots=True)
class SetClosed:
    """Close an arena, which then takes no more asks and answers, or open it again.

    Attributes:
        arena: id of the arena.
        closed: whether it is to be closed.
    """

    arena: str
    closed: bool

    def decide(self, state: Arenas, at: int) -> Event | None:
        """The event `closed` or `reopened`; None where nothing changes."""
        if state.arena(self.arena).closed == self.closed:
            return None
        return Event("closed" if self.closed else "reopened", {"arena": self.arena, "at": at})

    def reply(self, state: Arenas, event: Event | None) -> ArenaSummary:  # noqa: ARG002 - a command's signature
        """The arena."""
        return state.arena(self.arena).summary()


@dataclass(frozen=True, slots=True)
class DeleteArena:
    """Delete an arena, and the keys that open only it. What happened in it stays in the journal.

    Attributes:
        arena: id of the arena.
    """

    arena: str

    def decide(self, state: Arenas, at: int) -> Event:
        """The event `deleted`."""
        return Event("deleted", {"arena": state.arena(self.arena).spec.id, "at": at})

    def reply(self, state: Arenas, event: Event | None) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class RemoveAnswers:
    """Let the answers of a voter count no longer: what is left is what the others taught.

    Attributes:
        arena: id of the arena.
        voter: the name.
    """

    arena: str
    voter: str

    def decide(self, state: Arenas, at: int) -> Event | None:
        """The event `removed`; None where no answer of the voter stands."""
        arena = state.arena(self.arena)
        number = _voter_in(arena, self.voter)
        if not standing_answers(arena, number):
            return None
        if arena.learner.choices > 2 and arena.learner.request_features is not None:
            raise ConflictError(
                "slates with features of their own are not kept once they were answered: they cannot be learnt again."
            )
        return Event("removed", {"arena": self.arena, "at": at, "voter": number})

    def reply(self, state: Arenas, event: Event | None) -> bool:  # noqa: ARG002 - a command's signature
        """Whether any answer stood."""
        return event is not None


@dataclass(frozen=True, slots=True)
class EraseVoter:
    """Forget the name of a voter. The answers stay, under a number.

    Attributes:
        arena: id of the arena.
        voter: the name.
    """

    arena: str
    voter: str

    def decide(self, state: Arenas, at: int) -> Event:
        """The event `erased`, which does not repeat the name."""
        return Event("erased", {"arena": self.arena, "at": at, "voter": _voter_in(state.arena(self.arena), self.voter)})

    def reply(self, state: Arenas, event: Event | None) -> str:
        """What the voter is called from now on."""
        assert event is not None  # decide always makes one
        return state.arena(self.arena).voter_name(event.body["voter"]) or ""


def _voter_in(arena: Arena, name: str) -> int:
    number = arena.voters.get(name)
    if number is None:
        raise NotFoundError(f"arena {arena.spec.id!r} has no voter {name!r}.")
    return number
