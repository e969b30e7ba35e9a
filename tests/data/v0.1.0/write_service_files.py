"""Writes the golden files of a service: a database, and what 0.1.0 answers on it. Run by write_golden_files.py.

Time comes from a clock that this script sets, and ids, secrets and sides from a seeded generator, so the database is always
the same. What is written down about asks made *after* the restart leaves out what is drawn at random for each: the id behind
its number, and which candidate stands on the left.
"""

from __future__ import annotations

import csv
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from write_golden_files import HERE, Plain, compress, made_with, old, tidied, write_json

START = 1_700_000_000_000
SECRET = "the admin key of the golden files"
SNAPSHOT_EVERY = 150
RANDOM_COLUMNS = ("ask", "left", "right", "outcome")  # of the export; they hold or follow from what is drawn at random
KEPT_OF_AN_ASK = ("number", "first", "second", "line_up", "stream", "policy", "probability", "explored", "drawn")
TASTE = {"a": 1.2, "b": 0.7, "c": 0.1, "d": -0.4, "e": -0.9}


class Front:
    """A service in this process, behind its HTTP interface, with a clock that stands still until it is set.

    Args:
        path: the database.
        now: what the clock says first.
    """

    def __init__(self, path: Path, now: int) -> None:
        from fastapi.testclient import TestClient

        self.now = now
        self.journal = old("journal.sqlite:SQLiteJournal")(path)
        self.ledger = old("service.ledger:Ledger")(self.journal, snapshot_every=SNAPSHOT_EVERY, clock=lambda: self.now)
        old("service.start:first_key")(self.ledger, SECRET)
        settings = old("service.settings:ServiceSettings")(rate=1e6, burst=1_000_000)
        # Without `with`, the application is not shut down and keeps no last snapshot: events after the latest one stay events.
        self._client = TestClient(old("service.app:create_app")(self.ledger, settings))

    def call(self, method: str, path: str, body: Any = None, key: str = SECRET) -> Any:
        """Send a request and return the answer, JSON or text."""
        answer = self._client.request(method, f"/api/v1{path}", json=body, headers={"Authorization": f"Bearer {key}"})
        if answer.status_code >= 400:
            raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")
        if not answer.content:
            return None
        return answer.json() if answer.headers["content-type"].startswith("application/json") else answer.text

    def last_ask(self) -> Plain:
        """The newest event of the journal, without what is drawn at random."""
        *_, record = self.journal.read(self.ledger.position - 1)
        return {name: record.body[name] for name in KEPT_OF_AN_ASK}

    def close(self) -> None:
        """Close the journal and keep no snapshot."""
        self.journal.close()


# -- arenas -------------------------------------------------------------------------------------------------------------------


def arenas() -> list[Plain]:
    """Requests that create arenas: every kind of features, every policy, and other settings."""
    given = [
        {"id": name, "name": f"Item {name}", "features": features}
        for name, features in zip(
            "abcde",
            ([1.0, 0.0, 0.5], [0.5, -0.25, 1.0], [0.0, 1.0, 0.0], [-0.5, 0.75, 0.25], [-1.0, -0.5, -0.75]),
            strict=True,
        )
    ]
    plain = [{"id": name, "name": f"Item {name}", "content": f"What {name} says."} for name in "abcd"]
    texts = ["a short answer", "a much longer answer with reasons", "no answer at all", "an answer in other words"]
    others: dict[str, Plain] = {
        "MaxPairUCB": {"width": "local", "radius": 2.5},
        "CoLSTIM": {},
        "VACDB": {"layers": 4},
        "StaD": {"explore": "widest"},
        "SupCoLSTIM": {"layers": 3},
        "FiniteModels": {"models": 30},
        "Foresight": {"candidates": 4},
        "Uniform": {},
    }
    return [
        {"id": "plain", "name": "Plain", "items": plain, "seed": 5},
        {
            "id": "given",
            "name": "Given",
            "question": "Which is better?",
            "features": "given",
            "dim": 3,
            "items": given,
            "policy": {"name": "MaxInP", "settings": {"radius": 2.5}},
            "ties": "ignored",
            "undo_seconds": 0.0,
            "seed": 7,
        },
        {
            "id": "text",
            "name": "Text",
            "features": "text",
            "items": [{"id": name, "name": name, "content": text} for name, text in zip("abcd", texts, strict=True)],
            "policy": {"name": "FGTS", "prior_scale": 0.5, "settings": {"sampler": "laplace"}},
            "seed": 3,
        },
        {
            "id": "request",
            "name": "Request",
            "features": "request",
            "dim": 3,
            "items": plain,
            "policy": {"name": "FGTS", "settings": {"sampler": "polya_gamma", "discount": 0.97}},
            "undo_seconds": 5.0,
        },
        *(
            {
                "id": f"by-{name.lower()}",
                "name": f"By {name}",
                "features": "given",
                "dim": 3,
                "items": given,
                "policy": {"name": name, "settings": settings},
                "undo_seconds": 4.0,
            }
            for name, settings in others.items()
        ),
    ]


