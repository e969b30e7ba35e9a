"""A router of prompts to language models that learns from votes: which model to ask, and which two to compare.

Everything that must survive a restart is in one folder: votes and questions in a journal, models and compared answers in a
second database. `gateway_app.py` puts an OpenAI-compatible endpoint in front; `gateway_demo.py` plays the whole story.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import duelist
from duelist.core import DuelistError, InvalidInputError, UnknownDuelError
from duelist.journal import SQLiteJournal
from duelist.service import HashingEmbedder

AUTO = "auto"  # the model to ask for where the router shall choose
Side = Literal["left", "right", "tie"]
Embed = Callable[[str], "np.ndarray[Any, np.dtype[np.float64]]"]
Json = dict[str, Any]


class BackendError(DuelistError):
    """A model did not answer."""


@dataclass(frozen=True)
class Model:
    """A backend that speaks OpenAI's protocol.

    Attributes:
        name: by which clients and backends know it.
        url: up to and without /chat/completions.
        cost: in log-odds: what its answers must be better by to be worth it.
        key_variable: name of the environment variable with its key; empty for none.
        slot: which block of the features is its own. A slot is never given to another model.
    """

    name: str
    url: str
    cost: float = 0.0
    key_variable: str = ""
    slot: int = -1


@dataclass(frozen=True)
class Comparison:
    """Two answers to one prompt, in the order of the screen."""

    duel: int
    prompt: str
    left: Json
    right: Json
    left_model: str
    right_model: str


class Store:
    """Models and compared answers, in one SQLite file."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._lock = threading.Lock()
        self._run("CREATE TABLE IF NOT EXISTS models (slot INTEGER PRIMARY KEY, name, url, cost, key_variable, active)")
        self._run("CREATE TABLE IF NOT EXISTS duels (id INTEGER PRIMARY KEY, prompt, answers, left_model, right_model)")

    def _run(self, statement: str, *values: Any) -> list[Any]:
        with self._lock:
            return self._database.execute(statement, values).fetchall()

    def models(self) -> list[Model]:
        """Those that may be asked, by slot."""
        rows = self._run("SELECT name, url, cost, key_variable, slot FROM models WHERE active ORDER BY slot")
        return [Model(*row) for row in rows]

    def add(self, model: Model, slots: int) -> None:
        """Give a model the slot that it had before, or the next one."""
        known = self._run("SELECT slot FROM models WHERE name = ?", model.name)
        ((taken,),) = self._run("SELECT count(*) FROM models")
        slot = known[0][0] if known else taken
        if slot >= slots:
            raise InvalidInputError(f"all {slots} slots are taken. Start a gateway with more, in a new folder.")
        values = (slot, model.name, model.url, model.cost, model.key_variable)
        self._run("INSERT OR REPLACE INTO models VALUES (?, ?, ?, ?, ?, 1)", *values)

    def drop(self, name: str) -> None:
        """Ask a model no more. What was learnt of it stays, for when it comes back."""
        self._run("UPDATE models SET active = 0 WHERE name = ?", name)

    def save(self, one: Comparison) -> None:
        """Keep two answers."""
        answers = json.dumps([one.left, one.right])
        self._run("INSERT INTO duels VALUES (?, ?, ?, ?, ?)", one.duel, one.prompt, answers, one.left_model, one.right_model)

    def find(self, duel: int) -> Comparison:
        """The two answers of a duel."""
        rows = self._run("SELECT id, prompt, answers, left_model, right_model FROM duels WHERE id = ?", duel)
        if not rows:
            raise UnknownDuelError(f"there is no duel {duel}.")
        number, prompt, answers, left_model, right_model = rows[0]
        left, right = json.loads(answers)
        return Comparison(number, prompt, left, right, left_model, right_model)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()


def hash_words(dim: int) -> Embed:
    """An embedding that knows words and nothing of their meaning. Put that of your embedding model in its place."""
    embedder = HashingEmbedder(dim=dim)
    return lambda text: 3.0 * embedder.embed([text])[0]


