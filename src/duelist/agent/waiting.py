"""Duels that wait for an answer, and how many of them are packed into a few arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from duelist.core.actions import ActionSet
from duelist.core.duels import Duels
from duelist.core.errors import SavedStateError

_NO_NOTE = -1


class Waiting(NamedTuple):
    """A duel without an answer: the pair, and the action set that it came from."""

    duels: Duels
    actions: ActionSet


def packed(waiting: Mapping[int, Waiting]) -> dict[str, Any]:
    """Waiting duels by number, as a value that `duelist.core.saved` takes. An action set that several share is kept once."""
    sets = {one.actions.digest: one.actions for one in waiting.values()}
    places = {digest: place for place, digest in enumerate(sets)}
    notes = [one.duels.note for one in waiting.values()]
    return {
        "numbers": np.array(list(waiting), dtype=np.int64),
        "pairs": np.array([(one.duels.first[0], one.duels.second[0]) for one in waiting.values()], dtype=np.int64),
        "features": np.concatenate([one.duels.features for one in waiting.values()] or [np.empty((0, 2, 0))]),
        "notes": np.concatenate([note[0] for note in notes if note is not None] or [np.empty(0)]),
        "note_lengths": np.array([_NO_NOTE if note is None else note.shape[1] for note in notes], dtype=np.int64),
        "sets": list(sets.values()),
        "set_of": np.array([places[one.actions.digest] for one in waiting.values()], dtype=np.int64),
    }


def unpacked(saved: Mapping[str, Any]) -> dict[int, Waiting]:
    """The duels that `packed` packed."""
    if len({len(saved[name]) for name in ("numbers", "pairs", "features", "note_lengths", "set_of")}) > 1:
        raise SavedStateError("the saved duels that wait for an answer are not all there. Restore the state from a copy.")
    waiting, read = {}, 0
    for i, number in enumerate(saved["numbers"].tolist()):
        length = int(saved["note_lengths"][i])
        note = None if length == _NO_NOTE else saved["notes"][None, read : read + length].copy()
        read += max(length, 0)
        first, second = saved["pairs"][i, :1].copy(), saved["pairs"][i, 1:].copy()
        duels = Duels(first, second, saved["features"][i : i + 1].copy(), note)
        waiting[number] = Waiting(duels, saved["sets"][int(saved["set_of"][i])])
    return waiting
