"""Every comparison as a table: one row each, columns in plain words.

`probability` is that of the pair in either order and `candidates` what it was chosen from, a JSON list of item ids: with both,
`duelist.DuelLog.from_file` can judge other routers.

An arena of slates has two more columns, JSON lists of item ids: `shown`, as on the screen, and `ranking`, best first as far as
the answer goes. Nothing is left or right there, and a winner has no one loser.

Where asks had prompts or contents of their own, there are `prompt`, `left_content` and `right_content`; where voters said so,
`strength` and `comment`.
"""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import UTC, datetime
from typing import Any

from duelist.service.arena.arena import Arena
from duelist.service.arena.decisions import ASKED
from duelist.service.arena.learner import ShownSlate
from duelist.service.arena.outcomes import Outcome, to_sides

COLUMNS = (
    "ask",
    "source",
    "asked_at",
    "told_at",
    "left",
    "right",
    "outcome",
    "winner",
    "loser",
    "probability",
    "explored",
    "voter",
    "candidates",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def table_of(arena: Arena) -> dict[str, list[Any]]:
    """Columns of equal length; None where there is nothing to say."""
    slates, rankings = arena.learner.slates, arena.learner.rankings
    columns = COLUMNS if arena.learner.choices == 2 else (*COLUMNS, "shown", "ranking")
    table: dict[str, list[Any]] = {name: [] for name in columns}
    voters = list(arena.voters)
    items = [item.id for item in arena.table.items]
    texts: dict[tuple[int, ...], str] = {}
    for number in range(len(arena.log)):
        decision = arena.log[number]
        asked = decision.source == ASKED
        answered = decision.outcome is not Outcome.OPEN
        first, second = items[decision.first], items[decision.second]
        winner = {Outcome.FIRST: first, Outcome.SECOND: second}.get(decision.outcome)
        loser = {Outcome.FIRST: second, Outcome.SECOND: first}.get(decision.outcome)
        offered = arena.learner.candidates(decision) if asked else ()
        if offered not in texts:
            texts[offered] = json.dumps([items[one] for one in offered])
        values = (
            decision.id if asked else None,
            "asked" if asked else "imported",
            _time(decision.asked_at),
            _time(decision.told_at) if answered else None,
            items[decision.left],
            items[decision.right],
            to_sides(decision.outcome, flipped=decision.flipped) if answered else None,
            winner,
            loser,
            _known(decision.probability),
            _known(decision.explored) if asked else None,
            voters[decision.voter] if decision.voter >= 0 else None,
            texts[offered] if offered else None,
        )
        for name, value in zip(COLUMNS, values, strict=True):
            table[name].append(value)
        if len(columns) > len(COLUMNS):
            _add_slate(table, items, slates.get(number), rankings.get(number, ()))
    return {**table, **_shown(arena), **_said(arena)}


def _shown(arena: Arena) -> dict[str, list[Any]]:
    """What the candidates answered and said; no columns where every ask showed the items as they are."""
    if not (arena.contexts or arena.prompts.of_ask or arena.spec.prompt):
        return {}
    columns: dict[str, list[Any]] = {"prompt": [], "left_content": [], "right_content": []}
    for number in range(len(arena.log)):
        decision, prompt = arena.log[number], arena.prompt_of(number)
        asked, is_pair = decision.source == ASKED, number not in arena.learner.slates
        columns["prompt"].append(prompt.to_text() if asked and prompt is not None else None)
        for name, item in (("left_content", decision.left), ("right_content", decision.right)):
            columns[name].append(arena.content_of(number, item).content if asked and is_pair else None)
    return columns


def _said(arena: Arena) -> dict[str, list[Any]]:
    """What voters said beside who won; no columns where nobody did."""
    numbers = range(len(arena.log))
    said = {"strength": arena.strengths, "comment": arena.remarks}
    return {name: [texts.get(number) for number in numbers] for name, texts in said.items() if texts}


def _add_slate(table: dict[str, list[Any]], items: list[str], slate: ShownSlate | None, ranking: tuple[int, ...]) -> None:
    """What the last row of an arena of slates says more, or otherwise; nothing of an imported pair."""
    named = [] if slate is None else [items[slate.items[place]] for place in ranking]
    if slate is not None:
        table["left"][-1] = table["right"][-1] = None
        table["winner"][-1] = named[0] if named else None
    table["shown"].append(None if slate is None else json.dumps([items[number] for number in slate.screen]))
    table["ranking"].append(json.dumps(named) if named else None)


def as_csv(table: dict[str, list[Any]]) -> str:
    """The table as CSV, times in ISO 8601."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    for row in zip(*table.values(), strict=True):
        writer.writerow([_cell(value) for value in row])
    return text.getvalue()


def as_parquet(table: dict[str, list[Any]]) -> bytes:
    """The table as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, time, number = pa.string(), pa.timestamp("ms", tz="UTC"), pa.float64()
    kinds = {"asked_at": time, "told_at": time, "probability": number, "explored": number}
    schema = pa.schema([(name, kinds.get(name, text)) for name in table])
    buffer = io.BytesIO()
    pq.write_table(pa.table(table, schema=schema), buffer)
    return buffer.getvalue()


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    # A spreadsheet would run a cell that starts like a formula.
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return "" if value is None else value
