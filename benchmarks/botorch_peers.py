"""BoTorch's own ways of constrained optimisation, at equal evaluations, where failures hide what was measured.

python benchmarks/botorch_peers.py --seeds 0-9            # appends each finished run; started again, it repeats none
python benchmarks/botorch_peers.py --table

Everyone starts from the same 11 d Sobol points and then asks 100 times, one by one, each problem in its own scenario: the
objective is hidden where a limit broke, and in S2 so are the readings that broke.

    logei   LogConstrainedExpectedImprovement, which the documentation strongly recommends over the same without the logarithm;
            the analytic form is exact for one point at a time and noiseless values. A default SingleTaskGP for the objective
            and one for each constraint, 10 restarts from 512 raw samples, up to 200 iterations, and fits that set out from the
            last hyperparameters, all as in the tutorial "Closed-loop batch, constrained BO". While nothing feasible is known:
            LogProbabilityOfFeasibility.
    scbo    Scalable constrained BO, as in the tutorial of that name with a batch of 1: a trust region of side 0.8 in the unit
            cube about the best point, halved after max(4, d) failures, doubled after 10 successes; 2000 Sobol candidates,
            each with a random mask of perturbed parameters; standardised outcomes; ConstrainedMaxPosteriorSampling. Where
            the tutorial leaves things open: the best of the initial design is what the first candidate has to beat, and a
            region that has shrunk below 2^-7 opens to its first size again, about the best point and with all data, which
            costs it nothing (the paper would spend 11 d of the 100 evaluations on another design).

What failures are shown as:

    objective   its model is fitted to the feasible points alone: models of different outcomes may have different data, which
                is what BoTorch's maintainers advise for an objective that does not exist where a limit breaks. SCBO without a
                feasible point looks for the least violation, which needs no objective.
    constraint  a reading that was measured is itself. One that broke unmeasured (S2) stands as far beyond the limit as those
                that held lie within it in the median. Nothing has been measured beyond the limit then, so this takes the only
                scale there is, and leaves the limit in the middle.
    raw         the readings are modelled as they are, standardised, as in both tutorials
    bilog       sign(g) log(1 + |g|) of them is, as in SCBO's paper (BoTorch has the same as the transform `Bilog`); the limit
                stays at 0
    scaled      the same after division by the median of |g|, as one would who has seen that readings of thousands make the
                bilog nearly a step
"""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import peer_runs  # isort: skip; limits threads, so it comes before NumPy and torch
import numpy as np
import torch
from botorch import fit_gpytorch_mll
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement, LogProbabilityOfFeasibility
from botorch.exceptions.errors import ModelFittingError
from botorch.generation.sampling import ConstrainedMaxPosteriorSampling
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms.outcome import Standardize
from botorch.optim import optimize_acqf
from gpytorch.constraints import Interval
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor
from torch.quasirandom import SobolEngine

from cbob.bench.problems import Problem, get
from cbob.bench.scenarios import Scenario, reveal
from cbob.observations import direction_sign

RESULTS = peer_runs.RESULTS / "botorch.jsonl"
PROBLEMS = ("keane-10", "welded-beam", "ackley-5", "pressure-vessel")
WAYS: dict[str, Sequence[str]] = {"logei": ("raw", "bilog", "scaled"), "scbo": ("raw", "bilog", "scaled")}


class Shown:
    """What a scenario has let through: rows X (N, d) of the unit cube, objectives to be maximised f (N,), NaN where infeasible,
    and constraints g (N, m) that hold where <= 0."""

    def __init__(self, problem: Problem, way: str) -> None:
        self.problem, self.way = problem, way
        self.sign = -direction_sign(problem.direction)
        self.rows: list[Tensor] = []
        self.objectives: list[float] = []
        self.margins: list[list[float]] = []  # NaN where broken unmeasured

    def evaluate(self, row: np.ndarray) -> None:
        told = reveal(self.problem, self.problem.space.decode(row), Scenario(self.problem.scenario))
        readings = told["constraints"]
        self.rows.append(torch.from_numpy(np.array(row)))
        self.objectives.append(self.sign * told.get("value", math.nan))
        self.margins.append(
            [limit.margin(readings[limit.name]) if limit.name in readings else math.nan for limit in self.problem.constraints]
        )

    @property
    def values(self) -> list[float]:
        """The objectives as the problem has them."""
        return [self.sign * value for value in self.objectives]

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        g = torch.tensor(self.margins, dtype=torch.double)
        if self.way == "scaled":
            g = g / g.abs().nanmedian(dim=0).values.clamp(min=1e-9)
        if self.way != "raw":
            g = g.sign() * g.abs().log1p()
        for reading in g.T:
            hidden = reading.isnan()
            if hidden.any():  # all others hold, or they would be hidden as well
                scale = reading[~hidden].abs().median() if not hidden.all() else torch.tensor(1.0)
                reading[hidden] = scale.clamp(min=1e-9).double()
        return torch.stack(self.rows), torch.tensor(self.objectives, dtype=torch.double), g


