"""Wrong uses of the public face: each is refused with an error of duelist's own whose text names what was wrong."""

# ruff: noqa: ARG002 - wrong classes have right signatures
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse

import duelist
from duelist.cli.main import main
from duelist.core import DuelistError
from duelist.environments import Regret, environment_class
from duelist.experiments import EnvironmentSpec, PolicySpec, Spec, load_spec
from duelist.experiments.sweep.spec import parse_spec
from duelist.history import duels_between
from duelist.policies import Policy, policy_class
from duelist.testing import check_environment, check_policy

ENV: Any = duelist.LinearDuels(dim=3, arms=6)
ARMS = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
Use = Callable[[], Any]


class Wrong(NamedTuple):
    """One wrong use, and a pattern that its error must match."""

    name: str
    use: Use
    says: str


def simulate(policy: Any, environment: Any = ENV, **settings: Any) -> Any:
    return duelist.simulate(policy, environment, **{"rounds": 4, "trials": 2, "workers": 1, "progress": False, **settings})


@dataclass(frozen=True, kw_only=True)
class Mine(Policy[int]):
    """Returns whatever it is given."""

    answer: Any = None

    def start(self, problem: Any, streams: Any) -> int:
        return 0

    def choose(self, state: int, actions: Any, streams: Any) -> Any:
        return self.answer(actions) if callable(self.answer) else self.answer

    def learn(self, state: int, actions: Any, duels: Any, outcomes: Any) -> int:
        return state


class NoReport:
    """Forgot a method."""

    start, choose, learn = Mine.start, Mine.choose, Mine.learn


class NotADataclass(Policy[int]):
    start, choose, learn = Mine.start, Mine.choose, Mine.learn


@dataclass(frozen=True, kw_only=True)
class Votes:
    """An environment whose instance answers as it is told."""

    outcome: Any = 1
    cost: Any = None
    dim: Any = 3

    def instance(self, streams: Any) -> Any:
        return VotesInstance(self, streams)


class VotesInstance:
    def __init__(self, recipe: Votes, streams: Any) -> None:
        self.recipe, self.inner = recipe, ENV.instance(streams)

    def actions(self, round_: int) -> Any:
        return self.inner.actions(round_)

    def outcomes(self, round_: int, duels: Any) -> Any:
        return np.full(len(duels.first), self.recipe.outcome)

    def regret(self, actions: Any, duels: Any) -> Any:
        return self.recipe.cost if self.recipe.cost is not None else Regret(*np.zeros((3, len(duels.first))))


class NoDim:
    instance = Votes.instance


def rows(first: Any, second: Any) -> Any:
    """A policy's answer with these rows."""
    return lambda actions: (duels_between(actions, np.array([0, 0]), np.array([1, 1]))._replace(first=first, second=second), 0)


def agent(**settings: Any) -> Any:
    return duelist.Agent(duelist.FGTS(), **{"dim": 3, **settings})


def answered(winner: Any) -> Any:
    live = agent()
    return live.learn(live.choose(ARMS), winner)


def of_another() -> Any:
    one, other = agent(), agent()
    duel = one.choose(ARMS)
    other.choose(ARMS)
    other.learn(duel, "first")


def answered_twice() -> None:
    live = agent()
    duel = live.choose(ARMS)
    live.learn(duel, "first")
    live.learn(duel, "second")


def posterior(**settings: Any) -> Any:
    given = {"contrasts": [[1.0, 0.0], [0.0, 1.0]], "outcomes": [1, -1], "draws": 20, "chains": 1, **settings}
    return duelist.sample_posterior(given.pop("contrasts"), given.pop("outcomes"), **given)


def spec(**parts: Any) -> Any:
    return Spec(**{"name": "wrong", "policies": [PolicySpec(policy="Uniform")], "rounds": 5, "trials": 2, **parts})


