"""Campaigns: saved run by run, resumed without repeating one, the same from one process or from many."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cbob.bench.campaign import Record, Run, campaign, execute, load, summarise, table
from cbob.bench.problems import Problem, get
from cbob.bench.scenarios import Scenario, Told, reveal

TOY = Run("toy", "S2", "sobol", "hlgp", seed=0, budget=5)


def without_clock(record: Record) -> Record:
    return {key: value for key, value in record.items() if key != "ask_seconds"}


def test_a_run_repeats_itself_exactly() -> None:
    assert without_clock(execute(TOY)) == without_clock(execute(TOY))


def test_a_record_is_plain_json_that_leads_back_to_its_run() -> None:
    record = execute(TOY)
    assert Run.of(json.loads(json.dumps(record, allow_nan=False))) == TOY
    assert len(record["best"]) == len(record["feasible"]) == TOY.budget
    assert record["best"] == sorted(record["best"], reverse=True)


@pytest.mark.parametrize("strategy", ["sobol", "eic"])
def test_a_run_starts_from_the_design_of_its_seed_and_counts_it_into_the_best(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Any, Told]] = []

    def watched(problem: Problem, params: Any, scenario: Scenario) -> Told:
        seen.append((dict(params), reveal(problem, params, scenario)))
        return seen[-1][1]

    monkeypatch.setattr("cbob.bench.campaign.reveal", watched)
    record = execute(replace(TOY, strategy=strategy, budget=2))
    space = get("toy").space
    assert [params for params, _ in seen[:11]] == [space.decode(row) for row in space.sobol(11, seed=0)]
    assert len(seen) == 13
    for number, best in enumerate(record["best"], start=12):
        assert best == min(told["value"] for _, told in seen[:number] if "value" in told)
    assert record["feasible"] == ["value" in told for _, told in seen[11:]]


def test_a_killed_campaign_resumes_without_repeating_or_losing_a_run(tmp_path: Path) -> None:
    path = tmp_path / "results" / "toy.jsonl"
    reports: list[str] = []
    campaign([TOY, TOY], path, jobs=1, report=reports.append)
    first = path.read_text()
    path.write_text(first + first[:40])  # killed in the middle of a line
    campaign([TOY, replace(TOY, seed=1)], path, jobs=1, report=reports.append)
    assert path.read_text().startswith(first)
    assert [Run.of(record).seed for record in load(path)] == [0, 1]
    assert len(reports) == 2
    assert without_clock(load(path)[0]) == without_clock(execute(TOY))


def test_a_run_that_raises_is_reported_and_costs_no_other_run(tmp_path: Path) -> None:
    path = tmp_path / "toy.jsonl"
    reports: list[str] = []
    with pytest.raises(RuntimeError, match="1 of 2 runs failed"):
        campaign([replace(TOY, strategy="luck"), TOY], path, jobs=1, report=reports.append)
    assert [Run.of(record) for record in load(path)] == [TOY]
    assert any("failed, StrategyError" in line for line in reports)


def record_of(best: list[float | None], feasible: list[bool], seed: int) -> Record:
    return {**vars(TOY), "seed": seed, "best": best, "feasible": feasible, "ask_seconds": 0.5, "version": "0"}


def test_a_run_without_a_feasible_point_counts_as_infinitely_bad() -> None:
    found = record_of([None, 1.0, 1.0, 0.5, 0.5], [False, True, False, True, False], seed=0)
    lost = [record_of([None] * 5, [False] * 5, seed=seed) for seed in (1, 2)]
    (row,) = summarise([found, *lost])
    assert row["bov_median"] == np.inf
    assert row["rof_mean"] == pytest.approx(2 / 15)
    assert row["ask_ms_mean"] == pytest.approx(100.0)
    assert summarise([found])[0]["bov_quartiles"] == [0.5, 0.5]


def test_quartiles_are_numpys_where_every_run_found_something() -> None:
    bov = [0.3, 0.1, 0.7, 0.2, 0.9, 0.4]
    (row,) = summarise([record_of([value], [True], seed) for seed, value in enumerate(bov)])
    assert [row["bov_quartiles"][0], row["bov_median"], row["bov_quartiles"][1]] == pytest.approx(
        np.quantile(bov, [0.25, 0.5, 0.75]).tolist()
    )


def test_the_table_has_a_line_for_each_strategy() -> None:
    records = [record_of([0.5], [True], seed=0), record_of([0.5], [True], seed=0) | {"strategy": "eic"}]
    assert [line.split()[:3] for line in table(records).splitlines()[1:]] == [
        ["toy", "S2", "sobol/hlgp"],
        ["toy", "S2", "eic/hlgp"],
    ]
