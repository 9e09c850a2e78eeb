"""What the whole study layer costs for each trial: a no-op is evaluated, and the time of the sampler is taken off.

    python benchmarks/study_overhead.py      writes benchmarks/results/study_overhead.json

SQLite, one worker, isolated and in this process; and how long an ask takes once 5,000 trials are stored.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

import cbob
from cbob.study.book import Book, Claim
from cbob.study.plan import Plan
from cbob.study.run import enter_study
from cbob.study.storage import close_storage, open_storage

RESULTS = Path(__file__).parent / "results" / "study_overhead.json"
TRIALS, MANY = 100, 5000
SPACE = cbob.Space({f"x{i}": cbob.Float(0.0, 1.0) for i in range(6)})
LIMITS = ["load <= 4"]


def nothing(params: dict[str, Any]) -> dict[str, float]:
    return {"value": params["x0"], "load": sum(params.values())}


def overhead(isolate: bool, folder: str) -> dict[str, float]:
    """Milliseconds for each trial, the sampler's taken off; and of the processor alone, which no neighbour changes."""
    storage = f"sqlite:///{folder}/{uuid.uuid4()}.db"
    options: dict[str, Any] = {
        "constraints": LIMITS,
        "strategy": "sobol",
        "isolate": isolate,
        "storage": storage,
        "name": "no-op",
    }
    cbob.minimize(nothing, SPACE, budget=20, **options)  # imports, tables, statements compiled
    start, processor = time.perf_counter(), _processor()
    times = cbob.minimize(nothing, SPACE, budget=20 + TRIALS, **options).times
    wall = time.perf_counter() - start
    each = {name: 1e3 * seconds / TRIALS for name, seconds in vars(times).items() if name != "waiting"}
    busy = 1e3 * (_processor() - processor) / TRIALS
    return {"all besides the ask": 1e3 * wall / TRIALS - each["proposing"], "processor time, the ask included": busy, **each}


def _processor() -> float:
    """Seconds of processor time that this process and its ended children took."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def ask_with_many(folder: str, strategy: str) -> dict[str, float]:
    """Seconds of one claim, sampler included, once many trials are stored."""
    storage = open_storage(f"sqlite:///{folder}/{strategy}.db")
    plan = Plan(name="many", space=SPACE, target=nothing, constraints=tuple(LIMITS), strategy=strategy, budget=MANY + 10)  # type: ignore[arg-type]
    study = enter_study(plan, storage)
    book = Book(study, SPACE.parameters, driver="me", retries=0)
    rows = SPACE.sobol(MANY, seed=1)
    study.add_trials([_past(SPACE.decode(row), book) for row in rows])
    seconds = []
    for _ in range(3):
        before, start = book.proposing, time.perf_counter()
        claim = book.claim(plan.budget, uuid.uuid4().hex)
        seconds.append((time.perf_counter() - start, book.proposing - before))
        assert isinstance(claim, Claim)
    close_storage(storage)
    return {"first": seconds[0][0], "later": seconds[-1][0], "of which the sampler": seconds[-1][1]}


def _past(params: dict[str, Any], book: Book) -> FrozenTrial:
    told = {"cbob:readings": {"load": sum(params.values())}}
    return create_trial(
        state=TrialState.COMPLETE, value=params["x0"], params=params, distributions=book.distributions, user_attrs=told
    )


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        result = {
            "machine": {"python": platform.python_version(), "cores": os.cpu_count(), "load before": os.getloadavg()[0]},
            "trials": TRIALS,
            "milliseconds a trial": {"in-process": overhead(False, folder), "isolated": overhead(True, folder)},
            f"seconds of an ask at {MANY} trials": {name: ask_with_many(folder, name) for name in ("sobol", "cbob")},
        }
    print(json.dumps(result, indent=2))
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
