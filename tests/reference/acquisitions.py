"""Acquisitions and surrogates as their definitions read: integrals over a normal density, and dense algebra.

All values are plain numbers, not logarithms. A surrogate's marginal is N(mean, std^2); a limit holds
where g <= 0.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from reference import textbook_gp
from scipy.integrate import quad

from cbob.models.gp import Posterior

Array = NDArray[np.float64]


def expectation(function: Callable[[float], float], mean: float, std: float, kinks: Iterable[float] = ()) -> float:
    """E[function(g)], integrated piece by piece between the kinks of the function."""
    low, high = mean - 30.0 * std, mean + 30.0 * std
    ends = [low, *sorted(kink for kink in (*kinks, mean) if low < kink < high), high]

    def weighted(g: float) -> float:
        z = (g - mean) / std
        return function(g) * math.exp(-0.5 * z * z) / (std * math.sqrt(2.0 * math.pi))

    pieces = (quad(weighted, a, b, epsabs=0.0, epsrel=1e-11, limit=200)[0] for a, b in pairwise(ends))
    return float(sum(pieces))


def expected_improvement(mean: float, std: float, best: float) -> float:
    """Paper, eq. 3: E[max(best - y, 0)]."""
    return expectation(lambda y: max(best - y, 0.0), mean, std, [best])


def probability_below(mean: float, std: float, bound: float = 0.0) -> float:
    """P(y <= bound): the probability of feasibility (paper, eq. 5), and that of improvement."""
    return expectation(lambda y: float(y <= bound), mean, std, [bound])


def pob(mean: float, std: float, beta: float = 1.96) -> float:
    """Paper, eq. 10: the expectation of 1 where |g| <= beta std."""
    wide = beta * std
    return expectation(lambda g: float(abs(g) <= wide), mean, std, [-wide, wide])


def emub(mean: float, std: float, beta: float = 1.96) -> float:
    """Paper, eq. B.2: the expectation of max(beta std - |g|, 0)."""
    wide = beta * std
    return expectation(lambda g: max(wide - abs(g), 0.0), mean, std, [-wide, 0.0, wide])


def dpof(rho: float, mean: float, std: float) -> float:
    """Paper, eq. dpof: (1 + rho) POF, held in [0, 1]."""
    return min(max((1.0 + rho) * probability_below(mean, std), 0.0), 1.0)


def min_value_entropy(minima: Iterable[float], means: Sequence[float], stds: Sequence[float]) -> float:
    """The mean over the minima of -log(1 - p), p the probability to be feasible and below the minimum."""
    held = math.prod(probability_below(*marginal) for marginal in zip(means[1:], stds[1:], strict=True))
    below = [probability_below(means[0], stds[0], low) if low < math.inf else 1.0 for low in minima]
    return float(np.mean([-math.log1p(-held * chance) for chance in below]))


def textbook_joint(posterior: Posterior, Q: Array) -> tuple[Array, Array]:
    """Paper, eq. 2: mean (q,) and covariance (q, q)."""
    kernel = posterior.kernel

    def matern(A: Array, B: Array) -> Array:
        effects = textbook_gp.main_effects(A, B, kernel.lengthscales, kernel.effects, kernel.ratio, kernel.shares.shape[1])
        return textbook_gp.matern52(A, B, kernel.lengthscales, kernel.amplitude, kernel.bias) + effects

    X = posterior.X
    return textbook_gp.conditional(matern(X, X), matern(X, Q), matern(Q, Q), posterior.y, posterior.noise)


def textbook_marginals(posterior: Posterior, Q: Array) -> tuple[Array, Array]:
    """Means (q,) and standard deviations (q,)."""
    mean, covariance = textbook_joint(posterior, Q)
    return mean, np.sqrt(np.diagonal(covariance))
