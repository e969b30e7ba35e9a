"""Tables of scores as comparisons, against a loop over prompts and pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.datasets import Comparisons, load_mix_instruct, load_routerbench, read_mix_instruct, read_routerbench

MODELS = ("WizardLM/WizardLM-13B-V1.2", "claude-v1", "gpt-4-1106-preview")
SCORES = np.array([[0.0, 1.0, 1.0], [1.0, 0.25, np.nan], [0.5, 0.5, 0.5]])
COSTS = np.array([[0.1, 0.2, 0.9], [0.1, 0.4, 1.1], [0.1, 0.6, 1.0]])


def bench() -> dict[str, Any]:
    table: dict[str, Any] = {
        "sample_id": ["mmlu.1", "mbpp.2", "mmlu.3"],
        "prompt": ["['a']", "['b']", "['c']"],
        "eval_name": ["mmlu", "mbpp", "mmlu"],
    }
    table |= {model: SCORES[:, place] for place, model in enumerate(MODELS)}
    table |= {f"{model}|model_response": ["x"] * 3 for model in MODELS}
    table |= {f"{model}|total_cost": COSTS[:, place] for place, model in enumerate(MODELS)}
    return {**table, "oracle_model_to_route_to": ["claude-v1", "no_model_correct", MODELS[0]]}


def by_hand() -> list[tuple[int, str, str, int, float]]:
    found = []
    for prompt, scores in enumerate(SCORES):
        for a in range(3):
            for b in range(a + 1, 3):
                if not np.isnan(scores[a] - scores[b]):
                    ahead = scores[a] - scores[b]
                    found.append((prompt, MODELS[a], MODELS[b], int(np.sign(ahead)), abs(ahead)))
    return found


def rows(log: Comparisons) -> list[Any]:
    assert log.strengths is not None
    names = [[log.items[row] for row in log.shown[:, side]] for side in (0, 1)]
    return sorted(zip(log.context["prompt"], *names, log.outcomes, log.strengths, strict=True))


def test_routerbench_compares_all_models_on_every_prompt(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(bench()).to_csv(tmp_path / "routerbench.csv", index=False)
    for source in (bench(), pandas.DataFrame(bench()), tmp_path / "routerbench.csv"):
        log = load_routerbench(source)
        assert rows(log) == sorted(by_hand())
        assert log.items == MODELS
        assert log.feature_names == (*MODELS, "mean_cost")
        assert log.features is not None
        np.testing.assert_allclose(log.features, np.column_stack([np.eye(3), [0.1, 0.4, 1.0]]))
        assert sorted(set(log.context["eval_name"])) == ["mbpp", "mmlu"]
        assert log.context["eval_name"][log.context["prompt"] == 1].tolist() == ["mbpp"]


def test_tables_keep_scores_costs_categories_and_embeddings(tmp_path: Path) -> None:
    table = read_routerbench({**bench(), "embedding": ["[1, 0]", "[0, 1]", "[2, 2]"]})
    np.testing.assert_array_equal(table.scores, SCORES)
    np.testing.assert_array_equal(table.costs, COSTS)
    assert (table.models, table.categories.tolist(), table.prompts[1]) == (MODELS, ["mmlu", "mbpp", "mmlu"], "['b']")
    np.testing.assert_array_equal(table.embeddings, [[1, 0], [0, 1], [2, 2]])
    (tmp_path / "mix.json").write_text(json.dumps(MIX))
    mixed = read_mix_instruct(tmp_path / "mix.json", metric="bertscore")
    np.testing.assert_array_equal(mixed.scores, [[0.5, 0.75, 0.5], [1.0, 0.25, np.nan], [np.nan, np.nan, 1.0]])
    assert (mixed.models, set(mixed.categories), mixed.prompts[0]) == (("alpaca", "koala", "moss"), {"unified_chip2"}, "?")
    assert mixed.costs is None
    with pytest.raises(InvalidInputError, match="one vector per row, all of one length"):
        read_routerbench({**bench(), "embedding": ["[1, 0]", "[0, 1]", "[2]"]})


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "routerbench_0shot.pkl").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(InvalidInputError, match="open it yourself and pass the frame"):
        load_routerbench(tmp_path / "routerbench_0shot.pkl")
    with pytest.raises(InvalidInputError, match="total_cost"):
        load_routerbench({"eval_name": ["x"], "gpt": [1.0]})


def candidates(scores: dict[str, float]) -> list[dict[str, Any]]:
    return [
        {"decoding_method": "top_p_sampling", "model": model, "text": "t", "scores": {"bleu": 0.0, "bertscore": score}}
        for model, score in scores.items()
    ]


MIX: list[dict[str, Any]] = [
    {
        "id": "unified_chip2/1", "instruction": "", "input": "?", "output": "!",
        "candidates": candidates({"alpaca": 0.5, "koala": 0.75, "moss": 0.5}),
        "cmp_results": json.dumps({"alpaca,koala": "B is better", "koala,moss": "A is better", "moss,alpaca": "Same bad"}),
    },
    {
        "id": "unified_chip2/2", "instruction": "", "input": "?", "output": "!",
        "candidates": candidates({"alpaca": 1.0, "koala": 0.25}), "cmp_results": "{}",
    },
    {
        "id": "unified_chip2/3", "instruction": "", "input": "?", "output": "!", "candidates": candidates({"moss": 1.0}),
        "cmp_results": json.dumps({"moss,koala": "Same good"}),
    },
]  # fmt: skip


@pytest.mark.parametrize("lines", [True, False])
def test_mix_instruct_has_verdicts_or_scores(lines: bool, tmp_path: Path) -> None:
    path = tmp_path / ("test_data_prepared.jsonl" if lines else "test_data_prepared.json")
    path.write_text("\n".join(map(json.dumps, MIX)) if lines else json.dumps(MIX, indent=1))
    log = load_mix_instruct(path)
    names = [[log.items[row] for row in log.shown[:, side]] for side in (0, 1)]
    found = list(zip(log.context["prompt"], *names, log.outcomes, strict=True))
    assert found == [(0, "alpaca", "koala", -1), (0, "koala", "moss", 1), (0, "moss", "alpaca", 0), (2, "moss", "koala", 0)]
    scored = load_mix_instruct(path, metric="bertscore")
    assert rows(scored) == [
        (0, "alpaca", "koala", -1, 0.25), (0, "alpaca", "moss", 0, 0.0), (0, "koala", "moss", 1, 0.25),
        (1, "alpaca", "koala", 1, 0.75),
    ]  # fmt: skip


def test_a_metric_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(InvalidInputError, match=r"one of bleu, bertscore; got 'bartscore'"):
        load_mix_instruct({"candidates": [row["candidates"] for row in MIX[:1]]}, metric="bartscore")
    with pytest.raises(InvalidInputError, match='metric="bertscore"'):
        load_mix_instruct({"cmp_results": ["{}"]})
