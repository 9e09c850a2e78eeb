"""The monotone warp of readings: only the sign at the limit is sacred, so decades are folded into a logarithm.

Three shapes, all with w(0) = 0, folded by a knee k > 0 and scaled by s to unit spread:

    SYMMETRIC   w = sign(g) log(1 + |g|/k) / s     decades on both sides of the limit; a large knee is no warp at all
    UPPER       w =  log(1 + g/c) / s      c = k + END max(-g): a quantity that is a ratio to its limit, like a size
    LOWER       w = -log(1 - g/c) / s      c = k + END max(g): the same from the other side, like 1 - x y z

The shape is chosen and the knee learned with the hyperparameters, by the evidence, Jacobian included. s is the standard
deviation of the warped readings, so that a surrogate always sees readings of unit spread, and `offset` is their mean: a reading
that varies by 1 around 1e4 has the offset 1e4, which the surrogate's prior has to allow for.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Readings that vary by less than this share of their own size are scaled by their size: the prior variance of the constant is
# the square of offset/spread, and beyond 1e6 times the rest it would drown the rest in rounding.
LEAST_SPREAD = 1e-3
# Below this they are one reading over and over, or the only one, and tell nothing of how readings vary: then their size is
# the spread. Held to be constant, they would leave a failure beside them no room to be anything but a spike.
CONSTANT = 1e-12
LARGEST = float(np.finfo(float).max)
# A reading this many units away is held there: the ratio of two floats, or of that to the knee, can overflow.
FARTHEST = 1e290


# The fold of a one-sided warp ends this far beyond the last reading on that side. Were it to end right at it, the Jacobian
# of that one reading could grow without bound, and the evidence would always ask for it.
END = 1.02


class Shape(IntEnum):
    """Which sides of the limit the logarithm folds."""

    LOWER = -1
    SYMMETRIC = 0
    UPPER = 1


def typical_size(margins: Array) -> float:
    """The median size of the readings that are not 0: the unit in which the knee is searched."""
    size = np.sort(np.abs(margins[margins != 0.0]))
    if not size.size:
        return 1.0
    low, high = size[(size.size - 1) // 2], size[size.size // 2]
    return float(low + (high - low) / 2.0)  # their mean, whose sum would overflow near the largest float


@dataclass(frozen=True)
class Warp:
    """One warp. `unit` brings g near 1 first; `turn` is k for the symmetric shape and c for the others (see above)."""

    shape: Shape
    unit: float
    turn: float
    spread: float

    def __call__(self, margins: Array) -> Array:
        return _folded(_in_units(margins, self.unit), self.shape, self.turn).value / self.spread

    def inverse(self, latent: Array) -> Array:
        """The reading whose warp this is, held inside the floating-point range."""
        w = np.clip(np.asarray(latent, dtype=float) * self.spread, -700.0, 700.0)
        if self.shape is Shape.SYMMETRIC:
            g = np.sign(w) * np.expm1(np.abs(w))
        else:
            g = self.shape * np.expm1(self.shape * w)
        with np.errstate(over="ignore"):
            return np.nan_to_num(g * self.turn * self.unit, posinf=LARGEST, neginf=-LARGEST)


@dataclass(frozen=True)
class Warped:
    """Warped readings y, log |dy/dg| summed over them, and the derivatives of both (and of mean y) in the log of the knee."""

    warp: Warp
    y: Array
    y_slope: Array
    offset: float
    offset_slope: float
    log_jacobian: float
    log_jacobian_slope: float


def fold(margins: Array, unit: float, shape: Shape, log_knee: float) -> Warped:
    """Warp the readings for one knee. `unit` is only a change of units and has no place in the Jacobian."""
    g = _in_units(margins, unit)
    knee = float(np.exp(log_knee))
    turn = knee if shape is Shape.SYMMETRIC else knee + END * float(np.max(-shape * g, initial=0.0))
    w, w_slope, log_rate, rate_slope = _folded(g, shape, turn)
    # The derivatives above are in log turn; in log knee they are knee/turn of that.
    w_slope, rate_slope = w_slope * (knee / turn), rate_slope * (knee / turn)
    size = float(np.sqrt(np.mean(w**2))) if w.size else 0.0
    spread = float(np.std(w)) if w.size else 0.0
    if size == 0.0:
        spread, spread_slope = 1.0 / turn, -knee / turn**2  # the identity near 0, in units of `unit`
    elif spread <= LEAST_SPREAD * size:
        least = LEAST_SPREAD if spread > CONSTANT * size else 1.0
        spread, spread_slope = least * size, least * float(np.mean(w * w_slope)) / size
    else:
        spread_slope = float(np.mean((w - w.mean()) * w_slope)) / spread
    y = w / spread
    y_slope = w_slope / spread - y * (spread_slope / spread)
    offset, offset_slope = (float(y.mean()), float(y_slope.mean())) if y.size else (0.0, 0.0)
    return Warped(
        warp=Warp(shape, unit, turn, spread),
        y=y,
        y_slope=y_slope,
        offset=offset,
        offset_slope=offset_slope,
        log_jacobian=float(log_rate.sum() - g.size * np.log(spread)),
        log_jacobian_slope=float(rate_slope.sum() - g.size * spread_slope / spread),
    )


def _in_units(margins: Array, unit: float) -> Array:
    with np.errstate(over="ignore"):
        return np.clip(np.asarray(margins, dtype=float) / unit, -FARTHEST, FARTHEST)


class _Folded(NamedTuple):
    """w before scaling, log dw/dg, and the derivatives of both in log turn."""

    value: Array
    value_slope: Array
    log_rate: Array
    log_rate_slope: Array


def _folded(g: Array, shape: Shape, turn: float) -> _Folded:
    # All three are sign * log1p(distance / turn), with dw/dg = 1/(turn + distance).
    sign = np.sign(g) if shape is Shape.SYMMETRIC else np.full_like(g, float(shape))
    distance = np.maximum(sign * g, (1e-12 - 1.0) * turn)  # a reading beyond the fold's end is held just inside it
    beyond = turn + distance
    return _Folded(
        value=sign * np.log1p(distance / turn),
        value_slope=-sign * distance / beyond,
        log_rate=-np.log(beyond),
        log_rate_slope=-turn / beyond,
    )
