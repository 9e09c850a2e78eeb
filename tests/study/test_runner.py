"""What a driver knows of others, and what its view is told when."""

import threading
import time
from collections.abc import Callable

import pytest
from optuna.storages import BaseStorage

from cbob.constraints import as_constraints
from cbob.parameters import Float
from cbob.space import Space
from cbob.study.book import Book, Claim
from cbob.study.liveness import Card, Watch
from cbob.study.plan import Plan
from cbob.study.records import Record
from cbob.study.report import Report
from cbob.study.run import enter_study
from cbob.study.runner import IDLE, Progress, Runner
from cbob.study.storage import Patience
from cbob.study.tally import Tally
from cbob.study.views import Quiet

SPACE = Space({"x": Float(0.0, 1.0)})


class Told(Quiet):
    def __init__(self) -> None:
        super().__init__()
        self.finished_ones: list[int] = []

    def finished(self, record: Record, progress: Progress) -> None:
        self.finished_ones.append(record.number)


class Nowhere:
    def evaluate(self, params: object) -> Report:
        return Report(value=1.0)

    def close(self) -> None:
        pass


@pytest.fixture
def runner(storage_url: str, open_url: Callable[[str], BaseStorage]) -> Runner:
    plan = Plan(name=f"runner {id(open_url)}", space=SPACE, target="a:b", constraints=(), strategy="sobol")
    card = Card(1)
    book = Book(enter_study(plan, open_url(storage_url)), SPACE.parameters, driver=card.id, retries=2)
    return Runner(
        book=book,
        evaluator=Nowhere(),
        patience=Patience(storage_url),
        tally=Tally(as_constraints(()), "minimize"),
        view=Told(),
        card=card,
        watch=Watch(card.id),
        budget=9,
    )


def shown(runner: Runner, card: Card, *, ended: bool = False) -> None:
    runner.book.storage.set_study_system_attr(runner.book.study_id, *card.beat(ended=ended))


def test_a_driver_is_alone_until_another_shows_that_it_lives_and_once_it_ended_or_died(runner: Runner) -> None:
    def alone() -> bool:
        runner._bury()
        return runner.book.alone

    assert not runner.book.alone  # nobody looked yet
    shown(runner, runner.card)
    assert alone()
    other, dead = Card(1), Card(1, born="long ago")
    shown(runner, dead)
    assert alone()  # its process is another one now
    shown(runner, other)
    assert not alone()
    shown(runner, other, ended=True)
    assert alone()


def test_the_view_hears_once_of_each_trial_that_was_read_as_finished(runner: Runner) -> None:
    book, view = runner.book, runner.view
    assert isinstance(view, Told)
    for number in range(2):
        claim = book.claim(9, str(number))
        assert isinstance(claim, Claim)
        runner._evaluate(claim)
        runner._show()
        assert view.finished_ones == list(range(number))  # what was read last does not have it
        book.trials()
        runner._show()
        runner._show(read=True)
        assert view.finished_ones == list(range(number + 1))


def test_slots_that_wait_do_not_wake_each_other(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another driver runs all that is left of the budget."""
    other, book = Card(1), runner.book
    shown(runner, other)
    rival = Book(book.study, SPACE.parameters, driver=other.id, retries=2)
    runner.budget = 2
    for number in range(2):
        assert isinstance(rival.claim(2, f"rival {number}"), Claim)
    looks = []
    claim = book.claim
    monkeypatch.setattr(book, "claim", lambda *given: (looks.append(given), claim(*given))[1])
    slots = [threading.Thread(target=runner._slot, daemon=True) for _ in range(3)]
    for slot in slots:
        slot.start()
    time.sleep(1.5)
    runner._stop.set()
    for slot in slots:
        slot.join(30)
    assert 3 <= len(looks) <= 3 * (1 + 1.5 / IDLE[0])
