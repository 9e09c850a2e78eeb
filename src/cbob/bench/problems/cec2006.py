"""Five problems of the CEC 2006 collection: many limits, tiny feasible regions, up to 13 parameters.

Formulas, optima and points: Liang et al. (2006), Problem definitions and evaluation criteria for the CEC 2006
special session on constrained real-parameter optimization. Feasible fractions: random points, 10^6 and, where
these find few, 10^8 (g01, g10) or 10^9 (g18).
"""

from __future__ import annotations

from math import inf, pi, sin

from cbob.bench.problems.record import Measured, Problem
from cbob.bench.problems.shorthand import Params, box, limits, measured, named, vector
from cbob.space import Float, Space

__all__ = ["RECORDS"]

SOURCE = "CEC 2006 (Liang et al.), "


def _g01(params: Params) -> Measured:
    x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13 = vector(params)
    first = x1, x2, x3, x4
    return measured(
        5 * sum(first) - 5 * sum(x**2 for x in first) - (x5 + x6 + x7 + x8 + x9 + x10 + x11 + x12 + x13),
        2 * x1 + 2 * x2 + x10 + x11 - 10,
        2 * x1 + 2 * x3 + x10 + x12 - 10,
        2 * x2 + 2 * x3 + x11 + x12 - 10,
        -8 * x1 + x10,
        -8 * x2 + x11,
        -8 * x3 + x12,
        -2 * x4 - x5 + x10,
        -2 * x6 - x7 + x11,
        -2 * x8 - x9 + x12,
    )


def _g08(params: Params) -> Measured:
    x1, x2 = vector(params)
    below = x1**3 * (x1 + x2)
    return measured(
        -(sin(2 * pi * x1) ** 3) * sin(2 * pi * x2) / below if below else -inf,  # only where x1 = 0, which is infeasible
        x1**2 - x2 + 1,
        1 - x1 + (x2 - 4) ** 2,
    )


def _g10(params: Params) -> Measured:
    x1, x2, x3, x4, x5, x6, x7, x8 = vector(params)
    return measured(
        x1 + x2 + x3,
        -1 + 0.0025 * (x4 + x6),
        -1 + 0.0025 * (x5 + x7 - x4),
        -1 + 0.01 * (x8 - x5),
        -x1 * x6 + 833.33252 * x4 + 100 * x1 - 83333.333,
        -x2 * x7 + 1250 * x5 + x2 * x4 - 1250 * x4,
        -x3 * x8 + 1250000 + x3 * x5 - 2500 * x5,
    )


def _g18(params: Params) -> Measured:
    x1, x2, x3, x4, x5, x6, x7, x8, x9 = vector(params)
    return measured(
        -0.5 * (x1 * x4 - x2 * x3 + x3 * x9 - x5 * x9 + x5 * x8 - x6 * x7),
        x3**2 + x4**2 - 1,
        x9**2 - 1,
        x5**2 + x6**2 - 1,
        x1**2 + (x2 - x9) ** 2 - 1,
        (x1 - x5) ** 2 + (x2 - x6) ** 2 - 1,
        (x1 - x7) ** 2 + (x2 - x8) ** 2 - 1,
        (x3 - x5) ** 2 + (x4 - x6) ** 2 - 1,
        (x3 - x7) ** 2 + (x4 - x8) ** 2 - 1,
        x7**2 + (x8 - x9) ** 2 - 1,
        x2 * x3 - x1 * x4,
        -x3 * x9,
        x5 * x9,
        x6 * x7 - x5 * x8,
    )


def _g24(params: Params) -> Measured:
    x1, x2 = vector(params)
    return measured(
        -x1 - x2,
        -2 * x1**4 + 8 * x1**3 - 8 * x1**2 + x2 - 2,
        -4 * x1**4 + 32 * x1**3 - 88 * x1**2 + 96 * x1 + x2 - 36,
    )


def _uneven(*bounds: tuple[float, float]) -> Space:
    return Space({f"x{i}": Float(*pair) for i, pair in enumerate(bounds, 1)})


RECORDS = (
    Problem(
        name="g01",
        space=_uneven(*[(0, 1)] * 9, *[(0, 100)] * 3, (0, 1)),
        constraints=limits(9),
        function=_g01,
        optimum=-15.0,
        best_point=named(*[1.0] * 9, 3.0, 3.0, 3.0, 1.0),
        feasible_fraction=2.3e-6,
        half="held out",
        source=SOURCE + "g01: quadratic, linear limits",
    ),
    Problem(
        name="g08",
        space=box(2, 0, 10),
        constraints=limits(2),
        function=_g08,
        optimum=-0.0958250414,
        best_point=named(1.2279713544, 4.2453733663),
        feasible_fraction=0.0086,
        half="tuning",
        source=SOURCE + "g08: many waves, the best inside a small region",
    ),
    Problem(
        name="g10",
        space=_uneven((100, 1e4), *[(1000, 1e4)] * 2, *[(10, 1000)] * 5),
        constraints=limits(6),
        function=_g10,
        optimum=7049.2480205,
        best_point=named(
            579.30670726, 1359.97062587, 5109.9706914, 182.0177014, 295.60117242, 217.98229859, 286.41652897, 395.60117241
        ),
        feasible_fraction=5.4e-6,
        half="held out",
        source=SOURCE + "g10: a heat exchanger, limits of very different scale",
    ),
    Problem(
        name="g18",
        space=_uneven(*[(-10, 10)] * 8, (0, 20)),
        constraints=limits(13),
        function=_g18,
        optimum=-0.8660254038,
        best_point=named(
            -0.03110030762,
            -0.41309280356,
            0.85005626806,
            -0.52669188252,
            -0.0311004162,
            -0.99951626404,
            0.85005632525,
            0.05973167366,
            0.58642346384,
        ),
        feasible_fraction=6.6e-13,
        half="tuning",
        source=SOURCE + "g18: the largest hexagon of unit diameter",
    ),
    Problem(
        name="g24",
        space=_uneven((0, 3), (0, 4)),
        constraints=limits(2),
        function=_g24,
        optimum=-5.5080132716,
        best_point=named(2.3295201974, 3.1784930725),
        feasible_fraction=0.4426,
        half="held out",
        source=SOURCE + "g24: two feasible pieces",
    ),
)
