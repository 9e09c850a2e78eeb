"""Moment matching of one truncated reading against quadrature, and in the far tail against mpmath."""

import mpmath
import numpy as np
import pytest
from reference.orthants import quadrature
from reference.textbook_ep import tilted

from cbob.models.sites import match_one, match_truncation

CAVITIES = [(0.0, 1.0), (-1.5, 0.3), (2.0, 4.0), (-4.0, 1.0), (0.03, 1e-4), (6.0, 2.0)]
SCALES = [0.0, 1e-6, 0.1, 1.0, 30.0]


def matched(mean: float, variance: float, sign: float, scale: float) -> tuple[float, float, float]:
    """log normaliser, mean and variance of the cavity times the matched site."""
    match = match_truncation(np.array([mean]), np.array([variance]), np.array([sign]), scale)
    posterior = 1.0 / (1.0 / variance + match.precision[0])
    return match.log_normaliser[0], posterior * (mean / variance + match.shift[0]), posterior


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("cavity", CAVITIES)
def test_a_site_reproduces_the_moments_that_quadrature_finds(cavity: tuple[float, float], sign: float, scale: float) -> None:
    log_mass, mean, variance = quadrature(*cavity, sign, scale)
    got = matched(*cavity, sign, scale)
    deviation = np.sqrt(variance)
    assert got[0] == pytest.approx(log_mass, abs=1e-8)
    assert got[1] == pytest.approx(mean, abs=1e-6 * deviation)
    assert got[2] == pytest.approx(variance, rel=1e-6)


@pytest.mark.parametrize("scale", [0.0, 0.5])
@pytest.mark.parametrize("z", [-40.0, -1e4, -1e6, 30.0])
def test_a_site_keeps_its_digits_in_the_tail(z: float, scale: float) -> None:
    mean, variance = 3.0, (3.0 / z) ** 2
    sign = float(np.sign(z))
    with mpmath.workdps(80):
        exact_mean, exact_variance = mpmath.mpf(mean), mpmath.mpf(variance)
        _, hat_mean, hat_variance = tilted(exact_mean, exact_variance, sign, mpmath.mpf(scale))
        precision = float(1 / hat_variance - 1 / exact_variance)
        shift = float(hat_mean / hat_variance - exact_mean / exact_variance)
    match = match_truncation(np.array([mean]), np.array([variance]), np.array([sign]), scale)
    assert match.precision[0] == pytest.approx(precision, rel=1e-11)
    assert match.shift[0] == pytest.approx(shift, rel=1e-11)


def test_one_cavity_gives_what_an_array_gives() -> None:
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=200) * 10.0 ** rng.uniform(-3, 3, 200), 10.0 ** rng.uniform(-6, 2, 200)
    signs, scale = (
        rng.choice([-1.0, 1.0], 200),
        np.where(rng.random(200) < 0.5, 0.0, 10.0 ** rng.uniform(-6, 1, 200)),
    )
    match = match_truncation(mean, variance, signs, scale)
    for i in range(200):
        one = match_one(float(mean[i]), float(variance[i]), float(signs[i]), float(scale[i]))
        assert one == pytest.approx((match.precision[i], match.shift[i]), rel=1e-13)


def test_every_precision_is_positive_and_a_certain_sign_says_nothing() -> None:
    """The likelihoods are log-concave, so a site never widens its cavity."""
    mean = np.array([-1e300, -1e9, -1e4, -3.0, 0.0, 3.0, 30.0, 40.0, 1e9, 1e300])
    for scale in (0.0, 1e-6, 1.0):
        for sign in (1.0, -1.0):
            match = match_truncation(mean, np.ones(10), np.full(10, sign), scale)
            assert (match.precision >= 0.0).all()
            assert np.isfinite(match.precision).all() and np.isfinite(match.shift).all()
            assert not match.precision[sign * mean > 37.0 * np.hypot(1.0, scale)].any()


def test_matching_leaves_its_arguments_as_they_were() -> None:
    given = [np.array([0.5, -1.0]), np.array([1.0, 2.0]), np.array([1.0, -1.0])]
    kept = [part.copy() for part in given]
    match_truncation(*given, 0.1)
    assert all(np.array_equal(was, now) for was, now in zip(kept, given, strict=True))
