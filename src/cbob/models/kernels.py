"""The covariance function: Matern-5/2 with a lengthscale per column, main effects, and a constant.

Shapes: A (a, w), B (b, w) rows in the unit cube of w columns; lengthscales l (w,); M waves a column.

    r^2 = sum_j (A_j - B_j)^2 / l_j^2,   s = sqrt(5) r
    k(A, B) = amplitude (1 + s + s^2/3) exp(-s)                                           [paper, section 2.1 and D.1]
            + sum_j sum_m S_jm cos(pi m (A_j - B_j)) + bias

The main effects, a sum of one function for each column, are what N readings can teach of many columns: a Matern process of ten
columns must see every corner of the cube, a sum of ten functions only their ten axes. Each is the Matern-5/2 of one column, of
lengthscale ratio * l_j and variance effects * p_j (`portions`: 1/d for each of d parameters), as the first M terms of its
Fourier series of period 2:

    S_jm = effects p_j 2 q_jm^3 / (1 + 2 sum_m q_jm^3),   q_jm = 1 / (1 + (pi m ratio l_j)^2 / 5)

so cos and sin of the columns (`waves`) are computed once for a data set, and all that depends on hyperparameters is a product
of matrices. The term m = 0, a constant, is left to the bias: a column of long lengthscale has no effect.

`bias` is the prior variance of the constant mean: integrating the constant out this way leaves a zero-mean process, so one
code path serves values and truncated sites alike, and the predictive variance knows that the mean was estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Waves for each column: enough for a ripple of an eighth of a side in a few columns, fewer where there are many columns.
MOST_WAVES, FEWEST_WAVES, WAVES_IN_ALL = 16, 3, 80


def waves(X: Array) -> Array:
    """cos and sin of pi m X_j, (n, 2 w M), all cosines first; nothing for a lone column, whose effect is all there is."""
    width = X.shape[1]
    if width < 2:
        return np.empty((len(X), 0))
    turns = np.exp(1j * np.pi * X)
    powers = [turns]
    for _ in range(1, _wave_count(width)):
        powers.append(powers[-1] * turns)
    together = np.stack(powers, axis=2).reshape(len(X), width * len(powers))
    return np.hstack([together.real, together.imag])


def wave_slopes(known: Array, width: int) -> Array:
    """The derivative of each wave in the one column that it is a wave of, (n, F)."""
    count = _wave_count(width)
    rates = np.tile(np.pi * np.arange(1, count + 1), width)
    cosines, sines = known[:, : rates.size], known[:, rates.size :]
    return np.hstack([-rates * sines, rates * cosines])


def by_column(features: Array, width: int) -> Array:
    """Features (n, F) summed over those of each column, (n, w)."""
    return np.asarray(features.reshape(len(features), 2, width, _wave_count(width)).sum(axis=(1, 3)))


def equal_portions(groups: NDArray[np.intp]) -> Array:
    """An equal portion for each parameter, given the parameter of each column. Two choices of a one-hot parameter differ in two
    of its columns, however many it has."""
    columns = np.bincount(groups)[groups]
    return np.asarray(1.0 / (np.unique(groups).size * np.minimum(columns, 2)))


def _wave_count(width: int) -> int:
    return min(max(WAVES_IN_ALL // width, FEWEST_WAVES), MOST_WAVES) if width > 1 else 0


def squared_distance(A: Array, B: Array) -> Array:
    """|a - b|^2 for every pair. The expanded square may dip below 0 by rounding, hence the clip."""
    gap = A @ B.T
    gap *= -2.0
    gap += np.einsum("ij,ij->i", A, A)[:, None]
    gap += np.einsum("ij,ij->i", B, B)
    return np.maximum(gap, 0.0, out=gap)


class Seen(NamedTuple):
    """Rows as a kernel sees them: divided by the lengthscales, and their waves."""

    scaled: Array
    waves: Array


@dataclass(frozen=True)
class Kernel:
    lengthscales: Array
    amplitude: float
    effects: float
    ratio: float
    bias: float
    portions: Array  # (w,)

    def __call__(self, A: Array, B: Array) -> Array:
        return self.value(self.see(A), self.see(B))

    def see(self, X: Array, known: Array | None = None) -> Seen:
        """`known`: the rows' waves, which no hyperparameter changes."""
        return Seen(X / self.lengthscales, waves(X) if known is None else known)

    @cached_property
    def shares(self) -> Array:
        """S (w, M)."""
        decays = self._decays**3
        scale = 2.0 * self.effects * self.portions[:, None]
        return np.asarray(scale * decays / (1.0 + 2.0 * decays.sum(axis=1, keepdims=True)))

    @cached_property
    def share_slopes(self) -> Array:
        """d log S_jm / d log l_j, (w, M); in the logarithm of the ratio it is the same."""
        decays = self._decays**3
        lost = -6.0 * (1.0 - self._decays)
        mean = 2.0 * (decays * lost).sum(axis=1, keepdims=True) / (1.0 + 2.0 * decays.sum(axis=1, keepdims=True))
        return np.asarray(lost - mean)

    @cached_property
    def _decays(self) -> Array:
        """q (w, M)."""
        turns = np.pi * self.ratio * self.lengthscales[:, None] * np.arange(1, _wave_count(self.lengthscales.size) + 1)
        return np.asarray(1.0 / (1.0 + turns**2 / 5.0))

    @cached_property
    def weights(self) -> Array:
        """S of each feature, (F,)."""
        return np.concatenate([self.shares.ravel()] * 2)

    def main_effects(self, a: Seen, b: Seen) -> Array:
        if a.waves is b.waves:
            half = a.waves * np.sqrt(self.weights)
            return np.asarray(half @ half.T)  # a product with itself costs half
        if len(a.waves) < len(b.waves):
            return np.asarray((a.waves * self.weights) @ b.waves.T)
        return np.asarray(a.waves @ (b.waves * self.weights).T)

    def value(self, a: Seen, b: Seen) -> Array:
        """k of every pair."""
        s = squared_distance(a.scaled, b.scaled)
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
        value += self.main_effects(a, b)
        return value

    def value_and_slope(self, a: Seen, b: Seen) -> tuple[Array, Array]:
        """k of every pair, and the factor f of the gradient of its Matern part:

        dk/dA_j = -f (A_j - B_j) / l_j^2 and dk/dlog l_j = f (A_j - B_j)^2 / l_j^2.
        """
        s = squared_distance(a.scaled, b.scaled)
        s *= 5.0
        value = s / 3.0
        np.sqrt(s, out=s)
        decay = np.exp(-s)
        decay *= self.amplitude
        s += 1.0
        value += s
        value *= decay
        value += self.bias
        value += self.main_effects(a, b)
        s *= decay
        s *= 5.0 / 3.0
        return value, s

    @property
    def variance(self) -> float:
        """k(x, x), the same everywhere."""
        return self.amplitude + float(self.shares.sum()) + self.bias
