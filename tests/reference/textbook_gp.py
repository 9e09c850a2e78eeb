"""The Gaussian process as the textbook writes it: loops over pairs, dense solves, no triangular factor."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def matern52(A: ArrayLike, B: ArrayLike, lengthscales: ArrayLike, amplitude: float = 1.0, bias: float = 0.0) -> Array:
    """Rasmussen and Williams, equation 4.17, pair by pair, plus a constant."""
    rows, columns, ell = (
        np.asarray(A, dtype=float),
        np.asarray(B, dtype=float),
        np.asarray(lengthscales, dtype=float),
    )
    K = np.empty((len(rows), len(columns)))
    for i, a in enumerate(rows):
        for j, b in enumerate(columns):
            r = math.dist(a / ell, b / ell)
            K[i, j] = amplitude * (1.0 + math.sqrt(5.0) * r + 5.0 * r**2 / 3.0) * math.exp(-math.sqrt(5.0) * r) + bias
    return K


def main_effects(
    A: ArrayLike,
    B: ArrayLike,
    lengthscales: ArrayLike,
    effects: float,
    ratio: float,
    count: int,
    portions: ArrayLike | None = None,
) -> Array:
    """For each column the Fourier series of a Matern-5/2 of lengthscale l, period 2, cut off after `count` terms and without
    the constant: weights in proportion to its spectral density (5/l^2 + omega^2)^-3 (Rasmussen and Williams, eq. 4.15)."""
    rows, columns = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    ell = ratio * np.asarray(lengthscales, dtype=float)
    parts = np.full(ell.size, 1.0 / ell.size) if portions is None else np.asarray(portions)
    K = np.zeros((len(rows), len(columns)))
    for j in range(ell.size):
        density = [(5.0 / ell[j] ** 2 + (math.pi * m) ** 2) ** -3.0 for m in range(-count, count + 1)]
        for m in range(-count, count + 1):
            share = effects * parts[j] * density[m + count] / math.fsum(density)
            if m != 0:
                K += [[share * math.cos(math.pi * m * (a[j] - b[j])) for b in columns] for a in rows]
    return K


def conditional(K_xx: Array, K_xq: Array, K_qq: Array, y: Array, noise: ArrayLike, mean: float = 0.0) -> tuple[Array, Array]:
    """Mean and covariance at the queries given y = f(X) + noise (equations 2.23 and 2.24)."""
    total = K_xx + np.diag(np.broadcast_to(np.asarray(noise, dtype=float), y.shape))
    gain = np.linalg.solve(total, K_xq).T
    return mean + gain @ (y - mean), K_qq - gain @ K_xq
