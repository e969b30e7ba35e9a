"""A shorter way to the two busiest routes, asking and telling.

The framework works out the arguments of a route anew for every request, which costs as much as the vote itself. A fast route is
declared like any other, so that the OpenAPI document knows it, and is called with arguments found here: the same checks, the
same refusals, a fifth less processor time per vote. The tests hold the document against both kinds alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any, get_args, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from duelist.service.http.dependencies import check_voter
from duelist.service.http.fields import ARENA_ID, ASK_ID
from duelist.service.http.middleware import BODY, CALLER

_PATTERNS = {"arena": re.compile(ARENA_ID), "ask": re.compile(ASK_ID)}


class FastRoute(APIRoute):
    """A route of the form `endpoint(service, caller, arena[, ask], body)` whose body is a model, or may be left out."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What is called for every request."""
        endpoint: Callable[..., Coroutine[Any, Any, Response]] = self.endpoint
        model, optional = _model_of(get_type_hints(endpoint)["body"])

        async def handle(request: Request) -> Response:
            scope = request.scope
            path: dict[str, str] = scope["path_params"]
            for name, value in path.items():
                if not _PATTERNS[name].fullmatch(value):
                    raise _not_matching(name)
            caller = check_voter(scope.get(CALLER), path["arena"])
            body = _parsed(model, scope[BODY], request.headers.get("content-type", ""), optional=optional)
            return await endpoint(service=scope["app"].state.service, caller=caller, body=body, **path)

        return handle


def _model_of(annotation: Any) -> tuple[type[BaseModel], bool]:
    options = [option for option in get_args(annotation) if option is not type(None)]
    return (options[0], True) if options else (annotation, False)


def _not_matching(name: str) -> RequestValidationError:
    message = f"String should match pattern '{_PATTERNS[name].pattern}'"
    return RequestValidationError([{"loc": ("path", name), "msg": message, "type": "string"}])


def _parsed(model: type[BaseModel], raw: bytes, kind: str, *, optional: bool) -> BaseModel | None:
    if not raw:
        if optional:
            return None
        raise RequestValidationError([{"loc": ("body",), "msg": "Field required", "type": "missing"}])
    essence = kind.partition(";")[0].strip().lower()
    if essence != "application/json" and not (essence.startswith("application/") and essence.endswith("+json")):
        raise RequestValidationError(
            [{"loc": ("body",), "msg": "The content type must be application/json", "type": "content"}]
        )
    if optional and raw.strip() == b"null":
        return None
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        faults = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors(include_input=False, include_url=False)]
        raise RequestValidationError(faults) from None
