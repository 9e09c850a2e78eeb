"""The examples run as they stand, with a smaller budget."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cbob import Limits

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


def test_the_pressure_vessel_prints_its_best_design_and_draws_the_trajectory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = load("pressure_vessel")
    picture = tmp_path / "out" / "vessel.png"
    monkeypatch.setattr(example, "BUDGET", 30)
    monkeypatch.setattr("sys.argv", ["pressure_vessel.py", str(picture)])
    example.main()
    printed = capsys.readouterr().out
    assert printed.count("trial ") == 30
    assert "broke volume" in printed and "best design" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_optuna_study_goes_on_when_trials_fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    example = load("optuna_failing_trials")
    monkeypatch.setattr(example, "TRIALS", 14)
    example.main()
    printed = capsys.readouterr().out
    assert printed.count("\ntrial ") == 13 and "of 14 trials failed" in printed
    assert "the pump starved" in printed


def test_the_lander_lands_from_its_study_file(tmp_path: Path) -> None:
    for name in ("lander.toml", "lander.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    command = [sys.executable, "-m", "cbob.cli", "run", str(tmp_path / "lander.toml"), "--budget", "16", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    end = json.loads(done.stdout.splitlines()[-1])
    assert end["finished"] == 16 and end["feasible"] > 0 and end["failed"] and end["broke"]


def test_the_demo_prints_its_failures_by_kind_and_draws_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cbob.study import demo

    monkeypatch.setattr(demo, "BUDGET", 12)
    assert demo.demo(tmp_path) == 0
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({"shell": 1, "head": 9, "radius": 40.0, "length": 180.0}, "exception"),
        ({"shell": 9, "head": 1, "radius": 40.0, "length": 180.0}, "crash"),
        ({"shell": 9, "head": 9, "radius": 12.0, "length": 180.0}, "timeout"),
        ({"shell": 9, "head": 9, "radius": 49.0, "length": 180.0}, "memory"),
    ],
)
def test_the_simulator_of_the_demo_dies_in_four_ways(params: dict[str, float], kind: str) -> None:
    from cbob.study import demo
    from cbob.study.evaluate import evaluate

    seconds = 1.0 if kind == "timeout" else 30.0
    limits = Limits(seconds=seconds, memory=demo.MEMORY, grace=0.2)
    report = evaluate("cbob.study.demo:simulate", params, constraints=demo.LIMITS, limits=limits)
    assert report.failure is not None and report.failure.kind == kind
