"""What was seen, as models read it: told trials (`cbob.trials`) as one frozen, self-validating `Dataset`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .constraints import RAN, Constraint
from .errors import StrategyError, TrialError, shown
from .space import Space
from .trials import SATISFIED, UNKNOWN, VIOLATED, Kind, Reading, Status, Trial, conclude

__all__ = [
    "SATISFIED",
    "UNKNOWN",
    "VIOLATED",
    "Dataset",
    "Kind",
    "Reading",
    "Status",
    "Trial",
    "conclude",
    "dataset",
    "direction_sign",
]

SIGNS = {Kind.VALUE: 0, Kind.VIOLATED: 1, Kind.SATISFIED: -1, Kind.UNKNOWN: 0}  # g > 0, g < 0, or not a sign


def direction_sign(direction: str) -> float:
    """The factor that turns an objective into one to minimise."""
    signs = {"minimize": 1.0, "maximize": -1.0}
    if not isinstance(direction, str) or direction not in signs:
        raise StrategyError(f"direction must be 'minimize' or 'maximize', not {shown(direction)}")
    return signs[direction]


@dataclass(frozen=True, eq=False)
class Dataset:
    """The told trials as models read them: N rows, m constraints, g <= 0 where a constraint holds."""

    rows: NDArray[np.float64]  # (N, width), in the unit cube
    objective: NDArray[np.float64]  # (N,), NaN where hidden; an infeasible trial may have one
    margins: NDArray[np.float64]  # (N, m), NaN where not measured
    signs: NDArray[np.int8]  # (N, m), +1 broken and -1 kept where that is all that is known, else 0
    feasible: NDArray[np.bool_]  # (N,)
    names: tuple[str, ...]  # of the m constraints; the last may be the learned RAN

    def __post_init__(self) -> None:
        types = {"rows": float, "objective": float, "margins": float, "signs": np.int8, "feasible": bool}
        for part, dtype in types.items():
            array = np.array(getattr(self, part), dtype=dtype)  # a copy, so that nobody else can write to it
            array.flags.writeable = False
            object.__setattr__(self, part, array)
        N, m = len(self.rows), len(self.names)
        shapes = {"objective": (N,), "margins": (N, m), "signs": (N, m), "feasible": (N,)}
        for part, shape in shapes.items():
            if (came := getattr(self, part).shape) != shape:
                raise TrialError(f"{part} of {N} rows must have shape {shape}, not {came}")
        if self.rows.ndim != 2 or not np.all((self.rows >= 0) & (self.rows <= 1)):
            raise TrialError("rows must be a 2-D array inside the unit cube")
        if np.isinf(self.objective).any() or np.isinf(self.margins).any():
            raise TrialError("objective and margins must be finite, or NaN where there is none")
        if np.any((self.signs != 0) & ~np.isnan(self.margins)) or np.any(np.abs(self.signs) > 1):
            raise TrialError("signs must be +1, -1 or 0, and 0 where there is a margin")
        if np.isnan(self.objective[self.feasible]).any():
            raise TrialError("a feasible row needs an objective")

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def best(self) -> tuple[int, float] | None:
        """Index and (minimised) objective of the best feasible row, the earliest of equals."""
        if not self.feasible.any():
            return None
        index = int(np.argmin(np.where(self.feasible, self.objective, np.inf)))
        return index, float(self.objective[index])


def dataset(
    trials: Iterable[Trial],
    space: Space,
    constraints: Sequence[Constraint],
    direction: str = "minimize",
    *,
    rows: Mapping[int, NDArray[np.float64]] | None = None,
) -> Dataset:
    """The told trials in order of id. If any failure is unexplained, RAN follows the declared constraints.

    `rows` spares the encoding where the rows are known, by id.
    """
    told = sorted((trial for trial in trials if trial.told), key=lambda trial: trial.id)
    learned = any(trial.unexplained for trial in told)
    names = tuple(constraint.name for constraint in constraints) + (RAN,) * learned
    margins = np.full((len(told), len(names)), np.nan)
    signs = np.zeros(margins.shape, dtype=np.int8)
    for n, trial in enumerate(told):
        for j, constraint in enumerate(constraints):
            reading = trial.readings.get(constraint.name, UNKNOWN)
            if reading.value is not None:
                margins[n, j] = constraint.margin(reading.value)
            signs[n, j] = SIGNS[reading.kind]
        if learned:
            signs[n, -1] = 1 if trial.unexplained else -1 if trial.ran else 0
    values = np.array([math.nan if trial.value is None else trial.value for trial in told])
    encoded = [space.encode(trial.params) if rows is None else rows[trial.id] for trial in told]
    return Dataset(
        rows=np.array(encoded).reshape(-1, space.width),
        objective=direction_sign(direction) * values,
        margins=margins,
        signs=signs,
        feasible=np.array([trial.feasible for trial in told], dtype=bool),
        names=names,
    )
