import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

import cbob
from cbob import Infeasible, Limits, LimitsError
from cbob.study.limits import memory_text


@pytest.mark.parametrize(
    ("given", "size"),
    [
        ("2GiB", 2 * 2**30),
        ("500 MB", 500 * 10**6),
        ("1.5G", 3 * 2**29),
        ("1.5gb", 15 * 10**8),
        ("512k", 2**19),
        (" 1 TiB ", 2**40),
        ("100 B", 100),
        ("4096", 4096),
        (".5 MiB", 2**19),
        (4096, 4096),
        (1e9, 10**9),
    ],
)
def test_a_size_is_read_in_the_units_that_people_write(given: Any, size: int) -> None:
    assert Limits(memory=given).bytes == size
    assert Limits(memory=given) == Limits(memory=size)


TEXTS = ["", "2 GiBs", "much", "-1G", "1e9", "2 XB", "1,5G", "iB", "3iB", "0G"]


@pytest.mark.parametrize("given", [*TEXTS, True, 0, -5, 0.5, float("nan"), [1]])
def test_a_size_that_cannot_be_read_is_an_error(given: Any) -> None:
    with pytest.raises(LimitsError, match="the limit of memory must"):
        Limits(memory=given)


@pytest.mark.parametrize("given", ["30", 0, -1, float("inf"), float("nan"), True])
def test_seconds_that_make_no_sense_are_an_error(given: Any) -> None:
    with pytest.raises(LimitsError, match="the limit in seconds must be"):
        Limits(seconds=given)
    with pytest.raises(LimitsError):
        Limits(loading=given)


def test_a_grace_may_be_zero_but_not_negative() -> None:
    assert Limits(grace=0).grace == 0.0
    with pytest.raises(LimitsError, match="must not be negative"):
        Limits(grace=-1)


def test_no_limit_is_the_default_and_limits_are_frozen() -> None:
    assert Limits() == Limits(None, None)
    assert cbob.Limits is Limits
    with pytest.raises(FrozenInstanceError):
        Limits().seconds = 3.0  # type: ignore[misc]


def test_sizes_are_shown_to_people() -> None:
    assert [memory_text(size) for size in (12, 2**20, 2**31, 3 * 2**50)] == ["12 bytes", "1.0 MiB", "2.0 GiB", "3072.0 TiB"]


class Special(Infeasible):
    """A user's own."""

    def __init__(self, excess: float) -> None:
        super().__init__("fuel", readings={"mass": excess})


@pytest.mark.parametrize("raised", [Infeasible(), Infeasible("fuel"), Infeasible("a", "b", readings={"c": 1.0}), Special(2.0)])
def test_infeasible_survives_pickling(raised: Infeasible) -> None:
    again = pickle.loads(pickle.dumps(raised))
    assert (type(again), again.names, again.readings) == (type(raised), raised.names, raised.readings)
    assert str(again) == str(raised)
