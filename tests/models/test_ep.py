"""Expectation propagation: that it reaches the textbook's fixed point, and how near that is to the truth."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.orthants import (
    Truth,
    equicorrelated,
    importance,
    one_sided,
    orthant_of_three,
    orthant_of_two,
    quadrature,
)
from reference.textbook_ep import textbook_ep
from reference.textbook_gp import matern52
from scipy.special import log_ndtr
from scipy.stats import multivariate_normal

from cbob.models.ep import EPResult, expectation_propagation

Array = NDArray[np.float64]


def equal_correlation(n: int, rho: float) -> Array:
    return np.full((n, n), rho) + (1.0 - rho) * np.eye(n)


def some_signs(kind: str, n: int) -> Array:
    signs = np.ones(n)
    if kind == "mixed":
        signs[1::2] = -1.0
    elif kind == "one odd":
        signs[-1] = -1.0
    return signs


def random_prior(n: int, seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((n, n + 1))
    return rng.standard_normal(n), half @ half.T / n, rng.choice([-1.0, 1.0], n)


def errors(result: EPResult, truth: Truth) -> tuple[float, float, float]:
    """The largest: of the log evidence, of a mean in exact deviations, of a deviation as a share of it."""
    exact, found = np.sqrt(np.diagonal(truth.cov)), np.sqrt(np.diagonal(result.cov))
    return (
        abs(result.log_evidence - truth.log_evidence),
        float(np.max(np.abs(result.mean - truth.mean) / exact)),
        float(np.max(np.abs(found / exact - 1.0))),
    )


# One site, and independent sites: EP is exact


@pytest.mark.parametrize("scale", [0.0, 1e-6, 0.3, 5.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("prior", [(0.0, 1.0), (-3.0, 1.0), (3.0, 1.0), (0.7, 4.0), (-1.0, 0.1)])
def test_one_site_is_exact(prior: tuple[float, float], sign: float, scale: float) -> None:
    log_mass, mean, variance = quadrature(*prior, sign, scale)
    result = expectation_propagation([prior[0]], [[prior[1]]], [sign], scale=scale)
    assert result.converged
    assert result.log_evidence == pytest.approx(log_mass, abs=1e-8)
    assert result.mean[0] == pytest.approx(mean, abs=1e-7 * math.sqrt(variance))
    assert result.cov[0, 0] == pytest.approx(variance, rel=1e-7)


def test_a_positive_site_at_a_unit_prior_has_the_evidence_of_one_half() -> None:
    assert expectation_propagation([0.0], [[1.0]], [1]).log_evidence == pytest.approx(math.log(0.5), rel=1e-12)


@pytest.mark.parametrize("scale", [0.0, 0.5])
def test_independent_sites_are_exact(scale: float) -> None:
    m, variances, s = np.linspace(-3.0, 3.0, 20), np.linspace(0.1, 4.0, 20), np.tile([1.0, -1.0], 10)
    result = expectation_propagation(m, np.diag(variances), s, scale=scale)
    log_p, mean, variance = one_sided(m, variances, s, scale)
    assert result.log_evidence == pytest.approx(log_p.sum(), rel=1e-10)
    assert result.mean == pytest.approx(mean, rel=1e-9)
    assert np.diagonal(result.cov) == pytest.approx(variance, rel=1e-9)


# That it is the fixed point


@pytest.mark.parametrize(
    ("n", "scale", "seed"), [(2, 0.0, 0), (3, 0.0, 1), (3, 0.5, 2), (5, 0.0, 3), (5, 2.0, 4), (6, 1e-6, 5)]
)
def test_evidence_mean_covariance_and_sites_are_those_of_the_textbook(n: int, scale: float, seed: int) -> None:
    assert_textbook(*random_prior(n, seed), scale=scale)


@pytest.mark.parametrize(("n", "rho", "kind"), [(2, 0.999, "same"), (4, 0.99, "same"), (5, 0.9, "one odd")])
def test_correlated_sites_reach_the_fixed_point_of_the_textbook(n: int, rho: float, kind: str) -> None:
    assert_textbook(np.full(n, -0.5), equal_correlation(n, rho), some_signs(kind, n))


@pytest.mark.slow
@pytest.mark.parametrize("mean", [-3.0, 0.0, 3.0])
@pytest.mark.parametrize("kind", ["same", "mixed", "one odd"])
@pytest.mark.parametrize("rho", [0.5, 0.999])
def test_twenty_sites_reach_the_fixed_point_of_the_textbook(rho: float, kind: str, mean: float) -> None:
    assert_textbook(np.full(20, mean), equal_correlation(20, rho), some_signs(kind, 20))


def assert_textbook(m: Array, K: Array, s: Array, scale: float = 0.0) -> None:
    book = textbook_ep(m, K, s, scale=scale)
    result = expectation_propagation(m, K, s, scale=scale)
    deviation = np.sqrt(np.diagonal(book.cov))
    assert result.converged
    assert result.log_evidence == pytest.approx(book.log_evidence, abs=1e-8)
    assert (result.mean - book.mean) / deviation == pytest.approx(np.zeros(m.size), abs=1e-6)
    assert (result.cov - book.cov) / np.outer(deviation, deviation) == pytest.approx(np.zeros_like(K), abs=1e-6)
    assert result.site_var == pytest.approx(book.site_var, rel=1e-5)
    assert result.site_mean == pytest.approx(book.site_mean, rel=1e-5)


@pytest.mark.parametrize(("n", "rho", "mean"), [(20, 0.999, -3.0), (60, 0.9, 0.0), (250, 0.99, -1.0)])
def test_every_site_is_matched_in_the_company_of_the_others(n: int, rho: float, mean: float) -> None:
    """The definition of the fixed point, in dense formulas, where the textbook's own sweeps take too long."""
    m, K, s = np.full(n, mean), equal_correlation(n, rho), np.ones(n)
    result = expectation_propagation(m, K, s)
    assert result.converged
    precision = 1.0 / result.site_var
    gain = np.linalg.solve(K + np.diag(result.site_var), K).T
    assert result.mean == pytest.approx(m + gain @ (result.site_mean - m), rel=1e-6)
    assert result.cov == pytest.approx(K - gain @ K, abs=1e-8)
    variance = np.diagonal(result.cov)
    cavity = 1.0 / (1.0 / variance - precision)
    _, tilted_mean, tilted_variance = one_sided(
        cavity * (result.mean / variance - precision * result.site_mean), cavity, s, 0.0
    )
    assert tilted_mean == pytest.approx(result.mean, rel=1e-6)
    assert tilted_variance == pytest.approx(variance, rel=1e-6)


