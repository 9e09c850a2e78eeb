"""The evidence of values and signs together, its gradient, and the climb."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.differences import gradient
from reference.textbook_ep import textbook_ep
from reference.textbook_gp import main_effects, matern52
from reference.textbook_warp import formula, knee_of, slope
from scipy.stats import multivariate_normal, norm

from cbob.models.fit import Evaluation, Fit, Priors, Problem, Sites, climb, evaluate, score
from cbob.models.warp import Shape, typical_size

Array = NDArray[np.float64]

PRIORS = Priors()
PORTIONS = np.array([1 / 2, 1 / 4, 1 / 4])  # of two parameters, one of which has two columns


def problem(n_v: int, n_b: int, *, shape: Shape = Shape.SYMMETRIC, seed: int = 0, **changes: Any) -> Problem:
    """Readings of a smooth function in three columns, two of which share a lengthscale."""
    X = np.random.default_rng(seed).random((n_v + n_b, 3))
    g = 20.0 * np.sin(4.0 * X[:, 0]) * X[:, 1] + 10.0 * X[:, 2] - 6.0
    plain = Problem(
        X_values=X[:n_v],
        margins=g[:n_v],
        X_signs=X[n_v:],
        signs=np.where(g[n_v:] > 0.0, 1.0, -1.0),
        groups=np.array([0, 1, 1]),
        unit=typical_size(g[:n_v]),
        scale=0.0,
        shape=shape,
        warped=n_v > 0,
    )
    return replace(plain, **changes)


def theta_at(given: Problem, *, noise: float = -4.0, knee: float = -0.5) -> Array:
    lengthscales = np.array([-0.7, 0.1, 0.4])[: int(given.groups.max()) + 1]
    return np.concatenate([lengthscales, [0.8, 0.3, -0.7, noise, knee]])


def nothing(given: Problem) -> Sites:
    return Sites(np.zeros(given.signs.size), np.zeros(given.signs.size))


def exactly(given: Problem, theta: Array) -> Evaluation:
    return evaluate(given, theta, nothing(given), tolerance=1e-12)


class Dense:
    """What `evaluate` is told to compute, from textbook formulas alone."""

    def __init__(self, given: Problem, theta: Array) -> None:
        knee = knee_of(theta[-1], given.margins, given.shape) if given.margins.size else 1.0
        w = formula(given.margins, given.shape, knee)
        spread = float(np.std(w)) if w.size else 1.0
        self.y = w / spread
        offset = float(self.y.mean()) if w.size else 0.0
        rates = slope(given.margins, given.shape, knee) * given.unit / spread
        self.log_jacobian = float(np.log(rates).sum())
        lengthscales, self.noise = np.exp(theta[:-5])[given.groups], float(np.exp(theta[-2]))
        rows = np.vstack([given.X_values, given.X_signs])
        self.K = matern52(rows, rows, lengthscales, float(np.exp(theta[-5])), 1.0 + offset**2)
        self.K += main_effects(rows, rows, lengthscales, float(np.exp(theta[-4])), float(np.exp(theta[-3])), 16, PORTIONS)
        self.n_v = w.size

    @property
    def of_readings(self) -> Array:
        """The covariance of noisy readings."""
        return self.K + self.noise * np.eye(len(self.K))

    def log_density_of_values(self) -> float:
        cov = self.of_readings[: self.n_v, : self.n_v]
        return float(multivariate_normal(np.zeros(self.n_v), cov).logpdf(self.y)) + self.log_jacobian

    def signs_given_values(self) -> tuple[Array, Array]:
        """Mean and covariance of the readings that are known by sign only, given the measured ones."""
        cov, n = self.of_readings, self.n_v
        gain = np.linalg.solve(cov[:n, :n], cov[:n, n:]).T
        return gain @ self.y, cov[n:, n:] - gain @ cov[:n, n:]


# The evidence


every_shape = pytest.mark.parametrize("shape", Shape, ids=lambda shape: shape.name.lower())


@every_shape
@pytest.mark.parametrize("knee", [-4.0, 0.0, 7.0])
def test_evidence_of_values_is_the_normal_density_of_the_warped_readings_times_the_jacobian(shape: Shape, knee: float) -> None:
    given = problem(9, 0, shape=shape)
    theta = theta_at(given, knee=knee)
    found = exactly(given, theta)
    assert found.value == pytest.approx(Dense(given, theta).log_density_of_values(), rel=1e-9)
    assert found.sweeps == 0 and found.converged


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("scale", [0.0, 0.4])
def test_evidence_with_one_sign_adds_its_probability_given_the_values(sign: float, scale: float) -> None:
    given = problem(8, 1, signs=np.array([sign]), scale=scale)
    theta = theta_at(given)
    dense = Dense(given, theta)
    mean, cov = dense.signs_given_values()
    probability = norm.logcdf(sign * mean[0] / np.sqrt(cov[0, 0] + scale**2))
    assert exactly(given, theta).value == pytest.approx(dense.log_density_of_values() + probability, rel=1e-9)


@every_shape
@pytest.mark.parametrize("scale", [0.0, 0.4])
def test_conditioning_on_values_first_equals_one_ep_over_values_and_signs(shape: Shape, scale: float) -> None:
    """In the textbook's EP the values are sites too, Gaussian ones."""
    given = problem(5, 4, shape=shape, scale=scale)
    theta = theta_at(given)
    dense = Dense(given, theta)
    prior = dense.K + np.diag(np.where(np.arange(9) < 5, 0.0, dense.noise))  # noise of the values is in their sites
    book = textbook_ep(
        np.zeros(9), prior, given.signs, values=dense.y, noise=np.full(5, dense.noise), scale=scale
    )  # fmt: skip
    found = exactly(given, theta)
    assert found.converged
    assert found.value == pytest.approx(book.log_evidence + dense.log_jacobian, abs=1e-7)
    assert 1.0 / found.sites.precision == pytest.approx(book.site_var[5:], rel=1e-5)
    assert found.sites.shift / found.sites.precision == pytest.approx(book.site_mean[5:], rel=1e-5)


