"""Writes trials. Optuna's own calls write one attribute or parameter at a time, each in a transaction of its own.

On databases a trial is written in two transactions instead: one creates it with all that is known, one stores all that came of
it. Both lock first what they change (the study, or the one trial), so that nobody waits in a circle. What is stored is what
Optuna's calls would have stored; they do the work wherever something is not as it was when this was written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cbob.study.names import PROPOSED

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage, RDBStorage
    from sqlalchemy.orm import Session

__all__ = ["Created", "Ending", "Point", "Writer", "writer_for"]

Point = Mapping[str, Any] | Callable[[int], Mapping[str, Any]]  # parameters (none yet: empty), or those of a number

NOTHING: Mapping[str, Any] = {}

KNOWN_SCHEMA = 12  # the version of Optuna's tables that `Tables` knows


@dataclass(frozen=True)
class Ending:
    """All that is stored when a trial ends."""

    user_attrs: Mapping[str, Any]
    system_attrs: Mapping[str, Any] = field(default_factory=dict)
    value: float | None = None  # None: it failed


@dataclass(frozen=True)
class Created:
    """A trial that now is."""

    trial_id: int
    number: int | None  # in its study, where that is known without reading
    params: Mapping[str, Any]


class Writer:
    """By Optuna's own calls, one thing after the other, the state last: for any storage."""

    def __init__(self, storage: BaseStorage, study_id: int, distributions: Mapping[str, BaseDistribution]) -> None:
        self.storage, self.study_id, self.distributions = storage, study_id, distributions

    def create(self, point: Point, system_attrs: Mapping[str, Any]) -> Created:
        """A running trial with its point, in one step; in two where the point depends on the number."""
        from optuna.trial import TrialState, create_trial

        params = {} if callable(point) else dict(point)
        trial = create_trial(
            state=TrialState.RUNNING,
            params=params,
            distributions={name: self.distributions[name] for name in params},
            system_attrs=dict(system_attrs),
        )
        trial.datetime_start = datetime.now()
        trial_id = self.storage.create_new_trial(self.study_id, trial)
        if not callable(point):
            return Created(trial_id, None, params)
        number = self.storage.get_trial_number_from_id(trial_id)
        if params := dict(point(number)):
            self.place(trial_id, params)
        return Created(trial_id, number, params)

    def place(self, trial_id: int, params: Mapping[str, Any], system_attrs: Mapping[str, Any] = NOTHING) -> bool:
        """Give a running trial its point; False if it was taken for lost meanwhile. Others see the whole point at once."""
        from optuna.exceptions import UpdateFinishedTrialError

        stored = self._stored(params)
        try:
            for key, value in system_attrs.items():
                self.storage.set_trial_system_attr(trial_id, key, value)
            self.storage.set_trial_system_attr(trial_id, PROPOSED, stored)
            for name, number in stored.items():
                self.storage.set_trial_param(trial_id, name, number, self.distributions[name])
        except UpdateFinishedTrialError:
            return False
        return True

    def end(self, trial_id: int, ending: Ending) -> bool:
        """End a running trial; False if it had ended before."""
        from optuna.exceptions import UpdateFinishedTrialError
        from optuna.trial import TrialState

        try:
            for key, value in ending.user_attrs.items():
                self.storage.set_trial_user_attr(trial_id, key, value)
            for key, value in ending.system_attrs.items():
                self.storage.set_trial_system_attr(trial_id, key, value)
            if ending.value is None:
                return bool(self.storage.set_trial_state_values(trial_id, TrialState.FAIL))
            return bool(self.storage.set_trial_state_values(trial_id, TrialState.COMPLETE, [ending.value]))
        except UpdateFinishedTrialError:
            return False

    def _stored(self, params: Mapping[str, Any]) -> dict[str, float]:
        return {name: float(self.distributions[name].to_internal_repr(value)) for name, value in params.items()}


