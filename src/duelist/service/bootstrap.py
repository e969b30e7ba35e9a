"""Opening a service: its journal, its first key, its sample arena, its socket."""

from __future__ import annotations

import gc
import importlib
import socket
from typing import Any

from duelist.core.errors import InvalidInputError
from duelist.service.arena.items import with_ids
from duelist.service.commands import GIVEN_KEY, ByActor, CreateArena, EnsureAdminKey, RevokeKey
from duelist.service.embedding import Embedder
from duelist.service.http.request_models import NewArena
from duelist.service.http.requests import items_of, spec_of
from duelist.service.insight.leaderboard import compute_leaderboard, leaderboard_inputs
from duelist.service.keys import digest_of, new_secret
from duelist.service.settings import ServiceSettings
from duelist.service.state import ServiceState, check_playable, created
from duelist.service.store import Store

DEMO_ID = "demo"
THE_START = "service"  # who did what no request asked for
_ANSWERS: tuple[tuple[str, str], ...] = (
    ("One sentence", "Let it cool first, then saw with a serrated knife instead of pressing."),
    (
        "Steps",
        "1. Let the loaf cool completely.\n"
        "2. Use a long knife with teeth.\n"
        "3. **Saw, do not press.** The weight of the blade is enough.\n"
        "4. Turn the loaf on its side if the crust is hard.",
    ),
    (
        "Reasons first",
        "A crust is dry and stiff, the crumb is soft and springy. Pressing squeezes the crumb before the crust gives way, so "
        "the slice ends up thin at the top and thick at the bottom. *Sawing* cuts the crust first. A warm loaf has not set "
        "yet: wait an hour.",
    ),
    (
        "A question back",
        "What kind of bread is it? A sandwich loaf wants a thin, sharp blade; a country loaf wants teeth. If you tell me, I "
        "can be more exact.",
    ),
    (
        "A comparison",
        "| knife | soft loaf | hard crust |\n|---|---|---|\n| serrated | good | best |\n| chef's | fair | slips |\n\n"
        "Whatever the knife: let the loaf cool and saw gently.",
    ),
    (
        "A little story",
        "My grandmother cut towards herself, loaf against her apron, and never once looked. The rest of us should put it on a "
        "board, wait until it is cold, and let a serrated knife do the work.",
    ),
)


def demo_arena() -> NewArena:
    """The request that creates the sample arena."""
    items: list[dict[str, Any]] = [{"name": name, "content": text, "format": "markdown"} for name, text in _ANSWERS]
    return NewArena.model_validate(
        {
            "id": DEMO_ID,
            "name": "Cutting bread",
            "prompt": "How do I cut bread neatly?",
            "question": "Which answer would you rather get?",
            "items": items,
        }
    )


_WAITING = 2048


def check_key(given: str | None) -> None:
    """Refuse an admin key that is short enough to be guessed."""
    if given is not None and len(given) < 24:
        raise InvalidInputError(
            f"an admin key needs at least 24 characters; got {len(given)}. Leave it out to get a random one."
        )


def first_key(store: Store, given: str | None = None) -> str | None:
    """Make sure that there is an admin key. Returns the secret of a new one, or None where there was one already.

    A given key takes the place of the one given before, which is revoked.

    Args:
        store: the state.
        given: a secret to use instead of a random one, as set by the administrator.
    """
    check_key(given)
    secret = given or new_secret()
    is_new = store.commit(ByActor(EnsureAdminKey(secret, given is not None), THE_START))
    if given is not None:
        known = store.read(lambda state: list(state.keys.values()))
        for key in known:
            if key.label == GIVEN_KEY and key.is_master and key.digest != digest_of(given):
                store.commit(ByActor(RevokeKey(key.id), THE_START))
    return secret if is_new else None


def add_demo(store: Store, settings: ServiceSettings) -> None:
    """Create the sample arena, unless it is there."""
    request = demo_arena()
    spec = spec_of(request, settings.embedders)
    items = with_ids(items_of(request.items or [], spec, settings.embedders), taken=set())
    store.commit(ByActor(CreateArena(spec, items, if_missing=True), THE_START))


def warm_up() -> None:
    """Load the compiled kernels, so that the first voter does not wait for them. Touches no journal."""
    request = demo_arena()
    spec = spec_of(request, {})
    items = with_ids(items_of(request.items or [], spec, {}), taken=set())
    check_playable(spec, items)
    state = ServiceState()
    state.apply(created(spec, items, at=0))
    compute_leaderboard(leaderboard_inputs(state.arena(DEMO_ID)))


def freeze_gc() -> None:
    """Tell the garbage collector that what exists now is here to stay. For a process that serves and does nothing else.

    A full collection looks at every object, and the libraries alone keep some 160,000: votes waited a tenth of a second for
    it, repeatedly.
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
