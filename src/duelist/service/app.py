"""The application: routes behind a gate, over one ledger."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from duelist.service import api_arenas, api_insight, api_keys, api_votes, pages
from duelist.service.errors import ServiceError
from duelist.service.gate import Gate, problem_headers
from duelist.service.ledger import Ledger
from duelist.service.openapi import true_document
from duelist.service.schemas import Fault, Problem
from duelist.service.service import Service
from duelist.service.settings import ServiceSettings
from duelist.version import __version__

_log = logging.getLogger("duelist.service")


def create_app(ledger: Ledger, settings: ServiceSettings | None = None) -> FastAPI:
    """The service as an ASGI application. It closes the ledger when it shuts down.

    Args:
        ledger: the state, on its journal.
        settings: limits and parts.
    """
    service = Service(ledger, settings or ServiceSettings())

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        refreshing = asyncio.create_task(_keep_fresh(service)) if service.settings.refresh_seconds else None
        yield
        if refreshing is not None:
            refreshing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await refreshing
        await asyncio.to_thread(ledger.close)

    app = FastAPI(
        title="duelist",
        version=__version__,
        description="Show two candidates, learn which was preferred, choose the next two better.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    app.state.service = service
    # Put in as they are, the busiest first: a router inside a router is searched twice.
    routers = (api_votes.busy, api_votes.router, api_arenas.router, api_insight.router, api_keys.router, pages.router)
    for router in routers:
        app.router.routes.extend(router.routes)
    app.mount("/static", pages.static_files(), name="static")
    app.add_middleware(Gate, service=service)
    app.add_exception_handler(ServiceError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.openapi = lambda: true_document(app)  # type: ignore[method-assign]
    return app


async def _keep_fresh(service: Service) -> None:
    while True:
        await asyncio.sleep(service.settings.refresh_seconds)
        try:
            await asyncio.to_thread(service.ledger.refresh)
        except Exception:
            _log.exception("could not catch up with the journal; trying again")


def _answer(status: int, problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(problem.model_dump(), status_code=status, headers=headers)


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, ServiceError):
        raise error
    return _answer(error.status, Problem(title=error.title, detail=str(error)), problem_headers(error))


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    """Say what is wrong without repeating what came: the input may hold NaN, secrets or a megabyte."""
    if not isinstance(error, RequestValidationError):
        raise error
    faults = [
        Fault(where=".".join(str(part) for part in fault["loc"])[:200], message=str(fault["msg"])[:500])
        for fault in error.errors()[:20]
    ]
    detail = "; ".join(f"{fault.where}: {fault.message}" for fault in faults[:3]) or "the request does not fit the schema"
    return _answer(422, Problem(title="The request cannot be understood", detail=detail, faults=faults))


async def _http(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    return _answer(error.status_code, Problem(title=str(error.detail), detail=str(error.detail)), dict(error.headers or {}))
