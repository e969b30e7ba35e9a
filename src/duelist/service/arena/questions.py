"""From what an ask brings along to what it may choose from: a subset of the items, their contents, a prompt of the data set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.service.arena.arena import Arena, Body
from duelist.service.arena.contest import contest
from duelist.service.arena.contexts import AskContext, Context
from duelist.service.arena.learner import Offer, RequestedFeatures
from duelist.service.arena.prompts import row_code
from duelist.service.errors import ConflictError, RefusedError


class Question(NamedTuple):
    """What an ask chooses from, and what its event says of that.

    Attributes:
        offer: the items, with what voters see of each.
        brought: the prompt and the contents that came with the ask.
        row: number of the prompt in the arena's data set; None for none.
        subset: whether the items were named, and are not all of the active ones.
    """

    offer: Offer
    brought: AskContext
    row: int | None = None
    subset: bool = False

    def facts(self, body: Body) -> Body:
        """What the event `asked` says more; of contents only those that were shown."""
        facts: Body = {"offered": list(self.offer.members)} if self.subset else {}
        if self.row is not None:
            return {**facts, "row": self.row}
        shown = body.get("slate") or (body["first"], body["second"])
        contents = {number: content for number, content in self.brought.contents.items() if number in shown}
        return {**facts, **AskContext(self.brought.prompt, contents).to_plain()}


_NOTHING = AskContext(None, {})


def question_of(arena: Arena, context: Context | None, features: RequestedFeatures | None, voter: str, draw: int) -> Question:
    """What an ask chooses from. Without a context, the arena's data set and its goal say what comes next.

    Args:
        arena: the arena.
        context: what the ask brings along.
        features: what else it brings along.
        voter: name of the voter; empty for none.
        draw: random, for the choice among prompts that were answered equally often.
    """
    if context is None and arena.prompts.rows:
        return _next_prompt(arena, features, voter, draw)
    if context is None:
        active = arena.table.active
        pair = contest(arena, active, np.array(active, dtype=np.uint64), voter, draw)
        return Question(arena.learner.offer(features, pair), _NOTHING, subset=pair is not None)
    members, brought = None, AskContext(context.prompt, {})
    if context.candidates:
        members, brought = _candidates(arena, context)
    offer = arena.learner.offer(features, members)
    if brought != _NOTHING:
        codes = np.array([brought.code(number) for number in offer.members], dtype=np.uint64)
        offer = offer._replace(codes=codes)
    return Question(offer, brought, subset=members not in (None, arena.table.active) and features is None)


def _next_prompt(arena: Arena, features: RequestedFeatures | None, voter: str, draw: int) -> Question:
    active, learner, prompts = arena.table.active, arena.learner, arena.prompts
    row = prompts.next_row(active, learner.choices, arena.voters.get(voter, -1), draw)
    if row is None:
        raise ConflictError(
            f"no prompt of arena {arena.spec.id!r} was answered by {learner.choices} active items. Upload more answers, or "
            f"bring items back."
        )
    members = prompts.members(row, active)
    codes = np.array([row_code(row, number) for number in members], dtype=np.uint64)
    pair = contest(arena, members, codes, voter, draw)
    if pair is not None:
        members, codes = pair, codes[[members.index(number) for number in pair]]
    return Question(learner.offer(features, members)._replace(codes=codes), _NOTHING, row, subset=members != active)


def _candidates(arena: Arena, context: Context) -> tuple[tuple[int, ...], AskContext]:
    """The items that an ask names, ascending, and what they say."""
    table, named = arena.table, context.candidates or {}
    by_number = {table.number_of(item): content for item, content in named.items()}
    for number in by_number:
        if number in table.retired:
            raise ConflictError(f"item {table.items[number].id!r} is retired. Leave it out, or bring it back first.")
    if len(by_number) < arena.learner.choices:
        raise RefusedError(f"an ask needs at least {arena.learner.choices} candidates in this arena; got {len(by_number)}.")
    contents = {number: content for number, content in by_number.items() if content is not None}
    if contents and arena.spec.features == "text":
        raise RefusedError(
            "this arena learns from the words of its items, so an ask must not bring others. Make one with features "
            '"identity", which learns about the items, or "request".'
        )
    return tuple(sorted(by_number)), AskContext(context.prompt, contents)
