"""Climbs a smooth function inside a box from many starts at once: projected BFGS, each climb with a metric of its own.

Shapes: k climbs, w columns; rows x (k, w), slopes g = df/dx (k, w), metrics H (k, w, w), which stand for (-d2f/dx2)^-1.

    step      x(t) = clip(x + t d),   d = H g over the columns that are free to move              [Bertsekas 1982]
    accepted  f(x(t)) >= f(x) + ARMIJO g' (x(t) - x), else t shrinks to the maximum of the parabola through what was seen
    metric    BFGS, with s = x(t) - x and y = g - g(t); positive definite as long as s' y > 0, else left unchanged but wider

A round evaluates one row of each climb that still goes on, all in one call: of a batch, each row costs a fraction of a lone
one. SciPy's L-BFGS-B climbs one start at a time, or all as one problem whose line search then waits for the slowest, and it
forgets its metric between calls; a fit that is repeated after each reading keeps it, and needs a handful of evaluations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]

ARMIJO = 1e-4
# Where nothing is known of the curvature, the first step moves some column by this share of the box.
FIRST = 0.1
# No step moves a column by more than this share of the box: beyond, a quadratic picture is a guess.
REACH = 0.1
# What remains of a rejected step lies between these shares of it.
SHRINK = (0.1, 0.5)
# A step this much shorter than the metric's own cannot gain anything that counts.
SHORTEST = 1e-6
# A rival of the highest climb gives up once so many steps, each as good as its next promises to be, would not bring it level.
STEPS_TO_LEVEL = 20
# Where a step found no curvature, the next may be this much longer.
WIDER = 4.0


class Ascent(NamedTuple):
    """Where each climb ended, what it found there, and its metric, from which a later climb may set out."""

    rows: Array
    values: Array
    metric: Array


def ascend(
    function: Callable[[Index, Array], tuple[Array, Array]],
    starts: Array,
    low: Array,
    high: Array,
    *,
    evaluations: int,
    tolerance: float,
    metric: Array | None = None,
    rivals: bool = False,
) -> Ascent:
    """The end of a climb from each start, within so many evaluations of it; no end lies lower than its start. Of `rivals` only
    the highest end counts: those that fall far behind are given up.

    `function(which, rows)` gives values (q,) and slopes (q, w) for the climbs with these indices; -inf turns a step back. A
    climb ends where a step gained less than `tolerance` and the next promises no more.
    """
    x = np.clip(starts, low, high)
    width = high - low
    values, slopes = function(np.arange(len(x)), x)
    unscaled = np.full(len(x), metric is None)  # only the first step tells how long steps should be
    if metric is None:
        steepest = np.max(np.abs(slopes) * (width > 0.0), axis=1)
        share = FIRST * np.max(width, initial=0.0) / np.where(steepest > 0.0, steepest, 1.0)
        H = share[:, None, None] * np.eye(x.shape[1])
    else:
        H = np.array(np.broadcast_to(metric, (len(x), *metric.shape[-2:])))

    directions, promised = _directions(H, x, slopes, low, high)
    steps = np.ones(len(x))
    going = np.isfinite(values) & (promised >= tolerance)
    for _ in range(evaluations - 1):
        which = np.flatnonzero(going)
        if not which.size:
            break
        tried = np.clip(x[which] + steps[which, None] * directions[which], low, high)
        found, found_slopes = function(which, tried)
        expected = _dots(slopes[which], tried - x[which])
        gained = found - values[which]
        accepted = gained >= ARMIJO * np.maximum(expected, 0.0)  # false for NaN too

        back = which[~accepted]
        steps[back] *= _shrunk(expected[~accepted], gained[~accepted])
        going[back[steps[back] < SHORTEST]] = False

        on = which[accepted]
        if not on.size:
            continue
        s, y = tried[accepted] - x[on], slopes[on] - found_slopes[accepted]
        H[on], unscaled[on] = _updated(H[on], s, y, unscaled[on])
        x[on], values[on], slopes[on], steps[on] = tried[accepted], found[accepted], found_slopes[accepted], 1.0
        directions[on], promised[on] = _directions(H[on], x[on], slopes[on], low, high)
        going[on] = (gained[accepted] >= tolerance) | (promised[on] >= tolerance)
        if rivals:
            going &= values + STEPS_TO_LEVEL * promised >= np.nanmax(values)
    return Ascent(x, values, H)


def _dots(a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("kj,kj->k", a, b))


def _directions(H: Array, x: Array, slopes: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Where each climb goes next, and the gain that half its slope promises (exact for a parabola)."""
    held = ((x <= low) & (slopes <= 0.0)) | ((x >= high) & (slopes >= 0.0))
    free = np.where(held, 0.0, slopes)

    def promised(d: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.max(np.where(d != 0.0, np.abs(d) / (high - low), 0.0), axis=1, initial=0.0)
        d = d / np.maximum(share / REACH, 1.0)[:, None]
        return d, 0.5 * _dots(free, np.clip(x + d, low, high) - x)

    d, promises = promised(np.where(held, 0.0, np.einsum("kij,kj->ki", H, free)))
    blunted = promises <= 0.0
    if blunted.any():
        # Cut off at the box, a slanted step may lead down; along the metric's diagonal alone none does.
        straight, upward = promised(np.einsum("kii,ki->ki", H, free))
        d, promises = np.where(blunted[:, None], straight, d), np.where(blunted, upward, promises)
    return d, promises


def _shrunk(expected: Array, gained: Array) -> Array:
    """The share of a rejected step at which the parabola through both ends, with the slope at the first, is highest."""
    with np.errstate(invalid="ignore"):
        best = 0.5 * expected / (expected - gained)
    return np.clip(np.nan_to_num(best, nan=0.0), *SHRINK)


def _updated(H: Array, s: Array, y: Array, unscaled: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
    curvature = _dots(s, y)
    curved = curvature > 1e-10 * np.sqrt(_dots(s, s) * _dots(y, y))
    safe = np.where(curved, curvature, 1.0)
    # Before its first update, a metric made up from the slope alone takes the size that the step has shown.
    size = np.where(curved, safe / np.where(curved, _dots(y, y), 1.0), WIDER)
    H = np.where((unscaled & curved)[:, None, None], np.eye(s.shape[1]) * size[:, None, None], H)
    H = np.where(curved[:, None, None], H, WIDER * H)
    Hy = np.einsum("kij,kj->ki", H, y)
    rank_two = s[:, :, None] * Hy[:, None, :]
    rank_two += rank_two.transpose(0, 2, 1)
    grown = (1.0 + _dots(y, Hy) / safe)[:, None, None] * (s[:, :, None] * s[:, None, :])
    update = (grown - rank_two) / safe[:, None, None]
    return np.where(curved[:, None, None], H + update, H), unscaled & ~curved
