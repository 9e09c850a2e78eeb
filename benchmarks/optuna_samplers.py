"""CBOBSampler against Optuna's own samplers, at equal evaluations, where failures hide what was measured (scenario S2).

python benchmarks/optuna_samplers.py --seeds 0-9            # appends each finished run; started again, it repeats none
python benchmarks/optuna_samplers.py --table

Everyone starts from the same 11 d Sobol points and then asks 100 times. A sampler of Optuna's ignores failed trials, so each is
shown them in two ways, and the better one counts:

    penalty       a broken trial returns the worst value that was seen so far, and no constraints
    constraints   that, and `Trial.set_constraint` for each limit: its margin where it held, +1 where it broke unmeasured
"""

import argparse
import itertools
import json
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler, GPSampler, TPESampler
from optuna.trial import TrialState

from cbob.bench.problems import Problem, get
from cbob.bench.scenarios import Scenario, reveal
from cbob.integrations.optuna import CBOBSampler, report
from cbob.space import Float

RESULTS = Path(__file__).parent / "results" / "peers" / "optuna_samplers.jsonl"
PROBLEMS = ("ackley-5", "ackley-1", "pressure-vessel")
BUDGET = 100
Told = Mapping[str, Any]

SAMPLERS: dict[str, Callable[[Problem, int], BaseSampler]] = {
    "cbob": lambda problem, seed: CBOBSampler(constraints=problem.constraints, seed=seed),
    "cbob eic": lambda problem, seed: CBOBSampler(constraints=problem.constraints, strategy="eic", seed=seed),
    "tpe": lambda problem, seed: TPESampler(seed=seed),  # multivariate, since Optuna 5
    "tpe independent": lambda problem, seed: TPESampler(seed=seed, multivariate=False),
    "gp": lambda problem, seed: GPSampler(seed=seed),
    "gp noiseless": lambda problem, seed: GPSampler(seed=seed, deterministic_objective=True),
}
WAYS = {"cbob": ("failures",), "cbob eic": ("failures",)}  # all others are shown both ways
BOTH = ("constraints", "penalty")


class Teller:
    """Tells a study what a scenario reveals, in one of the ways."""

    def __init__(self, study: optuna.Study, problem: Problem, way: str) -> None:
        self.study, self.problem, self.way = study, problem, way
        self.worst = 0.0

    def note(self, results: Iterable[Told]) -> None:
        self.worst = max((told["value"] for told in results if "value" in told), default=self.worst)

    def tell(self, trial: optuna.Trial, told: Told) -> None:
        if self.way == "failures":
            report(trial, readings=told["constraints"], violated=told.get("violated", ()))
            if "value" in told:
                self.study.tell(trial, told["value"])
            else:
                self.study.tell(trial, state=TrialState.FAIL)
            return
        if self.way == "constraints":
            for limit in self.problem.constraints:
                held = limit.name in told["constraints"]
                trial.set_constraint(limit.name, limit.margin(told["constraints"][limit.name]) if held else 1.0)
        self.worst = max(self.worst, told.get("value", self.worst))
        self.study.tell(trial, told.get("value", self.worst))


def execute(name: str, sampler: str, way: str, seed: int) -> dict[str, Any]:
    problem = get(name)
    spots: dict[str, BaseDistribution] = {}
    for parameter, one in problem.space.parameters.items():
        assert isinstance(one, Float)
        spots[parameter] = FloatDistribution(one.low, one.high, log=one.log)
    study = optuna.create_study(direction=problem.direction, sampler=SAMPLERS[sampler](problem, seed))
    teller = Teller(study, problem, way)
    design = [problem.space.decode(row) for row in problem.space.sobol(11 * len(spots), seed=seed)]
    results = [reveal(problem, params, Scenario.S2) for params in design]
    teller.note(results)
    values, asking = [], 0.0
    for number in range(len(design) + BUDGET):
        if number < len(design):
            study.enqueue_trial(design[number])
        started = time.perf_counter()
        trial = study.ask(spots)
        if number >= len(design):
            asking += time.perf_counter() - started
        told = reveal(problem, trial.params, Scenario.S2)
        teller.tell(trial, told)
        values.append(told.get("value", np.nan))
    best = np.fmin.accumulate(values)[len(design) :]
    return {
        "problem": name,
        "sampler": sampler,
        "way": way,
        "seed": seed,
        "best": [None if np.isnan(value) else float(f"{value:.6g}") for value in best],
        "feasible": int(np.isfinite(values[len(design) :]).sum()),
        "ask_seconds": round(asking, 2),
        "versions": {package: version(package) for package in ("cbob", "optuna")},
    }


def load(path: Path) -> list[dict[str, Any]]:
    """All finished runs; a last line without its end was cut off by a kill."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds, default="0-9")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=PROBLEMS, metavar="NAME")
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS), metavar="NAME")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="run nothing, print what was saved")
    options = parser.parse_args()
    if not options.table:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        if options.out.exists():
            os.truncate(options.out, options.out.read_bytes().rfind(b"\n") + 1)
        done = {(run["problem"], run["sampler"], run["way"], run["seed"]) for run in load(options.out)}
        for seed, problem, sampler in itertools.product(options.seeds, options.problems, options.samplers):
            for way in WAYS.get(sampler, BOTH):
                if (problem, sampler, way, seed) in done:
                    continue
                record = execute(problem, sampler, way, seed)
                with options.out.open("a") as file:
                    file.write(json.dumps(record, separators=(",", ":")) + "\n")
                print(problem, sampler, way, seed, record["best"][-1], f"{record['ask_seconds']:.1f} s asking", flush=True)
    print(table(load(options.out)))


if __name__ == "__main__":
    main()
