"""What the layered policies share: separate estimates at layers of accuracy 2^-1, 2^-2, ..., and the walk up through them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem, per_lane
from duelist.core.stored_names import nest, stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.history.history import History
from duelist.kernels.rules.layers import OPTIMISTIC, PERTURBED, WIDEST, Walk, layered_lanes, refit_layers
from duelist.kernels.rules.pairs import Bounds, Fit
from duelist.policies.parts.confidence import (
    FittedPolicy,
    beside_offsets,
    check_ucb,
    duel_counts,
    must_differ,
    new_pairs,
    offer_candidates,
    warn_of_many_pairs,
)
from duelist.policies.parts.open_duels import add_information, open_contrasts
from duelist.policies.parts.same_arm import require_finite
from duelist.typing import FloatArray, IntArray

# Layer l fills up after about d 4^l rounds, so ten layers outlast ten million; more would only cost memory.
MOST_LAYERS = 10
RULES = {"optimistic": OPTIMISTIC, "widest": WIDEST, "perturbed": PERTURBED}


@stored("layered-settings")
class LayeredSettings(NamedTuple):
    """The settings of a run.

    Attributes:
        ridge: (lanes, layers) the ridge of each layer's fit.
        radius: (lanes,) confidence radius, or the factor of one that changes with what was learnt.
        horizon: rounds to be played; 0 for unknown.
        different: whether the two arms must differ.
    """

    ridge: FloatArray
    radius: FloatArray
    horizon: int
    different: bool


@stored("layered-info")
class LayeredInfo(NamedTuple):
    """How the layers were used.

    Attributes:
        unconverged: (lanes,) fits that did not reach their tolerance.
        explored: (lanes, layers) duels that taught each layer.
        exploited: (lanes,) duels from which nothing was learnt.
    """

    unconverged: FloatArray
    explored: FloatArray
    exploited: FloatArray


@stored("layered-state", version=2, upgrade=nest(settings=LayeredSettings, info=LayeredInfo))
class LayeredState(NamedTuple):
    """What a layered policy has learnt.

    Attributes:
        history: every duel learnt so far, counted in the layer it was played in.
        theta: (lanes, layers, dim) an estimate per layer.
        gram: (lanes, layers, dim, dim) the matrix behind the widths of each layer.
        whitener: (lanes, layers, dim, dim) its inverse Cholesky factor.
        asked: pairs asked for so far.
        settings: one number per lane, or per lane and layer.
        info: how the layers were used.
    """

    history: History
    theta: FloatArray
    gram: FloatArray
    whitener: FloatArray
    asked: int
    settings: LayeredSettings
    info: LayeredInfo


class Explore(NamedTuple):
    """How a policy explores.

    Attributes:
        rule: which pair wider than 2^-l plays: "optimistic", "widest" or "perturbed".
        stop: (lanes,) a layer whose widest pair is narrower than this exploits.
        weigh_by_width: whether a duel counts less the wider its pair is.
        noise: (lanes, n_arms) the perturbation of the leader; None for none.
    """

    rule: str
    stop: FloatArray
    weigh_by_width: bool = False
    noise: FloatArray | None = None


def count_layers(layers: int | None, horizon: int | None) -> int:
    """How many layers to keep: as asked for, else enough for the horizon. With one there would be nothing to walk up to."""
    if layers is not None:
        return whole_number("layers", layers, at_least=2, at_most=60)
    if horizon is None:
        return MOST_LAYERS
    return min(MOST_LAYERS, 1 + math.ceil(math.log2(horizon + 1) / 2))


@dataclass(frozen=True, kw_only=True)
class LayeredPolicy(FittedPolicy[LayeredState]):
    """A policy that walks up layers of accuracy, and explores inside one in its own way.

    Args:
        radius: confidence radius, of every layer; a sequence is one per lane.
        layers: how many, at least 2; None for enough to last the horizon.
        horizon: T; None takes the simulation's, and where it is unknown the rounds asked so far.
        same_arm: "allow" lets an arm meet itself when exploiting, "different" does not; "auto" allows it in simulation only.
    """

    radius: PerLane | Literal["variance"]
    layers: int | None = None
    horizon: int | None = None
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_ucb(self.constant_radius(), 1.0, self.same_arm)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)
        count_layers(self.layers, self.horizon)

    def ridges(self, n_layers: int) -> FloatArray:
        """(n_layers,) what each layer's matrix starts from."""
        raise NotImplementedError

    def fit_ridges(self, n_layers: int) -> FloatArray:
        """(n_layers,) the ridge of each layer's fit: that of its matrix."""
        return self.ridges(n_layers)

    def constant_radius(self) -> PerLane:
        """What does not change from round to round: the radius, or the factor of a radius that does."""
        return cast("PerLane", self.radius)

    def radii(self, state: LayeredState) -> FloatArray:
        """(lanes, layers) the radius of every layer in this round: the same in all of them."""
        return np.repeat(state.settings.radius[:, None], state.theta.shape[1], axis=1)

    def exploration(self, state: LayeredState, actions: FiniteActions, streams: Streams) -> Explore:
        """How to explore this round."""
        raise NotImplementedError

    def start(self, problem: Problem, streams: Streams) -> LayeredState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt in any layer."""
        n_layers = count_layers(self.layers, self.horizon or problem.horizon)
        lanes, dim = problem.lanes, problem.dim
        identity = np.broadcast_to(np.eye(dim), (lanes, n_layers, dim, dim))
        column = np.broadcast_to(self.ridges(n_layers), (lanes, n_layers))
        return LayeredState(
            history=History.start(lanes=lanes, dim=dim, layers=n_layers),
            theta=np.zeros((lanes, n_layers, dim)),
            gram=identity * column[:, :, None, None],
            whitener=identity / np.sqrt(column)[:, :, None, None],
            asked=0,
            settings=LayeredSettings(
                ridge=np.ascontiguousarray(np.broadcast_to(self.fit_ridges(n_layers), (lanes, n_layers))),
                radius=per_lane("radius", self.constant_radius(), lanes),
                horizon=self.horizon or problem.horizon or 0,
                different=must_differ(self.same_arm, problem),
            ),
            info=LayeredInfo(np.zeros(lanes), np.zeros((lanes, n_layers)), np.zeros(lanes)),
        )

    def choose(self, state: LayeredState, actions: ActionSet, streams: Streams) -> tuple[Duels, LayeredState]:
        """Walk up the layers until one exploits or explores; what the duel will count, and where, travels in its note."""
        finite = require_finite(self, actions)
        explore = self.exploration(state, finite, streams)
        candidates = offer_candidates(self, actions, state.theta, streams, state.asked)
        warn_of_many_pairs(self, finite)
        first, second = new_pairs(finite.lanes)
        note = np.empty((finite.lanes, 2))
        walk = Walk(
            stop=explore.stop,
            noise=np.zeros_like(candidates.priority) if explore.noise is None else explore.noise,
            rule=RULES[one_of("explore", explore.rule, RULES)],
            weigh_by_width=explore.weigh_by_width,
            different=state.settings.different,
        )
        bounds = beside_offsets(finite, Bounds(state.theta, state.whitener, self.radii(state)))
        layered_lanes(first, second, note, candidates, bounds, walk)
        return duels_between(finite, first, second, note), state._replace(asked=state.asked + 1)

    def choose_with_pending(
        self, state: LayeredState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, LayeredState]:
        """`choose` with the widths that each layer will have when the pending duels that teach it are answered."""
        duels, after = self.choose(_expect_answers(state, pending), actions, streams)
        return duels, after._replace(gram=state.gram, whitener=state.whitener)

    def learn(self, state: LayeredState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> LayeredState:
        """Count every duel in its layer and fit that layer again; exploiting duels are logged and teach nothing."""
        lanes, n_layers, _ = state.theta.shape
        layers, weights = _read_note(duels, lanes, n_layers)
        history = state.history.append(actions, duels, outcomes, weights=weights, layers=layers)
        info = state.info
        fit = Fit(state.theta.copy(), state.whitener.copy(), state.gram.copy(), info.unconverged.copy())
        refit_layers(fit, duels.contrast, layers, weights, duel_counts(history), state.settings.ridge)
        taught = (weights > 0.0)[:, None] & (np.arange(n_layers) == layers[:, None])
        return state._replace(
            history=history,
            theta=fit.theta,
            gram=fit.gram,
            whitener=fit.whitener,
            info=LayeredInfo(fit.unconverged, info.explored + taught, info.exploited + (weights == 0.0)),
        )

    def recommend(self, state: LayeredState, actions: FiniteActions) -> IntArray:
        """(lanes,) the best arm by the layers' estimates, each weighed by what it has seen."""
        seen = np.einsum("lkij,lkj->li", state.gram, state.theta)
        theta = np.linalg.solve(state.gram.sum(axis=1), seen[:, :, None])[:, :, 0]
        return actions.best(np.ascontiguousarray(theta)[:, None]).row[:, 0]

    def report(self, state: LayeredState) -> dict[str, FloatArray]:
        """How often each layer was taught, how often nothing was learnt, and fits that did not converge."""
        return {
            "unconverged_fits": state.info.unconverged,
            "exploited": state.info.exploited,
            **{f"explored_layer_{layer + 1}": column for layer, column in enumerate(state.info.explored.T)},
        }


