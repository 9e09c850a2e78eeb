"""Thompson draws and the trust region: against brute force, and against SCBO's rules written out plainly."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.acquisitions import textbook_joint
from surrogates import LIMITS, OBJECTIVE, Array, cube

from cbob.acquisition.thompson import TrustRegion, draw_best, improvements
from cbob.models.gp import Posterior
from cbob.space import Categorical, Float, Int, Space

# A draw, and what is best in it


@dataclass
class Drawn:
    """Stands for a posterior whose only draw is known."""

    values: list[float]

    def sample(self, grid: Array, count: int, rng: object) -> Array:
        assert (len(grid), count) == (len(self.values), 1)
        return np.array([self.values])


def best_of(objective: list[float] | None, *limits: list[float]) -> int:
    drawn = cast(list[Any], [Drawn(limit) for limit in limits])
    grid = np.zeros((len(limits[0] if limits else objective or []), 1))
    target = None if objective is None else cast(Any, Drawn(objective))
    return draw_best(target, drawn, grid, np.random.default_rng(0))


def test_a_draw_is_best_where_it_is_lowest_among_the_feasible() -> None:
    assert best_of([3.0, 1.0, 2.0, 0.0]) == 3
    assert best_of([3.0, 1.0, 2.0, 0.0], [-1.0, 1.0, 0.0, 1e-9]) == 2
    assert best_of([3.0, 1.0, 2.0, 0.0], [-1.0, 1.0, 0.0, 1.0], [-1.0, -1.0, 0.1, -1.0]) == 0


def test_without_a_feasible_row_the_least_total_violation_wins() -> None:
    assert best_of([0.0, 1.0, 2.0], [3.0, 1.0, 0.5], [-9.0, 0.2, 0.6]) == 2
    assert best_of([0.0, 1.0, 2.0], [3.0, 1.0, 0.5], [-9.0, 0.0, 0.6]) == 1


def test_without_an_objective_the_row_that_holds_by_most_wins() -> None:
    assert best_of(None, [-1.0, -3.0, -2.0], [-4.0, -1.0, -2.5]) == 0
    assert best_of(None, [1.0, -3.0, -2.0], [-40.0, 0.1, -2.5]) == 2
    assert best_of(None, [1.0, 0.3, 2.0], [-40.0, 0.1, -2.5]) == 1


def test_rows_are_drawn_as_often_as_they_are_best() -> None:
    """Against draws from the dense mean and covariance, so that correlations count."""
    grid, count, rng = cube(6, seed=8), 1500, np.random.default_rng(5)
    found = Counter(draw_best(OBJECTIVE, LIMITS, grid, rng) for _ in range(count))
    joint = [rng.multivariate_normal(*textbook_joint(s, grid), size=20_000) for s in (OBJECTIVE, *LIMITS)]
    expected: Counter[int] = Counter()
    for f, g, h in zip(*joint, strict=True):
        held = [i for i in range(len(grid)) if g[i] <= 0.0 and h[i] <= 0.0]
        violation = np.maximum(g, 0.0) + np.maximum(h, 0.0)
        expected[min(held, key=lambda i: f[i]) if held else int(np.argmin(violation))] += 1
    for row in range(len(grid)):
        share = expected[row] / 20_000
        assert found[row] / count == pytest.approx(share, abs=0.005 + 4.0 * np.sqrt(share / count))


# The region


class PlainRegion:
    """SCBO's rules as a diary would tell them (Eriksson and Poloczek 2021)."""

    def __init__(self, dimensions: int) -> None:
        self.patience = dimensions if dimensions > 4 else 4
        self.begin()

    def begin(self) -> None:
        self.side, self.wins, self.losses = 0.8, 0, 0

    def live_through(self, won: bool) -> None:
        if won:
            self.wins += 1
            self.losses = 0
        else:
            self.losses += 1
            self.wins = 0
        if self.wins == 3:
            self.wins = 0
            self.side = self.side * 2 if self.side * 2 < 1.6 else 1.6
        if self.losses == self.patience:
            self.losses = 0
            self.side = self.side / 2
        if self.side < 1 / 128:
            self.begin()


def sides(history: list[bool], dimensions: int) -> list[float]:
    flags = np.array(history, dtype=bool)
    return [TrustRegion.replay(flags[:n], dimensions).side for n in range(len(history) + 1)]


def test_the_region_starts_at_a_side_of_four_fifths() -> None:
    assert sides([], 3) == [0.8]


def test_three_successes_in_a_row_double_it_and_no_more_than_twice_the_cube() -> None:
    assert sides([True] * 7, 2) == [0.8, 0.8, 0.8, 1.6, 1.6, 1.6, 1.6, 1.6]
    assert sides([True, True, False] * 3, 2) == [0.8] * 10


@pytest.mark.parametrize(("dimensions", "patience"), [(1, 4), (4, 4), (5, 5), (11, 11)])
def test_as_many_failures_as_dimensions_halve_it(dimensions: int, patience: int) -> None:
    found = sides([False] * 2 * patience, dimensions)
    assert found == [0.8] * patience + [0.4] * patience + [0.2]


def test_once_too_small_it_starts_over() -> None:
    found = sides([False] * 4 * 8, 2)
    assert min(found) == 0.8 / 2**6 > 0.5**7 > 0.8 / 2**7
    assert found[4 * 7] == 0.8
    assert found[4 * 8] == 0.4


