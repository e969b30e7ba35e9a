"""The same sweep runs unchanged on a Dask cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from duelist.core.errors import InvalidInputError
from duelist.experiments.sweep.runner import run_spec
from duelist.experiments.sweep.spec import load_spec

SMALL = load_spec(Path(__file__).with_name("small.toml"))
distributed = pytest.importorskip("distributed")


@pytest.mark.slow
def test_a_local_cluster_of_two_gives_the_same_bytes(tmp_path: Path) -> None:
    here = run_spec(SMALL, tmp_path / "here", workers=1, progress=False)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1", silence_logs=50
    ) as cluster:
        there = run_spec(SMALL, tmp_path / "there", cluster=cluster.scheduler_address, progress=False)
    assert not there.failures
    assert there.computed == here.computed
    assert there.path.read_bytes() == here.path.read_bytes()


def test_an_address_without_a_scheduler_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no Dask scheduler answers"):
        run_spec(SMALL, tmp_path, cluster="nonsense://nowhere", progress=False)
