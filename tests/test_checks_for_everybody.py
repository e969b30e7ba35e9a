"""Every check of `duelist.testing` is failed by a class with one fault in it, and by no sound one."""

# ruff: noqa: ARG002 - faulty classes have sound signatures
from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import duelist
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.environments import Regret
from duelist.history import duels_between
from duelist.policies import Policy, best_other
from duelist.testing import (
    CheckFailedError,
    check_environment,
    check_policy,
    environment_checks,
    policy_checks,
)


@stored("checked-state")
class State(NamedTuple):
    theta: Any
    asked: int


@dataclass(frozen=True, kw_only=True)
class Sound(Policy[Any]):
    """Nothing is wrong with it."""

    def start(self, problem: Any, streams: Any) -> Any:
        return State(np.zeros((problem.lanes, problem.dim)), 0)

    def utilities(self, state: Any, actions: Any, streams: Any) -> Any:
        return actions.utilities(state.theta) + 1e-6 * actions.random_priority(streams, "ties", state.asked)

    def choose(self, state: Any, actions: Any, streams: Any) -> Any:
        utilities = self.utilities(state, actions, streams)
        first = utilities.argmax(axis=1)
        return duels_between(actions, first, best_other(utilities, first)), state._replace(asked=state.asked + 1)

    def gradient(self, state: Any, duels: Any, outcomes: Any) -> Any:
        win = 1 / (1 + np.exp(-np.einsum("ld,ld->l", state.theta, duels.contrast)))
        return 0.5 * (0.5 * (1 + outcomes) - win)[:, None] * duels.contrast

    def learn(self, state: Any, actions: Any, duels: Any, outcomes: Any) -> Any:
        return state._replace(theta=state.theta + self.gradient(state, duels, outcomes))

    def report(self, state: Any) -> Any:
        return {"length": np.linalg.norm(state.theta, axis=1)}


class LearnsInPlace(Sound):
    def learn(self, state: Any, actions: Any, duels: Any, outcomes: Any) -> Any:
        state.theta[:] += self.gradient(state, duels, outcomes)
        return state


class SharesLanes(Sound):
    def learn(self, state: Any, actions: Any, duels: Any, outcomes: Any) -> Any:
        return state._replace(theta=state.theta + self.gradient(state, duels, outcomes).mean(axis=0))


class OwnGenerator(Sound):
    generator: ClassVar[Any] = np.random.default_rng(0)

    def utilities(self, state: Any, actions: Any, streams: Any) -> Any:
        return actions.utilities(state.theta) + self.generator.random((actions.lanes, actions.n_arms))


class BreaksTiesByRow(Sound):
    def utilities(self, state: Any, actions: Any, streams: Any) -> Any:
        return actions.utilities(state.theta)


class Foreign(Sound):
    def choose(self, state: Any, actions: Any, streams: Any) -> Any:
        duels, state = super().choose(state, actions, streams)
        return duels._replace(features=duels.features + 0.1), state


class KnowsOnlyTheFirstSet(Sound):
    def choose(self, state: Any, actions: Any, streams: Any) -> Any:
        duels, state = super().choose(state, actions, streams)
        return duels._replace(second=np.full(actions.lanes, 4)), state


class RefusesTies(Sound):
    def learn(self, state: Any, actions: Any, duels: Any, outcomes: Any) -> Any:
        if (outcomes == 0).any():
            raise ValueError("who won?")
        return super().learn(state, actions, duels, outcomes)


class OneAtATime(Sound):
    def learn(self, state: Any, actions: Any, duels: Any, outcomes: Any) -> Any:
        return super().learn(state, actions, duels, outcomes)._replace(asked=0)

    def choose(self, state: Any, actions: Any, streams: Any) -> Any:
        if state.asked > 0:
            raise RuntimeError("answer first")
        return super().choose(state, actions, streams)


class NeedsThreeArms(Sound):
    def choose(self, state: Any, actions: Any, streams: Any) -> Any:
        if actions.n_arms < 3:
            raise ValueError("three, please")
        return super().choose(state, actions, streams)


class NeedsVariety(Sound):
    def learn(self, state: Any, actions: Any, duels: Any, outcomes: Any) -> Any:
        if not duels.contrast.any():
            raise ZeroDivisionError("two equal arms")
        return super().learn(state, actions, duels, outcomes)


class ReportsOneNumber(Sound):
    def report(self, state: Any) -> Any:
        return {"length": np.array([1.0])}


class ReportsNothingFinite(Sound):
    def report(self, state: Any) -> Any:
        return {"length": np.full(len(state.theta), np.nan)}


class EstimatesOneArm(Sound):
    def estimated_utilities(self, state: Any, actions: Any) -> Any:
        return np.zeros((actions.lanes, 1))


class RemembersElsewhere(Sound):
    """Keeps what it has learnt where no file will find it."""

    @cache  # noqa: B019 - the fault
    def memory(self) -> dict[int, Any]:
        return {}

    def learn(self, state: Any, actions: Any, duels: Any, outcomes: Any) -> Any:
        learnt = super().learn(state, actions, duels, outcomes)
        self.memory()[id(learnt)] = learnt
        return learnt

    def utilities(self, state: Any, actions: Any, streams: Any) -> Any:
        sign = 1 if state.asked == 0 or id(state) in self.memory() else -1
        return sign * super().utilities(state, actions, streams)


