"""The maximiser on acquisitions whose maximum is known, in spaces of every kind."""

import math
from collections.abc import Callable
from typing import NoReturn

import numpy as np
import pytest
from numpy.typing import NDArray

from cbob.acquisition.base import Acquisition
from cbob.candidates import SAME, Effort, Taken, best_untaken, is_taken, maximise, pool
from cbob.space import Categorical, Float, Int, Space

Array = NDArray[np.float64]

CONTINUOUS = Space({"x": Float(-3.0, 5.0), "y": Float(1e-4, 1e2, log=True), "z": Float(0.0, 1.0)})
MIXED = Space(
    {
        "x": Float(0.0, 1.0),
        "depth": Int(1, 15),
        "units": Int(1, 4096, log=True),
        "solver": Categorical(["sgd", "adam", None]),
        "rate": Float(1e-5, 1.0, log=True),
    }
)
DISCRETE = Space(
    {
        "a": Int(0, 30),
        "b": Int(1, 40, log=True),
        "c": Categorical(list("abcd")),
        "d": Categorical([False, True]),
    }
)
SPACES = {"continuous": CONTINUOUS, "mixed": MIXED, "discrete": DISCRETE}
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


class Known(Acquisition):
    """A function of the rows themselves, with its gradient."""

    def __init__(self, value: Callable[[Array], Array], gradient: Callable[[Array], Array]) -> None:
        super().__init__(())
        self.value, self.gradient = value, gradient
        self.rows_seen = 0

    def combine(self, means: Array, stds: Array) -> NoReturn:
        raise AssertionError("there are no surrogates")

    def __call__(self, Q: Array) -> Array:
        self.rows_seen += len(Q)
        return self.value(Q)

    def with_gradient(self, Q: Array) -> tuple[Array, Array]:
        self.rows_seen += len(Q)
        return self.value(Q), self.gradient(Q)


def hill(top: Array, steepness: Array | float = 20.0) -> Known:
    """-sum of steepness (q - top)^2: highest at the row nearest to `top` in that measure."""
    return Known(lambda Q: -(steepness * (Q - top) ** 2).sum(axis=1), lambda Q: -2.0 * steepness * (Q - top))


def hills(tops: Array, heights: Array, steepness: float) -> Known:
    """The logarithm of a sum of bumps."""

    def shares(Q: Array) -> Array:
        squares = ((Q[:, None] - tops) ** 2).sum(axis=2)
        bumps: Array = heights * np.exp(-steepness * squares)
        return bumps + 1e-30

    def gradient(Q: Array) -> Array:
        bumps = shares(Q)
        pull = bumps[:, :, None] * -2.0 * steepness * (Q[:, None] - tops)
        total: Array = pull.sum(axis=1) / bumps.sum(axis=1)[:, None]
        return total

    return Known(lambda Q: np.log(shares(Q).sum(axis=1)), gradient)


def search(acquisition: Known, space: Space, seed: int, *, centres: Array | None = None, taken: Array | None = None) -> Array:
    nothing = np.empty((0, space.width))
    return maximise(
        acquisition,
        space,
        np.random.default_rng(seed),
        centres=nothing if centres is None else centres,
        taken=Taken(nothing if taken is None else taken, nothing),
    )


def best_value(acquisition: Known, space: Space, top: Array) -> float:
    """The value of a hill at the snapped row that each parameter alone is best at."""
    rows = [np.clip(top, 0.0, 1.0)]
    row = space.snap(np.clip(top, 0.0, 1.0)[None])[0]
    for index in range(len(space.names)):
        own = space.groups == index
        one = Space({"p": list(space.parameters.values())[index]})
        every = one.enumerate(5000)
        if every is not None:
            candidates = np.tile(row, (len(every), 1))
            candidates[:, own] = every
            row = candidates[int(np.argmax(acquisition.value(candidates)))]
    rows.append(row)
    return float(acquisition.value(row[None])[0])


@every_space
@pytest.mark.parametrize("seed", range(6))
def test_it_finds_the_top_of_a_hill(space: Space, seed: int) -> None:
    top = np.random.default_rng(seed).uniform(-0.2, 1.2, space.width)  # some tops lie on a face of the cube
    acquisition = hill(top)
    row = search(acquisition, space, seed)
    assert acquisition.value(row[None])[0] >= best_value(acquisition, space, top) - 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_it_climbs_a_ridge(seed: int) -> None:
    """Steep across and shallow along: a pool of points alone would miss it."""
    top = np.random.default_rng(seed).random(3)
    acquisition = hill(top, np.array([2000.0, 2.0, 200.0]))
    row = search(acquisition, CONTINUOUS, seed)
    assert acquisition.value(row[None])[0] > -1e-2


