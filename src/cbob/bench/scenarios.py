"""Scenarios: how much of a problem an optimizer is shown when a point is infeasible.

    S1   every constraint reading; the objective is hidden
    S2   the readings that hold, and the names of the limits that broke; the rest is hidden
    S3   that it failed, and nothing else: the limits are not even declared

At a feasible point S1 and S2 show everything, and S3 the objective alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypedDict

from cbob.bench.problems import Measured, Problem
from cbob.constraints import Constraint

__all__ = ["Scenario", "Told", "constraints_for", "hide", "reveal"]


class Scenario(StrEnum):
    S1 = "S1"
    S2 = "S2"
    S3 = "S3"


class Told(TypedDict, total=False):
    """Arguments of `Optimizer.tell` and `Optimizer.add`; a value is among them iff the point is feasible."""

    value: float
    constraints: dict[str, float]
    violated: list[str]
    failed: str


def constraints_for(problem: Problem, scenario: Scenario) -> tuple[Constraint, ...]:
    """The constraints that an optimizer is declared with."""
    return () if scenario is Scenario.S3 else problem.constraints


def reveal(problem: Problem, params: Mapping[str, Any], scenario: Scenario) -> Told:
    """Evaluate the problem and hide what the scenario hides."""
    return hide(problem, problem.function(params), scenario)


def hide(problem: Problem, measured: Measured, scenario: Scenario) -> Told:
    """What the scenario lets through of an evaluation."""
    value, readings = measured
    broken = problem.broken(readings)
    if scenario is Scenario.S3:
        return {"failed": "infeasible"} if broken else {"value": value}
    if not broken:
        return {"value": value, "constraints": readings}
    if scenario is Scenario.S1:
        return {"constraints": readings}
    held = {name: reading for name, reading in readings.items() if name not in broken}
    return {"constraints": held, "violated": broken}
