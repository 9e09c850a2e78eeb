"""`import cbob`: the public names, there when they are used and not before."""

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cbob

ENGINE = {
    "Optimizer": "cbob.optimizer",
    "Prediction": "cbob.optimizer",
    "Space": "cbob.space",
    "Float": "cbob.space",
    "Int": "cbob.space",
    "Categorical": "cbob.space",
    "Constraint": "cbob.constraints",
    "Trial": "cbob.trials",
    "Reading": "cbob.trials",
    "Kind": "cbob.trials",
    "Status": "cbob.trials",
    "CbobError": "cbob.errors",
    "SpaceError": "cbob.errors",
    "ConstraintError": "cbob.errors",
    "TrialError": "cbob.errors",
    "StrategyError": "cbob.errors",
    "StateError": "cbob.errors",
    "LimitsError": "cbob.errors",
    "TargetError": "cbob.errors",
    "Infeasible": "cbob.errors",
    "Limits": "cbob.study.limits",
}


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_cbob_loads_no_library() -> None:
    libraries = "{'numpy', 'scipy', 'threadpoolctl', 'matplotlib'}"
    assert run(f"import sys, cbob; print({libraries} & set(sys.modules))") == "set()"


def test_using_a_name_loads_its_room_and_not_the_whole_house() -> None:
    code = "import sys, cbob; cbob.Space, cbob.Constraint; print('cbob.space' in sys.modules, *{seen})"
    seen = "[room for room in ('cbob.models', 'cbob.optimizer', 'scipy') if room in sys.modules]"
    assert run(code.format(seen=seen)) == "True"


@pytest.mark.parametrize("name", ENGINE)
def test_a_public_name_is_the_one_of_its_room(name: str) -> None:
    assert getattr(cbob, name) is getattr(importlib.import_module(ENGINE[name]), name)
    assert name in cbob.__all__


def test_all_names_can_be_used_and_are_listed() -> None:
    assert sorted(set(cbob.__all__)) == sorted(cbob.__all__)
    for name in cbob.__all__:
        assert getattr(cbob, name) is not None
        assert name in dir(cbob)
    assert "__version__" in dir(cbob)


def test_from_cbob_import_star_gives_the_public_names() -> None:
    assert run("from cbob import *; print(Optimizer.__name__, Float(0, 1).high, strategies.__name__)") == (
        "Optimizer 1.0 cbob.strategies"
    )


def test_rooms_are_reached_through_the_package() -> None:
    code = "import cbob; print({})"
    assert run(code.format("cbob.models.ep.expectation_propagation([0.0], [[1.0]], [1]).converged")) == "True"
    assert run(code.format("cbob.models.HLGP().fit([[0.5]], [0.1]).predict([[0.5]])[0].shape")) == "(1,)"
    assert run(code.format("sorted(cbob.strategies.STRATEGIES)[0]")) == "auto"
    assert run(code.format("cbob.acquisition.__name__")) == "cbob.acquisition"


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="module 'cbob' has no attribute 'Optimiser'"):
        _ = cbob.Optimiser
    assert not hasattr(cbob, "nothing")
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from cbob import nothing")


def test_every_error_is_a_cbob_error_and_a_value_error() -> None:
    for name in (name for name in ENGINE if name.endswith("Error") and name != "CbobError"):
        error = getattr(cbob, name)
        assert issubclass(error, cbob.CbobError)
        assert issubclass(error, ValueError)


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert cbob.__version__ == project["project"]["version"]
