"""A service inside this process: for notebooks, examples and tests. `duelist serve` is the one for people."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI

from duelist.core.errors import DuelistError
from duelist.journal.base import Journal
from duelist.journal.memory import MemoryJournal
from duelist.service.app import create_app
from duelist.service.bootstrap import bound_socket, first_key
from duelist.service.client import Client
from duelist.service.keys import new_secret
from duelist.service.settings import ServiceSettings
from duelist.service.store import Store


@dataclass(frozen=True)
class LocalService:
    """A service that runs.

    Attributes:
        url: where it listens.
        key: an admin key.
        app: the application.
    """

    url: str
    key: str
    app: FastAPI

    def client(self) -> Client:
        """A client with the admin key."""
        return Client(self.url, self.key)


@contextlib.contextmanager
def local_service(
    journal: Journal | None = None, *, settings: ServiceSettings | None = None, key: str | None = None
) -> Iterator[LocalService]:
    """Run a service in a thread, on a free port of this machine, for the length of the block. It closes the journal at the end.

    Args:
        journal: where votes go; in memory where it is left out.
        settings: limits and parts.
        key: the admin key; a random one where it is left out.

    Example:
        >>> with local_service() as service, service.client() as client:
        ...     arena = client.create_arena("Fruit", ["apple", "banana"])
        ...     ask = client.ask(arena)
        ...     client.tell_winner(ask, "apple")
        ...     [row["item"] for row in client.leaderboard(arena)]
        ['apple', 'banana']
    """
    key = key or new_secret()
    store = Store(journal or MemoryJournal())
    first_key(store, key)
    app = create_app(store, settings)
    bound = bound_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="duelist service", daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise DuelistError("the service did not start; see the log above.")
            time.sleep(0.005)
        yield LocalService(f"http://127.0.0.1:{bound.getsockname()[1]}", key, app)
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        bound.close()
