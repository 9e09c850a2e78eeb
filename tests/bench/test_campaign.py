"""Campaigns: every evaluation saved, killed anywhere and resumed without repeating or losing one, the same as in one go."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cbob.bench.campaign import campaign
from cbob.bench.execution import STATE_EVERY, design_of, execute
from cbob.bench.journal import Journal
from cbob.bench.problems import Measured, Problem, get
from cbob.bench.progress import Bar, remaining_seconds
from cbob.bench.results import ENVIRONMENTS, load, save
from cbob.bench.runs import Cell, Record, Run
from cbob.bench.scenarios import Scenario, constraints_for, hide
from cbob.errors import CbobError
from cbob.optimizer import Optimizer

CELL = Cell("toy", "S2", "sobol", budget=5)
TOY = CELL.at(0)
LEARNING = Cell("toy", "S2", "cbob", budget=STATE_EVERY + 4).at(1)


def without_clock(record: Record) -> Record:
    return replace(record, ask_seconds=0.0, evaluation_seconds=None, design_seconds=None)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every evaluation of a problem in this process, in order."""
    seen: list[Any] = []

    def watched(self: Problem, name: str) -> Any:
        function = object.__getattribute__(self, name)
        if name != "function":
            return function

        def count(params: Any) -> Measured:
            seen.append(dict(params))
            return function(params)  # type: ignore[no-any-return]

        return count

    monkeypatch.setattr(Problem, "__getattribute__", watched)
    return seen


def test_a_run_is_the_protocol_carried_out_by_hand(tmp_path: Path) -> None:
    record = execute(LEARNING, tmp_path)
    problem = get("toy")
    optimizer = Optimizer(
        problem.space, constraints=constraints_for(problem, Scenario.S2), strategy="cbob", initial=11, seed=LEARNING.seed
    )
    best, held = [], []
    for _ in range(11 + LEARNING.cell.budget):
        trial = optimizer.ask()
        told = hide(problem, problem.function(trial.params), Scenario.S2)
        optimizer.tell(trial, **told)
        best.append(optimizer.best.value if optimizer.best else None)
        held.append("value" in told)
    assert list(record.feasible) == held[11:]
    assert record.trajectory() == best[10:]
    assert [t.params for t in optimizer.trials[:11]] == [problem.space.decode(row) for row in problem.space.sobol(11, seed=1)]


def test_a_design_is_evaluated_once_and_shared_by_strategies_and_scenarios(tmp_path: Path, counted: list[Any]) -> None:
    for cell in (CELL, replace(CELL, strategy="eic"), replace(CELL, scenario="S3", strategy="cbob")):
        execute(cell.at(0), tmp_path)
    design = [e.params for e in design_of(get("toy"), 0, tmp_path)]
    assert counted[:11] == design
    assert len(counted) == 11 + 3 * CELL.budget
    assert not [params for params in counted[11:] if params in design]


@pytest.mark.parametrize(("killed_after", "torn"), [(0, ""), (3, '{"params":{"x":0.1'), (STATE_EVERY + 2, "")])
def test_a_run_killed_anywhere_goes_on_as_if_it_had_not_been(
    killed_after: int, torn: str, tmp_path: Path, counted: list[Any]
) -> None:
    whole = execute(LEARNING, tmp_path / "whole")
    everything = list(counted)
    counted.clear()

    class Killed(BaseException):
        pass

    done = 0

    def kill(old: int, new: int) -> None:
        nonlocal done
        done += new
        if new and done == killed_after:
            raise Killed

    scratch = tmp_path / "killed"
    design_of(get("toy"), LEARNING.seed, scratch)
    if killed_after:
        with pytest.raises(Killed):  # right after the evaluation was saved, before the optimizer was told
            execute(LEARNING, scratch, kill)
        (journal,) = (scratch / "runs").rglob("*.jsonl")
        journal.write_text(journal.read_text() + torn)
    assert without_clock(execute(LEARNING, scratch)) == without_clock(whole)
    assert counted == everything, "nothing was evaluated twice, and nothing else was evaluated"
    assert execute(LEARNING, scratch) == execute(LEARNING, scratch), "a finished run is read from its journal"
    assert counted == everything


def test_a_run_resumes_from_its_state_without_asking_for_all_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def kill(old: int, new: int) -> None:
        kill.done += new  # type: ignore[attr-defined]
        if kill.done == STATE_EVERY + 2:  # type: ignore[attr-defined]
            raise Killed

    kill.done = 0  # type: ignore[attr-defined]
    with pytest.raises(Killed):
        execute(LEARNING, tmp_path, kill)
    asked = []
    ask = Optimizer.ask

    def counting(self: Optimizer) -> Any:
        trial = ask(self)
        if self.strategy_name != "sobol":  # the design is gone through by an optimizer of its own
            asked.append(trial.id)
        return trial

    monkeypatch.setattr(Optimizer, "ask", counting)
    execute(LEARNING, tmp_path)
    assert asked == list(range(11 + STATE_EVERY, 11 + LEARNING.cell.budget))
    assert not list(tmp_path.rglob("*.state")), "a finished run needs none"


def test_a_journal_that_this_code_would_not_have_written_is_refused(tmp_path: Path) -> None:
    execute(TOY, tmp_path)
    (journal,) = (tmp_path / "runs").rglob("*.jsonl")
    lines = journal.read_text().splitlines(keepends=True)
    moved = json.loads(lines[2])
    moved["params"]["x"] += 0.5
    journal.write_text("".join([*lines[:2], json.dumps(moved) + "\n"]))
    with pytest.raises(CbobError, match=r"evaluation 12 .* delete .*0\.jsonl"):
        execute(TOY, tmp_path)


