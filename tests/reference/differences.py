"""Derivatives by central differences, extrapolated once (Richardson): an error of order step^4."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def derivative(function: Callable[[float], ArrayLike], at: float, step: float = 1e-3) -> Array:
    """d function / dx, whatever the shape of the function's value."""

    def central(h: float) -> Array:
        return (np.asarray(function(at + h), dtype=float) - np.asarray(function(at - h), dtype=float)) / (2.0 * h)

    return (4.0 * central(step / 2.0) - central(step)) / 3.0


def gradient(function: Callable[[Array], ArrayLike], at: ArrayLike, step: float = 1e-3) -> Array:
    """d function / dx_j with j as the last axis."""
    here = np.array(at, dtype=float)

    def along(j: int) -> Callable[[float], ArrayLike]:
        return lambda x: function(np.concatenate([here[:j], [x], here[j + 1 :]]))

    return np.stack([derivative(along(j), float(here[j]), step) for j in range(here.size)], axis=-1)
