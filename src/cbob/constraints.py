"""What must hold: "fuel <= 40" as data. The margin g is the distance beyond the limit: g <= 0 holds."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .errors import ConstraintError, finite, listed, shown

__all__ = ["RAN", "Constraint", "as_constraint", "as_constraints"]

RAN = "it ran"  # the learned constraint behind failures whose cause nobody named

SENSES = ("<=", ">=")
FORM = '"name <= number" or "name >= number"'
NAME = re.compile(r"[\w.-]+( +[\w.-]+)*")  # letters, digits, _ . - and spaces inside
HUGE = sys.float_info.max


@dataclass(frozen=True)
class Constraint:
    """The reading called `name` must stay on one side of `limit`, which itself is allowed."""

    name: str
    limit: float
    sense: str = "<="

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            allowed = "letters, digits, '_', '.', '-' and spaces inside"
            raise ConstraintError(f"the name of a constraint is made of {allowed}, not {shown(self.name)}")
        if self.name == RAN:
            raise ConstraintError(f"{RAN!r} is reserved for the constraint that is learned from failures")
        if self.sense not in SENSES:
            raise ConstraintError(f"constraint {self.name!r}: expected '<=' or '>=', not {shown(self.sense)}")
        limit = finite(self.limit, f"the limit of constraint {self.name!r}", ConstraintError)
        object.__setattr__(self, "limit", limit)

    @classmethod
    def parse(cls, text: str) -> Constraint:
        """Reads "fuel <= 40"; `str` of a constraint is such a text again."""
        if not isinstance(text, str):
            raise ConstraintError(f"expected a text like {FORM}, not {shown(text)}")
        comparison = re.search(r"[<>=!~≤≥]+", text)
        if comparison is None:
            raise ConstraintError(f"expected {FORM}, but {text!r} has no comparison")
        start, end = comparison.span()
        name, sense, limit = text[:start].strip(), text[start:end], text[end:].strip()
        if sense not in SENSES:
            raise ConstraintError(f"expected {FORM}, but {text!r} has {sense!r} at character {start + 1}")
        try:
            return cls(name, float(limit), sense)
        except ConstraintError as error:
            raise ConstraintError(f"{error}, in {text!r}") from None
        except ValueError:
            came = f"{limit!r} after character {end}" if limit else "nothing"
            raise ConstraintError(f"expected a number after {sense!r}, but {text!r} has {came}") from None

    def __str__(self) -> str:
        return f"{self.name} {self.sense} {self.limit!r}"

    def margin(self, reading: float) -> float:
        """g = reading - limit for "<=", limit - reading for ">="; finite for a finite reading.

        The sign is exact: with gradual underflow (IEEE 754) a difference is zero only between equal numbers.
        """
        beyond = float(reading) - self.limit
        return _clipped(beyond if self.sense == "<=" else -beyond)

    def holds(self, reading: float) -> bool:
        """Whether the reading keeps the limit; a NaN does not."""
        return self.margin(reading) <= 0.0

    def reading_of(self, margin: float) -> float:
        """The reading that has this margin: the inverse of `margin`, up to rounding."""
        beyond = float(margin) if self.sense == "<=" else -float(margin)
        return _clipped(self.limit + beyond)


def as_constraint(given: str | Constraint) -> Constraint:
    """A constraint as it is, or read from a text."""
    return given if isinstance(given, Constraint) else Constraint.parse(given)


def as_constraints(given: str | Constraint | Iterable[str | Constraint]) -> tuple[Constraint, ...]:
    """Constraints or texts, or a single one, as constraints of different names."""
    several = (given,) if isinstance(given, str | Constraint) else given
    if not isinstance(several, Iterable) or isinstance(several, Mapping):
        raise ConstraintError(f"constraints must be a list of texts like {FORM}, not {shown(given)}")
    constraints = tuple(map(as_constraint, several))
    names = [constraint.name for constraint in constraints]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConstraintError(
            f"constraints need different names, but {listed(twice)} comes more than once; "
            "a reading between two limits is told under two names, as in 'size_low >= 1' and 'size_high <= 5'"
        )
    return constraints


def _clipped(x: float) -> float:
    """x, or the largest float where a difference overflowed; a NaN stays one."""
    return min(max(x, -HUGE), HUGE) if x == x else x
