"""The book of a study: who claims the next trial, what came of it, and which trials died with their driver.

Any number of drivers write in one book, on any storage of Optuna's, and may be killed between any two writes. All rests on
three things that each storage gives: a trial is created with its attributes in one step, its number is larger than those of
all before it, and a finished trial never changes again.

A *claim* is a running trial. It is good if fewer trials before it count (finished or running) than the budget allows; since
that number only ever falls, the budget cannot be overshot, whoever claims at the same time. A claim that is not good is
withdrawn. A trial that died is *lost*; the claim of its retry names it, and the first claim that does is the good one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from cbob.integrations.optuna.reports import report as reported
from cbob.parameters import Categorical, Float, Int, Parameter
from cbob.study.names import ABANDONED, CLAIM, FAILURE, INTERRUPTED, LOG, LOST, PROPOSED, SECONDS, WITHDRAWN
from cbob.study.records import failure_of, is_counted

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage
    from optuna.trial import FrozenTrial

    from cbob.study.report import Report

__all__ = ["Book", "Claim", "Nothing", "distribution_of"]

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
        self.proposing = 0.0  # seconds that the sampler took
        self._used: set[str] = set()  # tokens under which something may have been created

    def trials(self) -> list[FrozenTrial]:
        """All trials in order of their numbers."""
        return self.storage.get_all_trials(self.study_id, deepcopy=False)

    def claim(self, budget: int, token: str) -> Claim | Nothing:
        """The next trial to run, retries before new points. Claiming again with the same token claims nothing twice."""
        trials = self.trials()
        mine = self._with_token(trials, token)
        if mine is None:
            counted = sum(map(is_counted, trials))
            if counted >= budget:
                return Nothing.DONE
            if counted + sum(map(_is_running, trials)) >= budget:
                return Nothing.WAIT
            owed = _all_owed(trials, self.distributions)
            mine, trials = self._create(owed[0] if owed else None, token)
        if mine.state.is_finished():  # withdrawn before, by a commit whose answer did not come through
            return Nothing.WAIT
        if not _is_good(mine, trials, budget, self.distributions):
            self._lose(mine, WITHDRAWN)
            return Nothing.WAIT
        claim = _claim(mine)
        params = self._params(mine)
        if claim["retry_of"] is None and self._comes_again(mine, params, trials):
            self._lose(mine, WITHDRAWN)
            return Nothing.WAIT
        return Claim(mine._trial_id, mine.number, params, int(claim["attempt"]), claim["retry_of"])

    def finish(self, claim: Claim, report: Report) -> bool:
        """Store what came of a trial; False if it was taken for lost in the meantime."""
        complete = report.value is not None and report.failure is None
        try:
            self._write(claim.id, report)
        except _already_finished():
            pass
        else:
            if self._close(claim.id, [report.value] if complete and report.value is not None else None):
                return True
        stored = self.storage.get_trial(claim.id)
        return failure_of(stored)[0] != LOST  # else it is what we stored, by a commit whose answer did not come through

    def interrupt(self, claim: Claim) -> None:
        """Give a trial back that was not run to its end."""
        self._lose(self.storage.get_trial(claim.id), INTERRUPTED)

    def adopt(self, late: Claim, report: Report, budget: int, token: str) -> bool:
        """Store the result of a trial that was taken for lost while it ran, as that of its retry; False if the retry is under
        way elsewhere, which will find the same."""
        trials = self.trials()
        mine = self._with_token(trials, token)
        if mine is None:
            if late.number in _taken_over(trials):
                return False
            mine, trials = self._create(trials[late.number], token)
        if not mine.state.is_finished() and not _is_good(mine, trials, budget, self.distributions):
            self._lose(mine, WITHDRAWN)
            return False
        return self.finish(Claim(mine._trial_id, mine.number, late.params, late.attempt + 1, late.number), report)

    def drivers(self) -> set[str]:
        """The other drivers that have trials running."""
        found = {str(_claim(trial).get("driver")) for trial in self._running() if _claim(trial)}
        return found - {self.driver}

    def bury(self, dead: Mapping[str, str]) -> list[int]:
        """Mark the running trials of dead drivers as lost, or as abandoned once they were retried often enough."""
        buried = []
        for trial in self._running():
            claim = _claim(trial)
            if claim.get("driver") in dead and self._lose(trial, dead[claim["driver"]]):
                buried.append(trial.number)
        return buried

    def lose(self, claim: Claim, reason: str) -> None:
        """Mark a trial of our own as lost: its worker died."""
        self._lose(self.storage.get_trial(claim.id), reason)

    # ---- how it works ----

    def _running(self) -> list[FrozenTrial]:
        return [trial for trial in self.trials() if _is_running(trial)]

    def _with_token(self, trials: Sequence[FrozenTrial], token: str) -> FrozenTrial | None:
        if token not in self._used:
            return None
        return next((trial for trial in reversed(trials) if _claim(trial).get("token") == token), None)

    def _create(self, lost: FrozenTrial | None, token: str) -> tuple[FrozenTrial, list[FrozenTrial]]:
        """A running trial of ours, in one step: a new one, or the retry of one that was lost."""
        from optuna.trial import TrialState, create_trial

        claim = {"driver": self.driver, "token": token, "attempt": 0, "retry_of": None}
        params = {}
        if lost is not None:
            spent = failure_of(lost)[1] != INTERRUPTED
            claim |= {"attempt": int(_claim(lost)["attempt"]) + spent, "retry_of": lost.number}
            params = _point(lost, self.distributions)
        template = create_trial(
            state=TrialState.RUNNING,
            params=params,
            distributions={name: self.distributions[name] for name in params},
            system_attrs={CLAIM: claim},
        )
        template.datetime_start = datetime.now()
        self._used.add(token)
        self.storage.create_new_trial(self.study_id, template)
        trials = self.trials()
        mine = self._with_token(trials, token)
        assert mine is not None
        return mine, trials

    def _params(self, mine: FrozenTrial) -> dict[str, Any]:
        """Its parameters: those it has, or the sampler's proposal."""
        if mine.params.keys() == self.distributions.keys():
            return dict(mine.params)
        start = time.monotonic()
        proposed = self.study.sampler.sample_relative(self.study, mine, self.distributions)
        self.proposing += time.monotonic() - start
        for name, distribution in self.distributions.items():
            if name not in mine.params:
                self.storage.set_trial_param(mine._trial_id, name, distribution.to_internal_repr(proposed[name]), distribution)
        fresh = {
            name: spot.to_external_repr(spot.to_internal_repr(proposed[name])) for name, spot in self.distributions.items()
        }
        return fresh | {name: mine.params[name] for name in self.distributions if name in mine.params}

    def _comes_again(self, mine: FrozenTrial, params: Mapping[str, Any], before: Sequence[FrozenTrial]) -> bool:
        """Whether a new point is one that another trial was given while the sampler chose it: by another driver that asked at
        the same time, or because the trial that had it was being lost, which the sampler takes no notice of, and retried."""
        trials = self.trials()
        taken = _taken_over(trials)
        known = {trial.number for trial in before if _point(trial, self.distributions)}
        for trial in trials:
            lost = FAILURE in trial.user_attrs and failure_of(trial)[0] in (LOST, None)  # or just about to be
            if trial.number == mine.number or _is_withdrawn(trial) or trial.number in (taken if lost else known):
                continue
            if _point(trial, self.distributions) == params:
                return True
        return False

    def _write(self, trial_id: int, report: Report) -> None:
        """Everything but the state."""
        trial = _Attributes(self.storage, trial_id)
        failure = report.failure
        reported(
            trial,
            readings=report.readings or None,
            violated=report.violated,
            satisfied=report.satisfied,
            kind=None if failure is None else str(failure.kind),
            reason=None if failure is None else failure.reason,
        )
        trial.set_user_attr(SECONDS, round(report.seconds, 6))
        if report.log:
            trial.set_user_attr(LOG, report.log[-LONGEST_LOG:])

    def _lose(self, trial: FrozenTrial, reason: str) -> bool:
        """Mark a running trial as lost or abandoned; False if somebody else was first."""
        kind = LOST
        if reason not in (INTERRUPTED, WITHDRAWN) and int(_claim(trial).get("attempt", 0)) >= self.retries:
            kind, reason = ABANDONED, f"{reason}, for the {self.retries + 1}. time"
        if trial.state.is_finished():
            return False
        try:
            self.storage.set_trial_user_attr(trial._trial_id, FAILURE, {"kind": kind, "reason": reason})
        except _already_finished():
            return False
        return self._close(trial._trial_id, None)

    def _close(self, trial_id: int, values: Sequence[float] | None) -> bool:
        """The last write of a trial, after the sampler's own; False if the trial was finished before."""
        from optuna.trial import TrialState

        state = TrialState.FAIL if values is None else TrialState.COMPLETE
        try:
            self.study.sampler.after_trial(self.study, self.storage.get_trial(trial_id), state, values)
            return bool(self.storage.set_trial_state_values(trial_id, state, values))
        except _already_finished():
            return False


