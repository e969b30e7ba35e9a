"""Plans for the problem families: all policies on them, or one policy's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from duelist.cli.plan import Plan
from duelist.core.checks import one_of, whole_number
from duelist.experiments.families import LINE_UP, STAGES, families_text, family_names, family_spec
from duelist.experiments.family_finals import final_specs
from duelist.experiments.spec import Spec

QUICK_ROUNDS = 400
QUICK_TRIALS = {"design": 4, "final": 6}
# What `duelist reproduce` calls a line-up, and the line-up. Settings for all families are asked of the design instances alone.
LINE_UPS = {"families": LINE_UP, "families-fgts": "fgts"}
_DESIGN_ONLY = ("fgts",)


def family_plan(
    name: str,
    *,
    quick: bool,
    rounds: int | None,
    trials: int | None,
    seed: int | None,
    only: Sequence[str],
    policies: Sequence[str],
    stage: str,
) -> Plan:
    """The design instances of every family that was asked for, then the final ones at the settings that these chose.

    Args:
        name: "families" or "families-fgts".
        quick: a small run for a first look.
        rounds: most rounds of a family.
        trials: most instances of a stage.
        seed: of the design instances; the final ones have the next.
        only: names of families; all without any.
        policies: labels of policies; all without any.
        stage: "final" for both stages, "design" for that one.
    """
    from duelist.plotting.family_report import family_report, settings_report, standings_of

    line_up = LINE_UPS[name]
    design_only = line_up in _DESIGN_ONLY or one_of("--stage", stage, STAGES) == "design"
    for family in only:
        one_of("--only", family, family_names())
    wanted = [family for family in family_names() if not only or family in only]

    def spec_of(family: str, part: str) -> Spec:
        return _sized(family_spec(family, part, line_up=line_up, only=policies), part, quick, rounds, trials, seed)

    def judge(results: Mapping[Any, Any]) -> dict[Any, Spec]:
        finals = {family: spec_of(family, "final") for family in wanted}
        return {(family, "final"): spec for family, spec in final_specs(finals, standings_of(results)).items()}

    write = settings_report if line_up in _DESIGN_ONLY else family_report

    def report(results: Mapping[Any, Any], command: str, seconds: float) -> Any:
        return write(results, command=command, seconds=seconds, listing=families_text(line_up))

    designs = {(family, "design"): spec_of(family, "design") for family in wanted}
    return Plan(designs, name, report) if design_only else Plan(designs, name, report, judge)


def _sized(spec: Spec, stage: str, quick: bool, rounds: int | None, trials: int | None, seed: int | None) -> Spec:
    most_rounds = rounds if rounds is not None else (QUICK_ROUNDS if quick else spec.rounds)
    most_trials = trials if trials is not None else (QUICK_TRIALS[stage] if quick else spec.trials)
    whole_number("--rounds", most_rounds, at_least=1)
    whole_number("--trials", most_trials, at_least=2)  # differences between trials need two
    base = spec.seed if seed is None else whole_number("--seed", seed) + STAGES.index(stage)
    size = min(most_rounds, spec.rounds)
    return replace(spec, rounds=size, thin=min(spec.thin, size), trials=min(most_trials, spec.trials), seed=base)
