"""A normal belief about theta, which policies that need only its mean, its widths or draws from it share.

    theta | votes  is taken to be  N(theta_hat, H^-1),
    theta_hat = argmin lambda/2 |theta|^2 + sum_i log(1 + exp(-y_i <theta, z_i>)),
    H         = lambda I + sum_i s'(<theta_hat, z_i>) z_i z_i^T.

This is Laplace's approximation of the posterior under the prior N(0, I / lambda). It is the fit of the confidence-bound
policies with local widths, and lives in the same state. The fit moves with every vote, so a draw costs dim^2 and no
chain has to settle. In large dimensions H is that of an earlier fit, extended by every contrast since, and beyond 2,048
distinct contrasts it is that of the likelihood's expansion: see `duelist.policies.parts.confidence`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.lanes import PerLane, Problem, check_per_lane
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.kernels.rules.pairs import Fit, Ridges, follow_lanes, refit_lanes
from duelist.policies.base import Round
from duelist.policies.parts.confidence import (
    EXACT_ROWS,
    FitInfo,
    FittedPolicy,
    UCBState,
    duel_counts,
    expect_answers,
    follow_long,
    learn_ucb_many,
    report_ucb,
    start_ucb,
)
from duelist.policies.parts.same_arm import BOUNDS, check_same_arm
from duelist.posteriors.priors import Gaussian, Prior
from duelist.typing import FloatArray, IntArray


def learn_normal(
    state: UCBState, actions: ActionSet, duels: Duels, outcomes: IntArray, weights: FloatArray | None = None
) -> UCBState:
    """The belief after one more vote per lane, which counts by its weight (lanes,); 1 if not given."""
    history = state.history.append(actions, duels, outcomes, weights=weights)
    settings, contrast = state.settings, duels.contrast
    if weights is not None:
        contrast = np.sqrt(weights)[:, None] * contrast
    if history.rounds > EXACT_ROWS and int(history.live_statistics.n_rows.max()) > EXACT_ROWS:
        gram = state.gram + contrast[:, :, None] * contrast[:, None, :]
        after = follow_long(state, history)
        return after._replace(gram=gram, whitener=after.shape)
    fit = Fit(state.theta.copy(), state.whitener.copy(), state.gram.copy(), state.info.unconverged.copy())
    ridges, shape = Ridges(settings.fit_ridge, settings.ridge), state.shape
    if shape.shape[1] == 0:
        refit_lanes(fit, contrast, duel_counts(history), ridges, True)
    else:
        shape = shape.copy()
        follow_lanes(fit, shape, contrast, duel_counts(history), ridges)
    return state._replace(
        history=history,
        theta=fit.theta,
        gram=fit.gram,
        whitener=shape if shape.shape[1] else fit.whitener,
        info=FitInfo(fit.unconverged),
        shape=shape,
    )


def draw_normal(state: UCBState, streams: Streams, name: str, n_draws: int) -> FloatArray:
    """(lanes, n_draws, dim) independent draws of theta, which the named stream and the pairs asked so far decide."""
    lanes, dim = state.theta.shape
    noise = streams.normals(name, state.asked, n_draws * dim).reshape(lanes, n_draws, dim)
    # The whitener is L^-1 with H = L L^T, and L^-T times white noise has covariance H^-1; noise is in rows here.
    return np.asarray(state.theta[:, None] + np.matmul(noise, state.whitener))


@dataclass(frozen=True, kw_only=True)
class NormalPolicy(FittedPolicy[UCBState]):
    """A policy that keeps a normal belief about theta, and chooses in its own way.

    Args:
        ridge: lambda, precision of the normal prior; a sequence is one per lane.
        same_arm: whether an arm may meet itself: "allow", "different", or "auto": allow in simulation and not live.
    """

    ridge: PerLane = 1.0
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_per_lane("ridge", self.ridge, above=0.0)
        check_same_arm(self.same_arm, BOUNDS)

    def start(self, problem: Problem, streams: Streams) -> UCBState:  # noqa: ARG002 - a policy's signature
        """The prior."""
        return start_ucb(problem, 1.0, self.ridge, self.same_arm)

    def learn(self, state: UCBState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> UCBState:
        """Append the outcomes and fit again."""
        return learn_normal(state, actions, duels, outcomes)

    def learn_many(self, state: UCBState, rounds: Iterable[Round]) -> UCBState:
        """Append all outcomes and fit once."""
        after = learn_ucb_many(state, rounds, local=True)
        return after._replace(shape=after.whitener.copy()) if after.shape.shape[1] else after

    def estimated_utilities(self, state: UCBState, actions: FiniteActions) -> FloatArray:
        """Utilities at the fit."""
        return actions.utilities(state.theta)

    def recommend(self, state: UCBState, actions: FiniteActions) -> IntArray:
        """(lanes,) the best arm by the fit."""
        return actions.best(state.theta[:, None]).row[:, 0]

    def believed_prior(self) -> Prior:
        """The normal prior; of several ridges, that of the first lane."""
        return Gaussian(float(np.ravel(self.ridge)[0]) ** -0.5)

    def report(self, state: UCBState) -> dict[str, FloatArray]:
        """Fits that did not converge, and how many distinct contrasts a fit reads."""
        return report_ucb(state)


class PendingWidths(NormalPolicy):
    """A normal policy whose pairs follow from the belief alone: with pending duels it uses the widths that there will be."""

    def choose_with_pending(
        self, state: UCBState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, UCBState]:
        """`choose` with the belief as narrow as it will be when the pending duels are answered."""
        duels, after = self.choose(expect_answers(state, pending, local=True), actions, streams)
        return duels, after._replace(gram=state.gram, whitener=state.whitener)
