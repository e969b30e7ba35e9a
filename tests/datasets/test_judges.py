"""Judges: asked both ways, joined to people, over real HTTP, and exported for trainers."""

from __future__ import annotations

import json
import runpy
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.datasets import AnswerPair, Comparisons, ask_judge, fit_votes, join_comparisons, write_preferences

PAIRS = [AnswerPair("p1", "long answer", "short", "a", "b"), AnswerPair("p2", "x", "y", "b", "c")]
EXAMPLE = Path(__file__).parents[2] / "examples" / "llm_judge.py"


def by_length(_prompt: str, first: str, second: str) -> int:
    return int(np.sign(len(first) - len(second)))


def test_a_judge_who_always_says_first_is_a_voter_of_ties() -> None:
    votes = ask_judge(lambda *_: 1, PAIRS)
    assert votes.outcomes.tolist() == [0, 0]
    assert votes.context["consistent"].tolist() == [0.0, 0.0]
    fair = ask_judge(by_length, PAIRS, voter="length")
    assert fair.outcomes.tolist() == [1, 0]
    assert fair.context["consistent"].tolist() == [1.0, 1.0]
    assert fair.items == ("a", "b", "c")
    with pytest.raises(InvalidInputError, match="got 2"):
        ask_judge(lambda *_: 2, PAIRS)


def test_the_reliability_of_a_judge_is_learnt_beside_that_of_people() -> None:
    rng = np.random.default_rng(0)
    quality = {"a": 2.0, "b": 0.0, "c": -2.0}
    names = list(quality)

    def pair() -> AnswerPair:
        first, second = rng.choice(3, size=2, replace=False)
        return AnswerPair("p", names[first], names[second], names[first], names[second])

    def person(_prompt: str, first: str, second: str) -> int:
        return 1 if rng.random() < 1.0 / (1.0 + np.exp(quality[second] - quality[first])) else -1

    people = [ask_judge(person, [pair() for _ in range(150)], voter=f"person {i}") for i in range(4)]
    coin = ask_judge(lambda *_: int(rng.choice([-1, 1])), [pair() for _ in range(300)], voter="coin")
    fit = fit_votes(join_comparisons([*people, coin]), reliability=True)
    slope = dict(zip(fit.reliability.names, fit.reliability.mean, strict=True))
    assert slope["coin"] < 0.3 < min(value for name, value in slope.items() if name != "coin")
    menus = Comparisons(name="menus", items=("a", "b", "c"), shown=np.array([[0, 1, 2]]), chosen=np.array([0]))
    with pytest.raises(InvalidInputError, match="menus has up to 3"):
        join_comparisons([menus])


def test_pairs_are_exported_for_trainers(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    assert write_preferences(path, [*PAIRS, PAIRS[0]], [-1, 0, 1]) == 2
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines == [
        {"prompt": "p1", "chosen": "short", "rejected": "long answer"},
        {"prompt": "p1", "chosen": "long answer", "rejected": "short"},
    ]
    with pytest.raises(InvalidInputError, match="one per pair"):
        write_preferences(path, PAIRS, [1])


class Fake(BaseHTTPRequestHandler):
    """An endpoint like OpenAI's, whose model prefers the longer answer."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["messages"][-1]["content"]
        first, second = (text.split(f"<{tag}>")[1].split(f"</{tag}>")[0] for tag in ("first", "second"))
        verdict = "A" if len(first) > len(second) else "B" if len(second) > len(first) else "TIE"
        reply = json.dumps({"choices": [{"message": {"content": verdict}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Fake) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_the_example_asks_a_judge_over_http(endpoint: str) -> None:
    judge = runpy.run_path(str(EXAMPLE))["http_judge"](endpoint, model="fake")
    assert ask_judge(judge, PAIRS).outcomes.tolist() == [1, 0]
