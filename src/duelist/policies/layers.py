"""What the layered policies share: separate estimates at layers of accuracy 2^-1, 2^-2, ..., and the walk up through them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray, IntArray, one_of, whole_number
from duelist.core.duels import Duels, duels_between
from duelist.core.errors import InvalidInputError
from duelist.core.history import History
from duelist.core.lanes import PerLane, Problem, per_lane
from duelist.core.streams import Streams
from duelist.policies.finite import require_finite
from duelist.policies.layer_kernels import OPTIMISTIC, PERTURBED, WIDEST, layered_lanes, refit_layers
from duelist.policies.ucb import candidates

# Layer l fills up after about d 4^l rounds, so ten layers outlast ten million; more would only cost memory.
MOST_LAYERS = 10
RULES = {"optimistic": OPTIMISTIC, "widest": WIDEST, "perturbed": PERTURBED}


class LayeredState(NamedTuple):
    """What a layered policy has learnt.

    Attributes:
        history: every duel learnt so far, counted in the layer it was played in.
        theta: (lanes, layers, dim) an estimate a layer.
        gram: (lanes, layers, dim, dim) the matrix behind the widths of each layer.
        whitener: (lanes, layers, dim, dim) its inverse Cholesky factor.
        ridge: (lanes, layers) what each layer's fit and matrix start from.
        radius: (lanes,) confidence radius.
        unconverged: (lanes,) fits that did not reach their tolerance.
        explored: (lanes, layers) duels that taught each layer.
        exploited: (lanes,) duels from which nothing was learnt.
        asked: pairs asked for so far.
        horizon: rounds to be played; 0 for unknown.
        different: whether the two arms must differ.
    """

    history: History
    theta: FloatArray
    gram: FloatArray
    whitener: FloatArray
    ridge: FloatArray
    radius: FloatArray
    unconverged: FloatArray
    explored: FloatArray
    exploited: FloatArray
    asked: int
    horizon: int
    different: bool


def start_layers(problem: Problem, *, radius: PerLane, ridge: FloatArray, horizon: int | None, same_arm: str) -> LayeredState:
    """Nothing learnt; `ridge` (layers,) is what each layer's fit and matrix start from."""
    lanes, dim, n_layers = problem.lanes, problem.dim, len(ridge)
    identity = np.broadcast_to(np.eye(dim), (lanes, n_layers, dim, dim))
    column = np.ascontiguousarray(np.broadcast_to(ridge, (lanes, n_layers)))
    return LayeredState(
        history=History.start(lanes=lanes, dim=dim, layers=n_layers),
        theta=np.zeros((lanes, n_layers, dim)),
        gram=identity * column[:, :, None, None],
        whitener=identity / np.sqrt(column)[:, :, None, None],
        ridge=column,
        radius=per_lane("radius", radius, lanes),
        unconverged=np.zeros(lanes),
        explored=np.zeros((lanes, n_layers)),
        exploited=np.zeros(lanes),
        asked=0,
        horizon=horizon or problem.horizon or 0,
        different=same_arm == "different" or (same_arm == "auto" and problem.live),
    )


def layer_count(layers: int | None, horizon: int | None) -> int:
    """How many layers to keep: as asked for, else enough for the horizon. With one there would be nothing to walk up to."""
    if layers is not None:
        return whole_number("layers", layers, at_least=2, at_most=60)
    if horizon is None:
        return MOST_LAYERS
    return min(MOST_LAYERS, 1 + math.ceil(math.log2(horizon + 1) / 2))


def choose_layered(
    policy: object,
    state: LayeredState,
    actions: ActionSet,
    streams: Streams,
    *,
    rule: str,
    stop: FloatArray,
    weigh_by_width: bool,
    noise: FloatArray | None = None,
) -> tuple[Duels, LayeredState]:
    """Walk up the layers and pick a pair; what the duel will count, and where, travels with it in its note."""
    finite = require_finite(policy, actions)
    columns, priority = candidates(policy, actions, state.theta, streams, state.asked)
    first, second = np.empty(finite.lanes, dtype=np.int64), np.empty(finite.lanes, dtype=np.int64)
    note = np.empty((finite.lanes, 2))
    layered_lanes(
        first,
        second,
        note,
        columns,
        priority,
        state.theta,
        state.whitener,
        state.radius,
        stop,
        np.zeros_like(priority) if noise is None else noise,
        RULES[one_of("explore", rule, RULES)],
        weigh_by_width,
        state.different,
    )
    return duels_between(finite, first, second, note), state._replace(asked=state.asked + 1)


def learn_layered(state: LayeredState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> LayeredState:
    """Count every duel in its layer and fit that layer again; exploiting duels are logged and teach nothing."""
    lanes, n_layers, _ = state.theta.shape
    # A duel that comes without a note (a past vote, say) teaches the lowest layer in full.
    note = np.tile([0.0, 1.0], (lanes, 1)) if duels.note is None else _checked_note(duels.note, lanes, n_layers)
    layers, counts = note[:, 0].astype(np.int64), np.ascontiguousarray(note[:, 1])
    history = state.history.append(actions, duels, outcomes, weights=counts, layers=layers)
    statistics = history.statistics
    theta, gram, whitener = state.theta.copy(), state.gram.copy(), state.whitener.copy()
    unconverged = state.unconverged.copy()
    refit_layers(
        theta,
        whitener,
        gram,
        duels.contrast,
        layers,
        counts,
        statistics.contrasts,
        statistics.totals,
        statistics.losses,
        statistics.n_rows,
        state.ridge,
        unconverged,
    )
    taught = (counts > 0.0)[:, None] & (np.arange(n_layers) == layers[:, None])
    return state._replace(
        history=history,
        theta=theta,
        gram=gram,
        whitener=whitener,
        unconverged=unconverged,
        explored=state.explored + taught,
        exploited=state.exploited + (counts == 0.0),
    )


def _checked_note(note: FloatArray, lanes: int, n_layers: int) -> FloatArray:
    """A note (lanes, 2) of layers and counts, refused where it would point the statistics to a layer that does not exist."""
    if note.shape == (lanes, 2):
        layers, counts = note.T
        if ((layers >= 0) & (layers < n_layers) & (layers == np.floor(layers)) & (counts >= 0) & np.isfinite(counts)).all():
            return note
    raise InvalidInputError(
        f"the note of the duels must be ({lanes}, 2): a layer below {n_layers} and a count of at least 0 for every lane; "
        f"got {note!r}. Learn from the duels that this policy's choose returned."
    )


def report_layered(state: LayeredState) -> dict[str, FloatArray]:
    """How often each layer was taught, how often nothing was learnt, and fits that did not converge."""
    return {
        "unconverged_fits": state.unconverged,
        "exploited": state.exploited,
        **{f"explored_layer_{layer + 1}": column for layer, column in enumerate(state.explored.T)},
    }
