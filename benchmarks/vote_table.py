"""Five policies on a table of 20,000 votes: how long the example of docs/environments.md takes, compiling left out.

    python benchmarks/vote_table.py

It runs the page's own code twice and prints the seconds of the second time.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import time
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "environments.md"
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_example() -> tuple[float, str]:
    """Seconds of the comparison, and what it prints."""
    section = PAGE.read_text(encoding="utf-8").split("## A table of votes", 1)[1]
    table, comparison = _PYTHON.findall(section)[:2]
    values: dict[str, Any] = {}
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(compile(table, str(PAGE), "exec", dont_inherit=True), values)
        started = time.perf_counter()
        exec(compile(comparison, str(PAGE), "exec", dont_inherit=True), values)
        seconds = time.perf_counter() - started
    return seconds, printed.getvalue()


def main() -> None:
    """Once to compile, once to measure."""
    run_example()
    seconds, text = run_example()
    print(text)
    print(f"{seconds:.1f} s")


if __name__ == "__main__":
    main()
