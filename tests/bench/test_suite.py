"""The suite beyond the paper: each formula written a second time, optima found in other ways, and its two halves."""

from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from cbob.bench.problems import PROBLEMS, Problem, coco, get

SUITE = [problem for problem in PROBLEMS.values() if problem.half]
TUNING, HELD_OUT = ([problem for problem in SUITE if problem.half == half] for half in ("tuning", "held out"))
COCO = [problem for problem in SUITE if problem.name.startswith("bbob")]

PUBLISHED = {
    "g01": -15.0,
    "g08": -0.0958250414180359,
    "g10": 7049.24802052867,
    "g18": -(3**0.5) / 2,
    "g24": -5.50801327159536,
    "three-bar-truss": 263.895843376468,
    "mishra-bird": -106.764536749265,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_optimum_is_the_published_one(name: str) -> None:
    assert get(name).optimum == pytest.approx(PUBLISHED[name], rel=1e-9)


def test_the_halves_are_balanced_over_sizes_and_kinds() -> None:
    assert len(TUNING) == len(HELD_OUT) == 10
    for kind in (lambda p: p in COCO, lambda p: p.scenario == "S3", lambda p: len(p.constraints) > 7):
        assert abs(sum(map(kind, TUNING)) - sum(map(kind, HELD_OUT))) <= 2
    for few, many in ((1, 3), (4, 8), (9, 13)):
        counts = [sum(few <= len(p.space.names) <= many for p in half) for half in (TUNING, HELD_OUT)]
        assert abs(counts[0] - counts[1]) <= 2 and min(counts) >= 2
    assert mean(len(p.space.names) for p in TUNING) == pytest.approx(mean(len(p.space.names) for p in HELD_OUT), abs=1)


def test_the_papers_own_problems_belong_to_neither_half() -> None:
    own = {"toy", "keane-5", "keane-10", "welded-beam", "welded-beam-code", "pressure-vessel", "ackley-5", "ackley-1"}
    assert {problem.name for problem in PROBLEMS.values() if not problem.half} == own | {"xgb-h", "mlp-d", "lunar", "swimmer"}


def g01(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    pairs = [2 * (x[0] + x[1]) + x[9] + x[10], 2 * (x[0] + x[2]) + x[9] + x[11], 2 * (x[1] + x[2]) + x[10] + x[11]]
    return (
        (np.max(pairs, axis=0) <= 10)
        & (x[9:12] <= 8 * x[:3]).all(axis=0)
        & (x[9:12] <= 2 * x[[3, 5, 7]] + x[[4, 6, 8]]).all(axis=0)
    )


def g10(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    a, b, c, d, e, f, g, h = x
    return (
        (d + f <= 400)
        & (e + g - d <= 400)
        & (h - e <= 100)
        & (833.33252 * d + 100 * a - 83333.333 <= a * f)
        & (1250 * (e - d) <= b * (g - d))
        & (1250000 - 2500 * e <= c * (h - e))
    )


def g18(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The six corners of a hexagon: (x1, x2), (x3, x4), (x5, x6), (x7, x8), (0, x9) and the origin."""
    z1, z2, z3, z4, z5 = (*(x[[0, 2, 4, 6]] + 1j * x[[1, 3, 5, 7]]), 1j * x[8])
    sides = [z2, z5, z3, z1 - z5, z1 - z3, z1 - z4, z2 - z3, z2 - z4, z4 - z5]
    doubled_areas = [(z1.conj() * z2).imag, x[2] * x[8], -x[4] * x[8], (z3.conj() * z4).imag]
    return (np.abs(sides) <= 1).all(axis=0) & (np.array(doubled_areas) >= 0).all(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "feasible"), [("g01", g01), ("g10", g10)])
def test_a_rare_feasible_set_has_the_stated_share(name: str, feasible) -> None:  # type: ignore[no-untyped-def]
    problem, rng, millions = get(name), np.random.default_rng(0), 30
    low, high = (np.array([[getattr(one, end)] for one in problem.space.parameters.values()]) for end in ("low", "high"))
    hits = sum(feasible(low + (high - low) * rng.random((len(low), 10**6))).sum() for _ in range(millions))
    expected = problem.feasible_fraction * millions * 10**6  # type: ignore[operator]
    assert hits == pytest.approx(expected, abs=4 * expected**0.5)


@pytest.mark.slow
def test_the_hexagons_of_unit_diameter_have_the_stated_share() -> None:
    """Counted where the limits leave any: x9 in [0, 1], x2 and x8 in [-1, 2], the others in [-1, 1]."""
    rng, tall, count = np.random.default_rng(0), [1, 7], 10**6
    hits = 0
    for _ in range(8):
        x = rng.uniform(-1, 1, (9, count))
        x[tall], x[8] = rng.uniform(-1, 2, (2, count)), rng.random(count)
        hits += int(g18(x).sum())
    share = hits / (8 * count) * (2**6 * 3**2 * 1) / (20**8 * 20)
    assert share == pytest.approx(get("g18").feasible_fraction, rel=4 / hits**0.5 + 0.01)


@pytest.mark.parametrize(("name", "feasible"), [("g01", g01), ("g10", g10), ("g18", g18)])
def test_limits_written_twice_agree_around_the_best_point(name: str, feasible) -> None:  # type: ignore[no-untyped-def]
    problem, rng = get(name), np.random.default_rng(0)
    best = np.array(list(problem.best_point.values()))  # type: ignore[union-attr]
    away = np.array([10, 10, 10, 0, 0, 0, 0, 0]) if name == "g10" else 0  # to where some of the points are feasible
    verdicts = []
    near = [best * (1 + s * (away + rng.standard_normal(len(best)))) for s in np.repeat([1e-5, 1e-4, 1e-3, 1e-2], 500)]
    far = list(1.2 * best * rng.random((2_000, len(best))))  # where limits break that are slack at the best point
    for x in near + far:
        verdicts.append(not problem.broken(problem.function(dict(zip(problem.best_point, x.tolist(), strict=True)))[1]))  # type: ignore[arg-type]
        assert verdicts[-1] == feasible(x[:, None])[0]
    assert 0 < sum(verdicts) < len(verdicts)


def test_the_heat_exchanger_has_no_better_temperatures() -> None:
    """x1, x2 and x3 at their least, which the six limits leave as a function of x4 and x5 alone."""

    def areas(x4: float, x5: float) -> float:
        return (833.33252 * x4 - 83333.333) / (300 - x4) + 1250 * (x5 - x4) / (400 - x5) + (12500 - 25 * x5)

    found = minimize(lambda x: areas(*x), [150.0, 250.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9})
    assert found.fun == pytest.approx(get("g10").optimum, rel=1e-9)
    grid = np.meshgrid(np.linspace(110, 299, 400), np.linspace(111, 399, 400))
    assert np.min(np.where(grid[1] > grid[0], areas(*grid), np.inf)) >= found.fun


def test_no_gears_up_to_45_teeth_come_nearer_to_the_ratio() -> None:
    teeth = np.arange(12, 46)
    products = np.multiply.outer(teeth, teeth).ravel()
    errors = (1 / 6.931 - np.divide.outer(products, products)) ** 2
    assert errors.min() == get("gear-train").optimum


def test_the_end_of_the_channel_is_the_best_of_it() -> None:
    along = np.linspace(0, 1, 20_001)
    centre = 0.2 * (0.6 * (0.5 + 0.35 * np.sin(2 * np.pi * along)) + 0.8 * (0.15 + 0.35 * np.cos(np.pi * along) ** 2))
    least = -along - centre - 0.2 * 0.06  # on the wall in the direction in which f falls
    assert least.argmin() == len(along) - 1
    assert least[-1] == pytest.approx(get("crash-channel").optimum)


def test_no_other_point_behind_the_gauges_is_better() -> None:
    found = minimize(
        lambda x: np.sum((1 - x) ** 2),
        np.full(6, 0.5),
        method="SLSQP",
        bounds=[(0, 0.55)] + [(0, 1)] * 5,
        constraints={"type": "ineq", "fun": lambda x: 0.48**2 - np.sum((x - 0.5) ** 2)},
        options={"ftol": 1e-12},
    )
    assert found.fun == pytest.approx(get("crash-saturating").optimum, rel=1e-9)


def test_gauges_stand_at_their_stops_over_most_of_the_box() -> None:
    problem = get("crash-saturating")
    cube = np.random.default_rng(0).random((2_000, 6))
    readings = [problem.function(problem.space.decode(row))[1] for row in cube]
    assert np.mean([r["pressure"] == 10 for r in readings]) > 0.85
    assert np.mean([r["margin"] == 1 for r in readings]) > 0.45


@pytest.mark.parametrize("problem", COCO, ids=[problem.name for problem in COCO])
def test_the_best_point_is_the_one_that_coco_tells(problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, original = coco._coco(problem.name, problem.function.keywords["function"], len(problem.space.names))  # type: ignore[attr-defined]
    assert f"f{problem.function.keywords['function']}," in problem.source  # type: ignore[attr-defined]
    monkeypatch.chdir(tmp_path)
    original._best_parameter("print")  # into a file of the working directory
    told = np.loadtxt(next(tmp_path.glob("*best_parameter*")))
    assert list(problem.best_point.values()) == pytest.approx(told.tolist(), abs=1e-9)  # type: ignore[union-attr]
    assert problem.optimum == pytest.approx(original(told), rel=1e-9)
