"""What requests must look like."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from duelist.service.arena.items import Format
from duelist.service.arena.outcomes import Strength, Verdict
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
    check_image,
)
from duelist.service.http.question_models import AskedCandidate, NewDataset, NewGoal, PromptField
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
            check_image(self.content)
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
    items: Annotated[list[NewItem], Field(min_length=2, max_length=MAX_ITEMS_AT_ONCE)] | None = Field(
        default=None, description="May be left out where a dataset says which items there are."
    )
    dataset: NewDataset | None = Field(
        default=None, description="Prompts with their answers: asks then take one after the other."
    )
    prompt: PromptField | None = Field(default=None, description="What all candidates answer. Shown above them with every ask.")
    goal: NewGoal | None = Field(default=None, description="What shall be found out; see the verdict.")
    blind: bool = Field(
        default=True,
        description="Whether voters are told nothing of items but their contents: an ask with a vote key then has handles in "
        "place of ids, and no probability.",
    )
    voter_quota: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=0, description="Most answers of one voter; 0 for no limit."
    )
    policy: PolicyChoice | None = Field(default=None, description="Left out: one that fits the goal, else FGTS.")
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
    prompt: PromptField | None = Field(default=None, description="What the candidates answer. Shown above them.")
    candidates: Annotated[list[AskedCandidate], Field(min_length=2, max_length=MAX_ITEMS_AT_ONCE)] | None = Field(
        default=None,
        description="The items to choose from, and what each says this time, such as an answer that was generated just now. "
        "What is learnt is about the items.",
    )

    @model_validator(mode="after")
    def _names_every_candidate_once(self) -> NewAsk:
        names = [one.item for one in self.candidates or ()]
        if len(set(names)) < len(names):
            raise ValueError("name every candidate once")
        return self


class PredictionRequest(Request):
    """Features of items to compare."""

    features: Annotated[dict[ItemId, Features], Field(min_length=2, max_length=MAX_ITEMS_AT_ONCE)]


class NewAnswer(Request):
    """The answer of a voter: an outcome, the best item, or a ranking."""

    outcome: Verdict | None = Field(
        default=None, description="left or right for the one preferred of a pair; tie; both_bad; skip for no opinion."
    )
    best: ItemId | None = Field(default=None, description="Instead: the item that is best of those shown, by its id or handle.")
    ranking: Annotated[list[ItemId], Field(min_length=1, max_length=MAX_CHOICES)] | None = Field(
        default=None, description="Instead: items that were shown, best first; all of them, or the best few."
    )
    voter: Voter | None = Field(default=None, description="Answers of a named voter can be undone for a while.")
    strength: Strength | None = Field(default=None, description="By how much the better one is better. Kept; see the export.")
    comment: Annotated[Text, Field(max_length=2000)] | None = Field(default=None, description="What the voter adds in words.")

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
    voter: Voter | None = Field(
        default=None, description="Of a vote key: whose answers come through it, whatever name a request says."
    )
    quota: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="Of a vote key for one arena: most answers that may come through it."
    )

    @model_validator(mode="after")
    def _belongs_to_a_voter(self) -> NewKey:
        if (self.voter is not None or self.quota is not None) and (self.role != "vote" or self.arena is None):
            raise ValueError("voter and quota are for vote keys of one arena")
        return self


class NewSession(Request):
    """A key to exchange for the page's cookie."""

    key: Annotated[str, Field(min_length=1, max_length=200)]


class ArenaChange(Request):
    """Whether an arena is closed."""

    closed: bool = Field(description="A closed arena takes no more asks and answers; everything else works.")
