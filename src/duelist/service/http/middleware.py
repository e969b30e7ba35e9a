"""Middleware: what every request passes before a route sees it.

In this order: is the body short enough, is there a valid key, has it any allowance left, and, for a browser's cookie, was the
request made by our own page. A request that fails is answered here, so no route can forget a check.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from duelist.service.errors import (
    ForbiddenError,
    MissingKeyError,
    ServiceError,
    TooLargeError,
    TooManyRequestsError,
    TooSlowError,
)
from duelist.service.keys import digest_of
from duelist.service.logs import ACCESS
from duelist.service.service import Service
from duelist.service.sessions import COOKIE, Caller

# Buckets that are remembered. One that was forgotten is full again, which is what it would be after a pause.
_REMEMBERED = 10_000


class RateLimit:
    """One bucket per name.

    Args:
        rate: tokens per second that are added.
        burst: tokens that a full bucket holds.
        clock: seconds, monotonic.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, name: str) -> float:
        """Seconds until there is a token; 0 if there is one. Takes none."""
        now = self._clock()
        tokens, then = self._buckets.get(name, (self._burst, now))
        return max(0.0, (1.0 - tokens) / self._rate - (now - then))

    def take(self, name: str) -> float:
        """Take a token: 0 if there was one, else the seconds until there is."""
        now = self._clock()
        tokens, then = self._buckets.pop(name, (self._burst, now))
        tokens = min(self._burst, tokens + (now - then) * self._rate)
        wait = 0.0 if tokens >= 1.0 else (1.0 - tokens) / self._rate
        self._buckets[name] = (tokens - 1.0 if wait == 0.0 else tokens, now)
        if len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        return wait


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
API = "/api/v1/"
# What later code finds in the scope of a request: the caller, and the whole body where the method has one.
CALLER, BODY = "duelist.caller", "duelist.body"
PAGE_HEADER = b"x-duelist-page"
_SESSION = "/api/v1/session"
_OPEN_TO_ALL = {"/api/v1/openapi.json", _SESSION}
_BODY_SECONDS = 30.0
_NOWHERE = ("unknown", 0)
_SAFE = {"GET", "HEAD", "OPTIONS"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https: http:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
# Where the page is reached over https, browsers use nothing else for a year.
_STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")


class Middleware:
    """ASGI middleware around the routes."""

    def __init__(self, app: App, service: Service) -> None:
        self._app, self._service = app, service
        settings = service.settings
        self._allowance = RateLimit(settings.rate, settings.burst)
        self._headers = _HEADERS + ((_STRICT_TRANSPORT,) if settings.secure_cookie else ())
        self._refusals = RateLimit(settings.refused_rate, max(int(10 * settings.refused_rate), 10))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request, pass it on, and count the answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *self._headers]
                if status == 401 and scope["path"] == _SESSION:
                    self._refusals.take(_address(scope))  # a guess
                if scope["path"].startswith(API):
                    message["headers"].append((b"cache-control", b"no-store"))
            await send(message)

        try:
            passed = await self._check(scope, receive)
        except ServiceError as error:
            await _refuse(error, send_marked)
        else:
            await self._app(scope, passed, send_marked)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._service.metrics.requests.labels(scope["method"], route, str(status)).inc()
            seconds = time.perf_counter() - started
            self._service.metrics.seconds.labels(route).observe(seconds)
            if ACCESS.isEnabledFor(logging.INFO):
                _log_access(scope, route, status, seconds)

    async def _check(self, scope: Scope, receive: Receive) -> Receive:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if scope["path"].startswith(API):
            caller = self._caller(scope, headers)
            scope[CALLER] = caller
            if scope["path"] == _SESSION and scope["method"] == "POST":
                self._refuse_guesses(self._refusals.wait(_address(scope)))
            if caller is not None:
                # One person on a shared voting link must not use up the allowance of the others.
                wait = self._allowance.take(f"{caller.name} {(scope.get('client') or _NOWHERE)[0]}")
                if wait > 0:
                    raise self._too_many(wait)
                if caller.by_cookie and scope["method"] not in _SAFE and PAGE_HEADER not in headers:
                    raise ForbiddenError(
                        "a request with the page's cookie must carry the header X-Duelist-Page: only our page sends it."
                    )
        return await self._body(scope, headers, receive)

    def _caller(self, scope: Scope, headers: dict[bytes, bytes]) -> Caller | None:
        state = self._service.store.state
        authorization = headers.get(b"authorization")
        if authorization is not None:
            kind, _, secret = authorization.decode("latin-1").partition(" ")
            secret = secret.strip() if kind.lower() == "bearer" else ""
            key = state.by_digest.get(digest_of(secret))
            if key is not None:
                return Caller(key.id, key.role, key.scope, key_id=key.id)
        else:
            cookie = _cookie(headers)
            caller = self._service.sessions.caller(cookie) if cookie else None
            if caller is not None and (not caller.key_id or caller.key_id in state.keys):
                return caller
        if authorization is None and scope["path"] in _OPEN_TO_ALL:
            return None
        self._service.metrics.refused.labels("key").inc()
        self._refuse_guesses(self._refusals.take(_address(scope)))
        raise MissingKeyError("send a key in the header: Authorization: Bearer duel_... An administrator makes keys.")

    def _refuse_guesses(self, wait: float) -> None:
        if wait > 0:
            raise TooManyRequestsError("too many requests without a valid key came from your address. Wait a little.", wait)

    def _too_many(self, wait: float) -> TooManyRequestsError:
        self._service.metrics.refused.labels("rate").inc()
        settings = self._service.settings
        return TooManyRequestsError(
            f"a key may make {settings.rate:g} requests per second from one address, {settings.burst} at once. "
            f"Try again in {wait:.2f} s.",
            wait,
        )

    async def _body(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive) -> Receive:
        """Read the whole body, up to the limit, and return a `receive` that gives it out again."""
        most = self._service.settings.max_body
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > most:
            raise TooLargeError(f"a body may have {most} bytes; {int(declared)} were announced.")
        if scope["method"] in _SAFE:
            return receive
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return receive
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise TooLargeError(f"a body may have {most} bytes; more than that came.")
                    if not message.get("more_body", False):
                        break
        except TimeoutError as error:
            raise TooSlowError(f"a body must arrive within {_BODY_SECONDS:g} seconds.") from error
        scope[BODY] = b"".join(parts)
        whole: list[Message] = [{"type": "http.request", "body": scope[BODY], "more_body": False}]

        async def again() -> Message:
            return whole.pop() if whole else await receive()

        return again


