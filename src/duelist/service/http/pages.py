"""Routes: the page, its files, health and metrics. None needs a key, and none changes anything but the caller's cookie."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from duelist.service.errors import NotFoundError
from duelist.service.http.answer_models import Health, Problem
from duelist.service.http.dependencies import TheService
from duelist.service.http.keys import set_cookie
from duelist.version import __version__

_STATIC = Path(__file__).parents[1] / "static"
router = APIRouter()


def static_files() -> StaticFiles:
    """The page's scripts and styles."""
    return StaticFiles(directory=_STATIC)


def _page(name: str) -> FileResponse:
    return FileResponse(_STATIC / name, media_type="text/html; charset=utf-8", headers={"cache-control": "no-cache"})


@router.get("/", include_in_schema=False)
async def home() -> FileResponse:
    """The list of arenas, and the form that makes one."""
    return _page("index.html")


@router.get("/arena/{arena}", include_in_schema=False)
async def arena_page(arena: str) -> FileResponse:  # noqa: ARG001 - the script reads it from the address
    """Where people vote."""
    return _page("arena.html")


@router.get("/arena/{arena}/dashboard", include_in_schema=False)
async def dashboard_page(arena: str) -> FileResponse:  # noqa: ARG001
    """Where people watch."""
    return _page("dashboard.html")


@router.get("/open/{link}", include_in_schema=False)
async def open_link(service: TheService, link: str) -> Response:
    """Use the one-time link that the start printed: it becomes a cookie."""
    cookie = service.sessions.use_link(link)
    response = RedirectResponse("/" if cookie else "/?link=used", status_code=303)
    if cookie:
        set_cookie(response, cookie, secure=service.settings.secure_cookie)
    return response


@router.get("/healthz", tags=["operations"])
async def health(service: TheService) -> Health:
    """Whether the process answers, and what was found when its journal was opened. Threads that are all busy do not matter."""
    return Health(
        status="ok",
        version=__version__,
        arenas=len(service.store.state.arenas),
        position=service.store.position,
        notes=list(service.store.notes),
    )


@router.get("/readyz", tags=["operations"], responses={503: {"model": Problem, "description": "Votes cannot be saved now."}})
async def ready(service: TheService) -> Health:
    """Whether votes can be saved now: the journal answers, its disk has room, and the last commit did not fail."""
    await service.check_ready()
    return await health(service)


@router.get("/metrics", include_in_schema=False)
def metrics(service: TheService) -> Response:
    """Numbers for Prometheus, where they are not switched off."""
    if not service.settings.metrics:
        raise NotFoundError("metrics are switched off here.")
    return Response(service.numbers(), media_type=service.metrics.content_type)
