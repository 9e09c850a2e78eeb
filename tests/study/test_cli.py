"""The command: what it prints, and the codes it ends with."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from cbob.cli import main

FILE = """
name = "bowl"
budget = 6
constraints = ["load <= {limit}"]
strategy = "sobol"
isolate = false
[evaluate]
function = "bowl_{limit}:bowl"
[space]
x = {{type = "float", low = 0.0, high = 1.0}}
n = {{type = "int", low = 0, high = 9}}
"""
CODE = """
def bowl(params):
    if params["n"] == 3:
        raise ValueError("no mesh")
    return {"value": params["x"] + params["n"], "load": params["x"]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return make(tmp_path, monkeypatch, 2)


def make(folder: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> Path:
    (folder / "bowl.toml").write_text(FILE.format(limit=limit))
    (folder / f"bowl_{limit}.py").write_text(CODE)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    sys.modules.pop(f"bowl_{limit}", None)
    return folder


def cbob(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "cbob.cli", *arguments], capture_output=True, text=True, timeout=120)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_a_study_is_run_and_looked_at(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, "run", "bowl.toml")
    assert out.count(" trial ") == 6 and "6 trials, " in out and "best value" in out
    assert (folder / "bowl.db").exists()
    assert "6 of 6 finished" in printed(capsys, "status", "bowl.toml")
    status = json.loads(printed(capsys, "status", "--json"))  # the only study file in this folder
    assert (status["name"], status["finished"], status["drivers"]) == ("bowl", 6, 0)
    best = json.loads(printed(capsys, "best", "--storage", f"sqlite:///{folder}/bowl.db", "--json"))
    assert best["number"] == status["best"]["number"]
    assert repr(best["value"]) in printed(capsys, "best", "bowl.toml")
    shown = printed(capsys, "show", str(best["number"]), "bowl.toml")
    assert f"x = {best['params']['x']!r}" in shown and "reading   load" in shown and "expected  nothing" in shown


def test_a_failed_trial_shows_its_kind_its_reason_and_its_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed(capsys, "run", "bowl.toml", "--budget", "20", "--quiet")
    status = json.loads(printed(capsys, "status", "--json"))
    assert status["failed"].keys() == {"exception"}
    events = printed(capsys, "export").splitlines()
    number = next(line.split(",")[0] for line in events if ",exception," in line)
    shown = printed(capsys, "show", number)
    assert "exception: ValueError: no mesh" in shown and "Traceback" in shown


def test_exports_hold_every_trial(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed(capsys, "run", "bowl.toml", "--quiet")
    rows = list(csv.DictReader(io.StringIO(printed(capsys, "export", "bowl.toml"))))
    assert [row["number"] for row in rows] == [str(number) for number in range(6)]
    assert {"status", "value", "param:x", "param:n", "reading:load", "holds:load", "kind", "reason"} <= rows[0].keys()
    assert "6 trials in" in printed(capsys, "export", "bowl.toml", "-o", "all.parquet")
    table = parquet.read_table(folder / "all.parquet").to_pylist()
    for row, same in zip(rows, table, strict=True):
        assert float(row["param:x"]) == same["param:x"] and int(row["param:n"]) == same["param:n"]
        assert (row["value"] or None) == (None if same["value"] is None else repr(same["value"]))
    printed(capsys, "export", "bowl.toml", "-o", "all.csv")
    assert list(csv.DictReader(io.StringIO((folder / "all.csv").read_text()))) == rows


def test_json_lines_say_all_of_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [json.loads(line) for line in printed(capsys, "run", "bowl.toml", "--json").splitlines()]
    assert [event["event"] for event in events] == ["trial"] * 6 + ["end"]
    assert events[-1]["finished"] == 6 and events[-1]["best"]["value"] is not None


def test_quiet_prints_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "run", "bowl.toml", "--quiet") == ""
    assert capsys.readouterr().err == ""


def test_a_larger_budget_goes_on_and_resume_wants_something_to_resume(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", "bowl.toml"]) == 1
    assert "no study was stored there yet" in capsys.readouterr().err
    printed(capsys, "run", "bowl.toml", "--budget", "2")
    assert printed(capsys, "resume", "bowl.toml", "--budget", "5").count(" trial ") == 3
    assert printed(capsys, "run", "bowl.toml", "--budget", "5").count(" trial ") == 0


def test_without_a_feasible_point_the_code_is_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path, monkeypatch, 0)
    assert main(["run", "bowl.toml"]) == 3
    assert "no point was feasible" in capsys.readouterr().out
    assert main(["best", "bowl.toml"]) == 3


def test_a_wrong_study_file_or_command_line_is_2(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(words: str, *arguments: str) -> None:
        assert main(arguments) == 2
        assert words in capsys.readouterr().err

    refused("nothing.toml: cannot be read", "run", "nothing.toml")
    refused("bowl.toml: budget must be a whole number from 1, not 0", "run", "bowl.toml", "--budget", "0")
    (folder / "other.toml").write_text((folder / "bowl.toml").read_text())
    refused("which study?", "status")
    main(["run", "bowl.toml", "--quiet"])
    refused("has no trial 99; there are 0 .. 5", "show", "99", "bowl.toml")
    (folder / "bowl.toml").write_text((folder / "bowl.toml").read_text().replace("high = 1.0", "high = 2.0"))
    refused("was begun with space", "run", "bowl.toml")
    with pytest.raises(SystemExit) as end:
        main(["fly"])
    assert end.value.code == 2


def test_a_storage_that_cannot_be_used_is_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "bowl.toml", "--storage", "sqlite:///no/such/folder/x.db"]) == 1
    assert "there is no folder no/such/folder" in capsys.readouterr().err
    assert main(["status", "--storage", "postgresql://127.0.0.1:1/x"]) == 1
    assert "no server answers there" in capsys.readouterr().err


def test_a_function_that_does_not_exist_is_said_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bowl.toml").write_text((folder / "bowl.toml").read_text().replace(":bowl", ":ball"))
    assert main(["run", "bowl.toml"]) == 2
    assert "nothing can be evaluated: 'bowl_2:ball' cannot be loaded" in capsys.readouterr().err


def test_the_installed_command_is_this_one(folder: Path) -> None:
    command = Path(sys.executable).with_name("cbob")
    done = subprocess.run([command, "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("cbob ") and done.returncode == 0


def test_help_lists_the_commands_and_the_codes() -> None:
    text = cbob("--help").stdout
    for word in ("run", "resume", "status", "best", "show", "export", "dashboard", "demo", "130 interrupted"):
        assert word in text


def test_help_needs_no_heavy_package() -> None:
    code = """if True:
        import sys, cbob.cli
        try:
            cbob.cli.main(["--help"])
        except SystemExit:
            print({"numpy", "optuna", "rich"} & set(sys.modules))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_output_that_nobody_reads_any_more_is_no_accident(folder: Path) -> None:
    assert cbob("run", "bowl.toml", "--quiet").returncode == 0
    done = subprocess.run(
        f"{sys.executable} -m cbob.cli export bowl.toml | head -1", shell=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("number,") and "Traceback" not in done.stderr


def test_events_are_plain_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def no_constants(name: str) -> Any:
        raise AssertionError(name)

    for line in printed(capsys, "run", "bowl.toml", "--json").splitlines():
        json.loads(line, parse_constant=no_constants)
