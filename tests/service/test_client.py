from __future__ import annotations

import csv
import io
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from duelist.core.errors import InvalidInputError
from duelist.service.client import Ask, Client, ClientError, per_item
from tests.support.services import Running


def test_the_client_does_everything_a_program_needs(service: Running) -> None:
    with Client(service.url, service.secret) as client:
        arena = client.create_arena(
            "Fruit", ["apple", "banana", {"name": "Cherry", "id": "c", "content": "cherry"}], undo_seconds=5
        )
        assert arena in [shown["id"] for shown in client.arenas()]
        assert client.import_votes(arena, [("c", "apple", "first")] * 10, batch="old") == 10
        assert client.import_votes(arena, [("c", "apple", "first")] * 10, batch="old") == 10
        ask = client.ask(arena)
        client.tell(ask, "left", voter="ann")
        client.undo(ask, voter="ann")
        client.tell_winner(ask, ask.right, voter="ann")
        client.add_items(arena, ["damson"])
        client.set_active(arena, "damson", active=False)
        board = client.leaderboard(arena)
        assert board[0]["item"] == "c"
        assert sum(row["wins"] for row in board) == 11
        assert client.explain(ask)["words"]
        rows = list(csv.DictReader(io.StringIO(client.export_csv(arena))))
        assert len(rows) == 11
        assert client.export_parquet(arena).startswith(b"PAR1")
        voter = Client(service.url, client.make_key("web", arena=arena))
        assert isinstance(voter.ask(arena), Ask)
        with pytest.raises(ClientError, match="admin") as refused:
            voter.leaderboard(arena)
        assert refused.value.status == 403
        voter.close()
        with pytest.raises(InvalidInputError, match="winner must be"):
            client.tell_winner(ask, "nobody")


def test_features_by_item_have_a_block_each(service: Running) -> None:
    with Client(service.url, service.secret) as client:
        arena = client.create_arena("Models", [{"name": n, "id": n} for n in ("small", "large")], features="request", dim=4)
        ask = client.ask(arena, features=per_item([1.0, 0.5], ["small", "large"]))
        client.tell_winner(ask, "large")
        assert {ask.left, ask.right} == {"small", "large"}


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="http://host:port"):
        Client("localhost:8000", "key")


def test_a_service_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    with pytest.raises(ClientError, match="cannot be reached") as error:
        Client("http://127.0.0.1:9", "key", timeout=1).arenas()
    assert error.value.status == 0


class Flaky(BaseHTTPRequestHandler):
    """Loses the connection after reading the first two requests, asks to wait at the third, and then answers."""

    bodies: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        if len(self.bodies) <= 2:
            self.close_connection = True
            return
        sides = b'"left": {"item": "a", "content": "A"}, "right": {"item": "b", "content": "B"}'
        content = b'{"detail": "wait"}' if len(self.bodies) == 3 else b'{"id": "0-1", ' + sides + b', "probability": null}'
        self.send_response(503 if len(self.bodies) == 3 else 201)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        pass


def test_a_lost_ask_is_sent_again_under_the_same_request_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    Flaky.bodies = []
    server = HTTPServer(("127.0.0.1", 0), Flaky)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with Client(f"http://127.0.0.1:{server.server_port}", "key") as client:
        assert client.ask("x").id == "0-1"
    assert len(Flaky.bodies) == 4
    assert len(set(Flaky.bodies)) == 1, "the same request id each time"
    server.shutdown()
    server.server_close()
    thread.join()
