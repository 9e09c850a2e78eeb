"""One try as it was seen: a frozen `Trial`, and `conclude`, which turns what a user tells into one.

Of each constraint a trial knows one of four things (`Kind`): its VALUE, only that it is VIOLATED or
SATISFIED, or nothing (UNKNOWN), which is never zero and never feasible.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import Any

from .constraints import Constraint
from .errors import StateError, TrialError, finite, listed, plain, real, shown

__all__ = ["SATISFIED", "UNKNOWN", "VIOLATED", "Forecast", "Kind", "Reading", "Status", "Trial", "conclude"]


class Kind(Enum):
    """What is known of one constraint of one trial."""

    VALUE = "value"
    VIOLATED = "violated"
    SATISFIED = "satisfied"
    UNKNOWN = "unknown"


class Status(Enum):
    """How a trial ended."""

    PENDING = "pending"  # asked for, not yet told
    FEASIBLE = "feasible"  # a value, and all constraints hold
    INFEASIBLE = "infeasible"  # a constraint is known to be broken
    FAILED = "failed"  # something went wrong, and no constraint is known to be the cause
    UNDECIDED = "undecided"  # a value, but some constraint is unknown


@dataclass(frozen=True)
class Reading:
    """What one trial says of one constraint, in the user's units."""

    kind: Kind
    value: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kind, Kind):
            raise TrialError(f"the kind of a reading must be a Kind, not {shown(self.kind)}")
        if self.kind is Kind.VALUE:
            object.__setattr__(self, "value", finite(self.value, "a measured reading", TrialError))
        elif self.value is not None:
            raise TrialError(f"a reading that is {self.kind.value} has no value, not {shown(self.value)}")

    @classmethod
    def measured(cls, value: float) -> Reading:
        """The reading of an instrument: a finite number."""
        return cls(Kind.VALUE, value)

    @classmethod
    def of(cls, given: object, what: str = "a reading") -> Reading:
        """A Reading, a Kind or its name, or a number; None, NaN and infinities are UNKNOWN."""
        if isinstance(given, Reading):
            return given
        if given is None:
            return UNKNOWN
        if isinstance(given, Kind | str):
            if given not in _UNMEASURED:
                kinds = "'violated', 'satisfied' or 'unknown'"
                raise TrialError(f"{what} must be a number, {kinds}, not {shown(given)}")
            return _UNMEASURED[given]
        value = real(given, what, TrialError)
        return cls.measured(value) if math.isfinite(value) else UNKNOWN

    def to_json(self) -> float | str:
        """A number, or the name of the kind: what `of` reads back."""
        return self.kind.value if self.value is None else self.value

    def holds(self, constraint: Constraint) -> bool | None:
        """Whether the constraint holds; None where that is not known."""
        if self.value is not None:
            return constraint.holds(self.value)
        return {Kind.SATISFIED: True, Kind.VIOLATED: False}.get(self.kind)


VIOLATED, SATISFIED, UNKNOWN = Reading(Kind.VIOLATED), Reading(Kind.SATISFIED), Reading(Kind.UNKNOWN)
_UNMEASURED: dict[object, Reading] = {reading.kind: reading for reading in (VIOLATED, SATISFIED, UNKNOWN)}
_UNMEASURED |= {reading.kind.value: reading for reading in (VIOLATED, SATISFIED, UNKNOWN)}


