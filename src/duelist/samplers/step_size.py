"""The step of MALA: where it starts, and how it adapts.

The step scale 1.65 d^(-1/6) and the target 0.574 are those of Roberts & Rosenthal (1998), for a target close to a Gaussian.
"""

from __future__ import annotations

from duelist.core.checks import FloatArray

_TARGET_ACCEPTANCE = 0.574
_ADAPTATION_DECAY = 0.6  # Robbins-Monro gain (1 + calls)^-0.6: adapts for ever, ever less


def first_step(dim: int) -> float:
    """H in whitened coordinates."""
    return float(1.65 * dim ** (-1 / 6))


def adapted(log_step: FloatArray, acceptance: FloatArray, calls: int) -> FloatArray:
    """Logarithm of h after a call with that mean acceptance, `calls` calls having gone before."""
    gain = float((1.0 + calls) ** -_ADAPTATION_DECAY)
    return log_step + gain * (acceptance - _TARGET_ACCEPTANCE)
