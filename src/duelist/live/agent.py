"""The agent: choose a pair, show it to a person, learn who won. Live use, with no environment and no truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NoReturn, Self, cast

import numpy.typing as npt

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import finite_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.history.duels import Duels
from duelist.live.agent_log import Ask, ChangePolicy, Import, SetCostWeight, SetGuardrails
from duelist.live.agent_state import AgentState
from duelist.live.beliefs import (
    LEVEL,
    N_DRAWS,
    Draws,
    Prediction,
    Preference,
    Ranking,
    Standing,
    best_row,
    check_cost,
    check_level,
    check_rows,
    check_vector,
    potential_of_lane,
    predict_rows,
    rank_rows,
    running_draws,
    votes_of,
    win_probability,
)
from duelist.live.crowd import Crowd, Voters
from duelist.live.crowd_lane import CrowdLane
from duelist.live.duel import Duel, DuelState, Winner
from duelist.live.guardrails import Guardrails, check_conditions
from duelist.live.lane import LiveLane
from duelist.live.live_agent import LiveAgent, check_methods, in_thread
from duelist.live.slate import Slate, SlateLane, SlateState, slate_answer
from duelist.live.votes import check_votes
from duelist.policies.base import Policy
from duelist.policies.registry import plays_slates
from duelist.typing import FloatArray


class Agent(LiveAgent[Duels, Duel]):
    """A policy in live use.

    Answers may come late, in any order, or never. An agent may be used from several threads. Beyond the policy's own state
    it keeps the pending duels, at most `max_pending`, nine bytes for every duel ever asked, the votes (see `keep_votes`), and
    who saw which pair (see `choose`), 24 MB at most.

    On a journal, what was asked and told is durable before `choose`, `learn` and `skip` return. Making an agent on a journal
    that was used before goes on bit for bit, and several processes may share one journal. A duel that is told twice then
    counts once: the same answer again changes nothing, since its sender could not know that it had arrived. In memory there is
    no such doubt, and telling twice is an error.

    Args:
        policy: hyper-parameters, for example `FGTS()`. With one that shows slates, such as `ListwiseFGTS(choices=3)`, the agent
            is a `duelist.live.SlateAgent`: same verbs, `slate.rows` instead of two rows, and `learn` also takes a ranking.
        dim: length of a feature vector.
        seed: names all random numbers: the same seed, features and answers give the same duels.
        horizon: how many duels will be learnt, if it is known.
        max_pending: how many duels may wait for an answer. One more drops the oldest: its answer is then refused.
        journal: where to keep everything, for example `SQLiteJournal("votes.db")`; None for memory only. The caller closes it.
        snapshot_every: events on the journal between two snapshots: fewer make restarts faster and the journal larger.
        keep_votes: whether to keep what was asked and told, so that `forget` and `change_policy` work. False saves, in memory,
            16 dim + 700 bytes per duel and the action sets that the policy reads. A journal keeps it anyway, except for
            `FGTS(sampler="online")`: there it is compacted where it would get a snapshot, and neither memory nor file grows
            with the votes.
        reliability: whether voters differ: every vote is then learnt with the slope of its voter, which is estimated again as
            votes grow, so that voters at random count little and those who mean the opposite count the other way. What is
            believed takes slopes and side into account. For policies of linear utilities with a normal prior.
        exploration: probability with which any two candidates are shown instead of the policy's, so that every pair has a known
            propensity and `duelist.evaluate_off_policy` can say how another router would have done. May change from one opening
            of a journal to the next: every duel has its own.

    Example:
        >>> import duelist
        >>> features = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
        >>> agent = Agent(duelist.FGTS(), dim=2, seed=0)
        >>> for _ in range(30):
        ...     duel = agent.choose(features)
        ...     agent.learn(duel, winner=min(duel.first, duel.second))
        >>> agent.rounds
        30
    """

    _memory: DuelState

    def __new__(cls, policy: Any = None, **settings: Any) -> Self:  # noqa: ARG004 - those are for __init__
        """An agent of duels, or of slates where the policy shows slates."""
        if cls is Agent and plays_slates(policy):
            return object.__new__(SlateAgent)  # type: ignore[return-value]
        return object.__new__(cls)

    @property
    def policy(self) -> Policy[Any]:
        """The hyper-parameters."""
        policy: Policy[Any] = self._state.lane.policy  # type: ignore[assignment] # _new_state takes no other
        return policy

    def choose(
        self,
        features: npt.ArrayLike | ActionSet,
        *,
        voter: str | None = None,
        exclude: Sequence[int] | None = None,
        cost: npt.ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> Duel:
        """The next candidates to compare.

        Args:
            features: (n_arms, dim) one row per candidate, or an action set of one lane.
            voter: who is asked. Nobody who is named is shown the same two candidates twice while others are left, in any order
                and whatever their rows; then come those that were shown least often. The record is kept for the latest 65,536
                voters and 1,048,576 pairs.
            exclude: rows that must not be shown this time.
            cost: (n_arms,) what each row costs, in log-odds, as in `best`: the policy chooses by utilities minus cost times
                the weight of `set_cost_weight`. What is learnt knows nothing of it.
            names: (n_arms,) what each row is called, so that guardrails know a candidate whose features change.
        """
        actions, conditions = self._actions(features), None
        if not (voter is None and exclude is None and cost is None and names is None):
            conditions = check_conditions(actions, voter, exclude, cost, names)
        if self._replica is not None:
            duel: Duel = self._replica.commit(Ask(actions, conditions))
            return duel
        with self._lock:
            return self._memory.ask(actions, conditions)

    def set_guardrails(self, guardrails: Guardrails | None) -> None:
        """Have all later choices keep to guardrails; None takes them away. On a journal this is an event like any other."""
        if not isinstance(guardrails, Guardrails | None):
            raise InvalidInputError(f"guardrails must be Guardrails(...) or None; got {guardrails!r}.")
        if self._replica is not None:
            self._replica.commit(SetGuardrails(guardrails))
            return
        with self._lock:
            self._memory.guard.set_guardrails(guardrails)

    def set_cost_weight(self, weight: float) -> None:
        """Multiply the costs of all later choices by this: 1 at first, 0 to ignore them. On a journal this is an event."""
        number = finite_number("weight", weight, at_least=0.0)
        if self._replica is not None:
            self._replica.commit(SetCostWeight(number))
            return
        with self._lock:
            self._memory.guard.cost_weight = number

    def learn(self, duel: Duel | int, winner: Winner, *, voter: str | None = None, time: float | None = None) -> None:
        """Learn who won.

        Args:
            duel: what `choose` returned, or its id.
            winner: the row of the winner; or "left" or "right" for the side of the screen, "first" or "second" for the order of
                the algorithm, or "tie", which counts as half a win each way.
            voter: who voted, so that `forget(voter=...)` finds it; who was asked, where `choose` was told.
            time: when, in seconds of any clock, so that `forget(since=..., until=...)` finds it.
        """
        self._tell(duel, winner, voter, time)

    learn_async = in_thread(learn)

    def import_votes(
        self,
        first: npt.ArrayLike,
        second: npt.ArrayLike,
        outcomes: npt.ArrayLike | Sequence[str],
        weights: npt.ArrayLike | None = None,
        times: npt.ArrayLike | None = None,
        voters: Sequence[str] | None = None,
    ) -> int:
        """Learn votes on pairs that this agent did not ask about, all or none, and return how many.

        The policy learns them in the given order with the pair as the action set: a Feel-Good maximum runs over the two.

        Args:
            first: (n, dim) features of the first candidate of each vote.
            second: (n, dim) features of the second.
            outcomes: (n,) +1 or "first", -1 or "second", 0 or "tie".
            weights: (n,) whole numbers, how often each vote counts; 1 if not given.
            times: (n,) when each was given, for `forget`.
            voters: (n,) who gave it, for `forget`.
        """
        votes = check_votes(self.dim, first, second, outcomes, weights, times, voters)
        if self._replica is not None:
            return self._replica.commit(Import(votes))
        with self._lock:
            return self._memory.import_votes(votes)

    def forget(
        self,
        duel: Duel | int | None = None,
        *,
        voter: str | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> int:
        """Take votes back and return how many: the answer to a duel, all of one voter, or those of an interval of time.

        Afterwards the agent is, bit for bit, one that was asked the same questions, showed the same pairs, and had these duels
        skipped. All that remains is learnt again, which takes as long as the first time.

        Args:
            duel: what `choose` returned, or its id.
            voter: as it was given to `learn` or `import_votes`.
            since: votes of this time or later; those without a time are in no interval.
            until: votes before this time.
        """
        return self._forget(duel, voter, since, until)

    def change_policy(self, policy: Policy[Any]) -> None:
        """Go over to another policy, which learns all votes of the past first. Duels, numbers and pending duels stay.

        On a journal, open it with the new policy from then on. In memory, what the new policy reads of past action sets and
        the old one did not is taken from the pairs that were shown, as with imported votes.
        """
        self._check_policy(policy)
        self._check_votes_kept("change the policy")
        self._beliefs.clear()
        if self._replica is not None:
            self._replica.commit(ChangePolicy(policy))
            return
        with self._lock:
            self._memory.change_policy(policy)

    def predict(self, features: npt.ArrayLike | FiniteActions, *, level: float = LEVEL) -> Prediction:
        """What is believed of candidates: utility with an interval, probability of being best, expected loss. Nothing is asked.

        The posterior is that of all votes learnt, from the policy's prior. It is drawn from anew when votes have grown by a
        twentieth; the answer says how many came since. Before the first vote it is the prior, and the answer says so.

        Args:
            features: (n, dim) one row per candidate.
            level: probability of the intervals.

        Example:
            >>> import duelist
            >>> agent = Agent(duelist.FGTS(), dim=1)
            >>> for _ in range(20):
            ...     duel = agent.choose([[1.0], [0.0]])
            ...     agent.learn(duel, winner=0)
            >>> belief = agent.predict([[1.0], [0.0], [0.5]])
            >>> belief.probability_best.argmax(), belief.votes, belief.is_prior
            (np.int64(0), 20, False)
        """
        rows, share = check_rows(features, self.dim), check_level(level)
        return predict_rows(self._draws(), rows, share)

    def rank(self, features: npt.ArrayLike | FiniteActions, *, level: float = LEVEL) -> Ranking:
        """Candidates (n, dim) from the best on, with an interval for the rank of each."""
        rows, share = check_rows(features, self.dim), check_level(level)
        return rank_rows(self._draws(), rows, share)

    def best(self, features: npt.ArrayLike | FiniteActions, *, cost: npt.ArrayLike | None = None) -> int:
        """The row of the highest expected utility minus cost; the lowest row of those that tie.

        Args:
            features: (n, dim) one row per candidate.
            cost: (n,) what each costs, in log-odds: one that costs 1 more must win 73 % of the votes to be worth it. It is
                multiplied by the weight of `set_cost_weight`, as in `choose`.
        """
        rows = check_rows(features, self.dim)
        price = check_cost(cost, len(rows))
        if price is not None:
            price = price * self._read(lambda state: 1.0 if state.guard is None else state.guard.cost_weight)
        return best_row(self._draws(), rows, price)

    def preference(self, a: npt.ArrayLike, b: npt.ArrayLike, *, level: float = LEVEL) -> Preference:
        """The probability that candidate `a` (dim,) beats candidate `b` (dim,), with an interval."""
        first, second, share = check_vector("a", a, self.dim), check_vector("b", b, self.dim), check_level(level)
        return win_probability(self._draws(), first, second, share)

    def voters(self, *, level: float = LEVEL) -> Voters:
        """How reliable each voter is, and what standing on the left adds. For an agent made with `reliability=True`.

        Args:
            level: probability of the intervals.
        """
        share = check_level(level)
        return self._read(lambda state: _crowd_of(state).votes().believe(share))

    def _draws(self) -> Draws:
        if isinstance(self._state.lane, CrowdLane):
            rounds = self.rounds
            return self._beliefs.drawn_by(rounds, self.dim, lambda: self._read(_draw_belief))
        known = self._read(lambda state: running_draws(cast(LiveLane, state.lane), state.rounds))
        if known is not None:
            return known
        lane, rounds = self._read(lambda state: (Standing.of(state.lane), state.rounds))
        own = self._beliefs.drawn_by_policy(rounds, lane)
        if own is not None:
            return own

        def count(state: AgentState[Duels, Duel]) -> tuple[int, float]:
            votes = votes_of(cast(LiveLane, state.lane))
            return votes.rounds, votes.effective_rounds

        rounds, memory = self._read(count)
        return self._beliefs.draws(
            lambda seen: abs(rounds - seen),
            # The statistics are a copy, so nobody waits while draws are made from them.
            lambda: self._read(lambda state: potential_of_lane(cast(LiveLane, state.lane))),
            dim=self.dim,
            memory=memory,
        )

    def _check_policy(self, policy: Any) -> None:
        if plays_slates(policy):
            raise InvalidInputError(
                f"this agent asks about pairs, and {type(policy).__name__}(choices={policy.choices}) shows slates. Make "
                f"another agent with it and import the votes."
            )
        check_methods(policy, "FGTS()", ("start", "choose", "learn", "report", "pair_probability"))

    def _new_state(
        self,
        policy: Policy[Any],
        problem: Problem,
        seed: int,
        max_pending: int,
        keep_votes: bool,
        exploration: float,
        reliability: bool,
    ) -> DuelState:
        if reliability:
            own = CrowdLane(policy, problem, seed=seed)
            return DuelState(own, max_pending, keep_votes=keep_votes, exploration=exploration)
        lane = LiveLane(policy, problem, seed=seed, keep_votes=True)
        if not self._keep_votes and policy.running_belief(lane.state) is not None:
            lane.votes = None  # what is believed is in the policy's own Gaussian
        return DuelState(lane, max_pending, keep_votes=keep_votes, exploration=exploration)


def _draw_belief(state: AgentState[Duels, Duel]) -> FloatArray:
    generator = state.lane.streams.generator("belief of a crowd", 0, state.rounds)
    return _crowd_of(state).draw(N_DRAWS, generator)


def _crowd_of(state: AgentState[Duels, Duel]) -> Crowd:
    if not isinstance(state.lane, CrowdLane):
        raise InvalidInputError("this agent takes all voters alike. Make it with reliability=True.")
    return state.lane.crowd


class SlateAgent(Agent):
    """What `Agent` makes of a policy that shows slates. Everything but the form of the question is as with duels.

    Voters, guardrails, costs and exploration are for pairs: `choose` takes features alone.

    Args:
        policy: hyper-parameters, for example `ListwiseFGTS(choices=3)`.
        dim: length of a feature vector.
        seed: names all random numbers: the same seed, features and answers give the same slates.
        horizon: how many slates will be learnt, if it is known.
        max_pending: how many slates may wait for an answer. One more drops the oldest: its answer is then refused.
        journal: where to keep everything; None for memory only. The caller closes it.
        snapshot_every: events on the journal between two snapshots.
        keep_votes: whether to keep what was asked and told, so that `forget` and `change_policy` work.

    Example:
        >>> import duelist
        >>> features = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.5, 0.5]]
        >>> agent = duelist.Agent(duelist.policies.ListwiseFGTS(choices=3), dim=2, seed=0)
        >>> for _ in range(10):
        ...     slate = agent.choose(features)
        ...     agent.learn(slate, winner=min(slate.rows))
        >>> agent.rounds, agent.best(features)
        (10, 0)
    """

    def choose(self, features: npt.ArrayLike | ActionSet) -> Slate:  # type: ignore[override]
        """The next candidates to compare.

        Args:
            features: (n_arms, dim) one row per candidate, or an action set of one lane.
        """
        slate: Any = super(Agent, self).choose(features)  # without the conditions that pairs know
        return slate  # type: ignore[no-any-return]

    def learn(  # type: ignore[override]
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
            winner: the row of the winner, one of `slate.rows`; or "tie".
            ranking: instead of the winner, rows from the best on: all of the slate, or the best few.
            voter: who answered, so that `forget(voter=...)` finds it.
            time: when, in seconds of any clock, so that `forget(since=..., until=...)` finds it.
        """
        self._tell(slate, slate_answer(winner, ranking), voter, time)  # type: ignore[arg-type]

    learn_async = in_thread(learn)  # type: ignore[arg-type]

    def set_guardrails(self, guardrails: Any) -> NoReturn:  # noqa: ARG002
        """Guardrails are for pairs."""
        raise InvalidInputError("guardrails are for pairs, and this agent shows slates. Offer only what may be shown.")

    def set_cost_weight(self, weight: float) -> NoReturn:  # noqa: ARG002
        """Costs are for pairs."""
        raise InvalidInputError("costs are for pairs, and this agent shows slates. Use best(features, cost=...).")

    def _check_policy(self, policy: Any) -> None:
        check_methods(policy, "ListwiseFGTS()", ("start", "choose", "learn", "report"))
        if not plays_slates(policy):
            raise InvalidInputError(
                f"this agent shows slates, and needs a policy that does, such as ListwiseFGTS(); got {policy!r}. "
                f"Make an Agent with it."
            )

    def _new_state(
        self,
        policy: Any,
        problem: Problem,
        seed: int,
        max_pending: int,
        keep_votes: bool,
        exploration: float,
        reliability: bool,
    ) -> SlateState:
        if reliability:
            raise InvalidInputError("reliability=True is for duels; got it for slates. Leave it out.")
        if exploration:
            raise InvalidInputError(f"exploration is for duels; got {exploration!r} for slates. Leave it out.")
        return SlateState(SlateLane(policy, problem, seed=seed), max_pending, keep_votes=keep_votes)
