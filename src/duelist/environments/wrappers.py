"""Environments around another one, their `base`: ties, flipped votes, late answers, a truth that moves.

They nest: `Delayed(base=Tied(base=LinearDuels()), delay=20)`. Arms, and random numbers that a wrapper does not change, are
those of the base, so that a run with a wrapper can be compared pair by pair with a run without.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.checks import finite_number, one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.base import NEVER, Environment, Instance, Regret, decide, plays_lanes_apart
from duelist.environments.linear_truth import LinearTruth
from duelist.history.duels import Duels
from duelist.typing import FloatArray, IntArray, Keys

_ROUNDING = 1e-12


class Wrapper:
    """A recipe around another one."""

    base: Environment

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self.base.dim

    @property
    def lanes_apart(self) -> bool:
        """Whether answers come at another time in every lane."""
        return plays_lanes_apart(self.base)


class Wrapped(Instance):
    """An instance that asks another one, and changes some of its answers.

    Args:
        recipe: of this one, around that of the other.
        streams: of the lanes.
    """

    def __init__(self, recipe: Any, streams: Streams) -> None:
        self.recipe, self._streams = recipe, streams
        self.base: Instance = recipe.base.instance(streams)

    def actions(self, round_: int) -> ActionSet:
        """Those of the base."""
        return self.base.actions(round_)

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        """Those of the base."""
        return self.base.outcomes(round_, duels)

    def regret(self, actions: ActionSet, duels: Duels) -> Regret:
        """That of the base."""
        return self.base.regret(actions, duels)

    def win_probability(self, round_: int, duels: Duels) -> FloatArray:
        """That of the base."""
        return np.asarray(self._ask("win_probability", round_, duels))

    def tie_probability(self, round_: int, duels: Duels) -> FloatArray:
        """That of the base."""
        return np.asarray(self._ask("tie_probability", round_, duels))

    def delay(self, round_: int, duels: Duels) -> IntArray:
        """That of the base."""
        return np.asarray(self._ask("delay", round_, duels))

    def show(self, round_: int, duels: Duels) -> Duels:
        """As the base shows them."""
        shown: Duels = self._ask("show", round_, duels)
        return shown

    def _ask(self, name: str, round_: int, duels: Duels) -> Any:
        # An instance from elsewhere need not have what has a default.
        own = getattr(self.base, name, None)
        return getattr(Instance, name)(self, round_, duels) if own is None else own(round_, duels)


@dataclass(frozen=True, kw_only=True)
class Tied(Wrapper):
    """Ties by Davidson's model: with p the probability of a win in the base and q = sqrt(p (1 - p)),

        P(first) = p / (1 + nu q),   P(tie) = nu q / (1 + nu q).

    Args:
        base: an environment without ties that knows its probabilities.
        nu: 0 for no ties; equal candidates tie with probability nu / (2 + nu).

    Example:
        >>> from duelist.environments import LinearDuels
        >>> import duelist
        >>> run = duelist.simulate(duelist.Uniform(), Tied(base=LinearDuels(dim=4, arms=6)), rounds=100, trials=2)
        >>> sorted(set(run.outcomes.ravel().tolist()))
        [-1, 0, 1]
    """  # noqa: D415 - the sentence ends in the formula

    base: Environment
    nu: float = 1.0

    def __post_init__(self) -> None:
        finite_number("nu", self.nu, at_least=0.0)

    def instance(self, streams: Streams) -> Instance:
        """The instances of the base, with ties."""
        return _TiedInstance(self, streams)


class _TiedInstance(Wrapped):
    recipe: Tied

    def _chances(self, round_: int, duels: Duels) -> tuple[FloatArray, FloatArray]:
        win = super().win_probability(round_, duels)
        if np.isnan(win).any() or super().tie_probability(round_, duels).any():
            name = type(self.recipe.base).__name__
            raise InvalidInputError(
                f"Tied needs a base without ties that knows the probability of a win (win_probability); {name} is not "
                f"one. Wrap the environment that it is made of."
            )
        even = self.recipe.nu * np.sqrt(win * (1.0 - win))
        return win / (1.0 + even), even / (1.0 + even)

    def win_probability(self, round_: int, duels: Duels) -> FloatArray:
        return self._chances(round_, duels)[0]

    def tie_probability(self, round_: int, duels: Duels) -> FloatArray:
        return self._chances(round_, duels)[1]

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        return decide(self, round_, duels, self._streams)


@dataclass(frozen=True, kw_only=True)
class Corrupted(Wrapper):
    """Votes that say the opposite: at random, or where an adversary wants them to.

    The adversary sees each duel and its outcome. It flips the votes in which the best arm beats a worse one, the first `budget`
    of them in every trial: those from which a policy learns which arm is best, while it knows least.

    Args:
        base: the environment whose votes are flipped; regret stays as it is.
        flips: probability that a vote is flipped, below 0.5. Ties stay ties.
        budget: votes that the adversary may flip in a trial.

    Example:
        >>> from duelist.environments import LinearDuels
        >>> import duelist
        >>> base = LinearDuels(dim=4, arms=6)
        >>> clean = duelist.simulate(duelist.Uniform(), base, rounds=200, trials=2)
        >>> attacked = duelist.simulate(duelist.Uniform(), Corrupted(base=base, budget=9), rounds=200, trials=2)
        >>> (clean.outcomes != attacked.outcomes).sum(axis=1).tolist()
        [9, 9]
    """

    base: Environment
    flips: float = 0.0
    budget: int = 0

    def __post_init__(self) -> None:
        if finite_number("flips", self.flips, at_least=0.0) >= 0.5:
            raise InvalidInputError(f"flips must be a probability below 0.5; got {self.flips:g}. At 0.5 votes say nothing.")
        whole_number("budget", self.budget)

    def instance(self, streams: Streams) -> Instance:
        """The instances of the base, with flipped votes."""
        return _CorruptedInstance(self, streams)


class _CorruptedInstance(Wrapped):
    recipe: Corrupted

    @cached_property
    def _spent(self) -> list[tuple[int, IntArray]]:
        """What the adversary had spent after each round in which it acted: a round that is asked for again is played again."""
        return [(-1, np.zeros(len(self._streams), dtype=np.int64))]

    def win_probability(self, round_: int, duels: Duels) -> FloatArray:
        """With random flips; what the adversary will do to this vote is not in it."""
        win, tie = super().win_probability(round_, duels), super().tie_probability(round_, duels)
        return win + self.recipe.flips * (1.0 - tie - 2.0 * win)

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        outcomes = super().outcomes(round_, duels)
        if self.recipe.flips:
            outcomes = np.where(self._streams.uniforms("flip", round_) < self.recipe.flips, -outcomes, outcomes)
        return self._attack(round_, duels, outcomes) if self.recipe.budget else outcomes

    def _attack(self, round_: int, duels: Duels, outcomes: IntArray) -> IntArray:
        while self._spent[-1][0] >= round_:
            self._spent.pop()
        spent = self._spent[-1][1]
        able = spent < self.recipe.budget
        if not able.any():
            return outcomes
        regret = self.base.regret(self.base.actions(round_), duels)
        if not isinstance(regret, Regret) or np.isnan(regret.weak).any():
            raise InvalidInputError(
                f"the adversary of Corrupted needs a base whose regret has `weak`, by which it knows the best arm; that of "
                f"{type(self.recipe.base).__name__} has not. Use flips, or return a Regret with weak."
            )
        best_meets_worse = (regret.weak <= _ROUNDING) & (regret.average > _ROUNDING)
        win, tie = super().win_probability(round_, duels), super().tie_probability(round_, duels)
        flipped = able & best_meets_worse & (outcomes * (2.0 * win + tie - 1.0) > 0.0)
        if flipped.any():
            self._spent.append((round_, spent + flipped))
        return np.where(flipped, -outcomes, outcomes)


@dataclass(frozen=True, kw_only=True)
class Delayed(Wrapper):
    """Answers that come later, together, or never. What is still open at the end of a run stays open.

    Args:
        base: the environment that answers.
        delay: rounds until an answer comes, or their mean: 0 is before the next choice, 1 before the one after.
        law: "fixed"; "geometric", in every round with the same probability; "uniform", a whole number from 0 to twice the mean.
            Where it is drawn, every trial has its own delays and is played by itself.
        batch: answers come together, after every so many rounds.
        missing: probability that an answer never comes, below 1.

    Example:
        >>> from duelist.environments import LinearDuels
        >>> import duelist
        >>> env = Delayed(base=LinearDuels(dim=4, arms=6), delay=20)
        >>> run = duelist.simulate(duelist.FGTS(), env, rounds=100, trials=2)
        >>> (run.outcomes == -128).sum(axis=1).tolist()
        [20, 20]
    """

    base: Environment
    delay: int = 0
    law: Literal["fixed", "geometric", "uniform"] = "fixed"
    batch: int = 1
    missing: float = 0.0

    def __post_init__(self) -> None:
        whole_number("delay", self.delay)
        one_of("law", self.law, ("fixed", "geometric", "uniform"))
        whole_number("batch", self.batch, at_least=1)
        if finite_number("missing", self.missing, at_least=0.0) >= 1.0:
            raise InvalidInputError(f"missing must be a probability below 1; got {self.missing:g}. At 1 nobody ever answers.")

    @property
    def lanes_apart(self) -> bool:
        """Where delays are drawn."""
        return self.law != "fixed" or self.missing > 0.0 or super().lanes_apart

    def instance(self, streams: Streams) -> Instance:
        """The instances of the base, which answer late."""
        return _DelayedInstance(self, streams)


class _DelayedInstance(Wrapped):
    recipe: Delayed

    def delay(self, round_: int, duels: Duels) -> IntArray:
        before = super().delay(round_, duels)
        wait = before + self._drawn(round_)
        wait += -(round_ + wait + 1) % self.recipe.batch  # to the end of the batch
        lost = before == NEVER
        if self.recipe.missing:
            lost = lost | (self._streams.uniforms("missing", round_) < self.recipe.missing)
        return np.where(lost, NEVER, wait)

    def _drawn(self, round_: int) -> IntArray:
        mean, chance = self.recipe.delay, self._streams.uniforms("delay", round_)
        if self.recipe.law == "fixed" or mean == 0:
            return np.full(len(self._streams), mean, dtype=np.int64)
        if self.recipe.law == "uniform":
            return np.floor(chance * (2 * mean + 1)).astype(np.int64)
        return np.asarray(np.floor(np.log(chance) / np.log(mean / (mean + 1.0))), dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Rotating(Wrapper):
    """A truth that turns: theta moves by `rate` radians a round in a random plane, and keeps its norm.

    Args:
        base: an environment of linear utilities and dimension 2 or more. Ties, flips and delays go around this one.
        rate: radians per round; with 0.001 the truth has turned right round after some 6,300 rounds.

    Example:
        >>> from duelist.environments import LinearDuels
        >>> instance = Rotating(base=LinearDuels(dim=4, arms=6), rate=np.pi / 100).instance(Streams(0, [0]))
        >>> _ = instance.actions(0)
        >>> start = instance.theta
        >>> _ = instance.actions(100)
        >>> bool(np.allclose(instance.theta, -start))
        True
    """

    base: Environment
    rate: float = 0.001

    def __post_init__(self) -> None:
        finite_number("rate", self.rate)

    def instance(self, streams: Streams) -> RotatingInstance:
        """The instances of the base, with a truth that turns."""
        return RotatingInstance(self, streams)


class _Moving(Wrapped):
    """A truth that is another one in other rounds: `_turn` puts that of a round in place before the base is asked."""

    def _turn(self, round_: int) -> None:
        raise NotImplementedError

    def actions(self, round_: int) -> ActionSet:
        """Those of the base."""
        self._turn(round_)
        return super().actions(round_)

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        """By the truth of this round."""
        self._turn(round_)
        return super().outcomes(round_, duels)

    def _ask(self, name: str, round_: int, duels: Duels) -> Any:
        self._turn(round_)
        return super()._ask(name, round_, duels)


class RotatingInstance(_Moving):
    """Instances whose `theta` (lanes, dim) is that of the round which was asked about last."""

    base: LinearTruth

    def __init__(self, recipe: Rotating, streams: Streams) -> None:
        super().__init__(recipe, streams)
        base: Any = self.base
        if not isinstance(base, LinearTruth) or base.theta.shape[1] < 2:
            raise InvalidInputError(
                f"Rotating needs a base of linear utilities in two dimensions or more; got {type(recipe.base).__name__}. Put "
                f"other wrappers around it: Tied(base=Rotating(base=LinearDuels()))."
            )
        self._rate, self._start = recipe.rate, base.theta
        directions = np.array([streams.generator("drift", i).standard_normal(len(row)) for i, row in enumerate(base.theta)])
        norms = np.linalg.norm(base.theta, axis=1, keepdims=True)
        along = base.theta / np.maximum(norms, np.finfo(float).tiny)  # a truth of zero stays one
        across = directions - np.einsum("ld,ld->l", directions, along)[:, None] * along
        self._across = across * (norms / np.linalg.norm(across, axis=1, keepdims=True))

    @property
    def theta(self) -> FloatArray:
        """(lanes, dim) the truth of the round."""
        return self.base.theta

    def _turn(self, round_: int) -> None:
        self.base.theta = np.cos(self._rate * round_) * self._start + np.sin(self._rate * round_) * self._across


@dataclass(frozen=True, kw_only=True)
class Switching(Wrapper):
    """A truth that is replaced at certain rounds by another draw of the same base. Arms and noise stay.

    Args:
        base: an environment that draws its truth, such as `LinearDuels` or `MatrixDuels`. One that is given does not change.
        every: rounds between switches.
        at: the rounds of the switches themselves, ascending, instead: from each on there is another truth.

    Example:
        >>> from duelist.environments import LinearDuels
        >>> instance = Switching(base=LinearDuels(dim=4, arms=6), at=(10,)).instance(Streams(0, [0]))
        >>> arms = [instance.actions(t).digest for t in (0, 9, 10)]
        >>> len(set(arms))
        1
    """

    base: Environment
    every: int = 500
    at: Sequence[int] = ()

    def __post_init__(self) -> None:
        whole_number("every", self.every, at_least=1)
        rounds = [whole_number("at", round_, at_least=1) for round_ in self.at]
        if sorted(set(rounds)) != rounds:
            raise InvalidInputError(f"at must be ascending rounds; got {self.at!r}.")

    def instance(self, streams: Streams) -> Instance:
        """One instance of the base per stretch of rounds, made when it is needed."""
        return _SwitchingInstance(self, streams)


class _OtherTruth(Streams):
    """The streams of lanes with another stream "theta", of which environments draw their truth."""

    def __init__(self, streams: Streams, switch: int) -> None:
        super().__init__(streams.seed, streams.trials)
        self._switch = switch

    def keys(self, name: str) -> Keys:
        return super().keys(f"theta after switch {self._switch}" if name == "theta" else name)


class _SwitchingInstance(_Moving):
    recipe: Switching
    _stretch = 0

    def _turn(self, round_: int) -> None:
        at = self.recipe.at
        stretch = bisect_right(at, round_) if at else round_ // self.recipe.every
        if stretch != self._stretch:
            self._stretch = stretch
            streams = _OtherTruth(self._streams, stretch) if stretch else self._streams
            self.base = self.recipe.base.instance(streams)
