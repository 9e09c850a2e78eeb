"""Optuna's distributions as parameters of cbob, and back."""

import math
from typing import Any

import numpy as np
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from cbob.integrations.optuna.spaces import Codec, internal, levels

SPOTS: list[BaseDistribution] = [
    FloatDistribution(-2.0, 3.0),
    FloatDistribution(1e-8, 10.0, log=True),
    FloatDistribution(0.1, 0.95, step=0.05),
    FloatDistribution(-10.2, 10.2, step=0.1),
    FloatDistribution(0.0, 1e18, step=1.0),
    IntDistribution(-3, 12),
    IntDistribution(1, 1000, log=True),
    IntDistribution(2, 17, step=5),
    IntDistribution(0, 2**60),
    IntDistribution(1, 2**60, log=True),
    CategoricalDistribution(["a", None, True, 2, 0.5]),
    CategoricalDistribution([math.nan, math.inf, 1.0]),
]


@pytest.mark.parametrize("spot", SPOTS, ids=str)
def test_every_point_that_is_asked_lies_in_the_distribution_and_comes_back_as_it_was(spot: BaseDistribution) -> None:
    codec = Codec({"x": spot})
    assert codec.space is not None
    for row in codec.space.sobol(40, seed=0):
        point = codec.space.decode(row)
        value = codec.decode(point)["x"]
        stored = internal(spot, value)
        assert stored is not None and type(value) not in (np.float64, np.int64)
        again = codec.encode({"x": stored})
        assert again is not None and codec.decode(again)["x"] == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize(
    ("spot", "ends"),
    [
        (FloatDistribution(0.1, 0.95, step=0.05), (0.1, 0.95)),
        (IntDistribution(2, 17, step=5), (2, 17)),
        (IntDistribution(1, 1000, log=True), (1, 1000)),
        (FloatDistribution(1e-8, 10.0, log=True), (1e-8, 10.0)),
    ],
    ids=str,
)
def test_both_ends_can_be_asked_for(spot: BaseDistribution, ends: tuple[float, float]) -> None:
    codec = Codec({"x": spot})
    assert codec.space is not None
    asked = [codec.decode(codec.space.decode([u]))["x"] for u in (0.0, 1.0)]
    assert asked == pytest.approx(list(ends), rel=1e-12)


@pytest.mark.parametrize(
    ("spot", "value"),
    [
        (CategoricalDistribution([None]), None),
        (IntDistribution(4, 4), 4),
        (FloatDistribution(1.5, 1.5, log=True), 1.5),
    ],
    ids=str,
)
def test_a_single_value_needs_no_parameter(spot: BaseDistribution, value: Any) -> None:
    codec = Codec({"x": spot})
    assert codec.space is None and codec.decode({}) == {"x": value}


def test_a_value_outside_the_range_has_no_place() -> None:
    codec = Codec({"x": FloatDistribution(0.0, 1.0), "k": IntDistribution(0, 4)})
    assert codec.encode({"x": 0.5, "k": 3.0}) == {"x": 0.5, "k": 3}
    assert codec.encode({"x": 1.5, "k": 3.0}) is None
    assert codec.encode({"k": 3.0}) is None
    assert internal(CategoricalDistribution(["a"]), "b") is None


def test_a_restricted_parameter_takes_only_the_values_left() -> None:
    spots: dict[str, BaseDistribution] = {"c": CategoricalDistribution("abc"), "k": IntDistribution(1, 9, step=2)}
    codec = Codec(spots, {"c": (0.0, 2.0), "k": (7.0,)})
    assert codec.space is not None and codec.space.size == 2
    assert {tuple(codec.decode(codec.space.decode(row)).values()) for row in codec.space.sobol(16, seed=0)} == {
        ("a", 7),
        ("c", 7),
    }
    assert codec.encode({"c": 1.0, "k": 7.0}) is None
    assert levels(spots["k"]) == [1.0, 3.0, 5.0, 7.0, 9.0]
    assert levels(FloatDistribution(0, 1)) is None and levels(IntDistribution(0, 99)) is None
