"""How much one evaluation may take: wall-clock time, and memory of all its processes together."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass

from cbob.errors import LimitsError, finite, shown

__all__ = ["Limits", "memory_text"]

FORM = '"2GiB", "500 MB", "1.5G" or a number of bytes'
SIZE = re.compile(r"(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<prefix>[kmgt]?)(?P<unit>ib|b|)", re.IGNORECASE)
POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(frozen=True)
class Limits:
    """None is no limit. Of a size, "GB" is 1000^3 bytes; "GiB" and plain "G" are 1024^3."""

    seconds: float | None = None  # wall-clock time of one evaluation
    memory: int | str | None = None  # resident, of the evaluation and all that it started; kept as bytes
    _: KW_ONLY
    grace: float = 2.0  # seconds from SIGTERM to SIGKILL
    loading: float = 120.0  # seconds that importing the user's module may take, once for many evaluations

    def __post_init__(self) -> None:
        if self.seconds is not None:
            object.__setattr__(self, "seconds", _positive(self.seconds, "the limit in seconds"))
        if self.memory is not None:
            object.__setattr__(self, "memory", _bytes(self.memory))
        object.__setattr__(self, "loading", _positive(self.loading, "the seconds to load the function in"))
        grace = finite(self.grace, "the seconds of grace", LimitsError)
        if grace < 0:
            raise LimitsError(f"the seconds of grace must not be negative, but are {shown(self.grace)}")
        object.__setattr__(self, "grace", grace)

    @property
    def bytes(self) -> int | None:
        """The limit of memory."""
        assert not isinstance(self.memory, str)
        return self.memory


def memory_text(size: int) -> str:
    """A number of bytes for people: "2.0 GiB"."""
    amount, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.0f} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"


def _bytes(given: object) -> int:
    if isinstance(given, str):
        match = SIZE.fullmatch(given.strip())
        if match is None:
            raise LimitsError(f"the limit of memory must look like {FORM}, not {shown(given)}")
        prefix, unit = match["prefix"].lower(), match["unit"].lower()
        if unit == "ib" and not prefix:
            raise LimitsError(f"the limit of memory must look like {FORM}, not {shown(given)}")
        base = 1000 if unit == "b" else 1024
        given = float(match["number"]) * base ** POWERS[prefix]
    size = int(finite(given, "the limit of memory", LimitsError))
    if size < 1:
        raise LimitsError(f"the limit of memory must be at least one byte, not {shown(given)}")
    return size


def _positive(given: object, what: str) -> float:
    seconds = finite(given, what, LimitsError)
    if seconds <= 0:
        raise LimitsError(f"{what} must be positive, not {shown(given)}")
    return seconds
