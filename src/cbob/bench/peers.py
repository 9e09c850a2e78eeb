"""Optimizers of others beside ours, at equal evaluations: what scripts in benchmarks/ saved of them, as records of campaigns.

A peer can be told of failures in several ways, and has settings. For each problem the one with the best median counts, which is
more than anybody could know beforehand.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from cbob.bench.journal import complete_lines
from cbob.bench.plans import Plan, Row
from cbob.bench.runs import PROTOCOL_BUDGET, Cell, Record, improvements
from cbob.bench.significance import holm, signed_rank
from cbob.bench.summary import by_cell, loss, quantile
from cbob.bench.tables import NOT_RUN, column_losses, markdown, p_value, ranks, versus
from cbob.errors import StateError

__all__ = ["FOLDER", "OWN", "PLAN", "REFERENCE", "SEEDS", "block", "contenders", "load_peers", "ranked"]

FOLDER = "peers"  # beside the records of our own campaigns
SEEDS = range(10)  # of everyone: our own campaigns have more, which do not count here
REFERENCE = Row("auto")
OWN = (REFERENCE, Row("cbob"), Row("eic"))

# The samplers of the scripts that a row stands for: the settings it may be used with.
PEERS: Mapping[Row, tuple[str, ...]] = MappingProxyType(
    {
        Row("optuna-gp"): ("gp", "gp noiseless"),
        Row("optuna-tpe"): ("tpe", "tpe independent"),
        Row("botorch-logei"): ("logei",),
        Row("botorch-scbo"): ("scbo",),
    }
)

PLAN = Plan(
    "peers",
    "Against peers",
    (("keane-10", "S1"), ("welded-beam", "S1"), ("ackley-5", "S2"), ("pressure-vessel", "S2")),
    (*OWN, *PEERS),
)

Setting = tuple[str, str]  # a sampler, and the way it is told of failures


def load_peers(results: Path) -> dict[Cell, dict[Setting, list[Record]]]:
    """Every finished run of every setting, in the order of its seeds."""
    rows = {sampler: row for row, samplers in PEERS.items() for sampler in samplers}
    columns = dict(PLAN.columns)
    found: dict[Cell, dict[Setting, dict[int, Record]]] = defaultdict(lambda: defaultdict(dict))
    for path in sorted((results / FOLDER).glob("*.jsonl")):
        with path.open("rb") as file:
            lines = complete_lines(file)
        for number, line in enumerate(lines, 1):
            try:
                run = json.loads(line)
                name, setting, seed = run["problem"], (run["sampler"], run["way"]), run["seed"]
                if name in columns and setting[0] in rows and seed in SEEDS:
                    cell = PLAN.cell(rows[setting[0]], (name, columns[name]))
                    found[cell][setting][seed] = _record(cell, run)
            except (KeyError, TypeError, ValueError) as error:
                raise StateError(f"{path}, line {number}: not the record of a peer's run ({error!r})") from error
    return {
        cell: {setting: [runs[seed] for seed in sorted(runs)] for setting, runs in settings.items()}
        for cell, settings in found.items()
    }


def _record(cell: Cell, run: Mapping[str, Any]) -> Record:
    """The scripts save the best after 1, 2, ... evaluations. How many of these were feasible is known, but not which."""
    if len(run["best"]) != PROTOCOL_BUDGET:
        raise ValueError(f"{len(run['best'])} evaluations, not {PROTOCOL_BUDGET}")
    feasible = tuple(number < run["feasible"] for number in range(PROTOCOL_BUDGET))
    return Record(cell.at(run["seed"]), tuple(improvements(run["best"])), feasible, float(run["ask_seconds"]))


def contenders(records: Iterable[Record], results: Path) -> list[Record]:
    """The runs that are compared: ours at the seeds of everyone, and those of each peer's best setting."""
    ours = {PLAN.cell(row, column) for row in OWN for column in PLAN.columns}
    kept = [record for record in records if record.run.cell in ours and record.run.seed in SEEDS]
    for settings in load_peers(results).values():
        kept += settings[_best(settings)]
    return kept


def _best(settings: Mapping[Setting, Sequence[Record]]) -> Setting:
    """By the median; one that has run at fewer seeds than another does not count, for it may have been lucky."""
    return min(settings, key=lambda name: (-len(settings[name]), quantile([loss(record) for record in settings[name]], 0.5)))


def block(records: Iterable[Record], results: Path) -> str:
    """Medians and feasible shares, tests of the default strategy against each, its share of all pairs, ranks, settings."""
    kept = contenders(records, results)
    parts = [markdown(PLAN, kept), versus(PLAN, kept, REFERENCE), _pairs(kept), _average_ranks(kept), _settings(results)]
    return "\n\n".join(parts)


def _pairs(records: Sequence[Record]) -> str:
    """Over all problems and seeds at once, values of different problems can only be counted: a sign test."""
    grouped = by_cell(records)
    tested = {}
    for row in PLAN.rows:
        signs = []
        for column in PLAN.columns:
            losses = column_losses(PLAN, column, grouped)
            ours, theirs = losses.get(REFERENCE, {}), losses.get(row, {})
            signs += [float(np.sign(_order(ours[seed], theirs[seed]))) for seed in ours.keys() & theirs.keys()]
        if row != REFERENCE and signs:
            tested[row] = (signs.count(-1.0), len(signs), signed_rank(signs)[0])
    if not tested:
        return f"Pairs of runs, problem by problem and seed by seed: {NOT_RUN}."
    corrected = holm([p for *_, p in tested.values()])
    words = [
        f"{row.label} in {ahead} of {pairs} ({p_value(p)})"
        for (row, (ahead, pairs, _)), p in zip(tested.items(), corrected, strict=True)
    ]
    return f"Pairs of runs, problem by problem and seed by seed: {REFERENCE.label} is ahead of {', '.join(words)}."


def _order(a: float, b: float) -> int:
    return (a > b) - (a < b)


def ranked(records: Iterable[Record]) -> Plan:
    """The plan with those rows alone that have run at all."""
    there = {record.run.cell for record in records}
    return replace(PLAN, rows=tuple(row for row in PLAN.rows if any(PLAN.cell(row, c) in there for c in PLAN.columns)))


def _average_ranks(records: Sequence[Record]) -> str:
    plan = ranked(records)
    found = ranks(plan, records) if plan.rows else {}
    there = {record.run.cell for record in records}
    complete = sum(all(plan.cell(row, column) in there for row in plan.rows) for column in plan.columns) if found else 0
    missing = [row for row in PLAN.rows if row not in plan.rows]
    words = ", ".join(f"{row.label} {found[row]:.2f}" for row in sorted(found, key=found.__getitem__)) or NOT_RUN
    without = f"; {NOT_RUN}: {', '.join(row.label for row in missing)}" if missing and found else ""
    return f"Average ranks ({complete} of {len(plan.columns)} problems): {words}{without}."


def _settings(results: Path) -> str:
    """Which setting of a peer counts where."""
    peers = load_peers(results)
    lines = ["| problem | " + " | ".join(row.label for row in PEERS) + " |", "|" + " --- |" * (1 + len(PEERS))]
    for column in PLAN.columns:
        entries = []
        for row in PEERS:
            settings = peers.get(PLAN.cell(row, column))
            entries.append(NOT_RUN if settings is None else f"{', '.join(_best(settings))} (of {len(settings)})")
        lines.append(f"| {column[0]} | {' | '.join(entries)} |")
    return "\n".join(["What counted of each peer, sampler and way of telling it of failures:", "", *lines])
