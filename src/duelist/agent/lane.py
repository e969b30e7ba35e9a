"""What an agent is made of: the policy's state, the duels that wait for an answer, and how every other duel ended.

A lane is a deterministic fold: the same calls in the same order give the same lane, bit for bit. Every method checks first
and changes something only when nothing can go wrong any more, so an error leaves the lane as it was.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from duelist.agent.duel import Duel, Winner
from duelist.core.actions import ActionSet
from duelist.core.checks import one_of
from duelist.core.duels import Duels
from duelist.core.errors import AlreadyLearntError, InvalidInputError, SavedStateError, UnknownDuelError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.policies.base import Policy

# How a duel stands: one byte for every duel ever asked.
WAITING, FIRST_WON, SECOND_WON, SKIPPED, DROPPED = range(5)
_OUTCOMES = {FIRST_WON: np.array([1]), SECOND_WON: np.array([-1])}


class Waiting(NamedTuple):
    """A duel without an answer: the pair, and the action set that it came from."""

    duels: Duels
    actions: ActionSet


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
        self.endings = bytearray()
        self.waiting: dict[int, Waiting] = {}

    def choose(self, actions: ActionSet) -> Duel:
        """Ask the policy for a pair and remember it as waiting."""
        if actions.dim != self.problem.dim or actions.lanes != 1:
            raise InvalidInputError(
                f"features must be (n_arms, {self.problem.dim}) for this agent; got {actions.lanes} lane(s) of dimension "
                f"{actions.dim}. An agent keeps the dimension it was made with."
            )
        duels, state = self.policy.choose(self.state, actions, self.streams)
        number = len(self.endings)
        duel = _shown(number, duels)
        self.state = state
        self.endings.append(WAITING)
        self.waiting[number] = Waiting(duels, actions)
        if len(self.waiting) > self.max_pending:
            oldest = next(iter(self.waiting))
            del self.waiting[oldest]
            self.endings[oldest] = DROPPED
        return duel

    def answer(self, duel: Duel | int, winner: Winner) -> tuple[int, int]:
        """The number of the duel and the ending that `winner` means, if it can be learnt; changes nothing."""
        number = self._number(duel)
        waiting = self.waiting.get(number)
        if waiting is None:
            raise self._already_ended(number)
        return number, _ending(number, waiting.duels, winner)

    def learn(self, number: int, ending: int) -> None:
        """Learn an answer that `answer` found good."""
        duels, actions = self.waiting[number].duels, self.waiting[number].actions
        self.state = self.policy.learn(self.state, actions, duels, _OUTCOMES[ending])
        del self.waiting[number]
        self.endings[number] = ending
        self.rounds += 1

    def skip(self, duel: Duel | int) -> int:
        """Forget a waiting duel: nothing is learnt from it. Returns its number."""
        number = self._number(duel)
        if number not in self.waiting:
            raise self._already_ended(number)
        del self.waiting[number]
        self.endings[number] = SKIPPED
        return number

    def pending(self) -> tuple[Duel, ...]:
        """The duels that wait for an answer, oldest first."""
        return tuple(_shown(number, waiting.duels) for number, waiting in self.waiting.items())

    def _number(self, duel: Duel | int) -> int:
        """The number of a duel that was asked here."""
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
        waiting = self.waiting.get(number)
        if isinstance(duel, Duel) and waiting is not None:
            shown = (int(waiting.duels.first[0]), int(waiting.duels.second[0]))
            if shown != (duel.first, duel.second):
                raise UnknownDuelError(
                    f"duel {number} of this agent compares {shown[0]} with {shown[1]}; got {duel.first} with {duel.second}. "
                    f"It comes from another agent."
                )
        return number

    def _already_ended(self, number: int) -> InvalidInputError:
        ending = self.endings[number]
        if ending == DROPPED:
            return UnknownDuelError(
                f"duel {number} was dropped: more than max_pending = {self.max_pending} duels waited for an answer and it was "
                f"the oldest. Answer sooner, or make the agent with a larger max_pending."
            )
        if ending == SKIPPED:
            return AlreadyLearntError(f"duel {number} was skipped before; each duel ends once. Choose a new duel.")
        name = "first" if ending == FIRST_WON else "second"
        return AlreadyLearntError(
            f"duel {number} was learnt before ({name} candidate won); each duel counts once. Choose a new duel."
        )

    def to_saved(self) -> dict[str, Any]:
        """Everything that changes over time, as a value that `duelist.core.saved` takes. Shared action sets are kept once."""
        sets: dict[bytes, ActionSet] = {waiting.actions.digest: waiting.actions for waiting in self.waiting.values()}
        places = {digest: place for place, digest in enumerate(sets)}
        return {
            "state": self.state,
            "rounds": self.rounds,
            "endings": np.frombuffer(bytes(self.endings), dtype=np.uint8),
            "sets": list(sets.values()),
            "set_of": [places[waiting.actions.digest] for waiting in self.waiting.values()],
            "duels": [waiting.duels for waiting in self.waiting.values()],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go to where the lane was when `to_saved` was called."""
        endings = bytearray(saved["endings"].tobytes())
        numbers_waiting = [number for number, ending in enumerate(endings) if ending == WAITING]
        if len(numbers_waiting) != len(saved["duels"]):
            raise SavedStateError(
                f"expected {len(numbers_waiting)} waiting duels; the saved state holds {len(saved['duels'])}."
            )
        sets = saved["sets"]
        pairs = zip(saved["duels"], saved["set_of"], strict=True)
        waiting = [Waiting(duels, sets[place]) for duels, place in pairs]
        self.state, self.rounds, self.endings = saved["state"], saved["rounds"], endings
        self.waiting = dict(zip(numbers_waiting, waiting, strict=True))


def _shown(number: int, duels: Duels) -> Duel:
    features = duels.features[0].copy()
    features.setflags(write=False)
    return Duel(number, int(duels.first[0]), int(duels.second[0]), features)


def _ending(number: int, duels: Duels, winner: Winner) -> int:
    """Which ending a winner means: a row of the duel, or "first" or "second"."""
    if isinstance(winner, str):
        return FIRST_WON if one_of("winner", winner, ("first", "second")) == "first" else SECOND_WON
    first, second = int(duels.first[0]), int(duels.second[0])
    if isinstance(winner, int | np.integer) and not isinstance(winner, bool):
        if first < 0:
            raise InvalidInputError(f'duel {number} has arms without rows; got winner {winner}. Say "first" or "second".')
        if winner == first:
            return FIRST_WON
        if winner == second:
            return SECOND_WON
    raise InvalidInputError(
        f'winner must be {first} or {second}, the rows of duel {number}, or "first" or "second"; got {winner!r}. '
        f"Use agent.skip(duel) when nobody won."
    )
