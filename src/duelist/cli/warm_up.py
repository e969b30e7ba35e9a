"""`duelist warm-up`: compile everything now, so that no request waits later. For the last step of a container image."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.environments.continuous import NAMED, ContinuousDuels
from duelist.environments.linear import GEOMETRIES, LinearDuels
from duelist.experiments.simulation import simulate
from duelist.features import blocks
from duelist.history.statistics import Statistics
from duelist.kernels.cache import count_compilations, kept_in
from duelist.kernels.linalg.factors import LARGE
from duelist.kernels.rules.pairs import best_pairs, pair_geometry
from duelist.live.agent import Agent
from duelist.live.duel import Winner
from duelist.policies.algorithms.confidence.colstim import CoLSTIM
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.sampling.foresight import Foresight
from duelist.policies.algorithms.slates.listwise_fgts import ListwiseFGTS
from duelist.policies.algorithms.uniform import Uniform
from duelist.policies.parts.confidence import EXACT_ROWS
from duelist.policies.registry import POLICIES
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Gaussian, Prior, UniformBall
from duelist.preferences.fit import fit
from duelist.samplers.posterior import FeelGood, sample_posterior
from duelist.samplers.registry import SAMPLERS
from duelist.service.insight.leaderboard import posterior_draws

_DIM, _ARMS = 4, 4  # every geometry has that many arms
_ROUNDS = 80  # past random first duels, and long enough to add to an expansion of a long history
# A history that is longer than what is kept exactly, and one that forgets; each with the tilt and without.
_HISTORIES: tuple[dict[str, Any], ...] = ({}, {"exact_rounds": 8}, {"discount": 0.9})
_PRIORS: tuple[Prior, ...] = (Gaussian(), UniformBall(1.0))
_ANSWERS: tuple[Winner, ...] = ("first", "second", "tie")
_TILTS: tuple[dict[str, Any], ...] = ({}, {"mu": 0.0}, {"alpha": 10.0})  # none, and one so strong that chains jump


@click.command("warm-up")
@click.option("--quiet", is_flag=True, help="Print nothing.")
def warm_up(quiet: bool) -> None:
    """Compile every kernel that ordinary use reaches and keep it on disk, as in the last step of a container image.

    Where: in NUMBA_CACHE_DIR if that is set, else beside the package, else in the user's cache folder.
    """
    started = time.perf_counter()
    steps = list(_steps())
    with _progress(quiet) as progress, count_compilations() as kernels:
        bar = progress.add_task("", total=len(steps))
        for title, play in steps:
            progress.update(bar, description=title)
            _try(play)
            progress.advance(bar)
    if not quiet:
        folder = kept_in()
        where = "No folder can be written to, so they are not kept." if folder is None else f"They are kept in {folder}."
        click.echo(f"Compiled {kernels.count} kernels in {time.perf_counter() - started:.0f} s. {where}")


def _progress(quiet: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True, quiet=quiet)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _try(play: Callable[[], object]) -> None:
    """Play, unless the policy does not take the action set: then no user will wait for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # draws this short are poor, which is no news
        try:
            play()
        except InvalidInputError:
            return


def _steps() -> Iterator[tuple[str, Callable[[], object]]]:
    """What is played, with a title each."""
    yield from _simulations()
    for name, policy in POLICIES.items():
        yield f"{name}, live", partial(_play_live, policy())
    yield "FGTS, live, long history", partial(_play_live, FGTS(exact_rounds=8))
    for name in SAMPLERS:
        for prior, tilted in product(_PRIORS, (False, True)):
            title = f"posterior by {name}, {type(prior).__name__}{', tilted' if tilted else ''}"
            yield title, partial(_sample, name, prior, tilted=tilted)
    yield "leaderboard", _leaderboard
    yield "slates", lambda: _simulate(ListwiseFGTS(choices=3), LinearDuels(dim=_DIM, arms=_ARMS), rounds=3)
    yield "rules in NumPy", _numpy_rule
    large = LinearDuels(dim=LARGE, arms=_ARMS, fresh_arms=True)
    yield "large matrices", lambda: _simulate(FGTS(), large)
    yield "large fits", lambda: _simulate(CoLSTIM(), large, rounds=2)
    yield "fits of many votes", partial(_follow_many_votes, CoLSTIM())
    yield "scales of many votes", partial(_follow_many_votes, Foresight())
    yield "one context in blocks", _choose_among_blocks
    yield "saved agents", _save_and_load