@dataclass(frozen=True)
class _Attributes:
    """The user attributes of a trial of ours, which has none but those we give it."""

    storage: BaseStorage
    trial_id: int

    @property
    def user_attrs(self) -> dict[str, Any]:
        return {}

    def set_user_attr(self, key: str, value: Any) -> None:
        self.storage.set_trial_user_attr(self.trial_id, key, value)


def distribution_of(parameter: Parameter) -> BaseDistribution:
    """A parameter as Optuna writes it."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(parameter, Categorical):
        return CategoricalDistribution(tuple(parameter.choices))
    if isinstance(parameter, Int):
        return IntDistribution(parameter.low, parameter.high, log=parameter.log)
    assert isinstance(parameter, Float)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log)


def _already_finished() -> type[Exception]:
    from optuna.exceptions import UpdateFinishedTrialError

    return UpdateFinishedTrialError


def _claim(trial: FrozenTrial) -> Mapping[str, Any]:
    return trial.system_attrs.get(CLAIM) or {}


def _is_running(trial: FrozenTrial) -> bool:
    """Whether a driver runs it; trials enqueued or run by others do not use up the budget before they are finished."""
    return trial.state.name == "RUNNING" and CLAIM in trial.system_attrs


def _is_lost(trial: FrozenTrial) -> bool:
    return failure_of(trial)[0] == LOST


def _is_withdrawn(trial: FrozenTrial) -> bool:
    return failure_of(trial) == (LOST, WITHDRAWN)


def _taken_over(trials: Sequence[FrozenTrial]) -> set[int]:
    """The lost trials whose retry was claimed."""
    return {_claim(trial).get("retry_of", -1) for trial in trials if not _is_withdrawn(trial)}


def _all_owed(trials: Sequence[FrozenTrial], distributions: Mapping[str, BaseDistribution]) -> list[FrozenTrial]:
    """The lost trials that have to be tried again. One without a point, or whose point another trial has, is owed nothing: it
    was lost while it asked."""
    lost = [trial for trial in trials if _is_lost(trial) and not _is_withdrawn(trial)]
    if not lost:
        return []
    taken = _taken_over(trials)
    elsewhere = [_point(trial, distributions) for trial in trials if not _is_lost(trial)]
    owed = []
    for trial in lost:
        point = _point(trial, distributions)
        if trial.number not in taken and point and point not in elsewhere:
            owed.append(trial)
    return owed


def _point(trial: FrozenTrial, distributions: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """What is or would have been tried; nothing if that is not known."""
    if trial.params.keys() == distributions.keys():
        return {name: trial.params[name] for name in distributions}
    proposed = trial.system_attrs.get(PROPOSED) or {}
    if not distributions.keys() <= proposed.keys():
        return {}
    return {name: spot.to_external_repr(proposed[name]) for name, spot in distributions.items()}


def _is_good(
    mine: FrozenTrial, trials: Sequence[FrozenTrial], budget: int, distributions: Mapping[str, BaseDistribution]
) -> bool:
    """Whether a claim may run; whatever is decided, no later trial changes it to the worse."""
    before = [trial for trial in trials if trial.number < mine.number]
    if sum(is_counted(trial) or _is_running(trial) for trial in before) >= budget:
        return False
    retry_of = _claim(mine).get("retry_of")
    if retry_of is None:
        return True
    if any(_claim(trial).get("retry_of") == retry_of and not _is_withdrawn(trial) for trial in before):
        return False
    point = _point(mine, distributions)
    others = (trial for trial in trials if trial.number != mine.number and not _is_lost(trial))
    return all(_point(trial, distributions) != point for trial in others)
