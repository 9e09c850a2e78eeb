"""What happens inside the process of one evaluation: forked from the keeper, or freshly started."""

from __future__ import annotations

import ctypes
import faulthandler
import json
import mmap
import os
import pickle
import random
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cbob.constraints import Constraint
from cbob.study.call import call, explained
from cbob.study.report import FailureKind, Report
from cbob.study.target import Function

__all__ = [
    "Fresh",
    "SharedBox",
    "become_ordinary",
    "carry_out",
    "fresh_main",
    "head",
    "interpreter",
    "load_reason",
    "read_report",
]

LARGEST = 2**20  # bytes of a file with a result
SHARED = 2**18  # bytes of shared memory for a report
OOM_SCORE = 500  # of 1000: where memory runs out, the kernel takes evaluations before the study


class Box(Protocol):
    """Where the process of an evaluation leaves its report."""

    def put(self, report: Report) -> None: ...


class SharedBox:
    """Memory shared with the forked process: there even after it closed every file it had."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, SHARED)

    def clear(self) -> None:
        self._memory[:8] = bytes(8)

    def put(self, report: Report) -> None:
        data = _packed(report)
        if len(data) > SHARED - 8:
            data = _packed(Report.failed(FailureKind.BAD_RESULT, f"the report takes {len(data)} bytes"))
        self._memory[8 : 8 + len(data)] = data
        self._memory[:8] = len(data).to_bytes(8, "little")  # last: until now there is no report

    def take(self) -> Report | None:
        size = int.from_bytes(self._memory[:8], "little")
        return read_report(self._memory[8 : 8 + size]) if 0 < size <= SHARED - 8 else None


@dataclass(frozen=True)
class FileBox:
    """A file, for a process that shares no memory."""

    path: Path

    def put(self, report: Report) -> None:
        self.path.write_bytes(_packed(report))


@dataclass(frozen=True)
class Fresh:
    """What a freshly started interpreter has to do, and where it leaves its report."""

    function: Function
    params: Mapping[str, Any]
    constraints: Sequence[Constraint]
    output: Path


def read_report(data: bytes) -> Report | None:
    """The report; None if it was garbled."""
    with suppress(ValueError, RecursionError):  # all errors of `from_dict` too
        return Report.from_dict(json.loads(data))
    return None


def head(path: Path) -> bytes:
    """The file, if it is there and of a sensible size."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(LARGEST)
    return b""


def interpreter(path: tuple[str, ...], code: str) -> list[str]:
    """The command that runs this code with this path in an interpreter of its own."""
    return [sys.executable, "-c", f"import sys; sys.path[:] = {list(path)!r}; {code}"]


def become_ordinary(streams: tuple[int, int], private: Iterable[int]) -> None:
    """From a fork of the keeper to a process as a user knows it: no input, own output, default signals."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, place in zip((nothing, *streams), range(3), strict=True):
        os.dup2(descriptor, place)
    for descriptor in {nothing, *streams, *private} - {0, 1, 2}:
        os.close(descriptor)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(str(OOM_SCORE))


def carry_out(
    function: Callable[[dict[str, Any]], object], params: Mapping[str, Any], constraints: Sequence[Constraint], box: Box
) -> None:
    """Call the function, leave the report in the box, and end this process: neither threads nor exit handlers hold it up."""
    me = os.getpid()
    _show_where_it_dies()
    _draw_anew()
    report = call(function, params, constraints)
    if os.getpid() == me:  # and not a process that the function forked and that returned from it as well
        deliver(report, box)
    os._exit(0)


def deliver(report: Report, box: Box) -> None:
    """Put what was printed where it belongs, then the report into the box."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):
            stream.flush()
    with suppress(BaseException):
        ctypes.CDLL(None).fflush(None)  # what libraries in C printed
    with suppress(OSError):
        os.write(2, report.log.encode("utf-8", "backslashreplace"))
    box.put(Report.from_dict(report.to_dict() | {"log": ""}))


def fresh_main(path: str) -> None:
    """The whole life of a freshly started interpreter."""
    fresh: Fresh = pickle.loads(Path(path).read_bytes())
    box = FileBox(fresh.output)
    try:
        function = fresh.function.load()
    except BaseException as error:
        deliver(explained(FailureKind.LOAD, load_reason(fresh.function, error), error), box)
        os._exit(0)
    carry_out(function, fresh.params, fresh.constraints, box)


def load_reason(function: Function, error: BaseException) -> str:
    """Why a function could not be loaded."""
    return f"{function.name!r} cannot be loaded: {type(error).__name__}: {error}"


def _show_where_it_dies() -> None:
    """A traceback into the log at a crash and at SIGTERM, the first sign of a timeout."""
    with suppress(BaseException):
        faulthandler.enable(file=2)
        if hasattr(faulthandler, "register"):
            faulthandler.register(signal.SIGTERM, file=2, chain=True)
            os.register_at_fork(after_in_child=lambda: faulthandler.unregister(signal.SIGTERM))
    with suppress(BaseException):  # lines come out one by one, so that few are lost in a crash
        sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]


def _draw_anew() -> None:
    """Forks share the state of their random generators: without this all evaluations would draw the same numbers."""
    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def _packed(report: Report) -> bytes:
    return json.dumps(report.to_dict()).encode()
