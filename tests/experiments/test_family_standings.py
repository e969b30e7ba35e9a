"""Standings in a family, chosen on design instances and judged on final ones, against numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.experiments.families.problems import Contender
from duelist.experiments.families.standings import (
    FamilyStandings,
    compare_with_rivals,
    compute_standings,
    final_specs,
    rank_settings,
    ratio,
)
from duelist.experiments.sweep.series import Series
from duelist.experiments.sweep.spec import PolicySpec, Spec
from duelist.reports.families import (
    contest_table,
    contest_verdicts,
    family_table,
    grid_table,
    one_setting_table,
    ranking_table,
)

UNDER_TEST = Contender(label="Foresight", baseline=False)
POLICIES = [
    PolicySpec(policy="Foresight"),
    PolicySpec(policy="FGTS", grid={"alpha": [0.0, 0.1]}),
    PolicySpec(policy="MaxInP", grid={"radius": [1.0, 3.0, 10.0]}),
    PolicySpec(policy="Uniform"),
]
Means = dict[tuple[str, float | None], float]
# (label, setting) -> mean regret. MaxInP is best at 3 by the design and at 1 by the final instances.
DESIGN: Means = {
    ("Foresight", None): 60.0,
    ("FGTS", 0.0): 100.0,
    ("FGTS", 0.1): 90.0,
    ("MaxInP", 1.0): 80.0,
    ("MaxInP", 3.0): 70.0,
    ("MaxInP", 10.0): 75.0,
    ("Uniform", None): 500.0,
}
FINAL: Means = {
    ("Foresight", None): 50.0,
    ("FGTS", 0.0): 120.0,
    ("FGTS", 0.1): 110.0,
    ("MaxInP", 1.0): 40.0,
    ("MaxInP", 3.0): 100.0,
    ("MaxInP", 10.0): 200.0,
    ("Uniform", None): 400.0,
}


def series(means: Means) -> list[Series]:
    made = []
    for (label, value), mean in means.items():
        name = "alpha" if label == "FGTS" else "radius"
        # Five trials around the mean; the 95 % quantile lies 1.8 above it.
        final = mean + np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
        made.append(
            Series(
                label=label,
                policy=label,
                stage="test",
                grid="",
                setting={} if value is None else {name: value},
                environment={},
                trials=(0, 1, 2, 3, 4),
                rounds=np.array([10.0]),
                regret=final[:, None],
                final_regret=final,
                final_weak_regret=final,
            )
        )
    return made


def family(name: str = "paper-5", design: Means = DESIGN, final: Means = FINAL) -> FamilyStandings:
    spec = Spec(name=name, policies=POLICIES, rounds=10, trials=5)
    return compute_standings(name, "a title", (spec, series(design)), (spec, series(final)), [UNDER_TEST.label])


def scaled(means: Means, label: str, factors: Sequence[float]) -> Means:
    changed = iter(factors)
    return {key: mean * next(changed) if key[0] == label else mean for key, mean in means.items()}


def test_the_setting_is_chosen_on_the_design_instances_and_judged_on_the_final_ones() -> None:
    standing = family().find("MaxInP")
    assert standing is not None
    assert standing.chosen.setting == {"radius": 3.0}
    assert standing.mean == pytest.approx(100.0)
    assert not standing.at_edge


def test_a_choice_at_the_edge_of_its_grid_is_marked() -> None:
    edge = family(design=scaled(DESIGN, "MaxInP", [0.5, 1.0, 1.0])).find("MaxInP")
    assert edge is not None
    assert edge.at_edge
    assert edge.chosen.setting == {"radius": 1.0}


def test_the_default_setting_is_found_where_the_grid_holds_it() -> None:
    fgts, maxinp = family().find("FGTS"), family().find("MaxInP")
    assert fgts is not None
    assert maxinp is not None
    assert fgts.default is not None
    assert fgts.default.setting == {"alpha": 0.1}
    assert maxinp.default is None  # its default radius is 5


def test_the_rival_is_the_best_tuned_baseline_on_the_final_instances() -> None:
    rival = family().rival
    assert rival is not None
    assert rival.label == "MaxInP"  # 100 at its chosen radius, against 110 of FGTS; the new policy and the floor do not count
    other = family(final=scaled(FINAL, "MaxInP", [1.0, 1.2, 1.0])).rival
    assert other is not None
    assert other.label == "FGTS"


def test_a_contest_is_ratios_to_the_rival_of_each_family() -> None:
    families = [family("paper-5"), family("weak", final=scaled(FINAL, "Foresight", [8.0]))]
    own = compare_with_rivals(UNDER_TEST, families)
    assert own is not None
    assert own.means == pytest.approx((0.5, 4.0))
    assert own.tails == pytest.approx((51.8 / 101.8, 401.8 / 101.8))
    assert own.wins == 1
    assert own.geometric_mean == pytest.approx(np.sqrt(0.5 * 4.0))
    plain = compare_with_rivals(Contender(label="FGTS", name="FGTS (default)", default_setting=True), families)
    assert plain is not None
    assert plain.means == pytest.approx((1.1, 1.1))
    assert compare_with_rivals(Contender(label="VACDB"), families) is None


def test_verdicts_count_the_families_in_which_a_claim_held() -> None:
    families = [family("paper-5"), family("weak", final=scaled(FINAL, "Foresight", [8.0]))]
    own = compare_with_rivals(UNDER_TEST, families)
    assert own is not None
    mean, tail = contest_verdicts([own])
    assert mean.outcome == tail.outcome == "held in 1 of 2"
    assert "400 against 100 of MaxInP (radius 3), 4.00 times; paired difference +300" in mean.findings[1].words


def test_tables_say_what_was_computed() -> None:
    families = [family("paper-5"), family("weak", final=scaled(FINAL, "Foresight", [8.0]))]
    own = compare_with_rivals(UNDER_TEST, families)
    assert own is not None
    table = contest_table([own], families)
    assert table.rows[0][2:7] == ("MaxInP (radius 3)", "100 ± 1", "50 ± 1", "0.50", "0.51")
    assert table.rows[-1][5] == "1.41"
    rows = {row[0]: row for row in family_table(families[0]).rows}
    assert list(rows) == ["Foresight", "MaxInP", "FGTS", "Uniform"]
    assert rows["MaxInP"][1:] == ("radius 3", "100", "1", "100", "102", "1.00", "")
    assert rows["FGTS"][7] == "110"
    grid = grid_table("MaxInP", families)
    assert grid is not None
    assert grid.headings == ("family", "radius 1", "radius 3", "radius 10")
    assert grid.rows[0] == ("paper-5", "80 (82)", "70 (72) *", "75 (77)")
    assert grid_table("Foresight", families) is None


def test_settings_are_ranked_by_their_geometric_mean_loss_over_the_families() -> None:
    # Means by radius: 80, 70, 75 and 80, 350, 75.
    families = [family("paper-5"), family("weak", design=scaled(DESIGN, "MaxInP", [1.0, 5.0, 1.0]))]
    ranked = rank_settings("MaxInP", families)
    assert [one.text for one in ranked] == ["radius 10", "radius 1", "radius 3"]
    assert ranked[0].losses == pytest.approx((75 / 70, 1.0))
    assert ranked[2].losses == pytest.approx((1.0, 350 / 75))
    assert ranked[2].loss == pytest.approx(np.sqrt(350 / 75))
    table = ranking_table("MaxInP", families, ranked)
    assert table.headings == ("setting", "loss", "worst", "tail", "paper-5", "weak")
    assert table.rows[0][0] == "radius 10"
    # Chosen on the design instances, judged on the final ones against the best tuned baseline of each family.
    single = {row[0]: row for row in one_setting_table(families).rows}
    assert single["MaxInP"][1] == "radius 10"
    assert single["MaxInP"][2] == f"{np.sqrt(200 / 100 * 200 / 110):.2f}"


def test_a_setting_that_was_chosen_and_never_judged_is_refused() -> None:
    missing = {key: mean for key, mean in FINAL.items() if key != ("MaxInP", 3.0)}
    with pytest.raises(InvalidInputError, match="MaxInP did not play its chosen setting"):
        family(final=missing)
    fewer = {key: mean for key, mean in FINAL.items() if key != ("MaxInP", 1.0)}
    assert family(final=fewer).find("MaxInP") is not None


def test_final_instances_are_for_the_settings_somebody_could_have_chosen_without_them() -> None:
    # By radius 1, 3, 10 the design means are 80, 70, 75 and 80, 350, 75: chosen are 3 and 10, and 10 loses least over both.
    spec = Spec(name="paper-5", policies=POLICIES, rounds=10, trials=5)
    hard = scaled(DESIGN, "MaxInP", [1.0, 5.0, 1.0])
    designed = [family("paper-5", final=DESIGN), family("weak", design=hard, final=hard)]
    cut = final_specs({"paper-5": spec, "weak": spec}, designed)
    grids = {(name, policy.label): dict(policy.grid) for name, one in cut.items() for policy in one.policies}
    assert grids["paper-5", "MaxInP"] == {"radius": (3.0, 10.0)}
    assert grids["weak", "MaxInP"] == {"radius": (10.0,)}
    assert grids["weak", "FGTS"] == {"alpha": (0.1,)}, "chosen, best over both, and the default in one"
    assert grids["weak", "Foresight"] == {}


def test_ratios_of_no_regret_at_all_are_equal_or_infinite() -> None:
    assert ratio(0.0, 0.0) == 1.0
    assert ratio(1.0, 0.0) == np.inf
