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
from cbob.models.kernels import Kernel, Seen, by_column, wave_slopes

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
    kernel: Kernel
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
    def _seen(self) -> Seen:
        return self.kernel.see(self.X)

    @cached_property
    def _mean_waves(self) -> Array:
        """What the main effects of the mean are made of, (F,)."""
        return self.kernel.weights * (self._seen.waves.T @ self.alpha)

    def predict(self, Q: Array, known: Array | None = None) -> tuple[Array, Array]:
        """Mean and standard deviation at each row of Q. `known`: its waves, which serve every posterior."""
        seen = self.kernel.see(Q, known)
        mean, explained = np.empty(len(Q)), np.empty(len(Q))
        for start in range(0, len(Q), BLOCK):
            part = slice(start, start + BLOCK)
            k = self.kernel.value(Seen(seen.scaled[part], seen.waves[part]), self._seen)
            mean[part] = k @ self.alpha
            half = times_lower(self.inverse_lower, k.T)
            explained[part] = np.einsum("nq,nq->q", half, half)
        return mean, np.sqrt(self._floored(explained))

    def predict_with_gradient(self, Q: Array, known: tuple[Array, Array] | None = None) -> Marginals:
        """`known`: the waves of Q and their slopes."""
        q, width = Q.shape
        seen = self.kernel.see(Q, None if known is None else known[0])
        turned = wave_slopes(seen.waves, width) if known is None else known[1]
        k, slope = self.kernel.value_and_slope(self._seen, seen)
        half = self.inverse_lower @ k
        std = np.sqrt(self._floored(np.einsum("nq,nq->q", half, half)))
        solved = self.inverse_lower.T @ half
        # d(sum_n c_n k(x_n, q))/dq_j, for any weights c: those of the mean are alpha, those of the variance twice
        # (K + D)^-1 k*. Both at once; of the Matern part it is -sum_n c_n slope_n (q_j - x_nj) / l_j^2,
        weights = np.hstack([self.alpha[:, None] * slope, solved * slope])
        pulled = weights.T @ self._seen.scaled - np.vstack([seen.scaled] * 2) * weights.sum(axis=0)[:, None]
        pulled /= self.kernel.lengthscales
        if turned.size:  # and of the main effects it is the slope of q's waves times those of the data
            of_variance = (solved.T @ self._seen.waves) * self.kernel.weights
            pulled += by_column(np.vstack([turned * self._mean_waves, turned * of_variance]), width)
        return Marginals(self.alpha @ k, std, pulled[:q], -pulled[q:] / std[:, None])

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
