"""Hyperparameters by maximum a posteriori, from the evidence of values and signs together.

Symbols: n_v measured values y (warped), n_b signs s of latent values that were not measured, N = n_v + n_b; K (N, N) the kernel
over both, D (N,) the noise: the readings' own, plus the site variances of the signs. The evidence splits exactly,

    log p = log N(y | 0, K_vv + D_v) + log Z_EP(signs | K_bb - K_bv (K_vv + D_v)^-1 K_vb, ...) + log |dy/dg|

so EP only ever runs on the n_b latent values that are not Gaussian. At its fixed point the derivative through the sites
vanishes, and with W = alpha alpha' - (K + D)^-1, alpha = (K + D)^-1 (y, virtual readings),

    d log p = 1/2 sum(W * dK)          the gradient of a plain GP that holds the virtual readings fixed.

The parameter vector theta holds logarithms: the lengthscale of each group, amplitude, effects, ratio, noise and knee.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cbob.ascent import ascend
from cbob.linalg import NotPositiveDefiniteError, cholesky, inverse_from_cholesky, solve_lower
from cbob.models.ep import expectation_propagation
from cbob.models.kernels import Kernel, equal_portions, waves
from cbob.models.warp import Shape, Warped, fold

Array = NDArray[np.float64]
Objective = Literal["evidence", "virtual"]

# A site weaker than this share of the prior precision says nothing; its virtual reading is kept, with a noise this wide.
WIDEST_SITE = 1e9

# Where in theta the others stand, after the lengthscales.
OTHERS = 5
AMPLITUDE, EFFECTS, RATIO, NOISE, KNEE = range(-OTHERS, 0)


@dataclass(frozen=True)
class Priors:
    """Normal priors (centre, deviation) and bounds of the logarithms, for readings of unit spread in the unit cube.

    The lengthscales share a level, which is nearly free, and differ from it by `difference`: with few readings the evidence of
    one direction is mostly chance, and lengthscales set free from each other see structure where there is none. Distances in
    a cube grow like the square root of its dimension, and so does the centre of the level (Hvarfner, Hellsten and Nardi 2024).
    The noise starts at nothing, as in the paper, and takes overwhelming evidence to move: a surrogate that may call a ripple
    noise does, and then stops short of the optimum.
    """

    level: tuple[float, float] = (-0.4, 1.5)
    difference: float = 0.5
    amplitude: tuple[float, float] = (0.5, 2.0)
    effects: tuple[float, float] = (-0.5, 2.0)
    ratio: tuple[float, float] = (-1.0, 1.0)
    noise: tuple[float, float] = (-18.4, 1.0)
    knee: tuple[float, float] = (1.0, 4.0)
    lengthscale_bounds: tuple[float, float] = (-5.0, 5.0)
    amplitude_bounds: tuple[float, float] = (-8.0, 7.0)
    effects_bounds: tuple[float, float] = (-8.0, 7.0)
    ratio_bounds: tuple[float, float] = (-4.0, 1.0)
    noise_bounds: tuple[float, float] = (-18.4, 0.0)
    knee_bounds: tuple[float, float] = (-14.0, 7.0)

    def centre(self, groups: int) -> Array:
        level = self.level[0] + 0.5 * np.log(max(groups, 1))
        return np.array([level] * groups + [centre for centre, _ in self._others])

    @property
    def _others(self) -> tuple[tuple[float, float], ...]:
        return self.amplitude, self.effects, self.ratio, self.noise, self.knee

    @property
    def _deviations(self) -> Array:
        return np.array([deviation for _, deviation in self._others])

    def bounds(self, groups: int, warped: bool) -> Array:
        """Rows (low, high), one for each entry of theta. Without a warp the knee is held at the far end."""
        knee = self.knee_bounds if warped else (self.knee_bounds[1],) * 2
        others = [self.amplitude_bounds, self.effects_bounds, self.ratio_bounds, self.noise_bounds, knee]
        return np.array([self.lengthscale_bounds] * groups + others)

    def covariance(self, groups: int) -> Array:
        """Of theta under the prior, which is how far a climb that knows nothing yet may step for a unit of gradient."""
        C = np.diag(np.concatenate([[self.difference**2] * groups, self._deviations**2]))
        C[:groups, :groups] += self.level[1] ** 2
        return C

    def penalty(self, theta: Array) -> tuple[float, Array]:
        """Minus the logarithm of the prior, up to a constant, and its gradient."""
        groups = theta.size - OTHERS
        away = theta - self.centre(groups)
        shared = away[:groups].mean()
        apart = (away[:groups] - shared) / self.difference**2
        # the mean of lengthscales that share a level has the level's variance and its part of the differences'
        together = shared / (self.level[1] ** 2 + self.difference**2 / groups)
        rest = away[groups:] / self._deviations
        value = 0.5 * (apart @ (away[:groups] - shared) + together * shared + rest @ rest)
        return float(value), np.concatenate([apart + together / groups, rest / self._deviations])


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

    @cached_property
    def rows(self) -> Array:
        return np.vstack([self.X_values, self.X_signs])

    @cached_property
    def portions(self) -> Array:
        return equal_portions(self.groups)

    @cached_property
    def waves(self) -> Array:
        return waves(self.rows)

    def kernel(self, theta: Array, offset: float) -> Kernel:
        lengthscales = np.exp(theta[:-OTHERS])[self.groups]
        amplitude, effects, ratio = np.exp(theta[[AMPLITUDE, EFFECTS, RATIO]]).tolist()
        # The readings' mean may lie far from the limit: the constant's prior has to reach it.
        return Kernel(lengthscales, amplitude, effects, ratio, 1.0 + offset**2, self.portions)


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
    groups = theta.size - OTHERS
    n_v, n_b = problem.margins.size, problem.signs.size
    warped = fold(problem.margins, problem.unit, problem.shape, float(theta[KNEE]))
    kernel = problem.kernel(theta, warped.offset)
    noise = float(np.exp(theta[NOISE]))
    seen = kernel.see(problem.rows, problem.waves)
    K, slope = kernel.value_and_slope(seen, seen)
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
    Z = seen.scaled
    by_column = Wf.sum(axis=1) @ Z**2 - np.einsum("nj,nj->j", Z, Wf @ Z)
    # and what the main effects of each column say, one wave at a time
    forms = np.einsum("nf,nf->f", seen.waves, W @ seen.waves)  # wave' W wave
    through = 0.5 * kernel.shares * forms.reshape(2, *kernel.shares.shape).sum(axis=0)
    effects = float(through.sum())
    by_effect = (through * kernel.share_slopes).sum(axis=1)
    gradient[:groups] = np.bincount(problem.groups, weights=by_column + by_effect, minlength=groups)
    in_bias = 0.5 * W.sum()
    gradient[AMPLITUDE] = 0.5 * np.vdot(W, K) - in_bias * kernel.bias - effects
    gradient[EFFECTS], gradient[RATIO] = effects, by_effect.sum()
    gradient[NOISE] = 0.5 * noise * np.trace(W)
    through_bias = in_bias * 2.0 * warped.offset * warped.offset_slope
    gradient[KNEE] = warped.log_jacobian_slope - alpha[:n_v] @ warped.y_slope + through_bias
    return Evaluation(float(value), gradient, sites, warped, sweeps, converged)


@dataclass(frozen=True)
class Fit:
    """A theta, the sites found there, its evidence times prior (logarithm), and the metric with which to climb on."""

    theta: Array
    sites: Sites
    score: float
    metric: Array


# How closely EP is solved while hyperparameters move: the evidence is stationary in the sites, so its error is the square.
LOOSE = 1e-4
# A climb ends where it promises less than this, in nats.
NEGLIGIBLE = 0.002


def score(problem: Problem, priors: Priors, theta: Array, sites: Sites) -> Fit:
    """One theta, unmoved."""
    value, _, found = _score(problem, priors, theta, sites, hold_sites=False)
    return Fit(theta, found, value, priors.covariance(theta.size - OTHERS))


def climb(problem: Problem, priors: Priors, start: Fit, objective: Objective, evaluations: int) -> Fit:
    """The highest theta found from `start` within about so many evidences."""
    low, high = priors.bounds(start.theta.size - OTHERS, problem.warped).T
    virtual = objective == "virtual" and problem.signs.size > 0
    best = replace(start, theta=np.clip(start.theta, low, high))
    # With the virtual readings held, the target moves with each EP run: a few rounds of both.
    rounds = 3 if virtual else 1
    for _ in range(rounds):
        if virtual:
            best = replace(best, sites=evaluate(problem, best.theta, best.sites, tolerance=LOOSE).sites)
        climber = _Climber(problem, priors, best.sites, hold_sites=virtual)
        top = ascend(
            climber, best.theta[None], low, high,
            evaluations=max(evaluations // rounds, 2), tolerance=NEGLIGIBLE, metric=best.metric,
        )  # fmt: skip
        best = Fit(top.rows[0], climber.sites, float(top.values[0]), top.metric[0])
    return replace(score(problem, priors, best.theta, best.sites), metric=best.metric) if virtual else best


class _Climber:
    """What `climb` climbs; each EP run starts from the sites of the highest theta so far."""

    def __init__(self, problem: Problem, priors: Priors, sites: Sites, *, hold_sites: bool) -> None:
        self.problem, self.priors, self.sites, self.hold_sites = problem, priors, sites, hold_sites
        self.highest = -np.inf

    def __call__(self, _: NDArray[np.intp], thetas: Array) -> tuple[Array, Array]:
        value, gradient, sites = _score(self.problem, self.priors, thetas[0], self.sites, hold_sites=self.hold_sites)
        if value > self.highest:
            self.highest, self.sites = value, sites
        return np.array([value]), gradient[None]


def _score(problem: Problem, priors: Priors, theta: Array, sites: Sites, *, hold_sites: bool) -> tuple[float, Array, Sites]:
    """The logarithm of evidence times prior, its gradient, and the sites reached."""
    try:
        found = evaluate(problem, theta, sites, tolerance=LOOSE, hold_sites=hold_sites)
    except NotPositiveDefiniteError:
        return -np.inf, np.zeros_like(theta), sites  # the climb turns back from here
    penalty, slope = priors.penalty(theta)
    return found.value - penalty, found.gradient - slope, found.sites
