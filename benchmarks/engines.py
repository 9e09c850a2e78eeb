"""The problem that the engines are timed on, and the engines behind one face."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

Array = NDArray[np.float64]
DIMENSION = 10
NAMES = [f"x{i}" for i in range(DIMENSION)]
CONSTRAINTS = ["g1", "g2"]


def bump(X: Array) -> tuple[Array, Array]:
    """Keane's bump function on [0, 10]^10: f (N,) to be minimised, g (N, 2) that holds where <= 0."""
    cos2 = np.cos(X) ** 2
    numerator = np.abs((cos2**2).sum(axis=1) - 2 * cos2.prod(axis=1))
    f = -numerator / np.sqrt(X**2 @ np.arange(1.0, DIMENSION + 1))
    return f, np.column_stack([0.75 - X.prod(axis=1), X.sum(axis=1) - 7.5 * DIMENSION])


def sobol(n: int) -> Array:
    points = qmc.Sobol(DIMENSION, seed=0).random_base2((n - 1).bit_length())
    return 10 * np.asarray(points[:n], dtype=float)


class Engine(Protocol):
    """Starts from the results of points X (N, d): objectives f (N,) and constraints g (N, 2)."""

    def ask(self) -> Array:
        """The next point (d,). This alone is timed."""

    def tell(self, f: float, g: Array) -> None:
        """The result of the point asked for last."""


class Cbob:
    """The objective is hidden where a constraint broke; so is the broken reading, with `hide_broken`."""

    def __init__(self, X: Array, f: Array, g: Array, *, hide_broken: bool = False) -> None:
        import cbob

        self.hide_broken = hide_broken
        space = cbob.Space({name: cbob.Float(0.0, 10.0) for name in NAMES})
        limits = [f"{name} <= 0" for name in CONSTRAINTS]
        self.optimizer = cbob.Optimizer(space, constraints=limits, strategy="cbob", seed=0)
        for x, value, readings in zip(X.tolist(), f.tolist(), g, strict=True):
            self.optimizer.add(dict(zip(NAMES, x, strict=True)), **self._shown(value, readings))

    def _shown(self, f: float, g: Array) -> dict[str, Any]:
        readings = dict(zip(CONSTRAINTS, g.tolist(), strict=True))
        broken = [name for name, reading in readings.items() if reading > 0]
        if self.hide_broken:
            readings = {name: reading for name, reading in readings.items() if name not in broken}
        return {"value": None if broken else f, "constraints": readings, "violated": broken}

    def ask(self) -> Array:
        self.trial = self.optimizer.ask()
        return np.array([self.trial.params[name] for name in NAMES])

    def tell(self, f: float, g: Array) -> None:
        self.optimizer.tell(self.trial, **self._shown(f, g))


class Optuna:
    """GPSampler with its defaults. Every trial must have a value, so an infeasible one keeps its true one."""

    def __init__(self, X: Array, f: Array, g: Array) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.space = {name: optuna.distributions.FloatDistribution(0.0, 10.0) for name in NAMES}
        self.study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=0))
        for x, value, readings in zip(X.tolist(), f.tolist(), g.tolist(), strict=True):
            params = dict(zip(NAMES, x, strict=True))
            constraints = dict(zip(CONSTRAINTS, readings, strict=True))
            self.study.add_trial(
                optuna.create_trial(params=params, distributions=self.space, value=value, constraints=constraints)
            )

    def ask(self) -> Array:
        self.trial = self.study.ask(self.space)
        return np.array([self.trial.params[name] for name in NAMES])

    def tell(self, f: float, g: Array) -> None:
        for name, reading in zip(CONSTRAINTS, g.tolist(), strict=True):
            self.trial.set_constraint(name, reading)
        self.study.tell(self.trial, f)


class BoTorch:
    """One SingleTaskGP per output and LogConstrainedExpectedImprovement: 10 restarts from 512 raw samples.

    Each ask fits a new model; with `warm_start` the fit sets out from the hyperparameters of the last one.
    """

    def __init__(self, X: Array, f: Array, g: Array, *, warm_start: bool = False) -> None:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.X, self.f, self.g = X, f, g
        self.warm_start = warm_start
        self.model: Any = None

    def ask(self) -> Array:
        import torch
        from botorch import fit_gpytorch_mll
        from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
        from botorch.models import ModelListGP, SingleTaskGP
        from botorch.optim import optimize_acqf
        from gpytorch.mlls import SumMarginalLogLikelihood

        cube, f, g = torch.from_numpy(self.X / 10), torch.from_numpy(self.f), torch.from_numpy(self.g)
        feasible = (g <= 0).all(dim=1)
        outputs = [(cube[feasible], f[feasible]), (cube, g[:, 0]), (cube, g[:, 1])]
        model = ModelListGP(*(SingleTaskGP(inputs, output[:, None]) for inputs, output in outputs))
        if self.warm_start and self.model is not None:
            model.load_state_dict(self.model.state_dict())
        self.model = model
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        acquisition = LogConstrainedExpectedImprovement(
            model,
            best_f=f[feasible].min(),
            objective_index=0,
            constraints={1: (None, 0.0), 2: (None, 0.0)},
            maximize=False,
        )
        bounds = torch.tensor([[0.0], [1.0]], dtype=cube.dtype).expand(2, DIMENSION)
        candidate, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=512)
        self.x: Array = 10 * candidate[0].numpy()
        return self.x

    def tell(self, f: float, g: Array) -> None:
        self.X, self.f, self.g = np.vstack([self.X, self.x]), np.append(self.f, f), np.vstack([self.g, g])
