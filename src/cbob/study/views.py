"""How a run is shown: live on a terminal, in plain lines, as JSON lines for scripts, or not at all."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from importlib.util import find_spec
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from cbob.numerics import ndtr
from cbob.study.records import Record
from cbob.study.runner import Progress
from cbob.trials import Forecast

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = [
    "JSONLines",
    "Lines",
    "Live",
    "Quiet",
    "counts",
    "duration",
    "expectations",
    "outcome",
    "shown_number",
    "terminal_view",
]


class Quiet:
    """Shows nothing but what went wrong with the storage or the workers, on stderr."""

    def __init__(self, errors: IO[str] | None = None) -> None:
        self._errors = sys.stderr if errors is None else errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def finished(self, record: Record, progress: Progress) -> None:
        pass

    def said(self, words: str) -> None:
        print(f"cbob: {words}", file=self._errors, flush=True)

    def tick(self, progress: Progress) -> None:
        pass


class Lines(Quiet):
    """One line for each trial that ended."""

    def __init__(self, out: IO[str] | None = None) -> None:
        super().__init__()
        self._out = sys.stdout if out is None else out

    def finished(self, record: Record, progress: Progress) -> None:
        standing = progress.standing
        best = "none feasible yet" if standing.best is None else f"best {shown_number(standing.best.value)}"
        left = "" if progress.left is None or standing.finished >= progress.budget else f", {duration(progress.left)} left"
        place = f"[{standing.finished}/{progress.budget}]"
        print(f"{place:>11} trial {record.number:<5} {outcome(record):50.50}  {best}{left}", file=self._out, flush=True)


class JSONLines(Quiet):
    """One JSON object on a line for each trial that ended; whoever runs the study adds the last one."""

    def __init__(self, out: IO[str] | None = None) -> None:
        super().__init__()
        self._out = sys.stdout if out is None else out

    def finished(self, record: Record, progress: Progress) -> None:
        self.event("trial", record.to_dict() | {"finished": progress.standing.finished, "budget": progress.budget})

    def event(self, event: str, content: Mapping[str, Any]) -> None:
        print(json.dumps({"event": event, **content}), file=self._out, flush=True)


class Live(Quiet):
    """A panel at the bottom of the terminal that is drawn anew, and above it the trials that ended."""

    def __init__(self, name: str, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        super().__init__()
        self.name = name
        self.console = Console() if console is None else console
        self._lock = threading.Lock()
        self._live = RichLive(console=self.console, auto_refresh=False, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._live.stop()

    def finished(self, record: Record, progress: Progress) -> None:
        colour = {"feasible": "green", "infeasible": "yellow", "undecided": "yellow", "lost": "magenta"}.get(
            record.status, "red"
        )
        from rich.text import Text

        self.console.print(
            Text.assemble(f"trial {record.number:<5} ", (outcome(record), colour)), overflow="ellipsis", no_wrap=True
        )

    def said(self, words: str) -> None:
        self.console.print(f"[bold magenta]cbob:[/] {words}", highlight=False)

    def tick(self, progress: Progress) -> None:
        with self._lock:
            self._live.update(self.panel(progress), refresh=True)

    def panel(self, progress: Progress) -> RenderableType:
        """Where the study stands, as a box of a few lines."""
        from rich.panel import Panel
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        standing = progress.standing
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(ratio=1)
        best = standing.best
        table.add_row("best", "none feasible yet" if best is None else f"{shown_number(best.value)}  (trial {best.number})")
        if best is not None:
            table.add_row("", "  ".join(f"{name} = {shown_number(value)}" for name, value in best.params.items()))
        table.add_row("trials", f"{standing.feasible} feasible of {standing.finished}{_lost(standing.lost)}")
        table.add_row("limits broken", counts(standing.broke) or "none")
        table.add_row("failures", counts(standing.failed) or "none")
        table.add_row("workers", f"{progress.busy} of {progress.workers} busy, {progress.asking:.0%} of their time asking")
        rate = "" if progress.rate is None else f"{_rate(progress.rate)}, "
        left = "" if progress.left is None else f", {duration(progress.left)} left"
        table.add_row("time", f"{rate}{duration(progress.elapsed)} so far{left}")
        table.add_row(f"{standing.finished}/{progress.budget}", ProgressBar(total=progress.budget, completed=standing.finished))
        return Panel(table, title=self.name, border_style="blue")


def terminal_view(name: str) -> Quiet:
    """Live where there is a terminal that can be drawn on, otherwise plain lines."""
    if sys.stdout.isatty() and find_spec("rich") is not None:
        from rich.console import Console

        console = Console()
        if not console.is_dumb_terminal:
            return Live(name, console)
    return Lines()


def outcome(record: Record) -> str:
    """How a trial ended, in a few words."""
    if record.status == "feasible":
        return shown_number(record.value)
    if record.kind is not None:
        return f"{record.kind}: {record.reason}" if record.reason else record.kind
    if record.status == "infeasible":
        return "broke " + ", ".join(_reading(name, record.readings[name]) for name in record.broke)
    return record.status if record.value is None else f"{shown_number(record.value)}, {record.status}"


def expectations(record: Record) -> list[str]:
    """Why this point: what the surrogates promised of it, and what the strategy made of that."""
    if record.forecast is None:
        return ["nothing: surrogates had no say"]
    forecast = Forecast.from_dict(record.forecast)
    lines = [f"{name} holds with {ndtr(z):.0%}" for name, z in forecast.limits.items()]
    if forecast.improvement is not None:
        lines.append(f"a new best with {ndtr(forecast.improvement):.0%}, if it is feasible")
    return lines + [f"{name} {value:.2f}" for name, value in forecast.weighed.items()]


def shown_number(value: object) -> str:
    """A value or a reading, short."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def counts(numbers: Mapping[str, int]) -> str:
    """{"timeout": 3} as "timeout 3", the most frequent first."""
    return "  ".join(f"{name} {number}" for name, number in sorted(numbers.items(), key=lambda item: (-item[1], item[0])))


def duration(seconds: float) -> str:
    """A time for people: "48 s", "12 min", "3 h 20 min"."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


def _reading(name: str, reading: float | str) -> str:
    return name if isinstance(reading, str) else f"{name} ({shown_number(reading)})"


def _rate(rate: float) -> str:
    return f"{rate:.1f} trials a second" if rate >= 1 else f"{60 * rate:.1f} trials a minute"


def _lost(number: int) -> str:
    return f"; {number} lost with their workers and tried again" if number else ""
