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

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import Duels, check_outcomes, duels_between
from duelist.history.history import History
from duelist.policies.base import Policy, Round
from duelist.typing import FloatArray, IntArray

Shown = TypeVar("Shown")  # what a person is shown: Duels of one lane, or Slates
_OUTCOMES = {outcome: np.array([outcome]) for outcome in (1, -1, 0)}
NOTHING_PENDING: Mapping[int, Any] = MappingProxyType({})
# A question without an answer counts as one that is on its way until so many more were asked; then it counts as lost. Without a
# limit, questions that nobody ever answers would pass for knowledge.
FRESH_QUESTIONS = 64


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


class Proposal(NamedTuple, Generic[Shown]):
    """What the policy would show, and the state that it would then be in.

    Attributes:
        shown: the pair or the slate.
        state: the policy's state after asking.
        before: the state that it was computed from.
        actions: the set that it was chosen from.
        pending: numbers of the open questions that it was chosen beside.
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
    proposed: Shown | None = None
    exploration: float = 0.0
    intervened: bool = False


class Lane(Generic[Shown]):
    """A policy and what it has learnt, for duels or slates.

    Attributes:
        counts_pending: whether the policy wants to know which questions are open when it chooses.

    Args:
        policy: hyper-parameters.
        problem: what the policy may know beforehand; one lane, live.
        seed: names all random numbers.
        generation: how often the lane was started again from nothing, for example because the dimension grew. Each generation
            has random numbers of its own.
    """

    votes: History | None = None

    def __init__(self, policy: LivePolicy[Shown], problem: Problem, *, seed: int, generation: int = 0) -> None:
        self.policy, self.problem, self.seed, self.generation = policy, problem, seed, generation
        self.dim = problem.dim
        self.streams = Streams(seed, [generation])
        self.state = policy.start(problem, self.streams)
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
            shown, state = aware.choose_with_pending(self.state, actions, self.streams, tuple(pending.values()))
        else:
            shown, state = self.policy.choose(self.state, actions, self.streams)
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

    def learn(self, actions: ActionSet, shown: Shown, answers: Any) -> None:
        """Learn the answer to something that was shown.

        Args:
            actions: the set that it was chosen from.
            shown: the pair or the slate.
            answers: one per lane, as the policy takes them.
        """
        self.state = self.policy.learn(self.state, actions, shown, answers)


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

    def propose_distinct(self, actions: FiniteActions, pending: Mapping[int, Duels] = NOTHING_PENDING) -> Proposal[Duels]:
        """`propose`, where the same arm twice makes no sense even for a policy that allows it: the next row is second then."""
        proposal = self.propose(actions, pending)
        first = proposal.shown.first
        if first[0] != proposal.shown.second[0]:
            return proposal
        return proposal._replace(shown=duels_between(actions, first, (first + 1) % actions.n_arms, proposal.shown.note))

    def explore(self, proposal: Proposal[Duels], share: float, number: int) -> Proposal[Duels]:
        """With probability `share`, any two arms instead of those proposed; a coin named by the seed and the duel's number."""
        actions = proposal.actions
        if not isinstance(actions, FiniteActions):
            raise InvalidInputError(
                f"exploration draws from all pairs of arms and needs a finite action set; got {type(actions).__name__}. Make "
                f"the agent with exploration=0."
            )
        if self.streams.uniforms("exploration", number)[0] >= share:
            return proposal._replace(exploration=share)
        pairs = actions.n_arms * (actions.n_arms - 1)
        first, second = divmod(int(self.streams.uniforms("explored pair", number)[0] * pairs), actions.n_arms - 1)
        second += second >= first
        # Without a note: it says what the policy wanted to learn from its own pair.
        shown = duels_between(actions, np.array([first]), np.array([second]))
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
        if not share or not isinstance(actions, FiniteActions):
            return float(self.policy.unordered_probability(proposal.state, actions, shown)[0])
        own = shown if proposal.proposed is None else proposal.proposed
        by_policy = {int(own.first[0]), int(own.second[0])} == {int(shown.first[0]), int(shown.second[0])}
        return (1.0 - share) * by_policy + share * 2.0 / (actions.n_arms * (actions.n_arms - 1))

    def drawn_utilities(self, proposal: Proposal[Duels]) -> FloatArray:
        """(n_draws, 2) utilities of both candidates under each draw behind the pair; no rows where a policy draws none."""
        drawn: FloatArray = self.policy.drawn_utilities(proposal.state, proposal.shown.features)[0]
        return drawn

    def learn(self, actions: ActionSet, shown: Duels, answers: IntArray) -> None:
        """Learn who won: answers (1,) of +1 where the first won, -1 where it lost, 0 where they tied."""
        if answers.shape != (1,) or answers[0] not in _OUTCOMES:
            check_outcomes(answers, 1)
        self.state = self.policy.learn(self.state, actions, shown, answers)
        if self.votes is not None:
            self.votes = self.votes.append(actions, shown, answers)

    def learn_many(self, rounds: Sequence[Round]) -> None:
        """Learn votes that came together."""
        self.state = self.policy.learn_many(self.state, rounds)
        if self.votes is not None:
            for actions, shown, answers in rounds:
                self.votes = self.votes.append(actions, shown, answers)

    def learn_rows(self, actions: FiniteActions, first: int, second: int, outcome: int) -> None:
        """Learn who won between two rows: +1 where the first won, -1 where it lost, 0 for a tie."""
        answers = _OUTCOMES[outcome] if outcome in _OUTCOMES else np.array([outcome])
        self.learn(actions, duels_between(actions, np.array([first]), np.array([second])), answers)


def own_history(policy_state: Any) -> History | None:
    """The history in a policy's state or in a part of it, if there is one that counts every vote alike."""
    parts = policy_state if isinstance(policy_state, tuple) else ()
    for holder in (policy_state, *parts):
        history = getattr(holder, "history", None)
        if isinstance(history, History) and len(history.live_statistics.n_rows) == history.lanes:
            return history
    return None
