"""`cbob.minimize`: a study in one call, whatever the function does."""

import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import cbob
from cbob import Float, Int, Limits
from cbob.errors import LimitsError, SpaceError, StrategyError, StudyError

SPACE = cbob.Space({"x": Float(0.0, 1.0), "n": Int(0, 9)})
QUICK: dict[str, Any] = {"strategy": "sobol", "isolate": False}


def bowl(params: dict[str, Any]) -> dict[str, float]:
    return {"value": (params["x"] - 0.3) ** 2 + params["n"], "load": params["x"]}


def troublesome(params: dict[str, Any]) -> object:
    kind = params["n"]
    if kind == 0:
        raise ValueError("no such mesh")
    if kind == 1:
        return math.nan
    if kind == 2:
        os._exit(3)
    if kind == 3:
        while True:
            time.sleep(0.1)
    if kind == 4:
        raise cbob.Infeasible("load")
    return bowl(params)


def test_the_best_feasible_point_is_found(tmp_path: Path) -> None:
    result = cbob.minimize(bowl, SPACE, constraints=["load <= 0.2"], budget=25, isolate=False, seed=2)
    assert result.params is not None and result.value is not None
    assert result.params["n"] == 0
    assert result.params["x"] <= 0.2 and result.value == pytest.approx(0.01, abs=0.003)
    assert len(result.trials) == result.standing.finished == 25
    assert result.study.best_trial.number == result.best.number  # type: ignore[union-attr]


def test_maximising_is_minimising_upside_down() -> None:
    result = cbob.minimize(lambda p: -((p["x"] - 0.4) ** 2), {"x": Float(0, 1)}, direction="maximize", budget=15, isolate=False)
    assert result.params is not None and result.params["x"] == pytest.approx(0.4, abs=0.05)


def test_each_way_to_fail_is_stored_with_its_kind_and_the_study_goes_on() -> None:
    result = cbob.minimize(
        troublesome,
        SPACE,
        constraints=["load <= 1"],
        budget=24,
        workers=2,
        limits=Limits(seconds=0.4, grace=0.1),
        strategy="sobol",
    )
    kinds = {record.params["n"]: record.kind for record in result.trials if record.params["n"] < 4}
    assert kinds == {0: "exception", 1: "nan", 2: "exit", 3: "timeout"}
    assert {record.status for record in result.trials if record.params["n"] == 4} == {"infeasible"}
    assert {record.status for record in result.trials if record.params["n"] > 4} == {"feasible"}
    (logged, *_) = [record for record in result.trials if record.params["n"] == 0]
    assert "ValueError: no such mesh" in logged.log


def test_the_same_call_again_goes_on_where_it_ended(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    first = cbob.minimize(bowl, SPACE, budget=4, storage=storage, name="one", **QUICK)
    again = cbob.minimize(bowl, SPACE, budget=4, storage=storage, name="one", **QUICK)
    assert again.trials == first.trials
    more = cbob.minimize(bowl, SPACE, budget=7, storage=storage, name="one", **QUICK)
    assert more.trials[:4] == first.trials and len(more.trials) == 7
    whole = cbob.minimize(bowl, SPACE, budget=7, **QUICK)
    assert [record.params for record in whole.trials] == [record.params for record in more.trials]


def test_several_studies_share_a_file(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    for name in ("one", "two"):
        assert len(cbob.minimize(bowl, SPACE, budget=3, storage=storage, name=name, **QUICK).trials) == 3


def test_workers_evaluate_at_the_same_time() -> None:
    def nap(params: dict[str, Any]) -> float:
        time.sleep(0.3)
        return float(params["x"])

    start = time.monotonic()
    cbob.minimize(nap, SPACE, budget=8, workers=8, **QUICK)
    assert time.monotonic() - start < 8 * 0.3


def test_no_feasible_point_is_a_result_too() -> None:
    result = cbob.minimize(bowl, SPACE, constraints=["load <= -1"], budget=4, **QUICK)
    assert (result.best, result.params, result.value) == (None, None, None)


def test_a_command_is_evaluated() -> None:
    code = "import json, sys; x = float(sys.argv[1]); print('working'); print(json.dumps({'value': x, 'load': x}))"
    result = cbob.minimize(
        [sys.executable, "-c", code.replace("{", "{{").replace("}", "}}"), "{x}"],
        SPACE,
        constraints=["load <= 1"],
        budget=3,
        strategy="sobol",
    )
    assert [record.value for record in result.trials] == [record.params["x"] for record in result.trials]


def test_what_cannot_be_loaded_ends_the_study_and_uses_up_no_budget(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    with pytest.raises(StudyError, match="nothing can be evaluated: 'no_such_module:land' cannot be loaded"):
        cbob.minimize("no_such_module:land", SPACE, budget=5, storage=storage, name="one", strategy="sobol")
    result = cbob.minimize(bowl, SPACE, budget=5, storage=storage, name="one", **QUICK)
    assert result.standing.finished == 5


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"budget": 0}, StudyError, "budget must be a whole number from 1, not 0"),
        ({"workers": 1.5}, StudyError, "workers must be a whole number from 1, not 1.5"),
        ({"retries": -1}, StudyError, "retries must be a whole number from 0"),
        ({"seed": -1}, StudyError, "seed must be a whole number from 0"),
        ({"direction": "down"}, StudyError, "direction must be"),
        ({"name": " "}, StudyError, "the name of a study must be a non-empty text"),
        ({"isolate": "yes"}, StudyError, "isolate must be True or False"),
        ({"space": {}}, SpaceError, "at least one parameter"),
        ({"strategy": "best"}, StrategyError, "best"),
        ({"isolate": False, "limits": Limits(seconds=1)}, LimitsError, "leave out isolate=False"),
        ({"isolate": False, "ray": "local"}, StudyError, "leave out isolate=False"),
        ({"storage": "study.db"}, StudyError, "storage must be a URL"),
    ],
)
def test_bad_options_are_refused_before_anything_is_evaluated(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    def never(params: dict[str, Any]) -> float:
        raise AssertionError("it was evaluated")

    with pytest.raises(error, match=words):
        cbob.minimize(never, **({"space": SPACE, "budget": 1, "isolate": False} | options))


def test_without_the_extra_it_is_said_how_to_get_it() -> None:
    code = (
        "import sys, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'optuna' else real(name, *a)\n"
        "import cbob\n"
        "try: cbob.minimize(abs, {'x': cbob.Float(0, 1)})\n"
        "except ImportError as error: print(error)\n"
        "print('optuna' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == ["studies need optuna: pip install 'cbob[study]'", "False"]
