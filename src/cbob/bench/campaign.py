"""Campaigns: problems x scenarios x strategies x surrogates x seeds, one JSON line for each finished run.

A run follows the protocol of the paper: 11 n scrambled-Sobol points, the same for every strategy at one seed,
then `budget` evaluations one by one through the public ask and tell. A campaign may be killed at any moment:
started again, it repeats no run that had finished.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from math import inf, nan
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np

from cbob import Optimizer, __version__
from cbob.bench.problems import get
from cbob.bench.scenarios import Scenario, constraints_for, reveal
from cbob.observations import direction_sign

__all__ = ["Record", "Run", "campaign", "execute", "load", "summarise", "table"]

Record = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """All that a run depends on, beside the version."""

    problem: str
    scenario: str
    strategy: str
    surrogate: str
    seed: int
    budget: int = 100

    @classmethod
    def of(cls, record: Record) -> Run:
        """The run that a record came from."""
        return cls(**{field.name: record[field.name] for field in fields(cls)})

    def __str__(self) -> str:
        return f"{self.problem} {self.scenario} {self.strategy}/{self.surrogate} seed {self.seed}"


def execute(run: Run) -> Record:
    """Carry out a run. "best" and "feasible" have an entry for each evaluation after the initial design;
    "best", the best objective so far, is null while nothing feasible was seen."""
    problem, scenario = get(run.problem), Scenario(run.scenario)
    design = 11 * len(problem.space.names)
    optimizer = Optimizer(
        problem.space,
        constraints=constraints_for(problem, scenario),
        direction=problem.direction,
        strategy=run.strategy,
        surrogate=run.surrogate,
        initial=design,
        seed=run.seed,
    )
    values, ask_seconds = [], 0.0
    for number in range(design + run.budget):
        started = time.perf_counter()
        trial = optimizer.ask()
        if number >= design:
            ask_seconds += time.perf_counter() - started
        told = reveal(problem, trial.params, scenario)
        optimizer.tell(trial, **told)
        values.append(told.get("value", nan))

    sign = direction_sign(problem.direction)
    best = sign * np.fmin.accumulate(sign * np.array(values))  # fmin passes over NaN
    return asdict(run) | {
        "best": [None if np.isnan(value) else value for value in best[design:].tolist()],
        "feasible": np.isfinite(values[design:]).tolist(),
        "ask_seconds": round(ask_seconds, 3),
        "version": __version__,
    }


def load(path: Path) -> list[Record]:
    """The records of all finished runs; a last line without its end was cut off by a kill and is not one."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def campaign(runs: Iterable[Run], path: Path, *, jobs: int | None = None, report: Callable[[str], object] = print) -> None:
    """Execute the runs that `path` lacks, `jobs` at a time (default: one a core); append each as it ends."""
    finished = {Run.of(record) for record in load(path)}
    missing = [run for run in dict.fromkeys(runs) if run not in finished]
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
    failures = 0
    pool = _workers(jobs)
    try:
        futures = {pool.submit(execute, run): run for run in missing}
        for count, future in enumerate(as_completed(futures), 1):
            if error := future.exception():
                failures += 1
                outcome = f"failed, {type(error).__name__}: {error}"
            else:
                record = future.result()
                with path.open("a") as file:
                    file.write(json.dumps(record, separators=(",", ":")) + "\n")
                best = "nothing feasible" if record["best"][-1] is None else f"{record['best'][-1]:.6g}"
                outcome = f"{best}, {record['ask_seconds']:.1f} s asking"
            report(f"[{count}/{len(missing)}] {futures[future]}: {outcome}")
    finally:
        pool.shutdown(cancel_futures=True)
    if failures:
        raise RuntimeError(f"{failures} of {len(missing)} runs failed; {path} has the others")


def _workers(jobs: int | None) -> ProcessPoolExecutor:
    """Fresh interpreters of one BLAS thread each: the environment has to say so before they import NumPy."""
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_end_with_the_campaign)


def _end_with_the_campaign() -> None:
    """A worker that outlived a killed campaign would go on with runs that nobody saves."""

    def watch() -> None:
        if parent := multiprocessing.parent_process():
            wait([parent.sentinel])
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def summarise(records: Iterable[Record]) -> list[Record]:
    """A row for each cell, that is for all seeds of one problem, scenario, strategy, surrogate and budget.

    BOV, the best objective value, is infinitely bad where nothing feasible was found; ROF is the feasible
    share of the evaluations after the initial design.
    """
    cells: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    keys = [field.name for field in fields(Run) if field.name != "seed"]
    for record in records:
        cells[tuple(record[key] for key in keys)].append(record)
    rows = []
    for cell, group in cells.items():
        row = dict(zip(keys, cell, strict=True))
        worst = direction_sign(get(row["problem"]).direction) * inf
        bov = [worst if record["best"][-1] is None else record["best"][-1] for record in group]
        asking = sum(record["ask_seconds"] for record in group)
        row |= {
            "seeds": len(group),
            "bov_median": _quantile(bov, 0.5),
            "bov_quartiles": [_quantile(bov, 0.25), _quantile(bov, 0.75)],
            "rof_mean": float(np.mean([record["feasible"] for record in group])),
            "ask_ms_mean": 1e3 * asking / (len(group) * row["budget"]),
        }
        rows.append(row)
    return rows


def _quantile(values: Sequence[float], q: float) -> float:
    """NumPy's, but right beside infinities: a neighbour of weight 0 has no say."""
    ordered = sorted(values)
    index, weight = divmod(q * (len(ordered) - 1), 1)
    below = ordered[int(index)]
    return below if weight == 0 else (1 - weight) * below + weight * ordered[int(index) + 1]


def table(records: Iterable[Record]) -> str:
    """The summary as text, the cells of a problem side by side."""
    line = "{:18} {:8} {:16} {:>5} {:>11} {:>25} {:>6} {:>8}"
    lines = [line.format("problem", "scenario", "strategy", "seeds", "BOV median", "quartiles", "ROF", "ask ms")]
    for row in sorted(summarise(records), key=lambda row: (row["problem"], row["scenario"])):
        lines.append(
            line.format(
                row["problem"],
                row["scenario"],
                f"{row['strategy']}/{row['surrogate']}",
                row["seeds"],
                f"{row['bov_median']:.6g}",
                "{:.6g} .. {:.6g}".format(*row["bov_quartiles"]),
                f"{row['rof_mean']:.0%}",
                f"{row['ask_ms_mean']:.1f}",
            )
        )
    return "\n".join(lines)
