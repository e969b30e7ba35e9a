"""The agent: choose a pair, show it to a person, learn who won. Live use, with no environment and no truth."""

from __future__ import annotations

from typing import Any, cast

import numpy.typing as npt

from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.history.duels import Duels
from duelist.live.agent_state import AgentState
from duelist.live.beliefs import (
    LEVEL,
    Draws,
    Prediction,
    Preference,
    Ranking,
    best_row,
    check_cost,
    check_level,
    check_rows,
    check_vector,
    potential_of_lane,
    predict_rows,
    rank_rows,
    votes_of,
    win_probability,
)
from duelist.live.duel import Duel, DuelKind, Winner
from duelist.live.lane import LiveLane
from duelist.live.live_agent import LiveAgent, check_methods
from duelist.policies.base import Policy
from duelist.policies.registry import plays_slates


class Agent(LiveAgent[Duels, Duel]):
    """A policy in live use.

    Answers may come late, in any order, or never. An agent may be used from several threads. All that it keeps beyond the
    policy's own state are the pending duels, at most `max_pending`, and nine bytes for every duel ever asked.

    On a journal, what was asked and told is durable before `choose`, `learn` and `skip` return. Making an agent on a journal
    that was used before goes on bit for bit, and several processes may share one journal. A duel that is told twice then
    counts once: the same answer again changes nothing, since its sender could not know that it had arrived. In memory there is
    no such doubt, and telling twice is an error.

    Args:
        policy: hyper-parameters, for example `FGTS()`. A policy that shows slates needs a `SlateAgent`.
        dim: length of a feature vector.
        seed: names all random numbers: the same seed, features and answers give the same duels.
        horizon: how many duels will be learnt, if it is known.
        max_pending: how many duels may wait for an answer. One more drops the oldest: its answer is then refused.
        journal: where to keep everything, for example `SQLiteJournal("votes.db")`; None for memory only. The caller closes it.
        snapshot_every: events on the journal between two snapshots: fewer make restarts faster and the journal larger.

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

    @property
    def policy(self) -> Policy[Any]:
        """The hyper-parameters."""
        policy: Policy[Any] = self._memory.lane.policy  # type: ignore[assignment] # _new_state takes no other
        return policy

    def learn(self, duel: Duel | int, winner: Winner) -> None:
        """Learn who won.

        Args:
            duel: what `choose` returned, or its id.
            winner: the row of the winner, `duel.first` or `duel.second`; or the word "first", "second" or "tie". A tie counts
                as half a win each way.
        """
        self._tell(duel, winner)

    def predict(self, features: npt.ArrayLike, *, level: float = LEVEL) -> Prediction:
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

    def rank(self, features: npt.ArrayLike, *, level: float = LEVEL) -> Ranking:
        """Candidates (n, dim) from the best on, with an interval for the rank of each."""
        rows, share = check_rows(features, self.dim), check_level(level)
        return rank_rows(self._draws(), rows, share)

    def best(self, features: npt.ArrayLike, *, cost: npt.ArrayLike | None = None) -> int:
        """The row of the highest expected utility minus cost; the lowest row of those that tie.

        Args:
            features: (n, dim) one row per candidate.
            cost: (n,) what each costs, in log-odds: one that costs 1 more must win 73 % of the votes to be worth it.
        """
        rows = check_rows(features, self.dim)
        price = check_cost(cost, len(rows))
        return best_row(self._draws(), rows, price)

    def preference(self, a: npt.ArrayLike, b: npt.ArrayLike, *, level: float = LEVEL) -> Preference:
        """The probability that candidate `a` (dim,) beats candidate `b` (dim,), with an interval."""
        first, second, share = check_vector("a", a, self.dim), check_vector("b", b, self.dim), check_level(level)
        return win_probability(self._draws(), first, second, share)

    def _draws(self) -> Draws:
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
        if plays_slates(type(policy)):
            raise InvalidInputError(
                f"an Agent asks about pairs, and {type(policy).__name__} shows slates. Use SlateAgent from duelist.live."
            )
        check_methods(policy, "FGTS()", ("start", "choose", "learn", "report", "pair_probability"))

    def _new_state(self, policy: Policy[Any], problem: Problem, seed: int, max_pending: int) -> AgentState[Duels, Duel]:
        return AgentState(DuelKind(LiveLane(policy, problem, seed=seed, keep_votes=True)), max_pending)
