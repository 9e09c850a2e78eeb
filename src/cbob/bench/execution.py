"""One run, evaluation by evaluation: it can be killed anywhere, and goes on exactly as if it had not been.

The protocol is the paper's: 11 n scrambled-Sobol points, then `budget` evaluations one by one through the public ask and
tell. The design is the same for every strategy, so it is evaluated once for each problem and seed, and shared.

In the scratch folder each run has a journal of its evaluations and, every few of them, the state of its optimizer. Starting
again means: load the state, ask anew for the few evaluations since (each must be the point in the journal), and go on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from math import nan
from pathlib import Path

import numpy as np

from cbob import Optimizer
from cbob.bench.environment import environment, identity
from cbob.bench.journal import Evaluation, Journal, write_whole
from cbob.bench.problems import Problem, get
from cbob.bench.runs import Record, Run
from cbob.bench.scenarios import Scenario, constraints_for, hide
from cbob.errors import CbobError, StateError
from cbob.observations import direction_sign
from cbob.trials import Trial

__all__ = ["Tick", "design_of", "design_size", "execute"]

Tick = Callable[[int, int], object]  # how many evaluations were taken up from before, how many are new
STATE_EVERY = 10  # evaluations; with 200 trials a state is 100 kB


def design_size(problem: Problem) -> int:
    return 11 * len(problem.space.names)


def design_of(problem: Problem, seed: int, scratch: Path, tick: Tick = lambda old, new: None) -> list[Evaluation]:
    """The evaluations of the initial design: from the scratch folder, or carried out and put there."""
    made_by = environment()
    header = {"design": problem.name, "seed": seed, "problems": made_by["problems"], "packages": made_by["packages"]}
    with Journal(scratch / "designs" / f"{problem.name}-{seed}.jsonl", header) as journal:
        optimizer = _optimizer(problem, Scenario.S3, "sobol", "hlgp", seed)
        known = list(journal.evaluations)
        tick(len(known), 0)
        for number in range(design_size(problem)):
            trial = optimizer.ask()
            if number < len(known):
                _check_asked(trial, known[number], journal)
            else:
                journal.append(_evaluate(problem, trial, 0.0))
                tick(0, 1)
            optimizer.tell(trial, **hide(problem, journal.evaluations[number].measured, Scenario.S3))
        return journal.evaluations


def execute(run: Run, scratch: Path, tick: Tick = lambda old, new: None) -> Record:
    """Carry out a run, or what is left of it."""
    cell, problem = run.cell, get(run.cell.problem)
    scenario = Scenario(cell.scenario)
    design = design_of(problem, run.seed, scratch)
    folder = scratch / "runs" / problem.name / f"{cell.scenario}-{cell.strategy}-{cell.surrogate}-{cell.budget}"
    state_file = folder / f"{run.seed}.state"
    with Journal(folder / f"{run.seed}.jsonl", {"run": run.to_dict(), "environment": environment()}) as journal:
        known = design + journal.evaluations
        tick(len(journal.evaluations), 0)
        finished = len(journal.evaluations) >= cell.budget
        optimizer = _optimizer(problem, scenario, cell.strategy, cell.surrogate, run.seed)
        if not finished:
            optimizer = _stored(state_file, len(known)) or optimizer
            for evaluation in known[len(optimizer.trials) :]:
                trial = optimizer.ask()
                _check_asked(trial, evaluation, journal)
                optimizer.tell(trial, **hide(problem, evaluation.measured, scenario))
        for number in range(len(journal.evaluations) + 1, cell.budget + 1):
            started = time.process_time()
            trial = optimizer.ask()
            evaluation = _evaluate(problem, trial, time.process_time() - started)
            journal.append(evaluation)
            tick(0, 1)
            optimizer.tell(trial, **hide(problem, evaluation.measured, scenario))
            if number % STATE_EVERY == 0 and number < cell.budget:
                write_whole(state_file, json.dumps({"environment": environment(), "state": optimizer.state()}))
        state_file.unlink(missing_ok=True)
        return _record(run, problem, design, journal.evaluations)


def _optimizer(problem: Problem, scenario: Scenario, strategy: str, surrogate: str, seed: int) -> Optimizer:
    return Optimizer(
        problem.space,
        constraints=constraints_for(problem, scenario),
        direction=problem.direction,
        strategy=strategy,
        surrogate=surrogate,
        initial=design_size(problem),
        seed=seed,
    )


def _evaluate(problem: Problem, trial: Trial, asking: float) -> Evaluation:
    started = time.process_time()
    value, readings = problem.function(trial.params)
    return Evaluation(dict(trial.params), value, readings, round(asking, 5), round(time.process_time() - started, 5))


def _check_asked(trial: Trial, evaluation: Evaluation, journal: Journal) -> None:
    if dict(trial.params) != evaluation.params:
        raise CbobError(
            f"evaluation {trial.id} was saved at {evaluation.params}, but now {dict(trial.params)} is asked for: something "
            f"else has changed than versions tell; delete {journal.path} to start this run anew"
        )


def _stored(path: Path, known: int) -> Optimizer | None:
    """The optimizer that was saved last, unless it knows more than the journal, or another version saved it."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        if saved["environment"] != environment() or len(saved["state"]["trials"]) > known:
            return None
        return Optimizer.from_state(saved["state"])
    except (OSError, ValueError, KeyError, TypeError, StateError):
        return None  # asking anew for every point takes longer, and leads to the same


def _record(run: Run, problem: Problem, design: list[Evaluation], after: list[Evaluation]) -> Record:
    def objective(evaluation: Evaluation) -> float:
        return nan if problem.broken(evaluation.readings) else evaluation.value

    sign = direction_sign(problem.direction)
    values = np.array([objective(evaluation) for evaluation in after])
    start = np.fmin.reduce([sign * objective(evaluation) for evaluation in design])
    best = np.fmin.accumulate([start, *(sign * values)])  # fmin passes over NaN
    steps = [n for n, value in enumerate(best) if value < (np.inf if n == 0 or np.isnan(best[n - 1]) else best[n - 1])]
    return Record(
        run=run,
        improved=tuple((n, float(sign * best[n])) for n in steps),
        feasible=tuple(np.isfinite(values).tolist()),
        ask_seconds=round(sum(evaluation.asking for evaluation in after), 3),
        evaluation_seconds=round(sum(evaluation.evaluating for evaluation in after), 3),
        design_seconds=round(sum(evaluation.evaluating for evaluation in design), 3),
        environment=identity(environment()),
    )
