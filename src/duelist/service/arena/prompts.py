"""The prompts of an arena: a data set of questions, each with the answers that some items gave.

An ask takes a prompt that was answered least, drawn at random among those, and shows two items that answered it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from duelist.live.seen_pairs import name_code
from duelist.service.arena.contexts import Content, Prompt

MAX_PROMPTS = 100_000


class PromptRow(NamedTuple):
    """A prompt, and by item number what was answered."""

    prompt: Prompt
    answers: Mapping[int, Content]


class PromptSet:
    """The prompts, how often each was asked and answered, and who has seen them.

    Attributes:
        rows: the prompts with their answers.
        batches: uploaded batches: name -> number of prompts.
        of_ask: decision -> row.
    """

    def __init__(self) -> None:
        self.rows: list[PromptRow] = []
        self.batches: dict[str, int] = {}
        self.of_ask: dict[int, int] = {}
        self._answered, self._asked = array("q"), array("q")
        self._kinds: dict[tuple[int, ...], int] = {}  # which items answered -> a number
        self._kind = array("q")  # by row
        self._seen: dict[int, array[int]] = {}  # voter -> rows, as often as they were shown

    def add(self, plain_rows: Iterable[Mapping[str, Any]], numbers: Mapping[str, int]) -> None:
        """Append prompts as the journal keeps them; `numbers` are those of the items by id."""
        for plain in plain_rows:
            answers = {numbers[item]: Content(*content) for item, content in plain["answers"].items()}
            self.rows.append(PromptRow(Prompt.from_plain(plain["prompt"]), answers))
            members = tuple(sorted(answers))
            self._kind.append(self._kinds.setdefault(members, len(self._kinds)))
            self._answered.append(0)
            self._asked.append(0)

    def members(self, row: int, active: Sequence[int]) -> tuple[int, ...]:
        """The active items that answered a prompt, ascending."""
        answers = self.rows[row].answers
        return tuple(number for number in active if number in answers)

    def next_row(self, active: Sequence[int], choices: int, voter: int, draw: int) -> int | None:
        """The prompt to ask about: answered least, then asked least, then the one that the random number `draw` says.

        A voter gets no prompt whose pairs it has all seen, while there are others. None where no prompt has enough answers.

        Args:
            active: the items that take part.
            choices: how many items an ask shows.
            voter: number of the voter; negative for none.
            draw: any whole number.
        """
        playing = set(active)
        answering = np.array([len(playing.intersection(members)) for members in self._kinds], dtype=np.int64)
        kind = np.array(self._kind)
        eligible = (answering >= choices)[kind]
        if not eligible.any():
            return None
        seen = self._seen.get(voter)
        if seen is not None:
            most = answering * (answering - 1) // 2 if choices == 2 else np.ones_like(answering)
            unseen = eligible & (np.bincount(seen, minlength=len(kind)) < most[kind])
            eligible = unseen if unseen.any() else eligible
        answered, asked = np.array(self._answered), np.array(self._asked)
        eligible &= answered == answered[eligible].min()
        eligible &= asked == asked[eligible].min()
        places = np.flatnonzero(eligible)
        return int(places[draw % len(places)])

    def note_asked(self, number: int, row: int, voter: int) -> None:
        """A voter is asked about a prompt."""
        self.of_ask[number] = row
        self._asked[row] += 1
        if voter >= 0:
            self._seen.setdefault(voter, array("q")).append(row)

    def note_answered(self, number: int, by: int) -> None:
        """An ask about a prompt was answered, or with -1 no longer counts as answered."""
        if number in self.of_ask:
            self._answered[self.of_ask[number]] += by

    def answered(self) -> list[int]:
        """How often each prompt was answered."""
        return self._answered.tolist()

    def to_saved(self, ids: Sequence[str]) -> dict[str, Any]:
        """Everything, as a value that `duelist.core.serialize` takes; `ids` are those of the items."""
        return {
            "rows": [
                {"prompt": row.prompt.to_plain(), "answers": {ids[number]: list(one) for number, one in row.answers.items()}}
                for row in self.rows
            ],
            "batches": [[name, size] for name, size in self.batches.items()],
            "asks": np.array([[number, row] for number, row in self.of_ask.items()], dtype=np.int64).reshape(-1, 2),
            "answered": np.array(self._answered),
            "asked": np.array(self._asked),
            "seen": np.array([(voter, row) for voter, rows in self._seen.items() for row in rows], dtype=np.int64).reshape(
                -1, 2
            ),
        }

    def restore(self, saved: Mapping[str, Any], numbers: Mapping[str, int]) -> None:
        """The inverse of `to_saved`."""
        self.add(saved["rows"], numbers)
        self.batches = dict(saved["batches"])
        self.of_ask = dict(saved["asks"].tolist())
        self._answered, self._asked = array("q", saved["answered"].tolist()), array("q", saved["asked"].tolist())
        for voter, row in saved["seen"].tolist():
            self._seen.setdefault(voter, array("q")).append(row)


def row_code(row: int, number: int) -> int:
    """A number for what a voter sees of an item that answered a prompt."""
    return name_code(f"prompt {row} item {number}")
