"""FGTS plays the paper's round, sets its weights as stated, and does what it says when both draws agree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import DuelistError, ImproperPosteriorError, InvalidInputError, UnknownNameError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.experiments.run import Run
from duelist.history.duels import Duels, duels_between
from duelist.policies.algorithms.sampling.fgts import FGTS, FGTSState
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Gaussian, GaussianBall, Prior, UniformBall
from duelist.samplers.langevin import Langevin
from duelist.samplers.mala import MALA
from duelist.typing import FloatArray
from tests.support.oracles import Round, full_potential

ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])


class Told(NamedTuple):
    """Chains that stand where the test wants them."""

    position: FloatArray


@dataclass(frozen=True)
class Oracle:
    """A sampler that draws what it was told: for attempt a, the a-th pair of thetas."""

    draws: tuple[tuple[tuple[float, float], tuple[float, float]], ...]
    exact: ClassVar[bool] = True
    one_pass: ClassVar[bool] = False

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> Told:
        assert prior is not None
        return Told(np.zeros((len(streams), chains, dim)))

    def advance(self, potential: LinearPotential, chains: Told, streams: Streams, round_: int, attempt: int = 0) -> Told:
        assert (potential.lanes, len(streams)) == (len(chains.position), len(chains.position))
        assert round_ >= 0
        return Told(np.tile(self.draws[min(attempt, len(self.draws) - 1)], (len(streams), 1, 1)))

    def report(self, chains: Told) -> dict[str, FloatArray]:
        assert chains is not None
        return {}


def choose(policy: FGTS, *, live: bool = False) -> Duels:
    streams = Streams(0, [0])
    duels, _ = policy.choose(policy.start(Problem(dim=2, live=live), streams), FiniteActions(ARMS), streams)
    return duels


def learnt(policy: FGTS, duels: list[tuple[int, int, int]], *, horizon: int | None = None) -> FGTSState:
    """The state after these duels (first, second, outcome) among ARMS."""
    streams, actions = Streams(0, [0]), FiniteActions(ARMS)
    state = policy.start(Problem(dim=2, horizon=horizon), streams)
    for first, second, outcome in duels:
        pair = duels_between(actions, np.array([first]), np.array([second]))
        state = policy.learn(state, actions, pair, np.array([outcome]))
    return state


def mu_of(policy: FGTS, rounds: int, *, horizon: int | None) -> float:
    """The Feel-Good weight after `rounds` duels, read off the potential by comparing it with that of mu = 0."""
    duels = [(0, 1, 1)] * rounds
    theta = np.array([0.3, 0.2])
    both = np.tile(theta, (1, 2, 1))
    value = policy.potential(learnt(policy, duels, horizon=horizon)).value(both)[0, 0]
    eta = 0.25 if policy.eta == "theory" else float(np.atleast_1d(policy.eta)[0])
    played = [Round(ARMS, *duel) for duel in duels]
    plain = full_potential(theta, played, draw=1, eta=eta, precision=policy.prior.precision)
    gain = rounds * (max(ARMS @ theta) - float(ARMS[1] @ theta))
    return (plain - float(value)) / float(gain)


def test_each_draw_plays_its_own_best_arm() -> None:
    # Under (2, 1) the utilities are 2, 1, -3; under (-1, -0.5) they are -1, -0.5, 1.5.
    duels = choose(FGTS(sampler=Oracle((((2.0, 1.0), (-1.0, -0.5)),))))
    assert (duels.first.tolist(), duels.second.tolist()) == ([0], [2])
    np.testing.assert_array_equal(duels.features[0], ARMS[[0, 2]])


def test_a_round_worked_by_hand() -> None:
    # One duel: arm 0 beat arm 1, so z = (1, -1). At theta = (1, 0): <theta, z> = 1, the best arm is arm 0 with utility 1.
    # Draw 1's adversary is arm 1 (utility 0), draw 2's is arm 0 (utility 1). mu = 0.5 / sqrt(25) = 0.1.
    policy = FGTS(eta=2.0, alpha=0.5, prior=Gaussian(0.5))
    potential = policy.potential(learnt(policy, [(0, 1, 1)], horizon=25))
    theta = np.tile([1.0, 0.0], (1, 2, 1))
    loss = math.log(1 + math.exp(-1.0))
    np.testing.assert_allclose(potential.value(theta), [[2.0 + 2 * loss - 0.1 * (1 - 0), 2.0 + 2 * loss - 0.1 * (1 - 1)]])
    # gradient = 4 theta - 2 s(-1) z - 0.1 (phi(best) - phi(adversary))
    lose = 1 / (1 + math.e)
    common = np.array([4.0, 0.0]) - 2 * lose * np.array([1.0, -1.0])
    np.testing.assert_allclose(potential.gradient(theta), [[common - 0.1 * np.array([1.0, -1.0]), common]])


def test_choose_plays_the_best_arms_of_the_chains_it_returns() -> None:
    policy, env, streams = FGTS(), LinearDuels(dim=3, arms=8), Streams(0, range(6))
    instance = env.instance(streams)
    state = policy.start(Problem(dim=3, lanes=6, horizon=50), streams)
    for t in range(50):
        actions = instance.actions(t)
        duels, state = policy.choose(state, actions, streams)
        utilities = np.einsum("lkd,ljd->ljk", actions.features, state.chains.position)
        np.testing.assert_array_equal(np.stack([duels.first, duels.second], axis=1), utilities.argmax(axis=2))
        state = policy.learn(state, actions, duels, instance.outcomes(t, duels))


@pytest.mark.parametrize(
    ("policy", "horizon", "expected"),
    [
        (FGTS(), 2500, 0.1 / 50),
        (FGTS(alpha=0.3), 100, 0.03),
        (FGTS(alpha=0.3, horizon=400), 100, 0.015),
        (FGTS(mu=0.7), 100, 0.7),
        (FGTS(mu=0.7, eta="theory"), None, 0.7),
        (FGTS(mu="theory", prior=GaussianBall(1.0, 2.0)), 100, 1 / (10 * math.exp(2.0) * 10)),
        (FGTS(alpha=0.3), None, 0.3 / math.sqrt(9)),
        (FGTS(mu="theory", prior=GaussianBall(1.0, 2.0)), None, 1 / (10 * math.exp(2.0) * 3)),
    ],
)
def test_mu_is_set_as_stated_and_without_a_horizon_by_the_rounds_so_far(
    policy: FGTS, horizon: int | None, expected: float
) -> None:
    assert mu_of(policy, 9, horizon=horizon) == pytest.approx(expected, rel=1e-9)


def test_the_anytime_schedule_weakens_with_every_round() -> None:
    weights = [mu_of(FGTS(alpha=1.0), rounds, horizon=None) for rounds in (1, 4, 16)]
    assert weights == pytest.approx([1.0, 0.5, 0.25], rel=1e-9)


@pytest.mark.slow
def test_an_unknown_horizon_learns_too() -> None:
    policy, env, streams = FGTS(), LinearDuels(dim=4, arms=10), Streams(0, range(10))
    instance, regret = env.instance(streams), np.zeros(10)
    state = policy.start(Problem(dim=4, lanes=10), streams)
    for t in range(500):
        actions = instance.actions(t)
        duels, state = policy.choose(state, actions, streams)
        regret += instance.regret(actions, duels).average
        state = policy.learn(state, actions, duels, instance.outcomes(t, duels))
    floor = duelist.simulate(duelist.Uniform(), env, rounds=500, trials=10, seed=0).final_regret
    assert regret.mean() < 0.2 * floor.mean()


def test_theory_weights_need_a_bound_on_theta() -> None:
    with pytest.raises(InvalidInputError, match=r"UniformBall\(B\)"):
        FGTS(mu="theory")


def test_improper_priors_are_refused() -> None:
    with pytest.raises(ImproperPosteriorError):
        FGTS(prior=Gaussian(math.inf))
    with pytest.raises(ImproperPosteriorError):
        FGTS(prior=UniformBall(math.inf))


AGREE = ((3.0, 1.0), (2.0, 1.0))  # both draws prefer arm 0; the second draw's runner-up is arm 1
DIFFER = ((3.0, 1.0), (-1.0, -2.0))  # the second draw prefers arm 2


def test_in_simulation_an_arm_may_meet_itself_and_live_it_may_not() -> None:
    policy = FGTS(sampler=Oracle((AGREE,)))
    simulated, shown = choose(policy), choose(policy, live=True)
    assert (simulated.first.tolist(), simulated.second.tolist()) == ([0], [0])
    assert (shown.first.tolist(), shown.second.tolist()) == ([0], [1])
    np.testing.assert_array_equal(shown.features[0], ARMS[[0, 1]])


@pytest.mark.parametrize(
    ("same_arm", "draws", "second"),
    [
        ("allow", (AGREE, DIFFER), 0),
        ("runner-up", (AGREE, DIFFER), 1),
        ("redraw", (AGREE, DIFFER), 2),
        ("redraw", (AGREE, AGREE, AGREE, DIFFER), 2),
        ("redraw", (AGREE,), 1),
        ("runner-up", (DIFFER,), 2),
        ("redraw", (DIFFER, AGREE), 2),
    ],
)
@pytest.mark.parametrize("live", [False, True])
def test_what_happens_when_both_draws_pick_one_arm(same_arm: str, draws: tuple[Any, ...], second: int, live: bool) -> None:
    duels = choose(FGTS(sampler=Oracle(draws), same_arm=same_arm), live=live)
    assert (duels.first.tolist(), duels.second.tolist()) == ([0], [second])


@pytest.mark.slow
def test_whole_runs_with_different_arms_never_play_an_arm_against_itself() -> None:
    for same_arm in ("runner-up", "redraw"):
        run = duelist.simulate(FGTS(same_arm=same_arm), LinearDuels(dim=3, arms=5), rounds=200, trials=4, seed=0)
        assert (run.first != run.second).all()
    allowed = duelist.simulate(FGTS(), LinearDuels(dim=3, arms=5), rounds=200, trials=4, seed=0)
    assert (allowed.first == allowed.second).any()


def assert_same_lanes(part: Run, whole: Run, lanes: list[int]) -> None:
    for name in ("first", "second", "outcomes", "regret"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[lanes], err_msg=name)


@pytest.mark.parametrize(("name", "values"), [("alpha", (0.0, 0.1, 2.0)), ("mu", (0.0, 0.01, 0.3)), ("eta", (0.25, 1.0, 1.5))])
@pytest.mark.parametrize("as_array", [False, True])
def test_a_grid_in_one_state_equals_separate_runs_bit_for_bit(name: str, values: tuple[float, ...], as_array: bool) -> None:
    env = LinearDuels(dim=4, arms=8)
    trials = [0, 1] * 3
    listed = [value for value in values for _ in range(2)]
    column: Any = np.array(listed) if as_array else listed
    grid = duelist.simulate(FGTS(**{name: column}), env, rounds=80, trials=trials, seed=0)
    for i, value in enumerate(values):
        alone = duelist.simulate(FGTS(**{name: value}), env, rounds=80, trials=2, seed=0)  # type: ignore[arg-type]
        assert_same_lanes(alone, grid, [2 * i, 2 * i + 1])


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [MALA(), Langevin()])
@pytest.mark.parametrize("same_arm", ["allow", "redraw", "runner-up"])
def test_numbers_do_not_depend_on_lanes_or_workers(sampler: MALA | Langevin, same_arm: str) -> None:
    env = LinearDuels(dim=6, arms=12)
    policy = FGTS(sampler=sampler, same_arm=same_arm)
    whole = duelist.simulate(policy, env, rounds=60, trials=7, seed=3, workers=1)
    shared = duelist.simulate(policy, env, rounds=60, trials=7, seed=3, workers=3)
    some = duelist.simulate(policy, env, rounds=60, trials=[6, 2], seed=3, workers=1)
    assert_same_lanes(shared, whole, list(range(7)))
    assert_same_lanes(some, whole, [6, 2])


def test_swapping_pairs_and_flipping_outcomes_exchanges_the_two_draws() -> None:
    duels = [(0, 1, 1), (2, 0, -1), (1, 2, 1), (0, 1, -1), (1, 1, 1)]
    policy = FGTS(mu=0.4)
    one = policy.potential(learnt(policy, duels))
    other = policy.potential(learnt(policy, [(second, first, -outcome) for first, second, outcome in duels]))
    theta = np.random.default_rng(0).normal(size=(1, 2, 2))
    np.testing.assert_allclose(one.value(theta), other.value(theta[:, ::-1])[:, ::-1], rtol=1e-12)
    np.testing.assert_allclose(one.gradient(theta), other.gradient(theta[:, ::-1])[:, ::-1], rtol=1e-12)


def test_without_feel_good_both_draws_have_one_posterior_and_no_sets_are_kept() -> None:
    policy = FGTS(mu=0.0)
    state = learnt(policy, [(0, 1, 1), (2, 0, -1)])
    theta = np.tile([0.3, -0.7], (1, 2, 1))
    values = policy.potential(state).value(theta)
    assert values[0, 0] == values[0, 1]
    assert state.history.statistics.repeats.size == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("eta", 0.0),
        ("eta", -1.0),
        ("eta", math.nan),
        ("eta", "theroy"),
        ("alpha", -0.1),
        ("alpha", "strong"),
        ("alpha", [0.1, math.inf]),
        ("mu", -1.0),
        ("mu", "theroy"),
        ("mu", [0.1, -0.1]),
        ("horizon", 0),
        ("horizon", 10.5),
    ],
)
def test_hyper_parameters_that_make_no_sense_are_refused(name: str, value: Any) -> None:
    with pytest.raises(DuelistError, match=name):
        FGTS(**{name: value})


@pytest.mark.parametrize(("name", "value"), [("sampler", "malla"), ("same_arm", "runnerup")])
def test_unknown_names_are_refused_with_the_nearest(name: str, value: str) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean"):
        FGTS(**{name: value})  # type: ignore[arg-type]


def test_a_column_that_fits_no_number_of_lanes_is_refused_whatever_the_workers() -> None:
    for workers in (1, 2):
        with pytest.raises(InvalidInputError, match="alpha"):
            duelist.simulate(FGTS(alpha=[0.1, 0.2]), LinearDuels(dim=2, arms=3), rounds=2, trials=4, workers=workers)


def test_arms_of_another_dimension_are_refused_and_the_state_goes_on() -> None:
    policy, streams = FGTS(), Streams(0, [0])
    state = policy.start(Problem(dim=2), streams)
    with pytest.raises(InvalidInputError, match="dimension"):
        policy.choose(state, FiniteActions(np.eye(3)), streams)
    duels, _ = policy.choose(state, FiniteActions(ARMS), streams)
    assert duels.first.shape == (1,)


def test_the_recommended_setting_follows_the_size_of_the_features() -> None:
    base = duelist.FGTS.recommended(feature_size=2.0)
    assert (base.eta, base.alpha, base.prior) == (2.0, 0.01, Gaussian(0.125))
    with pytest.raises(InvalidInputError, match="feature_size"):
        duelist.FGTS.recommended(feature_size=0.0)


def test_the_recommended_setting_loses_less_than_the_papers() -> None:
    env = duelist.LinearDuels(dim=5, arms=16)
    runs = [
        duelist.simulate(policy, env, rounds=600, trials=40, seed=3).final_regret.mean()
        for policy in (duelist.FGTS.recommended(), duelist.FGTS())
    ]
    assert runs[0] < 0.9 * runs[1]
