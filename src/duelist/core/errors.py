"""The errors of duelist: everything it raises on purpose is a `DuelistError`.

Every message says what was expected, what came, and what to do about it.
"""

from __future__ import annotations


class DuelistError(Exception):
    """Root of every error that duelist raises on purpose."""


class InvalidInputError(DuelistError, ValueError):
    """An argument has the wrong type, shape or value. Nothing was changed."""


class UnknownNameError(InvalidInputError):
    """No policy, sampler or option has this name."""


class EmptySetError(InvalidInputError):
    """An action set holds no arm at all."""


class UnboundedSetError(InvalidInputError):
    """An action set is unbounded, so for some theta no arm is best."""


class ImproperPosteriorError(InvalidInputError):
    """The prior does not make the posterior a probability distribution."""


class UnknownDuelError(InvalidInputError):
    """Feedback names a duel that this agent never asked for."""


class AlreadyLearntError(InvalidInputError):
    """Feedback for this duel was learnt before."""


class NonFiniteError(DuelistError, ArithmeticError):
    """A computation met a value that is not finite and stopped."""


class NotConvergedError(DuelistError, ArithmeticError):
    """An iterative fit stopped before reaching its tolerance."""


class SavedStateError(DuelistError):
    """A saved state cannot be read: incomplete, of another version, or not a saved state."""
