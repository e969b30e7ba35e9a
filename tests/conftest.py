"""Settings of the whole suite: random examples are the same in every run, and `make test` lets nothing be skipped."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

# The suite multiplies small matrices only: threads would wait for each other. Read when NumPy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=50)
settings.load_profile("fixed")


def pytest_configure(config: pytest.Config) -> None:
    """Let JAX keep what it compiled, for the other workers, for processes that tests start, and for the next run.

    It looks up the very program that it is to compile, so an edit never meets old code. An entry that another worker is just
    writing cannot be read: it is compiled anew, as if it were not there.
    """
    cache = getattr(config, "cache", None)  # absent where its plugin is switched off
    if cache is not None:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache.mkdir("jax")))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    config.addinivalue_line("filterwarnings", "ignore:Error reading persistent compilation cache entry")


# A test that is skipped for want of a library or a program checks nothing: where everything must run, it fails.
_REQUIRE_ALL = os.environ.get("DUELIST_REQUIRE_ALL") == "1"


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if _REQUIRE_ALL and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and DUELIST_REQUIRE_ALL is set: {report.longrepr}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report
