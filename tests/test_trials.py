"""Readings and trials as data: they check themselves, and survive being stored."""

import copy
import json
import math
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from cbob.constraints import Constraint, as_constraints
from cbob.errors import CbobError, StateError, TrialError
from cbob.trials import SATISFIED, UNKNOWN, VIOLATED, Kind, Reading, Status, Trial, conclude

LIMITS = as_constraints(["size <= 50000", "accuracy >= 0.9"])
FRESH = Trial(3, {"rate": 0.1, "solver": "sgd"})


def told(value: Any = None, **how: Any) -> Trial:
    return conclude(FRESH, LIMITS, value, **how)


def test_a_reading_is_what_it_is_made_of() -> None:
    assert Reading.of(0.5) == Reading.of(np.float32(0.5)) == Reading.measured(0.5) == Reading(Kind.VALUE, 0.5)
    assert Reading.of("violated") is Reading.of(Kind.VIOLATED) is VIOLATED
    assert Reading.of("satisfied") is SATISFIED
    for nothing in (None, "unknown", Kind.UNKNOWN, math.nan, math.inf, -math.inf, np.nan, 10**400):
        assert Reading.of(nothing) is UNKNOWN
    assert Reading.of(VIOLATED) is VIOLATED
    assert type(Reading.of(np.float64(1)).value) is float


@pytest.mark.parametrize("given", ["broken", "value", Kind.VALUE, True, 1j, [0.5], np.array([1.0, 2.0])])
def test_what_is_no_reading_is_refused(given: Any) -> None:
    with pytest.raises(TrialError, match="reading 'size' must be a"):
        Reading.of(given, "reading 'size'")


@pytest.mark.parametrize("arguments", [(Kind.VALUE,), (Kind.VALUE, math.nan), (Kind.UNKNOWN, 0.0), ("value", 1.0)])
def test_a_reading_checks_itself(arguments: Any) -> None:
    with pytest.raises(TrialError):
        Reading(*arguments)


def test_only_a_value_or_a_claim_knows_whether_the_constraint_holds() -> None:
    limit = Constraint("size", 10)
    readings = [Reading.measured(10), Reading.measured(11), SATISFIED, VIOLATED, UNKNOWN]
    assert [reading.holds(limit) for reading in readings] == [True, False, True, False, None]


def every_kind_of_trial() -> list[Trial]:
    return [
        FRESH,
        told(0.28, readings={"size": 41000, "accuracy": 0.93}),
        told(violated="size", readings={"accuracy": 0.93}),
        told(failed="out of memory", satisfied="size"),
        told(0.1 + 0.2, readings={"size": -1e-300}),
        told(-math.inf, readings={"accuracy": math.nan}),
    ]


def test_a_trial_survives_json_pickle_and_copy() -> None:
    for trial in every_kind_of_trial():
        record = json.loads(json.dumps(trial.to_dict(), allow_nan=False))
        assert record == trial.to_dict()
        assert Trial.from_dict(record) == trial
        assert pickle.loads(pickle.dumps(trial)) == copy.deepcopy(trial) == trial
        assert len({trial, copy.copy(trial)}) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"status": "done"},
        {"readings": None},
        {"readings": {"size": "big"}},
        {"extra": 1},
        {"value": "x"},
        {"id": -1},
    ],
)
def test_a_record_that_is_no_trial_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(StateError, match="not a stored trial: "):
        Trial.from_dict(told(0.28).to_dict() | change)


def test_a_record_without_a_field_or_of_another_type_is_refused() -> None:
    for record in ({}, [], "trial", {"id": 1, "readings": {}}):
        with pytest.raises(StateError, match="not a stored trial"):
            Trial.from_dict(record)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": True}, "the id of a trial must be an int from 0, not True"),
        ({"id": -1}, "the id of a trial must be an int from 0, not -1"),
        ({"status": "feasible"}, "the status of trial 3 must be a Status"),
        ({"value": 1.0}, "trial 3 cannot be pending with value 1.0, 0 readings and failure None"),
        ({"readings": {"size": VIOLATED}}, "trial 3 cannot be pending with value None, 1 readings"),
        ({"status": Status.FEASIBLE}, "trial 3 cannot be feasible with value None"),
        ({"status": Status.UNDECIDED, "value": 1.0, "failure": "x"}, "trial 3 cannot be undecided with"),
        ({"status": Status.FAILED, "value": 1.0}, "trial 3 cannot be failed with value 1.0"),
        (
            {"status": Status.INFEASIBLE, "value": math.nan},
            "the objective of trial 3 must be finite, not nan",
        ),
        (
            {"status": Status.INFEASIBLE, "readings": {"size": 1.0}},
            "the readings of trial 3 must be Readings",
        ),
    ],
)
def test_a_trial_checks_itself(change: dict[str, Any], message: str) -> None:
    with pytest.raises(TrialError) as caught:
        replace(FRESH, **change)
    assert message in str(caught.value)


def test_a_trial_is_frozen_and_keeps_no_hold_of_its_arguments() -> None:
    params, readings = {"x": 1.0}, {"size": 1.0}
    trial = conclude(Trial(0, params), LIMITS, 0.5, readings=readings)
    params["x"], readings["size"] = 2.0, 9e9
    assert trial.params == {"x": 1.0} and trial.readings["size"] == Reading.measured(1.0)
    with pytest.raises(TypeError):
        trial.params["x"] = 3.0
    with pytest.raises(FrozenInstanceError):
        trial.value = 0.0


def test_a_trial_error_is_a_value_error_of_cbob() -> None:
    assert issubclass(TrialError, ValueError) and issubclass(TrialError, CbobError)