class Tables(Writer):
    """In one transaction each, into Optuna's tables. A row that is there already, of somebody who was killed between two
    writes, is a matter for Optuna's own calls, which replace it."""

    def __init__(
        self, backend: RDBStorage, storage: BaseStorage, study_id: int, distributions: Mapping[str, BaseDistribution]
    ) -> None:
        super().__init__(storage, study_id, distributions)
        self.engine = backend.engine

    def create(self, point: Point, system_attrs: Mapping[str, Any]) -> Created:
        from optuna.storages._rdb import models
        from optuna.trial import TrialState
        from sqlalchemy import insert
        from sqlalchemy.orm import Session

        with Session(self.engine) as session, session.begin():
            models.StudyModel.find_or_raise_by_id(self.study_id, session, for_update=True)  # whoever numbers a trial holds it
            trial = models.TrialModel(study_id=self.study_id, state=TrialState.RUNNING, datetime_start=datetime.now())
            session.add(trial)
            session.flush()
            trial_id, number = int(trial.trial_id), int(trial.count_past_trials(session))
            trial.number = number
            params = dict(point(number)) if callable(point) else dict(point)
            self._insert_params(session, trial_id, params)
            session.execute(insert(models.TrialSystemAttributeModel), _rows(trial_id, system_attrs))
        return Created(trial_id, number, params)

    def place(self, trial_id: int, params: Mapping[str, Any], system_attrs: Mapping[str, Any] = NOTHING) -> bool:
        from optuna.storages._rdb import models
        from sqlalchemy import insert
        from sqlalchemy.exc import IntegrityError
        from sqlalchemy.orm import Session

        try:
            with Session(self.engine) as session, session.begin():
                if _running(trial_id, session) is None:
                    return False
                self._insert_params(session, trial_id, params)
                if system_attrs:
                    session.execute(insert(models.TrialSystemAttributeModel), _rows(trial_id, system_attrs))
        except IntegrityError:
            return super().place(trial_id, params, system_attrs)
        return True

    def end(self, trial_id: int, ending: Ending) -> bool:
        from optuna.storages._rdb import models
        from optuna.trial import TrialState
        from sqlalchemy import insert
        from sqlalchemy.exc import IntegrityError
        from sqlalchemy.orm import Session

        try:
            with Session(self.engine) as session, session.begin():
                trial = _running(trial_id, session)
                if trial is None:
                    return False
                for table, attrs in (
                    (models.TrialUserAttributeModel, ending.user_attrs),
                    (models.TrialSystemAttributeModel, ending.system_attrs),
                ):
                    if attrs:
                        session.execute(insert(table), _rows(trial_id, attrs))
                if ending.value is not None:
                    value, kind = models.TrialValueModel.value_to_stored_repr(ending.value)
                    row = {"trial_id": trial_id, "objective": 0, "value": value, "value_type": kind}
                    session.execute(insert(models.TrialValueModel), row)
                trial.state = TrialState.FAIL if ending.value is None else TrialState.COMPLETE
                trial.datetime_complete = datetime.now()
        except IntegrityError:
            return super().end(trial_id, ending)
        return True

    def _insert_params(self, session: Session, trial_id: int, params: Mapping[str, Any]) -> None:
        from optuna.distributions import distribution_to_json
        from optuna.storages._rdb import models
        from sqlalchemy import insert

        if not params:
            return
        rows = [
            {
                "trial_id": trial_id,
                "param_name": name,
                "param_value": value,
                "distribution_json": distribution_to_json(self.distributions[name]),
            }
            for name, value in self._stored(params).items()
        ]
        session.execute(insert(models.TrialParamModel), rows)


def writer_for(storage: BaseStorage, study_id: int, distributions: Mapping[str, BaseDistribution]) -> Writer:
    """The quickest there is for a storage."""
    from optuna.storages import RDBStorage

    backend = getattr(storage, "_backend", storage)
    if isinstance(backend, RDBStorage):
        from optuna.storages._rdb import models

        if models.SCHEMA_VERSION == KNOWN_SCHEMA:
            return Tables(backend, storage, study_id, distributions)
    return Writer(storage, study_id, distributions)


def _running(trial_id: int, session: Session) -> Any:
    """The row of a trial, locked; None if it has ended."""
    from optuna.storages._rdb import models

    trial = models.TrialModel.find_or_raise_by_id(trial_id, session, for_update=True)
    return None if trial.state.is_finished() else trial


def _rows(trial_id: int, attrs: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    return [{"trial_id": trial_id, "key": key, "value_json": json.dumps(value)} for key, value in attrs.items()]
