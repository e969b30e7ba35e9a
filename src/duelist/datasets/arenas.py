"""Votes on the answers of language models, from files that you have."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from duelist.core.checks import one_of
from duelist.core.errors import InvalidInputError
from duelist.datasets.builders import pairs_of_names, winners
from duelist.datasets.comparisons import NOBODY, Comparisons
from duelist.datasets.sources import Source, parse_json, read_table
from duelist.environments.tables import Column

_MODELS = ("model_a", "model_b")
# What style control of arenas counts in an answer: name, and how to count it in Markdown.
_STYLE: dict[str, Callable[[str], int]] = {
    "characters": len,
    "headers": lambda text: len(re.findall(r"^#{1,6}\s", text, re.MULTILINE)),
    "lists": lambda text: len(re.findall(r"^\s*(?:[-*+]|\d+\.)\s", text, re.MULTILINE)),
    "bold": lambda text: len(re.findall(r"\*\*[^*\n]+\*\*|__[^_\n]+__", text)),
}


def load_arena_55k(source: Source) -> Comparisons:
    """Votes of Chatbot Arena as released for a competition, with texts.

    Context: `characters`, `headers`, `lists` and `bold` of the first answer minus those of the second, where texts are there.

    Args:
        source: train.csv of lmarena-ai/arena-human-preference-55k, or a frame.
    """
    marks = ("winner_model_a", "winner_model_b", "winner_tie")
    table = read_table("arena-55k", source, (*_MODELS, *marks), ("response_a", "response_b"))
    won = np.stack([table[mark].astype(np.float64) for mark in marks], axis=1)
    if not (won.sum(axis=1) == 1).all():
        raise InvalidInputError(f"of {', '.join(marks)} of arena-55k exactly one must be 1 in every row.")
    context = {}
    if "response_a" in table and "response_b" in table:
        texts = [[_joined(cell) for cell in table[side]] for side in ("response_a", "response_b")]
        for name, count in _STYLE.items():
            context[name] = np.array([count(a) - count(b) for a, b in zip(*texts, strict=True)], dtype=np.float64)
    chosen = np.array([0, 1, NOBODY])[won.argmax(axis=1)]
    return pairs_of_names("arena-55k", table["model_a"], table["model_b"], chosen, context=context, order_known=True)


def load_arena_140k(source: Source) -> Comparisons:
    """Votes of LMArena with categories and counts of tokens and Markdown; the texts are not read.

    A voter is a session, and both_bad is a tie. Context: language, is_code, every category as 0 or 1, and `tokens`, `headers`,
    `lists` and `bold` of the first answer minus those of the second.

    Args:
        source: a .parquet file of lmarena-ai/arena-human-preference-140k, the folder of them, or a frame.
    """
    extra = ("evaluation_session_id", "timestamp", "language", "is_code", "conv_metadata", "category_tag")
    table = read_table("arena-140k", source, (*_MODELS, "winner"), extra)
    first, second = (table[side] for side in _MODELS)
    context: dict[str, Column] = {name: table[name] for name in ("language", "is_code") if name in table}
    if "conv_metadata" in table:
        counts = [_style_counts(parse_json(cell) or {}) for cell in table["conv_metadata"]]
        context |= {name: np.array([row[name] for row in counts], dtype=np.float64) for name in counts[0]}
    if "category_tag" in table:
        context |= _categories([parse_json(cell) or {} for cell in table["category_tag"]])
    return pairs_of_names(
        "arena-140k",
        first,
        second,
        winners("arena-140k", table["winner"], first, second),
        voters=table.get("evaluation_session_id"),
        times=None if "timestamp" not in table else np.array([_seconds(cell) for cell in table["timestamp"]]),
        context=context,
        order_known=True,
    )


def load_mt_bench(source: Source) -> Comparisons:
    """Votes of experts, or of GPT-4, on answers to the 80 questions of MT-bench. Context: question_id and turn.

    Args:
        source: a .parquet or .jsonl file of lmsys/mt_bench_human_judgments, or a frame.
    """
    table = read_table("mt-bench", source, (*_MODELS, "winner", "judge", "question_id"), ("turn",))
    first, second = (table[side] for side in _MODELS)
    chosen = winners("mt-bench", table["winner"], first, second)
    judges = [" ".join(map(str, judge)) if isinstance(judge, list | tuple | np.ndarray) else judge for judge in table["judge"]]
    context = {name: table[name] for name in ("question_id", "turn") if name in table}
    return pairs_of_names("mt-bench", first, second, chosen, voters=judges, context=context, order_known=True)


def load_llmfao(source: Source) -> Comparisons:
    """Votes of a crowd on 59 language models, with workers and prompts.

    Args:
        source: llmfao.csv of the repository dustalov/evalica, or a frame.
    """
    table = read_table("llmfao", source, ("prompt", "worker", "winner", "left", "right"))
    first, second = table["left"], table["right"]
    chosen = winners("llmfao", table["winner"], first, second)
    voters = [str(int(worker)) for worker in table["worker"]]
    prompts = {"prompt": table["prompt"].astype(np.int64)}
    return pairs_of_names("llmfao", first, second, chosen, voters=voters, context=prompts, order_known=True)


def load_helpsteer3(source: Source, votes: Literal["individual", "overall"] = "overall") -> Comparisons:
    """How much better one of two answers is, from -3 to 3, by up to three people; which models wrote them is not said.

    Every answer is an item of its own, with `characters`, `headers`, `lists` and `bold` as features: for learning from
    features, as a reward model does, not for a ranking. Strength is 1 to 3, or 0 for a tie. Context: domain, language.

    Args:
        source: preference/train.jsonl.gz or validation.jsonl.gz of nvidia/HelpSteer3, or a frame.
        votes: "overall", one per pair of answers; or "individual", one per person.
    """
    one_of("votes", votes, ("individual", "overall"))
    column = "overall_preference" if votes == "overall" else "individual_preference"
    table = read_table("helpsteer3", source, ("response1", "response2", column), ("domain", "language"))
    scores = list(_scores(table[column]))
    pair = np.array([row for row, _ in scores])
    score = np.array([said for _, said in scores])
    n = len(table["response1"])
    texts = [str(text) for side in ("response1", "response2") for text in table[side]]
    return Comparisons(
        name="helpsteer3",
        items=tuple(f"prompt {row + 1}, response {side}" for side in (1, 2) for row in range(n)),
        shown=np.stack([pair, n + pair], axis=1),
        chosen=np.where(score < 0, 0, np.where(score > 0, 1, NOBODY)),
        features=np.array([[count(text) for count in _STYLE.values()] for text in texts], dtype=np.float64),
        feature_names=tuple(_STYLE),
        context={name: table[name][pair] for name in ("domain", "language") if name in table},
        strengths=np.abs(score),
        order_known=True,
    )


def _scores(column: Column) -> Iterator[tuple[int, float]]:
    """Row and score of every preference; a list of people's holds one each."""
    for row, cell in enumerate(column.tolist()):
        for said in parse_json(cell) if isinstance(cell, str | list | np.ndarray) else [{"score": cell}]:
            if not isinstance(said, dict) or "score" not in said:
                raise InvalidInputError(f"a preference of helpsteer3 must have a score; got {said!r} in row {row}.")
            score = said["score"]
            if score is not None and np.isfinite(score):
                yield row, float(score)


