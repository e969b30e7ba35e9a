"""A duel as its asker sees it: a number, and the two candidates to show, in the order of the algorithm and of the screen.

The two orders differ because `first` is the better candidate more often than not: if it were always on the left, it would also
get the votes of those who like the left. So the sides are drawn, as a function of the seed and the number of the duel, and
nothing is stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from duelist.core.checks import finite_number, one_of
from duelist.core.errors import InvalidInputError
from duelist.history.duels import Duels
from duelist.live.agent_state import SKIPPED, AgentState, Pending
from duelist.live.guardrails import Guard
from duelist.live.lane import LiveLane, Proposal
from duelist.live.pending import Parts
from duelist.live.vote_log import Selection, VoteLog
from duelist.live.votes import Votes, learn_votes
from duelist.policies.base import Policy
from duelist.typing import FloatArray, IntArray

Winner = int | Literal["first", "second", "left", "right", "tie"]
_INTEGERS = (int, np.integer)
_ANSWERS: dict[str, tuple[int, ...]] = {"first": (0,), "second": (1,), "tie": ()}
_WINNERS = ("first", "second", "left", "right", "tie")
_NAMES = {answer: name for name, answer in _ANSWERS.items()}
_WORDS = {(0,): "first candidate won", (1,): "second candidate won", (): "a tie"}
_OUTCOMES = {(0,): np.array([1]), (1,): np.array([-1]), (): np.array([0])}


class Propensity:
    """How likely a pair was, worked out when somebody wants to know: with many arms it takes longer than choosing.

    Until then it holds the action set and the policy's state; afterwards, or in a pickle, a number.
    """

    __slots__ = ("_value", "_work_out")

    def __init__(self, value: float = math.nan, work_out: Callable[[], float] | None = None) -> None:
        self._value, self._work_out = value, work_out

    @property
    def value(self) -> float:
        """The probability; NaN where the policy cannot tell."""
        work_out = self._work_out
        if work_out is not None:
            self._value = work_out()
            self._work_out = None
        return self._value

    def __reduce__(self) -> tuple[type[Propensity], tuple[float]]:
        return Propensity, (self.value,)


@dataclass(frozen=True, slots=True)
class Duel:
    """Two candidates to compare.

    Attributes:
        id: number of the duel, growing from 0: what feedback refers to.
        first: row of the first candidate in the features that were offered; -1 where arms have no rows.
        second: row of the second candidate; -1 where arms have no rows.
        features: (2, dim) feature vectors of the first and the second candidate, read-only.
        left_is_first: whether the first candidate belongs on the left of the screen.
        agent: which agent asked; empty where it is not known.
        odds: holds the propensity.
    """

    id: int
    first: int
    second: int
    features: FloatArray = field(compare=False, repr=False)
    left_is_first: bool = field(default=True, compare=False, repr=False)
    agent: str = field(default="", compare=False, repr=False)
    odds: Propensity = field(default_factory=Propensity, compare=False, repr=False)

    @property
    def rows(self) -> tuple[int, int]:
        """The rows of the first and the second candidate."""
        return self.first, self.second

    @property
    def left(self) -> int:
        """Row of the candidate to show on the left; -1 where arms have no rows."""
        return self.first if self.left_is_first else self.second

    @property
    def right(self) -> int:
        """Row of the candidate to show on the right; -1 where arms have no rows."""
        return self.second if self.left_is_first else self.first

    @property
    def screen_features(self) -> FloatArray:
        """(2, dim) feature vectors of the left and the right candidate: what to show where arms have no rows."""
        return self.features if self.left_is_first else self.features[::-1]

    @property
    def propensity(self) -> float:
        """How likely this pair was, in either order, given all that came before; NaN where nobody can tell.

        Where candidates were left out or had a cost, it is that of the choice from the others. It cannot tell where a pair
        stands in for one that the voter had seen, or a candidate is shown for its `min_share`.

        It is worked out at the first reading. Until then the duel holds on to the action set that it was chosen from. A duel
        that comes from `agent.pending` does not know it.
        """
        return self.odds.value


class DuelKind:
    """Questions that are duels."""

    noun, question, choices = "duel", Duel, 2

    def __init__(self, lane: LiveLane) -> None:
        self.lane = lane

    def view(self, number: int, shown: Duels, agent: str, proposal: Proposal[Duels] | None = None) -> Duel:
        """The duel; with the proposal that it was, it knows its propensity."""
        features = shown.features[0].copy()
        features.setflags(write=False)
        odds = Propensity() if proposal is None else Propensity(work_out=partial(self.lane.propensity, proposal))
        first, second = int(shown.first[0]), int(shown.second[0])
        return Duel(number, first, second, features, self.left_is_first(number), agent, odds)

    def with_facts(self, question: Duel, body: dict[str, Any]) -> Duel:
        """The duel with the propensity that its `asked` event holds."""
        known = body["propensity"]
        return replace(question, odds=Propensity(math.nan if known is None else known))

    def left_is_first(self, number: int) -> bool:
        """Which side the first candidate of a duel is on."""
        return self.lane.left_is_first(number)

    def to_parts(self, shown: Duels) -> Parts:
        """The pair of the one lane."""
        rows = np.array([shown.first[0], shown.second[0]], dtype=np.int64)
        return Parts(rows, shown.features[0], None if shown.note is None else shown.note[0])

    def from_parts(self, parts: Parts) -> Duels:
        """The pair as one lane."""
        note = None if parts.note is None else parts.note[None]
        return Duels(parts.rows[:1].copy(), parts.rows[1:].copy(), parts.features[None], note)

    def read_answer(self, number: int, rows: tuple[int, ...], answer: Winner) -> tuple[int, ...]:
        """A winner is a row of the duel, or "first", "second", "left", "right" or "tie"."""
        if isinstance(answer, str):
            name = one_of("winner", answer, _WINNERS)
            return _ANSWERS[name] if name in _ANSWERS else ((0,) if (name == "left") == self.left_is_first(number) else (1,))
        first, second = rows
        if isinstance(answer, _INTEGERS) and not isinstance(answer, bool):
            if first < 0:
                raise InvalidInputError(
                    f'duel {number} has no rows; got winner {answer}. Say "left", "right", "first", "second" or "tie".'
                )
            if answer == first:
                return (0,)
            if answer == second:
                return (1,)
        raise InvalidInputError(
            f'winner must be {first} or {second}, the rows of duel {number}, or "left", "right", "first", "second" or "tie"; '
            f"got {answer!r}. Use agent.skip(duel) when there is no answer."
        )

    def describe(self, answer: tuple[int, ...]) -> str:
        """Who won."""
        return _WORDS[answer]

    def for_policy(self, answer: tuple[int, ...]) -> IntArray:
        """(1,) of +1, -1 or 0."""
        return _OUTCOMES[answer]

    def asked_facts(self, proposal: Proposal[Duels]) -> dict[str, Any]:
        """Both rows, how likely this pair was, and whether it was explored where that can be."""
        first, second = int(proposal.shown.first[0]), int(proposal.shown.second[0])
        known = self.lane.propensity(proposal)
        facts = {"first": first, "second": second, "propensity": known if math.isfinite(known) else None}
        if proposal.exploration:
            facts |= {"exploration": proposal.exploration, "explored": proposal.proposed is not None}
        return facts

    def rows_from(self, body: dict[str, Any]) -> list[int]:
        """Both rows."""
        return [body["first"], body["second"]]

    def told_facts(self, answer: tuple[int, ...]) -> dict[str, Any]:
        """The winner's name."""
        return {"winner": _NAMES[answer]}

    def answer_from(self, body: dict[str, Any]) -> tuple[int, ...]:
        """What the winner's name means."""
        return _ANSWERS[body["winner"]]


