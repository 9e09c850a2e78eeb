"""The recipes: what each strategy makes of the surrogates. The table at the end is all there is to choose from.

A strategy gets `Beliefs` and returns the snapped row to try next. Most maximise a product of one factor for the objective
and one for each limit; `Climb` says which. While nothing feasible is known they all search for it (`search`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from cbob.acquisition.base import Acquisition, Factor, Product
from cbob.acquisition.calibration import Damped, Shifted, feasible_share, shift
from cbob.acquisition.entropy import GRID, SAMPLES, MinValueEntropy, sampled_minima
from cbob.acquisition.feasibility import (
    EMUB,
    POB,
    DynamicFeasibility,
    Exploration,
    ProbabilityOfFeasibility,
    drawable,
    undecided,
)
from cbob.acquisition.improvement import ExpectedImprovement, ProbabilityOfImprovement
from cbob.acquisition.thompson import TrustRegion, draw_best
from cbob.candidates import Effort, Taken, best_untaken, maximise, pool
from cbob.errors import StrategyError
from cbob.models.gp import Posterior
from cbob.space import Space

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Experience:
    """What was promised of each told trial, in order, and what came of it. Column 0 is "improves on the best", for strategies
    that want to know, the others are the limits; NaN where nothing was promised, or nothing is known."""

    promised: Array  # (N, 1 + m), in standard deviations
    kept: Array  # (N, 1 + m), 1 or 0

    @cached_property
    def shifts(self) -> list[float]:
        """By how many deviations each limit promises too much."""
        return [shift(promised, kept) for promised, kept in zip(self.promised.T[1:], self.kept.T[1:], strict=True)]

    @cached_property
    def balance(self) -> float:
        """How much of the boundaries' weight the run can afford: the share of proposals that were feasible."""
        return feasible_share(self.promised, self.kept)


@dataclass(frozen=True)
class Beliefs:
    """All that a strategy may know. Surrogates already believe in the trials that are still out."""

    space: Space
    objective: Posterior
    limits: tuple[Posterior, ...]
    best: float | None  # latent value of the best feasible trial; None while there is none
    centres: Array  # rows worth looking around: the best feasible ones, or the least infeasible
    taken: Taken  # rows told, and rows still out
    improved: NDArray[np.bool_]  # for each told trial after the initial design: did it beat all before it?
    rng: np.random.Generator
    asked: int  # trials asked for so far; results that were added do not count
    hopeful: bool  # whether any limit was seen to hold, or measured
    experience: Experience


class Strategy(ABC):
    """Chooses the next row. `uses_models` is False where nothing needs to be learned first."""

    uses_models: bool = True

    @abstractmethod
    def propose(self, beliefs: Beliefs) -> Array:
        """The snapped row to try next, once something feasible is known."""

    def weighed(self, beliefs: Beliefs, names: Sequence[str]) -> Mapping[str, float]:
        """The numbers beside the surrogates' own that it goes by, by name; `names` are those of the limits."""
        return {}


@dataclass(frozen=True)
class Climb(Strategy):
    """Maximises improvement(objective) times a factor for each limit: POF, or DPOF with an exploration function."""

    improvement: Callable[[float], Factor] = ExpectedImprovement
    explore: Exploration | Callable[[Array, Array], Exploration] | None = None  # or made from a grid of (mean, std)
    effort: Effort = field(default_factory=Effort)

    def propose(self, beliefs: Beliefs) -> Array:
        return _maximise(self.acquisition(beliefs), beliefs, self.effort)

    def acquisition(self, beliefs: Beliefs) -> Acquisition:
        """What `propose` maximises, for those who want to look at it."""
        assert beliefs.best is not None
        return Product((beliefs.objective, *beliefs.limits), [self.improvement(beliefs.best), *self._limit_factors(beliefs)])

    def _limit_factors(self, beliefs: Beliefs) -> list[Factor]:
        if self.explore is None:
            return [ProbabilityOfFeasibility()] * len(beliefs.limits)
        if isinstance(self.explore, Exploration):
            return [DynamicFeasibility(self.explore)] * len(beliefs.limits)
        grid = pool(beliefs.space, beliefs.centres, self.effort, beliefs.rng)
        return [DynamicFeasibility(self.explore(*limit.predict(grid))) for limit in beliefs.limits]


@dataclass(frozen=True)
class Auto(Climb):
    """EICB kept in balance by the run's own experience: what a limit promises is shifted by what came of such promises before,
    and boundaries are explored in proportion to how often proposals have been feasible of late."""

    boundary: Exploration = field(default_factory=lambda: POB(resolution=RESOLUTION))

    def acquisition(self, beliefs: Beliefs) -> Acquisition:
        assert beliefs.best is not None
        explored = DynamicFeasibility(Damped(self.boundary, beliefs.experience.balance))
        limits = [Shifted(explored, by) for by in beliefs.experience.shifts]
        return Product((beliefs.objective, *beliefs.limits), [self.improvement(beliefs.best), *limits])

    def weighed(self, beliefs: Beliefs, names: Sequence[str]) -> Mapping[str, float]:
        shifts = zip(names, beliefs.experience.shifts, strict=True)
        return {"balance": beliefs.experience.balance} | {f"shift of {name}": by for name, by in shifts}


