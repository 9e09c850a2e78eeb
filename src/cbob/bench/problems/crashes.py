"""Three problems of our own, each with a region that fails in a way that traps a search.

Islands: the feasible set is in pieces, and the best is on the smallest. Channel: a thin curved tube has to be
followed to its end. Saturating: readings stop at the ends of an instrument's scale, flat over most of the space,
a cliff at the edge. Under S3 each of them is a hidden crash.

Optima: in closed form, derived at each function, and SLSQP from many starts. Feasible fractions: a million points.
"""

from __future__ import annotations

from math import cos, dist, hypot, pi, sin

from cbob.bench.problems.record import Measured, Problem
from cbob.bench.problems.shorthand import Params, box, named, vector
from cbob.constraints import as_constraints

__all__ = ["RECORDS"]

# Centre and radius. The goal lies outside of all islands, nearest to the smallest.
ISLANDS = (
    ((0.2, 0.2, 0.3), 0.17),
    ((0.3, 0.75, 0.7), 0.15),
    ((0.75, 0.3, 0.75), 0.13),
    ((0.75, 0.8, 0.2), 0.11),
    ((0.8, 0.75, 0.75), 0.08),
)
GOAL = (0.9, 0.95, 0.85)


def _islands(params: Params) -> Measured:
    """The least distance to the goal is |centre - goal| - radius, on the line between the two."""
    x = vector(params)
    return dist(x, GOAL) ** 2, {"depth": min(dist(x, centre) - radius for centre, radius in ISLANDS)}


def _channel(params: Params) -> Measured:
    """Along the channel f falls with x1; across it f pulls to one wall, but nowhere as much as the way ahead counts.

    So the best is at the end, x1 = 1, where the centre is (0.5, 0.5), on the wall in the direction (3, 4):
    f = -1 - 0.2 (0.6 * 0.5 + 0.8 * 0.5) - 0.2 * 0.06.
    """
    x1, x2, x3 = vector(params)
    off_centre = hypot(x2 - 0.5 - 0.35 * sin(2 * pi * x1), x3 - 0.15 - 0.35 * cos(pi * x1) ** 2)
    return -x1 - 0.2 * (0.6 * x2 + 0.8 * x3), {"clearance": 0.06 - off_centre}


def _saturating(params: Params) -> Measured:
    """The sum of (1 - x)^2 in a ball of radius 0.48 around the middle of the box, cut off at x1 = 0.55.

    Convex and symmetric in x2 .. x6, so these are equal at the best point: x1 = 0.55 and all the ball leaves,
    0.5 + sqrt((0.48^2 - 0.05^2) / 5). The gauge of the ball is at its upper stop in 91% of the box; that of the
    cut stays at its stop, safe, until 0.04 before the limit.
    """
    x = vector(params)
    gauge = 8 + 60 * (dist(x, [0.5] * 6) - 0.48)
    return sum((1 - xi) ** 2 for xi in x), {"pressure": min(max(gauge, 0.0), 10.0), "margin": min(25 * (0.55 - x[0]), 1.0)}


RECORDS = (
    Problem(
        name="crash-islands",
        space=box(3, 0, 1),
        constraints=as_constraints("depth <= 0"),
        function=_islands,
        optimum=(0.06**0.5 - 0.08) ** 2,
        best_point=named(0.83265986323, 0.81531972646, 0.78265986323),
        feasible_fraction=4 / 3 * pi * sum(radius**3 for _, radius in ISLANDS),
        scenario="S3",
        half="tuning",
        source="cbob: five balls, the best on the smallest",
    ),
    Problem(
        name="crash-channel",
        space=box(3, 0, 1),
        constraints=as_constraints("clearance >= 0"),
        function=_channel,
        optimum=-1.152,
        best_point=named(1.0, 0.5359999999, 0.5479999999),
        feasible_fraction=pi * 0.06**2,
        scenario="S3",
        half="held out",
        source="cbob: a tube along a curve, the best at its end",
    ),
    Problem(
        name="crash-saturating",
        space=box(6, 0, 1),
        constraints=as_constraints(["pressure <= 8", "margin >= 0"]),
        function=_saturating,
        optimum=0.45**2 + 5 * (0.5 - 0.04558**0.5) ** 2,
        best_point=named(0.55, *[0.7134947306] * 5),
        feasible_fraction=0.0382,
        half="tuning",
        source="cbob: gauges that stop at the ends of their scales",
    ),
)
