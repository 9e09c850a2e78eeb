"""What the scripts that run peers share: the design, a file of finished runs that survives kills, and the table of it.

Importing this limits NumPy and torch to one thread, so it has to come before either.
"""

import argparse
import fcntl
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numpy as np

from cbob.bench.problems import Problem

RESULTS = Path(__file__).parent / "results" / "peers"
BUDGET = 100
Run = tuple[str, str, str, int]  # problem, sampler, way, seed
Execute = Callable[[str, str, str, int], dict[str, Any]]


def design_of(problem: Problem, seed: int) -> np.ndarray:
    """The rows that everyone starts from, those of cbob's campaigns."""
    return problem.space.sobol(11 * len(problem.space.names), seed=seed)


def record(run: Run, values: Sequence[float], *, asking: float, packages: Iterable[str]) -> dict[str, Any]:
    """A finished run in one line: `values` are the objectives in order, of the design too, NaN where infeasible."""
    best = np.fmin.accumulate(values)[-BUDGET:]
    problem, sampler, way, seed = run
    return {
        "problem": problem,
        "sampler": sampler,
        "way": way,
        "seed": seed,
        "best": [None if np.isnan(value) else float(f"{value:.6g}") for value in best],
        "feasible": int(np.isfinite(values[-BUDGET:]).sum()),
        "ask_seconds": round(asking, 2),
        "versions": {package: version(package) for package in packages},
    }


def load(path: Path) -> list[dict[str, Any]]:
    """All finished runs; a last line without its end was cut off by a kill."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def append(path: Path, finished: dict[str, Any]) -> None:
    """One line more, in place of what a kill has left of one. Several processes may do so at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(json.dumps(finished, separators=(",", ":")).encode() + b"\n")


def table(records: list[dict[str, Any]]) -> str:
    lines = [
        f"{'problem':16} {'sampler':17} {'way':12} {'seeds':>5} {'median':>9} {'quartiles':>20} {'feasible':>8} {'ask ms':>7}"
    ]
    keys = sorted({(record["problem"], record["sampler"], record["way"]) for record in records})
    for key in keys:
        runs = [record for record in records if (record["problem"], record["sampler"], record["way"]) == key]
        found = [np.inf if run["best"][-1] is None else run["best"][-1] for run in runs]
        low, middle, high = np.quantile(found, [0.25, 0.5, 0.75], method="closest_observation" if np.inf in found else "linear")
        share = np.mean([run["feasible"] for run in runs]) / BUDGET
        ask = 1e3 * np.mean([run["ask_seconds"] for run in runs]) / BUDGET
        spread = f"{low:.5g} .. {high:.5g}"
        lines.append(f"{key[0]:16} {key[1]:17} {key[2]:12} {len(runs):5} {middle:9.5g} {spread:>20} {share:8.0%} {ask:7.0f}")
    return "\n".join(lines)


def seeds(text: str) -> range:
    """A seed, "3", or a range with both its ends, "0-9"."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main(words: str, *, out: Path, problems: Sequence[str], ways: Mapping[str, Sequence[str]], execute: Execute) -> None:
    """The command line of such a script. `ways` has, for each sampler, the ways in which it is shown failures."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds, default="0-9")
    parser.add_argument("--problems", nargs="+", choices=problems, default=problems, metavar="NAME")
    parser.add_argument("--samplers", nargs="+", choices=ways, default=list(ways), metavar="NAME")
    parser.add_argument("--ways", nargs="+", metavar="WAY", help="only these of a sampler's ways")
    parser.add_argument("--out", type=Path, default=out)
    parser.add_argument("--table", action="store_true", help="run nothing, print what was saved")
    options = parser.parse_args()
    if not options.table:
        for seed, problem, sampler in itertools.product(options.seeds, options.problems, options.samplers):
            for way in [way for way in ways[sampler] if options.ways is None or way in options.ways]:
                done = {(run["problem"], run["sampler"], run["way"], run["seed"]) for run in load(options.out)}
                if (problem, sampler, way, seed) in done:
                    continue
                finished = execute(problem, sampler, way, seed)
                append(options.out, finished)
                print(problem, sampler, way, seed, finished["best"][-1], f"{finished['ask_seconds']:.1f} s asking", flush=True)
    print(table(load(options.out)))
