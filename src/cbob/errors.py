"""Every error that cbob raises on purpose, and the gate through which numbers from outside come in.

    CbobError
    |-- SpaceError        a parameter, a space, or values that do not lie in it
    |-- ConstraintError   a constraint that cannot be read, or its name
    |-- TrialError        a result that was told wrongly: unknown name, contradiction, twice, nothing at all
    |-- StrategyError     an unknown strategy, or an option that does not exist
    |-- StateError        a stored state that this version cannot read
    |-- LimitsError       a limit of time or memory that cannot be read
    |-- TargetError       what to evaluate is neither a function, its name nor a command
    |-- StudyError        a study, its file or its options, that cannot be run as it is written
    `-- StorageError      a storage that cannot be opened, or stayed away for too long

All but the root and StorageError are a ValueError too, so that code which knows nothing of cbob can catch them.
`Infeasible` stands apart: it is no error of cbob's, but what a user's function raises.
"""

from __future__ import annotations

import math
import numbers
import reprlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

__all__ = [
    "CbobError",
    "ConstraintError",
    "Infeasible",
    "LimitsError",
    "SpaceError",
    "StateError",
    "StorageError",
    "StrategyError",
    "StudyError",
    "TargetError",
    "TrialError",
]


class CbobError(Exception):
    """The root: catches every error of cbob's own."""


class SpaceError(CbobError, ValueError):
    """A parameter or a space is not well defined, or a value does not lie in it."""


class ConstraintError(CbobError, ValueError):
    """A constraint cannot be read, or its name is taken."""


class TrialError(CbobError, ValueError):
    """What was told about a trial makes no sense; nothing was changed."""


class StrategyError(CbobError, ValueError):
    """No such strategy, or no such option."""


class StateError(CbobError, ValueError):
    """A stored state cannot be read."""


class StudyError(CbobError, ValueError):
    """A study cannot be run as it is written."""


class StorageError(CbobError):
    """A storage cannot be opened, or stayed away for longer than results can be held."""


class LimitsError(CbobError, ValueError):
    """A limit of time or memory cannot be read."""


class TargetError(CbobError, ValueError):
    """There is nothing here that could be evaluated."""


class Infeasible(Exception):  # noqa: N818  what it says of the point is no error
    """Raised by a function under evaluation: these constraints broke, these readings were taken all the same."""

    def __init__(self, *names: str, readings: Mapping[str, float] | None = None) -> None:
        super().__init__(*names)
        self.readings = dict(readings or {})

    @property
    def names(self) -> tuple[str, ...]:
        """The constraints that broke."""
        return self.args

    def __str__(self) -> str:
        return f"{listed(self.names)} broken" if self.names else "a constraint broke"

    def __reduce__(self) -> tuple[Any, ...]:
        return _infeasible, (type(self), self.args, self.readings)


def _infeasible(kind: type[Infeasible], names: tuple[str, ...], readings: Mapping[str, float]) -> Infeasible:
    """An Infeasible as it was before it was pickled."""
    raised = kind.__new__(kind)
    Infeasible.__init__(raised, *names, readings=readings)
    return raised


def shown(value: object) -> str:
    """A value as an error message shows it: short, with its type."""
    return f"{reprlib.repr(value)} ({type(value).__name__})"


def listed(names: Iterable[object]) -> str:
    """Names as an error message lists them: 'a', 'b'."""
    return ", ".join(map(repr, names)) or "none"


def plain(value: object) -> object:
    """The Python object inside a NumPy scalar or a one-element array or tensor; all else as it is."""
    if hasattr(value, "item"):
        with suppress(TypeError, ValueError, RuntimeError):  # more than one element: leave it to be refused
            return value.item()
    return value


def number(value: object, what: str, error: type[CbobError]) -> int | float:
    """`value` as a Python int (exact) or float; anything else, a bool too, is an `error`."""
    if type(value) is float or type(value) is int:  # nearly always; the general way takes longer
        return value
    inner = plain(value)
    if isinstance(inner, bool) or not isinstance(inner, numbers.Real):
        raise error(f"{what} must be a real number, not {shown(value)}")
    return int(inner) if isinstance(inner, numbers.Integral) else float(inner)


def real(value: object, what: str, error: type[CbobError]) -> float:
    """`value` as a float, perhaps NaN or infinite: an int beyond the range of floats counts as infinite."""
    exact = number(value, what, error)
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def finite(value: object, what: str, error: type[CbobError]) -> float:
    """`value` as a float that is neither NaN nor infinite."""
    result = real(value, what, error)
    if not math.isfinite(result):
        raise error(f"{what} must be finite, not {shown(value)}")
    return result
