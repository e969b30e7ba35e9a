"""Values survive the way to plain arrays and back exactly, and nothing else gets in."""

from __future__ import annotations

import io
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError, SavedStateError
from duelist.core.serialize import from_arrays, from_bytes, to_arrays, to_bytes
from duelist.core.stored_names import stored
from duelist.history.duels import duels_between
from duelist.history.history import History


@stored("test-inner")
class Inner(NamedTuple):
    position: Any
    calls: int


@stored("test-outer")
class Outer(NamedTuple):
    inner: Inner
    name: str
    live: bool
    rate: float
    layers: tuple[Inner, ...]
    missing: None


def outer() -> Outer:
    generator = np.random.default_rng(3)
    return Outer(
        inner=Inner(generator.standard_normal((1, 2, 4)), 7),
        name="naïve / état",
        live=True,
        rate=0.1 + 0.2,
        layers=(Inner(np.arange(3), 0), Inner(np.zeros((0, 5)), 2**70)),
        missing=None,
    )


def played_history(rounds: int, keep_sets: bool) -> History:
    generator = np.random.default_rng(5)
    sets = [FiniteActions(generator.standard_normal((n_arms, 3))) for n_arms in (4, 6, 3)]
    history = History.start(lanes=1, dim=3, keep_sets=keep_sets)
    for t in range(rounds):
        arms = sets[t % 3]
        first, second = generator.choice(arms.n_arms, 2, replace=False)
        history = history.append(arms, duels_between(arms, np.array([first]), np.array([second])), np.array([1 - 2 * (t % 2)]))
    return history


def test_a_tree_of_named_tuples_comes_back_with_its_classes_types_and_bits() -> None:
    before = outer()
    after = from_arrays(to_arrays(before))
    assert type(after) is Outer
    assert type(after.inner) is Inner
    assert after.inner.position.tobytes() == before.inner.position.tobytes()
    assert (after.name, after.live, after.rate, after.missing) == (before.name, True, before.rate, None)
    assert type(after.live) is bool
    assert after.layers[1].position.shape == (0, 5)
    assert after.layers[1].calls == 2**70


def test_every_array_of_the_flat_dict_is_plain_and_named_by_its_place() -> None:
    arrays = to_arrays(outer())
    assert "value/inner/position" in arrays
    assert not any(array.dtype.hasobject for array in arrays.values())


def test_a_numpy_number_stays_a_numpy_number() -> None:
    back = from_arrays(to_arrays({"x": np.float64(0.1), "n": np.int32(3)}))
    assert type(back["x"]) is np.float64
    assert type(back["n"]) is np.int32


@given(st.floats(allow_nan=False))
def test_every_float_keeps_its_bits(number: float) -> None:
    back = from_bytes(to_bytes({"x": number}))["x"]
    assert math.copysign(1.0, back) == math.copysign(1.0, number)
    assert back == number


@pytest.mark.parametrize("keep_sets", [False, True])
def test_a_history_comes_back_with_the_same_statistics_and_goes_on_alike(keep_sets: bool) -> None:
    before = played_history(40, keep_sets)
    after: History = from_bytes(to_bytes({"history": before}))["history"]
    assert after.rounds == 40
    arms = FiniteActions(np.eye(3))
    pair = duels_between(arms, np.array([2]), np.array([0]))
    for history, again in (
        (before, after),
        (before.append(arms, pair, np.array([1])), after.append(arms, pair, np.array([1]))),
    ):
        n = int(history.statistics.n_rows[0])
        assert n == int(again.statistics.n_rows[0])
        assert history.statistics.contrasts[:, :, :n].tobytes() == again.statistics.contrasts[:, :, :n].tobytes()
        assert history.statistics.losses[:, :n].tobytes() == again.statistics.losses[:, :n].tobytes()
        assert history.statistics.totals[:, :n].tobytes() == again.statistics.totals[:, :n].tobytes()
        assert history.statistics.repeats.tobytes() == again.statistics.repeats.tobytes()


def test_equal_values_give_equal_bytes() -> None:
    assert to_bytes(outer()) == to_bytes(outer())


def test_arrays_come_back_writable_and_contiguous_as_kernels_need_them() -> None:
    strided = np.arange(24.0).reshape(4, 6)[:, ::2]
    back = from_bytes(to_bytes({"x": strided}))["x"]
    assert back.flags.writeable
    assert back.flags.c_contiguous
    assert (back == strided).all()


@pytest.mark.parametrize("keep", [0, 1, 10, 200, -1])
def test_torn_bytes_are_refused(keep: int) -> None:
    with pytest.raises(SavedStateError, match="torn"):
        from_bytes(to_bytes(outer())[:keep])


def test_a_flipped_bit_anywhere_in_the_data_is_refused() -> None:
    data = bytearray(to_bytes({"x": np.arange(200.0)}))
    data[len(data) // 2] ^= 1
    with pytest.raises(SavedStateError):
        from_bytes(bytes(data))


def test_an_archive_of_somebody_else_is_refused() -> None:
    buffer = io.BytesIO()
    np.savez(buffer, weights=np.zeros(3))
    with pytest.raises(SavedStateError, match="duelist did not write this"):
        from_bytes(buffer.getvalue())
    single = io.BytesIO()
    np.save(single, np.zeros(3))
    with pytest.raises(SavedStateError):
        from_bytes(single.getvalue())


def test_another_format_number_is_refused_by_name() -> None:
    arrays = to_arrays({"x": 1})
    arrays["structure"] = np.frombuffer(arrays["structure"].tobytes().replace(b'"duelist": 2', b'"duelist": 9'), dtype=np.uint8)
    with pytest.raises(SavedStateError, match="got format 9"):
        from_arrays(arrays)


@pytest.mark.parametrize(
    "name",
    [
        "subprocess:Popen",
        "duelist.core.checks:finite_number",
        "duelist.nowhere:X",
        "antigravity:X",
        "duelist.history.history:_Log",
    ],
)
def test_a_class_that_is_no_part_of_a_state_is_never_built(name: str) -> None:
    arrays = to_arrays(Inner(np.zeros(2), 1))
    text = arrays["structure"].tobytes().replace(b"test-inner/1", name.encode())
    assert name.encode() in text
    arrays["structure"] = np.frombuffer(text, dtype=np.uint8)
    with pytest.raises(SavedStateError):
        from_arrays(arrays)


def test_what_cannot_be_saved_is_refused_by_name() -> None:
    class Local(NamedTuple):
        x: int

    with pytest.raises(InvalidInputError, match="value/generator must be made of"):
        to_arrays({"generator": object()})
    with pytest.raises(InvalidInputError, match="Python objects"):
        to_arrays({"x": np.array([object()])})
    with pytest.raises(InvalidInputError, match="keys"):
        to_arrays({3: 1})
    with pytest.raises(InvalidInputError, match="keys"):
        to_arrays({"a/b": 1})
    with pytest.raises(InvalidInputError, match="has no name for files"):
        to_arrays(Local(1))
