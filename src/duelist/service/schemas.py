"""The language of the service: what requests must look like and what answers do look like.

Requests are strict: a field too many, a number as text, NaN or infinity are refused with a reason. The patterns keep control
characters out of names and texts; everything else, in any script, is welcome.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from duelist.service.arena_spec import FeatureKind, TieKind
from duelist.service.items import Format
from duelist.service.keys import Role
from duelist.service.outcomes import Verdict

MAX_DIM = 512
MAX_ITEMS_AT_ONCE = 256
MAX_VOTES_AT_ONCE = 10_000
LARGEST_FEATURE = 1000.0

_NO_CONTROLS = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]*$"
_LINE = r"^[^\u0000-\u001f\u007f]*[^\u0000-\u0020\u007f][^\u0000-\u001f\u007f]*$"
ARENA_ID = r"^[a-z0-9][a-z0-9-]{0,63}$"
ITEM_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
ASK_ID = r"^[0-9]{1,12}-[0-9a-f]{16}$"
KEY_ID = r"^[0-9a-f]{12}$"

ArenaId = Annotated[str, Field(pattern=ARENA_ID, description="Lower-case letters, digits and hyphens.", examples=["answers"])]
ItemId = Annotated[str, Field(pattern=ITEM_ID, description="Letters, digits, dots, hyphens, underscores.", examples=["a1"])]
Line = Annotated[str, Field(min_length=1, max_length=200, pattern=_LINE)]
Text = Annotated[str, Field(min_length=1, max_length=20_000, pattern=_NO_CONTROLS)]
Voter = Annotated[
    str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$", description="Any name for whoever votes.")
]
Feature = Annotated[float, Field(ge=-LARGEST_FEATURE, le=LARGEST_FEATURE)]
Features = Annotated[list[Feature], Field(min_length=1, max_length=MAX_DIM)]
Whole = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class Request(BaseModel):
    """Base of everything that comes in."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Answer(BaseModel):
    """Base of everything that goes out."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Fault(Answer):
    """One thing that is wrong with a request."""

    where: str = Field(description="The place, such as body.items.0.name.")
    message: str


class Problem(Answer):
    """Why a request was refused. Nothing was changed."""

    title: str
    detail: str = Field(description="What was expected, what came, and what to do.")
    faults: list[Fault] = Field(default_factory=list, description="Each fault of a request that does not fit the schema.")


class NewItem(Request):
    """A candidate to compare."""

    id: ItemId | None = Field(default=None, description="Made from the name where it is left out.")
    name: Line = Field(description="What the leaderboard calls it. Voters do not see it.", examples=["Answer A"])
    content: Text | None = Field(default=None, description="What voters see; the name where it is left out.")
    format: Format = Field(default="text", description="How the content is shown. An image is given by its http(s) address.")
    features: Features | None = Field(default=None, description='Only in arenas with features "given".')

    @model_validator(mode="after")
    def _image_has_an_address(self) -> NewItem:
        if self.format == "image":
            address = self.content or ""
            if not address.startswith(("https://", "http://")) or any(c.isspace() for c in address) or len(address) > 2000:
                raise ValueError(
                    "the content of an image must be its address: http:// or https://, no spaces, at most 2000 long"
                )
        return self


class PolicyChoice(Request):
    """Who chooses the pairs."""

    name: Annotated[str, Field(min_length=1, max_length=40)] = Field(default="FGTS", examples=["FGTS", "Uniform"])
    prior_scale: Annotated[float, Field(gt=0, le=100)] | None = Field(
        default=None, description="Standard deviation of every utility weight before the first vote; 1 where it is left out."
    )
    settings: dict[Annotated[str, Field(max_length=40)], float | int | str] = Field(
        default_factory=dict, max_length=16, description="Parameters of that policy; see `duelist policies`."
    )


class NewArena(Request):
    """An arena to create."""

    id: ArenaId | None = Field(default=None, description="Made from the name where it is left out.")
    name: Line = Field(examples=["Support answers"])
    question: Line = Field(default="Which do you prefer?")
    features: FeatureKind = Field(
        default="identity",
        description="identity: items share nothing. given: features come with each item. text: an embedder makes them from the "
        "content. request: features come with each ask.",
    )
    dim: Annotated[int, Field(ge=1, le=MAX_DIM)] | None = Field(
        default=None, description='Length of the features; needed for "given" and "request" only.'
    )
    embedder: Annotated[str, Field(min_length=1, max_length=40)] | None = Field(
        default=None, description='Which embedder a "text" arena uses; "hashing" where it is left out.'
    )
    items: Annotated[list[NewItem], Field(min_length=2, max_length=MAX_ITEMS_AT_ONCE)]
    policy: PolicyChoice = Field(default_factory=PolicyChoice)
    seed: Annotated[int, Field(ge=0, le=2**53)] = 0
    ties: TieKind = Field(
        default="half", description="half: a tie is learnt as half a win each way. ignored: ties are counted and teach nothing."
    )
    undo_seconds: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=10.0, description="How long a named voter may take an answer back. It is learnt when that time is over."
    )


class NewItems(Request):
    """Items to add to an arena."""

    items: Annotated[list[NewItem], Field(min_length=1, max_length=MAX_ITEMS_AT_ONCE)]


class ItemChange(Request):
    """Whether an item takes part."""

    active: bool


class NewAsk(Request):
    """A request for a pair."""

    request_id: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")] | None = Field(
        default=None, description="Any name for this request. Sent again, it gets the same pair instead of another."
    )
    features: Annotated[dict[ItemId, Features], Field(min_length=2, max_length=MAX_ITEMS_AT_ONCE)] | None = Field(
        default=None, description='Features of the items to choose from, by item id; only in arenas with features "request".'
    )


class PredictionRequest(Request):
    """Features of items to compare."""

    features: Annotated[dict[ItemId, Features], Field(min_length=2, max_length=MAX_ITEMS_AT_ONCE)]


class NewAnswer(Request):
    """What somebody said about a pair."""

    outcome: Verdict = Field(description="left or right for the one preferred; tie; both_bad; skip for no opinion.")
    voter: Voter | None = Field(default=None, description="Answers of a named voter can be undone for a while.")


class UndoRequest(Request):
    """Who wants to take an answer back."""

    voter: Voter


class PastVote(Request):
    """A comparison that was made elsewhere."""

    first: ItemId
    second: ItemId
    outcome: Literal["first", "second", "tie", "both_bad"]


class NewImport(Request):
    """Past votes to learn from."""

    batch: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")] = Field(
        description="Any name for this batch. A batch of the same name and size is imported once, however often it is sent."
    )
    votes: Annotated[list[PastVote], Field(min_length=1, max_length=MAX_VOTES_AT_ONCE)]


class NewKey(Request):
    """A key to make."""

    role: Role = "vote"
    label: Line = Field(examples=["website"])
    arena: ArenaId | None = Field(default=None, description="The one arena that it opens; every arena where it is left out.")


class NewSession(Request):
    """A key to exchange for the page's cookie."""

    key: Annotated[str, Field(min_length=1, max_length=200)]


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


