"""The warps as formulas in the units of the readings: w, and dw/dg, before any scaling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cbob.models.warp import Shape, typical_size

Array = NDArray[np.float64]


def knee_of(log_knee: float, margins: Array, shape: Shape) -> float:
    """k of a symmetric warp and c of a one-sided one."""
    knee = float(np.exp(log_knee)) * typical_size(margins)
    return knee if shape is Shape.SYMMETRIC else knee + 1.02 * max(0.0, float(np.max(-shape * margins)))


def formula(margins: Array, shape: Shape, knee: float) -> Array:
    if shape is Shape.SYMMETRIC:
        return np.sign(margins) * np.log(1.0 + np.abs(margins) / knee)
    return shape * np.log(1.0 + shape * margins / knee)


def slope(margins: Array, shape: Shape, knee: float) -> Array:
    return 1.0 / (knee + (np.abs(margins) if shape is Shape.SYMMETRIC else shape * margins))
