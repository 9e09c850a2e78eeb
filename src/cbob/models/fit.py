"""Hyperparameters by maximum a posteriori, from the evidence of values and signs together.

Symbols: n_v measured values y (warped), n_b signs s of latent values that were not measured, N = n_v + n_b; K (N, N) the kernel
over both, D (N,) the noise: the readings' own, plus the site variances of the signs. The evidence splits exactly,

    log p = log N(y | 0, K_vv + D_v) + log Z_EP(signs | K_bb - K_bv (K_vv + D_v)^-1 K_vb, ...) + log |dy/dg|

so EP only ever runs on the n_b latent values that are not Gaussian. At its fixed point the derivative through the sites
vanishes, and with W = alpha alpha' - (K + D)^-1, alpha = (K + D)^-1 (y, virtual readings),

    d log p = 1/2 sum(W * dK)          the gradient of a plain GP that holds the virtual readings fixed.

The parameter vector is theta = (log lengthscale of each group, log amplitude, log noise, log knee).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from cbob.linalg import NotPositiveDefinite, cholesky, inverse_from_cholesky, solve_lower
from cbob.models.ep import expectation_propagation
from cbob.models.kernels import Matern52
from cbob.models.warp import Shape, Warped, fold

Array = NDArray[np.float64]
Objective = Literal["evidence", "virtual"]

# A site weaker than this share of the prior precision says nothing; its virtual reading is kept, with a noise this wide.
WIDEST_SITE = 1e9


@dataclass(frozen=True)
class Priors:
    """Normal priors (centre, deviation) and bounds of the logarithms, for readings of unit spread in the unit cube.

    Distances in a cube grow like the square root of its dimension, and so does the centre of the lengthscales
    (Hvarfner, Hellsten and Nardi 2024). The noise starts at nothing, as in the paper, and takes overwhelming evidence to move: a
    surrogate that may call a ripple noise does, and then stops short of the optimum.
    """

    lengthscale: tuple[float, float] = (-0.4, 1.0)
    amplitude: tuple[float, float] = (0.5, 2.0)
    noise: tuple[float, float] = (-18.4, 1.0)
    knee: tuple[float, float] = (1.0, 4.0)
    lengthscale_bounds: tuple[float, float] = (-5.0, 5.0)
    amplitude_bounds: tuple[float, float] = (-8.0, 7.0)
    noise_bounds: tuple[float, float] = (-18.4, 0.0)
    knee_bounds: tuple[float, float] = (-14.0, 7.0)

    def table(self, groups: int, warped: bool) -> Array:
        """Rows (centre, deviation, low, high), one for each entry of theta. A fixed knee has low == high: no warp."""
        centre, deviation = self.lengthscale
        lengthscale = (centre + 0.5 * np.log(max(groups, 1)), deviation, *self.lengthscale_bounds)
        knee = (*self.knee, *(self.knee_bounds if warped else (self.knee_bounds[1],) * 2))
        rows = [lengthscale] * groups
        rows += [(*self.amplitude, *self.amplitude_bounds), (*self.noise, *self.noise_bounds), knee]
        return np.array(rows)


@dataclass(frozen=True)
class Problem:
    """What hyperparameters are learned from: values (X_v, margins) and signs (X_b, signs)."""

    X_values: Array
    margins: Array
    X_signs: Array
    signs: Array
    groups: NDArray[np.intp]
    unit: float
    scale: float
    shape: Shape
    warped: bool

    @property
    def rows(self) -> Array:
        return np.vstack([self.X_values, self.X_signs])

    def kernel(self, theta: Array, offset: float) -> Matern52:
        count = theta.size - 3
        # The readings' mean may lie far from the limit: the constant's prior has to reach it.
        return Matern52(np.exp(theta[:count])[self.groups], float(np.exp(theta[count])), 1.0 + offset**2)


@dataclass(frozen=True)
class Sites:
    """The signs' sites exp(shift g - precision g^2/2), kept from one fit to the next."""

    precision: Array
    shift: Array

    def as_readings(self, variance: float) -> tuple[Array, Array]:
        """Virtual readings and their noise variances."""
        noise = 1.0 / np.maximum(self.precision, 1.0 / (WIDEST_SITE * variance))
        return self.shift * noise, noise


@dataclass(frozen=True)
class Evaluation:
    """The evidence at one theta, its gradient, and what it was made of."""

    value: float
    gradient: Array
    sites: Sites
    warped: Warped
    sweeps: int
    converged: bool


