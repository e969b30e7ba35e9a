"""What was shown as arrays, for files and snapshots, with the action set or, where nobody reads it again, its fingerprint."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from duelist.actions.blocks import BlockActions
from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.errors import SavedStateError
from duelist.typing import FloatArray, IntArray

_WORTH_PACKING = 128  # numbers, below which looking for zeros takes longer than the memory is worth
_NO_NOTE = -1
_NO_SET = -1
DIGEST_BYTES = 16
PACKED_FORMS = range(4)  # the first byte of a packed set
_DENSE, _SPARSE, _BLOCKS, _CONTEXT = PACKED_FORMS
_SET = struct.Struct("<Bii")  # form, arms, dim
_MINUS_ZERO = np.array(-0.0).view(np.uint64)
_PACKED = struct.Struct("<iii?")  # choices, dim, length of the note, whether zeros are left out


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


def to_blob(parts: Parts) -> bytes:
    """What rows do not say: the features, where arms have no rows, and then the policy's note, if it left one."""
    features = b"" if parts.rows[0] >= 0 else parts.features.tobytes()
    return features + (b"" if parts.note is None else parts.note.tobytes())


def from_blob(rows: list[int], actions: ActionSet, blob: bytes) -> Parts:
    """What was shown, from its rows and what `to_blob` wrote."""
    numbers = np.frombuffer(blob).copy()
    size = 0 if rows[0] >= 0 else len(rows) * actions.dim
    note = numbers[size:] if len(numbers) > size else None
    if size:
        return Parts(np.array(rows), numbers[:size].reshape(len(rows), actions.dim), note)
    if not isinstance(actions, FiniteActions):
        raise SavedStateError(f"rows {rows} were shown, of a set that has none. Restore the journal from a copy.")
    return Parts(np.array(rows), actions.arms_at(np.array([rows]))[0], note)


def pack_features(features: FloatArray) -> tuple[bool, bytes]:
    """Features in few bytes: of those that are zero in most places, only the others; and whether they are such."""
    if features.size < _WORTH_PACKING:
        return False, features.tobytes()
    numbers = np.ascontiguousarray(features).reshape(-1)
    used = numbers.view(np.uint64) != 0  # by bits, so that -0.0 comes back as it was
    sparse = 2 * np.count_nonzero(used) < used.size
    return sparse, np.packbits(used).tobytes() + numbers[used].tobytes() if sparse else numbers.tobytes()


