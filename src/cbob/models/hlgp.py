"""The surrogates: GPR for measured values, GPC for mere signs, and HLGP for both together.

All three are one model: a Gaussian process conditioned exactly on what was measured, and by expectation propagation on what is
only known to have broken or held (paper, section 4.2). They differ in what they make of the readings they are given:

    GPR     values alone, centred; what was not measured is left out
    GPC     signs alone: a measured value counts as "held" or "broke"
    HLGP    values where there are values, signs where there are only signs

Inside, readings are warped to unit spread (`cbob.models.warp`) with the limit at 0; an acquisition reads `posterior`, in those
latent units. `predict` answers in the units of the readings.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cbob.models.fit import KNEE, NOISE, OTHERS, Fit, Objective, Priors, Problem, Sites, climb, evaluate, score
from cbob.models.gp import Posterior
from cbob.models.warp import Shape, Warp, fold, typical_size
from cbob.numerics import ndtr
from cbob.trials import Kind, Reading

Array = NDArray[np.float64]

# After this growth of the data since the last search from scratch, the next fit searches from scratch again.
GROWTH = 1.25
COLD_EVALUATIONS = 60
TRIAL_EVALUATIONS = 12  # of these, before starts that are this many nats behind the best are given up
BEHIND = 5.0
WARM_EVALUATIONS = 3  # one more reading moves the maximum little, and the next fit goes on from here
STUCK = 2  # times as often as any other reading: from there the topmost counts as stuck
# Log knees at which the search for a warp starts; from there the evidence has one maximum, as far as we have seen.
KNEES = (0.0, -5.0)
# Log noise from which it starts where that explains the readings better than none: duplicates that contradict each other would
# leave a climb from no noise at all a long way to go.
NOISY = -4.0


@dataclass(frozen=True)
class Settings:
    """How a surrogate learns.

    objective      "evidence": climb the EP evidence itself; "virtual": the paper's cheap way, the evidence of a plain GP that
                   holds the virtual readings of the last EP run
    scale          width of the probit likelihood of a sign, in latent units; 0 is the step
    warp           learn the knee of the warp (False: readings are only scaled)
    fit_limit      hyperparameters are learned from at most this many readings
    data_limit     the posterior rests on at most this many readings
    """

    objective: Objective = "evidence"
    scale: float = 0.0
    warp: bool = True
    fit_limit: int = 256
    data_limit: int = 1000
    priors: Priors = field(default_factory=Priors)


@dataclass(frozen=True)
class Memory:
    """What one fit hands to the next: the hyperparameters, the metric of the climb that led to them, each reading's site (0
    where there is none), and the size of the data when the search last started from scratch."""

    theta: Array
    metric: Array
    precision: Array
    shift: Array
    searched_at: int
    shape: Shape = Shape.SYMMETRIC

    def to_dict(self) -> dict[str, Any]:
        return {
            "theta": self.theta.tolist(),
            "metric": self.metric.tolist(),
            "precision": self.precision.tolist(),
            "shift": self.shift.tolist(),
            "searched_at": self.searched_at,
            "shape": int(self.shape),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], groups: int, readings: int) -> Memory:
        """What `to_dict` wrote of a fit to at most so many readings; a ValueError if it cannot have."""
        size = groups + OTHERS
        shapes = {"theta": (size,), "metric": (size, size), "precision": (-1,), "shift": (-1,)}
        theta, metric, precision, shift = (np.array(state[key], dtype=float).reshape(shape) for key, shape in shapes.items())
        if precision.size != shift.size or precision.size > readings:
            raise ValueError(f"sites of {precision.size} and {shift.size} readings, where there are {readings}")
        if not all(np.isfinite(part).all() for part in (theta, metric, precision, shift)):
            raise ValueError("a memory that is not finite")
        return cls(theta, metric, precision, shift, int(state["searched_at"]), Shape(state["shape"]))

    def sites_of(self, rows: NDArray[np.intp]) -> Sites:
        precision, shift = np.zeros(rows.size), np.zeros(rows.size)
        known = rows < self.precision.size
        precision[known], shift[known] = self.precision[rows[known]], self.shift[rows[known]]
        return Sites(precision, shift)


class HLGP:
    """Heterogeneous-likelihood Gaussian process: learns a limit from measured margins and from bare signs.

    `fit(X, readings)`: X (N, w) in the unit cube; each reading is a number g (it holds if g <= 0), "violated", "satisfied",
    "unknown" (or None, or NaN), or a `cbob.observations.Reading`.
    """

    # Nats by which a one-sided warp has to be better: it also fits where the fold ends.
    _one_sided = 2.0

    def __init__(self, settings: Settings | None = None, *, groups: NDArray[np.intp] | None = None) -> None:
        self.settings = settings or Settings()
        self.groups = groups

    def fit(self, X: ArrayLike, readings: Sequence[Reading | Kind | float | str | None] | ArrayLike) -> Self:
        parsed = [Reading.of(reading) for reading in readings]  # type: ignore[union-attr]
        margins = np.array([np.nan if r.value is None else r.value for r in parsed], dtype=float)
        sign_of = {Kind.VIOLATED: 1, Kind.SATISFIED: -1}
        signs = np.array([sign_of.get(r.kind, 0) for r in parsed], dtype=np.int8)
        rows = np.array(X, dtype=float)
        if rows.ndim != 2 or rows.shape[0] != margins.size:
            raise ValueError(f"expected one row of X for each of {margins.size} readings, got an X of shape {rows.shape}")
        if not ((rows >= 0.0) & (rows <= 1.0)).all():  # false for NaN too
            raise ValueError("X must lie in the unit cube, [0, 1] in each column")
        return self.learn(rows, margins, signs)

    def learn(
        self,
        X: Array,
        margins: Array,
        signs: NDArray[np.int8],
        *,
        memory: Memory | None = None,
        focus: Array | None = None,
        refit: bool = True,
    ) -> Self:
        """`fit` for the engine: margins (N,) with NaN where unmeasured, signs (N,) in {-1, 0, +1}.

        `memory` warm-starts the search, `focus` is the row near which data is kept when there is too much of it, and
        `refit=False` takes hyperparameters and sites from the memory as they are.
        """
        margins, signs = self._read(X, margins, signs)
        self._values = np.isfinite(margins)
        self._signed = ~self._values & (signs != 0)
        self._X, self._margins, self._signs = X, margins, signs
        self._unit = typical_size(margins[self._values])
        kept = _choose(X, self._values | self._signed, self.settings.data_limit, focus)
        if memory is None or refit:
            memory = self._search(kept, memory, focus)
        self.memory = memory
        self._condition(kept)
        return self

    def _read(self, X: Array, margins: Array, signs: NDArray[np.int8]) -> tuple[Array, NDArray[np.int8]]:
        """What this kind of surrogate makes of the readings.

        A broken reading that keeps coming back to the digit, at other points and more often than any other reading, is an
        instrument at its stop (a product that has reached 0, a clipped sensor): all it says is "broken". Taken for a value it
        would teach a plain, with a cliff somewhere.
        """
        finite = np.flatnonzero(np.isfinite(margins))
        if not (margins[finite] > 0.0).any():
            return margins, signs
        points = np.unique(np.column_stack([margins[finite], X[finite]]), axis=0)  # told twice, a point counts once
        _, often = np.unique(points[:, 0], return_counts=True)
        if often.size < 2 or often[-1] < STUCK * often[:-1].max():
            return margins, signs
        stuck = margins == np.max(margins[finite])
        return np.where(stuck, np.nan, margins), np.where(stuck, 1, signs).astype(np.int8)

    def _problem(self, kept: NDArray[np.bool_], shape: Shape) -> Problem:
        values, signed = kept & self._values, kept & self._signed
        return Problem(
            X_values=self._X[values],
            margins=self._margins[values],
            X_signs=self._X[signed],
            signs=self._signs[signed].astype(float),
            groups=np.arange(self._X.shape[1]) if self.groups is None else self.groups,
            unit=self._unit,
            scale=self.settings.scale,
            shape=shape,
            warped=self.settings.warp and bool(values.any()),
        )

    def _search(self, kept: NDArray[np.bool_], memory: Memory | None, focus: Array | None) -> Memory:
        """Hyperparameters from (a subset of) the kept readings; then EP over all of them."""
        settings = self.settings
        few = kept & _choose(self._X, kept, settings.fit_limit, focus)
        signed, size = np.flatnonzero(few & self._signed), int((self._values | self._signed).sum())
        starts: list[tuple[Shape, Fit, int]] = []  # shape of the warp, where to start, evaluations to spend
        searched_at = 0 if memory is None else memory.searched_at
        if memory is None or size >= GROWTH * searched_at:
            starts.extend((shape, start, COLD_EVALUATIONS) for shape, start in self._cold_starts(few))
            searched_at = size
        if memory is not None:
            here = Fit(memory.theta, memory.sites_of(signed), -np.inf, memory.metric)
            starts.append((memory.shape, here, WARM_EVALUATIONS))
        best, shape = self._best_climb(few, starts)
        # The sites of all kept signs, at the hyperparameters that won.
        every = np.flatnonzero(kept & self._signed)
        precision, shift = np.zeros(self._X.shape[0]), np.zeros(self._X.shape[0])
        if every.size:
            precision[signed], shift[signed] = best.sites.precision, best.sites.shift
            start = Sites(precision[every], shift[every])
            sites = evaluate(self._problem(kept, shape), best.theta, start, tolerance=1e-6).sites
            precision[every], shift[every] = sites.precision, sites.shift
        return Memory(best.theta, best.metric, precision, shift, searched_at, shape)

    def _best_climb(self, few: NDArray[np.bool_], starts: Sequence[tuple[Shape, Fit, int]]) -> tuple[Fit, Shape]:
        """The best end of a climb from each start. Where there are several, each climbs a little at first, and only those that
        are then near the best go on."""
        settings = self.settings

        def climbed(shape: Shape, start: Fit, evaluations: int) -> Fit:
            return climb(self._problem(few, shape), settings.priors, start, settings.objective, evaluations)

        def height(fit: Fit, shape: Shape) -> float:
            return fit.score - (self._one_sided if shape else 0.0)

        fits = [(climbed(shape, start, min(evaluations, TRIAL_EVALUATIONS)), shape) for shape, start, evaluations in starts]
        top = max(height(*fit) for fit in fits)
        for i, (_, _, evaluations) in enumerate(starts):
            fit, shape = fits[i]
            if evaluations > TRIAL_EVALUATIONS and height(fit, shape) >= top - BEHIND:
                fits[i] = climbed(shape, fit, evaluations - TRIAL_EVALUATIONS), shape
        return max(fits, key=lambda fit: height(*fit))

    def _cold_starts(self, few: NDArray[np.bool_]) -> list[tuple[Shape, Fit]]:
        """For each shape of the warp, the best of a few spread starts: short and long lengthscales, early and late knees, and
        some noise where that is better than none."""
        warped = self.settings.warp and bool((few & self._values).any())
        starts = []
        for shape in self._shapes() if warped else (Shape.SYMMETRIC,):
            problem = self._problem(few, shape)
            groups = int(problem.groups.max()) + 1
            centre = self.settings.priors.centre(groups)
            bounds = self.settings.priors.bounds(groups, problem.warped)
            nothing = Sites(np.zeros(problem.signs.size), np.zeros(problem.signs.size))
            tried = []
            for stretch, knee in itertools.product((-1.0, 0.0, 1.0), KNEES):
                theta = centre.copy()
                theta[:groups] += stretch
                theta[KNEE] = np.clip(knee, *bounds[KNEE])
                tried.append(score(problem, self.settings.priors, theta, nothing))
            noisy = max(tried, key=lambda fit: fit.score).theta.copy()
            noisy[NOISE] = NOISY
            tried.append(score(problem, self.settings.priors, noisy, nothing))
            starts.append((shape, max(tried, key=lambda fit: fit.score)))
        return starts

    def _shapes(self) -> tuple[Shape, ...]:
        """The warps worth considering."""
        return tuple(Shape)

    def _condition(self, kept: NDArray[np.bool_]) -> None:
        problem, theta = self._problem(kept, self.memory.shape), self.memory.theta
        warped = fold(problem.margins, problem.unit, problem.shape, float(theta[KNEE]))
        kernel = problem.kernel(theta, warped.offset)
        sites = self.memory.sites_of(np.flatnonzero(kept & self._signed))
        virtual, virtual_noise = sites.as_readings(kernel.variance)
        noise = np.exp(theta[NOISE]) + np.concatenate([np.zeros(problem.margins.size), virtual_noise])
        self.warp: Warp = warped.warp
        self.posterior = Posterior(kernel, problem.rows, np.concatenate([warped.y, virtual]), noise)

    @property
    def measured(self) -> bool:
        """Whether any reading had a value: without one there are no units to predict in."""
        return bool(self._values.any())

    def predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """The reading expected at each row, and its deviation, in the units of the readings.

        Where readings are warped the belief about a reading is skewed: given are its median, and half the width of the
        interval that holds it with 68%. Without a warp these are the mean and the standard deviation.
        """
        rows = self._queries(X)
        mean, std = self.posterior.predict(rows)
        wide = self.warp.inverse(mean + std) / 2.0 - self.warp.inverse(mean - std) / 2.0
        return self.warp.inverse(mean), wide

    def _queries(self, X: ArrayLike) -> Array:
        if not hasattr(self, "posterior"):
            raise ValueError("nothing was fitted yet: call fit(X, readings) first")
        rows, width = np.array(X, dtype=float), self._X.shape[1]
        if rows.ndim != 2 or rows.shape[1] != width:
            raise ValueError(f"expected rows of {width} columns, as fitted, got an X of shape {rows.shape}")
        return rows

    def probability(self, X: ArrayLike) -> Array:
        """The probability that the limit holds at each row."""
        rows = self._queries(X)
        mean, std = self.posterior.predict(rows)
        return ndtr(-mean / std)  # type: ignore[no-any-return]


class GPC(HLGP):
    """Gaussian process classifier: HLGP that is shown signs alone."""

    def _read(self, X: Array, margins: Array, signs: NDArray[np.int8]) -> tuple[Array, NDArray[np.int8]]:
        measured = np.isfinite(margins)
        told = np.where(measured, np.where(margins > 0.0, 1, -1), signs).astype(np.int8)
        return np.full_like(margins, np.nan), told


class GPR(HLGP):
    """Gaussian process regression on values; `reference` is the value that stands at 0 in latent units."""

    _one_sided = 0.0  # no limit stands at 0: both shapes are mere scales

    def _read(self, X: Array, margins: Array, signs: NDArray[np.int8]) -> tuple[Array, NDArray[np.int8]]:
        finite = margins[np.isfinite(margins)]
        # With a warp, the best value is where detail matters; without one, any reference will do and the mean is kindest.
        self.reference = 0.0 if not finite.size else float(finite.min() if self.settings.warp else _safe_mean(finite))
        return _safe_difference(margins, self.reference), np.zeros_like(signs)

    def _shapes(self) -> tuple[Shape, ...]:
        # UPPER would end at the best value seen, but for a knee: no place for improvements.
        return Shape.SYMMETRIC, Shape.LOWER

    def latent(self, value: float) -> float:
        return float(self.warp(_safe_difference(np.array([value]), self.reference))[0])

    def predict(self, X: ArrayLike) -> tuple[Array, Array]:
        middle, spread = super().predict(X)
        return _within(middle / 2.0 + self.reference / 2.0), spread


def _safe_mean(values: Array) -> float:
    return float((values / values.size).sum())


def _safe_difference(values: Array, reference: float) -> Array:
    return _within(values / 2.0 - reference / 2.0)


def _within(halves: Array) -> Array:
    """Twice the values, held inside the floating-point range."""
    largest = np.finfo(float).max
    return np.clip(halves, -largest / 2.0, largest / 2.0) * 2.0


def _choose(X: Array, candidates: NDArray[np.bool_], limit: int, focus: Array | None) -> NDArray[np.bool_]:
    """At most `limit` of the candidate rows: half of them nearest to `focus`, where the search is, and the other half evenly
    from the rest in the order they came, so that the global picture stays."""
    order = np.flatnonzero(candidates)
    if order.size <= limit:
        return candidates
    chosen = np.zeros_like(candidates)
    if focus is not None:
        near = np.argpartition(((X[order] - focus) ** 2).sum(axis=1), limit // 2)[: limit // 2]
        chosen[order[near]] = True
        order = np.delete(order, near)
    left = limit - int(chosen.sum())
    chosen[order[np.linspace(0, order.size - 1, left).astype(int)]] = True
    return chosen
