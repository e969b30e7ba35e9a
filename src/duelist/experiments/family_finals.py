"""Which settings play the final instances of a family: those that somebody could have chosen without seeing them.

Of every policy: the setting with the smallest mean regret on the family's design instances, the one that loses least over the
design instances of all families, and the default. The rest of a grid would cost most of the time and can win nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from duelist.experiments.family_settings import ranked_settings
from duelist.experiments.family_standings import FamilyStandings, Standing
from duelist.experiments.spec import Spec
from duelist.experiments.spec_parts import PolicySpec


def final_specs(finals: Mapping[str, Spec], designed: Sequence[FamilyStandings]) -> dict[str, Spec]:
    """The final specs with their grids cut down to what has a claim to be played.

    Args:
        finals: family -> its final spec with full grids.
        designed: how policies stand on the design instances of these families.
    """
    labels = dict.fromkeys(one.label for family in designed for one in family.standings)
    for_all = {label: ranked_settings(label, designed)[0].index for label in labels}
    cut = {}
    for family in designed:
        spec = finals[family.name]
        standings = {one.label: one for one in family.standings}
        policies = [_cut(policy, standings[policy.label], for_all[policy.label]) for policy in spec.policies]
        cut[family.name] = replace(spec, policies=policies)
    return cut


def _cut(policy: PolicySpec, standing: Standing, for_all: int) -> PolicySpec:
    runs = [standing.chosen, standing.designs[for_all], *([standing.default] if standing.default else [])]
    wanted: dict[str, set[Any]] = {name: {run.setting[name] for run in runs} for name in policy.grid}
    return replace(policy, grid={name: [v for v in values if v in wanted[name]] for name, values in policy.grid.items()})
