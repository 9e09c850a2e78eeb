"""The book of a study: claims, results, losses and retries, on real storages, with several drivers at once."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import BaseStorage
from optuna.trial import TrialState

from cbob.constraints import as_constraints
from cbob.errors import StudyError
from cbob.parameters import Categorical, Float, Int
from cbob.space import Space
from cbob.study.book import Book, Claim, Nothing, Template
from cbob.study.plan import Plan
from cbob.study.records import Record, records_of
from cbob.study.report import FailureKind, Report
from cbob.study.run import enter_study
from cbob.study.writing import Created, Point

SPACE = Space({"x": Float(0.0, 1.0), "n": Int(1, 1000, log=True), "kind": Categorical(["a", "b"])})
Opener = Callable[[str], BaseStorage]
LIMITS = as_constraints(["load <= 1"])


def plan(**options: object) -> Plan:
    given = {"name": f"study {uuid.uuid4()}", "space": SPACE, "target": "a:b", "constraints": LIMITS, "strategy": "sobol"}
    return Plan(**(given | options))  # type: ignore[arg-type]


def token() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def books(storage_url: str, open_url: Opener) -> Callable[..., Book]:
    """Makes drivers of one study, each with a connection of its own."""
    mine = plan()

    def make(driver: str, retries: int = 2) -> Book:
        return Book(enter_study(mine, open_url(storage_url)), SPACE.parameters, driver=driver, retries=retries)

    return make


def claimed(book: Book, budget: int = 10) -> Claim:
    claim = book.claim(budget, token())
    assert isinstance(claim, Claim)
    return claim


def records(book: Book) -> list[Record]:
    return records_of(book.trials(), LIMITS)


def test_a_claim_is_a_running_trial_with_parameters_of_the_space(books: Callable[..., Book]) -> None:
    book = books("a")
    claim = claimed(book)
    assert SPACE.check(claim.params) == claim.params
    (record,) = records(book)
    assert (record.number, record.status, record.params) == (0, "running", claim.params)


def test_what_was_found_is_stored_and_read_back(books: Callable[..., Book]) -> None:
    book = books("a")
    reports = [
        Report(value=2.0, readings={"load": 0.5}, seconds=1.5, log="hello\n"),
        Report(value=3.0, readings={"load": 1.5}),
        Report(readings={"load": 1.5}),
        Report(violated=("load",)),
        Report(value=4.0),
        Report.failed(FailureKind.TIMEOUT, "it took longer than 3 s"),
    ]
    for report in reports:
        assert book.finish(claimed(book), report)
    found = records(books("somebody who reads"))
    status = ["feasible", "infeasible", "infeasible", "infeasible", "undecided", "failed"]
    assert [record.status for record in found] == status
    assert (found[0].value, found[0].readings, found[0].seconds, found[0].log) == (2.0, {"load": 0.5}, 1.5, "hello\n")
    assert found[3].readings == {"load": "violated"}
    assert (found[5].kind, found[5].reason) == ("timeout", "it took longer than 3 s")
    assert [record.broke for record in found] == [(), ("load",), ("load",), ("load",), (), ()]


def test_the_budget_counts_what_is_finished_and_waits_for_what_runs(books: Callable[..., Book]) -> None:
    book, other = books("a"), books("b")
    first, second = claimed(book, 2), claimed(other, 2)
    assert book.claim(2, token()) is other.claim(2, token()) is Nothing.WAIT
    book.finish(first, Report(value=1.0))
    assert book.claim(2, token()) is Nothing.WAIT
    other.finish(second, Report.failed(FailureKind.CRASH, "segmentation fault"))
    assert book.claim(2, token()) is other.claim(2, token()) is Nothing.DONE


def test_claiming_twice_with_one_token_claims_one_trial(books: Callable[..., Book]) -> None:
    book, same = books("a"), token()
    assert book.claim(10, same) == book.claim(10, same)
    assert len(book.trials()) == 1


def test_storing_twice_stores_once(books: Callable[..., Book]) -> None:
    book = books("a")
    claim = claimed(book)
    assert book.finish(claim, Report(value=1.0)) and book.finish(claim, Report(value=1.0))
    assert [record.value for record in records(book)] == [1.0]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("strategy", ["sobol", "cbob"])
def test_many_drivers_at_once_never_overshoot_the_budget_or_share_a_point(
    storage_url: str, open_url: Opener, strategy: str, alone: bool
) -> None:
    """Even if each of them believes that it is alone."""
    budget, problems, mine = 24, list[BaseException](), plan(strategy=strategy, initial=200)

    def drive(name: str) -> None:
        try:
            book = Book(enter_study(mine, open_url(storage_url)), SPACE.parameters, driver=name, retries=2)
            book.alone = alone
            while (claim := book.claim(budget, token())) is not Nothing.DONE:
                if isinstance(claim, Claim):
                    book.finish(claim, Report(value=float(claim.number), readings={"load": 0.0}))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=drive, args=(f"driver {number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    found = records(Book(enter_study(mine, open_url(storage_url)), SPACE.parameters, driver="reader", retries=2))
    finished = [record for record in found if record.finished]
    assert len(finished) == budget
    assert Counter(record.status for record in found if not record.finished).keys() <= {"withdrawn"}
    assert max(Counter(tuple(record.params.values()) for record in finished).values()) == 1


@pytest.mark.parametrize("seed", range(6))
def test_a_driver_that_gets_its_point_late_does_not_share_it_with_the_next(
    storage_url: str, open_url: Opener, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few points are left, so that a row of the design may be taken and the next one has to do; another driver looks just
    before that point is placed, and claims right after."""
    few = Space({"n": Int(1, 12)})
    mine = plan(space=few, seed=seed)
    late, next_one = (Book(enter_study(mine, open_url(storage_url)), few.parameters, driver=d, retries=2) for d in "ab")
    for _ in range(6):
        late.finish(claimed(late, 20), Report(value=1.0, readings={"load": 0.5}))
    place = late.writer.place

    def placed(*given: Any) -> bool:
        next_one._read()
        return place(*given)

    monkeypatch.setattr(late.writer, "place", placed)
    next_one._read()
    claims = [late.claim(20, token()), next_one.claim(20, token())]
    points = [dict(claim.params)["n"] for claim in claims if isinstance(claim, Claim)]
    assert len(set(points)) == len(points), claims


