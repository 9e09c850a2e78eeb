"""Small problems for the tests of the optimizer, and ways to tell what came of a trial."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from cbob import Categorical, Float, Int, Optimizer, Space, Trial

Params = Mapping[str, Any]
Land = Callable[[Params], tuple[float, dict[str, float]]]

PLANE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
TUNING = Space({"rate": Float(1e-5, 1.0, log=True), "depth": Int(1, 15), "solver": Categorical(["sgd", "adam"])})
TUNING_LIMITS = ("size <= 50000", "accuracy >= 0.9")


def tuning(params: Params) -> tuple[float, dict[str, float]]:
    """About a third is feasible; best at the largest depth that fits."""
    rate, depth, adam = math.log10(params["rate"]), params["depth"], params["solver"] == "adam"
    accuracy = 0.97 - 0.03 * (rate + 2.5 + adam) ** 2
    return 0.1 * (rate + 2.0) ** 2 + 1.5 / depth, {
        "size": 5500.0 * depth + 4000.0 * adam,
        "accuracy": accuracy,
    }


def waves(params: Params) -> tuple[float, dict[str, float]]:
    """A rugged objective in a disc that covers nearly half of the square."""
    x, y = params["x"], params["y"]
    return math.sin(9 * x) + math.cos(7 * y) + x * y, {"g": (x - 0.5) ** 2 + (y - 0.5) ** 2 - 0.15}


def needle(x0: float, y0: float) -> Land:
    """A disc of 3.5% of the square, far from where the objective is low."""

    def land(params: Params) -> tuple[float, dict[str, float]]:
        x, y = params["x"], params["y"]
        return (x - x0) + (y - y0) ** 2, {"g": math.hypot(x - x0, y - y0) - math.sqrt(0.035 / math.pi)}

    return land


def broken(opt: Optimizer, readings: Mapping[str, float]) -> list[str]:
    return [limit.name for limit in opt.constraints if not limit.holds(readings[limit.name])]


def tell(opt: Optimizer, trial: Trial, land: Land, *, hide: str = "S2") -> Trial:
    """Of a broken trial S1 hides the objective, S2 the broken readings too, S3 all but that it failed."""
    value, readings = land(trial.params)
    names = broken(opt, readings)
    if not names:
        return opt.tell(trial, value, constraints=readings)
    if hide == "S1":
        return opt.tell(trial, constraints=readings)
    if hide == "S3":
        return opt.tell(trial, failed="it broke")
    held = {name: reading for name, reading in readings.items() if name not in names}
    return opt.tell(trial, violated=names, constraints=held)


def run(opt: Optimizer, land: Land, count: int, *, hide: str = "S2") -> Optimizer:
    for _ in range(count):
        tell(opt, opt.ask(), land, hide=hide)
    return opt
