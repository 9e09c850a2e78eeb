"""Saved results, carried out again: the same to the last bit."""

from dataclasses import replace
from pathlib import Path

import pytest

from cbob.bench.environment import environment
from cbob.bench.execution import execute
from cbob.bench.plans import PLANS
from cbob.bench.results import default_folder, load
from cbob.bench.runs import Cell, Record

HOW = "where the engine was changed on purpose: `cbob bench run --campaign toy --seeds 0-4 --anew`, then `cbob bench report`"


def saved(cell: Cell) -> list[Record]:
    return [record for record in load(default_folder()) if record.run.cell == cell and record.environment]


def assert_repeats(record: Record, scratch: Path) -> None:
    again = execute(record.run, scratch)
    assert (again.improved, again.feasible) == (record.improved, record.feasible), (
        f"{record.run} was saved by environment {record.environment} (environments.json); this is {environment()}; {HOW}"
    )


@pytest.mark.parametrize("strategy", ["auto", "mesc"])
def test_a_cell_of_the_toys_table_repeats_to_the_last_bit(strategy: str, tmp_path: Path) -> None:
    (cell,) = (cell for cell in PLANS["toy"].cells if cell.strategy == strategy)
    records = saved(cell)
    assert [record.run.seed for record in records] == list(range(5))
    for record in records[:2]:
        assert_repeats(record, tmp_path)


@pytest.mark.slow
def test_all_of_the_toys_table_repeats_to_the_last_bit(tmp_path: Path) -> None:
    for cell in PLANS["toy"].cells:
        for record in saved(cell):
            assert_repeats(record, tmp_path)


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    """So the test above can tell runs apart."""
    first, second = saved(replace(PLANS["toy"].cells[0], strategy="cbob", surrogate="hlgp"))[:2]
    assert (first.improved, first.feasible) != (second.improved, second.feasible)
