"""Judges that are programs, such as a language model: a voter who is asked both ways, and whose reliability can be learnt."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.core.errors import InvalidInputError
from duelist.datasets.comparisons import NOBODY, Comparisons

# judge(prompt, first, second): +1 where the first answer is better, -1 where the second is, 0 for a tie.
Judge = Callable[[str, str, str], int]


class AnswerPair(NamedTuple):
    """Two answers to one prompt.

    Attributes:
        prompt: the question.
        first: text of the first answer.
        second: text of the second answer.
        first_by: who wrote the first: the item that is compared.
        second_by: who wrote the second.
    """

    prompt: str
    first: str
    second: str
    first_by: str
    second_by: str


def ask_judge(judge: Judge, pairs: Iterable[AnswerPair], voter: str = "judge") -> Comparisons:
    """Votes of a judge, asked in both orders: where the two verdicts differ, the vote is a tie.

    Args:
        judge: `judge(prompt, first, second)` returns +1, -1 or 0.
        pairs: what to ask about; the comparisons are in their order.
        voter: the name under which its reliability is learnt by `fit_votes(reliability=True)`.

    Returns:
        Comparisons whose context has `prompt`, and `consistent`, 1 where both orders gave the same verdict.

    Example:
        >>> longer = lambda prompt, first, second: (len(first) > len(second)) - (len(first) < len(second))
        >>> votes = ask_judge(longer, [AnswerPair("Why?", "Because.", "No idea at all.", "a", "b")])
        >>> votes.outcomes.tolist(), votes.context["consistent"].tolist()
        ([-1], [1.0])
    """
    asked = list(pairs)
    if not asked:
        raise InvalidInputError("pairs must hold at least one pair of answers; got none.")
    forth = np.array([_verdict(judge(pair.prompt, pair.first, pair.second)) for pair in asked])
    back = np.array([-_verdict(judge(pair.prompt, pair.second, pair.first)) for pair in asked])
    items = tuple(sorted({name for pair in asked for name in (pair.first_by, pair.second_by)}))
    rows = {name: row for row, name in enumerate(items)}
    prompts = np.empty(len(asked), dtype=object)
    prompts[:] = [pair.prompt for pair in asked]
    return Comparisons(
        name=voter,
        items=items,
        shown=np.array([[rows[pair.first_by], rows[pair.second_by]] for pair in asked]),
        chosen=np.where(forth != back, NOBODY, np.where(forth > 0, 0, np.where(forth < 0, 1, NOBODY))),
        context={"prompt": prompts, "consistent": (forth == back).astype(np.float64)},
        voters=np.array([voter] * len(asked), dtype=object),
    )


def _verdict(value: int) -> int:
    if isinstance(value, bool) or value not in (1, -1, 0):
        raise InvalidInputError(f"a judge must answer +1 (the first), -1 (the second) or 0 (a tie); got {value!r}.")
    return int(value)


def join_comparisons(parts: Sequence[Comparisons], name: str = "votes") -> Comparisons:
    """Votes on pairs from several sources as one: people's beside a judge's. Items are the same where their names are.

    Voters, weights, and columns of the context that all parts have are kept. The order on the screen is known where it is in
    every part: votes of a judge that was asked both ways have no side, so a position effect must be fitted to people alone.

    Args:
        parts: comparisons of two.
        name: of the whole.

    Example:
        >>> one = Comparisons(name="x", items=("a", "b"), shown=[[0, 1]], chosen=[0], voters=["ann"])
        >>> two = Comparisons(name="y", items=("b", "c"), shown=[[0, 1]], chosen=[1], voters=["bob"])
        >>> both = join_comparisons([one, two])
        >>> both.items, both.shown.tolist(), both.voters.tolist()
        (('a', 'b', 'c'), [[0, 1], [1, 2]], ['ann', 'bob'])
    """
    if not parts:
        raise InvalidInputError("parts must hold at least one set of comparisons; got none.")
    wrong = next((part for part in parts if part.most_options != 2), None)
    if wrong is not None:
        raise InvalidInputError(f"parts must be comparisons of two; {wrong.name} has up to {wrong.most_options} items in one.")
    items = tuple(sorted({item for part in parts for item in part.items}))
    rows = {item: row for row, item in enumerate(items)}
    shared = [key for key in parts[0].context if all(key in part.context for part in parts)]
    voters = [part.voters for part in parts if part.voters is not None]
    counted = any(part.weights is not None for part in parts)
    weights = [np.ones(len(part)) if part.weights is None else part.weights for part in parts]
    return Comparisons(
        name=name,
        items=items,
        shown=np.concatenate([np.array([rows[item] for item in part.items])[part.shown] for part in parts]),
        chosen=np.concatenate([part.chosen for part in parts]),
        context={key: np.concatenate([part.context[key] for part in parts]) for key in shared},
        voters=np.concatenate(voters) if len(voters) == len(parts) else None,
        weights=np.concatenate(weights) if counted else None,
        order_known=all(part.order_known for part in parts),
    )


def write_preferences(path: str | os.PathLike[str], pairs: Sequence[AnswerPair], outcomes: npt.ArrayLike) -> int:
    """Write decided pairs as JSON Lines with `prompt`, `chosen` and `rejected`, as trainers of DPO read them.

    Args:
        path: of the file, which is replaced.
        pairs: (n,) answers.
        outcomes: (n,) +1 where the first is better, -1 where the second is; pairs with 0 are left out.

    Returns:
        How many lines were written.
    """
    verdicts = np.asarray(outcomes)
    if verdicts.shape != (len(pairs),) or not np.isin(verdicts, (1, -1, 0)).all():
        raise InvalidInputError(f"outcomes must be ({len(pairs)},) of +1, -1 and 0, one per pair; got shape {verdicts.shape}.")
    lines = []
    for pair, verdict in zip(pairs, verdicts.tolist(), strict=True):
        if verdict:
            chosen, rejected = (pair.first, pair.second) if verdict > 0 else (pair.second, pair.first)
            lines.append(json.dumps({"prompt": pair.prompt, "chosen": chosen, "rejected": rejected}, ensure_ascii=False))
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)
