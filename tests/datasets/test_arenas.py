"""Votes on language models: files in the formats of their publishers, counted by hand."""

from __future__ import annotations

import csv
import datetime
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.datasets import (
    Comparisons,
    MissingDataError,
    load_arena_55k,
    load_arena_140k,
    load_helpsteer3,
    load_llmfao,
    load_mt_bench,
)

MARKDOWN = "# Title\n\n* one\n- two\n2. three\n\n**bold** and __bold__\n"  # 1 header, 3 items of lists, 2 bold


def facts(log: Comparisons) -> list[tuple[str, str, int]]:
    return [(log.items[a], log.items[b], int(o)) for (a, b), o in zip(log.shown, log.outcomes, strict=True)]


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_arena_55k_has_three_marks_and_texts_longer_than_a_cell_may_be(tmp_path: Path) -> None:
    def row(a: str, b: str, marks: tuple[int, int, int], left: list[Any], right: list[Any]) -> dict[str, Any]:
        won = dict(zip(("winner_model_a", "winner_model_b", "winner_tie"), marks, strict=True))
        return {
            "id": 1, "model_a": a, "model_b": b, "prompt": json.dumps(["hi"]), "response_a": json.dumps(left),
            "response_b": json.dumps(right), **won,
        }  # fmt: skip

    rows = [
        row("gpt", "llama", (1, 0, 0), [MARKDOWN, "ab"], ["x" * 200_000]),
        row("llama", "gpt", (1, 0, 0), ["a"], ["bc", None]),
        row("gpt", "koala", (0, 0, 1), ["same"], ["same"]),
    ]
    log = load_arena_55k(write_csv(tmp_path / "train.csv", rows))
    assert facts(log) == [("gpt", "llama", 1), ("llama", "gpt", 1), ("gpt", "koala", 0)]
    # Turns are joined by a line break.
    assert log.context["characters"].tolist() == [len(MARKDOWN) + 3 - 200_000, 1 - 3, 0]
    assert [log.context[name][0] for name in ("headers", "lists", "bold")] == [1, 3, 2]
    assert csv.field_size_limit() == 131_072  # left as it was
    rows[0]["winner_tie"] = 1
    with pytest.raises(InvalidInputError, match="exactly one must be 1"):
        load_arena_55k(write_csv(tmp_path / "train.csv", rows))


def records_140k() -> list[dict[str, Any]]:
    def counted(side: str, tokens: int, headers: int, lists: int, bold: int) -> dict[str, Any]:
        return {
            f"sum_assistant_{side}_tokens": tokens,
            f"header_count_{side}": {"h1": 0, "h2": headers, "h3": 0},
            f"list_count_{side}": {"ordered": 1, "unordered": lists},
            f"bold_count_{side}": {"**": bold, "__": 0},
        }

    moment = datetime.datetime(2025, 6, 1, 12, 0, 0)  # without a zone, as the file has it
    rows = []
    for number, (a, b, winner, math) in enumerate(
        [
            ("m1", "m2", "model_b", True),
            ("m3", "m1", "both_bad", False),
            ("m2", "m3", "model_a", False),
            ("m1", "m2", "tie", True),
        ]
    ):
        rows.append(
            {
                "id": str(number), "model_a": a, "model_b": b, "winner": winner, "evaluation_session_id": f"s{number // 2}",
                "evaluation_order": number, "language": "pl", "is_code": number == 2,
                "timestamp": moment + datetime.timedelta(seconds=number),
                "full_conversation": [{"user": {"role": "user"}}],
                "conv_metadata": {**counted("a", 100 * number, 2, 3, 4), **counted("b", 50, 1, 1, number)},
                "category_tag": {
                    "creative_writing_v0.1": {"creative_writing": False, "score": "no"}, "math_v0.1": {"math": math},
                    "if_v0.1": {"if": True, "score": 4},
                },
            }
        )  # fmt: skip
    return rows


def check_140k(log: Comparisons) -> None:
    assert facts(log) == [("m1", "m2", -1), ("m3", "m1", 0), ("m2", "m3", 1), ("m1", "m2", 0)]
    assert log.voters is not None
    assert log.voters.tolist() == ["s0", "s0", "s1", "s1"]
    assert log.context["tokens"].tolist() == [-50, 50, 150, 250]
    assert log.context["headers"].tolist() == [1, 1, 1, 1]
    assert log.context["lists"].tolist() == [2, 2, 2, 2]
    assert log.context["bold"].tolist() == [4, 3, 2, 1]
    assert log.context["math"].tolist() == [1, 0, 0, 1]
    assert log.context["if"].tolist() == [1, 1, 1, 1]
    assert log.context["creative_writing"].tolist() == [0, 0, 0, 0]
    assert "score" not in log.context
    assert log.context["language"].tolist() == ["pl"] * 4
    assert [bool(cell) for cell in log.context["is_code"]] == [False, False, True, False]
    assert log.times is not None
    assert log.times.tolist() == [1748779200.0 + second for second in range(4)]


