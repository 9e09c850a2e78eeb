"""Shared checks: whatever record joins the table is held to the same facts."""

import subprocess
import sys
from collections.abc import Callable, Iterable
from math import cos, inf, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from cbob.bench.problems import PROBLEMS, Problem, coco, get, learning
from cbob.bench.scenarios import Scenario, constraints_for, reveal
from cbob.errors import CbobError
from cbob.space import Float, Space

# Evaluations of these take from milliseconds to seconds: their share of the feasible points is checked on fewer.
SIMULATED = {"xgb-h": 100, "mlp-d": 40, "lunar": 1_000, "swimmer": 60}


def each(*problems: Problem) -> pytest.MarkDecorator:
    cases = [pytest.param(p, id=p.name, marks=[pytest.mark.slow] * (p.name in SIMULATED)) for p in problems]
    return pytest.mark.parametrize("problem", cases)


every_problem = each(*PROBLEMS.values())
every_known_optimum = each(*[problem for problem in PROBLEMS.values() if problem.optimum is not None])


def random_points(problem: Problem, count: int, seed: int = 0) -> list[dict[str, Any]]:
    cube = np.random.default_rng(seed).random((count, len(problem.space.names)))
    return [problem.space.decode(row) for row in problem.space.spread(cube)]


def test_only_simulated_problems_have_no_known_optimum() -> None:
    assert {problem.name for problem in PROBLEMS.values() if problem.optimum is None} == set(SIMULATED)


@every_known_optimum
def test_the_best_point_is_feasible_and_has_the_optimal_value(problem: Problem) -> None:
    assert problem.best_point is not None
    problem.space.check(problem.best_point)
    value, readings = problem.function(problem.best_point)
    assert not problem.broken(readings)
    assert value == pytest.approx(problem.optimum, rel=1e-8, abs=1e-12)


def check_share(problem: Problem, count: int) -> None:
    assert problem.feasible_fraction is not None
    p = problem.feasible_fraction
    hits = sum(not problem.broken(problem.function(params)[1]) for params in random_points(problem, count))
    assert hits / count == pytest.approx(p, abs=4 * sqrt(p * (1 - p) / count))


@every_problem
def test_the_feasible_fraction_is_the_share_of_uniform_points(problem: Problem) -> None:
    check_share(problem, SIMULATED.get(problem.name, 5_000))


@pytest.mark.slow
@every_known_optimum
def test_the_feasible_fraction_holds_to_more_digits(problem: Problem) -> None:
    check_share(problem, 100_000)


@every_known_optimum
def test_no_random_point_is_better_than_the_optimum(problem: Problem) -> None:
    assert problem.optimum is not None
    outcomes = [problem.function(params) for params in random_points(problem, 2_000, seed=1)]
    assert problem.optimum - 1e-9 <= min((f for f, readings in outcomes if not problem.broken(readings)), default=inf)


@every_problem
def test_evaluations_repeat_exactly_and_leave_the_point_alone(problem: Problem) -> None:
    for params in random_points(problem, 2 if problem.name in SIMULATED else 20):
        before = dict(params)
        assert problem.function(params) == problem.function(params)
        assert params == before


@every_problem
def test_the_corners_of_the_box_have_every_reading(problem: Problem) -> None:
    for corner in (np.zeros(problem.space.width), np.ones(problem.space.width)):
        _, readings = problem.function(problem.space.decode(corner))
        assert list(readings) == [limit.name for limit in problem.constraints]
        assert np.isfinite(list(readings.values())).all()


def outcomes_of(names: Iterable[str]) -> str:
    return repr([get(name).function(random_points(get(name), 1)[0]) for name in names])


@pytest.mark.parametrize(
    "names", [[n for n in PROBLEMS if n not in SIMULATED], pytest.param(list(SIMULATED), marks=pytest.mark.slow)]
)
def test_a_fresh_process_measures_the_same(names: list[str]) -> None:
    code = f"import sys; sys.path.append({str(Path(__file__).parent)!r}); import test_problems; "
    code += f"print(test_problems.outcomes_of({names!r}))"
    fresh = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    assert fresh.stdout.strip() == outcomes_of(names)