ANY: Any = duelist
SPARSE: Any = scipy.sparse.csr_matrix(np.eye(3))
POLICIES = [
    Wrong("an alpha that mu overrides", lambda: duelist.FGTS(alpha=5, mu=0), "alpha would be ignored; got alpha=5 and mu=0"),
    Wrong("a number as the prior", lambda: ANY.FGTS(prior=2.0), "prior must be one of Gaussian.*got 2.0"),
    Wrong("the class of a prior", lambda: ANY.FGTS(prior=duelist.Gaussian), r"write Gaussian\(\) with brackets"),
    Wrong("the class of a prior, listed models", lambda: ANY.FiniteModels(prior=duelist.Gaussian), "prior must be a prior"),
    Wrong("a negative alpha", lambda: duelist.FGTS(alpha=-1), "alpha must be .* at least 0"),
    Wrong("a text as alpha", lambda: ANY.FGTS(alpha="much"), "alpha must be a finite number"),
    Wrong("a typo in eta", lambda: ANY.FGTS(eta="theroy"), "Did you mean 'theory'"),
    Wrong("an eta of nothing", lambda: duelist.FGTS(eta=0), "eta must be .* above 0"),
    Wrong("a sampler that is not there", lambda: duelist.FGTS(sampler="male"), "Did you mean 'mala'"),
    Wrong("a sampler in capitals", lambda: duelist.FGTS(sampler="MALA "), "Did you mean 'mala'"),
    Wrong("a typo in same_arm", lambda: duelist.FGTS(same_arm="runnerup"), "Did you mean 'runner-up'"),
    Wrong("a discount above 1", lambda: duelist.FGTS(discount=1.5), "discount must be .* at most 1"),
    Wrong("half a horizon", lambda: ANY.FGTS(horizon=0.5), "horizon must be a whole number"),
    Wrong("theory without a bound", lambda: duelist.FGTS(mu="theory"), "the prior has none"),
    Wrong("a negative radius", lambda: duelist.MaxInP(radius=-1), "radius must be"),
    Wrong("a flat prior", lambda: duelist.Gaussian(scale=float("inf")), "needs a finite scale"),
    Wrong("a ball of no size", lambda: duelist.UniformBall(radius=0), "radius must be"),
    Wrong("a NaN", lambda: duelist.VACDB(scale=float("nan")), "scale must be"),
    Wrong("a radius for other lanes", lambda: simulate(duelist.MaxInP(radius=(1.0, 2.0, 3.0))), r"one per lane \(2\); got 3"),
    Wrong("a name that is not there", lambda: policy_class("fgst"), "Did you mean 'FGTS'"),
    Wrong("a module that is not there", lambda: policy_class("nowhere:Mine"), "no module 'nowhere'"),
    Wrong("a file that is not there", lambda: policy_class("nowhere.py:Mine"), "there is no file"),
    Wrong("an environment as a policy", lambda: policy_class(duelist.LinearDuels), "LinearDuels has no start"),
    Wrong("a class that is no dataclass", lambda: policy_class(NotADataclass), "@dataclass"),
]
ENVIRONMENTS = [
    Wrong("one arm", lambda: duelist.LinearDuels(dim=3, arms=1), "arms must be .* at least 2"),
    Wrong("more arms than corners", lambda: duelist.LinearDuels(dim=3, arms=9), "at most 2.dim"),
    Wrong("no dimension", lambda: duelist.LinearDuels(dim=0), "dim must be"),
    Wrong("a typo in the geometry", lambda: ANY.LinearDuels(geometry="spere"), "Did you mean 'sphere'"),
    Wrong("a typo in the link", lambda: ANY.LinearDuels(link="logit"), "Did you mean 'logistic'"),
    Wrong("flips of more than half", lambda: duelist.LinearDuels(flips=0.7), "flips must be"),
    Wrong("a norm of nothing", lambda: duelist.LinearDuels(theta_norm=0), "theta_norm must be"),
    Wrong("an environment that is not there", lambda: environment_class("lineardules"), "Did you mean 'LinearDuels'"),
    Wrong("a policy as an environment", lambda: environment_class(duelist.FGTS), "FGTS has no instance"),
]
SIMULATE = [
    Wrong("the class of a policy", lambda: simulate(duelist.FGTS), r"write FGTS\(\) with brackets"),
    Wrong("the name of a policy", lambda: simulate("FGTS"), "got the text 'FGTS'"),
    Wrong(
        "policy and environment swapped", lambda: simulate(ENV, duelist.Uniform()), "policy comes first, then the environment"
    ),
    Wrong("the class of an environment", lambda: simulate(duelist.Uniform(), duelist.LinearDuels), r"write LinearDuels\(\)"),
    Wrong("the name of an environment", lambda: simulate(duelist.Uniform(), "LinearDuels"), "got the text 'LinearDuels'"),
    Wrong("two policies", lambda: simulate(duelist.Uniform(), duelist.FGTS()), "which is a policy"),
    Wrong("nothing as a policy", lambda: simulate(None), "NoneType has no start"),
    Wrong(
        "a policy without report", lambda: simulate(NoReport()), "NoReport has no report. Inherit from duelist.policies.Policy"
    ),
    Wrong("an environment without dim", lambda: simulate(duelist.Uniform(), NoDim()), "it has no `dim`"),
    Wrong(
        "a dim that is no number", lambda: simulate(duelist.Uniform(), Votes(dim="3")), "dim of Votes must be a whole number"
    ),
    Wrong("choose returns rows", lambda: simulate(Mine(answer=(0, 1))), r"Mine\.choose must return \(duels, state\).*int, int"),
    Wrong("choose returns nothing", lambda: simulate(Mine()), r"Mine\.choose must return \(duels, state\).*None"),
    Wrong("a row of 99", lambda: simulate(Mine(answer=rows(np.array([0, 99]), np.array([1, 1])))), "from 0 to 5; got .*99"),
    Wrong("a row of -1", lambda: simulate(Mine(answer=rows(np.array([0, -1]), np.array([1, 1])))), "`first` .* from 0 to 5"),
    Wrong("rows of one lane", lambda: simulate(Mine(answer=rows(np.array([0]), np.array([1])))), r"shape \(2,\)"),
    Wrong("half a row", lambda: simulate(Mine(answer=rows(np.array([0.5, 0]), np.array([1, 1])))), "whole numbers `first`"),
    Wrong("rows as a list", lambda: simulate(Mine(answer=rows([0, 0], np.array([1, 1])))), "whole numbers `first`"),
    Wrong("an outcome of 2", lambda: simulate(duelist.Uniform(), Votes(outcome=2)), "outcomes"),
    Wrong("an outcome of one half", lambda: simulate(duelist.Uniform(), Votes(outcome=0.5)), "outcomes"),
    Wrong("no rounds", lambda: simulate(duelist.Uniform(), rounds=0), "rounds must be .* at least 1"),
    Wrong("half a round", lambda: simulate(duelist.Uniform(), rounds=2.5), "rounds must be a whole number"),
    Wrong("rounds that fill the machine", lambda: simulate(duelist.Uniform(), rounds=10**11), "would need .* GiB of memory"),
    Wrong("no trials", lambda: simulate(duelist.Uniform(), trials=0), "trials must be"),
    Wrong("an empty list of trials", lambda: simulate(duelist.Uniform(), trials=[]), "at least one trial"),
    Wrong("a negative seed", lambda: simulate(duelist.Uniform(), seed=-1), "seed must be"),
    Wrong("no workers", lambda: simulate(duelist.Uniform(), workers=0), "workers must be"),
    Wrong("compare with a name", lambda: duelist.compare(["FGTS"], ENV, rounds=3), "'FGTS'"),  # type: ignore[list-item]
    Wrong("compare with a class", lambda: duelist.compare([duelist.FGTS], ENV, rounds=3), "brackets"),  # type: ignore[list-item]
    Wrong("compare nothing", lambda: duelist.compare([], ENV, rounds=3), "at least one policy"),
    Wrong("compare one twice", lambda: duelist.compare([duelist.Uniform(), duelist.Uniform()], ENV, rounds=3), "names"),
    Wrong("check the class of a policy", lambda: check_policy(duelist.FGTS), r"write FGTS\(\)"),  # type: ignore[arg-type]
    Wrong("check a policy as an environment", lambda: check_environment(ANY.FGTS()), "which is a policy"),
]
AGENT = [
    Wrong("an agent of a class", lambda: duelist.Agent(ANY.FGTS, dim=3), "FGTS"),
    Wrong("an agent of a name", lambda: duelist.Agent(ANY.__name__, dim=3), "policy must be"),
    Wrong("an agent of an environment", lambda: duelist.Agent(ENV, dim=3), "policy must be"),
    Wrong("an agent without a dimension", lambda: agent(dim=0), "dim must be"),
    Wrong("features of another dimension", lambda: agent().choose([[1.0, 2.0], [0.0, 1.0]]), "dim"),
    Wrong("one candidate", lambda: agent().choose([[1.0, 2.0, 3.0]]), "two candidates"),
    Wrong("features with a NaN", lambda: agent().choose([[1.0, 2.0, np.nan], [0.0, 1.0, 0.0]]), r"nan at index \(0, 2\)"),
    Wrong("sparse features", lambda: agent().choose(scipy.sparse.csr_matrix(np.eye(3))), r"features\.toarray\(\)"),
    Wrong("a sparse set", lambda: duelist.FiniteActions(scipy.sparse.coo_array(np.eye(3))), r"\.toarray\(\)"),  # type: ignore[arg-type]
    Wrong("complex features", lambda: agent().choose(np.eye(3) * 1j), "real"),
    Wrong("rows of several lengths", lambda: agent().choose([[1.0], [1.0, 2.0]]), "same length"),
    Wrong("features of words", lambda: agent().choose([["a", "b", "c"], ["d", "e", "f"]]), "features"),
    Wrong("a flat list", lambda: agent().choose([1.0, 2.0, 3.0]), "features must be"),
    Wrong("a winner that did not play", lambda: answered(7), "winner"),
    Wrong("a side that is not there", lambda: answered("rigth"), "Did you mean 'right'"),
    Wrong("no winner at all", lambda: answered(None), "winner"),
    Wrong("a winner that is half", lambda: answered(0.5), "winner"),
    Wrong("a duel of another agent", of_another, "agent"),
    Wrong("a duel that is answered twice", answered_twice, "learnt|answered"),
    Wrong("a duel that was never asked", lambda: agent().learn(99, "first"), "99"),
    Wrong(
        "live, choose returns rows", lambda: duelist.Agent(Mine(answer=(0, 1)), dim=3).choose(ARMS), r"Mine\.choose must return"
    ),
    Wrong(
        "live, choose returns a number", lambda: duelist.Agent(Mine(answer=3), dim=3).choose(ARMS), r"Mine\.choose must return"
    ),
    Wrong("prediction for another dimension", lambda: agent().predict([[1.0]]), "dim|features"),
    Wrong("an interval of 150 %", lambda: agent().predict(ARMS, level=1.5), "level"),
    Wrong("votes of another length", lambda: agent().import_votes(ARMS, ARMS, [1, -1]), "outcomes"),
    Wrong("votes of 2", lambda: agent().import_votes(ARMS, ARMS, [1, 2, -1]), "outcomes"),
]
FEATURES = [
    Wrong("a sparse context", lambda: duelist.features.concatenate(SPARSE, ARMS), r"\.toarray\(\)"),
    Wrong("sparse arms", lambda: duelist.features.outer([1.0, 2.0], SPARSE), r"\.toarray\(\)"),
    Wrong(
        "a sparse table to fit",
        lambda: duelist.features.PrincipalComponents.fit(contexts=SPARSE, n_components=2),
        r"\.toarray\(\)",
    ),
    Wrong(
        "no components", lambda: duelist.features.PrincipalComponents.fit(contexts=np.eye(3), n_components=0), "n_components"
    ),
    Wrong("a context with a NaN", lambda: duelist.features.append_one([np.nan]), "finite"),
]
POSTERIOR = [
    Wrong("a sampler that is not there", lambda: posterior(sampler="nuts"), "sampler must be one of"),
    Wrong("outcomes of another length", lambda: posterior(outcomes=[1]), "outcomes"),
    Wrong("outcomes of zeros and ones", lambda: posterior(outcomes=[0, 1]), "outcomes"),
    Wrong("contrasts with infinity", lambda: posterior(contrasts=[[np.inf, 0.0], [0.0, 1.0]]), "contrasts must be finite"),
    Wrong("sparse contrasts", lambda: posterior(contrasts=scipy.sparse.csr_matrix(np.eye(2))), r"contrasts\.toarray\(\)"),
    Wrong("no draws", lambda: posterior(draws=0), "draws must be"),
    Wrong("no chains", lambda: posterior(chains=0), "chains must be"),
    Wrong("a number as the prior", lambda: posterior(prior=2.0), "prior must be"),
]
SPECS = [
    Wrong("a policy that is not there", lambda: PolicySpec(policy="fgst"), "Did you mean 'FGTS'"),
    Wrong(
        "a parameter that is not there", lambda: PolicySpec(policy="FGTS", parameters={"Aplha": 1.0}), "Did you mean 'alpha'"
    ),
    Wrong("an instance in place of a class", lambda: PolicySpec(policy=duelist.FGTS()), "policy must be one of"),
    Wrong("an environment in place of a policy", lambda: PolicySpec(policy=duelist.LinearDuels), "has no start"),
    Wrong("a kind that is not there", lambda: EnvironmentSpec(kind="lineardule"), "Did you mean 'LinearDuels'"),
    Wrong("a value of another kind", lambda: EnvironmentSpec(parameters={"dim": "five"}), "dim must be a whole number"),
    Wrong("a grid of nothing", lambda: PolicySpec(policy="FGTS", grid={"alpha": []}), "at least one value"),
    Wrong("tuning what cannot be tuned", lambda: PolicySpec(policy="FGTS", tune={"horizon": {"a": [1.0]}}), "cannot be tuned"),
    Wrong("a spec without policies", lambda: spec(policies=[]), "at least one policy"),
    Wrong("a spec with a slash in its name", lambda: spec(name="a/b"), "letters, digits"),
    Wrong("a spec that is not TOML", lambda: parse_spec("rounds ="), "not TOML"),
    Wrong("a spec that is not there", lambda: load_spec("nowhere.toml"), "cannot be read"),
]


