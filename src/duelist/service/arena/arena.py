"""An arena: the fold over its events.

`duelist.service.arena.commands` decides which event happens; `apply` changes the arena by it. The journal stands between the
two, so a restart is the same fold again. Time is a number in each event and never read here: replaying needs no clock.

An event has a kind and a body, a JSON object. The names below are on disk since 0.1.0 and stay, also where the code has a
better word: `line_up` is the number of a roster.

| kind | the body, besides `arena` and `at` (milliseconds since 1970, UTC) |
|---|---|
| created | `spec`, `items` |
| added | `items` |
| retired, returned | `item` (number) |
| asked | `number`, `token`, `first`, `second` (item numbers), `flipped`, `line_up`, `stream` (generation of the lane, asks in
  it before this one), `policy`, `version`, `probability`, `explored` (null where unknown), `drawn`, and `request`,
  `features` and `voter` where they came with the ask; of a slate also `slate` (item numbers) and `order` (on the screen);
  since 0.2.0 where there are any: `offered` (the items chosen from, where not all active ones), `prompt`, `contents` (item
  number -> content and format, of the items shown), `row` (number of the prompt in the arena's data set) |
| told | `number`, `outcome`, `voter` where one came with the answer, `ranking` (places in the slate) where that is "ranked";
  since 0.2.0 `strength` and `comment` where they came |
| undone | `number` |
| imported | `batch`, `votes`: [first, second, outcome] |
| prompts | since 0.2.0: `batch`, `rows` (`prompt`, `answers` by item id), `items` (new ones) |
| goal | since 0.2.0: `goal`, or null |
| closed, reopened, deleted | since 0.2.0: nothing more |
| removed, erased | since 0.2.0: `voter` (number): the voter's answers do not count; the voter's name is gone |
| key | `id`, `role`, `digest`, `label`, `scope`, and since 0.2.0 `voter` and `quota`: no arena |
| revoked | `id`: no arena |

Since 0.2.0 an event also says `by`: the id of the key, or the session, that a request came with; "service" for the start.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

from duelist.live.seen_pairs import SeenPairs
from duelist.service.arena.contexts import AskContext, Content, Prompt
from duelist.service.arena.counts import AnswerCounts
from duelist.service.arena.decisions import (
    ASKED,
    IMPORTED,
    NO_VOTER,
    SETTLED,
    UNDOABLE,
    WAITING,
    Decision,
    DecisionLog,
    NewDecision,
)
from duelist.service.arena.goals import ArenaGoal
from duelist.service.arena.items import Item, ItemTable
from duelist.service.arena.learner import Offer, OpenAsk, ShownSlate
from duelist.service.arena.outcomes import OUTCOMES, Outcome
from duelist.service.arena.prompts import PromptSet, row_code
from duelist.service.arena.removal import remove_answers
from duelist.service.arena.slates import make_learner
from duelist.service.arena.spec import ArenaSpec
from duelist.service.arena.summary import ArenaSummary, ListedItem
from duelist.service.errors import ClosedError, NotFoundError

Body = dict[str, Any]
_REMEMBERED_REQUESTS = 10_000


class Arena:
    """Items, the decisions about them, and what was learnt from those.

    Attributes:
        spec: settings.
        table: items.
        log: decisions.
        learner: the live lane.
        voters: name -> number.
        batches: imported batches: name -> number of votes.
        revision: grows with every event; caches are keyed by it.
        undoable: answers that may still be undone: decision -> when told, oldest first.
        undoable_by: voter number -> the one answer that this voter may still undo.
        seen: which pairs each voter was asked about.
        asked_for: request ids of the latest asks -> decision: a repeated request gets the same pair.
        contexts: what asks brought along, by decision.
        prompts: the data set of the arena, if it has one.
        remarks: comments on answers, by decision.
        strengths: by how much the better candidate was better, by decision, where the voter said so.
        counts: standing answers of every voter, and through every key.
        goal: what shall be found out; None for nothing.
        closed: whether the arena takes no more asks and answers.
    """

    def __init__(self, spec: ArenaSpec) -> None:
        self.spec = spec
        self.table = ItemTable(spec.id)
        self.log = DecisionLog()
        self.learner = make_learner(spec, self.table)
        self.voters: dict[str, int] = {}
        self.batches: dict[str, int] = {}
        self.revision = 0
        self.undoable: dict[int, int] = {}
        self.undoable_by: dict[int, int] = {}
        self.seen = SeenPairs()
        self.asked_for: dict[str, int] = {}
        self.contexts: dict[int, AskContext] = {}
        self.prompts = PromptSet()
        self.remarks: dict[int, str] = {}
        self.strengths: dict[int, str] = {}
        self.counts = AnswerCounts()
        self.goal: ArenaGoal | None = None
        self.closed = False
        self._learnt_outcomes = frozenset(spec.learnt_outcomes)

    def apply(self, kind: str, body: Body) -> None:
        """Change the arena by an event."""
        if self.undoable:
            self.settle(body["at"])
        _APPLY[kind](self, body)
        self.revision += 1

    def settle(self, at: int) -> None:
        """Learn the answers whose time for undoing is over. Doing so early or late gives the same state."""
        while self.undoable:
            number, told_at = next(iter(self.undoable.items()))
            if told_at + self.spec.undo_ms > at:
                break
            self._settle_one(number)

    def decision(self, decision_id: str) -> Decision:
        """The decision of that id."""
        number, _, token = decision_id.partition("-")
        if token and number.isdecimal() and number.isascii():
            with contextlib.suppress(IndexError):
                decision = self.log[int(number)]
                if decision.source == ASKED and decision.id == decision_id:
                    return decision
        raise NotFoundError(f"arena {self.spec.id!r} has no ask {decision_id!r}. Use the id that the ask returned.")

    def check_open(self) -> None:
        """Refuse what a closed arena does not take."""
        if self.closed:
            raise ClosedError(f"arena {self.spec.id!r} is closed: it takes no more asks and answers.")

    @property
    def n_learnable(self) -> int:
        """Answers that the policy learns, those that can still be undone included."""
        return self.log.count(*self.spec.learnt_outcomes)

    @property
    def n_votes(self) -> int:
        """Answers other than skips."""
        return self.log.count(Outcome.FIRST, Outcome.SECOND, Outcome.TIE, Outcome.BOTH_BAD, Outcome.RANKED)

    def prompt_of(self, number: int) -> Prompt | None:
        """What the candidates of a decision answer; None where nothing says so."""
        if number in self.prompts.of_ask:
            return self.prompts.rows[self.prompts.of_ask[number]].prompt
        context = self.contexts.get(number)
        return context.prompt if context is not None and context.prompt is not None else self.spec.asked_about

    def content_of(self, number: int, item: int) -> Content:
        """What an item said in a decision."""
        if number in self.prompts.of_ask:
            return self.prompts.rows[self.prompts.of_ask[number]].answers[item]
        if number in self.contexts and item in self.contexts[number].contents:
            return self.contexts[number].contents[item]
        own = self.table.items[item]
        return Content(own.content, own.format)

    def voter_name(self, number: int) -> str | None:
        """The name of a voter; None where there is no voter of that number."""
        return list(self.voters)[number] if 0 <= number < len(self.voters) else None

    def summary(self) -> ArenaSummary:
        """The settings and the counts."""
        spec = self.spec
        return ArenaSummary(
            id=spec.id,
            name=spec.name,
            question=spec.question,
            features=spec.features,
            dim=self.learner.lane.dim,
            embedder=spec.embedder,
            policy=str(spec.policy["kind"]),
            choices=self.learner.choices,
            items=len(self.table.items),
            active_items=len(self.table.active),
            asks=len(self.log),
            votes=self.n_votes,
            ties=spec.ties,
            exploration=spec.exploration,
            undo_seconds=spec.undo_ms / 1000,
            seed=spec.seed,
            closed=self.closed,
            blind=spec.blind,
            voter_quota=spec.voter_quota,
            prompts=len(self.prompts.rows),
            goal=self.goal,
        )

    def listed_item(self, number: int) -> ListedItem:
        """The item of that number."""
        return ListedItem(self.table.items[number], number not in self.table.retired)

    def listed_items(self) -> list[ListedItem]:
        """All items, in the order in which they were added."""
        return [self.listed_item(number) for number in range(len(self.table.items))]

    def _apply_added(self, body: Body) -> None:
        self.table.add([Item.from_plain(plain) for plain in body["items"]])
        if "rows" in body:
            self.prompts.add(body["rows"], self.table.numbers)
        dim = self.spec.dim_for(len(self.table.items))
        if dim != self.learner.lane.dim:
            self.learner.start_again(dim, [self.log[number] for number in self.learner.learnt])

    def _apply_prompts(self, body: Body) -> None:
        self.prompts.batches[body["batch"]] = len(body["rows"])
        if body["items"]:
            self._apply_added(body)
        else:
            self.prompts.add(body["rows"], self.table.numbers)

    def _apply_retired(self, body: Body) -> None:
        self.table.set_retired(body["item"], retired=True)

    def _apply_returned(self, body: Body) -> None:
        self.table.set_retired(body["item"], retired=False)

    def _apply_asked(self, body: Body) -> None:
        learner = self.learner
        offer = learner.offer(body.get("features"), tuple(body["offered"]) if "offered" in body else None)
        learner.commit(offer)
        probability, explored = body["probability"], body["explored"]
        asker = NO_VOTER
        if "voter" in body:
            asker = self.voters.setdefault(body["voter"], len(self.voters))
            if "slate" not in body:
                self.seen.add(body["voter"], *self._contents(body, offer))
        number = self.log.append(
            NewDecision(
                body["token"],
                body["first"],
                body["second"],
                body["flipped"],
                ASKED,
                body["at"],
                body["line_up"],
                math.nan if probability is None else probability,
                math.nan if explored is None else explored,
                body["drawn"],
                asker,
            )
        )
        if "offered" in body:
            learner.subsets[number] = offer.members
        if "row" in body:
            self.prompts.note_asked(number, body["row"], asker)
        elif "prompt" in body or "contents" in body:
            self.contexts[number] = AskContext.from_plain(body)
        if "slate" in body:
            learner.slates[number] = ShownSlate(tuple(body["slate"]), tuple(body["order"]))
        if learner.lane.counts_pending:
            learner.keep_open(number, OpenAsk(body["first"], body["second"], body["line_up"]))
        if "request" in body:
            self.asked_for[body["request"]] = number
            if len(self.asked_for) > _REMEMBERED_REQUESTS:
                del self.asked_for[next(iter(self.asked_for))]
        if learner.request_features is not None:
            learner.request_features.keep(number, offer.members, offer.actions)

    def _contents(self, body: Body, offer: Offer) -> list[int]:
        """What the voter saw of the first and the second item of an ask, each as a number."""
        pair = body["first"], body["second"]
        if "row" in body:
            return [row_code(body["row"], number) for number in pair]
        if "prompt" in body or "contents" in body:
            context = AskContext.from_plain(body)
            return [context.code(number) for number in pair]
        return self.learner.contents_of(offer, *pair)

    def _apply_told(self, body: Body) -> None:
        number, voter = body["number"], body.get("voter", "")
        index = self.voters.setdefault(voter, len(self.voters)) if voter else self.log.asker_of(number)
        if index in self.undoable_by:
            # A voter's earlier answer stands as soon as the same voter gives another.
            self._settle_one(self.undoable_by[index])
        if "ranking" in body:
            self.learner.rankings[number] = tuple(body["ranking"])
        undoable = index != NO_VOTER and self.spec.undo_ms > 0
        teller = self.counts.number_of(body.get("by", ""))
        self.log.set_told(number, OUTCOMES[body["outcome"]], body["at"], index, UNDOABLE if undoable else SETTLED, teller)
        self.counts.add(index, teller, 1)
        if "comment" in body:
            self.remarks[number] = body["comment"]
        if "strength" in body:
            self.strengths[number] = body["strength"]
        if self.prompts.rows:
            self.prompts.note_answered(number, 1)
        if undoable:
            self.undoable[number] = body["at"]
            self.undoable_by[index] = number
        else:
            self._learn(self.log[number])

    def _apply_undone(self, body: Body) -> None:
        number = body["number"]
        del self.undoable[number]
        del self.undoable_by[self.log[number].voter]
        self.take_back(number)
        self.log.set_told(number, Outcome.OPEN, 0, NO_VOTER, WAITING)

    def take_back(self, number: int) -> None:
        """Forget what belongs to an answer that no longer stands; the log and the learner are the caller's."""
        decision = self.log[number]
        self.counts.add(decision.voter, decision.teller, -1)
        self.prompts.note_answered(number, -1)
        self.learner.rankings.pop(number, None)
        self.remarks.pop(number, None)
        self.strengths.pop(number, None)

    def _apply_removed(self, body: Body) -> None:
        remove_answers(self, body["voter"])

    def _apply_erased(self, body: Body) -> None:
        """The name of a voter is gone; the number stays."""
        name = list(self.voters)[body["voter"]]
        self.seen.forget(name)
        self.voters = {f"erased-{body['voter']}" if one == name else one: number for one, number in self.voters.items()}

    def _apply_goal(self, body: Body) -> None:
        self.goal = None if body["goal"] is None else ArenaGoal(**body["goal"])

    def _apply_closed(self, body: Body) -> None:  # noqa: ARG002 - the signature of all
        self.closed = True

    def _apply_reopened(self, body: Body) -> None:  # noqa: ARG002
        self.closed = False

    def _apply_imported(self, body: Body) -> None:
        self.batches[body["batch"]] = len(body["votes"])
        at, roster = body["at"], len(self.table.rosters) - 1
        for first, second, outcome in body["votes"]:
            number = self.log.append(NewDecision(0, first, second, False, IMPORTED, at, roster, explored=0.0))
            self.log.set_told(number, OUTCOMES[outcome], at, NO_VOTER, SETTLED)
            self._learn(self.log[number])

    def _settle_one(self, number: int) -> None:
        """An answer can no longer be undone: learn it."""
        self.log.set_settled(number)
        decision = self.log[number]
        del self.undoable[number]
        del self.undoable_by[decision.voter]
        self._learn(decision)

    def _learn(self, decision: Decision) -> None:
        learner = self.learner
        learner.open.pop(decision.number, None)
        if decision.outcome in self._learnt_outcomes:
            learner.learn(decision)
            learner.learnt.append(decision.number)
        if learner.request_features is not None:
            learner.request_features.settle(decision)


_APPLY = {
    "added": Arena._apply_added,
    "retired": Arena._apply_retired,
    "returned": Arena._apply_returned,
    "asked": Arena._apply_asked,
    "told": Arena._apply_told,
    "undone": Arena._apply_undone,
    "imported": Arena._apply_imported,
    "prompts": Arena._apply_prompts,
    "goal": Arena._apply_goal,
    "closed": Arena._apply_closed,
    "reopened": Arena._apply_reopened,
    "removed": Arena._apply_removed,
    "erased": Arena._apply_erased,
}
