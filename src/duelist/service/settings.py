"""What the administrator of a service may set."""

from __future__ import annotations

from dataclasses import dataclass, field

from duelist.core.checks import finite_number, whole_number
from duelist.service.embedding import Embedder, HashingEmbedder


def shipped_embedders() -> dict[str, Embedder]:
    """The embedders that need nothing else installed."""
    return {"hashing": HashingEmbedder()}


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """Limits and parts of a service.

    Args:
        max_body: bytes that a request may have.
        rate: requests per second that one key may make from one address in the long run.
        burst: requests that one key may make from one address at once.
        refused_rate: refused requests (no valid key) per second that one address may make.
        embedders: by the name that arenas use.
        secure_cookie: True where the page is served over https.
        refresh_seconds: how often to catch up with other processes on the same journal; 0 where there are none.
        commit_seconds: how long a request waits for the journal before it is told to come again.
        metrics: whether /metrics answers.
        openapi: whether the document of the API is served.
    """

    max_body: int = 2_000_000
    rate: float = 200.0
    burst: int = 400
    refused_rate: float = 5.0
    embedders: dict[str, Embedder] = field(default_factory=shipped_embedders)
    secure_cookie: bool = False
    refresh_seconds: float = 0.0
    commit_seconds: float = 30.0
    metrics: bool = True
    openapi: bool = True

    def __post_init__(self) -> None:
        whole_number("max_body", self.max_body, at_least=1024)
        finite_number("rate", self.rate, above=0.0)
        whole_number("burst", self.burst, at_least=1)
        finite_number("refused_rate", self.refused_rate, above=0.0)
        finite_number("refresh_seconds", self.refresh_seconds, at_least=0.0)
        finite_number("commit_seconds", self.commit_seconds, above=0.0)
