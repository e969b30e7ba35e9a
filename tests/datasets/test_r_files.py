"""Files of R are read without R: what was written comes back, and what is not a data set is refused."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.datasets.r_files import read_lazy_data, read_r_file
from tests.support.r_writer import Vector, factor, frame, named, rda_bytes, write_lazy_data

TABLE = frame(
    {
        "team": factor(["Köln", None, "Ars", "Köln"]),
        "goals": Vector([3, None, 0, -2], {}, "integer"),
        "rate": [0.5, None, -1e300, 2.0],
        "note": ["a", None, "", "grün"],
        "home": Vector([1, 0, None, 1], {}, "logical"),
    }
)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_data_frame_comes_back_with_its_factors_and_what_is_missing(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    (tmp_path / "x.rda").write_bytes(compress(rda_bytes({"other": [1.0], "table": TABLE})))
    found = read_r_file(tmp_path / "x.rda")
    assert list(found) == ["other", "table"]
    columns = found["table"].columns()
    assert columns["team"].tolist() == ["Köln", None, "Ars", "Köln"]
    np.testing.assert_array_equal(columns["goals"], [3, math.nan, 0, -2])
    np.testing.assert_array_equal(columns["rate"], [0.5, math.nan, -1e300, 2.0])
    assert columns["note"].tolist() == ["a", None, "", "grün"]
    np.testing.assert_array_equal(columns["home"], [1, 0, math.nan, 1])
    assert found["table"].row_names() == ["1", "2", "3", "4"]


def test_lists_keep_their_parts_and_rows_their_names(tmp_path: Path) -> None:
    (tmp_path / "x.rda").write_bytes(rda_bytes({"both": named({"a": frame({"v": [1.0, 2.0]}, ["p", "q"]), "b": ["z"]})}))
    parts = read_r_file(tmp_path / "x.rda")["both"].parts()
    assert parts["a"].row_names() == ["p", "q"]
    assert parts["b"].column().tolist() == ["z"]


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_an_installed_package_with_lazy_data_is_read_by_its_index(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    write_lazy_data(tmp_path, {"first": [1.0, 2.0], "table": TABLE, "last": ["x"]}, pack)
    assert read_lazy_data(tmp_path / "data", "table").columns()["team"].tolist() == ["Köln", None, "Ars", "Köln"]
    assert read_lazy_data(tmp_path / "data", "last").value.tolist() == ["x"]
    with pytest.raises(InvalidInputError, match=r"no data set nothing; it has first, table, last"):
        read_lazy_data(tmp_path / "data", "nothing")


def test_ranges_and_wrapped_vectors_of_newer_versions_are_read(tmp_path: Path) -> None:
    """Version 3 writes 1:5 as (5, 1, 1), and may wrap a vector. The bytes are spelt out here."""

    def integers(*numbers: int) -> bytes:
        return struct.pack(f">{len(numbers)}i", *numbers)

    def chars(text: str) -> bytes:
        return integers(9 | 64 << 12, len(text)) + text.encode()

    def info(kind: str) -> bytes:
        return integers(2) + integers(1) + chars(kind) + integers(2) + integers(1) + chars("base") + integers(254)

    head = b"RDX3\nX\n" + integers(3, 262144, 197888, 5) + b"UTF-8"
    tag, nothing = integers(2 | 0x400, 1), integers(254)
    package = integers(2, 1) + chars("base") + nothing
    again = integers(2, 255 | 3 << 8) + nothing  # the third symbol after range and compact_intseq
    body = tag + chars("range") + integers(238, 2, 1) + chars("compact_intseq") + package
    body += integers(14, 3) + struct.pack(">3d", 5, 1, 1) + nothing
    body += tag + chars("wrapped") + integers(238, 2, 1) + chars("wrap_real") + again
    body += integers(2) + integers(14, 1) + struct.pack(">d", 7.5) + integers(13, 2, 0, 0)  # a pair of vector and flags
    body += tag + chars("names") + integers(16, 1) + chars("x") + nothing + nothing
    (tmp_path / "x.rda").write_bytes(head + body)
    found = read_r_file(tmp_path / "x.rda")
    assert found["range"].value.tolist() == [1, 2, 3, 4, 5]
    assert found["wrapped"].value.tolist() == [7.5]
    assert found["wrapped"].text("names") == ["x"]


def test_what_is_no_data_set_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.rda"
    whole = rda_bytes({"table": TABLE})
    closure = (
        whole[:5] + whole[5:19] + struct.pack(">i", 2 | 0x400) + struct.pack(">iii", 1, 9, 1) + b"f" + struct.pack(">i", 3)
    )
    for data, reason in ((b"PK\x03\x04", "save"), (whole[:-40], "not whole"), (closure, "kind 3")):
        path.write_bytes(data)
        with pytest.raises(InvalidInputError, match=reason):
            read_r_file(path)
