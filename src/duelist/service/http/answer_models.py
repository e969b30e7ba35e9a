"""What answers look like."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from duelist.service.arena.contexts import PromptFormat
from duelist.service.arena.goals import Evidence, GoalKind
from duelist.service.arena.items import Format
from duelist.service.arena.outcomes import Said
from duelist.service.arena.spec import FeatureKind, TieKind
from duelist.service.http.fields import Answer, Share, Whole
from duelist.service.keys import Role


class Fault(Answer):
    """One thing that is wrong with a request."""

    where: str = Field(description="The place, such as body.items.0.name.")
    message: str


class Problem(Answer):
    """Why a request was refused. Nothing was changed."""

    title: str
    detail: str = Field(description="What was expected, what came, and what to do.")
    faults: list[Fault] = Field(default_factory=list, description="Each fault of a request that does not fit the schema.")


class ItemInfo(Answer):
    """An item."""

    id: str
    name: str
    content: str
    format: Format
    active: bool
    features: list[float]


class ItemList(Answer):
    """Items in the order they were added."""

    items: list[ItemInfo]


class GoalInfo(Answer):
    """What shall be found out of an arena."""

    kind: GoalKind
    delta: Share
    k: Whole
    challenger: str
    champion: str
    evidence: Evidence


class VerdictInfo(Answer):
    """Are we done? How far the votes have come towards the goal."""

    arena: str
    goal: GoalInfo
    decided: bool = Field(description="Whether the error probability is at most delta.")
    items: list[str] = Field(description="Whom the votes name now: the best, the top k, all in order, or the better of two.")
    promote: bool | None = Field(
        description="For promote: whether it is decided, and for the challenger. Null for other goals."
    )
    error_probability: Share = Field(
        description="Whoever stops as soon as this is at most delta is wrong with probability at most delta, however often one "
        "looked before."
    )
    votes: Whole = Field(description="Answers that it is computed from.")
    votes_expected: Whole | None = Field(
        description="Votes that are still needed if the rest looks like those so far; null where nothing points to an end."
    )
    sentence: str
    revision: Whole


class ArenaInfo(Answer):
    """An arena."""

    id: str
    name: str
    question: str
    features: FeatureKind
    dim: Whole = Field(description="Length of a feature vector at present.")
    embedder: str
    policy: str
    choices: Whole = Field(default=2, description="How many items an ask shows.")
    items: Whole
    active_items: Whole
    asks: Whole
    votes: Whole = Field(description="Answers other than skips; imported ones included.")
    ties: TieKind
    exploration: Share = Field(description="Probability with which any two items are shown instead of the policy's pair.")
    undo_seconds: float
    seed: Whole
    closed: bool = Field(default=False, description="Whether it takes no more asks and answers.")
    blind: bool = Field(default=False, description="Whether voters are told handles in the place of ids.")
    voter_quota: Whole = Field(default=0, description="Most answers of one voter; 0 for no limit.")
    prompts: Whole = Field(default=0, description="Prompts of its dataset.")
    goal: GoalInfo | None = Field(default=None, description="What shall be found out; see the verdict.")


class ArenaList(Answer):
    """The arenas that the key opens."""

    arenas: list[ArenaInfo]


class Candidate(Answer):
    """One side of a pair, or one of a slate, as a voter sees it."""

    item: str = Field(
        description="Id of the item; with a vote key in a blind arena a handle, which says nothing and works as well."
    )
    content: str
    format: Format


class MessageInfo(Answer):
    """One turn of a conversation."""

    role: str
    content: str


class PromptInfo(Answer):
    """What the candidates answer."""

    format: PromptFormat
    content: str = Field(description="Empty for a conversation.")
    messages: list[MessageInfo] | None = Field(default=None, description="Of a conversation.")


class AskInfo(Answer):
    """A pair to show, left and right as drawn; or a slate, in the order drawn."""

    id: str
    arena: str
    prompt: PromptInfo | None = Field(default=None, description="To be shown above the candidates.")
    left: Candidate | None = Field(description="Null for a slate.")
    right: Candidate | None
    candidates: list[Candidate] | None = Field(default=None, description="The slate, in arenas that show more than two.")
    probability: Share | None = Field(
        description="Probability of this pair in either order: exact with exploration, else the policy's estimate."
    )
    outcome: Said | None = Field(description="The answer, where there is one.")
    ranking: list[str] | None = Field(default=None, description="Of a slate: the items that the answer names, best first.")
    asked_at: Whole = Field(description="Milliseconds since 1970, UTC.")


class AnswerInfo(Answer):
    """What became of an answer."""

    id: str
    outcome: Said = Field(description="As it was given; ranked where it was given by items.")
    repeated: bool = Field(description="True where the same answer was given before: it still counts once.")
    undo_until: Whole | None = Field(description="Until when it can be undone, milliseconds since 1970; null where it cannot.")


class LeaderboardRow(Answer):
    """An item's place. Utilities are in log-odds relative to the mean of the active items."""

    rank: Whole
    item: str
    name: str
    active: bool
    utility: float
    low: float | None = Field(description="Null for an item whose features no ask has brought yet: nothing is known of it.")
    high: float | None
    probability_best: Share | None
    win_rate: Share = Field(description="Probability to be preferred to another active item drawn at random.")
    shown: Whole
    wins: Whole
    losses: Whole
    ties: Whole
    both_bad: Whole


