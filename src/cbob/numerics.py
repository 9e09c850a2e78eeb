"""Functions of the normal distribution that keep their relative accuracy in the tails.

Symbols: phi and Phi are the density and the distribution function of N(0, 1), and

    hazard   h(z) = phi(z) / Phi(z)       mean of N(0, 1) truncated to x > -z, so E[x | x > -z] = h(z)
    excess   e(z) = z + h(z)              how far that mean lies beyond the cut; 1/|z| for z << 0
    shrink   s(z) = 1 - h(z) e(z)         variance of the truncated variable; 1/z^2 for z << 0
    improvement   z Phi(z) + phi(z)       E[max(z + x, 0)]

Written as they stand, e, s and the improvement lose every digit by z = -1e4, because they are differences of
nearly equal numbers. With a = -z > 0 and Laplace's continued fraction for the Mills ratio,

    Phi(-a)/phi(a) = 1/(a + c1),   c1 = 1/(a + c2),   c2 = 2/(a + 3/(a + 4/(a + ...)))

no difference is left: h = a + c1, e = c1, s = (c2 - c1)/(a + c2) and improvement = phi(a) c1/(a + c1).
Stated accuracy (tests, against mpmath): relative 1e-12 for every z in [-1e8, 30] where the result does not
underflow; of a logarithm, 1e-12 of its size or of 1, whichever is larger.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

__all__ = [
    "improvement",
    "log_improvement",
    "log_ndtr",
    "log_neg_log1m_exp",
    "ndtr",
    "normal_pdf",
    "truncation",
]

Array = NDArray[np.float64]

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
SQRT_HALF_PI = math.sqrt(0.5 * math.pi)
SQRT_HALF = math.sqrt(0.5)
# Below this the continued fraction takes over: 40 levels reach machine precision from a = 5 on, and the
# direct formula has lost about a^4 eps = 1e-13 by then.
TAIL = -5.0
LEVELS = 40
# Beyond this the hazard, below 1e-297, counts as 0: erfcx would overflow, and z times a rest would grow.
CERTAIN = 37.0


class Truncation(NamedTuple):
    """Moments of a standard normal truncated to x > -z (see the module's head)."""

    hazard: Array
    excess: Array
    shrink: Array


def _fractions(a: Array) -> tuple[Array, Array]:
    """c1 and c2 of the continued fraction, for a >= 5."""
    tail = np.zeros_like(a)
    for level in range(LEVELS, 1, -1):
        tail = level / (a + tail)
    return 1.0 / (a + tail), tail


def truncation(z: Array) -> Truncation:
    z = np.asarray(z, dtype=float)
    bulk = np.maximum(z, TAIL)
    reach = erfcx(-np.minimum(bulk, CERTAIN) * SQRT_HALF)
    hazard = np.where(bulk > CERTAIN, 0.0, 1.0 / (SQRT_HALF_PI * reach))
    excess = bulk + hazard
    shrink = 1.0 - hazard * excess
    far = z < TAIL
    if far.any():
        a = -z[far]
        c1, c2 = _fractions(a)
        hazard[far], excess[far], shrink[far] = a + c1, c1, (c2 - c1) / (a + c2)
    return Truncation(hazard, excess, shrink)


def truncation_at(z: float) -> tuple[float, float, float]:
    """`truncation` of one number, without the cost of an array: sequential EP calls it once a site."""
    if z < TAIL:
        tail = 0.0
        for level in range(LEVELS, 1, -1):
            tail = level / (tail - z)
        first = 1.0 / (tail - z)
        return first - z, first, (tail - first) / (tail - z)
    hazard = 0.0 if z > CERTAIN else 1.0 / (SQRT_HALF_PI * float(erfcx(-z * SQRT_HALF)))
    return hazard, z + hazard, 1.0 - hazard * (z + hazard)


def log_improvement(z: Array) -> tuple[Array, Array]:
    """log(z Phi(z) + phi(z)) and its derivative Phi(z) / (z Phi(z) + phi(z))."""
    z = np.asarray(z, dtype=float)
    hazard, excess, _ = truncation(z)
    far = z < TAIL
    # z Phi + phi = Phi (z + h); in the tail Phi = phi/h, which avoids the difference of two huge logarithms.
    log_cdf = np.where(far, log_normal_pdf(z) - np.log(np.where(far, hazard, 1.0)), log_ndtr(z))
    return log_cdf + np.log(excess), 1.0 / excess


def improvement(z: Array) -> Array:
    """E[max(z + x, 0)] for x ~ N(0, 1)."""
    return np.exp(log_improvement(z)[0])


def log_normal_pdf(z: Array) -> Array:
    with np.errstate(over="ignore"):
        return -0.5 * np.square(z) - LOG_SQRT_2PI


def normal_pdf(z: Array) -> Array:
    return np.exp(log_normal_pdf(z))


def log_neg_log1m_exp(log_p: Array) -> tuple[Array, Array]:
    """log(-log(1 - p)) for p = exp(log_p) in (0, 1), and its derivative with respect to log_p.

    It tends to log_p for p -> 0 and stays finite at p = 1, which is held 1e-300 below.
    """
    log_p = np.minimum(log_p, -1e-300)
    # 1 - p = -expm1(log_p) is exact near p = 1; log1p(-p) is exact near p = 0.
    p = np.exp(log_p)
    log_miss = np.where(log_p > -0.7, np.log(-np.expm1(log_p)), np.log1p(-np.minimum(p, 0.6)))
    small = p < 1e-9  # -log(1 - p) = p (1 + p/2 + ...): p/2 is below the stated accuracy, and p may underflow
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(small, log_p + 0.5 * p, np.log(-log_miss))
        slope = np.where(small, 1.0 + 0.5 * p, p / (np.exp(log_miss) * -log_miss))
    return value, slope
