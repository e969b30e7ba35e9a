"""Effective draws a second: duelist's MALA against NUTS of NumPyro, d = 10, 2,500 comparisons, each in a process of its own.

Both draw from one posterior, with a standard normal prior; the script checks that they agree. The time is that of the whole
process, so importing, compiling, tuning, sampling and diagnosing are all in it, for both. duelist keeps compiled kernels on
disk, so it is measured twice: with an empty cache (the first run after an installation) and with a filled one (every later
run). NumPyro compiles in every process. What is spent once is spread over the draws, so several numbers of draws are run.

NumPyro is not a dependency of duelist: install it separately (`pip install numpyro`) to run this.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from duelist.samplers.diagnostics import Diagnostics

DIM, COMPARISONS, CHAINS = 10, 2_500, 4
DRAWS = (1_000, 4_000, 25_000, 100_000)  # kept draws per chain


def table() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Contrasts (n, dim) between corners of a cube, and outcomes (n,) of +1 and -1."""
    generator = np.random.default_rng(0)
    theta = generator.standard_normal(DIM)
    theta /= np.linalg.norm(theta)
    corners = generator.choice([-1.0, 1.0], size=(2, COMPARISONS, DIM))
    contrasts = corners[0] - corners[1]
    return contrasts, np.where(contrasts @ theta + generator.logistic(size=COMPARISONS) > 0, 1, -1)


def draw_with_mala(draws: int) -> tuple[npt.NDArray[np.float64], Diagnostics]:
    from duelist.samplers.mala import MALA
    from duelist.samplers.posterior import sample_posterior

    posterior = sample_posterior(*table(), sampler=MALA(steps=3), chains=CHAINS, draws=draws, warmup=100)
    return posterior.draws, posterior.diagnostics


def draw_with_nuts(n_draws: int) -> tuple[npt.NDArray[np.float64], Diagnostics]:
    jax, numpyro = importlib.import_module("jax"), importlib.import_module("numpyro")
    dist = importlib.import_module("numpyro.distributions")
    numpyro.set_host_device_count(2)
    contrasts, outcomes = table()

    def model() -> None:
        theta = numpyro.sample("theta", dist.Normal(0.0, 1.0).expand([DIM]).to_event(1))
        numpyro.sample("won", dist.Bernoulli(logits=contrasts @ theta), obs=(outcomes > 0).astype(int))

    kernel = numpyro.infer.NUTS(model)
    # Vectorised chains are the quickest of NumPyro's three ways on two cores.
    run = numpyro.infer.MCMC(
        kernel, num_warmup=500, num_samples=n_draws, num_chains=CHAINS, chain_method="vectorized", progress_bar=False
    )
    run.run(jax.random.PRNGKey(0))
    draws = np.asarray(run.get_samples(group_by_chain=True)["theta"], dtype=np.float64)
    from duelist.samplers.diagnostics import diagnose

    return draws, diagnose(draws, np.zeros(draws.shape[:2]), np.ones(CHAINS))


def in_this_process(who: str, n_draws: int) -> dict[str, Any]:
    draws, found = draw_with_mala(n_draws) if who == "mala" else draw_with_nuts(n_draws)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    flat = draws.reshape(-1, DIM)
    return {
        "ess": float(min(found.ess_bulk.min(), found.ess_tail.min())),
        "rhat": float(found.rhat.max()),
        "cpu": usage.ru_utime + usage.ru_stime,
        "mean": flat.mean(axis=0).tolist(),
        "sd": flat.std(axis=0).tolist(),
    }


def measured(who: str, draws: int, cache: str) -> dict[str, Any]:
    started = time.perf_counter()
    command = [sys.executable, __file__, who, str(draws)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    wall = time.perf_counter() - started
    return {**json.loads(done.stdout.splitlines()[-1]), "wall": wall}


def compare(draws: int) -> None:
    with tempfile.TemporaryDirectory() as cache:
        first, later = measured("mala", draws, cache), measured("mala", draws, cache)
        nuts = measured("nuts", draws, cache)
    apart = np.abs(np.array(later["mean"]) - nuts["mean"]) / nuts["sd"]
    print(f"{CHAINS} chains of {draws:,} draws; the two means differ by at most {apart.max():.3f} posterior sd")
    for name, run in {"MALA, first run": first, "MALA": later, "NUTS": nuts}.items():
        ratio = {kind: (run["ess"] / run[kind]) / (nuts["ess"] / nuts[kind]) for kind in ("wall", "cpu")}
        print(
            f"  {name:16s} ESS {run['ess']:7.0f}  R-hat {run['rhat']:.4f}  "
            f"wall {run['wall']:6.1f} s  processor {run['cpu']:6.1f} s  "
            f"ESS a second of processor time {run['ess'] / run['cpu']:6.0f}  "
            f"/ NUTS: {ratio['wall']:5.1f} by wall time, {ratio['cpu']:5.1f} by processor time",
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(in_this_process(sys.argv[1], int(sys.argv[2]))))
    else:
        for n in DRAWS:
            compare(n)
