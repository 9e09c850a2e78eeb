"""A toy lander, for `lander.toml`: fall, brake, and touch down softly with little fuel.

Below `height` metres the engine burns, the harder the faster the fall (`gain`), up to `thrust` times the weight. What can
go wrong does: too weak an engine crashes, an engine that burns too wildly breaks, a controller that hovers never comes down.
"""

from math import exp
from typing import Any

import cbob

GRAVITY, STEP, START = 1.62, 0.05, 100.0  # the moon's; seconds; metres
ENGINES = {"small": (1.0, 0.9), "large": (1.6, 1.5)}  # strength, and fuel for each second at full thrust


def land(params: dict[str, Any]) -> dict[str, float]:
    """The jolt at touchdown plus the weight of the legs, and the fuel it took."""
    strength, thirst = ENGINES[params["engine"]]
    limit = params["thrust"] * strength * GRAVITY
    height, speed, fuel, clock = START, 0.0, 0.0, 0.0
    while height > 0.0:
        burn = 0.0
        if height < params["height"] and speed < 0.0:
            burn = min(limit, params["gain"] * speed * speed / max(height, 0.1))
        if burn > 9.0:
            raise cbob.Infeasible("fuel")  # the pump tears the tank apart: no reading, but we know what broke
        speed += (burn - GRAVITY) * STEP
        height += speed * STEP
        fuel += thirst * burn * STEP
        clock += STEP
        if clock > 200.0:
            raise TimeoutError("still hovering after 200 s")
    if speed < -15.0:
        raise RuntimeError(f"crashed at {-speed:.1f} m/s")
    jolt = speed * speed / params["legs"]
    return {"value": jolt + 0.15 * params["legs"] + exp(-params["legs"]), "fuel": fuel}
