"""The store: the state of a service on its journal. What happens is durable before a caller hears of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from operator import attrgetter

from duelist.journal.base import Journal
from duelist.journal.replica import Replica
from duelist.service.state import ServiceState

SNAPSHOT_EVERY = 5000
# In a long journal the next snapshot comes when it has grown by a tenth.
_GROWTH = 10


def wall_clock() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


class ServiceFold:
    """What the events of a service mean: the methods of its state, under the names that a replica calls."""

    new = ServiceState
    apply = staticmethod(ServiceState.apply)
    dump = staticmethod(ServiceState.to_bytes)
    load = staticmethod(ServiceState.from_bytes)
    latest = staticmethod(attrgetter("latest"))


class Store(Replica[ServiceState]):
    """The state of a service on a journal. Several services may share the journal.

    Args:
        journal: where events go.
        snapshot_every: events after which a snapshot is saved, so that a restart need not replay them; in a long journal the
            next comes when it has grown by a tenth.
        clock: milliseconds since 1970.
    """

    def __init__(
        self, journal: Journal, *, snapshot_every: int = SNAPSHOT_EVERY, clock: Callable[[], int] = wall_clock
    ) -> None:
        super().__init__(journal, ServiceFold(), snapshot_every=snapshot_every, growth=_GROWTH, clock=clock)
