"""The examples of nonlinear rewards and of slates run, at a small size."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest


def example(name: str) -> Any:
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_listwise_example_prints_a_regret_for_every_way_of_asking(capsys: pytest.CaptureFixture[str]) -> None:
    means = example("listwise").main(rounds=30, trials=2)
    printed = capsys.readouterr().out
    for name, mean in means.items():
        assert f"{name}: mean regret after 30 rounds {mean:.0f}" in printed
    assert len(means) == 3


@pytest.mark.slow
def test_the_nonlinear_example_announces_what_it_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jax", reason="nonlinear rewards need the extra: pip install 'duelist[jax]'")
    means = example("nonlinear").main(rounds=15, trials=2)
    assert set(means) == {"linear", "quadratic"}
    assert "compiled the sampler in" in capsys.readouterr().out
