"""The Matern-5/2 against its textbook form, pair by pair."""

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.differences import derivative, gradient
from reference.textbook_gp import matern52

from cbob.models.kernels import Matern52, squared_distance

Array = NDArray[np.float64]

KERNEL = Matern52(np.array([0.3, 1.7, 0.05]), 2.5, 0.7)


def rows(count: int, seed: int) -> Array:
    return np.random.default_rng(seed).random((count, 3))


def test_kernel_equals_the_textbook_pair_by_pair() -> None:
    A, B = rows(7, 0), rows(5, 1)
    assert KERNEL(A, B) == pytest.approx(matern52(A, B, KERNEL.lengthscales, 2.5, 0.7), rel=1e-12)


@pytest.mark.parametrize("log_lengthscale", [-5.0, 5.0])
def test_kernel_keeps_its_digits_at_the_ends_of_the_lengthscales(log_lengthscale: float) -> None:
    ell = np.full(3, np.exp(log_lengthscale))
    A = np.vstack([rows(6, 0), rows(6, 0) + 1e-6])  # near-duplicates suffer most from the expanded square
    assert Matern52(ell, 1.0, 0.0)(A, A) == pytest.approx(matern52(A, A, ell), abs=1e-10)


def test_kernel_of_a_row_with_itself_is_its_variance() -> None:
    A = rows(6, 0)
    assert np.diagonal(KERNEL(A, A)) == pytest.approx(np.full(6, KERNEL.variance), rel=1e-12)
    assert KERNEL.variance == 3.2


def test_slope_factor_gives_the_gradient_in_a_row() -> None:
    A, B = rows(4, 0), rows(5, 1)
    _, factor = KERNEL.with_slope(A, B)
    for i in range(4):
        numeric = gradient(lambda a: matern52(a[None], B, KERNEL.lengthscales, 2.5, 0.7)[0], A[i], step=1e-4)
        assert -factor[i][:, None] * (A[i] - B) / KERNEL.lengthscales**2 == pytest.approx(numeric, abs=1e-7)


def test_slope_factor_gives_the_gradient_in_a_log_lengthscale() -> None:
    A, B = rows(4, 0), rows(5, 1)
    _, factor = KERNEL.with_slope(A, B)
    for j in range(3):

        def at(log_ell: float, j: int = j) -> Array:
            ell = KERNEL.lengthscales.copy()
            ell[j] = np.exp(log_ell)
            return matern52(A, B, ell, 2.5, 0.7)

        analytic = factor * (A[:, None, j] - B[None, :, j]) ** 2 / KERNEL.lengthscales[j] ** 2
        assert analytic == pytest.approx(derivative(at, float(np.log(KERNEL.lengthscales[j]))), abs=1e-9)


def test_squared_distance_is_never_negative_and_leaves_its_arguments() -> None:
    A = rows(30, 2) * 1e3
    kept = A.copy()
    distance = squared_distance(A, A)
    assert (distance >= 0.0).all()
    assert distance == pytest.approx(((A[:, None] - A[None]) ** 2).sum(axis=2), abs=1e-8)
    assert np.array_equal(A, kept)