@dataclass(frozen=True)
class Forecast:
    """The numbers that led to a trial: what was expected of it when it was asked for.

    `limits` and `improvement` are promises, in standard deviations: Phi of them is the probability that the limit holds, or
    that the objective beats the best one known (None while there was none). `weighed` is what the strategy made of them.
    """

    limits: Mapping[str, float]
    improvement: float | None = None
    weighed: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in ("limits", "weighed"):
            numbers = {name: finite(z, f"the forecast of {name!r}", TrialError) for name, z in getattr(self, part).items()}
            object.__setattr__(self, part, MappingProxyType(numbers))
        if self.improvement is not None:
            object.__setattr__(self, "improvement", finite(self.improvement, "the forecast of an improvement", TrialError))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"limits": dict(self.limits), "improvement": self.improvement, "weighed": dict(self.weighed)}

    def __hash__(self) -> int:
        return hash((tuple(self.limits.items()), self.improvement, tuple(self.weighed.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        return Forecast.from_dict, (self.to_dict(),)  # a mapping proxy cannot be pickled

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Forecast:
        """The forecast that `to_dict` wrote."""
        try:
            return cls(**record)
        except (AttributeError, TypeError, ValueError) as error:
            raise StateError(f"not a stored forecast: {shown(record)} ({error})") from error


@dataclass(frozen=True)
class Trial:
    """One try: its parameters and, once told, what came of it. A new trial is PENDING."""

    id: int
    params: Mapping[str, Any]
    status: Status = Status.PENDING
    value: float | None = None  # the objective in the user's units
    readings: Mapping[str, Reading] = field(default_factory=dict)  # of each declared constraint, once told
    failure: str | None = None  # why it failed, if it did
    forecast: Forecast | None = None  # what was expected of it; None where surrogates had no say

    def __post_init__(self) -> None:
        if isinstance(self.id, bool) or not isinstance(self.id, int) or self.id < 0:
            raise TrialError(f"the id of a trial must be an int from 0, not {shown(self.id)}")
        if not isinstance(self.status, Status):
            raise TrialError(f"the status of trial {self.id} must be a Status, not {shown(self.status)}")
        if self.value is not None:
            value = finite(self.value, f"the objective of trial {self.id}", TrialError)
            object.__setattr__(self, "value", value)
        if not all(isinstance(reading, Reading) for reading in self.readings.values()):
            raise TrialError(f"the readings of trial {self.id} must be Readings, not {shown(self.readings)}")
        makes_sense = {
            Status.PENDING: self.value is None and self.failure is None and not self.readings,
            Status.FEASIBLE: self.ran,
            Status.UNDECIDED: self.ran,
            Status.FAILED: self.failure is not None,
        }
        if not makes_sense.get(self.status, True):
            told = f"value {self.value}, {len(self.readings)} readings and failure {self.failure!r}"
            raise TrialError(f"trial {self.id} cannot be {self.status.value} with {told}")
        for part in ("params", "readings"):
            object.__setattr__(self, part, MappingProxyType(dict(getattr(self, part))))

    def __hash__(self) -> int:
        return hash(self.id)  # the mappings cannot be hashed

    def __reduce__(self) -> tuple[Any, ...]:
        return Trial.from_dict, (self.to_dict(),)  # nor pickled

    @property
    def told(self) -> bool:
        """Whether its result is in."""
        return self.status is not Status.PENDING

    @property
    def feasible(self) -> bool:
        """Whether it returned a value with all constraints known to hold."""
        return self.status is Status.FEASIBLE

    @property
    def unexplained(self) -> bool:
        """Whether it failed without any declared constraint known to be broken."""
        return self.status is Status.FAILED

    @property
    def ran(self) -> bool:
        """Whether it returned a value and nothing failed."""
        return self.value is not None and self.failure is None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "id": self.id,
            "params": dict(self.params),
            "status": self.status.value,
            "value": self.value,
            "readings": {name: reading.to_json() for name, reading in self.readings.items()},
            "failure": self.failure,
            "forecast": self.forecast and self.forecast.to_dict(),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Trial:
        """The trial that `to_dict` wrote."""
        try:
            fields = dict(record)
            readings = {name: Reading.of(given) for name, given in fields.pop("readings").items()}
            foreseen = fields.pop("forecast", None)
            forecast = None if foreseen is None else Forecast.from_dict(foreseen)
            return cls(status=Status(fields.pop("status")), readings=readings, forecast=forecast, **fields)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StateError(f"not a stored trial: {record!r} ({error})") from error


NOTHING_TOLD = """nothing was told about trial {id}; tell one of
    a value           tell(trial, 0.28, constraints={{"size": 41000}})
    readings          tell(trial, constraints={{"size": 61000}})
    broken limits     tell(trial, violated=["size"])
    a failure         tell(trial, failed="out of memory")"""


def conclude(
    trial: Trial,
    constraints: Sequence[Constraint],
    value: object = None,
    *,
    readings: Mapping[str, object] | None = None,
    violated: str | Iterable[str] = (),
    satisfied: str | Iterable[str] = (),
    failed: object = None,
) -> Trial:
    """The trial with what was told of it, or a TrialError.

    A value or reading that is NaN or infinite is one that failed: it is dropped, and the failure names it.
    A constraint known to be broken explains any failure (INFEASIBLE); otherwise the trial FAILED.
    """
    if trial.told:
        raise TrialError(f"trial {trial.id} was told before: it is {trial.status.value}")
    told = {} if readings is None else readings
    if not isinstance(told, Mapping):
        raise TrialError(f"the readings of trial {trial.id} must map names to numbers, not be {shown(told)}")
    broken, kept = _names(violated, "violated"), _names(satisfied, "satisfied")
    _check_names(constraints, {"constraints": told, "violated": broken, "satisfied": kept})
    if both := [name for name in broken if name in kept]:
        raise TrialError(f"{listed(both)} cannot be both violated and satisfied")
    failed = plain(failed)
    if isinstance(failed, BaseException):
        failed = f"{type(failed).__name__}: {failed}".removesuffix(": ")
    if not isinstance(failed, bool | str | None):
        raise TrialError(f"failed must be True, False, a reason or an exception, not {shown(failed)}")

    reasons = [failed] if isinstance(failed, str) and failed else []
    objective = None if value is None else real(value, f"the objective of trial {trial.id}", TrialError)
    if objective is not None and not math.isfinite(objective):
        reasons.append(f"objective is {objective}")
        objective = None
    known: dict[str, Reading] = {}
    for constraint in constraints:
        what, given = f"reading {constraint.name!r}", told.get(constraint.name)
        reading = Reading.of(given, f"{what} of trial {trial.id}")
        if reading == UNKNOWN and not isinstance(given, Reading | Kind | str | None):
            reasons.append(f"{what} is {real(given, what, TrialError)}")
        for claim, names in ((VIOLATED, broken), (SATISFIED, kept)):
            if constraint.name in names:
                reading = _agreed(reading, claim, constraint)
        known[constraint.name] = reading
    holding = [known[constraint.name].holds(constraint) for constraint in constraints]

    failure = "; ".join(reasons) or (None if failed in (None, False) else "failed")
    if objective is None and failure is None and False not in holding:
        if True not in holding:
            raise TrialError(NOTHING_TOLD.format(id=trial.id))
        failure = "no objective was returned"
    if False in holding:
        status = Status.INFEASIBLE
    elif failure is not None:
        status = Status.FAILED
    else:
        status = Status.UNDECIDED if None in holding else Status.FEASIBLE
    return replace(trial, status=status, value=objective, readings=known, failure=failure)


def _names(given: str | Iterable[str], what: str) -> tuple[str, ...]:
    """One name or several as a tuple."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable) or isinstance(given, Mapping):
        raise TrialError(f"{what} must be a list of the names of constraints, not {shown(given)}")
    return tuple(given)


def _check_names(constraints: Sequence[Constraint], told: Mapping[str, Iterable[str]]) -> None:
    declared = [constraint.name for constraint in constraints]
    for where, names in told.items():
        if unknown := [name for name in names if name not in declared]:
            raise TrialError(f"unknown constraint {listed(unknown)} in {where}; declared: {listed(declared)}")


def _agreed(reading: Reading, claim: Reading, constraint: Constraint) -> Reading:
    """The reading, or the claim where it says nothing; a TrialError if they contradict each other."""
    holds = reading.holds(constraint)
    if holds is None:
        return claim
    if holds is not claim.holds(constraint):
        raise TrialError(
            f"{constraint.name!r} was told to be {claim.kind.value}, but its reading {reading.to_json()} "
            f"{'keeps' if holds else 'breaks'} the limit {str(constraint)!r}"
        )
    return reading
