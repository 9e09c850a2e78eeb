"""Eight problems of COCO's suite bbob-constrained: smooth or rugged functions behind bent linear limits.

Each is named by function, parameters and number of limits. The suite is built around its optimum, which the
package itself tells (instance 1): SLSQP from many starts finds nothing better. Feasible fractions: 10^6 points.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, Literal

import numpy as np

from cbob.bench.problems.record import Measured, Problem
from cbob.bench.problems.shorthand import Params, box, limits, measured, named, needed, vector

__all__ = ["RECORDS"]


@cache
def _coco(name: str, function: int, parameters: int) -> Any:
    """COCO's own problem; the suite has to outlive it."""
    suite = needed("cocoex", name).Suite("bbob-constrained", "instances:1", f"dimensions:{parameters}")
    return suite, suite.get_problem_by_function_dimension_instance(function, parameters, 1)


def _evaluate(params: Params, *, name: str, function: int) -> Measured:
    x = np.array(vector(params))
    _, problem = _coco(name, function, len(x))
    return measured(problem(x), *problem.constraint(x))


def _record(
    shape: str,
    function: int,
    count: int,
    half: Literal["tuning", "held out"],
    optimum: float,
    best_point: tuple[float, ...],
    feasible_fraction: float,
) -> Problem:
    n = len(best_point)
    name = f"bbob-{shape}-{n}"
    return Problem(
        name=name,
        space=box(n, -5, 5),
        constraints=limits(count),
        function=partial(_evaluate, name=name, function=function),
        optimum=optimum,
        best_point=named(*best_point),
        feasible_fraction=feasible_fraction,
        half=half,
        source=f"COCO (Hansen et al. 2021), bbob-constrained f{function}, instance 1",
    )


RECORDS = (
    _record("sphere", 3, 9, "tuning", -4556.0494144, (-2.3408, 2.3), 0.0511),
    _record("rastrigin-rotated", 50, 3, "held out", -60.2, (2.1151999999999997, -0.1048), 0.5725),
    _record("sphere", 2, 3, "held out", -1991.2260032, (1.2072, 0.448, 3.5544, 2.3864, 1.7856), 0.1174),
    _record("ellipsoid-rotated", 20, 3, "tuning", 89.9675812775, (-2.9136, 3.2552, 1.5264, -1.3632, 3.4376), 0.0396),
    _record("bent-cigar", 33, 9, "held out", 1523.6848975012, (1.4112, 2.4736, -0.956, 2.1512, -0.144), 0.1165),
    _record(
        "slope",
        14,
        3,
        "tuning",
        1945.3755861743,
        (-0.872, -1.2448, 2.54, -2.3592, -1.5232, 3.6216, -3.8832, 0.0112, 2.7792, -1.7048),
        0.0193,
    ),
    _record(
        "ellipsoid",
        9,
        9,
        "held out",
        1520.7861367116,
        (0.8576, 0.9368, -1.2336, 1.9, 0.2728, -3.4624, 3.3, -0.2224, -1.7248, -0.7912),
        0.013,
    ),
    _record(
        "rastrigin-rotated",
        49,
        1,
        "tuning",
        1336.4,
        (2.512, -0.6792, -2.7592, -0.5944, -3.8856, -1.6936, -0.0504, -2.952, -0.2184, -0.6248),
        0.6271,
    ),
)
