"""What the paper's small pictures show: the toy's surrogate and its DPOF, HLGP on three readings, HLGP against GPC."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

from cbob import Optimizer
from cbob.acquisition.feasibility import EMUB, DynamicFeasibility, Exploration
from cbob.bench.journal import write_whole
from cbob.bench.problems import get
from cbob.models.ep import expectation_propagation
from cbob.models.gp import Posterior
from cbob.models.hlgp import GPC, HLGP, Settings
from cbob.models.kernels import Kernel
from cbob.trials import SATISFIED, VIOLATED, Reading

__all__ = [
    "LEARNED",
    "Misjudged",
    "areas",
    "dpof",
    "emubs",
    "random_function",
    "three_readings",
    "toy_limit",
    "toy_trajectories",
    "toy_value",
    "typical",
]

Array = NDArray[np.float64]

LEARNED = (2.5, 3.7, 4.2, 4.25, 4.7, 5.0)  # where the toy was evaluated, in the paper's B.1
EXPERIMENTS, START, BUDGET = 5, 10, 8  # the same section


def toy_value(x: Array) -> Array:
    return np.array([get("toy").function({"x": float(one)})[0] for one in x])


def toy_limit() -> HLGP:
    """The toy's constraint, learned from six readings, all of them values: without a warp, as in the paper."""
    x = np.array(LEARNED)
    return HLGP(Settings(warp=False)).fit(x[:, None] / 10.0, toy_value(x))


def dpof(limit: Posterior, rows: Array, exploration: Exploration) -> Array:
    mean, std = limit.predict(rows)
    return np.asarray(np.exp(DynamicFeasibility(exploration)(mean, std).value))


def emubs(
    limit: Posterior, rows: Array, betas: tuple[float, ...], gammas: tuple[float, ...]
) -> Mapping[tuple[float, str], EMUB]:
    """EMUB at each beta and gamma, and at the gamma that `Adapt` finds on these rows."""
    marginals = limit.predict(rows)
    fixed = {(beta, f"{gamma:g}"): EMUB(gamma, beta) for beta in betas for gamma in gammas}
    return fixed | {(beta, "Adapt"): EMUB.adapted(*marginals, beta) for beta in betas}


def toy_trajectories(strategy: str) -> Array:
    """The best value after 0 .. 8 evaluations, one row an experiment; everything is observed, the start is uniform."""
    problem = get("toy")
    paths = []
    for seed in range(EXPERIMENTS):
        optimizer = Optimizer(problem.space, constraints=problem.constraints, strategy=strategy, initial=0, seed=seed)
        for x in np.random.default_rng(seed).uniform(0.0, 10.0, START):
            value, readings = problem.function({"x": x})
            optimizer.add({"x": x}, value, constraints=readings)
        path = []
        for _ in range(BUDGET + 1):
            path.append(np.nan if optimizer.best is None else optimizer.best.value)
            trial = optimizer.ask()
            value, readings = problem.function(trial.params)
            optimizer.tell(trial, value, constraints=readings)
        paths.append(path)
    return np.array(paths, dtype=float)


def three_readings(x: Array, values: Array, broken: float, length: float = 0.2) -> tuple[Posterior, Posterior]:
    """HLGP from two values and one "it broke", at fixed hyperparameters; before the broken one is known, and after."""
    kernel = Kernel(np.array([length]), 1.0, 0.0, 1.0, bias=1.0, portions=np.ones(1))
    before = Posterior(kernel, x[:, None], values, np.full(x.size, 1e-12))
    mean, cov = before.joint(np.array([[broken]]))
    ep = expectation_propagation(mean, cov, np.array([1.0]))
    rows, y = np.append(x, broken)[:, None], np.append(values, ep.site_mean)
    return before, Posterior(kernel, rows, y, np.append(np.full(x.size, 1e-12), ep.site_var))


@dataclass(frozen=True)
class Misjudged:
    """A limit learned from readings of which those that broke are hidden, against the truth on a fine grid of the square."""

    points: Array
    broken: NDArray[np.bool_]
    truth: Array  # on the grid
    believed: Mapping[str, Array]  # the probability that the limit holds, on the grid, by surrogate

    @property
    def area(self) -> dict[str, float]:
        """The share of the square that is judged wrongly."""
        return {name: float(np.mean((p >= 0.5) != (self.truth <= 0.0))) for name, p in self.believed.items()}

    @property
    def regions(self) -> dict[str, int]:
        """In how many pieces the feasible region is believed to be."""
        return {name: int(label(p >= 0.5)[1]) for name, p in self.believed.items()}


FINE, FUNCTIONS, LENGTH = 120, 20, 0.35
AREAS = "hlgp_gpc.json"


def _cells(count: int) -> Array:
    """The middles of count x count cells of the square, (count^2, 2)."""
    return _square((np.arange(count) + 0.5) / count)


def _square(edge: Array) -> Array:
    return np.stack(np.meshgrid(edge, edge, indexing="ij"), axis=-1).reshape(-1, 2)


EVEN = _square(np.linspace(0.0, 1.0, 6))  # 36 points


def _learned(readings: Array, truth: Array) -> Misjudged:
    """`readings` are those of the 36 points, `truth` is the limit on the fine grid."""
    broken = readings > 0.0
    hidden = [VIOLATED if b else Reading.measured(float(g)) for g, b in zip(readings, broken, strict=True)]
    signs = [VIOLATED if b else SATISFIED for b in broken]
    models = {"HLGP": HLGP().fit(EVEN, hidden), "GPC": GPC().fit(EVEN, signs)}
    believed = {name: model.probability(_cells(FINE)).reshape(FINE, FINE) for name, model in models.items()}
    return Misjudged(EVEN, broken, truth.reshape(FINE, FINE), believed)


@cache
def _draws() -> tuple[Array, Array, Array]:
    """How a draw is made: from white noise at anchors to the 36 points, and to the fine grid; and the Cholesky factor there. A
    draw is known at the anchors, and its interpolant is the function."""
    kernel, anchors = Kernel(np.full(2, LENGTH), 1.0, 0.0, 1.0, bias=1e-9, portions=np.full(2, 0.5)), _cells(24)
    K = kernel(anchors, anchors) + 1e-8 * np.eye(len(anchors))
    lower = np.linalg.cholesky(K)
    return kernel(EVEN, anchors), kernel(_cells(FINE), anchors), np.linalg.inv(lower).T


def random_function(seed: int) -> Misjudged:
    """For a draw of a Matern process, shifted so that half of the points break."""
    to_points, to_cells, whitened = _draws()
    weights = whitened @ np.random.default_rng(seed).standard_normal(len(whitened))
    readings = to_points @ weights
    middle = np.median(readings)
    return _learned(readings - middle, to_cells @ weights - middle)


def areas(results: Path) -> dict[str, list[float]]:
    """The misjudged share of the square by surrogate, for each of the random functions (one alone may be luck): saved, or
    worked out, which takes a minute, and saved."""
    path = results / AREAS
    if not path.exists():
        found = [random_function(seed).area for seed in range(FUNCTIONS)]
        results.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({name: [round(one[name], 5) for one in found] for name in found[0]}) + "\n")
    known: dict[str, list[float]] = json.loads(path.read_text(encoding="utf-8"))
    return known


def typical(results: Path) -> Misjudged:
    """The random function in the middle by how much more one surrogate misjudges than the other."""
    shares = areas(results)
    differences = np.subtract(shares["GPC"], shares["HLGP"])
    return random_function(int(np.argsort(differences)[len(differences) // 2]))
