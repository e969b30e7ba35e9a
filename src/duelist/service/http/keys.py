"""Routes: keys, and the session of the page."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from duelist.service.commands import CreateKey, RevokeKey
from duelist.service.errors import MissingKeyError
from duelist.service.http.answer_models import KeyInfo, KeyList, MadeKey, SessionInfo
from duelist.service.http.dependencies import Admin, KeyPath, TheCaller, TheService, refusals
from duelist.service.http.request_models import NewKey, NewSession
from duelist.service.keys import Key, digest_of, new_secret
from duelist.service.sessions import COOKIE
from duelist.service.state import ServiceState

router = APIRouter(prefix="/api/v1", tags=["keys"])


@router.get("/keys", responses=refusals())
def list_keys(service: TheService, _caller: Admin) -> KeyList:
    """All keys, without their secrets: those are not stored."""
    return service.store.read(lambda state: KeyList(keys=[_key_info(key, state) for key in state.keys.values()]))


@router.post("/keys", status_code=201, responses=refusals(400, 404, 503))
async def make_key(service: TheService, caller: Admin, body: NewKey) -> MadeKey:
    """Make a key. Its secret is in this answer and nowhere else."""
    secret = new_secret()
    wanted = CreateKey(secret, body.role, body.label, body.arena or "", body.voter or "", body.quota or 0)
    key = await service.commit(wanted, by=caller)
    return MadeKey(**_key_info(key, service.store.state).model_dump(), secret=secret)


@router.delete("/keys/{key}", status_code=204, responses=refusals(404, 409, 503))
async def revoke_key(service: TheService, caller: Admin, key: KeyPath) -> None:
    """Revoke a key at once. The last admin key stays."""
    await service.commit(RevokeKey(key), by=caller)


@router.get("/session", responses=refusals())
def get_session(caller: TheCaller) -> SessionInfo:
    """What the caller may do."""
    return SessionInfo(role=caller.role, arena=caller.scope or None)


@router.post("/session", responses=refusals(400))
async def open_session(service: TheService, response: Response, body: NewSession) -> SessionInfo:
    """Exchange a key for the page's cookie, which scripts cannot read."""
    key = service.store.state.by_digest.get(digest_of(body.key))
    if key is None:
        raise MissingKeyError("that key is not known here.")
    set_cookie(response, service.sessions.open(key.role, key.scope, key.id), secure=service.settings.secure_cookie)
    return SessionInfo(role=key.role, arena=key.scope or None)


@router.delete("/session", status_code=204, responses=refusals())
async def close_session(service: TheService, request: Request, response: Response) -> None:
    """Forget the page's cookie."""
    service.sessions.close(request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE, path="/")


def set_cookie(response: Response, secret: str, *, secure: bool) -> None:
    """Set a session's cookie: not readable by scripts, not sent from other sites."""
    response.set_cookie(COOKIE, secret, httponly=True, samesite="strict", secure=secure, path="/", max_age=12 * 3600)


def _key_info(key: Key, state: ServiceState) -> KeyInfo:
    arena = state.arenas.get(key.scope) if key.role == "vote" else None
    return KeyInfo(
        id=key.id,
        role=key.role,
        label=key.label,
        arena=key.scope or None,
        created_at=key.created_at,
        voter=key.voter or None,
        quota=key.quota or None,
        answers=None if arena is None else arena.counts.through(key.id),
    )
