"""MaxInP on a ball: which points may still be best, and the most informative pair of them.

A point x of a convex set is promising, <theta_hat, x - y> + radius |x - y|_{M^-1} >= 0 for every y of the set, exactly if it is
best under some theta of the confidence ellipsoid

    E = { theta : |theta - theta_hat|_M <= radius }.

(The left side is convex in y and 0 at y = x, so x is promising if and only if its minimum over the set is there: theta_hat + v
is normal to the set at x for some |v|_M <= radius.) On a ball of radius R there are two cases.

1. 0 is in E. Every point is promising, and the widest pair is antipodal, +-R v with v the eigenvector of M's smallest
   eigenvalue. This is the exact maximum.
2. 0 is not in E. Promising are the points R theta / |theta| with theta in E, which is the part of the sphere in the cone

       K = { x : <theta_hat, x>_M >= kappa |x|_M },   kappa^2 = |theta_hat|_M^2 - radius^2.

   The squared width q(x - y) = |x - y|^2_{M^-1} is maximised by ascent: replace x and y by the points of the cap that maximise
   the linear parts <g + c x, .> and <-g + c y, .> of q at the current pair, g = M^-1 (x - y). Since q + (c/2)(|x|^2 + |y|^2) is
   convex and |x| = |y| = R, no step makes the pair narrower. The maximum of a linear function over the cap is the projection
   on K, scaled to length R, which takes one root of a decreasing function in the eigenbasis of kappa^2 M - M theta theta^T M.
   The ascent starts at the ends of every axis of E and the widest end is played.

The objective is a convex function and is maximised, so case 2 ends at a pair that no small change improves, not at a proven
maximum. In the plane it agrees with a fine grid; see the tests.
"""

from __future__ import annotations

import math

import numpy as np

from duelist.core.checks import FloatArray
from duelist.core.compiled import kernel, part

_STEPS = 200
_TOLERANCE = 1e-9  # an ascent that gains less than this, relative to the width, has arrived
_ROOT_STEPS = 60  # halvings: the root to sixteen digits of its bracket


@part
def project_on_cone(out: FloatArray, vector: FloatArray, axes: FloatArray, bends: FloatArray) -> None:
    """The projection of `vector` on the cone { x : x^T W x <= 0, x_1 >= 0 }, W = axes diag(bends) axes^T with bends[0] < 0.

    `vector` must have a positive component along axes[:, 0]. With coordinates g in the eigenbasis the projection is
    g_i / (1 + s bends_i), at the s in [0, -1/bends_0) where it lies on the surface of the cone; there the sum below decreases.
    """
    dim = vector.shape[0]
    g = np.empty(dim)
    for k in range(dim):
        g[k] = 0.0
        for i in range(dim):
            g[k] += axes[i, k] * vector[i]
    low, high = 0.0, -1.0 / bends[0]
    surface = 0.0
    for k in range(dim):
        surface += bends[k] * g[k] * g[k]
    if surface > 0.0:
        for _ in range(_ROOT_STEPS):
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            surface = 0.0
            for k in range(dim):
                entry = g[k] / (1.0 + middle * bends[k])
                surface += bends[k] * entry * entry
            if surface > 0.0:
                low = middle
            else:
                high = middle
        # The upper end is where the point is inside the cone; at -1/bends_0 itself it would be at infinity.
        scale = min(high, -(1.0 - 1e-15) / bends[0])
        for k in range(dim):
            g[k] /= 1.0 + scale * bends[k]
    for i in range(dim):
        out[i] = 0.0
        for k in range(dim):
            out[i] += axes[i, k] * g[k]


@part
def _farther(
    out: FloatArray, point: FloatArray, pull: FloatArray, axes: FloatArray, bends: FloatArray, radius: float, work: FloatArray
) -> None:
    """The point of the cap that maximises <pull + c point, .>, with the smallest c >= 0 that makes this a projection."""
    dim = point.shape[0]
    along, inner, height, lift = 0.0, 0.0, 0.0, 0.0
    for i in range(dim):
        inner += pull[i] * point[i]
        height += axes[i, 0] * point[i]
        lift += axes[i, 0] * pull[i]
        along += pull[i] * pull[i]
    # A tenth of |pull| / R on top keeps both inner products well above 0.
    slack = 0.1 * math.sqrt(along) / radius
    c = max(0.0, slack - inner / (radius * radius), slack - lift / height)
    for i in range(dim):
        work[i] = pull[i] + c * point[i]
    project_on_cone(out, work, axes, bends)
    length = 0.0
    for i in range(dim):
        length += out[i] * out[i]
    length = math.sqrt(length)
    for i in range(dim):
        out[i] *= radius / length


@kernel
def widest_in_cap(
    pair: FloatArray, inverse: FloatArray, axes: FloatArray, bends: FloatArray, radius: float, work: FloatArray
) -> float:
    """Ascend from the pair (2, dim) in place and return its squared width. `work` is (4, dim)."""
    dim = pair.shape[1]
    width = -1.0
    for _ in range(_STEPS):
        now = 0.0
        for i in range(dim):
            work[0, i] = 0.0
            for j in range(dim):
                work[0, i] += inverse[i, j] * (pair[0, j] - pair[1, j])
            now += work[0, i] * (pair[0, i] - pair[1, i])
            work[1, i] = -work[0, i]
        if now <= width * (1.0 + _TOLERANCE):
            break
        width = now
        _farther(work[2], pair[0], work[0], axes, bends, radius, work[3])
        _farther(pair[1], pair[1].copy(), work[1], axes, bends, radius, work[3])
        pair[0] = work[2]
    return width


def widest_pair(theta: FloatArray, gram: FloatArray, confidence: float, radius: float) -> FloatArray:
    """The most informative promising pair of one lane, (2, dim), the one of higher estimate first.

    Args:
        theta: (dim,) the estimate.
        gram: (dim, dim) M.
        confidence: radius of the confidence ellipsoid.
        radius: of the ball of arms.

    Example:
        >>> widest_pair(np.zeros(2), np.diag([4.0, 1.0]), confidence=1.0, radius=1.0)
        array([[ 0.,  1.],
               [-0., -1.]])
    """
    sizes, axes = np.linalg.eigh(gram)
    tilt = gram @ theta
    beyond = float(theta @ tilt) - confidence**2
    if beyond <= 0.0:
        pair = radius * np.stack([axes[:, 0], -axes[:, 0]])
    else:
        bends, cone = np.linalg.eigh(beyond * gram - np.outer(tilt, tilt))
        cone[:, 0] *= np.sign(cone[:, 0] @ tilt)
        inverse: FloatArray = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        work = np.empty((4, len(theta)))
        pair, widest = np.empty((2, len(theta))), -1.0
        for k in range(len(theta)):
            reach = confidence / math.sqrt(sizes[k]) * axes[:, k]
            start = np.stack([theta + reach, theta - reach])
            start *= radius / np.linalg.norm(start, axis=1, keepdims=True)
            width = widest_in_cap(start, inverse, np.ascontiguousarray(cone), bends, radius, work)
            if width > widest:
                pair, widest = start, width
    return pair if pair[0] @ theta >= pair[1] @ theta else pair[::-1].copy()