class Marginal:
    """The same posterior means and deviations (b, m) of rows X (b, 1, d), in less time: as one set of b rows, where GPyTorch
    would copy the training data for each of b sets of one row. The first asks on the welded beam: 1.6 s, instead of 2.3."""

    model: Any

    def _mean_and_sigma(self, X: Tensor, compute_sigma: bool = True, min_var: float = 1e-12) -> tuple[Tensor, Tensor]:
        posterior = self.model.posterior(X.squeeze(-2))
        return posterior.mean, posterior.variance.clamp_min(min_var).sqrt()


class ConstrainedEI(Marginal, LogConstrainedExpectedImprovement):
    pass


class Feasibility(Marginal, LogProbabilityOfFeasibility):
    pass


class Hyperparameters:
    """Those found last, for each outcome. Not the mean and deviation of the outcomes, which are those of the data."""

    def __init__(self) -> None:
        self.found: dict[int, dict[str, Any]] = {}

    def fit(self, outcome: int, fresh: Callable[[], SingleTaskGP], *, warm: bool, attempts: int = 5) -> SingleTaskGP:
        """A fitted model; where no fit comes to an end, which can happen with many close points, one with the last.

        Further attempts start from draws of the priors: without any they would be the first one over again.
        """
        for start in (warm, not warm):
            model = fresh()
            if start:
                model.load_state_dict(self.found.get(outcome, {}), strict=False)
            try:
                fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model), max_attempts=attempts)
            except ModelFittingError:
                continue
            state = model.state_dict()
            self.found[outcome] = {name: value for name, value in state.items() if not name.startswith("outcome_transform")}
            return model
        model = fresh()
        model.load_state_dict(self.found.get(outcome, {}), strict=False)
        return model.eval()


class Peer(Protocol):
    def ask(self, X: Tensor, f: Tensor, g: Tensor) -> Tensor:
        """The next row (d,)."""


class LogEI:
    """Constrained expected improvement."""

    def __init__(self, d: int, seed: int) -> None:
        self.bounds = torch.tensor([[0.0], [1.0]], dtype=torch.double).expand(2, d)
        self.hyperparameters = Hyperparameters()

    def ask(self, X: Tensor, f: Tensor, g: Tensor) -> Tensor:
        feasible = ~f.isnan()
        models = [self._fitted(number, X, reading) for number, reading in enumerate(g.T, 1)]
        acquisition: Any
        if feasible.any():
            model = ModelListGP(self._fitted(0, X[feasible], f[feasible]), *models)
            limits = dict.fromkeys(range(1, len(models) + 1), (None, 0.0))
            acquisition = ConstrainedEI(model, best_f=f[feasible].max(), objective_index=0, constraints=limits)
        else:
            acquisition = Feasibility(ModelListGP(*models), dict.fromkeys(range(len(models)), (None, 0.0)))
        options = {"batch_limit": 5, "maxiter": 200}
        candidate, _ = optimize_acqf(acquisition, self.bounds, q=1, num_restarts=10, raw_samples=512, options=options)
        return candidate[0]

    def _fitted(self, number: int, X: Tensor, y: Tensor) -> SingleTaskGP:
        return self.hyperparameters.fit(number, lambda: SingleTaskGP(X, y[:, None]), warm=True)