def test_evidence_of_signs_alone_is_that_of_the_classifier() -> None:
    given = problem(0, 5)
    theta = theta_at(given)
    book = textbook_ep(np.zeros(5), Dense(given, theta).of_readings, given.signs)
    assert exactly(given, theta).value == pytest.approx(book.log_evidence, abs=1e-8)


def test_held_sites_are_scored_as_virtual_readings_of_a_plain_process() -> None:
    given = problem(6, 4)
    theta = theta_at(given)
    sites = Sites(np.array([0.5, 2.0, 1.0, 0.1]), np.array([1.0, -3.0, 0.5, 0.2]))
    dense = Dense(given, theta)
    total = dense.of_readings + np.diag([*np.zeros(6), *(1.0 / sites.precision)])
    readings = np.concatenate([dense.y, sites.shift / sites.precision])
    found = evaluate(given, theta, sites, tolerance=1e-12, hold_sites=True)
    density = multivariate_normal(np.zeros(10), total).logpdf(readings)
    assert found.value == pytest.approx(density + dense.log_jacobian, rel=1e-9)
    assert found.sites is sites


def test_units_of_the_readings_do_not_matter() -> None:
    given = problem(6, 3)
    theta = theta_at(given)
    plain = exactly(given, theta)
    for unit in (1e-250, 1e250):
        margins = given.margins * unit
        scaled = exactly(replace(given, margins=margins, unit=typical_size(margins)), theta)
        assert scaled.value == pytest.approx(plain.value, rel=1e-10)
        assert scaled.gradient == pytest.approx(plain.gradient, rel=1e-6)


# Its gradient

