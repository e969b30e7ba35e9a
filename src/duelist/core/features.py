"""Feature maps: from a context and arms to one feature vector per arm.

A linear policy learns <theta, phi(context, arm)>, so phi decides what can be learnt. Each function takes a context, such as a
user's vector, and arms, such as a fixed catalogue with one row per arm, and returns one feature vector per arm, ready for
`agent.choose` or `FiniteActions`:

    agent.choose(duelist.features.outer(user, catalogue))

Shapes: context (n,) and arms (n_arms, m) give (n_arms, dim). With lanes, context (lanes, n) and arms (n_arms, m) or
(lanes, n_arms, m) give (lanes, n_arms, dim).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from duelist.core.checks import finite_array, whole_number
from duelist.core.errors import InvalidInputError
from duelist.typing import FloatArray


def concatenate(context: npt.ArrayLike, arms: npt.ArrayLike) -> FloatArray:
    """The context and the arm next to each other: phi = (context, arm), dim = n + m.

    The context is in every arm's vector alike, so it cancels when two arms of one round are compared: this is for choosing
    between arms whose *own* features already depend on the context. To let a context change which arm is best, use `outer`.

    Example:
        >>> concatenate([9.0], [[1.0, 2.0], [3.0, 4.0]])
        array([[9., 1., 2.],
               [9., 3., 4.]])
    """
    who, what = _pair(context, arms)
    spread = np.broadcast_to(who[..., None, :], (*what.shape[:-1], who.shape[-1]))
    return np.concatenate([spread, what], axis=-1)


def outer(context: npt.ArrayLike, arms: npt.ArrayLike) -> FloatArray:
    """All products phi = context_i * arm_j, dim = n * m: the utility is bilinear, context^T Theta arm.

    Every context weighs the arms' features in its own way, and what is learnt from one context serves similar ones. Put a 1 at
    the end of the context to have the arms' own features among the products too.

    Example:
        >>> outer([2.0, 1.0], [[1.0, 2.0], [3.0, 4.0]])
        array([[2., 4., 1., 2.],
               [6., 8., 3., 4.]])
    """
    who, what = _pair(context, arms)
    products = who[..., None, :, None] * what[..., None, :]
    return np.ascontiguousarray(products.reshape(*what.shape[:-1], who.shape[-1] * what.shape[-1]))


def one_block_per_arm(context: npt.ArrayLike, n_arms: int) -> FloatArray:
    """The context in the arm's own block and zeros elsewhere, dim = n_arms * n: a parameter vector for every arm.

    For few arms without features of their own: nothing learnt about one arm is used for another.

    Example:
        >>> one_block_per_arm([5.0, 7.0], n_arms=2)
        array([[5., 7., 0., 0.],
               [0., 0., 5., 7.]])
    """
    whole_number("n_arms", n_arms, at_least=2)
    return _outer_by_arm(_context(context), np.eye(n_arms))


def from_function(
    function: Callable[[FloatArray, FloatArray], npt.ArrayLike], context: npt.ArrayLike, arms: npt.ArrayLike
) -> FloatArray:
    """A function of yours, phi = function(context (n,), arm (m,)), called once per arm; all results must have the same length.

    Example:
        >>> distance = lambda user, place: [-np.linalg.norm(user - place), place[0]]
        >>> from_function(distance, [0.0, 0.0], [[3.0, 4.0], [0.0, 1.0]])
        array([[-5.,  3.],
               [-1.,  0.]])
    """
    who, what = _pair(context, arms)
    rows = what.reshape(-1, *what.shape[-2:])
    contexts = np.broadcast_to(who, (len(rows), who.shape[-1]))
    answers = [[np.atleast_1d(function(c.copy(), a.copy())) for a in lane] for c, lane in zip(contexts, rows, strict=True)]
    shapes = {np.shape(answer) for lane in answers for answer in lane}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise InvalidInputError(
            f"the function must return one vector per arm, all of the same length; got shapes {sorted(shapes)}."
        )
    table = finite_array("the function's results", np.array(answers), "(lanes, n_arms, dim)", 3)
    return table.reshape(*what.shape[:-1], table.shape[-1])


def _outer_by_arm(who: FloatArray, what: FloatArray) -> FloatArray:
    """`outer` with the arm's features in front: blocks of the length of the context."""
    products = what[..., :, None] * who[..., None, None, :]
    return np.ascontiguousarray(products.reshape(*products.shape[:-2], what.shape[-1] * who.shape[-1]))


def _context(context: npt.ArrayLike) -> FloatArray:
    return finite_array("context", context, "(n,) or (lanes, n)", 1, 2)


def _pair(context: npt.ArrayLike, arms: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The context (n,) or (lanes, n) and the arms with the lanes of the context."""
    who, what = _context(context), finite_array("arms", arms, "(n_arms, m) or (lanes, n_arms, m)", 2, 3)
    if 0 in who.shape or 0 in what.shape:
        raise InvalidInputError(f"context and arms must not be empty; got shapes {who.shape} and {what.shape}.")
    if who.ndim == 1 and what.ndim == 3:
        who = np.broadcast_to(who, (len(what), len(who)))
    elif who.ndim == 2 and what.ndim == 2:
        what = np.broadcast_to(what, (len(who), *what.shape))
    if who.ndim == 2 and len(who) != len(what):
        raise InvalidInputError(
            f"context has {len(who)} lane(s) and arms has {len(what)}. Give one context per lane, or arms (n_arms, m) that all "
            f"lanes share."
        )
    return who, what
