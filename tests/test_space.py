"""Spaces: values in and out, designs, and the moves between discrete points."""

import copy
import json
import math
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from spaces import random_space, spaces

from cbob.errors import CbobError, SpaceError
from cbob.space import Categorical, Float, Int, Parameter, Space

MIXED = Space(
    {
        "rate": Float(1e-5, 1.0, log=True),
        "depth": Int(1, 15),
        "solver": Categorical(["sgd", "adam", None]),
        "units": Int(1, 4096, log=True),
    }
)
POINT = {"rate": 0.01, "depth": 3, "solver": None, "units": 64}

# What a space is


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "needs at least one parameter"),
        ([("x", Float(0, 1))], "needs at least one parameter"),
        ({"": Float(0, 1)}, "must be a non-empty str, not ''"),
        ({3: Float(0, 1)}, r"must be a non-empty str, not 3 \(int\)"),
        ({"x": (0, 1)}, r"'x' must be a Float, an Int or a Categorical, not \(0, 1\) \(tuple\)"),
    ],
)
def test_a_bad_space_is_refused(parameters: Any, message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        Space(parameters)


def test_columns_belong_to_their_parameters() -> None:
    assert MIXED.names == ("rate", "depth", "solver", "units")
    assert MIXED.width == 6
    assert MIXED.groups.tolist() == [0, 1, 2, 2, 2, 3]
    assert MIXED.continuous.tolist() == [True, False, False, False, False, True]


def test_an_int_is_continuous_from_65_levels_on() -> None:
    assert Space({"a": Int(1, 64), "b": Int(1, 65)}).continuous.tolist() == [False, True]


def test_a_space_is_frozen_and_keeps_no_hold_of_its_argument() -> None:
    given: dict[str, Parameter] = {"x": Float(0, 1)}
    space = Space(given)
    given["y"] = Int(0, 3)
    assert space.names == ("x",)
    with pytest.raises(TypeError):
        space.parameters["x"] = Int(0, 3)
    with pytest.raises(FrozenInstanceError):
        space.width = 3
    with pytest.raises(ValueError, match="read-only"):
        space.groups[0] = 1


def test_spaces_are_equal_by_value_and_order() -> None:
    parts = dict(MIXED.parameters)
    assert Space(MIXED) == MIXED == Space(parts)
    assert hash(Space(MIXED)) == hash(MIXED)
    assert Space(dict(reversed(parts.items()))) != MIXED
    assert Space(parts | {"depth": Int(1, 16)}) != MIXED
    assert MIXED != "a space"


def test_a_space_survives_json_pickle_and_copy() -> None:
    for space, _ in spaces():
        for text in (json.dumps(space.to_dict()), json.dumps(space.to_dict(), sort_keys=True)):
            assert Space.from_dict(json.loads(text)) == space
        assert pickle.loads(pickle.dumps(space)) == copy.deepcopy(space) == space
        assert json.loads(json.dumps(space.to_dict())) == space.to_dict()


@pytest.mark.parametrize("record", [{}, "text", {"parameters": ["ab"]}, {"parameters": [{"type": "int"}]}])
def test_a_record_that_is_no_space_is_refused(record: Any) -> None:
    with pytest.raises(SpaceError, match="a space is written"):
        Space.from_dict(record)


# Values in and out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dept": 3}, "unknown parameter 'dept'; this space has 'rate', 'depth', 'solver', 'units'"),
        ({"rate": 2.0}, r"parameter 'rate' must lie in \[1e-05, 1.0\], not 2.0 \(float\)"),
        ({"rate": math.nan}, "parameter 'rate' must lie in .* not nan"),
        ({"rate": math.inf}, "parameter 'rate' must lie in .* not inf"),
        ({"rate": 10**400}, "parameter 'rate' must lie in"),
        ({"rate": "0.1"}, r"parameter 'rate' must be a real number, not '0.1' \(str\)"),
        ({"rate": None}, r"parameter 'rate' must be a real number, not None \(NoneType\)"),
        ({"rate": True}, r"parameter 'rate' must be a real number, not True \(bool\)"),
        ({"rate": np.True_}, "parameter 'rate' must be a real number"),
        ({"rate": 0.1 + 0j}, "parameter 'rate' must be a real number"),
        ({"rate": np.array([0.1, 0.2])}, "parameter 'rate' must be a real number"),
        ({"depth": 16}, r"parameter 'depth' must lie in 1 .. 15, not 16 \(int\)"),
        ({"depth": 2.5}, "parameter 'depth' must be a whole number, not 2.5"),
        ({"depth": math.nan}, "parameter 'depth' must be a whole number, not nan"),
        ({"depth": True}, "parameter 'depth' must be a real number, not True"),
        ({"solver": "lbfgs"}, r"parameter 'solver' must be one of 'sgd', 'adam', None, not 'lbfgs' \(str\)"),
        ({"solver": ["sgd"]}, "parameter 'solver' must be one of"),
        ({"solver": np.array(["sgd", "adam"])}, "parameter 'solver' must be one of"),
    ],
)
def test_a_value_outside_the_space_is_refused_with_what_came(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SpaceError, match=message):
        MIXED.encode(POINT | change)


def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(SpaceError, match="params lack 'depth', 'units'; this space has 'rate', 'depth'"):
        MIXED.encode({"rate": 0.1, "solver": "sgd"})
    with pytest.raises(SpaceError, match=r"params must map names to values, not be \[1, 2\] \(list\)"):
        MIXED.encode([1, 2])
    with pytest.raises(CbobError):
        MIXED.encode({})