def _simulations() -> Iterator[tuple[str, Callable[[], object]]]:
    fixed, fresh = (LinearDuels(dim=_DIM, arms=_ARMS, fresh_arms=each) for each in (False, True))
    sets: dict[str, Any] = {name: ContinuousDuels(dim=_DIM, actions=cast(Any, name)) for name in NAMED}
    for geometry in GEOMETRIES:
        yield (
            f"arms: {geometry}",
            partial(_simulate, Uniform(), LinearDuels(dim=_DIM, arms=_ARMS, geometry=cast(Any, geometry))),
        )
    for name, policy in POLICIES.items():
        for title, environment in {"fixed arms": fixed, "fresh arms": fresh, **sets}.items():
            yield f"{name}, {title}", partial(_simulate, policy(), environment)
    for sampler, history, tilt in product(SAMPLERS, _HISTORIES, _TILTS):
        title = f"FGTS by {sampler}, {_in_words({**history, **tilt})}"
        yield title, partial(_simulate_fgts, fresh if history else fixed, sampler=sampler, **history, **tilt)


def _in_words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "as it comes"


def _simulate_fgts(environment: Any, **settings: Any) -> None:
    _simulate(FGTS(**settings), environment)


def _simulate(policy: Any, environment: Any, rounds: int = _ROUNDS) -> None:
    simulate(policy, environment, rounds=rounds, trials=1, workers=1, progress=False)


def _play_live(policy: Any) -> None:
    random = np.random.default_rng(0)
    agent = Agent(policy, dim=_DIM)
    for _ in range(_ROUNDS):
        # Answers come late: what was learnt since the last question is then more than one duel.
        asked = [agent.choose(random.standard_normal((_ARMS, _DIM))) for _ in _ANSWERS]
        for duel, answer in zip(asked, _ANSWERS, strict=True):
            agent.learn(duel, winner=answer)
    _ = agent.choose(np.eye(_DIM)).propensity


def _follow_many_votes(policy: Any) -> None:
    random = np.random.default_rng(0)
    agent = Agent(policy, dim=_DIM)
    agent.learn(agent.choose(np.eye(_DIM)), winner="first")
    first, second = random.standard_normal((2, EXACT_ROWS + 1, _DIM))
    agent.import_votes(first, second, np.ones(len(first)))
    agent.learn(agent.choose(random.standard_normal((_ARMS, _DIM))), winner="first")


def _choose_among_blocks() -> None:
    agent = Agent(FGTS(), dim=_DIM)
    for answer in _ANSWERS:
        agent.learn(agent.choose(blocks(np.ones(1), n_arms=_DIM), voter="anybody"), winner=answer)


def _save_and_load() -> None:
    agent = Agent(FGTS(), dim=_DIM)
    agent.learn(agent.choose(np.eye(_DIM)), winner="first")
    with TemporaryDirectory() as folder:
        agent.save(Path(folder) / "agent")
        Agent.load(Path(folder) / "agent")


def _sample(sampler: str, prior: Prior, *, tilted: bool) -> None:
    contrasts = np.eye(_DIM)
    tilt = FeelGood(mu=0.1, action_sets=np.eye(_DIM), adversaries=contrasts) if tilted else None
    sample_posterior(contrasts, np.ones(_DIM), prior=prior, feel_good=tilt, sampler=sampler, chains=2, draws=8, warmup=1)


def _numpy_rule() -> None:
    """What people call who write a rule or fit a table by themselves."""
    arms = FiniteActions(np.eye(_DIM))
    utilities, widths = pair_geometry(arms.columns, np.zeros((1, _DIM)), np.eye(_DIM)[None])
    best_pairs(widths, utilities, utilities)
    fit(_few_votes(), ridge=np.ones(1), weight=np.ones(1), start=np.zeros((1, _DIM)))


def _leaderboard() -> None:
    potential = LinearPotential.of(Gaussian(), _few_votes(), eta=np.ones(1), chains=4, observations=_DIM)
    posterior_draws(potential, seed=0)


def _few_votes() -> Statistics:
    return Statistics(
        contrasts=np.eye(_DIM)[None],
        totals=np.ones((1, _DIM)),
        losses=np.zeros((1, _DIM)),
        n_rows=np.array([_DIM]),
        sets=np.zeros((1, 0, _DIM, 0)),
        repeats=np.zeros(0),
        adversary=np.zeros((1, 2, _DIM)),
    )
