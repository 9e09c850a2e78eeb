"""What one quantity may be: `Float`, `Int` or `Categorical`, and the map of its values to the unit cube.

A parameter owns neighbouring columns of the cube, its *cells*: a `Float` or an `Int` one, a `Categorical` one
for each choice (one-hot). Cells are *snapped* if some value has exactly these.
Symbols: u in [0, 1] a cell; q rows at once; k a value of an `Int`, i = k - low its index, 0 .. levels - 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import SpaceError, finite, listed, number, plain, shown

__all__ = ["Array", "Categorical", "Float", "Int", "Parameter", "Value"]

Array = NDArray[np.float64]
Value = str | int | float | bool | None

MANY_LEVELS = 64  # an Int of more levels is smooth enough for a gradient to move it before it is snapped
FEW_LEVELS = 16  # up to here all values of an Int are its neighbours; beyond, only steps of 1, 2, 4, ...
NARROW = 2.0**-44  # a cell this narrow is close to the rounding of u: it has no middle worth snapping to
SCALARS = (str, int, float, bool, type(None))  # what a choice may be: what JSON gives back as it was
FARTHEST = 2**63  # an Int reaches to here; its index is then still far inside the range of floats


class Parameter(ABC):
    """One quantity to choose. All but `check` trust their arguments: `Space` is the gate."""

    @property
    @abstractmethod
    def levels(self) -> int | None:
        """How many distinct values there are; None for a continuum."""

    @property
    def columns(self) -> int:
        """How many columns of the unit cube belong to it."""
        return 1

    @property
    def continuous(self) -> bool:
        """Whether a gradient may move its column (an `Int` is snapped afterwards)."""
        return self.levels is None

    @abstractmethod
    def check(self, value: object, what: str) -> Value:
        """`value` as a plain Python object that lies in this parameter, or a SpaceError about `what`."""

    @abstractmethod
    def encode(self, value: Any) -> list[float]:
        """The cells of a checked value."""

    @abstractmethod
    def decode(self, cells: Array) -> Value:
        """The value nearest to these cells, always one that `check` accepts."""

    @abstractmethod
    def snap(self, cells: Array) -> Array:
        """Of each (q, columns) row of cells the nearest that a value has."""

    @abstractmethod
    def moves(self, cells: Array) -> Array:
        """The (k, columns) cells of the neighbours of a value; none for a continuum."""

    def spread(self, u: Array) -> Array:
        """The (q, columns) cells that q numbers from [0, 1] stand for, each value with its share of them."""
        return self.snap(u[:, None])

    @abstractmethod
    def grid(self) -> Array:
        """The (levels, columns) cells of all values in order; only asked where `levels` is not None."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain JSON that `cbob.space.parameter_from_dict` reads back."""


def _log_ratio(x: float, low: float) -> float:
    """log(x / low) for x >= low > 0, accurate for neighbours too."""
    beyond = (x - low) / low
    return math.log1p(beyond) if math.isfinite(beyond) else math.log(x) - math.log(low)


@dataclass(frozen=True)
class Float(Parameter):
    """A real number in [low, high]; with `log` the cube is even in its logarithm."""

    low: float
    high: float
    _: KW_ONLY
    log: bool = False

    def __post_init__(self) -> None:
        for bound in ("low", "high"):
            object.__setattr__(self, bound, finite(getattr(self, bound), f"{bound} of a Float", SpaceError))
        _check_range(self)

    @property
    def levels(self) -> None:
        return None

    def check(self, value: object, what: str) -> float:
        x = number(value, what, SpaceError)
        # One ulp of grace: a bound that went through a unit conversion or a text file is still the bound.
        if not math.nextafter(self.low, -math.inf) <= x <= math.nextafter(self.high, math.inf):
            raise SpaceError(f"{what} must lie in [{self.low}, {self.high}], not {shown(value)}")
        return self._clip(float(x))

    def encode(self, value: float) -> list[float]:
        return [min(self._way(value) / self._way(self.high), 1.0)]

    def decode(self, cells: Array) -> float:
        u = min(max(float(cells[0]), 0.0), 1.0)
        end, share = (self.low, u) if u <= 0.5 else (self.high, u - 1.0)  # from the nearer end: exact at both
        way = share * self._way(self.high)
        if not self.log:
            return self._clip(end + way / self._unit)
        half = math.exp(way / 2)  # in two steps, because exp overflows from 710 on, and |way| can be 727
        return self._clip(end * half * half)

    def snap(self, cells: Array) -> Array:
        return np.clip(cells, 0.0, 1.0)

    def moves(self, cells: Array) -> Array:
        return np.empty((0, 1))

    def grid(self) -> Array:
        raise SpaceError("a Float has no list of all its values")

    def to_dict(self) -> dict[str, Any]:
        return {"type": "float", "low": self.low, "high": self.high, "log": self.log}

    @property
    def _unit(self) -> float:
        """1, or 1/2 where the length of the range overflows (not always: half of 5e-324 is 0)."""
        return 0.5 if math.isinf(self.high - self.low) else 1.0

    def _way(self, x: float) -> float:
        """How far x lies above low, in the measure that the cube is even in."""
        return _log_ratio(x, self.low) if self.log else self._unit * x - self._unit * self.low

    def _clip(self, x: float) -> float:
        return min(max(x, self.low), self.high)


