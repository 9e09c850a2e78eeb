"""Find the cheapest pressure vessel, where a design that fails its inspection is never priced.

A tank, rolled from one plate and closed by two heads, must bear its pressure and hold 750 cubic feet. Of a
design that fails we learn which limits broke, but neither by how much nor the price; 24 random designs in 25
fail. The optimizer learns the limits from what held and what broke, and follows them to the best design.

    python examples/pressure_vessel.py [picture.png]
"""

import sys
from collections.abc import Sequence
from math import inf, pi
from pathlib import Path

import cbob
from cbob import Constraint, Float, Int

SPACE = cbob.Space(
    {
        "shell": Int(1, 20),  # thickness of the plates, in sixteenths of an inch
        "head": Int(1, 20),
        "radius": Float(10, 50),  # inches
        "length": Float(150, 200),
    }
)
LIMITS = [
    Constraint("shell margin", 0, ">="),  # inches of plate beyond what the pressure needs
    Constraint("head margin", 0, ">="),
    Constraint("volume", 1_296_000, ">="),  # cubic inches
]
BUDGET = 80
KNOWN_OPTIMUM = 6059.714335


def inspect(shell: int, head: int, radius: float, length: float) -> tuple[float, dict[str, float]]:
    """The price of a design in dollars, and what its inspection reads."""
    shell_inches, head_inches = shell / 16, head / 16
    price = (
        0.6224 * shell_inches * radius * length
        + 1.7781 * head_inches * radius**2
        + 3.1661 * shell_inches**2 * length
        + 19.84 * shell_inches**2 * radius
    )
    return price, {
        "shell margin": shell_inches - 0.0193 * radius,
        "head margin": head_inches - 0.00954 * radius,
        "volume": pi * radius**2 * length + 4 / 3 * pi * radius**3,
    }


def main() -> None:
    optimizer = cbob.Optimizer(SPACE, constraints=LIMITS, seed=7)
    for _ in range(BUDGET):
        trial = optimizer.ask()
        price, readings = inspect(**trial.params)
        broken = [limit.name for limit in LIMITS if not limit.holds(readings[limit.name])]
        if broken:  # no price, no reading of what broke; what held was measured
            held = {name: reading for name, reading in readings.items() if name not in broken}
            optimizer.tell(trial, violated=broken, constraints=held)
            outcome = "broke " + ", ".join(broken)
        else:
            optimizer.tell(trial, price, constraints=readings)
            outcome = f"${price:.2f}"
        best = optimizer.best
        so_far = "" if best is None else f"best ${best.value:.2f}"
        print(f"trial {trial.id:2}   {outcome:40} {so_far}", flush=True)

    if best is None or best.value is None:
        sys.exit("no design passed its inspection")
    print(f"\nbest design    {dict(best.params)}")
    excess = best.value / KNOWN_OPTIMUM - 1
    print(f"price          ${best.value:.2f}, {excess:.2%} above the known optimum ${KNOWN_OPTIMUM:.2f}")
    picture = Path(sys.argv[1] if len(sys.argv) > 1 else "out/pressure_vessel.png")
    draw(optimizer.trials, picture)
    print(f"picture        {picture}")


def draw(trials: Sequence[cbob.Trial], path: Path) -> None:
    """Above, the price of each design that passed and the best so far; below, what the others broke."""
    import matplotlib

    matplotlib.use("Agg")  # draws to a file, where there is no screen too
    import matplotlib.pyplot as plt

    passed = {trial.id: trial.value - KNOWN_OPTIMUM for trial in trials if trial.value is not None}
    best = [min((gap for i, gap in passed.items() if i <= trial.id), default=inf) for trial in trials]

    figure, (prices, limits) = plt.subplots(2, 1, sharex=True, figsize=(8, 5.5), height_ratios=[4, 1], layout="constrained")
    prices.plot(passed.keys(), passed.values(), "o", color="tab:blue", alpha=0.5, label="passed its inspection")
    prices.step(range(len(best)), best, where="post", color="tab:blue", label="best so far")
    prices.set(yscale="log", ylabel=f"dollars above ${KNOWN_OPTIMUM:.2f}, the optimum")
    prices.set_title(f"Pressure vessel: {len(passed)} of {len(trials)} designs passed their inspection")
    prices.legend()
    for row, limit in enumerate(LIMITS):
        broke = [trial.id for trial in trials if trial.readings[limit.name].holds(limit) is False]
        limits.plot(broke, [row] * len(broke), "x", color="tab:red")
    limits.set(xlabel="trial", ylabel="broke", ylim=(len(LIMITS) - 0.5, -0.5))
    limits.set_yticks(range(len(LIMITS)), [limit.name for limit in LIMITS])
    for axes in (prices, limits):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