def test_check_returns_plain_python_values_in_order() -> None:
    given = {"units": np.int64(64), "solver": np.str_("sgd"), "depth": np.float64(3.0), "rate": 1}
    checked = MIXED.check(given)
    assert list(checked.items()) == [("rate", 1.0), ("depth", 3), ("solver", "sgd"), ("units", 64)]
    assert [type(value) for value in checked.values()] == [float, int, str, int]
    assert type(given["depth"]) is np.float64  # the argument is as it was


def test_rows_of_the_wrong_width_are_refused() -> None:
    with pytest.raises(SpaceError, match=r"rows must have shape \(q, 6\), not \(2, 5\)"):
        MIXED.snap(np.zeros((2, 5)))
    with pytest.raises(SpaceError, match=r"not \(1, 1, 6\)"):
        MIXED.decode(np.zeros((1, 6)))


# Designs


def test_spread_gives_each_choice_its_share() -> None:
    space = Space({"c": Categorical(["a", "b", "c", "d"]), "x": Float(0, 1)})
    rows = space.spread([[0.0, 0.1], [0.3, 0.2], [0.74, 0.3], [1.0, 1.0]])
    assert [space.decode(row) for row in rows] == [
        {"c": "a", "x": 0.1},
        {"c": "b", "x": 0.2},
        {"c": "c", "x": 0.3},
        {"c": "d", "x": 1.0},
    ]


def test_sobol_rows_are_snapped_and_continue_where_skip_says() -> None:
    for space, rng in [random_space(seed) for seed in range(8)]:
        whole = space.sobol(50, seed=3)
        np.testing.assert_array_equal(space.snap(whole), whole)
        cut = int(rng.integers(0, 50))
        parts = [space.sobol(cut, seed=3), space.sobol(50 - cut, seed=3, skip=cut)]
        np.testing.assert_array_equal(np.vstack(parts), whole)
    assert not np.array_equal(MIXED.sobol(8, seed=0), MIXED.sobol(8, seed=1))
    assert MIXED.sobol(0, seed=0).shape == (0, 6)


def test_sobol_puts_one_point_into_each_stratum() -> None:
    space = Space({"x": Float(0, 1), "y": Float(-1e308, 1e308), "k": Int(0, 15), "c": Categorical([*"abcdefgh"])})
    for start in (0, 16, 48):
        rows = space.sobol(16, seed=5, skip=start)
        for column in (0, 1, 2):
            assert sorted(np.floor(rows[:, column] * 16).tolist()) == [*range(16)]
        assert rows[:, 3:].sum(axis=0).tolist() == [2.0] * 8


def test_sobol_reaches_many_dimensions() -> None:
    space = Space({f"x{i}": Float(0, 1) for i in range(300)})
    assert space.sobol(5, seed=0, skip=3).shape == (5, 300)


def test_importing_the_space_leaves_scipy_stats_alone() -> None:
    code = "import sys, cbob.space; assert 'scipy.stats' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Discrete points


def test_size_counts_the_points_unless_there_is_a_continuum() -> None:
    assert Space({"k": Int(0, 9), "c": Categorical(["a", "b"]), "one": Categorical([0])}).size == 20
    assert Space({"k": Int(-(2**63), 2**63)}).size == 2**64 + 1
    assert MIXED.size is None


def test_enumerate_lists_every_point_once_in_order() -> None:
    space = Space({"k": Int(1, 4, log=True), "c": Categorical(["a", True, 1]), "j": Int(0, 1)})
    rows = space.enumerate(24)
    assert rows is not None
    points = [tuple(space.decode(row).values()) for row in rows]
    assert points == [(k, c, j) for k in range(1, 5) for c in ("a", True, 1) for j in (0, 1)]
    np.testing.assert_array_equal(space.snap(rows), rows)
    assert space.enumerate(23) is None
    assert MIXED.enumerate(10**9) is None


def test_moves_change_one_discrete_parameter_and_nothing_else() -> None:
    for space, rng in spaces():
        for row in space.snap(rng.random((5, space.width))):
            moves = space.moves(row)
            assert moves.shape[1] == space.width
            for move in moves:
                changed = {int(group) for group in space.groups[move != row]}
                assert len(changed) == 1
                assert not isinstance(list(space.parameters.values())[changed.pop()], Float)
            assert len(np.unique(moves, axis=0)) == len(moves)


def test_moves_reach_every_choice_and_every_value_of_a_short_int() -> None:
    space = Space({"k": Int(1, 16), "c": Categorical(["a", "b", "c"]), "x": Float(0, 1)})
    here = {"k": 5, "c": "b", "x": 0.25}
    there = [space.decode(row) for row in space.moves(space.encode(here))]
    ints = [here | {"k": k} for k in range(1, 17) if k != 5]
    assert there == [*ints, here | {"c": "a"}, here | {"c": "c"}]


@pytest.mark.parametrize("high", [17, 64, 65, 5000])
def test_moves_of_a_long_int_double_their_steps(high: int) -> None:
    space = Space({"k": Int(1, high)})
    there = [space.decode(row)["k"] for row in space.moves(space.encode({"k": 4}))]
    assert there == [2, 3, *(4 + 2**i for i in range(20) if 4 + 2**i <= high)]


def test_a_continuum_has_no_moves() -> None:
    assert Space({"x": Float(0, 1), "y": Float(1, 2)}).moves([0.5, 0.5]).shape == (0, 2)
