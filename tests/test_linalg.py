"""Factors and solves against NumPy's own, and the one-thread guard against the libraries' word."""

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from cbob.linalg import (
    JITTERS,
    NotPositiveDefiniteError,
    cholesky,
    inverse_from_cholesky,
    one_thread,
    solve_lower,
    times_lower,
    triangular_inverse,
)

Array = NDArray[np.float64]


def positive_definite(n: int, seed: int = 0) -> Array:
    half = np.random.default_rng(seed).standard_normal((n, n + 2))
    return half @ half.T


@pytest.mark.parametrize("n", [1, 2, 17])
def test_cholesky_equals_numpys_where_no_jitter_is_needed(n: int) -> None:
    matrix = positive_definite(n)
    assert cholesky(matrix) == pytest.approx(np.linalg.cholesky(matrix), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_cholesky_adds_the_least_jitter_relative_to_the_diagonal(scale: float) -> None:
    for below_zero in (1e-9, 1e-6):  # minus the least eigenvalue
        vectors = np.linalg.qr(positive_definite(3))[0]
        matrix = vectors @ np.diag([2.0, 1.0, -below_zero]) @ vectors.T * scale
        lower = cholesky(matrix)
        added = np.diagonal(lower @ lower.T - matrix).mean() / scale
        least = min(jitter for jitter in JITTERS if jitter * (3.0 - below_zero) / 3.0 > below_zero)
        assert added == pytest.approx(least * (3.0 - below_zero) / 3.0, rel=1e-4)


def test_cholesky_of_a_singular_matrix_is_nearly_its_factor() -> None:
    matrix = np.ones((6, 6))
    lower = cholesky(matrix)
    assert np.isfinite(lower).all()
    assert lower @ lower.T == pytest.approx(matrix, abs=1e-8)


def test_cholesky_refuses_a_matrix_that_no_jitter_mends() -> None:
    with pytest.raises(NotPositiveDefiniteError, match="a 2 x 2 matrix stayed indefinite up to jitter"):
        cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_cholesky_reads_the_lower_triangle_alone_and_leaves_its_argument_as_it_was() -> None:
    matrix = positive_definite(4)
    spoilt = np.tril(matrix) + 7.0 * np.triu(np.ones((4, 4)), 1)
    before = spoilt.copy()
    assert np.array_equal(cholesky(spoilt), cholesky(matrix))
    assert np.array_equal(spoilt, before)
    assert np.array_equal(np.triu(cholesky(matrix), 1), np.zeros((4, 4)))


def test_solves_and_inverses_equal_dense_ones() -> None:
    matrix = positive_definite(9)
    lower = cholesky(matrix)
    right = np.random.default_rng(1).standard_normal((9, 3))
    kept = lower.copy(), right.copy()
    assert solve_lower(lower, right) == pytest.approx(np.linalg.solve(lower, right), rel=1e-10)
    one = solve_lower(lower, right[:, 0]).ravel()
    assert one == pytest.approx(np.linalg.solve(lower, right[:, 0]), rel=1e-10)
    assert times_lower(lower, right) == pytest.approx(lower @ right, rel=1e-13)
    assert triangular_inverse(lower) == pytest.approx(np.linalg.inv(lower), rel=1e-10, abs=1e-12)
    inverse = inverse_from_cholesky(lower)
    assert inverse == pytest.approx(np.linalg.inv(matrix), rel=1e-9, abs=1e-10)
    assert np.array_equal(inverse, inverse.T)
    assert np.array_equal(lower, kept[0]) and np.array_equal(right, kept[1])


def test_nothing_has_an_empty_factor() -> None:
    empty = np.empty((0, 0))
    for factor in (cholesky, triangular_inverse, inverse_from_cholesky):
        assert factor(empty).shape == (0, 0)
    for act in (solve_lower, times_lower):
        assert act(empty, np.empty((0, 3))).shape == (0, 3)


def test_one_thread_holds_blas_to_one_thread_and_gives_the_rest_back() -> None:
    def threads() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = threads()
    with one_thread():
        assert threads() == [1] * len(before)
    assert threads() == before
