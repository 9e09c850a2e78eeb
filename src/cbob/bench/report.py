"""docs/reproduction.md: its tables and pictures come from the saved results, between markers; the words are written by hand.

A block stands between `<!-- begin NAME -->` and `<!-- end NAME -->`. Writing the same results again changes nothing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cbob.bench.convergence import FORMS, RHOS, load_watches
from cbob.bench.figures import FIGURES, draw
from cbob.bench.illustrations import AREAS, areas
from cbob.bench.paper import COLUMNS, PAPER
from cbob.bench.peers import block as peers_block
from cbob.bench.plans import PLANS, Plan, Row
from cbob.bench.problems import get
from cbob.bench.results import ENVIRONMENTS, load
from cbob.bench.runs import Cell, Record
from cbob.bench.significance import signed_rank
from cbob.bench.summary import Summary, cost, summarise
from cbob.bench.tables import NOT_RUN, markdown, number, ranks, versus
from cbob.errors import CbobError

__all__ = ["PAGE", "blocks", "filled", "write"]

PAGE = Path("docs") / "reproduction.md"
DEFAULT, PAPERS = Row("auto"), Row("cbob")  # whose tests are shown, where the table has it


def write(results: Path, *, pictures: bool = True) -> Iterator[str]:
    """Bring the page beside the results up to date; says what it does."""
    root = results.parents[1]
    page = root / PAGE
    if not page.exists():
        raise CbobError(f"{page} does not exist: the report belongs to the results in the repository")
    areas(results)
    made = blocks(load(results), results)
    if pictures:
        for name in FIGURES:
            path = draw(name, results, root / "docs" / "figures")
            yield f"{name}: {path or NOT_RUN}"
    made |= {f"figure-{name}": _picture(name, root) for name in FIGURES}
    page.write_text(filled(page.read_text(encoding="utf-8"), made), encoding="utf-8")
    yield f"{page}: {len(made)} blocks"


def filled(page: str, made: dict[str, str]) -> str:
    """The page with its blocks anew; a block of the page that nobody makes is an error."""

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in made:
            raise CbobError(f"the page has a block {name!r}; those that can be made are {', '.join(made)}")
        return f"<!-- begin {name} -->\n{made[name]}\n<!-- end {name} -->"

    return re.sub(r"<!-- begin (?P<name>\S+) -->\n.*?<!-- end (?P=name) -->", block, page, flags=re.DOTALL)


def blocks(records: Sequence[Record], results: Path) -> dict[str, str]:
    """Every block but the pictures, by name."""
    made = {"summary": _claims(records), "cost": _cost(records), "made-by": _made_by(records, results)}
    for name, plan in PLANS.items():
        made[name] = markdown(plan, records)
        reference = DEFAULT if DEFAULT in plan.rows else PAPERS
        made[f"{name}-tests"] = versus(plan, records, reference)
    made["peers"] = peers_block(records, results)
    made["ranks"] = _ranks(records)
    made["theorem1"] = _theorem(results)
    made["hlgp-gpc"] = _areas(results)
    return made


def _picture(name: str, root: Path) -> str:
    path = root / "docs" / "figures" / f"{name}.png"
    return f"![{FIGURES[name].words}](figures/{name}.png)" if path.exists() else f"*{FIGURES[name].words}: {NOT_RUN}.*"


def _claims(records: Sequence[Record]) -> str:
    """The paper's method on the paper's problems: its number, ours, and that of the default strategy."""
    summaries = summarise(records)
    lines = _head(["problem", "the paper's CBOB", "ours", "auto", "seeds", "best known"])
    for column, problems in COLUMNS.items():
        for problem in problems:
            cell = next(cell for cell in PAPER if cell.problem == problem and cell.strategy == "cbob")
            optimum = get(problem).optimum
            found = [summaries.get(one) for one in (cell, replace(cell, strategy="auto"))]
            counts = sorted({0 if one is None else len(one.seeds) for one in found})
            entries = (
                f"{column} ({problem}, {cell.scenario})",
                f"{PAPER[cell].bov:g}",
                *(NOT_RUN if one is None else f"{number(one.median)} ({_quartiles(one)})" for one in found),
                " to ".join(map(str, counts)),
                "?" if optimum is None else number(optimum),
            )
            lines.append(f"| {' | '.join(entries)} |")
    return "\n".join(lines)


def _head(names: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(names)} |", "|" + " --- |" * len(names)]


def _quartiles(summary: Summary) -> str:
    return f"{number(summary.quantile(0.25))} to {number(summary.quantile(0.75))}"


def _ranks(records: Sequence[Record]) -> str:
    lines = []
    for plan in PLANS.values():
        if found := ranks(plan, records):
            ordered = ", ".join(f"{row.label} {found[row]:.2f}" for row in sorted(found, key=found.__getitem__))
            lines.append(f"- {plan.title} ({_complete(plan, records)} of {len(plan.columns)} problems): {ordered}")
        else:
            lines.append(f"- {plan.title}: {NOT_RUN}")
    return "\n".join(lines)


def _complete(plan: Plan, records: Sequence[Record]) -> int:
    """Problems on which every row has run."""
    there: set[Cell] = {record.run.cell for record in records}
    return sum(all(plan.cell(row, column) in there for row in plan.rows) for column in plan.columns)


def _cost(records: Sequence[Record]) -> str:
    known = [record for record in records if record.evaluation_seconds is not None]
    if not known:
        return f"Processor hours: {NOT_RUN}."
    hours = cost(known)
    total = sum(hours.values())
    return (
        f"{len(known)} runs: {total:.2g} processor hours, of which {hours['asking'] / total:.0%} went into asking, "
        f"{hours['evaluating'] / total:.0%} into evaluations, {hours['designs'] / total:.0%} into the shared initial designs."
    )


def _made_by(records: Sequence[Record], results: Path) -> str:
    path = results / ENVIRONMENTS
    known: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    lines = [
        "| made by | runs | cbob | engine | problems | Python | numpy | scipy | BLAS |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, count in sorted(Counter(record.environment or "" for record in records).items()):
        by = known.get(name)
        if by is None:
            entries = [name or "the first format of records", str(count), *["not recorded"] * 7]
        else:
            packages = by["packages"]
            entries = [name, str(count), *(str(by[key]) for key in ("cbob", "engine", "problems", "python"))]
            entries += [packages["numpy"], packages["scipy"], ", ".join(by["blas"])]
        lines.append(f"| {' | '.join(entries)} |")
    return "\n".join(lines)


def _theorem(results: Path) -> str:
    watches = load_watches(results)
    if not watches:
        return f"*{NOT_RUN}*"
    lines = [
        "| problem | form | acquisition | seeds | evaluations | largest EICB: first, last | gap: first, last |",
        "|" + " --- |" * 7,
    ]
    for problem in dict.fromkeys(watch.problem for watch in watches):
        for form in FORMS:
            for rho, name in RHOS.items():
                chosen = [w for w in watches if (w.problem, w.form, w.rho) == (problem, form, rho)]
                if not chosen:
                    continue
                ends = [
                    f"{np.median([getattr(w, what)[at] for w in chosen]):.1e}" for what in ("largest", "gap") for at in (0, -1)
                ]
                count = min(len(w.largest) for w in chosen)
                entries = [problem, form, name, str(len(chosen)), str(count), ", ".join(ends[:2]), ", ".join(ends[2:])]
                lines.append(f"| {' | '.join(entries)} |")
    return "\n".join(lines)


def _areas(results: Path) -> str:
    if not (results / AREAS).exists():
        return f"*{NOT_RUN}*"
    shares = areas(results)
    hlgp, gpc = np.array(shares["HLGP"]), np.array(shares["GPC"])
    p, _ = signed_rank(hlgp - gpc)
    return (
        f"Over {len(hlgp)} random functions HLGP misjudges {hlgp.mean():.1%} of the square in the mean, GPC {gpc.mean():.1%}; "
        f"HLGP is the better one on {int((hlgp < gpc).sum())} of them (signed-rank test: p = {p:.1g})."
    )
