"""What `duelist reproduce field` will cost: processor time of every problem, from some rounds of every rule at every setting.

A hundred rounds of every cell are played with the problem's own horizon, the second half is timed, and the rest is taken to
cost as much. That is too little for rules for slates, whose rounds get dearer with the history: a factor covers them.

    python benchmarks/field_cost.py [--only paper-10 ...] [--workers 2]
"""

from __future__ import annotations

import argparse

from benchmarks.families_cost import cost
from duelist.experiments.field.problems import field_problems, field_spec
from duelist.experiments.sweep.blocks import first_cells

ROUNDS, LANES = 100, 24
JUDGED = 2  # settings of a rule on the final instances: the chosen one and the default
GROWTH = 1.5  # measured on ListwiseFGTS: its mean round of 400 over that of rounds 50 to 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    total = 0.0
    by_rule: dict[str, float] = {}
    print("| problem | rules | minutes of processor time | dearest |\n|---|---|---|---|")
    for name in options.only or field_problems():
        design, final = field_spec(name, "design"), field_spec(name, "final")
        assert design is not None
        assert final is not None
        spent: dict[str, float] = {}
        for cell in first_cells(design):
            runs = float(design.trials * len(cell.points))
            settings = sum(len(other.points) for other in first_cells(design) if other.policy == cell.policy)
            # The final instances of a rule are shared out among the cells of its grid.
            runs += final.trials * min(settings, JUDGED) * len(cell.points) / settings
            factor = GROWTH if field_problems()[name].kind == "slates" else 1.0
            label = design.policies[cell.policy].label
            spent[label] = spent.get(label, 0.0) + factor * cost(design, cell, ROUNDS, LANES) * runs / 60
        minutes = sum(spent.values())
        dearest = max(spent, key=lambda label: spent[label])
        print(f"| {name} | {len(spent)} | {minutes:.2f} | {dearest}: {spent[dearest]:.2f} |", flush=True)
        total += minutes
        for label, own in spent.items():
            by_rule[label] = by_rule.get(label, 0.0) + own
    print(f"| all | {len(by_rule)} | {total:.1f} | |\n")
    print(f"On {options.workers} cores {total / options.workers:.0f} minutes. By rule:")
    for label, own in sorted(by_rule.items(), key=lambda item: -item[1]):
        print(f"  {label}: {own:.2f}")


if __name__ == "__main__":
    main()
