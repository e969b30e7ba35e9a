"""A private PostgreSQL server for tests: in a folder of its own, reachable over a Unix socket only."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def _binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    on_path = shutil.which("initdb")
    if on_path:
        found.insert(0, Path(on_path).resolve())
    if not found:
        pytest.skip("PostgreSQL's server programs (initdb, pg_ctl) are not installed")
    return found[0].parent


def _user() -> str | None:
    """PostgreSQL refuses to run as root: the user to become, or None to stay."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    pytest.skip("PostgreSQL does not run as root, and there is no other user to become")


@contextlib.contextmanager
def private_server() -> Iterator[str]:
    """The address of a server that lives as long as the block."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    binaries, user = _binaries(), _user()
    folder = Path(tempfile.mkdtemp(prefix="duelist-pg-"))
    try:
        if user:
            shutil.chown(folder, user)
        data = folder / "data"

        def run(*command: str) -> None:
            subprocess.run(command, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)

        run(str(binaries / "initdb"), "-D", str(data), "-U", "duelist", "-A", "trust", "-E", "UTF8", "--no-sync", "--no-locale")
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c shared_buffers=16MB -c fsync=off"
        run(str(binaries / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"host={folder} user=duelist dbname=postgres"
        finally:
            run(str(binaries / "pg_ctl"), "-D", str(data), "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
