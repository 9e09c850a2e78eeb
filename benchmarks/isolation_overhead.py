"""What isolation costs: one evaluation of a function that does nothing, in each of the ways to run it, in one run.

The floor is what any isolation by forking has to pay: os.fork and wait in a small process, and in one as large as ours.

    python benchmarks/isolation_overhead.py [--repeats 300]
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median, quantiles

from cbob import Limits
from cbob.study.evaluate import Evaluator

FLOOR = """
import os, time{imports}
for _ in range({repeats}):
    start = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    print(time.perf_counter() - start)
"""


def nothing(params: dict[str, float]) -> float:
    return 1.0


def timed(action: Callable[[], object], repeats: int) -> list[float]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return times


def floor(repeats: int, *imports: str) -> list[float]:
    code = FLOOR.format(repeats=repeats, imports="".join(f", {name}" for name in imports))
    return list(map(float, subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout.split()))


def evaluations(repeats: int, target: object = nothing, **options: object) -> tuple[list[float], float]:
    """Seconds of each evaluation but the first, and of the first, which starts the keeper."""
    with Evaluator(target, **options) as evaluator:  # type: ignore[arg-type]

        def once() -> None:
            report = evaluator.evaluate({"x": 1.0})
            assert report.value == 1.0, report

        (first,) = timed(once, 1)
        return timed(once, repeats), first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=300)
    repeats = parser.parse_args().repeats
    few = max(2, repeats // 10)
    limits = Limits(seconds=60, memory="2GiB")
    print(f"{'':34} {'median':>8} {'quartiles':>17} {'first':>8}   (ms, {os.cpu_count()} cores)")
    rows: list[tuple[str, tuple[list[float], float | None]]] = [
        ("floor: fork and wait", (floor(repeats), None)),
        ("floor, NumPy and psutil loaded", (floor(repeats, "numpy", "psutil"), None)),
        ("in this process", evaluations(repeats, isolate=False)),
        ("isolated", evaluations(repeats)),
        ("isolated, with limits", evaluations(repeats, limits=limits)),
        ("isolated, fresh interpreter", evaluations(few, start="spawn", limits=limits)),
        ("command: echo", evaluations(repeats, ["echo", '{{"value": {x}}}'], limits=limits)),
    ]
    for name, (times, first) in rows:
        low, _, high = quantiles(times, n=4)
        start = "" if first is None else f"{1e3 * first:.1f}"
        print(f"{name:34} {1e3 * median(times):8.3f} {1e3 * low:8.3f} {1e3 * high:8.3f} {start:>8}")


if __name__ == "__main__":
    main()
