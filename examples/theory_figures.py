"""Draw the two figures of docs/theory.md: the regret split into its parts, and regret between the bounds.

    python examples/theory_figures.py docs/figures

A minute or two on two cores; the same figures every time.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from duelist import FGTS, LinearDuels, MaxInP, Uniform, UniformBall
from duelist.experiments import decompose, play_hard_instances
from duelist.plotting import bounds_figure, decomposition_figure, save_figure
from duelist.policies import Policy

HORIZONS = (300, 600, 1200, 2400)


def draw(folder: Path, *, rounds: int = 2500, trials: int = 20, horizons: tuple[int, ...] = HORIZONS, draws: int = 64) -> None:
    """Write both figures to the folder, and print what they show."""
    folder.mkdir(parents=True, exist_ok=True)
    split = decompose(FGTS(), LinearDuels(dim=10, arms=32), rounds=rounds, trials=trials, seed=0)
    save_figure(decomposition_figure(split), folder / "theory-decomposition")
    for name, part in (("errors", split.from_errors), ("optimism", split.from_optimism), ("regret", split.regret)):
        print(f"{name:9} {part.sum(axis=1).mean():8.1f}")
    print(f"residual  {split.residual:8.1e}")
    policies: dict[str, Policy[Any]] = {
        "FGTS, theory settings": FGTS(eta="theory", mu="theory", prior=UniformBall(1.0)),
        "FGTS, defaults": FGTS(),
        "MaxInP": MaxInP(),
        "Uniform": Uniform(),
    }
    results = play_hard_instances(policies, dim=2, horizons=horizons, bound=1.0, draws=draws, seed=0)
    save_figure(bounds_figure(results, UniformBall(1.0)), folder / "theory-bounds")
    for r in results:
        lower, error = r.lower.require().value, r.standard_error
        print(f"{r.policy:22} T = {r.horizon:5}  regret {r.mean:6.2f} +- {error:.2f}  lower bound {lower:.2f}")


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures"))
