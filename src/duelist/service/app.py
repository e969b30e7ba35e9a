"""The application: routes behind the middleware, over one store."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from duelist.service.errors import ServiceError
from duelist.service.http import administration as api_administration
from duelist.service.http import arenas as api_arenas
from duelist.service.http import insight as api_insight
from duelist.service.http import keys as api_keys
from duelist.service.http import pages
from duelist.service.http import reliability as api_reliability
from duelist.service.http import votes as api_votes
from duelist.service.http.answer_models import Fault, Problem
from duelist.service.http.middleware import Middleware, problem_headers
from duelist.service.service import Service
from duelist.service.settings import ServiceSettings
from duelist.service.store import Store
from duelist.version import __version__

# The middleware asks for keys before any route is found, so the routes themselves do not know of them.
_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key made by POST /api/v1/keys, or printed at the first start.",
}
_WITHOUT_KEY = {("post", "/api/v1/session"), ("delete", "/api/v1/session")}


def openapi_schema(app: FastAPI) -> dict[str, Any]:
    """The document of the API. Validation errors of ours are a `Problem`, and so is everything else that is refused."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = document.get("components", {}).get("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        document["components"]["securitySchemes"] = {"key": _KEY}
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if path.startswith("/api/v1/") and (method, path) not in _WITHOUT_KEY:
                    operation["security"] = [{"key": []}]
        app.openapi_schema = document
    return app.openapi_schema


_log = logging.getLogger("duelist.service")


def create_app(store: Store, settings: ServiceSettings | None = None) -> FastAPI:
    """The service as an ASGI application. It closes the store when it shuts down.

    Args:
        store: the state, on its journal.
        settings: limits and parts.
    """
    service = Service(store, settings or ServiceSettings())

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        refreshing = asyncio.create_task(_keep_fresh(service)) if service.settings.refresh_seconds else None
        yield
        if refreshing is not None:
            refreshing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await refreshing
        await asyncio.to_thread(store.close)

    app = FastAPI(
        title="duelist",
        version=__version__,
        description="Show two candidates, learn which was preferred, choose the next two better.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json" if service.settings.openapi else None,
    )
    app.state.service = service
    # Put in as they are, the busiest first: a router inside a router is searched twice.
    insight = (api_insight.router, api_reliability.router)
    routers = (api_votes.busy, api_votes.router, api_arenas.router, *insight, api_keys.router)
    for router in (*routers, api_administration.router, pages.router):
        app.router.routes.extend(router.routes)
    app.mount("/static", pages.static_files(), name="static")
    app.add_middleware(Middleware, service=service)
    app.add_exception_handler(ServiceError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.openapi = lambda: openapi_schema(app)  # type: ignore[method-assign]
    return app


async def _keep_fresh(service: Service) -> None:
    while True:
        await asyncio.sleep(service.settings.refresh_seconds)
        try:
            await asyncio.to_thread(service.store.refresh)
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
