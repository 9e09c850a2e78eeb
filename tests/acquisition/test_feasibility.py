"""POF, DPOF and the exploration functions: their integrals, Definition 1, the clip and the tails."""

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from reference import acquisitions as exact
from reference import normals

from cbob.acquisition.feasibility import (
    BETA,
    EMUB,
    POB,
    DynamicFeasibility,
    Exploration,
    ProbabilityOfFeasibility,
)

Array = NDArray[np.float64]

MEANS = [-30.0, -2.5, -0.7, -1e-9, 0.0, 1e-9, 0.4, 1.0, 3.0, 30.0]
STDS = [1e-4, 0.2, 1.0, 7.0]


class Wide(Exploration):
    """A user's own, without derivatives."""

    def rho(self, mean: Array, std: Array) -> Array:
        return std**2 / (1.0 + mean**2)


EXPLORATIONS: dict[str, tuple[Exploration, Callable[[float, float], float]]] = {
    "POB": (POB(), exact.pob),
    "POB, beta 0.3": (POB(0.3), lambda mean, std: exact.pob(mean, std, 0.3)),
    "EMUB": (EMUB(0.7), lambda mean, std: exact.emub(mean, std) / 0.7),
    "EMUB, beta 4": (EMUB(2.0, 4.0), lambda mean, std: exact.emub(mean, std, 4.0) / 2.0),
}
every_exploration = pytest.mark.parametrize(("explore", "integral"), EXPLORATIONS.values(), ids=EXPLORATIONS)


def marginals(means: list[float], stds: list[float]) -> tuple[Array, Array]:
    mean, std = np.meshgrid(np.array(means), np.array(stds))
    return mean.ravel(), std.ravel()


def differences(f: Callable[[Array], Array], x: Array, step: Array) -> Array:
    low, below, above, high = (f(x + k * step) for k in (-2, -1, 1, 2))
    slope: Array = (low - 8.0 * below + 8.0 * above - high) / (12.0 * step)
    return slope


@every_exploration
def test_rho_is_the_integral_that_defines_it(explore: Exploration, integral: Callable[[float, float], float]) -> None:
    mean, std = marginals(MEANS, STDS)
    expected = [integral(m, s) for m, s in zip(mean.tolist(), std.tolist(), strict=True)]
    np.testing.assert_allclose(explore.rho(mean, std), expected, rtol=1e-9, atol=1e-15)


def test_the_paper_looks_for_the_boundary_with_95_percent_confidence() -> None:
    assert BETA == POB().beta == EMUB(1.0).beta == 1.96


