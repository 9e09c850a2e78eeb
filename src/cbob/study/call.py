"""Calls a user's function and reports what came of it. Whatever it raises is caught here."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from cbob.constraints import Constraint
from cbob.errors import Infeasible
from cbob.study.report import FailureKind, Report
from cbob.study.result import read_infeasible, read_result

__all__ = ["call", "explained"]


def call(
    function: Callable[[dict[str, Any]], object],
    params: Mapping[str, Any],
    constraints: Sequence[Constraint],
    *,
    catch: type[BaseException] = BaseException,
) -> Report:
    """The report, its log being the traceback if something was raised that is not `Infeasible`."""
    try:
        returned = function(dict(params))
    except Infeasible as raised:
        return read_infeasible(raised, constraints)
    except SystemExit as raised:
        return explained(FailureKind.EXIT, f"sys.exit({_text(raised.code, repr)}) was called", raised)
    except MemoryError as raised:
        return explained(FailureKind.MEMORY, _line(raised), raised)
    except catch as raised:
        return explained(FailureKind.EXCEPTION, _line(raised), raised)
    return read_result(returned, constraints)


def explained(kind: FailureKind, reason: str, raised: BaseException) -> Report:
    """A failure, with the user's part of the traceback as its log."""
    inner = raised.__traceback__.tb_next if raised.__traceback__ else None  # without the frame that caught it
    log = "(no traceback could be made)\n"
    with suppress(BaseException):  # an exception may fail to show itself
        log = "".join(traceback.format_exception(type(raised), raised, inner, limit=-40))
    return Report(failure=Report.failed(kind, reason).failure, log=log)


def _line(raised: BaseException) -> str:
    kind, text = type(raised).__name__, _text(raised, str)
    return f"{kind}: {text}" if text else kind


def _text(value: object, show: Callable[[object], str]) -> str:
    try:
        return show(value)
    except BaseException:
        return "(cannot be shown)"
