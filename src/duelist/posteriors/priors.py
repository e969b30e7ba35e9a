"""Priors on theta. Each must make the posterior proper, also on separable data and under the Feel-Good tilt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from duelist.core.checks import finite_array, finite_number
from duelist.core.errors import ImproperPosteriorError, InvalidInputError
from duelist.typing import FloatArray


class Prior(Protocol):
    """A spherically symmetric prior: exp(-precision/2 |theta|^2) on the ball of the given radius."""

    @property
    def precision(self) -> float:
        """Coefficient of |theta|^2 / 2 in the negative log density; 0 for a flat one."""

    @property
    def radius(self) -> float:
        """Radius of the ball outside which the density is zero; infinity for no ball."""

    def sample(self, generator: np.random.Generator, dim: int) -> FloatArray:
        """One exact draw, (dim,)."""


@dataclass(frozen=True)
class Gaussian:
    """N(0, scale^2 I) on all of R^dim.

    Example:
        >>> Gaussian(scale=0.5).precision
        4.0
    """

    radius: ClassVar[float] = math.inf  # no ball

    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.scale == math.inf:
            raise ImproperPosteriorError(
                "a Gaussian prior needs a finite scale; got inf, which is a flat prior on all of R^dim. With separable "
                "data the posterior would be improper (its draws run away). Use UniformBall(radius) for a flat prior."
            )
        finite_number("scale", self.scale, above=0.0)

    @property
    def precision(self) -> float:
        """1 / scale^2."""
        return 1.0 / (self.scale * self.scale)

    def sample(self, generator: np.random.Generator, dim: int) -> FloatArray:
        """One exact draw, (dim,)."""
        return self.scale * generator.standard_normal(dim)


@dataclass(frozen=True)
class UniformBall:
    """Uniform on the ball |theta| <= radius: the paper's bounded parameter set with L = 0."""

    radius: float = 1.0

    def __post_init__(self) -> None:
        if self.radius == math.inf:
            raise ImproperPosteriorError(
                "UniformBall needs a finite radius; got inf, which is a flat prior on all of R^dim. With separable data "
                "the posterior would be improper. Give a bound on |theta|, or use Gaussian(scale)."
            )
        finite_number("radius", self.radius, above=0.0)

    @property
    def precision(self) -> float:
        """Flat inside the ball."""
        return 0.0

    def sample(self, generator: np.random.Generator, dim: int) -> FloatArray:
        """One exact draw, (dim,): a uniform direction at a radius whose d-th power is uniform."""
        direction = generator.standard_normal(dim)
        length = self.radius * generator.random() ** (1.0 / dim)
        return np.asarray(direction * (length / np.linalg.norm(direction)))


@dataclass(frozen=True)
class GaussianBall:
    """N(0, scale^2 I) restricted to the ball |theta| <= radius: log-Lipschitz with L = radius / scale^2."""

    scale: float = 1.0
    radius: float = 1.0

    def __post_init__(self) -> None:
        finite_number("scale", self.scale, above=0.0)
        finite_number("radius", self.radius, above=0.0)

    @property
    def precision(self) -> float:
        """1 / scale^2."""
        return 1.0 / (self.scale * self.scale)

    def sample(self, generator: np.random.Generator, dim: int) -> FloatArray:
        """One exact draw, (dim,), by rejection: of at worst about sqrt(dim) proposals one is accepted.

        Where the ball holds most of the Gaussian, proposals are Gaussian. In a smaller ball, with c = radius^2 / scale^2,
        the law of t = |theta| / radius is t^(dim-1) exp(-c t^2 / 2), which is at most exp(-c / 2) t^(dim-c-1) for c < dim - 1.
        """
        tightness = self.radius**2 * self.precision
        if tightness >= max(dim - 1, 1):
            while True:
                theta = Gaussian(self.scale).sample(generator, dim)
                if float(theta @ theta) <= self.radius**2:
                    return theta
        # In one dimension the envelope is the uniform law, since t^(-c) would be no better.
        power = dim - tightness if dim > 1 else 1.0
        while True:
            t = (1.0 - generator.random()) ** (1.0 / power)
            above_peak = t * t - 1.0 if dim > 1 else t * t
            if generator.random() < math.exp((dim - power) * math.log(t) - 0.5 * tightness * above_peak):
                direction = generator.standard_normal(dim)
                return np.asarray(direction * (t * self.radius / np.linalg.norm(direction)))


@dataclass(frozen=True, eq=False)
class MultivariateNormal:
    """N(mean, covariance) on all of R^dim, for `sample_posterior`: yesterday's posterior as today's prior.

    Args:
        mean: (dim,).
        covariance: (dim, dim) positive definite, or (dim,) the standard deviation of every coordinate.

    Example:
        >>> MultivariateNormal([0.5, -1.0], [2.0, 0.1]).factor.tolist()
        [[2.0, 0.0], [0.0, 0.1]]
    """

    mean: npt.ArrayLike
    covariance: npt.ArrayLike

    def __post_init__(self) -> None:
        mean = finite_array("mean", self.mean, "(dim,)", 1)
        dim, shape = len(mean), np.shape(self.covariance)
        if shape not in ((dim,), (dim, dim)):
            raise InvalidInputError(
                f"covariance must be ({dim}, {dim}), or ({dim},) standard deviations, for a mean of length {dim}; got {shape}."
            )
        spread = finite_array("covariance", self.covariance, "(dim, dim) or (dim,)", len(shape))
        if len(shape) == 1 and not (spread > 0.0).all():
            raise InvalidInputError(f"standard deviations must be above 0; got {spread.min():g}. Give one per coordinate.")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", spread if len(shape) == 2 else np.diag(spread * spread))
        if not np.allclose(self.covariance, np.transpose(self.covariance)):
            raise InvalidInputError("covariance must be symmetric. Use (covariance + covariance.T) / 2.")
        self.factor  # noqa: B018 - refuse what has no factor here, and not in the middle of a run

    @property
    def factor(self) -> FloatArray:
        """(dim, dim) lower Cholesky factor L of the covariance: theta = mean + L u with u standard normal."""
        try:
            return np.linalg.cholesky(np.asarray(self.covariance))
        except np.linalg.LinAlgError:
            raise InvalidInputError(
                "covariance must be positive definite: some direction has no variance. Add a small number to its diagonal."
            ) from None

    def sample(self, generator: np.random.Generator, dim: int) -> FloatArray:
        """One exact draw, (dim,)."""
        return np.asarray(np.asarray(self.mean) + self.factor @ generator.standard_normal(dim))

    @property
    def precision(self) -> float:
        """Refused: policies know priors that are the same in every direction."""
        raise InvalidInputError(
            "MultivariateNormal is a prior of sample_posterior. A policy takes Gaussian(scale), UniformBall(radius) or "
            "GaussianBall(scale, radius)."
        )


# Every prior by the name that files and the command line give it.
PRIORS: dict[str, type[Prior]] = {kind.__name__: kind for kind in (Gaussian, GaussianBall, UniformBall)}


def check_prior(prior: object) -> None:
    """Refuse what is not a prior, with the name of the field."""
    if isinstance(prior, type):
        raise InvalidInputError(f"prior must be a prior and not its class: write {prior.__name__}() with brackets.")
    for name in ("precision", "radius", "sample"):
        if not hasattr(prior, name):
            raise InvalidInputError(
                f"prior must be one of {', '.join(PRIORS)}, such as Gaussian(scale=2.0); got {prior!r}, which has no {name}."
            )
