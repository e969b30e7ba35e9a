"""Facts about a prior on the ball |theta| <= B that the bounds use: its Lipschitz constant, its density, and volumes.

A prior here is anything with a `precision` and a `radius`: density proportional to exp(-precision/2 |theta|^2) on the ball,
so precision 0 is the uniform law and 1/scale^2 a Gaussian cut off at the ball.
"""

from __future__ import annotations

import math
from typing import Protocol

from scipy import special

from duelist.core.checks import finite_number, whole_number
from duelist.core.errors import InvalidInputError

_UNDERFLOW = 1e-280


class BallPrior(Protocol):
    """A spherically symmetric prior; `duelist.UniformBall` and `duelist.GaussianBall` are such priors."""

    @property
    def precision(self) -> float:
        """Coefficient of |theta|^2 / 2 in the negative log density."""

    @property
    def radius(self) -> float:
        """Radius of the ball that carries it; infinity for none."""


def log_ball_volume(dim: int, radius: float) -> float:
    """Logarithm of the volume of a ball, pi^(d/2) R^d / Gamma(d/2 + 1).

    Example:
        >>> round(math.exp(log_ball_volume(dim=3, radius=1.0)), 6)
        4.18879
    """
    return 0.5 * dim * math.log(math.pi) + dim * math.log(radius) - float(special.gammaln(0.5 * dim + 1.0))


def prior_lipschitz(prior: BallPrior) -> float:
    """The L of the paper's second assumption: log p_0 is L-Lipschitz on the ball, L = precision * B.

    0 for a uniform prior, B / scale^2 for a Gaussian restricted to the ball, infinite for a Gaussian on all of R^d.

    Example:
        >>> from types import SimpleNamespace
        >>> prior_lipschitz(SimpleNamespace(precision=4.0, radius=2.0))
        8.0
    """
    return prior.precision * prior.radius if prior.precision > 0.0 else 0.0


def prior_log_density(prior: BallPrior, dim: int, theta_norm: float) -> float:
    """Logarithm of p_0(theta), the *normalised* density, at a theta of that norm; minus infinity outside the ball.

    The normaliser of a truncated Gaussian is (2 pi scale^2)^(d/2) P(chi^2_d <= B^2 / scale^2).

    Example:
        >>> from types import SimpleNamespace
        >>> uniform = SimpleNamespace(precision=0.0, radius=2.0)
        >>> prior_log_density(uniform, dim=1, theta_norm=0.5) == math.log(1 / 4)
        True
    """
    whole_number("dim", dim, at_least=1)
    finite_number("theta_norm", theta_norm, at_least=0.0)
    if theta_norm > prior.radius:
        return -math.inf
    if prior.precision == 0.0:
        if not math.isfinite(prior.radius):
            raise InvalidInputError("a flat prior on all of R^d has no density. Give it a radius.")
        return -log_ball_volume(dim, prior.radius)
    log_normaliser = 0.5 * dim * math.log(2.0 * math.pi / prior.precision)
    if math.isfinite(prior.radius):
        log_normaliser += _log_lower_gamma(0.5 * dim, 0.5 * prior.precision * prior.radius**2)
    return -0.5 * prior.precision * theta_norm**2 - log_normaliser


def log_neighbourhood_volume(dim: int, delta: float, theta_norm: float, radius: float) -> float:
    """Logarithm of the volume of { theta : |theta - theta*| <= delta, |theta| <= B }, exactly, for |theta*| = theta_norm.

    Where the two balls cross, each contributes the cap that their common plane cuts off.

    Example:
        >>> round(math.exp(log_neighbourhood_volume(dim=1, delta=0.5, theta_norm=1.0, radius=1.0)), 12)
        0.5
    """
    if theta_norm + delta <= radius:
        return log_ball_volume(dim, delta)
    if theta_norm + radius <= delta:
        return log_ball_volume(dim, radius)
    if theta_norm >= delta + radius:
        return -math.inf
    # Signed distances from either centre to the plane through the intersection of the spheres, in forms without cancellation.
    from_theta = ((theta_norm - radius) * (theta_norm + radius) + delta**2) / (2.0 * theta_norm)
    beyond = (delta**2 - (radius - theta_norm) ** 2) / (2.0 * theta_norm)  # B minus the distance from the origin
    near = log_ball_volume(dim, delta) + _log_cap(dim, from_theta, delta, delta - abs(from_theta))
    far = log_ball_volume(dim, radius) + _log_cap(dim, radius - beyond, radius, min(beyond, 2.0 * radius - beyond))
    return max(near, far) + math.log1p(math.exp(min(near, far) - max(near, far)))


def log_inverse_mass(prior: BallPrior, dim: int, theta_norm: float, delta: float) -> float:
    """The number log 1 / [ p_0(theta*) mu({ theta : |theta - theta*| <= delta }) ], mu the Lebesgue measure on the ball.

    The nonlinear theorem uses it at delta = 2 / (L_0 T), where the parameter set is a ball.
    """
    return -prior_log_density(prior, dim, theta_norm) - log_neighbourhood_volume(dim, delta, theta_norm, prior.radius)


def _log_cap(dim: int, distance: float, radius: float, height: float) -> float:
    """Log of the share of a ball beyond a plane at a signed distance; `height` is radius - |distance|, without cancellation."""
    # 1 - (distance / radius)^2 in terms of the height keeps small caps accurate.
    x = min(1.0, height * (2.0 * radius - height) / radius**2)
    smaller = math.log(0.5) + _log_incomplete_beta(0.5 * (dim + 1), x)
    return smaller if distance >= 0.0 else math.log1p(-math.exp(smaller))


def _log_incomplete_beta(a: float, x: float) -> float:
    """Logarithm of I_x(a, 1/2), also where the value underflows."""
    value = float(special.betainc(a, 0.5, x))
    if value > _UNDERFLOW:
        return math.log(value)
    if x == 0.0:
        return -math.inf
    series = float(special.hyp2f1(a + 0.5, 1.0, a + 1.0, x))
    return a * math.log(x) + 0.5 * math.log1p(-x) - math.log(a) - float(special.betaln(a, 0.5)) + math.log(series)


def _log_lower_gamma(a: float, x: float) -> float:
    """Logarithm of P(a, x), the regularised lower incomplete gamma function, also where the value underflows."""
    value = float(special.gammainc(a, x))
    if value > _UNDERFLOW:
        return math.log(value)
    return a * math.log(x) - x - float(special.gammaln(a + 1.0)) + math.log(float(special.hyp1f1(1.0, a + 1.0, x)))
