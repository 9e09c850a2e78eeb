"""Rows, tables and the page: the numbers are those of the records, and cells without a record say so."""

import argparse
import json
from dataclasses import replace
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cbob.bench.command import main
from cbob.bench.entry import add_to
from cbob.bench.paper import PAPER, printed
from cbob.bench.plans import PLANS, Plan, Row, cells_of
from cbob.bench.problems import PROBLEMS, get
from cbob.bench.report import PAGE, blocks, filled
from cbob.bench.results import default_folder, load, save
from cbob.bench.runs import Cell, Record
from cbob.bench.summary import quantile, quartile_paths, row, summarise
from cbob.bench.tables import NOT_RUN, markdown, number, text, versus
from cbob.errors import CbobError
from cbob.strategies import STRATEGIES

CELL = Cell("pressure-vessel", "S2", "cbob", budget=4)


def record(cell: Cell, seed: int, best: float | None, feasible: str = "1010") -> Record:
    steps = () if best is None else ((0, best + 9.0), (3, best))
    return Record(cell.at(seed), steps, tuple(mark == "1" for mark in feasible), 0.5, 0.1, 0.01)


def test_a_run_without_a_feasible_point_counts_as_infinitely_bad() -> None:
    found = [record(CELL, 0, 6100.0, "0100"), record(CELL, 1, None, "0000"), record(CELL, 2, None, "0000")]
    summary = summarise(found)[CELL]
    assert summary.median == inf
    assert row(summary)["bov_median"] is None
    assert row(summary)["rof_mean"] == pytest.approx(1 / 12)
    assert summarise(found[:1])[CELL].median == 6100.0


def test_where_more_is_better_nothing_found_is_minus_infinity_and_the_first_quartile_the_better_one() -> None:
    cell = Cell("lunar", "S1", "eic", budget=4)
    assert get("lunar").direction == "maximize"
    summary = summarise([record(cell, seed, best) for seed, best in enumerate([200.0, 220.0, 240.0, None])])[cell]
    assert sorted(summary.bov) == [-inf, 200.0, 220.0, 240.0]
    assert (summary.quantile(0.25), summary.median) == (225.0, 210.0)


def test_quartiles_are_numpys_where_every_run_found_something() -> None:
    bov = [0.3, 0.1, 0.7, 0.2, 0.9, 0.4]
    for q in (0.0, 0.25, 0.5, 0.75, 1.0):
        assert quantile(bov, q) == pytest.approx(np.quantile(bov, q))


def test_a_trajectory_holds_the_best_so_far() -> None:
    assert record(CELL, 0, 6100.0).trajectory() == [6109.0, 6109.0, 6109.0, 6100.0, 6100.0]
    assert np.isnan(record(CELL, 0, None).trajectory()).all()


def test_the_papers_numbers_stand_where_its_tables_have_them() -> None:
    """Spot checks of both tables, and what the text says of them."""
    assert printed(Cell("keane-10", "S1", "cbob")) == (1, -0.39, 0.992)
    assert printed(Cell("swimmer", "S2", "cbob")) == (2, 350, 0.771)
    assert printed(Cell("pressure-vessel", "S2", "mesc", "gpc")) == (2, None, None)
    assert printed(Cell("ackley-1", "S2", "eic", "gpc")) == printed(Cell("ackley-5", "S2", "eic", "gpc")) == (2, 0.70, 0.779)
    assert printed(Cell("welded-beam", "S1", "cbob")) is None, "its optimum is above the medians printed"
    assert len(PAPER) == 4 * 4 + 5 * 5
    assert set(PAPER) <= set(cells_of(["table1", "table2"]))


def test_every_plan_names_problems_and_strategies_that_exist() -> None:
    for plan in PLANS.values():
        assert {problem for problem, _ in plan.columns} <= set(PROBLEMS)
        assert {row.strategy for row in plan.rows} <= {*STRATEGIES, "auto"}
    assert len(PLANS["tuning"].columns) == len(PLANS["held-out"].columns) == 10


def test_a_table_marks_the_best_and_its_ties_and_says_what_has_not_run() -> None:
    plan = Plan("p", "", (("pressure-vessel", "S2"),), (Row("eic"), Row("cbob"), Row("mesc"), Row("tsc")), budget=4)
    good, close, bad = (replace(CELL, strategy=name) for name in ("eic", "cbob", "mesc"))
    jitter = [3.0, -2.0, 1.0, -4.0, 2.0, -1.0, 0.5, -0.5]
    records = [record(good, s, 6100.0 + s) for s in range(8)]
    records += [record(close, s, 6101.0 + s + jitter[s]) for s in range(8)]
    records += [record(bad, s, 7000.0 + s) for s in range(8)]
    line = markdown(plan, records).splitlines()[2]
    assert line == f"| pressure-vessel | 6060 | 8 | **6104**, 50% | 6104*, 50% | 7004, 50% | {NOT_RUN} |"
    tested = versus(plan, records, Row("eic")).splitlines()[2]
    assert tested.startswith("| pressure-vessel | tie (p = ")
    assert "| better (p = 0.016, 8 seeds) |" in tested
    assert tested.endswith(f"| {NOT_RUN} |")
    assert text(summarise(records).values()).count("\n") == 3


