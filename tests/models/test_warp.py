"""The warps of readings against their formulas, their way back, and their derivatives against differences."""

import sys
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from reference.differences import derivative
from reference.textbook_warp import formula, knee_of

from cbob.models.warp import LEAST_SPREAD, Shape, Warped, fold, typical_size

Array = NDArray[np.float64]

DECADES = np.concatenate([sign * np.logspace(-5, 5, 21) for sign in (-1.0, 1.0)])
KNEES = [-14.0, -4.0, 0.0, 3.0, 7.0]
HUGE = sys.float_info.max
READINGS = {
    "ordinary": np.array([-3.0, -1.0, 0.0, 0.5, 2.0, 7.0]),
    "ten decades": DECADES,
    "varying by little around much": 1e4 + np.array([-3.0, -1.0, 0.0, 0.5, 2.0]),
    "constant": np.full(4, 2.5),
    "constant at the limit": np.zeros(3),
    "single": np.array([-0.3]),
}
every_reading = pytest.mark.parametrize("margins", READINGS.values(), ids=READINGS)
every_shape = pytest.mark.parametrize("shape", Shape, ids=lambda shape: shape.name.lower())
every_knee = pytest.mark.parametrize("log_knee", KNEES)


def rounding(shape: Shape, warped: Warped, log_knee: float) -> float:
    """What is lost where a small knee is added to the far end of a one-sided fold."""
    return 0.0 if shape is Shape.SYMMETRIC else 4e-16 * warped.warp.turn / float(np.exp(log_knee))


def folded(margins: Array, shape: Shape, log_knee: float) -> Warped:
    return fold(margins, typical_size(margins), shape, log_knee)


@every_shape
@every_knee
def test_a_warped_reading_comes_back_over_ten_decades(shape: Shape, log_knee: float) -> None:
    warp = folded(DECADES, shape, log_knee).warp
    # One-sided, the readings nearest to the fold's end are differences from it.
    lost = 0.0 if shape is Shape.SYMMETRIC else 1e-14 * np.abs(DECADES).max() * np.exp(max(-log_knee, 0.0))
    assert warp.inverse(warp(DECADES)) == pytest.approx(DECADES, rel=1e-11, abs=max(lost, 1e-11 * warp.turn))


@every_reading
@every_shape
@every_knee
def test_warped_readings_are_the_formula_at_unit_spread(margins: Array, shape: Shape, log_knee: float) -> None:
    warped = folded(margins, shape, log_knee)
    expected = formula(margins, shape, knee_of(log_knee, margins, shape))
    assert warped.y * warped.warp.spread == pytest.approx(expected, rel=1e-5, abs=1e-15)  # log(1 + tiny) is rounded
    assert warped.warp(margins) == pytest.approx(warped.y, rel=1e-9, abs=1e-15)
    if np.std(expected) > 2.0 * LEAST_SPREAD * np.abs(expected).max():
        assert np.std(warped.y) == pytest.approx(1.0)
    assert warped.offset == pytest.approx(warped.y.mean())


@every_shape
@every_knee
def test_the_limit_stays_at_0_and_the_order_is_kept(shape: Shape, log_knee: float) -> None:
    warp = folded(DECADES, shape, log_knee).warp
    assert warp(np.zeros(1)).tolist() == [0.0] == warp.inverse(np.zeros(1)).tolist()
    assert np.array_equal(np.sign(warp(DECADES)), np.sign(DECADES))
    assert (np.diff(warp(np.sort(DECADES))) > 0.0).all()


@every_knee
def test_a_warp_of_mirrored_readings_is_the_mirrored_warp(log_knee: float) -> None:
    margins = READINGS["ordinary"]
    for shape, mirrored in ((Shape.SYMMETRIC, Shape.SYMMETRIC), (Shape.UPPER, Shape.LOWER)):
        there, here = folded(-margins, mirrored, log_knee), folded(margins, shape, log_knee)
        assert there.y == pytest.approx(-here.y, rel=1e-12)
        assert there.log_jacobian == pytest.approx(here.log_jacobian, rel=1e-12)


@every_shape
def test_a_large_knee_is_no_warp_at_all(shape: Shape) -> None:
    margins = READINGS["ordinary"]
    assert folded(margins, shape, 25.0).y == pytest.approx(margins / np.std(margins), rel=1e-9)


def test_an_upper_warp_makes_the_logarithm_of_a_ratio_to_the_limit_linear() -> None:
    """Readings size - limit of sizes over six decades, with the knee that puts the fold's end at size 0."""
    limit, sizes = 10.0, np.logspace(0, 6, 13)
    margins = sizes - limit
    knee = limit - 1.02 * (limit - sizes[0])
    warped = folded(margins, Shape.UPPER, float(np.log(knee / typical_size(margins))))
    assert np.diff(warped.y, 2) == pytest.approx(np.zeros(11), abs=1e-9)
    assert warped.warp.inverse(warped.y) == pytest.approx(margins, rel=1e-9)


