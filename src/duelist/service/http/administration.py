"""Routes: what an administrator does with an arena, beside its items: prompts, goal, voters, its end, and who did what."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Path, Query
from fastapi.concurrency import run_in_threadpool

from duelist.service.arena.admin_commands import (
    AddPrompts,
    DeleteArena,
    EraseVoter,
    RemoveAnswers,
    SetClosed,
    SetGoal,
)
from duelist.service.arena.outcomes import Outcome
from duelist.service.http.answer_models import (
    ArenaInfo,
    AuditEntry,
    AuditLog,
    DatasetInfo,
    ErasedInfo,
    RemovedInfo,
    VerdictInfo,
    VoterInfo,
    VoterList,
)
from duelist.service.http.arenas import arena_info, goal_info
from duelist.service.http.dependencies import Admin, AdminArena, ReadArena, TheCaller, TheService, refusals
from duelist.service.http.fields import VOTER_NAME
from duelist.service.http.question_models import NewGoal, NewPrompts
from duelist.service.http.request_models import ArenaChange
from duelist.service.http.requests import goal_of, prompts_of
from duelist.service.insight.audit import audit
from duelist.service.service import Service
from duelist.service.state import ServiceState

router = APIRouter(prefix="/api/v1", tags=["administration"])
VoterPath = Annotated[str, Path(pattern=VOTER_NAME, description="Name of the voter.")]
Before = Annotated[int | None, Query(ge=1, description="Position of the first event that is not wanted; left out: the end.")]
Limit = Annotated[int, Query(ge=1, le=500)]
WithVotes = Annotated[bool, Query(description="Whether asks, answers and undone answers are wanted too.")]


@router.post("/arenas/{arena}/prompts", status_code=201, responses=refusals(400, 404, 409, 503))
async def add_prompts(service: TheService, caller: TheCaller, arena: AdminArena, body: NewPrompts) -> DatasetInfo:
    """Add prompts with their answers. From then on asks take the prompt that was answered least."""
    prompts = await run_in_threadpool(prompts_of, body)
    total, repeated = await service.commit(AddPrompts(arena, body.batch, prompts), by=caller)
    return DatasetInfo(batch=body.batch, prompts=total, repeated=repeated)


@router.put("/arenas/{arena}/goal", responses=refusals(400, 404, 409, 503))
async def set_goal(service: TheService, caller: TheCaller, arena: AdminArena, body: NewGoal) -> ArenaInfo:
    """Say what shall be found out. Do so before the votes: a goal that was chosen by what came out promises nothing."""
    goal = goal_of(body, service.arena(arena).spec.features)
    return arena_info(await service.commit(SetGoal(arena, goal), by=caller))


@router.delete("/arenas/{arena}/goal", responses=refusals(404, 503))
async def drop_goal(service: TheService, caller: TheCaller, arena: AdminArena) -> ArenaInfo:
    """Have no goal."""
    return arena_info(await service.commit(SetGoal(arena, None), by=caller))


@router.get("/arenas/{arena}/verdict", responses=refusals(404, 409))
def verdict(service: TheService, arena: ReadArena) -> VerdictInfo:
    """Are we done? For a gate: go on when `decided`, and with a promotion when `promote`."""
    found = service.verdict(arena)
    reached, goal = found.verdict, found.goal
    expected = reached.votes_expected
    return VerdictInfo(
        arena=arena,
        goal=goal_info(goal),
        decided=reached.decided,
        items=found.items,
        promote=reached.decided and found.items == [goal.challenger] if goal.kind == "promote" else None,
        error_probability=reached.error_probability,
        votes=found.votes,
        votes_expected=None if math.isinf(expected) else math.ceil(expected),
        sentence=found.sentence,
        revision=found.revision,
    )


@router.patch("/arenas/{arena}", responses=refusals(400, 404, 503))
async def change_arena(service: TheService, caller: TheCaller, arena: AdminArena, body: ArenaChange) -> ArenaInfo:
    """Close an arena, or open it again."""
    return arena_info(await service.commit(SetClosed(arena, body.closed), by=caller))


@router.delete("/arenas/{arena}", status_code=204, responses=refusals(404, 503))
async def delete_arena(service: TheService, caller: TheCaller, arena: AdminArena) -> None:
    """Delete an arena, and the keys that open only it. What happened in it stays in the journal."""
    await service.commit(DeleteArena(arena), by=caller)


@router.get("/arenas/{arena}/voters", responses=refusals(404))
def list_voters(service: TheService, arena: AdminArena) -> VoterList:
    """The named voters, and how much they answered."""

    def show(state: ServiceState) -> VoterList:
        found = state.arena(arena)
        voter = found.log.column("voter")
        gone = np.bincount(voter[found.log.column("outcome") == Outcome.REMOVED], minlength=len(found.voters)).tolist()
        rows = [
            VoterInfo(voter=name, answers=found.counts.of_voter(number), removed=gone[number])
            for name, number in found.voters.items()
        ]
        return VoterList(voters=sorted(rows, key=lambda row: -row.answers))

    return service.store.read(show)


@router.delete("/arenas/{arena}/voters/{voter}/answers", responses=refusals(404, 409, 503))
async def remove_answers(service: TheService, caller: TheCaller, arena: AdminArena, voter: VoterPath) -> RemovedInfo:
    """Let the answers of a voter count no longer. What is left is exactly what the others taught."""
    found = await service.commit(RemoveAnswers(arena, voter), by=caller)
    return RemovedInfo(voter=voter, removed=found, answers_learnt=service.arena(arena).n_learnable)


@router.delete("/arenas/{arena}/voters/{voter}", responses=refusals(404, 503))
async def erase_voter(service: TheService, caller: TheCaller, arena: AdminArena, voter: VoterPath) -> ErasedInfo:
    """Forget the name of a voter. The answers stay, under a number."""
    return ErasedInfo(voter=await service.commit(EraseVoter(arena, voter), by=caller))


@router.get("/audit", responses=refusals())
def audit_log(
    service: TheService, _caller: Admin, before: Before = None, limit: Limit = 100, votes: WithVotes = False
) -> AuditLog:
    """Who did what in the whole service, newest first."""
    return _audit(service, "", before, limit=limit, votes=votes)


@router.get("/arenas/{arena}/audit", responses=refusals(404))
def arena_audit_log(
    service: TheService, arena: AdminArena, before: Before = None, limit: Limit = 100, votes: WithVotes = False
) -> AuditLog:
    """Who did what in an arena, newest first."""
    service.arena(arena)
    return _audit(service, arena, before, limit=limit, votes=votes)


def _audit(service: Service, arena: str, before: int | None, *, limit: int, votes: bool) -> AuditLog:
    end = service.store.position + 1
    events, following = audit(service.store.events, min(before or end, end), arena=arena, votes=votes, limit=limit)
    keys = service.store.state.keys
    entries = [
        AuditEntry(
            position=event.position,
            at=event.at,
            kind=event.kind,
            arena=event.arena or None,
            by=event.by or None,
            label=keys[event.by].label if event.by in keys else None,
            about=event.about,
        )
        for event in events
    ]
    return AuditLog(entries=entries, next=following)