class Crowd:
    """Asks and answers over HTTP, with ties, skips, names and second thoughts, and some answers that never come."""

    def __init__(self, front: Front, dice: random.Random) -> None:
        self.front, self.dice = front, dice
        self.waiting: dict[str, list[Plain]] = {}
        self.requests = 0

    def features(self, arena: str) -> Plain:
        """The body of an ask: in an arena that wants them, features of three items."""
        if arena != "request":
            return {}
        items = sorted(self.dice.sample("abcd", 3))
        return {"features": {item: [round(self.dice.uniform(-1, 1), 2) for _ in range(3)] for item in items}}

    def verdict(self, pair: list[str]) -> str:
        """An item of the pair, or a word."""
        if self.dice.random() < 0.25:
            return self.dice.choice(["tie", "tie", "both_bad", "skip"])
        first, second = pair
        return first if self.dice.gauss(TASTE.get(first, 0.0) - TASTE.get(second, 0.0), 1.0) > 0 else second

    def ask(self, arena: str) -> None:
        """Ask for a pair that will be answered some time."""
        body = self.features(arena)
        if self.dice.random() < 0.3:
            self.requests += 1
            body["request_id"] = f"request-{self.requests}"
        self.waiting.setdefault(arena, []).append(self.front.call("POST", f"/arenas/{arena}/asks", body))

    def answer(self, arena: str) -> None:
        """Answer one of the pairs that wait, and perhaps take it back."""
        waiting = self.waiting.get(arena, [])
        if not waiting:
            return
        ask = waiting.pop(self.dice.randrange(len(waiting)))
        voter = {"voter": f"voter-{self.dice.randrange(3)}"} if self.dice.random() < 0.6 else {}
        told = {"outcome": sided(ask, self.verdict([ask["left"]["item"], ask["right"]["item"]])), **voter}
        answer = self.front.call("PUT", f"/arenas/{arena}/asks/{ask['id']}/answer", told)
        if answer["undo_until"] is not None and self.dice.random() < 0.3:
            self.front.now += 500
            self.front.call("POST", f"/arenas/{arena}/asks/{ask['id']}/undo", voter)
            waiting.append(ask)

    def act(self, names: list[str], times: int) -> None:
        """Let so many things happen in these arenas."""
        for _ in range(times):
            self.front.now += self.dice.randrange(100, 3000)
            arena = self.dice.choice(names)
            if self.dice.random() < 0.58:
                self.ask(arena)
            else:
                self.answer(arena)


def sided(ask: Plain, verdict: str) -> str:
    """A verdict as the interface wants it: "left" or "right" for an item of the pair."""
    sides = {ask["left"]["item"]: "left", ask["right"]["item"]: "right"}
    return sides.get(verdict, verdict)


