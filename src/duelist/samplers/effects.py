"""What moves a vote beside the utilities: the side, the style of the answers, and who votes.

With x the contrast, y the covariates of style, b = +1 where the first stood on the left and -1 where the second did, the vote
of voter v goes to the first with probability

    s(r_v (<theta, x> + <gamma, y>) + beta b),   gamma_k ~ N(0, c_k^2),   beta ~ N(0, c^2),   r_v ~ N(1, tau^2).

So style and side are further coordinates of a linear model, and voters scale part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.core.checks import finite_array, finite_number
from duelist.core.errors import InvalidInputError
from duelist.posteriors.priors import Gaussian, MultivariateNormal, Prior
from duelist.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class VoteEffects:
    """What else moves the votes of a table, row by row of its contrasts.

    Args:
        style: (n, s) covariates of the first answer minus those of the second, such as lengths; a voter's slope multiplies
            what they add as it does utilities. None for none.
        style_names: (s,) of the covariates; "style 0" and so on without them.
        style_scale: prior standard deviation of what one unit of a covariate adds: one for all, or (s,).
        position: (n,) +1 where the first candidate stood on the left, or came first, -1 where the second did, 0 where that is
            not known. None for no such effect.
        position_scale: prior standard deviation of what that adds.
        voters: (n,) who voted, if voters have slopes of their own: 1 is the average voter, 0 a vote at random, below 0 one who
            means the opposite. None for slopes of 1.
        spread: tau, the standard deviation of slopes among voters; None to learn it.
        spread_scale: where it is learnt, of its half-normal prior.
    """

    style: npt.ArrayLike | None = None
    style_names: Sequence[str] = ()
    style_scale: npt.ArrayLike = 1.0
    position: npt.ArrayLike | None = None
    position_scale: float = 1.0
    voters: Sequence[str] | npt.NDArray[np.str_] | None = None
    spread: float | None = None
    spread_scale: float = 0.5

    def __post_init__(self) -> None:
        finite_number("position_scale", self.position_scale, above=0.0)
        finite_number("spread_scale", self.spread_scale, above=0.0)
        if self.spread is not None:
            finite_number("spread", self.spread, above=0.0)
        if self.style is None and self.position is None and self.voters is None:
            raise InvalidInputError("effects must have style, position or voters; got none of them. Leave effects out.")


class EffectColumns(NamedTuple):
    """A table with effects as the design of one model.

    Attributes:
        rows: (n, p) factors of theta, style and position, in this order.
        judged: (p,) which of them a voter's slope multiplies.
        names: (p - dim,) of what is not theta.
        prior: of all p coefficients.
        who: (n,) numbers of the voters; None where every slope is 1.
        voters: their names.
    """

    rows: FloatArray
    judged: BoolArray
    names: tuple[str, ...]
    prior: MultivariateNormal
    who: IntArray | None
    voters: tuple[str, ...]


def lay_out_effects(effects: VoteEffects, table: FloatArray, prior: Prior | MultivariateNormal) -> EffectColumns:
    """The design of contrasts (n, dim) with these effects, and the prior of all coefficients."""
    n, dim = table.shape
    style, names, scales = _check_style(effects, n)
    side = np.zeros((n, 0)) if effects.position is None else _check_position(effects.position, n)[:, None]
    rows = np.concatenate([table, style, side], axis=1)
    judged = np.arange(rows.shape[1]) < dim + style.shape[1]
    mean, covariance = np.zeros(rows.shape[1]), np.zeros((rows.shape[1], rows.shape[1]))
    mean[:dim], covariance[:dim, :dim] = _moments(prior, dim)
    others = [*scales, *([effects.position_scale] * side.shape[1])]
    covariance[dim:, dim:] = np.diag(np.square(others))
    who, voters = _number_voters(effects.voters, n)
    position = ("position",) if side.shape[1] else ()
    return EffectColumns(rows, judged, (*names, *position), MultivariateNormal(mean, covariance), who, voters)


def _moments(prior: Prior | MultivariateNormal, dim: int) -> tuple[FloatArray, FloatArray]:
    if isinstance(prior, Gaussian):
        return np.zeros(dim), prior.scale**2 * np.eye(dim)
    if not isinstance(prior, MultivariateNormal):
        raise InvalidInputError(
            f"effects are further coordinates under a normal prior, so theta must have one too: Gaussian(scale) or "
            f"MultivariateNormal(mean, covariance); got {prior!r}."
        )
    if len(np.asarray(prior.mean)) != dim:
        raise InvalidInputError(
            f"the prior's mean must have the length of a contrast, {dim}; got {len(np.asarray(prior.mean))}."
        )
    return np.asarray(prior.mean), np.asarray(prior.covariance)


def _check_style(effects: VoteEffects, n: int) -> tuple[FloatArray, tuple[str, ...], FloatArray]:
    if effects.style is None:
        return np.zeros((n, 0)), (), np.zeros(0)
    style = finite_array("style", effects.style, "(n, s)", 2)
    if len(style) != n:
        raise InvalidInputError(f"style must be ({n}, s), one row per contrast; got {style.shape}.")
    columns = style.shape[1]
    names = tuple(effects.style_names) or tuple(f"style {k}" for k in range(columns))
    if len(names) != columns or len(set(names)) != columns:
        raise InvalidInputError(f"style_names must be {columns} different ones, one per column; got {', '.join(names)}.")
    scales = np.broadcast_to(np.asarray(effects.style_scale, dtype=np.float64), (columns,))
    if not (np.isfinite(scales).all() and (scales > 0.0).all()):
        raise InvalidInputError(f"style_scale must be above 0, one number or one per column; got {effects.style_scale!r}.")
    return style, names, scales


def _check_position(position: npt.ArrayLike, n: int) -> FloatArray:
    sides = finite_array("position", position, "(n,)", 1)
    if sides.shape != (n,) or not np.isin(sides, (1.0, -1.0, 0.0)).all():
        raise InvalidInputError(
            f"position must be ({n},) of +1 (the first stood on the left), -1 (the second did) and 0 (not known); got shape "
            f"{sides.shape} with values {np.unique(sides)[:4].tolist()}."
        )
    return sides


def _number_voters(voters: Sequence[str] | npt.NDArray[np.str_] | None, n: int) -> tuple[IntArray | None, tuple[str, ...]]:
    if voters is None:
        return None, ()
    if isinstance(voters, str) or len(voters) != n:
        raise InvalidInputError(f"voters must be ({n},), who gave each vote; got {len(voters)}. Give one name per contrast.")
    names, who = np.unique(np.array([str(voter) for voter in voters], dtype=object).astype(str), return_inverse=True)
    return who.reshape(-1).astype(np.int64), tuple(names.tolist())
