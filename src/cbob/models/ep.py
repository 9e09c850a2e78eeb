"""Expectation propagation for truncated readings of a Gaussian vector.

Symbols: n latent values g ~ N(m, K), of which only signs s (n,) are known. Each likelihood Phi(s_i g_i / scale) is replaced by
a site exp(nu_i g_i - tau_i g_i^2 / 2) matched to it in the company of all the others, which gives (T = diag tau)

    B = I + T^1/2 K T^1/2,   Sigma = K - K T^1/2 B^-1 T^1/2 K,   mu = m + Sigma (nu - T m)           [paper, eq. 7, mended]
    log Z = sum_i [log Phi(z_i) + log(1 + tau_i v_i)/2 + tau_i (nu_i/tau_i - c_i)^2 / (2 (1 + tau_i v_i))]
            - log|B|/2 - p' B^-1 p / 2,   p = T^1/2 (T^-1 nu - m)                                    [GPML, eq. 3.65]

with the cavities N(c_i, v_i): the posterior marginals with the own site divided out. These sites are log-concave, so every
tau_i >= 0 and every cavity is proper. Everything is scaled by the prior deviations first, so units never matter.

All sites are updated at once, one factorisation a sweep, until a sweep fails to halve the distance to the last: that happens
when many sites bear on nearly one latent value, and all correct for it together. From then on they are visited one at a time,
which converges in a few sweeps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.blas import dger

from cbob.linalg import cholesky, triangular_inverse
from cbob.models.sites import match_one, match_truncation
from cbob.numerics import log_ndtr

Array = NDArray[np.float64]

TINY = 1e-14  # of the prior variance


@dataclass(frozen=True)
class EPResult:
    """The Gaussian that stands for the truncated one, and how it was reached.

    site_mean and site_var describe each site as a virtual reading N(site_mean | g, site_var); a site that says nothing has an
    infinite variance. `converged` tells whether the last sweep moved no marginal by more than the tolerance (in posterior
    deviations); if not, the result is still a proper Gaussian, and a larger `max_sweeps` is the remedy.
    """

    mean: Array
    cov: Array
    site_mean: Array
    site_var: Array
    log_evidence: float
    sweeps: int
    converged: bool
    site_precision: Array
    site_shift: Array


@dataclass(frozen=True)
class _State:
    """Sites and the posterior that they imply, in units of the prior deviations."""

    precision: Array
    shift: Array
    mean: Array
    variance: Array
    left: Array  # 1 - tau_i Sigma_ii: the share of a marginal's precision that is not its own site's
    cavity_mean: Array
    half: Array  # L^-1 T^1/2 K with L L' = B, so that Sigma = K - half' half: only the end of the iteration needs it whole
    half_log_det: float
    white_pull: Array  # L^-1 T^1/2 (site means - m): its square is the exponent of N(site means | m, K + T^-1)

    @classmethod
    def implied(cls, prior_mean: Array, prior: Array, precision: Array, shift: Array) -> _State:
        root = np.sqrt(precision)
        scaled = root[:, None] * prior
        B = scaled * root
        B[np.diag_indices_from(B)] += 1.0
        lower = cholesky(B)
        inverse = triangular_inverse(lower)
        half = inverse @ scaled
        # T^1/2 (site means - m), of which the posterior needs B^-1 T^1/2 (site means - m) =: w
        pull = np.divide(shift, root, out=np.zeros_like(root), where=root > 0.0) - root * prior_mean
        white_pull = inverse @ pull
        mean = prior_mean + half.T @ white_pull
        variance = np.diagonal(prior) - np.einsum("ij,ij->j", half, half)
        left = 1.0 - precision * variance
        with np.errstate(divide="ignore", invalid="ignore"):
            cavity_mean = (mean - variance * shift) / left
        # Where a site outweighs the rest, as signs that contradict the prior mean by many deviations make it do, all four are
        # differences of nearly equal numbers. Seen from the site, with 1/tau its variance and nu/tau its mean, they are not:
        # left = (B^-1)_ii, Sigma_ii = (1 - left)/tau, mu = nu/tau - w/sqrt(tau), cavity mean = nu/tau - w/(sqrt(tau) left).
        strong = ~(left > 0.5)
        if strong.any():
            tau, own = precision[strong], np.einsum("ij,ij->j", inverse[:, strong], inverse[:, strong])
            site_mean, away = shift[strong] / tau, inverse[:, strong].T @ white_pull / root[strong]
            left[strong], variance[strong] = own, (1.0 - own) / tau
            mean[strong], cavity_mean[strong] = site_mean - away, site_mean - away / own
        half_log_det = float(np.log(np.diagonal(lower)).sum())
        # Rounding may leave a variance of a redundant point at or below 0; its site then has nothing more to say.
        variance = np.maximum(variance, TINY * left)
        return cls(precision, shift, mean, variance, left, cavity_mean, half, half_log_det, white_pull)

    def covariance(self, prior: Array) -> Array:
        whole = prior - self.half.T @ self.half
        whole[np.diag_indices_from(whole)] = self.variance
        return whole

    def cavities(self) -> tuple[Array, Array]:
        """Mean and variance of each marginal without its own site, which is never wider than the prior."""
        return self.cavity_mean, np.minimum(self.variance / self.left, 1.0)


def expectation_propagation(
    prior_mean: ArrayLike,
    prior_cov: ArrayLike,
    signs: ArrayLike,
    *,
    scale: float = 0.0,
    start: tuple[Array, Array] | None = None,
    tolerance: float = 1e-8,
    max_sweeps: int = 200,
) -> EPResult:
    """Gaussian approximation of N(prior_mean, prior_cov) given the signs: +1 for g > 0 and -1 for g < 0.

    `scale` is the probit's width (0: a step). `start` warm-starts the sites: (site_precision, site_shift) of an earlier
    result. The covariance may be singular (duplicated points).
    """
    m, K, s = _checked(prior_mean, prior_cov, signs)
    if not np.isfinite(scale) or scale < 0.0:
        raise ValueError(f"scale must be finite and not negative, not {scale!r}")
    deviation = np.sqrt(np.diagonal(K))
    free = deviation > 0.0
    if not free.all():
        return _with_certain_values(m, K, s, free, scale, start, tolerance, max_sweeps)
    if not m.size:
        nothing = np.empty(0)
        return EPResult(nothing, np.empty((0, 0)), nothing, nothing, 0.0, 0, True, nothing, nothing)
    prior = K / np.outer(deviation, deviation)
    state, residual, sweeps = _iterate(
        m / deviation,
        prior,
        s,
        scale / deviation,
        None if start is None else (start[0] * deviation**2, start[1] * deviation),
        tolerance,
        max_sweeps,
    )
    evidence = _log_evidence(state, m / deviation, s, scale / deviation)
    precision, shift = state.precision / deviation**2, state.shift / deviation
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        site_var = np.where(precision > 0.0, 1.0 / precision, np.inf)
        site_mean = np.where(precision > 0.0, shift / precision, 0.0)
    return EPResult(
        mean=state.mean * deviation,
        cov=state.covariance(prior) * np.outer(deviation, deviation),
        site_mean=site_mean,
        site_var=site_var,
        log_evidence=evidence,
        sweeps=sweeps,
        converged=bool(residual <= tolerance),
        site_precision=precision,
        site_shift=shift,
    )


def _checked(prior_mean: ArrayLike, prior_cov: ArrayLike, signs: ArrayLike) -> tuple[Array, Array, Array]:
    m = np.array(prior_mean, dtype=float)
    K = np.array(prior_cov, dtype=float)
    s = np.array(signs, dtype=float)
    if m.ndim != 1 or K.shape != (m.size, m.size) or s.shape != m.shape:
        raise ValueError(f"expected n means, an n x n covariance and n signs; got shapes {m.shape}, {K.shape} and {s.shape}")
    if not (np.isfinite(m).all() and np.isfinite(K).all()) or (np.diagonal(K) < 0.0).any():
        raise ValueError("the prior needs finite means and a finite covariance with no negative variance")
    if not np.allclose(K, K.T, rtol=0.0, atol=1e-6 * np.max(np.abs(K), initial=0.0)):
        raise ValueError("the prior covariance is not symmetric")
    if not np.isin(s, (-1.0, 1.0)).all():
        raise ValueError(f"signs must be +1 (g > 0) or -1 (g < 0); got {sorted(set(s[~np.isin(s, (-1.0, 1.0))].tolist()))}")
    return m, K, s


def _with_certain_values(
    m: Array, K: Array, s: Array, free: NDArray[np.bool_], scale: float, start: tuple[Array, Array] | None,
    tolerance: float, max_sweeps: int,
) -> EPResult:  # fmt: skip
    """A latent value with no prior variance learns nothing; its likelihood is a constant factor of the evidence."""
    inner = expectation_propagation(
        m[free], K[np.ix_(free, free)], s[free], scale=scale, tolerance=tolerance, max_sweeps=max_sweeps,
        start=None if start is None else (start[0][free], start[1][free]),
    )  # fmt: skip
    fixed = s[~free] * m[~free]
    with np.errstate(divide="ignore"):
        constant = log_ndtr(fixed / scale) if scale > 0.0 else np.log(np.where(fixed == 0.0, 0.5, fixed > 0.0))

    def widened(part: Array, filler: Array | float) -> Array:
        whole = np.full(m.size, filler, dtype=float)
        whole[free] = part
        return whole

    mean, cov = m.copy(), np.zeros_like(K)
    mean[free] = inner.mean
    cov[np.ix_(free, free)] = inner.cov
    return EPResult(
        mean, cov, widened(inner.site_mean, 0.0), widened(inner.site_var, np.inf),
        inner.log_evidence + float(constant.sum()), inner.sweeps, inner.converged,
        widened(inner.site_precision, 0.0), widened(inner.site_shift, 0.0),
    )  # fmt: skip


def _iterate(
    m: Array,
    K: Array,
    s: Array,
    scale: Array,
    start: tuple[Array, Array] | None,
    tolerance: float,
    max_sweeps: int,
) -> tuple[_State, float, int]:
    nothing = np.zeros_like(m)
    state = _State.implied(m, K, *(start or (nothing, nothing)))
    step, before = 1.0, np.inf
    # A sequential sweep costs n interpreted steps: for many sites, damping is tried first.
    least_step = 1.0 if m.size <= 200 else 0.1
    for sweep in range(1, max_sweeps + 1):
        together = step >= least_step
        moved = _all_at_once(state, m, K, s, scale, step) if together else _one_by_one(state, m, K, s, scale)
        residual = _distance(state, moved) / (step if together else 1.0)
        state = moved
        if residual <= tolerance:
            return state, residual, sweep
        if together and residual > 0.5 * before:
            step *= 0.5
        before = residual
    return state, residual, max_sweeps


def _distance(old: _State, new: _State) -> float:
    """The largest move of a marginal, in deviations (mean) and relative (deviation)."""
    in_mean = np.abs(new.mean - old.mean) / np.sqrt(new.variance)
    return float(max(np.max(in_mean), np.max(np.abs(old.variance / new.variance - 1.0)) / 2.0))


def _all_at_once(state: _State, m: Array, K: Array, s: Array, scale: Array, step: float) -> _State:
    mean, variance = state.cavities()
    _, precision, shift = match_truncation(mean, variance, s, scale)
    return _State.implied(
        m,
        K,
        state.precision + step * (precision - state.precision),
        state.shift + step * (shift - state.shift),
    )


def _one_by_one(state: _State, m: Array, K: Array, s: Array, scale: Array) -> _State:
    """One sequential sweep: each site sees the others as they have just become, by rank-one updates of the posterior."""
    precision, shift = state.precision.copy(), state.shift.copy()
    mean, cov = state.mean.copy(), np.array(state.covariance(K), order="F")
    for i in range(m.size):
        variance, tau, nu = float(cov[i, i]), float(precision[i]), float(shift[i])
        if variance <= TINY:
            continue  # rounding is all that is left of it
        left = max(1.0 - tau * variance, variance)
        new_tau, new_nu = match_one((mean[i] - variance * nu) / left, variance / left, s[i], scale[i])
        grown = 1.0 + (new_tau - tau) * variance
        if grown <= TINY:
            continue
        factor = (new_tau - tau) / grown
        column = cov[:, i].copy()
        mean += column * ((new_nu - nu) - factor * (mean[i] + variance * (new_nu - nu)))
        cov = dger(-factor, column, column, a=cov, overwrite_a=1)
        precision[i], shift[i] = new_tau, new_nu
    return _State.implied(m, K, precision, shift)  # afresh, so that rounding does not add up over sweeps


def _log_evidence(state: _State, m: Array, s: Array, scale: Array) -> float:
    mean, variance = state.cavities()
    log_normaliser, _, _ = match_truncation(mean, variance, s, scale)
    root = np.sqrt(state.precision)
    weighted = np.divide(state.shift, root, out=np.zeros_like(root), where=root > 0.0)  # T^1/2 times the site means
    # Each site against its cavity, and all of them against the prior; no term outgrows the largest squared deviation.
    grown = 1.0 + state.precision * variance
    alone = log_normaliser + 0.5 * np.log(grown) + 0.5 * (weighted - root * mean) ** 2 / grown
    return float(alone.sum() - state.half_log_det - 0.5 * state.white_pull @ state.white_pull)
