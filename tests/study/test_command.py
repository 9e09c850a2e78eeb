"""Commands under evaluation: a program, its arguments, and the JSON it reports."""

import sys
import time
from pathlib import Path

import psutil
import pytest

from cbob import Limits, TargetError
from cbob.study.evaluate import Evaluator, evaluate
from cbob.study.report import Failure, FailureKind, Report

CONSTRAINTS = ["fuel <= 40"]


def run(code: str, *arguments: str, seconds: float = 60) -> Report:
    """Python as a program like any other; braces of the code are doubled, so that they are not placeholders."""
    code = code.replace("{", "{{").replace("}", "}}")
    params = {"thrust": 1.5, "stages": 3, "kind": "a b; c"}
    return evaluate([sys.executable, "-c", code, *arguments], params, constraints=CONSTRAINTS, limits=Limits(seconds))


def test_placeholders_are_arguments_of_their_own_and_no_shell_reads_them() -> None:
    report = run(
        "import json, sys; print(sys.argv[1:]); print(json.dumps({'value': len(sys.argv)}))",
        "--thrust={thrust:.3f}",
        "{kind}",
        "{{{stages}}}",
    )
    assert report.log.startswith("['--thrust=1.500', 'a b; c', '{3}']\n")
    assert report.value == 4.0


def test_the_last_line_that_is_an_object_counts() -> None:
    code = """print('{"value": 1}\\n{"value": 2, "fuel": 30}\\n[3]\\n4\\n{"value": 5\\n{garbage}')"""
    report = run(code)
    assert (report.value, dict(report.readings), report.failure) == (2.0, {"fuel": 30.0}, None)


def test_an_object_on_stderr_is_no_result_but_is_in_the_log() -> None:
    report = run("""import sys; sys.stderr.write('{"value": 1}')""")
    assert report.failure == Failure(
        FailureKind.MISSING, "it reported no JSON object, neither on a line of stdout nor in a file"
    )
    assert report.log == '{"value": 1}'


def test_the_result_may_be_written_to_a_file() -> None:
    code = "import sys, json; json.dump({'value': 7}, open(sys.argv[1], 'w'), indent=2); print('{\"value\": 8}')"
    assert run(code, "{output}").value == 7.0
    code = "import os, json; json.dump({'value': 7}, open(os.environ['CBOB_OUTPUT'], 'w'))"
    assert run(code).value == 7.0


def test_the_file_of_one_evaluation_is_not_read_for_the_next(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'a').write(sys.argv[2])"
    with Evaluator([sys.executable, "-c", code, "{output}", "{text}"]) as evaluator:
        assert evaluator.evaluate({"text": '{"value": 1}'}).value == 1.0
        report = evaluator.evaluate({"text": ""})
        assert report.failure is not None
        assert report.failure.kind == FailureKind.MISSING


def test_parameters_are_in_the_environment_too() -> None:
    report = run("import os, json; print(json.dumps({'value': json.loads(os.environ['CBOB_PARAMS'])['thrust']}))")
    assert report.value == 1.5


def test_a_command_may_name_what_broke() -> None:
    report = run("""print('{"violated": ["fuel"]}')""")
    assert (report.violated, report.failure) == (("fuel",), None)


def test_an_exit_code_is_a_failure_and_what_broke_is_kept() -> None:
    report = run("""print('{"value": 1, "violated": ["fuel"]}', flush=True); raise SystemExit(3)""")
    assert report.failure == Failure(FailureKind.EXIT, "its process ended with exit code 3")
    assert (report.value, report.violated) == (None, ("fuel",))


def test_bytes_that_are_no_text_do_no_harm() -> None:
    report = run("""import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\n{"value": 1}\\n\\xe9')""")
    assert report.value == 1.0
    assert report.log == '\ufffd\ufffd\n{"value": 1}\n\ufffd'


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('{"value": NaN}', "nan"),
        ('{"value": "1"}', "bad_result"),
        ('{"value": 1, "feul": 2}', "bad_result"),
        ('{"value": 1, "violated": 3}', "bad_result"),
        ('{"value": 1' + "0" * 400 + "}", "nan"),
        ("{}", "missing"),
        ('{"failed": "diverged"}', "reported"),
        ('{"failed": 7}', "bad_result"),
        ('{"value": ' + "[" * 30000 + "]" * 30000 + "}", "missing"),
        ("1.5", "missing"),
    ],
)
def test_a_result_that_cannot_be_read_is_a_report(line: str, kind: str) -> None:
    report = run(f"print({line!r})")
    assert report.failure is not None
    assert report.failure.kind == kind
    assert report.value is None


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["no-such-program-anywhere"], "the command 'no-such-program-anywhere' cannot be run: No such file or directory"),
        (["./data.txt"], "the command './data.txt' cannot be run: Permission denied"),
        (["."], "the command '.' cannot be run: Permission denied"),
        (["./text"], "the command './text' cannot be run: Exec format error"),
        (["echo", "{thurst}"], "the command has placeholders 'thurst'; there are 'output', 'thrust'"),
        (["echo", "{thrust:d}"], "the command cannot be filled in"),
    ],
)
def test_a_command_that_cannot_be_run_is_a_report(tmp_path: Path, command: list[str], reason: str) -> None:
    (tmp_path / "data.txt").write_text("1 2 3")
    (tmp_path / "text").write_text("1 2 3")
    (tmp_path / "text").chmod(0o755)
    report = evaluate(command, {"thrust": 1.0}, workdir=tmp_path)
    assert report.failure is not None
    assert report.failure.kind == FailureKind.LOAD
    assert not report.failure.kind.about_the_point
    assert report.failure.reason.startswith(reason)


def test_a_program_beside_the_study_is_found_in_its_working_directory(tmp_path: Path) -> None:
    (tmp_path / "simulate").write_text('#!/bin/sh\necho "{\\"value\\": $1}"\n')
    (tmp_path / "simulate").chmod(0o755)
    assert evaluate(["./simulate", "{thrust}"], {"thrust": 2.5}, workdir=tmp_path).value == 2.5


def test_a_pipe_that_a_daemon_holds_open_holds_nothing_up(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    shell = f"""setsid sh -c 'echo $$ > {pid}; exec sleep 3600' & while [ ! -s {pid} ]; do :; done; echo '{{{{"value": 1}}}}'"""
    start = time.monotonic()
    assert evaluate(["sh", "-c", shell], {}).value == 1.0
    assert time.monotonic() - start < 6
    assert not psutil.pid_exists(int(pid.read_text()))


def test_a_command_has_no_input_and_a_time_limit() -> None:
    assert evaluate(["cat"], {}).failure == run("pass").failure
    report = evaluate(["sleep", "3600"], {}, limits=Limits(0.3))
    assert report.failure == Failure(FailureKind.TIMEOUT, "it took longer than 0.3 s")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([], "expected a function"),
        ("lander", "expected a function"),
        ("lander.py:land", None),
        ("my lander:land", "expected a function"),
        (7, "expected a function"),
        ([1, 2], "expected a function"),
        (["echo", "{"], "brace"),
        (["echo", "{}"], "placeholders of a command are names"),
        (["echo", "{thrust.real}"], "placeholders of a command are names"),
        ([""], "empty"),
    ],
)
def test_what_cannot_be_evaluated_is_an_error_at_once(target: object, message: str | None) -> None:
    if message is None:
        Evaluator(target).close()
        return
    with pytest.raises(TargetError, match=message):
        Evaluator(target)