def evaluate(problem: Problem, theta: Array, sites: Sites, *, tolerance: float, hold_sites: bool = False) -> Evaluation:
    """log p(readings | theta) and its gradient; `hold_sites` skips EP and scores the virtual readings instead."""
    groups = theta.size - 3
    n_v, n_b = problem.margins.size, problem.signs.size
    warped = fold(problem.margins, problem.unit, problem.shape, float(theta[-1]))
    kernel = problem.kernel(theta, warped.offset)
    noise = float(np.exp(theta[-2]))
    rows = problem.rows
    K, slope = kernel.with_slope(rows, rows)
    noisy = K + noise * np.eye(n_v + n_b)  # a sign is that of the reading, noise included: duplicates may disagree

    lower = np.zeros((n_v + n_b, n_v + n_b), order="F")
    lower_v = cholesky(noisy[:n_v, :n_v])
    lower[:n_v, :n_v] = lower_v
    white = solve_lower(lower_v, warped.y)
    value = -0.5 * white @ white - np.log(np.diagonal(lower_v)).sum() - 0.5 * n_v * np.log(2.0 * np.pi)
    value += warped.log_jacobian
    virtual, sweeps, converged = np.empty(0), 0, True
    if n_b:
        cross = solve_lower(lower_v, K[:n_v, n_v:])
        prior_mean, prior_cov = cross.T @ white, noisy[n_v:, n_v:] - cross.T @ cross
        diagonal = np.diag_indices_from(prior_cov)
        prior_cov[diagonal] = np.maximum(prior_cov[diagonal], noise)  # less than its own noise is rounding
        if not hold_sites:
            start = (sites.precision, sites.shift)
            ep = expectation_propagation(
                prior_mean, prior_cov, problem.signs, scale=problem.scale, start=start, tolerance=tolerance
            )
            sites, sweeps, converged = Sites(ep.site_precision, ep.site_shift), ep.sweeps, ep.converged
            value += ep.log_evidence
        virtual, virtual_noise = sites.as_readings(kernel.variance)
        prior_cov[diagonal] += virtual_noise
        lower_b = cholesky(prior_cov)
        lower[n_v:, :n_v], lower[n_v:, n_v:] = cross.T, lower_b
        if hold_sites:
            white_b = solve_lower(lower_b, virtual - prior_mean)
            value += -0.5 * white_b @ white_b - np.log(np.diagonal(lower_b)).sum() - 0.5 * n_b * np.log(2.0 * np.pi)

    inverse = inverse_from_cholesky(lower)
    alpha = inverse @ np.concatenate([warped.y, virtual])
    W = np.outer(alpha, alpha)
    W -= inverse
    gradient = np.empty_like(theta)
    # sum over pairs of W f (z_a - z_b)^2 / 2 without an N x N x w array
    Wf = W * slope
    Z = rows / kernel.lengthscales
    by_column = Wf.sum(axis=1) @ Z**2 - np.einsum("nj,nj->j", Z, Wf @ Z)
    gradient[:groups] = np.bincount(problem.groups, weights=by_column, minlength=groups)
    in_bias = 0.5 * W.sum()
    gradient[groups] = 0.5 * np.vdot(W, K) - in_bias * kernel.bias
    gradient[-2] = 0.5 * noise * np.trace(W)
    through_bias = in_bias * 2.0 * warped.offset * warped.offset_slope
    gradient[-1] = warped.log_jacobian_slope - alpha[:n_v] @ warped.y_slope + through_bias
    return Evaluation(float(value), gradient, sites, warped, sweeps, converged)


@dataclass(frozen=True)
class Fit:
    """A theta, the sites found there, and its evidence times prior (logarithm)."""

    theta: Array
    sites: Sites
    score: float


# How closely EP is solved while hyperparameters move: the evidence is stationary in the sites, so its error is the square.
LOOSE = 1e-4


def score(problem: Problem, priors: Priors, theta: Array, sites: Sites) -> Fit:
    """One theta, unmoved."""
    loss, _, found = _loss(problem, priors.table(theta.size - 3, problem.warped), theta, sites, hold_sites=False)
    return Fit(theta, found, -loss)


def climb(problem: Problem, priors: Priors, start: Fit, objective: Objective, evaluations: int) -> Fit:
    """L-BFGS-B from `start`, at most about `evaluations` evidences."""
    table = priors.table(start.theta.size - 3, problem.warped)
    virtual = objective == "virtual" and problem.signs.size > 0
    latest = start.sites  # each EP run starts from the sites of the one before

    def loss(point: Array) -> tuple[float, Array]:
        nonlocal latest
        value, gradient, latest = _loss(problem, table, point, latest, hold_sites=virtual)
        return value, gradient

    here = np.clip(start.theta, table[:, 2], table[:, 3])
    # With the virtual readings held, the target moves with each EP run: a few rounds of both.
    rounds = 3 if virtual else 1
    for _ in range(rounds):
        if virtual:
            latest = evaluate(problem, here, latest, tolerance=LOOSE).sites
        result = minimize(
            loss, here, jac=True, method="L-BFGS-B", bounds=table[:, 2:],
            options={"maxfun": max(evaluations // rounds, 2), "ftol": 1e-5, "gtol": 1e-3},
        )  # fmt: skip
        here = np.clip(result.x, table[:, 2], table[:, 3])
    return score(problem, priors, here, latest) if virtual else Fit(here, latest, -float(result.fun))


def _loss(
    problem: Problem, table: Array, theta: Array, sites: Sites, *, hold_sites: bool
) -> tuple[float, Array, Sites]:
    """Minus the logarithm of evidence times prior, its gradient, and the sites reached."""
    centre, deviation = table[:, 0], table[:, 1]
    try:
        found = evaluate(problem, theta, sites, tolerance=LOOSE, hold_sites=hold_sites)
    except NotPositiveDefinite:
        return 1e25, np.zeros_like(theta), sites  # the line search turns back from here
    away = (theta - centre) / deviation
    return 0.5 * float(away @ away) - found.value, away / deviation - found.gradient, found.sites