@pytest.mark.parametrize(
    ("faulty", "check"),
    [
        (LearnsInPlace(), "choose and learn leave the state"),
        (SharesLanes(), "a run is the same alone"),
        (OwnGenerator(), "the same seed gives the same run"),
        (BreaksTiesByRow(), "permuted arms"),
        (Foreign(), "pairs are rows"),
        (KnowsOnlyTheFirstSet(), "pairs are rows"),
        (RefusesTies(), "ties are learnt"),
        (OneAtATime(), "asking again without learning"),
        (NeedsThreeArms(), "the smallest problems"),
        (NeedsVariety(), "features of any size"),
        (ReportsOneNumber(), "report has one finite number"),
        (ReportsNothingFinite(), "report has one finite number"),
        (EstimatesOneArm(), "estimates have one utility"),
        (RemembersElsewhere(), "a saved state goes on"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_a_fault_fails_its_check_by_name(faulty: Any, check: str) -> None:
    report = check_policy(faulty, raises=False)
    assert any(failure.check.startswith(check) for failure in report.failures), str(report)
    with pytest.raises(CheckFailedError, match=f"{type(faulty).__name__}: the check '"):
        check_policy(faulty)


def test_a_sound_policy_passes_and_the_report_lists_what_was_checked() -> None:
    report = check_policy(Sound())
    assert not report.failures
    names = list(policy_checks(Sound()))
    assert str(report).splitlines() == [f"Sound: {len(names)} of {len(names)} checks passed", *(f"passed  {n}" for n in names)]


def test_a_failure_says_what_to_do() -> None:
    text = str(check_policy(BreaksTiesByRow(), raises=False))
    assert "failed  permuted arms give a permuted choice" in text
    assert "actions.random_priority(streams, name, round)" in text


def test_what_is_not_claimed_is_not_checked() -> None:
    class ByRow(BreaksTiesByRow):
        knows_arms_by_content: ClassVar[bool] = False

    assert not check_policy(ByRow()).failures


class Instance:
    """A sound instance of a sound environment, whose parts others replace."""

    def __init__(self, streams: Any) -> None:
        self.streams, self.inner = streams, duelist.LinearDuels(dim=3, arms=6).instance(streams)

    def actions(self, round_: int) -> Any:
        return self.inner.actions(round_)

    def win_probability(self, round_: int, duels: Any) -> Any:
        return 1 / (1 + np.exp(-np.einsum("ld,ld->l", self.inner.theta, duels.contrast)))

    def outcomes(self, round_: int, duels: Any) -> Any:
        return self.inner.outcomes(round_, duels)

    def regret(self, actions: Any, duels: Any) -> Any:
        return self.inner.regret(actions, duels)


class OtherDimension(Instance):
    def actions(self, round_: int) -> Any:
        return duelist.FiniteActions(self.inner.actions(round_).features[:, :, :2])

    def outcomes(self, round_: int, duels: Any) -> Any:
        return np.ones(len(duels.first), dtype=int)


class Halves(Instance):
    def outcomes(self, round_: int, duels: Any) -> Any:
        return np.full(len(duels.first), 0.5)


class Unseeded(Instance):
    def outcomes(self, round_: int, duels: Any) -> Any:
        return np.where(Streams(0, self.streams.trials).uniforms("votes", round_) < 0.5, 1, -1)


class NamedByLane(Instance):
    def outcomes(self, round_: int, duels: Any) -> Any:
        return np.where(Streams(self.streams.seed, range(len(self.streams))).uniforms("votes", round_) < 0.5, 1, -1)


class Counts(Instance):
    asked = 0

    def outcomes(self, round_: int, duels: Any) -> Any:
        self.asked += 1
        return np.where(self.streams.uniforms("votes", self.asked) < 0.5, 1, -1)


class NegativeRegret(Instance):
    def regret(self, actions: Any, duels: Any) -> Any:
        return Regret(*(-np.ones((3, actions.lanes))))


class OneRegret(Instance):
    def regret(self, actions: Any, duels: Any) -> Any:
        return Regret(*np.ones((3, 1)))


class AnotherLaw(Instance):
    def win_probability(self, round_: int, duels: Any) -> Any:
        return np.full(len(duels.first), 0.01)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """An environment of the given instances."""

    kind: Any = field(default=Instance)
    dim: int = 3

    def instance(self, streams: Any) -> Any:
        return self.kind(streams)


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (OtherDimension, "action sets have"),
        (Halves, "action sets have"),
        (Unseeded, "the same seed gives the same numbers"),
        (NamedByLane, "a trial is the same alone"),
        (Counts, "a round that is asked twice"),
        (NegativeRegret, "regret is one number per lane"),
        (OneRegret, "regret is one number per lane"),
        (AnotherLaw, "votes follow win_probability"),
    ],
)
def test_a_fault_of_an_environment_fails_its_check_by_name(kind: Any, check: str) -> None:
    report = check_environment(Recipe(kind=kind), raises=False)
    assert any(failure.check.startswith(check) for failure in report.failures), str(report)


def test_a_sound_environment_passes() -> None:
    report = check_environment(Recipe())
    assert not report.failures
    assert len(report.results) == len(environment_checks(Recipe()))
