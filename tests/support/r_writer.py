"""Writes small files in the format of R's save() and of installed packages, from R Internals 1.8, for tests of the reader."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

_NOTHING = struct.pack(">i", 254)


class Vector(NamedTuple):
    """An R object: Python numbers, text, None for NA; a list of objects with kind "list"."""

    values: list[Any]
    attributes: dict[str, Any] = {}  # noqa: RUF012 - never changed
    kind: str = ""


def factor(values: list[str | None]) -> Vector:
    levels = sorted({value for value in values if value is not None})
    places = [None if value is None else levels.index(value) + 1 for value in values]
    return Vector(places, {"levels": levels, "class": ["factor"]}, "integer")


def named(parts: dict[str, Any], **attributes: Any) -> Vector:
    return Vector(list(parts.values()), {"names": list(parts), **attributes}, "list")


def frame(columns: dict[str, Any], rows: list[str] | None = None) -> Vector:
    first = next(iter(columns.values()))
    n = len(first.values if isinstance(first, Vector) else first)
    compact = Vector([None, -n], {}, "integer")
    return named(columns, **{"class": ["data.frame"], "row.names": compact if rows is None else rows})


class _Writer:
    def __init__(self) -> None:
        self.out = bytearray(b"X\n" + struct.pack(">iii", 2, 262144, 131840))
        self.symbols: list[str] = []

    def write(self, value: Any) -> None:
        vector = value if isinstance(value, Vector) else Vector(list(value))
        kind = vector.kind or ("text" if all(isinstance(v, str | None) for v in vector.values) else "real")
        code = {"logical": 10, "integer": 13, "real": 14, "text": 16, "list": 19}[kind]
        self.integer(code | (0x200 if vector.attributes else 0))
        self.integer(len(vector.values))
        for each in vector.values:
            if kind == "list":
                self.write(each)
            elif kind == "text":
                self.text(each)
            elif kind == "real":
                self.out += struct.pack(">d", math.nan if each is None else each)
            else:
                self.integer(-(2**31) if each is None else each)
        if vector.attributes:
            self.pairs(vector.attributes)

    def pairs(self, pairs: dict[str, Any]) -> None:
        for name, value in pairs.items():
            self.integer(2 | 0x400)
            self.symbol(name)
            self.write(value)
        self.out += _NOTHING

    def symbol(self, name: str) -> None:
        if name in self.symbols:
            self.integer(255 | (self.symbols.index(name) + 1) << 8)
        else:
            self.symbols.append(name)
            self.integer(1)
            self.text(name)

    def text(self, value: str | None) -> None:
        if value is None:
            self.integer(9)
            self.integer(-1)
            return
        latin = any(ord(letter) > 127 for letter in value)
        data = value.encode("latin-1" if latin else "utf-8")
        self.integer(9 | (4 if latin else 64) << 12)
        self.integer(len(data))
        self.out += data

    def integer(self, number: int) -> None:
        self.out += struct.pack(">i", number)


def rda_bytes(objects: dict[str, Any]) -> bytes:
    """An .rda file that is not compressed."""
    writer = _Writer()
    writer.pairs(objects)
    return b"RDX2\n" + bytes(writer.out)


def write_lazy_data(folder: Path, objects: dict[str, Any]) -> None:
    """`data/Rdata.rdx` and `data/Rdata.rdb` of an installed package."""
    (folder / "data").mkdir(parents=True)
    database, places = b"", {}
    for name, value in objects.items():
        writer = _Writer()
        writer.write(value)
        record = struct.pack(">i", len(writer.out)) + zlib.compress(bytes(writer.out))
        places[name] = Vector([len(database), len(record)], {}, "integer")
        database += record
    index = _Writer()
    index.write(named({"variables": named(places), "references": Vector([], {}, "list")}))
    (folder / "data" / "Rdata.rdb").write_bytes(database)
    (folder / "data" / "Rdata.rdx").write_bytes(gzip.compress(bytes(index.out)))
