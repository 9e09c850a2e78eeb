"""What a run learns of its own promises: against the posterior written out plainly, simulated runs, and differences."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from cbob.acquisition.calibration import HALF_LIFE, LEAST, MOST, SUREST, Shifted, shift
from cbob.acquisition.feasibility import POB, DynamicFeasibility, ProbabilityOfFeasibility
from cbob.acquisition.improvement import ExpectedImprovement


def promises(count: int, bias: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Promises between a tenth and nine tenths, all too high by `bias` deviations."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1.3, 1.3, count)
    return z, (rng.random(count) < norm.cdf(z - bias)).astype(float)


@pytest.mark.parametrize("bias", [-1.0, 0.0, 0.7, 2.0])
@pytest.mark.parametrize("count", [1, 4, 60])
def test_the_shift_is_the_maximum_of_its_posterior(count: int, bias: float) -> None:
    z, kept = promises(count, bias, seed=count)

    def minus_log_posterior(b: float) -> float:
        weights = 0.5 ** (np.arange(count)[::-1] / HALF_LIFE)
        chance = np.where(kept == 1.0, norm.logcdf(z - b), norm.logsf(z - b))
        return 0.5 * b**2 - float(weights @ chance)

    best = minimize_scalar(minus_log_posterior, bounds=(LEAST, MOST), method="bounded", options={"xatol": 1e-10}).x
    assert shift(z, kept) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("bias", [-0.6, 0.0, 0.5, 1.0])
def test_a_model_that_promises_too_much_is_found_out(bias: float) -> None:
    found = np.mean([shift(*promises(200, bias, seed)) for seed in range(200)])
    assert found == pytest.approx(bias, abs=0.05 + 0.15 * abs(bias))  # the prior holds it back a little


def test_without_experience_promises_are_taken_at_their_word() -> None:
    assert shift(np.empty(0), np.empty(0)) == 0.0
    assert shift(np.array([0.3, np.nan]), np.array([np.nan, 1.0])) == 0.0


def test_what_is_long_ago_counts_for_less() -> None:
    z = np.zeros(int(4 * HALF_LIFE))
    kept = np.where(np.arange(z.size) < z.size // 2, 1.0, 0.0)
    assert shift(z, kept) > 0.5  # broken of late
    assert shift(z, kept[::-1]) < -0.5  # kept of late


def test_one_surprise_does_not_switch_a_factor_off() -> None:
    sure = shift(np.array([SUREST]), np.array([0.0]))
    assert shift(np.array([1e300]), np.array([0.0])) == sure > shift(np.array([0.5 * SUREST]), np.array([0.0])) > 0.0
    assert shift(np.array([-1e300]), np.array([1.0])) == shift(np.array([-SUREST]), np.array([1.0])) < 0.0
    assert shift(np.full(50, 3.0), np.zeros(50)) == MOST and shift(np.full(50, -3.0), np.ones(50)) == LEAST


@pytest.mark.parametrize("factor", [ProbabilityOfFeasibility(), DynamicFeasibility(POB()), ExpectedImprovement(0.2)])
@pytest.mark.parametrize("by", [-1.0, 0.0, 1.7])
def test_a_shifted_factor_reads_each_mean_so_many_deviations_higher(factor: object, by: float) -> None:
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=40), rng.uniform(0.05, 2.0, 40)
    shifted = Shifted(factor, by)  # type: ignore[arg-type]
    found = shifted(mean, std)
    np.testing.assert_allclose(found.value, factor(mean + by * std, std).value)  # type: ignore[operator]
    step = 1e-6
    in_mean = (shifted(mean + step, std).value - shifted(mean - step, std).value) / (2 * step)
    in_std = (shifted(mean, std + step).value - shifted(mean, std - step).value) / (2 * step)
    np.testing.assert_allclose(found.in_mean, in_mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.in_std, in_std, rtol=1e-4, atol=1e-5)