def fill(front: Front) -> Plain:
    """Everything that happens before the restart. Returns the secrets of the keys that were made."""
    dice = random.Random(20)
    names = []
    for body in arenas():
        front.now += 1000
        names.append(front.call("POST", "/arenas", body)["id"])
    crowd = Crowd(front, dice)
    crowd.act(names, 150)
    past = [
        {"first": a, "second": b, "outcome": o} for a, b, o in (("a", "d", "first"), ("c", "b", "second"), ("a", "b", "tie"))
    ]
    for arena in ("plain", "given", "by-foresight"):
        front.call("POST", f"/arenas/{arena}/imports", {"batch": "from-before", "votes": past})
    front.call("PATCH", "/arenas/plain/items/d", {"active": False})
    front.call("PATCH", "/arenas/given/items/e", {"active": False})
    front.call("PATCH", "/arenas/by-vacdb/items/c", {"active": False})
    made = {
        "vote": front.call("POST", "/keys", {"label": "page", "arena": "plain"})["secret"],
        "admin": front.call("POST", "/keys", {"label": "second", "role": "admin"})["secret"],
    }
    revoked = front.call("POST", "/keys", {"label": "short"})
    front.call("DELETE", f"/keys/{revoked['id']}")
    crowd.act(names, 130)
    # Nine items need more room than the eight that an arena without features starts with: its player learns all again.
    front.call("POST", "/arenas/plain/items", {"items": [{"id": f"n{i}", "name": f"New {i}"} for i in range(5)]})
    more = {"id": "f", "name": "Item f", "features": [0.25, 0.25, -0.5]}
    for arena in ("given", "by-uniform", "by-stad"):
        front.call("POST", f"/arenas/{arena}/items", {"items": [more]})
    front.call("POST", "/arenas/text/items", {"items": [{"id": "e", "name": "e", "content": "a late answer"}]})
    front.call("PATCH", "/arenas/by-vacdb/items/c", {"active": True})
    front.call("POST", "/arenas/plain/imports", {"batch": "again", "votes": past[:2]})
    crowd.act(names, 140)
    # Held answers at the end: their time for undoing is not over.
    for arena in ("plain", "request", "by-colstim"):
        crowd.ask(arena)
        ask = crowd.waiting[arena].pop()
        path = f"/arenas/{arena}/asks/{ask['id']}/answer"
        front.call("PUT", path, {"outcome": "left", "voter": "voter-late"})
    return made


# -- answers ------------------------------------------------------------------------------------------------------------------


def looked_at(front: Front, secrets: Plain) -> list[Plain]:
    """Requests that change nothing, with their answers. Everything in them is the same at every run."""
    names = [arena["id"] for arena in front.call("GET", "/arenas")["arenas"]]
    asked: list[tuple[str, str, Any, str]] = [("GET", "/arenas", None, "admin")]
    asked += [("GET", path, None, "admin") for path in ("/keys", "/session")]
    asked += [("GET", path, None, "vote") for path in ("/arenas", "/session")]
    for name in names:
        pages = ("", "/items", "/leaderboard", "/timeline", "/votes")
        asked += [("GET", f"/arenas/{name}{page}", None, "admin") for page in pages]
        rows = list(csv.DictReader(front.call("GET", f"/arenas/{name}/votes").splitlines()))
        ids = [row["ask"] for row in rows if row["ask"]]
        asked += [("GET", f"/arenas/{name}/asks/{ids[0]}/explanation", None, "admin")]
        asked += [("GET", f"/arenas/{name}/asks/{ids[-1]}", None, "admin")]
    features = {"a": [1.0, 0.0, 0.0], "b": [0.0, 1.0, 0.0], "c": [0.25, 0.25, 0.25]}
    asked.append(("POST", "/arenas/request/predictions", {"features": features}, "admin"))
    return [
        {"method": method, "path": path, "body": body, "key": key, "answer": front.call(method, path, body, secrets[key])}
        for method, path, body, key in asked
    ]