def test_numbers_are_short_and_exact_enough() -> None:
    assert [number(x) for x in (6059.714, 0.12345, -0.39, 250.26, 1e-7, 0.0, inf)] == [
        "6060",
        "0.1235",
        "-0.39",
        "250.3",
        "1.00e-07",
        "0",
        "none feasible",
    ]


def test_the_command_prints_rows_of_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = replace(CELL, budget=100)
    save(tmp_path, [record(cell, seed, 6100.0 + seed, "10" * 50) for seed in range(3)])
    assert main(["table", "--json", "--results", str(tmp_path)]) == 0
    (only,) = json.loads(capsys.readouterr().out)
    asked_for = ("problem", "scenario", "strategy", "surrogate", "seeds", "bov_median", "rof_mean", "paper_bov")
    assert [only[key] for key in asked_for] == ["pressure-vessel", "S2", "cbob", "hlgp", 3, 6101.0, 0.5, 7198]


def test_the_command_shows_the_cells_of_a_campaign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path, [record(Cell("toy", "S2", "cbob", budget=10), 0, -1.0), record(replace(CELL, budget=100), 0, 6100.0)])
    for arguments, problem in ((["--campaign", "toy"], "toy"), (["--strategies", "cbob"], "pressure-vessel")):
        assert main(["table", *arguments, "--results", str(tmp_path)]) == 0
        (only,) = capsys.readouterr().out.splitlines()[1:]
        assert only.split()[0] == problem


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["run", "--strategies", "luck"], ["figure", "moon"]):
        assert main([*wrong, "--results", str(tmp_path)]) == 1
        assert wrong[-1] in capsys.readouterr().err


def test_bench_hangs_into_another_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_to(parser.add_subparsers())
    options = parser.parse_args(["bench", "table", "--json", "--results", str(tmp_path)])
    assert options.command(options) == 0
    assert json.loads(capsys.readouterr().out) == []
    options = parser.parse_args(["bench", "--help"])
    with pytest.raises(SystemExit, match="0"):
        options.command(options)
    assert "report" in capsys.readouterr().out


def test_filling_a_page_twice_changes_nothing_and_an_unknown_block_is_refused() -> None:
    page = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n<!-- begin y -->\n<!-- end y -->\n"
    made = {"x": "| 1 |", "y": "2"}
    once = filled(page, made)
    assert once == "a\n<!-- begin x -->\n| 1 |\n<!-- end x -->\nb\n<!-- begin y -->\n2\n<!-- end y -->\n"
    assert filled(once, made) == once
    with pytest.raises(CbobError, match="'y'"):
        filled(page, {"x": ""})


@pytest.mark.slow  # quick, but not for every commit: while a campaign runs here, the page is behind
def test_the_tables_of_the_page_are_those_of_the_saved_results() -> None:
    """If not: `cbob bench report` brings the page up to date."""
    results = default_folder()
    made: dict[str, Any] = blocks(load(results), results)
    page = (results.parents[1] / PAGE).read_text(encoding="utf-8")
    for name, block in made.items():
        assert f"<!-- begin {name} -->\n{block}\n<!-- end {name} -->" in page, f"{name}: run `cbob bench report`"


def test_the_results_stay_compact() -> None:
    files = [path for path in default_folder().iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 20e6


@pytest.mark.parametrize("strategy", ["eic", "mesc"])
@pytest.mark.parametrize("problem", ["pressure-vessel", "lunar"])
def test_trajectories_end_at_the_quartiles_of_the_tables(problem: str, strategy: str) -> None:
    """On what is saved: an even number of runs, one direction and the other."""
    cell = Cell(problem, get(problem).scenario, strategy)
    group = [record for record in load(default_folder()) if record.run.cell == cell]
    assert len(group) >= 10
    even = group[: len(group) // 2 * 2]
    summary = summarise(even)[cell]
    ends = [path[-1] for path in quartile_paths(even)]
    assert ends == pytest.approx([summary.quantile(q) for q in (0.25, 0.5, 0.75)])
    assert ends[0] != ends[2]


def test_a_trajectory_is_infinite_while_half_of_the_runs_know_nothing_feasible() -> None:
    group = [record(CELL, seed, best) for seed, best in enumerate([1.0, 2.0, None, None])]
    low, middle, high = (path[-1] for path in quartile_paths(group))
    assert isfinite(low) and not isfinite(middle) and not isfinite(high)
