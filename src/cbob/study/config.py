"""A study as a TOML file: read, checked key by key, and turned into a plan.

    name = "lander"
    budget = 100
    constraints = ["fuel <= 40"]
    [evaluate]
    function = "lander:land"
    [limits]
    seconds = 30
    [space]
    thrust = {type = "float", low = 0.0, high = 2.0}

Paths in the file are relative to its folder, those given as flags to the folder one stands in.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cbob.errors import CbobError, StudyError, shown
from cbob.space import Space, parameter_from_dict
from cbob.study.limits import Limits
from cbob.study.plan import Plan, unknown_key

__all__ = ["StudyFile", "read_study_file"]

TEXT, NUMBER, FLAG, LIST, TABLE = "a text", "a whole number", "true or false", "a list of texts", "a table"
TOP = {
    "name": TEXT,
    "budget": NUMBER,
    "direction": TEXT,
    "constraints": LIST,
    "storage": TEXT,
    "workers": NUMBER,
    "retries": NUMBER,
    "seed": NUMBER,
    "strategy": TEXT,
    "surrogate": TEXT,
    "initial": "a whole number or a text",
    "isolate": FLAG,
    "evaluate": TABLE,
    "limits": TABLE,
    "space": TABLE,
}
EVALUATE = {"function": TEXT, "command": LIST}
LIMITS = {"seconds": "a number", "memory": "a text like '2GiB' or a number of bytes"}
IS: dict[str, Callable[[Any], bool]] = {
    TEXT: lambda value: isinstance(value, str),
    NUMBER: lambda value: isinstance(value, int) and not isinstance(value, bool),
    FLAG: lambda value: isinstance(value, bool),
    LIST: lambda value: isinstance(value, list) and all(isinstance(part, str) for part in value),
    TABLE: lambda value: isinstance(value, dict),
    "a whole number or a text": lambda value: isinstance(value, int | str) and not isinstance(value, bool),
    "a number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "a text like '2GiB' or a number of bytes": lambda value: isinstance(value, int | str) and not isinstance(value, bool),
}


@dataclass(frozen=True)
class StudyFile:
    """What a study file says: the plan, and where the trials are stored."""

    plan: Plan
    storage: str


def read_study_file(path: str | Path, overrides: Mapping[str, Any] | None = None) -> StudyFile:
    """The plan in a study file, with flags in place of its keys of the same names; a StudyError names the key that is wrong."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise StudyError(f"{file}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise StudyError(f"{file}: is not text in UTF-8: {error}") from None
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"{file}: is not TOML: {error}") from None
    try:
        return _study_file(given, file.resolve(), dict(overrides or {}))
    except CbobError as error:
        raise StudyError(f"{file}: {error}") from None


def _study_file(given: Mapping[str, Any], file: Path, flags: Mapping[str, Any]) -> StudyFile:
    _check_keys(given, TOP, "the study file")
    for key in ("evaluate", "space"):
        if key not in given:
            raise StudyError(f"has no [{key}] table")
    options = {key: value for key, value in given.items() if key not in ("evaluate", "limits", "space", "storage")}
    options |= {key: value for key, value in flags.items() if key != "storage"}
    options.setdefault("name", file.stem)
    plan = Plan(
        target=_target(given["evaluate"]),
        limits=_limits(given.get("limits", {})),
        space=Space({name: parameter_from_dict(_entry(entry, name), name) for name, entry in given["space"].items()}),
        constraints=tuple(options.pop("constraints", ())),
        folder=file.parent,
        **options,
    )
    storage = flags.get("storage") or beside(given.get("storage", f"sqlite:///{file.stem}.db"), file.parent)
    return StudyFile(plan, storage)


def beside(url: str, folder: Path) -> str:
    """A storage URL whose file, if it is a relative one, lies in `folder`."""
    scheme, mark, path = url.partition(":///")
    if mark and scheme.partition("+")[0] in ("sqlite", "journal") and path and path != ":memory:":
        return f"{scheme}:///{folder / path}"
    return url


def _check_keys(given: Mapping[str, Any], known: Mapping[str, str], where: str) -> None:
    for key, value in given.items():
        if key not in known:
            raise unknown_key(key, where, known)
        if not IS[known[key]](value):
            raise StudyError(f"{key!r} in {where} must be {known[key]}, not {shown(value)}")


def _target(given: Mapping[str, Any]) -> str | tuple[str, ...]:
    _check_keys(given, EVALUATE, "[evaluate]")
    if len(given) != 1:
        forms = 'function = "module:function" or command = ["./program", "--x={x}"]'
        raise StudyError(f"[evaluate] needs one of {forms}, not {'both' if given else 'neither'}")
    return given["function"] if "function" in given else tuple(given["command"])


def _limits(given: Mapping[str, Any]) -> Limits:
    _check_keys(given, LIMITS, "[limits]")
    return Limits(**given)


def _entry(entry: object, name: str) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        raise StudyError(f'[space] {name} must be a table like {{type = "float", low = 0.0, high = 1.0}}, not {shown(entry)}')
    return entry