def test_arena_140k_is_read_from_parquet_shards_with_structs_and_without_its_texts(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = records_140k()
    for shard in (0, 1):
        parquet.write_table(arrow.Table.from_pylist(rows[2 * shard : 2 * shard + 2]), tmp_path / f"train-{shard}.parquet")
    check_140k(load_arena_140k(tmp_path))
    assert len(load_arena_140k(tmp_path / "train-1.parquet")) == 2
    pandas = pytest.importorskip("pandas")
    check_140k(load_arena_140k(pandas.concat([pandas.read_parquet(path) for path in sorted(tmp_path.iterdir())])))
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingDataError, match=r"no \.parquet file"):
        load_arena_140k(tmp_path / "empty")


def test_arena_140k_is_read_from_json_lines_too(tmp_path: Path) -> None:
    rows = [{**row, "timestamp": row["timestamp"].isoformat()} for row in records_140k()]
    (tmp_path / "votes.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    check_140k(load_arena_140k(tmp_path / "votes.jsonl"))


def test_mt_bench_knows_its_judges(tmp_path: Path) -> None:
    names = ("question_id", "model_a", "model_b", "winner", "judge", "turn")
    votes: list[tuple[Any, ...]] = [
        (81, "gpt-4", "llama-13b", "model_a", "expert_1", 1),
        (82, "gpt-4", "alpaca-13b", "tie", "expert_1", 2),
        (82, "alpaca-13b", "gpt-4", "model_b", ["gpt-4", "pair"], 2),
        (83, "gpt-4", "llama-13b", "tie (inconsistent)", "author_2", 1),
    ]
    rows = [dict(zip(names, vote, strict=True)) for vote in votes]
    (tmp_path / "human.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    log = load_mt_bench(tmp_path / "human.jsonl")
    assert facts(log) == [
        ("gpt-4", "llama-13b", 1),
        ("gpt-4", "alpaca-13b", 0),
        ("alpaca-13b", "gpt-4", -1),
        ("gpt-4", "llama-13b", 0),
    ]
    assert log.voters is not None
    assert log.voters.tolist() == ["expert_1", "expert_1", "gpt-4 pair", "author_2"]
    assert log.context["question_id"].tolist() == [81, 82, 82, 83]


def test_llmfao_says_left_right_and_tie(tmp_path: Path) -> None:
    (tmp_path / "llmfao.csv").write_text(
        "id,prompt,model_x,model_y,worker,winner,left,right\n"
        "0,8,97,98,58,tie,Airoboros L2 70B,Weaver 12k\n"
        "0,8,97,98,14,right,Airoboros L2 70B,Weaver 12k\n"
        "1,9,98,97,14,left,Weaver 12k,Airoboros L2 70B\n"
    )
    log = load_llmfao(tmp_path / "llmfao.csv")
    a, w = "Airoboros L2 70B", "Weaver 12k"
    assert facts(log) == [(a, w, 0), (a, w, -1), (w, a, 1)]
    assert log.voters is not None
    assert log.voters.tolist() == ["58", "14", "14"]
    assert log.context["prompt"].tolist() == [8, 8, 9]


def test_helpsteer_has_strengths_and_one_vote_per_person_where_asked(tmp_path: Path) -> None:
    rows = [
        {
            "domain": "code", "language": "python", "context": [{"role": "user", "content": "?"}], "response1": MARKDOWN,
            "response2": "short", "overall_preference": -2,
            "individual_preference": [{"score": -3, "reasoning": "r"}, {"score": 1}, {"score": None}],
        },
        {
            "domain": "general", "language": "english", "context": [], "response1": "a", "response2": "bb",
            "overall_preference": 0, "individual_preference": [{"score": 0}],
        },
        {
            "domain": "stem", "language": "english", "context": [], "response1": "a", "response2": "bb",
            "overall_preference": 3, "individual_preference": [],
        },
    ]  # fmt: skip
    path = tmp_path / "train.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in rows).encode()))
    log = load_helpsteer3(path)
    assert log.outcomes.tolist() == [1, 0, -1]
    assert log.strengths is not None
    assert log.strengths.tolist() == [2, 0, 3]
    assert log.features is not None
    assert log.features[log.shown[0]].tolist() == [[len(MARKDOWN), 1, 3, 2], [5, 0, 0, 0]]
    assert log.context["domain"].tolist() == ["code", "general", "stem"]
    people = load_helpsteer3(path, votes="individual")
    assert people.outcomes.tolist() == [1, -1, 0]
    assert people.strengths is not None
    assert people.strengths.tolist() == [3, 1, 0]
    assert people.context["domain"].tolist() == ["code", "code", "general"]
    np.testing.assert_array_equal(people.shown[0], people.shown[1])
    with pytest.raises(InvalidInputError, match="must have a score; got 3 in row 0"):
        load_helpsteer3({"response1": ["a"], "response2": ["b"], "individual_preference": [[3]]}, votes="individual")


def test_sets_of_files_say_that_they_need_one(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="duelist data llmfao"):
        load_llmfao(None)
    with pytest.raises(MissingDataError, match="Check the path"):
        load_llmfao(tmp_path / "nothing.csv")
    with pytest.raises(InvalidInputError, match="csv, "):
        load_llmfao(tmp_path / "votes.xlsx")
    with pytest.raises(InvalidInputError, match="must have the column judge"):
        load_mt_bench({"model_a": ["a"], "model_b": ["b"], "winner": ["tie"], "question_id": [1]})
