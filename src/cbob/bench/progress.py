"""How far a campaign is, and how long it will take: counters that all processes share, a bar, and an estimate."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

__all__ = ["Bar", "Counters", "Work", "remaining_seconds"]


@dataclass(frozen=True)
class Counters:
    """For each kind of work: evaluations taken up from before, evaluations made now, and the seconds that these took.

    Arrays of `multiprocessing`, which workers are handed when they start.
    """

    old: Any
    new: Any
    seconds: Any

    @classmethod
    def shared(cls, kinds: int, context: Any) -> Counters:
        return cls(*(context.Array("d", max(kinds, 1)) for _ in range(3)))


class Work:
    """Counts what one worker does of one kind, as the `tick` of an execution."""

    def __init__(self, counters: Counters, kind: int) -> None:
        self._counters, self._kind, self._since = counters, kind, time.perf_counter()

    def __call__(self, old: int, new: int) -> None:
        now, kind = time.perf_counter(), self._kind
        for array, amount in (
            (self._counters.old, old),
            (self._counters.new, new),
            (self._counters.seconds, now - self._since),
        ):
            with array.get_lock():
                array[kind] += amount if new or array is self._counters.old else 0
        self._since = now


def remaining_seconds(
    totals: Sequence[int], old: Sequence[float], new: Sequence[float], seconds: Sequence[float], alike: Sequence[str], jobs: int
) -> float | None:
    """What is left of each kind, at the pace of that kind so far; of a kind that has not begun, at the pace of those that
    are `alike` (the same problem), and failing that of all. None while there is no pace."""

    def pace(kinds: Iterable[int]) -> float | None:
        chosen = list(kinds)
        count = sum(new[kind] for kind in chosen)
        return sum(seconds[kind] for kind in chosen) / count if count else None

    every = range(len(totals))
    overall = pace(every)
    if overall is None:
        return None
    left = 0.0
    for kind in every:
        own = pace([kind])
        if own is None:
            own = pace(other for other in every if alike[other] == alike[kind])
        left += max(totals[kind] - old[kind] - new[kind], 0.0) * (overall if own is None else own)
    return left / jobs


@dataclass
class Bar:
    """A line at the foot of a terminal; where the output is no terminal, only the lines that are said."""

    stream: TextIO = field(default_factory=lambda: sys.stdout)

    def __post_init__(self) -> None:
        self._live = self.stream.isatty()
        self._started = time.monotonic()
        self._shown = ""

    def say(self, words: str) -> None:
        """A line that stays."""
        self._erase()
        print(words, file=self.stream, flush=True)
        self._draw()

    def show(self, done: float, total: float, what: str, left: float | None) -> None:
        share = min(done / total, 1.0) if total else 1.0
        filled = round(20 * share)
        gone = clock(time.monotonic() - self._started)
        self._erase()
        to_come = "" if left is None else f", about {clock(left)} left"
        self._shown = f"[{'#' * filled}{'.' * (20 - filled)}] {share:4.0%}{to_come}, {gone} gone, {what}"
        self._draw()

    def end(self) -> None:
        self._erase()
        self._shown = ""

    def _draw(self) -> None:
        if self._live and self._shown:
            width = shutil.get_terminal_size().columns - 1
            print(self._shown[:width], end="", file=self.stream, flush=True)

    def _erase(self) -> None:
        if self._live and self._shown:
            print("\r\033[K", end="", file=self.stream)


def clock(seconds: float) -> str:
    """1:02:03, or 2:03."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
