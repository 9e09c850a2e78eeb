"""Every way of telling: what it concludes, and what it refuses."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from cbob.constraints import as_constraints
from cbob.errors import TrialError
from cbob.trials import SATISFIED, UNKNOWN, VIOLATED, Kind, Reading, Status, Trial, conclude

LIMITS = as_constraints(["size <= 50000", "accuracy >= 0.9"])
FRESH = Trial(3, {"rate": 0.1, "solver": "sgd"})


def told(value: Any = None, **how: Any) -> Trial:
    return conclude(FRESH, LIMITS, value, **how)


def refused(value: Any = None, **how: Any) -> str:
    with pytest.raises(TrialError) as caught:
        told(value, **how)
    assert Trial(3, {"rate": 0.1, "solver": "sgd"}) == FRESH
    return str(caught.value)


def test_everything_measured_and_kept_is_feasible() -> None:
    trial = told(0.28, readings={"size": 41000, "accuracy": 0.93})
    assert trial.status is Status.FEASIBLE
    assert trial.feasible and trial.told and trial.ran and not trial.unexplained
    assert trial.value == 0.28
    assert trial.readings == {"size": Reading.measured(41000), "accuracy": Reading.measured(0.93)}
    assert (trial.id, trial.params) == (FRESH.id, FRESH.params)


def test_a_broken_reading_without_an_objective_is_infeasible_not_failed() -> None:
    trial = told(readings={"size": 61000})
    assert (trial.status, trial.value, trial.failure) == (Status.INFEASIBLE, None, None)
    assert trial.readings["accuracy"] is UNKNOWN


def test_a_limit_that_broke_unmeasured_is_violated() -> None:
    trial = told(violated=["size"], readings={"accuracy": 0.95})
    assert trial.status is Status.INFEASIBLE
    assert trial.readings == {"size": VIOLATED, "accuracy": Reading.measured(0.95)}


def test_a_failure_of_unknown_cause_is_unexplained() -> None:
    trial = told(failed="out of memory")
    assert (trial.status, trial.failure, trial.unexplained) == (Status.FAILED, "out of memory", True)
    assert set(trial.readings.values()) == {UNKNOWN}


def test_a_broken_limit_explains_a_failure() -> None:
    trial = told(failed="out of memory", violated="size")
    assert (trial.status, trial.failure, trial.unexplained) == (Status.INFEASIBLE, "out of memory", False)


def test_a_value_with_an_unknown_constraint_is_undecided_never_feasible() -> None:
    for how in ({}, {"readings": {"size": 1.0}}, {"satisfied": "size"}, {"readings": {"size": None}}):
        trial = told(0.28, **how)
        assert (trial.status, trial.feasible) == (Status.UNDECIDED, False)


def test_without_constraints_a_value_is_feasible() -> None:
    assert conclude(FRESH, (), 1.0).feasible


def test_an_infeasible_trial_keeps_the_objective_it_was_told() -> None:
    trial = told(0.28, readings={"size": 61000})
    assert (trial.status, trial.value, trial.ran) == (Status.INFEASIBLE, 0.28, True)


def test_kept_limits_without_an_objective_are_a_failure() -> None:
    for how in ({"readings": {"size": 1.0}}, {"satisfied": ["size", "accuracy"]}):
        trial = told(**how)
        assert (trial.status, trial.failure) == (Status.FAILED, "no objective was returned")


@pytest.mark.parametrize(
    ("value", "reason"),
    [(math.nan, "objective is nan"), (-math.inf, "objective is -inf"), (10**400, "objective is inf")],
)
def test_an_objective_that_is_no_number_failed(value: float, reason: str) -> None:
    trial = told(value, readings={"size": 1, "accuracy": 1})
    assert (trial.status, trial.value, trial.failure) == (Status.FAILED, None, reason)


@pytest.mark.parametrize(("reading", "shown"), [(math.nan, "nan"), (np.float32("inf"), "inf"), (-(10**400), "-inf")])
def test_a_reading_that_is_no_number_failed(reading: Any, shown: str) -> None:
    trial = told(0.28, readings={"size": reading, "accuracy": 0.95})
    assert (trial.status, trial.value) == (Status.FAILED, 0.28)
    assert trial.failure == f"reading 'size' is {shown}"
    assert trial.readings["size"] is UNKNOWN


def test_reasons_of_a_failure_add_up() -> None:
    trial = told(math.nan, readings={"size": math.nan, "accuracy": math.inf}, failed="diverged")
    assert trial.failure == "diverged; objective is nan; reading 'size' is nan; reading 'accuracy' is inf"


@pytest.mark.parametrize(("failed", "failure"), [(True, "failed"), ("", "failed"), (False, None), (None, None)])
def test_failed_takes_a_flag_or_a_reason(failed: Any, failure: str | None) -> None:
    assert told(0.28, failed=failed).failure == failure


def test_a_claim_about_a_lost_reading_counts() -> None:
    assert told(violated="size", readings={"size": math.nan}).readings["size"] is VIOLATED
    assert told(0.1, satisfied="size", readings={"size": None}).readings["size"] is SATISFIED


def test_a_claim_that_agrees_with_the_reading_keeps_the_value() -> None:
    trial = told(violated=["size"], satisfied=["accuracy"], readings={"size": 61000, "accuracy": "satisfied"})
    assert trial.readings == {"size": Reading.measured(61000), "accuracy": SATISFIED}


def test_readings_may_be_given_as_kinds() -> None:
    trial = told(readings={"size": "violated", "accuracy": Kind.SATISFIED})
    assert trial.readings == {"size": VIOLATED, "accuracy": SATISFIED}


@pytest.mark.parametrize("value", [np.float32(0.5), np.array(0.5), np.array([[0.5]]), np.int64(2), 2])
def test_numpy_scalars_are_numbers(value: Any) -> None:
    trial = told(value, readings={"size": value, "accuracy": 0.95})
    assert (type(trial.value), trial.value) == (float, float(np.asarray(value).item()))
    assert trial.readings["size"] == Reading.measured(float(np.asarray(value).item()))


READINGS = (None, math.nan, 1.0, 2.0, "violated", "satisfied", "unknown")  # limit 1.5: 1.0 holds, 2.0 breaks


@pytest.mark.parametrize("failed", [None, True])
@pytest.mark.parametrize("value", [None, 0.5, math.nan])
def test_every_way_of_telling_follows_the_rules(value: float | None, failed: bool | None) -> None:
    """The rules once more, as a table over all combinations for two constraints."""
    limits = as_constraints(["a <= 1.5", "b <= 1.5"])
    says = {1.0: True, "satisfied": True, 2.0: False, "violated": False}

    def holds(reading: Any, claim: str | None) -> bool | None:
        return says.get(reading, says.get(claim) if claim else None)

    for a, b, claim in product(READINGS, READINGS, ("violated", "satisfied", None)):
        how: dict[str, Any] = {"readings": {"a": a, "b": b}, "failed": failed}
        if claim:
            how[claim] = ["a"]
        contradicts = claim and says.get(a, says[claim]) != says[claim]
        holding = [holds(a, claim), holds(b, None)]
        lost = any(isinstance(x, float) and math.isnan(x) for x in (value, a, b))
        nothing = value is None and not failed and not lost and holding == [None, None]
        if contradicts or nothing:
            with pytest.raises(TrialError):
                conclude(FRESH, limits, value, **how)
            continue
        trial = conclude(FRESH, limits, value, **how)
        wrong = bool(failed) or lost or (value is None and False not in holding)
        if False in holding:
            expected = Status.INFEASIBLE
        elif wrong:
            expected = Status.FAILED
        elif None in holding:
            expected = Status.UNDECIDED
        else:
            expected = Status.FEASIBLE
        assert trial.status is expected, how
        assert (trial.failure is not None) is wrong, how
        assert trial.unexplained is (wrong and False not in holding)
        assert trial.value == (value if value == 0.5 else None)
        assert [trial.readings[c.name].holds(c) for c in limits] == holding


# Refusals


def test_telling_nothing_shows_the_four_ways() -> None:
    for how in ({}, {"failed": False}, {"readings": {"size": None}}, {"readings": {}, "violated": []}):
        message = refused(**how)
        assert "nothing was told about trial 3" in message
        for way in ("tell(trial, 0.28", 'constraints={"size": 61000}', 'violated=["size"]', 'failed="out of'):
            assert way in message


def test_telling_twice_is_refused() -> None:
    once = told(0.28)
    with pytest.raises(TrialError, match="trial 3 was told before: it is undecided"):
        conclude(once, LIMITS, 0.3)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"readings": {"siz": 1}}, "unknown constraint 'siz' in constraints; declared: 'size', 'accuracy'"),
        ({"violated": ["siz"]}, "unknown constraint 'siz' in violated"),
        ({"violated": [["size"]]}, "unknown constraint ['size'] in violated"),
        ({"satisfied": "it ran"}, "unknown constraint 'it ran' in satisfied"),
        ({"violated": 3}, "violated must be a list of the names of constraints, not 3 (int)"),
        ({"readings": [1, 2]}, "the readings of trial 3 must map names to numbers, not be [1, 2] (list)"),
        ({"violated": "size", "satisfied": ["size"]}, "'size' cannot be both violated and satisfied"),
        ({"failed": 1}, "failed must be True, False, a reason or an exception, not 1 (int)"),
        ({"readings": {"size": True}}, "reading 'size' of trial 3 must be a real number, not True (bool)"),
        ({"readings": {"size": "big"}}, "reading 'size' of trial 3 must be a number, 'violated'"),
    ],
)
def test_a_contradiction_in_terms_is_refused(how: dict[str, Any], message: str) -> None:
    assert message in refused(0.28, **how)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"violated": "size", "readings": {"size": 41000}},
            "'size' was told to be violated, but its reading 41000.0 keeps the limit 'size <= 50000.0'",
        ),
        (
            {"satisfied": ["accuracy"], "readings": {"accuracy": 0.5}},
            "'accuracy' was told to be satisfied, but its reading 0.5 breaks the limit 'accuracy >= 0.9'",
        ),
        (
            {"satisfied": ["size"], "readings": {"size": "violated"}},
            "'size' was told to be satisfied, but its reading violated breaks the limit",
        ),
    ],
)
def test_a_reading_that_contradicts_the_claim_is_refused(how: dict[str, Any], message: str) -> None:
    assert message in refused(0.28, **how)


@pytest.mark.parametrize("value", [True, np.True_, "0.28", 1j, [0.28], {}, np.array([1.0, 2.0]), np.array([])])
def test_an_objective_must_be_one_real_number(value: Any) -> None:
    assert "the objective of trial 3 must be a real number, not " in refused(value)


def test_without_constraints_an_unknown_name_says_so() -> None:
    with pytest.raises(TrialError, match="unknown constraint 'size' in violated; declared: none"):
        conclude(FRESH, (), 1.0, violated="size")


def test_names_are_a_list_and_not_a_mapping_whose_values_nobody_reads() -> None:
    with pytest.raises(TrialError, match="violated must be a list"):
        conclude(Trial(0, {}), LIMITS, violated={"size": False})  # type: ignore[arg-type]


def test_an_exception_is_a_reason() -> None:
    assert conclude(Trial(0, {}), LIMITS, failed=MemoryError("8 GiB")).failure == "MemoryError: 8 GiB"
    assert conclude(Trial(0, {}), LIMITS, failed=KeyError()).failure == "KeyError"
