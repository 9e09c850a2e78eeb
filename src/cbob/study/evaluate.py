"""Evaluates one point at a time, safely: whatever the evaluation does, there is a `Report`, and nothing of it is left.

`Evaluator` keeps what is slow to start warm between evaluations; `evaluate` is for a single one.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cbob.constraints import Constraint, as_constraints
from cbob.errors import LimitsError, TargetError, shown
from cbob.study.call import call, explained
from cbob.study.child import load_reason
from cbob.study.limits import Limits
from cbob.study.report import FailureKind, Report
from cbob.study.target import Command, Function, as_target

if TYPE_CHECKING:
    from cbob.study.driver import Driver
    from cbob.study.portable import Portable

__all__ = ["Evaluator", "evaluate"]

STARTS = ("fork", "spawn", "portable")


class Evaluator:
    """Evaluates a function or a command, in as many threads at once as call `evaluate`.

    `start` says how a function gets its process: "fork" from one that has loaded it (the default on Linux), or "spawn", a
    fresh interpreter, for functions whose module must not be forked, as after CUDA was initialised; "portable" is a fresh
    interpreter without a keeper, which is all that Windows can do. With `isolate=False` a
    function is called in this very process: quick, but a crash is yours, and there are no limits and no log.
    """

    def __init__(
        self,
        target: object,
        *,
        constraints: str | Constraint | Iterable[str | Constraint] = (),
        limits: Limits | None = None,
        isolate: bool = True,
        workdir: str | Path | None = None,
        start: str | None = None,
    ) -> None:
        self.constraints = as_constraints(constraints)
        self.limits = Limits() if limits is None else limits
        if not isinstance(self.limits, Limits):
            raise LimitsError(f"limits must be Limits(seconds=..., memory=...), not {shown(limits)}")
        if start not in (None, *STARTS):
            raise TargetError(f"start must be one of {', '.join(STARTS)}, not {shown(start)}")
        self.workdir = Path.cwd() if workdir is None else Path(workdir).absolute()
        self._function: Callable[[dict[str, Any]], object] | None = None
        if not isolate and callable(target):
            self.target: Function | Command = Function(getattr(target, "__qualname__", repr(target)))
            self._function = target
        else:
            self.target = as_target(target)
        self._inside = not isolate and isinstance(self.target, Function)
        if self._inside and (self.limits.seconds is not None or self.limits.bytes is not None):
            raise LimitsError("limits need a process of its own for each evaluation: leave out isolate=False")
        self._fork = start == "fork" or (start is None and sys.platform == "linux")
        self._portable = start == "portable" or not hasattr(os, "fork")
        self._path = tuple(_import_path(self.workdir, isinstance(target, str)))
        self._lock = threading.Lock()
        self._idle: list[Driver | Portable] = []
        self._running: set[Driver | Portable] = set()
        self._closed = False

    def evaluate(self, params: Mapping[str, Any], *, log_file: str | Path | None = None) -> Report:
        """The report of one evaluation. It raises nothing that the evaluation raised, and ends within the limits."""
        if self._inside:
            return self._evaluate_inside(params)
        begun = time.monotonic()
        keeper = None
        try:
            keeper = self._keeper()
            if isinstance(keeper, Report):
                return replace(keeper, seconds=time.monotonic() - begun)
            report, alive = keeper.evaluate(dict(params), None if log_file is None else Path(log_file).absolute())
        except BaseException:  # the user's Ctrl-C, for one
            if keeper is not None and not isinstance(keeper, Report):
                self._done(keeper, alive=False)
            raise
        self._done(keeper, alive=alive)
        return report

    def stop(self) -> None:
        """End all evaluations that run now; their reports say "stopped"."""
        with self._lock:
            running = list(self._running)
        for keeper in running:
            keeper.stop()

    def close(self) -> None:
        """End whatever still runs, and the processes that were kept warm."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        self.stop()
        for keeper in idle:
            keeper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _keeper(self) -> Driver | Portable | Report:
        """A keeper that is ready, or the report of why there is none."""
        with self._lock:
            if self._closed:
                return Report.failed(FailureKind.STOPPED, "the evaluator is closed")
            if self._idle:
                warm = self._idle.pop()
                self._running.add(warm)
                return warm
        if self._portable:
            from cbob.study.portable import Portable as Kind
        else:
            from cbob.study.driver import Driver as Kind  # type: ignore[assignment]
        keeper: Driver | Portable = Kind(self.target, self.constraints, self.limits, self.workdir, self._path)
        with self._lock:
            self._running.add(keeper)
        try:
            trouble = keeper.start(fork=self._fork)
            if isinstance(trouble, str):  # loading starts threads or processes, which a forked process would not have
                self._fork = False
                trouble = keeper.start(fork=False)
                assert not isinstance(trouble, str)
        except BaseException:
            self._done(keeper, alive=False)
            raise
        if trouble is not None:
            self._done(keeper, alive=False)
            return trouble
        return keeper

    def _done(self, keeper: Driver | Portable, *, alive: bool) -> None:
        with self._lock:
            self._running.discard(keeper)
            keep = alive and not self._closed
            if keep:
                self._idle.append(keeper)
        if not keep:
            keeper.close()

    def _evaluate_inside(self, params: Mapping[str, Any]) -> Report:
        begun = time.monotonic()
        if self._function is None:
            assert isinstance(self.target, Function)
            sys.path[:0] = [entry for entry in self._path if entry not in sys.path]
            try:
                self._function = self.target.load()
            except Exception as error:
                return explained(FailureKind.LOAD, load_reason(self.target, error), error)
        report = call(self._function, params, self.constraints, catch=Exception)
        return replace(report, seconds=time.monotonic() - begun)


def evaluate(
    target: object,
    params: Mapping[str, Any],
    *,
    constraints: str | Constraint | Iterable[str | Constraint] = (),
    limits: Limits | None = None,
    isolate: bool = True,
    workdir: str | Path | None = None,
    start: str | None = None,
    log_file: str | Path | None = None,
) -> Report:
    """The report of a single evaluation; where there are more to come, an `Evaluator` is quicker."""
    options = {"constraints": constraints, "limits": limits, "isolate": isolate, "workdir": workdir, "start": start}
    with Evaluator(target, **options) as evaluator:  # type: ignore[arg-type]
        return evaluator.evaluate(params, log_file=log_file)


def _import_path(workdir: Path, named: bool) -> list[str]:
    """Where to import from: as here, and for "module:function" the working directory first."""
    here = [entry if entry else os.getcwd() for entry in sys.path]
    return [str(workdir), *here] if named else here
