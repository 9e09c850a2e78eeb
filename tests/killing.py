"""Runs a study with the real command, kills its processes at random times, and checks that nothing was lost or done twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from cbob.errors import StorageError
from cbob.study.reading import Stored, read_study
from cbob.study.records import Record

STUDY = """
name = "{name}"
budget = {budget}
workers = {workers}
seed = 3
retries = 1000
constraints = ["load <= 1.2"]
strategy = "{strategy}"
[evaluate]
function = "{module}:work"
[space]
x = {{type = "float", low = 0.0, high = 1.0}}
y = {{type = "float", low = 0.0, high = 1.0}}
"""

WORK = """
import os, time
import cbob

def note(what, params):
    with open({log!r}, "a") as file:
        file.write(f"{{time.time()!r}} {{what}} {{params['x']!r}} {{params['y']!r}}\\n")

def work(params):
    note("start", params)
    x, y = params["x"], params["y"]
    time.sleep({seconds} * (0.5 + x))
    if y > 0.92:
        raise RuntimeError("diverged")
    if x > 0.95:
        raise cbob.Infeasible("load")
    return {{"value": (x - 0.4) ** 2 + (y - 0.3) ** 2, "load": x + y}}
"""


@dataclass
class Study:
    """A study file in a folder, and what its drivers said while they lived."""

    folder: Path
    storage: str
    name: str = "soak"
    budget: int = 30
    workers: int = 2
    seconds: float = 0.03
    strategy: str = "sobol"
    acknowledged: dict[int, dict[str, Any]] = field(default_factory=dict)  # trials a driver reported as finished
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        module = f"work_{self.name}"
        text = STUDY.format(name=self.name, budget=self.budget, workers=self.workers, strategy=self.strategy, module=module)
        (self.folder / "study.toml").write_text(text)
        self.log = self.folder / f"{self.name}.log"
        (self.folder / f"{module}.py").write_text(WORK.format(log=str(self.log), seconds=self.seconds))

    def start(self, *flags: str) -> Driver:
        return Driver(self, flags)

    def read(self) -> Stored:
        return read_study(self.storage, self.name)

    def acknowledge(self, event: dict[str, Any]) -> None:
        known = self.acknowledged.setdefault(event["number"], event)
        if _same(known) != _same(event):
            self.problems.append(f"trial {event['number']} changed after it had finished: {known} became {event}")

    def check(self) -> Counter[str]:
        """What was lost or done twice so far goes into `problems`."""
        acknowledged = dict(self.acknowledged)  # more may come while we look
        try:
            records = self.read().records
        except StorageError as error:
            if acknowledged:
                self.problems.append(f"the study does not open: {error}")
            return Counter()  # killed before there was a study
        by_number = {record.number: record for record in records}
        if len(by_number) != len(records):
            self.problems.append("two trials have the same number")
        for number, event in acknowledged.items():
            if number not in by_number:
                self.problems.append(f"trial {number} was finished and is gone")
            elif _same(by_number[number].to_dict()) != _same(event):
                self.problems.append(f"trial {number} was finished as {event} and is {by_number[number]}")
        finished = [record for record in records if record.finished]
        if len(finished) > self.budget:
            self.problems.append(f"{len(finished)} trials are finished, and the budget is {self.budget}")
        points = Counter((record.params["x"], record.params["y"]) for record in finished)
        self.problems += [f"point {point} was finished {times} times" for point, times in points.items() if times > 1]
        retried = Counter(record.retry_of for record in records if record.retry_of is not None and record.status != "withdrawn")
        self.problems += [f"trial {number} was retried {times} times" for number, times in retried.items() if times > 1]
        self.problems += [f"trial {r.retry_of} was retried, but is not lost" for r in records if _wrongly_retried(r, by_number)]
        self.problems += self._run_again(finished)
        return Counter(record.status for record in records)

    def _run_again(self, finished: list[Record]) -> list[str]:
        """Trials that were evaluated once more after their result had been stored."""
        ended = {(r.params["x"], r.params["y"]): r for r in finished if r.ended is not None}
        found = []
        for line in self.log.read_text().splitlines() if self.log.exists() else ():
            when, _, x, y = line.split()
            record = ended.get((float(x), float(y)))
            if record is not None and record.ended is not None and float(when) > record.ended.timestamp():
                found.append(f"trial {record.number} was run again after it had finished")
        return found


class Driver:
    """One `cbob run`, and its output as it comes."""

    def __init__(self, study: Study, flags: tuple[str, ...] = ()) -> None:
        self.study = study
        self.events = 0
        self.ended: dict[str, Any] | None = None
        command = [sys.executable, "-m", "cbob.cli", "run", "study.toml", "--json", "--storage", study.storage, *flags]
        self.errors = (study.folder / "errors.txt").open("ab")
        environment = dict(os.environ) | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, cwd=study.folder, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith("\n"):
                return  # the driver died while it wrote
            event = json.loads(line)
            if event["event"] == "end":
                self.ended = event
            elif event["status"] not in ("lost", "withdrawn"):
                self.study.acknowledge(event)
            self.events += 1

    def wait(self, timeout: float = 120.0) -> int:
        code = self.process.wait(timeout)
        self._reader.join(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.errors.close()
        return code

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.wait()

    def kill_a_worker(self, rng: random.Random) -> bool:
        """Kill any process below the driver; False if there is none."""
        try:
            below = psutil.Process(self.process.pid).children(recursive=True)
            rng.choice(below).kill()
        except (psutil.Error, IndexError):
            return False
        return True

    def lived_for(self, events: int, seconds: float) -> bool:
        """Wait until it reported so many trials, then for so long; False if it ended before."""
        deadline = time.monotonic() + 120
        while self.events < events and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(seconds)
        return self.process.poll() is None


def soak(study: Study, kills: int, seed: int, *, drivers: int = 1) -> Counter[str]:
    """Kill drivers and workers so many times, in all, then run to the end and check. Counts what was killed."""
    rng = random.Random(seed)
    done: Counter[str] = Counter()
    running: list[Driver] = []
    while sum(done.values()) < kills:
        while len(running) < drivers:
            running.append(study.start())
        victim = rng.choice(running)
        alive = victim.lived_for(victim.events + rng.randint(0, 3), rng.uniform(0.0, 0.1))
        if not alive:
            code = victim.wait()
            running.remove(victim)
            if code == 0:
                break  # the budget is used up
            study.problems.append(f"a driver ended with exit code {code}: {(study.folder / 'errors.txt').read_text()[-2000:]}")
            break
        if rng.random() < 0.6:
            victim.kill()
            running.remove(victim)
            done["drivers"] += 1
            study.check()
        elif victim.kill_a_worker(rng):
            done["workers"] += 1
    for driver in running:
        code = driver.wait(600)
        if code != 0:
            study.problems.append(f"a driver ended with exit code {code}: {(study.folder / 'errors.txt').read_text()[-2000:]}")
    last = study.start()
    if last.wait(600) != 0:
        study.problems.append(f"the last driver failed: {(study.folder / 'errors.txt').read_text()[-2000:]}")
    study.check()
    return done


def _same(event: dict[str, Any]) -> dict[str, Any]:
    """What must never change of a finished trial."""
    return {
        key: event[key] for key in ("number", "status", "value", "params", "readings", "kind", "reason", "seconds", "retry_of")
    }


def _wrongly_retried(record: Record, by_number: dict[int, Record]) -> bool:
    return record.retry_of is not None and by_number[record.retry_of].status not in ("lost", "abandoned")
