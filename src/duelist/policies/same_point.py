"""Two draws that picked one point of a continuous set: what to show a person instead."""

from __future__ import annotations

from collections.abc import Callable

from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray
from duelist.core.duels import Duels

REDRAWS = 8


def different_points(duels: Duels, actions: ActionSet, redraw: Callable[[int], FloatArray], theta: FloatArray) -> Duels:
    """Give lanes whose two points agree another second one; the other lanes keep theirs.

    A continuous set has no second best point. So theta_2 is drawn again, up to eight times, and at last the point is played
    that theta_2 likes least, which differs unless the set has one point.

    Args:
        duels: the pairs.
        actions: where the points come from.
        redraw: number of the attempt, from 1 on, to other draws (lanes, 2, dim).
        theta: (lanes, 2, dim) the draws behind the pairs.
    """
    features = duels.features.copy()
    for attempt in range(1, REDRAWS + 2):
        equal = (features[:, 0] == features[:, 1]).all(axis=1)
        if not equal.any():
            break
        drawn = redraw(attempt) if attempt <= REDRAWS else -theta
        features[equal, 1] = actions.best(drawn).features[equal, 1]
    return duels._replace(features=features)
