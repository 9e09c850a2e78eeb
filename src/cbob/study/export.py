"""All trials of a study as one table: CSV for everything, Parquet for data frames.

Columns: the trial, `param:NAME` for each parameter, and `reading:NAME` and `holds:NAME` for each constraint.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from cbob.constraints import Constraint
from cbob.errors import StudyError
from cbob.study.records import Record
from cbob.trials import Reading

__all__ = ["FORMATS", "rows", "write_csv", "write_parquet"]

FORMATS = ("csv", "parquet")
FIRST = ("number", "status", "value")
LAST = ("kind", "reason", "seconds", "started", "ended", "retry_of", "log")


def rows(records: Sequence[Record], constraints: Sequence[Constraint]) -> list[dict[str, Any]]:
    """One dict for each trial, all with the same keys in the same order; None where nothing is known."""
    names = list(dict.fromkeys(name for record in records for name in record.params))
    return [_row(record, names, constraints) for record in records]


def write_csv(table: Sequence[dict[str, Any]], file: IO[str]) -> None:
    """With a header; empty where nothing is known."""
    if table:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def write_parquet(table: Sequence[dict[str, Any]], path: Path) -> None:
    """A file that pandas, polars, DuckDB and Spark read."""
    if find_spec("pyarrow") is None:
        raise ImportError("Parquet needs pyarrow: pip install 'cbob[parquet]'")
    import pyarrow
    from pyarrow import parquet

    if not table:
        raise StudyError("there are no trials to export yet")
    columns = {name: [row[name] for row in table] for name in table[0]}
    arrays = {name: pyarrow.array(_of_one_type(cells)) for name, cells in columns.items()}
    parquet.write_table(pyarrow.table(arrays), path)


def _row(record: Record, names: Sequence[str], constraints: Sequence[Constraint]) -> dict[str, Any]:
    plain = record.to_dict()
    row: dict[str, Any] = {key: plain[key] for key in FIRST}
    row |= {f"param:{name}": record.params.get(name) for name in names}
    for constraint in constraints:
        reading = Reading.of(record.readings.get(constraint.name))
        row[f"reading:{constraint.name}"] = reading.value
        row[f"holds:{constraint.name}"] = reading.holds(constraint)
    return row | {key: plain[key] for key in LAST}


def _of_one_type(cells: list[Any]) -> list[Any]:
    """A column as it is; as text if its cells are of several types, as choices may be."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if len(kinds) <= 1 or kinds == {int, float}:
        return [float(cell) if kinds == {int, float} and cell is not None else cell for cell in cells]
    return [None if cell is None else str(cell) for cell in cells]
