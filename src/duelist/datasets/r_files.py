"""Data of R packages, read where they are installed, without R.

R saves objects in its serialisation format (R Internals, section 1.8): a tree of vectors with attributes. An .rda file is that,
compressed; an installed package with lazy data has `Rdata.rdx`, an index, and `Rdata.rdb`, one compressed tree per object. What
data sets are made of is read here: vectors, text, factors, data frames and lists. Functions and environments are refused.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.core.errors import InvalidInputError

# Kinds of nodes.
_SYMBOL, _PAIRS, _CHARS, _LOGICAL, _INTEGER, _REAL, _TEXT, _LIST = 1, 2, 9, 10, 13, 14, 16, 19
_COMPACT, _GLOBAL, _NOTHING, _REFERENCE = 238, 253, 254, 255
_MISSING = -(2**31)  # NA of logicals and integers
_OPENERS = {b"\x1f\x8b": gzip.decompress, b"BZ": bz2.decompress, b"\xfd7": lzma.decompress}


@dataclass(frozen=True, eq=False)
class RObject:
    """An object of R.

    Attributes:
        value: an array, a list of objects, or None for NULL. Missing numbers are NaN, missing text is None.
        attributes: such as "names", "levels", "class" and "dim".
    """

    value: Any
    attributes: dict[str, RObject] = field(default_factory=dict)

    def text(self, attribute: str) -> list[str]:
        """An attribute that is text; empty where there is none."""
        found = self.attributes.get(attribute)
        return [] if found is None or found.value is None else list(found.value)

    def parts(self) -> dict[str, RObject]:
        """The parts of a named list, or the columns of a data frame."""
        return dict(zip(self.text("names"), self.value, strict=True))

    def column(self) -> npt.NDArray[Any]:
        """Values of a vector; the levels of a factor as text."""
        levels = self.text("levels")
        if not levels:
            return np.asarray(self.value)
        places = np.asarray(self.value)
        return np.array([None if np.isnan(place) else levels[int(place) - 1] for place in places], dtype=object)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns of a data frame, without those that are matrices."""
        return {name: part.column() for name, part in self.parts().items() if "dim" not in part.attributes}

    def row_names(self) -> list[str]:
        """The names of the rows of a data frame."""
        names = self.attributes["row.names"].value
        if len(names) == 2 and np.asarray(names).dtype.kind == "f" and np.isnan(names[0]):  # how R writes 1, ..., n
            return [str(i + 1) for i in range(abs(int(names[1])))]
        return [str(name) for name in names]


def read_r_file(path: Path) -> dict[str, RObject]:
    """The objects of an .rda or .RData file by name."""
    data = path.read_bytes()
    data = _OPENERS.get(data[:2], bytes)(data)
    if data[:5] not in (b"RDX2\n", b"RDX3\n"):
        raise InvalidInputError(
            f"{path} must be a file that R's save() wrote, in its binary form; it begins with {data[:5]!r}."
        )
    return dict(_Reader(data[5:]).read_pairs())


def read_lazy_data(folder: Path, name: str) -> RObject:
    """One object of an installed package, from `Rdata.rdx` and `Rdata.rdb` in its folder `data`."""
    # R writes the index with gzip, older versions with zlib: 32 more than the largest window tells them apart.
    packed = (folder / "Rdata.rdx").read_bytes()
    index = _Reader(zlib.decompress(packed, 32 + zlib.MAX_WBITS)).read().parts()["variables"].parts()
    if name not in index:
        raise InvalidInputError(f"{folder} has no data set {name}; it has {', '.join(index)}.")
    start, length = (int(number) for number in index[name].value)
    with (folder / "Rdata.rdb").open("rb") as file:
        file.seek(start)
        record = file.read(length)
    # Four bytes of length; then a letter where it is not zlib.
    openers = {b"2": bz2.decompress, b"Z": lzma.decompress}
    letter = record[4:5]
    return _Reader(openers[letter](record[5:]) if letter in openers else zlib.decompress(record[4:])).read()


