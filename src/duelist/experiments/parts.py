"""Finished blocks on disk: one Parquet file each, written whole or not at all, and checked before it is believed.

A file's name holds the key of its block and a checksum of its bytes, so a torn, flipped or renamed file is told from a good
one by reading it. A file is written under another name, forced to disk and then renamed: after a kill at any moment it is
either there and whole, or not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from duelist.core.errors import SavedStateError
from duelist.experiments.blocks import Block, kept_rounds, play
from duelist.experiments.fingerprint import code_digest

_BLOCK, _CODE, _SECONDS = b"duelist.block", b"duelist.code", b"duelist.seconds"


def compute_part(text: str, tick: Callable[[int], None]) -> bytes:
    """Play the block that `text` describes and return its part file."""
    started = time.thread_time()  # of this thread alone: what the block costs, however busy the machine is
    block = Block(json.loads(text))
    run = play(block, tick)
    rounds = kept_rounds(block.data["rounds"], block.data["thin"])
    columns: dict[str, Any] = {
        "trial": pa.array(run.trials, pa.int64()),
        "final_regret": run.regret[:, -1],
        "final_weak_regret": run.weak_regret[:, -1],
        "final_yue_regret": run.yue_regret[:, -1],
        "regret": _lists(run.regret[:, rounds - 1]),
        **{f"info_{name}": np.asarray(values, dtype=np.float64) for name, values in sorted(run.info.items())},
    }
    seconds = f"{time.thread_time() - started:.3f}"
    metadata = {_BLOCK: text.encode(), _CODE: code_digest(block.data["policy"]).encode(), _SECONDS: seconds.encode()}
    return parquet_bytes(pa.table(columns).replace_schema_metadata(metadata))


def parquet_bytes(table: pa.Table) -> bytes:
    """The table as Parquet under fixed settings: the same table gives the same bytes."""
    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        version="2.6",
        data_page_version="1.0",
        compression="zstd",
        compression_level=3,
        use_dictionary=True,
        write_statistics=True,
        row_group_size=1 << 16,
    )
    return sink.getvalue()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, also after a kill or a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"unfinished-{path.name}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    # The rename itself is durable only once its directory is on disk; not every platform lets a directory be opened.
    with contextlib.suppress(OSError):
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


class PartStore:
    """The part files of a directory.

    Args:
        directory: where they lie; made when the first part is kept.

    Attributes:
        problems: what was found wrong with files, in plain words. A bad part is removed, so that it is computed again.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.problems: list[str] = []
        for leftover in sorted(directory.glob("unfinished-*")):
            self.problems.append(f"{leftover.name}: a write was interrupted; removed, its block will be computed again.")
            leftover.unlink()

    def find(self, block: Block) -> pa.Table | None:
        """The finished part of a block, or None. Every byte is checked."""
        for path in sorted(self.directory.glob(f"{_digest(block.text.encode())}-*.parquet")):
            try:
                return _checked(path, path.read_bytes(), block)
            except SavedStateError as error:
                self.problems.append(f"{path.name}: {error} Removed, its block will be computed again: {block.title}.")
                path.unlink()
        return None

    def keep(self, block: Block, content: bytes) -> pa.Table:
        """Store a computed part and return its table."""
        path = self.directory / f"{_digest(block.text.encode())}-{_digest(content)}.parquet"
        table = _checked(path, content, block)
        write_whole(path, content)
        return table


def seconds_of(part: pa.Table) -> float:
    """Processor time that the block took, when it was computed."""
    return float(part.schema.metadata[_SECONDS])


def _checked(path: Path, content: bytes, block: Block) -> pa.Table:
    if path.stem.rpartition("-")[2] != _digest(content):
        raise SavedStateError(f"its {len(content)} bytes do not have the checksum in its name: torn or changed.")
    try:
        table = pq.read_table(io.BytesIO(content))
        metadata = table.schema.metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise SavedStateError(f"it is not a Parquet file ({error}).") from error
    if metadata.get(_BLOCK, b"").decode() != block.text or table.column("trial").to_pylist() != block.data["trials"]:
        raise SavedStateError("it holds another block.")
    if metadata.get(_CODE, b"").decode() != code_digest(block.data["policy"]):
        raise SavedStateError("it was computed by other code or library versions.")
    return table


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=10).hexdigest()


def _lists(rows: np.ndarray[Any, np.dtype[Any]]) -> pa.ListArray:
    """A (n, length) array as n lists."""
    n, length = rows.shape
    offsets = np.arange(n + 1, dtype=np.int32) * length
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ascontiguousarray(rows).ravel()))
