"""Reads what an evaluation returned, printed or raised. Never trusts it, never raises.

A number is the objective. A dict has any of
    "value"                 the objective
    <constraint>            its reading: a number, or "violated", "satisfied", "unknown" (None too)
    "violated", "satisfied" the name of a constraint, or several: known to be broken or to hold, unmeasured
    "failed"                a reason: the evaluation says itself that it failed
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from cbob.constraints import Constraint
from cbob.errors import Infeasible, TrialError, listed, plain, real, shown
from cbob.study.log import Tail
from cbob.study.report import Failure, FailureKind, Report

__all__ = ["last_object", "read_infeasible", "read_result", "reported"]

RESERVED = ("value", "violated", "satisfied", "failed")
SHOWN = 5  # unknown names that a reason lists


def read_result(returned: object, constraints: Sequence[Constraint]) -> Report:
    """The report of an evaluation that came to its end and returned this."""
    try:
        return _read(returned, constraints)
    except Exception as error:  # objects of the user's may raise from any of their methods
        return Report.failed(FailureKind.BAD_RESULT, _told(error))


def read_infeasible(raised: Infeasible, constraints: Sequence[Constraint]) -> Report:
    """The report of an evaluation that raised `Infeasible`."""
    return read_result(dict(raised.readings) | {"violated": raised.names}, constraints)


def reported(file: bytes, stdout: Tail, constraints: Sequence[Constraint]) -> Report:
    """The report of a command, from the file it wrote or else from what it printed."""
    found = last_object(file.decode("utf-8", "replace") or stdout.text)
    if found is None:
        return Report.failed(FailureKind.MISSING, "it reported no JSON object, neither on a line of stdout nor in a file")
    return read_result(found, constraints)


def last_object(text: str) -> dict[str, Any] | None:
    """The JSON object that is the text, or its last line that is one."""
    for candidate in (text, *reversed(text.splitlines())):
        candidate = candidate.strip()
        if candidate.startswith("{") and candidate.endswith("}"):
            try:
                found = json.loads(candidate)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                return found
    return None


def _read(returned: object, constraints: Sequence[Constraint]) -> Report:
    returned = plain(returned)
    if returned is None:
        return Report.failed(FailureKind.MISSING, 'None was returned, not a number or a dict with "value"')
    if not isinstance(returned, Mapping):
        returned = {"value": real(returned, "the result", TrialError)}
    declared = {constraint.name: constraint for constraint in constraints}
    _check_keys(returned, declared)

    failed = [_failed(returned["failed"])] if returned.get("failed") not in (None, False) else []
    value, not_finite = None, []
    if returned.get("value") is not None:
        value = real(returned["value"], "the objective", TrialError)
        if not math.isfinite(value):
            not_finite.append(f"the objective is {value}")
            value = None
    readings: dict[str, float] = {}
    named = {sense: _names(returned.get(sense, ()), sense, declared) for sense in ("violated", "satisfied")}
    for name in declared.keys() & returned.keys() - set(RESERVED):
        given = plain(returned[name])
        if isinstance(given, str) and given in named:
            named[given].append(name)
        elif given is not None and given != "unknown":
            reading = real(given, f"the reading {name!r}", TrialError)
            if math.isfinite(reading):
                readings[name] = reading
            else:
                not_finite.append(f"the reading {name!r} is {reading}")

    holds = {name: declared[name].holds(reading) for name, reading in readings.items()}
    for sense, said in (("violated", False), ("satisfied", True)):
        if wrong := [name for name in named[sense] if holds.setdefault(name, said) is not said]:
            raise TrialError(f"{listed(wrong)} cannot be {sense}: the reading or another claim says the contrary")

    failure = None
    if failed:
        failure = Failure(FailureKind.REPORTED, failed[0])
    elif not_finite:
        failure = Failure(FailureKind.NAN, "; ".join(sorted(not_finite)))
    elif value is None and all(holds.values()):
        failure = Failure(FailureKind.MISSING, f'the result has no "value" and breaks no constraint: {shown(dict(returned))}')
    violated, satisfied = (tuple(n for n in declared if n in named[s] and n not in readings) for s in named)
    return Report(
        value=value,
        readings={name: readings[name] for name in declared if name in readings},
        violated=violated,
        satisfied=satisfied,
        failure=failure,
    )


def _check_keys(returned: Mapping[Any, Any], declared: Mapping[str, Constraint]) -> None:
    unknown = [key for key in returned if key not in declared and key not in RESERVED]
    if unknown:
        expected = f"the constraints ({listed(declared)}) and {listed(RESERVED)}"
        raise TrialError(f"the result has unknown keys {_some(unknown)}; expected are {expected}")


def _names(given: object, sense: str, declared: Mapping[str, Constraint]) -> list[str]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple | set | frozenset):
        raise TrialError(f"{sense!r} must be the name of a constraint or a list of names, not {shown(given)}")
    if unknown := [name for name in names if name not in declared]:
        raise TrialError(f"{_some(unknown)} in {sense!r} are no constraints; declared: {listed(declared)}")
    return list(names)


def _failed(given: object) -> str:
    if given is True:
        return "the evaluation reported a failure"
    if isinstance(given, str):
        return given or "the evaluation reported a failure"
    raise TrialError(f'"failed" must be a reason, not {shown(given)}')


def _some(names: Sequence[object]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return listed([name if isinstance(name, str) and len(name) < 80 else shown(name) for name in names[:SHOWN]]) + more


def _told(error: BaseException) -> str:
    try:
        return str(error) if isinstance(error, TrialError) else f"{type(error).__name__} while reading the result: {error}"
    except Exception:
        return f"{type(error).__name__} while reading the result"