class _Reader:
    """Reads nodes one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._symbols: list[str] = []
        if self._take(2) != b"X\n":
            raise InvalidInputError("the data must be in R's binary form, XDR. Save them again with R's save().")
        version = self._integer()
        self._at += 8  # versions of R
        if version == 3:
            self._take(self._integer())  # the encoding of text; flags say the same

    def read(self) -> RObject:
        """The next node."""
        return self._node(self._integer())

    def _node(self, flags: int) -> RObject:
        kind, has_attributes = flags & 0xFF, bool(flags & 0x200)
        if kind in (_NOTHING, _GLOBAL):
            return RObject(None)
        if kind == _PAIRS:
            return RObject([value for _, value in self._pairs(flags)])
        if kind in (_SYMBOL, _REFERENCE):
            return RObject(self._symbol(flags))
        if kind == _COMPACT:
            return self._compact()
        if kind == _CHARS:
            return RObject(self._chars(flags))
        value = self._vector(kind)
        return RObject(value, dict(self.read_pairs()) if has_attributes else {})

    def read_pairs(self) -> Iterator[tuple[str, RObject]]:
        """The tagged values of a pair list, which is how attributes and saved objects are written."""
        yield from self._pairs(self._integer())

    def _pairs(self, flags: int) -> Iterator[tuple[str, RObject]]:
        while flags & 0xFF == _PAIRS:
            if flags & 0x200:
                self.read()  # its own attributes
            name = self._symbol(self._integer()) if flags & 0x400 else ""
            yield name, self.read()
            flags = self._integer()
        if flags & 0xFF != _NOTHING:  # a pair whose second half is no list
            yield "", self._node(flags)

    def _symbol(self, flags: int) -> str:
        if flags & 0xFF == _REFERENCE:
            return self._symbols[(flags >> 8 or self._integer()) - 1]
        self._symbols.append(self._chars(self._integer()) or "")
        return self._symbols[-1]

    def _chars(self, flags: int) -> str | None:
        length = self._integer()
        if length == -1:
            return None
        return self._take(length).decode("latin-1" if flags >> 12 & 4 else "utf-8", errors="replace")

    def _vector(self, kind: int) -> Any:
        if kind not in (_LOGICAL, _INTEGER, _REAL, _TEXT, _LIST):
            raise InvalidInputError(f"an object of R has a node of kind {kind}, which no data set needs. Export it as CSV.")
        length = self._integer()
        if kind == _LIST:
            return [self.read() for _ in range(length)]
        if kind == _TEXT:
            return np.array([self._chars(self._integer()) for _ in range(length)], dtype=object)
        if kind == _REAL:
            return np.frombuffer(self._take(8 * length), dtype=">f8").astype(np.float64)
        whole = np.frombuffer(self._take(4 * length), dtype=">i4").astype(np.float64)
        return np.where(whole == _MISSING, np.nan, whole)

    def _compact(self) -> RObject:
        """A vector in short form: a range of numbers, or another vector wrapped."""
        kind, state, attributes = self.read().value[0].value, self.read(), dict(self.read_pairs())
        if kind in ("compact_intseq", "compact_realseq"):
            length, first, step = state.value
            values: Any = first + step * np.arange(int(length))
        elif kind.startswith("wrap_"):
            values = state.value[0].value
        else:
            raise InvalidInputError(f"a vector of R is in the short form {kind!r}, which is not read here. Export it as CSV.")
        return RObject(values, attributes)

    def _integer(self) -> int:
        return int(struct.unpack(">i", self._take(4))[0])

    def _take(self, length: int) -> bytes:
        taken = self._data[self._at : self._at + length]
        if len(taken) < length:
            raise InvalidInputError("the data end before they should: the file is not whole. Copy it again.")
        self._at += length
        return taken
