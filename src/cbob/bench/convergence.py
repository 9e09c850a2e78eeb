"""Theorem 1, watched: with every reading known, the largest EICB falls towards 0 and the best value reaches the optimum.

Two forms of each acquisition (EIC, EICB with POB, EICB with EMUB):

    theorem   the theorem's assumptions as far as a computer can meet them: surrogates whose hyperparameters and scales are
              fixed by the initial design, rho as printed (POB without a resolution), the next point wherever EICB is largest
    shipped   the strategies as they are: hyperparameters and warps learned anew at every step, POB faded out below its
              resolution, no point asked for twice

The largest EICB is an expected improvement: of the theorem's form in units of the objective's spread over the initial
design, of the shipped one in latent units, where the readings so far have unit spread (so its unit moves a little).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbob import Optimizer
from cbob.acquisition.base import Acquisition, Factor, Product
from cbob.acquisition.feasibility import EMUB, POB, DynamicFeasibility, ProbabilityOfFeasibility
from cbob.acquisition.improvement import ExpectedImprovement
from cbob.bench.journal import write_whole
from cbob.bench.problems import Problem, get
from cbob.candidates import Effort, Taken, maximise, pool
from cbob.linalg import one_thread
from cbob.models.gp import Posterior
from cbob.models.hlgp import GPR, HLGP, Settings
from cbob.observations import direction_sign
from cbob.strategies import STRATEGIES, Beliefs, Climb, Strategy

__all__ = ["FORMS", "RHOS", "Watch", "load_watches", "watch", "watch_all"]

Array = NDArray[np.float64]
Limits = Sequence[Posterior]

PROBLEMS = ("toy", "mishra-bird")
FORMS = ("theorem", "shipped")
RHOS = {"eic": "EIC", "cbob": "EICB, POB", "cbob-mub": "EICB, EMUB"}  # by the strategy that is made of it
FILE = "theorem1.json"
# Relative to the kernel's variance: what keeps a covariance matrix of hundreds of close points positive definite. No
# standard deviation can be known to less than its root, so the largest EICB levels off near 1e-6 of the objective's spread.
NOISE = 1e-10


@dataclass(frozen=True)
class Watch:
    """One run: the largest EICB before each evaluation after the design, and how far the best value is from the optimum
    after it (the first entry: after the design)."""

    problem: str
    rho: str
    form: str
    seed: int
    largest: tuple[float, ...]
    gap: tuple[float, ...]


def watch(problem: Problem, rho: str, form: str, seed: int, evaluations: int) -> Watch:
    """One run, with everything told of every point."""
    run = _as_the_theorem_says if form == "theorem" else _as_shipped
    with one_thread():
        largest, values = run(problem, rho, seed, evaluations)
    assert problem.optimum is not None
    sign = direction_sign(problem.direction)
    gap = np.fmin.accumulate(sign * np.array(values)) - sign * problem.optimum
    return Watch(problem.name, rho, form, seed, tuple(_short(largest)), tuple(_short(gap[len(gap) - evaluations - 1 :])))


def watch_all(results: Path, seeds: Sequence[int], evaluations: int, report: Callable[[str], object]) -> Path:
    """Every problem, form and rho at every seed; each is saved as it ends, and not done twice."""
    path = results / FILE
    done = {(w.problem, w.rho, w.form, w.seed): w for w in load_watches(results) if len(w.largest) >= evaluations}
    for seed in seeds:
        for name in PROBLEMS:
            for form in FORMS:
                for rho in RHOS:
                    if (name, rho, form, seed) in done:
                        continue
                    one = done[name, rho, form, seed] = watch(get(name), rho, form, seed, evaluations)
                    lines = ",\n".join(json.dumps(asdict(w), separators=(",", ":")) for _, w in sorted(done.items()))
                    write_whole(path, f"[\n{lines}\n]\n")
                    report(f"{name}, {form}, {RHOS[rho]}, seed {seed}: EICB {one.largest[-1]:.1e}, gap {one.gap[-1]:.1e}")
    return path


def load_watches(results: Path) -> list[Watch]:
    path = results / FILE
    if not path.exists():
        return []
    saved: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return [Watch(**one | {key: tuple(one[key]) for key in ("largest", "gap")}) for one in saved]


# ---- the theorem's form ----


def _as_the_theorem_says(problem: Problem, rho: str, seed: int, evaluations: int) -> tuple[list[float], list[float]]:
    space, sign = problem.space, direction_sign(problem.direction)
    rows = space.sobol(11 * len(space.names), seed=seed)
    f, G = _measure(problem, rows)
    mean, spread, sizes = f.mean(), f.std(), G.std(axis=0)
    nothing = np.zeros(len(rows), dtype=np.int8)
    plain = Settings(warp=False)
    kernels = [GPR(plain).learn(rows, f, nothing).posterior.kernel]
    kernels += [HLGP(plain).learn(rows, g, nothing).posterior.kernel for g in G.T]
    rng = np.random.default_rng([seed, len(rows)])
    width = rows.shape[1]
    nobody = Taken(np.empty((0, width)), np.empty((0, width)))
    largest: list[float] = []
    for _ in range(evaluations):
        readings = np.column_stack([(f - mean) / spread, G / sizes])
        objective, *limits = (
            Posterior(kernel, rows, y, np.full(len(rows), NOISE * kernel.variance))
            for kernel, y in zip(kernels, readings.T, strict=True)
        )
        feasible = np.flatnonzero((G <= 0.0).all(axis=1))
        order = feasible[np.argsort(f[feasible])]
        grid = pool(space, rows[order[:3]], Effort(), rng)
        acquisition = _eicb(rho, objective, limits, float(readings[order[0], 0]), grid)
        tops = np.vstack([maximise(acquisition, space, rng, centres=rows[order[:3]], taken=nobody), grid, rows[order[:3]]])
        heights = acquisition(tops)
        row = tops[int(np.argmax(heights))]
        largest.append(float(np.exp(heights.max())))
        value, g = _measure(problem, row[None])
        rows, f, G = np.vstack([rows, row]), np.append(f, value), np.vstack([G, g])
    return largest, (sign * np.where((G <= 0.0).all(axis=1), f, np.nan)).tolist()


def _eicb(rho: str, objective: Posterior, limits: Limits, best: float, grid: Array) -> Acquisition:
    def factor(limit: Posterior) -> Factor:
        if rho == "eic":
            return ProbabilityOfFeasibility()
        return DynamicFeasibility(POB() if rho == "cbob" else EMUB.adapted(*limit.predict(grid)))

    return Product((objective, *limits), [ExpectedImprovement(best), *map(factor, limits)])


def _measure(problem: Problem, rows: Array) -> tuple[Array, Array]:
    """The minimised objective (n,), and the margins (n, m)."""
    measured = [problem.function(problem.space.decode(row)) for row in rows]
    values = direction_sign(problem.direction) * np.array([value for value, _ in measured])
    margins = [[limit.margin(readings[limit.name]) for limit in problem.constraints] for _, readings in measured]
    return values, np.array(margins)


# ---- as it is shipped ----


class _Watched(Strategy):
    """A strategy, and the largest value of what it maximises: at its proposal, or at some row it may not propose again."""

    def __init__(self, inner: Climb) -> None:
        self.inner = inner
        self.largest: list[float] = []

    def propose(self, beliefs: Beliefs) -> Array:
        row = self.inner.propose(beliefs)
        rows = np.vstack([row[None], pool(beliefs.space, beliefs.centres, Effort(), beliefs.rng)])
        self.largest.append(float(np.exp(self.inner.acquisition(beliefs)(rows).max())))
        return row


def _as_shipped(problem: Problem, rho: str, seed: int, evaluations: int) -> tuple[list[float], list[float]]:
    inner = STRATEGIES[rho]
    assert isinstance(inner, Climb)
    strategy, design = _Watched(inner), 11 * len(problem.space.names)
    optimizer = Optimizer(
        problem.space,
        constraints=problem.constraints,
        direction=problem.direction,
        strategy=strategy,
        initial=design,
        seed=seed,
    )
    values = []
    for _ in range(design + evaluations):
        trial = optimizer.ask()
        value, readings = problem.function(trial.params)
        optimizer.tell(trial, value, constraints=readings)
        values.append(np.nan if problem.broken(readings) else value)
    return strategy.largest, values


def _short(values: Sequence[float] | Array) -> list[float]:
    return [float(f"{value:.5g}") for value in values]
