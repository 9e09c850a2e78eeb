"""The command `cbob`: parses and prints, decides nothing.

Exit codes: 0 there is a feasible point (or what was asked for was done), 1 something failed while it ran, 2 the command line
or the study file is wrong, 3 the budget is used up and no point was feasible, 130 interrupted by Ctrl-C, 143 terminated.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import cbob
from cbob.bench.entry import add_to as add_bench_to
from cbob.errors import CbobError, StorageError

if TYPE_CHECKING:
    from cbob.study.config import StudyFile
    from cbob.study.minimize import Result
    from cbob.study.reading import Stored

__all__ = ["main"]

FOUND, FAILED, USAGE, NOTHING_FEASIBLE, INTERRUPTED = 0, 1, 2, 3, 130
OVERRIDES = ("budget", "workers", "storage", "name", "seed")


class Terminated(KeyboardInterrupt):
    """A signal other than Ctrl-C asked to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives back its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return int(options.command(options))
    except Terminated as ended:
        return _say(f"ended by {ended}; the same command goes on from here", ended.code)
    except KeyboardInterrupt:
        return _say("interrupted; the same command goes on from here", INTERRUPTED)
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stderr.close()
        return FAILED
    except (StorageError, ImportError) as error:
        return _say(str(error), FAILED)
    except CbobError as error:
        return _say(str(error), USAGE)


def _say(words: str, code: int) -> int:
    print(f"cbob: {words}", file=sys.stderr)
    return code


# ---- commands ----


def _run(options: argparse.Namespace) -> int:
    from cbob.study.minimize import need_study_extra

    need_study_extra()
    from cbob.study.config import read_study_file

    overrides = {key: getattr(options, key) for key in OVERRIDES if getattr(options, key) is not None}
    return _run_file(read_study_file(_study_file(options), overrides), options)


def _resume(options: argparse.Namespace) -> int:
    from cbob.study.minimize import need_study_extra

    need_study_extra()
    from cbob.study.config import read_study_file
    from cbob.study.reading import read_study

    overrides = {key: getattr(options, key) for key in OVERRIDES if getattr(options, key) is not None}
    file = read_study_file(_study_file(options), overrides)
    read_study(file.storage, file.plan.name)  # an error where there is nothing to resume
    return _run_file(file, options)