def test_the_journal_of_another_version_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path, {"version": 1}) as journal:
        assert journal.evaluations == []
    before = path.read_text()
    with Journal(path, {"version": 2}) as journal:
        assert journal.evaluations == []
    assert path.with_suffix(".old").read_text() == before


def test_a_campaign_repeats_no_run_and_tells_of_each(tmp_path: Path) -> None:
    results, scratch, said = tmp_path / "results", tmp_path / "scratch", io.StringIO()
    campaign([TOY, TOY], results, scratch, jobs=1, bar=Bar(said))
    first = (results / "toy.jsonl").read_text()
    (results / "toy.jsonl").write_text(first + first[:40])  # killed in the middle of a line
    campaign([TOY, CELL.at(1)], results, scratch, jobs=2, bar=Bar(said))
    assert (results / "toy.jsonl").read_text().startswith(first)
    records = load(results)
    assert [record.run for record in records] == [TOY, CELL.at(1)]
    assert said.getvalue().count("\n") == 2
    assert without_clock(records[0]) == without_clock(execute(TOY, tmp_path / "again"))
    made_by = json.loads((results / ENVIRONMENTS).read_text())
    assert {record.environment for record in records} == set(made_by)


def test_a_run_that_raises_is_reported_and_costs_no_other_run(tmp_path: Path) -> None:
    said = io.StringIO()
    with pytest.raises(CbobError, match="1 of 2 runs failed"):
        campaign([replace(CELL, strategy="luck").at(0), TOY], tmp_path / "r", tmp_path / "s", jobs=1, bar=Bar(said))
    assert [record.run for record in load(tmp_path / "r")] == [TOY]
    assert "failed, StrategyError" in said.getvalue()


def saved_lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.jsonl"))


@pytest.mark.slow
def test_a_campaign_that_is_killed_again_and_again_ends_as_the_one_that_was_not(tmp_path: Path) -> None:
    cells = ["--problems", "toy", "--strategies", "cbob", "tsc", "--seeds", "0-1", "--budget", "14", "--jobs", "2"]

    def started(folder: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "cbob.bench", "run", *cells, "--results", str(tmp_path / folder / "results")]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL)

    assert started("whole").wait(timeout=600) == 0
    kills = 0
    while kills < 100:
        process, enough = started("killed"), saved_lines(tmp_path / "killed") + 7 + 5 * (kills % 3)
        while process.poll() is None and saved_lines(tmp_path / "killed") < enough:
            time.sleep(0.002)
        if process.poll() is not None:
            break
        os.kill(process.pid, signal.SIGKILL)  # the campaign alone: its workers have to notice
        process.wait()
        kills += 1
    assert process.returncode == 0
    assert kills >= 3
    whole, killed = (load(tmp_path / folder / "results") for folder in ("whole", "killed"))
    assert list(map(without_clock, whole)) == list(map(without_clock, killed))
    journals = list((tmp_path / "killed" / "scratch").rglob("*.jsonl"))
    assert len(journals) == 2 + 4
    for journal in journals:
        twin = tmp_path / "whole" / journal.relative_to(tmp_path / "killed")
        points = [[json.loads(line)["params"] for line in path.read_text().splitlines()[1:]] for path in (journal, twin)]
        assert points[0] == points[1]


def test_records_of_the_first_format_are_read(tmp_path: Path) -> None:
    old = {
        **TOY.to_dict(),
        "best": [None, 1.0, 1.0, 0.5, 0.5],
        "feasible": [False, True, False, True, False],
        "ask_seconds": 0.5,
        "version": "0.1.0",
    }
    (tmp_path / "quality.jsonl").write_text(json.dumps(old) + "\n")
    (record,) = load(tmp_path)
    assert record.run == TOY
    assert record.improved == ((2, 1.0), (4, 0.5))
    assert record.feasible == (False, True, False, True, False)
    save(tmp_path, [replace(record, environment="new", improved=((0, 0.25),))])
    (record,) = load(tmp_path)
    assert record.best == 0.25, "one that knows its environment counts before one that does not"


def test_the_time_left_goes_by_the_pace_of_each_kind() -> None:
    # 100 of each: one kind at 2 s, one at 0.1 s, and one that has not begun but is of the first one's problem.
    left = remaining_seconds([100, 100, 100], [0, 50, 0], [10, 10, 0], [20.0, 1.0, 0.0], ["a", "b", "a"], jobs=2)
    assert left == pytest.approx((90 * 2 + 40 * 0.1 + 100 * 2) / 2)
    assert remaining_seconds([5], [0], [0], [0.0], ["a"], jobs=1) is None


def test_the_bar_shows_on_a_terminal_and_lines_alone_elsewhere() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream in (Terminal(), io.StringIO()):
        bar = Bar(stream)
        bar.show(25, 100, "1 of 4 runs", 3723.0)
        bar.say("done")
        bar.end()
        assert ("#" in stream.getvalue() and "1:02:03 left" in stream.getvalue()) is stream.isatty()
        assert "done\n" in stream.getvalue()


def test_a_run_is_found_again_from_its_json() -> None:
    assert Run.from_dict(json.loads(json.dumps(TOY.to_dict()))) == TOY
