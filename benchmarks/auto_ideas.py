"""Ideas for the strategy "auto", each on its own, on problems of the tuning half: what docs/design/0012-auto.md compares.

    python benchmarks/auto_ideas.py --seeds 0-3        appends each finished run; started again, it repeats none
    python benchmarks/auto_ideas.py --table

All start from the 11 d points of the protocol and then ask 100 times. Problems that every idea solves to the last digits are
left out, and some of the others stand for what traps strategies: readings that saturate, islands, many limits at once, and
failures of unknown cause (S3).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numpy as np

from cbob import Optimizer
from cbob.acquisition.base import Acquisition, Product
from cbob.acquisition.calibration import Damped, Shifted, shift
from cbob.acquisition.feasibility import POB, DynamicFeasibility, ProbabilityOfFeasibility
from cbob.bench.problems import get
from cbob.bench.scenarios import Scenario, constraints_for, hide
from cbob.bench.significance import average_ranks
from cbob.strategies import RESOLUTION, STRATEGIES, Auto, Beliefs, Climb, Strategy

RESULTS = Path(__file__).parent / "results" / "ideas" / "auto.jsonl"
BUDGET = 100
PLACES = (
    ("bbob-ellipsoid-rotated-5", "S1"), ("bbob-rastrigin-rotated-10", "S1"), ("crash-saturating", "S1"), ("g18", "S1"),
    ("rosenbrock-disk", "S1"), ("three-bar-truss", "S1"), ("bbob-sphere-2", "S1"), ("bbob-slope-10", "S1"),
    ("crash-islands", "S3"), ("bbob-sphere-2", "S3"), ("crash-saturating", "S3"), ("bbob-slope-10", "S3"),
    ("bbob-ellipsoid-rotated-5", "S3"),
)  # fmt: skip


@dataclass(frozen=True)
class Idea(Climb):
    """Factors that experience shifts (of limits; of the objective too; only towards caution), explored to some share."""

    limits: bool = True
    objective: bool = False
    cautious: bool = False
    share: float | None = 0.0  # None: as often as proposals were feasible

    def acquisition(self, beliefs: Beliefs) -> Acquisition:
        assert beliefs.best is not None
        seen = beliefs.experience
        own = shift(seen.promised[:, 0], seen.kept[:, 0]) if self.objective else 0.0
        others = seen.shifts if self.limits else [0.0] * len(beliefs.limits)
        if self.cautious:
            own, others = max(own, 0.0), [max(by, 0.0) for by in others]
        share = seen.balance if self.share is None else self.share
        held = DynamicFeasibility(Damped(POB(resolution=RESOLUTION), share)) if share else ProbabilityOfFeasibility()
        factors = [Shifted(self.improvement(beliefs.best), own), *(Shifted(held, by) for by in others)]
        return Product((beliefs.objective, *beliefs.limits), factors)


IDEAS: Mapping[str, tuple[str, Strategy]] = {
    "auto": ("shifted limits, explored as often as proposals were feasible", Auto()),
    "shift": ("shifted limits, no exploration", Idea()),
    "cautious": ("the same, never bolder than the surrogates", Idea(cautious=True)),
    "shift both": ("shifted limits and a shifted objective, no exploration", Idea(objective=True)),
    "shift, POB": ("shifted limits, explored in full", Idea(share=1.0)),
    "share": ("limits as promised, explored as often as proposals were feasible", Idea(limits=False, share=None)),
    "cbob": ("EICB as it stands: limits as promised, explored in full", STRATEGIES["cbob"]),
    "eic": ("EIC: limits as promised, no exploration", STRATEGIES["eic"]),
}


def execute(idea: str, name: str, scenario: str, seed: int) -> dict[str, Any]:
    problem, told = get(name), Scenario(scenario)
    opt = Optimizer(
        problem.space, constraints=constraints_for(problem, told), direction=problem.direction,
        strategy=IDEAS[idea][1], initial="paper", seed=seed,
    )  # fmt: skip
    values, asking = [], 0.0
    for _ in range(opt.initial + BUDGET):
        started = time.process_time()
        trial = opt.ask()
        asking += time.process_time() - started
        measured = problem.function(trial.params)
        opt.tell(trial, **hide(problem, measured, told))
        values.append(np.nan if problem.broken(measured[1]) else measured[0])
    found = values[opt.initial :]
    return {
        "idea": idea, "problem": name, "scenario": scenario, "seed": seed,
        "best": None if np.isnan(values).all() else float(np.nanmin(values)),
        "feasible": float(np.isfinite(found).mean()), "ask_seconds": round(asking, 2),
    }  # fmt: skip


def load() -> list[dict[str, Any]]:
    lines = RESULTS.read_text().splitlines(keepends=True) if RESULTS.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """A row for each place: medians; then average ranks over the seeds that all ideas have."""
    ideas = [idea for idea in IDEAS if any(record["idea"] == idea for record in records)]
    losses: dict[str, dict[str, dict[int, float]]] = {}
    for record in records:
        place = losses.setdefault(f"{record['problem']} ({record['scenario']})", {idea: {} for idea in ideas})
        place[record["idea"]][record["seed"]] = np.inf if record["best"] is None else record["best"]
    lines = [f"| problem | best known | {' | '.join(ideas)} |", "|" + " --- |" * (len(ideas) + 2)]
    for place, found in losses.items():
        best = get(place.split(" ")[0]).optimum
        medians = [f"{np.median(list(found[idea].values())):.7g}" if found[idea] else "" for idea in ideas]
        lines.append(f"| {place} | {best:.7g} | {' | '.join(medians)} |")
    ranks = average_ranks(losses)
    seeds = sorted({record["seed"] for record in records})
    shares = [np.mean([r["feasible"] for r in records if r["idea"] == idea]) for idea in ideas]
    lines.append(f"| feasible proposals | | {' | '.join(f'{share:.0%}' for share in shares)} |")
    lines.append(
        f"| average rank, seeds {seeds[0]} to {seeds[-1]} | | {' | '.join(f'{ranks.get(i, np.nan):.2f}' for i in ideas)} |"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-3")
    parser.add_argument("--ideas", nargs="+", choices=IDEAS, default=list(IDEAS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        first, _, last = options.seeds.partition("-")
        done = {(r["idea"], r["problem"], r["scenario"], r["seed"]) for r in load()}
        runs = [
            (idea, name, scenario, seed)
            for seed, (name, scenario), idea in itertools.product(
                range(int(first), int(last or first) + 1), PLACES, options.ideas
            )
            if (idea, name, scenario, seed) not in done
        ]
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        if RESULTS.exists():  # without what a kill has left of a line
            os.truncate(RESULTS, RESULTS.read_bytes().rfind(b"\n") + 1)
        with ProcessPoolExecutor(options.jobs) as crew:
            for future in as_completed([crew.submit(execute, *run) for run in runs]):
                record = future.result()
                with RESULTS.open("a") as file:
                    file.write(json.dumps(record, separators=(",", ":")) + "\n")
                print(*record.values(), flush=True)
    print(table(load()))


if __name__ == "__main__":
    main()