@every_exploration
def test_its_slopes_are_those_of_rho(explore: Exploration, integral: Callable[[float, float], float]) -> None:
    mean, std = marginals([-2.5, -0.7, 0.0, 0.4, 1.0, 3.0], [0.2, 1.0, 7.0])
    value, in_mean, in_std = explore.slopes(mean, std)
    np.testing.assert_array_equal(value, explore.rho(mean, std))
    step = 1e-3 * std
    np.testing.assert_allclose(in_mean, differences(lambda m: explore.rho(m, std), mean, step), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(in_std, differences(lambda s: explore.rho(mean, s), std, step), rtol=1e-7, atol=1e-9)


def test_a_users_exploration_needs_no_derivatives() -> None:
    mean, std = marginals(MEANS, STDS)
    value, in_mean, in_std = Wide().slopes(mean, std)
    np.testing.assert_array_equal(value, std**2 / (1.0 + mean**2))
    np.testing.assert_allclose(in_mean, -2.0 * mean * std**2 / (1.0 + mean**2) ** 2, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(in_std, 2.0 * std / (1.0 + mean**2), rtol=1e-8)


# Definition 1: bounded, never negative, and 0 where nothing is uncertain


def bound(explore: Exploration, std: Array) -> Array:
    """The supremum of rho: all of the density within reach, or the height of the tent."""
    return explore.beta * std / explore.gamma if isinstance(explore, EMUB) else np.ones_like(std)


@every_exploration
def test_rho_is_bounded_and_never_negative(explore: Exploration, integral: Callable[[float, float], float]) -> None:
    sides = np.concatenate([-np.geomspace(1e-12, 1e9, 200), [0.0], np.geomspace(1e-12, 1e9, 200)])
    for std in (0.0, 1e-9, 1e-3, 1.0, 50.0):
        rho = explore.rho(sides, np.full(sides.size, std))
        assert (rho >= 0.0).all()
        assert (rho <= bound(explore, np.array(std)) * (1.0 + 1e-12)).all()


@every_exploration
@pytest.mark.parametrize("mean", [-3.0, -1e-300, 0.0, -0.0, 1e-300, 3.0])
def test_rho_is_0_where_nothing_is_uncertain(
    explore: Exploration, integral: Callable[[float, float], float], mean: float
) -> None:
    value, in_mean, in_std = explore.slopes(np.array([mean]), np.zeros(1))
    assert value[0] == explore.rho(np.array([mean]), np.zeros(1))[0] == 0.0
    assert np.isfinite([in_mean[0], in_std[0]]).all()


@every_exploration
def test_rho_vanishes_with_the_uncertainty_away_from_the_boundary(
    explore: Exploration, integral: Callable[[float, float], float]
) -> None:
    std = np.array([0.1, 0.03, 0.01, 0.003])
    for mean in (-1.0, 1.0):
        rho = explore.rho(np.full(4, mean), std)
        assert (np.diff(rho) <= 0.0).all()
        assert rho[-1] == 0.0


def test_pob_with_a_resolution_is_eq_11_above_it_and_fades_out_below() -> None:
    mean = np.array([-0.7, 0.0, 0.0, 0.1, 3.0])
    for std in (0.2, 0.5, 7.0):
        np.testing.assert_array_equal(POB(resolution=0.2).rho(mean, np.full(5, std)), POB().rho(mean, np.full(5, std)))
    fading = POB(resolution=0.2).rho(np.zeros(50), np.linspace(0.0, 0.2, 50))
    assert fading[0] == 0.0
    assert (np.diff(fading) > 0.0).all()
    std = np.array([0.01, 0.05, 0.1, 0.15, 0.19])
    value, in_mean, in_std = POB(resolution=0.2).slopes(mean, std)
    assert ((value >= 0.0) & (value <= POB().rho(mean, std))).all()
    explore, step = POB(resolution=0.2), 1e-3 * std
    slope = differences(lambda m: explore.rho(m, std), mean, step)
    np.testing.assert_allclose(in_mean, slope, rtol=1e-7, atol=1e-9)
    slope = differences(lambda s: explore.rho(mean, s), std, step)
    np.testing.assert_allclose(in_std, slope, rtol=1e-7, atol=1e-9)


def test_emub_is_the_same_on_both_sides_of_the_limit() -> None:
    mean, std = marginals(MEANS, STDS)
    for here, there in zip(EMUB(0.5).slopes(mean, std), EMUB(0.5).slopes(-mean, std), strict=True):
        np.testing.assert_array_equal(np.abs(here), np.abs(there))


def test_emub_over_gamma_is_the_formula_of_the_paper() -> None:
    """Eq. B.3, term by term, in 500 digits: its terms cancel where the limit is far."""
    beta = 1.96
    for mean in (-9.0, -3.0, -0.5, 0.0, 0.5, 3.0, 9.0):
        for std in (0.25, 2.0):
            with mpmath.workdps(500):
                r = mpmath.mpf(mean) / std
                plus, minus, Phi, phi = beta - r, -beta - r, normals.cdf, normals.pdf
                first = beta * std * (Phi(plus) - Phi(minus))
                second = std * (2 * phi(-r) - phi(plus) - phi(minus))
                third = mean * (2 * Phi(-r) - Phi(plus) - Phi(minus))
                formula = float(first - second + third)
            found = EMUB(1.0).rho(np.array([mean]), np.array([std]))[0]
            assert found == pytest.approx(formula, rel=1e-11, abs=1e-300)


# Adapt (B.7)


def test_adapt_takes_the_largest_product_of_emub_and_feasibility() -> None:
    mean, std = marginals([-4.0, -1.0, -0.2, 0.5, 2.0], [0.1, 0.8, 1.5])
    at = list(zip(mean.tolist(), std.tolist(), strict=True))
    largest = max(exact.emub(m, s) * exact.probability_below(m, s) for m, s in at)
    assert EMUB.adapted(mean, std).gamma == pytest.approx(largest, rel=1e-9)
    weight = EMUB.adapted(mean, std).rho(mean, std) * [exact.probability_below(m, s) for m, s in at]
    assert weight.max() == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(("mean", "std"), [(1e8, 1e-7), (-1e8, 1e-7), (40.0, 1.0)])
def test_adapt_has_a_scale_where_no_boundary_is_in_sight(mean: float, std: float) -> None:
    explore = EMUB.adapted(np.array([mean]), np.array([std]))
    assert explore.gamma > 0.0
    assert all(np.isfinite(part).all() for part in explore.slopes(np.array([mean, 0.0]), np.full(2, std)))


# POF and DPOF


def test_dpof_is_one_plus_rho_times_pof_held_in_the_unit_interval() -> None:
    mean, std = marginals(MEANS[1:-1], STDS)
    for explore, integral in EXPLORATIONS.values():
        value = np.exp(DynamicFeasibility(explore)(mean, std).value)
        expected = [exact.dpof(integral(m, s), m, s) for m, s in zip(mean.tolist(), std.tolist(), strict=True)]
        np.testing.assert_allclose(value, expected, rtol=1e-9)
        assert (value <= 1.0).all()


def test_dpof_never_falls_below_pof() -> None:
    mean, std = marginals(MEANS, STDS)
    pof = ProbabilityOfFeasibility()(mean, std).value
    for explore, _ in EXPLORATIONS.values():
        assert (DynamicFeasibility(explore)(mean, std).value >= pof).all()


def test_without_exploration_dpof_is_pof() -> None:
    class Nothing(Exploration):
        def rho(self, mean: Array, std: Array) -> Array:
            return np.zeros_like(mean)

    mean, std = marginals(MEANS, STDS)
    pof = ProbabilityOfFeasibility()(mean, std)
    for found, expected in zip(DynamicFeasibility(Nothing())(mean, std), pof, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_where_the_projection_clips_the_gradient_is_exactly_0() -> None:
    mean, std = np.array([-1.5, -2.5, -0.9, -0.8, 1.0]), np.ones(5)
    clipped = [(1.0 + exact.pob(m, 1.0)) * exact.probability_below(m, 1.0) > 1.0 for m in mean.tolist()]
    assert clipped == [True, True, True, True, False]
    value, in_mean, in_std = DynamicFeasibility(POB())(mean, std)
    assert (value == 0.0).tolist() == (in_mean == 0.0).tolist() == (in_std == 0.0).tolist() == clipped


@pytest.mark.parametrize("r", [40.0, 1e3, 1e7])
def test_far_beyond_the_limit_dpof_is_pof_to_the_last_digit(r: float) -> None:
    mean, std = np.array([r * 0.25]), np.array([0.25])
    with mpmath.workdps(normals.DIGITS):
        log_pof = float(normals.log_cdf(-r))
        hazard = float(normals.hazard(-r)) / 0.25
    for explore, _ in EXPLORATIONS.values():
        value, in_mean, in_std = DynamicFeasibility(explore)(mean, std)
        assert value[0] == pytest.approx(log_pof, rel=1e-13)
        assert in_mean[0] == pytest.approx(-hazard, rel=1e-11)
        assert in_std[0] == pytest.approx(r * hazard, rel=1e-11)


@pytest.mark.parametrize("r", [-30.0, -8.0, -1.0, 0.0, 4.9999, 5.0001, 40.0, 1e6])
def test_the_probability_of_feasibility_keeps_its_digits_in_both_tails(r: float) -> None:
    mean, std = 0.25 * r, 0.25
    value, in_mean, in_std = ProbabilityOfFeasibility()(np.array([mean]), np.array([std]))
    with mpmath.workdps(normals.DIGITS):
        log_pof, hazard = float(normals.log_cdf(-r)), float(normals.hazard(-r))
    assert value[0] == pytest.approx(log_pof, rel=1e-11, abs=1e-300)
    assert in_mean[0] == pytest.approx(-hazard / std, rel=1e-11, abs=1e-290)
    assert in_std[0] == pytest.approx(r * hazard / std, rel=1e-11, abs=1e-290)


@every_exploration
def test_dpof_stays_finite_for_any_marginal_that_a_surrogate_can_have(
    explore: Exploration, integral: Callable[[float, float], float]
) -> None:
    mean, std = marginals([-1e9, -1.0, 0.0, 1e-300, 1.0, 1e9], [1e-9, 1e-3, 1.0, 1e6])
    assert all(np.isfinite(part).all() for part in DynamicFeasibility(explore)(mean, std))
