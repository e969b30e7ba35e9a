"""How arms lie: corners of a cube, points of a sphere, near-duplicates in clusters, unrelated axes."""

from __future__ import annotations

import math

import numpy as np

from duelist.core.checks import one_of
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.kernels.actions import draw_axes, draw_clusters, draw_corners, draw_on_sphere
from duelist.typing import FloatArray

GEOMETRIES = ("cube", "sphere", "clusters", "axes")
# Few enough centres that most arms have near-duplicates from 16 arms up; arms of a cluster are about 0.28 of the norm apart.
CLUSTER_CENTRES = 4
CLUSTER_SPREAD = 0.2


def check_geometry(geometry: str, *, dim: int, arms: int) -> None:
    """Refuse a geometry that has too few distinct arms in this dimension."""
    one_of("geometry", geometry, GEOMETRIES)
    if geometry == "cube" and dim < 63 and arms > 2**dim:
        raise InvalidInputError(
            f"arms must be at most 2^dim = {2**dim}, the distinct corners of a cube in dimension {dim}; "
            f"got {arms}. Raise dim or lower arms."
        )
    if geometry == "axes" and arms > dim:
        raise InvalidInputError(
            f'arms must be at most dim = {dim} with geometry="axes", one arm per axis; got {arms}. Raise dim or lower arms.'
        )
    if geometry in ("sphere", "clusters") and dim < 2:
        raise InvalidInputError(
            f'geometry="{geometry}" needs dim of at least 2; got {dim}. A sphere in dimension 1 is two points: use "cube".'
        )


def draw_arms(geometry: str, streams: Streams, round_: int, *, dim: int, arms: int, unit_norm: bool) -> FloatArray:
    """(lanes, arms, dim) arms of a round, all of norm sqrt(dim), or 1 with `unit_norm`.

    Example:
        >>> float(abs(draw_arms("axes", Streams(0, [0]), 0, dim=4, arms=3, unit_norm=False)).sum())
        6.0
    """
    drawn = np.empty((len(streams), arms, dim))
    keys = streams.keys("arms")
    norm = 1.0 if unit_norm else math.sqrt(dim)
    if geometry == "cube":
        draw_corners(drawn, keys, round_, 1 / math.sqrt(dim) if unit_norm else 1.0)
    elif geometry == "sphere":
        draw_on_sphere(drawn, keys, round_, norm)
    elif geometry == "clusters":
        draw_clusters(drawn, keys, round_, norm, CLUSTER_CENTRES, CLUSTER_SPREAD)
    else:
        draw_axes(drawn, keys, round_, norm)
    return drawn
