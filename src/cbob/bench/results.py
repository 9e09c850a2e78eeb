"""Records on disk: JSON lines, one file for each problem, and beside them the environments that made them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from cbob.bench.environment import environment, identity
from cbob.bench.journal import complete_lines, write_whole
from cbob.bench.runs import Record
from cbob.errors import CbobError, StateError

__all__ = ["ENVIRONMENTS", "default_folder", "load", "save"]

ENVIRONMENTS = "environments.json"


def default_folder() -> Path:
    """benchmarks/results of the checkout that this code is part of."""
    folder = Path(__file__).parents[3] / "benchmarks" / "results"
    if not folder.is_dir():
        raise CbobError(
            "the results are part of the repository, and this cbob was installed without it: name a folder (--results)"
        )
    return folder


def load(folder: Path) -> list[Record]:
    """The records of all finished runs, in a fixed order. Where a run was carried out twice the later one counts, and any
    that knows its environment counts before one that does not."""
    found: dict[object, Record] = {}
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as file:
            lines = complete_lines(file)
        for number, line in enumerate(lines, 1):
            try:
                record = Record.from_dict(json.loads(line))
            except ValueError as error:
                raise StateError(f"{path}, line {number}: {error}") from error
            before = found.get(record.run)
            if before is None or record.environment or not before.environment:
                found[record.run] = record
    return sorted(found.values(), key=lambda record: record.run)


def save(folder: Path, records: Iterable[Record]) -> None:
    """Append records made here."""
    folder.mkdir(parents=True, exist_ok=True)
    _note_environment(folder)
    for record in records:
        path = folder / f"{record.run.cell.problem}.jsonl"
        _end_last_line(path)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record.to_dict(), separators=(",", ":"), allow_nan=False) + "\n")


def _note_environment(folder: Path) -> None:
    path, made_by = folder / ENVIRONMENTS, environment()
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if identity(made_by) not in known:
        write_whole(path, json.dumps(known | {identity(made_by): made_by}, indent=1, sort_keys=True) + "\n")


def _end_last_line(path: Path) -> None:
    """Cut off what a kill has left of a line."""
    if path.exists():
        with path.open("r+b") as file:
            file.truncate(sum(map(len, complete_lines(file))))
