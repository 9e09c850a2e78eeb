"""Trials written in one transaction: the same rows as by Optuna's own calls, and nobody waits in a circle."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import event
from sqlalchemy.engine import Engine

import cbob.study.writing
from cbob.study.writing import Ending, Tables, Writer, writer_for

SPACE: dict[str, BaseDistribution] = {
    "x": FloatDistribution(1e-3, 1.0, log=True),
    "n": IntDistribution(1, 9),
    "kind": CategoricalDistribution(["a", None]),
}
POINT = {"x": 0.1 + 0.2, "n": 7, "kind": None}
CLAIM = {"cbob:claim": {"driver": "é", "attempt": 0, "retry_of": None}}
GOOD = Ending({"cbob:readings": {"load": 0.1}, "cbob:seconds": 1.5}, {"constraints:load": -0.9}, 2.5)
BAD = Ending({"cbob:failure": {"kind": "lost", "reason": "its driver died"}})
Opener = Callable[[str], BaseStorage]


@pytest.fixture
def study(storage_url: str, open_url: Opener) -> optuna.Study:
    return optuna.create_study(storage=open_url(storage_url))


def writer(study: optuna.Study) -> Writer:
    found = writer_for(study._storage, study._study_id, SPACE)
    assert type(found) is Tables
    return found


def by_optuna(study: optuna.Study) -> Writer:
    return Writer(study._storage, study._study_id, SPACE)


def said(trial: FrozenTrial) -> tuple[object, ...]:
    for when in (trial.datetime_start, trial.datetime_complete):
        assert when is None or abs(when - datetime.now()) < timedelta(minutes=1)
    system_attrs = {key: value for key, value in trial.system_attrs.items() if key != "cbob:proposed"}
    return (
        trial.state, trial.values, trial.params, trial.distributions, trial.user_attrs, system_attrs,
        trial.datetime_complete is None,
    )  # fmt: skip


@pytest.mark.parametrize("ending", [None, GOOD, BAD])
@pytest.mark.parametrize("placed", ["at once", "by number", "later"])
def test_what_is_stored_is_what_optunas_own_calls_store(study: optuna.Study, ending: Ending | None, placed: str) -> None:
    for one in (writer(study), by_optuna(study)):
        created = one.create({"at once": POINT, "by number": lambda number: POINT, "later": {}}[placed], CLAIM)
        if placed == "later":
            assert one.place(created.trial_id, POINT)
        assert ending is None or one.end(created.trial_id, ending)
    ours, theirs = study.get_trials()
    assert said(ours) == said(theirs)
    assert (ours.number, theirs.number) == (0, 1)


def test_a_point_may_depend_on_the_number_that_the_trial_gets(study: optuna.Study) -> None:
    for one in (writer(study), by_optuna(study), writer(study)):
        created = one.create(lambda number: POINT | {"n": number + 1}, CLAIM)
        assert created.params["n"] == study.get_trials()[-1].params["n"] == len(study.get_trials())


def test_what_has_ended_stays_as_it_is(study: optuna.Study) -> None:
    mine = writer(study)
    created = mine.create(POINT, CLAIM)
    assert mine.end(created.trial_id, GOOD)
    before = said(study.get_trials()[0])
    assert not mine.end(created.trial_id, BAD) and not mine.end(created.trial_id, GOOD)
    assert not mine.place(created.trial_id, POINT)
    assert said(study.get_trials()[0]) == before


def test_rows_that_somebody_left_between_two_writes_are_replaced(study: optuna.Study) -> None:
    mine = writer(study)
    created = mine.create(POINT, CLAIM)
    study._storage.set_trial_user_attr(created.trial_id, "cbob:seconds", 99.0)
    study._storage.set_trial_system_attr(created.trial_id, "constraints:load", 99.0)
    assert mine.end(created.trial_id, GOOD)
    (trial,) = study.get_trials()
    assert (trial.value, trial.user_attrs["cbob:seconds"], trial.system_attrs["constraints:load"]) == (2.5, 1.5, -0.9)


def test_whoever_ends_a_trial_at_the_same_moment_waits_for_no_one_in_a_circle(storage_url: str, open_url: Opener) -> None:
    """One driver finishes a trial while two others bury it: one is told that it did, and its words are what is stored."""
    first = optuna.create_study(storage=open_url(storage_url))
    writers = [writer(first)]
    writers += [writer(optuna.load_study(study_name=first.study_name, storage=open_url(storage_url))) for _ in range(2)]
    for _ in range(15):
        created, start = writers[0].create(POINT, CLAIM), threading.Barrier(3)
        did: dict[int, bool] = {}

        def end(place: int) -> None:
            start.wait(30)  # noqa: B023
            did[place] = writers[place].end(created.trial_id, BAD if place else GOOD)  # noqa: B023

        threads = [threading.Thread(target=end, args=(place,)) for place in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert sorted(did.values()) == [False, False, True]  # a deadlock would have raised in one of them
        trial = first.get_trials()[-1]
        assert trial.state == (TrialState.COMPLETE if did[0] else TrialState.FAIL)
        assert trial.user_attrs == (GOOD if did[0] else BAD).user_attrs


def test_drivers_that_create_at_the_same_moment_get_different_numbers(storage_url: str, open_url: Opener) -> None:
    first = optuna.create_study(storage=open_url(storage_url))
    numbers: list[int | None] = []

    def create(one: Writer) -> None:
        for _ in range(5):
            created = one.create(lambda number: POINT, CLAIM)
            numbers.append(created.number)

    studies = [optuna.load_study(study_name=first.study_name, storage=open_url(storage_url)) for _ in range(4)]
    threads = [
        threading.Thread(target=create, args=(make(one),)) for one, make in zip(studies, 2 * [writer, by_optuna], strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(number for number in numbers if number is not None) == list(range(20))


def test_what_the_sampler_keeps_with_a_point_is_stored_with_it(study: optuna.Study) -> None:
    for one in (writer(study), Writer(study._storage, study._study_id, SPACE)):
        created = one.create({}, CLAIM)
        study._storage.get_all_trials(study._study_id)  # as a book does before it places a point
        for _ in range(2):  # doing it again is as good as once
            assert one.place(created.trial_id, POINT, {"cbob:forecast": {"limits": {}}})
        stored = study._storage.get_trial(created.trial_id)
        assert stored.params == POINT and stored.system_attrs["cbob:forecast"] == {"limits": {}}


def test_a_trial_takes_two_transactions(study: optuna.Study) -> None:
    mine, commits = writer(study), list[str]()

    def committed(connection: object) -> None:
        commits.append("one")

    event.listen(Engine, "commit", committed)
    try:
        mine.end(mine.create(POINT, CLAIM).trial_id, GOOD)
    finally:
        event.remove(Engine, "commit", committed)
    assert len(commits) == 2


def test_tables_that_we_do_not_know_and_other_storages_are_left_to_optuna(
    tmp_path: Path, open_url: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_url(f"sqlite:///{tmp_path}/study.db")
    assert type(writer_for(storage, 1, SPACE)) is Tables
    monkeypatch.setattr(cbob.study.writing, "KNOWN_SCHEMA", -1)
    assert type(writer_for(storage, 1, SPACE)) is Writer
    for other in (optuna.storages.InMemoryStorage(), open_url(f"journal:///{tmp_path}/log")):
        assert type(writer_for(other, 1, SPACE)) is Writer
