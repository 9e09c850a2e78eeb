"""Thompson sampling: draw what the objective and the limits could be, and go where that draw is best.

TSC draws inside a trust region (SCBO, Eriksson and Poloczek 2021): a box around the best row so far that doubles after a run of
successes, halves after a run of failures, and starts over once it has become too small. Its state is replayed from the
trials, so there is nothing to store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbob.acquisition.base import Array
from cbob.models.gp import Posterior
from cbob.space import Space

GRID = 1000  # the paper's
LARGEST, INITIAL, SMALLEST = 1.6, 0.8, 0.5**7  # side of the box in the unit cube (SCBO, section 3)


def draw_best(objective: Posterior | None, limits: Sequence[Posterior], grid: Array, rng: np.random.Generator) -> int:
    """One joint draw on the grid: its best feasible row, or the one of least total violation where nothing is feasible.

    Without an objective the search is for feasibility alone: the row that holds by the widest total margin.
    """
    draws = np.array([limit.sample(grid, 1, rng)[0] for limit in limits]).reshape(len(limits), grid.shape[0])
    violation = np.maximum(draws, 0.0).sum(axis=0)
    if objective is None:
        slack = np.minimum(draws, 0.0).sum(axis=0)
        return int(np.lexsort((slack, violation))[0])
    values = objective.sample(grid, 1, rng)[0]
    feasible = violation <= 0.0
    return int(np.argmin(np.where(feasible, values, np.inf) if feasible.any() else violation))


@dataclass(frozen=True)
class TrustRegion:
    """A box of side `side` around a centre, which grows with successes and shrinks with failures."""

    side: float

    @classmethod
    def replay(cls, better: NDArray[np.bool_], dimensions: int) -> TrustRegion:
        """The region after trials that did (or did not) improve on all before them, in order."""
        patience, streak = max(4, dimensions), 3
        side, successes, failures = INITIAL, 0, 0
        for success in better:
            successes, failures = (successes + 1, 0) if success else (0, failures + 1)
            if successes == streak:
                side, successes = min(2.0 * side, LARGEST), 0
            elif failures == patience:
                side, failures = side / 2.0, 0
            if side < SMALLEST:
                side, successes, failures = INITIAL, 0, 0
        return cls(side)

    def grid(self, space: Space, centre: Array, lengthscales: Array, count: int, rng: np.random.Generator) -> Array:
        """Rows of the box, stretched along the long lengthscales at constant volume; each differs from the centre in about 20
        parameters (all, where there are fewer), because a box of many dimensions is nearly all corners."""
        stretch = lengthscales / np.exp(np.mean(np.log(lengthscales)))
        half = 0.5 * self.side * stretch
        low, high = np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)
        free = space.continuous
        anywhere = space.spread(rng.random((count, len(space.names))))
        rows = np.where(free, low + (high - low) * anywhere, anywhere)
        moved = rng.random((count, len(space.names))) < min(1.0, 20.0 / len(space.names))
        # What is not continuous has no box: it moves with a probability of the box's side instead.
        hops = rng.random((count, len(space.names))) < min(1.0, self.side)
        moved[np.arange(count), rng.integers(len(space.names), size=count)] = True
        changes = moved[:, space.groups] & (free | hops[:, space.groups])
        return space.snap(np.where(changes, rows, centre))


def improvements(values: Array, feasible: NDArray[np.bool_], violations: Array) -> NDArray[np.bool_]:
    """For each trial in order: did it beat all before it? Feasible beats infeasible, then value, then total violation."""
    better = np.zeros(values.size, dtype=bool)
    best_value, least = np.inf, np.inf
    for i, (value, holds, violation) in enumerate(zip(values, feasible, violations, strict=True)):
        if holds:
            # An improvement has to be worth a thousandth of the value (SCBO's success rule).
            # Both sides halved, because their difference may overflow.
            better[i] = not np.isfinite(best_value) or value / 2.0 < best_value / 2.0 - 0.5e-3 * abs(best_value)
            best_value = min(best_value, value)
        elif not np.isfinite(best_value):
            better[i] = violation < least
        least = min(least, violation)
    return better
