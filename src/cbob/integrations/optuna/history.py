"""The trials of a study as they count: in order of completion, without those that say nothing.

COMPLETE   its value and its readings count
FAIL       its readings and what was named count; with nothing named it is an unexplained failure
PRUNED     no failure, and its intermediate values are no objective: readings that broke a limit count, and otherwise
           the point is believed to hold nothing new, like one that is still out
RUNNING    still out: believed, by the parameters it has or was proposed
WAITING    enqueued, without a point of its own: ignored
lost       ignored, as if it had never been: failures of kind "lost", and those that Optuna's heartbeat had run again
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.trial import FrozenTrial, TrialState

from cbob.constraints import HUGE, NAME, RAN, Constraint
from cbob.errors import TrialError, shown
from cbob.integrations.optuna import reports
from cbob.integrations.optuna.reports import FAILURE, LOST, READINGS
from cbob.integrations.optuna.spaces import Codec, Distributions, internal
from cbob.parameters import Value
from cbob.trials import SATISFIED, UNKNOWN, VIOLATED, Forecast, Reading, Trial, conclude

__all__ = ["FORECAST", "PROPOSED", "History", "Limit", "Placed", "Seen", "margins_to_store"]

PROPOSED = "cbob:proposed"  # the stored values of all parameters proposed for a trial, from before it asks for the first
FORECAST = "cbob:forecast"  # what was expected of it: the numbers of a `cbob.trials.Forecast`
RETRIED = "retry_history"  # where Optuna's RetryHeartbeatStaleTrialCallback lists the trials whose workers died
FOREVER = datetime.max
PATIENCE = timedelta(minutes=5)  # no ask takes as long


@dataclass(frozen=True)
class Limit:
    """A constraint under the name that users know it by, which may be one that the engine does not accept."""

    name: str
    constraint: Constraint

    @classmethod
    def declared(cls, constraint: Constraint) -> Limit:
        return cls(constraint.name, constraint)

    @classmethod
    def discovered(cls, name: str) -> Limit:
        """One that a trial spoke of: its readings hold up to 0, as Optuna has it."""
        plain = NAME.fullmatch(name) and name != RAN
        return cls(name, Constraint(name if plain else f"name {name.encode().hex() or 'empty'}", 0.0))

    def at(self, margin: float) -> Reading:
        """The reading that lies so far beyond the limit; an infinite distance, or the largest float, is no more than a side."""
        if abs(margin) >= HUGE:
            return VIOLATED if margin > 0 else SATISFIED
        return Reading.measured(self.constraint.reading_of(margin))


@dataclass(frozen=True)
class Placed:
    """Where a trial lies in a space."""

    point: Mapping[str, Value]
    row: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Seen:
    """One trial that counts."""

    frozen: FrozenTrial
    _places: dict[Codec, Placed | None] = field(default_factory=dict)  # by the codec that asked last

    @property
    def number(self) -> int:
        return self.frozen.number

    @property
    def state(self) -> TrialState:
        return self.frozen.state

    @cached_property
    def stored(self) -> dict[str, float]:
        """The values of its parameters as Optuna stores them, but for those with a single value. What was proposed for a trial
        stands in for what it had no time to ask for, as long as it did what was proposed."""
        own: dict[str, float] = {}
        for name, spot in self.frozen.distributions.items():
            value = internal(spot, self.frozen.params[name])
            if value is not None and not spot.single():
                own[name] = value
        proposed: dict[str, float] = self.frozen.system_attrs.get(PROPOSED, {})
        if self.state == TrialState.COMPLETE or not own.keys() <= proposed.keys():
            return own
        return {**proposed, **own}

    def placed(self, codec: Codec) -> Placed | None:
        """Where it lies; None if it lies outside. It is kept for as long as the same codec asks."""
        if codec not in self._places:
            self._places.clear()
            point = codec.encode(self.stored)
            self._places[codec] = None if point is None or codec.space is None else Placed(point, codec.space.encode(point))
        return self._places[codec]

    @cached_property
    def margins(self) -> dict[str, float]:
        """What `set_constraint` was told, by name."""
        return dict(sorted(self.frozen.constraints.items()))

    @cached_property
    def readings(self) -> dict[str, float | None]:
        return dict(sorted(_mapping(self.frozen.user_attrs.get(READINGS)).items()))

    @cached_property
    def violated(self) -> tuple[str, ...]:
        return tuple(map(str, self.frozen.user_attrs.get(reports.VIOLATED) or ()))

    @cached_property
    def satisfied(self) -> tuple[str, ...]:
        return tuple(map(str, self.frozen.user_attrs.get(reports.SATISFIED) or ()))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The constraints that it says something of."""
        return tuple(dict.fromkeys([*self.margins, *self.readings, *self.violated, *self.satisfied]))

    @property
    def value(self) -> float | None:
        """The objective, if it has one: a pruned trial may have been given its last intermediate value, which is none."""
        complete = self.state == TrialState.COMPLETE and self.frozen.values
        return self.frozen.values[0] if complete and math.isfinite(self.frozen.values[0]) else None

    @cached_property
    def forecast(self) -> Forecast | None:
        """What was expected of it when it was proposed; None if it then tried something else, as an enqueued trial does."""
        given = self.frozen.system_attrs.get(FORECAST)
        proposed: dict[str, float] = self.frozen.system_attrs.get(PROPOSED, {})
        followed = all(proposed.get(name, value) == value for name, value in self.stored.items())
        return Forecast.from_dict(given) if given is not None and followed else None

    def counts(self, limits: Sequence[Limit]) -> bool:
        """Whether it has a result, and is not merely believed."""
        return self.state != TrialState.PRUNED or self.breaks(limits)

    def reading(self, limit: Limit) -> Reading | float:
        """What it says of a limit; NaN if a reading was taken in vain. What was stored may contradict itself: a limit that was
        named as broken is broken, and a reading beats a limit that was named as kept."""
        known: Reading | float = UNKNOWN
        if limit.name in self.readings:
            raw = self.readings[limit.name]
            known = math.nan if raw is None else Reading.measured(raw)
        elif (margin := self.margins.get(limit.name)) is not None:
            known = limit.at(margin)
        if limit.name in self.violated and not _breaks(known, limit):
            return VIOLATED
        return SATISFIED if limit.name in self.satisfied and known == UNKNOWN else known

    def breaks(self, limits: Sequence[Limit]) -> bool:
        """Whether a limit is known to be broken."""
        return any(_breaks(self.reading(limit), limit) for limit in limits)

    def conclude(self, number: int, params: Mapping[str, Value], limits: Sequence[Limit]) -> Trial:
        """The trial as the engine reads it."""
        value = self.frozen.values[0] if self.state == TrialState.COMPLETE and self.frozen.values else None
        reason = _mapping(self.frozen.user_attrs.get(FAILURE)).get("reason")
        return conclude(
            Trial(number, params, forecast=self.forecast),
            [limit.constraint for limit in limits],
            value,
            readings={limit.constraint.name: self.reading(limit) for limit in limits},
            failed=reason or (self.state == TrialState.FAIL),
        )


