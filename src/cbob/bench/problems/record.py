"""What a benchmark problem is: a function that measures everything, and what is known of its best point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cbob.constraints import Constraint
from cbob.errors import CbobError, shown
from cbob.observations import direction_sign
from cbob.space import Space

__all__ = ["Measured", "Problem"]

Measured = tuple[float, dict[str, float]]  # the objective, and the raw reading of every constraint


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A constrained problem, seen whole; what an optimizer sees of it is for a scenario to decide.

    `function(params)` returns the objective and the raw reading of every constraint, feasible or not.
    `best_point` is feasible to the last digit: where the optimum lies on a limit, it stands a hair inside.
    `feasible_fraction` is the feasible share of uniform random points. What nobody knows is None.
    `scenario` is how much of it an optimizer is meant to be shown: for the paper's problems, as in its tables.
    `half` splits the suite: on "tuning" settings may be chosen, "held out" is only ever reported; None where
    it is one of the paper's own problems.
    """

    name: str
    space: Space
    constraints: tuple[Constraint, ...]
    function: Callable[[Mapping[str, Any]], Measured]
    source: str
    optimum: float | None = None
    best_point: Mapping[str, Any] | None = None
    feasible_fraction: float | None = None
    direction: str = "minimize"
    scenario: Literal["S1", "S2", "S3"] = "S1"
    half: Literal["tuning", "held out"] | None = None

    def __post_init__(self) -> None:
        direction_sign(self.direction)
        share = self.feasible_fraction
        if share is not None and not 0 <= share <= 1:
            raise CbobError(f"the feasible fraction of {self.name!r} must lie in [0, 1], not {shown(share)}")
        if self.best_point is not None:
            self.space.check(self.best_point)

    def broken(self, readings: Mapping[str, float]) -> list[str]:
        """The names of the constraints that these readings break."""
        return [limit.name for limit in self.constraints if not limit.holds(readings[limit.name])]
