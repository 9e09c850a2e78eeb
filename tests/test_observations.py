"""Datasets: the arrays that models read."""

import math
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from cbob.constraints import RAN, as_constraints
from cbob.errors import StrategyError, TrialError
from cbob.observations import Dataset, dataset, direction_sign
from cbob.space import Categorical, Float, Space
from cbob.trials import Trial, conclude

SPACE = Space({"x": Float(0, 10), "c": Categorical(["a", "b"])})
LIMITS = as_constraints(["size <= 50", "accuracy >= 0.9"])
NAN = math.nan


def trial(id: int, value: float | None = None, **how: Any) -> Trial:
    return conclude(Trial(id, {"x": float(id), "c": "ab"[id % 2]}), LIMITS, value, **how)


EXPLAINED = [
    trial(0, 5.0, readings={"size": 40, "accuracy": 1.0}),
    trial(1, 3.0, readings={"size": 60, "accuracy": 0.8}),
    trial(2, violated="size", readings={"accuracy": 0.95}),
    trial(3, 4.0, satisfied=["size", "accuracy"]),
    trial(4, 1.0, readings={"size": 10}),
    Trial(5, {"x": 5.0, "c": "b"}),
    trial(6, failed="crashed", violated=["accuracy"]),
]
CRASHED = trial(7, failed="out of memory")


def test_a_dataset_holds_what_was_told_in_the_units_of_the_model() -> None:
    data = dataset(EXPLAINED, SPACE, LIMITS, "minimize")
    assert len(data) == 6
    assert data.names == ("size", "accuracy")
    np.testing.assert_array_equal(data.rows, [[0.0, 1, 0], [0.1, 0, 1], [0.2, 1, 0], [0.3, 0, 1], [0.4, 1, 0], [0.6, 1, 0]])
    np.testing.assert_array_equal(data.objective, [5, 3, NAN, 4, 1, NAN])
    expected = [[-10, -0.1], [10, 0.1], [NAN, -0.05], [NAN, NAN], [-40, NAN], [NAN, NAN]]
    np.testing.assert_allclose(data.margins, expected, atol=1e-15)
    np.testing.assert_array_equal(data.signs, [[0, 0], [0, 0], [1, 0], [-1, -1], [0, 0], [0, 1]])
    assert data.feasible.tolist() == [True, False, False, True, False, False]
    assert [array.dtype for array in (data.objective, data.signs, data.feasible)] == [float, np.int8, bool]


def test_maximizing_flips_the_objective_and_nothing_else() -> None:
    low, high = (dataset(EXPLAINED, SPACE, LIMITS, direction) for direction in ("minimize", "maximize"))
    np.testing.assert_array_equal(high.objective, -low.objective)
    for part in ("rows", "margins", "signs", "feasible"):
        np.testing.assert_array_equal(getattr(high, part), getattr(low, part))
    assert low.best == (3, 4.0)
    assert high.best == (0, -5.0)


def test_an_unexplained_failure_adds_the_learned_constraint() -> None:
    late = [trial(8, 0.0, satisfied="size"), trial(9, 1.0, failed=True, violated="size")]
    data = dataset([*EXPLAINED, CRASHED, *late], SPACE, LIMITS)
    assert data.names == ("size", "accuracy", RAN)
    assert np.isnan(data.margins[:, -1]).all()
    # ran, ran though infeasible, no value, ran, ran though undecided, an explained failure without a value;
    # the unexplained one; ran with the value 0, an explained failure with a value
    assert data.signs[:, -1].tolist() == [-1, -1, 0, -1, -1, 0, 1, -1, 0]
    before = dataset(EXPLAINED, SPACE, LIMITS)
    np.testing.assert_array_equal(data.margins[:6, :-1], before.margins)
    np.testing.assert_array_equal(data.signs[:6, :-1], before.signs)


def test_a_value_with_a_lost_reading_did_not_run_well() -> None:
    data = dataset([trial(0, 2.0, readings={"size": NAN, "accuracy": 1.0})], SPACE, LIMITS)
    assert data.names[-1] == RAN and data.signs[0].tolist() == [0, 0, 1]
    assert data.objective.tolist() == [2.0] and not data.feasible[0]


