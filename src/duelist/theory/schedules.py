"""The Feel-Good weight mu and the temper eta, as the paper's theorem and its experiments set them."""

from __future__ import annotations

import math

from duelist.core.checks import finite_number, whole_number

# The restated main theorem prints "mu = 0.25" where its proof substitutes eta = 0.25.
THEORY_ETA = 0.25


def theory_mu(bound: float, horizon: int) -> float:
    """The mu of the main theorem, 1 / (10 e^B sqrt(T)), for |theta| <= B and T rounds.

    Example:
        >>> round(theory_mu(bound=1.0, horizon=2500), 6)
        0.000736
    """
    finite_number("bound", bound, above=0.0)
    whole_number("horizon", horizon, at_least=1)
    return 1.0 / (10.0 * math.exp(bound) * math.sqrt(horizon))


def experiment_mu(alpha: float, horizon: int) -> float:
    """The mu of the experiments, alpha / sqrt(T).

    Example:
        >>> experiment_mu(alpha=0.1, horizon=2500)
        0.002
    """
    finite_number("alpha", alpha, at_least=0.0)
    whole_number("horizon", horizon, at_least=1)
    return alpha / math.sqrt(horizon)
