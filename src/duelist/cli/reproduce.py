"""`duelist reproduce`: the paper's figures or the problem families in one command, resumable."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from duelist.cli.family_plan import LINE_UPS, family_plan
from duelist.cli.folders import make_folder
from duelist.cli.main import EXIT_INTERRUPTED
from duelist.cli.plan import Plan
from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.experiments.spec import Spec
from duelist.experiments.spec_files import load_spec, ready_made
from duelist.plotting.files import require_matplotlib, save_figure

FIGURES = {"figure1": ("figure1", "appendix"), "figure2": ("figure2",), "all": ("figure1", "appendix", "figure2")}
QUICK_ROUNDS, QUICK_TRIALS, QUICK_TUNING = 600, 10, 8
EXIT_FAILED = 1


@click.command(context_settings={"show_default": True})
@click.argument("figure", metavar="[figure1|figure2|all|families|families-fgts|SPEC.toml]", default="all")
@click.option("--quick", is_flag=True, help=f"A small run for a first look: {QUICK_ROUNDS} rounds, {QUICK_TRIALS} trials.")
@click.option("--rounds", type=int, default=None, help="Duels a trial; of families, at most.  [default: 2500, as in the paper]")
@click.option(
    "--trials",
    type=int,
    default=None,
    help="Test instances a policy, and tuning instances; of families, at most.  [default: 30, as in the paper]",
)
@click.option("--seed", type=int, default=None, help="The same seed gives the same numbers.  [default: 0]")
@click.option("--only", multiple=True, metavar="FAMILY", help="A problem family; repeat it for several.  [default: all]")
@click.option("--policies", multiple=True, metavar="LABEL", help="A policy of the families; repeat it.  [default: all]")
@click.option(
    "--stage", default="final", help='Of families: "design" neither plays nor shows the instances of the final table.'
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Folder for tables, figures, report and finished blocks.  "
    "[default: results/reproduce, with --quick results/reproduce/quick]",
)
@click.option("--workers", type=int, default=None, help="Threads; it changes nothing but the time.  [default: one a core]")
@click.option(
    "--cluster", metavar="ADDRESS", default=None, help="Compute on the Dask cluster at this address, such as tcp://host:8786."
)
@click.option("--quiet", is_flag=True, help="Print the paths of the files written and nothing else.")
def reproduce(
    figure: str,
    quick: bool,
    rounds: int | None,
    trials: int | None,
    seed: int | None,
    only: tuple[str, ...],
    policies: tuple[str, ...],
    stage: str,
    out: Path | None,
    workers: int | None,
    cluster: str | None,
    quiet: bool,
) -> None:
    """Run the paper's experiments again and write tables, figures and a report.

    figure1 is FGTS against the baselines, with an appendix of further ones; figure2 is FGTS under different alpha. families is
    every policy at every setting on sixteen kinds of problem; families-fgts asks them which setting of FGTS is best for all.
    A file that ends in .toml is a sweep of your own. Finished blocks are kept in the folder: a run that was killed continues
    where it was when it is started again.
    """
    require_matplotlib()
    _require_pyarrow()
    from duelist.experiments.runner import run_spec

    if figure in LINE_UPS:
        plan = family_plan(
            figure, quick=quick, rounds=rounds, trials=trials, seed=seed, only=only, policies=policies, stage=stage
        )
    else:
        plan = _figure_plan(figure, quick=quick, rounds=rounds, trials=trials, seed=seed)
        if only or policies:
            raise InvalidInputError(f"--only and --policies choose among the problem families; got them with {figure!r}.")
    folder = out or Path("results") / plan.folder / ("quick" if quick else "")
    make_folder(folder)
    started = time.perf_counter()
    results: dict[Any, Any] = {}

    def run_all(specs: Mapping[Any, Spec]) -> None:
        for key, spec in specs.items():
            results[key] = run_spec(spec, folder, workers=workers, cluster=cluster, progress=False if quiet else None)
            if not quiet:
                _tell_run(results[key])

    try:
        run_all(plan.specs)
        if not any(result.failures for result in results.values()):
            run_all(plan.then(results))
    except KeyboardInterrupt:
        click.echo(f"Stopped. Finished blocks are kept in {folder}; the same command goes on from there.", err=True)
        click.get_current_context().exit(EXIT_INTERRUPTED)
    failures = [str(failure) for result in results.values() for failure in result.failures]
    if failures:
        _tell_failures(failures, folder)
        click.get_current_context().exit(EXIT_FAILED)
    seconds = time.perf_counter() - started
    if not quiet:
        click.echo("Drawing the figures and writing the report ...", err=True)
    made = plan.report(results, _command(), seconds)
    files = [*(result.path for result in results.values()), *_write(made, folder)]
    if quiet:
        for path in files:
            click.echo(str(path))
        return
    _tell(made.verdicts, folder, len(files), time.perf_counter() - started)


def _figure_plan(figure: str, *, quick: bool, rounds: int | None, trials: int | None, seed: int | None) -> Plan:
    """The paper's figures, or a sweep of one's own."""
    from duelist.plotting.reproduction import reproduction_report, sweep_report

    own = figure.endswith(".toml")
    known = [*FIGURES, *LINE_UPS]
    wanted = [load_spec(figure)] if own else [ready_made(name) for name in FIGURES[one_of("figure", figure, known)]]
    specs = {spec.name: sized(spec, quick=quick, rounds=rounds, trials=trials, seed=seed) for spec in wanted}

    def report(results: Mapping[Any, Any], command: str, seconds: float) -> Any:
        if own:
            return sweep_report(next(iter(results.values())), command=command, seconds=seconds)
        return reproduction_report(results, command=command, seconds=seconds)

    return Plan(specs, wanted[0].name if own else "reproduce", report)


def _write(made: Any, folder: Path) -> list[Path]:
    from duelist.plotting.report import html_report, markdown_report

    files = [path for one in made.figures for path in save_figure(one.figure, folder / one.name)]
    images = {one.name: (folder / f"{one.name}.png").read_bytes() for one in made.figures}
    for name, text in (("report.html", html_report(made.report, images)), ("report.md", markdown_report(made.report))):
        (folder / name).write_text(text, encoding="utf-8")
        files.append(folder / name)
    return files


def sized(spec: Spec, *, quick: bool, rounds: int | None, trials: int | None, seed: int | None) -> Spec:
    """The spec at the size that was asked for; what was not asked for keeps the paper's size, or the quick one."""
    wanted_rounds = rounds if rounds is not None else (QUICK_ROUNDS if quick else spec.rounds)
    wanted_trials = trials if trials is not None else (QUICK_TRIALS if quick else spec.trials)
    tuning = trials if trials is not None else (QUICK_TUNING if quick else spec.tuning.trials)
    whole_number("--rounds", wanted_rounds, at_least=1)
    whole_number("--trials", wanted_trials, at_least=2)  # differences between trials need two
    return replace(
        spec,
        rounds=wanted_rounds,
        trials=wanted_trials,
        tuning=replace(spec.tuning, trials=tuning),
        seed=spec.seed if seed is None else whole_number("--seed", seed),
    )


