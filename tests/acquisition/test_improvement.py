"""EI and PI in their tails, where quadrature gives up: against mpmath."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from reference import normals

from cbob.acquisition.base import Factor
from cbob.acquisition.improvement import ExpectedImprovement, ProbabilityOfImprovement

TAILS = [-1e6, -1e3, -40.0, -5.0001, -4.9999, -1.0, 0.0, 1.0, 8.0, 30.0]
BEST, STD = 1.5, 0.3

FACTORS: dict[str, tuple[Factor, Callable[[Any, Any], Any]]] = {
    "EI": (
        ExpectedImprovement(BEST),
        lambda mean, std: mpmath.log(std * normals.improvement((BEST - mean) / std)),
    ),
    "PI": (ProbabilityOfImprovement(BEST), lambda mean, std: normals.log_cdf((BEST - mean) / std)),
}
every_factor = pytest.mark.parametrize(("factor", "exact"), FACTORS.values(), ids=FACTORS)


@every_factor
@pytest.mark.parametrize("z", TAILS)
def test_it_keeps_its_digits_in_the_tails(factor: Factor, exact: Callable[[Any, Any], Any], z: float) -> None:
    mean = BEST - z * STD
    found = factor(np.array([mean]), np.array([STD]))
    with mpmath.workdps(normals.DIGITS):
        at = mpmath.mpf(mean), mpmath.mpf(STD)
        value = exact(*at)
        in_mean = mpmath.diff(lambda m: exact(m, at[1]), at[0])
        in_std = mpmath.diff(lambda s: exact(at[0], s), at[1])
    assert found.value[0] == pytest.approx(float(value), rel=1e-11, abs=1e-300)
    assert found.in_mean[0] == pytest.approx(float(in_mean), rel=1e-11, abs=1e-290)
    assert found.in_std[0] == pytest.approx(float(in_std), rel=1e-11, abs=1e-15 / STD)


@every_factor
def test_it_stays_finite_for_any_marginal_that_a_surrogate_can_have(factor: Factor, exact: Callable[[Any, Any], Any]) -> None:
    mean, std = (part.ravel() for part in np.meshgrid([-1e9, -1.0, 0.0, BEST, 1e9], [1e-9, 1e-3, 1.0, 1e6]))
    assert all(np.isfinite(part).all() for part in factor(mean, std))


def test_where_nothing_is_uncertain_the_improvement_is_the_difference() -> None:
    mean = np.array([-2.0, 0.0, 1.4])
    value = ExpectedImprovement(BEST)(mean, np.full(3, 1e-9)).value
    np.testing.assert_allclose(np.exp(value), BEST - mean, rtol=1e-9)
