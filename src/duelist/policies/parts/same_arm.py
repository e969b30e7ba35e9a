"""What happens when both candidates are the same arm: one setting, `same_arm`, with one meaning in every policy.

A simulation may play an arm against itself: it costs nothing more and says nothing, and the papers allow it. A person who is
asked to compare a thing with itself learns that the program is broken. So "auto", the default of every policy, allows it in
simulation and plays the policy's own other arm where `Problem.live` says that a person sees the pair.

What the other arm is depends on the family. Thompson sampling has a second draw, and plays its "runner-up" or draws again
("redraw"); confidence bounds have a strongest challenger ("different").
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import one_of
from duelist.core.errors import InvalidInputError
from duelist.history.duels import Duels, duels_between
from duelist.typing import FloatArray, IntArray

REDRAWS = 8


class SameArm(StrEnum):
    """The values of `same_arm`. A policy takes "auto", "allow" and the others that its family knows."""

    AUTO = "auto"  # ALLOW in simulation, the first of the family's others live
    ALLOW = "allow"  # play the arm against itself, as the papers do
    RUNNER_UP = "runner-up"  # the second draw's second best arm
    REDRAW = "redraw"  # draw again up to REDRAWS times, then the runner-up
    DIFFERENT = "different"  # the strongest challenger


DRAWS = (SameArm.RUNNER_UP,)  # policies with two posterior draws
DRAWS_AGAIN = (SameArm.RUNNER_UP, SameArm.REDRAW)  # those that can draw a second time
BOUNDS = (SameArm.DIFFERENT,)  # policies with confidence bounds


def check_same_arm(same_arm: str, others: tuple[SameArm, ...]) -> None:
    """Refuse a setting that the policy's family does not know; `others` are what it knows besides "auto" and "allow"."""
    one_of("same_arm", same_arm, [str(known) for known in (SameArm.AUTO, SameArm.ALLOW, *sorted(others))])


def resolve_same_arm(same_arm: str, others: tuple[SameArm, ...], *, live: bool) -> SameArm:
    """What the setting means for this problem: never AUTO.

    Example:
        >>> resolve_same_arm("auto", BOUNDS, live=True).value
        'different'
        >>> resolve_same_arm("auto", BOUNDS, live=False).value
        'allow'
    """
    chosen = SameArm(same_arm)
    if chosen is not SameArm.AUTO:
        return chosen
    return others[0] if live else SameArm.ALLOW


def require_finite(policy: object, actions: ActionSet) -> FiniteActions:
    """Return the action set if it is finite; otherwise say which policy cannot play it."""
    if isinstance(actions, FiniteActions):
        return actions
    raise InvalidInputError(
        f"{type(policy).__name__} compares every arm with every other and needs a finite action set; "
        f"got {type(actions).__name__}. FGTS plays every continuous set, and MaxInP plays balls."
    )


def runner_up(actions: FiniteActions, theta: FloatArray, first: IntArray) -> IntArray:
    """The best arm under theta (lanes, dim) other than `first` (lanes,), the lowest row among equals."""
    return best_other(actions.utilities(theta), first)


def best_other(utilities: FloatArray, first: IntArray) -> IntArray:
    """(lanes,) the row of the largest utility (lanes, n_arms) other than `first` (lanes,), the lowest among equals."""
    others = utilities.copy()
    others[np.arange(len(first)), first] = -np.inf
    return np.asarray(np.argmax(others, axis=1))


def pair_draws(
    actions: ActionSet, theta: FloatArray, redraw: Callable[[int], FloatArray], rule: SameArm = SameArm.ALLOW
) -> Duels:
    """The best arm under each of two draws (lanes, 2, dim), made different where the rule says so.

    Args:
        actions: where the arms come from.
        theta: (lanes, 2, dim) the draws.
        redraw: number of the attempt, from 1 on, to other draws (lanes, 2, dim).
        rule: for lanes in which both draws like one arm best.
    """
    best = actions.best(theta)
    duels = Duels(best.row[:, 0], best.row[:, 1], best.features)
    if rule is SameArm.ALLOW:
        return duels
    if isinstance(actions, FiniteActions):
        return separate_arms(duels, actions, redraw if rule is SameArm.REDRAW else None, theta)
    return separate_points(duels, actions, redraw, theta)


def separate_arms(duels: Duels, actions: FiniteActions, redraw: Callable[[int], FloatArray] | None, theta: FloatArray) -> Duels:
    """Give lanes whose two draws agree another second arm; the other lanes keep theirs.

    Args:
        duels: the pairs.
        actions: the arms.
        redraw: number of the attempt, from 1 on, to other draws (lanes, 2, dim), tried before the runner-up; None for none.
        theta: (lanes, 2, dim) the draws behind the pairs.
    """
    first, second = duels.first, duels.second
    equal = first == second
    if not equal.any():
        return duels
    attempt = 1
    while redraw is not None and equal.any() and attempt <= REDRAWS:
        second = np.where(equal, actions.best(redraw(attempt)).row[:, 1], second)
        equal, attempt = first == second, attempt + 1
    if equal.any():
        second = np.where(equal, runner_up(actions, theta[:, 1], first), second)
    return duels_between(actions, first, second)


def separate_slates(actions: FiniteActions, theta: FloatArray, rows: IntArray) -> IntArray:
    """Rows (lanes, choices) of which none is there twice, while there are others: a later draw shows its next best arm.

    Args:
        actions: the arms.
        theta: (lanes, choices, dim) the draws behind the slate.
        rows: (lanes, choices) the best arm of each.
    """
    rows, lanes = rows.copy(), np.arange(len(rows))
    for place in range(1, rows.shape[1]):
        shown = (rows[:, place, None] == rows[:, :place]).any(axis=1)
        if shown.any():
            utilities = actions.utilities(theta[:, place])
            utilities[lanes[:, None], rows[:, :place]] = -np.inf
            rows[shown, place] = np.argmax(utilities, axis=1)[shown]
    return rows


def separate_points(duels: Duels, actions: ActionSet, redraw: Callable[[int], FloatArray], theta: FloatArray) -> Duels:
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
