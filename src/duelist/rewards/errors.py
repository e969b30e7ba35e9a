"""What can be wrong with a reward."""

from __future__ import annotations

from duelist.core.errors import DuelistError, InvalidInputError, NonFiniteError


class RewardNotFiniteError(NonFiniteError):
    """A reward returned NaN or infinity. Nothing was learnt or changed."""


class RewardBoundError(InvalidInputError):
    """A reward went beyond the bound that it was declared with. Nothing was learnt or changed."""


class MissingExtraError(DuelistError, ImportError):
    """A part of duelist needs a library that only an extra installs."""
