"""Routes: ask for a pair or a slate, answer it, take the answer back."""

from __future__ import annotations

import secrets
from typing import Any

from fastapi import APIRouter, Response

from duelist.service.arena.commands import Ask, Asked, Tell, Undo, handle_of, shown_pair
from duelist.service.arena.contexts import Prompt
from duelist.service.arena.outcomes import Outcome, to_sides
from duelist.service.http.answer_models import AnswerInfo, AskInfo, Candidate, MessageInfo, PromptInfo
from duelist.service.http.dependencies import AskPath, TheCaller, TheService, VisitedArena, VotedArena, refusals
from duelist.service.http.fast_route import FastRoute
from duelist.service.http.request_models import NewAnswer, NewAsk, UndoRequest
from duelist.service.http.requests import context_of
from duelist.service.service import Service
from duelist.service.sessions import Caller
from duelist.service.state import ServiceState

router = APIRouter(prefix="/api/v1", tags=["votes"])
busy = APIRouter(prefix="/api/v1", tags=["votes"], route_class=FastRoute)
_PLAIN = NewAsk()


@busy.post("/arenas/{arena}/asks", status_code=201, response_model=AskInfo, responses=refusals(400, 404, 409, 503))
async def ask(service: TheService, caller: TheCaller, arena: VotedArena, body: NewAsk | None = None) -> Response:
    """Ask for a pair. Which candidate stands on the left is drawn at random and written down."""
    body = body or _PLAIN
    voter, context = _voter_of(service, caller) or body.voter or "", context_of(body)
    made = secrets.randbits(64), bool(secrets.randbits(1)), body.request_id or ""
    asked = await service.commit(Ask(arena, *made, body.features, voter, context, caller.name))
    if not asked.repeated:
        service.metrics.asks.inc()
    # As the framework would send it, without its second validation: asking and telling are most of the traffic.
    shown = ask_info(arena, asked, caller)
    return Response(shown.model_dump_json(), status_code=201, media_type="application/json")


@router.get("/arenas/{arena}/asks/{ask}", responses=refusals(404))
def get_ask(service: TheService, caller: TheCaller, arena: VisitedArena, ask: AskPath) -> AskInfo:
    """A pair that was asked for before, with its answer if there is one."""

    def find(state: ServiceState) -> Asked:
        found = state.arena(arena)
        return shown_pair(found, found.decision(ask), repeated=True)

    return ask_info(arena, service.store.read(find), caller)


@busy.put("/arenas/{arena}/asks/{ask}/answer", response_model=AnswerInfo, responses=refusals(400, 404, 409, 503))
async def tell(service: TheService, caller: TheCaller, arena: VotedArena, ask: AskPath, body: NewAnswer) -> Response:
    """Answer an ask. The same answer again changes nothing; another one is refused."""
    ranking = tuple(body.ranking or ()) if body.best is None else (body.best,)
    voter = _voter_of(service, caller) or body.voter or ""
    more = body.strength or "", body.comment or "", caller.name
    repeated, undo_until = await service.commit(Tell(arena, ask, body.outcome or "", voter, ranking, *more))
    said = body.outcome or "ranked"
    if not repeated:
        service.metrics.answers.labels(said).inc()
    answer = AnswerInfo.model_construct(id=ask, outcome=said, repeated=repeated, undo_until=undo_until)
    return Response(answer.model_dump_json(), media_type="application/json")


@router.post("/arenas/{arena}/asks/{ask}/undo", responses=refusals(400, 404, 409, 503))
async def undo(service: TheService, caller: TheCaller, arena: VotedArena, ask: AskPath, body: UndoRequest) -> AskInfo:
    """Take an answer back, in time and by the voter who gave it. The pair then waits for an answer again."""
    asked = await service.commit(Undo(arena, ask, _voter_of(service, caller) or body.voter), by=caller)
    service.metrics.undone.inc()
    return ask_info(arena, asked, caller)


def _voter_of(service: Service, caller: Caller) -> str:
    """The voter whose link this is; empty where the request says who votes."""
    keys = service.store.state.keys
    return keys[caller.key_id].voter if caller.key_id in keys else ""


def ask_info(arena: str, asked: Asked, caller: Caller) -> AskInfo:
    """What a voter is shown of a decision. Where the arena is blind, voters get handles, and no probability."""
    decision = asked.decision
    hidden = asked.blind and caller.role == "vote"
    probability, outcome = decision.probability, decision.outcome
    facts: dict[str, Any] = {
        "id": decision.id,
        "arena": arena,
        "prompt": None if asked.prompt is None else prompt_info(asked.prompt),
        "outcome": None if outcome is Outcome.OPEN else to_sides(outcome, flipped=decision.flipped),
        "asked_at": decision.asked_at,
    }
    shown = asked.slate or (asked.left, asked.right)
    ids = [handle_of(decision, place) if hidden else item.id for place, item in enumerate(shown, start=1)]
    candidates = [
        Candidate.model_construct(item=name, content=item.content, format=item.format)
        for name, item in zip(ids, shown, strict=True)
    ]
    if asked.slate:
        names = dict(zip((item.id for item in shown), ids, strict=True))
        ranking = [names[item.id] for item in asked.ranking] or None
        return AskInfo.model_construct(**facts, left=None, right=None, candidates=candidates, probability=None, ranking=ranking)
    facts["probability"] = None if hidden or probability != probability else probability  # NaN where it is unknown
    return AskInfo.model_construct(**facts, left=candidates[0], right=candidates[1])


def prompt_info(prompt: Prompt) -> PromptInfo:
    """A prompt as the page shows it."""
    messages = [MessageInfo(role=role, content=said) for role, said in prompt.messages]
    return PromptInfo(format=prompt.format, content=prompt.content, messages=messages or None)
