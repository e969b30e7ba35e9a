"""A real service on a real socket, in this process: what the tests of the service and of its page talk to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from duelist.journal.base import Journal
from duelist.service.local import local_service
from duelist.service.service import Service
from duelist.service.settings import ServiceSettings

_SECRET = "an admin key for tests only"
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
def running_service(journal: Journal | None = None, settings: ServiceSettings = GENEROUS) -> Iterator[Running]:
    """Start a service; it is shut down in an orderly way at the end."""
    with (
        local_service(journal, settings=settings, key=_SECRET) as local,
        httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {_SECRET}"}, timeout=60) as admin,
        httpx.Client(base_url=local.url, timeout=60) as anonymous,
    ):
        yield Running(local.url, _SECRET, admin, anonymous, local.app.state.service)