@dataclass(frozen=True)
class Int(Parameter):
    """A whole number in low .. high; with `log` the cube is even in its logarithm.

    Value k owns the interval of u from k - 1/2 to k + 1/2 (with `log`, of their logarithms) and sits in its
    middle, so that a uniform u picks every value, both ends included, with the share of its interval.
    """

    low: int
    high: int
    _: KW_ONLY
    log: bool = False

    def __post_init__(self) -> None:
        for bound in ("low", "high"):
            value = _whole(getattr(self, bound), f"{bound} of an Int")
            if abs(value) > FARTHEST:
                raise SpaceError(f"{bound} of an Int must lie in -2**63 .. 2**63, not {value}")
            object.__setattr__(self, bound, value)
        _check_range(self)

    @property
    def levels(self) -> int:
        return self.high - self.low + 1

    @property
    def continuous(self) -> bool:
        return self.levels > MANY_LEVELS

    def check(self, value: object, what: str) -> int:
        k = _whole(value, what)
        if not self.low <= k <= self.high:
            raise SpaceError(f"{what} must lie in {self.low} .. {self.high}, not {shown(value)}")
        return k

    def encode(self, value: int) -> list[float]:
        return [float(self._middle(np.array(value - self.low, dtype=float)))]

    def decode(self, cells: Array) -> int:
        return self.low + self._nearest(cells)

    def snap(self, cells: Array) -> Array:
        u = np.clip(cells, 0.0, 1.0)
        index = self._index(u)
        return np.where(self._edge(index + 1) - self._edge(index) > NARROW, self._middle(index), u)

    def moves(self, cells: Array) -> Array:
        here = self._nearest(cells)
        if self.levels <= FEW_LEVELS:
            there = [i for i in range(self.levels) if i != here]
        else:
            steps = [sign << power for power in range(self.levels.bit_length()) for sign in (-1, 1)]
            there = [here + step for step in steps if 0 <= here + step < self.levels]
        u = self._middle(np.array(there, dtype=float))
        return np.setdiff1d(u, cells)[:, None]  # among 2**60 levels a step of 1 is lost in rounding

    def grid(self) -> Array:
        return self._middle(np.arange(self.levels, dtype=float))[:, None]

    def to_dict(self) -> dict[str, Any]:
        return {"type": "int", "low": self.low, "high": self.high, "log": self.log}

    def _edge(self, index: Array) -> Array:
        """Where in [0, 1] the interval of an index begins.

        With `log`, log(k - 1/2) - log(low - 1/2) = log1p(i / (low - 1/2)): exact for a few large numbers too.
        """
        if not self.log:
            return index / float(self.levels)
        first = self.low - 0.5
        edge = np.log1p(index / first) / math.log1p(self.levels / first)
        return np.minimum(edge, 1.0)  # the two functions may differ in the last bit

    def _middle(self, index: Array) -> Array:
        return (self._edge(index) + self._edge(index + 1)) / 2

    def _index(self, u: Array) -> Array:
        """The index whose interval holds u, the inverse of `_edge` rounded down, as floats."""
        first, last = self.low - 0.5, np.array(self.levels - 1, dtype=float)
        index = first * np.expm1(u * math.log1p(self.levels / first)) if self.log else u * float(self.levels)
        # The last value is asked for by name: among 2**60 levels rounding alone would miss it.
        return np.where(u >= self._middle(last), last, np.clip(np.floor(index), 0.0, last))

    def _nearest(self, cells: Array) -> int:
        index, last = float(self._index(np.clip(cells, 0.0, 1.0))[0]), self.levels - 1
        return int(index) if index < float(last) else last  # as a float, a huge last index is another number


