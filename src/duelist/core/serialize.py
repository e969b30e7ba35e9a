"""Values to plain arrays and back, exactly and without pickle: what files and snapshots of a state are made of.

A state is a tree of NamedTuples, tuples, lists and dicts whose leaves are arrays, numbers, strings and None, and of objects
with `to_arrays` and `from_arrays` (a history, an action set). It becomes a flat dict of named arrays; the entry `structure`
holds the shape of the tree as JSON text. Classes are named, never stored (see `duelist.core.stored_names`): reading looks the
name up and builds NamedTuples and `from_arrays` objects only, so a file cannot run code.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Collection, Generator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from duelist.core.errors import DuelistError, InvalidInputError, SavedStateError
from duelist.core.stored_names import class_of, name_of, upgrade_fields

Arrays = dict[str, npt.NDArray[Any]]
Returned = TypeVar("Returned")
STRUCTURE = "structure"
_FORMAT = 2  # 1, of version 0.1.0, named classes by their modules
_READABLE = (1, 2)
_BLOCK = 256  # rows of a piece
_STEP = 2**16  # bytes of arrays that are packed in one step
_SAMPLE = 1024  # numbers that are looked at to tell whether an array is worth compressing
_BROKEN = (AttributeError, EOFError, ImportError, IndexError, KeyError, OSError, TypeError, ValueError)


def to_arrays(value: Any, pieces: Pieces | None = None) -> Arrays:
    """The value as a flat dict of arrays, named by their place in it; `pieces` as in `to_bytes`.

    Example:
        >>> sorted(to_arrays({"theta": np.zeros(3), "round": 7}))
        ['structure', 'value/theta']
    """
    arrays: Arrays = {}
    structure = {"duelist": _FORMAT, "value": _to_node("value", value, arrays, pieces)}
    arrays[STRUCTURE] = np.frombuffer(json.dumps(structure).encode(), dtype=np.uint8)
    return arrays


def from_arrays(arrays: Arrays, piece: Callable[[str], bytes | None] | None = None) -> Any:
    """The value that `to_arrays` was given; `piece` as in `from_bytes`.

    Example:
        >>> from_arrays(to_arrays({"theta": np.zeros(3), "round": 7}))["round"]
        7
    """
    if STRUCTURE not in arrays:
        raise SavedStateError(f"expected arrays with an entry {STRUCTURE!r}; got {sorted(arrays)}. duelist did not write this.")
    try:
        structure = json.loads(arrays[STRUCTURE].tobytes())
        written = structure["duelist"]
    except _BROKEN as error:
        raise SavedStateError(f"the entry {STRUCTURE!r} cannot be read ({error}). duelist did not write this.") from error
    if written not in _READABLE:
        raise SavedStateError(
            f"this duelist reads formats 1 to {_FORMAT}; got format {written}. Read it with the version that wrote it."
        )
    try:
        return _from_node("value", structure["value"], arrays, piece)
    except SavedStateError:
        raise
    except (*_BROKEN, DuelistError) as error:
        raise SavedStateError(
            f"the saved value does not fit this version of duelist ({type(error).__name__}: {error}). "
            f"Read it with the version that wrote it."
        ) from error


class Pieces:
    """Blocks of arrays that only grow, kept apart from the rest of a state, so that each is written once.

    Args:
        prefix: begins the name of every piece. States whose blocks of one name may differ need different ones.
        saved: names of the pieces that are there already.

    Attributes:
        new: the rows of the pieces that are not, by name; `pack_piece_in_steps` makes bytes of them.
    """

    def __init__(self, prefix: str, saved: Collection[str]) -> None:
        self._prefix, self._saved = prefix, saved
        self.new: dict[str, npt.NDArray[Any]] = {}

    def take(self, name: str, array: npt.NDArray[Any]) -> tuple[dict[str, Any], npt.NDArray[Any]]:
        """How the array's full blocks are called and how many there are, and the rows that are left over."""
        full = len(array) // _BLOCK
        for block in reversed(range(full)):
            piece = f"{self._prefix}{name}/{block}"
            if piece in self._saved:  # and so are all before it
                break
            self.new[piece] = array[block * _BLOCK : (block + 1) * _BLOCK]
        return {"blocks": full, "pieces": f"{self._prefix}{name}/"}, array[full * _BLOCK :]


def to_bytes(value: Any, pieces: Pieces | None = None) -> bytes:
    """The value as the bytes of a NumPy .npz archive; equal values give equal bytes.

    Args:
        value: what to save.
        pieces: takes the blocks of arrays that a class lists in its `grows`; None has them all in the archive.
    """
    return run_through(pack_in_steps(to_arrays(value, pieces)))


def pack_in_steps(arrays: Arrays) -> Generator[None, None, bytes]:
    """The archive of `to_bytes`, in steps of half a millisecond or so. The arrays must not change meanwhile."""
    buffer, in_this_step = io.BytesIO(), 0
    with zipfile.ZipFile(buffer, "w", compresslevel=1) as archive:
        for name, array in arrays.items():
            entry = io.BytesIO()
            np.lib.format.write_array(entry, array, allow_pickle=False)
            archive.compression = zipfile.ZIP_DEFLATED if _has_few_values(array) else zipfile.ZIP_STORED
            content = entry.getbuffer()
            with archive.open(f"{name}.npy", "w", force_zip64=len(content) >= 2**31) as file:
                for begin in range(0, len(content), _STEP):
                    file.write(content[begin : begin + _STEP])
                    in_this_step += min(_STEP, len(content) - begin)
                    if in_this_step >= _STEP:
                        in_this_step = 0
                        yield
    return buffer.getvalue()


