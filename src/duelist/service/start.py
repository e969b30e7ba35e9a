"""Opening a service: its journal, its first key, its sample arena, its socket."""

from __future__ import annotations

import gc
import importlib
import secrets
import socket
from pathlib import Path

from duelist.core.errors import InvalidInputError
from duelist.journal.base import Journal
from duelist.journal.postgres import PostgresJournal
from duelist.journal.sqlite import SQLiteJournal
from duelist.service.api_keys import is_master, key_event
from duelist.service.beliefs import believe, evidence
from duelist.service.building import features_of, items_of, spec_of
from duelist.service.demo import DEMO_ID, demo_arena
from duelist.service.embedding import Embedder
from duelist.service.events import Event
from duelist.service.hall import Hall
from duelist.service.keys import digest_of, new_key, new_secret
from duelist.service.ledger import Ledger
from duelist.service.settings import ServiceSettings

_WAITING = 2048
_POSTGRES = ("postgresql://", "postgres://")


def is_shared(data: str) -> bool:
    """Whether other processes are to be expected on the same journal."""
    return data.startswith(_POSTGRES)


def open_journal(data: str) -> Journal:
    """The journal at a path, or at the address of a PostgreSQL database."""
    if is_shared(data):
        return PostgresJournal(data)
    path = Path(data)
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInputError(f"data must be a file in a folder that exists, or postgresql://...; got {data!r}.")
    return SQLiteJournal(path)


def check_key(given: str | None) -> None:
    """Refuse an admin key that is short enough to be guessed."""
    if given is not None and len(given) < 24:
        raise InvalidInputError(
            f"an admin key needs at least 24 characters; got {len(given)}. Leave it out to get a random one."
        )


def first_key(ledger: Ledger, given: str | None = None) -> str | None:
    """Make sure that there is an admin key. Returns the secret of a new one, or None where there was one already.

    Args:
        ledger: the state.
        given: a secret to use instead of a random one, as set by whoever deploys the service.
    """
    check_key(given)
    secret = given or new_secret()

    def decide(hall: Hall, at: int) -> Event | None:
        if digest_of(secret) in hall.by_digest or (given is None and any(is_master(key) for key in hall.keys.values())):
            return None
        return key_event(new_key(secret, role="admin", label="first key" if given is None else "given key", scope="", at=at))

    return ledger.change(decide, lambda _hall, event: None if event is None else secret)


def add_demo(ledger: Ledger, settings: ServiceSettings) -> None:
    """Create the sample arena, unless it is there."""
    request = demo_arena()
    spec = spec_of(request, settings.embedders)
    items = items_of(request.items, features_of(request.items, spec, settings.embedders), taken=set())
    ledger.change(
        lambda hall, at: None if DEMO_ID in hall.arenas else hall.create(spec, items, at=at), lambda _hall, _event: None
    )


def warm_up() -> None:
    """Load the compiled kernels, so that the first voter does not wait for them. Touches no journal."""
    request = demo_arena()
    spec = spec_of(request, {})
    items = items_of(request.items, features_of(request.items, spec, {}), taken=set())
    hall = Hall()
    hall.apply(hall.create(spec, items, at=0))
    arena = hall.arena(DEMO_ID)
    for _ in range(2):
        event = arena.ask(at=0, token=secrets.randbits(64), flipped=False, request="", features=None)
        hall.apply(event)
        hall.apply({"kind": "told", "arena": DEMO_ID, "at": 0, "number": event["number"], "outcome": "first"})
    believe(evidence(arena))


def leave_memory_alone() -> None:
    """Tell the garbage collector that what exists now is here to stay. For a process that serves and does nothing else.

    A full collection looks at every object, and the libraries alone keep some 160,000: votes waited a tenth of a second for
    it, again and again.
    """
    gc.collect()
    gc.freeze()


def embedder_from(text: str) -> tuple[str, Embedder]:
    """An embedder from "name=package.module:factory", where calling the factory makes it."""
    name, _, place = text.partition("=")
    module, _, factory = place.partition(":")
    if not (name and module and factory):
        raise InvalidInputError(f"an embedder is given as name=package.module:factory; got {text!r}.")
    try:
        embedder: Embedder = getattr(importlib.import_module(module), factory)()
    except (ImportError, AttributeError) as error:
        raise InvalidInputError(f"embedder {name!r} cannot be loaded from {place!r}: {error}.") from error
    if not callable(getattr(embedder, "embed", None)) or not isinstance(getattr(embedder, "dim", None), int):
        raise InvalidInputError(
            f"embedder {name!r} must have a whole number `dim` and a method `embed`; {place!r} made {embedder!r}."
        )
    return name, embedder


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(_WAITING)  # from here on connections wait instead of being refused
    except OSError as error:
        bound.close()
        raise InvalidInputError(f"cannot listen on {host}:{port}: {error}. Choose another with --host and --port.") from error
    bound.set_inheritable(True)
    return bound
