"""All that a run of a study is told: what is sought, how one trial is evaluated, and how far to go."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cbob.constraints import Constraint, as_constraints
from cbob.errors import StudyError, listed, number, shown
from cbob.space import Space
from cbob.study.limits import Limits

__all__ = ["Plan", "Target", "whole"]

Target = Callable[..., Any] | str | Sequence[str]  # a function, "module:function", or a command

DIRECTIONS = ("minimize", "maximize")
RETRIES = 2  # a trial is tried at most three times before its losses are held against it


def whole(value: object, what: str, least: int) -> int:
    """`value` as an int of at least `least`, or a StudyError about `what`."""
    x = number(value, what, StudyError)
    if not float(x).is_integer() or x < least:
        raise StudyError(f"{what} must be a whole number from {least}, not {shown(value)}")
    return int(x)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One run of one study. Space, constraints and direction belong to the study; the rest may change from run to run."""

    name: str
    space: Space
    target: Target
    constraints: tuple[Constraint, ...] = ()
    direction: str = "minimize"
    budget: int = 100  # finished trials, those of earlier runs and other machines included
    workers: int = 1
    retries: int = RETRIES
    limits: Limits = field(default_factory=Limits)
    isolate: bool = True
    strategy: str | None = None  # the sampler's own default
    surrogate: str | None = None
    initial: int | str | None = None
    seed: int = 0
    folder: Path | None = None  # where commands run and modules are found: the folder of the study file

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise StudyError(f"the name of a study must be a non-empty text, not {shown(self.name)}")
        if self.direction not in DIRECTIONS:
            raise StudyError(f"direction must be {' or '.join(map(repr, DIRECTIONS))}, not {shown(self.direction)}")
        for what, least in (("budget", 1), ("workers", 1), ("retries", 0), ("seed", 0)):
            object.__setattr__(self, what, whole(getattr(self, what), what, least))
        if not isinstance(self.space, Space):
            raise StudyError(f"space must be a Space, not {shown(self.space)}")
        object.__setattr__(self, "constraints", as_constraints(self.constraints))
        if not isinstance(self.isolate, bool):
            raise StudyError(f"isolate must be True or False, not {shown(self.isolate)}")

    def definition(self) -> dict[str, Any]:
        """What all trials of the study have in common, as plain JSON."""
        return {
            "space": self.space.to_dict(),
            "constraints": [str(constraint) for constraint in self.constraints],
            "direction": self.direction,
        }

    def check_against(self, stored: Mapping[str, Any]) -> None:
        """A StudyError if the study in the storage was begun with another space, other constraints or another direction."""
        for part, mine in self.definition().items():
            if stored.get(part) != mine:
                raise StudyError(
                    f"the study {self.name!r} was begun with {part} {json.dumps(stored.get(part))}, and this run has "
                    f"{json.dumps(mine)}; give this run another name, or go back to what the study was begun with"
                )


def unknown_key(key: str, where: str, known: Iterable[str]) -> StudyError:
    """The error about a key that does not exist, with the nearest that does."""
    names = sorted(known)
    near = difflib.get_close_matches(key, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return StudyError(f"unknown key {key!r} in {where}{hint} Known there: {listed(names)}")
