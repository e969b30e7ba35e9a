"""What an agent in memory was asked and told, kept so that votes can be taken back and the policy changed.

To take a vote back, the policy's state is built again from nothing: all questions are asked again, in their order and with the
same random numbers, and all answers but those are learnt again. The result is, bit for bit, the state of an agent that was
asked the same questions, showed the same candidates, and was told nothing where votes were taken back. An agent on a journal
has its events for that, and needs no log.

What it costs: for a question both feature vectors, 16 dim bytes, or 8 per number that is not zero where most are, and some 300
bytes beside; and each distinct set that the policy reads again (`Policy.keeps_sets` for answered questions,
`Policy.follows_sets` for all) in the same way, 8 dim n_arms bytes at most. Of arms that have one context in a block
each it is the context.
"""

from __future__ import annotations

import contextlib
import math
from array import array
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.arrays import SplitDict
from duelist.core.errors import InvalidInputError, NonFiniteError
from duelist.live.lane import Ballot, LiveLane
from duelist.live.pending import (
    DIGEST_BYTES,
    Parts,
    load_pending,
    pack_actions,
    pack_parts,
    pair_alone,
    save_pending,
    stand_in,
    unpack_actions,
    unpack_parts,
)
from duelist.live.votes import Votes, learn_votes


class Selection(NamedTuple):
    """Which votes to take back: those that meet everything that is not None.

    Attributes:
        duel: the one answer to this duel.
        voter: all of one voter.
        since: those given at this time or later.
        until: those given before this time.
    """

    duel: int | None = None
    voter: str | None = None
    since: float | None = None
    until: float | None = None

    def check(self) -> None:
        """Refuse a selection of nothing in particular."""
        if all(part is None for part in self):
            raise InvalidInputError("say which votes to forget: a duel or its number, voter=..., or since=... and until=...")
        if self.duel is not None and any(part is not None for part in self[1:]):
            raise InvalidInputError("a duel has one answer; got voter, since or until as well. Give one or the other.")
        for name in ("since", "until"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value)):
                raise InvalidInputError(
                    f"{name} must be a number, on the clock of the times that votes came with; got {value!r}."
                )

    def meets(self, duel: int | None, voter: str | None, time: float | None) -> bool:
        """Whether one vote is selected. Votes without a time are in no interval, those without a voter are nobody's."""
        if self.duel is not None:
            return duel == self.duel
        if self.voter is not None and voter != self.voter:
            return False
        if self.since is None and self.until is None:
            return True
        known = math.nan if time is None else time
        return (self.since is None or known >= self.since) and (self.until is None or known < self.until)

    def left_of(self, votes: Votes) -> Votes:
        """The imported votes that are not selected."""
        taken = [self.meets(None, voter or None, time) for voter, time in zip(votes.voters, votes.times, strict=True)]
        return votes.select(~np.array(taken, dtype=np.bool_))


class _Asked(NamedTuple):
    parts: Parts
    actions: ActionSet | bytes


class _Asks(Mapping[int, _Asked]):
    """Questions by number, in few bytes each."""

    def __init__(self) -> None:
        self._packed = SplitDict[int, bytes](
            lambda number: number >> 10
        )  # with the digest of the set in front, where that is all that is kept of it
        self._sets: dict[int, ActionSet] = {}

    def __setitem__(self, number: int, asked: _Asked) -> None:
        digest = asked.actions if isinstance(asked.actions, bytes) else b""
        if not isinstance(asked.actions, bytes):
            self._sets[number] = asked.actions
        self._packed[number] = digest + pack_parts(asked.parts)

    def __getitem__(self, number: int) -> _Asked:
        packed, actions = self._packed[number], self._sets.get(number)
        if actions is not None:
            return _Asked(unpack_parts(packed), actions)
        return _Asked(unpack_parts(packed[DIGEST_BYTES:]), packed[:DIGEST_BYTES])

    def __iter__(self) -> Iterator[int]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


class _Sets(Mapping[bytes, ActionSet]):
    """Action sets by digest, in few bytes each."""

    def __init__(self) -> None:
        self._packed = SplitDict[bytes, bytes](lambda digest: digest[0])
        self._others: dict[bytes, ActionSet] = {}

    def add(self, actions: ActionSet) -> None:
        """Keep a set, if it is not kept already."""
        digest = actions.digest
        if digest in self:
            return
        packed = pack_actions(actions)
        if packed is None:
            self._others[digest] = actions
        else:
            self._packed[digest] = packed

    def __contains__(self, digest: object) -> bool:
        return digest in self._packed or digest in self._others

    def __getitem__(self, digest: bytes) -> ActionSet:
        return self._others[digest] if digest in self._others else unpack_actions(self._packed[digest])

    def __iter__(self) -> Iterator[bytes]:
        yield from self._packed
        yield from self._others

    def __len__(self) -> int:
        return len(self._packed) + len(self._others)


class _Answered(Protocol):
    """What the log needs to know of its agent."""

    kind: Any

    def outcome_of(self, number: int) -> npt.NDArray[np.int64]:
        """The answer to a duel as a policy takes it."""
        ...


