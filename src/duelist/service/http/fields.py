"""Fields that the requests and answers of the API are made of.

Requests are strict: a field too many, a number as text, NaN or infinity are refused with a reason. The patterns keep control
characters out of names and texts; everything else, in any script, is allowed.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MAX_DIM = 512
MAX_CHOICES = 9  # a key for each on the page
MAX_ITEMS_AT_ONCE = 256
MAX_VOTES_AT_ONCE = 10_000
LARGEST_FEATURE = 1000.0
_NO_CONTROLS = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]*$"
_LINE = r"^[^\u0000-\u001f\u007f]*[^\u0000-\u0020\u007f][^\u0000-\u001f\u007f]*$"
ARENA_ID = r"^[a-z0-9][a-z0-9-]{0,63}$"
ITEM_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
ASK_ID = r"^[0-9]{1,12}-[0-9a-f]{16}$"
KEY_ID = r"^[0-9a-f]{12}$"
VOTER_NAME = r"^[A-Za-z0-9._-]{1,64}$"
ArenaId = Annotated[str, Field(pattern=ARENA_ID, description="Lower-case letters, digits and hyphens.", examples=["answers"])]
ItemId = Annotated[str, Field(pattern=ITEM_ID, description="Letters, digits, dots, hyphens, underscores.", examples=["a1"])]
Line = Annotated[str, Field(min_length=1, max_length=200, pattern=_LINE)]
Text = Annotated[str, Field(min_length=1, max_length=20_000, pattern=_NO_CONTROLS)]
Voter = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$", description="Any name for the voter.")]
Feature = Annotated[float, Field(ge=-LARGEST_FEATURE, le=LARGEST_FEATURE)]
Features = Annotated[list[Feature], Field(min_length=1, max_length=MAX_DIM)]
Whole = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


def check_image(address: str | None) -> None:
    """Refuse what cannot be the address of an image."""
    address = address or ""
    if not address.startswith(("https://", "http://")) or any(c.isspace() for c in address) or len(address) > 2000:
        raise ValueError("the content of an image must be its address: http:// or https://, no spaces, at most 2000 long")


class Request(BaseModel):
    """Base of everything that comes in."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Answer(BaseModel):
    """Base of everything that goes out."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)
