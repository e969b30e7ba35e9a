"""Pending questions as arrays, for files and snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.errors import SavedStateError
from duelist.typing import FloatArray, IntArray

_NO_NOTE = -1


class Parts(NamedTuple):
    """What was shown, in one lane.

    Attributes:
        rows: (choices,) row of each candidate in the action set; -1 where arms have no rows.
        features: (choices, dim).
        note: (n,) what the policy wants back with the answer; None for nothing.
    """

    rows: IntArray
    features: FloatArray
    note: FloatArray | None


def save_pending(pending: Mapping[int, tuple[Parts, ActionSet]]) -> dict[str, Any]:
    """Pending questions by number, as a value that can be saved. An action set that several share is saved once."""
    parts = [one for one, _ in pending.values()]
    sets = {actions.digest: actions for _, actions in pending.values()}
    places = {digest: place for place, digest in enumerate(sets)}
    return {
        "numbers": np.array(list(pending), dtype=np.int64),
        "pairs": np.array([one.rows for one in parts], dtype=np.int64),
        "features": np.array([one.features for one in parts]) if parts else np.empty((0, 2, 0)),
        "notes": np.concatenate([one.note for one in parts if one.note is not None] or [np.empty(0)]),
        "note_lengths": np.array([_NO_NOTE if one.note is None else len(one.note) for one in parts], dtype=np.int64),
        "sets": list(sets.values()),
        "set_of": np.array([places[actions.digest] for _, actions in pending.values()], dtype=np.int64),
    }


def load_pending(saved: Mapping[str, Any]) -> dict[int, tuple[Parts, ActionSet]]:
    """The inverse of `save_pending`."""
    if len({len(saved[name]) for name in ("numbers", "pairs", "features", "note_lengths", "set_of")}) > 1:
        raise SavedStateError("the saved pending questions are not all there. Restore the state from a copy.")
    pending, read = {}, 0
    for i, number in enumerate(saved["numbers"].tolist()):
        length = int(saved["note_lengths"][i])
        note = None if length == _NO_NOTE else saved["notes"][read : read + length].copy()
        read += max(length, 0)
        parts = Parts(saved["pairs"][i].copy(), saved["features"][i].copy(), note)
        pending[number] = (parts, saved["sets"][int(saved["set_of"][i])])
    return pending
