"""Campaigns: many runs on all cores, which may be killed at any moment and started again.

Evaluations go into journals in the scratch folder as they come, by the workers; the record of a run goes into the results when
it ends. Started again, a campaign leaves out the runs that have a record, and takes every other one up where its journal ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from cbob.bench.execution import design_size
from cbob.bench.problems import get
from cbob.bench.progress import Bar, Counters, remaining_seconds
from cbob.bench.results import load, save
from cbob.bench.runs import Cell, Run
from cbob.bench.workers import Design, Outcome, Task, workers
from cbob.errors import CbobError

__all__ = ["campaign"]

REDRAW = 0.5  # seconds


def campaign(
    runs: Iterable[Run], results: Path, scratch: Path, *, jobs: int | None = None, anew: bool = False, bar: Bar | None = None
) -> None:
    """Carry out the runs that `results` lacks (or all, `anew`), in their order, `jobs` at a time (default: one a core).

    A run that raises costs no other run; in the end a CbobError says how many did.
    """
    bar, jobs = bar or Bar(), jobs or os.cpu_count() or 1
    known = set() if anew else {record.run for record in load(results)}
    agenda = _Agenda([run for run in dict.fromkeys(runs) if run not in known])
    finished = failures = 0
    with workers(jobs, scratch, len(agenda.kinds)) as (crew, counters):
        while agenda.runs or crew.busy:
            while crew.free and (task := agenda.next()) is not None:
                crew.begin(task, agenda.kind_of(task))
            for outcome in crew.outcomes(REDRAW):
                if outcome.record is not None:
                    save(results, [outcome.record])
                    finished += 1
                failures += agenda.ended(outcome)
                _tell(bar, outcome, f"[{finished + failures}/{agenda.count}]")
            _show(bar, agenda, counters, jobs, f"{finished + failures} of {agenda.count} runs")
        bar.end()
    if failures:
        raise CbobError(f"{failures} of {agenda.count} runs failed; {results} has the others")


class _Agenda:
    """The runs that are left, each held back until the initial design that it starts from is there."""

    def __init__(self, runs: list[Run]) -> None:
        self.runs, self.count = runs, len(runs)
        self._designs: dict[Design, bool] = {}  # whether it is there yet, or under way
        cells = dict.fromkeys(run.cell for run in runs)
        problems = dict.fromkeys(cell.problem for cell in cells)
        # Kinds of work, each with a pace of its own: the designs of a problem, and the runs of a cell.
        kinds: list[Cell | str] = [*problems, *cells]
        self.kinds = {kind: number for number, kind in enumerate(kinds)}
        self.alike = [kind if isinstance(kind, str) else kind.problem for kind in self.kinds]
        self.totals = [0] * len(self.kinds)
        for run in runs:
            self.totals[self.kinds[run.cell]] += run.cell.budget
        for problem, _ in {(run.cell.problem, run.seed) for run in runs}:
            self.totals[self.kinds[problem]] += design_size(get(problem))

    def kind_of(self, task: Task) -> int:
        return self.kinds[task.cell if isinstance(task, Run) else task[0]]

    def next(self) -> Task | None:
        """What to start next: the first run whose design is there, or a design before it that nobody has begun."""
        for run in self.runs:
            design = run.cell.problem, run.seed
            if design not in self._designs:
                self._designs[design] = False
                return design
            if self._designs[design]:
                self.runs.remove(run)
                return run
        return None

    def ended(self, outcome: Outcome) -> int:
        """Take note; gives back how many runs a failure costs."""
        task, failed = outcome.task, outcome.error is not None
        if isinstance(task, Run):
            return int(failed)
        self._designs[task] = True
        kept = [run for run in self.runs if not failed or (run.cell.problem, run.seed) != task]
        lost, self.runs = len(self.runs) - len(kept), kept
        return lost


def _tell(bar: Bar, outcome: Outcome, count: str) -> None:
    task, record = outcome.task, outcome.record
    name = str(task) if isinstance(task, Run) else f"{task[0]} seed {task[1]}, initial design"
    if outcome.error is not None:
        bar.say(f"{count} {name}: failed, {outcome.error}")
    elif record is not None:
        best = "nothing feasible" if record.best is None else f"{record.best:.6g}"
        bar.say(f"{count} {name}: {best}, {record.ask_seconds:.1f} s asking")


def _show(bar: Bar, agenda: _Agenda, counters: Counters, jobs: int, runs: str) -> None:
    old, new, seconds = (list(array)[: len(agenda.totals)] for array in (counters.old, counters.new, counters.seconds))
    left = remaining_seconds(agenda.totals, old, new, seconds, agenda.alike, jobs)
    bar.show(sum(old) + sum(new), sum(agenda.totals), runs, left)
