"""Files that earlier versions wrote, and what a later version must make of them. See tests/data/<version>/README.md."""

from __future__ import annotations

import gzip
import json
import os
import platform
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import llvmlite.binding
import numpy as np
import pytest

from duelist.actions.ball import BallActions, SphereActions
from duelist.actions.box import BoxActions
from duelist.actions.ellipsoid import EllipsoidActions
from duelist.actions.finite import ActionSet, FiniteActions
from duelist.actions.polytope import PolytopeActions
from duelist.actions.product import ProductActions
from duelist.core.serialize import STRUCTURE, to_arrays
from duelist.live.agent import Agent
from duelist.policies.codec import policy_from_mapping

V0_1_0 = Path(__file__).parents[1] / "data" / "v0.1.0"


def let_chains_not_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains of 0.1.0 did not jump between peaks; those of today do, which is the one change of what they draw."""
    for module in ("mala", "polya_gamma"):
        monkeypatch.setattr(f"duelist.samplers.{module}.visit_peaks", lambda peaks, *_: peaks)


@cache
def facts(name: str) -> dict[str, Any]:
    """The content of one of the JSON files."""
    found: dict[str, Any] = json.loads((V0_1_0 / f"{name}.json").read_text(encoding="utf-8"))
    return found


def unpack(file: str, target: Path) -> Path:
    """A copy of a golden file without its compression."""
    target.write_bytes(gzip.decompress((V0_1_0 / file).read_bytes()))
    return target


def action_set(plain: dict[str, Any]) -> ActionSet:
    """The action set of one lane that these words describe."""
    kind = plain["kind"]
    if kind == "FiniteActions":
        return FiniteActions(plain["features"])
    if kind in ("BallActions", "SphereActions"):
        return (BallActions if kind == "BallActions" else SphereActions)(1, plain["dim"], plain["radius"])
    if kind == "BoxActions":
        return BoxActions(plain["low"], plain["high"])
    if kind == "EllipsoidActions":
        return EllipsoidActions(plain["shape"], plain["centre"])
    if kind == "PolytopeActions":
        return PolytopeActions(plain["A"], plain["b"])
    factors: list[Any] = [action_set(factor) for factor in plain["factors"]]
    return ProductActions(factors)


def policy_of(case: dict[str, Any]) -> Any:
    """The policy that played; the one that is not described needs JAX."""
    if case["policy"] is not None:
        return policy_from_mapping(case["policy"])
    from duelist.policies.algorithms.nonlinear.nonlinear_fgts import NonlinearFGTS
    from duelist.rewards import Quadratic

    return NonlinearFGTS(reward=Quadratic())


def settings_of(case: dict[str, Any]) -> dict[str, Any]:
    """What the agent was made with, besides its policy."""
    return {name: case[name] for name in ("dim", "seed", "horizon", "max_pending")}


def play(agent: Agent, case: dict[str, Any], steps: list[list[Any]], *, same_duels: bool = True) -> None:
    """Do the recorded steps; every ask must give the duel that was recorded, or only its number if not `same_duels`."""
    sets = [action_set(plain) for plain in case["sets"]]
    for kind, number, *more in steps:
        if kind == "ask":
            duel = agent.choose(sets[number])
            assert duel.id == more[0]
            if not same_duels:
                continue
            assert [duel.first, duel.second] == more[1:3]
            if len(more) > 3:
                shown = np.array([[float.fromhex(text) for text in row] for row in more[3]])
                assert_same_numbers(f"the features of duel {duel.id}", duel.features, shown)
        elif kind == "tell":
            agent.learn(number, more[0])
        else:
            agent.skip(number)


def assert_stands_at(agent: Agent, recorded: dict[str, Any]) -> None:
    """The agent has learnt and waits for what was written down."""
    assert agent.rounds == recorded["rounds"]
    assert [[duel.id, duel.first, duel.second] for duel in agent.pending] == recorded["pending"]


def assert_same_state(agent: Agent, other: Agent) -> None:
    """Both agents are in the same state, leaf by leaf."""
    # 0.1.0 kept no votes beside the policy's state.
    left, right = (to_arrays({**each._state.to_saved(), "votes": None}) for each in (agent, other))
    assert left.keys() == right.keys()
    assert json.loads(left.pop(STRUCTURE).tobytes()) == json.loads(right.pop(STRUCTURE).tobytes())
    for name, leaf in left.items():
        # The last number is how many action sets are kept before they are sampled: 2048 at 0.1.0, fewer today.
        known = slice(5) if name.endswith("history/shape") else ...
        assert_same_numbers(name, leaf[known], right[name][known])


def assert_same_numbers(name: str, got: Any, wanted: Any) -> None:
    """Equal bit for bit; where other libraries than the recorded ones compute, numbers that are not whole to 1e-12."""
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), name
    if as_recorded() or got.dtype.kind != "f":
        assert got.tobytes() == wanted.tobytes(), name
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12, err_msg=name)


@cache
def as_recorded() -> bool:
    """Whether the libraries and the processor that code is compiled for are those of the golden files.

    Another processor has vectors of another length, and adds in another order. These settings make any newer one compute as
    the recorded one did: NUMBA_CPU_NAME=znver3, NUMBA_CPU_FEATURES=+avx2,+fma, OPENBLAS_CORETYPE=Zen,
    NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR".
    """
    made_with = facts("saved_agents")["made_with"]
    libraries = ("numpy", "scipy", "numba", "llvmlite")
    machine = f"{platform.system()} {platform.machine()}"
    same_processor = (os.environ.get("NUMBA_CPU_NAME") or llvmlite.binding.get_host_cpu_name()) == made_with["processor"]
    return bool(
        same_processor
        and machine == made_with["machine"]
        and all(metadata.version(name) == made_with[name] for name in libraries)
    )
