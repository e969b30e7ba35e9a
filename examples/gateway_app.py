"""The gateway over HTTP, in OpenAI's format: any client of that API can use it by changing its base URL.

    python examples/gateway_app.py gateway/ --model small=http://localhost:8001/v1@0.1 --model large=http://localhost:8002/v1@1

POST /v1/chat/completions    "model": "auto" has the router choose; "metadata": {"cost_weight": "2"} makes costs count double
GET  /v1/models              the models, and "auto"
GET  /v1/duels/{duel}        both answers, without the names of their models
POST /v1/feedback            {"duel": 3, "winner": "left"}, or "right" or "tie"; "voter" may name who
POST /v1/models              {"name": ..., "url": ..., "cost": ...}: have a model take part, from now on
DELETE /v1/models/{name}     ask it no more

There are no accounts: let only those reach it who may.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from gateway import AUTO, BackendError, Gateway, Model, Side
from pydantic import BaseModel, ConfigDict, Field

from duelist.core import AlreadyLearntError, DuelistError, UnknownDuelError


class Message(BaseModel):
    """One message; content is text or a list of parts."""

    model_config = ConfigDict(extra="allow")
    role: str
    content: Any = None


class ChatRequest(BaseModel):
    """A request for an answer; fields that are not named here go to the backend as they are."""

    model_config = ConfigDict(extra="allow")
    model: str = AUTO
    messages: list[Message] = Field(min_length=1)
    stream: bool = False
    metadata: dict[str, str] = Field(default_factory=dict)


class Feedback(BaseModel):
    """A vote on a duel."""

    model_config = ConfigDict(extra="forbid")
    duel: int
    winner: Side
    voter: str | None = None


class NewModel(BaseModel):
    """A model to add."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(pattern=r"^[\w.:/-]+$")
    url: str = Field(pattern="^https?://")
    cost: float = 0.0
    key_variable: str = ""


def create_app(gateway: Gateway) -> FastAPI:
    """The endpoints in front of a gateway."""
    app = FastAPI(title="A router that learns from votes")
    statuses = {UnknownDuelError: 404, AlreadyLearntError: 409, BackendError: 502}

    @app.exception_handler(DuelistError)
    def refuse(_: Request, error: DuelistError) -> Response:
        return _error(next((status for kind, status in statuses.items() if isinstance(error, kind)), 400), str(error))

    @app.exception_handler(RequestValidationError)
    def refuse_form(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return _error(400, f"{'.'.join(map(str, first['loc'][1:])) or 'body'}: {first['msg']}.")

    @app.post("/v1/chat/completions", response_model=None)
    def complete(request: ChatRequest) -> Response | dict[str, Any]:
        body = request.model_dump(exclude_unset=True)
        weight = _cost_weight(body.pop("metadata", {}))
        if request.stream:
            return StreamingResponse(gateway.stream(body, weight), media_type="text/event-stream")
        return gateway.complete(body, weight)

    @app.get("/v1/models")
    def models() -> dict[str, Any]:
        names = [AUTO, *(model.name for model in gateway.store.models())]
        return {
            "object": "list",
            "data": [{"id": name, "object": "model", "created": 0, "owned_by": "gateway"} for name in names],
        }

    @app.post("/v1/models")
    def add(model: NewModel) -> dict[str, Any]:
        gateway.add(Model(**model.model_dump()))
        return models()

    @app.delete("/v1/models/{name:path}")
    def drop(name: str) -> dict[str, Any]:
        gateway.store.drop(name)
        return models()

    @app.get("/v1/duels/{duel}")
    def show(duel: int) -> dict[str, Any]:
        one = gateway.store.find(duel)
        return {"duel": one.duel, "prompt": one.prompt, "left": one.left, "right": one.right}

    @app.post("/v1/feedback")
    def vote(feedback: Feedback) -> dict[str, Any]:
        gateway.vote(feedback.duel, feedback.winner, feedback.voter)
        return {"duel": feedback.duel, "votes": gateway.agent.rounds}

    return app


def _cost_weight(metadata: dict[str, str]) -> float:
    try:
        weight = float(metadata.get("cost_weight", "1"))
    except ValueError:
        weight = -1.0
    if not 0.0 <= weight < float("inf"):
        raise DuelistError(f"metadata.cost_weight must be a number of at least 0; got {metadata['cost_weight']!r}.")
    return weight


def _error(status: int, message: str) -> JSONResponse:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse({"error": {"message": message, "type": kind, "param": None, "code": None}}, status)


def main() -> None:
    """Serve the gateway of a folder on this machine."""
    parser = argparse.ArgumentParser(description="An endpoint that learns from votes which model to ask.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", action="append", default=[], metavar="NAME=URL@COST", help="to add; repeat it")
    parser.add_argument("--share", type=float, default=0.1, help="of the prompts that two models answer")
    parser.add_argument("--port", type=int, default=8080)
    chosen = parser.parse_args()
    gateway = Gateway(chosen.folder, share=chosen.share)
    for text in chosen.model:
        name, _, rest = text.partition("=")
        url, _, cost = rest.rpartition("@")
        gateway.add(Model(name, url or cost, float(cost) if url else 0.0))
    try:
        uvicorn.run(create_app(gateway), host="127.0.0.1", port=chosen.port)
    finally:
        gateway.close()


if __name__ == "__main__":
    main()
