"""What the policies of Feel-Good Thompson sampling share: the temper of the likelihood and the weight of the Feel-Good term."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.stored_names import stored
from duelist.theory.linear_bounds import THEORY_ETA
from duelist.typing import FloatArray

DEFAULT_ALPHA = 0.1  # of every policy that has one


@stored("feel-good-settings")
class FeelGoodSettings(NamedTuple):
    """The settings of a run, one number per lane.

    Attributes:
        eta: (lanes,) temper of the likelihood.
        strength: (lanes,) mu = strength / sqrt(horizon).
        horizon: what mu is scaled by; 0 for the number of rounds learnt so far, 1 where mu was given itself.
        live: whether a person sees the pair.
    """

    eta: FloatArray
    strength: FloatArray
    horizon: int
    live: bool

    def mu(self, rounds: float) -> FloatArray:
        """(lanes,) weight of the Feel-Good term after that many rounds."""
        return self.strength / math.sqrt(self.horizon or max(rounds, 1))


def check_feel_good(eta: PerLane | Literal["theory"], alpha: PerLane, mu: PerLane | None, horizon: int | None) -> None:
    """Check the hyper-parameters that these policies have in common."""
    if isinstance(eta, str):
        one_of("eta", eta, ("theory",))
    else:
        check_per_lane("eta", eta, above=0.0)
    check_per_lane("alpha", alpha, at_least=0.0)
    if mu is not None:
        check_per_lane("mu", mu, at_least=0.0)
        if not np.array_equal(alpha, DEFAULT_ALPHA):
            raise InvalidInputError(
                f"mu is the Feel-Good weight itself, so alpha would be ignored; got alpha={alpha!r} and mu={mu!r}. Give one."
            )
    if horizon is not None:
        whole_number("horizon", horizon, at_least=1)


def feel_good_settings(
    problem: Problem, *, eta: PerLane | Literal["theory"], alpha: PerLane, mu: PerLane | None, horizon: int | None
) -> FeelGoodSettings:
    """One number per lane for this problem. The horizon is the policy's, else the problem's, else unknown."""
    lanes = problem.lanes
    return FeelGoodSettings(
        eta=per_lane("eta", THEORY_ETA if isinstance(eta, str) else eta, lanes),
        strength=per_lane("alpha", alpha, lanes) if mu is None else per_lane("mu", mu, lanes),
        horizon=(horizon or problem.horizon or 0) if mu is None else 1,
        live=problem.live,
    )
