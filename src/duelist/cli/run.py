"""`duelist run`: compare policies on the paper's problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from duelist.cli.display import ProgressDisplay, result_table
from duelist.cli.folders import make_folder
from duelist.cli.main import EXIT_INTERRUPTED
from duelist.cli.run_files import write_results, write_settings
from duelist.cli.specs import default_specs, parse_policies
from duelist.core.checks import whole_number
from duelist.environments.linear_duels import LinearDuels
from duelist.experiments.compare import Comparison
from duelist.experiments.simulate import simulate
from duelist.plotting.files import MissingMatplotlibError, require_matplotlib, save_figure
from duelist.plotting.regret import regret_figure


@click.command(context_settings={"show_default": True})
@click.option(
    "--policy",
    "specs",
    multiple=True,
    metavar="SPEC",
    help="FGTS or FGTS:alpha=0,sampler=paper; repeat it to compare several.  "
    "[default: all policies, and FGTS without its Feel-Good term and with the paper's sampler]",
)
@click.option("--dim", default=10, help="Length of feature vectors.")
@click.option("--arms", default=32, help="Arms to choose from.")
@click.option("--rounds", default=2500, help="Duels a trial.")
@click.option("--trials", default=30, help="Independent instances.")
@click.option("--seed", default=0, help="The same seed gives the same numbers.")
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("results/run"),
    help="Folder for figure and data; files are replaced.",
)
@click.option("--workers", type=int, default=None, help="Threads; it changes nothing but the time.  [default: one a core]")
@click.option("--fresh-arms", is_flag=True, help="Draw new arms every round.")
@click.option("--unit-norm", is_flag=True, help="Scale arms to norm 1, as the theory asks.")
@click.option("--theta-norm", default=1.0, help="Norm of the true parameter.")
@click.option("--geometry", default="cube", help="How arms lie: cube, sphere, clusters or axes.")
@click.option("--link", default="logistic", help="Law of who wins: logistic, probit or cauchit.")
@click.option("--flips", default=0.0, help="Share of votes turned round.")
@click.option("--quiet", is_flag=True, help="Print the paths of the files written and nothing else.")
def run(
    specs: tuple[str, ...],
    dim: int,
    arms: int,
    rounds: int,
    trials: int,
    seed: int,
    folder: Path,
    workers: int | None,
    fresh_arms: bool,
    unit_norm: bool,
    theta_norm: float,
    geometry: Any,
    link: Any,
    flips: float,
    quiet: bool,
) -> None:
    """Compare policies on the paper's problem.

    Prints a table of final regrets and writes regret.png, regret.pdf, results.csv (a row for every policy and trial) and
    run.json (settings, versions, seconds). Every policy meets the same instances with the same noise. Ctrl-C keeps the
    policies that are done.
    """
    policies = parse_policies(list(specs) or default_specs())
    environment = LinearDuels(
        dim=dim,
        arms=arms,
        fresh_arms=fresh_arms,
        unit_norm=unit_norm,
        theta_norm=theta_norm,
        geometry=geometry,
        link=link,
        flips=flips,
    )
    for name, value in (("rounds", rounds), ("trials", trials), ("workers", 1 if workers is None else workers)):
        whole_number(name, value, at_least=1)
    whole_number("seed", seed)
    make_folder(folder)
    figure = _can_plot()

    comparison = Comparison({})
    interrupted = False
    try:
        with ProgressDisplay(list(policies), rounds * trials, quiet=quiet) as display:
            for name, policy in policies.items():
                with display.playing(name) as tick:
                    # Two rounds that nobody counts compile what is not compiled yet, so that times measure play.
                    simulate(policy, environment, rounds=2, trials=1, seed=seed, progress=False)
                    comparison.runs[name] = simulate(
                        policy, environment, rounds=rounds, trials=trials, seed=seed, workers=workers, progress=tick
                    )
    except KeyboardInterrupt:
        interrupted = True
    done = len(comparison.runs)
    if done:
        files = _write(folder, comparison, asked=list(policies), figure=figure)
        _tell(comparison, files, rounds=rounds, trials=trials, quiet=quiet)
    if interrupted:
        click.echo(
            f"Kept {done} of {len(policies)} policies" + (f" in {folder}." if done else ": nothing was written."), err=True
        )
        click.get_current_context().exit(EXIT_INTERRUPTED)


def _can_plot() -> bool:
    try:
        require_matplotlib()
    except MissingMatplotlibError as error:
        click.echo(f"No figure will be drawn: {error}", err=True)
        return False
    return True


def _write(folder: Path, comparison: Comparison, *, asked: list[str], figure: bool) -> list[Path]:
    files = [
        write_results(folder, comparison),
        write_settings(folder, comparison, asked=asked, complete=len(comparison.runs) == len(asked)),
    ]
    return [*save_figure(regret_figure(comparison), folder / "regret"), *files] if figure else files


def _tell(comparison: Comparison, files: list[Path], *, rounds: int, trials: int, quiet: bool) -> None:
    if quiet:
        for file in files:
            click.echo(str(file))
        return
    Console().print(result_table(comparison, rounds=rounds, trials=trials))
    for file in files:
        label = {".png": "Figure", ".pdf": "Figure", ".csv": "Data", ".json": "Settings"}[file.suffix]
        click.echo(f"{label + ':':<10}{file}")
