"""The OpenAPI document, made true where the framework's own guess is not."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

# The gate asks for keys before any route is found, so the routes themselves do not know of them.
_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key made by POST /api/v1/keys, or printed at the first start.",
}
_WITHOUT_KEY = {("post", "/api/v1/session"), ("delete", "/api/v1/session")}


def true_document(app: FastAPI) -> dict[str, Any]:
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
