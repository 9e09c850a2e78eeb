"""Surrogates to try acquisitions on: an objective and two limits over a cube of three columns."""

import numpy as np
from numpy.typing import NDArray

from cbob.models.gp import Posterior
from cbob.models.kernels import Kernel, equal_portions

Array = NDArray[np.float64]
WIDTH = 3


def posterior(seed: int, *, shift: float = 0.0, readings: int = 7) -> Posterior:
    rng = np.random.default_rng(seed)
    kernel = Kernel(
        rng.uniform(0.4, 0.9, WIDTH),
        rng.uniform(0.5, 2.0),
        effects=0.8,
        ratio=0.4,
        bias=0.3,
        portions=equal_portions(np.arange(WIDTH)),
    )
    X, y = rng.random((readings, WIDTH)), rng.standard_normal(readings) + shift
    return Posterior(kernel, X, y, np.full(readings, 1e-6))


OBJECTIVE = posterior(1)
LIMITS = (posterior(2, shift=-0.3), posterior(3, shift=0.3))
SURROGATES = (OBJECTIVE, *LIMITS)


def cube(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((count, WIDTH))