def _tell_run(result: Any) -> None:
    for problem in result.problems:
        click.echo(f"Computed again: {problem}", err=True)
    counts = f"{result.computed} block(s) computed, {result.reused} reused"
    click.echo(f"{result.spec.id}: {counts}, {result.seconds:.1f} s", err=True)


def _tell_failures(failures: list[str], folder: Path) -> None:
    for failure in failures:
        click.echo(f"Failed: {failure}", err=True)
    click.echo(
        f"{len(failures)} block(s) failed; the others are kept in {folder}. Mend the cause and run the same command again: "
        f"only what is missing will be computed.",
        err=True,
    )


def _tell(verdicts: list[Any], folder: Path, n_files: int, seconds: float) -> None:
    if verdicts:
        Console().print(_verdict_lines(verdicts))
    click.echo(f"Report:  {folder / 'report.html'}")
    click.echo(f"Files:   {n_files} in {folder}: tables (Parquet), figures (PNG and PDF), report (HTML and Markdown)")
    click.echo(f"Time:    {seconds:.1f} s")


def _verdict_lines(verdicts: list[Any]) -> Table:
    table = Table(title="What held and what did not", box=SIMPLE_HEAD, title_justify="left")
    for heading in ("claim", "under", "outcome"):
        table.add_column(heading, overflow="fold")
    for verdict in verdicts:
        table.add_row(verdict.claim, verdict.conditions, verdict.outcome)
    return table


def _command() -> str:
    return " ".join(["duelist", *sys.argv[1:]])


def _require_pyarrow() -> None:
    import importlib.util

    if importlib.util.find_spec("pyarrow") is None:
        raise InvalidInputError(
            'duelist reproduce stores tables as Parquet and needs pyarrow. Run: pip install "duelist[paper]"'
        )
