"""The regret figure shows what was measured, legibly and without global state."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import duelist
from duelist.core.errors import DuelistError, InvalidInputError
from duelist.experiments.comparison import Comparison
from duelist.plotting.regret import MOST_BANDS, find_off_scale, regret_figure
from duelist.plotting.style import DASHES, OKABE_ITO, line_style, save_figure
from duelist.theory import regret_floor


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    environment = duelist.LinearDuels(dim=4, arms=6)
    policies = {"one": duelist.Uniform(), "two": duelist.Uniform()}
    return duelist.compare(policies, environment, rounds=40, trials=5, seed=1, progress=False)


def test_the_left_panel_is_the_mean_and_the_right_one_the_median(comparison: Comparison) -> None:
    left, right = regret_figure(comparison).axes
    regret = comparison.runs["one"].regret
    by_label = [{line.get_label(): line for line in axes.get_lines()} for axes in (left, right)]
    np.testing.assert_allclose(np.asarray(by_label[0]["one"].get_ydata(), dtype=float), regret.mean(axis=0))
    np.testing.assert_allclose(np.asarray(by_label[1]["one"].get_ydata(), dtype=float), np.median(regret, axis=0))
    np.testing.assert_array_equal(by_label[0]["one"].get_xdata(), np.arange(1, 41))


def test_bands_are_one_sd_and_the_outer_quantiles(comparison: Comparison) -> None:
    left, right = regret_figure(comparison).axes
    regret = comparison.runs["one"].regret
    highest = [
        float(np.asarray(axes.collections[0].get_paths()[0].vertices, dtype=float)[:, 1].max()) for axes in (left, right)
    ]
    assert highest[0] == pytest.approx(float((regret.mean(axis=0) + regret.std(axis=0, ddof=1)).max()))
    assert highest[1] == pytest.approx(float(np.quantile(regret, 0.95, axis=0).max()))


@pytest.mark.slow
def test_long_runs_are_thinned_and_keep_both_ends() -> None:
    run = duelist.simulate(duelist.Uniform(), duelist.LinearDuels(dim=3, arms=4), rounds=3000, trials=2, seed=0, progress=False)
    left, _ = regret_figure(Comparison({"Uniform": run})).axes
    rounds = np.asarray(left.get_lines()[0].get_xdata())
    assert len(rounds) <= 500
    assert (rounds[0], rounds[-1]) == (1, 3000)


def test_drawing_leaves_pyplot_alone(comparison: Comparison) -> None:
    pyplot = sys.modules.pop("matplotlib.pyplot", None)
    try:
        regret_figure(comparison)
        assert "matplotlib.pyplot" not in sys.modules
    finally:
        if pyplot is not None:
            sys.modules["matplotlib.pyplot"] = pyplot


@pytest.fixture(scope="module")
def many(comparison: Comparison) -> Comparison:
    """More policies than bands can show: equal ones, and one far above the others."""
    run = comparison.runs["one"]
    far = type(run)(**{**vars(run), "regrets": {"average": 100 * run.regret}})
    return Comparison({**{f"policy {number}": run for number in range(MOST_BANDS)}, "floor": far})


def test_many_policies_get_mean_curves_without_bands_and_a_name_at_each_end(many: Comparison) -> None:
    figure = regret_figure(many)
    left, _ = figure.axes
    assert not left.collections
    curves = {line.get_label(): np.asarray(line.get_ydata(), dtype=float) for line in left.get_lines()}
    for name, run in many.runs.items():
        np.testing.assert_allclose(curves[name], run.regret.mean(axis=0))
    names = {text.get_text(): text.get_position()[1] for text in left.texts}
    final = many.runs["policy 0"].final_regret.mean()
    assert set(names) == {f"policy {i} {final:,.0f}" for i in range(MOST_BANDS)} | {f"floor {100 * final:,.0f} (off scale)"}
    heights = sorted(names.values())
    assert min(np.diff(heights)) >= 0.05, "names at the ends of curves overlap"
    assert left.get_ylim()[1] < 100 * final


def test_the_distribution_after_the_last_round_shows_every_policy_best_first(many: Comparison) -> None:
    _, right = regret_figure(many).axes
    names = [label.get_text() for label in right.get_yticklabels()]
    assert names[0] == "floor"
    rows = [np.asarray(line.get_xdata(), dtype=float) for line in right.get_lines()]
    for height, name in enumerate(names):
        final = many.runs[name].final_regret
        outer, inner, median, mean = rows[4 * height : 4 * height + 4]
        np.testing.assert_allclose(outer, np.quantile(final, [0.05, 0.95]))
        np.testing.assert_allclose(inner, np.quantile(final, [0.25, 0.75]))
        assert (median[0], mean[0]) == (pytest.approx(np.median(final)), pytest.approx(final.mean()))
        low, high = right.get_xlim()
        assert low < outer[0]
        assert outer[1] < high


@pytest.mark.slow
def test_the_title_names_the_problem(comparison: Comparison, many: Comparison) -> None:
    for one in (comparison, many):
        assert regret_figure(one).get_suptitle() == "Regret on LinearDuels (d = 4, K = 6): lower is better"


@pytest.mark.slow
def test_the_same_figure_is_the_same_bytes(comparison: Comparison, tmp_path: Path) -> None:
    once = save_figure(regret_figure(comparison), tmp_path / "once")
    again = save_figure(regret_figure(comparison), tmp_path / "again")
    assert [path.suffix for path in once] == [".png", ".pdf"]
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]


def test_neighbouring_lines_differ_in_colour_and_in_dashes() -> None:
    lines = [line_style(number) for number in range(len(OKABE_ITO) * len(DASHES))]
    assert len(set(lines)) == len(lines)
    for number in range(len(lines) - 1):
        assert lines[number].colour != lines[number + 1].colour
        assert lines[number].dashes != lines[number + 1].dashes


@pytest.mark.parametrize(
    ("finals", "outside"),
    [
        ({"a": 300.0, "b": 200.0, "floor": 4000.0}, {"floor"}),
        ({"a": 300.0, "b": 200.0, "c": 700.0}, set()),
        ({"a": 300.0, "b": 2000.0, "c": 4000.0}, {"b", "c"}),
        ({"a": 0.0, "b": 10.0}, set()),
        ({"alone": 5.0}, set()),
    ],
)
def test_only_policies_far_above_all_others_leave_the_frame(finals: dict[str, float], outside: set[str]) -> None:
    assert find_off_scale(finals) == outside


def test_a_policy_that_leaves_the_frame_is_named_with_its_regret() -> None:
    environment = duelist.LinearDuels(dim=3, arms=4)
    run = duelist.simulate(duelist.Uniform(), environment, rounds=50, trials=2, seed=0, progress=False)
    regret = 100 * run.regret
    worse = type(run)(**{**vars(run), "regrets": {"average": regret}})
    figure = regret_figure(Comparison({"good": run, "bad": worse}))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[0] == "good"
    assert f"{regret[:, -1].mean():,.0f}" in labels[1]
    assert figure.axes[0].get_ylim()[1] < regret[:, -1].mean()


def test_an_empty_comparison_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least one run"):
        regret_figure(Comparison({}))


def test_without_matplotlib_the_error_says_what_to_install(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(DuelistError, match=r'pip install "duelist\[plot\]"'):
        regret_figure(comparison)


def test_the_floor_is_a_line_under_the_means_only(comparison: Comparison) -> None:
    floor = regret_floor(dim=1, arms=2, rounds=50)
    plain, (left, right) = regret_figure(comparison), regret_figure(comparison, floor=floor).axes
    assert len(right.get_lines()) == len(plain.axes[1].get_lines())
    line = left.get_lines()[-1]
    np.testing.assert_allclose(np.asarray(line.get_ydata(), dtype=float), floor.curve[:40])
    np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 41))


def test_a_floor_of_fewer_rounds_than_the_figure_is_refused(comparison: Comparison) -> None:
    with pytest.raises(InvalidInputError, match="rounds=40"):
        regret_figure(comparison, floor=regret_floor(dim=1, arms=2, rounds=39))
