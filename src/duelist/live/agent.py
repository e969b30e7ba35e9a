"""The agent: choose a pair, show it to a person, learn who won. Live use, with no environment and no truth."""

from __future__ import annotations

from typing import Any

from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.history.duels import Duels
from duelist.live.agent_state import AgentState
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
            winner: the row of the winner; or "left" or "right" for the side of the screen, "first" or "second" for the order of
                the algorithm, or "tie", which counts as half a win each way.
        """
        self._tell(duel, winner)

    def _check_policy(self, policy: Any) -> None:
        if plays_slates(type(policy)):
            raise InvalidInputError(
                f"an Agent asks about pairs, and {type(policy).__name__} shows slates. Use SlateAgent from duelist.live."
            )
        check_methods(policy, "FGTS()", ("start", "choose", "learn", "report", "pair_probability"))

    def _new_state(self, policy: Policy[Any], problem: Problem, seed: int, max_pending: int) -> AgentState[Duels, Duel]:
        return AgentState(DuelKind(LiveLane(policy, problem, seed=seed)), max_pending)
