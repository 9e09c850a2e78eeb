"""How records are written: boxes of x1, x2, ..., limits g1 <= 0, g2 <= 0, ..., and packages that may be missing."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from cbob.bench.problems.record import Measured
from cbob.constraints import Constraint, as_constraints
from cbob.errors import CbobError
from cbob.space import Float, Space

__all__ = ["Params", "box", "limits", "measured", "named", "needed", "vector"]

Params = Mapping[str, Any]


def box(n: int, low: float, high: float) -> Space:
    """x1 .. xn, each in [low, high]."""
    return Space({f"x{i}": Float(low, high) for i in range(1, n + 1)})


def limits(count: int) -> tuple[Constraint, ...]:
    """g1 <= 0 .. g{count} <= 0."""
    return as_constraints([f"g{i} <= 0" for i in range(1, count + 1)])


def measured(f: float, *g: float) -> Measured:
    """The objective and the readings g1, g2, ..."""
    return float(f), {f"g{i}": float(reading) for i, reading in enumerate(g, 1)}


def named(*coordinates: float) -> dict[str, float]:
    """The point x1 = ..., x2 = ..."""
    return {f"x{i}": coordinate for i, coordinate in enumerate(coordinates, 1)}


def vector(params: Params) -> list[float]:
    """The inverse of `named`, in whatever order the names come."""
    return [params[f"x{i}"] for i in range(1, len(params) + 1)]


def needed(module: str, problem: str) -> Any:
    """A package of the extra `bench`, imported when a problem is first evaluated."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where warnings are errors, Box2D's own would crash the interpreter
            return import_module(module)
    except ImportError as error:
        raise CbobError(f"the problem {problem!r} needs {module}: pip install 'cbob[bench]' ({error})") from error