CASES = {
    "values only": problem(9, 0),
    "values, upper warp": problem(9, 0, shape=Shape.UPPER),
    "values, lower warp": problem(9, 0, shape=Shape.LOWER),
    "mixed": problem(7, 5),
    "mixed, upper warp": problem(7, 5, shape=Shape.UPPER),
    "mixed, probit": problem(7, 5, scale=0.5),
    "mixed, one group each": problem(7, 5, groups=np.array([0, 1, 2])),
    "mixed, all tied": problem(7, 5, groups=np.array([0, 0, 0])),
    "signs only": problem(0, 8),
    "one sign": problem(5, 1),
    "one value": problem(1, 3, signs=-np.ones(3)),
    "constant values": problem(4, 3, margins=np.full(4, 2.5), unit=2.5),
}
every_case = pytest.mark.parametrize("given", CASES.values(), ids=CASES)


@every_case
@pytest.mark.parametrize("knee", [-3.0, 0.5])
def test_gradient_of_the_evidence_equals_differences(given: Problem, knee: float) -> None:
    theta = theta_at(given, knee=knee)
    numeric = gradient(lambda at: exactly(given, at).value, theta)
    assert exactly(given, theta).gradient == pytest.approx(numeric, rel=1e-5, abs=1e-6)


@every_case
def test_at_the_fixed_point_held_virtual_readings_have_the_gradient_of_the_evidence(given: Problem) -> None:
    theta = theta_at(given)
    found = exactly(given, theta)
    held = evaluate(given, theta, found.sites, tolerance=1e-12, hold_sites=True)
    assert held.gradient == pytest.approx(found.gradient, rel=1e-6, abs=1e-7)


def test_gradient_with_held_sites_equals_differences_away_from_the_fixed_point_too() -> None:
    given = CASES["mixed"]
    theta = theta_at(given)
    sites = Sites(np.full(5, 0.7), np.linspace(-1.0, 1.0, 5))

    def value(at: Array) -> float:
        return evaluate(given, at, sites, tolerance=1e-12, hold_sites=True).value

    found = evaluate(given, theta, sites, tolerance=1e-12, hold_sites=True)
    assert found.gradient == pytest.approx(gradient(value, theta), rel=1e-6, abs=1e-6)


def test_loosely_solved_sites_cost_the_evidence_only_the_square_of_their_error() -> None:
    given = problem(7, 12)
    theta = theta_at(given)
    loose = evaluate(given, theta, nothing(given), tolerance=1e-3)
    tight = exactly(given, theta)
    assert loose.sweeps < tight.sweeps
    assert loose.value == pytest.approx(tight.value, abs=1e-5)


@pytest.mark.parametrize("noise", [-18.0, -4.0])
def test_a_duplicate_that_contradicts_its_value_stays_finite(noise: float) -> None:
    """The same row measured to hold and said to have broken: possible by the noise alone."""
    given = problem(6, 1)
    held = int(np.argmin(given.margins))
    given = replace(given, X_signs=given.X_values[held : held + 1], signs=np.array([1.0]))
    found = evaluate(given, theta_at(given, noise=noise), nothing(given), tolerance=1e-4)
    assert np.isfinite(found.value) and np.isfinite(found.gradient).all()
    assert found.value < exactly(replace(given, signs=np.array([-1.0])), theta_at(given, noise=noise)).value - 10.0


def test_evaluating_leaves_its_arguments_as_they_were() -> None:
    given, sites = problem(6, 3), Sites(np.full(3, 0.3), np.full(3, 0.1))
    theta = theta_at(given)
    parts = (
        given.X_values,
        given.margins,
        given.X_signs,
        given.signs,
        given.groups,
        theta,
        sites.precision,
        sites.shift,
    )
    kept = [part.copy() for part in parts]
    evaluate(given, theta, sites, tolerance=1e-8)
    climb(given, PRIORS, Fit(theta, sites, -np.inf, np.eye(theta.size)), "evidence", 10)
    assert all(np.array_equal(was, now) for was, now in zip(kept, parts, strict=True))


# Priors and the climb


