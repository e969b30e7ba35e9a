"""How many pages a crashed process left in SQLite's write-ahead log: the whole ones and the torn ones together.

SQLite recovers a log silently: it keeps every page up to the last commit whose checksums are right. Counting the pages
before it does so is what makes it possible to say that something was torn. The layout is SQLite's documented WAL format.
"""

from __future__ import annotations

import struct
from pathlib import Path

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = (0x377F0682, 0x377F0683)


def frames_in_log(database: Path) -> int:
    """Pages that belong to the current generation of the log, a torn last one included; 0 where there is no log."""
    log = database.with_name(database.name + "-wal")
    try:
        with log.open("rb") as file:
            start = file.read(_HEADER.size)
            if len(start) < _HEADER.size:
                return 0
            magic, _version, page_size, _sequence, *salts, _sum1, _sum2 = _HEADER.unpack(start)
            if magic not in _MAGIC:
                return 0
            frames = 0
            while len(head := file.read(_FRAME.size)) == _FRAME.size and list(_FRAME.unpack(head)[2:4]) == salts:
                frames += 1
                file.seek(page_size, 1)
            return frames
    except FileNotFoundError:
        return 0