def test_drivers_of_a_design_withdraw_nothing_while_there_is_room(storage_url: str, open_url: Opener) -> None:
    """Each trial has a row of its own, so that nobody ever gets the point of another."""
    mine = plan()
    several = [Book(enter_study(mine, open_url(storage_url)), SPACE.parameters, driver=str(n), retries=2) for n in range(3)]
    claims = [claimed(several[turn % 3], 100) for turn in range(12)]
    assert [claim.number for claim in claims] == list(range(12))
    assert len({tuple(claim.params.values()) for claim in claims}) == 12
    assert {tuple(claim.params) for claim in claims} == {SPACE.names}


@pytest.mark.parametrize("strategy", ["sobol", "cbob"])
def test_a_driver_asks_the_same_alone_and_in_company(storage_url: str, open_url: Opener, strategy: str) -> None:
    def asked(alone: bool) -> list[object]:
        book = Book(
            enter_study(plan(strategy=strategy, initial=3, seed=5), open_url(storage_url)),
            SPACE.parameters,
            driver="a",
            retries=5,
        )
        book.alone = alone
        points = []
        for _ in range(6):
            claim = claimed(book)
            points.append(claim.params)
            book.finish(claim, Report(value=(claim.params["x"] - 0.3) ** 2, readings={"load": claim.params["x"]}))
        return points

    assert asked(alone=True) == asked(alone=False)


def test_a_driver_that_is_alone_never_has_a_trial_without_a_point(books: Callable[..., Book]) -> None:
    """Killed at any moment, it leaves either nothing or a trial whose point is known, to be tried again."""
    book = books("a")
    book.alone = True
    for _ in range(3):
        book.finish(claimed(book), Report(value=1.0, readings={"load": 0.0}))
    seen: list[int] = []
    created = book.writer.create

    def killed(point: Point, system_attrs: Mapping[str, object]) -> Created:
        created(point, system_attrs)
        seen.extend(len(trial.params) for trial in book.trials())
        raise KeyboardInterrupt

    book.writer.create = killed  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        book.claim(10, token())
    assert seen == [3, 3, 3, 3]


@pytest.mark.parametrize("place", ["memory", "journal"])
def test_storages_that_are_no_databases_serve_as_well(tmp_path: Path, open_url: Opener, place: str) -> None:
    storage = optuna.storages.InMemoryStorage() if place == "memory" else open_url(f"journal:///{tmp_path}/log")
    mine = plan()
    book, other = (Book(enter_study(mine, storage), SPACE.parameters, driver=name, retries=2) for name in "ab")
    for one in (book, other, book):
        book.alone = True
        one.finish(claimed(one), Report(value=1.0, readings={"load": 0.5}))
    lost = claimed(other)
    assert book.bury({"b": "its driver died"}) == [lost.number]
    assert claimed(book).params == lost.params
    found = records(book)
    assert [record.status for record in found] == ["feasible"] * 3 + ["lost", "running"]
    assert len({tuple(map(record.params.get, SPACE.names)) for record in found}) == 4


def test_the_trial_of_a_dead_driver_is_lost_and_tried_again_first(books: Callable[..., Book]) -> None:
    dead, book = books("dead"), books("a")
    victim = claimed(dead)
    assert book.drivers() == {"dead"}
    assert book.bury({"dead": "its driver died"}) == [victim.number]
    (lost,) = records(book)
    assert (lost.status, lost.kind, lost.reason, lost.finished) == ("lost", "lost", "its driver died", False)
    retry = claimed(book)
    assert (retry.params, retry.attempt, retry.retry_of) == (victim.params, 1, victim.number)
    book.finish(retry, Report(value=1.0, readings={"load": 0.0}))
    assert claimed(book).params != victim.params


