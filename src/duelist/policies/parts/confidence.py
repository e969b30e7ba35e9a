"""What the confidence-bound policies share: the fit, the matrix behind the widths, and how they are carried along.

    theta_hat = argmin lambda_fit/2 |theta|^2 + sum_i log(1 + exp(-y_i <theta, z_i>)),
    M         = lambda I + sum_i z_i z_i^T             (global widths)
    H         = lambda I + sum_i s'(<theta_hat, z_i>) z_i z_i^T   (local widths),

and the width of a pair is |x - y| in the norm of M^-1 or H^-1. lambda_fit is lambda unless it is given. The ridge makes the fit
finite on separable data, and the fit starts from the last one, so two Newton iterations are the rule. In large dimensions a
fit takes its steps with the curvature of an earlier one, extended by every contrast since: see `follow_lanes`. Beyond a
stated number of distinct contrasts the fit is that of the likelihood's second-order expansion, whose reference follows the
history: see `duelist.samplers.expansion`. So a vote costs the same however many came before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions, OffsetActions, extended_weights
from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.stored_names import Fields, nest, stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.history.history import History
from duelist.kernels.linalg.factors import LARGE
from duelist.kernels.rules.pairs import Bounds, Candidates, DuelCounts, Fit, Ridges, extend_widths, follow_lanes, refit_lanes
from duelist.policies.base import Policy, Round, State
from duelist.policies.parts.open_duels import add_information, logistic_slope, open_contrasts
from duelist.policies.parts.same_arm import BOUNDS, SameArm, check_same_arm, require_finite, resolve_same_arm
from duelist.posteriors.linear import likelihood_from
from duelist.samplers.curvature import Curvature
from duelist.samplers.expansion import Expansion, Following, follow, no_expansion
from duelist.typing import FloatArray, IntArray

PAPER_RIDGE = 0.001
EXACT_ROWS = 2048  # distinct contrasts up to which a fit reads all of them
# What a pair costs a rule that looks at all of them, measured at 5,000 arms: 2 ns in dimension 8, 9 ns in dimension 64.
_NS_PER_PAIR, _NS_PER_ENTRY = 1.0, 0.125
_SECONDS_TO_SAY = 4.0
# Fills in the first (lanes,) and the second (lanes,) arm, given candidates, bounds, and whether the two must differ.
PairRule = Callable[[IntArray, IntArray, Candidates, Bounds, bool], None]
Belief = TypeVar("Belief", bound=Any)  # Bounds, or another tuple with a theta and a whitener
# What matrices of dim x dim cost a round, and to factorise: 10 ms and 0.2 s at dim 1536 (`benchmarks/live_cost.py`).
_MS_PER_SQUARE, _SECONDS_PER_CUBE, _MS_TO_SAY = 10.0 / 1536**2, 0.2 / 1536**3, 50.0


# A number of rounds, or the d K that the theory of CoLSTIM asks for.
WarmUp = int | Literal["theory"]


def _fit_as_before(version: int, fields: Fields) -> Fields:  # noqa: ARG001 - there is one older version
    """Version 1 had one ridge, in the fit and in the matrix."""
    return {**fields, "fit_ridge": fields["ridge"]}


@stored("ucb-settings", version=2, upgrade=_fit_as_before)
class UCBSettings(NamedTuple):
    """The settings of a run.

    Attributes:
        ridge: (lanes,) lambda, of the matrix behind the widths.
        radius: (lanes,) confidence radius.
        different: whether the two arms must differ.
        fit_ridge: (lanes,) lambda_fit, of the fit.
    """

    ridge: FloatArray
    radius: FloatArray
    different: bool
    fit_ridge: FloatArray


@stored("fit-info")
class FitInfo(NamedTuple):
    """How the fits went: (lanes,) those that did not reach their tolerance."""

    unconverged: FloatArray


def _upgrade_state(version: int, fields: Fields) -> Fields:
    """Version 1 was flat, with the one ridge of the settings then; 2 did not know the shape of the fit, and 3 no expansion."""
    if version == 1:
        fields = nest(settings=UCBSettings, info=FitInfo)(version, _fit_as_before(version, fields))
    theta, settings = fields["theta"], fields["settings"]
    if version < 3:
        fields = {**fields, "shape": _first_shape(theta.shape[1], settings.fit_ridge)}
    return {**fields, "expansion": no_expansion(*theta.shape)}


def _first_shape(dim: int, fit_ridge: FloatArray) -> FloatArray:
    """The shape of a fit to nothing; empty where the dimension is so small that fits need none."""
    size = dim if dim >= LARGE else 0
    return np.eye(size) / np.sqrt(fit_ridge)[:, None, None]


@stored("ucb-state", version=4, upgrade=_upgrade_state)
class UCBState(NamedTuple):
    """What a confidence-bound policy has learnt.

    Attributes:
        history: every duel learnt so far.
        theta: (lanes, dim) the regularised maximum likelihood estimate.
        gram: (lanes, dim, dim) M.
        whitener: (lanes, dim, dim) inverse Cholesky factor of the matrix behind the widths.
        asked: pairs asked for so far; it names the next random numbers.
        settings: one number per lane.
        info: how the fits went.
        shape: (lanes, dim, dim) inverse Cholesky factor of the fit's curvature when it was last worked out, extended by the
            contrasts since; empty in small dimensions, where every fit works it out.
        expansion: what stands for a long history in the fit.
    """

    history: History
    theta: FloatArray
    gram: FloatArray
    whitener: FloatArray
    asked: int
    settings: UCBSettings
    info: FitInfo
    shape: FloatArray
    expansion: Expansion

    @property
    def bounds(self) -> Bounds:
        """What kernels read."""
        return Bounds(self.theta, self.whitener, self.settings.radius)


def check_ucb(radius: PerLane, ridge: PerLane, same_arm: str, fit_ridge: PerLane | None = None, warmup: WarmUp = 0) -> None:
    """Check the hyper-parameters that all of these policies have."""
    check_per_lane("radius", radius, at_least=0.0)
    check_per_lane("ridge", ridge, above=0.0)
    if fit_ridge is not None:
        check_per_lane("fit_ridge", fit_ridge, above=0.0)
    if isinstance(warmup, str):
        one_of("warmup", warmup, ("theory",))
    else:
        whole_number("warmup", warmup)
    check_same_arm(same_arm, BOUNDS)


def must_differ(same_arm: str, problem: Problem) -> bool:
    """Whether the two arms must differ in this problem."""
    return resolve_same_arm(same_arm, BOUNDS, live=problem.live) is SameArm.DIFFERENT


def start_ucb(problem: Problem, radius: PerLane, ridge: PerLane, same_arm: str, fit_ridge: PerLane | None = None) -> UCBState:
    """Nothing learnt: theta = 0 and M = lambda I."""
    lanes, dim = problem.lanes, problem.dim
    warn_of_large_dim("a confidence-bound policy", dim)
    column = per_lane("ridge", ridge, lanes)
    fit_column = column.copy() if fit_ridge is None else per_lane("fit_ridge", fit_ridge, lanes)
    identity = np.broadcast_to(np.eye(dim), (lanes, dim, dim))
    return UCBState(
        history=History.start(lanes=lanes, dim=dim),
        theta=np.zeros((lanes, dim)),
        gram=identity * column[:, None, None],
        whitener=identity / np.sqrt(column)[:, None, None],
        asked=0,
        settings=UCBSettings(column, per_lane("radius", radius, lanes), must_differ(same_arm, problem), fit_column),
        info=FitInfo(np.zeros(lanes)),
        shape=_first_shape(dim, fit_column),
        expansion=no_expansion(lanes, dim),
    )


class FittedPolicy(Policy[State]):
    """A policy that fits contrasts, and chooses by an estimate with bounds."""

    def keeps_sets(self) -> bool:
        """A fit reads contrasts."""
        return False

    def follows_sets(self) -> bool:
        """Asking only counts."""
        return False

    def weighs_offsets(self) -> bool:
        """The estimate and its bounds are of utility and offset."""
        return True


@dataclass(frozen=True, kw_only=True)
class UCBPolicy(FittedPolicy[UCBState]):
    """A policy that fits and whitens, and chooses in its own way.

    Args:
        radius: confidence radius; a sequence is one per lane.
        ridge: lambda, of M; the paper uses 0.001.
        same_arm: whether an arm may meet itself: "allow", "different", or "auto": allow in simulation and not live.
        fit_ridge: lambda_fit, of the fit; None for that of M. It must be above 0, or separable duels have no fit.
        warmup: rounds of random pairs first; "theory" for d K.
    """

    radius: PerLane
    ridge: PerLane = 2.0
    same_arm: str = "auto"
    fit_ridge: PerLane | None = None
    warmup: WarmUp = 0

    def __post_init__(self) -> None:
        check_ucb(self.radius, self.ridge, self.same_arm, self.fit_ridge, self.warmup)

    def start(self, problem: Problem, streams: Streams) -> UCBState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt: every arm is promising."""
        return start_ucb(problem, self.radius, self.ridge, self.same_arm, self.fit_ridge)

    def choose_by(self, pair_rule: PairRule, state: UCBState, actions: ActionSet, streams: Streams) -> tuple[Duels, UCBState]:
        """Random pairs while the policy warms up, then those that a rule finds among all pairs of arms."""
        candidates = offer_candidates(self, actions, state.theta, streams, state.asked)
        finite = require_finite(self, actions)
        if state.asked < warm_up_rounds(self.warmup, finite):
            first, second = random_pairs(candidates)
        else:
            warn_of_many_pairs(self, finite)
            first, second = new_pairs(actions.lanes)
            pair_rule(first, second, candidates, beside_offsets(finite, state.bounds), state.settings.different)
        return duels_between(finite, first, second), state._replace(asked=state.asked + 1)

    def choose_with_pending(
        self, state: UCBState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, UCBState]:
        """`choose` with the widths that there will be when the pending duels are answered."""
        duels, after = self.choose(expect_answers(state, pending), actions, streams)
        return duels, after._replace(gram=state.gram, whitener=state.whitener)

    def learn(self, state: UCBState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> UCBState:
        """Append the outcomes and fit again."""
        return learn_ucb(state, actions, duels, outcomes, local=False)

    def learn_many(self, state: UCBState, rounds: Iterable[Round]) -> UCBState:
        """Append all outcomes and fit once."""
        return learn_ucb_many(state, rounds, local=False)

    def recommend(self, state: UCBState, actions: FiniteActions) -> IntArray:
        """(lanes,) the best arm by the estimate."""
        return actions.best(state.theta[:, None]).row[:, 0]

    def report(self, state: UCBState) -> dict[str, FloatArray]:
        """Fits that did not converge, and how many distinct contrasts a fit reads."""
        return report_ucb(state)


def duel_counts(history: History) -> DuelCounts:
    """What a fit reads of a history, without a copy: valid until the next duel."""
    statistics = history.live_statistics
    return DuelCounts(statistics.contrasts, statistics.totals, statistics.losses, statistics.n_rows)


def learn_ucb(state: UCBState, actions: ActionSet, duels: Duels, outcomes: IntArray, *, local: bool) -> UCBState:
    """Append the outcomes and fit again; `local` whitens the curvature at the fit instead of M."""
    history = state.history.append(actions, duels, outcomes)
    fit = Fit(state.theta.copy(), state.whitener.copy(), state.gram.copy(), state.info.unconverged.copy())
    ridges = Ridges(state.settings.fit_ridge, state.settings.ridge)
    shape = state.shape
    if not local and history.rounds > EXACT_ROWS and int(history.live_statistics.n_rows.max()) > EXACT_ROWS:
        extend_widths(fit, duels.contrast)
        return follow_long(state, history)._replace(gram=fit.gram, whitener=fit.whitener)
    if local or shape.shape[1] == 0:
        refit_lanes(fit, duels.contrast, duel_counts(history), ridges, local)
    else:
        shape = shape.copy()
        follow_lanes(fit, shape, duels.contrast, duel_counts(history), ridges)
    return _with_fit(state, history, fit)._replace(shape=shape)


def _with_fit(state: UCBState, history: History, fit: Fit) -> UCBState:
    return state._replace(history=history, theta=fit.theta, gram=fit.gram, whitener=fit.whitener, info=FitInfo(fit.unconverged))


def follow_long(state: UCBState, history: History) -> UCBState:
    """The state with the fit to a long history: the mode of its expansion."""
    statistics, known = history.live_statistics, state.expansion
    lanes, dim = state.theta.shape
    duels = Following(likelihood_from(statistics, np.ones(lanes)), state.settings.fit_ridge, statistics.newest, history.rounds)
    seen = known.observations
    if state.shape.shape[1] == dim and int(statistics.n_rows.max()) == EXACT_ROWS + 1:
        seen = history.rounds - 1  # the fit of the vote before is at hand, with its curvature
    shape = state.shape if state.shape.shape[1] == dim else np.empty((lanes, dim, dim))
    curvature, expansion = follow(Curvature(state.theta, shape, seen), known, duels)
    return state._replace(history=history, theta=curvature.mode, shape=curvature.whitener, expansion=expansion)


def expect_answers(state: UCBState, pending: Sequence[Duels], *, local: bool = False) -> UCBState:
    """The state with the matrix behind the widths, M or the local curvature, as it will be when pending duels are answered."""
    contrasts = open_contrasts(pending)
    gram = state.gram + np.swapaxes(contrasts, 1, 2) @ contrasts
    weights = logistic_slope(np.einsum("lnd,ld->ln", contrasts, state.theta)) if local else None
    return state._replace(gram=gram, whitener=add_information(state.whitener, contrasts, weights))


def learn_ucb_many(state: UCBState, rounds: Iterable[Round], *, local: bool) -> UCBState:
    """Append the outcomes of several rounds and fit once."""
    history, gram = state.history, state.gram.copy()
    newest = np.zeros_like(state.theta)  # per lane the last contrast that says something: the fit takes it in itself
    for actions, duels, outcomes in rounds:
        history, contrast = history.append(actions, duels, outcomes), duels.contrast
        says = np.asarray(contrast.any(axis=1))
        gram += says[:, None, None] * newest[:, :, None] * newest[:, None, :]
        newest[says] = contrast[says]
    fit = Fit(state.theta.copy(), state.whitener.copy(), gram, state.info.unconverged.copy())
    refit_lanes(fit, newest, duel_counts(history), Ridges(state.settings.fit_ridge, state.settings.ridge), local)
    return _with_fit(state, history, fit)._replace(expansion=no_expansion(*fit.theta.shape))


def report_ucb(state: UCBState) -> dict[str, FloatArray]:
    """Fits that did not converge, and how many distinct contrasts a fit reads."""
    return {
        "unconverged_fits": state.info.unconverged,
        "distinct_contrasts": state.history.live_statistics.n_rows.astype(np.float64),
    }


def offer_candidates(policy: object, actions: ActionSet, theta: FloatArray, streams: Streams, asked: int) -> Candidates:
    """Arms and their random priorities, which break ties by content and not by row.

    Arms must be of the lanes and the dimension of theta (lanes, ..., dim): kernels would read beyond other ones.
    """
    finite = require_finite(policy, actions)
    if (finite.lanes, finite.dim) != (theta.shape[0], theta.shape[-1]):
        raise InvalidInputError(
            f"the action set must have {theta.shape[0]} lane(s) of dimension {theta.shape[-1]}; got {finite.lanes} of "
            f"dimension {finite.dim}. Offer arms of the shape that the policy was started with."
        )
    columns = finite.extended_columns if isinstance(finite, OffsetActions) else finite.columns
    return Candidates(columns, finite.random_priority(streams, "ties", asked))


def beside_offsets(actions: FiniteActions, belief: Belief) -> Belief:
    """What is believed of theta, in the dimension of the candidates that `offer_candidates` made of these arms.

    An offset is a feature of weight 1, which is known: it counts in every utility and in no width.

    Args:
        actions: the arms.
        belief: a named tuple of theta (lanes, ..., dim), whitener (lanes, ..., dim, dim) and what else there is.
    """
    if actions.offsets is None:
        return belief
    whitener = np.pad(belief.whitener, [(0, 0)] * (belief.whitener.ndim - 2) + [(0, 1), (0, 1)])
    known: Belief = belief._replace(theta=extended_weights(belief.theta), whitener=whitener)
    return known


def warn_of_many_pairs(policy: object, actions: FiniteActions) -> None:
    """Warn before a round that looks at every pair of so many arms that it takes seconds or more.

    Python shows a warning once per process, not every round.
    """
    seconds = actions.lanes * actions.n_arms**2 * (_NS_PER_PAIR + _NS_PER_ENTRY * actions.dim) * 1e-9
    if seconds >= _SECONDS_TO_SAY:
        name = type(policy).__name__
        _warn(
            f"{name} looks at every pair of arms: with {actions.n_arms:,} arms of dimension {actions.dim} a round takes about "
            f"{seconds:.2g} seconds or more. Use FGTS, CoLSTIM or Foresight, whose cost grows with the arms and not with "
            f"their pairs, or offer {name} a shortlist."
        )


def warn_of_large_dim(policy: str, dim: int) -> None:
    """Warn at the start of a run whose matrices of dim x dim make every round slow."""
    milliseconds = _MS_PER_SQUARE * dim**2
    if milliseconds >= _MS_TO_SAY:
        _warn(
            f"{policy} keeps matrices of dim x dim: with dim {dim:,} a round takes about {milliseconds:.0f} ms, and "
            f"{_SECONDS_PER_CUBE * dim**3:.0f} seconds each time that the votes have grown by a twentieth. Shorten the "
            f"features, as with duelist.features.PrincipalComponents or ProductMap."
        )


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=4)


def warm_up_rounds(warmup: WarmUp, actions: FiniteActions) -> int:
    """How many rounds of random pairs come first: as asked for, or d K."""
    return actions.dim * actions.n_arms if isinstance(warmup, str) else warmup


def random_pairs(candidates: Candidates) -> tuple[IntArray, IntArray]:
    """Rows of two different arms, uniformly at random: the two largest of independent uniform numbers."""
    order = np.argsort(-candidates.priority, axis=1, kind="stable")
    return order[:, 0], order[:, 1]


def new_pairs(lanes: int) -> tuple[IntArray, IntArray]:
    """Room for the rows of the first and of the second arm, for a kernel to fill."""
    return np.empty(lanes, dtype=np.int64), np.empty(lanes, dtype=np.int64)
