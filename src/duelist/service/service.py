"""The parts of a running service that every route needs."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from duelist.journal.errors import JournalError
from duelist.service.arena import Arena
from duelist.service.beliefs import Beliefs, believe, evidence
from duelist.service.errors import UnavailableError
from duelist.service.events import Event
from duelist.service.hall import Hall
from duelist.service.ledger import Ledger
from duelist.service.metrics import Metrics
from duelist.service.sessions import Sessions
from duelist.service.settings import ServiceSettings

Result = TypeVar("Result")
_REMEMBERED_BELIEFS = 32


class Service:
    """A ledger, with what stands around it.

    Args:
        ledger: the state.
        settings: limits and parts.
    """

    def __init__(self, ledger: Ledger, settings: ServiceSettings) -> None:
        self.ledger, self.settings = ledger, settings
        self.sessions = Sessions()
        self.metrics = Metrics()
        self._beliefs: OrderedDict[str, Beliefs] = OrderedDict()
        self._believing = threading.Lock()

    async def happen(
        self, decide: Callable[[Hall, int], Event | None], outcome: Callable[[Hall, Event | None], Result]
    ) -> Result:
        """Let an event happen; returns when it is durable."""
        try:
            pending: Awaitable[Result] = asyncio.wrap_future(self.ledger.submit(decide, outcome))
            return await pending
        except JournalError as error:
            raise UnavailableError(f"the journal cannot be written to: {error} Try again later.") from error

    def beliefs(self, arena_id: str) -> Beliefs:
        """What the votes of an arena say, computed at most once for every state of it."""
        arena = self.ledger.read(lambda hall: hall.arena(arena_id))
        with self._believing:
            known = self._beliefs.get(arena_id)
            if known is not None and known.revision == arena.revision:
                return known
            copied = self.ledger.read(lambda hall: evidence(hall.arena(arena_id)))
            beliefs = believe(copied)
            self._beliefs[arena_id] = beliefs
            self._beliefs.move_to_end(arena_id)
            if len(self._beliefs) > _REMEMBERED_BELIEFS:
                self._beliefs.popitem(last=False)
            return beliefs

    def arena(self, arena_id: str) -> Arena:
        """The arena of that id. Read it inside `ledger.read` where several facts must fit together."""
        return self.ledger.read(lambda hall: hall.arena(arena_id))
