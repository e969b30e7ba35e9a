"""`duelist bench`: microseconds a round, beside what people would use instead."""

from __future__ import annotations

import math

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from duelist.cli.rivals import CONTESTANTS
from duelist.cli.speed import CLOCKS, Speed, measure
from duelist.core.checks import whole_number

YARDSTICK = "Vowpal Wabbit squarecb"


@click.command(context_settings={"show_default": True})
@click.option("--dim", default=10, help="Length of feature vectors.")
@click.option("--arms", default=32, help="Arms to choose from.")
@click.option("--rounds", default=2500, help="Rounds to play.")
@click.option("--repeats", default=3, help="Times each is measured; the fastest counts.")
@click.option(
    "--clock", type=click.Choice(list(CLOCKS)), default="wall", help="On a busy machine, processor time is the fairer."
)
def bench(dim: int, arms: int, rounds: int, repeats: int, clock: str) -> None:
    """Time one round of choose and learn, beside other libraries where they are installed.

    Times are medians over rounds on one instance of the paper's problem, one call at a time, as in live use. The columns on the
    right say how a round's time grows with the rounds before it.
    """
    whole_number("--rounds", rounds, at_least=10)
    whole_number("--repeats", repeats, at_least=1)
    milestones = tuple(sorted({max(10, rounds // 25), max(10, rounds // 5), rounds}))
    speeds = {
        name: fastest(name, dim=dim, arms=arms, milestones=milestones, repeats=repeats, clock=clock) for name in CONTESTANTS
    }
    Console().print(speed_table(speeds, milestones, dim=dim, arms=arms, clock=clock))


def speed_table(speeds: dict[str, Speed], milestones: tuple[int, ...], *, dim: int, arms: int, clock: str = "wall") -> Table:
    """The result as a table; ratios are to Vowpal Wabbit (VW) where it runs, and below stands what did not run."""
    table = Table(
        title=f"Microseconds a round ({clock} time), choose + learn, K = {arms}, d = {dim}",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption="\n".join(f"{name}: {speed.problem}" for name, speed in speeds.items() if speed.problem) or None,
        caption_justify="left",
    )
    table.add_column("learner", no_wrap=True)
    for heading in ("median", "to VW", *(f"t = {t}" for t in milestones)):
        table.add_column(heading, justify="right", no_wrap=True)
    yardstick = speeds[YARDSTICK].median if YARDSTICK in speeds else math.nan
    for name, speed in speeds.items():
        if speed.problem:
            table.add_row(name, "-", "-", *("-" for _ in milestones))
        else:
            ratio = "-" if math.isnan(yardstick) else f"{speed.median / yardstick:.2f}"
            table.add_row(name, f"{speed.median:.0f}", ratio, *(f"{value:.0f}" for value in speed.at))
    return table


def fastest(name: str, *, dim: int, arms: int, milestones: tuple[int, ...], repeats: int, clock: str = "wall") -> Speed:
    """Measure a contestant several times, each on another instance, and keep the fastest: the rest is the machine's noise."""
    best = measure(CONTESTANTS[name], dim=dim, arms=arms, milestones=milestones, clock=clock)
    for seed in range(1, repeats):
        if best.problem:
            break
        again = measure(CONTESTANTS[name], dim=dim, arms=arms, milestones=milestones, seed=seed, clock=clock)
        best = min(best, again, key=lambda speed: speed.median)
    return best
