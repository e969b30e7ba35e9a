"""Figures show the numbers they are given, and a report is one file that says all of it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from duelist.experiments import load_shipped_spec
from duelist.experiments.sweep.policy_spec import EnvironmentSpec
from duelist.experiments.sweep.series import Series
from duelist.plotting.paper import PaperFigure, alpha_figures, comparison_figures
from duelist.reports.document import Report, Section, html_report, markdown_report
from duelist.reports.paper import floor_words
from duelist.reports.tables import ReportTable
from duelist.theory import regret_floor
from duelist.typing import FloatArray

pytest.importorskip("matplotlib")
NOISE = np.abs(np.random.default_rng(1).normal(size=8))


def series(label: str, final: FloatArray, *, grid: str = "", setting: dict[str, float] | None = None, dim: int = 5) -> Series:
    rounds = np.arange(10.0, 101.0, 10.0)
    return Series(
        label=label,
        policy=label.split(" ")[0],
        stage="test",
        grid=grid,
        setting=dict(setting or {}),
        environment={"dim": dim},
        trials=tuple(range(len(final))),
        rounds=rounds,
        regret=final[:, None] * np.sqrt(rounds / 100),
        final_regret=final,
        final_weak_regret=final / 2,
    )


@pytest.fixture(scope="module")
def figures() -> dict[str, PaperFigure]:
    own = [series("FGTS (exact sampling)", 100 + 10 * NOISE, dim=dim) for dim in (5, 10)]
    others = [
        series("MaxInP", scale * (100 + 10 * NOISE), grid=grid, setting={"radius": 5.0}, dim=dim)
        for dim in (5, 10)
        for grid, scale in (("paper", 3.0), ("finer", 1.2))
    ]
    uniform = [series("Uniform", 5000 + NOISE, dim=dim) for dim in (5, 10)]
    tuning = [series("MaxInP", radius * (1 + NOISE), setting={"radius": radius}, dim=5) for radius in (0.1, 5.0)]
    made = comparison_figures("figure1", "Title", [*own, *others, *uniform], tuning, [0.1])
    return {figure.name: figure for figure in made}


@pytest.mark.slow
def test_there_is_a_panel_for_every_grid_and_environment(figures: dict[str, PaperFigure]) -> None:
    titles = [axes.get_title() for axes in figures["figure1-mean"].figure.axes]
    grids = ("paper's grid", "finer grid")
    assert titles == [f"d = {dim}: baselines tuned on\nthe {grid}" for grid in grids for dim in (5, 10)]
    assert set(figures) == {f"figure1-{kind}" for kind in ("mean", "median", "final", "paired", "growth", "tuning")}


def lines(figure: PaperFigure, panel: int) -> list[Any]:
    return list(figure.figure.axes[panel].get_lines())


def test_lines_are_means_and_medians(figures: dict[str, PaperFigure]) -> None:
    own = 100 + 10 * NOISE
    assert lines(figures["figure1-mean"], 0)[0].get_ydata()[-1] == pytest.approx(own.mean())
    assert lines(figures["figure1-median"], 0)[0].get_ydata()[-1] == pytest.approx(np.median(own))
    assert lines(figures["figure1-mean"], 0)[1].get_ydata()[-1] == pytest.approx(3 * own.mean())
    assert lines(figures["figure1-mean"], 2)[1].get_ydata()[-1] == pytest.approx(1.2 * own.mean())


def test_lines_differ_in_colour_and_in_dashes_and_the_legend_names_each_once(figures: dict[str, PaperFigure]) -> None:
    drawn = lines(figures["figure1-mean"], 0)
    assert len({line.get_color() for line in drawn}) == len(drawn)
    assert len({str(line._unscaled_dash_pattern) for line in drawn}) == len(drawn)
    (legend,) = figures["figure1-mean"].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["FGTS (exact sampling)", "MaxInP", "Uniform"]


def test_random_play_leaves_the_frame_and_is_named_with_its_number(figures: dict[str, PaperFigure]) -> None:
    axes = figures["figure1-mean"].figure.axes[0]
    assert axes.get_ylim()[1] < 1000
    assert any(re.fullmatch(r"Uniform ends at 5,00\d", text.get_text()) for text in axes.texts)


def test_exponents_stand_at_the_ends_of_the_lines(figures: dict[str, PaperFigure]) -> None:
    axes = figures["figure1-growth"].figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["0.50", "0.50", "0.50"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


@pytest.mark.slow
def test_paired_differences_are_to_fgts_on_the_same_trials(figures: dict[str, PaperFigure]) -> None:
    axes = figures["figure1-paired"].figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Uniform", "MaxInP"]
    dots = [np.asarray(line.get_xdata())[0] for line in axes.get_lines() if line.get_marker() == "o"]
    assert dots[1] == pytest.approx(2 * (100 + 10 * NOISE).mean())


def test_every_trial_is_a_dot_of_the_final_regrets(figures: dict[str, PaperFigure]) -> None:
    axes = figures["figure1-final"].figure.axes[0]
    clouds = [np.sort(line.get_xdata()) for line in axes.get_lines() if line.get_marker() == "."]
    np.testing.assert_allclose(clouds[-1], np.sort(100 + 10 * NOISE))


def test_alphas_have_a_row_for_each_sampler() -> None:
    everything = [
        series(label, 100 + 10 * NOISE + alpha, setting={"alpha": alpha})
        for label in ("FGTS (exact sampling)", "FGTS (paper's sampler)")
        for alpha in (0.0, 0.1, 10.0)
    ]
    made = {figure.name: figure.figure for figure in alpha_figures("figure2", "Title", everything)}
    assert [axes.get_title() for axes in made["figure2-mean"].axes] == [
        "d = 5: FGTS (exact sampling)",
        "d = 5: FGTS (paper's sampler)",
    ]
    (legend,) = made["figure2-mean"].legends
    assert [text.get_text() for text in legend.get_texts()] == ["alpha = 0", "alpha = 0.1", "alpha = 10"]


def small_report(figure: PaperFigure) -> Report:
    table = ReportTable("Numbers", ("who", "how much"), (("a & b", "12"), ("two\nlines", "did not hold")), "Read it so.")
    return Report("A <title>", [Section("First", ["It's a paragraph."], [table], [figure], listing="x < y")])


def test_the_page_escapes_texts_and_embeds_images(figures: dict[str, PaperFigure]) -> None:
    page = html_report(small_report(figures["figure1-mean"]), {"figure1-mean": b"\x89PNG..."})
    for wanted in (
        "A &lt;title&gt;",
        "a &amp; b",
        "two<br>lines",
        "x &lt; y",
        'class="not"',
        "data:image/png;base64,iVBORy4uLg==",
    ):
        assert wanted in page
    assert "<title>A <title>" not in page


def test_the_markdown_says_the_same_with_links(figures: dict[str, PaperFigure]) -> None:
    text = markdown_report(small_report(figures["figure1-mean"]))
    for wanted in (
        "# A <title>",
        "| who | how much |",
        "| two<br>lines | did not hold |",
        "](figure1-mean.png)",
        "Read it so.",
    ):
        assert wanted in text


def test_a_report_names_the_floor_where_arms_are_at_all_corners_of_the_papers_problem() -> None:
    figure1 = replace(load_shipped_spec("figure1"), rounds=40)
    floor = regret_floor(dim=5, arms=32, rounds=40, instances=24)
    (words,) = floor_words(figure1)  # d = 5 only: at d = 10 and 15 the 32 arms are a few of the corners
    assert f"below {floor.value:.1f}" in words
    assert "all 32 corners" in words
    for parameters in ({"dim": 5, "arms": 31}, {"dim": 5, "arms": 32, "theta_norm": 2.0}):
        assert not floor_words(replace(figure1, environment=EnvironmentSpec(parameters=parameters)))
