"""One stored trial as people read it: what was tried, how it ended, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cbob.constraints import Constraint
from cbob.errors import TrialError
from cbob.study.names import CLAIM, FAILURE, FORECAST, LOG, LOST, READINGS, SATISFIED, SECONDS, VIOLATED, WITHDRAWN
from cbob.trials import Trial, conclude

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

__all__ = ["Record", "best_of", "failure_of", "is_counted", "record_of", "records_of"]


@dataclass(frozen=True)
class Record:
    """A trial of a study. `status` is one of running, feasible, infeasible, undecided, failed, lost and withdrawn."""

    number: int
    params: Mapping[str, Any]
    status: str
    value: float | None
    readings: Mapping[str, float | str]  # a number, or "violated", "satisfied", "unknown"
    broke: tuple[str, ...]  # the constraints known to be broken
    kind: str | None  # of the failure, if it failed
    reason: str | None
    seconds: float | None  # of wall-clock time that the evaluation took
    log: str  # the tail of what the evaluation printed
    started: datetime | None
    ended: datetime | None
    retry_of: int | None
    forecast: Mapping[str, Any] | None = None  # what was expected of it, as a `cbob.trials.Forecast` writes it

    @property
    def finished(self) -> bool:
        """Whether it counts towards the budget."""
        return self.status not in ("running", LOST, WITHDRAWN)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "number": self.number,
            "status": self.status,
            "value": self.value,
            "params": dict(self.params),
            "readings": dict(self.readings),
            "broke": list(self.broke),
            "kind": self.kind,
            "reason": self.reason,
            "seconds": self.seconds,
            "started": None if self.started is None else self.started.isoformat(timespec="milliseconds"),
            "ended": None if self.ended is None else self.ended.isoformat(timespec="milliseconds"),
            "retry_of": self.retry_of,
            "forecast": self.forecast,
            "log": self.log,
        }


def _forecast(frozen: FrozenTrial) -> Mapping[str, Any] | None:
    from cbob.integrations.optuna.history import Seen

    forecast = Seen(frozen).forecast if FORECAST in frozen.system_attrs else None
    return None if forecast is None else forecast.to_dict()


def failure_of(frozen: FrozenTrial) -> tuple[str | None, str | None]:
    """The kind and the reason of a trial that failed; (None, None) of one that is complete or still runs."""
    if frozen.state.name not in ("FAIL", "PRUNED"):
        return None, None
    stored = frozen.user_attrs.get(FAILURE)
    if isinstance(stored, Mapping):
        return str(stored.get("kind") or "failed"), str(stored.get("reason") or "")
    if frozen.user_attrs.get(VIOLATED) or frozen.user_attrs.get(READINGS):
        return None, None  # a limit broke, which explains why there is no value
    return "failed", "nothing was told"


def is_counted(frozen: FrozenTrial) -> bool:
    """Whether a trial is finished and counts towards the budget."""
    return frozen.state.is_finished() and failure_of(frozen)[0] != LOST


def record_of(frozen: FrozenTrial, constraints: Sequence[Constraint]) -> Record:
    """What a stored trial says, judged by the constraints of its study."""
    kind, reason = failure_of(frozen)
    attrs = frozen.user_attrs
    status, readings, broke = "running", dict[str, float | str](), tuple[str, ...]()
    if kind == LOST:
        status = WITHDRAWN if reason == WITHDRAWN else LOST
    elif frozen.state.is_finished():
        told = _told(frozen, constraints, reason if kind is None else f"{kind}: {reason}")
        status = told.status.value
        readings = {name: reading.to_json() for name, reading in told.readings.items()}
        broke = tuple(limit.name for limit in constraints if told.readings[limit.name].holds(limit) is False)
    return Record(
        number=frozen.number,
        params=dict(frozen.params),
        status=status,
        value=frozen.value if frozen.state.name == "COMPLETE" else None,
        readings=readings,
        broke=broke,
        kind=kind,
        reason=reason or None,
        seconds=attrs.get(SECONDS),
        log=str(attrs.get(LOG, "")),
        started=frozen.datetime_start,
        ended=frozen.datetime_complete,
        retry_of=frozen.system_attrs.get(CLAIM, {}).get("retry_of"),
        forecast=_forecast(frozen),
    )


def records_of(frozen: Iterable[FrozenTrial], constraints: Sequence[Constraint]) -> list[Record]:
    """All stored trials, in order."""
    return [record_of(trial, constraints) for trial in frozen]


def best_of(records: Iterable[Record], direction: str) -> Record | None:
    """The best trial known to be feasible; None while there is none."""
    sign = -1.0 if direction == "maximize" else 1.0
    feasible = [record for record in records if record.status == "feasible"]
    return min(feasible, key=lambda record: sign * (record.value or 0.0), default=None)


def _told(frozen: FrozenTrial, constraints: Sequence[Constraint], failure: str | None) -> Trial:
    """The engine's own view of a finished trial, which decides whether it is feasible."""
    attrs = frozen.user_attrs
    known = [constraint.name for constraint in constraints]
    value = frozen.value if frozen.state.name == "COMPLETE" else None
    fresh = Trial(frozen.number, dict(frozen.params))
    given = {name: reading for name, reading in dict(attrs.get(READINGS, {})).items() if name in known}
    failed = failure if failure is not None else (None if value is not None else True)
    try:
        return conclude(
            fresh,
            constraints,
            value,
            readings=given,
            violated=[name for name in attrs.get(VIOLATED, ()) if name in known],
            satisfied=[name for name in attrs.get(SATISFIED, ()) if name in known],
            failed=failed,
        )
    except TrialError as error:  # written by something else than cbob, or a value that is not finite
        return conclude(fresh, constraints, failed=str(error))