class DuelState(AgentState[Duels, Duel]):
    """A lane of duels, which also learns votes from elsewhere, takes votes back and goes over to another policy.

    Args:
        lane: the policy in use.
        max_pending: how many duels may be without an answer.
        keep_votes: whether to keep a log, without which nothing can be taken back. A journal is one.
        exploration: how often any two arms are shown instead of the policy's.
    """

    def __init__(self, lane: LiveLane, max_pending: int, *, keep_votes: bool, exploration: float = 0.0) -> None:
        super().__init__(DuelKind(lane), max_pending)
        self.guard: Guard = Guard()
        self.exploration = finite_number("exploration", exploration, at_least=0.0, at_most=1.0)
        if keep_votes:
            self.log = VoteLog(lane.policy.keeps_sets(), lane.policy.follows_sets())

    def explore(self, proposal: Proposal[Duels]) -> Proposal[Duels]:
        """The policy's pair, or any two arms where exploration has its turn."""
        return self._live_lane.explore(proposal, self.exploration, len(self.endings)) if self.exploration else proposal

    def import_votes(self, votes: Votes) -> int:
        """Learn votes from elsewhere, all or none, and say how many."""
        learn_votes(self._live_lane, votes)
        self.rounds += votes.total
        if self.log is not None:
            self.log.add(votes)
        return votes.total

    def forget(self, selection: Selection) -> int:
        """Take votes back and say how many: the state of never having been told, bit for bit. Their duels count as skipped."""
        log, gone = self.kept_log().without(selection)
        lane = self._live_lane.fresh(self._live_lane.policy)
        log.play(lane, self)
        self._go_on_with(lane, log)
        for number in gone:
            self.endings[number] = SKIPPED
        before, self.rounds = self.rounds, log.votes
        return before - self.rounds

    def change_policy(self, policy: Policy[Any]) -> None:
        """Go over to another policy, in the state in which it would be had it learnt all votes itself."""
        log = self.kept_log().for_policy(policy.keeps_sets(), policy.follows_sets())
        lane = self._live_lane.fresh(policy)
        log.play(lane, self)
        self._go_on_with(lane, log)
        self.pending = {
            number: Pending(shown._replace(note=None), self._needed(actions))
            for number, (shown, actions) in self.pending.items()
        }

    def kept_log(self) -> VoteLog:
        """The log, which an agent in memory has where it keeps votes."""
        assert self.log is not None
        return self.log

    def outcome_of(self, number: int) -> IntArray:
        """The answer to a duel as a policy takes it."""
        answer = self.answer_to(number)
        return _OUTCOMES[() if answer is None else answer]

    @property
    def _live_lane(self) -> LiveLane:
        lane = self.kind.lane
        assert isinstance(lane, LiveLane)  # __init__ takes no other
        return lane

    def _go_on_with(self, lane: LiveLane, log: VoteLog) -> None:
        self.kind, self.lane, self.log = DuelKind(lane), lane, log
