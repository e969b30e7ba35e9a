"""Sessions of the page: a one-time link, or a key, is exchanged for a cookie that scripts cannot read.

Sessions live in memory and end with the process; the start prints a new link.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from duelist.service.keys import Role, digest_of

COOKIE = "duelist_session"
_LASTS = 12 * 3600.0
_MOST_PER_KEY = 200  # so that nobody can push out the sessions of others by opening more
_MOST = 20_000


@dataclass(frozen=True)
class Caller:
    """Who makes a request.

    Attributes:
        name: for rate limits: the key's id, whatever session it comes through; the session where there is no key.
        role: what the caller may do.
        scope: the one arena it may do it in; empty for all.
        by_cookie: whether a browser sent the proof by itself, which needs a guard against forged requests.
        key_id: the key behind it; empty for the one-time link.
    """

    name: str
    role: Role
    scope: str = ""
    by_cookie: bool = False
    key_id: str = ""


class Sessions:
    """The sessions that are open, and the links that were not used yet."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._links: set[str] = set()
        self._open: dict[str, tuple[Caller, float]] = {}

    def new_link(self) -> str:
        """The secret of a link that opens one admin session, once."""
        secret = secrets.token_urlsafe(24)
        with self._lock:
            self._links.add(digest_of(secret))
        return secret

    def use_link(self, secret: str) -> str | None:
        """The cookie of a new admin session; None if the link was used before or never made."""
        digest = digest_of(secret)
        with self._lock:
            if digest not in self._links:
                return None
            self._links.remove(digest)
        return self.open("admin", "", "")

    def open(self, role: Role, scope: str, key_id: str) -> str:
        """The cookie of a new session."""
        secret = secrets.token_urlsafe(32)
        digest = digest_of(secret)
        caller = Caller(key_id or f"session {digest[:12]}", role, scope, by_cookie=True, key_id=key_id)
        with self._lock:
            own = [known for known, (one, _) in self._open.items() if one.key_id == key_id]
            if len(own) >= _MOST_PER_KEY:
                del self._open[own[0]]
            elif len(self._open) >= _MOST:
                del self._open[next(iter(self._open))]
            self._open[digest] = (caller, self._clock() + _LASTS)
        return secret

    def caller(self, cookie: str) -> Caller | None:
        """Who the cookie belongs to, while the session lasts."""
        digest = digest_of(cookie)
        with self._lock:
            known = self._open.get(digest)
            if known is None:
                return None
            if known[1] < self._clock():
                del self._open[digest]
                return None
            return known[0]

    def close(self, cookie: str) -> None:
        """End a session."""
        with self._lock:
            self._open.pop(digest_of(cookie), None)
