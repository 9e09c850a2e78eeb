"""What a run looks like: on a terminal, in a pipe, for a script."""

import io
import json
from dataclasses import replace
from typing import Any

from rich.console import Console

from cbob.study.records import Record
from cbob.study.runner import Progress
from cbob.study.tally import Standing
from cbob.study.views import JSONLines, Lines, Live, Quiet, counts, duration, expectations, outcome

GOOD: dict[str, Any] = {
    "params": {"x": 0.25, "kind": "a"},
    "value": 1.5,
    "readings": {"load": 0.5},
    "broke": (),
    "kind": None,
    "reason": None,
    "seconds": 0.1,
    "log": "",
    "started": None,
    "ended": None,
    "retry_of": None,
}
BEST = Record(number=3, status="feasible", **GOOD)
TIMEOUT = Record(number=4, status="failed", **GOOD | {"value": None, "kind": "timeout", "reason": "it took longer than 3 s"})
BROKEN = Record(number=5, status="infeasible", **GOOD | {"readings": {"load": 7.25, "x": "violated"}, "broke": ("load", "x")})
STANDING = Standing(
    finished=40, feasible=25, running=2, lost=1, broke={"load": 9}, failed={"timeout": 4, "crash": 2}, best=BEST
)
PROGRESS = Progress(STANDING, budget=100, busy=3, workers=4, elapsed=80.0, rate=0.5, left=120.0, asking=0.125)


def test_an_outcome_is_said_in_a_few_words() -> None:
    assert outcome(BEST) == "1.5"
    assert outcome(TIMEOUT) == "timeout: it took longer than 3 s"
    assert outcome(BROKEN) == "broke load (7.25), x"


def test_what_was_expected_of_a_trial_is_said_in_probabilities() -> None:
    numbers = {"limits": {"load": 1.0, "it ran": -2.0}, "improvement": 0.0, "weighed": {"balance": 0.25}}
    lines = expectations(replace(BEST, forecast=numbers))
    assert lines == ["load holds with 84%", "it ran holds with 2%", "a new best with 50%, if it is feasible", "balance 0.25"]
    assert expectations(BEST) == ["nothing: surrogates had no say"]


def test_the_panel_shows_the_best_the_failures_the_workers_and_the_time_left() -> None:
    console = Console(file=io.StringIO(), width=100)
    console.print(Live("lander", console).panel(PROGRESS))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    for words in (
        "lander",
        "1.5  (trial 3)",
        "x = 0.25  kind = a",
        "25 feasible of 40; 1 lost",
        "load 9",
        "timeout 4  crash 2",
        "3 of 4 busy, 12% of their time asking",
        "30.0 trials a minute, 80 s so far, 2 min left",
        "40/100",
    ):
        assert words in shown


def test_the_panel_is_drawn_before_anything_is_known() -> None:
    console = Console(file=io.StringIO(), width=100)
    console.print(Live("lander", console).panel(Progress(Standing(), 100, 0, 4, 0.0, None, None, 0.0)))
    assert "none feasible yet" in console.file.getvalue()  # type: ignore[attr-defined]


def test_on_a_terminal_trials_pass_by_above_the_panel() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    with Live("lander", console) as view:
        view.tick(PROGRESS)
        view.finished(TIMEOUT, PROGRESS)
        view.said("storage is away")
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "timeout: it took longer than 3 s" in shown and "storage is away" in shown


def test_in_a_pipe_each_trial_is_one_plain_line() -> None:
    out = io.StringIO()
    Lines(out).finished(TIMEOUT, PROGRESS)
    (line,) = out.getvalue().splitlines()
    assert " ".join(line.split()) == "[40/100] trial 4 timeout: it took longer than 3 s best 1.5, 2 min left"
    assert "\x1b" not in line


def test_for_a_script_each_trial_is_one_json_object() -> None:
    out = io.StringIO()
    view = JSONLines(out)
    view.finished(TIMEOUT, PROGRESS)
    view.event("end", {"finished": 100})
    first, last = map(json.loads, out.getvalue().splitlines())
    assert (first["event"], first["number"], first["kind"], first["budget"]) == ("trial", 4, "timeout", 100)
    assert last == {"event": "end", "finished": 100}


def test_trouble_goes_to_the_error_stream_even_when_quiet() -> None:
    errors = io.StringIO()
    Quiet(errors).said("storage is away")
    assert errors.getvalue() == "cbob: storage is away\n"


def test_times_and_counts_are_for_people() -> None:
    assert [duration(seconds) for seconds in (3.4, 99, 720, 12_000)] == ["3 s", "99 s", "12 min", "3 h 20 min"]
    assert counts({"crash": 1, "timeout": 3, "memory": 1}) == "timeout 3  crash 1  memory 1"
