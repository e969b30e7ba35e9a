"""`duelist run`: compare policies on the paper's problem, or on another environment."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console

from duelist.cli.main import EXIT_INTERRUPTED
from duelist.cli.output import ProgressDisplay, make_folder, result_table, write_curves, write_results, write_settings
from duelist.cli.policy_text import parse_environment, parse_policies
from duelist.core.checks import whole_number
from duelist.core.errors import InvalidInputError
from duelist.environments.base import Environment
from duelist.environments.linear import LinearDuels
from duelist.environments.registry import require_environment
from duelist.experiments.comparison import Comparison
from duelist.experiments.simulation import simulate
from duelist.plotting.regret import regret_figure
from duelist.plotting.style import MissingMatplotlibError, require_matplotlib, save_figure
from duelist.policies.base import Policy

# One policy per idea, and random play as the floor. Left out: variants of these (SupCoLSTIM, other settings of FGTS) and
# FiniteModels, which needs a list of models that holds the truth.
DEFAULT_LINE_UP = ("FGTS", "Foresight", "MaxInP", "MaxPairUCB", "CoLSTIM", "VACDB", "StaD", "Uniform")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the command. Those from `dim` on are parameters of `LinearDuels`."""

    specs: tuple[str, ...]
    environment: str | None
    rounds: int
    trials: int
    seed: int
    folder: Path
    workers: int | None
    quiet: bool
    dim: int
    arms: int
    fresh_arms: bool
    unit_norm: bool
    theta_norm: float
    geometry: Any
    link: Any
    flips: float

    def make_environment(self, given: set[str]) -> Environment:
        """The problem that these options describe; `given` are those that the user typed."""
        names = [field.name for field in fields(LinearDuels)]
        if self.environment is None:
            return LinearDuels(**{name: getattr(self, name) for name in names})
        for name in names:
            if name in given:
                option = "--" + name.replace("_", "-")
                raise InvalidInputError(
                    f"{option} is for the default problem and --environment names another. Write it inside: "
                    f"--environment 'NAME({name}=...)'."
                )
        return parse_environment(self.environment)

    def check_sizes(self) -> None:
        """Refuse sizes that cannot be played."""
        for name in ("rounds", "trials", "workers"):
            value = getattr(self, name)
            whole_number(name, 1 if value is None else value, at_least=1)
        whole_number("seed", self.seed)


@click.command(context_settings={"show_default": True})
@click.option(
    "--policy",
    "specs",
    multiple=True,
    metavar="SPEC",
    help=f"FGTS or FGTS:alpha=0,sampler=paper, or one of your own, file.py:Name; repeat it to compare several.  "
    f"[default: {', '.join(DEFAULT_LINE_UP)}]",
)
@click.option(
    "--environment",
    metavar="SPEC",
    help="Another problem, as NAME(parameter=value, ...), or one of your own, file.py:Name(...).  [default: LinearDuels]",
)
@click.option("--dim", default=10, help="Length of feature vectors.")
@click.option("--arms", default=32, help="Arms to choose from.")
@click.option("--rounds", default=2500, help="Duels per trial.")
@click.option("--trials", default=30, help="Independent instances.")
@click.option("--seed", default=0, help="The same seed gives the same numbers.")
@click.option(
    "--out",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("results/run"),
    help="Folder for figure and data; files are replaced.",
)
@click.option("--workers", type=int, help="Threads; they change the time and nothing else.  [default: one per core]")
@click.option("--fresh-arms", is_flag=True, help="Draw new arms every round.")
@click.option("--unit-norm", is_flag=True, help="Scale arms to norm 1, as the theory asks.")
@click.option("--theta-norm", default=1.0, help="Norm of the true parameter.")
@click.option("--geometry", default="cube", help="Distribution of the arms: cube, sphere, clusters or axes.")
@click.option("--link", default="logistic", help="From utilities to the probability of a win: logistic, probit or cauchit.")
@click.option("--flips", default=0.0, help="Share of votes that are flipped.")
@click.option("--quiet", is_flag=True, help="Print the paths of the files written and nothing else.")
def run(**options: Any) -> None:
    """Compare policies on the paper's problem, or on --environment.

    Prints a table of final regrets and writes regret.png, regret.pdf, results.csv (one row per policy and trial), curves.csv
    (regret over rounds) and run.json (settings, versions, seconds). Every policy meets the same instances with the same noise.
    Ctrl-C keeps the policies that are done.
    """
    chosen = Options(**options)
    policies = parse_policies(list(chosen.specs or DEFAULT_LINE_UP))
    context = click.get_current_context()
    typed = {name for name in options if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    environment = require_environment(chosen.make_environment(typed))
    chosen.check_sizes()
    make_folder(chosen.folder)
    can_plot = _check_plotting()
    comparison, interrupted = _play(policies, environment, chosen)
    done = len(comparison.runs)
    if done:
        files = _write(chosen.folder, comparison, asked=list(policies), can_plot=can_plot)
        _print_results(comparison, files, chosen)
    if interrupted:
        kept = f"Kept {done} of {len(policies)} policies"
        click.echo(kept + (f" in {chosen.folder}." if done else ": nothing was written."), err=True)
        click.get_current_context().exit(EXIT_INTERRUPTED)


def _play(policies: dict[str, Policy[Any]], environment: Environment, options: Options) -> tuple[Comparison, bool]:
    """Play the policies one by one; returns the runs that finished, and whether Ctrl-C ended the comparison."""
    comparison = Comparison({})
    seed = options.seed
    try:
        with ProgressDisplay(list(policies), options.rounds * options.trials, quiet=options.quiet) as display:
            for name, policy in policies.items():
                with display.track(name) as tick:
                    comparison.runs[name] = simulate(
                        policy,
                        environment,
                        rounds=options.rounds,
                        trials=options.trials,
                        seed=seed,
                        workers=options.workers,
                        progress=tick,
                    )
    except KeyboardInterrupt:
        return comparison, True
    return comparison, False


def _check_plotting() -> bool:
    try:
        require_matplotlib()
    except MissingMatplotlibError as error:
        click.echo(f"No figure will be drawn: {error}", err=True)
        return False
    return True


def _write(folder: Path, comparison: Comparison, *, asked: list[str], can_plot: bool) -> list[Path]:
    files = [
        write_results(folder, comparison),
        write_curves(folder, comparison),
        write_settings(folder, comparison, asked=asked, complete=len(comparison.runs) == len(asked)),
    ]
    return [*save_figure(regret_figure(comparison), folder / "regret"), *files] if can_plot else files


def _print_results(comparison: Comparison, files: list[Path], options: Options) -> None:
    if options.quiet:
        for file in files:
            click.echo(str(file))
        return
    Console().print(result_table(comparison, rounds=options.rounds, trials=options.trials))
    for file in files:
        label = {".png": "Figure", ".pdf": "Figure", ".csv": "Data", ".json": "Settings"}[file.suffix]
        click.echo(f"{label + ':':<10}{file}")
