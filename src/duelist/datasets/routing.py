"""Tables of what every model scored on every prompt, as comparisons: what a router learns from."""

from __future__ import annotations

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


def load_routerbench(source: Source) -> Comparisons:
    """Eleven models on prompts of eight benchmarks: of any two, the one with the higher score wins, equal scores tie.

    These are not people's votes. Features of a model are a unit vector and what it costs per prompt on average; strength is the
    difference of scores. Context: `prompt`, the number of the row, and `eval_name`, the benchmark.

    Args:
        source: withmartian/routerbench as a frame (its files are pickles: open them yourself), or a CSV or Parquet file of it.
    """
    table = read_table("routerbench", source, ())
    models = sorted(name.removesuffix(_COST) for name in table if name.endswith(_COST))
    missing = [model for model in models if model not in table]
    if len(models) < 2 or missing or "eval_name" not in table:
        raise InvalidInputError(
            f"routerbench must have eval_name, and per model a column of its name with scores and one of costs that ends in "
            f"{_COST}; got {len(models)} models, and no column {', '.join(missing) or 'eval_name'}."
        )
    scores = np.stack([table[model].astype(np.float64) for model in models], axis=1)
    costs = np.stack([table[f"{model}{_COST}"].astype(np.float64) for model in models], axis=1)
    return _from_scores("routerbench", models, scores, {"eval_name": table["eval_name"]}, np.nanmean(costs, axis=0))


def load_mix_instruct(source: Source, metric: str = "cmp_results") -> Comparisons:
    """Answers of eleven or twelve models to one prompt each, compared by ChatGPT or by a score.

    Context: `prompt`, the number of the row.

    Args:
        source: a .json or .jsonl file of llm-blender/mix-instruct, or a frame.
        metric: "cmp_results" for the verdicts of ChatGPT, which the test split has; or a score such as "bertscore" or
            "bartscore", of which the higher wins.
    """
    if metric != "cmp_results":
        table = read_table("mix-instruct", source, ("candidates",))
        rows = [_candidate_scores(parse_json(cell), metric) for cell in table["candidates"]]
        models = sorted({model for row in rows for model in row})
        scores = np.array([[row.get(model, np.nan) for model in models] for row in rows])
        return _from_scores("mix-instruct", models, scores, {})
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


def _from_scores(
    name: str, models: list[str], scores: FloatArray, context: dict[str, Column], costs: FloatArray | None = None
) -> Comparisons:
    """All pairs of models on every prompt (n, K) where both have a score."""
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
        items=tuple(models),
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
