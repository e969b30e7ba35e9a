"""A sample arena, so that there is something to vote on at once: six answers to one question, told in different manners."""

from __future__ import annotations

from typing import Any

from duelist.service.schemas import NewArena

DEMO_ID = "demo"

_ANSWERS: tuple[tuple[str, str], ...] = (
    ("One sentence", "Let it cool first, then saw with a serrated knife instead of pressing."),
    (
        "Steps",
        "1. Let the loaf cool completely.\n"
        "2. Use a long knife with teeth.\n"
        "3. **Saw, do not press.** The weight of the blade is enough.\n"
        "4. Turn the loaf on its side if the crust is hard.",
    ),
    (
        "Reasons first",
        "A crust is dry and stiff, the crumb is soft and springy. Pressing squeezes the crumb before the crust gives way, so "
        "the slice ends up thin at the top and thick at the bottom. *Sawing* cuts the crust first. A warm loaf has not set "
        "yet: wait an hour.",
    ),
    (
        "A question back",
        "What kind of bread is it? A sandwich loaf wants a thin, sharp blade; a country loaf wants teeth. If you tell me, I "
        "can be more exact.",
    ),
    (
        "A comparison",
        "| knife | soft loaf | hard crust |\n|---|---|---|\n| serrated | good | best |\n| chef's | fair | slips |\n\n"
        "Whatever the knife: let the loaf cool and saw gently.",
    ),
    (
        "A little story",
        "My grandmother cut towards herself, loaf against her apron, and never once looked. The rest of us should put it on a "
        "board, wait until it is cold, and let a serrated knife do the work.",
    ),
)


def demo_arena() -> NewArena:
    """The request that creates the sample arena."""
    items: list[dict[str, Any]] = [{"name": name, "content": text, "format": "markdown"} for name, text in _ANSWERS]
    return NewArena.model_validate(
        {
            "id": DEMO_ID,
            "name": "How do I cut bread neatly?",
            "question": "Which answer would you rather get?",
            "items": items,
        }
    )
