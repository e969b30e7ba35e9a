"""The routing experiments: embeddings of models against loops, tables made ready, and the command from files to a report."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.linalg import eigh

from duelist.cli import reproduce as command
from duelist.core.errors import InvalidInputError
from duelist.datasets import MissingDataError, ScoreTable, make_stand_in
from duelist.experiments.routing.embeddings import TOP, WEIGHTINGS, CategoryDirections, category_weights
from duelist.experiments.routing.fixed import fixed_routers
from duelist.experiments.routing.problems import routing_features, routing_tables
from duelist.experiments.routing.tables import OTHER, RoutingTable, prepare_table
from duelist.plotting import style

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def coarse_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here depends on the size of an image."""
    monkeypatch.setattr(style, "DOTS_PER_INCH", 40)


def no_embedding(_: Any) -> Any:
    raise AssertionError("these tables have embeddings")


def prepared(name: str = "routerbench", n: int = 600) -> RoutingTable:
    return prepare_table(name, "made up", make_stand_in(name, n, seed=4), seed=0, embed=no_embedding)


def test_weights_are_what_their_names_say() -> None:
    scores, costs, lam = RNG.random((6, 4)), RNG.random((6, 4)), 0.4
    found = {weighting: category_weights(weighting, scores, costs, lam) for weighting in WEIGHTINGS}
    for model in range(6):
        for category in range(4):
            utility = scores[model, category] - lam * costs[model, category]
            better = sum(scores[k, category] - lam * costs[k, category] > utility for k in range(6))
            assert found["perf"][model, category] == scores[model, category]
            assert found["perf-cost"][model, category] == pytest.approx(utility)
            assert found["excel-perf-cost"][model, category] == pytest.approx(utility if better < TOP else 0.0)
            assert found["excel-mask"][model, category] == float(better < TOP)


def test_calibrated_directions_are_linear_discriminants() -> None:
    """The same span as the generalised eigenvectors of scatter between against within categories, by another routine."""
    kinds = RNG.integers(3, size=400)
    embeddings = RNG.normal(size=(3, 10))[kinds] + RNG.normal(size=(400, 10)) @ np.diag([6.0, *np.ones(9)])
    categories = np.array(["a", "b", "c"])[kinds]
    transform = CategoryDirections.fit(embeddings, categories)
    within, between, mean = np.zeros((10, 10)), np.zeros((10, 10)), embeddings.mean(axis=0)
    for name in "abc":
        rows = embeddings[categories == name]
        within += (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0)) / 400
        between += len(rows) / 400 * np.outer(rows.mean(axis=0) - mean, rows.mean(axis=0) - mean)
    within = 0.9 * within + 0.1 * np.trace(within) / 10 * np.eye(10)
    _, vectors = eigh(between, within)
    expected = vectors[:, -2:]
    assert transform.directions.shape == (10, 2)
    together = np.column_stack([expected, transform.directions])
    assert np.linalg.matrix_rank(together / np.linalg.norm(together, axis=0), tol=1e-8) == 2
    np.testing.assert_allclose(transform.directions.T @ within @ transform.directions, np.eye(2), atol=1e-9)
    with pytest.raises(InvalidInputError, match="at least 2; got 1"):
        CategoryDirections.fit(embeddings, np.full(400, "a"))


def test_tables_are_cleaned_scaled_and_cut() -> None:
    raw = make_stand_in("mix-instruct", 500, seed=3)
    scores = raw.scores.copy()
    scores[:40, 2] = np.nan
    categories = raw.categories.copy()
    categories[40:43] = "rare-thing"
    categories[43:] = "some-where"
    asked: list[int] = []

    def embed(texts: Any) -> Any:
        asked.append(len(texts))
        return RNG.normal(size=(len(texts), 5))

    table = ScoreTable(
        name="mix-instruct", models=raw.models, prompts=tuple(map(str, range(500))), categories=categories, scores=scores
    )
    ready = prepare_table("x", "made up", table, seed=0, embed=embed)
    assert asked == [500]
    assert len(ready.scores) == 460
    assert not {*ready.offline} & {*ready.online}
    assert len(ready.offline) == 92
    assert set(ready.categories) == {"some", OTHER}
    np.testing.assert_allclose(np.quantile(ready.scores, [0.05, 0.95]), [0.0, 1.0], atol=1e-12)
    assert ready.costs is None
    with pytest.raises(InvalidInputError, match="at least 100 prompts"):
        prepare_table("x", "made up", make_stand_in("routerbench", 50, seed=0), seed=0, embed=embed)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_features_are_products_with_weighted_means_of_categories(weighting: str) -> None:
    table = prepared()
    contexts, catalogue = routing_features(table, weighting, 0.2)
    assert catalogue is not None
    offline = table.embeddings[table.offline]
    transform = CategoryDirections.fit(offline, table.categories[table.offline])
    names = sorted(set(table.categories[table.offline]))
    scores, costs, centres = [], [], []
    for name in names:
        rows = [row for row in table.offline if table.categories[row] == name]
        scores.append(table.scores[rows].mean(axis=0))
        costs.append(table.paid[rows].mean(axis=0))
        centres.append(transform(table.embeddings[rows]).mean(axis=0))
    weights = category_weights(weighting, np.array(scores).T, np.array(costs).T, 0.2)
    models = sum(weights[:, [m]] * centres[m] for m in range(len(names)))
    # Shift and scale of a column change no contrast but by a factor.
    for column in range(models.shape[1]):
        assert abs(np.corrcoef(models[:, column], catalogue[:, column])[0, 1]) == pytest.approx(1.0)
    np.testing.assert_allclose(contexts[:, -2:], 1.0)
    products = contexts[:, None] * catalogue
    assert (products**2).mean() == pytest.approx(1.0)


