"""How long a warm ask takes, against the peers, on one thread and in one run: `make bench`.

The data are scrambled Sobol points of Keane's bump function in 10 dimensions, with its two constraints; the
objective is hidden where a point is infeasible (S1). A warm ask follows one more result, so that the models
must be fitted anew. The engines take turns, so that a busy machine slows all of them alike, and what is counted is the
processor time of this process: on one thread and an idle machine that is the time on the clock.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # read once, when NumPy and torch are first imported

import argparse
import cProfile
import importlib.metadata
import importlib.util
import json
import platform
import pstats
import resource
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import scipy.linalg
from engines import CONSTRAINTS, DIMENSION, Array, BoTorch, Cbob, Engine, Optuna, bump, sobol
from threadpoolctl import threadpool_limits

RESULTS = Path(__file__).parent / "results" / "ask_speed.json"
N_POINTS = 210
SIZES = (500, 1000, 2000, 4000)
OURS, SHOWN, HIDDEN = "cbob", "cbob, half broken, S1", "cbob, half broken, S2"
ENGINES = {
    OURS: Cbob,
    "optuna": Optuna,
    "botorch": BoTorch,
    "botorch, warm start": partial(BoTorch, warm_start=True),
}
PACKAGES = ("cbob", "optuna", "botorch", "gpytorch", "torch", "greenlet", "numpy", "scipy")


def timed_ask(engine: Engine, shift: Array) -> float:
    """Processor seconds of one ask; the result is then told, its constraints lowered by `shift`."""
    start = time.process_time()
    x = engine.ask()
    seconds = time.process_time() - start
    f, g = bump(x[None])
    engine.tell(f[0], g[0] - shift)
    return seconds


def warm_asks(engines: Mapping[str, Engine], repeats: int, *, shift: Array | None = None) -> dict[str, list[float]]:
    """Seconds of each engine's asks, without the first and cold one."""
    shift = np.zeros(len(CONSTRAINTS)) if shift is None else shift
    rounds = [{name: timed_ask(engine, shift) for name, engine in engines.items()} for _ in range(repeats + 1)]
    return {name: [seconds[name] for seconds in rounds[1:]] for name in engines}


def against_peers(repeats: int) -> dict[str, list[float]]:
    X = sobol(N_POINTS)
    built = {name: build(X, *bump(X)) for name, build in ENGINES.items() if installed(name.split(",")[0])}
    return warm_asks(built, repeats)


def half_broken(repeats: int) -> dict[str, list[float]]:
    """cbob with each limit at its median, where half of its readings break: shown, and hidden."""
    X = sobol(N_POINTS)
    f, g = bump(X)
    shift = np.median(g, axis=0)
    engines = {SHOWN: Cbob(X, f, g - shift), HIDDEN: Cbob(X, f, g - shift, hide_broken=True)}
    return warm_asks(engines, repeats, shift=shift)


def growth(n: int, repeats: int) -> dict[str, float]:
    """cbob with n points: seconds of a warm ask, and the peak memory of this whole process."""
    X = sobol(n)
    times = warm_asks({OURS: Cbob(X, *bump(X))}, repeats)[OURS]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": median(times), "peak_mb": peak / (2**20 if sys.platform == "darwin" else 2**10)}