class SCBO:
    """Thompson sampling with constraints in a trust region."""

    FIRST, LARGEST, SMALLEST = 0.8, 1.6, 0.5**7  # sides of the region
    SUCCESSES = 10

    def __init__(self, d: int, seed: int) -> None:
        self.d = d
        self.failures = max(4, d)
        self.sobol = SobolEngine(d, scramble=True, seed=seed)
        self.hyperparameters = Hyperparameters()
        self.length, self.won, self.lost = self.FIRST, 0, 0
        self.seen = 0  # evaluations that the region knows of
        self.best = -1  # the one that the next has to beat

    def ask(self, X: Tensor, f: Tensor, g: Tensor) -> Tensor:
        self._update(f, g)
        feasible = ~f.isnan()
        centre = X[_best_of(f, g)]
        low, high = ((centre + side * self.length / 2).clamp(0, 1) for side in (-1, 1))
        count = min(5000, max(2000, 200 * self.d))
        perturbed = low + (high - low) * self.sobol.draw(count).double()
        mask = torch.rand(count, self.d) <= min(20 / self.d, 1.0)
        idle = torch.nonzero(~mask.any(dim=1)).flatten()
        mask[idle, torch.randint(self.d, idle.shape)] = True
        candidates = torch.where(mask, perturbed, centre)
        # Without a feasible point any objective will do.
        objective = self._fitted(0, X[feasible], f[feasible]) if feasible.any() else SingleTaskGP(X, torch.zeros_like(X[:, :1]))
        limits = ModelListGP(*(self._fitted(number, X, reading) for number, reading in enumerate(g.T, 1)))
        with torch.no_grad():
            chosen = ConstrainedMaxPosteriorSampling(objective, constraint_model=limits, replacement=False)(candidates)
        return chosen[0]

    def _fitted(self, number: int, X: Tensor, y: Tensor) -> SingleTaskGP:
        def fresh() -> SingleTaskGP:
            kernel = MaternKernel(nu=2.5, ard_num_dims=self.d, lengthscale_constraint=Interval(0.005, 4.0))
            likelihood = GaussianLikelihood(noise_constraint=Interval(1e-8, 1e-3))
            transform = Standardize(m=1)
            return SingleTaskGP(
                X, y[:, None], covar_module=ScaleKernel(kernel), likelihood=likelihood, outcome_transform=transform
            )

        return self.hyperparameters.fit(number, fresh, warm=False, attempts=1)

    def _update(self, f: Tensor, g: Tensor) -> None:
        """Count what came since the last time; the design only says what has to be beaten."""
        if not self.seen:
            self.best = _best_of(f, g)
        for new in range(self.seen, len(f)) if self.seen else ():
            if self._beaten(f, g, new):
                self.best, self.won, self.lost = new, self.won + 1, 0
            else:
                self.won, self.lost = 0, self.lost + 1
            if self.won == self.SUCCESSES:
                self.length, self.won = min(2 * self.length, self.LARGEST), 0
            elif self.lost == self.failures:
                self.length, self.lost = self.length / 2, 0
            if self.length < self.SMALLEST:
                self.length, self.won, self.lost = self.FIRST, 0, 0
        self.seen = len(f)

    def _beaten(self, f: Tensor, g: Tensor, new: int) -> bool:
        """A feasible point beats any that is not, or a worse one by a thousandth; between two others the violation decides."""
        if f[new].isnan():
            return bool(f[self.best].isnan() and _violation(g[new]) < _violation(g[self.best]))
        return bool(f[self.best].isnan() or f[new] > f[self.best] + 1e-3 * f[self.best].abs())


def _best_of(f: Tensor, g: Tensor) -> int:
    return int(_violation(g).argmin() if f.isnan().all() else f.nan_to_num(-math.inf).argmax())


def _violation(g: Tensor) -> Tensor:
    return g.clamp(min=0.0).sum(dim=-1)


PEERS: dict[str, Callable[[int, int], Peer]] = {"logei": LogEI, "scbo": SCBO}


def execute(name: str, sampler: str, way: str, seed: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    problem = get(name)
    shown, asking = Shown(problem, way), 0.0
    for row in peer_runs.design_of(problem, seed):
        shown.evaluate(row)
    peer = PEERS[sampler](len(problem.space.names), seed)
    for _ in range(peer_runs.BUDGET):
        started = time.process_time()
        row = peer.ask(*shown.tensors())
        asking += time.process_time() - started
        shown.evaluate(row.numpy())
    packages = ("botorch", "cbob", "gpytorch", "torch")
    return peer_runs.record((name, sampler, way, seed), shown.values, asking=asking, packages=packages)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of optimisers that gave up early, and tried again
    peer_runs.main(__doc__, out=RESULTS, problems=PROBLEMS, ways=WAYS, execute=execute)