# How far from the truth the fixed point is: docs/design/0002-how-accurate-ep-is.md

# Signs and correlation of up to 20 sites: the largest `errors` measured, plus a tenth.
BOUNDS = {
    ("same", 0.0): (1e-11, 1e-11, 1e-11),
    ("same", 0.5): (0.027, 0.006, 0.023),
    ("same", 0.9): (0.15, 0.058, 0.19),
    ("same", 0.99): (0.35, 0.18, 0.44),
    ("same", 0.999): (0.5, 0.24, 0.58),
    ("mixed", 0.0): (1e-11, 1e-11, 1e-11),
    ("mixed", 0.5): (0.001, 0.001, 0.003),
    ("mixed", 0.9): (0.004, 0.006, 0.015),
    ("mixed", 0.99): (0.005, 0.007, 0.018),
    ("mixed", 0.999): (0.005, 0.006, 0.018),
    ("one odd", 0.0): (1e-11, 1e-11, 1e-11),
    ("one odd", 0.5): (0.012, 0.002, 0.009),
    ("one odd", 0.9): (0.022, 0.006, 0.017),
    ("one odd", 0.99): (0.021, 0.007, 0.018),
    ("one odd", 0.999): (0.02, 0.006, 0.018),
}


@pytest.mark.parametrize(("kind", "rho"), BOUNDS, ids=lambda part: str(part))
def test_evidence_and_moments_of_1_to_20_sites_are_as_near_the_truth_as_documented(kind: str, rho: float) -> None:
    for n in (1, 2, 5, 20):
        for mean in (-3.0, -1.0, 0.0, 1.0, 3.0):
            m, s = np.full(n, mean), some_signs(kind, n)
            result = expectation_propagation(m, equal_correlation(n, rho), s)
            assert result.converged
            found = errors(result, equicorrelated(m, rho, s))
            assert all(error < bound for error, bound in zip(found, BOUNDS[kind, rho], strict=True)), (
                n,
                mean,
                found,
            )


