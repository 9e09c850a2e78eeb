"""Evaluations on disk, each from the moment it is known: a file of JSON lines that may be cut off at any point by a kill."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

from cbob.bench.problems import Measured

if sys.platform != "win32":
    import fcntl

__all__ = ["Evaluation", "Journal", "complete_lines", "write_whole"]


@dataclass(frozen=True)
class Evaluation:
    """A point, all that was measured there (what a scenario hides too), and the processor's seconds to ask and to evaluate."""

    params: dict[str, Any]
    value: float
    readings: dict[str, float]
    asking: float
    evaluating: float

    @property
    def measured(self) -> Measured:
        return self.value, self.readings


class Journal:
    """The evaluations of one run, or of one initial design, in order.

    Opening it takes up what an earlier process left, or starts anew where that was made under another header (by another
    version, say): the old one is kept beside it, as ".old". Nobody else can open it meanwhile, so a process that outlives its
    campaign for a moment cannot write between the lines of the next one.
    """

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = _locked(path)
        lines = complete_lines(self._file)
        if lines and json.loads(lines[0]) != header:
            path.with_suffix(".old").write_bytes(b"".join(lines))
            lines = []
        self._file.seek(sum(map(len, lines)))
        self._file.truncate()  # a line without its end was never told to anybody
        if not lines:
            self._write(header)
        self.evaluations = [Evaluation(**json.loads(line)) for line in lines[1:]]

    def append(self, evaluation: Evaluation) -> None:
        """Returns once the system has the line: it then survives whatever becomes of this process."""
        self._write(asdict(evaluation))
        self.evaluations.append(evaluation)

    def _write(self, content: dict[str, Any]) -> None:
        self._file.write(json.dumps(content, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _locked(path: Path) -> BinaryIO:
    file = open(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")  # noqa: SIM115, the journal closes it
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX)
    return file


def complete_lines(file: BinaryIO) -> list[bytes]:
    """Those with an end: the last may have been cut off."""
    return [line for line in file.read().splitlines(keepends=True) if line.endswith(b"\n")]


def write_whole(path: Path, text: str) -> None:
    """So that whoever reads the file finds it as it was or as it is, never half of it."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
