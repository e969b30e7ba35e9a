"""Writes the golden files in this folder. Run it with version 0.1.0 of duelist installed, with all its extras.

It is kept so that anybody can see how the files were made. No test runs it, and another version refuses to. It finds the
parts of duelist by name and only when it runs, so that it can be imported and checked beside any version.
"""

from __future__ import annotations

import gzip
import importlib
import json
import math
import platform
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
VERSION = "0.1.0"
A, B = 40, 60  # duels asked when an agent is saved
ASK, TELL, SKIP = "ask", "tell", "skip"
SNAPSHOT_EVERY = 15

Plain = dict[str, Any]
Step = list[Any]


def old(place: str) -> Any:
    """Something of version 0.1.0: "agent.agent:Agent" is the class Agent of the module duelist.agent.agent."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"duelist.{module}"), name)


@dataclass(frozen=True, kw_only=True)
class Case:
    """An agent to be played.

    Attributes:
        policy: the hyper-parameters.
        sets: action sets in plain words, see `action_set`.
        fresh: True where every ask offers the next set, and False where most offer the first.
    """

    policy: Any
    sets: list[Plain]
    dim: int = 4
    seed: int = 11
    horizon: int | None = None
    max_pending: int = 8
    fresh: bool = False
    answers: bool = True

    @property
    def settings(self) -> Plain:
        """What an agent is made with, besides its policy."""
        return {"dim": self.dim, "seed": self.seed, "horizon": self.horizon, "max_pending": self.max_pending}


# -- action sets --------------------------------------------------------------------------------------------------------------


def finite(seed: int, dim: int = 4, arms: int = 6) -> Plain:
    """A finite set of random arms, with few digits so that they are short to write down."""
    rng = np.random.default_rng(seed)
    return {"kind": "FiniteActions", "features": rng.uniform(-1.2, 1.2, (arms, dim)).round(2).tolist()}


def fresh_sets(seed: int, n: int = B, dim: int = 4, arms: int = 5) -> list[Plain]:
    """A set for every ask, not all of one size."""
    return [finite(1000 * seed + i, dim, arms + (i % 7 == 3)) for i in range(n)]


def continuous_sets() -> dict[str, Plain]:
    """One of each kind, all of dimension 3."""
    corners = [[float(i), float(j), float(k)] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    return {
        "ball": {"kind": "BallActions", "dim": 3, "radius": 1.5},
        "sphere": {"kind": "SphereActions", "dim": 3, "radius": 0.75},
        "box": {"kind": "BoxActions", "low": [-1.0, 0.0, -0.5], "high": [1.0, 0.8, 0.25]},
        "ellipsoid": {
            "kind": "EllipsoidActions",
            "shape": [[1.0, 0.2, 0.0], [0.0, 0.5, 0.1], [0.3, 0.0, 0.8]],
            "centre": [0.1, -0.2, 0.3],
        },
        "polytope": {"kind": "PolytopeActions", "A": corners, "b": [1.5] * 8},
        "product": {
            "kind": "ProductActions",
            "factors": [
                {"kind": "FiniteActions", "features": [[-1.0], [0.25], [0.9]]},
                {"kind": "BallActions", "dim": 2, "radius": 0.7},
            ],
        },
    }


def action_set(plain: Plain) -> Any:
    """The action set of one lane that these words describe."""
    kind = plain["kind"]
    if kind == "FiniteActions":
        return old("core.actions:FiniteActions")(plain["features"])
    if kind in ("BallActions", "SphereActions"):
        return old(f"core.ball_actions:{kind}")(1, plain["dim"], plain["radius"])
    if kind == "BoxActions":
        return old("core.box_actions:BoxActions")(plain["low"], plain["high"])
    if kind == "EllipsoidActions":
        return old("core.ellipsoid_actions:EllipsoidActions")(plain["shape"], plain["centre"])
    if kind == "PolytopeActions":
        return old("core.polytope_actions:PolytopeActions")(plain["A"], plain["b"])
    return old("core.product_actions:ProductActions")([action_set(factor) for factor in plain["factors"]])


# -- playing ------------------------------------------------------------------------------------------------------------------


class Crowd:
    """Decides what happens next, and who wins: people with one fixed taste who answer late, out of order, or not at all."""

    def __init__(self, case: Case, seed: int) -> None:
        self._case, self._dice = case, random.Random(seed)
        self._taste = [0.9 * (-0.7) ** i for i in range(case.dim)]
        self._sets = [action_set(plain) for plain in case.sets]
        self.asked = 0

    def play(self, agent: Any, until: int) -> list[Step]:
        """Go on until so many duels were asked. The last step is an ask, so at least one duel waits for its answer."""
        steps: list[Step] = []
        while self.asked < until:
            waiting = agent.pending
            if not waiting or self._dice.random() < 0.52:
                steps.append(self._ask(agent))
            elif self._case.answers and self._dice.random() < 0.88:
                duel = self._dice.choice(waiting)
                winner = self._winner(duel)
                agent.learn(duel, winner)
                steps.append([TELL, duel.id, winner])
            else:
                duel = self._dice.choice(waiting)
                agent.skip(duel)
                steps.append([SKIP, duel.id])
        return steps

    def _ask(self, agent: Any) -> Step:
        place = self.asked % len(self._sets)
        if not self._case.fresh:
            place = 0 if self._dice.random() < 0.6 else self._dice.randrange(len(self._sets))
        duel = agent.choose(self._sets[place])
        self.asked += 1
        return [ASK, place, duel.id, duel.first, duel.second, *([] if duel.first >= 0 else [in_hex(duel.features)])]

    def _winner(self, duel: Any) -> str:
        ahead = sum(weight * (a - b) for weight, a, b in zip(self._taste, *duel.features.tolist(), strict=True))
        coin = self._dice.random()
        if self._dice.random() < 0.1:
            return "tie"
        return "first" if coin < 1.0 / (1.0 + math.exp(-2.0 * ahead)) else "second"


def in_hex(numbers: Any) -> Any:
    """Numbers as float.hex writes them, in lists as they were in the array."""
    return [in_hex(part) for part in numbers] if np.ndim(numbers) else float(numbers).hex()


# -- what is played -----------------------------------------------------------------------------------------------------------


def registered() -> dict[str, Case]:
    """Every policy of the registry as it comes, except that FiniteModels has few models, so that its file is small."""
    made = {
        name: kind(models=40) if name == "FiniteModels" else kind() for name, kind in old("policies.registry:POLICIES").items()
    }
    return {name.lower(): Case(policy=policy, sets=[finite(1), finite(2)]) for name, policy in made.items()}


def fgts_cases() -> dict[str, Case]:
    """FGTS with every sampler that plays live, and with its other settings."""
    fgts, uniform_ball, gaussian_ball, gaussian = (
        old("policies.fgts:FGTS"),
        old("posteriors.priors:UniformBall"),
        old("posteriors.priors:GaussianBall"),
        old("posteriors.priors:Gaussian"),
    )
    two = [finite(1), finite(2)]
    parts = {
        "mala": old("samplers.mala:MALA")(steps=4, step_size=0.4),
        "polya-gamma": old("samplers.polya_gamma:PolyaGamma")(steps=2),
        "langevin-of-the-paper": old("samplers.langevin:Langevin")(steps=6, warm_start=False),
        "unadjusted": old("samplers.unadjusted:UnadjustedLangevin")(steps=3, step_size=0.2),
        "sgld-cv": old("samplers.sgld_cv:SGLDCV")(steps=5, batch=8),
        "laplace": old("samplers.laplace:Laplace")(tries=20),
    }
    policies = {
        # "mala" is the default, which is among the registered policies; "online" does not play live.
        **{
            name.replace("_", "-"): fgts(sampler=name)
            for name in old("samplers.registry:SAMPLERS")
            if name not in ("mala", "online")
        },
        **{f"own-{name}": fgts(sampler=part) for name, part in parts.items()},
        "discount": fgts(discount=0.9),
        "uniform-ball": fgts(prior=uniform_ball(2.0), alpha=0.5),
        "gaussian-ball-theory": fgts(prior=gaussian_ball(0.8, 1.5), mu="theory", eta="theory"),
        "no-feel-good": fgts(mu=0.0, prior=gaussian(0.5)),
        "redraw": fgts(same_arm="redraw", mu=0.05),
        "allow": fgts(same_arm="allow"),
    }
    return {
        **{f"fgts-{name}": Case(policy=policy, sets=two) for name, policy in policies.items()},
        "fgts-horizon": Case(policy=fgts(), sets=two, horizon=500, seed=3),
        "fgts-few-pending": Case(policy=fgts(), sets=two, max_pending=2),
        "fgts-fresh-sets": Case(policy=fgts(), sets=fresh_sets(1, 30), fresh=True),
        "fgts-sampled-sets": Case(policy=fgts(exact_rounds=8), sets=fresh_sets(2), fresh=True),
        "fgts-fresh-sets-polya-gamma": Case(
            policy=fgts(sampler="polya_gamma", exact_rounds=16), sets=fresh_sets(3, 30), fresh=True
        ),
    }


def other_cases() -> dict[str, Case]:
    """Settings of the other policies, and fresh sets every round."""
    two = [finite(1), finite(2)]
    models = old("policies.finite_models:FiniteModels")
    rewards = np.random.default_rng(5).uniform(-1, 1, (20, 6)).round(2).tolist()
    fresh: dict[str, Any] = {
        "maxinp": old("policies.maxinp:MaxInP")(radius=2.0),
        "vacdb": old("policies.vacdb:VACDB")(),
        "foresight": old("policies.foresight:Foresight")(),
        "uniform": old("policies.uniform:Uniform")(),
        "finitemodels": models(models=25, alpha=0.4),
    }
    return {
        "maxpairucb-local": Case(policy=old("policies.maxpairucb:MaxPairUCB")(width="local", radius=2.5), sets=two),
        "colstim-theory": Case(policy=old("policies.colstim:CoLSTIM")(radius="theory", warmup="theory"), sets=two, horizon=80),
        "vacdb-widest": Case(policy=old("policies.vacdb:VACDB")(explore="widest", layers=4), sets=two),
        "stad-widest": Case(policy=old("policies.stad:StaD")(explore="widest", horizon=60), sets=two),
        "supcolstim-layers": Case(policy=old("policies.supcolstim:SupCoLSTIM")(layers=3, clip=1.0), sets=two, horizon=90),
        "foresight-horizon": Case(policy=old("policies.foresight:Foresight")(candidates=4), sets=two, horizon=70),
        "finitemodels-rewards": Case(policy=models(rewards=rewards, mu=0.1), sets=two),
        **{f"{name}-fresh-sets": Case(policy=policy, sets=fresh_sets(4, 30), fresh=True) for name, policy in fresh.items()},
    }


def continuous_cases() -> dict[str, Case]:
    """Sets whose arms have no rows, for the policies that play them."""
    fgts, kinds = old("policies.fgts:FGTS"), continuous_sets()
    every = [*kinds.values(), finite(7, dim=3)]
    maxinp, models = old("policies.maxinp:MaxInP")(), old("policies.finite_models:FiniteModels")(models=25)
    return {
        **{f"fgts-{name}": Case(policy=fgts(), sets=[plain], dim=3) for name, plain in kinds.items()},
        "fgts-every-set": Case(policy=fgts(alpha=0.5), sets=every, dim=3, fresh=True),
        "fgts-every-set-discount": Case(policy=fgts(discount=0.95), sets=every, dim=3, fresh=True),
        "fgts-every-set-laplace": Case(policy=fgts(sampler="laplace"), sets=every, dim=3, fresh=True),
        "maxinp-ball": Case(policy=maxinp, sets=[kinds["ball"], finite(7, dim=3)], dim=3),
        "finitemodels-every-set": Case(policy=models, sets=every, dim=3, fresh=True),
    }


def nonlinear_cases() -> dict[str, Case]:
    """NonlinearFGTS before its first answer: 0.1.0 cannot save it afterwards."""
    policy = old("policies.nonlinear_fgts:NonlinearFGTS")(reward=old("rewards.ready_made:Quadratic")())
    return {"nonlinearfgts-unanswered": Case(policy=policy, sets=[finite(1), finite(2)], answers=False)}


# -- saved agents -------------------------------------------------------------------------------------------------------------


def write_saved_agents() -> None:
    """Pairs of saved agents, and in saved_agents.json how each got from one to the other."""
    folder = HERE / "saved_agents"
    folder.mkdir(exist_ok=True)
    cases = {**registered(), **fgts_cases(), **other_cases(), **continuous_cases(), **nonlinear_cases()}
    written = {name: saved_pair(folder, name, case) for name, case in cases.items()}
    write_json("saved_agents.json", {"made_with": made_with(), "agents": written})


def saved_pair(folder: Path, name: str, case: Case) -> Plain:
    """Play one agent, save it twice, and say what happened."""
    agent = old("agent.agent:Agent")(case.policy, **case.settings)
    crowd = Crowd(case, seed=sum(name.encode()))
    facts = {**facts_of(case), "to_A": crowd.play(agent, A)}
    facts["at_A"] = saved(agent, folder / f"{name}-at-A.npz.gz")
    facts["from_A_to_B"] = crowd.play(agent, B)
    facts["at_B"] = saved(agent, folder / f"{name}-at-B.npz.gz")
    return facts


def facts_of(case: Case) -> Plain:
    """The case in plain words."""
    known = old("policies.registry:POLICIES")
    plain = old("policies.described:described")(case.policy) if type(case.policy) in known.values() else None
    return {"policy": plain, "policy_name": type(case.policy).__name__, **case.settings, "sets": case.sets}


def saved(agent: Any, path: Path) -> Plain:
    """Save an agent, compressed, and say what a reader must find."""
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder, "agent"))
        compress(Path(folder, "agent").read_bytes(), path)
    return {
        "file": f"{path.parent.name}/{path.name}",
        "rounds": agent.rounds,
        "pending": [[duel.id, duel.first, duel.second] for duel in agent.pending],
    }


# -- states that no agent holds -----------------------------------------------------------------------------------------------


def write_saved_states() -> None:
    """States of policies that do not play live, as `duelist.core.saved.to_bytes` writes them."""
    folder = HERE / "saved_states"
    folder.mkdir(exist_ok=True)
    written = {"fgts-online": online_states(folder), "listwisefgts-unanswered": listwise_state(folder)}
    write_json("saved_states.json", {"made_with": made_with(), "states": written})


def online_states(folder: Path) -> Plain:
    """FGTS with the one-pass sampler, two lanes, in simulation: it is refused live."""
    policy, sets = old("policies.fgts:FGTS")(sampler="online"), [finite(1)["features"], finite(2)["features"]]
    actions = [old("core.actions:FiniteActions")([features, sets[0]]) for features in sets]
    streams = old("core.streams:Streams")(11, [0, 1])
    state = policy.start(old("core.lanes:Problem")(dim=4, lanes=2, horizon=B), streams)
    dice = random.Random(9)
    rounds: list[Step] = []
    for t in range(B):
        if t == A:
            compress(old("core.saved:to_bytes")(state), folder / "fgts-online-at-A.npz.gz")
        offered = actions[t % 2]
        duels, state = policy.choose(state, offered, streams)
        outcomes = [dice.choice([1, 1, -1, 0]), dice.choice([1, -1, -1])]
        state = policy.learn(state, offered, duels, np.array(outcomes))
        rounds.append([t % 2, duels.first.tolist(), duels.second.tolist(), outcomes])
    compress(old("core.saved:to_bytes")(state), folder / "fgts-online-at-B.npz.gz")
    return {
        "policy": old("policies.described:described")(policy),
        "problem": {"dim": 4, "lanes": 2, "horizon": B, "live": False},
        "seed": 11,
        "trials": [0, 1],
        "sets": [[features, sets[0]] for features in sets],
        "rounds_to_A": rounds[:A],
        "rounds_from_A_to_B": rounds[A:],
        "at_A": "saved_states/fgts-online-at-A.npz.gz",
        "at_B": "saved_states/fgts-online-at-B.npz.gz",
    }


def listwise_state(folder: Path) -> Plain:
    """ListwiseFGTS before its first answer: 0.1.0 cannot save it afterwards."""
    policy, plain = old("policies.listwise_fgts:ListwiseFGTS")(choices=3), finite(1)
    streams = old("core.streams:Streams")(11, [0])
    state = policy.start(old("core.lanes:Problem")(dim=4), streams)
    shown = []
    for asked in range(3):
        slates, state = policy.choose(state, action_set(plain), streams)
        shown.append(slates.rows.tolist())
        if asked == 1:
            compress(old("core.saved:to_bytes")(state), folder / "listwisefgts-unanswered.npz.gz")
    return {
        "policy_name": "ListwiseFGTS",
        "choices": 3,
        "dim": 4,
        "seed": 11,
        "set": plain,
        "slates_before": shown[:2],
        "slate_after": shown[2],
        "file": "saved_states/listwisefgts-unanswered.npz.gz",
    }


# -- journals -----------------------------------------------------------------------------------------------------------------


def write_journals() -> None:
    """Journals of agents, and in journals.json what is in them and how 0.1.0 went on from a copy of each."""
    folder = HERE / "journals"
    folder.mkdir(exist_ok=True)
    more = {**fgts_cases(), **other_cases(), **continuous_cases()}
    names = (
        "fgts-polya-gamma",
        "fgts-paper",
        "fgts-langevin",
        "fgts-sgld-cv",
        "fgts-laplace",
        "fgts-discount",
        "fgts-few-pending",
        "fgts-sampled-sets",
        "fgts-every-set",
        "maxinp-ball",
    )
    written = {
        name: journal(folder, name, case) for name, case in {**registered(), **{name: more[name] for name in names}}.items()
    }
    written["fgts-without-snapshot"] = journal(folder, "fgts-without-snapshot", registered()["fgts"], 1_000_000)
    write_json("journals.json", {"made_with": made_with(), "journals": written})


def journal(folder: Path, name: str, case: Case, snapshot_every: int = SNAPSHOT_EVERY) -> Plain:
    """Play an agent on a journal, put the journal away, and go on from a copy of it."""
    make, crowd = old("agent.agent:Agent"), Crowd(case, seed=sum(name.encode()) + 1)
    settings: Plain = {**case.settings, "snapshot_every": snapshot_every}
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary, "agent.db")
        with old("journal.sqlite:SQLiteJournal")(path) as opened:
            before = crowd.play(make(case.policy, journal=opened, **settings), A)
        content = tidied(path)
        compress(path.read_bytes(), folder / f"{name}.db.gz")
        with old("journal.sqlite:SQLiteJournal")(path) as opened:
            agent = make(case.policy, journal=opened, **settings)
            waiting = [[duel.id, duel.first, duel.second] for duel in agent.pending]
            rounds = agent.rounds
            after = crowd.play(agent, B)
            at_end = saved(agent, folder / f"{name}-continued.npz.gz")
    return {
        **facts_of(case),
        "snapshot_every": snapshot_every,
        "file": f"{folder.name}/{name}.db.gz",
        **content,
        "rounds": rounds,
        "pending": waiting,
        "so_far": before,
        "continuation": after,
        "continued": at_end,
    }


def tidied(path: Path) -> Plain:
    """Make a closed journal one small file, and say what is in it."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("VACUUM")
        events = connection.execute("SELECT count(*) FROM events").fetchone()[0]
        kinds = dict(connection.execute("SELECT kind, count(*) FROM events GROUP BY kind ORDER BY kind").fetchall())
        snapshots = [row[0] for row in connection.execute("SELECT position FROM snapshots ORDER BY position")]
    finally:
        connection.close()
    return {"events": events, "kinds": kinds, "snapshots": snapshots}