def test_a_lost_trial_is_retried_by_one_driver_only(books: Callable[..., Book]) -> None:
    dead, book, other = books("dead"), books("a"), books("b")
    victim = claimed(dead)
    book.bury({"dead": "its driver died"})
    claims = [claimed(book), claimed(other)]
    assert [claim.retry_of for claim in claims] == [victim.number, None]
    assert claims[0].params != claims[1].params


def test_a_trial_that_is_lost_too_often_is_abandoned_and_counts(books: Callable[..., Book]) -> None:
    book = books("a", retries=1)
    for _ in range(2):
        claim = claimed(book)
        book.lose(claim, "its worker died")
    found = records(book)
    assert [record.status for record in found] == ["lost", "failed"]
    assert (found[1].kind, found[1].reason) == ("abandoned", "its worker died, for the 2. time")
    assert claimed(book).retry_of is None


def test_an_interrupted_trial_is_tried_again_without_spending_an_attempt(books: Callable[..., Book]) -> None:
    book = books("a", retries=0)
    first = claimed(book)
    book.interrupt(first)
    again = claimed(book)
    assert (again.params, again.attempt, again.retry_of) == (first.params, 0, first.number)


def test_a_late_result_becomes_that_of_the_retry(books: Callable[..., Book]) -> None:
    slow, book = books("slow"), books("a")
    claim = claimed(slow)
    book.bury({"slow": "its driver was silent for 60 s"})
    report = Report(value=5.0, readings={"load": 0.0})
    assert not slow.finish(claim, report)
    same = token()
    assert slow.adopt(claim, report, 10, same) and slow.adopt(claim, report, 10, same)
    assert [(record.status, record.value, record.retry_of) for record in records(book)] == [
        ("lost", None, None),
        ("feasible", 5.0, claim.number),
    ]


def test_a_late_result_is_dropped_where_the_retry_is_under_way(books: Callable[..., Book]) -> None:
    slow, book = books("slow"), books("a")
    claim = claimed(slow)
    book.bury({"slow": "its driver was silent for 60 s"})
    retry = claimed(book)
    assert not slow.adopt(claim, Report(value=5.0), 10, token())
    assert book.finish(retry, Report(value=5.0))
    assert [record.status for record in records(book)] == ["lost", "undecided"]


def test_burying_twice_or_too_late_changes_nothing(books: Callable[..., Book]) -> None:
    quick, book = books("quick"), books("a")
    claim = claimed(quick)
    quick.finish(claim, Report(value=1.0, readings={"load": 0.0}))
    assert book.bury({"quick": "its driver died"}) == []
    assert [record.status for record in records(book)] == ["feasible"]


def test_a_driver_killed_while_it_claimed_leaves_nothing_that_blocks(books: Callable[..., Book]) -> None:
    dead, book = books("dead"), books("a")
    dead._create(token(), Template())  # a claim without parameters: the sampler was still thinking
    assert book.claim(1, token()) is Nothing.WAIT
    book.bury({"dead": "its driver died"})
    claim = claimed(book, 1)
    assert claim.retry_of is None
    book.finish(claim, Report(value=1.0))
    assert book.claim(1, token()) is Nothing.DONE


def test_the_sampler_asks_the_same_after_a_loss_as_without_it(storage_url: str, open_url: Opener) -> None:
    def asked(losses: bool) -> list[object]:
        mine = plan(strategy="cbob", initial=3, seed=5)
        book = Book(enter_study(mine, open_url(storage_url)), SPACE.parameters, driver="a", retries=5)
        points = []
        while (claim := book.claim(7, token())) is not Nothing.DONE:
            assert isinstance(claim, Claim)
            if losses and claim.attempt == 0 and claim.number % 2:
                book.lose(claim, "its worker died")
                continue
            points.append(claim.params)
            x = claim.params["x"]
            book.finish(claim, Report(value=(x - 0.3) ** 2, readings={"load": x + claim.params["n"] / 1000}))
        return points

    assert asked(losses=True) == asked(losses=False)


def test_another_space_under_the_same_name_is_refused(storage_url: str, open_url: Opener) -> None:
    mine = plan()
    enter_study(mine, open_url(storage_url))
    for part, other in (("space", {"space": Space({"x": Float(0, 2)})}), ("constraints", {"constraints": ["load <= 2"]})):
        with pytest.raises(StudyError, match=f"was begun with {part} "):
            enter_study(plan(name=mine.name, **other), open_url(storage_url))
    with pytest.raises(StudyError, match="was begun with direction"):
        enter_study(plan(name=mine.name, direction="maximize"), open_url(storage_url))


def test_a_study_of_somebody_elses_is_left_alone(storage_url: str, open_url: Opener) -> None:
    mine = plan()
    storage = open_url(storage_url)
    foreign = optuna.create_study(storage=storage, study_name=mine.name)
    foreign.add_trial(optuna.create_trial(state=TrialState.COMPLETE, value=1.0))
    with pytest.raises(StudyError, match="was not begun by cbob"):
        enter_study(mine, storage)
