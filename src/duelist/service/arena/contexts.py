"""What an ask is about: a prompt, and what each candidate says to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from duelist.live.seen_pairs import name_code
from duelist.service.arena.items import Format

PromptFormat = Literal["text", "markdown", "image", "conversation"]


class Message(NamedTuple):
    """One turn of a conversation: who speaks, such as "user", and what is said, in Markdown."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the candidates answer.

    Attributes:
        format: how it is shown.
        content: text, Markdown, or the address of an image; empty for a conversation.
        messages: of a conversation.
    """

    format: PromptFormat
    content: str = ""
    messages: tuple[Message, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """The prompt as the journal keeps it."""
        if self.format == "conversation":
            return {"format": self.format, "messages": [list(message) for message in self.messages]}
        return {"format": self.format, "content": self.content}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Prompt:
        """The inverse of `to_plain`."""
        messages = tuple(Message(*message) for message in plain.get("messages", ()))
        return cls(plain["format"], plain.get("content", ""), messages)

    def to_text(self) -> str:
        """The prompt as one text: a conversation or an image's address too."""
        return "\n\n".join(f"{role}: {said}" for role, said in self.messages) if self.messages else self.content


class Content(NamedTuple):
    """What a candidate says this time, and how that is shown."""

    content: str
    format: Format = "text"


@dataclass(frozen=True, slots=True)
class Context:
    """What an ask brings along.

    Attributes:
        prompt: what the candidates answer; None for what the arena says.
        candidates: the items to choose from, by id, with what each says this time (None: its own content); None for all items.
    """

    prompt: Prompt | None = None
    candidates: Mapping[str, Content | None] | None = None


@dataclass(frozen=True, slots=True)
class AskContext:
    """What an ask brought along, as far as it was shown.

    Attributes:
        prompt: what the candidates answer; None for what the arena says.
        contents: item number -> what it says this time, where that is not its own content.
    """

    prompt: Prompt | None
    contents: Mapping[int, Content]

    def to_plain(self) -> dict[str, Any]:
        """As the journal keeps it, numbers as text because JSON has no other names."""
        plain: dict[str, Any] = {}
        if self.prompt is not None:
            plain["prompt"] = self.prompt.to_plain()
        if self.contents:
            plain["contents"] = {str(number): list(content) for number, content in self.contents.items()}
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> AskContext:
        """The inverse of `to_plain`."""
        prompt = Prompt.from_plain(plain["prompt"]) if "prompt" in plain else None
        return cls(prompt, {int(number): Content(*content) for number, content in plain.get("contents", {}).items()})

    def code(self, number: int) -> int:
        """A number for what a voter sees of an item: the item's own, where nothing was brought along."""
        content = self.contents.get(number)
        if self.prompt is None and content is None:
            return number
        return name_code(json.dumps([number, self.prompt and self.prompt.to_plain(), content]))
