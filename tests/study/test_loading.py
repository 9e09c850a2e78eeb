"""Functions by their place, by value, in fresh interpreters and in this one; and modules that do not load."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import misbehaving
import pytest
from test_evaluate import assert_gone, noted

from cbob import Infeasible, Limits, LimitsError, TargetError
from cbob.study.evaluate import Evaluator, evaluate
from cbob.study.report import Failure, FailureKind, Report

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the module `lander` and returns its folder."""

    def write(code: str) -> Path:
        (tmp_path / "lander.py").write_text(code)
        return tmp_path

    return write


def load_failure(report: Report) -> Failure:
    assert report.failure is not None
    assert report.failure.kind == FailureKind.LOAD
    assert not report.failure.kind.about_the_point
    return report.failure


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_function_is_found_by_its_place(write: Write, start: str) -> None:
    folder = write("import os\nclass Moon:\n  @staticmethod\n  def land(p): return {'value': p['x'], 'here': os.getpid()}\n")
    report = evaluate("lander:Moon.land", {"x": 2.0}, constraints="here >= 1", workdir=folder, start=start)
    assert report.value == 2.0
    assert report.readings["here"] != os.getpid()


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize(
    ("code", "function", "reason", "log"),
    [
        ("import no_such_thing", "lander:land", "ModuleNotFoundError: No module named 'no_such_thing'", "lander.py"),
        ("def land(p) return 1", "lander:land", "SyntaxError", "def land"),
        ("print('here'); raise SystemExit(4)", "lander:land", "SystemExit: 4", "here"),
        ("", "lander:land", "module 'lander' has no 'land'", ""),
        ("land = 3", "lander:land", "is not a function but 3 (int)", ""),
        ("", "no_lander:land", "No module named 'no_lander'", ""),
    ],
)
def test_a_module_that_does_not_load_is_a_report(
    write: Write, start: str, code: str, function: str, reason: str, log: str
) -> None:
    report = evaluate(function, {}, workdir=write(code), start=start)
    assert reason in load_failure(report).reason
    assert log in report.log


def test_a_module_that_crashes_or_hangs_is_a_report(write: Write) -> None:
    folder = write("import ctypes; print('here', flush=True); ctypes.string_at(0)")
    report = evaluate("lander:land", {}, workdir=folder)
    assert "was killed by Segmentation fault" in load_failure(report).reason
    assert report.log.startswith("here")
    write("import os; os._exit(3)")
    assert "ended with exit code 3" in load_failure(evaluate("lander:land", {}, workdir=folder)).reason
    write("print('here', flush=True)\nwhile True: pass")
    start = time.monotonic()
    report = evaluate("lander:land", {}, workdir=folder, limits=Limits(loading=3))
    assert load_failure(report).reason == "'lander:land' took longer than 3 s to load"
    assert report.log == "here\n"
    assert time.monotonic() - start < 15


def test_a_module_that_was_mended_is_loaded_anew(write: Write) -> None:
    folder = write("raise RuntimeError")
    with Evaluator("lander:land", workdir=folder) as evaluator:
        load_failure(evaluator.evaluate({}))
        write("def land(p): return 1.0")
        assert evaluator.evaluate({}).value == 1.0


def test_a_module_is_loaded_once_for_many_evaluations(write: Write) -> None:
    folder = write("open('loads', 'a').write('x')\ndef land(p): return 1.0")
    with Evaluator("lander:land", workdir=folder) as evaluator:
        assert [evaluator.evaluate({}).value for _ in range(3)] == [1.0, 1.0, 1.0]
    assert (folder / "loads").read_text() == "x"


def test_a_module_that_starts_threads_is_not_forked(write: Write) -> None:
    threads = "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,)).start()\n"
    folder = write(threads + "def land(p): return threading.active_count()")
    with Evaluator("lander:land", workdir=folder) as evaluator:
        assert [evaluator.evaluate({}).value for _ in range(2)] == [2.0, 2.0]  # a fork would have lost its thread


def test_lambdas_and_closures_are_sent_by_value() -> None:
    offset = 3.0
    assert evaluate(lambda p: p["x"] + offset, {"x": 1.0}).value == 4.0
    assert evaluate(lambda p: p["x"] + offset, {"x": 1.0}, start="spawn").value == 4.0


def test_functions_of_a_script_are_sent_by_value_and_the_script_needs_no_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from cbob.study.evaluate import evaluate\nimport os, math\nclass Broken(Exception): pass\n"
        "def helper(x): return math.sqrt(x)\ndef land(p): return helper(p['x'])\n"
        "print(evaluate(land, {'x': 4.0}).value, flush=True)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "2.0\n"