@dataclass(frozen=True)
class History:
    """What the storage holds, when trial `asking` asks."""

    told: tuple[Seen, ...]  # those that are done, in order of completion, so that what comes is appended
    out: tuple[Seen, ...]  # those that run, in order of number; the trial that asks is not among them
    asking: int
    started: datetime | None = None  # when the trial that asks did

    @classmethod
    def of(
        cls,
        trials: Iterable[FrozenTrial],
        asking: int,
        *,
        started: datetime | None = None,
        kept: dict[int, Seen] | None = None,
    ) -> History:
        """`kept` saves reading finished trials again; they never change."""
        counted = list(trials)
        lost = {number for trial in counted for number in _numbers(trial.system_attrs.get(RETRIED))}
        kept = {} if kept is None else kept
        seen = [_seen(trial, kept) for trial in counted if not _lost(trial, lost) and trial.number != asking]
        told = [one for one in seen if one.state.is_finished()]
        told.sort(key=lambda one: (one.frozen.datetime_complete or FOREVER, one.number))
        out = [one for one in seen if one.state == TrialState.RUNNING]
        return cls(tuple(told), tuple(sorted(out, key=lambda one: one.number)), asking, started)

    @property
    def count(self) -> int:
        """How many trials count that are done or were there first; no two trials that ask at the same time get the same."""
        return len(self.told) + sum(one.number < self.asking for one in self.out)

    @cached_property
    def silent(self) -> int:
        """How many trials that came first have no parameters yet: other workers are choosing them at this moment. A worker that
        takes long over it has died."""
        return sum(one.number < self.asking and not one.stored and not self._long_ago(one) for one in self.out)

    def _long_ago(self, one: Seen) -> bool:
        began = one.frozen.datetime_start
        return self.started is not None and began is not None and self.started - began > PATIENCE

    def since(self, earlier: History) -> list[Seen]:
        """The trials that had no parameters yet, earlier."""
        known = {one.number for one in (*earlier.told, *earlier.out) if one.stored}
        return [one for one in (*self.told, *self.out) if one.number not in known]

    def limits(self, declared: Sequence[Constraint]) -> tuple[Limit, ...]:
        """The declared constraints, then any other name that came up, in order of appearance."""
        known = {constraint.name: Limit.declared(constraint) for constraint in declared}
        for one in self.told:
            for name in one.names:
                if name not in known:
                    known[name] = Limit.discovered(name)
        return tuple(known.values())

    def distributions(self) -> Distributions:
        """Of each parameter that was met the latest distribution, by number of trial."""
        met = sorted((*self.told, *self.out), key=lambda one: one.number)
        return {name: spot for one in met for name, spot in one.frozen.distributions.items()}


def margins_to_store(trial: FrozenTrial, declared: Sequence[Constraint]) -> dict[str, float]:
    """How far each constraint of a trial lies beyond its limit, where Optuna does not know it yet: then `Study.best_trial`, the
    dashboard and other samplers see what is feasible. A limit that broke unmeasured gets the largest float."""
    seen = Seen(trial)
    found: dict[str, float] = {}
    for limit in History((seen,), (), trial.number).limits(declared):
        if limit.name in seen.margins:
            continue
        known = seen.reading(limit)
        if isinstance(known, Reading) and known.value is not None:
            found[limit.name] = limit.constraint.margin(known.value)
        elif known == VIOLATED:
            found[limit.name] = HUGE
    return found


def _seen(trial: FrozenTrial, kept: dict[int, Seen]) -> Seen:
    one = kept.get(trial.number)
    if one is None or one.frozen is not trial:  # another study's, or one that has gone on
        one = Seen(trial)
        if trial.state.is_finished():
            kept[trial.number] = one
    return one


def _breaks(known: Reading | float, limit: Limit) -> bool:
    return isinstance(known, Reading) and known.holds(limit.constraint) is False


def _lost(trial: FrozenTrial, retried: set[int]) -> bool:
    if trial.state == TrialState.COMPLETE:
        return False
    return trial.number in retried or _mapping(trial.user_attrs.get(FAILURE)).get("kind") == LOST


def _numbers(given: object) -> list[int]:
    return [number for number in given if isinstance(number, int)] if isinstance(given, list) else []


def _mapping(given: object) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TrialError(f"expected the attributes that report() writes, not {shown(given)}")
    return given
