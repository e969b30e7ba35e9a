"""Compiled draws of arms that are not corners of a cube: on a sphere, in clusters, along axes.

A lane's arms depend on (key, round) only: arm k draws from substream k, and cluster centres from the substreams after the arms.
"""

from __future__ import annotations

import math

import numpy as np

from duelist.core.checks import FloatArray
from duelist.core.compiled import kernel, part
from duelist.core.philox import fill_normals, philox, to_unit
from duelist.core.streams import Keys


@part
def _scale_to(vector: FloatArray, norm: float) -> None:
    """Give `vector` (dim,) this norm."""
    squares = 0.0
    for i in range(vector.shape[0]):
        squares += vector[i] * vector[i]
    factor = norm / math.sqrt(squares)
    for i in range(vector.shape[0]):
        vector[i] *= factor


@kernel
def draw_on_sphere(arms: FloatArray, keys: Keys, round_: int, norm: float) -> None:
    """Fill arms (lanes, n_arms, dim) with uniform directions of this norm."""
    lanes, n_arms, _dim = arms.shape
    for lane in range(lanes):
        for k in range(n_arms):
            fill_normals(arms[lane, k], keys[lane], 1, round_, k)
            _scale_to(arms[lane, k], norm)


@kernel
def draw_clusters(arms: FloatArray, keys: Keys, round_: int, norm: float, n_centres: int, spread: float) -> None:
    """Fill arms (lanes, n_arms, dim) with directions close to one of n_centres uniform ones, in turn, all of this norm.

    An arm is its unit centre plus spread / sqrt(dim) times a standard normal vector, brought back to the sphere: to first
    order in it, `spread` is the distance to the centre as a share of the norm.
    """
    lanes, n_arms, dim = arms.shape
    centres = np.empty((n_centres, dim))
    step = spread / math.sqrt(dim)
    for lane in range(lanes):
        for c in range(n_centres):
            fill_normals(centres[c], keys[lane], 1, round_, n_arms + c)
            _scale_to(centres[c], 1.0)
        for k in range(n_arms):
            fill_normals(arms[lane, k], keys[lane], 1, round_, k)
            for i in range(dim):
                arms[lane, k, i] = centres[k % n_centres, i] + step * arms[lane, k, i]
            _scale_to(arms[lane, k], norm)


@kernel
def draw_axes(arms: FloatArray, keys: Keys, round_: int, norm: float) -> None:
    """Fill arms (lanes, n_arms, dim) with norm * e_i for distinct axes i in random order; n_arms at most dim."""
    lanes, n_arms, dim = arms.shape
    order = np.empty(dim, dtype=np.int64)
    for lane in range(lanes):
        for i in range(dim):
            order[i] = i
        for k in range(n_arms):
            word, _w1, _w2, _w3 = philox(keys[lane], 1, round_, k)
            chosen = k + int(to_unit(word) * (dim - k))
            order[k], order[chosen] = order[chosen], order[k]
            for i in range(dim):
                arms[lane, k, i] = 0.0
            arms[lane, k, order[k]] = norm
