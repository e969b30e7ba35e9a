"""What an agent is made of: the policy's state, the duels that wait for an answer, and how every other duel ended.

A lane is a deterministic fold: the same calls in the same order give the same lane, bit for bit. Every method checks first
and changes something only when nothing can go wrong any more, so an error leaves the lane as it was.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from duelist.agent.duel import Duel, Winner
from duelist.agent.waiting import Waiting, packed, unpacked
from duelist.core.actions import ActionSet
from duelist.core.checks import one_of
from duelist.core.duels import Duels
from duelist.core.errors import AlreadyLearntError, InvalidInputError, SavedStateError, UnknownDuelError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.policies.base import Policy
from duelist.policies.described import described
from duelist.policies.registry import POLICIES

# How a duel stands: one byte for every duel ever asked.
# The numbers are in saved states: never renumber them.
WAITING, FIRST_WON, SECOND_WON, SKIPPED, DROPPED, TIED = range(6)
ENDINGS = {"first": FIRST_WON, "second": SECOND_WON, "tie": TIED}
_OUTCOMES = {FIRST_WON: np.array([1]), SECOND_WON: np.array([-1]), TIED: np.array([0])}
_SAYS = {FIRST_WON: "first candidate won", SECOND_WON: "second candidate won", TIED: "a tie"}


class Lane:
    """One live lane.

    Args:
        policy: hyper-parameters.
        problem: what the policy may know beforehand; one lane.
        seed: names all random numbers.
        max_pending: how many duels may wait for an answer; one more drops the oldest.
    """

    def __init__(self, policy: Policy, problem: Problem, seed: int, max_pending: int) -> None:
        self.policy, self.problem, self.max_pending = policy, problem, max_pending
        self.streams = Streams(seed, [0])
        self.state = policy.start(problem, self.streams)
        self.rounds = 0
        # Columns with a row for every duel ever asked: how it ended, and which rows it compared.
        self.endings, self.firsts, self.seconds = bytearray(), array("i"), array("i")
        self.waiting: dict[int, Waiting] = {}

    def choose(self, actions: ActionSet, recorded: Duels | None = None) -> Duel:
        """Ask the policy for a pair and remember it as waiting.

        Where a pair was `recorded` when this was asked the first time, that is the pair that somebody saw, and it stands.
        """
        if actions.dim != self.problem.dim or actions.lanes != 1:
            raise InvalidInputError(
                f"features must be (n_arms, {self.problem.dim}) for this agent; got {actions.lanes} lane(s) of dimension "
                f"{actions.dim}. An agent keeps the dimension it was made with."
            )
        duels, state = self.policy.choose(self.state, actions, self.streams)
        duels = recorded or duels
        number = len(self.endings)
        duel = _shown(number, duels)
        self.state = state
        self.endings.append(WAITING)
        self.firsts.append(duel.first)
        self.seconds.append(duel.second)
        self.waiting[number] = Waiting(duels, actions)
        if len(self.waiting) > self.max_pending:
            oldest = next(iter(self.waiting))
            del self.waiting[oldest]
            self.endings[oldest] = DROPPED
        return duel

    def learn(self, number: int, ending: int) -> None:
        """Learn the answer to a waiting duel."""
        self.refuse_ended(number)
        duels, actions = self.waiting[number]
        self.state = self.policy.learn(self.state, actions, duels, _OUTCOMES[ending])
        del self.waiting[number]
        self.endings[number] = ending
        self.rounds += 1

    def skip(self, number: int) -> None:
        """Forget a waiting duel: nothing is learnt from it."""
        self.refuse_ended(number)
        del self.waiting[number]
        self.endings[number] = SKIPPED

    def number_of(self, duel: Duel | int) -> int:
        """The number of a duel, if it was asked here."""
        if isinstance(duel, Duel):
            number = duel.id
        elif isinstance(duel, int | np.integer) and not isinstance(duel, bool):
            number = int(duel)
        else:
            raise InvalidInputError(f"expected a Duel from choose, or its id; got {duel!r} of type {type(duel).__name__}.")
        asked = len(self.endings)
        if not 0 <= number < asked:
            known = f"asked duels 0 to {asked - 1}" if asked else "has not asked any duel"
            raise UnknownDuelError(f"this agent {known}; got duel {number}. Pass the duel that choose returned.")
        first, second = self.firsts[number], self.seconds[number]
        if isinstance(duel, Duel) and (duel.first, duel.second) != (first, second):
            raise UnknownDuelError(
                f"duel {number} of this agent compares {first} with {second}; got {duel.first} with {duel.second}. "
                f"It comes from another agent."
            )
        return number

    def ending_of(self, number: int, winner: Winner) -> int:
        """Which ending a winner means: a row of the duel, or "first", "second" or "tie"."""
        if isinstance(winner, str):
            return ENDINGS[one_of("winner", winner, ENDINGS)]
        first, second = self.firsts[number], self.seconds[number]
        if isinstance(winner, int | np.integer) and not isinstance(winner, bool):
            if first < 0:
                raise InvalidInputError(
                    f'duel {number} has arms without rows; got winner {winner}. Say "first", "second" or "tie".'
                )
            if winner == first:
                return FIRST_WON
            if winner == second:
                return SECOND_WON
        raise InvalidInputError(
            f'winner must be {first} or {second}, the rows of duel {number}, or "first", "second" or "tie"; got {winner!r}. '
            f"Use agent.skip(duel) when nobody answered."
        )

    def refuse_ended(self, number: int) -> None:
        """Say how a duel ended that does not wait any more."""
        ending = self.endings[number]
        if ending == DROPPED:
            raise UnknownDuelError(
                f"duel {number} was dropped: more than max_pending = {self.max_pending} duels waited for an answer and it was "
                f"the oldest. Answer sooner, or make the agent with a larger max_pending."
            )
        if ending == SKIPPED:
            raise AlreadyLearntError(f"duel {number} was skipped before; each duel ends once. Choose a new duel.")
        if ending != WAITING:
            raise AlreadyLearntError(
                f"duel {number} was learnt before ({_SAYS[ending]}); each duel counts once. Choose a new duel."
            )

    def pending(self) -> tuple[Duel, ...]:
        """The duels that wait for an answer, oldest first."""
        return tuple(_shown(number, waiting.duels) for number, waiting in self.waiting.items())

    def to_saved(self) -> dict[str, Any]:
        """Everything that changes over time, as a value that `duelist.core.saved` takes."""
        return {
            "state": self.state,
            "rounds": self.rounds,
            "endings": np.frombuffer(bytes(self.endings), dtype=np.uint8),
            "firsts": np.array(self.firsts, dtype=np.int32),
            "seconds": np.array(self.seconds, dtype=np.int32),
            "waiting": packed(self.waiting),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go to where the lane was when `to_saved` was called."""
        endings = bytearray(saved["endings"].tobytes())
        waiting = unpacked(saved["waiting"])
        if list(waiting) != [number for number, ending in enumerate(endings) if ending == WAITING]:
            raise SavedStateError("the saved duels that wait for an answer are not those without an ending.")
        self.state, self.rounds, self.endings, self.waiting = saved["state"], saved["rounds"], endings, waiting
        self.firsts, self.seconds = (array("i", saved[name].astype(np.int32).tobytes()) for name in ("firsts", "seconds"))


def _shown(number: int, duels: Duels) -> Duel:
    features = duels.features[0].copy()
    features.setflags(write=False)
    return Duel(number, int(duels.first[0]), int(duels.second[0]), features)


def identity(lane: Lane) -> dict[str, Any]:
    """What makes a lane the one it is, as JSON values: two lanes of one identity fold the same events to the same state."""
    registered = POLICIES.get(type(lane.policy).__name__) is type(lane.policy)
    return {
        "policy": described(lane.policy) if registered else None,
        "policy_name": type(lane.policy).__name__,
        "dim": lane.problem.dim,
        "seed": lane.streams.seed,
        "horizon": lane.problem.horizon,
        "max_pending": lane.max_pending,
    }
