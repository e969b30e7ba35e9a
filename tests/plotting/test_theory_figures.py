"""Figures of the theory room show the numbers they were given."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from matplotlib.lines import Line2D

from duelist.core.errors import InvalidInputError
from duelist.environments.linear import LinearDuels
from duelist.experiments.theory import decompose, play_hard_instances
from duelist.plotting.style import save_figure
from duelist.plotting.theory import bounds_figure, decomposition_figure
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.uniform import Uniform
from duelist.posteriors.priors import UniformBall
from duelist.theory.linear_bounds import lower_bound


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, 3, 50])
def test_the_drawn_parts_end_at_their_totals_and_add_up(rounds: int, tmp_path: Path) -> None:
    split = decompose(FGTS(), LinearDuels(dim=3, arms=4), rounds=rounds, trials=2)
    figure = decomposition_figure(split)
    left, right = figure.axes
    ends = [float(np.asarray(line.get_ydata())[-1]) for line in left.get_lines()[:3]]
    expected = [part.sum(axis=1).mean() for part in (split.from_errors, split.from_optimism, split.regret)]
    np.testing.assert_allclose(ends, expected, rtol=1e-9, atol=1e-12)
    # Windows cover every round once: weighted by their widths they give the totals back.
    for line, total in zip(right.get_lines(), expected, strict=False):
        start, covered = 0.0, 0.0
        for middle, mean in zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True):
            stop = 2 * middle - 1 - start
            start, covered = stop, covered + (stop - start) * mean
        assert start == rounds
        assert covered == pytest.approx(total)
    assert [path.stat().st_size > 1000 for path in save_figure(figure, tmp_path / "split")] == [True, True]


def test_the_bounds_figure_draws_every_policy_and_both_bounds() -> None:
    results = play_hard_instances({"a": Uniform(), "b": Uniform()}, dim=2, horizons=[300, 400], draws=3)
    axes = bounds_figure(results, UniformBall(1.0)).axes[0]
    handles, labels = axes.get_legend_handles_labels()
    assert set(labels) == {"a", "b", "upper bound (FGTS at theory settings)", "knowing nothing", "lower bound"}
    lower = handles[labels.index("lower bound")]
    expected = [lower_bound(dim=2, horizon=T, bound=1.0).value for T in (300, 400)]
    assert isinstance(lower, Line2D)
    np.testing.assert_allclose(np.asarray(lower.get_ydata()), expected)


def test_results_of_several_dimensions_do_not_fit_one_figure() -> None:
    results = [
        *play_hard_instances({"u": Uniform()}, dim=1, horizons=[80], draws=2),
        *play_hard_instances({"u": Uniform()}, dim=2, horizons=[80], draws=2),
    ]
    with pytest.raises(InvalidInputError, match="one dimension"):
        bounds_figure(results, UniformBall(1.0))


@pytest.mark.slow
def test_the_example_draws_both_figures_of_the_theory_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[2] / "examples" / "theory_figures.py"
    draw = runpy.run_path(str(example))["draw"]
    draw(tmp_path, rounds=5, trials=2, horizons=(288,), draws=2)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"theory-{name}.{suffix}" for name in ("bounds", "decomposition") for suffix in ("png", "pdf")
    }
    assert "lower bound 1.00" in capsys.readouterr().out


def test_the_snippets_of_the_theory_page_run_and_print_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "theory.md").read_text()
    bounds, rates, split = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(bounds, {})
    said = "58860\n" + "\n".join(line[2:] for line in bounds.splitlines() if line.startswith("# ")) + "\n"
    assert capsys.readouterr().out == said
    exec(rates, {})
    printed = [line.split()[-1] for line in capsys.readouterr().out.splitlines()]
    assert ", ".join(printed) == rates.rstrip().rpartition("# ")[2]
    exec(split, {})
