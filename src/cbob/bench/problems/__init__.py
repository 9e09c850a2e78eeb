"""The benchmark problems: one record each, in one table, found by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cbob.bench.problems import analytic
from cbob.bench.problems.record import Measured, Problem
from cbob.errors import CbobError, listed, shown

__all__ = ["PROBLEMS", "Measured", "Problem", "get"]

PROBLEMS: Mapping[str, Problem] = MappingProxyType({problem.name: problem for problem in analytic.RECORDS})


def get(name: str) -> Problem:
    """The problem of this name."""
    if name not in PROBLEMS:
        raise CbobError(f"the problems are {listed(PROBLEMS)}, not {shown(name)}")
    return PROBLEMS[name]
