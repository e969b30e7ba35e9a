"""Finished blocks on disk: one Parquet file per block, complete or absent, and checked when it is read.

A file's name holds the key of its block and a checksum of its bytes, so reading a torn, changed or renamed file finds it out.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from duelist.core.errors import InvalidInputError, SavedStateError
from duelist.core.files import UNFINISHED, write_whole
from duelist.experiments.records import INFO, final_column, kept_rounds
from duelist.experiments.sweep.blocks import Block, play
from duelist.experiments.sweep.code_digest import code_digest

_EVERYWHERE = ("average", "weak", "yue")  # kinds of regret that have a column whether or not they are known
_BLOCK, _CODE, _SECONDS = b"duelist.block", b"duelist.code", b"duelist.seconds"


def compute_block(text: str, tick: Callable[[int], None]) -> bytes:
    """Play the block that `text` describes and return its file."""
    started = time.thread_time()  # of this thread: what the block costs, however busy the machine is
    block = Block(json.loads(text))
    run = play(block, tick)
    rounds = kept_rounds(block.data["rounds"], block.data["thin"])
    columns: dict[str, Any] = {
        "trial": pa.array(run.trials, pa.int64()),
        "final_regret": run.regret[:, -1],
        "final_weak_regret": run.weak_regret[:, -1],
        "final_yue_regret": run.yue_regret[:, -1],
        **{final_column(kind): curve[:, -1] for kind, curve in sorted(run.regrets.items()) if kind not in _EVERYWHERE},
        "regret": _lists(run.regret[:, rounds - 1]),
        "weak_regret": _lists(run.weak_regret[:, rounds - 1]),
        "yue_regret": _lists(run.yue_regret[:, rounds - 1]),
        **{f"{INFO}{name}": np.asarray(values, dtype=np.float64) for name, values in sorted(run.info.items())},
    }
    if run.simple_regret is not None:
        columns["simple_regret"] = _lists(run.simple_regret)
    seconds = f"{time.thread_time() - started:.3f}"
    metadata = {_BLOCK: text.encode(), _CODE: block_digest(block).encode(), _SECONDS: seconds.encode()}
    return parquet_bytes(pa.table(columns).replace_schema_metadata(metadata))


def block_digest(block: Block) -> str:
    """The digest of the code behind a block. Of a sampler with settings of its own, every sampler counts."""
    sampler = block.data["parameters"].get("sampler", "")
    return code_digest(block.data["policy"], sampler if isinstance(sampler, str) else "with settings")


def parquet_bytes(table: pa.Table) -> bytes:
    """Write a table as Parquet under fixed settings: the same table gives the same bytes."""
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


class BlockStore:
    """The finished blocks in a directory.

    Args:
        directory: of the files; made when the first block is saved.

    Attributes:
        problems: one sentence per damaged file that was found. Such a file is removed, and its block computed again.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.problems: list[str] = []
        # Version 0.1 named unfinished files "unfinished-...".
        for leftover in sorted([*directory.glob(f".*{UNFINISHED}"), *directory.glob("unfinished-*")]):
            self.problems.append(f"{leftover.name}: a write was interrupted; removed, its block will be computed again.")
            leftover.unlink()

    def find(self, block: Block) -> pa.Table | None:
        """Return the table of a finished block, or None. Every byte is checked."""
        for path in sorted(self.directory.glob(f"{_digest(block.text.encode())}-*.parquet")):
            try:
                return _read_checked(path, path.read_bytes(), block)
            except SavedStateError as error:
                self.problems.append(f"{path.name}: {error} Removed, its block will be computed again: {block.title}.")
                path.unlink()
        return None

    def save(self, block: Block, content: bytes) -> pa.Table:
        """Store the file of a computed block and return its table."""
        path = self.directory / f"{_digest(block.text.encode())}-{_digest(content)}.parquet"
        table = _read_checked(path, content, block)
        self.directory.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
        return table


def processor_seconds(part: pa.Table) -> float:
    """Processor time that computing the block took."""
    return float(part.schema.metadata[_SECONDS])


def _read_checked(path: Path, content: bytes, block: Block) -> pa.Table:
    if path.stem.rpartition("-")[2] != _digest(content):
        raise SavedStateError(f"its {len(content)} bytes do not have the checksum in its name: torn or changed.")
    try:
        table = pq.read_table(io.BytesIO(content))
        metadata = table.schema.metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise SavedStateError(f"it is not a Parquet file ({error}).") from error
    if metadata.get(_BLOCK, b"").decode() != block.text or table.column("trial").to_pylist() != block.data["trials"]:
        raise SavedStateError("it holds another block.")
    if metadata.get(_CODE, b"").decode() != block_digest(block):
        raise SavedStateError("it was computed by other code or library versions.")
    return table


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=10).hexdigest()


def _lists(rows: np.ndarray[Any, np.dtype[Any]]) -> pa.ListArray:
    """Convert a (n, length) array to n lists."""
    n, length = rows.shape
    offsets = np.arange(n + 1, dtype=np.int32) * length
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.ascontiguousarray(rows).ravel()))


@contextmanager
def directory_lock(directory: Path) -> Iterator[None]:
    """Lock the directory for this run; an error if another run has locked it."""
    try:
        import fcntl
    except ImportError:  # no advisory locks on this platform: two runs at once would only compute the same twice
        yield
        return
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InvalidInputError(
                f"another run is writing to {directory}. Wait for it to end, or give this one another directory with --out."
            ) from error
        yield
