"""Constraints: reading and writing them, and the exact sign of their margins."""

import json
import math
import sys
from typing import Any

import numpy as np
import pytest

from cbob.constraints import RAN, Constraint, as_constraint, as_constraints
from cbob.errors import CbobError, ConstraintError

HUGE = sys.float_info.max
TINY = 5e-324
NUMBERS = [0.0, -0.0, TINY, -TINY, 2.5e-308, 1.0, math.nextafter(1.0, 2.0), -1e-300, 1e300, HUGE, -HUGE]


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("fuel <= 40", Constraint("fuel", 40.0)),
        ("accuracy >= 0.9", Constraint("accuracy", 0.9, ">=")),
        ("  fuel<=-4.0e1 ", Constraint("fuel", -40.0)),
        ("peak power-2.max_W >= +1e-300", Constraint("peak power-2.max_W", 1e-300, ">=")),
        ("größe <= 1", Constraint("größe", 1.0)),
        ("0 <= 0", Constraint("0", 0.0)),
    ],
)
def test_a_text_becomes_a_constraint(text: str, constraint: Constraint) -> None:
    assert Constraint.parse(text) == as_constraint(text) == constraint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "fuel < 40",
            """expected "name <= number" or "name >= number", but 'fuel < 40' has '<' at character 6""",
        ),
        ("fuel > 40", "has '>' at character 6"),
        ("fuel == 40", "has '==' at character 6"),
        ("fuel = 40", "has '=' at character 6"),
        ("fuel != 40", "has '!=' at character 6"),
        ("fuel =< 40", "has '=<' at character 6"),
        ("fuel ≤ 40", "has '≤' at character 6"),
        ("fuel 40", "'fuel 40' has no comparison"),
        ("", "'' has no comparison"),
        ("fuel <=", "expected a number after '<=', but 'fuel <=' has nothing"),
        ("fuel <= forty", "expected a number after '<=', but 'fuel <= forty' has 'forty' after character 7"),
        ("0 <= fuel <= 40", "expected a number after '<=', but '0 <= fuel <= 40' has 'fuel <= 40'"),
        ("40 >= fuel", "expected a number after '>=', but '40 >= fuel' has 'fuel' after character 5"),
        ("fuel <= nan", "the limit of constraint 'fuel' must be finite, not nan (float), in 'fuel <= nan'"),
        (
            "fuel >= -inf",
            "the limit of constraint 'fuel' must be finite, not -inf (float), in 'fuel >= -inf'",
        ),
        ("fuel <= 1e999", "the limit of constraint 'fuel' must be finite"),
        ("<= 40", "the name of a constraint is made of letters, digits"),
        ("a/b <= 40", "the name of a constraint is made of letters, digits"),
        ("it ran <= 0", "'it ran' is reserved for the constraint that is learned from failures"),
    ],
)
def test_a_text_that_is_none_is_refused_with_what_came_and_where(text: str, message: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        Constraint.parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", 1.0), "the name of a constraint is made of"),
        ((" fuel", 1.0), "the name of a constraint is made of"),
        (("fuel\n", 1.0), "the name of a constraint is made of"),
        ((3, 1.0), "not 3 (int)"),
        ((RAN, 1.0), "'it ran' is reserved"),
        (("fuel", "40"), "the limit of constraint 'fuel' must be a real number, not '40' (str)"),
        (("fuel", True), "the limit of constraint 'fuel' must be a real number, not True (bool)"),
        (("fuel", math.nan), "the limit of constraint 'fuel' must be finite, not nan"),
        (("fuel", 10**400), "the limit of constraint 'fuel' must be finite"),
        (("fuel", 1.0, "<"), "constraint 'fuel': expected '<=' or '>=', not '<' (str)"),
        (("fuel", 1.0, None), "constraint 'fuel': expected '<=' or '>=', not None (NoneType)"),
    ],
)
def test_a_bad_constraint_is_refused_with_what_came(arguments: Any, message: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        Constraint(*arguments)
    assert message in str(caught.value)


def test_writing_and_reading_again_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    for sense in ("<=", ">="):
        for limit in [*NUMBERS, *(rng.normal(size=200) * 10.0 ** rng.uniform(-300, 300, 200)).tolist()]:
            one = Constraint("peak  power", limit, sense)
            assert Constraint.parse(str(one)) == one
            assert Constraint.parse(json.loads(json.dumps(str(one)))).limit == limit
    assert str(Constraint("fuel", 40)) == "fuel <= 40.0"


@pytest.mark.parametrize("sense", ["<=", ">="])
@pytest.mark.parametrize("limit", NUMBERS)
def test_the_sign_of_a_margin_is_the_exact_comparison(limit: float, sense: str) -> None:
    one = Constraint("c", limit, sense)
    for reading in [*NUMBERS, math.nextafter(limit, math.inf), math.nextafter(limit, -math.inf)]:
        if math.isinf(reading):
            continue
        holds = reading <= limit if sense == "<=" else reading >= limit
        margin = one.margin(reading)
        assert one.holds(reading) is holds
        assert (margin <= 0) is holds
        assert (margin == 0) is (reading == limit)
        assert abs(margin) <= HUGE


def test_a_margin_is_the_distance_beyond_the_limit() -> None:
    assert Constraint("c", 40).margin(41.5) == 1.5
    assert Constraint("c", 40, ">=").margin(41.5) == -1.5
    assert Constraint("c", -HUGE).margin(HUGE) == HUGE
    assert Constraint("c", -HUGE, ">=").margin(HUGE) == -HUGE


def test_numpy_readings_overflow_without_a_warning() -> None:
    margin = Constraint("c", -HUGE).margin(np.float64(HUGE))
    assert (type(margin), margin) == (float, HUGE)
    assert Constraint("c", HUGE).reading_of(np.float64(HUGE)) == HUGE


def test_infinite_readings_have_huge_margins_and_nan_does_not_hold() -> None:
    assert Constraint("c", 0).margin(math.inf) == HUGE
    assert Constraint("c", 0).margin(-math.inf) == -HUGE
    assert math.isnan(Constraint("c", 0).margin(math.nan))
    assert not Constraint("c", 0).holds(math.nan)


@pytest.mark.parametrize("sense", ["<=", ">="])
def test_reading_of_undoes_margin(sense: str) -> None:
    rng = np.random.default_rng(1)
    for limit, reading in rng.normal(size=(200, 2)) * 10.0 ** rng.uniform(-200, 200, (200, 1)):
        one = Constraint("c", limit, sense)
        assert one.reading_of(one.margin(reading)) == pytest.approx(reading, abs=2 * math.ulp(limit), rel=1e-15)


def test_several_constraints_come_as_texts_objects_or_a_single_one() -> None:
    fuel, wear = Constraint("fuel", 40), Constraint("wear", 1, ">=")
    assert as_constraints(["fuel <= 40", wear]) == (fuel, wear)
    assert as_constraints("fuel <= 40") == as_constraints(fuel) == (fuel,)
    assert as_constraints(iter([fuel])) == (fuel,)
    assert as_constraints(()) == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["fuel <= 40", "fuel >= 3"], "constraints need different names, but 'fuel' comes more than once"),
        ([40], "not 40 (int)"),
        (40, "constraints must be a list of texts"),
        (None, "constraints must be a list of texts"),
    ],
)
def test_bad_lists_of_constraints_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        as_constraints(given)
    assert message in str(caught.value)


def test_a_constraint_error_is_a_value_error_of_cbob() -> None:
    assert issubclass(ConstraintError, ValueError) and issubclass(ConstraintError, CbobError)
