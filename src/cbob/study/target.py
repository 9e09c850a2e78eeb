"""What is evaluated: a function, or a command."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Formatter
from typing import Any

from cbob.errors import TargetError, listed, shown

__all__ = ["Command", "Function", "Target", "as_target"]

FORM = 'a function, "module:function", or a command as a list of texts'
OUTPUT = "output"  # the placeholder of the file that a command may write its result to


@dataclass(frozen=True)
class Function:
    """A function of one dict of parameters: its place, or the pickled function itself."""

    name: str
    place: tuple[str, str] | None = None  # module, and the function's name in it
    pickled: bytes | None = None

    def load(self) -> Callable[[dict[str, Any]], object]:
        """The function. Runs code of the user's, which may do anything."""
        if self.place is None:
            assert self.pickled is not None
            found = pickle.loads(self.pickled)
        else:
            module, path = self.place
            found = importlib.import_module(module)
            for part in path.split("."):
                if not hasattr(found, part):
                    raise TargetError(f"module {module!r} has no {path!r}")
                found = getattr(found, part)
        if not callable(found):
            raise TargetError(f"{self.name!r} is not a function but {shown(found)}")
        return found  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Command:
    """A program and its arguments, without a shell. {name} in an argument stands for a parameter, {output} for a file."""

    arguments: tuple[str, ...]

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """The names in braces."""
        parsed = (field for argument in self.arguments for _, field, _, _ in Formatter().parse(argument))
        return frozenset(field for field in parsed if field is not None)

    @property
    def name(self) -> str:
        return self.arguments[0]

    def filled(self, params: Mapping[str, Any], output: str) -> list[str]:
        """The arguments of one evaluation. A parameter called "output" goes before the file."""
        values = {OUTPUT: output} | dict(params)
        if unknown := sorted(self.placeholders - values.keys()):
            raise TargetError(f"the command has placeholders {listed(unknown)}; there are {listed(values)}")
        try:
            return [argument.format_map(values) for argument in self.arguments]
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise TargetError(f"the command cannot be filled in with {shown(dict(params))}: {error}") from error


Target = Function | Command


def as_target(given: object) -> Target:
    """What was given, checked as far as it can be without running it."""
    if isinstance(given, Function | Command):
        return given
    if isinstance(given, str):
        module, colon, path = given.partition(":")
        if not colon or not all(part.isidentifier() for part in [*module.split("."), *path.split(".")]):
            raise TargetError(f"expected {FORM}, not {shown(given)}")
        return Function(given, place=(module, path))
    if callable(given):
        return _sent(given)
    if isinstance(given, Sequence) and given and all(isinstance(part, str | Path) for part in given):
        command = Command(tuple(map(str, given)))
        try:
            strange = sorted(name for name in command.placeholders if not name.isidentifier())
        except ValueError as error:
            raise TargetError(f"the command {shown(given)} has a brace that is not closed, or {error}") from error
        if strange:
            raise TargetError(f"placeholders of a command are names of parameters, not {listed(strange)}")
        if not command.arguments[0]:
            raise TargetError("the program of a command is an empty text")
        return command
    raise TargetError(f"expected {FORM}, not {shown(given)}")


def _sent(function: Callable[..., object]) -> Function:
    """By its place where another process can import it, else by value: lambdas, closures, functions of a notebook."""
    import cloudpickle

    name = getattr(function, "__qualname__", type(function).__name__)
    module = getattr(function, "__module__", None)
    if module not in (None, "__main__"):
        found: object = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is function:
            return Function(name, place=(module, name))
    try:
        return Function(name, pickled=cloudpickle.dumps(function))
    except Exception as error:
        raise TargetError(
            f"the function {name!r} cannot be sent to a process of its own ({type(error).__name__}: {error}); "
            "put it into a module, or evaluate it in this process with isolate=False"
        ) from error
