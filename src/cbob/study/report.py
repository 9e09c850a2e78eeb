"""What came of one evaluation, whatever that was: a frozen `Report`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cbob.errors import StateError

__all__ = ["Failure", "FailureKind", "Report"]


class FailureKind(StrEnum):
    """How an evaluation failed. The words are stored and stay as they are."""

    EXCEPTION = "exception"  # it raised
    NAN = "nan"  # the objective or a reading is NaN or infinite
    MISSING = "missing"  # it ended well, but without an objective, and with no constraint known to be broken
    BAD_RESULT = "bad_result"  # what it returned is not of the agreed form
    REPORTED = "reported"  # a command said so itself: {"failed": "diverged"}
    EXIT = "exit"  # its process ended by itself, with an exit code, before there was a result
    CRASH = "crash"  # its process died of a signal: segmentation fault, abort, kill
    TIMEOUT = "timeout"  # it took too long
    MEMORY = "memory"  # it took too much memory
    LOAD = "load"  # the module, the function, the program or its folder is not there or does not load
    STOPPED = "stopped"  # the study ended it
    LOST = "lost"  # whoever watched over it died

    @property
    def about_the_point(self) -> bool:
        """Whether the failure says something of the parameters, and should be held against them."""
        return self not in (FailureKind.LOAD, FailureKind.STOPPED, FailureKind.LOST)


LONGEST = 1000  # characters of a reason


@dataclass(frozen=True)
class Failure:
    """Its kind, and one line that says why."""

    kind: FailureKind
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", FailureKind(self.kind))
        text = " ".join(self.reason.split())
        # No lone surrogates: a reason can be stored and printed anywhere.
        text = text.encode("utf-8", "backslashreplace").decode()
        object.__setattr__(self, "reason", text if len(text) <= LONGEST else text[: LONGEST - 3] + "...")

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


@dataclass(frozen=True)
class Report:
    """All that is known of one evaluation. What was measured is kept even where something failed."""

    _: KW_ONLY
    value: float | None = None  # the objective; finite
    readings: Mapping[str, float] = field(default_factory=dict)  # of constraints, finite
    violated: tuple[str, ...] = ()  # constraints that were named as broken, not measured
    satisfied: tuple[str, ...] = ()  # constraints that were named as holding, not measured
    failure: Failure | None = None
    seconds: float = 0.0  # wall-clock time
    log: str = ""  # the end of what was printed, stderr included
    log_file: Path | None = None  # where more of it is, if a file was asked for

    def __post_init__(self) -> None:
        object.__setattr__(self, "readings", MappingProxyType(dict(self.readings)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Report.from_dict, (self.to_dict(),)  # a mapping proxy cannot be pickled

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "value": self.value,
            "readings": dict(self.readings),
            "violated": list(self.violated),
            "satisfied": list(self.satisfied),
            "failure": None if self.failure is None else {"kind": str(self.failure.kind), "reason": self.failure.reason},
            "seconds": self.seconds,
            "log": self.log,
            "log_file": None if self.log_file is None else str(self.log_file),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Report:
        """The report that `to_dict` wrote."""
        try:
            fields = dict(record)
            failure, log_file = fields.pop("failure"), fields.pop("log_file")
            return cls(
                violated=tuple(fields.pop("violated")),
                satisfied=tuple(fields.pop("satisfied")),
                failure=None if failure is None else Failure(FailureKind(failure["kind"]), failure["reason"]),
                log_file=None if log_file is None else Path(log_file),
                **fields,
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StateError(f"not a stored report: {record!r} ({error})") from error

    @classmethod
    def failed(cls, kind: FailureKind, reason: str) -> Report:
        """A report of nothing but a failure."""
        return cls(failure=Failure(kind, reason))
