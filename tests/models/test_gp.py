"""The Gaussian posterior against dense textbook formulas."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.differences import gradient
from reference.textbook_gp import conditional, main_effects, matern52

from cbob.models.gp import Posterior
from cbob.models.kernels import Kernel

Array = NDArray[np.float64]

RNG = np.random.default_rng(5)
X, Q = RNG.random((12, 2)), RNG.random((9, 2))
Y = np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2 + 3.0
NOISE = RNG.uniform(0.01, 0.2, 12)
KERNEL = Kernel(np.array([0.4, 0.9]), 1.7, effects=0.9, ratio=0.5, bias=2.0, portions=np.full(2, 0.5))
PLAIN = replace(KERNEL, effects=0.0)


def dense(rows: Array, queries: Array) -> Array:
    effects = main_effects(rows, queries, KERNEL.lengthscales, KERNEL.effects, KERNEL.ratio, count=16)
    return matern52(rows, queries, KERNEL.lengthscales, KERNEL.amplitude, KERNEL.bias) + effects


def posterior(noise: Array = NOISE) -> Posterior:
    return Posterior(KERNEL, X, Y, noise)


def test_mean_and_deviation_equal_the_dense_formula() -> None:
    mean, cov = conditional(dense(X, X), dense(X, Q), dense(Q, Q), Y, NOISE)
    got_mean, got_std = posterior().predict(Q)
    assert got_mean == pytest.approx(mean, rel=1e-10)
    assert got_std == pytest.approx(np.sqrt(np.diagonal(cov)), rel=1e-9)


def test_joint_covariance_equals_the_dense_formula() -> None:
    mean, cov = conditional(dense(X, X), dense(X, Q), dense(Q, Q), Y, NOISE)
    got_mean, got_cov = posterior().joint(Q)
    assert got_mean == pytest.approx(mean, rel=1e-10)
    assert got_cov == pytest.approx(cov, abs=1e-11)


def test_a_bias_is_an_unknown_constant_mean() -> None:
    """Generalised least squares for the constant, as its variance b -> infinity (GPML, equation 2.42)."""
    wide = replace(PLAIN, bias=1e8)
    K = matern52(X, X, KERNEL.lengthscales, KERNEL.amplitude) + np.diag(NOISE)
    k = matern52(X, Q, KERNEL.lengthscales, KERNEL.amplitude)
    ones = np.ones(12)
    precision = ones @ np.linalg.solve(K, ones)
    constant = ones @ np.linalg.solve(K, Y) / precision
    mean = constant + k.T @ np.linalg.solve(K, Y - constant)
    left_over = 1.0 - k.T @ np.linalg.solve(K, ones)
    variance = KERNEL.amplitude - np.einsum("nq,nq->q", k, np.linalg.solve(K, k)) + left_over**2 / precision
    got_mean, got_std = Posterior(wide, X, Y, NOISE).predict(Q)
    assert got_mean == pytest.approx(mean, rel=1e-5)
    assert got_std**2 == pytest.approx(variance, rel=1e-4)


def test_without_noise_the_mean_goes_through_the_data_and_the_deviation_vanishes() -> None:
    mean, std = posterior(np.full(12, 1e-10)).predict(X)
    assert mean == pytest.approx(Y, abs=1e-6)
    assert (std < 1e-4).all()


def test_far_from_the_data_the_prior_comes_back() -> None:
    mean, std = Posterior(replace(PLAIN, lengthscales=np.array([0.02, 0.02]), bias=0.0), X, Y, NOISE).predict(
        np.array([[9.0, 9.0]])
    )
    assert mean == pytest.approx([0.0], abs=1e-12)
    assert std == pytest.approx([np.sqrt(1.7)], rel=1e-12)


def test_gradients_of_mean_and_deviation_equal_differences() -> None:
    gp = posterior()
    marginals = gp.predict_with_gradient(Q)
    mean, std = gp.predict(Q)
    assert marginals.mean == pytest.approx(mean, rel=1e-12) and marginals.std == pytest.approx(std, rel=1e-9)
    for q, row in enumerate(Q):

        def dense_predict(at: Array) -> Array:
            centre, cov = conditional(dense(X, X), dense(X, at[None]), dense(at[None], at[None]), Y, NOISE)
            return np.array([centre[0], np.sqrt(cov[0, 0])])

        numeric = gradient(dense_predict, row, step=1e-4)
        assert marginals.mean_gradient[q] == pytest.approx(numeric[0], abs=1e-6)
        assert marginals.std_gradient[q] == pytest.approx(numeric[1], abs=1e-6)


def test_samples_have_the_joint_mean_and_covariance() -> None:
    count = 40_000
    draws = posterior().sample(Q[:4], count, np.random.default_rng(0))
    mean, cov = conditional(dense(X, X), dense(X, Q[:4]), dense(Q[:4], Q[:4]), Y, NOISE)
    deviation = np.sqrt(np.diagonal(cov))
    assert draws.shape == (count, 4)
    assert np.abs((draws.mean(axis=0) - mean) / deviation).max() < 4.5 / np.sqrt(count)
    correlation = (np.cov(draws.T) - cov) / np.outer(deviation, deviation)
    assert np.abs(correlation).max() < 4.5 * np.sqrt(2.0 / count)


def test_equal_seeds_draw_equal_samples() -> None:
    first, second = (posterior().sample(Q, 3, np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(first, second)


def test_believing_leaves_the_mean_everywhere_and_the_deviation_vanishes_at_the_pending_rows() -> None:
    gp, pending = posterior(), Q[:3]
    believed = gp.believing(pending)
    assert believed.predict(Q)[0] == pytest.approx(gp.predict(Q)[0], abs=1e-6)
    assert (believed.predict(pending)[1] < 2e-4 * np.sqrt(KERNEL.variance)).all()
    assert (believed.predict(Q[3:])[1] < gp.predict(Q[3:])[1]).all()


def test_believing_conditions_the_covariance_on_the_pending_rows() -> None:
    pending = Q[:3]
    both = np.vstack([X, pending])
    _, cov = conditional(dense(both, both), dense(both, Q), dense(Q, Q), np.zeros(15), np.append(NOISE, np.full(3, 1e-9)))
    assert posterior().believing(pending).predict(Q[3:])[1] == pytest.approx(np.sqrt(np.diagonal(cov))[3:], rel=1e-4)


def test_believing_nothing_changes_nothing() -> None:
    gp = posterior()
    assert gp.believing(np.empty((0, 2))) is gp


def test_believing_bears_a_pending_row_twice_and_a_row_that_was_measured() -> None:
    believed = posterior(np.full(12, 1e-8)).believing(np.vstack([Q[:1], Q[:1], X[:1]]))
    mean, std = believed.predict(np.vstack([X, Q]))
    assert np.isfinite(mean).all() and (std > 0.0).all()
    assert mean[:12] == pytest.approx(Y, abs=1e-3)


def test_no_data_leaves_the_prior() -> None:
    empty = Posterior(KERNEL, np.empty((0, 2)), np.empty(0), np.empty(0))
    marginals = empty.predict_with_gradient(Q)
    assert np.array_equal(marginals.mean, np.zeros(9))
    assert marginals.std == pytest.approx(np.full(9, np.sqrt(KERNEL.variance)))
    assert not marginals.mean_gradient.any() and not marginals.std_gradient.any()


def test_predicting_leaves_its_arguments_as_they_were() -> None:
    kept = X.copy(), Y.copy(), NOISE.copy(), Q.copy()
    gp = posterior()
    gp.predict(Q), gp.predict_with_gradient(Q), gp.joint(Q), gp.sample(Q, 2, np.random.default_rng(0))
    gp.believing(Q).predict(X)
    assert all(np.array_equal(was, now) for was, now in zip(kept, (X, Y, NOISE, Q), strict=True))