def test_score_is_the_evidence_times_the_prior() -> None:
    given = problem(7, 0)
    theta = theta_at(given)
    # The lengthscales' prior as what it says: a level that all share plus differences, so a dense covariance.
    away = theta - PRIORS.centre(2)
    covariance = np.diag([PRIORS.difference**2] * 2) + PRIORS.level[1] ** 2
    others = (PRIORS.amplitude, PRIORS.effects, PRIORS.ratio, PRIORS.noise, PRIORS.knee)
    rest = away[2:] / [deviation for _, deviation in others]
    log_prior = -0.5 * (away[:2] @ np.linalg.solve(covariance, away[:2]) + rest @ rest)
    assert score(given, PRIORS, theta, nothing(given)).score == pytest.approx(exactly(given, theta).value + log_prior)


def test_the_lengthscales_prior_grows_like_the_root_of_the_dimension() -> None:
    centre = [np.exp(PRIORS.centre(groups)[0]) for groups in (1, 4, 16)]
    assert centre[1] / centre[0] == pytest.approx(2.0) and centre[2] / centre[0] == pytest.approx(4.0)


def test_a_knee_that_is_not_learned_is_held_at_no_warp() -> None:
    low, high = PRIORS.bounds(2, False)[-1]
    assert low == high == PRIORS.knee_bounds[1]


@pytest.mark.parametrize("objective", ["evidence", "virtual"])
@pytest.mark.parametrize("counts", [(12, 0), (9, 6), (0, 12)], ids=str)
def test_a_climb_raises_the_score_and_stays_inside_the_bounds(counts: tuple[int, int], objective: Any) -> None:
    given = problem(*counts)
    low, high = PRIORS.bounds(2, given.warped).T
    theta = np.clip(theta_at(given), low, high)
    start = score(given, PRIORS, theta, nothing(given))
    top = climb(given, PRIORS, start, objective, 60)
    assert top.score > start.score + 0.1
    assert (top.theta >= low).all() and (top.theta <= high).all()
    # What it says of its top is so: the sites it returns are those of its theta.
    assert top.score == pytest.approx(score(given, PRIORS, top.theta, nothing(given)).score, abs=1e-3)


@pytest.mark.parametrize("counts", [(12, 0), (9, 6), (0, 12)], ids=str)
def test_a_climb_ends_where_no_step_raises_the_score(counts: tuple[int, int]) -> None:
    given = problem(*counts)
    low, high = PRIORS.bounds(2, given.warped).T
    theta = np.clip(theta_at(given), low, high)
    top = climb(given, PRIORS, score(given, PRIORS, theta, nothing(given)), "evidence", 200)
    for j in range(theta.size):
        for step in (-0.05, 0.05):
            beside = top.theta.copy()
            beside[j] = np.clip(beside[j] + step, low[j], high[j])
            assert score(given, PRIORS, beside, top.sites).score < top.score + 0.01


def test_the_evidence_climb_is_no_worse_than_the_virtual_one() -> None:
    for seed in range(3):
        given = problem(8, 8, seed=seed)
        start = score(given, PRIORS, theta_at(given), nothing(given))
        evidence, virtual = (climb(given, PRIORS, start, way, 200).score for way in ("evidence", "virtual"))  # type: ignore[arg-type]
        assert evidence > virtual - 0.05


def test_a_climb_from_a_singular_corner_comes_back() -> None:
    """Long lengthscales, no noise and duplicates: only jitter makes the matrix positive definite."""
    given = problem(6, 4)
    given = replace(given, X_values=np.repeat(given.X_values[:3], 2, axis=0), margins=np.repeat(given.margins[:3], 2))
    corner = np.array([5.0, 5.0, 7.0, 0.0, 0.0, -18.4, 0.0])
    start = score(given, PRIORS, corner, nothing(given))
    top = climb(given, PRIORS, start, "evidence", 60)
    assert np.isfinite(top.score) and top.score > start.score
