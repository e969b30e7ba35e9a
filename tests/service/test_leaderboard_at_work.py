"""Leaderboards of large arenas: nobody else waits for them, and their numbers are those of the full computation."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from duelist.service.insight import leaderboard as insight
from tests.support.services import running_service


def test_win_rates_against_a_sample_are_close_to_those_against_all(monkeypatch: pytest.MonkeyPatch) -> None:
    utilities = np.random.default_rng(0).normal(size=(512, 600)) * 0.3 + np.random.default_rng(1).normal(size=600)
    playing = np.arange(600)
    sampled = insight._win_rates(utilities, playing)
    monkeypatch.setattr(insight, "_OPPONENTS", 10_000)
    full = insight._win_rates(utilities, playing)
    assert np.abs(sampled - full).max() < 0.02
    assert not np.array_equal(sampled, full)


def test_while_a_board_is_computed_others_get_the_one_before_and_other_arenas_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running_service() as running:
        for name in ("slow", "other"):
            items = [{"name": item, "content": item} for item in "xyz"]
            running.admin.post("/api/v1/arenas", json={"id": name, "name": name, "items": items})
            running.admin.get(f"/api/v1/arenas/{name}/leaderboard")
        service = running.service
        before = service.leaderboard("slow")
        started, go_on = threading.Event(), threading.Event()
        compute = insight.compute_leaderboard

        def wait_for_it(inputs: insight.LeaderboardInputs) -> insight.Leaderboard:
            started.set()
            assert go_on.wait(60)
            return compute(inputs)

        monkeypatch.setattr("duelist.service.service.compute_leaderboard", wait_for_it)
        for name in ("slow", "other"):
            ask = running.admin.post(f"/api/v1/arenas/{name}/asks").json()
            running.admin.put(f"/api/v1/arenas/{name}/asks/{ask['id']}/answer", json={"outcome": "left"})
        computing = threading.Thread(target=service.leaderboard, args=("slow",))
        computing.start()
        assert started.wait(60)
        assert service.leaderboard("slow") is before
        monkeypatch.setattr("duelist.service.service.compute_leaderboard", compute)
        assert service.leaderboard("other").revision == service.arena("other").revision
        go_on.set()
        computing.join(60)
        assert service.leaderboard("slow").revision == service.arena("slow").revision
