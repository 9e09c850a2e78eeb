"""What every acquisition owes, whichever it is: one record each, and the same checks for all of them."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from reference import acquisitions as exact
from reference.acquisitions import textbook_marginals
from surrogates import LIMITS, OBJECTIVE, SURROGATES, Array, cube

from cbob.acquisition.base import Acquisition, Factor, Product
from cbob.acquisition.entropy import MinValueEntropy
from cbob.acquisition.feasibility import (
    EMUB,
    POB,
    DynamicFeasibility,
    Exploration,
    ProbabilityOfFeasibility,
)
from cbob.acquisition.improvement import ExpectedImprovement, ProbabilityOfImprovement

BEST = 0.1
MINIMA = np.array([-1.2, -0.4, -0.1, 0.3, math.inf])


class Halfway(Exploration):
    """A user's own: six lines, and only `rho`."""

    def rho(self, mean: Array, std: Array) -> Array:
        return 2.0 * std * np.exp(-np.abs(mean) / (1.0 + std))


class Case(NamedTuple):
    """An acquisition, and its value at the marginals (k,) of one row."""

    acquisition: Acquisition
    exact: Callable[[Sequence[float], Sequence[float]], float]


def improvement(means: Sequence[float], stds: Sequence[float]) -> float:
    return exact.expected_improvement(means[0], stds[0], BEST)


def product(*factors: Factor) -> Product:
    return Product(SURROGATES, factors)


def explored(explorations: Sequence[Exploration], rho: Sequence[Callable[[float, float], float]], *, pi: bool = False) -> Case:
    """EICB, or with `pi` the probability of improvement times DPOF, with an exploration for each limit."""
    first = ProbabilityOfImprovement(BEST) if pi else ExpectedImprovement(BEST)

    def value(means: Sequence[float], stds: Sequence[float]) -> float:
        gain = exact.probability_below(means[0], stds[0], BEST) if pi else improvement(means, stds)
        limits = zip(rho, means[1:], stds[1:], strict=True)
        return gain * math.prod(exact.dpof(weight(mean, std), mean, std) for weight, mean, std in limits)

    return Case(product(first, *map(DynamicFeasibility, explorations)), value)


def of_adaptive_scale() -> Case:
    grid = cube(40, seed=9)
    marginals = [textbook_marginals(limit, grid) for limit in LIMITS]
    largest = [max(exact.emub(*at) * exact.probability_below(*at) for at in zip(*pair, strict=True)) for pair in marginals]
    return explored(
        [EMUB.adapted(*limit.predict(grid)) for limit in LIMITS],
        [lambda mean, std, scale=scale: exact.emub(mean, std) / scale for scale in largest],
    )


def own_rho(mean: float, std: float) -> float:
    return 2.0 * std * math.exp(-abs(mean) / (1.0 + std))


POF = ProbabilityOfFeasibility()
CASES = {
    "EI": Case(Product([OBJECTIVE], [ExpectedImprovement(BEST)]), improvement),
    "PI": Case(
        Product([OBJECTIVE], [ProbabilityOfImprovement(BEST)]),
        lambda means, stds: exact.probability_below(means[0], stds[0], BEST),
    ),
    "POF": Case(
        Product(LIMITS, [POF, POF]),
        lambda means, stds: math.prod(map(exact.probability_below, means, stds)),
    ),
    "EIC": Case(
        product(ExpectedImprovement(BEST), POF, POF),
        lambda means, stds: improvement(means, stds) * math.prod(map(exact.probability_below, means[1:], stds[1:])),
    ),
    "EICB-POB": explored([POB()] * 2, [exact.pob] * 2),
    "EICB-POB of another beta": explored([POB(0.5)] * 2, [lambda m, s: exact.pob(m, s, 0.5)] * 2),
    "EICB-EMUB": explored([EMUB(0.4)] * 2, [lambda m, s: exact.emub(m, s) / 0.4] * 2),
    "EICB-EMUB of adaptive scale": of_adaptive_scale(),
    "PI x DPOF": explored([POB()] * 2, [exact.pob] * 2, pi=True),
    "EICB of a user's own exploration": explored([Halfway()] * 2, [own_rho] * 2),
    "MESC": Case(
        MinValueEntropy(OBJECTIVE, LIMITS, MINIMA),
        lambda means, stds: exact.min_value_entropy(MINIMA, means, stds),
    ),
    "MESC without limits": Case(
        MinValueEntropy(OBJECTIVE, (), MINIMA[:3]),
        lambda means, stds: exact.min_value_entropy(MINIMA[:3], means, stds),
    ),
}