def test_redundant_sites_of_one_sign_make_ep_overconfident_and_never_the_reverse() -> None:
    """Which way the largest errors go: evidence and deviations come out too small."""
    for n in (2, 5, 20):
        for mean in (-3.0, 0.0, 3.0):
            for rho in (0.9, 0.999):
                m, s = np.full(n, mean), np.ones(n)
                truth = equicorrelated(m, rho, s)
                result = expectation_propagation(m, equal_correlation(n, rho), s)
                assert result.log_evidence < truth.log_evidence
                assert (np.diagonal(result.cov) < np.diagonal(truth.cov)).all()


def test_a_wide_probit_is_nearer_the_truth_than_a_step() -> None:
    m, s, K = np.full(20, -1.0), np.ones(20), equal_correlation(20, 0.99)
    step = errors(expectation_propagation(m, K, s), equicorrelated(m, 0.99, s))
    probit = errors(expectation_propagation(m, K, s, scale=1.0), equicorrelated(m, 0.99, s, scale=1.0))
    assert step[0] > 20.0 * probit[0] and step[2] > 10.0 * probit[2]
    assert all(error < bound for error, bound in zip(probit, (0.015, 0.01, 0.045), strict=True))


@pytest.mark.parametrize("rho", [-0.9, -0.5, 0.5, 0.9])
def test_two_sites_are_near_the_arcsine_formula(rho: float) -> None:
    result = expectation_propagation([0.0, 0.0], [[1.0, rho], [rho, 1.0]], [1, 1])
    assert result.log_evidence == pytest.approx(math.log(orthant_of_two(rho)), abs=0.033)


def test_three_sites_are_near_the_arcsine_formula() -> None:
    K = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, 0.3], [-0.2, 0.3, 1.0]])
    result = expectation_propagation(np.zeros(3), K, [1, 1, 1])
    assert result.log_evidence == pytest.approx(math.log(orthant_of_three(0.5, -0.2, 0.3)), abs=0.005)


@pytest.mark.parametrize(("ell", "bounds"), [(0.2, (0.08, 0.04, 0.09)), (1.0, (0.23, 0.1, 0.24))])
@pytest.mark.parametrize("kind", ["same", "by place"])
def test_sites_of_a_matern_process_are_as_near_exact_sampling_as_documented(
    kind: str, ell: float, bounds: tuple[float, float, float]
) -> None:
    X = np.random.default_rng(0).random((10, 2))
    K = matern52(X, X, [ell, ell], 1.0, 1.0) + 1e-8 * np.eye(10)
    s = np.ones(10) if kind == "same" else np.where(X[:, 0] + 0.3 * np.sin(6.0 * X[:, 1]) > 0.5, 1.0, -1.0)
    found = errors(expectation_propagation(np.zeros(10), K, s), importance(np.zeros(10), K, s, power=13))
    assert all(error < bound for error, bound in zip(found, bounds, strict=True)), found


