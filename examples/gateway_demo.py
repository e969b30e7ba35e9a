"""The story of a gateway over real HTTP, with models and people that are made up: `python examples/gateway_demo.py`.

Three models answer prompts of four topics. People vote on the pairs; in the middle a fourth model comes, and one goes; then the
gateway is started again. At the end every model alone and the router at several weights of the cost answer the same prompts: a
table here, and a curve of quality against cost in a file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import random
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import uvicorn
from gateway import Gateway
from gateway_app import create_app

# What people think of each model on each topic, in log-odds; and what its answers cost.
TASTE = {
    "small": {"code": -0.5, "sums": -1.0, "prose": 0.6, "chat": 1.0},
    "large": {"code": 1.2, "sums": 1.0, "prose": 1.4, "chat": 1.1},
    "local": {"code": -1.0, "sums": 0.8, "prose": -1.0, "chat": 0.2},
    "coder": {"code": 2.4, "sums": 0.6, "prose": -1.2, "chat": -0.6},
}
COST = {"small": 0.1, "large": 1.0, "local": 0.0, "coder": 0.4}
WORDS = {
    "code": "python function bug compile loop class import test",
    "sums": "sum percent equation add number multiply ratio root",
    "prose": "essay poem rewrite letter story paragraph tone headline",
    "chat": "hello thanks weekend weather joke friend dinner movie",
}
FILLER = ["please", "can", "you", "help", "me", "with", "this", "one", "now", "again", "short", "long", "good"]
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)


DIM = 8


def embed(text: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """What an embedding model would do: words of one topic have vectors near each other, and a text has their mean."""
    vectors = [_VECTORS[word] for word in text.split() if word in _VECTORS]
    return np.asarray(np.mean(vectors, axis=0) if vectors else np.zeros(DIM))


def _make_vectors() -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    numbers = np.random.default_rng(1)
    centres = {topic: numbers.normal(0.0, 1.5, DIM) for topic in WORDS}
    return {word: centres[topic] + numbers.normal(size=DIM) for topic, words in WORDS.items() for word in words.split()}


_VECTORS = _make_vectors()


class Point(NamedTuple):
    """Mean quality in log-odds, and mean cost, of answers to the test prompts."""

    cost: float
    quality: float


class Story(NamedTuple):
    """What the demo found: every model alone, the router by weight of the cost, and votes before and after the restart."""

    alone: dict[str, Point]
    router: dict[float, Point]
    votes: tuple[int, int]


def make_prompt(rng: random.Random) -> str:
    """A prompt of some topic."""
    topic = rng.choice(list(WORDS))
    words = rng.sample(WORDS[topic].split(), 4) + rng.sample(FILLER, 3)
    rng.shuffle(words)
    return " ".join(words)


def topic_of(text: str) -> str:
    """The topic that most words of a text belong to."""
    return max(WORDS, key=lambda topic: len({*WORDS[topic].split()} & {*text.split()}))


class _Backend(BaseHTTPRequestHandler):
    """A fake model: it signs its answers, so that the people of this story know what to think of them."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = f"[{body['model']}] on {body['messages'][-1]['content']}"
        if body.get("stream"):
            pieces = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in text.split()]
            sent = "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces) + "data: [DONE]\n\n"
        else:
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            sent = json.dumps({"id": "x", "object": "chat.completion", "model": body["model"], "choices": [choice]})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if body.get("stream") else "application/json")
        self.send_header("Content-Length", str(len(sent.encode())))
        self.end_headers()
        self.wfile.write(sent.encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def fake_backend() -> Iterator[str]:
    """The URL of a backend that answers for any model."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Backend)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def serve(gateway: Gateway) -> Iterator[str]:
    """The URL of a gateway that is served for the length of the block, and closed behind it."""
    server = uvicorn.Server(uvicorn.Config(create_app(gateway), port=0, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the gateway did not start; see the log above.")
            thread.join(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join()
        gateway.close()


def call(url: str, body: Any = None, method: str | None = None) -> Any:
    """The JSON that comes back."""
    sent = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, sent, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def ask(url: str, prompt: str, model: str = "auto", weight: float = 1.0) -> Any:
    """Ask for an answer, as any client of OpenAI's API would."""
    body = {"model": model, "messages": [{"role": "user", "content": prompt}], "metadata": {"cost_weight": str(weight)}}
    return call(f"{url}/chat/completions", body)


def text_of(answer: Any) -> str:
    """The text of an answer."""
    return str(answer["choices"][0]["message"]["content"])


def merit(text: str) -> float:
    """What people think of an answer, which they can see and the gateway cannot."""
    signed, _, rest = text.partition("] on ")
    return TASTE[signed.removeprefix("[")][topic_of(rest)]


def use(url: str, rng: random.Random, n_prompts: int) -> None:
    """People ask, and vote where two answers were kept for them."""
    for _ in range(n_prompts):
        answer = ask(url, make_prompt(rng))
        if "duel" in answer:
            pair = call(f"{url}/duels/{answer['duel']}")
            gap = merit(text_of(pair["left"])) - merit(text_of(pair["right"]))
            winner = "left" if rng.random() < 1.0 / (1.0 + math.exp(-gap)) else "right"
            call(f"{url}/feedback", {"duel": answer["duel"], "winner": winner, "voter": f"person-{rng.randrange(20)}"})


def judge(url: str, prompts: list[str], model: str = "auto", weight: float = 1.0) -> Point:
    """Mean cost and quality of the answers to these prompts."""
    texts = [text_of(ask(url, prompt, model, weight)) for prompt in prompts]
    names = [text.partition("]")[0].removeprefix("[") for text in texts]
    return Point(float(np.mean([COST[name] for name in names])), float(np.mean([merit(text) for text in texts])))


def tell_story(folder: Path, *, n_prompts: int = 400, n_tests: int = 150, share: float = 0.8, seed: int = 0) -> Story:
    """Open a gateway, have it used, change its models, start it again, and judge it.

    Args:
        folder: of the gateway.
        n_prompts: before the change of models, and again after it.
        n_tests: prompts to judge by.
        share: of the prompts that are compared: high, so that the story is short.
        seed: of prompts and votes.
    """
    rng, coin = random.Random(seed), random.Random(seed + 1)
    with fake_backend() as backend:
        with serve(Gateway(folder, embed, DIM, share=share, draw=coin.random)) as url:
            for name in ("small", "large", "local"):
                call(f"{url}/models", {"name": name, "url": backend, "cost": COST[name]})
            use(url, rng, n_prompts)
            call(f"{url}/models", {"name": "coder", "url": backend, "cost": COST["coder"]})
            call(f"{url}/models/local", method="DELETE")
            use(url, rng, n_prompts - n_prompts // 2)
            before = call(f"{url}/feedback", _last_vote(url, rng))["votes"]
        # A new process would do the same: all that it needs is in the folder.
        gateway = Gateway(folder, embed, DIM, share=share, draw=coin.random)
        after = gateway.agent.rounds
        with serve(gateway) as url:
            use(url, rng, n_prompts // 2)
            gateway.share = 0.0
            tests = [make_prompt(rng) for _ in range(n_tests)]
            names = [model["id"] for model in call(f"{url}/models")["data"] if model["id"] != "auto"]
            alone = {name: judge(url, tests, name) for name in names}
            router = {weight: judge(url, tests, weight=weight) for weight in WEIGHTS}
    return Story(alone, router, (before, after))


def _last_vote(url: str, rng: random.Random) -> dict[str, Any]:
    """A vote on one more comparison."""
    while "duel" not in (answer := ask(url, make_prompt(rng))):
        pass
    return {"duel": answer["duel"], "winner": "tie"}


def draw(story: Story, path: Path) -> None:
    """Quality against cost."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    axes.plot(*zip(*story.router.values(), strict=True), "o-", color="#0072B2", label="router, by weight of the cost")
    for weight, point in story.router.items():
        axes.annotate(f"{weight:g}", point, (5, -10), textcoords="offset points", color="#0072B2", fontsize=8)
    axes.plot(*zip(*story.alone.values(), strict=True), "s", color="#D55E00", label="one model for everything")
    for name, point in story.alone.items():
        axes.annotate(name, point, (6, 4), textcoords="offset points", color="#D55E00", fontsize=8)
    axes.margins(0.1)
    axes.set_xlabel("mean cost of an answer")
    axes.set_ylabel("mean quality of an answer, log-odds")
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Tell the story and draw the curve."""
    parser = argparse.ArgumentParser(description="Quality against cost of a gateway that learns from votes.")
    parser.add_argument("--out", type=Path, default=Path("results/gateway.png"), help="where the figure goes")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        story = tell_story(Path(folder))
    for name, point in [*story.alone.items(), *((f"router, weight {w:g}", point) for w, point in story.router.items())]:
        print(f"{name:20} quality {point.quality:5.2f}   cost {point.cost:.2f}")
    print(f"votes before and after the restart: {story.votes[0]} and {story.votes[1]}")
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    draw(story, chosen.out)
    print(f"The curve is in {chosen.out}")


if __name__ == "__main__":
    main()
