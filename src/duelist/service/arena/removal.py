"""Taking all answers of a voter back, exactly: what is left is what the others taught, in the order in which they did."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from duelist.service.arena.decisions import SETTLED, DecisionLog
from duelist.service.arena.learner import Learner
from duelist.service.arena.outcomes import Outcome


class Answered(Protocol):
    """What of an arena has to do with its answers; see `Arena`."""

    log: DecisionLog
    learner: Learner
    undoable: dict[int, int]
    undoable_by: dict[int, int]

    def take_back(self, number: int) -> None:
        """Forget what belongs to an answer that no longer stands."""
        ...


def standing_answers(arena: Answered, voter: int) -> list[int]:
    """The decisions that a voter answered and that still count, in the order of their asks."""
    mine = np.flatnonzero(arena.log.column("voter") == voter).tolist()
    return [number for number in mine if arena.log[number].outcome not in (Outcome.OPEN, Outcome.REMOVED)]


def remove_answers(arena: Answered, voter: int) -> None:
    """Let the answers of a voter count no longer. The learner starts again and learns what all others said."""
    mine, learner = standing_answers(arena, voter), arena.learner
    learnt = set(learner.learnt).intersection(mine)
    for number in mine:
        if arena.undoable.pop(number, None) is not None:
            del arena.undoable_by[voter]
        arena.take_back(number)
        arena.log.set_told(number, Outcome.REMOVED, arena.log[number].told_at, voter, SETTLED)
        learner.open.pop(number, None)
        if learner.request_features is not None and number in learner.request_features.waiting:
            learner.request_features.settle(arena.log[number])
    if learnt:
        learner.learnt = [number for number in learner.learnt if number not in learnt]
        learner.start_again(learner.lane.dim, [arena.log[number] for number in learner.learnt])
