"""What requests must look like."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from duelist.service.arena.items import Format
from duelist.service.arena.outcomes import Verdict
from duelist.service.arena.spec import FeatureKind, TieKind
from duelist.service.http.fields import (
    MAX_CHOICES,
    MAX_DIM,
    MAX_ITEMS_AT_ONCE,
    MAX_VOTES_AT_ONCE,
    ArenaId,
    Features,
    ItemId,
    Line,
    Request,
    Text,
    Voter,
)
from duelist.service.keys import Role


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
    """The policy that chooses the pairs."""

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
        default="half",
        description="half: a tie is learnt as half a win each way, or as the policy's model of ties says. ignored: ties are "
        "counted and teach nothing.",
    )
    exploration: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.0,
        description="Probability with which any two items are shown instead of the policy's pair. That of every pair is then "
        "known exactly, whatever the policy. For pairs only.",
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
    voter: Voter | None = Field(
        default=None,
        description="A named voter gets no pair twice while there are others, and need not be named again.",
    )


class PredictionRequest(Request):
    """Features of items to compare."""

    features: Annotated[dict[ItemId, Features], Field(min_length=2, max_length=MAX_ITEMS_AT_ONCE)]


class NewAnswer(Request):
    """The answer of a voter: an outcome, the best item, or a ranking."""

    outcome: Verdict | None = Field(
        default=None, description="left or right for the one preferred of a pair; tie; both_bad; skip for no opinion."
    )
    best: ItemId | None = Field(default=None, description="Instead: the item that is best of those shown.")
    ranking: Annotated[list[ItemId], Field(min_length=1, max_length=MAX_CHOICES)] | None = Field(
        default=None, description="Instead: items that were shown, best first; all of them, or the best few."
    )
    voter: Voter | None = Field(default=None, description="Answers of a named voter can be undone for a while.")

    @model_validator(mode="after")
    def _says_one_thing(self) -> NewAnswer:
        if (self.outcome is None) + (self.best is None) + (self.ranking is None) != 2:
            raise ValueError("say one of outcome, best and ranking")
        return self


class UndoRequest(Request):
    """The voter who takes an answer back."""

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
