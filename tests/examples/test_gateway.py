"""The endpoint that routes to models, over real HTTP on this machine, in front of backends that are made up."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from gateway import Gateway
from gateway_demo import COST, TASTE, ask, call, draw, fake_backend, serve, tell_story, text_of

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "python function bug"}]


@contextlib.contextmanager
def gateway_of(folder: Path, names: tuple[str, ...] = ("small", "large"), share: float = 1.0) -> Iterator[tuple[str, Gateway]]:
    """The URL of a gateway with these models, and the gateway."""
    gateway = Gateway(folder, share=share, draw=random.Random(0).random, timeout_seconds=10.0)
    with fake_backend() as backend, serve(gateway) as url:
        for name in names:
            call(f"{url}/models", {"name": name, "url": backend, "cost": COST.get(name, 0.0)})
        yield url, gateway


def refused(url: str, body: Any = None, method: str | None = None) -> tuple[int, dict[str, Any]]:
    """Status and error of a request that is refused."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        call(url, body, method)
    with caught.value as response:
        return response.code, json.load(response)["error"]


def closed_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}/v1"


def test_a_comparison_keeps_both_answers_hides_names_and_takes_one_vote(tmp_path: Path) -> None:
    with gateway_of(tmp_path) as (url, gateway):
        answer = call(f"{url}/chat/completions", {"messages": MESSAGES, "temperature": 0.5})
        pair = call(f"{url}/duels/{answer['duel']}")
        assert pair["prompt"] == MESSAGES[1]["content"]
        assert text_of(pair["left"]) == text_of(answer)
        assert {text_of(pair[side]).partition("]")[0] for side in ("left", "right")} == {"[small", "[large"}
        assert pair["left"]["model"] == pair["right"]["model"] == answer["model"] == "auto"
        vote = {"duel": answer["duel"], "winner": "right", "voter": "ann"}
        assert call(f"{url}/feedback", vote) == {"duel": answer["duel"], "votes": 1}
        assert call(f"{url}/feedback", vote)["votes"] == 1  # the same vote again
        assert refused(f"{url}/feedback", {**vote, "winner": "left"})[0] == 409
        assert refused(f"{url}/feedback", {**vote, "duel": 77})[0] == 404
        assert gateway.agent.rounds == 1


def test_a_named_model_answers_and_streams_go_through(tmp_path: Path) -> None:
    with gateway_of(tmp_path) as (url, _):
        answer = ask(url, "hello", model="large")
        assert (answer["model"], text_of(answer)) == ("large", "[large] on hello")
        assert "duel" not in answer
        body = {"model": "small", "messages": MESSAGES, "stream": True}
        request = urllib.request.Request(
            f"{url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            lines = [line for line in response.read().decode().split("\n\n") if line]
        assert lines[-1] == "data: [DONE]"
        words = [json.loads(line.removeprefix("data: "))["choices"][0]["delta"]["content"] for line in lines[:-1]]
        assert " ".join(words) == "[small] on python function bug"


def test_errors_have_the_form_that_clients_know(tmp_path: Path) -> None:
    with gateway_of(tmp_path, ()) as (url, _):
        status, error = refused(f"{url}/chat/completions", {"messages": MESSAGES})
        assert (status, error["type"]) == (502, "server_error")
        assert "there is no model" in error["message"]
        for body, told in (
            ({"messages": []}, "messages"),
            ({"model": "gpt", "messages": MESSAGES}, "there is no model 'gpt'"),
            ({"messages": MESSAGES, "metadata": {"cost_weight": "much"}}, "cost_weight must be a number"),
        ):
            status, error = refused(f"{url}/chat/completions", body)
            assert (status, error["type"], error["param"]) == (400, "invalid_request_error", None)
            assert told in error["message"]
        assert refused(f"{url}/models", {"name": "x", "url": "ftp://x"})[0] == 400


def test_a_backend_that_is_down_is_left_out(tmp_path: Path) -> None:
    with gateway_of(tmp_path) as (url, gateway):
        call(f"{url}/models", {"name": "large", "url": closed_port(), "cost": COST["large"]})
        compared = ask(url, "hello")
        assert text_of(compared) == "[small] on hello"
        assert "duel" not in compared  # one answer is nothing to vote on
        gateway.share = 0.0
        assert {ask(url, f"python bug {n}")["model"] for n in range(5)} == {"small"}
        status, error = refused(f"{url}/chat/completions", {"model": "large", "messages": MESSAGES})
        assert status == 502
        assert "large" in error["message"]


def test_models_come_and_go_and_a_slot_is_nobody_elses(tmp_path: Path) -> None:
    with gateway_of(tmp_path, ("small", "large", "local")) as (url, gateway):
        call(f"{url}/models/large", method="DELETE")
        call(f"{url}/models", {"name": "coder", "url": closed_port(), "cost": 0.4})
        assert [(one.name, one.slot) for one in gateway.store.models()] == [("small", 0), ("local", 2), ("coder", 3)]
        listed = call(f"{url}/models", {"name": "large", "url": closed_port(), "cost": 2.0})["data"]
        assert [model["id"] for model in listed] == ["auto", "small", "large", "local", "coder"]
        assert gateway.store.models()[1].cost == 2.0
        for name in ("a", "b"):
            call(f"{url}/models", {"name": name, "url": closed_port()})
        status, error = refused(f"{url}/models", {"name": "c", "url": closed_port()})
        assert status == 400
        assert "all 6 slots are taken" in error["message"]


def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    with gateway_of(tmp_path) as (url, gateway):
        answers = [ask(url, f"python bug {n}") for n in range(4)]
        for answer in answers[:3]:
            call(f"{url}/feedback", {"duel": answer["duel"], "winner": "left"})
        before = [model.name for model in gateway.rank("python bug")]
    with gateway_of(tmp_path, ()) as (url, gateway):
        assert [model["id"] for model in call(f"{url}/models")["data"]] == ["auto", "small", "large"]
        assert gateway.agent.rounds == 3
        assert [model.name for model in gateway.rank("python bug")] == before
        assert text_of(call(f"{url}/duels/{answers[3]['duel']}")["left"]) == text_of(answers[3])
        assert call(f"{url}/feedback", {"duel": answers[3]["duel"], "winner": "tie"})["votes"] == 4


@pytest.mark.slow
def test_the_story_ends_with_better_answers_for_less(tmp_path: Path) -> None:
    story = tell_story(tmp_path / "gateway", n_prompts=150, n_tests=30)
    assert story.votes[0] == story.votes[1] > 150
    assert set(story.alone) == {"small", "large", "coder"} < set(TASTE)
    best = max(story.alone.values(), key=lambda point: point.quality)
    assert any(point.quality >= best.quality and point.cost < best.cost for point in story.router.values())
    costs = [point.cost for point in story.router.values()]
    assert costs == sorted(costs, reverse=True)
    draw(story, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 5_000
