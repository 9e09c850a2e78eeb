"""Gaussian vectors known only by their signs: P(s_i u_i > 0 for all i) and the moments of g given that.

Symbols: g ~ N(m, K), u_i = g_i + e_i with e_i ~ N(0, scale^2) (a probit; scale = 0 is a step), signs s.

    equicorrelated   K = v ((1 - rho) I + rho 1 1'): given the common factor t the entries are independent,
                     so every quantity is an integral over t alone. Exact, for any n.
    quadrature       one latent value, by scipy.integrate
    orthant_of_two, orthant_of_three   the arcsine formulas, zero mean
    importance       any K: the sequential sampler of Geweke, Hajivassiliou and Keane, on Sobol points
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import integrate, stats
from scipy.special import log_ndtr, ndtri_exp

Array = NDArray[np.float64]


class Truth(NamedTuple):
    log_evidence: float
    mean: Array
    cov: Array


def one_sided(mean: Array, variance: Array, signs: Array, scale: float) -> tuple[Array, Array, Array]:
    """log P, mean and variance of independent N(mean, variance), each given its own sign."""
    total = variance + scale**2
    z = signs * mean / np.sqrt(total)
    log_p = log_ndtr(z)
    hazard = np.exp(-0.5 * z**2 - 0.5 * math.log(2.0 * math.pi) - log_p)
    gain = variance / np.sqrt(total)
    return log_p, mean + signs * gain * hazard, variance - gain**2 * hazard * (z + hazard)


def equicorrelated(m: ArrayLike, rho: float, signs: ArrayLike, *, variance: float = 1.0, scale: float = 0.0) -> Truth:
    """Gauss-Legendre over the common factor t, between the points where the integrand has died away."""
    mean, s = np.asarray(m, dtype=float), np.asarray(signs, dtype=float)
    shared, own = math.sqrt(variance * rho), np.full(mean.size, variance * (1.0 - rho))

    def parts(t: Array) -> tuple[Array, Array, Array]:
        log_p, means, variances = one_sided(mean + shared * t[:, None], own, s, scale)
        return log_p.sum(axis=1) - 0.5 * t**2, means, variances

    # Log-concave in t, hence with one peak: zoom in on where it is above exp(-40) of that.
    low, high = -50.0, 50.0
    for _ in range(3):
        grid = np.linspace(low, high, 501)
        height = parts(grid)[0]
        alive = np.flatnonzero(height > height.max() - 40.0)
        low, high = grid[max(alive[0] - 1, 0)], grid[min(alive[-1] + 1, 500)]
    x, w = np.polynomial.legendre.leggauss(200)
    log_terms, means, variances = parts(0.5 * (high - low) * x + 0.5 * (high + low))
    log_terms += np.log(0.5 * (high - low) * w / math.sqrt(2.0 * math.pi))
    mass = np.exp(log_terms - log_terms.max())
    total = float(mass.sum())
    mass /= total
    centre = mass @ means
    away = means - centre
    cov = (mass[:, None] * away).T @ away + np.diag(mass @ variances)
    return Truth(math.log(total) + float(log_terms.max()), centre, cov)


def quadrature(mean: float, variance: float, sign: float, scale: float) -> tuple[float, float, float]:
    """log evidence, mean and variance of one latent value, integrated numerically."""
    deviation = math.sqrt(variance)

    def density(g: float) -> float:
        seen = 0.5 * math.erfc(-sign * g / scale / math.sqrt(2.0)) if scale > 0.0 else float(sign * g > 0.0)
        return seen * math.exp(-0.5 * ((g - mean) / deviation) ** 2) / (deviation * math.sqrt(2.0 * math.pi))

    cuts = sorted({mean - 12 * deviation, mean + 12 * deviation, mean, 0.0, -6 * scale, 6 * scale})
    mass, first, second = (
        sum(
            integrate.quad(lambda g, k=k: g**k * density(g), low, high, epsabs=0.0, epsrel=1e-11, limit=200)[0]
            for low, high in pairwise(cuts)
        )
        for k in range(3)
    )
    return math.log(mass), first / mass, second / mass - (first / mass) ** 2


def orthant_of_two(rho: float) -> float:
    """P(g1 > 0, g2 > 0) at zero mean (Sheppard 1899)."""
    return 0.25 + math.asin(rho) / (2.0 * math.pi)


def orthant_of_three(r12: float, r13: float, r23: float) -> float:
    return 0.125 + (math.asin(r12) + math.asin(r13) + math.asin(r23)) / (4.0 * math.pi)


def importance(m: ArrayLike, K: ArrayLike, signs: ArrayLike, *, power: int = 14, seed: int = 0) -> Truth:
    """2**power weighted draws of g given its signs: each entry from its truncated conditional, in turn."""
    mean, s = np.asarray(m, dtype=float), np.asarray(signs, dtype=float)
    lower = np.linalg.cholesky(np.asarray(K, dtype=float))
    uniform = stats.qmc.Sobol(mean.size, seed=seed).random_base2(power)
    white = np.zeros_like(uniform)
    log_weight = np.zeros(uniform.shape[0])
    for i in range(mean.size):
        centre = mean[i] + white @ lower[i]
        # s (centre + L_ii x) > 0, with x = s y: y > -s centre / L_ii, drawn from its upper tail
        log_tail = log_ndtr(s[i] * centre / lower[i, i])
        log_weight += log_tail
        white[:, i] = -s[i] * ndtri_exp(log_tail + np.log1p(-uniform[:, i]))
    draws = mean + white @ lower.T
    weight = np.exp(log_weight - log_weight.max())
    total = float(weight.mean())
    weight /= weight.sum()
    centre = weight @ draws
    away = draws - centre
    return Truth(math.log(total) + float(log_weight.max()), centre, (weight[:, None] * away).T @ away)
