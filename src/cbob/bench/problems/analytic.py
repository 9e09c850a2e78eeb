"""Problems in closed form. Every limit is written g <= 0, as in the literature; f is minimised.

Optima: SLSQP from many starts, agreeing with the published ones. Feasible fractions: a million points.
"""

from __future__ import annotations

from functools import partial
from math import cos, e, exp, hypot, inf, pi, prod, sin, sqrt

import numpy as np

from cbob.bench.problems.record import Measured, Problem
from cbob.bench.problems.shorthand import Params, box, limits, measured, named, vector
from cbob.space import Float, Space

__all__ = ["RECORDS"]


def _toy(params: Params) -> Measured:
    x = params["x"]
    h = cos(5 * x) - sin(x) * sin(2 * x)
    return measured(h, h)


def _keane(params: Params) -> Measured:
    x = vector(params)
    squares = [cos(xi) ** 2 for xi in x]
    norm = sqrt(sum(i * xi**2 for i, xi in enumerate(x, 1)))
    bumps = abs(sum(s**2 for s in squares) - 2 * prod(squares))
    f = -bumps / norm if norm else -inf  # only the origin, which is infeasible
    return measured(f, 0.75 - prod(x), sum(x) - 7.5 * len(x))


def _welded_beam(params: Params, *, as_published_code: bool) -> Measured:
    h, length, t, b = (params[name] for name in ("h", "l", "t", "b"))
    load, overhang = 6000.0, 14.0
    lever = hypot(length, h + t)
    direct = load / (sqrt(2) * h * length)
    # The code published with the paper has t where the weld's length belongs, and half of the torsion.
    throat = sqrt(2) * h * t if as_published_code else 0.707 * h * length
    torsion = load * (overhang + length / 2) * lever / (throat * (length**2 / 3 + (h + t) ** 2))
    shear = sqrt(direct**2 + torsion**2 + 2 * direct * torsion * length / lever)
    buckling_load = 64746.022 * (1 - 0.0282346 * t) * t * b**3
    return measured(
        1.10471 * h**2 * length + 0.04811 * t * b * (overhang + length),
        shear - 13600,
        504000 / (t**2 * b) - 30000,
        h - b,
        load - buckling_load,
        2.1952 / (t**3 * b) - 0.25,
    )


def _pressure_vessel(params: Params) -> Measured:
    # Plates come in sixteenths of an inch; the rounding is in here, unseen by the optimizer.
    shell, head = (0.0625 * round(params[name]) for name in ("shell", "head"))
    radius, length = params["radius"], params["length"]
    return measured(
        0.6224 * shell * radius * length + 1.7781 * head * radius**2 + 3.1661 * shell**2 * length + 19.84 * shell**2 * radius,
        0.0193 * radius - shell,
        0.00954 * radius - head,
        1296000 - pi * radius**2 * length - 4 / 3 * pi * radius**3,
        length - 240,
    )


def _ackley(params: Params) -> Measured:
    x = np.array(vector(params))
    distance, ripple = sqrt(np.mean(x**2)), np.mean(np.cos(2 * pi * x))
    return measured(20 - 20 * exp(-0.2 * distance) + e - exp(ripple), np.sum(x))


_BEAM = Space({"h": Float(0.125, 5), "l": Float(0.1, 10), "t": Float(0.1, 10), "b": Float(0.125, 5)})
_VESSEL = Space({"shell": Float(0, 20), "head": Float(0, 20), "radius": Float(10, 50), "length": Float(150, 200)})


RECORDS = (
    Problem(
        name="toy",
        space=Space({"x": Float(0, 10)}),
        constraints=limits(1),
        function=_toy,
        optimum=-1.5828849192,
        best_point={"x": 0.6704720651},
        feasible_fraction=0.4996,
        source="Appendix B.1 of the CBOB paper (AAAI 2024): f and g are one function",
    ),
    Problem(
        name="keane-5",
        space=box(5, 0, 10),
        constraints=limits(2),
        function=_keane,
        optimum=-0.6344486869,
        best_point=named(3.0758193191, 2.9919952129, 1.4757937205, 0.2366913572, 0.2333089992),
        feasible_fraction=0.9657,
        source="Keane (1994), the bump function",
    ),
    Problem(
        name="keane-10",
        space=box(10, 0, 10),
        constraints=limits(2),
        function=_keane,
        optimum=-0.7473103615,
        best_point=named(
            3.1238903798,
            3.0691548684,
            3.0142823268,
            2.9575883564,
            1.4660413531,
            0.3680585158,
            0.3634823291,
            0.3591206307,
            0.3549542798,
            0.3509666528,
        ),
        feasible_fraction=0.9969,
        source="Keane (1994), the bump function",
    ),
    Problem(
        name="welded-beam",
        space=_BEAM,
        constraints=limits(5),
        function=partial(_welded_beam, as_published_code=False),
        optimum=2.3811341178,
        best_point={"h": 0.2443689534, "l": 6.2186069223, "t": 8.29147177, "b": 0.2443689535},
        feasible_fraction=0.3174,
        source="Deb (2000), An efficient constraint handling method for genetic algorithms",
    ),
    Problem(
        name="welded-beam-code",
        space=_BEAM,
        constraints=limits(5),
        function=partial(_welded_beam, as_published_code=True),
        optimum=1.5909530537,
        best_point={"h": 0.2443689534, "l": 1.3841725655, "t": 8.29147177, "b": 0.2443689535},
        feasible_fraction=0.3586,
        source="The code published with the CBOB paper (AAAI 2024): another torsion than Deb's",
    ),
    Problem(
        name="pressure-vessel",
        space=_VESSEL,
        constraints=limits(4),
        function=_pressure_vessel,
        optimum=6059.7143359,
        best_point={"shell": 13.0, "head": 7.0, "radius": 42.09844559, "length": 176.63659592},
        feasible_fraction=0.0365,
        scenario="S2",
        source="Sandgren (1990); bounds of the CBOB paper (AAAI 2024)",
    ),
    Problem(
        name="ackley-5",
        space=box(10, -5, 5),
        constraints=limits(1),
        function=_ackley,
        optimum=0.0,
        best_point=named(*[0.0] * 10),
        feasible_fraction=0.5,
        scenario="S2",
        source="Ackley (1987), sum(x) <= 0; box of the CBOB paper (AAAI 2024)",
    ),
    Problem(
        name="ackley-1",
        space=box(10, -1, 1),
        constraints=limits(1),
        function=_ackley,
        optimum=0.0,
        best_point=named(*[0.0] * 10),
        feasible_fraction=0.5,
        scenario="S2",
        source="Ackley (1987), sum(x) <= 0; box of the CBOB paper's scripts",
    ),
)
