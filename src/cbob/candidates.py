"""Finds the row of a mixed space at which an acquisition is largest. It never fits and knows no model.

A pool of rows is scored: some spread evenly over the cube, some scattered around the given centres at several ranges. From
the best of them `cbob.ascent` climbs along the continuous columns. Then the discrete parameters are tried one at a time, and
the climb goes on from what they found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbob.acquisition.base import Acquisition
from cbob.ascent import ascend
from cbob.space import Space

Array = NDArray[np.float64]

# A finite space of up to this many points is scored whole.
ENUMERABLE = 4096
# One of up to this many is searched for a point that is left, once a pool is used up.
EXHAUSTIBLE = 100_000
# Rows closer than this in every column are the same trial.
SAME = 1e-9
# Trials that run side by side keep this distance in at least one column.
CLUMP = 0.02
# Ranges at which rows are scattered around a centre, in the unit cube.
RANGES = (0.2, 0.05, 0.01, 0.002)
# A start this far below the best one, in nats, will not overtake it.
HOPELESS = 30.0
# Of the moves from a row so many are climbed from.
MOVES_CLIMBED = 2
# A climb ends where a step gains less than this, in nats. Ridges between active limits are climbed in many small steps.
NEGLIGIBLE = 1e-4


@dataclass(frozen=True)
class Effort:
    """How hard to look."""

    spread: int = 320
    scattered: int = 192
    starts: int = 8
    evaluations: int = 40
    rounds: int = 8  # of discrete moves, from each start


@dataclass(frozen=True)
class Taken:
    """Rows already tried, and rows that are out at this moment."""

    told: Array
    out: Array


def pool(space: Space, centres: Array, effort: Effort, rng: np.random.Generator) -> Array:
    """Snapped rows: evenly spread, and scattered around the centres."""
    even = space.spread(_even(effort.spread, len(space.names), rng))
    if not centres.shape[0]:
        return even
    count = effort.scattered
    parameters = len(space.names)
    around = centres[rng.integers(centres.shape[0], size=count)]
    reach = np.array(RANGES)[rng.integers(len(RANGES), size=count)][:, None]
    noisy = np.clip(around + reach * rng.standard_normal(around.shape), 0.0, 1.0)
    other = space.spread(rng.random((count, parameters)))
    # Half of the rows move in every parameter, half in a few: a good row is often one parameter away from a good one.
    rate = np.where(rng.random(count) < 0.5, 1.0, min(1.0, 2.0 / parameters))[:, None]
    moves = rng.random((count, parameters)) < rate
    hops = moves & (rng.random((count, parameters)) < np.maximum(reach, 1.0 / parameters))
    continuous = np.where(moves[:, space.groups], noisy, around)
    discrete = np.where(hops[:, space.groups], other, around)
    return np.vstack([even, space.snap(np.where(space.continuous, continuous, discrete))])


def _even(count: int, dimensions: int, rng: np.random.Generator) -> Array:
    """A randomly shifted Kronecker lattice: as even as a Sobol sequence for this purpose, at a tenth of the cost."""
    # The generalised golden ratio: the positive root of x^(d+1) = x + 1.
    ratio = 2.0
    for _ in range(40):
        ratio = (1.0 + ratio) ** (1.0 / (dimensions + 1))
    steps = ratio ** -np.arange(1, dimensions + 1)
    return (rng.random(dimensions) + np.arange(1, count + 1)[:, None] * steps) % 1.0


def maximise(
    acquisition: Acquisition,
    space: Space,
    rng: np.random.Generator,
    *,
    centres: Array,
    taken: Taken,
    effort: Effort | None = None,
) -> Array:
    """The best row found that is not `taken`.

    Only a finite space of which every point is taken gives one of them again.
    """
    effort = effort or Effort()
    every = space.enumerate(ENUMERABLE)
    if every is not None:
        return best_untaken(every, _finite(acquisition(every)), taken, space)
    rows = pool(space, centres, effort, rng)
    values = _finite(acquisition(rows))
    tops = rows[_starts(values, effort)]
    climbed, climbed_values = _climb(acquisition, space, tops, effort)
    if not space.continuous.all():
        climbed, climbed_values = _step(acquisition, space, climbed, climbed_values, effort)
    return best_untaken(np.vstack([climbed, rows]), np.concatenate([climbed_values, values]), taken, space, acquisition)


def best_untaken(
    rows: Array, values: Array, taken: Taken, space: Space, score: Callable[[Array], Array] | None = None
) -> Array:
    """The row of the highest value that is not taken; in a finite space whose pool is used up, the best point left."""
    order = np.argsort(-values, kind="stable")
    for index in order:
        if not is_taken(rows[index], taken):
            return rows[index]  # type: ignore[no-any-return]
    every = space.enumerate(EXHAUSTIBLE)
    if every is not None:
        # Its points may all be neighbours of trials that are out: from here on only those tried themselves are taken.
        from scipy.spatial import cKDTree  # here, because hardly a run ever needs it

        tried = np.vstack([taken.told, taken.out])
        left = every[cKDTree(tried).query(every, p=np.inf)[0] >= SAME] if tried.size else every
        if left.shape[0]:
            return left[0 if score is None else int(np.argmax(score(left)))]  # type: ignore[no-any-return]
    return rows[order[0]]  # type: ignore[no-any-return]


def is_taken(row: Array, taken: Taken) -> bool:
    """Whether this very row was tried, or one so near is still out that it would hardly teach more."""
    return _within(row, taken.told, SAME) or _within(row, taken.out, CLUMP)


def _within(row: Array, others: Array, distance: float) -> bool:
    return bool((np.abs(others - row).max(axis=1) < distance).any()) if others.shape[0] else False


def _finite(values: Array) -> Array:
    return np.nan_to_num(values, nan=-1e300, posinf=1e300, neginf=-1e300)


def _starts(values: Array, effort: Effort) -> NDArray[np.intp]:
    """The best rows of each kind, evenly spread and scattered, so that neither crowds the other out."""
    even, scattered = np.arange(min(effort.spread, values.size)), np.arange(effort.spread, values.size)
    half = (effort.starts + 1) // 2
    best = [kind[np.argsort(-values[kind], kind="stable")[:half]] for kind in (even, scattered)]
    chosen = np.concatenate(best)[: effort.starts]
    return chosen[values[chosen] >= values[chosen].max() - HOPELESS]  # type: ignore[no-any-return]


def _climb(acquisition: Acquisition, space: Space, starts: Array, effort: Effort) -> tuple[Array, Array]:
    """Snapped ends of the climbs and their values."""
    free = space.continuous
    if free.any():

        def along(which: NDArray[np.intp], columns: Array) -> tuple[Array, Array]:
            rows = starts[which]
            rows[:, free] = columns
            value, gradient = acquisition.with_gradient(rows)
            return _finite(value), np.nan_to_num(gradient[:, free])

        low, high = np.zeros(int(free.sum())), np.ones(int(free.sum()))
        climbed = ascend(along, starts[:, free], low, high, evaluations=effort.evaluations, tolerance=NEGLIGIBLE, rivals=True)
        ends = starts.copy()
        ends[:, free] = climbed.rows
        starts = space.snap(ends)
    return starts, _finite(acquisition(starts))


def _step(acquisition: Acquisition, space: Space, rows: Array, values: Array, effort: Effort) -> tuple[Array, Array]:
    """From each row, try every value of each discrete parameter in turn, and climb again from what was better. All rows step
    together, as rivals: of a batch each costs a fraction of a lone one, and climbs far behind the highest are given up."""
    rows, values = rows.copy(), values.copy()
    going = np.arange(len(rows))
    for _ in range(effort.rounds):
        moves = [space.moves(row) for row in rows[going]]
        owner = np.repeat(going, [len(own) for own in moves])
        if not owner.size:
            break
        tried = np.vstack(moves)
        scores = _finite(acquisition(tried))
        order = np.lexsort((-scores, owner))
        place = np.arange(owner.size) - np.searchsorted(owner[order], owner[order])  # among the moves from the same row
        best = order[place < MOVES_CLIMBED]
        ends, end_values = _climb(acquisition, space, tried[best], effort)
        better = []
        for row in going:
            own = np.flatnonzero(owner[best] == row)
            top = own[np.argmax(end_values[own])] if own.size else None
            if top is not None and end_values[top] > values[row] + NEGLIGIBLE:
                rows[row], values[row] = ends[top], end_values[top]
                better.append(row)
        going = np.array(better, dtype=np.intp)
        going = going[values[going] >= values.max() - HOPELESS]
    return rows, values
