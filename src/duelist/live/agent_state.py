"""What an agent is made of: a live lane, the questions without an answer yet, and how every other question ended.

A question is a duel or a slate; a `QuestionKind` says what differs. An answer is a tuple of places in what was shown, best
first: `(0,)` says that the first won, `(2, 0)` that the third did and the first came next, `()` that it was a tie.

A state is a deterministic fold: the same calls in the same order give the same state, bit for bit. Every method checks first
and changes something only when nothing can go wrong any more, so an error leaves the state as it was.
"""

from __future__ import annotations

import contextlib
from array import array
from itertools import takewhile
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.errors import AlreadyLearntError, InvalidInputError, NonFiniteError, SavedStateError, UnknownDuelError
from duelist.live.guardrails import Conditions, Guard
from duelist.live.lane import FRESH_QUESTIONS, Ballot, Lane, Proposal
from duelist.live.pending import Parts, load_pending, pair_alone, save_pending, stand_in
from duelist.live.vote_log import VoteLog

Answer = tuple[int, ...]

# How a question stands: one byte for every question ever asked. The numbers are in saved states: never renumber them.
PENDING, FIRST_WON, SECOND_WON, SKIPPED, DROPPED, TIED, RANKED = range(7)
_SHORT_ANSWERS: dict[int, Answer] = {FIRST_WON: (0,), SECOND_WON: (1,), TIED: ()}
_ENDINGS = {answer: ending for ending, answer in _SHORT_ANSWERS.items()}


class Question(Protocol):
    """What `choose` returns: a Duel or a Slate."""

    @property
    def id(self) -> int:
        """Its number."""
        ...

    @property
    def rows(self) -> tuple[int, ...]:
        """The row of each candidate; -1 where arms have no rows."""
        ...

    @property
    def agent(self) -> str:
        """Which agent asked; empty where it is not known."""
        ...


Shown = TypeVar("Shown")  # Duels or Slates of one lane
Asked = TypeVar("Asked", bound=Question)
AskedBy = TypeVar("AskedBy", bound=Question, covariant=True)


class QuestionKind(Protocol[Shown, AskedBy]):
    """What differs between duels and slates."""

    @property
    def lane(self) -> Lane[Shown]:
        """The policy in use."""
        ...

    @property
    def noun(self) -> str:
        """What a question is called in messages."""
        ...

    @property
    def question(self) -> type[AskedBy]:
        """The class of a question."""
        ...

    @property
    def choices(self) -> int:
        """How many candidates are shown."""
        ...

    def view(self, number: int, shown: Shown, agent: str, proposal: Proposal[Shown] | None = None) -> AskedBy:
        """The question of that agent as its asker sees it; the proposal that it was is known when it is new."""
        ...

    def with_facts(self, question: Any, body: dict[str, Any]) -> AskedBy:
        """The question with what its `asked` event says about it."""
        ...

    def to_parts(self, shown: Shown) -> Parts:
        """What was shown, as arrays."""
        ...

    def from_parts(self, parts: Parts) -> Shown:
        """The inverse of `to_parts`."""
        ...

    def read_answer(self, number: int, rows: tuple[int, ...], answer: Any) -> Answer:
        """The places that an answer to the question of that number and rows means; refuses what means none."""
        ...

    def describe(self, answer: Answer) -> str:
        """An answer in words."""
        ...

    def for_policy(self, answer: Answer) -> Any:
        """An answer as the policy's `learn` takes it."""
        ...

    def asked_facts(self, proposal: Proposal[Shown]) -> dict[str, Any]:
        """What an `asked` event says about what was shown."""
        ...

    def rows_from(self, body: dict[str, Any]) -> list[int]:
        """The rows that an `asked` event names."""
        ...

    def told_facts(self, answer: Answer) -> dict[str, Any]:
        """What a `told` event says about an answer."""
        ...

    def answer_from(self, body: dict[str, Any]) -> Answer:
        """The inverse of `told_facts`."""
        ...


class Pending(NamedTuple, Generic[Shown]):
    """A question without an answer: what was shown, and the action set that it came from; its digest if that is enough."""

    shown: Shown
    actions: ActionSet | bytes