def gone_on(front: Front) -> list[Plain]:
    """A fixed sequence of asks, answers and changes after the restart, and which pairs were chosen."""
    dice = random.Random(21)
    names = [arena["id"] for arena in front.call("GET", "/arenas")["arenas"]]
    crowd = Crowd(front, dice)
    steps: list[Plain] = []
    open_asks: list[tuple[Plain, list[str]]] = []
    body: Plain
    for turn in range(130):
        front.now += dice.randrange(100, 2500)
        if turn == 60:
            path, body = "/arenas/given/items/e", {"active": True}
            front.call("PATCH", path, body)
            steps.append({"at": front.now, "do": "PATCH", "path": path, "body": body})
        elif turn == 80:
            path, body = "/arenas/by-supcolstim/items", {"items": [{"id": "g", "name": "G", "features": [0.5, 0.5, 0.5]}]}
            front.call("POST", path, body)
            steps.append({"at": front.now, "do": "POST", "path": path, "body": body})
        elif open_asks and dice.random() < 0.45:
            ask, pair = open_asks.pop(dice.randrange(len(open_asks)))
            verdict, voter = crowd.verdict(pair), dice.choice(["", "voter-0", "voter-9"])
            number = int(ask["id"].partition("-")[0])
            body = {"outcome": sided(ask, verdict), **({"voter": voter} if voter else {})}
            told = front.call("PUT", f"/arenas/{ask['arena']}/asks/{ask['id']}/answer", body)
            step = {"at": front.now, "do": "tell", "arena": ask["arena"], "number": number, "verdict": verdict, "voter": voter}
            steps.append({**step, "undo_until": told["undo_until"]})
            if told["undo_until"] is not None and dice.random() < 0.25:
                front.call("POST", f"/arenas/{ask['arena']}/asks/{ask['id']}/undo", {"voter": voter})
                steps.append({"at": front.now, "do": "undo", "arena": ask["arena"], "number": number, "voter": voter})
                open_asks.append((ask, pair))
        else:
            arena = names[turn % len(names)] if turn < 30 else dice.choice(names)
            body = crowd.features(arena)
            ask = front.call("POST", f"/arenas/{arena}/asks", body)
            open_asks.append((ask, sorted([ask["left"]["item"], ask["right"]["item"]])))
            chosen = {"pair": open_asks[-1][1], "probability": ask["probability"], "asked_at": ask["asked_at"]}
            steps.append({"at": front.now, "do": "ask", "arena": arena, "body": body, **chosen, "event": front.last_ask()})
    return steps


def seen_at_the_end(front: Front) -> Plain:
    """What the service says after it went on, without what was drawn at random."""
    listed = front.call("GET", "/arenas")
    seen: Plain = {"arenas": listed, "of": {}}
    for name in (arena["id"] for arena in listed["arenas"]):
        rows = list(csv.DictReader(front.call("GET", f"/arenas/{name}/votes").splitlines()))
        seen["of"][name] = {
            "leaderboard": front.call("GET", f"/arenas/{name}/leaderboard"),
            "timeline": front.call("GET", f"/arenas/{name}/timeline"),
            "votes": {
                "pair": [sorted([row["left"], row["right"]]) for row in rows],
                **{column: [row[column] for row in rows] for column in rows[0] if column not in RANDOM_COLUMNS},
            },
        }
    return seen


def seeded(call: Callable[[], Any]) -> Any:
    """Run something with ids, secrets and sides from a seeded generator."""
    dice = random.Random(42)
    with (
        mock.patch("secrets.randbits", dice.getrandbits),
        mock.patch("secrets.token_hex", lambda n: dice.randbytes(n).hex()),
        mock.patch("secrets.token_urlsafe", lambda n: f"golden-{dice.randbytes(n // 4).hex()}"),
    ):
        return call()


def write_service() -> None:
    """Write the database, compressed, and service.json."""
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary, "service.db")
        made, now = seeded(lambda: before(path))
        secrets = {"admin": SECRET, "second admin": made["admin"], "vote": made["vote"]}
        content = tidied(path)
        compress(path.read_bytes(), HERE / "service.db.gz")
        went_on = seeded(lambda: after(path, now + 1000, secrets))
    start = {"made_with": made_with(), "file": "service.db.gz", **content, "secrets": secrets}
    write_json("service.json", {**start, **went_on, "continued": "service-continued.npz.gz"})


def before(path: Path) -> tuple[Plain, int]:
    """Make the database. Returns the secrets of the keys that were made, and the time."""
    front = Front(path, START)
    secrets = fill(front)
    front.close()
    return secrets, front.now


def after(path: Path, now: int, secrets: Plain) -> Plain:
    """Open the database again, look at everything, and go on."""
    front = Front(path, now)
    replayed = front.ledger.counters.replayed
    answers, steps = looked_at(front, secrets), gone_on(front)
    at_end = seen_at_the_end(front)
    compress(front.ledger.read(lambda hall: hall.to_bytes()), HERE / "service-continued.npz.gz")
    front.close()
    return {
        "clock_at_restart": now,
        "replayed_at_restart": replayed,
        "answers": answers,
        "continuation": steps,
        "at_end": at_end,
    }