def test_trials_are_in_order_of_id_however_they_come() -> None:
    data = dataset(reversed([*EXPLAINED, CRASHED]), SPACE, LIMITS)
    np.testing.assert_array_equal(data.rows, dataset([*EXPLAINED, CRASHED], SPACE, LIMITS).rows)


def test_known_rows_are_taken_as_they_are() -> None:
    rows = {one.id: np.array([0.5, 1.0, 0.0]) for one in EXPLAINED}
    data = dataset(EXPLAINED, SPACE, LIMITS, rows=rows)
    np.testing.assert_array_equal(data.rows, [[0.5, 1.0, 0.0]] * 6)


def test_without_told_trials_all_shapes_are_there() -> None:
    for constraints in (LIMITS, ()):
        data = dataset(EXPLAINED[5:6], SPACE, constraints)
        assert data.rows.shape == (0, 3) and data.margins.shape == data.signs.shape == (0, len(constraints))
        assert data.best is None


def test_the_best_is_feasible_and_the_earliest_of_equals() -> None:
    assert dataset(EXPLAINED[1:3], SPACE, LIMITS).best is None
    equal = [trial(i, 2.0, satisfied=["size", "accuracy"]) for i in (4, 2, 9)]
    assert dataset(equal, SPACE, LIMITS).best == (0, 2.0)


def test_margins_that_overflow_stay_finite() -> None:
    limits = as_constraints(["size <= -1.7e308"])
    told = conclude(Trial(0, {"x": 1.0, "c": "a"}), limits, 1e308, readings={"size": 1.7e308})
    data = dataset([told], SPACE, limits, "maximize")
    assert np.isfinite(data.margins).all() and data.objective[0] == -1e308


def test_an_unknown_direction_is_refused() -> None:
    assert (direction_sign("minimize"), direction_sign("maximize")) == (1.0, -1.0)
    with pytest.raises(StrategyError, match=r"direction must be 'minimize' or 'maximize', not 'max' \(str\)"):
        dataset(EXPLAINED, SPACE, LIMITS, "max")


def arrays(**change: Any) -> dict[str, Any]:
    parts = {
        "rows": [[0.0, 1.0], [0.5, 0.5]],
        "objective": [1.0, NAN],
        "margins": [[-1.0], [NAN]],
        "signs": [[0], [1]],
        "feasible": [True, False],
        "names": ("size",),
    }
    return parts | change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": [1.0]}, r"objective of 2 rows must have shape \(2,\), not \(1,\)"),
        ({"names": ("a", "b")}, r"margins of 2 rows must have shape \(2, 2\), not \(2, 1\)"),
        ({"signs": [0, 1]}, r"signs of 2 rows must have shape \(2, 1\), not \(2,\)"),
        ({"rows": [0.0, 1.0]}, "rows must be a 2-D array inside the unit cube"),
        ({"rows": [[0.0, 1.5], [0.0, 0.0]]}, "rows must be a 2-D array inside the unit cube"),
        ({"rows": [[0.0, NAN], [0.0, 0.0]]}, "rows must be a 2-D array inside the unit cube"),
        ({"objective": [math.inf, 0.0]}, "objective and margins must be finite"),
        ({"margins": [[-math.inf], [NAN]]}, "objective and margins must be finite"),
        ({"signs": [[-1], [1]]}, "signs must be .* 0 where there is a margin"),
        ({"signs": [[0], [2]]}, r"signs must be \+1, -1 or 0"),
        ({"feasible": [True, True]}, "a feasible row needs an objective"),
    ],
)
def test_a_dataset_checks_itself(change: dict[str, Any], message: str) -> None:
    Dataset(**arrays())
    with pytest.raises(TrialError, match=message):
        Dataset(**arrays(**change))


def test_a_dataset_is_frozen_and_keeps_no_hold_of_its_arguments() -> None:
    rows = np.array([[0.0, 1.0], [0.5, 0.5]])
    data = Dataset(**arrays(rows=rows))
    rows[0, 0] = 0.7
    assert data.rows[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        data.rows[0, 0] = 0.7
    with pytest.raises(FrozenInstanceError):
        data.names = ()