def test_the_table_imports_no_optional_package() -> None:
    code = "import sys, cbob.bench.problems; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not set(loaded) & {"sklearn", "xgboost", "gymnasium", "Box2D", "mujoco", "cocoex", "scipy"}


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("lunar", "gymnasium"),
        ("lunar", "Box2D"),
        ("swimmer", "mujoco"),
        ("mlp-d", "sklearn.datasets"),
        ("xgb-h", "xgboost"),
        ("bbob-sphere-2", "cocoex"),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    for cached in (learning._digits, coco._coco):
        cached.cache_clear()
    with pytest.raises(CbobError, match=rf"'{name}' needs {package}: pip install 'cbob\[bench\]'"):
        get(name).function(random_points(get(name), 1)[0])
    assert get("toy").function({"x": 2.5})[0] > 1


def scaled(problem: Problem, points: NDArray[np.float64]) -> tuple[Callable[[Any], float], Callable[[Any], Any]]:
    """The objective and the margins over the unit cube, each margin divided by its median over some points."""
    names, width = problem.space.names, problem.space.width
    low, high = (np.array([problem.space.decode(np.full(width, u))[x] for x in names]) for u in (0, 1))

    def evaluate(u: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, readings = problem.function(dict(zip(names, (low + (high - low) * u).tolist(), strict=True)))
        return value, np.array([limit.margin(readings[limit.name]) for limit in problem.constraints])

    scale = np.median([np.abs(evaluate(point)[1]) for point in points], axis=0)
    return lambda u: evaluate(u)[0], lambda u: evaluate(u)[1] / scale


@pytest.mark.parametrize(
    ("name", "searches"),
    [
        ("keane-5", 12),
        ("welded-beam", 12),
        ("welded-beam-code", 12),
        ("ackley-1", 12),
        pytest.param("g01", 60, marks=pytest.mark.slow),
        ("g08", 12),
        pytest.param("g18", 40, marks=pytest.mark.slow),
        ("g24", 12),
        ("three-bar-truss", 12),
        ("mishra-bird", 12),
        ("rosenbrock-disk", 12),
        ("crash-islands", 12),
        ("crash-channel", 12),
        ("bbob-sphere-2", 12),
        ("bbob-rastrigin-rotated-2", 12),
        ("bbob-sphere-5", 12),
        ("bbob-bent-cigar-5", 40),
        ("bbob-slope-10", 12),
    ],
)
def test_local_searches_reach_the_optimum_and_nothing_below_it(name: str, searches: int) -> None:
    problem, rng = get(name), np.random.default_rng(2)
    width = problem.space.width
    points = rng.random((3_000, width))
    if name == "keane-5":
        points = -np.sort(-points, axis=1)  # of all orders of the coordinates the falling one is best
    objective, margins = scaled(problem, points)
    excess = np.array([max(0.0, *margins(point)) for point in points])
    values = np.array([objective(point) for point in points])
    found = []
    for start in points[np.lexsort((values, excess))[:searches]]:
        search = minimize(
            objective,
            start,
            method="SLSQP",
            bounds=[(1e-6, 1)] * width,
            constraints={"type": "ineq", "fun": lambda u: -margins(u) - 1e-8},  # a hair inside, past SLSQP's own rounding
            options={"maxiter": 500, "ftol": 1e-12},
        )
        if np.max(margins(search.x)) <= 0:
            found.append(search.fun)
    assert min(found) == pytest.approx(problem.optimum, rel=1e-6, abs=1e-6)
    assert problem.optimum is not None and min(found) >= problem.optimum - 1e-8 * max(1, abs(problem.optimum))


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
    best = [] if problem.best_point is None else [problem.best_point]
    beyond = {limit.name: (1 if limit.sense == "<=" else -1, limit.limit) for limit in problem.constraints}
    for params in [*random_points(problem, 3 if problem.name in SIMULATED else 200), *best]:
        value, readings = problem.function(params)
        held = {n: reading for n, reading in readings.items() if beyond[n][0] * (reading - beyond[n][1]) <= 0}
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


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_its_scenario_is_one_of_the_three(problem: Problem) -> None:
    assert problem.scenario in list(Scenario)


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
