"""How good are the designs that each strategy finds?

python benchmarks/quality.py --problems pressure-vessel --scenarios S2 --strategies cbob eic --seeds 0-9
python benchmarks/quality.py --table
"""

import argparse
import itertools
from functools import partial
from pathlib import Path

from cbob.bench.campaign import Run, campaign, load, table
from cbob.bench.problems import PROBLEMS
from cbob.bench.scenarios import Scenario

OWN = [name for name, problem in PROBLEMS.items() if problem.half is None]  # the paper's; the suite is asked for by name


def seeds(text: str) -> range:
    """A seed, "3", or a range with both its ends, "0-9"."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--problems", nargs="+", default=OWN, choices=PROBLEMS, metavar="NAME")
    parser.add_argument("--scenarios", nargs="+", default=["S1", "S2"], choices=[s.value for s in Scenario])
    parser.add_argument("--strategies", nargs="+", default=["cbob", "eic"], metavar="NAME")
    parser.add_argument("--surrogates", nargs="+", default=["hlgp"], metavar="NAME")
    parser.add_argument("--seeds", type=seeds, default="0-9")
    parser.add_argument("--budget", type=int, default=100, help="evaluations after the initial design")
    parser.add_argument("--jobs", type=int, help="processes (default: one a core)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "quality.jsonl")
    parser.add_argument("--table", action="store_true", help="run nothing, print what was saved")
    options = parser.parse_args()
    if not options.table:
        cells = itertools.product(  # seeds outermost: whenever it is killed, every cell has about as many
            options.seeds, options.problems, options.scenarios, options.strategies, options.surrogates
        )
        runs = [
            Run(problem, scenario, strategy, surrogate, seed, options.budget)
            for seed, problem, scenario, strategy, surrogate in cells
        ]
        campaign(runs, options.out, jobs=options.jobs, report=partial(print, flush=True))
    print(table(load(options.out)))


if __name__ == "__main__":
    main()
