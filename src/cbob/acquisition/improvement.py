"""Factors of the objective: expected improvement and its probability.

With z = (best - mean) / std, h and e the hazard and excess of `cbob.numerics`:

    EI = std (z Phi(z) + phi(z))      [paper, eq. 3]      d log EI/d mean = -1/(std e),   d log EI/d std = h/(std e)
    PI = Phi(z)                       [paper, 5.4]        d log PI/d mean = -h/std,       d log PI/d std = -z h/std
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbob.acquisition.base import Array, Slopes
from cbob.numerics import log_improvement, log_ndtr, truncation


@dataclass(frozen=True)
class ExpectedImprovement:
    """How far below `best` the objective is expected to come."""

    best: float

    def __call__(self, mean: Array, std: Array) -> Slopes:
        z = (self.best - mean) / std
        value, slope = log_improvement(z)
        return Slopes(np.log(std) + value, -slope / std, (1.0 - z * slope) / std)


@dataclass(frozen=True)
class ProbabilityOfImprovement:
    """The probability that the objective comes below `best`."""

    best: float

    def __call__(self, mean: Array, std: Array) -> Slopes:
        z = (self.best - mean) / std
        hazard = truncation(z).hazard
        return Slopes(log_ndtr(z), -hazard / std, -z * hazard / std)