class Gateway:
    """Chooses models, compares answers, learns.

    Args:
        folder: of the journal and the store.
        embed: from the text of a prompt to `dim` numbers.
        dim: how many.
        share: of the prompts that two models answer.
        slots: how many models there can ever be. Fixed for a folder, as are `embed` and `dim`.
        policy: which pairs to ask about.
        draw: a uniform number, to decide whether a prompt is compared.
        timeout_seconds: of a backend.
    """

    def __init__(
        self,
        folder: Path,
        embed: Embed | None = None,
        dim: int = 24,
        *,
        share: float = 0.1,
        slots: int = 6,
        policy: Any = None,
        draw: Callable[[], float] = random.random,
        timeout_seconds: float = 60.0,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.share, self._slots, self._embed, self._draw = share, slots, embed or hash_words(dim), draw
        self._timeout = timeout_seconds
        self.store = Store(folder / "answers.db")
        self._journal = SQLiteJournal(folder / "votes.db")
        policy = policy or duelist.CoLSTIM()
        self.agent = duelist.Agent(policy, dim=slots * (dim + 1), seed=0, journal=self._journal)
        self._pool = ThreadPoolExecutor(max_workers=16)

    def close(self) -> None:
        """Let go of the files; the next gateway on the folder goes on from here."""
        self._pool.shutdown()
        self._journal.close()
        self.store.close()

    def add(self, model: Model) -> None:
        """Have a model take part from now on, or change its address or cost."""
        self.store.add(model, self._slots)

    def rank(self, prompt: str, weight: float = 1.0) -> Iterator[Model]:
        """The models from the one to ask on, by what is believed of them minus `weight` times their cost."""
        left, features = self.store.models(), self._features(prompt)
        while left:
            costs = [weight * model.cost for model in left]
            yield left.pop(self.agent.best(features[[model.slot for model in left]], cost=costs))

    def complete(self, body: Json, weight: float = 1.0) -> Json:
        """Answer a request. Where it was compared, `duel` is the number to vote by, and the answer the left one."""
        if body.get("model", AUTO) != AUTO:
            return self._ask(self._named(body["model"]), body)
        prompt, models = prompt_of(body), self.store.models()
        if len(models) > 1 and self._draw() < self.share:
            return self._compare(prompt, body, models)
        failed: list[str] = []
        for model in self.rank(prompt, weight):
            try:
                return self._ask(model, body)
            except BackendError as error:
                failed.append(str(error))
        raise BackendError("; ".join(failed) or "there is no model. Add one first.")

    def stream(self, body: Json, weight: float = 1.0) -> Iterator[bytes]:
        """The answer of the best model in pieces, as it comes. Streams are not compared."""
        named = body.get("model", AUTO) != AUTO
        model = self._named(body["model"]) if named else next(self.rank(prompt_of(body), weight), None)
        if model is None:
            raise BackendError("there is no model. Add one first.")
        response = self._open(model, body)  # before the first piece, so that an error is still an error

        def pieces() -> Iterator[bytes]:
            with response:
                yield from iter(lambda: response.read1(65_536), b"")

        return pieces()

    def vote(self, duel: int, winner: Side, voter: str | None = None) -> None:
        """Learn which of the two answers of a duel is better."""
        self.store.find(duel)
        self.agent.learn(duel, winner, voter=voter)

    def _compare(self, prompt: str, body: Json, models: list[Model]) -> Json:
        by_slot, features = {model.slot: model for model in models}, self._features(prompt)
        costs = [by_slot[slot].cost if slot in by_slot else 0.0 for slot in range(self._slots)]
        absent = [slot for slot in range(self._slots) if slot not in by_slot]
        duel = self.agent.choose(features, exclude=absent, cost=costs)
        pair = by_slot[duel.left], by_slot[duel.right]
        futures = [self._pool.submit(self._ask, model, body) for model in pair]
        answers, failed = [], []
        for future in futures:
            try:
                answers.append(future.result())
            except BackendError as error:
                failed.append(error)
        if failed:
            self.agent.skip(duel)
            if not answers:
                raise failed[0]
            return answers[0]
        left, right = ({**answer, "model": AUTO} for answer in answers)  # a vote shall not know the names
        self.store.save(Comparison(duel.id, prompt, left, right, pair[0].name, pair[1].name))
        return {**left, "duel": duel.id}

    def _features(self, prompt: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        return duelist.features.one_block_per_arm(duelist.features.append_one(self._embed(prompt)), self._slots)

    def _named(self, name: str) -> Model:
        found = next((model for model in self.store.models() if model.name == name), None)
        if found is None:
            raise InvalidInputError(f"there is no model {name!r}. Ask for {AUTO!r}, or for one that GET /v1/models lists.")
        return found

    def _ask(self, model: Model, body: Json) -> Json:
        with self._open(model, body) as response:
            try:
                answer: Json = json.load(response)
            except (OSError, ValueError) as error:
                raise BackendError(f"{model.name}: {error}") from error
        return {**answer, "model": model.name}

    def _open(self, model: Model, body: Json) -> Any:
        headers = {"Content-Type": "application/json"}
        if model.key_variable:
            headers["Authorization"] = f"Bearer {os.environ[model.key_variable]}"
        sent = json.dumps({**body, "model": model.name}).encode()
        request = urllib.request.Request(f"{model.url}/chat/completions", sent, headers)
        try:
            return urllib.request.urlopen(request, timeout=self._timeout)
        except (OSError, urllib.error.HTTPError) as error:
            raise BackendError(f"{model.name}: {error}") from error


def prompt_of(body: Json) -> str:
    """The text of the last message of a user."""
    for message in reversed(body["messages"]):
        if message.get("role") == "user":
            content = message.get("content") or ""
            return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)
    return ""
