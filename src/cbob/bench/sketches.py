"""The paper's small pictures, drawn from `illustrations`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cbob.acquisition.feasibility import POB
from cbob.bench import illustrations as data
from cbob.bench.plans import Row
from cbob.bench.style import BAND, colour

__all__ = ["b1", "eicb_toy", "hlgp", "hlgp_gpc"]

BETAS = (0.0, 0.5, 1.0, 1.96, 3.0)
BLUE, RED, GREEN = "#0072B2", "#D55E00", "#009E73"


def _shades(plt: Any, count: int) -> Any:
    return plt.get_cmap("viridis")(np.linspace(0.0, 0.85, count))


def _believed(panel: Any, x: Any, mean: Any, std: Any, name: str) -> None:
    panel.plot(x, mean, color=BLUE, lw=1.4, label=name)
    panel.fill_between(x, mean - 1.96 * std, mean + 1.96 * std, color=BLUE, alpha=BAND, lw=0)
    panel.axhline(0.0, color="black", lw=0.8)


def eicb_toy(plt: Any, results: Path) -> Any:
    """Left above the surrogate of the constraint, left below DPOF, right the trajectories."""
    limit, x = data.toy_limit(), np.linspace(2.5, 5.0, 501)
    rows = x[:, None] / 10.0
    figure = plt.figure(figsize=(9.5, 4.6))
    grid = figure.add_gridspec(2, 2, width_ratios=[1.25, 1.0])
    above, below, right = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0]), figure.add_subplot(grid[:, 1])

    mean, std = limit.predict(rows)
    _believed(above, x, mean, std, "surrogate, 95%")
    above.plot(x, data.toy_value(x), ":", color=RED, label="constraint")
    learned = np.array(data.LEARNED)
    above.plot(learned, data.toy_value(learned), "o", color="black", ms=4, label="readings")
    above.set(title="What six readings say of the constraint", ylabel="g(x)")
    above.legend(loc="upper right")

    for beta, shade in zip(BETAS, _shades(plt, len(BETAS)), strict=True):
        line = "--" if beta == 0.0 else "-"
        name = "0 (POF)" if beta == 0.0 else f"{beta:g}"
        below.plot(x, data.dpof(limit.posterior, rows, POB(beta)), line, color=shade, label=name)
    below.set(title="DPOF with POB", xlabel="x", ylabel="DPOF", ylim=(-0.02, 1.05))
    below.legend(title="beta", ncols=2)

    for strategy in ("eic", "cbob"):
        row, paths = Row(strategy), data.toy_trajectories(strategy)
        low, middle, high = np.nanquantile(paths, [0.25, 0.5, 0.75], axis=0)
        steps = np.arange(paths.shape[1])
        right.plot(steps, middle, color=colour(row), label="EIC" if strategy == "eic" else "EICB")
        right.fill_between(steps, low, high, color=colour(row), alpha=BAND, lw=0)
    right.axhline(-1.5828849192, color="black", lw=0.8, ls=":", label="optimum")
    right.set(
        title=f"Median and quartiles of {data.EXPERIMENTS} experiments", xlabel="evaluations", ylabel="best feasible value"
    )
    right.legend()
    return figure


def hlgp(plt: Any, results: Path) -> Any:
    """Left what each reading says, right above the posterior, right below DPOF."""
    x, values, broken = np.array([0.2, 0.8]), np.array([-0.7, -1.0]), 0.5
    grid = np.linspace(0.0, 1.0, 401)
    before, after = data.three_readings(x, values, broken)
    figure = plt.figure(figsize=(9.5, 4.6))
    layout = figure.add_gridspec(2, 2, width_ratios=[1.0, 1.25])
    left, above, below = figure.add_subplot(layout[:, 0]), figure.add_subplot(layout[0, 1]), figure.add_subplot(layout[1, 1])

    _believed(left, grid, *before.predict(grid[:, None]), "from the two values, 95%")
    left.plot(x, values, "o", color="black", ms=5, label="values (Gaussian likelihood)")
    mean, std = (float(part[0]) for part in before.predict(np.array([[broken]])))
    height = np.linspace(mean - 3.2 * std, mean + 3.2 * std, 200)
    density = np.exp(-0.5 * ((height - mean) / std) ** 2) * 0.16
    left.fill_betweenx(
        height[height > 0], broken, broken + density[height > 0], color=RED, alpha=0.5, lw=0, label='"it broke" (truncated)'
    )
    left.plot(broken + density, height, color="black", lw=0.8)
    left.set(title="Three readings", xlabel="x", ylabel="g(x)")
    left.set_ylim(-5.5, 2.5)
    left.legend(loc="lower left")

    _believed(above, grid, *after.predict(grid[:, None]), "HLGP by EP, 95%")
    above.plot(x, values, "o", color="black", ms=5)
    above.axvline(broken, color=RED, lw=1.2, ls="--", label="broke here")
    above.set(title="Posterior", ylabel="g(x)")
    above.legend(loc="lower left", ncols=2)

    for beta, shade in zip(BETAS, _shades(plt, len(BETAS)), strict=True):
        line = "--" if beta == 0.0 else "-"
        below.plot(
            grid, data.dpof(after, grid[:, None], POB(beta)), line, color=shade, label="0 (POF)" if beta == 0 else f"{beta:g}"
        )
    below.set(title="DPOF with POB", xlabel="x", ylabel="DPOF", ylim=(-0.02, 1.05))
    below.legend(title="beta", ncols=2)
    return figure


def hlgp_gpc(plt: Any, results: Path) -> Any:
    """The boundary that each believes in, the true one, and what is misjudged."""
    found = data.typical(results)
    edge = (np.arange(data.FINE) + 0.5) / data.FINE
    figure, panels = plt.subplots(1, 2, figsize=(8.0, 4.1))
    for panel, (name, holds) in zip(panels, found.believed.items(), strict=True):
        wrong = (holds >= 0.5) != (found.truth <= 0.0)
        panel.contourf(edge, edge, wrong.T.astype(float), levels=[0.5, 1.5], colors=[RED], alpha=0.25)
        panel.contour(edge, edge, found.truth.T, levels=[0.0], colors="black", linestyles=":", linewidths=1.4)
        panel.contour(edge, edge, holds.T, levels=[0.5], colors=BLUE, linewidths=1.6)
        panel.plot(*found.points[~found.broken].T, "o", color=GREEN, ms=5, clip_on=False, label="held")
        panel.plot(*found.points[found.broken].T, "x", color=RED, ms=6, clip_on=False, label="broke")
        panel.plot([], [], ":", color="black", label="true boundary")
        panel.plot([], [], color=BLUE, label="believed boundary")
        panel.set(
            title=f"{name}: {found.area[name]:.1%} of the square misjudged",
            aspect="equal",
            xlim=(-0.03, 1.03),
            ylim=(-0.03, 1.03),
        )
        panel.grid(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def b1(plt: Any, results: Path) -> Any:
    """DPOF with EMUB: a panel for each gamma, a line for each beta."""
    limit, x = data.toy_limit(), np.linspace(2.5, 5.0, 501)
    rows = x[:, None] / 10.0
    betas, gammas = (0.5, 1.0, 1.96, 3.0), (0.05, 0.2, 1.0)
    found = data.emubs(limit.posterior, rows, betas, gammas)
    names = [f"{gamma:g}" for gamma in gammas] + ["Adapt"]
    figure, panels = plt.subplots(1, len(names), figsize=(3.0 * len(names), 2.9), sharey=True)
    for panel, gamma in zip(panels, names, strict=True):
        panel.plot(x, data.dpof(limit.posterior, rows, POB(0.0)), "--", color="#888888", label="POF")
        for beta, shade in zip(betas, _shades(plt, len(betas)), strict=True):
            panel.plot(x, data.dpof(limit.posterior, rows, found[beta, gamma]), color=shade, label=f"beta {beta:g}")
        panel.set(title=f"gamma {gamma}", xlabel="x", ylim=(-0.02, 1.05))
    panels[0].set_ylabel("DPOF with EMUB")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5)
    return figure
