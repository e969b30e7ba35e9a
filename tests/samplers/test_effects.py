"""Effects of side, style and voters in `sample_posterior`: against sums over a grid, and against columns of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.posteriors import Gaussian, MultivariateNormal, UniformBall
from duelist.samplers import FeelGood, VoteEffects, sample_posterior
from duelist.typing import FloatArray

# Three voters on one pair and its turn: the first is sure, the second votes at random, the third means the opposite.
CONTRASTS = np.array([[1.0], [1.0], [1.0], [-1.0], [0.5]])
WINS = np.array([[9.0, 1.0], [6.0, 5.0], [2.0, 7.0], [1.0, 6.0], [2.5, 3.5]])
VOTERS = ["sure", "random", "flipped", "sure", "random"]
SIDES = np.array([1.0, 1.0, -1.0, 1.0, -1.0])


def log_chance(logits: FloatArray, wins: float, losses: float) -> FloatArray:
    return np.asarray(-wins * np.logaddexp(0.0, -logits) - losses * np.logaddexp(0.0, logits))


def moments_on_a_grid(spread: float | None, *, mean: float, scale: float, eta: float = 1.0) -> dict[str, tuple[float, float]]:
    """Mean and sd of everything: theta, position and tau on a grid, and every slope summed over at each of its points."""
    theta, side = np.linspace(-4.5, 4.5, 61), np.linspace(-2.5, 2.5, 41)
    slope = np.linspace(-5.0, 7.0, 181)
    taus = np.array([spread]) if spread else np.linspace(0.01, 2.2, 74)
    names = sorted(set(VOTERS))
    weight = np.zeros((len(theta), len(side), len(taus)))
    moments = {}
    for name in names:
        inside = np.zeros((len(theta), len(side), len(slope)))
        for x, (wins, losses), voter, where in zip(CONTRASTS[:, 0], WINS, VOTERS, SIDES, strict=True):
            if voter == name:
                logits = slope[None, None] * theta[:, None, None] * x + where * side[None, :, None]
                inside += log_chance(logits, eta * wins, eta * losses)
        normal = np.exp(-0.5 * ((slope[:, None] - 1.0) / taus) ** 2)
        normal /= normal.sum(axis=0)  # so that it is one where tau is below the width of the grid, too
        own = np.einsum("abr,rt->abt", np.exp(inside), normal)
        moments[name] = [np.einsum("abr,r,rt->abt", np.exp(inside), slope**power, normal) / own for power in (1, 2)]
        weight += np.log(own)
    weight += -0.5 * ((theta - mean) / scale)[:, None, None] ** 2 - 0.5 * side[None, :, None] ** 2
    if spread is None:
        weight += -0.5 * (taus / 0.5) ** 2
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    values = {"0": theta[:, None, None], "position": side[None, :, None], "spread": taus[None, None]}
    found = {key: [(weight * value**power).sum() for power in (1, 2)] for key, value in values.items()}
    found |= {f"slope of {name}": [(weight * moments[name][power]).sum() for power in (0, 1)] for name in names}
    return {key: (first, np.sqrt(max(second - first**2, 0.0))) for key, (first, second) in found.items()}


@pytest.mark.parametrize(
    ("sampler", "spread", "eta"),
    [("mala", None, 1.0), ("polya_gamma", None, 1.0), ("mala", 0.7, 0.5)],
    ids=["spread learnt", "by Gibbs", "spread given, tempered"],
)
def test_draws_with_slopes_have_the_moments_of_the_posterior_on_a_grid(sampler: str, spread: float | None, eta: float) -> None:
    prior = MultivariateNormal([0.3], [[1.44]])
    effects = VoteEffects(position=SIDES, voters=VOTERS, spread=spread)
    posterior = sample_posterior(
        CONTRASTS, WINS, prior=prior, effects=effects, eta=eta, sampler=sampler, draws=2500, chains=2, seed=1
    )
    exact = moments_on_a_grid(spread, mean=0.3, scale=1.2, eta=eta)
    assert posterior.effects is not None
    assert posterior.exact
    for part in (posterior, posterior.effects):
        for name, mean, sd, size in zip(part.names, part.mean, part.sd, part.diagnostics.ess_bulk, strict=True):
            # Four standard errors and the grid: eighteen numbers are looked at.
            assert abs(mean - exact[name][0]) < 4.0 * exact[name][1] / np.sqrt(size) + 0.005, name
            assert abs(sd / exact[name][1] - 1.0) < 4.0 / np.sqrt(2.0 * size) + 0.05, name
    assert ("spread" in posterior.effects.names) == (spread is None)


def test_side_and_style_are_columns_of_the_table_under_priors_of_their_own() -> None:
    rng = np.random.default_rng(0)
    table, style, sides = rng.standard_normal((200, 2)), rng.standard_normal((200, 2)), rng.choice([-1.0, 1.0], size=200)
    outcomes = rng.choice([-1, 1], size=200)
    effects = VoteEffects(
        style=style, style_names=["tokens", "bold"], style_scale=[0.5, 2.0], position=sides, position_scale=0.3
    )
    asked: dict[str, Any] = {"draws": 200, "seed": 3}
    found = sample_posterior(table, outcomes, prior=Gaussian(1.5), effects=effects, names=["a", "b"], **asked)
    prior = MultivariateNormal(np.zeros(5), [1.5, 1.5, 0.5, 2.0, 0.3])
    plain = sample_posterior(np.column_stack([table, style, sides]), outcomes, prior=prior, **asked)
    assert found.effects is not None
    np.testing.assert_array_equal(found.draws, plain.draws[..., :2])
    np.testing.assert_array_equal(found.effects.draws, plain.draws[..., 2:])
    assert (found.names, found.effects.names) == (("a", "b"), ("tokens", "bold", "position"))
    assert len(found.effects.diagnostics.rhat) == 3
    assert "tokens" in str(found.effects)
    assert found.predict([1.0, 0.0], [0.0, 1.0]).shape == ()


@pytest.mark.slow
def test_random_and_flipped_voters_are_told_apart_beside_side_and_style() -> None:
    rng, n = np.random.default_rng(4), 2500
    quality, slopes = np.array([1.2, 0.3, -0.4, -1.1]), np.array([1.0] * 7 + [0.0, 0.0, -1.0])
    first = rng.integers(4, size=n)
    second = (first + rng.integers(1, 4, size=n)) % 4
    voters, longer, sides = rng.integers(10, size=n), rng.choice([-1.0, 1.0], size=n), rng.choice([-1.0, 1.0], size=n)
    logits = slopes[voters] * (quality[first] - quality[second] + 0.4 * longer) + 0.3 * sides
    outcomes = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-logits)), 1, -1)
    effects = VoteEffects(style=longer[:, None], position=sides, voters=[f"v{v}" for v in voters])
    posterior = sample_posterior(np.eye(4)[first] - np.eye(4)[second], outcomes, effects=effects, draws=400, seed=0)
    assert posterior.effects is not None
    low, high = posterior.effects.interval(0.99).T
    numbers = dict(zip(posterior.effects.names, zip(low, high, strict=True), strict=True))
    assert numbers["slope of v9"][1] < 0.0 < numbers["slope of v0"][0]
    assert numbers["slope of v7"][0] < 0.0 < numbers["slope of v7"][1]
    assert numbers["position"][0] < 0.3 < numbers["position"][1]
    assert numbers["style 0"][0] > 0.0
    assert posterior.mean.argmax() == 0


WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, "got none of them"),
    ({"position": [1.0, 2.0]}, {}, r"\+1 \(the first stood on the left\)"),
    ({"position": [1.0]}, {}, r"position must be \(2,\)"),
    ({"voters": ["ann"]}, {}, r"voters must be \(2,\)"),
    ({"voters": "ab"}, {}, "one name per contrast"),
    ({"style": [[1.0]]}, {}, r"style must be \(2, s\)"),
    ({"style": [[1.0], [2.0]], "style_names": ["a", "b"]}, {}, "1 different ones"),
    ({"style": [[1.0], [2.0]], "style_scale": 0.0}, {}, "above 0"),
    ({"position": [1.0, 1.0], "position_scale": 0.0}, {}, "position_scale must be"),
    ({"voters": ["a", "b"], "spread": -1.0}, {}, "spread must be"),
    ({"voters": ["a", "b"]}, {"prior": UniformBall(2.0)}, "normal prior"),
    ({"voters": ["a", "b"]}, {"prior": MultivariateNormal([0.0, 0.0], [1.0, 1.0])}, "length of a contrast"),
    ({"voters": ["a", "b"]}, {"feel_good": FeelGood(mu=0.1, action_sets=[[1.0]], adversaries=[[1.0], [1.0]])}, "Feel-Good"),
]


@pytest.mark.parametrize(("fields", "options", "message"), WRONG)
def test_effects_that_do_not_fit_the_table_are_refused(fields: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        sample_posterior([[1.0], [-1.0]], [1, -1], effects=VoteEffects(**fields), **options)