def _address(scope: Scope) -> str:
    """Where a request comes from: the client's address, or what a trusted proxy says it is."""
    return str((scope.get("client") or _NOWHERE)[0])


def _log_access(scope: Scope, route: str, status: int, seconds: float) -> None:
    """A line without secrets: the path of a one-time link is one, so the route stands for it."""
    caller: Caller | None = scope.get(CALLER)
    fields = {
        "method": scope["method"],
        "route": route,
        "path": route if "link" in scope.get("path_params", ()) else scope["path"],
        "status": status,
        "milliseconds": round(1000 * seconds, 2),
        "caller": caller.name if caller else "",
        "address": _address(scope),
    }
    ACCESS.info("%s %s %d", scope["method"], fields["path"], status, extra={"fields": fields})


def _cookie(headers: dict[bytes, bytes]) -> str:
    try:
        found = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def problem_headers(error: ServiceError) -> dict[str, str]:
    """Headers that belong to a refusal."""
    if isinstance(error, MissingKeyError):
        return {"www-authenticate": "Bearer"}
    if isinstance(error, TooManyRequestsError):
        return {"retry-after": str(max(1, math.ceil(error.retry_after)))}
    return {}


async def _refuse(error: ServiceError, send: Send) -> None:
    body = json.dumps({"title": error.title, "detail": str(error), "faults": []}).encode()
    headers = [(name.encode(), value.encode()) for name, value in problem_headers(error).items()]
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