def _run_file(file: StudyFile, options: argparse.Namespace) -> int:
    import optuna

    from cbob.study.run import run_study
    from cbob.study.views import JSONLines, Quiet, terminal_view

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    view = JSONLines() if options.json else Quiet() if options.quiet else terminal_view(file.plan.name)
    before = {number: signal.signal(number, _terminate) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with view:
            result = run_study(file.plan, file.storage, view=view, ray=options.ray, patience=options.patience)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if isinstance(view, JSONLines):
        view.event("end", {"name": file.plan.name, "seconds": vars(result.times), **result.standing.to_dict()})
    elif not options.quiet:
        _print_result(result)
    return NOTHING_FEASIBLE if result.best is None else FOUND


def _status(options: argparse.Namespace) -> int:
    from cbob.study.views import counts, shown_number

    stored = _stored(options)
    standing, best = stored.standing, stored.standing.best
    if options.json:
        return _print_json(stored.to_dict())
    print(f"study     {stored.name} ({stored.direction})")
    print(f"trials    {standing.finished} of {stored.budget or '?'} finished: {standing.feasible} feasible")
    print(f"running   {standing.running} trials, by {stored.drivers} drivers; {standing.lost} were lost with their workers")
    print(f"broken    {counts(standing.broke) or 'none'}")
    print(f"failures  {counts(standing.failed) or 'none'}")
    print(f"best      {'none feasible yet' if best is None else f'{shown_number(best.value)} (trial {best.number})'}")
    return FOUND


def _best(options: argparse.Namespace) -> int:
    stored = _stored(options)
    best = stored.standing.best
    if best is None:
        return _say(f"no feasible point among {stored.standing.finished} trials", NOTHING_FEASIBLE)
    if options.json:
        return _print_json(best.to_dict())
    print(f"value   {best.value!r}")
    for name, value in best.params.items():
        print(f"{name}   {value!r}")
    return FOUND


def _show(options: argparse.Namespace) -> int:
    from cbob.study.views import expectations, outcome

    record = _stored(options).trial(options.trial)
    if options.json:
        return _print_json(record.to_dict())
    print(f"trial     {record.number}" + (f", a retry of trial {record.retry_of}" if record.retry_of is not None else ""))
    print(f"status    {record.status}")
    print(f"outcome   {outcome(record)}")
    for name, value in record.params.items():
        print(f"  {name} = {value!r}")
    for name, reading in record.readings.items():
        print(f"reading   {name}: {reading}")
    for words in expectations(record):
        print(f"expected  {words}")
    print(f"started   {record.started}   ended {record.ended}")
    if record.seconds is not None:
        print(f"took      {record.seconds:.3f} s")
    if record.log:
        print(f"log\n{record.log}", end="" if record.log.endswith("\n") else "\n")
    return FOUND


def _export(options: argparse.Namespace) -> int:
    from cbob.study.export import rows, write_csv, write_parquet

    stored = _stored(options)
    table = rows(stored.records, stored.constraints)
    out = options.output
    form = options.format or ("parquet" if out is not None and out.suffix in (".parquet", ".pq") else "csv")
    if form == "parquet":
        if out is None:
            return _say("Parquet cannot be printed; give a file with --output", USAGE)
        write_parquet(table, out)
    elif out is None:
        write_csv(table, sys.stdout)
    else:
        with out.open("w", newline="", encoding="utf-8") as file:
            write_csv(table, file)
    if out is not None:
        print(f"{len(table)} trials in {out}")
    return FOUND


def _demo(options: argparse.Namespace) -> int:
    from cbob.study.minimize import need_study_extra

    need_study_extra()
    from cbob.study.demo import demo

    return demo(options.output)


def _dashboard(options: argparse.Namespace) -> int:
    from cbob.study.dashboard import serve

    storage, _ = _place(options)
    return serve(storage, options.host, options.port)


# ---- what they share ----


def _study_file(options: argparse.Namespace) -> Path:
    from cbob.study.reading import find_study_file

    return options.study if options.study is not None else find_study_file(Path.cwd())


def _place(options: argparse.Namespace) -> tuple[str, str | None]:
    """Where the study lies, and its name."""
    from cbob.study.minimize import need_study_extra

    need_study_extra()
    if options.study is None and options.storage is not None:
        return options.storage, options.name
    from cbob.study.config import read_study_file

    file = read_study_file(_study_file(options), {"name": options.name} if options.name else {})
    return options.storage or file.storage, file.plan.name


def _stored(options: argparse.Namespace) -> Stored:
    from cbob.study.reading import read_study

    return read_study(*_place(options))


def _print_json(content: Any) -> int:
    print(json.dumps(content, indent=2))
    return FOUND


def _print_result(result: Result) -> None:
    from cbob.study.views import counts

    standing = result.standing
    print(f"\n{standing.finished} trials, {standing.feasible} feasible; failures: {counts(standing.failed) or 'none'}")
    if result.best is None:
        print("no point was feasible")
    else:
        print(f"best value {result.value!r} at {result.params}")


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated(number)


# ---- the command line ----


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cbob", description="Optimise experiments that can fail.", epilog=_codes())
    parser.add_argument("--version", action="version", version=f"cbob {cbob.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    for name, command, words in (
        ("run", _run, "run a study until its budget is used up, going on with what is stored"),
        ("resume", _resume, "the same, for a study that must have been begun before"),
    ):
        run = _command(commands, name, command, words)
        run.add_argument("--budget", type=int, metavar="N", help="finished trials in all")
        run.add_argument("--workers", type=int, metavar="N", help="evaluations at a time on this machine")
        run.add_argument("--seed", type=int, metavar="N", help="the same seed asks the same points")
        run.add_argument("--ray", metavar="ADDRESS", help='evaluate on a Ray cluster; "local" starts one here')
        run.add_argument(
            "--patience",
            type=float,
            default=900.0,
            metavar="SECONDS",
            help="how long to hold results while the storage is away",
        )
        run.add_argument("--quiet", action="store_true", help="print nothing but trouble")
        run.add_argument("--json", action="store_true", help="print one JSON object a line: each trial, and the end")

    for name, command, words in (
        ("status", _status, "where a study stands"),
        ("best", _best, "the best feasible point"),
        ("show", _show, "one trial, with the tail of its log"),
        ("export", _export, "all trials as CSV or Parquet"),
    ):
        look = _command(commands, name, command, words, trial=name == "show")
        if name == "export":
            look.add_argument("--format", choices=("csv", "parquet"), help="default: by the name of the file, else CSV")
            look.add_argument("--output", "-o", type=Path, metavar="FILE", help="default: the terminal")
        else:
            look.add_argument("--json", action="store_true", help="as JSON")

    board = _command(commands, "dashboard", _dashboard, "look at a study in the browser, with optuna-dashboard")
    board.add_argument("--host", default="127.0.0.1")
    board.add_argument("--port", type=int, default=8080)

    demo = commands.add_parser("demo", help="a study whose evaluation crashes, hangs and runs out of memory")
    demo.add_argument("--output", "-o", type=Path, default=Path("out"), metavar="FOLDER", help="where the picture goes")
    demo.set_defaults(command=_demo)
    add_bench_to(commands)
    return parser


def _command(
    commands: Any, name: str, command: Callable[[argparse.Namespace], int], words: str, *, trial: bool = False
) -> argparse.ArgumentParser:
    """A command about one study."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
    if trial:
        parser.add_argument("trial", type=int, metavar="TRIAL", help="its number")
    parser.add_argument("study", type=Path, nargs="?", metavar="STUDY.toml", help="default: the only one in this folder")
    parser.add_argument("--storage", metavar="URL", help="where the trials are; default: one SQLite file beside the study file")
    parser.add_argument("--name", metavar="NAME", help="of the study in its storage; default: that of the study file")
    parser.set_defaults(command=command)
    return parser


def _codes() -> str:
    assert __doc__ is not None
    return " ".join(__doc__.partition("\n\n")[2].split())


if __name__ == "__main__":
    sys.exit(main())
