"""Routes: what the votes say, why a pair was chosen, and all of it as a file."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, Response

from duelist.service.arena import Arena
from duelist.service.beliefs import LEVEL, predict
from duelist.service.decisions import ASKED
from duelist.service.doors import AdminArena, AskPath, TheService, refusals
from duelist.service.errors import ConflictError, RefusedError
from duelist.service.events import Event
from duelist.service.explain import Side, explain
from duelist.service.export import as_csv, as_parquet, table_of
from duelist.service.hall import Hall
from duelist.service.schemas import (
    ExplainedSide,
    ExplanationInfo,
    ImportInfo,
    Leaderboard,
    LeaderboardRow,
    NewImport,
    Prediction,
    PredictionRequest,
    PredictionRow,
    Timeline,
    TimelineBucket,
)
from duelist.service.timeline import timeline

router = APIRouter(prefix="/api/v1", tags=["insight"])
_FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One row a comparison.",
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.get("/arenas/{arena}/leaderboard", responses=refusals(404))
def leaderboard(service: TheService, arena: AdminArena) -> Leaderboard:
    """Items by posterior mean utility, with intervals and the probability that each is best."""
    beliefs = service.beliefs(arena)

    def shown(hall: Hall) -> Leaderboard:
        found = hall.arena(arena)
        rows = []
        for place, rank in enumerate(beliefs.ranks, start=1):
            item = found.table.items[rank.item]
            facts = rank._asdict()
            facts.update(rank=place, item=item.id, name=item.name)
            rows.append(LeaderboardRow(**facts))
        return Leaderboard(
            arena=arena,
            rows=rows,
            level=LEVEL,
            votes=found.n_votes,
            answers_learnt=found.n_teaching,
            revision=beliefs.revision,
        )

    return service.ledger.read(shown)


@router.post("/arenas/{arena}/predictions", responses=refusals(400, 404, 409))
def predictions(service: TheService, arena: AdminArena, body: PredictionRequest) -> Prediction:
    """What is believed of items with these features, in an arena whose features come with each ask. Nothing is asked."""
    spec = service.arena(arena).spec
    if spec.features != "request":
        raise ConflictError("this arena knows its items' features; the leaderboard says what is believed of them.")
    items = list(body.features)

    def check(hall: Hall) -> None:
        for item in items:
            hall.arena(arena).number_of(item)
            if len(body.features[item]) != spec.dim:
                raise RefusedError(f"features of item {item!r} must have length {spec.dim}; got {len(body.features[item])}.")

    service.ledger.read(check)
    beliefs = service.beliefs(arena)
    mean, low, high, best = predict(beliefs.theta, np.array([body.features[item] for item in items]))
    rows = [
        PredictionRow(
            item=items[n], utility=float(mean[n]), low=float(low[n]), high=float(high[n]), probability_best=float(best[n])
        )
        for n in np.argsort(-mean, kind="stable")
    ]
    return Prediction(arena=arena, rows=rows, level=LEVEL, revision=beliefs.revision)


@router.get("/arenas/{arena}/timeline", responses=refusals(404))
def get_timeline(service: TheService, arena: AdminArena) -> Timeline:
    """Votes and the share of exploration over time."""

    def shown(hall: Hall) -> Timeline:
        found = hall.arena(arena)
        width, buckets = timeline(found)
        return Timeline(
            arena=arena,
            width=width,
            buckets=[TimelineBucket(**bucket._asdict()) for bucket in buckets],
            explored=_explored(found),
            revision=found.revision,
        )

    return service.ledger.read(shown)


@router.get("/arenas/{arena}/asks/{ask}/explanation", responses=refusals(404))
def explanation(service: TheService, arena: AdminArena, ask: AskPath) -> ExplanationInfo:
    """Why a pair was chosen: utilities, probabilities and intervals."""
    decision = service.ledger.read(lambda hall: hall.arena(arena).decision(ask))
    beliefs = service.beliefs(arena)

    def shown(hall: Hall) -> ExplanationInfo:
        found = hall.arena(arena)
        why = explain(found, decision, beliefs)
        return ExplanationInfo(
            id=decision.id,
            policy=str(found.spec.policy["kind"]),
            left=_side(found, why.left),
            right=_side(found, why.right),
            probability_left_wins=why.probability_left_wins,
            low=why.low,
            high=why.high,
            level=LEVEL,
            pair_probability=why.pair_probability,
            explored=why.explored,
            words=why.words,
        )

    return service.ledger.read(shown)


@router.get("/arenas/{arena}/votes", response_class=Response, responses={**_FILES, **refusals(404)})
def export(service: TheService, arena: AdminArena, format: Literal["csv", "parquet"] = "csv") -> Response:  # noqa: A002 - its name in the address
    """Every comparison, asked or imported, answered or not, as CSV or Parquet."""
    table = service.ledger.read(lambda hall: table_of(hall.arena(arena)))
    name = f'attachment; filename="{arena}.{format}"'
    if format == "csv":
        return Response(as_csv(table), media_type="text/csv", headers={"content-disposition": name})
    return Response(as_parquet(table), media_type="application/vnd.apache.parquet", headers={"content-disposition": name})


@router.post("/arenas/{arena}/imports", status_code=201, responses=refusals(400, 404, 409, 503))
async def import_votes(service: TheService, arena: AdminArena, body: NewImport) -> ImportInfo:
    """Learn from comparisons made elsewhere: a warm start. A batch counts once, however often it is sent."""
    votes = [(vote.first, vote.second, str(vote.outcome)) for vote in body.votes]

    def decide(hall: Hall, at: int) -> Event | None:
        return hall.arena(arena).import_votes(body.batch, votes, at=at)

    return await service.happen(
        decide, lambda _hall, event: ImportInfo(batch=body.batch, votes=len(votes), repeated=event is None)
    )


def _explored(arena: Arena) -> float:
    shares = arena.log.column("explored")[arena.log.column("source") == ASKED]
    return float(shares.mean()) if len(shares) else 0.0


def _side(arena: Arena, side: Side) -> ExplainedSide:
    item = arena.table.items[side.item]
    return ExplainedSide(
        item=item.id,
        name=item.name,
        drawn=list(side.drawn),
        utility=side.utility,
        low=side.low,
        high=side.high,
        probability_best=side.probability_best,
    )