# -- a sweep ------------------------------------------------------------------------------------------------------------------


def write_sweep() -> None:
    """The table of the sweep that sweep/tiny.toml describes."""
    spec = old("experiments.spec_files:load_spec")(HERE / "sweep" / "tiny.toml")
    with tempfile.TemporaryDirectory() as temporary:
        results = old("experiments.runner:run_spec")(spec, temporary, workers=1, progress=False)
        if results.failures:
            raise SystemExit(f"the sweep failed: {results.failures}")
        (HERE / "sweep" / "tiny.parquet").write_bytes(results.path.read_bytes())


# -- files --------------------------------------------------------------------------------------------------------------------


def compress(data: bytes, path: Path) -> None:
    """Write bytes compressed, the same bytes always as the same file."""
    path.write_bytes(gzip.compress(data, compresslevel=9, mtime=0))


def write_json(name: str, value: Plain) -> None:
    """Write JSON with a line for every fact, so that a change shows where it is."""
    (HERE / name).write_text("".join(json_lines(value, "", 3)) + "\n", encoding="utf-8")


def json_lines(value: Any, indent: str, depth: int) -> Iterator[str]:
    """JSON that is spread over lines down to some depth."""
    if depth == 0 or not value or not isinstance(value, dict | list):
        yield json.dumps(value, allow_nan=False)
        return
    inner, named = indent + " ", isinstance(value, dict)
    parts: Sequence[Any] = list(value.items()) if isinstance(value, dict) else [(None, part) for part in value]
    yield "{" if named else "["
    for i, (key, part) in enumerate(parts):
        yield ("," if i else "") + "\n" + inner + (f"{json.dumps(key)}: " if named else "")
        yield from json_lines(part, inner, depth - 1)
    yield "\n" + indent + ("}" if named else "]")


def made_with() -> Plain:
    """What the digits depend on: kernels are compiled for the processor at hand. Elsewhere the last ones may differ."""
    libraries = ("numpy", "scipy", "numba", "llvmlite", "jax")
    compiler = importlib.import_module("llvmlite.binding")
    features = compiler.get_host_cpu_features()
    return {
        "duelist": importlib.import_module("duelist").__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": compiler.get_host_cpu_name(),
        "vectors": [name for name in ("avx2", "fma", "avx512f") if features.get(name)],
        **{name: metadata.version(name) for name in libraries},
    }


def main() -> None:
    """Write everything."""
    if importlib.import_module("duelist").__version__ != VERSION:
        raise SystemExit(f"the golden files are those of duelist {VERSION}; install that version to write them.")
    write_service: Callable[[], None] = importlib.import_module("write_service_files").write_service
    for write in (write_saved_agents, write_saved_states, write_journals, write_service, write_sweep):
        write()


if __name__ == "__main__":
    main()
