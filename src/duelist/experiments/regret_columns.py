"""What a round costs, and what a recommended arm would: numbers per lane, checked where they come from an environment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.environments.base import Regret
from duelist.history.duels import duels_between
from duelist.policies.base import Policy
from duelist.typing import FloatArray


def read_regret(cost: Any, lanes: int, round_: int, environment: Any) -> dict[str, FloatArray]:
    """The kinds of regret by name. A plain array is the average regret."""
    kinds = (cost if isinstance(cost, Regret) else Regret(*cost) if isinstance(cost, tuple) else Regret(cost)).kinds()
    for name, column in kinds.items():
        # A sum is finite where all its terms are.
        if np.shape(column) != (lanes,) or (name == "average" and not math.isfinite(np.add.reduce(column))):
            raise InvalidInputError(
                f"regret of {type(environment).__name__} must be ({lanes},) finite numbers, one per lane, or a Regret of such; "
                f"got {name} = {column!r} in round {round_}."
            )
    return kinds


def read_simple_regret(policy: Policy[Any], state: Any, actions: ActionSet, instance: Any) -> FloatArray:
    """(lanes,) what the recommended arm costs; NaN where none is recommended."""
    if not isinstance(actions, FiniteActions):
        raise InvalidInputError(
            f"simple_regret needs a finite action set, whose rows a policy can recommend; got {type(actions).__name__}. Use 0."
        )
    rows = np.asarray(policy.recommend(state, actions))
    if rows.shape != (actions.lanes,) or rows.dtype.kind not in "iu" or (rows < -1).any() or (rows >= actions.n_arms).any():
        raise InvalidInputError(
            f"recommend of {type(policy).__name__} must return ({actions.lanes},) rows of the {actions.n_arms} arms, or -1 for "
            f"none; got {rows!r}."
        )
    known = np.maximum(rows, 0)
    cost = read_regret(instance.regret(actions, duels_between(actions, known, known)), actions.lanes, 0, instance)["average"]
    return np.where(rows >= 0, cost, np.nan)
