"""Arms, and who is asked about them: the action set of a policy that learns about many users."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.stored_names import stored
from duelist.typing import FloatArray, IntArray


@stored("user-actions")
class UserActions(FiniteActions):
    """Arms, and the user who is asked in this round. A policy that knows of no users plays it as the arms alone.

    Args:
        features: (lanes, n_arms, dim) of the arms, or (n_arms, dim) for one lane.
        users: (lanes,) number of the user from 0 on, or one number for all lanes.

    Attributes:
        users: (lanes,).

    Example:
        >>> arms = UserActions([[1.0, 0.0], [0.0, 1.0]], 3)
        >>> arms.users.tolist(), users_of(arms).tolist()
        ([3], [3])
    """

    users: IntArray

    def __init__(self, features: npt.ArrayLike, users: npt.ArrayLike) -> None:
        super().__init__(features)
        given = np.asarray(users)
        if given.dtype.kind not in "iu" or given.shape not in ((), (self.lanes,)) or (given < 0).any():
            raise InvalidInputError(
                f"users must be whole numbers from 0 on, one or ({self.lanes},); got {users!r}. Number the users, for instance "
                f"by their place in a list of names."
            )
        self.users = np.array(np.broadcast_to(given, (self.lanes,)), dtype=np.int64)

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the arms and the users."""
        return hashlib.blake2b(super().digest + self.users.tobytes(), digest_size=16).digest()

    def take(self, rows: IntArray) -> UserActions:
        """The set of some rows (n,), for the same users."""
        return UserActions(self.features[:, rows], self.users)

    def to_arrays(self) -> dict[str, npt.NDArray[np.floating[Any]]]:
        """What `from_arrays` needs to make the same set again."""
        return {**super().to_arrays(), "users": self.users.astype(np.float64)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, FloatArray]) -> UserActions:
        """The set that `to_arrays` took apart."""
        return cls(arrays["features"], arrays["users"].astype(np.int64))


def users_of(actions: ActionSet) -> IntArray:
    """(lanes,) who is asked; 0 where the set does not say, as where there is one user.

    Example:
        >>> users_of(FiniteActions([[1.0], [2.0]])).tolist()
        [0]
    """
    arms: Any = getattr(actions, "arms", actions)  # of a set with offsets
    return arms.users if isinstance(arms, UserActions) else np.zeros(actions.lanes, dtype=np.int64)