def pack_piece_in_steps(rows: npt.NDArray[Any]) -> Generator[None, None, bytes]:
    """The bytes of a piece, in steps of half a millisecond or so."""
    content = packed = rows.tobytes()
    if _has_few_values(rows):
        compress, parts = zlib.compressobj(1), []
        for begin in range(0, len(content), _STEP):
            if begin:
                yield
            parts.append(compress.compress(content[begin : begin + _STEP]))
        packed = b"".join([*parts, compress.flush()])
    packed = packed if len(packed) < len(content) else content  # what is as long as the rows is the rows
    return zlib.crc32(packed).to_bytes(4, "little") + packed


def run_through(steps: Generator[Any, None, Returned]) -> Returned:
    """What the generator returns, with all its steps made at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Returned = end.value
            return result


def _has_few_values(array: npt.NDArray[Any]) -> bool:
    """Whether an array is worth compressing: counts, and blocks of features that are zero in most places."""
    some = array.flat[:: max(1, array.size // _SAMPLE)][:_SAMPLE]
    return array.nbytes >= _SAMPLE and 4 * len(np.unique(some)) <= len(some)


def from_bytes(data: bytes, piece: Callable[[str], bytes | None] | None = None) -> Any:
    """The value that `to_bytes` wrote. Every part carries a checksum, so torn or changed bytes are refused.

    Args:
        data: the archive.
        piece: gives the pieces that were kept apart, by name.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            # A plain .npy array loads too, but as an array and not as an archive.
            arrays = {name: archive[name] for name in archive.files}
    except (*_BROKEN, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise SavedStateError(
            f"expected a whole saved state; got {len(data)} byte(s) that are torn, changed or something else. "
            f"Restore it from a copy."
        ) from error
    return from_arrays(arrays, piece)


def _to_node(name: str, value: Any, arrays: Arrays, pieces: Pieces | None = None) -> Any:
    if isinstance(value, np.ndarray | np.generic):  # before numbers: np.float64 is also a float
        if value.dtype.hasobject:
            raise InvalidInputError(f"{name} must hold numbers or text to be saved; got an array of Python objects.")
        arrays[name] = np.asarray(value)
        return {"array": "scalar" if isinstance(value, np.generic) else "array"}
    if value is None or isinstance(value, bool | int | float | str):
        return {"plain": value}
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or "/" in key:
                raise InvalidInputError(f"{name} must have text without '/' as keys to be saved; got the key {key!r}.")
        return {"dict": {key: _to_node(f"{name}/{key}", part, arrays, pieces) for key, part in value.items()}}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = {field: _to_node(f"{name}/{field}", getattr(value, field), arrays, pieces) for field in value._fields}
        return {"fields": parts, "class": str(name_of(type(value)))}
    if isinstance(value, tuple | list):
        parts_in_order = [_to_node(f"{name}/{i}", part, arrays, pieces) for i, part in enumerate(value)]
        return {"items": parts_in_order, "class": type(value).__name__}
    if hasattr(value, "to_arrays") and hasattr(type(value), "from_arrays"):
        grows = getattr(type(value), "grows", ()) if pieces else ()
        parts = {
            key: _grown(f"{name}/{key}", part, arrays, pieces)
            if pieces and key in grows
            else _to_node(f"{name}/{key}", part, arrays, pieces)
            for key, part in value.to_arrays().items()
        }
        return {"object": parts, "class": str(name_of(type(value)))}
    raise InvalidInputError(
        f"{name} must be made of arrays, numbers, text, tuples, dicts, or objects with to_arrays and from_arrays to be "
        f"saved; got {type(value).__name__}. Give its class those two methods."
    )


def _grown(name: str, array: npt.NDArray[Any], arrays: Arrays, pieces: Pieces) -> Any:
    node, arrays[name] = pieces.take(name, array)
    return node


def _from_node(name: str, node: Any, arrays: Arrays, piece: Callable[[str], bytes | None] | None) -> Any:
    if "plain" in node:
        return node["plain"]
    if "array" in node:
        array = arrays[name]
        return array[()] if node["array"] == "scalar" else array
    if "blocks" in node:
        left = arrays[name]
        shape = (_BLOCK, *left.shape[1:])
        size = math.prod(shape) * left.dtype.itemsize
        blocks = [_checked(f"{node['pieces']}{block}", piece, size) for block in range(node["blocks"])]
        return np.concatenate([*(np.frombuffer(block, dtype=left.dtype).reshape(shape) for block in blocks), left])
    if "dict" in node:
        return {key: _from_node(f"{name}/{key}", part, arrays, piece) for key, part in node["dict"].items()}
    if "items" in node:
        parts = [_from_node(f"{name}/{i}", part, arrays, piece) for i, part in enumerate(node["items"])]
        return parts if node["class"] == "list" else tuple(parts)
    kind = "fields" if "fields" in node else "object"
    values = {key: _from_node(f"{name}/{key}", part, arrays, piece) for key, part in node[kind].items()}
    found, version = class_of(node["class"])
    values = upgrade_fields(found, version, values)
    if kind == "fields" and issubclass(found, tuple) and hasattr(found, "_fields"):
        return found(**values)
    if kind == "object" and hasattr(found, "from_arrays"):
        return found.from_arrays(values)
    raise SavedStateError(f"{node['class']} at {name} is not a class that a saved state may hold.")


def _checked(name: str, piece: Callable[[str], bytes | None] | None, size: int) -> bytes:
    found = None if piece is None else piece(name)
    if found is None or zlib.crc32(found[4:]).to_bytes(4, "little") != found[:4]:
        raise SavedStateError(f"the piece {name!r} of a saved state is not there, or not what was written.")
    return found[4:] if len(found) == size + 4 else zlib.decompress(found[4:])
