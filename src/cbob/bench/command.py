"""The subcommands of `cbob bench`: parses and prints, decides nothing."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cbob.bench.campaign import campaign
from cbob.bench.plans import PLANS, cells_of
from cbob.bench.problems import PROBLEMS
from cbob.bench.results import default_folder, load
from cbob.bench.runs import PROTOCOL_BUDGET, Cell
from cbob.bench.scenarios import Scenario
from cbob.errors import CbobError
from cbob.strategies import as_strategy

__all__ = ["add_to", "main"]

DONE, FAILED, INTERRUPTED = 0, 1, 130
OWN = [name for name, problem in PROBLEMS.items() if problem.half is None]  # the paper's; the suite is asked for by name


def main(arguments: Sequence[str] | None = None, prog: str = "cbob bench") -> int:
    """Run one subcommand; gives back its exit code."""
    parser = argparse.ArgumentParser(prog=prog, description="Campaigns on benchmark problems, and their tables and pictures.")
    add_to(parser.add_subparsers(required=True, metavar="COMMAND"))
    options = parser.parse_args(arguments)
    try:
        return int(options.command(options))
    except KeyboardInterrupt:
        return _say("interrupted; the same command goes on from here", INTERRUPTED)
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stderr.close()
        return FAILED
    except (CbobError, ImportError) as error:
        return _say(str(error), FAILED)


def _say(words: str, code: int) -> int:
    print(f"cbob: {words}", file=sys.stderr)
    return code


def add_to(commands: Any) -> None:
    """Hang the subcommands into a command line. Each sets `command` to a function from options to an exit code."""
    run = _command(
        commands, "run", _run, "evaluate problems x scenarios x strategies x surrogates x seeds, going on where it ended"
    )
    _add_cells(run)
    run.add_argument("--seeds", type=_seeds, default="0-19", help='one, "3", or a range with both ends (default: 0-19)')
    run.add_argument("--jobs", type=int, metavar="N", help="processes (default: one a core)")
    run.add_argument("--anew", action="store_true", help="also what has a record; the new one then counts")
    run.add_argument("--scratch", type=Path, metavar="FOLDER", help="where evaluations are kept (default: beside the results)")

    table = _command(commands, "table", _table, "the table of what was saved")
    _add_cells(table)
    form = table.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="rows of JSON")
    form.add_argument("--markdown", action="store_true", help="as in the documentation, with the paper's numbers and tests")

    figure = _command(commands, "figure", _figure, "draw the pictures")
    figure.add_argument("names", nargs="*", metavar="NAME", help="default: all; --list tells their names")
    figure.add_argument("--list", action="store_true", help="print the names and draw nothing")
    figure.add_argument("--output", "-o", type=Path, metavar="FOLDER", help="default: docs/figures of the repository")

    theorem = _command(
        commands, "theorem", _theorem, "watch theorem 1: the largest EICB and the best value, evaluation by evaluation"
    )
    theorem.add_argument("--seeds", type=_seeds, default="0-4")
    theorem.add_argument("--evaluations", type=int, default=200, metavar="N")

    report = _command(commands, "report", _report, "write every table and picture into docs/reproduction.md")
    report.add_argument("--tables-only", action="store_true", help="leave the pictures as they are")


def _command(commands: Any, name: str, command: Callable[[argparse.Namespace], int], words: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="default: benchmarks/results of the repository")
    parser.set_defaults(command=command)
    return parser


def _add_cells(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--campaign", nargs="+", choices=PLANS, metavar="NAME", help=f"cells by name: {', '.join(PLANS)}")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, metavar="NAME")
    parser.add_argument("--scenarios", nargs="+", choices=[scenario.value for scenario in Scenario], metavar="S")
    parser.add_argument("--strategies", nargs="+", metavar="NAME")
    parser.add_argument("--surrogates", nargs="+", metavar="NAME")
    parser.add_argument("--budget", type=int, help=f"evaluations after the initial design (default: {PROTOCOL_BUDGET})")


def _run(options: argparse.Namespace) -> int:
    results = _results(options)
    cells = _asked_for(options)
    for strategy in dict.fromkeys(cell.strategy for cell in cells):
        as_strategy(strategy)  # an error at once, rather than one a run
    # Seeds outermost: whenever it is killed, every cell has about as many.
    runs = [cell.at(seed) for seed in options.seeds for cell in cells]
    campaign(runs, results, options.scratch or results.parent / "scratch", jobs=options.jobs, anew=options.anew)
    return DONE


def _table(options: argparse.Namespace) -> int:
    from cbob.bench.summary import row, summarise
    from cbob.bench.tables import text

    records = load(_results(options))
    if options.markdown:
        from cbob.bench.report import blocks

        made = blocks(records, _results(options))
        print("\n\n".join(made[name] for name in made if not options.campaign or name.split("-")[0] in options.campaign))
        return DONE
    kept = [summary for cell, summary in sorted(summarise(records).items()) if _wanted(cell, options)]
    print(json.dumps([row(summary) for summary in kept], indent=2) if options.json else text(kept))
    return DONE


def _figure(options: argparse.Namespace) -> int:
    from cbob.bench.figures import FIGURES, draw

    if options.list:
        for name, figure in FIGURES.items():
            print(f"{name:20} {figure.words}")
        return DONE
    unknown = [name for name in options.names if name not in FIGURES]
    if unknown:
        raise CbobError(f"the pictures are {', '.join(FIGURES)}, not {', '.join(unknown)}")
    results = _results(options)
    folder = options.output or results.parents[1] / "docs" / "figures"
    for name in options.names or FIGURES:
        path = draw(name, results, folder)
        print(f"{name}: {path or 'nothing was saved to draw it from'}")
    return DONE


def _theorem(options: argparse.Namespace) -> int:
    from cbob.bench.convergence import watch_all

    path = watch_all(_results(options), list(options.seeds), options.evaluations, report=print)
    print(f"{path} has the numbers")
    return DONE


def _report(options: argparse.Namespace) -> int:
    from cbob.bench.report import write

    for line in write(_results(options), pictures=not options.tables_only):
        print(line, flush=True)
    return DONE


# ---- what they share ----


def _results(options: argparse.Namespace) -> Path:
    return options.results if options.results is not None else default_folder()


def _asked_for(options: argparse.Namespace) -> list[Cell]:
    """The cells of the named campaigns, as far as the other options let them through; without a campaign, the product of
    the other options."""
    if options.campaign:
        return [cell for cell in cells_of(options.campaign) if _wanted(cell, options)]
    return [
        Cell(problem, scenario, strategy, surrogate, options.budget or PROTOCOL_BUDGET)
        for problem, strategy, surrogate in itertools.product(
            options.problems or OWN, options.strategies or ["cbob", "eic"], options.surrogates or ["hlgp"]
        )
        for scenario in options.scenarios or [PROBLEMS[problem].scenario]
    ]


def _wanted(cell: Cell, options: argparse.Namespace) -> bool:
    if options.campaign and cell not in cells_of(options.campaign):
        return False
    chosen = (
        (cell.problem, options.problems),
        (cell.scenario, options.scenarios),
        (cell.strategy, options.strategies),
        (cell.surrogate, options.surrogates),
    )
    budget = cell.budget if options.campaign else options.budget or PROTOCOL_BUDGET
    return cell.budget == budget and all(not names or own in names for own, names in chosen)


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)
