"""The keeper: a small process between the study and its evaluations, one for each that runs at a time.

It loads the user's function once, then forks a process for each evaluation, watches over it and sees to it that nothing of it
is left. It has no threads of its own, so that forking is safe; it is no part of the driver's session, so that no signal from
a terminal reaches it; and when the driver dies, in whatever way, it ends the evaluation and itself.
"""

from __future__ import annotations

import fcntl
import gc
import os
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from cbob.constraints import Constraint
from cbob.errors import TargetError
from cbob.study import tree
from cbob.study.call import explained
from cbob.study.child import Fresh, SharedBox, become_ordinary, carry_out, head, interpreter, load_reason, read_report
from cbob.study.limits import Limits
from cbob.study.log import SEARCHED, Log, Tail
from cbob.study.report import Failure, FailureKind, Report
from cbob.study.result import reported
from cbob.study.target import Command, Function, Target
from cbob.study.watch import Orphaned, Watch

__all__ = ["Order", "Setup", "main"]

BUSY = "busy"  # answer of a keeper that must not fork, because loading started threads or processes
PIPE = 2**20  # bytes that a pipe holds, where the system allows it


@dataclass(frozen=True)
class Setup:
    """All that a keeper has to know, once."""

    target: Target
    constraints: tuple[Constraint, ...]
    limits: Limits
    workdir: Path
    fork: bool  # or a fresh interpreter for each evaluation
    path: tuple[str, ...]  # where to import from
    token: str
    driver: int


@dataclass(frozen=True)
class Order:
    """One evaluation."""

    params: Mapping[str, Any]
    log_file: Path | None


def main(descriptor: int) -> None:
    """Serve the driver at the other end of this socket until it is gone."""
    os.set_inheritable(descriptor, False)
    control = Connection(descriptor)
    with suppress(EOFError, OSError, Orphaned, SystemExit):
        keeper = Keeper(control, control.recv())
        try:
            trouble = keeper.load()
            control.send(trouble)
            if trouble is None:
                keeper.serve()
        finally:
            tree.end(lambda: _others(keeper.setup.token), polite=0.0)
            shutil.rmtree(keeper.folder, ignore_errors=True)
    os._exit(0)  # whatever threads the user's module has started


