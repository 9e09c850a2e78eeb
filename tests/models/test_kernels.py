"""The kernel against its textbook form, pair by pair."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.differences import derivative, gradient
from reference.textbook_gp import main_effects, matern52
from scipy.integrate import quad

from cbob.models.kernels import Kernel, by_column, equal_portions, squared_distance, wave_slopes, waves

Array = NDArray[np.float64]

KERNEL = Kernel(np.array([0.3, 1.7, 0.05]), 2.5, effects=1.1, ratio=0.4, bias=0.7, portions=np.full(3, 1.0 / 3.0))
PLAIN = replace(KERNEL, effects=0.0)


def effects_alone(lengthscales: Array, *, effects: float) -> Kernel:
    """Main effects alone."""
    return Kernel(lengthscales, 0.0, effects, ratio=1.0, bias=0.0, portions=equal_portions(np.arange(lengthscales.size)))


def rows(count: int, seed: int) -> Array:
    return np.random.default_rng(seed).random((count, 3))


def test_kernel_equals_the_textbook_pair_by_pair() -> None:
    A, B = rows(7, 0), rows(5, 1)
    book = matern52(A, B, KERNEL.lengthscales, 2.5, 0.7)
    assert PLAIN(A, B) == pytest.approx(book, rel=1e-12)
    assert KERNEL(A, B) == pytest.approx(book + main_effects(A, B, KERNEL.lengthscales, 1.1, 0.4, count=16), rel=1e-12)


@pytest.mark.parametrize("lengthscale", [0.1, 0.3, 0.5])
def test_a_main_effect_is_the_matern_of_its_column_about_its_mean_where_neither_end_of_the_series_is_felt(
    lengthscale: float,
) -> None:
    """A series of period 2 repeats the Matern, whose mean over a period it leaves out; 16 waves resolve a tenth of the side."""
    kernel = effects_alone(np.full(2, lengthscale), effects=2.0)
    t = np.linspace(0.0, 1.0, 11)
    A, B = np.column_stack([t, np.full(11, 0.4)]), np.array([[0.0, 0.4]])

    def matern(gap: float) -> float:
        s = np.sqrt(5.0) * abs(gap) / lengthscale
        return float((1.0 + s + s**2 / 3.0) * np.exp(-s))

    def repeated(gap: float) -> float:
        return sum(matern(gap + 2.0 * k) for k in range(-6, 7))

    mean = quad(repeated, 0.0, 1.0, limit=200)[0]
    held_still = kernel(A[:1], B).item() / 2.0
    series = kernel(A, B).ravel() - held_still
    expected = np.array([repeated(gap) - mean for gap in t]) / repeated(0.0)
    assert series == pytest.approx(expected, abs=0.005)


def test_a_column_of_long_lengthscale_has_no_main_effect_and_a_lone_column_none_of_its_own() -> None:
    flat = effects_alone(np.array([0.5, 1e4]), effects=1.0)
    assert flat(np.array([[0.3, 0.0]]), np.array([[0.3, 1.0]])).item() == pytest.approx(flat.variance, rel=1e-9)
    assert effects_alone(np.array([0.5]), effects=9.0).variance == 0.0


def test_main_effects_add_up_and_never_interact() -> None:
    kernel = replace(KERNEL, amplitude=0.0, bias=0.0)
    A = rows(1, 4)
    at = lambda *x: kernel(A, np.array([x])).item()  # noqa: E731
    both, first, second, neither = at(0.9, 0.8, 0.5), at(0.9, 0.1, 0.5), at(0.2, 0.8, 0.5), at(0.2, 0.1, 0.5)
    assert both - first == pytest.approx(second - neither, abs=1e-14)


@pytest.mark.parametrize("width", [2, 10, 40, 300])
def test_waves_stay_few_and_their_number_is_that_of_the_shares(width: int) -> None:
    kernel = effects_alone(np.full(width, 0.5), effects=1.0)
    assert waves(np.zeros((2, width))).shape == (2, 2 * kernel.shares.size)
    assert kernel.shares.shape[1] == {2: 16, 10: 8, 40: 3, 300: 3}[width]


@pytest.mark.parametrize("log_lengthscale", [-5.0, 5.0])
def test_kernel_keeps_its_digits_at_the_ends_of_the_lengthscales(log_lengthscale: float) -> None:
    ell = np.full(3, np.exp(log_lengthscale))
    A = np.vstack([rows(6, 0), rows(6, 0) + 1e-6])  # near-duplicates suffer most from the expanded square
    assert replace(effects_alone(ell, effects=0.0), amplitude=1.0)(A, A) == pytest.approx(matern52(A, A, ell), abs=1e-10)


def test_kernel_of_a_row_with_itself_is_its_variance() -> None:
    A = rows(6, 0)
    assert np.diagonal(KERNEL(A, A)) == pytest.approx(np.full(6, KERNEL.variance), rel=1e-12)
    assert PLAIN.variance == 3.2


def test_slope_factor_gives_the_gradient_in_a_row() -> None:
    A, B = rows(4, 0), rows(5, 1)
    _, factor = KERNEL.value_and_slope(KERNEL.see(A), KERNEL.see(B))
    for i in range(4):
        numeric = gradient(lambda a: matern52(a[None], B, KERNEL.lengthscales, 2.5, 0.7)[0], A[i], step=1e-4)
        assert -factor[i][:, None] * (A[i] - B) / KERNEL.lengthscales**2 == pytest.approx(numeric, abs=1e-7)


def test_slope_factor_gives_the_gradient_in_a_log_lengthscale() -> None:
    A, B = rows(4, 0), rows(5, 1)
    _, factor = KERNEL.value_and_slope(KERNEL.see(A), KERNEL.see(B))
    for j in range(3):

        def at(log_ell: float, j: int = j) -> Array:
            ell = KERNEL.lengthscales.copy()
            ell[j] = np.exp(log_ell)
            return matern52(A, B, ell, 2.5, 0.7)

        analytic = factor * (A[:, None, j] - B[None, :, j]) ** 2 / KERNEL.lengthscales[j] ** 2
        assert analytic == pytest.approx(derivative(at, float(np.log(KERNEL.lengthscales[j]))), abs=1e-9)


def test_wave_slopes_give_the_gradient_of_main_effects_in_a_row() -> None:
    A, b = rows(4, 0), rows(1, 1)
    slopes = wave_slopes(waves(b), 3)
    for a in A:
        numeric = gradient(
            lambda at, a=a: main_effects(a[None], at[None], KERNEL.lengthscales, 1.1, 0.4, count=16)[0], b[0], step=1e-4
        )
        analytic = by_column(slopes * waves(a[None]) * KERNEL.weights, 3)
        assert analytic[0] == pytest.approx(numeric.ravel(), abs=1e-6)


def test_share_slopes_are_the_derivatives_of_the_log_shares() -> None:
    for j in range(3):

        def shares(log_ell: float, j: int = j) -> Array:
            ell = KERNEL.lengthscales.copy()
            ell[j] = np.exp(log_ell)
            return np.log(replace(KERNEL, lengthscales=ell).shares[j])

        numeric = derivative(shares, float(np.log(KERNEL.lengthscales[j])))
        assert KERNEL.share_slopes[j] == pytest.approx(numeric, abs=1e-7)


def test_squared_distance_is_never_negative_and_leaves_its_arguments() -> None:
    A = rows(30, 2) * 1e3
    kept = A.copy()
    distance = squared_distance(A, A)
    assert (distance >= 0.0).all()
    assert distance == pytest.approx(((A[:, None] - A[None]) ** 2).sum(axis=2), abs=1e-8)
    assert np.array_equal(A, kept)


def test_each_parameter_has_an_equal_portion_however_many_columns_it_takes() -> None:
    """A Float, a categorical of ten choices and one of two: a change of choice is as large an effect as any."""
    groups = np.array([0] + [1] * 10 + [2] * 2)
    kernel = Kernel(np.full(13, 0.3), 0.0, 1.0, ratio=1.0, bias=0.0, portions=equal_portions(groups))
    row = np.zeros((1, 13))
    row[0, [0, 1, 11]] = 0.2, 1.0, 1.0
    ten, two = row.copy(), row.copy()
    ten[0, [1, 5]], two[0, [11, 12]] = [0.0, 1.0], [0.0, 1.0]
    here = kernel(row, row).item()
    assert here - kernel(row, ten).item() == pytest.approx(here - kernel(row, two).item())
    alone = replace(kernel, portions=np.full(13, 1.0 / 3.0))
    moved = alone(row, row).item() - alone(row, row + np.eye(13)[[0]]).item()
    assert here - kernel(row, ten).item() == pytest.approx(moved)
