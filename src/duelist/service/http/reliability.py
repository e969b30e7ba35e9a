"""Route: which voters of an arena can be trusted, and what the side of the screen adds."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from duelist.service.http.dependencies import ReadArena, TheService, refusals
from duelist.service.http.fields import Answer, Share, Whole
from duelist.service.insight.leaderboard import LEVEL
from duelist.service.insight.voters import NAMELESS, crowd_votes

router = APIRouter(prefix="/api/v1", tags=["insight"])


class VoterRow(Answer):
    """One voter."""

    voter: str
    slope: float = Field(description="1 is the average voter, 0 a vote at random, below 0 one who means the opposite.")
    low: float
    high: float
    votes: Whole


class SideEffect(Answer):
    """What standing on the left adds to a candidate, in log-odds."""

    mean: float
    low: float
    high: float


class Reliability(Answer):
    """Voters from the least reliable on, and the effect of the side."""

    arena: str
    rows: list[VoterRow]
    left: SideEffect | None = Field(description="Null before the first answer to an ask.")
    spread: float = Field(ge=0.0, description="Standard deviation of slopes among voters.")
    level: Share = Field(description="Of the intervals low to high.")
    answers: Whole = Field(description="Answers that this is computed from.")
    revision: Whole = Field(description="Of the arena.")


@router.get("/arenas/{arena}/reliability", responses=refusals(404, 409))
def reliability(service: TheService, arena: ReadArena) -> Reliability:
    """How reliable each voter is, least first. Estimated anew with every request; the policy learns nothing from it."""
    votes, revision = service.store.read(lambda state: (crowd_votes(state.arena(arena)), state.arena(arena).revision))
    found = votes.believe(LEVEL)
    slopes, left = found.reliability, found.position
    rows = [
        VoterRow(voter=name, slope=float(mean), low=float(low), high=float(high), votes=int(count))
        for (name, mean, _, low, high), count in zip(zip(*slopes, strict=True), found.votes, strict=True)
        if name != NAMELESS
    ]
    return Reliability(
        arena=arena,
        rows=sorted(rows, key=lambda row: (row.slope, row.voter)),
        left=SideEffect(mean=float(left.mean[0]), low=float(left.low[0]), high=float(left.high[0])) if left.names else None,
        spread=found.spread,
        level=LEVEL,
        answers=len(votes.outcomes),
        revision=revision,
    )
