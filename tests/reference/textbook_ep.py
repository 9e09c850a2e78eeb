"""Expectation propagation as the textbook writes it, in mpmath, with dense formulas and no short cut.

Rasmussen and Williams, Gaussian Processes for Machine Learning: algorithm 3.5 (sites one after another, with
rank-one updates, and the posterior afresh after each sweep) and equation 3.65 (the evidence), with a prior
mean and with Gaussian sites as well.
"""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

import mpmath
import numpy as np
from numpy.typing import ArrayLike, NDArray
from reference import normals

Array = NDArray[np.float64]
Digits = NDArray[np.object_]


class TextbookEP(NamedTuple):
    log_evidence: float
    mean: Array
    cov: Array
    site_mean: Array
    site_var: Array
    sweeps: int


def textbook_ep(
    m: ArrayLike,
    K: ArrayLike,
    signs: ArrayLike,
    *,
    scale: float = 0.0,
    values: ArrayLike = (),
    noise: ArrayLike = (),
    tolerance: float = 1e-10,
    max_sweeps: int = 2000,
    digits: int = 30,
) -> TextbookEP:
    """The first len(values) entries of g are read with noise of variance `noise`, the rest by their signs."""
    with mpmath.workdps(digits):
        mean, prior = _exact(m), _exact(K)
        y, D, s = _exact(values), _exact(noise), _exact(signs)
        n, n_v = mean.size, y.size
        assert prior.shape == (n, n) and s.size == n - n_v and D.size == n_v
        tau, nu = _exact(np.zeros(n)), _exact(np.zeros(n))
        cov, mu = prior.copy(), mean.copy()
        width = mpmath.mpf(float(scale))
        for sweeps in count(1):
            before = mu.copy(), np.diagonal(cov).copy()
            for i in range(n):
                cavity_var = 1 / (1 / cov[i, i] - tau[i])
                cavity_mean = cavity_var * (mu[i] / cov[i, i] - nu[i])
                if i < n_v:
                    new_tau, new_nu = 1 / D[i], y[i] / D[i]
                else:
                    _, hat_mean, hat_var = tilted(cavity_mean, cavity_var, s[i - n_v], width)
                    new_tau = 1 / hat_var - 1 / cavity_var
                    new_nu = hat_mean / hat_var - cavity_mean / cavity_var
                change = new_tau - tau[i]
                tau[i], nu[i] = new_tau, new_nu
                column = cov[:, i].copy()
                cov = cov - np.outer(column, column) * (change / (1 + change * column[i]))
                mu = mean + cov @ (nu - tau * mean)
            # Sigma = K - K (K + S)^-1 K, mu = m + K (K + S)^-1 (site means - m)
            S = np.array([1 / t for t in tau], dtype=object)
            gain = _solve(prior + np.diag(S), np.column_stack([prior, nu * S - mean]))
            cov, mu = prior - prior @ gain[:, :n], mean + prior @ gain[:, n]
            now = np.diagonal(cov)
            moved = max(abs(mu - before[0]) / np.array([mpmath.sqrt(v) for v in now]))
            if max(moved, max(abs(now / before[1] - 1))) < tolerance:
                break
            assert sweeps < max_sweeps
        return TextbookEP(
            float(_evidence(mean, prior, tau, nu, cov, mu, y, D, s, width)),
            *(np.array(part, dtype=float) for part in (mu, cov, nu * S, S)),
            sweeps,
        )


def tilted(mean: Any, variance: Any, sign: Any, scale: Any) -> tuple[Any, Any, Any]:
    """log normaliser, mean and variance of the cavity times Phi(sign g / scale) (GPML, equation 3.58)."""
    total = variance + scale**2
    z = sign * mean / mpmath.sqrt(total)
    h = normals.hazard(z)
    return (
        mpmath.log(normals.cdf(z)),
        mean + sign * variance * h / mpmath.sqrt(total),
        variance - variance**2 * h * (z + h) / total,
    )


def _evidence(
    m: Digits, K: Digits, tau: Digits, nu: Digits, cov: Digits, mu: Digits,
    y: Digits, D: Digits, s: Digits, scale: Any,
) -> Any:  # fmt: skip
    """Equation 3.65: log N(site means | m, K + S) plus what each site has to be scaled by."""
    n, n_v = m.size, y.size
    S = np.array([1 / t for t in tau], dtype=object)
    away = nu * S - m
    total = K + np.diag(S)
    log_det = sum(mpmath.log(pivot) for pivot in _pivots(total))
    value = -(log_det + away @ _solve(total, away[:, None])[:, 0] + n * mpmath.log(2 * mpmath.pi)) / 2
    for i in range(n):
        variance = 1 / (1 / cov[i, i] - tau[i])
        mean = variance * (mu[i] / cov[i, i] - nu[i])
        if i < n_v:
            log_normaliser = _log_density(y[i] - mean, variance + D[i])
        else:
            log_normaliser = tilted(mean, variance, s[i - n_v], scale)[0]
        value += log_normaliser - _log_density(nu[i] * S[i] - mean, variance + S[i])
    return value


def _log_density(away: Any, variance: Any) -> Any:
    return -(away**2 / variance + mpmath.log(2 * mpmath.pi * variance)) / 2


def _exact(given: ArrayLike) -> Digits:
    array = np.asarray(given, dtype=float)
    exact = np.empty(array.shape, dtype=object)
    for at in np.ndindex(array.shape):
        exact[at] = mpmath.mpf(float(array[at]))
    return exact


def _eliminated(A: Digits, right: Digits) -> tuple[Digits, Digits]:
    """Gaussian elimination to an upper triangle; no pivoting is needed where A is positive definite."""
    A, right = A.copy(), right.copy()
    for i in range(len(A)):
        for j in range(i + 1, len(A)):
            factor = A[j, i] / A[i, i]
            A[j, i:] = A[j, i:] - factor * A[i, i:]
            right[j] = right[j] - factor * right[i]
    return A, right


def _pivots(A: Digits) -> Digits:
    return np.diagonal(_eliminated(A, np.zeros((len(A), 0), dtype=object))[0])


def _solve(A: Digits, right: Digits) -> Digits:
    upper, solution = _eliminated(A, right)
    for i in reversed(range(len(A))):
        solution[i] = (solution[i] - upper[i, i + 1 :] @ solution[i + 1 :]) / upper[i, i]
    return solution