@pytest.mark.slow
@pytest.mark.parametrize("ell", [0.2, 0.5, 1.0, 2.0])
def test_twenty_sites_of_a_matern_process_are_as_near_exact_sampling_as_documented(ell: float) -> None:
    X = np.random.default_rng(1).random((20, 2))
    K = matern52(X, X, [ell, ell], 1.0, 1.0) + 1e-8 * np.eye(20)
    result = expectation_propagation(np.zeros(20), K, np.ones(20))
    found = errors(result, importance(np.zeros(20), K, np.ones(20), power=17))
    assert all(error < bound for error, bound in zip(found, (0.33, 0.12, 0.4), strict=True)), found


def test_the_oracles_agree_with_each_other() -> None:
    m, s, rho = np.array([1.0, -0.5, 2.0, 0.0]), np.array([1.0, -1.0, -1.0, 1.0]), 0.7
    K = equal_correlation(4, rho)
    exact, sampled = equicorrelated(m, rho, s), importance(m, K, s)
    assert sampled.log_evidence == pytest.approx(exact.log_evidence, abs=1e-4)
    assert sampled.mean == pytest.approx(exact.mean, abs=1e-3)
    assert sampled.cov == pytest.approx(exact.cov, abs=1e-3)
    # P(s g > 0) = P(-s g < 0)
    orthant = float(multivariate_normal(-s * m, np.outer(s, s) * K, seed=0).cdf(np.zeros(4)))
    assert math.log(orthant) == pytest.approx(exact.log_evidence, abs=1e-3)
    for r in (0.3, 0.99):
        assert equicorrelated(np.zeros(2), r, [1, 1]).log_evidence == pytest.approx(math.log(orthant_of_two(r)))
        three = math.log(orthant_of_three(r, r, r))
        assert equicorrelated(np.zeros(3), r, [1, 1, 1]).log_evidence == pytest.approx(three)
    draws = np.random.default_rng(0).multivariate_normal(m, K, 400_000)
    kept = draws[(s * draws > 0.0).all(axis=1)]
    assert kept.mean(axis=0) == pytest.approx(exact.mean, abs=5.0 / math.sqrt(len(kept)))


# Starting, stopping, symmetry


def test_a_warm_start_reaches_the_same_fixed_point_in_fewer_sweeps() -> None:
    m, K, s = np.zeros(12), equal_correlation(12, 0.9), np.ones(12)
    cold = expectation_propagation(m, K, s)
    again = expectation_propagation(m, K, s, start=(cold.site_precision, cold.site_shift))
    near = expectation_propagation(m + 0.01, 1.01 * K, s)
    from_near = expectation_propagation(m, K, s, start=(near.site_precision, near.site_shift))
    assert again.sweeps <= 2 < cold.sweeps
    assert from_near.sweeps < cold.sweeps
    for warm in (again, from_near):
        assert warm.converged
        assert warm.log_evidence == pytest.approx(cold.log_evidence, abs=1e-9)
        assert warm.mean == pytest.approx(cold.mean, rel=1e-6)
        assert warm.cov == pytest.approx(cold.cov, rel=1e-6)


def test_a_hopeless_start_reaches_the_same_fixed_point() -> None:
    m, K, s = random_prior(6, 0)
    cold = expectation_propagation(m, K, s)
    for start in ((np.full(6, 1e4), s * 1e4), (np.full(6, 50.0), -s * 1e3), (np.zeros(6), s * 20.0)):
        warm = expectation_propagation(m, K, s, start=start)
        assert warm.converged
        assert warm.mean == pytest.approx(cold.mean, rel=1e-6)


def test_too_few_sweeps_are_told_and_leave_a_proper_gaussian() -> None:
    m, K, s = np.zeros(8), equal_correlation(8, 0.99), np.ones(8)
    result = expectation_propagation(m, K, s, max_sweeps=2)
    assert not result.converged and result.sweeps == 2
    assert np.isfinite(result.mean).all()
    assert (np.linalg.eigvalsh(result.cov) > 0.0).all()
    assert expectation_propagation(m, K, s).converged


