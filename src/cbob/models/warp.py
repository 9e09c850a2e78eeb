"""The monotone warp of readings: only the sign at the limit is sacred, so decades are folded into a logarithm.

    w(g) = sign(g) log(1 + |g|/c) / s

keeps the limit at 0. The knee c separates what is treated as linear (|g| << c) from what is treated as logarithmic; c is learned
with the hyperparameters, its Jacobian included, and a large c is no warp at all. s is the standard deviation of the warped
readings, so that a surrogate always sees readings of unit spread, and `offset` is their mean: a reading that varies by 1 around
1e4 has the offset 1e4, which the surrogate's prior has to allow for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Readings that vary by less than this share of their own size are scaled by their size: the prior variance of the constant is
# the square of offset/spread, and beyond 1e6 times the rest it would drown the rest in rounding.
LEAST_SPREAD = 1e-3


def typical_size(margins: Array) -> float:
    """The median size of the readings that are not 0: the unit in which the knee is searched."""
    size = np.abs(margins[margins != 0.0])
    return float(np.median(size)) if size.size else 1.0


@dataclass(frozen=True)
class Warp:
    """w(g) = sign(g) log1p(|g| / (knee * unit)) / spread, with knee = exp(log_knee); `unit` brings g near 1 first."""

    unit: float
    log_knee: float
    spread: float

    def __call__(self, margins: Array) -> Array:
        return _fold(np.asarray(margins, dtype=float) / self.unit, np.exp(self.log_knee)) / self.spread

    def inverse(self, latent: Array) -> Array:
        """The reading whose warp this is, held inside the floating-point range."""
        folded = np.clip(np.asarray(latent, dtype=float) * self.spread, -700.0, 700.0)
        with np.errstate(over="ignore"):
            unfolded = np.sign(folded) * np.expm1(np.abs(folded)) * np.exp(self.log_knee) * self.unit
        return np.nan_to_num(unfolded, posinf=np.finfo(float).max, neginf=-np.finfo(float).max)


@dataclass(frozen=True)
class Warped:
    """Warped readings y, log |dy/dg| summed over them, and the derivatives of both (and of mean y) in log c."""

    warp: Warp
    y: Array
    y_slope: Array
    offset: float
    offset_slope: float
    log_jacobian: float
    log_jacobian_slope: float


def fold(margins: Array, unit: float, log_knee: float) -> Warped:
    """Warp the readings for one knee. `unit` is only a change of units and has no place in the Jacobian."""
    g = margins / unit
    c = float(np.exp(log_knee))
    w = _fold(g, c)
    w_slope = -g / (c + np.abs(g))
    size = float(np.sqrt(np.mean(w**2))) if w.size else 0.0
    spread = float(np.std(w)) if w.size else 0.0
    if size == 0.0:
        spread, spread_slope = 1.0, 0.0
    elif spread <= LEAST_SPREAD * size:
        spread, spread_slope = LEAST_SPREAD * size, LEAST_SPREAD * float(np.mean(w * w_slope)) / size
    else:
        spread_slope = float(np.mean((w - w.mean()) * w_slope)) / spread
    y = w / spread
    y_slope = w_slope / spread - y * (spread_slope / spread)
    log_jacobian = float(-np.log(c + np.abs(g)).sum() - g.size * np.log(spread))
    log_jacobian_slope = float(-(c / (c + np.abs(g))).sum() - g.size * spread_slope / spread)
    offset, offset_slope = (float(y.mean()), float(y_slope.mean())) if y.size else (0.0, 0.0)
    return Warped(Warp(unit, log_knee, spread), y, y_slope, offset, offset_slope, log_jacobian, log_jacobian_slope)


def _fold(g: Array, c: float) -> Array:
    return np.sign(g) * np.log1p(np.abs(g) / c)
