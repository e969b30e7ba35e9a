"""Checks that anybody's policy or environment must pass, as scikit-learn's `check_estimator` has them for estimators.

    from duelist.testing import check_environment, check_policy

    print(check_policy(MyPolicy()))
    print(check_environment(MyDuels()))

Every check plays a few small problems, and takes well under a second for a rule in NumPy. A failure says what was seen and what
to do. The tests of duelist run the same checks on its own policies and environments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.stats import binomtest, norm

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.errors import DuelistError
from duelist.core.lanes import Problem, select_lanes
from duelist.core.serialize import from_bytes, to_bytes
from duelist.core.streams import Streams
from duelist.environments.base import Environment, Regret, show_duels
from duelist.environments.linear import LinearDuels
from duelist.environments.registry import require_environment
from duelist.experiments.run import Run
from duelist.experiments.simulation import simulate
from duelist.history.duels import Duels, duels_between
from duelist.policies.base import Policy, check_choice
from duelist.policies.registry import require_policy
from duelist.typing import FloatArray, IntArray

SEED = 11
TRIALS = (5, 2, 9)
# One exact binomial test per environment: a sound one fails once in ten thousand seeds, and the seed is fixed.
FALSE_ALARM = 1e-4
_VOTES = 4000
_ROUNDING = 1e-9


class CheckFailedError(DuelistError, AssertionError):
    """A policy or an environment does not do what every one must."""


class Result(NamedTuple):
    """One check: its name, and what was wrong, empty where it passed."""

    check: str
    problem: str


class Report(NamedTuple):
    """The checks that were made, in order; print it."""

    name: str
    results: tuple[Result, ...]

    @property
    def failures(self) -> tuple[Result, ...]:
        """The checks that failed."""
        return tuple(result for result in self.results if result.problem)

    def __str__(self) -> str:
        lines = [f"{'failed' if result.problem else 'passed'}  {result.check}" for result in self.results]
        details = [f"\n{result.check}: {result.problem}" for result in self.failures]
        passed = len(self.results) - len(self.failures)
        return "\n".join([f"{self.name}: {passed} of {len(self.results)} checks passed", *lines, *details])


class Step(NamedTuple):
    """One round of play: what was offered, who met, who won, and the state that chose."""

    actions: FiniteActions
    duels: Duels
    outcomes: IntArray
    before: Any


def check_policy(policy: Policy[Any], *, rounds: int = 30, raises: bool = True) -> Report:
    """Check a policy for pairs.

    Args:
        policy: an instance, such as `MyPolicy()`.
        rounds: of a run, where its length is of no account.
        raises: raise at the first failure; False makes all checks and reports.

    Example:
        >>> import duelist
        >>> print(str(check_policy(duelist.Uniform())).splitlines()[0])
        Uniform: 12 of 12 checks passed
    """
    return _report(require_policy(policy), policy_checks(policy, rounds=rounds), raises)


def check_environment(environment: Environment, *, raises: bool = True) -> Report:
    """Check an environment.

    Args:
        environment: an instance of the recipe, such as `MyDuels()`.
        raises: raise at the first failure; False makes all checks and reports.

    Example:
        >>> import duelist
        >>> print(str(check_environment(duelist.LinearDuels(dim=3, arms=4))).splitlines()[0])
        LinearDuels: 6 of 6 checks passed
    """
    return _report(require_environment(environment), environment_checks(environment), raises)


def policy_checks(policy: Policy[Any], *, rounds: int = 30) -> dict[str, Callable[[], None]]:
    """The checks of `check_policy` by name, to be called one by one: for a test that has a line for each."""
    checks = _PolicyChecks(policy, rounds)
    named = _methods(checks)
    if not getattr(policy, "knows_arms_by_content", True):
        del named["permuted arms give a permuted choice"]
    return named


def environment_checks(environment: Environment) -> dict[str, Callable[[], None]]:
    """The checks of `check_environment` by name."""
    return _methods(_EnvironmentChecks(environment))


def play_rounds(
    policy: Policy[Any],
    environment: Environment,
    rounds: int,
    trials: Sequence[int],
    state: Any = None,
    first_round: int = 0,
) -> Iterator[tuple[Step, Any]]:
    """Play rounds of an environment, handing out every step and the state after it."""
    streams = Streams(SEED, trials)
    instance = environment.instance(streams)
    if state is None:
        state = policy.start(Problem(dim=environment.dim, lanes=len(trials), horizon=200), streams)
    for t in range(first_round, first_round + rounds):
        actions: Any = instance.actions(t)
        chosen, asked = check_choice(policy, policy.choose(state, actions, streams), actions)
        duels = show_duels(instance, t, chosen)
        outcomes = instance.outcomes(t, duels)
        step = Step(actions, duels, outcomes, state)
        state = policy.learn(asked, actions, duels, outcomes)
        yield step, state


def random_duels(actions: ActionSet, seed: int) -> Duels:
    """Any two candidates per lane."""
    rng = np.random.default_rng(seed)
    if isinstance(actions, FiniteActions):
        first, second = rng.integers(actions.n_arms, size=(2, actions.lanes))
        return duels_between(actions, first, second)
    points = actions.best(rng.normal(size=(actions.lanes, 2, actions.dim)))
    return Duels(points.row[:, 0], points.row[:, 1], points.features)


Method = TypeVar("Method", bound=Callable[[Any], None])


def _check(name: str) -> Callable[[Method], Method]:
    def mark(method: Method) -> Method:
        method.check_name = name  # type: ignore[attr-defined]
        return method

    return mark


def _methods(checks: object) -> dict[str, Callable[[], None]]:
    marked = [method for method in vars(type(checks)).values() if hasattr(method, "check_name")]
    return {method.check_name: method.__get__(checks) for method in marked}


def _report(thing: object, checks: dict[str, Callable[[], None]], raises: bool) -> Report:
    results: list[Result] = []
    for name, check in checks.items():
        try:
            check()
            results.append(Result(name, ""))
        except Exception as error:  # whatever a stranger's class raises is a finding
            problem = str(error) if isinstance(error, DuelistError) else f"{type(error).__name__}: {error}"
            if raises:
                raise CheckFailedError(f"{type(thing).__name__}: the check '{name}' failed. {problem}") from error
            results.append(Result(name, problem))
    return Report(type(thing).__name__, tuple(results))


def _require(holds: Any, problem: str) -> None:
    if not np.all(holds):
        raise CheckFailedError(problem)


def _rows(duels: Duels) -> list[list[int]]:
    return [np.asarray(duels.first).tolist(), np.asarray(duels.second).tolist()]


_FIXED, _FRESH = LinearDuels(dim=4, arms=8), LinearDuels(dim=4, arms=8, fresh_arms=True)


@dataclass(frozen=True)
class _PolicyChecks:
    policy: Policy[Any]
    rounds: int

    def _run(self, environment: LinearDuels, trials: Sequence[int], seed: int = SEED) -> Run:
        return simulate(self.policy, environment, rounds=self.rounds, trials=trials, seed=seed, workers=1, progress=False)

    def _started(self, dim: int, lanes: int, horizon: int = 60) -> tuple[Any, Streams]:
        streams = Streams(SEED, range(lanes))
        return self.policy.start(Problem(dim=dim, lanes=lanes, horizon=horizon), streams), streams

    def _choose(self, state: Any, actions: FiniteActions, streams: Streams) -> tuple[Duels, Any]:
        return check_choice(self.policy, self.policy.choose(state, actions, streams), actions)

    @_check("pairs are rows of the arms that were offered")
    def pairs(self) -> None:
        rng = np.random.default_rng(0)
        sets = [FiniteActions(rng.normal(size=(2, n_arms, 3))) for n_arms in (5, 2, 9, 3)]
        state, streams = self._started(3, 2)
        lanes = np.arange(2)
        for t in range(self.rounds):
            actions = sets[t % 4]
            duels, state = self._choose(state, actions, streams)
            for rows, column in ((duels.first, 0), (duels.second, 1)):
                _require(
                    duels.features[:, column] == actions.features[lanes, rows],
                    "choose returned features that are not those of its rows. Make the pair with duels_between.",
                )
            state = self.policy.learn(state, actions, duels, rng.choice([-1, 1], size=2))

    @_check("the same seed gives the same run")
    def same_seed(self) -> None:
        once, again = self._run(_FIXED, TRIALS), self._run(_FIXED, TRIALS)
        _require(
            np.array_equal(once.first, again.first) and np.array_equal(once.second, again.second),
            "two runs of one seed differ. Take random numbers from streams, under a name and a round; keep no generator and no "
            "counter in the policy.",
        )

    @_check("a run is the same alone and beside others")
    def alone(self) -> None:
        for environment in (_FIXED, _FRESH):
            block = self._run(environment, TRIALS)
            for lane, trial in enumerate(TRIALS):
                one = simulate(
                    select_lanes(self.policy, slice(lane, lane + 1), len(TRIALS)),
                    environment,
                    rounds=self.rounds,
                    trials=[trial],
                    seed=SEED,
                    progress=False,
                )
                same = all(np.array_equal(getattr(one, n)[0], getattr(block, n)[lane]) for n in ("first", "second", "outcomes"))
                _require(
                    same,
                    f"trial {trial} alone plays other pairs than beside others. Lanes must not share anything: reduce over "
                    f"axis 1 and never over axis 0, and draw random numbers per lane.",
                )
                for name, column in one.info.items():
                    _require(
                        np.allclose(column[0], block.info[name][lane], rtol=_ROUNDING, atol=0.0, equal_nan=True),
                        f"report says {name} = {column[0]} for trial {trial} alone and {block.info[name][lane]} beside others.",
                    )

    @_check("choose and learn leave the state that they are given alone")
    def values(self) -> None:
        steps = [step for step, _ in play_rounds(self.policy, _FIXED, self.rounds, (0, 1))]
        streams = Streams(SEED, (0, 1))
        advice = "Return a new state (state._replace, or arrays that were copied) and change nothing in place."
        for step, following in zip(steps[::6], steps[1::6], strict=False):
            again, asked = self._choose(step.before, step.actions, streams)
            _require(_rows(again) == _rows(step.duels), f"asking again from one state gave another pair. {advice}")
            # Two different outcomes from one state, the right ones last: neither may see the other.
            for outcomes in (-step.outcomes, step.outcomes):
                learnt = self.policy.learn(asked, step.actions, step.duels, outcomes)
            later, _ = self._choose(learnt, following.actions, streams)
            _require(_rows(later) == _rows(following.duels), f"learning twice from one state left traces. {advice}")

    @_check("asking again without learning is allowed")
    def asking_twice(self) -> None:
        state, streams = self._started(4, 3)
        instance = _FRESH.instance(streams)
        asked = []
        for t in range(4):
            duels, state = self._choose(state, instance.actions(t), streams)
            asked.append((instance.actions(t), duels))
        for t in (2, 0, 3):  # answers come late, in another order, and one never
            state = self.policy.learn(state, *asked[t], instance.outcomes(t, asked[t][1]))
        self._choose(state, instance.actions(4), streams)

    @_check("ties are learnt")
    def ties(self) -> None:
        state, streams = self._started(4, 3)
        for step, _ in play_rounds(self.policy, _FIXED, 10, (0, 1, 2)):
            duels, state = self._choose(state, step.actions, streams)
            state = self.policy.learn(state, step.actions, duels, np.array([0, 1, 0]))
        self._choose(state, step.actions, streams)

    @_check("permuted arms give a permuted choice")
    def permuted(self) -> None:
        rng = np.random.default_rng(0)
        arms, theta = rng.normal(size=(2, 7, 3)), rng.normal(size=(2, 3))
        order = np.stack([rng.permutation(7) for _ in range(2)])
        sets = (FiniteActions(arms), FiniteActions(np.take_along_axis(arms, order[:, :, None], axis=1)))
        states, streams = [self._started(3, 2)[0] for _ in range(2)], Streams(SEED, range(2))
        lanes = np.arange(2)
        for t in range(self.rounds):
            played = []
            for i, actions in enumerate(sets):
                duels, states[i] = self._choose(states[i], actions, streams)
                chance = 1 / (1 + np.exp(-np.einsum("ld,ld->l", theta, duels.contrast)))
                noise = np.random.default_rng(t).random(2)
                states[i] = self.policy.learn(states[i], actions, duels, np.where(noise < chance, 1, -1))
                played.append(duels)
            same = (order[lanes, played[1].first] == played[0].first) & (order[lanes, played[1].second] == played[0].second)
            _require(
                same,
                f"in round {t} the same arms in another order gave another pair. Break ties and draw by content, with "
                f"actions.random_priority(streams, name, round); or say knows_arms_by_content = False in the class.",
            )

    @_check("the smallest problems are played")
    def smallest(self) -> None:
        for dim, arms in ((3, 2), (1, 2)):
            run = simulate(
                self.policy, LinearDuels(dim=dim, arms=arms), rounds=self.rounds, trials=3, seed=SEED, progress=False
            )
            _require(np.isfinite(run.regret), f"with {arms} arms of dimension {dim} the regret is not finite.")

    @_check("features of any size, and equal arms, are played")
    def extremes(self) -> None:
        rng = np.random.default_rng(3)
        base = rng.normal(size=(1, 5, 3))
        for what, arms in (
            ("a thousand times as large", 1e3 * base),
            ("a million times smaller", 1e-6 * base),
            ("all the same", np.ones((1, 4, 3))),
            ("all zero", np.zeros((1, 3, 3))),
        ):
            state, streams = self._started(3, 1)
            actions = FiniteActions(arms)
            with np.errstate(over="ignore", under="ignore"):  # exp(1000) is infinite, and a probability of 0 is right
                for t in range(6):
                    duels, state = self._choose(state, actions, streams)
                    state = self.policy.learn(state, actions, duels, np.array([(-1) ** t]))
            for name, column in self.policy.report(state).items():
                _require(np.isfinite(column), f"with features {what}, report says {name} = {column}.")

    @_check("report has one finite number per lane")
    def reports(self) -> None:
        run = self._run(_FIXED, range(5))
        for name, column in run.info.items():
            _require(np.shape(column) == (5,), f"report[{name!r}] must be (5,), one number per lane; got {np.shape(column)}.")
            _require(np.isfinite(column), f"report[{name!r}] is not finite: {column}.")

    @_check("estimates have one utility per arm")
    def estimates(self) -> None:
        *_, (step, state) = play_rounds(self.policy, _FIXED, 5, (0, 1, 2))
        for name, shape in (("estimated_utilities", (3, 8)), ("recommend", (3,))):
            method = getattr(self.policy, name, None)
            if method is not None:
                got = np.shape(method(state, step.actions))
                _require(got == shape, f"{name} must return {shape}; got {got}.")

    @_check("a saved state goes on as if nothing had happened")
    def saved(self) -> None:
        for environment in (_FIXED, _FRESH):
            straight = [_rows(step.duels) for step, _ in play_rounds(self.policy, environment, self.rounds, TRIALS)]
            stopped, state, first_round = [], None, 0
            for until in (1, self.rounds // 2, self.rounds):
                part = list(play_rounds(self.policy, environment, until - first_round, TRIALS, state, first_round))
                stopped += [_rows(step.duels) for step, _ in part]
                state, first_round = from_bytes(to_bytes(part[-1][1])), until
            _require(
                stopped == straight, "after saving and loading, other pairs are played. All that counts must be in the state."
            )


@dataclass(frozen=True)
class _EnvironmentChecks:
    environment: Environment

    def _instance(self, trials: Sequence[int], seed: int = SEED) -> Any:
        return self.environment.instance(Streams(seed, trials))

    @_check("action sets have a lane per trial and the dimension that is promised")
    def shapes(self) -> None:
        instance = self._instance(TRIALS)
        for t in range(3):
            actions = instance.actions(t)
            got = (actions.lanes, actions.dim)
            wanted = (len(TRIALS), self.environment.dim)
            _require(got == wanted, f"actions({t}) must have {wanted[0]} lanes of dimension {wanted[1]}; got {got}.")
            _require(actions.digest == instance.actions(t).digest, f"actions({t}) differ from one call to the next.")
            outcomes = instance.outcomes(t, random_duels(actions, t))
            _require(
                np.shape(outcomes) == (3,) and np.isin(outcomes, (-1, 0, 1)).all(),
                f"outcomes must be (3,) of +1, -1 and 0; got {outcomes!r}.",
            )

    @_check("the same seed gives the same numbers, and another one others")
    def same_seed(self) -> None:
        def numbers(seed: int) -> list[Any]:
            instance = self._instance(range(40), seed)
            duels = [random_duels(instance.actions(t), t) for t in range(3)]
            return [*(np.asarray(instance.outcomes(t, duel)).tolist() for t, duel in enumerate(duels))]

        advice = "Draw every number from streams, under a name and a round."
        _require(numbers(SEED) == numbers(SEED), f"two instances of one seed differ. {advice}")
        _require(numbers(SEED) != numbers(SEED + 1), f"another seed gives the same votes. {advice}")

    @_check("a trial is the same alone and beside others")
    def alone(self) -> None:
        block = self._instance(TRIALS)
        for lane, trial in enumerate(TRIALS):
            one = self._instance([trial])
            for t in range(3):
                together, apart = block.actions(t), one.actions(t)
                if isinstance(together, FiniteActions):
                    _require(np.array_equal(apart.features[0], together.features[lane]), f"trial {trial} alone has other arms.")
                duels, here = random_duels(together, t), slice(lane, lane + 1)
                mine = Duels(duels.first[here], duels.second[here], duels.features[here])
                _require(one.outcomes(t, mine)[0] == block.outcomes(t, duels)[lane], f"trial {trial} alone has other votes.")
                if hasattr(block, "delay"):
                    waits = one.delay(t, mine)[0], block.delay(t, duels)[lane]
                    _require(
                        waits[0] == waits[1], f"an answer of trial {trial} takes {waits[0]} alone, {waits[1]} beside others."
                    )
                costs = zip(_regrets(one, apart, mine), _regrets(block, together, duels), strict=True)
                for (name, single), (_, many) in costs:
                    _require(
                        np.allclose(single[0], many[lane], rtol=1e-12, atol=1e-14, equal_nan=True),
                        f"{name} regret of trial {trial} is {single[0]} alone and {many[lane]} beside others.",
                    )

    @_check("a round that is asked twice gives the same votes")
    def asked_twice(self) -> None:
        instance = self._instance(range(30))
        duels = random_duels(instance.actions(0), 1)
        before = [np.asarray(instance.outcomes(t, duels)).tolist() for t in range(4)]
        for t in range(4):  # another policy asks about other pairs in between
            instance.outcomes(t, random_duels(instance.actions(t), 9))
        after = [np.asarray(instance.outcomes(t, duels)).tolist() for t in range(4)]
        _require(before == after, "votes depend on what was asked before. Draw them from streams.uniforms(name, round).")
        _require(len({tuple(row) for row in before}) > 1, "every round has the same votes. Name random numbers by the round.")

    @_check("regret is one number per lane, and what both arms cost is never negative")
    def regret(self) -> None:
        instance = self._instance(range(20))
        for t in range(5):
            actions = instance.actions(t)
            for name, column in _regrets(instance, actions, random_duels(actions, t)):
                _require(
                    np.shape(column) == (20,), f"{name} regret must be (20,), one number per lane; got {np.shape(column)}."
                )
                # Others may be: without an arm that beats all others, the best one by utilities loses to some.
                if name in ("average", "weak"):
                    bad = f"{name} regret is negative in round {t}: {np.min(column)}."
                    _require(np.isnan(column) | (column >= -1e-12), bad)

    @_check("votes follow win_probability")
    def law(self) -> None:
        instance = self._instance([0])
        method = getattr(instance, "win_probability", None)
        if method is None:
            return
        duels = random_duels(instance.actions(0), 3)
        answers, chances = np.empty(_VOTES), np.empty(_VOTES)
        for t in range(_VOTES):
            chance = method(t, duels)
            _require(np.shape(chance) == (1,), f"win_probability must be (lanes,); got {np.shape(chance)}.")
            answers[t], chances[t] = instance.outcomes(t, duels)[0], chance[0]
        if np.isnan(chances).any():
            return  # it cannot tell
        wins, expected = int((answers == 1).sum()), float(chances.sum())
        if (chances == chances[0]).all():
            p_value = binomtest(wins, _VOTES, float(chances[0])).pvalue
        else:  # the truth moves: the sum of coins that differ is close to normal
            p_value = 2.0 * norm.sf(abs(wins - expected) / np.sqrt((chances * (1.0 - chances)).sum()))
        _require(
            p_value > FALSE_ALARM,
            f"in {_VOTES} votes the first candidate won {wins} times, and win_probability expects {expected:.0f}.",
        )


def _regrets(instance: Any, actions: ActionSet, duels: Duels) -> list[tuple[str, FloatArray]]:
    """What a pair cost, by kind; a plain array is the average."""
    cost = instance.regret(actions, duels)
    return list(cost.kinds().items()) if isinstance(cost, Regret) else [("average", np.asarray(cost))]
