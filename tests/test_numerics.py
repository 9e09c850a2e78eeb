"""Each function against mpmath, to the accuracy that the module states."""

from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from reference import normals

from cbob.numerics import (
    TAIL,
    improvement,
    log_improvement,
    log_ndtr,
    log_neg_log1m_exp,
    ndtr,
    normal_pdf,
    truncation,
    truncation_at,
)

Array = NDArray[np.float64]

STATED = 1e-12

# Far tail, both sides of the seam between the formulas, the bulk, and the far right.
Z = np.concatenate(
    [
        [-1e8, -1e4, -40.0, -38.0, TAIL, np.nextafter(TAIL, 0.0), np.nextafter(TAIL, -6.0), 0.0, 30.0],
        -np.logspace(8, -8, 49),
        np.linspace(-5.2, -4.0, 25),
        np.linspace(-8.0, 8.0, 65),
        np.linspace(8.0, 30.0, 23),
    ]
)
# As far left as phi(z) is a normal number: 5e-308 at -37.5.
NEAR = Z[Z >= -37.5]
LOG_P = np.concatenate([[-800.0, -746.0, -20.8, -20.7, -1e-15], -np.logspace(2.9, -15.0, 121), -np.linspace(0.5, 0.9, 41)])


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mpmath.workdps(normals.DIGITS):
        yield


def relative_error(got: Array, expected: Callable[[Any], Any], at: Array) -> float:
    wanted = [expected(mpmath.mpf(float(one))) for one in at]
    return max(float(abs(float(g) / w - 1)) for g, w in zip(got, wanted, strict=True))


def error_of_log(got: Array, expected: Callable[[Any], Any], at: Array) -> float:
    """Absolute near 0, where a logarithm changes sign, and relative where it is large."""
    wanted = [expected(mpmath.mpf(float(one))) for one in at]
    return max(float(abs(float(g) - w) / max(1, abs(w))) for g, w in zip(got, wanted, strict=True))


@pytest.mark.parametrize("part", ["hazard", "excess", "shrink"])
def test_truncated_moments_keep_their_digits_from_minus_1e8_to_30(part: str) -> None:
    assert relative_error(getattr(truncation(Z), part), getattr(normals, part), Z) < STATED


def test_truncated_moments_are_those_of_quadrature() -> None:
    """The reference formulas themselves, against integrals over the truncated density."""
    for z in (-6.0, -1.3, 0.0, 2.5):
        with mpmath.workdps(20):
            cuts = [-z, -z + 1, -z + 4, mpmath.inf]
            mass, first, second = (mpmath.quad(lambda x, k=k: x**k * normals.pdf(x), cuts) for k in range(3))
            mean, variance = first / mass, second / mass - (first / mass) ** 2
        expected = [float(mean), float(mean + z), float(variance)]
        assert truncation_at(z) == pytest.approx(expected, rel=1e-11)


def test_one_number_gives_what_an_array_gives() -> None:
    assert np.array_equal(np.array([truncation_at(float(z)) for z in Z]).T, np.array(truncation(Z)))


def test_truncated_moments_stay_finite_and_positive_beyond_their_stated_range() -> None:
    where_erfcx_overflows = np.linspace(37.5, 37.8, 301)
    for part in truncation(np.array([-1e150, -1e12, 40.0, 1e8, 1e300, *where_erfcx_overflows])):
        assert np.isfinite(part).all() and (part >= 0.0).all()


def test_log_improvement_and_its_slope_keep_their_digits() -> None:
    value, slope = log_improvement(Z)
    assert error_of_log(value, lambda z: mpmath.log(normals.improvement(z)), Z) < STATED
    # d/dz log(z Phi + phi) = Phi / (z Phi + phi), as d(z Phi + phi) = Phi dz
    assert relative_error(slope, lambda z: normals.cdf(z) / normals.improvement(z), Z) < STATED


def test_slope_of_log_improvement_is_the_derivative_of_its_value() -> None:
    at = np.array([-1e4, -40.0, -5.0, -0.3, 0.0, 4.0, 25.0])
    derivative = [mpmath.diff(lambda z: mpmath.log(normals.improvement(z)), mpmath.mpf(z)) for z in at]
    assert log_improvement(at)[1] == pytest.approx(np.array(derivative, dtype=float), rel=STATED)


def test_improvement_is_accurate_wherever_it_does_not_underflow() -> None:
    assert relative_error(improvement(NEAR), normals.improvement, NEAR) < STATED


def test_density_is_accurate_wherever_it_does_not_underflow() -> None:
    assert relative_error(normal_pdf(NEAR), normals.pdf, NEAR) < STATED
    assert normal_pdf(np.array([-1e200, 1e8])).tolist() == [0.0, 0.0]


def test_log_ndtr_and_ndtr_of_scipy_keep_their_digits() -> None:
    assert relative_error(log_ndtr(Z), normals.log_cdf, Z) < STATED
    assert relative_error(ndtr(NEAR), normals.cdf, NEAR) < STATED


def test_log_neg_log1m_exp_and_its_slope_keep_their_digits_from_minus_800_to_minus_1e_15() -> None:
    value, slope = log_neg_log1m_exp(LOG_P)
    assert error_of_log(value, lambda log_p: normals.log_neg_log1m_exp(log_p)[0], LOG_P) < STATED
    assert relative_error(slope, lambda log_p: normals.log_neg_log1m_exp(log_p)[1], LOG_P) < STATED


def test_slope_of_log_neg_log1m_exp_is_the_derivative_of_its_value() -> None:
    at = np.array([-700.0, -30.0, -20.8, -20.7, -2.0, -0.7, -0.1, -1e-8])

    def value(log_p: Any) -> Any:
        return normals.log_neg_log1m_exp(log_p)[0]

    derivative = [mpmath.diff(value, mpmath.mpf(x), h=abs(x) * 1e-30) for x in at]
    assert log_neg_log1m_exp(at)[1] == pytest.approx(np.array(derivative, dtype=float), rel=STATED)


def test_log_neg_log1m_exp_stays_finite_at_certainty() -> None:
    value, slope = log_neg_log1m_exp(np.array([0.0, -1e-17, -1e5]))
    assert np.isfinite(value).all() and np.isfinite(slope).all()
    assert value[2] == -1e5 and slope[2] == 1.0
