"""Routes: keys, and the session of the page."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from duelist.service.doors import Admin, KeyPath, TheCaller, TheService, refusals
from duelist.service.errors import ConflictError, MissingKeyError, NotFoundError
from duelist.service.events import Event
from duelist.service.hall import Hall
from duelist.service.keys import Key, digest_of, new_key, new_secret
from duelist.service.schemas import KeyInfo, KeyList, MadeKey, NewKey, NewSession, SessionInfo
from duelist.service.sessions import COOKIE

router = APIRouter(prefix="/api/v1", tags=["keys"])


def key_event(key: Key) -> Event:
    """The event of making a key."""
    return {
        "kind": "key",
        "at": key.created_at,
        "id": key.id,
        "role": key.role,
        "digest": key.digest,
        "label": key.label,
        "scope": key.scope,
    }


@router.get("/keys", responses=refusals())
def list_keys(service: TheService, _caller: Admin) -> KeyList:
    """All keys, without their secrets: those are not stored."""
    return service.ledger.read(lambda hall: KeyList(keys=[_key_info(key) for key in hall.keys.values()]))


@router.post("/keys", status_code=201, responses=refusals(400, 404, 503))
async def make_key(service: TheService, _caller: Admin, body: NewKey) -> MadeKey:
    """Make a key. Its secret is in this answer and nowhere else."""
    secret = new_secret()

    def decide(hall: Hall, at: int) -> Event:
        if body.arena is not None:
            hall.arena(body.arena)
        return key_event(new_key(secret, role=body.role, label=body.label, scope=body.arena or "", at=at))

    def outcome(hall: Hall, event: Event | None) -> MadeKey:
        key = hall.keys[event["id"]] if event else hall.by_digest[digest_of(secret)]
        return MadeKey(**_key_info(key).model_dump(), secret=secret)

    return await service.happen(decide, outcome)


@router.delete("/keys/{key}", status_code=204, responses=refusals(404, 409, 503))
async def revoke_key(service: TheService, _caller: Admin, key: KeyPath) -> None:
    """Revoke a key at once. The last admin key stays."""

    def decide(hall: Hall, at: int) -> Event:
        known = hall.keys.get(key)
        if known is None:
            raise NotFoundError(f"there is no key {key!r}.")
        if is_master(known) and sum(is_master(other) for other in hall.keys.values()) == 1:
            raise ConflictError("this is the last admin key; make another before revoking it.")
        return {"kind": "revoked", "at": at, "id": key}

    await service.happen(decide, lambda _hall, _event: None)


@router.get("/session", responses=refusals())
def get_session(caller: TheCaller) -> SessionInfo:
    """What the caller may do."""
    return SessionInfo(role=caller.role, arena=caller.scope or None)


@router.post("/session", responses=refusals(400))
async def open_session(service: TheService, response: Response, body: NewSession) -> SessionInfo:
    """Exchange a key for the page's cookie, which scripts cannot read."""
    key = service.ledger.hall.by_digest.get(digest_of(body.key))
    if key is None:
        raise MissingKeyError("that key is not known here.")
    set_cookie(response, service.sessions.open(key.role, key.scope, key.id), secure=service.settings.secure_cookie)
    return SessionInfo(role=key.role, arena=key.scope or None)


@router.delete("/session", status_code=204, responses=refusals())
async def close_session(service: TheService, request: Request, response: Response) -> None:
    """Forget the page's cookie."""
    service.sessions.close(request.cookies.get(COOKIE, ""))
    response.delete_cookie(COOKIE, path="/")


def is_master(key: Key) -> bool:
    """Whether the key may administer the whole service."""
    return key.role == "admin" and not key.scope


def set_cookie(response: Response, secret: str, *, secure: bool) -> None:
    """Hand out a session's cookie: not readable by scripts, not sent from other sites."""
    response.set_cookie(COOKIE, secret, httponly=True, samesite="strict", secure=secure, path="/", max_age=12 * 3600)


def _key_info(key: Key) -> KeyInfo:
    return KeyInfo(id=key.id, role=key.role, label=key.label, arena=key.scope or None, created_at=key.created_at)
