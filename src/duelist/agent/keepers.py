"""Who keeps a lane: the verbs that an agent passes on, and the keeper that has memory only."""

from __future__ import annotations

import threading
from typing import Protocol

from duelist.agent.duel import Duel, Winner
from duelist.agent.lane import Lane
from duelist.core.actions import ActionSet


class Keeper(Protocol):
    """Changes a lane on behalf of an agent. `lane` may only be looked at while `lock` is held."""

    @property
    def lane(self) -> Lane:
        """The lane as it is now."""

    @property
    def lock(self) -> threading.RLock:
        """Held while the lane changes."""

    def choose(self, actions: ActionSet) -> Duel:
        """Ask."""

    def learn(self, duel: Duel | int, winner: Winner) -> None:
        """Tell."""

    def skip(self, duel: Duel | int) -> None:
        """Tell that nobody will."""

    def refresh(self) -> None:
        """Catch up with others who keep the same lane."""


class InMemory:
    """A lane that is gone when the process is."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.lock = threading.RLock()

    def choose(self, actions: ActionSet) -> Duel:
        """Ask."""
        with self.lock:
            return self.lane.choose(actions)

    def learn(self, duel: Duel | int, winner: Winner) -> None:
        """Tell."""
        with self.lock:
            number = self.lane.number_of(duel)
            self.lane.learn(number, self.lane.ending_of(number, winner))

    def skip(self, duel: Duel | int) -> None:
        """Tell that nobody will."""
        with self.lock:
            self.lane.skip(self.lane.number_of(duel))

    def refresh(self) -> None:
        """There are no others."""
