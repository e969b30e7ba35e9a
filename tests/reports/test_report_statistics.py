"""The numbers of a report agree with their definitions, on series made by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from duelist.core.errors import InvalidInputError
from duelist.experiments.statistics import (
    BandKind,
    curve_band,
    growth_exponent,
    paired_difference,
    share_with_smallest_spread,
    summary,
)
from duelist.experiments.sweep.series import Series
from duelist.reports.claims import Verdict, figure1_verdicts, figure2_verdicts, warm_up_verdicts
from duelist.reports.tables import final_table, tuning_table, verdict_table
from duelist.typing import FloatArray


def series(
    final: list[float] | FloatArray,
    *,
    label: str = "FGTS",
    policy: str = "",
    grid: str = "",
    setting: dict[str, float] | None = None,
    dim: int = 5,
    power: float = 0.5,
) -> Series:
    """A series whose every curve is final * (t / T)^power."""
    rounds = np.arange(10.0, 1001.0, 10.0)
    values = np.asarray(final, dtype=float)
    return Series(
        label=label,
        policy=policy or label,
        stage="test",
        grid=grid,
        setting=dict(setting or {}),
        environment={"dim": dim},
        trials=tuple(range(len(values))),
        rounds=rounds,
        regret=values[:, None] * (rounds / 1000.0) ** power,
        final_regret=values,
        final_weak_regret=values / 2,
    )


NOISE = np.random.default_rng(3).normal(size=30)


def test_a_summary_is_mean_sd_median_and_quantiles() -> None:
    numbers = summary(series([1.0, 2.0, 3.0, 4.0, 10.0]))
    assert numbers.mean == 4.0
    assert numbers.sd == pytest.approx(math.sqrt(50 / 4))
    assert numbers.median == 3.0
    assert (numbers.q05, numbers.q95) == pytest.approx((1.2, 8.8))
    assert numbers.weak == 2.0


def test_the_paired_t_interval_is_that_of_scipy() -> None:
    a, b = series(100 + 10 * NOISE), series(90 + 30 * NOISE[::-1])
    expected = stats.ttest_rel(a.final_regret, b.final_regret).confidence_interval(0.95)
    difference = paired_difference(a, b).t
    assert (difference.low, difference.high) == pytest.approx((expected.low, expected.high))
    assert difference.estimate == pytest.approx(a.final_regret.mean() - b.final_regret.mean())


def test_the_bootstrap_interval_is_near_the_t_interval_on_normal_data() -> None:
    difference = paired_difference(series(100 + 10 * NOISE), series(90 + 30 * NOISE[::-1]))
    width = difference.t.high - difference.t.low
    assert difference.bootstrap.low == pytest.approx(difference.t.low, abs=0.1 * width)
    assert difference.bootstrap.high == pytest.approx(difference.t.high, abs=0.1 * width)


def test_what_the_instances_share_leaves_the_paired_difference() -> None:
    hard = 1000 * np.abs(NOISE)
    difference = paired_difference(series(hard + 5.0), series(hard)).t
    assert (difference.low, difference.high) == pytest.approx((5.0, 5.0))


def test_series_on_other_instances_are_not_paired() -> None:
    with pytest.raises(InvalidInputError, match="same instances"):
        paired_difference(series([1.0, 2.0]), series([1.0, 2.0], dim=10))


def test_the_growth_exponent_is_that_of_the_second_half() -> None:
    """A policy that pays in full up to the middle and grows like the root from there."""
    one = series([100.0, 200.0])
    late = one.rounds >= 500
    curve = np.where(late, 5.0 * (one.rounds / 500) ** 0.5, one.rounds / 100)
    exponent = growth_exponent(replace(one, regret=one.final_regret[:, None] * curve))
    assert exponent.estimate == pytest.approx(0.5)


@pytest.mark.parametrize("kind", ["sd", "se", "bootstrap", "quantiles"])
def test_bands_are_what_they_are_called(kind: BandKind) -> None:
    regret = np.abs(np.random.default_rng(0).normal(100, 30, size=(40, 3)))
    band = curve_band(regret, kind)
    for column in range(3):
        values = regret[:, column].tolist()
        mean = sum(values) / 40
        sd = math.sqrt(sum((value - mean) ** 2 for value in values) / 39)
        generator = np.random.default_rng(1)
        means = [np.mean(generator.choice(values, 40)) for _ in range(4000)]
        wanted = {
            "sd": (mean, mean - sd, mean + sd),
            "se": (mean, mean - sd / math.sqrt(40), mean + sd / math.sqrt(40)),
            "bootstrap": (mean, *np.quantile(means, [0.025, 0.975])),
            "quantiles": tuple(np.quantile(values, [0.5, 0.05, 0.95])),
        }[kind]
        found = (band.middle[column], band.low[column], band.high[column])
        # Of bootstraps with other resamples the ends agree to a tenth of a standard error or two.
        assert found == pytest.approx(wanted, abs=0.2 * sd / math.sqrt(40) if kind == "bootstrap" else 1e-9)


@pytest.mark.parametrize("power", [0.3, 0.5, 1.0])
def test_the_growth_exponent_of_a_power_is_that_power(power: float) -> None:
    exponent = growth_exponent(series([50.0, 100.0, 150.0], power=power))
    assert (exponent.estimate, exponent.low, exponent.high) == pytest.approx((power, power, power))


def test_the_share_of_resamples_follows_the_spread() -> None:
    steady, wild = series(100 + NOISE), series(100 + 50 * NOISE[::-1])
    assert share_with_smallest_spread(steady, [wild]) == 1.0
    assert share_with_smallest_spread(wild, [steady]) == 0.0


def outcomes(verdicts: list[Verdict]) -> dict[tuple[str, str], str]:
    return {(verdict.claim.split()[-1], verdict.conditions): verdict.outcome for verdict in verdicts}


def test_a_large_margin_is_found_where_it_is_and_only_there() -> None:
    own = series(100 + NOISE, label="FGTS")
    both = outcomes(
        figure1_verdicts(
            [
                own,
                series(300 + 9 * NOISE, label="MaxInP", grid="paper", setting={"radius": 10.0}),
                series(120 + 9 * NOISE, label="MaxInP", grid="finer", setting={"radius": 5.0}),
            ]
        )
    )
    assert both["margin", "FGTS; baselines: paper's grid"] == "held"
    assert both["margin", "FGTS; baselines: finer grid"] == "did not hold"
    assert both["sd", "FGTS; baselines: finer grid"] == "held"


def test_a_margin_that_noise_explains_does_not_hold() -> None:
    wild = 100 + 400 * np.abs(NOISE[::-1])
    (margin, comparable, _) = figure1_verdicts(
        [series(100 + 400 * np.abs(NOISE), label="FGTS"), series(wild * 1.01, label="MaxInP", grid="paper")]
    )
    assert margin.outcome == "did not hold"
    assert "not clearly different" in margin.findings[0].words
    assert comparable.outcome == "held"


def test_a_worse_fgts_is_said_to_be_worse() -> None:
    (margin, comparable, sd) = figure1_verdicts([series(300 + 9 * NOISE), series(100 + NOISE, label="MaxInP", grid="paper")])
    assert "clearly worse" in margin.findings[0].words
    assert {verdict.outcome for verdict in (margin, comparable, sd)} == {"did not hold"}


def test_a_smallest_sd_that_every_second_resample_denies_is_not_decided() -> None:
    steady, wilder = 100 + 10 * NOISE, 100 + 10.2 * NOISE[::-1]
    assert steady.std() < wilder.std()
    sd = figure1_verdicts([series(steady), series(wilder, label="MaxInP", grid="paper")])[-1]
    assert sd.outcome == "not decided"
    both = [series(steady, dim=10), series(9 * steady, label="MaxInP", grid="paper", dim=10)]
    sd = figure1_verdicts([series(steady), series(wilder, label="MaxInP", grid="paper"), *both])[-1]
    assert sd.outcome == "held in 1, not decided in 1 of 2"


def test_a_sampler_is_called_exact_only_where_its_chains_passed_the_check() -> None:
    good = series(100 + NOISE, label="FGTS (exact sampling)", setting={"alpha": 0.1})
    stuck = replace(good, not_converged=3)
    assert good.title == "FGTS (exact sampling)"
    assert "exact" not in stuck.title
    assert f"3 of {len(NOISE)}" in stuck.title
    zero = series(100 + NOISE, label="FGTS (exact sampling)", setting={"alpha": 0.0})
    assert "exact" not in figure2_verdicts([zero, stuck])[0].conditions
    assert "exact" not in final_table("t", [stuck], lambda _: None, "").rows[0][1]


def test_on_the_papers_grids_colstim_counts_as_the_paper_tunes_it() -> None:
    def judge(grid: str) -> str:
        rows = [
            series(100 + NOISE, label="FGTS"),
            series(300 + 9 * NOISE, label="CoLSTIM", grid=grid, setting={"perturbation": 0.1}),
            series(101 + NOISE, label="CoLSTIM (radius tuned)", policy="CoLSTIM", grid=grid, setting={"radius": 0.1}),
        ]
        return figure1_verdicts(rows)[0].outcome

    assert judge("paper") == judge("paper_ridge") == judge("paper_covariance") == "held"
    assert judge("finer") == "did not hold"


@pytest.mark.parametrize(("mean", "outcome"), [(140.0, "held"), (160.0, "did not hold"), (60.0, "did not hold")])
def test_a_ridge_is_as_good_as_a_warm_up_within_half_as_much_again(mean: float, outcome: str) -> None:
    ridges = {"paper_ridge": "MaxInP (ridge 0.001)", "paper_covariance": "MaxInP (ridge 0.001 in the covariance)"}
    rows = [
        series(mean + NOISE, label=label, policy="MaxInP", grid=grid, setting={"radius": 1.0}) for grid, label in ridges.items()
    ]
    rows.append(series(100 + NOISE, label="MaxInP (warm-up)", policy="MaxInP", grid="warm_up", setting={"radius": 1.0}))
    verdicts = warm_up_verdicts(rows)
    assert [verdict.conditions for verdict in verdicts] == [f"{label} against MaxInP (warm-up)" for label in ridges.values()]
    assert [verdict.outcome for verdict in verdicts] == [outcome] * 2
    assert warm_up_verdicts(rows[:2]) == []
    # Twice the mean, which noise explains, is no impact that was shown.
    wild = series(200 + 900 * NOISE, label="MaxInP (ridge 0.001)", policy="MaxInP", grid="paper_ridge")
    (verdict,) = warm_up_verdicts([wild, rows[2]])
    assert (verdict.outcome, "not clearly different" in verdict.findings[0].words) == ("held", True)


def test_outcomes_count_the_environments() -> None:
    found = figure1_verdicts(
        [
            series(100 + NOISE, dim=5),
            series(100 + NOISE, dim=10),
            series(400 + NOISE, label="MaxInP", grid="paper", dim=5),
            series(101 + NOISE, label="MaxInP", grid="paper", dim=10),
        ]
    )
    assert found[0].outcome == "held in 1 of 2"


def test_robustness_in_alpha_is_judged_on_the_worst_and_the_safe_range_is_named() -> None:
    means = {0.0: 100.0, 0.1: 110.0, 1.0: 140.0, 10.0: 900.0}
    robust, without = figure2_verdicts([series(mean + NOISE, setting={"alpha": a}) for a, mean in means.items()])
    assert robust.outcome == "did not hold"
    assert "within 1.5 times the best up to alpha 1" in robust.findings[0].words
    assert without.outcome == "held"
    flat = figure2_verdicts([series(100 + NOISE, setting={"alpha": a}) for a in means])
    assert flat[0].outcome == "held"


def test_tables_hold_the_numbers_of_the_series() -> None:
    own, other = series([100.0, 200.0]), series([110.0, 230.0], label="MaxInP", grid="paper", setting={"radius": 5.0})
    table = final_table("Final", [own, other], lambda _one: own, "FGTS")
    assert [row[:7] for row in table.rows] == [
        ("d = 5", "FGTS", "", "", "150", "71", "150"),
        ("d = 5", "MaxInP", "paper's grid", "radius 5", "170", "85", "170"),
    ]
    assert table.rows[0][10] == ""
    assert table.rows[1][10].startswith("+20 (")
    tuned = tuning_table([series([1.0, 3.0], setting={"radius": 0.1}), series([4.0, 8.0], setting={"radius": 1.0})], "mean")
    assert tuned.headings[2:] == ("tuned", "0.1", "1")
    assert tuned.rows == (("d = 5", "FGTS", "radius", "2", "6"),)
    assert verdict_table(figure1_verdicts([own, other])).rows[0][2] == "did not hold"