every_acquisition = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
ROWS = cube(24, seed=5)


@every_acquisition
def test_its_value_is_the_integral_that_defines_it(case: Case) -> None:
    rows = ROWS[:8]
    marginals = [textbook_marginals(surrogate, rows) for surrogate in case.acquisition.surrogates]
    means, stds = (np.array(part) for part in zip(*marginals, strict=True))
    expected = [case.exact(means[:, i].tolist(), stds[:, i].tolist()) for i in range(len(rows))]
    np.testing.assert_allclose(np.exp(case.acquisition(rows)), expected, rtol=1e-8)


@every_acquisition
def test_it_gives_a_number_for_each_row_and_a_slope_for_each_column(case: Case) -> None:
    for count in (1, 2, 24):
        value, gradient = case.acquisition.with_gradient(ROWS[:count])
        assert case.acquisition(ROWS[:count]).shape == value.shape == (count,)
        assert gradient.shape == (count, ROWS.shape[1])


@every_acquisition
def test_it_is_finite_at_data_and_far_away(case: Case) -> None:
    data = np.vstack([surrogate.X for surrogate in case.acquisition.surrogates])
    corners = np.array(np.meshgrid(*[[0.0, 1.0]] * 3)).reshape(3, -1).T
    for rows in (data, data + 1e-12, corners, 50.0 * corners, np.full((1, 3), 1e6)):
        value, gradient = case.acquisition.with_gradient(rows)
        assert np.isfinite(value).all()
        assert np.isfinite(gradient).all()
        assert np.isfinite(case.acquisition(rows)).all()


@every_acquisition
def test_its_gradient_is_the_slope_of_its_value(case: Case) -> None:
    rows = np.vstack([ROWS, 0.5 + 2.0 * (ROWS - 0.5)])  # outside the data as well
    gradient = case.acquisition.with_gradient(rows)[1]
    step = 1e-4
    for column in range(rows.shape[1]):
        e = step * np.eye(rows.shape[1])[column]
        f = [case.acquisition(rows + k * e) for k in (-2, -1, 1, 2)]
        slope = (f[0] - 8.0 * f[1] + 8.0 * f[2] - f[3]) / (12.0 * step)
        np.testing.assert_allclose(gradient[:, column], slope, rtol=1e-6, atol=1e-7)


@every_acquisition
def test_a_batch_of_rows_is_a_loop_over_them(case: Case) -> None:
    value, gradient = case.acquisition.with_gradient(ROWS)
    np.testing.assert_allclose(case.acquisition(ROWS), value, rtol=1e-12, atol=1e-12)
    for i in range(len(ROWS)):
        alone, alone_gradient = case.acquisition.with_gradient(ROWS[i : i + 1])
        np.testing.assert_allclose(alone[0], value[i], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(alone_gradient[0], gradient[i], rtol=1e-8, atol=1e-10)


@every_acquisition
def test_it_writes_to_nothing_that_it_was_given(case: Case) -> None:
    given = [ROWS, MINIMA]
    for surrogate in SURROGATES:
        given += [surrogate.X, surrogate.y, surrogate.noise, surrogate.kernel.lengthscales]
    before = [array.copy() for array in given]
    for array in given:
        array.flags.writeable = False
    try:
        case.acquisition(ROWS)
        case.acquisition.with_gradient(ROWS)
    finally:
        for array in given:
            array.flags.writeable = True
    for array, copy in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_product_wants_one_factor_for_each_surrogate() -> None:
    with pytest.raises(ValueError, match="a factor for each of 3 surrogates, got 1"):
        Product(SURROGATES, [POF])
    with pytest.raises(ValueError, match="got 0"):
        Product([], [])