@every_reading
@every_shape
@every_knee
def test_derivatives_in_the_knee_equal_differences(margins: Array, shape: Shape, log_knee: float) -> None:
    def parts(at: float) -> Array:
        warped = folded(margins, shape, at)
        return np.concatenate([warped.y, [warped.log_jacobian, warped.offset]])

    warped, numeric = folded(margins, shape, log_knee), derivative(parts, log_knee)
    error = (1e-8 + 1e3 * rounding(shape, warped, log_knee)) * (1.0 + np.abs(warped.y).max())
    assert warped.y_slope == pytest.approx(numeric[:-2], abs=error)
    assert warped.log_jacobian_slope == pytest.approx(numeric[-2], rel=1e-7, abs=10.0 * error)
    assert warped.offset_slope == pytest.approx(numeric[-1], abs=error)


@every_reading
@every_shape
@every_knee
def test_log_jacobian_is_the_sum_of_the_logarithms_of_dy_dg(margins: Array, shape: Shape, log_knee: float) -> None:
    """The spread and c held, and readings counted in units: a change of units is no evidence."""
    unit, knee = typical_size(margins), knee_of(log_knee, margins, shape)
    with mpmath.workdps(60):
        slopes = [_slope_of_formula(float(g), shape, knee) for g in margins]
        expected = sum(float(mpmath.log(slope * unit)) for slope in slopes)
    warped = folded(margins, shape, log_knee)
    expected -= margins.size * float(np.log(warped.warp.spread))
    assert warped.log_jacobian == pytest.approx(expected, abs=1e-7 + 10.0 * rounding(shape, warped, log_knee))


def _slope_of_formula(g: float, shape: Shape, knee: float) -> Any:
    """dw/dg by a one-sided difference: the symmetric warp has a corner in its slope at 0."""
    sign = shape or (1 if g >= 0.0 else -1)
    step = mpmath.mpf(10) ** -20 * (knee + sign * mpmath.mpf(g))

    def w(at: Any) -> Any:
        return sign * mpmath.log(1 + sign * at / mpmath.mpf(knee))

    return (w(g + step) - w(mpmath.mpf(g))) / step


@every_shape
def test_units_do_not_matter(shape: Shape) -> None:
    margins = READINGS["ordinary"]
    for unit in (1e-300, 1e-9, 1e300 / 7.0):
        scaled, plain = folded(margins * unit, shape, -1.0), folded(margins, shape, -1.0)
        assert scaled.y == pytest.approx(plain.y, rel=1e-12)
        assert scaled.log_jacobian == pytest.approx(plain.log_jacobian, rel=1e-12)


@every_shape
@every_knee
def test_the_largest_and_the_smallest_floats_stay_finite(shape: Shape, log_knee: float) -> None:
    for margins in (
        [HUGE, HUGE],
        [HUGE, -HUGE, 1.0],
        [5e-324, -5e-324],
        [1e-300, 1e-300, 1e300],
        [0.0, HUGE],
        [],
    ):
        warped = folded(np.array(margins), shape, log_knee)
        assert np.isfinite(warped.y).all() and np.isfinite(warped.y_slope).all()
        sums = [warped.log_jacobian, warped.log_jacobian_slope, warped.offset, warped.offset_slope]
        assert np.isfinite(sums).all()
        assert np.isfinite(warped.warp(np.array([HUGE, -HUGE, 5e-324]))).all()
        assert np.isfinite(warped.warp.inverse(np.array([1e300, -1e300, 1e-300]))).all()


def test_a_reading_beyond_the_folds_end_is_held_just_inside_it() -> None:
    """A later reading may lie below every one that the fold was made for."""
    warp = folded(np.array([-1.0, 2.0]), Shape.UPPER, 0.0).warp
    beyond = warp(np.array([-2.0, -50.0, -1e300]))
    assert np.isfinite(beyond).all() and (beyond < warp(np.array([-1.0]))).all()


def test_typical_size_is_the_median_size_of_the_readings_that_are_not_0() -> None:
    assert typical_size(np.array([0.0, -3.0, 0.0, 1.0, 10.0])) == 3.0
    assert typical_size(np.array([-3.0, 1.0, 10.0, 2.0])) == 2.5
    assert typical_size(np.array([HUGE, HUGE])) == HUGE
    assert typical_size(np.array([5e-324, 5e-324])) == 5e-324
    assert typical_size(np.array([0.0, 0.0])) == typical_size(np.empty(0)) == 1.0


def test_folding_leaves_the_readings_as_they_were() -> None:
    margins = READINGS["ordinary"].copy()
    for shape in Shape:
        fold(margins, typical_size(margins), shape, 0.0).warp(margins)
    assert np.array_equal(margins, READINGS["ordinary"])
