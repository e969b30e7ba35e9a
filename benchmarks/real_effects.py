"""What the side, and who votes, mean on votes that people gave; the side beside a fit by scikit-learn.

    R_LIBS=.venv/r-library python benchmarks/real_effects.py

`scripts/real_data.sh .venv` unpacks the two R packages with the votes. The side is a coefficient of its own in a Bradley-Terry
fit; a tie is half a win each way. Listeners: votes are cut into two halves at random, one is fitted with a slope per listener
and without, and the log losses on the other are compared. Slopes are those of a fit to all votes.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

import numpy as np

from duelist.datasets import Comparisons, fit_votes, load
from duelist.typing import FloatArray


def side_by_scikit_learn(votes: Comparisons) -> float:
    """The coefficient of the side, by maximum likelihood."""
    n, items = len(votes), len(votes.items)
    rows = np.zeros((n, items + 1))
    rows[np.arange(n), votes.shown[:, 0]] = 1.0
    rows[np.arange(n), votes.shown[:, 1]] = -1.0
    rows[:, items] = 1.0
    won = 0.5 * (1.0 + votes.outcomes)
    weights, outcomes = np.concatenate([won, 1.0 - won]), np.repeat([1, 0], n)
    counted = weights > 0
    linear: Any = import_module("sklearn.linear_model")
    model = linear.LogisticRegression(C=1e6, tol=1e-10, max_iter=5000, fit_intercept=False)
    model.fit(np.concatenate([rows, rows])[counted], outcomes[counted], sample_weight=weights[counted])
    return float(model.coef_[0][items])


def t_value(gain: FloatArray) -> float:
    return float(gain.mean() / (gain.std(ddof=1) / np.sqrt(len(gain))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0, help="of the halves")
    options = parser.parse_args()
    print("| votes | effect of the side | 95 % | scikit-learn |\n|---|---|---|---|")
    for name in ("football", "first-names"):
        votes = load(name)
        side = fit_votes(votes).position
        print(f"| {name} | {side.mean[0]:.3f} | {side.low[0]:.3f} to {side.high[0]:.3f} | {side_by_scikit_learn(votes):.3f} |")
    listeners = load("sound-quality")
    fitted, held_out = listeners.split(seed=options.seed)
    plain, people = fit_votes(fitted), fit_votes(fitted, reliability=True)
    losses = plain.log_loss(held_out), people.log_loss(held_out)
    print("\nsound-quality, held-out log loss: {:.4f}, and {:.4f} with a slope per listener".format(*losses))
    gain = plain.losses(held_out) - people.losses(held_out)
    voters = np.asarray(held_out.voters)
    each = np.array([gain[voters == voter].mean() for voter in np.unique(voters)])
    print(f"gain {gain.mean():.4f}: t = {t_value(gain):.1f} over votes, {t_value(each):.1f} over {len(each)} listeners")
    slopes = fit_votes(listeners, reliability=True).reliability
    for place in (int(np.argmin(slopes.mean)), int(np.argmax(slopes.mean))):
        print(f"slope of {slopes.names[place]}: {slopes.mean[place]:.2f} [{slopes.low[place]:.2f}, {slopes.high[place]:.2f}]")


if __name__ == "__main__":
    main()
