"""The driver's end of a keeper: starts it, gives it orders, and cleans up should it die."""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cbob.constraints import Constraint
from cbob.study import tree
from cbob.study.child import interpreter
from cbob.study.keeper import Order, Setup
from cbob.study.limits import Limits
from cbob.study.log import KEPT, Tail
from cbob.study.report import FailureKind, Report
from cbob.study.target import Target

__all__ = ["Driver"]

LOOK = 0.2  # seconds between looks whether the study was stopped while a function loads
SLACK = 15.0  # seconds after which a keeper that should have answered is given up


class Driver:
    """One keeper: one evaluation at a time."""

    def __init__(
        self, target: Target, constraints: tuple[Constraint, ...], limits: Limits, workdir: Path, path: tuple[str, ...]
    ) -> None:
        self._target, self._constraints, self._limits, self._workdir = target, constraints, limits, workdir
        self._path = path
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Connection | None = None
        self._sending = threading.Lock()
        self._stopped = False

    def start(self, *, fork: bool) -> Report | str | None:
        """Start a keeper and have it load the function: None, "busy" if it must not fork, or the report of a failure."""
        self.close()
        self._token = secrets.token_hex(16)
        ours, theirs = socket.socketpair()
        with theirs:
            command = interpreter(self._path, f"from cbob.study.keeper import main; main({theirs.fileno()})")
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(os.environ) | {tree.MARK: self._token},
                start_new_session=True,
                pass_fds=[theirs.fileno()],
                bufsize=0,
            )
        self._control = Connection(ours.detach())
        setup = Setup(self._target, self._constraints, self._limits, self._workdir, fork, self._path, self._token, os.getpid())
        with self._sending, suppress(OSError):
            self._control.send(setup)
        assert self._process.stdout is not None
        with self._process.stdout as output:
            return self._loaded(output.fileno(), self._control)

    def evaluate(self, params: Mapping[str, Any], log_file: Path | None) -> tuple[Report, bool]:
        """The report, and whether the keeper can go on."""
        assert self._control is not None
        seconds = self._limits.seconds
        try:
            with self._sending:
                if self._stopped:
                    return Report.failed(FailureKind.STOPPED, "the study ended it"), False
                self._control.send(Order(params, log_file))
            if self._control.poll(None if seconds is None else seconds + self._limits.grace + SLACK):
                report: Report = self._control.recv()
                return report, not self._stopped
            reason = "the process that watched over it does not answer"
        except (EOFError, OSError):
            reason = f"the process that watched over it {self._death()}"
        return Report.failed(FailureKind.LOST, reason), False

    def stop(self) -> None:
        """End the evaluation that runs now. It may be called from any thread."""
        with self._sending:
            self._stopped = True
            if self._control is not None:
                with suppress(OSError):
                    self._control.send(None)

    def close(self) -> None:
        """End the keeper, and with it whatever it watches over."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            process, self._process = self._process, None
            try:
                process.wait(tree.POLITE + tree.PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
            if process.wait() != 0:  # it could not clean up
                tree.end(lambda: tree.marked(self._token), polite=0.0)

    def _loaded(self, output: int, control: Connection) -> Report | str | None:
        log = Tail(KEPT)
        deadline = time.monotonic() + self._limits.loading
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(control.fileno(), selectors.EVENT_READ)
            while (left := deadline - time.monotonic()) > 0:
                ready = {key.fd for key, _ in selector.select(min(left, LOOK))}
                if output in ready:
                    data = os.read(output, 2**16)
                    log.add(data)
                    if not data:
                        selector.unregister(output)
                elif ready:
                    return self._answer(control, log)
                elif self._stopped:
                    self._kill()  # it reads no orders now
                    return Report.failed(FailureKind.STOPPED, "the study ended it")
        self._kill()
        reason = f"{self._target.name!r} took longer than {self._limits.loading:g} s to load"
        return Report(failure=Report.failed(FailureKind.LOAD, reason).failure, log=log.text)

    def _answer(self, control: Connection, log: Tail) -> Report | str | None:
        try:
            answer: Report | str | None = control.recv()
        except (EOFError, OSError):
            death = f"{self._target.name!r} cannot be loaded: the process that loaded it {self._death()}"
            answer = Report.failed(FailureKind.LOAD, death)
        return replace(answer, log=log.text + answer.log) if isinstance(answer, Report) else answer

    def _kill(self) -> None:
        assert self._process is not None
        self._process.kill()

    def _death(self) -> str:
        assert self._process is not None
        try:
            code = self._process.wait(tree.PATIENCE)
        except subprocess.TimeoutExpired:
            return "is gone"
        return f"was killed by {signal.strsignal(-code)}" if code < 0 else f"ended with exit code {code}"
