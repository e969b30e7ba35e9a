"""Feature maps: from a context and arms to one feature vector per arm.

A linear policy learns <theta, phi(context, arm)>, so phi decides what can be learnt. Each function takes a context, such as a
user's vector, and arms, such as a fixed catalogue with one row per arm, and returns one feature vector per arm, ready for
`agent.choose` or `FiniteActions`:

    agent.choose(duelist.features.outer(user, catalogue))

Maps that are fitted or drawn once are values: `PrincipalComponents` shortens long embeddings, `RandomFourier` makes a linear
policy nonlinear in its context, `BilinearMap` and `ProductMap` join the embedding of a context to those of the arms. Keep a map
with what was learnt through it: `duelist.core.to_bytes` and `from_bytes` restore it bit for bit.

Shapes: context (n,) and arms (n_arms, m) give (n_arms, dim). With lanes, context (lanes, n) and arms (n_arms, m) or
(lanes, n_arms, m) give (lanes, n_arms, dim).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from duelist.actions.blocks import BlockActions
from duelist.core.checks import finite_array, finite_number, one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.stored_names import stored
from duelist.typing import FloatArray

SCALINGS = ("together", "first", "each", "none")
_MOST_FOR_MEDIAN = 1000  # contexts that the median distance is taken over


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
    return _outer_by_arm(_context(context), np.eye(n_arms)) + 0.0  # so that no zero is -0.0, which would be kept as a number


def blocks(context: npt.ArrayLike, n_arms: int) -> BlockActions:
    """`one_block_per_arm` without its zeros, for an agent: an action set that keeps the context alone.

    `choose`, `predict`, `rank` and `best` of an agent take it, a journal writes the context, and what is learnt is the same.

    Example:
        >>> import duelist
        >>> agent = duelist.Agent(duelist.FGTS(), dim=24, seed=0)
        >>> duel = agent.choose(blocks([0.5, 1.0], n_arms=12))
        >>> agent.learn(duel, winner="left")
    """
    return BlockActions(context, n_arms)


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


def append_one(context: npt.ArrayLike) -> FloatArray:
    """The context with a 1 at its end, (n + 1,) or (lanes, n + 1): the part of a utility that no context changes.

    Example:
        >>> one_block_per_arm(append_one([0.5]), n_arms=2)
        array([[0.5, 1. , 0. , 0. ],
               [0. , 0. , 0.5, 1. ]])
    """
    who = _context(context)
    return np.concatenate([who, np.ones((*who.shape[:-1], 1))], axis=-1)


class _StoredMap:
    """A map whose fields are all there is to it: what `duelist.core.to_bytes` writes."""

    def to_arrays(self) -> dict[str, Any]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """The map with these fields."""
        return cls(**arrays)


@stored("principal-components")
@dataclass(frozen=True, kw_only=True, eq=False)
class PrincipalComponents(_StoredMap):
    """Long embeddings to a few numbers: the directions in which past contexts differ most.

    A map (n,) to (n_components,), x -> (x - mean) @ directions. Fit it on contexts from before, which need no votes, and keep
    it: what a policy learns is in these coordinates, and another fit has others.

    Args:
        mean: (n,) of the contexts it was fitted on.
        directions: (n, n_components) orthogonal, of the lengths that the scaling asks for.

    Example:
        >>> past = np.random.default_rng(0).standard_normal((200, 30)) * np.r_[5.0, 4.0, np.full(28, 0.1)]
        >>> shorten = PrincipalComponents.fit(contexts=past, n_components=2)
        >>> shorten(past).std(axis=0).round(2).tolist()
        [0.77, 0.63]
        >>> one_block_per_arm(append_one(shorten(past[0])), n_arms=4).shape
        (4, 12)
    """

    mean: FloatArray
    directions: FloatArray

    def __post_init__(self) -> None:
        mean = finite_array("mean", self.mean, "(n,)", 1)
        directions = finite_array("directions", self.directions, "(n, n_components)", 2)
        if len(mean) != len(directions):
            raise InvalidInputError(
                f"mean and directions must have one entry per feature; got {len(mean)} and {len(directions)}."
            )

    @classmethod
    def fit(cls, *, contexts: npt.ArrayLike, n_components: int, scaling: str = "together") -> Self:
        """The components of past contexts (n_contexts, n).

        Args:
            contexts: one row per context; a few hundred are enough for a dozen components.
            n_components: how many to keep.
            scaling: "together" divides all by one number, so that a context has squared length 1 on average; "first" by the
                standard deviation of the first; "each" by its own, which makes noise in the last as loud as the first;
                "none" leaves them as they are.
        """
        rows = finite_array("contexts", contexts, "(n_contexts, n)", 2)
        one_of("scaling", scaling, SCALINGS)
        most = min(len(rows) - 1, rows.shape[1])
        if most < 1:
            raise InvalidInputError(f"contexts must be at least 2 rows of at least 1 number; got shape {rows.shape}.")
        whole_number("n_components", n_components, at_least=1, at_most=most)
        mean = rows.mean(axis=0)
        centred = rows - mean
        variances, axes = np.linalg.eigh(centred.T @ centred / len(rows))
        variances, axes = variances[::-1][:n_components], axes[:, ::-1][:, :n_components]
        varying = int((variances > 1e-12 * max(variances[0], np.finfo(float).tiny)).sum())
        if varying < n_components:
            raise InvalidInputError(
                f"n_components must be at most the {varying} direction(s) in which the contexts differ; got {n_components}. "
                f"Ask for fewer, or fit on more varied contexts."
            )
        # An eigenvector has no sign of its own: the largest entry is made positive.
        axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(n_components)])
        deviations = np.sqrt(variances)
        lengths = {"together": np.sqrt(variances.sum()), "first": deviations[0], "each": deviations, "none": np.float64(1.0)}
        return cls(mean=mean, directions=np.ascontiguousarray(axes / lengths[scaling]))

    def __call__(self, contexts: npt.ArrayLike) -> FloatArray:
        """The components of a context (n,), or of several (lanes, n)."""
        return _project("contexts", contexts, self.directions, centre=self.mean)


@stored("random-fourier")
@dataclass(frozen=True, kw_only=True, eq=False)
class RandomFourier(_StoredMap):
    """Random Fourier features: a linear policy on them has utilities that are smooth, nonlinear functions of the context.

        phi(x) = sqrt(2 / n_features) cos(x @ frequencies + phases),   E <phi(x), phi(y)> = exp(-|x - y|^2 / (2 bandwidth^2)).

    Args:
        frequencies: (n, n_features), normal with standard deviation 1 / bandwidth.
        phases: (n_features,), uniform on [0, 2 pi).

    Example:
        >>> past = np.random.default_rng(0).standard_normal((200, 3))
        >>> wave = RandomFourier.fit(contexts=past, n_features=2000, seed=0, bandwidth=2.0)
        >>> x, y = past[:2]
        >>> bool(abs(wave(x) @ wave(y) - np.exp(-np.sum((x - y) ** 2) / 8.0)) < 0.05)
        True

    Reference: Rahimi & Recht (2007), Random Features for Large-Scale Kernel Machines.
    """

    frequencies: FloatArray
    phases: FloatArray

    def __post_init__(self) -> None:
        frequencies = finite_array("frequencies", self.frequencies, "(n, n_features)", 2)
        phases = finite_array("phases", self.phases, "(n_features,)", 1)
        if frequencies.shape[1] != len(phases):
            raise InvalidInputError(
                f"frequencies and phases must have one column and one entry per feature; got {frequencies.shape[1]} and "
                f"{len(phases)}."
            )

    @classmethod
    def fit(cls, *, contexts: npt.ArrayLike, n_features: int, seed: int, bandwidth: float | None = None) -> Self:
        """Frequencies for contexts like these (n_contexts, n).

        Args:
            contexts: past contexts; they give the dimension and the bandwidth.
            n_features: length of phi. The error of the kernel falls with its root.
            seed: of the frequencies and phases.
            bandwidth: distance over which utilities change; None for the median distance between two contexts.
        """
        rows = finite_array("contexts", contexts, "(n_contexts, n)", 2)
        whole_number("n_features", n_features, at_least=1)
        whole_number("seed", seed)
        if 0 in rows.shape:
            raise InvalidInputError(f"contexts must not be empty; got shape {rows.shape}.")
        width = _median_distance(rows) if bandwidth is None else finite_number("bandwidth", bandwidth, above=0.0)
        rng = np.random.default_rng(seed)
        return cls(
            frequencies=rng.standard_normal((rows.shape[1], n_features)) / width,
            phases=rng.uniform(0.0, 2.0 * math.pi, n_features),
        )

    def __call__(self, contexts: npt.ArrayLike) -> FloatArray:
        """The features of a context (n,), or of several (lanes, n)."""
        angles = _project("contexts", contexts, self.frequencies) + self.phases
        return np.asarray(math.sqrt(2.0 / len(self.phases)) * np.cos(angles))


@stored("bilinear-map")
@dataclass(frozen=True, kw_only=True, eq=False)
class BilinearMap(_StoredMap):
    """All products of a shortened context and a shortened arm: phi = outer(context @ P, arm @ Q), dim = p q.

    The utility is context^T P Theta Q^T arm: how any direction of the contexts weighs any direction of the arms.

    Args:
        context_projection: (n, p), such as the `directions` of `PrincipalComponents`.
        arm_projection: (m, q).

    Example:
        >>> rng = np.random.default_rng(0)
        >>> prompts, models = rng.standard_normal((500, 64)), rng.standard_normal((12, 32))
        >>> join = BilinearMap.fit(contexts=prompts, arms=models, n_components=(6, 4))
        >>> join(prompts[0], models).shape
        (12, 24)
    """

    context_projection: FloatArray
    arm_projection: FloatArray

    def __post_init__(self) -> None:
        finite_array("context_projection", self.context_projection, "(n, p)", 2)
        finite_array("arm_projection", self.arm_projection, "(m, q)", 2)

    @classmethod
    def fit(cls, *, contexts: npt.ArrayLike, arms: npt.ArrayLike, n_components: tuple[int, int]) -> Self:
        """The principal components of past contexts (n_contexts, n) and of the arms (n_arms, m): so many of each."""
        of_contexts, of_arms = n_components
        return cls(
            context_projection=PrincipalComponents.fit(contexts=contexts, n_components=of_contexts).directions,
            arm_projection=PrincipalComponents.fit(contexts=arms, n_components=of_arms).directions,
        )

    def __call__(self, context: npt.ArrayLike, arms: npt.ArrayLike) -> FloatArray:
        """(n_arms, dim), or (lanes, n_arms, dim), as `outer`."""
        who = _project("context", context, self.context_projection)
        return outer(who, _project("arms", arms, self.arm_projection, ndims=(2, 3)))


@stored("product-map")
@dataclass(frozen=True, kw_only=True, eq=False)
class ProductMap(_StoredMap):
    """Element-wise products of a projected context and a projected arm: phi_k = (context @ P)_k (arm @ Q)_k, dim = rank.

    A low-rank `BilinearMap`: Theta is diagonal, so the dimension is the rank and not a product. With P and Q the identity it is
    the product of two embeddings of one space, as of a prompt and a model's description.

    Args:
        context_projection: (n, rank).
        arm_projection: (m, rank).

    Example:
        >>> join = ProductMap(context_projection=np.eye(2), arm_projection=np.eye(2))
        >>> join([2.0, 3.0], [[1.0, 1.0], [0.0, 4.0]])
        array([[ 2.,  3.],
               [ 0., 12.]])
    """

    context_projection: FloatArray
    arm_projection: FloatArray

    def __post_init__(self) -> None:
        of_context = finite_array("context_projection", self.context_projection, "(n, rank)", 2)
        of_arm = finite_array("arm_projection", self.arm_projection, "(m, rank)", 2)
        if of_context.shape[1] != of_arm.shape[1]:
            raise InvalidInputError(
                f"both projections must have the same number of columns, the rank; got {of_context.shape[1]} and "
                f"{of_arm.shape[1]}. For all products of different numbers of components use BilinearMap."
            )

    @classmethod
    def random(cls, *, context_dim: int, arm_dim: int, rank: int, seed: int) -> Self:
        """Normal projections, for which <phi(x, a), phi(y, b)> is <x, y> <a, b> on average: `outer`, in fewer dimensions."""
        for name, value in (("context_dim", context_dim), ("arm_dim", arm_dim), ("rank", rank)):
            whole_number(name, value, at_least=1)
        rng = np.random.default_rng(whole_number("seed", seed))
        return cls(
            context_projection=rng.standard_normal((context_dim, rank)) / math.sqrt(rank),
            arm_projection=rng.standard_normal((arm_dim, rank)),
        )

    def __call__(self, context: npt.ArrayLike, arms: npt.ArrayLike) -> FloatArray:
        """(n_arms, rank), or (lanes, n_arms, rank)."""
        who, what = _pair(
            _project("context", context, self.context_projection), _project("arms", arms, self.arm_projection, ndims=(2, 3))
        )
        return np.ascontiguousarray(who[..., None, :] * what)


def _project(
    name: str, rows: npt.ArrayLike, projection: FloatArray, *, centre: FloatArray | None = None, ndims: tuple[int, ...] = (1, 2)
) -> FloatArray:
    """The rows times the projection; they must be as long as it expects."""
    n = len(projection)
    array = finite_array(name, rows, f"(..., {n})", *ndims)
    if array.shape[-1] != n:
        raise InvalidInputError(
            f"{name} must have {n} entries per row, as those that the map was made for; got shape {array.shape}. "
            f"Use the same embedding as then, or fit the map again."
        )
    return np.asarray((array if centre is None else array - centre) @ projection)


def _median_distance(rows: FloatArray) -> float:
    """The median distance between two of the rows, of at most a thousand in equal steps."""
    some = rows[:: -(-len(rows) // _MOST_FOR_MEDIAN)]
    squares = (some**2).sum(axis=1)
    apart = np.maximum(squares[:, None] + squares - 2.0 * some @ some.T, 0.0)
    median = float(np.sqrt(np.median(apart[np.triu_indices(len(some), 1)]))) if len(some) > 1 else 0.0
    if not median > 0.0:
        raise InvalidInputError(
            f"the median distance between contexts must be above 0 to be the bandwidth; got {median:g} of {len(rows)} row(s). "
            f"Give contexts that differ, or bandwidth=."
        )
    return median


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
