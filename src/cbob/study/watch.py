"""Watches one evaluation from its start until no process of it is left: time, memory, output, orders."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from multiprocessing.connection import Connection

import psutil

from cbob.study import tree
from cbob.study.limits import Limits, memory_text
from cbob.study.report import Failure, FailureKind

__all__ = ["Orphaned", "Watch"]

SAMPLE = 0.05  # seconds between looks at the memory in use ...
SHARE = 20  # ... or more, where looking would take more than one part in so many of a core
CHECK = 0.5  # seconds between looks whether the driver is still there
CHUNK = 2**20  # bytes read at once


class Orphaned(Exception):  # noqa: N818
    """The driver is gone."""


@dataclass
class Watch:
    """One evaluation as its keeper sees it. `run` returns its failure, or None if its process ended well."""

    pid: int
    streams: Mapping[int, Callable[[bytes], None]]  # file descriptors of pipes, and who wants what comes out
    limits: Limits
    control: Connection  # from the driver: anything that comes is the order to stop
    wake: int  # readable once a child has ended
    driver: int
    token: str
    status: int | None = None  # how the process ended, as waitpid says it
    failure: Failure | None = None
    _childless: bool = False

    def run(self) -> Failure | None:
        try:
            self._watch()
        finally:
            polite = tree.POLITE if self.failure is None else 0.0
            tree.end(self._left, polite=polite)
            for stream in self.streams:
                self._drain(stream)
        return self.failure or self._verdict()

    def _watch(self) -> None:
        start = time.monotonic()
        deadline = inf if self.limits.seconds is None else start + self.limits.seconds
        look = inf if self.limits.bytes is None else start + SAMPLE
        kill = give_up = inf
        with selectors.DefaultSelector() as selector:
            for descriptor in (*self.streams, self.wake, self.control.fileno()):
                selector.register(descriptor, selectors.EVENT_READ)
            while True:
                now = time.monotonic()
                soonest = min(deadline, look, kill, give_up, now + CHECK)
                for key, _ in selector.select(max(0.0, soonest - now)):
                    if key.fd == self.wake:
                        os.read(self.wake, CHUNK)
                    elif key.fd == self.control.fileno():
                        self._ordered()
                        deadline = 0.0
                    elif not self._read(key.fd):
                        selector.unregister(key.fd)
                self._reap()
                if self.status is not None:
                    return
                if os.getppid() != self.driver:
                    raise Orphaned
                now = time.monotonic()
                if now >= deadline:
                    if self.failure is None:
                        self.failure = Failure(FailureKind.TIMEOUT, f"it took longer than {self.limits.seconds:g} s")
                    tree.signal_all(tree.descendants(self.token), signal.SIGTERM)
                    deadline = look = inf
                    kill = now + self.limits.grace
                if now >= look:
                    found = tree.descendants(self.token)
                    assert self.limits.bytes is not None
                    bytes_used = tree.used(found, self.limits.bytes)
                    if bytes_used > self.limits.bytes:
                        allowed = memory_text(self.limits.bytes)
                        reason = f"it used {memory_text(bytes_used)} of memory; the limit is {allowed}"
                        self.failure = Failure(FailureKind.MEMORY, reason)
                        tree.signal_all(found, signal.SIGTERM)  # Python says in the log where it was
                        deadline, kill, look = inf, now + SAMPLE, inf
                    else:
                        look = now + max(SAMPLE, SHARE * (time.monotonic() - now))
                if now >= kill:
                    tree.signal_all(tree.descendants(self.token), signal.SIGKILL)
                    kill = now + SAMPLE  # and whatever was started meanwhile
                    give_up = min(give_up, now + tree.PATIENCE)
                if now >= give_up:  # stuck in the kernel, where no signal gets
                    return

    def _ordered(self) -> None:
        try:
            self.control.recv()
        except (EOFError, OSError):
            raise Orphaned from None
        self.failure = self.failure or Failure(FailureKind.STOPPED, "the study ended it")

    def _reap(self) -> None:
        """Take note of the children that have ended."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == self.pid:
                    self.status = status
                if pid == 0:
                    return
        except ChildProcessError:
            self._childless = True

    def _left(self) -> list[psutil.Process]:
        self._reap()
        return [] if self._childless and tree.LINUX else tree.descendants(self.token)

    def _read(self, descriptor: int) -> bool:
        """Pass on what is there now; False at the end of the stream."""
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return True
        self.streams[descriptor](data)
        return bool(data)

    def _drain(self, descriptor: int) -> None:
        with suppress(BlockingIOError):
            for _ in range(64):  # more than a pipe holds
                data = os.read(descriptor, CHUNK)
                self.streams[descriptor](data)
                if not data:
                    return

    def _verdict(self) -> Failure | None:
        if self.status is None:
            return Failure(FailureKind.LOST, "its process could not be ended")
        code = os.waitstatus_to_exitcode(self.status)
        if code < 0:
            number = -code
            name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
            hint = " from outside; the kernel does that when memory runs out" if number == signal.SIGKILL else ""
            return Failure(FailureKind.CRASH, f"killed by {name} ({signal.strsignal(number)}){hint}")
        return None if code == 0 else Failure(FailureKind.EXIT, f"its process ended with exit code {code}")
