"""What an objective function, or whoever runs it, knows of a trial beside its value: kept with the trial as user attributes.

cbob:readings    {"fuel": 41.5, "noise": null}   raw readings; null is one that was taken and failed
cbob:violated    ["size"]                        limits known to have broken
cbob:satisfied   ["accuracy"]                    limits known to have held
cbob:failure     {"kind": "timeout", "reason": "no answer within 30 s"}
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from optuna.study import Study
from optuna.trial import TrialState

from cbob.errors import TrialError, real, shown

__all__ = ["FAILURE", "LOST", "READINGS", "SATISFIED", "VIOLATED", "Attributed", "mark_lost", "report"]

READINGS, VIOLATED, SATISFIED, FAILURE = "cbob:readings", "cbob:violated", "cbob:satisfied", "cbob:failure"
LOST = "lost"  # the kind of a failure that says nothing of the point: the worker died, not the experiment


class Attributed(Protocol):
    """An `optuna.trial.Trial`, as far as it matters here."""

    @property
    def user_attrs(self) -> dict[str, Any]: ...

    def set_user_attr(self, key: str, value: Any) -> None: ...


def report(
    trial: Attributed,
    *,
    readings: Mapping[str, object] | None = None,
    violated: str | Iterable[str] = (),
    satisfied: str | Iterable[str] = (),
    kind: str | None = None,
    reason: str | None = None,
) -> None:
    """Keeps what is known of a trial that is still running, for `CBOBSampler` and for people; later calls add to earlier ones.

    readings    raw readings of constraints, in your units, by name
    violated    names of limits that broke without a reading
    satisfied   names of limits that held without a reading
    kind        what sort of failure it was, such as "timeout"; a trial of kind "lost" is as good as never run
    reason      the same in words
    """
    told: dict[str, Any] = {}
    if readings is not None:
        if not isinstance(readings, Mapping):
            raise TrialError(f"readings must map names to numbers, not be {shown(readings)}")
        taken = {_name(name): _reading(name, reading) for name, reading in readings.items()}
        told[READINGS] = {**_before(trial, READINGS, {}), **taken}
    for key, given in ((VIOLATED, violated), (SATISFIED, satisfied)):
        if names := _names(given, key.removeprefix("cbob:")):
            told[key] = list(dict.fromkeys([*_before(trial, key, []), *names]))
    if both := set(told.get(VIOLATED, _before(trial, VIOLATED, []))) & set(told.get(SATISFIED, _before(trial, SATISFIED, []))):
        raise TrialError(f"{', '.join(map(repr, sorted(both)))} cannot be both violated and satisfied")
    if kind is not None or reason is not None:
        for what, text in (("kind", kind), ("reason", reason)):
            if text is not None and not isinstance(text, str):
                raise TrialError(f"the {what} of a failure must be a text, not {shown(text)}")
        told[FAILURE] = {"kind": kind or "failed", "reason": reason or kind}
    for key, value in told.items():
        trial.set_user_attr(key, value)


def mark_lost(study: Study, number: int, *, reason: str = "its worker died") -> None:
    """Ends a running trial whose worker is gone, so that it is as good as never run."""
    trial_id = study._storage.get_trial_id_from_study_id_trial_number(study._study_id, number)
    study._storage.set_trial_user_attr(trial_id, FAILURE, {"kind": LOST, "reason": reason})
    study.tell(number, state=TrialState.FAIL)


def _before(trial: Attributed, key: str, nothing: Any) -> Any:
    return trial.user_attrs.get(key, nothing)


def _name(given: object) -> str:
    if not isinstance(given, str) or not given:
        raise TrialError(f"the name of a constraint must be a non-empty str, not {shown(given)}")
    return given


def _names(given: str | Iterable[str], what: str) -> list[str]:
    if isinstance(given, str):
        return [_name(given)]
    if not isinstance(given, Iterable):
        raise TrialError(f"{what} must be a list of the names of constraints, not {shown(given)}")
    return [_name(name) for name in given]


def _reading(name: object, given: object) -> float | None:
    """A number, or None for one that failed: JSON has no NaN."""
    value = math.nan if given is None else real(given, f"reading {name!r}", TrialError)
    return value if math.isfinite(value) else None
