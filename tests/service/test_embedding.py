"""Text to features: the embedder that is shipped, and what the service does while another one is slow or fails."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.service.embedding import HashingEmbedder
from duelist.typing import FloatArray
from tests.support.services import GENEROUS, running_service


def test_rows_have_length_one_and_the_same_text_the_same_row() -> None:
    rows = HashingEmbedder(dim=32).embed(["one two three", "one two three", "", "ein Satz mit Ümlaut"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1.0, 1.0, 0.0, 1.0])
    assert (rows[0] == rows[1]).all()


def test_similar_texts_are_nearer_than_different_ones() -> None:
    rows = HashingEmbedder(dim=256).embed(
        ["restart the router and wait a minute", "restart the router and wait two minutes", "bake the bread until it is brown"]
    )
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.3


def test_the_hash_does_not_depend_on_the_process() -> None:
    # Features stored by one process must mean the same in another.
    expected = [0.0, 0.0, 0.0, 0.894427, -0.447214, 0.0, 0.0, 0.0]
    assert HashingEmbedder(dim=8).embed(["hello world"])[0] == pytest.approx(expected, abs=1e-6)


def test_a_dimension_of_one_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        HashingEmbedder(dim=1)


class ModelElsewhere:
    """An embedder that takes as long as the test wants, or fails."""

    dim = 4

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked = threading.Event()
        self.broken = False

    def embed(self, texts: Sequence[str]) -> FloatArray:
        self.asked.set()
        assert self.may_answer.wait(60)
        if self.broken:
            raise ConnectionError("the model is not there")
        return np.eye(4)[[len(text) % 4 for text in texts]]


def test_votes_go_on_while_an_embedder_takes_its_time() -> None:
    model = ModelElsewhere()
    with running_service(settings=replace(GENEROUS, embedders={"model": model})) as service, ThreadPoolExecutor() as others:
        arena = service.create(features="text", embedder="model")
        model.asked.clear()
        model.may_answer.clear()
        try:
            adding = others.submit(
                service.admin.post, f"/api/v1/arenas/{arena}/items", json={"items": [{"name": "Delta"}, {"name": "Epsilon"}]}
            )
            assert model.asked.wait(60)
            ask = service.ask(arena)
            assert service.tell(arena, ask["id"], "left").status_code == 200
        finally:
            model.may_answer.set()
        assert [item["id"] for item in adding.result().json()["items"]] == ["alpha", "beta", "gamma", "delta", "epsilon"]


def test_an_embedder_that_fails_is_said_so_and_nothing_is_added() -> None:
    model = ModelElsewhere()
    with running_service(settings=replace(GENEROUS, embedders={"model": model})) as service:
        arena = service.create(features="text", embedder="model")
        model.broken = True
        answer = service.admin.post(f"/api/v1/arenas/{arena}/items", json={"items": [{"name": "Delta"}]})
        assert answer.status_code == 503
        assert "embedder 'model' failed (ConnectionError)" in answer.json()["detail"]
        assert len(service.admin.get(f"/api/v1/arenas/{arena}/items").json()["items"]) == 3