@pytest.mark.parametrize("dimensions", [1, 3, 5, 9])
@pytest.mark.parametrize("chance", [0.05, 0.3, 0.8])
def test_a_replay_is_the_plain_rules_step_by_step(dimensions: int, chance: float) -> None:
    history = (np.random.default_rng(dimensions).random(300) < chance).tolist()
    region, expected = PlainRegion(dimensions), [0.8]
    for won in history:
        region.live_through(won)
        expected.append(region.side)
    assert sides(history, dimensions) == expected


def plain_improvements(trials: list[tuple[float, bool, float]]) -> list[bool]:
    """A better feasible value counts if by a thousandth; until there is one, less violation counts."""
    better = []
    for i, (value, holds, violation) in enumerate(trials):
        before = [v for v, held, _ in trials[:i] if held]
        if holds and before:
            better.append(value < min(before) - 1e-3 * abs(min(before)))
        elif holds:
            better.append(True)
        else:
            better.append(not before and all(violation < other for _, _, other in trials[:i]))
    return better


def test_improvements_are_told_by_the_rule_of_scbo() -> None:
    rng = np.random.default_rng(0)
    for chance in (0.0, 0.1, 0.5, 1.0):
        holds = rng.random(200) < chance
        values = np.where(holds, np.round(rng.standard_normal(200), 2) - 0.01 * np.arange(200), np.nan)
        violations = np.where(holds, 0.0, np.round(rng.random(200) * 0.99 ** np.arange(200), 2))
        trials = list(zip(values.tolist(), holds.tolist(), violations.tolist(), strict=True))
        assert improvements(values, holds, violations).tolist() == plain_improvements(trials)


def test_an_improvement_of_less_than_a_thousandth_is_none() -> None:
    held: NDArray[np.bool_] = np.ones(4, dtype=bool)
    values = np.array([-100.0, -100.09, -100.2, -101.0])
    assert improvements(values, held, np.zeros(4)).tolist() == [True, False, True, True]


MIXED = Space(
    {
        "a": Float(-2.0, 3.0),
        "b": Float(1e-3, 1e3, log=True),
        "many": Int(1, 1000),
        "few": Int(0, 9),
        "kind": Categorical(["x", "y", "z"]),
    }
)


@pytest.mark.parametrize("side", [1.6, 0.8, 0.1, 0.01])
@pytest.mark.parametrize("centre", [[0.5, 0.5], [0.0, 1.0], [0.03, 0.6]])
def test_the_grid_lies_in_the_box_and_in_the_cube(side: float, centre: list[float]) -> None:
    space = Space({"a": Float(0.0, 1.0), "b": Float(-1.0, 1.0)})
    lengthscales = np.array([0.2, 1.8])
    grid = TrustRegion(side).grid(space, np.array(centre), lengthscales, 500, np.random.default_rng(0))
    half = 0.5 * side * lengthscales / np.sqrt(0.2 * 1.8)  # the box keeps its volume
    assert grid.shape == (500, 2)
    assert (grid >= 0.0).all()
    assert (grid <= 1.0).all()
    assert (np.abs(grid - centre) <= half + 1e-12).all()
    reached = np.abs(grid - centre).max(axis=0)
    room = np.minimum(half, np.maximum(centre, 1.0 - np.array(centre)))
    assert (reached > 0.95 * room).all(), "the grid should fill its box"


@pytest.mark.parametrize("side", [1.6, 0.2, 0.01])
def test_the_grid_has_only_rows_that_a_trial_can_have(side: float) -> None:
    centre = MIXED.snap(np.full((1, MIXED.width), 0.4))[0]
    grid = TrustRegion(side).grid(MIXED, centre, np.ones(MIXED.width), 400, np.random.default_rng(1))
    np.testing.assert_array_equal(grid, MIXED.snap(grid))
    step = 1.0 / 1000  # an Int is snapped, and may leave the box by half a cell
    floats_and_many = MIXED.continuous
    assert (np.abs(grid - centre)[:, floats_and_many] <= 0.5 * side + step).all()


def test_a_small_region_keeps_most_choices() -> None:
    centre = MIXED.snap(np.full((1, MIXED.width), 0.4))[0]
    small, large = (
        TrustRegion(side).grid(MIXED, centre, np.ones(MIXED.width), 4000, np.random.default_rng(1)) for side in (0.05, 1.6)
    )
    kind = MIXED.groups == MIXED.names.index("kind")
    changed = [(grid[:, kind] != centre[kind]).any(axis=1).mean() for grid in (small, large)]
    # Of three choices a fresh one differs in 2/3.
    assert changed[0] == pytest.approx(0.05 * 2 / 3, abs=0.015)
    assert changed[1] == pytest.approx(2 / 3, abs=0.04)


def test_in_many_dimensions_a_row_differs_from_the_centre_in_about_20() -> None:
    space = Space({f"x{i}": Float(0.0, 1.0) for i in range(80)})
    centre = np.full(80, 0.5)
    grid = TrustRegion(0.4).grid(space, centre, np.ones(80), 1000, np.random.default_rng(2))
    moved = (grid != centre).sum(axis=1)
    assert moved.min() >= 1
    assert moved.mean() == pytest.approx(20.75, abs=0.4)  # one is certain to move
    few = TrustRegion(0.4).grid(MIXED, np.full(MIXED.width, 0.5), np.ones(MIXED.width), 50, np.random.default_rng(2))
    assert (few[:, :2] != 0.5).all(), "where there are fewer than 20, all move"


def test_a_posterior_is_what_the_stand_in_stands_for() -> None:
    """`Drawn` above answers as a Posterior does."""
    draw = OBJECTIVE.sample(cube(4), 1, np.random.default_rng(0))
    assert isinstance(OBJECTIVE, Posterior)
    assert draw.shape == Drawn([0.0] * 4).sample(cube(4), 1, None).shape