def test_routers_without_votes_are_what_a_loop_finds() -> None:
    table, weight = prepared(), 0.3
    found = {one.name: one for one in fixed_routers(table, weight)}
    utilities = table.scores - weight * table.paid
    means = [np.mean([utilities[row, k] for row in table.offline]) for k in range(11)]
    single, told, best = int(np.argmax(means)), [], []
    for row in table.online:
        same = [other for other in table.offline if table.categories[other] == table.categories[row]]
        told.append(int(np.argmax(utilities[same].mean(axis=0))) if same else single)
        best.append(int(np.argmax(utilities[row])))
    for name, picks in (
        ("best single model", [single] * len(table.online)),
        ("best model of each category, told", told),
        ("best answer to every prompt", best),
    ):
        regret = np.mean([max(utilities[row]) - utilities[row, k] for row, k in zip(table.online, picks, strict=True)])
        cost = np.mean([table.paid[row, k] for row, k in zip(table.online, picks, strict=True)])
        assert found[name].regret == pytest.approx(regret)
        assert found[name].cost == pytest.approx(cost)
    guessed = found["best model of the nearest category"]
    assert found["best model of each category, told"].regret <= guessed.regret < found["best single model"].regret


def write_routerbench(folder: Path, n: int = 300) -> ScoreTable:
    table = make_stand_in("routerbench", n, seed=7)
    assert table.costs is not None
    with (folder / "routerbench.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt", "eval_name", *table.models, *(f"{model}|total_cost" for model in table.models)])
        for row in range(n):
            writer.writerow([f"prompt {row}", table.categories[row], *table.scores[row], *table.costs[row]])
    return table


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(command.reproduce, ["routing", *arguments], catch_exceptions=False)


@pytest.mark.slow
def test_the_command_plays_a_file_with_embeddings_beside_it_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    table = write_routerbench(tmp_path)
    assert table.embeddings is not None
    np.save(tmp_path / "routerbench-embeddings.npy", table.embeddings)
    read = routing_tables(tmp_path, (), no_embedding)["routerbench"]
    assert {*map(tuple, read.embeddings)} == {*map(tuple, table.embeddings)}
    sizes = ("--rounds", "30", "--trials", "2", "--workers", "1", "--policies", "FGTS", "--policies", "Uniform")
    done = invoke("--data", str(tmp_path), *sizes, "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    for words in ("| excel-mask |", "| blocks |", "best model of each category, told", "1. Of the paper we could read"):
        assert words in text
    dial = [line for line in text.splitlines() if line.startswith(("| 0 |", "| 0.8 |"))]
    cheap, dear = (float(line.split("|")[3]) for line in reversed(dial))
    assert cheap < dear
    for name in ("routing-regret", "routing-cost"):
        assert (tmp_path / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    again = invoke("--data", str(tmp_path), *sizes, "--out", str(tmp_path / "out"))
    assert " 0 block(s) computed" in again.output
    assert " 1 block(s) computed" not in again.output


def test_without_files_stand_ins_are_played_and_one_can_be_named(tmp_path: Path) -> None:
    sizes = ("--rounds", "20", "--trials", "2", "--workers", "1", "--policies", "FGTS", "--policies", "Uniform")
    done = invoke("--only", "mix-instruct-stand-in", *sizes, "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "made up, in the shape of MixInstruct" in text
    assert "perf-cost | " not in text.split("## What differs")[0].split("regret after")[1].split("excel")[0]
    assert not (tmp_path / "routing-cost.png").exists()


def test_a_folder_without_tables_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="Without --data, stand-ins are played"):
        invoke("--data", str(tmp_path), "--out", str(tmp_path / "out"))
