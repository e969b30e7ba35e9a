"""Plans for the problem families: all policies on them, or one policy's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from duelist.cli.plan import Plan
from duelist.core.checks import one_of, whole_number
from duelist.experiments.families import LINE_UP, STAGES, families_text, family_names, family_spec
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
    """Both stages of every family that was asked for, or the design instances alone.

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
    from duelist.plotting.family_report import family_report, settings_report

    line_up = LINE_UPS[name]
    design_only = line_up in _DESIGN_ONLY or one_of("--stage", stage, STAGES) == "design"
    stages = STAGES[:1] if design_only else STAGES
    for family in only:
        one_of("--only", family, family_names())
    wanted = [family for family in family_names() if not only or family in only]
    specs = {
        (family, part): _sized(family_spec(family, part, line_up=line_up, only=policies), part, quick, rounds, trials, seed)
        for family in wanted
        for part in stages
    }
    write = settings_report if line_up in _DESIGN_ONLY else family_report

    def report(results: Mapping[Any, Any], command: str, seconds: float) -> Any:
        return write(results, command=command, seconds=seconds, listing=families_text(line_up))

    return Plan(specs, name, report)


def _sized(spec: Spec, stage: str, quick: bool, rounds: int | None, trials: int | None, seed: int | None) -> Spec:
    most_rounds = rounds if rounds is not None else (QUICK_ROUNDS if quick else spec.rounds)
    most_trials = trials if trials is not None else (QUICK_TRIALS[stage] if quick else spec.trials)
    whole_number("--rounds", most_rounds, at_least=1)
    whole_number("--trials", most_trials, at_least=2)  # differences between trials need two
    base = spec.seed if seed is None else whole_number("--seed", seed) + STAGES.index(stage)
    size = min(most_rounds, spec.rounds)
    return replace(spec, rounds=size, thin=min(spec.thin, size), trials=min(most_trials, spec.trials), seed=base)
