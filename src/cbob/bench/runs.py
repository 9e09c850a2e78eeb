"""What a campaign is made of: a cell of a table, a run (a cell at one seed), and the record of what came of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import nan
from typing import Any

from cbob.errors import StateError

__all__ = ["PROTOCOL_BUDGET", "Cell", "Record", "Run", "improvements"]

PROTOCOL_BUDGET = 100  # evaluations after the initial design, in the paper


@dataclass(frozen=True, order=True)
class Cell:
    """One entry of a table: all seeds of it together."""

    problem: str
    scenario: str
    strategy: str
    surrogate: str = "hlgp"
    budget: int = PROTOCOL_BUDGET

    def at(self, seed: int) -> Run:
        return Run(self, seed)

    def __str__(self) -> str:
        return f"{self.problem} {self.scenario} {self.strategy}/{self.surrogate}"


@dataclass(frozen=True, order=True)
class Run:
    """All that a run depends on, beside the versions."""

    cell: Cell
    seed: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self.cell) | {"seed": self.seed}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Run:
        return cls(Cell(**{field.name: record[field.name] for field in fields(Cell)}), record["seed"])

    def __str__(self) -> str:
        return f"{self.cell} seed {self.seed}"


@dataclass(frozen=True)
class Record:
    """What came of a run, in one short line.

    `improved` has an entry (n, value) wherever the best feasible objective improved: after n evaluations beyond the initial
    design, so (0, value) is the best of the design itself; a run that found nothing has none. `feasible` says of each
    evaluation beyond the design whether it was. Seconds are of the processor; those of the design are shared by all runs
    of its problem and seed. None is what older records do not know.
    """

    run: Run
    improved: tuple[tuple[int, float], ...]
    feasible: tuple[bool, ...]
    ask_seconds: float
    evaluation_seconds: float | None = None
    design_seconds: float | None = None
    environment: str | None = None

    @property
    def best(self) -> float | None:
        """The best feasible objective of the whole run."""
        return self.improved[-1][1] if self.improved else None

    def trajectory(self) -> list[float]:
        """The best so far after 0, 1, ... evaluations beyond the design; NaN while nothing feasible is known."""
        steps, best = dict(self.improved), nan
        path = []
        for number in range(len(self.feasible) + 1):
            best = steps.get(number, best)
            path.append(best)
        return path

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return self.run.to_dict() | {
            "improved": [list(step) for step in self.improved],
            "feasible": "".join("01"[held] for held in self.feasible),
            "ask_seconds": self.ask_seconds,
            "evaluation_seconds": self.evaluation_seconds,
            "design_seconds": self.design_seconds,
            "environment": self.environment,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Record:
        """The record that `to_dict` wrote, or one of the first format, which had the best after every evaluation instead of
        the improvements, and did not know the best of the design."""
        try:
            improved = record["improved"] if "improved" in record else improvements(record["best"])
            return cls(
                run=Run.from_dict(record),
                improved=tuple((int(number), float(value)) for number, value in improved),
                feasible=tuple(held in (True, "1") for held in record["feasible"]),
                ask_seconds=record["ask_seconds"],
                evaluation_seconds=record.get("evaluation_seconds"),
                design_seconds=record.get("design_seconds"),
                environment=record.get("environment"),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StateError(f"not the record of a run: {str(record)[:120]} ({error!r})") from error


def improvements(best: Sequence[float | None]) -> list[tuple[int, float]]:
    """The entries (n, value) of a record, from the best after 1, 2, ... evaluations."""
    before = [None, *best[:-1]]
    return [(n, b) for n, (a, b) in enumerate(zip(before, best, strict=True), 1) if b is not None and b != a]
