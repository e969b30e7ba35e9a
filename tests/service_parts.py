"""A real service on a real socket, in this process: what the tests of the service and of its page talk to."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn

from duelist.journal.base import Journal
from duelist.journal.memory import MemoryJournal
from duelist.service.app import create_app
from duelist.service.ledger import Ledger
from duelist.service.service import Service
from duelist.service.settings import ServiceSettings
from duelist.service.start import bound_socket, first_key

GENEROUS = ServiceSettings(rate=100_000.0, burst=100_000, refused_rate=100_000.0)


@dataclass
class Running:
    """A running service.

    Attributes:
        url: where it listens.
        secret: an admin key.
        admin: a client that sends it.
        anonymous: a client without a key.
        service: the parts inside.
    """

    url: str
    secret: str
    admin: httpx.Client
    anonymous: httpx.Client
    service: Service

    def with_key(self, secret: str) -> httpx.Client:
        """A client that sends another key. Close it, or use it in a `with`."""
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {secret}"}, timeout=60)

    def create(self, **changes: Any) -> str:
        """Create an arena of three items, or as told, and return its id."""
        body: dict[str, Any] = {"name": "Answers", "items": [{"name": name} for name in ("Alpha", "Beta", "Gamma")], **changes}
        answer = self.admin.post("/api/v1/arenas", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def ask(self, arena: str, **body: Any) -> dict[str, Any]:
        """Ask for a pair."""
        answer = self.admin.post(f"/api/v1/arenas/{arena}/asks", json=body)
        assert answer.status_code == 201, answer.text
        asked: dict[str, Any] = answer.json()
        return asked

    def tell(self, arena: str, ask: str, outcome: str, **body: Any) -> httpx.Response:
        """Answer an ask."""
        return self.admin.put(f"/api/v1/arenas/{arena}/asks/{ask}/answer", json={"outcome": outcome, **body})

    def vote(self, arena: str, preferred: str, times: int) -> None:
        """Vote for the item that comes first in `preferred`, a string of first letters of item ids."""
        for _ in range(times):
            ask = self.ask(arena)
            left, right = (preferred.index(ask[side]["item"][0]) for side in ("left", "right"))
            assert self.tell(arena, ask["id"], "left" if left < right else "right").status_code == 200


@contextlib.contextmanager
def running_service(journal: Journal | None = None, settings: ServiceSettings = GENEROUS, **ledger: Any) -> Iterator[Running]:
    """Start a service; it is shut down in an orderly way at the end."""
    state = Ledger(journal or MemoryJournal(), **ledger)
    secret = first_key(state, "an admin key for tests only")
    app = create_app(state, settings)
    bound = bound_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.005)
    url = f"http://127.0.0.1:{bound.getsockname()[1]}"
    secret = secret or "an admin key for tests only"
    try:
        with (
            httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=60) as admin,
            httpx.Client(base_url=url, timeout=60) as anonymous,
        ):
            yield Running(url, secret, admin, anonymous, app.state.service)
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        bound.close()
