"""From results of the routing experiments to their report: does what the paper says of its embeddings hold here?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from duelist.experiments.families.standings import FLOOR, mean_regret
from duelist.experiments.routing.embeddings import TOP, WEIGHTINGS
from duelist.experiments.routing.problems import BLOCKS, DIAL_FEATURES, GENERAL, PAPER, SHARPNESS
from duelist.experiments.routing.standings import RoutingStandings, collect_routing
from duelist.experiments.routing.tables import OFFLINE_SHARE, RoutingTable
from duelist.experiments.statistics import standard_error
from duelist.experiments.sweep.runner import Results
from duelist.experiments.sweep.series import Series
from duelist.plotting.paper import PaperFigure
from duelist.plotting.routing import quality_cost_figure, routing_regret_figure
from duelist.plotting.style import figure_digest
from duelist.reports.claims import Finding, Verdict, lower_mean_finding
from duelist.reports.document import Report, Section
from duelist.reports.paper import Reproduction, settings_sections
from duelist.reports.tables import ReportTable, verdict_table

_CITATION = (
    "The paper: Chao-Kai Chiang, Takashi Ishida and Masashi Sugiyama, LLM Routing with Dueling Feedback, 2025, "
    "arXiv:2510.00841, https://arxiv.org/abs/2510.00841."
)
_ABOUT = (
    f"A prompt comes, the policy shows the answers of two models, and a vote says which is better. The utility of a model on a "
    f"prompt is its score minus a weight times its cost, both from a table; a vote is drawn from the Bradley-Terry-Luce model "
    f"with {SHARPNESS:g} log-odds per unit of utility. Regret is that of the mean of the two utilities against the best model "
    f"for that very prompt. {OFFLINE_SHARE:.0%} of the prompts are offline: their scores and costs make the embeddings of the "
    f"models. Policies play on the others, each prompt once before any comes again. Every policy has its default setting, and "
    f"nothing was tuned on these tables."
)
_UNAVOIDABLE = (
    "Much of this regret nobody can avoid: of eleven models that guess, one is right by luck. The routers that need no votes "
    "show how much. The one that is told the category of every prompt, and all scores of the offline ones, is about what a "
    "policy can hope for."
)
DEVIATIONS = (
    "Of the paper we could read the abstract, the setting and secondary accounts, not the formulas of the weights, nor its "
    "settings, sizes and numbers. What follows is our reading; its numbers cannot be set beside the paper's.",
    "The paper tunes a text encoder with a contrastive loss so that prompts of one category come together. Here that is a "
    "linear map with the same aim, fitted in closed form: linear discriminants of the offline embeddings by category. An "
    "encoder that you have tuned yourself can be used: give its embeddings.",
    "The paper's encoders cannot be shipped. Embeddings are read from a file or a column beside the data; without any, words "
    "and pairs of words are hashed, which knows nothing of meaning. The stand-ins have made-up embeddings.",
    f"The four weightings of categories are: the mean score; the mean score minus the weighted mean cost; that, in the "
    f"categories where the model is among the best {TOP}, else 0; and 1 there, else 0. The paper has four that bring in "
    f"quality and cost; those that an account names have these names here.",
    "Features are the products of the entries of prompt and model. To them are joined the mean score and the mean cost of the "
    "model, and all are scaled to one size.",
    f"The general-purpose embedding, the paper's baseline, is here the {GENERAL} one: principal components of the embeddings "
    f"as they come, with the weights perf-cost. {BLOCKS} is this package's usual way, which needs no offline scores: principal "
    f"components in a block of their own for each model.",
    "FGTS has this package's default sampler and setting, which are not the paper's recipe of Langevin steps; the other "
    "policies are this package's. MixLLM, a baseline of the paper that learns from scores and not from votes, is not "
    "reproduced; routers that need no votes stand beside it.",
    "Costs are divided by the mean cost of the dearest model; scores that leave [0, 1] are scaled by their quantiles.",
    "Experiments of the paper on models or benchmarks that come later are not reproduced.",
)
_REGRET = (
    "Cumulative regret, mean over trials with its standard error. Left: FGTS at its default on every kind of features. Right: "
    "policies at their defaults. The grey line is the regret of the best single model by the offline prompts; random play is "
    "left out."
)
_DIAL = (
    "Mean score against mean cost of all that FGTS showed, both answers of every duel, from the first; the numbers are weights "
    "of the cost. Dots: every model alone."
)


def routing_report(
    tables: Mapping[str, RoutingTable],
    results: Mapping[tuple[str, str, float], Results],
    *,
    command: str,
    seconds: float,
) -> Reproduction:
    """Write the report of the routing experiments.

    Args:
        tables: by name.
        results: by table, kind of features and weight of the cost.
        command: how to run it again.
        seconds: that computing took.
    """
    standings = collect_routing(tables, results)
    verdicts = routing_verdicts(standings)
    figures = [
        PaperFigure("routing-regret", _REGRET, partial(routing_regret_figure, standings), figure_digest(standings, "regret"))
    ]
    if any(one.dial for one in standings):
        figures.append(
            PaperFigure("routing-cost", _DIAL, partial(quality_cost_figure, standings), figure_digest(standings, "cost"))
        )
    sections = [
        Section("Summary", [_CITATION, _ABOUT, _UNAVOIDABLE], [verdict_table(verdicts)], figures),
        *(_table_section(one) for one in standings),
        Section("What differs from the paper", [f"{number}. {text}" for number, text in enumerate(DEVIATIONS, 1)]),
        *settings_sections({one.spec.name: one for one in results.values()}, command, seconds),
    ]
    return Reproduction(Report("LLM routing with dueling feedback, run again", sections), figures, verdicts)


def _table_section(one: RoutingStandings) -> Section:
    trials = len(next(iter(one.runs.values()))[0].trials)
    words = (
        f"{len(one.table.models)} models, {len(one.table.offline)} offline and {len(one.table.online)} online prompts of "
        f"{len(set(one.table.categories))} categories; weight of the cost {one.weight:g}; {one.rounds} rounds, {trials} "
        f"trials. The table is the same in every trial: trials differ by the order of the prompts, by votes and by the "
        f"policies' own random numbers, so intervals say nothing about other tables."
    )
    tables = [regret_table(one), fixed_table(one)]
    return Section(f"{one.table.name}: {one.table.title}", [words], [*tables, dial_table(one)] if one.dial else tables)


def regret_table(one: RoutingStandings) -> ReportTable:
    """Final regret, one row per kind of features, one column per policy."""
    labels = list(dict.fromkeys(series.label for runs in one.runs.values() for series in runs))
    rows = []
    for kind in one.runs:
        found = [one.find(kind, label) for label in labels]
        rows.append((kind, *("" if series is None else _mean(series) for series in found)))
    return ReportTable(
        f"{one.table.name}: regret after {one.rounds} rounds",
        ("features", *labels),
        tuple(rows),
        f"Mean with its standard error. Best single model by the offline prompts: {one.best_single.regret * one.rounds:.0f}.",
    )


def fixed_table(one: RoutingStandings) -> ReportTable:
    """Routers without votes."""
    rows = [
        (router.name, f"{router.regret * one.rounds:.0f}", f"{router.score:.3f}", f"{router.cost:.3f}") for router in one.fixed
    ]
    return ReportTable(
        f"{one.table.name}: routers that learn nothing from votes",
        ("router", f"regret over {one.rounds} prompts", "mean score", "mean cost"),
        tuple(rows),
        "On the online prompts, one answer each.",
    )


def dial_table(one: RoutingStandings) -> ReportTable:
    """What FGTS showed by the weight of the cost."""
    rows = [(f"{at.weight:g}", f"{at.score:.3f}", f"{at.cost:.3f}") for at in one.dial]
    return ReportTable(
        f"{one.table.name}: {PAPER} on {DIAL_FEATURES} by the weight of the cost",
        ("weight of the cost", "mean score", "mean cost"),
        tuple(rows),
        "Of all answers shown, both of every duel, while learning.",
    )


def routing_verdicts(standings: Sequence[RoutingStandings]) -> list[Verdict]:
    """What the paper says, and what a user would ask, each judged by paired 95 % intervals."""
    verdicts = []
    for kind in (*WEIGHTINGS, BLOCKS):
        findings = [
            lower_mean_finding(one.table.name, ours, theirs, f"on {GENERAL}", digits=0)
            for one in standings
            if (ours := one.find(kind, PAPER)) is not None and (theirs := one.find(GENERAL, PAPER)) is not None
        ]
        verdicts.append(Verdict(f"{PAPER} loses less than on the general embedding", kind, tuple(findings)))
    labels = [
        label
        for label in dict.fromkeys(series.label for one in standings for series in one.runs.get(DIAL_FEATURES, ()))
        if label != PAPER
    ]
    for label in labels:
        findings = [
            lower_mean_finding(one.table.name, ours, theirs, f"of {label}", digits=0)
            for one in standings
            if (ours := one.find(DIAL_FEATURES, PAPER)) is not None and (theirs := one.find(DIAL_FEATURES, label)) is not None
        ]
        claim = "random play" if label == FLOOR else label
        verdicts.append(Verdict(f"{PAPER} loses less than {claim}", f"{DIAL_FEATURES}, nothing tuned", tuple(findings)))
    for label in (PAPER, *(label for label in labels if label != FLOOR)):
        found = [_against_single(one, runs) for one in standings if (runs := one.find(DIAL_FEATURES, label)) is not None]
        verdicts.append(
            Verdict(f"{label} loses less than the best single model", f"{DIAL_FEATURES}, while learning", tuple(found))
        )
    return [verdict for verdict in verdicts if verdict.findings]


def _against_single(one: RoutingStandings, runs: Series) -> Finding:
    """A router without votes has no trials: its regret over the rounds is a number."""
    single = one.best_single.regret * one.rounds
    difference, error = mean_regret(runs) - single, 2.0 * float(standard_error(runs.final_regret))
    words = f"{mean_regret(runs):.0f} ± {error:.0f} (two standard errors) against {single:.0f}"
    return Finding(one.table.name, difference < 0.0 if abs(difference) > error else None, words)


def _mean(series: Series) -> str:
    return f"{mean_regret(series):.0f} ± {float(standard_error(series.final_regret)):.0f}"
