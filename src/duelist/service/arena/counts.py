"""How many standing answers every voter gave, and how many came through every key: what quotas are held against."""

from __future__ import annotations

from collections import Counter

import numpy as np

from duelist.service.arena.decisions import NO_VOTER, DecisionLog
from duelist.service.arena.outcomes import Outcome


class AnswerCounts:
    """Counts of answers, kept as they come.

    Attributes:
        actors: number of every key or session through which an answer came, by its id.
    """

    def __init__(self) -> None:
        self.actors: dict[str, int] = {}
        self._voters: Counter[int] = Counter()
        self._tellers: Counter[int] = Counter()

    def number_of(self, actor: str) -> int:
        """The number of a key or session; a new one where it is new."""
        return self.actors.setdefault(actor, len(self.actors)) if actor else NO_VOTER

    def add(self, voter: int, teller: int, by: int) -> None:
        """An answer came, or with -1 no longer stands."""
        self._voters[voter] += by
        self._tellers[teller] += by

    def of_voter(self, voter: int) -> int:
        """Standing answers of a voter."""
        return self._voters[voter]

    def through(self, actor: str) -> int:
        """Standing answers that came through a key or a session."""
        return self._tellers[self.actors[actor]] if actor in self.actors else 0

    @classmethod
    def of_log(cls, log: DecisionLog, actors: list[str]) -> AnswerCounts:
        """The counts of a log that was loaded."""
        counts = cls()
        counts.actors = {actor: number for number, actor in enumerate(actors)}
        stands = ~np.isin(log.column("outcome"), (Outcome.OPEN, Outcome.REMOVED)) & (log.column("source") == 0)
        counts._voters.update(log.column("voter")[stands].tolist())
        counts._tellers.update(log.column("teller")[stands].tolist())
        return counts