class ArenaInfo(Answer):
    """An arena."""

    id: str
    name: str
    question: str
    features: FeatureKind
    dim: Whole = Field(description="Length of a feature vector at present.")
    embedder: str
    policy: str
    items: Whole
    active_items: Whole
    asks: Whole
    votes: Whole = Field(description="Answers other than skips; imported ones included.")
    ties: TieKind
    undo_seconds: float
    seed: Whole


class ArenaList(Answer):
    """The arenas that the key opens."""

    arenas: list[ArenaInfo]


class Candidate(Answer):
    """One side of a pair, as a voter sees it."""

    item: str
    content: str
    format: Format


class AskInfo(Answer):
    """A pair to show, left and right as drawn."""

    id: str
    arena: str
    left: Candidate
    right: Candidate
    probability: Share | None = Field(description="Estimated probability with which the policy chose this pair.")
    outcome: Verdict | None = Field(description="The answer, where there is one.")
    asked_at: Whole = Field(description="Milliseconds since 1970, UTC.")


class AnswerInfo(Answer):
    """What became of an answer."""

    id: str
    outcome: Verdict
    repeated: bool = Field(description="True where the same answer was given before: it still counts once.")
    undo_until: Whole | None = Field(description="Until when it can be undone, milliseconds since 1970; null where it cannot.")


class LeaderboardRow(Answer):
    """An item's place. Utilities are in log-odds relative to the mean of the active items."""

    rank: Whole
    item: str
    name: str
    active: bool
    utility: float
    low: float
    high: float
    probability_best: Share
    win_rate: Share = Field(description="Probability to be preferred to another active item drawn at random.")
    shown: Whole
    wins: Whole
    losses: Whole
    ties: Whole
    both_bad: Whole


class Leaderboard(Answer):
    """Who leads, and how certain that is."""

    arena: str
    rows: list[LeaderboardRow]
    level: Share = Field(description="Of the intervals low to high.")
    votes: Whole = Field(description="Answers other than skips.")
    answers_learnt: Whole = Field(
        description="Answers the intervals are computed from: wins, and ties where the arena learns from them. Both bad is "
        "counted, not learnt."
    )
    revision: Whole = Field(description="Grows with every event of the arena.")


class PredictionRow(Answer):
    """What is believed of an item with the features that were sent."""

    item: str
    utility: float = Field(description="Posterior mean in log-odds, relative to the mean of the items sent.")
    low: float
    high: float
    probability_best: Share


class Prediction(Answer):
    """Items by posterior mean utility, best first."""

    arena: str
    rows: list[PredictionRow]
    level: Share
    revision: Whole


class TimelineBucket(Answer):
    """A stretch of time."""

    start: Whole
    votes: Whole
    asks: Whole
    explored: Share


class Timeline(Answer):
    """Votes and exploration over time."""

    arena: str
    width: Whole = Field(description="Of a bucket, milliseconds.")
    buckets: list[TimelineBucket]
    explored: Share = Field(description="Share of all shown candidates that were not among the two leading items at the time.")
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


class ExplanationInfo(Answer):
    """Why a pair was chosen."""

    id: str
    policy: str
    left: ExplainedSide
    right: ExplainedSide
    probability_left_wins: Share
    low: Share
    high: Share
    level: Share
    pair_probability: Share | None
    explored: Share
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


class MadeKey(KeyInfo):
    """A new key. The secret is shown this once and never stored."""

    secret: str


class KeyList(Answer):
    """All keys."""

    keys: list[KeyInfo]


class SessionInfo(Answer):
    """Who is asking."""

    role: Role
    arena: str | None = Field(description="The one arena that the key opens; null for all.")


class Health(Answer):
    """Whether the service works."""

    status: Literal["ok"]
    version: str
    arenas: Whole
    position: Whole = Field(description="Events in the journal.")
    notes: list[str] = Field(description="What was found when the journal was opened, such as a torn last record.")
