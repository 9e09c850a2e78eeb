"""What the book reads of a trial, and the rules by which it judges claims and losses.

An entry is read once from a finished trial, which never changes; so a claim among thousands of trials looks at few of them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cbob.study.names import CLAIM, FAILURE, INTERRUPTED, LOST, PROPOSED, WITHDRAWN
from cbob.study.records import failure_of, is_counted

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

__all__ = ["Entries", "Entry", "Known", "comes_again", "is_good", "owed", "place_of"]

Point = tuple[Any, ...]


@dataclass(frozen=True)
class Entry:
    """One trial, as far as claims depend on it."""

    trial: FrozenTrial
    number: int
    running: bool  # a driver runs it; trials enqueued or run by others do not use up the budget before they are finished
    counted: bool  # finished, and counts towards the budget
    lost: bool  # withdrawn ones included
    withdrawn: bool
    going: bool  # running, and marked as lost already: its last write is on its way
    driver: str | None
    token: str | None
    attempt: int
    retry_of: int | None
    point: Point | None  # what is or would have been tried, in the order of the space; None if that is not known

    @property
    def next_attempt(self) -> int:
        """That of its retry: whoever was told to stop spent none."""
        return self.attempt + (failure_of(self.trial)[1] != INTERRUPTED)


class Entries:
    """Makes entries, those of finished trials once."""

    def __init__(self, distributions: Mapping[str, BaseDistribution]) -> None:
        self.distributions = distributions
        self._finished: dict[int, Entry] = {}

    def of(self, trials: Iterable[FrozenTrial]) -> list[Entry]:
        """The entries of all trials of a study, in order of their numbers."""
        return [self._finished.get(number) or self._read(trial) for number, trial in enumerate(trials)]

    def point(self, params: Mapping[str, Any]) -> Point:
        """A point of the space, as entries have it."""
        return tuple(params[name] for name in self.distributions)

    def _read(self, trial: FrozenTrial) -> Entry:
        claim: Mapping[str, Any] = trial.system_attrs.get(CLAIM) or {}
        finished = trial.state.is_finished()
        failure = failure_of(trial)
        marked = trial.user_attrs.get(FAILURE)
        entry = Entry(
            trial=trial,
            number=trial.number,
            running=trial.state.name == "RUNNING" and CLAIM in trial.system_attrs,
            counted=is_counted(trial),
            lost=failure[0] == LOST,
            withdrawn=failure == (LOST, WITHDRAWN),
            going=not finished and isinstance(marked, Mapping) and marked.get("kind") == LOST,
            driver=claim.get("driver"),
            token=claim.get("token"),
            attempt=int(claim.get("attempt", 0)),
            retry_of=claim.get("retry_of"),
            point=self._point(trial),
        )
        if finished:
            self._finished[trial.number] = entry
        return entry

    def _point(self, trial: FrozenTrial) -> Point | None:
        if trial.params.keys() == self.distributions.keys():
            return self.point(trial.params)
        proposed = trial.system_attrs.get(PROPOSED) or {}
        if not self.distributions.keys() <= proposed.keys():
            return None
        return tuple(spot.to_external_repr(proposed[name]) for name, spot in self.distributions.items())


@dataclass(frozen=True)
class Known:
    """The trials whose points were known when all trials were read."""

    count: int = 0
    without: frozenset[int] = frozenset()  # those that had none yet: few, so that keeping this costs little

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Known:
        return cls(len(entries), frozenset(entry.number for entry in entries if entry.point is None))

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and number < self.count and number not in self.without


def owed(entries: Sequence[Entry]) -> Entry | None:
    """The first lost trial that has to be tried again. One without a point, or whose point another trial has, is owed nothing:
    it was lost while it asked."""
    lost = [entry for entry in entries if entry.lost and not entry.withdrawn and entry.point is not None]
    if not lost:
        return None
    taken = _taken_over(entries)
    elsewhere = {entry.point for entry in entries if not entry.lost}
    return next((entry for entry in lost if entry.number not in taken and entry.point not in elsewhere), None)


def is_good(mine: Entry, entries: Sequence[Entry], budget: int) -> bool:
    """Whether a claim may run; whatever is decided, no later trial changes it to the worse."""
    before = [entry for entry in entries if entry.number < mine.number]
    if sum(entry.counted or entry.running for entry in before) >= budget:
        return False
    if mine.retry_of is None:
        return True
    if any(entry.retry_of == mine.retry_of and not entry.withdrawn for entry in before):
        return False
    return all(entry.point != mine.point for entry in entries if entry.number != mine.number and not entry.lost)


def comes_again(mine: Entry, entries: Sequence[Entry], known: Container[int]) -> bool:
    """Whether a new point is one that another trial was given while the sampler chose it: by another driver that asked at
    the same time, or because the trial that had it was being lost, which the sampler takes no notice of, and retried. The
    sampler knew the points of the trials in `known`, and repeats one only where nothing else is left."""
    same = [entry for entry in entries if entry.point == mine.point and entry.number != mine.number and not entry.withdrawn]
    if not same:
        return False
    taken = _taken_over(entries)
    return any(entry.number not in (taken if entry.lost or entry.going else known) for entry in same)


def place_of(number: int, entries: Sequence[Entry]) -> int:
    """The row of the space-filling design that belongs to a trial: one for each trial before it, but for retries, which have
    the point of another. It depends on nothing that changes after a trial was created, so no two trials share a row, whatever
    ends, dies or is withdrawn while they ask."""
    return sum(entry.number < number and entry.retry_of is None for entry in entries)


def _taken_over(entries: Sequence[Entry]) -> set[int]:
    """The lost trials whose retry was claimed."""
    return {entry.retry_of for entry in entries if entry.retry_of is not None and not entry.withdrawn}
