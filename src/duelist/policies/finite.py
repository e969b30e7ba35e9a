"""What policies over finite sets share: refusing other sets, and what to do when both candidates are the same."""

from __future__ import annotations

import numpy as np

from duelist.core.actions import ActionSet, FiniteActions
from duelist.core.checks import FloatArray, IntArray
from duelist.core.errors import InvalidInputError


def require_finite(policy: object, actions: ActionSet) -> FiniteActions:
    """Return the action set if it is finite; otherwise say who cannot play it."""
    if isinstance(actions, FiniteActions):
        return actions
    raise InvalidInputError(
        f"{type(policy).__name__} compares every arm with every other and needs a finite action set; "
        f"got {type(actions).__name__}. FGTS plays every continuous set, and MaxInP plays balls."
    )


def runner_up(actions: FiniteActions, theta: FloatArray, first: IntArray) -> IntArray:
    """The best arm under theta (lanes, dim) other than `first` (lanes,), the lowest row among equals."""
    utilities = actions.utilities(theta)
    utilities[np.arange(actions.lanes), first] = -np.inf
    return np.asarray(np.argmax(utilities, axis=1))