class Keeper:
    def __init__(self, control: Connection, setup: Setup) -> None:
        self.control = control
        self.setup = setup
        self.folder = Path(tempfile.mkdtemp(prefix="cbob-"))
        self.box = SharedBox()
        self.function: Callable[[dict[str, Any]], object] | None = None
        tree.become_subreaper()
        _restrain(setup.limits)

    def load(self) -> Report | str | None:
        """Load the function if it is to be forked: None, or what came of it."""
        target = self.setup.target
        if self.setup.fork and isinstance(target, Function):
            try:
                with _ending_with(self.setup.driver):
                    os.chdir(self.setup.workdir)
                    self.function = target.load()
            except BaseException as error:
                return explained(FailureKind.LOAD, load_reason(target, error), error)
            if threading.active_count() > 1 or tree.descendants(self.setup.token):
                return BUSY
            gc.freeze()  # what is loaded now stays shared: collecting garbage in a fork does not copy it
        self.wake, self._woken = os.pipe()
        for end in (self.wake, self._woken):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # by way of `main`, which ends the evaluation
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        return None

    def serve(self) -> None:
        _print_nowhere()
        while os.getppid() == self.setup.driver:
            if self.control.poll(1.0):
                order = self.control.recv()
                if isinstance(order, Order):  # and not a stop for an evaluation that has ended
                    self.control.send(self.evaluate(order))

    def evaluate(self, order: Order) -> Report:
        start = time.monotonic()
        log = Log(order.log_file)
        try:
            report = self._evaluate(order, log)
        finally:
            log.close()
        return replace(report, seconds=time.monotonic() - start, log=log.tail.text, log_file=log.path)

    def _evaluate(self, order: Order, log: Log) -> Report:
        output = self.folder / "result.json"
        output.unlink(missing_ok=True)
        self.box.clear()
        stdout = Tail(SEARCHED)
        try:
            run = self._task(order, output)
        except TargetError as error:
            return Report.failed(FailureKind.LOAD, str(error))
        readers: dict[int, Callable[[bytes], None]] = {}
        writers = []
        is_command = isinstance(self.setup.target, Command)
        for _ in range(2 if is_command else 1):  # a function's stdout and stderr stay in their order
            reader, writer = os.pipe()
            os.set_blocking(reader, False)
            with suppress(OSError):
                fcntl.fcntl(writer, getattr(fcntl, "F_SETPIPE_SZ", 1031), PIPE)
            readers[reader] = log.add
            writers.append(writer)
        if is_command:
            first = next(iter(readers))
            readers[first] = partial(_both, log, stdout)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # threads of BLAS, which know how to fork
                me, pid = os.getpid(), os.fork()
            if pid == 0:
                self._child(run, (writers[0], writers[-1]), readers, me)
            for writer in writers:
                os.close(writer)
            setup = self.setup
            watch = Watch(pid, readers, setup.limits, self.control, self.wake, setup.driver, setup.token)
            failure = watch.run()
        finally:
            for reader in readers:
                os.close(reader)
        return self._judged(failure, output, stdout)

    def _task(self, order: Order, output: Path) -> Callable[[], NoReturn]:
        """What the forked process does."""
        target, setup = self.setup.target, self.setup
        if isinstance(target, Command):
            import json

            arguments = target.filled(order.params, str(output))
            params = json.dumps(dict(order.params), default=str)
            environment = dict(os.environ) | {"CBOB_OUTPUT": str(output), "CBOB_PARAMS": params}
            return lambda: os.execvpe(arguments[0], arguments, environment)
        if self.function is None:
            task = self.folder / "task.pickle"
            task.write_bytes(pickle.dumps(Fresh(target, order.params, setup.constraints, output)))
            code = f"from cbob.study.child import fresh_main; fresh_main({str(task)!r})"
            arguments = interpreter(setup.path, code)
            return lambda: os.execv(arguments[0], arguments)
        function = self.function
        return lambda: carry_out(function, order.params, setup.constraints, self.box)  # type: ignore[return-value]

    def _child(
        self, run: Callable[[], NoReturn], streams: tuple[int, int], readers: Mapping[int, object], keeper: int
    ) -> NoReturn:
        try:
            os.setsid()
            tree.die_with(keeper)
            become_ordinary(streams, (*readers, self.wake, self._woken, self.control.fileno()))
            try:
                os.chdir(self.setup.workdir)
            except OSError as error:
                self.box.put(Report.failed(FailureKind.LOAD, f"the working directory cannot be entered: {error}"))
                os._exit(0)
            try:
                run()
            except OSError as error:
                name = self.setup.target.name
                self.box.put(Report.failed(FailureKind.LOAD, f"the command {name!r} cannot be run: {error.strerror}"))
                os._exit(0)
        finally:
            os._exit(1)

    def _judged(self, failure: Failure | None, output: Path, stdout: Tail) -> Report:
        """What the process left behind, set against how it ended."""
        target = self.setup.target
        told = self.box.take()
        if told is None and isinstance(target, Function):
            told = read_report(head(output)) if self.function is None else None
            if told is None and failure is None:
                failure = Failure(FailureKind.EXIT, "its process ended with exit code 0 before there was a result")
        elif told is None:
            told = reported(head(output), stdout, self.setup.constraints)
        if failure is None:
            assert told is not None
            return told
        # An end like this leaves the objective in doubt; a limit that is known to be broken stays so.
        return Report(failure=failure) if told is None else replace(told, value=None, failure=failure)


def _others(token: str) -> list[Any]:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return tree.descendants(token)


def _restrain(limits: Limits) -> None:
    """No core files. And far beyond the limit of memory, an allocation fails at once: before it is next looked at, or needed.

    RLIMIT_DATA counts what can be written to, unlike RLIMIT_AS not the address space that Java or CUDA merely reserve.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if limits.bytes is not None and tree.LINUX:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = 2 * limits.bytes + 2**30
        if hard == resource.RLIM_INFINITY or soft < hard:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _both(log: Log, tail: Tail, data: bytes) -> None:
    log.add(data)
    tail.add(data)


@contextmanager
def _ending_with(driver: int) -> Iterator[None]:
    """Loading may take for ever, and nobody reads orders meanwhile: look now and then whether the driver is there."""

    def look(*_: object) -> None:
        if os.getppid() != driver:
            os._exit(0)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, 1.0, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _print_nowhere() -> None:
    """Until now the driver listened, for the sake of loading."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):
            stream.flush()
    nothing = os.open(os.devnull, os.O_RDWR)
    for place in range(3):
        os.dup2(nothing, place)
    os.close(nothing)
