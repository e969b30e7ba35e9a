"""Routes: what the votes say, why a pair was chosen, and all of it as a file."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from fastapi import APIRouter, Response

from duelist.live.beliefs import predict_rows
from duelist.service.arena.arena import Arena
from duelist.service.arena.decisions import Decision
from duelist.service.arena.item_commands import ImportVotes
from duelist.service.errors import ConflictError, RefusedError
from duelist.service.http.answer_models import (
    ExplainedSide,
    ExplanationInfo,
    ImportInfo,
    Leaderboard,
    LeaderboardRow,
    Prediction,
    PredictionRow,
    Timeline,
    TimelineBucket,
)
from duelist.service.http.dependencies import AdminArena, AskPath, ReadArena, TheCaller, TheService, refusals
from duelist.service.http.request_models import NewImport, PredictionRequest
from duelist.service.http.votes import prompt_info
from duelist.service.insight.explain import Side, explain
from duelist.service.insight.export import as_csv, as_parquet, table_of
from duelist.service.insight.leaderboard import LEVEL
from duelist.service.insight.timeline import mean_explored, timeline
from duelist.service.state import ServiceState

router = APIRouter(prefix="/api/v1", tags=["insight"])
_FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One row per comparison.",
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.get("/arenas/{arena}/leaderboard", responses=refusals(404))
def leaderboard(service: TheService, arena: ReadArena) -> Leaderboard:
    """Items by posterior mean utility, with intervals and the probability that each is best."""
    computed = service.leaderboard(arena)

    def show(state: ServiceState) -> Leaderboard:
        found = state.arena(arena)
        rows = []
        for place, rank in enumerate(computed.ranks, start=1):
            item = found.table.items[rank.item]
            facts = rank._asdict()
            facts.update(rank=place, item=item.id, name=item.name)
            rows.append(LeaderboardRow(**facts))
        return Leaderboard(
            arena=arena,
            rows=rows,
            level=LEVEL,
            votes=found.n_votes,
            answers_learnt=found.n_learnable,
            revision=computed.revision,
            drawn_from=computed.draws.votes,
            age=computed.draws.age,
        )

    return service.store.read(show)


@router.post("/arenas/{arena}/predictions", responses=refusals(400, 404, 409))
def predictions(service: TheService, arena: ReadArena, body: PredictionRequest) -> Prediction:
    """The posterior of items with these features, in an arena whose features come with each ask. Nothing is asked."""
    spec = service.arena(arena).spec
    if spec.features != "request":
        raise ConflictError("this arena knows its items' features; see the leaderboard.")
    items = list(body.features)

    def check(state: ServiceState) -> None:
        for item in items:
            state.arena(arena).table.number_of(item)
            if len(body.features[item]) != spec.dim:
                raise RefusedError(f"features of item {item!r} must have length {spec.dim}; got {len(body.features[item])}.")

    service.store.read(check)
    found = predict_rows(service.draws(arena), np.array([body.features[item] for item in items]))
    rows = [
        PredictionRow(
            item=items[n],
            utility=float(found.utility[n]),
            low=float(found.low[n]),
            high=float(found.high[n]),
            probability_best=float(found.probability_best[n]),
            expected_loss=float(found.expected_loss[n]),
        )
        for n in np.argsort(-found.utility, kind="stable")
    ]
    revision = service.arena(arena).revision
    return Prediction(arena=arena, rows=rows, level=LEVEL, revision=revision, drawn_from=found.votes, age=found.age)


@router.get("/arenas/{arena}/timeline", responses=refusals(404))
def get_timeline(service: TheService, arena: ReadArena) -> Timeline:
    """Votes and the share of exploration over time."""

    def show(state: ServiceState) -> Timeline:
        found = state.arena(arena)
        width, buckets = timeline(found)
        return Timeline(
            arena=arena,
            width=width,
            buckets=[TimelineBucket(**bucket._asdict()) for bucket in buckets],
            explored=mean_explored(found),
            revision=found.revision,
        )

    return service.store.read(show)


@router.get("/arenas/{arena}/asks/{ask}/explanation", responses=refusals(404))
def explanation(service: TheService, arena: ReadArena, ask: AskPath) -> ExplanationInfo:
    """Why a pair was chosen: utilities, probabilities and intervals."""
    decision = service.store.read(lambda state: state.arena(arena).decision(ask))
    computed = service.leaderboard(arena)

    def show(state: ServiceState) -> ExplanationInfo:
        found = state.arena(arena)
        why = explain(found, decision, computed)
        prompt = found.prompt_of(decision.number)
        return ExplanationInfo(
            id=decision.id,
            policy=str(found.spec.policy["kind"]),
            prompt=None if prompt is None else prompt_info(prompt),
            left=_side(found, why.left, decision),
            right=_side(found, why.right, decision),
            probability_left_wins=why.probability_left_wins,
            low=why.low,
            high=why.high,
            level=LEVEL,
            pair_probability=why.pair_probability,
            explored=why.explored,
            words=why.words,
        )

    return service.store.read(show)


@router.get("/arenas/{arena}/votes", response_class=Response, responses={**_FILES, **refusals(404)})
def export(service: TheService, arena: ReadArena, format: Literal["csv", "parquet"] = "csv") -> Response:  # noqa: A002 - its name in the address
    """Every comparison, asked or imported, answered or not, as CSV or Parquet."""
    table = service.store.read(lambda state: table_of(state.arena(arena)))
    name = f'attachment; filename="{arena}.{format}"'
    if format == "csv":
        return Response(as_csv(table), media_type="text/csv", headers={"content-disposition": name})
    return Response(as_parquet(table), media_type="application/vnd.apache.parquet", headers={"content-disposition": name})


@router.post("/arenas/{arena}/imports", status_code=201, responses=refusals(400, 404, 409, 503))
async def import_votes(service: TheService, caller: TheCaller, arena: AdminArena, body: NewImport) -> ImportInfo:
    """Learn from comparisons made elsewhere: a warm start. A batch counts once, however often it is sent."""
    votes = [(vote.first, vote.second, str(vote.outcome)) for vote in body.votes]
    repeated = await service.commit(ImportVotes(arena, body.batch, votes), by=caller)
    return ImportInfo(batch=body.batch, votes=len(votes), repeated=repeated)


def _side(arena: Arena, side: Side, decision: Decision) -> ExplainedSide:
    item = arena.table.items[side.item]
    return ExplainedSide(
        item=item.id,
        name=item.name,
        drawn=list(side.drawn),
        utility=side.utility,
        low=side.low,
        high=side.high,
        probability_best=side.probability_best,
        content=arena.content_of(decision.number, side.item).content,
    )
