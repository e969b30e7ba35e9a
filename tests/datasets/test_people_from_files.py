"""Fits of votes from files in the formats of the real ones, at their size: against other tools, and by what was held out."""

from __future__ import annotations

import runpy
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist.datasets import fit_votes, load
from duelist.typing import FloatArray
from tests.datasets.test_r_sets import paired
from tests.support.r_writer import Vector, factor, frame, rda_bytes, write_lazy_data

ROOT = Path(__file__).parents[2]


def by_scikit_learn(rows: FloatArray, won: Any) -> FloatArray:
    """Maximum likelihood: a tie is two rows of half the weight."""
    linear = pytest.importorskip("sklearn.linear_model")
    weights, outcomes = np.concatenate([won, 1.0 - won]), np.repeat([1, 0], len(won))
    model = linear.LogisticRegression(C=1e6, tol=1e-8, max_iter=2000, fit_intercept=False)
    model.fit(np.concatenate([rows, rows])[weights > 0], outcomes[weights > 0], sample_weight=weights[weights > 0])
    return np.asarray(model.coef_[0])


def test_the_home_effect_of_five_seasons_in_the_format_of_r_agrees_with_another_tool(tmp_path: Path) -> None:
    rng, teams = np.random.default_rng(0), [f"Team{number:02d}" for number in range(20)]
    strength = 0.5 * rng.standard_normal(20)
    matches = [(a, b) for _ in range(5) for a in range(20) for b in range(20) if a != b]
    logits = np.array([strength[a] - strength[b] + 0.45 for a, b in matches])
    draw = rng.random(len(matches)) < 0.25
    result = np.where(draw, 0, np.where(rng.random(len(matches)) < 1.0 / (1.0 + np.exp(-logits)), 1, -1))
    columns = {
        "season": factor(["2008-9"] * len(matches)),
        "home": factor([teams[a] for a, _ in matches]),
        "away": factor([teams[b] for _, b in matches]),
        "result": Vector(result.tolist(), {}, "integer"),
    }
    write_lazy_data(tmp_path / "BradleyTerry2", {"football": frame(columns)})
    votes = load("football", tmp_path)
    assert len(votes) == 1900
    home = fit_votes(votes).position
    rows = np.zeros((1900, 21))
    rows[:, 20] = 1.0
    rows[np.arange(1900), votes.shown[:, 0]] = 1.0
    rows[np.arange(1900), votes.shown[:, 1]] = -1.0
    other = by_scikit_learn(rows, 0.5 * (1.0 + votes.outcomes))
    assert home.low[0] > 0.0
    assert home.mean[0] == pytest.approx(other[20], abs=0.05)


def test_listeners_in_the_format_of_r_differ_and_are_predicted_better_when_known(tmp_path: Path) -> None:
    rng, labels = np.random.default_rng(1), ["Mono", "Stereo", "Wide", "Mid"]
    quality, pairs = np.array([-1.0, 1.0, 0.3, -0.3]), [(a, b) for a in range(4) for b in range(a + 1, 4)]
    slopes = rng.normal(1.0, 0.6, size=40)
    listeners = [str(number) for number in range(40) for _ in range(24)]
    answers: list[list[Any]] = []
    for listener in listeners:
        chances = [1.0 / (1.0 + np.exp(-slopes[int(listener)] * (quality[a] - quality[b]))) for a, b in pairs]
        answers.append([1 if rng.random() < chance else -1 for chance in chances])
    preference = paired(answers, [f"{a + 1}:{b + 1}" for a, b in pairs], labels, False)
    table = frame({"id": factor([*listeners]), "preference": preference})
    path = tmp_path / "SoundQuality.rda"
    path.write_bytes(rda_bytes({"SoundQuality": table}))
    fitted, held_out = load("sound-quality", path).split(seed=0)
    plain, people = fit_votes(fitted), fit_votes(fitted, reliability=True)
    gain = plain.losses(held_out) - people.losses(held_out)
    assert gain.mean() > 4.0 * gain.std(ddof=1) / np.sqrt(len(gain))
    found = people.reliability
    truth = np.array([slopes[int(name)] for name in found.names])
    assert np.corrcoef(truth, found.mean)[0, 1] > 0.8
    # Slopes and utilities share a scale, which the prior holds loosely: intervals are about slopes up to one factor.
    scaled = truth * (found.mean @ truth) / (truth @ truth)
    assert ((found.low < scaled) & (scaled < found.high)).mean() > 0.85


@pytest.mark.slow
def test_an_arena_file_of_a_hundred_thousand_votes_is_fitted_with_style_and_intervals_in_seconds(tmp_path: Path) -> None:
    tool = runpy.run_path(str(ROOT / "benchmarks" / "leaderboard.py"))
    truth = tool["write_arena_file"](tmp_path / "arena.parquet", 100_000, 100)
    begin = time.process_time()
    votes = load("arena-140k", tmp_path / "arena.parquet")
    fit = fit_votes(votes, style=["tokens", "headers"])
    assert fit.utilities.high.shape == (100,)
    assert time.process_time() - begin < 20.0
    other = by_scikit_learn(*tool["design"](votes))
    np.testing.assert_allclose(fit.position.mean[0], other[0], atol=0.02)
    np.testing.assert_allclose(fit.utilities.mean, other[1:101] - other[1:101].mean(), atol=0.02)
    np.testing.assert_allclose(fit.style.mean, other[101:], atol=0.02)
    # One vote in ten is a tie by a coin, so utilities shrink; the order stays.
    assert np.corrcoef(truth, fit.utilities.mean)[0, 1] > 0.99
    assert fit.position.low[0] > 0.0