class VoteLog:
    """Everything asked and told, in order. The answers themselves are with the agent, which keeps how every duel ended."""

    def __init__(self, keeps_sets: bool, follows_sets: bool) -> None:
        self.keeps_sets, self.follows_sets = keeps_sets, follows_sets
        # 2 n: duel n was asked; 2 n + 1: it was answered; -1 - i: the votes `imports[i]` came.
        self.order = array("q")
        self.asked = _Asks()
        self.sets = _Sets()
        self.imports: list[Votes] = []
        self.voters: dict[int, str] = {}
        self.times: dict[int, float] = {}

    def ask(self, number: int, parts: Parts, actions: ActionSet) -> None:
        """A duel was asked."""
        small = actions.digest if isinstance(actions, FiniteActions) else actions
        self.asked[number] = _Asked(parts, small)
        if self.follows_sets and isinstance(actions, FiniteActions):
            self.sets.add(actions)
        self.order.append(2 * number)

    def tell(self, number: int, actions: ActionSet | bytes, voter: str | None, time: float | None) -> None:
        """A duel was answered."""
        if self.keeps_sets and isinstance(actions, FiniteActions):
            self.sets.add(actions)
        if voter is not None:
            self.voters[number] = voter
        if time is not None:
            self.times[number] = time
        self.order.append(2 * number + 1)

    def add(self, votes: Votes) -> None:
        """Votes came from elsewhere."""
        self.order.append(-1 - len(self.imports))
        self.imports.append(votes)

    @property
    def votes(self) -> int:
        """How many votes were learnt."""
        return sum(code % 2 for code in self.order if code >= 0) + sum(votes.total for votes in self.imports)

    def for_policy(self, keeps_sets: bool, follows_sets: bool) -> VoteLog:
        """The same log for another policy: without notes, and with the pair where it would read a set that is gone."""
        log = VoteLog(keeps_sets, follows_sets)
        log.order, log.sets, log.imports, log.voters, log.times = self.order, self.sets, self.imports, self.voters, self.times
        for number, (parts, actions) in self.asked.items():
            asked = _Asked(parts._replace(note=None), actions)
            if (keeps_sets or follows_sets) and isinstance(actions, bytes) and actions not in self.sets:
                asked = _Asked(pair_alone(parts), FiniteActions(parts.features))
            log.asked[number] = asked
        return log

    def without(self, selection: Selection) -> tuple[VoteLog, list[int]]:
        """The log without some votes, and the duels whose answers are gone."""
        log = VoteLog(self.keeps_sets, self.follows_sets)
        log.asked, gone = self.asked, []
        for code in self.order:
            if code < 0:
                left = selection.left_of(self.imports[-1 - code])
                if len(left.outcomes):
                    log.add(left)
                continue
            number = code // 2
            if code % 2 and selection.meets(number, self.voters.get(number), self.times.get(number)):
                gone.append(number)
                continue
            log.order.append(code)
            actions = self.asked[number].actions
            if isinstance(actions, bytes) and actions in self.sets and (self.follows_sets or code % 2):
                log.sets.add(self.sets[actions])
        left_over = set(gone)
        log.voters = {number: voter for number, voter in self.voters.items() if number not in left_over}
        log.times = {number: time for number, time in self.times.items() if number not in left_over}
        return log, gone

    def play(self, lane: LiveLane, answers: _Answered) -> None:
        """Ask and tell everything again, on a lane that was just started."""
        for code in self.order:
            if code < 0:
                learn_votes(lane, self.imports[-1 - code])
                continue
            parts, actions = self.asked[code // 2]
            if isinstance(actions, bytes):
                actions = self.sets.get(actions) or stand_in(parts.features, actions)
            if code % 2:
                ballot = Ballot(self.voters.get(code // 2), code // 2)
                lane.learn(actions, answers.kind.from_parts(parts), answers.outcome_of(code // 2), ballot)
            else:
                with contextlib.suppress(NonFiniteError):  # as `AgentState.ask_again` does
                    lane.commit(lane.propose(actions))

    def to_saved(self) -> dict[str, Any]:
        """The log as a value that can be saved."""
        return {
            "order": np.array(self.order, dtype=np.int64),
            "asked": save_pending(self.asked),
            "sets": list(self.sets.values()),
            "imports": [votes._asdict() for votes in self.imports],
            "voted": np.array(list(self.voters), dtype=np.int64),
            "voters": np.array(list(self.voters.values()), dtype=np.str_),
            "timed": np.array(list(self.times), dtype=np.int64),
            "times": np.array(list(self.times.values()), dtype=np.float64),
        }

    def fill_from(self, saved: Mapping[str, Any]) -> None:
        """Take over what `to_saved` wrote."""
        self.order = array("q", saved["order"].astype(np.int64).tobytes())
        self.asked = _Asks()
        for number, asked in load_pending(saved["asked"]).items():
            self.asked[number] = _Asked(*asked)
        self.sets = _Sets()
        for actions in saved["sets"]:
            self.sets.add(actions)
        self.imports = [Votes(**votes) for votes in saved["imports"]]
        self.voters = dict(zip(saved["voted"].tolist(), saved["voters"].tolist(), strict=True))
        self.times = dict(zip(saved["timed"].tolist(), saved["times"].tolist(), strict=True))