def test_a_function_that_cannot_be_sent_is_an_error_that_says_so() -> None:
    lock = threading.Lock()
    with pytest.raises(TargetError, match=r"cannot be sent to a process of its own .*lock.*isolate=False"):
        Evaluator(lambda p: lock.locked())


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("segfault", "crash"),
        ("raises", "exception"),
        ("exits_3", "exit"),
        ("leaves_0", "exit"),
        ("closes_everything_and_raises", "exception"),
        ("infeasible_unknown", "bad_result"),
        ("endless", "timeout"),
    ],
)
def test_a_fresh_interpreter_is_watched_in_the_same_way(how: str, kind: str) -> None:
    report = evaluate(misbehaving.act, {"how": how}, start="spawn", limits=Limits(1.5))
    assert report.failure is not None
    assert report.failure.kind == kind
    assert (how in report.log) == (how not in ("leaves_0", "closes_everything_and_raises", "infeasible_unknown"))


PORTABLE = [
    ("segfault", "crash"),
    ("raises", "exception"),
    ("exits_3", "exit"),
    ("leaves_0", "exit"),
    ("leaves_1", "exit"),
    ("nan", "nan"),
    ("ignores_sigterm", "timeout"),
    ("floods_for_ever", "timeout"),
    ("eats_lists", "memory"),
    ("eats_in_grandchild", "memory"),
]


@pytest.mark.parametrize(("how", "kind"), PORTABLE)
def test_without_a_keeper_a_fresh_interpreter_is_watched_as_well(how: str, kind: str) -> None:
    limits = Limits(1.5 if kind == "timeout" else 30, memory="250MiB", grace=0.2)
    with Evaluator(misbehaving.act, start="portable", limits=limits) as evaluator:
        report = evaluator.evaluate({"how": how})
        assert report.failure is not None
        assert report.failure.kind == kind
        assert report.seconds < 8
        assert evaluator.evaluate({"how": "well"}).value == 1.0


def test_without_a_keeper_commands_run_and_children_are_ended(tmp_path: Path) -> None:
    assert evaluate(["echo", '{{"value": {x}}}'], {"x": 2}, start="portable").value == 2.0
    load_failure(evaluate(["no-such-program"], {}, start="portable"))
    params = {"how": "waits_with_daemon", "note": str(tmp_path / "pid")}
    report = evaluate(misbehaving.act, params, start="portable", limits=Limits(1.0))
    assert report.failure is not None
    assert report.failure.kind == FailureKind.TIMEOUT
    assert_gone(noted(tmp_path / "pid"))


# In this process -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "kind", "log"),
    [
        ("raises", "exception", "in raises"),
        ("exits_3", "exit", "in exits_3"),
        ("nan", "nan", ""),
        ("none", "missing", ""),
        ("recursion", "exception", "in recursion"),
        ("unknown_reading", "bad_result", ""),
    ],
)
def test_without_isolation_what_can_be_caught_is_a_report(how: str, kind: str, log: str) -> None:
    report = evaluate(misbehaving.act, {"how": how}, constraints="fuel <= 40", isolate=False)
    assert report.failure is not None
    assert report.failure.kind == kind
    assert log in report.log


def test_without_isolation_a_function_is_called_here_and_gets_its_own_parameters() -> None:
    lock, params = threading.Lock(), {"x": 1.0}

    def land(p: dict[str, float]) -> float:
        p["x"] = 9.0
        return float(lock.locked() is False and multiprocessing.parent_process() is None)

    assert evaluate(land, params, isolate=False).value == 1.0
    assert params == {"x": 1.0}


def test_without_isolation_ctrl_c_goes_through_and_limits_are_refused() -> None:
    with pytest.raises(KeyboardInterrupt):
        evaluate(misbehaving.act, {"how": "interrupts"}, isolate=False)
    with pytest.raises(LimitsError, match="leave out isolate=False"):
        Evaluator(misbehaving.act, limits=Limits(1.0), isolate=False)


def test_without_isolation_a_module_that_does_not_load_is_a_report() -> None:
    assert "no_lander" in load_failure(evaluate("no_lander:land", {}, isolate=False)).reason


def test_without_isolation_infeasible_keeps_its_readings() -> None:
    def land(_: object) -> float:
        raise Infeasible("fuel", readings={"mass": 7.5})

    report = evaluate(land, {}, constraints=["fuel <= 40", "mass <= 9"], isolate=False)
    assert (report.violated, dict(report.readings), report.failure) == (("fuel",), {"mass": 7.5}, None)
