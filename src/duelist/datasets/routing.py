"""Tables of what every model scored on every prompt, as they are and as comparisons: what a router learns from."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.datasets.comparisons import NOBODY, Comparisons
from duelist.datasets.sources import Source, parse_json, read_table
from duelist.environments.tables import Column
from duelist.typing import FloatArray

_COST = "|total_cost"
_SAID = {"A is better": 0, "B is better": 1, "Same good": NOBODY, "Same bad": NOBODY}


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreTable:
    """What K models scored on n prompts.

    Attributes:
        name: of the table.
        models: names.
        prompts: texts; empty where they are not known.
        categories: (n,) of each prompt, as text.
        scores: (n, K), NaN where there is none.
        costs: (n, K), NaN where there is none; None where nothing is known of costs.
        embeddings: (n, dim) of the prompts; None where there are none.
    """

    name: str
    models: tuple[str, ...]
    prompts: tuple[str, ...] = field(repr=False)
    categories: Column = field(repr=False)
    scores: FloatArray = field(repr=False)
    costs: FloatArray | None = field(default=None, repr=False)
    embeddings: FloatArray | None = field(default=None, repr=False)


def read_routerbench(source: Source) -> ScoreTable:
    """The scores and costs of RouterBench; the category is `eval_name`.

    Args:
        source: as of `load_routerbench`; a column `embedding` of vectors is read where it is there.
    """
    table = read_table("routerbench", source, ())
    models = sorted(name.removesuffix(_COST) for name in table if name.endswith(_COST))
    missing = [model for model in models if model not in table]
    if len(models) < 2 or missing or "eval_name" not in table:
        raise InvalidInputError(
            f"routerbench must have eval_name, and per model a column of its name with scores and one of costs that ends in "
            f"{_COST}; got {len(models)} models, and no column {', '.join(missing) or 'eval_name'}."
        )
    return ScoreTable(
        name="routerbench",
        models=tuple(models),
        prompts=tuple(map(str, table.get("prompt", ()))),
        categories=table["eval_name"],
        scores=np.stack([table[model].astype(np.float64) for model in models], axis=1),
        costs=np.stack([table[f"{model}{_COST}"].astype(np.float64) for model in models], axis=1),
        embeddings=_embeddings(table),
    )


def read_mix_instruct(source: Source, metric: str = "bartscore") -> ScoreTable:
    """The scores of MixInstruct by one metric; the category is where a prompt is from, the first part of its `id`.

    Args:
        source: as of `load_mix_instruct`; a column `embedding` of vectors is read where it is there.
        metric: such as "bartscore" or "bertscore"; the higher the better.
    """
    table = read_table("mix-instruct", source, ("candidates",), ("id", "instruction", "input", "embedding"))
    rows = [_candidate_scores(parse_json(cell), metric) for cell in table["candidates"]]
    models = sorted({model for row in rows for model in row})
    texts = [table[name] for name in ("instruction", "input") if name in table]
    sources = [str(name).partition("/")[0] for name in table["id"]] if "id" in table else [""] * len(rows)
    return ScoreTable(
        name="mix-instruct",
        models=tuple(models),
        # A column without a single word is read as numbers.
        prompts=tuple(" ".join(w for w in words if isinstance(w, str)).strip() for words in zip(*texts, strict=True)),
        categories=np.array(sources, dtype=object),
        scores=np.array([[row.get(model, np.nan) for model in models] for row in rows]),
        embeddings=_embeddings(table),
    )


def _embeddings(table: dict[str, Column]) -> FloatArray | None:
    """The column `embedding`, whose cells may be vectors or JSON."""
    if "embedding" not in table:
        return None
    rows = [np.asarray(parse_json(cell), dtype=np.float64) for cell in table["embedding"]]
    if len({row.shape for row in rows}) != 1 or rows[0].ndim != 1:
        raise InvalidInputError("the column embedding must hold one vector per row, all of one length.")
    return np.stack(rows)


def load_routerbench(source: Source) -> Comparisons:
    """Eleven models on prompts of eight benchmarks: of any two, the one with the higher score wins, equal scores tie.

    These are not people's votes. Features of a model are a unit vector and what it costs per prompt on average; strength is the
    difference of scores. Context: `prompt`, the number of the row, and `eval_name`, the benchmark.

    Args:
        source: withmartian/routerbench as a frame (its files are pickles: open them yourself), or a CSV or Parquet file of it.
    """
    table = read_routerbench(source)
    assert table.costs is not None
    return _from_scores(table, {"eval_name": table.categories}, np.nanmean(table.costs, axis=0))


def load_mix_instruct(source: Source, metric: str = "cmp_results") -> Comparisons:
    """Answers of eleven or twelve models to one prompt each, compared by ChatGPT or by a score.

    Context: `prompt`, the number of the row.

    Args:
        source: a .json or .jsonl file of llm-blender/mix-instruct, or a frame.
        metric: "cmp_results" for the verdicts of ChatGPT, which the test split has; or a score such as "bertscore" or
            "bartscore", of which the higher wins.
    """
    if metric != "cmp_results":
        return _from_scores(read_mix_instruct(source, metric), {})
    table = read_table("mix-instruct", source, ("cmp_results",))
    verdicts = [
        (prompt, *pair.split(","), said)
        for prompt, cell in enumerate(table["cmp_results"])
        for pair, said in (parse_json(cell) or {}).items()
    ]
    unknown = next((said for *_, said in verdicts if said not in _SAID), None)
    if unknown is not None or not verdicts:
        raise InvalidInputError(
            f"cmp_results of mix-instruct must say one of {', '.join(_SAID)}; got {unknown!r}. Only the test split has it: for "
            f'others name a score, metric="bertscore".'
        )
    models = sorted({model for _, a, b, _ in verdicts for model in (a, b)})
    rows_of = {model: row for row, model in enumerate(models)}
    return Comparisons(
        name="mix-instruct",
        items=tuple(models),
        shown=np.array([[rows_of[a], rows_of[b]] for _, a, b, _ in verdicts]),
        chosen=np.array([_SAID[said] for *_, said in verdicts]),
        context={"prompt": np.array([prompt for prompt, *_ in verdicts])},
        order_known=True,
    )


def _from_scores(table: ScoreTable, context: dict[str, Column], costs: FloatArray | None = None) -> Comparisons:
    """All pairs of models on every prompt where both have a score; `costs` (K,) become a feature."""
    name, models, scores = table.name, table.models, table.scores
    if np.isfinite(scores).sum(axis=1).max(initial=0) < 2:
        raise InvalidInputError(
            f"{name} must have the scores of at least two models on a prompt; got {', '.join(models) or 'none'}."
        )
    pairs = np.array(list(combinations(range(len(models)), 2)))
    ahead = scores[:, pairs[:, 0]] - scores[:, pairs[:, 1]]
    prompt, which = np.nonzero(np.isfinite(ahead))
    ahead = ahead[prompt, which]
    return Comparisons(
        name=name,
        items=models,
        shown=pairs[which],
        chosen=np.where(ahead > 0.0, 0, np.where(ahead < 0.0, 1, NOBODY)),
        features=None if costs is None else np.column_stack([np.eye(len(models)), costs]),
        feature_names=() if costs is None else (*models, "mean_cost"),
        context={"prompt": prompt, **{key: column[prompt] for key, column in context.items()}},
        strengths=np.abs(ahead),
    )


def _candidate_scores(candidates: Any, metric: str) -> dict[str, float]:
    found = {}
    for candidate in candidates:
        if metric not in candidate["scores"]:
            raise InvalidInputError(f"metric must be one of {', '.join(candidate['scores'])}; got {metric!r}.")
        found[str(candidate["model"])] = float(candidate["scores"][metric])
    return found
