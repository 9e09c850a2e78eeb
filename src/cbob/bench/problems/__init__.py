"""The benchmark problems: one record each, in one table, found by name.

The paper's own come first, then the suite: `half` says for each of these whether settings may be chosen on it.
What a problem needs beside NumPy is imported when it is first evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cbob.bench.problems import analytic, cec2006, classics, coco, control, crashes, learning
from cbob.bench.problems.record import Measured, Problem
from cbob.errors import CbobError, listed, shown

__all__ = ["PROBLEMS", "Measured", "Problem", "get"]

TABLE = (analytic, learning, control, cec2006, classics, crashes, coco)

PROBLEMS: Mapping[str, Problem] = MappingProxyType({problem.name: problem for module in TABLE for problem in module.RECORDS})


def get(name: str) -> Problem:
    """The problem of this name."""
    if name not in PROBLEMS:
        raise CbobError(f"the problems are {listed(PROBLEMS)}, not {shown(name)}")
    return PROBLEMS[name]
