"""Spaces whose parameters depend on each other.

Where an objective asks for some parameters only if others say so, its trials fall into *branches*: the sets of parameters that
trials had in common. Parameters of one branch mean nothing in another, so each branch has an engine of its own, over all of its
parameters together. Which branch is next is dealt by rank: the one with the best feasible value gets most turns, the r-th best
1/r^2 as many; a new one first gets a few turns whatever it is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cbob.integrations.optuna.history import History, Limit, Seen
from cbob.integrations.optuna.spaces import Distributions, levels

__all__ = ["Branch", "branches", "deciding", "next_branch"]

FAIR = 5  # turns that a branch gets before it is judged


@dataclass(frozen=True)
class Branch:
    """The trials that had exactly these parameters."""

    names: frozenset[str]
    told: tuple[Seen, ...]
    out: tuple[Seen, ...]

    def best(self, sign: float, limits: Sequence[Limit]) -> float:
        """The best objective (to be minimised) not known to be infeasible; infinite while there is none."""
        values = [sign * one.value for one in self.told if one.value is not None and not one.breaks(limits)]
        return float(np.min(values, initial=np.inf))


def branches(history: History) -> list[Branch]:
    """The branches in the order in which they were met. A trial that failed or still runs may not have asked for everything: it
    makes a branch only if its parameters are not part of another."""
    complete = {frozenset(one.stored) for one in history.told if one.value is not None}
    partial = {frozenset(one.stored) for one in history.told} or {frozenset(one.stored) for one in history.out}
    largest = {names for names in partial if not any(names < other for other in complete | partial)}
    sets = (complete | largest) - {frozenset()}
    found: dict[frozenset[str], tuple[list[Seen], list[Seen]]] = {}
    for place, group in enumerate((history.told, history.out)):
        for one in group:
            names = frozenset(one.stored)
            if names in sets:
                found.setdefault(names, ([], []))[place].append(one)
    return [Branch(names, tuple(told), tuple(out)) for names, (told, out) in found.items()]


def next_branch(found: Sequence[Branch], sign: float, limits: Sequence[Limit]) -> Branch | None:
    """Whose turn it is; None while there is no branch."""
    if len(found) < 2:
        return found[0] if found else None
    turns = [len(branch.told) + len(branch.out) for branch in found]
    if min(turns) < FAIR:
        return found[int(np.argmin(turns))]
    order = np.argsort([branch.best(sign, limits) for branch in found], kind="stable")
    share = np.empty(len(found))
    share[order] = 1.0 / np.arange(1, len(found) + 1) ** 2
    return found[int(np.argmin(np.array(turns) / share))]


def deciding(branch: Branch, others: Sequence[Branch], distributions: Distributions) -> Mapping[str, tuple[float, ...]]:
    """The parameters that decide for this branch, and the values to which they are restricted in it: choices or few whole
    numbers that were never seen both here and elsewhere. Values that were seen nowhere stay open."""
    found: dict[str, tuple[float, ...]] = {}
    for name in sorted(branch.names):
        values = levels(distributions[name])
        elsewhere = {one.stored[name] for other in others for one in other.told if name in other.names}
        here = {one.stored[name] for one in branch.told}
        if values is not None and here and elsewhere and not here & elsewhere:
            found[name] = tuple(value for value in values if value not in elsewhere)
    return found
