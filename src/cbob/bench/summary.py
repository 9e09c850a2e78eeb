"""Records brought together: a line for each cell, the numbers of tables.

BOV, the best objective value, counts as infinitely bad where nothing feasible was found; ROF is the feasible share of the
evaluations after the initial design.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbob.bench.paper import printed
from cbob.bench.problems import get
from cbob.bench.runs import Cell, Record
from cbob.observations import direction_sign

__all__ = ["Summary", "by_cell", "cost", "loss", "quantile", "quartile_paths", "row", "summarise"]


@dataclass(frozen=True)
class Summary:
    """A cell at all its seeds."""

    cell: Cell
    seeds: tuple[int, ...]
    bov: tuple[float, ...]  # one a seed, in the problem's own direction
    rof: float
    ask_seconds: float  # of one ask, in the mean

    def quantile(self, q: float) -> float:
        """Of the BOV: from the best (0) to the worst (1)."""
        sign = direction_sign(get(self.cell.problem).direction)
        return sign * quantile([sign * value for value in self.bov], q)

    @property
    def median(self) -> float:
        return self.quantile(0.5)


def by_cell(records: Iterable[Record]) -> dict[Cell, list[Record]]:
    """The records of each cell, in order of their seeds."""
    cells: dict[Cell, list[Record]] = defaultdict(list)
    for record in records:
        cells[record.run.cell].append(record)
    return {cell: sorted(group, key=lambda record: record.run.seed) for cell, group in cells.items()}


def summarise(records: Iterable[Record]) -> dict[Cell, Summary]:
    return {
        cell: Summary(
            cell=cell,
            seeds=tuple(record.run.seed for record in group),
            bov=tuple(direction_sign(get(cell.problem).direction) * loss(record) for record in group),
            rof=float(np.mean([record.feasible for record in group])),
            ask_seconds=sum(record.ask_seconds for record in group) / sum(len(record.feasible) for record in group),
        )
        for cell, group in by_cell(records).items()
    }


def loss(record: Record) -> float:
    """The best objective value, to be minimised whatever the problem's direction."""
    return inf if record.best is None else direction_sign(get(record.run.cell.problem).direction) * record.best


def row(summary: Summary) -> dict[str, Any]:
    """Plain JSON; null stands for a median that is infinitely bad, and for what the paper does not print."""
    cell, paper = summary.cell, printed(summary.cell)
    quartiles = [summary.quantile(q) for q in (0.25, 0.75)]
    return {
        "problem": cell.problem,
        "scenario": cell.scenario,
        "strategy": cell.strategy,
        "surrogate": cell.surrogate,
        "seeds": len(summary.seeds),
        "bov_median": summary.median if isfinite(summary.median) else None,
        "rof_mean": summary.rof,
        "paper_bov": paper.bov if paper else None,
        "paper_rof": paper.rof if paper else None,
        "bov_quartiles": [value if isfinite(value) else None for value in quartiles],
        "budget": cell.budget,
        "ask_ms_mean": 1e3 * summary.ask_seconds,
    }


def quantile(values: Sequence[float], q: float) -> float:
    """NumPy's, but right beside infinities: a neighbour of weight 0 has no say."""
    ordered = sorted(values)
    index, weight = divmod(q * (len(ordered) - 1), 1)
    below = ordered[int(index)]
    return below if weight == 0 else (1 - weight) * below + weight * ordered[int(index) + 1]


def quartile_paths(records: Sequence[Record]) -> tuple[NDArray[np.float64], ...]:
    """The first quartile, the median and the third, from the best, of the best so far after 0, 1, ... evaluations: at the end
    those of the tables. Infinite while that many runs know of nothing feasible."""
    sign = direction_sign(get(records[0].run.cell.problem).direction)
    paths = sign * np.array([record.trajectory() for record in records])
    losses = np.where(np.isnan(paths), inf, paths).T.tolist()
    return tuple(np.array([sign * quantile(step, q) for step in losses]) for q in (0.25, 0.5, 0.75))


def cost(records: Iterable[Record]) -> Mapping[str, float]:
    """Hours of one processor: asking, evaluating, and the initial designs, each of which was evaluated once."""
    kept = list(records)
    designs = {(r.run.cell.problem, r.run.seed): r.design_seconds or 0.0 for r in kept}
    return {
        "asking": sum(r.ask_seconds for r in kept) / 3600,
        "evaluating": sum(r.evaluation_seconds or 0.0 for r in kept) / 3600,
        "designs": sum(designs.values()) / 3600,
    }
