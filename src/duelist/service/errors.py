"""What the service refuses, each with its HTTP status. Nothing was changed when one of these is raised."""

from __future__ import annotations

from duelist.core.errors import DuelistError


class ServiceError(DuelistError):
    """Root of the errors that a caller of the service can cause or meet."""

    status = 400
    title = "Bad request"


class MissingKeyError(ServiceError):
    """No key came with the request, or one that this service does not know."""

    status = 401
    title = "A valid key is needed"


class ForbiddenError(ServiceError):
    """The key is known, but its role or its arena does not cover this."""

    status = 403
    title = "This key may not do that"


class NotFoundError(ServiceError):
    """There is no arena, item, ask or key of that name."""

    status = 404
    title = "Not found"


class ConflictError(ServiceError):
    """The request makes sense, but not in the state that the arena is in."""

    status = 409
    title = "In conflict with the present state"


class ClosedError(ConflictError):
    """The arena takes no more asks and answers."""

    title = "The arena is closed"


class TooSlowError(ServiceError):
    """The body did not arrive in time."""

    status = 408
    title = "Body too slow"


class TooLargeError(ServiceError):
    """The body is longer than the service accepts."""

    status = 413
    title = "Body too large"


class RefusedError(ServiceError):
    """The request is well formed JSON, but says something that cannot be."""

    status = 422
    title = "The request cannot be understood"


class QuotaError(ServiceError):
    """The voter, or the voting link, gave as many answers as it may."""

    status = 403
    title = "The quota is used up"


class TooManyRequestsError(ServiceError):
    """The key has used up its allowance for now."""

    status = 429
    title = "Too many requests"

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UnavailableError(ServiceError):
    """The journal cannot be written to, or an embedder failed. What was asked for did not happen, or is not known to have."""

    status = 503
    title = "Not available at the moment"
