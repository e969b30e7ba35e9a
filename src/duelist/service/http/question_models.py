"""What requests say about questions: prompts, candidates of an ask, data sets, goals."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from duelist.service.arena.contexts import PromptFormat
from duelist.service.arena.goals import Evidence, GoalKind
from duelist.service.arena.items import Format
from duelist.service.http.fields import ItemId, Line, Request, Text, check_image

MAX_MESSAGES = 200
MAX_PROMPTS_AT_ONCE = 2000
MAX_ANSWERS = 64
MAX_UPLOAD = 2_000_000


class PromptMessage(Request):
    """One turn of a conversation."""

    role: Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[A-Za-z0-9 ._-]+$")] = Field(examples=["user"])
    content: Text


class FullPrompt(Request):
    """What the candidates answer: text, Markdown, an image by its address, or a conversation."""

    format: PromptFormat = "text"
    content: Text | None = Field(default=None, description="Text, Markdown, or the http(s) address of an image.")
    messages: Annotated[list[PromptMessage], Field(min_length=1, max_length=MAX_MESSAGES)] | None = Field(
        default=None, description="Of a conversation, in order."
    )

    @model_validator(mode="after")
    def _says_what_its_format_needs(self) -> FullPrompt:
        if (self.format == "conversation") != (self.messages is not None) or (self.messages is None) == (self.content is None):
            raise ValueError("a conversation needs messages and no content; every other prompt needs content and no messages")
        if self.format == "image":
            check_image(self.content)
        return self


PromptField = Annotated[Text | FullPrompt, Field(description="A text, or a prompt with its format.")]


class AskedCandidate(Request):
    """An item to choose from, with what it says this time."""

    item: ItemId
    content: Text | None = Field(default=None, description="What it says this time; the item's own content where left out.")
    format: Format = "text"

    @model_validator(mode="after")
    def _image_has_an_address(self) -> AskedCandidate:
        if self.format == "image" and self.content is not None:
            check_image(self.content)
        return self


class FullAnswer(Request):
    """An answer to a prompt, with its format."""

    content: Text
    format: Format = "markdown"

    @model_validator(mode="after")
    def _image_has_an_address(self) -> FullAnswer:
        if self.format == "image":
            check_image(self.content)
        return self


class NewPrompt(Request):
    """A prompt with its answers, one per item. Text is read as Markdown."""

    prompt: PromptField
    answers: Annotated[dict[Line, Text | FullAnswer], Field(min_length=2, max_length=MAX_ANSWERS)] = Field(
        description="By id or name of the item that gave it; items that the arena does not have are made."
    )


class NewDataset(Request):
    """Prompts with their answers: as a list, or as the text of a file."""

    prompts: Annotated[list[NewPrompt], Field(min_length=1, max_length=MAX_PROMPTS_AT_ONCE)] | None = None
    text: Annotated[str, Field(min_length=1, max_length=MAX_UPLOAD)] | None = Field(
        default=None,
        description='Instead: JSON Lines, each line like one of `prompts`; or CSV with a column "prompt" and one for every '
        'item, or with the columns "prompt", "model" and "answer".',
    )
    file: Literal["jsonl", "csv"] | None = Field(default=None, description="What the text is.")

    @model_validator(mode="after")
    def _comes_one_way(self) -> NewDataset:
        if (self.prompts is None) == (self.text is None) or (self.text is None) != (self.file is None):
            raise ValueError("send either prompts, or text with file")
        return self


class NewPrompts(NewDataset):
    """Prompts to add to an arena."""

    batch: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")] = Field(
        description="Any name for this batch. A batch of the same name and size is added once, however often it is sent."
    )


class NewGoal(Request):
    """What shall be found out, with an error probability that holds however often one looks."""

    kind: GoalKind
    delta: Annotated[float, Field(gt=0, le=0.5)] = Field(default=0.05, description="Largest probability of a wrong verdict.")
    k: Annotated[int, Field(ge=1, le=1023)] | None = Field(default=None, description="For top: how many items.")
    challenger: ItemId | None = Field(
        default=None, description="For promote: the item that may take the place of the champion."
    )
    champion: ItemId | None = Field(default=None, description="For promote.")
    evidence: Evidence | None = Field(
        default=None,
        description="pairs: counts of wins, without a model. model: the Bradley-Terry model of the leaderboard, which learns "
        "from other pairs too. Left out: pairs, and model where items have features.",
    )

    @model_validator(mode="after")
    def _says_what_its_kind_needs(self) -> NewGoal:
        if (self.kind == "top") != (self.k is not None):
            raise ValueError("a goal of the kind top needs k, and no other kind does")
        promote = self.kind == "promote"
        if promote != (self.challenger is not None) or promote != (self.champion is not None):
            raise ValueError("a goal of the kind promote needs challenger and champion, and no other kind does")
        if promote and self.challenger == self.champion:
            raise ValueError("challenger and champion must be different items")
        return self