def test_a_looser_tolerance_takes_fewer_sweeps() -> None:
    m, K, s = np.zeros(8), equal_correlation(8, 0.9), np.ones(8)
    loose, tight = (expectation_propagation(m, K, s, tolerance=t) for t in (1e-3, 1e-10))
    assert loose.converged and tight.converged and loose.sweeps < tight.sweeps
    assert loose.log_evidence == pytest.approx(tight.log_evidence, abs=1e-5)


def test_mirrored_signs_mirror_the_posterior() -> None:
    m, K, s = random_prior(5, 7)
    result, mirrored = expectation_propagation(m, K, s), expectation_propagation(-m, K, -s)
    assert mirrored.log_evidence == pytest.approx(result.log_evidence, rel=1e-12)
    assert mirrored.mean == pytest.approx(-result.mean, rel=1e-9)
    assert mirrored.cov == pytest.approx(result.cov, rel=1e-9)


def test_the_order_of_the_sites_does_not_matter() -> None:
    m, K, s = random_prior(7, 8)
    order = np.random.default_rng(0).permutation(7)
    result = expectation_propagation(m, K, s)
    shuffled = expectation_propagation(m[order], K[np.ix_(order, order)], s[order])
    assert shuffled.log_evidence == pytest.approx(result.log_evidence, rel=1e-9)
    assert shuffled.mean == pytest.approx(result.mean[order], rel=1e-7)


@pytest.mark.parametrize("unit", [1e-200, 1e-30, 1e30, 1e200])
def test_units_do_not_matter(unit: float) -> None:
    """K in units squared: 1e-200 to 1e200."""
    m, K, s = random_prior(4, 9)
    root = math.sqrt(unit)
    for scale in (0.0, 0.5):
        plain = expectation_propagation(m, K, s, scale=scale)
        result = expectation_propagation(root * m, unit * K, s, scale=root * scale)
        assert result.converged
        assert result.log_evidence == pytest.approx(plain.log_evidence, rel=1e-10)
        assert result.mean / root == pytest.approx(plain.mean, rel=1e-8)
        assert result.cov / unit == pytest.approx(plain.cov, rel=1e-7)
        assert result.site_mean / root == pytest.approx(plain.site_mean, rel=1e-7)
        assert result.site_var / unit == pytest.approx(plain.site_var, rel=1e-7)


def test_arguments_are_left_as_they_were() -> None:
    m, K, s = random_prior(4, 10)
    start = (np.full(4, 0.1), np.full(4, 0.2))
    kept = [part.copy() for part in (m, K, s, *start)]
    expectation_propagation(m, K, s, start=start)
    K[:, 0] = K[0] = 0.0
    kept[1][:, 0] = kept[1][0] = 0.0
    expectation_propagation(m, K, s, start=start)
    assert all(np.array_equal(was, now) for was, now in zip(kept, (m, K, s, *start), strict=True))


# The awkward priors


def test_nothing_gives_nothing() -> None:
    result = expectation_propagation([], np.empty((0, 0)), [])
    assert result.converged and result.log_evidence == 0.0
    assert result.mean.shape == result.site_mean.shape == result.site_var.shape == (0,)
    assert result.cov.shape == (0, 0)


def test_duplicates_that_agree_are_the_limit_of_near_duplicates() -> None:
    m, s = np.array([0.5, 0.5, -1.0]), np.array([1.0, 1.0, -1.0])
    K = np.array([[1.0, 1.0, 0.4], [1.0, 1.0, 0.4], [0.4, 0.4, 2.0]])
    assert_textbook(m, K, s)
    result = expectation_propagation(m, K, s)
    assert result.mean[0] == pytest.approx(result.mean[1], rel=1e-9)
    near = K.copy()
    near[0, 1] = near[1, 0] = 1.0 - 1e-9
    assert result.log_evidence == pytest.approx(expectation_propagation(m, near, s).log_evidence, abs=1e-6)


