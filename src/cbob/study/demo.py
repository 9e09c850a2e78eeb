"""The main job, end to end: a study whose evaluation crashes, hangs and runs out of memory, and that succeeds all the same.

A pressure vessel (a tank rolled from one plate and closed by two heads) must bear its pressure and hold 750 cubic feet; a
design that fails its inspection is never priced. The simulator that inspects is as bad as simulators are: thin shells make it
diverge, thin heads crash it, narrow tanks make it loop for ever, and wide ones eat all memory.
"""

from __future__ import annotations

import ctypes
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cbob
from cbob.constraints import Constraint
from cbob.parameters import Float, Int
from cbob.space import Space
from cbob.study.limits import Limits
from cbob.study.plan import Plan
from cbob.study.records import Record
from cbob.study.run import run_study
from cbob.study.views import counts, terminal_view

__all__ = ["demo", "simulate"]

PLATE = 1 / 16  # inches: plates come in sixteenths
SPACE = Space({"shell": Int(1, 20), "head": Int(1, 20), "radius": Float(10.0, 50.0), "length": Float(150.0, 200.0)})
LIMITS = (Constraint("shell margin", 0.0, ">="), Constraint("head margin", 0.0, ">="), Constraint("volume", 1_296_000.0, ">="))
OPTIMUM = 6059.714335  # of all 441 pairs of plates, each solved by hand
BUDGET = 70
SECONDS, MEMORY = 1.5, "250MiB"


def simulate(params: dict[str, Any]) -> dict[str, Any]:
    """The price of a design and what its inspection reads, or one of the ways in which a simulator dies."""
    radius, length = params["radius"], params["length"]
    shell, head = PLATE * params["shell"], PLATE * params["head"]
    print(f"meshing a tank of {radius:.2f} by {length:.2f} inches, plates {shell} and {head}")
    if params["shell"] <= 2:
        raise ArithmeticError("the mesh diverged")
    if params["head"] <= 2:
        ctypes.string_at(0)  # a bug in its native code: segmentation fault
    if radius > 47.0:
        hoard = []
        while True:  # refines the mesh until no memory is left
            hoard.append(b"cell" * 2**22)
    if radius < 14.0:
        while True:  # a solver that never converges
            time.sleep(0.01)
    readings = {
        "shell margin": shell - 0.0193 * radius,
        "head margin": head - 0.00954 * radius,
        "volume": math.pi * radius**2 * length + 4 / 3 * math.pi * radius**3,
    }
    broken = [limit.name for limit in LIMITS if not limit.holds(readings[limit.name])]
    if broken:  # no price, and no reading of what broke
        held = {name: reading for name, reading in readings.items() if name not in broken}
        raise cbob.Infeasible(*broken, readings=held)
    price = (
        0.6224 * shell * radius * length + 1.7781 * head * radius**2 + 3.1661 * shell**2 * length + 19.84 * shell**2 * radius
    )
    return {"value": price, **readings}


def demo(folder: Path) -> int:
    """Run the study, say what came of it, and draw it."""
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{BUDGET} designs, 2 at a time, each in a process of its own with {SECONDS:g} s and {MEMORY}\n", flush=True)
    plan = Plan(
        name="pressure vessel",
        space=SPACE,
        target="cbob.study.demo:simulate",
        constraints=LIMITS,
        budget=BUDGET,
        workers=2,
        limits=Limits(seconds=SECONDS, memory=MEMORY, grace=0.2),
        seed=7,
    )
    with tempfile.TemporaryDirectory(prefix="cbob-demo-") as scratch, terminal_view(plan.name) as view:
        result = run_study(plan, f"sqlite:///{scratch}/vessel.db", view=view)
    standing = result.standing
    print(f"\nfailures        {counts(standing.failed)}")
    print(f"limits broken   {counts(standing.broke)}")
    print(f"priced          {standing.feasible} of {standing.finished} designs")
    if result.value is None:
        print("no design passed its inspection")
        return 3
    print(f"best design     {result.params}")
    print(f"price           ${result.value:.2f}, {result.value / OPTIMUM - 1:.2%} above the known optimum ${OPTIMUM:.2f}")
    try:
        picture = folder / "demo.png"
        draw(result.trials, picture)
        print(f"picture         {picture}")
    except ImportError:
        print("picture         none: pip install 'cbob[plot]'", file=sys.stderr)
    return 0


def draw(records: Sequence[Record], path: Path) -> None:
    """Above, the price of each design that passed and the best so far; below, how the others ended."""
    import matplotlib

    matplotlib.use("Agg")  # draws to a file, where there is no screen too
    import matplotlib.pyplot as plt

    passed = {record.number: (record.value or 0.0) - OPTIMUM for record in records if record.status == "feasible"}
    best = [min((gap for i, gap in passed.items() if i <= record.number), default=math.inf) for record in records]
    ways: dict[str, list[int]] = {limit.name: [] for limit in LIMITS}
    for record in records:
        for way in [record.kind] if record.kind else record.broke:
            ways.setdefault(way, []).append(record.number)

    figure, (prices, ends) = plt.subplots(2, 1, sharex=True, figsize=(8, 6.5), height_ratios=[3, 2], layout="constrained")
    prices.plot(passed.keys(), passed.values(), "o", color="tab:blue", alpha=0.5, label="passed its inspection")
    prices.step(range(len(best)), best, where="post", color="tab:blue", label="best so far")
    prices.set(yscale="log", ylabel=f"dollars above ${OPTIMUM:.2f}, the optimum")
    prices.set_title(f"Pressure vessel: {len(passed)} of {len(records)} designs passed their inspection")
    prices.legend()
    for row, numbers in enumerate(ways.values()):
        colour = "tab:orange" if row < len(LIMITS) else "tab:red"
        ends.plot(numbers, [row] * len(numbers), "x", color=colour)
    labels = [f"broke {way}" if row < len(LIMITS) else way for row, way in enumerate(ways)]
    ends.set(xlabel="trial", ylim=(len(ways) - 0.5, -0.5))
    ends.set_yticks(range(len(ways)), labels)
    for axes in (prices, ends):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
