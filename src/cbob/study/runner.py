"""Runs a study: slots that each claim, evaluate and store one trial after another, and a watch over all drivers.

slot       claim -> evaluate -> store, in a thread of its own; what it evaluates runs in a process of its own
watch      a thread that shows our pulse, and buries the trials of drivers that died
main       waits, shows where the study stands, and ends it all on Ctrl-C
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from cbob.errors import CbobError, StorageError, StudyError
from cbob.study.book import Book, Claim, Nothing
from cbob.study.liveness import PULSE, Card, Watch
from cbob.study.names import DRIVER
from cbob.study.records import Record
from cbob.study.report import FailureKind, Report
from cbob.study.storage import Patience, settle
from cbob.study.tally import Standing, Tally

__all__ = ["Evaluates", "Progress", "Runner", "Times", "View"]

IDLE = (0.2, 1.0)  # seconds between looks for a trial to claim, while the rest of the budget runs elsewhere
TICK = 0.25  # seconds between two looks of the view
LOADS = 3  # tries to load what is evaluated
COUNT = 1.0  # seconds between two readings of the whole study for the view, which sees what the slots read as well ...
SHARE = 20  # ... or more, where reading would take more than one part in so many of the time


class Evaluates(Protocol):
    """Where evaluations run: `cbob.study.evaluate.Evaluator`, or one on a cluster."""

    def evaluate(self, params: Mapping[str, Any]) -> Report: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Progress:
    """What a view is shown now and then."""

    standing: Standing
    budget: int
    busy: int  # slots that evaluate
    workers: int
    elapsed: float  # seconds of this run
    rate: float | None  # finished trials a second, all drivers together
    left: float | None  # seconds
    asking: float  # share of the slots' time spent on claiming, the sampler included


class View(Protocol):
    """Whoever watches a run."""

    def finished(self, record: Record, progress: Progress) -> None: ...
    def said(self, words: str) -> None: ...
    def tick(self, progress: Progress) -> None: ...


@dataclass
class Times:
    """Where the time of the slots goes, in seconds."""

    asking: float = 0.0  # claiming a trial, which includes:
    proposing: float = 0.0  # the sampler
    evaluating: float = 0.0
    storing: float = 0.0
    waiting: float = 0.0

    @property
    def share_of_asking(self) -> float:
        total = self.asking + self.evaluating + self.storing
        return self.asking / total if total else 0.0


@dataclass
class Runner:
    """One driver's part in a study."""

    book: Book
    evaluator: Evaluates
    patience: Patience
    tally: Tally
    view: View
    card: Card
    watch: Watch
    budget: int
    times: Times = field(default_factory=Times)

    def __post_init__(self) -> None:
        self._stop = self.patience.stop
        self._asking = threading.Lock()
        self._changed = threading.Condition()
        self._busy = 0
        self._news = False  # whether anything happened that the view has yet to see
        self._error: BaseException | None = None
        self._ended: list[int] = []  # numbers of our trials that the view has yet to hear of
        self._began = time.monotonic()
        self._finished_before = 0

    def run(self) -> None:
        """Until the budget is used up, here or elsewhere. A KeyboardInterrupt ends it in good order and is raised again."""
        self._beat()
        self._bury()
        self._finished_before = self._progress().standing.finished
        slots = [threading.Thread(target=self._guarded, args=(self._slot,), daemon=True) for _ in range(self.card.workers)]
        watch = threading.Thread(target=self._guarded, args=(self._watch_over,), daemon=True)
        for thread in (watch, *slots):
            thread.start()
        try:
            self._show_until_ended(slots)
        except BaseException as error:
            self._end(slots, error)
            raise
        self._end(slots, None)
        if self._error is not None:
            raise self._error

    # ---- the slots ----

    def _slot(self) -> None:
        while not self._stop.is_set():
            start = time.monotonic()
            token = uuid.uuid4().hex
            with self._asking:
                if self._stop.is_set():
                    return
                asked = time.monotonic()
                claim = self.patience(lambda: self.book.claim(self.budget, token), "claim a trial")  # noqa: B023
                self.times.asking += time.monotonic() - asked
                self.times.proposing = self.book.proposing
            if claim is Nothing.DONE:
                return
            if not isinstance(claim, Claim):  # and wakes nobody: slots that wait would wake each other without end
                with self._changed:
                    self._changed.wait(random.uniform(*IDLE))
                self.times.waiting += time.monotonic() - start
                continue
            self._wake()
            self._evaluate(claim)

    def _wake(self) -> None:
        """Have the view see what changed, and slots that wait look again."""
        with self._changed:
            self._news = True
            self._changed.notify_all()

    def _evaluate(self, claim: Claim) -> None:
        with self._changed:
            self._busy += 1
        start = time.monotonic()
        try:
            report = self._report(claim)
            self.times.evaluating += time.monotonic() - start
            start = time.monotonic()
            self._store(claim, report)
        finally:
            self.times.storing += time.monotonic() - start
            with self._changed:
                self._busy -= 1
            self._wake()

    def _report(self, claim: Claim) -> Report:
        """What came of the evaluation. A process may be killed while it loads the function: that is tried again."""
        for _ in range(LOADS):
            report = self.evaluator.evaluate(claim.params)
            if report.failure is None or report.failure.kind is not FailureKind.LOAD:
                break
        return report

    def _store(self, claim: Claim, report: Report) -> None:
        kind = None if report.failure is None else report.failure.kind
        what = f"store the result of trial {claim.number}"
        if kind is FailureKind.STOPPED:
            self.patience(lambda: self.book.interrupt(claim), f"give trial {claim.number} back")
            return
        if kind is FailureKind.LOST:
            assert report.failure is not None
            reason = report.failure.reason
            self.patience(lambda: self.book.lose(claim, reason), what)
            self.view.said(f"trial {claim.number} was lost: {reason}")
        elif kind is FailureKind.LOAD:
            assert report.failure is not None
            self.patience(lambda: self.book.interrupt(claim), f"give trial {claim.number} back")
            raise StudyError(f"nothing can be evaluated: {report.failure.reason}\n{report.log}".rstrip())
        elif not self.patience(lambda: self.book.finish(claim, report), what):
            token = uuid.uuid4().hex
            kept = self.patience(lambda: self.book.adopt(claim, report, self.budget, token), what)
            how = "its result is stored as that of its retry" if kept else "its retry is under way elsewhere"
            self.view.said(f"trial {claim.number} was taken for lost while it ran: {how}")
        with self._changed:
            self._ended.append(claim.number)

    # ---- the watch ----

    def _watch_over(self) -> None:
        while not self._stop.wait(PULSE):
            self._beat()
            self._bury()

    def _beat(self, *, ended: bool = False) -> None:
        key, content = self.card.beat(ended=ended)
        book = self.book
        self.patience(lambda: book.storage.set_study_system_attr(book.study_id, key, content), "show that this driver lives")

    def _bury(self) -> None:
        def look() -> None:
            book = self.book
            cards = book.storage.get_study_system_attrs(book.study_id)
            running = book.drivers()
            drivers = running | {key.removeprefix(DRIVER) for key in cards if _is_open(key, cards[key])}
            dead = self.watch.dead(cards, drivers)
            book.alone = drivers - dead.keys() <= {book.driver}
            gone = {driver: reason for driver, reason in dead.items() if driver in running}
            for number in book.bury(gone) if gone else ():
                self.view.said(f"trial {number} was lost with its driver; it will be tried again")

        self.patience(look, "look for drivers that died")

    # ---- the main thread ----

    def _show_until_ended(self, slots: list[threading.Thread]) -> None:
        pause = COUNT
        while any(slot.is_alive() for slot in slots):
            with self._changed:
                self._changed.wait_for(lambda: self._news, TICK)
                self._news = False
            began = time.monotonic()
            if began - self.book.read_at > pause:
                self._show(read=True)
                pause = max(COUNT, SHARE * (time.monotonic() - began))
            elif self._ended:
                self._show()
        self._show(read=True)

    def _show(self, *, read: bool = False) -> None:
        """Show the view what was read last, or what is to be read now."""
        try:
            trials = self.book.trials() if read else self.book.latest
        except Exception:  # the storage is away, as the slots will say
            return
        with self._changed:
            ended = [number for number in self._ended if number < len(trials) and trials[number].state.is_finished()]
            self._ended = [number for number in self._ended if number not in ended]
        if not ended and not read:
            return
        if ended:
            settle(self.patience.address)  # what is shown as finished survives a power cut
        records = self.tally.records(trials)
        progress = self._progress(records)
        for number in ended:
            self.view.finished(records[number], progress)
        self.view.tick(progress)

    def _progress(self, records: list[Record] | None = None) -> Progress:
        if records is None:
            records = self.tally.records(self.patience(self.book.trials, "read the trials"))
        standing = self.tally.standing(records)
        elapsed = time.monotonic() - self._began
        done = standing.finished - self._finished_before
        rate = done / elapsed if done > 0 and elapsed > 0 else None
        return Progress(
            standing=standing,
            budget=self.budget,
            busy=self._busy,
            workers=self.card.workers,
            elapsed=elapsed,
            rate=rate,
            left=None if rate is None else max(self.budget - standing.finished, 0) / rate,
            asking=self.times.share_of_asking,
        )

    def _guarded(self, work: Any) -> None:
        """The first error of a thread ends the run, and is raised in the main thread."""
        try:
            work()
        except BaseException as error:
            if not (self._stop.is_set() and isinstance(error, StorageError) and self._error is not None):
                self._error = self._error or error
            self._stop.set()
            self.evaluator.close()

    def _end(self, slots: list[threading.Thread], error: BaseException | None) -> None:
        """End what still runs, give its trials back, and say that this driver has ended."""
        self._stop.set()
        self.evaluator.close()
        with self._changed:
            self._changed.notify_all()
        for slot in slots:
            slot.join()
        try:
            self._beat(ended=True)
            self._show(read=True)
        except CbobError as trouble:
            if error is None and self._error is None:
                self._error = trouble


def _is_open(key: str, card: Mapping[str, Any]) -> bool:
    """Whether it is the card of a driver that did not say that it ended."""
    return key.startswith(DRIVER) and not card["ended"]
