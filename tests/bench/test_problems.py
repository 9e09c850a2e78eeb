"""Shared checks: whatever record joins the table is held to the same facts."""

from math import cos, pi, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from cbob.bench.problems import PROBLEMS, Problem, get
from cbob.bench.scenarios import Scenario, constraints_for, reveal
from cbob.errors import CbobError
from cbob.space import Float, Space

every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)


def random_points(problem: Problem, count: int, seed: int = 0) -> list[dict[str, Any]]:
    cube = np.random.default_rng(seed).random((count, len(problem.space.names)))
    return [problem.space.decode(row) for row in problem.space.spread(cube)]


@every_problem
def test_the_best_point_is_feasible_and_has_the_optimal_value(problem: Problem) -> None:
    assert problem.best_point is not None
    problem.space.check(problem.best_point)
    value, readings = problem.function(problem.best_point)
    assert not problem.broken(readings)
    assert value == pytest.approx(problem.optimum, rel=1e-6, abs=1e-9)


@every_problem
def test_the_feasible_fraction_is_the_share_of_uniform_points(problem: Problem) -> None:
    assert problem.feasible_fraction is not None
    count, p = 20_000, problem.feasible_fraction
    hits = sum(not problem.broken(problem.function(params)[1]) for params in random_points(problem, count))
    assert hits / count == pytest.approx(p, abs=4 * sqrt(p * (1 - p) / count))


@every_problem
def test_no_random_point_is_better_than_the_optimum(problem: Problem) -> None:
    assert problem.optimum is not None
    outcomes = [problem.function(params) for params in random_points(problem, 2_000, seed=1)]
    assert problem.optimum - 1e-9 <= min(f for f, readings in outcomes if not problem.broken(readings))


@every_problem
def test_evaluations_repeat_exactly_and_leave_the_point_alone(problem: Problem) -> None:
    for params in random_points(problem, 20):
        before = dict(params)
        assert problem.function(params) == problem.function(params)
        assert params == before


@every_problem
def test_the_corners_of_the_box_have_every_reading(problem: Problem) -> None:
    for corner in (np.zeros(problem.space.width), np.ones(problem.space.width)):
        _, readings = problem.function(problem.space.decode(corner))
        assert list(readings) == [limit.name for limit in problem.constraints]


@pytest.mark.parametrize("name", ["keane-5", "welded-beam", "welded-beam-code", "ackley-1"])
def test_local_searches_reach_the_optimum_and_nothing_below_it(name: str) -> None:
    problem, rng = get(name), np.random.default_rng(2)
    width = problem.space.width
    low, high = (np.array([problem.space.decode(np.full(width, u))[x] for x in problem.space.names]) for u in (0, 1))

    def evaluate(u: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        x = low + (high - low) * u
        value, readings = problem.function(dict(zip(problem.space.names, x.tolist(), strict=True)))
        return value, np.array(list(readings.values()))

    points = rng.random((3_000, width))
    if name == "keane-5":
        points = -np.sort(-points, axis=1)  # of all orders of the coordinates the falling one is best
    outcomes = [evaluate(point) for point in points]
    scale = np.median([np.abs(g) for _, g in outcomes], axis=0)
    found = []
    for start in points[np.argsort([f if (g <= 0).all() else np.inf for f, g in outcomes])[:12]]:
        search = minimize(
            lambda u: evaluate(u)[0],
            start,
            method="SLSQP",
            bounds=[(1e-6, 1)] * width,
            constraints={"type": "ineq", "fun": lambda u: -evaluate(u)[1] / scale},
            options={"maxiter": 200, "ftol": 1e-12},
        )
        if np.max(evaluate(search.x)[1] / scale) <= 1e-7:  # SLSQP's own rounding at the limits
            found.append(search.fun)
    assert min(found) == pytest.approx(problem.optimum, rel=1e-6, abs=1e-6)


def test_no_pair_of_plates_makes_a_cheaper_pressure_vessel() -> None:
    plates, radii = 0.0625 * np.arange(21), np.linspace(10, 50, 20_001)
    shell, head, radius = np.meshgrid(plates, plates, radii, indexing="ij", sparse=True)
    enough = (1296000 - 4 / 3 * pi * radius**3) / (pi * radius**2)  # the shortest tank that holds the volume
    length = np.clip(enough, 150, 200)
    cost = 0.6224 * shell * radius * length + 1.7781 * head * radius**2
    cost = cost + 3.1661 * shell**2 * length + 19.84 * shell**2 * radius
    feasible = (0.0193 * radius <= shell) & (0.00954 * radius <= head) & (enough <= length)
    cheapest = np.where(feasible, cost, np.inf).min(axis=2)
    assert np.unravel_index(cheapest.argmin(), cheapest.shape) == (13, 7)
    assert cheapest.min() == pytest.approx(get("pressure-vessel").optimum, rel=1e-4)
    assert cheapest.min() >= 6059.7143359


@pytest.mark.parametrize("n", [5, 10])
def test_the_bump_on_its_diagonal_has_a_closed_form(n: int) -> None:
    value, readings = get(f"keane-{n}").function({f"x{i}": 2.0 for i in range(1, n + 1)})
    assert value == pytest.approx(-abs(n * cos(2) ** 4 - 2 * cos(2) ** (2 * n)) / sqrt(4 * n * (n + 1) / 2))
    assert readings == {"g1": 0.75 - 2**n, "g2": -5.5 * n}


def test_the_toy_fails_where_the_paper_says() -> None:
    toy = get("toy")
    feasible = [x for x in (2.5, 3.7, 4.2, 4.25, 4.7, 5.0) if not toy.broken(toy.function({"x": x})[1])]
    assert feasible == [4.25, 4.7]


@every_problem
def test_each_scenario_hides_exactly_what_it_should(problem: Problem) -> None:
    assert problem.best_point is not None
    for params in [*random_points(problem, 200), problem.best_point]:
        value, readings = problem.function(params)
        held = {name: reading for name, reading in readings.items() if reading <= 0}
        broken = [name for name in readings if name not in held]
        s1, s2, s3 = (reveal(problem, params, scenario) for scenario in Scenario)
        if broken:
            assert s1 == {"constraints": readings}
            assert s2 == {"constraints": held, "violated": broken}
            assert s3 == {"failed": "infeasible"}
        else:
            assert s1 == s2 == {"value": value, "constraints": readings}
            assert s3 == {"value": value}


@every_problem
def test_only_s3_leaves_the_constraints_undeclared(problem: Problem) -> None:
    declared = [constraints_for(problem, scenario) for scenario in (Scenario.S1, Scenario.S2, Scenario.S3)]
    assert declared == [problem.constraints, problem.constraints, ()]


def test_an_unknown_problem_is_answered_with_the_known_ones() -> None:
    with pytest.raises(CbobError, match=r"'toy', .*'pressure-vessel', .*not 'toi'"):
        get("toi")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"direction": "down"}, "direction must be"),
        ({"feasible_fraction": 1.5}, "must lie in"),
        ({"best_point": {"x": 2.0}}, "x"),
    ],
)
def test_a_record_that_cannot_be_true_is_refused(facts: dict[str, Any], message: str) -> None:
    def line(params: Any) -> tuple[float, dict[str, float]]:
        return params["x"], {}

    space = Space({"x": Float(0, 1)})
    with pytest.raises(CbobError, match=message):
        Problem(name="line", space=space, constraints=(), function=line, source="", **facts)
