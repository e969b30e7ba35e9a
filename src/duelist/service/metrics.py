"""Numbers for Prometheus. Labels have few values: never an arena, an item or a key."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Metrics:
    """The counters of one service; every service has its own registry."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self.requests = Counter(
            "duelist_requests_total", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "duelist_request_seconds", "Time to answer a request.", ["route"], buckets=_SECONDS, registry=registry
        )
        self.asks = Counter("duelist_asks_total", "Pairs asked for.", registry=registry)
        self.answers = Counter("duelist_answers_total", "Answers acknowledged.", ["outcome"], registry=registry)
        self.undone = Counter("duelist_undone_total", "Answers taken back.", registry=registry)
        self.refused = Counter(
            "duelist_refused_total", "Requests without a valid key, or over their rate.", ["why"], registry=registry
        )
        self.arenas = Gauge("duelist_arenas", "Arenas.", registry=registry)
        self.events = Gauge("duelist_journal_events", "Events in the journal.", registry=registry)
        self.replayed = Gauge("duelist_replayed_events", "Events folded from the journal since the start.", registry=registry)

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self._registry)
