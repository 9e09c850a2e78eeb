"""Small problems known from the literature: two of engineering, two of the plane.

Optima: SLSQP from many starts, for the gear train a search of all its 49^4 points. Feasible fractions: a million points.
"""

from __future__ import annotations

from math import cos, exp, pi, sin, sqrt

from cbob.bench.problems.record import Measured, Problem
from cbob.bench.problems.shorthand import Params, box, limits, measured, named, vector
from cbob.constraints import as_constraints
from cbob.space import Float, Int, Space

__all__ = ["RECORDS"]


def _three_bar_truss(params: Params) -> Measured:
    x1, x2 = vector(params)  # cross-sections, cm^2
    length, load, strength = 100.0, 2.0, 2.0  # cm, kN/cm^2, kN/cm^2
    below = sqrt(2) * x1**2 + 2 * x1 * x2
    return measured(
        (2 * sqrt(2) * x1 + x2) * length,
        (sqrt(2) * x1 + x2) / below * load - strength,
        x2 / below * load - strength,
        1 / (x1 + sqrt(2) * x2) * load - strength,
    )


def _gear_train(params: Params) -> Measured:
    x1, x2, x3, x4 = vector(params)
    return (1 / 6.931 - x1 * x2 / (x3 * x4)) ** 2, {"largest": float(max(x1, x2, x3, x4))}


def _mishra_bird(params: Params) -> Measured:
    x, y = vector(params)
    bird = sin(y) * exp((1 - cos(x)) ** 2) + cos(x) * exp((1 - sin(y)) ** 2) + (x - y) ** 2
    return measured(bird, (x + 5) ** 2 + (y + 5) ** 2 - 25)


def _rosenbrock_disk(params: Params) -> Measured:
    x, y = vector(params)
    return measured((1 - x) ** 2 + 100 * (y - x**2) ** 2, x**2 + y**2 - 2)


RECORDS = (
    Problem(
        name="three-bar-truss",
        space=box(2, 0.001, 1),  # from 0 on in the literature, where the stress of a bar without area is infinite
        constraints=limits(3),
        function=_three_bar_truss,
        optimum=263.8958433765,
        best_point=named(0.78867513619, 0.40824828597),
        feasible_fraction=0.2182,
        half="tuning",
        source="Nowacki (1974); Ray and Liew (2003), Society and civilization",
    ),
    Problem(
        name="gear-train",
        space=Space({f"x{i}": Int(12, 60) for i in range(1, 5)}),
        constraints=as_constraints("largest <= 45"),  # our limit: the unlimited optimum needs a gear of 49 teeth
        function=_gear_train,
        optimum=1.5450450499890773e-10,
        best_point={"x1": 13, "x2": 21, "x3": 43, "x4": 44},
        feasible_fraction=(34 / 49) ** 4,
        half="held out",
        source="Sandgren (1990); the largest gear is the second objective of Deb, Pratap and Moitra (2000)",
    ),
    Problem(
        name="mishra-bird",
        space=Space({"x1": Float(-10, 0), "x2": Float(-6.5, 0)}),
        constraints=limits(1),
        function=_mishra_bird,
        optimum=-106.7645367493,
        best_point=named(-3.1302468045, -1.5821421913),
        feasible_fraction=0.8313,
        half="held out",
        source="Mishra (2006), Some new test functions for global optimization",
    ),
    Problem(
        name="rosenbrock-disk",
        space=box(2, -1.5, 1.5),
        constraints=limits(1),
        function=_rosenbrock_disk,
        optimum=0.0,
        best_point=named(1.0, 1.0),
        feasible_fraction=2 * pi / 9,
        half="tuning",
        source="Rosenbrock (1960) on the disk of radius sqrt(2): the best is on its rim",
    ),
)