def growth_in_its_own_process(n: int, repeats: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--growth", str(n), "--repeats", str(repeats)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(json.loads(answer))


def lapack_floor(repeats: int = 50) -> float:
    """Seconds to factor and invert an N x N matrix for each model: the least that one step of a fit costs."""
    A = np.random.default_rng(0).normal(size=(N_POINTS, N_POINTS))
    covariance = np.asfortranarray(A @ A.T + N_POINTS * np.eye(N_POINTS))
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(1 + len(CONSTRAINTS)):
            factor, _ = scipy.linalg.lapack.dpotrf(covariance, lower=1)
            scipy.linalg.lapack.dpotri(factor, lower=1)
        times.append(time.process_time() - start)
    return median(times)


def seconds_by_room(repeats: int) -> dict[str, float]:
    """Where a warm ask of cbob spends its time; what it calls in NumPy and SciPy counts for the caller."""
    import cbob

    home = Path(cbob.__file__).parent

    def room(file: str) -> str:
        path = Path(file)
        return str(path.relative_to(home).with_suffix("")) if path.is_relative_to(home) else "other"

    X = sobol(N_POINTS)
    engine = Cbob(X, *bump(X))
    shift = np.zeros(len(CONSTRAINTS))
    timed_ask(engine, shift)  # the cold one
    profile = cProfile.Profile()
    for _ in range(repeats):
        profile.runcall(timed_ask, engine, shift)
    seconds: Counter[str] = Counter()
    for (file, _, _), (_, _, own, _, callers) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        if room(file) != "other" or not callers:
            seconds[room(file)] += own / repeats
        else:
            for (caller, _, _), (_, _, share, _) in callers.items():
                seconds[room(caller)] += share / repeats
    return dict(seconds.most_common())


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def versions() -> dict[str, str]:
    packages = {d.name.lower(): d.version for d in importlib.metadata.distributions()}
    return {"python": platform.python_version()} | {p: packages[p] for p in PACKAGES if p in packages}


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in (header, *rows)]
    return "\n".join("  ".join(line) for line in [lines[0], ["-" * width for width in widths], *lines[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9, help="warm asks of each engine (default 9)")
    parser.add_argument("--growth", type=int, metavar="N", help="time cbob alone with N points, print JSON")
    options = parser.parse_args()
    if options.growth:
        print(json.dumps(growth(options.growth, options.repeats)))
        return

    ours = installed(OURS)
    # First, while this process is small: on Linux the peak memory of a child is never below its parent's.
    sizes = {n: growth_in_its_own_process(n, 3) for n in SIZES} if ours else {}
    warnings.simplefilter("ignore")  # the peers' own
    asks = against_peers(options.repeats) | (half_broken(options.repeats) if ours else {})
    medians = {name: median(times) for name, times in asks.items()}
    floor = lapack_floor()
    base, unit = (medians[OURS], "x cbob") if ours else (floor, "x floor")

    size = f"N={N_POINTS}, d={DIMENSION}, m={len(CONSTRAINTS)}"
    print(f"\nA warm ask at {size}: one thread, {options.repeats} repeats\n")
    rows = [
        [
            name,
            *(f"{1e3 * t:.1f}" for t in (medians[name], min(times), max(times))),
            f"{medians[name] / base:.2f}",
        ]
        for name, times in asks.items()
    ]
    rows.append(["LAPACK floor", f"{1e3 * floor:.1f}", "", "", f"{floor / base:.3f}"])
    print(table(["", "median ms", "fastest", "slowest", unit], rows))
    print("\nThe floor: a Cholesky factorisation and an inverse for each model, as every step of a fit needs.")

    rooms = seconds_by_room(options.repeats) if ours else {}
    if ours:
        print(f"An ask of cbob costs {base / floor:.0f} floors.")
        print(f"Broken readings hidden (S2) over shown (S1): {medians[HIDDEN] / medians[SHOWN]:.2f}\n")
        rows = [[room, f"{1e3 * t:.1f}"] for room, t in rooms.items() if t >= 1e-3]
        print(table(["where the time goes, under a profiler", "ms"], rows) + "\n")
        rows = [[str(n), f"{1e3 * row['seconds']:.0f}", f"{row['peak_mb']:.0f}"] for n, row in sizes.items()]
        print(table(["N", "median ms", "peak MB"], rows))

    record = {
        "versions": versions(),
        "machine": {"architecture": platform.machine(), "cores": os.cpu_count(), "threads_used": 1},
        "problem": {"name": "bump, S1", "N": N_POINTS, "d": DIMENSION, "m": len(CONSTRAINTS)},
        "median_seconds": medians,
        "seconds": asks,
        "lapack_floor_seconds": floor,
        "profiled_seconds_by_room": rooms,
        "growth": sizes,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
