"""The covariance function: Matern-5/2 with a lengthscale per column, plus a constant.

Shapes: A (a, w), B (b, w) rows in the unit cube of w columns; lengthscales (w,).

    r^2 = sum_j (A_j - B_j)^2 / l_j^2,   s = sqrt(5) r
    k(A, B) = amplitude (1 + s + s^2/3) exp(-s) + bias                                    [paper, section 2.1 and D.1]

`bias` is the prior variance of the constant mean: integrating the constant out this way leaves a zero-mean process, so one
code path serves values and truncated sites alike, and the predictive variance knows that the mean was estimated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SQRT5 = np.sqrt(5.0)


def squared_distance(A: Array, B: Array) -> Array:
    """|a - b|^2 for every pair. The expanded square may dip below 0 by rounding, hence the clip."""
    gap = A @ B.T
    gap *= -2.0
    gap += np.einsum("ij,ij->i", A, A)[:, None]
    gap += np.einsum("ij,ij->i", B, B)
    return np.maximum(gap, 0.0, out=gap)


@dataclass(frozen=True)
class Matern52:
    lengthscales: Array
    amplitude: float
    bias: float

    def __call__(self, A: Array, B: Array) -> Array:
        return self.value_at_scaled(A / self.lengthscales, B / self.lengthscales)

    def with_slope(self, A: Array, B: Array) -> tuple[Array, Array]:
        """k(A, B), and the factor f of its gradient:

        dk/dA_j = -f (A_j - B_j) / l_j^2 and dk/dlog l_j = f (A_j - B_j)^2 / l_j^2.
        """
        return self.at_scaled(A / self.lengthscales, B / self.lengthscales)

    def at_scaled(self, A: Array, B: Array) -> tuple[Array, Array]:
        """`with_slope` of rows that are divided by the lengthscales already."""
        s = squared_distance(A, B)
        s *= 5.0
        value = s / 3.0
        np.sqrt(s, out=s)
        decay = np.exp(-s)
        decay *= self.amplitude
        s += 1.0
        value += s
        value *= decay
        value += self.bias
        s *= decay
        s *= 5.0 / 3.0
        return value, s

    def value_at_scaled(self, A: Array, B: Array) -> Array:
        """k alone, of rows that are divided by the lengthscales already: half the cost of both."""
        s = squared_distance(A, B)
        s *= 5.0
        value = s / 3.0
        np.sqrt(s, out=s)
        value += s
        value += 1.0
        np.negative(s, out=s)
        np.exp(s, out=s)
        s *= self.amplitude
        value *= s
        value += self.bias
        return value

    @property
    def variance(self) -> float:
        """k(x, x), the same everywhere."""
        return self.amplitude + self.bias
