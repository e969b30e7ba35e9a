"""The agent of slates: choose several candidates, show them together, learn which won or how they rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.history.slates import Answer, Slates
from duelist.live.agent_state import AgentState
from duelist.live.lane import Lane, LivePolicy, Proposal
from duelist.live.live_agent import LiveAgent, check_methods, in_thread
from duelist.live.pending import Parts
from duelist.preferences.plackett_luce import RankingError
from duelist.typing import FloatArray

Ranking = int | Sequence[int] | Literal["tie"]


class LiveSlatePolicy(LivePolicy[Slates], Protocol):
    """A policy that shows slates, such as `ListwiseFGTS`."""

    @property
    def choices(self) -> int:
        """Candidates per slate."""
        ...

    @property
    def ties(self) -> Any:
        """The model of ties; None where a tie cannot be learnt."""
        ...


@dataclass(frozen=True, slots=True)
class Slate:
    """Candidates to compare.

    Attributes:
        id: number of the slate, growing from 0: what feedback refers to.
        rows: row of each candidate in the features that were offered. A row is there twice where two draws agree on it.
        features: (choices, dim) feature vectors of all, read-only.
        agent: which agent asked; empty where it is not known.
    """

    id: int
    rows: tuple[int, ...]
    features: FloatArray = field(compare=False, repr=False)
    agent: str = field(default="", compare=False, repr=False)


class SlateKind:
    """Questions that are slates."""

    noun, question = "slate", Slate

    def __init__(self, lane: Lane[Slates], policy: LiveSlatePolicy) -> None:
        self.lane, self.choices, self._ties = lane, policy.choices, policy.ties is not None

    def view(self, number: int, shown: Slates, agent: str, proposal: Proposal[Slates] | None = None) -> Slate:  # noqa: ARG002
        """The slate."""
        features = shown.features[0].copy()
        features.setflags(write=False)
        return Slate(number, tuple(shown.rows[0].tolist()), features, agent)

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
            if answer != "tie" or not self._ties:
                can = (
                    '"tie" is an answer only for a policy with a model of ties' if answer == "tie" else 'the one word is "tie"'
                )
                raise RankingError(f"an answer to slate {number} is a row or a ranking of rows {rows}; got {answer!r}: {can}.")
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


class SlateAgent(LiveAgent[Slates, Slate]):
    """A policy that shows slates, in live use. Everything but the form of the question is as with `Agent`.

    Voters, guardrails and costs are for pairs: `choose` takes features alone.

    Args:
        policy: hyper-parameters, for example `ListwiseFGTS(choices=3)`.
        dim: length of a feature vector.
        seed: names all random numbers: the same seed, features and answers give the same slates.
        horizon: how many slates will be learnt, if it is known.
        max_pending: how many slates may wait for an answer. One more drops the oldest: its answer is then refused.
        journal: where to keep everything; None for memory only. The caller closes it.
        snapshot_every: events on the journal between two snapshots.

    Example:
        >>> from duelist.policies import ListwiseFGTS
        >>> features = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.5, 0.5]]
        >>> agent = SlateAgent(ListwiseFGTS(choices=3), dim=2, seed=0)
        >>> for _ in range(10):
        ...     slate = agent.choose(features)
        ...     agent.learn(slate, winner=min(slate.rows))
        >>> agent.rounds
        10
    """

    @property
    def policy(self) -> LiveSlatePolicy:
        """The hyper-parameters."""
        policy: LiveSlatePolicy = self._memory.lane.policy  # type: ignore[assignment] # _new_state takes no other
        return policy

    def learn(
        self,
        slate: Slate | int,
        winner: int | Literal["tie"] | None = None,
        *,
        ranking: Sequence[int] | None = None,
        voter: str | None = None,
        time: float | None = None,
    ) -> None:
        """Learn which candidate won, or how they rank.

        Args:
            slate: what `choose` returned, or its id.
            winner: the row of the winner, one of `slate.rows`; or "tie", where the policy has a model of ties.
            ranking: instead of the winner, rows from the best on: all of the slate, or the best few.
            voter: who answered, so that `forget(voter=...)` finds it.
            time: when, in seconds of any clock, so that `forget(since=..., until=...)` finds it.
        """
        self._tell(slate, _answer(winner, ranking), voter, time)

    learn_async = in_thread(learn)

    def forget(
        self,
        slate: Slate | int | None = None,
        *,
        voter: str | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> int:
        """Take answers back and return how many, as `Agent.forget` does; on a journal only, which has what was asked and told.

        Args:
            slate: what `choose` returned, or its id.
            voter: as it was given to `learn`.
            since: answers of this time or later; those without a time are in no interval.
            until: answers before this time.
        """
        return self._forget(slate, voter, since, until)

    def _check_policy(self, policy: Any) -> None:
        check_methods(policy, "ListwiseFGTS()", ("start", "choose", "learn", "report"))
        if not isinstance(getattr(policy, "choices", None), int):
            raise InvalidInputError(
                f"a SlateAgent needs a policy that shows slates, such as ListwiseFGTS(); got {policy!r}. "
                f"Use Agent for a policy that shows pairs."
            )

    def _new_state(
        self,
        policy: LiveSlatePolicy,
        problem: Problem,
        seed: int,
        max_pending: int,
        keep_votes: bool,  # noqa: ARG002 - votes on slates cannot be taken back
        exploration: float,
    ) -> AgentState[Slates, Slate]:
        if exploration:
            raise InvalidInputError(f"exploration is for duels; got {exploration!r} for slates. Leave it out.")
        return AgentState(SlateKind(Lane(policy, problem, seed=seed), policy), max_pending)


def _answer(winner: int | Literal["tie"] | None, ranking: Sequence[int] | None) -> Ranking:
    answer = ranking if winner is None else winner
    if answer is None or (winner is not None and ranking is not None):
        raise InvalidInputError(f"give either winner or ranking; got winner={winner!r} and ranking={ranking!r}.")
    return answer
