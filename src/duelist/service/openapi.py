"""The OpenAPI document, made true where the framework's own guess is not."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi


def true_document(app: FastAPI) -> dict[str, Any]:
    """The document of the API. Validation errors of ours are a `Problem`, and so is everything else that is refused."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = document.get("components", {}).get("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        app.openapi_schema = document
    return app.openapi_schema
