"""Utilities of a Gaussian kernel through random Fourier features: what the kernel policies learn in.

    phi(x) = n^(-1/2) (cos <w_1, x>, ..., cos <w_n, x>, sin <w_1, x>, ..., sin <w_n, x>),    w_i ~ N(0, I / bandwidth^2),

so that E <phi(x), phi(y)> = exp(-|x - y|^2 / (2 bandwidth^2)) and |phi(x)| = 1. A function of the kernel's space is then
<theta, phi(x)>, its norm is |theta|, and a kernelised logistic estimate is a logistic fit with a ridge.

Frequencies are drawn once per lane, at the start, from a named stream, and are part of the state: what was learnt is in their
coordinates.

Reference: Rahimi & Recht (2007), Random Features for Large-Scale Kernel Machines.
"""

from __future__ import annotations

import math

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.checks import finite_number, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.typing import BoolArray, FloatArray, IntArray

_TIE = 1e-9  # scores that agree to this, relative to their size, are tied


def check_kernel(n_frequencies: int, bandwidth: float | None) -> None:
    """Check the hyper-parameters of the map."""
    whole_number("n_frequencies", n_frequencies, at_least=1)
    if bandwidth is not None:
        finite_number("bandwidth", bandwidth, above=0.0)


def draw_frequencies(streams: Streams, dim: int, n_frequencies: int, bandwidth: float | None) -> FloatArray:
    """(lanes, dim, n_frequencies) normal frequencies; a bandwidth of None is sqrt(dim), for features of unit variance."""
    width = math.sqrt(dim) if bandwidth is None else bandwidth
    return streams.normals("fourier frequencies", 0, dim * n_frequencies).reshape(len(streams), dim, n_frequencies) / width


def map_features(frequencies: FloatArray, features: FloatArray) -> FloatArray:
    """(lanes, n, 2 n_frequencies) the Fourier features of features (lanes, n, dim).

    Example:
        >>> phi = map_features(np.array([[[0.0, np.pi]]]), np.array([[[0.0], [1.0]]]))
        >>> (phi * np.sqrt(2.0)).round(6).tolist()
        [[[1.0, 1.0, 0.0, 0.0], [1.0, -1.0, 0.0, 0.0]]]
    """
    # Not a matrix product: that may round the same arm differently in another row.
    angles = np.einsum("lkd,ldm->lkm", features, frequencies)
    scale = 1.0 / math.sqrt(frequencies.shape[2])
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=2) * scale + 0.0


def map_actions(frequencies: FloatArray, actions: FiniteActions) -> FiniteActions:
    """The arms by their Fourier features; refused where they are not of the lanes and the dimension of the map."""
    lanes, dim, _ = frequencies.shape
    if (actions.lanes, actions.dim) != (lanes, dim):
        raise InvalidInputError(
            f"the action set must have {lanes} lane(s) of dimension {dim}; got {actions.lanes} of dimension {actions.dim}. "
            f"Offer arms of the shape that the policy was started with."
        )
    return FiniteActions(map_features(frequencies, actions.features))


def map_duels(frequencies: FloatArray, duels: Duels) -> Duels:
    """The same pairs with the Fourier features of both arms."""
    return duels._replace(features=map_features(frequencies, duels.features))


def pick_largest(scores: FloatArray, allowed: BoolArray, priority: FloatArray) -> IntArray:
    """(lanes,) row of the largest allowed score (lanes, n_arms); scores that agree to nine digits go by priority.

    Example:
        >>> pick_largest(np.array([[1.0, 2.0, 2.0]]), np.array([[True, True, True]]), np.array([[0.1, 0.2, 0.9]]))
        array([2])
    """
    among = np.where(allowed, scores, -np.inf)
    best = among.max(axis=1, keepdims=True)
    tied = allowed & (among >= best - _TIE * (1.0 + np.abs(best)))
    return np.asarray(np.where(tied, priority, -1.0).argmax(axis=1))