@every_space
@pytest.mark.parametrize("seed", range(4))
def test_it_prefers_the_higher_of_two_hills(space: Space, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = space.snap(space.spread(rng.random((2, len(space.names)))))
    while np.abs(low - high).max() < 0.4:
        (high,) = space.spread(rng.random((1, len(space.names))))
    acquisition = hills(np.stack([low, high]), np.array([1.0, 3.0]), 15.0)
    row = search(acquisition, space, seed)
    assert acquisition.value(row[None])[0] >= acquisition.value(high[None])[0] - 1e-4


def test_a_narrow_peak_is_found_from_a_centre_beside_it() -> None:
    """What only the rows scattered around the given centres can see."""
    top = np.array([0.31, 0.62, 0.47])
    acquisition = hill(top, 1e5)
    clipped = Known(
        lambda Q: np.maximum(acquisition.value(Q), -30.0),
        lambda Q: np.where((acquisition.value(Q) > -30.0)[:, None], acquisition.gradient(Q), 0.0),
    )
    beside = (top + 0.015)[None]
    found = [search(clipped, CONTINUOUS, seed, centres=beside) for seed in range(5)]
    assert all(np.abs(row - top).max() < 1e-3 for row in found)


@pytest.mark.parametrize("seed", range(5))
def test_in_a_small_discrete_space_it_agrees_with_brute_force(seed: int) -> None:
    """Values without any order: nothing but looking at all of them helps."""
    space = Space({"a": Int(0, 5), "c": Categorical(["u", "v", "w"]), "b": Int(1, 4, log=True)})
    every = space.enumerate(100)
    assert every is not None
    heights = np.random.default_rng(seed).standard_normal(len(every))

    def value(Q: Array) -> Array:
        index = np.abs(Q[:, None] - every).sum(axis=2).argmin(axis=1)
        return heights[index]

    acquisition = Known(value, np.zeros_like)
    order = np.argsort(-heights)
    np.testing.assert_allclose(search(acquisition, space, seed), every[order[0]])
    np.testing.assert_allclose(search(acquisition, space, seed, taken=every[order[:7]]), every[order[7]])


@pytest.mark.parametrize("seed", range(5))
def test_in_a_large_discrete_space_it_agrees_with_brute_force(seed: int) -> None:
    """Smooth along the Ints, arbitrary over the choices: 9920 points, and a pool of a few hundred."""
    rng = np.random.default_rng(seed)
    every = DISCRETE.enumerate(10_000)
    assert every is not None
    top, bonus = rng.random(DISCRETE.width), rng.standard_normal(DISCRETE.width)
    is_int = np.isin(DISCRETE.groups, [0, 1])

    def value(Q: Array) -> Array:
        smooth: Array = -(30.0 * (Q - top) ** 2)[:, is_int].sum(axis=1) + (bonus * Q)[:, ~is_int].sum(axis=1)
        return smooth

    acquisition = Known(value, np.zeros_like)
    row = search(acquisition, DISCRETE, seed)
    assert value(row[None])[0] == pytest.approx(value(every).max(), abs=1e-12)


# Rows that are taken


@every_space
def test_it_never_returns_a_taken_row(space: Space) -> None:
    top = space.snap(np.full((1, space.width), 0.37))[0]
    acquisition, taken = hill(top), np.empty((0, space.width))
    for seed in range(12):
        row = search(acquisition, space, seed, centres=top[None], taken=taken)
        assert not (np.abs(taken - row).max(axis=1, initial=0.0) < SAME).any()
        taken = np.vstack([taken, row])


@pytest.mark.parametrize("free", [[2399], [119, 2399, 4679]])
def test_the_best_free_point_of_a_finite_space_is_found(free: list[int]) -> None:
    """Where few are left of many, the pool has none of them."""
    space = Space({"a": Int(0, 119), "b": Int(1, 40, log=True)})
    every = space.enumerate(10_000)
    assert every is not None
    assert len(every) == 4800
    nothing = np.empty((0, space.width))
    assert not any(is_taken(every[i], Taken(pool(space, nothing, Effort(), np.random.default_rng(0)), nothing)) for i in free)
    row = search(hill(every[2400], 1.0), space, 0, taken=np.delete(every, free, axis=0))
    np.testing.assert_array_equal(row, every[2399])


@pytest.mark.parametrize(
    "space",
    [Space({"a": Int(0, 2), "c": Categorical(["u", "v"])}), Space({"c": Categorical(["only"])})],
    ids=["six points", "one point"],
)
def test_an_exhausted_space_gives_a_valid_row_again(space: Space) -> None:
    every = space.enumerate(10)
    assert every is not None
    row = search(hill(every[-1]), space, 0, taken=every)
    assert is_taken(row, Taken(every, np.empty((0, space.width))))
    assert space.decode(row) in [space.decode(one) for one in every]


def test_of_rows_not_taken_the_highest_wins_and_the_earliest_of_equals() -> None:
    rows = np.array([[0.1], [0.2], [0.3], [0.4]])
    space, values = Space({"x": Float(0.0, 1.0)}), np.array([1.0, 3.0, 2.0, 2.0])

    def pick(taken: list[list[float]]) -> float:
        return float(best_untaken(rows, values, Taken(np.array(taken).reshape(-1, 1), np.empty((0, 1))), space)[0])

    assert pick([]) == 0.2
    assert pick([[0.2]]) == 0.3
    assert pick([[0.2], [0.3 + 0.5 * SAME]]) == 0.4
    assert pick(rows.tolist()) in rows, "a continuum that is used up repeats, but stays valid"


# Always a row that a trial can have


def rough(space: Space, rng: np.random.Generator) -> Known:
    """Waves, so that climbs end anywhere, and a slope out of the cube."""
    waves, slope = rng.normal(size=space.width) * 9.0, rng.normal(size=space.width)
    return Known(lambda Q: np.sin(Q * waves).sum(axis=1) + Q @ slope, lambda Q: np.cos(Q * waves) * waves + slope)


@every_space
@pytest.mark.parametrize("seed", range(4))
def test_a_candidate_is_snapped_and_lies_inside(space: Space, seed: int) -> None:
    rng = np.random.default_rng(seed)
    centres = space.spread(rng.integers(0, 2, (3, len(space.names))).astype(float))
    row = search(rough(space, rng), space, seed, centres=centres, taken=centres)
    assert row.shape == (space.width,)
    assert ((row >= 0.0) & (row <= 1.0)).all()
    np.testing.assert_array_equal(row, space.snap(row[None])[0])
    space.check(space.decode(row))


@every_space
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_do_not_stop_it(space: Space, bad: float) -> None:
    for share in (0.3, 1.0):
        threshold = np.quantile(space.spread(np.random.default_rng(0).random((99, len(space.names)))).sum(axis=1), share)
        acquisition = Known(
            lambda Q, limit=threshold: np.where(Q.sum(axis=1) <= limit, bad, Q.sum(axis=1)),
            lambda Q, limit=threshold: np.where((Q.sum(axis=1) <= limit)[:, None], bad, 1.0) * np.ones_like(Q),
        )
        row = search(acquisition, space, 0)
        np.testing.assert_array_equal(row, space.snap(row[None])[0])
        if share < 1.0 and bad != math.inf:
            assert math.isfinite(acquisition.value(row[None])[0]), "there are better rows"


@every_space
def test_the_same_generator_gives_the_same_row_and_nothing_is_written_to(space: Space) -> None:
    centres = space.spread(np.full((2, len(space.names)), 0.4))
    taken = centres[:1].copy()
    centres.flags.writeable = taken.flags.writeable = False
    rows = [search(rough(space, np.random.default_rng(1)), space, 5, centres=centres, taken=taken) for _ in range(2)]
    np.testing.assert_array_equal(*rows)


@every_space
def test_the_pool_is_snapped_and_has_rows_near_each_centre(space: Space) -> None:
    rng = np.random.default_rng(2)
    centres = space.spread(rng.random((3, len(space.names))))
    effort = Effort(spread=100, scattered=200)
    rows = pool(space, centres, effort, np.random.default_rng(0))
    assert rows.shape == (300, space.width)
    np.testing.assert_array_equal(rows, space.snap(rows))
    for centre in centres:
        assert (np.abs(rows[100:] - centre).max(axis=1) < 0.1).any()
    alone = pool(space, np.empty((0, space.width)), effort, np.random.default_rng(0))
    assert alone.shape == (100, space.width)


@pytest.mark.parametrize("dimensions", [1, 2, 5])
def test_the_pool_is_spread_more_evenly_than_chance(dimensions: int) -> None:
    """Of 256 boxes of equal volume, uniform points leave 37% empty."""
    space = Space({f"x{i}": Float(0.0, 1.0) for i in range(dimensions)})
    rows = pool(space, np.empty((0, dimensions)), Effort(spread=256), np.random.default_rng(3))
    cuts = {1: [256], 2: [16, 16], 5: [4, 4, 4, 2, 2]}[dimensions]
    boxes = np.unique((rows * cuts).astype(int), axis=0)
    assert len(boxes) > (1 - 0.37 + 0.03) * 256


def test_effort_bounds_how_much_is_evaluated() -> None:
    acquisition = rough(CONTINUOUS, np.random.default_rng(0))
    search(acquisition, CONTINUOUS, 0)
    effort = Effort()
    most = effort.spread + effort.scattered + effort.starts * (effort.evaluations + 21)  # one line search over
    assert acquisition.rows_seen <= most
