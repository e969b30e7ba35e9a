"""Routes: ask for a pair, tell what somebody thinks of it, take it back."""

from __future__ import annotations

import secrets

from fastapi import APIRouter, Response

from duelist.service.arena import Arena
from duelist.service.decisions import HELD, Decision
from duelist.service.doors import AskPath, TheService, VotedArena, refusals
from duelist.service.events import Event
from duelist.service.hall import Hall
from duelist.service.lean_route import LeanRoute
from duelist.service.outcomes import Outcome, to_sides
from duelist.service.schemas import AnswerInfo, AskInfo, Candidate, NewAnswer, NewAsk, UndoRequest

router = APIRouter(prefix="/api/v1", tags=["votes"])
busy = APIRouter(prefix="/api/v1", tags=["votes"], route_class=LeanRoute)


@busy.post("/arenas/{arena}/asks", status_code=201, response_model=AskInfo, responses=refusals(400, 404, 409, 503))
async def ask(service: TheService, arena: VotedArena, body: NewAsk | None = None) -> Response:
    """Ask for a pair. Which candidate stands on the left is drawn at random and written down."""
    request = (body.request_id if body else None) or ""
    features = body.features if body else None
    token, flipped = secrets.randbits(64), bool(secrets.randbits(1))
    repeated: list[Decision] = []

    def decide(hall: Hall, at: int) -> Event | None:
        found = hall.arena(arena)
        before = found.repeated_ask(request)
        if before is not None:
            repeated.append(before)
            return None
        return found.ask(at=at, token=token, flipped=flipped, request=request, features=features)

    def outcome(hall: Hall, event: Event | None) -> AskInfo:
        found = hall.arena(arena)
        return ask_info(found, repeated[0] if event is None else found.log[event["number"]])

    made = await service.happen(decide, outcome)
    if not repeated:
        service.metrics.asks.inc()
    return _written(made, 201)


@router.get("/arenas/{arena}/asks/{ask}", responses=refusals(404))
def get_ask(service: TheService, arena: VotedArena, ask: AskPath) -> AskInfo:
    """A pair that was asked for before, with its answer if there is one."""
    return service.ledger.read(lambda hall: ask_info(hall.arena(arena), hall.arena(arena).decision(ask)))


@busy.put("/arenas/{arena}/asks/{ask}/answer", response_model=AnswerInfo, responses=refusals(400, 404, 409, 503))
async def tell(service: TheService, arena: VotedArena, ask: AskPath, body: NewAnswer) -> Response:
    """Answer an ask. The same answer again changes nothing; another one is refused."""

    def decide(hall: Hall, at: int) -> Event | None:
        found = hall.arena(arena)
        return found.tell(found.decision(ask), body.outcome, at=at, voter=body.voter or "")

    def outcome(hall: Hall, event: Event | None) -> AnswerInfo:
        found = hall.arena(arena)
        decision = found.decision(ask)
        until = decision.told_at + found.spec.undo_ms if decision.stage == HELD else None
        return AnswerInfo(id=decision.id, outcome=body.outcome, repeated=event is None, undo_until=until)

    answer = await service.happen(decide, outcome)
    if not answer.repeated:
        service.metrics.answers.labels(answer.outcome).inc()
    return _written(answer, 200)


@router.post("/arenas/{arena}/asks/{ask}/undo", responses=refusals(400, 404, 409, 503))
async def undo(service: TheService, arena: VotedArena, ask: AskPath, body: UndoRequest) -> AskInfo:
    """Take an answer back, in time and by the voter who gave it. The pair then waits for an answer again."""

    def decide(hall: Hall, at: int) -> Event:
        found = hall.arena(arena)
        return found.undo(found.decision(ask), at=at, voter=body.voter)

    shown = await service.happen(decide, lambda hall, _event: ask_info(hall.arena(arena), hall.arena(arena).decision(ask)))
    service.metrics.undone.inc()
    return shown


def _written(answer: AskInfo | AnswerInfo, status: int) -> Response:
    """An answer as the framework would send it, without its second validation: these two routes are most of the traffic."""
    return Response(answer.model_dump_json(), status_code=status, media_type="application/json")


def ask_info(arena: Arena, decision: Decision) -> AskInfo:
    """What a voter is shown of a decision."""
    probability = decision.probability
    answered = decision.outcome is not Outcome.OPEN
    return AskInfo.model_construct(
        id=decision.id,
        arena=arena.spec.id,
        left=_candidate(arena, decision.left),
        right=_candidate(arena, decision.right),
        probability=None if probability != probability else probability,  # NaN where the policy does not say
        outcome=to_sides(decision.outcome, flipped=decision.flipped) if answered else None,
        asked_at=decision.asked_at,
    )


def _candidate(arena: Arena, number: int) -> Candidate:
    item = arena.table.items[number]
    return Candidate.model_construct(item=item.id, content=item.content, format=item.format)
