"""CBOBSampler and Optuna's own samplers, at equal evaluations, where failures hide what was measured.

python benchmarks/optuna_samplers.py --seeds 0-9            # appends each finished run; started again, it repeats none
python benchmarks/optuna_samplers.py --table

Everyone starts from the same 11 d Sobol points and then asks 100 times, each problem in its own scenario: the objective is
hidden where a limit broke, and in S2 so are the readings that broke. A sampler of Optuna's ignores failed trials, so each is
shown them in two ways, and the better one counts:

    penalty       a broken trial returns the worst value that was seen so far, and no constraints
    constraints   that, and `Trial.set_constraint` for each limit: its margin where measured, +1 where it broke unmeasured
"""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import peer_runs  # isort: skip; limits threads, so it comes before NumPy
import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import BaseSampler, GPSampler, TPESampler
from optuna.trial import TrialState

from cbob.bench.problems import Problem, get
from cbob.bench.scenarios import Scenario, reveal
from cbob.integrations.optuna import CBOBSampler, report
from cbob.space import Float

RESULTS = peer_runs.RESULTS / "optuna_samplers.jsonl"
PROBLEMS = ("keane-10", "welded-beam", "ackley-5", "ackley-1", "pressure-vessel")
Told = Mapping[str, Any]

SAMPLERS: dict[str, Callable[[Problem, int], BaseSampler]] = {
    "cbob auto": lambda problem, seed: CBOBSampler(constraints=problem.constraints, seed=seed),  # the default
    "cbob": lambda problem, seed: CBOBSampler(constraints=problem.constraints, strategy="cbob", seed=seed),
    "cbob eic": lambda problem, seed: CBOBSampler(constraints=problem.constraints, strategy="eic", seed=seed),
    "tpe": lambda problem, seed: TPESampler(seed=seed),  # multivariate, since Optuna 5
    "tpe independent": lambda problem, seed: TPESampler(seed=seed, multivariate=False),
    "gp": lambda problem, seed: GPSampler(seed=seed),
    "gp noiseless": lambda problem, seed: GPSampler(seed=seed, deterministic_objective=True),
}
BOTH = ("constraints", "penalty")
WAYS = {name: ("failures",) if name.startswith("cbob") else BOTH for name in SAMPLERS}


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
    scenario = Scenario(problem.scenario)
    spots: dict[str, BaseDistribution] = {}
    for parameter, one in problem.space.parameters.items():
        assert isinstance(one, Float)
        spots[parameter] = FloatDistribution(one.low, one.high, log=one.log)
    study = optuna.create_study(direction=problem.direction, sampler=SAMPLERS[sampler](problem, seed))
    teller = Teller(study, problem, way)
    design = [problem.space.decode(row) for row in peer_runs.design_of(problem, seed)]
    results = [reveal(problem, params, scenario) for params in design]
    teller.note(results)
    values, asking = [], 0.0
    for number in range(len(design) + peer_runs.BUDGET):
        if number < len(design):
            study.enqueue_trial(design[number])
        started = time.perf_counter()
        trial = study.ask(spots)
        if number >= len(design):
            asking += time.perf_counter() - started
        told = reveal(problem, trial.params, scenario)
        teller.tell(trial, told)
        values.append(told.get("value", np.nan))
    return peer_runs.record((name, sampler, way, seed), values, asking=asking, packages=("cbob", "optuna"))


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    peer_runs.main(__doc__, out=RESULTS, problems=PROBLEMS, ways=WAYS, execute=execute)
