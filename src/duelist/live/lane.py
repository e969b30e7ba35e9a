"""One live lane: a policy in use, without an environment. An agent has one, and so has every arena of the service.

A lane is a deterministic fold: the same calls in the same order give the same state, bit for bit. Asking takes two steps.
`propose` computes what to show and changes nothing; `commit` moves the policy's state along. In between, the caller can write
down what was proposed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions, OffsetActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import Duels, check_outcomes, duels_between
from duelist.history.history import History
from duelist.live.seen_pairs import Codes, pair_codes
from duelist.policies.base import FRESH_QUESTIONS as FRESH_QUESTIONS
from duelist.policies.base import Policy, Round, check_choice
from duelist.policies.codec import is_registered
from duelist.policies.registry import plays_slates
from duelist.typing import BoolArray, FloatArray, IntArray

Shown = TypeVar("Shown")  # what a person is shown: Duels of one lane, or Slates
_OUTCOMES = {outcome: np.array([outcome]) for outcome in (1, -1, 0)}
NOTHING_PENDING: Mapping[int, Any] = MappingProxyType({})


class LivePolicy(Protocol[Shown]):
    """The verbs that live use needs: those of `duelist.policies.base.Policy`, for duels or for slates."""

    def start(self, problem: Problem, streams: Streams, /) -> Any:
        """The state before the first question."""
        ...

    def choose(self, state: Any, actions: ActionSet, streams: Streams, /) -> tuple[Shown, Any]:
        """What to show, and the state after asking."""
        ...

    def learn(self, state: Any, actions: ActionSet, shown: Shown, answers: Any, /) -> Any:
        """The state after learning one answer per lane."""
        ...

    def report(self, state: Any, /) -> dict[str, FloatArray]:
        """Numbers about how the policy is doing, each (lanes,)."""
        ...


class Basis(NamedTuple):
    """What a limited choice was made from: some arms, with their offsets, and their rows among all, ascending."""

    actions: FiniteActions
    rows: IntArray

    def renumber(self, duels: Duels) -> Duels:
        """The duels, whose rows are among all arms, by their rows among these."""
        return duels._replace(first=np.searchsorted(self.rows, duels.first), second=np.searchsorted(self.rows, duels.second))


class Ballot(NamedTuple):
    """Who answered which question.

    Attributes:
        voter: the name; None where it is not known.
        number: of the question.
    """

    voter: str | None
    number: int


class Proposal(NamedTuple, Generic[Shown]):
    """What the policy would show, and the state that it would then be in.

    Attributes:
        shown: the pair or the slate.
        state: the policy's state after asking.
        before: the state that it was computed from.
        actions: the set that it was chosen from.
        pending: numbers of the open questions that it was chosen beside.
        basis: where the choice was limited, what it was made from; None where it was made from all arms.
        proposed: what the policy would have shown, where exploration shows something else.
        exploration: probability with which the pair was drawn from all pairs instead.
        intervened: whether anything but the policy and the exploration had a say. Set it on every proposal that a rule could
            have changed, and not only where it did: the pairs that it leaves alone are likelier too.
    """

    shown: Shown
    state: Any
    before: Any
    actions: ActionSet
    pending: tuple[int, ...] = ()
    basis: Basis | None = None
    proposed: Shown | None = None
    exploration: float = 0.0
    intervened: bool = False


class Limits(NamedTuple):
    """What a pair must keep to.

    Attributes:
        contents: (n_arms,) a number for what each arm is: equal ones are the same candidate.
        refused: pairs that must not be shown, as `pair_codes` of their contents; ascending.
        rows: ascending, at least two: the arms that may be shown; None for all.
        offsets: (n_arms,) what is added to the utility of each arm; None for nothing.
        wanted: a row that must be shown, if it has a partner; -1 for none.
    """

    contents: Codes
    refused: Codes
    rows: IntArray | None = None
    offsets: FloatArray | None = None
    wanted: int = -1

    def may_meet(self, row: int, others: IntArray) -> BoolArray:
        """Which of the other rows are another candidate, and not in a refused pair with this one."""
        mine, theirs = self.contents[row], self.contents[others]
        refused = np.isin(pair_codes(np.full_like(theirs, mine), theirs), self.refused)
        return np.asarray((theirs != mine) & ~refused)


class Lane(Generic[Shown]):
    """A policy and what it has learnt, for duels or slates.

    Attributes:
        counts_pending: whether the policy wants to know which questions are open when it chooses.
        tells_voters_apart: whether it matters who answers.

    Args:
        policy: hyper-parameters.
        problem: what the policy may know beforehand; one lane, live.
        seed: names all random numbers.
        generation: how often the lane was started again from nothing, for example because the dimension grew. Each generation
            has random numbers of its own.
    """

    votes: History | None = None
    tells_voters_apart = False

    def __init__(self, policy: LivePolicy[Shown], problem: Problem, *, seed: int, generation: int = 0) -> None:
        self.policy, self.problem, self.seed, self.generation = policy, problem, seed, generation
        self.dim = problem.dim
        self.streams = Streams(seed, [generation])
        self.state = policy.start(problem, self.streams)
        self._unknown = not (is_registered(policy) or plays_slates(type(policy)))
        self._proposal: Proposal[Shown] | None = None
        aware = getattr(type(policy), "choose_with_pending", Policy.choose_with_pending)
        self.counts_pending = aware is not Policy.choose_with_pending

    def propose(self, actions: ActionSet, pending: Mapping[int, Shown] = NOTHING_PENDING) -> Proposal[Shown]:
        """What to show next. Nothing changes until `commit`, and asking again before that gives the same proposal.

        Args:
            actions: what to choose from.
            pending: what was shown in the questions that are open, by number, oldest first; read where `counts_pending`.
        """
        known, numbers = self._proposal, tuple(pending)
        if (
            known is not None
            and known.before is self.state
            and known.pending == numbers
            and known.actions.digest == actions.digest
        ):
            return known
        if actions.dim != self.dim or actions.lanes != 1:
            raise InvalidInputError(
                f"features must be (n_arms, {self.dim}) for this agent; got {actions.lanes} lane(s) of dimension "
                f"{actions.dim}. An agent keeps the dimension it was made with."
            )
        if pending and self.counts_pending:
            aware: Any = self.policy
            chosen = aware.choose_with_pending(self.state, actions, self.streams, tuple(pending.values()))
        else:
            chosen = self.policy.choose(self.state, actions, self.streams)
        if self._unknown:
            check_choice(self.policy, chosen, actions)
        shown, state = chosen
        self._proposal = Proposal(shown, state, self.state, actions, numbers)
        return self._proposal

    @property
    def proposal(self) -> Proposal[Shown] | None:
        """The latest proposal, until it is committed."""
        return self._proposal

    def commit(self, proposal: Proposal[Shown]) -> None:
        """Move on: what was proposed is shown."""
        self.state = proposal.state
        self._proposal = None

    def learn(self, actions: ActionSet, shown: Shown, answers: Any, ballot: Ballot | None = None) -> None:  # noqa: ARG002
        """Learn the answer to something that was shown.

        Args:
            actions: the set that it was chosen from.
            shown: the pair or the slate.
            answers: one per lane, as the policy takes them.
            ballot: who answered; read by lanes to which that matters.
        """
        self.state = self.policy.learn(self.state, actions, shown, answers)

    def voters_to_saved(self) -> Any:
        """What is known of voters, as a value that `duelist.core.serialize` takes; None where nobody asks."""
        return None

    def restore_voters(self, saved: Any) -> None:
        """The inverse of `voters_to_saved`."""


class LiveLane(Lane[Duels]):
    """A lane of duels.

    Args:
        policy: hyper-parameters.
        problem: what the policy may know beforehand; one lane, live.
        seed: names all random numbers.
        generation: how often the lane was started again from nothing.
        keep_votes: keep every vote in `votes` where the policy's state does not: for what is believed under any policy.

    Example:
        >>> from duelist.policies import Uniform
        >>> arms = FiniteActions(np.eye(3))
        >>> lane = LiveLane(Uniform(), Problem(dim=3, live=True), seed=0)
        >>> proposal = lane.propose(arms)
        >>> lane.commit(proposal)
        >>> lane.learn_rows(arms, int(proposal.shown.first[0]), int(proposal.shown.second[0]), outcome=1)
    """

    policy: Policy[Any]

    def __init__(
        self, policy: Policy[Any], problem: Problem, *, seed: int, generation: int = 0, keep_votes: bool = False
    ) -> None:
        super().__init__(policy, problem, seed=seed, generation=generation)
        if keep_votes and own_history(self.state) is None and policy.linear_utilities:
            self.votes = History.start(lanes=1, dim=self.dim, discount=policy.forgetting())

    def fresh(self, policy: Policy[Any]) -> LiveLane:
        """A lane like this one before the first question, which keeps its votes."""
        return LiveLane(policy, self.problem, seed=self.seed, generation=self.generation, keep_votes=True)

    def left_is_first(self, number: int) -> bool:
        """Which side the first candidate of a question is on: a coin named by the seed and the number of the question."""
        return bool(self.streams.uniforms("side of the screen", number)[0] < 0.5)

    def propose_distinct(
        self, actions: FiniteActions, pending: Mapping[int, Duels] = NOTHING_PENDING, limits: Limits | None = None
    ) -> Proposal[Duels]:
        """`propose`, where the same arm twice makes no sense even for a policy that allows it: the next row is second then."""
        proposal = self.propose(actions, pending) if limits is None else self.propose_within(actions, limits, pending)
        first = proposal.shown.first
        if first[0] != proposal.shown.second[0]:
            return proposal
        return proposal._replace(shown=duels_between(actions, first, (first + 1) % actions.n_arms, proposal.shown.note))

    def propose_within(
        self, actions: FiniteActions, limits: Limits, pending: Mapping[int, Duels] = NOTHING_PENDING
    ) -> Proposal[Duels]:
        """`propose`, with a pair that keeps to limits. The state moves on as without them.

        The policy chooses from the rows that are allowed, with their offsets. Where its pair is refused, its first arm stays,
        and the policy chooses again from that arm and all that it may meet; should it leave the arm out, the arm meets the
        first of the two that it chose. An arm that may meet nobody is left out, and the policy chooses from the rest. So there
        is a pair as long as one is allowed, and every call of the policy is one that it might have had anyway: with the same
        state and the same random numbers.
        """
        proposal = self.propose(actions, pending)
        rows = np.arange(actions.n_arms) if limits.rows is None else limits.rows
        ask = _Asker(self, actions, limits.offsets, tuple(pending.values()))
        if limits.rows is None and limits.offsets is None:
            pair, basis = proposal.shown, None
        else:
            pair, basis = ask(rows)
        if limits.wanted < 0 and not len(limits.refused):
            return proposal._replace(shown=pair, basis=basis)
        return proposal._replace(shown=_find_pair(pair, rows, limits, ask), intervened=True)

    def explore(self, proposal: Proposal[Duels], share: float, number: int) -> Proposal[Duels]:
        """With probability `share`, any two arms instead of those proposed; a coin named by the seed and the duel's number.

        They are two of those that may be shown. A pair for which something else had a say stands.
        """
        actions = proposal.actions
        if not isinstance(actions, FiniteActions):
            raise InvalidInputError(
                f"exploration draws from all pairs of arms and needs a finite action set; got {type(actions).__name__}. Make "
                f"the agent with exploration=0."
            )
        if proposal.intervened:
            return proposal
        if self.streams.uniforms("exploration", number)[0] >= share:
            return proposal._replace(exploration=share)
        rows = np.arange(actions.n_arms) if proposal.basis is None else proposal.basis.rows
        place = int(self.streams.uniforms("explored pair", number)[0] * len(rows) * (len(rows) - 1))
        first, second = divmod(place, len(rows) - 1)
        second += second >= first
        # Without a note: it says what the policy wanted to learn from its own pair.
        shown = duels_between(actions, rows[[first]], rows[[second]])
        return proposal._replace(shown=shown, proposed=proposal.shown, exploration=share)

    def propensity(self, proposal: Proposal[Duels]) -> float:
        """How likely this pair was, in either order; NaN where nobody can tell.

        Without exploration the policy says so, if it can. With exploration it is the probability given the pair that the policy
        proposed, which only the coin decides. That is exact for every policy, and enough for estimates without bias: what a
        policy proposes does not depend on who will win.
        """
        shown, share, actions = proposal.shown, proposal.exploration, proposal.actions
        if proposal.intervened:
            return math.nan
        if proposal.basis is not None:
            actions, shown = proposal.basis.actions, proposal.basis.renumber(shown)
        if not share or not isinstance(actions, FiniteActions):
            return float(self.policy.unordered_probability(proposal.state, actions, shown)[0])
        by_policy = proposal.proposed is None or same_pair(proposal.proposed, proposal.shown)
        return (1.0 - share) * by_policy + share * 2.0 / (actions.n_arms * (actions.n_arms - 1))

    def drawn_utilities(self, proposal: Proposal[Duels]) -> FloatArray:
        """(n_draws, 2) utilities of both candidates under each draw behind the pair; no rows where a policy draws none."""
        drawn: FloatArray = self.policy.drawn_utilities(proposal.state, proposal.shown.features)[0]
        return drawn

    def learn(
        self,
        actions: ActionSet,
        shown: Duels,
        answers: IntArray,
        ballot: Ballot | None = None,  # noqa: ARG002 - here all votes are alike
    ) -> None:
        """Learn who won: answers (1,) of +1 where the first won, -1 where it lost, 0 where they tied."""
        if answers.shape != (1,) or answers[0] not in _OUTCOMES:
            check_outcomes(answers, 1)
        self.state = self.policy.learn(self.state, actions, shown, answers)
        if self.votes is not None:
            self.votes = self.votes.append(actions, shown, answers)

    def learn_many(self, rounds: Sequence[Round], voters: Sequence[str] = ()) -> None:  # noqa: ARG002
        """Learn votes that came together; of voters, one name per vote or none at all."""
        self.state = self.policy.learn_many(self.state, rounds)
        if self.votes is not None:
            for actions, shown, answers in rounds:
                self.votes = self.votes.append(actions, shown, answers)

    def learn_rows(self, actions: FiniteActions, first: int, second: int, outcome: int) -> None:
        """Learn who won between two rows: +1 where the first won, -1 where it lost, 0 for a tie."""
        answers = _OUTCOMES[outcome] if outcome in _OUTCOMES else np.array([outcome])
        self.learn(actions, duels_between(actions, np.array([first]), np.array([second])), answers)


def same_pair(one: Duels, other: Duels) -> bool:
    """Whether two duels of one lane are about the same rows, in either order."""
    return {int(one.first[0]), int(one.second[0])} == {int(other.first[0]), int(other.second[0])}


class _Asker:
    """Asks a policy to choose from some rows only, in the state in which its lane is. Nothing changes."""

    def __init__(self, lane: LiveLane, actions: FiniteActions, offsets: FloatArray | None, pending: tuple[Duels, ...]) -> None:
        self.lane, self.actions, self.offsets, self.pending = lane, actions, offsets, pending

    def __call__(self, rows: IntArray) -> tuple[Duels, Basis]:
        """The pair by its rows in all arms, and what it was chosen from."""
        lane, actions = self.lane, self.actions
        some = actions if len(rows) == actions.n_arms else actions.take(rows)
        if self.offsets is not None:
            some = OffsetActions(some, self.offsets[None, rows])
        if self.pending and lane.counts_pending:
            chosen, _ = lane.policy.choose_with_pending(lane.state, some, lane.streams, self.pending)
        else:
            chosen, _ = lane.policy.choose(lane.state, some, lane.streams)
        return chosen._replace(first=rows[chosen.first], second=rows[chosen.second]), Basis(some, rows)

    def about(self, row: int, other: int, *, noted: bool) -> Duels:
        """The pair of two rows. A policy that leaves notes is asked about the two alone, for a note that fits them."""
        if noted:
            pair, _ = self(np.array(sorted((row, other))))
            if pair.first[0] != pair.second[0]:
                return pair
        return duels_between(self.actions, np.array([row]), np.array([other]))


def _find_pair(pair: Duels, rows: IntArray, limits: Limits, ask: _Asker) -> Duels:
    """A pair of these rows that keeps to the limits, starting from what the policy chose; that pair if there is none."""
    chosen, wanted = pair, limits.wanted
    while True:
        row = wanted if wanted >= 0 else int(chosen.first[0])
        partners = rows[limits.may_meet(row, rows)]
        if len(partners):
            break
        rows, wanted = rows[limits.contents[rows] != limits.contents[row]], -1
        if len(rows) < 2:
            return pair
        chosen, _ = ask(rows)
    shown = (int(chosen.first[0]), int(chosen.second[0]))
    if not np.isin(shown, partners).any():
        chosen, _ = ask(np.sort(np.append(partners, row)))
        shown = (int(chosen.first[0]), int(chosen.second[0]))
    # A policy that may show an arm against itself can still have chosen no partner.
    other = next((one for one in shown if one in partners), int(partners[0]))
    return chosen if {row, other} == {*shown} else ask.about(row, other, noted=chosen.note is not None)


def own_history(policy_state: Any) -> History | None:
    """The history in a policy's state or in a part of it, if there is one that counts every vote alike."""
    parts = policy_state if isinstance(policy_state, tuple) else ()
    for holder in (policy_state, *parts):
        history = getattr(holder, "history", None)
        if isinstance(history, History) and len(history.live_statistics.n_rows) == history.lanes:
            return history
    return None
