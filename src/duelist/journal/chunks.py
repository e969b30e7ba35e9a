"""A large snapshot in small chunks, so that no vote waits for a commit of all of it.

A chunk is a piece whose name begins with `PREFIX` and the position of its snapshot. The snapshot itself is then a list of
contents: how many chunks there are, and a checksum of each. Stores drop the chunks of snapshots that they no longer keep, a few
with each commit that saves pieces.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Generator, Mapping

from duelist.core.errors import SavedStateError

PREFIX = "chunk/"  # of the names of all chunks
DROPPED_AT_ONCE = 4  # with one commit: deleting takes time too
_CHUNK = 2**16  # bytes
_MARK = b"duelist-chunks "

DumpInSteps = Generator[Mapping[str, bytes] | None, None, tuple[bytes, Collection[str]]]


def first_chunk(position: int) -> str:
    """The name of the first chunk of a snapshot; in the order of letters it is behind those of all earlier snapshots."""
    return _name(position, 0)


def _name(position: int, i: int) -> str:
    return f"{PREFIX}{position:020}/{i:06}"


def save_in_chunks(steps: DumpInSteps, position: int) -> DumpInSteps:
    """The steps that save a snapshot, with one more per chunk if it is large."""
    data, pieces = yield from steps
    if len(data) <= _CHUNK:
        return data, pieces
    checksums = []
    for i in range(-(-len(data) // _CHUNK)):
        chunk = data[i * _CHUNK : (i + 1) * _CHUNK]
        checksums.append(zlib.crc32(chunk))
        yield {_name(position, i): chunk}
    return _MARK + json.dumps({"size": len(data), "checksums": checksums}).encode(), pieces


def snapshot_size(data: bytes) -> int:
    """Bytes of a snapshot, those of its chunks if it has any."""
    return int(json.loads(data[len(_MARK) :])["size"]) if data.startswith(_MARK) else len(data)


def join_chunks(data: bytes, position: int, piece: Callable[[str], bytes | None]) -> bytes:
    """The snapshot of that position, whole; `piece` gives a piece by its name."""
    if not data.startswith(_MARK):
        return data
    chunks = []
    for i, checksum in enumerate(json.loads(data[len(_MARK) :])["checksums"]):
        chunk = piece(_name(position, i))
        if chunk is None or zlib.crc32(chunk) != checksum:
            raise SavedStateError(f"chunk {i} of the snapshot at event {position} is not there, or not what was written.")
        chunks.append(chunk)
    return b"".join(chunks)
