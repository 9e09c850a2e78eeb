"""Is a difference more than luck? Paired over seeds, because runs of one seed share their initial design.

Two strategies on one problem: Wilcoxon's signed-rank test, two-sided, on the differences of the best values. Its null
distribution is computed exactly, ties in rank and differences of 0 included (Pratt: zeros are ranked, then left out). All
comparisons of one column are corrected together by Holm's step-down rule, which holds the chance of any false claim among
them to the level, whatever their dependence. What is not significant then is a tie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

__all__ = ["LEVEL", "Comparison", "average_ranks", "compare", "holm", "signed_rank"]

LEVEL = 0.05
Name = TypeVar("Name")


@dataclass(frozen=True)
class Comparison:
    """How one fares against a reference: `verdict` is "better", "worse" or "tie"."""

    pairs: int
    p: float
    corrected: float
    verdict: str


def signed_rank(differences: ArrayLike) -> tuple[float, float]:
    """The p-value of Wilcoxon's test, and the rank sum of the positive differences less that of the negative ones."""
    d = np.asarray(differences, dtype=float)
    ranks = np.rint(2.0 * rankdata(np.abs(d))).astype(int)[d != 0.0]  # doubled, so that shared ranks are whole numbers
    signs = np.sign(d[d != 0.0]).astype(int)
    if not ranks.size:
        return 1.0, 0.0
    total, positive = int(ranks.sum()), int(ranks[signs > 0].sum())
    ways = np.zeros(total + 1)  # of all 2^n signs, as shares: how many lead to each positive rank sum
    ways[0] = 1.0
    for rank in ranks:
        ways[rank:] = (ways[rank:] + ways[: total + 1 - rank]) / 2.0 if rank else ways
        ways[:rank] /= 2.0
    extreme = max(positive, total - positive)
    return min(1.0, 2.0 * float(ways[extreme:].sum())), (2 * positive - total) / 2.0


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's corrected p-values, in the order given."""
    corrected, before = [0.0] * len(ps), 0.0
    for place, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        before = max(before, min(1.0, (len(ps) - place) * ps[index]))
        corrected[index] = before
    return corrected


def compare(losses: Mapping[Name, Mapping[int, float]], reference: Name) -> dict[Name, Comparison]:
    """Each of the others against the reference, on the seeds that both have. `losses[name][seed]` is to be small; it is
    infinite where nothing feasible was found, which ranks behind all else."""
    tested: dict[Name, tuple[int, float, float]] = {}
    own = losses[reference]
    for name, other in losses.items():
        if name != reference and (seeds := sorted(own.keys() & other.keys())):
            a, b = _finite([other[seed] for seed in seeds], [own[seed] for seed in seeds])
            tested[name] = (len(seeds), *signed_rank(a - b))
    corrected = holm([p for _, p, _ in tested.values()])
    return {
        name: Comparison(pairs, p, q, "tie" if q > LEVEL else "better" if balance < 0 else "worse")
        for (name, (pairs, p, balance)), q in zip(tested.items(), corrected, strict=True)
    }


def _finite(a: Sequence[float], b: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """With every infinity replaced by one value so bad that its difference from any other outranks all the rest."""
    known = [value for value in (*a, *b) if isfinite(value)] or [0.0]
    lost = max(known) + 2.0 * (max(known) - min(known)) + 1.0
    x, y = (np.array([value if isfinite(value) else lost for value in values]) for values in (a, b))
    return x, y


def average_ranks(losses: Mapping[str, Mapping[Name, Mapping[int, float]]]) -> dict[Name, float]:
    """`losses[problem][name][seed]`: ranks (1 is best, ties share) among all names at each seed that all of them have, in the
    mean over seeds, and then over problems. A problem that some name lacks is left out."""
    names = list(dict.fromkeys(name for column in losses.values() for name in column))
    means = []
    for column in losses.values():
        if len(column) < len(names):
            continue
        seeds = sorted(set.intersection(*(set(column[name]) for name in names)))
        if seeds:
            means.append(np.mean([rankdata([column[name][seed] for name in names]) for seed in seeds], axis=0))
    return dict(zip(names, np.mean(means, axis=0).tolist(), strict=True)) if means else {}
