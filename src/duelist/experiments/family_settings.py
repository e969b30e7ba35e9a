"""One setting for all families: which setting of a policy loses least when nobody can tune.

A setting's loss in a family is its mean regret over that of the policy's best setting there. Settings are ranked by the
geometric mean of their losses over the families, on the design instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duelist.experiments.family_standings import FamilyStandings, Standing, geometric_mean, mean_of, ratio, tail_of
from duelist.experiments.report_tables import ReportTable


@dataclass(frozen=True, kw_only=True)
class RankedSetting:
    """One setting of a policy over all families.

    Attributes:
        index: its place in the grid.
        text: the setting for a person.
        losses: design mean over that of the policy's best setting, in each family.
        tails: 95 % quantile over that of the setting with the best mean, in each family.
    """

    index: int
    text: str
    losses: tuple[float, ...]
    tails: tuple[float, ...]

    @property
    def loss(self) -> float:
        """Geometric mean of the losses."""
        return geometric_mean(self.losses)


def ranked_settings(label: str, families: Sequence[FamilyStandings]) -> list[RankedSetting]:
    """Every setting of a policy, the best for all families first."""
    standings = _standings(label, families)
    best = [min(standing.designs, key=mean_of) for standing in standings]
    ranked = []
    for index, one in enumerate(standings[0].designs):
        runs = [standing.designs[index] for standing in standings]
        ranked.append(
            RankedSetting(
                index=index,
                text=one.setting_text or "default",
                losses=tuple(ratio(mean_of(run), mean_of(top)) for run, top in zip(runs, best, strict=True)),
                tails=tuple(ratio(tail_of(run), tail_of(top)) for run, top in zip(runs, best, strict=True)),
            )
        )
    return sorted(ranked, key=lambda setting: setting.loss)


def ranking_table(label: str, families: Sequence[FamilyStandings], ranked: Sequence[RankedSetting]) -> ReportTable:
    """Every setting with its loss in every family."""
    names = [family.name for family in families if family.of(label) is not None]
    rows = [
        (
            one.text,
            f"{one.loss:.2f}",
            f"{max(one.losses):.2f}",
            f"{geometric_mean(one.tails):.2f}",
            *(f"{loss:.2f}" for loss in one.losses),
        )
        for one in ranked
    ]
    return ReportTable(
        f"{label}: every setting over all families",
        ("setting", "loss", "worst", "tail", *names),
        tuple(rows),
        "Mean final regret on the design instances over that of the best setting of the family: the geometric mean over "
        "families, the worst, and each. tail: the same of 95 % quantiles, over that of the setting with the best mean.",
    )


def one_setting_table(families: Sequence[FamilyStandings]) -> ReportTable:
    """For every policy its best single setting by the design instances, judged on the final ones."""
    rows = []
    for label in dict.fromkeys(one.label for family in families for one in family.standings):
        rivals = [family.rival for family in families if family.of(label) is not None]
        top = ranked_settings(label, families)[0]
        runs = [standing.final_at(standing.designs[top.index]) for standing in _standings(label, families)]
        pairs = [(run, rival.chosen) for run, rival in zip(runs, rivals, strict=True) if run is not None and rival is not None]
        means = [ratio(mean_of(run), mean_of(rival)) for run, rival in pairs]
        tails = [ratio(tail_of(run), tail_of(rival)) for run, rival in pairs]
        wins = sum(value <= 1.0 for value in means)
        rows.append((geometric_mean(means), label, top.text, wins, len(means), max(means), max(tails)))
    return ReportTable(
        "One setting for all families",
        ("policy", "setting", "geometric mean of ratios", "at most 1", "worst ratio", "worst ratio of 95 %"),
        tuple(
            (label, text, f"{mean:.2f}", f"{wins} of {count}", f"{worst:.2f}", f"{tail:.2f}")
            for mean, label, text, wins, count, worst, tail in sorted(rows)
        ),
        "What a user gets who cannot tune: the setting of each policy with the best geometric mean over the families, chosen "
        "on the design instances, against the best tuned baseline of each family.",
    )


def _standings(label: str, families: Sequence[FamilyStandings]) -> list[Standing]:
    return [standing for family in families if (standing := family.of(label)) is not None]
