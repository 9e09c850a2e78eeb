"""MESC: constrained min-value entropy search (Takeno et al. 2022), in its lower-bound form.

Each sample draws the objective and the limits jointly on a grid; m_s is the best feasible value of the draw, and +inf where
the draw has no feasible row. A row is worth the information that "nothing feasible lies below m_s" carries:

    MESC(x) = mean over s of -log(1 - p_s(x)),   p_s(x) = Phi((m_s - mean_f)/std_f) prod_i POF_i(x)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbob.acquisition.base import Acquisition, Array, Slopes
from cbob.acquisition.feasibility import ProbabilityOfFeasibility
from cbob.acquisition.improvement import ProbabilityOfImprovement
from cbob.models.gp import Posterior
from cbob.numerics import log_neg_log1m_exp

SAMPLES = 20  # the paper's
GRID = 1000  # the paper's


def sampled_minima(
    objective: Posterior, limits: Sequence[Posterior], grid: Array, count: int, rng: np.random.Generator
) -> Array:
    """The best feasible value of each of `count` joint draws on the grid; +inf where a draw has no feasible row."""
    values = objective.sample(grid, count, rng)
    feasible = np.ones_like(values, dtype=bool)
    for limit in limits:
        feasible &= limit.sample(grid, count, rng) <= 0.0
    best: Array = np.where(feasible, values, np.inf).min(axis=1)
    return best


class MinValueEntropy(Acquisition):
    """The objective's surrogate comes first, then those of the limits; `minima` are the sampled best values."""

    def __init__(self, objective: Posterior, limits: Sequence[Posterior], minima: Array) -> None:
        super().__init__((objective, *limits))
        self.minima = np.asarray(minima, dtype=float)

    def combine(self, means: Array, stds: Array) -> Slopes:
        held = [ProbabilityOfFeasibility()(mean, std) for mean, std in zip(means[1:], stds[1:], strict=True)]
        log_held = np.sum([part.value for part in held], axis=0) if held else np.zeros(means.shape[1])
        finite = self.minima[np.isfinite(self.minima)]
        better = [ProbabilityOfImprovement(float(minimum))(means[0], stds[0]) for minimum in finite]
        # A draw without a feasible row bounds nothing: its p is POF alone.
        nothing = Slopes(*np.zeros((3, means.shape[1])))
        better += [nothing] * (self.minima.size - finite.size)
        rows = np.array([part.value for part in better]) + log_held
        terms, slopes = log_neg_log1m_exp(rows)
        top = terms.max(axis=0)
        weights = np.exp(terms - top)
        value = top + np.log(weights.mean(axis=0))
        weights *= slopes / weights.sum(axis=0)  # d value / d log p_s
        through = weights.sum(axis=0)
        in_mean = np.vstack([(weights * [part.in_mean for part in better]).sum(axis=0), *(through * p.in_mean for p in held)])
        in_std = np.vstack([(weights * [part.in_std for part in better]).sum(axis=0), *(through * p.in_std for p in held)])
        return Slopes(value, in_mean, in_std)
