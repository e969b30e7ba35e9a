"""What the confidence-bound policies share: the fit, the matrix behind the widths, and how they are carried along.

    theta_hat = argmin lambda/2 |theta|^2 + sum_i log(1 + exp(-y_i <theta, z_i>)),
    M         = lambda I + sum_i z_i z_i^T             (global widths)
    H         = lambda I + sum_i s'(<theta_hat, z_i>) z_i z_i^T   (local widths),

and the width of a pair is |x - y| in the norm of M^-1 or H^-1. The ridge makes the fit finite on separable data, and the fit
starts from the last one, so two Newton iterations are the rule.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray, IntArray, one_of
from duelist.core.duels import Duels
from duelist.core.errors import InvalidInputError
from duelist.core.history import History
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.stream_kernels import arm_uniforms
from duelist.core.streams import Streams
from duelist.policies.finite import require_finite
from duelist.policies.ucb_kernels import refit_lanes

PAPER_RIDGE = 0.001
SAME_ARM = ("auto", "allow", "different")


class UCBState(NamedTuple):
    """What a confidence-bound policy has learnt.

    Attributes:
        history: every duel learnt so far.
        theta: (lanes, dim) the regularised maximum likelihood estimate.
        gram: (lanes, dim, dim) M.
        whitener: (lanes, dim, dim) inverse Cholesky factor of the matrix behind the widths.
        ridge: (lanes,) lambda.
        radius: (lanes,) confidence radius.
        unconverged: (lanes,) fits that did not reach their tolerance.
        asked: pairs asked for so far; it names the next random numbers.
        different: whether the two arms must differ.
    """

    history: History
    theta: FloatArray
    gram: FloatArray
    whitener: FloatArray
    ridge: FloatArray
    radius: FloatArray
    unconverged: FloatArray
    asked: int
    different: bool


def check_ucb(radius: PerLane, ridge: PerLane, same_arm: str) -> None:
    """Check the hyper-parameters that all of these policies have."""
    check_per_lane("radius", radius, at_least=0.0)
    check_per_lane("ridge", ridge, above=0.0)
    one_of("same_arm", same_arm, SAME_ARM)


def start_ucb(problem: Problem, radius: PerLane, ridge: PerLane, same_arm: str) -> UCBState:
    """Nothing learnt: theta = 0 and M = lambda I."""
    lanes, dim = problem.lanes, problem.dim
    column = per_lane("ridge", ridge, lanes)
    identity = np.broadcast_to(np.eye(dim), (lanes, dim, dim))
    return UCBState(
        history=History.start(lanes=lanes, dim=dim),
        theta=np.zeros((lanes, dim)),
        gram=identity * column[:, None, None],
        whitener=identity / np.sqrt(column)[:, None, None],
        ridge=column,
        radius=per_lane("radius", radius, lanes),
        unconverged=np.zeros(lanes),
        asked=0,
        different=same_arm == "different" or (same_arm == "auto" and problem.live),
    )


def learn_ucb(state: UCBState, actions: ActionSet, duels: Duels, outcomes: IntArray, *, local: bool) -> UCBState:
    """Append the outcomes and fit again; `local` whitens the curvature at the fit instead of M."""
    history = state.history.append(actions, duels, outcomes)
    statistics = history.statistics
    theta, gram = state.theta.copy(), state.gram.copy()
    whitener, unconverged = state.whitener.copy(), state.unconverged.copy()
    refit_lanes(
        theta,
        whitener,
        gram,
        duels.contrast,
        statistics.contrasts,
        statistics.totals,
        statistics.losses,
        statistics.n_rows,
        state.ridge,
        local,
        unconverged,
    )
    return state._replace(history=history, theta=theta, gram=gram, whitener=whitener, unconverged=unconverged)


def report_ucb(state: UCBState) -> dict[str, FloatArray]:
    """Fits that did not converge, and how many distinct contrasts a fit reads."""
    return {
        "unconverged_fits": state.unconverged,
        "distinct_contrasts": state.history.statistics.n_rows.astype(np.float64),
    }


class Candidates(NamedTuple):
    """The arms of a round as kernels want them: columns (lanes, dim, n_arms) and a tie-breaking priority (lanes, n_arms)."""

    columns: FloatArray
    priority: FloatArray


def candidates(policy: object, actions: ActionSet, theta: FloatArray, streams: Streams, asked: int) -> Candidates:
    """Arms and their random priorities, which break ties by content and not by row.

    Arms must be of the lanes and the dimension of theta (lanes, ..., dim): kernels would read beyond other ones.
    """
    finite = require_finite(policy, actions)
    if (finite.lanes, finite.dim) != (theta.shape[0], theta.shape[-1]):
        raise InvalidInputError(
            f"the action set must have {theta.shape[0]} lane(s) of dimension {theta.shape[-1]}; got {finite.lanes} of "
            f"dimension {finite.dim}. Offer arms of the shape that the policy was started with."
        )
    priority = np.empty((finite.lanes, finite.n_arms))
    arm_uniforms(priority, finite.fingerprints, streams.keys("ties"), asked)
    return Candidates(finite.columns, priority)
