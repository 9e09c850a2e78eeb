"""Puts the parts of a run together: the study in its storage, the sampler, the evaluator and the runner."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import optuna
from optuna.study import StudyDirection

from cbob.errors import StudyError
from cbob.integrations.optuna import CBOBSampler
from cbob.study.book import Book
from cbob.study.evaluate import Evaluator
from cbob.study.liveness import GRACE, Card, Watch
from cbob.study.minimize import Result
from cbob.study.names import BUDGET, DEFINITION
from cbob.study.plan import Plan
from cbob.study.runner import Evaluates, Runner, View
from cbob.study.storage import PATIENCE, Patience, close_storage, open_storage
from cbob.study.tally import Tally

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

__all__ = ["enter_study", "run_study"]


def run_study(
    plan: Plan,
    storage: str | BaseStorage | None,
    *,
    view: View,
    ray: str | None = None,
    patience: float = PATIENCE,
    grace: float = GRACE,
) -> Result:
    """Run a study to the end of its budget, from wherever it stands."""
    url = storage if isinstance(storage, str) else type(storage).__name__
    opened = open_storage(storage) if isinstance(storage, str) else storage or optuna.storages.InMemoryStorage()
    patient = Patience(url, seconds=patience, say=view.said, stop=threading.Event())
    try:
        return _run(plan, opened, patient, view, ray, grace)
    finally:
        if isinstance(storage, str):
            close_storage(opened)


def _run(plan: Plan, opened: BaseStorage, patient: Patience, view: View, ray: str | None, grace: float) -> Result:
    study = patient(lambda: enter_study(plan, opened), "open the study")
    tally = Tally(plan.constraints, plan.direction)
    card = Card(plan.workers)
    book = Book(study, plan.space.parameters, driver=card.id, retries=plan.retries)
    evaluator = _evaluator(plan, ray)
    try:
        runner = Runner(
            book=book,
            evaluator=evaluator,
            patience=patient,
            tally=tally,
            view=view,
            card=card,
            watch=Watch(card.id, grace=grace),
            budget=plan.budget,
        )
        runner.run()
    finally:
        evaluator.close()
    records = tally.records(patient(book.trials, "read the trials"))
    standing = tally.standing(records)
    return Result(standing.best, records, standing, study, runner.times)


def enter_study(plan: Plan, storage: BaseStorage) -> optuna.Study:
    """The study of a plan in a storage: begun, or checked to be the same and gone on with. Doing it twice does no harm."""
    study = optuna.create_study(
        storage=storage,
        study_name=plan.name,
        direction=StudyDirection.MAXIMIZE if plan.direction == "maximize" else StudyDirection.MINIMIZE,
        sampler=_sampler(plan),
        load_if_exists=True,
    )
    trials = study.get_trials(deepcopy=False)
    attrs = study.user_attrs  # read after the trials: whoever begins at the same moment stores the definition before them
    if DEFINITION in attrs:
        plan.check_against(attrs[DEFINITION])
    elif trials:
        raise StudyError(
            f"the study {plan.name!r} in this storage has trials, but was not begun by cbob: give this one another name"
        )
    else:
        study.set_user_attr(DEFINITION, plan.definition())
    if attrs.get(BUDGET) != plan.budget:
        study.set_user_attr(BUDGET, plan.budget)
    return study


def _sampler(plan: Plan) -> CBOBSampler:
    options: dict[str, Any] = {"strategy": plan.strategy, "surrogate": plan.surrogate, "initial": plan.initial}
    given = {name: value for name, value in options.items() if value is not None}
    return CBOBSampler(constraints=plan.constraints, seed=plan.seed, **given)


def _evaluator(plan: Plan, ray: str | None) -> Evaluates:
    if ray is not None:
        from cbob.integrations.ray import RayEvaluator

        return RayEvaluator(plan, ray)
    return Evaluator(plan.target, constraints=plan.constraints, limits=plan.limits, isolate=plan.isolate, workdir=plan.folder)