def _expect_answers(state: LayeredState, pending: Sequence[Duels]) -> LayeredState:
    """The state with the matrix of every layer as it will be when pending duels are answered."""
    lanes, n_layers, _ = state.theta.shape
    notes = [_read_note(duels, lanes, n_layers) for duels in pending]
    weights = np.zeros((lanes, n_layers, len(pending)))
    for n, (layers, counts) in enumerate(notes):
        weights[np.arange(lanes), layers, n] = counts
    contrasts = np.repeat(open_contrasts(pending)[:, None], n_layers, axis=1)
    gram = state.gram + np.swapaxes(contrasts * weights[..., None], 2, 3) @ contrasts
    return state._replace(gram=gram, whitener=add_information(state.whitener, contrasts, weights))


def _read_note(duels: Duels, lanes: int, n_layers: int) -> tuple[IntArray, FloatArray]:
    """(lanes,) the layer that each duel teaches and by how much it counts."""
    # A duel that comes without a note (a past vote, say) teaches the lowest layer in full.
    note = np.tile([0.0, 1.0], (lanes, 1)) if duels.note is None else _check_note(duels.note, lanes, n_layers)
    return note[:, 0].astype(np.int64), np.ascontiguousarray(note[:, 1])


def _check_note(note: FloatArray, lanes: int, n_layers: int) -> FloatArray:
    """A note (lanes, 2) of layers and counts, refused where it would point the statistics to a layer that does not exist."""
    if note.shape == (lanes, 2):
        layers, counts = note.T
        if ((layers >= 0) & (layers < n_layers) & (layers == np.floor(layers)) & (counts >= 0) & np.isfinite(counts)).all():
            return note
    raise InvalidInputError(
        f"the note of the duels must be ({lanes}, 2): a layer below {n_layers} and a count of at least 0 for every lane; "
        f"got {note!r}. Learn from the duels that this policy's choose returned."
    )
