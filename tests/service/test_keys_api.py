"""Keys, roles, sessions: who may do what."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from duelist.journal.memory import MemoryJournal
from duelist.service.settings import ServiceSettings
from tests.support.services import Running, running_service


def all_routes(service: Running) -> list[tuple[str, str]]:
    document = service.anonymous.get("/api/v1/openapi.json").json()
    return [(method, path) for path, methods in document["paths"].items() for method in methods if path.startswith("/api/")]


def filled(path: str, arena: str, ask: str) -> str:
    return path.replace("{arena}", arena).replace("{ask}", ask).replace("{item}", "alpha").replace("{key}", "0123456789ab")


@pytest.mark.slow
def test_no_request_without_a_key_changes_anything() -> None:
    journal = MemoryJournal()
    with running_service(journal) as service:
        arena = service.create()
        ask = service.ask(arena)["id"]
        before = len(list(journal.read()))
        bodies: list[Any] = [
            None,
            {},
            {"outcome": "left"},
            {"active": False},
            {"name": "x", "items": [{"name": "a"}, {"name": "b"}]},
        ]
        for method, path in all_routes(service):
            for body in bodies:
                for headers in (
                    {},
                    {"Authorization": "Bearer wrong"},
                    {"Authorization": "Basic YTpi"},
                    {"Cookie": "duelist_session=x"},
                ):
                    answer = service.anonymous.request(method, filled(path, arena, ask), json=body, headers=headers)
                    # Signing in is the one thing that needs no key first: it brings one.
                    allowed = {401, 422} if path == "/api/v1/session" and method == "post" else {401}
                    if path == "/api/v1/session" and method == "delete":
                        allowed = {401, 204}
                    assert answer.status_code in allowed, (method, path, body, headers, answer.text)
        assert len(list(journal.read())) == before


def test_a_vote_key_asks_and_tells_and_nothing_else(service: Running) -> None:
    arena, other = service.create(), service.create()
    made = service.admin.post("/api/v1/keys", json={"label": "web", "arena": arena})
    assert made.status_code == 201
    with service.with_key(made.json()["secret"]) as voter:
        assert voter.get("/api/v1/session").json() == {"role": "vote", "arena": arena}
        assert [a["id"] for a in voter.get("/api/v1/arenas").json()["arenas"]] == [arena]
        ask = voter.post(f"/api/v1/arenas/{arena}/asks").json()["id"]
        assert voter.put(f"/api/v1/arenas/{arena}/asks/{ask}/answer", json={"outcome": "left"}).status_code == 200
        assert voter.get(f"/api/v1/arenas/{arena}").status_code == 200
        assert voter.post(f"/api/v1/arenas/{other}/asks").status_code == 403
        assert voter.post("/api/v1/arenas/does-not-exist/asks").status_code == 403, "nothing is learnt about other arenas"
        for method, path in all_routes(service):
            if path.split("/")[3] == "session" or path.endswith(
                ("/asks", "/answer", "/undo", "/asks/{ask}", "/{arena}", "/arenas")
            ):
                continue
            bodies = {"active": False, "items": [{"name": "x"}], "batch": "b", "votes": [], "label": "x"}
            answer = voter.request(
                method, filled(path, arena, ask), json=bodies if method in ("post", "put", "patch") else None
            )
            assert answer.status_code == 403, (method, path, answer.text)
        assert voter.post("/api/v1/arenas", json={"name": "x", "items": [{"name": "a"}, {"name": "b"}]}).status_code == 403


READ_KEYS_MAY = {
    ("get", "/api/v1/arenas"),
    ("get", "/api/v1/arenas/{arena}"),
    ("get", "/api/v1/arenas/{arena}/items"),
    ("get", "/api/v1/arenas/{arena}/asks/{ask}"),
    ("get", "/api/v1/arenas/{arena}/asks/{ask}/explanation"),
    ("get", "/api/v1/arenas/{arena}/leaderboard"),
    ("get", "/api/v1/arenas/{arena}/reliability"),
    ("get", "/api/v1/arenas/{arena}/timeline"),
    ("get", "/api/v1/arenas/{arena}/verdict"),
    ("get", "/api/v1/arenas/{arena}/votes"),
    ("post", "/api/v1/arenas/{arena}/predictions"),
}


def test_a_read_key_looks_and_changes_nothing() -> None:
    journal = MemoryJournal()
    with running_service(journal) as service:
        arena, other = service.create(features="request", dim=1), service.create()
        features = {"alpha": [1.0], "beta": [0.0]}
        ask = service.admin.post(f"/api/v1/arenas/{arena}/asks", json={"features": features}).json()["id"]
        made = service.admin.post("/api/v1/keys", json={"label": "router", "role": "read", "arena": arena})
        assert made.json()["role"] == "read"
        goal = {"kind": "best", "evidence": "pairs"}
        assert service.admin.put(f"/api/v1/arenas/{arena}/goal", json=goal).status_code == 200
        before = len(list(journal.read()))
        bodies: dict[str, Any] = {
            "goal": goal,
            "{arena}": {"closed": True},
            "prompts": {"batch": "b", "text": "x", "file": "csv"},
            "predictions": {"features": features},
            "asks": {"features": features},
            "answer": {"outcome": "left"},
            "undo": {"voter": "ann"},
            "arenas": {"name": "x", "items": [{"name": "a"}, {"name": "b"}]},
            "items": {"items": [{"name": "x"}]},
            "{item}": {"active": False},
            "imports": {"batch": "b", "votes": [{"first": "alpha", "second": "beta", "outcome": "first"}]},
            "keys": {"label": "x"},
        }
        with service.with_key(made.json()["secret"]) as reader:
            assert reader.get("/api/v1/session").json() == {"role": "read", "arena": arena}
            for method, path in all_routes(service):
                if path == "/api/v1/session":
                    continue
                body = bodies.get(path.split("/")[-1]) if method in ("post", "put", "patch") else None
                status = reader.request(method, filled(path, arena, ask), json=body).status_code
                assert status == (200 if (method, path) in READ_KEYS_MAY else 403), (method, path)
                if "{arena}" in path:
                    assert reader.request(method, filled(path, other, ask), json=body).status_code == 403, (method, path)
        assert len(list(journal.read())) == before


def test_an_admin_of_one_arena_stays_in_it(service: Running) -> None:
    arena, other = service.create(), service.create()
    made = service.admin.post("/api/v1/keys", json={"label": "team", "role": "admin", "arena": arena}).json()
    with service.with_key(made["secret"]) as admin:
        assert admin.get(f"/api/v1/arenas/{arena}/leaderboard").status_code == 200
        assert admin.get(f"/api/v1/arenas/{other}/leaderboard").status_code == 403
        assert admin.get("/api/v1/keys").status_code == 403
        assert admin.post("/api/v1/keys", json={"label": "x"}).status_code == 403


def test_keys_are_listed_without_secrets_and_revoked_at_once(service: Running) -> None:
    made = service.admin.post("/api/v1/keys", json={"label": "short-lived"}).json()
    listed = service.admin.get("/api/v1/keys")
    assert made["id"] in [key["id"] for key in listed.json()["keys"]]
    assert made["secret"] not in listed.text
    with service.with_key(made["secret"]) as voter:
        assert voter.get("/api/v1/arenas").status_code == 200
        assert service.admin.delete(f"/api/v1/keys/{made['id']}").status_code == 204
        assert voter.get("/api/v1/arenas").status_code == 401
    assert service.admin.delete(f"/api/v1/keys/{made['id']}").status_code == 404
    assert service.admin.post("/api/v1/keys", json={"label": "x", "arena": "nowhere"}).status_code == 404


def test_secrets_never_reach_the_journal() -> None:
    journal = MemoryJournal()
    with running_service(journal) as service:
        made = service.admin.post("/api/v1/keys", json={"label": "web"}).json()
        written = str(list(journal.read()))
        assert made["secret"] not in written
        assert service.secret not in written


def test_the_last_admin_key_stays(service: Running) -> None:
    (only,) = [k for k in service.admin.get("/api/v1/keys").json()["keys"] if k["role"] == "admin" and k["arena"] is None]
    assert service.admin.delete(f"/api/v1/keys/{only['id']}").status_code == 409


def test_a_session_works_by_cookie_and_needs_the_pages_header_to_change_things(service: Running) -> None:
    with httpx.Client(base_url=service.url) as browser:
        assert browser.post("/api/v1/session", json={"key": "wrong"}).status_code == 401
        opened = browser.post("/api/v1/session", json={"key": service.secret})
        assert opened.json() == {"role": "admin", "arena": None}
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert service.secret not in cookie
        assert browser.get("/api/v1/arenas").status_code == 200
        body = {"name": "x", "items": [{"name": "a"}, {"name": "b"}]}
        forged = browser.post("/api/v1/arenas", json=body)
        assert forged.status_code == 403
        assert "X-Duelist-Page" in forged.json()["detail"]
        assert browser.post("/api/v1/arenas", json=body, headers={"X-Duelist-Page": "1"}).status_code == 201
        assert browser.delete("/api/v1/session", headers={"X-Duelist-Page": "1"}).status_code == 204
        assert browser.get("/api/v1/arenas").status_code == 401


def test_a_session_ends_with_its_key(service: Running) -> None:
    made = service.admin.post("/api/v1/keys", json={"label": "x", "role": "admin"}).json()
    with httpx.Client(base_url=service.url) as browser:
        browser.post("/api/v1/session", json={"key": made["secret"]})
        assert browser.get("/api/v1/keys").status_code == 200
        service.admin.delete(f"/api/v1/keys/{made['id']}")
        assert browser.get("/api/v1/keys").status_code == 401


def test_a_link_works_once(service: Running) -> None:
    link = service.service.sessions.new_link()
    with httpx.Client(base_url=service.url) as browser:
        first = browser.get(f"/open/{link}")
        assert (first.status_code, first.headers["location"]) == (303, "/")
        assert browser.get("/api/v1/keys").status_code == 200
    with httpx.Client(base_url=service.url) as other:
        assert other.get(f"/open/{link}").headers["location"] == "/?link=used"
        assert other.get("/open/guess").headers["location"] == "/?link=used"
        assert other.get("/api/v1/keys").status_code == 401


def test_guessing_keys_is_slowed_down() -> None:
    with running_service(settings=ServiceSettings(refused_rate=1.0)) as service:
        statuses = [service.anonymous.get("/api/v1/arenas").status_code for _ in range(15)]
        assert statuses[:10] == [401] * 10
        assert statuses[-1] == 429
        assert service.admin.get("/api/v1/arenas").status_code == 200, "a valid key is not held up by others"


@pytest.mark.parametrize(
    "path", ["/", "/arena/x", "/arena/x/dashboard", "/static/arena.js", "/healthz", "/metrics", "/api/v1/openapi.json"]
)
def test_what_is_open_to_all_is_locked_down(service: Running, path: str) -> None:
    answer = service.anonymous.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
