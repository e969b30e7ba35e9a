"""Support functions in closed form, and their sum over the rounds of a history.

The support function of an action set is h(theta) = max over the set of <theta, phi>: what the Feel-Good term adds up. The
sets that duelist knows are Minkowski sums of four kinds of pieces, whose support functions add up too:

    h(theta) = <centre, theta> + sum_i half_widths_i |theta_i| + sum_k |shape_k^T theta| + sum_p max over the points of p

A box is a centre and half-widths, an ellipsoid a centre and a shape, a polytope its vertices, a product the pieces of its
factors. A set without such a form, like a user's own, is kept as it is and asked for `best(theta)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.typing import FloatArray

CallbackSets = tuple[tuple[ActionSet, float], ...]  # sets without a closed form, and how often each was offered


class SupportForm(NamedTuple):
    """The pieces of one action set.

    Attributes:
        centre: (lanes, dim).
        half_widths: (lanes, dim) of a box along the axes.
        shapes: (lanes, n_shapes, dim, dim) ellipsoids { shape u : |u| <= 1 }.
        points: finite pieces, each (lanes, dim, n_points).
    """

    centre: FloatArray
    half_widths: FloatArray
    shapes: FloatArray
    points: tuple[FloatArray, ...] = ()

    @classmethod
    def nothing(cls, lanes: int, dim: int) -> SupportForm:
        """The set { 0 }."""
        return cls(np.zeros((lanes, dim)), np.zeros((lanes, dim)), np.zeros((lanes, 0, dim, dim)))


class Support(NamedTuple):
    """The sum of the support functions of the continuous sets that a history was offered, balls apart.

    Attributes:
        centre: (lanes, dim) sum of the centres.
        spread: (lanes, dim) sum of the half-widths: boxes add up to one box.
        shapes: (lanes, n_shapes, dim, dim) distinct ellipsoids.
        shape_repeats: (n_shapes,) how often each was offered.
        points: (lanes, n_pieces, dim, most) distinct finite pieces, padded with copies of their first point.
        point_repeats: (n_pieces,) how often each was offered.
        callback_sets: distinct sets without a closed form, and how often each was offered.
    """

    centre: FloatArray
    spread: FloatArray
    shapes: FloatArray
    shape_repeats: FloatArray
    points: FloatArray
    point_repeats: FloatArray
    callback_sets: CallbackSets = ()


class SupportSums:
    """Grows a `Support` round by round. The caller of `count` numbers distinct sets, from 0 on and without gaps."""

    def __init__(self, lanes: int, dim: int) -> None:
        self.lanes = lanes
        self.centre, self.spread = np.zeros((lanes, dim)), np.zeros((lanes, dim))
        self.shapes, self.shape_repeats = np.zeros((lanes, 0, dim, dim)), np.zeros(0)
        self.points, self.point_repeats = np.zeros((lanes, 0, dim, 0)), np.zeros(0)
        self.callback_repeats: dict[int, float] = {}
        self.sets: list[ActionSet] = []
        self._rows: list[tuple[slice, slice]] = []  # which shapes and which points a set has

    def count(self, number: int, actions: ActionSet) -> None:
        """Add the set of one round."""
        form: SupportForm | None = getattr(actions, "form", None)
        if number == len(self.sets):
            self.sets.append(actions)
            self._rows.append(self._keep(form))
        if form is None:
            self.callback_repeats[number] = self.callback_repeats.get(number, 0.0) + 1.0
            return
        shapes, points = self._rows[number]
        self.centre = self.centre + form.centre
        self.spread = self.spread + form.half_widths
        self.shape_repeats[shapes] += 1.0
        self.point_repeats[points] += 1.0

    def fade(self, factor: float) -> None:
        """Multiply everything counted so far, for a history that forgets."""
        self.centre, self.spread = self.centre * factor, self.spread * factor
        self.shape_repeats *= factor
        self.point_repeats *= factor
        self.callback_repeats = {number: repeats * factor for number, repeats in self.callback_repeats.items()}

    def _keep(self, form: SupportForm | None) -> tuple[slice, slice]:
        n_shapes, n_pieces = len(self.shape_repeats), len(self.point_repeats)
        if form is None:
            return slice(0, 0), slice(0, 0)
        if form.shapes.shape[1]:
            self.shapes = np.concatenate([self.shapes, form.shapes], axis=1)
            self.shape_repeats = np.concatenate([self.shape_repeats, np.zeros(form.shapes.shape[1])])
        if form.points:
            self.points = side_by_side([self.points, *(piece[:, None] for piece in form.points)])
            self.point_repeats = np.concatenate([self.point_repeats, np.zeros(len(form.points))])
        return slice(n_shapes, len(self.shape_repeats)), slice(n_pieces, len(self.point_repeats))

    def sums(self) -> Support | None:
        """What was counted so far; None for nothing."""
        if not self.sets:
            return None
        callback_sets = tuple((self.sets[number], repeats) for number, repeats in self.callback_repeats.items())
        # Copies where counting writes in place: what was handed out stays what it was.
        return Support(
            self.centre,
            self.spread,
            self.shapes,
            self.shape_repeats.copy(),
            self.points,
            self.point_repeats.copy(),
            callback_sets,
        )


def side_by_side(pieces: Sequence[Any]) -> FloatArray:
    """Join (lanes, n, dim, arms) arrays of different numbers of arms along their second axis, padding with first arms."""
    most = max(piece.shape[3] for piece in pieces)
    padded = [
        piece if piece.shape[3] == most else np.concatenate([piece, np.repeat(piece[..., :1], most - piece.shape[3], 3)], 3)
        for piece in pieces
        if piece.shape[1]
    ]
    return np.ascontiguousarray(np.concatenate(padded, axis=1)) if padded else np.asarray(pieces[0])