class AgentState(Generic[Shown, Asked]):
    """A lane with its questions, which are numbered from 0.

    Args:
        kind: duels or slates, and the policy in use.
        max_pending: how many questions may be without an answer; one more drops the oldest.

    Attributes:
        log: what was asked and told, so that votes can be taken back; None where it is not kept.
        guard: what choices keep to; None where nothing can be limited.
        token: tells the questions of this agent from those of any other; empty where it is not known. Copies share it.
        exploration: how often something else is shown than the policy would show.
    """

    exploration = 0.0

    def __init__(self, kind: QuestionKind[Shown, Asked], max_pending: int) -> None:
        self.kind, self.lane, self.max_pending = kind, kind.lane, max_pending
        self.token = ""
        self.log: VoteLog | None = None
        self.guard: Guard | None = None
        self.rounds = 0
        self.endings = bytearray()
        self.rankings: dict[int, Answer] = {}  # answers that an ending cannot say
        self.rows = array("i")  # `choices` numbers for every question ever asked
        self.pending: dict[int, Pending[Shown]] = {}

    def propose(self, actions: ActionSet) -> Proposal[Shown]:
        """What to show."""
        return self.explore(self.proposal_of_policy(actions))

    def explore(self, proposal: Proposal[Shown]) -> Proposal[Shown]:
        """The proposal, or something else where exploration has its turn; here it never has."""
        return proposal

    def proposal_of_policy(self, actions: ActionSet) -> Proposal[Shown]:
        """What the policy would show, knowing which of the latest questions are open."""
        if not self.pending or not self.lane.counts_pending:
            return self.lane.propose(actions)
        return self.lane.propose(actions, self._open_questions())

    def propose_under(self, actions: ActionSet, conditions: Conditions | None) -> Proposal[Shown]:
        """`propose`, under the conditions of an ask and within the guardrails."""
        if self.guard is None or (conditions is None and self.guard.rails is None):
            return self.propose(actions)
        limits = self.guard.limits(actions, conditions, self.lane.policy)
        if limits is None:
            return self.propose(actions)
        lane: Any = self.lane  # a lane of duels: nothing else has a guard
        open_questions = self._open_questions() if lane.counts_pending else {}
        return self.explore(lane.propose_within(actions, limits, open_questions))

    def _open_questions(self) -> dict[int, Shown]:
        oldest = len(self.endings) - FRESH_QUESTIONS
        numbers = [*takewhile(lambda number: number >= oldest, reversed(self.pending))]
        return {number: self.pending[number].shown for number in reversed(numbers)}

    def ask(self, actions: ActionSet, conditions: Conditions | None = None) -> Asked:
        """Ask the policy what to show."""
        proposal = self.propose_under(actions, conditions)
        question = self.kind.view(len(self.endings), proposal.shown, self.token, proposal)
        self.lane.commit(proposal)
        self._add(question, proposal.shown, actions, conditions)
        return question

    def ask_again(self, actions: ActionSet, shown: Shown, conditions: Conditions | None = None) -> None:
        """Ask as before, and have `shown` stand, whatever the policy would show now: it is what was seen."""
        # Another version may be unable to repeat an old choice; it was asked all the same.
        with contextlib.suppress(NonFiniteError):
            self.lane.commit(self.proposal_of_policy(actions))
        self._add(self.view(len(self.endings), shown), shown, actions, conditions)

    def view(self, number: int, shown: Shown) -> Asked:
        """A question as its asker sees it."""
        return self.kind.view(number, shown, self.token)

    def tell(self, number: int, answer: Answer, voter: str | None = None, time: float | None = None) -> None:
        """Learn the answer to a pending question. When it was given matters only for taking it back."""
        self.refuse_ended(number)
        shown, actions = self.pending[number]
        if isinstance(actions, bytes):
            parts = self.kind.to_parts(shown)
            if self._keeps_sets():  # and did not when this was asked: the policy has changed
                actions, shown = FiniteActions(parts.features), self.kind.from_parts(pair_alone(parts))
            else:
                actions = stand_in(parts.features, actions)
        by = self.asker(number) if voter is None else voter
        self.lane.learn(actions, shown, self.kind.for_policy(answer), Ballot(by, number))
        self._forget_asker(number)
        if self.log is not None:
            self.log.tell(number, actions, by, time)
        del self.pending[number]
        self.endings[number] = _ENDINGS.get(answer, RANKED)
        if answer not in _ENDINGS:
            self.rankings[number] = answer
        self.rounds += 1

    def read_answer(self, question: Asked | int, answer: Any) -> tuple[int, Answer]:
        """The number of a question, and the places that an answer to it means."""
        number, rows = self.find(question)
        return number, self.kind.read_answer(number, rows, answer)

    def skip(self, number: int) -> None:
        """Forget a pending question: nothing is learnt from it."""
        self.refuse_ended(number)
        self._forget_asker(number)
        del self.pending[number]
        self.endings[number] = SKIPPED

    def asker(self, number: int) -> str | None:
        """The voter that a pending question was asked with; None for none."""
        return None if self.guard is None else self.guard.asked_by.get(number)

    def _forget_asker(self, number: int) -> None:
        """The voter that the question was asked with is not needed any more."""
        if self.guard is not None:
            self.guard.asked_by.pop(number, None)

    def find(self, question: Asked | int) -> tuple[int, tuple[int, ...]]:
        """The number and the rows of a question, if it was asked here."""
        asked = len(self.endings)
        noun = self.kind.noun
        if isinstance(question, self.kind.question):
            number = question.id
            if question.agent and self.token and question.agent != self.token:
                raise UnknownDuelError(
                    f"{noun} {number} was asked by another agent: it carries the mark {question.agent}, and this agent's is "
                    f"{self.token}. Give the answer to the agent that asked; to learn it here all the same, pass the number."
                )
        elif isinstance(question, int | np.integer) and not isinstance(question, bool):
            number = int(question)
        else:
            raise InvalidInputError(
                f"expected a {self.kind.question.__name__} from choose, or its id; got {question!r} of type "
                f"{type(question).__name__}."
            )
        if not 0 <= number < asked:
            known = f"asked {noun}s 0 to {asked - 1}" if asked else f"has not asked any {noun}"
            raise UnknownDuelError(f"this agent {known}; got {noun} {number}. Pass the {noun} that choose returned.")
        start = number * self.kind.choices
        rows = tuple(self.rows[start : start + self.kind.choices])
        if isinstance(question, self.kind.question) and question.rows != rows:
            raise UnknownDuelError(
                f"{noun} {number} of this agent compares {_words(rows)}; got {_words(question.rows)}. "
                f"It comes from another agent."
            )
        return number, rows

    def answer_to(self, number: int) -> Answer | None:
        """What a question was answered with; None where it was not."""
        ending = self.endings[number]
        return self.rankings[number] if ending == RANKED else _SHORT_ANSWERS.get(ending)

    def refuse_ended(self, number: int) -> None:
        """Say how a question ended that is no longer pending."""
        noun, ending = self.kind.noun, self.endings[number]
        if ending == PENDING:
            return
        if ending == DROPPED:
            raise UnknownDuelError(
                f"{noun} {number} was dropped: more than max_pending = {self.max_pending} {noun}s waited for an answer and it "
                f"was the oldest. Answer sooner, or make the agent with a larger max_pending."
            )
        if ending == SKIPPED:
            raise AlreadyLearntError(
                f"{noun} {number} was skipped before, or its answer forgotten; each {noun} ends once. Choose a new {noun}."
            )
        said = self.kind.describe(self.answer_to(number) or ())
        raise AlreadyLearntError(f"{noun} {number} was learnt before ({said}); each {noun} counts once. Choose a new {noun}.")

    def questions(self) -> tuple[Asked, ...]:
        """The pending questions, oldest first."""
        return tuple(self.view(number, pending.shown) for number, pending in self.pending.items())

    def report(self) -> dict[str, float]:
        """Human-readable numbers: questions asked, learnt and pending, and how the policy is doing."""
        numbers = {name: float(column[0]) for name, column in self.lane.policy.report(self.lane.state).items()}
        return {"asked": len(self.endings), "rounds": self.rounds, "pending": len(self.pending), **numbers}

    def to_saved(self) -> dict[str, Any]:
        """Everything that changes over time, as a value that `duelist.core.serialize` takes."""
        pending = {number: (self.kind.to_parts(one.shown), one.actions) for number, one in self.pending.items()}
        return {
            "state": self.lane.state,
            "votes": self.lane.votes,
            "voters": self.lane.voters_to_saved(),
            "rounds": self.rounds,
            "endings": np.frombuffer(bytes(self.endings), dtype=np.uint8),
            "rows": np.array(self.rows, dtype=np.int32).reshape(-1, self.kind.choices),
            "ranked": np.array(list(self.rankings), dtype=np.int64),
            "ranking_lengths": np.array([len(answer) for answer in self.rankings.values()], dtype=np.int64),
            "rankings": np.array([place for answer in self.rankings.values() for place in answer], dtype=np.int64),
            "waiting": save_pending(pending),
            "guard": None if self.guard is None else self.guard.to_saved(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go to where the state was when `to_saved` was called."""
        endings = bytearray(saved["endings"].tobytes())
        pending = load_pending(saved["waiting"])
        if list(pending) != [number for number, ending in enumerate(endings) if ending == PENDING]:
            raise SavedStateError(f"the saved {self.kind.noun}s that are pending are not those without an ending.")
        # Version 0.1.0 wrote two columns, and knew no rankings.
        rows = saved["rows"] if "rows" in saved else np.stack([saved["firsts"], saved["seconds"]], axis=1)
        if rows.shape != (len(endings), self.kind.choices):
            raise SavedStateError(f"expected saved rows ({len(endings)}, {self.kind.choices}); got {rows.shape}.")
        self.rankings = _load_rankings(saved) if "ranked" in saved else {}
        self.rows = array("i", np.ascontiguousarray(rows, dtype=np.int32).tobytes())
        if self.lane.votes is not None and saved.get("votes") is not None:
            self.lane.votes = saved["votes"]
        self.lane.restore_voters(saved.get("voters"))
        if self.guard is not None and saved.get("guard") is not None:
            self.guard.restore(saved["guard"])
        self.lane.state, self.rounds, self.endings = saved["state"], saved["rounds"], endings
        self.pending = {
            number: Pending(self.kind.from_parts(parts), self._needed(actions)) for number, (parts, actions) in pending.items()
        }

    def _needed(self, actions: ActionSet | bytes) -> ActionSet | bytes:
        """What learning will need of an action set: of a large set that the policy will not read again, the digest."""
        return actions.digest if isinstance(actions, FiniteActions) and not self._keeps_sets() else actions

    def _keeps_sets(self) -> bool:
        policy: Any = self.lane.policy
        return bool(policy.keeps_sets())

    def _add(self, question: Asked, shown: Any, actions: ActionSet, conditions: Conditions | None) -> None:
        if self.log is not None:
            self.log.ask(question.id, self.kind.to_parts(shown), actions)
        self.endings.append(PENDING)
        self.rows.extend(question.rows)
        self.pending[question.id] = Pending(shown, self._needed(actions))
        if self.guard is not None and (conditions is not None or self.guard.rails is not None):
            self.guard.record(question.id, actions, shown, conditions)
        if len(self.pending) > self.max_pending:
            oldest = next(iter(self.pending))
            self._forget_asker(oldest)
            del self.pending[oldest]
            self.endings[oldest] = DROPPED


def _load_rankings(saved: dict[str, Any]) -> dict[int, Answer]:
    ends = np.cumsum(saved["ranking_lengths"]).tolist()
    starts = [0, *ends[:-1]]
    places = saved["rankings"].tolist()
    numbers = saved["ranked"].tolist()
    return {number: tuple(places[start:end]) for number, start, end in zip(numbers, starts, ends, strict=False)}


def _words(rows: tuple[int, ...]) -> str:
    return " with ".join(str(row) for row in rows)
