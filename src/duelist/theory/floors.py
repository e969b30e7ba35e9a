"""Floors: what no policy can beat on the paper's problem, on average over truths.

With arms at all corners of {-1, 1}^d the regret of a duel splits by coordinates,

    r* - (r_1 + r_2) / 2 = sum_i |theta_i| (1 - sgn(theta_i) (x1_i + x2_i) / 2),

and theta uniform on the sphere leaves every sign a fair coin given all else. Let a genie tell a policy everything but the
sign of coordinate i, and charge it share i alone. Both can only help, so the Bayes regret of any policy is at least

    sum_i E W_T(|theta_i|),

where W_T(a) is the least cost of finding out one sign: a duel of arms that differ in the coordinate costs a and has log
odds c + 2a or c - 2a, with whatever known c the other coordinates give; arms that agree cost 0, or 2a where both are wrong.

With other arms, reflections take the place of signs: `duelist.theory.reflections`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.special import expit, gammaln, logsumexp

from duelist.core.checks import finite_number, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.theory.conditions import Bound
from duelist.theory.reflections import reflection_values
from duelist.theory.two_hypotheses import Experiment, least_costs
from duelist.typing import FloatArray

FloorKind = Literal["bound", "sampled bound", "estimate"]
_PROBLEM = ("theta uniform on the unit sphere", "logistic votes", "average regret of both arms")
_SHIFTS = 4  # of the grid of magnitudes: as many independent means, for a standard error
_NOTHING: Experiment = ((1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))


@dataclass(frozen=True)
class Floor(Bound):
    """What no policy can beat on average over truths, and what that rests on.

    Attributes:
        kind: "bound": proved, and the number errs downwards only. "sampled bound": proved, and the number is a mean over
            random draws, each of which errs downwards only. "estimate": a step is not proved.
        standard_error: of the value, from the draws; 0 without any.
        curve: (rounds,) the floors of 1, 2, ... rounds; the last is `value`. The first t rounds of a policy are a policy for t
            rounds, so its mean regret lies above the whole curve.
        assumptions: the problem in words.
    """

    kind: FloorKind = "bound"
    standard_error: float = 0.0
    curve: FloatArray = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        error = f" +- {self.standard_error:.2g}" if self.standard_error else ""
        return "\n".join([f"{self.name}: {self.value:.4g}{error}, {self.kind}", *(f"  {words}" for words in self.assumptions)])


def regret_floor(*, dim: int, arms: int, rounds: int, instances: int = 32, seed: int = 0) -> Floor:
    """A lower bound on the Bayes regret of every policy: theta uniform on the unit sphere, arms at corners of {-1, 1}^dim.

    With all 2^dim corners it is a sum over coordinates, with fewer a sum over reflections, which loses more. At 2500 rounds an
    instance takes some 0.2 seconds with all corners, and a second or two otherwise.

    Args:
        dim: d.
        arms: K distinct corners, the same in every round; drawn at random where they are not all.
        rounds: T.
        instances: over how many magnitudes, or draws of theta and arms, the mean is taken.
        seed: of these draws.

    Example:
        >>> floor = regret_floor(dim=1, arms=2, rounds=100)  # one sign and no magnitude to draw: the best policy's own regret
        >>> floor.kind, round(floor.value, 3)
        ('bound', 4.395)
    """
    whole_number("dim", dim, at_least=1)
    whole_number("arms", arms, at_least=2)
    whole_number("rounds", rounds, at_least=1)
    whole_number("instances", instances, at_least=2 * _SHIFTS)
    if dim < 63 and arms > 2**dim:
        raise InvalidInputError(
            f"arms must be at most 2^dim = {2**dim}, the distinct corners in dimension {dim}; got {arms}. "
            f"Raise dim or lower arms."
        )
    return _floor(dim, arms, rounds, instances, seed)


@lru_cache(maxsize=32)
def _floor(dim: int, arms: int, rounds: int, instances: int, seed: int) -> Floor:
    if dim < 63 and arms == 2**dim:
        name, where = "floor by coordinates", f"arms at all {arms} corners of {{-1, 1}}^{dim}"
        curves = _over_magnitudes(dim, rounds, instances, seed)
    else:
        name, where = "floor by reflections", f"{arms} random corners of {{-1, 1}}^{dim}, the same in every round"
        curves = np.stack([reflection_values(*_draw(dim, arms, seed, trial), rounds) for trial in range(instances)])
    error = float(curves[:, -1].std(ddof=1) / math.sqrt(len(curves))) if len(curves) > 1 else 0.0
    mean = curves.mean(axis=0)
    mean.flags.writeable = False  # callers share it
    return Floor(name, float(mean[-1]), (), "sampled bound" if error else "bound", error, mean, (where, *_PROBLEM))


def sign_values(magnitude: float, rounds: int, *, most_shift: float = 0.0) -> FloatArray:
    """(rounds,) W_1(a), W_2(a), ..., W_T(a): the least expected cost of finding out one sign; never too high.

    Args:
        magnitude: a, which is known.
        rounds: T.
        most_shift: duels have log odds c + 2a or c - 2a with any known |c| up to this. With 0 the values are exact.

    Example:
        >>> sign_values(0.5, 3).round(4).tolist()
        [0.5, 0.7689, 1.0379]
    """
    a = finite_number("magnitude", magnitude, above=0.0)
    whole_number("rounds", rounds, at_least=1)
    shift = finite_number("most_shift", most_shift, at_least=0.0)
    duels = _duels(a, shift)
    costs = np.array([(0.0, 2.0 * a), (2.0 * a, 0.0), *[(a, a)] * len(duels)]).T
    chances = np.array([_NOTHING, _NOTHING, *duels]).transpose(1, 0, 2)
    return least_costs(costs, chances, _lattice(a, rounds), rounds, symmetric=True)


def _lattice(a: float, rounds: int) -> FloatArray:
    """Log odds in steps that divide 2a, so that unshifted duels lead from point to point."""
    step = 2.0 * a / max(4, math.ceil(2.0 * a / 0.04))
    # A duel costs a, a guess 2a times its chance of error per round: below a chance of 1 / (2T) no duel is worth it, and
    # from there on the value is linear down to the end of the grid, so nothing is lost. A small magnitude hardly gets that
    # far.
    reach = min(math.log(2.0 * rounds), 4.0 * a * rounds, 8.0 * a * math.sqrt(rounds) + 2.0 * a**2 * rounds + 4.0 * a)
    points = math.ceil(reach / step) + 1
    return np.asarray(step * np.arange(-points, points + 1), dtype=np.float64)


def _duels(a: float, most_shift: float) -> list[Experiment]:
    """The unshifted duel, and for every interval of shifts an experiment that tells at least as much as each duel in it.

    A duel is a point (chance of a win under one truth, under the other); the points of all shifts form a concave curve. A duel
    tells no more than another experiment if its triangle over the diagonal lies within the other's polygon (Blackwell's
    order, for two truths). The polygon over both ends of an interval and the crossing of their tangents covers every
    triangle of the interval.
    """
    win = float(expit(2.0 * a))
    found: list[Experiment] = [((win, 1.0 - win, 0.0, 0.0), (1.0 - win, win, 0.0, 0.0))]
    for low, high in pairwise(_shift_ends(most_shift)):
        for left, right in ((low, high), (-high, -low)):
            corners = np.array([(0.0, 0.0), _point(a, left), _crossing(a, left, right), _point(a, right), (1.0, 1.0)])
            low_chances, high_chances = np.diff(corners, axis=0).T.tolist()
            found.append((tuple(high_chances), tuple(low_chances)))
    return found


def _shift_ends(most_shift: float) -> list[float]:
    """Ends of intervals, narrow around 0: shifts there are nearly as good as none, so width is felt most."""
    ends = [0.0]
    while ends[-1] < most_shift:
        ends.append(min(most_shift, ends[-1] + 0.02 + 0.2 * ends[-1] ** 2))
    return ends


def _point(a: float, shift: float) -> tuple[float, float]:
    return float(expit(shift - 2.0 * a)), float(expit(shift + 2.0 * a))


def _crossing(a: float, left: float, right: float) -> tuple[float, float]:
    """Where the tangents of the curve at two shifts cross."""
    (x1, y1), (x2, y2) = _point(a, left), _point(a, right)
    slope1, slope2 = y1 * (1.0 - y1) / (x1 * (1.0 - x1)), y2 * (1.0 - y2) / (x2 * (1.0 - x2))
    x = (y2 - y1 + slope1 * x1 - slope2 * x2) / (slope1 - slope2)
    return x, y1 + slope1 * (x - x1)


def _over_magnitudes(dim: int, rounds: int, instances: int, seed: int) -> FloatArray:
    """(_SHIFTS, rounds) d E W_t(|theta_1|), each row an unbiased estimate of at most that; one row where nothing is drawn.

    With |theta_1| = sin(phi) the mean is an integral over the logarithm of phi; each row is the rule of equal steps over it,
    shifted by a random part of a step. Below the smallest magnitude of the integral, b, W(a) is at least a W(b) / b: a duel
    tells less of a smaller sign at the same cost in units of a.
    """
    if dim == 1:
        return sign_values(1.0, rounds)[None]
    points, others = instances // _SHIFTS, 2.0 * math.sqrt(dim - 1)
    smallest = 0.25 / math.sqrt(rounds)
    span = math.log(0.5 * math.pi / smallest)
    density = 2.0 * math.exp(gammaln(0.5 * dim) - gammaln(0.5 * (dim - 1))) / math.sqrt(math.pi)
    below = density / (dim - 1) * (1.0 - math.cos(smallest) ** (dim - 1))  # the mean of |theta_1| where it is so small
    rest = dim * below / math.sin(smallest) * sign_values(math.sin(smallest), rounds, most_shift=others)
    totals = np.tile(rest, (_SHIFTS, 1))
    for row, shift in enumerate(Streams(seed, range(_SHIFTS)).uniforms("floor", 0)):
        for step in range(points):
            phi = 0.5 * math.pi * math.exp(-span * (step + shift) / points)
            weight = dim * density * math.cos(phi) ** (dim - 2) * phi * span / points
            # The others have norm cos(phi), so they shift log odds by at most 2 sqrt(d - 1) cos(phi).
            totals[row] += weight * sign_values(math.sin(phi), rounds, most_shift=others * math.cos(phi))
    return totals


def _draw(dim: int, arms: int, seed: int, trial: int) -> tuple[FloatArray, FloatArray]:
    """Distinct corners (arms, dim), and theta (dim,) uniform on the sphere."""
    generator = Streams(seed, [trial]).generator("floor", 0)
    theta = generator.standard_normal(dim)
    corners: dict[tuple[bool, ...], None] = {}
    while len(corners) < arms:
        corners[tuple((generator.random(dim) < 0.5).tolist())] = None
    return 2.0 * np.array(list(corners), dtype=np.float64) - 1.0, theta / np.linalg.norm(theta)


def hidden_magnitude_estimate(*, dim: int, rounds: int, points: int = 200) -> Floor:
    """About what the floor would be if the genie kept the magnitude to itself as well. An estimate, not a bound.

    Each coordinate has its law on the sphere, on a grid, and duels are unshifted; backward induction over duels and wins.
    Nothing is proved: on a sphere the other coordinates tell something about this magnitude, and a shifted duel may tell more.

    Args:
        dim: d, at least 2, with arms at all corners.
        rounds: T.
        points: of the grid of values.

    Example:
        >>> round(hidden_magnitude_estimate(dim=5, rounds=30).value, 2)
        17.37
    """
    whole_number("dim", dim, at_least=2)
    whole_number("rounds", rounds, at_least=1)
    whole_number("points", points, at_least=2)
    angles = np.pi * ((np.arange(points) + 0.5) / points - 0.5)
    theta, log_prior = np.sin(angles), (dim - 2) * np.log(np.cos(angles))
    log_win, log_loss = -np.logaddexp(0.0, -2.0 * theta), -np.logaddexp(0.0, 2.0 * theta)
    columns = np.stack([np.ones(points), expit(2.0 * theta), np.maximum(theta, 0.0), np.maximum(-theta, 0.0)], axis=1)
    value = np.zeros(rounds + 1)
    for played in range(rounds - 1, -1, -1):
        wins = np.arange(played + 1)[:, None]
        weights = log_prior + wins * log_win + (played - wins) * log_loss
        total, win, above, below = (np.exp(weights - logsumexp(weights, axis=1, keepdims=True)) @ columns).T
        duel = above + below + win * value[1 : played + 2] + (total - win) * value[: played + 1]
        value[: played + 1] = np.minimum(2.0 * (rounds - played) * np.minimum(above, below), duel)
    where = (
        f"arms at all corners of {{-1, 1}}^{dim}",
        *_PROBLEM,
        "magnitudes hidden, each learnt from its own coordinate's duels",
    )
    return Floor("floor with hidden magnitudes", dim * float(value[0]), (), "estimate", 0.0, np.zeros(0), where)
