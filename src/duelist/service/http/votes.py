"""Routes: ask for a pair or a slate, answer it, take the answer back."""

from __future__ import annotations

import secrets

from fastapi import APIRouter, Response

from duelist.service.arena.commands import Ask, Asked, Tell, Undo, shown_pair
from duelist.service.arena.outcomes import Outcome, to_sides
from duelist.service.http.answer_models import AnswerInfo, AskInfo, Candidate
from duelist.service.http.dependencies import AskPath, TheService, VisitedArena, VotedArena, refusals
from duelist.service.http.fast_route import FastRoute
from duelist.service.http.request_models import NewAnswer, NewAsk, UndoRequest
from duelist.service.state import ServiceState

router = APIRouter(prefix="/api/v1", tags=["votes"])
busy = APIRouter(prefix="/api/v1", tags=["votes"], route_class=FastRoute)


@busy.post("/arenas/{arena}/asks", status_code=201, response_model=AskInfo, responses=refusals(400, 404, 409, 503))
async def ask(service: TheService, arena: VotedArena, body: NewAsk | None = None) -> Response:
    """Ask for a pair. Which candidate stands on the left is drawn at random and written down."""
    request, features, voter = (body.request_id or "", body.features, body.voter or "") if body else ("", None, "")
    asked = await service.commit(Ask(arena, secrets.randbits(64), bool(secrets.randbits(1)), request, features, voter))
    if not asked.repeated:
        service.metrics.asks.inc()
    # As the framework would send it, without its second validation: asking and telling are most of the traffic.
    return Response(ask_info(arena, asked).model_dump_json(), status_code=201, media_type="application/json")


@router.get("/arenas/{arena}/asks/{ask}", responses=refusals(404))
def get_ask(service: TheService, arena: VisitedArena, ask: AskPath) -> AskInfo:
    """A pair that was asked for before, with its answer if there is one."""

    def find(state: ServiceState) -> Asked:
        found = state.arena(arena)
        return shown_pair(found, found.decision(ask), repeated=True)

    return ask_info(arena, service.store.read(find))


@busy.put("/arenas/{arena}/asks/{ask}/answer", response_model=AnswerInfo, responses=refusals(400, 404, 409, 503))
async def tell(service: TheService, arena: VotedArena, ask: AskPath, body: NewAnswer) -> Response:
    """Answer an ask. The same answer again changes nothing; another one is refused."""
    ranking = tuple(body.ranking or ()) if body.best is None else (body.best,)
    repeated, undo_until = await service.commit(Tell(arena, ask, body.outcome or "", body.voter or "", ranking))
    said = body.outcome or "ranked"
    if not repeated:
        service.metrics.answers.labels(said).inc()
    answer = AnswerInfo.model_construct(id=ask, outcome=said, repeated=repeated, undo_until=undo_until)
    return Response(answer.model_dump_json(), media_type="application/json")


@router.post("/arenas/{arena}/asks/{ask}/undo", responses=refusals(400, 404, 409, 503))
async def undo(service: TheService, arena: VotedArena, ask: AskPath, body: UndoRequest) -> AskInfo:
    """Take an answer back, in time and by the voter who gave it. The pair then waits for an answer again."""
    asked = await service.commit(Undo(arena, ask, body.voter))
    service.metrics.undone.inc()
    return ask_info(arena, asked)


def ask_info(arena: str, asked: Asked) -> AskInfo:
    """What a voter is shown of a decision."""
    decision, left, right, _, slate, ranking = asked
    probability, outcome = decision.probability, decision.outcome
    if slate:
        return AskInfo.model_construct(
            id=decision.id,
            arena=arena,
            left=None,
            right=None,
            candidates=[Candidate(item=item.id, content=item.content, format=item.format) for item in slate],
            probability=None,
            outcome=None if outcome is Outcome.OPEN else to_sides(outcome, flipped=False),
            ranking=[item.id for item in ranking] or None,
            asked_at=decision.asked_at,
        )
    return AskInfo.model_construct(
        id=decision.id,
        arena=arena,
        left=Candidate.model_construct(item=left.id, content=left.content, format=left.format),
        right=Candidate.model_construct(item=right.id, content=right.content, format=right.format),
        probability=None if probability != probability else probability,  # NaN where it is unknown
        outcome=None if outcome is Outcome.OPEN else to_sides(outcome, flipped=decision.flipped),
        asked_at=decision.asked_at,
    )