class Leaderboard(Answer):
    """Items by posterior mean utility, with intervals."""

    arena: str
    rows: list[LeaderboardRow]
    level: Share = Field(description="Of the intervals low to high.")
    votes: Whole = Field(description="Answers other than skips.")
    answers_learnt: Whole = Field(
        description="Answers the intervals are computed from: wins, and ties where the arena learns from them. Both bad is "
        "counted, not learnt."
    )
    revision: Whole = Field(description="Grows with every event of the arena.")
    drawn_from: Whole | None = Field(default=None, description="Answers that the draws behind the intervals were made from.")
    age: Whole | None = Field(default=None, description="Answers that came, or were undone, since: at most a twentieth.")


class PredictionRow(Answer):
    """The posterior of an item with the features that were sent."""

    item: str
    utility: float = Field(description="Posterior mean in log-odds, relative to the mean of the items sent.")
    low: float
    high: float
    probability_best: Share
    expected_loss: float | None = Field(
        default=None, description="By how much the best of the items sent is better, on average."
    )


class Prediction(Answer):
    """Items by posterior mean utility, best first."""

    arena: str
    rows: list[PredictionRow]
    level: Share
    revision: Whole
    drawn_from: Whole | None = Field(default=None, description="Answers that the draws were made from; 0 is the prior.")
    age: Whole | None = Field(default=None, description="Answers that came, or were undone, since: at most a twentieth.")


class TimelineBucket(Answer):
    """A stretch of time."""

    start: Whole
    votes: Whole
    asks: Whole
    explored: Share | None = Field(description="Mean over the pairs shown in it; null where it is unknown for all of them.")


class Timeline(Answer):
    """Votes and exploration over time."""

    arena: str
    width: Whole = Field(description="Of a bucket, milliseconds.")
    buckets: list[TimelineBucket]
    explored: Share | None = Field(
        description="Share of all shown candidates that were not among the two leading items at the time, of the pairs for "
        "which the policy had an estimate; null where there is none."
    )
    revision: Whole


class ExplainedSide(Answer):
    """One candidate of an explained pair."""

    item: str
    name: str
    drawn: list[float] = Field(description="Utility under each of the two posterior draws that chose the pair.")
    utility: float = Field(description="Posterior mean now, in log-odds relative to the mean of the two.")
    low: float
    high: float
    probability_best: Share
    content: str = Field(default="", description="What it said in this ask.")


class ExplanationInfo(Answer):
    """Why a pair was chosen."""

    id: str
    policy: str
    prompt: PromptInfo | None = None
    left: ExplainedSide
    right: ExplainedSide
    probability_left_wins: Share
    low: Share
    high: Share
    level: Share
    pair_probability: Share | None
    explored: Share | None
    words: str


class ImportInfo(Answer):
    """What became of an import."""

    batch: str
    votes: Whole
    repeated: bool = Field(description="True where the batch had been imported before.")


class KeyInfo(Answer):
    """A key, without its secret."""

    id: str
    role: Role
    label: str
    arena: str | None
    created_at: Whole
    voter: str | None = Field(default=None, description="Whose answers come through it, whatever name a request says.")
    quota: Whole | None = Field(default=None, description="Most answers through it.")
    answers: Whole | None = Field(default=None, description="Standing answers that came through it; of vote keys of one arena.")


class MadeKey(KeyInfo):
    """A new key. The secret is shown this once and never stored."""

    secret: str


class KeyList(Answer):
    """All keys."""

    keys: list[KeyInfo]


class SessionInfo(Answer):
    """What the caller may do."""

    role: Role
    arena: str | None = Field(description="The one arena that the key opens; null for all.")


class Health(Answer):
    """Whether the service works."""

    status: Literal["ok"]
    version: str
    arenas: Whole
    position: Whole = Field(description="Events in the journal.")
    notes: list[str] = Field(description="What was found when the journal was opened, such as a torn last record.")


class DatasetInfo(Answer):
    """What became of prompts that were added."""

    batch: str
    prompts: Whole = Field(description="All prompts of the arena now.")
    repeated: bool = Field(description="True where the batch had been added before.")


class VoterInfo(Answer):
    """A named voter of an arena."""

    voter: str
    answers: Whole = Field(description="That stand.")
    removed: Whole = Field(description="That were removed.")


class VoterList(Answer):
    """The named voters of an arena, most answers first."""

    voters: list[VoterInfo]


class RemovedInfo(Answer):
    """What is left after the answers of a voter were removed."""

    voter: str
    removed: bool = Field(description="False where no answer stood.")
    answers_learnt: Whole


class ErasedInfo(Answer):
    """What a voter is called after the name was erased."""

    voter: str


class AuditEntry(Answer):
    """One event of the journal."""

    position: Whole
    at: Whole = Field(description="Milliseconds since 1970, UTC.")
    kind: str
    arena: str | None
    by: str | None = Field(description="Id of the key or session behind the request; null before 0.2.0.")
    label: str | None = Field(description="Of that key, where it exists.")
    about: str = Field(description="What it was about, in a few words.")


class AuditLog(Answer):
    """Events, newest first."""

    entries: list[AuditEntry]
    next: Whole | None = Field(description="`before` of the next page; null at the beginning of the journal.")
