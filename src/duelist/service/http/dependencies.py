"""Dependencies of routes: what the caller may do. The middleware has found out who is calling.

They are coroutines although they wait for nothing: the framework would send plain functions to a thread, at a cost of more than
the whole rest of a vote.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Request

from duelist.service.errors import ForbiddenError, MissingKeyError
from duelist.service.http.answer_models import Problem
from duelist.service.http.fields import ARENA_ID, ASK_ID, ITEM_ID, KEY_ID
from duelist.service.http.middleware import CALLER
from duelist.service.service import Service
from duelist.service.sessions import Caller

ArenaPath = Annotated[str, Path(pattern=ARENA_ID, description="Id of the arena.")]
ItemPath = Annotated[str, Path(pattern=ITEM_ID, description="Id of the item.")]
AskPath = Annotated[str, Path(pattern=ASK_ID, description="Id of the ask.")]
KeyPath = Annotated[str, Path(pattern=KEY_ID, description="Id of the key.")]
_NO_KEY = "send a key in the header: Authorization: Bearer duel_..."
_SAYS = {
    400: "The body is not JSON.",
    401: "No valid key.",
    403: "The key's role or arena does not cover this.",
    404: "No such arena, item, ask or key.",
    409: "In conflict with the present state of the arena.",
    413: "The body is too large.",
    422: "The request does not fit the schema, or says something that cannot be.",
    429: "The key has used up its allowance; see Retry-After.",
    503: "The journal cannot be written to, or an embedder failed.",
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals that a route may answer with, for the OpenAPI document."""
    return {status: {"model": Problem, "description": _SAYS[status]} for status in (*statuses, 401, 403, 413, 422, 429)}


async def service_of(request: Request) -> Service:
    """The service behind the app."""
    service: Service = request.app.state.service
    return service


async def caller_of(request: Request) -> Caller:
    """Who is calling."""
    caller: Caller | None = request.scope.get(CALLER)
    if caller is None:
        raise MissingKeyError(_NO_KEY)
    return caller


def check_visitor(caller: Caller | None, arena: str) -> Caller:
    """Refuse a caller whose key does not open an arena."""
    if caller is None:
        raise MissingKeyError(_NO_KEY)
    if caller.scope not in ("", arena):
        raise ForbiddenError(f"this key is for arena {caller.scope!r} only.")
    return caller


def check_voter(caller: Caller | None, arena: str) -> Caller:
    """Refuse a caller who may not vote in an arena."""
    if caller is None or caller.role == "read" or caller.scope not in ("", arena):  # one call less for a vote
        check_visitor(caller, arena)
        raise ForbiddenError("this needs a key with the role vote or admin; a read key changes nothing.")
    return caller


async def visitor_in(request: Request, arena: ArenaPath) -> str:
    """The arena, if the caller's key opens it."""
    check_visitor(request.scope.get(CALLER), arena)
    return arena


async def reader_in(request: Request, arena: ArenaPath) -> str:
    """The arena, if the caller may see what its votes say."""
    if check_visitor(request.scope.get(CALLER), arena).role == "vote":
        raise ForbiddenError("this needs a key with the role read or admin; a vote key may ask and tell.")
    return arena


async def voter_in(request: Request, arena: ArenaPath) -> str:
    """The arena, if the caller may vote in it."""
    check_voter(request.scope.get(CALLER), arena)
    return arena


async def admin_in(request: Request, arena: ArenaPath) -> str:
    """The arena, if the caller may administer it."""
    if check_visitor(request.scope.get(CALLER), arena).role != "admin":
        raise ForbiddenError("this needs a key with the role admin; a vote key may ask and tell, a read key may look.")
    return arena


async def admin(request: Request) -> Caller:
    """The caller, if it may administer the whole service."""
    caller = await caller_of(request)
    if caller.role != "admin" or caller.scope:
        raise ForbiddenError("this needs an admin key that is not limited to one arena.")
    return caller


TheService = Annotated[Service, Depends(service_of)]
TheCaller = Annotated[Caller, Depends(caller_of)]
VisitedArena = Annotated[str, Depends(visitor_in)]
ReadArena = Annotated[str, Depends(reader_in)]
VotedArena = Annotated[str, Depends(voter_in)]
AdminArena = Annotated[str, Depends(admin_in)]
Admin = Annotated[Caller, Depends(admin)]
