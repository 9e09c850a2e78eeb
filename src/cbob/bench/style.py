"""How the pictures look: one colour a strategy, nothing that says nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cbob.bench.plans import Row
from cbob.errors import CbobError

__all__ = ["BAND", "colour", "dashes", "drawing"]

# Okabe and Ito's colours, which stay apart for colour-blind eyes.
COLOURS = {
    "eic": "#0072B2",
    "cbob": "#D55E00",
    "cbob-mub": "#E69F00",
    "mesc": "#009E73",
    "tsc": "#CC79A7",
    "pi-cb": "#56B4E9",
    "auto": "#000000",
    "optuna-gp": "#009E73",
    "optuna-tpe": "#56B4E9",
    "botorch-logei": "#CC79A7",
    "botorch-scbo": "#E69F00",
}
THEIRS = ("optuna-", "botorch-")
GREY = "#888888"
BAND = 0.15  # opacity between quartiles
LOOK: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "font.size": 9,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 120,
}


def colour(row: Row) -> str:
    return COLOURS.get(row.strategy, GREY)


def dashes(row: Row) -> str:
    return "--" if row.surrogate == "gpc" or row.strategy.startswith(THEIRS) else "-"


@contextmanager
def drawing() -> Iterator[Any]:
    """matplotlib.pyplot, drawing to files, which needs no screen."""
    try:
        import matplotlib
    except ImportError as error:
        raise CbobError(f"pictures need matplotlib: pip install 'cbob[plot]' ({error})") from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with matplotlib.rc_context(LOOK):
        yield plt
        plt.close("all")
