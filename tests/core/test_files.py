"""A file is complete or absent, whatever fails while it is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from duelist.core.errors import SavedStateError
from duelist.core.files import read_whole, write_whole


def test_what_was_written_is_read_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "state"
    for data in (b"old", b"new"):
        write_whole(path, data)
        assert read_whole(path) == data
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


def test_a_disk_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    write_whole(path, b"old")

    def fail(_descriptor: int) -> None:
        raise OSError("the disk failed")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="the disk failed"):
        write_whole(path, b"new")
    assert read_whole(path) == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


def test_a_file_has_the_permissions_of_any_other_new_file(tmp_path: Path) -> None:
    plain, whole = tmp_path / "plain", tmp_path / "whole"
    plain.write_bytes(b"")
    write_whole(whole, b"")
    assert whole.stat().st_mode == plain.stat().st_mode


def test_a_missing_file_is_reported_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(SavedStateError, match="nothing-here"):
        read_whole(tmp_path / "nothing-here")
