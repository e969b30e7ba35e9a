"""APO, active preference optimisation: ask about the pair that is least certain, and recommend the best arm of the fit.

    (x, y) = argmax over pairs of |x - y|_{H^-1},    H = lambda I + sum_i s'(<theta_hat, z_i>) z_i z_i^T

Reference: Das, Chakraborty, Pacchiano & Chowdhury (2024), Active Preference Optimization for Sample Efficient RLHF,
arXiv:2402.10500.
"""

from __future__ import annotations

from dataclasses import dataclass

from duelist.kernels.rules.pairs import Bounds, Candidates
from duelist.policies.parts.exploration import ExplorationPolicy
from duelist.typing import FloatArray


@dataclass(frozen=True, kw_only=True)
class APO(ExplorationPolicy):
    """Ask about the pair whose difference in utility is least certain.

    Args:
        ridge: lambda of the fit and of H; a sequence is one per lane.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(APO(), env, rounds=200, trials=2, seed=0, simple_regret=100)
        >>> bool(run.final_regret.mean() > 0)
        True
    """

    def score_pairs(
        self,
        candidates: Candidates,  # noqa: ARG002 - the widths say it all
        bounds: Bounds,  # noqa: ARG002
        geometry: tuple[FloatArray, FloatArray],
    ) -> FloatArray:
        """The widths."""
        return geometry[1].copy()
