"""Whatever it is told, an optimizer asks for a point of its space: no exception, and no warning, which pytest
makes an error. A seed is a random space with random limits and a random history, of any scale from 1e-300 to
1e300; `explore(seed)` goes through one again.
"""

import json
import math
import sys
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from spaces import random_parameter

from cbob import Constraint, Optimizer, Space
from cbob.strategies import STRATEGIES

HUGE = sys.float_info.max
MOODS = ["mixed", "all fail", "all hidden", "one feasible", "all broken", "constant", "all measured"]


class Readings:
    """Numbers as instruments might send them: of one scale, of many, constant, or extreme."""

    def __init__(self, rng: Generator, *, constant: bool) -> None:
        self.rng = rng
        self.kind = "constant" if constant else rng.choice(["one scale", "decades", "rounded", "extreme"])
        self.scale = 10.0 ** rng.uniform(-300, 300) if rng.random() < 0.6 else 10.0 ** rng.uniform(-3, 3)
        self.offset = min(self.scale, 1e290) * rng.choice([0.0, 0.0, 1.0, -1e3, 1e12])
        self.level = self.scale * rng.standard_normal()

    def draw(self) -> float:
        rng = self.rng
        if self.kind == "constant":
            return float(self.level)
        if self.kind == "decades":
            return float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-300, 300))
        if self.kind == "rounded":
            return float(self.scale * rng.integers(-2, 3))
        if self.kind == "extreme" and rng.random() < 0.3:
            return float(rng.choice([0.0, -0.0, 5e-324, -5e-324, HUGE, -HUGE, 1e300, -1e-300]))
        return float(np.clip(self.offset + self.scale * rng.standard_normal(), -HUGE, HUGE))


class History:
    """How trials of one random optimizer end."""

    def __init__(self, rng: Generator, opt: Optimizer) -> None:
        self.rng, self.opt = rng, opt
        self.mood = str(rng.choice(MOODS))
        constant = self.mood == "constant"
        self.values = Readings(rng, constant=constant)
        self.sizes = {limit.name: Readings(rng, constant=constant) for limit in opt.constraints}
        self.lucky = int(rng.integers(1, 12))

    def reading(self, limit: Constraint, *, holds: bool | None = None) -> float:
        """A reading; one that holds, or does not, if that is asked for."""
        beyond = 0.0 if self.rng.random() < 0.05 else self.sizes[limit.name].draw()
        if holds is not None:
            beyond = -abs(beyond) if holds else abs(beyond)
        found = limit.reading_of(beyond)
        return found if holds is None or limit.holds(found) is holds else (limit.limit if holds else math.nan)

    def end(self, number: int) -> dict[str, Any]:
        """Arguments of `tell` for trial `number`."""
        rng, limits = self.rng, self.opt.constraints
        failed = {"failed": str(rng.choice(["out of memory", "diverged"]))}
        if self.mood == "all fail" or (self.mood == "mixed" and rng.random() < 0.15):
            return failed
        if self.mood == "one feasible" and number != self.lucky:
            return {"violated": [limit.name for limit in limits]} if limits else failed
        if self.mood == "one feasible":
            held = {limit.name: self.reading(limit, holds=True) for limit in limits}
            return {"value": self.values.draw(), "constraints": held}
        readings, violated, satisfied = {}, [], []
        for limit in limits:
            way = rng.random()
            if self.mood == "all broken":
                if way < 0.5:
                    readings[limit.name] = self.reading(limit, holds=False)
                else:
                    violated.append(limit.name)
            elif self.mood in ("constant", "all measured") or way < 0.5:
                readings[limit.name] = self.reading(limit)
            elif self.mood == "all hidden" or way < 0.8:
                (violated if rng.random() < 0.5 else satisfied).append(limit.name)
            elif way < 0.85:
                readings[limit.name] = float(rng.choice([math.nan, math.inf, -math.inf]))
        told: dict[str, Any] = {"constraints": readings, "violated": violated, "satisfied": satisfied}
        if self.mood == "mixed" and rng.random() < 0.1:
            return told | {"value": float(rng.choice([math.nan, math.inf]))}
        if self.mood != "all broken" and (rng.random() < 0.7 or not (violated or satisfied)):
            told["value"] = self.values.draw()
        if self.mood == "all broken" and not (violated or any(map(math.isfinite, readings.values()))):
            return failed
        return told


def explore(seed: int) -> None:
    """One random history, a few asks and a prediction."""
    rng = np.random.default_rng([seed, 2024])
    space = Space({f"p{i}": random_parameter(rng) for i in range(rng.integers(1, 5))})
    limits = [
        Constraint(f"g{i}", float(rng.choice([0.0, rng.normal() * 10.0 ** rng.uniform(-300, 300), 1.0])), sense)
        for i, sense in enumerate(rng.choice(["<=", ">="], rng.integers(0, 4)))
    ]
    opt = Optimizer(
        space,
        constraints=limits,
        strategy=str(rng.choice([name for name in STRATEGIES if name != "sobol"])),
        surrogate=str(rng.choice(["hlgp", "gpc"])),
        direction=str(rng.choice(["minimize", "maximize"])),
        initial=int(rng.integers(0, 8)),
        seed=seed,
    )
    history = History(rng, opt)
    for number in range(rng.integers(0, 14) if rng.random() < 0.9 else rng.integers(14, 60)):
        (row,) = space.spread(rng.random((1, len(space.names))))
        if opt.trials and rng.random() < 0.3:  # a duplicate, or nearly one
            row = space.encode(opt.trials[rng.integers(len(opt.trials))].params) + rng.choice([0.0, 1e-15, 1e-7])
        opt.add(space.decode(row), **history.end(number))
    for _ in range(rng.integers(1, 4)):
        trial = opt.ask()
        assert space.check(trial.params) == trial.params
        row = space.encode(trial.params)
        assert ((row >= 0.0) & (row <= 1.0)).all()
        if rng.random() < 0.7:
            opt.tell(trial, **history.end(trial.id))
    seen = opt.predict(trial.params)
    assert 0.0 <= seen.probability <= 1.0
    # Neither an objective nor a limit that was never measured has units to answer in.
    measured = any(trial.value is not None for trial in opt.trials)
    assert math.isfinite(seen.mean) and seen.std >= 0.0 if measured else math.isnan(seen.mean) and math.isnan(seen.std)
    assert all(math.isnan(middle) if math.isnan(std) else std >= 0.0 for middle, std in seen.constraints.values())
    copy = Optimizer.from_state(json.loads(json.dumps(opt.state(), allow_nan=False)))
    assert copy.ask() == opt.ask()


def failing(seeds: range) -> dict[int, str]:
    """The seeds that do not go through, and why."""
    found = {}
    for seed in seeds:
        try:
            explore(seed)
        except Exception as error:
            found[seed] = f"{type(error).__name__}: {error}"
    return found


@pytest.mark.parametrize("seed", range(60))
def test_any_history_leads_to_a_point_of_the_space(seed: int) -> None:
    explore(seed)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(100))
def test_ten_thousand_histories_lead_to_points_of_their_spaces(hundred: int) -> None:
    assert failing(range(100 * hundred, 100 * hundred + 100)) == {}