@dataclass(frozen=True)
class Entropy(Strategy):
    """Constrained min-value entropy search."""

    samples: int = SAMPLES
    grid: int = GRID
    effort: Effort = field(default_factory=Effort)

    def propose(self, beliefs: Beliefs) -> Array:
        grid = pool(
            beliefs.space,
            beliefs.centres,
            Effort(spread=self.grid * 3 // 4, scattered=self.grid // 4),
            beliefs.rng,
        )
        possible, limits = drawable(beliefs.limits, grid)
        minima = np.full(self.samples, np.inf)
        if beliefs.best is not None:
            minima[:] = beliefs.best  # what was seen bounds every draw
            possible &= undecided(beliefs.objective, grid, beliefs.best)[0]
        if possible.any():
            minima = np.minimum(minima, sampled_minima(beliefs.objective, limits, grid[possible], self.samples, beliefs.rng))
        return _maximise(MinValueEntropy(beliefs.objective, beliefs.limits, minima), beliefs, self.effort)


@dataclass(frozen=True)
class Thompson(Strategy):
    """Constrained Thompson sampling in a trust region."""

    grid: int = GRID

    def propose(self, beliefs: Beliefs) -> Array:
        region = TrustRegion.replay(beliefs.improved, len(beliefs.space.names))
        lengthscales = beliefs.objective.kernel.lengthscales
        rows = region.grid(beliefs.space, beliefs.centres[0], lengthscales, self.grid, beliefs.rng)
        possible, limits = drawable(beliefs.limits, rows)
        if not possible.any():
            possible, limits = np.ones(len(rows), dtype=bool), beliefs.limits
        values = np.zeros(rows.shape[0])
        values[np.flatnonzero(possible)[draw_best(beliefs.objective, limits, rows[possible], beliefs.rng)]] = 1.0
        return best_untaken(rows, values, beliefs.taken, beliefs.space)


@dataclass(frozen=True)
class Design(Strategy):
    """Goes on with the Sobol sequence of the initial design and learns nothing."""

    uses_models = False

    def propose(self, beliefs: Beliefs) -> Array:
        raise AssertionError("the optimizer continues its design itself")


def search(beliefs: Beliefs) -> Array | None:
    """The next row while nothing feasible is known; None asks for the next row of the design.

    Climbing the probability of feasibility alone gets stuck: it keeps refining the spot where the model hopes most. So three
    ways take turns: a Thompson draw of the limits (goes where they could hold), the climb, and the space-filling design, which
    makes the search at worst three times slower than plain Sobol, whatever the model believes. Where all that is known are
    failures, a model can only flee from them into the corners, and the design alone goes on.
    """
    turn = beliefs.asked % 3
    if turn == 2 or not beliefs.limits or not beliefs.hopeful:
        return None
    if turn == 1:
        factors = [ProbabilityOfFeasibility()] * len(beliefs.limits)
        return _maximise(Product(beliefs.limits, factors), beliefs, Effort())
    rows = pool(beliefs.space, beliefs.centres, Effort(spread=750, scattered=250), beliefs.rng)
    values = np.zeros(rows.shape[0])
    values[draw_best(None, beliefs.limits, rows, beliefs.rng)] = 1.0
    return best_untaken(rows, values, beliefs.taken, beliefs.space)


def _maximise(acquisition: Acquisition, beliefs: Beliefs, effort: Effort) -> Array:
    return maximise(acquisition, beliefs.space, beliefs.rng, centres=beliefs.centres, taken=beliefs.taken, effort=effort)


# Boundaries known to a hundredth of the spread of the readings are not worth further exploration.
RESOLUTION = 0.01

STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "auto": Auto(),  # the default: EICB with as much balance, and as much trust in each limit, as the run has earned
        # the paper: EICB with the potential of being the boundary
        "cbob": Climb(ExpectedImprovement, POB(resolution=RESOLUTION)),
        "cbob-mub": Climb(ExpectedImprovement, EMUB.adapted),  # the same with the most-uncertain boundary, adaptive scale
        "eic": Climb(ExpectedImprovement),  # expected improvement times the probability of feasibility
        "pi-cb": Climb(ProbabilityOfImprovement, POB(resolution=RESOLUTION)),  # probability of improvement, balanced
        "mesc": Entropy(),  # min-value entropy search with constraints
        "tsc": Thompson(),  # Thompson sampling with constraints, in a trust region
        "sobol": Design(),  # a space-filling sequence: the floor for all others
    }
)


def as_strategy(given: str | Strategy) -> tuple[str, Strategy]:
    """A strategy and its name: one of the table, or your own."""
    if isinstance(given, Strategy):
        return type(given).__name__, given
    if not isinstance(given, str) or given not in STRATEGIES:
        raise StrategyError(f"strategy must be one of {', '.join(STRATEGIES)}, or a Strategy; got {given!r}")
    return given, STRATEGIES[given]
