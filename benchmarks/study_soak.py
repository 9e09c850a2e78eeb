"""Studies under fire, on real databases; the results are added to benchmarks/results/study_soak.json.

    python benchmarks/study_soak.py [kills] [drivers] [trials]      default: 200 kills, 64 drivers with 5000 trials

1. Drivers and workers of studies on SQLite and PostgreSQL are killed (SIGKILL) at random times, half the kills on each; after
   each kill of a driver the study is opened and checked: finished trials lost, duplicates, studies that would not open.
2. Many drivers, one worker each, share one study on PostgreSQL: none lost, none duplicated, and how much of their time they
   spend asking.

It takes about half an hour on two idle cores.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from killing import Study, soak
from postgres import Server

RESULTS = Path(__file__).parent / "results" / "study_soak.json"


def killing(storage: str, folder: Path, name: str, kills: int) -> dict[str, Any]:
    study = Study(folder, storage, name=name, budget=4 * kills, workers=2)
    start = time.monotonic()
    killed = soak(study, kills, seed=kills)
    status = Counter(record.status for record in study.read().records)
    return {
        "kills": dict(killed),
        "budget": study.budget,
        "trials": dict(status),
        "acknowledged as finished": len(study.acknowledged),
        "problems": study.problems,
        "minutes": round((time.monotonic() - start) / 60, 1),
    }


def crowd(storage: str, folder: Path, drivers: int, trials: int) -> dict[str, Any]:
    study = Study(folder, storage, name="crowd", budget=trials, workers=1, seconds=0.0)
    start = time.monotonic()
    crew = [study.start("--patience", "300") for _ in range(drivers)]
    codes = Counter(driver.wait(3600) for driver in crew)
    wall = time.monotonic() - start
    status = study.check()
    seconds: Counter[str] = Counter()
    for driver in crew:
        if driver.ended is not None:
            seconds.update(driver.ended["seconds"])
    working = seconds["asking"] + seconds["evaluating"] + seconds["storing"]
    return {
        "drivers": drivers,
        "budget": trials,
        "strategy": study.strategy,
        "exit codes": {str(code): count for code, count in codes.items()},
        "trials": dict(status),
        "problems": study.problems,
        "seconds": round(wall, 1),
        "trials a second": round(trials / wall, 1),
        "share of time asking": round(seconds["asking"] / working, 3) if working else None,
        "of which the sampler": round(seconds["proposing"] / working, 3) if working else None,
        "times the storage was away": (folder / "errors.txt").read_text().count("storage is away"),
    }


def main() -> None:
    kills, drivers, trials = [*map(int, sys.argv[1:]), *(200, 64, 5000)[len(sys.argv) - 1 :]]
    result: dict[str, Any] = {"machine": {"python": platform.python_version(), "cores": os.cpu_count()}}
    with tempfile.TemporaryDirectory(prefix="cbob-soak-") as scratch, Server() as server:
        folder = Path(scratch)
        if kills:
            result["sqlite"] = killing(f"sqlite:///{folder}/soak.db", folder / "sqlite", "soak", kills // 2)
            print(json.dumps(result["sqlite"]), flush=True)
            result["postgresql"] = killing(server.url, folder / "postgresql", "soak", kills - kills // 2)
            print(json.dumps(result["postgresql"]), flush=True)
        if drivers:
            result["many drivers"] = crowd(server.url, folder / "crowd", drivers, trials)
            print(json.dumps(result["many drivers"]), flush=True)
    record = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    record["machine"] = result.pop("machine")
    for part, outcome in result.items():
        record.setdefault(part, []).append(outcome)
    RESULTS.write_text(json.dumps(record, indent=2) + "\n")
    if any(outcome["problems"] for outcome in result.values()):
        sys.exit("something was lost, or done twice")


if __name__ == "__main__":
    main()
