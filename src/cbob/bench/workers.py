"""Processes that carry out the tasks of a campaign, and end with it, whatever ended it."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from cbob.bench.execution import design_of, execute
from cbob.bench.problems import get
from cbob.bench.progress import Counters, Work
from cbob.bench.runs import Record, Run

__all__ = ["Design", "Outcome", "Task", "Workers", "workers"]

Design = tuple[str, int]  # the initial design of a problem at a seed
Task = Run | Design


@dataclass(frozen=True)
class Outcome:
    """What came of a task: a record if it was a run, or why it failed."""

    task: Task
    record: Record | None = None
    error: str | None = None


class Workers:
    """`jobs` fresh interpreters; one that dies costs its own task and is replaced."""

    def __init__(self, jobs: int, counters: Counters, scratch: Path, context: Any) -> None:
        self._start = context, counters, scratch
        self._idle: list[Connection] = []
        self._busy: dict[Connection, Task] = {}
        self._processes: dict[Connection, Any] = {}
        self._vacancies = jobs

    @property
    def busy(self) -> list[Task]:
        return list(self._busy.values())

    @property
    def free(self) -> int:
        return len(self._idle) + self._vacancies

    def begin(self, task: Task, kind: int) -> None:
        """Needs a free worker."""
        connection = self._idle.pop() if self._idle else self._hired()
        self._busy[connection] = task
        with suppress(OSError):  # it has died since: `outcomes` will find out
            connection.send((task, kind))

    def outcomes(self, patience: float) -> list[Outcome]:
        """What has ended by now, or within `patience` seconds."""
        ended = []
        for connection in wait(list(self._busy), patience):
            assert isinstance(connection, Connection)
            task = self._busy.pop(connection)
            try:
                ended.append(connection.recv())
                self._idle.append(connection)
            except (EOFError, OSError):
                process = self._processes.pop(connection)
                process.join()
                self._vacancies += 1
                ended.append(Outcome(task, error=f"its process died (exit code {process.exitcode})"))
        return ended

    def dismiss(self) -> None:
        """Whatever they are doing: their journals have all that is known."""
        for connection, process in self._processes.items():
            connection.close()
            process.join()

    def _hired(self) -> Connection:
        context, counters, scratch = self._start
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, counters, scratch), daemon=True)
        process.start()
        there.close()  # so that the end of the worker is the end of the connection
        self._processes[here] = process
        self._vacancies -= 1
        return here  # type: ignore[no-any-return]


@contextmanager
def workers(jobs: int, scratch: Path, kinds: int) -> Iterator[tuple[Workers, Counters]]:
    """They have one BLAS thread each: the environment has to say so before they import NumPy."""
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    context = multiprocessing.get_context("spawn")
    counters = Counters.shared(kinds, context)
    crew = Workers(jobs, counters, scratch, context)
    try:
        yield crew, counters
    finally:
        crew.dismiss()


def _serve(connection: Connection, counters: Counters, scratch: Path) -> None:
    """Tasks come in on a thread of their own, which sees the campaign end while the main thread is at work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the campaign, which then ends us
    tasks: queue.SimpleQueue[tuple[Task, int]] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                tasks.put(connection.recv())
        except (EOFError, OSError):
            os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        task, kind = tasks.get()
        try:
            outcome = Outcome(task, _carry_out(task, Work(counters, kind), scratch))
        except Exception as error:
            outcome = Outcome(task, error=f"{type(error).__name__}: {error}")
        connection.send(outcome)


def _carry_out(task: Task, work: Work, scratch: Path) -> Record | None:
    if isinstance(task, Run):
        return execute(task, scratch, work)
    design_of(get(task[0]), task[1], scratch, work)
    return None
