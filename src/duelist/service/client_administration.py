"""The client's methods for administrators: prompts, goals, voters, voting links, closing, the audit log."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol

from duelist.service.dataset_files import rows_of_file

_PART_ROWS, _PART_BYTES = 1000, 1_000_000  # of prompts that are sent at once


class Connection(Protocol):
    """What sends requests."""

    def _json(self, method: str, path: str, body: Any = None, *, again: bool = True) -> Any: ...


class AdministrationClient:
    """Methods that need a key with the role admin, or for the verdict read."""

    def add_prompts(
        self: Connection, arena: str, dataset: Iterable[Mapping[str, Any]] | PathLike[str] | str, *, batch: str
    ) -> int:
        """Add prompts with their answers. Sent in parts; each counts once, however often it is sent.

        Args:
            arena: where to.
            dataset: mappings like {"prompt": ..., "answers": {item: answer, ...}}, or the path of a file of such lines (.jsonl)
                or of a table (.csv).
            batch: a name for this upload.

        Returns:
            How many prompts the arena has now.
        """
        total = 0
        for number, part in enumerate(parts_of(dataset)):
            body = {"batch": f"{batch}.{number}", "prompts": part}
            total = int(self._json("POST", f"{arena_path(arena)}/prompts", body)["prompts"])
        return total

    def set_goal(self: Connection, arena: str, kind: Literal["best", "top", "ranking", "promote"], **settings: Any) -> None:
        """Say what shall be found out: `delta`, `k` for "top", `challenger` and `champion` for "promote", `evidence`."""
        self._json("PUT", f"{arena_path(arena)}/goal", {"kind": kind, **settings})

    def verdict(self: Connection, arena: str) -> dict[str, Any]:
        """Are we done? `decided`, `items`, `promote`, `error_probability`, `votes_expected`, and a `sentence`."""
        return dict(self._json("GET", f"{arena_path(arena)}/verdict"))

    def set_closed(self: Connection, arena: str, *, closed: bool) -> None:
        """Close an arena, which then takes no more asks and answers, or open it again."""
        self._json("PATCH", arena_path(arena), {"closed": closed})

    def delete_arena(self: Connection, arena: str) -> None:
        """Delete an arena, and the keys that open only it."""
        self._json("DELETE", arena_path(arena), again=False)

    def make_key(
        self: Connection,
        label: str,
        *,
        role: Literal["vote", "read", "admin"] = "vote",
        arena: str | None = None,
        voter: str | None = None,
        quota: int | None = None,
    ) -> str:
        """Make a key and return its secret, which is shown this once.

        Args:
            label: what it is for.
            role: what it may do.
            arena: the one that it opens; None for all.
            voter: of a vote key for one arena: whose answers come through it, whatever name a request says.
            quota: of such a key: most answers that may come through it.
        """
        optional = {"arena": arena, "voter": voter, "quota": quota}
        body = {"label": label, "role": role} | {name: value for name, value in optional.items() if value is not None}
        return str(self._json("POST", "/keys", body, again=False)["secret"])

    def voters(self: Connection, arena: str) -> list[dict[str, Any]]:
        """The named voters, most answers first."""
        return list(self._json("GET", f"{arena_path(arena)}/voters")["voters"])

    def remove_answers(self: Connection, arena: str, voter: str) -> bool:
        """Let the answers of a voter count no longer. Returns whether any did."""
        path = f"{arena_path(arena)}/voters/{urllib.parse.quote(voter, safe='')}/answers"
        return bool(self._json("DELETE", path)["removed"])

    def erase_voter(self: Connection, arena: str, voter: str) -> str:
        """Forget the name of a voter. Returns what the voter is called from now on."""
        path = f"{arena_path(arena)}/voters/{urllib.parse.quote(voter, safe='')}"
        return str(self._json("DELETE", path, again=False)["voter"])

    def audit(self: Connection, arena: str | None = None, *, votes: bool = False) -> list[dict[str, Any]]:
        """Who did what, newest first: the latest events of an arena or of the whole service."""
        path = "/audit" if arena is None else f"{arena_path(arena)}/audit"
        return list(self._json("GET", f"{path}?limit=500&votes={str(votes).lower()}")["entries"])


def parts_of(dataset: Iterable[Mapping[str, Any]] | PathLike[str] | str) -> list[list[dict[str, Any]]]:
    """The prompts of a data set, in parts that may be sent at once."""
    if isinstance(dataset, str | PathLike):
        path = Path(dataset)
        text = path.read_text(encoding="utf-8")
        rows = [row for _, row in rows_of_file(text, "csv" if path.suffix.lower() == ".csv" else "jsonl")]
    else:
        rows = [dict(row) for row in dataset]
    parts: list[list[dict[str, Any]]] = [[]]
    room = _PART_BYTES
    for row in rows:
        size = len(json.dumps(row))
        if parts[-1] and (len(parts[-1]) == _PART_ROWS or size > room):
            parts.append([])
            room = _PART_BYTES
        parts[-1].append(row)
        room -= size
    return parts


def arena_path(arena: str) -> str:
    """Where an arena is."""
    return f"/arenas/{urllib.parse.quote(arena, safe='')}"
