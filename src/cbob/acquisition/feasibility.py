"""Factors of a limit: the probability that it holds (POF), and its balanced form (DPOF) with an exploration function rho.

With the latent marginal N(mean, std^2), the limit at 0 and r = mean / std:

    POF  = Phi(-r)                                                                              [paper, eq. 5]
    DPOF = min(1, (1 + rho) POF)                                                                [paper, eq. dpof]
    POB:  rho = Phi(beta - r) - Phi(-beta - r)                                                  [paper, eq. 10-11]
    EMUB: rho = std (u(r + beta) - 2 u(r) + u(r - beta)) / gamma,   u(z) = z Phi(z) + phi(z)    [paper, B.3 and B.6]

EMUB is written as the second difference of u, because the tent max(eps - |g|, 0) is one of the ramps max(g, 0). It is even
in r.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbob.acquisition.base import Array, Slopes
from cbob.models.gp import Posterior
from cbob.numerics import improvement, log_ndtr, ndtr, normal_pdf, truncation

Mask = NDArray[np.bool_]

BETA = 1.96  # the paper's 95% confidence level
# What lies further than this many deviations from a threshold counts as certain: it is, but for once in 5e7 times.
SURE = 5.5


def undecided(posterior: Posterior, rows: Array, threshold: float = 0.0) -> tuple[Mask, Mask]:
    """Of each row, whether the latent value may be at most the threshold, and whether it may be above: (q,) each."""
    mean, std = posterior.predict(rows)
    return mean - SURE * std <= threshold, mean + SURE * std > threshold


def drawable(limits: Sequence[Posterior], rows: Array) -> tuple[Mask, tuple[Posterior, ...]]:
    """The rows that may be feasible, and the limits that may break at one of them: all that a joint draw has to look at."""
    may = [undecided(limit, rows) for limit in limits]
    possible: Mask = np.all(np.array([hold for hold, _ in may]).reshape(len(may), len(rows)), axis=0)
    return possible, tuple(limit for limit, (_, broken) in zip(limits, may, strict=True) if broken[possible].any())


class Exploration(ABC):
    """How much a row may teach about where a limit runs: bounded, not negative, 0 where std is 0 (paper, Definition 1).

    For one of your own, write `rho`. Write `slopes` too if you have the derivatives; otherwise differences are taken.
    """

    @abstractmethod
    def rho(self, mean: Array, std: Array) -> Array:
        """The weight of each marginal N(mean, std^2)."""

    def slopes(self, mean: Array, std: Array) -> Slopes:
        """rho with its derivatives in mean and std."""
        step = 1e-5 * std
        in_mean = (self.rho(mean + step, std) - self.rho(mean - step, std)) / (2.0 * step)
        in_std = (self.rho(mean, std + step) - self.rho(mean, std - step)) / (2.0 * step)
        return Slopes(self.rho(mean, std), in_mean, in_std)


@dataclass(frozen=True)
class POB(Exploration):
    """The potential of being the boundary: the probability that the latent value lies within beta deviations of the limit.

    As printed, POB does not know how much there is to learn: on the boundary it is nearly 1 however small std has become, so
    that a search ends up trying points a hair outside the limit again and again. Below `resolution` (a std, in latent units,
    where readings have unit spread) it is therefore faded out smoothly, reaching the 0 at std 0 that Definition 1 asks for;
    `resolution` 0 keeps eq. 11 as it stands.
    """

    beta: float = BETA
    resolution: float = 0.0

    def rho(self, mean: Array, std: Array) -> Array:
        return self.slopes(mean, std).value

    def slopes(self, mean: Array, std: Array) -> Slopes:
        # Definition 1 wants 0 where nothing is uncertain; the formula alone gives that except at mean 0.
        certain = std <= 0.0
        safe = np.where(certain, 1.0, std)
        r = np.where(certain, np.inf, mean / safe)
        value = ndtr(self.beta - r) - ndtr(-self.beta - r)
        in_r = normal_pdf(-self.beta - r) - normal_pdf(self.beta - r)
        in_mean, in_std = in_r / safe, np.where(certain, 0.0, -mean / safe**2) * in_r
        if self.resolution > 0.0:
            t = np.minimum(std / self.resolution, 1.0)
            fade, fade_slope = t * t * (3.0 - 2.0 * t), 6.0 * t * (1.0 - t) / self.resolution
            value, in_mean, in_std = fade * value, fade * in_mean, fade * in_std + fade_slope * value
        return Slopes(value, in_mean, in_std)


@dataclass(frozen=True)
class EMUB(Exploration):
    """The expected most-uncertain boundary, over the scale gamma (see `adapted`)."""

    gamma: float
    beta: float = BETA

    def rho(self, mean: Array, std: Array) -> Array:
        return self.slopes(mean, std).value

    def slopes(self, mean: Array, std: Array) -> Slopes:
        certain = std <= 0.0
        safe = np.where(certain, 1.0, std)
        r = mean / safe
        distance = -np.abs(r)  # even in r, and the differences keep their digits on this side
        tent = improvement(distance + self.beta) - 2.0 * improvement(distance) + improvement(distance - self.beta)
        in_r = -np.sign(r) * (ndtr(distance + self.beta) - 2.0 * ndtr(distance) + ndtr(distance - self.beta))
        tent, in_r = np.where(certain, 0.0, np.maximum(tent, 0.0)), np.where(certain, 0.0, in_r)
        return Slopes(safe * tent / self.gamma, in_r / self.gamma, (tent - r * in_r) / self.gamma)

    @classmethod
    def adapted(cls, mean: Array, std: Array, beta: float = BETA) -> EMUB:
        """gamma = max EMUB POF over the given marginals (paper, B.7), so that rho POF stays within [0, 1]."""
        unscaled = cls(1.0, beta)
        largest = float(np.max(unscaled.rho(mean, std) * ndtr(-mean / std), initial=0.0))
        return cls(max(largest, 1e-300), beta)


@dataclass(frozen=True)
class ProbabilityOfFeasibility:
    """POF, the probability that the limit holds."""

    def __call__(self, mean: Array, std: Array) -> Slopes:
        z = -mean / std
        hazard = truncation(z).hazard
        return Slopes(log_ndtr(z), -hazard / std, -z * hazard / std)


@dataclass(frozen=True)
class DynamicFeasibility:
    """DPOF, the probability that the limit holds, raised where its boundary may run."""

    exploration: Exploration

    def __call__(self, mean: Array, std: Array) -> Slopes:
        held = ProbabilityOfFeasibility()(mean, std)
        rho, in_mean, in_std = self.exploration.slopes(mean, std)
        value = np.log1p(rho) + held.value
        # Where the projection clips, the factor is flat: its gradient is exactly 0.
        free = value < 0.0
        share = free / (1.0 + rho)
        return Slopes(np.minimum(value, 0.0), free * held.in_mean + share * in_mean, free * held.in_std + share * in_std)