@dataclass(frozen=True)
class Categorical(Parameter):
    """One of several JSON scalars without an order. 1, 1.0 and True are three different choices."""

    choices: Sequence[Value] = field(compare=False)
    _keys: tuple[tuple[type, Value], ...] = field(init=False, repr=False)  # what equality compares

    def __post_init__(self) -> None:
        given = self.choices.tolist() if isinstance(self.choices, np.ndarray) else self.choices
        if isinstance(given, str) or not isinstance(given, Sequence) or not given:
            raise SpaceError(f"Categorical needs a non-empty list of choices, not {shown(self.choices)}")
        choices = tuple(map(plain, given))
        for place, choice in enumerate(choices):
            if type(choice) not in SCALARS or (isinstance(choice, float) and not math.isfinite(choice)):
                wanted = "a str, a finite number, a bool or None"
                raise SpaceError(f"choice {place} of a Categorical must be {wanted}, not {shown(choice)}")
        keys = tuple(map(_key, choices))
        for place, key in enumerate(keys):
            if key in keys[:place]:
                raise SpaceError(f"choice {place} of a Categorical comes twice: {shown(choices[place])}")
        object.__setattr__(self, "choices", choices)
        object.__setattr__(self, "_keys", keys)

    @property
    def levels(self) -> int:
        return len(self.choices)

    @property
    def columns(self) -> int:
        return len(self.choices)

    def check(self, value: object, what: str) -> Value:
        try:
            return self.choices[self._keys.index(_key(plain(value)))]
        except ValueError:
            raise SpaceError(f"{what} must be one of {listed(self.choices)}, not {shown(value)}") from None

    def encode(self, value: Value) -> list[float]:
        key = _key(value)
        return [float(key == other) for other in self._keys]

    def decode(self, cells: Array) -> Value:
        return self.choices[int(np.argmax(cells))]

    def snap(self, cells: Array) -> Array:
        return self._one_hot(np.argmax(cells, axis=1))

    def moves(self, cells: Array) -> Array:
        return self._one_hot(np.delete(np.arange(self.levels), np.argmax(cells)))

    def spread(self, u: Array) -> Array:
        return self._one_hot(np.clip(u * self.levels, 0, self.levels - 1).astype(np.intp))

    def grid(self) -> Array:
        return self._one_hot(np.arange(self.levels))

    def to_dict(self) -> dict[str, Any]:
        return {"type": "categorical", "choices": list(self.choices)}

    def _one_hot(self, index: NDArray[np.intp]) -> Array:
        return np.eye(self.levels).take(index, axis=0)


def _whole(value: object, what: str) -> int:
    """`value` as a Python int; a float that is a whole number will do."""
    x = number(value, what, SpaceError)
    if isinstance(x, float) and not x.is_integer():
        raise SpaceError(f"{what} must be a whole number, not {shown(value)}")
    return int(x)


def _check_range(parameter: Float | Int) -> None:
    kind, low, high = type(parameter).__name__, parameter.low, parameter.high
    if not isinstance(parameter.log, bool):
        raise SpaceError(f"log of {kind} must be True or False, not {shown(parameter.log)}")
    if not low < high:
        raise SpaceError(f"{kind} needs low < high, not low = {low}, high = {high}")
    if parameter.log and low <= 0:
        raise SpaceError(f"{kind} with log = True needs low > 0, not low = {low}")


def _key(choice: Any) -> tuple[type, Any]:
    """What tells choices apart: 1 == 1.0 == True in Python, but they are not the same choice."""
    return type(choice), choice
