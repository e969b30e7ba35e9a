"""What a caller may want of an arena, as values.

A command *decides* which event happens, refuses what cannot be, and *replies* from the state after the event. Deciding changes
nothing that a replay would not change as well. Nothing here knows of HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

from duelist.journal.base import Event
from duelist.service.arena.arena import Arena, Body
from duelist.service.arena.contexts import Context, Prompt
from duelist.service.arena.decisions import UNDOABLE, Decision
from duelist.service.arena.items import Item
from duelist.service.arena.learner import RequestedFeatures
from duelist.service.arena.outcomes import OUTCOME_NAMES, Outcome, Strength, from_sides
from duelist.service.arena.questions import Question, question_of
from duelist.service.arena.slates import SlateLearner, places_of
from duelist.service.errors import ConflictError, QuotaError, RefusedError
from duelist.service.keys import Key
from duelist.version import __version__


class Arenas(Protocol):
    """The state that commands are decided on."""

    arenas: dict[str, Arena]
    keys: dict[str, Key]

    def arena(self, arena_id: str) -> Arena:
        """The arena of that id. Raises `NotFoundError` where there is none."""
        ...


class Asked(NamedTuple):
    """A pair to show, or a slate.

    Attributes:
        decision: with the answer, if there is one.
        left: the item on the left.
        right: the item on the right.
        repeated: whether the same request had got this pair before.
        slate: instead of left and right, the items in the order of the screen; empty for a pair.
        ranking: the items that the answer names, best first.
        prompt: what they answer; None for nothing.
        blind: whether voters are told handles instead of ids.
    """

    decision: Decision
    left: Item
    right: Item
    repeated: bool
    slate: tuple[Item, ...] = ()
    ranking: tuple[Item, ...] = ()
    prompt: Prompt | None = None
    blind: bool = False


class Told(NamedTuple):
    """What became of an answer.

    Attributes:
        repeated: whether the same answer had been given before.
        undo_until: until when it can be undone, milliseconds since 1970; None where it cannot.
    """

    repeated: bool
    undo_until: int | None


@dataclass(frozen=True, slots=True)
class Ask:
    """Choose a pair, or a slate where the arena shows those.

    Attributes:
        arena: id of the arena.
        token: random, the unguessable part of the decision's id.
        flipped: random, whether the first item is shown on the right.
        request: id of the request; empty for none. The same id again gets the same pair.
        features: item id -> features, in arenas whose features come with each ask.
        voter: any name; empty for none. A named voter gets no pair twice while there are others.
        context: a prompt, or what the candidates say this time; None for neither.
        actor: id of the key or session that the request came with; empty where nobody asked for it.
    """

    arena: str
    token: int
    flipped: bool
    request: str = ""
    features: RequestedFeatures | None = None
    voter: str = ""
    context: Context | None = None
    actor: str = ""

    def decide(self, state: Arenas, at: int) -> Event | None:
        """The event `asked`."""
        arena = state.arena(self.arena)
        if self.request and self.request in arena.asked_for:
            return None
        if arena.closed or arena.spec.voter_quota or _has_quota(state, self.actor):
            _check_may_answer(state, arena, self.actor, self.voter)
        if arena.undoable:
            arena.settle(at)
        spec, learner = arena.spec, arena.learner
        question = self._question(arena)
        offer = learner.offer(self.features) if question is None else question.offer
        limits = learner.unseen(offer, arena.seen, self.voter) if self.voter else None
        proposal = learner.propose(offer, limits)
        actions, members, _ = offer
        body: Body = {
            "arena": spec.id,
            "at": at,
            "number": len(arena.log),
            "token": self.token,
            "line_up": len(arena.table.rosters) - 1,
            "stream": [learner.lane.generation, learner.asks],
            "policy": spec.policy["kind"],
            "version": __version__,
        }
        if isinstance(learner, SlateLearner):
            body |= learner.slate_facts(proposal, offer, self.token)
        else:
            body |= {
                "first": members[proposal.shown.first[0]],
                "second": members[proposal.shown.second[0]],
                "flipped": self.flipped,
                "probability": learner.probability(proposal),
                "explored": learner.explored(proposal, offer),
                "drawn": learner.lane.drawn_utilities(proposal).tolist(),
            }
        if proposal.exploration:
            body["exploration"] = proposal.exploration
            if proposal.proposed is not None:
                body["proposed"] = [members[proposal.proposed.first[0]], members[proposal.proposed.second[0]]]
        if question is not None:
            body |= question.facts(body)
        body |= {name: said for name, said in (("by", self.actor), ("request", self.request), ("voter", self.voter)) if said}
        if self.features is not None:
            rows = zip(members, actions.features[0].tolist(), strict=True)
            body["features"] = {arena.table.items[number].id: row for number, row in rows}
        return Event("asked", body)

    def _question(self, arena: Arena) -> Question | None:
        if self.context is None and not arena.prompts.rows and (arena.goal is None or self.features is not None):
            return None
        return question_of(arena, self.context, self.features, self.voter, self.token)

    def reply(self, state: Arenas, event: Event | None) -> Asked:
        """The pair, new or as before."""
        arena = state.arenas[self.arena]
        number = arena.asked_for[self.request] if event is None else event.body["number"]
        return shown_pair(arena, arena.log[number], repeated=event is None)


@dataclass(frozen=True, slots=True)
class Tell:
    """Answer an ask.

    Attributes:
        arena: id of the arena.
        ask: id of the decision.
        verdict: left, right, tie, both_bad or skip.
        voter: any name; empty for the voter who was asked, if there was one.
        ranking: instead of a verdict, ids or handles of items that were shown, best first: the best alone, or more.
        strength: by how much the better one is better; empty where the voter did not say.
        comment: what the voter adds in words.
        actor: id of the key or session that the request came with; empty where nobody asked for it.
    """

    arena: str
    ask: str
    verdict: str
    voter: str = ""
    ranking: tuple[str, ...] = ()
    strength: Strength | Literal[""] = ""
    comment: str = ""
    actor: str = ""

    def decide(self, state: Arenas, at: int) -> Event | None:
        """The event `told`; None where the same answer was given before."""
        arena = state.arena(self.arena)
        decision = arena.decision(self.ask)
        if self.ranking or isinstance(arena.learner, SlateLearner):
            outcome, places = self._read(arena, decision)
        else:
            outcome, places = from_sides(self.verdict, flipped=decision.flipped), None
        if decision.outcome is outcome and (places is None or arena.learner.rankings[decision.number] == places):
            return None
        if decision.outcome is not Outcome.OPEN:
            raise ConflictError(
                f"ask {self.ask} was answered before, and differently. Each ask counts once; undo it first, in time."
            )
        if arena.closed or arena.spec.voter_quota or _has_quota(state, self.actor):
            voter = self.voter or arena.voter_name(decision.asker) or ""
            _check_may_answer(state, arena, self.actor, voter)
        kept = arena.learner.request_features
        if kept is not None and decision.number not in kept.waiting:
            raise ConflictError(f"ask {self.ask} was dropped: more than {kept.most_waiting} later asks came without an answer.")
        body: Body = {"arena": self.arena, "at": at, "number": decision.number, "outcome": OUTCOME_NAMES[outcome]}
        if places is not None:
            body["ranking"] = places
        if self.voter:
            body["voter"] = self.voter
        if self.actor:
            body["by"] = self.actor
        if self.strength:
            if not (outcome.is_win or outcome is Outcome.RANKED):
                raise RefusedError(f"strength says by how much the better one is better; this answer is {self.verdict!r}.")
            body["strength"] = self.strength
        if self.comment:
            body["comment"] = self.comment
        return Event("told", body)

    def _read(self, arena: Arena, decision: Decision) -> tuple[Outcome, tuple[int, ...] | None]:
        """The outcome, and of a slate the places in it that the answer names."""
        is_slate = decision.number in arena.learner.slates
        if not self.ranking:
            if self.verdict in ("left", "right"):
                raise RefusedError(f"ask {self.ask} shows a slate, without sides: say best or ranking; got {self.verdict!r}.")
            return from_sides(self.verdict, flipped=False), None
        numbers = [_number_of(arena, decision, item) for item in self.ranking]
        places = places_of(arena.learner, decision, numbers, self.ranking)
        if is_slate:
            return Outcome.RANKED, places
        return (Outcome.FIRST if places[0] == 0 else Outcome.SECOND), None

    def reply(self, state: Arenas, event: Event | None) -> Told:
        """Whether it counts now, and until when it can be undone."""
        arena = state.arenas[self.arena]
        told_at = arena.undoable.get(int(self.ask.partition("-")[0]))
        return Told(event is None, None if told_at is None else told_at + arena.spec.undo_ms)


@dataclass(frozen=True, slots=True)
class Undo:
    """Take an answer back, in time and by the voter who gave it.

    Attributes:
        arena: id of the arena.
        ask: id of the decision.
        voter: who gave the answer.
    """

    arena: str
    ask: str
    voter: str

    def decide(self, state: Arenas, at: int) -> Event:
        """The event `undone`."""
        arena = state.arena(self.arena)
        number = arena.decision(self.ask).number
        arena.check_open()
        arena.settle(at)
        decision = arena.log[number]
        if decision.outcome is Outcome.OPEN:
            raise ConflictError(f"ask {self.ask} has no answer to undo.")
        if decision.stage != UNDOABLE:
            raise ConflictError(
                f"the answer to ask {self.ask} can no longer be undone: that is possible for "
                f"{arena.spec.undo_ms / 1000:g} s, by a named voter, and until that voter answers another ask."
            )
        if arena.voters.get(self.voter) != decision.voter:
            raise ConflictError(f"the answer to ask {self.ask} was given by another voter, who alone may undo it.")
        return Event("undone", {"arena": self.arena, "at": at, "number": number})

    def reply(self, state: Arenas, event: Event | None) -> Asked:  # noqa: ARG002 - a command's signature
        """The pair, which waits for an answer again."""
        arena = state.arenas[self.arena]
        return shown_pair(arena, arena.decision(self.ask), repeated=True)


def shown_pair(arena: Arena, decision: Decision, *, repeated: bool) -> Asked:
    """A decision with its two items, left and right as drawn, and what they said in it; of a slate, with all."""
    items, learner, number = arena.table.items, arena.learner, decision.number
    prompt = arena.prompt_of(number)
    if number in learner.slates:
        slate, ranking = learner.slates[number], learner.rankings.get(number, ())
        shown = tuple(_as_shown(arena, number, item) for item in slate.screen)
        ranked = tuple(items[slate.items[place]] for place in ranking)
        return Asked(decision, shown[0], shown[1], repeated, shown, ranked, prompt, arena.spec.blind)
    first, second = decision.first, decision.second
    left, right = (second, first) if decision.flipped else (first, second)
    if number in arena.contexts or number in arena.prompts.of_ask:
        both = _as_shown(arena, number, left), _as_shown(arena, number, right)
    else:
        both = items[left], items[right]
    return Asked(decision, *both, repeated, (), (), prompt, arena.spec.blind)


def handle_of(decision: Decision, place: int) -> str:
    """What a voter calls the item in that place on the screen, from 1, where ids are not told.

    It says which ask it belongs to and nothing of the item.
    """
    return f"{decision.id}.{place}"


def _as_shown(arena: Arena, number: int, item: int) -> Item:
    """An item with what it said in a decision."""
    content, kind = arena.content_of(number, item)
    return replace(arena.table.items[item], content=content, format=kind)


def _number_of(arena: Arena, decision: Decision, name: str) -> int:
    """The item that a voter means, by its id or by its handle."""
    if name.startswith(f"{decision.id}."):
        slate = arena.learner.slates.get(decision.number)
        screen = (decision.left, decision.right) if slate is None else slate.screen
        for place, number in enumerate(screen, start=1):
            if name == handle_of(decision, place):
                return number
    return arena.table.number_of(name)


def _has_quota(state: Arenas, actor: str) -> bool:
    return actor in state.keys and state.keys[actor].quota > 0


def _check_may_answer(state: Arenas, arena: Arena, actor: str, voter: str) -> None:
    """Refuse where the arena is closed, or a quota is used up."""
    arena.check_open()
    key = state.keys.get(actor)
    if key is not None and key.quota and arena.counts.through(actor) >= key.quota:
        raise QuotaError(f"this voting link was made for {key.quota} answers, and all of them were given. Thank you.")
    most = arena.spec.voter_quota
    if most and voter in arena.voters and arena.counts.of_voter(arena.voters[voter]) >= most:
        raise QuotaError(f"a voter may give {most} answers in this arena, and all of yours were given. Thank you.")
