"""The pictures of campaigns: trajectories, box plots, average ranks, and theorem 1; and the table of all pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from cbob.bench import sketches
from cbob.bench.convergence import FORMS, RHOS, Watch, load_watches
from cbob.bench.peers import PLAN as PEERS
from cbob.bench.peers import contenders, ranked
from cbob.bench.plans import Plan, Row, plan
from cbob.bench.problems import get
from cbob.bench.results import load
from cbob.bench.runs import Record
from cbob.bench.style import BAND, colour, dashes, drawing
from cbob.bench.summary import by_cell, quartile_paths
from cbob.bench.tables import ranks

__all__ = ["FIGURES", "Figure", "draw"]


class Figure(NamedTuple):
    """A picture: what it shows, and the function that draws it from the results, or gives None where there are none."""

    words: str
    drawn: Callable[[Any, Path], Any]


def draw(name: str, results: Path, folder: Path) -> Path | None:
    """Draw one picture into a folder."""
    with drawing() as plt:
        figure = FIGURES[name].drawn(plt, results)
        if figure is None:
            return None
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.png"
        figure.savefig(path, metadata={"Software": None})
        return path


Columns = list[tuple[tuple[str, str], dict[Row, list[Record]]]]


def _columns(table: Plan, records: Sequence[Record]) -> Columns:
    """For each problem of a table of which there is anything: the records of each row."""
    grouped = by_cell(records)
    found = []
    for column in table.columns:
        cells = {row: table.cell(row, column) for row in table.rows}
        if there := {row: grouped[cell] for row, cell in cells.items() if cell in grouped}:
            found.append((column, there))
    return found


def _panels(plt: Any, count: int, width: int = 3) -> tuple[Any, list[Any]]:
    across = min(count, width)
    down = ceil(count / across)
    figure, axes = plt.subplots(down, across, figsize=(3.4 * across, 2.7 * down), squeeze=False)
    panels = list(axes.ravel())
    for empty in panels[count:]:
        empty.set_visible(False)
    return figure, panels[:count]


def _legend(figure: Any, panels: Sequence[Any], across: int = 6) -> None:
    """One for all panels, below them."""
    entries: dict[str, Any] = {}
    for panel in panels:
        handles, labels = panel.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=min(len(entries), across))


def _trajectories(name: str) -> Callable[[Any, Path], Any]:
    def drawn(plt: Any, results: Path) -> Any:
        columns = _columns(plan(name), load(results))
        if not columns:
            return None
        figure, panels = _panels(plt, len(columns))
        _draw_trajectories(panels, columns)
        _legend(figure, panels)
        return figure

    return drawn


def _draw_trajectories(panels: Sequence[Any], columns: Columns) -> None:
    """A panel for each problem: medians and quartiles of the best so far."""
    for panel, ((problem, scenario), rows) in zip(panels, columns, strict=True):
        for row, records in rows.items():
            low, middle, high = quartile_paths(records)
            steps = np.arange(middle.size)
            shown = np.isfinite(middle)
            panel.plot(steps[shown], middle[shown], dashes(row), color=colour(row), lw=1.4, label=row.label)
            band = np.isfinite(low) & np.isfinite(high)
            panel.fill_between(steps[band], low[band], high[band], color=colour(row), alpha=BAND, lw=0)
        counts = sorted({len(records) for records in rows.values()})
        seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        panel.set(title=f"{problem}, {scenario} ({seeds} seeds)", xlabel="evaluations after the design")
        _focus(panel, problem, [record.best for records in rows.values() for record in records])
    panels[0].set_ylabel("best feasible value")


def _focus(panel: Any, problem: str, ends: Sequence[float | None]) -> None:
    """Nearly all of what runs end at, and twice that distance again towards where they come from."""
    found = [value for value in ends if value is not None]
    optimum = get(problem).optimum
    if not found:
        return
    sign = -1.0 if get(problem).direction == "maximize" else 1.0
    good, bad = (float(np.quantile(sign * np.array(found), q)) for q in (0.0, 0.9))
    good = good if optimum is None else sign * optimum
    span = max(bad - good, 0.01 * abs(good))
    limits = sorted((sign * (good - 0.1 * span), sign * (bad + 2.0 * span)))
    panel.set_ylim(*limits)
    panel.ticklabel_format(axis="y", useOffset=False)
    if optimum is not None:
        panel.axhline(optimum, color="black", lw=0.8, ls=":")


def _boxes(plt: Any, results: Path) -> Any:
    columns = [column for name in ("table1", "table2") for column in _columns(plan(name), load(results))]
    if not columns:
        return None
    figure, panels = _panels(plt, len(columns))
    for panel, ((problem, scenario), rows) in zip(panels, columns, strict=True):
        ends = [[record.best for record in records if record.best is not None] for records in rows.values()]
        boxes = panel.boxplot(
            ends, tick_labels=[row.label for row in rows], patch_artist=True, widths=0.6, medianprops={"color": "black"}
        )
        for box, row in zip(boxes["boxes"], rows, strict=True):
            box.set(facecolor=colour(row), alpha=0.45, hatch="//" if row.surrogate == "gpc" else "")
        panel.ticklabel_format(axis="y", useOffset=False)
        panel.tick_params(axis="x", labelrotation=35)
        panel.set(title=f"{problem}, {scenario}")
        if (optimum := get(problem).optimum) is not None:
            panel.axhline(optimum, color="black", lw=0.8, ls=":")
    panels[0].set_ylabel("best feasible value at the end")
    return figure


def _ranks(plt: Any, results: Path) -> Any:
    records = load(results)
    tables = [
        (name, found)
        for name in ("table1", "table2", "auto", "s3", "tuning", "held-out")
        if (found := ranks(plan(name), records))
    ]
    if not tables:
        return None
    figure, panels = _panels(plt, len(tables), width=2)
    for panel, (name, found) in zip(panels, tables, strict=True):
        _draw_ranks(panel, found, textwrap.fill(plan(name).title, 44))
    return figure


def _draw_ranks(panel: Any, found: Mapping[Row, float], title: str) -> None:
    ordered = sorted(found, key=found.__getitem__, reverse=True)
    for place, row in enumerate(ordered):
        panel.plot([1, found[row]], [place, place], color=colour(row), lw=1.5, ls=dashes(row))
        panel.plot(found[row], place, "o", color=colour(row))
    panel.set_yticks(range(len(ordered)), [row.label for row in ordered])
    panel.set(title=title, xlabel="average rank (1 is best)", xlim=(0.9, len(ordered) + 0.1))


def _peers(plt: Any, results: Path) -> Any:
    """Trajectories, and after these the ranks, once there are any."""
    records = contenders(load(results), results)
    columns = _columns(PEERS, records)
    if not columns:
        return None
    found = ranks(ranked(records), records)
    figure, panels = _panels(plt, len(columns) + bool(found))
    _draw_trajectories(panels[: len(columns)], columns)
    if found:
        _draw_ranks(panels[-1], found, "average ranks")
    _legend(figure, panels, across=4)
    return figure


def _theorem(plt: Any, results: Path) -> Any:
    watches = load_watches(results)
    if not watches:
        return None
    problems = list(dict.fromkeys(watch.problem for watch in watches))
    figure, axes = plt.subplots(len(problems), 2, figsize=(8.5, 2.9 * len(problems)), squeeze=False)
    for (left, right), problem in zip(axes, problems, strict=True):
        for form, line in zip(FORMS, ("-", "--"), strict=True):
            for rho, name in RHOS.items():
                chosen = [w for w in watches if (w.problem, w.form, w.rho) == (problem, form, rho)]
                if not chosen:
                    continue
                label, look = f"{name}, {form}", {"color": colour(Row(rho)), "ls": line, "lw": 1.2}
                for panel, paths in ((left, _paths(chosen, "largest")), (right, _paths(chosen, "gap"))):
                    panel.plot(np.arange(paths.shape[1]), np.median(paths, axis=0), label=label, **look)
                    panel.fill_between(
                        np.arange(paths.shape[1]),
                        *np.quantile(paths, [0.25, 0.75], axis=0),
                        color=colour(Row(rho)),
                        alpha=0.07,
                        lw=0,
                    )
        count = len({watch.seed for watch in watches if watch.problem == problem})
        left.set(yscale="log", title=f"{problem}: largest EICB ({count} seed{'s' * (count > 1)})")
        right.set(yscale="log", title=f"{problem}: best value above the optimum")
    for panel in axes[-1]:
        panel.set_xlabel("evaluations after the design")
    _legend(figure, list(axes.ravel()), across=3)
    return figure


def _paths(watches: Sequence[Watch], what: str) -> Any:
    """Held above what a logarithmic axis and the digits of a known optimum can show."""
    paths = [getattr(watch, what) for watch in watches]
    shortest = min(map(len, paths))
    return np.maximum(np.array([path[:shortest] for path in paths]), 1e-10)


FIGURES: Mapping[str, Figure] = MappingProxyType(
    {
        "eicb-toy": Figure("EICB on the toy: its surrogate, DPOF for several beta, trajectories", sketches.eicb_toy),
        "hlgp": Figure("HLGP: three readings, the posterior, DPOF", sketches.hlgp),
        "hlgp-gpc": Figure("HLGP against GPC on 36 points, half of them hidden", sketches.hlgp_gpc),
        "b1": Figure("B-1: DPOF with EMUB for several beta and gamma", sketches.b1),
        "trajectories-s1": Figure("trajectories of table 1", _trajectories("table1")),
        "trajectories-s2": Figure("trajectories of table 2", _trajectories("table2")),
        "b2": Figure("B-2: trajectories of the EI-based methods", _trajectories("b3")),
        "trajectories-s3": Figure("trajectories where nothing is told of a failure", _trajectories("s3")),
        "boxes": Figure("box plots of the best values at the end", _boxes),
        "ranks": Figure("average ranks", _ranks),
        "peers": Figure("trajectories and average ranks of cbob's strategies and of its peers", _peers),
        "theorem1": Figure("theorem 1, watched", _theorem),
    }
)
