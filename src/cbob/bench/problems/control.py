"""Controllers flown in simulators of `gymnasium`: rewards are maximised, the energy spent is limited.

Nothing here is random: the seeds of the simulators are fixed. Lunar's feasible fraction is of 1000 random
points, the swimmer's of 300.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbob.bench.problems.record import Measured, Problem
from cbob.bench.problems.shorthand import Params, box, needed, vector
from cbob.constraints import as_constraints

__all__ = ["RECORDS", "fly", "lander_policy"]

Observation = NDArray[np.floating[Any]]
IDLE, LEFT, MAIN, RIGHT = range(4)  # the engines of the lander


def lander_policy(w: list[float]) -> Callable[[Observation], int]:
    """The controller of Eriksson et al. (2019), w1 .. w12, written as in the code published with the CBOB paper.

    With w = (.5, 1, .4, .55, .5, 1, .5, .5, 0, .5, .05, .05) it would be gymnasium's own heuristic, but for the
    lower bound of the tilt: that code compares with w11, and so turns every tilt below a small positive one to -w3.
    """

    def act(s: Observation) -> int:
        tilt = min(s[0] * w[0] + s[2] * w[1], w[2])
        if tilt < w[10]:
            tilt = -w[2]
        turn = (tilt - s[4]) * w[4] - s[5] * w[5]
        lift = (w[3] * abs(s[0]) - s[1]) * w[6] - s[3] * w[7]
        if s[6] or s[7]:  # a leg touches the ground
            turn, lift = w[8], -s[3] * w[9]
        if lift > abs(turn) and lift > w[10]:
            return MAIN
        return RIGHT if turn < -w[11] else LEFT if turn > w[11] else IDLE

    return act


def fly(policy: Callable[[Observation], int]) -> tuple[float, float]:
    """One landing on the terrain of seed 1: the reward without its price of fuel, and the fuel."""
    needed("Box2D", "lunar")
    simulator = needed("gymnasium", "lunar").make("LunarLander-v3", disable_env_checker=True)
    reward, main, side, over = 0.0, 0, 0, False
    state, _ = simulator.reset(seed=1)
    while not over:
        engine = policy(state)
        state, step, landed, late, _ = simulator.step(engine)
        main, side = main + (engine == MAIN), side + (engine in (LEFT, RIGHT))
        reward, over = reward + float(step), landed or late
    simulator.close()
    return reward + 0.3 * main + 0.03 * side, main + 0.1 * side


def _lunar(params: Params) -> Measured:
    reward, fuel = fly(lander_policy(vector(params)))
    return reward, {"fuel": fuel}


def _swimmer(params: Params) -> Measured:
    gain = np.array(vector(params)).reshape(2, 8)
    needed("mujoco", "swimmer")
    simulator = needed("gymnasium", "swimmer").make("Swimmer-v5", disable_env_checker=True)
    rewards, energies = [], []
    for seed in range(5):
        reward, energy, over = 0.0, 0.0, False
        state, _ = simulator.reset(seed=seed)
        while not over:
            torque = gain @ state  # MuJoCo clamps it to [-1, 1]; the energy counts what was asked for
            state, _, fallen, late, info = simulator.step(torque)
            reward, over = reward + float(info["reward_forward"]), fallen or late
            energy += 1e-4 * float(torque @ torque)
        rewards.append(reward)
        energies.append(energy)
    simulator.close()
    return float(np.mean(rewards)), {"energy": float(np.mean(energies))}


RECORDS = (
    Problem(
        name="lunar",
        space=box(12, 0, 2),
        constraints=as_constraints("fuel <= 40"),
        function=_lunar,
        direction="maximize",
        feasible_fraction=0.82,
        source="CBOB paper (AAAI 2024), after Eriksson et al. (2019); LunarLander-v3 in place of v2",
    ),
    Problem(
        name="swimmer",
        space=box(16, -1, 1),
        constraints=as_constraints("energy <= 1.2"),
        function=_swimmer,
        direction="maximize",
        feasible_fraction=0.7,
        scenario="S2",
        source="CBOB paper (AAAI 2024), after Wang et al. (2020); Swimmer-v5 in place of v4",
    ),
)
