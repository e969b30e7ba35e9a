"""A small client of the service: the standard library only, so that a program that votes needs nothing else installed.

What is sent again after a lost connection counts once: asks carry a request id, answers are idempotent, imports have a batch
name.
"""

from __future__ import annotations

import http.client
import json
import secrets
import threading
import time
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self

from duelist.core.errors import DuelistError, InvalidInputError
from duelist.service.client_administration import AdministrationClient, arena_path, parts_of

_TRIES = 4
_FIRST_PAUSE = 0.2


class ClientError(DuelistError):
    """The service refused, or could not be reached.

    Attributes:
        status: HTTP status; 0 where there was no answer.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Ask:
    """A pair to show, or a slate.

    Attributes:
        id: what the answer refers to.
        arena: where it was asked.
        left: id of the item on the left.
        right: id of the item on the right.
        left_content: what to show on the left.
        right_content: what to show on the right.
        probability: estimated probability with which this pair was chosen; None where the policy does not say.
        items: ids of all items shown, in the order of the screen. Of a slate nothing is left or right, and those are empty.
        contents: what to show of each.
        prompt: what they answer, as {"format", "content", "messages"}; None for nothing.
    """

    id: str
    arena: str
    left: str
    right: str
    left_content: str
    right_content: str
    probability: float | None
    items: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    prompt: Mapping[str, Any] | None = None


class Client(AdministrationClient):
    """Talk to a service.

    Args:
        url: where it listens, such as "http://127.0.0.1:8000".
        key: a key; role "vote" is enough to ask and tell, role "read" for leaderboards, predictions and exports.
        timeout: seconds to wait for an answer.

    A client may be used from several threads; each has its own connection.
    """

    def __init__(self, url: str, key: str, *, timeout: float = 30.0) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInputError(f"url must be like http://host:port; got {url!r}.")
        self._parts, self._key, self._timeout = parts, key, timeout
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[http.client.HTTPConnection] = []

    def create_arena(
        self,
        name: str,
        items: Iterable[str | Mapping[str, Any]] | None = None,
        *,
        dataset: Iterable[Mapping[str, Any]] | PathLike[str] | str | None = None,
        prompt: str | Mapping[str, Any] | None = None,
        goal: Mapping[str, Any] | None = None,
        arena: str | None = None,
        question: str | None = None,
        features: Literal["identity", "given", "text", "request"] = "identity",
        dim: int | None = None,
        embedder: str | None = None,
        policy: str | None = None,
        settings: Mapping[str, float | str] | None = None,
        prior_scale: float | None = None,
        seed: int = 0,
        undo_seconds: float | None = None,
        ties: Literal["half", "ignored"] = "half",
        exploration: float = 0.0,
        blind: bool = True,
        voter_quota: int = 0,
    ) -> str:
        """Create an arena and return its id.

        Args:
            name: its title.
            items: each its text, or a mapping with name, content, format, id, features; a dataset may name them instead.
            dataset: prompts with their answers, as for `add_prompts`.
            prompt: what all items answer, as for `ask`.
            goal: what shall be found out, such as {"kind": "best", "delta": 0.05}; see `set_goal`.
            arena: its id; made from the name where left out.
            question: what voters are asked.
            features: where features come from.
            dim: their length, for "given" and "request".
            embedder: for "text".
            policy: by name; one that fits the goal where left out, else FGTS.
            settings: of the policy.
            prior_scale: of the policy.
            seed: names all random numbers.
            undo_seconds: how long a named voter may take an answer back.
            ties: whether they are learnt.
            exploration: share of asks that show any two items.
            blind: whether vote keys get handles in place of ids.
            voter_quota: most answers of one voter; 0 for no limit.
        """
        body: dict[str, Any] = {
            "name": name,
            "features": features,
            "seed": seed,
            "ties": ties,
            "exploration": exploration,
            "blind": blind,
            "voter_quota": voter_quota,
        }
        if policy is not None or settings or prior_scale is not None:
            body["policy"] = {"name": policy or "FGTS", "settings": dict(settings or {})}
        parts = [] if dataset is None else parts_of(dataset)
        if parts:
            body["dataset"] = {"prompts": parts[0]}
        if items is not None:
            body["items"] = [_item(item) for item in items]
        optional: dict[str, Any] = {"id": arena, "question": question, "dim": dim, "embedder": embedder}
        optional |= {"undo_seconds": undo_seconds, "goal": goal, "prompt": prompt}
        body.update({key: value for key, value in optional.items() if value is not None})
        if prior_scale is not None:
            body["policy"]["prior_scale"] = prior_scale
        made = str(self._json("POST", "/arenas", body, again=arena is not None)["id"])
        for number, part in enumerate(parts[1:], start=1):
            self._json("POST", f"{arena_path(made)}/prompts", {"batch": f"first.{number}", "prompts": part})
        return made

    def arenas(self) -> list[dict[str, Any]]:
        """The arenas that the key opens."""
        return list(self._json("GET", "/arenas")["arenas"])

    def ask(
        self,
        arena: str,
        *,
        features: Mapping[str, Sequence[float]] | None = None,
        voter: str | None = None,
        prompt: str | Mapping[str, Any] | None = None,
        candidates: Mapping[str, str | Mapping[str, Any]] | Iterable[str] | None = None,
    ) -> Ask:
        """Ask for a pair, or for a slate where the arena's policy shows those.

        Args:
            arena: id of the arena.
            features: by item id, for arenas whose features come with the ask.
            voter: who is asked: nobody gets a pair twice while there are others. The answer is then this voter's.
            prompt: what the candidates answer: a text, or {"format": "markdown", "content": ...}, or
                {"format": "conversation", "messages": [{"role": "user", "content": ...}, ...]}.
            candidates: the items to choose from: their ids, or by id what each says this time, a text or a mapping with content
                and format.
        """
        body: dict[str, Any] = {"request_id": secrets.token_hex(16)}
        if voter is not None:
            body["voter"] = voter
        if features is not None:
            body["features"] = {item: [float(x) for x in row] for item, row in features.items()}
        if prompt is not None:
            body["prompt"] = prompt
        if candidates is not None:
            body["candidates"] = _candidates(candidates)
        made = self._json("POST", f"{arena_path(arena)}/asks", body)
        shown = made.get("candidates") or [made["left"], made["right"]]
        items, contents = (tuple(one[name] for one in shown) for name in ("item", "content"))
        left, right, left_content, right_content = (*items, *contents) if len(items) == 2 else ("",) * 4
        sides = left, right, left_content, right_content
        return Ask(made["id"], arena, *sides, made["probability"], items, contents, made.get("prompt"))

    def tell(
        self,
        ask: Ask,
        outcome: Literal["left", "right", "tie", "both_bad", "skip"],
        *,
        voter: str | None = None,
        strength: Literal["much", "slightly"] | None = None,
        comment: str | None = None,
    ) -> None:
        """Answer an ask. Saying the same again changes nothing; saying something else is refused."""
        said = {"outcome": outcome, "voter": voter, "strength": strength, "comment": comment}
        body = {name: value for name, value in said.items() if value is not None}
        self._json("PUT", f"{arena_path(ask.arena)}/asks/{ask.id}/answer", body)

    def tell_winner(self, ask: Ask, winner: str, *, voter: str | None = None) -> None:
        """Answer an ask by the id of the item that won: the better of two, or the best of a slate."""
        self.tell_ranking(ask, [winner], voter=voter)

    def tell_ranking(self, ask: Ask, ranking: Sequence[str], *, voter: str | None = None) -> None:
        """Answer an ask by the ids of the items that it showed, best first: all of them, or the best few."""
        if not ranking or not set(ranking) <= set(ask.items):
            raise InvalidInputError(f"winner must be {' or '.join(map(repr, ask.items))}; got {', '.join(map(repr, ranking))}.")
        body: dict[str, Any] = {"ranking": list(ranking)}
        self._json("PUT", f"{arena_path(ask.arena)}/asks/{ask.id}/answer", body if voter is None else {**body, "voter": voter})

    def undo(self, ask: Ask, *, voter: str) -> None:
        """Take an answer back, in time."""
        self._json("POST", f"{arena_path(ask.arena)}/asks/{ask.id}/undo", {"voter": voter}, again=False)

    def leaderboard(self, arena: str) -> list[dict[str, Any]]:
        """Items, best first, with intervals and the probability that each is best."""
        return list(self._json("GET", f"{arena_path(arena)}/leaderboard")["rows"])

    def predict(self, arena: str, features: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
        """Items by what is believed of them with these features, best first. Nothing is asked."""
        body = {"features": {item: [float(x) for x in row] for item, row in features.items()}}
        return list(self._json("POST", f"{arena_path(arena)}/predictions", body)["rows"])

    def explain(self, ask: Ask) -> dict[str, Any]:
        """Why a pair was chosen."""
        return dict(self._json("GET", f"{arena_path(ask.arena)}/asks/{ask.id}/explanation"))

    def add_items(self, arena: str, items: Iterable[str | Mapping[str, Any]]) -> None:
        """Add items while votes come in."""
        self._json("POST", f"{arena_path(arena)}/items", {"items": [_item(item) for item in items]}, again=False)

    def set_active(self, arena: str, item: str, *, active: bool) -> None:
        """Retire an item, or bring it back."""
        self._json("PATCH", f"{arena_path(arena)}/items/{urllib.parse.quote(item, safe='')}", {"active": active})

    def import_votes(self, arena: str, votes: Iterable[tuple[str, str, str]], *, batch: str) -> int:
        """Import past votes (first item, second item, outcome). Sent in parts; each counts once, however often it is sent.

        Args:
            arena: where to.
            votes: outcome is "first", "second", "tie" or "both_bad".
            batch: a name for this import. The same name and votes again change nothing.

        Returns:
            How many votes were sent.
        """
        rows = [{"first": first, "second": second, "outcome": outcome} for first, second, outcome in votes]
        size = 5000
        for part in range(0, len(rows), size):
            body = {"batch": f"{batch}.{part // size}", "votes": rows[part : part + size]}
            self._json("POST", f"{arena_path(arena)}/imports", body)
        return len(rows)

    def export_csv(self, arena: str) -> str:
        """Every comparison as CSV."""
        return self._call("GET", f"{arena_path(arena)}/votes?format=csv").decode()

    def export_parquet(self, arena: str) -> bytes:
        """Every comparison as Parquet."""
        return self._call("GET", f"{arena_path(arena)}/votes?format=parquet")

    def close(self) -> None:
        """Close the connections of all threads. The client can be used again; it then connects anew."""
        with self._lock:
            for connection in self._connections:
                connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _json(self, method: str, path: str, body: Any = None, *, again: bool = True) -> Any:
        text = self._call(method, path, None if body is None else json.dumps(body).encode(), again=again)
        return json.loads(text) if text else None

    def _call(self, method: str, path: str, body: bytes | None = None, *, again: bool = True) -> bytes:
        """Send a request; where it counts once anyway, send it again after a lost connection or a plea to wait."""
        pause = _FIRST_PAUSE
        for left in reversed(range(_TRIES)):
            try:
                status, answer, wait = self._once(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                self._connection().close()
                if not left or not again:
                    raise ClientError(0, f"{self._parts.geturl()} cannot be reached: {error}.") from error
            else:
                if status < 400:
                    return answer
                if status not in (429, 503) or not left or (status == 503 and not again):
                    raise ClientError(status, _detail(answer, status))
                pause = max(pause, wait)
            time.sleep(pause)
            pause *= 2
        raise AssertionError("the last try returns or raises")

    def _connection(self) -> http.client.HTTPConnection:
        """This thread's connection. One that was closed opens again by itself."""
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
            connection = kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout)
            self._local.connection = connection
            with self._lock:
                self._connections.append(connection)
        return connection

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, float]:
        connection = self._connection()
        headers = {"Authorization": f"Bearer {self._key}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, f"{self._parts.path.rstrip('/')}/api/v1{path}", body=body, headers=headers)
        answer = connection.getresponse()
        wait = answer.headers.get("retry-after", "")
        return answer.status, answer.read(), float(wait) if wait.isdigit() else 0.0


def per_item(context: Sequence[float], items: Sequence[str]) -> dict[str, list[float]]:
    """Features that let every item have its own taste: the context in the item's own block, zeros elsewhere.

    With a context of length c and n items the arena's dim is c * n, and utility is <theta_item, context>.

    Example:
        >>> per_item([1.0, 0.5], ["small", "large"])
        {'small': [1.0, 0.5, 0.0, 0.0], 'large': [0.0, 0.0, 1.0, 0.5]}
    """
    width = len(context)
    return {
        item: [0.0] * (place * width) + [float(x) for x in context] + [0.0] * ((len(items) - place - 1) * width)
        for place, item in enumerate(items)
    }


def _candidates(candidates: Mapping[str, str | Mapping[str, Any]] | Iterable[str]) -> list[dict[str, Any]]:
    if not isinstance(candidates, Mapping):
        return [{"item": item} for item in candidates]
    return [
        {"item": item, "content": said} if isinstance(said, str) else {"item": item, **said}
        for item, said in candidates.items()
    ]


def _item(item: str | Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(item, str):
        return dict(item)
    first_line = item.strip().splitlines()[0][:80] if item.strip() else item
    return {"name": first_line, "content": item}


def _detail(answer: bytes, status: int) -> str:
    try:
        return str(json.loads(answer)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the service answered {status}."
