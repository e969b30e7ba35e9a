"""One family of errors: everything duelist raises on purpose is a `DuelistError`.

Every message says what was expected, what came, and what to do about it.
"""


class DuelistError(Exception):
    """Root of every error that duelist raises on purpose."""


class InvalidInputError(DuelistError, ValueError):
    """An argument has the wrong type, shape or value. Nothing was changed."""


class UnknownNameError(InvalidInputError):
    """A policy, sampler or option was asked for by a name that does not exist."""


class EmptySetError(InvalidInputError):
    """An action set holds no arm at all."""


class UnboundedSetError(InvalidInputError):
    """An action set goes on for ever, so for some theta no arm is best."""


class ImproperPosteriorError(InvalidInputError):
    """The prior does not make the posterior a probability distribution."""


class UnknownDuelError(InvalidInputError):
    """Feedback names a duel that this agent never asked for."""


class AlreadyLearntError(InvalidInputError):
    """Feedback for this duel was learnt before."""


class NonFiniteError(DuelistError, ArithmeticError):
    """A computation met a value that is not finite and stopped before it could spread."""


class NotConvergedError(DuelistError, ArithmeticError):
    """An iterative fit stopped before reaching its tolerance."""


class SavedStateError(DuelistError):
    """A saved state cannot be read: torn, of another version, or not a saved state."""
