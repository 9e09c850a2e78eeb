"""The Gaussian posterior: what a Gaussian process knows after N noisy readings.

Symbols: X (N, w) rows, y (N,) readings with noise variances D (N,), K = k(X, X), L L' = K + diag(D), alpha = (K + D)^-1 y.
At query rows Q (q, w), with k* = k(X, Q):

    mean = k*' alpha,   variance = k(q, q) - k*' (K + D)^-1 k*                            [paper, eq. 2 and eq. 9]

HLGP's truncated readings enter as virtual readings with a noise of their own, so this class serves every surrogate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbob.linalg import cholesky, times_lower, triangular_inverse
from cbob.models.kernels import Matern52

Array = NDArray[np.float64]

# A variance below this share of the prior's is rounding, not knowledge.
VARIANCE_FLOOR = 1e-14

# Many rows are predicted so many at a time: the matrices in between then stay in the processor's cache.
BLOCK = 128


class Marginals(NamedTuple):
    """Mean and standard deviation at q rows, with their gradients (q, w)."""

    mean: Array
    std: Array
    mean_gradient: Array
    std_gradient: Array


@dataclass(frozen=True)
class Posterior:
    kernel: Matern52
    X: Array
    y: Array
    noise: Array

    @cached_property
    def lower(self) -> Array:
        K = self.kernel(self.X, self.X)
        K[np.diag_indices_from(K)] += self.noise
        return cholesky(K)

    @cached_property
    def inverse_lower(self) -> Array:
        return triangular_inverse(self.lower)

    @cached_property
    def alpha(self) -> Array:
        return self.inverse_lower.T @ (self.inverse_lower @ self.y)

    @cached_property
    def _scaled(self) -> Array:
        return self.X / self.kernel.lengthscales

    def predict(self, Q: Array) -> tuple[Array, Array]:
        """Mean and standard deviation at each row of Q."""
        scaled = Q / self.kernel.lengthscales
        mean, explained = np.empty(len(Q)), np.empty(len(Q))
        for start in range(0, len(Q), BLOCK):
            part = slice(start, start + BLOCK)
            k = self.kernel.value_at_scaled(scaled[part], self._scaled)
            mean[part] = k @ self.alpha
            half = times_lower(self.inverse_lower, k.T)
            explained[part] = np.einsum("nq,nq->q", half, half)
        return mean, np.sqrt(self._floored(explained))

    def predict_with_gradient(self, Q: Array) -> Marginals:
        scaled = Q / self.kernel.lengthscales
        k, slope = self.kernel.at_scaled(self._scaled, scaled)
        half = self.inverse_lower @ k
        std = np.sqrt(self._floored(np.einsum("nq,nq->q", half, half)))
        # d(sum_n c_n k(x_n, q))/dq_j = -sum_n c_n slope_n (q_j - x_nj) / l_j^2, for any weights c: those of the mean are
        # alpha, those of the variance twice (K + D)^-1 k*. Both at once:
        weights = np.hstack([self.alpha[:, None] * slope, (self.inverse_lower.T @ half) * slope])
        pulled = weights.T @ self._scaled - np.vstack([scaled, scaled]) * weights.sum(axis=0)[:, None]
        pulled /= self.kernel.lengthscales
        return Marginals(self.alpha @ k, std, pulled[: len(Q)], -pulled[len(Q) :] / std[:, None])

    def _floored(self, explained: Array) -> Array:
        return np.maximum(self.kernel.variance - explained, VARIANCE_FLOOR * self.kernel.variance)

    def joint(self, Q: Array) -> tuple[Array, Array]:
        """Mean (q,) and covariance (q, q) of the latent function at Q."""
        k = self.kernel(self.X, Q)
        half = self.inverse_lower @ k
        return self.alpha @ k, self.kernel(Q, Q) - half.T @ half

    def sample(self, Q: Array, count: int, rng: np.random.Generator) -> Array:
        """`count` joint draws at Q, (count, q)."""
        mean, covariance = self.joint(Q)
        covariance[np.diag_indices_from(covariance)] += 1e-9 * self.kernel.variance
        return mean + rng.standard_normal((count, Q.shape[0])) @ cholesky(covariance).T

    def believing(self, pending: Array) -> Posterior:
        """The posterior once the rows `pending` have returned exactly the mean predicted for them.

        The mean stays what it was everywhere and the deviation vanishes at those rows: what a trial still out will teach
        about *where to look*, without inventing what it will say (the "kriging believer").
        """
        if not pending.shape[0]:
            return self
        mean, _ = self.predict(pending)
        tiny = np.full(pending.shape[0], 1e-8 * self.kernel.variance)
        return Posterior(self.kernel, np.vstack([self.X, pending]), np.append(self.y, mean), np.append(self.noise, tiny))
