"""Progress is reported at once, then rarely, and in full."""

from __future__ import annotations

import io
import re
from concurrent.futures import ThreadPoolExecutor

from rich.console import Console

from duelist.experiments.progress import LiveSweepDisplay, throttle


def test_the_first_amount_is_reported_at_once_and_later_ones_are_gathered() -> None:
    reports: list[int] = []
    tick = throttle(reports.append, total=30_000)
    for _ in range(1 + 3 * 100):
        tick(1)
    assert reports == [1, 100, 100, 100]


def test_a_row_says_what_has_passed_what_is_left_and_what_is_still_to_come() -> None:
    text = io.StringIO()
    with LiveSweepDisplay("small", Console(file=text, force_terminal=True, width=200)) as display:
        tick = display.add("a", "MaxInP", 100)
        display.expect(2)
        tick(50)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.getvalue())
    assert re.search(r"small: 0 of 1 blocks, then 2 tests .* \d:\d\d:\d\d elapsed, [-\d:]+ left", shown)


def test_amounts_from_several_threads_are_all_counted() -> None:
    reports: list[int] = []
    tick = throttle(reports.append, total=300)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tick, [1] * 1000))
    assert sum(reports) == 1000
