"""Random and extreme parameters and spaces for the tests of the map to the unit cube."""

import math
import sys
from typing import Any

import mpmath
import numpy as np
from numpy.random import Generator

from cbob.space import Categorical, Float, Int, Parameter, Space

TINY = 5e-324
HUGE = sys.float_info.max

EXTREMES = [
    Float(-1e308, 1e308),
    Float(-HUGE, HUGE),
    Float(0.0, TINY),
    Float(-TINY, TINY),
    Float(1e16, 1e16 + 4),
    Float(TINY, 1e308, log=True),
    Float(TINY, HUGE, log=True),
    Float(1e-300, 1e-299, log=True),
    Float(1e300, math.nextafter(1e300, math.inf), log=True),
    Float(1e275, 2.5e275, log=True),
    Int(0, 1),
    Int(1, 2, log=True),
    Int(-(2**63), 2**63),
    Int(1, 2**63, log=True),
    Int(1, 10**12, log=True),
    Int(2**62, 2**62 + 5, log=True),
    Int(2**62, 2**62 + 5),
    Int(10**15, 10**15 + 10**6, log=True),
    Int(-5, 2**45),
    Int(0, 10**17 + 3),
    Int(1, 10**15, log=True),
    Int(-(2**63) + 5, 2**63 - 5),
    Int(7, 2**62 + 1, log=True),
    Int(55398449997411453, 339520390934927887, log=True),
]


def random_parameter(rng: Generator) -> Parameter:
    low, high = np.sort(rng.normal(size=2) * 10.0 ** rng.uniform(-300, 300)).tolist()
    first, last = np.sort(rng.choice(int(10 ** rng.uniform(1, 6)), 2, replace=False)).tolist()
    kind = rng.integers(5)
    if kind == 0:
        return Float(low, high)
    if kind == 1:
        return Float(10.0 ** rng.uniform(-320, 0), 10.0 ** rng.uniform(0.01, 308), log=True)
    if kind == 2:
        return Int(first - 1000, last - 1000)
    if kind == 3:
        return Int(first + 1, last + 1, log=True)
    choices = ["a", 1, 1.0, True, None, "b", -2.5, False, 0]
    return Categorical([choices[i] for i in rng.permutation(len(choices))[: rng.integers(1, 8)]])


def random_space(seed: int) -> tuple[Space, Generator]:
    rng = np.random.default_rng(seed)
    return Space({f"p{i}": random_parameter(rng) for i in range(rng.integers(1, 7))}), rng


def spaces() -> list[tuple[Space, Generator]]:
    extremes = [(Space({"x": one}), np.random.default_rng(i)) for i, one in enumerate(EXTREMES)]
    return extremes + [random_space(seed) for seed in range(60)]


def resolution(space: Space) -> Any:
    """How far each column may move because a value is rounded to a float: twice the worst ulp."""

    def of(one: Parameter) -> float:
        if not isinstance(one, Float):
            return 1e-13
        if one.log:
            return 1e-13 + 2 * math.ulp(one.low) / one.low / log_length(one)
        return 1e-13 + 2 * math.ulp(max(abs(one.low), abs(one.high))) / min(one.high - one.low, HUGE)

    return np.array([of(one) for one in space.parameters.values()])[space.groups]


def log_length(one: Float) -> float:
    with mpmath.workdps(40):
        return float(mpmath.log(mpmath.mpf(one.high) / mpmath.mpf(one.low)))
