"""The leaderboard of a large arena file with style control: how long it takes, and what other tools say of the same file.

    python benchmarks/leaderboard.py                  # 100,000 votes on 100 models
    python benchmarks/leaderboard.py --votes 20000

The file is in the format of Chatbot Arena's 140k release, drawn from a known truth. Other tools run where they are installed:
scikit-learn, statsmodels, arena-rank and evalica. Seconds are processor time, of everything that is done between the table and
the intervals; arena-rank's first run compiles, and its second is given.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from duelist.datasets import Comparisons, fit_votes, load
from duelist.typing import FloatArray

STYLE = ("tokens", "headers")


class Found(NamedTuple):
    """What a tool says: utilities of the items, centred; side and style, empty if it knows none; and what has intervals."""

    utilities: FloatArray
    others: FloatArray
    intervals: str


def write_arena_file(path: Path, votes: int, models: int, seed: int = 0) -> FloatArray:
    """Write a file of votes, and return the true utilities of the models, by name."""
    rng = np.random.default_rng(seed)
    strength = rng.standard_normal(models)
    names = np.array([f"model-{number:03d}" for number in range(models)])
    first = rng.integers(models, size=votes)
    second = (first + rng.integers(1, models, size=votes)) % models
    tokens, headers = rng.integers(20, 2000, size=(votes, 2)), rng.integers(0, 6, size=(votes, 2))
    longer = (tokens[:, 0] - tokens[:, 1]) / 1000.0
    logits = strength[first] - strength[second] + 0.4 * longer + 0.05 * (headers[:, 0] - headers[:, 1]) + 0.1
    won = rng.random(votes) < 1.0 / (1.0 + np.exp(-logits))
    winner = np.where(rng.random(votes) < 0.1, "tie", np.where(won, "model_a", "model_b"))
    counted = [
        {
            "sum_assistant_a_tokens": a,
            "sum_assistant_b_tokens": b,
            "header_count_a": {"h1": c},
            "header_count_b": {"h1": d},
        }
        for (a, b), (c, d) in zip(tokens.tolist(), headers.tolist(), strict=True)
    ]
    columns = {
        "model_a": names[first],
        "model_b": names[second],
        "winner": winner,
        "language": np.where(rng.random(votes) < 0.7, "en", "pl"),
        "evaluation_session_id": [f"s{number}" for number in rng.integers(votes // 5, size=votes)],
        "conv_metadata": counted,
    }
    pq.write_table(pa.table(columns), path)
    return strength


def design(votes: Comparisons) -> tuple[FloatArray, FloatArray]:
    """(n, 1 + K + s) columns: the side, the items, and style per root mean square; and (n,) how far the first won."""
    n, k = len(votes), len(votes.items)
    rows = np.zeros((n, 1 + k + len(STYLE)))
    rows[:, 0] = 1.0
    rows[np.arange(n), 1 + votes.shown[:, 0]] = 1.0
    rows[np.arange(n), 1 + votes.shown[:, 1]] = -1.0
    for place, name in enumerate(STYLE):
        column = np.asarray(votes.context[name], dtype=np.float64)
        rows[:, 1 + k + place] = column / np.sqrt((column**2).mean())
    return rows, np.asarray(0.5 * (1.0 + votes.outcomes), dtype=np.float64)


def _split(coefficients: FloatArray, k: int, intervals: str) -> Found:
    utilities = coefficients[1 : 1 + k]
    return Found(utilities - utilities.mean(), np.append(coefficients[0], coefficients[1 + k :]), intervals)


def by_duelist(votes: Comparisons) -> Found:
    """All of them in one fit."""
    fit = fit_votes(votes, style=STYLE)
    return Found(fit.utilities.mean, np.append(fit.position.mean, fit.style.mean), "all")


def by_scikit_learn(votes: Comparisons) -> Found:
    """Maximum likelihood; a tie is half a win and half a loss."""
    linear: Any = import_module("sklearn.linear_model")
    rows, won = design(votes)
    both = np.concatenate([rows, rows])
    weights, outcomes = np.concatenate([won, 1.0 - won]), np.repeat([1, 0], len(won))
    used = weights > 0.0
    model = linear.LogisticRegression(C=1e6, tol=1e-8, max_iter=2000, fit_intercept=False)
    model.fit(both[used], outcomes[used], sample_weight=weights[used])
    return _split(model.coef_[0], len(votes.items), "none")


def by_statsmodels(votes: Comparisons) -> Found:
    """Maximum likelihood of a binomial model, the first item at 0."""
    sm: Any = import_module("statsmodels.api")
    rows, won = design(votes)
    fit = sm.GLM(won, np.delete(rows, 1, axis=1), family=sm.families.Binomial()).fit()
    fit.conf_int()
    return _split(np.insert(fit.params, 1, 0.0), len(votes.items), "against one item")


def by_arena_rank(votes: Comparisons) -> Found:
    """Its contextual model, the side as one more covariate."""
    jnp: Any = import_module("jax.numpy")
    models: Any = import_module("arena_rank.models.contextual_bradley_terry")
    data_sets: Any = import_module("arena_rank.utils.data_utils")
    rows, won = design(votes)
    k = len(votes.items)
    features = jnp.array(np.column_stack([rows[:, 1 + k :], rows[:, 0]]))
    data = data_sets.ContextualPairDataset(
        competitors=list(votes.items),
        pairs=jnp.array(votes.shown),
        outcomes=jnp.array(won),
        features=features,
        weights=jnp.ones(len(won)),
    )
    model = models.ContextualBradleyTerry(n_competitors=k, n_features=features.shape[1], reg=0.0)
    found = model.compute_ratings_and_cis(data)
    ratings = (np.asarray(found["ratings"]) - 1000.0) / model.alpha
    coefficients = np.asarray(found["coeffs"])
    return Found(ratings - ratings.mean(), np.append(coefficients[-1], coefficients[:-1]), "items")


def by_evalica(votes: Comparisons) -> Found:
    """Utilities alone: it knows neither side nor style."""
    evalica: Any = import_module("evalica")
    frames: Any = import_module("pandas")
    sides = [[votes.items[place] for place in column] for column in votes.shown.T]
    winners = [evalica.Winner.X if y > 0 else evalica.Winner.Y if y < 0 else evalica.Winner.Draw for y in votes.outcomes]
    scores = evalica.bradley_terry(*sides, winners, index=frames.Index(votes.items), tolerance=1e-9, limit=10_000).scores
    utilities = np.log(np.asarray(scores[list(votes.items)], dtype=np.float64))
    return Found(utilities - utilities.mean(), np.zeros(0), "none")


TOOLS: dict[str, tuple[str, Callable[[Comparisons], Found]]] = {
    "duelist": ("duelist", by_duelist),
    "scikit-learn": ("sklearn", by_scikit_learn),
    "statsmodels": ("statsmodels", by_statsmodels),
    "arena-rank": ("arena_rank", by_arena_rank),
    "evalica": ("evalica", by_evalica),
}


def _difference(found: Found, ours: Found) -> str:
    gap = float(np.abs(found.utilities - ours.utilities).max())
    if not len(found.others):
        return f"{gap:.4f} (without side and style)"
    return f"{max(gap, float(np.abs(found.others - ours.others).max())):.4f}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--votes", type=int, default=100_000)
    parser.add_argument("--models", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "arena.parquet")
        write_arena_file(path, options.votes, options.models)
        begin = time.process_time()
        votes = load("arena-140k", path)
        print(f"{len(votes):,} votes on {len(votes.items)} models, read in {time.process_time() - begin:.1f} s\n")
    print("| tool | processor time | intervals | largest difference from duelist |\n|---|---:|---|---:|")
    ours = by_duelist(votes)
    for tool, (package, run) in TOOLS.items():
        if find_spec(package) is None:
            continue
        if tool == "arena-rank":
            run(votes)
        begin = time.process_time()
        found = run(votes)
        print(f"| {tool} | {time.process_time() - begin:.1f} s | {found.intervals} | {_difference(found, ours)} |", flush=True)


if __name__ == "__main__":
    main()
