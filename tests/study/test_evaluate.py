"""Whatever a function under evaluation does: a report that says it, a freed slot, and nothing left behind."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import misbehaving
import psutil
import pytest

from cbob import Limits
from cbob.study.evaluate import Evaluator, evaluate
from cbob.study.log import KEPT
from cbob.study.report import Failure, FailureKind, Report

CONSTRAINTS = ["fuel <= 40", "mass <= 9"]
SECONDS = 0.7
SOON = 6.0  # seconds in which anything must have ended here, on a busy machine too


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    """One for all cases: what one of them spoils, the next would feel."""
    folder = tmp_path_factory.mktemp("work")
    with Evaluator(misbehaving.act, constraints=CONSTRAINTS, workdir=folder, limits=Limits(seconds=60)) as shared:
        yield shared


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    limits = Limits(SECONDS, grace=0.3)
    with Evaluator(misbehaving.act, limits=limits, workdir=tmp_path_factory.mktemp("work")) as shared:
        yield shared


@pytest.fixture(scope="module")
def lean() -> Iterator[Evaluator]:
    with Evaluator(misbehaving.act, limits=Limits(seconds=60, memory="250 MiB")) as shared:
        yield shared


def failure(report: Report) -> Failure:
    assert report.failure is not None
    assert report.value is None
    return report.failure


def assert_works(evaluator: Evaluator) -> None:
    report = evaluator.evaluate({"how": "well"})
    assert (report.value, report.failure) == (1.0, None)


def assert_gone(pid: int) -> None:
    end = time.monotonic() + SOON
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end, f"process {pid} is still there"
        time.sleep(0.01)


def noted(note: Path) -> int:
    end = time.monotonic() + SOON
    while not (note.exists() and note.read_text()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return int(note.read_text())


# What went well ------------------------------------------------------------------------------------------------------


def test_a_number_is_the_objective(evaluator: Evaluator) -> None:
    report = evaluator.evaluate({"how": "well"})
    assert report == Report(value=1.0, seconds=report.seconds)
    assert 0 < report.seconds < SOON


def test_a_dict_holds_the_objective_and_readings(evaluator: Evaluator) -> None:
    report = evaluator.evaluate({"how": "measured"})
    assert (report.value, dict(report.readings), report.failure) == (0.5, {"fuel": 30.0, "mass": 7.5}, None)


def test_numpy_scalars_are_numbers(evaluator: Evaluator) -> None:
    report = evaluator.evaluate({"how": "numpy_scalars"})
    assert (report.value, dict(report.readings), report.failure) == (0.5, {"fuel": 30.0}, None)


def test_a_broken_reading_needs_no_objective(evaluator: Evaluator) -> None:
    report = evaluator.evaluate({"how": "only_broken_reading"})
    assert (report.value, dict(report.readings), report.failure) == (None, {"fuel": 61.0}, None)


def test_a_reading_may_be_a_word(evaluator: Evaluator) -> None:
    report = evaluator.evaluate({"how": "reading_by_word"})
    assert (report.violated, report.satisfied, report.failure) == (("fuel",), ("mass",), None)


@pytest.mark.parametrize(
    ("how", "violated", "readings"),
    [
        ("infeasible_one", ("fuel",), {}),
        ("infeasible_two", ("fuel", "mass"), {}),
        ("infeasible_with_reading", ("fuel",), {"mass": 7.5}),
    ],
)
def test_infeasible_names_what_broke_and_is_no_failure(
    evaluator: Evaluator, how: str, violated: tuple[str, ...], readings: dict[str, float]
) -> None:
    report = evaluator.evaluate({"how": how})
    assert (report.value, report.violated, dict(report.readings), report.failure) == (None, violated, readings, None)


# What went wrong -----------------------------------------------------------------------------------------------------

WRONG = [
    ("raises", "exception", "RuntimeError: the solver diverged at step 7", r"before the end\n.*line \d+, in raises"),
    ("raises_unpicklable", "exception", "LocalError: .*lambda", "LocalError"),
    ("raises_unprintable", "exception", r"MuteError: \(cannot be shown\)", "MuteError"),
    ("raises_surrogate", "exception", "RuntimeError: ", "RuntimeError"),
    ("interrupts", "exception", "KeyboardInterrupt", "KeyboardInterrupt"),
    ("recursion", "exception", "RecursionError", "in recursion"),
    ("infeasible_unknown", "bad_result", "'feul' in 'violated' are no constraints; declared: 'fuel', 'mass'", ""),
    ("infeasible_unnamed", "missing", "breaks no constraint", ""),
    ("nan", "nan", "the objective is nan", ""),
    ("infinite", "nan", "the objective is -inf", ""),
    ("text", "bad_result", "the result must be a real number, not '0.3' \\(str\\)", ""),
    ("none", "missing", "None was returned", ""),
    ("empty", "missing", 'no "value" and breaks no constraint', ""),
    ("no_value", "missing", "no \"value\" and breaks no constraint: {'fuel': 30.0}", ""),
    ("wrong_reading", "bad_result", r"the reading 'fuel' must be a real number, not \[30.0\] \(list\)", ""),
    ("unknown_reading", "bad_result", "unknown keys 'feul'; expected are the constraints \\('fuel', 'mass'\\)", ""),
    ("contradiction", "bad_result", "'fuel' cannot be violated", ""),
    ("says_failed", "reported", "diverged", ""),
    ("unpicklable_result", "bad_result", "the reading 'fuel' must be a real number, not <function", ""),
    ("big_result", "bad_result", "the reading 'fuel' must be a real number, not 'xxx.*xxx' \\(str\\)", ""),
    ("many_keys", "bad_result", "'k0', 'k1', 'k2', 'k3', 'k4' and 99995 more", ""),
    ("hostile_result", "bad_result", "OSError while reading the result: not today", ""),
    ("exits_0", "exit", r"sys.exit\(0\) was called", "in exits_0"),
    ("exits_3", "exit", r"sys.exit\(3\) was called", "in exits_3"),
    ("leaves_0", "exit", "exit code 0 before there was a result", ""),
    ("leaves_1", "exit", "exit code 1", "nearly there"),
    ("segfault", "crash", r"killed by SIGSEGV \(Segmentation fault\)", "before the fault\nFatal Python error.*in segfault"),
    ("aborts", "crash", "killed by SIGABRT", "Fatal Python error.*in aborts"),
    ("killed", "crash", "killed by SIGKILL .* from outside", ""),
    ("terminated", "crash", "killed by SIGTERM", "in terminated"),
    ("stack_overflow", "crash", "killed by SIGSEGV", "Fatal Python error"),
    ("prints_bytes", "exception", "after bytes", "caf\ufffd\n\\\\udcff"),
    ("closes_everything_and_raises", "exception", "all is closed", ""),
]


@pytest.mark.parametrize(("how", "kind", "reason", "log"), WRONG, ids=[case[0] for case in WRONG])
def test_what_goes_wrong_is_a_report_and_the_next_evaluation_works(
    evaluator: Evaluator, how: str, kind: str, reason: str, log: str
) -> None:
    report = evaluator.evaluate({"how": how})
    assert failure(report).kind == kind
    assert re.search(reason, failure(report).reason), failure(report).reason
    assert re.search(log, report.log, re.DOTALL), report.log
    assert report.seconds < SOON
    report.log.encode()
    failure(report).reason.encode()
    assert_works(evaluator)


def test_a_reading_that_is_nan_fails_and_the_objective_is_kept(evaluator: Evaluator) -> None:
    report = evaluator.evaluate({"how": "nan_reading"})
    assert report.failure == Failure(FailureKind.NAN, "the reading 'fuel' is nan")
    assert (report.value, dict(report.readings)) == (1.0, {})


# Time ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "grace", "log"),
    [
        ("endless", 0.0, "round and round\n.*in endless"),
        ("ignores_sigterm", 0.3, ""),
        ("sleeps_in_c", 0.0, "in sleeps_in_c"),
        ("stops_itself", 0.3, ""),
        ("floods_for_ever", 0.0, "spam and eggs\n"),
    ],
)
def test_a_limit_of_time_ends_whatever_runs(strict: Evaluator, how: str, grace: float, log: str) -> None:
    start = time.monotonic()
    report = strict.evaluate({"how": how})
    assert failure(report) == Failure(FailureKind.TIMEOUT, f"it took longer than {SECONDS:g} s")
    assert SECONDS + grace <= time.monotonic() - start < SECONDS + grace + SOON
    assert re.search(log, report.log, re.DOTALL), report.log
    assert_works(strict)


def test_a_limit_of_time_ends_children_that_ignore_sigterm(strict: Evaluator, tmp_path: Path) -> None:
    report = strict.evaluate({"how": "tree_ignores_sigterm", "note": str(tmp_path / "pid")})
    assert failure(report).kind == FailureKind.TIMEOUT
    assert_gone(noted(tmp_path / "pid"))


# Memory --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["eats_lists", "eats_numpy", "eats_in_grandchild", "eats_in_many"])
def test_a_limit_of_memory_holds_for_the_whole_tree(lean: Evaluator, how: str) -> None:
    report = lean.evaluate({"how": how})
    assert failure(report).kind == FailureKind.MEMORY
    assert re.fullmatch(r"it used [\d.]+ [MG]iB of memory; the limit is 250.0 MiB", failure(report).reason)
    assert report.seconds < SOON
    assert_works(lean)


def test_a_hopeless_allocation_fails_where_it_is_made(lean: Evaluator) -> None:
    report = lean.evaluate({"how": "asks_for_too_much"})
    assert failure(report).kind == FailureKind.MEMORY
    assert "in asks_for_too_much" in report.log


def test_address_space_that_is_only_reserved_is_no_memory(lean: Evaluator) -> None:
    assert lean.evaluate({"how": "reserves_address_space"}).value == 1.0


# What is left behind -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["leaves_child", "leaves_daemon", "leaves_stubborn_daemon"])
def test_processes_left_behind_are_ended_and_hold_nothing_up(evaluator: Evaluator, tmp_path: Path, how: str) -> None:
    report = evaluator.evaluate({"how": how, "note": str(tmp_path / "pid")})
    assert (report.value, report.failure) == (1.0, None)
    assert report.seconds < SOON
    assert_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("how", ["leaves_thread", "returns_twice", "closes_output", "closes_everything", "replaces_output"])
def test_a_result_counts_whatever_else_was_done(evaluator: Evaluator, how: str) -> None:
    report = evaluator.evaluate({"how": how})
    assert (report.value, report.failure) == (1.0, None)
    assert report.seconds < SOON
    assert_works(evaluator)


def test_what_an_evaluation_changes_no_other_sees(evaluator: Evaluator) -> None:
    assert evaluator.evaluate({"how": "changes_place"}).value == 1.0
    assert evaluator.evaluate({"how": "sees_change"}).value == 0.0
    assert "SPOILT" not in os.environ


@pytest.mark.parametrize("how", ["draws", "draws_numpy"])
def test_evaluations_draw_different_random_numbers(evaluator: Evaluator, how: str) -> None:
    assert len({evaluator.evaluate({"how": how}).value for _ in range(3)}) == 3


# Output --------------------------------------------------------------------------------------------------------------


def test_a_gigabyte_of_output_takes_neither_memory_nor_disk(tmp_path: Path) -> None:
    others = psutil.Process().children()
    with Evaluator(misbehaving.act) as evaluator:
        assert_works(evaluator)
        (keeper,) = (child for child in psutil.Process().children() if child not in others)
        before = keeper.memory_info().rss
        report = evaluator.evaluate({"how": "prints_gigabyte"}, log_file=tmp_path / "log")
        assert keeper.memory_info().rss - before < 20 * 2**20
    assert report.value == 1.0
    assert report.log.endswith("spam\nthe end\n")
    assert len(report.log) < KEPT + 100
    assert report.log_file == tmp_path / "log"
    written = report.log_file.read_bytes()
    assert len(written) < 10 * 2**20
    assert written.startswith(b"spam and eggs")
    assert written.endswith(b"the end\n")
    assert b" bytes left out ...]" in written


def test_a_log_file_holds_all_of_a_short_output(evaluator: Evaluator, tmp_path: Path) -> None:
    report = evaluator.evaluate({"how": "raises"}, log_file=tmp_path / "log")
    assert (tmp_path / "log").read_text() == report.log


def test_a_log_file_that_cannot_be_written_to_is_done_without(evaluator: Evaluator, tmp_path: Path) -> None:
    report = evaluator.evaluate({"how": "raises"}, log_file=tmp_path / "nowhere" / "log")
    assert report.log_file is None
    assert report.log.startswith("[no log file: ")
    assert "the solver diverged" in report.log


# Where it runs -------------------------------------------------------------------------------------------------------


def test_a_deleted_working_directory_is_a_report(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    with Evaluator(misbehaving.act, workdir=folder) as evaluator:
        assert evaluator.evaluate({"how": "deletes_its_folder"}).value == 1.0
        report = evaluator.evaluate({"how": "well"})
        assert failure(report).kind == FailureKind.LOAD
        assert "working directory cannot be entered" in failure(report).reason
        folder.mkdir()
        report = evaluator.evaluate({"how": "deletes_its_folder_and_fails"})
        assert failure(report).reason.startswith("FileNotFoundError")
        folder.mkdir()
        assert_works(evaluator)


def test_a_keeper_that_dies_costs_one_evaluation(tmp_path: Path) -> None:
    with Evaluator(misbehaving.act) as evaluator:
        report = evaluator.evaluate({"how": "kills_its_keeper", "note": str(tmp_path / "pid")})
        assert failure(report) == Failure(FailureKind.LOST, "the process that watched over it was killed by Killed")
        assert not failure(report).kind.about_the_point
        assert_gone(noted(tmp_path / "pid"))
        assert_works(evaluator)


def test_an_evaluator_leaves_no_process_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    others = psutil.Process().children()
    with Evaluator(misbehaving.act) as evaluator:
        assert_works(evaluator)
        (keeper,) = (child for child in psutil.Process().children() if child not in others)
        assert list(tmp_path.iterdir()) != []
    assert not keeper.is_running()
    assert list(tmp_path.iterdir()) == []


def test_evaluate_is_an_evaluator_for_one_point() -> None:
    others = psutil.Process().children()
    report = evaluate(misbehaving.act, {"how": "measured"}, constraints=CONSTRAINTS, limits=Limits(60))
    assert (report.value, dict(report.readings)) == (0.5, {"fuel": 30.0, "mass": 7.5})
    assert psutil.Process().children() == others


def test_a_subprocess_of_the_driver_does_not_keep_evaluations_waiting(evaluator: Evaluator) -> None:
    with subprocess.Popen(["sleep", "3600"]) as unrelated:
        assert_works(evaluator)
        assert unrelated.poll() is None
        unrelated.kill()
