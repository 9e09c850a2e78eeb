"""The examples run as they stand, with a smaller budget."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

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
    pytest.importorskip("matplotlib")
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
