"""Float, Int and Categorical: what they refuse, and how their values lie in the unit interval."""

import math
from collections import Counter
from typing import Any

import mpmath
import numpy as np
import pytest
from spaces import EXTREMES, TINY, resolution, spaces

from cbob.errors import SpaceError
from cbob.space import Categorical, Float, Int, Space, parameter_from_dict


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Float(math.nan, 1.0), "low of a Float must be finite, not nan"),
        (lambda: Float(0.0, math.inf), "high of a Float must be finite, not inf"),
        (lambda: Float(0.0, 10**400), "high of a Float must be finite"),
        (lambda: Float(1.0, 1.0), "Float needs low < high, not low = 1.0, high = 1.0"),
        (lambda: Float(2, 1), "Float needs low < high, not low = 2.0, high = 1.0"),
        (lambda: Float(0.0, 1.0, log=True), "Float with log = True needs low > 0, not low = 0.0"),
        (lambda: Float(False, 1.0), r"low of a Float must be a real number, not False \(bool\)"),
        (lambda: Float("0", 1.0), r"low of a Float must be a real number, not '0' \(str\)"),
        (lambda: Float(0.0, 1.0, log=1), r"log of Float must be True or False, not 1 \(int\)"),
        (lambda: Int(1.5, 3), r"low of an Int must be a whole number, not 1.5 \(float\)"),
        (lambda: Int(0, math.nan), "high of an Int must be a whole number, not nan"),
        (lambda: Int(0, math.inf), "high of an Int must be a whole number, not inf"),
        (lambda: Int(0, True), r"high of an Int must be a real number, not True \(bool\)"),
        (lambda: Int(0, 2**64), r"high of an Int must lie in -2\*\*63 .. 2\*\*63, not 18446744073709551616"),
        (lambda: Int(3, 3), "Int needs low < high, not low = 3, high = 3"),
        (lambda: Int(0, 9, log=True), "Int with log = True needs low > 0, not low = 0"),
        (lambda: Categorical([]), "needs a non-empty list of choices"),
        (lambda: Categorical("abc"), r"needs a non-empty list of choices, not 'abc' \(str\)"),
        (lambda: Categorical({"a", "b"}), "needs a non-empty list of choices"),
        (lambda: Categorical(["a", "b", "a"]), "choice 2 of a Categorical comes twice: 'a'"),
        (lambda: Categorical(["a", math.nan]), "choice 1 of a Categorical must be a str, a finite number"),
        (lambda: Categorical([(1, 2)]), r"choice 0 of a Categorical must be .* not \(1, 2\) \(tuple\)"),
    ],
)
def test_a_bad_parameter_is_refused_with_what_came(make: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        make()


def test_bounds_become_plain_python_numbers() -> None:
    one = Float(np.float32(0.5), np.int64(2))
    assert (type(one.low), type(one.high)) == (float, float)
    assert type(Int(np.int8(1), 4.0).low) is int and type(Int(1, 4.0).high) is int


def test_choices_are_told_apart_by_type_and_value() -> None:
    space = Space({"c": Categorical([1, 1.0, True, "1", None])})
    for choice in space.parameters["c"].choices:
        decoded = space.decode(space.encode({"c": choice}))["c"]
        assert (type(decoded), decoded) == (type(choice), choice)
    assert Categorical([1]) != Categorical([True])
    assert Categorical([1, 2]) != Categorical([2, 1])
    assert hash(Categorical([1, 2])) == hash(Categorical((1, 2)))


def test_a_numpy_array_of_choices_is_a_list_of_plain_ones() -> None:
    one = Categorical(np.array([16, 32]))
    assert one == Categorical([16, 32])
    assert Space({"c": one}).check({"c": np.int64(32)}) == {"c": 32}


def test_a_parameter_can_be_written_by_hand() -> None:
    assert parameter_from_dict({"type": "float", "low": 0, "high": 2}, "x") == Float(0, 2)
    assert parameter_from_dict({"type": "int", "low": 1, "high": 15, "log": True}, "x") == Int(1, 15, log=True)
    assert parameter_from_dict({"type": "categorical", "choices": ["a"]}, "x") == Categorical(["a"])


@pytest.mark.parametrize("record", [{}, {"type": "real"}, {"type": "int", "low": 1}, 3, {"type": [], "low": 1}])
def test_a_parameter_written_wrongly_is_named(record: Any) -> None:
    with pytest.raises(SpaceError, match=r"parameter 'thrust' must be written .* not "):
        parameter_from_dict(record, "thrust")


def test_a_bad_bound_in_a_record_names_its_parameter() -> None:
    with pytest.raises(SpaceError, match="parameter 'thrust': Int needs low < high, not low = 3, high = 3"):
        parameter_from_dict({"type": "int", "low": 3, "high": 3}, "thrust")


def test_one_ulp_beyond_a_float_bound_is_the_bound() -> None:
    space = Space({"x": Float(0.1, 0.3)})
    assert space.check({"x": math.nextafter(0.3, 1)}) == {"x": 0.3}
    assert space.check({"x": math.nextafter(0.1, 0)}) == {"x": 0.1}
    with pytest.raises(SpaceError, match="must lie in"):
        space.check({"x": 0.3 + 1e-9})


# The map, over random and extreme spaces


def test_decode_never_leaves_the_space() -> None:
    for space, rng in spaces():
        for row in rng.normal(0.5, 2.0, (40, space.width)):
            params = space.decode(row)
            assert space.check(params) == params
            assert all(type(value) in (float, int, str, bool, type(None)) for value in params.values())


def test_encode_after_decode_is_snap() -> None:
    for space, rng in spaces():
        rows = rng.random((60, space.width))
        again = np.array([space.encode(space.decode(row)) for row in rows])
        assert np.all(np.abs(again - space.snap(rows)) <= resolution(space)), space


def test_values_survive_the_round_trip() -> None:
    for space, rng in spaces():
        for row in rng.random((40, space.width)):
            params = space.decode(row)
            for name, value in space.decode(space.encode(params)).items():
                given, one = params[name], space.parameters[name]
                assert type(value) is type(given)
                if isinstance(one, Categorical):
                    assert value == given
                else:
                    scale = abs(given) if one.log else max(abs(one.low), abs(one.high))
                    digits = 1e-12 if scale > 1e-300 else 1e-2  # a subnormal number has few
                    assert abs(value - given) <= digits * scale + TINY, (one, given)


def test_snap_is_idempotent_and_stays_in_the_cube() -> None:
    for space, rng in spaces():
        count = 5_000 if space.width == 1 else 200  # many, to meet the rare roundings of a huge Int
        rows = space.snap(rng.normal(0.5, 0.5, (count, space.width)))
        assert rows.min() >= 0 and rows.max() <= 1
        np.testing.assert_array_equal(space.snap(rows), rows, err_msg=repr(space))


def test_snap_keeps_its_argument_and_the_decoded_point() -> None:
    for space, rng in spaces():
        rows = rng.random((30, space.width))
        before = rows.copy()
        snapped = space.snap(rows)
        np.testing.assert_array_equal(rows, before)
        assert [space.decode(row) for row in snapped] == [space.decode(row) for row in rows]


@pytest.mark.parametrize("one", EXTREMES, ids=repr)
def test_both_ends_are_reached_from_the_ends_of_the_cube(one: Any) -> None:
    space = Space({"x": one})
    for u, end in ((0.0, one.low), (1.0, one.high)):
        assert space.decode([u]) == {"x": end}
        assert space.decode(space.snap([[u]])[0]) == {"x": end}
        assert space.decode(space.encode({"x": end})) == {"x": end}


@pytest.mark.parametrize("log", [False, True])
def test_every_value_of_an_int_is_its_own_image(log: bool) -> None:
    for low, high in ((1, 2), (1, 300), (7, 9), (90, 4000)):
        space = Space({"k": Int(low, high, log=log)})
        assert [space.decode(space.encode({"k": k}))["k"] for k in range(low, high + 1)] == [*range(low, high + 1)]


def test_the_cells_of_an_int_follow_their_definition() -> None:
    linear, log = Space({"k": Int(3, 12)}), Space({"k": Int(3, 12, log=True)})
    for k in range(3, 13):
        assert linear.encode({"k": k})[0] == pytest.approx((k - 3 + 0.5) / 10, abs=1e-15)
        middle = (math.log(k - 0.5) + math.log(k + 0.5)) / 2
        u = (middle - math.log(2.5)) / (math.log(12.5) - math.log(2.5))
        assert log.encode({"k": k})[0] == pytest.approx(u, abs=1e-14)


def test_a_uniform_cube_picks_an_int_with_the_share_of_its_cell() -> None:
    space = Space({"k": Int(1, 6, log=True)})
    cube = (np.arange(100_000)[:, None] + 0.5) / 100_000
    counts = Counter(space.decode(row)["k"] for row in space.spread(cube)[::10])
    for k in range(1, 7):
        share = math.log((k + 0.5) / (k - 0.5)) / math.log(6.5 / 0.5)
        assert counts[k] / 10_000 == pytest.approx(share, abs=3e-4)


def test_log_spreads_a_float_evenly_over_its_decades() -> None:
    space = Space({"x": Float(1e-6, 1e6, log=True)})
    for u, x in ((0.0, 1e-6), (0.25, 1e-3), (0.5, 1.0), (0.75, 1e3), (1.0, 1e6)):
        assert space.decode([u])["x"] == pytest.approx(x, rel=1e-14)
        assert space.encode({"x": x})[0] == pytest.approx(u, abs=1e-15)


@pytest.mark.parametrize("one", [one for one in EXTREMES if isinstance(one, Float)], ids=repr)
def test_a_float_is_encoded_to_the_last_digits(one: Float) -> None:
    space = Space({"x": one})
    with mpmath.workdps(40):
        low, high = mpmath.mpf(one.low), mpmath.mpf(one.high)
        for u in np.linspace(0, 1, 50):
            value = space.decode([u])["x"]
            x = mpmath.mpf(value)
            exact = mpmath.log(x / low) / mpmath.log(high / low) if one.log else (x - low) / (high - low)
            assert abs(space.encode({"x": value})[0] - exact) < 2e-15


def test_encoding_keeps_the_order_of_values() -> None:
    for one in EXTREMES:
        space = Space({"x": one})
        values = [space.decode([u])["x"] for u in np.linspace(0, 1, 200)]
        assert values == sorted(values), one
        cells = [space.encode({"x": value})[0] for value in values]
        assert cells == sorted(cells), one
