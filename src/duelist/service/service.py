"""The parts of a running service that every route needs."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from duelist.journal.base import JournalError
from duelist.journal.replica import Command
from duelist.live.beliefs import Draws
from duelist.service.arena.arena import Arena
from duelist.service.commands import ByActor
from duelist.service.errors import UnavailableError
from duelist.service.insight.leaderboard import (
    ArenaBeliefs,
    Leaderboard,
    LeaderboardInputs,
    compute_leaderboard,
    leaderboard_inputs,
)
from duelist.service.insight.verdict import ArenaVerdict, arena_verdict, verdict_inputs
from duelist.service.sessions import Caller, Sessions
from duelist.service.settings import ServiceSettings
from duelist.service.state import ServiceState
from duelist.service.store import Store

_LOG = logging.getLogger("duelist.service")
_PATIENCE = 5.0  # of a question whether the journal answers
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
        self.failed = Counter("duelist_failed_commits_total", "Commits that the journal refused.", registry=registry)
        self.undone = Counter("duelist_undone_total", "Answers taken back.", registry=registry)
        self.refused = Counter(
            "duelist_refused_total", "Requests without a valid key, or over their rate.", ["why"], registry=registry
        )
        self.arenas = Gauge("duelist_arenas", "Arenas.", registry=registry)
        self.arena_asks = Gauge("duelist_arena_asks", "Pairs asked for in an arena.", ["arena"], registry=registry)
        self.arena_votes = Gauge("duelist_arena_votes", "Answers other than skips.", ["arena"], registry=registry)
        self.arena_items = Gauge("duelist_arena_items", "Active items of an arena.", ["arena"], registry=registry)
        self.arena_leader = Gauge(
            "duelist_arena_leader_probability",
            "Probability that the leader of the latest leaderboard is the best.",
            ["arena"],
            registry=registry,
        )
        self.events = Gauge("duelist_journal_events", "Events in the journal.", registry=registry)
        self.replayed = Gauge("duelist_replayed_events", "Events folded from the journal since the start.", registry=registry)

    def follow(self, store: Store, boards: Mapping[str, Leaderboard]) -> None:
        """Take over what the store and the leaderboards that were computed say now. Computes nothing itself."""
        self.events.set(store.position)
        self.replayed.set(store.counters.replayed)
        arenas = store.read(lambda state: [arena.summary() for arena in state.arenas.values()])
        self.arenas.set(len(arenas))
        for gauge in (self.arena_asks, self.arena_votes, self.arena_items, self.arena_leader):
            gauge.clear()  # arenas that are gone
        for arena in arenas:
            self.arena_asks.labels(arena.id).set(arena.asks)
            self.arena_votes.labels(arena.id).set(arena.votes)
            self.arena_items.labels(arena.id).set(arena.active_items)
            best = [rank.probability_best or 0.0 for rank in boards[arena.id].ranks] if arena.id in boards else []
            if best:
                self.arena_leader.labels(arena.id).set(max(best))

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self._registry)


Result = TypeVar("Result")
_REMEMBERED_LEADERBOARDS = 32


class Service:
    """A store, with the sessions, metrics and leaderboards around it.

    Args:
        store: the state.
        settings: limits and parts.
    """

    def __init__(self, store: Store, settings: ServiceSettings) -> None:
        self.store, self.settings = store, settings
        self.sessions = Sessions()
        self.metrics = Metrics()
        self._leaderboards: OrderedDict[str, Leaderboard] = OrderedDict()
        self._beliefs: OrderedDict[str, ArenaBeliefs] = OrderedDict()
        self._verdicts: dict[str, ArenaVerdict] = {}
        self._finding = threading.Lock()
        self._computing: dict[str, threading.Lock] = {}

    async def commit(self, command: Command[ServiceState, Result], by: Caller | None = None) -> Result:
        """Carry out a command; returns when its event is durable.

        Args:
            command: what is wanted.
            by: who wants it, for the event; None where the command says so itself.
        """
        if by is not None:
            command = ByActor(command, by.name)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(self.store.submit(command)), self.settings.commit_seconds)
        except TimeoutError as error:
            self.metrics.failed.inc()
            _LOG.error("a commit has not ended for %g seconds", self.settings.commit_seconds)
            raise UnavailableError(
                f"the journal has not answered for {self.settings.commit_seconds:g} seconds. What you sent may be saved or "
                "not: send it again, it counts once."
            ) from error
        except JournalError as error:
            self.metrics.failed.inc()
            _LOG.error("a commit failed: %s", error)
            raise UnavailableError(f"the journal cannot be written to: {error} Try again later.") from error

    async def check_ready(self) -> None:
        """Raise an error that says why where the journal does not answer, or its disk is full."""
        try:
            await asyncio.wait_for(asyncio.to_thread(self.store.probe), _PATIENCE)
        except TimeoutError as error:
            raise UnavailableError(f"the journal has not answered for {_PATIENCE:g} seconds.") from error
        except JournalError as error:
            raise UnavailableError(f"the journal cannot be written to: {error}") from error

    def numbers(self) -> bytes:
        """Everything that is counted, in Prometheus' text format."""
        with self._finding:
            boards = dict(self._leaderboards)
        self.metrics.follow(self.store, boards)
        return self.metrics.text()

    def arena(self, arena_id: str) -> Arena:
        """The arena of that id. Read it inside `store.read` where several facts must fit together."""
        return self.store.read(lambda state: state.arena(arena_id))

    def draws(self, arena_id: str) -> Draws:
        """Draws from the posterior of an arena, renewed when its votes have grown by a twentieth."""

        def read(question: Callable[[Arena], Result]) -> Result:
            return self.store.read(lambda state: question(state.arena(arena_id)))

        seed = self.arena(arena_id).spec.seed
        with self._finding:
            beliefs = self._beliefs.setdefault(arena_id, ArenaBeliefs(seed))
            self._beliefs.move_to_end(arena_id)
            if len(self._beliefs) > _REMEMBERED_LEADERBOARDS:
                self._beliefs.popitem(last=False)
        return beliefs.draws(read)

    def leaderboard(self, arena_id: str) -> Leaderboard:
        """What the votes of an arena say, computed at most once for every revision of it.

        Arenas do not wait for each other. While one thread computes, the others get the board before, which says its revision.
        """
        revision = self.arena(arena_id).revision
        with self._finding:
            computing = self._computing.setdefault(arena_id, threading.Lock())
            known = self._leaderboards.get(arena_id)
        if known is not None and (known.revision == revision or computing.locked()):
            return known
        with computing:
            known = self._leaderboards.get(arena_id)
            if known is not None and known.revision >= revision:
                return known
            inputs = self._inputs(arena_id)
            while inputs.features.shape[1] != inputs.draws.theta.shape[1]:  # items were added while draws were made
                inputs = self._inputs(arena_id)
            leaderboard = compute_leaderboard(inputs)
            with self._finding:
                self._leaderboards[arena_id] = leaderboard
                self._leaderboards.move_to_end(arena_id)
                if len(self._leaderboards) > _REMEMBERED_LEADERBOARDS:
                    self._leaderboards.popitem(last=False)
            return leaderboard

    def verdict(self, arena_id: str) -> ArenaVerdict:
        """How far the votes of an arena have come towards its goal, computed once for every revision of it."""
        known = self._verdicts.get(arena_id)
        inputs = self.store.read(lambda state: verdict_inputs(state.arena(arena_id)))
        if known is not None and known.revision == inputs.revision and known.goal == inputs.goal:
            return known
        found = self._verdicts[arena_id] = arena_verdict(inputs)
        return found

    def _inputs(self, arena_id: str) -> LeaderboardInputs:
        draws = self.draws(arena_id)
        return self.store.read(lambda state: leaderboard_inputs(state.arena(arena_id), draws))
