"""MESC: the minima that it samples, and its value where integrals give up."""

import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest
from reference import normals
from reference.acquisitions import textbook_joint
from scipy.stats import ks_2samp
from surrogates import LIMITS, OBJECTIVE, Array, cube

from cbob.acquisition.entropy import GRID, SAMPLES, MinValueEntropy, sampled_minima
from cbob.models.gp import Posterior

NOWHERE = 1e3  # stands for the minimum of a draw without a feasible row


def brute_force_minima(limits: Sequence[Posterior], grid: Array, count: int, seed: int) -> Array:
    """Joint draws from the dense mean and covariance, one at a time."""
    rng = np.random.default_rng(seed)
    objective, *bounds = [
        rng.multivariate_normal(*textbook_joint(surrogate, grid), size=count) for surrogate in (OBJECTIVE, *limits)
    ]
    minima = []
    for draw in range(count):
        held = [objective[draw, i] for i in range(len(grid)) if all(bound[draw, i] <= 0.0 for bound in bounds)]
        minima.append(min(held, default=NOWHERE))
    return np.array(minima)


@pytest.mark.parametrize("limits", [(), LIMITS[:1], LIMITS], ids=["no limit", "one limit", "two limits"])
def test_sampled_minima_have_the_distribution_of_brute_force(limits: Sequence[Posterior]) -> None:
    grid = cube(9, seed=7)  # here each limit matters, and some draws have no feasible row
    found = sampled_minima(OBJECTIVE, limits, grid, 4000, np.random.default_rng(1))
    expected = brute_force_minima(limits, grid, 4000, seed=2)
    found = np.where(np.isinf(found), NOWHERE, found)
    assert found.shape == (4000,)
    assert ks_2samp(found, expected).pvalue > 1e-3
    nowhere = (found == NOWHERE).mean(), (expected == NOWHERE).mean()
    assert abs(nowhere[0] - nowhere[1]) < 4.0 * math.sqrt(0.5 / 4000)
    if limits:
        fewer = [brute_force_minima([one for one in limits if one is not limit], grid, 4000, 2) for limit in limits]
        assert max(ks_2samp(other, expected).pvalue for other in fewer) < 1e-6, "the test should see each limit"


def test_the_same_generator_samples_the_same_minima() -> None:
    grid = cube(9, seed=4)
    pair = [sampled_minima(OBJECTIVE, LIMITS, grid, 5, np.random.default_rng(3)) for _ in range(2)]
    np.testing.assert_array_equal(*pair)


def test_the_paper_takes_20_samples_on_a_grid_of_1000() -> None:
    assert (SAMPLES, GRID) == (20, 1000)


def at_marginals(means: Sequence[float], stds: Sequence[float], minima: Sequence[float]) -> tuple[float, ...]:
    """Value and its derivative in the objective's mean and std, at one row with these marginals."""
    acquisition = MinValueEntropy(OBJECTIVE, LIMITS[: len(means) - 1], np.array(minima))
    value, in_mean, in_std = acquisition.combine(np.array(means)[:, None], np.array(stds)[:, None])
    return float(value[0]), float(in_mean[0, 0]), float(in_std[0, 0])


def directly(means: Sequence[float], stds: Sequence[float], minima: Sequence[float]) -> tuple[float, ...]:
    """The same in 200 digits."""

    def value(mean: object, std: object) -> object:
        held = mpmath.fprod(normals.cdf(-mpmath.mpf(m) / s) for m, s in zip(means[1:], stds[1:], strict=True))
        below = [1 if low == math.inf else normals.cdf((low - mean) / std) for low in minima]
        return mpmath.log(-mpmath.fsum(mpmath.log1p(-held * chance) for chance in below) / len(below))

    with mpmath.workdps(200):
        mean, std = mpmath.mpf(means[0]), mpmath.mpf(stds[0])
        slopes = mpmath.diff(lambda m: value(m, std), mean), mpmath.diff(lambda s: value(mean, s), std)
        return float(value(mean, std)), *map(float, slopes)


@pytest.mark.parametrize(
    ("means", "stds", "minima"),
    [
        ([0.3], [0.5], [-0.2]),
        ([0.3, -0.4], [0.5, 0.7], [-0.2, 0.1, math.inf]),
        ([0.3, 1.0, 0.2], [0.5, 0.7, 0.1], [-3.0, -0.2, 0.1, 0.3]),
        ([40.0], [1.0], [0.0]),
        ([40.0, 35.0], [1.0, 1.0], [-2.0, 0.5]),
        ([0.0, 40.0], [1.0, 1.0], [-2.0, math.inf]),
        ([-6.0, -6.0], [1.0, 1.0], [0.0, 0.5]),
        ([-7.0], [1.0], [0.0, 0.5]),
    ],
)
def test_mesc_keeps_its_digits_in_the_tails(means: list[float], stds: list[float], minima: list[float]) -> None:
    assert at_marginals(means, stds, minima) == pytest.approx(directly(means, stds, minima), rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("z", [8.3, 9.0, 12.0, 25.0])
def test_mesc_keeps_its_slope_where_improvement_is_certain(z: float) -> None:
    assert at_marginals([-z], [1.0], [0.0]) == pytest.approx(directly([-z], [1.0], [0.0]), rel=1e-8)


def test_draws_without_a_feasible_row_leave_the_probability_of_feasibility() -> None:
    """p is then POF alone, so the objective has no say."""
    value, in_mean, in_std = at_marginals([0.3, -0.4], [0.5, 0.7], [math.inf, math.inf])
    with mpmath.workdps(40):
        held = normals.cdf(mpmath.mpf(0.4) / mpmath.mpf(0.7))
        assert value == pytest.approx(float(mpmath.log(-mpmath.log(1 - held))), rel=1e-12)
    assert in_mean == in_std == 0.0


def test_mesc_stays_finite_for_any_marginal_that_a_surrogate_can_have() -> None:
    sizes = [-1e9, -1e3, -1.0, 0.0, 1.0, 1e9]
    cases = np.array([(m, g, s) for m in sizes for g in sizes for s in (1e-9, 1.0, 1e6)]).T
    acquisition = MinValueEntropy(OBJECTIVE, LIMITS[:1], np.array([-1.0, 0.0, math.inf]))
    found = acquisition.combine(cases[:2], np.vstack([cases[2], cases[2]]))
    assert all(np.isfinite(part).all() for part in found)
