"""Progress is reported at once, then rarely, and in full."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from duelist.experiments.progress import throttle


def test_the_first_amount_is_reported_at_once_and_later_ones_are_gathered() -> None:
    reports: list[int] = []
    tick = throttle(reports.append, total=30_000)
    for _ in range(1 + 3 * 100):
        tick(1)
    assert reports == [1, 100, 100, 100]


def test_amounts_from_several_threads_are_all_counted() -> None:
    reports: list[int] = []
    tick = throttle(reports.append, total=300)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tick, [1] * 1000))
    assert sum(reports) == 1000
