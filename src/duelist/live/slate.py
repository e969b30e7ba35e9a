"""A slate as its asker sees it: a number, and the candidates to show together. The answer is the best of them, or a ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.history.slates import Answer, Slates
from duelist.live.agent_state import RANKED, AgentState, Pending
from duelist.live.duel import DuelState
from duelist.live.lane import Lane, Proposal
from duelist.live.pending import Parts
from duelist.live.vote_log import Selection, VoteLog
from duelist.policies.base import Round, SlatePolicy
from duelist.preferences.plackett_luce import RankingError
from duelist.typing import FloatArray

Ranking = int | Sequence[int] | Literal["tie"]


@dataclass(frozen=True, slots=True)
class Slate:
    """Candidates to compare.

    Attributes:
        id: number of the slate, growing from 0: what feedback refers to.
        rows: row of each candidate in the features that were offered, in the order of the algorithm.
        features: (choices, dim) feature vectors of all, read-only.
        screen: the same rows in the order in which to show them, which is drawn: who likes what stands first likes no draw.
        agent: which agent asked; empty where it is not known.
    """

    id: int
    rows: tuple[int, ...]
    features: FloatArray = field(compare=False, repr=False)
    screen: tuple[int, ...] = field(default=(), compare=False, repr=False)
    agent: str = field(default="", compare=False, repr=False)


class SlateLane(Lane[Slates]):
    """A lane of slates, which also learns votes on pairs that came together."""

    policy: SlatePolicy[Any]

    def fresh(self, policy: SlatePolicy[Any]) -> SlateLane:
        """A lane like this one before the first question."""
        return SlateLane(policy, self.problem, seed=self.seed, generation=self.generation)

    def learn_many(self, rounds: Sequence[Round], voters: Sequence[str] = ()) -> None:  # noqa: ARG002 - here all are alike
        """Learn votes on pairs."""
        self.state = self.policy.learn_many(self.state, rounds)


class SlateKind:
    """Questions that are slates."""

    noun, question = "slate", Slate

    def __init__(self, lane: SlateLane) -> None:
        self.lane, self.choices = lane, lane.policy.choices

    def view(self, number: int, shown: Slates, agent: str, proposal: Proposal[Slates] | None = None) -> Slate:  # noqa: ARG002
        """The slate."""
        features = shown.features[0].copy()
        features.setflags(write=False)
        rows = shown.rows[0]
        order = self.lane.streams.generator("side of the screen", 0, number).permutation(len(rows))
        return Slate(number, tuple(rows.tolist()), features, tuple(rows[order].tolist()), agent)

    def with_facts(self, question: Slate, body: dict[str, Any]) -> Slate:  # noqa: ARG002 - its event says nothing more
        """The slate itself."""
        return question

    def to_parts(self, shown: Slates) -> Parts:
        """The slate of the one lane."""
        return Parts(shown.rows[0], shown.features[0], None)

    def from_parts(self, parts: Parts) -> Slates:
        """The slate as one lane."""
        return Slates(parts.rows[None], parts.features[None])

    def read_answer(self, number: int, rows: tuple[int, ...], answer: Ranking) -> tuple[int, ...]:
        """An answer is the winner's row, rows from the best on, or "tie"."""
        if isinstance(answer, str):
            if answer != "tie":
                raise RankingError(
                    f'an answer to slate {number} is a row or a ranking of rows {rows}; got {answer!r}: the one word is "tie".'
                )
            return ()
        ranked = [answer] if isinstance(answer, int | np.integer) else list(np.asarray(answer).tolist())
        places: list[int] = []
        for row in ranked:
            free = [place for place, shown in enumerate(rows) if shown == row and place not in places]
            if isinstance(row, bool) or not isinstance(row, int | np.integer) or not free:
                raise RankingError(
                    f"an answer to slate {number} names rows of {rows}, best first, each as often as it was shown; got "
                    f"{answer!r}. Use agent.skip(slate) when there is no answer."
                )
            places.append(free[0])
        if not places:
            raise RankingError(f"an answer to slate {number} names at least the winner; got {answer!r}.")
        return tuple(places)

    def describe(self, answer: tuple[int, ...]) -> str:
        """The places from the best on."""
        return f"places {', '.join(map(str, answer))}, best first" if answer else "a tie"

    def for_policy(self, answer: tuple[int, ...]) -> list[Answer]:
        """One answer per lane."""
        return [list(answer) or "tie"]

    def asked_facts(self, proposal: Proposal[Slates]) -> dict[str, Any]:
        """The rows."""
        return {"rows": proposal.shown.rows[0].tolist()}

    def rows_from(self, body: dict[str, Any]) -> list[int]:
        """The rows."""
        rows: list[int] = body["rows"]
        return rows

    def told_facts(self, answer: tuple[int, ...]) -> dict[str, Any]:
        """Places from the best on; none for a tie."""
        return {"ranking": list(answer)}

    def answer_from(self, body: dict[str, Any]) -> tuple[int, ...]:
        """The places."""
        return tuple(body["ranking"])


class SlateState(DuelState):
    """A lane of slates: importing, forgetting and changing the policy are as with duels.

    Args:
        lane: the policy in use.
        max_pending: how many slates may be without an answer.
        keep_votes: whether to keep a log, without which nothing can be taken back.
    """

    guard = None  # type: ignore[assignment] # voters, costs and guardrails are for pairs

    def __init__(self, lane: SlateLane, max_pending: int, *, keep_votes: bool) -> None:
        kind: Any = SlateKind(lane)
        AgentState.__init__(self, kind, max_pending)
        if keep_votes:
            self.log = VoteLog(lane.policy.keeps_sets(), lane.policy.follows_sets())

    def outcome_of(self, number: int) -> Any:
        """The answer to a slate as a policy takes it."""
        return self.kind.for_policy(self.answer_to(number) or ())

    def forget(self, selection: Selection) -> int:
        """Take answers back and say how many, as with duels."""
        forgotten = super().forget(selection)
        self.rankings = {number: answer for number, answer in self.rankings.items() if self.endings[number] == RANKED}
        return forgotten

    def change_policy(self, policy: SlatePolicy[Any]) -> None:  # type: ignore[override]
        """Go over to another policy with as many choices."""
        if policy.choices != self.kind.choices:
            raise InvalidInputError(
                f"slates of this agent have {self.kind.choices} candidates; got a policy with choices={policy.choices}. Import "
                f"its votes into a new agent."
            )
        log = self.kept_log().for_policy(policy.keeps_sets(), policy.follows_sets())
        lane = self._live_lane.fresh(policy)
        log.play(lane, self)
        self._go_on_with(lane, log)
        self.pending = {number: Pending(shown, self._needed(actions)) for number, (shown, actions) in self.pending.items()}

    @property
    def _live_lane(self) -> Any:
        return self.kind.lane

    def _go_on_with(self, lane: Any, log: VoteLog) -> None:
        self.kind, self.lane, self.log = SlateKind(lane), lane, log  # type: ignore[assignment]


def slate_answer(winner: int | Literal["tie"] | None, ranking: Sequence[int] | None) -> Ranking:
    """The one of the two that was given."""
    answer = ranking if winner is None else winner
    if answer is None or (winner is not None and ranking is not None):
        raise InvalidInputError(f"give either winner or ranking; got winner={winner!r} and ranking={ranking!r}.")
    return answer