def test_one_latent_value_seen_twenty_times_converges() -> None:
    result = expectation_propagation(np.zeros(20), np.ones((20, 20)), np.ones(20))
    assert result.converged
    assert np.ptp(result.mean) < 1e-9
    # The truth is that of one sign; EP is as far from it as from that of nearly equal values.
    half_normal = Truth(math.log(0.5), np.full(20, math.sqrt(2 / math.pi)), np.full((20, 20), 1 - 2 / math.pi))
    found = errors(result, half_normal)
    assert all(error < bound for error, bound in zip(found, BOUNDS["same", 0.999], strict=True))


def test_duplicates_that_contradict_each_other_meet_at_the_limit() -> None:
    for n in (2, 20):
        s = np.tile([1.0, -1.0], n // 2)
        result = expectation_propagation(np.zeros(n), np.ones((n, n)), s)
        assert np.isfinite(result.log_evidence) and result.log_evidence < -10.0
        assert np.abs(result.mean).max() < 1e-5
        assert (np.diagonal(result.cov) < 1e-10).all()


def test_contradicting_duplicates_under_a_probit_are_those_of_quadrature() -> None:
    scale = 0.1
    book = textbook_ep([0.0, 0.0], np.ones((2, 2)), [1, -1], scale=scale)
    result = expectation_propagation([0.0, 0.0], np.ones((2, 2)), [1, -1], scale=scale)
    assert result.log_evidence == pytest.approx(book.log_evidence, abs=1e-8)
    g = np.linspace(-2.0, 2.0, 20_001)
    density = np.exp(-0.5 * g**2 + log_ndtr(g / scale) + log_ndtr(-g / scale)) / math.sqrt(2.0 * math.pi)
    assert result.log_evidence == pytest.approx(math.log(density.sum() * (g[1] - g[0])), abs=0.01)


@pytest.mark.parametrize("scale", [0.0, 0.5])
def test_a_value_without_variance_learns_nothing_and_contributes_its_likelihood(scale: float) -> None:
    m, K, s = random_prior(3, 11)
    whole_mean, whole_cov, whole_signs = (
        np.array([2.0, *m, -0.3]),
        np.zeros((5, 5)),
        np.array([1.0, *s, -1.0]),
    )
    whole_cov[1:4, 1:4] = K
    inner = expectation_propagation(m, K, s, scale=scale)
    result = expectation_propagation(whole_mean, whole_cov, whole_signs, scale=scale)
    certain = 0.0 if scale == 0.0 else float(log_ndtr(2.0 / scale) + log_ndtr(0.3 / scale))
    assert result.log_evidence == pytest.approx(inner.log_evidence + certain, rel=1e-10)
    assert result.mean == pytest.approx(np.array([2.0, *inner.mean, -0.3]))
    assert result.cov[1:4, 1:4] == pytest.approx(inner.cov) and not result.cov[[0, 4]].any()
    assert np.isinf(result.site_var[[0, 4]]).all()


def test_a_certain_value_that_contradicts_its_sign_is_impossible() -> None:
    assert expectation_propagation([1.0, 0.0], np.diag([0.0, 1.0]), [-1, 1]).log_evidence == -math.inf


@pytest.mark.parametrize(("n", "rho"), [(1, 0.0), (2, 0.9), (5, 0.99), (3, 0.0)])
@pytest.mark.parametrize("mean", [-40.0, -1e3])
def test_signs_far_against_the_prior_stay_accurate(mean: float, n: int, rho: float) -> None:
    m, K, s = np.full(n, mean), equal_correlation(n, rho), np.ones(n)
    result = expectation_propagation(m, K, s)
    assert result.converged
    assert (result.mean > 0.0).all() and (np.diagonal(result.cov) > 0.0).all()
    if rho == 0.0:
        log_p, tilted, variance = one_sided(m, np.ones(n), s, 0.0)
        assert result.log_evidence == pytest.approx(log_p.sum(), rel=1e-9)
        if mean == -40.0:  # the oracle's own differences are exact no farther
            assert result.mean == pytest.approx(tilted, rel=1e-6)
            assert np.diagonal(result.cov) == pytest.approx(variance, rel=1e-5)
    else:
        # to first order, -m' K^-1 m / 2: the nearest point of the orthant is its corner
        assert result.log_evidence == pytest.approx(-0.5 * m @ np.linalg.solve(K, m), rel=0.02)


@pytest.mark.parametrize("mean", [-1e3, -1e4, -1e5, -1e6])
def test_the_evidence_of_a_contradiction_keeps_its_digits(mean: float) -> None:
    result = expectation_propagation([mean], [[1.0]], [1])
    assert result.log_evidence == pytest.approx(float(log_ndtr(mean)), rel=1e-14)
    assert result.mean[0] == pytest.approx(-1.0 / mean, rel=1e-5) and result.cov[0, 0] > 0.0


@pytest.mark.parametrize("mean", [-1e4, -1e6])
def test_correlated_contradictions_reach_the_textbooks_fixed_point_in_a_few_sweeps(mean: float) -> None:
    m, K, s = np.full(3, mean), equal_correlation(3, 0.9), np.ones(3)
    book = textbook_ep(m, K, s, digits=60)
    result = expectation_propagation(m, K, s)
    assert result.converged and result.sweeps < 10
    assert result.log_evidence == pytest.approx(book.log_evidence, rel=1e-13)
    assert result.mean == pytest.approx(book.mean, rel=1e-5)
    assert result.site_var == pytest.approx(book.site_var, rel=1e-5)


@pytest.mark.parametrize("strength", [1e6, 1e10, 1e16, 1e25])
def test_sites_of_an_earlier_contradiction_are_forgotten(strength: float) -> None:
    """A search for hyperparameters passes through contradictions and starts from their sites ever after."""
    m, K, s = random_prior(6, 0)
    cold = expectation_propagation(m, K, s)
    warm = expectation_propagation(m, K, s, start=(np.full(6, strength), s * np.sqrt(strength)))
    assert warm.converged
    assert warm.log_evidence == pytest.approx(cold.log_evidence, abs=1e-8)
    assert warm.mean == pytest.approx(cold.mean, rel=1e-6)


def test_signs_that_the_prior_already_knows_say_nothing() -> None:
    for mean in (40.0, 1e3, 1e8, 1e100, 1e300):
        result = expectation_propagation([mean, mean], equal_correlation(2, 0.9), [1, 1])
        assert result.converged and result.log_evidence == 0.0
        assert np.array_equal(result.mean, [mean, mean])
        assert result.cov == pytest.approx(equal_correlation(2, 0.9))
        assert np.isinf(result.site_var).all() or (result.site_var > 1e200).all()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (dict(prior_mean=[0.0], prior_cov=np.eye(2), signs=[1]), r"shapes \(1,\), \(2, 2\) and \(1,\)"),
        (
            dict(prior_mean=[[0.0]], prior_cov=np.eye(1), signs=[1]),
            r"n means, an n x n covariance and n signs",
        ),
        (dict(prior_mean=[0.0, 0.0], prior_cov=np.eye(2), signs=[1]), r"and \(1,\)"),
        (dict(prior_mean=[math.nan], prior_cov=[[1.0]], signs=[1]), "finite means"),
        (dict(prior_mean=[0.0], prior_cov=[[math.inf]], signs=[1]), "finite covariance"),
        (dict(prior_mean=[0.0], prior_cov=[[-1.0]], signs=[1]), "no negative variance"),
        (dict(prior_mean=[0.0], prior_cov=[[1.0]], signs=[0]), r"signs must be \+1 \(g > 0\) or -1"),
        (dict(prior_mean=[0.0], prior_cov=[[1.0]], signs=[math.nan]), "signs must be"),
        (
            dict(prior_mean=[0.0], prior_cov=[[1.0]], signs=[1], scale=-1.0),
            "scale must be finite and not negative",
        ),
        (dict(prior_mean=[0.0], prior_cov=[[1.0]], signs=[1], scale=math.nan), "not nan"),
    ],
)
def test_bad_arguments_are_told_what_was_expected(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        expectation_propagation(**given)
