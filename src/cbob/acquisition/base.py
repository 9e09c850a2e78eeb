"""What an acquisition is: a function of the surrogates' marginals, in log space, with its gradient.

Shapes: k surrogates, q query rows, w columns. A surrogate's marginal at a row is N(mean, std^2), in latent units: the
objective is minimised, and a limit holds where its latent value is at most 0.

Values are logarithms. A product of small probabilities keeps its shape there, and so its gradient, long after the product
itself has rounded to 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cbob.models.gp import Posterior
from cbob.models.kernels import wave_slopes, waves

Array = NDArray[np.float64]


class Slopes(NamedTuple):
    """A value at each marginal, and its derivatives in mean and std; all of one shape."""

    value: Array
    in_mean: Array
    in_std: Array


class Factor(Protocol):
    """One factor of a product: the logarithm of something non-negative, read off the marginals of one surrogate."""

    def __call__(self, mean: Array, std: Array) -> Slopes: ...


class Acquisition(ABC):
    """The logarithm of how much a row is worth trying. Subclasses say how marginals combine; the chain rule lives here."""

    def __init__(self, surrogates: Sequence[Posterior]) -> None:
        self.surrogates = tuple(surrogates)

    @abstractmethod
    def combine(self, means: Array, stds: Array) -> Slopes:
        """The log value (q,) at marginals (k, q), with its derivatives (k, q) in each mean and std."""

    def __call__(self, Q: Array) -> Array:
        """The log value at each row of Q, (q,)."""
        seen = waves(Q)  # once for all surrogates
        marginals = [surrogate.predict(Q, seen) for surrogate in self.surrogates]
        means, stds = (np.array(part).reshape(len(marginals), Q.shape[0]) for part in zip(*marginals, strict=True))
        return self.combine(means, stds).value

    def with_gradient(self, Q: Array) -> tuple[Array, Array]:
        """The log value (q,) and its gradient (q, w)."""
        seen = waves(Q)
        known = seen, wave_slopes(seen, Q.shape[1])
        marginals = [surrogate.predict_with_gradient(Q, known) for surrogate in self.surrogates]
        means, stds = np.array([m.mean for m in marginals]), np.array([m.std for m in marginals])
        value, in_mean, in_std = self.combine(means, stds)
        gradient = np.zeros_like(Q)
        for marginal, by_mean, by_std in zip(marginals, in_mean, in_std, strict=True):
            gradient += by_mean[:, None] * marginal.mean_gradient + by_std[:, None] * marginal.std_gradient
        return value, gradient


class Product(Acquisition):
    """A product of factors, one for each surrogate: EIC, EICB, PI x DPOF and their kin."""

    def __init__(self, surrogates: Sequence[Posterior], factors: Sequence[Factor]) -> None:
        super().__init__(surrogates)
        if len(factors) != len(self.surrogates) or not factors:
            raise ValueError(f"expected a factor for each of {len(self.surrogates)} surrogates, got {len(factors)}")
        self.factors = tuple(factors)
        # Factors are elementwise, so one that serves many surrogates takes all of them at once.
        self._own = {id(factor): [i for i, other in enumerate(factors) if other is factor] for factor in factors}

    def combine(self, means: Array, stds: Array) -> Slopes:
        value, in_mean, in_std = np.zeros(means.shape[1]), np.empty_like(means), np.empty_like(stds)
        for own in self._own.values():
            part = self.factors[own[0]](means[own], stds[own])
            value += part.value.sum(axis=0)
            in_mean[own], in_std[own] = part.in_mean, part.in_std
        return Slopes(value, in_mean, in_std)
