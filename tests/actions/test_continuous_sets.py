"""Every continuous action set: its maximum is a maximum, its closed form is its support function, its points are its own."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from duelist.actions.ball import BallActions
from duelist.actions.box import BoxActions
from duelist.actions.custom import CustomActions
from duelist.actions.ellipsoid import EllipsoidActions
from duelist.actions.finite import FiniteActions
from duelist.actions.polytope import PolytopeActions, most_vertices
from duelist.actions.product import ProductActions
from duelist.actions.support import SupportForm
from duelist.core.errors import EmptySetError, InvalidInputError, UnboundedSetError
from duelist.core.serialize import from_bytes, to_bytes
from duelist.typing import FloatArray
from tests.support.continuous_sets import DIM, LANES, SETS, make_sets, octahedron

every_set = pytest.mark.parametrize("name", SETS)


def _thetas(draws: int = 40) -> FloatArray:
    return np.random.default_rng(7).standard_normal((LANES, draws, DIM))


@every_set
def test_the_best_point_is_in_the_set_and_attains_the_support_function(name: str) -> None:
    actions, theta = SETS[name], _thetas()
    best = actions.best(theta)
    assert (best.row == -1).all()
    assert actions.contains(best.features).all()
    np.testing.assert_allclose(best.value, (theta * best.features).sum(axis=2), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(actions.support(theta), best.value)


@pytest.mark.slow
@every_set
def test_no_random_point_beats_the_best_one_and_all_of_them_are_inside(name: str) -> None:
    actions, theta = SETS[name], _thetas()
    generator = np.random.default_rng(3)
    best = actions.best(theta).value
    for _ in range(100):
        point = actions.sample(generator)
        assert actions.contains(point[:, None]).all()
        assert (np.einsum("lkd,ld->lk", theta, point) <= best + 1e-9).all()


@every_set
def test_points_pushed_outwards_are_outside(name: str) -> None:
    actions, theta = SETS[name], _thetas(5)
    outside = actions.best(theta).features + 1e-3 * theta
    assert not actions.contains(outside).any()


def _support(form: SupportForm, theta: FloatArray) -> FloatArray:
    """The formula of `SupportForm`, term by term."""
    total = np.einsum("ld,lkd->lk", form.centre, theta) + np.einsum("ld,lkd->lk", form.half_widths, np.abs(theta))
    for shape in np.moveaxis(form.shapes, 1, 0):
        total += np.linalg.norm(np.einsum("lij,lki->lkj", shape, theta), axis=2)
    for piece in form.points:
        total += np.einsum("ldn,lkd->lkn", piece, theta).max(axis=2)
    return np.asarray(total)


@pytest.mark.parametrize("name", [name for name in SETS if SETS[name].form is not None])
def test_the_closed_form_is_the_support_function(name: str) -> None:
    theta = _thetas()
    np.testing.assert_allclose(_support(SETS[name].form, theta), SETS[name].best(theta).value, rtol=1e-12, atol=1e-12)


def test_a_users_own_set_has_no_closed_form_and_neither_has_a_product_with_it() -> None:
    assert SETS["own"].form is None
    assert ProductActions([SETS["own"], SETS["ball"]]).form is None


@every_set
def test_equal_sets_have_equal_fingerprints_and_others_do_not(name: str) -> None:
    again = make_sets()
    assert again[name].digest == SETS[name].digest
    assert [other for other in SETS if SETS[other].digest == SETS[name].digest] == [name]


@pytest.mark.parametrize("name", [name for name in SETS if name != "own"])
def test_a_set_survives_saving(name: str) -> None:
    again = from_bytes(to_bytes({"set": SETS[name]}))["set"]
    assert type(again) is type(SETS[name])
    assert again.digest == SETS[name].digest
    np.testing.assert_array_equal(again.best(_thetas()).features, SETS[name].best(_thetas()).features)


def test_a_users_own_set_cannot_be_saved_and_says_what_to_do() -> None:
    with pytest.raises(InvalidInputError, match="to_arrays and from_arrays"):
        to_bytes(SETS["own"])


@every_set
def test_theta_of_another_shape_is_refused(name: str) -> None:
    for shape in ((LANES, 2, DIM + 1), (LANES + 1, 2, DIM), (LANES, DIM)):
        with pytest.raises(InvalidInputError, match="theta must be"):
            SETS[name].best(np.zeros(shape))


def test_the_best_corner_of_a_box_is_the_best_of_all_corners() -> None:
    low, high = np.array([-1.0, 0.5, -3.0, 2.0]), np.array([0.0, 0.75, 4.0, 2.0])
    corners = np.array(list(itertools.product(*zip(low, high, strict=True))))
    theta = np.random.default_rng(0).standard_normal((1, 50, 4))
    best = BoxActions(low, high).best(theta)
    np.testing.assert_allclose(best.value[0], (theta[0] @ corners.T).max(axis=1), rtol=1e-13)


def test_an_ellipsoid_maximises_as_its_quadratic_form_says() -> None:
    q = np.array([[2.0, 0.3], [0.3, 0.5]])
    shape = np.linalg.inv(np.linalg.cholesky(q)).T
    angles = np.linspace(0.0, 2.0 * np.pi, 100_001)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    surface = circle / np.sqrt(np.einsum("ni,ij,nj->n", circle, q, circle))[:, None]
    theta = np.array([[[1.0, 2.0]]])
    found = EllipsoidActions(shape, centre=[1.0, -1.0]).best(theta)
    assert found.value[0, 0] == pytest.approx((surface @ theta[0, 0]).max() + theta[0, 0] @ [1.0, -1.0], rel=1e-8)


def test_a_product_of_finite_sets_is_as_good_as_listing_all_combinations() -> None:
    rng = np.random.default_rng(1)
    left, right = rng.standard_normal((5, 2)), rng.standard_normal((7, 3))
    listed = FiniteActions([np.r_[a, b] for a in left for b in right])
    factors = ProductActions([FiniteActions(left), FiniteActions(right)])
    theta = rng.standard_normal((1, 30, 5))
    np.testing.assert_allclose(factors.best(theta).value, listed.best(theta).value, rtol=1e-13)
    np.testing.assert_array_equal(factors.best(theta).features, listed.best(theta).features)


def _cut_cube(dim: int, cuts: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(dim)
    return np.r_[np.eye(dim), -np.eye(dim), rng.standard_normal((cuts, dim))], np.ones(2 * dim + cuts)


@pytest.mark.parametrize(("dim", "cuts"), [(1, 2), (2, 5), (4, 12), (6, 6)])
def test_the_vertices_of_a_polytope_give_the_maximum_of_the_linear_programme(dim: int, cuts: int) -> None:
    A, b = _cut_cube(dim, cuts)
    polytope = PolytopeActions(A, b)
    assert polytope.vertices is not None
    theta = np.random.default_rng(0).standard_normal((1, 25, dim))
    values = [t @ linprog(-t, A_ub=A, b_ub=b, bounds=(None, None)).x for t in theta[0]]
    np.testing.assert_allclose(polytope.best(theta).value[0], values, rtol=1e-12)


def test_a_polytope_with_too_many_vertices_asks_the_linear_programme() -> None:
    A, b = _cut_cube(12, 40)
    polytope = PolytopeActions(A, b)
    assert polytope.vertices is None
    assert polytope.form is None
    theta = np.random.default_rng(0).standard_normal((1, 3, 12))
    best = polytope.best(theta)
    values = [t @ linprog(-t, A_ub=A, b_ub=b, bounds=(None, None), method="highs-ipm").x for t in theta[0]]
    np.testing.assert_allclose(best.value[0], values, rtol=1e-7)
    assert polytope.contains(best.features).all()
    # An absolute tolerance of the solver must not make short theta look like zero.
    np.testing.assert_allclose(polytope.best(1e-12 * theta).value, 1e-12 * best.value, rtol=1e-7)
    np.testing.assert_array_equal(polytope.best(np.zeros((1, 1, 12))).value, [[0.0]])


def test_known_polytopes_have_their_known_vertices() -> None:
    corners = octahedron(2.0).vertices
    assert corners is not None
    assert sorted(map(tuple, np.round(corners, 12) + 0.0)) == sorted(map(tuple, np.r_[2 * np.eye(3), -2 * np.eye(3)] + 0.0))
    flat = SETS["simplex"].vertices
    assert sorted(map(tuple, np.round(flat, 12) + 0.0)) == sorted(map(tuple, np.eye(3)))
    point = PolytopeActions([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], [2.0, -2.0, 3.0, -3.0])
    assert point.vertices is not None
    np.testing.assert_allclose(point.vertices, [[2.0, 3.0]], atol=1e-12)
    np.testing.assert_allclose(point.sample(np.random.default_rng(0)), [[2.0, 3.0]], atol=1e-12)
    segment = PolytopeActions([[1.0, -1.0], [-1.0, 1.0], [1.0, 0.0], [-1.0, 0.0]], [0.0, 0.0, 1.0, 0.0])
    assert segment.vertices is not None
    np.testing.assert_allclose(sorted(map(tuple, segment.vertices)), [[0.0, 0.0], [1.0, 1.0]], atol=1e-12)


def test_the_most_vertices_of_a_polytope_follow_the_upper_bound_theorem() -> None:
    assert [most_vertices(2, m) for m in (3, 4, 9)] == [3, 4, 9]  # a polygon has as many corners as sides
    assert [most_vertices(3, m) for m in (4, 6, 8)] == [4, 8, 12]  # 2 m - 4, from Euler's formula


def test_points_of_a_polytope_are_spread_evenly() -> None:
    triangle = PolytopeActions([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 1.0], lanes=4000)
    points = triangle.sample(np.random.default_rng(0))
    # Uniform on the triangle: mean 1/3 and sd sqrt(1/18) a coordinate; five standard errors.
    np.testing.assert_allclose(points.mean(axis=0), 1 / 3, atol=5 * np.sqrt(1 / 18 / 4000))
    assert (points.sum(axis=1) < 0.5).mean() == pytest.approx(0.25, abs=5 * np.sqrt(0.25 * 0.75 / 4000))


def test_points_of_a_ball_are_spread_evenly() -> None:
    lengths = np.linalg.norm(BallActions(4000, 3, 2.0).sample(np.random.default_rng(0)), axis=1)
    assert (lengths < 1.0).mean() == pytest.approx(0.125, abs=5 * np.sqrt(0.125 * 0.875 / 4000))


EMPTY: list[Any] = [
    lambda: PolytopeActions([[1.0], [-1.0]], [0.0, -1.0]),
    lambda: PolytopeActions([[0.0, 0.0], [1.0, 0.0]], [-1.0, 1.0]),
    lambda: BoxActions([0.0, 1.0], [1.0, 0.5]),
]
UNBOUNDED: list[Any] = [
    lambda: PolytopeActions([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0]),
    lambda: PolytopeActions([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [1.0, 1.0, np.inf]),
    lambda: BoxActions([0.0], [np.inf]),
    lambda: BallActions(1, 2, np.inf),
    lambda: EllipsoidActions([[np.inf]]),
    lambda: CustomActions(lambda theta: theta * np.inf, dim=2, name="runs away").best(np.ones((1, 1, 2))),
]


@pytest.mark.parametrize("make", EMPTY)
def test_empty_sets_are_refused_by_name(make: Any) -> None:
    with pytest.raises(EmptySetError):
        make()


@pytest.mark.parametrize("make", UNBOUNDED)
def test_unbounded_sets_are_refused_by_name(make: Any) -> None:
    with pytest.raises(UnboundedSetError):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: BoxActions([0.0, np.nan], [1.0, 1.0]),
        lambda: BoxActions([0.0], [1.0, 2.0]),
        lambda: BoxActions([[0.0], [0.0]], [[1.0], [1.0]], lanes=3),
        lambda: EllipsoidActions([[1.0, 2.0], [2.0, 4.0]]),
        lambda: EllipsoidActions([[1.0, 2.0]]),
        lambda: EllipsoidActions(np.eye(2), centre=[1.0]),
        lambda: PolytopeActions([[1.0, 0.0]], [1.0, 2.0]),
        lambda: ProductActions([]),
        lambda: ProductActions([BallActions(1, 2), BallActions(2, 2)]),
        lambda: ProductActions(["a ball"]),  # type: ignore[list-item]
        lambda: CustomActions("not a solver", dim=2, name="x"),
        lambda: CustomActions(lambda theta: theta, dim=2, name=""),
        lambda: CustomActions(lambda theta: theta[:1], dim=2, name="short").best(np.ones((1, 1, 2))),
        lambda: CustomActions(lambda theta: theta, dim=2, name="x").contains(np.ones((1, 1, 2))),
        lambda: CustomActions(lambda theta: theta, dim=2, name="x").sample(np.random.default_rng(0)),
    ],
)
def test_what_is_no_set_is_refused(make: Any) -> None:
    with pytest.raises(InvalidInputError):
        make()