def unpack_features(data: bytes, shape: tuple[int, ...], sparse: bool, place: int = 0) -> FloatArray:
    """The inverse of `pack_features`, from a place in the bytes on."""
    size = math.prod(shape)
    if not sparse:
        return np.frombuffer(data, np.float64, size, place).copy().reshape(shape)
    mask, numbers = np.frombuffer(data, np.uint8, -(-size // 8), place), np.zeros(size)
    numbers[np.unpackbits(mask, count=size).view(np.bool_)] = np.frombuffer(data, np.float64, -1, place + len(mask))
    return numbers.reshape(shape)


def pack_actions(actions: ActionSet) -> bytes | None:
    """A finite set of one lane in few bytes; None for another kind of set."""
    if type(actions) is BlockActions:
        return _SET.pack(_CONTEXT, actions.n_arms, actions.dim) + actions.context.tobytes()
    if type(actions) is not FiniteActions:
        return None
    features = actions.features[0]
    context = context_of_blocks(features)
    if context is not None:
        return _SET.pack(_BLOCKS, *features.shape) + context.tobytes()
    sparse, content = pack_features(features)
    return _SET.pack(_SPARSE if sparse else _DENSE, *features.shape) + content


def unpack_actions(data: bytes) -> FiniteActions:
    """The inverse of `pack_actions`."""
    form, n_arms, dim = _SET.unpack_from(data)
    if form in (_CONTEXT, _BLOCKS):
        blocks = BlockActions(np.frombuffer(data, np.float64, dim // n_arms, _SET.size), n_arms)
        return blocks if form == _CONTEXT else FiniteActions(blocks.features)
    return FiniteActions(unpack_features(data, (n_arms, dim), form == _SPARSE, _SET.size))


def context_of_blocks(features: FloatArray) -> FloatArray | None:
    """The context (n,) of features (n_arms, n_arms n) that have it in a block of its own for every arm; None for others."""
    n_arms, dim = features.shape
    if dim % n_arms or features.size < _WORTH_PACKING:
        return None
    bits = np.ascontiguousarray(features).view(np.uint64)  # by bits, so that -0.0 comes back as it was
    own = bits.reshape(n_arms, n_arms, -1)[np.arange(n_arms), np.arange(n_arms)]
    if (own != own[0]).any() or np.count_nonzero(bits) != n_arms * np.count_nonzero(own[0]) or (own[0] == _MINUS_ZERO).any():
        return None
    return np.asarray(own[0].view(np.float64))


def pack_parts(parts: Parts) -> bytes:
    """What was shown in few bytes."""
    sparse, content = pack_features(parts.features)
    note = b"" if parts.note is None else parts.note.tobytes()
    length = _NO_NOTE if parts.note is None else len(parts.note)
    return _PACKED.pack(*parts.features.shape, length, sparse) + parts.rows.astype(np.int64).tobytes() + note + content


def unpack_parts(data: bytes) -> Parts:
    """The inverse of `pack_parts`."""
    choices, dim, length, sparse = _PACKED.unpack_from(data)
    place = _PACKED.size
    rows = np.frombuffer(data, np.int64, choices, place).copy()
    place += rows.nbytes
    note = None if length == _NO_NOTE else np.frombuffer(data, np.float64, length, place).copy()
    place += 8 * max(length, 0)
    return Parts(rows, unpack_features(data, (choices, dim), sparse, place), note)


def stand_in(features: FloatArray, digest: bytes) -> FiniteActions:
    """A set whose arms are gone: the pair (2, dim) that was shown, under the fingerprint of the set that it came from."""
    actions = FiniteActions.__new__(FiniteActions)  # its arms were checked when they were offered, and every vote comes here
    actions.features, actions.columns = features[None], np.ascontiguousarray(features.T)[None]
    actions.lanes, (actions.n_arms, actions.dim) = 1, features.shape
    actions.__dict__["digest"] = digest
    return actions


def pair_alone(parts: Parts) -> Parts:
    """The same candidates as the two arms of a set of their own, and without a note."""
    return Parts(np.arange(len(parts.rows)), parts.features, None)


def save_pending(pending: Mapping[int, tuple[Parts, ActionSet | bytes]]) -> dict[str, Any]:
    """Questions by number, as a value that can be saved. A set that several share is saved once, or its digest alone."""
    parts = [one for one, _ in pending.values()]
    sets = {actions.digest: actions for _, actions in pending.values() if not isinstance(actions, bytes)}
    digests = [actions for _, actions in pending.values() if isinstance(actions, bytes)]
    places = {digest: place for place, digest in enumerate(sets)}
    return {
        "numbers": np.array(list(pending), dtype=np.int64),
        "pairs": np.array([one.rows for one in parts], dtype=np.int64),
        "features": np.array([one.features for one in parts]) if parts else np.empty((0, 2, 0)),
        "notes": np.concatenate([one.note for one in parts if one.note is not None] or [np.empty(0)]),
        "note_lengths": np.array([_NO_NOTE if one.note is None else len(one.note) for one in parts], dtype=np.int64),
        "sets": list(sets.values()),
        "set_of": np.array(
            [_NO_SET if isinstance(actions, bytes) else places[actions.digest] for _, actions in pending.values()],
            dtype=np.int64,
        ),
        "digests": np.frombuffer(b"".join(digests), dtype=np.uint8),
    }


def load_pending(saved: Mapping[str, Any]) -> dict[int, tuple[Parts, ActionSet | bytes]]:
    """The inverse of `save_pending`."""
    if len({len(saved[name]) for name in ("numbers", "pairs", "features", "note_lengths", "set_of")}) > 1:
        raise SavedStateError("the saved pending questions are not all there. Restore the state from a copy.")
    digests = saved["digests"].tobytes() if "digests" in saved else b""
    pending: dict[int, tuple[Parts, ActionSet | bytes]] = {}
    read = digest = 0
    for i, number in enumerate(saved["numbers"].tolist()):
        length = int(saved["note_lengths"][i])
        note = None if length == _NO_NOTE else saved["notes"][read : read + length].copy()
        read += max(length, 0)
        parts = Parts(saved["pairs"][i].copy(), saved["features"][i].copy(), note)
        place = int(saved["set_of"][i])
        if place == _NO_SET:
            pending[number] = (parts, digests[digest : digest + DIGEST_BYTES])
            digest += DIGEST_BYTES
        else:
            pending[number] = (parts, saved["sets"][place])
    return pending
