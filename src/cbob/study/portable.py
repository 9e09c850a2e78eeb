"""Watches over an evaluation where there is neither fork nor sockets to wait on (Windows): from a thread of the driver itself.

A fresh interpreter or the command runs for each evaluation. It is slower than a keeper and holds less: an evaluation
outlives a driver that is killed, and a process that both left its parent and changed its environment escapes.
"""

from __future__ import annotations

import json
import os
import pickle
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import IO, Any

import psutil

from cbob.constraints import Constraint
from cbob.errors import TargetError
from cbob.study import tree
from cbob.study.child import Fresh, head, interpreter, read_report
from cbob.study.limits import Limits, memory_text
from cbob.study.log import SEARCHED, Log, Tail
from cbob.study.report import Failure, FailureKind, Report
from cbob.study.result import reported
from cbob.study.target import Command, Target

__all__ = ["Portable"]

LOOK = 0.02  # seconds between looks at a process
CHUNK = 2**16


class Portable:
    """Stands in for `Driver`: one evaluation at a time."""

    def __init__(
        self, target: Target, constraints: tuple[Constraint, ...], limits: Limits, workdir: Path, path: tuple[str, ...]
    ) -> None:
        self._target, self._constraints, self._limits, self._workdir = target, constraints, limits, workdir
        self._path = path
        self._folder = Path(tempfile.mkdtemp(prefix="cbob-"))
        self._token = secrets.token_hex(16)
        self._stop = threading.Event()

    def start(self, *, fork: bool) -> None:
        """Nothing is kept warm."""

    def stop(self) -> None:
        self._stop.set()

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def evaluate(self, params: Mapping[str, Any], log_file: Path | None) -> tuple[Report, bool]:
        """The report, and whether this object can go on."""
        start = time.monotonic()
        log = Log(log_file)
        try:
            report = self._evaluate(params, log)
        finally:
            log.close()
        seconds = time.monotonic() - start
        return replace(report, seconds=seconds, log=log.tail.text, log_file=log.path), not self._stop.is_set()

    def _evaluate(self, params: Mapping[str, Any], log: Log) -> Report:
        output = self._folder / "result.json"
        output.unlink(missing_ok=True)
        environment = dict(os.environ) | {
            tree.MARK: self._token,
            "CBOB_OUTPUT": str(output),
            "CBOB_PARAMS": json.dumps(dict(params), default=str),
        }
        stdout = Tail(SEARCHED)
        try:
            process = subprocess.Popen(
                self._arguments(params, output),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._workdir,
                env=environment,
                bufsize=0,
            )
        except TargetError as error:
            return Report.failed(FailureKind.LOAD, str(error))
        except OSError as error:
            return Report.failed(FailureKind.LOAD, f"{self._target.name!r} cannot be run: {error}")
        lock = threading.Lock()
        assert process.stdout is not None and process.stderr is not None
        readers = [
            threading.Thread(target=_read, args=(stream, partial(_add, lock, tails)), daemon=True)
            for stream, tails in ((process.stdout, (log, stdout)), (process.stderr, (log,)))
        ]
        for reader in readers:
            reader.start()
        failure = self._watched(process)
        for reader in readers:
            reader.join(tree.PATIENCE)
        if isinstance(self._target, Command):
            told = reported(head(output), stdout, self._constraints)
        else:
            told = read_report(head(output)) or Report.failed(FailureKind.EXIT, "its process ended before there was a result")
        return told if failure is None else replace(told, value=None, failure=failure)

    def _arguments(self, params: Mapping[str, Any], output: Path) -> list[str]:
        if isinstance(self._target, Command):
            return self._target.filled(params, str(output))
        task = self._folder / "task.pickle"
        task.write_bytes(pickle.dumps(Fresh(self._target, params, self._constraints, output)))
        return interpreter(self._path, f"from cbob.study.child import fresh_main; fresh_main({str(task)!r})")

    def _watched(self, process: subprocess.Popen[bytes]) -> Failure | None:
        """Wait for the end, or bring it about."""
        failure = None
        seen: dict[int, psutil.Process] = {}
        deadline = inf if self._limits.seconds is None else time.monotonic() + self._limits.seconds
        try:
            while process.poll() is None and failure is None:
                with suppress(psutil.Error):
                    root = psutil.Process(process.pid)
                    seen |= {child.pid: child for child in (root, *root.children(recursive=True))}
                limit = self._limits.bytes
                if limit is not None and (used := tree.used(seen.values(), limit)) > limit:
                    reason = f"it used {memory_text(used)} of memory; the limit is {memory_text(limit)}"
                    failure = Failure(FailureKind.MEMORY, reason)
                elif time.monotonic() >= deadline:
                    failure = Failure(FailureKind.TIMEOUT, f"it took longer than {self._limits.seconds:g} s")
                elif self._stop.wait(LOOK):
                    failure = Failure(FailureKind.STOPPED, "the study ended it")
        finally:
            polite = self._limits.grace if failure is not None and failure.kind is FailureKind.TIMEOUT else 0.0
            tree.end(lambda: _alive(process, seen), polite=polite)
            tree.end(lambda: tree.marked(self._token), polite=0.0)  # what had left its parent
        code = process.poll()
        if failure is not None or code == 0:
            return failure
        if code is None:
            return Failure(FailureKind.LOST, "its process could not be ended")
        # A fault on Windows ends with its NTSTATUS, 0xC0000005 for one; elsewhere with the signal's negative.
        crashed = code < 0 or code >= 0x80000000
        return Failure(FailureKind.CRASH if crashed else FailureKind.EXIT, f"its process ended with exit code {code}")


def _alive(process: subprocess.Popen[bytes], seen: Mapping[int, psutil.Process]) -> list[psutil.Process]:
    process.poll()  # take note of its end
    found = []
    for child in seen.values():
        with suppress(psutil.Error):
            if child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
                found.append(child)
    return found


def _read(stream: IO[bytes], add: Any) -> None:
    with stream, suppress(OSError, ValueError):
        while data := stream.read(CHUNK):
            add(data)


def _add(lock: threading.Lock, tails: tuple[Log | Tail, ...], data: bytes) -> None:
    with lock:
        for tail in tails:
            tail.add(data)