def _style_counts(counted: dict[str, Any]) -> dict[str, float]:
    """First minus second of what the arena counted; headers of six levels and so on are added up."""
    names = {
        "tokens": "sum_assistant_{}_tokens",
        "headers": "header_count_{}",
        "lists": "list_count_{}",
        "bold": "bold_count_{}",
    }
    return {name: _total(counted.get(key.format("a"))) - _total(counted.get(key.format("b"))) for name, key in names.items()}


def _total(counted: Any) -> float:
    if isinstance(counted, dict):
        return float(sum(value or 0 for value in counted.values()))
    return float(counted or 0)


def _categories(tags: list[dict[str, Any]]) -> dict[str, Column]:
    """A column of 0 and 1 per category: of {"math_v0.1": {"math": true}} it is math."""
    found = [{key: value for part in tag.values() if isinstance(part, dict) for key, value in part.items()} for tag in tags]
    names = dict.fromkeys(key for row in found for key, value in row.items() if isinstance(value, bool))
    return {name: np.array([float(bool(row.get(name))) for row in found]) for name in names}


def _joined(cell: Any) -> str:
    """The turns of an answer, which the file has as a JSON array of texts."""
    parts = parse_json(cell)
    return "\n".join(str(part or "") for part in parts) if isinstance(parts, list | np.ndarray) else str(parts)


def _seconds(cell: Any) -> float:
    """Seconds since 1970, UTC where no zone is given."""
    if isinstance(cell, int | float):
        return float(cell)
    moment = cell if isinstance(cell, datetime.datetime) else datetime.datetime.fromisoformat(str(cell))
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()
