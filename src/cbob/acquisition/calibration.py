"""What a run has taught about its own promises, and an acquisition that takes it into account.

When a trial is proposed, the surrogates promise that each limit holds with probability Phi(z), z = -mean/std, and that the
trial improves on the best with Phi(z) too, z = (best - mean)/std. What comes of it shows how much such promises are worth. The
model: all are too high by the same `shift` b of so many deviations,

    P(kept) = Phi(z - b),   b ~ N(0, 1) a priori

and b is the maximum a posteriori, with the weight of a trial halving for every `HALF_LIFE` later ones: what counts is how the
model fares where the search is now. Shifting z by b is moving the mean by b deviations, whatever the factor:

    factor(mean + b std, std)

With b > 0 an acquisition goes where the model has earned trust: near what is known. With b < 0 it goes beyond a boundary that
the model drew too close, which is what EICB's exploration function does unasked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbob.acquisition.base import Array, Factor, Slopes
from cbob.acquisition.feasibility import Exploration
from cbob.numerics import truncation

__all__ = ["Damped", "Shifted", "feasible_share", "shift"]

HALF_LIFE = 15.0
# A run of bad luck shall not switch a factor off: promises that are made with great caution are kept, teach little, and would
# leave the search cautious long after the model has mended.
LEAST, MOST = -1.0, 1.5
# No promise counts as surer than this many deviations: a surrogate that interpolates often errs by a hair where it is certain.
SUREST = 3.0


def shift(promised: Array, kept: Array) -> float:
    """b from promises z (T,), oldest first, and what came of them: 1 kept, 0 broken, NaN unknown."""
    age = np.arange(len(promised))[::-1]
    known = np.isfinite(promised) & np.isfinite(kept)
    z, weight = np.clip(promised[known], -SUREST, SUREST), 0.5 ** (age[known] / HALF_LIFE)
    sign = np.where(kept[known] > 0.5, 1.0, -1.0)
    b = 0.0
    for _ in range(50):  # Newton on a concave function
        seen = truncation(sign * (z - b))
        slope = -b - float(weight @ (sign * seen.hazard))
        curve = 1.0 + float(weight @ (seen.hazard * seen.excess))
        step = slope / curve
        b += step
        if abs(step) < 1e-9:
            break
    return min(max(b, LEAST), MOST)


def feasible_share(promised: Array, kept: Array) -> float:
    """The share of proposals not known to have broken a limit, the latest weighing most; one half before there are any."""
    proposed = np.isfinite(promised[:, 1:]).any(axis=1)
    broke = (kept[:, 1:] == 0.0).any(axis=1)
    age = np.arange(len(promised))[::-1]
    weight = proposed * 0.5 ** (age / HALF_LIFE)
    return float((0.5 + weight @ ~broke) / (1.0 + weight.sum()))


@dataclass(frozen=True)
class Damped(Exploration):
    """So much of an exploration function."""

    whole: Exploration
    share: float

    def rho(self, mean: Array, std: Array) -> Array:
        return self.share * self.whole.rho(mean, std)

    def slopes(self, mean: Array, std: Array) -> Slopes:
        return Slopes(*(self.share * part for part in self.whole.slopes(mean, std)))


@dataclass(frozen=True)
class Shifted:
    """A factor that reads each mean `by` deviations higher."""

    factor: Factor
    by: float

    def __call__(self, mean: Array, std: Array) -> Slopes:
        seen = self.factor(mean + self.by * std, std)
        return Slopes(seen.value, seen.in_mean, seen.in_std + self.by * seen.in_mean)
