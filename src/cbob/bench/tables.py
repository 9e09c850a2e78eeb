"""Tables of what was saved: as text, as markdown with the paper's numbers beside ours, and as rows of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

from cbob.bench.paper import printed
from cbob.bench.plans import Plan, Row
from cbob.bench.problems import get
from cbob.bench.runs import Cell, Record
from cbob.bench.significance import average_ranks, compare
from cbob.bench.summary import Summary, by_cell, loss, summarise

__all__ = ["NOT_RUN", "column_losses", "markdown", "number", "p_value", "ranks", "text", "versus"]

NOT_RUN = "not yet run"


def text(summaries: Iterable[Summary]) -> str:
    """A line for each cell, the cells of a problem side by side."""
    line = "{:24} {:8} {:16} {:>5} {:>11} {:>25} {:>9} {:>6} {:>8}"
    heads = ("problem", "scenario", "strategy", "seeds", "BOV median", "quartiles", "paper", "ROF", "ask ms")
    lines = [line.format(*heads)]
    for summary in sorted(summaries, key=lambda summary: (summary.cell.problem, summary.cell.scenario)):
        cell, paper = summary.cell, printed(summary.cell)
        lines.append(
            line.format(
                cell.problem,
                cell.scenario,
                f"{cell.strategy}/{cell.surrogate}",
                len(summary.seeds),
                f"{summary.median:.6g}",
                f"{summary.quantile(0.25):.6g} .. {summary.quantile(0.75):.6g}",
                "" if paper is None or paper.bov is None else f"{paper.bov:g}",
                f"{summary.rof:.0%}",
                f"{1e3 * summary.ask_seconds:.1f}",
            )
        )
    return "\n".join(lines)


def markdown(plan: Plan, records: Iterable[Record]) -> str:
    """A row for each problem, a column for each way of going about it: the median, the feasible share, the paper's two numbers
    in brackets. The best median of a problem is bold; * marks those that are not significantly worse."""
    kept = list(records)
    summaries, grouped = summarise(kept), by_cell(kept)
    lines = _head(["problem", "best known", "seeds", *(row.label for row in plan.rows)])
    for column in plan.columns:
        cells = {row: plan.cell(row, column) for row in plan.rows}
        there = {row: summaries[cell] for row, cell in cells.items() if cell in summaries}
        marks = _marks(there, {row: grouped[cells[row]] for row in there})
        problem = get(column[0])
        known = "?" if problem.optimum is None else number(problem.optimum)
        entries = [_entry(cells[row], there.get(row), marks.get(row, "")) for row in plan.rows]
        scenario = f" ({column[1]})" if len({scenario for _, scenario in plan.columns}) > 1 else ""
        lines.append(_line([problem.name + scenario, known, _seeds(there.values()), *entries]))
    return "\n".join(lines)


def versus(plan: Plan, records: Iterable[Record], reference: Row) -> str:
    """How the reference fares against each of the others: better, tie or worse, and Holm's corrected p."""
    grouped = by_cell(records)
    others = [row for row in plan.rows if row != reference]
    lines = _head(["problem", *(f"{reference.label} against {row.label}" for row in others)])
    turned = {"better": "worse", "worse": "better", "tie": "tie"}
    for column in plan.columns:
        losses = column_losses(plan, column, grouped)
        found = compare(losses, reference) if reference in losses else {}
        entries = [
            f"{turned[found[row].verdict]} ({p_value(found[row].corrected)}, {found[row].pairs} seeds)"
            if row in found
            else NOT_RUN
            for row in others
        ]
        lines.append(_line([column[0], *entries]))
    return "\n".join(lines)


def ranks(plan: Plan, records: Iterable[Record]) -> dict[Row, float]:
    """Average ranks over the problems of the plan on which every row has run."""
    grouped = by_cell(records)
    columns = {"/".join(column): column_losses(plan, column, grouped) for column in plan.columns}
    complete = {name: losses for name, losses in columns.items() if len(losses) == len(plan.rows)}
    return average_ranks(complete)


def column_losses(plan: Plan, column: tuple[str, str], grouped: Mapping[Cell, Sequence[Record]]) -> dict[Row, dict[int, float]]:
    """For each row that has run: seed -> best value, to be minimised."""
    cells = {row: plan.cell(row, column) for row in plan.rows}
    return {row: {r.run.seed: loss(r) for r in grouped[cell]} for row, cell in cells.items() if cell in grouped}


def number(value: float) -> str:
    """Four digits that say something, and no exponent where people would not write one."""
    if not isfinite(value):
        return "none feasible"
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _marks(there: Mapping[Row, Summary], grouped: Mapping[Row, Sequence[Record]]) -> dict[Row, str]:
    if len(there) < 2:
        return {}
    losses = {row: {r.run.seed: loss(r) for r in records} for row, records in grouped.items()}
    sign = -1.0 if get(next(iter(there.values())).cell.problem).direction == "maximize" else 1.0
    best = min(there, key=lambda row: sign * there[row].median)
    found = compare(losses, best)
    return {best: "best"} | {row: "tie" for row, comparison in found.items() if comparison.verdict != "worse"}


def _entry(cell: Cell, summary: Summary | None, mark: str) -> str:
    paper = printed(cell)
    beside = ""
    if paper is not None:
        beside = " [N/A]" if paper.bov is None or paper.rof is None else f" [{paper.bov:g}, {_percent(paper.rof)}]"
    if summary is None:
        return NOT_RUN + beside
    median = number(summary.median)
    median = {"best": f"**{median}**", "tie": f"{median}*"}.get(mark, median)
    return f"{median}, {_percent(summary.rof)}{beside}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def p_value(p: float) -> str:
    """As it stands in tables."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _seeds(summaries: Iterable[Summary]) -> str:
    counts = sorted({len(summary.seeds) for summary in summaries})
    return "0" if not counts else f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _head(names: Sequence[str]) -> list[str]:
    return [_line(names), _line(["---"] * len(names))]


def _line(entries: Sequence[str]) -> str:
    return f"| {' | '.join(entries)} |"
