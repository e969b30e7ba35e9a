"""Votes of people who differ: against other tools, against plain loops, and on crowds whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from duelist import sample_posterior
from duelist.core.errors import InvalidInputError
from duelist.datasets import Comparisons, fit_votes
from duelist.posteriors import MultivariateNormal
from duelist.typing import FloatArray
from tests.datasets.test_real_data import FOUND


def make(**fields: Any) -> Comparisons:
    return Comparisons(**fields)


def crowd(
    seed: int, n: int, *, slopes: FloatArray, n_items: int = 6, position: float = 0.0, spread: float = 1.0
) -> Comparisons:
    """Votes drawn from the model, with a group and a covariate of the answers."""
    rng = np.random.default_rng(seed)
    utilities = spread * rng.standard_normal(n_items)
    first = rng.integers(n_items, size=n)
    second = (first + rng.integers(1, n_items, size=n)) % n_items
    voters, groups, length = rng.integers(len(slopes), size=n), rng.integers(2, size=n), 50.0 * rng.standard_normal(n)
    bonus = np.where((groups == 1) & (first == 0), 1.0, 0.0) - np.where((groups == 1) & (second == 0), 1.0, 0.0)
    logits = slopes[voters] * (utilities[first] - utilities[second] + bonus + 0.006 * length) + position
    return Comparisons(
        name="crowd",
        items=tuple(f"item {i}" for i in range(n_items)),
        shown=np.stack([first, second], axis=1),
        chosen=np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-logits)), 0, 1),
        context={"topic": np.array(["code", "prose"], dtype=object)[groups], "length": length},
        voters=np.array([f"voter {v:03d}" for v in voters]),
        features=utilities[:, None],
        feature_names=("quality",),
        order_known=True,
    )


def test_a_hundred_thousand_votes_with_style_agree_with_a_fit_by_scikit_learn() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    votes = crowd(0, 100_000, slopes=np.ones(50), n_items=100, position=0.2)
    fit = fit_votes(votes, style=["length"])
    rows = np.zeros((len(votes), 101))
    rows[np.arange(len(votes)), votes.shown[:, 0]] = 1.0
    rows[np.arange(len(votes)), votes.shown[:, 1]] = -1.0
    rows[:, 100] = votes.context["length"] / np.sqrt((votes.context["length"] ** 2).mean())
    other = linear.LogisticRegression(C=1e6, tol=1e-8, max_iter=1000).fit(rows, votes.outcomes)
    utilities = other.coef_[0, :100] - other.coef_[0, :100].mean()
    np.testing.assert_allclose(fit.utilities.mean, utilities, atol=0.02)
    np.testing.assert_allclose(fit.position.mean, other.intercept_, atol=0.02)
    np.testing.assert_allclose(fit.style.mean, other.coef_[0, 100:], atol=0.02)


def test_intervals_are_those_of_an_exact_sampler() -> None:
    """Position and style are columns of a linear model, which `sample_posterior` samples without an approximation."""
    votes = crowd(1, 800, slopes=np.ones(5), position=0.5)
    fit = fit_votes(votes, style=["length"], groups="topic")
    own = fit.encoding
    groups = np.array([own.groups.index(cell) for cell in votes.context["topic"]])
    rows = own.rows(votes.shown, groups, (votes.context["length"] / own.style_scale)[:, None]).toarray()
    prior = MultivariateNormal(np.zeros(len(own.names)), np.where(own.pooled, fit.group_spread, 2.0))
    exact = sample_posterior(rows, votes.outcomes, prior=prior, names=own.names, seed=0)
    deviation = np.sqrt(np.diag(fit.fit.covariance))
    np.testing.assert_allclose(exact.mean, fit.fit.coefficients, atol=0.15 * deviation.max())
    np.testing.assert_allclose(exact.flat.std(axis=0), deviation, rtol=0.1)


def test_slopes_and_coefficients_are_the_mode_that_a_general_optimiser_finds() -> None:
    votes = crowd(2, 900, slopes=np.array([1.0, 1.5, 0.0, -1.0, 0.7]), position=0.3)
    fit = fit_votes(votes, style=["length"], reliability=True)
    assert votes.voters is not None
    voters = [fit.encoding.voters.index(voter) for voter in votes.voters]
    length = votes.context["length"] / np.sqrt((votes.context["length"] ** 2).mean())

    def potential(at: FloatArray) -> float:
        utilities, style, position, slopes = at[:6], at[6], at[7], at[8:]
        total = (at[:8] ** 2).sum() / 8.0 + ((slopes - 1.0) ** 2).sum() / (2.0 * fit.voter_spread**2)
        for (a, b), y, v, x in zip(votes.shown, votes.outcomes, voters, length, strict=True):
            total += np.log1p(np.exp(-y * (slopes[v] * (utilities[a] - utilities[b] + style * x) + position)))
        return float(total)

    ours = np.concatenate([fit.fit.coefficients, fit.fit.slopes])
    # From near the mode: a general optimiser needs a hundred times the evaluations from far away.
    found = minimize(potential, ours + 0.05, method="BFGS", options={"maxiter": 60, "gtol": 1e-3})
    np.testing.assert_allclose(ours, found.x, atol=2e-3)


def test_random_and_flipped_voters_are_found_and_the_spread_is_learnt() -> None:
    slopes = np.concatenate([np.ones(30), np.zeros(8), -np.ones(2)])
    votes = crowd(3, 12_000, slopes=slopes, spread=1.5)
    fit = fit_votes(votes, reliability=True)
    found = fit.reliability
    assert found.names == tuple(f"voter {v:03d}" for v in range(40))
    scale = found.mean[:30].mean()  # the scale is that of the average voter, of whom some are random
    np.testing.assert_allclose(found.mean[:30] / scale, 1.0, atol=0.35)
    assert np.abs(found.mean[30:38] / scale).max() < 0.25
    assert (found.high[38:] < 0.0).all()
    same = fit_votes(crowd(4, 12_000, slopes=np.ones(40)), reliability=True)
    assert same.voter_spread < 0.15 < fit.voter_spread


def test_votes_of_others_are_predicted_better_when_voters_are_known() -> None:
    votes = crowd(5, 6000, slopes=np.concatenate([np.full(15, 1.5), np.zeros(15)]), spread=1.5)
    fitted, held_out = votes.split(seed=0)
    plain, people = fit_votes(fitted), fit_votes(fitted, reliability=True)
    gain = plain.losses(held_out) - people.losses(held_out)
    assert gain.mean() > 4.0 * gain.std() / np.sqrt(len(gain))
    assert people.log_loss(held_out) == pytest.approx(people.losses(held_out).mean())
    stranger = make(name="x", items=votes.items, shown=[[0, 1]], chosen=[0], voters=["nobody knows"])
    assert 0.0 < people.win_probability(stranger)[0] < 1.0


def test_groups_borrow_strength_and_differ_where_the_votes_say_so() -> None:
    votes = crowd(6, 8000, slopes=np.ones(5))
    fit = fit_votes(votes, groups="topic")
    difference = fit.group_utilities("prose").mean - fit.group_utilities("code").mean
    assert difference[0] == pytest.approx(5.0 / 6.0, abs=0.2)  # one item gains 1, and the mean of six 1/6
    np.testing.assert_allclose(difference[1:], -1.0 / 6.0, atol=0.2)
    assert 0.1 < fit.group_spread < 0.6
    few = votes.select(np.flatnonzero((votes.context["topic"] == "code") | (np.arange(len(votes)) % 200 == 0)))
    pooled = fit_votes(few, groups="topic").group_utilities("prose")
    alone = fit_votes(few.select(few.context["topic"] == "prose")).utilities
    assert pooled.deviation.mean() < alone.deviation.mean()
    with pytest.raises(InvalidInputError, match="group must be one of 'code', 'prose'"):
        fit.group_utilities("prse")


def test_weights_are_repetitions_and_ties_are_half_a_win_each_way() -> None:
    shown, chosen = [[0, 1], [0, 1], [1, 0]], [0, -1, 1]
    fields: dict[str, Any] = {"name": "x", "items": ("a", "b"), "order_known": True}
    halves = fit_votes(make(shown=[[0, 1]] * 8 + [[1, 0]] * 2, chosen=[0] * 6 + [1] * 2 + [1] * 2, **fields))
    double = fit_votes(make(shown=shown, chosen=chosen, weights=[4.0, 4.0, 2.0], **fields))
    np.testing.assert_allclose(double.fit.coefficients, halves.fit.coefficients, atol=1e-6)


def test_weights_of_features_and_draws_of_ranks() -> None:
    votes = crowd(7, 4000, slopes=np.ones(3))
    fit = fit_votes(votes.select(votes.context["topic"] == "code"), items="features")
    assert fit.encoding.names == ("quality", "position")
    assert votes.features is not None
    np.testing.assert_allclose(fit.utilities.mean, votes.features[:, 0] - votes.features.mean(), atol=0.25)
    draws = fit_votes(votes).draws(4000, seed=1)
    np.testing.assert_allclose(draws.std(axis=0), fit_votes(votes).utilities.deviation, rtol=0.1)
    assert fit.as_prior().factor.shape == (2, 2)
    assert "position" in str(fit)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"position": True}, "order on the screen is not known"),
    ({"reliability": True}, "who voted"),
    ({"items": "features"}, "has no features"),
    ({"style": ["topic"]}, "'topic' is text"),
    ({"style": ["lenght"]}, "'length'"),
    ({"groups": "topics"}, "'topic'"),
    ({"level": 1.0}, "level must be below 1"),
    ({"scale": 0.0}, "scale must be"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_what_the_votes_cannot_say_is_refused(options: dict[str, Any], message: str) -> None:
    context = {"topic": np.array(["code", "prose"], dtype=object), "length": np.zeros(2)}
    votes = make(name="x", items=("a", "b"), shown=[[0, 1], [1, 0]], chosen=[0, 1], context=context)
    with pytest.raises(InvalidInputError, match=message):
        fit_votes(votes, **options)
    menus = make(name="menus", items=("a", "b", "c"), shown=[[0, 1, 2]], chosen=[0])
    with pytest.raises(InvalidInputError, match="votes must be on pairs"):
        fit_votes(menus)
    other = make(name="y", items=("a", "z"), shown=[[0, 1]], chosen=[0])
    with pytest.raises(InvalidInputError, match="'z', which was not"):
        fit_votes(votes).win_probability(other)


if "football" in FOUND:

    def test_playing_at_home_helps_as_much_as_another_tool_says() -> None:
        """A draw is half a win each way: for scikit-learn, two rows of half the weight."""
        linear = pytest.importorskip("sklearn.linear_model")
        votes = FOUND["football"]
        rows = np.zeros((len(votes), len(votes.items)))
        rows[np.arange(len(votes)), votes.shown[:, 0]] = 1.0
        rows[np.arange(len(votes)), votes.shown[:, 1]] = -1.0
        won = 0.5 * (1.0 + votes.outcomes)
        other = linear.LogisticRegression(C=1e6, tol=1e-8, max_iter=2000).fit(
            np.concatenate([rows, rows]),
            np.repeat([1, 0], len(votes)),
            sample_weight=np.concatenate([won, 1.0 - won]),
        )
        home = fit_votes(votes).position
        assert home.low[0] > 0.0
        assert home.mean[0] == pytest.approx(float(other.intercept_[0]), abs=0.05)


if "sound-quality" in FOUND:

    def test_listeners_differ_and_knowing_them_predicts_what_was_held_out() -> None:
        fitted, held_out = FOUND["sound-quality"].split(seed=0)
        plain, people = fit_votes(fitted), fit_votes(fitted, reliability=True)
        gain = plain.losses(held_out) - people.losses(held_out)
        assert gain.mean() / (gain.std() / np.sqrt(len(gain))) > 5.0
        assert len(people.reliability.names) == 40
