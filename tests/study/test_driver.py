"""The driver of evaluations stops them, runs several at once, and takes them with it when it dies."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import misbehaving
import psutil
import pytest
from test_evaluate import assert_gone, assert_works, noted

from cbob.study.evaluate import Evaluator
from cbob.study.report import Failure, FailureKind, Report

SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import misbehaving
from cbob.study.evaluate import Evaluator
with Evaluator(misbehaving.act) as evaluator:
    evaluator.evaluate({{"how": {how!r}, "note": {note!r}}})
"""


def in_a_thread(evaluator: Evaluator, params: dict[str, object], reports: list[Report]) -> threading.Thread:
    thread = threading.Thread(target=lambda: reports.append(evaluator.evaluate(params)))
    thread.start()
    return thread


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("how", ["waits", "waits_with_daemon"])
def test_a_driver_that_dies_takes_its_evaluation_with_it(tmp_path: Path, number: int, how: str) -> None:
    note = tmp_path / "pid"
    code = SCRIPT.format(folder=str(Path(misbehaving.__file__).parent), how=how, note=str(note))
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL, env=environment) as driver:
        pid = noted(note)
        (keeper,) = psutil.Process(driver.pid).children()
        driver.send_signal(number)
        driver.wait(10)
        assert_gone(pid)
        assert_gone(keeper.pid)
    assert list(tmp_path.iterdir()) == [note]


def test_stop_ends_what_runs_and_the_evaluator_goes_on(tmp_path: Path) -> None:
    with Evaluator(misbehaving.act) as evaluator:
        reports: list[Report] = []
        thread = in_a_thread(evaluator, {"how": "waits", "note": str(tmp_path / "pid")}, reports)
        pid = noted(tmp_path / "pid")
        evaluator.stop()
        thread.join(10)
        assert [report.failure for report in reports] == [Failure(FailureKind.STOPPED, "the study ended it")]
        assert not FailureKind.STOPPED.about_the_point
        assert_gone(pid)
        assert_works(evaluator)


def test_close_ends_what_runs_and_nothing_starts_afterwards(tmp_path: Path) -> None:
    others = psutil.Process().children()
    evaluator = Evaluator(misbehaving.act)
    reports: list[Report] = []
    thread = in_a_thread(evaluator, {"how": "waits", "note": str(tmp_path / "pid")}, reports)
    noted(tmp_path / "pid")
    evaluator.close()
    thread.join(10)
    assert [report.failure and report.failure.kind for report in reports] == [FailureKind.STOPPED]
    assert psutil.Process().children() == others
    report = evaluator.evaluate({"how": "well"})
    assert report.failure == Failure(FailureKind.STOPPED, "the evaluator is closed")
    evaluator.close()


def test_close_ends_a_function_that_is_still_loading(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("open('loading', 'w').write('1')\nwhile True: pass")
    evaluator = Evaluator("slow:land", workdir=tmp_path)
    reports: list[Report] = []
    thread = in_a_thread(evaluator, {}, reports)
    noted(tmp_path / "loading")
    evaluator.close()
    thread.join(10)
    assert [report.failure and report.failure.kind for report in reports] == [FailureKind.STOPPED]


def test_threads_evaluate_at_the_same_time(tmp_path: Path) -> None:
    with Evaluator(misbehaving.act) as evaluator:
        reports: list[Report] = []
        start = time.monotonic()
        notes = [str(tmp_path / f"pid{i}") for i in range(4)]
        threads = [in_a_thread(evaluator, {"how": "waits", "note": note, "seconds": 1.0}, reports) for note in notes]
        for thread in threads:
            thread.join(20)
        assert [report.value for report in reports] == [1.0] * 4
        assert time.monotonic() - start < 3.9
        assert len({Path(note).read_text() for note in notes}) == 4


def test_ctrl_c_while_waiting_ends_the_evaluation_and_is_raised(tmp_path: Path) -> None:
    timer = threading.Timer(0.0, lambda: (noted(tmp_path / "pid"), os.kill(os.getpid(), signal.SIGINT)))
    with Evaluator(misbehaving.act) as evaluator:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            evaluator.evaluate({"how": "waits", "note": str(tmp_path / "pid")})
        timer.join()
        assert_gone(noted(tmp_path / "pid"))
        assert_works(evaluator)


def test_other_children_of_the_driver_do_not_keep_a_keeper_alive_nor_end_with_it() -> None:
    with Evaluator(misbehaving.act) as evaluator:
        assert_works(evaluator)
        with subprocess.Popen(["sleep", "3600"], close_fds=False) as unrelated:
            evaluator.close()
            assert unrelated.poll() is None
            unrelated.kill()
