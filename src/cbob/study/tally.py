"""Where a study stands: counted from its stored trials, and cheap to count again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cbob.constraints import Constraint
from cbob.study.names import LOST, WITHDRAWN
from cbob.study.records import Record, best_of, record_of

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

__all__ = ["Standing", "Tally"]


@dataclass(frozen=True)
class Standing:
    """The counts of a study, and its best trial."""

    finished: int = 0  # complete or failed: what the budget counts
    feasible: int = 0
    running: int = 0
    lost: int = 0  # those retried since included
    broke: Mapping[str, int] = field(default_factory=dict)  # trials that broke each constraint
    failed: Mapping[str, int] = field(default_factory=dict)  # trials that failed, by kind
    best: Record | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "finished": self.finished,
            "feasible": self.feasible,
            "running": self.running,
            "lost": self.lost,
            "broke": dict(self.broke),
            "failed": dict(self.failed),
            "best": None if self.best is None else self.best.to_dict(),
        }


class Tally:
    """The records of a study. A finished trial never changes, so that each is read once."""

    def __init__(self, constraints: Sequence[Constraint], direction: str) -> None:
        self.constraints = tuple(constraints)
        self.direction = direction
        self._finished: dict[int, Record] = {}

    def records(self, trials: Iterable[FrozenTrial]) -> list[Record]:
        """All of them, in order."""
        found = []
        for trial in trials:
            record = self._finished.get(trial.number)
            if record is None:
                record = record_of(trial, self.constraints)
                if trial.state.is_finished():
                    self._finished[trial.number] = record
            found.append(record)
        return found

    def standing(self, records: Sequence[Record]) -> Standing:
        """The counts of these records."""
        status = Counter(record.status for record in records)
        return Standing(
            finished=sum(status.values()) - status["running"] - status[LOST] - status[WITHDRAWN],
            feasible=status["feasible"],
            running=status["running"],
            lost=status[LOST],
            broke=dict(Counter(name for record in records for name in record.broke)),
            failed=dict(Counter(record.kind for record in records if record.finished and record.kind)),
            best=best_of(records, self.direction),
        )
