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

from cbob.linalg import NotPositiveDefiniteError, cholesky, inverse_from_cholesky, solve_lower
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

    The lengthscales share a level, which is nearly free, and differ from it by `difference`: with few readings the evidence
    of a
    single direction is mostly chance, and lengthscales set free from each other see structure where there is none. Distances in
    a cube grow like the square root of its dimension, and so does the centre of the level (Hvarfner, Hellsten and Nardi 2024).
    The noise starts at nothing, as in the paper, and takes overwhelming evidence to move: a surrogate that may call a ripple
    noise does, and then stops short of the optimum.
    """

    level: tuple[float, float] = (-0.4, 1.5)
    difference: float = 0.5
    amplitude: tuple[float, float] = (0.5, 2.0)
    noise: tuple[float, float] = (-18.4, 1.0)
    knee: tuple[float, float] = (1.0, 4.0)
    lengthscale_bounds: tuple[float, float] = (-5.0, 5.0)
    amplitude_bounds: tuple[float, float] = (-8.0, 7.0)
    noise_bounds: tuple[float, float] = (-18.4, 0.0)
    knee_bounds: tuple[float, float] = (-14.0, 7.0)

    def centre(self, groups: int) -> Array:
        level = self.level[0] + 0.5 * np.log(max(groups, 1))
        return np.array([level] * groups + [self.amplitude[0], self.noise[0], self.knee[0]])

    def bounds(self, groups: int, warped: bool) -> Array:
        """Rows (low, high), one for each entry of theta. Without a warp the knee is held at the far end."""
        knee = self.knee_bounds if warped else (self.knee_bounds[1],) * 2
        return np.array([self.lengthscale_bounds] * groups + [self.amplitude_bounds, self.noise_bounds, knee])

    def penalty(self, theta: Array) -> tuple[float, Array]:
        """Minus the logarithm of the prior, up to a constant, and its gradient."""
        groups = theta.size - 3
        away = theta - self.centre(groups)
        shared = away[:groups].mean()
        apart = (away[:groups] - shared) / self.difference**2
        # the mean of lengthscales that share a level has the level's variance and its part of the differences'
        together = shared / (self.level[1] ** 2 + self.difference**2 / groups)
        deviations = np.array([self.amplitude[1], self.noise[1], self.knee[1]])
        rest = away[groups:] / deviations
        value = 0.5 * (apart @ (away[:groups] - shared) + together * shared + rest @ rest)
        return float(value), np.concatenate([apart + together / groups, rest / deviations])


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
    Z = rows / kernel.lengthscales
    K, slope = kernel.at_scaled(Z, Z)
    noisy = K.copy()
    noisy[np.diag_indices_from(noisy)] += noise  # a sign is that of the reading, noise included: duplicates may disagree

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
    loss, _, found = _loss(problem, priors, theta, sites, hold_sites=False)
    return Fit(theta, found, -loss)


def climb(problem: Problem, priors: Priors, start: Fit, objective: Objective, evaluations: int) -> Fit:
    """L-BFGS-B from `start`, at most about `evaluations` evidences."""
    bounds = priors.bounds(start.theta.size - 3, problem.warped)
    virtual = objective == "virtual" and problem.signs.size > 0
    latest = start.sites  # each EP run starts from the sites of the one before

    best = Fit(start.theta, start.sites, -np.inf)

    def loss(point: Array) -> tuple[float, Array]:
        nonlocal latest, best
        value, gradient, latest = _loss(problem, priors, point, latest, hold_sites=virtual)
        if -value > best.score:
            best = Fit(point, latest, -value)
        return value, gradient

    here = np.clip(start.theta, *bounds.T)
    # With the virtual readings held, the target moves with each EP run: a few rounds of both.
    rounds = 3 if virtual else 1
    for _ in range(rounds):
        if virtual:
            latest = evaluate(problem, here, latest, tolerance=LOOSE).sites
        result = minimize(
            loss, here, jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxfun": max(evaluations // rounds, 2), "ftol": 1e-5, "gtol": 1e-3},
        )  # fmt: skip
        here = np.clip(result.x, *bounds.T)
    return score(problem, priors, here, latest) if virtual else best


def _loss(problem: Problem, priors: Priors, theta: Array, sites: Sites, *, hold_sites: bool) -> tuple[float, Array, Sites]:
    """Minus the logarithm of evidence times prior, its gradient, and the sites reached."""
    try:
        found = evaluate(problem, theta, sites, tolerance=LOOSE, hold_sites=hold_sites)
    except NotPositiveDefiniteError:
        return 1e25, np.zeros_like(theta), sites  # the line search turns back from here
    penalty, slope = priors.penalty(theta)
    return penalty - found.value, slope - found.gradient, found.sites