@pytest.mark.parametrize(
    "wrong",
    [*POLICIES, *ENVIRONMENTS, *SIMULATE, *AGENT, *FEATURES, *POSTERIOR, *SPECS],
    ids=lambda wrong: wrong.name.replace(" ", "-"),
)
def test_it_is_refused_and_the_error_names_it(wrong: Wrong) -> None:
    with pytest.raises(DuelistError, match=wrong.says):
        wrong.use()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "--policy", "fgst"], "Did you mean 'FGTS'"),
        (["run", "--policy", "FGTS:alpha"], "name=value"),
        (["run", "--policy", "FGTS(alpha=0"], "brackets must match"),
        (["run", "--policy", "nowhere.py:Mine"], "there is no file"),
        (["run", "--policy", "LinearDuels"], "policy must be one of"),
        (["run", "--policy", "FGTS(alpha=5, mu=0)"], "alpha would be ignored"),
        (["run", "--environment", "LinearDule"], "Did you mean 'LinearDuels'"),
        (["run", "--environment", "LinearDuels(dmi=3)"], "Did you mean 'dim'"),
        (["run", "--environment", "LinearDuels(dim=three)"], "dim must be a whole number"),
        (["run", "--environment", "FGTS"], "environment must be one of"),
        (["run", "--environment", "LinearDuels", "--dim", "5"], "--dim is for the default problem"),
        (["run", "--rounds", "many"], "not a valid integer"),
        (["run", "--rounds", "0"], "rounds must be"),
        (["policies", "Foresigth"], "Did you mean 'Foresight'"),
        (["rnu"], "No such command|Did you mean"),
        (["reproduce", "figure3"], "figure"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_the_command_line_refuses_it_in_a_sentence(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code not in (0, None)
    printed = " ".join(capsys.readouterr().err.split())
    assert "Traceback" not in printed
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(printed)


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"PK\x03\x04broken", b"\x80\x04K\x01."], ids=["empty", "text", "zip", "pickle"]
)
def test_a_file_that_is_no_agent_is_refused_in_words_of_our_own(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "agent.npz"
    path.write_bytes(content)
    with pytest.raises(DuelistError, match=f"got {len(content)} byte") as caught:
        duelist.Agent.load(path)
    assert "unsafe" not in str(caught.value)
    assert "pickle" not in str(caught.value)


def test_a_missing_file_and_another_policy_are_named(tmp_path: Path) -> None:
    with pytest.raises(DuelistError, match=r"nowhere\.npz"):
        duelist.Agent.load(tmp_path / "nowhere.npz")
    agent().save(tmp_path / "agent.npz")
    with pytest.raises(DuelistError, match="the saved agent plays"):
        duelist.Agent.load(tmp_path / "agent.npz", policy=duelist.Uniform())


@pytest.mark.parametrize(
    ("name", "near"), [("FGST", "FGTS"), ("fgts", "FGTS"), ("lineardules", "LinearDuels"), ("Simulate", "simulate")]
)
def test_a_name_that_is_not_there_is_answered_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'duelist' has no attribute '{name}'. Did you mean '{near}'"):
        getattr(duelist, name)


def test_an_alpha_that_mu_overrides_is_read_from_old_files_as_it_was_played() -> None:
    from duelist.policies import policy_from_mapping

    assert policy_from_mapping({"kind": "FGTS", "alpha": 5.0, "mu": 0.0}) == duelist.FGTS(mu=0.0)
