"""The book of a study: who claims the next trial, what came of it, and which trials died with their driver.

Any number of drivers write in one book, on any storage of Optuna's, and may be killed between any two writes. All rests on
three things that each storage gives: a trial is created with its attributes in one step, its number is larger than those of
all before it, and a finished trial never changes again.

A *claim* is a running trial. It is good if fewer trials before it count (finished or running) than the budget allows; since
that number only ever falls, the budget cannot be overshot, whoever claims at the same time. A claim that is not good is
withdrawn. A trial that died is *lost*; the claim of its retry names it, and the first claim that does is the good one.

A driver that is alone asks first and creates the trial with its point, in one step. Where others ask at the same time, the
claim comes first, so that each sees by the numbers of the trials who was before it. Unless nothing can have changed since it
looked, it reads once more: whoever was given the point of another withdraws.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Any

from cbob.integrations.optuna.reports import report as reported
from cbob.integrations.optuna.sampler import CBOBSampler
from cbob.parameters import Categorical, Float, Int, Parameter
from cbob.study.entries import Entries, Entry, Known, comes_again, is_good, owed, place_of
from cbob.study.names import ABANDONED, CLAIM, FAILURE, FORECAST, INTERRUPTED, LOG, LOST, SECONDS, WITHDRAWN
from cbob.study.records import failure_of
from cbob.study.writing import Created, Ending, Point, writer_for

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    from cbob.study.report import Report

__all__ = ["Book", "Claim", "Nothing", "Template", "distribution_of"]

LOOK = 60.0  # seconds after which a driver looks before it claims, whatever it saw last
LONGEST_LOG = 8000  # characters: MySQL keeps no more than 64 KB in such a column


class Nothing(Enum):
    """Why there is no trial to claim."""

    DONE = "done"  # the budget is used up
    WAIT = "wait"  # all that is left of it is running somewhere


@dataclass(frozen=True)
class Claim:
    """A trial that this driver runs."""

    id: int  # in the storage
    number: int  # in the study
    params: Mapping[str, Any]
    attempt: int  # 0 for the first
    retry_of: int | None


class Book:
    """One study in one storage, as one driver sees it. Callers see to it that only one thread is in here at a time."""

    def __init__(self, study: optuna.Study, space: Mapping[str, Parameter], *, driver: str, retries: int) -> None:
        self.study = study
        self.storage = study._storage
        self.study_id = study._study_id
        self.distributions = {name: distribution_of(parameter) for name, parameter in space.items()}
        self.driver = driver
        self.retries = retries
        self.alone = False  # whether no other driver is known to live; if that is wrong, claims are withdrawn more often
        self.writer = writer_for(self.storage, self.study_id, self.distributions)
        self.proposing = 0.0  # seconds that the sampler took
        self.latest: Sequence[FrozenTrial] = ()  # all trials, as they were last read ...
        self.read_at = -inf  # ... and when, by time.monotonic()
        self._entries = Entries(self.distributions)
        self._known: list[Entry] = []  # as last read for a claim ...
        self._known_since = -inf  # ... and when
        # Tokens under which something may have been created, and the trials whose points were known when its point was chosen.
        self._used: dict[str, Known] = {}

    def trials(self) -> Sequence[FrozenTrial]:
        """All trials in order of their numbers."""
        began = time.monotonic()
        self.latest = self.storage.get_all_trials(self.study_id, deepcopy=False)
        self.read_at = began
        return self.latest

    def claim(self, budget: int, token: str) -> Claim | Nothing:
        """The next trial to run, retries before new points. Claiming again with the same token claims nothing twice."""
        entries = self._known if token not in self._used and self._leaves_room(budget) else self._read()
        mine = self._with_token(entries, token)
        if mine is None:
            counted = sum(entry.counted for entry in entries)
            if counted >= budget:
                return Nothing.DONE
            if counted + sum(entry.running for entry in entries) >= budget:
                return Nothing.WAIT
            template = self._template(entries)
            created = self._create(token, template)
            if created.params and created.number == len(entries) and all(map(_settled, entries)):
                # Nobody came in between, and nobody who was there may have been given a point: what was read still holds.
                return self._claimed(created.trial_id, created.number, created.params, template.attempt, template.retry_of)
            mine, entries = self._found(token)
        if mine.trial.state.is_finished():  # withdrawn before, by a commit whose answer did not come through
            return Nothing.WAIT
        if not is_good(mine, entries, budget):
            return self._withdraw(mine)
        if mine.trial.params.keys() != self.distributions.keys():
            if not self._ask_for(mine, entries, token):
                return Nothing.WAIT
            mine, entries = self._found(token)
        if mine.retry_of is None and comes_again(mine, entries, self._used[token]):
            return self._withdraw(mine)
        return self._claimed(mine.trial._trial_id, mine.number, mine.trial.params, mine.attempt, mine.retry_of)

    def finish(self, claim: Claim, report: Report) -> bool:
        """Store what came of a trial; False if it was taken for lost in the meantime."""
        told = _told(report)
        value = report.value if report.failure is None else None
        if self.writer.end(claim.id, Ending(told, self._sampler.attributes(told), value)):
            return True
        stored = self.storage.get_trial(claim.id)
        return failure_of(stored)[0] != LOST  # else it is what we stored, by a commit whose answer did not come through

    def interrupt(self, claim: Claim) -> None:
        """Give a trial back that was not run to its end."""
        self._lose(self.storage.get_trial(claim.id), INTERRUPTED)

    def adopt(self, late: Claim, report: Report, budget: int, token: str) -> bool:
        """Store the result of a trial that was taken for lost while it ran, as that of its retry; False if the retry is under
        way elsewhere, which will find the same."""
        entries = self._read()
        mine = self._with_token(entries, token)
        if mine is None:
            if any(entry.retry_of == late.number and not entry.withdrawn for entry in entries):
                return False
            self._create(token, self._retry(entries[late.number]))
            mine, entries = self._found(token)
        if not mine.trial.state.is_finished() and not is_good(mine, entries, budget):
            self._withdraw(mine)
            return False
        return self.finish(Claim(mine.trial._trial_id, mine.number, late.params, late.attempt + 1, late.number), report)

    def drivers(self) -> set[str]:
        """The other drivers that have trials running."""
        return {entry.driver for entry in self._read() if entry.running and entry.driver} - {self.driver}

    def bury(self, dead: Mapping[str, str]) -> list[int]:
        """Mark the running trials of dead drivers as lost, or as abandoned once they were retried often enough."""
        victims = [(entry, dead.get(entry.driver or "")) for entry in self._read() if entry.running]
        return [entry.number for entry, reason in victims if reason and self._lose(entry.trial, reason)]

    def lose(self, claim: Claim, reason: str) -> None:
        """Mark a trial of our own as lost: its worker died."""
        self._lose(self.storage.get_trial(claim.id), reason)

    # ---- how it works ----

    def _read(self) -> list[Entry]:
        began = time.monotonic()
        self._known = self._entries.of(self.trials())
        self._known_since = began
        return self._known

    def _leaves_room(self, budget: int) -> bool:
        """Whether there is no need to look before a claim: what was read a while ago leaves enough of the budget even if
        everybody has claimed once more since, and owes no retry. If that is wrong, the claim is withdrawn."""
        if self.alone or time.monotonic() - self._known_since > LOOK:
            return False
        counted, running = sum(entry.counted for entry in self._known), sum(entry.running for entry in self._known)
        return counted + 2 * running + 1 < budget and owed(self._known) is None

    def _with_token(self, entries: Sequence[Entry], token: str) -> Entry | None:
        if token not in self._used:
            return None
        return next((entry for entry in reversed(entries) if entry.token == token), None)

    def _template(self, entries: Sequence[Entry]) -> Template:
        """What the next claim is created with: the point of a lost trial, a new one, or none yet, where others ask as well."""
        lost = owed(entries)
        if lost is not None:
            return self._retry(lost)
        known = Known.of(entries)
        if self._sampler.only_designs:
            return Template(self._design(entries), known=known)
        if not self.alone or any(entry.running and entry.driver != self.driver for entry in entries):
            return Template()
        number = len(entries)
        start = time.monotonic()
        trials, place = [entry.trial for entry in entries], place_of(number, entries)
        proposal = self._sampler.propose(self.study, self.distributions, trials, number=number, place=place)
        self.proposing += time.monotonic() - start
        return Template(proposal.params, known=known, attrs=proposal.system_attrs)

    def _design(self, entries: Sequence[Entry]) -> Callable[[int], Mapping[str, Any]]:
        """The point of the design for a trial that gets a number behind these; none if they have it."""
        points = {entry.point for entry in entries}
        start = time.monotonic()
        self._sampler.design(self.distributions, place_of(len(entries), entries))  # now, not in a transaction
        self.proposing += time.monotonic() - start

        def point(number: int) -> Mapping[str, Any]:
            params = self._sampler.design(self.distributions, place_of(len(entries), entries) + number - len(entries))
            return {} if self._entries.point(params) in points else params

        return point

    def _retry(self, lost: Entry) -> Template:
        point = () if lost.point is None else lost.point
        params = dict(zip(self.distributions, point, strict=False))
        attrs = {name: lost.trial.system_attrs[name] for name in (FORECAST,) if name in lost.trial.system_attrs}
        return Template(params, attempt=lost.next_attempt, retry_of=lost.number, attrs=attrs)

    def _create(self, token: str, template: Template) -> Created:
        """A running trial of ours, in one step."""
        claim = {"driver": self.driver, "token": token, "attempt": template.attempt, "retry_of": template.retry_of}
        self._used[token] = template.known
        return self.writer.create(template.point, {CLAIM: claim, **template.attrs})

    def _claimed(self, trial_id: int, number: int, params: Mapping[str, Any], attempt: int, retry_of: int | None) -> Claim:
        in_order = {name: params[name] for name in self.distributions}
        return Claim(trial_id, number, in_order, attempt, retry_of)

    def _found(self, token: str) -> tuple[Entry, list[Entry]]:
        """Our trial of this token, and all there are."""
        entries = self._read()
        mine = self._with_token(entries, token)
        assert mine is not None
        return mine, entries

    def _ask_for(self, mine: Entry, entries: Sequence[Entry], token: str) -> bool:
        """Give a claim of ours the point that the sampler proposes; False if it was taken for lost meanwhile."""
        self._used[token] = Known.of(entries)
        start = time.monotonic()
        trials, place = [entry.trial for entry in entries], place_of(mine.number, entries)
        proposed = self._sampler.choose(self.study, mine.trial, self.distributions, trials=trials, place=place)
        self.proposing += time.monotonic() - start
        return self.writer.place(mine.trial._trial_id, proposed.params, proposed.system_attrs)

    @property
    def _sampler(self) -> CBOBSampler:
        sampler = self.study.sampler
        assert isinstance(sampler, CBOBSampler)
        return sampler

    def _withdraw(self, mine: Entry) -> Nothing:
        self._lose(mine.trial, WITHDRAWN)
        return Nothing.WAIT

    def _lose(self, trial: FrozenTrial, reason: str) -> bool:
        """Mark a running trial as lost or abandoned; False if somebody else was first."""
        kind, attempt = LOST, int((trial.system_attrs.get(CLAIM) or {}).get("attempt", 0))
        if reason not in (INTERRUPTED, WITHDRAWN) and attempt >= self.retries:
            kind, reason = ABANDONED, f"{reason}, for the {self.retries + 1}. time"
        if trial.state.is_finished():
            return False
        ended = self.writer.end(trial._trial_id, Ending({FAILURE: {"kind": kind, "reason": reason}}))
        self._known_since = -inf  # there may be a retry to claim
        return ended


def _settled(entry: Entry) -> bool:
    """Whether nothing new can become known of the point of this trial."""
    return entry.point is not None or entry.trial.state.is_finished()


@dataclass(frozen=True)
class Template:
    """What a claim is created with; no parameters where the sampler is still to be asked."""

    point: Point = field(default_factory=dict)
    attempt: int = 0
    retry_of: int | None = None
    known: Known = field(default_factory=Known)  # the trials whose points were known when this one was chosen
    attrs: Mapping[str, Any] = field(default_factory=dict)  # what the sampler keeps with it


class _Told(dict[str, Any]):
    """The user attributes of a trial of ours, which has none but those we give it."""

    @property
    def user_attrs(self) -> dict[str, Any]:
        return self

    def set_user_attr(self, key: str, value: Any) -> None:
        self[key] = value


def _told(report: Report) -> Mapping[str, Any]:
    """All of a report but its value, as user attributes."""
    told = _Told()
    failure = report.failure
    reported(
        told,
        readings=report.readings or None,
        violated=report.violated,
        satisfied=report.satisfied,
        kind=None if failure is None else str(failure.kind),
        reason=None if failure is None else failure.reason,
    )
    told[SECONDS] = round(report.seconds, 6)
    if report.log:
        told[LOG] = report.log[-LONGEST_LOG:]
    return told


def distribution_of(parameter: Parameter) -> BaseDistribution:
    """A parameter as Optuna writes it."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(parameter, Categorical):
        return CategoricalDistribution(tuple(parameter.choices))
    if isinstance(parameter, Int):
        return IntDistribution(parameter.low, parameter.high, log=parameter.log)
    assert isinstance(parameter, Float)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
