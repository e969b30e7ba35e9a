"""From the results of the problem families to their report: who wins where, by how much, and at which settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from duelist.experiments.families import family_title
from duelist.experiments.family_settings import one_setting_table, ranked_settings, ranking_table
from duelist.experiments.family_standings import NEW_POLICY, Contest, FamilyStandings, contest, family_standings
from duelist.experiments.family_tables import TAIL_MARGIN, contest_table, contest_verdicts, family_table, grid_table
from duelist.experiments.report_tables import verdict_table
from duelist.experiments.runner import Results
from duelist.experiments.series import series_of
from duelist.plotting.family_figure import family_figure
from duelist.plotting.paper_figures import PaperFigure
from duelist.plotting.report import Report, Section
from duelist.plotting.reproduction import Reproduction, settings_sections

RECOMMENDED = "FGTS (recommended)"
_CAPTION = (
    "Regret after the last round over that of the best tuned baseline of each family; left of the line is better. A mark with "
    "an arrow's head at the right edge lies beyond it. Random play is left out."
)


def family_report(
    results: Mapping[tuple[str, str], Results], *, command: str, seconds: float, listing: str = ""
) -> Reproduction:
    """The report of the families.

    Args:
        results: complete results by (family, stage). A family without the stage "final" is judged on its design instances.
        command: what was typed.
        seconds: wall time of it all.
        listing: the specs as text.
    """
    families = standings_of(results)
    contests = contests_of(families)
    verdicts = contest_verdicts(contests)
    judged = any(stage == "final" for _, stage in results)
    head = Section("Summary", [_instances(families, judged), *_summary(contests)])
    figures = []
    if any(family.rival is not None for family in families):
        figures.append(PaperFigure("families", _CAPTION, family_figure(families)))
        tables = [contest_table(contests, families)] if contests else []
        tables.append(one_setting_table(families))
        head = Section("Summary", head.paragraphs, tables, figures)
    sections = [
        head,
        Section("Family by family", tables=[family_table(family) for family in families]),
        Section("Every setting", tables=[table for label in _labels(families) if (table := grid_table(label, families))]),
        Section("The verdicts in numbers", tables=[verdict_table(verdicts)] if verdicts else []),
        *settings_sections({f"{name} {stage}": one for (name, stage), one in results.items()}, command, seconds, listing),
    ]
    title = "The problem families" + ("" if judged else ", design instances only")
    return Reproduction(Report(title, sections), figures, verdicts)


def settings_report(
    results: Mapping[tuple[str, str], Results], *, command: str, seconds: float, listing: str = ""
) -> Reproduction:
    """The report of a line-up that asks which setting of a policy is best for all families; the arguments as above."""
    families = standings_of(results)
    tables = [ranking_table(label, families, ranked_settings(label, families)) for label in _labels(families)]
    sections = [
        Section("One setting for all families", [_instances(families, judged=False)], tables),
        *settings_sections({name: one for (name, _), one in results.items()}, command, seconds, listing),
    ]
    return Reproduction(Report("One setting for all families", sections), [], [])


def standings_of(results: Mapping[tuple[str, str], Results]) -> list[FamilyStandings]:
    """The standings of every family in the results."""
    families = []
    for name in dict.fromkeys(name for name, _ in results):
        design = results[name, "design"]
        final = results.get((name, "final"), design)
        stages = [(one.spec, series_of(one.spec, one.table)) for one in (design, final)]
        families.append(family_standings(name, family_title(name), stages[0], stages[1]))
    return families


def contests_of(families: Sequence[FamilyStandings]) -> list[Contest]:
    """The contenders that have one setting for all families: the new policy, FGTS as recommended, and FGTS as it comes."""
    wanted = [
        contest(NEW_POLICY, NEW_POLICY, families),
        contest(RECOMMENDED, RECOMMENDED, families),
        contest("FGTS (default)", "FGTS", families, default=True),
    ]
    return [one for one in wanted if one is not None]


def _labels(families: Sequence[FamilyStandings]) -> list[str]:
    return list(dict.fromkeys(one.label for family in families for one in family.standings))


def _instances(families: Sequence[FamilyStandings], judged: bool) -> str:
    design = sorted({family.design.trials for family in families})
    text = f"{len(families)} families. Every policy plays the same instances with the same noise. "
    if not judged:
        return text + (
            f"Settings were chosen and judged on the same {_span(design)} design instances a family, which flatters policies "
            f"with many settings; nothing here has touched the final instances."
        )
    final = sorted({family.final.trials for family in families})
    return text + (
        f"Settings were chosen by the mean final regret on {_span(design)} design instances a family, and judged on "
        f"{_span(final)} others."
    )


def _span(counts: Sequence[int]) -> str:
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _summary(contests: Sequence[Contest]) -> list[str]:
    paragraphs = []
    for one in contests:
        worst = max(range(len(one.families)), key=lambda i: one.means[i])
        tail = max(range(len(one.families)), key=lambda i: one.tails[i])
        calm = sum(value <= TAIL_MARGIN for value in one.tails)
        paragraphs.append(
            f"{one.name}, one setting for all: mean regret at most that of the best tuned baseline in {one.wins} of "
            f"{len(one.families)} families; geometric mean of the ratios {one.geometric_mean:.2f}; worst ratio "
            f"{one.means[worst]:.2f} ({one.families[worst]}). Its 95 % quantile is at most {TAIL_MARGIN:g} times the "
            f"baseline's in {calm} of {len(one.families)}; worst {one.tails[tail]:.2f} ({one.families[tail]})."
        )
    return paragraphs
